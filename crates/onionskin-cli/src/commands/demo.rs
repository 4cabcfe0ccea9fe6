//! `demo`: the main job on a generated web, as far as the stages exist.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use onionskin::{ScanParams, ScanSummary, scan};
use onionskin_core::FeatureFilter;
use onionskin_store::Atlas;
use onionskin_testkit::{Preset, Summary, WarcOptions, Web, WebSpec};
use serde::Serialize;

use crate::Exit;
use crate::args::{DemoArgs, Global};
use crate::commands::generate::write_truth;
use crate::output::{bytes, grouped, print, print_json, seconds, table};
use crate::progress::Bar;

/// Marks a folder that a demo made and may replace.
const MARK: &str = ".onionskin-demo";

/// `onionskin demo --json`.
#[derive(Serialize)]
struct DemoWire<'a> {
    r#type: &'static str,
    folder: String,
    planted: &'a Summary,
    seen: &'a Seen,
}

/// What the atlas says, by the simplest reading of its tables.
#[derive(Serialize)]
struct Seen {
    documents: u64,
    sites: u64,
    empty: u64,
    one_word: u64,
    exact_copies: u64,
    meeting: u64,
    links: u64,
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

    let bar = Bar::new(global);
    let params = ScanParams::new(vec![pages.display().to_string()], atlas.clone());
    let result = scan(&params, &bar);
    bar.finish();
    let summary = result?;
    let filter = params.recipe.scheme().filter().context("the default recipe has features")?;
    let seen = look(&atlas, &summary, filter)?;
    if global.json {
        print_json(&DemoWire {
            r#type: "demo",
            folder: folder.display().to_string(),
            planted: &planted,
            seen: &seen,
        })?;
    } else {
        print(&describe(&planted, &seen, &summary, &folder))?;
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

fn look(atlas: &Path, summary: &ScanSummary, filter: FeatureFilter) -> anyhow::Result<Seen> {
    let atlas = Atlas::open(atlas)?;
    let mut texts: BTreeMap<u32, u64> = BTreeMap::new();
    let mut one_word = 0;
    let mut documents = atlas.documents()?;
    while let Some(batch) = documents.next_batch()? {
        for row in batch.rows() {
            one_word += u64::from(row.tokens == 1);
            texts.extend(row.text_fp.map(|text| (row.doc, text)));
        }
    }
    let distinct: BTreeSet<u64> = texts.values().copied().collect();

    // One document stands for every text; two texts meet when they share r features.
    let mut holders: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut of_text: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut features = atlas.features()?;
    while let Some((doc, row)) = features.next_row()? {
        let Some(text) = texts.get(&doc) else { continue };
        if !of_text.contains_key(text) {
            of_text.insert(*text, row.to_vec());
            for feature in row {
                holders.entry(*feature).or_default().push(*text);
            }
        }
    }
    let mut meeting = 0;
    for (text, row) in &of_text {
        let mut shared: BTreeMap<u64, usize> = BTreeMap::new();
        for other in row.iter().flat_map(|feature| &holders[feature]).filter(|other| *other != text) {
            *shared.entry(*other).or_default() += 1;
        }
        meeting += u64::from(shared.values().any(|count| *count >= filter.r()));
    }
    Ok(Seen {
        documents: summary.documents,
        sites: summary.sites,
        empty: summary.empty_documents,
        one_word,
        exact_copies: (texts.len() - distinct.len()) as u64,
        meeting,
        links: summary.links,
    })
}

fn describe(planted: &Summary, seen: &Seen, summary: &ScanSummary, folder: &Path) -> String {
    let mut both = table(&["", "planted", "seen by the scan"]);
    let mut row = |name: &str, planted: u64, seen: Option<u64>| {
        both.add_row([name.to_owned(), grouped(planted), seen.map_or_else(|| "–".to_owned(), grouped)]);
    };
    row("documents", planted.documents, Some(seen.documents));
    row("sites", planted.sites, Some(seen.sites));
    row("links between documents", planted.links, Some(seen.links));
    row("empty documents", planted.empty, Some(seen.empty));
    row("documents of one word", planted.one_word, Some(seen.one_word));
    row("exact copies of a text", planted.exact_copies, Some(seen.exact_copies));
    row("texts near another *", planted.near_copies, Some(seen.meeting));
    row("full mirrors", planted.full_mirrors, None);
    row("partial mirrors", planted.partial_mirrors, None);
    row("mirrors of another version", planted.skewed_mirrors, None);
    row("host aliases", planted.aliases, None);
    row("break points in mirrors", planted.break_points, None);
    row("calendars", planted.calendars, None);
    format!(
        "{both}\n\
         * planted: near copies at any resemblance, the original not counted; seen: texts that share at least two features with\n  \
           another, before verification, originals and calendars included.\n\
         {} of input in {}; {} of memory at most.\n\
         the web, the truth and the atlas are in {}\n",
        bytes(summary.input_bytes),
        seconds(summary.seconds),
        summary.peak_memory.map_or_else(|| "unknown amount".to_owned(), bytes),
        folder.display()
    )
}
