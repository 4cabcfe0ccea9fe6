//! Searches that read the inputs again: inputs that changed since the scan are named.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use onionskin_core::Recipe;

use crate::util::{Dir, Outcome};

/// A text of 40 words that nearly all pages share, and a word of its own at the end.
fn text(nth: usize) -> String {
    let shared: Vec<String> = (0..40).map(|word| format!("word{:02}", word + 50 * (nth % 3))).collect();
    format!("{} own{nth:02}", shared.join(" "))
}

fn line(text: &str) -> String {
    format!("{{\"text\":\"{text}\"}}\n")
}

fn lines(texts: &[String]) -> String {
    texts.iter().map(|text| line(text)).collect()
}

/// Compressed, and as long as other text of this length.
fn stored(bytes: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(vec![], Compression::none());
    encoder.write_all(bytes.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn warc(texts: &[String]) -> String {
    let record = |(nth, text): (usize, &String)| {
        format!(
            "WARC/1.0\r\nWARC-Type: resource\r\nWARC-Target-URI: http://a.example/{nth}\r\n\
             Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}\r\n\r\n",
            text.len()
        )
    };
    texts.iter().enumerate().map(record).collect()
}

/// Writes the same texts in every shape: three files and a folder.
fn write(dir: &Dir, texts: &[String]) {
    dir.write("lines.jsonl", lines(texts));
    dir.write("packed.jsonl.gz", stored(&lines(texts)));
    // All records are in one member, so they have one offset.
    dir.write("packed.warc.gz", stored(&warc(texts)));
    for (nth, text) in texts.iter().enumerate() {
        dir.write(&format!("folder/{nth:02}.txt"), text);
    }
}

const SHAPES: [(&str, &str); 4] = [
    ("lines.jsonl", "lines.jsonl: the document at offset"),
    ("packed.jsonl.gz", "packed.jsonl.gz: the document at offset"),
    ("packed.warc.gz", "packed.warc.gz: the document at offset"),
    ("folder", "folder/07.txt: the document is not what it was"),
];

/// Fails as it should when an input is not what it was.
fn assert_changed(outcome: &Outcome, named: &str) {
    assert_eq!(outcome.code, 2, "{named}: {}", outcome.stdout);
    assert!(outcome.stderr.contains(named), "{named}: {}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: put the input back as it was"), "{named}: {}", outcome.stderr);
}

#[test]
fn a_changed_text_of_the_same_length_is_named() {
    let dir = Dir::new();
    let mut texts: Vec<String> = (0..20).map(text).collect();
    write(&dir, &texts);
    for (input, _) in SHAPES {
        assert_eq!(dir.line(&format!("scan {input} -o atlas-{input} -q")).code, 0, "{input}");
        let before = dir.line(&format!("similar atlas-{input} --threshold 0.7 -q"));
        assert_eq!(before.code, 0, "{input}: {}", before.stderr);
    }
    // Case does not count, words do.
    texts[7] = texts[7].to_uppercase();
    write(&dir, &texts);
    for (input, _) in SHAPES {
        let same = dir.line(&format!("similar atlas-{input} --threshold 0.75"));
        assert_eq!(same.code, 0, "{input}: {}", same.stderr);
    }
    texts[7] = text(7).replace("word5", "lord5");
    write(&dir, &texts);
    for (input, named) in SHAPES {
        assert_changed(&dir.line(&format!("similar atlas-{input} --threshold 0.8")), named);
        // What was found before is still there.
        assert_eq!(dir.line(&format!("verify atlas-{input} --deep -q")).code, 0, "{input}");
    }
    // Put back, the same search runs.
    texts[7] = text(7);
    write(&dir, &texts);
    for (input, _) in SHAPES {
        let back = dir.json(&["similar", &format!("atlas-{input}"), "--threshold", "0.8"]);
        assert!(back["near_pairs"].as_u64().unwrap() > 40, "{input}: {back}");
    }
}

/// Pages, lists of records and files of other kinds, in any order.
#[test]
fn a_folder_may_have_several_formats() {
    let dir = Dir::new();
    for nth in 0..20 {
        let (name, content) = match nth % 5 {
            1 => ("jsonl", line(&text(nth))),
            3 => ("json", "{\"version\":[1,2]}\n".to_owned()),
            _ => ("txt", text(nth)),
        };
        dir.write(&format!("folder/{nth:02}.{name}"), content);
    }
    dir.line("scan folder -o atlas -q");
    for search in ["--threshold 0.8", "--preset sgm98-4", "--method paragraphs"] {
        let found = dir.line(&format!("similar atlas {search}"));
        assert_eq!(found.code, 0, "{search}: {}", found.stderr);
    }
    let found = dir.json(&["similar", "atlas", "--threshold", "0.8"]);
    assert_eq!(found["documents"], 16, "{found}");
    assert!(found["near_pairs"].as_u64().unwrap() > 20, "{found}");
    dir.write("folder/14.txt", text(17));
    let changed = dir.line("similar atlas --threshold 0.85");
    assert_changed(&changed, "folder/14.txt: the document is not what it was");
}

#[test]
fn a_document_that_does_not_come_by_is_named() {
    let dir = Dir::new();
    let texts: Vec<String> = (0..20).map(text).collect();
    let whole = lines(&texts);
    for (name, packed) in [("in.jsonl", false), ("in.jsonl.gz", true)] {
        let write = |lines: &str| dir.write(name, if packed { stored(lines) } else { lines.into() });
        write(&whole);
        assert_eq!(dir.line(&format!("scan {name} -o atlas --overwrite -q")).code, 0);
        for nth in [0, 7, 19] {
            let line = line(&texts[nth]);
            let reason = format!("{name}: the document at offset {} ", whole.find(&line).unwrap());
            // A line of spaces is no record, and broken JSON no document.
            let blank = format!("{}\n", " ".repeat(line.len() - 1));
            write(&whole.replace(&line, &blank));
            assert_changed(&dir.line("similar atlas"), &format!("{reason}is not what it was"));
            write(&whole.replace(&line, &line.replace("\"}", "\"]")));
            assert_changed(&dir.line("similar atlas"), &format!("{reason}cannot be read any more"));
        }
    }
}

/// Chunks for the searches of the papers, made from inputs that are not what they were.
#[test]
fn chunks_are_not_made_of_other_inputs() {
    let dir = Dir::new();
    let texts: Vec<String> = (0..20).map(text).collect();
    let whole = lines(&texts);
    dir.write("in.jsonl", &whole);
    assert_eq!(dir.line("scan in.jsonl -o atlas -q").code, 0);
    let search = || dir.line("similar atlas --preset sgm98-4");
    let changed = lines(&texts).replace("own07", "own97");
    for (content, named) in [
        (None, "in.jsonl: "),
        (Some(changed.as_str()), "in.jsonl: the document at offset"),
        (Some(&whole[..whole.len() / 2]), "in.jsonl: it has"),
        (Some(""), "in.jsonl: it has 0 bytes, not"),
    ] {
        match content {
            None => std::fs::remove_file(dir.path("in.jsonl")).unwrap(),
            Some(content) => drop(dir.write("in.jsonl", content)),
        }
        assert_changed(&search(), named);
    }
    dir.write("in.jsonl", &whole);
    let found = search();
    assert_eq!(found.code, 0, "{}", found.stderr);
    // A pipe cannot be read again. What its scan keeps by default is enough for the plain search.
    let piped = dir.run_with_input(&["scan", "-", "-o", "piped", "-q"], whole.as_bytes());
    assert_eq!(piped.code, 0, "{}", piped.stderr);
    assert_eq!(dir.line("similar piped -q").code, 0);
    let outcome = dir.line("similar piped --preset sgm98-4");
    assert_changed(&outcome, "it was a pipe");
    assert!(outcome.stderr.contains("`papers`"), "{}", outcome.stderr);
}

/// What became of true pairs is measured whatever the scan kept.
#[test]
fn recall_is_measured_for_every_recipe() {
    let dir = Dir::new();
    let web = dir.line("generate text --pages 1500 -o web.jsonl -q");
    assert_eq!(web.code, 0, "{}", web.stderr);
    let named = Recipe::NAMED.map(|(name, ..)| name);
    for recipe in named.into_iter().chain(["w4-rabin64-t84+sketch", "w4-rabin64-t84+sketch+w4"]) {
        let scanned = dir.line(&format!("scan web.jsonl -o {recipe} -q --recipe {recipe}"));
        assert_eq!(scanned.code, 0, "{recipe}: {}", scanned.stderr);
        let found = dir.json(&["similar", recipe]);
        let recall = &found["recall"];
        let share = |name: &str| {
            let [value, low, high] = [0, 1, 2].map(|at| recall[name][at].as_f64().unwrap());
            assert!(0.0 <= low && low <= value && value <= high && high <= 1.0, "{recipe}: {recall}");
            value
        };
        assert!(recall["true_pairs"].as_u64().unwrap() > 50, "{recipe}: {recall}");
        // The features of Broder are for resemblances above 0.95.
        let least = if recipe == "broder" { 0.8 } else { 0.98 };
        assert!(share("listed") > least && share("clustered") > least, "{recipe}: {recall}");
        assert!(share("leaked") < 1.0 - least, "{recipe}: {recall}");
        let said = dir.line(&format!("similar {recipe} --overwrite")).stdout;
        for row in ["true pairs listed", "true pairs in one cluster", "true pairs of which dedup keeps both"]
        {
            assert_eq!(said.matches(row).count(), 1, "{recipe}, {row}: {said}");
        }
    }
}

/// One line says which pairs are not listed, and why.
#[test]
fn pairs_of_a_crowd_that_are_not_listed_are_named() {
    let dir = Dir::new();
    let web = dir.line("generate crowd --pages 3000 -o web.jsonl -q");
    assert_eq!(web.code, 0, "{}", web.stderr);
    assert_eq!(dir.line("scan web.jsonl -o atlas -q").code, 0);
    let found = dir.json(&["similar", "atlas", "--threshold", "0.75"]);
    let number = |name: &str| found[name].as_u64().unwrap();
    // Half of the pages are one cluster, which is a crowd under many of its features.
    assert!(number("crowded_buckets") > 1 && number("largest_bucket") > number("crowd_limit"), "{found}");
    assert_eq!((number("crowded_clusters"), number("largest_cluster")), (1, 1500), "{found}");
    let said = dir.line("similar atlas --threshold 0.75 --overwrite").stdout;
    let told: Vec<&str> = said.lines().filter(|line| line.starts_with("not all pairs are listed")).collect();
    assert!(told.len() == 1 && told[0].contains("inside 1 cluster with more than "), "{said}");
    assert!(!said.contains("every pair that the filter finds was verified"), "{said}");
    // Without a crowd every pair is listed.
    assert_eq!(dir.line("generate text --pages 300 -o text.jsonl -q").code, 0);
    assert_eq!(dir.line("scan text.jsonl -o text -q").code, 0);
    let said = dir.line("similar text --threshold 0.75").stdout;
    assert!(said.contains("every pair that the filter finds was verified"), "{said}");
    assert!(!said.contains("not all pairs"), "{said}");
}

/// Pages that are named one by one are one input, whose name is no path.
#[test]
fn named_pages_are_read_again() {
    let dir = Dir::new();
    let texts: Vec<String> = (0..9).map(text).collect();
    write(&dir, &texts);
    let pages: Vec<String> = (2..9).map(|nth| format!("folder/{nth:02}.txt")).collect();
    let pages: Vec<&str> = pages.iter().map(String::as_str).collect();
    for (atlas, inputs) in
        [("all", &pages[..]), ("with-lines", &[&pages[..3], &["lines.jsonl"], &pages[3..]].concat())]
    {
        let scanned = dir.json(&[&["scan"], inputs, &["-o", atlas]].concat());
        assert!(scanned["documents"].as_u64() >= Some(7), "{scanned}");
        for search in [&["similar", atlas, "--threshold", "0.8"][..], &["similar", atlas, "--exact"]] {
            let found = dir.json(search);
            assert!(found["near_pairs"].as_u64() > Some(0), "{search:?}: {found}");
        }
        let explained = dir.line(&format!("explain {atlas} 0 3"));
        assert_eq!(explained.code, 0, "{}", explained.stderr);
    }
    assert_eq!(dir.line(&format!("scan {} -o fresh", pages.join(" "))).code, 0);
    dir.write("folder/05.txt", format!("{} more", text(5)));
    let outcome = dir.line("similar fresh");
    assert!(
        outcome.code == 2 && outcome.stderr.contains("folder/02.txt and 6 more files"),
        "{}",
        outcome.stderr
    );
}
