//! Entries for fuzzers.
//!
//! They read arbitrary bytes to the end and check what must hold of anything: reading ends, nothing
//! is larger than allowed, nothing lies outside the file. They panic when it does not.

use crate::{Item, Limits, Reader, parse_response, read_range};
use std::io::{self, Cursor};

const LIMITS: Limits = Limits { max_record_bytes: 1 << 16, max_body_bytes: 1 << 16 };

/// For fuzzers: reads any bytes as an archive, whole and in two pieces, with the HTTP message of
/// every record.
///
/// # Panics
///
/// When an invariant of the reader is broken; that is what fuzzing is for.
pub fn fuzz_reader(data: &[u8]) {
    if let Ok(reader) = Reader::new(data, LIMITS) {
        drain(reader, data.len());
    }
    let border = (data.len() / 2) as u64;
    for (start, end) in [(0, border), (border, u64::MAX)] {
        if let Ok(reader) = read_range(Cursor::new(data), start, end, LIMITS) {
            drain(reader, data.len());
        }
    }
}

fn drain(reader: impl Iterator<Item = io::Result<Item>>, file_len: usize) {
    // Every item needs at least a line end or the head of a member, and a record that was cut is
    // followed by at most two reports; what inflates to more is bounded by the ratio of deflate.
    let max_items = file_len.saturating_mul(1100) + 16;
    for (n, item) in reader.enumerate() {
        assert!(n < max_items, "reading does not end");
        match item.expect("memory does not fail") {
            Item::Record(record) => {
                assert!(record.block.len() as u64 <= LIMITS.max_record_bytes, "block above the limit");
                assert!(record.offset < file_len as u64, "record outside the file");
                assert!(record.stored_len.is_none_or(|len| record.offset + len <= file_len as u64));
                fuzz_http(&record.block);
            }
            Item::Damage(damage) => assert!(damage.offset <= file_len as u64, "damage outside the file"),
        }
    }
}

/// For fuzzers: reads any bytes as an HTTP response.
///
/// # Panics
///
/// When a body is above its limit.
pub fn fuzz_http(data: &[u8]) {
    if let Ok(response) = parse_response(data.to_vec(), &LIMITS) {
        assert!(response.body.len() as u64 <= LIMITS.max_body_bytes, "body above the limit");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by fuzzing: a version line without digits was garbage to one part of the reader and a
    /// record to another, and reading never ended.
    #[test]
    fn a_version_without_digits_is_no_record() {
        fuzz_reader(include_bytes!("../testdata/members-in-a-head.bin"));
        fuzz_reader(b"WARC/\r.01\nWARC-Type: warcinfo\r\n\r\n");
    }
}
