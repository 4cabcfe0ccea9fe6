//! `seen`: has this document, or one nearly like it, been seen?

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Subcommand, ValueHint};
use onionskin::seen::intake::{
    Answer, AtlasDocuments, Documents, Fields, Gathered, Index, IndexStats, Intake, Limits, OpenError,
    OtherFields, Prepared, RemovedName, Request, Status, THRESHOLD, Threshold, Verb, Verify, VerifyAnswer,
    Wanted, read_names,
};
use onionskin::seen::{Options, Params, Reader, Seen, SeenError, StoredTexts, Unverified, repair, verify};
use onionskin_core::Recipe;
use onionskin_core::format::plural;
use onionskin_corpus::FieldNames;
use onionskin_store::{Atlas, MemoryBudget, TableName};
use serde::Serialize;

use crate::Exit;
use crate::args::{Global, ResourceArgs};
use crate::output::{bytes, grouped, print, print_json, tell, write_json};

#[derive(Debug, clap::Args)]
pub(crate) struct SeenArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Add documents, copies too. Makes the index where there is none.
    Add(IntakeArgs),
    /// Add the documents that are new, and no copies. Makes the index where there is none.
    AddIfNew(IntakeArgs),
    /// Look for documents and add none. Needs no lock: others may be adding. Exit code 0 whatever
    /// the answers are.
    Check(IntakeArgs),
    /// Remove documents by their names. Answers with how many documents each name had.
    ///
    /// When others were recorded as copies of a removed document, the oldest of them takes its
    /// place.
    Remove(RemoveArgs),
    /// Tell how large the index is.
    Stats(PlainArgs),
    /// Rewrite the index without what was removed, as one file. Checks go on meanwhile.
    Compact(PlainArgs),
    /// Read every file and check that it is what was written. Exit code 1 when one is not.
    Verify(VerifyArgs),
}

#[derive(Debug, clap::Args)]
struct PlainArgs {
    /// The folder of the index.
    #[arg(value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    #[command(flatten)]
    resources: ResourceArgs,
}

#[derive(Debug, clap::Args)]
struct VerifyArgs {
    #[command(flatten)]
    plain: PlainArgs,
    /// Rebuild damaged files from what is sound in them, and tell what is lost.
    #[arg(long)]
    repair: bool,
}

#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// The folder of the index.
    #[arg(value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// Files with a name a line, as JSON text, number, or object with an id or url; `-` for
    /// standard input.
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    inputs: Vec<String>,
    /// A name to remove; can be given again.
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    fields: NameArgs,
    #[command(flatten)]
    resources: ResourceArgs,
}

/// What names a document.
#[derive(Debug, clap::Args)]
struct NameArgs {
    /// The field with the document's own name, or several, of which the first that a document has
    /// counts. A field `name` is accepted too [default: id; in files id,doc_id]
    #[arg(long, value_name = "NAMES")]
    id_field: Option<FieldNames>,
    /// The field with the URL, which is the name where there is no id [default: url; in files
    /// url,meta.url,metadata.url]
    #[arg(long, value_name = "NAMES")]
    url_field: Option<FieldNames>,
    /// Ignore other fields on standard input. Without this, a JSON document that has one is bad. In
    /// files they are always ignored.
    #[arg(long)]
    ignore_other_fields: bool,
}

#[derive(Debug, clap::Args)]
struct IntakeArgs {
    /// The folder of the index.
    #[arg(value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// Files of any format that a scan reads, or folders of them; `-` for JSON lines on standard
    /// input [default: -]
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    inputs: Vec<String>,
    /// Take the documents of an atlas, with the features that the scan has made.
    #[arg(long, value_name = "ATLAS", value_hint = ValueHint::DirPath, conflicts_with = "inputs")]
    atlas: Option<PathBuf>,
    /// How minima are made, for a new index [default: that of the atlas, or w4-rabin64-6x14r2]; for
    /// one that is there: an error if it has another
    #[arg(long, value_name = "RECIPE")]
    recipe: Option<Recipe>,
    /// The seed of the permutations, as with --recipe [default: that of the atlas, or of a scan]
    #[arg(long)]
    seed: Option<u64>,
    /// In a new index, ids are whole numbers below 2^64, kept in 8 bytes, instead of names of any
    /// kind.
    #[arg(long)]
    numeric_ids: bool,
    /// An error unless the index keeps minima of documents, 84 bytes each by the default recipe, to
    /// estimate resemblance from. A new index keeps them anyway, where the atlas has them.
    #[arg(long)]
    sketches: bool,
    /// In a new index, keep no minima: the features of the recipe decide what is near. A document
    /// takes about 62 bytes.
    #[arg(long, conflicts_with_all = ["sketches", "threshold"])]
    no_sketches: bool,
    /// Documents that may have this resemblance are near. A new index is made for it: its features
    /// find 99 % of the documents at the threshold, and its minima tell which of them are near
    /// [default: that of the index, or 0.9]
    #[arg(long, value_name = "RESEMBLANCE")]
    threshold: Option<Threshold>,
    /// How the resemblance of near-duplicates is found: `sketch` estimates it from minima; `text`
    /// computes it from the texts of both, and needs --texts. It changes no other part of an answer
    /// [default: sketch, or by features in an index without minima]
    #[arg(long, value_name = "HOW")]
    verify: Option<Verify>,
    /// With `--verify text`: the atlas whose documents were added to the index with --atlas. Its
    /// inputs are read again.
    #[arg(long, value_name = "ATLAS", value_hint = ValueHint::DirPath, requires = "verify")]
    texts: Option<PathBuf>,
    /// Append the lines of documents that are new to this file. Inputs are JSON lines then.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "atlas")]
    new: Option<PathBuf>,
    /// Documents that are made safe together, at most: a batch ends earlier when its texts fill
    /// their share of the memory. Their answers are printed when they are safe.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    batch: u32,
    /// End a batch as soon as nothing more is there to read: for programs that wait for answers
    /// before they go on.
    #[arg(long)]
    interactive: bool,
    /// Documents that wait in the log, and in memory, before they become a file of the index.
    #[arg(long, default_value_t = Options::TABLE_DOCUMENTS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    log_documents: u32,
    /// The field with the text, or several; `metadata.text` goes into an object [default: text; in
    /// files text,content,raw_content]
    #[arg(long, value_name = "NAMES")]
    text_field: Option<FieldNames>,
    /// The field with HTML, whose text is extracted as a scan does it. A document has a text or
    /// HTML.
    #[arg(long, default_value = "html", value_name = "NAME")]
    html_field: String,
    /// The text field has HTML too.
    #[arg(long)]
    text_is_html: bool,
    #[command(flatten)]
    fields: NameArgs,
    /// Lines longer than this are bad.
    #[arg(long, default_value = "64M", value_name = "SIZE")]
    max_record_bytes: MemoryBudget,
    #[command(flatten)]
    resources: ResourceArgs,
}

pub(crate) fn run(args: &SeenArgs, global: &Global) -> anyhow::Result<Exit> {
    act(args, global).map_err(|error| {
        let seen = match error.downcast_ref() {
            Some(OpenError::Seen(seen)) => Some(seen),
            _ => error.downcast_ref(),
        };
        match seen {
            Some(SeenError::Damaged { .. }) => anyhow::anyhow!("{error}: `onionskin seen verify --repair`"),
            _ => error,
        }
    })
}

fn act(args: &SeenArgs, global: &Global) -> anyhow::Result<Exit> {
    match &args.action {
        Action::Add(intake) => take_in(intake, Verb::Add, global),
        Action::AddIfNew(intake) => take_in(intake, Verb::AddIfNew, global),
        Action::Check(intake) => take_in(intake, Verb::Check, global),
        Action::Remove(remove) => run_remove(remove),
        Action::Stats(plain) => run_stats(plain, global),
        Action::Compact(plain) => run_compact(plain, global),
        Action::Verify(args) => run_verify(args, global),
    }
}

/// An object of `--json` with its type.
#[derive(Serialize)]
struct Typed<T: Serialize> {
    r#type: &'static str,
    #[serde(flatten)]
    object: T,
}

/// An object about an index, with its folder.
#[derive(Serialize)]
struct OfIndex<T: Serialize> {
    index: String,
    #[serde(flatten)]
    object: T,
}

fn typed<T: Serialize>(r#type: &'static str, object: T) -> Typed<T> {
    Typed { r#type, object }
}

fn of_index<T: Serialize>(r#type: &'static str, dir: &Path, object: T) -> Typed<OfIndex<T>> {
    typed(r#type, OfIndex { index: dir.display().to_string(), object })
}

fn memory(resources: &ResourceArgs) -> MemoryBudget {
    resources.memory.unwrap_or_else(MemoryBudget::default_for_machine)
}

impl NameArgs {
    /// What an input may have.
    fn fields(&self, input: &str) -> Fields {
        let mut fields = if input == "-" { Fields::default() } else { Fields::of_files() };
        for (field, given) in [(&mut fields.id, &self.id_field), (&mut fields.url, &self.url_field)] {
            if let Some(given) = given {
                field.clone_from(given);
            }
        }
        if self.ignore_other_fields {
            fields.others = OtherFields::Ignored;
        }
        fields
    }
}

impl IntakeArgs {
    fn fields(&self, input: &str) -> Fields {
        let fields = self.fields.fields(input);
        let (text, html) = (self.text_field.clone().unwrap_or(fields.text), self.html_field.clone());
        Fields { text, html, text_is_html: self.text_is_html, ..fields }
    }

    /// The texts that near-duplicates are compared with, if they are wanted.
    fn stored_texts(&self, params: &Params) -> anyhow::Result<Option<StoredTexts>> {
        let Some(how) = self.verify else { return Ok(None) };
        how.ensure_possible(params, self.texts.is_some())?;
        match (how, &self.texts) {
            (Verify::Sketch, Some(_)) => bail!("--texts belongs to --verify text"),
            (Verify::Text, _) if self.atlas.is_some() => bail!(
                "the documents of an atlas come without texts\nhint: give the inputs of the atlas instead of --atlas, or use --verify sketch"
            ),
            (Verify::Text, Some(atlas)) => {
                let (atlas, memory) = (Atlas::open(atlas)?, memory(&self.resources));
                Ok(Some(StoredTexts::open(&atlas, params, memory, super::pdf_worker())?))
            }
            (Verify::Sketch | Verify::Text, _) => Ok(None),
        }
    }

    fn wanted(&self) -> Wanted {
        Wanted {
            recipe: self.recipe.clone(),
            seed: self.seed,
            names: self.numeric_ids.then_some(false),
            sketches: (self.sketches || self.no_sketches).then_some(self.sketches),
            threshold: self.threshold,
        }
    }

    /// Opens the index, and says what is left of the memory for reading documents.
    fn open(&self, verb: Verb, atlas: Option<&Atlas>) -> anyhow::Result<(Intake, Limits)> {
        let dir = &self.dir;
        let (memory, reading) = Limits::split(memory(&self.resources));
        let index: Result<Index, OpenError> = match verb {
            Verb::Check => self.wanted().open_reader(dir, memory).map(Index::from),
            Verb::Add | Verb::AddIfNew => {
                let options = Options { table_documents: self.log_documents, ..Options::new(memory) };
                self.wanted().open_or_create(dir, atlas, options).map(Index::from)
            }
        };
        let index = index.map_err(|error| match error {
            OpenError::Names { .. } => anyhow::anyhow!("{error}; --numeric-ids is for new ones"),
            OpenError::Sketches { sketches: false, .. } => {
                anyhow::anyhow!("{error}; make another without --no-sketches")
            }
            OpenError::Sketches { .. } => anyhow::anyhow!("{error}; --no-sketches is for new ones"),
            other => other.into(),
        })?;
        let threads = self.resources.threads;
        let threads = threads.map_or_else(
            || std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            usize::from,
        );
        let limits = Limits {
            pdf_worker: super::pdf_worker(),
            ..Limits::within(self.max_record_bytes.bytes(), reading, threads)
        };
        Ok((Intake::within(index, &limits, threads), limits))
    }
}

/// Answers of a batch that wait in memory, at most.
const MOST_ANSWER_BYTES: usize = 8 << 20;

/// Answers documents in batches.
struct Answering {
    intake: Intake,
    limits: Limits,
    request: Request,
    out: Vec<u8>,
    new: Option<New>,
    stored: Option<StoredTexts>,
    unverified: Option<(u64, Unverified)>,
    counts: BTreeMap<&'static str, u64>,
}

/// Where lines of new documents go.
struct New {
    file: File,
    path: PathBuf,
    /// Those of the batch that is being read.
    lines: Vec<Vec<u8>>,
}

impl New {
    fn open(path: &Path) -> anyhow::Result<New> {
        let file = File::options().create(true).append(true).open(path);
        let file = file.with_context(|| format!("opening {}", path.display()))?;
        Ok(New { file, path: path.to_owned(), lines: Vec::new() })
    }

    /// Writes the lines of a batch that are new. Before they are acknowledged: after a kill the
    /// same input leaves none out.
    fn write(&mut self, answers: &[Answer]) -> anyhow::Result<()> {
        let mut text = Vec::new();
        for (line, answer) in self.lines.drain(..).zip(answers) {
            if answer.status == Status::New {
                text.extend(line);
                text.push(b'\n');
            }
        }
        let written = self.file.write_all(&text).and_then(|()| self.file.sync_data());
        written.with_context(|| format!("writing {}", self.path.display()))
    }
}

impl Answering {
    fn documents(&mut self, batch: &mut Gathered) -> anyhow::Result<()> {
        let batch = batch.take();
        let texts: Vec<Option<String>> = match &self.stored {
            Some(_) => batch.iter().map(|document| document.text.clone().ok()).collect(),
            None => Vec::new(),
        };
        let mut answers = self.intake.answer(batch, self.request)?;
        for (answer, text) in answers.iter_mut().zip(&texts) {
            let (Some(stored), Some(text)) = (&mut self.stored, text) else { continue };
            if let Err(why) = stored.verify(answer, text) {
                self.unverified.get_or_insert((0, why)).0 += 1;
            }
        }
        if let Some(new) = &mut self.new {
            new.write(&answers)?;
        }
        answers.into_iter().try_for_each(|answer| self.note(answer))?;
        self.acknowledge()
    }

    fn note(&mut self, answer: Answer) -> anyhow::Result<()> {
        *self.counts.entry(answer.status.as_str()).or_insert(0) += 1;
        write_json(&mut self.out, &typed("seen", answer))?;
        self.out.push(b'\n');
        Ok(())
    }

    /// Makes additions safe, and prints the answers then.
    fn acknowledge(&mut self) -> anyhow::Result<()> {
        self.intake.commit()?;
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&self.out)?;
        stdout.flush()?;
        self.out.clear();
        Ok(())
    }

    fn atlas(&mut self, atlas: &Atlas, batch: u32) -> anyhow::Result<()> {
        let mut documents = AtlasDocuments::open(atlas, self.intake.params())?;
        let mut n = 0;
        while let Some(document) = documents.next_document()? {
            let one = Prepared { name: document.name, features: Ok(document.features) };
            let answer = self.intake.answer_prepared(&one, self.request)?;
            self.note(answer)?;
            n += 1;
            if n % u64::from(batch) == 0 || self.out.len() > MOST_ANSWER_BYTES {
                self.acknowledge()?;
            }
        }
        self.acknowledge()
    }

    fn input(&mut self, input: &str, args: &IntakeArgs) -> anyhow::Result<()> {
        let mut documents = Documents::open(input, args.fields(input), &self.limits)?;
        let mut batch = Gathered::new(args.batch as usize, &self.limits);
        if self.new.is_some() && documents.line().is_none() {
            bail!("{input}: --new copies lines of JSON, and this is another format");
        }
        while let Some(document) = documents.next_document()? {
            // A copy of the text, for those that are compared with stored ones.
            let text = document.text.as_ref().ok().filter(|_| self.stored.is_some());
            let mut kept = text.map_or(0, String::len);
            if let (Some(new), Some(line)) = (&mut self.new, documents.line()) {
                new.lines.push(line.to_vec());
                kept += line.len();
            }
            batch.push(document, kept);
            if batch.is_full() || args.interactive && documents.is_waiting() {
                self.documents(&mut batch)?;
            }
        }
        self.documents(&mut batch)
    }
}

fn take_in(args: &IntakeArgs, verb: Verb, global: &Global) -> anyhow::Result<Exit> {
    let atlas = args.atlas.as_ref().map(Atlas::open).transpose()?;
    let (intake, limits) = args.open(verb, atlas.as_ref())?;
    let request = Request { verb, threshold: args.threshold };
    request.ensure_possible(intake.params())?;
    let stored = args.stored_texts(intake.params())?;
    if !global.quiet {
        tell(&described(intake.params()));
        let lacking = atlas.as_ref().is_some_and(|atlas| !atlas.has(&TableName::Sketches));
        warning(intake.params(), args.threshold, lacking).iter().for_each(|text| tell(text));
    }
    let new = args.new.as_deref().map(New::open).transpose()?;
    let (out, unverified, counts) = (Vec::new(), None, BTreeMap::new());
    let mut answering = Answering { intake, limits, request, out, new, stored, unverified, counts };
    match &atlas {
        Some(atlas) => answering.atlas(atlas, args.batch)?,
        None if args.inputs.is_empty() => answering.input("-", args)?,
        None => args.inputs.iter().try_for_each(|input| answering.input(input, args))?,
    }
    answering.intake.close()?;
    if !global.quiet {
        summarise(&answering.counts);
        if let Some((documents, why)) = &answering.unverified {
            tell(&format!(
                "warning: the resemblance of {} is an estimate: {why}",
                plural(*documents, "near-duplicate", "near-duplicates"),
            ));
        }
    }
    Ok(Exit::Done)
}

/// What an index finds and what it takes for that.
fn described(params: &Params) -> String {
    let Params { recipe, filter, .. } = params;
    let made_for = params.threshold.filter(|_| params.sketches).map(Threshold::get);
    let finds = match made_for {
        Some(at) => format!("finds {} of documents at {at}", percent(params.finds(at))),
        None => format!(
            "features decide: {filter} finds 99 % of documents at {:.3} and {} at {THRESHOLD}",
            filter.resemblance_at(0.99),
            percent(filter.acceptance(THRESHOLD)),
        ),
    };
    format!(
        "index of {filter} by {recipe} with {} minima: {finds}; {:.0} bytes per document and its name",
        params.minima(),
        params.expected_bytes_per_document(),
    )
}

/// What a threshold does not find in this index.
fn warning(params: &Params, threshold: Option<Threshold>, atlas_lacks_sketches: bool) -> Option<String> {
    let at = threshold.or(params.threshold).map(Threshold::get);
    let at = at.or((atlas_lacks_sketches && !params.sketches).then_some(THRESHOLD))?;
    let found = params.finds(at);
    if found >= ENOUGH {
        return None;
    }
    let why = match (params.sketches, atlas_lacks_sketches) {
        (false, true) => {
            "the atlas keeps no sketches, which another filter would be made of; scan with +sketch"
        }
        (false, false) => "it keeps no sketches",
        (true, _) => "it was made for another threshold; make another index with this --threshold",
    };
    Some(format!("warning: this index finds {} of documents at {at}: {why}", percent(found)))
}

/// The share of documents at a threshold that an index should find.
const ENOUGH: f64 = 0.99;

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

fn summarise(counts: &BTreeMap<&'static str, u64>) {
    let all: u64 = counts.values().sum();
    let parts: Vec<String> = counts.iter().map(|(status, n)| format!("{} {status}", grouped(*n))).collect();
    tell(&format!(
        "{} documents: {}",
        grouped(all),
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    ));
}

fn run_remove(args: &RemoveArgs) -> anyhow::Result<Exit> {
    let mut names: BTreeSet<String> = args.names.iter().cloned().collect();
    let standard = ["-".to_owned()];
    let inputs = if args.inputs.is_empty() && names.is_empty() { &standard[..] } else { &args.inputs };
    for input in inputs {
        names.extend(read_names(input, &args.fields.fields(input))?);
    }
    let mut seen = Seen::open(&args.dir, Options::new(memory(&args.resources)))?;
    let removed = seen.remove_named(&names)?;
    seen.close()?;
    for name in removed {
        print_json(&typed::<RemovedName>("removed", name))?;
    }
    Ok(Exit::Done)
}

fn run_stats(args: &PlainArgs, global: &Global) -> anyhow::Result<Exit> {
    tell_stats(&args.dir, memory(&args.resources), global)
}

fn tell_stats(dir: &Path, memory: MemoryBudget, global: &Global) -> anyhow::Result<Exit> {
    let reader = Reader::open(dir, memory)?;
    let (params, stats) = (reader.params(), reader.stats());
    if global.json {
        print_json(&of_index("seen_stats", dir, IndexStats::new(params, stats)))?;
    } else {
        print(&format!(
            "{}\n{} documents with seed {}: {} indexed by features, {} removed\n{} on disk in {} runs: {:.1} bytes per document, and {} of names\n",
            described(params),
            grouped(stats.documents),
            params.seed,
            grouped(stats.centres),
            grouped(stats.removed),
            bytes(stats.bytes),
            grouped(stats.runs),
            stats.bytes_per_document(),
            bytes(stats.name_bytes),
        ))?;
    }
    Ok(Exit::Done)
}

fn run_compact(args: &PlainArgs, global: &Global) -> anyhow::Result<Exit> {
    let memory = memory(&args.resources);
    let mut seen = Seen::open(&args.dir, Options::new(memory))?;
    seen.compact()?;
    seen.close()?;
    tell_stats(&args.dir, memory, global)
}

fn run_verify(args: &VerifyArgs, global: &Global) -> anyhow::Result<Exit> {
    let dir = &args.plain.dir;
    let found = verify(dir)?;
    let repaired = match args.repair && !found.is_whole() {
        true => Some(repair(dir, Options::new(memory(&args.plain.resources)))?),
        false => None,
    };
    if global.json {
        print_json(&of_index("seen_verify", dir, VerifyAnswer::new(&found, repaired.clone())))?;
    } else {
        let mut text = String::new();
        for finding in &found.findings {
            text.push_str(&format!("{}: {}\n", finding.path.display(), finding.problem));
        }
        text.push_str(&match found.findings.len() {
            0 => format!("{} files, all whole\n", grouped(found.files)),
            n => format!("{} of {} files damaged\n", grouped(n as u64), grouped(found.files)),
        });
        if found.torn_bytes > 0 {
            text.push_str(&format!(
                "{} bytes of a batch that was never acknowledged are at the end of the log\n",
                grouped(found.torn_bytes)
            ));
        }
        if let Some(done) = &repaired {
            text.push_str(&format!(
                "rebuilt: {} documents, {} entries, {} sketches and {} bytes of the log are lost\n",
                grouped(done.lost_documents),
                grouped(done.lost_postings),
                grouped(done.lost_sketches),
                grouped(done.lost_log_bytes)
            ));
            if done.lost_removals {
                text.push_str("what was removed is there again\n");
            }
        }
        print(&text)?;
    }
    Ok(if found.is_whole() || repaired.is_some() { Exit::Done } else { Exit::No })
}
