//! Which encoding bytes are in, and their text.
//!
//! The order is that of browsers: a byte order mark, what HTTP says, what the page says in its
//! first 1,024 bytes, and then, where browsers differ, first whether the bytes are valid UTF-8
//! (checked at 10 GB/s) and only then a guess (58 MB/s). Text that is UTF-8 already is borrowed,
//! not copied.

use crate::Hints;
use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{
    CoderResult, Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252, X_USER_DEFINED,
};

/// How far into a page its own declaration is looked for; what the HTML standard asks browsers to
/// look at.
const PRESCAN_BYTES: usize = 1024;

/// How many bytes the guess looks at. More does not change it on real pages, and guessing is the
/// slowest step of all.
const GUESS_BYTES: usize = 64 << 10;

/// Where a document of some kind may name its own encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelfDeclaration {
    /// Nowhere: plain text.
    None,
    /// In a `meta` element.
    Meta,
    /// In an XML declaration, or a `meta` element.
    XmlOrMeta,
}

/// The text of `bytes` and the WHATWG name of the encoding it was in. `scratch` holds the text
/// where it had to be converted.
pub(crate) fn decode<'a>(
    bytes: &'a [u8],
    hints: &Hints<'_>,
    declaration: SelfDeclaration,
    scratch: &'a mut String,
) -> (&'a str, &'static str) {
    if let Some((encoding, bom_length)) = Encoding::for_bom(bytes) {
        return decode_as(&bytes[bom_length..], encoding, scratch);
    }
    let declared = hints.charset.and_then(|label| usable(label.as_bytes())).or_else(|| {
        let head = &bytes[..bytes.len().min(PRESCAN_BYTES)];
        match declaration {
            SelfDeclaration::None => None,
            SelfDeclaration::Meta => prescan(head),
            SelfDeclaration::XmlOrMeta => xml_declaration(head).or_else(|| prescan(head)),
        }
    });
    if let Some(encoding) = declared {
        return decode_as(bytes, encoding, scratch);
    }
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return (text, UTF_8.name());
    }
    let encoding = looks_like_utf16(bytes).unwrap_or_else(|| guess(bytes, hints.url));
    decode_as(bytes, encoding, scratch)
}

/// The encoding of a label, unless it is one whose decoder gives a lone replacement character for
/// every document: all such documents would be copies of one another. They are guessed instead.
fn usable(label: &[u8]) -> Option<&'static Encoding> {
    Encoding::for_label(label).filter(|&encoding| encoding != REPLACEMENT)
}

fn decode_as<'a>(
    bytes: &'a [u8],
    encoding: &'static Encoding,
    scratch: &'a mut String,
) -> (&'a str, &'static str) {
    let may_be_borrowed = encoding == UTF_8 || (encoding.is_ascii_compatible() && bytes.is_ascii());
    if may_be_borrowed && let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return (text, encoding.name());
    }
    scratch.clear();
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut rest = bytes;
    loop {
        // A little more than the input is enough for most; the worst case of three bytes a byte is
        // not asked for at once.
        scratch.reserve(rest.len() + rest.len() / 8 + 16);
        let (result, read, _) = decoder.decode_to_string(rest, scratch, true);
        rest = &rest[read..];
        match result {
            CoderResult::InputEmpty => break,
            CoderResult::OutputFull => {}
        }
    }
    (scratch, encoding.name())
}

/// Latin text in UTF-16 without a mark has zeros in every other byte, which no other encoding of
/// text has.
fn looks_like_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = &bytes[..bytes.len().min(PRESCAN_BYTES) & !1];
    if head.len() < 8 {
        return None;
    }
    let (mut even, mut odd) = (0, 0);
    for pair in head.chunks_exact(2) {
        even += usize::from(pair[0] == 0);
        odd += usize::from(pair[1] == 0);
    }
    let most = head.len() / 2 * 7 / 10;
    match (even > most, odd > most) {
        (false, true) => Some(UTF_16LE),
        (true, false) => Some(UTF_16BE),
        _ => None,
    }
}

fn guess(bytes: &[u8], url: Option<&str>) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    let head = &bytes[..bytes.len().min(GUESS_BYTES)];
    let seen_high_bytes = detector.feed(head, head.len() == bytes.len());
    if !seen_high_bytes {
        // The first byte that tells anything lies further in.
        if let Some(position) = bytes.iter().position(|byte| !byte.is_ascii()) {
            let end = bytes.len().min(position + GUESS_BYTES);
            let _ = detector.feed(&bytes[position.max(head.len())..end], end == bytes.len());
        }
    }
    // The bytes are known not to be valid UTF-8 as a whole, but may be UTF-8 with a few broken
    // characters: a document of which only the head was looked at may still be guessed as UTF-8.
    detector.guess(url.and_then(top_level_domain), Utf8Detection::Allow)
}

/// The last label of the host, as the detector wants it: lower case, no dots, ASCII (punycode).
fn top_level_domain(url: &str) -> Option<&[u8]> {
    let host = crate::url::site(url)?;
    let label = host.rsplit('.').next()?.as_bytes();
    let plausible = !label.is_empty()
        && label.iter().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-')
        && label.iter().any(u8::is_ascii_lowercase);
    plausible.then_some(label)
}

/// `<?xml version="1.0" encoding="..."?>` at the very start.
fn xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    let declaration = head.strip_prefix(b"<?xml")?;
    let end = memchr::memmem::find(declaration, b"?>")?;
    let declaration = &declaration[..end];
    let after = &declaration[memchr::memmem::find(declaration, b"encoding")? + b"encoding".len()..];
    let after = after.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let (&quote, value) = after.split_first()?;
    if quote != b'"' && quote != b'\'' {
        return None;
    }
    let end = memchr::memchr(quote, value)?;
    readable_before_decoding(usable(&value[..end])?)
}

/// A declaration that could be read as ASCII cannot be in UTF-16: the standard reads UTF-8 there,
/// and windows-1252 for the private encoding.
fn readable_before_decoding(encoding: &'static Encoding) -> Option<&'static Encoding> {
    Some(if encoding == UTF_16BE || encoding == UTF_16LE {
        UTF_8
    } else if encoding == X_USER_DEFINED {
        WINDOWS_1252
    } else {
        encoding
    })
}

/// The encoding a page names in a `meta` element ("prescan a byte stream" of the HTML standard).
fn prescan(head: &[u8]) -> Option<&'static Encoding> {
    let mut at = 0;
    while let Some(offset) = memchr::memchr(b'<', &head[at..]) {
        at += offset + 1;
        let rest = &head[at..];
        if rest.starts_with(b"!--") {
            // `<!-->` is a whole comment: the dashes that open may also close.
            at += 1 + memchr::memmem::find(&rest[1..], b"-->")? + 3;
            continue;
        }
        if rest.len() > 4 && rest[..4].eq_ignore_ascii_case(b"meta") && is_space_or_slash(rest[4]) {
            let mut attributes = Attributes { bytes: &rest[4..], at: 0 };
            if let Some(encoding) = meta_encoding(&mut attributes) {
                return Some(encoding);
            }
            at += 4 + attributes.at;
        } else if matches!(rest.first(), Some(b'!' | b'/' | b'?'))
            && !rest.get(1).is_some_and(u8::is_ascii_alphabetic)
        {
            at += memchr::memchr(b'>', rest)? + 1;
        } else {
            // Any other tag: its attributes are read, so that a `<meta` inside a quoted value is
            // not one.
            let name = rest.iter().take_while(|&&b| !is_space_or_slash(b) && b != b'>').count();
            let mut attributes = Attributes { bytes: &rest[name..], at: 0 };
            while attributes.next().is_some() {}
            at += name + attributes.at;
        }
    }
    None
}

fn meta_encoding(attributes: &mut Attributes<'_>) -> Option<&'static Encoding> {
    let (mut http_equiv_is_type, mut from_content, mut from_charset) = (false, None, None);
    for (name, value) in attributes {
        if name.eq_ignore_ascii_case(b"http-equiv") {
            http_equiv_is_type |= value.eq_ignore_ascii_case(b"content-type");
        } else if name.eq_ignore_ascii_case(b"content") && from_content.is_none() {
            from_content = charset_parameter(value);
        } else if name.eq_ignore_ascii_case(b"charset") && from_charset.is_none() {
            from_charset = Some(value);
        }
    }
    let label = from_charset.or_else(|| from_content.filter(|_| http_equiv_is_type))?;
    readable_before_decoding(usable(label)?)
}

/// The value of `charset=` in a content type, as lenient as the standard ("extracting a character
/// encoding").
pub(crate) fn charset_parameter(content_type: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        at += content_type[at..].windows(7).position(|window| window.eq_ignore_ascii_case(b"charset"))? + 7;
        let Some(value) = content_type[at..].trim_ascii_start().strip_prefix(b"=") else { continue };
        let value = value.trim_ascii_start();
        return match value.first()? {
            quote @ (b'"' | b'\'') => Some(&value[1..1 + memchr::memchr(*quote, &value[1..])?]),
            _ => {
                let end =
                    value.iter().position(|&b| b.is_ascii_whitespace() || b == b';').unwrap_or(value.len());
                Some(&value[..end])
            }
        };
    }
}

fn is_space_or_slash(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == b'/'
}

/// The attributes of a tag, up to its `>`; stops there or at the end of the bytes.
struct Attributes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.bytes;
        let skip =
            |from: usize, test: fn(u8) -> bool| from + bytes[from..].iter().take_while(|&&b| test(b)).count();
        let begin = skip(self.at, is_space_or_slash);
        self.at = begin;
        if bytes.get(begin).is_none_or(|&b| b == b'>') {
            return None;
        }
        // An `=` in first place belongs to the name.
        let end = skip(begin + 1, |b| !is_space_or_slash(b) && b != b'=' && b != b'>');
        let name = &bytes[begin..end];
        let after = skip(end, |b| b.is_ascii_whitespace());
        if bytes.get(after) != Some(&b'=') {
            self.at = after;
            return Some((name, b""));
        }
        let begin = skip(after + 1, |b| b.is_ascii_whitespace());
        match bytes.get(begin) {
            Some(&quote @ (b'"' | b'\'')) => {
                let end = begin + 1 + memchr::memchr(quote, &bytes[begin + 1..])?;
                self.at = end + 1;
                Some((name, &bytes[begin + 1..end]))
            }
            _ => {
                let end = skip(begin, |b| !b.is_ascii_whitespace() && b != b'>');
                self.at = end;
                Some((name, &bytes[begin..end]))
            }
        }
    }
}

#[cfg(test)]
mod tests;
