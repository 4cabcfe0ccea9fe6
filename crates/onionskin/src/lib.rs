//! Onionskin finds the copies in a web: pages that are the same, pages that are nearly the same, and whole collections
//! that are mirrored from site to site.
//!
//! This is the front door of the library: each stage of the pipeline is a function that takes parameters and a
//! [`Progress`], does its work on an atlas, and returns a summary. Stages resume where they were killed, keep to a memory
//! budget, and give the same bytes for any number of threads.
//!
//! - [`run()`] does the three that follow in one process.
//! - [`scan()`] reads raw web data once and makes the atlas.
//! - [`similar()`] finds pairs and clusters of similar documents in it.
//! - [`collections()`] finds collections of linked pages that stand in several places.
//! - [`avoid()`] makes the list of what the next crawl can skip.
//! - [`study()`] tells how much is copied and where, [`report::compare`] what has changed between two crawls.
//! - [`explain()`] shows why two documents are alike, [`evaluate()`] compares what was found with known answers.
//! - [`size()`] tells how big crawls, lists and search engines are against each other.
//! - [`seen`] tells of documents as they come whether they, or some nearly like them, have been seen.
//! - [`parts`] are pieces of the stages, for engines that move the data themselves.
//! - [`dedup()`] lists what is kept and what is removed, and writes copies of the inputs without the copies in them.

pub mod avoid;
pub mod collections;
pub mod costs;
pub mod dedup;
pub mod evaluate;
pub mod explain;
pub mod inputs;
mod kept;
pub mod membership;
pub mod parts;
mod progress;
pub mod report;
pub mod run;
pub mod scan;
pub mod seen;
pub mod similar;
pub mod size;
pub mod survivor;
pub mod texts;

pub use avoid::{AvoidError, AvoidParams, AvoidReport, avoid};
pub use collections::{CollectionsParams, CollectionsSummary, collections};
pub use dedup::{DedupError, DedupParams, DedupSummary, dedup};
pub use evaluate::{EvaluateError, EvaluateParams, Evaluation, evaluate};
pub use explain::{ExplainError, ExplainParams, Explanation, explain};
pub use progress::{Event, Progress, Quiet};
pub use report::{ReportError, ReportParams, study};
pub use run::{RunError, RunParams, RunSummary, run};
pub use scan::{ScanError, ScanParams, ScanSummary, scan};
pub use similar::{SimilarParams, SimilarSummary, similar};
pub use size::{SizeError, SizeParams, SizeReport, size};
pub use survivor::Survivor;

#[cfg(test)]
mod testing;
