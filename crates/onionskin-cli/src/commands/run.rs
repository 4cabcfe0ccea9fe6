//! `run`: from a crawl to copies, mirrors and a report.

use onionskin::run::Outcome;
use onionskin::similar::Search;
use onionskin::{RunParams, RunSummary};
use onionskin_mirror::Merge;
use onionskin_store::Atlas;

use super::collections;
use super::scan;
use super::similar::{self, parse_share};
use crate::Exit;
use crate::args::{ClusterArgs, Global, ScanArgs};
use crate::output::{bytes, print_summary, seconds};
use crate::progress::Bar;

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub scan: ScanArgs,
    #[command(flatten)]
    pub searches: SearchArgs,
}

/// What is searched for in the atlas.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Searches")]
pub(crate) struct SearchArgs {
    /// The resemblance of similar documents, at least, as in 0.9 or 90% [default: 0.9]
    #[arg(long, value_name = "T")]
    pub threshold: Option<String>,
    /// Find every pair and miss none, by a join of the shingle sets instead of features. For small
    /// corpora, and as the yardstick.
    #[arg(long)]
    pub exact: bool,
    #[command(flatten)]
    pub clusters: ClusterArgs,
    /// When similar pages grow together into collections: tolerant, strict or extended.
    #[arg(long, default_value_t = Merge::Tolerant, value_name = "CONDITION", conflicts_with = "no_collections")]
    pub merge: Merge,
    /// Do not search for collections.
    #[arg(long)]
    pub no_collections: bool,
    /// Do not write a report.
    #[arg(long)]
    pub no_report: bool,
    /// Make the full-text index that `serve` searches, too. Without it the first start of `serve`
    /// does.
    #[cfg(feature = "serve")]
    #[arg(long)]
    pub index: bool,
}

pub(crate) fn run(args: &RunArgs, global: &Global) -> anyhow::Result<Exit> {
    let params = params(args)?;
    let summary = Bar::new(global).during(|bar| onionskin::run(&params, bar))?;
    let indexed = index(args, &params, global)?;
    if summary.is_nothing_new() && !indexed {
        let atlas = Atlas::open(&summary.atlas)?;
        let [pairs, clustered] = similar::found_by(&atlas);
        let found = [("documents", scan::documents(&atlas)), pairs, clustered];
        let hint = format!("{}; --overwrite does all of it again", scan::SAME_INPUTS);
        super::nothing_to_do(global, "run", &summary.atlas, &found, &hint)?;
        return Ok(scan::answer(&atlas));
    }
    print_summary(global, "run", &summary, describe)?;
    match summary.scan.summary() {
        Some(scanned) => Ok(scan::warn(scanned, global)),
        None => Ok(scan::answer(&Atlas::open(&summary.atlas)?)),
    }
}

/// Makes the full-text index if that is wanted and there is none; whether it was made.
#[cfg(feature = "serve")]
fn index(args: &RunArgs, params: &RunParams, global: &Global) -> anyhow::Result<bool> {
    if !args.searches.index {
        return Ok(false);
    }
    super::serve::index(&params.scan.atlas, params.scan.memory, global)
}

#[cfg(not(feature = "serve"))]
fn index(_: &RunArgs, _: &RunParams, _: &Global) -> anyhow::Result<bool> {
    Ok(false)
}

fn params(args: &RunArgs) -> anyhow::Result<RunParams> {
    let searches = &args.searches;
    let mut params = RunParams::new(scan::params(&args.scan));
    let threshold = searches.threshold.as_deref().map_or(Ok(Search::THRESHOLD), parse_share)?;
    params.similar.search = Search::Resemblance { threshold, filter: None, exact: searches.exact };
    searches.clusters.apply(&mut params.similar);
    if searches.no_report {
        params.report = None;
    }
    if searches.no_collections {
        params.collections = None;
    }
    if let Some(collections) = &mut params.collections {
        collections.merge = searches.merge;
    }
    Ok(params)
}

/// The summary for people.
fn describe(summary: &RunSummary) -> String {
    let mut text = section("scan", &summary.scan, scan::describe);
    if matches!(summary.scan, Outcome::WasThere) {
        text += "  (names, lengths and formats of the inputs are the same as then)\n";
    }
    text += &section("similar", &summary.similar, similar::describe);
    text += &section("collections", &summary.collections, collections::describe);
    text += &match summary.report.summary() {
        Some(report) => format!("report: {}\n", report.written.page.display()),
        None => section("report", &summary.report, |_| String::new()),
    };
    text += &format!(
        "in all: {}, {} of processor time, {} of memory at most\n",
        seconds(summary.seconds),
        seconds(summary.cpu_seconds),
        summary.peak_memory.map_or_else(|| "unknown amount".to_owned(), bytes),
    );
    text
}

fn section<S>(name: &str, outcome: &Outcome<S>, describe: impl Fn(&S) -> String) -> String {
    match outcome {
        Outcome::Done(summary) => format!("{name}:\n{}", describe(summary)),
        Outcome::WasThere => format!("{name}: nothing to do, it was there from an earlier run\n"),
        Outcome::NotWanted => format!("{name}: left out\n"),
        Outcome::NoLinks => format!("{name}: left out, since no document links to another\n"),
    }
}
