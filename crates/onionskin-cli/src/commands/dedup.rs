//! `dedup`: what is kept, what is removed, and the inputs without it.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use clap::ValueHint;
use onionskin::dedup::DamagedInput;
use onionskin::{DedupParams, DedupSummary, Survivor, dedup};
use onionskin_corpus::Format;
use onionskin_store::MemoryBudget;
use onionskin_store::stage::Finished;

use crate::Exit;
use crate::args::{Global, ResourceArgs};
use crate::commands::similar::parse_number_or_share;
use crate::output::{bytes, grouped, print_summary, seconds, shown, table};
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
    /// Formats whose inputs are copied: `all`, `none`, or some of jsonl, parquet, csv, tsv, warc
    /// [default: jsonl,parquet; none with --dolma]
    ///
    /// In WARC files an exact copy becomes a `revisit` record, once its payload has been compared
    /// with that of the record it refers to, and a near copy keeps its payload and gets a
    /// `metadata` record behind it. Folders of single files are never copied; the lists name what
    /// to remove.
    #[arg(long, value_name = "FORMATS", value_parser = shards)]
    pub shards: Option<Shards>,
    /// Remove nothing, but say of every document in a cluster that it is in one.
    ///
    /// Lines of JSON get the keys `dup_cluster`, `dup_size`, `dup_of` and `dup_resemblance` at
    /// their end, rows of Parquet get columns of these names. `dup_of` is the id of the document
    /// that would stay, else its address, else `doc:` and its number; null for that document
    /// itself. Documents in no cluster get no keys, and nulls. An earlier annotation is replaced.
    /// Copies in WARC files get `metadata` records. This works with transitive clusters too, and
    /// then nothing is listed as removed.
    #[arg(long)]
    pub annotate: bool,
    /// Write Dolma attributes of this name for inputs of JSON lines.
    ///
    /// A line for every line, with a span over the whole text of each copy:
    /// `[[0, characters, resemblance]]` under the key `NAME__near_dup`. The folder `documents` in
    /// an input's path gives way to `attributes/NAME`.
    #[arg(long, value_name = "NAME")]
    pub dolma: Option<String>,
    /// The folder below which inputs with relative names are now.
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub base: Option<PathBuf>,
    /// Cluster the stored pairs anew, with those of this resemblance and more only (with overlap:
    /// this many shared chunks).
    ///
    /// Not below the threshold that `onionskin similar` was given; nothing is scanned or searched
    /// again.
    #[arg(long, visible_alias = "rethreshold", value_name = "T")]
    pub threshold: Option<String>,
    /// Cluster the stored pairs anew, and keep of each cluster: first, longest, most-linked,
    /// earliest, or prefer:A,B,... with beginnings of URLs, host names or names of inputs [default:
    /// what `onionskin similar` was given]
    ///
    /// `first` keeps the first in the order of the inputs, `longest` the one with the most words,
    /// `earliest` the one with the first date of a fetch. A rule that no document of the atlas
    /// fits is an error.
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
    let params = params(args)?;
    if params.finished()? == Finished::Same {
        let hint = "remove the folder or name a new one to do it again";
        let told = std::fs::read(params.output.join("dedup.json"))?;
        let told: serde_json::Value = serde_json::from_slice(&told)?;
        let number = |name: &str| told[name]["documents"].as_u64().unwrap_or(0);
        let found = [("kept", number("kept")), ("removed", number("removed"))];
        return super::nothing_to_do(global, "dedup", &params.output, &found, hint);
    }
    let summary = Bar::new(global).during(|bar| dedup(&params, bar))?;
    print_summary(global, "dedup", &summary, |summary| describe(summary, &params))?;
    Ok(Exit::Done)
}

fn params(args: &DedupArgs) -> anyhow::Result<DedupParams> {
    let mut params = DedupParams::new(args.atlas.clone(), args.output.clone().unwrap_or_default());
    params.dolma = args.dolma.clone();
    params.copy(args.shards.as_ref().map(|Shards(formats)| formats.clone()), args.annotate);
    params.base = args.base.clone();
    params.threshold = args.threshold.as_deref().map(parse_number_or_share).transpose()?;
    params.survivor = args.keep.clone();
    params.dry_run = args.dry_run;
    params.pdf_worker = super::pdf_worker();
    params.memory = args.resources.memory.unwrap_or_else(MemoryBudget::default_for_machine);
    if let Some(threads) = args.resources.threads {
        params.threads = usize::from(threads);
    }
    Ok(params)
}

/// The summary for people.
fn describe(summary: &DedupSummary, params: &DedupParams) -> String {
    let mut decided = table(&["", "documents", "words", "payload"]);
    for (name, tally) in [
        ("kept", summary.kept),
        ("removed", summary.removed),
        ("  exact copies", summary.removed_exact),
        ("  near copies", summary.removed_near),
        ("  on the same site", summary.removed_same_site),
        ("  on another site", summary.removed_cross_site),
    ] {
        let numbers = [grouped(tally.documents), grouped(tally.tokens), bytes(tally.bytes)];
        decided.add_row([[name.to_owned()].as_slice(), &numbers].concat());
    }
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
            (summary.unchecked, "are in no cluster and were not compared with the scan"),
        ] {
            if count > 0 {
                let _ = write!(text, "; {} {what}", grouped(count));
            }
        }
        if summary.removed_records > 0 {
            let left_out = bytes(summary.removed_record_bytes);
            let _ = write!(text, "; {left_out} left out, counted before compression");
        }
        text.push('\n');
    }
    for DamagedInput { input, problem } in &summary.damaged {
        let _ =
            writeln!(text, "{} is damaged ({}); its copy ends where it does", shown(input), shown(problem));
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
