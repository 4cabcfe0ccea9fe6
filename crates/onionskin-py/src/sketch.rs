//! Sketches and features of texts, one at a time and many at once.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, FixedSizeListArray, UInt32Array, UInt64Array};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};
use onionskin_core::sketch::{estimate_resemblance, estimate_resemblance_from_bottom};
use onionskin_core::{Analyzer, Recipe, SketchScheme};
use onionskin_seen::intake::RECIPE;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::arrow::PyArrowArray;
use crate::error::value_error;
use crate::recipe::{PyRecipe, recipe_of};
use crate::texts::{Texts, threads};

thread_local! {
    /// The analyzer of the last call: permutations and tables take longer to make than a short text
    /// to read.
    static LAST: RefCell<Option<(Recipe, u64, Analyzer)>> = const { RefCell::new(None) };
}

/// With the analyzer of a recipe and a seed.
fn analyzing<T>(recipe: &Recipe, seed: u64, work: impl FnOnce(&mut Analyzer) -> T) -> T {
    LAST.with_borrow_mut(|last| {
        let (_, _, analyzer) = match last {
            Some(last) if last.0 == *recipe && last.1 == seed => last,
            _ => last.insert((recipe.clone(), seed, Analyzer::new(recipe, seed))),
        };
        work(analyzer)
    })
}

/// The sketch of a text: what resemblance is estimated from. `numpy.asarray` shows its numbers
/// without copying them; it can be pickled.
///
/// >>> a, b = sketch("one two three four five six"), sketch("One, two, three, four, five, six.")
/// >>> a.resemblance(b)
/// 1.0
/// >>> len(a), len(bytes(a))
/// (84, 336)
#[pyclass(frozen, eq, hash, module = "onionskin", name = "Sketch")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PySketch {
    values: Vec<u32>,
    recipe: Recipe,
    seed: u64,
}

#[pymethods]
impl PySketch {
    /// From the bytes of another of the same recipe and seed.
    #[staticmethod]
    fn from_bytes(data: &[u8], recipe: &str, seed: u64) -> PyResult<PySketch> {
        let recipe: Recipe = recipe.parse().map_err(value_error)?;
        let len = recipe.scheme().sketch_len();
        if !data.is_empty() && data.len() != 4 * len {
            let found = data.len();
            return Err(PyValueError::new_err(format!(
                "a sketch by {recipe} has {} bytes, not {found}",
                4 * len
            )));
        }
        let values = data.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        Ok(PySketch { values, recipe, seed })
    }

    /// How it was made.
    #[getter]
    fn recipe(&self) -> PyRecipe {
        PyRecipe(self.recipe.clone())
    }

    /// The seed of its permutations.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// Whether the text had no word: then there are no numbers, and it resembles nothing.
    #[getter]
    fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The estimated resemblance of the two texts. An error when the sketches are of different
    /// kinds.
    fn resemblance(&self, other: &PySketch) -> PyResult<f64> {
        if self.recipe != other.recipe || self.seed != other.seed {
            return Err(PyValueError::new_err(format!(
                "sketches by {} with seed {} and by {} with seed {} have nothing in common",
                self.recipe, self.seed, other.recipe, other.seed
            )));
        }
        // An empty document resembles nothing.
        if self.values.is_empty() || other.values.is_empty() {
            return Ok(0.0);
        }
        let estimate = match self.recipe.scheme() {
            SketchScheme::Bottom(_) => estimate_resemblance_from_bottom(&self.values, &other.values),
            _ => estimate_resemblance(&self.values, &other.values),
        };
        Ok(estimate.value)
    }

    /// Its numbers.
    fn tolist(&self) -> Vec<u32> {
        self.values.clone()
    }

    fn __len__(&self) -> usize {
        self.values.len()
    }

    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, 4 * self.values.len(), |bytes| {
            for (out, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&self.values) {
                *out = value.to_le_bytes();
            }
            Ok(())
        })
    }

    fn __repr__(&self) -> String {
        format!("Sketch({} minima, '{}', seed={})", self.values.len(), self.recipe, self.seed)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.get_type::<PySketch>().getattr("from_bytes")?;
        let parts = (self.__bytes__(py)?, self.recipe.to_string(), self.seed);
        Ok((make, parts.into_pyobject(py)?))
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", PyTuple::new(py, [self.values.len()])?)?;
        interface.set_item("typestr", "<u4")?;
        interface.set_item("data", (self.values.as_ptr() as usize, true))?;
        Ok(interface)
    }
}

/// The sketch of one text.
///
/// >>> sketch("a rose is a rose", recipe="w2-rabin64-t128")
/// Sketch(128 minima, 'w2-rabin64-t128', seed=1)
#[pyfunction]
#[pyo3(signature = (text, *, recipe = None, seed = 1))]
pub(crate) fn sketch(
    py: Python<'_>,
    text: &str,
    recipe: Option<&Bound<'_, PyAny>>,
    seed: u64,
) -> PyResult<PySketch> {
    let recipe = recipe_of(recipe, RECIPE)?;
    let values = py.detach(|| analyzing(&recipe, seed, |analyzer| analyzer.analyze(text).sketch().to_vec()));
    Ok(PySketch { values, recipe, seed })
}

/// The sketches of many texts, on all cores and without the interpreter lock: rows of 32-bit
/// numbers, null for texts that are null or have no word.
///
/// `texts` is a list of str, or Arrow data: a column of PyArrow, Polars or pandas, or a table, of
/// which `column` names a column (`text` by default). The result goes to `numpy.asarray`,
/// `pyarrow.array`, `polars.Series` and the like without being copied. In numpy, rows that are null
/// are all ones.
///
/// >>> result = sketches(["a rose is a rose", ""], recipe="w2-rabin64-t4")
/// >>> len(result), result.null_count, result[1] is None
/// (2, 1, True)
#[pyfunction]
#[pyo3(signature = (texts, *, recipe = None, seed = 1, threads = None, column = None))]
pub(crate) fn sketches(
    texts: &Bound<'_, PyAny>,
    recipe: Option<&Bound<'_, PyAny>>,
    seed: u64,
    threads: Option<usize>,
    column: Option<&str>,
) -> PyResult<PyArrowArray> {
    let recipe = recipe_of(recipe, RECIPE)?;
    let width = recipe.scheme().sketch_len();
    let (values, valid) =
        many(texts, &recipe, seed, threads, column, width, u32::MAX, |analyzer, text, out| {
            let analysis = analyzer.analyze(text);
            copy(analysis.sketch(), out)
        })?;
    list(Arc::new(UInt32Array::from(values)), DataType::UInt32, width, valid)
}

/// The features of a text, as a list; or of many, as `sketches` has it: rows of 64-bit numbers.
/// Documents that share r of them are candidates.
///
/// >>> len(features("a rose is a rose"))
/// 6
/// >>> len(features(["a rose is a rose", "another text"]))
/// 2
#[pyfunction]
#[pyo3(signature = (texts, *, recipe = None, seed = 1, threads = None, column = None))]
pub(crate) fn features<'py>(
    texts: &Bound<'py, PyAny>,
    recipe: Option<&Bound<'py, PyAny>>,
    seed: u64,
    threads: Option<usize>,
    column: Option<&str>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = texts.py();
    let recipe = recipe_of(recipe, RECIPE)?;
    let Some(filter) = recipe.scheme().filter() else {
        return Err(PyValueError::new_err(format!(
            "the recipe {recipe} has no features; write one such as {RECIPE}"
        )));
    };
    if let Ok(text) = texts.cast::<PyString>() {
        let text = text.to_str()?;
        let features =
            py.detach(|| analyzing(&recipe, seed, |analyzer| analyzer.analyze(text).features().to_vec()));
        return features.into_pyobject(py);
    }
    let (values, valid) =
        many(texts, &recipe, seed, threads, column, filter.k(), 0, |analyzer, text, out| {
            let analysis = analyzer.analyze(text);
            copy(analysis.features(), out)
        })?;
    let array = list(Arc::new(UInt64Array::from(values)), DataType::UInt64, filter.k(), valid)?;
    Ok(Bound::new(py, array)?.into_any())
}

/// Whether there is anything; where there is not, what is there stays.
fn copy<T: Copy>(from: &[T], to: &mut [T]) -> bool {
    if from.len() == to.len() {
        to.copy_from_slice(from);
    }
    from.len() == to.len()
}

/// Rows of so many numbers, null where `valid` says so.
fn list(values: ArrayRef, of: DataType, width: usize, valid: Vec<bool>) -> PyResult<PyArrowArray> {
    let item = Arc::new(Field::new("item", of, false));
    let width = i32::try_from(width).map_err(value_error)?;
    let nulls = valid.contains(&false).then(|| NullBuffer::from(valid));
    let array = FixedSizeListArray::try_new(item, width, values, nulls).map_err(value_error)?;
    Ok(PyArrowArray::new(Arc::new(array)))
}

/// Documents that a thread takes at a time.
const TAKE: usize = 64;

/// Rows of numbers of texts, in order, and which rows have any.
#[expect(clippy::too_many_arguments, reason = "all of them come from one call of Python")]
fn many<T: Copy + Send + Sync>(
    texts: &Bound<'_, PyAny>,
    recipe: &Recipe,
    seed: u64,
    wanted_threads: Option<usize>,
    column: Option<&str>,
    width: usize,
    filler: T,
    work: impl Fn(&mut Analyzer, &str, &mut [T]) -> bool + Sync + Send,
) -> PyResult<(Vec<T>, Vec<bool>)> {
    let n_threads = threads(wanted_threads)?;
    let py = texts.py();
    if width == 0 {
        return Err(PyTypeError::new_err("a recipe without numbers"));
    }
    let texts = Texts::of(texts, column)?;
    let mut analyzers: Vec<Analyzer> = Vec::new();
    let (mut values, mut valid) = (Vec::new(), Vec::new());
    texts.each_piece(py, |piece| {
        let (done, documents) = (values.len(), valid.len());
        values.resize(done + piece.len() * width, filler);
        valid.resize(documents + piece.len(), false);
        let jobs = piece
            .chunks(TAKE)
            .zip(values[done..].chunks_mut(TAKE * width).zip(valid[documents..].chunks_mut(TAKE)));
        let n_threads = n_threads.min(piece.len().div_ceil(TAKE)).max(1);
        while analyzers.len() < n_threads {
            analyzers.push(Analyzer::new(recipe, seed));
        }
        let jobs = Mutex::new(jobs);
        let run = |analyzer: &mut Analyzer| {
            loop {
                let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
                let Some((texts, (out, valid))) = next else { break };
                for ((text, out), valid) in texts.iter().zip(out.chunks_mut(width)).zip(valid) {
                    *valid = text.is_some_and(|text| work(analyzer, text, out));
                }
            }
        };
        let mut workers = analyzers.iter_mut().take(n_threads);
        let own = workers.next();
        std::thread::scope(|scope| {
            for analyzer in workers {
                scope.spawn(|| run(analyzer));
            }
            own.map(run);
        });
        Ok(())
    })?;
    Ok((values, valid))
}
