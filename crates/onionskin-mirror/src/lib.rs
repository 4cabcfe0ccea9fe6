//! Replicated collections of linked pages.
//!
//! Cho, Shivakumar and Garcia-Molina 2000: similar pages are *trivial clusters*; clusters whose
//! pages link to each other in the same way grow into *collections*, and a collection that stands
//! in several places is replicated.
//!
//! ```text
//!  trivial clusters + links ──▶ link summary (a, b, s, d)      (summary)
//!  summary ──▶ edges where the merge condition holds ──▶ components
//!  component ──▶ replicas, slot by slot      (grow: strict, extended; tolerant: beyond the paper)
//!  groups ──▶ which copy is the original      (principal)
//!  groups ──▶ definitions checked      (check)
//! ```

pub mod alias;
pub mod avoid;
pub mod check;
pub mod component;
pub mod describe;
pub mod graph;
pub mod grow;
mod matching;
mod model;
pub mod parts;
pub mod place;
pub mod principal;
pub mod stage;
pub mod summary;
pub mod tolerant;
mod version;

pub use graph::{Graph, Page};
pub use model::{Group, Member, Merge, Replica, Role, UnknownMerge};
pub use stage::{
    CheckReport, Collection, CollectionsParams, CollectionsRecord, CollectionsSummary, Counts, Trivial,
    Violation, check_collections, collections,
};

#[cfg(test)]
mod testing;
