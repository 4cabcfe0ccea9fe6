use std::{collections::BTreeMap, io::Read};

use flate2::read::MultiGzDecoder;

use super::*;
use crate::{Preset, WebSpec};

fn quiet() -> impl FnMut(u64, u64) {
    |_, _| {}
}

fn demo() -> Web {
    Web::new(&WebSpec::of(Preset::Demo, 300, 11).with_mean_words(50.0)).unwrap()
}

/// Keeps files in memory.
#[derive(Default)]
struct Shelf(Vec<Vec<u8>>);

impl ShardSink for Shelf {
    type Out = Vec<u8>;

    fn open(&mut self, shard: u32) -> io::Result<Vec<u8>> {
        assert_eq!(shard as usize, self.0.len());
        Ok(Vec::new())
    }

    fn close(&mut self, out: Vec<u8>) -> io::Result<()> {
        self.0.push(out);
        Ok(())
    }
}

#[test]
fn json_lines_are_json_and_say_what_the_pages_say() {
    let web = demo();
    let mut out = Vec::new();
    let mut last = (0, 0);
    let written = web.write_jsonl(&mut out, 0..u64::MAX, &mut |pages, bytes| last = (pages, bytes)).unwrap();
    assert_eq!((written.pages, written.bytes, written.files), (300, out.len() as u64, 1));
    assert_eq!(last, (300, out.len() as u64));
    for (line, page) in out.split(|&b| b == b'\n').filter(|line| !line.is_empty()).zip(web.pages()) {
        let value: serde_json::Value = serde_json::from_slice(line).unwrap();
        assert_eq!(value["id"], page.index.to_string());
        assert_eq!(value["url"], page.url);
        assert_eq!(value["text"], page.text);
    }
}

#[test]
fn shards_and_ranges_add_up_to_the_whole() {
    let web = demo();
    let mut whole = Vec::new();
    web.write_jsonl(&mut whole, 0..300, &mut quiet()).unwrap();
    let mut parts = Vec::new();
    for range in [0..1, 1..120, 120..300] {
        web.write_jsonl(&mut parts, range, &mut quiet()).unwrap();
    }
    assert_eq!(parts, whole);
    for shard_bytes in [0, 1, 10_000, 1 << 30] {
        let mut shelf = Shelf::default();
        let written = web.write_jsonl_shards(&mut shelf, 0..300, shard_bytes, &mut quiet()).unwrap();
        assert_eq!(written.files as usize, shelf.0.len());
        assert_eq!(shelf.0.concat(), whole);
        assert!(shelf.0.iter().all(|file| file.ends_with(b"\n")));
        if shard_bytes == 10_000 {
            assert!(shelf.0.len() > 3);
            assert!(
                shelf.0[..shelf.0.len() - 1].iter().all(|file| file.len() >= 10_000 && file.len() < 40_000)
            );
        }
    }
}

/// Reads WARC records by the book: headers to the blank line, then as many bytes as they say, then
/// two line ends.
fn records(mut warc: &[u8]) -> Vec<(BTreeMap<String, String>, Vec<u8>)> {
    let mut records = Vec::new();
    while !warc.is_empty() {
        let end = warc.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = std::str::from_utf8(&warc[..end]).unwrap();
        let mut lines = head.split("\r\n");
        assert_eq!(lines.next(), Some("WARC/1.1"));
        let fields: BTreeMap<String, String> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let length: usize = fields["Content-Length"].parse().unwrap();
        let block = &warc[end + 4..end + 4 + length];
        warc = warc[end + 4 + length..].strip_prefix(b"\r\n\r\n").unwrap();
        records.push((fields, block.to_vec()));
    }
    records
}

#[test]
fn warcs_hold_the_pages() {
    let web = demo();
    let mut plain = Vec::new();
    web.write_warc(&mut plain, 0..300, WarcOptions { gzip: false, requests: true }, &mut quiet()).unwrap();
    let mut packed = Vec::new();
    web.write_warc(&mut packed, 0..300, WarcOptions { gzip: true, requests: true }, &mut quiet()).unwrap();
    let mut unpacked = Vec::new();
    MultiGzDecoder::new(&packed[..]).read_to_end(&mut unpacked).unwrap();
    assert_eq!(unpacked, plain);

    let records = records(&plain);
    assert_eq!(records.len(), 1 + 2 * 300);
    assert_eq!(records[0].0["WARC-Type"], "warcinfo");
    let ids: std::collections::BTreeSet<&str> =
        records.iter().map(|(f, _)| f["WARC-Record-ID"].as_str()).collect();
    assert_eq!(ids.len(), records.len());
    for (pair, page) in records[1..].chunks(2).zip(web.pages()) {
        let [(request, asked), (response, answer)] = pair else { panic!() };
        assert_eq!(request["WARC-Type"], "request");
        assert!(asked.starts_with(b"GET /") && asked.ends_with(b"\r\n\r\n"));
        assert_eq!(request["WARC-Concurrent-To"], response["WARC-Record-ID"]);
        assert_eq!(response["WARC-Target-URI"], page.url);
        assert_eq!(response["WARC-Payload-Digest"].len(), 5 + 32);
        let body = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
        assert_eq!(answer[body..], page.html);
        let head = std::str::from_utf8(&answer[..body]).unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"));
        assert!(head.contains(&format!("Content-Length: {}\r\n", page.html.len())));
    }
}

#[test]
fn every_warc_shard_opens_with_its_warcinfo() {
    let web = demo();
    let mut shelf = Shelf::default();
    let options = WarcOptions { gzip: false, requests: false };
    web.write_warc_shards(&mut shelf, 0..300, options, 30_000, &mut quiet()).unwrap();
    assert!(shelf.0.len() > 3);
    let mut responses = 0;
    for shard in &shelf.0 {
        let records = records(shard);
        assert_eq!(records[0].0["WARC-Type"], "warcinfo");
        responses += records.iter().filter(|(fields, _)| fields["WARC-Type"] == "response").count();
    }
    assert_eq!(responses, 300);
}

#[test]
fn folders_hold_the_pages() {
    let web = demo();
    let dir = tempfile::tempdir().unwrap();
    let written = web.write_folder(dir.path(), &mut quiet()).unwrap();
    assert_eq!(written.files, 300);
    for page in web.pages() {
        let path = dir.path().join(page.url.strip_prefix("http://").unwrap());
        assert_eq!(fs::read(&path).unwrap(), page.html, "{}", path.display());
    }
}

#[test]
fn a_writer_that_fails_is_an_error() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::Error::other("full"))
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let web = demo();
    assert!(matches!(web.write_jsonl(&mut Full, 0..300, &mut quiet()), Err(WriteError::Page { .. })));
    let dir = tempfile::tempdir().unwrap();
    let blocked = dir.path().join("file");
    fs::write(&blocked, "x").unwrap();
    assert!(matches!(web.write_folder(&blocked, &mut quiet()), Err(WriteError::At { .. })));
}
