//! `size`: how big crawls, lists and engines are against each other.

mod view;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{ValueEnum, ValueHint};
use onionskin::size::http::HttpParams;
use onionskin::size::{
    ByChoice, EngineSettings, ResultPath, SizeParams, read_addresses, read_queries, searches, size, walk,
};
use onionskin_core::DocId;
use onionskin_store::table::document;
use onionskin_store::{Atlas, MemoryBudget};
use onionskin_study::size::engine::{Check, Correction, EngineParams};
use onionskin_study::size::overlap::{Basis, EstimateParams, Fit};
use onionskin_study::size::walk::{Rule, WalkParams};
use onionskin_study::size::{AddressReport, WalkReport, addresses, bias};

use crate::Exit;
use crate::args::Global;
use crate::output::{print, print_tagged};
use crate::progress::Bar;

#[derive(Debug, clap::Args)]
pub(crate) struct SizeArgs {
    /// What is measured: folders of atlases and of indexes of seen documents, files with one
    /// address a line (plain or gzipped, `-` for standard input), and search engines as addresses
    /// with {query}, {count} and {start} in them. One atlas with --method walk, one results file
    /// with --method addresses.
    #[arg(required = true, value_name = "MEMBER", value_hint = ValueHint::AnyPath)]
    pub members: Vec<String>,
    /// How.
    #[arg(long, value_enum, default_value_t = MethodArg::Overlap)]
    pub method: MethodArg,
    /// What makes two pages the same [default: content where all members are atlases or indexes of
    /// seen documents, else url]
    #[arg(long, value_enum)]
    pub by: Option<ByArg>,
    /// The resemblance that makes a near copy.
    #[arg(long, default_value_t = 0.9, value_name = "RESEMBLANCE", value_parser = share)]
    pub threshold: f64,
    /// Pages that are sampled of each member, or of the walk [default: 2400, which is good for
    /// about 2 points; 400 with engines, for about 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub samples: Option<u32>,
    /// The probability with which intervals have the truth.
    #[arg(long, default_value_t = 0.95, value_name = "SHARE", value_parser = inner_share)]
    pub confidence: f64,
    /// How more than two members are brought together.
    #[arg(long, value_enum, default_value_t = FitArg::Weighted)]
    pub fit: FitArg,
    /// The seed of samples, queries, walks and intervals.
    #[arg(long, default_value_t = SizeParams::SEED)]
    pub seed: u64,
    #[command(flatten)]
    pub engines: EngineArgs,
    #[command(flatten)]
    pub others: OtherArgs,
    /// Memory for sorting and for links, as in 512M or 2G [default: half of what the machine has]
    #[arg(long, value_name = "SIZE", env = "ONIONSKIN_MEMORY", help_heading = "Resources")]
    pub memory: Option<MemoryBudget>,
}

/// How engines are asked.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Engines")]
pub(crate) struct EngineArgs {
    /// Words for random queries, one a line, with the number of documents that have it if known
    /// [default: words of the texts of atlases]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub lexicon: Option<PathBuf>,
    /// An atlas that knows the texts of pages, beside those that are members.
    #[arg(long, value_name = "ATLAS", value_hint = ValueHint::DirPath)]
    pub texts: Option<PathBuf>,
    /// The directory below which inputs of atlases with relative names are now [default: the
    /// current one]
    #[arg(long, alias = "inputs", value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub base: Option<PathBuf>,
    /// Fetch pages that no atlas knows.
    #[arg(long)]
    pub fetch: bool,
    /// Where addresses stand in an answer: `text` (one a line), json:results[].url or
    /// json:/results/*/url
    #[arg(long, default_value = "json:results[].url", value_name = "PATH")]
    pub results: ResultPath,
    /// What stands between the words of a query, such as " AND ".
    #[arg(long, default_value = " ", value_name = "TEXT")]
    pub join: String,
    /// Results that the engine gives in one answer, where there are more in the next.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub page: usize,
    /// Words of a random query.
    #[arg(long, default_value_t = EngineParams::default().query_words, value_name = "N")]
    pub query_words: usize,
    /// Results that are fetched. Queries with so many or more are thrown away, since ranking
    /// decides what is seen of those.
    #[arg(long, default_value_t = EngineParams::default().most_results, value_name = "N")]
    pub most_results: usize,
    /// Do not throw them away.
    #[arg(long)]
    pub keep_cut: bool,
    /// What samples are weighted by, against the bias of queries.
    #[arg(long, value_enum, default_value_t = WeightsArg::Pages)]
    pub weights: WeightsArg,
    /// How a page is looked for: queries times words, as in 1x8 or 5x6.
    #[arg(long, default_value = "1x8", value_name = "QxW", value_parser = check)]
    pub check: Check,
    /// Requests a second, of all engines together.
    #[arg(long, default_value_t = 1.0, value_name = "N", value_parser = rate)]
    pub rate: f64,
    /// Seconds until a request is given up.
    #[arg(long, default_value_t = 30, value_name = "SECONDS")]
    pub timeout: u64,
    /// How often a request that failed in passing (time-out, 429, 5xx) is tried again.
    #[arg(long, default_value_t = 3, value_name = "N")]
    pub retries: u32,
    /// Milliseconds before the first of those; twice as long before each next one, or as long as
    /// the server says.
    #[arg(long, default_value_t = 2_000, value_name = "MS", hide = true)]
    pub backoff: u64,
    /// Requests in all, at most [default: as many as it takes]
    #[arg(long, value_name = "N")]
    pub max_requests: Option<u64>,
}

/// The other methods.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Other methods")]
pub(crate) struct OtherArgs {
    /// searches: queries, one a line.
    #[arg(long, value_name = "LOG", value_hint = ValueHint::FilePath)]
    pub queries: Option<PathBuf>,
    /// searches: queries with more results in all do not count.
    #[arg(long, default_value_t = 600, value_name = "N")]
    pub max_results: usize,
    /// walk: how it goes on.
    #[arg(long, value_enum, default_value_t = RuleArg::Jumping)]
    pub rule: RuleArg,
    /// walk: steps [default: 100 for each page of the sample]
    #[arg(long, value_name = "N")]
    pub steps: Option<u64>,
    /// walk: pages that it begins with.
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub start_pages: usize,
    /// walk: write the sample here, one document a line: number, address.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodArg {
    /// Sample each member, check in the others (Bharat and Broder).
    Overlap,
    /// Put the queries of a log to engines (Lawrence and Giles).
    Searches,
    /// A random walk over the links of an atlas (Henzinger et al.).
    Walk,
    /// The results of a study of random addresses (O'Neill et al.).
    Addresses,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByArg {
    /// The address.
    Url,
    /// The text, word by word.
    Text,
    /// The text, nearly.
    Near,
    /// near where sketches can be compared, else text.
    Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FitArg {
    /// Every pair counts by what it knows.
    Weighted,
    /// Every pair counts alike.
    Plain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WeightsArg {
    /// So that pages count alike, whatever their words.
    Pages,
    /// So that pairs of a query and a result count alike.
    Results,
    /// Nothing.
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuleArg {
    /// Along links, with jumps to pages that it knows.
    Jumping,
    /// Along links in both directions, slowly into pages with many of them.
    Metropolis,
}

fn share(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| *value > 0.0 && *value <= 1.0);
    value.ok_or_else(|| "not a number above 0 and up to 1".to_owned())
}

fn inner_share(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| *value > 0.0 && *value < 1.0);
    value.ok_or_else(|| "not a number between 0 and 1".to_owned())
}

fn rate(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| "not a number above 0".to_owned())
}

fn check(text: &str) -> Result<Check, String> {
    let parsed = text.split_once('x').and_then(|(queries, words)| {
        Some(Check { queries: queries.parse().ok()?, words: words.parse().ok()? })
    });
    let fits = |check: &Check| (1..=100).contains(&check.queries) && (1..=100).contains(&check.words);
    parsed.filter(fits).ok_or_else(|| "write queries and words of a query, as in 1x8".to_owned())
}

pub(crate) fn run(args: &SizeArgs, global: &Global) -> anyhow::Result<Exit> {
    let params = params(args);
    let bar = Bar::steps(global);
    let result = match args.method {
        MethodArg::Overlap => overlap(args, &params, &bar, global),
        MethodArg::Searches => from_log(args, &params, &bar, global),
        MethodArg::Walk => from_walk(args, &params, &bar, global),
        MethodArg::Addresses => from_addresses(args, global),
    };
    bar.finish();
    let _ = std::fs::remove_dir_all(&params.work_dir);
    result
}

fn params(args: &SizeArgs) -> SizeParams {
    let engines = &args.engines;
    let correction = match engines.weights {
        WeightsArg::Pages => Correction::Pages,
        WeightsArg::Results => Correction::Results,
        WeightsArg::None => Correction::Nothing,
    };
    SizeParams {
        by: match args.by {
            None => ByChoice::Auto,
            Some(ByArg::Url) => ByChoice::Url,
            Some(ByArg::Text) => ByChoice::Text,
            Some(ByArg::Near) => ByChoice::Near,
            Some(ByArg::Content) => ByChoice::Content,
        },
        threshold: args.threshold,
        samples: args.samples.map(|n| n as usize),
        seed: args.seed,
        estimate: EstimateParams {
            confidence: args.confidence,
            fit: if args.fit == FitArg::Plain { Fit::Plain } else { Fit::Weighted },
            ..EstimateParams::default()
        },
        engine: EngineParams {
            query_words: engines.query_words.max(1),
            most_results: engines.most_results.max(2),
            keep_cut: engines.keep_cut,
            check: engines.check,
            correction,
            ..EngineParams::default()
        },
        settings: EngineSettings {
            results: engines.results.clone(),
            join: engines.join.clone(),
            page: engines.page.max(1),
        },
        http: HttpParams {
            rate: engines.rate,
            timeout: Duration::from_secs(engines.timeout.max(1)),
            retries: engines.retries,
            backoff: Duration::from_millis(engines.backoff),
            max_requests: engines.max_requests,
            ..HttpParams::default()
        },
        lexicon: engines.lexicon.clone(),
        texts: engines.texts.clone(),
        fetch: engines.fetch,
        base: engines.base.clone(),
        pdf_worker: super::pdf_worker(),
        memory: args.memory.unwrap_or_else(MemoryBudget::default_for_machine),
        work_dir: std::env::temp_dir().join(format!("onionskin-size-{}", std::process::id())),
        ..SizeParams::new(args.members.clone())
    }
}

fn overlap(args: &SizeArgs, params: &SizeParams, bar: &Bar, global: &Global) -> anyhow::Result<Exit> {
    let report = size(params, bar)?;
    bar.finish();
    if global.json {
        print_tagged("size", &report)?;
    } else {
        print(&view::overlap(&report, args))?;
    }
    // No member could be told from another.
    Ok(if report.estimates.basis == Basis::Nothing { Exit::No } else { Exit::Done })
}

fn from_log(args: &SizeArgs, params: &SizeParams, bar: &Bar, global: &Global) -> anyhow::Result<Exit> {
    let Some(log) = &args.others.queries else {
        bail!("--method searches needs queries\nhint: --queries LOG, one query a line")
    };
    let queries = read_queries(log)?;
    let report = searches(params, &queries, args.others.max_results, bar)?;
    bar.finish();
    if global.json {
        print_tagged("size", &report)?;
    } else {
        print(&view::searches(&report, args))?;
    }
    Ok(if report.used == report.estimates.empty { Exit::No } else { Exit::Done })
}

fn from_walk(args: &SizeArgs, params: &SizeParams, bar: &Bar, global: &Global) -> anyhow::Result<Exit> {
    let [member] = args.members.as_slice() else { bail!("--method walk takes one atlas") };
    let atlas = Atlas::open(member)?;
    let wanted = params.samples.unwrap_or(SizeParams::SAMPLES);
    let walk_params = WalkParams {
        rule: if args.others.rule == RuleArg::Metropolis { Rule::Metropolis } else { Rule::Jumping },
        steps: args.others.steps.unwrap_or(100 * wanted as u64),
        wanted,
        seeds: args.others.start_pages,
        seed: args.seed,
        confidence: args.confidence,
    };
    let start = std::time::Instant::now();
    let walked = walk(&atlas, &walk_params, params.memory, &params.work_dir)?;
    bar.finish();
    if let Some(path) = &args.others.output {
        write_sample(&atlas, &walked.sample, path).with_context(|| format!("writing {}", path.display()))?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let biases = bias::walk();
    if global.json {
        let report =
            WalkReport { atlas: member, params: &walk_params, walked: &walked, biases: &biases, seconds };
        print_tagged("size", &report)?;
    } else {
        print(&view::walk(&walked, &walk_params, args, &biases, seconds))?;
    }
    Ok(Exit::Done)
}

/// Number and address of every document of the sample.
fn write_sample(atlas: &Atlas, sample: &[DocId], path: &std::path::Path) -> anyhow::Result<()> {
    use std::io::Write;
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    for batch in atlas.documents()?.select::<(document::Doc, document::Url)>() {
        for (doc, url) in batch?.rows().filter(|(doc, _)| sample.binary_search(doc).is_ok()) {
            writeln!(out, "{doc}\t{}", url.unwrap_or_default())?;
        }
    }
    out.flush()?;
    Ok(())
}

fn from_addresses(args: &SizeArgs, global: &Global) -> anyhow::Result<Exit> {
    let [file] = args.members.as_slice() else { bail!("--method addresses takes one results file") };
    let path = PathBuf::from(file);
    let study = read_addresses(&path)?;
    let found = addresses::estimate(&study, args.confidence, EstimateParams::default().draws, args.seed)
        .with_context(|| file.clone())?;
    let biases = bias::addresses();
    if global.json {
        let (confidence, seed) = (args.confidence, args.seed);
        let report = AddressReport { study: &study, estimates: &found, confidence, seed, biases: &biases };
        print_tagged("size", &report)?;
    } else {
        print(&view::addresses(&study, &found, args, &biases))?;
    }
    Ok(Exit::Done)
}
