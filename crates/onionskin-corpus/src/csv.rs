//! CSV and TSV: a header row that names the columns, then records, whose quoted fields may hold
//! line feeds.
//!
//! Where a record ends can only be known from everything before it, so the input is taken apart in
//! order. That is done once: the sequential part unpacks the wanted fields into blocks, and
//! workers make documents of those.

mod records;

pub use records::{CsvItem, CsvProblem, CsvRecords};

use std::io::Read;
use std::ops::Range;

use crate::document::{BadReason, Loss, Visitor};
use crate::fields::FieldNames;
use crate::options::Options;
use crate::record::{TextRecord, fetch_date};
use crate::task::Scratch;

/// No block has more records than this, however short they are.
const MAX_ROWS: usize = 16 << 10;

/// Unpacked fields of some records.
#[derive(Debug, Default)]
pub(crate) struct CsvBlock {
    data: Vec<u8>,
    rows: Vec<Row>,
    pub(crate) failure: Option<Loss>,
    pub(crate) last: bool,
}

impl CsvBlock {
    pub(crate) fn input_bytes(&self) -> u64 {
        self.data.len() as u64
    }

    /// Keeps the record that begins at an offset. `false` when none does.
    pub(crate) fn keep_row(&mut self, offset: u64) -> bool {
        self.rows.retain(|row| row.offset == offset);
        self.failure = self.failure.take().filter(|loss| loss.offset == offset);
        !self.rows.is_empty() || self.failure.is_some()
    }
}

#[derive(Debug)]
struct Row {
    offset: u64,
    /// How many bytes of the stream it takes.
    bytes: u64,
    /// Where in the data the text, the id, the URL and the date are.
    fields: Result<[Option<Range<usize>>; 4], BadReason>,
}

/// Cuts a stream of CSV into blocks.
pub(crate) struct CsvBlocks<R> {
    records: CsvRecords<R>,
    max_record_bytes: u64,
    header_columns: usize,
    columns: [Option<usize>; 4],
    /// One read ahead, so that the last block is known to be the last. Its fields are unpacked.
    ahead: Option<(Row, Vec<u8>)>,
    is_begun: bool,
}

impl<R: Read> CsvBlocks<R> {
    /// Reads the header row.
    pub(crate) fn new(input: R, delimiter: u8, options: &Options) -> Result<CsvBlocks<R>, BadReason> {
        let mut blocks = CsvBlocks {
            records: CsvRecords::new(input, delimiter, options.max_record_bytes),
            max_record_bytes: options.max_record_bytes,
            header_columns: 0,
            columns: [None; 4],
            ahead: None,
            is_begun: false,
        };
        let names = loop {
            match blocks.records.next_item() {
                None => {
                    return match blocks.records.take_failure() {
                        Some(error) => Err(BadReason::from_io(&error)),
                        None => Ok(blocks),
                    };
                }
                Some(CsvItem::Between(_)) => {}
                Some(CsvItem::TooLong { .. }) => {
                    return Err(BadReason::TooLarge { limit: options.max_record_bytes });
                }
                Some(CsvItem::Broken { problem, .. }) => return Err(broken(problem)),
                Some(CsvItem::Record { .. }) => break blocks.names(),
            }
        };
        blocks.header_columns = names.len();
        let Options { text_field, id_field, url_field, date_field, .. } = options;
        blocks.columns = [text_field, id_field, url_field, date_field].map(|wanted: &FieldNames| {
            wanted.iter().find_map(|wanted| names.iter().position(|name| name == wanted))
        });
        if blocks.columns[0].is_none() {
            return Err(BadReason::MissingColumn {
                column: options.text_field.spoken(),
                known: names.join(", "),
            });
        }
        Ok(blocks)
    }

    fn names(&self) -> Vec<String> {
        let mut name = Vec::new();
        (0..self.records.columns())
            .map(|column| {
                name.clear();
                self.records.unpack(column, &mut name);
                String::from_utf8_lossy(&name).trim().to_owned()
            })
            .collect()
    }

    /// `before_large` is called with the size of a record, as it grows.
    pub(crate) fn next_block(
        &mut self,
        block_bytes: u64,
        before_large: &mut dyn FnMut(u64),
    ) -> Option<CsvBlock> {
        let mut block = CsvBlock::default();
        if !std::mem::replace(&mut self.is_begun, true) {
            self.read_ahead(Vec::new(), before_large);
        }
        while let Some((mut row, data)) = self.ahead.take() {
            let start = block.data.len();
            if let Ok(fields) = &mut row.fields {
                for field in fields.iter_mut().flatten() {
                    *field = field.start + start..field.end + start;
                }
            }
            block.data.extend_from_slice(&data);
            block.rows.push(row);
            self.read_ahead(data, before_large);
            if block.data.len() as u64 >= block_bytes || block.rows.len() >= MAX_ROWS {
                break;
            }
        }
        block.last = self.ahead.is_none();
        if block.last {
            let failure = self.records.take_failure();
            let failure =
                failure.map(|error| Loss::record(self.records.offset(), 0, BadReason::from_io(&error)));
            block.failure = failure;
        }
        (!block.rows.is_empty() || block.failure.is_some()).then_some(block)
    }

    /// Takes the next record, or line that is none, and unpacks its fields.
    fn read_ahead(&mut self, mut data: Vec<u8>, before_large: &mut dyn FnMut(u64)) {
        data.clear();
        let mut too_long = 0;
        let (row, is_record) = loop {
            match self.records.next_gently(before_large) {
                None => return,
                Some(CsvItem::Between(_)) => {}
                Some(CsvItem::TooLong { offset, bytes, ends }) => {
                    too_long += bytes.len() as u64;
                    if ends {
                        let reason = BadReason::TooLarge { limit: self.max_record_bytes };
                        break (Row { offset, bytes: too_long, fields: Err(reason) }, false);
                    }
                }
                Some(CsvItem::Broken { offset, bytes, problem }) => {
                    let bytes = bytes.len() as u64;
                    break (Row { offset, bytes, fields: Err(broken(problem)) }, false);
                }
                Some(CsvItem::Record { offset, bytes }) => {
                    break (Row { offset, bytes: bytes.len() as u64, fields: Ok([const { None }; 4]) }, true);
                }
            }
        };
        let mut row = row;
        if is_record {
            row.fields = self.fields(&mut data);
        }
        self.ahead = Some((row, data));
    }

    fn fields(&self, data: &mut Vec<u8>) -> Result<[Option<Range<usize>>; 4], BadReason> {
        let columns = self.records.columns();
        if columns != self.header_columns {
            let detail = format!("{columns} fields under {} columns", self.header_columns);
            return Err(BadReason::BrokenCsv { detail });
        }
        Ok(self.columns.map(|column| {
            let start = data.len();
            self.records.unpack(column?, data);
            Some(start..data.len())
        }))
    }
}

fn broken(problem: CsvProblem) -> BadReason {
    BadReason::BrokenCsv { detail: problem.to_string() }
}

/// Makes documents of a block.
pub(crate) fn run_block(
    block: &CsvBlock,
    source: u32,
    options: &Options,
    scratch: &mut Scratch,
    visitor: &mut dyn Visitor,
) {
    for Row { offset, bytes, fields } in &block.rows {
        let offset = *offset;
        if !visitor.wants(offset) {
            continue;
        }
        let bad = |reason| Loss::record(offset, *bytes, reason).of(source);
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
        let (id, url, fetched_at) = (beside(1), beside(2), beside(3).and_then(fetch_date));
        let record = TextRecord { source, offset, id, url, fetched_at, text };
        record.emit(options, &mut scratch.extraction, visitor);
    }
    if let Some(loss) = &block.failure {
        visitor.bad_record(loss.clone().of(source));
    }
}

#[cfg(test)]
mod tests;
