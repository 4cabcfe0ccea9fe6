//! `report`: how much is copied and where, as a page, tables and figures; or what has changed
//! between two crawls.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueHint;
use onionskin::{CompareParams, ReportParams, ReportSummary, report};
use onionskin_study::report::{ChangesSummary, Written, report_changes};

use crate::Exit;
use crate::args::{Global, ResourceArgs};
use crate::output::{bytes, grouped, percent, print_summary, table};
use crate::progress::Bar;

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// The folder of the atlas; of the earlier one when two are compared.
    #[arg(value_hint = ValueHint::DirPath)]
    pub atlas: PathBuf,
    /// The atlas of a later crawl: tells what is new, gone, and still copied.
    #[arg(value_hint = ValueHint::DirPath)]
    pub later: Option<PathBuf>,
    /// Where the report goes [default: `report` in the atlas; `report-since-EARLIER` in the later
    /// one]
    #[arg(short, long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// An address where the simulated crawl begins, or `@FILE` with one a line; may be given
    /// several times [default: everywhere in the largest strongly connected component]
    #[arg(long, value_name = "URL", conflicts_with = "later")]
    pub seed_url: Vec<String>,
    /// An earlier atlas with the same search, by whose growth the end of this one is estimated too.
    #[arg(long, value_name = "ATLAS", value_hint = ValueHint::DirPath, conflicts_with = "later")]
    pub reference: Option<PathBuf>,
    /// Iterations of the growth of clusters.
    #[arg(long, default_value_t = ReportParams::ITERATIONS, value_name = "N", conflicts_with = "later", value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub iterations: u32,
    /// Draw no PNG figures beside the SVG ones.
    #[arg(long)]
    pub no_png: bool,
    #[command(flatten)]
    pub resources: ResourceArgs,
}

pub(crate) fn run(args: &ReportArgs, global: &Global) -> anyhow::Result<Exit> {
    match &args.later {
        None => of_one(args, global),
        Some(later) => of_two(args, later, global),
    }
}

/// `@FILE` stands for the addresses in a file.
fn seeds(given: &[String]) -> anyhow::Result<Vec<String>> {
    let mut seeds = Vec::new();
    for seed in given {
        match seed.strip_prefix('@') {
            None => seeds.push(seed.clone()),
            Some(file) => {
                let text = std::fs::read_to_string(file).with_context(|| format!("reading {file}"))?;
                let lines =
                    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
                seeds.extend(lines.map(str::to_owned));
            }
        }
    }
    if seeds.is_empty() && !given.is_empty() {
        bail!("the files of seeds have no addresses");
    }
    Ok(seeds)
}

fn of_one(args: &ReportArgs, global: &Global) -> anyhow::Result<Exit> {
    let mut params = match &args.output {
        Some(output) => ReportParams::new(args.atlas.clone(), output.clone()),
        None => ReportParams::in_atlas(args.atlas.clone()),
    };
    params.png = !args.no_png;
    params.seeds = seeds(&args.seed_url)?;
    params.reference.clone_from(&args.reference);
    params.iterations = args.iterations;
    params.memory = args.resources.memory.unwrap_or(params.memory);
    let summary = Bar::steps(global).during(|bar| report(&params, bar))?;
    print_summary(global, "report", &summary, describe)?;
    Ok(Exit::Done)
}

fn of_two(args: &ReportArgs, later: &Path, global: &Global) -> anyhow::Result<Exit> {
    let output = args.output.clone().unwrap_or_else(|| {
        let earlier = args.atlas.canonicalize().unwrap_or_else(|_| args.atlas.clone());
        let name = earlier.file_name().map_or_else(|| "earlier".into(), |name| name.to_string_lossy());
        later.join(format!("report-since-{name}"))
    });
    let params = CompareParams {
        earlier: args.atlas.clone(),
        later: later.to_owned(),
        memory: args.resources.memory.unwrap_or_else(onionskin_store::MemoryBudget::default_for_machine),
        work_dir: output.join(".work"),
    };
    let summary = Bar::steps(global).during(|bar| report_changes(&params, &output, !args.no_png, bar))?;
    print_summary(global, "changes", &summary, describe_changes)?;
    Ok(Exit::Done)
}

fn describe(summary: &ReportSummary) -> String {
    let mut levels = table(&["level", "documents", "clusters", "duplicates", "%", "on other sites", "bytes"]);
    for level in &summary.levels {
        levels.add_row([
            level.title.clone(),
            grouped(level.documents),
            grouped(level.clusters),
            grouped(level.duplicates),
            percent(level.duplicate_share),
            grouped(level.cross_site_duplicates),
            bytes(level.duplicate_bytes),
        ]);
    }
    let mut text = format!("{levels}\n");
    let main = summary.levels.iter().find(|level| summary.main_level.as_ref() == Some(&level.level));
    if let (Some(reached), Some(level)) = (summary.reached, main) {
        let _ = writeln!(
            text,
            "a crawl by links reaches {} of {} documents; duplicates there: {}, elsewhere: {}",
            grouped(reached),
            grouped(summary.documents),
            percent(level.connected_duplicate_share),
            percent(level.disconnected_duplicate_share)
        );
    }
    if let (Some(collections), Some(duplicate_pages)) = (summary.collections, summary.duplicate_pages) {
        let _ = writeln!(
            text,
            "{} replicated collections of ten pages and more, {} pages of them to spare",
            grouped(collections),
            grouped(duplicate_pages)
        );
    }
    text + &told(&summary.written)
}

fn told(written: &Written) -> String {
    format!(
        "{} ({}), and {} files beside it\n",
        written.page.display(),
        bytes(written.page_bytes),
        grouped(written.files.saturating_sub(1))
    )
}

fn describe_changes(found: &ChangesSummary) -> String {
    let mut pages = table(&["pages", "number"]);
    for (name, n) in [
        ("in both, unchanged", found.unchanged),
        ("in both, changed", found.changed),
        ("new", found.new),
        ("  with a text that was there before", found.new_with_known_text),
        ("gone", found.gone),
        ("  with a text that is still there", found.gone_with_text_elsewhere),
        ("still copied", found.still_copied),
        ("no longer copied", found.no_longer_copied),
        ("newly copied", found.newly_copied),
    ] {
        pages.add_row([name.to_owned(), grouped(n)]);
    }
    format!("{pages}\n{}", told(&found.written))
}
