//! Searching, as JSON.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, State};
use onionskin_core::{ClusterId, CollectionId, DocId};
use onionskin_search::{Fold, Query as SearchQuery, SearchParams};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Answer;
use crate::error::ServeError;
use crate::lanes::Lane;
use crate::state::AppState;

pub(crate) fn router() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(search))
}

/// Results at most that are reached.
const DEEPEST: u32 = 1000;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Words, "phrases" in quotes, -without, site:example.org.
    #[param(max_length = 1000, example = "xml databases")]
    q: String,
    /// What is taken for one result.
    #[param(inline)]
    #[serde(default)]
    fold: FoldWire,
    /// Whether copies raise the rank; true if not given.
    replication: Option<bool>,
    /// Whether results that stand in those above them sink; true if not given.
    reorder: Option<bool>,
    /// Only pages of this collection, unfolded.
    #[param(value_type = Option<u32>)]
    group: Option<CollectionId>,
    /// Results to leave out at the beginning.
    #[param(maximum = 1000)]
    #[serde(default)]
    offset: u32,
    /// Results wanted; 10 if not given.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<u32>,
}

/// What is taken for one result: pages of a collection and its replicas, of a cluster, with one
/// text, or each page.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Fold)]
enum FoldWire {
    #[default]
    Collection,
    Near,
    Exact,
    Off,
}

impl From<FoldWire> for Fold {
    fn from(fold: FoldWire) -> Fold {
        match fold {
            FoldWire::Collection => Fold::Collection,
            FoldWire::Near => Fold::Near,
            FoldWire::Exact => Fold::Exact,
            FoldWire::Off => Fold::Off,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = SearchResults)]
struct ResultsWire {
    /// Pages that match, copies included.
    matches: u64,
    /// Whether they were counted, or reckoned from a part.
    matches_exact: bool,
    /// No page has all the words; these have some.
    relaxed: bool,
    /// Whether there are results after these.
    more: bool,
    results: Vec<HitWire>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SearchResult)]
struct HitWire {
    /// The page that represents its duplicates.
    #[schema(value_type = u32)]
    doc: DocId,
    url: Option<String>,
    id: Option<String>,
    title: Option<String>,
    /// The score that it is ranked by, before overlap is taken off.
    score: f32,
    /// Copies of it, itself included: replicas of its collection, or documents of its cluster.
    replication: u64,
    #[schema(value_type = Option<u32>)]
    cluster: Option<ClusterId>,
    /// The collection that it is in.
    #[schema(value_type = Option<u32>)]
    group: Option<CollectionId>,
    /// The result above that most of it stands in.
    overlap: Option<OverlapWire>,
    snippet: Vec<FragmentWire>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SearchOverlap)]
struct OverlapWire {
    #[schema(value_type = u32)]
    doc: DocId,
    /// The share of this page that stands there, as sketches estimate it.
    share: f32,
}

#[derive(Serialize, ToSchema)]
#[schema(as = SnippetPart)]
struct FragmentWire {
    text: String,
    /// Whether it is a word that was looked for.
    #[serde(rename = "match")]
    is_match: bool,
}

/// Pages with some words, copies folded: one result a collection, cluster or text.
#[utoipa::path(get, path = "/api/v1/search", tag = "atlas", params(Asked), responses((status = 200, description = "What was found", body = ResultsWire)))]
async fn search(State(state): State<AppState>, Query(asked): Query<Asked>) -> Answer<ResultsWire> {
    let library = Arc::clone(state.library()?);
    let query: SearchQuery = asked
        .q
        .parse()
        .map_err(|problem: onionskin_search::QueryProblem| ServeError::bad_request(problem.to_string()))?;
    let limit = asked.limit.unwrap_or(10);
    if !(1..=100).contains(&limit) || asked.offset > DEEPEST {
        return Err(ServeError::bad_request(format!("limit is 1 to 100, offset at most {DEEPEST}")));
    }
    if let Some(group) = asked.group {
        library.collection(group)?;
    }
    let params = SearchParams {
        fold: if asked.group.is_some() { Fold::Off } else { asked.fold.into() },
        replication: asked.replication.unwrap_or(true),
        reorder: asked.reorder.unwrap_or(true),
        within: asked.group,
        offset: asked.offset as usize,
        limit: limit as usize,
    };
    let results = state.work(Lane::Search, move || library.search(&query, &params)).await??;
    let hits = results.hits.iter().map(|hit| HitWire {
        doc: hit.page.doc,
        url: hit.page.url.clone(),
        id: hit.page.id.clone(),
        title: hit.page.title.clone(),
        score: hit.score,
        replication: hit.replication,
        cluster: hit.cluster,
        group: hit.group,
        overlap: hit.overlap.map(|sunk| OverlapWire { doc: sunk.doc, share: sunk.share }),
        snippet: hit
            .snippet
            .iter()
            .map(|part| FragmentWire { text: part.text.clone(), is_match: part.is_match })
            .collect(),
    });
    Ok(Json(ResultsWire {
        matches: results.matches.pages,
        matches_exact: results.matches.is_exact,
        relaxed: results.is_relaxed,
        more: results.more,
        results: hits.collect(),
    }))
}
