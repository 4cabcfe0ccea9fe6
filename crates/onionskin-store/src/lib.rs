//! The atlas: a folder of Parquet tables and a manifest, written so that a kill at any moment loses
//! nothing finished.
//!
//! This crate stores rows and knows how they are written, not how they are computed. Its parts,
//! from the ground up:
//!
//! - [`MemoryBudget`], [`process`] and [`disk`]: what a job may use and what it did use;
//! - [`storage`]: the few file operations that write, behind a seam, so that tests can make each of
//!   them fail;
//! - [`cancel`]: stopping a stage from outside;
//! - [`progress`] and [`costs`]: what a stage reports while it works, and what it has cost;
//! - [`raw`]: files of fixed-width records in checksummed blocks;
//! - [`sort`]: external merge sort within a memory budget;
//! - [`schema`] and [`table`]: the tables of the atlas, their writers and readers;
//! - [`manifest`] and [`atlas`]: which files belong to the atlas, and whether they are whole;
//! - [`staging`]: several tables produced at once, in commits that survive a crash;
//! - [`untrusted`]: every parser of this crate as a function of bytes, for fuzzing.
//!
//! The file formats are described byte by byte in `docs/format.md` of the repository.

pub mod atlas;
mod boxed;
mod budget;
pub mod cancel;
pub mod costs;
pub mod disk;
pub mod join;
pub mod json;
pub mod manifest;
pub mod process;
pub mod progress;
pub mod raw;
pub mod schema;
pub mod sort;
pub mod spelled;
pub mod stage;
pub mod staging;
pub mod storage;
pub mod table;
#[cfg(any(test, feature = "test-support"))]
pub mod testing;
pub mod untrusted;

pub use atlas::{Atlas, AtlasError};
pub use budget::{MemoryBudget, ParseBudgetError};
pub use disk::IoError;
pub use manifest::Manifest;
pub use progress::{Event, Progress, Quiet};
pub use schema::{Table, TableName};
pub use stage::{Stage, StageName, StageRecord, TooLittleMemory};
pub use staging::{Checkpoint, StageParams, Staging, StagingError};
pub use table::{PartMeta, TableError};
