//! The stages, for the functions of the same names in Python, which have the keywords and make
//! objects of what comes back.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use onionskin::similar::Search;
use onionskin::{
    AvoidParams, CollectionsParams, DedupParams, ReportParams, RunParams, ScanParams, SimilarParams,
};
use onionskin_core::{FeatureFilter, Recipe, Threshold};
use onionskin_corpus::Options;
use onionskin_extract::{ExtractOptions, PdfTool};
use onionskin_mirror::avoid::{Format as AvoidFormat, Protected};
use onionskin_mirror::describe::Kind;
use onionskin_store::MemoryBudget;
use onionskin_store::table::Method;
use pyo3::prelude::*;

use crate::error::value_error;
use crate::progress::stage;
use crate::recipe::recipe_of;
use crate::wire::to_python;

/// Spelled as on the command line.
fn parse<T: FromStr<Err: Display>>(text: &str) -> PyResult<T> {
    text.parse().map_err(value_error)
}

fn parse_some<T: FromStr<Err: Display>>(text: Option<&str>, default: T) -> PyResult<T> {
    text.map_or(Ok(default), parse)
}

/// Memory and threads, as far as they are said.
/// Functions that do a stage with the arguments they are given, and return the summary.
macro_rules! stage_functions {
    ($($(#[$doc:meta])* $name:ident($args:ty);)+) => {$(
        $(#[$doc])*
        #[pyfunction]
        pub(crate) fn $name<'py>(
            py: Python<'py>,
            args: $args,
            progress: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<Bound<'py, PyAny>> {
            let params = args.params()?;
            let summary = stage(py, progress, |progress| onionskin::$name(&params, progress))?;
            to_python(py, &summary)
        }
    )+};
}

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
    recipe: Option<Bound<'py, PyAny>>,
    seed: u64,
    overwrite: bool,
    format: Option<String>,
    text_field: String,
    id_field: String,
    url_field: String,
    date_field: String,
    text_is_html: bool,
    text_digests: bool,
    any_status: bool,
    hosts: bool,
    base_url: Option<String>,
    follow_links: bool,
    postscript: bool,
    pdf: String,
    pdf_worker: Vec<String>,
    max_record_bytes: String,
    max_bad_records: Option<u64>,
    strict: bool,
    commit_bytes: Option<u64>,
    resources: Resources,
}

impl ScanArgs<'_> {
    fn params(&self) -> PyResult<ScanParams> {
        let mut params = ScanParams::new(self.inputs.clone(), self.atlas.clone());
        let recipe = self.recipe.as_ref();
        params.recipe = recipe.map(|recipe| recipe_of(Some(recipe), Recipe::DEFAULT)).transpose()?;
        params.seed = self.seed;
        params.overwrite = self.overwrite;
        params.max_bad_records = self.max_bad_records;
        params.strict = self.strict;
        params.commit_bytes = self.commit_bytes.unwrap_or(params.commit_bytes);
        let pdf = match self.pdf.as_str() {
            "built-in" => PdfTool::BuiltIn,
            "pdftotext" => PdfTool::Pdftotext,
            other => return Err(value_error(format!("pdf is built-in or pdftotext, not {other:?}"))),
        };
        params.options = Options {
            text_field: self.text_field.as_str().into(),
            id_field: self.id_field.as_str().into(),
            url_field: self.url_field.as_str().into(),
            date_field: self.date_field.as_str().into(),
            text_is_html: self.text_is_html,
            text_digests: self.text_digests,
            format: self.format.as_deref().map(parse).transpose()?,
            max_record_bytes: parse::<MemoryBudget>(&self.max_record_bytes)?.bytes(),
            any_status: self.any_status,
            hosts: self.hosts,
            base_url: self.base_url.as_deref().map(parse).transpose()?,
            follow_links: self.follow_links,
            extract: ExtractOptions {
                pdf,
                pdf_worker: self.pdf_worker.clone(),
                postscript: self.postscript,
                ..ExtractOptions::default()
            },
            ..Options::default()
        };
        self.resources.apply(&mut params.memory, &mut params.threads)?;
        Ok(params)
    }
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
    pdf_worker: Vec<String>,
    resources: Resources,
}

/// Shared chunks that are enough, where nothing is said (Shivakumar and Garcia-Molina 1998, section
/// 3).
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
        params.pdf_worker.clone_from(&self.pdf_worker);
        self.resources.apply(&mut params.memory, &mut params.threads)?;
        Ok(params)
    }
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

#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct ReportArgs {
    atlas: PathBuf,
    output: Option<PathBuf>,
    seed_url: Vec<String>,
    reference: Option<PathBuf>,
    iterations: Option<u32>,
    png: bool,
    resources: Resources,
}

impl ReportArgs {
    fn params(&self) -> PyResult<ReportParams> {
        let mut params = match &self.output {
            Some(output) => ReportParams::new(self.atlas.clone(), output.clone()),
            None => ReportParams::in_atlas(self.atlas.clone()),
        };
        params.png = self.png;
        params.seeds.clone_from(&self.seed_url);
        params.reference.clone_from(&self.reference);
        params.iterations = self.iterations.unwrap_or(params.iterations);
        let mut no_threads = 1;
        self.resources.apply(&mut params.memory, &mut no_threads)?;
        Ok(params)
    }
}

stage_functions! {
    /// Reads inputs into an atlas.
    scan(ScanArgs<'py>);

    /// Finds pairs and clusters.
    similar(SimilarArgs);

    /// Finds mirrors.
    collections(CollectionsArgs);

    /// Writes the report.
    report(ReportArgs);
}

/// The whole job: scan, similar, and collections and the report where they are wanted.
#[pyfunction]
pub(crate) fn run<'py>(
    py: Python<'py>,
    scan: ScanArgs<'py>,
    similar: SimilarArgs,
    collections: Option<CollectionsArgs>,
    report: Option<ReportArgs>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let params = RunParams {
        scan: scan.params()?,
        similar: similar.params()?,
        collections: collections.map(|args| args.params()).transpose()?,
        report: report.map(|args| args.params()).transpose()?,
    };
    let summary = stage(py, progress, |progress| onionskin::run(&params, progress))?;
    to_python(py, &summary)
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
    pdf_worker: Vec<String>,
    resources: Resources,
}

/// Lists what is kept and what is removed, and copies the inputs.
#[pyfunction]
pub(crate) fn dedup<'py>(
    py: Python<'py>,
    args: DedupArgs,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut params = DedupParams::new(args.atlas.clone(), args.output.clone().unwrap_or_default());
    params.dolma = args.dolma;
    let formats = args.shards.as_ref();
    let formats = formats
        .map(|formats| formats.iter().map(|format| parse(format)).collect::<PyResult<_>>())
        .transpose()?;
    params.copy(formats, args.annotate);
    params.base = args.base;
    params.threshold = args.threshold;
    params.survivor = args.keep.as_deref().map(parse).transpose()?;
    params.dry_run = args.dry_run;
    params.pdf_worker = args.pdf_worker;
    args.resources.apply(&mut params.memory, &mut params.threads)?;
    let summary = stage(py, progress, |progress| onionskin::dedup(&params, progress))?;
    to_python(py, &summary)
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
    weak: bool,
    protect: Vec<String>,
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
) -> PyResult<Bound<'py, PyAny>> {
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
    params.weak = args.weak;
    params.protect = Protected::new(&args.protect).map_err(value_error)?;
    params.memory = parse_some(args.memory.as_deref(), params.memory)?;
    let formats: Vec<AvoidFormat> =
        args.formats.iter().map(|format| parse(format)).collect::<PyResult<_>>()?;
    let report = stage(py, progress, |_| onionskin::avoid(&params))?;
    let mut files = BTreeMap::new();
    for format in formats {
        let rendered = format.render(&report.list).map_err(value_error)?;
        files.insert(format.file_name().to_owned(), rendered.text);
    }
    let told = to_python(py, &report)?;
    told.set_item("texts", files)?;
    Ok(told)
}

/// The formats of lists that crawlers read.
#[pyfunction]
pub(crate) fn avoid_formats() -> Vec<String> {
    AvoidFormat::ALL.iter().map(ToString::to_string).collect()
}
