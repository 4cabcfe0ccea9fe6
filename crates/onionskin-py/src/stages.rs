//! The stages, for the functions of the same names in Python, which have the keywords and make objects of what comes back.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use onionskin::dedup::{Copying, Tally};
use onionskin::report::write_report;
use onionskin::run::Outcome;
use onionskin::similar::membership::{from_clusters_table, from_pairs};
use onionskin::similar::{Reclustering, Search};
use onionskin::{
    AvoidParams, CollectionsParams, CollectionsSummary, DedupError, DedupParams, DedupSummary, Event,
    ReportError, ReportParams, RunParams, ScanParams, ScanSummary, SimilarParams, SimilarSummary,
};
use onionskin_core::{FeatureFilter, Threshold};
use onionskin_corpus::Options;
use onionskin_extract::{ExtractOptions, PdfTool};
use onionskin_mirror::avoid::Format as AvoidFormat;
use onionskin_mirror::describe::Kind;
use onionskin_similar::SimilarRecord;
use onionskin_similar::cluster::Clustering;
use onionskin_similar::recall::Interval;
use onionskin_store::table::Method;
use onionskin_store::{Atlas, IoError, MemoryBudget};
use onionskin_study::report::overview;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::value_error;
use crate::progress::stage;
use crate::recipe::recipe_of;

/// Spelled as on the command line.
fn parse<T: FromStr<Err: Display>>(text: &str) -> PyResult<T> {
    text.parse().map_err(value_error)
}

fn parse_some<T: FromStr<Err: Display>>(text: Option<&str>, default: T) -> PyResult<T> {
    text.map_or(Ok(default), parse)
}

/// Memory and threads, as far as they are said.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Resources {
    memory: Option<String>,
    threads: Option<usize>,
}

impl Resources {
    fn apply(&self, memory: &mut MemoryBudget, threads: &mut usize) -> PyResult<()> {
        *memory = parse_some(self.memory.as_deref(), *memory)?;
        if self.threads.is_some() {
            *threads = crate::texts::threads(self.threads)?;
        }
        Ok(())
    }
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ScanArgs<'py> {
    inputs: Vec<String>,
    atlas: PathBuf,
    recipe: Bound<'py, PyAny>,
    seed: u64,
    overwrite: bool,
    format: Option<String>,
    text_field: String,
    id_field: String,
    url_field: String,
    text_is_html: bool,
    text_digests: bool,
    any_status: bool,
    pdf: String,
    pdf_worker: Vec<String>,
    max_record_bytes: String,
    max_bad_records: Option<u64>,
    commit_bytes: Option<u64>,
    resources: Resources,
}

impl ScanArgs<'_> {
    fn params(&self) -> PyResult<ScanParams> {
        let mut params = ScanParams::new(self.inputs.clone(), self.atlas.clone());
        params.recipe = recipe_of(Some(&self.recipe), onionskin_core::Recipe::DEFAULT)?;
        params.seed = self.seed;
        params.overwrite = self.overwrite;
        params.max_bad_records = self.max_bad_records;
        params.commit_bytes = self.commit_bytes.unwrap_or(params.commit_bytes);
        let pdf = match self.pdf.as_str() {
            "built-in" => PdfTool::BuiltIn,
            "pdftotext" => PdfTool::Pdftotext,
            other => return Err(value_error(format!("pdf is built-in or pdftotext, not {other:?}"))),
        };
        params.options = Options {
            text_field: self.text_field.clone(),
            id_field: self.id_field.clone(),
            url_field: self.url_field.clone(),
            text_is_html: self.text_is_html,
            text_digests: self.text_digests,
            format: self.format.as_deref().map(parse).transpose()?,
            max_record_bytes: parse::<MemoryBudget>(&self.max_record_bytes)?.bytes(),
            any_status: self.any_status,
            extract: ExtractOptions { pdf, pdf_worker: self.pdf_worker.clone(), ..ExtractOptions::default() },
            ..Options::default()
        };
        self.resources.apply(&mut params.memory, &mut params.threads)?;
        Ok(params)
    }
}

/// Reads inputs into an atlas.
#[pyfunction]
pub(crate) fn scan<'py>(
    py: Python<'py>,
    args: ScanArgs<'py>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let params = args.params()?;
    let summary = stage(py, progress, |progress| onionskin::scan(&params, progress))?;
    scan_dict(py, &summary, &params.atlas)
}

fn scan_dict<'py>(py: Python<'py>, summary: &ScanSummary, atlas: &Path) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("atlas", atlas)?;
    dict.set_item("documents", summary.documents)?;
    dict.set_item("empty_documents", summary.empty_documents)?;
    dict.set_item("revisits", summary.revisits)?;
    dict.set_item("tokens", summary.tokens)?;
    dict.set_item("text_bytes", summary.text_bytes)?;
    dict.set_item("sites", summary.sites)?;
    dict.set_item("links_found", summary.links_found)?;
    dict.set_item("links", summary.links)?;
    dict.set_item("chunks", &summary.chunks)?;
    dict.set_item("bad_records", &summary.bad_records)?;
    dict.set_item("bad_record_examples", summary.bad_record_examples.clone())?;
    dict.set_item("skipped", &summary.skipped)?;
    dict.set_item("sources", summary.sources)?;
    dict.set_item("input_bytes", summary.input_bytes)?;
    dict.set_item("resumed_documents", summary.resumed_documents)?;
    dict.set_item("seconds", summary.seconds)?;
    dict.set_item("cpu_seconds", summary.cpu_seconds)?;
    dict.set_item("peak_memory", summary.peak_memory)?;
    dict.set_item("spilled_bytes", summary.spilled_bytes)?;
    Ok(dict)
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct SimilarArgs {
    atlas: PathBuf,
    method: String,
    threshold: Option<f64>,
    exact: bool,
    filter: Option<String>,
    chunking: Option<String>,
    engine: String,
    iterations: Option<u32>,
    of: Option<u32>,
    cluster: String,
    keep: String,
    recall: bool,
    for_report: bool,
    resources: Resources,
}

/// Shared chunks that are enough, where nothing is said (Shivakumar and Garcia-Molina 1998, section 3).
fn enough(chunking: &str) -> Option<f64> {
    match chunking {
        "l4" => Some(15.0),
        "l2" => Some(25.0),
        _ => None,
    }
}

impl SimilarArgs {
    fn search(&self) -> PyResult<Search> {
        let method: Method = parse(&self.method)?;
        let only = |said: bool, what: &str, of: &str| {
            if said {
                Err(value_error(format!("{what} belongs to method={of:?}, not to {method}")))
            } else {
                Ok(())
            }
        };
        if method != Method::Resemblance {
            only(self.exact, "exact", "resemblance")?;
            only(self.filter.is_some(), "filter", "resemblance")?;
        }
        if method != Method::Overlap {
            only(self.chunking.is_some(), "chunking", "overlap")?;
        }
        if method != Method::Paragraphs {
            only(self.iterations.is_some() || self.of.is_some(), "iterations", "paragraphs")?;
        }
        let share = |default: f64| match self.threshold.unwrap_or(default) {
            share if share > 0.0 && share <= 1.0 => Ok(share),
            share => Err(value_error(format!("threshold is above 0 and at most 1, not {share}"))),
        };
        Ok(match (method, self.iterations, self.of) {
            (Method::Exact, ..) if self.threshold.is_some() => {
                return Err(value_error("exact copies have no threshold"));
            }
            (Method::Exact, ..) => Search::Exact,
            (Method::Overlap, ..) => {
                let chunking = self.chunking.clone().unwrap_or_else(|| "l4".to_owned());
                parse::<onionskin_core::Chunking>(&chunking)?;
                let threshold = self.threshold.or_else(|| enough(&chunking)).ok_or_else(|| {
                    value_error(format!("say with threshold how many chunks of {chunking} must be shared"))
                })?;
                let whole = (threshold.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&threshold))
                    .then(|| Threshold::new(threshold as u32))
                    .flatten();
                let threshold = whole.ok_or_else(|| {
                    value_error(format!("the threshold of overlap is a number of chunks, not {threshold}"))
                })?;
                Search::Overlap { chunking, threshold, engine: parse(&self.engine)? }
            }
            (Method::Paragraphs, Some(iterations), Some(of)) => Search::Subcollections { iterations, of },
            (Method::Paragraphs, None, None) => Search::Paragraphs { share: share(0.5)? },
            (Method::Paragraphs, ..) => return Err(value_error("iterations and of go together")),
            _ => {
                let filter: Option<FeatureFilter> = self.filter.as_deref().map(parse).transpose()?;
                Search::Resemblance { threshold: share(Search::THRESHOLD)?, filter, exact: self.exact }
            }
        })
    }

    fn params(&self) -> PyResult<SimilarParams> {
        let mut params = SimilarParams::new(self.atlas.clone());
        params.search = self.search()?;
        params.clustering = parse(&self.cluster)?;
        params.survivor = parse(&self.keep)?;
        params.measure_recall = self.recall;
        params.for_report = self.for_report;
        self.resources.apply(&mut params.memory, &mut params.threads)?;
        Ok(params)
    }
}

/// Finds pairs and clusters.
#[pyfunction]
pub(crate) fn similar<'py>(
    py: Python<'py>,
    args: SimilarArgs,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let params = args.params()?;
    let summary = stage(py, progress, |progress| onionskin::similar(&params, progress))?;
    similar_dict(py, &summary, &params)
}

fn similar_dict<'py>(
    py: Python<'py>,
    summary: &SimilarSummary,
    params: &SimilarParams,
) -> PyResult<Bound<'py, PyDict>> {
    let clusters = &summary.clusters;
    let interval = |interval: Option<Interval>| interval.map(|i| (i.value, i.low, i.high));
    let dict = PyDict::new(py);
    dict.set_item("atlas", &params.atlas)?;
    dict.set_item("method", params.search.method().as_str())?;
    dict.set_item("cluster", params.clustering.as_str())?;
    dict.set_item("documents", summary.documents)?;
    dict.set_item("texts", summary.exact.texts)?;
    dict.set_item("exact_copies", summary.exact.copies)?;
    dict.set_item("filter", summary.filter.map(|choice| choice.filter.to_string()))?;
    dict.set_item("expected_at_threshold", summary.filter.map(|choice| choice.at_threshold))?;
    dict.set_item("candidates", summary.verified.candidates + summary.join.candidates)?;
    dict.set_item("near_pairs", summary.near_pairs)?;
    dict.set_item("clusters", clusters.clusters)?;
    dict.set_item("clustered_documents", clusters.documents)?;
    dict.set_item("exact_members", clusters.exact_members)?;
    dict.set_item("near_members", clusters.near_members)?;
    dict.set_item("largest_cluster", clusters.largest)?;
    dict.set_item("same_site", clusters.same_site)?;
    dict.set_item("cross_site", clusters.cross_site)?;
    dict.set_item("lowest_resemblance", clusters.lowest_resemblance)?;
    dict.set_item("texts_read_again", summary.texts_read_again)?;
    dict.set_item("recall_of_pairs", summary.recall.and_then(|recall| interval(recall.listed)))?;
    dict.set_item("recall_of_clusters", summary.recall.and_then(|recall| interval(recall.connected)))?;
    dict.set_item("precision_of_pairs", summary.recall.and_then(|recall| interval(recall.precision)))?;
    dict.set_item("resumed", summary.resumed)?;
    dict.set_item("seconds", summary.seconds)?;
    dict.set_item("cpu_seconds", summary.cpu_seconds)?;
    dict.set_item("peak_memory", summary.peak_memory)?;
    Ok(dict)
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct CollectionsArgs {
    atlas: PathBuf,
    merge: String,
    any_site: bool,
    trivial: String,
    url_rules: bool,
    resources: Resources,
}

impl CollectionsArgs {
    fn params(&self) -> PyResult<CollectionsParams> {
        let mut params = CollectionsParams::new(self.atlas.clone());
        params.merge = parse(&self.merge)?;
        params.single_site = !self.any_site;
        params.trivial = parse(&self.trivial)?;
        params.url_rules = self.url_rules;
        self.resources.apply(&mut params.memory, &mut params.threads)?;
        Ok(params)
    }
}

/// Finds mirrors.
#[pyfunction]
pub(crate) fn collections<'py>(
    py: Python<'py>,
    args: CollectionsArgs,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let params = args.params()?;
    let summary = stage(py, progress, |progress| onionskin::collections(&params, progress))?;
    collections_dict(py, &summary, &params)
}

fn collections_dict<'py>(
    py: Python<'py>,
    summary: &CollectionsSummary,
    params: &CollectionsParams,
) -> PyResult<Bound<'py, PyDict>> {
    let counts = &summary.counts;
    let dict = PyDict::new(py);
    dict.set_item("atlas", &params.atlas)?;
    dict.set_item("merge", params.merge.to_string())?;
    dict.set_item("documents", summary.documents)?;
    dict.set_item("links", summary.links)?;
    dict.set_item("groups", counts.groups)?;
    dict.set_item("noise_groups", counts.noise_groups)?;
    dict.set_item("replicas", counts.replicas)?;
    dict.set_item("pages", counts.pages)?;
    dict.set_item("duplicate_pages", counts.duplicate_pages)?;
    dict.set_item("duplicate_bytes", counts.duplicate_bytes)?;
    dict.set_item("trivial_clusters", counts.trivial_clusters)?;
    dict.set_item("kinds", &counts.kinds)?;
    dict.set_item("url_rules", counts.url_rules)?;
    dict.set_item("resumed", summary.resumed)?;
    dict.set_item("seconds", summary.seconds)?;
    dict.set_item("cpu_seconds", summary.cpu_seconds)?;
    dict.set_item("peak_memory", summary.peak_memory)?;
    Ok(dict)
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ReportArgs {
    atlas: PathBuf,
    output: PathBuf,
    seed_url: Vec<String>,
    reference: Option<PathBuf>,
    iterations: Option<u32>,
    png: bool,
    resources: Resources,
}

/// Writes the report.
#[pyfunction]
#[expect(clippy::result_large_err, reason = "the error of the stage, once a call")]
pub(crate) fn report<'py>(
    py: Python<'py>,
    args: ReportArgs,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut params = ReportParams::new(args.atlas.clone(), args.output.join(".work"));
    params.seeds = args.seed_url;
    params.reference = args.reference;
    params.iterations = args.iterations.unwrap_or(params.iterations);
    let mut no_threads = 1;
    args.resources.apply(&mut params.memory, &mut no_threads)?;
    let folder = &args.output;
    let (findings, written) = stage(py, progress, |progress| -> Result<_, ReportError> {
        // Before the work: what is no atlas gets no folder, and a place that cannot be written to is told now.
        Atlas::open(&params.atlas)?;
        std::fs::create_dir_all(folder).map_err(|e| IoError::new("creating", folder, e))?;
        let findings = onionskin::study(&params, progress)?;
        progress.event(Event::Step { name: "drawing figures" });
        let written = write_report(&overview(&findings), folder, args.png)?;
        Ok((findings, written))
    })?;
    let dict = PyDict::new(py);
    dict.set_item("atlas", &params.atlas)?;
    dict.set_item("page", &written.page)?;
    dict.set_item("page_bytes", written.page_bytes)?;
    dict.set_item("files", written.files)?;
    dict.set_item("documents", findings.documents)?;
    dict.set_item("sites", findings.sites)?;
    dict.set_item("links", findings.links)?;
    Ok(dict)
}

/// The whole job: scan, similar, and collections where they are wanted.
#[pyfunction]
pub(crate) fn run<'py>(
    py: Python<'py>,
    scan: ScanArgs<'py>,
    similar: SimilarArgs,
    collections: Option<CollectionsArgs>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let params = RunParams {
        scan: scan.params()?,
        similar: similar.params()?,
        collections: collections.map(|args| args.params()).transpose()?,
    };
    let summary = stage(py, progress, |progress| onionskin::run(&params, progress))?;
    let dict = PyDict::new(py);
    dict.set_item("atlas", &params.scan.atlas)?;
    let outcomes = PyDict::new(py);
    outcomes.set_item("scan", summary.scan.as_str())?;
    outcomes.set_item("similar", summary.similar.as_str())?;
    outcomes.set_item("collections", summary.collections.as_str())?;
    dict.set_item("outcomes", outcomes)?;
    dict.set_item("scan", told(&summary.scan, |found| scan_dict(py, found, &params.scan.atlas))?)?;
    dict.set_item("similar", told(&summary.similar, |found| similar_dict(py, found, &params.similar))?)?;
    let mirrors = params.collections.as_ref();
    dict.set_item(
        "collections",
        match mirrors {
            Some(params) => told(&summary.collections, |found| collections_dict(py, found, params))?,
            None => None,
        },
    )?;
    dict.set_item("seconds", summary.seconds)?;
    dict.set_item("cpu_seconds", summary.cpu_seconds)?;
    dict.set_item("peak_memory", summary.peak_memory)?;
    Ok(dict)
}

fn told<'py, S>(
    outcome: &Outcome<S>,
    tell: impl FnOnce(&S) -> PyResult<Bound<'py, PyDict>>,
) -> PyResult<Option<Bound<'py, PyDict>>> {
    outcome.summary().map(tell).transpose()
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct DedupArgs {
    atlas: PathBuf,
    output: Option<PathBuf>,
    shards: Option<Vec<String>>,
    annotate: bool,
    dolma: Option<String>,
    base: Option<PathBuf>,
    threshold: Option<f64>,
    keep: Option<String>,
    dry_run: bool,
    resources: Resources,
}

/// Lists what is kept and what is removed, and copies the inputs.
#[pyfunction]
pub(crate) fn dedup<'py>(
    py: Python<'py>,
    args: DedupArgs,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut params = DedupParams::new(args.atlas.clone(), args.output.clone().unwrap_or_default());
    if let Some(formats) = &args.shards {
        params.formats = formats.iter().map(|format| parse(format)).collect::<PyResult<_>>()?;
    }
    params.copying = if args.annotate {
        Copying::Annotate
    } else if params.formats.is_empty() || args.dolma.is_some() && args.shards.is_none() {
        Copying::None
    } else {
        Copying::Filter
    };
    params.dolma = args.dolma;
    params.base = args.base;
    params.dry_run = args.dry_run;
    args.resources.apply(&mut params.memory, &mut params.threads)?;
    let keep = args.keep.as_deref().map(parse).transpose()?;
    let (threshold, params) = (args.threshold, &params);
    let summary = stage(py, progress, |progress| -> Result<DedupSummary, DedupError> {
        let atlas = Atlas::open(&params.atlas)?;
        let work_dir = std::env::temp_dir().join(format!("onionskin-sort-{}", std::process::id()));
        let memory = params.membership_memory();
        let members = |error| DedupError::Memberships(Box::new(error));
        let memberships = if threshold.is_none() && keep.is_none() {
            from_clusters_table(&atlas, memory, &work_dir).map_err(members)?
        } else {
            let search = atlas.record::<SimilarRecord>()?.unwrap_or_default().search;
            let survivor = keep.or(search.survivor).unwrap_or_default();
            let wanted = Reclustering { clustering: Clustering::Centred, threshold, survivor };
            from_pairs(&atlas, &wanted, memory, &work_dir).map_err(members)?
        };
        let result = onionskin::dedup(params, memberships, progress);
        // Made only if the sort did not fit into memory.
        let _ = std::fs::remove_dir_all(&work_dir);
        result
    })?;
    dedup_dict(py, &summary, params)
}

fn dedup_dict<'py>(
    py: Python<'py>,
    summary: &DedupSummary,
    params: &DedupParams,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let tally = |name: &str, tally: Tally| -> PyResult<()> {
        dict.set_item(name, tally.documents)?;
        dict.set_item(format!("{name}_bytes"), tally.bytes)
    };
    tally("kept", summary.kept)?;
    tally("removed", summary.removed)?;
    tally("removed_exact", summary.removed_exact)?;
    tally("removed_near", summary.removed_near)?;
    tally("removed_same_site", summary.removed_same_site)?;
    tally("removed_cross_site", summary.removed_cross_site)?;
    dict.set_item("atlas", &params.atlas)?;
    dict.set_item("output", (!params.dry_run).then_some(&params.output))?;
    dict.set_item("clusters", summary.clusters)?;
    dict.set_item("files", summary.files)?;
    dict.set_item("input_bytes", summary.input_bytes)?;
    dict.set_item("output_bytes", summary.output_bytes)?;
    dict.set_item("damaged", summary.damaged.clone())?;
    dict.set_item("left_out", &summary.left_out)?;
    dict.set_item("seconds", summary.seconds)?;
    dict.set_item("peak_memory", summary.peak_memory)?;
    Ok(dict)
}

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct AvoidArgs {
    atlas: PathBuf,
    kinds: Option<Vec<String>>,
    min_coverage: f64,
    max_unique: f64,
    max_rules: Option<usize>,
    noise: bool,
    memory: Option<String>,
    formats: Vec<String>,
}

/// A kind of copies by its name.
fn kind(name: &str) -> PyResult<Kind> {
    let spoken = name.trim().replace(['-', '_'], " ").to_lowercase();
    let known = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Principal);
    known.clone().find(|kind| kind.as_str() == spoken).ok_or_else(|| {
        let names: Vec<&str> = known.map(Kind::as_str).collect();
        value_error(format!("unknown kind {name:?}; known are all, {}", names.join(", ")))
    })
}

/// What the next crawl can skip.
#[pyfunction]
pub(crate) fn avoid<'py>(
    py: Python<'py>,
    args: AvoidArgs,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let mut params = AvoidParams::new(args.atlas);
    match args.kinds.as_deref() {
        None => {}
        Some([all]) if all == "all" => params.kinds = Kind::ALL.to_vec(),
        Some(kinds) => params.kinds = kinds.iter().map(|name| kind(name)).collect::<PyResult<_>>()?,
    }
    for (name, share) in [("min_coverage", args.min_coverage), ("max_unique", args.max_unique)] {
        if !(0.0..=1.0).contains(&share) {
            return Err(value_error(format!("{name} is a share from 0 to 1, not {share}")));
        }
    }
    params.min_coverage = args.min_coverage;
    params.limits.max_unique = args.max_unique;
    params.max_rules = args.max_rules.unwrap_or(params.max_rules);
    params.noise = args.noise;
    params.memory = parse_some(args.memory.as_deref(), params.memory)?;
    let formats: Vec<AvoidFormat> =
        args.formats.iter().map(|format| parse(format)).collect::<PyResult<_>>()?;
    let report = stage(py, progress, |_| onionskin::avoid(&params))?;
    let dict = PyDict::new(py);
    dict.set_item("atlas", &params.atlas)?;
    let rules: usize = report.list.entries.iter().map(|entry| entry.rules.len()).sum();
    let entries: Vec<Bound<'py, PyDict>> = report
        .list
        .entries
        .iter()
        .map(|entry| {
            let dict = PyDict::new(py);
            dict.set_item("group", entry.group)?;
            dict.set_item("replica", entry.replica)?;
            dict.set_item("kind", &entry.kind)?;
            dict.set_item("name", &entry.name)?;
            dict.set_item("principal", &entry.principal)?;
            dict.set_item("root", &entry.root)?;
            dict.set_item("rules", entry.rules.len())?;
            dict.set_item("pages", entry.pages)?;
            dict.set_item("bytes", entry.bytes)?;
            dict.set_item("coverage", entry.coverage)?;
            dict.set_item("similar", entry.similar)?;
            dict.set_item("unique", entry.unique)?;
            Ok(dict)
        })
        .collect::<PyResult<_>>()?;
    dict.set_item("entries", entries)?;
    dict.set_item("rules", rules)?;
    dict.set_item("pages", report.all.pages)?;
    dict.set_item("bytes", report.all.bytes)?;
    dict.set_item("skipped_pages", report.simulation.skipped)?;
    dict.set_item("skipped_bytes", report.simulation.skipped_bytes)?;
    dict.set_item("lost_pages", report.simulation.lost)?;
    dict.set_item("left_out", &report.left_out)?;
    let mut files = BTreeMap::new();
    for format in formats {
        let rendered = format.render(&report.list).map_err(value_error)?;
        files.insert(format.file_name().to_owned(), rendered.text);
    }
    dict.set_item("texts", files)?;
    Ok(dict)
}

/// The formats of lists that crawlers read.
#[pyfunction]
pub(crate) fn avoid_formats() -> Vec<String> {
    AvoidFormat::ALL.iter().map(ToString::to_string).collect()
}
