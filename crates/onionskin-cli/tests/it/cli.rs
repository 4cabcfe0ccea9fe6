//! What people type, and what they see.

use crate::util::{Dir, files};

const ROSE: &str = "{\"id\":\"1\",\"url\":\"http://a.example/1\",\"text\":\"a rose is a rose is a rose\"}\n";

#[test]
fn scan_prints_a_table_and_json() {
    let dir = Dir::new();
    dir.write("in.jsonl", ROSE.repeat(3));
    let outcome = dir.run(&["scan", "in.jsonl", "-o", "atlas", "--recipe", "papers"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    assert!(
        outcome.stdout.contains("│ documents") && outcome.stdout.contains("│ chunks w4"),
        "{}",
        outcome.stdout
    );

    let seen =
        dir.json(&["scan", "in.jsonl", "-o", "atlas", "--overwrite", "--recipe", "w4-rabin64-6x14r2+w4"]);
    assert_eq!(seen["type"], "scan");
    assert_eq!(
        (seen["documents"].as_u64(), seen["tokens"].as_u64(), seen["sites"].as_u64()),
        (Some(3), Some(24), Some(1))
    );
    assert_eq!(seen["chunks"]["w4"], 9);
    assert_eq!(dir.run(&["verify", "atlas", "--deep"]).code, 0);
}

#[test]
fn standard_input_is_an_input() {
    let dir = Dir::new();
    let outcome = dir.run_with_input(&["scan", "-", "-o", "atlas", "--json"], ROSE.as_bytes());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("\"documents\":1"), "{}", outcome.stdout);
}

#[test]
fn mistakes_are_errors_that_help() {
    let dir = Dir::new();
    dir.write("in.jsonl", ROSE);
    let check = |arguments: &[&str], wanted: &str| {
        let outcome = dir.run(arguments);
        assert_eq!(outcome.code, 2, "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stdout.is_empty());
        assert!(outcome.stderr.contains(wanted), "{arguments:?}: {}", outcome.stderr);
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    };
    check(&["scan", "missing.jsonl", "-o", "atlas"], "missing.jsonl");
    check(&["scan", "in.jsonl", "-o", "no/such/folder/atlas"], "does not exist");
    check(&["scan", "in.jsonl", "-o", "atlas", "--recipe", "w4-md5-t3"], "is not a recipe");
    check(&["scan", "in.jsonl", "-o", "atlas", "--memory", "lots"], "lots");
    check(&["scan", "in.jsonl", "-o", "atlas", "--memory", "1M"], "needs at least");
    check(&["scan", "in.jsonl", "-o", "atlas", "--format", "xml"], "known: warc, jsonl");
    check(&["generate", "nonsense", "-o", "x"], "demo");
    check(&["verify", "nowhere"], "nowhere");
    check(&["plan", "--threshold", "1.5"], "0 < far < threshold < 1");
    check(&["frobnicate"], "unrecognized subcommand");
    assert!(!dir.path("atlas").exists(), "nothing was left behind");
}

#[test]
fn a_scan_of_nothing_readable_says_no() {
    let dir = Dir::new();
    dir.write("in.jsonl", "{\"body\":\"the text is in another field\"}\n");
    let outcome = dir.run(&["scan", "in.jsonl", "-o", "atlas"]);
    assert_eq!(outcome.code, 1, "{}", outcome.stdout);
    assert!(
        outcome.stderr.contains("not one document") && outcome.stderr.contains("--text-field"),
        "{}",
        outcome.stderr
    );
    let outcome = dir.run(&["scan", "in.jsonl", "-o", "atlas", "--overwrite", "--text-field", "body"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
}

#[test]
fn an_atlas_is_not_overwritten_by_chance() {
    let dir = Dir::new();
    dir.write("in.jsonl", ROSE);
    assert_eq!(dir.run(&["scan", "in.jsonl", "-o", "atlas"]).code, 0);
    let before = files(&dir.path("atlas"));
    let outcome = dir.run(&["scan", "in.jsonl", "-o", "atlas", "--seed", "7"]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.contains("already has a finished scan of another job: seed was 1, is now 7")
            && outcome.stderr.contains("hint"),
        "{}",
        outcome.stderr
    );
    assert_eq!(files(&dir.path("atlas")), before);
    // A folder with other things in it is not touched.
    dir.write("mine/thesis.txt", "do not lose this");
    let outcome = dir.run(&["scan", "in.jsonl", "-o", "mine", "--overwrite"]);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(dir.path("mine/thesis.txt").exists());
}

#[test]
fn damage_is_a_clear_no() {
    let dir = Dir::new();
    dir.write("in.jsonl", ROSE.repeat(50));
    assert_eq!(dir.run(&["scan", "in.jsonl", "-o", "atlas"]).code, 0);
    let path = dir.path("atlas/features/part-00000.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let outcome = dir.run(&["verify", "atlas"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stdout.contains("features/part-00000.parquet"), "{}", outcome.stdout);
    assert!(outcome.stdout.ends_with("run scan again, and the stages after it, or restore the files\n"));
    let outcome = dir.run(&["verify", "atlas", "--json"]);
    assert!(outcome.stdout.contains("\"whole\":false"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("\"stage\":\"scan\""), "{}", outcome.stdout);
}

/// Only `verify` looked at checksums: other commands answered wrongly, with exit code 0.
#[test]
fn a_damaged_table_is_named_with_what_to_do() {
    let dir = Dir::new();
    dir.write("in.jsonl", ROSE.repeat(50));
    assert_eq!(dir.run(&["run", "in.jsonl", "-o", "atlas"]).code, 0);
    let harm = |file: &str, at: usize| {
        let path = dir.path(file);
        let sound = std::fs::read(&path).unwrap();
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).unwrap();
        sound
    };
    let sound = harm("atlas/documents/part-00000.parquet", 300);
    for command in
        [&["dedup", "atlas", "-o", "out"][..], &["similar", "atlas", "--overwrite"], &["report", "atlas"]]
    {
        let outcome = dir.run(command);
        assert_eq!(outcome.code, 2, "{command:?}: {}", outcome.stderr);
        for said in ["documents/part-00000.parquet: damaged: checksum ", "hint: `onionskin verify"] {
            assert!(outcome.stderr.contains(said), "{command:?}: {}", outcome.stderr);
        }
        assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    }
    dir.write("atlas/documents/part-00000.parquet", sound);
    harm("atlas/manifest.json", 200);
    let outcome = dir.run(&["verify", "atlas"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("manifest.json: "), "{}", outcome.stderr);
}

#[test]
fn demo_shows_what_was_planted_and_what_was_seen() {
    let dir = Dir::new();
    let outcome = dir.run(&["demo", "-o", "demo", "--pages", "600"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("planted") && outcome.stdout.contains("pairs of copies, exact and near"),
        "{}",
        outcome.stdout
    );
    // Again, into the folder that it made itself.
    let seen = dir.json(&["demo", "-o", "demo", "--pages", "600"]);
    for (planted, saw) in [
        ("documents", "documents"),
        ("sites", "sites"),
        ("links", "links"),
        ("empty", "empty"),
        ("one_word", "one_word"),
        ("exact_copies", "exact_copies"),
    ] {
        assert_eq!(seen["planted"][planted], seen["seen"][saw], "{planted}");
    }
    let share = |name: &str| seen["seen"][name].as_f64().unwrap();
    assert!(share("recall") > 0.98 && share("precision") == 1.0, "{seen}");
    assert!(seen["seen"]["mirrors_whole"].as_u64().unwrap() >= 6, "{seen}");
    assert!(share("similar_share_after") < share("similar_share_before"), "{seen}");
    // But never into one that it did not make.
    dir.write("mine/thesis.txt", "do not lose this");
    assert_eq!(dir.run(&["demo", "-o", "mine"]).code, 2);
    assert!(dir.path("mine/thesis.txt").exists());
}

#[test]
fn plan_draws_the_curve() {
    let dir = Dir::new();
    let outcome = dir.run(&["plan", "--filter", "6x14r2", "--no-measure"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for words in ["half point 0.909", "48 bytes a document"] {
        assert!(outcome.stdout.contains(words), "{words}: {}", outcome.stdout);
    }
    let plan = dir.json(&["plan", "--threshold", "0.8", "--miss", "0.01", "--no-measure"]);
    assert!(plan["miss_at_threshold"].as_f64().unwrap() <= 0.01);
    assert_eq!((plan["name"].as_str(), plan["k"].as_u64()), (Some("default"), Some(16)), "{plan}");
}

/// The recipe for what people want to do is the smallest that does it, and its commands are those
/// of the program.
#[test]
fn plan_recommends_a_recipe_for_a_goal() {
    let dir = Dir::new();
    let web = ["generate", "mirrors", "--pages", "600", "--format", "warc", "-o", "INPUT", "-q"];
    assert_eq!(dir.run(&web).code, 0);
    for (goal, name) in
        [("dedup", "default"), ("mirrors", "default"), ("papers", "papers"), ("seen", "default")]
    {
        let plan = dir.json(&["plan", "--for", goal, "--threshold", "0.8", "--no-measure"]);
        assert_eq!(plan["name"], name, "{goal}");
        for folder in ["ATLAS", "CORPUS", "INDEX"] {
            let _ = std::fs::remove_dir_all(dir.path(folder));
        }
        for command in plan["commands"].as_array().unwrap() {
            let line = command.as_str().unwrap().strip_prefix("onionskin ").unwrap();
            let outcome = dir.line(line);
            assert_eq!(outcome.code, 0, "{line}: {}", outcome.stderr);
        }
    }
    // Features alone are enough at a high threshold, and smaller; an index needs minima.
    let high =
        |goal| dir.json(&["plan", "--for", goal, "--threshold", "0.98", "--no-measure"])["name"].clone();
    assert_eq!((high("dedup"), high("seen")), ("broder".into(), "default".into()));
    let strict = dir.run(&["plan", "--threshold", "0.02", "--no-measure"]);
    assert!(strict.code == 2 && strict.stderr.contains("84 minima miss at least"), "{}", strict.stderr);
    let given = dir.json(&["plan", "--far", "0.6", "--no-measure"]);
    assert!(given["accepted_at_far"].as_f64().unwrap() <= 0.01, "{given}");
    let fast = dir.json(&["plan", "--one-permutation", "--no-measure"]);
    assert_eq!(fast["name"], "fast");
}

/// The recommendation follows from the numbers that are shown with it.
#[test]
fn plan_chooses_by_what_it_measures() {
    let dir = Dir::new();
    for (goal, threshold) in [("dedup", "0.9"), ("dedup", "0.98"), ("papers", "0.9"), ("seen", "0.98")] {
        let plan = dir.json(&["plan", "--for", goal, "--threshold", threshold]);
        let named = plan["named"].as_array().unwrap();
        let serving: Vec<_> = named.iter().filter(|one| one["lacks"].is_null()).collect();
        let cost = |one: &serde_json::Value, key: &str| one[key].as_f64().unwrap();
        let least = |key: &str| serving.iter().map(|one| cost(one, key)).fold(f64::INFINITY, f64::min);
        let naive = |one: &serde_json::Value| {
            cost(one, "disk_bytes") / least("disk_bytes") + cost(one, "cpu_seconds") / least("cpu_seconds")
        };
        let chosen = named.iter().find(|one| one["name"] == plan["name"]).unwrap();
        assert!(chosen["lacks"].is_null() && cost(chosen, "miss_at_threshold") <= 0.01, "{plan}");
        assert!(serving.iter().all(|one| naive(chosen) * 0.95 <= naive(one)), "{goal}: {plan}");
        assert_eq!(chosen["cpu_seconds"], plan["cpu_seconds"], "{goal}");
        let reason = plan["reason"].as_str().unwrap();
        for one in named {
            let name = one["name"].as_str().unwrap();
            assert!(reason.contains(name), "{goal}: {name}: {reason}");
        }
        assert!(reason.contains("of CPU"), "{reason}");
    }
    // The bins of one permutation stay empty where documents are short.
    let short = dir.json(&["plan", "--mean-words", "50", "--no-measure"]);
    let fast = short["named"].as_array().unwrap().iter().find(|one| one["name"] == "fast").unwrap();
    assert_eq!(fast["lacks"], "is for documents of more than 84 words");
}

#[test]
fn generated_webs_are_the_same_in_every_shape() {
    let dir = Dir::new();
    let mut seen = vec![];
    for (format, compress) in [
        ("folder", None),
        ("warc", None),
        ("warc", Some("gz")),
        ("warc", Some("zst")),
        ("jsonl", None),
        ("jsonl", Some("gz")),
        ("jsonl", Some("zst")),
    ] {
        let name = format!("{format}{}", compress.unwrap_or(""));
        let mut arguments = vec!["generate", "demo", "--pages", "500", "--format", format, "-o", &name, "-q"];
        arguments.extend(compress.iter().flat_map(|how| ["--compress", how]));
        let outcome = dir.run(&arguments);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let atlas = format!("atlas-{name}");
        let scan = dir.json(&["scan", &name, "-o", &atlas]);
        assert_eq!(scan["bad_records"], serde_json::json!({}), "{name}");
        seen.push((name, scan["documents"].as_u64(), scan["tokens"].as_u64(), scan["sites"].as_u64()));
    }
    for shape in &seen {
        assert_eq!(
            (shape.1, shape.2, shape.3),
            (seen[0].1, seen[0].2, seen[0].3),
            "{shape:?} against {:?}",
            seen[0]
        );
    }
}

#[test]
fn a_closed_pipe_ends_quietly() {
    use std::io::Read;
    use std::process::Stdio;
    let dir = Dir::new();
    let mut child = dir
        .onionskin(&["generate", "text", "--pages", "20000", "-o", "-", "-q"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut few = [0; 1000];
    child.stdout.take().unwrap().read_exact(&mut few).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8(output.stderr).unwrap().as_str()), (Some(0), ""));
}

#[test]
fn completions_and_man_pages() {
    let dir = Dir::new();
    for shell in ["bash", "zsh", "fish"] {
        let outcome = dir.run(&["completions", shell]);
        assert!(outcome.code == 0 && outcome.stdout.contains("onionskin"), "{shell}");
    }
    assert_eq!(dir.run(&["man", "pages"]).code, 0);
    let page = std::fs::read_to_string(dir.path("pages/onionskin-scan.1")).unwrap();
    assert!(page.contains("memory") && page.contains("recipe"));
}
