//! Texts that come in: a list of strings, whose letters are read where they are, or a column of
//! Arrow.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::PyString;

use crate::arrow::{Arrays, batch};

/// Texts, not yet read.
pub(crate) enum Texts {
    List(Vec<Option<PyBackedStr>>),
    Arrow { arrays: Arrays, column: Option<String> },
}

/// Texts that are worked on together. Between two of them it is asked whether to stop.
const PIECE_BYTES: usize = 16 << 20;
const PIECE_TEXTS: usize = 64 << 10;

impl Texts {
    /// Of an argument. `column` names the column of a table.
    pub(crate) fn of(object: &Bound<'_, PyAny>, column: Option<&str>) -> PyResult<Texts> {
        if object.is_instance_of::<PyString>() {
            return Err(PyTypeError::new_err("one str where many are wanted; write [text]"));
        }
        if let Some(arrays) = Arrays::of(object)? {
            let column = column_of(arrays.field().data_type(), column)?;
            return Ok(Texts::Arrow { arrays, column });
        }
        if column.is_some() {
            return Err(PyTypeError::new_err("column= is for tables; a list of str has none"));
        }
        let mut list = Vec::with_capacity(object.len().unwrap_or(0));
        for item in object.try_iter()? {
            list.push(item?.extract::<Option<PyBackedStr>>()?);
        }
        Ok(Texts::List(list))
    }

    /// Hands over the texts some at a time, without the interpreter lock. Pieces are in order;
    /// nulls are `None`.
    pub(crate) fn each_piece(
        self,
        py: Python<'_>,
        mut work: impl FnMut(&[Option<&str>]) -> PyResult<()> + Send,
    ) -> PyResult<()> {
        match self {
            Texts::List(list) => {
                let texts: Vec<Option<&str>> = list.iter().map(Option::as_deref).collect();
                pieces(py, &texts, &mut work)
            }
            Texts::Arrow { mut arrays, column } => loop {
                let next = py.detach(|| arrays.next());
                let Some(array) = next else { return Ok(()) };
                let array = array.map_err(|error| PyValueError::new_err(error.to_string()))?;
                let array = match &column {
                    None => array,
                    Some(name) => {
                        batch(&array).and_then(|batch| batch.column_by_name(name).cloned()).ok_or_else(
                            || PyValueError::new_err(format!("a batch without the column {name:?}")),
                        )?
                    }
                };
                let array = strings(array)?;
                pieces(py, &slices(&array), &mut work)?;
            },
        }
    }
}

fn pieces(
    py: Python<'_>,
    mut texts: &[Option<&str>],
    work: &mut (impl FnMut(&[Option<&str>]) -> PyResult<()> + Send),
) -> PyResult<()> {
    while !texts.is_empty() {
        let mut bytes = 0;
        let long_enough = |text: &Option<&str>| {
            bytes += text.map_or(0, str::len);
            bytes >= PIECE_BYTES
        };
        let end = texts.iter().take(PIECE_TEXTS).position(long_enough).map_or(PIECE_TEXTS, |at| at + 1);
        let (piece, later) = texts.split_at(end.min(texts.len()));
        py.detach(|| work(piece))?;
        py.check_signals()?;
        texts = later;
    }
    Ok(())
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

/// Which column of a table has the texts; none when the data is a column itself.
fn column_of(data_type: &DataType, wanted: Option<&str>) -> PyResult<Option<String>> {
    let DataType::Struct(fields) = data_type else {
        if !is_text(data_type) {
            return Err(PyTypeError::new_err(format!("texts are wanted, not {data_type}")));
        }
        return match wanted {
            None => Ok(None),
            Some(_) => Err(PyTypeError::new_err("column= is for tables; this is a column already")),
        };
    };
    let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
    let name = match (wanted, names.as_slice()) {
        (Some(name), _) => name,
        (None, [only]) => only,
        (None, _) => "text",
    };
    match fields.iter().find(|field| field.name() == name) {
        None => Err(PyValueError::new_err(format!(
            "no column {name:?}; the table has {}; say column=",
            names.join(", ")
        ))),
        Some(field) if !is_text(field.data_type()) => {
            Err(PyTypeError::new_err(format!("column {name:?} has {}, not texts", field.data_type())))
        }
        Some(_) => Ok(Some(name.to_owned())),
    }
}

/// Texts that are spelled by number become plain.
fn strings(array: ArrayRef) -> PyResult<ArrayRef> {
    match array.data_type() {
        DataType::Dictionary(..) => arrow_cast::cast(&array, &DataType::LargeUtf8)
            .map_err(|error| PyValueError::new_err(error.to_string())),
        _ => Ok(array),
    }
}

fn slices(array: &ArrayRef) -> Vec<Option<&str>> {
    match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().collect(),
        DataType::Utf8View => array.as_string_view().iter().collect(),
        _ => Vec::new(),
    }
}

/// Threads that are wanted: as many as said, else one for each core.
pub(crate) fn threads(wanted: Option<usize>) -> PyResult<usize> {
    match wanted {
        Some(0) => Err(PyValueError::new_err("threads is 1 at least")),
        Some(n) => Ok(n.min(1024)),
        None => Ok(std::thread::available_parallelism().map_or(1, std::num::NonZero::get)),
    }
}

/// Where texts are when they come as Arrow; for a test that nothing is copied.
#[pyfunction]
pub(crate) fn _text_addresses(texts: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let mut addresses = Vec::new();
    Texts::of(texts, None)?.each_piece(texts.py(), |piece| {
        addresses.extend(piece.iter().map(|text| text.map_or(0, |text| text.as_ptr() as usize)));
        Ok(())
    })?;
    Ok(addresses)
}
