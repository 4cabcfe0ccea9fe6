//! CSV cut into records, whose quoted fields may hold line ends.
//!
//! The naive reader believes every quote. One that nobody closed then takes all that follows into
//! its field, up to the next quote in another record, and the records between are gone without a
//! word. Here a quote is believed only if what follows it is CSV: after the closing quote the field
//! has to end, and the record has to end within its bound. Where that fails, only the line that the
//! record began in is broken, and reading goes on with the next one.
//!
//! Every byte of the stream is handed out, in order and once, so that a copy can be made of it.
//! What is handed out does not depend on how reads fall.

use std::io::{self, Read};
use std::ops::Range;

use memchr::{memchr, memchr2, memchr3};

/// More columns than this are a mistake.
pub(super) const MAX_COLUMNS: usize = 64 << 10;

const FIRST_BUFFER: usize = 256 << 10;

/// A piece of a CSV stream.
#[derive(Debug, PartialEq, Eq)]
pub enum CsvItem<'a> {
    /// A record with its line end; [`CsvRecords::unpack`] gives its fields.
    Record {
        /// Where it begins in the decoded stream.
        offset: u64,
        /// All of it.
        bytes: &'a [u8],
    },
    /// A line that is no record, with its line end.
    Broken {
        /// Where it begins in the decoded stream.
        offset: u64,
        /// All of it.
        bytes: &'a [u8],
        /// What is wrong with it.
        problem: CsvProblem,
    },
    /// A part of a line that is longer than a record may be.
    TooLong {
        /// Where the line begins in the decoded stream.
        offset: u64,
        /// The part.
        bytes: &'a [u8],
        /// Whether the line ends with it.
        ends: bool,
    },
    /// Bytes that belong to no record: a byte order mark, empty lines, the rest of a stream that
    /// broke.
    Between(&'a [u8]),
}

/// Why a line of CSV is no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CsvProblem {
    /// The closing quote is not at the end of its field.
    #[error("text after a closing quote")]
    TextAfterQuote,
    /// A quote was opened and not closed before the end of the file.
    #[error("a quote is not closed")]
    OpenQuote,
    /// A quote was opened and not closed within the size a record may have.
    #[error("a quote is not closed within {limit} bytes")]
    EndlessQuote {
        /// The size.
        limit: u64,
    },
    /// More columns than anybody needs.
    #[error("more than {MAX_COLUMNS} columns")]
    TooManyColumns,
}

/// A field of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    /// Its bytes in the record, without quotes around them.
    bytes: Range<usize>,
    /// There are doubled quotes in it.
    has_quotes: bool,
}

/// Cuts a stream of CSV into records.
pub struct CsvRecords<R> {
    input: R,
    delimiter: u8,
    max_record: usize,
    buffer: Vec<u8>,
    filled: Range<usize>,
    /// How much of `filled` the last item was.
    taken: usize,
    /// Offset in the stream of `filled.start`.
    offset: u64,
    at_end: bool,
    is_begun: bool,
    /// Where the line begins whose rest is passed over.
    too_long: Option<u64>,
    fields: Vec<Field>,
    failure: Option<io::Error>,
}

/// What looking for the end of a record found.
enum Scan {
    /// The record, with its line end, takes so many bytes; without it so many.
    Record {
        len: usize,
        content: usize,
    },
    Broken(CsvProblem),
    /// It does not end in these bytes.
    More,
}

/// What the bytes that are there turned out to be; as [`CsvItem`], in lengths.
#[derive(Clone, Copy)]
enum Piece {
    Record(usize),
    Broken(usize, CsvProblem),
    TooLong { begin: u64, len: usize, ends: bool },
    Between(usize),
}

impl<R: Read> CsvRecords<R> {
    /// A record of more bytes than `max_record` is none.
    pub fn new(input: R, delimiter: u8, max_record: u64) -> CsvRecords<R> {
        CsvRecords {
            input,
            delimiter,
            max_record: usize::try_from(max_record).unwrap_or(usize::MAX).clamp(1, usize::MAX >> 2),
            buffer: Vec::new(),
            filled: 0..0,
            taken: 0,
            offset: 0,
            at_end: false,
            is_begun: false,
            too_long: None,
            fields: Vec::new(),
            failure: None,
        }
    }

    /// Where the next item begins.
    pub fn offset(&self) -> u64 {
        self.offset + self.taken as u64
    }

    /// What broke the stream, once everything before it has been handed out.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// How many fields the last record has.
    pub fn columns(&self) -> usize {
        self.fields.len()
    }

    /// Appends a field of the record that was handed out last.
    pub fn unpack(&self, column: usize, out: &mut Vec<u8>) {
        let Some(Field { bytes, has_quotes }) = self.fields.get(column) else { return };
        let mut rest = &self.buffer[self.filled.start + bytes.start..self.filled.start + bytes.end];
        // Of two quotes one stands for both.
        while let Some(at) = memchr(b'"', rest).filter(|_| *has_quotes) {
            out.extend_from_slice(&rest[..=at]);
            rest = rest.get(at + 2..).unwrap_or_default();
        }
        out.extend_from_slice(rest);
    }

    /// The next piece of the stream; `None` at its end.
    pub fn next_item(&mut self) -> Option<CsvItem<'_>> {
        self.next_gently(&mut |_| {})
    }

    /// The same; `before_large` is called with what the buffer grows to, before it does.
    pub fn next_gently(&mut self, before_large: &mut dyn FnMut(u64)) -> Option<CsvItem<'_>> {
        self.filled.start += self.taken;
        self.offset += self.taken as u64;
        self.taken = 0;
        let offset = self.offset;
        let piece = self.find(before_large)?;
        self.taken = match piece {
            Piece::Record(len) | Piece::Broken(len, _) | Piece::TooLong { len, .. } | Piece::Between(len) => {
                len
            }
        };
        let bytes = &self.buffer[self.filled.start..self.filled.start + self.taken];
        Some(match piece {
            Piece::Record(_) => CsvItem::Record { offset, bytes },
            Piece::Broken(_, problem) => CsvItem::Broken { offset, bytes, problem },
            Piece::TooLong { begin, ends, .. } => CsvItem::TooLong { offset: begin, bytes, ends },
            Piece::Between(_) => CsvItem::Between(bytes),
        })
    }

    fn find(&mut self, before_large: &mut dyn FnMut(u64)) -> Option<Piece> {
        if !std::mem::replace(&mut self.is_begun, true) {
            while self.filled.len() < 3 && self.refill(before_large) {}
            if self.pending().starts_with(b"\xef\xbb\xbf") {
                return Some(Piece::Between(3));
            }
        }
        if self.filled.is_empty() && !self.refill(before_large) {
            // A line that was too long and ended with the stream has said so.
            return None;
        }
        if let Some(begin) = self.too_long {
            return Some(self.rest_of_line(begin, before_large));
        }
        let line_ends = self.pending().iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        if line_ends > 0 {
            return Some(Piece::Between(line_ends));
        }
        loop {
            // With two bytes more than the content of the longest record, its line end is seen.
            let seen = self.filled.len().min(self.max_record + 2);
            let bytes = &self.buffer[self.filled.start..self.filled.start + seen];
            let is_all = self.at_end && seen == self.filled.len();
            let found = scan(bytes, is_all, self.delimiter, &mut self.fields);
            if is_all && self.failure.is_some() && !ends_with_line(&found, bytes) {
                // The stream broke inside this record.
                return Some(Piece::Between(seen));
            }
            let problem = match found {
                Scan::Record { len, content } if content <= self.max_record => {
                    return Some(Piece::Record(len));
                }
                Scan::More if !is_all && seen < self.max_record + 2 => {
                    self.refill(before_large);
                    continue;
                }
                Scan::More | Scan::Record { .. } => {
                    CsvProblem::EndlessQuote { limit: self.max_record as u64 }
                }
                Scan::Broken(problem) => problem,
            };
            // The line that the record began in is what is broken.
            match line_len(bytes, is_all) {
                Some((len, content)) if content <= self.max_record => {
                    return Some(Piece::Broken(len, problem));
                }
                Some(_) => {
                    self.too_long = Some(self.offset);
                    return Some(self.rest_of_line(self.offset, before_large));
                }
                None if is_all || seen == self.max_record + 2 => {
                    self.too_long = Some(self.offset);
                    return Some(self.rest_of_line(self.offset, before_large));
                }
                None => {
                    self.refill(before_large);
                }
            }
        }
    }

    fn pending(&self) -> &[u8] {
        &self.buffer[self.filled.clone()]
    }

    /// The rest of a line that began long ago, as far as it is there.
    fn rest_of_line(&mut self, begin: u64, before_large: &mut dyn FnMut(u64)) -> Piece {
        let pending = &self.buffer[self.filled.clone()];
        let end = memchr2(b'\n', b'\r', pending).map(|at| at + 1);
        let len = end.unwrap_or(pending.len());
        // Whether this was the last of it is only known when there is no more.
        let ends = end.is_some() || (self.filled.len() == len && !self.more_after(len, before_large));
        if ends {
            self.too_long = None;
        }
        Piece::TooLong { begin, len, ends }
    }

    /// Whether the stream has more than these bytes, which stay.
    fn more_after(&mut self, len: usize, before_large: &mut dyn FnMut(u64)) -> bool {
        while self.filled.len() <= len && self.refill(before_large) {}
        self.filled.len() > len
    }

    /// Fills the buffer, which grows when it is full. False at the end of the stream.
    fn refill(&mut self, before_large: &mut dyn FnMut(u64)) -> bool {
        if self.at_end {
            return false;
        }
        self.buffer.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        if self.filled.end == self.buffer.len() {
            let wanted = self.buffer.len().saturating_mul(2).max(FIRST_BUFFER);
            before_large(wanted as u64);
            self.buffer.resize(wanted, 0);
        } else if self.buffer.len() > 32 * FIRST_BUFFER && self.filled.len() < FIRST_BUFFER {
            // One giant record should not be paid for until the end.
            self.buffer.truncate(4 * FIRST_BUFFER);
            self.buffer.shrink_to_fit();
        }
        let before = self.filled.end;
        // All there is room for: a record is looked at from its beginning every time.
        while self.filled.end < self.buffer.len() && !self.at_end {
            match self.input.read(&mut self.buffer[self.filled.end..]) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.filled.end += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.at_end = true;
                    self.failure = Some(error);
                }
            }
        }
        self.filled.end > before
    }
}

/// Whether a record is there with its line end, so that a stream that breaks behind it took
/// nothing of it.
fn ends_with_line(found: &Scan, bytes: &[u8]) -> bool {
    match found {
        Scan::Record { len, content } => len > content,
        Scan::Broken(_) => memchr2(b'\n', b'\r', bytes).is_some(),
        Scan::More => false,
    }
}

/// The length of the first line, with its line end and without; `None` when that is not there.
fn line_len(bytes: &[u8], is_all: bool) -> Option<(usize, usize)> {
    match memchr2(b'\n', b'\r', bytes) {
        Some(at) => match (bytes[at], bytes.get(at + 1)) {
            (b'\r', Some(b'\n')) => Some((at + 2, at)),
            (b'\r', None) if !is_all => None,
            _ => Some((at + 1, at)),
        },
        None => is_all.then_some((bytes.len(), bytes.len())),
    }
}

/// Finds the end of the record at the front of `bytes`, and its fields.
fn scan(bytes: &[u8], is_all: bool, delimiter: u8, fields: &mut Vec<Field>) -> Scan {
    fields.clear();
    let mut at = 0;
    loop {
        if fields.len() >= MAX_COLUMNS {
            return Scan::Broken(CsvProblem::TooManyColumns);
        }
        if bytes.get(at) == Some(&b'"') {
            let Some((end, has_quotes)) = closing_quote(bytes, at + 1) else {
                return if is_all { Scan::Broken(CsvProblem::OpenQuote) } else { Scan::More };
            };
            fields.push(Field { bytes: at + 1..end, has_quotes });
            // Spaces before the end of the field hurt nobody.
            at = end + 1;
            at += bytes[at..].iter().take_while(|byte| **byte == b' ').count();
        } else {
            let Some(length) = memchr3(delimiter, b'\n', b'\r', &bytes[at..]) else {
                fields.push(Field { bytes: at..bytes.len(), has_quotes: false });
                return if is_all { whole(bytes) } else { Scan::More };
            };
            fields.push(Field { bytes: at..at + length, has_quotes: false });
            at += length;
        }
        match bytes.get(at) {
            Some(&byte) if byte == delimiter => at += 1,
            Some(b'\n') => return Scan::Record { len: at + 1, content: at },
            Some(b'\r') => match bytes.get(at + 1) {
                Some(b'\n') => return Scan::Record { len: at + 2, content: at },
                None if !is_all => return Scan::More,
                _ => return Scan::Record { len: at + 1, content: at },
            },
            Some(_) => return Scan::Broken(CsvProblem::TextAfterQuote),
            None if is_all => return whole(bytes),
            None => return Scan::More,
        }
    }
}

/// The last record, without a line end.
fn whole(bytes: &[u8]) -> Scan {
    Scan::Record { len: bytes.len(), content: bytes.len() }
}

/// Where the quote is that closes a field, and whether there are doubled ones before it. At the end
/// of the bytes a quote closes: what comes after it says whether it does.
fn closing_quote(bytes: &[u8], mut at: usize) -> Option<(usize, bool)> {
    let mut has_quotes = false;
    loop {
        at += memchr(b'"', bytes.get(at..)?)?;
        if bytes.get(at + 1) != Some(&b'"') {
            return Some((at, has_quotes));
        }
        has_quotes = true;
        at += 2;
    }
}
