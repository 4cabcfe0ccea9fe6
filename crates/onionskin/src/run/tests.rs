use std::fs;
use std::path::{Path, PathBuf};

use onionskin_similar::cluster::Clustering;
use onionskin_testkit::{Preset, WarcOptions, Web, WebSpec};

use super::*;
use crate::Quiet;
use onionskin_scan::testing::files;
use onionskin_similar::Search;

/// A web with copies, mirrors and links.
fn web(folder: &Path) -> PathBuf {
    let web = Web::new(&WebSpec::of(Preset::Demo, 600, 7)).unwrap();
    let pages = folder.join("pages.warc.gz");
    let mut file = fs::File::create(&pages).unwrap();
    let options = WarcOptions { gzip: true, ..WarcOptions::default() };
    web.write_warc(&mut file, 0..web.n_pages(), options, &mut |_, _| ()).unwrap();
    pages
}

fn params(input: &Path, atlas: PathBuf, recipe: &str, memory: u64, threads: usize) -> RunParams {
    let mut scan = ScanParams::new(vec![input.display().to_string()], atlas);
    scan.recipe = Some(recipe.parse().unwrap());
    scan.memory = MemoryBudget::from_mib(memory);
    scan.threads = threads;
    scan.options.task_bytes = 16 << 10;
    scan.commit_bytes = 200 << 10;
    let mut params = RunParams::new(scan);
    params.similar.search = Search::Resemblance { threshold: 0.8, filter: None, exact: false };
    params.report = None;
    params
}

fn one_by_one(params: &RunParams) {
    let RunParams { scan: first, similar: second, collections: third, .. } = params;
    scan(first, &Quiet).unwrap();
    let (memory, threads) = (first.memory, first.threads);
    similar(&SimilarParams { memory, threads, ..second.clone() }, &Quiet).unwrap();
    if let Some(third) = third {
        collections(&CollectionsParams { memory, threads, ..third.clone() }, &Quiet).unwrap();
    }
}

#[test]
fn a_run_leaves_the_bytes_of_its_stages() {
    let folder = tempfile::tempdir().unwrap();
    let input = web(folder.path());
    for (nth, recipe) in
        ["w5-rabin64-16x5r1-one", "w4-rabin64-16x5r1", "w4-rabin64-6x14r2+w4+sketch"].iter().enumerate()
    {
        for clustering in [Clustering::Centred, Clustering::Transitive] {
            let place = |name: String| folder.path().join(format!("{nth}-{}-{name}", clustering.as_str()));
            let mut stages = params(&input, place("stages".to_owned()), recipe, 256, 2);
            stages.similar.clustering = clustering;
            one_by_one(&stages);
            let expected = files(&stages.scan.atlas);
            for (memory, threads) in [(128, 1), (256, 3), (1024, 1), (1024, 4)] {
                let atlas = place(format!("{memory}-{threads}"));
                let mut whole = params(&input, atlas, recipe, memory, threads);
                whole.similar.clustering = clustering;
                let summary = run(&whole, &Quiet).unwrap();
                let found = files(&whole.scan.atlas);
                assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
                for (name, bytes) in &found {
                    assert!(*bytes == expected[name], "{recipe} {memory} {threads}: {name}");
                }
                assert!(summary.similar.summary().unwrap().near_pairs > 0);
                assert!(summary.collections.summary().unwrap().counts.groups > 0);
            }
        }
    }
}

#[test]
fn what_is_there_is_not_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let input = web(folder.path());
    let mut again = params(&input, folder.path().join("atlas"), "w5-rabin64-16x5r1-one", 256, 2);
    let outcomes = |params: &RunParams| {
        let summary = run(params, &Quiet).unwrap();
        [summary.scan.as_str(), summary.similar.as_str(), summary.collections.as_str()]
    };
    assert_eq!(outcomes(&again), ["done"; 3]);
    let first = files(&again.scan.atlas);
    assert_eq!(outcomes(&again), ["was_there"; 3]);
    assert!(files(&again.scan.atlas) == first);
    // Another search on the same scan, and back.
    again.similar.search = Search::Resemblance { threshold: 0.9, filter: None, exact: false };
    assert_eq!(outcomes(&again), ["was_there", "done", "done"]);
    again.similar.search = Search::Resemblance { threshold: 0.8, filter: None, exact: false };
    again.collections = None;
    assert_eq!(outcomes(&again), ["was_there", "done", "not_wanted"]);
    // Other inputs or recipes are another job, and the atlas is not given up for it.
    again.scan.seed = 2;
    let error = run(&again, &Quiet).unwrap_err().to_string();
    assert!(error.contains("already has a finished scan"), "{error}");
    again.scan.overwrite = true;
    assert_eq!(outcomes(&again), ["done", "done", "not_wanted"]);
}

#[test]
fn mistakes_are_told_before_anything_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let input = web(folder.path());
    let atlas = folder.path().join("atlas");
    let little = params(&input, atlas.clone(), "w4-rabin64-16x5r1", 100, 1);
    assert_eq!(
        run(&little, &Quiet).unwrap_err().to_string(),
        "a run needs at least 128M of memory, not 100M"
    );
    let mut low = params(&input, atlas.clone(), "w4-rabin64-16x5r1", 256, 1);
    low.similar.search = Search::Resemblance { threshold: 0.0, filter: None, exact: false };
    assert!(run(&low, &Quiet).unwrap_err().to_string().contains("above 0"));
    assert!(!atlas.exists());
}

#[test]
fn without_links_there_are_no_collections() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("texts.jsonl");
    let text = "one two three four five six seven eight nine ten";
    fs::write(&input, format!("{{\"text\": \"{text}\"}}\n{{\"text\": \"{text}\"}}\n")).unwrap();
    let summary =
        run(&params(&input, folder.path().join("atlas"), "w4-rabin64-16x5r1", 256, 1), &Quiet).unwrap();
    assert_eq!(summary.collections.as_str(), "no_links");
    assert_eq!(summary.similar.summary().unwrap().exact.copies, 1);
}

#[test]
fn a_run_ends_with_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let input = web(folder.path());
    let atlas = folder.path().join("atlas");
    let mut whole = params(&input, atlas.clone(), "w5-rabin64-16x5r1-one", 256, 2);
    assert_eq!(run(&whole, &Quiet).unwrap().report.as_str(), "not_wanted");
    assert!(!atlas.join("report").exists());
    whole.report = Some(ReportParams::in_atlas(atlas.clone()));
    let summary = run(&whole, &Quiet).unwrap();
    let report = summary.report.summary().unwrap();
    assert_eq!(report.written.page, atlas.join("report/report.html"));
    assert!(report.written.page.exists() && report.levels.len() == 2 && report.collections > Some(0));
    assert!(!atlas.join("report/.work").exists());
    // What a program is told: the outcome of every stage, and the summaries of those that were
    // done.
    let told = serde_json::to_value(&summary).unwrap();
    assert_eq!(told["outcomes"]["scan"], "was_there");
    assert_eq!(told["outcomes"]["report"], "done");
    assert_eq!(
        (&told["scan"], &told["report"]["files"]),
        (&serde_json::Value::Null, &report.written.files.into())
    );
}
