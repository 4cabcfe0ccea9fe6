//! What a worker makes of one task: columns, ready to be written.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use onionskin_core::{Analyzer, Recipe};
use onionskin_corpus::{
    BadRecord, Document, InputFailure, Position, Scratch, SkipReason, SkippedFile, Task, Visitor,
};
use xxhash_rust::xxh3::xxh3_64;

/// Documents of one task. The buffers travel back to the workers when they have been written.
#[derive(Default)]
pub(crate) struct Batch {
    /// The number of the task in the stream.
    pub number: u64,
    pub source: u32,
    /// Where the stream stands after the task.
    pub position: Position,
    pub input_bytes: u64,
    /// Stored bytes of all inputs up to its end.
    pub read_bytes: u64,
    pub text_bytes: u64,
    pub rows: Vec<Row>,
    /// The strings of all rows, one after the other.
    pub strings: String,
    /// Fingerprints of links, of all rows.
    pub links: Vec<u64>,
    /// Fingerprints of chunks, of all rows, for each chunking.
    pub chunks: Vec<Vec<u64>>,
    /// How many chunks each row has: rows × chunkings.
    pub chunk_counts: Vec<u32>,
    /// Of rows that are not empty.
    pub sketches: Vec<u32>,
    pub features: Vec<u64>,
    pub bad_records: Vec<BadRecord>,
    pub skipped: BTreeMap<SkipReason, u64>,
    /// Files that are among the skipped.
    pub skipped_files: Vec<SkippedFile>,
    /// Records whose text is null or not there.
    pub no_text: u64,
    /// Relative links of documents without a URL.
    pub links_unresolved: u64,
    /// The fields of the first record that has no text field.
    pub other_fields: Option<String>,
    /// The input failed: nothing here is to be written.
    pub failure: Option<InputFailure>,
    pub panic: Option<String>,
    /// More of the same task follows.
    pub more: bool,
}

/// What a skipped record holds beside its own size: an explanation of at most this many bytes.
const EXPLANATION_BYTES: usize = 300;

/// One document. Its strings are lengths, in this order, into the strings of the batch; absent is
/// `None`. [`Batch::documents`] takes them apart.
pub(crate) struct Row {
    pub source: u32,
    pub offset: u64,
    pub bytes: u64,
    pub tokens: u64,
    pub text_fp: Option<u64>,
    pub fetched_at: Option<i64>,
    pub payload_sha1: Option<[u8; 20]>,
    pub revisit: bool,
    pub url_fp: Option<u64>,
    pub links: u32,
    pub id: Option<u32>,
    pub url: Option<u32>,
    pub site: Option<u32>,
    pub title: Option<u32>,
    pub canonical: Option<u32>,
    pub media_type: u32,
}

/// The strings of a document.
#[derive(Clone, Copy)]
pub(crate) struct Strings<'a> {
    pub id: Option<&'a str>,
    pub url: Option<&'a str>,
    pub host: Option<&'a str>,
    pub title: Option<&'a str>,
    pub canonical_url: Option<&'a str>,
    pub media_type: &'a str,
}

impl Strings<'_> {
    /// How long they are together.
    pub fn bytes(&self) -> usize {
        let some = [self.id, self.url, self.host, self.title, self.canonical_url];
        some.into_iter().flatten().map(str::len).sum::<usize>() + self.media_type.len()
    }
}

/// The name under which links and documents meet. Two different addresses meet by chance once in
/// 2⁶⁴ pairs.
pub(crate) fn url_fingerprint(url: &str) -> u64 {
    xxh3_64(url.as_bytes())
}

impl Batch {
    /// Empties the batch for a task.
    pub fn begin(&mut self, number: u64, task: &Task) {
        self.clear();
        self.number = number;
        self.source = task.source();
        self.position = task.position();
        self.input_bytes = task.input_bytes();
        self.read_bytes = task.read_bytes();
    }

    /// Empties the batch.
    pub fn clear(&mut self) {
        self.text_bytes = 0;
        self.rows.clear();
        self.strings.clear();
        self.links.clear();
        self.chunks.iter_mut().for_each(Vec::clear);
        self.chunk_counts.clear();
        self.sketches.clear();
        self.features.clear();
        self.bad_records.clear();
        self.skipped.clear();
        self.skipped_files.clear();
        self.no_text = 0;
        self.links_unresolved = 0;
        self.other_fields = None;
        self.failure = None;
        self.panic = None;
        self.more = false;
    }

    /// Memory that its contents take.
    pub fn held_bytes(&self) -> usize {
        let numbers =
            self.links.len() + self.features.len() + self.chunks.iter().map(Vec::len).sum::<usize>();
        self.rows.len() * size_of::<Row>()
            + self.strings.len()
            + 8 * numbers
            + 4 * (self.chunk_counts.len() + self.sketches.len())
            + self.bad_records.len() * (size_of::<BadRecord>() + EXPLANATION_BYTES)
            + self.skipped.len() * (size_of::<SkipReason>() + EXPLANATION_BYTES)
            + self.skipped_files.len() * (size_of::<SkippedFile>() + EXPLANATION_BYTES)
    }

    /// Gives memory back if one giant record made the buffers larger than any batch should be.
    pub fn shrink(&mut self, limit: usize) {
        let words = self.links.capacity() + self.features.capacity();
        let words = words + self.chunks.iter().map(Vec::capacity).sum::<usize>();
        let rows = self.rows.capacity() * size_of::<Row>() + 4 * self.sketches.capacity();
        let bad = self.bad_records.capacity() * size_of::<BadRecord>();
        if 8 * words + rows + bad + self.strings.capacity() > limit {
            *self = Batch::default();
        }
    }

    /// Puts in the documents of the task that it was begun for. A panic on the way is an error with
    /// its message; what is in the buffers then is not to be trusted.
    pub fn fill(
        &mut self,
        task: Task,
        analyzer: &mut Analyzer,
        recipe: &Recipe,
        scratch: &mut Scratch,
    ) -> Result<(), String> {
        fenced(|| task.run(scratch, &mut self.visitor(analyzer, recipe)))
    }

    /// All documents, each with its strings.
    pub fn documents(&self) -> impl Iterator<Item = (&Row, Strings<'_>)> {
        let mut rest = self.strings.as_str();
        self.rows.iter().map(move |row| {
            let mut take = |length: u32| {
                let (text, after) = rest.split_at(length as usize);
                rest = after;
                text
            };
            let strings = Strings {
                id: row.id.map(&mut take),
                url: row.url.map(&mut take),
                host: row.site.map(&mut take),
                title: row.title.map(&mut take),
                canonical_url: row.canonical.map(&mut take),
                media_type: take(row.media_type),
            };
            (row, strings)
        })
    }

    /// The chunks of each row by the nth chunking that is kept.
    pub fn chunks_by_row(&self, nth: usize) -> impl Iterator<Item = &[u64]> {
        let mut rest = self.chunks.get(nth).map_or(&[][..], Vec::as_slice);
        self.chunk_counts.iter().skip(nth).step_by(self.chunks.len().max(1)).map(move |count| {
            let (chunks, after) = rest.split_at(*count as usize);
            rest = after;
            chunks
        })
    }

    pub fn visitor<'a>(&'a mut self, analyzer: &'a mut Analyzer, recipe: &Recipe) -> BatchVisitor<'a> {
        self.chunks.resize_with(recipe.kept_chunks().len(), Vec::new);
        BatchVisitor { batch: self, analyzer, keep_sketches: recipe.keeps_sketches() }
    }
}

/// Runs a task; a panic is an error with its message.
pub(crate) fn fenced(run: impl FnOnce()) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| panic_message(panic.as_ref()))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Fingerprints documents as they are read.
pub(crate) struct BatchVisitor<'a> {
    pub batch: &'a mut Batch,
    analyzer: &'a mut Analyzer,
    keep_sketches: bool,
}

impl BatchVisitor<'_> {
    /// See [`Analyzer::memory_for`].
    pub fn memory_for(&self, text: &str) -> usize {
        self.analyzer.memory_for(text)
    }

    fn keep(&mut self, text: &str) -> u32 {
        self.batch.strings.push_str(text);
        text.len() as u32
    }

    fn keep_some(&mut self, text: Option<&str>) -> Option<u32> {
        text.filter(|text| !text.is_empty()).map(|text| self.keep(text))
    }
}

impl Visitor for BatchVisitor<'_> {
    fn document(&mut self, document: Document<'_>) {
        let analysis = self.analyzer.analyze(document.text);
        let batch = &mut *self.batch;
        batch.text_bytes += document.text.len() as u64;
        for (nth, column) in batch.chunks.iter_mut().enumerate() {
            let chunks = analysis.chunks(nth);
            column.extend_from_slice(chunks);
            batch.chunk_counts.push(chunks.len() as u32);
        }
        if self.keep_sketches {
            batch.sketches.extend_from_slice(analysis.sketch());
        }
        batch.features.extend_from_slice(analysis.features());
        let (tokens, text_fp) = (analysis.tokens(), analysis.text_fp().map(|fingerprint| fingerprint.0));
        if document.links_over_limit > 0 {
            *batch.skipped.entry(SkipReason::LinkOverLimit).or_default() += document.links_over_limit;
        }
        batch.links_unresolved += document.links_unresolved;
        batch.links.extend(document.links.iter().map(|link| url_fingerprint(link)));
        let row = Row {
            source: document.source,
            offset: document.offset,
            bytes: document.bytes,
            tokens,
            text_fp,
            fetched_at: document.fetched_at,
            payload_sha1: document.payload_sha1,
            revisit: document.revisit,
            url_fp: document.url.map(url_fingerprint),
            links: document.links.len() as u32,
            id: self.keep_some(document.id),
            url: self.keep_some(document.url),
            site: self.keep_some(document.site),
            title: self.keep_some(Some(document.title)),
            canonical: self.keep_some(document.canonical),
            media_type: self.keep(document.media_type),
        };
        self.batch.rows.push(row);
    }

    fn bad_record(&mut self, mut bad: BadRecord) {
        bad.reason.shorten(EXPLANATION_BYTES);
        self.batch.bad_records.push(bad);
    }

    fn skipped(&mut self, reason: SkipReason) {
        *self.batch.skipped.entry(reason).or_default() += 1;
    }

    fn no_text(&mut self, _: (u32, u64), fields: &mut dyn FnMut() -> Option<String>) {
        self.batch.no_text += 1;
        if self.batch.other_fields.is_none() {
            self.batch.other_fields = fields();
        }
    }

    fn skipped_file(&mut self, file: SkippedFile) {
        self.skipped(file.reason.clone());
        self.batch.skipped_files.push(file);
    }

    fn failed(&mut self, failure: InputFailure) {
        self.batch.failure.get_or_insert(failure);
    }
}
