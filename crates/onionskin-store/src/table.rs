//! Tables as Parquet files: writers that give the same bytes for the same rows, readers that trust
//! nothing.
//!
//! A table is a list of files, its parts, each written by one [`PartWriter`]. A [`RowWriter`]
//! gathers rows into batches of a fixed number of rows; nothing about a file depends on memory,
//! time or threads. A [`RowReader`] or [`BatchReader`] goes through all parts of a table in order,
//! one batch in memory at a time. Tables of many narrow rows (links, chunks, sketches, features)
//! have readers and writers of their own, by columns.
//!
//! Files may be damaged, or come from other programs. The Parquet decoder checks much but not all
//! of what it reads, and can panic; here such a panic is caught and becomes [`TableError::Damaged`]
//! with the name of the file.

mod documents;
mod mirror;
mod part;
mod reader;
mod row;
mod similar;
mod source;
mod typed;
mod words;
mod writers;

use std::path::PathBuf;

use crate::cancel::Cancelled;
use crate::disk::IoError;

pub use documents::{
    DocumentBatch, DocumentRow, DocumentsReader, DocumentsWriter, SiteBatch, SiteRow, SitesReader,
    SitesWriter, document,
};
pub use mirror::{
    CollectionGroupRow, CollectionGroupsReader, CollectionGroupsWriter, CollectionPageRow,
    CollectionPagesReader, CollectionPagesWriter, CollectionRow, CollectionsReader, CollectionsWriter,
    UrlRuleRow, UrlRulesReader, UrlRulesWriter,
};
pub use part::{FORMAT_VERSION_KEY, PartParams, PartWriter, RECIPE_KEY, TABLE_KEY};
pub use reader::TableReader;
pub use row::{Batch, BatchReader, Row, RowReader, RowWriter, Selection};
pub use similar::{
    ClusterRow, ClusterStatsReader, ClusterStatsRow, ClusterStatsWriter, ClustersReader, ClustersWriter,
    PairRow, PairsReader, PairsWriter,
};
pub use source::Input;
pub use typed::{ChunkBatch, ChunksReader, FeaturesReader, IdPairsReader, SketchesReader};
pub use words::{
    CollectionKind, CopyKind, Method, Newer, PrincipalReason, Role, UnknownCollectionKind, UnknownCopyKind,
    UnknownMethod, UnknownNewer, UnknownPrincipalReason, UnknownRole,
};
pub use writers::{ChunksWriter, FeaturesWriter, IdPairsWriter, SketchesWriter};

/// A finished part of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartMeta {
    /// Where it was written.
    pub file: PathBuf,
    /// Rows in it.
    pub rows: u64,
    /// Length of the file.
    pub bytes: u64,
    /// XXH3 (64 bits, seed 0) of the file.
    pub xxh3: u64,
}

/// What can go wrong with a table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A column is not there.
    #[error("table {table}, {file}: no column {column:?}; it has {columns}")]
    MissingColumn {
        /// The table.
        table: String,
        /// The file.
        file: String,
        /// The column that is missing.
        column: String,
        /// The columns that are there.
        columns: String,
    },
    /// A column has a type we cannot use.
    #[error("table {table}, {file}: column {column:?} is {found}, wanted {wanted}")]
    ColumnType {
        /// The table.
        table: String,
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// Its type.
        found: String,
        /// The type it should have.
        wanted: String,
    },
    /// A value that the column may not have.
    #[error("table {table}, {file}: column {column:?}: {problem}")]
    Value {
        /// The table.
        table: String,
        /// The file.
        file: String,
        /// The column.
        column: String,
        /// What is wrong.
        problem: ValueProblem,
    },
    /// Rows were pushed in the wrong order.
    #[error("table {table}: row {row} is out of order")]
    OutOfOrder {
        /// The table.
        table: String,
        /// Number of the row in its part.
        row: u64,
    },
    /// A list has another length than the table's.
    #[error("table {table}: a list of {found}, wanted {wanted}")]
    ListLength {
        /// The table.
        table: String,
        /// Length of the list given.
        found: usize,
        /// Length of every list of the table.
        wanted: usize,
    },
    /// The file is not readable as Parquet.
    #[error(
        "table {table}, {file}: damaged or not Parquet: {reason}\nhint: `onionskin verify` lists every damaged file"
    )]
    Damaged {
        /// The table.
        table: String,
        /// The file.
        file: String,
        /// What the decoder said.
        reason: String,
    },
    /// The encoder failed, for another reason than the disk.
    #[error("table {table}: encoding failed: {reason}")]
    Encode {
        /// The table.
        table: String,
        /// What the encoder said.
        reason: String,
    },
    /// Somebody said stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// What can be wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueProblem {
    /// Null in a column that has none.
    #[error("a null where none may be")]
    Null,
    /// An id outside 0..2^32.
    #[error("{value} is not in 0..2^32")]
    Id {
        /// The value.
        value: i64,
    },
    /// A size below zero.
    #[error("{value} is negative")]
    Negative {
        /// The value.
        value: i64,
    },
    /// A number that is no share.
    #[error("{value} is not between 0 and 1")]
    Share {
        /// The value.
        value: f64,
    },
    /// A word that is not one of those the column may have.
    #[error("an unknown word; known are {known}")]
    Word {
        /// The words.
        known: &'static str,
    },
    /// Lists of different lengths in one column.
    #[error("a list of {found} among lists of {wanted}")]
    ListLength {
        /// Length of this list.
        found: usize,
        /// Length of the others.
        wanted: usize,
    },
}

#[cfg(test)]
mod tests;
