//! Everything a crawl can hold: counted with file and place, never a panic, never a hang.

use std::io::Write;
use std::time::{Duration, Instant};

use crate::util::{Dir, Outcome};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn record(kind: &str, uri: &str, block: &[u8], claimed: usize) -> Vec<u8> {
    let mut record = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nWARC-Date: 2026-01-02T03:04:05Z\r\n\
         WARC-Record-ID: <urn:uuid:12345678-1234-1234-1234-123456789012>\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {claimed}\r\n\r\n"
    )
    .into_bytes();
    record.extend_from_slice(block);
    record.extend_from_slice(b"\r\n\r\n");
    record
}

fn page(uri: &str, body: &str) -> Vec<u8> {
    let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{body}");
    record("response", uri, block.as_bytes(), block.len())
}

/// Scans one file, within a time that a hang would break, and gives what was seen.
fn scan(dir: &Dir, name: &str, bytes: &[u8], more: &[&str]) -> (Outcome, serde_json::Value) {
    dir.write(name, bytes);
    let start = Instant::now();
    let outcome = dir
        .run(&[&["scan", name, "-o", "atlas", "--json", "--overwrite", "--memory", "256M"], more].concat());
    assert!(start.elapsed() < Duration::from_secs(120), "{name} took {:?}", start.elapsed());
    assert!(!outcome.stderr.contains("panicked"), "{name}: {}", outcome.stderr);
    let seen = serde_json::from_str(&outcome.stdout).unwrap_or_default();
    (outcome, seen)
}

fn check(name: &str, bytes: &[u8], documents: u64, codes: &[&str]) {
    let dir = Dir::new();
    let (outcome, seen) = scan(&dir, name, bytes, &[]);
    assert_eq!(outcome.code, 0, "{name}: {}", outcome.stderr);
    assert_eq!(seen["documents"], documents, "{name}: {seen}");
    let found: Vec<&str> = seen["bad_records"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(found, codes, "{name}: {seen}");
    for example in seen["bad_record_examples"].as_array().unwrap() {
        assert!(example["place"].as_str().unwrap().contains(name), "{example}");
    }
    // The same input is a failure when no bad record is allowed, and only then.
    let (outcome, _) = scan(&dir, name, bytes, &["--max-bad-records", "0"]);
    assert_eq!(outcome.code, if codes.is_empty() { 0 } else { 2 }, "{name}: {}", outcome.stderr);
}

#[test]
fn a_gzip_member_that_is_cut_off() {
    let mut bytes = [
        gzip(&page("http://a.example/1", "<p>first page")),
        gzip(&page("http://a.example/2", "<p>second page")),
    ]
    .concat();
    let whole = gzip(&page("http://a.example/3", &"<p>third page ".repeat(100)));
    bytes.extend_from_slice(&whole[..whole.len() / 2]);
    let dir = Dir::new();
    let (outcome, seen) = scan(&dir, "cut.warc.gz", &bytes, &[]);
    assert_eq!(outcome.code, 0);
    assert!(seen["documents"].as_u64().unwrap() >= 2, "{seen}");
    assert!(
        seen["bad_records"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum::<u64>() >= 1,
        "{seen}"
    );
}

#[test]
fn a_warc_record_with_a_wrong_length() {
    let block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>shorter than it says";
    let bytes = [
        page("http://a.example/1", "<p>before"),
        record("response", "http://a.example/2", block, block.len() + 7),
        page("http://a.example/3", "<p>after"),
    ]
    .concat();
    let dir = Dir::new();
    let (outcome, seen) = scan(&dir, "wrong.warc", &bytes, &[]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(seen["documents"].as_u64().unwrap() >= 2, "{seen}");
    assert!(seen["bad_records"].as_object().is_some_and(|bad| !bad.is_empty()), "{seen}");
}

#[test]
fn broken_json_lines() {
    check(
        "broken.jsonl",
        b"{\"text\":\"good\"}\n{\"text\":\"cut\n{\"no\":1}\n[1]\n{\"text\":\"also good\"}\n",
        2,
        &["broken_json", "not_an_object"],
    );
}

#[test]
fn invalid_utf8() {
    check("latin.jsonl", b"{\"text\":\"good\"}\n{\"text\":\"caf\xe9\"}\n", 1, &["invalid_utf8"]);
}

#[test]
fn a_line_of_two_hundred_megabytes() {
    let mut bytes = b"{\"text\":\"before\"}\n{\"text\":\"".to_vec();
    bytes.resize(bytes.len() + 200_000_000, b'x');
    bytes.extend_from_slice(b"\"}\n{\"text\":\"after\"}\n");
    let dir = Dir::new();
    let (outcome, seen) = scan(&dir, "long.jsonl", &bytes, &[]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(
        (seen["documents"].as_u64(), &seen["bad_records"]),
        (Some(2), &serde_json::json!({ "too_large": 1 })),
        "{seen}"
    );
    let peak = seen["peak_memory"].as_u64().unwrap();
    assert!(peak < 400 << 20, "held in memory: {peak}");
}

#[test]
fn a_gzip_bomb() {
    // Half a gigabyte of one letter in half a megabyte.
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
    encoder.write_all(b"{\"text\":\"before\"}\n{\"text\":\"").unwrap();
    let block = vec![b'x'; 1 << 20];
    for _ in 0..512 {
        encoder.write_all(&block).unwrap();
    }
    encoder.write_all(b"\"}\n{\"text\":\"after\"}\n").unwrap();
    let dir = Dir::new();
    let (outcome, seen) = scan(&dir, "bomb.jsonl.gz", &encoder.finish().unwrap(), &[]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert_eq!(
        (seen["documents"].as_u64(), &seen["bad_records"]),
        (Some(2), &serde_json::json!({ "too_large": 1 })),
        "{seen}"
    );
    assert!(seen["peak_memory"].as_u64().unwrap() < 400 << 20, "{seen}");
}

#[test]
fn a_gzip_bomb_inside_a_response() {
    let body = {
        let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::best());
        let block = vec![b' '; 1 << 20];
        for _ in 0..256 {
            encoder.write_all(&block).unwrap();
        }
        encoder.finish().unwrap()
    };
    let mut block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n".to_vec();
    block.extend_from_slice(&body);
    let bytes = [
        record("response", "http://a.example/bomb", &block, block.len()),
        page("http://a.example/2", "<p>after"),
    ]
    .concat();
    let dir = Dir::new();
    let (outcome, seen) = scan(&dir, "bomb.warc", &bytes, &[]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(seen["documents"].as_u64().unwrap() >= 1, "{seen}");
    assert!(seen["peak_memory"].as_u64().unwrap() < 500 << 20, "{seen}");
}

#[test]
fn html_with_a_hundred_thousand_nested_tags() {
    let html = format!("{}deep down{}", "<div><b>".repeat(100_000), "</b></div>".repeat(100_000));
    check("deep.html", html.as_bytes(), 1, &[]);
}

#[test]
fn random_bytes_and_nothing() {
    let dir = Dir::new();
    let mut state = 1u64;
    let noise: Vec<u8> = (0..100_000)
        .map(|_| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 56) as u8
        })
        .collect();
    // Named on the command line, a file of no known kind is an error; in a folder it is passed
    // over.
    let (outcome, _) = scan(&dir, "noise.bin", &noise, &[]);
    assert_eq!(outcome.code, 2, "{}", outcome.stdout);
    dir.write("folder/noise.bin", &noise);
    dir.write("folder/a.txt", "some words");
    let seen = dir.json(&["scan", "folder", "-o", "atlas2"]);
    assert_eq!(seen["documents"], 1, "{seen}");
    for format in ["warc", "jsonl", "parquet", "csv", "wacz"] {
        let (outcome, _) = scan(&dir, "noise2.bin", &noise, &["--format", format]);
        // Nothing could be read, or the file is refused at once.
        assert!(outcome.code == 1 || outcome.code == 2, "{format}: {}", outcome.stderr);
    }
}

#[test]
fn an_unwritable_folder() {
    // Root may write anywhere; a file in the way stops everybody.
    let dir = Dir::new();
    dir.write("in.jsonl", "{\"text\":\"words\"}\n");
    dir.write("file", "not a folder");
    let outcome = dir.run(&["scan", "in.jsonl", "-o", "file/atlas"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("file"), "{}", outcome.stderr);
    let outcome = dir.run(&["scan", "in.jsonl", "-o", "file"]);
    assert_eq!(outcome.code, 2);
}

/// A disk that fills up: told with what was needed, and the finished part of the work goes on from
/// there.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk() {
    use std::process::Command;
    let dir = Dir::new();
    let mount = dir.path("small");
    std::fs::create_dir(&mount).unwrap();
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(&mount).status();
    if !mounted.is_ok_and(|status| status.success()) {
        eprintln!(
            "no small disk can be mounted here; the same is tested with a failing storage in onionskin-store"
        );
        return;
    }
    let outcome = dir.run(&["generate", "text", "--pages", "4000", "-o", "in.jsonl", "-q"]);
    assert_eq!(outcome.code, 0);
    let sizes = ["--task-bytes", "65536", "--commit-bytes", "500000"];
    let full = dir.run(&[&["scan", "in.jsonl", "-o", "small/atlas"], sizes.as_slice()].concat());
    let grow = Command::new("mount").args(["-o", "remount,size=200m"]).arg(&mount).status().unwrap();
    assert!(grow.success());
    let again = dir.run(&[&["scan", "in.jsonl", "-o", "small/atlas", "--json"], sizes.as_slice()].concat());
    let _ = Command::new("umount").arg(&mount).status();
    assert_eq!(full.code, 2, "{}", full.stdout);
    assert!(full.stderr.contains("needed") && full.stderr.contains("free"), "{}", full.stderr);
    assert_eq!(again.code, 0, "{}", again.stderr);
    let seen: serde_json::Value = serde_json::from_str(&again.stdout).unwrap();
    assert!(seen["resumed_documents"].as_u64().unwrap() > 0, "what was finished is not done again: {seen}");
}
