//! How big crawls, lists and engines are against each other, as people ask for it.

pub mod server;

use std::collections::BTreeSet;
use std::ops::Range;

use serde_json::Value;

use crate::util::Dir;
use server::{Engine, Page};

fn scramble(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Forty to eighty words out of a thousand, in letters only.
pub fn text(page: u64) -> String {
    let words = 40 + scramble(page) % 41;
    let word = |n: u64| {
        let mut number = scramble(page * 1_000 + n) % 1_000;
        let mut word = String::from("w");
        for _ in 0..3 {
            word.push(char::from(b'a' + (number % 10) as u8));
            number /= 10;
        }
        word
    };
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

pub fn url(page: u64) -> String {
    format!("http://p{}.example/{page}", page % 7)
}

fn line(page: u64) -> String {
    format!("{}\n", serde_json::json!({ "url": url(page), "text": text(page) }))
}

fn scan(dir: &Dir, name: &str, pages: Range<u64>) {
    dir.write(&format!("{name}.jsonl"), pages.map(line).collect::<String>());
    let outcome = dir.run(&["scan", &format!("{name}.jsonl"), "-o", name]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
}

fn covers(number: &Value, truth: f64) -> bool {
    // What was sampled whole is exact but for rounding.
    number["low"].as_f64().unwrap() <= truth + 1e-9 && truth <= number["high"].as_f64().unwrap() + 1e-9
}

#[test]
fn three_crawls_nested_and_overlapping() {
    let dir = Dir::new();
    scan(&dir, "a", 0..1_600);
    scan(&dir, "b", 400..2_400);
    scan(&dir, "c", 1_400..2_000);
    // One seed out of many that cover all four; how often they do is tested with the library.
    let seen = dir.json(&["size", "a", "b", "c", "--samples", "400", "--seed", "7"]);
    assert_eq!(
        (&seen["type"], &seen["method"], &seen["by"]),
        (&"size".into(), &"overlap".into(), &"near".into())
    );
    for (member, size, coverage) in [(1, 1.25, 2_000.0 / 2_400.0), (2, 0.375, 0.25)] {
        let member = &seen["members"][member];
        assert!(covers(&member["size"], size), "{member}");
        assert!(covers(&member["coverage"], coverage), "{member}");
    }
    assert_eq!(seen["fractions"].as_array().unwrap().len(), 6);
    let names: Vec<&str> =
        seen["biases"].as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["checking bias", "document restriction bias"]);
    // The same again, and by address, and for people.
    assert_eq!(dir.json(&["size", "a", "b", "c", "--samples", "400", "--seed", "7"])["parts"], seen["parts"]);
    let by_url = dir.json(&["size", "a", "b", "c", "--by", "url", "--fit", "plain", "--confidence", "0.99"]);
    assert_eq!(by_url["members"][1]["counted"], 2_000);
    assert!(covers(&by_url["members"][1]["size"], 1.25), "{by_url}");
    let outcome = dir.run(&["size", "a", "b", "--by", "text"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    for wanted in [
        "A  atlas   a",
        "Pages are the same by text, word by word.",
        "│ A ┆        ┆ 75.0 % │",
        "│ B ┆   2,000 ┆  2000 ┆   2,000 ┆       1.250 ┆      ┆       83.3 % ┆      │",
        "│ A and B           ┆ 50.0 % ┆      │",
        "- checking bias: contents were compared word by word",
    ] {
        assert!(outcome.stdout.contains(wanted), "{wanted}\n{}", outcome.stdout);
    }
}

#[test]
fn lists_disjoint_ones_and_bad_ones() {
    let dir = Dir::new();
    scan(&dir, "a", 0..100);
    dir.write("other.txt", (500..700).map(|page| url(page) + "\n").collect::<String>());
    let seen = dir.json(&["size", "a", "other.txt"]);
    assert_eq!(
        (&seen["by"], &seen["basis"], &seen["members"][1]["size"]),
        (&"url".into(), &"counts".into(), &Value::Null)
    );
    let outcome = dir.run(&["size", "a", "other.txt", "--samples", "50"]);
    assert!(outcome.stdout.contains("The size of B against A cannot be told"), "{}", outcome.stdout);
    // Standard input, and the same pages.
    let same: String =
        (0..50).map(|page| url(page).to_uppercase().replace("EXAMPLE", "example") + "\n").collect();
    let outcome = dir.run_with_input(&["size", "a", "-", "--json"], same.as_bytes());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let seen: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(seen["members"][1]["counted"], 50, "{seen}");
    let empty = dir.write("empty.txt", "");
    let outcome = dir.run(&["size", "a", empty.to_str().unwrap()]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("B is empty"), "{}", outcome.stdout);
    let both = dir.run(&["size", "empty.txt", "-"]);
    assert_eq!(both.code, 1, "nothing to measure: {}", both.stdout);
    for (arguments, wanted) in [
        (vec!["size", "a"], "at least two"),
        (vec!["size", "a", "nowhere"], "nowhere"),
        (vec!["size", "a", "other.txt", "--by", "text"], "list of addresses"),
        (
            vec!["size", "a", "other.txt", "--method", "searches", "--queries", "other.txt"],
            "not a search engine",
        ),
        (vec!["size", "a", "other.txt", "--method", "walk"], "takes one atlas"),
        (vec!["size", "a", "b", "--check", "8"], "as in 1x8"),
        (vec!["size", "a", "b", "--results", "json:url"], "does not say where"),
    ] {
        let outcome = dir.run(&arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(outcome.stderr.contains(wanted), "{arguments:?}: {}", outcome.stderr);
    }
}

/// Three engines over pages below 900, each with a ranking of its own.
fn engines(fails_every: Option<u64>) -> [Engine; 3] {
    let page = |page: u64, rank: u64| Page { url: url(page), text: text(page), rank };
    let longest = (0..600).map(|p| page(p, 1_000 - text(p).len() as u64)).collect();
    let popular = (200..900).map(|p| page(p, p)).collect();
    let scrambled = (0..900).filter(|p| p % 2 == 0).map(|p| page(p, scramble(p))).collect();
    [longest, popular, scrambled].map(|pages| Engine::start(pages, fails_every))
}

#[test]
fn three_engines_over_http() {
    let dir = Dir::new();
    scan(&dir, "texts", 0..900);
    let engines = engines(Some(40));
    let templates = engines.each_ref().map(Engine::template);
    let mut arguments = vec!["size"];
    arguments.extend(templates.iter().map(String::as_str));
    arguments.extend([
        "--texts",
        "texts",
        "--samples",
        "150",
        "--rate",
        "100000",
        "--backoff",
        "1",
        "--page",
        "50",
    ]);
    let seen = dir.json(&arguments);
    assert!(covers(&seen["members"][1]["size"], 700.0 / 600.0), "{seen}");
    assert!(covers(&seen["members"][2]["size"], 450.0 / 600.0), "{seen}");
    assert_eq!(seen["members"][0]["failures"], 0, "503 is tried again: {seen}");
    assert_eq!(seen["members"][0]["requests"].as_u64().unwrap(), engines[0].requests());
    let names: Vec<&str> =
        seen["biases"].as_array().unwrap().iter().map(|b| b["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "query bias",
            "ranking bias",
            "checking bias",
            "document or query restriction bias",
            "malicious bias",
            "operational problems"
        ]
    );
    // An engine against a crawl, five queries of six words, and a cap.
    let outcome = dir.run(&[
        "size",
        &templates[0],
        "texts",
        "--samples",
        "40",
        "--rate",
        "100000",
        "--check",
        "5x6",
        "--page",
        "50",
        "--max-requests",
        "120",
        "--backoff",
        "1",
    ]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("checks unknown") && outcome.stdout.contains("│ A ┆      120 ┆"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn pages_that_no_atlas_knows_are_fetched() {
    let dir = Dir::new();
    let page =
        |address: &str, p: u64| Page { url: format!("http://{address}/page/{p}"), text: text(p), rank: p };
    let first = Engine::of(|address| (0..300).map(|p| page(address, p)).collect(), None);
    let second = Engine::of(|_| (150..300).map(|p| page(first.address(), p)).collect(), None);
    let lexicon: BTreeSet<String> =
        (0..300).flat_map(|p| text(p).split(' ').map(|w| format!("{w}\n")).collect::<Vec<_>>()).collect();
    dir.write("words.txt", lexicon.into_iter().collect::<String>());
    let (a, b) = (first.template(), second.template());
    // The engines give 50 results where 100 are asked for, which is seen.
    let fast = ["--rate", "100000", "--lexicon", "words.txt", "--samples", "60", "--query-words", "1"];
    let mut arguments = vec!["size", &a, &b, "--fetch"];
    arguments.extend(fast);
    let seen = dir.json(&arguments);
    assert!(covers(&seen["members"][1]["size"], 0.5), "{seen}");
    assert_eq!(seen["members"][0]["unknown_checks"], 0, "{seen}");
    // By content the same pages are the same.
    arguments.extend(["--by", "text"]);
    let by_text = dir.json(&arguments);
    assert_eq!(by_text["by"], "text");
    assert!(covers(&by_text["members"][1]["size"], 0.5), "{by_text}");
    // Whoever may not fetch cannot check, and says so.
    let outcome = dir.run(&[&["size", &a, &b], &fast[..]].concat());
    assert_eq!(outcome.code, 1, "{}", outcome.stdout);
    assert!(outcome.stdout.contains("No page of A could be used"), "{}", outcome.stdout);
}

#[test]
fn searches_from_a_log() {
    let dir = Dir::new();
    let engines = engines(None);
    let templates = engines.each_ref().map(Engine::template);
    let queries: String =
        (0..60).map(|p| text(p).split(' ').take(2).collect::<Vec<_>>().join(" ") + "\n").collect();
    dir.write("log.txt", queries + "waaa\nnothing like it\n");
    let mut arguments =
        vec!["size", "--method", "searches", "--queries", "log.txt", "--rate", "100000", "--page", "50"];
    arguments.extend(["--max-results", "60"]);
    arguments.extend(templates.iter().map(String::as_str));
    let seen = dir.json(&arguments);
    assert_eq!((&seen["queries"], &seen["too_many"]), (&62.into(), &1.into()), "{seen}");
    assert!(seen["empty"].as_u64().unwrap() >= 1, "{seen}");
    // Queries are words of the first 60 pages, which the second engine has not: the source of the
    // log shows.
    let ratio = &seen["ratios"][0]["ratio_of_sums"];
    assert!(ratio["value"].as_f64().unwrap() > 0.9, "the truth is 0.857: {ratio}");
    let outcome = dir.run(&arguments);
    for wanted in
        ["A / B, ratio of sums", "harmonic mean", "- correlation with the log:", "1 had too many results"]
    {
        assert!(outcome.stdout.contains(wanted), "{wanted}\n{}", outcome.stdout);
    }
}

#[test]
fn a_study_of_addresses() {
    let dir = Dir::new();
    // Lawrence and Giles: 2500 servers, 289 pages each, 2.8 million servers in all.
    let study = format!("what,number\nspace,4294967296\ntried,3834792\n{}", "server,289\n".repeat(2_500));
    dir.write("study.csv", study);
    let seen = dir.json(&["size", "--method", "addresses", "study.csv"]);
    assert!((seen["servers"]["value"].as_f64().unwrap() / 2.8e6 - 1.0).abs() < 1e-3, "{seen}");
    assert!(covers(&seen["pages"], 8e8), "{seen}");
    let outcome = dir.run(&["size", "--method", "addresses", "study.csv"]);
    for wanted in [
        "2,500 had a server",
        "│ servers",
        "809,",
        "too equal, to tell the tail",
        "- virtual hosts:",
        "- power law:",
    ] {
        assert!(outcome.stdout.contains(wanted), "{wanted}\n{}", outcome.stdout);
    }
    dir.write("bad.csv", "space,10\ntried,20\n");
    let outcome = dir.run(&["size", "--method", "addresses", "bad.csv"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("20 addresses tried of 10"), "{}", outcome.stderr);
}

#[test]
fn a_walk_over_links() {
    let dir = Dir::new();
    for page in 0..300u64 {
        let link = |n: u64| format!("<a href=\"http://localhost/{}.html\">x</a>", (page * n + 1) % 300);
        let links: String = (1..4).map(link).collect();
        dir.write(&format!("in/localhost/{page}.html"), format!("<p>{}</p>{links}", text(page)));
    }
    assert_eq!(dir.run(&["scan", "in", "-o", "atlas"]).code, 0);
    for rule in ["jumping", "metropolis"] {
        let seen = dir.json(&[
            "size",
            "--method",
            "walk",
            "atlas",
            "--rule",
            rule,
            "--steps",
            "20000",
            "--samples",
            "200",
            "-o",
            "sample.tsv",
        ]);
        assert_eq!(seen["rule"], rule);
        let lines = std::fs::read_to_string(dir.path("sample.tsv")).unwrap();
        assert_eq!(lines.lines().count() as u64, seen["sample"].as_u64().unwrap());
        assert!(lines.lines().next().unwrap().contains("\thttp"), "{lines}");
    }
    let outcome = dir.run(&["size", "--method", "walk", "atlas"]);
    assert!(outcome.stdout.contains("- convergence unknown:"), "{}", outcome.stdout);
}
