//! `report`: how much is copied and where, as a page, tables and figures; or what has changed between two crawls.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueHint;
use onionskin::{CompareParams, Event, Progress, ReportParams, compare, study};
use onionskin_study::findings::Findings;
use onionskin_study::report::{Changes, Written, changes, overview, write_report};
use serde::Serialize;

use crate::Exit;
use crate::args::{Global, ResourceArgs};
use crate::output::{bytes, grouped, percent, print, print_json, table};
use crate::progress::Bar;

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// The folder of the atlas; of the earlier one when two are compared.
    #[arg(value_hint = ValueHint::DirPath)]
    pub atlas: PathBuf,
    /// The atlas of a later crawl: tells what is new, gone, and still copied.
    #[arg(value_hint = ValueHint::DirPath)]
    pub later: Option<PathBuf>,
    /// Where the report goes [default: `report` in the atlas; `report-since-EARLIER` in the later one]
    #[arg(short, long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    /// An address where the simulated crawl begins, or `@FILE` with one a line; may be given several times [default: everywhere in the largest
    /// strongly connected component]
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
    let folder = folder(args)?;
    // Before the work: a place that cannot be written to is told now.
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    match &args.later {
        None => of_one(args, &folder, global),
        Some(later) => of_two(args, later, &folder, global),
    }
}

fn folder(args: &ReportArgs) -> anyhow::Result<PathBuf> {
    if let Some(folder) = &args.output {
        return Ok(folder.clone());
    }
    // An atlas that is not one gets no folder.
    onionskin_store::Atlas::open(&args.atlas)?;
    Ok(match &args.later {
        None => args.atlas.join("report"),
        Some(later) => {
            onionskin_store::Atlas::open(later)?;
            let earlier = args.atlas.canonicalize().unwrap_or_else(|_| args.atlas.clone());
            let name = earlier.file_name().map_or_else(|| "earlier".into(), |name| name.to_string_lossy());
            later.join(format!("report-since-{name}"))
        }
    })
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

fn of_one(args: &ReportArgs, folder: &Path, global: &Global) -> anyhow::Result<Exit> {
    let mut params = ReportParams::new(args.atlas.clone(), folder.join(".work"));
    params.seeds = seeds(&args.seed_url)?;
    params.reference.clone_from(&args.reference);
    params.iterations = args.iterations;
    params.memory = args.resources.memory.unwrap_or(params.memory);
    let bar = Bar::steps(global);
    let result = make(&params, folder, !args.no_png, &bar);
    bar.finish();
    let (findings, written) = result?;
    if global.json {
        print_json(&ReportWire::new(&findings, &written))?;
    } else {
        print(&describe(&findings, &written))?;
    }
    Ok(Exit::Done)
}

/// Studies an atlas and writes the report.
pub(crate) fn make(
    params: &ReportParams,
    folder: &Path,
    with_png: bool,
    bar: &Bar,
) -> anyhow::Result<(Findings, Written)> {
    let findings = study(params, bar)?;
    bar.event(Event::Step { name: "drawing figures" });
    let written = write_report(&overview(&findings), folder, with_png)?;
    Ok((findings, written))
}

fn of_two(args: &ReportArgs, later: &Path, folder: &Path, global: &Global) -> anyhow::Result<Exit> {
    let params = CompareParams {
        earlier: args.atlas.clone(),
        later: later.to_owned(),
        memory: args.resources.memory.unwrap_or_else(onionskin_store::MemoryBudget::default_for_machine),
        work_dir: folder.join(".work"),
    };
    let bar = Bar::steps(global);
    let result = compare(&params, &bar);
    bar.finish();
    let found = result?;
    let written = write_report(&changes(&found), folder, !args.no_png)?;
    if global.json {
        print_json(&ChangesWire::new(&found, &written))?;
    } else {
        print(&describe_changes(&found, &written))?;
    }
    Ok(Exit::Done)
}

fn describe(findings: &Findings, written: &Written) -> String {
    let mut levels = table(&["level", "documents", "clusters", "duplicates", "%", "on other sites", "bytes"]);
    for level in &findings.levels {
        let whole = &level.counts.whole;
        let cross: u64 = level.counts.classes.iter().map(|class| class.cross_site_duplicates).sum();
        levels.add_row([
            level.title.clone(),
            grouped(whole.documents),
            grouped(whole.clusters),
            grouped(whole.duplicates()),
            percent(whole.duplicate_share()),
            grouped(cross),
            bytes(level.counts.duplicate_bytes),
        ]);
    }
    let mut text = format!("{levels}\n");
    if let (Some(parts), Some(level)) = (&findings.parts, findings.main_level()) {
        let counts = &level.counts;
        let _ = writeln!(
            text,
            "a crawl by links reaches {} of {} documents; duplicates there: {}, elsewhere: {}",
            grouped(parts.reached),
            grouped(findings.documents),
            percent(counts.connected.duplicate_share()),
            percent(counts.disconnected.duplicate_share())
        );
    }
    if let Some(found) = &findings.collections {
        let _ = writeln!(
            text,
            "{} replicated collections of ten pages and more, {} pages of them to spare",
            grouped(found.groups),
            grouped(found.duplicate_pages)
        );
    }
    text + &told(written)
}

fn told(written: &Written) -> String {
    format!(
        "{} ({}), and {} files beside it\n",
        written.page.display(),
        bytes(written.page_bytes),
        grouped(written.files.saturating_sub(1))
    )
}

fn describe_changes(found: &Changes, written: &Written) -> String {
    let mut pages = table(&["pages", "number"]);
    for (name, n) in [
        ("in both, unchanged", found.unchanged),
        ("in both, changed", found.changed),
        ("new", found.new.addresses),
        ("  with a text that was there before", found.new.text_elsewhere),
        ("gone", found.gone.addresses),
        ("  with a text that is still there", found.gone.text_elsewhere),
        ("still copied", found.still_copied),
        ("no longer copied", found.no_longer_copied),
        ("newly copied", found.newly_copied),
    ] {
        pages.add_row([name.to_owned(), grouped(n)]);
    }
    format!("{pages}\n{}", told(written))
}

/// `onionskin report --json`.
#[derive(Serialize)]
struct ReportWire {
    r#type: &'static str,
    page: String,
    page_bytes: u64,
    files: u64,
    documents: u64,
    sites: u64,
    links: u64,
    levels: Vec<LevelWire>,
    reached: Option<u64>,
    collections: Option<u64>,
}

#[derive(Serialize)]
struct LevelWire {
    level: String,
    documents: u64,
    clusters: u64,
    duplicates: u64,
    unique: u64,
    duplicate_bytes: u64,
    connected_duplicates: u64,
    disconnected_duplicates: u64,
}

impl ReportWire {
    fn new(findings: &Findings, written: &Written) -> ReportWire {
        let level = |level: &onionskin_study::findings::Level| {
            let counts = &level.counts;
            LevelWire {
                level: level.name.clone(),
                documents: counts.whole.documents,
                clusters: counts.whole.clusters,
                duplicates: counts.whole.duplicates(),
                unique: counts.whole.unique(),
                duplicate_bytes: counts.duplicate_bytes,
                connected_duplicates: counts.connected.duplicates(),
                disconnected_duplicates: counts.disconnected.duplicates(),
            }
        };
        ReportWire {
            r#type: "report",
            page: written.page.display().to_string(),
            page_bytes: written.page_bytes,
            files: written.files,
            documents: findings.documents,
            sites: findings.sites,
            links: findings.links,
            levels: findings.levels.iter().map(level).collect(),
            reached: findings.parts.as_ref().map(|parts| parts.reached),
            collections: findings.collections.as_ref().map(|found| found.groups),
        }
    }
}

/// `onionskin report A B --json`.
#[derive(Serialize)]
struct ChangesWire {
    r#type: &'static str,
    page: String,
    files: u64,
    unchanged: u64,
    changed: u64,
    new: u64,
    new_with_known_text: u64,
    gone: u64,
    gone_with_text_elsewhere: u64,
    still_copied: u64,
    no_longer_copied: u64,
    newly_copied: u64,
    mirrors_still: Option<u64>,
    mirrors_new: Option<u64>,
    mirrors_gone: Option<u64>,
}

impl ChangesWire {
    fn new(found: &Changes, written: &Written) -> ChangesWire {
        let mirrors = found.mirrors.as_ref();
        ChangesWire {
            r#type: "changes",
            page: written.page.display().to_string(),
            files: written.files,
            unchanged: found.unchanged,
            changed: found.changed,
            new: found.new.addresses,
            new_with_known_text: found.new.text_elsewhere,
            gone: found.gone.addresses,
            gone_with_text_elsewhere: found.gone.text_elsewhere,
            still_copied: found.still_copied,
            no_longer_copied: found.no_longer_copied,
            newly_copied: found.newly_copied,
            mirrors_still: mirrors.map(|mirrors| mirrors.still),
            mirrors_new: mirrors.map(|mirrors| mirrors.new),
            mirrors_gone: mirrors.map(|mirrors| mirrors.gone),
        }
    }
}
