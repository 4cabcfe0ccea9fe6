//! Files for tests, written by hand so that they can be wrong in every way.

use crate::{Damage, DamageKind, Item, Limits, Reader, Record};
use flate2::write::GzEncoder;
use std::io::Write;

/// Small enough for tests to reach.
pub(crate) const SMALL: Limits = Limits { max_record_bytes: 1 << 16, max_body_bytes: 1 << 16 };

/// A WARC record with its two line ends; the caller may lie about the length in `fields`.
pub(crate) fn warc_record(fields: &[(&str, &str)], block: &[u8]) -> Vec<u8> {
    let mut record = b"WARC/1.0\r\n".to_vec();
    for (name, value) in fields {
        record.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    if !fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-length")) {
        record.extend_from_slice(format!("Content-Length: {}\r\n", block.len()).as_bytes());
    }
    record.extend_from_slice(b"\r\n");
    record.extend_from_slice(block);
    record.extend_from_slice(b"\r\n\r\n");
    record
}

/// Record number `n`, with a block that is different for every `n` and compresses like text.
pub(crate) fn numbered(n: usize) -> Vec<u8> {
    let uri = format!("http://site.example/{n}");
    let fields =
        [("WARC-Type", "response"), ("WARC-Target-URI", uri.as_str()), ("Content-Type", "text/plain")];
    warc_record(&fields, &numbered_block(n))
}

pub(crate) fn numbered_block(n: usize) -> Vec<u8> {
    (0..40 + n % 7).map(|i| format!("word{} ", (n * 31 + i * i * 17) % 997)).collect::<String>().into_bytes()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    gzip_at(bytes, 6)
}

pub(crate) fn gzip_at(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(bytes: &[u8], dictionary: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::with_dictionary(Vec::new(), 3, dictionary).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn skippable(nibble: u8, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x50 | nibble, 0x2a, 0x4d, 0x18];
    frame.extend_from_slice(&(content.len() as u32).to_le_bytes());
    frame.extend_from_slice(content);
    frame
}

/// Deterministic noise.
pub(crate) fn noise(len: usize, mut state: u64) -> Vec<u8> {
    std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(len)
    .collect()
}

pub(crate) fn items(file: &[u8], limits: Limits) -> Vec<Item> {
    Reader::new(file, limits).unwrap().map(Result::unwrap).collect()
}

pub(crate) fn split(items: Vec<Item>) -> (Vec<Record>, Vec<Damage>) {
    let mut split = (Vec::new(), Vec::new());
    for item in items {
        match item {
            Item::Record(record) => split.0.push(record),
            Item::Damage(damage) => split.1.push(damage),
        }
    }
    split
}

/// Records of a file that must have no damage.
pub(crate) fn records(file: &[u8]) -> Vec<Record> {
    let (records, damage) = split(items(file, Limits::default()));
    assert_eq!(damage, []);
    records
}

pub(crate) fn blocks(records: &[Record]) -> Vec<&[u8]> {
    records.iter().map(|record| record.block.as_slice()).collect()
}

/// One word an item: `3` is the record whose URI ends in `/3`, `3-` the same cut short, `!kind` is
/// damage.
pub(crate) fn outline(items: &[Item]) -> String {
    let words = items.iter().map(|item| match item {
        Item::Record(record) => {
            let n = record.target_uri().and_then(|uri| uri.rsplit('/').next()).unwrap_or("?");
            format!("{n}{}", if record.truncated { "-" } else { "" })
        }
        Item::Damage(Damage { kind, .. }) => format!("!{}", DamageKind::code(*kind)),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Changes bytes of a file: where, by what, and in which of four ways.
pub(crate) fn mutate(file: &mut Vec<u8>, changes: Vec<(proptest::sample::Index, u8, u8)>) {
    for (index, byte, how) in changes {
        let at = index.index(file.len());
        match how {
            0 => file[at] = byte,
            1 => file[at] ^= 1 << (byte % 8),
            2 => file.insert(at, byte),
            _ => {
                file.remove(at);
            }
        }
    }
}
