//! Batches of a table, over all its files, with the columns and types of the schema whatever
//! program wrote them.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, FixedSizeListArray, RecordBatch};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::Length;
use parquet::file::statistics::Statistics;

use super::checks::{Checks, Known, RowNumbers, Spot};
use super::{Input, TableError, ValueProblem};
use crate::cancel;
use crate::manifest::MAX_VALUES_PER_BYTE;
use crate::schema::{self, Column, Fit, MAX_LIST_LEN, Table, fit};

/// Reads a table batch by batch, in the order of its files.
///
/// Every batch has the columns of the table's schema, or those chosen by [`TableReader::columns`],
/// in that order and with the types we write; casts are done here. Lists are fixed-size lists, with
/// the length the file has.
pub struct TableReader {
    table: Table,
    inputs: VecDeque<Input>,
    columns: Option<Vec<String>>,
    within: Option<(&'static str, RangeInclusive<i64>)>,
    batch_rows: usize,
    current: Option<Open>,
    /// Made with the first file.
    checks: Option<Checks>,
    failed: bool,
}

/// The file being read.
struct Open {
    name: String,
    reader: ParquetRecordBatchReader,
    rows: RowNumbers,
    /// Rows of the batch that was handed out last.
    handed_out: usize,
    known: Option<Known>,
}

impl TableReader {
    /// Reads `inputs` as files of `table`. Files are opened when their turn comes.
    pub fn new(table: Table, inputs: impl IntoIterator<Item = impl Into<Input>>) -> TableReader {
        let inputs = inputs.into_iter().map(Into::into).collect();
        TableReader {
            table,
            inputs,
            columns: None,
            within: None,
            batch_rows: 8 << 10,
            current: None,
            checks: None,
            failed: false,
        }
    }

    /// Reads these columns only. Names that the table does not have are left out.
    pub fn columns(mut self, columns: &[impl AsRef<str>]) -> TableReader {
        self.columns = Some(columns.iter().map(|column| column.as_ref().to_owned()).collect());
        self
    }

    /// Leaves out the row groups whose statistics say that no value of an integer column is in the
    /// range. Rows outside it still come, from row groups that have both: this makes looking up a
    /// few rows cheap, and filters nothing.
    pub fn within(mut self, column: &'static str, range: RangeInclusive<i64>) -> TableReader {
        self.within = Some((column, range));
        self
    }

    /// Rows in a batch, at most.
    pub fn batch_rows(mut self, rows: usize) -> TableReader {
        self.batch_rows = rows.max(1);
        self
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The next batch and the name of the file it is from; `None` at the end. After an error there
    /// is no more.
    pub fn next_batch(&mut self) -> Result<Option<(RecordBatch, &str)>, TableError> {
        if self.failed {
            return Ok(None);
        }
        match self.advance() {
            Ok(batch) => {
                Ok(batch.map(|batch| (batch, self.current.as_ref().map_or("", |open| open.name.as_str()))))
            }
            Err(error) => {
                self.failed = true;
                Err(error)
            }
        }
    }

    /// Files that were not opened yet.
    pub(crate) fn files_left(&self) -> usize {
        self.inputs.len()
    }

    /// The row of the file that a row of the last batch is.
    pub(crate) fn row_in_file(&self, row: usize) -> Option<u64> {
        self.current.as_ref().map(|open| open.rows.in_file(row))
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>, TableError> {
        cancel::check()?;
        loop {
            if let Some(open) = &mut self.current {
                open.rows.advance(std::mem::take(&mut open.handed_out));
                let next = guarded(&self.table, &open.name, || open.reader.next().transpose())?;
                if let Some(batch) = next {
                    if batch.num_rows() == 0 {
                        continue;
                    }
                    let (table, name) = (&self.table, open.name.as_str());
                    let columns = self.columns.as_deref();
                    let fitted = catch(table, name, || normalise(&batch, table, columns, name));
                    let batch = fitted.map_err(|error| error.in_file(|row| Some(open.rows.in_file(row))))?;
                    if let Some(checks) = &mut self.checks {
                        let (rows, known) = (&open.rows, open.known.as_ref());
                        checks.check(&batch, &Spot { table, file: name, rows, known })?;
                    }
                    open.handed_out = batch.num_rows();
                    return Ok(Some(batch));
                }
                let is_whole = self.inputs.is_empty() && self.within.is_none();
                if let Some(checks) = self.checks.as_ref().filter(|_| is_whole) {
                    let Open { name, rows, known, .. } = &*open;
                    checks.finish(&Spot { table: &self.table, file: name, rows, known: known.as_ref() })?;
                }
                self.current = None;
            }
            let Some(input) = self.inputs.pop_front() else { return Ok(None) };
            self.current = Some(self.open(&input)?);
            if self.checks.is_none() {
                let columns = self.columns.as_deref();
                let is_read =
                    |name: &str| columns.is_none_or(|columns| columns.iter().any(|column| column == name));
                self.checks = Some(Checks::new(&self.table, is_read));
            }
        }
    }

    fn open(&self, input: &Input) -> Result<Open, TableError> {
        let name = input.name();
        let source = input.open()?;
        let file_bytes = source.len();
        let builder = guarded(&self.table, &name, || ParquetRecordBatchReaderBuilder::try_new(source))?;
        let known = input.known();
        ensure_plausible(builder.metadata(), file_bytes, known.as_ref())
            .map_err(|reason| TableError::damaged(&self.table, &name, reason))?;
        let indices = schema::check(builder.schema(), &self.table, &name)?;
        let wanted = self.table.columns();
        let wanted = indices.iter().zip(&wanted).filter(|(_, of)| self.wants(&of.field));
        let roots = wanted.filter_map(|(index, _)| *index);
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots);
        let wanted_groups = self.row_groups(builder.metadata());
        let groups = builder.metadata().row_groups().iter().map(|group| group.num_rows().cast_unsigned());
        let is_read = |at| wanted_groups.as_ref().is_none_or(|wanted| wanted.binary_search(&at).is_ok());
        let rows = RowNumbers::new(groups.enumerate().map(|(at, rows)| (rows, is_read(at))));
        let reader = guarded(&self.table, &name, || {
            let builder = builder.with_batch_size(self.batch_rows).with_projection(mask);
            match wanted_groups {
                Some(groups) => builder.with_row_groups(groups).build(),
                None => builder.build(),
            }
        })?;
        Ok(Open { name, reader, rows, handed_out: 0, known })
    }

    /// The row groups that may have a wanted value; `None` for all.
    fn row_groups(&self, metadata: &ParquetMetaData) -> Option<Vec<usize>> {
        let (column, range) = self.within.as_ref()?;
        let leaf = metadata.file_metadata().schema_descr();
        let leaf = leaf.columns().iter().position(|leaf| leaf.path().string() == *column)?;
        let may_have = |chunk: &ColumnChunkMetaData| match bounds(chunk) {
            Some((least, most)) => least <= *range.end() && most >= *range.start(),
            None => true,
        };
        let groups = metadata.row_groups().iter().enumerate();
        let groups = groups.filter(|(_, group)| group.columns().get(leaf).is_none_or(may_have));
        Some(groups.map(|(at, _)| at).collect())
    }

    fn wants(&self, field: &Field) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns.contains(field.name()))
    }
}

impl std::fmt::Debug for TableReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableReader")
            .field("table", &self.table)
            .field("left", &self.inputs)
            .finish_non_exhaustive()
    }
}

/// Says what is wrong with the counts of a footer.
fn ensure_plausible(
    metadata: &ParquetMetaData,
    file_bytes: u64,
    known: Option<&Known>,
) -> Result<(), String> {
    // The decoder finds row groups by the counts in the footer; a negative count would go around as
    // a huge one.
    let groups = metadata.row_groups();
    if groups.iter().any(|group| group.num_rows() < 0 || group.columns().iter().any(|c| c.num_values() < 0)) {
        return Err("a row group with a negative number of rows".to_owned());
    }
    // Equal values pack to nearly nothing, so a damaged count of a few bytes can keep a decoder
    // busy for minutes.
    let values = groups.iter().flat_map(|group| group.columns().iter().map(|column| column.num_values()));
    let rows = groups.iter().map(|group| group.num_rows());
    let most = values.chain(rows).fold(0, |sum: u64, count| sum.saturating_add(count.cast_unsigned()));
    if most > file_bytes.saturating_mul(MAX_VALUES_PER_BYTE) {
        return Err(format!("{most} values in {file_bytes} bytes"));
    }
    // The manifest says how much memory is needed.
    let rows = groups.iter().fold(0, |sum: u64, group| sum.saturating_add(group.num_rows().cast_unsigned()));
    match known {
        Some(known) if known.rows != rows => Err(format!("{rows} rows, should be {}", known.rows)),
        _ => Ok(()),
    }
}

/// The least and the largest integer of a column in a row group, where the file says.
fn bounds(chunk: &ColumnChunkMetaData) -> Option<(i64, i64)> {
    match chunk.statistics()? {
        Statistics::Int64(of) => Some((*of.min_opt()?, *of.max_opt()?)),
        Statistics::Int32(of) => Some((i64::from(*of.min_opt()?), i64::from(*of.max_opt()?))),
        _ => None,
    }
}

/// Runs a step of the decoder; its errors and its panics become `Damaged`.
pub(super) fn guarded<T, E: std::fmt::Display>(
    table: &Table,
    file: &str,
    step: impl FnOnce() -> Result<T, E>,
) -> Result<T, TableError> {
    catch(table, file, || step().map_err(|e| TableError::damaged(table, file, e.to_string())))
}

thread_local! {
    /// Whether this thread is in a decoder whose panics are caught.
    static IS_DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the panics of decoders off stderr: they are caught and become errors that say more. Other
/// panics are shown as before. For programs, which call it once at their start.
pub fn hush_decoders() {
    let shown = take_hook();
    set_hook(Box::new(move |info| {
        if IS_DECODING.get() {
            tracing::debug!(%info, "a decoder gave up");
        } else {
            shown(info);
        }
    }));
}

fn catch<T>(
    table: &Table,
    file: &str,
    step: impl FnOnce() -> Result<T, TableError>,
) -> Result<T, TableError> {
    // A reader is not used again after a panic: `failed` is set on every error.
    IS_DECODING.set(true);
    let done = catch_unwind(AssertUnwindSafe(step));
    IS_DECODING.set(false);
    done.unwrap_or_else(|panic| {
        let said = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        Err(TableError::damaged(table, file, format!("the decoder gave up: {said}")))
    })
}

fn normalise(
    batch: &RecordBatch,
    table: &Table,
    columns: Option<&[String]>,
    file: &str,
) -> Result<RecordBatch, TableError> {
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for Column { field: wanted, .. } in table.columns() {
        if columns.is_some_and(|columns| !columns.contains(wanted.name())) {
            continue;
        }
        let at = Place { table, file, column: wanted.name() };
        let array = match batch.column_by_name(wanted.name()) {
            Some(found) => fit_column(found, wanted.data_type(), &at)?,
            None if table.is_later(wanted.name()) => {
                arrow_array::new_null_array(wanted.data_type(), batch.num_rows())
            }
            None => return Err(at.damaged("a column is gone")),
        };
        if !wanted.is_nullable() && array.null_count() > 0 {
            let row = (0..array.len()).find(|row| array.is_null(*row));
            return Err(at.wrong_at(row.map(|row| row as u64), ValueProblem::Null));
        }
        fields.push(Field::new(wanted.name(), array.data_type().clone(), wanted.is_nullable()));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|e| TableError::damaged(table, file, e.to_string()))
}

/// Where in a table we are, for error messages.
pub(super) struct Place<'a> {
    pub(super) table: &'a Table,
    pub(super) file: &'a str,
    pub(super) column: &'a str,
}

impl Place<'_> {
    pub(super) fn wrong(&self, problem: ValueProblem) -> TableError {
        self.wrong_at(None, problem)
    }

    pub(super) fn wrong_at(&self, row: Option<u64>, problem: ValueProblem) -> TableError {
        TableError::Value {
            table: self.table.to_string(),
            file: self.file.to_owned(),
            row,
            column: self.column.to_owned(),
            problem: Box::new(problem),
        }
    }

    pub(super) fn damaged(&self, reason: &str) -> TableError {
        TableError::damaged(self.table, self.file, format!("column {:?}: {reason}", self.column))
    }
}

fn fit_column(found: &ArrayRef, wanted: &DataType, at: &Place<'_>) -> Result<ArrayRef, TableError> {
    if let DataType::FixedSizeList(element, _) = wanted {
        return fit_lists(found, element.data_type(), at);
    }
    match fit(found.data_type(), wanted) {
        Fit::Same => Ok(Arc::clone(found)),
        Fit::Cast => cast(found, wanted, at),
        Fit::Not => Err(at.damaged("the type changed inside the file")),
    }
}

fn cast(found: &ArrayRef, wanted: &DataType, at: &Place<'_>) -> Result<ArrayRef, TableError> {
    // Not "safe": a value that does not fit is an error, not a null.
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(found, wanted, &options).map_err(|e| at.damaged(&e.to_string()))
}

/// Lists of any kind as fixed-size lists of the length that all of them have.
fn fit_lists(found: &ArrayRef, element: &DataType, at: &Place<'_>) -> Result<ArrayRef, TableError> {
    if found.null_count() > 0 {
        return Err(at.wrong(ValueProblem::Null));
    }
    let (values, len) = match found.data_type() {
        DataType::FixedSizeList(_, len) => {
            (Arc::clone(found.as_fixed_size_list().values()), usize::try_from(*len).unwrap_or(0))
        }
        DataType::List(_) => {
            let lists = found.as_list::<i32>();
            let offsets = lists.value_offsets().iter().map(|o| i64::from(*o));
            equal_lists(lists.values(), offsets, at)?
        }
        DataType::LargeList(_) => {
            let lists = found.as_list::<i64>();
            equal_lists(lists.values(), lists.value_offsets().iter().copied(), at)?
        }
        _ => return Err(at.damaged("the type changed inside the file")),
    };
    if values.null_count() > 0 {
        return Err(at.wrong(ValueProblem::Null));
    }
    let len = i32::try_from(len).ok().filter(|len| *len as u32 <= MAX_LIST_LEN);
    let Some(len) = len else { return Err(at.damaged("lists are longer than any we know")) };
    let values = if values.data_type() == element { values } else { cast(&values, element, at)? };
    FixedSizeListArray::try_new_with_length(
        schema::list_element(element.clone()),
        len,
        values,
        None,
        found.len(),
    )
    .map(|lists| Arc::new(lists) as ArrayRef)
    .map_err(|e| at.damaged(&e.to_string()))
}

/// The values of lists that all have one length, and that length.
fn equal_lists(
    values: &ArrayRef,
    mut offsets: impl Iterator<Item = i64>,
    at: &Place<'_>,
) -> Result<(ArrayRef, usize), TableError> {
    let first = offsets.next().unwrap_or(0);
    let (mut last, mut len) = (first, None);
    for offset in offsets {
        let found = usize::try_from(offset - last).unwrap_or(usize::MAX);
        let wanted = *len.get_or_insert(found);
        if found != wanted {
            return Err(at.wrong(ValueProblem::ListLength { found, wanted }));
        }
        last = offset;
    }
    let start = usize::try_from(first).map_err(|_| at.damaged("a negative offset"))?;
    let end = usize::try_from(last).map_err(|_| at.damaged("a negative offset"))?;
    if start > end || end > values.len() {
        return Err(at.damaged("offsets point outside"));
    }
    Ok((values.slice(start, end - start), len.unwrap_or(0)))
}
