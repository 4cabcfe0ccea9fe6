//! What can go wrong in a search for copies.

use crate::survivor::UselessRule;
use onionskin_scan::ScanError;
use onionskin_scan::inputs::ChangedInput;
use onionskin_store::cancel::Cancelled;
use onionskin_store::raw::RawError;
use onionskin_store::sort::SortError;
use onionskin_store::{AtlasError, IoError, StagingError, TableError, TooLittleMemory};

/// Why a search for copies ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimilarError {
    /// The atlas cannot be used.
    #[error(transparent)]
    Atlas(Box<AtlasError>),
    /// A table cannot be read.
    #[error(transparent)]
    Table(Box<TableError>),
    /// A sort failed.
    #[error(transparent)]
    Sort(Box<SortError>),
    /// A work file cannot be read.
    #[error(transparent)]
    Raw(Box<RawError>),
    /// The file system failed.
    #[error(transparent)]
    Io(Box<IoError>),
    /// The result cannot be written.
    #[error(transparent)]
    Staging(Box<StagingError>),
    /// Chunks that the search needs cannot be made.
    #[error(transparent)]
    Chunks(Box<ScanError>),
    /// The scan did not keep what the method needs.
    #[error(
        "the atlas has no {what}, which {method} needs; it was scanned with the recipe {recipe}\nhint: {hint}"
    )]
    Missing {
        /// What is missing.
        what: String,
        /// Who needs it.
        method: String,
        /// The recipe of the scan.
        recipe: String,
        /// What to do.
        hint: String,
    },
    /// The scan kept nothing that candidates can be found by.
    #[error(
        "the atlas has no {what}, which the search by features needs; it was scanned with the recipe {recipe}\nhint: scan again with a recipe that has +sketch, or search without features"
    )]
    NoFeatures {
        /// What is missing.
        what: String,
        /// The recipe of the scan.
        recipe: String,
    },
    /// The atlas has no pairs below the threshold of the search that found them.
    #[error(
        "pairs were kept from {stored} on, so there are none for {wanted}\nhint: run the search again with the lower threshold"
    )]
    BelowStored {
        /// The threshold of the search.
        stored: f64,
        /// The threshold that was asked for.
        wanted: f64,
    },
    /// A component of linked pages is larger than the memory.
    #[error(
        "a component of {pages} pages and {links} links needs {mib} MiB of memory\nhint: give more memory, or merge strictly"
    )]
    LargeComponent {
        /// Its pages.
        pages: usize,
        /// Its links.
        links: u64,
        /// MiB it needs.
        mib: u64,
    },
    /// Tolerant merging of replicas that spread over sites.
    #[error(
        "tolerant merging needs replicas on single sites\nhint: extended and strict merging go with any site"
    )]
    TolerantAnySite,
    /// A text that was to be compared cannot be read again.
    #[error(transparent)]
    Changed(#[from] ChangedInput),
    /// The survivor rule cannot tell the documents apart.
    #[error(transparent)]
    Useless(#[from] UselessRule),
    /// Too little memory to begin.
    #[error(transparent)]
    TooLittleMemory(#[from] TooLittleMemory),
    /// Stopped from outside.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The answer, or the way to it, is larger than the disk.
    #[error("{what} would take {needed} bytes of disk, {free} are free\nhint: {hint}")]
    TooLarge {
        /// What is too large.
        what: String,
        /// Bytes it would take.
        needed: u64,
        /// Bytes there are.
        free: u64,
        /// What to do.
        hint: String,
    },
    /// Parameters that do not fit together.
    #[error("{0}")]
    Parameters(String),
}

onionskin_store::boxed_sources!(
    SimilarError:
    Atlas(AtlasError),
    Table(TableError),
    Sort(SortError),
    Raw(RawError),
    Io(IoError),
    Staging(StagingError),
    Chunks(ScanError),
);
