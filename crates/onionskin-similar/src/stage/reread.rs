//! Chunk sets made again from the texts, for an atlas that did not keep them.
//!
//! Shingles take more room than the text itself, and nearly all of them are written only to be
//! passed over: a pair is verified on the sets of its two documents, and most documents are in no
//! pair. An atlas of features alone takes 48 bytes per document (Broder 2000), and the few texts
//! that have become candidates are read and cut once more.
//!
//! Inputs are walked in the order of the scan, beside the table of documents, which says at which
//! offset each of them begins, and what the fingerprint of its text is. Records that are not wanted
//! are passed over before they are parsed, and in a file of plain JSON lines they are not read. A
//! document that is wanted and is not what it was, or does not come by, ends the search: its input
//! has changed.

mod held;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::{Resources, SetCursor, SetSource, SimilarError, SimilarParams};
use onionskin_core::{Analyzer, DocId, Recipe};
use onionskin_corpus::{
    BadRecord, Document, FieldNames, InputFailure, Options, Scratch, SkipReason, Source, Tasks, Visitor,
};
use onionskin_store::manifest::InputEntry;
use onionskin_store::table::{Batch, BatchReader, document};
use onionskin_store::{Atlas, TableError, cancel};

use held::HeldSets;
use onionskin_scan::inputs::{ChangedInput, limit_tools, reading_options, reopen_unchanged};

/// The texts of an atlas, to be cut again into the chunks that its recipe is about.
#[derive(Clone, Debug)]
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
    /// Opens no input.
    pub fn new(params: &SimilarParams, atlas: &Atlas, recipe: &Recipe) -> Result<Reread, SimilarError> {
        let mut options = reading_options(atlas)?;
        // Names and addresses are known.
        options.id_field = FieldNames::default();
        options.url_field = FieldNames::default();
        options.date_field = FieldNames::default();
        options.text_digests = false;
        options.extract.pdf_worker.clone_from(&params.pdf_worker);
        limit_tools(&mut options, params.memory);
        // The sets of one task are held at a time; they should not leave the cache.
        options.task_bytes = options.task_bytes.min(1 << 20);
        let options = Arc::new(options);
        Ok(Reread { atlas: atlas.clone(), options, recipe: recipe.chunks_alone() })
    }

    /// Checks that the inputs are there and as long as they were.
    pub fn check_inputs(&self) -> Result<(), ChangedInput> {
        let inputs = &self.atlas.manifest().inputs;
        inputs.iter().try_for_each(|input| reopen_unchanged(input, None, &self.options).map(drop))
    }

    /// The sets of its texts. Of the memory, a sixteenth is for those of one unit of work.
    pub fn sets(&self, resources: &Resources) -> Arc<dyn SetSource> {
        Arc::new(Texts { of: self.clone(), resources: resources.share(1, 16) })
    }
}

#[derive(Debug)]
struct Texts {
    of: Reread,
    resources: Resources,
}

impl SetSource for Texts {
    fn open(&self) -> Result<Box<dyn SetCursor>, SimilarError> {
        let Reread { atlas, options, recipe } = &self.of;
        let inputs = atlas.manifest().inputs.iter().filter(|input| input.documents > 0);
        Ok(Box::new(Cursor {
            inputs: inputs.cloned().collect(),
            options: Arc::clone(options),
            scratch: Scratch::new(options),
            input: None,
            rows: Places::new(atlas.documents()?.select()),
            analyzer: Analyzer::new(recipe, 0),
            sets: HeldSets::new(&self.resources),
        }))
    }
}

/// A document, its input, its offset and the fingerprint of its text.
type Place = (document::Doc, document::Source, document::Offset, document::TextFp);

/// Its values.
type PlaceRow<'a> = (DocId, &'a str, u64, Option<u64>);

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

    /// The document that comes next, its input, its offset and the fingerprint of its text.
    fn peek(&mut self) -> Result<Option<PlaceRow<'_>>, SimilarError> {
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

    /// Passes over the documents of an input before an offset, up to one that is wanted. Returns
    /// the offset of that one.
    fn pass(
        &mut self,
        name: &str,
        end: u64,
        wanted: &dyn Fn(DocId) -> bool,
    ) -> Result<Option<u64>, SimilarError> {
        while let Some((doc, source, at, _)) = self.peek()? {
            if source != name || at >= end {
                break;
            }
            if wanted(doc) {
                return Ok(Some(at));
            }
            self.step();
        }
        Ok(None)
    }

    /// Whether the next document is at this offset of an input, and it or another one there is
    /// wanted. There may be more of them than are known yet: then one might be.
    fn is_wanted_at(
        &mut self,
        name: &str,
        offset: u64,
        wanted: &dyn Fn(DocId) -> bool,
    ) -> Result<bool, SimilarError> {
        if self.peek()?.is_none() {
            return Ok(false);
        }
        let Some(batch) = &self.batch else { return Ok(false) };
        for row in self.at..batch.len() {
            let (doc, source, at, _) = batch.row(row);
            if source != name || at != offset {
                return Ok(false);
            }
            if wanted(doc) {
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Before which offset the document that is looked at ends, as far as is known, and with it
    /// those that are wanted and begin shortly after: one long read is better than many short ones.
    fn end(&self, wanted: &dyn Fn(DocId) -> bool) -> u64 {
        let Some(batch) = &self.batch else { return u64::MAX };
        let (_, source, start, _) = batch.row(self.at);
        let mut end = u64::MAX;
        let mut last_wanted = true;
        for row in self.at + 1..batch.len() {
            let (doc, next_source, offset, _) = batch.row(row);
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
    input: Option<(Tasks, Input)>,
    rows: Places,
    analyzer: Analyzer,
    sets: HeldSets,
}

/// An input that is being read.
struct Input {
    name: String,
    source: Source,
    /// The offset that was asked for last, and whether a document there is wanted. Several records
    /// of one compressed member have one offset.
    here: Option<(u64, bool)>,
    /// The last record that could not be read.
    unread: Option<BadRecord>,
}

impl Input {
    /// A document of it is not what it was.
    fn changed(&self, offset: u64) -> SimilarError {
        let unread = self.unread.as_ref().filter(|bad| bad.offset == offset);
        ChangedInput::document(&self.source, offset, unread.map(|bad| &bad.reason)).into()
    }
}

impl SetCursor for Cursor {
    fn advance(&mut self, wanted: &dyn Fn(DocId) -> bool) -> Result<Option<DocId>, SimilarError> {
        loop {
            while let Some(doc) = self.sets.advance()? {
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
        self.sets.chunks()
    }
}

impl Cursor {
    /// Reads one more unit of work; `false` at the end.
    fn run_task(&mut self, wanted: &dyn Fn(DocId) -> bool) -> Result<bool, SimilarError> {
        cancel::check().map_err(TableError::from)?;
        let Some((tasks, input)) = &mut self.input else { return self.next_input(wanted) };
        let Some(task) = tasks.next_task() else {
            let missing = self.rows.pass(&input.name, u64::MAX, wanted)?;
            let changed = missing.map(|offset| input.changed(offset));
            self.input = None;
            return changed.map_or(Ok(true), Err);
        };
        let mut picker = Picker {
            input,
            rows: &mut self.rows,
            wanted,
            analyzer: &mut self.analyzer,
            sets: &mut self.sets,
            failure: None,
        };
        task.run(&mut self.scratch, &mut picker);
        picker.failure.map_or(Ok(true), Err)
    }

    /// Begins with the next input; `false` if there is none.
    fn next_input(&mut self, wanted: &dyn Fn(DocId) -> bool) -> Result<bool, SimilarError> {
        let Some(entry) = self.inputs.pop_front() else {
            while let Some((doc, source, ..)) = self.rows.peek()? {
                if wanted(doc) {
                    return Err(ChangedInput::unlisted(source).into());
                }
                self.rows.step();
            }
            return Ok(false);
        };
        let source = reopen_unchanged(&entry, None, &self.options)?;
        let tasks = Tasks::new(Arc::new([source.clone()]), Arc::clone(&self.options));
        self.input = Some((tasks, Input { name: entry.name, source, here: None, unread: None }));
        Ok(true)
    }
}

/// Takes out of a task the documents that are wanted.
struct Picker<'a> {
    input: &'a mut Input,
    rows: &'a mut Places,
    wanted: &'a dyn Fn(DocId) -> bool,
    analyzer: &'a mut Analyzer,
    sets: &'a mut HeldSets,
    failure: Option<SimilarError>,
}

impl Picker<'_> {
    /// Whether a document at an offset is wanted. Those before it must have come by.
    fn find(&mut self, offset: u64) -> Result<bool, SimilarError> {
        if let Some((at, is_wanted)) = self.input.here
            && at == offset
        {
            return Ok(is_wanted);
        }
        if let Some(missing) = self.rows.pass(&self.input.name, offset, self.wanted)? {
            return Err(self.input.changed(missing));
        }
        let is_wanted = self.rows.is_wanted_at(&self.input.name, offset, self.wanted)?;
        self.input.here = Some((offset, is_wanted));
        Ok(is_wanted)
    }

    /// Where the next document that is wanted begins, and before which offset it ends.
    fn find_next(&mut self, from: u64) -> Result<Option<Range<u64>>, SimilarError> {
        let Some(at) = self.rows.pass(&self.input.name, u64::MAX, self.wanted)? else { return Ok(None) };
        if at < from {
            return Err(self.input.changed(at));
        }
        Ok(Some(at..self.rows.end(self.wanted)))
    }

    fn take(&mut self, document: &Document<'_>) -> Result<(), SimilarError> {
        let Some((doc, source, offset, text_fp)) = self.rows.peek()? else { return Ok(()) };
        if source != self.input.name || offset != document.offset {
            return Ok(());
        }
        let analysis = self.analyzer.analyze_chunks(document.text);
        // Of the records at one offset, the scan may have skipped this one.
        if analysis.text_fp().map(|fingerprint| fingerprint.0) != text_fp {
            return Ok(());
        }
        if (self.wanted)(doc) {
            self.sets.push(doc, analysis.main_chunks())?;
        }
        self.rows.step();
        Ok(())
    }

    /// What was found, unless there is or has been an error.
    fn checked<T: Default>(&mut self, find: impl FnOnce(&mut Self) -> Result<T, SimilarError>) -> T {
        if self.failure.is_some() {
            return T::default();
        }
        find(self).unwrap_or_else(|error| {
            self.failure = Some(error);
            T::default()
        })
    }
}

impl Visitor for Picker<'_> {
    fn wants(&mut self, offset: u64) -> bool {
        self.checked(|picker| picker.find(offset))
    }

    fn next_wanted(&mut self, from: u64) -> Option<Range<u64>> {
        self.checked(|picker| picker.find_next(from))
    }

    fn document(&mut self, document: Document<'_>) {
        self.checked(|picker| picker.take(&document));
    }

    fn bad_record(&mut self, bad: BadRecord) {
        self.input.unread = Some(bad);
    }

    fn skipped(&mut self, _: SkipReason) {}

    fn failed(&mut self, failure: InputFailure) {
        if self.failure.is_none() {
            self.failure = Some(SimilarError::from(ChangedInput {
                input: self.input.name.clone(),
                reason: format!("at byte {}: {}", failure.byte, failure.detail),
            }));
        }
    }
}
