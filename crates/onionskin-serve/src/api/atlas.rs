//! Documents, clusters and collections of the atlas, as JSON.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Query, State};
use onionskin::explain::{Explanation, document_facts};
use onionskin_search::Role;
use onionskin_store::table::{ClusterStatsRow, CollectionGroupRow, CollectionRow};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::error::ServeError;
use crate::library::Library;
pub(crate) use crate::pages::collections::group_of;
use crate::pages::{clusters, collections, compare};
use crate::state::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(document))
        .routes(routes!(documents))
        .routes(routes!(cluster_list))
        .routes(routes!(cluster))
        .routes(routes!(collection_list))
        .routes(routes!(collection))
        .routes(routes!(explain))
        .routes(routes!(alternates))
}

/// A part of a list.
#[derive(Clone, Copy)]
struct Part {
    offset: usize,
    limit: usize,
}

/// Things on a page of a list at most.
const MOST: u32 = 1000;

fn part(offset: u32, limit: Option<u32>) -> Result<Part, ServeError> {
    let limit = limit.unwrap_or(100);
    if !(1..=MOST).contains(&limit) {
        return Err(ServeError::bad_request(format!("limit is 1 to {MOST}")));
    }
    Ok(Part { offset: offset as usize, limit: limit as usize })
}

impl Part {
    fn of<T>(self, all: &[T]) -> &[T] {
        let rest = all.get(self.offset..).unwrap_or_default();
        &rest[..rest.len().min(self.limit)]
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Document)]
struct DocumentWire {
    document: u32,
    url: Option<String>,
    id: Option<String>,
    title: Option<String>,
    site: Option<String>,
    media_type: String,
    /// Bytes of the payload.
    bytes: u64,
    words: u64,
    /// Microseconds since 1970, UTC.
    fetched_at: Option<i64>,
    /// The input that it came from, and where in it.
    source: String,
    offset: u64,
    /// The cluster that it is in, and how many documents are.
    cluster: Option<u32>,
    cluster_documents: Option<u64>,
    places: Vec<PlaceWire>,
    /// Documents that it links to, and that link to it; the first hundred of each. Null when links are not at hand.
    links: Option<LinksWire>,
    /// The first 32 KiB of its text; null when its input could not be read.
    text: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Links)]
struct LinksWire {
    to: Vec<u32>,
    to_count: u64,
    from: Vec<u32>,
    from_count: u64,
}

/// Where a document stands in a collection.
#[derive(Serialize, ToSchema)]
#[schema(as = Place)]
struct PlaceWire {
    collection: u32,
    replica: u32,
    slot: u32,
    /// `copy`, `changed`, `added`, `alias` or `virtual`.
    role: &'static str,
}

fn document_wire(library: &Library, doc: u32) -> Result<DocumentWire, ServeError> {
    let page = crate::pages::document::stored(library, doc)?;
    let facts = document_facts(library.atlas(), doc, 1)?;
    let copies = library.copies();
    let cluster = copies.cluster_of(doc);
    let places = copies.places(doc).map(|place| PlaceWire {
        collection: place.group,
        replica: place.replica,
        slot: place.slot,
        role: place.role.as_str(),
    });
    let some = |docs: &[u32]| docs.iter().copied().take(100).collect();
    Ok(DocumentWire {
        document: doc,
        url: facts.url,
        id: facts.id,
        title: facts.title,
        site: facts.host,
        media_type: facts.media_type,
        bytes: facts.bytes,
        words: facts.tokens,
        fetched_at: facts.fetched_at,
        source: facts.source,
        offset: facts.offset,
        cluster,
        cluster_documents: cluster.map(|cluster| copies.members(cluster).len() as u64),
        places: places.collect(),
        links: library.links().map(|links| {
            let (to, from) = (links.out(doc), links.back(doc));
            LinksWire {
                to: some(to),
                to_count: to.len() as u64,
                from: some(from),
                from_count: from.len() as u64,
            }
        }),
        text: page.text,
    })
}

/// A document by its number.
#[utoipa::path(get, path = "/api/v1/documents/{document}", tag = "atlas", params(("document" = u32, Path, description = "Its number")), responses((status = 200, description = "The document", body = DocumentWire)))]
async fn document(
    State(state): State<AppState>,
    Path(doc): Path<u32>,
) -> Result<Json<DocumentWire>, ServeError> {
    let library = Arc::clone(state.library()?);
    Ok(Json(state.work(move || document_wire(&library, doc)).await??))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Address {
    /// An http or https address, however it is spelled.
    #[param(example = "http://example.org/")]
    url: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Documents)]
struct DocumentsWire {
    documents: Vec<u32>,
}

/// The documents with an address.
#[utoipa::path(get, path = "/api/v1/documents", tag = "atlas", params(Address), responses((status = 200, description = "Their numbers, ascending", body = DocumentsWire)))]
async fn documents(
    State(state): State<AppState>,
    Query(asked): Query<Address>,
) -> Result<Json<DocumentsWire>, ServeError> {
    let library = Arc::clone(state.library()?);
    let documents = state.work(move || library.index().documents_at(&asked.url)).await??;
    Ok(Json(DocumentsWire { documents }))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ClustersAsked {
    /// `size`, `sites`, `exact` or `unlike`.
    #[param(inline)]
    #[serde(default)]
    sort: ClusterSort,
    /// `all`, `cross` (several sites), `same` (one site) or `near` (with near copies).
    #[param(inline)]
    #[serde(default)]
    only: ClusterFilter,
    #[serde(default)]
    offset: u32,
    /// 100 if not given.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ClusterSort {
    #[default]
    Size,
    Sites,
    Exact,
    Unlike,
}

#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ClusterFilter {
    #[default]
    All,
    Cross,
    Same,
    Near,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Clusters)]
struct ClustersWire {
    /// Clusters that fit, in all.
    count: u64,
    clusters: Vec<ClusterWire>,
}

/// A cluster in numbers.
#[derive(Serialize, ToSchema)]
#[schema(as = ClusterSummary)]
struct ClusterWire {
    cluster: u32,
    centre: u32,
    documents: u64,
    exact_copies: u64,
    sites: u64,
    same_site: u64,
    cross_site: u64,
    lowest_resemblance: f64,
}

impl From<&ClusterStatsRow> for ClusterWire {
    fn from(row: &ClusterStatsRow) -> ClusterWire {
        ClusterWire {
            cluster: row.cluster,
            centre: row.centre,
            documents: row.documents,
            exact_copies: row.exact_copies,
            sites: row.sites,
            same_site: row.same_site,
            cross_site: row.cross_site,
            lowest_resemblance: row.lowest_resemblance,
        }
    }
}

/// Clusters of documents that say the same, or nearly the same.
#[utoipa::path(get, path = "/api/v1/clusters", tag = "atlas", params(ClustersAsked), responses((status = 200, description = "Clusters in order", body = ClustersWire)))]
async fn cluster_list(
    State(state): State<AppState>,
    Query(asked): Query<ClustersAsked>,
) -> Result<Json<ClustersWire>, ServeError> {
    let library = Arc::clone(state.library()?);
    let part = part(asked.offset, asked.limit)?;
    let sort = match asked.sort {
        ClusterSort::Size => "size",
        ClusterSort::Sites => "sites",
        ClusterSort::Exact => "exact",
        ClusterSort::Unlike => "unlike",
    };
    let only = match asked.only {
        ClusterFilter::All => "",
        ClusterFilter::Cross => "cross",
        ClusterFilter::Same => "same",
        ClusterFilter::Near => "near",
    };
    let work = move || {
        let rows = clusters::selected(&library, sort, only);
        let shown = part.of(&rows).iter().map(|row| ClusterWire::from(*row)).collect();
        ClustersWire { count: rows.len() as u64, clusters: shown }
    };
    Ok(Json(state.work(work).await?))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct PartAsked {
    #[serde(default)]
    offset: u32,
    /// 100 if not given.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Cluster)]
struct ClusterMembersWire {
    cluster: u32,
    /// Members in all.
    count: u64,
    members: Vec<MemberWire>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ClusterMember)]
struct MemberWire {
    document: u32,
    url: Option<String>,
    title: Option<String>,
    centre: bool,
    /// `exact` or `near`.
    kind: &'static str,
    /// To the centre.
    resemblance: f64,
}

/// A cluster and its members.
#[utoipa::path(get, path = "/api/v1/clusters/{cluster}", tag = "atlas", params(("cluster" = u32, Path, description = "Its number"), PartAsked), responses((status = 200, description = "The cluster", body = ClusterMembersWire)))]
async fn cluster(
    State(state): State<AppState>,
    Path(cluster): Path<u32>,
    Query(asked): Query<PartAsked>,
) -> Result<Json<ClusterMembersWire>, ServeError> {
    let library = Arc::clone(state.library()?);
    let part = part(asked.offset, asked.limit)?;
    let work = move || {
        let members = library.copies().members(cluster);
        if members.is_empty() {
            return Err(clusters::no_cluster(&library, cluster));
        }
        let wire = part.of(members).iter().map(|member| {
            let page = library.index().page(member.doc)?.unwrap_or_default();
            Ok::<_, ServeError>(MemberWire {
                document: member.doc,
                url: page.url,
                title: page.title,
                centre: member.is_centre,
                kind: member.kind.as_str(),
                resemblance: member.resemblance,
            })
        });
        let wire = wire.collect::<Result<_, _>>()?;
        Ok(ClusterMembersWire { cluster, count: members.len() as u64, members: wire })
    };
    Ok(Json(state.work(work).await??))
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

#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CollectionSort {
    #[default]
    Pages,
    Replicas,
    Slots,
    Bytes,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Collections)]
struct CollectionsWire {
    /// Collections that fit, in all.
    count: u64,
    collections: Vec<CollectionWire>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = CollectionSummary)]
struct CollectionWire {
    collection: u32,
    name: String,
    kind: String,
    evidence: String,
    replicas: u64,
    /// Pages that two replicas or more have.
    slots: u64,
    sites: u64,
    pages: u64,
    bytes: u64,
    duplicate_pages: u64,
    duplicate_bytes: u64,
    noise: bool,
}

impl From<&CollectionGroupRow> for CollectionWire {
    fn from(row: &CollectionGroupRow) -> CollectionWire {
        CollectionWire {
            collection: row.group,
            name: row.name.clone(),
            kind: row.kind.clone(),
            evidence: row.evidence.clone(),
            replicas: row.replicas,
            slots: row.slots,
            sites: row.sites,
            pages: row.pages,
            bytes: row.bytes,
            duplicate_pages: row.duplicate_pages,
            duplicate_bytes: row.duplicate_bytes,
            noise: row.is_noise,
        }
    }
}

/// Collections of linked pages that stand in several places.
#[utoipa::path(get, path = "/api/v1/collections", tag = "atlas", params(CollectionsAsked), responses((status = 200, description = "Collections in order", body = CollectionsWire)))]
async fn collection_list(
    State(state): State<AppState>,
    Query(asked): Query<CollectionsAsked>,
) -> Result<Json<CollectionsWire>, ServeError> {
    let library = Arc::clone(state.library()?);
    let part = part(asked.offset, asked.limit)?;
    let sort = match asked.sort {
        CollectionSort::Pages => "pages",
        CollectionSort::Replicas => "replicas",
        CollectionSort::Slots => "slots",
        CollectionSort::Bytes => "bytes",
    };
    let work = move || {
        let (kind, name) = (asked.kind.unwrap_or_default(), asked.name.unwrap_or_default());
        let rows = collections::selected(&library, sort, &kind, &name, asked.noise);
        let shown = part.of(&rows).iter().map(|row| CollectionWire::from(*row)).collect();
        CollectionsWire { count: rows.len() as u64, collections: shown }
    };
    Ok(Json(state.work(work).await?))
}

#[derive(Serialize, ToSchema)]
#[schema(as = Collection)]
struct CollectionReplicasWire {
    #[serde(flatten)]
    summary: CollectionWire,
    /// Copies of it, the first hundred if nothing is said.
    copies: Vec<ReplicaWire>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Replica)]
struct ReplicaWire {
    replica: u32,
    root_document: u32,
    root_url: Option<String>,
    folder: String,
    kind: String,
    principal: bool,
    pages: u64,
    /// Of the pages of the principal, those that it has a copy of.
    coverage: f64,
    copies: u64,
    changed: u64,
    added: u64,
    missing: u64,
    virtual_pages: u64,
    bytes: u64,
    /// `principal`, `replica`, `same` or `unknown`: which of the two is the newer version.
    newer: String,
    /// Documents by slot, second addresses left out.
    documents: Vec<u32>,
}

fn replica_wire(library: &Library, row: &CollectionRow) -> ReplicaWire {
    let own = library.copies().pages(row.group).iter().filter(|page| page.replica == row.replica);
    let own = own.filter(|page| !matches!(page.role, Role::Alias | Role::Virtual));
    ReplicaWire {
        replica: row.replica,
        root_document: row.root_doc,
        root_url: row.root_url.clone(),
        folder: row.folder.clone(),
        kind: row.kind.clone(),
        principal: row.is_principal,
        pages: row.pages,
        coverage: row.coverage,
        copies: row.copies,
        changed: row.changed,
        added: row.added,
        missing: row.missing,
        virtual_pages: row.virtual_pages,
        bytes: row.bytes,
        newer: row.newer.clone(),
        documents: own.map(|page| page.doc).collect(),
    }
}

/// A collection and its replicas.
#[utoipa::path(get, path = "/api/v1/collections/{collection}", tag = "atlas", params(("collection" = u32, Path, description = "Its number"), PartAsked), responses((status = 200, description = "The collection", body = CollectionReplicasWire)))]
async fn collection(
    State(state): State<AppState>,
    Path(group): Path<u32>,
    Query(asked): Query<PartAsked>,
) -> Result<Json<CollectionReplicasWire>, ServeError> {
    let library = Arc::clone(state.library()?);
    let part = part(asked.offset, asked.limit)?;
    let work = move || {
        let summary = CollectionWire::from(group_of(&library, group)?);
        let rows = part.of(library.copies().replicas(group));
        let copies = rows.iter().map(|row| replica_wire(&library, row)).collect();
        Ok::<_, ServeError>(CollectionReplicasWire { summary, copies })
    };
    Ok(Json(state.work(work).await??))
}

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct PairAsked {
    /// A document: its number, or its address.
    a: String,
    /// The other.
    b: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Explanation)]
struct ExplanationWire {
    a: u32,
    b: u32,
    recipe: String,
    payload_equal: Option<bool>,
    text_equal: Option<bool>,
    same_site: Option<bool>,
    /// What they share, by chunking, the main one first.
    overlaps: Vec<SharedWire>,
    /// The resemblance that sketches estimate.
    sketch_resemblance: Option<f64>,
    features_equal: Option<usize>,
    features_needed: Option<usize>,
    /// What the table of pairs says.
    pair_resemblance: Option<f64>,
    /// Shared passages, longest first, at most a hundred; null when the texts cannot be read any more.
    passages: Option<Vec<PassageWire>>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Shared)]
struct SharedWire {
    chunking: String,
    size_a: u64,
    size_b: u64,
    shared: u64,
    resemblance: f64,
    containment_a: f64,
    containment_b: f64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Passage)]
struct PassageWire {
    words: usize,
    /// Where it begins in each text, in bytes.
    at_a: usize,
    at_b: usize,
    /// As it stands in the first, at most 500 characters.
    text: String,
    /// Whether it stands in another order among the passages of the second.
    moved: bool,
}

fn explanation_wire(explanation: &Explanation) -> ExplanationWire {
    let overlaps = explanation.overlaps.iter().map(|overlap| SharedWire {
        chunking: overlap.chunking.clone(),
        size_a: overlap.size_a,
        size_b: overlap.size_b,
        shared: overlap.shared,
        resemblance: overlap.resemblance(),
        containment_a: overlap.containment_a(),
        containment_b: overlap.containment_b(),
    });
    let passages = explanation.texts.as_ref().ok().map(|texts| {
        let text = &texts.comparison.text_a;
        let mut passages: Vec<_> = texts.comparison.passages.iter().collect();
        passages.sort_by_key(|passage| (std::cmp::Reverse(passage.words), passage.a.start));
        let wire = passages.into_iter().take(100).map(|passage| PassageWire {
            words: passage.words,
            at_a: passage.a.start,
            at_b: passage.b.start,
            text: text[passage.a.clone()].chars().take(500).collect(),
            moved: passage.moved,
        });
        wire.collect()
    });
    ExplanationWire {
        a: explanation.a.doc,
        b: explanation.b.doc,
        recipe: explanation.recipe.clone(),
        payload_equal: explanation.payload_equal,
        text_equal: explanation.text_equal,
        same_site: explanation.same_site,
        overlaps: overlaps.collect(),
        sketch_resemblance: explanation.sketch.map(|sketch| sketch.estimate.value),
        features_equal: explanation.features.map(|features| features.equal),
        features_needed: explanation.features.map(|features| features.filter.r()),
        pair_resemblance: explanation.pair.map(|pair| pair.resemblance),
        passages,
    }
}

/// Why two documents are alike, or not.
#[utoipa::path(get, path = "/api/v1/explain", tag = "atlas", params(PairAsked), responses((status = 200, description = "Everything that speaks for or against it", body = ExplanationWire)))]
async fn explain(
    State(state): State<AppState>,
    Query(asked): Query<PairAsked>,
) -> Result<Json<ExplanationWire>, ServeError> {
    let library = Arc::clone(state.library()?);
    let work = move || {
        let meant = |text: &str| {
            let none = || ServeError::not_found(format!("no document is called {text:?}"));
            compare::meant(&library, text)?.ok_or_else(none)
        };
        let (a, b) = (meant(&asked.a)?, meant(&asked.b)?);
        Ok::<_, ServeError>(explanation_wire(&library.explain(a, b)?))
    };
    Ok(Json(state.work(work).await??))
}

#[derive(Serialize, ToSchema)]
#[schema(as = Alternates)]
struct AlternatesWire {
    url: String,
    alternates: Vec<AlternateWire>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Alternate)]
struct AlternateWire {
    document: u32,
    url: String,
    /// `exact copy`, `near copy`, `same page of a mirror` or `same place of a mirror`.
    why: &'static str,
    /// To the centre of the cluster that both are in.
    resemblance: Option<f64>,
    collection: Option<u32>,
}

/// Pages that can stand in for one that is gone, the best first; at most a thousand.
#[utoipa::path(get, path = "/api/v1/alternates", tag = "atlas", params(Address), responses((status = 200, description = "Pages of the atlas", body = AlternatesWire)))]
async fn alternates(
    State(state): State<AppState>,
    Query(asked): Query<Address>,
) -> Result<Json<AlternatesWire>, ServeError> {
    let library = Arc::clone(state.library()?);
    let work = move || {
        let not_one = || ServeError::bad_request(format!("{:?} is no http or https address", asked.url));
        let found = library.alternates(&asked.url)?.ok_or_else(not_one)?;
        let wire = found.into_iter().take(1000).map(|alternate| AlternateWire {
            document: alternate.doc,
            url: alternate.url,
            why: alternate.why.as_str(),
            resemblance: alternate.resemblance,
            collection: alternate.group,
        });
        let alternates = wire.collect();
        Ok::<_, ServeError>(AlternatesWire { url: asked.url, alternates })
    };
    Ok(Json(state.work(work).await??))
}
