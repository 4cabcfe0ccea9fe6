//! Inputs become documents.
//!
//! The problem: a corpus is whatever people have, from one pipe of JSON lines to a bucket of WARC
//! files beside a folder of saved pages, and all of it is partly broken. Reading it must keep every
//! core busy, stay within bounded memory, survive any damage, and give the same documents in the
//! same order every time, also when a killed run goes on where it stopped.
//!
//! The naive way is one thread that opens one file after another and reads it from the front; it is
//! simple, ordered, and uses one core. Here the same order is kept by numbering units of work
//! instead:
//!
//! ```text
//!  inputs ──discover──▶ Sources ──Tasks::next_task──▶ Task, Task, Task …        (one at a time, under a lock, cheap)
//!                                                       │     │     │
//!                                                       ▼     ▼     ▼
//!                                                    Task::run on any thread ──▶ Visitor: documents, bad records, skips
//! ```
//!
//! The stream of tasks depends on the inputs and the [`Options`] alone. Running the tasks in any
//! order and putting their results together in stream order equals reading everything from front to
//! back. Formats that can be entered in the middle (plain JSON lines, WARC with a gzip member for
//! each record, Parquet, folders of files) are split without being read; the others are decoded in
//! `next_task`, a block at a time, and parsed by the worker that runs the task.
//!
//! ```
//! use std::sync::Arc;
//! use onionskin_corpus::{
//!     BadRecord, Document, InputFailure, Options, Scratch, SkipReason, Tasks, Visitor, discover,
//! };
//!
//! struct Print(Vec<String>);
//! impl Visitor for Print {
//!     fn document(&mut self, document: Document<'_>) { self.0.push(document.text.to_owned()); }
//!     fn bad_record(&mut self, bad: BadRecord) { panic!("{}", bad.reason); }
//!     fn skipped(&mut self, _: SkipReason) {}
//!     fn failed(&mut self, failure: InputFailure) { panic!("{}", failure.detail); }
//! }
//!
//! let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("a.jsonl");
//! std::fs::write(&path, "{\"text\": \"a rose\"}\n{\"text\": \"is a rose\"}\n").unwrap();
//!
//! let options = Arc::new(Options::default());
//! let sources = discover(&[path.display().to_string()], &options).unwrap();
//! let mut tasks = Tasks::new(sources.into(), Arc::clone(&options));
//! let (mut scratch, mut seen) = (Scratch::new(&options), Print(Vec::new()));
//! while let Some(task) = tasks.next_task() {
//!     task.run(&mut scratch, &mut seen);
//! }
//! assert_eq!(seen.0, ["a rose", "is a rose"]);
//! ```

mod ahead;
mod csv;
mod decode;
mod discover;
mod document;
mod feed;
mod fields;
mod json;
mod jsonl;
mod lines;
mod lookup;
mod options;
mod parquet;
mod record;
#[cfg(feature = "remote")]
mod remote;
mod reopened;
mod shares;
mod sniff;
mod source;
mod task;
mod tree;
mod warc;
mod watch;

#[cfg(test)]
mod testing;

pub use onionskin_extract::{ExtractOptions, PdfTool};

pub use ahead::Ahead;
pub use csv::{CsvItem, CsvProblem, CsvRecords};
pub use decode::{decoder, decoder_within};
pub use discover::{DiscoverError, discover};
pub use document::{BadReason, BadRecord, Document, InputFailure, SkipReason, SkippedFile, Visitor};
pub use fields::FieldNames;
pub use lookup::LookupError;
pub use options::{BaseUrl, Format, NotABase, Options, UnknownFormat};
pub use parquet::{ParquetText, ParquetTexts};
pub use reopened::{JsonField, JsonLine, JsonLineReader};
pub use shares::Shares;
pub use sniff::Encoding;
pub use source::Source;
pub use task::{Position, ResumeError, Scratch, Task, Tasks, TextRow};
pub use watch::watched;
