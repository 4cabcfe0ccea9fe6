//! Documents of the formats that a scan reads and that have no lines of JSON: WARC, CSV, pages,
//! office files, and folders of all of them.
//!
//! A unit of work of a scan calls back for each of its documents, and may have millions of them;
//! whoever asks here wants one at a time. So a thread of its own runs the work, hands on some
//! documents, and waits until they were taken: it reads while it is asked and never ahead.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use onionskin_corpus::{
    BadRecord, Document, InputFailure, Options, Scratch, SkipReason, SkippedFile, Source, Tasks, Visitor,
};
use onionskin_store::IoError;

use super::documents::{Incoming, InputError};
use super::limits::Limits;

/// Reads sources as a scan does.
pub(super) struct Scanned {
    sources: Arc<[Source]>,
    ready: VecDeque<Incoming>,
    /// None at the end.
    reader: Option<Reader>,
}

struct Reader {
    /// More is wanted.
    ask: SyncSender<()>,
    parts: Receiver<Part>,
    thread: JoinHandle<()>,
}

/// Some documents, or how an input has failed.
type Part = Result<VecDeque<Incoming>, InputFailure>;

impl Scanned {
    pub(super) fn new(
        input: &str,
        sources: Vec<Source>,
        options: Options,
        limits: &Limits,
    ) -> Result<Scanned, IoError> {
        let sources: Arc<[Source]> = sources.into();
        let ((ask, asked), (sender, parts)) = (sync_channel(1), sync_channel(1));
        let hand = Hand { asked, parts: sender };
        let (mine, limits) = (Arc::clone(&sources), limits.clone());
        let thread = std::thread::Builder::new().name("seen-input".to_owned());
        let thread = thread.spawn(move || read(mine, options, &limits, hand));
        let thread = thread.map_err(|error| IoError::new("starting a thread for", input, error))?;
        Ok(Scanned { sources, ready: VecDeque::new(), reader: Some(Reader { ask, parts, thread }) })
    }

    pub(super) fn next_document(&mut self) -> Result<Option<Incoming>, InputError> {
        loop {
            if let Some(document) = self.ready.pop_front() {
                return Ok(Some(document));
            }
            let Some(reader) = &self.reader else { return Ok(None) };
            // It may have ended; then nothing comes either.
            let _ = reader.ask.send(());
            match reader.parts.recv() {
                Ok(Ok(part)) => self.ready = part,
                Ok(Err(failure)) => {
                    let place = self.sources[failure.source as usize].failure_place(&failure);
                    return Err(InputError::Failed { place, reason: failure.detail });
                }
                Err(_) => self.end(),
            }
        }
    }

    fn end(&mut self) {
        if let Some(Err(panic)) = self.reader.take().map(|reader| reader.thread.join()) {
            std::panic::resume_unwind(panic);
        }
    }
}

/// The thread's side.
struct Hand {
    asked: Receiver<()>,
    parts: SyncSender<Part>,
}

impl Hand {
    /// Hands on and waits until more is wanted; false when nobody will want more.
    fn give(&self, part: Part) -> bool {
        self.parts.send(part).is_ok() && self.asked.recv().is_ok()
    }
}

fn read(sources: Arc<[Source]>, options: Options, limits: &Limits, hand: Hand) {
    if hand.asked.recv().is_err() {
        return;
    }
    let options = Arc::new(options);
    let mut scratch = Scratch::new(&options);
    let mut tasks = Tasks::new(Arc::clone(&sources), options);
    let mut collect = Collect {
        sources: &sources,
        hand: &hand,
        ready: VecDeque::new(),
        held: 0,
        part_bytes: limits.part_bytes(),
        small_bytes: limits.small_bytes(),
        failure: None,
        given_up: false,
    };
    while let Some(task) = tasks.next_task() {
        task.run(&mut scratch, &mut collect);
        if collect.given_up {
            return;
        }
        if let Some(failure) = collect.failure.take() {
            collect.hand_on();
            hand.give(Err(failure));
            return;
        }
    }
    collect.hand_on();
}

struct Collect<'a> {
    sources: &'a [Source],
    hand: &'a Hand,
    ready: VecDeque<Incoming>,
    held: usize,
    part_bytes: usize,
    small_bytes: u64,
    failure: Option<InputFailure>,
    /// Nobody wants more.
    given_up: bool,
}

impl Collect<'_> {
    fn place(&self, source: u32, offset: u64) -> String {
        self.sources[source as usize].place(offset)
    }

    fn bad(&mut self, source: u32, offset: u64, problem: String) {
        let name = self.place(source, offset);
        self.push(Incoming { name, text: Err(problem) });
    }

    fn push(&mut self, document: Incoming) {
        self.held += document.held_bytes();
        self.ready.push_back(document);
        if self.held >= self.part_bytes {
            self.hand_on();
        }
    }

    fn hand_on(&mut self) {
        if !self.ready.is_empty() && !self.given_up {
            self.given_up = !self.hand.give(Ok(std::mem::take(&mut self.ready)));
        }
        self.held = 0;
        self.ready.clear();
    }
}

impl Visitor for Collect<'_> {
    fn wants(&mut self, _offset: u64) -> bool {
        !self.given_up
    }

    fn before_large(&mut self, bytes: u64) {
        if bytes > self.small_bytes {
            self.hand_on();
        }
    }

    fn document(&mut self, document: Document<'_>) {
        // A revisit has no text of its own.
        if document.revisit {
            return;
        }
        let name = document.id.or(document.url).map(str::to_owned);
        let name = name.unwrap_or_else(|| self.place(document.source, document.offset));
        let is_large = document.text.len() as u64 > self.small_bytes;
        if is_large {
            self.hand_on();
        }
        self.push(Incoming { name, text: Ok(document.text.to_owned()) });
        if is_large {
            self.hand_on();
        }
    }

    fn bad_record(&mut self, bad: BadRecord) {
        self.bad(bad.source, bad.offset, bad.reason.to_string());
    }

    /// Requests, redirects and the like are no documents.
    fn skipped(&mut self, _: SkipReason) {}

    /// A text that is null has no words, as in a file that is read by itself.
    fn no_text(&mut self, (source, offset): (u32, u64), fields: &mut dyn FnMut() -> Option<String>) {
        match fields() {
            None => {
                let name = self.place(source, offset);
                self.push(Incoming { name, text: Ok(String::new()) });
            }
            Some(fields) => self.bad(source, offset, format!("no text; there are {fields}")),
        }
    }

    fn skipped_file(&mut self, file: SkippedFile) {
        let detail = if file.detail.is_empty() { String::new() } else { format!(": {}", file.detail) };
        self.bad(file.source, file.offset, format!("{}{detail}", file.reason));
    }

    fn failed(&mut self, failure: InputFailure) {
        self.failure = Some(failure);
    }
}
