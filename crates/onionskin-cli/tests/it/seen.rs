//! `onionskin seen`, as people and programs use it.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use onionskin_core::SplitMix64;
use serde_json::Value;

use crate::util::{Dir, Outcome, gzip, nested, parquet_file, strings};

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
    assert_eq!((&answers[0]["documents"], &answers[1]["documents"]), (&1.into(), &0.into()));
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
fn sketches_tell_how_near() {
    let dir = Dir::new();
    let words = |from: u64, to: u64| (from..to).map(|word| format!("word{word} ")).collect::<String>();
    // 197 shingles of four words against 193 of them and 4 others: 193 / 201.
    let document = |id: &str, text: String| format!("{{\"id\":{id:?},\"text\":{text:?}}}\n");
    let input = document("a", words(0, 200)) + &document("b", words(4, 204)) + &document("c", words(0, 200));
    dir.write("in.jsonl", &input);
    let answers = lines(&dir.run(&["seen", "add", "index", "in.jsonl", "--sketches"]));
    assert_eq!(statuses(&answers), ["new", "near", "exact"]);
    let told = answers[1]["of"]["resemblance"].as_f64().unwrap();
    let error = (193.0 / 201.0 * 8.0 / 201.0 / 84.0f64).sqrt();
    assert!((told - 193.0 / 201.0).abs() < 4.0 * error, "{told}");
    assert!((told * 84.0 - (told * 84.0).round()).abs() < 1e-9, "{told} is no share of 84");
    let stats = dir.json(&["seen", "stats", "index"]);
    assert_eq!((&stats["minima"], &stats["sketch_bytes"]), (&84.into(), &180.into()));
    let b = document("e", words(8, 208) + "end");
    let check = |threshold: &str| {
        let arguments = ["seen", "check", "index", "--threshold", threshold];
        lines(&dir.run_with_input(&arguments, b.as_bytes()))[0]["status"].as_str().unwrap().to_owned()
    };
    assert_eq!((check("0.8"), check("1")), ("near".to_owned(), "new".to_owned()));

    let plain = ["seen", "add", "plain", "in.jsonl"];
    lines(&dir.run(&[&plain[..], &["--no-sketches"]].concat()));
    let outcome = dir.run(&[&plain[..], &["--sketches"]].concat());
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("keeps no sketches; make another without"), "{}", outcome.stderr);
    let outcome = dir.run(&["seen", "check", "plain", "in.jsonl", "--threshold", "0.9"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("keeps no sketches"), "{}", outcome.stderr);
    assert_eq!(dir.run(&["seen", "check", "index", "in.jsonl", "--threshold", "2"]).code, 2);
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
    assert_eq!(answers[0]["documents"], 1);
    let outcome = dir.run(&["seen", "remove", "index", "--name", "x"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("\"x\" is not a whole number"), "{}", outcome.stderr);
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

/// Families of texts: a first one, and edited versions of any of those before at all levels.
fn families(n: u64) -> Vec<(u64, Vec<u64>)> {
    let mut rng = SplitMix64::new(17);
    let mut documents = Vec::new();
    for family in 0..n {
        let mut versions = vec![(0..300).map(|_| rng.next_u64() % 50_000).collect::<Vec<_>>()];
        for _ in 0..5 {
            let mut words = versions[rng.next_u64() as usize % versions.len()].clone();
            // A word that is changed costs four of three hundred shingles.
            for _ in 0..rng.next_u64() % 16 {
                let at = rng.next_u64() as usize % words.len();
                words[at] = rng.next_u64() % 50_000;
            }
            versions.push(words);
        }
        documents.extend(versions.into_iter().map(|words| (family, words)));
    }
    documents
}

fn naive_resemblance(a: &[u64], b: &[u64]) -> f64 {
    let shingles = |words: &[u64]| words.windows(4).map(<[u64]>::to_vec).collect::<BTreeSet<_>>();
    let (a, b) = (shingles(a), shingles(b));
    let shared = a.intersection(&b).count();
    shared as f64 / (a.len() + b.len() - shared) as f64
}

/// What the index says that it finds at its threshold, it finds, in the bytes that it says.
#[test]
fn an_index_keeps_its_threshold() {
    let dir = Dir::new();
    let documents = families(240);
    let lines_of: String = (0..)
        .zip(&documents)
        .map(|(id, (_, words)): (u32, _)| {
            let text: String = words.iter().map(|word| format!("w{word} ")).collect();
            format!("{{\"id\": \"d{id}\", \"text\": {text:?}}}\n")
        })
        .collect();
    dir.write("in.jsonl", &lines_of);
    assert_eq!(dir.run(&["scan", "in.jsonl", "-o", "atlas", "-q"]).code, 0);
    let best: Vec<f64> = (0..documents.len())
        .map(|at| {
            let (family, words) = &documents[at];
            let before = documents[..at].iter().filter(|(other, _)| other == family);
            before.map(|(_, other)| naive_resemblance(words, other)).fold(0.0, f64::max)
        })
        .collect();
    for threshold in ["0.95", "0.9", "0.8"] {
        let at: f64 = threshold.parse().unwrap();
        let add = |index: &str, from: &[&str]| {
            let arguments = [&["seen", "add", index, "--threshold", threshold], from].concat();
            lines(&dir.run(&arguments))
        };
        let answers = add(&format!("texts-{threshold}"), &["in.jsonl"]);
        // The scan has kept what the same features are made of.
        assert_eq!(add(&format!("atlas-{threshold}"), &["--atlas", "atlas"]), answers);
        let partners: Vec<usize> = (0..documents.len()).filter(|doc| best[*doc] >= at).collect();
        let found = partners.iter().filter(|doc| answers[**doc]["status"] != "new").count();
        assert!(partners.len() > 150, "{threshold}: only {} have a partner", partners.len());
        assert!(found * 100 >= partners.len() * 99, "{threshold}: {found} of {}", partners.len());
        // What is near has a value, and what is far from the threshold is new.
        for (doc, answer) in answers.iter().enumerate().filter(|(_, answer)| answer["status"] == "near") {
            assert_eq!(answer["of"]["method"], "sketch");
            let told = answer["of"]["resemblance"].as_f64().unwrap();
            assert!(told > at - 0.16 && best[doc] > at - 0.3, "{threshold}: {answer} {}", best[doc]);
        }
        let stats = dir.json(&["seen", "stats", &format!("texts-{threshold}")]);
        assert_eq!(stats["threshold"], at);
        assert!(stats["found_at_threshold"].as_f64().unwrap() >= 0.99, "{stats}");
        let (bytes, expected) = (&stats["bytes_per_document"], &stats["expected_bytes_per_document"]);
        // The catalogue and the directory of a run weigh more where there are few documents.
        assert!(bytes.as_f64().unwrap() < expected.as_f64().unwrap() + 10.0, "{stats}");
    }
}

#[test]
fn what_an_index_does_not_find_is_said() {
    let dir = Dir::new();
    dir.write("in.jsonl", [1, 2].map(line).concat());
    let said = |arguments: &[&str]| {
        let outcome = dir.run(arguments);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.stderr
    };
    let made = said(&["seen", "add", "index", "in.jsonl"]);
    assert!(made.contains("10x8r1") && made.contains("finds 99.2 % of documents at 0.9;"), "{made}");
    assert!(made.contains("175 bytes per document") && !made.contains("warning"), "{made}");
    let asked = said(&["seen", "check", "index", "in.jsonl", "--threshold", "0.8"]);
    assert!(asked.contains("warning: this index finds 83.7 % of documents at 0.8"), "{asked}");
    // An atlas that keeps features and no minima.
    said(&["scan", "in.jsonl", "-o", "atlas", "--recipe", "broder", "-q"]);
    let from_atlas = said(&["seen", "add", "plain", "--atlas", "atlas", "--threshold", "0.9"]);
    assert!(from_atlas.contains("finds 41.5 % of documents at 0.9"), "{from_atlas}");
    assert!(from_atlas.contains("the atlas keeps no sketches"), "{from_atlas}");
    said(&["seen", "check", "plain", "in.jsonl", "--threshold", "0.9"]);
    let outcome = dir.run(&["seen", "add", "other", "--atlas", "atlas", "--sketches"]);
    assert!(outcome.code == 2 && !dir.path("other").exists(), "{}", outcome.stderr);
    let quiet = said(&["seen", "add", "index", "in.jsonl", "--quiet"]);
    assert_eq!(quiet, "");
}

#[test]
fn html_and_the_other_formats_of_a_scan() {
    let dir = Dir::new();
    let words = text(1);
    let html = format!("<title>Title</title><script>var x;</script><p>{words}</p>");
    dir.write("in.jsonl", line(1));
    lines(&dir.run(&["seen", "add", "index", "in.jsonl"]));
    dir.write("page.html", &html);
    dir.write("html.jsonl", format!("{{\"id\":\"h\",\"text\":{html:?}}}\n"));
    dir.write("rows.csv", format!("id,text\nc,{words}\ne,other words of a row\n"));
    let check = |arguments: &[&str]| {
        let answers = lines(&dir.run(&[&["seen", "check", "index"], arguments].concat()));
        answers
            .iter()
            .map(|answer| format!("{} {}", answer["name"], answer["status"]).replace('"', ""))
            .collect::<Vec<_>>()
    };
    assert_eq!(check(&["html.jsonl", "--text-is-html"]), ["h exact"]);
    assert_eq!(check(&["html.jsonl"]), ["h new"]);
    assert_eq!(check(&["page.html"]), ["page.html exact"]);
    assert_eq!(check(&["rows.csv"]), ["c exact", "e new"]);
    assert_eq!(check(&["rows.csv", "in.jsonl", "page.html"]).len(), 4);
    // A page among the files of a folder.
    std::fs::create_dir(dir.path("folder")).unwrap();
    dir.write("folder/a.html", &html);
    assert_eq!(check(&["folder"]), ["a.html exact"]);
}

/// Files have the fields that their authors gave them; those of collections are known.
#[test]
fn files_of_known_layouts_are_documents() {
    let dir = Dir::new();
    lines(&dir.run_with_input(&["seen", "add", "index"], [1, 2].map(line).concat().as_bytes()));
    let (one, two) = (text(1), text(2));
    dir.write(
        "dolma.jsonl",
        format!("{{\"id\":\"a\",\"text\":{one:?},\"source\":\"s\",\"added\":\"2024\",\"metadata\":{{\"url\":\"http://d/\"}}}}\n"),
    );
    dir.write(
        "fineweb.jsonl",
        format!("{{\"text\":{one:?},\"id\":\"b\",\"dump\":\"CC\",\"url\":\"http://f/\",\"token_count\":3}}\n{{\"text\":null,\"id\":\"c\"}}\n"),
    );
    dir.write("red1.jsonl", format!("{{\"text\":{one:?},\"meta\":{{\"url\":\"http://r/1\"}}}}\n"));
    dir.write(
        "red2.jsonl.gz",
        gzip(format!("{{\"raw_content\":{two:?},\"doc_id\":\"r2\",\"url\":\"http://r/2\"}}\n").as_bytes()),
    );
    dir.write("c4.jsonl", format!("{{\"text\":{two:?},\"timestamp\":\"2019\",\"url\":\"http://c/\"}}\n"));
    let parquet = parquet_file(vec![
        ("raw_content", strings(&[Some(&one), None])),
        ("source", strings(&[Some("s"), Some("s")])),
        ("metadata", nested("url", &[Some("http://p/1"), Some("http://p/2")])),
    ]);
    dir.write("rows.parquet", &parquet);
    let check = |arguments: &[&str]| {
        let answers = lines(&dir.run(&[&["seen", "check", "index"], arguments].concat()));
        answers
            .iter()
            .map(|answer| format!("{} {}", answer["name"], answer["status"]).replace('"', ""))
            .collect::<Vec<_>>()
    };
    assert_eq!(check(&["dolma.jsonl"]), ["a exact"]);
    assert_eq!(check(&["fineweb.jsonl"]), ["b exact", "c empty"]);
    assert_eq!(check(&["red1.jsonl", "red2.jsonl.gz"]), ["http://r/1 exact", "r2 exact"]);
    assert_eq!(check(&["c4.jsonl"]), ["http://c/ exact"]);
    assert_eq!(check(&["rows.parquet"]), ["http://p/1 exact", "http://p/2 empty"]);
    // In a folder they are the same documents; what has another field is bad, here and there.
    dir.write(
        "all/1.jsonl",
        format!("{{\"raw_content\":{one:?},\"url\":\"http://r/\"}}\n{{\"text\":null}}\n{{\"body\":\"x\"}}\n"),
    );
    dir.write("all/2.parquet", &parquet);
    let told = check(&["all"]);
    assert_eq!(told.len(), 5, "{told:?}");
    let statuses: Vec<&str> = told.iter().map(|told| told.rsplit(' ').next().unwrap()).collect();
    assert_eq!(statuses, ["exact", "empty", "bad", "exact", "empty"]);
    let told = check(&["all/1.jsonl"]);
    assert_eq!(told[2], "all/1.jsonl:3 bad");
    // The order of the names is the user's, and names are removed by the same fields.
    assert_eq!(check(&["all/1.jsonl", "--text-field", "body,raw_content"])[2], "all/1.jsonl:3 new");
    lines(&dir.run(&["seen", "add", "index", "red1.jsonl"]));
    let removed = lines(&dir.run(&["seen", "remove", "index", "red1.jsonl"]));
    assert_eq!((&removed[0]["name"], &removed[0]["documents"]), (&"http://r/1".into(), &1.into()));
}

/// The resemblance of texts that are read again is that of their shingles, and an estimate stays
/// one where they cannot be.
#[test]
fn a_resemblance_is_verified_on_texts() {
    let dir = Dir::new();
    let documents = families(30);
    let lines_of = |documents: &[(u64, Vec<u64>)], prefix: &str| -> String {
        let line = |(n, (_, words)): (usize, &(u64, Vec<u64>))| {
            let text: String = words.iter().map(|word| format!("w{word} ")).collect();
            format!("{{\"id\": \"{prefix}{n}\", \"text\": {text:?}}}\n")
        };
        documents.iter().enumerate().map(line).collect()
    };
    let (old, new): (Vec<_>, Vec<_>) = documents.into_iter().enumerate().partition(|(n, _)| n % 6 < 3);
    let [old, new] = [old, new].map(|part| part.into_iter().map(|(_, one)| one).collect::<Vec<_>>());
    dir.write("old.jsonl.gz", gzip(lines_of(&old, "o").as_bytes()));
    dir.write("new.jsonl", lines_of(&new, "n"));
    assert_eq!(dir.line("scan old.jsonl.gz -o atlas -q").code, 0);
    lines(&dir.line("seen add index --atlas atlas --threshold 0.8"));
    let estimated = lines(&dir.line("seen check index new.jsonl"));
    let outcome = dir.line("seen check index new.jsonl --verify text --texts atlas");
    assert!(!outcome.stderr.contains("warning"), "{}", outcome.stderr);
    let verified = lines(&outcome);
    let mut near = 0;
    for ((answer, estimate), (_, words)) in verified.iter().zip(&estimated).zip(&new) {
        assert_eq!(
            (&answer["status"], &answer["of"]["name"]),
            (&estimate["status"], &estimate["of"]["name"])
        );
        if answer["status"] == "near" {
            let of: usize = answer["of"]["name"].as_str().unwrap()[1..].parse().unwrap();
            let naive = naive_resemblance(words, &old[of].1);
            let told = answer["of"]["resemblance"].as_f64().unwrap();
            assert!((told - naive).abs() < 1e-12, "{told} is not {naive}");
            assert_eq!(
                (&answer["of"]["method"], &estimate["of"]["method"]),
                (&"text".into(), &"sketch".into())
            );
            near += 1;
        }
    }
    assert!(near > 20, "only {near} are near");
    assert_eq!(lines(&dir.line("seen check index new.jsonl --verify sketch")), estimated);

    // A document that the atlas does not have, and an input that is gone.
    let (_, words) = &new[0];
    let text: String = words.iter().map(|word| format!("w{word} ")).collect();
    dir.write("more.jsonl", format!("{{\"id\":\"m\",\"text\":{text:?}}}\n"));
    lines(&dir.line("seen remove index --name o0 --name o1 --name o2"));
    lines(&dir.line("seen add index more.jsonl"));
    dir.write("edited.jsonl", format!("{{\"id\":\"e\",\"text\":\"{text} end\"}}\n"));
    let check = |index: &str| {
        let outcome = dir.line(&format!("seen check {index} edited.jsonl --verify text --texts atlas"));
        (lines(&outcome)[0]["of"]["method"].clone(), outcome.stderr)
    };
    let (method, said) = check("index");
    assert_eq!(method, "sketch");
    assert!(
        said.contains(
            "warning: the resemblance of 1 near-duplicate is an estimate: atlas has no document called m"
        ),
        "{said}"
    );
    std::fs::remove_file(dir.path("old.jsonl.gz")).unwrap();
    dir.write("others.jsonl", lines_of(&new[3..], "n"));
    let outcome = dir.line("seen check index others.jsonl --verify text --texts atlas");
    assert!(
        outcome.code == 0 && outcome.stderr.contains("is an estimate: old.jsonl.gz"),
        "{}",
        outcome.stderr
    );

    for (arguments, said) in [
        (
            "--verify text",
            "keeps no texts to compare with\nhint: name the atlas whose documents were added with --texts ATLAS",
        ),
        ("--verify maybe", "known: sketch, text"),
        ("--verify sketch --texts atlas", "--texts belongs to --verify text"),
        ("--texts atlas", "--verify"),
    ] {
        let outcome = dir.line(&format!("seen check index new.jsonl {arguments}"));
        assert!(outcome.code == 2 && outcome.stderr.contains(said), "{arguments}: {}", outcome.stderr);
    }
    let outcome = dir.line("seen check index --atlas atlas --verify text --texts atlas");
    assert!(outcome.code == 2 && outcome.stderr.contains("without texts"), "{}", outcome.stderr);
    lines(&dir.line("seen add plain more.jsonl --no-sketches"));
    let outcome = dir.line("seen check plain new.jsonl --verify sketch");
    assert!(outcome.code == 2 && outcome.stderr.contains("keeps no sketches"), "{}", outcome.stderr);
}

#[test]
fn lines_of_new_documents_are_copied() {
    let dir = Dir::new();
    dir.write("in.jsonl", [1, 2, 1].map(line).concat());
    lines(&dir.run(&["seen", "add-if-new", "index", "in.jsonl", "--new", "new.jsonl", "--batch", "2"]));
    assert_eq!(std::fs::read_to_string(dir.path("new.jsonl")).unwrap(), [1, 2].map(line).concat());
    dir.write("more.jsonl", [2, 3].map(line).concat());
    lines(&dir.run(&["seen", "check", "index", "more.jsonl", "--new", "new.jsonl"]));
    assert_eq!(std::fs::read_to_string(dir.path("new.jsonl")).unwrap(), [1, 2, 3].map(line).concat());
    dir.write("rows.csv", "id,text\na,some words\n");
    let outcome = dir.run(&["seen", "check", "index", "rows.csv", "--new", "new.jsonl"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("rows.csv: --new copies lines of JSON"), "{}", outcome.stderr);
}

#[test]
fn a_binary_input_is_one_error() {
    let dir = Dir::new();
    let bytes: Vec<u8> =
        (0..4000u32).map(|n| if n % 50 == 0 { b'\n' } else { (n * 37 % 251) as u8 }).collect();
    std::fs::write(dir.path("picture.bin"), &bytes).unwrap();
    lines(&dir.run_with_input(&["seen", "add", "index"], line(1).as_bytes()));
    let outcome = dir.run(&["seen", "check", "index", "picture.bin", "--quiet"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""));
    assert!(
        outcome.stderr.contains("picture.bin: neither text nor a format that is known"),
        "{}",
        outcome.stderr
    );
    let outcome = dir.run_with_input(&["seen", "check", "index", "--quiet"], &bytes);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""));
    assert!(outcome.stderr.contains("-: neither lines of JSON nor a format"), "{}", outcome.stderr);
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

/// What should be in the index, as far as the answers have told.
#[derive(Default)]
struct Known {
    living: BTreeSet<u64>,
    /// Sent and not answered for: there or not.
    doubtful: BTreeSet<u64>,
    removed: BTreeSet<u64>,
    /// Given to a removal that was not answered for: all there, or none.
    leaving: BTreeSet<u64>,
    next: u64,
}

impl Known {
    /// Adds until it is killed, and notes what was answered for.
    fn add(&mut self, mut child: Child, wait: Duration) {
        let answered = Arc::new(AtomicU64::new(self.next));
        let mut stdin = child.stdin.take().unwrap();
        let (from, told) = (self.next, Arc::clone(&answered));
        let feeder = std::thread::spawn(move || {
            let mut sent = from;
            // Not far ahead of the answers, so that little is in doubt.
            loop {
                if sent >= told.load(Ordering::Acquire) + 100 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                if stdin.write_all(line(sent).as_bytes()).is_err() {
                    return sent;
                }
                sent += 1;
            }
        });
        let stdout = child.stdout.take().unwrap();
        let told = Arc::clone(&answered);
        let reader = std::thread::spawn(move || {
            for answer in BufReader::new(stdout).lines().map_while(Result::ok) {
                // The last line may be cut off by the kill.
                let Ok(answer) = serde_json::from_str::<Value>(&answer) else { break };
                assert_eq!((&answer["status"], &answer["added"]), (&"new".into(), &true.into()), "{answer}");
                told.store(number(&answer["name"]) + 1, Ordering::Release);
            }
        });
        std::thread::sleep(wait);
        child.kill().unwrap();
        child.wait().unwrap();
        let sent = feeder.join().unwrap();
        reader.join().unwrap();
        let answered = answered.load(Ordering::Acquire);
        self.living.extend(self.next..answered);
        // The one whose writing failed may have come whole.
        self.doubtful = (answered..=sent).collect();
        self.next = sent + 1;
    }

    fn remove(&mut self, child: Child, wait: Duration, victims: BTreeSet<u64>) {
        let told = kill_unless_done(child, wait);
        victims.iter().for_each(|id| {
            self.living.remove(id);
        });
        // Everything is safe before the first answer.
        match told.is_empty() {
            true => self.leaving = victims,
            false => self.removed.extend(victims),
        }
    }

    /// Opens the index and looks at everything in doubt, and at some of the rest.
    fn check(&mut self, dir: &Dir, rng: &mut SplitMix64, round: u64) {
        let mut asked: BTreeSet<u64> = self.doubtful.union(&self.leaving).copied().collect();
        for known in [&self.living, &self.removed] {
            let known: Vec<u64> = known.iter().copied().collect();
            let some = (0..100.min(known.len())).map(|_| known[rng.next_u64() as usize % known.len()]);
            asked.extend(some);
        }
        let there = self.found(dir, &asked);
        for id in &asked {
            let (known, gone) = (self.living.contains(id), self.removed.contains(id));
            assert!(!known || there.contains(id), "round {round}: d{id} is lost");
            assert!(!gone || !there.contains(id), "round {round}: d{id} is there again");
        }
        self.living.extend(self.doubtful.intersection(&there));
        self.doubtful.clear();
        let left = self.leaving.intersection(&there).count();
        assert!(left == 0 || left == self.leaving.len(), "round {round}: half of a removal");
        let leaving = std::mem::take(&mut self.leaving);
        if left == 0 {
            self.removed.extend(leaving)
        } else {
            self.living.extend(leaving)
        }
        let stats = dir.json(&["seen", "stats", "index"]);
        let documents = stats["documents"].as_u64().unwrap() - stats["removed"].as_u64().unwrap();
        assert_eq!(documents, self.living.len() as u64, "round {round}: lost, or there twice");
        let whole = dir.run(&["seen", "verify", "index"]);
        assert_eq!(whole.code, 0, "round {round}: {}", whole.stdout);
    }

    fn found(&self, dir: &Dir, ids: &BTreeSet<u64>) -> BTreeSet<u64> {
        let input: String = ids.iter().copied().map(line).collect();
        let answers = lines(&dir.run_with_input(&["seen", "check", "index"], input.as_bytes()));
        assert_eq!(answers.len(), ids.len());
        let mut there = BTreeSet::new();
        for answer in answers.iter().filter(|answer| answer["status"] != "new") {
            assert_eq!((&answer["status"], &answer["of"]["name"]), (&"exact".into(), &answer["name"]));
            there.insert(number(&answer["name"]));
        }
        there
    }
}

fn number(name: &Value) -> u64 {
    name.as_str().unwrap()[1..].parse().unwrap()
}

/// What a program has printed by the time it is killed, or by its end if that comes before.
fn kill_unless_done(mut child: Child, wait: Duration) -> String {
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).unwrap();
        text
    });
    let start = Instant::now();
    while start.elapsed() < wait && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_micros(200));
    }
    let _ = child.kill();
    child.wait().unwrap();
    reader.join().unwrap()
}

/// `kill -9` under load, while documents are added and removed and the index is compacted: what was
/// answered for is there, nothing is there twice, and it always opens.
#[test]
fn kills_lose_nothing_that_was_acknowledged() {
    const SEED: u64 = 6;
    let dir = Dir::new();
    let kills = if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 200 } else { 12 };
    let mut rng = SplitMix64::new(SEED);
    let mut known = Known::default();
    // A log that is full every few batches, so that runs are made and merged all the time.
    let add = ["seen", "add-if-new", "index", "--batch", "7", "--log-documents", "50", "--memory", "8M"];
    lines(&dir.run_with_input(&add, b""));
    for round in 0..kills {
        let spawn = |arguments: &[&str]| {
            let pipe = Stdio::piped;
            dir.onionskin(arguments).stdin(pipe()).stdout(pipe()).stderr(Stdio::null()).spawn().unwrap()
        };
        // Removals and compactions take as long as starting the program and a little more.
        let moment = |least: u64, most: u64, rng: &mut SplitMix64| {
            Duration::from_micros(1000 * least + rng.next_u64() % (1000 * (most - least)))
        };
        match rng.next_u64() % 5 {
            3 if !known.living.is_empty() => {
                let ids: Vec<u64> = known.living.iter().copied().collect();
                let victims: BTreeSet<u64> =
                    (0..ids.len() / 8 + 1).map(|_| ids[rng.next_u64() as usize % ids.len()]).collect();
                let mut child = spawn(&["seen", "remove", "index"]);
                let names: String = victims.iter().map(|id| format!("\"d{id}\"\n")).collect();
                child.stdin.take().unwrap().write_all(names.as_bytes()).unwrap();
                known.remove(child, moment(3, 60, &mut rng), victims);
            }
            4 => {
                kill_unless_done(spawn(&["seen", "compact", "index"]), moment(3, 60, &mut rng));
            }
            _ => known.add(spawn(&add), moment(5, 200, &mut rng)),
        }
        known.check(&dir, &mut rng, round);
    }
    assert!(known.living.len() as u64 > 5 * kills, "only {} documents", known.living.len());
    let all: BTreeSet<u64> = (0..known.next).collect();
    assert_eq!(known.found(&dir, &all), known.living, "seed {SEED}");
    // Every name once: removing tells how many documents had it.
    let names: String = all.iter().map(|id| format!("\"d{id}\"\n")).collect();
    let removed = lines(&dir.run_with_input(&["seen", "remove", "index"], names.as_bytes()));
    for line in &removed {
        let expected = u64::from(known.living.contains(&number(&line["name"])));
        assert_eq!(line["documents"], expected, "{line}");
    }
}
