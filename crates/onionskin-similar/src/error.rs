//! What can go wrong in a search for copies.

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
    /// A text that was to be compared cannot be read again.
    #[error("{input} cannot be read again: {reason}\nhint: {hint}")]
    Input {
        /// The input.
        input: String,
        /// Why.
        reason: String,
        /// What to do.
        hint: String,
    },
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

macro_rules! boxed {
    ($($variant:ident($inner:ty)),*) => {$(
        impl From<$inner> for SimilarError {
            fn from(error: $inner) -> SimilarError {
                // Boxed, so that the many results on the way are small.
                SimilarError::$variant(Box::new(error))
            }
        }
    )*};
}
boxed!(
    Atlas(AtlasError),
    Table(TableError),
    Sort(SortError),
    Raw(RawError),
    Io(IoError),
    Staging(StagingError)
);
