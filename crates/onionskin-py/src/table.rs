//! Tables of an atlas, read when somebody takes them.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_schema::{ArrowError, Schema, SchemaRef};
use onionskin_store::table::TableReader;
use onionskin_store::{Atlas, Table, TableName};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

use crate::arrow::{AskedFor, Batches, Capsule, schema_capsule, stream_capsule};
use crate::error::failed;

/// The manifest of an atlas, as JSON.
#[pyfunction]
pub(crate) fn read_manifest(path: PathBuf) -> PyResult<String> {
    let atlas = Atlas::open(path).map_err(failed)?;
    let bytes = atlas.manifest().to_bytes().map_err(failed)?;
    String::from_utf8(bytes).map_err(failed)
}

/// Some columns of a table, and perhaps some of its rows. Nothing is read before a consumer asks
/// for it.
#[pyclass(frozen, module = "onionskin._onionskin", name = "TableScan")]
pub(crate) struct TableScan {
    atlas: Atlas,
    name: TableName,
    files: Vec<PathBuf>,
    table: Table,
    schema: SchemaRef,
    rows: u64,
    within: Option<(&'static str, i64, i64)>,
    batch_rows: usize,
}

/// Columns that rows of a table can be looked up by: it is sorted by them.
fn sorted_column(table: &Table) -> Option<&'static str> {
    table.sorted_by().first().copied()
}

#[pymethods]
impl TableScan {
    #[new]
    #[pyo3(signature = (path, name, columns = None, within = None, batch_rows = 8192))]
    fn new(
        path: PathBuf,
        name: &str,
        columns: Option<Vec<String>>,
        within: Option<(i64, i64)>,
        batch_rows: usize,
    ) -> PyResult<TableScan> {
        let atlas = Atlas::open(path).map_err(failed)?;
        let known = TableName::from(name);
        let entry = atlas.table(&known).map_err(|error| PyKeyError::new_err(error.to_string()))?;
        let rows = entry.rows;
        let table = known.table().ok_or_else(|| {
            PyKeyError::new_err(format!("the table {name} is not one that this version knows"))
        })?;
        let whole = schema_of(&table, &atlas)?;
        let schema = match columns {
            None => whole,
            Some(columns) => {
                for column in &columns {
                    if whole.field_with_name(column).is_err() {
                        let known: Vec<&str> =
                            whole.fields().iter().map(|field| field.name().as_str()).collect();
                        return Err(PyKeyError::new_err(format!(
                            "the table {name} has no column {column:?}; it has {}",
                            known.join(", ")
                        )));
                    }
                }
                let fields = whole.fields().iter().filter(|field| columns.contains(field.name())).cloned();
                Arc::new(Schema::new(fields.collect::<Vec<_>>()))
            }
        };
        let within = within.and_then(|(low, high)| sorted_column(&table).map(|column| (column, low, high)));
        let files = atlas.paths(&known).map_err(failed)?;
        Ok(TableScan { atlas, name: known, files, table, schema, rows, within, batch_rows })
    }

    #[getter]
    fn num_rows(&self) -> u64 {
        self.rows
    }

    #[getter]
    fn columns(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    #[getter]
    fn types(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    #[getter]
    fn files(&self) -> Vec<PathBuf> {
        self.files.clone()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> Capsule<'py> {
        schema_capsule(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(&self, py: Python<'py>, requested_schema: Option<AskedFor>) -> Capsule<'py> {
        drop(requested_schema);
        stream_capsule(py, Box::new(Batches::new(Arc::clone(&self.schema), self.batches())))
    }

    /// Rows as dictionaries, in pieces.
    fn rows(&self) -> PyResult<Rows> {
        Ok(Rows { batches: std::sync::Mutex::new(Box::new(self.batches())) })
    }
}

impl TableScan {
    fn batches(&self) -> impl Iterator<Item = Result<arrow_array::RecordBatch, ArrowError>> + Send + 'static {
        let names: Vec<String> = self.schema.fields().iter().map(|field| field.name().clone()).collect();
        let (atlas, name, table) = (self.atlas.clone(), self.name.clone(), self.table.clone());
        let (within, batch_rows, schema) = (self.within, self.batch_rows, Arc::clone(&self.schema));
        // Files are compared with their checksums when the first batch is asked for.
        let open = move || -> Result<TableReader, ArrowError> {
            let inputs = atlas.inputs(&name).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let reader = TableReader::new(table.clone(), inputs).columns(&names).batch_rows(batch_rows);
            Ok(match within {
                Some((column, low, high)) => reader.within(column, low..=high),
                None => reader,
            })
        };
        let mut reader = None;
        std::iter::from_fn(move || {
            let reader = match &mut reader {
                Some(reader) => reader,
                none => match open() {
                    Ok(opened) => none.insert(opened),
                    Err(error) => return Some(Err(error)),
                },
            };
            match reader.next_batch() {
                Ok(None) => None,
                Ok(Some((batch, _))) => Some(batch.with_schema(Arc::clone(&schema))),
                Err(error) => Some(Err(ArrowError::ExternalError(Box::new(error)))),
            }
        })
    }
}

/// The schema with the lengths of lists that the files have.
fn schema_of(table: &Table, atlas: &Atlas) -> PyResult<SchemaRef> {
    if !matches!(table, Table::Sketches { .. } | Table::Features { .. }) {
        return Ok(table.schema());
    }
    let inputs = atlas.inputs(&table.name()).map_err(failed)?;
    let mut reader = TableReader::new(table.clone(), inputs.into_iter().take(1)).batch_rows(1);
    match reader.next_batch().map_err(failed)? {
        Some((batch, _)) => Ok(batch.schema()),
        None => Ok(table.schema()),
    }
}

/// Rows of a table as Python has them.
#[pyclass(frozen, module = "onionskin._onionskin", name = "TableRows")]
pub(crate) struct Rows {
    batches: std::sync::Mutex<Box<dyn Iterator<Item = Result<arrow_array::RecordBatch, ArrowError>> + Send>>,
}

#[pymethods]
impl Rows {
    fn __iter__(slf: Py<Rows>) -> Py<Rows> {
        slf
    }

    /// The next columns, each a list, by name.
    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, pyo3::types::PyDict>>> {
        let next = py.detach(|| match self.batches.lock() {
            Ok(mut batches) => batches.next(),
            Err(_) => None,
        });
        let Some(batch) = next else { return Ok(None) };
        let batch = batch.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let dict = pyo3::types::PyDict::new(py);
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            dict.set_item(field.name(), crate::values::to_list(py, column)?)?;
        }
        Ok(Some(dict))
    }
}
