//! One document out of a source, by its place.
//!
//! Whoever wants to see the text of a document again knows its source and its offset. The naive way
//! reads the source from the front until the document comes by, which for the last page of a
//! gigabyte of WARC takes a minute. Where a format can be entered in the middle, we go there at
//! once: a line of plain JSON lines, a gzip member of a WARC file, a record of a plain one, a row
//! of Parquet, a file of a folder. Elsewhere the source is decoded in order, but of each block only
//! the record at the place is parsed and its text extracted, and nothing after it is read.

use std::io::SeekFrom;
use std::sync::Arc;

use onionskin_warc::Reader;

use crate::ahead::Ahead;
use crate::document::{BadReason, BadRecord, Document, InputFailure, Loss, SkipReason, Visitor};
use crate::feed::{Feed, Next, Work};
use crate::options::{Format, Options};
use crate::parquet::{self, ParquetFile};
use crate::sniff::Encoding;
use crate::source::{Location, Source};
use crate::task::{Scratch, Task};
use crate::warc::{self, RecordRunner};
use crate::watch::Watch;
use crate::{jsonl, tree};

/// Why there is no document at a place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// A pipe has been read.
    #[error("{name}: a pipe cannot be read again")]
    Stream {
        /// The source.
        name: String,
    },
    /// Who asked does not want to know any more.
    #[error("stopped on request")]
    Stopped,
    /// Nothing begins there.
    #[error("{place}: there is no document; the input has changed")]
    NotThere {
        /// The place, spelled for people.
        place: String,
    },
    /// What is there cannot be read.
    #[error("{place}: {reason}")]
    Bad {
        /// The place, spelled for people.
        place: String,
        /// Why it cannot be read.
        reason: String,
    },
}

impl Source {
    /// Reads the document whose [`offset`](Document::offset) this is and hands it to `found`. In a
    /// compressed WARC file several records may lie in one member and then have one offset; all of
    /// them are handed out, in order. The documents say that they are from source 0.
    ///
    /// # Errors
    ///
    /// When the source is a pipe, or there is no readable document at the offset.
    pub fn read_at(
        &self,
        offset: u64,
        options: &Options,
        scratch: &mut Scratch,
        found: &mut dyn FnMut(Document<'_>),
    ) -> Result<(), LookupError> {
        self.read_at_until(offset, options, scratch, &|| false, found)
    }

    /// As [`Source::read_at`], and gives up when told to. Where a source has to be read from the
    /// front, that is asked at every block.
    pub fn read_at_until(
        &self,
        offset: u64,
        options: &Options,
        scratch: &mut Scratch,
        stop: &dyn Fn() -> bool,
        found: &mut dyn FnMut(Document<'_>),
    ) -> Result<(), LookupError> {
        if self.is_stream() {
            return Err(LookupError::Stream { name: self.name.clone() });
        }
        let mut wanted = Wanted { offset, found, documents: 0, passed: false, bad: None };
        let watch = Watch::default();
        if !self.enter_at(offset, options, (&mut *scratch, &watch), &mut wanted) || wanted.documents == 0 {
            wanted.bad = None;
            self.run_until(offset, options, (scratch, &watch), stop, &mut wanted);
        }
        if wanted.documents == 0 && stop() {
            return Err(LookupError::Stopped);
        }
        // Whatever was made of it, the cause is below.
        if let (0, Some(failure)) = (wanted.documents, watch.failure()) {
            wanted.bad = Some(BadReason::Io { detail: failure.detail });
        }
        let place = || self.place(offset);
        match (wanted.documents, wanted.bad) {
            (0, Some(reason)) => Err(LookupError::Bad { place: place(), reason: reason.to_string() }),
            (0, None) => Err(LookupError::NotThere { place: place() }),
            _ => Ok(()),
        }
    }

    /// Goes to the place, where the format allows it. `false` where it does not.
    fn enter_at(
        &self,
        offset: u64,
        options: &Options,
        (scratch, watch): (&mut Scratch, &Watch),
        wanted: &mut Wanted<'_>,
    ) -> bool {
        let only = offset..offset.saturating_add(1);
        match (self.format, &self.location) {
            (_, Location::Tree(files)) => {
                if let Some(at) = usize::try_from(offset).ok().filter(|at| *at < files.len()) {
                    tree::run(files, at..at + 1, 0, options, (scratch, watch), wanted);
                }
                true
            }
            (Format::Jsonl, _) if self.encoding == Encoding::Plain => {
                if offset < self.bytes {
                    jsonl::run_range(self.open(watch), 0, only, self.gap(), options, scratch, wanted);
                }
                true
            }
            (Format::Parquet, _) => {
                parquet_row(self, offset, options, (scratch, watch), wanted);
                true
            }
            (Format::Warc, Location::WaczMember { .. }) => false,
            (Format::Warc, _) => {
                let Ok(mut input) = self.open(watch) else { return false };
                let runner = &mut RecordRunner {
                    source: 0,
                    options,
                    extraction: &mut scratch.extraction,
                    visitor: wanted,
                };
                match self.encoding {
                    Encoding::Gzip => {
                        let splits = onionskin_warc::is_splittable_gzip(&mut input).unwrap_or(false);
                        if splits {
                            runner.range(input, only);
                        }
                        splits
                    }
                    Encoding::Plain => {
                        if input.seek(SeekFrom::Start(offset)).is_err() {
                            return false;
                        }
                        let Ok(reader) = Reader::new(input, warc::limits(options)) else { return false };
                        runner.first(reader, offset);
                        true
                    }
                    Encoding::Zstd => false,
                }
            }
            _ => false,
        }
    }

    /// Reads from the front, and of each block only what is wanted.
    fn run_until(
        &self,
        offset: u64,
        options: &Options,
        (scratch, watch): (&mut Scratch, &Watch),
        stop: &dyn Fn() -> bool,
        wanted: &mut Wanted<'_>,
    ) {
        let sources: Arc<[Source]> = Arc::new([self.clone()]);
        let shared = Arc::new(options.clone());
        let mut feed = Feed::open(self, options, watch, &Ahead::default());
        while let Some(Next { mut work, input_bytes, last }) = feed.next(options, &mut |_| {}) {
            let before = wanted.documents;
            if narrow(&mut work, offset, wanted) {
                let task = Task::of(&sources, &shared, input_bytes, (work, watch.clone()));
                task.run(scratch, wanted);
            }
            // Records of one member may go on in the next block; a block without any ends the
            // search.
            if stop() || last || wanted.passed || (before > 0 && wanted.documents == before) {
                break;
            }
        }
    }
}

/// Leaves in a block what begins at the offset. `false` when nothing does.
fn narrow(work: &mut Work, offset: u64, wanted: &mut Wanted<'_>) -> bool {
    match work {
        Work::JsonlBlock(block) => {
            let end = block.offset + block.bytes.len() as u64;
            wanted.passed = offset < end;
            if let Some(loss) = &block.failure {
                wanted.passed |= offset < loss.offset;
            }
            block.keep_line(offset)
        }
        Work::Csv(block) => {
            wanted.passed = block.keep_row(offset);
            wanted.passed
        }
        Work::WarcBlock(records) => records.keep_at(offset, &mut wanted.passed),
        Work::JsonlRange(range) | Work::WarcRange(range) => range.contains(&offset),
        Work::RowGroup(_, group) => group.first_row <= offset,
        Work::Bad(loss) => loss.offset == offset || offset == 0,
        Work::Rows(_) | Work::WaczMember | Work::Tree(..) | Work::Whole(_) => true,
    }
}

fn parquet_row(
    source: &Source,
    row: u64,
    options: &Options,
    (scratch, watch): (&mut Scratch, &Watch),
    visitor: &mut dyn Visitor,
) {
    let file = ParquetFile::open(source, options, watch).map_err(|unusable| unusable.reason);
    let read = file.and_then(|file| file.row(row, options));
    match read {
        Ok(Some(rows)) => parquet::run_rows(&rows, 0, options, &mut scratch.extraction, visitor),
        Ok(None) => {}
        Err(reason) => visitor.bad_record(Loss::record(row, 0, reason).of(0)),
    }
}

/// Lets through what is at the place.
struct Wanted<'f> {
    offset: u64,
    found: &'f mut dyn FnMut(Document<'_>),
    documents: u64,
    /// Something came that begins after the place.
    passed: bool,
    bad: Option<BadReason>,
}

impl Visitor for Wanted<'_> {
    fn document(&mut self, document: Document<'_>) {
        self.passed |= document.offset > self.offset;
        if document.offset == self.offset {
            self.documents += 1;
            (self.found)(document);
        }
    }

    fn bad_record(&mut self, bad: BadRecord) {
        self.passed |= bad.offset > self.offset;
        if bad.offset == self.offset {
            self.bad.get_or_insert(bad.reason);
        }
    }

    fn skipped(&mut self, _: SkipReason) {}

    fn failed(&mut self, failure: InputFailure) {
        self.bad.get_or_insert(BadReason::Io { detail: failure.detail });
    }
}

#[cfg(test)]
mod tests;
