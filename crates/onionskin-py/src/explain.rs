//! Why two documents are similar.

use std::path::PathBuf;

use onionskin::{ExplainParams, explain as explain_documents};
use pyo3::prelude::*;

use crate::error::value_error;
use crate::progress::stage;
use crate::wire::to_python;

/// Two documents and everything that speaks for or against their being duplicates.
#[pyfunction]
pub(crate) fn explain<'py>(
    py: Python<'py>,
    atlas: PathBuf,
    a: &str,
    b: &str,
    base: Option<PathBuf>,
    pdf_worker: Vec<String>,
) -> PyResult<Bound<'py, PyAny>> {
    let (a, b) = (a.parse().map_err(value_error)?, b.parse().map_err(value_error)?);
    let params = ExplainParams { atlas, a, b, base, pdf_worker, limits: None };
    let found = stage(py, None, |_| explain_documents(&params))?;
    to_python(py, &found)
}

/// Reads one PDF from standard input for a scan; a process of its own, so that a hostile file harms
/// nobody.
#[pyfunction]
pub(crate) fn pdf_worker(py: Python<'_>) -> PyResult<()> {
    py.detach(|| onionskin_extract::pdf_worker(std::io::stdin().lock(), std::io::stdout().lock()))?;
    Ok(())
}
