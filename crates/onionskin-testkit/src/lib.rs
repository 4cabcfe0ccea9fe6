//! Webs with planted copies and known answers, and naive oracles.
//!
//! Whoever looks for copies needs a web in which it is known where they are. Real crawls do not
//! come with answers, and hand-made ones are small. Here a web is generated from a specification
//! and a seed, at any size: sites with trees of linked pages, exact copies, edits at a chosen
//! resemblance, full, partial and version-skewed mirrors, host aliases, break points, boilerplate,
//! calendars, clusters of Zipf sizes, parts that cannot be reached. Beside the pages comes the
//! truth, exact and complete.
//!
//! ```
//! use onionskin_testkit::{TruthOptions, Web, WebSpec};
//!
//! let spec = WebSpec::preset("demo", 300, 1)?;
//! let web = Web::new(&spec)?;
//! let mut jsonl = Vec::new();
//! web.write_jsonl(&mut jsonl, 0..web.n_pages(), &mut |_pages, _bytes| {})?;
//! let mut truth = Vec::new();
//! let summary = web.write_truth(&mut truth, TruthOptions::default(), &mut |_, _| {})?;
//! assert_eq!(summary.documents, 300);
//! assert!(summary.exact_copies > 0 && summary.full_mirrors == 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How it works
//!
//! The naive way would build the web in memory, copy pages about, and write it out. Twenty
//! gigabytes do not fit. So nothing is kept but a table of sites. What page *i* says, where its
//! links lead, and of what it is a copy are all functions of the seed and *i* (`rng`, `pool`,
//! `web`); the truth is found by running the same functions backwards (`truth`). Pages can be made
//! in any order, by any number of threads, and are always the same.
//!
//! **Invariant:** this crate depends on no other crate of the project. An oracle that shared code
//! with what it judges would share its mistakes.
#![forbid(unsafe_code)]

mod draft;
mod html;
mod math;
pub mod naive;
mod output;
mod page;
mod pool;
mod rng;
mod spec;
mod truth;
mod vocab;
mod warc;
mod web;

pub use draft::pairs_with_resemblance;
pub use html::Charset;
pub use naive::naive_overlap;
pub use output::{Progress, ShardSink, WriteError, Written};
pub use page::{Composer, GeneratedPage};
pub use spec::{
    ClusterKind, ClusterSize, ClusterSpec, IslandSpec, Lengths, MirrorKind, PoolSpec, Preset, ReplicaSpec,
    SpecError, TargetSpec, TemplateSpec, WebSpec,
};
pub use truth::{ALL_PAIRS_UP_TO, CopyKind, Fact, Pairs, Planted, Summary, TruthOptions};
pub use vocab::Script;
pub use warc::WarcOptions;
pub use web::Web;
