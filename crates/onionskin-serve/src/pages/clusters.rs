//! Clusters of similar documents.

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::routing::get;
use onionskin_core::ClusterId;
use onionskin_store::TableName;
use onionskin_store::table::ClusterStatsRow;
use serde::Deserialize;

use crate::error::ServeError;
use crate::lanes::Lane;
use crate::layout::{Chrome, Page, Rendered, Section};
use crate::library::{ClusterFilter, ClusterSort, Library};
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

/// Labels of orders.
fn sort_label(sort: ClusterSort) -> &'static str {
    match sort {
        ClusterSort::Size => "most documents",
        ClusterSort::Sites => "most sites",
        ClusterSort::Exact => "most exact copies",
        ClusterSort::Unlike => "least alike",
    }
}

/// Labels of choices.
fn filter_label(only: ClusterFilter) -> &'static str {
    match only {
        ClusterFilter::All => "all",
        ClusterFilter::Cross => "on several sites",
        ClusterFilter::Same => "on one site",
        ClusterFilter::Near => "with near copies",
    }
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

async fn clusters(State(state): State<AppState>, Query(asked): Query<Asked>) -> Rendered<ClustersPage> {
    let chrome = Chrome::new(&state, Section::Clusters, "Clusters");
    let work = move |library: &Library| {
        // What is not known is as if nothing were said.
        let sort = ClusterSort::find(&asked.sort).unwrap_or_default();
        let only = ClusterFilter::find(&asked.only).unwrap_or_default();
        let rows = library.clusters(sort, only);
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
            sorts: ClusterSort::ALL
                .map(|sort| (sort.as_str(), sort_label(sort), sort.as_str() == asked.sort))
                .to_vec(),
            filters: ClusterFilter::ALL
                .map(|only| (only.as_str(), filter_label(only), only.as_str() == asked.only))
                .to_vec(),
            rows: rows.collect::<Result<_, _>>()?,
            pager,
            has_clusters: library.atlas().has(&TableName::Clusters),
        })
    };
    state.read(Lane::Lists, work).await.map(Page)
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
    cluster: ClusterId,
    centre: DocLine,
    stats: Option<ClusterStatsRow>,
    lowest: String,
    members: Vec<MemberLine>,
    pager: Pager,
}

async fn cluster(
    State(state): State<AppState>,
    Path(cluster): Path<ClusterId>,
    Query(asked): Query<Asked>,
) -> Rendered<ClusterPage> {
    let chrome = Chrome::new(&state, Section::Clusters, format!("Cluster {cluster}"));
    let work = move |library: &Library| {
        let members = library.copies().members(cluster);
        let centre = members.iter().find(|member| member.is_centre).or(members.first());
        let centre = centre.ok_or_else(|| library.no_cluster(cluster))?.doc;
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
    state.read(Lane::Lists, work).await.map(Page)
}
