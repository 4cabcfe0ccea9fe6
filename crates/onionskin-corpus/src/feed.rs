//! How each kind of source is cut into units of work.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use onionskin_warc::wacz::Wacz;

use crate::ahead::{Ahead, Pieces};
use crate::csv::{CsvBlock, CsvBlocks};
use crate::decode::{Steps, decoder_within, read_gently};
use crate::document::{BadReason, Loss};
use crate::lines::{Block, BlockReader};
use crate::options::{Format, Options};
use crate::parquet::{Batches, ParquetFile, RowGroup, Rows, Unusable};
use crate::sniff::Encoding;
use crate::source::{Location, Source, TreeFiles};
use crate::tree;
use crate::warc::{self, RecordBlocks, Records};
use crate::watch::Watch;

/// No task has more rows of a table than this, however short they are.
const MAX_ROWS: usize = 256 << 10;

type Stream = Box<dyn io::Read + Send>;

/// What is left of a source.
pub(crate) enum Feed {
    JsonlRanges(Ranges),
    JsonlBlocks(BlockReader<Stream>),
    Csv(Box<CsvBlocks<Stream>>),
    Parquet(Box<ParquetFeed>),
    WarcRanges(Ranges),
    WarcBlocks(Box<RecordBlocks<Stream>>),
    /// A compressed member of a WACZ, which one worker reads from front to back.
    WaczMember,
    Tree {
        files: Arc<TreeFiles>,
        next: usize,
    },
    /// A pipe that is one document.
    Whole(Stream),
    /// The source cannot be read on.
    Failed(Loss),
    Empty,
}

/// What a task does.
pub(crate) enum Work {
    JsonlRange(Range<u64>),
    JsonlBlock(Block),
    Csv(CsvBlock),
    RowGroup(Arc<ParquetFile>, RowGroup),
    Rows(Vec<Rows>),
    WarcRange(Range<u64>),
    WarcBlock(Records),
    WaczMember,
    Tree(Arc<TreeFiles>, Range<usize>),
    /// `None` when it is too large.
    Whole(io::Result<Option<Vec<u8>>>),
    Bad(Loss),
}

impl Work {
    /// Where the stream broke, so many stored bytes were left.
    pub(crate) fn note_rest(&mut self, bytes: u64) {
        let failure = match self {
            Work::JsonlBlock(block) => block.failure.as_mut(),
            Work::Csv(block) => block.failure.as_mut(),
            _ => None,
        };
        if let Some(loss) = failure {
            loss.bytes = bytes;
        }
    }
}

/// What a feed gives.
pub(crate) struct Next {
    pub(crate) work: Work,
    pub(crate) input_bytes: u64,
    /// Nothing of this source comes after it.
    pub(crate) last: bool,
}

/// A file cut by arithmetic.
pub(crate) struct Ranges {
    next: u64,
    end: u64,
}

impl Ranges {
    fn next(&mut self, step: u64, work: impl FnOnce(Range<u64>) -> Work) -> Option<Next> {
        if self.next >= self.end {
            return None;
        }
        let range = self.next..self.next.saturating_add(step).min(self.end);
        self.next = range.end;
        Some(Next { input_bytes: range.end - range.start, last: range.end == self.end, work: work(range) })
    }
}

impl Feed {
    /// What goes wrong with the input itself is noted by the watch.
    pub(crate) fn open(source: &Source, options: &Options, watch: &Watch, ahead: &Ahead) -> Feed {
        Feed::try_open(source, options, watch, ahead).unwrap_or_else(|Unusable { reason, records }| {
            Feed::Failed(Loss::record(0, source.bytes, reason).records(records))
        })
    }

    fn try_open(source: &Source, options: &Options, watch: &Watch, ahead: &Ahead) -> Result<Feed, Unusable> {
        let whole = Ranges { next: 0, end: source.bytes };
        Ok(match (source.format, &source.location) {
            (_, Location::Tree(files)) => Feed::Tree { files: Arc::clone(files), next: 0 },
            (Format::Jsonl, _) if source.encoding == Encoding::Plain && !source.is_stream() => {
                Feed::JsonlRanges(whole)
            }
            (Format::Jsonl, _) => Feed::JsonlBlocks(BlockReader::new(
                decoded(source, options, watch, ahead)?,
                options.task_step(),
                options.max_record(),
            )),
            (Format::Csv, _) => {
                Feed::Csv(Box::new(CsvBlocks::new(decoded(source, options, watch, ahead)?, b',', options)?))
            }
            (Format::Tsv, _) => {
                Feed::Csv(Box::new(CsvBlocks::new(decoded(source, options, watch, ahead)?, b'\t', options)?))
            }
            (Format::Parquet, _) => Feed::Parquet(Box::new(ParquetFeed::open(source, options, watch)?)),
            (Format::Warc, Location::WaczMember { .. }) => Feed::WaczMember,
            (Format::Warc, _) => {
                if source.encoding == Encoding::Gzip && !source.is_stream() {
                    let mut input = source.open(watch).map_err(unreadable)?;
                    if onionskin_warc::is_splittable_gzip(&mut input).map_err(unreadable)? {
                        return Ok(Feed::WarcRanges(whole));
                    }
                }
                let input = source.open_stream(watch).map_err(unreadable)?;
                let blocks = RecordBlocks::new(input, options).map_err(|error| warc::open_reason(&error))?;
                Feed::WarcBlocks(Box::new(blocks))
            }
            // Those that can be opened were taken apart when they were found.
            (Format::Wacz, _) => {
                let detail = match Wacz::open(source.open(watch).map_err(unreadable)?) {
                    Ok(_) => "changed while it was read".to_owned(),
                    Err(error) => error.to_string(),
                };
                return Err(BadReason::BrokenWarc { detail }.into());
            }
            (Format::Tree, _) => Feed::Whole(decoded(source, options, watch, ahead)?),
        })
    }

    /// Whether tasks are read and decoded as they are handed out.
    pub(crate) fn is_decoded(&self) -> bool {
        matches!(self, Feed::JsonlBlocks(_) | Feed::Csv(_) | Feed::WarcBlocks(_) | Feed::Whole(_))
    }

    /// Whether tasks can be known without reading.
    pub(crate) fn is_cut_by_arithmetic(&self) -> bool {
        matches!(self, Feed::JsonlRanges(_) | Feed::WarcRanges(_) | Feed::Tree { .. })
    }

    /// `before_large` is called with the size of a record before it is in memory.
    pub(crate) fn next(&mut self, options: &Options, before_large: &mut dyn FnMut(u64)) -> Option<Next> {
        let step = options.task_step();
        match self {
            Feed::JsonlRanges(ranges) => ranges.next(step, Work::JsonlRange),
            // These bytes are compressed, several times over as a rule.
            Feed::WarcRanges(ranges) => ranges.next(step.saturating_mul(4), Work::WarcRange),
            Feed::JsonlBlocks(reader) => {
                let block = reader.next_block(before_large)?;
                let input_bytes = block.bytes.len() as u64;
                Some(Next { input_bytes, last: block.last, work: Work::JsonlBlock(block) })
            }
            Feed::Csv(blocks) => {
                let block = blocks.next_block(step, before_large)?;
                Some(Next { input_bytes: block.input_bytes(), last: block.last, work: Work::Csv(block) })
            }
            Feed::Parquet(feed) => feed.next(options, before_large),
            Feed::WarcBlocks(blocks) => {
                let block = blocks.next_block(step, before_large)?;
                Some(Next { input_bytes: block.input_bytes, last: block.last, work: Work::WarcBlock(block) })
            }
            Feed::WaczMember => {
                *self = Feed::Empty;
                Some(Next { input_bytes: 0, last: true, work: Work::WaczMember })
            }
            Feed::Tree { files, next } => {
                let group = tree::next_group(files, *next, step);
                if group.is_empty() {
                    return None;
                }
                *next = group.end;
                let input_bytes = group.clone().fold(0, |sum: u64, at| sum.saturating_add(files.size(at)));
                let last = group.end == files.len();
                Some(Next { input_bytes, last, work: Work::Tree(Arc::clone(files), group) })
            }
            Feed::Whole(input) => {
                let mut bytes = Vec::new();
                let read = read_gently(input, options.max_record_bytes, &mut bytes, before_large);
                *self = Feed::Empty;
                let input_bytes = bytes.len() as u64;
                let work = Work::Whole(read.map(|too_large| (!too_large).then_some(bytes)));
                Some(Next { input_bytes, last: true, work })
            }
            Feed::Failed(loss) => {
                let work = Work::Bad(loss.clone());
                *self = Feed::Empty;
                Some(Next { input_bytes: 0, last: true, work })
            }
            Feed::Empty => None,
        }
    }
}

/// The row groups of a file that are left.
pub(crate) struct ParquetFeed {
    file: Arc<ParquetFile>,
    groups: std::iter::Peekable<std::vec::IntoIter<RowGroup>>,
    /// A large row group being handed out.
    open: Option<OpenGroup>,
}

struct OpenGroup {
    group: RowGroup,
    batches: Batches,
    /// One read ahead, so that the last batch is known to be the last.
    ahead: Option<Result<Rows, BadReason>>,
}

impl ParquetFeed {
    fn open(source: &Source, options: &Options, watch: &Watch) -> Result<ParquetFeed, Unusable> {
        let file = ParquetFile::open(source, options, watch)?;
        let groups = file.row_groups(options).into_iter().peekable();
        Ok(ParquetFeed { file: Arc::new(file), groups, open: None })
    }

    /// A task ends with the row that fills it: where it does must not depend on how many rows are
    /// read at a time, which is a matter of memory.
    fn next(&mut self, options: &Options, before_large: &mut dyn FnMut(u64)) -> Option<Next> {
        let step = options.task_step();
        loop {
            if let Some(open) = &mut self.open {
                let mut rows = Vec::new();
                let (mut bytes, mut count) = (0, 0);
                while bytes < step && count < MAX_ROWS {
                    match open.ahead.take() {
                        Some(Ok(mut batch)) => {
                            let rest = batch.split_off(step - bytes, MAX_ROWS - count);
                            bytes += batch.text_bytes();
                            count += batch.len();
                            rows.push(batch);
                            open.ahead = rest.map(Ok).or_else(|| open.batches.next(before_large));
                        }
                        // Told by a task of its own, when all rows before it are handed out.
                        Some(Err(reason)) if rows.is_empty() => {
                            let loss = open.group.loss(open.batches.next_row(), reason);
                            self.open = None;
                            let last = self.groups.peek().is_none();
                            return Some(Next { input_bytes: 0, last, work: Work::Bad(loss) });
                        }
                        Some(Err(reason)) => {
                            open.ahead = Some(Err(reason));
                            break;
                        }
                        None => break,
                    }
                }
                if open.ahead.is_none() {
                    self.open = None;
                }
                if rows.is_empty() {
                    continue;
                }
                let last = self.open.is_none() && self.groups.peek().is_none();
                return Some(Next { input_bytes: bytes, last, work: Work::Rows(rows) });
            }
            let group = self.groups.next()?;
            if !group.large {
                let last = self.groups.peek().is_none();
                let work = Work::RowGroup(Arc::clone(&self.file), group);
                let input_bytes = match &work {
                    Work::RowGroup(_, group) => group.input_bytes,
                    _ => 0,
                };
                return Some(Next { input_bytes, last, work });
            }
            let mut batches = self.file.batches(group.group, group.first_row, options);
            let ahead = batches.next(before_large);
            self.open = Some(OpenGroup { group, batches, ahead });
        }
    }
}

fn unreadable(error: io::Error) -> BadReason {
    BadReason::Io { detail: error.to_string() }
}

/// A source from its front, decompressed.
fn decoded(source: &Source, options: &Options, watch: &Watch, ahead: &Ahead) -> Result<Stream, BadReason> {
    let (encoding, window_log) = (source.encoding, options.max_window_log);
    let input = source.open_stream(watch).map_err(unreadable)?;
    if ahead.is_on() && encoding != Encoding::Plain {
        return Ok(Box::new(Pieces::new(input, encoding, window_log, ahead, watch)));
    }
    let decoder = decoder_within(input, encoding, window_log).map_err(unreadable)?;
    Ok(if encoding == Encoding::Plain { decoder } else { Box::new(Steps::new(decoder, 0)) })
}
