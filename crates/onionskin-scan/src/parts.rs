//! Pieces of the inputs, read and fingerprinted.
//!
//! The inputs are planned once; a unit of the plan is a file, or some tasks of one that can be
//! entered in the middle. A document is known by source, task and row until all units are done and
//! somebody can count: its number is the number of documents before it in that order, which is the
//! order of a scan on one machine.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use onionskin_core::{Analyzer, Recipe};
use onionskin_corpus::{
    DiscoverError, Format, Options, Position, ResumeError, Scratch, Source, Task, Tasks, TextRow, discover,
};

use crate::batch::Batch;

/// A piece of the inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The number of the source among all.
    pub source: u32,
    /// What has to be discovered to find the source again: its path, or all inputs where it is made
    /// of several.
    pub inputs: Vec<String>,
    /// Which of the sources found there it is.
    pub nth: u32,
    /// Its name in the atlas.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its format.
    pub format: Format,
    /// The first task of it, and how many; `None` for all.
    pub tasks: (u32, Option<u32>),
    /// The files of a source whose name is no path.
    pub files: Vec<String>,
}

/// Why a unit cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// It was there when the inputs were planned.
    #[error("{input} has no source {nth} any more")]
    Gone {
        /// The input.
        input: String,
        /// The source.
        nth: u32,
    },
    /// The input failed while it was read.
    #[error("{place}: the input failed: {reason}")]
    Input {
        /// The input and the byte.
        place: String,
        /// What the system said.
        reason: String,
    },
    /// A bug.
    #[error("reading {name} failed: {message}\nhint: this is a bug")]
    Panic {
        /// The source.
        name: String,
        /// What the panic said.
        message: String,
    },
    /// The source is not there, or not what it was when the inputs were planned.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// There are not so many tasks.
    #[error(transparent)]
    Resume(#[from] ResumeError),
}

/// Plans the inputs: sources in the order of a scan, those that can be split in units of some
/// tasks.
///
/// # Errors
///
/// When an input does not exist, or is in no known format.
pub fn plan(inputs: &[String], options: &Options, tasks_of_unit: u32) -> Result<Vec<Unit>, DiscoverError> {
    let sources = discover(inputs, options)?;
    // Workers may stand in another folder.
    let absolute =
        |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string();
    let all: Vec<String> = inputs.iter().map(|input| spelled_out(input, absolute)).collect();
    let mut units = Vec::new();
    for (number, source) in (0..).zip(&sources) {
        if source.is_stream() {
            return Err(DiscoverError::NotFound { input: source.name.clone() });
        }
        // A file that is found by itself need not be searched for again in its folder.
        let by_itself = source.path().filter(|_| source.format != Format::Tree);
        let (inputs, nth) = match by_itself {
            Some(path) => (vec![absolute(path)], 0),
            None => (all.clone(), number),
        };
        let unit = |tasks| Unit {
            source: number,
            inputs: inputs.clone(),
            nth,
            name: source.name.clone(),
            bytes: source.bytes,
            format: source.format,
            tasks,
            files: source.named_files(),
        };
        match source.split(options) {
            None => units.push(unit((0, None))),
            Some(all) => {
                let step = tasks_of_unit.max(1);
                let starts = (0..all.max(1)).step_by(step as usize);
                units.extend(starts.map(|first| unit((first, Some(step.min(all - first.min(all)))))));
            }
        }
    }
    Ok(units)
}

/// An input that means the same in every folder. Addresses of object stores do already.
fn spelled_out(input: &str, absolute: impl Fn(&Path) -> String) -> String {
    match input.strip_prefix('@') {
        Some(list) => format!("@{}", absolute(Path::new(list))),
        None if input.contains("://") => input.to_owned(),
        None => absolute(Path::new(input)),
    }
}

/// What the inputs are, as far as can be known without reading them: names, sizes and the times of
/// their last change.
pub fn fingerprint(units: &[Unit]) -> String {
    let mut digest = xxhash_rust::xxh3::Xxh3::new();
    for unit in units {
        digest.update(unit.name.as_bytes());
        digest.update(&unit.bytes.to_le_bytes());
        for input in &unit.inputs {
            let changed = std::fs::metadata(input).and_then(|meta| meta.modified()).ok();
            let since = changed.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
            digest.update(&since.map_or(0, |since| since.as_nanos()).to_le_bytes());
        }
    }
    format!("{:016x}", digest.digest())
}

/// Who takes the text out of what, for the manifest.
pub fn extractors(options: &Options) -> BTreeMap<String, String> {
    crate::extractors(options)
}

/// A document, read and fingerprinted.
#[derive(Clone, Copy)]
pub struct Scanned<'a> {
    /// The id the input gave it.
    pub id: Option<&'a str>,
    /// Its URL.
    pub url: Option<&'a str>,
    /// The host it stands on.
    pub host: Option<&'a str>,
    /// Its title.
    pub title: Option<&'a str>,
    /// The URL it names as its canonical one.
    pub canonical_url: Option<&'a str>,
    /// The media type of the payload.
    pub media_type: &'a str,
    /// Where in the input.
    pub offset: u64,
    /// Length of the payload.
    pub bytes: u64,
    /// Number of canonical tokens.
    pub tokens: u64,
    /// Fingerprint of the canonical text; `None` when the document is empty.
    pub text_fp: Option<u64>,
    /// When it was fetched: microseconds since 1970, UTC.
    pub fetched_at: Option<i64>,
    /// SHA-1 of the payload.
    pub payload_sha1: Option<[u8; 20]>,
    /// Whether it only says that a payload was met again.
    pub revisit: bool,
    /// The name under which links meet it.
    pub url_fp: Option<u64>,
    /// The names of what it links to.
    pub links: &'a [u64],
    /// Its features, where the recipe has any and the document is not empty.
    pub features: Option<&'a [u64]>,
    /// Its minima, where the recipe keeps them and the document is not empty.
    pub sketch: Option<&'a [u32]>,
    nth: usize,
    chunks: &'a [(usize, usize)],
    batch: &'a Batch,
}

impl<'a> Scanned<'a> {
    /// Its chunks, for each chunking that the recipe keeps, in order.
    pub fn chunks(&self) -> impl Iterator<Item = &'a [u64]> {
        let batch = self.batch;
        self.chunks.iter().enumerate().map(move |(nth, (start, end))| &batch.chunks[nth][*start..*end])
    }

    /// Its row in the task.
    pub fn row(&self) -> u64 {
        self.nth as u64
    }
}

/// Records that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadPart {
    /// A short name of the reason.
    pub code: &'static str,
    /// Where.
    pub place: String,
    /// Why.
    pub reason: String,
    /// How many records.
    pub records: u64,
    /// How many bytes of the input.
    pub bytes: u64,
}

/// A task, done.
#[derive(Clone, Copy)]
pub struct TaskResult<'a> {
    /// The number of the task in its source.
    pub task: u32,
    place: Place<'a>,
    batch: &'a Batch,
    sketch_len: usize,
    n_features: usize,
}

impl<'a> TaskResult<'a> {
    /// Input that was read.
    pub fn input_bytes(&self) -> u64 {
        self.batch.input_bytes
    }

    /// Bytes of text.
    pub fn text_bytes(&self) -> u64 {
        self.batch.text_bytes
    }

    /// What could not be read.
    pub fn bad_records(&self) -> impl Iterator<Item = BadPart> {
        let bad_records = self.batch.bad_records.iter();
        bad_records.map(|bad| BadPart {
            code: bad.reason.code(),
            place: self.place.spell(bad.offset),
            reason: bad.reason.to_string(),
            records: bad.records,
            bytes: bad.bytes,
        })
    }

    /// Records that are no documents, by description.
    pub fn skipped(&self) -> BTreeMap<String, u64> {
        self.batch.skipped.iter().map(|(reason, count)| (reason.to_string(), *count)).collect()
    }

    /// Records whose text is null or not there.
    pub fn no_text(&self) -> u64 {
        self.batch.no_text
    }

    /// Hands over the documents, in order.
    pub fn documents(&self, mut visit: impl FnMut(Scanned<'_>)) {
        let batch = self.batch;
        let chunkings = batch.chunks.len();
        let mut ranges = vec![(0, 0); chunkings];
        let mut links = batch.links.as_slice();
        let mut sketches = batch.sketches.chunks_exact(self.sketch_len.max(1));
        let mut features = batch.features.chunks_exact(self.n_features.max(1));
        for (nth, (row, strings)) in batch.documents().enumerate() {
            let (own, rest) = links.split_at(row.links as usize);
            links = rest;
            for (range, count) in ranges.iter_mut().zip(&batch.chunk_counts[nth * chunkings..]) {
                *range = (range.1, range.1 + *count as usize);
            }
            let filled = row.text_fp.is_some();
            visit(Scanned {
                id: strings.id,
                url: strings.url,
                host: strings.host,
                title: strings.title,
                canonical_url: strings.canonical_url,
                media_type: strings.media_type,
                offset: row.offset,
                bytes: row.bytes,
                tokens: row.tokens,
                text_fp: row.text_fp,
                fetched_at: row.fetched_at,
                payload_sha1: row.payload_sha1,
                revisit: row.revisit,
                url_fp: row.url_fp,
                links: own,
                features: if filled { features.next() } else { None },
                sketch: if filled { sketches.next() } else { None },
                nth,
                chunks: &ranges,
                batch,
            });
        }
    }
}

/// A unit that is being read.
pub struct Reading {
    /// One, or the members of an archive.
    sources: Arc<[Source]>,
    stream: Tasks,
    next: u32,
    end: Option<u32>,
}

/// Spells places in the input for people.
#[derive(Clone, Copy)]
enum Place<'a> {
    In(&'a Source),
    RowOf(&'a str),
}

impl Place<'_> {
    fn spell(self, offset: u64) -> String {
        match self {
            Place::In(source) => source.place(offset),
            Place::RowOf(name) => format!("{name}, row {offset}"),
        }
    }
}

/// Reads units, one after the other. What it keeps between them are buffers.
pub struct Worker {
    recipe: Recipe,
    seed: u64,
    options: Arc<Options>,
    analyzer: Analyzer,
    scratch: Scratch,
    batch: Batch,
}

impl Worker {
    /// Under a recipe.
    pub fn new(recipe: Recipe, seed: u64, options: Options) -> Worker {
        let (analyzer, scratch) = (Analyzer::new(&recipe, seed), Scratch::new(&options));
        Worker { recipe, seed, options: Arc::new(options), analyzer, scratch, batch: Batch::default() }
    }

    /// Begins to read a unit of the plan: the source `nth` of an input, under its name, some of its
    /// tasks or all.
    pub fn unit(
        &self,
        (inputs, nth): (&[String], u32),
        name: &str,
        tasks: (u32, Option<u32>),
    ) -> Result<Reading, UnitError> {
        let mut sources = discover(inputs, &self.options)?;
        if nth as usize >= sources.len() {
            return Err(UnitError::Gone { input: inputs.join(", "), nth });
        }
        let mut source = sources.swap_remove(nth as usize);
        source.name = name.to_owned();
        self.reading(vec![source], tasks)
    }

    /// Begins to read an input whose bytes somebody else has read.
    pub fn bytes(&self, name: &str, bytes: Arc<[u8]>) -> Result<Reading, UnitError> {
        self.reading(Source::in_memory(name, bytes, &self.options)?, (0, None))
    }

    fn reading(
        &self,
        sources: Vec<Source>,
        (first, tasks): (u32, Option<u32>),
    ) -> Result<Reading, UnitError> {
        let sources: Arc<[Source]> = sources.into();
        let position = Position { source: 0, task: first };
        let stream = Tasks::starting_at(Arc::clone(&sources), Arc::clone(&self.options), position)?;
        Ok(Reading { sources, stream, next: first, end: tasks.map(|tasks| first.saturating_add(tasks)) })
    }

    /// Reads the next task of a unit; `None` when all are done.
    pub fn next<'a>(&'a mut self, reading: &'a mut Reading) -> Result<Option<TaskResult<'a>>, UnitError> {
        let number = reading.next;
        if reading.end.is_some_and(|end| number >= end) {
            return Ok(None);
        }
        let Some(task) = reading.stream.next_task() else { return Ok(None) };
        reading.next += 1;
        let source = &reading.sources[task.source() as usize];
        self.run(task).map_err(|message| UnitError::Panic { name: source.name.clone(), message })?;
        if let Some(failure) = &self.batch.failure {
            let (place, reason) = (source.failure_place(failure), failure.detail.clone());
            return Err(UnitError::Input { place, reason });
        }
        Ok(Some(self.result(number, Place::In(source))))
    }

    fn run(&mut self, task: Task) -> Result<(), String> {
        self.batch.begin(0, &task);
        let ran = self.batch.fill(task, &mut self.analyzer, &self.recipe, &mut self.scratch);
        ran.inspect_err(|_| {
            // What it left in the buffers is not to be trusted.
            self.batch = Batch::default();
            self.analyzer = Analyzer::new(&self.recipe, self.seed);
            self.scratch = Scratch::new(&self.options);
        })
    }

    fn result<'a>(&'a self, task: u32, place: Place<'a>) -> TaskResult<'a> {
        let scheme = self.recipe.scheme();
        TaskResult {
            task,
            place,
            batch: &self.batch,
            sketch_len: scheme.sketch_len(),
            n_features: scheme.filter().map_or(0, |filter| filter.k()),
        }
    }

    /// Makes documents of rows of a table that somebody else has read. `first` is the number of the
    /// first of them.
    pub fn rows<'a, 'r>(
        &'a mut self,
        name: &'a str,
        first: u64,
        rows: impl Iterator<Item = TextRow<'r>>,
    ) -> TaskResult<'a> {
        self.batch.clear();
        let mut visitor = self.batch.visitor(&mut self.analyzer, &self.recipe);
        let mut bytes = 0;
        for (offset, row) in (first..).zip(rows) {
            bytes += row.text.map_or(0, str::len) as u64;
            self.scratch.row((0, offset), row, &self.options, &mut visitor);
        }
        self.batch.input_bytes = bytes;
        self.result(0, Place::RowOf(name))
    }
}

#[cfg(test)]
mod tests;
