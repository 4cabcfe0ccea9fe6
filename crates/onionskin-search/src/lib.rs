//! Full-text search over an atlas, with replicas rolled up.
//!
//! A search engine that shows the same page ten times because it stands in ten places wastes its
//! user's time (Cho, Shivakumar and Garcia-Molina 2000, section 5.2). The naive way to fold copies
//! is to ask an engine for many results and to throw copies away: if the first thousand are copies
//! of one page, nothing is left. Here copies are folded while results are collected
//! ([`Index::search`]): what is kept is the best page of each collection, cluster or text, and the
//! engine skips everything that cannot beat the worst that is kept, so that folding costs no more
//! than not folding.
//!
//! ```text
//! atlas ─ texts read again ─▶ Index: words ▸ pages that have them; stored texts; small sketches     atlas/search/
//!       ─ clusters, collections ─▶ Copies: which pages are copies of which                          in memory
//! query ─▶ best page of every group ─▶ ranked with their replication ─▶ overlapping results sink ─▶ snippets
//! ```
//!
//! The index depends on the scan alone; a new search for copies or mirrors does not touch it. It
//! can be deleted at any time.

mod copies;
mod index;
mod overlap;
mod query;
mod search;
mod snippet;
mod words;

use std::io;
use std::path::PathBuf;

use onionskin_core::DocId;
use onionskin_store::{AtlasError, TableError};

pub use copies::{Copies, Member, Place};
pub use index::{BuildParams, Built, INDEXED_TEXT, Index, STORED_TEXT, StoredPage};
pub use query::{Clause, Query, QueryProblem};
pub use search::{Fold, Hit, Matches, Results, SearchParams, Sunk};
pub use snippet::Fragment;
pub use words::words_of;

pub use onionskin_store::table::Role;

/// Why an index cannot be made, opened or asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SearchError {
    /// The atlas cannot be used.
    #[error(transparent)]
    Atlas(#[from] Box<AtlasError>),
    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] Box<TableError>),
    /// There is no index, or one of another atlas or version.
    #[error("{}: {reason}", path.display())]
    Stale {
        /// The folder of the index.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The full-text engine said no.
    #[error("{}: {source}", path.display())]
    Engine {
        /// The folder of the index.
        path: PathBuf,
        /// What it said.
        #[source]
        source: Box<tantivy::TantivyError>,
    },
    /// The operating system said no.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        #[source]
        source: io::Error,
    },
    /// The budget is too small.
    #[error("{what} takes {}, and {} is allowed\nhint: give more memory", mib(*needed), mib(*budget))]
    Memory {
        /// What takes it.
        what: &'static str,
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        budget: u64,
    },
    /// The index cannot be written.
    #[error("{}: the full-text index cannot be written", path.display())]
    NotWritten {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// More documents than numbers.
    #[error("{documents} documents are more than an index can hold")]
    TooManyDocuments {
        /// How many.
        documents: u64,
    },
    /// A table speaks of a document that is not there.
    #[error("table {table} speaks of document {doc}, which the atlas has not")]
    NoSuchDocument {
        /// The table.
        table: &'static str,
        /// The document.
        doc: DocId,
    },
    /// A table is not sorted as it must be.
    #[error("table {table} is not in order")]
    OutOfOrder {
        /// The table.
        table: &'static str,
    },
}

/// Bytes as people give them, rounded up.
fn mib(bytes: u64) -> String {
    format!("{} MiB", onionskin_core::format::grouped(bytes.div_ceil(1 << 20)))
}

onionskin_store::boxed_sources!(SearchError: Atlas(AtlasError), Table(TableError));

#[cfg(test)]
mod testing;
