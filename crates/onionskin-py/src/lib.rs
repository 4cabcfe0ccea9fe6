//! Onionskin for Python: the module `onionskin._onionskin`. The package around it, `python/onionskin`, is what people import.

mod arrow;
mod spark;
mod text;

use pyo3::prelude::*;

/// The compiled part of the package `onionskin`. What is public is in `onionskin`.
#[pymodule]
mod _onionskin {
    #[pymodule_export]
    use crate::arrow::{PyArrowArray, PyArrowStream};
    #[pymodule_export]
    use crate::spark::spark;
    #[pymodule_export]
    use crate::text::{chunks, text_fingerprint};

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
