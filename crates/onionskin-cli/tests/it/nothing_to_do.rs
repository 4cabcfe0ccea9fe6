//! A command that is given again when its result is there.

use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::Value;

use crate::util::Dir;

fn web(dir: &Dir) {
    let made = dir.line("generate mirrors --pages 300 --format warc -o web -q");
    assert_eq!(made.code, 0, "{}", made.stderr);
}

/// Every file of the folder, and when it was written: `costs.jsonl` too.
fn all_files(dir: &Dir) -> Vec<(PathBuf, SystemTime)> {
    let mut found = Vec::new();
    let mut folders = vec![dir.path("")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.path().is_dir() {
                folders.push(entry.path());
            } else {
                found.push((entry.path(), entry.metadata().unwrap().modified().unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_finished_command_has_nothing_to_do() {
    let dir = Dir::new();
    web(&dir);
    for command in [
        ["scan", "web", "-o", "atlas"].as_slice(),
        &["similar", "atlas"],
        &["similar", "atlas", "--for-report", "--method", "paragraphs"],
        &["collections", "atlas"],
        &["run", "web", "-o", "whole"],
        &["run", "web", "-o", "whole", "--no-report"],
        &["dedup", "atlas", "-o", "out", "--shards", "warc"],
    ] {
        let first = dir.run(command);
        assert_eq!(first.code, 0, "{command:?}: {}", first.stderr);
        let before = all_files(&dir);
        let again = dir.run(command);
        assert_eq!(again.code, 0, "{command:?}: {}", again.stderr);
        let said = again.stdout + &again.stderr;
        assert!(said.contains("nothing to do"), "{command:?}: {said}");
        assert!(!said.contains("CPU") && !said.contains("processor time"), "{command:?}: {said}");
        assert!(before == all_files(&dir), "{command:?}");
    }
    let told = dir.json(&["scan", "web", "-o", "atlas"]);
    assert_eq!((&told["type"], &told["command"]), (&"nothing_to_do".into(), &"scan".into()), "{told}");
    assert!(told["found"]["documents"].as_u64().unwrap() > 100, "{told}");
    let told = dir.json(&["dedup", "atlas", "-o", "out", "--shards", "warc"]);
    assert!(told["found"]["removed"].as_u64().unwrap() > 0, "{told}");
    let told = dir.json(&["run", "web", "-o", "whole"]);
    assert_eq!((&told["type"], &told["command"]), (&"nothing_to_do".into(), &"run".into()), "{told}");
    assert!(told["found"]["pairs"].as_u64().unwrap() > 0, "{told}");
    let told = dir.line("collections atlas --json").stdout;
    let told: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&told[0]["type"], &told[0]["command"]),
        (&"nothing_to_do".into(), &"collections".into()),
        "{told:?}"
    );
    assert_eq!(told[1]["type"], "collection", "what there is is shown all the same: {told:?}");
    // On request it is done anew.
    for command in ["scan web -o atlas --overwrite", "similar atlas", "similar atlas --overwrite"] {
        let outcome = dir.line(command);
        assert!(
            outcome.code == 0 && outcome.stdout.contains("processor time"),
            "{command}: {}",
            outcome.stdout
        );
    }
}

/// What a search has found does not change when the inputs go.
#[test]
fn a_finished_search_needs_no_inputs() {
    let dir = Dir::new();
    web(&dir);
    assert_eq!(dir.line("scan web -o atlas -q").code, 0);
    assert_eq!(dir.line("similar atlas").code, 0);
    std::fs::rename(dir.path("web"), dir.path("gone")).unwrap();
    let again = dir.line("similar atlas");
    assert!(again.code == 0 && again.stdout.contains("nothing to do"), "{}{}", again.stdout, again.stderr);
    let told = dir.json(&["similar", "atlas"]);
    assert_eq!((&told["type"], &told["command"]), (&"nothing_to_do".into(), &"similar".into()), "{told}");
    // Another search does need them, and leaves what is there.
    let other = dir.line("similar atlas --threshold 0.8");
    assert!(other.code == 2 && other.stderr.contains("web"), "{}", other.stderr);
    let again = dir.line("similar atlas");
    assert!(again.code == 0 && again.stdout.contains("nothing to do"), "{}{}", again.stdout, again.stderr);
}

/// Contents are not compared, and that is said.
#[test]
fn inputs_of_the_same_length_are_taken_for_the_same() {
    let dir = Dir::new();
    dir.write("in.jsonl", "{\"text\":\"one two three four five\"}\n");
    assert_eq!(dir.line("run in.jsonl -o atlas -q").code, 0);
    dir.write("in.jsonl", "{\"text\":\"one two three four nine\"}\n");
    for command in ["scan in.jsonl -o atlas", "run in.jsonl -o atlas"] {
        let again = dir.line(command);
        let said = again.stdout + &again.stderr;
        assert!(
            again.code == 0 && said.contains("nothing to do") && said.contains("names, lengths and formats"),
            "{command}: {said}"
        );
    }
}

#[test]
fn a_report_is_made_again_when_its_atlas_has_changed() {
    let dir = Dir::new();
    web(&dir);
    assert_eq!(dir.line("run web -o atlas -q").code, 0);
    for command in ["similar atlas --for-report --method paragraphs", "similar atlas --threshold 0.8"] {
        assert_eq!(dir.line(command).code, 0, "{command}");
        let threshold = if command.ends_with("0.8") { " --threshold 0.8" } else { "" };
        let outcome = dir.line(&format!("run web -o atlas{threshold}"));
        assert!(outcome.stdout.contains("report: atlas/report/report.html"), "{}", outcome.stdout);
        let outcome = dir.line(&format!("run web -o atlas{threshold}"));
        assert!(outcome.stdout.contains("nothing to do"), "{}", outcome.stdout);
    }
    std::fs::remove_file(dir.path("atlas/report/report.html")).unwrap();
    let outcome = dir.line("run web -o atlas --threshold 0.8");
    assert!(dir.path("atlas/report/report.html").exists(), "{}", outcome.stdout);
}

#[test]
fn inputs_without_a_document_are_no_every_time() {
    let dir = Dir::new();
    dir.write("in.jsonl", "{\"body\":\"one two three\"}\n");
    for command in ["scan in.jsonl -o scanned", "run in.jsonl -o atlas", "run in.jsonl -o q --quiet"] {
        for time in ["first", "again"] {
            let outcome = dir.line(command);
            assert_eq!(outcome.code, 1, "{time} {command}: {}{}", outcome.stdout, outcome.stderr);
            assert!(outcome.stderr.contains("not one document could be read"), "{}", outcome.stderr);
        }
    }
}

#[test]
fn other_settings_are_an_error_that_names_them() {
    let dir = Dir::new();
    dir.write("in.jsonl", "{\"text\":\"one two three four five\"}\n".repeat(3));
    dir.write("more.jsonl", "{\"text\":\"six seven\"}\n");
    assert_eq!(dir.line("run in.jsonl -o atlas -q").code, 0);
    for (command, difference) in [
        ("scan in.jsonl -o atlas --seed 2", "seed was 1, is now 2"),
        (
            "scan in.jsonl -o atlas --text-field body",
            "reading.text_field was \"text,content,raw_content\", is now \"body\"",
        ),
        ("scan in.jsonl more.jsonl -o atlas", "inputs[1] was absent, is now"),
        ("run in.jsonl -o atlas --recipe broder", "recipe was"),
    ] {
        let outcome = dir.line(command);
        assert_eq!(outcome.code, 2, "{command}: {}", outcome.stdout);
        assert!(
            outcome.stderr.contains("already has a finished scan of another job: ")
                && outcome.stderr.contains(difference),
            "{command}: {}",
            outcome.stderr
        );
    }
    assert_eq!(dir.line("dedup atlas -o out").code, 0);
    let outcome = dir.line("dedup atlas -o out --annotate");
    assert_eq!(outcome.code, 2, "{}", outcome.stdout);
    assert!(outcome.stderr.contains("copying was \"filter\", is now \"annotate\""), "{}", outcome.stderr);
}
