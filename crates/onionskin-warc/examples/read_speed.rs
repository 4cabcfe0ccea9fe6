//! How fast records are read: `cargo run --release -p onionskin-warc --example read_speed [FILE]...`
//!
//! Without files, a crawl of about 300 MB is made up in memory, with text that compresses as HTML does, and read in
//! every form. Prints MB of decoded blocks per second of CPU time of this one thread, the best of five.

#![expect(clippy::print_stdout, reason = "an example talks to its user")]

use onionskin_warc::writer::{RecordId, WarcWriter, http_response};
use onionskin_warc::{Compression, Item, Limits, Reader, parse_response};
use std::error::Error;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    for path in &paths {
        measure(path, &std::fs::read(path)?)?;
    }
    if paths.is_empty() {
        let plain = crawl(Compression::None)?;
        measure("plain", &plain)?;
        measure("gzip, member per record", &crawl(Compression::Gzip)?)?;
        let mut whole = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        whole.write_all(&plain)?;
        measure("gzip, whole file", &whole.finish()?)?;
        measure("zstd, frame per record", &crawl(Compression::Zstd)?)?;
    }
    Ok(())
}

/// The floor: all members inflated in a row, and nothing done with the text.
fn inflate_alone(file: &[u8]) -> Result<Duration, Box<dyn Error>> {
    let mut best = Duration::MAX;
    let mut buffer = vec![0; 256 << 10];
    for _ in 0..5 {
        let started = cpu_time();
        let mut decoder = flate2::bufread::MultiGzDecoder::new(file);
        while decoder.read(&mut buffer)? > 0 {}
        best = best.min(cpu_time() - started);
    }
    Ok(best)
}

fn measure(name: &str, file: &[u8]) -> Result<(), Box<dyn Error>> {
    let limits = Limits::default();
    let mut best = [Duration::MAX; 2];
    let (mut bytes, mut records, mut damage) = (0, 0, 0);
    for _ in 0..5 {
        for (with_http, best) in [false, true].into_iter().zip(&mut best) {
            let started = cpu_time();
            (bytes, records, damage) = (0, 0, 0);
            for item in Reader::new(file, limits)? {
                match item? {
                    Item::Record(record) => {
                        records += 1;
                        bytes += record.block.len();
                        if with_http && record.is_http_response() {
                            std::hint::black_box(parse_response(record.block, &limits)?);
                        }
                    }
                    Item::Damage(_) => damage += 1,
                }
            }
            *best = (*best).min(cpu_time() - started);
        }
    }
    let rate = |time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    println!(
        "{name}: {:.0} MB/s, {:.0} MB/s with HTTP ({records} records, {damage} damaged, {} MB decoded, {} MB stored)",
        rate(best[0]),
        rate(best[1]),
        bytes / 1_000_000,
        file.len() / 1_000_000
    );
    if file.starts_with(b"\x1f\x8b") {
        println!("{name}: {:.0} MB/s for inflating alone", rate(inflate_alone(file)?));
    }
    Ok(())
}

/// CPU time of this process where the system tells it, so that other work on the machine does not count.
fn cpu_time() -> Duration {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let wall = || START.get_or_init(Instant::now).elapsed();
    let mut text = String::new();
    let nanos = std::fs::File::open("/proc/thread-self/schedstat")
        .and_then(|mut file| file.read_to_string(&mut text));
    match (nanos, text.split(' ').next().map(str::parse)) {
        (Ok(_), Some(Ok(nanos))) => Duration::from_nanos(nanos),
        _ => wall(),
    }
}

/// Pages of varied length from a skewed vocabulary, with markup that repeats.
fn crawl(compression: Compression) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut writer = WarcWriter::new(Vec::new(), compression)?;
    for n in 0..11_000u64 {
        let mut page = format!("<!DOCTYPE html><html><head><title>Page {n}</title></head><body>");
        let words = 200 + random() % 6000;
        for w in 0..words {
            // The product of two uniform numbers is skewed enough to look like a vocabulary.
            let word = (random() % 300) * (random() % 100);
            let _ = write!(page, "{}{} ", ["th", "an", "re", "on", "il"][(word % 5) as usize], word);
            if w % 40 == 39 {
                let _ = write!(
                    page,
                    "</p>\n<p class=\"text body-{}\"><a href=\"/page/{}\">",
                    w % 3,
                    random() % 9999
                );
            }
        }
        let message =
            http_response(200, "text/html; charset=utf-8", &[("Server", "example")], page.as_bytes())?;
        let uri = format!("http://site{}.example/page/{n}", n % 37);
        writer.response(RecordId::from_hash(u128::from(n)), "2024-05-01T12:00:00Z", &uri, &message)?;
    }
    Ok(writer.finish()?)
}
