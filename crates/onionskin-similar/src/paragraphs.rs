//! Duplicates and near-duplicates by shingle paragraphs (Pereira, Baeza-Yates and Ziviani 2006).
//!
//! A shingle paragraph is three sentences; a document has them one after the other, without
//! overlap, and may have one more than once. Documents with the same shingle paragraphs are
//! duplicates (definition 2), those with a given percentage of identical ones are near-duplicates
//! (definition 5).
//!
//! The naive way compares all documents. The paper divides the collection into m parts, brings the
//! shingles of one part into a hash table in memory, and looks up all documents that have not been
//! in a table before; m steps do it all. So does this module, and here the budget decides m: a part
//! is what fits.
//!
//! Three things differ from the paper:
//!
//! - It counts the shingles of one document that are found in the other, so that "e d e d" is taken
//!   for a duplicate of "e d f g", as the paper says itself. Here documents are multisets: what is
//!   shared is the lower number of occurrences.
//! - A shingle that stands everywhere, a menu, would bring all documents together. Documents are
//!   written down with their rarest shingles first, and similar ones must meet among the first (see
//!   [`overlap`](crate::overlap)): only those go into the table and are looked up.
//! - One run at the lowest percentage gives all: every pair comes with its counts.

mod equal;
mod near;
mod shelf;

pub use equal::{DuplicateStats, duplicates, duplicates_of_drawn};
pub use near::{Level, NearStats, near_duplicates};

#[cfg(test)]
mod tests;
