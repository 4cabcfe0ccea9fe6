//! Columns by name, with a clear word where one is missing or of another type.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{ArrowError, DataType};

/// The columns of a batch.
pub(super) struct Columns<'a>(pub &'a RecordBatch);

impl<'a> Columns<'a> {
    pub fn get(&self, name: &str) -> Result<&'a ArrayRef, ArrowError> {
        self.0
            .column_by_name(name)
            .ok_or_else(|| ArrowError::SchemaError(format!("column {name} is missing")))
    }

    fn wrong(&self, name: &str, column: &ArrayRef) -> ArrowError {
        ArrowError::SchemaError(format!("column {name} is of type {}", column.data_type()))
    }

    pub fn longs(&self, name: &str) -> Result<&'a Int64Array, ArrowError> {
        let column = self.get(name)?;
        column.as_primitive_opt::<Int64Type>().ok_or_else(|| self.wrong(name, column))
    }

    /// 64-bit numbers that may be absent; also microseconds of a date.
    pub fn maybe_longs(&self, name: &str) -> Result<Vec<Option<i64>>, ArrowError> {
        let column = self.get(name)?;
        if let Some(dates) = column.as_primitive_opt::<TimestampMicrosecondType>() {
            return Ok(dates.iter().collect());
        }
        Ok(self.longs(name)?.iter().collect())
    }

    /// Strings of any width.
    pub fn texts(&self, name: &str) -> Result<Texts<'a>, ArrowError> {
        let column = self.get(name)?;
        match column.data_type() {
            DataType::Utf8 => Ok(Texts::Narrow(column.as_string())),
            DataType::LargeUtf8 => Ok(Texts::Wide(column.as_string())),
            DataType::Utf8View => Ok(Texts::View(column.as_string_view())),
            _ => Err(self.wrong(name, column)),
        }
    }

    /// Bytes of any width.
    pub fn bytes(&self, name: &str) -> Result<Bytes<'a>, ArrowError> {
        let column = self.get(name)?;
        match column.data_type() {
            DataType::Binary => Ok(Bytes::Narrow(column.as_binary())),
            DataType::LargeBinary => Ok(Bytes::Wide(column.as_binary())),
            DataType::BinaryView => Ok(Bytes::View(column.as_binary_view())),
            _ => Err(self.wrong(name, column)),
        }
    }

    /// Lists of 64-bit numbers.
    pub fn lists(&self, name: &str) -> Result<Lists<'a, Int64Type>, ArrowError> {
        Lists::new(self, name)
    }

    /// Lists of 32-bit numbers.
    pub fn short_lists(&self, name: &str) -> Result<Lists<'a, Int32Type>, ArrowError> {
        Lists::new(self, name)
    }
}

pub(super) enum Texts<'a> {
    Narrow(&'a arrow_array::StringArray),
    Wide(&'a arrow_array::LargeStringArray),
    View(&'a arrow_array::StringViewArray),
}

impl<'a> Texts<'a> {
    pub fn get(&self, row: usize) -> Option<&'a str> {
        match self {
            Texts::Narrow(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Texts::Wide(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Texts::View(texts) => texts.is_valid(row).then(|| texts.value(row)),
        }
    }
}

pub(super) enum Bytes<'a> {
    Narrow(&'a arrow_array::BinaryArray),
    Wide(&'a arrow_array::LargeBinaryArray),
    View(&'a arrow_array::BinaryViewArray),
}

impl<'a> Bytes<'a> {
    pub fn get(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Bytes::Narrow(bytes) => bytes.is_valid(row).then(|| bytes.value(row)),
            Bytes::Wide(bytes) => bytes.is_valid(row).then(|| bytes.value(row)),
            Bytes::View(bytes) => bytes.is_valid(row).then(|| bytes.value(row)),
        }
    }
}

/// Lists of numbers, of any width of offsets.
pub(super) enum Lists<'a, T: arrow_array::types::ArrowPrimitiveType> {
    Narrow(&'a [i32], &'a [T::Native]),
    Wide(&'a [i64], &'a [T::Native]),
}

impl<'a, T: arrow_array::types::ArrowPrimitiveType> Lists<'a, T> {
    fn new(columns: &Columns<'a>, name: &str) -> Result<Lists<'a, T>, ArrowError> {
        let column = columns.get(name)?;
        let wrong = || columns.wrong(name, column);
        match column.data_type() {
            DataType::List(_) => {
                let lists = column.as_list::<i32>();
                let values = lists.values().as_primitive_opt::<T>().ok_or_else(wrong)?;
                Ok(Lists::Narrow(lists.value_offsets(), values.values()))
            }
            DataType::LargeList(_) => {
                let lists = column.as_list::<i64>();
                let values = lists.values().as_primitive_opt::<T>().ok_or_else(wrong)?;
                Ok(Lists::Wide(lists.value_offsets(), values.values()))
            }
            _ => Err(wrong()),
        }
    }

    /// The list of a row; empty when there is none.
    pub fn get(&self, row: usize) -> &'a [T::Native] {
        match self {
            Lists::Narrow(offsets, values) => &values[offsets[row] as usize..offsets[row + 1] as usize],
            Lists::Wide(offsets, values) => &values[offsets[row] as usize..offsets[row + 1] as usize],
        }
    }
}
