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

mod checks;
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
use crate::schema::{Table, TableName};

pub(crate) use checks::Known;
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
pub use reader::{TableReader, hush_decoders};
pub(crate) use row::ensure_words;
pub use row::{Batch, BatchReader, Row, RowReader, RowWriter, Selection};
pub use similar::{
    ClusterRow, ClusterStatsReader, ClusterStatsRow, ClusterStatsWriter, ClustersReader, ClustersWriter,
    PairRow, PairsReader, PairsWriter,
};
pub use source::{Input, Stored};
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
    #[error("table {table}, {file}{}: column {column:?}: {problem}\nhint: {}", at_row(*row), remedy(table))]
    Value {
        /// The table.
        table: String,
        /// The file.
        file: String,
        /// The row of the file, from 0, where it is known.
        row: Option<u64>,
        /// The column.
        column: String,
        /// What is wrong; boxed, so that results stay small.
        problem: Box<ValueProblem>,
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
    #[error("table {table}, {file}: damaged or not Parquet: {reason}\nhint: {}", remedy(table))]
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

impl TableError {
    /// The same with the row of the file in place of the row of a batch.
    pub(crate) fn in_file(mut self, in_file: impl FnOnce(usize) -> Option<u64>) -> TableError {
        if let TableError::Value { row: row @ Some(_), .. } = &mut self {
            *row = row.and_then(|row| in_file(usize::try_from(row).ok()?));
        }
        self
    }

    /// What is wrong, without table and file.
    pub(crate) fn problem(&self) -> String {
        match self {
            TableError::Value { row, column, problem, .. } => {
                let row = row.map_or_else(String::new, |row| format!("row {row}: "));
                format!("{row}column {column:?}: {problem}")
            }
            TableError::Damaged { reason, .. } => reason.clone(),
            other => other.to_string(),
        }
    }

    pub(crate) fn damaged(table: &Table, file: &str, reason: String) -> TableError {
        TableError::Damaged { table: table.to_string(), file: file.to_owned(), reason }
    }
}

fn at_row(row: Option<u64>) -> String {
    row.map_or_else(String::new, |row| format!(", row {row}"))
}

/// What to try when a table is not what a stage has left.
pub(crate) fn remedy(table: &str) -> String {
    let verify = "`onionskin verify` lists every damaged file";
    match TableName::from(table).table() {
        Some(table) => format!("{verify}; to make this table again, run {} again", table.stage()),
        None => verify.to_owned(),
    }
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
    /// A size that is negative, or larger than any.
    #[error("{value} is not in 0..=2^48")]
    Size {
        /// The value.
        value: i64,
    },
    /// A row or a number of things that the atlas does not have.
    #[error("{value}, but there are {rows} {of}")]
    NoSuchRow {
        /// The value.
        value: i64,
        /// Things that there are.
        of: &'static str,
        /// How many of them there are.
        rows: u64,
    },
    /// Numbers that should be dense have a gap.
    #[error("{value}, where {wanted} should be")]
    Step {
        /// The value.
        value: i64,
        /// What should be there.
        wanted: i64,
    },
    /// A row that should come before the one that it follows.
    #[error("out of order")]
    Order,
    /// A row with the keys of the one before.
    #[error("the same row twice")]
    Twice,
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
