//! Compressed inputs are decoded in several places at once where they have several frames.

use std::collections::BTreeMap;
use std::io::Write;

use crate::util::{Dir, files};

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(vec![], flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// A name, and what compresses.
type Packer = (&'static str, fn(&[u8]) -> Vec<u8>);
const PACKERS: [Packer; 2] = [("texts.jsonl.gz", gzip), ("texts.jsonl.zst", zst)];

fn lines(n: u64) -> Vec<u8> {
    let mut lines = Vec::new();
    for nth in 0..n {
        write!(lines, "{{\"id\":\"{nth}\",\"text\":\"").unwrap();
        let mut state = nth / 3;
        for _ in 0..40 + nth % 300 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            write!(lines, "word{} ", (state >> 33) % 3000).unwrap();
        }
        lines.extend_from_slice(b"\"}\n");
    }
    lines
}

/// The tables of a scan, and what it said of bad records.
fn scan(dir: &Dir, name: &str, threads: &str) -> (BTreeMap<String, Vec<u8>>, String) {
    let options = ["--overwrite", "--threads", threads, "--memory", "1G", "--task-bytes", "100000"];
    let seen = dir.json(&[&["scan", name, "-o", "atlas"], options.as_slice()].concat());
    (files(&dir.path("atlas")), seen["bad_records"].to_string())
}

/// The same with any number of threads, and but for the manifest, which has the length of the
/// input, the same as from one frame.
#[test]
fn frames_and_members_give_the_bytes_of_one_stream() {
    let lines = lines(4000);
    for (name, pack) in PACKERS {
        let one = Dir::new();
        one.write(name, pack(&lines));
        let (mut expected, _) = scan(&one, name, "1");
        assert!(scan(&one, name, "2").0 == expected, "{name}, one frame, two threads");
        expected.remove("manifest.json");
        for piece in [30_000, 700_000] {
            let many = Dir::new();
            many.write(name, lines.chunks(piece).flat_map(pack).collect::<Vec<_>>());
            let (mut first, _) = scan(&many, name, "1");
            for threads in ["2", "5"] {
                assert!(
                    scan(&many, name, threads).0 == first,
                    "{name}, pieces of {piece}, {threads} threads"
                );
            }
            first.remove("manifest.json");
            assert_eq!(first.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
            assert!(first == expected, "{name}, pieces of {piece}");
        }
    }
}

/// Damage in the middle, and an input that is cut off.
#[test]
fn damage_is_the_same_with_any_number_of_threads() {
    let lines = lines(2000);
    for (name, pack) in PACKERS {
        let whole: Vec<u8> = lines.chunks(90_000).flat_map(pack).collect();
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle..middle + 10].fill(0x55);
        for stored in [&damaged[..], &whole[..whole.len() / 3]] {
            let dir = Dir::new();
            dir.write(name, stored);
            let first = scan(&dir, name, "1");
            assert!(first.1.contains("1"), "{name}: {}", first.1);
            for threads in ["2", "5"] {
                let found = scan(&dir, name, threads);
                assert_eq!(found.1, first.1, "{name}, {threads} threads");
                assert!(found.0 == first.0, "{name}, {threads} threads");
            }
        }
    }
}
