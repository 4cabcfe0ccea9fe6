//! `demo`: the main job on a generated web.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use onionskin::evaluate::{MirrorScore, evaluate_mirrors};
use onionskin::{
    AvoidParams, AvoidReport, CollectionsParams, CollectionsSummary, EvaluateParams, Evaluation,
    ReportParams, ScanParams, ScanSummary, SimilarParams, SimilarSummary, avoid, collections, evaluate, scan,
    similar,
};
use onionskin_store::Atlas;
use onionskin_testkit::{Preset, Summary, WarcOptions, Web, WebSpec};
use serde::Serialize;

use crate::Exit;
use crate::args::{DemoArgs, Global};
use crate::commands::generate::write_truth;
use crate::output::{bytes, grouped, print, print_tagged, seconds, table};
use crate::progress::Bar;

/// Marks a folder that a demo made and may replace.
const MARK: &str = ".onionskin-demo";

/// `onionskin demo --json`.
#[derive(Serialize)]
struct DemoWire<'a> {
    folder: String,
    planted: &'a Summary,
    seen: &'a Seen,
    report: String,
}

/// What the atlas says, by the simplest reading of its tables.
#[derive(Serialize)]
struct Seen {
    documents: u64,
    sites: u64,
    empty: u64,
    one_word: u64,
    exact_copies: u64,
    links: u64,
    near_pairs: u64,
    clusters: u64,
    clustered_documents: u64,
    /// Of the planted pairs that reach the threshold, those that were found.
    recall: f64,
    /// Of the pairs found, those that are true.
    precision: f64,
    collections: u64,
    /// Of the planted mirrors, those that came out as one collection.
    mirrors_whole: u64,
    /// Pages that an avoid list spares the next crawl.
    avoided_pages: u64,
    /// The share of similar pages, as the web is and with what the list skips left out.
    similar_share_before: f64,
    similar_share_after: f64,
}

pub(crate) fn run(args: &DemoArgs, global: &Global) -> anyhow::Result<Exit> {
    let folder = args.output.clone().unwrap_or_else(|| std::env::temp_dir().join("onionskin-demo"));
    prepare(&folder)?;
    let (pages, truth, atlas) =
        (folder.join("pages.warc.gz"), folder.join("truth.jsonl"), folder.join("atlas"));

    let web = Web::new(&WebSpec::of(Preset::Demo, args.pages, args.seed))?;
    let bar = Bar::pages(global, web.n_pages());
    let naming = || format!("writing {}", pages.display());
    let mut file = std::fs::File::create(&pages).with_context(naming)?;
    let options = WarcOptions { gzip: true, ..WarcOptions::default() };
    web.write_warc(&mut file, 0..web.n_pages(), options, &mut |done, _| bar.set(done, "making a web"))
        .with_context(naming)?;
    let planted = write_truth(&web, &truth, &bar)?;
    bar.finish();

    let params = ScanParams::new(vec![pages.display().to_string()], atlas.clone());
    let summary = Bar::new(global).during(|bar| scan(&params, bar))?;
    let found = Bar::steps(global).during(|bar| similar(&SimilarParams::new(atlas.clone()), bar))?;
    let copied = Bar::steps(global).during(|bar| collections(&CollectionsParams::new(atlas.clone()), bar))?;
    let mirrors = evaluate_mirrors(&atlas, &truth)?.unwrap_or_default();
    let list = avoid(&AvoidParams::new(atlas.clone()))?;
    let judged = evaluate(&EvaluateParams {
        atlas: atlas.clone(),
        truth: truth.clone(),
        threshold: None,
        partial: false,
        show: 0,
        memory: params.memory,
        work_dir: folder.join("work"),
    })?;
    let mut params = ReportParams::new(atlas.clone(), folder.join("report"));
    params.png = true;
    let report = Bar::steps(global).during(|bar| onionskin::report(&params, bar))?.written;
    let stages = Stages { scan: &summary, similar: &found, collections: &copied, list: &list };
    let seen = look(&atlas, &stages, &judged, &mirrors)?;
    if global.json {
        let told = DemoWire {
            folder: folder.display().to_string(),
            planted: &planted,
            seen: &seen,
            report: report.page.display().to_string(),
        };
        print_tagged("demo", &told)?;
    } else {
        let told = describe(&planted, &seen, &summary, &judged, &mirrors, &folder);
        print(&format!("{told}the report is {}\n", report.page.display()))?;
    }
    Ok(Exit::Done)
}

/// An empty folder, or one that a demo may clear.
fn prepare(folder: &Path) -> anyhow::Result<()> {
    let naming = || format!("preparing {}", folder.display());
    std::fs::create_dir_all(folder).with_context(naming)?;
    let entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .with_context(naming)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .with_context(naming)?;
    if !entries.is_empty() && !folder.join(MARK).exists() {
        bail!(
            "{} is not empty and was not made by a demo; name another folder with --output",
            folder.display()
        );
    }
    for entry in entries {
        if entry.is_dir() { std::fs::remove_dir_all(&entry) } else { std::fs::remove_file(&entry) }
            .with_context(naming)?;
    }
    std::fs::write(folder.join(MARK), "").with_context(naming)
}

/// What the stages said.
struct Stages<'a> {
    scan: &'a ScanSummary,
    similar: &'a SimilarSummary,
    collections: &'a CollectionsSummary,
    list: &'a AvoidReport,
}

fn look(
    atlas: &Path,
    stages: &Stages<'_>,
    judged: &Evaluation,
    mirrors: &MirrorScore,
) -> anyhow::Result<Seen> {
    let Stages { scan: summary, similar: found, collections: copied, list } = stages;
    let atlas = Atlas::open(atlas)?;
    let mut one_word = 0;
    let mut documents = atlas.documents()?;
    while let Some(batch) = documents.next_batch()? {
        one_word += batch.rows().filter(|row| row.tokens == 1).count() as u64;
    }
    let pairs = judged.pairs.context("the search left pairs")?;
    Ok(Seen {
        documents: summary.documents,
        sites: summary.sites,
        empty: summary.empty_documents,
        one_word,
        exact_copies: found.exact.copies,
        links: summary.links,
        near_pairs: found.near_pairs,
        clusters: found.clusters.clusters,
        clustered_documents: found.clusters.documents,
        recall: pairs.recall(),
        precision: pairs.precision(),
        collections: copied.counts.groups,
        mirrors_whole: mirrors.mirrors_whole,
        avoided_pages: list.simulation.skipped,
        similar_share_before: list.simulation.before.similar_share(),
        similar_share_after: list.simulation.after.similar_share(),
    })
}

fn describe(
    planted: &Summary,
    seen: &Seen,
    summary: &ScanSummary,
    judged: &Evaluation,
    mirrors: &MirrorScore,
    folder: &Path,
) -> String {
    let mut both = table(&["", "planted", "seen"]);
    let mut row = |name: &str, planted: u64, seen: Option<u64>| {
        both.add_row([name.to_owned(), grouped(planted), seen.map_or_else(|| "–".to_owned(), grouped)]);
    };
    row("documents", planted.documents, Some(seen.documents));
    row("sites", planted.sites, Some(seen.sites));
    row("links between documents", planted.links, Some(seen.links));
    row("empty documents", planted.empty, Some(seen.empty));
    row("documents of one word", planted.one_word, Some(seen.one_word));
    row("exact copies of a text", planted.exact_copies, Some(seen.exact_copies));
    let pairs = judged.pairs.unwrap_or_default();
    row("pairs of copies, exact and near *", pairs.truth, Some(pairs.found));
    let whole = |kind: &str| Some(mirrors.by_kind.get(kind).map_or(0, |(_, whole)| *whole));
    row("full mirrors **", planted.full_mirrors, whole("full"));
    row("partial mirrors **", planted.partial_mirrors, whole("partial"));
    row("mirrors of another version **", planted.skewed_mirrors, whole("skewed"));
    row("host aliases **", planted.aliases, whole("alias"));
    format!(
        "{both}\n\
         * of resemblance {} and more: recall {:.4}, precision {:.4}. {} documents are in {} clusters.\n\
         ** each as one collection; {} collections are replicated. A list of what to skip spares the next crawl {} pages;\n\
         \u{20}  similar pages: {:.0} % as it is, {:.0} % with the list.\n\
         {} of input in {}; {} of memory at most.\n\
         the web, the truth and the atlas are in {}\n",
        judged.threshold,
        seen.recall,
        seen.precision,
        grouped(seen.clustered_documents),
        grouped(seen.clusters),
        grouped(seen.collections),
        grouped(seen.avoided_pages),
        100.0 * seen.similar_share_before,
        100.0 * seen.similar_share_after,
        bytes(summary.input_bytes),
        seconds(summary.seconds),
        summary.peak_memory.map_or_else(|| "unknown amount".to_owned(), bytes),
        folder.display()
    )
}
