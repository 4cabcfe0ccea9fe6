//! Collections of the atlas, as JSON.

use axum::Json;
use axum::extract::{Path, Query, State};
use onionskin_core::{CollectionId, DocId};
use onionskin_search::Role;
use onionskin_store::table::{CollectionGroupRow, CollectionRow};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use super::part::{Part, PartAsked};
use crate::error::ServeError;
use crate::lanes::Lane;
use crate::library::{CollectionFilter, CollectionSort, Library};
use crate::state::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(collection_list)).routes(routes!(collection))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct CollectionsAsked {
    /// `pages`, `replicas`, `slots` or `bytes`.
    #[param(inline)]
    #[serde(default)]
    sort: CollectionSort,
    /// As in `mirror`; all kinds if not given.
    kind: Option<String>,
    /// A part of the name.
    name: Option<String>,
    /// Collections of fewer than ten pages too.
    #[serde(default)]
    noise: bool,
    #[serde(default)]
    offset: u32,
    /// 100 if not given.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

#[derive(Serialize, ToSchema)]
struct Collections {
    /// Collections that fit, in all.
    count: u64,
    collections: Vec<CollectionGroupRow>,
}

/// Collections of linked pages that are replicated.
#[utoipa::path(get, path = "/api/v1/collections", tag = "atlas", params(CollectionsAsked), responses((status = 200, description = "Collections in order", body = Collections)))]
async fn collection_list(
    State(state): State<AppState>,
    Query(asked): Query<CollectionsAsked>,
) -> Answer<Collections> {
    let work = move |library: &Library| {
        let part = Part::new(asked.offset, asked.limit)?;
        let (kind, name) = (asked.kind.unwrap_or_default(), asked.name.unwrap_or_default());
        let only = CollectionFilter { kind: &kind, name: &name, noise: asked.noise };
        let rows = library.collections(asked.sort, only);
        let shown = part.of(&rows).iter().map(|row| (*row).clone()).collect();
        Ok(Collections { count: rows.len() as u64, collections: shown })
    };
    state.read(Lane::Lists, work).await.map(Json)
}

#[derive(Serialize, ToSchema)]
struct Collection {
    #[serde(flatten)]
    group: CollectionGroupRow,
    /// Its replicas, the first hundred if nothing is said.
    members: Vec<Replica>,
}

#[derive(Serialize, ToSchema)]
struct Replica {
    #[serde(flatten)]
    row: CollectionRow,
    /// Documents by slot, second URLs left out.
    #[schema(value_type = Vec<u32>)]
    docs: Vec<DocId>,
}

impl Replica {
    fn new(library: &Library, row: &CollectionRow) -> Replica {
        let own = library.copies().pages(row.group).iter().filter(|page| page.replica == row.replica);
        let own = own.filter(|page| !matches!(page.role, Role::Alias | Role::Virtual));
        Replica { row: row.clone(), docs: own.map(|page| page.doc).collect() }
    }
}

/// A collection and its replicas.
#[utoipa::path(get, path = "/api/v1/collections/{group}", tag = "atlas", params(("group" = u32, Path, description = "Its number"), PartAsked), responses((status = 200, description = "The collection", body = Collection)))]
async fn collection(
    State(state): State<AppState>,
    Path(group): Path<CollectionId>,
    Query(asked): Query<PartAsked>,
) -> Answer<Collection> {
    let work = move |library: &Library| {
        let part = Part::new(asked.offset, asked.limit)?;
        let row = library.collection(group)?.clone();
        let rows = part.of(library.copies().replicas(group));
        let members = rows.iter().map(|row| Replica::new(library, row)).collect();
        Ok::<_, ServeError>(Collection { group: row, members })
    };
    state.read(Lane::Lists, work).await.map(Json)
}
