//! Names of tables, as manifests and journals spell them.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ChunkingName, LevelName, Table};

/// The name of a table.
///
/// ```
/// use onionskin_store::TableName;
/// assert_eq!(TableName::from("chunks.w4").to_string(), "chunks.w4");
/// assert_eq!(TableName::from("pairs"), TableName::Pairs);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TableName {
    /// One row per document.
    Documents,
    /// One row per site.
    Sites,
    /// Links between documents.
    Links,
    /// Chunks of one chunking.
    Chunks(ChunkingName),
    /// One sketch per document.
    Sketches,
    /// The features of each document.
    Features,
    /// The duplicates at one level.
    Copies(LevelName),
    /// Similar documents.
    Pairs,
    /// Clusters of similar documents.
    Clusters,
    /// One row per cluster.
    ClusterStats,
    /// Replicas of collections.
    Collections,
    /// The pages of each replica.
    CollectionPages,
    /// One row per collection.
    CollectionGroups,
    /// URL normalisation rules.
    UrlRules,
    /// A table that this version does not know.
    Other(String),
}

/// The names that are one word.
const WORDS: [(&str, TableName); 12] = [
    ("documents", TableName::Documents),
    ("sites", TableName::Sites),
    ("links", TableName::Links),
    ("sketches", TableName::Sketches),
    ("features", TableName::Features),
    ("pairs", TableName::Pairs),
    ("clusters", TableName::Clusters),
    ("cluster_stats", TableName::ClusterStats),
    ("collections", TableName::Collections),
    ("collection_pages", TableName::CollectionPages),
    ("collection_groups", TableName::CollectionGroups),
    ("url_rules", TableName::UrlRules),
];

impl TableName {
    /// The prefix of a family of tables, and what follows it: nothing for a table by itself.
    fn parts(&self) -> (&str, Option<&str>) {
        match self {
            TableName::Chunks(chunking) => ("chunks.", Some(chunking.as_str())),
            TableName::Copies(level) => ("copies.", Some(level.as_str())),
            TableName::Other(name) => (name, None),
            word => (WORDS.iter().find(|(_, name)| name == word).map_or("", |(word, _)| word), None),
        }
    }

    /// The letters of the name, one after the other.
    fn letters(&self) -> impl Iterator<Item = u8> {
        let (first, second) = self.parts();
        first.bytes().chain(second.unwrap_or_default().bytes())
    }

    /// The table, for reading: the length of lists is the file's to say. `None` for an unknown one.
    pub fn table(&self) -> Option<Table> {
        Some(match self {
            TableName::Documents => Table::Documents,
            TableName::Sites => Table::Sites,
            TableName::Links => Table::Links,
            TableName::Chunks(chunking) => Table::Chunks(chunking.clone()),
            TableName::Sketches => Table::Sketches { len: 1 },
            TableName::Features => Table::Features { len: 1 },
            TableName::Copies(level) => Table::Copies(level.clone()),
            TableName::Pairs => Table::Pairs,
            TableName::Clusters => Table::Clusters,
            TableName::ClusterStats => Table::ClusterStats,
            TableName::Collections => Table::Collections,
            TableName::CollectionPages => Table::CollectionPages,
            TableName::CollectionGroups => Table::CollectionGroups,
            TableName::UrlRules => Table::UrlRules,
            TableName::Other(_) => return None,
        })
    }

    /// Directories of tables that are alone in theirs.
    pub(crate) fn directories() -> impl Iterator<Item = &'static str> {
        WORDS.iter().map(|(word, _)| *word)
    }
}

impl From<&Table> for TableName {
    fn from(table: &Table) -> TableName {
        match table {
            Table::Documents => TableName::Documents,
            Table::Sites => TableName::Sites,
            Table::Links => TableName::Links,
            Table::Chunks(chunking) => TableName::Chunks(chunking.clone()),
            Table::Sketches { .. } => TableName::Sketches,
            Table::Features { .. } => TableName::Features,
            Table::Copies(level) => TableName::Copies(level.clone()),
            Table::Pairs => TableName::Pairs,
            Table::Clusters => TableName::Clusters,
            Table::ClusterStats => TableName::ClusterStats,
            Table::Collections => TableName::Collections,
            Table::CollectionPages => TableName::CollectionPages,
            Table::CollectionGroups => TableName::CollectionGroups,
            Table::UrlRules => TableName::UrlRules,
        }
    }
}

impl From<&str> for TableName {
    fn from(name: &str) -> TableName {
        if let Some((_, word)) = WORDS.iter().find(|(word, _)| *word == name) {
            return word.clone();
        }
        let chunks = name.strip_prefix("chunks.").and_then(ChunkingName::new).map(TableName::Chunks);
        let copies = || name.strip_prefix("copies.").and_then(LevelName::new).map(TableName::Copies);
        chunks.or_else(copies).unwrap_or_else(|| TableName::Other(name.to_owned()))
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, second) = self.parts();
        f.write_str(first)?;
        f.write_str(second.unwrap_or_default())
    }
}

/// The order of the letters, which is the order in manifests.
impl Ord for TableName {
    fn cmp(&self, other: &TableName) -> Ordering {
        self.letters().cmp(other.letters())
    }
}

impl PartialOrd for TableName {
    fn partial_cmp(&self, other: &TableName) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Serialize for TableName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TableName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TableName, D::Error> {
        Ok(TableName::from(String::deserialize(deserializer)?.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_spelled_and_read_back() {
        for name in WORDS.iter().map(|(word, _)| *word).chain(["chunks.w4", "copies.exact"]) {
            let table = TableName::from(name);
            assert_eq!(table.to_string(), name);
            assert_eq!(TableName::from(&table.table().unwrap()), table);
            assert_eq!(table.table().unwrap().to_string(), name);
        }
        for unknown in ["", "fetches", "chunks.", "chunks.W 4", "copies"] {
            assert_eq!(TableName::from(unknown), TableName::Other(unknown.to_owned()));
        }
    }

    #[test]
    fn names_are_in_the_order_of_their_letters() {
        let mut words: Vec<&str> = WORDS.iter().map(|(word, _)| *word).collect();
        words.extend(["chunks.w4", "chunks.l2", "copies.exact", "chunky", "fetches"]);
        let mut names: Vec<TableName> = words.iter().map(|word| TableName::from(*word)).collect();
        words.sort_unstable();
        names.sort_unstable();
        assert_eq!(names.iter().map(ToString::to_string).collect::<Vec<_>>(), words);
    }
}
