//! Tables whose rows are handed over one by one.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};

use super::typed::Columns;
use super::{TableError, ValueProblem};

/// Rows in a batch.
pub(super) const BATCH: usize = 64 << 10;

pub(super) fn ids(values: &[u32]) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.iter().map(|id| i64::from(*id))))
}

pub(super) fn sizes(values: &[u64]) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.iter().map(|n| i64::try_from(*n).unwrap_or(i64::MAX))))
}

pub(super) fn shares(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values.iter().copied()))
}

pub(super) fn words<'a>(words: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(words))
}

pub(super) fn maybe_words<'a>(words: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(StringArray::from_iter(words))
}

pub(super) fn flags(values: &[bool]) -> ArrayRef {
    Arc::new(BooleanArray::from(values.to_vec()))
}

/// A writer that gathers rows and a reader that hands them out one by one.
macro_rules! row_table {
    ($table:ident, $row:ident, $writer:ident, $reader:ident, $name:literal, $key:ty, $order:expr, $encode:expr, $decode:expr) => {
        #[doc = concat!("Writes `", $name, "`, in ascending order.")]
        #[derive(Debug)]
        pub struct $writer {
            part: PartWriter,
            last: Option<$key>,
            rows: Vec<$row>,
        }

        impl $writer {
            #[doc = concat!("Writes to a part of the table `", $name, "`.")]
            pub fn new(part: PartWriter) -> $writer {
                debug_assert_eq!(part.table(), &Table::$table);
                $writer { part, last: None, rows: Vec::new() }
            }

            /// Rows so far.
            pub fn rows(&self) -> u64 {
                self.part.rows() + self.rows.len() as u64
            }

            /// Appends a row, which must come after the one before.
            pub fn push(&mut self, row: &$row) -> Result<(), TableError> {
                let key: $key = ($order)(row);
                if self.last.is_some_and(|last| last >= key) {
                    return Err(TableError::OutOfOrder { table: $name.to_owned(), row: self.rows() });
                }
                self.last = Some(key);
                self.rows.push(row.to_owned());
                if self.rows.len() == BATCH { self.flush() } else { Ok(()) }
            }

            fn flush(&mut self) -> Result<(), TableError> {
                let columns: Vec<ArrayRef> = ($encode)(self.rows.as_slice());
                let batch = RecordBatch::try_new(Arc::clone(self.part.schema()), columns)
                    .map_err(|e| TableError::Encode { table: $name.to_owned(), reason: e.to_string() })?;
                self.rows.clear();
                self.part.write(&batch)
            }

            /// Writes the rest and the footer; with `sync`, returns when the file is on the disk.
            pub fn finish(mut self, sync: bool) -> Result<PartMeta, TableError> {
                if !self.rows.is_empty() {
                    self.flush()?;
                }
                self.part.finish(sync)
            }
        }

        #[doc = concat!("Reads `", $name, "`, one row after the other.")]
        #[derive(Debug)]
        pub struct $reader {
            reader: TableReader,
            rows: std::vec::IntoIter<$row>,
        }

        impl $reader {
            /// Reads the files in order.
            pub fn new(inputs: impl IntoIterator<Item = impl Into<Input>>) -> $reader {
                $reader { reader: TableReader::new(Table::$table, inputs), rows: Vec::new().into_iter() }
            }

            /// Leaves out row groups without values of this range in the first column that rows are sorted by; others of
            /// the row groups that are read still come.
            pub fn within(mut self, first: std::ops::RangeInclusive<u32>) -> $reader {
                let (start, end) = (i64::from(*first.start()), i64::from(*first.end()));
                if let Some(column) = Table::$table.sorted_by().first() {
                    self.reader = self.reader.within(column, start..=end);
                }
                self
            }

            fn fill(&mut self) -> Result<bool, TableError> {
                let Some((batch, file)) = self.reader.next_batch()? else { return Ok(false) };
                let columns = Columns { batch: &batch, table: &Table::$table, file };
                let rows: Result<Vec<$row>, TableError> = ($decode)(&columns);
                self.rows = rows?.into_iter();
                Ok(true)
            }
        }

        impl Iterator for $reader {
            type Item = Result<$row, TableError>;

            #[inline]
            fn next(&mut self) -> Option<Result<$row, TableError>> {
                loop {
                    if let Some(row) = self.rows.next() {
                        return Some(Ok(row));
                    }
                    match self.fill() {
                        Ok(true) => {}
                        Ok(false) => return None,
                        Err(error) => return Some(Err(error)),
                    }
                }
            }
        }
    };
}
pub(super) use row_table;

impl Columns<'_> {
    /// Numbers from 0 to 1.
    pub(super) fn shares(&self, name: &str) -> Result<Float64Array, TableError> {
        let array = self.typed(name, |array| array.as_primitive_opt::<Float64Type>())?;
        match array.values().iter().find(|value| !(0.0..=1.0).contains(*value)) {
            Some(value) => Err(self.place(name).wrong(ValueProblem::Share { value: *value })),
            None => Ok(array),
        }
    }
}
