//! What a file is, by its content first and its name second.
//!
//! Names lie (a `.gz` that a server already unpacked, JSON lines called `.txt`), magic bytes do
//! not. Where content alone cannot tell, as between CSV and any other text, the name decides.

use memchr::{memchr, memmem};

use crate::decode::decode_head;
use crate::json::{JsonBuffers, find_fields};
use crate::options::Format;

/// How much of a file is looked at.
pub(crate) const HEAD_BYTES: usize = 8 << 10;

/// How the bytes of an input are compressed as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Not at all.
    Plain,
    /// gzip, one member or many.
    Gzip,
    /// zstd, one frame or many.
    Zstd,
}

impl Encoding {
    pub(crate) fn of(head: &[u8]) -> Encoding {
        match head {
            [0x1f, 0x8b, 0x08, ..] => Encoding::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Encoding::Zstd,
            // A skippable frame of zstd. Dictionaries of .warc.zst files are in one.
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Encoding::Zstd,
            _ => Encoding::Plain,
        }
    }
}

/// The result of looking at a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sniffed {
    pub(crate) encoding: Encoding,
    /// `None` for something that is none of ours.
    pub(crate) format: Option<Format>,
}

/// Decides from the first [`HEAD_BYTES`] of a file and its name.
pub(crate) fn sniff(head: &[u8], name: &str) -> Sniffed {
    let encoding = Encoding::of(head);
    let name = name.to_ascii_lowercase();
    let format = match encoding {
        Encoding::Plain => sniff_decoded(head, &name),
        Encoding::Zstd if head.starts_with(&[0x5d, 0x2a, 0x4d, 0x18]) => Some(Format::Warc),
        Encoding::Gzip | Encoding::Zstd => {
            let inner =
                [".gz", ".zst", ".zstd"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(&name);
            let decoded = decode_head(head, encoding, HEAD_BYTES);
            if decoded.is_empty() {
                by_name(inner)
            } else {
                // Parquet and zip are random-access formats: inside a compressed stream they cannot
                // be read.
                sniff_decoded(&decoded, inner)
                    .filter(|format| !matches!(format, Format::Parquet | Format::Wacz))
            }
        }
    };
    Sniffed { encoding, format }
}

fn sniff_decoded(head: &[u8], name: &str) -> Option<Format> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    if text.is_empty() {
        return by_name(name).or(Some(Format::Tree));
    }
    if text.starts_with(b"WARC/") || text.starts_with(b"filedesc://") {
        return Some(Format::Warc);
    }
    if text.starts_with(b"PAR1") {
        return Some(Format::Parquet);
    }
    if text.starts_with(b"PK\x03\x04") {
        return sniff_zip(text, name);
    }
    if text.starts_with(b"%PDF-") || text.starts_with(b"%!PS") {
        return Some(Format::Tree);
    }
    if !is_text(text) {
        return sniff_flawed(text, name);
    }
    if looks_like_json_lines(text) {
        return Some(Format::Jsonl);
    }
    match by_name(name) {
        Some(format @ (Format::Jsonl | Format::Csv | Format::Tsv)) => Some(format),
        // The other names promise bytes that are not there.
        _ => Some(Format::Tree),
    }
}

/// A text with some bytes in it that no text has, such as a NUL that a crawler or a truncated write
/// left behind. Its readers can deal with those; a file of pictures or programs has far more.
fn sniff_flawed(head: &[u8], name: &str) -> Option<Format> {
    if control_bytes(head) * 20 > head.len().max(60) {
        return None;
    }
    if looks_like_json_lines(head) {
        return Some(Format::Jsonl);
    }
    match by_name(name) {
        Some(format @ (Format::Jsonl | Format::Csv | Format::Tsv)) => Some(format),
        Some(Format::Tree)
            if [".html", ".htm", ".xhtml", ".txt", ".md"].iter().any(|end| name.ends_with(end)) =>
        {
            Some(Format::Tree)
        }
        _ => None,
    }
}

/// The format a name promises.
fn by_name(name: &str) -> Option<Format> {
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending {
        "jsonl" | "ndjson" | "jsonlines" => Format::Jsonl,
        "csv" => Format::Csv,
        "tsv" | "tab" => Format::Tsv,
        "warc" | "wet" | "wat" | "arc" => Format::Warc,
        "parquet" => Format::Parquet,
        "wacz" => Format::Wacz,
        "html" | "htm" | "xhtml" | "txt" | "md" | "pdf" | "ps" | "docx" | "odt" => Format::Tree,
        _ => return None,
    })
}

/// A zip is a WACZ, an office document, or none of ours; its first entry or its name says which.
fn sniff_zip(head: &[u8], name: &str) -> Option<Format> {
    let first_entry = head.get(30..).unwrap_or_default();
    let wacz: [&[u8]; 4] = [b"datapackage", b"archive/", b"indexes/", b"pages/"];
    if name.ends_with(".wacz") || wacz.iter().any(|entry| first_entry.starts_with(entry)) {
        return Some(Format::Wacz);
    }
    let office: [&[u8]; 6] =
        [b"[Content_Types].xml", b"mimetype", b"_rels/", b"word/", b"docProps/", b"customXml/"];
    let by_name =
        [".docx", ".odt", ".pptx", ".xlsx", ".odp", ".ods"].iter().any(|ending| name.ends_with(ending));
    (by_name || office.iter().any(|entry| first_entry.starts_with(entry))).then_some(Format::Tree)
}

/// No NUL bytes and few other control characters, or the byte order mark of UTF-16.
fn is_text(head: &[u8]) -> bool {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return true;
    }
    if memchr(0, head).is_some() {
        return false;
    }
    control_bytes(head) * 50 <= head.len()
}

/// Tab, line feed, form feed, carriage return, and the escape of ISO-2022-JP are at home in text.
fn control_bytes(head: &[u8]) -> usize {
    head.iter().filter(|&&b| b < 0x20 && !matches!(b, b'\t' | b'\n' | 0x0c | b'\r' | 0x1b)).count()
}

/// The first line is a JSON object, or so far looks like one.
fn looks_like_json_lines(head: &[u8]) -> bool {
    let start = head.iter().position(|b| !b.is_ascii_whitespace()).unwrap_or(head.len());
    let rest = &head[start..];
    if !rest.starts_with(b"{") {
        return false;
    }
    match memchr(b'\n', rest) {
        Some(end) => {
            let line = str::from_utf8(&rest[..end]);
            line.is_ok_and(|line| find_fields(line, &[], &mut JsonBuffers::default()).is_ok())
        }
        // One line longer than the head, or a whole file of one line. `{"` and a colon is enough of
        // a promise; a style sheet or a template does not begin so.
        None => {
            let inner = rest[1..].trim_ascii_start();
            inner.starts_with(b"}")
                || (inner.starts_with(b"\"") && memmem::find(inner, b"\":").is_some())
                || (inner.starts_with(b"\"") && memmem::find(inner, b"\" :").is_some())
        }
    }
}

#[cfg(test)]
mod tests;
