//! Lists and copies, from the command line.

use std::path::Path;

use onionskin_core::{ClusterId, DocId};
use onionskin_store::staging::{StageKind, StageParams, Staging};
use onionskin_store::table::{ClusterRow, ClusterStatsRow, CopyKind};
use onionskin_store::{Atlas, StageName, Table};
use serde_json::{Value, json};

use crate::util::{Dir, files, gzip, parquet_file, strings};

/// Clusters of the documents with equal text, written as a search for copies would.
fn cluster(atlas: &Path, how: &str) {
    let mut by_text = std::collections::BTreeMap::<u64, Vec<DocId>>::new();
    let mut documents = Atlas::open(atlas).unwrap().documents().unwrap();
    while let Some(batch) = documents.next_batch().unwrap() {
        for row in batch.rows() {
            by_text.entry(row.text_fp.unwrap_or_default()).or_default().push(row.doc);
        }
    }
    let mut clusters: Vec<Vec<DocId>> = by_text.into_values().filter(|docs| docs.len() > 1).collect();
    clusters.sort();
    let tables = vec![Table::Pairs, Table::Clusters, Table::ClusterStats];
    let params = StageParams::new(StageName::Similar, json!({ "cluster": how }), "test", tables);
    let (mut staging, _) = Staging::open(atlas, StageParams { kind: StageKind::Extend, ..params }).unwrap();
    for (cluster, docs) in ClusterId::MIN.onward().zip(&clusters) {
        for doc in docs {
            let (is_centre, kind) = (*doc == docs[0], CopyKind::Exact);
            let row = ClusterRow { cluster, doc: *doc, is_centre, resemblance_to_centre: 1.0, kind };
            staging.clusters().unwrap().push(&row).unwrap();
        }
        let copies = docs.len() as u64 - 1;
        let row = ClusterStatsRow {
            cluster,
            centre: docs[0],
            documents: docs.len() as u64,
            exact_copies: copies,
            sites: 1,
            same_site: copies,
            cross_site: 0,
            lowest_resemblance: 1.0,
        };
        staging.cluster_stats().unwrap().push(&row).unwrap();
    }
    staging.commit(json!({})).unwrap();
    let stage = json!({ "cluster": how });
    staging
        .publish(|manifest| {
            manifest.stages.set_raw(StageName::Similar, stage);
        })
        .unwrap();
}

fn line(id: u32, text: &str) -> String {
    format!("{{\"id\":\"{id}\",\"url\":\"http://a.example/{id}\",\"text\":\"{text}\"}}\n")
}

/// Three lines of which the last is a copy of the first.
fn roses(how: &str) -> Dir {
    let dir = Dir::new();
    let lines = [line(1, "a rose is a rose"), line(2, "something else"), line(3, "A rose is a rose.")];
    dir.write("in/a.jsonl", lines.concat());
    assert_eq!(dir.run(&["scan", "in", "-o", "atlas"]).code, 0);
    cluster(&dir.path("atlas"), how);
    dir
}

fn lines(dir: &Dir, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(dir.path(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn copies_go_and_the_reason_is_told() {
    let dir = roses("centred");
    let outcome = dir.run(&["dedup", "atlas", "-o", "out"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert!(
        outcome.stdout.contains("│ removed") && outcome.stdout.contains("1 files written"),
        "{}",
        outcome.stdout
    );
    let expected = [line(1, "a rose is a rose"), line(2, "something else")].concat();
    assert_eq!(std::fs::read_to_string(dir.path("out/shards/a.jsonl")).unwrap(), expected);
    let removed = lines(&dir, "out/removed.jsonl");
    assert_eq!((&removed[0]["id"], &removed[0]["kept_id"]), (&json!("3"), &json!("1")));
    assert_eq!(lines(&dir, "out/kept.jsonl").len(), 2);
    let names: Vec<String> = files(&dir.path("out")).into_keys().collect();
    assert_eq!(names, ["dedup.json", "kept.jsonl", "removed.jsonl", "shards/a.jsonl"]);

    // The same again is nothing to do; a folder with other things in it is not touched.
    dir.write("mine/thesis.txt", "do not lose this");
    assert_eq!(dir.run(&["dedup", "atlas", "-o", "out"]).code, 0);
    let again = dir.run(&["dedup", "atlas", "-o", "mine"]);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("is not empty") && again.stderr.contains("hint"), "{}", again.stderr);
}

#[test]
fn json_and_dry_runs() {
    let dir = roses("centred");
    let dry = dir.json(&["dedup", "atlas", "--dry-run"]);
    assert_eq!(
        (&dry["type"], &dry["removed"]["documents"], &dry["output"]),
        (&json!("dedup"), &json!(1), &Value::Null)
    );
    let mut names: Vec<_> =
        std::fs::read_dir(dir.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["atlas", "in"], "a dry run leaves nothing");
    let wet = dir.json(&["dedup", "atlas", "-o", "out", "--shards", "none"]);
    assert_eq!(
        (&wet["removed"], &wet["files"], &wet["left_out"]),
        (&dry["removed"], &json!(0), &json!({ "jsonl": 1 }))
    );
}

#[test]
fn attributes_and_annotations() {
    let dir = roses("centred");
    assert_eq!(dir.run(&["dedup", "atlas", "-o", "dolma", "--dolma", "copies"]).code, 0);
    assert!(!dir.path("dolma/shards").exists());
    let attributes = lines(&dir, "dolma/attributes/copies/a.jsonl");
    assert_eq!(attributes[1], json!({ "id": "2", "attributes": { "copies__near_dup": [] } }));
    assert_eq!(attributes[2]["attributes"]["copies__near_dup"], json!([[0, 17, 1.0]]));

    assert_eq!(dir.run(&["dedup", "atlas", "-o", "notes", "--annotate"]).code, 0);
    let annotated = lines(&dir, "notes/shards/a.jsonl");
    assert_eq!(
        (annotated.len(), &annotated[2]["dup_of"], &annotated[0]["dup_size"]),
        (3, &json!("1"), &json!(2))
    );
    assert_eq!(annotated[1].get("dup_cluster"), None);

    // The annotated file, annotated again after its first line has become unique.
    let notes = std::fs::read_to_string(dir.path("notes/shards/a.jsonl")).unwrap();
    dir.write("again/a.jsonl", notes.replacen("a rose is", "a lily is", 1));
    assert_eq!(dir.run(&["scan", "again", "-o", "atlas2"]).code, 0);
    cluster(&dir.path("atlas2"), "centred");
    assert_eq!(dir.run(&["dedup", "atlas2", "-o", "unique", "--annotate"]).code, 0);
    let expected = [line(1, "a lily is a rose"), line(2, "something else"), line(3, "A rose is a rose.")];
    assert_eq!(std::fs::read_to_string(dir.path("unique/shards/a.jsonl")).unwrap(), expected.concat());
    dir.write("again/a.jsonl", notes.clone());
    assert_eq!(dir.run(&["scan", "again", "-o", "atlas3"]).code, 0);
    cluster(&dir.path("atlas3"), "centred");
    assert_eq!(dir.run(&["dedup", "atlas3", "-o", "same", "--annotate"]).code, 0);
    assert_eq!(std::fs::read_to_string(dir.path("same/shards/a.jsonl")).unwrap(), notes);
}

/// Copies that are annotated, scanned and annotated again are the same files.
#[test]
fn annotating_twice_changes_nothing() {
    let dir = Dir::new();
    let text = |n: usize, at: usize| {
        let words =
            (0..80).map(|word| if word == at { "another".to_owned() } else { format!("w{n}x{word}") });
        words.collect::<Vec<_>>().join(" ")
    };
    let texts = [text(1, 80), text(2, 80), text(1, 3), text(1, 80), text(2, 70), text(3, 80)];
    let record = |(n, text): (usize, &String)| {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{text}");
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{n}\r\n\
             WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Record-ID: <urn:uuid:12345678-1234-1234-1234-{n:012}>\r\n\
             Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let records: Vec<String> = texts.iter().enumerate().map(record).collect();
    dir.write("once/plain.warc", records.concat());
    let members: Vec<u8> = records.iter().flat_map(|record| gzip(record.as_bytes())).collect();
    dir.write("once/members.warc.gz", members);
    let ids: Vec<String> = (0..texts.len()).map(|n| format!("p{n}")).collect();
    let columns = [("id", &ids[..]), ("text", &texts[..])].map(|(name, values)| {
        (name, strings(&values.iter().map(|value| Some(value.as_str())).collect::<Vec<_>>()))
    });
    dir.write("once/rows.parquet", parquet_file(columns.into()));
    for name in ["plain.warc", "members.warc.gz", "rows.parquet"] {
        let annotate = |input: &str, atlas: &str, out: &str| {
            let run = ["run", input, "-o", atlas, "--threshold", "0.7", "--no-report", "-q"];
            assert_eq!(dir.run(&run).code, 0, "{input}");
            let outcome = dir.json(&["dedup", atlas, "-o", out, "--annotate", "--shards", "all"]);
            let bytes = std::fs::read(dir.path(&format!("{out}/shards/{name}"))).unwrap();
            (outcome, bytes)
        };
        let (first, once) = annotate(&format!("once/{name}"), &format!("{name}-1"), &format!("{name}-out1"));
        let input = format!("twice/{name}");
        dir.write(&input, &once);
        let (second, twice) = annotate(&input, &format!("{name}-2"), &format!("{name}-out2"));
        for field in ["metadata", "annotated"] {
            assert_eq!(first[field], second[field], "{name}");
        }
        assert!(first["metadata"].as_u64().unwrap() + first["annotated"].as_u64().unwrap() >= 3, "{first}");
        assert!(once.len() > std::fs::metadata(dir.path(&format!("once/{name}"))).unwrap().len() as usize);
        assert!(once == twice, "{name}: {} and {} bytes", once.len(), twice.len());
    }
}

#[test]
fn transitive_clusters_can_be_annotated() {
    let dir = roses("transitive");
    let outcome = dir.run(&["dedup", "atlas", "-o", "out"]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.contains("transitive") && outcome.stderr.contains("--annotate"),
        "{}",
        outcome.stderr
    );
    let summary = dir.json(&["dedup", "atlas", "-o", "out", "--annotate"]);
    assert_eq!((&summary["annotated"], &summary["removed"]["documents"]), (&json!(2), &json!(0)));
    assert_eq!(lines(&dir, "out/shards/a.jsonl")[2]["dup_of"], "1");
    assert_eq!((lines(&dir, "out/kept.jsonl").len(), lines(&dir, "out/removed.jsonl").len()), (3, 0));
}

#[test]
fn a_rule_that_cannot_apply_is_an_error() {
    let dir = roses("centred");
    let check = |rule: &str, wanted: &[&str]| {
        for arguments in [["dedup", "atlas", "--dry-run"], ["similar", "atlas", "--no-recall"]] {
            let outcome = dir.run(&[arguments.as_slice(), &["--keep", rule]].concat());
            assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{arguments:?}");
            for wanted in [wanted, &["\nhint: "]].concat() {
                assert!(outcome.stderr.contains(wanted), "{rule}: {}", outcome.stderr);
            }
        }
    };
    check("earliest", &["the date of a fetch", "none of the 3 documents"]);
    check("most-linked", &["links", "none of the 3 documents"]);
    check("prefer:a.jsonl", &["\"a.jsonl\"", "1 inputs (in/a.jsonl) and 1 hosts (a.example)"]);
    check("prefer:a.example,b.example", &["\"b.example\", but no input"]);
    for rule in
        ["first", "smallest", "longest", "prefer:a.example", "prefer:in/", "prefer:http://a.example/3"]
    {
        let summary = dir.json(&["dedup", "atlas", "--dry-run", "--keep", rule]);
        assert_eq!(summary["removed"]["documents"], 1, "{rule}");
    }
}

#[test]
fn paths_keep_their_partitions_and_never_collide() {
    let dir = Dir::new();
    dir.write("web/date=2024/lang=en/a.jsonl", line(1, "a rose is a rose"));
    let scanned = dir.run(&["scan", "web", "-o", "atlas"]);
    assert_eq!(scanned.code, 0, "{}", scanned.stderr);
    cluster(&dir.path("atlas"), "centred");
    assert_eq!(dir.run(&["dedup", "atlas", "-o", "one"]).code, 0);
    let names: Vec<String> = files(&dir.path("one/shards")).into_keys().collect();
    assert_eq!(names, ["date=2024/lang=en/a.jsonl"]);

    // One path below two places.
    dir.write("here/web/a.jsonl", line(1, "a rose is a rose"));
    dir.write("web/a.jsonl", line(2, "something else"));
    for (nth, second) in ["here/../web/a.jsonl", "./web/a.jsonl"].into_iter().enumerate() {
        let (atlas, out) = (format!("atlas{nth}"), format!("out{nth}"));
        let first = if nth == 0 { "here/web/a.jsonl" } else { "web/a.jsonl" };
        let scanned = dir.run(&["scan", first, second, "-o", &atlas]);
        assert_eq!(scanned.code, 0, "{}", scanned.stderr);
        cluster(&dir.path(&atlas), "centred");
        let outcome = dir.run(&["dedup", &atlas, "-o", &out]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let names: Vec<String> = files(&dir.path(&format!("{out}/shards"))).into_keys().collect();
        assert_eq!(names, ["a-2.jsonl", "a.jsonl"]);
    }
}

/// What a data card says, against sizes and words that are counted here.
#[test]
fn words_and_bytes_that_left_the_files() {
    let dir = Dir::new();
    let texts = ["a rose is a rose", "something else", "A rose is, a rose.", "a lily"];
    let input: Vec<String> = (1..).zip(texts).map(|(id, text)| line(id, text)).collect();
    dir.write("in/a.jsonl", input.concat());
    dir.write("in/b.csv", format!("id,text\r\n9,\"{}\"\r\n", texts[0]));
    assert_eq!(dir.run(&["scan", "in", "-o", "atlas"]).code, 0);
    cluster(&dir.path("atlas"), "centred");
    let summary = dir.json(&["dedup", "atlas", "-o", "out", "--shards", "all"]);
    let size = |folder: &str| files(&dir.path(folder)).values().map(Vec::len).sum::<usize>();
    let naive = size("in") - size("out/shards");
    assert!(naive > input[2].len());
    assert_eq!(summary["removed_record_bytes"], naive);
    assert_eq!(
        (&summary["kept"]["tokens"], &summary["removed"]["tokens"]),
        (&json!(5 + 2 + 2), &json!(5 + 5))
    );
    let manifest = &json_of(&dir, "out/dedup.json");
    for key in ["kept", "removed", "removed_record_bytes"] {
        assert_eq!(manifest[key], summary[key], "{key}");
    }
    let shown = dir.run(&["dedup", "atlas", "-o", "out2", "--shards", "all"]).stdout;
    assert!(shown.contains("┆ words") && shown.contains(&format!("{naive} B left out")), "{shown}");
}

fn json_of(dir: &Dir, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(dir.path(name)).unwrap()).unwrap()
}

#[test]
fn mistakes_are_errors_that_help() {
    let dir = roses("transitive");
    let check = |arguments: &[&str], wanted: &str| {
        let outcome = dir.run(arguments);
        assert_eq!(outcome.code, 2, "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stdout.is_empty());
        assert!(outcome.stderr.contains(wanted), "{arguments:?}: {}", outcome.stderr);
        assert!(!dir.path("out").exists());
    };
    check(&["dedup", "atlas", "-o", "out"], "--cluster centred");
    check(&["dedup", "atlas"], "--output");
    check(&["dedup", "nowhere", "-o", "out"], "nowhere");
    check(&["dedup", "atlas", "-o", "out", "--shards", "xml"], "known are all, none, jsonl");
    dir.write("plain/a.jsonl", line(1, "a rose"));
    assert_eq!(dir.run(&["scan", "plain", "-o", "unclustered"]).code, 0);
    check(&["dedup", "unclustered", "-o", "out"], "onionskin similar");

    let dir = roses("centred");
    std::fs::remove_file(dir.path("in/a.jsonl")).unwrap();
    let outcome = dir.run(&["dedup", "atlas", "-o", "out"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("in/a.jsonl") && outcome.stderr.contains("--base"), "{}", outcome.stderr);
    dir.write(
        "moved/in/a.jsonl",
        [line(1, "a rose is a rose"), line(2, "something else"), line(3, "A rose is a rose.")].concat(),
    );
    assert_eq!(dir.run(&["dedup", "atlas", "-o", "out", "--base", "moved"]).code, 0);
}

/// `kill -9` in the middle leaves a folder that the next run takes, and the results are the same.
#[test]
fn a_killed_run_is_cleared_away_by_the_next() {
    let dir = Dir::new();
    let generate =
        ["generate", "mirrors", "--pages", "4000", "--format", "jsonl", "-o", "web", "--compress", "gz"];
    assert_eq!(dir.run(&generate).code, 0);
    assert_eq!(dir.run(&["scan", "web", "-o", "atlas", "--recipe", "w4-rabin64-6x14r2"]).code, 0);
    cluster(&dir.path("atlas"), "centred");
    let start = std::time::Instant::now();
    assert_eq!(dir.run(&["dedup", "atlas", "-o", "whole"]).code, 0);
    let whole = start.elapsed();
    for share in [0.2, 0.4, 0.6, 0.8, 0.95] {
        let mut child = dir
            .onionskin(&["dedup", "atlas", "-o", "killed", "-q"])
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(whole.mul_f64(share));
        child.kill().unwrap();
        child.wait().unwrap();
        // It ended before it could be killed, or as good as ended.
        if dir.path("killed/dedup.json").exists() {
            let _ = std::fs::remove_dir_all(dir.path("killed/.unfinished"));
            break;
        }
    }
    if !dir.path("killed/dedup.json").exists() {
        let outcome = dir.run(&["dedup", "atlas", "-o", "killed"]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    }
    assert!(files(&dir.path("killed")) == files(&dir.path("whole")));
}
