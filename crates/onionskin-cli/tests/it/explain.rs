//! Why two pages are alike, as people see it.

use crate::util::Dir;

/// Two versions of a page, a page like no other, an empty one.
fn pages() -> String {
    let page = |id: &str, url: &str, text: &str| {
        format!("{}\n", serde_json::json!({ "id": id, "url": url, "text": text }))
    };
    let body: Vec<String> = (0..60).map(|n| format!("word{n}")).collect();
    let body = body.join(" ");
    page("one", "http://a.example/page/", &format!("Version 1.0 of the page. {body} The end, as always."))
        + &page(
            "two",
            "http://b.example/page/",
            &format!("Version 2.0 of the page. {body} The end as always!"),
        )
        + &page(
            "three",
            "http://a.example/other",
            "nothing of the kind was ever said here \u{1b}[31m by anybody",
        )
        + &page("four", "http://a.example/empty", "")
}

fn atlas() -> Dir {
    let dir = Dir::new();
    dir.write("in.jsonl", pages());
    assert_eq!(dir.run(&["scan", "in.jsonl", "-o", "atlas"]).code, 0);
    let similar = dir.run(&["similar", "atlas", "--threshold", "0.7", "--no-recall"]);
    assert_eq!(similar.code, 0, "{}", similar.stderr);
    dir
}

#[test]
fn two_versions_side_by_side() {
    let dir = atlas();
    let outcome = dir.run(&["explain", "atlas", "0", "http://b.example/page/", "--width", "80"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    for wanted in [
        "A  doc:0  http://a.example/page/",
        "   place    in.jsonl, byte 0",
        "   size     70 words in",
        "│ w4, counted now ┆   67 ┆   67 ┆     65 ┆      0.9420 ┆    97.0 % ┆    97.0 % │",
        "sketch     resemblance",
        "site       different, a.example and b.example",
        "pair       listed by resemblance: resemblance 0.9420, 65 shared",
        "cluster A  0, its centre",
        "cluster B  0, near, 0.9420 to the centre",
        "68 words stand in both, of 70 in A and 70 in B, in one passage of 4 words and more",
        "- Version 1.                           │ + Version 2.",
        "  … 44 words the same …                │   … 44 words the same …",
        "  word57 word58 word59 The end, as     │   word57 word58 word59 The end as",
    ] {
        assert!(outcome.stdout.contains(wanted), "{wanted}\n{}", outcome.stdout);
    }
    let view = outcome.stdout.split("\n\n").last().unwrap();
    assert!(view.lines().all(|line| line.chars().count() <= 80), "{view}");
    let full = dir.run(&["explain", "atlas", "0", "1", "--full"]).stdout;
    assert!(full.contains("word30") && !full.contains("the same"), "{full}");
    let numbers = dir.run(&["explain", "atlas", "0", "1", "--no-text"]).stdout;
    assert!(numbers.contains("0.9420") && !numbers.contains("│   B"), "{numbers}");
}

#[test]
fn pages_that_are_not_alike_are_explained_too() {
    let dir = atlas();
    let outcome = dir.run(&["explain", "atlas", "id:three", "id:one"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("pair       not listed") && outcome.stdout.contains("in 0 passages"));
    assert!(outcome.stdout.contains("site       the same, a.example"), "{}", outcome.stdout);
    assert!(!outcome.stdout.contains('\u{1b}'), "nothing steers the terminal: {}", outcome.stdout);
    let outcome = dir.run(&["explain", "atlas", "3", "0"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("one of the two has none"), "{}", outcome.stdout);
}

#[test]
fn json_has_offsets_in_characters() {
    let dir = Dir::new();
    dir.write(
        "in.jsonl",
        "{\"text\":\"ä ö ü ß one two three four\"}\n{\"text\":\"“é” one two three four\"}\n",
    );
    dir.json(&["scan", "in.jsonl", "-o", "atlas"]);
    let seen = dir.json(&["explain", "atlas", "0", "1"]);
    assert_eq!((seen["type"].as_str(), seen["a"]["doc"].as_u64()), (Some("explain"), Some(0)));
    assert_eq!(seen["overlaps"][0]["shared"], 1);
    assert_eq!((&seen["pair"], &seen["text_problem"]), (&serde_json::Value::Null, &serde_json::Value::Null));
    let passage = &seen["texts"]["passages"][0];
    for (side, text) in [("a", "text_a"), ("b", "text_b")] {
        let place = |at: usize| passage[side][at].as_u64().unwrap() as usize;
        let text = seen["texts"][text].as_str().unwrap();
        let shown: String = text.chars().skip(place(0)).take(place(1) - place(0)).collect();
        assert_eq!(shown, "one two three four");
    }
    assert_eq!(seen["texts"]["only_a"], serde_json::json!([[0, 7]]));
    assert_eq!(seen["texts"]["only_b"], serde_json::json!([[0, 3]]));
    assert_eq!(dir.json(&["explain", "atlas", "0", "1", "--no-text"])["texts"], serde_json::Value::Null);
}

#[test]
fn who_is_not_there_is_a_clear_no() {
    let dir = atlas();
    let check = |arguments: &[&str], code: i32, wanted: &str| {
        let outcome = dir.run(arguments);
        assert_eq!((outcome.code, outcome.stdout.as_str()), (code, ""), "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(wanted), "{arguments:?}: {}", outcome.stderr);
    };
    check(&["explain", "atlas", "http://a.example/page", "1"], 1, "did you mean http://a.example/page/?");
    check(&["explain", "atlas", "1", "doc:77"], 1, "no document is called doc:77; there are 4");
    check(&["explain", "atlas", "1", "id:http://a.example/page/"], 1, "no document is called");
    check(&["explain", "atlas", "cluster:9"], 1, "there is no cluster 9; there are 1");
    check(&["explain", "atlas", "doc:x", "1"], 2, "not the number of a document");
    check(&["explain", "atlas", "cluster:x"], 2, "not the number of a cluster");
    check(&["explain", "atlas", "doc:77"], 1, "no document is called doc:77; there are 4");
    check(&["explain", "nowhere", "1", "2"], 2, "nowhere");
}

#[test]
fn without_the_input_the_numbers_remain() {
    let dir = atlas();
    std::fs::rename(dir.path("in.jsonl"), dir.path("away.jsonl")).unwrap();
    let outcome = dir.run(&["explain", "atlas", "0", "1"]);
    assert_eq!(outcome.code, 0);
    assert!(outcome.stdout.contains("0.9420") && !outcome.stdout.contains("word58"), "{}", outcome.stdout);
    assert!(
        outcome.stderr.contains("in.jsonl: no such file") && outcome.stderr.contains("--base"),
        "{}",
        outcome.stderr
    );
    let seen = dir.json(&["explain", "atlas", "0", "1"]);
    assert!(seen["text_problem"].as_str().unwrap().contains("in.jsonl"));
    // It lies elsewhere now.
    dir.write("elsewhere/in.jsonl", pages().replace("word30", "WORT30"));
    // `--inputs` is what the flag was called before.
    for flag in ["--base", "--inputs"] {
        let outcome = dir.run(&["explain", "atlas", "0", "1", flag, "elsewhere"]);
        assert!(outcome.stdout.contains("word58"), "{}", outcome.stdout);
        assert!(outcome.stderr.contains("doc:0 has another text now"), "{}", outcome.stderr);
    }
}

#[test]
fn one_document_and_its_cluster() {
    let dir = atlas();
    let outcome = dir.run(&["explain", "atlas", "http://b.example/page/"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let cluster = dir.run(&["explain", "atlas", "cluster:0"]).stdout;
    let (document, members) = outcome.stdout.split_once("\n\n").unwrap();
    assert_eq!(members, cluster);
    assert!(document.starts_with("doc:1  http://b.example/page/\n   id       two\n"), "{document}");
    assert!(document.ends_with("   cluster  0, near, 0.9420 to the centre"), "{document}");
    let alone = dir.run(&["explain", "atlas", "id:three"]);
    assert!(alone.stdout.ends_with("   cluster  none: no other document is similar\n"), "{}", alone.stdout);

    let types = |name: &str| -> Vec<String> {
        let text = dir.run(&["explain", "atlas", name, "--json"]).stdout;
        let objects = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        objects.map(|object| object["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(types("0"), ["document", "member", "member", "cluster"]);
    assert_eq!(types("2"), ["document"]);

    assert_eq!(dir.run(&["scan", "in.jsonl", "-o", "scanned"]).code, 0);
    let unknown = dir.run(&["explain", "scanned", "0"]).stdout;
    assert!(unknown.contains("not known: `onionskin similar`"), "{unknown}");
}

#[test]
fn a_cluster_and_its_members() {
    let dir = atlas();
    let outcome = dir.run(&["explain", "atlas", "cluster:0"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{}", outcome.stdout);
    assert!(
        lines[1].contains("1.0000  centre") && lines[1].ends_with("http://a.example/page/"),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].contains("0.9420  near") && lines[2].ends_with("http://b.example/page/"),
        "{}",
        lines[2]
    );
    assert!(lines[3].starts_with("cluster 0: 2 documents on 2 sites"), "{}", lines[3]);
    let outcome = dir.run(&["explain", "atlas", "cluster:0", "--json"]);
    let objects = outcome.stdout.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let kinds: Vec<String> = objects.map(|object| object["type"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["member", "member", "cluster"]);
}
