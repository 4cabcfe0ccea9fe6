//! Parquet: the wanted columns of each row group, and nothing else.
//!
//! A row group of ordinary size is a task: the worker opens the file and reads its columns. One of
//! gigabytes, as some writers make of a whole file, would be a task of gigabytes; it is decoded in
//! order instead, and handed out in batches of rows. Which of the two is decided by the file's own
//! metadata.
//!
//! The library that decodes was written for files that are well; on damaged ones it may panic, so
//! every call into it is fenced, and a panic is a damaged file.

mod meter;
mod texts;

pub use texts::{ParquetText, ParquetTexts};

use std::fmt;
use std::io::{self, BufRead, Read, SeekFrom};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use ::parquet::basic::Type as PhysicalType;
use ::parquet::column::page::{Page, PageReader};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::metadata::ColumnChunkMetaData;
use ::parquet::file::reader::{ChunkReader, Length};
use ::parquet::file::serialized_reader::SerializedPageReader;
use ::parquet::schema::types::SchemaDescriptor;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, LargeStringArray, RecordBatch, StructArray};
use arrow_schema::{DataType, TimeUnit};
use bytes::Bytes;

use self::meter::{Meter, Refused};

use crate::document::{BadReason, Loss, Visitor};
use crate::fields::FieldNames;
use crate::options::Options;
use crate::record::{Extraction, TextRecord, fetch_date};
use crate::source::{Input, Source};
use crate::watch::Watch;

/// Row groups whose wanted columns are larger than this many tasks are handed out in batches.
const LARGE_GROUP_TASKS: u64 = 8;

/// What a batch of rows should about come to.
const BATCH_BYTES: u64 = 1 << 20;

/// What a batch of rows comes to at most, were all of its values the longest of a dictionary.
const MOST_BATCH_BYTES: u64 = 8 << 20;

/// Metadata may take this part of what a page may take: it grows when it is decoded.
const METADATA_SHARE: u64 = 8;

/// What is known of a file before its rows are read.
pub(crate) struct ParquetFile {
    chunks: Chunks,
    metadata: ArrowReaderMetadata,
    columns: Columns,
}

/// The wanted columns, by their path.
#[derive(Clone, Debug)]
struct Columns {
    /// Leaf numbers, for the projection.
    leaves: Vec<usize>,
    text: Vec<String>,
    id: Option<Vec<String>>,
    url: Option<Vec<String>>,
    date: Option<Vec<String>>,
}

/// One unit of a file.
pub(crate) struct RowGroup {
    pub(crate) group: usize,
    /// Number of its first row in the file.
    pub(crate) first_row: u64,
    /// How many rows it has, says the footer.
    pub(crate) rows: u64,
    /// Stored size of its wanted columns.
    pub(crate) input_bytes: u64,
    /// To be handed out in batches.
    pub(crate) large: bool,
}

impl RowGroup {
    /// What is lost when the group cannot be read from a row on.
    pub(crate) fn loss(&self, row: u64, reason: BadReason) -> Loss {
        let rows = self.rows.saturating_sub(row.saturating_sub(self.first_row));
        let share = u128::from(self.input_bytes) * u128::from(rows) / u128::from(self.rows.max(1));
        let bytes = u64::try_from(share).unwrap_or(self.input_bytes);
        Loss::record(row, bytes, reason).records(rows)
    }
}

/// A source of which nothing can be read, and how many records that are.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) reason: BadReason,
    pub(crate) records: u64,
}

impl From<BadReason> for Unusable {
    fn from(reason: BadReason) -> Unusable {
        Unusable { reason, records: 1 }
    }
}

impl ParquetFile {
    pub(crate) fn open(source: &Source, options: &Options, watch: &Watch) -> Result<ParquetFile, Unusable> {
        let input = source.open(watch).map_err(|error| BadReason::Io { detail: error.to_string() })?;
        ParquetFile::of(Chunks::new(input, source.bytes, options), options)
    }

    fn of(chunks: Chunks, options: &Options) -> Result<ParquetFile, Unusable> {
        chunks.meter().limit = options.max_page_bytes / METADATA_SHARE;
        let metadata = fenced(|| ArrowReaderMetadata::load(&chunks, ArrowReaderOptions::new()))?;
        let columns = Columns::find(metadata.parquet_schema(), options).map_err(|reason| {
            let rows = metadata.metadata().file_metadata().num_rows();
            Unusable { reason, records: u64::try_from(rows).unwrap_or(0) }
        })?;
        Ok(ParquetFile { chunks, metadata, columns })
    }

    /// The row groups, in order.
    pub(crate) fn row_groups(&self, options: &Options) -> Vec<RowGroup> {
        let large = options.task_step().saturating_mul(LARGE_GROUP_TASKS);
        let mut first_row = 0_u64;
        let groups = self.metadata.metadata().row_groups().iter().enumerate();
        groups
            .map(|(group, meta)| {
                let columns = self.columns.leaves.iter().filter_map(|&leaf| meta.columns().get(leaf));
                let size = |bytes: i64| u64::try_from(bytes).unwrap_or(0);
                let (stored, unpacked) = columns.fold((0_u64, 0_u64), |(stored, unpacked), column| {
                    (
                        stored.saturating_add(size(column.compressed_size())),
                        unpacked.saturating_add(size(column.uncompressed_size())),
                    )
                });
                let rows = size(meta.num_rows());
                let large = unpacked > large;
                let row_group = RowGroup { group, first_row, rows, input_bytes: stored, large };
                first_row = first_row.saturating_add(rows);
                row_group
            })
            .collect()
    }

    /// One row; `None` when there are not so many.
    pub(crate) fn row(&self, row: u64, options: &Options) -> Result<Option<Rows>, BadReason> {
        let groups = self.row_groups(options);
        let Some(group) = groups.iter().rev().find(|group| group.first_row <= row) else { return Ok(None) };
        let Ok(before) = usize::try_from(row - group.first_row) else { return Ok(None) };
        let mut batches = self.batches(group.group, group.first_row, options);
        batches.rows = 1;
        batches.next_row = row;
        batches.skip = before;
        batches.next(&mut |_| {}).transpose()
    }

    /// A reader of one row group.
    pub(crate) fn batches(&self, group: usize, first_row: u64, options: &Options) -> Batches {
        let meta = self.metadata.metadata().row_group(group);
        let rows = u64::try_from(meta.num_rows()).unwrap_or(0).max(1);
        let row_bytes = (u64::try_from(meta.total_byte_size()).unwrap_or(0) / rows).max(1);
        let batch_rows = usize::try_from((BATCH_BYTES / row_bytes).clamp(1, 8192)).unwrap_or(1);
        let chunks = self.chunks.with_meter(options.small_page_bytes.min(options.max_page_bytes));
        Batches {
            metadata: self.metadata.clone(),
            chunks,
            group,
            columns: self.columns.clone(),
            reader: None,
            rows: batch_rows,
            skip: 0,
            next_row: first_row,
            max_page_bytes: options.max_page_bytes,
        }
    }
}

/// The rows of a row group, some at a time.
pub(crate) struct Batches {
    metadata: ArrowReaderMetadata,
    chunks: Chunks,
    group: usize,
    columns: Columns,
    /// None before the first rows, and when it has to be made again for smaller batches.
    reader: Option<ParquetRecordBatchReader>,
    /// Rows of a batch.
    rows: usize,
    /// Rows of the group before the next.
    skip: usize,
    next_row: u64,
    max_page_bytes: u64,
}

/// Some rows.
#[derive(Clone)]
pub(crate) struct Rows {
    /// The row that the columns begin with.
    first_row: u64,
    /// Which of them.
    range: Range<usize>,
    text: Column,
    id: Option<Column>,
    url: Option<Column>,
    date: Option<Dates>,
}

impl Rows {
    pub(crate) fn text_bytes(&self) -> u64 {
        self.range.clone().map(|row| self.text.stored_bytes(row)).sum()
    }

    pub(crate) fn len(&self) -> usize {
        self.range.len()
    }

    /// Keeps the rows up to the one whose text fills so many bytes, at most `count`; at least one.
    /// The others are given back.
    pub(crate) fn split_off(&mut self, bytes: u64, count: usize) -> Option<Rows> {
        let mut filled = 0;
        let mut end = self.range.start;
        while end < self.range.end
            && (end == self.range.start || filled < bytes && end - self.range.start < count)
        {
            filled += self.text.stored_bytes(end);
            end += 1;
        }
        let rest = end..std::mem::replace(&mut self.range.end, end);
        (!rest.is_empty()).then(|| Rows { range: rest, ..self.clone() })
    }
}

/// A column as strings. An absent value is one whose own slot is null, or that of an object around
/// it.
#[derive(Clone)]
struct Column {
    values: LargeStringArray,
    /// As it was stored: bytes that are not UTF-8 are there, and not among the values.
    stored: ArrayRef,
    around: Vec<ArrayRef>,
}

impl Column {
    fn get(&self, row: usize) -> Option<&str> {
        (self.values.is_valid(row) && self.is_stored(row)).then(|| self.values.value(row))
    }

    fn stored_bytes(&self, row: usize) -> u64 {
        u64::try_from(self.values.value_length(row)).unwrap_or(0)
    }

    fn is_stored(&self, row: usize) -> bool {
        self.stored.is_valid(row) && self.around.iter().all(|array| array.is_valid(row))
    }
}

impl Batches {
    /// The row that comes next.
    pub(crate) fn next_row(&self) -> u64 {
        self.next_row
    }

    /// The next rows. `before_large` is called before a page is unpacked that is not small.
    pub(crate) fn next(&mut self, before_large: &mut dyn FnMut(u64)) -> Option<Result<Rows, BadReason>> {
        let batch = match self.next_batch(before_large) {
            Ok(None) => return None,
            Ok(Some(batch)) => batch,
            Err(reason) => return Some(Err(reason)),
        };
        let first_row = self.next_row;
        self.skip += batch.num_rows();
        let column = |path: &Vec<String>| fenced_with(|| column(&batch, path));
        let rows = column(&self.columns.text).and_then(|text| {
            let text = text.ok_or(BadReason::TextNotAString)?;
            // A name or an address that is not a string or a number is as good as none.
            let id = self.columns.id.as_ref().map(column).transpose()?.flatten();
            let url = self.columns.url.as_ref().map(column).transpose()?.flatten();
            let date = self.columns.date.as_ref().map(|path| fenced_with(|| Dates::of(&batch, path)));
            let date = date.transpose()?.flatten();
            Ok(Rows { first_row, range: 0..batch.num_rows(), text, id, url, date })
        });
        if rows.is_ok() {
            self.next_row += batch.num_rows() as u64;
        }
        Some(rows)
    }

    fn next_batch(&mut self, before_large: &mut dyn FnMut(u64)) -> Result<Option<RecordBatch>, BadReason> {
        loop {
            self.chunks.meter().begin();
            let read = self.open().and_then(|mut reader| {
                let batch = fenced(|| reader.next().transpose().map_err(ParquetError::from));
                self.reader = Some(reader);
                batch
            });
            let Err(reason) = read else { return read };
            let (refused, limit) = {
                let mut meter = self.chunks.meter();
                (meter.take_refused(), meter.limit)
            };
            self.reader = None;
            match refused {
                Some(Refused::Together) if self.rows > 1 => self.rows = (self.rows / 8).max(1),
                Some(refused) if limit < self.max_page_bytes => {
                    before_large(match refused {
                        Refused::Page(bytes) => bytes.min(self.max_page_bytes),
                        Refused::Together => self.max_page_bytes,
                    });
                    self.chunks.meter().limit = self.max_page_bytes;
                }
                Some(_) => return Err(BadReason::LargePage { limit: self.max_page_bytes }),
                None => return Err(reason),
            }
        }
    }

    /// The reader, standing before the next row.
    fn open(&mut self) -> Result<ParquetRecordBatchReader, BadReason> {
        if let Some(reader) = self.reader.take() {
            return Ok(reader);
        }
        let longest = fenced(|| self.longest_value())?.max(1);
        let fitting = usize::try_from(MOST_BATCH_BYTES / longest).unwrap_or(usize::MAX);
        self.rows = self.rows.min(fitting).max(1);
        self.chunks.meter().rows = self.rows as u64;
        self.chunks.meter().begin();
        fenced(|| {
            let mask =
                ProjectionMask::leaves(self.metadata.parquet_schema(), self.columns.leaves.iter().copied());
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.chunks.clone(), self.metadata.clone())
                .with_row_groups(vec![self.group])
                .with_projection(mask)
                .with_offset(self.skip)
                .with_batch_size(self.rows)
                .build()
        })
    }

    /// The longest of all values in the dictionaries of the columns, which any row may have.
    fn longest_value(&self) -> ParquetResult<u64> {
        let group = self.metadata.metadata().row_group(self.group);
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let mut longest = 0;
        for leaf in &self.columns.leaves {
            if let Some(column) = group.columns().get(*leaf) {
                longest += longest_in_dictionary(&self.chunks, column, rows)?;
            }
        }
        Ok(longest)
    }
}

fn longest_in_dictionary(chunks: &Chunks, column: &ColumnChunkMetaData, rows: usize) -> ParquetResult<u64> {
    if column.column_type() != PhysicalType::BYTE_ARRAY {
        return Ok(0);
    }
    let mut pages = SerializedPageReader::new(Arc::new(chunks.clone()), column, rows, None)?;
    if !pages.peek_next_page()?.is_some_and(|page| page.is_dict) {
        return Ok(0);
    }
    let Some(Page::DictionaryPage { buf, .. }) = pages.get_next_page()? else { return Ok(0) };
    // Each value is its length and its bytes.
    let (mut rest, mut longest) = (&buf[..], 0);
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = u32::from_le_bytes(*length);
        longest = longest.max(u64::from(length));
        rest = usize::try_from(length).ok().and_then(|length| after.get(length..)).unwrap_or_default();
    }
    Ok(longest)
}

/// A column as times.
#[derive(Clone)]
enum Dates {
    Spelled(Column),
    /// Microseconds since 1970, UTC.
    Counted {
        values: Int64Array,
        around: Vec<ArrayRef>,
    },
}

impl Dates {
    /// Follows a path into a batch; `None` when there are no dates.
    fn of(batch: &RecordBatch, path: &[String]) -> Result<Option<Dates>, BadReason> {
        let (array, around) = leaf(batch, path)?;
        if array.data_type().is_integer() {
            return Ok(None);
        }
        if !array.data_type().is_temporal() {
            return Ok(column(batch, path)?.map(Dates::Spelled));
        }
        let micros = DataType::Timestamp(TimeUnit::Microsecond, None);
        // Times of day, for one, are no dates.
        let counted = arrow_cast::cast(&array, &micros)
            .and_then(|array| arrow_cast::cast(&array, &DataType::Int64))
            .ok();
        let values = counted.and_then(|array| array.as_primitive_opt::<Int64Type>().cloned());
        Ok(values.map(|values| Dates::Counted { values, around }))
    }

    fn get(&self, row: usize) -> Option<i64> {
        match self {
            Dates::Spelled(column) => column.get(row).and_then(fetch_date),
            Dates::Counted { values, around } => {
                let is_there = values.is_valid(row) && around.iter().all(|array| array.is_valid(row));
                is_there.then(|| values.value(row))
            }
        }
    }
}

/// Follows a path into a batch: what is there, and the objects around it.
fn leaf(batch: &RecordBatch, path: &[String]) -> Result<(ArrayRef, Vec<ArrayRef>), BadReason> {
    let lost = || lost_column(path);
    let (first, inside) = path.split_first().ok_or_else(lost)?;
    let mut array = Arc::clone(batch.column_by_name(first).ok_or_else(lost)?);
    let mut around = Vec::new();
    for name in inside {
        let fields: &StructArray = array.as_struct_opt().ok_or_else(lost)?;
        let inner = Arc::clone(fields.column_by_name(name).ok_or_else(lost)?);
        around.push(std::mem::replace(&mut array, inner));
    }
    Ok((array, around))
}

fn lost_column(path: &[String]) -> BadReason {
    BadReason::BrokenParquet { detail: format!("column {} is lost", path.join(".")) }
}

/// Follows a path into a batch and makes strings of what is there; `None` when it is of another
/// kind.
fn column(batch: &RecordBatch, path: &[String]) -> Result<Option<Column>, BadReason> {
    let (array, around) = leaf(batch, path)?;
    let value_type = match array.data_type() {
        DataType::Dictionary(_, values) => (**values).clone(),
        other => other.clone(),
    };
    let is_string = matches!(
        value_type,
        DataType::Utf8
            | DataType::LargeUtf8
            | DataType::Utf8View
            | DataType::Binary
            | DataType::LargeBinary
            | DataType::BinaryView
    );
    if !is_string && !value_type.is_integer() {
        return Ok(None);
    }
    let strings = arrow_cast::cast(&array, &DataType::LargeUtf8)
        .map_err(|error| BadReason::BrokenParquet { detail: error.to_string() })?;
    let values = strings.as_string_opt::<i64>().ok_or_else(|| lost_column(path))?.clone();
    Ok(Some(Column { values, stored: array, around }))
}

/// Makes documents of rows.
pub(crate) fn run_rows(
    rows: &Rows,
    source: u32,
    options: &Options,
    extraction: &mut Extraction,
    visitor: &mut dyn Visitor,
) {
    for row in rows.range.clone() {
        let offset = rows.first_row + row as u64;
        if !visitor.wants(offset) {
            continue;
        }
        let bad = |bytes, reason| Loss::record(offset, bytes, reason).of(source);
        let Some(text) = rows.text.get(row) else {
            match rows.text.is_stored(row) {
                true => visitor.bad_record(bad(0, BadReason::InvalidUtf8)),
                false => visitor.no_text((source, offset), &mut || None),
            }
            continue;
        };
        if text.len() as u64 > options.max_record_bytes {
            let reason = BadReason::TooLarge { limit: options.max_record_bytes };
            visitor.bad_record(bad(text.len() as u64, reason));
            continue;
        }
        visitor.before_large(text.len() as u64);
        let beside =
            |column: &Option<Column>| column.as_ref().and_then(|column| column.get(row).map(str::to_owned));
        let (id, url) = (beside(&rows.id), beside(&rows.url));
        let fetched_at = rows.date.as_ref().and_then(|dates| dates.get(row));
        let (id, url) = (id.as_deref(), url.as_deref());
        let record = TextRecord { source, offset, id, url, fetched_at, text };
        record.emit(options, extraction, visitor);
    }
}

/// Reads a whole row group.
pub(crate) fn run_group(
    file: &ParquetFile,
    group: &RowGroup,
    source: u32,
    options: &Options,
    extraction: &mut Extraction,
    visitor: &mut dyn Visitor,
) {
    let mut offset = group.first_row;
    let mut batches = file.batches(group.group, group.first_row, options);
    while let Some(rows) = batches.next(&mut |bytes| visitor.before_large(bytes)) {
        match rows {
            Ok(rows) => run_rows(&rows, source, options, extraction, visitor),
            Err(reason) => return visitor.bad_record(group.loss(offset, reason).of(source)),
        }
        offset = batches.next_row();
    }
}

impl Columns {
    fn find(schema: &SchemaDescriptor, options: &Options) -> Result<Columns, BadReason> {
        let mut leaves = Vec::new();
        let mut find = |fields: &FieldNames| {
            let leaf = fields.iter().find_map(|field| {
                let leaf =
                    (0..schema.num_columns()).find(|&leaf| schema.column(leaf).path().string() == field)?;
                // Inside a list there are many values to a row.
                (schema.column(leaf).max_rep_level() == 0).then_some(leaf)
            })?;
            leaves.push(leaf);
            Some(schema.column(leaf).path().parts().to_vec())
        };
        let text = find(&options.text_field);
        let (id, url) = (find(&options.id_field), find(&options.url_field));
        let date = find(&options.date_field);
        let text = text.ok_or_else(|| {
            let names: Vec<String> =
                (0..schema.num_columns()).map(|leaf| schema.column(leaf).path().string()).collect();
            BadReason::MissingColumn { column: options.text_field.spoken(), known: names.join(", ") }
        })?;
        Ok(Columns { leaves, text, id, url, date })
    }
}

/// Calls into the library; a panic there is a damaged file.
fn fenced<T>(call: impl FnOnce() -> ParquetResult<T>) -> Result<T, BadReason> {
    fenced_with(|| call().map_err(|error| BadReason::BrokenParquet { detail: error.to_string() }))
}

fn fenced_with<T>(call: impl FnOnce() -> Result<T, BadReason>) -> Result<T, BadReason> {
    // What was being decoded is given up after a panic, so no half-changed state is seen again.
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|_| Err(BadReason::BrokenParquet { detail: "the decoder gave up".to_owned() }))
}

/// A source as the library wants it.
#[derive(Clone)]
struct Chunks {
    input: Arc<Mutex<Box<dyn Input>>>,
    len: u64,
    meter: Arc<Mutex<Meter>>,
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Chunks {
    fn new(input: Box<dyn Input>, len: u64, options: &Options) -> Chunks {
        let meter = Arc::new(Mutex::new(Meter::new(options.max_page_bytes)));
        Chunks { input: Arc::new(Mutex::new(input)), len, meter }
    }

    /// The same, for a reader with a limit of its own.
    fn with_meter(&self, limit: u64) -> Chunks {
        Chunks { meter: Arc::new(Mutex::new(Meter::new(limit))), ..self.clone() }
    }

    fn meter(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_at(&self, position: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input.seek(SeekFrom::Start(position))?;
        input.read(into)
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Chunks {
    type T = io::BufReader<ChunkRead>;

    /// A page begins here, if anything does.
    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        let mut read = io::BufReader::new(ChunkRead { chunks: self.clone(), position: start });
        let head = read.fill_buf()?;
        self.meter().note_head(start, head);
        Ok(read)
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        // A damaged file may name any length; only what is there is made room for.
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are beyond the end")));
        }
        self.meter().take(start, length as u64)?;
        let mut bytes = vec![0; length];
        ChunkRead { chunks: self.clone(), position: start }.read_exact(&mut bytes)?;
        Ok(bytes.into())
    }
}

/// Reads on from a place.
struct ChunkRead {
    chunks: Chunks,
    position: u64,
}

impl Read for ChunkRead {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.chunks.read_at(self.position, into)?;
        self.position += n as u64;
        Ok(n)
    }
}

#[cfg(test)]
mod tests;
