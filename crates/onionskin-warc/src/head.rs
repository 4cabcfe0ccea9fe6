//! Where a record begins, and what its head says.
//!
//! A WARC record begins with a version line and named fields up to an empty line. An ARC record
//! begins with one line: URL, IP address, date, media type and length in version 1, with five more
//! columns before the length in version 2. URLs may hold spaces in both. A reader that has lost its
//! way needs to recognise either from a few bytes, so recognition is strict where a search could be
//! fooled, and parsing is lenient.

use crate::date::{format_date, parse_date};
use crate::{ContainerKind, Headers, RecordKind};
use memchr::{memchr, memchr_iter, memmem};

/// Heads longer than this are damage. The longest honest ones hold a URL of 64 KiB, twice.
pub(crate) const MAX_HEAD_BYTES: usize = 256 << 10;

/// An ARC head is one line with one URL.
const MAX_ARC_LINE: usize = 16 << 10;

/// How much of the end of a searched piece to keep, so that a record that begins there is found
/// with the next.
pub(crate) const SEARCH_OVERLAP: usize = MAX_ARC_LINE;

/// Does a record begin at the first of these bytes?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begins {
    Yes,
    No,
    /// Not known from so few bytes.
    TooShort,
}

pub(crate) fn record_begins(bytes: &[u8], container: ContainerKind) -> Begins {
    match container {
        ContainerKind::Warc => {
            const MAGIC: &[u8] = b"WARC/";
            let n = bytes.len().min(MAGIC.len());
            match bytes.get(MAGIC.len()) {
                _ if bytes[..n] != MAGIC[..n] => Begins::No,
                Some(byte) if byte.is_ascii_digit() => Begins::Yes,
                Some(_) => Begins::No,
                None => Begins::TooShort,
            }
        }
        ContainerKind::Arc => {
            if bytes.first().is_some_and(|byte| !byte.is_ascii_alphabetic()) {
                return Begins::No;
            }
            match memchr(b'\n', &bytes[..bytes.len().min(MAX_ARC_LINE)]) {
                Some(end) if parse_arc_line(&bytes[..end]).is_some() => Begins::Yes,
                None if bytes.len() < MAX_ARC_LINE => Begins::TooShort,
                _ => Begins::No,
            }
        }
    }
}

/// Where the first record begins, judged strictly. `after_newline` also asks for a line of its own,
/// which keeps a record that merely quotes another from being torn apart.
pub(crate) fn find_record(bytes: &[u8], container: ContainerKind, after_newline: bool) -> Option<usize> {
    match container {
        ContainerKind::Warc => memmem::find_iter(bytes, b"WARC/").find(|&at| {
            let own_line = at > 0 && bytes[at - 1] == b'\n';
            (own_line || !after_newline) && is_version_line(&bytes[at..])
        }),
        ContainerKind::Arc => memchr_iter(b'\n', bytes).map(|newline| newline + 1).find(|&at| {
            let rest = &bytes[at..];
            rest.first().is_some_and(u8::is_ascii_alphabetic)
                && memchr(b'\n', &rest[..rest.len().min(MAX_ARC_LINE)])
                    .is_some_and(|end| parse_arc_line(&rest[..end]).is_some())
        }),
    }
}

/// `WARC/1.0`, a line end, and the beginning of a field that every record has.
fn is_version_line(bytes: &[u8]) -> bool {
    let Some([major, b'.', minor]) = bytes.get(5..8) else { return false };
    if !(major.is_ascii_digit() && minor.is_ascii_digit()) {
        return false;
    }
    let rest = &bytes[8..];
    let rest = rest.strip_prefix(b".").map_or(rest, |tail| tail.get(1..).unwrap_or_default());
    let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
    let Some(rest) = rest.strip_prefix(b"\n") else {
        // WARC/0.18 and its forerunners have two digits after the point.
        return rest.first().is_some_and(u8::is_ascii_digit) && field_follows(&rest[1..]);
    };
    known_field(rest)
}

fn field_follows(bytes: &[u8]) -> bool {
    let rest = bytes.strip_prefix(b"\r").unwrap_or(bytes);
    rest.strip_prefix(b"\n").is_some_and(known_field)
}

fn known_field(bytes: &[u8]) -> bool {
    let begins = |name: &[u8]| bytes.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    begins(b"WARC-") || begins(b"Content-")
}

/// The end of a head that begins at 0, behind its empty line; `from` bytes were searched before.
pub(crate) fn head_end(bytes: &[u8], container: ContainerKind, from: usize) -> Option<usize> {
    match container {
        ContainerKind::Arc => memchr(b'\n', bytes).map(|end| end + 1),
        ContainerKind::Warc => {
            let from = from.saturating_sub(2);
            memchr_iter(b'\n', &bytes[from..]).map(|at| from + at + 1).find_map(|at| match bytes[at..] {
                [b'\n', ..] => Some(at + 1),
                [b'\r', b'\n', ..] => Some(at + 2),
                _ => None,
            })
        }
    }
}

/// What a head says.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) kind: RecordKind,
    pub(crate) headers: Headers,
    pub(crate) length: u64,
}

/// `None` when there is no usable length.
pub(crate) fn parse_head(head: &[u8], container: ContainerKind) -> Option<Head> {
    match container {
        ContainerKind::Warc => {
            let first_line = memchr(b'\n', head)?;
            let mut headers = Headers::new();
            headers.parse(&head[first_line + 1..]);
            let length = headers.get("Content-Length").and_then(parse_length)?;
            let kind = headers.get("WARC-Type").map_or(RecordKind::Other, RecordKind::from_type);
            Some(Head { kind, headers, length })
        }
        ContainerKind::Arc => parse_arc_head(head.trim_ascii_end()),
    }
}

fn parse_length(digits: &str) -> Option<u64> {
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

struct ArcLine<'a> {
    url: &'a [u8],
    ip: &'a [u8],
    date: &'a [u8],
    media_type: &'a [u8],
    length: u64,
}

/// The date is the only column that can be known by its looks, so the others are found from it: the
/// address is before it, the URL is all before that, the type follows, and the length is last. This
/// reads both versions without being told which, which a reader that starts in the middle of a file
/// cannot know.
fn parse_arc_line(line: &[u8]) -> Option<ArcLine<'_>> {
    let line = line.trim_ascii_end();
    let scheme = &line[..memchr(b':', line)?];
    let valid_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    if scheme.is_empty() || !scheme.iter().all(valid_scheme) {
        return None;
    }
    // Positions instead of a list of columns: a line may have thousands of them.
    let mut previous = 0..memchr(b' ', line)?;
    let mut spaces = memchr_iter(b' ', line).skip(1).chain(std::iter::once(line.len()));
    let mut before_previous = 0;
    loop {
        let end = spaces.next()?;
        let column = previous.end + 1..end;
        let is_date =
            matches!(column.len(), 8 | 12 | 14) && line[column.clone()].iter().all(u8::is_ascii_digit);
        if is_date && previous.start > 0 && is_address(&line[previous.clone()]) {
            let mut rest = line.get(end + 1..)?.split(|&byte| byte == b' ');
            let media_type = rest.next()?;
            let last = rest.next_back()?;
            let length = std::str::from_utf8(last).ok().and_then(parse_length)?;
            let url = &line[..before_previous];
            return Some(ArcLine { url, ip: &line[previous], date: &line[column], media_type, length });
        }
        before_previous = previous.end;
        previous = column;
    }
}

fn is_address(bytes: &[u8]) -> bool {
    let separated = bytes.iter().any(|byte| matches!(byte, b'.' | b':'));
    bytes == b"-"
        || separated && bytes.iter().all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':'))
}

fn parse_arc_head(line: &[u8]) -> Option<Head> {
    let fields = parse_arc_line(line)?;
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let mut headers = Headers::new();
    let kind = if fields.url.starts_with(b"filedesc:") { RecordKind::WarcInfo } else { RecordKind::Resource };
    headers.push("WARC-Type", kind.as_str());
    headers.push("WARC-Target-URI", &text(fields.url));
    if let Some(micros) = std::str::from_utf8(fields.date).ok().and_then(parse_date) {
        headers.push("WARC-Date", &format_date(micros));
    }
    headers.push("WARC-IP-Address", &text(fields.ip));
    headers.push("ARC-Content-Type", &text(fields.media_type));
    headers.push("Content-Length", &fields.length.to_string());
    Some(Head { kind, headers, length: fields.length })
}

/// An ARC head does not say whether its block is a response or a bare payload; the block does.
pub(crate) fn complete_arc_head(head: &mut Head, block: &[u8]) {
    let media_type = head.headers.get("ARC-Content-Type").unwrap_or_default().to_owned();
    if head.kind == RecordKind::Resource && block.starts_with(b"HTTP/") {
        head.kind = RecordKind::Response;
        let mut headers = Headers::new();
        headers.push("WARC-Type", head.kind.as_str());
        for (name, value) in head.headers.iter().skip(1) {
            headers.push(name, value);
        }
        headers.push("Content-Type", "application/http; msgtype=response");
        head.headers = headers;
    } else {
        head.headers.push("Content-Type", &media_type);
    }
}

#[cfg(test)]
mod tests;
