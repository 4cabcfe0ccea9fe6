//! Checks of the values of a batch, by the rules that the schema has for each column.
//!
//! A file can be whole and still hold values that no stage writes: it may come from another
//! program, or from somebody who wishes us ill. An id becomes an index and a size, so one that is
//! too large would end the process, and rows out of order would give wrong answers. So every batch
//! is checked before anybody sees it. Most checks are one pass without branches; only a batch that
//! fails is looked at closely, to name the row.

use std::cmp::Ordering;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, Int64Array, RecordBatch};
use onionskin_core::{Packed, SiteId};

use super::reader::Place;
use super::{TableError, ValueProblem};
use crate::schema::{Column, ID_END, Limits, MAX_SIZE, Rows, Rule, Table};

/// The rows of a batch inside the table, as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct RowNumbers {
    /// For stretches of rows that are read: the first, counted over rows that are read, and the row
    /// of the file that it is.
    stretches: Vec<(u64, u64)>,
    /// Rows that were read.
    read: u64,
}

impl RowNumbers {
    /// Of row groups, each with its first row and whether it is read.
    pub(super) fn new(groups: impl IntoIterator<Item = (u64, bool)>) -> RowNumbers {
        let (mut stretches, mut at, mut read) = (Vec::new(), 0, 0);
        for (rows, is_read) in groups {
            if is_read {
                stretches.push((read, at));
                read += rows;
            }
            at += rows;
        }
        RowNumbers { stretches, read: 0 }
    }

    /// The row of the file that is `row` rows behind those that were read before.
    pub(super) fn in_file(&self, row: usize) -> u64 {
        let row = self.read + row as u64;
        let next = self.stretches.partition_point(|(first, _)| *first <= row);
        match next.checked_sub(1).and_then(|at| self.stretches.get(at)) {
            Some((first, there)) => there + (row - first),
            None => row,
        }
    }

    /// Whether the first so many rows follow each other in the file.
    pub(super) fn are_one(&self, rows: usize) -> bool {
        rows == 0 || self.in_file(rows - 1) - self.in_file(0) == rows as u64 - 1
    }

    pub(super) fn advance(&mut self, rows: usize) {
        self.read += rows as u64;
    }
}

/// What is known of a file that belongs to an atlas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Rows of the file.
    pub(crate) rows: u64,
    /// Rows of the table before those of the file.
    pub(crate) before: u64,
    pub(crate) limits: Limits,
}

/// Where a batch is from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'a> {
    pub(super) table: &'a Table,
    pub(super) file: &'a str,
    pub(super) rows: &'a RowNumbers,
    pub(super) known: Option<&'a Known>,
}

impl Spot<'_> {
    fn wrong(&self, column: &str, row: usize, problem: ValueProblem) -> TableError {
        let place = Place { table: self.table, file: self.file, column };
        place.wrong_at(Some(self.rows.in_file(row)), problem)
    }

    /// The row of the table that a row of the batch is, where the table is known.
    fn in_table(&self, row: usize) -> Option<u64> {
        self.known.map(|known| known.before + self.rows.in_file(row))
    }
}

/// Checks batch after batch of a table.
#[derive(Debug)]
pub(super) struct Checks {
    columns: Vec<Column>,
    /// Columns that rows are sorted by and that are read, up to the first that is not.
    keys: Vec<&'static str>,
    is_strict: bool,
    /// The keys of the last row, and the row of the table that comes next.
    last: Option<(Vec<i64>, u64)>,
}

impl Checks {
    /// Of the columns that are read.
    pub(super) fn new(table: &Table, is_read: impl Fn(&str) -> bool) -> Checks {
        let mut columns = table.columns();
        columns.retain(|column| is_read(column.field.name()));
        let all = table.sorted_by();
        let keys: Vec<_> = all.iter().copied().take_while(|key| is_read(key)).collect();
        let is_strict = table.is_sorted_strictly() && keys.len() == all.len();
        Checks { columns, keys, is_strict, last: None }
    }

    /// An error when a value is not what the schema says. Order and references are checked where
    /// the file is known to belong to an atlas.
    pub(super) fn check(&mut self, batch: &RecordBatch, spot: &Spot<'_>) -> Result<(), TableError> {
        for column in &self.columns {
            let Some(array) = batch.column_by_name(column.field.name()) else { continue };
            check_values(column, array, spot)?;
            if let (Rule::Steps(_), Some(array)) = (column.rule, array.as_primitive_opt::<Int64Type>()) {
                self.check_steps(column.field.name(), array.values(), spot)?;
            }
        }
        self.check_order(batch, spot)
    }

    /// Whether every number of a column of steps has come up, at the end of a whole table.
    pub(super) fn finish(&self, spot: &Spot<'_>) -> Result<(), TableError> {
        let (Some(known), Some(first)) = (spot.known, self.columns.first()) else { return Ok(()) };
        let Rule::Steps(of) = first.rule else { return Ok(()) };
        let Some(wanted) = known.limits.exactly(of) else { return Ok(()) };
        let found = self.last.as_ref().and_then(|(keys, _)| keys.first()).map_or(0, |last| last + 1);
        if u64::try_from(found) == Ok(wanted) {
            return Ok(());
        }
        let reason =
            format!("column {:?} ends after {found} {of}, but there are {wanted}", first.field.name());
        Err(TableError::damaged(spot.table, spot.file, reason))
    }

    /// Each is the one before it or one more, as far as no rows are left out between them.
    fn check_steps(&self, name: &str, values: &[i64], spot: &Spot<'_>) -> Result<(), TableError> {
        let (Some(row), true) = (spot.in_table(0), spot.rows.are_one(values.len())) else { return Ok(()) };
        let before = match &self.last {
            Some((keys, next)) if *next == row => keys.first().copied(),
            None if row == 0 => Some(-1),
            _ => None,
        };
        let steps =
            before.iter().chain(values).zip(values.get(usize::from(before.is_none())..).unwrap_or_default());
        let wrong = steps.enumerate().find(|(at, (last, value))| {
            let is_first = row == 0 && *at == 0;
            !(**value == **last + 1 || (**value == **last && !is_first))
        });
        let Some((at, (last, value))) = wrong else { return Ok(()) };
        let problem = ValueProblem::Step { value: *value, wanted: *last + 1 };
        Err(spot.wrong(name, at + usize::from(before.is_none()), problem))
    }

    fn check_order(&mut self, batch: &RecordBatch, spot: &Spot<'_>) -> Result<(), TableError> {
        let rows = batch.num_rows();
        let (Some(last_row), Some(first)) = (rows.checked_sub(1), spot.in_table(0)) else { return Ok(()) };
        let column =
            |key: &&str| batch.column_by_name(key).and_then(|array| array.as_primitive_opt::<Int64Type>());
        let Some(keys) = self.keys.iter().map(column).collect::<Option<Vec<&Int64Array>>>() else {
            return Ok(());
        };
        let Some(key) = self.keys.first() else { return Ok(()) };
        let order = |row: usize, before: &dyn Fn(usize) -> i64| {
            let orders = keys.iter().enumerate().map(|(nth, key)| before(nth).cmp(&key.value(row)));
            orders.fold(Ordering::Equal, Ordering::then)
        };
        let is_wrong = |order| order == Ordering::Greater || (order == Ordering::Equal && self.is_strict);
        let wrong = |row, order| {
            let problem = if order == Ordering::Equal { ValueProblem::Twice } else { ValueProblem::Order };
            Err(spot.wrong(key, row, problem))
        };
        if let Some((last, next)) = &self.last {
            debug_assert!(*next <= first, "files come in order");
            let order = order(0, &|nth| last.get(nth).copied().unwrap_or(i64::MIN));
            if is_wrong(order) {
                return wrong(0, order);
            }
        }
        // The usual case, without a look at more than one column.
        let ascend = |values: &[i64]| values.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
        if !keys.first().is_some_and(|key| ascend(key.values())) {
            for row in 1..rows {
                let order = order(row, &|nth| keys.get(nth).map_or(i64::MIN, |key| key.value(row - 1)));
                if is_wrong(order) {
                    return wrong(row, order);
                }
            }
        }
        let last = keys.iter().map(|key| key.value(last_row)).collect();
        self.last = Some((last, spot.in_table(last_row).unwrap_or(first) + 1));
        Ok(())
    }
}

fn check_values(column: &Column, array: &dyn Array, spot: &Spot<'_>) -> Result<(), TableError> {
    let name = column.field.name();
    if column.rule == Rule::Share {
        let Some(array) = array.as_primitive_opt::<Float64Type>() else { return Ok(()) };
        let wrong = array.values().iter().position(|value| !(0.0..=1.0).contains(value));
        return match wrong {
            Some(row) => Err(spot.wrong(name, row, ValueProblem::Share { value: array.value(row) })),
            None => Ok(()),
        };
    }
    let Some(array) = array.as_primitive_opt::<Int64Type>() else { return Ok(()) };
    let rows = |of| spot.known.map_or(ID_END, |known| known.limits.rows(of));
    match column.rule {
        Rule::Any | Rule::Share => Ok(()),
        Rule::Size => below(array, MAX_SIZE.cast_unsigned() + 1, None, |row, value| {
            spot.wrong(name, row, ValueProblem::Size { value })
        }),
        Rule::AtMost(of) => {
            let most = spot.known.map_or(MAX_SIZE.cast_unsigned(), |known| known.limits.rows(of));
            below(array, most + 1, None, |row, value| {
                spot.wrong(name, row, too_large(value, of, most, MAX_SIZE.cast_unsigned()))
            })
        }
        Rule::Row(of) | Rule::Steps(of) => below(array, rows(of), None, |row, value| {
            spot.wrong(name, row, too_large(value, of, rows(of), ID_END))
        }),
        Rule::RowOrNone(of) => {
            below(array, rows(of), Some(i64::from(Packed::<SiteId>::NONE.bits())), |row, value| {
                spot.wrong(name, row, too_large(value, of, rows(of), ID_END))
            })
        }
        Rule::Dense => {
            below(array, ID_END, None, |row, value| spot.wrong(name, row, ValueProblem::Id { value }))?;
            check_dense(name, array.values(), spot)
        }
    }
}

/// What to say of a number of a thing: that there are not so many, or that no id is so large.
fn too_large(value: i64, of: Rows, rows: u64, unknown: u64) -> ValueProblem {
    if rows < unknown && value >= 0 {
        return ValueProblem::NoSuchRow { value, of: of.as_str(), rows };
    }
    if unknown == ID_END { ValueProblem::Id { value } } else { ValueProblem::Size { value } }
}

/// An error for the first value that is negative, or is `end` or more, and is not the exception.
fn below(
    array: &Int64Array,
    end: u64,
    except: Option<i64>,
    wrong: impl FnOnce(usize, i64) -> TableError,
) -> Result<(), TableError> {
    // Negative numbers are the largest when their bits are seen as unsigned.
    let most = array.values().iter().fold(0, |most: u64, value| most.max(value.cast_unsigned()));
    if most < end {
        return Ok(());
    }
    let is_wrong = |row: &usize| {
        let value = array.value(*row);
        array.is_valid(*row) && value.cast_unsigned() >= end && Some(value) != except
    };
    match (0..array.len()).find(is_wrong) {
        Some(row) => Err(wrong(row, array.value(row))),
        None => Ok(()),
    }
}

fn check_dense(name: &str, values: &[i64], spot: &Spot<'_>) -> Result<(), TableError> {
    let Some(first) = spot.in_table(0) else { return Ok(()) };
    if spot.rows.are_one(values.len()) {
        let first = first.cast_signed();
        let other = (first..).zip(values).fold(0, |bits, (wanted, value)| bits | (wanted ^ value));
        if other == 0 {
            return Ok(());
        }
    }
    let wanted = |row| spot.in_table(row).unwrap_or_default().cast_signed();
    let wrong = values.iter().enumerate().find(|(row, value)| **value != wanted(*row));
    match wrong {
        Some((row, value)) => {
            Err(spot.wrong(name, row, ValueProblem::Step { value: *value, wanted: wanted(row) }))
        }
        None => Ok(()),
    }
}
