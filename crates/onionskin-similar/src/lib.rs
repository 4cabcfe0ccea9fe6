//! From chunks and features to pairs of similar documents, and from pairs to clusters.
//!
//! Every method works in the same steps. What is found in one place is checked in another, so that
//! a hash collision never becomes a pair:
//!
//! ```text
//!  documents ──▶ exact copies, folded            (exact)
//!  features, sketches ──▶ candidates             (candidates)
//!  chunks ──▶ pairs that share at least T        (overlap: sort, iceberg, prefix)
//!  candidates + chunks ──▶ verified pairs        (verify)
//!  pairs ──▶ clusters, transitive or centred     (cluster)
//! ```
//!
//! Memory is what the budget says: one bit per document, union-find of four bytes per document
//! where that fits, tables that share the budget, and sorts that spill for everything else.

mod bound;
pub mod candidates;
pub mod cluster;
pub mod components;
pub mod error;
pub mod exact;
pub mod membership;
pub mod overlap;
pub mod paragraphs;
pub mod parts;
pub mod recall;
pub mod sample;
pub mod sets;
mod stage;
pub mod survivor;
pub mod verify;

pub use bound::Bound;
pub use error::SimilarError;
pub use membership::{Membership, MembershipError, Memberships};
pub use overlap::{Engine, JoinStats, join};
pub use sets::{Bits, ChunkSets, SetCursor, SetReader, SetSource};
pub use stage::{
    ClusterSummary, FilterChoice, FoundRecord, IterationSummary, LevelRecord, ParagraphSummary, Reclustering,
    Search, SearchRecord, Sift, SimilarParams, SimilarRecord, SimilarSummary, levels, recluster, similar,
};
pub use survivor::{Survivor, UselessRule};
pub use verify::{Candidates, SharedPair, VerifyStats, count_shared};

use std::path::PathBuf;

use onionskin_store::MemoryBudget;

/// What a step may use. None of it changes a result.
#[derive(Clone, Debug)]
pub struct Resources {
    /// Memory for everything the step holds.
    pub memory: MemoryBudget,
    /// Threads.
    pub threads: usize,
    /// A folder for sorted runs and other files that do not outlive the step; made when needed.
    pub work_dir: PathBuf,
}

impl Resources {
    /// The same with a part of the memory.
    pub fn share(&self, numerator: u64, denominator: u64) -> Resources {
        Resources { memory: self.memory.share(numerator, denominator), ..self.clone() }
    }
}
