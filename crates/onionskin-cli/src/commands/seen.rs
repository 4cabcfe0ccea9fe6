//! `seen`: has this document, or one nearly like it, been seen?

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Subcommand, ValueHint};
use onionskin::ScanParams;
use onionskin::seen::{
    AtlasDocuments, Document, Features, Match, Options, Params, Reader, Seen, SeenError, TextFeatures,
    recipe_of, repair, verify,
};
use onionskin_core::Recipe;
use onionskin_corpus::{Encoding, JsonLineReader, decoder};
use onionskin_store::{Atlas, MemoryBudget};
use serde::Serialize;

use crate::Exit;
use crate::args::{Global, ResourceArgs};
use crate::output::{bytes, grouped, print, print_json};

/// The recipe of an index that says nothing else.
const RECIPE: &str = "w4-rabin64-6x14r2";

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
    /// Look for documents and add none. Needs no lock: others may be adding. Exit code 0 whatever the answers are.
    Check(IntakeArgs),
    /// Remove documents by their names. Answers with how many documents each name had.
    ///
    /// When others were recorded as copies of a removed document, the oldest of them takes its place.
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
    /// Files with a name a line, as JSON text, number, or object with an id or url; `-` for standard input.
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    inputs: Vec<String>,
    /// A name to remove; can be given again.
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,
    /// The field with the document's own name.
    #[arg(long, default_value = "id", value_name = "NAME")]
    id_field: String,
    /// The field with the address.
    #[arg(long, default_value = "url", value_name = "NAME")]
    url_field: String,
    #[command(flatten)]
    resources: ResourceArgs,
}

#[derive(Debug, clap::Args)]
struct IntakeArgs {
    /// The folder of the index.
    #[arg(value_hint = ValueHint::DirPath)]
    dir: PathBuf,
    /// Files of JSON lines, plain, .gz or .zst; `-` for standard input [default: -]
    #[arg(value_name = "INPUT", value_hint = ValueHint::FilePath)]
    inputs: Vec<String>,
    /// Take the documents of an atlas, with the features that the scan has made.
    #[arg(long, value_name = "ATLAS", value_hint = ValueHint::DirPath, conflicts_with = "inputs")]
    atlas: Option<PathBuf>,
    /// How features are made, for a new index [default: that of the atlas, or w4-rabin64-6x14r2]; for one that is there: an error if it has another
    #[arg(long, value_name = "RECIPE")]
    recipe: Option<Recipe>,
    /// The seed of the permutations, as with --recipe [default: that of the atlas, or of a scan]
    #[arg(long)]
    seed: Option<u64>,
    /// In a new index, ids are whole numbers below 2^64, kept in 8 bytes, instead of names of any kind.
    #[arg(long)]
    numeric_ids: bool,
    /// In a new index, keep the minima of documents too, 336 bytes each by the default recipe, and estimate resemblance from them.
    #[arg(long)]
    sketches: bool,
    /// Only documents of this estimated resemblance or more are near; needs an index with --sketches [default: the features decide]
    #[arg(long, value_name = "RESEMBLANCE", value_parser = threshold)]
    threshold: Option<f64>,
    /// Documents that are made safe together. Their answers are printed when they are.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    batch: u32,
    /// End a batch as soon as nothing more is there to read: for programs that wait for answers before they go on.
    #[arg(long)]
    interactive: bool,
    /// Documents that wait in the log, and in memory, before they become a file of the index.
    #[arg(long, default_value_t = Options::TABLE_DOCUMENTS, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16_777_216))]
    log_documents: u32,
    /// The field with the text; `metadata.text` goes into an object.
    #[arg(long, default_value = "text", value_name = "NAME")]
    text_field: String,
    /// The field with the document's own name.
    #[arg(long, default_value = "id", value_name = "NAME")]
    id_field: String,
    /// The field with the address, which is the name where there is no id.
    #[arg(long, default_value = "url", value_name = "NAME")]
    url_field: String,
    /// Lines longer than this are bad.
    #[arg(long, default_value = "64M", value_name = "SIZE")]
    max_record_bytes: MemoryBudget,
    #[command(flatten)]
    resources: ResourceArgs,
}

fn threshold(text: &str) -> Result<f64, String> {
    let inside = text.parse().ok().filter(|threshold| (0.0..=1.0).contains(threshold));
    inside.ok_or_else(|| "a resemblance is a number from 0 to 1".to_owned())
}

pub(crate) fn run(args: &SeenArgs, global: &Global) -> anyhow::Result<Exit> {
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Add,
    AddIfNew,
    Check,
}

/// What answers.
enum Index {
    Writing(Box<Seen>),
    Reading(Box<Reader>),
}

impl Index {
    fn params(&self) -> &Params {
        match self {
            Index::Writing(seen) => seen.params(),
            Index::Reading(reader) => reader.params(),
        }
    }
}

/// One line of the answer.
#[derive(Serialize)]
struct AnswerWire<'a> {
    r#type: &'static str,
    name: &'a str,
    /// new, near, exact, empty or bad.
    status: &'static str,
    added: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<MatchWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
}

#[derive(Serialize)]
struct MatchWire {
    name: String,
    shared: usize,
    features: usize,
    resemblance: f64,
}

impl MatchWire {
    fn new(found: &Match, params: &Params) -> MatchWire {
        MatchWire {
            name: found.name.clone().unwrap_or_else(|| found.key.to_string()),
            shared: found.shared,
            features: params.filter().map_or(0, |filter| filter.k()),
            resemblance: found.resemblance,
        }
    }
}

/// A document that came in.
struct Incoming {
    name: String,
    text: Result<String, String>,
}

fn memory(resources: &ResourceArgs) -> MemoryBudget {
    resources.memory.unwrap_or_else(MemoryBudget::default_for_machine)
}

fn open_index(args: &IntakeArgs, verb: Verb, atlas: Option<&Atlas>) -> anyhow::Result<Index> {
    let memory = memory(&args.resources);
    let options = || Options { table_documents: args.log_documents, ..Options::new(memory) };
    let index = if verb == Verb::Check {
        Index::Reading(Box::new(Reader::open(&args.dir, memory)?))
    } else {
        match Seen::open(&args.dir, options()) {
            Err(SeenError::Missing(_)) => {
                let (recipe, seed) = match atlas {
                    Some(atlas) => recipe_of(atlas)?,
                    None => (RECIPE.parse()?, ScanParams::SEED),
                };
                let recipe = args.recipe.clone().unwrap_or(recipe);
                let params = Params::new(&recipe, args.seed.unwrap_or(seed), !args.numeric_ids)?;
                let params = if args.sketches { params.with_sketches() } else { params };
                Index::Writing(Box::new(Seen::create(&args.dir, params, options())?))
            }
            other => Index::Writing(Box::new(other?)),
        }
    };
    let params = index.params();
    let recipe = args.recipe.as_ref().unwrap_or(&params.recipe);
    params.ensure_same_features(recipe, args.seed.unwrap_or(params.seed))?;
    if args.numeric_ids && params.names {
        bail!("the index in {} keeps names, not numbers; --numeric-ids is for new ones", args.dir.display());
    }
    if args.sketches && !params.sketches {
        bail!("the index in {} keeps no sketches; --sketches is for new ones", args.dir.display());
    }
    if args.threshold.is_some() && !params.sketches {
        return Err(SeenError::NoSketches.into());
    }
    Ok(index)
}

/// Answers documents in batches.
struct Intake {
    index: Index,
    verb: Verb,
    features: TextFeatures,
    threshold: f64,
    out: Vec<u8>,
    counts: BTreeMap<&'static str, u64>,
}

impl Intake {
    fn texts(&mut self, batch: &mut Vec<Incoming>) -> anyhow::Result<()> {
        let texts: Vec<&str> = batch.iter().map(|incoming| incoming.text.as_deref().unwrap_or("")).collect();
        let features = self.features.of(&texts);
        for (incoming, features) in batch.iter().zip(&features) {
            match &incoming.text {
                Ok(_) => self.answer(&incoming.name, features)?,
                Err(problem) => self.tell(&incoming.name, "bad", false, None, Some(problem))?,
            }
        }
        batch.clear();
        self.acknowledge()
    }

    fn answer(&mut self, name: &str, features: &Features) -> anyhow::Result<()> {
        let Some(probe) = features.probe() else { return self.tell(name, "empty", false, None, None) };
        let probe = probe.with_threshold(self.threshold);
        let key = match name.parse::<u64>() {
            Ok(key) => key,
            Err(_) if self.index.params().names || self.verb == Verb::Check => 0,
            Err(_) => return self.tell(name, "bad", false, None, Some("its id is not a whole number")),
        };
        let document = Document { probe, key, name };
        let result = match (&mut self.index, self.verb) {
            (Index::Writing(seen), Verb::Add) => seen.add(&document).map(|o| (o.doc.is_some(), o.seen)),
            (Index::Writing(seen), _) => seen.add_if_new(&document).map(|o| (o.doc.is_some(), o.seen)),
            (Index::Reading(reader), _) => reader.check(&probe).map(|found| (false, found)),
        };
        match result {
            Ok((added, found)) => {
                let status = match &found {
                    None => "new",
                    Some(found) if found.exact => "exact",
                    Some(_) => "near",
                };
                let of = found.map(|found| MatchWire::new(&found, self.index.params()));
                self.tell(name, status, added, of, None)
            }
            Err(error @ SeenError::LongName(_)) => {
                self.tell(name, "bad", false, None, Some(&error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    fn tell(
        &mut self,
        name: &str,
        status: &'static str,
        added: bool,
        of: Option<MatchWire>,
        problem: Option<&str>,
    ) -> anyhow::Result<()> {
        *self.counts.entry(status).or_insert(0) += 1;
        serde_json::to_writer(
            &mut self.out,
            &AnswerWire { r#type: "seen", name, status, added, of, problem },
        )?;
        self.out.push(b'\n');
        Ok(())
    }

    /// Makes additions safe, and prints the answers then.
    fn acknowledge(&mut self) -> anyhow::Result<()> {
        if let Index::Writing(seen) = &mut self.index {
            seen.commit()?;
        }
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(&self.out)?;
        stdout.flush()?;
        self.out.clear();
        Ok(())
    }
}

fn take_in(args: &IntakeArgs, verb: Verb, global: &Global) -> anyhow::Result<Exit> {
    let atlas = args.atlas.as_ref().map(Atlas::open).transpose()?;
    let index = open_index(args, verb, atlas.as_ref())?;
    let threads = args
        .resources
        .threads
        .map_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()), usize::from);
    let features = TextFeatures::new(index.params(), threads);
    let threshold = args.threshold.unwrap_or(0.0);
    let mut intake = Intake { index, verb, features, threshold, out: Vec::new(), counts: BTreeMap::new() };
    match &atlas {
        Some(atlas) => {
            let mut documents = AtlasDocuments::open(atlas, intake.index.params())?;
            let mut n = 0;
            while let Some(document) = documents.next_document()? {
                intake.answer(&document.name, &document.features)?;
                n += 1;
                if n % u64::from(args.batch) == 0 {
                    intake.acknowledge()?;
                }
            }
            intake.acknowledge()?;
        }
        None if args.inputs.is_empty() => take_in_lines(args, &mut intake, "-")?,
        None => {
            for input in &args.inputs {
                take_in_lines(args, &mut intake, input)?;
            }
        }
    }
    if let Index::Writing(seen) = intake.index {
        seen.close()?;
    }
    if !global.quiet {
        summarise(&intake.counts);
    }
    Ok(Exit::Done)
}

#[expect(clippy::print_stderr, reason = "a summary beside the data")]
fn summarise(counts: &BTreeMap<&'static str, u64>) {
    let all: u64 = counts.values().sum();
    let parts: Vec<String> = counts.iter().map(|(status, n)| format!("{} {status}", grouped(*n))).collect();
    eprintln!(
        "{} documents: {}",
        grouped(all),
        if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
    );
}

fn open_input(input: &str) -> anyhow::Result<BufReader<Box<dyn Read + Send>>> {
    if input == "-" {
        return Ok(BufReader::with_capacity(1 << 18, Box::new(std::io::stdin())));
    }
    let mut file = File::open(input).with_context(|| format!("opening {input}"))?;
    let mut head = Vec::new();
    (&mut file).take(4).read_to_end(&mut head).with_context(|| format!("reading {input}"))?;
    let encoding = match head.as_slice() {
        [0x1f, 0x8b, ..] => Encoding::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd] => Encoding::Zstd,
        _ => Encoding::Plain,
    };
    let whole = std::io::Cursor::new(head).chain(file);
    let decoded = decoder(whole, encoding).with_context(|| format!("reading {input}"))?;
    Ok(BufReader::with_capacity(1 << 18, decoded))
}

/// Reads a line without its end, and passes over the rest of one that is too long. `None` at the end of the input.
fn read_line(input: &mut impl BufRead, limit: u64, line: &mut Vec<u8>) -> std::io::Result<Option<bool>> {
    line.clear();
    let n = input.by_ref().take(limit.saturating_add(1)).read_until(b'\n', line)?;
    if n == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Some(true));
    }
    if n as u64 <= limit {
        return Ok(Some(true));
    }
    line.clear();
    input.skip_until(b'\n')?;
    Ok(Some(false))
}

fn take_in_lines(args: &IntakeArgs, intake: &mut Intake, name: &str) -> anyhow::Result<()> {
    let options = onionskin_corpus::Options {
        text_field: args.text_field.clone(),
        id_field: args.id_field.clone(),
        ..onionskin_corpus::Options::default()
    };
    let mut input = open_input(name)?;
    let mut reader = JsonLineReader::default();
    let (mut line, mut batch, mut number) = (Vec::new(), Vec::new(), 0u64);
    while let Some(fits) = read_line(&mut input, args.max_record_bytes.bytes(), &mut line)
        .with_context(|| format!("reading {name}"))?
    {
        number += 1;
        if fits && line.trim_ascii().is_empty() {
            continue;
        }
        let place = || format!("{name}:{number}");
        let bytes = line.strip_prefix(b"\xef\xbb\xbf").filter(|_| number == 1).unwrap_or(&line);
        batch.push(match reader.read(bytes, &options, &args.url_field) {
            Some(found) => Incoming {
                name: found.id.or(found.beside).map_or_else(place, str::to_owned),
                text: Ok(found.text.to_owned()),
            },
            None if fits => Incoming { name: place(), text: Err("not a JSON object with a text".to_owned()) },
            None => Incoming { name: place(), text: Err("the line is too long".to_owned()) },
        });
        let waiting = args.interactive && !input.buffer().contains(&b'\n');
        if batch.len() >= args.batch as usize || waiting {
            intake.texts(&mut batch)?;
        }
    }
    intake.texts(&mut batch)
}

#[derive(Serialize)]
struct RemovedWire<'a> {
    r#type: &'static str,
    name: &'a str,
    removed: u64,
}

fn run_remove(args: &RemoveArgs) -> anyhow::Result<Exit> {
    let mut names = args.names.clone();
    let standard = ["-".to_owned()];
    let inputs = if args.inputs.is_empty() && names.is_empty() { &standard[..] } else { &args.inputs };
    for input in inputs {
        for (number, line) in (1u64..).zip(open_input(input)?.lines()) {
            let line = line.with_context(|| format!("reading {input}"))?;
            if line.trim().is_empty() {
                continue;
            }
            let value: serde_json::Value =
                serde_json::from_str(&line).with_context(|| format!("{input}:{number}: not JSON"))?;
            let named = match &value {
                serde_json::Value::Object(object) => {
                    let field = |name: &str| object.get(name).filter(|value| !value.is_null());
                    field(&args.id_field).or_else(|| field(&args.url_field))
                }
                other => Some(other),
            };
            names.push(match named {
                Some(serde_json::Value::String(name)) => name.clone(),
                Some(serde_json::Value::Number(number)) => number.to_string(),
                _ => bail!("{input}:{number}: no id and no url"),
            });
        }
    }
    let mut seen = Seen::open(&args.dir, Options::new(memory(&args.resources)))?;
    let mut counts = BTreeMap::new();
    if seen.params().names {
        counts = seen.remove_names(&names.iter().cloned().collect())?;
    } else {
        let mut keys = BTreeSet::new();
        for name in &names {
            keys.insert(
                name.parse().with_context(|| format!("the ids of this index are numbers, not {name:?}"))?,
            );
        }
        counts.extend(seen.remove_keys(&keys)?.into_iter().map(|(key, n)| (key.to_string(), n)));
    }
    seen.close()?;
    let mut told = BTreeSet::new();
    for name in names.iter().filter(|name| told.insert(name.as_str())) {
        let removed = counts.get(name).copied().unwrap_or(0);
        print_json(&RemovedWire { r#type: "removed", name, removed })?;
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct StatsWire {
    r#type: &'static str,
    index: String,
    recipe: String,
    seed: u64,
    names: bool,
    /// Minima that are kept of a document that is indexed by its features.
    minima: usize,
    documents: u64,
    removed: u64,
    centres: u64,
    postings: u64,
    runs: u64,
    in_log: u64,
    bytes: u64,
    name_bytes: u64,
    sketch_bytes: u64,
    bytes_per_document: f64,
}

fn run_stats(args: &PlainArgs, global: &Global) -> anyhow::Result<Exit> {
    tell_stats(&args.dir, memory(&args.resources), global)
}

fn tell_stats(dir: &Path, memory: MemoryBudget, global: &Global) -> anyhow::Result<Exit> {
    let reader = Reader::open(dir, memory)?;
    let (params, stats) = (reader.params(), reader.stats());
    if global.json {
        print_json(&StatsWire {
            r#type: "seen_stats",
            index: dir.display().to_string(),
            recipe: params.recipe.to_string(),
            seed: params.seed,
            names: params.names,
            minima: params.minima(),
            documents: stats.documents,
            removed: stats.removed,
            centres: stats.centres,
            postings: stats.postings,
            runs: stats.runs,
            in_log: stats.in_log,
            bytes: stats.bytes,
            name_bytes: stats.name_bytes,
            sketch_bytes: stats.sketch_bytes,
            bytes_per_document: stats.bytes_per_document(),
        })?;
    } else {
        print(&format!(
            "{} documents by {} with seed {}: {} indexed by features, {} removed\n{} on disk in {} runs: {:.1} bytes a document, and {} of names\n",
            grouped(stats.documents),
            params.recipe,
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

#[derive(Serialize)]
struct VerifyWire {
    r#type: &'static str,
    index: String,
    whole: bool,
    files: u64,
    torn_bytes: u64,
    damage: Vec<DamageWire>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repaired: Option<RepairWire>,
}

#[derive(Serialize)]
struct DamageWire {
    file: String,
    problem: String,
}

#[derive(Serialize)]
struct RepairWire {
    lost_documents: u64,
    lost_postings: u64,
    lost_sketches: u64,
    lost_log_bytes: u64,
    lost_removals: bool,
}

fn run_verify(args: &VerifyArgs, global: &Global) -> anyhow::Result<Exit> {
    let dir = &args.plain.dir;
    let found = verify(dir)?;
    let repaired = match args.repair && !found.is_whole() {
        true => Some(repair(dir, Options::new(memory(&args.plain.resources)))?),
        false => None,
    };
    if global.json {
        let damage = found.findings.iter().map(|finding| DamageWire {
            file: finding.path.display().to_string(),
            problem: finding.problem.clone(),
        });
        print_json(&VerifyWire {
            r#type: "seen_verify",
            index: dir.display().to_string(),
            whole: found.is_whole(),
            files: found.files,
            torn_bytes: found.torn_bytes,
            damage: damage.collect(),
            repaired: repaired.as_ref().map(|done| RepairWire {
                lost_documents: done.lost_documents,
                lost_postings: done.lost_postings,
                lost_sketches: done.lost_sketches,
                lost_log_bytes: done.lost_log_bytes,
                lost_removals: done.lost_removals,
            }),
        })?;
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
