//! `report`: the page and the files beside it; two crawls.

use serde_json::Value;

use crate::util::{Dir, files};

fn web(dir: &Dir) {
    let made = ["generate", "disconnected", "--pages", "600", "--format", "warc", "-o", "web", "-q"];
    assert_eq!(dir.run(&made).code, 0);
    for command in [
        ["scan", "web", "-o", "atlas", "-q"].as_slice(),
        &["similar", "atlas", "-q"],
        &["collections", "atlas", "-q"],
    ] {
        let outcome = dir.run(command);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    }
}

#[test]
fn a_report_is_written_into_the_atlas() {
    let dir = Dir::new();
    web(&dir);
    for search in [["--preset", "sgm98-4"], ["--method", "paragraphs"]] {
        let outcome = dir.run(&["similar", "atlas", "--for-report", search[0], search[1]]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    }
    let outcome = dir.run(&["report", "atlas"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    for words in [
        "the same text",
        "15 chunks of four lines",
        "resemblance 90",
        "a crawl by links reaches",
        "report.html",
    ] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    let found = files(&dir.path("atlas/report"));
    for name in
        ["report.html", "report.json", "figures/replicas.svg", "figures/replicas.png", "tables/levels.csv"]
    {
        assert!(found.contains_key(name), "{name}");
    }
    assert!(!dir.path("atlas/report/.work").exists(), "nothing is left behind");
    let said: Value = serde_json::from_slice(&found["report.json"]).unwrap();
    let told = dir.json(&["report", "atlas", "-o", "elsewhere", "--no-png"]);
    assert_eq!(told["type"], "report");
    let rows = said["sections"][0]["tables"][0]["rows"].as_array().unwrap();
    for (row, level) in rows.iter().zip(told["levels"].as_array().unwrap()) {
        for key in ["documents", "clusters", "duplicates", "unique"] {
            assert_eq!(row[key], level[key]);
        }
    }
    assert!(!files(&dir.path("elsewhere")).keys().any(|name| name.ends_with(".png")));
    assert_eq!(dir.run(&["verify", "atlas"]).code, 0, "an atlas with a report in it is whole");
}

#[test]
fn a_crawl_begins_at_the_pages_that_are_named() {
    let dir = Dir::new();
    web(&dir);
    let rows = dir.run(&["explain", "atlas", "doc:0", "doc:1", "--json"]).stdout;
    let explained: Value = serde_json::from_str(rows.lines().next().unwrap()).unwrap();
    let url = explained["a"]["url"].as_str().unwrap_or_else(|| panic!("{explained}")).to_owned();
    dir.write("seeds.txt", format!("# where to begin\n{url}\n\nhttp://nowhere.example/\n"));
    let from_one = dir.json(&["report", "atlas", "--seed-url", "@seeds.txt", "--no-png"]);
    let whole = dir.json(&["report", "atlas", "--no-png"]);
    assert!(from_one["reached"].as_u64().unwrap() >= 1);
    assert!(whole["reached"].as_u64().unwrap() > 100);
    let outcome = dir.run(&["report", "atlas", "--seed-url", "http://nowhere.example/"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("none of the 1 seeds is a document"), "{}", outcome.stderr);
}

#[test]
fn two_crawls_are_compared() {
    let dir = Dir::new();
    dir.write("a.jsonl", "{\"url\":\"http://a.example/1\",\"text\":\"one two three\"}\n{\"url\":\"http://a.example/2\",\"text\":\"gone tomorrow\"}\n");
    dir.write("b.jsonl", "{\"url\":\"http://a.example/1\",\"text\":\"one two three\"}\n{\"url\":\"http://b.example/\",\"text\":\"gone tomorrow\"}\n");
    for name in ["a", "b"] {
        let outcome = dir.run(&["run", &format!("{name}.jsonl"), "-o", name, "-q"]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        assert!(dir.path(name).join("report/report.html").exists(), "a run ends in a report");
    }
    let told = dir.json(&["report", "a", "b"]);
    assert_eq!(told["type"], "changes");
    for (key, n) in [
        ("unchanged", 1),
        ("changed", 0),
        ("new", 1),
        ("new_with_known_text", 1),
        ("gone", 1),
        ("gone_with_text_elsewhere", 1),
    ] {
        assert_eq!(told[key], n, "{key}");
    }
    let page = std::fs::read_to_string(dir.path("b/report-since-a/report.html")).unwrap();
    assert!(page.contains("<h1>b after a</h1>"));
    let outcome = dir.run(&["report", "a", "b"]);
    assert!(outcome.stdout.contains("with a text that was there before"), "{}", outcome.stdout);
}

#[test]
fn mistakes_are_told() {
    let dir = Dir::new();
    dir.write("a.jsonl", "{\"text\":\"one two three\"}\n");
    assert_eq!(dir.run(&["scan", "a.jsonl", "-o", "a", "-q"]).code, 0);
    dir.write("empty/x", "");
    let complaint = |arguments: &[&str]| {
        let outcome = dir.run(arguments);
        assert_eq!(outcome.code, 2, "{arguments:?}: {}", outcome.stdout);
        outcome.stderr
    };
    assert!(complaint(&["report", "nowhere"]).contains("nowhere"));
    assert!(complaint(&["report", "empty"]).contains("is not an atlas"));
    assert!(!dir.path("empty/report").exists(), "no folder for what is no atlas");
    assert!(complaint(&["report", "a", "nowhere"]).contains("nowhere"));
    assert!(complaint(&["report", "a", "-o", "a.jsonl"]).contains("a.jsonl"));
    assert!(complaint(&["report", "a", "--memory", "1M"]).contains("at least"));
    assert!(complaint(&["report", "a", "--reference", "nowhere"]).contains("nowhere"));
    assert!(complaint(&["report", "a", "a", "--reference", "a"]).contains("cannot be used with"));
    assert!(complaint(&["report", "a", "--iterations", "1"]).contains("2..=10000"));
    assert!(complaint(&["report", "a", "--seed-url", "@nowhere"]).contains("reading nowhere"));
    let outcome = dir.run(&["report", "a"]);
    assert_eq!(outcome.code, 0, "a scan alone is enough: {}", outcome.stderr);
}
