//! `run`: the whole job in one process.

use std::process::Stdio;

use serde_json::Value;

use crate::util::{Dir, assert_same_files, files, kills, run_through_kills};

const RECIPE: &str = "w5-rabin64-16x5r1-one";

fn web(dir: &Dir, pages: &str) {
    let made = dir.line(&format!("generate mirrors --pages {pages} --format warc --compress gz -o web -q"));
    assert_eq!(made.code, 0, "{}", made.stderr);
}

#[test]
fn a_run_is_its_three_commands() {
    let dir = Dir::new();
    web(&dir, "800");
    for command in [
        ["scan", "web", "-o", "stages", "--recipe", RECIPE].as_slice(),
        &["similar", "stages", "--threshold", "0.8"],
        &["collections", "stages"],
    ] {
        let outcome = dir.run(command);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    }
    let run = ["run", "web", "-o", "whole", "--recipe", RECIPE, "--threshold", "80%", "--no-report"];
    let outcome = dir.run(&run);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for words in ["scan:", "near pairs, verified", "replicas", "in all:"] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    assert_same_files(&files(&dir.path("whole")), &files(&dir.path("stages")), "from that of the stages");

    let again = dir.run(&run);
    assert!(again.stdout.contains("nothing to do: whole has the result"), "{}", again.stdout);
    assert_same_files(&files(&dir.path("whole")), &files(&dir.path("stages")), "after a second run");
}

#[test]
fn machines_get_every_stage_in_one_object() {
    let dir = Dir::new();
    dir.write("texts.jsonl", "{\"text\": \"a b c d e f\"}\n{\"text\": \"A, b c d e f!\"}\n");
    let run = |options: &[&str]| dir.json(&[&["run", "texts.jsonl", "-o", "atlas"], options].concat());
    let done = run(&[]);
    assert_eq!((&done["type"], &done["atlas"]), (&"run".into(), &"atlas".into()));
    assert_eq!((&done["scan"]["documents"], &done["similar"]["exact_copies"]), (&2.into(), &1.into()));
    assert_eq!((&done["outcomes"]["collections"], &done["collections"]), (&"no_links".into(), &Value::Null));
    assert_eq!(done["report"]["page"], "atlas/report/report.html");
    assert!(dir.path("atlas/report/report.html").exists());
    let again = run(&["--threshold", "0.8", "--no-collections", "--no-report"]);
    let outcomes = ["scan", "similar", "collections", "report"].map(|stage| again["outcomes"][stage].clone());
    assert_eq!(outcomes, ["was_there", "done", "not_wanted", "not_wanted"]);
    assert_eq!((&again["scan"], &again["report"]), (&Value::Null, &Value::Null));
}

#[test]
fn mistakes_are_told() {
    let dir = Dir::new();
    dir.write("texts.jsonl", "{\"text\": \"a b c d e f\"}\n");
    let complaint = |options: &[&str]| {
        let outcome = dir.run(&[&["run", "texts.jsonl", "-o", "atlas"], options].concat());
        assert_eq!(outcome.code, 2, "{options:?}: {}", outcome.stdout);
        assert!(!dir.path("atlas").exists(), "{options:?}");
        outcome.stderr
    };
    assert!(complaint(&["--threshold", "2"]).contains("a threshold is above 0 and at most 1"));
    assert!(complaint(&["--memory", "100M"]).contains("a run needs at least 128M of memory, not 100M"));
    assert!(complaint(&["--recipe", "w0"]).contains("recipe"));
    assert!(complaint(&["--merge", "strict", "--no-collections"]).contains("cannot be used with"));
    let outcome = dir.run(&["run", "nowhere.jsonl", "-o", "atlas"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("nowhere.jsonl"), "{}", outcome.stderr);

    assert_eq!(dir.run(&["run", "texts.jsonl", "-o", "atlas", "-q"]).code, 0);
    let other = dir.run(&["run", "texts.jsonl", "-o", "atlas", "--seed", "5"]);
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("already has a finished scan"), "{}", other.stderr);
}

#[test]
fn kills_at_random_moments_do_not_change_a_byte() {
    let dir = Dir::new();
    web(&dir, "3000");
    let run = |atlas: &str| {
        let sizes = ["--task-bytes", "65536", "--commit-bytes", "300000", "--recipe", RECIPE];
        dir.onionskin(
            &[&["run", "web", "-o", atlas, "-q", "--threads", "2", "--no-report"], sizes.as_slice()].concat(),
        )
    };
    let start = std::time::Instant::now();
    assert!(run("whole").stdout(Stdio::null()).status().unwrap().success());
    let whole = start.elapsed();

    let killed = run_through_kills(|| run("killed"), whole, 2 * kills());
    assert_same_files(
        &files(&dir.path("killed")),
        &files(&dir.path("whole")),
        &format!("after {killed} kills"),
    );
}
