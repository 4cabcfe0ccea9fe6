//! Search, with replicas rolled up (Cho, Shivakumar and Garcia-Molina 2000, figures 13 and 14).

use std::sync::Arc;
use std::time::Instant;

use askama::Template;
use axum::Router;
use axum::extract::{Query as UrlQuery, State};
use axum::routing::get;
use onionskin_core::{ClusterId, CollectionId};
use onionskin_search::{Fold, Fragment, Query, Results, SearchParams};
use serde::Deserialize;

use crate::error::ServeError;
use crate::lanes::Lane;
use crate::layout::{Chrome, Page, Rendered, Section, grouped};
use crate::library::Library;
use crate::state::AppState;
use crate::view::{DocLine, href, percent};

/// Results on a page.
const SIZE: usize = 10;
/// Nobody looks further, and every page costs more than the one before.
const MOST_PAGES: usize = 50;

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/search", get(search))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    q: String,
    fold: String,
    /// Copies do not count for the rank.
    plain: String,
    /// Results that overlap stay in place.
    stay: String,
    collection: String,
    page: String,
}

impl Asked {
    fn link(&self, change: &[(&str, &str)]) -> String {
        let mut query = vec![
            ("q", self.q.as_str()),
            ("fold", &self.fold),
            ("plain", &self.plain),
            ("stay", &self.stay),
            ("collection", &self.collection),
        ];
        for (name, value) in change {
            query.retain(|(known, _)| known != name);
            query.push((name, value));
        }
        href("/search", &query)
    }
}

/// A result, as it is shown.
struct ShownHit {
    id: String,
    line: DocLine,
    snippet: Vec<Fragment>,
    /// What is folded under it.
    replicas: Option<u64>,
    copies: Option<(ClusterId, u64)>,
    collection: Option<(CollectionId, String, String)>,
    overlap: Option<(String, DocLine)>,
}

/// How copies can be folded.
struct FoldChoice {
    name: &'static str,
    label: &'static str,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "search.html")]
struct SearchPage {
    chrome: Chrome,
    asked: Asked,
    folds: Vec<FoldChoice>,
    problem: Option<String>,
    /// The collection that is searched, its name and the way out of it.
    within: Option<(CollectionId, String, String)>,
    found: Option<Found>,
    documents: String,
    without_text: u64,
}

struct Found {
    count: String,
    milliseconds: String,
    is_relaxed: bool,
    hits: Vec<ShownHit>,
    first: usize,
    before: Option<String>,
    after: Option<String>,
}

fn label(fold: Fold) -> &'static str {
    match fold {
        Fold::Collection => "collections",
        Fold::Near => "near copies",
        Fold::Exact => "exact copies",
        Fold::Off => "nothing",
    }
}

async fn search(State(state): State<AppState>, UrlQuery(asked): UrlQuery<Asked>) -> Rendered<SearchPage> {
    let library = Arc::clone(state.library()?);
    let title =
        if asked.q.trim().is_empty() { "Search".to_owned() } else { format!("{} – search", asked.q) };
    // The page has a search box of its own.
    let chrome = Chrome { search: false, ..Chrome::new(&state, Section::Search, title) };
    let page = state.work(Lane::Search, move || answer(&library, chrome, asked)).await??;
    Ok(Page(page))
}

fn answer(library: &Library, chrome: Chrome, asked: Asked) -> Result<SearchPage, ServeError> {
    let fold = Fold::ALL.into_iter().find(|fold| fold.as_str() == asked.fold).unwrap_or_default();
    let group = asked.collection.parse::<CollectionId>().ok().and_then(|group| library.copies().group(group));
    let within = group.map(|group| (group.group, group.name.clone(), asked.link(&[("collection", "")])));
    let number = asked.page.parse().unwrap_or(1).clamp(1, MOST_PAGES);
    let params = SearchParams {
        fold: if within.is_some() { Fold::Off } else { fold },
        replication: asked.plain.is_empty(),
        reorder: asked.stay.is_empty(),
        within: within.as_ref().map(|(group, ..)| *group),
        offset: (number - 1) * SIZE,
        limit: SIZE,
    };
    let mut problem = None;
    let mut found = None;
    if !asked.q.trim().is_empty() {
        match asked.q.parse::<Query>() {
            Err(error) => problem = Some(error.to_string()),
            Ok(query) => {
                let start = Instant::now();
                let results = library.search(&query, &params)?;
                found = Some(shown(library, &asked, &results, &params, number, start)?);
            }
        }
    }
    let folds = Fold::ALL.into_iter().map(|choice| FoldChoice {
        name: choice.as_str(),
        label: label(choice),
        is_chosen: choice == fold,
    });
    Ok(SearchPage {
        chrome,
        folds: folds.collect(),
        problem,
        within,
        found,
        documents: grouped(u64::from(library.index().documents())),
        without_text: library.index().without_text(),
        asked,
    })
}

fn shown(
    library: &Library,
    asked: &Asked,
    results: &Results,
    params: &SearchParams,
    number: usize,
    start: Instant,
) -> Result<Found, ServeError> {
    let copies = library.copies();
    let mut hits = Vec::new();
    for hit in &results.hits {
        let group = hit.group.and_then(|group| copies.group(group));
        let cluster = hit.cluster.map(|cluster| (cluster, copies.members(cluster).len() as u64));
        let is_rolled = params.fold == Fold::Collection;
        hits.push(ShownHit {
            id: format!("d{}", hit.page.doc),
            line: DocLine::new(&hit.page),
            snippet: hit.snippet.clone(),
            replicas: group.filter(|_| is_rolled).map(|group| group.replicas),
            copies: cluster.filter(|_| params.within.is_none()),
            collection: group.filter(|_| params.within.is_none()).map(|group| {
                let inside = asked.link(&[("collection", &group.group.to_string())]);
                (group.group, group.name.clone(), inside)
            }),
            overlap: match hit.overlap {
                Some(sunk) => Some((percent(f64::from(sunk.share)), DocLine::of(library.index(), sunk.doc)?)),
                None => None,
            },
        });
    }
    let page = |number: usize| asked.link(&[("page", &number.to_string())]);
    let about = if results.matches.is_exact { "" } else { "about " };
    let noun = if results.matches.pages == 1 { "page" } else { "pages" };
    Ok(Found {
        count: format!("{about}{} {noun}", grouped(results.matches.pages)),
        milliseconds: format!("{:.1}", start.elapsed().as_secs_f64() * 1e3),
        is_relaxed: results.is_relaxed,
        hits,
        first: params.offset + 1,
        before: (number > 1).then(|| page(number - 1)),
        after: (results.more && number < MOST_PAGES).then(|| page(number + 1)),
    })
}
