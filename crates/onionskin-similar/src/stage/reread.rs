//! Chunk sets made again from the texts, for an atlas that did not keep them.
//!
//! Shingles take more room than the text itself, and nearly all of them are written only to be
//! passed over: a pair is verified on the sets of its two documents, and most documents are in no
//! pair. An atlas of features alone takes 48 bytes per document (Broder 2000), and the few texts
//! that have become candidates are read and cut once more.
//!
//! Inputs are walked in the order of the scan, beside the table of documents, which says at which
//! offset each of them begins. Records that are not wanted are passed over before they are parsed,
//! and in a file of plain JSON lines they are not read.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::{SetCursor, SetSource, SimilarError};
use onionskin_core::{Analyzer, DocId, Recipe};
use onionskin_corpus::{
    BadRecord, Document, FieldNames, InputFailure, Options, Scratch, SkipReason, Tasks, Visitor,
};
use onionskin_store::manifest::InputEntry;
use onionskin_store::table::{Batch, BatchReader, document};
use onionskin_store::{Atlas, TableError, cancel};

use onionskin_scan::inputs::{ChangedInput, reading_options, reopen_unchanged};

/// The texts of an atlas as sets of the chunks that its recipe is about.
#[derive(Debug)]
pub(super) struct Reread {
    atlas: Atlas,
    options: Arc<Options>,
    recipe: Recipe,
}

/// Bytes between two records that are better read than left out.
const READ_GAP: u64 = 4 << 10;
/// Bytes that are read at once, unless a record is longer.
const READ_TOGETHER: u64 = 64 << 10;

impl Reread {
    /// Checks that the inputs are there and as long as they were.
    pub fn new(atlas: &Atlas, recipe: &Recipe) -> Result<Reread, SimilarError> {
        let mut options = reading_options(atlas)?;
        // Names and addresses are known.
        options.id_field = FieldNames::default();
        options.url_field = FieldNames::default();
        options.date_field = FieldNames::default();
        options.text_digests = false;
        // The sets of one task are held at a time; they should not leave the cache.
        options.task_bytes = options.task_bytes.min(1 << 20);
        let options = Arc::new(options);
        for input in &atlas.manifest().inputs {
            reopen_unchanged(input, None, &options)?;
        }
        Ok(Reread { atlas: atlas.clone(), options, recipe: recipe.chunks_alone() })
    }
}

impl SetSource for Reread {
    fn open(&self) -> Result<Box<dyn SetCursor>, SimilarError> {
        let inputs = self.atlas.manifest().inputs.iter().filter(|input| input.documents > 0);
        Ok(Box::new(Cursor {
            inputs: inputs.cloned().collect(),
            options: Arc::clone(&self.options),
            scratch: Scratch::new(&self.options),
            tasks: None,
            rows: Places::new(self.atlas.documents()?.select()),
            analyzer: Analyzer::new(&self.recipe, 0),
            sets: VecDeque::new(),
            spare: Vec::new(),
            current: Vec::new(),
        }))
    }
}

/// A document, its input and offset.
type Place = (document::Doc, document::Source, document::Offset);

/// Where documents begin, in order.
struct Places {
    documents: BatchReader<Place>,
    batch: Option<Batch<Place>>,
    at: usize,
}

impl Places {
    fn new(documents: BatchReader<Place>) -> Places {
        Places { documents, batch: None, at: 0 }
    }

    /// The document that comes next, its input and offset.
    fn peek(&mut self) -> Result<Option<(DocId, &str, u64)>, SimilarError> {
        while self.batch.as_ref().is_none_or(|batch| self.at >= batch.len()) {
            match self.documents.next_batch()? {
                Some(batch) => (self.batch, self.at) = (Some(batch), 0),
                None => return Ok(None),
            }
        }
        Ok(self.batch.as_ref().map(|batch| batch.row(self.at)))
    }

    fn step(&mut self) {
        self.at += 1;
    }

    /// Before which offset the document that is looked at ends, as far as is known, and with it
    /// those that are wanted and begin shortly after: one long read is better than many short ones.
    fn end(&self, wanted: &dyn Fn(DocId) -> bool) -> u64 {
        let Some(batch) = &self.batch else { return u64::MAX };
        let (_, source, start) = batch.row(self.at);
        let mut end = u64::MAX;
        let mut last_wanted = true;
        for row in self.at + 1..batch.len() {
            let (doc, next_source, offset) = batch.row(row);
            if next_source != source || offset <= start {
                break;
            }
            if last_wanted {
                end = offset;
            }
            if offset - end > READ_GAP || offset - start > READ_TOGETHER {
                break;
            }
            last_wanted = wanted(doc);
        }
        end
    }
}

struct Cursor {
    /// Inputs that are not begun.
    inputs: VecDeque<InputEntry>,
    options: Arc<Options>,
    scratch: Scratch,
    /// The input that is being read.
    tasks: Option<(String, Tasks)>,
    rows: Places,
    analyzer: Analyzer,
    sets: VecDeque<(DocId, Vec<u64>)>,
    /// Memory of sets that were used.
    spare: Vec<Vec<u64>>,
    current: Vec<u64>,
}

impl SetCursor for Cursor {
    fn advance(&mut self, wanted: &dyn Fn(DocId) -> bool) -> Result<Option<DocId>, SimilarError> {
        loop {
            while let Some((doc, set)) = self.sets.pop_front() {
                let used = std::mem::replace(&mut self.current, set);
                self.spare.push(used);
                if wanted(doc) {
                    return Ok(Some(doc));
                }
            }
            if !self.run_task(wanted)? {
                return Ok(None);
            }
        }
    }

    fn chunks(&self) -> &[u64] {
        &self.current
    }
}

impl Cursor {
    /// Reads one more unit of work; `false` at the end.
    fn run_task(&mut self, wanted: &dyn Fn(DocId) -> bool) -> Result<bool, SimilarError> {
        cancel::check().map_err(TableError::from)?;
        let (name, task) = loop {
            match &mut self.tasks {
                Some((name, tasks)) => match tasks.next_task() {
                    Some(task) => break (name.clone(), task),
                    None => self.tasks = None,
                },
                None => {
                    let Some(input) = self.inputs.pop_front() else { return Ok(false) };
                    let source = reopen_unchanged(&input, None, &self.options)?;
                    let tasks = Tasks::new(Arc::new([source]), Arc::clone(&self.options));
                    self.tasks = Some((input.name, tasks));
                }
            }
        };
        let mut picker = Picker {
            name: &name,
            rows: &mut self.rows,
            here: VecDeque::new(),
            here_offset: None,
            wanted,
            analyzer: &mut self.analyzer,
            sets: &mut self.sets,
            spare: &mut self.spare,
            failure: None,
        };
        task.run(&mut self.scratch, &mut picker);
        match picker.failure {
            Some(error) => Err(error),
            None => Ok(true),
        }
    }
}

/// Takes out of a task the documents that are wanted.
struct Picker<'a> {
    name: &'a str,
    rows: &'a mut Places,
    /// Documents at the offset that is being read; several records of one compressed member have
    /// one offset.
    here: VecDeque<DocId>,
    here_offset: Option<u64>,
    wanted: &'a dyn Fn(DocId) -> bool,
    analyzer: &'a mut Analyzer,
    sets: &'a mut VecDeque<(DocId, Vec<u64>)>,
    spare: &'a mut Vec<Vec<u64>>,
    failure: Option<SimilarError>,
}

impl Picker<'_> {
    fn find(&mut self, offset: u64) -> Result<bool, SimilarError> {
        if self.here_offset == Some(offset) {
            return Ok(!self.here.is_empty());
        }
        self.here.clear();
        self.here_offset = Some(offset);
        let mut any = false;
        while let Some((doc, source, at)) = self.rows.peek()? {
            if source != self.name || at > offset {
                break;
            }
            if at == offset {
                any |= (self.wanted)(doc);
                self.here.push_back(doc);
            }
            self.rows.step();
        }
        if !any {
            self.here.clear();
        }
        Ok(any)
    }
}

impl Visitor for Picker<'_> {
    fn wants(&mut self, offset: u64) -> bool {
        if self.failure.is_some() {
            return false;
        }
        self.find(offset).unwrap_or_else(|error| {
            self.failure = Some(error);
            false
        })
    }

    fn next_wanted(&mut self, from: u64) -> Option<Range<u64>> {
        if self.failure.is_some() {
            return None;
        }
        loop {
            match self.rows.peek() {
                Ok(Some((doc, source, at))) if source == self.name => {
                    if at >= from && (self.wanted)(doc) {
                        return Some(at..self.rows.end(self.wanted));
                    }
                    self.rows.step();
                }
                Ok(_) => return None,
                Err(error) => {
                    self.failure = Some(error);
                    return None;
                }
            }
        }
    }

    fn document(&mut self, document: Document<'_>) {
        let Some(doc) = self.here.pop_front() else { return };
        if (self.wanted)(doc) {
            let mut set = self.spare.pop().unwrap_or_default();
            self.analyzer.analyze_chunks(document.text);
            self.analyzer.swap_main_chunks(&mut set);
            self.sets.push_back((doc, set));
        }
    }

    fn bad_record(&mut self, bad: BadRecord) {
        // It was a document when it was scanned.
        if self.here_offset == Some(bad.offset) && !self.here.is_empty() && self.failure.is_none() {
            self.failure = Some(SimilarError::from(ChangedInput {
                input: self.name.to_owned(),
                reason: format!("at offset {}: {}", bad.offset, bad.reason),
            }));
        }
    }

    fn skipped(&mut self, _: SkipReason) {}

    fn failed(&mut self, failure: InputFailure) {
        if self.failure.is_none() {
            self.failure = Some(SimilarError::from(ChangedInput {
                input: self.name.to_owned(),
                reason: format!("at byte {}: {}", failure.byte, failure.detail),
            }));
        }
    }
}
