//! The tables, and their names as manifests and journals spell them.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{ChunkingName, LevelName};

/// Declares the tables and their names: those before and those after the families, of which there
/// is one table for each chunking or level, or whose lists have a length.
macro_rules! tables {
    (
        { $($(#[$doc:meta])* $table:ident => $word:literal,)+ }
        { $($(#[$more_doc:meta])* $more:ident => $more_word:literal,)+ }
    ) => {
        /// A table of the atlas.
        ///
        /// ```
        /// use onionskin_store::Table;
        /// let table = Table::chunks("w4").unwrap();
        /// assert_eq!(table.to_string(), "chunks.w4");
        /// assert_eq!(table.folder(), "chunks/w4");
        /// ```
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Table {
            $($(#[$doc])* $table,)+
            /// Fingerprints of the chunks of each document, one table per chunking.
            Chunks(ChunkingName),
            /// One sketch per document.
            Sketches {
                /// Minima in a sketch.
                len: u32,
            },
            /// The features of each document.
            Features {
                /// Features of a document.
                len: u32,
            },
            /// The duplicates at one level of resemblance, each with what it is a duplicate of.
            /// One table per level.
            Copies(LevelName),
            $($(#[$more_doc])* $more,)+
        }

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
            $($(#[$doc])* $table,)+
            /// Chunks of one chunking.
            Chunks(ChunkingName),
            /// One sketch per document.
            Sketches,
            /// The features of each document.
            Features,
            /// The duplicates at one level.
            Copies(LevelName),
            $($(#[$more_doc])* $more,)+
            /// A table that this version does not know.
            Other(String),
        }

        /// The names that are one word.
        const WORDS: &[(&str, TableName)] = &[
            $(($word, TableName::$table),)+
            ("sketches", TableName::Sketches),
            ("features", TableName::Features),
            $(($more_word, TableName::$more),)+
        ];

        impl TableName {
            /// The table, for reading: the length of lists is the file's to say. `None` for an
            /// unknown one.
            pub fn table(&self) -> Option<Table> {
                Some(match self {
                    $(TableName::$table => Table::$table,)+
                    TableName::Chunks(chunking) => Table::Chunks(chunking.clone()),
                    TableName::Sketches => Table::Sketches { len: 1 },
                    TableName::Features => Table::Features { len: 1 },
                    TableName::Copies(level) => Table::Copies(level.clone()),
                    $(TableName::$more => Table::$more,)+
                    TableName::Other(_) => return None,
                })
            }
        }

        impl From<&Table> for TableName {
            fn from(table: &Table) -> TableName {
                match table {
                    $(Table::$table => TableName::$table,)+
                    Table::Chunks(chunking) => TableName::Chunks(chunking.clone()),
                    Table::Sketches { .. } => TableName::Sketches,
                    Table::Features { .. } => TableName::Features,
                    Table::Copies(level) => TableName::Copies(level.clone()),
                    $(Table::$more => TableName::$more,)+
                }
            }
        }
    };
}

tables! {
    {
        /// One row per document.
        Documents => "documents",
        /// One row per site.
        Sites => "sites",
        /// Links between documents.
        Links => "links",
    }
    {
        /// Similar documents, verified.
        Pairs => "pairs",
        /// Clusters of similar documents.
        Clusters => "clusters",
        /// One row per cluster: how large, how tight, how many sites.
        ClusterStats => "cluster_stats",
        /// Replicas of collections.
        Collections => "collections",
        /// The pages of each replica.
        CollectionPages => "collection_pages",
        /// One row per collection: what it is, how often and why it is copied.
        CollectionGroups => "collection_groups",
        /// URL normalisation rules.
        UrlRules => "url_rules",
    }
}

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

    /// Directories of tables that are alone in theirs.
    pub(crate) fn directories() -> impl Iterator<Item = &'static str> {
        WORDS.iter().map(|(word, _)| *word)
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
