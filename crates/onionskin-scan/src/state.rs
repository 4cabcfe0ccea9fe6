//! What a scan must know to go on: kept in the journal with every commit.

use std::collections::BTreeMap;

use onionskin_corpus::{Position, SkipReason, SkippedFile};
use serde::{Deserialize, Serialize};

/// How many bad records are kept with place and reason; the rest is counted.
pub(super) const BAD_RECORD_EXAMPLES: usize = 100;

/// How many skipped files are kept with place and reason; the rest is counted.
pub(super) const SKIPPED_FILE_EXAMPLES: usize = 100;

/// How many inputs without a document are kept with a reason; the rest is counted.
pub(super) const UNDOCUMENTED_EXAMPLES: usize = 100;

/// How many of them for one reason, so that a thousand pictures do not hide the file that matters.
pub(super) const SKIPPED_FILES_PER_REASON: u64 = 10;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    source: u32,
    task: u32,
    pub documents: u64,
    pub empty_documents: u64,
    pub revisits: u64,
    pub tokens: u64,
    pub text_bytes: u64,
    pub input_bytes: u64,
    pub sites: u64,
    pub links_found: u64,
    pub links: u64,
    /// Bytes that sorting links wrote to disk.
    pub spilled_bytes: u64,
    pub chunks: BTreeMap<String, u64>,
    pub bad_records: BTreeMap<String, u64>,
    pub skipped: BTreeMap<String, u64>,
    pub bad_record_examples: Vec<(String, String)>,
    /// Bytes of input that the bad records take. (Absent from scans that began under 0.1.0.)
    #[serde(default)]
    pub bad_record_bytes: u64,
    /// Skipped files with place and reason.
    #[serde(default)]
    pub skipped_files: Vec<(String, String)>,
    /// Records whose text is null or not there.
    #[serde(default)]
    pub no_text: u64,
    /// Relative links of documents without a URL.
    #[serde(default)]
    pub links_unresolved: u64,
    /// Documents without a URL.
    #[serde(default)]
    pub documents_without_url: u64,
    /// What documents of records and rows have.
    #[serde(default)]
    pub fields: FieldCounts,
    /// Of inputs without a document so far: what came first of what is none.
    #[serde(default)]
    pub undocumented: BTreeMap<u32, String>,
    /// Documents and bad records of every source.
    pub per_source: Vec<(u64, u64)>,
}

/// Documents that were records of JSON or rows of a table, and how many of them have what stands in
/// a field of its own.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldCounts {
    pub documents: u64,
    pub with_id: u64,
    pub with_url: u64,
    pub with_date: u64,
}

impl FieldCounts {
    pub fn count(&mut self, id: bool, url: bool, date: bool) {
        self.documents += 1;
        self.with_id += u64::from(id);
        self.with_url += u64::from(url);
        self.with_date += u64::from(date);
    }
}

impl State {
    pub fn new(sources: usize) -> State {
        State { per_source: vec![(0, 0); sources], ..State::default() }
    }

    pub fn position(&self) -> Position {
        Position { source: self.source, task: self.task }
    }

    pub fn set_position(&mut self, position: Position) {
        (self.source, self.task) = (position.source, position.task);
    }

    /// Keeps why an input has no document so far, if none has a better reason.
    pub fn note_undocumented(&mut self, source: u32, is_field: bool, reason: impl FnOnce() -> String) {
        let has_documents = self.per_source.get(source as usize).is_some_and(|(documents, _)| *documents > 0);
        let is_known = self.undocumented.contains_key(&source);
        if has_documents || (is_known && !is_field) {
            return;
        }
        if is_known || self.undocumented.len() < UNDOCUMENTED_EXAMPLES {
            self.undocumented.insert(source, reason());
        }
    }

    pub fn bad_record_count(&self) -> u64 {
        self.bad_records.values().fold(0, |sum, records| sum.saturating_add(*records))
    }

    /// Counts a file that is skipped, and keeps its name if it is among the first.
    pub fn note_skipped_file(&mut self, place: String, file: &SkippedFile) {
        let reason = file.reason.to_string();
        let unreadable = file.reason == SkipReason::UnreadableFile;
        let kept = |(_, known): &&(String, String)| known.starts_with(&reason);
        let of_reason = self.skipped_files.iter().filter(kept).count() as u64;
        if self.skipped_files.len() < SKIPPED_FILE_EXAMPLES
            && (unreadable || of_reason < SKIPPED_FILES_PER_REASON)
        {
            let detail = if file.detail.is_empty() { String::new() } else { format!(": {}", file.detail) };
            self.skipped_files.push((place, reason + &detail));
        }
    }
}
