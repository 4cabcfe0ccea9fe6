use onionskin_core::ClusterId;
use onionskin_store::StageName;
use onionskin_store::table::CopyKind;
use onionskin_testkit::{Preset, Web, WebSpec};

use super::testing::{Bench, exact, near, pair};
use super::*;
use onionskin_scan::testing::files;

const LINES: &str = "{\"id\":\"a\",\"url\":\"http://one.example/a\",\"text\":\"a rose is a rose\"}
{\"id\":\"b\",\"url\":\"http://one.example/b\",\"text\":\"A rose is a rose!\"}
{\"id\":\"c\",\"url\":\"http://two.example/c\",\"text\":\"a rose is a rose\"}
{\"id\":\"d\",\"text\":\"something else\"}
not json
{\"id\":\"e\",\"url\":\"http://two.example/e\",\"text\":\"something else again\"}
";

fn roses() -> Bench {
    let bench = Bench::new();
    bench.write("in/a.jsonl", LINES);
    bench.scan(|_| {});
    // The centre of the second cluster comes after its copy.
    bench.clusters(&[exact(0, &[1, 2]), near(4, &[(3, 0.5)])], &[pair(3, 4, 0.5, 0.75, 0.6)], "centred");
    bench
}

#[test]
fn digests_tell_copies_that_are_equal_to_the_byte() {
    let bench = Bench::new();
    bench.write("in/a.jsonl", LINES);
    bench.scan(|params| params.options.text_digests = true);
    bench.clusters(&[exact(0, &[1, 2])], &[], "centred");
    bench.dedup(|_| {}).unwrap();
    let removed = bench.out_lines("removed.jsonl");
    assert_eq!(removed[0]["reason"], "the same text as a, in another payload");
    assert_eq!(removed[1]["reason"], "the same payload as a");
}

#[test]
fn lists_tell_who_stays_and_why_the_others_go() {
    let bench = roses();
    let summary = bench.dedup(|_| {}).unwrap();
    let kept = bench.out_lines("kept.jsonl");
    assert_eq!(kept.len(), 2);
    let source = bench.path("in/a.jsonl").display().to_string();
    assert_eq!(
        kept[0],
        json!({"doc": 0, "id": "a", "url": "http://one.example/a", "source": source, "offset": 0, "cluster": 0, "size": 3})
    );
    let removed = bench.out_lines("removed.jsonl");
    assert_eq!(removed.iter().map(|line| &line["id"]).collect::<Vec<_>>(), ["b", "c", "d"]);
    assert_eq!(removed[0]["reason"], "the same text as a");
    assert_eq!(removed[1]["reason"], "the same text as a");
    assert_eq!(
        removed[2],
        json!({
            "doc": 3, "id": "d", "url": null, "source": source, "offset": removed[2]["offset"], "cluster": 1,
            "size": 2, "kind": "near", "kept_doc": 4, "kept_id": "e", "kept_url": "http://two.example/e",
            "same_site": false, "resemblance": 0.5, "containment": 0.75, "containment_of_kept": 0.6,
            "method": "resemblance", "reason": "resemblance 0.5000 to e, which has 75.0 % of it",
        })
    );
    let lines: Vec<&str> = LINES.split_inclusive('\n').collect();
    assert_eq!(bench.out_text("shards/a.jsonl"), [lines[0], lines[4], lines[5]].concat());

    assert_eq!((summary.kept.documents, summary.removed.documents, summary.clusters), (2, 3, 2));
    assert_eq!((summary.kept.tokens, summary.removed.tokens), (8, 12));
    assert_eq!(summary.removed_record_bytes, [lines[1], lines[2], lines[3]].concat().len() as u64);
    assert_eq!((summary.removed_exact.documents, summary.removed_near.documents), (2, 1));
    assert_eq!((summary.removed_same_site.documents, summary.removed_cross_site.documents), (1, 2));
    assert_eq!((summary.files, summary.other_records, summary.removed_records), (1, 1, 3));
    let told: Value = serde_json::from_slice(&bench.out("dedup.json")).unwrap();
    assert_eq!((&told["removed"]["documents"], &told["files"][0]["removed"]), (&json!(3), &json!(3)));
    assert_eq!((&told["removed"]["tokens"], &told["kept"]["tokens"]), (&json!(12), &json!(8)));
    assert_eq!(told["removed_record_bytes"], told["files"][0]["removed_bytes"]);
    assert!(!bench.path("out/.unfinished").exists());
}

#[test]
fn a_dry_run_writes_nothing_and_says_the_same() {
    let bench = roses();
    let dry = bench.dedup(|params| params.dry_run = true).unwrap();
    assert!(!bench.path("out").exists());
    let wet = bench.dedup(|params| params.copying = Copying::None).unwrap();
    assert!(!bench.path("out/shards").exists());
    let same = |summary: DedupSummary| {
        (summary.kept, summary.removed, summary.removed_near, summary.removed_cross_site, summary.clusters)
    };
    assert_eq!(same(dry), same(wet));
}

/// A web in three shapes, with clusters of every kind; nothing that only speeds up changes a byte.
#[test]
fn threads_and_memory_do_not_change_a_byte() {
    let bench = Bench::new();
    let web = Web::new(&WebSpec::of(Preset::Demo, 600, 7)).unwrap();
    for (nth, range) in [(0..200), (200..350), (350..web.n_pages())].into_iter().enumerate() {
        let mut lines = Vec::new();
        web.write_jsonl(&mut lines, range, &mut |_, _| {}).unwrap();
        let (name, lines) = match nth {
            1 => ("in/x/b.jsonl.gz", testing::gzip(&lines)),
            2 => ("in/x/c.jsonl.zst", zstd::encode_all(lines.as_slice(), 3).unwrap()),
            _ => ("in/a.jsonl", lines),
        };
        bench.write(name, lines);
    }
    let clusters: Vec<_> = (0..100)
        .map(|nth| match nth % 2 {
            0 => exact(nth, &[nth + 200, nth + 400]),
            _ => near(nth + 300, &[(nth, 0.5), (nth + 400, 0.5 + f64::from(nth) / 1000.0)]),
        })
        .collect();
    bench.atlas(&clusters);
    let mut expected = None;
    for (threads, mib) in [(1, 64), (2, 256), (7, 1024)] {
        bench.clear();
        let summary = bench
            .dedup(|params| {
                params.threads = threads;
                params.memory = MemoryBudget::from_mib(mib);
                params.dolma = Some("dup".to_owned());
            })
            .unwrap();
        assert_eq!((summary.files, summary.removed.documents), (6, 200));
        let found = files(&bench.path("out"));
        assert_eq!(found.len(), 9, "{:?}", found.keys());
        assert!(&found == expected.get_or_insert_with(|| found.clone()), "{threads} threads, {mib} MiB");
    }
}

#[test]
fn inputs_that_changed_are_named() {
    let check = |change: &dyn Fn(&Bench), wanted: &[&str]| {
        let bench = roses();
        change(&bench);
        let error = bench.dedup(|_| {}).unwrap_err().to_string();
        assert!(wanted.iter().all(|wanted| error.contains(wanted)), "{error}");
        assert!(!bench.path("out").exists(), "nothing is left behind");
    };
    let input = |bench: &Bench| bench.path("in/a.jsonl");
    check(&|bench| fs::remove_file(input(bench)).unwrap(), &["a.jsonl", "not found", "moved to"]);
    check(&|bench| fs::write(input(bench), &LINES[..200]).unwrap(), &["a.jsonl", "200 bytes", "scan again"]);
    // The same length, other lines.
    let moved = LINES.replace("\n", " ");
    check(&|bench| fs::write(input(bench), &moved).unwrap(), &["a.jsonl", "not the document"]);
    // Every line as long as it was, and two of them in each other's place: without a comparison the
    // unique one would go for the copy.
    let swapped = LINES.replace("A rose is a rose!", "another thing yes");
    assert_eq!(swapped.len(), LINES.len());
    check(
        &|bench| fs::write(input(bench), &swapped).unwrap(),
        &["a.jsonl, byte 66", "not the document that the scan found", "scan again"],
    );
    // The kept one counts as well: what is removed is a copy of it.
    let other = LINES.replacen("a rose is a rose", "a lily is a lily", 1);
    check(&|bench| fs::write(input(bench), &other).unwrap(), &["a.jsonl, byte 0", "not the document"]);
    // The same length, another kind.
    let page = format!("WARC/1.0\r\n{}", " ".repeat(LINES.len() - 10));
    check(&|bench| fs::write(input(bench), &page).unwrap(), &["a.jsonl", "jsonl when it was scanned"]);
    check(
        &|bench| {
            fs::remove_file(input(bench)).unwrap();
            fs::create_dir(input(bench)).unwrap();
        },
        &["a.jsonl", "not a file"],
    );
}

/// It was copied without a word, whatever it was now.
#[test]
fn a_changed_document_of_no_cluster_is_found() {
    use std::time::{Duration, SystemTime};
    let bench = Bench::new();
    let input = bench.write("in/a.jsonl", LINES);
    bench.scan(|_| {});
    bench.clusters(&[exact(0, &[1, 2])], &[], "centred");
    let written = |text: &str, time: SystemTime| {
        fs::write(&input, text).unwrap();
        File::options().append(true).open(&input).unwrap().set_modified(time).unwrap();
        bench.clear();
        bench.dedup(|_| {})
    };
    let (before, after) = (SystemTime::UNIX_EPOCH, SystemTime::now() + Duration::from_secs(9));
    let changed = LINES.replace("something else again", "something odd, again");
    assert_eq!(changed.len(), LINES.len());
    let error = written(&changed, after).unwrap_err().to_string();
    assert!(error.contains("a.jsonl, byte ") && error.contains("not the document"), "{error}");
    // Another time alone is no error, and a file of before the scan is not read again.
    assert_eq!(written(LINES, after).unwrap().unchecked, 0);
    assert_eq!(written(&changed, before).unwrap().unchecked, 2);
}

#[test]
fn inputs_that_are_not_copied_need_not_be_there() {
    let bench = roses();
    fs::remove_file(bench.path("in/a.jsonl")).unwrap();
    let summary = bench.dedup(|params| params.copying = Copying::None).unwrap();
    assert_eq!(summary.left_out, [("jsonl".to_owned(), 1)].into());
    assert_eq!(bench.out_lines("removed.jsonl").len(), 3);
}

#[test]
fn folders_of_files_get_only_the_lists() {
    let bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.write(&format!("in/{name}.html"), "<p>a rose is a rose");
    }
    bench.write("in/z.jsonl", "{\"text\":\"a rose is a rose\"}\n");
    bench.atlas(&[exact(0, &[1, 2, 3])]);
    let summary = bench.dedup(|_| {}).unwrap();
    assert_eq!(summary.left_out, [("tree".to_owned(), 1)].into());
    assert_eq!(summary.removed.documents, 3);
    assert_eq!(bench.out("shards/z.jsonl"), b"");
}

#[test]
fn memberships_that_cannot_be_are_errors() {
    let bench = roses();
    let member = |doc, centre| {
        let kind = CopyKind::Near;
        let (doc, centre, cluster) = (DocId(doc), DocId(centre), ClusterId(0));
        Ok::<_, io::Error>(Membership { doc, cluster, size: 2, centre, resemblance: 0.9, kind })
    };
    let check = |members: Vec<io::Result<Membership>>, wanted: &str| {
        let error =
            dedup_by(&bench.params(), members, &onionskin_store::progress::Quiet).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
        assert!(!bench.path("out").exists());
    };
    check(vec![member(1, 1), member(0, 1)], "do not ascend");
    check(vec![member(1, 1), member(1, 1)], "do not ascend");
    check(vec![member(0, 0), member(3, 2)], "not a centre itself");
    check(vec![member(0, 0), member(1, 1), member(2, 1), member(3, 2)], "not a centre itself");
    check(vec![member(0, 0), member(99, 99)], "not in the table");
    check(vec![member(0, 0), member(99, 0)], "not in the table");
    check(vec![member(0, 0), Err(io::Error::other("the producer failed"))], "the producer failed");
    // And one that is well.
    let summary =
        dedup_by(&bench.params(), vec![member(0, 4), member(4, 4)], &onionskin_store::progress::Quiet)
            .unwrap();
    assert_eq!(summary.removed.documents, 1);
}

#[test]
fn bad_parameters_fail_before_anything_is_read() {
    let bench = roses();
    let error = bench.dedup(|params| params.memory = MemoryBudget::from_mib(1)).unwrap_err();
    assert!(matches!(error, DedupError::TooLittleMemory { .. }), "{error}");
    for name in ["", "a/b", "..", "näme"] {
        let error = bench.dedup(|params| params.dolma = Some(name.to_owned())).unwrap_err();
        assert!(matches!(error, DedupError::AttributeName { .. }), "{error}");
    }
    bench.write("out/thesis.txt", "do not lose this");
    assert!(matches!(bench.dedup(|_| {}), Err(DedupError::NotEmpty { .. })));
    assert_eq!(files(&bench.path("out")).len(), 1);
    // The atlas is not empty either.
    let error = bench.dedup(|params| params.output = params.atlas.clone()).unwrap_err();
    assert!(matches!(error, DedupError::NotEmpty { .. }), "{error}");
    assert!(Atlas::open(bench.path("atlas")).is_ok());
}

#[test]
fn inputs_are_found_below_another_folder() {
    let bench = Bench::new();
    bench.write("moved/in/a.jsonl", LINES);
    // As a scan leaves it that was run in a folder which is now called `moved`.
    bench.write("in/a.jsonl", LINES);
    bench.atlas(&[exact(0, &[1])]);
    let (name, relative) = (bench.path("in/a.jsonl").display().to_string(), "in/a.jsonl");
    let error = bench.dedup(|params| params.base = Some(bench.path("moved")));
    assert!(error.is_ok(), "an absolute name is not moved");
    bench.clear();
    rename_input(&bench, &name, relative);
    fs::remove_file(bench.path("in/a.jsonl")).unwrap();
    let error = bench.dedup(|_| {}).unwrap_err();
    assert!(matches!(error, DedupError::Gone { .. }), "{error}");
    bench.dedup(|params| params.base = Some(bench.path("moved"))).unwrap();
    assert_eq!(bench.out_text("shards/a.jsonl").lines().count(), LINES.lines().count() - 1);
}

/// Writes the atlas anew with another name for its input.
fn rename_input(bench: &Bench, from: &str, to: &str) {
    let atlas = Atlas::open(bench.path("atlas")).unwrap();
    let mut rows = Vec::new();
    let mut documents = atlas.documents().unwrap();
    while let Some(batch) = documents.next_batch().unwrap() {
        rows.push(batch);
    }
    let tables = vec![onionskin_store::Table::Documents];
    let params = onionskin_store::StageParams::new(StageName::Similar, json!({}), "test", tables);
    let kind = onionskin_store::staging::StageKind::Extend;
    let params = onionskin_store::StageParams { kind, overwrite: true, ..params };
    let (mut staging, _) = onionskin_store::Staging::open(atlas.dir(), params).unwrap();
    for batch in &rows {
        for mut row in batch.rows() {
            assert_eq!(row.source, from);
            row.source = to;
            staging.documents().unwrap().push(&row).unwrap();
        }
    }
    staging.commit(json!({})).unwrap();
    staging.publish(|manifest| manifest.inputs[0].name = to.to_owned()).unwrap();
}

#[test]
fn one_file_given_twice_has_two_copies() {
    let bench = Bench::new();
    let path = bench.write("in/a.jsonl", LINES).display().to_string();
    bench.scan(|params| params.inputs = vec![path.clone(), path.clone()]);
    bench.clusters(&[exact(0, &[5])], &[], "centred");
    let summary = bench.dedup(|_| {}).unwrap();
    assert_eq!((summary.kept.documents, summary.removed.documents), (9, 1));
    assert_eq!(bench.out_text("shards/a.jsonl"), LINES);
    let (_, rest) = LINES.split_once('\n').unwrap();
    assert_eq!(bench.out_text("shards/a-2.jsonl"), rest);
}

#[test]
fn transitive_clusters_are_annotated_and_never_removed() {
    let bench = roses();
    let pairs = [pair(3, 4, 0.5, 0.75, 0.6)];
    bench.clusters(&[exact(0, &[1, 2]), near(4, &[(3, 0.5)])], &pairs, "transitive");
    let refused = |change: fn(&mut DedupParams)| {
        let error = bench.dedup(change).unwrap_err().to_string();
        assert!(error.contains("transitive") && !bench.path("out").exists(), "{error}");
    };
    refused(|_| {});
    refused(|params| params.copying = Copying::None);
    // Attributes are for filters.
    refused(|params| {
        params.copying = Copying::Annotate;
        params.dolma = Some("dup".to_owned());
    });
    let summary = bench.dedup(|params| params.copying = Copying::Annotate).unwrap();
    assert_eq!((summary.annotated, summary.clusters), (5, 2));
    assert_eq!((summary.kept.documents, summary.removed.documents), (5, 0));
    let lines = bench.out_text("shards/a.jsonl");
    assert!(
        lines.contains("\"dup_cluster\":1,\"dup_size\":2,\"dup_of\":\"e\",\"dup_resemblance\":0.5}"),
        "{lines}"
    );
    assert_eq!((bench.out_lines("kept.jsonl").len(), bench.out_text("removed.jsonl").len()), (5, 0));
    // Clusters that are made anew are centred, and can be used for all.
    bench.clear();
    assert_eq!(bench.dedup(|params| params.threshold = Some(0.5)).unwrap().removed.documents, 3);
}

#[test]
fn clusters_are_made_anew_where_a_threshold_or_a_rule_is_given() {
    let bench = roses();
    let removed = |change: fn(&mut DedupParams)| {
        bench.clear();
        bench.dedup(change).map(|summary| summary.removed.documents)
    };
    assert_eq!(removed(|_| {}).unwrap(), 3);
    // The near pair has a resemblance of 0.5.
    assert_eq!(removed(|params| params.threshold = Some(0.6)).unwrap(), 2);
    assert_eq!(removed(|params| params.survivor = Some(Survivor::Longest)).unwrap(), 3);
    let told: Value = serde_json::from_slice(&bench.out("dedup.json")).unwrap();
    assert_eq!((&told["job"]["keep"], &told["job"]["threshold"]), (&json!("longest"), &json!(null)));
    for wrong in [0.0, 1.5, f64::NAN] {
        let error = bench.dedup(|params| params.threshold = Some(wrong)).unwrap_err().to_string();
        assert_eq!(error, format!("a threshold is above 0 and at most 1, not {wrong}"));
    }
    assert!(!bench.path(".out.sort").exists());
}
