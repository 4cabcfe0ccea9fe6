//! The texts of an atlas, read again from its inputs, in the order of its documents.
//!
//! An atlas holds what was learnt of texts and not the texts. Whoever needs all of them, such as a
//! full-text index, walks the inputs as the scan did, beside the table of documents, which says
//! where each of them begins. A document whose input is gone, or which is not at its place any
//! more, comes by without a text, so that nothing shifts. So does one with another text than the
//! scan saw: an input that changed can have the same length, and records where others were. The
//! fingerprint of every text is compared with the one in the table.

use std::path::PathBuf;
use std::sync::Arc;

use onionskin_core::{Recipe, RecipeError, TextFingerprinter};
use onionskin_corpus::{BadRecord, Document, InputFailure, Scratch, SkipReason, Tasks, Visitor};
use onionskin_store::table::{DocumentBatch, DocumentRow, DocumentsReader};
use onionskin_store::{Atlas, AtlasError, MemoryBudget, TableError};

use crate::inputs::{limit_tools, reading_options, reopen_unchanged};

/// Where inputs are and how they are read.
#[derive(Clone, Debug, Default)]
pub struct TextsParams {
    /// Where inputs with relative names lie; the current folder when not given.
    pub base: Option<PathBuf>,
    /// The command that reads PDF files apart from this process; see `ExtractOptions::pdf_worker`.
    pub pdf_worker: Vec<String>,
    /// The memory budget, by which programs that read documents are limited; half of this machine's
    /// memory when not given.
    pub memory: Option<MemoryBudget>,
}

/// An input that cannot be read again, or that holds other texts now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostInput {
    /// Its name.
    pub input: String,
    /// Documents that came from it; of an input that changed, those without their text.
    pub documents: u64,
    /// What is wrong.
    pub reason: String,
}

/// Why the walk ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextsError<E> {
    /// The atlas cannot be used.
    #[error(transparent)]
    Atlas(#[from] Box<AtlasError>),
    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] Box<TableError>),
    /// The recipe of the atlas is not one.
    #[error("the recipe of the atlas: {0}")]
    Recipe(#[from] RecipeError),
    /// The one who receives the texts has had enough.
    #[error(transparent)]
    Receiver(E),
}

/// Gives every document of an atlas with its text, in order; `None` where the text is not to be
/// had. Tells which inputs could not be read.
pub fn read_texts<E>(
    atlas: &Atlas,
    params: &TextsParams,
    mut each: impl FnMut(&DocumentRow<'_>, Option<&str>) -> Result<(), E>,
) -> Result<Vec<LostInput>, TextsError<E>> {
    let mut options = reading_options(atlas).map_err(Box::new)?;
    options.extract.pdf_worker.clone_from(&params.pdf_worker);
    limit_tools(&mut options, params.memory.unwrap_or_else(MemoryBudget::default_for_machine));
    let options = Arc::new(options);
    let documents = atlas.documents().map_err(Box::new)?;
    let recipe: Recipe = atlas.manifest().recipe.parse()?;
    let fingerprinter = TextFingerprinter::new(&recipe);
    let mut rows =
        Rows { documents, fingerprinter, batch: None, at: 0, changed: 0, failure: None, each: &mut each };
    let mut lost = Vec::new();
    for input in atlas.manifest().inputs.iter().filter(|input| input.documents > 0) {
        let mut is_lost = false;
        let mut lose = |reason: String| {
            is_lost = true;
            lost.push(LostInput { input: input.name.clone(), documents: input.documents, reason });
        };
        rows.changed = 0;
        match reopen_unchanged(input, params.base.as_deref(), &options) {
            Err(changed) => lose(changed.reason),
            Ok(source) => {
                let mut scratch = Scratch::new(&options);
                let mut tasks = Tasks::new(Arc::new([source]), Arc::clone(&options));
                while let Some(task) = tasks.next_task() {
                    let mut visitor = Input { name: &input.name, rows: &mut rows, failure: None };
                    task.run(&mut scratch, &mut visitor);
                    let failure = visitor.failure;
                    rows.check()?;
                    if let Some(InputFailure { byte, detail, .. }) = failure {
                        lose(format!("at byte {byte}: {detail}"));
                        break;
                    }
                }
            }
        }
        rows.pass_over(Some(&input.name));
        rows.check()?;
        if rows.changed > 0 && !is_lost {
            let reason = "it has changed since it was scanned".to_owned();
            lost.push(LostInput { input: input.name.clone(), documents: rows.changed, reason });
        }
    }
    // An atlas from elsewhere may name inputs that its manifest does not have.
    rows.pass_over(None);
    rows.check()?;
    Ok(lost)
}

/// Receives a document and its text.
type Each<'a, E> = dyn FnMut(&DocumentRow<'_>, Option<&str>) -> Result<(), E> + 'a;

/// The documents that have not come by yet.
struct Rows<'a, E> {
    documents: DocumentsReader,
    fingerprinter: TextFingerprinter,
    batch: Option<DocumentBatch>,
    at: usize,
    /// Documents of this input that have a text in the atlas and not that text in the input.
    changed: u64,
    failure: Option<TextsError<E>>,
    each: &'a mut Each<'a, E>,
}

impl<E> Rows<'_, E> {
    fn check(&mut self) -> Result<(), TextsError<E>> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// The input and the offset of the document that comes next.
    fn peek(&mut self) -> Option<(&str, u64)> {
        while self.failure.is_none() && self.batch.as_ref().is_none_or(|batch| self.at >= batch.len()) {
            match self.documents.next_batch() {
                Ok(Some(batch)) => (self.batch, self.at) = (Some(batch), 0),
                Ok(None) => return None,
                Err(error) => self.failure = Some(Box::new(error).into()),
            }
        }
        if self.failure.is_some() {
            return None;
        }
        let row = self.batch.as_ref()?.row(self.at);
        Some((row.source, row.offset))
    }

    fn give(&mut self, text: Option<&str>) {
        let Some(batch) = &self.batch else { return };
        let row = batch.row(self.at);
        let text = text.filter(|text| self.fingerprinter.text_fp(text).map(|fp| fp.0) == row.text_fp);
        self.changed += u64::from(text.is_none() && row.text_fp.is_some());
        if let Err(error) = (self.each)(&row, text) {
            self.failure = Some(TextsError::Receiver(error));
        }
        self.at += 1;
    }

    /// The documents of an input that are left, or all, without their texts.
    fn pass_over(&mut self, input: Option<&str>) {
        while self.peek().is_some_and(|(source, _)| input.is_none_or(|input| input == source)) {
            self.give(None);
        }
    }
}

/// What a task of one input finds.
struct Input<'a, 'b, E> {
    name: &'a str,
    rows: &'a mut Rows<'b, E>,
    failure: Option<InputFailure>,
}

impl<E> Visitor for Input<'_, '_, E> {
    fn document(&mut self, document: Document<'_>) {
        // Several records of a compressed member have one offset; they come in the order of the
        // scan.
        while let Some((source, offset)) = self.rows.peek() {
            if source != self.name || offset > document.offset {
                return;
            }
            let here = offset == document.offset;
            self.rows.give(here.then_some(document.text));
            if here {
                return;
            }
        }
    }

    fn bad_record(&mut self, _: BadRecord) {}

    fn skipped(&mut self, _: SkipReason) {}

    fn failed(&mut self, failure: InputFailure) {
        self.failure = Some(failure);
    }
}

#[cfg(test)]
mod tests;
