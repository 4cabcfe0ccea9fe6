//! Clusters of the atlas, as JSON.

use axum::Json;
use axum::extract::{Path, Query, State};
use onionskin_core::{ClusterId, DocId};
use onionskin_store::table::{ClusterStatsRow, CopyKind};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use super::part::{Part, PartAsked};
use crate::error::ServeError;
use crate::lanes::Lane;
use crate::library::{ClusterFilter, ClusterSort, Library};
use crate::state::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(cluster_list)).routes(routes!(cluster))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ClustersAsked {
    /// `size`, `sites`, `exact` or `unlike`.
    #[param(inline)]
    #[serde(default)]
    sort: ClusterSort,
    /// `all`, `cross` (several sites), `same` (one site) or `near` (with near duplicates).
    #[param(inline)]
    #[serde(default)]
    only: ClusterFilter,
    #[serde(default)]
    offset: u32,
    /// 100 if not given.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

#[derive(Serialize, ToSchema)]
struct Clusters {
    /// Clusters that fit, in all.
    count: u64,
    clusters: Vec<ClusterStatsRow>,
}

/// Clusters of documents that say the same, or nearly the same.
#[utoipa::path(get, path = "/api/v1/clusters", tag = "atlas", params(ClustersAsked), responses((status = 200, description = "Clusters in order", body = Clusters)))]
async fn cluster_list(State(state): State<AppState>, Query(asked): Query<ClustersAsked>) -> Answer<Clusters> {
    let work = move |library: &Library| {
        let part = Part::new(asked.offset, asked.limit)?;
        let rows = library.clusters(asked.sort, asked.only);
        Ok(Clusters { count: rows.len() as u64, clusters: part.of(&rows).iter().map(|row| **row).collect() })
    };
    state.read(Lane::Lists, work).await.map(Json)
}

#[derive(Serialize, ToSchema)]
struct Cluster {
    #[schema(value_type = u32)]
    cluster: ClusterId,
    /// Members in all.
    count: u64,
    members: Vec<ClusterMember>,
}

#[derive(Serialize, ToSchema)]
struct ClusterMember {
    #[schema(value_type = u32)]
    doc: DocId,
    is_centre: bool,
    resemblance_to_centre: f64,
    kind: CopyKind,
    id: Option<String>,
    url: Option<String>,
    title: Option<String>,
}

/// A cluster and its members.
#[utoipa::path(get, path = "/api/v1/clusters/{cluster}", tag = "atlas", params(("cluster" = u32, Path, description = "Its number"), PartAsked), responses((status = 200, description = "The cluster", body = Cluster)))]
async fn cluster(
    State(state): State<AppState>,
    Path(cluster): Path<ClusterId>,
    Query(asked): Query<PartAsked>,
) -> Answer<Cluster> {
    let work = move |library: &Library| {
        let part = Part::new(asked.offset, asked.limit)?;
        let members = library.copies().members(cluster);
        if members.is_empty() {
            return Err(library.no_cluster(cluster));
        }
        let shown = part.of(members).iter().map(|member| {
            let page = library.index().page(member.doc)?.unwrap_or_default();
            Ok::<_, ServeError>(ClusterMember {
                doc: member.doc,
                is_centre: member.is_centre,
                resemblance_to_centre: member.resemblance,
                kind: member.kind,
                id: page.id,
                url: page.url,
                title: page.title,
            })
        });
        let shown = shown.collect::<Result<_, _>>()?;
        Ok(Cluster { cluster, count: members.len() as u64, members: shown })
    };
    state.read(Lane::Lists, work).await.map(Json)
}
