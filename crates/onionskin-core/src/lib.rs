//! Tokens, chunkings, Rabin fingerprints, sketches and features: the mathematics of resemblance.
//!
//! A document is text. It becomes canonical [`token`]s, the tokens become [`chunk`]s, every chunk a
//! Rabin fingerprint ([`rabin`]), the set of fingerprints a [`sketch`] of minima, and the sketch a
//! handful of [`feature`]s. [`Analyzer`] does all of it in one pass with scratch memory of its own;
//! a [`Recipe`] says how.
//!
//! ```
//! use onionskin_core::{Analyzer, Recipe};
//!
//! let recipe: Recipe = "w4-rabin64-6x14r2+w4".parse()?;
//! let mut analyzer = Analyzer::new(&recipe, 1);
//! let analysis = analyzer.analyze("A rose is a rose is a rose.");
//! assert_eq!(analysis.tokens(), 8);
//! assert_eq!(analysis.chunks(0).len(), 3);
//! # Ok::<(), onionskin_core::RecipeError>(())
//! ```
//!
//! This crate knows nothing of files, threads or clocks. What it computes from the same text,
//! recipe and seed never changes: the polynomials, the permutations and the character tables are
//! part of the source and pinned by tests.

mod analyze;
pub mod calendar;
pub mod chunk;
pub mod csv;
pub mod feature;
pub mod format;
pub mod gf2;
mod id;
mod mix;
pub mod rabin;
mod recipe;
mod set;
mod simd;
pub mod sketch;
mod spelled;
mod table;
pub mod token;
pub mod unicode;
mod union_find;

pub use analyze::{Analysis, Analyzer, TextFingerprinter};
pub use chunk::Chunking;
pub use feature::FeatureFilter;
pub use id::{
    ClusterId, CollectionId, DocId, Fingerprint, Id, Packed, ReplicaId, Resemblance, RuleId, SiteId, SlotId,
    Threshold,
};
pub use mix::{SplitMix64, scramble};
pub use recipe::{Minwise, Recipe, RecipeError, SketchScheme};
pub use set::FingerprintSet;
pub use table::FingerprintTable;
pub use union_find::UnionFind;
