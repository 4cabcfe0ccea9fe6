//! Clusters of similar documents.

use onionskin_store::TableName;
use std::cmp::Reverse;
use std::sync::Arc;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::routing::get;
use onionskin_store::table::ClusterStatsRow;
use serde::Deserialize;

use crate::error::ServeError;
use crate::layout::{Chrome, Page, Section, grouped};
use crate::library::Library;
use crate::state::AppState;
use crate::view::{DocLine, Pager, href, percent};

/// Rows on a page.
const SIZE: usize = 50;

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/clusters", get(clusters)).route("/clusters/{cluster}", get(cluster))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    sort: String,
    only: String,
    page: String,
}

/// Orders of clusters: name, label and key, ascending.
type Key = fn(&ClusterStatsRow) -> (Reverse<u64>, u32);
const SORTS: [(&str, &str, Key); 4] = [
    ("size", "most documents", |row| (Reverse(row.documents), row.cluster)),
    ("sites", "most sites", |row| (Reverse(row.sites), row.cluster)),
    ("exact", "most exact copies", |row| (Reverse(row.exact_copies), row.cluster)),
    // Resemblances are shares; the least alike come first.
    ("unlike", "least alike", |row| (Reverse(((1.0 - row.lowest_resemblance) * 1e9) as u64), row.cluster)),
];
/// Which clusters.
type Test = fn(&ClusterStatsRow) -> bool;
const FILTERS: [(&str, &str, Test); 4] = [
    ("", "all", |_| true),
    ("cross", "on several sites", |row| row.sites > 1),
    ("same", "on one site", |row| row.sites == 1),
    ("near", "with near copies", |row| row.exact_copies + 1 < row.documents),
];

/// The clusters that are asked for, in order.
pub(crate) fn selected<'a>(library: &'a Library, sort: &str, only: &str) -> Vec<&'a ClusterStatsRow> {
    let key = SORTS.iter().find(|(name, ..)| *name == sort).unwrap_or(&SORTS[0]).2;
    let test = FILTERS.iter().find(|(name, ..)| *name == only).unwrap_or(&FILTERS[0]).2;
    let mut rows: Vec<&ClusterStatsRow> =
        library.copies().all_stats().iter().filter(|row| test(row)).collect();
    rows.sort_by_cached_key(|row| key(row));
    rows
}

/// What can be chosen: name, label, whether it is.
pub(crate) type Choices = Vec<(&'static str, &'static str, bool)>;

struct ClusterLine {
    row: ClusterStatsRow,
    lowest: String,
    centre: DocLine,
}

#[derive(Template)]
#[template(path = "clusters.html")]
struct ClustersPage {
    chrome: Chrome,
    sorts: Choices,
    filters: Choices,
    rows: Vec<ClusterLine>,
    pager: Pager,
    has_clusters: bool,
}

async fn clusters(
    State(state): State<AppState>,
    Query(asked): Query<Asked>,
) -> Result<Page<ClustersPage>, ServeError> {
    let library = Arc::clone(state.library()?);
    let chrome = Chrome::new(&state, Section::Clusters, "Clusters");
    let work = move || {
        let rows = selected(&library, &asked.sort, &asked.only);
        let link = |page: usize| {
            href("/clusters", &[("sort", &asked.sort), ("only", &asked.only), ("page", &page.to_string())])
        };
        let (pager, range) = Pager::new(rows.len(), asked.page.parse().unwrap_or(1), SIZE, link);
        let rows = rows[range].iter().map(|row| {
            let centre = DocLine::of(library.index(), row.centre)?;
            Ok::<_, ServeError>(ClusterLine { row: **row, lowest: percent(row.lowest_resemblance), centre })
        });
        Ok::<_, ServeError>(ClustersPage {
            chrome,
            sorts: SORTS.map(|(name, label, _)| (name, label, name == asked.sort)).to_vec(),
            filters: FILTERS.map(|(name, label, _)| (name, label, name == asked.only)).to_vec(),
            rows: rows.collect::<Result<_, _>>()?,
            pager,
            has_clusters: library.atlas().has(&TableName::Clusters),
        })
    };
    Ok(Page(state.work(work).await??))
}

struct MemberLine {
    line: DocLine,
    what: &'static str,
    resemblance: String,
    is_centre: bool,
}

#[derive(Template)]
#[template(path = "cluster.html")]
struct ClusterPage {
    chrome: Chrome,
    cluster: u32,
    centre: DocLine,
    stats: Option<ClusterStatsRow>,
    lowest: String,
    members: Vec<MemberLine>,
    pager: Pager,
}

pub(crate) fn no_cluster(library: &Library, cluster: u32) -> ServeError {
    let clusters = u64::from(library.copies().clusters());
    ServeError::not_found(format!("there is no cluster {cluster}; there are {}", grouped(clusters)))
}

async fn cluster(
    State(state): State<AppState>,
    Path(cluster): Path<u32>,
    Query(asked): Query<Asked>,
) -> Result<Page<ClusterPage>, ServeError> {
    let library = Arc::clone(state.library()?);
    let chrome = Chrome::new(&state, Section::Clusters, format!("Cluster {cluster}"));
    let work = move || {
        let members = library.copies().members(cluster);
        let centre = members.iter().find(|member| member.is_centre).or(members.first());
        let centre = centre.ok_or_else(|| no_cluster(&library, cluster))?.doc;
        let link = |page: usize| href(&format!("/clusters/{cluster}"), &[("page", &page.to_string())]);
        let (pager, range) = Pager::new(members.len(), asked.page.parse().unwrap_or(1), SIZE, link);
        let lines = members[range].iter().map(|member| {
            Ok::<_, ServeError>(MemberLine {
                line: DocLine::of(library.index(), member.doc)?,
                what: if member.is_centre { "centre" } else { member.kind.as_str() },
                resemblance: percent(member.resemblance),
                is_centre: member.is_centre,
            })
        });
        let stats = library.copies().stats(cluster).copied();
        Ok::<_, ServeError>(ClusterPage {
            chrome,
            cluster,
            centre: DocLine::of(library.index(), centre)?,
            lowest: stats.map(|stats| percent(stats.lowest_resemblance)).unwrap_or_default(),
            stats,
            members: lines.collect::<Result<_, _>>()?,
            pager,
        })
    };
    Ok(Page(state.work(work).await??))
}
