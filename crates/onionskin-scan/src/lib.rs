//! The scan: one pass over raw data, the only one, that turns it into an atlas.
//!
//! Sizes first. A gigabyte of text is about 170 million words. The default recipe keeps 400 bytes
//! of sketch and features per document. Shingles would take another 1.4 GB, lines and paragraphs
//! some 60 MB: they are made from the inputs when a search needs them ([`chunks`]). Everything is
//! written once, in input order, and only links are sorted afterwards.

mod batch;
mod budget;
pub mod chunks;
pub mod inputs;
mod links;
pub mod parts;
mod read;
mod sites;
mod state;
#[cfg(any(test, feature = "test-support"))]
pub mod testing;
pub mod texts;
mod writer;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onionskin_core::{Recipe, unicode};
use onionskin_corpus::{
    DiscoverError, FieldNames, Format, Options, ResumeError, Shares, SkipReason, Source, Tasks, discover,
};
use onionskin_extract::Extractor;
use onionskin_store::cancel::Cancelled;
use onionskin_store::manifest::{InputEntry, MANIFEST_FILE};
use onionskin_store::sort::SortError;
use onionskin_store::stage::{self, Done, Finished, Step, Work};
use onionskin_store::{
    Atlas, Event, Manifest, MemoryBudget, Progress, Stage, StageName, StageParams, StagingError, Table,
    TooLittleMemory,
};
use serde::Serialize;
use serde_json::{Value, json};

use inputs::{ChangedInput, ScanRecord};
use read::{Reading, read_all};
use state::{FieldCounts, State};
use writer::Writer;

/// What to scan, and how. `inputs` to `commit_bytes` decide the bytes of the atlas. The others say
/// where it goes, when to stop, and what may be used.
#[derive(Clone, Debug)]
pub struct ScanParams {
    /// Files, folders, globs, `-`, object-store URLs.
    pub inputs: Vec<String>,
    /// What is computed from a text. `None` is the default recipe, with the main chunks kept if an
    /// input is a pipe: later stages cannot make them from it.
    pub recipe: Option<Recipe>,
    /// The seed of the permutations.
    pub seed: u64,
    /// How inputs are read.
    pub options: Options,
    /// Input between two commits, in bytes. Also decides where files of the atlas end.
    pub commit_bytes: u64,

    /// The folder of the atlas.
    pub atlas: PathBuf,
    /// Whether a finished atlas, or the unfinished work of another job, may be replaced.
    pub overwrite: bool,
    /// More bad records than this are an error; `None` is no limit.
    pub max_bad_records: Option<u64>,
    /// A file of a folder that cannot be opened is an error, and not a file that is skipped.
    pub strict: bool,
    /// Threads that read and fingerprint.
    pub threads: usize,
    /// Memory for everything.
    pub memory: MemoryBudget,
}

impl ScanParams {
    /// Input between two commits: half a gigabyte is a few seconds of work to lose, and files that
    /// readers like.
    pub const COMMIT_BYTES: u64 = 512 << 20;
    /// The seed where none is given.
    pub const SEED: u64 = 1;
    /// The least memory a scan works with.
    pub const LEAST_MEMORY: u64 = 128 << 20;

    /// The default scan of some inputs into an atlas.
    pub fn new(inputs: Vec<String>, atlas: PathBuf) -> ScanParams {
        ScanParams {
            inputs,
            recipe: None,
            seed: ScanParams::SEED,
            options: Options::default(),
            commit_bytes: ScanParams::COMMIT_BYTES,
            atlas,
            overwrite: false,
            max_bad_records: None,
            strict: false,
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory: MemoryBudget::default_for_machine(),
        }
    }

    /// Whether the directory has the finished scan of the same inputs, read in the same way, and is
    /// not to be replaced. Inputs are the same if they have the same names, lengths and formats; a
    /// pipe is never the same.
    pub fn finished(&self) -> Result<Finished, ScanError> {
        let begun = stage::is_begun(&self.atlas, StageName::Scan);
        if self.overwrite || begun || !self.atlas.join(MANIFEST_FILE).is_file() {
            return Ok(Finished::No);
        }
        let atlas = Atlas::open(&self.atlas).map_err(StagingError::from)?;
        let manifest = atlas.manifest();
        let Some(record) = atlas.record::<ScanRecord>().map_err(StagingError::from)? else {
            return Ok(Finished::Differs("how its inputs were read is not recorded".to_owned()));
        };
        let sources = discover(&self.inputs, &self.options)?;
        if let Some(stream) = sources.iter().find(|source| source.is_stream()) {
            return Ok(Finished::Differs(format!("{} is a pipe, which may have other content", stream.name)));
        }
        let job = |inputs: Vec<Value>, recipe: &str, seed: u64, reading: &ScanRecord| json!({ "inputs": inputs, "reading": reading, "recipe": recipe, "seed": seed });
        let input =
            |name: &str, bytes: u64, format: &str| json!({ "name": name, "bytes": bytes, "format": format });
        let before = manifest.inputs.iter();
        let before = before.map(|entry| input(&entry.name, entry.bytes, &entry.format)).collect();
        let now = sources.iter();
        let now = now.map(|source| input(&source.name, source.bytes, source.format.as_str())).collect();
        Ok(Finished::of(
            &job(before, &manifest.recipe, manifest.seed, &record),
            &job(now, &self.recipe_for(&sources).to_string(), self.seed, &record.comparable(&self.options)),
        ))
    }

    /// Whether there is nothing to do.
    pub fn is_done(&self) -> Result<bool, ScanError> {
        Ok(self.finished()? == Finished::Same)
    }

    fn recipe_for(&self, sources: &[Source]) -> Recipe {
        match &self.recipe {
            Some(recipe) => recipe.clone(),
            None if sources.iter().any(Source::is_stream) => Recipe::default().with_main_chunks(),
            None => Recipe::default(),
        }
    }
}

/// What was seen.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ScanSummary {
    /// The directory of the atlas.
    #[serde(serialize_with = "onionskin_store::json::path")]
    pub atlas: PathBuf,
    /// What was computed from every text.
    pub recipe: String,
    /// Documents.
    pub documents: u64,
    /// Documents with no token, revisits not counted.
    pub empty_documents: u64,
    /// Documents that are only a note that another was met again.
    pub revisits: u64,
    /// Words.
    pub tokens: u64,
    /// Bytes of text.
    pub text_bytes: u64,
    /// Sites.
    pub sites: u64,
    /// Links found in documents, to whatever address.
    pub links_found: u64,
    /// Relative links of pages whose own URL is not known; they are not among the links found.
    pub links_unresolved: u64,
    /// Distinct links that land on a document of the atlas.
    pub links: u64,
    /// If pages have links and none lands on a document: what may give their URLs.
    pub link_remedies: Vec<LinkRemedy>,
    /// Fields that were named by the caller, and in which no record has anything.
    pub fields_not_found: Vec<FieldNotFound>,
    /// Chunks kept, by chunking.
    pub chunks: BTreeMap<String, u64>,
    /// Records that could not be read, by code.
    pub bad_records: BTreeMap<String, u64>,
    /// Bytes of input that they take, as far as that is known.
    pub bad_record_bytes: u64,
    /// Records that are no documents, since their text is null or not there.
    pub no_text: u64,
    /// Inputs in which there is not one document.
    pub inputs_without_documents: u64,
    /// The first 100 of them, with the reason.
    pub inputs_without_documents_examples: Vec<BadRecord>,
    /// Records that are no documents, by description.
    pub skipped: BTreeMap<String, u64>,
    /// Files of folders that could not be opened; they are among the skipped.
    pub unreadable_files: u64,
    /// The first files that were skipped: at most 10 for each reason, unreadable ones before all.
    pub skipped_files: Vec<BadRecord>,
    /// Inputs.
    pub sources: u64,
    /// Bytes of input.
    pub input_bytes: u64,
    /// The first bad records.
    pub bad_record_examples: Vec<BadRecord>,
    /// Documents that were taken over from an earlier run.
    pub resumed_documents: u64,
    /// Seconds this run took.
    pub seconds: f64,
    /// CPU seconds this run took.
    pub cpu_seconds: f64,
    /// The most memory that was resident, where the system tells.
    pub peak_memory: Option<u64>,
    /// Bytes that sorting wrote to disk.
    pub spilled_bytes: u64,
}

/// A field that was named, and in which no record has what it is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldNotFound {
    /// What it is for.
    pub field: RecordField,
    /// The names that were given, with commas between them.
    pub names: String,
}

/// What a field of a record is for, the text aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordField {
    /// [`Options::id_field`].
    Id,
    /// [`Options::url_field`].
    Url,
    /// [`Options::date_field`].
    Date,
}

/// What gives URLs to pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkRemedy {
    /// The folders in a folder may be hosts: [`Options::hosts`].
    Hosts,
    /// The files may come from one place: [`Options::base_url`].
    BaseUrl,
    /// The records may have their URLs in another field: [`Options::url_field`].
    UrlField,
}

/// A record that could not be read, or a file that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BadRecord {
    /// The input and the offset.
    pub place: String,
    /// What is wrong with it.
    pub reason: String,
}

impl From<(String, String)> for BadRecord {
    fn from((place, reason): (String, String)) -> BadRecord {
        BadRecord { place, reason }
    }
}

/// How many of the skipped are files that could not be opened.
fn unreadable_files(skipped: &BTreeMap<String, u64>) -> u64 {
    skipped.get(&SkipReason::UnreadableFile.to_string()).copied().unwrap_or(0)
}

impl ScanSummary {
    /// All records that could not be read.
    pub fn bad_record_count(&self) -> u64 {
        self.bad_records.values().fold(0, |sum, records| sum.saturating_add(*records))
    }
}

/// Why a scan ended without an atlas.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// Nothing to read, or not what it seemed.
    #[error(transparent)]
    Discover(#[from] DiscoverError),
    /// An input failed while it was read. What was committed stays.
    #[error(
        "{place}: the input failed: {reason}\nhint: repair or remove the input; the same scan run again resumes"
    )]
    Input {
        /// The input and the byte.
        place: String,
        /// What the system said.
        reason: String,
    },
    /// An input that is to be read again is gone, or is not what was scanned.
    #[error(transparent)]
    Changed(#[from] ChangedInput),
    /// The recipe of the atlas is of a newer version.
    #[error("the recipe of the atlas: {reason}")]
    UnknownRecipe {
        /// What is wrong with it.
        reason: String,
    },
    /// A file of a folder cannot be opened, and that is not to be passed over.
    #[error("{place}: an unreadable file: {reason}")]
    Unreadable {
        /// The file.
        place: String,
        /// What the system said.
        reason: String,
    },
    /// The earlier run cannot be taken up.
    #[error("{0}\nhint: start over with overwrite")]
    Resume(#[from] ResumeError),
    /// The atlas cannot be written.
    #[error(transparent)]
    Staging(Box<StagingError>),
    /// Links cannot be sorted.
    #[error(transparent)]
    Sort(#[from] SortError),
    /// Too little memory to begin.
    #[error(transparent)]
    TooLittleMemory(#[from] TooLittleMemory),
    /// The table of sites does not fit.
    #[error("{sites} hosts exceed a quarter of the {memory} memory budget")]
    TooManySites {
        /// Sites so far.
        sites: u64,
        /// The whole budget.
        memory: MemoryBudget,
    },
    /// The limit was reached.
    #[error("{count} bad records are more than the {limit} that are allowed; the last: {place}: {reason}")]
    TooManyBadRecords {
        /// How many there were.
        count: u64,
        /// How many there may be.
        limit: u64,
        /// Where the last one was.
        place: String,
        /// What was wrong with it.
        reason: String,
    },
    /// More documents than numbers.
    #[error("an atlas holds at most {} documents", u32::MAX)]
    TooManyDocuments,
    /// Somebody said stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// A bug: a worker panicked.
    #[error("a worker failed on {source_name}: {message}\nhint: this is a bug; what was committed is safe")]
    Worker {
        /// The input it worked on.
        source_name: String,
        /// The message of the panic.
        message: String,
    },
}

onionskin_store::boxed_sources!(ScanError: Staging(StagingError));

/// Scans the inputs into an atlas, or resumes an interrupted run of the same scan.
pub fn scan(params: &ScanParams, progress: &dyn Progress) -> Result<ScanSummary, ScanError> {
    // Before inputs are looked for, which takes a while when there are many.
    TooLittleMemory::check(StageName::Scan, params.memory, ScanParams::LEAST_MEMORY)?;
    if let Finished::Differs(difference) = params.finished()? {
        let (dir, stage) = (params.atlas.clone(), StageName::Scan);
        return Err(StagingError::AlreadyFinished { dir, stage, difference: Some(difference) }.into());
    }
    let sources = discover(&params.inputs, &params.options)?;
    if params.strict
        && let Some((place, reason)) = sources.iter().find_map(Source::first_unreadable)
    {
        return Err(ScanError::Unreadable { place, reason: reason.to_owned() });
    }
    let bytes = sources.iter().map(|source| source.bytes).sum();
    progress.event(Event::Discovered { sources: sources.len(), bytes });
    let scan = Scan::new(params.clone(), sources.into());
    let done = stage::run(&scan, progress)?;
    Ok(scan.summary(done))
}

/// A scan of inputs that were discovered.
pub(crate) struct Scan {
    params: ScanParams,
    recipe: Recipe,
    options: Arc<Options>,
    sources: Arc<[Source]>,
    shares: Shares,
    /// Documents of the run that was resumed.
    resumed_documents: Cell<u64>,
}

impl Scan {
    fn new(params: ScanParams, sources: Arc<[Source]>) -> Scan {
        let shares = budget::shares(params.memory, params.threads);
        Scan::with_shares(params, sources, shares)
    }

    /// With shares that are not those of the budget.
    fn with_shares(params: ScanParams, sources: Arc<[Source]>, shares: Shares) -> Scan {
        let options = Arc::new(shares.limit(&params.options));
        let recipe = params.recipe_for(&sources);
        Scan { params, recipe, options, sources, shares, resumed_documents: Cell::new(0) }
    }

    /// Inputs that have no document, each with the reason. The files of a folder that are documents
    /// by themselves are one input. It is not among them if other files of the folder have some.
    fn undocumented(&self, state: &State) -> Vec<BadRecord> {
        let inputs = || (0..).zip(self.sources.iter()).zip(&state.per_source);
        let has_others = |source: &Source| {
            let Some(folder) = source.folder() else { return false };
            let is_in = |other: &Source| Path::new(&other.name).starts_with(folder);
            inputs().any(|((_, other), (documents, _))| *documents > 0 && is_in(other))
        };
        let empty = inputs().filter(|((_, source), (documents, _))| {
            *documents == 0 && (source.format != Format::Tree || !has_others(source))
        });
        let reason = |source: u32| match state.undocumented.get(&source) {
            Some(reason) => reason.clone(),
            None => "there are no records".to_owned(),
        };
        empty
            .map(|((number, source), _)| BadRecord { place: source.name.clone(), reason: reason(number) })
            .collect()
    }

    /// What has not been tried, where no link lands on a document.
    fn link_remedies(&self, state: &State) -> Vec<LinkRemedy> {
        let has_links = state.links_found + state.links_unresolved > 0;
        if state.links > 0 || !has_links || state.documents_without_url == 0 {
            return Vec::new();
        }
        let options = &self.options;
        let may_be_hosts = !options.hosts && self.sources.iter().any(Source::has_folders);
        let may_have_base =
            options.base_url.is_none() && self.sources.iter().any(|source| source.format == Format::Tree);
        let may_have_field = state.fields.documents > state.fields.with_url;
        let remedies = [
            (may_be_hosts, LinkRemedy::Hosts),
            (may_have_base, LinkRemedy::BaseUrl),
            (may_have_field, LinkRemedy::UrlField),
        ];
        remedies.into_iter().filter(|(may_be, _)| *may_be).map(|(_, remedy)| remedy).collect()
    }

    /// Fields that are not those by default, and in which nothing was found.
    fn fields_not_found(&self, state: &State) -> Vec<FieldNotFound> {
        let Options { id_field, url_field, date_field, .. } = &*self.options;
        let FieldCounts { documents, with_id, with_url, with_date } = state.fields;
        let fields = [
            (RecordField::Id, id_field, FieldNames::ID, with_id),
            (RecordField::Url, url_field, FieldNames::URL, with_url),
            (RecordField::Date, date_field, FieldNames::DATE, with_date),
        ];
        let fields = fields.into_iter().filter(|(_, names, default, found)| {
            documents > 0 && *found == 0 && !names.is_empty() && **names != FieldNames::from(*default)
        });
        fields.map(|(field, names, ..)| FieldNotFound { field, names: names.to_string() }).collect()
    }

    fn summary(&self, Done { state, usage }: Done<State>) -> ScanSummary {
        let (undocumented, remedies) = (self.undocumented(&state), self.link_remedies(&state));
        let fields_not_found = self.fields_not_found(&state);
        let examples = state.bad_record_examples.into_iter();
        ScanSummary {
            atlas: self.params.atlas.clone(),
            recipe: self.recipe.to_string(),
            documents: state.documents,
            empty_documents: state.empty_documents,
            revisits: state.revisits,
            tokens: state.tokens,
            text_bytes: state.text_bytes,
            sites: state.sites,
            links_found: state.links_found,
            links_unresolved: state.links_unresolved,
            links: state.links,
            link_remedies: remedies,
            fields_not_found,
            chunks: state.chunks,
            bad_records: state.bad_records,
            bad_record_bytes: state.bad_record_bytes,
            no_text: state.no_text,
            inputs_without_documents: undocumented.len() as u64,
            inputs_without_documents_examples: undocumented
                .into_iter()
                .take(state::UNDOCUMENTED_EXAMPLES)
                .collect(),
            unreadable_files: unreadable_files(&state.skipped),
            skipped_files: state.skipped_files.into_iter().map(BadRecord::from).collect(),
            skipped: state.skipped,
            sources: self.sources.len() as u64,
            input_bytes: state.input_bytes,
            bad_record_examples: examples.map(BadRecord::from).collect(),
            resumed_documents: self.resumed_documents.get(),
            seconds: usage.seconds,
            cpu_seconds: usage.cpu_seconds,
            peak_memory: usage.peak_memory,
            spilled_bytes: state.spilled_bytes,
        }
    }
}

fn read(work: &mut Work<'_, Scan>) -> Result<(), ScanError> {
    let Scan { params, recipe, options, sources, shares, .. } = work.stage;
    let position = work.state.position();
    let tasks = Tasks::new(Arc::clone(sources), Arc::clone(options)).decoding(shares.ahead());
    let tasks = match tasks.from(position) {
        // It can still be taken up, when the input is whole again.
        Err(ResumeError::Input { place, reason }) => return Err(ScanError::Input { place, reason }),
        tasks => tasks?,
    };
    let reading = Reading { recipe, seed: params.seed, options, shares: *shares };
    read_all(reading, tasks, &mut Writer::new(work)?)
}

fn resolve_links(work: &mut Work<'_, Scan>) -> Result<(), ScanError> {
    links::resolve(work, work.stage.params.memory)
}

impl Stage for Scan {
    const NAME: StageName = StageName::Scan;
    const LEAST_MEMORY: u64 = ScanParams::LEAST_MEMORY;
    type State = State;
    type Error = ScanError;

    fn place(&self) -> (&Path, MemoryBudget) {
        (&self.params.atlas, self.params.memory)
    }

    fn staging(&self) -> StageParams {
        stage_params(&self.params, &self.recipe, &self.sources)
    }

    fn begin(&self) -> State {
        State::new(self.sources.len())
    }

    fn resume(&self, state: &State, progress: &dyn Progress) -> Result<(), ScanError> {
        self.resumed_documents.set(state.documents);
        progress.event(Event::Resumed { documents: state.documents, input_bytes: state.input_bytes });
        Ok(())
    }

    fn steps(&self) -> Vec<Step<'_, Self>> {
        vec![Step::unnamed(read), Step::new("resolving links", resolve_links)]
    }

    fn describe(&self, state: &State, manifest: &mut Manifest) {
        let params = &self.params;
        manifest.recipe = self.recipe.to_string();
        manifest.seed = params.seed;
        let inputs = self.sources.iter().zip(&state.per_source);
        manifest.inputs = inputs
            .map(|(source, (documents, bad_records))| InputEntry {
                name: source.name.clone(),
                bytes: source.bytes,
                format: source.format.to_string(),
                documents: *documents,
                bad_records: *bad_records,
                files: source.named_files(),
            })
            .collect();
        manifest.extractors = extractors(&params.options);
        manifest.stages.set(&ScanRecord::from(&params.options));
        let mut count = |name: &str, value: u64| manifest.counts.insert(name.to_owned(), value);
        count("documents", state.documents);
        count("empty_documents", state.empty_documents);
        count("revisits", state.revisits);
        count("tokens", state.tokens);
        count("text_bytes", state.text_bytes);
        count("input_bytes", state.input_bytes);
        count("sites", state.sites);
        count("links_found", state.links_found);
        count("links", state.links);
        for (code, records) in &state.bad_records {
            count(&format!("bad_records.{code}"), *records);
        }
        for (reason, records) in &state.skipped {
            count(&format!("skipped.{reason}"), *records);
        }
        if state.no_text > 0 {
            count("no_text", state.no_text);
        }
        if state.bad_record_bytes > 0 {
            count("bad_record_bytes", state.bad_record_bytes);
        }
        let mut list = |name: &str, entries: &[(String, String)]| {
            if !entries.is_empty() {
                let entries = entries.iter();
                let entries = entries.map(|(place, reason)| json!({ "place": place, "reason": reason }));
                manifest.more.insert(name.to_owned(), entries.collect());
            }
        };
        list("bad_record_examples", &state.bad_record_examples);
        list("skipped_files", &state.skipped_files);
    }

    fn cost_of(&self) -> String {
        self.recipe.to_string()
    }
}

/// Who takes the text out of what.
pub(crate) fn extractors(options: &Options) -> BTreeMap<String, String> {
    let names = Extractor::new(options.extract.clone()).names();
    names.into_iter().map(|(media_type, name)| (media_type.to_owned(), name)).collect()
}

/// Everything that decides the bytes of the atlas goes into the identity of the job.
fn stage_params(params: &ScanParams, recipe: &Recipe, sources: &[Source]) -> StageParams {
    let mut digest = xxhash_rust::xxh3::Xxh3::new();
    for source in sources {
        digest.update(&source.identity());
    }
    let options = &params.options;
    let fields = [&options.text_field, &options.id_field, &options.url_field, &options.date_field];
    let job = json!({
        "inputs": sources.len(),
        "inputs_digest": format!("{:016x}", digest.digest()),
        "recipe": recipe.to_string(),
        "seed": params.seed,
        "commit_bytes": params.commit_bytes,
        "fields": fields.map(FieldNames::to_string),
        "text_is_html": options.text_is_html,
        "text_digests": options.text_digests,
        "any_status": options.any_status,
        "crawl_files": options.crawl_files,
        "hosts": options.hosts,
        "base_url": options.base_url.as_ref().map(ToString::to_string),
        "format": options.format.map(|format| format.as_str()),
        "max_record_bytes": options.max_record_bytes,
        "task_bytes": options.task_bytes,
        "max_text_bytes": options.extract.max_text_bytes,
        "extractors": extractors(options),
        "unicode": unicode::UNICODE_VERSION,
    });
    let scheme = recipe.scheme();
    let mut tables = vec![Table::Documents, Table::Sites, Table::Links];
    tables.extend(recipe.kept_chunks().iter().map(|chunking| {
        Table::chunks(&chunking.to_string()).expect("a chunking's spelling is a folder name")
    }));
    if recipe.keeps_sketches() {
        tables.push(Table::Sketches { len: scheme.sketch_len() as u32 });
    }
    tables.extend(scheme.filter().map(|filter| Table::Features { len: filter.k() as u32 }));
    let mut stage = StageParams::new(StageName::Scan, job, &recipe.to_string(), tables);
    stage.overwrite = params.overwrite;
    stage
}

#[cfg(test)]
mod tests;
