//! The one intake: how documents come in, what is asked about them, and how the answers read.
//!
//! The command line, the server and the Python module all ask the same index. Each of them used to
//! decide for itself what a document is called, what a threshold may be and which fields an answer
//! has, and they began to differ. Here it is decided once; the edges parse and format.
//!
//! ```text
//! JSON line, Parquet row ─▶ Incoming ─ TextFeatures ─▶ Prepared ─ Request ─▶ Answer ─▶ JSON
//!   (name; text or HTML)                 atlas ──────────▲
//! ```
//!
//! - [`Wanted`] opens an index, or creates one for a threshold.
//! - [`Documents`] and [`LineReader`] give [`Incoming`] documents; [`TextFeatures`] makes features
//!   of them, and [`AtlasDocuments`] reads those that a scan has made.
//! - [`Limits`] says what reading may take, and [`Gathered`] which documents are answered together.
//! - [`Request`] is a [`Verb`] and a [`Threshold`]; [`Intake::answer`], [`Seen::answer`] and
//!   [`Reader::answer`] give an [`Answer`] per document.
//! - [`Answer`], [`RemovedName`], [`IndexStats`] and [`VerifyAnswer`] are what `--json`, HTTP and
//!   Python show, under these names.
//!
//! ```
//! use onionskin_seen::intake::{Intake, LineReader, Request, Status, Verb, Wanted};
//! use onionskin_seen::Options;
//! use onionskin_store::MemoryBudget;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let dir = folder.path().join("seen");
//! let options = Options::new(MemoryBudget::from_mib(64));
//! let seen = Wanted::default().open_or_create(&dir, None, options)?;
//! let mut intake = Intake::new(seen.into(), 1);
//! let mut lines = LineReader::default();
//! let documents = vec![
//!     lines.read(br#"{"id": "a", "text": "some words of a page"}"#, || "-:1".to_owned()),
//!     lines.read(br#"{"id": "b", "html": "<p>Some words of a <b>page"}"#, || "-:2".to_owned()),
//!   ];
//!   let answers = intake.answer(documents, Request::new(Verb::AddIfNew))?;
//!   intake.commit()?;
//!   assert_eq!((answers[0].status, answers[1].status), (Status::New, Status::Exact));
//!   assert_eq!(serde_json::to_string(&answers[0])?, r#"{"name":"a","status":"new","added":true}"#);
//! # Ok(())
//! # }
//! ```
//!
//! [`Seen::answer`]: crate::Seen::answer
//! [`Reader::answer`]: crate::Reader::answer

mod answer;
mod atlas;
mod documents;
mod features;
mod limits;
mod open;
mod request;
mod scanned;

pub use answer::{Answer, Damage, IndexStats, MatchAnswer, RemovedName, Status, VerifyAnswer};
pub use atlas::{AtlasDocument, AtlasDocuments, AtlasDocumentsError, recipe_of};
pub use documents::{
    Documents, Fields, Incoming, InputError, LineReader, OtherFields, Prepared, place, read_names,
};
pub use features::{Features, TextFeatures};
pub use limits::{Gathered, Limits};
pub use open::{Index, Intake, OpenError, RECIPE, SEED, THRESHOLD, Wanted};
pub use request::{InvalidThreshold, Request, Threshold, UnknownVerb, UnknownVerify, Verb, Verify};

#[cfg(test)]
mod tests;
