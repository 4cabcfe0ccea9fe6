//! `onionskin seen`, as people and programs use it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::util::{Dir, Outcome};

fn lines(outcome: &Outcome) -> Vec<Value> {
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    outcome.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Words that no two documents share.
fn text(id: u64) -> String {
    (0..30).map(|word| format!("w{}", id * 1000 + word)).collect::<Vec<_>>().join(" ")
}

fn line(id: u64) -> String {
    format!("{{\"id\": \"d{id}\", \"text\": {:?}}}\n", text(id))
}

fn statuses(answers: &[Value]) -> Vec<&str> {
    answers.iter().map(|answer| answer["status"].as_str().unwrap()).collect()
}

#[test]
fn adding_checking_removing() {
    let dir = Dir::new();
    let long: String = (0..200).map(|word| format!("word{word} ")).collect();
    let input = format!(
        "{{\"id\":\"a\",\"text\":{long:?}}}\n{{\"url\":\"http://b/\",\"text\":\"{long}more\"}}\n{{\"id\":3,\"text\":\"  \"}}\nbroken\n{{\"id\":\"e\",\"text\":\"one\"}}\n"
    );
    let answers =
        lines(&dir.run_with_input(&["seen", "add-if-new", "index", "--batch", "2"], input.as_bytes()));
    assert_eq!(statuses(&answers), ["new", "near", "empty", "bad", "new"]);
    assert_eq!(answers[1]["name"], "http://b/");
    assert_eq!(answers[1]["of"]["name"], "a");
    assert!(answers[1]["of"]["resemblance"].as_f64().unwrap() > 0.9);
    assert_eq!(answers[3]["name"], "-:4");
    assert_eq!(answers[1]["added"], false);

    dir.write("in.jsonl", &input);
    let answers = lines(&dir.run(&["seen", "check", "index", "in.jsonl"]));
    assert_eq!(statuses(&answers), ["exact", "near", "empty", "bad", "exact"]);

    let answers = lines(&dir.run(&["seen", "remove", "index", "--name", "a", "--name", "zz"]));
    assert_eq!((&answers[0]["removed"], &answers[1]["removed"]), (&1.into(), &0.into()));
    let answers = lines(&dir.run(&["seen", "check", "index", "in.jsonl"]));
    assert_eq!(statuses(&answers), ["new", "new", "empty", "bad", "exact"]);
    assert_eq!(dir.run(&["seen", "compact", "index"]).code, 0);
    let stats = dir.json(&["seen", "stats", "index"]);
    assert_eq!((&stats["documents"], &stats["removed"]), (&1.into(), &0.into()));
    assert_eq!(dir.run(&["seen", "verify", "index"]).code, 0);
}

#[test]
fn mistakes_are_told() {
    let dir = Dir::new();
    let outcome = dir.run(&["seen", "check", "nothing"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("has no index"), "{}", outcome.stderr);
    lines(&dir.run_with_input(&["seen", "add", "index"], line(1).as_bytes()));
    let outcome = dir.run_with_input(&["seen", "add", "index", "--recipe", "w5-rabin64-6x14r2"], b"");
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("w4-rabin64-6x14r2 with seed"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("not of w5-rabin64-6x14r2"), "{}", outcome.stderr);
}

#[test]
fn numbers_for_names() {
    let dir = Dir::new();
    let input = format!("{{\"id\":7,\"text\":{:?}}}\n{{\"id\":\"x\",\"text\":\"one\"}}\n", text(1));
    let answers = lines(&dir.run_with_input(&["seen", "add", "index", "--numeric-ids"], input.as_bytes()));
    assert_eq!(statuses(&answers), ["new", "bad"]);
    let answers = lines(&dir.run_with_input(&["seen", "check", "index"], line(1).as_bytes()));
    assert_eq!(answers[0]["of"]["name"], "7");
    let answers = lines(&dir.run_with_input(&["seen", "remove", "index"], b"{\"id\": 7}\n"));
    assert_eq!(answers[0]["removed"], 1);
}

#[test]
fn an_atlas_in_bulk() {
    let dir = Dir::new();
    let input: String = [1, 2, 1, 3].map(line).concat();
    dir.write("in.jsonl", &input);
    assert_eq!(dir.run(&["scan", "in.jsonl", "-o", "atlas", "-q"]).code, 0);
    let answers = lines(&dir.run(&["seen", "add", "index", "--atlas", "atlas"]));
    assert_eq!(statuses(&answers), ["new", "new", "exact", "new"]);
    // Texts are found by what the scan has made.
    let answers = lines(&dir.run(&["seen", "check", "index", "in.jsonl"]));
    assert_eq!(statuses(&answers), ["exact"; 4]);
    let answers = lines(&dir.run(&["seen", "check", "index", "--atlas", "atlas", "--memory", "1M"]));
    assert_eq!(statuses(&answers), ["exact"; 4]);
}

#[test]
fn damage_is_named_and_repaired() {
    let dir = Dir::new();
    let input: String = (0..300).map(line).collect();
    lines(&dir.run_with_input(&["seen", "add", "index"], input.as_bytes()));
    let mut run = std::fs::read_dir(dir.path("index")).unwrap().map(|entry| entry.unwrap().path());
    let run = run.find(|path| path.to_string_lossy().contains("run-")).unwrap();
    let mut bytes = std::fs::read(&run).unwrap();
    let end = bytes.len() - 3000;
    bytes[end] ^= 1;
    std::fs::write(&run, &bytes).unwrap();
    let outcome = dir.run(&["seen", "verify", "index"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stdout.contains(run.file_name().unwrap().to_str().unwrap()), "{}", outcome.stdout);
    assert_eq!(dir.run(&["seen", "verify", "index", "--repair"]).code, 0);
    assert_eq!(dir.run(&["seen", "verify", "index"]).code, 0);
    dir.write("in.jsonl", &input);
    let answers = lines(&dir.run(&["seen", "check", "index", "in.jsonl"]));
    let found = answers.iter().filter(|answer| answer["status"] == "exact").count();
    // A third of the entries is lost; two of six are enough.
    assert!(found > 250, "{found}");
    assert!(answers.iter().all(|answer| answer["status"] == "new" || answer["of"]["name"] == answer["name"]));
}

/// A program that asks, waits for the answer and asks again.
#[test]
fn answers_come_while_the_input_is_open() {
    let dir = Dir::new();
    let mut child = dir
        .onionskin(&["seen", "add-if-new", "index", "--interactive"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for (id, status) in [(1, "new"), (2, "new"), (1, "exact")] {
        stdin.write_all(line(id).as_bytes()).unwrap();
        let answer: Value = serde_json::from_str(&answers.next().unwrap().unwrap()).unwrap();
        assert_eq!(answer["status"], status);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// `kill -9` under load: what was answered for is there, nothing is there twice, and it always opens.
#[test]
fn kills_lose_nothing_that_was_acknowledged() {
    let dir = Dir::new();
    let kills = if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 200 } else { 5 };
    let mut next = 0u64;
    let mut acknowledged = 0u64;
    for round in 0..kills {
        let mut child = dir
            .onionskin(&["seen", "add-if-new", "index", "--batch", "7", "--memory", "8M"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let from = next;
        // From a little before, so that what was in doubt comes again.
        let feeder = std::thread::spawn(move || {
            let mut sent = from.saturating_sub(20);
            while stdin.write_all(line(sent).as_bytes()).is_ok() {
                sent += 1;
            }
            sent
        });
        let stdout = child.stdout.take().unwrap();
        let reader = std::thread::spawn(move || {
            let mut highest = 0;
            for answer in BufReader::new(stdout).lines().map_while(Result::ok) {
                // The last line may be cut off by the kill.
                let Ok(answer) = serde_json::from_str::<Value>(&answer) else { break };
                assert!(answer["status"] == "new" || answer["of"]["name"] == answer["name"], "{answer}");
                highest = answer["name"].as_str().unwrap()[1..].parse::<u64>().unwrap() + 1;
            }
            highest
        });
        std::thread::sleep(Duration::from_millis([40, 150, 80, 250, 20, 110][round % 6]));
        child.kill().unwrap();
        child.wait().unwrap();
        feeder.join().unwrap();
        acknowledged = acknowledged.max(reader.join().unwrap());
        next = acknowledged;
    }
    assert!(acknowledged > 0);
    let whole = dir.run(&["seen", "verify", "index"]);
    assert_eq!(whole.code, 0, "{}", whole.stdout);
    let input: String = (0..acknowledged).map(line).collect();
    let answers = lines(&dir.run_with_input(&["seen", "check", "index"], input.as_bytes()));
    assert_eq!(answers.len() as u64, acknowledged);
    for answer in &answers {
        assert_eq!(
            (&answer["status"], &answer["of"]["name"]),
            (&"exact".into(), &answer["name"]),
            "{answer}"
        );
    }
    // Every name once: removing tells how many documents had it.
    let names: String = (0..acknowledged).map(|id| format!("\"d{id}\"\n")).collect();
    let removed = lines(&dir.run_with_input(&["seen", "remove", "index"], names.as_bytes()));
    let mut counts = BTreeMap::new();
    for line in &removed {
        *counts.entry(line["removed"].as_u64().unwrap()).or_insert(0u64) += 1;
    }
    assert_eq!(counts, BTreeMap::from([(1, acknowledged)]));
}
