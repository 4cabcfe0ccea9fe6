//! What `onionskin.spark` calls inside the executors: rows that Spark has brought together go in as
//! Arrow, rows come out as Arrow.
//!
//! The mathematics is in the `parts` of the stage crates; here columns are taken apart and put
//! together. Ids are 64 bits wide. Nothing relies on the order of rows.

mod columns;
mod manifest;
mod mirror;
mod scan;
mod similar;

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::arrow::{Arrays, AskedFor, Batches, Capsule, batch, stream_capsule};

/// The kernels of `onionskin.spark`. Not for people: their rows are those of its frames, and change
/// with them.
#[pymodule]
pub(crate) mod spark {
    #[pymodule_export]
    use super::MadeRows;
    #[pymodule_export]
    use super::manifest::{checked_manifest, sealed_manifest};
    #[pymodule_export]
    use super::mirror::{collections, components, folders, regions, rewritings, voters};
    #[pymodule_export]
    use super::scan::{Worker, domains, extractors, file, plan};
    #[pymodule_export]
    use super::similar::{
        centred, count_shared, crowd_limit, filter_for, levels, meetings, prefix, super_features, unite,
    };
}

/// All rows of what was handed in.
fn rows_of(data: &Bound<'_, PyAny>) -> PyResult<Vec<RecordBatch>> {
    let arrays = Arrays::of(data)?.ok_or_else(|| {
        PyValueError::new_err("not Arrow data: it has neither __arrow_c_stream__ nor __arrow_c_array__")
    })?;
    // Whoever produces the rows may want the interpreter to do it.
    let arrays: Vec<_> = data.py().detach(|| arrays.collect::<Result<_, _>>()).map_err(failed)?;
    arrays
        .iter()
        .map(|array| {
            batch(array).ok_or_else(|| PyValueError::new_err("not rows of a table: a struct is wanted"))
        })
        .collect()
}

/// Rows that a kernel has made. Speaks Arrow (`__arrow_c_stream__`).
#[pyclass(frozen, module = "onionskin._onionskin.spark")]
pub(crate) struct MadeRows(RecordBatch);

#[pymethods]
impl MadeRows {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(&self, py: Python<'py>, requested_schema: Option<AskedFor>) -> Capsule<'py> {
        drop(requested_schema);
        let batches = Batches::new(self.0.schema(), std::iter::once(Ok(self.0.clone())));
        stream_capsule(py, Box::new(batches))
    }
}

fn failed(error: ArrowError) -> PyErr {
    PyValueError::new_err(error.to_string())
}

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// A batch out of named columns.
fn table(columns: Vec<(&str, arrow_array::ArrayRef)>) -> Result<RecordBatch, ArrowError> {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
}

/// A column of 64-bit numbers.
fn longs(values: impl IntoIterator<Item = i64>) -> arrow_array::ArrayRef {
    Arc::new(arrow_array::Int64Array::from_iter_values(values))
}
