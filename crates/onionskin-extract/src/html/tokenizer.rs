//! An HTML tokenizer for text: what the standard tokenizes (section 13.2.5), cut down to what text,
//! links and titles need.
//!
//! The standard describes some eighty states and goes through them a character at a time. A page is
//! mostly stretches where nothing can happen until one of one to three bytes comes, and those are
//! searched for directly: `<` and `&` in text, the closing quote in a value, `>` in a comment, `</`
//! in a script. Comments and doctypes make no event, names of tags and values nobody wants are not
//! copied, and text without references is handed on as a slice of the page.
//!
//! The state machine by the letter is html5gum, and a test holds the two against each other.

use super::Sink;
use super::entities::{self, Place};
use super::tags::Tag;

/// What the content of an element is, as far as the tokenizer is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// Markup.
    Data,
    /// Text with references, up to the end tag.
    Rcdata,
    /// Text as it is, up to the end tag.
    RawText,
    /// Text as it is, up to the end tag, with the rules for scripts within comments.
    Script,
    /// Text as it is, up to the end of the page.
    Plaintext,
}

/// The content of an element. As in a browser that runs scripts, `noscript` is not parsed.
fn content_of(tag: Tag) -> Content {
    match tag {
        Tag::Title | Tag::Textarea => Content::Rcdata,
        Tag::Style | Tag::Xmp | Tag::Iframe | Tag::Noembed | Tag::Noframes | Tag::Noscript => {
            Content::RawText
        }
        Tag::Script => Content::Script,
        Tag::Plaintext => Content::Plaintext,
        _ => Content::Data,
    }
}

/// Buffers that are kept between pages.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    name: Vec<u8>,
    value: String,
}

/// Tokenizes a whole page.
pub(crate) fn tokenize(html: &str, sink: &mut impl Sink, scratch: &mut Scratch) {
    Tokenizer { html, bytes: html.as_bytes(), at: 0, sink, scratch }.run();
}

struct Tokenizer<'a, S> {
    html: &'a str,
    bytes: &'a [u8],
    at: usize,
    sink: &'a mut S,
    scratch: &'a mut Scratch,
}

/// White space between attributes. A carriage return is one too: the standard has made it a line
/// feed by now.
const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r')
}

/// What ends the name of a tag.
const fn ends_name(byte: u8) -> bool {
    is_space(byte) || matches!(byte, b'/' | b'>')
}

/// What ends the name of an attribute.
const ENDS_ATTRIBUTE_NAME: [bool; 256] = {
    let mut ends = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        ends[byte] = ends_name(byte as u8) || byte as u8 == b'=';
        byte += 1;
    }
    ends
};

impl<S: Sink> Tokenizer<'_, S> {
    fn run(&mut self) {
        while self.at < self.bytes.len() {
            let begin = self.at;
            let end = self.end_of_text();
            self.raw(begin, end);
            self.at = end;
            match self.bytes.get(end) {
                Some(b'<') => self.markup(),
                Some(_) => self.reference(),
                None => {}
            }
        }
    }

    /// Where the next `<` or `&` is, or the page ends. Most stretches between tags are a few bytes
    /// long, less than it takes to start a vectorised search.
    fn end_of_text(&self) -> usize {
        const NEAR: usize = 12;
        let rest = &self.bytes[self.at..];
        let near = &rest[..rest.len().min(NEAR)];
        if let Some(length) = near.iter().position(|&byte| byte == b'<' || byte == b'&') {
            return self.at + length;
        }
        match memchr::memchr2(b'<', b'&', &rest[near.len()..]) {
            Some(length) => self.at + near.len() + length,
            None => self.bytes.len(),
        }
    }

    /// The character reference that begins with the `&` at `self.at`, which may be nothing but an
    /// `&`.
    fn reference(&mut self) {
        match entities::reference(&self.bytes[self.at + 1..], Place::Text) {
            Some((reference, length)) => {
                self.at += 1 + length;
                self.sink.text(reference.as_str(&mut [0; 4]));
            }
            None => {
                self.at += 1;
                self.sink.text("&");
            }
        }
    }

    /// What begins with the `<` at `self.at`, which may be nothing but a `<`.
    fn markup(&mut self) {
        let begin = self.at;
        match self.bytes.get(begin + 1) {
            Some(byte) if byte.is_ascii_alphabetic() => self.start_tag(),
            Some(b'/') => match self.bytes.get(begin + 2) {
                Some(byte) if byte.is_ascii_alphabetic() => self.end_tag(),
                Some(b'>') => self.at = begin + 3,
                Some(_) => self.skip_past(b'>'),
                None => {
                    self.at = begin + 2;
                    self.sink.text("</");
                }
            },
            Some(b'!') if self.bytes[begin + 2..].starts_with(b"--") => self.comment(),
            Some(b'!' | b'?') => self.skip_past(b'>'),
            _ => {
                self.at = begin + 1;
                self.sink.text("<");
            }
        }
    }

    /// Goes on after the next such byte, or at the end. Doctypes, processing instructions and what
    /// is none of these all end at the first `>`, quoted or not.
    fn skip_past(&mut self, byte: u8) {
        self.at = match memchr::memchr(byte, &self.bytes[self.at..]) {
            Some(length) => self.at + length + 1,
            None => self.bytes.len(),
        };
    }

    fn comment(&mut self) {
        let inside = self.at + 4;
        let rest = &self.bytes[inside..];
        if rest.starts_with(b">") {
            self.at = inside + 1;
            return;
        }
        if rest.starts_with(b"->") {
            self.at = inside + 2;
            return;
        }
        let end = memchr::memchr_iter(b'>', rest)
            .find(|&close| rest[..close].ends_with(b"--") || rest[..close].ends_with(b"--!"));
        self.at = end.map_or(self.bytes.len(), |close| inside + close + 1);
    }

    /// Reads the name after `<` or `</` into the scratch, in lower case; `false` when the page ends
    /// in it.
    fn name(&mut self, begin: usize) -> bool {
        let Some(length) = self.bytes[begin..].iter().position(|&byte| ends_name(byte)) else {
            self.at = self.bytes.len();
            return false;
        };
        self.at = begin + length;
        self.scratch.name.clear();
        self.scratch.name.extend(self.bytes[begin..self.at].iter().map(u8::to_ascii_lowercase));
        true
    }

    fn start_tag(&mut self) {
        if !self.name(self.at + 1) {
            return;
        }
        let tag = Tag::from_name(&self.scratch.name);
        self.sink.open_tag(tag, &self.scratch.name);
        let Some(self_closing) = self.attributes(true) else { return };
        self.sink.close_tag(self_closing);
        match content_of(tag) {
            Content::Data => {}
            Content::Plaintext => {
                let begin = self.at;
                self.at = self.bytes.len();
                self.raw(begin, self.at);
            }
            Content::Rcdata => {
                let end = self.end_of_raw_text();
                self.text(end);
            }
            Content::RawText => {
                let begin = self.at;
                self.at = self.end_of_raw_text();
                self.raw(begin, self.at);
            }
            Content::Script => {
                let begin = self.at;
                self.at = self.end_of_script();
                self.raw(begin, self.at);
            }
        }
    }

    fn end_tag(&mut self) {
        if self.name(self.at + 2) && self.attributes(false).is_some() {
            let name = &self.scratch.name;
            self.sink.end_tag(Tag::from_name(name), name);
        }
    }

    /// Reads attributes up to and with the `>`, and says whether a slash was before it; `None` when
    /// the page ends first, and with it the tag is gone. Those of end tags are read too, but are
    /// nobody's.
    fn attributes(&mut self, tell: bool) -> Option<bool> {
        let bytes = self.bytes;
        let mut at = self.at;
        // Where the page ends in a tag, everything has been read.
        self.at = bytes.len();
        loop {
            let byte = *bytes.get(at)?;
            if byte == b'>' {
                self.at = at + 1;
                return Some(false);
            }
            if byte == b'/' {
                at += 1;
                if *bytes.get(at)? == b'>' {
                    self.at = at + 1;
                    return Some(true);
                }
                continue;
            }
            if is_space(byte) {
                at += 1;
                continue;
            }
            // A name; an `=` in first place is part of it.
            let name_begin = at;
            at += 1;
            while !ENDS_ATTRIBUTE_NAME[usize::from(*bytes.get(at)?)] {
                at += 1;
            }
            let name = &bytes[name_begin..at];
            while is_space(*bytes.get(at)?) {
                at += 1;
            }
            let (value_begin, value_end);
            if bytes[at] == b'=' {
                at += 1;
                while is_space(*bytes.get(at)?) {
                    at += 1;
                }
                match bytes[at] {
                    quote @ (b'"' | b'\'') => {
                        value_begin = at + 1;
                        value_end = value_begin + memchr::memchr(quote, &bytes[value_begin..])?;
                        at = value_end + 1;
                    }
                    b'>' => {
                        value_begin = at;
                        value_end = at;
                    }
                    _ => {
                        value_begin = at;
                        while !(is_space(*bytes.get(at)?) || bytes[at] == b'>') {
                            at += 1;
                        }
                        value_end = at;
                    }
                }
            } else {
                value_begin = at;
                value_end = at;
            }
            if tell && self.sink.wants(name) {
                let raw = &self.html[value_begin..value_end];
                let value = decode_value(raw, &mut self.scratch.value);
                self.sink.attribute(name, value);
            }
        }
    }

    /// Hands on the content of an element in which only references are markup.
    fn text(&mut self, end: usize) {
        while let Some(length) = memchr::memchr(b'&', &self.bytes[self.at..end]) {
            let begin = self.at;
            self.at += length;
            self.raw(begin, self.at);
            self.reference();
        }
        self.raw(self.at, end);
        self.at = end;
    }

    /// Hands on text as it is.
    fn raw(&mut self, begin: usize, end: usize) {
        if begin < end {
            self.sink.text(&self.html[begin..end]);
        }
    }

    /// Whether the `<` at `at` begins the end tag of the element whose name is in the scratch.
    fn is_end_tag(&self, at: usize) -> bool {
        let name = &self.scratch.name;
        self.bytes[at + 1..].strip_prefix(b"/").is_some_and(|rest| starts_with_name(rest, name))
    }

    /// Where the end tag of the element whose name is in the scratch begins; the end of the page if
    /// there is none.
    fn end_of_raw_text(&self) -> usize {
        memchr::memchr_iter(b'<', &self.bytes[self.at..])
            .map(|offset| self.at + offset)
            .find(|&at| self.is_end_tag(at))
            .unwrap_or(self.bytes.len())
    }

    /// The same for a script. In one that has `<!--` in it, and no `-->` yet, an inner `<script>`
    /// must be closed before the script can be.
    fn end_of_script(&self) -> usize {
        #[derive(PartialEq)]
        enum Escape {
            None,
            Comment,
            ScriptInComment,
        }
        let mut escape = Escape::None;
        // Where the dashes of the comment begin: they may be part of its end too.
        let mut comment = 0;
        let mut at = self.at;
        loop {
            let found = match escape {
                Escape::None => memchr::memchr(b'<', &self.bytes[at..]),
                _ => memchr::memchr2(b'<', b'>', &self.bytes[at..]),
            };
            let Some(offset) = found else { return self.bytes.len() };
            at += offset;
            let rest = &self.bytes[at + 1..];
            if self.bytes[at] == b'>' {
                if at >= comment + 2 && self.bytes[..at].ends_with(b"--") {
                    escape = Escape::None;
                }
            } else {
                match escape {
                    Escape::None if rest.starts_with(b"!--") => {
                        escape = Escape::Comment;
                        comment = at + 2;
                    }
                    Escape::Comment if starts_with_name(rest, b"script") => escape = Escape::ScriptInComment,
                    Escape::ScriptInComment if self.is_end_tag(at) => escape = Escape::Comment,
                    Escape::None | Escape::Comment if self.is_end_tag(at) => return at,
                    _ => {}
                }
            }
            at += 1;
        }
    }
}

/// Whether the bytes begin with this name, in any case, and the name ends there.
fn starts_with_name(bytes: &[u8], name: &[u8]) -> bool {
    bytes.len() > name.len() && bytes[..name.len()].eq_ignore_ascii_case(name) && ends_name(bytes[name.len()])
}

/// The value of an attribute, with references decoded; most have none and are handed back as they
/// are.
fn decode_value<'a>(raw: &'a str, scratch: &'a mut String) -> &'a str {
    if memchr::memchr3(b'&', b'\0', b'\r', raw.as_bytes()).is_none() {
        return raw;
    }
    scratch.clear();
    let bytes = raw.as_bytes();
    let mut begin = 0;
    while let Some(length) = memchr::memchr3(b'&', b'\0', b'\r', &bytes[begin..]) {
        let at = begin + length;
        scratch.push_str(&raw[begin..at]);
        begin = at + 1;
        match bytes[at] {
            b'&' => match entities::reference(&bytes[at + 1..], Place::Attribute) {
                Some((reference, length)) => {
                    scratch.push_str(reference.as_str(&mut [0; 4]));
                    begin += length;
                }
                None => scratch.push('&'),
            },
            b'\0' => scratch.push('\u{fffd}'),
            _ if bytes.get(at + 1) == Some(&b'\n') => {}
            _ => scratch.push('\n'),
        }
    }
    scratch.push_str(&raw[begin..]);
    scratch
}

#[cfg(test)]
mod tests;
