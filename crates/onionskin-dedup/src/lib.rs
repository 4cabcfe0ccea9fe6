//! What people do with clusters: lists of what is kept and what is removed, and copies of the
//! inputs without the copies in them.
//!
//! The problem: a corpus of terabytes, of which some documents are copies of others, wanted without
//! them, in the same files and the same format, with a reason for every document that is gone. The
//! naive way loads the set of removed ids and filters every file by it: memory in proportion to the
//! copies, a guess at what an id is, and lines that went through a parser and a writer and are not
//! the same bytes any more.
//!
//! Here documents are found again by the place where the scan found them. One walk through the
//! tables of the atlas decides on every document and leaves the verdicts in a file, those of an
//! input together; then the inputs are copied, each by one thread, with its verdicts beside it.
//! What is not removed is copied byte for byte. Nothing is held in memory but buffers. An input
//! that is not what it was is an error that names it: before a file is copied, every document of a
//! cluster in it is read again and compared with the atlas.
//!
//! ```text
//!  memberships ─┐
//!  pairs        ├─▶ verdicts ─▶ kept.jsonl, removed.jsonl
//!  documents ───┘       │
//!                       └─▶ shards/…          inputs without copies, or with a note on each
//!                           attributes/…      Dolma attributes
//! ```
//!
//! A document is removed when it is not the centre of its cluster. One exception: a document is
//! never removed in favour of one that has no payload, a `revisit` record of a WARC file.

mod check;
mod csv;
mod decide;
mod jsonl;
mod lists;
mod memberships;
mod names;
mod output;
mod parquet;
mod plan;
mod shards;
#[cfg(test)]
pub(crate) mod testing;
mod warc;
mod window;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use onionskin_core::{DocId, Recipe, RecipeError};
use onionskin_corpus::Format;
use onionskin_store::sort::SortError;
use onionskin_store::stage::Finished;
use onionskin_store::table::{CopyKind, DocumentRow};
use onionskin_store::{
    Atlas, AtlasError, IoError, MemoryBudget, StageName, TableError, TableName, disk, json as spelling,
    process,
};
use serde::Serialize;
use serde_json::{Value, json};

use decide::{Scanned, Stretches, StretchesWriter, Verdict, Walk, gather};
use memberships::SortDir;
use names::{Names, REVISIT};
use onionskin_scan::inputs;
use onionskin_similar::Survivor;
use onionskin_similar::membership::Membership;
use onionskin_store::progress::{Event, Progress};
use output::{KEPT, Output, REMOVED};
use plan::{Job, Plan};
use shards::{Context, CopyReport};

/// What is done with the inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Copying {
    /// Only the lists are written.
    None,
    /// Copies without the removed documents. In WARC files exact copies become revisits and near
    /// copies get a note.
    #[default]
    Filter,
    /// Copies of everything, in which every document of a cluster says so.
    Annotate,
}

impl Copying {
    fn as_str(self) -> &'static str {
        match self {
            Copying::None => "none",
            Copying::Filter => "filter",
            Copying::Annotate => "annotate",
        }
    }
}

/// What to write, and how. The first group decides the result; the second only speed.
#[derive(Clone, Debug)]
pub struct DedupParams {
    /// The folder of the atlas.
    pub atlas: PathBuf,
    /// The folder of the results: new or empty.
    pub output: PathBuf,
    /// What is done with the inputs.
    pub copying: Copying,
    /// Inputs of these formats are copied.
    pub formats: BTreeSet<Format>,
    /// Write Dolma attributes of this name for inputs of JSON lines.
    pub dolma: Option<String>,
    /// Where inputs with relative names are, if they are not below the working directory any more.
    pub base: Option<PathBuf>,
    /// Cluster the stored pairs anew, with those of this resemblance and more only; where pairs
    /// were found by overlap, of this number of shared chunks. `None` takes the clusters of the
    /// atlas.
    pub threshold: Option<f64>,
    /// Cluster the stored pairs anew, and keep of each cluster what this rule says. `None` keeps
    /// what the search said.
    pub survivor: Option<Survivor>,
    /// Decide, and write nothing.
    pub dry_run: bool,
    /// The command that reads PDF files apart from this process; see `ExtractOptions::pdf_worker`.
    pub pdf_worker: Vec<String>,

    /// Inputs that are copied at a time.
    pub threads: usize,
    /// Memory for everything.
    pub memory: MemoryBudget,
}

impl DedupParams {
    /// The least memory it works with.
    pub const LEAST_MEMORY: u64 = 64 << 20;
    /// The formats that are copied where nobody says which.
    pub const FORMATS: [Format; 2] = [Format::Jsonl, Format::Parquet];

    /// Everything that decides the results.
    fn job(&self, atlas: &Atlas) -> Value {
        let tables = &atlas.manifest().tables;
        let content = |name: TableName| {
            let files = tables.get(&name).into_iter().flat_map(|table| &table.files);
            files.map(|file| format!("{:016x}", file.xxh3)).collect::<Vec<_>>()
        };
        json!({
            "documents": content(TableName::Documents),
            "clusters": content(TableName::Clusters),
            "pairs": content(TableName::Pairs),
            "copying": self.copying.as_str(),
            "formats": self.formats.iter().map(|format| format.as_str()).collect::<Vec<_>>(),
            "dolma": self.dolma,
            "threshold": self.threshold,
            "keep": self.survivor.as_ref().map(ToString::to_string),
        })
    }

    /// Whether the results of this very job are in their place.
    pub fn finished(&self) -> Result<Finished, DedupError> {
        let path = self.output.join(output::SUMMARY);
        let (false, Ok(text)) = (self.dry_run, fs::read(&path)) else { return Ok(Finished::No) };
        let told: Value = serde_json::from_slice(&text).unwrap_or_default();
        let atlas = Atlas::open(&self.atlas)?;
        Ok(told.get("job").map_or(Finished::No, |before| Finished::of(before, &self.job(&atlas))))
    }

    /// Lists, and filtered copies of JSON lines and Parquet.
    pub fn new(atlas: PathBuf, output: PathBuf) -> DedupParams {
        DedupParams {
            atlas,
            output,
            copying: Copying::Filter,
            formats: DedupParams::FORMATS.into(),
            dolma: None,
            base: None,
            threshold: None,
            survivor: None,
            dry_run: false,
            pdf_worker: Vec::new(),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory: MemoryBudget::default_for_machine(),
        }
    }

    /// Copies inputs of these formats, or of the default ones: without the removed documents, or
    /// with a note on every document of a cluster. Where there are Dolma attributes and nobody
    /// names formats, nothing is copied.
    pub fn copy(&mut self, formats: Option<BTreeSet<Format>>, annotate: bool) {
        let named = formats.is_some();
        if let Some(formats) = formats {
            self.formats = formats;
        }
        self.copying = if annotate {
            Copying::Annotate
        } else if self.formats.is_empty() || self.dolma.is_some() && !named {
            Copying::None
        } else {
            Copying::Filter
        };
    }

    /// What can be said against them before there is an atlas.
    fn check(&self) -> Result<(), DedupError> {
        let least = MemoryBudget::from_bytes(DedupParams::LEAST_MEMORY);
        if self.memory < least {
            return Err(DedupError::TooLittleMemory { given: self.memory, least });
        }
        if let Some(name) = &self.dolma {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if name.is_empty() || name.len() > 100 || !name.chars().all(fits) {
                return Err(DedupError::AttributeName { name: name.clone() });
            }
        }
        Ok(())
    }

    /// Whether nothing of the results is for removing anything.
    fn only_notes(&self) -> bool {
        self.copying == Copying::Annotate && self.dolma.is_none()
    }

    /// The part of the memory that memberships are sorted in.
    fn membership_memory(&self) -> MemoryBudget {
        self.memory.share(1, 4)
    }
}

/// Documents and what is in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// How many.
    pub documents: u64,
    /// The words of their texts together.
    pub tokens: u64,
    /// The size of their payloads together.
    pub bytes: u64,
}

impl Tally {
    fn add(&mut self, row: &DocumentRow<'_>) {
        self.documents += 1;
        self.tokens = self.tokens.saturating_add(row.tokens);
        self.bytes = self.bytes.saturating_add(row.bytes);
    }
}

/// What was decided and written.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DedupSummary {
    /// The directory of the atlas.
    #[serde(serialize_with = "spelling::path")]
    pub atlas: PathBuf,
    /// The directory of the results; `None` of a dry run.
    #[serde(serialize_with = "spelling::optional_path")]
    pub output: Option<PathBuf>,
    /// Whether nothing was to be written.
    pub dry_run: bool,
    /// Documents that are kept.
    pub kept: Tally,
    /// Documents that are removed.
    pub removed: Tally,
    /// Of them exact copies.
    pub removed_exact: Tally,
    /// Of them near copies.
    pub removed_near: Tally,
    /// Of them copies of a document on the same site.
    pub removed_same_site: Tally,
    /// Of them copies of a document on another site.
    pub removed_cross_site: Tally,
    /// Clusters.
    pub clusters: u64,
    /// Documents that are kept although they are copies, since the centre has no payload.
    pub kept_for_payload: u64,
    /// Files that were written beside the lists.
    pub files: u64,
    /// Bytes of the inputs they were made of.
    pub input_bytes: u64,
    /// Bytes of them.
    pub output_bytes: u64,
    /// Records that are not in the copies.
    pub removed_records: u64,
    /// Bytes of the inputs that are not in the copies, before compression. Of JSON lines and CSV:
    /// the removed lines and records. Of Parquet: by how much the row groups that lost rows have
    /// shrunk. Of WARC files: the payloads that became revisits.
    pub removed_record_bytes: u64,
    /// Records that something was added to.
    pub annotated: u64,
    /// Lines and rows of the inputs that are no documents; they stay.
    pub other_records: u64,
    /// Records that became revisits.
    pub revisits: u64,
    /// Metadata records put beside copies.
    pub metadata: u64,
    /// Copies that stay as they are because their file is damaged there.
    pub untouched: u64,
    /// Documents of no cluster that were copied without a comparison with the scan: those of inputs
    /// that nobody has written to since, as far as the system knows.
    pub unchecked: u64,
    /// Inputs whose compressed stream is damaged; the copy ends where they do.
    pub damaged: Vec<DamagedInput>,
    /// Inputs that nothing was written of beside the lists, by format.
    pub left_out: BTreeMap<String, u64>,
    /// Seconds this run took.
    pub seconds: f64,
    /// The most memory that was resident, where the system tells.
    pub peak_memory: Option<u64>,
    /// Bytes that sorting wrote to disk.
    pub spilled_bytes: u64,
}

/// An input whose copy is not whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedInput {
    /// The input.
    pub input: String,
    /// What is wrong with it.
    pub problem: String,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DedupError {
    /// The atlas cannot be read.
    #[error(transparent)]
    Atlas(Box<AtlasError>),
    /// A table of it is damaged.
    #[error(transparent)]
    Table(Box<TableError>),
    /// The memberships cannot be read.
    #[error(transparent)]
    Memberships(Box<dyn std::error::Error + Send + Sync>),
    /// Sorting failed.
    #[error(transparent)]
    Sort(Box<SortError>),
    /// The file system failed.
    #[error(transparent)]
    Io(Box<IoError>),
    /// Too little memory to begin.
    #[error("dedup needs at least {least} of memory, not {given}")]
    TooLittleMemory {
        /// What it was given.
        given: MemoryBudget,
        /// What it needs.
        least: MemoryBudget,
    },
    /// The folder has other things in it.
    #[error("{} is not empty (it has {entry:?})\nhint: name a new folder", dir.display())]
    NotEmpty {
        /// The folder.
        dir: PathBuf,
        /// Something in it.
        entry: String,
    },
    /// The results of another job are there.
    #[error("{} already has the results of another job: {difference}\nhint: name a new folder", dir.display())]
    AlreadyFinished {
        /// The folder.
        dir: PathBuf,
        /// What sets the two apart.
        difference: String,
    },
    /// Another process writes there.
    #[error("another process is writing to {}", dir.display())]
    Busy {
        /// The folder.
        dir: PathBuf,
    },
    /// Not a threshold that pairs can be clustered with.
    #[error("{}, not {threshold}", threshold_rule(*.by_overlap))]
    Threshold {
        /// What was given.
        threshold: f64,
        /// Whether pairs were found by overlap.
        by_overlap: bool,
    },
    /// Not a name that can be part of a path and of a key.
    #[error("{name:?} cannot be the name of an attribute\nhint: use letters, digits, - and _")]
    AttributeName {
        /// The name.
        name: String,
    },
    /// The table of documents and the manifest disagree.
    #[error("document {doc}: the table of documents does not fit the inputs that the manifest names")]
    Documents {
        /// The document.
        doc: u64,
    },
    /// The memberships are not in order.
    #[error("document {doc}: memberships do not ascend by document")]
    Disorder {
        /// The document.
        doc: DocId,
    },
    /// A membership of a document that is not there.
    #[error("document {doc} is in a cluster and not in the table of documents")]
    UnknownDocument {
        /// The document.
        doc: DocId,
    },
    /// A copy of something that is not kept.
    #[error("document {doc}: its centre, document {centre}, is not a centre itself")]
    CentreMissing {
        /// The document.
        doc: DocId,
        /// Its centre.
        centre: DocId,
    },
    /// The input is not where it was.
    #[error("{name}: not found at {}: {source}\nhint: name the folder that inputs were moved to", path.display())]
    Gone {
        /// The input.
        name: String,
        /// Where it was looked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The input cannot be opened as it was.
    #[error("{name}: {reason}")]
    Reopen {
        /// The input.
        name: String,
        /// Why not.
        reason: String,
    },
    /// The input is not what it was.
    #[error("{name}: {now} bytes long, {was} when it was scanned\nhint: scan again, or bring back the file")]
    Changed {
        /// The input.
        name: String,
        /// Its length in the manifest.
        was: u64,
        /// Its length now.
        now: u64,
    },
    /// The input is of another kind than it was.
    #[error("{name}: a {now} file, {was} when it was scanned\nhint: scan again, or bring back the file")]
    OtherFormat {
        /// The input.
        name: String,
        /// Its format in the manifest.
        was: String,
        /// Its format now.
        now: &'static str,
    },
    /// The input has no document where the scan found one.
    #[error(
        "{name}: there is no document at {offset}, where the scan found one; the file has changed\nhint: scan again, or bring back the file"
    )]
    Moved {
        /// The input.
        name: String,
        /// The place.
        offset: u64,
    },
    /// The input has another document where the scan found one.
    #[error(
        "{place}: this is not the document that the scan found there; the file has changed\nhint: scan again, or bring back the file"
    )]
    OtherContent {
        /// The input and the place.
        place: String,
    },
    /// The input was written to meanwhile.
    #[error("{name}: the file was changed while it was copied\nhint: scan again when nobody writes to it")]
    ChangedMeanwhile {
        /// The input.
        name: String,
    },
    /// The input cannot be copied.
    #[error("{name} cannot be copied: {why}\nhint: choose which formats are copied, or write only the lists")]
    NotCopied {
        /// The input.
        name: String,
        /// Why not.
        why: &'static str,
    },
    /// The input cannot be read or written again in its format.
    #[error("{name}: {reason}")]
    Broken {
        /// The input.
        name: String,
        /// Why not.
        reason: String,
    },
}

fn threshold_rule(by_overlap: bool) -> &'static str {
    if by_overlap {
        "pairs were found by overlap: the threshold is a number of chunks"
    } else {
        "a threshold is above 0 and at most 1"
    }
}

onionskin_store::boxed_sources!(DedupError: Atlas(AtlasError), Table(TableError), Sort(SortError), Io(IoError));

/// A line of the lists, on an average that errs on the high side.
const LIST_BYTES: u64 = 400;

/// A copy in flight: buffers, a record or a line held whole, a row group.
const COPY_BYTES: u64 = 96 << 20;

/// Decides on every document of an atlas by its clusters, and writes the results.
///
/// # Errors
///
/// When the atlas has no clusters or is damaged, when an input that is to be copied is gone or not
/// what it was, when the directory is not empty, or when the disk is full. Nothing is left behind
/// in any of these cases.
pub fn dedup(params: &DedupParams, progress: &dyn Progress) -> Result<DedupSummary, DedupError> {
    params.check()?;
    let atlas = Atlas::open(&params.atlas)?;
    let work_dir = SortDir::new(params);
    let (memberships, duplicates) = memberships::memberships(params, &atlas, &work_dir)?;
    run(params, memberships, duplicates, progress)
}

/// The same by clusters that come from somewhere else.
///
/// `memberships` gives the documents that are in clusters, ascending; every centre must be among
/// them. See [`from_clusters_table`](onionskin_similar::membership::from_clusters_table).
///
/// # Errors
///
/// As [`dedup()`], and when the memberships do not ascend.
pub fn dedup_by<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    params: &DedupParams,
    memberships: impl IntoIterator<Item = Result<Membership, E>>,
    progress: &dyn Progress,
) -> Result<DedupSummary, DedupError> {
    params.check()?;
    run(params, memberships, Duplicates::Go, progress)
}

/// What the clusters allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duplicates {
    /// Each resembles the document that stays for it.
    Go,
    /// They are noted, and none is listed as removed.
    Stay,
}

fn run<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    params: &DedupParams,
    memberships: impl IntoIterator<Item = Result<Membership, E>>,
    duplicates: Duplicates,
    progress: &dyn Progress,
) -> Result<DedupSummary, DedupError> {
    let begun = Instant::now();
    let atlas = Atlas::open(&params.atlas)?;
    let mut options = inputs::reading_options(&atlas)?;
    options.extract.pdf_worker.clone_from(&params.pdf_worker);
    let fit = usize::try_from(params.memory.bytes() / COPY_BYTES).unwrap_or(usize::MAX);
    let threads = params.threads.min(fit).max(1);
    let shares = inputs::shares_of(params.memory, threads);
    let limited = shares.limit(&options).extract;
    options.extract.tool_memory_bytes = limited.tool_memory_bytes;
    options.extract.small_tool_memory_bytes = limited.small_tool_memory_bytes;
    let recipe: Recipe = atlas.manifest().recipe.parse().map_err(|error: RecipeError| {
        DedupError::Broken { name: params.atlas.display().to_string(), reason: error.to_string() }
    })?;
    let plan = Plan::new(params, atlas.manifest(), &options)?;
    progress.event(Event::Discovered { sources: plan.jobs.len(), bytes: plan.bytes() });

    if params.dry_run {
        let work = Scratch::new()?;
        progress.event(Event::Step { name: "deciding" });
        let decided =
            decide(&atlas, memberships, duplicates, (params, &plan), &work.0, &mut (io::sink(), io::sink()))?;
        let mut summary = decided.summary;
        summary.left_out = plan.left_out;
        (summary.atlas, summary.dry_run) = (params.atlas.clone(), true);
        summary.seconds = begun.elapsed().as_secs_f64();
        summary.peak_memory = process::peak_rss();
        return Ok(summary);
    }

    if let Finished::Differs(difference) = params.finished()? {
        return Err(DedupError::AlreadyFinished { dir: params.output.clone(), difference });
    }
    let output = Output::open(&params.output)?;
    let documents = atlas.table(&TableName::Documents)?.rows;
    let needed = plan.bytes().saturating_add(documents.saturating_mul(LIST_BYTES));
    disk::ensure_free(&params.output, needed, "the lists and the copies")?;
    progress.event(Event::Step { name: "deciding" });
    let create = |name: &str| -> Result<BufWriter<File>, DedupError> {
        let path = output.place(name)?;
        let file = File::create_new(&path).map_err(|e| IoError::new("creating", path, e))?;
        Ok(BufWriter::with_capacity(128 << 10, file))
    };
    let mut lists = (create(KEPT)?, create(REMOVED)?);
    let decided = decide(&atlas, memberships, duplicates, (params, &plan), &output.work_dir(), &mut lists)?;
    for (name, list) in [(KEPT, lists.0), (REMOVED, lists.1)] {
        output::finish_file(list).map_err(|e| IoError::new("writing", params.output.join(name), e))?;
    }
    let mut summary = decided.summary;
    summary.left_out = plan.left_out.clone();
    (summary.atlas, summary.output) = (params.atlas.clone(), Some(params.output.clone()));

    progress.event(Event::Step { name: "copying" });
    let copied = AtomicU64::new(0);
    let mut paths = vec![None; atlas.manifest().inputs.len()];
    for job in &plan.jobs {
        paths[job.input] = Some(job.path.clone());
    }
    let context = Context {
        output: &output,
        options: &options,
        recipe: &recipe,
        shares,
        large: &Mutex::default(),
        paths: &paths,
        verdicts: &decided.verdicts,
        scanned: &decided.scanned,
        names: &decided.names,
        dolma: params.dolma.as_deref(),
        copied: &copied,
    };
    let reports = shards::run(&plan, &context, threads, progress)?;
    for (job, report) in plan.jobs.iter().zip(&reports) {
        note(&mut summary, job, report);
    }
    progress.event(Event::Step { name: "publishing" });
    output.publish(&summary_file(params, &atlas, &plan, &reports, &summary)?)?;
    summary.seconds = begun.elapsed().as_secs_f64();
    summary.peak_memory = process::peak_rss();
    tracing::info!(
        stage = "dedup",
        kept = summary.kept.documents,
        removed = summary.removed.documents,
        spilled_bytes = summary.spilled_bytes,
        "stage done"
    );
    Ok(summary)
}

/// What was decided, and where it lies.
struct Decided {
    summary: DedupSummary,
    verdicts: Stretches<Verdict>,
    scanned: Stretches<Scanned>,
    names: PathBuf,
}

/// Walks through all documents and writes the lists and the verdicts.
fn decide<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    atlas: &Atlas,
    memberships: impl IntoIterator<Item = Result<Membership, E>>,
    duplicates: Duplicates,
    (params, plan): (&DedupParams, &Plan),
    work_dir: &Path,
    (kept_list, removed_list): &mut (impl Write, impl Write),
) -> Result<Decided, DedupError> {
    let gathered = gather(atlas, memberships.into_iter(), params.memory, work_dir)?;
    let copied = plan.copied(atlas)?;
    let mut summary = DedupSummary { spilled_bytes: gathered.spilled_bytes, ..DedupSummary::default() };
    let listing = |e| IoError::new("writing the lists in", &params.output, e);
    let inputs = atlas.manifest().inputs.len();
    let mut verdicts = StretchesWriter::create(work_dir.join("verdicts"), inputs)?;
    let mut scanned = StretchesWriter::create(work_dir.join("scanned"), inputs)?;
    let mut names = Names::open(&gathered.names).map_err(|e| IoError::new("reading", &gathered.names, e))?;
    let mut entries = gathered.entries;
    let mut ahead = entries.next().transpose()?;
    let mut walk = Walk::new(atlas)?;
    while let Some((input, row)) = walk.next()? {
        let entry = match ahead {
            Some(entry) if entry.doc == row.doc => {
                ahead = entries.next().transpose()?;
                Some(entry)
            }
            _ => None,
        };
        let mut is_removed = false;
        if let Some(entry) = &entry {
            summary.clusters += u64::from(entry.is_centre());
            if !entry.is_centre() && duplicates == Duplicates::Go {
                let kept = names.get(entry.name).map_err(|e| IoError::new("reading", &gathered.names, e))?;
                is_removed = !kept.is_revisit || row.media_type == REVISIT;
                summary.kept_for_payload += u64::from(!is_removed);
                if is_removed {
                    summary.removed.add(&row);
                    match entry.kind() {
                        CopyKind::Exact => summary.removed_exact.add(&row),
                        CopyKind::Near => summary.removed_near.add(&row),
                    }
                    match lists::same_site(&row, &kept) {
                        true => summary.removed_same_site.add(&row),
                        false => summary.removed_cross_site.add(&row),
                    }
                    lists::removed(removed_list, &row, entry, &kept).map_err(listing)?;
                }
            }
            verdicts.push(input, &Verdict { offset: row.offset, is_removed, entry: *entry })?;
        }
        let is_modified = copied.get(input as usize).copied().flatten();
        if entry.is_some() || is_modified == Some(true) {
            scanned.push(input, &Scanned { offset: row.offset, text_fp: row.text_fp })?;
        } else {
            summary.unchecked += u64::from(is_modified == Some(false));
        }
        if !is_removed {
            summary.kept.add(&row);
            lists::kept(kept_list, &row, entry.as_ref()).map_err(listing)?;
        }
    }
    if let Some(entry) = ahead {
        return Err(DedupError::UnknownDocument { doc: entry.doc });
    }
    let (verdicts, scanned) = (verdicts.finish()?, scanned.finish()?);
    Ok(Decided { summary, verdicts, scanned, names: gathered.names })
}

fn note(summary: &mut DedupSummary, job: &Job, report: &CopyReport) {
    summary.files += 1;
    summary.input_bytes += job.bytes;
    summary.output_bytes += report.bytes;
    summary.removed_records += report.removed;
    summary.removed_record_bytes += report.removed_bytes;
    summary.annotated += report.annotated;
    summary.other_records += report.other_records;
    summary.revisits += report.revisits;
    summary.metadata += report.metadata;
    summary.untouched += report.untouched;
    if let Some(damage) = &report.damage {
        summary.damaged.push(DamagedInput { input: job.name.clone(), problem: damage.clone() });
    }
}

/// What `dedup.json` says: enough to know what was made of what. Nothing in it tells time, threads
/// or memory.
fn summary_file(
    params: &DedupParams,
    atlas: &Atlas,
    plan: &Plan,
    reports: &[CopyReport],
    summary: &DedupSummary,
) -> Result<Vec<u8>, DedupError> {
    let manifest = atlas.manifest();
    let files: Vec<_> = plan
        .jobs
        .iter()
        .zip(reports)
        .map(|(job, report)| {
            json!({
                "path": job.to,
                "input": job.name,
                "bytes": report.bytes,
                "removed": report.removed,
                "removed_bytes": report.removed_bytes,
                "annotated": report.annotated,
                "no_documents": report.other_records,
                "revisits": report.revisits,
                "metadata": report.metadata,
                "untouched": report.untouched,
                "damage": report.damage,
            })
        })
        .collect();
    let value = json!({
        "format_version": 1,
        "tool": concat!("onionskin ", env!("CARGO_PKG_VERSION")),
        "recipe": manifest.recipe,
        "seed": manifest.seed,
        "similar": manifest.stages.raw(StageName::Similar),
        "copying": params.copying.as_str(),
        "dolma": params.dolma,
        "job": params.job(atlas),
        "kept": summary.kept,
        "removed": summary.removed,
        "removed_exact": summary.removed_exact,
        "removed_near": summary.removed_near,
        "removed_same_site": summary.removed_same_site,
        "removed_cross_site": summary.removed_cross_site,
        "clusters": summary.clusters,
        "kept_for_payload": summary.kept_for_payload,
        "removed_records": summary.removed_records,
        "removed_record_bytes": summary.removed_record_bytes,
        "left_out": summary.left_out,
        "files": files,
    });
    let io = |e: serde_json::Error| IoError::new("writing", params.output.join(output::SUMMARY), e.into());
    let mut bytes = serde_json::to_vec_pretty(&value).map_err(io)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A folder for what a dry run sorts.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, DedupError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("onionskin-dedup-{}-{number}", std::process::id()));
        fs::create_dir(&path).map_err(|e| IoError::new("creating", &path, e))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::debug!(path = %self.0.display(), %error, "a work folder was left behind");
        }
    }
}

#[cfg(test)]
mod membership_tests;
#[cfg(test)]
mod tests;
