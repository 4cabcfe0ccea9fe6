//! What is a copy of what, by document: the clusters and collections of an atlas, ready to be
//! asked.
//!
//! The tables are sorted by cluster and by collection, and a search asks by document, thousands of
//! times a query. So they are read once into arrays: twelve bytes per document, sixteen per member
//! of a cluster, twenty per page of a collection, and what describes clusters and collections. They
//! are held in memory, and it is an error when they take more than the budget allows.

use std::ops::Range;

use onionskin_core::{ClusterId, CollectionId, DocId, Packed, ReplicaId, SlotId};
use onionskin_store::schema::LevelName;
pub use onionskin_store::table::Role;
use onionskin_store::table::{ClusterStatsRow, CollectionGroupRow, CollectionRow, CopyKind};
use onionskin_store::{Atlas, MemoryBudget, TableName};

use crate::SearchError;

/// A member of a cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Member {
    /// The document.
    pub doc: DocId,
    /// Whether it is the centre.
    pub is_centre: bool,
    /// How it is a copy of the centre.
    pub kind: CopyKind,
    /// Its resemblance to the centre.
    pub resemblance: f64,
}

/// A page of a copy of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The collection.
    pub group: CollectionId,
    /// The copy.
    pub replica: ReplicaId,
    /// Which page of the collection it is.
    pub slot: SlotId,
    /// The document.
    pub doc: DocId,
    /// What it is there.
    pub role: Role,
}

/// Clusters and collections by document.
#[derive(Debug, Default)]
pub struct Copies {
    documents: u32,
    /// The first document with the same text.
    original: Vec<DocId>,
    cluster_of: Vec<Packed<ClusterId>>,
    group_of: Vec<Packed<CollectionId>>,
    /// Where the members of a cluster begin; one more at the end.
    cluster_starts: Vec<u32>,
    members: Vec<Member>,
    stats: Vec<ClusterStatsRow>,
    groups: Vec<CollectionGroupRow>,
    /// Ascending by collection and copy.
    replicas: Vec<CollectionRow>,
    /// Ascending by collection, copy and slot.
    pages: Vec<Place>,
    /// Numbers of `pages`, ascending by document.
    pages_by_doc: Vec<u32>,
}

impl Copies {
    /// Bytes that the tables of an atlas will take, by the number of their rows.
    pub fn bytes(atlas: &Atlas) -> u64 {
        let size = |table: TableName, each: usize| atlas.rows(&table).saturating_mul(each as u64);
        let sizes = [
            size(TableName::Documents, 12),
            size(TableName::Clusters, size_of::<Member>()),
            size(TableName::ClusterStats, size_of::<ClusterStatsRow>() + 4),
            size(TableName::CollectionPages, size_of::<Place>() + 4),
            size(TableName::Collections, 400),
            size(TableName::CollectionGroups, 400),
        ];
        sizes.into_iter().fold(0, u64::saturating_add)
    }

    /// Reads the tables that the atlas has. A part of the budget that is too small for them is an
    /// error.
    pub fn read(atlas: &Atlas, budget: MemoryBudget) -> Result<Copies, SearchError> {
        let documents = atlas.rows(&TableName::Documents);
        let needed = Copies::bytes(atlas);
        if needed > budget.bytes() {
            let (what, budget) = ("what is known of clusters and collections", budget.bytes());
            return Err(SearchError::Memory { what, needed, budget });
        }
        let documents = u32::try_from(documents).map_err(|_| SearchError::TooManyDocuments { documents })?;
        let mut copies = Copies {
            documents,
            original: DocId::range(0..documents).collect(),
            cluster_of: vec![Packed::NONE; documents as usize],
            group_of: vec![Packed::NONE; documents as usize],
            cluster_starts: vec![0],
            ..Copies::default()
        };
        copies.read_originals(atlas)?;
        copies.read_clusters(atlas)?;
        copies.read_collections(atlas)?;
        Ok(copies)
    }

    fn check(&self, table: &'static str, doc: DocId) -> Result<usize, SearchError> {
        if doc.get() < self.documents {
            Ok(doc.index())
        } else {
            Err(SearchError::NoSuchDocument { table, doc })
        }
    }

    fn read_originals(&mut self, atlas: &Atlas) -> Result<(), SearchError> {
        let exact: LevelName = onionskin_similar::levels::exact_level();
        if !atlas.levels().contains(&exact) {
            return Ok(());
        }
        for row in atlas.copies(&exact)? {
            let (doc, original) = row?;
            let at = self.check("copies.exact", doc)?;
            self.original[at] = original;
        }
        Ok(())
    }

    fn read_clusters(&mut self, atlas: &Atlas) -> Result<(), SearchError> {
        if !atlas.has(&TableName::Clusters) {
            return Ok(());
        }
        for row in atlas.clusters()? {
            let row = row?;
            let at = self.check("clusters", row.doc)?;
            // Dense and ascending: a new cluster begins where the last has ended.
            if row.cluster.index() + 2 < self.cluster_starts.len() {
                return Err(SearchError::OutOfOrder { table: "clusters" });
            }
            while self.cluster_starts.len() <= row.cluster.index() + 1 {
                self.cluster_starts.push(self.members.len() as u32);
            }
            self.members.push(Member {
                doc: row.doc,
                is_centre: row.is_centre,
                kind: row.kind,
                resemblance: row.resemblance_to_centre,
            });
            if let Some(end) = self.cluster_starts.last_mut() {
                *end = self.members.len() as u32;
            }
            self.cluster_of[at] = row.cluster.into();
        }
        if atlas.has(&TableName::ClusterStats) {
            for row in atlas.cluster_stats()? {
                let row = row?;
                if row.cluster.index() != self.stats.len() {
                    return Err(SearchError::OutOfOrder { table: "cluster_stats" });
                }
                self.stats.push(row);
            }
        }
        Ok(())
    }

    fn read_collections(&mut self, atlas: &Atlas) -> Result<(), SearchError> {
        if !atlas.has(&TableName::CollectionGroups) {
            return Ok(());
        }
        for row in atlas.collection_groups()? {
            let row = row?;
            if row.group.index() != self.groups.len() {
                return Err(SearchError::OutOfOrder { table: "collection_groups" });
            }
            self.groups.push(row);
        }
        for row in atlas.collections()? {
            self.replicas.push(row?);
        }
        for row in atlas.collection_pages()? {
            let row = row?;
            let at = self.check("collection_pages", row.doc)?;
            let (group, replica, slot, role) = (row.group, row.replica, row.slot, row.role);
            self.pages.push(Place { group, replica, slot, doc: row.doc, role });
            if role != Role::Virtual && group.index() < self.groups.len() {
                // None comes after all.
                self.group_of[at] = self.group_of[at].min(group.into());
            }
        }
        self.replicas.sort_by_key(|row| (row.group, row.replica));
        // In a slot, pages of the replica itself come first.
        let own_first = |page: &Place| (page.role == Role::Virtual, page.role);
        self.pages.sort_by_key(|page| (page.group, page.replica, page.slot, own_first(page), page.doc));
        self.pages_by_doc = (0..self.pages.len() as u32).collect();
        let pages = &self.pages;
        self.pages_by_doc.sort_by_key(|at| (pages[*at as usize].doc, *at));
        Ok(())
    }

    /// Documents of the atlas.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// The first document that has the text of this one.
    pub fn original(&self, doc: DocId) -> DocId {
        self.original.get(doc.index()).copied().unwrap_or(doc)
    }

    /// The cluster of a document.
    pub fn cluster_of(&self, doc: DocId) -> Option<ClusterId> {
        self.cluster_of.get(doc.index())?.get()
    }

    /// The collection that a document is a page of; the first of several.
    pub fn group_of(&self, doc: DocId) -> Option<CollectionId> {
        self.group_of.get(doc.index())?.get()
    }

    /// How many clusters there are.
    pub fn clusters(&self) -> u32 {
        self.cluster_starts.len().saturating_sub(1) as u32
    }

    /// The members of a cluster, ascending; none when there is no such cluster.
    pub fn members(&self, cluster: ClusterId) -> &[Member] {
        let at = cluster.index();
        match (self.cluster_starts.get(at), self.cluster_starts.get(at + 1)) {
            (Some(start), Some(end)) => &self.members[*start as usize..*end as usize],
            _ => &[],
        }
    }

    /// A cluster in numbers.
    pub fn stats(&self, cluster: ClusterId) -> Option<&ClusterStatsRow> {
        self.stats.get(cluster.index())
    }

    /// All clusters in numbers.
    pub fn all_stats(&self) -> &[ClusterStatsRow] {
        &self.stats
    }

    /// All collections.
    pub fn groups(&self) -> &[CollectionGroupRow] {
        &self.groups
    }

    /// A collection.
    pub fn group(&self, group: CollectionId) -> Option<&CollectionGroupRow> {
        self.groups.get(group.index())
    }

    /// The copies of a collection.
    pub fn replicas(&self, group: CollectionId) -> &[CollectionRow] {
        &self.replicas[between(&self.replicas, |row| row.group, group)]
    }

    /// The pages of all copies of a collection, by copy and slot.
    pub fn pages(&self, group: CollectionId) -> &[Place] {
        &self.pages[between(&self.pages, |page| page.group, group)]
    }

    /// Where a document stands in collections.
    pub fn places(&self, doc: DocId) -> impl Iterator<Item = &Place> {
        let range = between(&self.pages_by_doc, |at| self.pages[*at as usize].doc, doc);
        self.pages_by_doc[range].iter().map(|at| &self.pages[*at as usize])
    }

    /// How many copies of a document there are: those of its collection, else of its cluster, else
    /// one.
    pub fn replication(&self, doc: DocId) -> u64 {
        let group = self.group_of(doc).and_then(|group| self.group(group)).map(|group| group.replicas);
        let cluster = self.cluster_of(doc).map(|cluster| self.members(cluster).len() as u64);
        group.into_iter().chain(cluster).max().unwrap_or(1).max(1)
    }
}

/// Rows with a key in what is sorted by it.
fn between<T, K: Ord>(rows: &[T], key: impl Fn(&T) -> K, wanted: K) -> Range<usize> {
    let start = rows.partition_point(|row| key(row) < wanted);
    start..start + rows[start..].partition_point(|row| key(row) == wanted)
}
