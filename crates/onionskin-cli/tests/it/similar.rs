//! `similar`: the whole way from inputs to clusters, and what people get wrong.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::Stdio;

use arrow_array::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::util::{Dir, assert_same_files, files, kills, run_through_kills};

fn generated(preset: &str, pages: &str) -> Dir {
    let dir = Dir::new();
    let outcome =
        dir.run(&["generate", preset, "--pages", pages, "-o", "web.jsonl", "--truth", "truth.jsonl", "-q"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(dir.line("scan web.jsonl -o atlas -q").code, 0);
    dir
}

#[test]
fn what_was_planted_is_found() {
    let dir = generated("text", "2000");
    let found = dir.json(&["similar", "atlas", "--threshold", "90%"]);
    assert_eq!(found["type"], "similar");
    assert_eq!(found["filter"], "10x8r1");
    assert!(found["near_pairs"].as_u64().unwrap() > 100, "{found}");
    assert!(found["recall"]["listed"][0].as_f64().unwrap() > 0.98, "{found}");
    assert!(found["recall"]["leaked"][0].as_f64().unwrap() < 0.02, "{found}");
    let judged = dir.line("evaluate atlas --truth truth.jsonl --min-recall 0.98 --min-precision 1");
    assert_eq!(judged.code, 0, "{}\n{}", judged.stdout, judged.stderr);
    // Nothing is lost when it is asked for everything.
    dir.json(&["similar", "atlas", "--exact"]);
    let judged = dir.line("evaluate atlas --truth truth.jsonl --min-recall 1 --min-precision 1");
    assert_eq!(judged.code, 0, "{}\n{}", judged.stdout, judged.stderr);
}

/// What each command line answers with, and that it leaves a sound atlas.
fn each(dir: &Dir, code: i32, cases: &[(&str, &str)]) {
    for (line, said) in cases {
        let outcome = dir.line(line);
        assert_eq!(outcome.code, code, "{line}: {}{}", outcome.stdout, outcome.stderr);
        let told = if code == 0 { &outcome.stdout } else { &outcome.stderr };
        assert!(told.contains(said), "{line}: {told}");
        if code == 0 {
            assert_eq!(dir.line("verify atlas --deep -q").code, 0, "{line}");
        }
    }
}

#[test]
fn every_method_says_what_it_found() {
    let dir = generated("demo", "600");
    each(
        &dir,
        0,
        &[
            ("similar atlas", "true pairs listed"),
            ("similar atlas --method exact", "exact copies"),
            ("similar atlas --preset sgm98-4", "near pairs, verified"),
            ("similar atlas --preset sgm98-2 --engine iceberg", "near pairs, verified"),
            ("similar atlas --method overlap --chunking sp --threshold 2", "near pairs, verified"),
            ("similar atlas --method paragraphs", "near-duplicates at 70 %"),
            ("similar atlas --bands 12x7 --threshold 0.85", "the filter 12x7r1"),
            ("similar atlas --filter 6x14r2", "hint: that is few"),
            ("similar atlas --cluster transitive --keep longest", "lowest resemblance to a centre"),
        ],
    );
}

/// The rows that a search writes. Its files name the recipe, which may be another.
fn rows(dir: &Dir, atlas: &str) -> BTreeMap<String, Vec<RecordBatch>> {
    let names = files(&dir.path(atlas)).into_keys();
    let names =
        names.filter(|name| ["pairs", "cluster", "copies"].iter().any(|table| name.starts_with(table)));
    let read = |name: String| {
        let file = File::open(dir.path(atlas).join(&name)).unwrap();
        let batches = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        (name, batches.map(Result::unwrap).collect())
    };
    names.map(read).collect()
}

/// Every search of the papers on an atlas without chunks, and on one that has them all.
#[test]
fn chunks_made_on_demand_give_the_same_rows() {
    for search in [
        "--threshold 0.9",
        "--threshold 0.8",
        "--threshold 0.5 --cluster transitive",
        "--exact --threshold 0.7",
        "--preset sgm98-2",
        "--preset sgm98-4",
        "--method overlap --chunking sp --threshold 2",
        "--method paragraphs",
        "--iterations 2 --of 5",
    ] {
        let dir = generated("demo", "600");
        assert_eq!(dir.line("scan web.jsonl -o whole -q --recipe papers").code, 0);
        let found = |atlas: &str| {
            let mut found = dir.json(&format!("similar {atlas} {search}").split(' ').collect::<Vec<_>>());
            let named = ["seconds", "cpu_seconds", "peak_memory", "atlas", "recall", "texts_read_again"];
            named.iter().for_each(|name| drop(found.as_object_mut().unwrap().remove(*name)));
            assert!(
                found["near_pairs"].as_u64().unwrap() > 0 || !search.starts_with("--threshold"),
                "{found}"
            );
            found
        };
        assert_eq!(found("atlas"), found("whole"), "{search}");
        let [made, kept] = ["atlas", "whole"].map(|atlas| rows(&dir, atlas));
        assert!(!kept.is_empty() && made == kept, "{search}");
    }
}

/// A kill after a commit in the middle of making chunks: the next run resumes there.
#[test]
fn kills_while_chunks_are_made_do_not_change_a_byte() {
    let dir = generated("zipf", "4000");
    let scan = |atlas: &str| {
        let outcome = dir.line(&format!("scan web.jsonl -o {atlas} -q --overwrite --task-bytes 20000"));
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    };
    let preset = ["--preset", "sgm98-4", "--commit-bytes", "60000", "--no-recall", "--threads", "2"];
    let similar = |atlas: &str| dir.onionskin(&[&["similar", atlas, "-v"], preset.as_slice()].concat());
    let taken_up = "going on where an earlier run stopped";
    scan("whole");
    let whole = similar("whole").output().unwrap();
    let said = String::from_utf8_lossy(&whole.stderr);
    assert!(whole.status.success() && !said.contains(taken_up), "{said}");
    let expected = files(&dir.path("whole"));
    assert!(expected.keys().filter(|name| name.contains("chunks/l4/")).count() > 10, "{:?}", expected.keys());
    let journal = dir.path("killed/.staging/chunks/journal");
    let commits = || std::fs::read(&journal).map_or(0, |bytes| bytes.iter().filter(|b| **b == b'\n').count());
    let was_resumed = (2..50).any(|least| {
        scan("killed");
        let mut child = similar("killed").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while commits() <= least && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let rest = similar("killed").output().unwrap();
        let said = String::from_utf8_lossy(&rest.stderr);
        assert!(rest.status.success(), "{said}");
        assert_same_files(&files(&dir.path("killed")), &expected, &format!("after {least} commits"));
        said.contains(taken_up)
    });
    assert!(was_resumed, "no kill hit the middle");
}

#[test]
fn mistakes_are_told() {
    let dir = generated("short", "50");
    each(
        &dir,
        2,
        &[
            ("similar nowhere", "nowhere"),
            ("similar atlas --threshold 2", "as in 0.9 or 90%"),
            ("similar atlas --method magic", "exact, overlap, resemblance, paragraphs"),
            ("similar atlas --method overlap --threshold 0.9", "a number of chunks"),
            ("similar atlas --method overlap --chunking w4", "--threshold"),
            ("similar atlas --method overlap --chunking x4 --threshold 3", "unknown chunking `x4`"),
            ("similar atlas --method exact --exact", "belong to the method resemblance"),
            ("similar atlas --engine magic", "sort, iceberg, prefix"),
            ("similar atlas --keep best", "most-linked"),
            ("similar atlas --cluster round", "transitive, centred"),
            ("similar atlas --filter 60x60r2", "minima for the filter"),
            ("similar atlas --bands many", "20x5"),
            ("similar atlas --memory 1M", "at least 128M"),
            ("similar atlas --iterations 1", "--of"),
            ("similar atlas --of 5", "--iterations"),
            ("similar atlas --iterations 6 --of 5", "at most what --of says, 5, not 6"),
            ("similar atlas --iterations 0 --of 5", "0 is not in 1.."),
            (
                "similar atlas --iterations 1 --of 5 --method overlap",
                "belong to the method paragraphs, not to overlap",
            ),
            (
                "similar atlas --iterations 1 --of 5 --method resemblance",
                "belong to the method paragraphs, not to resemblance",
            ),
            ("similar atlas --iterations 1 --of 5 --threshold 0.5", "no --threshold"),
            ("similar atlas --iterations 1 --of 5 --exact", "not to paragraphs"),
            ("similar atlas --iterations 1 --of 5 --preset sgm98-4", "cannot be used with"),
            ("similar atlas --iterations 1 --of 5 --for-report", "no level for reports"),
        ],
    );
}

#[test]
fn an_empty_atlas_has_no_pairs() {
    let dir = Dir::new();
    dir.write("in.jsonl", "");
    assert_eq!(dir.line("scan in.jsonl -o atlas -q").code, 1);
    for method in ["resemblance", "overlap", "paragraphs", "exact"] {
        let found = dir.json(&["similar", "atlas", "--method", method]);
        assert_eq!(
            (found["near_pairs"].as_u64(), found["clusters"].as_u64()),
            (Some(0), Some(0)),
            "{method}"
        );
    }
}

#[test]
fn kills_at_random_moments_do_not_change_a_byte() {
    let dir = generated("zipf", "6000");
    // A search that is done would not be done again.
    let similar =
        || dir.onionskin(&["similar", "atlas", "-q", "--threads", "2", "--threshold", "0.8", "--overwrite"]);
    let start = std::time::Instant::now();
    assert!(similar().stdout(Stdio::null()).status().unwrap().success());
    let whole = start.elapsed();
    let expected = files(&dir.path("atlas"));
    let killed = run_through_kills(similar, whole, kills());
    // The last one may have ended before it could be killed, or been finished by an earlier one:
    // once more, in peace.
    assert!(similar().stdout(Stdio::null()).status().unwrap().success());
    assert_same_files(&files(&dir.path("atlas")), &expected, &format!("after {killed} kills"));
}

#[test]
fn the_first_iterations_estimate_all() {
    let dir = Dir::new();
    let paragraph = |n: usize| format!("This is thing{n}. It goes on with word{n}. It ends at place{n}. ");
    // Every third text is there in two orders, every fifth twice as it is.
    let texts = (0..600).flat_map(|n| {
        let (one, other) = (paragraph(2 * n), paragraph(2 * n + 1));
        let copies = if n % 5 == 0 { 2 } else { 1 };
        let mut texts = vec![format!("{one}{other}"); copies];
        texts.extend((n % 3 == 0).then(|| format!("{other}{one}")));
        texts
    });
    let lines: Vec<String> = texts.map(|text| serde_json::json!({ "text": text }).to_string()).collect();
    dir.write("in.jsonl", lines.join("\n"));
    assert_eq!(dir.line("scan in.jsonl -o atlas -q").code, 0);
    let whole = dir.json(&["similar", "atlas", "--method", "paragraphs"]);
    let number = |value: &serde_json::Value| value.as_u64().unwrap();
    let in_all = number(&whole["paragraphs"]["duplicates"]) + number(&whole["exact_copies"]);
    assert!(whole["iterations"].is_null() && in_all == 320, "{whole}");
    let first = dir.json(&["similar", "atlas", "--iterations", "10", "--of", "50"]);
    assert_eq!(first["method"], "paragraphs");
    let found = &first["iterations"];
    assert_eq!((number(&found["iterations"]), number(&found["of"])), (10, 50));
    let ends = |name: &str| [0, 1, 2].map(|at| found[name][at].as_f64().unwrap());
    let [value, low, high] = ends("estimated_duplicates");
    assert!(
        low <= value && value <= high && low < in_all as f64 && (in_all as f64) < high,
        "{found}, {in_all}"
    );
    assert!(number(&found["duplicates"]) < in_all);
    assert!((ends("estimated_share")[0] - value / found["documents"].as_f64().unwrap()).abs() < 1e-9);
    assert_eq!(dir.line("verify atlas --deep -q").code, 0);
    // All of them are no estimate.
    let all = dir.json(&["similar", "atlas", "--method", "paragraphs", "--iterations", "50", "--of", "50"]);
    assert_eq!(all["iterations"]["duplicates"], in_all);
    assert_eq!(
        all["iterations"]["estimated_duplicates"],
        serde_json::json!([in_all as f64, in_all as f64, in_all as f64])
    );
    let said = dir.line("similar atlas --iterations 25 --of 50");
    assert!(said.stdout.contains("after 25 of 50 iterations"), "{}", said.stdout);
    assert!(said.stdout.contains("estimated share of duplicates"), "{}", said.stdout);
}
