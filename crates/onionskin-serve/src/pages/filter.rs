//! The filter designer: k, s and r, and what becomes of pairs.

use askama::Template;
use axum::Router;
use axum::extract::{Query, State};
use axum::routing::get;
use onionskin_core::FeatureFilter;
use onionskin_core::feature::{PlanError, Target, choose};
use serde::Deserialize;

use crate::api::filter::{FALSE_ACCEPT, MISS};
use crate::curve::{self, Curve, Scale, chance};
use crate::error::ServeError;
use crate::lanes::Lane;
use crate::layout::{Chrome, Page, Section};
use crate::state::AppState;

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/filter", get(filter))
}

/// What was typed, whatever it is: mistakes are told beside the field.
#[derive(Debug, Default, Deserialize)]
struct FilterQuery {
    k: Option<String>,
    s: Option<String>,
    r: Option<String>,
    scale: Option<String>,
    threshold: Option<String>,
    miss: Option<String>,
    far: Option<String>,
    false_accept: Option<String>,
}

/// A number to be typed.
struct Field {
    name: &'static str,
    label: &'static str,
    help: &'static str,
    value: String,
    min: &'static str,
    max: &'static str,
    step: &'static str,
    problem: Option<String>,
}

impl Field {
    /// The filter's own numbers.
    fn whole(name: &'static str, label: &'static str, value: Option<String>, usual: u32) -> Field {
        let value = value.unwrap_or_else(|| usual.to_string());
        Field { name, label, help: "", value, min: "1", max: "255", step: "1", problem: None }
    }

    fn share(name: &'static str, label: &'static str, help: &'static str, value: Option<String>) -> Field {
        let value = value.unwrap_or_default();
        Field { name, label, help, value, min: "0", max: "1", step: "any", problem: None }
    }

    fn read_whole(&mut self) -> Option<u32> {
        let number = self.value.trim().parse::<u32>().ok().filter(|n| (1..=255).contains(n));
        if number.is_none() {
            self.problem = Some("a whole number from 1 to 255".to_owned());
        }
        number
    }

    /// What was typed, or what is usual where nothing was.
    fn read_share(&mut self, usual: f64) -> Option<f64> {
        let typed = self.value.trim();
        if typed.is_empty() {
            return Some(usual);
        }
        let number = typed.parse::<f64>().ok().filter(|n| 0.0 < *n && *n < 1.0);
        if number.is_none() {
            self.problem = Some("a number between 0 and 1".to_owned());
        }
        number
    }
}

#[derive(Template)]
#[template(path = "filter.html")]
struct FilterPage {
    chrome: Chrome,
    scale: Scale,
    /// k, s, r.
    numbers: [Field; 3],
    /// Threshold, miss, far, false_accept.
    wishes: [Field; 4],
    /// Whether the numbers were chosen for the wishes.
    chosen: bool,
    design: Option<Design>,
}

/// A filter and everything that is told of it.
struct Design {
    filter: FeatureFilter,
    curve: Curve,
    reference: Option<String>,
    half_point: String,
    handful: Vec<(String, String, String)>,
    table: Vec<(String, String, String)>,
}

const REFERENCE: (u32, u32, u32) = (6, 14, 2);

impl Design {
    fn new(filter: FeatureFilter, scale: Scale) -> Design {
        let row = |resemblance: f64, digits: usize| {
            (
                format!("{resemblance:.digits$}"),
                chance(filter.acceptance(resemblance)),
                chance(filter.miss(resemblance)),
            )
        };
        let (k, s, r) = REFERENCE;
        let reference = FeatureFilter::new(k, s, r).ok().filter(|reference| *reference != filter);
        Design {
            filter,
            curve: Curve::new(filter, scale),
            reference: reference.map(|reference| curve::path(reference, scale)),
            half_point: format!("{:.3}", filter.half_point()),
            handful: [0.5, 0.7, 0.8, 0.9, 0.95, 0.975].map(|resemblance| row(resemblance, 3)).into(),
            table: (0..=20).map(|i| row(f64::from(i) / 20.0, 2)).collect(),
        }
    }
}

/// The filter that the three numbers make; problems are noted beside them.
fn given(numbers: &mut [Field; 3]) -> Option<FeatureFilter> {
    let [k, s, r] = numbers.each_mut().map(Field::read_whole);
    let (k, s, r) = (k?, s?, r?);
    if r > k {
        numbers[2].problem = Some(format!("not more than there are features, {k}"));
        return None;
    }
    let filter = FeatureFilter::new(k, s, r).ok();
    if filter.is_none() {
        numbers[1].problem = Some(format!("{k} times {s} is {}; at most 4096 minima are taken", k * s));
    }
    filter
}

/// What is wished for; problems are noted beside the fields.
fn wished(wishes: &mut [Field; 4]) -> Option<Target> {
    let threshold = wishes[0].read_share(0.9);
    let miss = wishes[1].read_share(MISS);
    let far = wishes[2].read_share(threshold.unwrap_or(0.9) * 2.0 / 3.0);
    let false_accept = wishes[3].read_share(FALSE_ACCEPT);
    let (threshold, miss, far, false_accept) = (threshold?, miss?, far?, false_accept?);
    if far >= threshold {
        wishes[2].problem = Some("less than the threshold".to_owned());
        return None;
    }
    Some(Target { threshold, miss, far, false_accept })
}

async fn filter(
    State(state): State<AppState>,
    Query(query): Query<FilterQuery>,
) -> Result<Page<FilterPage>, ServeError> {
    let scale = query.scale.as_deref().and_then(Scale::parse).unwrap_or_default();
    let chosen = query.threshold.as_ref().is_some_and(|typed| !typed.trim().is_empty());
    let mut numbers = [
        Field::whole("k", "k: features a document", query.k, REFERENCE.0),
        Field::whole("s", "s: minima a feature", query.s, REFERENCE.1),
        Field::whole("r", "r: features that must agree", query.r, REFERENCE.2),
    ];
    let mut wishes = [
        Field::share("threshold", "Find pairs of this resemblance and more", "as in 0.9", query.threshold),
        Field::share("miss", "Miss at most this share of them", "0.01 if empty", query.miss),
        Field::share(
            "far",
            "Leave out pairs of this resemblance and less",
            "two thirds of the first if empty",
            query.far,
        ),
        Field::share(
            "false_accept",
            "Let pass at most this share of those",
            "0.01 if empty",
            query.false_accept,
        ),
    ];
    let filter = if chosen {
        match wished(&mut wishes) {
            None => None,
            // A sharp one takes a second to find, or not to find.
            Some(target) => match state.work(Lane::Lists, move || choose(target)).await? {
                Ok(filter) => Some(filter),
                Err(PlanError::TooSharp { most }) => {
                    wishes[3].problem = Some(format!(
                        "no filter of up to {most} features does all that: raise a share, or lower the third number"
                    ));
                    None
                }
                Err(error) => {
                    wishes[0].problem = Some(error.to_string());
                    None
                }
            },
        }
    } else {
        given(&mut numbers)
    };
    if let Some(filter) = filter {
        let values = [filter.k(), filter.s(), filter.r()];
        numbers.iter_mut().zip(values).for_each(|(field, value)| field.value = value.to_string());
    }
    Ok(Page(FilterPage {
        chrome: Chrome::new(&state, Section::Filter, "Filter designer"),
        scale,
        numbers,
        wishes,
        chosen,
        design: filter.map(|filter| Design::new(filter, scale)),
    }))
}
