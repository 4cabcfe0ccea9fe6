//! Documents of the atlas, as JSON.

use axum::Json;
use axum::extract::{Path, Query, State};
use onionskin::avoid::Alternate;
use onionskin::explain::{DocumentFields, document_facts};
use onionskin_core::{ClusterId, CollectionId, DocId, ReplicaId, SlotId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::error::ServeError;
use crate::lanes::Lane;
use crate::library::Library;
use crate::state::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(document)).routes(routes!(documents)).routes(routes!(alternates))
}

#[derive(Serialize, ToSchema)]
struct Document {
    #[serde(flatten)]
    fields: DocumentFields,
    /// The cluster that it is in.
    #[schema(value_type = Option<u32>)]
    cluster: Option<ClusterId>,
    /// Documents of that cluster.
    cluster_documents: Option<u64>,
    places: Vec<Place>,
    /// Documents that it links to, and that link to it; the first hundred of each. Null when links
    /// are not at hand.
    links: Option<Links>,
    /// The first 32 KiB of its text; null when its input could not be read.
    text: Option<String>,
}

#[derive(Serialize, ToSchema)]
struct Links {
    #[schema(value_type = Vec<u32>)]
    to: Vec<DocId>,
    to_count: u64,
    #[schema(value_type = Vec<u32>)]
    from: Vec<DocId>,
    from_count: u64,
}

/// Where a document is in a collection.
#[derive(Serialize, ToSchema)]
struct Place {
    #[schema(value_type = u32)]
    group: CollectionId,
    #[schema(value_type = u32)]
    replica: ReplicaId,
    #[schema(value_type = u32)]
    slot: SlotId,
    /// `copy`, `changed`, `added`, `alias` or `virtual`.
    role: &'static str,
}

impl Document {
    fn new(library: &Library, doc: DocId) -> Result<Document, ServeError> {
        let page = library.page(doc)?;
        let facts = document_facts(library.atlas(), doc, 1)?;
        let copies = library.copies();
        let cluster = copies.cluster_of(doc);
        let places = copies.places(doc).map(|place| Place {
            group: place.group,
            replica: place.replica,
            slot: place.slot,
            role: place.role.as_str(),
        });
        let some = |docs: &[DocId]| docs.iter().copied().take(100).collect();
        Ok(Document {
            fields: DocumentFields::from(&facts),
            cluster,
            cluster_documents: cluster.map(|cluster| copies.members(cluster).len() as u64),
            places: places.collect(),
            links: library.links().map(|links| {
                let (to, from) = (links.out(doc), links.back(doc));
                Links {
                    to: some(to),
                    to_count: to.len() as u64,
                    from: some(from),
                    from_count: from.len() as u64,
                }
            }),
            text: page.text,
        })
    }
}

/// A document by its number.
#[utoipa::path(get, path = "/api/v1/documents/{doc}", tag = "atlas", params(("doc" = u32, Path, description = "Its number")), responses((status = 200, description = "The document", body = Document)))]
async fn document(State(state): State<AppState>, Path(doc): Path<DocId>) -> Answer<Document> {
    state.read(Lane::Search, move |library| Document::new(library, doc)).await.map(Json)
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Address {
    /// An http or https URL, however it is spelled.
    #[param(example = "http://example.org/")]
    url: String,
}

#[derive(Serialize, ToSchema)]
struct Documents {
    #[schema(value_type = Vec<u32>)]
    docs: Vec<DocId>,
}

/// The documents with a URL.
#[utoipa::path(get, path = "/api/v1/documents", tag = "atlas", params(Address), responses((status = 200, description = "Their numbers, ascending", body = Documents)))]
async fn documents(State(state): State<AppState>, Query(asked): Query<Address>) -> Answer<Documents> {
    let work = move |library: &Library| Ok(Documents { docs: library.index().documents_at(&asked.url)? });
    state.read(Lane::Search, work).await.map(Json)
}

#[derive(Serialize, ToSchema)]
struct Alternates {
    url: String,
    alternates: Vec<Alternate>,
}

/// Pages that can replace one that is gone, the best first; at most a thousand.
#[utoipa::path(get, path = "/api/v1/alternates", tag = "atlas", params(Address), responses((status = 200, description = "Pages of the atlas", body = Alternates)))]
async fn alternates(State(state): State<AppState>, Query(asked): Query<Address>) -> Answer<Alternates> {
    let work = move |library: &Library| {
        let not_one = || ServeError::bad_request(format!("{:?} is no http or https address", asked.url));
        let mut alternates = library.alternates(&asked.url)?.ok_or_else(not_one)?;
        alternates.truncate(1000);
        Ok::<_, ServeError>(Alternates { url: asked.url, alternates })
    };
    state.read(Lane::Lists, work).await.map(Json)
}
