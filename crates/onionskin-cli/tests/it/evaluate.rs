//! Known answers, held against what was found.

use crate::util::Dir;

fn searched() -> Dir {
    let dir = Dir::new();
    let made =
        dir.run(&["generate", "demo", "--pages", "800", "-o", "web.jsonl", "--truth", "truth.jsonl", "-q"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    assert_eq!(dir.run(&["scan", "web.jsonl", "-o", "atlas"]).code, 0);
    dir
}

#[test]
fn an_exact_search_finds_everything() {
    let dir = searched();
    let outcome = dir.run(&["evaluate", "atlas", "--truth", "truth.jsonl"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("hint: run `onionskin similar` first"), "{}", outcome.stderr);

    dir.json(&["similar", "atlas", "--exact", "--no-recall", "--cluster", "transitive"]);
    let seen = dir.json(&["evaluate", "atlas", "--truth", "truth.jsonl"]);
    assert_eq!((seen["type"].as_str(), seen["threshold"].as_f64()), (Some("evaluate"), Some(0.9)));
    assert_eq!(seen["truth"]["unknown_names"], 0);
    assert!(seen["pairs"]["truth"].as_u64().unwrap() > 100, "{seen}");
    for (table, measure) in [("pairs", "recall"), ("pairs", "precision"), ("clusters", "adjusted_rand_index")]
    {
        assert_eq!(seen[table][measure], 1.0, "{table} {measure}: {seen}");
    }
    let outcome =
        dir.run(&["evaluate", "atlas", "--truth", "truth.jsonl", "--min-recall", "1", "--min-ari", "1"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert!(outcome.stdout.contains("adjusted Rand index 1.000000 over 800 documents"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains("split"), "{}", outcome.stdout);
}

#[test]
fn too_high_a_threshold_is_seen() {
    let dir = searched();
    dir.json(&["similar", "atlas", "--threshold", "0.97", "--no-recall"]);
    let arguments = ["evaluate", "atlas", "--truth", "truth.jsonl", "--threshold", "0.8", "--show", "2"];
    let outcome = dir.run(&arguments);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    for wanted in ["clusters of the truth are split; the worst:", "split in ", "0.8 to 0.85", "doc:"] {
        assert!(outcome.stdout.contains(wanted), "{wanted}\n{}", outcome.stdout);
    }
    assert_eq!(outcome.stdout.matches("split in ").count(), 2, "{}", outcome.stdout);
    let outcome = dir.run(&[&arguments[..], &["--min-recall", "0.999", "--min-precision", "0.9"]].concat());
    assert_eq!(outcome.code, 1);
    assert!(
        outcome.stderr.starts_with("recall is 0.") && outcome.stderr.contains("below 0.999"),
        "{}",
        outcome.stderr
    );
    assert_eq!(outcome.stderr.lines().count(), 1);
}

#[test]
fn answers_by_hand_and_little_memory() {
    let dir = searched();
    dir.json(&["similar", "atlas", "--no-recall"]);
    dir.write("members.csv", "doc,cluster\n0,a\n1,a\n2,b\n");
    let seen = dir.json(&["evaluate", "atlas", "--truth", "members.csv"]);
    assert_eq!(
        (seen["truth"]["members"].as_u64(), seen["clusters"]["documents"].as_u64()),
        (Some(3), Some(3))
    );
    dir.write("pairs.tsv", "a\tb\n0\t1\nno-such-page\t2\n");
    let outcome = dir.run(&["evaluate", "atlas", "--truth", "pairs.tsv", "--partial"]);
    assert_eq!(outcome.code, 0);
    assert!(outcome.stderr.contains("such as no-such-page"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("were not judged: the truth is partial"), "{}", outcome.stdout);
    dir.write("broken.jsonl", "{\"a\":\"x\",\"b\":\"y\"}\n{\"a\":\n");
    let outcome = dir.run(&["evaluate", "atlas", "--truth", "broken.jsonl"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("broken.jsonl, line 2"), "{}", outcome.stderr);
    let few = dir.json(&["evaluate", "atlas", "--truth", "truth.jsonl", "--memory", "4K"]);
    let many = dir.json(&["evaluate", "atlas", "--truth", "truth.jsonl"]);
    assert!(few["spilled_bytes"].as_u64() > Some(0));
    for part in ["pairs", "clusters", "bands", "truth"] {
        assert_eq!(few[part], many[part], "{part}");
    }
}
