//! Webs with planted copies and known answers, and naive oracles.
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
