//! A run: the documents of a range of numbers, and postings to them in order of key. Written once,
//! from front to back.
//!
//! ```text
//! header │ documents, 18 bytes each │ names │ sketches │
//!        │ postings, 7 bytes each │ zeros │ directory, 4 bytes per bucket
//! ```
//!
//! Sketches are there in an index that keeps them. They begin with 12 bytes for every 64 documents:
//! how many centres there are before, and a bit for each that is one. Then the minima of centres
//! follow, in order.

mod format;
mod read;
mod salvage;
mod write;

pub(crate) use format::{
    DOCUMENT_BYTES, FP_MASK, HEADER, KEY_BITS, LOST_MINIMUM, MOST_POSTINGS, POSTING, Record, RunMeta,
    SketchShape,
};
pub(crate) use read::{Located, Run};
pub(crate) use salvage::Salvage;
pub(crate) use write::{RunPlan, RunWriter};

#[cfg(test)]
mod tests;
