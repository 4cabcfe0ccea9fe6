//! Which rows are asked for, and in what order: for pages and for programs.

use std::cmp::Reverse;

use onionskin_core::{ClusterId, CollectionId, DocId, spelled};
use onionskin_search::StoredPage;
use onionskin_store::table::{ClusterStatsRow, CollectionGroupRow};
use serde::Deserialize;
use utoipa::ToSchema;

use super::Library;
use crate::error::ServeError;
use crate::layout::grouped;

/// Orders of clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClusterSort {
    /// Most documents first.
    #[default]
    Size,
    /// Most sites first.
    Sites,
    /// Most exact duplicates first.
    Exact,
    /// Lowest resemblance to the centre first.
    Unlike,
}

spelled!(ClusterSort, as_str: Size => "size", Sites => "sites", Exact => "exact", Unlike => "unlike");

impl ClusterSort {
    fn key(self, row: &ClusterStatsRow) -> (Reverse<u64>, ClusterId) {
        let first = match self {
            ClusterSort::Size => row.documents,
            ClusterSort::Sites => row.sites,
            ClusterSort::Exact => row.exact_copies,
            // Resemblances are shares; the least alike come first.
            ClusterSort::Unlike => ((1.0 - row.lowest_resemblance) * 1e9) as u64,
        };
        (Reverse(first), row.cluster)
    }
}

/// Which clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ClusterFilter {
    /// Every one.
    #[default]
    All,
    /// On several sites.
    Cross,
    /// On one site.
    Same,
    /// With near duplicates.
    Near,
}

spelled!(ClusterFilter, as_str: All => "", Cross => "cross", Same => "same", Near => "near");

impl ClusterFilter {
    fn holds(self, row: &ClusterStatsRow) -> bool {
        match self {
            ClusterFilter::All => true,
            ClusterFilter::Cross => row.sites > 1,
            ClusterFilter::Same => row.sites == 1,
            ClusterFilter::Near => row.exact_copies + 1 < row.documents,
        }
    }
}

/// Orders of collections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CollectionSort {
    /// Most duplicate pages first.
    #[default]
    Pages,
    /// Most replicas first.
    Replicas,
    /// Most slots first.
    Slots,
    /// Most duplicate bytes first.
    Bytes,
}

spelled!(CollectionSort, as_str: Pages => "pages", Replicas => "replicas", Slots => "slots", Bytes => "bytes");

impl CollectionSort {
    fn key(self, row: &CollectionGroupRow) -> (Reverse<u64>, CollectionId) {
        let first = match self {
            CollectionSort::Pages => row.duplicate_pages,
            CollectionSort::Replicas => row.replicas,
            CollectionSort::Slots => row.slots,
            CollectionSort::Bytes => row.duplicate_bytes,
        };
        (Reverse(first), row.group)
    }
}

/// What collections are asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CollectionFilter<'a> {
    /// The kind; all when empty.
    pub kind: &'a str,
    /// A part of the name, in any case; all when empty.
    pub name: &'a str,
    /// Collections of fewer than ten pages too.
    pub noise: bool,
}

impl Library {
    /// The clusters that are asked for, in order.
    pub(crate) fn clusters(&self, sort: ClusterSort, only: ClusterFilter) -> Vec<&ClusterStatsRow> {
        let mut rows: Vec<&ClusterStatsRow> =
            self.copies.all_stats().iter().filter(|row| only.holds(row)).collect();
        rows.sort_by_cached_key(|row| sort.key(row));
        rows
    }

    /// The collections that are asked for, in order.
    pub(crate) fn collections(
        &self,
        sort: CollectionSort,
        only: CollectionFilter<'_>,
    ) -> Vec<&CollectionGroupRow> {
        let name = only.name.trim().to_lowercase();
        let groups = self.copies.groups().iter().filter(|row| only.noise || !row.is_noise);
        let groups = groups.filter(|row| only.kind.is_empty() || row.kind.as_str() == only.kind);
        let mut groups: Vec<&CollectionGroupRow> =
            groups.filter(|row| name.is_empty() || row.name.to_lowercase().contains(&name)).collect();
        groups.sort_by_cached_key(|row| sort.key(row));
        groups
    }

    /// A collection by its number.
    pub(crate) fn collection(&self, group: CollectionId) -> Result<&CollectionGroupRow, ServeError> {
        let none = || {
            let n = self.copies.groups().len() as u64;
            ServeError::not_found(format!("there is no collection {group}; there are {}", grouped(n)))
        };
        self.copies.group(group).ok_or_else(none)
    }

    /// What is said of a cluster that is not there.
    pub(crate) fn no_cluster(&self, cluster: ClusterId) -> ServeError {
        let clusters = u64::from(self.copies.clusters());
        ServeError::not_found(format!("there is no cluster {cluster}; there are {}", grouped(clusters)))
    }

    /// A document by its number, as the index has it.
    pub(crate) fn page(&self, doc: DocId) -> Result<StoredPage, ServeError> {
        let none = || {
            let documents = u64::from(self.index.documents());
            ServeError::not_found(format!("there is no document {doc}; there are {}", grouped(documents)))
        };
        self.index.page(doc)?.ok_or_else(none)
    }

    /// The document that is meant: a number or a URL.
    pub(crate) fn meant(&self, text: &str) -> Result<Option<DocId>, ServeError> {
        let text = text.trim();
        match text.strip_prefix("doc:").unwrap_or(text).parse::<DocId>() {
            Ok(doc) => Ok((doc.get() < self.index.documents()).then_some(doc)),
            Err(_) => Ok(self.index.documents_at(text)?.first().copied()),
        }
    }
}
