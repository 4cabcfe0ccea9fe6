//! Inputs as collections and crawls have them: fields of many names, files without a document,
//! folders of hosts, and what crawls leave behind.

use std::path::Path;

use serde_json::{Value, json};

use crate::util::{Dir, gzip, nested, parquet_file, strings};

fn read_documents(atlas: &Path) -> Vec<(Option<String>, Option<String>, bool)> {
    use onionskin_store::Atlas;
    let mut reader = Atlas::open(atlas).unwrap().documents().unwrap();
    let mut found = Vec::new();
    while let Some(batch) = reader.next_batch().unwrap() {
        found.extend((0..batch.len()).map(|at| {
            let row = batch.row(at);
            (row.id.map(str::to_owned), row.url.map(str::to_owned), row.fetched_at.is_some())
        }));
    }
    found
}

fn urls(atlas: &Path) -> Vec<Option<String>> {
    read_documents(atlas).into_iter().map(|(_, url, _)| url).collect()
}

#[test]
fn known_layouts_are_read_without_a_flag() {
    let dir = Dir::new();
    dir.write(
        "in/dolma.jsonl",
        "{\"id\":\"d\",\"text\":\"dolma text\",\"metadata\":{\"url\":\"http://d.example/\"}}\n",
    );
    dir.write(
        "in/fineweb.jsonl",
        "{\"text\":\"fine\",\"id\":\"f\",\"url\":\"http://f.example/\",\"date\":\"2013-05-18T07:24:24Z\"}\n",
    );
    dir.write("in/red1.jsonl", "{\"text\":\"red one\",\"meta\":{\"url\":\"http://r.example/1\"}}\n");
    dir.write("in/red2.jsonl", "{\"raw_content\":\"red two\",\"url\":\"http://r.example/2\",\"date_download\":\"2014-07-22T10:40:13Z\"}\n");
    let wet = |uri: &str, text: &str| {
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: {uri}\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n\
             WARC-Record-ID: <urn:uuid:12345678-1234-1234-1234-123456789012>\r\n\
             Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}\r\n\r\n",
            text.len()
        )
    };
    dir.write(
        "in/wet.warc.wet",
        wet("http://w.example/", "a wet text") + &wet("http://w.example/robots.txt", "User-agent: *"),
    );
    let seen = dir.json(&["scan", "in", "-o", "atlas"]);
    assert_eq!((&seen["documents"], &seen["bad_records"]), (&json!(5), &json!({})), "{seen}");
    assert_eq!(seen["skipped"], json!({ "robots.txt": 1 }), "{seen}");
    let some = |id: &str, url: &str, dated| (Some(id.to_owned()), Some(url.to_owned()), dated);
    let found = read_documents(&dir.path("atlas"));
    assert_eq!(found[0], some("d", "http://d.example/", false));
    assert_eq!(found[1], some("f", "http://f.example/", true));
    assert_eq!(found[2], (None, Some("http://r.example/1".to_owned()), false));
    assert_eq!(found[3], (None, Some("http://r.example/2".to_owned()), true));
    assert_eq!(found[4].1.as_deref(), Some("http://w.example/"));
    // The order of the names is the user's, and the stages after the scan read in the same way.
    dir.write("both.jsonl", "{\"a\":\"first text here\",\"b\":\"second\"}\n{\"b\":\"first text here\"}\n");
    let seen = dir.json(&["run", "both.jsonl", "-o", "both", "--text-field", "a,b"]);
    assert_eq!(
        (&seen["scan"]["documents"], &seen["similar"]["exact_copies"]),
        (&json!(2), &json!(1)),
        "{seen}"
    );
    assert_eq!(dir.line("similar both --method overlap --chunking w1 --threshold 2").code, 0);
}

/// The same layouts in columns, and in compressed lines.
#[test]
fn known_layouts_in_parquet_and_compressed() {
    let dir = Dir::new();
    let dolma = [
        ("id", strings(&[Some("d1"), Some("d2"), Some("d3")])),
        ("text", strings(&[Some("dolma text"), None, Some("")])),
        ("source", strings(&[Some("s"); 3])),
        ("metadata", nested("url", &[Some("http://d.example/1"), None, Some("http://d.example/3")])),
    ];
    dir.write("in/1-dolma.parquet", parquet_file(dolma.into()));
    let fineweb = [
        ("text", strings(&[Some("fine"), None])),
        ("id", strings(&[Some("f1"), Some("f2")])),
        ("url", strings(&[Some("http://f.example/1"), Some("http://f.example/2")])),
        ("date", strings(&[Some("2013-05-18T07:24:24Z"), None])),
        ("dump", strings(&[Some("CC-MAIN-2013-20"); 2])),
    ];
    dir.write("in/2-fineweb.parquet", parquet_file(fineweb.into()));
    let line = |n: u32| {
        format!(
            "{{\"id\":\"z{n}\",\"text\":\"words {n}\",\"metadata\":{{\"url\":\"http://z.example/{n}\"}}}}\n"
        )
    };
    dir.write("in/3.jsonl.gz", gzip(line(1).as_bytes()));
    dir.write("in/4.jsonl.zst", zstd::encode_all(line(2).as_bytes(), 3).unwrap());
    let seen = dir.json(&["scan", "in", "-o", "atlas"]);
    let counts = [&seen["documents"], &seen["no_text"], &seen["empty_documents"], &seen["bad_records"]];
    assert_eq!(counts, [&json!(5), &json!(2), &json!(1), &json!({})], "{seen}");
    assert_eq!((&seen["fields_not_found"], &seen["skipped"]), (&json!([]), &json!({})), "{seen}");
    let some = |id: &str, url: &str, dated| (Some(id.to_owned()), Some(url.to_owned()), dated);
    let expected = [
        some("d1", "http://d.example/1", false),
        some("d3", "http://d.example/3", false),
        some("f1", "http://f.example/1", true),
        some("z1", "http://z.example/1", false),
        some("z2", "http://z.example/2", false),
    ];
    assert_eq!(read_documents(&dir.path("atlas")), expected);
    // Every text null is no document either, and the file says why.
    dir.write("null.parquet", parquet_file(vec![("text", strings(&[None, None]))]));
    let outcome = dir.line("scan null.parquet -o null");
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("null.parquet: no document: every text is null"), "{}", outcome.stderr);
}

#[test]
fn a_field_that_was_named_and_is_nowhere_is_a_warning() {
    let dir = Dir::new();
    dir.write(
        "in.jsonl",
        "{\"text\":\"a text\",\"link\":\"http://a.example/\",\"day\":\"2026-01-02T00:00:00Z\"}\n",
    );
    let warned = |options: &str| {
        let outcome = dir.line(&format!("scan in.jsonl -o atlas --overwrite {options}"));
        assert_eq!(outcome.code, 0, "{options}: {}", outcome.stderr);
        outcome.stderr
    };
    assert_eq!(warned(""), "");
    assert_eq!(warned("--url-field link --date-field day"), "");
    assert_eq!(warned("--url-field lnik"), "warning: no record has a URL in lnik (--url-field)\n");
    let both = warned("--id-field key,name --date-field link");
    assert!(both.contains("no record has an id in key,name (--id-field)"), "{both}");
    assert!(both.contains("no record has a date in link (--date-field)"), "{both}");
    let told = dir.json(&["run", "in.jsonl", "-o", "json", "--url-field", "lnik"]);
    assert_eq!(told["scan"]["fields_not_found"], json!([{ "field": "url", "names": "lnik" }]));
    // Pages of folders have no fields.
    dir.write("pages/a.html", "<p>a page");
    let outcome = dir.line("scan pages -o pages-atlas --url-field lnik");
    assert!(!outcome.stderr.contains("lnik"), "{}", outcome.stderr);
}

#[test]
fn a_folder_without_a_document_is_named() {
    let dir = Dir::new();
    dir.write("good.jsonl", "{\"text\":\"a good text\"}\n");
    dir.write("pictures/a.bin", [0, 1, 2, 3, 0, 0, 255]);
    dir.write("pictures/b.bin", [0, 1, 2, 3, 0, 0, 255]);
    let outcome = dir.line("scan good.jsonl pictures -o atlas");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.contains("warning: pictures: no document: "), "{}", outcome.stderr);
    let seen = dir.json(&["scan", "good.jsonl", "pictures", "-o", "json"]);
    assert_eq!(seen["inputs_without_documents"], 1, "{seen}");
    // What lies beside documents is only skipped.
    dir.write("mixed/part.jsonl", "{\"text\":\"another text\"}\n");
    dir.write("mixed/picture.bin", [0, 1, 2, 3, 0, 0, 255]);
    let outcome = dir.line("scan mixed -o mixed-atlas");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{}", outcome.stdout);
    dir.write("mixed/more.bin", [0, 1, 2, 3, 0, 0, 255]);
    let outcome = dir.line("scan mixed -o more-atlas");
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""), "{}", outcome.stdout);
}

#[test]
fn an_input_without_a_document_is_named_with_its_fields() {
    let dir = Dir::new();
    dir.write("good.jsonl", "{\"text\":\"a good text\"}\n");
    dir.write("other.jsonl", "{\"body\":\"in another field\",\"n\":1}\n{\"body\":\"x\",\"n\":2}\n");
    dir.write("other.csv", "title,body\na,b\n");
    dir.write("none.jsonl", "");
    let outcome = dir.line("scan good.jsonl other.jsonl other.csv none.jsonl -o atlas");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    for said in [
        "warning: other.jsonl: no document: no field \"text\", \"content\" or \"raw_content\"; there are body, n",
        "warning: other.csv: no document: no column \"text\", \"content\" or \"raw_content\"; there are title, body",
        "warning: none.jsonl: no document: there are no records",
        "--text-field",
    ] {
        assert!(outcome.stderr.contains(said), "{said}: {}", outcome.stderr);
    }
    assert!(outcome.stdout.contains("2 records have no text"), "{}", outcome.stdout);
    let seen: Value = dir.json(&["scan", "good.jsonl", "other.jsonl", "-o", "json"]);
    assert_eq!((&seen["no_text"], &seen["inputs_without_documents"]), (&json!(2), &json!(1)), "{seen}");
    assert_eq!(seen["inputs_without_documents_examples"][0]["place"], "other.jsonl");
    for (inputs, atlas) in [("other.jsonl other.csv", "a"), ("none.jsonl", "b")] {
        for command in ["scan", "run"] {
            let outcome = dir.line(&format!("{command} {inputs} -o {atlas}-{command}"));
            assert_eq!(outcome.code, 1, "{command} {inputs}: {}", outcome.stderr);
        }
    }
}

#[test]
fn a_record_without_a_text_is_no_error() {
    let dir = Dir::new();
    dir.write(
        "in.jsonl",
        "{\"text\":\"words\"}\n{\"text\":null}\n{\"id\":1}\n{\"text\":\"\"}\n{\"text\":5}\n",
    );
    let seen = dir.json(&["scan", "in.jsonl", "-o", "atlas"]);
    let counts = [&seen["documents"], &seen["no_text"], &seen["empty_documents"]];
    assert_eq!(counts, [&json!(2), &json!(2), &json!(1)], "{seen}");
    assert_eq!(seen["bad_records"], json!({ "text_not_a_string": 1 }));
    assert_eq!(dir.line("scan in.jsonl -o strict --max-bad-records 1").code, 0);
}

#[test]
fn what_crawls_leave_behind_is_skipped() {
    let dir = Dir::new();
    let page = "<p>a page with words";
    for (name, text) in [
        ("in/example.org/index.html", page),
        ("in/example.org/robots.txt", "User-agent: *\nDisallow: /\n"),
        ("in/example.org/about/robots.txt", "robots and other machines"),
        ("in/indexes/index.cdxj", "org,example)/ 20260102030405 {\"url\": \"http://example.org/\"}\n"),
        ("in/indexes/all.cdx", " CDX N b a m s k r M S V g\norg,example)/ 20260102030405\n"),
    ] {
        dir.write(name, text);
    }
    let seen = dir.json(&["scan", "in", "-o", "atlas"]);
    assert_eq!(seen["documents"], 2, "{seen}");
    assert_eq!(seen["skipped"], json!({ "CDX index": 2, "robots.txt": 1 }));
    let named = dir.line("scan in/indexes/index.cdxj in/example.org/index.html -o named");
    assert_eq!(named.code, 0, "{}", named.stderr);
    assert!(named.stdout.contains("in/indexes/index.cdxj: CDX index"), "{}", named.stdout);
}

#[test]
fn an_error_page_is_no_document() {
    let dir = Dir::new();
    let record = |uri: &str, status: &str| {
        let block = format!("HTTP/1.1 {status}\r\nContent-Type: text/html\r\n\r\n<p>some words here");
        format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {uri}\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n\
             WARC-Record-ID: <urn:uuid:12345678-1234-1234-1234-123456789012>\r\n\
             Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        )
    };
    let records = [
        record("http://a.example/", "200 OK"),
        record("http://a.example/gone", "404 Not Found"),
        record("http://a.example/broken", "503 Service Unavailable"),
        record("http://a.example/robots.txt", "200 OK"),
    ];
    dir.write("in.warc", records.concat());
    let seen = dir.json(&["scan", "in.warc", "-o", "atlas"]);
    assert_eq!((&seen["documents"], &seen["bad_records"]), (&json!(1), &json!({})), "{seen}");
    let skipped = json!({ "HTTP status 404": 1, "HTTP status 503": 1, "robots.txt": 1 });
    assert_eq!(seen["skipped"], skipped);
    dir.write("errors.warc", records[1..3].concat());
    let outcome = dir.line("scan errors.warc -o errors");
    assert_eq!(outcome.code, 1);
    assert!(outcome.stderr.contains("errors.warc: no document: HTTP status 404"), "{}", outcome.stderr);
}

/// Pages of hosts whose names nobody knows had no URLs, and so no links.
#[test]
fn a_folder_of_hosts_has_urls_and_links() {
    let dir = Dir::new();
    let host = |host: &str| {
        dir.write(&format!("in/{host}/a.html"), "<p>the first page<a href=b.html>next</a>");
        dir.write(&format!("in/{host}/b.html"), "<p>the second page<a href=/a.html>back</a>");
    };
    ["intranet", "wiki.test", "printer.local"].iter().for_each(|name| host(name));
    let outcome = dir.line("scan in -o none");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(
        outcome
            .stdout
            .contains("none of the 6 links leads to a document; 6 are relative to pages without a URL"),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome.stdout.contains("--hosts") && outcome.stdout.contains("--base-url"),
        "{}",
        outcome.stdout
    );
    host("abc.onion");
    let seen = dir.json(&["scan", "in", "-o", "hosts", "--hosts"]);
    assert_eq!((&seen["links"], &seen["sites"]), (&json!(8), &json!(4)), "{seen}");
    assert_eq!(seen["link_remedies"], json!([]));
    let urls = urls(&dir.path("hosts"));
    assert_eq!(urls[0].as_deref(), Some("http://abc.onion/a.html"));
    assert_eq!(urls[2].as_deref(), Some("http://intranet/a.html"));
    // Texts are read again with the same URLs.
    for command in ["similar hosts --method overlap --chunking w1 --threshold 2", "collections hosts"] {
        let outcome = dir.line(command);
        assert_eq!(outcome.code, 0, "{command}: {}", outcome.stderr);
    }
}

/// Pages in records have their URLs in a field, and no folder that could tell.
#[test]
fn pages_in_records_have_urls_in_a_field() {
    let dir = Dir::new();
    let pages = [
        ("http://a.example/", "<p>the first page<a href=b.html>next</a>"),
        ("http://a.example/b.html", "<p>the second page<a href=/>back</a>"),
    ];
    let lines = pages.map(|(url, html)| json!({ "text": html, "link": url }).to_string() + "\n");
    dir.write("in.jsonl", lines.concat());
    dir.write(
        "in.csv",
        format!("link,text\n{}", pages.map(|(url, html)| format!("{url},{html}\n")).concat()),
    );
    let columns = [("link", pages.map(|(url, _)| Some(url))), ("text", pages.map(|(_, html)| Some(html)))];
    let columns = columns.iter().map(|(name, values)| (*name, strings(values))).collect();
    dir.write("in.parquet", parquet_file(columns));
    for input in ["in.jsonl", "in.csv", "in.parquet"] {
        let outcome = dir.line(&format!("scan {input} -o {input}-lost --text-is-html"));
        assert!(outcome.stdout.contains("none of the 2 links leads to a document"), "{}", outcome.stdout);
        assert!(outcome.stdout.contains("hint: --url-field"), "{input}: {}", outcome.stdout);
        let atlas = format!("{input}-found");
        let seen = dir.json(&["scan", input, "-o", &atlas, "--text-is-html", "--url-field", "link"]);
        assert_eq!((&seen["links"], &seen["link_remedies"]), (&json!(2), &json!([])), "{seen}");
        let seen = dir.json(&["scan", input, "-o", &atlas, "--text-is-html", "--overwrite"]);
        assert_eq!(seen["link_remedies"], json!(["url_field"]), "{seen}");
    }
}

#[test]
fn a_base_gives_files_their_urls() {
    let dir = Dir::new();
    dir.write("site/a.html", "<p>the first page<a href=docs/b.html>next</a>");
    dir.write("site/docs/b.html", "<p>the second page<a href=../a.html>back</a>");
    let seen = dir.json(&["scan", "site", "-o", "atlas", "--base-url", "http://wiki.local/x"]);
    assert_eq!((&seen["links"], &seen["sites"]), (&json!(2), &json!(1)), "{seen}");
    let expected = ["http://wiki.local/x/a.html", "http://wiki.local/x/docs/b.html"];
    assert_eq!(urls(&dir.path("atlas")), expected.map(|url| Some(url.to_owned())));
    let seen =
        dir.json(&["scan", "site/a.html", "site/docs/b.html", "-o", "named", "--base-url", "http://h"]);
    assert_eq!(seen["links"], 2, "{seen}");
    for wrong in ["--base-url wiki.local", "--base-url http://h/ --hosts"] {
        assert_eq!(dir.line(&format!("scan site -o wrong {wrong}")).code, 2, "{wrong}");
    }
    // One place without folders: only a base can help.
    dir.write("flat/a.html", "<p>a page<a href=b.html>next</a>");
    let seen = dir.json(&["scan", "flat", "-o", "flat-atlas"]);
    assert_eq!(
        (&seen["link_remedies"], &seen["links_unresolved"]),
        (&json!(["base_url"]), &json!(1)),
        "{seen}"
    );
}
