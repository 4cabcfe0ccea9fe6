//! Functions of one text.

use onionskin_core::{Analyzer, Chunking, Recipe};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A recipe that keeps one chunking and has the smallest sketch there is.
pub(crate) fn chunk_recipe(chunking: &str) -> PyResult<Recipe> {
    let chunking: Chunking = chunking.parse().map_err(value_error)?;
    format!("{chunking}-rabin64-t1+{chunking}").parse().map_err(value_error)
}

pub(crate) fn value_error(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Fingerprints of the chunks of a text.
#[pyfunction]
#[pyo3(signature = (text, chunking = "w4"))]
pub(crate) fn chunks(text: &str, chunking: &str) -> PyResult<Vec<u64>> {
    let recipe = chunk_recipe(chunking)?;
    Ok(Analyzer::new(&recipe, 0).analyze_chunks(text).chunks(0).to_vec())
}

/// The fingerprint of the canonical text.
#[pyfunction]
pub(crate) fn text_fingerprint(text: &str) -> PyResult<Option<u64>> {
    let recipe = chunk_recipe("doc")?;
    Ok(Analyzer::new(&recipe, 0).analyze_chunks(text).text_fp().map(|fingerprint| fingerprint.0))
}
