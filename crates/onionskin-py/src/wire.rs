//! Anything that serialises as plain values of Python: summaries, rows and answers have the fields
//! that `--json` shows.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde::Serialize;
use serde_json::Value;

use crate::error::value_error;

/// Dictionaries, lists, strings, numbers, `True`, `False` and `None`.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    of_value(py, &serde_json::to_value(value).map_err(value_error)?)
}

fn of_value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::Bool(value) => value.into_bound_py_any(py),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(whole), _) => whole.into_bound_py_any(py),
            (None, Some(whole)) => whole.into_bound_py_any(py),
            (None, None) => number.as_f64().into_bound_py_any(py),
        },
        Value::String(text) => text.into_bound_py_any(py),
        Value::Array(values) => {
            let values = values.iter().map(|value| of_value(py, value)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, values)?.into_bound_py_any(py)
        }
        Value::Object(fields) => {
            let dict = PyDict::new(py);
            for (name, value) in fields {
                dict.set_item(name, of_value(py, value)?)?;
            }
            Ok(dict.into_any())
        }
    }
}
