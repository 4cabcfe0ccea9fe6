//! CSV and TSV: a header row that names the columns, then records, whose quoted fields may hold
//! line feeds.
//!
//! Where a record ends can only be known from everything before it, so the input is taken apart in
//! order. That is done once: the sequential part unpacks the three wanted fields into blocks, and
//! workers make documents of those. A record over the limit, such as the rest of a file after a
//! quote that nobody closed, is parsed to its end without being kept.

use std::io::Read;
use std::ops::Range;

use csv_core::ReadRecordResult;

use crate::document::{BadReason, BadRecord, Visitor};
use crate::options::Options;
use crate::record::TextRecord;
use crate::task::Scratch;

/// No block has more records than this, however short they are.
const MAX_ROWS: usize = 16 << 10;

/// More columns than this are a mistake.
const MAX_COLUMNS: usize = 64 << 10;

const READ_BYTES: usize = 128 << 10;

/// Unpacked fields of some records.
#[derive(Debug, Default)]
pub(crate) struct CsvBlock {
    data: Vec<u8>,
    rows: Vec<Row>,
    failure: Option<(u64, BadReason)>,
    pub(crate) last: bool,
}

impl CsvBlock {
    pub(crate) fn input_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// Keeps the record that begins at an offset. `false` when none does.
    pub(crate) fn keep_row(&mut self, offset: u64) -> bool {
        self.rows.retain(|row| row.offset == offset);
        self.failure = self.failure.take().filter(|(at, _)| *at == offset);
        !self.rows.is_empty() || self.failure.is_some()
    }
}

#[derive(Debug)]
struct Row {
    offset: u64,
    /// Where in the data the text, the id and the url are.
    fields: Result<[Option<Range<usize>>; 3], BadReason>,
}

/// Cuts a stream of CSV into blocks.
pub(crate) struct CsvBlocks<R> {
    input: R,
    parser: csv_core::Reader,
    buffer: Vec<u8>,
    filled: Range<usize>,
    /// Offset in the stream of `filled.start`.
    offset: u64,
    at_end: bool,
    failure: Option<BadReason>,
    max_record: usize,
    /// The unpacked fields of one record, and where each ends.
    unpacked: Vec<u8>,
    ends: Vec<usize>,
    header_columns: usize,
    columns: [Option<usize>; 3],
}

/// What was read of one record.
enum Parsed {
    Record { offset: u64, columns: usize },
    TooLarge { offset: u64 },
    TooManyColumns { offset: u64 },
    End,
}

impl<R: Read> CsvBlocks<R> {
    /// Reads the header row.
    pub(crate) fn new(input: R, delimiter: u8, options: &Options) -> Result<CsvBlocks<R>, BadReason> {
        let mut blocks = CsvBlocks {
            input,
            parser: csv_core::ReaderBuilder::new().delimiter(delimiter).build(),
            buffer: vec![0; READ_BYTES],
            filled: 0..0,
            offset: 0,
            at_end: false,
            failure: None,
            max_record: options.max_record(),
            unpacked: vec![0; 4096],
            ends: vec![0; 64],
            header_columns: 0,
            columns: [None; 3],
        };
        blocks.skip_byte_order_mark();
        match blocks.parse_record(&mut |_| {}) {
            Parsed::End => match blocks.failure.take() {
                Some(reason) => Err(reason),
                None => Ok(blocks),
            },
            Parsed::TooLarge { .. } => Err(BadReason::TooLarge { limit: options.max_record_bytes }),
            Parsed::TooManyColumns { .. } => Err(too_many_columns()),
            Parsed::Record { columns, .. } => {
                blocks.header_columns = columns;
                let names: Vec<String> = (0..columns)
                    .map(|column| {
                        String::from_utf8_lossy(&blocks.unpacked[blocks.field(column)]).trim().to_owned()
                    })
                    .collect();
                let wanted = [&options.text_field, &options.id_field, &options.url_field];
                blocks.columns = wanted.map(|wanted| names.iter().position(|name| name == wanted));
                if blocks.columns[0].is_none() {
                    return Err(BadReason::MissingColumn {
                        column: options.text_field.clone(),
                        known: names.join(", "),
                    });
                }
                Ok(blocks)
            }
        }
    }

    /// `before_large` is called with the size of a record, as it grows.
    pub(crate) fn next_block(
        &mut self,
        block_bytes: u64,
        before_large: &mut dyn FnMut(u64),
    ) -> Option<CsvBlock> {
        let mut block = CsvBlock::default();
        loop {
            let (offset, fields) = match self.parse_record(before_large) {
                Parsed::End => break,
                Parsed::TooLarge { offset } => {
                    (offset, Err(BadReason::TooLarge { limit: self.max_record as u64 }))
                }
                Parsed::TooManyColumns { offset } => (offset, Err(too_many_columns())),
                Parsed::Record { offset, columns } if columns != self.header_columns => {
                    let detail = format!("{columns} fields under {} columns", self.header_columns);
                    (offset, Err(BadReason::BrokenCsv { detail }))
                }
                Parsed::Record { offset, .. } => {
                    let fields = self.columns.map(|column| {
                        let start = block.data.len();
                        block.data.extend_from_slice(&self.unpacked[self.field(column?)]);
                        Some(start..block.data.len())
                    });
                    (offset, Ok(fields))
                }
            };
            block.rows.push(Row { offset, fields });
            if block.data.len() as u64 >= block_bytes || block.rows.len() >= MAX_ROWS {
                break;
            }
        }
        block.last = !self.has_more();
        if block.last {
            block.failure = self.failure.take().map(|reason| (self.offset, reason));
        }
        (!block.rows.is_empty() || block.failure.is_some()).then_some(block)
    }

    fn field(&self, column: usize) -> Range<usize> {
        let start = if column == 0 { 0 } else { self.ends[column - 1] };
        start..self.ends[column]
    }

    fn skip_byte_order_mark(&mut self) {
        while self.filled.len() < 3 && !self.at_end {
            self.refill();
        }
        if self.buffer[self.filled.clone()].starts_with(b"\xef\xbb\xbf") {
            self.consume(3);
        }
    }

    fn consume(&mut self, n: usize) {
        self.filled.start += n;
        self.offset += n as u64;
    }

    fn refill(&mut self) {
        self.buffer.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        loop {
            match self.input.read(&mut self.buffer[self.filled.end..]) {
                Ok(0) => self.at_end = true,
                Ok(n) => self.filled.end += n,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.at_end = true;
                    self.failure = Some(BadReason::from_io(&error));
                }
            }
            return;
        }
    }

    /// Passes over empty lines, so that the offset is that of a record. `false` at the end.
    fn has_more(&mut self) -> bool {
        loop {
            let rest = &self.buffer[self.filled.clone()];
            let line_ends = rest.iter().take_while(|&&b| b == b'\r' || b == b'\n').count();
            let found = line_ends < rest.len();
            self.consume(line_ends);
            if found || self.at_end {
                return found;
            }
            self.refill();
        }
    }

    fn parse_record(&mut self, before_large: &mut dyn FnMut(u64)) -> Parsed {
        if !self.has_more() {
            return Parsed::End;
        }
        let offset = self.offset;
        let (mut written, mut columns) = (0, 0);
        let (mut too_large, mut too_many) = (false, false);
        loop {
            if self.filled.is_empty() && !self.at_end {
                self.refill();
            }
            // The parser takes an empty input for the end.
            let (result, read, wrote, ended) = self.parser.read_record(
                &self.buffer[self.filled.clone()],
                &mut self.unpacked[written..],
                &mut self.ends[columns..],
            );
            self.consume(read);
            written += wrote;
            columns += ended;
            if self.offset - offset > self.max_record as u64 {
                too_large = true;
            }
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if too_large || too_many => written = 0,
                ReadRecordResult::OutputFull => {
                    // Never more than the record's own size, which is within the limit here.
                    before_large(2 * self.unpacked.len() as u64);
                    self.unpacked.resize(self.unpacked.len() * 2, 0);
                }
                ReadRecordResult::OutputEndsFull if self.ends.len() >= MAX_COLUMNS => {
                    too_many = true;
                    columns = 0;
                }
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::Record => break,
                ReadRecordResult::End => return Parsed::End,
            }
        }
        if self.failure.is_some() && self.at_end && self.filled.is_empty() {
            // The stream broke inside this record.
            self.offset = offset;
            return Parsed::End;
        }
        if self.unpacked.len() > 8 << 20 && written < 1 << 20 {
            self.unpacked = vec![0; 1 << 20];
        }
        if too_large {
            Parsed::TooLarge { offset }
        } else if too_many {
            Parsed::TooManyColumns { offset }
        } else {
            Parsed::Record { offset, columns }
        }
    }
}

fn too_many_columns() -> BadReason {
    BadReason::BrokenCsv { detail: format!("more than {MAX_COLUMNS} columns") }
}

/// Makes documents of a block.
pub(crate) fn run_block(
    block: &CsvBlock,
    source: u32,
    options: &Options,
    scratch: &mut Scratch,
    visitor: &mut dyn Visitor,
) {
    for Row { offset, fields } in &block.rows {
        let offset = *offset;
        if !visitor.wants(offset) {
            continue;
        }
        let bad = |reason| BadRecord { source, offset, reason };
        let fields = match fields {
            Ok(fields) => fields,
            Err(reason) => {
                visitor.bad_record(bad(reason.clone()));
                continue;
            }
        };
        let field =
            |at: usize| fields[at].clone().map(|range| simdutf8::basic::from_utf8(&block.data[range]));
        let Some(Ok(text)) = field(0) else {
            visitor.bad_record(bad(BadReason::InvalidUtf8));
            continue;
        };
        visitor.before_large(text.len() as u64);
        let beside = |at: usize| field(at).and_then(Result::ok).filter(|value| !value.is_empty());
        let record = TextRecord { source, offset, id: beside(1), url: beside(2), text };
        record.emit(options, &mut scratch.extraction, visitor);
    }
    if let Some((offset, reason)) = &block.failure {
        visitor.bad_record(BadRecord { source, offset: *offset, reason: reason.clone() });
    }
}

#[cfg(test)]
mod tests;
