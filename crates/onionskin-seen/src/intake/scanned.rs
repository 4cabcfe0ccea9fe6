//! Documents of the formats that a scan reads and that have no lines of JSON: WARC, CSV, pages,
//! office files, and folders of all of them.

use std::collections::VecDeque;
use std::sync::Arc;

use onionskin_corpus::{
    BadRecord, Document, InputFailure, Options, Scratch, SkipReason, SkippedFile, Source, Tasks, Visitor,
};

use super::documents::{Incoming, InputError};

/// Reads sources as a scan does, a task at a time.
pub(super) struct Scanned {
    sources: Arc<[Source]>,
    tasks: Tasks,
    scratch: Scratch,
    ready: VecDeque<Incoming>,
}

impl Scanned {
    pub(super) fn new(sources: Vec<Source>, options: Options) -> Scanned {
        let (sources, options): (Arc<[Source]>, _) = (sources.into(), Arc::new(options));
        let scratch = Scratch::new(&options);
        let tasks = Tasks::new(Arc::clone(&sources), options);
        Scanned { sources, tasks, scratch, ready: VecDeque::new() }
    }

    pub(super) fn next_document(&mut self) -> Result<Option<Incoming>, InputError> {
        loop {
            if let Some(document) = self.ready.pop_front() {
                return Ok(Some(document));
            }
            let Some(task) = self.tasks.next_task() else { return Ok(None) };
            let mut collect = Collect { sources: &self.sources, ready: &mut self.ready, failure: None };
            task.run(&mut self.scratch, &mut collect);
            if let Some(failure) = collect.failure {
                let place = self.sources[failure.source as usize].failure_place(&failure);
                return Err(InputError::Failed { place, reason: failure.detail });
            }
        }
    }
}

struct Collect<'a> {
    sources: &'a [Source],
    ready: &'a mut VecDeque<Incoming>,
    failure: Option<InputFailure>,
}

impl Collect<'_> {
    fn place(&self, source: u32, offset: u64) -> String {
        self.sources[source as usize].place(offset)
    }

    fn bad(&mut self, source: u32, offset: u64, problem: String) {
        let name = self.place(source, offset);
        self.ready.push_back(Incoming { name, text: Err(problem) });
    }
}

impl Visitor for Collect<'_> {
    fn document(&mut self, document: Document<'_>) {
        // A revisit has no text of its own.
        if document.revisit {
            return;
        }
        let name = document.id.or(document.url).map(str::to_owned);
        let name = name.unwrap_or_else(|| self.place(document.source, document.offset));
        self.ready.push_back(Incoming { name, text: Ok(document.text.to_owned()) });
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
                self.ready.push_back(Incoming { name, text: Ok(String::new()) });
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
