//! Content encodings, undone within a limit.

use super::HttpProblem;
use flate2::{Decompress, FlushDecompress, Status};
use std::io::Read;
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// `body` is `None` when the bytes are not in this encoding, and stay as they are.
pub(super) struct Decoded {
    pub(super) body: Option<Vec<u8>>,
    pub(super) problem: Option<HttpProblem>,
}

/// How a decoder ended.
enum End {
    Whole,
    Damaged,
    OverLimit,
}

impl Coding {
    pub(super) fn from_name(name: &str) -> Option<Coding> {
        const NAMES: [(&str, Coding); 6] = [
            ("gzip", Coding::Gzip),
            ("x-gzip", Coding::Gzip),
            ("deflate", Coding::Deflate),
            ("br", Coding::Brotli),
            ("zstd", Coding::Zstd),
            // Never registered, but sent.
            ("brotli", Coding::Brotli),
        ];
        NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, coding)| coding)
    }

    /// Calls `before_large` with every size that the output grows to, before it does.
    pub(super) fn decode(self, body: &[u8], max_bytes: u64, before_large: &mut dyn FnMut(u64)) -> Decoded {
        let max = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let mut out = Output { bytes: Vec::new(), max, before_large };
        let end = match self {
            Coding::Gzip => gunzip(body, &mut out),
            Coding::Deflate => inflate_either(body, &mut out),
            Coding::Brotli => unbrotli(body, &mut out),
            Coding::Zstd => unzstd(body, &mut out),
        };
        let problem = match end {
            None => return Decoded { body: None, problem: Some(HttpProblem::EncodingAbsent) },
            Some(End::Whole) => None,
            Some(End::Damaged) => Some(HttpProblem::BadEncoding),
            Some(End::OverLimit) => Some(HttpProblem::OverLimit),
        };
        Decoded { body: Some(out.bytes), problem }
    }
}

struct Output<'a> {
    bytes: Vec<u8>,
    max: usize,
    before_large: &'a mut dyn FnMut(u64),
}

impl Output<'_> {
    /// Makes room to write into, never beyond the limit by more than a byte; false when the limit
    /// is reached.
    fn make_room(&mut self) -> bool {
        const FIRST: usize = 64 << 10;
        if self.bytes.len() > self.max {
            self.bytes.truncate(self.max);
            return false;
        }
        if self.bytes.len() == self.bytes.capacity() {
            // One byte more than the limit tells "exactly the limit" from "more".
            let room = (self.max - self.bytes.len()).saturating_add(1);
            let more = self.bytes.len().max(FIRST).min(room);
            (self.before_large)((self.bytes.len() + more) as u64);
            self.bytes.reserve_exact(more);
        }
        true
    }
}

/// Undoes raw deflate or zlib; `used` counts the input it took.
fn inflate(zlib: bool, input: &[u8], out: &mut Output<'_>, used: &mut usize) -> End {
    let mut decoder = Decompress::new(zlib);
    loop {
        if !out.make_room() {
            return End::OverLimit;
        }
        let before = (decoder.total_in(), out.bytes.len());
        let rest = &input[decoder.total_in() as usize..];
        let result = decoder.decompress_vec(rest, &mut out.bytes, FlushDecompress::None);
        *used = decoder.total_in() as usize;
        match result {
            Ok(Status::StreamEnd) if out.bytes.len() > out.max => {
                out.bytes.truncate(out.max);
                return End::OverLimit;
            }
            Ok(Status::StreamEnd) => return End::Whole,
            Ok(_) if (decoder.total_in(), out.bytes.len()) != before => {}
            Ok(_) | Err(_) => return End::Damaged,
        }
    }
}

/// One or more members. Bytes after the last are ignored, as every browser does.
fn gunzip(input: &[u8], out: &mut Output<'_>) -> Option<End> {
    use crate::stream::gzip::{TRAILER_BYTES, member_head_len};
    let mut rest = input;
    let mut head_len = member_head_len(rest)?;
    loop {
        let mut used = 0;
        match inflate(false, &rest[head_len..], out, &mut used) {
            End::Whole => {}
            other => return Some(other),
        }
        let member_len = head_len + used + TRAILER_BYTES;
        if member_len > rest.len() {
            // The text is all there; only its checksum is not.
            return Some(End::Whole);
        }
        rest = &rest[member_len..];
        match member_head_len(rest) {
            Some(len) => head_len = len,
            None => return Some(End::Whole),
        }
    }
}

/// "deflate" means zlib in the standard and raw deflate on many servers. The head of zlib has a
/// check of its own.
fn inflate_either(input: &[u8], out: &mut Output<'_>) -> Option<End> {
    let is_zlib = matches!(input, [cmf, flags, ..]
        if cmf & 0x0f == 8 && (u16::from(*cmf) << 8 | u16::from(*flags)) % 31 == 0);
    let end = inflate(is_zlib, input, out, &mut 0);
    if matches!(end, End::Damaged) && (out.bytes.is_empty() || looks_plain(input)) {
        out.bytes.clear();
        let end = inflate(!is_zlib, input, out, &mut 0);
        return (!matches!(end, End::Damaged) || !(out.bytes.is_empty() || looks_plain(input)))
            .then_some(end);
    }
    Some(end)
}

fn unbrotli(input: &[u8], out: &mut Output<'_>) -> Option<End> {
    let mut decoder = brotli_decompressor::Decompressor::new(input, 16 << 10);
    loop {
        if !out.make_room() {
            return Some(End::OverLimit);
        }
        let (before, room) = (out.bytes.len(), out.bytes.capacity() - out.bytes.len());
        match decoder.by_ref().take(room as u64).read_to_end(&mut out.bytes) {
            Ok(_) if out.bytes.len() - before < room => break,
            Ok(_) => {}
            // Brotli has no magic number, and random text decodes to a little nonsense before it
            // fails.
            Err(_) if out.bytes.is_empty() || looks_plain(input) => return None,
            Err(_) => return Some(if out.make_room() { End::Damaged } else { End::OverLimit }),
        }
    }
    Some(if out.make_room() { End::Whole } else { End::OverLimit })
}

fn unzstd(input: &[u8], out: &mut Output<'_>) -> Option<End> {
    // RFC 9659: servers may use windows up to 8 MiB for content.
    const WINDOW_LOG: u32 = 23;
    if !crate::stream::zstd::begins(input) {
        return None;
    }
    let mut decoder = Decoder::new().ok()?;
    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG)).ok()?;
    let mut source = InBuffer::around(input);
    loop {
        if !out.make_room() {
            return Some(End::OverLimit);
        }
        let before = (source.pos(), out.bytes.len());
        let mut target = OutBuffer::around_pos(&mut out.bytes, before.1);
        let result = decoder.run(&mut source, &mut target);
        match result {
            Ok(0) if source.pos() == input.len() && out.bytes.len() <= out.max => return Some(End::Whole),
            Ok(_) if (source.pos(), out.bytes.len()) != before => {}
            Ok(0) if out.bytes.len() <= out.max => return Some(End::Whole),
            Ok(_) | Err(_) => return Some(End::Damaged),
        }
    }
}

/// Text that was never compressed has no control characters at its beginning; compressed bytes
/// nearly always have.
fn looks_plain(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(64)];
    start.iter().all(|&byte| byte >= 0x20 && byte != 0x7f || matches!(byte, b'\t' | b'\n' | b'\r'))
}
