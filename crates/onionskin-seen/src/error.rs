//! What can go wrong with an index.

use std::path::{Path, PathBuf};

use onionskin_store::IoError;

/// What can go wrong with an index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeenError {
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A file is not what was written.
    #[error("{}: damaged: {what}\nhint: a repair keeps what is sound", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// An index of another version.
    #[error("{}: format v{found} is not known; this program reads v1 to v{known}", path.display())]
    Version {
        /// The catalogue.
        path: PathBuf,
        /// What it says.
        found: u32,
        /// What we read.
        known: u32,
    },
    /// The features are of another kind.
    #[error(
        "the index has features of {index}, not of {given}\nhint: features of two recipes or seeds have nothing in common; use a folder for each"
    )]
    Mismatch {
        /// Recipe and seed of the index.
        index: String,
        /// Recipe and seed that were given.
        given: String,
    },
    /// A recipe without features.
    #[error(
        "the recipe {0} has no features or minima, which an index is made of; write one such as w4-rabin64-6x14r2"
    )]
    NoFeatures(String),
    /// There is one already.
    #[error("{} has an index already", .0.display())]
    Exists(PathBuf),
    /// There is none.
    #[error("{} has no index of seen documents", .0.display())]
    Missing(PathBuf),
    /// There is something else.
    #[error("{} is not an index and not empty (it has {entry:?})\nhint: name a new folder", dir.display())]
    NotEmpty {
        /// The folder.
        dir: PathBuf,
        /// Something in it.
        entry: String,
    },
    /// Another process writes.
    #[error("{} is being written to by another process\nhint: checks need no lock; wait with additions until it is done", .0.display())]
    Busy(PathBuf),
    /// No numbers are left.
    #[error("an index has 2^32 - 2 documents at most; begin another")]
    Full,
    /// An earlier write failed.
    #[error("an earlier write to {} failed; open the index again to go on from what was acknowledged", .0.display())]
    Poisoned(PathBuf),
    /// Features of another number.
    #[error("{found} features, the index has {expected} a document")]
    Features {
        /// As the recipe says.
        expected: usize,
        /// As given.
        found: usize,
    },
    /// Minima of another number.
    #[error("{found} minima, the index keeps {expected} of a document")]
    Minima {
        /// As the recipe says.
        expected: usize,
        /// As given.
        found: usize,
    },
    /// A resemblance cannot be asked of an index without sketches.
    #[error(
        "the index keeps no sketches, which a threshold is compared with\nhint: sketches are kept from the beginning or not at all; create another index with sketches"
    )]
    NoSketches,
    /// An index keeps no texts, and nobody said where they are.
    #[error("the index keeps no texts to compare with")]
    NoTexts,
    /// A name that is no number, in an index of numbers.
    #[error("{0:?} is not a whole number, as the names of this index are")]
    NotANumber(String),
    /// An addition to an index that is open for reading.
    #[error("the index is open for reading only")]
    ReadOnly,
    /// A name that is too long to keep.
    #[error("a name of {0} bytes; at most 65,535 are kept")]
    LongName(usize),
}

impl SeenError {
    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> SeenError {
        SeenError::Damaged { path: path.to_owned(), what: what.into() }
    }
}
