//! `dedup`: what is kept, what is removed, and the inputs without it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::ValueHint;
use onionskin::dedup::{Copying, Tally};
use onionskin::similar::Reclustering;
use onionskin::similar::membership::{from_clusters_table, from_pairs};
use onionskin::{DedupParams, DedupSummary, Survivor, dedup};
use onionskin_corpus::Format;
use onionskin_similar::SimilarRecord;
use onionskin_similar::cluster::Clustering;
use onionskin_store::table::Method;
use onionskin_store::{Atlas, MemoryBudget};
use serde::Serialize;

use crate::Exit;
use crate::args::{Global, ResourceArgs};
use crate::commands::similar::parse_share;
use crate::output::{bytes, grouped, print, print_json, seconds, table};
use crate::progress::Bar;

#[derive(Debug, clap::Args)]
pub(crate) struct DedupArgs {
    /// The folder of the atlas, with clusters that `onionskin similar` made.
    #[arg(value_hint = ValueHint::DirPath)]
    pub atlas: PathBuf,
    /// Where the lists and the copies go: a new or empty folder.
    #[arg(
        short,
        long,
        value_name = "FOLDER",
        value_hint = ValueHint::DirPath,
        required_unless_present = "dry_run"
    )]
    pub output: Option<PathBuf>,
    /// Formats whose inputs are copied: `all`, `none`, or some of jsonl, parquet, csv, tsv, warc [default: jsonl,parquet; none
    /// with --dolma]
    ///
    /// In WARC files an exact copy becomes a `revisit` record, once its payload has been compared with that of the record it
    /// refers to, and a near copy keeps its payload and gets a `metadata` record behind it. Folders of single files are never
    /// copied; the lists name what to remove.
    #[arg(long, value_name = "FORMATS", value_parser = shards)]
    pub shards: Option<Shards>,
    /// Remove nothing, but say of every document in a cluster that it is in one.
    ///
    /// Lines of JSON get the keys `dup_cluster`, `dup_size`, `dup_of` and `dup_resemblance` at their end, rows of Parquet get
    /// columns of these names. `dup_of` is the id of the document that would stay, else its address, else `doc:` and its number;
    /// null for that document itself. Documents in no cluster get no keys, and nulls. Copies in WARC files get `metadata` records.
    #[arg(long)]
    pub annotate: bool,
    /// Write Dolma attributes of this name for inputs of JSON lines.
    ///
    /// A line for every line, with a span over the whole text of each copy: `[[0, characters, resemblance]]` under the key
    /// `NAME__near_dup`. The folder `documents` in an input's path gives way to `attributes/NAME`.
    #[arg(long, value_name = "NAME")]
    pub dolma: Option<String>,
    /// The folder below which inputs with relative names are now.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub base: Option<PathBuf>,
    /// Cluster the stored pairs anew, with those of this resemblance and more only (with overlap: this many shared chunks).
    ///
    /// Not below the threshold that `onionskin similar` was given; nothing is scanned or searched again.
    #[arg(long, visible_alias = "rethreshold", value_name = "T")]
    pub threshold: Option<String>,
    /// Cluster the stored pairs anew, and keep of each cluster: smallest, longest, most-linked, earliest, or prefer:A,B,... with
    /// beginnings of URLs, host names or names of inputs [default: what `onionskin similar` was given]
    #[arg(long, value_name = "RULE")]
    pub keep: Option<Survivor>,
    /// Decide, print the summary and write nothing.
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub resources: ResourceArgs,
}

/// The formats of `--shards`.
#[derive(Clone, Debug)]
pub(crate) struct Shards(BTreeSet<Format>);

/// What can be copied.
const COPIED: [Format; 5] = [Format::Jsonl, Format::Parquet, Format::Csv, Format::Tsv, Format::Warc];

fn shards(text: &str) -> Result<Shards, String> {
    let known = || format!("known are all, none, {}", COPIED.map(Format::as_str).join(", "));
    match text {
        "all" => Ok(Shards(COPIED.into())),
        "none" => Ok(Shards(BTreeSet::new())),
        list => {
            let one = |name: &str| name.trim().parse().ok().filter(|format| COPIED.contains(format));
            let formats = list.split(',').map(|name| one(name).ok_or_else(known));
            Ok(Shards(formats.collect::<Result<_, _>>()?))
        }
    }
}

pub(crate) fn run(args: &DedupArgs, global: &Global) -> anyhow::Result<Exit> {
    let params = params(args);
    let bar = Bar::new(global);
    let result = reclustering(args).and_then(|wanted| decide(&params, wanted, &bar));
    bar.finish();
    let summary = result?;
    if global.json {
        print_json(&DedupWire::new(&summary, &params))?;
    } else {
        print(&describe(&summary, &params))?;
    }
    Ok(Exit::Done)
}

/// What was said about clusters; `None` where those of the atlas will do.
fn reclustering(args: &DedupArgs) -> anyhow::Result<Option<Reclustering>> {
    if args.threshold.is_none() && args.keep.is_none() {
        return Ok(None);
    }
    let atlas = Atlas::open(&args.atlas)?;
    let search = atlas.record::<SimilarRecord>()?.unwrap_or_default().search;
    let threshold = match args.threshold.as_deref() {
        None => None,
        Some(number) if search.method == Some(Method::Overlap) => {
            let chunks = number.parse::<u32>();
            Some(f64::from(chunks.with_context(|| {
                format!("pairs were found by overlap: the threshold is a number of chunks, not {number:?}")
            })?))
        }
        Some(share) => Some(parse_share(share)?),
    };
    let survivor = match &args.keep {
        Some(rule) => rule.clone(),
        None => search.survivor.unwrap_or_default(),
    };
    Ok(Some(Reclustering { clustering: Clustering::Centred, threshold, survivor }))
}

fn decide(params: &DedupParams, wanted: Option<Reclustering>, bar: &Bar) -> anyhow::Result<DedupSummary> {
    let atlas = Atlas::open(&params.atlas)?;
    let work_dir = work_dir(params);
    let memory = params.membership_memory();
    let memberships = match wanted {
        Some(wanted) => from_pairs(&atlas, &wanted, memory, &work_dir)?,
        None => from_clusters_table(&atlas, memory, &work_dir)?,
    };
    let result = dedup(params, memberships, bar);
    // Made only if the sort did not fit into memory; also what a killed run has left there goes.
    let _ = std::fs::remove_dir_all(&work_dir);
    Ok(result?)
}

/// Where clusters are sorted: beside the results, where there is room for them.
fn work_dir(params: &DedupParams) -> PathBuf {
    match params.output.file_name() {
        Some(name) if !params.dry_run => {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(".sort");
            params.output.with_file_name(hidden)
        }
        _ => std::env::temp_dir().join(format!("onionskin-sort-{}", std::process::id())),
    }
}

fn params(args: &DedupArgs) -> DedupParams {
    let mut params = DedupParams::new(args.atlas.clone(), args.output.clone().unwrap_or_default());
    if let Some(Shards(formats)) = &args.shards {
        params.formats = formats.clone();
    }
    params.copying = if args.annotate {
        Copying::Annotate
    } else if params.formats.is_empty() || args.dolma.is_some() && args.shards.is_none() {
        Copying::None
    } else {
        Copying::Filter
    };
    params.dolma = args.dolma.clone();
    params.base = args.base.clone();
    params.dry_run = args.dry_run;
    params.memory = args.resources.memory.unwrap_or_else(MemoryBudget::default_for_machine);
    if let Some(threads) = args.resources.threads {
        params.threads = usize::from(threads);
    }
    params
}

/// `onionskin dedup --json`.
#[derive(Serialize)]
struct DedupWire<'a> {
    r#type: &'static str,
    atlas: String,
    output: Option<String>,
    dry_run: bool,
    kept: TallyWire,
    removed: TallyWire,
    removed_exact: TallyWire,
    removed_near: TallyWire,
    removed_same_site: TallyWire,
    removed_cross_site: TallyWire,
    clusters: u64,
    kept_for_payload: u64,
    files: u64,
    input_bytes: u64,
    output_bytes: u64,
    removed_records: u64,
    annotated: u64,
    other_records: u64,
    revisits: u64,
    metadata: u64,
    untouched: u64,
    damaged: Vec<DamagedWire<'a>>,
    left_out: &'a std::collections::BTreeMap<String, u64>,
    seconds: f64,
    peak_memory: Option<u64>,
    spilled_bytes: u64,
}

#[derive(Serialize)]
struct TallyWire {
    documents: u64,
    bytes: u64,
}

impl From<Tally> for TallyWire {
    fn from(tally: Tally) -> TallyWire {
        TallyWire { documents: tally.documents, bytes: tally.bytes }
    }
}

#[derive(Serialize)]
struct DamagedWire<'a> {
    input: &'a str,
    problem: &'a str,
}

impl<'a> DedupWire<'a> {
    fn new(summary: &'a DedupSummary, params: &DedupParams) -> DedupWire<'a> {
        let damaged = summary.damaged.iter();
        DedupWire {
            r#type: "dedup",
            atlas: params.atlas.display().to_string(),
            output: (!params.dry_run).then(|| params.output.display().to_string()),
            dry_run: params.dry_run,
            kept: summary.kept.into(),
            removed: summary.removed.into(),
            removed_exact: summary.removed_exact.into(),
            removed_near: summary.removed_near.into(),
            removed_same_site: summary.removed_same_site.into(),
            removed_cross_site: summary.removed_cross_site.into(),
            clusters: summary.clusters,
            kept_for_payload: summary.kept_for_payload,
            files: summary.files,
            input_bytes: summary.input_bytes,
            output_bytes: summary.output_bytes,
            removed_records: summary.removed_records,
            annotated: summary.annotated,
            other_records: summary.other_records,
            revisits: summary.revisits,
            metadata: summary.metadata,
            untouched: summary.untouched,
            damaged: damaged.map(|(input, problem)| DamagedWire { input, problem }).collect(),
            left_out: &summary.left_out,
            seconds: summary.seconds,
            peak_memory: summary.peak_memory,
            spilled_bytes: summary.spilled_bytes,
        }
    }
}

/// The summary for people.
fn describe(summary: &DedupSummary, params: &DedupParams) -> String {
    let mut decided = table(&["", "documents", "payload"]);
    let mut row = |name: &str, tally: Tally| {
        decided.add_row([name.to_owned(), grouped(tally.documents), bytes(tally.bytes)]);
    };
    row("kept", summary.kept);
    row("removed", summary.removed);
    row("  exact copies", summary.removed_exact);
    row("  near copies", summary.removed_near);
    row("  on the same site", summary.removed_same_site);
    row("  on another site", summary.removed_cross_site);
    let mut text = format!("{decided}\n{} clusters", grouped(summary.clusters));
    if summary.kept_for_payload > 0 {
        let kept = grouped(summary.kept_for_payload);
        let _ = write!(text, "; {kept} copies stay because what they are copies of has no payload");
    }
    text.push('\n');
    for (format, inputs) in &summary.left_out {
        let inputs = grouped(*inputs);
        let _ = match format.as_str() {
            "tree" => {
                writeln!(text, "not copied: {inputs} × folder of single files; the lists say which to remove")
            }
            _ => writeln!(text, "not copied: {inputs} × {format}; --shards chooses what is"),
        };
    }
    if params.dry_run {
        text.push_str("nothing was written\n");
        return text;
    }
    if summary.files > 0 {
        let _ = write!(
            text,
            "{} files written, {} of {}",
            grouped(summary.files),
            bytes(summary.output_bytes),
            bytes(summary.input_bytes)
        );
        for (count, what) in [
            (summary.removed_records - summary.revisits, "records removed"),
            (summary.revisits, "became revisits"),
            (summary.metadata, "got a metadata record"),
            (summary.annotated, "annotated"),
            (summary.other_records, "are no documents and stay"),
            (summary.untouched, "could not be changed because the file is damaged there"),
        ] {
            if count > 0 {
                let _ = write!(text, "; {} {what}", grouped(count));
            }
        }
        text.push('\n');
    }
    for (input, problem) in &summary.damaged {
        let _ = writeln!(text, "{input} is damaged ({problem}); its copy ends where it does");
    }
    let _ = writeln!(
        text,
        "{} in {}, {} of memory at most",
        params.output.display(),
        seconds(summary.seconds),
        summary.peak_memory.map_or_else(|| "unknown amount".to_owned(), bytes),
    );
    text
}
