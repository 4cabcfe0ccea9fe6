//! `--memory` is a promise: the peak of a job is at most 64 MB above it, whatever the input is.

use std::io::Write;
use std::time::Duration;

use crate::util::Dir;

const MIB: u64 = 1 << 20;
/// What a job may take beyond its budget.
const ABOVE: u64 = 64 * MIB;

fn gzip(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes.as_ref()).unwrap();
    encoder.finish().unwrap()
}

/// Runs a command with little memory and many threads, and gives what was seen.
fn bounded(dir: &Dir, command: &[&str], mib: u64, threads: &str) -> serde_json::Value {
    let memory = format!("{mib}M");
    let seen = dir.json(&[command, &["--memory", &memory, "--threads", threads]].concat());
    // Where the system does not tell there is nothing to check.
    let peak = seen["peak_memory"].as_u64().unwrap_or(0);
    assert!(peak <= mib * MIB + ABOVE, "{command:?} took {} MiB of {mib}: {seen}", peak / MIB);
    seen
}

fn scan(dir: &Dir, inputs: &[&str], mib: u64, threads: &str) -> serde_json::Value {
    bounded(dir, &[&["scan"], inputs, &["-o", "atlas", "--overwrite"]].concat(), mib, threads)
}

/// The whole job, and a search that makes chunks of all texts first. Gives what the job's own
/// search has found.
fn search(dir: &Dir, inputs: &[&str], mib: u64, threads: &str) -> serde_json::Value {
    let ran = bounded(dir, &[&["run"], inputs, &["-o", "atlas", "--overwrite"]].concat(), mib, threads);
    bounded(dir, &["similar", "atlas", "--preset", "sgm98-4"], mib, threads);
    ran["similar"].clone()
}

fn record(kind: &str, media_type: &str, nth: usize, block: &[u8]) -> Vec<u8> {
    let mut record = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.example/{nth}\r\n\
         Content-Type: {media_type}\r\nContent-Length: {}\r\n\r\n",
        block.len()
    )
    .into_bytes();
    record.extend_from_slice(block);
    record.extend_from_slice(b"\r\n\r\n");
    record
}

/// A page that says how it is encoded.
fn page(nth: usize, encodings: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: {encodings}\r\n\r\n");
    gzip(record("response", "application/http; msgtype=response", nth, &[head.as_bytes(), body].concat()))
}

#[test]
fn many_records_in_a_few_bytes() {
    let dir = Dir::new();
    let tiny: Vec<u8> = (0..500_000).flat_map(|nth| record("resource", "text/plain", nth, b"a")).collect();
    dir.write("good.warc.gz", gzip(tiny));
    let broken = gzip(b"WARC/1.0\r\nWARC-Type: x\r\n\r\n".repeat(2_000_000));
    dir.write("broken.warc.gz", broken);
    assert_eq!(scan(&dir, &["good.warc.gz"], 128, "6")["documents"], 500_000);
    // One document, since none at all is a failure.
    dir.write("one.jsonl", "{\"text\":\"a\"}\n");
    let seen = scan(&dir, &["broken.warc.gz", "one.jsonl"], 128, "1");
    assert_eq!(seen["bad_records"]["broken_warc"], 2_000_000, "{seen}");
    dir.write("tiny.jsonl", "{\"text\":\"a\"}\n".repeat(1_000_000));
    assert_eq!(scan(&dir, &["tiny.jsonl"], 128, "2")["documents"], 1_000_000);
}

/// One member of a file that has a member for each record otherwise is one unit of work, and so is
/// a row group. Its sets are larger than the budget.
#[test]
fn many_candidates_in_one_unit_of_work() {
    let dir = Dir::new();
    let mut state = 1_u64;
    let mut text = |last: &str| {
        let words = (0..200).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            [char::from(b'a' + (state >> 33) as u8 % 26), ' ']
        });
        words.flatten().chain(last.chars()).collect::<String>()
    };
    let mut texts = Vec::new();
    for _ in 0..50_000 {
        let first = text("one");
        texts.extend([first.replace("one", "two"), first]);
    }
    let records = texts.iter().enumerate();
    let records = records.map(|(nth, text)| record("resource", "text/plain", nth, text.as_bytes()));
    let records: Vec<Vec<u8>> = records.collect();
    let (single, together) = records.split_at(10);
    let single: Vec<u8> = single.iter().flat_map(gzip).collect();
    dir.write("many.warc.gz", [single, gzip(together.concat())].concat());
    for (mib, threads) in [(128, "2"), (256, "6")] {
        let found = search(&dir, &["many.warc.gz"], mib, threads);
        assert_eq!(found["near_pairs"], 50_000, "{found}");
    }
}

#[test]
fn one_text_of_many_words() {
    let dir = Dir::new();
    for (name, word) in [("words.jsonl", "a "), ("signs.jsonl", "天地玄黄")] {
        let line = |bytes: usize| format!("{{\"text\":\"{}\"}}\n", word.repeat(bytes / word.len()));
        dir.write(name, [line(20 << 20), line(3 << 20), "{\"text\":\"short\"}\n".to_owned()].concat());
        let seen = scan(&dir, &[name], 128, "2");
        let large = seen["bad_records"]["too_large"].as_u64().unwrap();
        assert_eq!(seen["documents"].as_u64().unwrap() + large, 3, "{seen}");
        assert!(large <= 2, "{seen}");
        // The reason has the limit.
        assert!(seen["bad_record_examples"][0]["reason"].as_str().unwrap().contains("4194304"), "{seen}");
        assert_eq!(scan(&dir, &[name], 1024, "6")["documents"], 3);
        search(&dir, &[name], 128, "2");
    }
}

#[test]
fn pages_that_grow_when_they_are_unpacked() {
    let dir = Dir::new();
    let html = "<p>a b c d e f</p>".repeat(2 << 20);
    let (once, brief) = (gzip(&html), gzip(&html[..18 << 10]));
    let twice = gzip(&once);
    let pages: Vec<u8> = (0..4).flat_map(|nth| page(nth, "gzip, gzip", &twice)).collect();
    let names: Vec<String> = (0..4).map(|nth| format!("bombs/{nth}.warc.gz")).collect();
    for name in &names {
        dir.write(name, [pages.as_slice(), &page(9, "gzip", &brief)].concat());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let seen = scan(&dir, &names, 128, "6");
    assert_eq!((&seen["documents"], &seen["bad_records"]["too_large"]), (&4.into(), &16.into()), "{seen}");
    scan(&dir, &names, 512, "6");
}

#[test]
fn names_and_titles_of_any_length() {
    let dir = Dir::new();
    let mut lines = Vec::new();
    for nth in 0..200_u64 {
        // Noise, which no encoding makes smaller.
        let mut state = nth + 1;
        let noise: String = std::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + (state >> 33) as u8 % 26)
        })
        .take(1 << 20)
        .collect();
        writeln!(lines, "{{\"id\":\"{noise}\",\"text\":\"a text\"}}").unwrap();
    }
    dir.write("names.jsonl", lines);
    assert_eq!(scan(&dir, &["names.jsonl"], 128, "2")["documents"], 200);
    search(&dir, &["names.jsonl"], 128, "2");
}

#[test]
fn ordinary_text() {
    let dir = Dir::new();
    let mut lines = Vec::new();
    let mut state = 1_u64;
    for nth in 0..8_000 {
        let words: String = (0..400)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                format!("{:x} ", state >> 48)
            })
            .collect();
        writeln!(lines, "{{\"id\":{nth},\"text\":\"{words}\"}}").unwrap();
    }
    dir.write("text.jsonl", lines);
    for (mib, threads) in [(128, "1"), (128, "6"), (256, "6")] {
        assert_eq!(scan(&dir, &["text.jsonl"], mib, threads)["documents"], 8_000);
        search(&dir, &["text.jsonl"], mib, threads);
    }
}

#[test]
fn too_small_a_budget_is_refused_with_what_is_needed() {
    let dir = Dir::new();
    dir.write("a.jsonl", "{\"text\":\"a\"}\n");
    for job in ["scan", "run"] {
        let outcome = dir.run(&[job, "a.jsonl", "-o", "atlas", "--memory", "64M"]);
        assert_eq!(outcome.code, 2);
        assert!(outcome.stderr.contains("128M"), "{}", outcome.stderr);
    }
    assert_eq!(dir.line("run a.jsonl -o atlas -q").code, 0);
    for (job, least) in [
        ("similar atlas --overwrite", "128M"),
        ("collections atlas --overwrite", "64M"),
        ("report atlas", "64M"),
        ("dedup atlas -o out", "64M"),
    ] {
        let outcome = dir.line(&format!("{job} --memory 63M"));
        assert_eq!(outcome.code, 2, "{job}: {}", outcome.stdout);
        let said = outcome.stderr;
        assert!(said.contains("63M") && said.contains(least), "{job}: {said}");
        let enough = dir.line(&format!("{job} --memory {least}"));
        assert_eq!(enough.code, 0, "{job}: {}", enough.stderr);
    }
}

/// Memory of its own that a process and all of its children have now.
#[cfg(target_os = "linux")]
fn tree_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let anonymous = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or_default();
    let kib: u64 = anonymous.split_whitespace().next().and_then(|kib| kib.parse().ok()).unwrap_or(0);
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let children =
        tasks.map(|task| std::fs::read_to_string(task.path().join("children")).unwrap_or_default());
    let children: Vec<u32> = children
        .flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>())
        .collect();
    kib * 1024 + children.into_iter().map(tree_bytes).sum::<u64>()
}

/// A PDF whose page is a small stream that unpacks to very much.
fn greedy_pdf() -> Vec<u8> {
    pdf(b"", &b"BT (a) Tj ET ".repeat(1 << 16), 600)
}

/// A PDF whose page is some content and then a piece of it many times over.
fn pdf(begin: &[u8], piece: &[u8], times: usize) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::best());
    encoder.write_all(begin).unwrap();
    for _ in 0..times {
        encoder.write_all(piece).unwrap();
    }
    let content = encoder.finish().unwrap();
    let mut pdf = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    let head = format!("<< /Length {} /Filter /FlateDecode >>\nstream\n", content.len());
    let objects: [&[&[u8]]; 4] = [
        &[b"<< /Type /Catalog /Pages 2 0 R >>"],
        &[b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>"],
        &[
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R ",
            b"/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica ",
            b"/Encoding /WinAnsiEncoding >> >> >> >>",
        ],
        &[head.as_bytes(), &content, b"\nendstream"],
    ];
    for (nth, object) in objects.iter().enumerate() {
        offsets.push(pdf.len());
        writeln!(pdf, "{} 0 obj", nth + 1).unwrap();
        object.iter().for_each(|part| pdf.extend_from_slice(part));
        pdf.extend_from_slice(b"\nendobj\n");
    }
    let start = pdf.len();
    pdf.extend_from_slice(b"xref\n0 5\n0000000000 65535 f \n");
    for offset in offsets {
        writeln!(pdf, "{offset:010} 00000 n ").unwrap();
    }
    write!(pdf, "trailer << /Size 5 /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").unwrap();
    pdf
}

/// Members that are decoded several at a time, and others that say less than they hold.
#[test]
fn members_that_grow_are_decoded_within_the_budget() {
    let dir = Dir::new();
    let line = format!("{{\"text\":\"{}\"}}\n", "a".repeat(3 << 20));
    let member = gzip(&line);
    dir.write("grow.jsonl.gz", member.repeat(80));
    let mut lying = gzip(line.repeat(80));
    let end = lying.len() - 4;
    lying[end..].copy_from_slice(&100_000_u32.to_le_bytes());
    dir.write("lie.jsonl.gz", [lying.repeat(2), member].concat());
    for mib in [512, 1024] {
        assert_eq!(scan(&dir, &["grow.jsonl.gz"], mib, "6")["documents"], 80);
        // Damage is found at the end of the member.
        let seen = scan(&dir, &["lie.jsonl.gz"], mib, "6");
        assert_eq!(seen["bad_records"]["corrupt"], 1, "{seen}");
    }
}

/// The process that reads PDF is within the budget too.
/// Runs a command to its end, and holds it and all that it starts to its budget. Gives its code.
#[cfg(target_os = "linux")]
fn run_within(dir: &Dir, mib: u64, command: &[&str]) -> i32 {
    let memory = format!("{mib}M");
    let command = [command, &["--memory", &memory, "--threads", "4"]].concat();
    let mut child = dir.onionskin(&command);
    let quiet = std::process::Stdio::null;
    let mut child = child.stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(tree_bytes(child.id()));
        std::thread::sleep(Duration::from_millis(2));
    }
    let code = child.wait().unwrap().code();
    assert!(peak <= mib * MIB + ABOVE, "{command:?}: {} MiB, {code:?}", peak / MIB);
    code.unwrap_or_else(|| panic!("{command:?} was ended by a signal"))
}

/// The process that reads PDF is within the budget too, whoever asks for it.
#[cfg(target_os = "linux")]
#[test]
fn readers_of_pdf_share_the_budget() {
    let dir = Dir::new();
    for nth in 0..4 {
        dir.write(&format!("in/{nth}.pdf"), greedy_pdf());
    }
    dir.write("in/a.txt", "some words of a plain text");
    for mib in [128_u64, 512] {
        let index = format!("index-{mib}");
        for command in [
            &["scan", "in", "-o", "atlas", "--overwrite"][..],
            &["run", "in", "-o", "whole", "--overwrite"],
            // Makes chunks, for which it reads the files again that the scan has refused.
            &["similar", "atlas", "--exact", "--overwrite"],
            &["seen", "add", &index, "in"],
        ] {
            assert!(run_within(&dir, mib, command) <= 1, "{command:?}");
        }
    }
    let stats = dir.json(&["seen", "stats", "index-512"]);
    assert_eq!(stats["documents"], 1, "{stats}");
}

/// The same where inputs are read again with less memory than the scan had: the documents cannot be
/// read then, and the commands say so.
#[cfg(target_os = "linux")]
#[test]
fn readers_of_pdf_have_a_limit_when_inputs_are_read_again() {
    let dir = Dir::new();
    let paper = pdf(
        b"BT /F1 12 Tf (some words of a paper about mirrors and their copies) Tj ET ",
        &[b' '; 1 << 20],
        100,
    );
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n";
    let block = [head.as_bytes(), &paper].concat();
    let papers =
        (0..2).map(|nth| gzip(record("response", "application/http; msgtype=response", nth, &block)));
    dir.write("papers.warc.gz", papers.flatten().collect::<Vec<u8>>());
    let scanned = dir.json(&["run", "papers.warc.gz", "-o", "atlas", "--memory", "4G"]);
    assert_eq!(scanned["scan"]["documents"], 2, "{scanned}");
    for command in [
        &["dedup", "atlas", "-o", "out", "--shards", "warc"][..],
        &["similar", "atlas", "--exact", "--overwrite"],
    ] {
        assert_eq!(run_within(&dir, 128, command), 2, "{command:?}");
    }
    let enough = dir.line("dedup atlas -o out --shards warc --memory 4G");
    assert_eq!(enough.code, 0, "{}", enough.stderr);
}

/// Batches of `seen` ended by number alone, and a unit of work was read whole before any of it was
/// answered.
#[cfg(target_os = "linux")]
#[test]
fn seen_shares_the_budget() {
    let dir = Dir::new();
    dir.write("one.jsonl", "{\"id\":\"1\",\"text\":\"some words of a plain text\"}\n");
    assert_eq!(dir.line("seen add index one.jsonl -q").code, 0);
    let tiny: Vec<u8> = (0..300_000).flat_map(|nth| record("resource", "text/plain", nth, b"a b")).collect();
    dir.write("tiny/a.warc.gz", gzip(tiny));
    let html = "<p>a b c d e f</p>".repeat(1 << 20);
    let pages: Vec<u8> = (0..8).flat_map(|nth| page(nth, "gzip", &gzip(&html))).collect();
    dir.write("pages/a.warc.gz", pages);
    let line = |bytes: usize| format!("{{\"text\":\"{}\"}}\n", "words ".repeat(bytes / 6));
    dir.write("long.jsonl", line(3 << 20).repeat(100));
    dir.write("words.jsonl", [line(10), format!("{{\"text\":\"{}\"}}\n", "a ".repeat(12 << 20))].concat());
    for input in ["tiny", "pages", "long.jsonl", "words.jsonl"] {
        let code = run_within(&dir, 128, &["seen", "check", "index", input, "--batch", "1000000"]);
        assert_eq!(code, 0, "{input}");
    }
    // What there is no room for is bad, with the reason; everything else is answered.
    let outcome = dir.line("seen check index words.jsonl --memory 128M");
    let answers: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(answers.len(), 2, "{}", outcome.stdout);
    assert!(answers[0].contains(r#""status":"new""#), "{}", outcome.stdout);
    assert!(answers[1].contains(r#""status":"bad""#) && answers[1].contains("bytes"), "{}", outcome.stdout);
}
