//! JSON lines: one object a line, of which three fields matter.

use std::io::{self, SeekFrom};
use std::ops::Range;

use crate::document::{BadReason, Loss, Visitor};
use crate::json::{JsonBuffers, JsonError, Path, Slot, each_key, find_fields};
use crate::lines::{Block, Line, LineReader, lines};
use crate::options::Options;
use crate::record::{Extraction, TextRecord, fetch_date};
use crate::source::Input;
use crate::task::Scratch;

/// About how many bytes of names are listed, and how many characters of one.
const MOST_NAMES: usize = 200;
const MOST_CHARS: usize = 60;

const TEXT: usize = 0;
const ID: usize = 1;
const URL: usize = 2;
const DATE: usize = 3;

/// Reads the lines that begin in a range of a plain file. A gap between lines that are wanted is
/// jumped over when it is as long as `gap`.
pub(crate) fn run_range(
    input: io::Result<Box<dyn Input>>,
    source: u32,
    range: Range<u64>,
    gap: u64,
    options: &Options,
    scratch: &mut Scratch,
    visitor: &mut dyn Visitor,
) {
    let opened = input.and_then(|mut input| {
        input.seek(SeekFrom::Start(range.start.saturating_sub(1)))?;
        Ok(input)
    });
    let input = match opened {
        Ok(input) => input,
        Err(error) => {
            let reason = BadReason::Io { detail: error.to_string() };
            let bytes = range.end.saturating_sub(range.start);
            return visitor.bad_record(Loss::record(range.start, bytes, reason).of(source));
        }
    };
    let mut parser = LineParser::new(source, options, &mut scratch.json, &mut scratch.extraction, visitor);
    let mut reader = LineReader::new(input, range.clone(), options.max_record(), &mut scratch.lines);
    // Lines are lent one at a time, and errors have no offset of their own: that of the last line
    // is near enough.
    let mut offset = range.start;
    loop {
        let skipped = match parser.visitor.next_wanted(reader.offset()) {
            Some(wanted) if wanted.start < range.end => reader.skip_to(wanted, gap),
            _ => break,
        };
        match skipped.and_then(|()| reader.next(&mut |bytes| parser.visitor.before_large(bytes))) {
            Ok(None) => break,
            Ok(Some(Line::Whole { offset: at, bytes })) => {
                offset = at;
                parser.line(at, bytes);
            }
            Ok(Some(Line::TooLong { offset: at, bytes })) => {
                offset = at;
                parser.bad(at, bytes, BadReason::TooLarge { limit: options.max_record_bytes });
            }
            Err(error) => {
                parser.bad(offset, range.end.saturating_sub(offset), BadReason::from_io(&error));
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
    let mut parser = LineParser::new(source, options, &mut scratch.json, &mut scratch.extraction, visitor);
    let too_large = || BadReason::TooLarge { limit: options.max_record_bytes };
    for &(offset, bytes) in &block.too_long {
        parser.bad(offset, bytes, too_large());
    }
    for (at, line) in lines(&block.bytes) {
        let offset = block.offset + at as u64;
        if line.len() > options.max_record() {
            parser.bad(offset, line.len() as u64, too_large());
        } else {
            parser.visitor.before_large(line.len() as u64);
            parser.line(offset, line);
        }
    }
    if let Some(loss) = &block.failure {
        parser.visitor.bad_record(loss.clone().of(source));
    }
}

struct LineParser<'a> {
    source: u32,
    options: &'a Options,
    paths: Vec<Path<'a>>,
    buffers: &'a mut JsonBuffers,
    extraction: &'a mut Extraction,
    visitor: &'a mut dyn Visitor,
}

impl<'a> LineParser<'a> {
    fn new(
        source: u32,
        options: &'a Options,
        buffers: &'a mut JsonBuffers,
        extraction: &'a mut Extraction,
        visitor: &'a mut dyn Visitor,
    ) -> LineParser<'a> {
        let Options { text_field, id_field, url_field, date_field, .. } = options;
        let paths = Path::all(&[text_field, id_field, url_field, date_field]);
        LineParser { source, options, paths, buffers, extraction, visitor }
    }

    fn bad(&mut self, offset: u64, bytes: u64, reason: BadReason) {
        self.visitor.bad_record(Loss::record(offset, bytes, reason).of(self.source));
    }

    fn line(&mut self, offset: u64, mut line: &[u8]) {
        if !self.visitor.wants(offset) {
            return;
        }
        let bytes = line.len() as u64;
        if offset == 0 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        // The four characters that JSON calls white space; a carriage return before the line feed
        // is one of them.
        if line.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r' | b'\n')) {
            return;
        }
        let Ok(line) = simdutf8::basic::from_utf8(line) else {
            return self.bad(offset, bytes, BadReason::InvalidUtf8);
        };
        let slots = match find_fields(line, &self.paths, self.buffers) {
            Ok(slots) => slots,
            Err(error) => {
                let reason = match error {
                    JsonError::NotAnObject => BadReason::NotAnObject,
                    JsonError::Broken { .. } => BadReason::BrokenJson { detail: error.to_string() },
                };
                return self.bad(offset, bytes, reason);
            }
        };
        let text = match slots[TEXT] {
            Slot::Borrowed(text) => text,
            Slot::Unpacked => &self.buffers.unpacked[TEXT],
            Slot::Null => return self.visitor.no_text((self.source, offset), &mut || None),
            Slot::Absent => {
                let place = (self.source, offset);
                return self.visitor.no_text(place, &mut || Some(keys(line, self.buffers)));
            }
            Slot::Number(_) | Slot::Other => return self.bad(offset, bytes, BadReason::TextNotAString),
        };
        let beside = |field: usize| match slots[field] {
            Slot::Borrowed(value) => Some(value),
            Slot::Unpacked => Some(&*self.buffers.unpacked[field]),
            // Numbers are names, but no addresses.
            Slot::Number(number) if field == ID => Some(number),
            _ => None,
        };
        let fetched_at = beside(DATE).and_then(fetch_date);
        let (id, url) = (beside(ID), beside(URL));
        let record = TextRecord { source: self.source, offset, id, url, fetched_at, text };
        record.emit(self.options, self.extraction, self.visitor);
    }
}

/// The names of the fields that a line has.
fn keys(line: &str, buffers: &mut JsonBuffers) -> String {
    let mut names = String::new();
    let _ = each_key(line, buffers, |key| {
        if names.len() < MOST_NAMES {
            names.push_str(if names.is_empty() { "" } else { ", " });
            names.extend(key.chars().take(MOST_CHARS));
        }
    });
    names
}

#[cfg(test)]
mod tests;
