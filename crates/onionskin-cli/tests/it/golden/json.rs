//! The fields of `--json`, command by command, on a small generated web.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::size::server::{Engine, Page};
use crate::size::{text, url};
use crate::util::Dir;

use super::shape::Shape;
use super::{file, help};

/// Commands whose output is no data.
const WITHOUT_JSON: &[&str] = &["completions", "man"];

/// What was printed for one command so far.
#[derive(Default)]
struct Printed {
    /// Command lines, each with the types of the lines that it printed.
    runs: String,
    shapes: BTreeMap<String, Shape>,
}

/// Runs commands with `--json` and remembers the shapes of what they print.
struct Recorder<'a> {
    dir: &'a Dir,
    printed: BTreeMap<String, Printed>,
    /// Words that stand for what differs from run to run.
    words: Vec<(&'static str, String)>,
}

impl Recorder<'_> {
    fn run(&mut self, command: &str, arguments: &str) {
        self.run_with_input(command, arguments, "", 0);
    }

    fn runs(&mut self, commands: &[(&str, &str)]) {
        for (command, arguments) in commands {
            self.run(command, arguments);
        }
    }

    fn run_with_input(&mut self, command: &str, arguments: &str, input: &str, code: i32) {
        let line = format!("{command} {arguments} --json");
        let spelled: Vec<String> = line.split_whitespace().map(|word| self.spell(word)).collect();
        let spelled: Vec<&str> = spelled.iter().map(String::as_str).collect();
        let outcome = self.dir.run_with_input(&spelled, input.as_bytes());
        assert_eq!(outcome.code, code, "{line}: {}{}", outcome.stderr, outcome.stdout);
        self.record(command, &line, &outcome.stdout);
    }

    fn spell(&self, word: &str) -> String {
        let known = self.words.iter().find(|(name, _)| *name == word);
        known.map_or_else(|| word.to_owned(), |(_, value)| value.clone())
    }

    fn record(&mut self, command: &str, line: &str, stdout: &str) {
        let printed = self.printed.entry(command.to_owned()).or_default();
        let mut types: Vec<String> = Vec::new();
        for line in stdout.lines() {
            let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            let name = value["type"].as_str().unwrap_or_else(|| panic!("no type: {line}")).to_owned();
            printed.shapes.entry(name.clone()).or_default().add(&value);
            types.push(name);
        }
        types.dedup();
        let types = if types.is_empty() { "nothing".to_owned() } else { types.join(", ") };
        writeln!(printed.runs, "$ onionskin {line}\n{types}\n").unwrap();
    }

    /// One file per command.
    fn files(&self) -> BTreeMap<String, String> {
        let files = self.printed.iter().map(|(command, printed)| {
            let mut text = printed.runs.clone();
            for (name, shape) in &printed.shapes {
                writeln!(text, "{name}").unwrap();
                shape.describe("", &mut text);
                text.push('\n');
            }
            text.truncate(text.trim_end().len() + 1);
            (format!("{}.txt", command.replace(' ', "-")), text)
        });
        files.collect()
    }
}

#[test]
fn json() {
    let dir = Dir::new();
    let mut recorder = Recorder { dir: &dir, printed: BTreeMap::new(), words: Vec::new() };
    whole_jobs(&mut recorder);
    stages(&mut recorder);
    answers(&mut recorder);
    sizes(&mut recorder);
    seen(&mut recorder);
    serve(&mut recorder);

    let covered: BTreeSet<String> = recorder.printed.keys().cloned().collect();
    let commands = help::commands(&dir).into_iter().filter(|command| !command.is_group());
    let expected: BTreeSet<String> = commands
        .map(|command| command.name())
        .filter(|name| !WITHOUT_JSON.contains(&name.as_str()))
        .collect();
    assert_eq!(covered, expected, "every command that can print JSON is run here");
    file::check("json", &recorder.files());
}

fn whole_jobs(recorder: &mut Recorder<'_>) {
    recorder.runs(&[
        ("demo", "-o demo --pages 600"),
        ("generate", "demo --pages 500 -o plain"),
        ("generate", "mirrors --pages 1200 --format warc --compress gz -o web --truth truth.jsonl --seed 1"),
    ]);
    recorder.dir.write("broken.jsonl", "{\"text\": \"a b c d e f\"}\n{\"text\": \n{\"text\": \"\"}\n");
    recorder.runs(&[
        ("run", "broken.jsonl -o small"),
        ("run", "web -o whole --threshold 0.8"),
        ("run", "web -o whole --threshold 0.8"),
        ("plan", "--no-measure"),
        ("plan", "--filter 6x14r2 --documents 1000"),
    ]);
}

fn stages(recorder: &mut Recorder<'_>) {
    recorder.runs(&[
        ("scan", "web -o atlas"),
        ("scan", "broken.jsonl -o small --overwrite"),
        // Copies below this are missed, which `evaluate` lists.
        ("similar", "atlas --threshold 0.97"),
        ("evaluate", "atlas --truth truth.jsonl --threshold 0.8"),
        ("similar", "atlas --exact --no-recall"),
        ("similar", "atlas --method exact"),
        ("similar", "atlas --method paragraphs --for-report"),
        ("similar", "atlas --iterations 2 --of 4"),
        ("similar", "atlas --preset sgm98-4 --for-report"),
        ("similar", "atlas --threshold 0.8"),
        ("collections", "atlas --merge strict --check"),
        ("collections", "atlas"),
        ("collections", "atlas --show"),
        // This web has rules of URLs, too.
        ("collections", "demo/atlas --show"),
        ("evaluate", "atlas --truth truth.jsonl"),
        ("report", "atlas --no-png"),
        ("report", "small atlas --no-png"),
        ("verify", "atlas"),
    ]);
    flip_a_byte(recorder.dir, "small/features/part-00000.parquet");
    recorder.run_with_input("verify", "small", "", 1);
}

fn answers(recorder: &mut Recorder<'_>) {
    recorder.runs(&[
        ("explain", "atlas 0 1"),
        ("explain", "atlas 0 1 --no-text"),
        ("explain", "atlas 0"),
        ("explain", "atlas cluster:0"),
        ("explain", "atlas collection:0"),
    ]);
    let members = recorder.dir.run(&["explain", "atlas", "cluster:0", "--json"]).stdout;
    let urls: Vec<Value> =
        members.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["url"].clone()).collect();
    recorder.words.push(("URL", urls[0].as_str().unwrap().to_owned()));
    recorder.words.push(("OTHER_URL", urls[1].as_str().unwrap().to_owned()));
    recorder.runs(&[
        ("explain", "atlas URL OTHER_URL"),
        ("dedup", "atlas --dry-run"),
        ("dedup", "atlas -o deduplicated --shards all"),
        ("dedup", "atlas -o annotated --shards all --annotate --threshold 0.9"),
        ("avoid", "atlas -o lists"),
        ("avoid", "atlas"),
        ("avoid simulate", "lists/avoid.json atlas"),
        ("avoid audit", "lists/avoid.json atlas --date 2026-11-16"),
        ("avoid alternate", "atlas URL"),
    ]);
}

fn sizes(recorder: &mut Recorder<'_>) {
    for (name, pages) in [("a", 0..900), ("b", 100..300)] {
        let lines = pages
            .clone()
            .map(|page| format!("{}\n", serde_json::json!({ "url": url(page), "text": text(page) })));
        recorder.dir.write(&format!("{name}.jsonl"), lines.collect::<String>());
        let scanned = recorder.dir.run(&["scan", &format!("{name}.jsonl"), "-o", name, "-q"]);
        assert_eq!(scanned.code, 0, "{}", scanned.stderr);
        recorder.dir.write(&format!("{name}.txt"), pages.map(|page| url(page) + "\n").collect::<String>());
    }
    let engine = |pages: std::ops::Range<u64>| {
        let pages = pages.map(|page| Page { url: url(page), text: text(page), rank: page });
        Engine::start(pages.collect(), None)
    };
    let engines = [engine(0..600), engine(200..900)];
    for (name, engine) in ["ENGINE", "OTHER_ENGINE"].into_iter().zip(&engines) {
        recorder.words.push((name, engine.template()));
    }
    recorder.dir.write("log.txt", "waaa\nwbbb wccc\nnothing\n");
    recorder.dir.write("study.csv", "what,number\nspace,4294967296\ntried,3834792\nserver,289\nserver,300\n");
    recorder.runs(&[
        ("size", "a b a.txt"),
        ("size", "a b --by text"),
        ("size", "ENGINE OTHER_ENGINE --texts a --samples 50 --rate 100000 --page 50"),
        ("size", "ENGINE OTHER_ENGINE --method searches --queries log.txt --rate 100000 --page 50"),
        ("size", "atlas --method walk --samples 20"),
        ("size", "study.csv --method addresses"),
    ]);
}

/// Some words of a page; neighbours share most of them.
fn words(page: u64) -> String {
    let words: Vec<String> = (page..page + 30).map(|word| format!("word{}", word % 97)).collect();
    words.join(" ")
}

fn seen(recorder: &mut Recorder<'_>) {
    let line =
        |page: u64| format!("{}\n", serde_json::json!({ "id": page.to_string(), "text": words(page) }));
    let input = format!("{}{}{}not JSON\n{{\"text\":\" \"}}\n", line(0), line(1), line(50));
    recorder.run_with_input("seen add", "index --sketches", &input, 0);
    recorder.run_with_input("seen add-if-new", "index", &line(2), 0);
    recorder.run_with_input("seen check", "index", &input, 0);
    recorder.runs(&[
        ("seen remove", "index --name 0 --name none"),
        ("seen stats", "index"),
        ("seen compact", "index"),
        ("seen verify", "index"),
    ]);
    let largest =
        |name: &String| std::fs::metadata(recorder.dir.path(&format!("index/{name}"))).unwrap().len();
    let files = crate::util::files(&recorder.dir.path("index"));
    let largest = files.into_keys().max_by_key(largest).unwrap();
    flip_a_byte(recorder.dir, &format!("index/{largest}"));
    recorder.run_with_input("seen verify", "index", "", 1);
    recorder.run("seen verify", "index --repair");
}

/// The server prints one line and stays.
fn serve(recorder: &mut Recorder<'_>) {
    let arguments = ["serve", "--seen", "served", "--listen", "127.0.0.1:0", "--json"];
    let mut command = recorder.dir.onionskin(&arguments);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    let read = BufReader::new(child.stdout.take().unwrap()).read_line(&mut line);
    child.kill().unwrap();
    child.wait().unwrap();
    read.unwrap();
    recorder.record("serve", &arguments.join(" "), &line);
}

fn flip_a_byte(dir: &Dir, name: &str) {
    let path = dir.path(name);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&path, bytes).unwrap();
}
