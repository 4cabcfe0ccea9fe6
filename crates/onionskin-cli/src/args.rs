//! What can be typed. The doc comments are the help and the man pages.

use std::path::PathBuf;

use clap::{ArgAction, Parser, Subcommand, ValueEnum, ValueHint};
use onionskin::{ScanParams, SimilarParams, Survivor};
use onionskin_core::{Chunking, FeatureFilter, Recipe};
use onionskin_corpus::{BaseUrl, FieldNames, Format, Options};
use onionskin_extract::PdfTool;
use onionskin_similar::cluster::Clustering;
use onionskin_similar::overlap::Engine;
use onionskin_store::MemoryBudget;
use onionskin_store::table::Method;
use onionskin_testkit::Preset;

use crate::commands::plan::Goal;

/// Finds the copies in a web: pages that are the same, pages that are nearly the same, and whole
/// collections that are mirrored from site to site.
///
/// stdout carries data, stderr talks. Exit codes: 0 done, 1 a clear negative answer, 2 an error.
#[derive(Debug, Parser)]
#[command(name = "onionskin", version, propagate_version = true, max_term_width = 110)]
pub(crate) struct Args {
    #[command(flatten)]
    pub global: Global,
    #[command(subcommand)]
    pub command: Command,
}

/// For every command.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// Print results as JSON, one object a line, each with a `type`.
    #[arg(long, global = true)]
    pub json: bool,
    /// Say nothing but errors on stderr.
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say more on stderr; twice for one line a file.
    #[arg(short, long, global = true, action = ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// How log lines look.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, value_name = "FORMAT")]
    pub log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the whole job on a small generated web, and show what was planted and what was seen.
    Demo(DemoArgs),
    /// Do the whole job: scan, similar, collections, report.
    ///
    /// The same as the four commands one after the other, with the same result, in one process. An
    /// interrupted run resumes when the same command is run again. Without links between documents
    /// there are no collections, and their search is left out.
    Run(Box<crate::commands::run::RunArgs>),
    /// Read raw web data once and make an atlas of it.
    ///
    /// Inputs are WARC, WET and ARC files, WACZ, JSON lines, Parquet, CSV, and folders of HTML,
    /// text, PDF and office files, plain or compressed; what each is, is seen by its content. A
    /// scan that was stopped goes on where it was when the same command is given again.
    Scan(Box<ScanArgs>),
    /// Find the similar documents of an atlas: pairs with evidence, and clusters.
    ///
    /// Exact copies are folded first. Every pair carries the value that was computed from the two
    /// documents' own chunks. Running it again with other parameters replaces pairs and clusters;
    /// the scan is not repeated.
    Similar(SimilarArgs),
    /// Find collections of linked pages that stand in several places: mirrors, aliases of hosts,
    /// versions of documentation.
    ///
    /// Needs what `similar` found. Every copy is told against its principal: how much of it there
    /// is, what is missing, changed and added, and which of the two is newer.
    Collections(crate::commands::collections::CollectionsArgs),
    /// Tell how much is copied and where, as one page with figures, JSON and CSV; or what has
    /// changed between two crawls.
    ///
    /// Tells of every level of likeness that was searched for (`similar --for-report` adds one
    /// without replacing clusters), of what a crawl by links would reach, of sizes and growth of
    /// clusters, of collections, sites, aliases and costs. With two atlases it tells what is new in
    /// the second, what is gone, and what is still copied.
    Report(crate::commands::report::ReportArgs),
    /// Make the list of what the next crawl can skip, as files for crawlers; replay it, audit it,
    /// find stand-ins for dead pages.
    ///
    /// Needs what `collections` found. No rule holds for a page that is known and not to be
    /// skipped.
    Avoid(Box<crate::commands::avoid::AvoidArgs>),
    /// Show why two documents are alike: every number, and the shared passages side by side.
    ///
    /// A document is called by its number, its address or its id; `doc:7`, `url:...` and `id:...`
    /// force one. `cluster:3` alone lists the members of a cluster. Texts are read again from the
    /// inputs; when those are gone, the numbers are printed alone. Exit code 1 when there is no
    /// such document or cluster.
    Explain(crate::commands::explain::ExplainArgs),
    /// Compare pairs and clusters with known answers: precision, recall, F1, adjusted Rand index.
    ///
    /// The truth is what `onionskin generate --truth` writes; JSON lines of pairs {"a", "b",
    /// "resemblance"} or members {"id" or "url" or "doc", "cluster"}; or CSV or TSV under a header
    /// with the same names. A pair is true when its resemblance reaches the threshold, or is not
    /// given. Exact copies stand for each other: a search lists a near pair for one of them only.
    ///
    /// Precision is judged where the truth is complete. A pair it does not list is wrong when the
    /// two are in different clusters of the truth, in one whose pairs are all listed, or the truth
    /// is a list of pairs or a generated one, which know every copy (unless --partial). It is not
    /// judged inside a generated cluster of more than 16 pages, of which only the pairs with the
    /// centre are listed, nor when a list of members does not name one of the two. Clusters of the
    /// truth are its members, or what its true pairs connect; documents of no cluster count as
    /// clusters of one.
    Evaluate(crate::commands::evaluate::EvaluateArgs),
    /// List what is kept and what is removed, and copy the inputs without the copies in them.
    ///
    /// Reads the clusters of an atlas. Of every cluster one document stays; `removed.jsonl` says of
    /// each of the others what it is a copy of, and why. Inputs are copied to `shards`, in the same
    /// format and compression; what stays is copied byte for byte.
    Dedup(Box<crate::commands::dedup::DedupArgs>),
    /// Estimate the relative size and coverage of crawls, URL lists and search engines.
    ///
    /// Pages of each are sampled and looked for in the others; sizes follow from the shares that
    /// are found, with intervals. Also: searches out of a query log, a random walk over links, and
    /// the results of a study of random addresses. Every known bias of what was done is named. Exit
    /// code 1 when no size can be told. No command here probes addresses.
    Size(Box<crate::commands::size::SizeArgs>),
    /// Tell of documents as they come whether they, or some nearly like them, have been seen
    /// before, and which.
    ///
    /// An index in a folder that is safe against kills and power cuts: an answer to an addition is
    /// printed when it is on the disk. Documents are JSON lines from files or standard input, or
    /// those of an atlas. Answers are JSON lines, one a document, in order.
    Seen(Box<crate::commands::seen::SeenArgs>),
    /// Serve an atlas, an index of seen documents, or both, to browsers and programs.
    ///
    /// On this machine only, unless told otherwise. Writes always need a token; if other machines
    /// can reach the server, reads need one too. Ends with code 0 on a signal, when running
    /// requests are done; at once on a second one.
    #[cfg(feature = "serve")]
    Serve(Box<crate::commands::serve::ServeArgs>),
    /// Choose parameters, draw the curve of a filter, and tell memory, disk and time before
    /// starting.
    Plan(PlanArgs),
    /// Make a web with planted copies and known answers.
    Generate(GenerateArgs),
    /// Check that every file of an atlas is whole. Exit code 1 when one is not.
    Verify(VerifyArgs),
    /// Print completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Read one PDF from standard input for a scan; a process of its own, so that a hostile file
    /// harms nobody.
    #[command(hide = true)]
    PdfWorker,
    /// Write man pages into a folder.
    Man {
        /// The folder; made where it is missing.
        #[arg(value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Where the web, the truth and the atlas go; replaced if a demo made it [default:
    /// onionskin-demo in the folder for temporary files]
    #[arg(short, long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// About how many pages.
    #[arg(long, default_value_t = 1_500, value_parser = clap::value_parser!(u64).range(500..=1_000_000))]
    pub pages: u64,
    /// The seed of the web.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ScanArgs {
    /// Files, folders, globs, `@list` (a file of inputs), `-` for standard input, or object-store URLs (s3://, gs://, https://).
    #[arg(required = true, value_name = "INPUT", value_hint = ValueHint::AnyPath)]
    pub inputs: Vec<String>,
    /// The folder of the atlas.
    #[arg(short, long, value_name = "ATLAS", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,
    /// What is computed from a text: default, papers (all chunks too), broder (features only), fast
    /// (one permutation), or a spelling, as in w4-rabin64-6x14r2+sketch [default: default]
    #[arg(long, value_name = "RECIPE")]
    pub recipe: Option<Recipe>,
    /// The seed of the permutations.
    #[arg(long, default_value_t = ScanParams::SEED)]
    pub seed: u64,
    /// Replace a finished atlas, or the unfinished work of another scan.
    #[arg(long)]
    pub overwrite: bool,
    /// Input between two commits; also decides where files of the atlas end. For tests.
    #[arg(long, default_value_t = ScanParams::COMMIT_BYTES, hide = true)]
    pub commit_bytes: u64,
    /// Input of one unit of work. For tests.
    #[arg(long, default_value_t = Options::default().task_bytes, hide = true)]
    pub task_bytes: u64,
    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub resources: ResourceArgs,
}

/// How inputs are read.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadingArgs {
    /// Read every input as this: warc, jsonl, parquet, csv, tsv, wacz or tree.
    #[arg(long)]
    pub format: Option<Format>,
    /// The field or column with the text. Of several names, with commas between them, the first
    /// that a record (in tables, the header) has is taken; `metadata.text` goes into an object.
    #[arg(long, default_value = FieldNames::TEXT, value_name = "NAMES", value_parser = text_field)]
    pub text_field: FieldNames,
    /// The field or column with the document's own name; names as in --text-field.
    #[arg(long, default_value = FieldNames::ID, value_name = "NAMES")]
    pub id_field: FieldNames,
    /// The field or column with the URL; names as in --text-field.
    #[arg(long, default_value = FieldNames::URL, value_name = "NAMES")]
    pub url_field: FieldNames,
    /// The field or column with the time of the fetch, as in 2026-01-02T03:04:05Z; names as in
    /// --text-field.
    #[arg(long, default_value = FieldNames::DATE, value_name = "NAMES")]
    pub date_field: FieldNames,
    /// The text field holds HTML.
    #[arg(long)]
    pub text_is_html: bool,
    /// Compute the SHA-1 of texts in JSON lines, Parquet and CSV, which tells copies that are equal
    /// to the byte.
    #[arg(long)]
    pub text_digests: bool,
    /// Take HTTP responses of any status, not only 200.
    #[arg(long)]
    pub any_status: bool,
    /// The folders in a folder are hosts, whatever their names: `intranet/a.html` is
    /// http://intranet/a.html. Without it names with a known top-level domain are hosts.
    #[arg(long, conflicts_with = "base_url")]
    pub hosts: bool,
    /// Where files of folders, and files that are named, come from: their URLs are this and their
    /// paths (below the folder; of a named file, as it is given).
    #[arg(long, value_name = "URL")]
    pub base_url: Option<BaseUrl>,
    /// Follow symbolic links that lead out of a folder. Links to a place in it are followed anyway.
    #[arg(long)]
    pub follow_links: bool,
    /// Read PostScript files, by running Ghostscript and pdftotext on them.
    #[arg(long)]
    pub postscript: bool,
    /// What takes the text out of PDF files: `built-in` or `pdftotext`.
    #[arg(long, default_value = "built-in", value_name = "TOOL", value_parser = pdf_tool)]
    pub pdf: PdfTool,
    /// Skip and report records larger than this when decoded.
    #[arg(long, default_value = "64M", value_name = "SIZE")]
    pub max_record_bytes: MemoryBudget,
    /// Fail when more records than this cannot be read.
    #[arg(long, value_name = "N")]
    pub max_bad_records: Option<u64>,
    /// Fail when a file or folder inside a folder cannot be opened, instead of skipping it.
    #[arg(long)]
    pub strict: bool,
}

fn text_field(names: &str) -> Result<FieldNames, String> {
    let names = FieldNames::from(names);
    if names.is_empty() { Err("name at least one field".to_owned()) } else { Ok(names) }
}

fn pdf_tool(name: &str) -> Result<PdfTool, String> {
    match name {
        "built-in" => Ok(PdfTool::BuiltIn),
        "pdftotext" => Ok(PdfTool::Pdftotext),
        _ => Err("known are built-in and pdftotext".to_owned()),
    }
}

/// What a stage may use. None of it changes a result.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Resources")]
pub(crate) struct ResourceArgs {
    /// Memory for everything, as in 512M or 2G [default: half of what the machine has]
    #[arg(long, value_name = "SIZE", env = "ONIONSKIN_MEMORY")]
    pub memory: Option<MemoryBudget>,
    /// Threads [default: one for each core]
    #[arg(long, value_name = "N", env = "ONIONSKIN_THREADS", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
}

/// How pairs become clusters.
#[derive(Debug, clap::Args)]
pub(crate) struct ClusterArgs {
    /// centred (every member is similar to the centre) or transitive (everything that is
    /// connected).
    #[arg(long, default_value = "centred", value_name = "CLUSTERING")]
    pub cluster: Clustering,
    /// Which document stands for its cluster: first, longest, most-linked, earliest, or
    /// prefer:A,B,... with beginnings of URLs, host names or names of inputs.
    ///
    /// `first` takes the first in the order of the inputs, `longest` the one with the most words,
    /// `earliest` the one with the first date of a fetch. A rule that no document of the atlas
    /// fits is an error.
    #[arg(long, default_value = "first", value_name = "RULE")]
    pub keep: Survivor,
    /// Do not measure on a sample how much was found.
    #[arg(long)]
    pub no_recall: bool,
}

impl ClusterArgs {
    pub fn apply(&self, params: &mut SimilarParams) {
        params.clustering = self.cluster;
        params.survivor = self.keep.clone();
        params.measure_recall = !self.no_recall;
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct SimilarArgs {
    /// The folder of the atlas.
    #[arg(value_hint = ValueHint::DirPath)]
    pub atlas: PathBuf,
    /// resemblance (of shingle sets), overlap (a number of shared chunks), paragraphs (a share of
    /// identical shingle paragraphs) or exact [default: resemblance; with --iterations, paragraphs]
    #[arg(long, value_name = "METHOD")]
    pub method: Option<Method>,
    /// What makes two documents similar, at least: a resemblance or share, as in 0.9 or 90%; with
    /// overlap, a number of chunks [default: 0.9; 15 chunks of four lines or 25 of two; half of the
    /// paragraphs]
    #[arg(long, value_name = "T")]
    pub threshold: Option<String>,
    /// Find every pair and miss none, by a join of the shingle sets instead of features. For small
    /// corpora, and as the yardstick.
    #[arg(long)]
    pub exact: bool,
    /// Candidates share r of k features of s minima each, as in 6x14r2 [default: what fits the
    /// threshold, out of what the scan kept]
    #[arg(long, value_name = "KxSrR", conflicts_with_all = ["exact", "bands"])]
    pub filter: Option<FeatureFilter>,
    /// Candidates agree in one of B bands of R minima, as in 20x5: the same as --filter 20x5r1.
    #[arg(long, value_name = "BxR", conflicts_with = "exact", value_parser = bands)]
    pub bands: Option<FeatureFilter>,
    /// A named set of parameters: sgm98-4 (four-line chunks, 15 shared) or sgm98-2 (two-line
    /// chunks, 25 shared).
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = ["method", "threshold", "chunking", "exact", "filter", "bands", "iterations"])]
    pub preset: Option<SimilarPreset>,
    /// The chunks that overlap counts: l4, l2, sent, para, w4 ...
    #[arg(long, value_name = "CHUNKING")]
    pub chunking: Option<Chunking>,
    /// What finds overlaps: prefix, iceberg or sort. The answer is the same.
    #[arg(long, default_value = "prefix", value_name = "ENGINE")]
    pub engine: Engine,
    /// Compare only N of --of subcollections with everything, and estimate how many duplicates
    /// there are in all: documents with the same shingle paragraphs. Pairs and clusters are those
    /// that were found.
    #[arg(long, value_name = "N", requires = "of", value_parser = clap::value_parser!(u32).range(1..))]
    pub iterations: Option<u32>,
    /// How many subcollections documents are dealt out to, by chance.
    #[arg(long, value_name = "M", requires = "iterations", value_parser = clap::value_parser!(u32).range(1..))]
    pub of: Option<u32>,
    #[command(flatten)]
    pub clusters: ClusterArgs,
    /// Leave pairs and clusters as they are, and only note for `report` which documents are copies
    /// at this level.
    #[arg(long)]
    pub for_report: bool,
    /// Search again, although the atlas has the result of this very search.
    #[arg(long)]
    pub overwrite: bool,
    /// Input between two commits while chunks are made; also decides where files of their tables
    /// end. For tests.
    #[arg(long, default_value_t = ScanParams::COMMIT_BYTES, hide = true)]
    pub commit_bytes: u64,
    #[command(flatten)]
    pub resources: ResourceArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimilarPreset {
    /// Four-line chunks, at least 15 shared.
    #[value(name = "sgm98-4")]
    Sgm98Four,
    /// Two-line chunks, at least 25 shared.
    #[value(name = "sgm98-2")]
    Sgm98Two,
}

fn bands(spelling: &str) -> Result<FeatureFilter, String> {
    format!("{spelling}r1")
        .parse::<FeatureFilter>()
        .map_err(|_| "write bands and minima in a band, as in 20x5".to_owned())
}

#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    /// What the copies are looked for.
    #[arg(long = "for", value_enum, default_value_t = Goal::Dedup, value_name = "GOAL")]
    pub goal: Goal,
    /// Pairs of this resemblance and more are wanted.
    #[arg(long, default_value_t = 0.9, value_name = "RESEMBLANCE")]
    pub threshold: f64,
    /// The share of pairs at the threshold that may be missed.
    #[arg(long, default_value_t = 0.01, value_name = "RATE")]
    pub miss: f64,
    /// Choose the features of the recipe, for a search that verifies nothing: pairs of this
    /// resemblance and less are not wanted [default: two thirds of the threshold]
    #[arg(long, value_name = "RESEMBLANCE")]
    pub far: Option<f64>,
    /// The same: the share of pairs at `--far` that may be accepted [default: 0.01]
    #[arg(long, value_name = "RATE")]
    pub false_accept: Option<f64>,
    /// Look at this filter instead of choosing one, as in 6x14r2.
    #[arg(long, value_name = "FILTER", conflicts_with_all = ["threshold", "miss", "far", "false_accept"])]
    pub filter: Option<FeatureFilter>,
    /// Take the minima out of the bins of one permutation: the recipe ends in `-one`, the curve is
    /// the same, and sketches cost half as much or less.
    #[arg(long)]
    pub one_permutation: bool,
    /// Documents to plan for.
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    pub documents: u64,
    /// Words in a document, on average.
    #[arg(long, default_value_t = 500, value_name = "N")]
    pub mean_words: u64,
    /// Do not measure this machine; times are left out and the output is always the same.
    #[arg(long)]
    pub no_measure: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GenerateArgs {
    /// Which web.
    #[arg(value_name = "PRESET", value_parser = preset, long_help = preset_help())]
    pub preset: Preset,
    /// Where it goes: a folder; for jsonl also a file, or `-`.
    #[arg(short, long, value_hint = ValueHint::AnyPath)]
    pub output: PathBuf,
    /// What it is written as.
    #[arg(long, value_enum, default_value_t = OutputFormat::Jsonl)]
    pub format: OutputFormat,
    /// About how many pages [default: what the preset was made for]
    #[arg(long, value_name = "N")]
    pub pages: Option<u64>,
    /// The seed: the same one gives the same bytes.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Words in a document, on average.
    #[arg(long, value_name = "N")]
    pub mean_words: Option<f64>,
    /// Compress: `gz` (in WARC a member for each record) or `zst`.
    #[arg(long, value_enum)]
    pub compress: Option<Compression>,
    /// Cut the output into files of about this size, as in 256M.
    #[arg(long, value_name = "SIZE")]
    pub shard_bytes: Option<MemoryBudget>,
    /// Write what is true of the web here, as JSON lines.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub truth: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// One JSON object a line: id, url, text.
    Jsonl,
    /// WARC files.
    Warc,
    /// host/path/page.html.
    Folder,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compression {
    /// gzip.
    Gz,
    /// zstd.
    Zst,
}

fn preset(name: &str) -> Result<Preset, String> {
    name.parse::<Preset>().map_err(|error| error.to_string())
}

fn preset_help() -> String {
    let lines = Preset::ALL.map(|preset| format!("- {}: {}", preset.as_str(), preset.about()));
    format!("Which web:\n{}", lines.join("\n"))
}

#[derive(Debug, clap::Args)]
pub(crate) struct VerifyArgs {
    /// The folder of the atlas.
    #[arg(value_hint = ValueHint::DirPath)]
    pub atlas: PathBuf,
    /// Read every row too, and compare the tables with each other, not only sizes and checksums.
    #[arg(long)]
    pub deep: bool,
    /// Memory for --deep, as in 512M or 2G [default: half of what the machine has]
    #[arg(long, value_name = "SIZE", env = "ONIONSKIN_MEMORY")]
    pub memory: Option<MemoryBudget>,
}
