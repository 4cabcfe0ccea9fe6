//! A small atlas, and everything that reads one.

use std::error::Error;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use onionskin_core::CollectionId;
use onionskin_search::Copies;
use onionskin_store::{Atlas, MemoryBudget, Quiet};
use onionskin_testkit::{Preset, WarcOptions, Web, WebSpec};

use crate::dedup::Copying;
use crate::explain::{DocRef, explain, explain_collection};
use crate::seen::{AtlasDocuments, Params};
use crate::{
    AvoidParams, CollectionsParams, DedupParams, ExplainParams, ReportParams, RunParams, ScanParams,
    SimilarParams, avoid, collections, dedup, report, run, similar,
};

/// What a command answers: all of it as text, or why there is no answer.
pub(super) type Answer = Result<String, String>;

const MEMORY: u64 = 256;

/// A folder in memory where there is one: these tests copy thousands of files.
pub(super) fn fast_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A web with copies, mirrors and links, scanned and searched, in `atlas` below a folder.
pub(super) fn small_atlas(folder: &Path) {
    let web = Web::new(&WebSpec::of(Preset::Demo, 150, 7)).unwrap();
    let pages = folder.join("pages.warc.gz");
    let mut file = fs::File::create(&pages).unwrap();
    let options = WarcOptions { gzip: true, ..WarcOptions::default() };
    web.write_warc(&mut file, 0..web.n_pages(), options, &mut |_, _| ()).unwrap();
    let mut scan = ScanParams::new(vec![pages.display().to_string()], folder.join("atlas"));
    scan.recipe = Some("w4-rabin64-6x14r2+w4+sketch".parse().unwrap());
    scan.memory = MemoryBudget::from_mib(MEMORY);
    scan.threads = 1;
    run(&RunParams { report: None, ..RunParams::new(scan) }, &Quiet).unwrap();
}

fn explained(error: &dyn Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn told<T: std::fmt::Debug, E: Error + 'static>(result: Result<T, E>) -> Answer {
    result.map(|value| format!("{value:?}")).map_err(|error| explained(&error))
}

/// The files that a command has written.
fn written(folder: &Path, names: &[&str]) -> String {
    let texts = names.iter().map(|name| fs::read_to_string(folder.join(name)).unwrap_or_default());
    texts.collect::<Vec<_>>().join("\n")
}

fn run_dedup(folder: &Path) -> Answer {
    let out = folder.join("dedup");
    let _ = fs::remove_dir_all(&out);
    let params = DedupParams {
        copying: Copying::None,
        memory: MemoryBudget::from_mib(MEMORY),
        threads: 1,
        ..DedupParams::new(folder.join("atlas"), out.clone())
    };
    let summary = dedup(&params, &Quiet).map_err(|error| explained(&error))?;
    let lists = written(&out, &["kept.jsonl", "removed.jsonl"]);
    Ok(format!("{:?} {:?} {lists}", summary.kept, summary.removed))
}

fn run_report(folder: &Path) -> Answer {
    let out = folder.join("report");
    let params = ReportParams {
        memory: MemoryBudget::from_mib(MEMORY),
        iterations: 5,
        ..ReportParams::new(folder.join("atlas"), out.clone())
    };
    report(&params, &Quiet).map_err(|error| explained(&error))?;
    Ok(written(&out, &["tables/largest-clusters.csv", "tables/largest-collections.csv"]))
}

fn run_seen(folder: &Path) -> Answer {
    let atlas = Atlas::open(folder.join("atlas")).map_err(|error| explained(&error))?;
    let (recipe, seed) = crate::seen::recipe_of(&atlas).map_err(|error| explained(&error))?;
    let params = Params::new(&recipe, seed, true).map_err(|error| explained(&error))?.with_sketches();
    let mut documents = AtlasDocuments::open(&atlas, &params).map_err(|error| explained(&error))?;
    let mut all = String::new();
    while let Some(document) = documents.next_document().map_err(|error| explained(&error))? {
        all.push_str(&format!("{document:?}\n"));
    }
    Ok(all)
}

fn run_explain(folder: &Path) -> Answer {
    let atlas = folder.join("atlas");
    let (a, b) = (DocRef::Doc(3.into()), DocRef::Doc(70.into()));
    let params =
        ExplainParams { atlas: atlas.clone(), a, b, base: None, pdf_worker: Vec::new(), limits: None };
    let pair = told(explain(&params))?;
    let opened = Atlas::open(&atlas).map_err(|error| explained(&error))?;
    let collection = told(explain_collection(&opened, CollectionId(0)))?;
    Ok(format!("{pair} {collection}"))
}

fn run_copies(folder: &Path) -> Answer {
    let atlas = Atlas::open(folder.join("atlas")).map_err(|error| explained(&error))?;
    told(Copies::read(&atlas, MemoryBudget::from_mib(MEMORY)))
}

fn run_similar(folder: &Path) -> Answer {
    let mut params = SimilarParams::new(folder.join("atlas"));
    (params.memory, params.threads) = (MemoryBudget::from_mib(MEMORY), 1);
    let summary = similar(&params, &Quiet).map_err(|error| explained(&error))?;
    Ok(format!("{} {:?}", summary.near_pairs, summary.clusters))
}

fn run_collections(folder: &Path) -> Answer {
    let mut params = CollectionsParams::new(folder.join("atlas"));
    (params.memory, params.threads) = (MemoryBudget::from_mib(MEMORY), 1);
    let summary = collections(&params, &Quiet).map_err(|error| explained(&error))?;
    Ok(format!("{:?}", summary.counts))
}

/// A command on the atlas in a folder.
type Command = fn(&Path) -> Answer;

/// Everything that reads an atlas, the stages that replace tables last.
pub(super) const COMMANDS: [(&str, Command); 8] = [
    ("avoid", |folder| told(avoid(&AvoidParams::new(folder.join("atlas"))))),
    ("dedup", run_dedup),
    ("report", run_report),
    ("explain", run_explain),
    ("seen", run_seen),
    ("serve", run_copies),
    ("collections", run_collections),
    ("similar", run_similar),
];

/// Runs a command. A panic is a failure of the test.
pub(super) fn answer(name: &str, command: fn(&Path) -> Answer, folder: &Path, what: &str) -> Answer {
    catch_unwind(AssertUnwindSafe(|| command(folder)))
        .unwrap_or_else(|_| panic!("{name} panicked on an atlas with {what}"))
}
