//! Inputs that fail, cannot be opened, or hold what does not belong there: nothing is lost without
//! a word.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

use crate::util::{Dir, Outcome, assert_same_files, files};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Words that are another text for every number.
fn text(n: usize) -> String {
    (0..12).map(|word| format!("w{}x{word}", n.wrapping_mul(7919) + word)).collect::<Vec<_>>().join(" ")
}

fn json_lines(n: usize) -> Vec<u8> {
    (0..n).map(|n| format!("{{\"id\":\"{n}\",\"text\":\"{}\"}}\n", text(n))).collect::<String>().into_bytes()
}

fn csv(n: usize) -> Vec<u8> {
    let rows: String = (0..n).map(|n| format!("{n},{}\n", text(n))).collect();
    format!("id,text\n{rows}").into_bytes()
}

fn warc(n: usize, pack: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let record = |n: usize| {
        let block = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n{}", text(n));
        let head = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{n}\r\n\
             WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Record-ID: <urn:uuid:12345678-1234-1234-1234-{n:012}>\r\n\
             Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
            block.len()
        );
        pack(format!("{head}{block}\r\n\r\n").as_bytes())
    };
    (0..n).flat_map(record).collect()
}

fn parquet(columns: &[(&str, Vec<String>)], rows_per_group: usize) -> Vec<u8> {
    let columns = columns.iter().map(|(name, values)| {
        let array: ArrayRef = Arc::new(StringArray::from_iter_values(values));
        (*name, array)
    });
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(rows_per_group)).build();
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    out
}

fn parquet_texts(n: usize, rows_per_group: usize) -> Vec<u8> {
    parquet(&[("text", (0..n).map(text).collect())], rows_per_group)
}

fn scanned(outcome: &Outcome) -> Value {
    serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{}{}", outcome.stdout, outcome.stderr))
}

/// The reasons of the files that were skipped, by the last part of their names.
fn skipped_files(seen: &Value) -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = seen["skipped_files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            let place = file["place"].as_str().unwrap();
            let name = place.rsplit('/').next().unwrap();
            (name.to_owned(), file["reason"].as_str().unwrap().to_owned())
        })
        .collect();
    files.sort();
    files
}

/// Scans `a.jsonl`, then the input, then a pipe that keeps the scan from beginning until the input
/// was found and `meanwhile` has been done to it.
#[cfg(unix)]
fn scan_and(dir: &Dir, input: &str, meanwhile: impl FnOnce(&Path)) -> Outcome {
    let pipe = dir.path("pipe");
    if !pipe.exists() {
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    }
    let sizes = ["--task-bytes", "2000", "--commit-bytes", "6000", "--memory", "256M", "--threads", "2"];
    let child = dir
        .onionskin(&[&["scan", "a.jsonl", input, "pipe", "-o", "atlas", "--json"], sizes.as_slice()].concat())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Opens when the scan does, which is after it has looked at the input.
    let mut writer = std::fs::OpenOptions::new().write(true).open(&pipe).unwrap();
    meanwhile(&dir.path(input));
    writer.write_all(b"{\"text\":\"the last one\"}\n").unwrap();
    drop(writer);
    Outcome::of(child.wait_with_output().unwrap())
}

/// Whole files were lost as "20 of 61,463 records could not be read", exit 0.
#[cfg(unix)]
#[test]
fn an_input_that_fails_stops_the_scan_and_the_same_command_goes_on() {
    let inputs: Vec<(&str, Vec<u8>)> = vec![
        ("b.jsonl", json_lines(400)),
        ("b.jsonl.gz", gzip(&json_lines(1000))),
        ("b.csv", csv(1000)),
        ("b.parquet", parquet_texts(400, 50)),
        ("b.warc", warc(200, <[u8]>::to_vec)),
        ("b.warc.gz", warc(100, gzip)),
    ];
    for (name, bytes) in inputs {
        let dir = Dir::new();
        dir.write("a.jsonl", json_lines(100));
        let path = dir.write(name, &bytes);
        let clean = scan_and(&dir, name, |_| {});
        assert_eq!(clean.code, 0, "{name}: {}", clean.stderr);
        let expected = files(&dir.path("atlas"));
        std::fs::remove_dir_all(dir.path("atlas")).unwrap();

        let vanished = scan_and(&dir, name, |path| std::fs::remove_file(path).unwrap());
        let said = format!("{name}: {}", vanished.stderr);
        assert_eq!((vanished.code, vanished.stdout.as_str()), (2, ""), "{said}");
        assert!(vanished.stderr.contains(&format!("{name}, byte 0: the input failed")), "{said}");
        assert!(vanished.stderr.contains("hint: ") && vanished.stderr.contains("resumes"), "{said}");
        assert!(!dir.path("atlas/manifest.json").exists(), "{said}");

        std::fs::write(&path, &bytes).unwrap();
        let shorter = scan_and(&dir, name, |path| {
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(bytes.len() as u64 / 2).unwrap();
        });
        let said = format!("{name}: {}", shorter.stderr);
        assert_eq!(shorter.code, 2, "{said}");
        let says_where = shorter.stderr.contains(&format!("{name}, byte "));
        assert!(says_where && shorter.stderr.contains("when it was found"), "{said}");
        assert!(shorter.stderr.contains(&format!("had {} bytes", bytes.len())), "{said}");

        std::fs::write(&path, &bytes).unwrap();
        let again = scan_and(&dir, name, |_| {});
        assert_eq!(again.code, 0, "{name}: {}", again.stderr);
        assert!(scanned(&again)["resumed_documents"].as_u64().unwrap() > 0, "{name}: {}", again.stdout);
        assert_same_files(&files(&dir.path("atlas")), &expected, &format!("after {name} failed"));
    }
}

/// A file that was cut while it was read was taken for one that ends there, exit 0.
#[cfg(unix)]
#[test]
fn seen_notices_that_an_input_gets_shorter() {
    use std::io::{BufRead, BufReader, Read};
    // More than a pipe and the buffers of the program take.
    let lines = json_lines(20_000);
    for (name, bytes) in [("b.jsonl", lines.clone()), ("b.jsonl.gz", gzip(&lines)), ("b.csv", csv(20_000))] {
        let dir = Dir::new();
        let path = dir.write(name, &bytes);
        let sizes = ["--batch", "10", "--memory", "16M"];
        let mut child = dir
            .onionskin(&[&["seen", "add", "index", name], sizes.as_slice()].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        // It has begun, and soon waits for somebody to read its answers.
        let mut first = String::new();
        stdout.read_line(&mut first).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(bytes.len() as u64 / 2).unwrap();
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).unwrap();
        let outcome = Outcome::of(child.wait_with_output().unwrap());
        let said = format!("{name}: {}", outcome.stderr);
        assert_eq!(outcome.code, 2, "{said}");
        assert!(outcome.stderr.contains("when it was found") && outcome.stderr.contains(name), "{said}");
        // What was answered before is safe.
        let answered = 1 + rest.lines().count() as u64;
        let stats: Value = serde_json::from_str(&dir.line("seen stats index --json").stdout).unwrap();
        assert!(
            answered < 20_000 && stats["documents"].as_u64() == Some(answered),
            "{said} {answered} {stats}"
        );
    }
}

/// A file that is there and cannot be read: the kernel answers reads with an I/O error.
#[cfg(target_os = "linux")]
#[test]
fn an_error_of_the_disk_is_no_bad_record() {
    let dir = Dir::new();
    dir.write("a.jsonl", json_lines(3));
    let outcome = dir.run(&["scan", "a.jsonl", "/proc/self/mem", "-o", "atlas"]);
    assert_eq!(outcome.code, 2, "{}", outcome.stdout);
    assert!(outcome.stderr.contains("/proc/self/mem"), "{}", outcome.stderr);
}

/// Runs the program as somebody who may not read everything.
#[cfg(unix)]
fn run_unprivileged(dir: &Dir, arguments: &[&str]) -> Outcome {
    use std::os::unix::process::CommandExt;
    let mut command = dir.onionskin(arguments);
    if rustix::process::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    Outcome::of(command.stdin(Stdio::null()).output().unwrap())
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// One unreadable file ended the scan of a whole tree, and there was no way round.
#[cfg(unix)]
#[test]
fn an_unreadable_file_in_a_folder_is_skipped_by_name() {
    let dir = Dir::new();
    for (name, bytes) in [
        ("in/a.html", b"<p>one page".to_vec()),
        ("in/b.html", b"<p>a locked page".to_vec()),
        ("in/c.jsonl", json_lines(3)),
        ("in/locked/d.html", b"<p>behind a door".to_vec()),
        ("in/e.html", b"<p>the last page".to_vec()),
    ] {
        dir.write(name, bytes);
    }
    std::fs::create_dir(dir.path("out")).unwrap();
    set_mode(&dir.path("."), 0o755);
    set_mode(&dir.path("out"), 0o777);
    let locked = ["in/b.html", "in/c.jsonl", "in/locked"];
    locked.iter().for_each(|name| set_mode(&dir.path(name), 0));

    let outcome = run_unprivileged(&dir, &["scan", "in", "-o", "out/atlas", "--json"]);
    let text = run_unprivileged(&dir, &["scan", "in/*", "-o", "out/glob"]);
    let strict = run_unprivileged(&dir, &["scan", "in", "-o", "out/strict", "--strict"]);
    let named = run_unprivileged(&dir, &["scan", "in/a.html", "in/b.html", "-o", "out/named"]);
    let folder = run_unprivileged(&dir, &["scan", "in/locked", "-o", "out/folder"]);
    set_mode(&dir.path("in/locked"), 0o755);

    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let seen = scanned(&outcome);
    assert_eq!((&seen["documents"], &seen["unreadable_files"]), (&json!(2), &json!(3)), "{seen}");
    assert_eq!(seen["skipped"], json!({ "unreadable file": 3 }));
    let names: Vec<(String, String)> = skipped_files(&seen);
    assert_eq!(
        names.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["b.html", "c.jsonl", "locked"]
    );
    assert!(names.iter().all(|(_, reason)| reason.contains("Permission denied")), "{names:?}");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(dir.path("out/atlas/manifest.json")).unwrap()).unwrap();
    assert_eq!(manifest["skipped_files"].as_array().map(Vec::len), Some(3), "{manifest}");
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(text.stdout.contains("3 unreadable files"), "{}", text.stdout);
    assert!(text.stdout.contains("in/b.html: unreadable file: Permission denied"), "{}", text.stdout);
    assert_eq!(strict.code, 2, "{}", strict.stdout);
    assert!(strict.stderr.contains("in/b.html: an unreadable file: Permission denied"), "{}", strict.stderr);
    // What was named itself has to be there.
    assert_eq!((named.code, folder.code), (2, 2), "{}{}", named.stderr, folder.stderr);
    assert!(named.stderr.contains("in/b.html"), "{}", named.stderr);
    assert!(folder.stderr.contains("in/locked"), "{}", folder.stderr);
}

/// A row group of 500 rows counted as one record, and so did a whole file.
#[test]
fn rows_of_parquet_that_are_lost_are_counted_as_rows() {
    let dir = Dir::new();
    let mut bytes = parquet_texts(1000, 250);
    // The pages of the second row group; the footer is whole.
    let group = bytes.len() / 4;
    bytes[group + 200..group + 4000].fill(0xff);
    dir.write("damaged.parquet", &bytes);
    dir.write("other.parquet", parquet(&[("body", (0..70).map(text).collect())], 50));
    let inputs = ["damaged.parquet", "other.parquet"];
    let seen = dir.json(&[&["scan"], inputs.as_slice(), &["-o", "atlas"]].concat());
    let bad = &seen["bad_records"];
    let (broken, missing) = (bad["broken_parquet"].as_u64().unwrap(), &bad["missing_column"]);
    assert_eq!(seen["documents"].as_u64().unwrap() + broken, 1000, "{seen}");
    assert!(broken >= 250, "{seen}");
    assert_eq!(missing, &json!(70), "{seen}");
    assert!(seen["bad_record_bytes"].as_u64().unwrap() > 1000, "{seen}");
    let limit = (broken + 69).to_string();
    let run = |limit: &str| {
        let all = [&["scan"], inputs.as_slice(), &["-o", "b", "--max-bad-records", limit]].concat();
        dir.run(&all).code
    };
    assert_eq!((run(&limit), run(&(broken + 70).to_string())), (2, 0));
    let text = dir.run(&[&["scan"], inputs.as_slice(), &["-o", "c"]].concat()).stdout;
    assert!(text.contains(&format!("{} of 1,070 records could not be read (", broken + 70)), "{text}");
    assert!(text.contains("(70 records)"), "{text}");
}

/// Rows 3 and 4 went into the text of row 2.
#[test]
fn an_unbalanced_quote_swallows_no_row() {
    let dir = Dir::new();
    dir.write("quote.csv", "id,text,url\n1,one,\n2,\"unbalanced,u\n3,three,u\n4,\"x\",u\n");
    let seen = dir.json(&["scan", "quote.csv", "-o", "atlas"]);
    assert_eq!(
        (&seen["documents"], &seen["bad_records"]),
        (&json!(3), &json!({ "broken_csv": 1 })),
        "{seen}"
    );
    let example = &seen["bad_record_examples"][0];
    assert_eq!(example["place"], "quote.csv, byte 19");
    assert_eq!(example["reason"], "broken CSV record: text after a closing quote");
}

#[test]
fn json_that_is_not_lines_is_named_and_never_exit_0() {
    let dir = Dir::new();
    dir.write("pretty.json", "[\n  {\"text\": \"one\"},\n  {\"text\": \"two\"}\n]\n");
    let (outcome, seen) = {
        let outcome = dir.run(&["scan", "pretty.json", "-o", "atlas", "--json"]);
        let seen = scanned(&outcome);
        (outcome, seen)
    };
    assert_eq!((outcome.code, &seen["documents"]), (1, &json!(0)), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("not one document"), "{}", outcome.stderr);
    assert_eq!(skipped_files(&seen), [("pretty.json".to_owned(), "no text in application/json".to_owned())]);
}

#[test]
fn a_nul_in_a_file_of_a_folder_hides_nothing() {
    let dir = Dir::new();
    dir.write("in/a.html", b"<p>some words \0 on a page");
    dir.write("in/b.jsonl", b"{\"text\":\"one\"}\n\0\0\n{\"text\":\"two\"}\n");
    dir.write("in/c.bin", b"\0\0\0\0");
    dir.write("in/d.txt", b"plain words \0 here");
    let seen = dir.json(&["scan", "in", "-o", "atlas"]);
    assert_eq!(seen["documents"], 3, "{seen}");
    let named = skipped_files(&seen);
    assert_eq!(named.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["c.bin", "d.txt"]);
    assert_eq!(seen["bad_records"], json!({ "broken_json": 1 }), "{seen}");
}

#[test]
fn links_beyond_those_that_are_kept_are_counted() {
    let dir = Dir::new();
    let links: String = (0..100_500).map(|n| format!("<a href=/p{n}>")).collect();
    dir.write("in/example.org/a.html", format!("<p>words{links}"));
    let seen = dir.json(&["scan", "in", "-o", "atlas"]);
    assert_eq!(seen["links_found"], 100_000, "{seen}");
    assert_eq!(seen["skipped"], json!({ "link beyond those kept of one page": 500 }), "{seen}");
}

/// A link in a crawl made 1,031 files of /etc part of it.
#[cfg(unix)]
#[test]
fn links_out_of_a_folder_are_followed_on_request() {
    use std::os::unix::fs::symlink;
    let dir = Dir::new();
    dir.write("in/a/one.txt", "one text");
    dir.write("elsewhere/secret.txt", "a secret");
    symlink(dir.path("elsewhere"), dir.path("in/out")).unwrap();
    symlink(dir.path("elsewhere/secret.txt"), dir.path("in/file.txt")).unwrap();
    symlink("a", dir.path("in/again")).unwrap();
    symlink("..", dir.path("in/a/up")).unwrap();
    let seen = dir.json(&["scan", "in", "-o", "atlas"]);
    assert_eq!(seen["documents"], 2, "a link inside the folder is followed: {seen}");
    let named = skipped_files(&seen);
    assert_eq!(named.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["file.txt", "out"]);
    assert!(named.iter().all(|(_, reason)| reason.contains("leads to")), "{named:?}");
    let seen = dir.json(&["scan", "in", "-o", "all", "--follow-links"]);
    assert_eq!((&seen["documents"], &seen["skipped"]), (&json!(4), &json!({})), "{seen}");
    // The atlas knows how it was made.
    assert_eq!(dir.run(&["scan", "in", "-o", "all", "--follow-links"]).code, 0);
    let other = dir.run(&["scan", "in", "-o", "all"]);
    assert_eq!(other.code, 2, "{}", other.stdout);
    assert!(other.stderr.contains("inputs[0].bytes was"), "{}", other.stderr);
    assert_eq!(dir.run(&["similar", "all"]).code, 0);
}

/// Names of files reached the terminal as they are: colours, titles of windows, text run backwards.
#[cfg(unix)]
#[test]
fn names_of_files_do_not_steer_the_terminal() {
    let dir = Dir::new();
    let name = "evil\u{1b}]0;owned\u{7}\n\u{202e}gnp.jsonl";
    dir.write(name, "{\"text\":\"good\"}\nbad\n");
    dir.write(&format!("in/{name}.bin"), [0; 40]);
    dir.write("in/a.txt", "words");
    let steers = |text: &str| {
        text.chars().any(|c| {
            c != '\n' && (c.is_control() || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}'))
        })
    };
    let missing = format!("missing {name}");
    for arguments in [
        vec!["scan", name, "-o", "a1", "-vv"],
        vec!["scan", name, "-o", "a2", "--max-bad-records", "0"],
        vec!["scan", "in", "-o", "a3"],
        vec!["scan", &missing, "-o", "a4"],
        vec!["explain", "a1", "doc:0", &missing],
        vec!["verify", &missing],
        vec!["run", name, "-o", "a5"],
    ] {
        let outcome = dir.run(&arguments);
        let said = outcome.stdout + &outcome.stderr;
        assert!(!steers(&said), "{arguments:?}: {said:?}");
        assert!(!said.contains("\n\\u{202e}gnp"), "a name is one line: {said:?}");
    }
    let told = dir.run(&["scan", name, "-o", "a6"]).stdout;
    assert!(told.contains("evil\\u{1b}]0;owned\\u{7}\\n\\u{202e}gnp.jsonl, byte 16"), "{told}");
    // Data keeps the name.
    let seen = dir.json(&["scan", name, "-o", "a7"]);
    assert_eq!(seen["bad_record_examples"][0]["place"], format!("{name}, byte 16"));
}

/// Lines of one length changed places, and the only copy of a text was gone.
#[test]
fn dedup_finds_an_input_of_the_same_length_with_other_content() {
    let dir = Dir::new();
    let line = |n: usize| format!("{{\"id\":\"{n:04}\",\"text\":\"{:040}\"}}\n", n % 50 * 1_000_003);
    let lines: Vec<String> = (0..100).map(line).collect();
    dir.write("in.jsonl", lines.concat());
    dir.write(
        "in.csv",
        format!("text\n{}", (0..100).map(|n| format!("\"{:040}\"\n", n % 50 * 7)).collect::<String>()),
    );
    dir.write("in.parquet", parquet(&[("text", (0..100).map(|n| text(n % 50)).collect())], 30));
    dir.write("in.warc.gz", warc(50, gzip).repeat(2));
    let all = ["in.jsonl", "in.csv", "in.parquet", "in.warc.gz"];
    for name in all {
        assert_eq!(dir.run(&["scan", name, "-o", "atlas", "--overwrite"]).code, 0);
        assert_eq!(dir.run(&["similar", "atlas"]).code, 0);
        let before = std::fs::read(dir.path(name)).unwrap();
        let swapped = match name {
            "in.jsonl" => {
                let mut lines = lines.clone();
                lines.swap(60, 61);
                lines.concat().into_bytes()
            }
            "in.csv" => {
                let mut bytes = before.clone();
                let at = bytes.len() - 5;
                bytes[at] = b'9';
                bytes
            }
            "in.parquet" => {
                let mut rows: Vec<usize> = (0..100).map(|n| n % 50).collect();
                rows.swap(60, 61);
                parquet(&[("text", rows.into_iter().map(text).collect())], 30)
            }
            _ => {
                let mut records: Vec<Vec<u8>> = (0..50).map(|n| warc(n + 1, gzip)).collect();
                (1..50).rev().for_each(|n| {
                    let len = records[n - 1].len();
                    records[n].drain(..len);
                });
                // Two of the same length, where there are such.
                let pair = (0..49).find(|&n| records[n].len() == records[n + 1].len()).unwrap();
                let mut twice = [records.clone(), records].concat();
                twice.swap(50 + pair, 51 + pair);
                twice.concat()
            }
        };
        assert_eq!(swapped.len(), before.len(), "{name}");
        let dedup = ["dedup", "atlas", "-o", "out", "--shards", "all"];
        dir.write(name, &swapped);
        let outcome = dir.run(&dedup);
        assert_eq!(outcome.code, 2, "{name}: {}", outcome.stdout);
        assert!(
            outcome.stderr.contains(name) && outcome.stderr.contains("the file has changed"),
            "{}",
            outcome.stderr
        );
        assert!(!dir.path("out").exists(), "nothing half-written is left: {name}");
        dir.write(name, &before);
        let outcome = dir.run(&dedup);
        assert_eq!(outcome.code, 0, "{name}: {}", outcome.stderr);
        std::fs::remove_dir_all(dir.path("out")).unwrap();
    }
}

/// Crawled PostScript was run by Ghostscript unasked.
#[test]
fn postscript_is_read_on_request() {
    let dir = Dir::new();
    dir.write("in/a.ps", "%!PS-Adobe-3.0\n/Helvetica findfont 12 scalefont setfont\n(hello) show showpage\n");
    dir.write("in/b.txt", "words");
    let seen = dir.json(&["scan", "in", "-o", "atlas"]);
    assert_eq!((&seen["documents"], &seen["bad_records"]), (&json!(1), &json!({})), "{seen}");
    assert_eq!(skipped_files(&seen), [("a.ps".to_owned(), "no text in application/postscript".to_owned())]);
    let asked = dir.json(&["scan", "in", "-o", "asked", "--postscript"]);
    let skipped = asked["skipped"].as_object().unwrap();
    assert!(!skipped.contains_key("no text in application/postscript"), "it is tried: {asked}");
}

#[test]
fn the_reader_of_pdf_is_named_once() {
    let dir = Dir::new();
    // A page without the size that the reader wants to see.
    let pdf = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
        3 0 obj<</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<<>>>>endobj\n4 0 obj<</Length 9>>stream\nBT (a) Tj\nendstream endobj\n\
        trailer<</Root 1 0 R>>\n";
    dir.write("in/a.pdf", pdf);
    dir.write("in/b.txt", "words");
    let seen = dir.json(&["scan", "in", "-o", "atlas"]);
    let reason = seen["bad_record_examples"][0]["reason"].as_str().unwrap();
    assert_eq!(reason.matches("pdf-extract").count(), 1, "{reason}");
    assert!(!reason.contains("panicked"), "{reason}");
}
