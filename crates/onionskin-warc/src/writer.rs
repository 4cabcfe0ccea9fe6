//! Writing WARC 1.0 files.
//!
//! The writer keeps no state but its place in the file, takes nothing from clocks or random
//! numbers, and so writes the same bytes for the same calls. In gzip, every record is a member of
//! its own.
//!
//! ```
//! use onionskin_warc::writer::{NewRecord, RecordId, WarcWriter};
//! use onionskin_warc::{Compression, RecordKind};
//!
//! let mut writer = WarcWriter::new(Vec::new(), Compression::None)?;
//! let id = RecordId::from_hash(7);
//! let mut record = NewRecord::new(RecordKind::Resource, id, "2024-05-01T12:00:00Z");
//! record.target_uri = Some("http://a.example/");
//! record.content_type = Some("text/plain");
//! record.block = b"hello";
//! writer.write(&record)?;
//! assert!(writer.finish()?.starts_with(b"WARC/1.0\r\nWARC-Type: resource\r\n"));
//! # Ok::<(), std::io::Error>(())
//! ```

use crate::{Compression, RecordKind};
use flate2::write::GzEncoder;
use std::fmt::{self, Write as _};
use std::io::{self, Write};

/// The profile of a revisit that found the same payload.
pub const IDENTICAL_PAYLOAD_PROFILE: &str =
    "http://netpreserve.org/warc/1.0/revisit/identical-payload-digest";

/// The same as WARC 1.1 spells it.
pub const IDENTICAL_PAYLOAD_PROFILE_1_1: &str =
    "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// A `WARC-Record-ID`, `urn:uuid:` and a UUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordId(u128);

impl RecordId {
    /// A UUID of version 8 (RFC 9562: "the bits are the application's own") from a hash of the
    /// caller's. 122 of its bits are kept.
    pub fn from_hash(hash: u128) -> RecordId {
        const VERSION: u128 = 0xf << 76;
        const VARIANT: u128 = 0b11 << 62;
        RecordId(hash & !VERSION & !VARIANT | 8 << 76 | 0b10 << 62)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(f, "urn:uuid:{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

/// A record to be written. [`NewRecord::new`] and then the fields.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// `WARC-Type`.
    pub kind: RecordKind,
    /// `WARC-Record-ID`.
    pub id: RecordId,
    /// `WARC-Date`; see [`format_date`](crate::format_date).
    pub date: &'a str,
    /// `WARC-Target-URI`.
    pub target_uri: Option<&'a str>,
    /// `Content-Type` of the block.
    pub content_type: Option<&'a str>,
    /// Other fields, in this order.
    pub fields: &'a [(&'a str, &'a str)],
    /// The block.
    pub block: &'a [u8],
}

impl<'a> NewRecord<'a> {
    /// A record with an empty block and nothing optional.
    pub fn new(kind: RecordKind, id: RecordId, date: &'a str) -> NewRecord<'a> {
        NewRecord { kind, id, date, target_uri: None, content_type: None, fields: &[], block: &[] }
    }
}

/// Where a record was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Offset in the file.
    pub offset: u64,
    /// Length in the file, compressed if the file is.
    pub length: u64,
}

/// Writes records one after the other.
pub struct WarcWriter<W: Write> {
    output: W,
    compression: Compression,
    offset: u64,
    /// The record being put together; kept for its memory.
    scratch: Vec<u8>,
}

/// The level gzip itself uses.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

impl<W: Write> WarcWriter<W> {
    /// Writes to `output`, which is at its beginning. Buffering is the caller's.
    pub fn new(output: W, compression: Compression) -> io::Result<WarcWriter<W>> {
        Ok(WarcWriter { output, compression, offset: 0, scratch: Vec::new() })
    }

    /// Writes any record.
    pub fn write(&mut self, record: &NewRecord<'_>) -> io::Result<Written> {
        let head = head(record)?;
        self.write_parts(&head, record.block)
    }

    /// Writes a record of WARC 1.1 whose fields are all given, in this order; `Content-Length`
    /// alone is added.
    pub fn write_fields(&mut self, fields: &[(&str, &str)], block: &[u8]) -> io::Result<Written> {
        let mut head = String::from("WARC/1.1\r\n");
        for (name, value) in fields {
            check_field(name, value)?;
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let _ = write!(head, "Content-Length: {}\r\n\r\n", block.len());
        self.write_parts(&head, block)
    }

    /// Copies bytes that are records already, packed as this file is, up to the end of `stored`.
    pub fn copy(&mut self, stored: &mut impl io::Read) -> io::Result<Written> {
        let length = io::copy(stored, &mut self.output)?;
        Ok(self.advance(length))
    }

    fn write_parts(&mut self, head: &str, block: &[u8]) -> io::Result<Written> {
        self.scratch.clear();
        match self.compression {
            Compression::None => {
                // Not through the scratch: a plain block needs no second copy.
                for part in [head.as_bytes(), block, b"\r\n\r\n"] {
                    self.output.write_all(part)?;
                }
                return Ok(self.advance((head.len() + block.len() + 4) as u64));
            }
            Compression::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                let mut encoder = GzEncoder::new(&mut self.scratch, level);
                for part in [head.as_bytes(), block, b"\r\n\r\n"] {
                    encoder.write_all(part)?;
                }
                encoder.finish()?;
            }
            Compression::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(&mut self.scratch, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                for part in [head.as_bytes(), block, b"\r\n\r\n"] {
                    encoder.write_all(part)?;
                }
                encoder.finish()?;
            }
        }
        self.output.write_all(&self.scratch)?;
        Ok(self.advance(self.scratch.len() as u64))
    }

    fn advance(&mut self, length: u64) -> Written {
        let written = Written { offset: self.offset, length };
        self.offset += length;
        written
    }

    /// Writes the record that a file begins with: what made it, as `name: value` lines.
    pub fn warcinfo(
        &mut self,
        id: RecordId,
        date: &str,
        filename: Option<&str>,
        info: &[(&str, &str)],
    ) -> io::Result<Written> {
        let mut block = String::new();
        for (name, value) in info {
            check_field(name, value)?;
            let _ = write!(block, "{name}: {value}\r\n");
        }
        let fields = [("WARC-Filename", filename.unwrap_or_default())];
        let mut record = NewRecord::new(RecordKind::WarcInfo, id, date);
        record.content_type = Some("application/warc-fields");
        record.fields = if filename.is_some() { &fields } else { &[] };
        record.block = block.as_bytes();
        self.write(&record)
    }

    /// Writes a whole HTTP response, head and body; see [`http_response`].
    pub fn response(&mut self, id: RecordId, date: &str, uri: &str, message: &[u8]) -> io::Result<Written> {
        let mut record = NewRecord::new(RecordKind::Response, id, date);
        record.target_uri = Some(uri);
        record.content_type = Some("application/http; msgtype=response");
        record.block = message;
        self.write(&record)
    }

    /// Writes a payload without protocol headers.
    pub fn resource(
        &mut self,
        id: RecordId,
        date: &str,
        uri: &str,
        content_type: &str,
        payload: &[u8],
    ) -> io::Result<Written> {
        let mut record = NewRecord::new(RecordKind::Resource, id, date);
        record.target_uri = Some(uri);
        record.content_type = Some(content_type);
        record.block = payload;
        self.write(&record)
    }

    /// Writes that a visit found the payload of an earlier one. `http_head` may be empty.
    pub fn revisit(
        &mut self,
        id: RecordId,
        date: &str,
        uri: &str,
        visit: &Revisit<'_>,
    ) -> io::Result<Written> {
        let mut fields = vec![
            ("WARC-Profile", IDENTICAL_PAYLOAD_PROFILE),
            ("WARC-Refers-To-Target-URI", visit.refers_to_uri),
            ("WARC-Refers-To-Date", visit.refers_to_date),
            ("WARC-Payload-Digest", visit.payload_digest),
            ("WARC-Truncated", "length"),
        ];
        let refers_to = visit.refers_to.map(|id| format!("<{id}>"));
        if let Some(refers_to) = &refers_to {
            fields.insert(1, ("WARC-Refers-To", refers_to));
        }
        let mut record = NewRecord::new(RecordKind::Revisit, id, date);
        record.target_uri = Some(uri);
        record.content_type = Some("application/http; msgtype=response");
        record.fields = &fields;
        record.block = visit.http_head;
        self.write(&record)
    }

    /// Writes something about another record, as `name: value` lines.
    pub fn metadata(
        &mut self,
        id: RecordId,
        date: &str,
        uri: &str,
        refers_to: RecordId,
        lines: &[(&str, &str)],
    ) -> io::Result<Written> {
        let mut block = String::new();
        for (name, value) in lines {
            check_field(name, value)?;
            let _ = write!(block, "{name}: {value}\r\n");
        }
        let refers_to = format!("<{refers_to}>");
        let fields = [("WARC-Refers-To", refers_to.as_str())];
        let mut record = NewRecord::new(RecordKind::Metadata, id, date);
        record.target_uri = Some(uri);
        record.content_type = Some("application/warc-fields");
        record.fields = &fields;
        record.block = block.as_bytes();
        self.write(&record)
    }

    /// How many bytes were written so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Flushes and gives the output back.
    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}

/// What a revisit found again.
#[derive(Clone, Copy, Debug)]
pub struct Revisit<'a> {
    /// `WARC-Refers-To`, if the first record's id is known.
    pub refers_to: Option<RecordId>,
    /// `WARC-Refers-To-Target-URI`.
    pub refers_to_uri: &'a str,
    /// `WARC-Refers-To-Date`.
    pub refers_to_date: &'a str,
    /// `WARC-Payload-Digest`, such as `sha1:` and base 32.
    pub payload_digest: &'a str,
    /// The HTTP head of this visit, or nothing.
    pub http_head: &'a [u8],
}

/// An HTTP response message, with `Content-Length`.
pub fn http_response(
    status: u16,
    content_type: &str,
    fields: &[(&str, &str)],
    body: &[u8],
) -> io::Result<Vec<u8>> {
    check_field("Content-Type", content_type)?;
    let reason = match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        404 => "Not Found",
        500 => "Internal Server Error",
        _ => "Status",
    };
    let mut head = format!("HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\n");
    for (name, value) in fields {
        check_field(name, value)?;
        let _ = write!(head, "{name}: {value}\r\n");
    }
    let _ = write!(head, "Content-Length: {}\r\n\r\n", body.len());
    let mut message = head.into_bytes();
    message.extend_from_slice(body);
    Ok(message)
}

fn head(record: &NewRecord<'_>) -> io::Result<String> {
    let mut head = String::with_capacity(512);
    let mut field = |name: &str, value: &str| {
        check_field(name, value)?;
        let _ = write!(head, "{name}: {value}\r\n");
        io::Result::Ok(())
    };
    field("WARC-Type", record.kind.as_str())?;
    field("WARC-Record-ID", &format!("<{}>", record.id))?;
    field("WARC-Date", record.date)?;
    if let Some(uri) = record.target_uri {
        field("WARC-Target-URI", uri)?;
    }
    for (name, value) in record.fields {
        field(name, value)?;
    }
    if let Some(content_type) = record.content_type {
        field("Content-Type", content_type)?;
    }
    let length = record.block.len();
    Ok(format!("WARC/1.0\r\n{head}Content-Length: {length}\r\n\r\n"))
}

/// A line end in a value would be the beginning of another field, or of another record.
fn check_field(name: &str, value: &str) -> io::Result<()> {
    let bad_name = name.is_empty() || name.contains(|c: char| c.is_ascii_control() || matches!(c, ':' | ' '));
    if bad_name || value.contains(['\r', '\n', '\0']) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("the field {name:?} cannot be written"),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
