//! One document: what is known of it, its copies, its links, its text.

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::routing::get;
use onionskin::avoid::Why;
use onionskin::explain::{DocumentFacts, document_facts};
use onionskin_core::{ClusterId, CollectionId, DocId, ReplicaId};
use onionskin_search::Role;
use serde::Deserialize;

use crate::error::ServeError;
use crate::lanes::Lane;
use crate::layout::{Chrome, Page, Rendered, Section};
use crate::library::Library;
use crate::state::AppState;
use crate::view::{self, DocLine, href, percent};

/// Documents of a list on this page.
const MOST_LISTED: usize = 25;

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/documents/{doc}", get(document)).route("/alternates", get(alternates))
}

/// A document that is a copy of the one that is shown.
struct CopyLine {
    line: DocLine,
    what: &'static str,
    resemblance: String,
}

struct PlaceLine {
    group: CollectionId,
    name: String,
    replica: ReplicaId,
    role: &'static str,
}

#[derive(Template)]
#[template(path = "document.html")]
struct DocumentPage {
    chrome: Chrome,
    line: DocLine,
    facts: DocumentFacts,
    fetched: Option<String>,
    /// The cluster, how many are in it, and some of them.
    cluster: Option<(ClusterId, u64, Vec<CopyLine>)>,
    places: Vec<PlaceLine>,
    has_links: bool,
    out: (u64, Vec<DocLine>),
    back: (u64, Vec<DocLine>),
    text: Option<String>,
    is_cut: bool,
    alternates: Option<String>,
}

async fn document(State(state): State<AppState>, Path(doc): Path<DocId>) -> Rendered<DocumentPage> {
    let chrome = Chrome::new(&state, Section::Search, "");
    state.read(Lane::Search, move |library| show(library, chrome, doc)).await.map(Page)
}

fn show(library: &Library, chrome: Chrome, doc: DocId) -> Result<DocumentPage, ServeError> {
    let page = library.page(doc)?;
    let (index, copies) = (library.index(), library.copies());
    let facts = document_facts(library.atlas(), doc, 1)?;
    let cluster = match copies.cluster_of(doc) {
        None => None,
        Some(cluster) => {
            let members = copies.members(cluster);
            let others = members.iter().filter(|member| member.doc != doc).take(MOST_LISTED);
            let lines = others.map(|member| {
                Ok::<_, ServeError>(CopyLine {
                    line: DocLine::of(index, member.doc)?,
                    what: if member.is_centre { "centre" } else { member.kind.as_str() },
                    resemblance: percent(member.resemblance),
                })
            });
            Some((cluster, members.len() as u64, lines.collect::<Result<_, _>>()?))
        }
    };
    let places = copies.places(doc).filter_map(|place| {
        let group = copies.group(place.group)?;
        let role = if place.role == Role::Virtual { "linked from" } else { place.role.as_str() };
        Some(PlaceLine { group: place.group, name: group.name.clone(), replica: place.replica, role })
    });
    let listed = |docs: &[DocId]| {
        let lines = DocLine::all(index, docs.iter().copied().take(MOST_LISTED))?;
        Ok::<_, ServeError>((docs.len() as u64, lines))
    };
    let links = library.links();
    Ok(DocumentPage {
        chrome: Chrome { title: view::shortened(&page.name(), 80), ..chrome },
        line: DocLine::new(&page),
        fetched: facts.fetched_at.map(view::day),
        cluster,
        places: places.collect(),
        has_links: links.is_some(),
        out: listed(links.map_or(&[], |links| links.out(doc)))?,
        back: listed(links.map_or(&[], |links| links.back(doc)))?,
        is_cut: page.text.as_ref().is_some_and(|text| text.len() + 4 >= onionskin_search::STORED_TEXT),
        alternates: page.url.as_ref().map(|url| href("/alternates", &[("url", url)])),
        text: page.text,
        facts,
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Dead {
    url: String,
}

/// A page that can stand in.
struct StandIn {
    line: DocLine,
    why: &'static str,
    resemblance: Option<String>,
    group: Option<CollectionId>,
}

#[derive(Template)]
#[template(path = "alternates.html")]
struct AlternatesPage {
    chrome: Chrome,
    url: String,
    problem: Option<String>,
    found: Option<Vec<StandIn>>,
}

/// Pages that can stand in for one that is gone.
async fn alternates(State(state): State<AppState>, Query(dead): Query<Dead>) -> Rendered<AlternatesPage> {
    let chrome = Chrome::new(&state, Section::Search, "Stand-ins");
    let work = move |library: &Library| {
        let url = dead.url.trim().to_owned();
        if url.is_empty() {
            return Ok::<_, ServeError>(AlternatesPage { chrome, url, problem: None, found: None });
        }
        let Some(alternates) = library.alternates(&url)? else {
            let problem = Some("this is no http or https address".to_owned());
            return Ok(AlternatesPage { chrome, url, problem, found: None });
        };
        let found = alternates.into_iter().take(4 * MOST_LISTED).map(|alternate| {
            Ok::<_, ServeError>(StandIn {
                line: DocLine::of(library.index(), alternate.doc)?,
                why: Why::as_str(alternate.why),
                resemblance: alternate.resemblance.map(percent),
                group: alternate.group,
            })
        });
        let found = found.collect::<Result<_, _>>()?;
        Ok(AlternatesPage { chrome, url, problem: None, found: Some(found) })
    };
    state.read(Lane::Lists, work).await.map(Page)
}
