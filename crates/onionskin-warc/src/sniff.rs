//! What kind of file is this?
//!
//! Names lie, so the first bytes decide. Compressed files are decoded a little, because every
//! second file on disk is gzip and only some of those are archives.

use crate::head::{Begins, find_record, record_begins};
use crate::stream::{gzip, zstd};
use memchr::memmem;

/// The two formats for records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ContainerKind {
    /// WARC 0.x, 1.0, 1.1.
    Warc,
    /// Its forerunner.
    Arc,
}

/// How the records are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// Not at all.
    None,
    /// Gzip members.
    Gzip,
    /// Zstandard frames.
    Zstd,
}

/// What an uncompressed file that begins so is, if it is an archive at all.
pub fn sniff(head: &[u8]) -> Option<ContainerKind> {
    let blank = head.iter().take_while(|byte| matches!(byte, b'\r' | b'\n' | 0)).count();
    let head = &head[blank..];
    let kinds = [ContainerKind::Warc, ContainerKind::Arc];
    kinds.into_iter().find(|&kind| record_begins(head, kind) == Begins::Yes)
}

/// What a file that begins so is, compressed or not. A few KiB are enough, 256 KiB for zstd. Only
/// the beginning is judged; a [`Reader`](crate::Reader) also searches further in.
pub fn sniff_compressed(head: &[u8]) -> Option<(Compression, ContainerKind)> {
    if gzip::begins(head) {
        let mut probe = gzip::Probe::new();
        let text = probe.decode(head);
        let empty = text.ended && text.bytes.iter().all(u8::is_ascii_whitespace);
        let kind = sniff(text.bytes).or_else(|| {
            // An empty member at the beginning says nothing; an empty file is an empty archive.
            let rest = &head[text.used.min(head.len())..];
            if empty && rest.is_empty() {
                return Some(ContainerKind::Warc);
            }
            (empty && gzip::begins(rest)).then(|| sniff(gzip::Probe::new().decode(rest).bytes)).flatten()
        });
        return kind.map(|kind| (Compression::Gzip, kind));
    }
    if zstd::begins(head) {
        return sniff_zstd(head).map(|kind| (Compression::Zstd, kind));
    }
    sniff(head).map(|kind| (Compression::None, kind))
}

fn sniff_zstd(head: &[u8]) -> Option<ContainerKind> {
    let mut rest = head;
    while let Some(skippable) = zstd::Skippable::parse(rest) {
        // Only archives begin with this frame, and what follows cannot be read without it.
        if skippable.is_dictionary() {
            return Some(ContainerKind::Warc);
        }
        rest = usize::try_from(skippable.frame_len()).ok().and_then(|len| rest.get(len..))?;
    }
    let mut probe = zstd::Probe::new(None)?;
    let text = probe.decode(rest);
    let is_empty_file = text.ended && text.bytes.is_empty() && text.used == rest.len();
    sniff(text.bytes).or(is_empty_file.then_some(ContainerKind::Warc))
}

/// The first place where an archive can be read from, when it is not the beginning.
pub(crate) fn sniff_inside(head: &[u8]) -> Option<(usize, Compression, ContainerKind)> {
    // Bounded, since each try costs a few microseconds; honest damage offers a handful.
    const TRIES: usize = 1000;
    let gzip = || {
        let mut probe = gzip::Probe::new();
        memmem::find_iter(head, gzip::MAGIC).take(TRIES).find_map(|at| {
            let kind = sniff(probe.decode(&head[at..]).bytes)?;
            Some((at, Compression::Gzip, kind))
        })
    };
    let zstd = || {
        let mut probe = zstd::Probe::new(None)?;
        memmem::find_iter(head, zstd::MAGIC).take(TRIES).find_map(|at| {
            let kind = sniff(probe.decode(&head[at..]).bytes)?;
            Some((at, Compression::Zstd, kind))
        })
    };
    let plain = || {
        let kind = ContainerKind::Warc;
        find_record(head, kind, false).map(|at| (at, Compression::None, kind))
    };
    // The magic at the very beginning is believed: a gzip member may hold its records uncompressed,
    // and those would then be taken for a plain file.
    if head.starts_with(gzip::MAGIC) {
        return gzip();
    }
    if zstd::begins(head) {
        return zstd();
    }
    [gzip(), zstd(), plain()].into_iter().flatten().min_by_key(|&(at, _, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_heads() {
        assert_eq!(sniff(b"WARC/1.0\r\n"), Some(ContainerKind::Warc));
        assert_eq!(sniff(b"\r\nWARC/1.0\r\n"), Some(ContainerKind::Warc));
        let arc = b"filedesc://f.arc 0.0.0.0 20140126200624 text/plain 75\n";
        assert_eq!(sniff(arc), Some(ContainerKind::Arc));
        for other in [&b""[..], b"<html>", b"{\"text\": \"x\"}\n", b"http://a/ b\n", b"PK\x03\x04"] {
            assert_eq!(sniff(other), None);
            assert_eq!(sniff_compressed(other), None);
        }
    }
}
