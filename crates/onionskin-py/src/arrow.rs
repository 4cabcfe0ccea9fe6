//! Arrow data in and out through the PyCapsule interface: whoever speaks it (PyArrow, Polars,
//! pandas, DuckDB, Hugging Face datasets) hands over pointers, and no byte is copied. Written by
//! hand over arrow's own C structures, so that the package needs no other.
//!
//! This is the only file of the package with unsafe code. What comes in is checked in full
//! (offsets, UTF-8) before anything reads it.
#![allow(unsafe_code, reason = "the C data interface is pointers")]

use std::ffi::{CStr, c_char};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader, StructArray, make_array};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyAttributeError, PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// What a consumer is handed.
pub(crate) type Capsule<'py> = PyResult<Bound<'py, PyCapsule>>;

/// A type that a consumer asks for. Another one may be given, so nobody looks at it.
#[derive(FromPyObject)]
pub(crate) struct AskedFor(#[expect(dead_code, reason = "it is taken and not looked at")] Py<PyAny>);

/// Arrays that come in one after the other, as they are asked for.
pub(crate) struct Arrays {
    field: Field,
    source: Source,
}

enum Source {
    One(Option<ArrayRef>),
    Stream(FFI_ArrowArrayStream),
}

impl Arrays {
    /// Of an object with `__arrow_c_stream__` or `__arrow_c_array__`; `None` when it has neither.
    pub(crate) fn of(object: &Bound<'_, PyAny>) -> PyResult<Option<Arrays>> {
        if object.hasattr("__arrow_c_array__")? {
            return Arrays::of_array(object).map(Some);
        }
        if object.hasattr("__arrow_c_stream__")? {
            return Arrays::of_stream(object).map(Some);
        }
        Ok(None)
    }

    fn of_array(object: &Bound<'_, PyAny>) -> PyResult<Arrays> {
        let pair = object.call_method0("__arrow_c_array__")?;
        let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair.extract()?;
        let schema = capsule(&schema)?.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
        let array = capsule(&array)?.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
        // SAFETY: the name says what the capsule holds, and the capsule lives until the end of this
        // function.
        let field = field(unsafe { schema.as_ref() })?;
        // SAFETY: the structure is moved out and marked as released, as the interface asks of a
        // consumer.
        let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
        let array = import(array, field.data_type()).map_err(bad)?;
        Ok(Arrays { field, source: Source::One(Some(array)) })
    }

    fn of_stream(object: &Bound<'_, PyAny>) -> PyResult<Arrays> {
        let stream = object.call_method0("__arrow_c_stream__")?;
        let stream = capsule(&stream)?.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: the name says what the capsule holds; the structure is moved out and marked as
        // released.
        let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
        let Some(get_schema) = stream.get_schema else {
            return Err(PyValueError::new_err("the Arrow stream has been read already"));
        };
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: a stream that is not released has this function, and `schema` is ours to be
        // filled.
        if unsafe { get_schema(&mut stream, &mut schema) } != 0 {
            return Err(bad(last_error(&mut stream)));
        }
        let field = field(&schema)?;
        Ok(Arrays { field, source: Source::Stream(stream) })
    }

    /// What the arrays are: a struct when they are rows of a table.
    pub(crate) fn field(&self) -> &Field {
        &self.field
    }
}

impl Iterator for Arrays {
    type Item = Result<ArrayRef, ArrowError>;

    /// To be called without the interpreter lock: a producer may wait for another thread that wants
    /// it.
    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.source {
            Source::One(array) => array.take().map(Ok),
            Source::Stream(stream) => {
                let get_next = stream.get_next?;
                let mut array = FFI_ArrowArray::empty();
                // SAFETY: a stream that is not released has this function, and `array` is ours to
                // be filled.
                if unsafe { get_next(stream, &mut array) } != 0 {
                    return Some(Err(last_error(stream)));
                }
                // A released array is the end.
                (!array.is_released()).then(|| import(array, self.field.data_type()))
            }
        }
    }
}

fn capsule<'a, 'py>(object: &'a Bound<'py, PyAny>) -> PyResult<&'a Bound<'py, PyCapsule>> {
    object.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("an Arrow method did not return a PyCapsule"))
}

fn field(schema: &FFI_ArrowSchema) -> PyResult<Field> {
    Field::try_from(schema).map_err(bad)
}

fn import(array: FFI_ArrowArray, data_type: &DataType) -> Result<ArrayRef, ArrowError> {
    // SAFETY: the producer promises an array of the type it named. What can be checked is checked
    // below.
    let data = unsafe { from_ffi_and_data_type(array, data_type.clone()) }?;
    data.validate_full()?;
    Ok(make_array(data))
}

fn last_error(stream: &mut FFI_ArrowArrayStream) -> ArrowError {
    let text = stream.get_last_error.and_then(|get_last_error| {
        // SAFETY: the stream is not released; the text is null or lives until the stream is used
        // again.
        let text: *const c_char = unsafe { get_last_error(stream) };
        // SAFETY: not null, and ended by a zero.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
    });
    ArrowError::CDataInterface(text.unwrap_or_else(|| "the producer gave no reason".to_owned()))
}

fn bad(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("Arrow data cannot be read: {error}"))
}

/// Rows of a table, handed on batch by batch to whoever takes the capsule. It can be taken once.
pub(crate) type Reader = Box<dyn RecordBatchReader + Send>;

/// The capsule of a stream of batches.
pub(crate) fn stream_capsule<'py>(py: Python<'py>, reader: Reader) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), STREAM)
}

/// The capsule of a schema, as a struct of its columns.
pub(crate) fn schema_capsule<'py>(py: Python<'py>, schema: &Schema) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowSchema::try_from(schema).map_err(bad)?, SCHEMA)
}

/// One column of results, which others take without copying: `numpy.asarray`, `pyarrow.array`,
/// `polars.Series`, whatever speaks Arrow.
///
/// >>> from onionskin import sketches
/// >>> sketches(["one text", "another text"], recipe="w2-rabin64-t4")
/// ArrowArray(FixedSizeList(4 x non-null UInt32), 2 rows)
#[pyclass(frozen, module = "onionskin", name = "ArrowArray")]
pub(crate) struct PyArrowArray {
    array: ArrayRef,
}

impl PyArrowArray {
    pub(crate) fn new(array: ArrayRef) -> PyArrowArray {
        PyArrowArray { array }
    }

    /// The numbers of the array and their shape, for numpy: little-endian, without offsets.
    fn numbers(&self) -> Option<(Vec<usize>, &'static str, usize)> {
        let (shape, values) = match self.array.data_type() {
            DataType::FixedSizeList(_, width) => {
                let list = self.array.as_any().downcast_ref::<arrow_array::FixedSizeListArray>()?;
                (vec![list.len(), usize::try_from(*width).ok()?], Arc::clone(list.values()))
            }
            _ => (vec![self.array.len()], Arc::clone(&self.array)),
        };
        let (kind, size) = match values.data_type() {
            DataType::UInt32 => ("<u4", 4),
            DataType::UInt64 => ("<u8", 8),
            DataType::Float64 => ("<f8", 8),
            _ => return None,
        };
        let data = values.to_data();
        let address = data.buffers().first()?.as_ptr() as usize + data.offset() * size;
        Some((shape, kind, address))
    }
}

#[pymethods]
impl PyArrowArray {
    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __repr__(&self) -> String {
        format!("ArrowArray({}, {} rows)", self.array.data_type(), self.array.len())
    }

    /// A row: a number, or the list of its numbers; `None` where it is null.
    fn __getitem__<'py>(&self, py: Python<'py>, row: isize) -> PyResult<Bound<'py, PyAny>> {
        let len = self.array.len();
        let at = if row < 0 { row.checked_add_unsigned(len) } else { Some(row) };
        let at = at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < len);
        let at = at.ok_or_else(|| PyIndexError::new_err(format!("row {row} of {len}")))?;
        crate::values::to_list(py, &self.array.slice(at, 1))?.get_item(0)
    }

    /// All rows as Python has them.
    fn tolist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        crate::values::to_list(py, &self.array)
    }

    /// How many rows are null.
    #[getter]
    fn null_count(&self) -> usize {
        self.array.null_count()
    }

    /// Bytes that the array keeps in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.array.get_buffer_memory_size()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let field = Field::new("", self.array.data_type().clone(), true);
        PyCapsule::new_with_value(py, FFI_ArrowSchema::try_from(&field).map_err(bad)?, SCHEMA)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<AskedFor>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        drop(requested_schema);
        let (array, _) = to_ffi(&self.array.to_data()).map_err(bad)?;
        let schema = self.__arrow_c_schema__(py)?;
        let array = PyCapsule::new_with_value(py, array, ARRAY)?;
        PyTuple::new(py, [schema, array])
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (shape, kind, address) =
            self.numbers().ok_or_else(|| PyAttributeError::new_err("only numbers are handed to numpy"))?;
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", PyTuple::new(py, shape)?)?;
        interface.set_item("typestr", kind)?;
        // Read-only, because others may see the same bytes.
        interface.set_item("data", (address, true))?;
        Ok(interface)
    }
}

/// Batches as they come, to be taken once.
pub(crate) struct Batches {
    schema: SchemaRef,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>,
}

impl Batches {
    pub(crate) fn new(
        schema: SchemaRef,
        batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send + 'static,
    ) -> Batches {
        Batches { schema, batches: Box::new(batches) }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// Rows of a struct array as a batch.
pub(crate) fn batch(array: &ArrayRef) -> Option<RecordBatch> {
    array.as_any().downcast_ref::<StructArray>().map(RecordBatch::from)
}
