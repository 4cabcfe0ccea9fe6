//! What the values of each column must be. The list of columns names a rule for each; readers check
//! it on every batch, before a value becomes an index or a size.

use std::fmt;

use crate::manifest::Manifest;
use crate::schema::TableName;

/// What the values of a column must be, nulls aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Whatever the type holds.
    Any,
    /// A size, a number of things or an offset: from 0 to [`MAX_SIZE`].
    Size,
    /// A number of things that a table has a row for: at most its rows.
    AtMost(Rows),
    /// A number from 0 to 1.
    Share,
    /// The number of the row itself: 0, 1, 2 and so on.
    Dense,
    /// The number of a thing that has one row or several: 0 first, then the same or one more.
    Steps(Rows),
    /// The number of a row of a table.
    Row(Rows),
    /// The same, or 2^32 - 1 for none.
    RowOrNone(Rows),
}

/// More bytes than an atlas is made of. Sums of such sizes do not overflow.
pub(crate) const MAX_SIZE: i64 = 1 << 48;
/// Ids are below this number in every table.
pub(crate) const ID_END: u64 = 1 << 32;

/// The table whose rows bound a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// A row per document.
    Documents,
    /// A row per site.
    Sites,
    /// A row per cluster.
    Clusters,
    /// A row per collection.
    Collections,
    /// A row per replica of a collection.
    Replicas,
    /// A row per page of a replica.
    Pages,
}

impl Rows {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Rows::Documents => "documents",
            Rows::Sites => "sites",
            Rows::Clusters => "clusters",
            Rows::Collections => "collections",
            Rows::Replicas => "replicas",
            Rows::Pages => "pages of replicas",
        }
    }

    fn table(self) -> TableName {
        match self {
            Rows::Documents => TableName::Documents,
            Rows::Sites => TableName::Sites,
            Rows::Clusters => TableName::ClusterStats,
            Rows::Collections => TableName::CollectionGroups,
            Rows::Replicas => TableName::Collections,
            Rows::Pages => TableName::CollectionPages,
        }
    }
}

impl fmt::Display for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

const ALL: [Rows; 6] =
    [Rows::Documents, Rows::Sites, Rows::Clusters, Rows::Collections, Rows::Replicas, Rows::Pages];

/// How many there are of each: from the manifest, so that no table has to be read for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limits([Option<u64>; ALL.len()]);

impl Limits {
    /// Of an atlas.
    pub(crate) fn of(manifest: &Manifest) -> Limits {
        Limits(ALL.map(|of| manifest.tables.get(&of.table()).map(|entry| entry.rows)))
    }

    /// How many there are, if there is a table that has a row for each.
    pub(crate) fn exactly(&self, of: Rows) -> Option<u64> {
        self.0[of as usize]
    }

    /// How many there are at most. There are no more sites and clusters than documents, and no more
    /// pages in one place of the tables than ids.
    pub(crate) fn rows(&self, of: Rows) -> u64 {
        let documents = || self.exactly(Rows::Documents);
        let found = match of {
            Rows::Sites | Rows::Clusters | Rows::Collections => self.exactly(of).or_else(documents),
            Rows::Documents | Rows::Replicas | Rows::Pages => self.exactly(of),
        };
        found.unwrap_or(ID_END).min(ID_END)
    }
}
