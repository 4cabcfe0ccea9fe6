//! Records read in every form, with and without their HTTP heads, beside the floor: inflating
//! alone.
//!
//! `ONIONSKIN_BENCH_INPUT` names a file that is read instead of a crawl that is made up.
#![allow(clippy::unwrap_used, reason = "a bench")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::io::{Read, Write};

use divan::Bencher;
use divan::counter::BytesCount;
use onionskin_warc::writer::{RecordId, WarcWriter, http_response};
use onionskin_warc::{Compression, Item, Limits, Reader, parse_response};

/// Pages of the crawl.
const PAGES: u64 = 100;

fn main() {
    divan::main();
}

const FORMS: [&str; 4] = ["plain", "gzip", "gzip, whole file", "zstd"];

fn crawl(form: &str) -> Vec<u8> {
    if let Some(path) = std::env::var_os("ONIONSKIN_BENCH_INPUT") {
        return std::fs::read(path).unwrap();
    }
    match form {
        "gzip" => pages(Compression::Gzip),
        "zstd" => pages(Compression::Zstd),
        "plain" => pages(Compression::None),
        _ => {
            let mut whole = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
            whole.write_all(&pages(Compression::None)).unwrap();
            whole.finish().unwrap()
        }
    }
}

/// Pages of varied length from a skewed vocabulary, with markup that repeats.
fn pages(compression: Compression) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut writer = WarcWriter::new(Vec::new(), compression).unwrap();
    for n in 0..PAGES {
        let mut page = format!("<!DOCTYPE html><html><head><title>Page {n}</title></head><body>");
        for w in 0..200 + random() % 6000 {
            // The product of two uniform numbers is skewed enough to look like a vocabulary.
            let word = (random() % 300) * (random() % 100);
            let _ = write!(page, "{}{} ", ["th", "an", "re", "on", "il"][(word % 5) as usize], word);
            if w % 40 == 39 {
                let (class, link) = (w % 3, random() % 9999);
                let _ = write!(page, "</p>\n<p class=\"text body-{class}\"><a href=\"/page/{link}\">");
            }
        }
        let server = [("Server", "example")];
        let message = http_response(200, "text/html; charset=utf-8", &server, page.as_bytes()).unwrap();
        let uri = format!("http://site{}.example/page/{n}", n % 37);
        let id = RecordId::from_hash(u128::from(n));
        writer.response(id, "2024-05-01T12:00:00Z", &uri, &message).unwrap();
    }
    writer.finish().unwrap()
}

/// Bytes of the blocks of a file.
fn read(file: &[u8], with_http: bool) -> usize {
    let limits = Limits::default();
    let mut bytes = 0;
    for item in Reader::new(file, limits).unwrap() {
        if let Item::Record(record) = item.unwrap() {
            bytes += record.block.len();
            if with_http && record.is_http_response() {
                black_box(parse_response(record.block, &limits).unwrap());
            }
        }
    }
    bytes
}

#[divan::bench(args = FORMS, sample_count = 20)]
fn records(bencher: Bencher<'_, '_>, form: &str) {
    let file = crawl(form);
    bencher.counter(BytesCount::new(read(&file, false))).bench_local(|| read(&file, false));
}

#[divan::bench(args = FORMS, sample_count = 20)]
fn records_and_http(bencher: Bencher<'_, '_>, form: &str) {
    let file = crawl(form);
    bencher.counter(BytesCount::new(read(&file, false))).bench_local(|| read(&file, true));
}

#[divan::bench(sample_count = 20)]
fn inflating_alone(bencher: Bencher<'_, '_>) {
    let file = crawl("gzip");
    let mut buffer = vec![0; 256 << 10];
    bencher.counter(BytesCount::new(read(&file, false))).bench_local(|| {
        let mut decoder = flate2::bufread::MultiGzDecoder::new(file.as_slice());
        while decoder.read(&mut buffer).unwrap() > 0 {}
    });
}
