//! Values of Arrow as values of Python, for who has no other library at hand.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float64Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_schema::DataType;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// A column as a list; null is `None`, times are microseconds since 1970.
pub(crate) fn to_list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    match array.data_type() {
        DataType::Int64 => numbers::<Int64Type>(py, array.as_primitive()),
        DataType::Int32 => numbers::<Int32Type>(py, array.as_primitive()),
        DataType::UInt32 => numbers::<UInt32Type>(py, array.as_primitive()),
        DataType::UInt64 => numbers::<UInt64Type>(py, array.as_primitive()),
        DataType::Float64 => numbers::<Float64Type>(py, array.as_primitive()),
        DataType::Timestamp(..) => {
            let array = array.as_primitive_opt::<TimestampMicrosecondType>();
            numbers(py, array.ok_or_else(|| PyTypeError::new_err("a time of another unit"))?)
        }
        DataType::Boolean => PyList::new(py, array.as_boolean().iter()),
        DataType::Utf8 => PyList::new(py, array.as_string::<i32>().iter()),
        DataType::FixedSizeBinary(_) => PyList::new(
            py,
            array.as_fixed_size_binary().iter().map(|value| value.map(|bytes| PyBytes::new(py, bytes))),
        ),
        DataType::FixedSizeList(..) => {
            let list = array.as_fixed_size_list();
            let rows: Vec<Bound<'py, PyAny>> = (0..list.len())
                .map(|row| {
                    if list.is_null(row) {
                        return Ok(py.None().into_bound(py));
                    }
                    to_list(py, &list.value(row))?.into_bound_py_any(py)
                })
                .collect::<PyResult<_>>()?;
            PyList::new(py, rows)
        }
        other => Err(PyTypeError::new_err(format!("no values of {other} are made here"))),
    }
}

fn numbers<'py, T: ArrowPrimitiveType>(
    py: Python<'py>,
    array: &PrimitiveArray<T>,
) -> PyResult<Bound<'py, PyList>>
where
    T::Native: IntoPyObject<'py>,
{
    PyList::new(py, array.iter())
}
