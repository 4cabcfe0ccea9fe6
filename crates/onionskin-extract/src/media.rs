//! Which kind of document bytes are.
//!
//! Servers are often wrong about types, and folders say nothing at all. What the bytes show beyond
//! doubt (a magic number) wins over what was declared; the declaration decides between kinds of
//! text; and only where there is none that means anything is text guessed from its first tags, the
//! way browsers do.

use std::borrow::Cow;

/// The kinds of documents that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MediaType {
    /// HTML.
    Html,
    /// HTML written as XML; read as HTML, but an XML declaration may name its charset.
    Xhtml,
    /// Plain text.
    Text,
    /// PDF.
    Pdf,
    /// PostScript.
    PostScript,
    /// A Word document.
    Docx,
    /// A PowerPoint presentation.
    Pptx,
    /// An Excel workbook.
    Xlsx,
    /// An OpenDocument text.
    Odt,
    /// An OpenDocument presentation.
    Odp,
    /// An OpenDocument spreadsheet.
    Ods,
}

impl MediaType {
    /// The name it is known by, such as `text/html`.
    pub fn as_str(self) -> &'static str {
        match self {
            MediaType::Html => "text/html",
            MediaType::Xhtml => "application/xhtml+xml",
            MediaType::Text => "text/plain",
            MediaType::Pdf => "application/pdf",
            MediaType::PostScript => "application/postscript",
            MediaType::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            MediaType::Pptx => "application/vnd.openxmlformats-officedocument.presentationml.presentation",
            MediaType::Xlsx => "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
            MediaType::Odt => "application/vnd.oasis.opendocument.text",
            MediaType::Odp => "application/vnd.oasis.opendocument.presentation",
            MediaType::Ods => "application/vnd.oasis.opendocument.spreadsheet",
        }
    }

    /// The kind of a file by the last part of its name; `None` when the name says nothing, and the
    /// content must.
    pub fn from_extension(extension: &str) -> Option<MediaType> {
        Some(match extension.to_ascii_lowercase().as_str() {
            "html" | "htm" | "shtml" => MediaType::Html,
            "xhtml" | "xht" => MediaType::Xhtml,
            "txt" | "text" | "md" | "rst" => MediaType::Text,
            "pdf" => MediaType::Pdf,
            "ps" | "eps" => MediaType::PostScript,
            "docx" => MediaType::Docx,
            "pptx" => MediaType::Pptx,
            "xlsx" => MediaType::Xlsx,
            "odt" => MediaType::Odt,
            "odp" => MediaType::Odp,
            "ods" => MediaType::Ods,
            _ => return None,
        })
    }
}

/// The media type that the last part of a file's name tells, of documents and of what is none:
/// pictures, scripts, style sheets and data are text to the eye of a sniffer, and copies of each
/// other on every site. `None` when the name says nothing.
pub fn media_type_of_extension(extension: &str) -> Option<&'static str> {
    if let Some(document) = MediaType::from_extension(extension) {
        return Some(document.as_str());
    }
    Some(match extension.to_ascii_lowercase().as_str() {
        "svg" => "image/svg+xml",
        "xpm" | "xbm" => "image/x-xpixmap",
        "js" | "mjs" | "cjs" => "text/javascript",
        "css" | "scss" | "less" => "text/css",
        "json" | "map" | "webmanifest" | "ipynb" => "application/json",
        "xml" | "rss" | "atom" | "xsl" | "xslt" | "rdf" | "opf" | "ncx" => "application/xml",
        "yaml" | "yml" | "toml" => "application/yaml",
        _ => return None,
    })
}

/// What the bytes are, or the name of what they are that cannot be read.
pub(crate) fn decide(bytes: &[u8], declared: Option<&str>) -> Result<MediaType, String> {
    let essence = declared
        .map(|declared| {
            declared.split([';', ',']).next().unwrap_or_default().trim_ascii().to_ascii_lowercase()
        })
        .unwrap_or_default();
    if let Some(kind) = by_magic(bytes, &essence) {
        return kind.map_err(str::to_owned);
    }
    let kind = match essence.as_str() {
        "text/html" | "application/html" | "application/vnd.wap.xhtml+xml" => MediaType::Html,
        "application/xhtml+xml" => MediaType::Xhtml,
        "text/xml" | "application/xml" if is_xhtml(&head(bytes)) => MediaType::Xhtml,
        "text/plain" | "text/markdown" | "text/x-markdown" | "text/x-rst" | "text/prs.fallenstein.rst" => {
            if is_binary(bytes) {
                return Err("application/octet-stream".to_owned());
            }
            MediaType::Text
        }
        ""
        | "*/*"
        | "unknown/unknown"
        | "application/unknown"
        | "application/octet-stream"
        | "application/force-download"
        | "application/x-download"
        | "binary/octet-stream"
        | "content/unknown" => {
            let head = head(bytes);
            if is_xhtml(&head) {
                MediaType::Xhtml
            } else if is_html(&head) {
                MediaType::Html
            } else if is_binary(bytes) {
                return Err("application/octet-stream".to_owned());
            } else {
                MediaType::Text
            }
        }
        _ => return Err(essence),
    };
    Ok(kind)
}

/// What the first bytes show beyond doubt.
fn by_magic(bytes: &[u8], essence: &str) -> Option<Result<MediaType, &'static str>> {
    const UNREADABLE: [(&[u8], &str); 22] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"II*\0", "image/tiff"),
        (b"MM\0*", "image/tiff"),
        (b"\0\0\x01\0", "image/x-icon"),
        (b"OggS\0", "application/ogg"),
        (b"ID3", "audio/mpeg"),
        (b"\x1aE\xdf\xa3", "video/webm"),
        (b"FLV\x01", "video/x-flv"),
        (b"FWS", "application/x-shockwave-flash"),
        (b"CWS", "application/x-shockwave-flash"),
        (b"\x1f\x8b\x08", "application/gzip"),
        (b"BZh9", "application/x-bzip2"),
        (b"\xfd7zXZ\0", "application/x-xz"),
        (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
        (b"Rar!\x1a\x07", "application/vnd.rar"),
        (b"\x7fELF", "application/x-elf"),
        (b"wOFF", "font/woff"),
        (b"wOF2", "font/woff2"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    ];
    let start = bytes.trim_ascii_start();
    if start.starts_with(b"%PDF-") {
        return Some(Ok(MediaType::Pdf));
    }
    if start.starts_with(b"%!PS") || bytes.starts_with(b"\x04%!PS") || bytes.starts_with(b"\xc5\xd0\xd3\xc6")
    {
        return Some(Ok(MediaType::PostScript));
    }
    if bytes.starts_with(b"PK\x03\x04") {
        return Some(crate::office::kind(bytes).ok_or("application/zip"));
    }
    if essence == "application/pdf" || essence == "application/x-pdf" {
        // Readers accept some bytes before the mark.
        let head = &bytes[..bytes.len().min(1024)];
        return memchr::memmem::find(head, b"%PDF-").map(|_| Ok(MediaType::Pdf));
    }
    if bytes.len() > 12 && bytes.starts_with(b"RIFF") {
        return Some(Err(match &bytes[8..12] {
            b"WEBP" => "image/webp",
            b"WAVE" => "audio/wav",
            b"AVI " => "video/x-msvideo",
            _ => "application/octet-stream",
        }));
    }
    if bytes.get(4..8) == Some(b"ftyp") {
        return Some(Err("video/mp4"));
    }
    UNREADABLE.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|&(_, name)| Err(name))
}

/// The first bytes with white space and marks off the front; UTF-16 is thinned to its ASCII.
fn head(bytes: &[u8]) -> Cow<'_, [u8]> {
    let head = &bytes[..bytes.len().min(2048)];
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        let ascii: Vec<u8> = head[2..].iter().copied().filter(|&byte| byte != 0).collect();
        return Cow::Owned(ascii.trim_ascii_start().to_vec());
    }
    Cow::Borrowed(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start())
}

fn is_xhtml(head: &[u8]) -> bool {
    if !head.starts_with(b"<?xml") && !starts_with_ignoring_case(head, b"<!doctype html") {
        return false;
    }
    head.starts_with(b"<?xml")
        && (memchr::memmem::find(head, b"<html").is_some()
            || head.windows(14).any(|window| window.eq_ignore_ascii_case(b"<!doctype html")))
}

fn is_html(head: &[u8]) -> bool {
    const STARTS: [&[u8]; 20] = [
        b"<!doctype html",
        b"<html",
        b"<head",
        b"<script",
        b"<iframe",
        b"<h1",
        b"<h2",
        b"<div",
        b"<font",
        b"<table",
        b"<a",
        b"<style",
        b"<title",
        b"<meta",
        b"<b",
        b"<body",
        b"<br",
        b"<p",
        b"<center",
        b"<frameset",
    ];
    let mut head = head;
    // Comments in front say nothing of what follows.
    while let Some(comment) = head.strip_prefix(b"<!--") {
        let Some(end) = memchr::memmem::find(comment, b"-->") else { return true };
        head = comment[end + 3..].trim_ascii_start();
    }
    STARTS.iter().any(|start| {
        starts_with_ignoring_case(head, start)
            && head.get(start.len()).is_none_or(|&byte| byte.is_ascii_whitespace() || byte == b'>')
    })
}

fn starts_with_ignoring_case(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

/// Whether the first bytes hold control characters that no text has. Zeros are not held against
/// UTF-16.
fn is_binary(bytes: &[u8]) -> bool {
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return false;
    }
    let head = &bytes[..bytes.len().min(4096)];
    head.iter().any(|&byte| matches!(byte, 0x00..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f))
}

#[cfg(test)]
mod tests;
