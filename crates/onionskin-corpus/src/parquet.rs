//! Parquet: the three wanted columns of each row group, and nothing else.
//!
//! A row group of ordinary size is a task: the worker opens the file and reads its columns. One of
//! gigabytes, as some writers make of a whole file, would be a task of gigabytes; it is decoded in
//! order instead, and handed out in batches of rows. Which of the two is decided by the file's own
//! metadata.
//!
//! The library that decodes was written for files that are well; on damaged ones it may panic, so
//! every call into it is fenced, and a panic is a damaged file.

mod texts;

pub use texts::{ParquetText, ParquetTexts};

use std::fmt;
use std::io::{self, Read, SeekFrom};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use ::parquet::arrow::ProjectionMask;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use ::parquet::errors::{ParquetError, Result as ParquetResult};
use ::parquet::file::reader::{ChunkReader, Length};
use ::parquet::schema::types::SchemaDescriptor;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, LargeStringArray, RecordBatch, StructArray};
use arrow_schema::DataType;
use bytes::Bytes;

use crate::document::{BadReason, Loss, Visitor};
use crate::options::Options;
use crate::record::{Extraction, TextRecord};
use crate::source::{Input, Source};
use crate::watch::Watch;

/// Row groups whose wanted columns are larger than this many tasks are handed out in batches.
const LARGE_GROUP_TASKS: u64 = 8;

/// What a batch of rows should about come to.
const BATCH_BYTES: u64 = 1 << 20;

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
        ParquetFile::of(Chunks::new(input, source.bytes), options)
    }

    fn of(chunks: Chunks, options: &Options) -> Result<ParquetFile, Unusable> {
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
        let reader = fenced(|| {
            let mask =
                ProjectionMask::leaves(self.metadata.parquet_schema(), self.columns.leaves.iter().copied());
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.chunks.clone(), self.metadata.clone())
                .with_row_groups(vec![group.group])
                .with_projection(mask)
                .with_offset(before)
                .with_limit(1)
                .with_batch_size(1)
                .build()
        })?;
        Batches { reader, columns: self.columns.clone(), next_row: row }.next().transpose()
    }

    /// A reader of one row group.
    pub(crate) fn batches(&self, group: usize, first_row: u64) -> Result<Batches, BadReason> {
        let meta = self.metadata.metadata().row_group(group);
        let rows = u64::try_from(meta.num_rows()).unwrap_or(0).max(1);
        let row_bytes = (u64::try_from(meta.total_byte_size()).unwrap_or(0) / rows).max(1);
        let batch_rows = usize::try_from((BATCH_BYTES / row_bytes).clamp(1, 8192)).unwrap_or(1);
        let reader = fenced(|| {
            let mask =
                ProjectionMask::leaves(self.metadata.parquet_schema(), self.columns.leaves.iter().copied());
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.chunks.clone(), self.metadata.clone())
                .with_row_groups(vec![group])
                .with_projection(mask)
                .with_batch_size(batch_rows)
                .build()
        })?;
        Ok(Batches { reader, columns: self.columns.clone(), next_row: first_row })
    }
}

/// The rows of a row group, some at a time.
pub(crate) struct Batches {
    reader: ParquetRecordBatchReader,
    columns: Columns,
    next_row: u64,
}

/// Some rows.
pub(crate) struct Rows {
    first_row: u64,
    text: Column,
    id: Option<Column>,
    url: Option<Column>,
}

impl Rows {
    pub(crate) fn text_bytes(&self) -> u64 {
        self.text.values.value_data().len() as u64
    }
}

/// A column as strings. An absent value is one whose own slot is null, or that of an object around
/// it.
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

    fn is_stored(&self, row: usize) -> bool {
        self.stored.is_valid(row) && self.around.iter().all(|array| array.is_valid(row))
    }
}

impl Batches {
    /// The row that comes next.
    pub(crate) fn next_row(&self) -> u64 {
        self.next_row
    }

    pub(crate) fn next(&mut self) -> Option<Result<Rows, BadReason>> {
        let batch = match fenced(|| self.reader.next().transpose().map_err(ParquetError::from)) {
            Ok(None) => return None,
            Ok(Some(batch)) => batch,
            Err(reason) => return Some(Err(reason)),
        };
        let first_row = self.next_row;
        let column = |path: &Vec<String>| fenced_with(|| column(&batch, path));
        let rows = column(&self.columns.text).and_then(|text| {
            let text = text.ok_or(BadReason::TextNotAString)?;
            // A name or an address that is not a string or a number is as good as none.
            let id = self.columns.id.as_ref().map(column).transpose()?.flatten();
            let url = self.columns.url.as_ref().map(column).transpose()?.flatten();
            Ok(Rows { first_row, text, id, url })
        });
        if rows.is_ok() {
            self.next_row += batch.num_rows() as u64;
        }
        Some(rows)
    }
}

/// Follows a path into a batch and makes strings of what is there; `None` when it is of another
/// kind.
fn column(batch: &RecordBatch, path: &[String]) -> Result<Option<Column>, BadReason> {
    let lost = || BadReason::BrokenParquet { detail: format!("column {} is lost", path.join(".")) };
    let (first, inside) = path.split_first().ok_or_else(lost)?;
    let mut array = Arc::clone(batch.column_by_name(first).ok_or_else(lost)?);
    let mut around = Vec::new();
    for name in inside {
        let fields: &StructArray = array.as_struct_opt().ok_or_else(lost)?;
        let inner = Arc::clone(fields.column_by_name(name).ok_or_else(lost)?);
        around.push(std::mem::replace(&mut array, inner));
    }
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
    let values = strings.as_string_opt::<i64>().ok_or_else(lost)?.clone();
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
    for row in 0..rows.text.values.len() {
        let offset = rows.first_row + row as u64;
        if !visitor.wants(offset) {
            continue;
        }
        let bad = |bytes, reason| Loss::record(offset, bytes, reason).of(source);
        let Some(text) = rows.text.get(row) else {
            let reason =
                if rows.text.is_stored(row) { BadReason::InvalidUtf8 } else { BadReason::MissingText };
            visitor.bad_record(bad(0, reason));
            continue;
        };
        if text.len() as u64 > options.max_record_bytes {
            let reason = BadReason::TooLarge { limit: options.max_record_bytes };
            visitor.bad_record(bad(text.len() as u64, reason));
            continue;
        }
        let beside =
            |column: &Option<Column>| column.as_ref().and_then(|column| column.get(row).map(str::to_owned));
        let (id, url) = (beside(&rows.id), beside(&rows.url));
        let record = TextRecord { source, offset, id: id.as_deref(), url: url.as_deref(), text };
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
    let result = file.batches(group.group, group.first_row).and_then(|mut batches| {
        while let Some(rows) = batches.next() {
            run_rows(&rows?, source, options, extraction, visitor);
            offset = batches.next_row();
        }
        Ok(())
    });
    if let Err(reason) = result {
        visitor.bad_record(group.loss(offset, reason).of(source));
    }
}

impl Columns {
    fn find(schema: &SchemaDescriptor, options: &Options) -> Result<Columns, BadReason> {
        let mut leaves = Vec::new();
        let mut find = |field: &str| {
            let leaf =
                (0..schema.num_columns()).find(|&leaf| schema.column(leaf).path().string() == field)?;
            // Inside a list there are many values to a row.
            if schema.column(leaf).max_rep_level() > 0 {
                return None;
            }
            leaves.push(leaf);
            Some(schema.column(leaf).path().parts().to_vec())
        };
        let text = find(&options.text_field);
        let (id, url) = (find(&options.id_field), find(&options.url_field));
        let text = text.ok_or_else(|| {
            let names: Vec<String> =
                (0..schema.num_columns()).map(|leaf| schema.column(leaf).path().string()).collect();
            BadReason::MissingColumn { column: options.text_field.clone(), known: names.join(", ") }
        })?;
        Ok(Columns { leaves, text, id, url })
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
}

impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Chunks {
    fn new(input: Box<dyn Input>, len: u64) -> Chunks {
        Chunks { input: Arc::new(Mutex::new(input)), len }
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

    fn get_read(&self, start: u64) -> ParquetResult<Self::T> {
        Ok(io::BufReader::new(ChunkRead { chunks: self.clone(), position: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> ParquetResult<Bytes> {
        // A damaged file may name any length; only what is there is made room for.
        if start.checked_add(length as u64).is_none_or(|end| end > self.len) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are beyond the end")));
        }
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
