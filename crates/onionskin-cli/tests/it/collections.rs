//! `collections` and `avoid`: from a crawl to filter files, and what people get wrong.

use std::process::Stdio;

use crate::util::{Dir, assert_same_files, files, kills, run_through_kills};

fn crawled(pages: &str) -> Dir {
    let dir = Dir::new();
    let generate = format!("generate mirrors --pages {pages} --format warc -o web --truth truth.jsonl -q");
    assert_eq!(dir.line(&generate).code, 0);
    assert_eq!(dir.run(&["scan", "web", "-o", "atlas", "-q"]).code, 0);
    assert_eq!(dir.run(&["similar", "atlas", "--threshold", "0.8", "--no-recall", "-q"]).code, 0);
    dir
}

fn lines(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn mirrors_are_found_checked_and_drawn() {
    let dir = crawled("3000");
    let outcome = dir.run(&[
        "collections",
        "atlas",
        "--check",
        "--figure",
        "f.svg",
        "--figure",
        "f.png",
        "--list",
        "3",
        "-q",
    ]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for said in
        ["principal copy", "checked by the definitions", "0 violations", "copies that a crawler can spare"]
    {
        assert!(outcome.stdout.contains(said), "{said}: {}", outcome.stdout);
    }
    assert!(std::fs::read_to_string(dir.path("f.svg")).unwrap().contains("replicated collections"));
    assert!(std::fs::read(dir.path("f.png")).unwrap().starts_with(b"\x89PNG"));

    let outcome = dir.run(&["collections", "atlas", "--show", "--list", "0", "--noise", "--json"]);
    let found = lines(&outcome.stdout);
    assert!(found.len() > 5);
    for group in found.iter().filter(|line| line["type"] == "collection") {
        let replicas = group["members"].as_array().unwrap();
        assert_eq!(replicas.len() as u64, group["replicas"].as_u64().unwrap());
        assert_eq!(replicas.iter().filter(|replica| replica["is_principal"] == true).count(), 1);
    }
    // What is missing, changed and added is told page by page, and adds up to the numbers of the
    // table.
    let explained = lines(&dir.run(&["explain", "atlas", "collection:0", "--json"]).stdout);
    let of_table =
        found.iter().find(|line| line["group"] == 0).unwrap()["members"].as_array().unwrap().clone();
    assert_eq!(explained.len(), of_table.len());
    for (copy, row) in explained.iter().zip(&of_table) {
        for (list, number) in [
            ("missing_pages", "missing"),
            ("changed_pages", "changed"),
            ("added_pages", "added"),
            ("linked_pages", "virtual_pages"),
        ] {
            assert_eq!(
                copy[list].as_array().unwrap().len() as u64,
                row[number].as_u64().unwrap(),
                "{list}: {copy} {row}"
            );
        }
    }
    assert!(dir.run(&["explain", "atlas", "collection:0"]).stdout.contains("of the principal"));
    assert_eq!(dir.run(&["explain", "atlas", "collection:99999"]).code, 1);
    let judged = dir.run(&["evaluate", "atlas", "--truth", "truth.jsonl", "--json"]);
    let score = lines(&judged.stdout).remove(1);
    assert_eq!(
        (score["type"].as_str(), &score["targets"]),
        (Some("evaluate_mirrors"), &score["targets_found"])
    );
    assert!(dir.run(&["evaluate", "atlas", "--truth", "truth.jsonl"]).stdout.contains("targets found"));
}

#[test]
fn strict_and_extended_are_proved() {
    let dir = crawled("2000");
    for merge in
        [["strict"].as_slice(), &["extended"], &["strict", "--any-site"], &["extended", "--any-site"]]
    {
        let arguments =
            [["collections", "atlas", "--check", "--json", "--list", "1", "--merge"].as_slice(), merge]
                .concat();
        let outcome = dir.run(&arguments);
        assert_eq!(outcome.code, 0, "{merge:?}: {}", outcome.stdout);
        let report = lines(&outcome.stdout).pop().unwrap();
        assert_eq!((report["type"].as_str(), report["violations"].as_u64()), (Some("check"), Some(0)));
        assert!(report["verdicts"].get("tolerant").is_none());
    }
}

#[test]
fn a_list_is_written_replayed_and_audited() {
    let dir = crawled("3000");
    assert_eq!(dir.run(&["collections", "atlas", "-q"]).code, 0);
    let careful = dir.json(&["avoid", "atlas"]);
    assert!(careful["weak"].as_u64().unwrap() > 0 && !careful["entries"].as_array().unwrap().is_empty());
    let outcome = dir.run(&["avoid", "atlas", "--weak", "-o", "lists"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("by this list") && outcome.stdout.contains("replayed: similar pages"));
    let written = files(&dir.path("lists"));
    assert_eq!(written.len(), 13, "{:?}", written.keys());
    assert!(written.keys().all(|name| !name.ends_with(".new")));

    let replayed = dir.json(&["avoid", "simulate", "lists/avoid.json", "atlas"]);
    assert!(replayed["before"]["similar_share"].as_f64().unwrap() > 0.4, "{replayed}");
    assert!(replayed["after"]["similar_share"].as_f64().unwrap() < 0.05, "{replayed}");
    let audited =
        dir.run(&["avoid", "audit", "lists/avoid.json", "atlas", "-o", "next.json", "--date", "2026-11-16"]);
    assert_eq!(audited.code, 0, "{}", audited.stdout);
    assert!(audited.stdout.contains("0 of"), "{}", audited.stdout);
    assert!(std::fs::read_to_string(dir.path("next.json")).unwrap().contains("2026-11-16"));

    // One format goes to stdout as it is, and a crawl of the kept copies alone finds the mirrors
    // gone.
    let fast = dir.run(&["avoid", "atlas", "--weak", "--format", "nutch-fast"]);
    assert!(fast.stdout.contains("DenyPath ^/"), "{}", fast.stdout);
    assert_eq!(fast.stdout.as_bytes(), written["fast-urlfilter.txt"]);
    let entry = dir.json(&["avoid", "atlas"])["entries"][0].clone();
    let stand_in = dir.run(&["avoid", "alternate", "atlas", entry["root"].as_str().unwrap()]);
    assert!(stand_in.stdout.contains("copy") || stand_in.stdout.contains("same page"), "{}", stand_in.stdout);
}

#[test]
fn mistakes_are_told() {
    let dir = Dir::new();
    dir.write("one.jsonl", "{\"url\":\"http://a.org/\",\"text\":\"one two three four five\"}\n");
    assert_eq!(dir.run(&["scan", "one.jsonl", "-o", "atlas", "-q"]).code, 0);
    let wrong = |arguments: &[&str], said: &str| {
        let outcome = dir.run(arguments);
        assert_eq!(outcome.code, 2, "{arguments:?}: {}", outcome.stdout);
        assert!(outcome.stderr.contains(said), "{arguments:?}: {}", outcome.stderr);
    };
    wrong(&["collections", "atlas"], "run onionskin similar first");
    wrong(&["collections", "atlas", "--merge", "loose"], "known are strict, extended, tolerant");
    wrong(&["collections", "atlas", "--figure", "x.jpg"], "ends in .svg or .png");
    wrong(&["collections", "atlas", "--show"], "run onionskin collections first");
    wrong(&["avoid", "atlas"], "run `onionskin collections` first");
    assert_eq!(dir.run(&["similar", "atlas", "-q"]).code, 0);
    wrong(&["collections", "atlas", "--any-site"], "--merge extended or strict");
    assert_eq!(
        dir.run(&["collections", "atlas", "-q", "--check"]).code,
        0,
        "nothing is found in an atlas of one page"
    );
    assert_eq!(dir.run(&["avoid", "atlas", "-o", "lists"]).code, 0);
    wrong(&["avoid", "atlas", "--format", "nutch"], "nutch-fast");
    wrong(&["avoid", "atlas", "--format", "csv,json"], "say -o FOLDER");
    wrong(&["avoid", "atlas", "--kinds", "friend"], "versioned documentation");
    wrong(&["avoid", "atlas", "--min-coverage", "7"], "a share from 0 to 1");
    dir.write("bad.json", "{\"format\": ");
    wrong(&["avoid", "simulate", "bad.json", "atlas"], "bad.json");
    wrong(&["avoid", "alternate", "atlas", "mailto:x"], "no http or https address");
    let none = dir.run(&["avoid", "alternate", "atlas", "http://a.org/"]);
    assert_eq!((none.code, none.stdout.as_str()), (1, ""));
}

#[test]
fn kills_at_random_moments_do_not_change_a_byte() {
    let dir = crawled("3000");
    std::fs::create_dir(dir.path("copy")).unwrap();
    let search = |atlas: &str| dir.onionskin(&["collections", atlas, "-q"]);
    let copied =
        std::process::Command::new("cp").args(["-r", "atlas", "killed"]).current_dir(dir.path("")).status();
    assert!(copied.unwrap().success());
    let start = std::time::Instant::now();
    assert!(search("atlas").stdout(Stdio::null()).status().unwrap().success());
    let whole = start.elapsed();
    let killed = run_through_kills(|| search("killed"), whole, kills());
    assert_same_files(
        &files(&dir.path("killed")),
        &files(&dir.path("atlas")),
        &format!("after {killed} kills"),
    );
}
