//! The online filter: has this document, or one nearly like it, been seen, and which was it?
//!
//! The naive way keeps the k features of every document in a hash table from feature to documents:
//! 200 bytes per document and more, all in memory, gone with the process. Here the table is on
//! disk, in a folder, and is made of files that never change:
//!
//! ```text
//! add ─▶ wal-N (synced: acknowledged) ─▶ table in memory ─ 32 768 documents ─▶ run-N ─┐
//!                                                          runs are merged, a third ◀─┘
//! catalogue: which runs, which wal; replaced last, by renaming
//! ```
//!
//! **Documents** are numbered as they come. A run has the documents of a range of numbers, 18 bytes
//! each: 48 bits of the text's fingerprint, the number of its centre, and the caller's 64-bit key
//! (or where its name is).
//!
//! **The filter** is chosen for the resemblance that an index is made for ([`Params::made_for`]): k
//! features of s minima, out of those that the recipe makes, that miss at most one document in 200
//! at the threshold. Candidates that come along are dropped by their sketches. Without a threshold
//! the features of the recipe decide.
//!
//! **Centres** are the documents that are indexed by features: all but exact copies. An exact copy
//! is recorded with the number of its centre and indexed by the fingerprint of its text alone, so
//! that a page with a million copies has one entry under each of its features.
//!
//! **A posting** is seven bytes. Feature number i of value f has the key
//! `scramble(f ^ scramble(i + 1))`, cut to 54 bits, which is spread evenly; a run of 2^d documents
//! has 2^(d-2) buckets by the first bits of the key, and what is left, 56 - d bits of key and d
//! bits of document, is always 56 bits. A bucket has 2k to 4k postings in a row, its place is a
//! 32-bit number in the run's directory. Another feature is taken for the right one once in 2^54
//! comparisons: 3·10⁻⁹ per feature at ten million documents. Its sketch does not agree.
//!
//! **Bytes.** A centre with k = 6: 6·7 postings + 18 + 1 to 2 of directory + 0.1 % of checksums =
//! 61 to 62 bytes; with k = 10 and 84 minima, 175; a copy: 25. The log of what is not yet in a run
//! is 77 bytes per document, 445 with minima, for at most 32 768 of them. Names come on top, as
//! long as they are and two bytes.
//!
//! **Passes.** A run is larger than twice all younger runs together, so there are at most log₃ n of
//! them, and a document is rewritten about log₁.₅ of as many. A check reads one bucket a feature
//! and run.
//!
//! **Sketches** are kept of centres, unless features are to decide: the lowest byte of each
//! minimum, 84 per document (four bytes in older indexes), in a part of the run that nothing else
//! reads. Resemblance is then the share of minima that agree ([`Probe::with_sketch`],
//! [`Probe::with_threshold`]).
//!
//! **Memory.** The directories, when they fit into a quarter of the budget; blocks of 4 KiB that
//! were read, up to the budget, without locks where a whole run fits; the table of what is in no
//! run yet (about 10 MB, and the sketches of 32 768 documents); 50 bytes for each removed document
//! until the next compaction.
//!
//! **Crowds.** Of a feature that has more than [`Params::crowd`] postings the oldest are read, and
//! no more; as many candidates are compared, those that share most features. A centre that meets
//! such a crowd is indexed by its text too, so that exact copies of it are found all the same. A
//! near-duplicate whose features all have crowds is recorded like an exact copy.
//!
//! **Removing** a document leaves a tombstone. When a centre goes that has copies, the oldest
//! living copy inherits its place: the features stay, answers name the heir.
//!
//! **One writer, many readers.** [`Seen`] holds a lock on the folder; a [`Reader`] sees what the
//! catalogue and the log hold at the time, and again after [`Reader::refresh`]; a [`SharedReader`]
//! is one for many threads. Files that are no longer in use are unlinked; who has them open can go
//! on reading.

mod acknowledged;
mod blocks;
mod catalogue;
mod error;
pub mod intake;
mod memtable;
mod reader;
mod removed;
mod run;
pub mod untrusted;
mod verify;
mod view;
mod wal;
mod writer;

pub use catalogue::{Catalogue, Params};
pub use error::SeenError;
pub use intake::{AtlasDocument, AtlasDocuments, AtlasDocumentsError, Features, TextFeatures, recipe_of};
pub use reader::{Entry, Reader, SharedReader, is_index};
pub use verify::{Finding, Repair, Verification, repair, verify};
pub use view::{Match, Method, Probe, Stats};
pub use writer::{Document, Options, Outcome, Seen};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
