//! The stream of units of work.
//!
//! A position in it is a source and a number of tasks of that source. Both depend on the inputs and
//! the options alone, so a run can be taken up from any position: sources that can be entered in
//! the middle start there at once, the others are decoded up to it again.

use std::sync::Arc;

use onionskin_extract::url;

use crate::ahead::Ahead;
use crate::document::{BadReason, InputFailure, Loss, Visitor};
use crate::feed::{Feed, Next, Work};
use crate::json::JsonBuffers;
use crate::options::Options;
use crate::parquet;
use crate::record::{Extraction, TextRecord};
use crate::source::Source;
use crate::warc::RecordRunner;
use crate::watch::{Noticed, Watch};
use crate::{csv, jsonl, tree};

/// A place between two tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Whole sources before it.
    pub source: u32,
    /// Tasks of that source before it.
    pub task: u32,
}

/// Why a run cannot go on from a position.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// The position is inside a pipe, whose beginning is gone.
    #[error("{name}: a pipe cannot be taken up in the middle; start again from the beginning")]
    InsideStream {
        /// The source.
        name: String,
    },
    /// The source fails where it has to be decoded again, from its front to the position.
    #[error("{place}: the input failed: {reason}")]
    Input {
        /// The source and the byte.
        place: String,
        /// What the system said.
        reason: String,
    },
    /// There are not as many sources, or not as many tasks in the source.
    #[error("position {} of source {} is not in these inputs", position.task, position.source)]
    Outside {
        /// The position asked for.
        position: Position,
    },
}

/// Hands out the units of work of all sources, in order.
pub struct Tasks {
    sources: Arc<[Source]>,
    options: Arc<Options>,
    next: Position,
    feed: Option<(Feed, Watch)>,
    ahead: Ahead,
    /// Stored bytes of whole sources before `next`, and of the source that is open.
    read: (u64, u64),
}

impl Tasks {
    /// The stream from its beginning.
    pub fn new(sources: Arc<[Source]>, options: Arc<Options>) -> Tasks {
        let (next, ahead) = (Position::default(), Ahead::default());
        Tasks { sources, options, next, feed: None, ahead, read: (0, 0) }
    }

    /// Decodes compressed inputs ahead, which whoever waits for a task can help with. The tasks are
    /// the same.
    pub fn decoding(self, ahead: Ahead) -> Tasks {
        Tasks { ahead, ..self }
    }

    /// What those can do who wait for a task.
    pub fn ahead(&self) -> Ahead {
        self.ahead.clone()
    }

    /// The stream from where an earlier run stopped: the tail of what [`Tasks::new`] gives.
    ///
    /// # Errors
    ///
    /// When the position is inside a pipe, or beyond the inputs.
    pub fn starting_at(
        sources: Arc<[Source]>,
        options: Arc<Options>,
        position: Position,
    ) -> Result<Tasks, ResumeError> {
        Tasks::new(sources, options).from(position)
    }

    /// The same tasks from a position on; see [`Tasks::starting_at`].
    ///
    /// # Errors
    ///
    /// When the position is inside a pipe, or beyond the inputs.
    pub fn from(self, position: Position) -> Result<Tasks, ResumeError> {
        let outside = ResumeError::Outside { position };
        let mut tasks = Tasks { next: Position { source: position.source, task: 0 }, ..self };
        let before = tasks.sources.iter().take(position.source as usize);
        tasks.read.0 = before.fold(0, |sum, source| sum.saturating_add(source.bytes));
        let Some(source) = tasks.sources.get(position.source as usize) else {
            let at_end = position.source as usize == tasks.sources.len() && position.task == 0;
            return if at_end { Ok(tasks) } else { Err(outside) };
        };
        if position.task > 0 && source.is_stream() {
            return Err(ResumeError::InsideStream { name: source.name.clone() });
        }
        while tasks.next < position {
            // Cheap where the source is cut by arithmetic; elsewhere it decodes and drops.
            let task = tasks.next_task();
            if let Some(failure) = task.as_ref().and_then(Task::failure) {
                let place = tasks.sources[failure.source as usize].failure_place(&failure);
                return Err(ResumeError::Input { place, reason: failure.detail });
            }
            match task {
                Some(task) if task.after <= position => {}
                _ => return Err(outside),
            }
        }
        Ok(tasks)
    }

    /// The next unit of work. Cheap for sources that can be split, decodes a block of the others. A
    /// source that cannot be opened or read on is a task that reports it; the stream goes on with
    /// the next source.
    pub fn next_task(&mut self) -> Option<Task> {
        self.next_task_gently(&mut |_| {})
    }

    /// As [`Tasks::next_task`], and calls `before_large` with the size of a record that is decoded
    /// here, before it is in memory and as it grows; that may wait until there is room.
    pub fn next_task_gently(&mut self, before_large: &mut dyn FnMut(u64)) -> Option<Task> {
        loop {
            let index = self.next.source;
            let source = self.sources.get(index as usize)?;
            let (feed, watch) = match &mut self.feed {
                Some(feed) => feed,
                none => {
                    let watch = Watch::default();
                    none.insert((Feed::open(source, &self.options, &watch, &self.ahead), watch))
                }
            };
            let Some(Next { mut work, input_bytes, last }) = feed.next(&self.options, before_large) else {
                self.next = Position { source: index + 1, task: 0 };
                self.feed = None;
                self.read = (self.read.0.saturating_add(source.bytes), 0);
                continue;
            };
            work.note_rest(source.bytes.saturating_sub(watch.position()));
            self.next.task += 1;
            let (before, within) = &mut self.read;
            *within = match feed.is_decoded() {
                _ if source.is_stream() => within.saturating_add(input_bytes),
                true => watch.position().min(source.bytes),
                false => within.saturating_add(input_bytes).min(source.bytes),
            };
            let mut read_bytes = before.saturating_add(*within);
            let watch = watch.clone();
            if last {
                self.next = Position { source: index + 1, task: 0 };
                self.feed = None;
                read_bytes = read_bytes.max(before.saturating_add(source.bytes));
                self.read = (read_bytes, 0);
            }
            return Some(Task {
                sources: Arc::clone(&self.sources),
                options: Arc::clone(&self.options),
                source: index,
                after: self.next,
                input_bytes,
                read_bytes,
                work,
                watch,
            });
        }
    }
}

fn failure_of(source: u32, watch: &Watch) -> Option<InputFailure> {
    let Noticed { file, byte, detail } = watch.failure()?;
    Some(InputFailure { source, file, byte, detail })
}

/// A unit of work. Runs on any thread.
pub struct Task {
    sources: Arc<[Source]>,
    options: Arc<Options>,
    source: u32,
    after: Position,
    input_bytes: u64,
    read_bytes: u64,
    work: Work,
    /// Of whoever reads the source, here and elsewhere.
    watch: Watch,
}

impl Task {
    /// A unit of work of the only source of a list.
    pub(crate) fn of(
        sources: &Arc<[Source]>,
        options: &Arc<Options>,
        input_bytes: u64,
        (work, watch): (Work, Watch),
    ) -> Task {
        let (sources, options) = (Arc::clone(sources), Arc::clone(options));
        Task {
            sources,
            options,
            source: 0,
            after: Position::default(),
            input_bytes,
            read_bytes: input_bytes,
            work,
            watch,
        }
    }

    /// The position after this task: where a run goes on that has finished this task and all before
    /// it.
    pub fn position(&self) -> Position {
        self.after
    }

    /// Index of the source that it reads.
    pub fn source(&self) -> u32 {
        self.source
    }

    /// How much of the input it reads: in the file's own bytes where it is split, else decoded.
    pub fn input_bytes(&self) -> u64 {
        self.input_bytes
    }

    /// Stored bytes of all sources up to its end, to show progress by; of a pipe, decoded ones.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Reads the documents. If the input failed, `failed` is called last.
    pub fn run(self, scratch: &mut Scratch, visitor: &mut dyn Visitor) {
        let (source, watch) = (self.source, self.watch.clone());
        self.work(scratch, visitor);
        if let Some(failure) = failure_of(source, &watch) {
            visitor.failed(failure);
        }
    }

    /// What is known to have failed before the task runs.
    fn failure(&self) -> Option<InputFailure> {
        failure_of(self.source, &self.watch)
    }

    fn work(self, scratch: &mut Scratch, visitor: &mut dyn Visitor) {
        let source = &self.sources[self.source as usize];
        let (index, options, watch) = (self.source, &*self.options, &self.watch);
        let bad = |bytes, reason| Loss::record(0, bytes, reason).of(index);
        match self.work {
            Work::JsonlRange(range) => {
                let input = source.open(watch);
                jsonl::run_range(input, index, range, source.gap(), options, scratch, visitor);
            }
            Work::JsonlBlock(block) => jsonl::run_block(&block, index, options, scratch, visitor),
            Work::Csv(block) => csv::run_block(&block, index, options, scratch, visitor),
            Work::RowGroup(file, group) => {
                parquet::run_group(&file, &group, index, options, &mut scratch.extraction, visitor);
            }
            Work::Rows(batches) => {
                for rows in &batches {
                    parquet::run_rows(rows, index, options, &mut scratch.extraction, visitor);
                }
            }
            Work::WarcRange(range) => {
                let mut runner =
                    RecordRunner { source: index, options, extraction: &mut scratch.extraction, visitor };
                match source.open(watch) {
                    Ok(input) => runner.range(input, range),
                    Err(error) => {
                        let bytes = range.end.saturating_sub(range.start);
                        runner.bad(range.start, bytes, BadReason::Io { detail: error.to_string() });
                    }
                }
            }
            Work::WarcBlock(block) => {
                RecordRunner { source: index, options, extraction: &mut scratch.extraction, visitor }
                    .block(block);
            }
            Work::WaczMember => {
                RecordRunner { source: index, options, extraction: &mut scratch.extraction, visitor }
                    .wacz_member(source, watch);
            }
            Work::Tree(files, group) => {
                tree::run(&files, group, index, options, (scratch, watch), visitor);
            }
            Work::Whole(Ok(_)) if let Some(reason) = tree::crawl_file(&source.name, None, options) => {
                visitor.skipped(reason);
            }
            Work::Whole(Ok(Some(bytes))) => {
                scratch.file = bytes;
                // A page that was fetched from its own address.
                let is_page = source.name.starts_with("http://") || source.name.starts_with("https://");
                let address = if is_page { url::normalize(&source.name) } else { None };
                let record = tree::FileRecord {
                    source: index,
                    offset: 0,
                    name: &source.name,
                    url: address.as_deref(),
                };
                tree::emit(record, scratch, visitor);
            }
            Work::Whole(Ok(None)) => {
                let reason = BadReason::TooLarge { limit: options.max_record_bytes };
                visitor.bad_record(bad(source.bytes, reason));
            }
            Work::Whole(Err(error)) => visitor.bad_record(bad(source.bytes, BadReason::from_io(&error))),
            Work::Bad(loss) => visitor.bad_record(loss.of(index)),
        }
        scratch.shrink();
    }
}

/// A row of a table.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextRow<'a> {
    /// The text; a row without one is no document.
    pub text: Option<&'a str>,
    /// The document's own name.
    pub id: Option<&'a str>,
    /// Its address.
    pub url: Option<&'a str>,
}

/// What a worker keeps between tasks: buffers and the extractor.
pub struct Scratch {
    pub(crate) lines: Vec<u8>,
    pub(crate) json: JsonBuffers,
    pub(crate) file: Vec<u8>,
    pub(crate) extraction: Extraction,
}

impl Scratch {
    /// For one worker.
    pub fn new(options: &Options) -> Scratch {
        Scratch {
            lines: Vec::new(),
            json: JsonBuffers::default(),
            file: Vec::new(),
            extraction: Extraction::new(options),
        }
    }

    /// A text that somebody else has read, as a row of a table: a document under the same rules as
    /// a row of a Parquet file. `source` and `offset` are told as they are.
    pub fn row(&mut self, place: (u32, u64), row: TextRow<'_>, options: &Options, visitor: &mut dyn Visitor) {
        let (source, offset) = place;
        let reason = match row.text {
            None => return visitor.no_text(place, &mut || None),
            Some(text) if text.len() as u64 > options.max_record_bytes => {
                BadReason::TooLarge { limit: options.max_record_bytes }
            }
            Some(text) => {
                let (id, url) = (row.id, row.url);
                let record = TextRecord { source, offset, id, url, fetched_at: None, text };
                return record.emit(options, &mut self.extraction, visitor);
            }
        };
        let bytes = row.text.map_or(0, str::len) as u64;
        visitor.bad_record(Loss::record(offset, bytes, reason).of(source));
    }

    /// One giant record should not be paid for until the end.
    fn shrink(&mut self) {
        self.json.shrink();
        self.extraction.shrink();
        if self.file.capacity() > 4 << 20 {
            self.file = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests;
