//! Onionskin finds duplicate content in web crawls and text corpora: exact duplicates, near
//! duplicates, and whole collections that are mirrored from site to site.
//!
//! This crate is the front door. Each stage is a function that takes parameters and a [`Progress`],
//! works on an atlas (a directory of Parquet tables), and returns a summary. Stages resume where
//! they were interrupted, keep to a memory budget, and write the same bytes for any number of
//! threads.
//!
//! | function | does |
//! |---|---|
//! | [`run()`] | the whole job |
//! | [`scan()`] | reads raw web data once and writes the atlas |
//! | [`similar()`] | finds pairs and clusters of similar documents |
//! | [`collections()`] | finds replicated collections of linked pages |
//! | [`avoid()`] | lists what the next crawl can skip |
//! | [`study()`] | measures how much is duplicated and where |
//! | [`dedup()`] | lists what is kept and removed, and writes filtered copies of the inputs |
//! | [`explain()`], [`evaluate()`] | evidence for a pair; agreement with known answers |
//! | [`size()`] | relative sizes of crawls, lists and search engines |
//! | [`seen`] | the online filter: has this document been seen? |
//!
//! The crates behind these functions are re-exported as modules, so a program depends on `onionskin`
//! alone.

mod causes;
pub mod run;
pub mod seen;

pub use causes::causes;
pub use onionskin_core as core;
pub use onionskin_corpus as corpus;
pub use onionskin_dedup as dedup;
pub use onionskin_explain::{evaluate, explain};
pub use onionskin_extract as extract;
pub use onionskin_mirror as mirror;
pub use onionskin_scan as scan;
pub use onionskin_similar as similar;
pub use onionskin_store as store;
pub use onionskin_store::{Event, MemoryBudget, Progress, Quiet};
pub use onionskin_study as study;
pub use onionskin_study::{report, size};
pub use onionskin_warc as warc;

pub use onionskin_dedup::{DedupError, DedupParams, DedupSummary, dedup};
pub use onionskin_explain::{
    EvaluateError, EvaluateParams, Evaluation, ExplainError, ExplainParams, Explanation,
};
pub use onionskin_mirror::avoid::{self, AvoidError, AvoidParams, AvoidReport, avoid};
pub use onionskin_mirror::{CollectionsParams, CollectionsSummary, collections};
pub use onionskin_scan::{ScanError, ScanParams, ScanSummary, scan};
pub use onionskin_similar::{SimilarParams, SimilarSummary, Survivor, similar};
pub use onionskin_study::size::{SizeError, SizeParams, SizeReport};
pub use onionskin_study::{CompareParams, ReportError, ReportParams, compare, study};
pub use run::{RunError, RunParams, RunSummary, run};
