//! JSON lines: one object a line, of which three fields matter.
//!
//! The naive way parses each line into a tree of values and picks the fields out. Here the parser walks the line once and
//! looks only at the wanted keys; everything else is checked and passed over. A string without escapes is lent from the line
//! itself, one with escapes is unpacked into a buffer that all lines share.

use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor as JsonVisitor};

use crate::document::{BadReason, BadRecord, Visitor};
use crate::lines::{Block, Line, LineReader, lines};
use crate::options::Options;
use crate::record::{Extraction, TextRecord};
use crate::source::Input;
use crate::task::Scratch;

/// Where the three fields are looked for, in the order text, id, url.
pub(crate) type Paths<'p> = [Option<&'p str>; 3];

const TEXT: usize = 0;
const ID: usize = 1;
const URL: usize = 2;

/// What was found in a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Slot<'a> {
    #[default]
    Absent,
    Null,
    /// A string without escapes, in the line.
    Borrowed(&'a str),
    /// A string with escapes, or the spelling of a number, in the shared buffer.
    Unpacked {
        number: bool,
    },
    Other,
}

/// Buffers that all lines share.
#[derive(Debug, Default)]
pub(crate) struct JsonBuffers {
    unpacked: [String; 3],
}

impl JsonBuffers {
    /// A long text should not be paid for by every worker until the end.
    pub(crate) fn shrink(&mut self) {
        for buffer in &mut self.unpacked {
            if buffer.capacity() > 4 << 20 {
                *buffer = String::new();
            }
        }
    }
}

/// Reads the lines that begin in a range of a plain file.
pub(crate) fn run_range(
    input: std::io::Result<Box<dyn Input>>,
    source: u32,
    range: Range<u64>,
    options: &Options,
    scratch: &mut Scratch,
    visitor: &mut dyn Visitor,
) {
    let opened = input.and_then(|mut input| {
        input.seek(std::io::SeekFrom::Start(range.start.saturating_sub(1)))?;
        Ok(input)
    });
    let input = match opened {
        Ok(input) => input,
        Err(error) => {
            let reason = BadReason::Io { detail: error.to_string() };
            return visitor.bad_record(BadRecord { source, offset: range.start, reason });
        }
    };
    let mut parser = LineParser {
        source,
        options,
        buffers: &mut scratch.json,
        extraction: &mut scratch.extraction,
        visitor,
    };
    let mut reader = LineReader::new(input, range.clone(), options.max_record(), &mut scratch.lines);
    // Lines are lent one at a time, and errors have no offset of their own: that of the last line is near enough.
    let mut offset = range.start;
    loop {
        match reader.next() {
            Ok(None) => break,
            Ok(Some(Line::Whole { offset: at, bytes })) => {
                offset = at;
                parser.line(at, bytes);
            }
            Ok(Some(Line::TooLong { offset: at })) => {
                offset = at;
                parser.bad(at, BadReason::TooLarge { limit: options.max_record_bytes });
            }
            Err(error) => {
                parser.bad(offset, BadReason::from_io(&error));
                break;
            }
        }
    }
}

/// Reads a block of whole lines.
pub(crate) fn run_block(
    block: &Block,
    source: u32,
    options: &Options,
    scratch: &mut Scratch,
    visitor: &mut dyn Visitor,
) {
    let mut parser = LineParser {
        source,
        options,
        buffers: &mut scratch.json,
        extraction: &mut scratch.extraction,
        visitor,
    };
    let too_large = || BadReason::TooLarge { limit: options.max_record_bytes };
    for &offset in &block.too_long {
        parser.bad(offset, too_large());
    }
    for (at, line) in lines(&block.bytes) {
        let offset = block.offset + at as u64;
        if line.len() > options.max_record() {
            parser.bad(offset, too_large());
        } else {
            parser.line(offset, line);
        }
    }
    if let Some((offset, reason)) = &block.failure {
        parser.bad(*offset, reason.clone());
    }
}

struct LineParser<'a> {
    source: u32,
    options: &'a Options,
    buffers: &'a mut JsonBuffers,
    extraction: &'a mut Extraction,
    visitor: &'a mut dyn Visitor,
}

impl LineParser<'_> {
    fn bad(&mut self, offset: u64, reason: BadReason) {
        self.visitor.bad_record(BadRecord { source: self.source, offset, reason });
    }

    fn line(&mut self, offset: u64, mut line: &[u8]) {
        if offset == 0 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        // The four characters that JSON calls white space; a carriage return before the line feed is one of them.
        if line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')) {
            return;
        }
        let Ok(line) = simdutf8::basic::from_utf8(line) else {
            return self.bad(offset, BadReason::InvalidUtf8);
        };
        let options = self.options;
        let paths = [Some(&*options.text_field), Some(&*options.id_field), Some(&*options.url_field)];
        let slots = match parse(line, paths, self.buffers) {
            Ok(slots) => slots,
            Err(reason) => return self.bad(offset, reason),
        };
        let text = match slots[TEXT] {
            Slot::Borrowed(text) => text,
            Slot::Unpacked { number: false } => &self.buffers.unpacked[TEXT],
            Slot::Absent | Slot::Null => return self.bad(offset, BadReason::MissingText),
            Slot::Unpacked { number: true } | Slot::Other => {
                return self.bad(offset, BadReason::TextNotAString);
            }
        };
        let beside = |field: usize| match slots[field] {
            Slot::Borrowed(value) => Some(value),
            Slot::Unpacked { number } if !number || field == ID => Some(&*self.buffers.unpacked[field]),
            _ => None,
        };
        let record = TextRecord { source: self.source, offset, id: beside(ID), url: beside(URL), text };
        record.emit(options, self.extraction, self.visitor);
    }
}

/// Finds the fields in one line.
fn parse<'a>(line: &'a str, paths: Paths<'_>, buffers: &mut JsonBuffers) -> Result<[Slot<'a>; 3], BadReason> {
    let mut slots = [Slot::Absent; 3];
    let mut json = serde_json::Deserializer::from_str(line);
    let object = ObjectSeed { paths, slots: &mut slots, buffers };
    match object.deserialize(&mut json).and_then(|found| json.end().map(|()| found)) {
        Ok(true) => Ok(slots),
        Ok(false) => Err(BadReason::NotAnObject),
        Err(error) => Err(BadReason::BrokenJson { detail: describe(&error) }),
    }
}

/// The parser's message, without its line number: it saw one line.
fn describe(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what} at column {}", error.column()),
        None => message,
    }
}

/// Looks for the fields in an object; `false` when it is something else. How deep it goes is given by the dots in the paths.
struct ObjectSeed<'p, 's, 'a> {
    paths: Paths<'p>,
    slots: &'s mut [Slot<'a>; 3],
    buffers: &'s mut JsonBuffers,
}

impl<'a> DeserializeSeed<'a> for ObjectSeed<'_, '_, 'a> {
    type Value = bool;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// The parts of a visitor that answer to anything but what is wanted.
macro_rules! scalars {
    ($value:ty, $answer:expr) => {
        fn visit_bool<E>(self, _: bool) -> Result<$value, E> {
            Ok($answer)
        }
        fn visit_unit<E>(self) -> Result<$value, E> {
            Ok($answer)
        }
        fn visit_i64<E>(self, _: i64) -> Result<$value, E> {
            Ok($answer)
        }
        fn visit_u64<E>(self, _: u64) -> Result<$value, E> {
            Ok($answer)
        }
        fn visit_f64<E>(self, _: f64) -> Result<$value, E> {
            Ok($answer)
        }
        fn visit_str<E>(self, _: &str) -> Result<$value, E> {
            Ok($answer)
        }
    };
}

fn drain_seq<'a, A: SeqAccess<'a>>(mut seq: A) -> Result<(), A::Error> {
    while seq.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

impl<'a> JsonVisitor<'a> for ObjectSeed<'_, '_, 'a> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    scalars!(bool, false);

    fn visit_seq<A: SeqAccess<'a>>(self, seq: A) -> Result<bool, A::Error> {
        drain_seq(seq).map(|()| false)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<bool, A::Error> {
        while let Some(key) = map.next_key_seed(KeySeed { paths: self.paths })? {
            match key {
                Key::Other => {
                    map.next_value::<IgnoredAny>()?;
                }
                Key::Field(field) => {
                    // A key that is there twice: the last one counts, as it does in most languages' dictionaries.
                    let buffer = &mut self.buffers.unpacked[field];
                    self.slots[field] = map.next_value_seed(ValueSeed { buffer })?;
                }
                Key::Inside(paths) => {
                    map.next_value_seed(ObjectSeed { paths, slots: self.slots, buffers: self.buffers })?;
                }
            }
        }
        Ok(true)
    }
}

/// What a key leads to.
enum Key<'p> {
    Other,
    Field(usize),
    /// An object that the paths go on into; what is left of them.
    Inside(Paths<'p>),
}

struct KeySeed<'p> {
    paths: Paths<'p>,
}

impl<'a, 'p> DeserializeSeed<'a> for KeySeed<'p> {
    type Value = Key<'p>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Key<'p>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'p> JsonVisitor<'_> for KeySeed<'p> {
    type Value = Key<'p>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Key<'p>, E> {
        if let Some(field) = self.paths.iter().position(|path| *path == Some(key)) {
            return Ok(Key::Field(field));
        }
        let inside = self.paths.map(|path| path?.strip_prefix(key)?.strip_prefix('.'));
        Ok(if inside.iter().any(Option::is_some) { Key::Inside(inside) } else { Key::Other })
    }
}

struct ValueSeed<'s> {
    buffer: &'s mut String,
}

impl ValueSeed<'_> {
    fn number<'a, E>(self, value: impl fmt::Display) -> Result<Slot<'a>, E> {
        *self.buffer = value.to_string();
        Ok(Slot::Unpacked { number: true })
    }
}

impl<'a> DeserializeSeed<'a> for ValueSeed<'_> {
    type Value = Slot<'a>;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Slot<'a>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'a> JsonVisitor<'a> for ValueSeed<'_> {
    type Value = Slot<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E>(self, value: &'a str) -> Result<Slot<'a>, E> {
        Ok(Slot::Borrowed(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Slot<'a>, E> {
        self.buffer.clear();
        self.buffer.push_str(value);
        Ok(Slot::Unpacked { number: false })
    }

    fn visit_unit<E>(self) -> Result<Slot<'a>, E> {
        Ok(Slot::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Slot<'a>, E> {
        Ok(Slot::Other)
    }

    fn visit_u64<E>(self, value: u64) -> Result<Slot<'a>, E> {
        self.number(value)
    }

    fn visit_i64<E>(self, value: i64) -> Result<Slot<'a>, E> {
        self.number(value)
    }

    fn visit_f64<E>(self, value: f64) -> Result<Slot<'a>, E> {
        self.number(value)
    }

    fn visit_seq<A: SeqAccess<'a>>(self, seq: A) -> Result<Slot<'a>, A::Error> {
        drain_seq(seq).map(|()| Slot::Other)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Slot<'a>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Slot::Other)
    }
}

#[cfg(test)]
mod tests;
