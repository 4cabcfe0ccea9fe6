//! Chunks made on demand, from the inputs of an atlas whose scan did not keep them.
//!
//! Chunks of all kinds take more room than the text, and most atlases never need them: pairs are
//! verified on the few texts that are candidates. A search that compares the chunks of all
//! documents has them made first. That is one more pass over the inputs, by the workers of the
//! scan, and 8 bytes per chunk on disk. They stay in the atlas for the next search.
//!
//! A document is found again by its input, its offset and the fingerprint of its text, so an input
//! that has changed is detected and named. What the scan skipped is skipped again. Batches arrive
//! in the order of the documents: the table of documents is read beside them, and nothing is looked
//! up. The rows are those that a scan with these chunks would have written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onionskin_core::{Chunking, DocId, Recipe};
use onionskin_corpus::{BadRecord, Options, Position, Shares, Source, Tasks};
use onionskin_store::join::SortedCursor;
use onionskin_store::schema::ChunkingName;
use onionskin_store::stage::{self, Step, Work};
use onionskin_store::staging::StageKind;
use onionskin_store::table::{Batch as TableBatch, document};
use onionskin_store::{
    Atlas, AtlasError, Event, Manifest, MemoryBudget, Progress, Stage, StageName, StageParams, StagingError,
    Table, TableError, TableName,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::batch::{Batch, Row};
use crate::budget;
use crate::inputs::{ChangedInput, reading_options, reopen_unchanged};
use crate::read::{Reading, Sink, read_all};
use crate::writer::{Uncommitted, push_chunks};
use crate::{ScanError, ScanParams};

/// Which chunks to make.
#[derive(Clone, Debug)]
pub struct ChunksParams {
    /// The atlas.
    pub atlas: PathBuf,
    /// The chunkings. Those that the atlas has are not made again.
    pub chunkings: Vec<Chunking>,
    /// Input between two commits, in bytes. Also decides where files of the tables end.
    pub commit_bytes: u64,

    /// The command that reads PDF files apart from this process; see `ExtractOptions::pdf_worker`.
    pub pdf_worker: Vec<String>,
    /// Memory for everything.
    pub memory: MemoryBudget,
    /// Threads that read and cut.
    pub threads: usize,
}

impl ChunksParams {
    /// The chunks of some chunkings, made as a scan makes them.
    pub fn new(atlas: PathBuf, chunkings: Vec<Chunking>) -> ChunksParams {
        let ScanParams { commit_bytes, memory, threads, .. } = ScanParams::new(Vec::new(), PathBuf::new());
        ChunksParams { atlas, chunkings, commit_bytes, pdf_worker: Vec::new(), memory, threads }
    }
}

/// Makes the chunks that the atlas does not have, or resumes an interrupted run that did. Returns
/// how many chunks were made of each chunking.
pub fn make_chunks(
    params: &ChunksParams,
    progress: &dyn Progress,
) -> Result<BTreeMap<String, u64>, ScanError> {
    let atlas = Atlas::open(&params.atlas).map_err(StagingError::from)?;
    let kept = atlas.chunkings();
    let missing = params.chunkings.iter().filter(|chunking| !kept.contains(&ChunkingName::from(**chunking)));
    let missing: Vec<Chunking> = missing.copied().collect();
    let recipe: Recipe = atlas
        .manifest()
        .recipe
        .parse()
        .map_err(|error| ScanError::UnknownRecipe { reason: format!("{error}") })?;
    let Some(recipe) = recipe.only_chunks(&missing) else { return Ok(BTreeMap::new()) };
    let chunks = Chunks::new(params, &atlas, recipe, missing)?;
    let bytes = chunks.sources.iter().map(|source| source.bytes).sum();
    progress.event(Event::Discovered { sources: chunks.sources.len(), bytes });
    Ok(stage::run(&chunks, progress)?.state.chunks)
}

/// The stage, checked against the inputs.
struct Chunks<'a> {
    params: &'a ChunksParams,
    atlas: &'a Atlas,
    recipe: Recipe,
    chunkings: Vec<ChunkingName>,
    options: Arc<Options>,
    /// Those that have documents.
    sources: Arc<[Source]>,
    shares: Shares,
}

impl<'a> Chunks<'a> {
    fn new(
        params: &'a ChunksParams,
        atlas: &'a Atlas,
        recipe: Recipe,
        chunkings: Vec<Chunking>,
    ) -> Result<Chunks<'a>, ScanError> {
        let shares = budget::shares(params.memory, params.threads);
        let mut options = reading_options(atlas).map_err(StagingError::from)?;
        options.text_digests = false;
        options.extract.pdf_worker.clone_from(&params.pdf_worker);
        let options = Arc::new(shares.limit(&options));
        let inputs = atlas.manifest().inputs.iter().filter(|input| input.documents > 0);
        let sources: Result<Vec<Source>, ChangedInput> =
            inputs.map(|input| reopen_unchanged(input, None, &options)).collect();
        let chunkings = chunkings.into_iter().map(ChunkingName::from).collect();
        Ok(Chunks { params, atlas, recipe, chunkings, options, sources: sources?.into(), shares })
    }
}

/// What a resumed run must know.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    source: u32,
    task: u32,
    /// Documents whose chunks are written.
    documents: u64,
    input_bytes: u64,
    chunks: BTreeMap<String, u64>,
}

impl Stage for Chunks<'_> {
    const NAME: StageName = StageName::Chunks;
    const LEAST_MEMORY: u64 = ScanParams::LEAST_MEMORY;
    type State = State;
    type Error = ScanError;

    fn place(&self) -> (&Path, MemoryBudget) {
        (&self.params.atlas, self.params.memory)
    }

    fn staging(&self) -> StageParams {
        let manifest = self.atlas.manifest();
        let documents = manifest.tables.get(&TableName::Documents);
        let files = documents.into_iter().flat_map(|table| &table.files);
        let job = json!({
            "chunks": self.recipe.to_string(),
            "commit_bytes": self.params.commit_bytes,
            "documents": files.map(|file| format!("{:016x}", file.xxh3)).collect::<Vec<_>>(),
        });
        let tables = self.chunkings.iter().cloned().map(Table::Chunks).collect();
        let stage = StageParams::new(StageName::Chunks, job, &manifest.recipe, tables);
        StageParams { kind: StageKind::Extend, overwrite: true, ..stage }
    }

    fn begin(&self) -> State {
        State::default()
    }

    fn resume(&self, state: &State, progress: &dyn Progress) -> Result<(), ScanError> {
        let State { documents, input_bytes, .. } = *state;
        progress.event(Event::Resumed { documents, input_bytes });
        Ok(())
    }

    fn steps(&self) -> Vec<Step<'_, Self>> {
        vec![Step::new("reading the texts again for their chunks", read)]
    }

    fn describe(&self, _: &State, _: &mut Manifest) {}

    fn cost_of(&self) -> String {
        self.chunkings.iter().map(ChunkingName::as_str).collect::<Vec<_>>().join("+")
    }
}

fn read(work: &mut Work<'_, Chunks<'_>>) -> Result<(), ScanError> {
    let Chunks { recipe, options, sources, shares, .. } = work.stage;
    let position = Position { source: work.state.source, task: work.state.task };
    let tasks = Tasks::new(Arc::clone(sources), Arc::clone(options));
    let tasks = tasks.decoding(shares.ahead()).from(position)?;
    let documents = DocId(work.state.documents as u32);
    let expected = SortedCursor::new(expected(work.stage, documents)?);
    let reading = Reading { recipe, seed: 0, options, shares: *shares };
    let mut writer = Writer { work, expected, uncommitted: Uncommitted::default(), unread: Vec::new() };
    read_all(reading, tasks, &mut writer)?;
    match writer.expected.next()? {
        Some(missing) => Err(writer.changed(&missing)),
        None => Ok(()),
    }
}

/// A document of the atlas.
#[derive(Clone, Debug)]
struct Expected {
    doc: DocId,
    /// Its input and offset.
    place: (u32, u64),
    text_fp: Option<u64>,
}

type Columns = (document::Doc, document::Source, document::Offset, document::TextFp);
type ExpectedRows<'a> = Box<dyn Iterator<Item = Result<Expected, ScanError>> + 'a>;

/// The documents from one on, in order.
fn expected<'a>(stage: &'a Chunks<'_>, from: DocId) -> Result<ExpectedRows<'a>, ScanError> {
    let batches = stage.atlas.documents().map_err(StagingError::from)?.select::<Columns>();
    let mut source = 0;
    let rows_of = move |batch: Result<TableBatch<Columns>, TableError>| -> Vec<_> {
        let batch = match batch {
            Ok(batch) => batch,
            Err(error) => return vec![Err(StagingError::from(error).into())],
        };
        let row = |at: usize| {
            let (doc, name, offset, text_fp) = batch.row(at);
            // Documents are in the order of the inputs.
            let ahead = stage.sources.iter().skip(source).position(|source| source.name == name);
            let Some(ahead) = ahead else {
                return Err(ChangedInput::unlisted(name).into());
            };
            source += ahead;
            Ok(Expected { doc, place: (source as u32, offset), text_fp })
        };
        (0..batch.len()).map(row).collect()
    };
    let batches = batches.within(from..=DocId::MAX);
    let rows = batches.flat_map(rows_of);
    Ok(Box::new(rows.skip_while(move |row| row.as_ref().is_ok_and(|row| row.doc < from))))
}

/// Finds the documents of batches, and writes their chunks.
struct Writer<'w, 'a, 'c> {
    work: &'w mut Work<'a, Chunks<'c>>,
    expected: SortedCursor<ExpectedRows<'a>, Expected>,
    uncommitted: Uncommitted,
    /// Those of the last batch that had records that could not be read.
    unread: Vec<BadRecord>,
}

impl Writer<'_, '_, '_> {
    /// The document that a row is; `None` if the scan had none in its place.
    fn find(&mut self, row: &Row) -> Result<Option<DocId>, ScanError> {
        let place = (row.source, row.offset);
        if let Some(missing) = self.expected.next_if(|expected| expected.place < place)? {
            return Err(self.changed(&missing));
        }
        // Several records of one compressed member have the same offset. One of them may have been
        // skipped by the scan.
        let is_it = |expected: &Expected| expected.place == place && expected.text_fp == row.text_fp;
        Ok(self.expected.next_if(is_it)?.map(|expected| expected.doc))
    }

    /// A document is not where it was.
    fn changed(&self, missing: &Expected) -> ScanError {
        let (source, offset) = missing.place;
        let unread = self.unread.iter().rfind(|bad| (bad.source, bad.offset) == missing.place);
        let source = &self.work.stage.sources[source as usize];
        ChangedInput::document(source, offset, unread.map(|bad| &bad.reason)).into()
    }
}

impl Sink for Writer<'_, '_, '_> {
    fn sources(&self) -> &[Source] {
        &self.work.stage.sources
    }

    fn write(&mut self, batch: &Batch) -> Result<(), ScanError> {
        if !batch.bad_records.is_empty() {
            self.unread.clone_from(&batch.bad_records);
        }
        let mut docs = Vec::with_capacity(batch.rows.len());
        for row in &batch.rows {
            docs.push(self.find(row)?);
        }
        let Work { stage, staging, state, .. } = &mut *self.work;
        for (nth, chunking) in stage.chunkings.iter().enumerate() {
            let rows = docs.iter().zip(batch.chunks_by_row(nth));
            let found = rows.filter_map(|(doc, chunks)| Some(((*doc)?, chunks)));
            *state.chunks.entry(chunking.as_str().to_owned()).or_default() +=
                push_chunks(staging, chunking, found)?;
        }
        state.documents += docs.iter().flatten().count() as u64;
        if !batch.more {
            state.input_bytes += batch.input_bytes;
            (state.source, state.task) = (batch.position.source, batch.position.task);
        }
        let (documents, input_bytes) = (state.documents, batch.read_bytes);
        self.work.progress.event(Event::Scanned { documents, input_bytes, bad_records: 0 });
        if self.uncommitted.is_due_after(batch, self.work.stage.params.commit_bytes) {
            self.work.commit()?;
        }
        Ok(())
    }
}

impl From<AtlasError> for ScanError {
    fn from(error: AtlasError) -> ScanError {
        StagingError::from(error).into()
    }
}

#[cfg(test)]
mod tests;
