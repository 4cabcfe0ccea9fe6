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
//! | [`report()`] | measures how much is duplicated and where, and writes a page, tables and figures |
//! | [`dedup()`] | lists what is kept and removed, and writes filtered copies of the inputs |
//! | [`explain()`], [`evaluate()`] | evidence for a pair; agreement with known answers |
//! | [`size::size()`] | relative sizes of crawls, lists and search engines |
//! | [`seen`] | the online filter: has this document been seen? |
//!
//! The crates behind these functions are re-exported as modules, so a program depends on
//! `onionskin` alone. Summaries implement `serde::Serialize`, with the fields that the command
//! line, the server and the Python package show.
//!
//! # Example
//!
//! The whole job on three pages, two of which say nearly the same, and then the pages without the
//! duplicate:
//!
//! ```
//! use onionskin::{Atlas, DedupParams, Quiet, RunParams, ScanParams, Search, dedup, run};
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let dir = tempfile::tempdir()?;
//!     let pages = dir.path().join("pages.jsonl");
//!     std::fs::write(
//!         &pages,
//!         r#"{"url": "http://a.example/", "text": "A rose by any other name would smell as sweet, said Juliet"}
//! {"url": "http://b.example/", "text": "A rose by any other name would smell as sweet, said Romeo"}
//! {"url": "http://c.example/", "text": "Something else entirely is written on this page of mine"}
//! "#,
//!     )?;
//!
//!     let atlas = dir.path().join("atlas");
//!     let mut params = RunParams::new(ScanParams::new(vec![pages.display().to_string()], atlas.clone()));
//!     params.similar.search = Search::Resemblance { threshold: 0.7, filter: None, exact: true };
//!     let summary = run(&params, &Quiet)?;
//!     let similar = summary.similar.summary().expect("a new atlas is searched");
//!     assert_eq!((similar.near_pairs, similar.clusters.clusters), (1, 1));
//!     assert!(atlas.join("report/report.html").exists());
//!
//!     for pair in Atlas::open(&atlas)?.pairs()? {
//!         let pair = pair?;
//!         println!("documents {} and {}: resemblance {:.2}", pair.a, pair.b, pair.resemblance);
//!     }
//!
//!     let written = dedup(&DedupParams::new(atlas, dir.path().join("deduplicated")), &Quiet)?;
//!     assert_eq!((written.kept.documents, written.removed.documents), (2, 1));
//!     Ok(())
//! }
//! ```

mod causes;
pub mod run;
pub mod seen;
#[cfg(test)]
mod tests;

pub use causes::causes;
pub use onionskin_core as core;
pub use onionskin_core::{Chunking, FeatureFilter, Recipe, Threshold};
pub use onionskin_corpus as corpus;
pub use onionskin_corpus::{Format, Options};
pub use onionskin_dedup as dedup;
pub use onionskin_explain::{evaluate, explain};
pub use onionskin_extract as extract;
pub use onionskin_mirror as mirror;
pub use onionskin_scan as scan;
pub use onionskin_similar as similar;
pub use onionskin_store as store;
pub use onionskin_store::{Atlas, Event, MemoryBudget, Progress, Quiet};
pub use onionskin_study as study;
pub use onionskin_study::{report, size};
pub use onionskin_warc as warc;

pub use onionskin_dedup::{DedupError, DedupParams, DedupSummary, dedup};
pub use onionskin_explain::{
    EvaluateError, EvaluateParams, Evaluation, ExplainError, ExplainParams, Explanation,
};
pub use onionskin_mirror::avoid::{self, AvoidError, AvoidParams, AvoidReport, avoid};
pub use onionskin_mirror::{CollectionsParams, CollectionsSummary, Merge, Trivial, collections};
pub use onionskin_scan::{ScanError, ScanParams, ScanSummary, scan};
pub use onionskin_similar::cluster::Clustering;
pub use onionskin_similar::{Search, SimilarError, SimilarParams, SimilarSummary, Survivor, similar};
pub use onionskin_study::size::{SizeError, SizeParams, SizeReport};
pub use onionskin_study::{CompareParams, ReportError, ReportParams, ReportSummary, compare, study};
pub use run::{Outcome, RunError, RunParams, RunSummary, run};
