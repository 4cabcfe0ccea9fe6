//! The stream of units of work.
//!
//! A position in it is a source and a number of tasks of that source. Both depend on the inputs and the options alone, so a
//! run can be taken up from any position: sources that can be entered in the middle start there at once, the others are
//! decoded up to it again.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::decode::decoder;
use crate::document::{BadReason, BadRecord, Visitor};
use crate::jsonl::{self, JsonBuffers};
use crate::lines::{Block, BlockReader};
use crate::options::{Format, Options};
use crate::sniff::Encoding;
use crate::source::{Location, Source, TreeFiles};
use crate::tree;

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
    feed: Option<Feed>,
}

/// What is left of the current source.
enum Feed {
    /// Cut by arithmetic: `next..end` in steps.
    JsonlRanges {
        next: u64,
        end: u64,
    },
    JsonlBlocks(BlockReader<Box<dyn io::Read + Send>>),
    Tree {
        files: Arc<TreeFiles>,
        next: usize,
    },
    /// A pipe that is one document.
    Whole(Box<dyn io::Read + Send>),
    /// The source could not be opened.
    Failed(BadReason),
    Empty,
}

/// What a task does.
enum Work {
    JsonlRange(Range<u64>),
    JsonlBlock(Block),
    Tree(Arc<TreeFiles>, Range<usize>),
    Whole(io::Result<Option<Vec<u8>>>),
    Bad(u64, BadReason),
}

impl Tasks {
    /// The stream from its beginning.
    pub fn new(sources: Arc<[Source]>, options: Arc<Options>) -> Tasks {
        Tasks { sources, options, next: Position::default(), feed: None }
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
        let outside = ResumeError::Outside { position };
        let mut tasks =
            Tasks { next: Position { source: position.source, task: 0 }, ..Tasks::new(sources, options) };
        let Some(source) = tasks.sources.get(position.source as usize) else {
            let at_end = position.source as usize == tasks.sources.len() && position.task == 0;
            return if at_end { Ok(tasks) } else { Err(outside) };
        };
        if position.task > 0 && source.is_stream() {
            return Err(ResumeError::InsideStream { name: source.name.clone() });
        }
        while tasks.next < position {
            // Cheap where the source is cut by arithmetic; elsewhere it decodes and drops.
            match tasks.next_task() {
                Some(task) if task.after <= position => {}
                _ => return Err(outside),
            }
        }
        Ok(tasks)
    }

    /// The next unit of work. Cheap for sources that can be split, decodes a block of the others. A source that cannot be
    /// opened or read on is a task that reports it; the stream goes on with the next source.
    pub fn next_task(&mut self) -> Option<Task> {
        loop {
            let index = self.next.source;
            let source = self.sources.get(index as usize)?;
            let feed = match &mut self.feed {
                Some(feed) => feed,
                none => none.insert(Feed::open(source, &self.options)),
            };
            let Some(Next { work, input_bytes, last }) = feed.next(&self.options) else {
                self.next = Position { source: index + 1, task: 0 };
                self.feed = None;
                continue;
            };
            self.next.task += 1;
            if last {
                self.next = Position { source: index + 1, task: 0 };
                self.feed = None;
            }
            return Some(Task {
                sources: Arc::clone(&self.sources),
                options: Arc::clone(&self.options),
                source: index,
                after: self.next,
                input_bytes,
                work,
            });
        }
    }
}

/// What a feed gives.
struct Next {
    work: Work,
    input_bytes: u64,
    last: bool,
}

impl Feed {
    fn open(source: &Source, options: &Options) -> Feed {
        Feed::try_open(source, options)
            .unwrap_or_else(|error| Feed::Failed(BadReason::Io { detail: error.to_string() }))
    }

    fn try_open(source: &Source, options: &Options) -> io::Result<Feed> {
        Ok(match (source.format, &source.location) {
            (_, Location::Tree(files)) => Feed::Tree { files: Arc::clone(files), next: 0 },
            (Format::Jsonl, Location::File(_)) if source.encoding == Encoding::Plain => {
                Feed::JsonlRanges { next: 0, end: source.bytes }
            }
            (Format::Jsonl, _) => {
                let input = decoder(source.open_stream()?, source.encoding)?;
                Feed::JsonlBlocks(BlockReader::new(input, options.task_step(), options.max_record()))
            }
            (Format::Tree, _) => Feed::Whole(decoder(source.open_stream()?, source.encoding)?),
            (format, _) => {
                let detail = format!("{format} is not supported yet");
                return Err(io::Error::new(io::ErrorKind::Unsupported, detail));
            }
        })
    }

    fn next(&mut self, options: &Options) -> Option<Next> {
        let step = options.task_step();
        match self {
            Feed::JsonlRanges { next, end } => {
                if *next >= *end {
                    return None;
                }
                let range = *next..next.saturating_add(step).min(*end);
                *next = range.end;
                let input_bytes = range.end - range.start;
                Some(Next { input_bytes, last: range.end == *end, work: Work::JsonlRange(range) })
            }
            Feed::JsonlBlocks(reader) => {
                let block = reader.next_block()?;
                Some(Next {
                    input_bytes: block.bytes.len() as u64,
                    last: block.last,
                    work: Work::JsonlBlock(block),
                })
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
                let read = crate::decode::read_bounded(input, options.max_record_bytes, &mut bytes);
                *self = Feed::Empty;
                let input_bytes = bytes.len() as u64;
                let work = Work::Whole(read.map(|too_large| (!too_large).then_some(bytes)));
                Some(Next { input_bytes, last: true, work })
            }
            Feed::Failed(_) => match std::mem::replace(self, Feed::Empty) {
                Feed::Failed(reason) => Some(Next { input_bytes: 0, last: true, work: Work::Bad(0, reason) }),
                _ => None,
            },
            Feed::Empty => None,
        }
    }
}

/// A unit of work. Runs on any thread.
pub struct Task {
    sources: Arc<[Source]>,
    options: Arc<Options>,
    source: u32,
    after: Position,
    input_bytes: u64,
    work: Work,
}

impl Task {
    /// The position after this task: where a run goes on that has finished this task and all before it.
    pub fn position(&self) -> Position {
        self.after
    }

    /// Index of the source that it reads.
    pub fn source(&self) -> u32 {
        self.source
    }

    /// How much of the input it reads, to show progress by: in the file's own bytes where it is split, else decoded.
    pub fn input_bytes(&self) -> u64 {
        self.input_bytes
    }

    /// Reads the documents.
    pub fn run(self, scratch: &mut Scratch, visitor: &mut dyn Visitor) {
        let source = &self.sources[self.source as usize];
        let (index, options) = (self.source, &*self.options);
        match self.work {
            Work::JsonlRange(range) => {
                jsonl::run_range(source.open(), index, range, options, scratch, visitor)
            }
            Work::JsonlBlock(block) => jsonl::run_block(&block, index, options, scratch, visitor),
            Work::Tree(files, group) => tree::run(&files, group, index, options, scratch, visitor),
            Work::Whole(Ok(Some(bytes))) => {
                scratch.file = bytes;
                let record = tree::FileRecord { source: index, offset: 0, name: &source.name, url: None };
                tree::emit(record, options, scratch, visitor);
            }
            Work::Whole(Ok(None)) => {
                let reason = BadReason::TooLarge { limit: options.max_record_bytes };
                visitor.bad_record(BadRecord { source: index, offset: 0, reason });
            }
            Work::Whole(Err(error)) => {
                visitor.bad_record(BadRecord {
                    source: index,
                    offset: 0,
                    reason: BadReason::from_io(&error),
                });
            }
            Work::Bad(offset, reason) => visitor.bad_record(BadRecord { source: index, offset, reason }),
        }
    }
}

/// What a worker keeps between tasks: buffers and the extractor.
pub struct Scratch {
    pub(crate) lines: Vec<u8>,
    pub(crate) json: JsonBuffers,
    pub(crate) file: Vec<u8>,
}

impl Scratch {
    /// For one worker.
    pub fn new(_options: &Options) -> Scratch {
        Scratch { lines: Vec::new(), json: JsonBuffers::default(), file: Vec::new() }
    }
}

#[cfg(test)]
mod tests;
