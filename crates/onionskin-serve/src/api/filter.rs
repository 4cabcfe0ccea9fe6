//! The curve of a filter, and the filter for a threshold.

use axum::Json;
use axum::extract::{Query, State};
use onionskin_core::FeatureFilter;
use onionskin_core::feature::{Target, choose};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::ServeError;
use crate::lanes::Lane;
use crate::state::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(filter))
}

/// Give k, s and r; or a threshold, and the filter is chosen.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct FilterQuery {
    /// Features a document.
    #[param(minimum = 1, maximum = 255)]
    k: Option<u32>,
    /// Minima a feature.
    #[param(minimum = 1, maximum = 255)]
    s: Option<u32>,
    /// Features that must agree.
    #[param(minimum = 1, maximum = 255)]
    r: Option<u32>,
    /// Pairs of this resemblance and more are wanted.
    threshold: Option<f64>,
    /// The share of pairs at the threshold that may be missed; 0.01 if not given.
    miss: Option<f64>,
    /// Pairs of this resemblance and less are not wanted; two thirds of the threshold if not given.
    far: Option<f64>,
    /// The share of pairs at `far` that may be accepted; 0.01 if not given.
    false_accept: Option<f64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Filter)]
struct FilterWire {
    k: usize,
    s: usize,
    r: usize,
    /// As in `6x14r2`.
    spelling: String,
    /// Whether it was chosen for the threshold, or given.
    chosen: bool,
    bytes_per_document: usize,
    permutations: usize,
    /// Where half of the pairs are accepted.
    half_point: f64,
    /// Where the curve of one feature is steepest.
    steepest: f64,
    /// The chance that two documents meet, by their resemblance.
    points: Vec<PointWire>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = FilterPoint)]
struct PointWire {
    resemblance: f64,
    acceptance: f64,
    /// One less the other, with all its digits.
    miss: f64,
}

/// What rates are asked of a choice when nothing is said, as in `onionskin plan`.
pub(crate) const MISS: f64 = 0.01;
/// As [`MISS`].
pub(crate) const FALSE_ACCEPT: f64 = 0.01;

/// The curve of a `[k, s, r]` filter (Broder 2000, section 3): the chance that two documents share
/// r of k features of s minima each.
#[utoipa::path(get, path = "/api/v1/filter", tag = "filter", params(FilterQuery), responses((status = 200, description = "The filter and its curve", body = FilterWire)))]
async fn filter(
    State(state): State<AppState>,
    Query(query): Query<FilterQuery>,
) -> Result<Json<FilterWire>, ServeError> {
    let (filter, chosen) = match (query.k, query.s, query.r, query.threshold) {
        (Some(k), Some(s), Some(r), None) => {
            let filter = FeatureFilter::new(k, s, r);
            (filter.map_err(|error| ServeError::bad_request(error.to_string()))?, false)
        }
        (None, None, None, Some(threshold)) => {
            let target = Target {
                threshold,
                miss: query.miss.unwrap_or(MISS),
                far: query.far.unwrap_or(threshold * 2.0 / 3.0),
                false_accept: query.false_accept.unwrap_or(FALSE_ACCEPT),
            };
            // A sharp one takes a second to find, or not to find.
            let found = state.work(Lane::Lists, move || choose(target)).await?;
            (found.map_err(|error| ServeError::bad_request(error.to_string()))?, true)
        }
        _ => {
            return Err(ServeError::bad_request("either k, s and r are needed, or a threshold")
                .hint("/api/v1/filter?k=6&s=14&r=2 or /api/v1/filter?threshold=0.9"));
        }
    };
    let points = (0..=100).map(|i| f64::from(i) / 100.0).map(|resemblance| PointWire {
        resemblance,
        acceptance: filter.acceptance(resemblance),
        miss: filter.miss(resemblance),
    });
    Ok(Json(FilterWire {
        k: filter.k(),
        s: filter.s(),
        r: filter.r(),
        spelling: filter.to_string(),
        chosen,
        bytes_per_document: filter.bytes_per_document(),
        permutations: filter.permutations(),
        half_point: filter.half_point(),
        steepest: filter.steepest_resemblance(),
        points: points.collect(),
    }))
}
