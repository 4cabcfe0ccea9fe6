//! Onionskin for Python: the module `onionskin._onionskin`. The package around it,
//! `python/onionskin`, is what people import.

mod arrow;
mod error;
mod explain;
mod hints;
mod minhash;
mod progress;
mod recipe;
mod seen;
mod sketch;
mod spark;
mod stages;
mod table;
mod text;
mod texts;
mod values;
mod wire;

use pyo3::prelude::*;

/// The compiled part of the package `onionskin`. What is public is in `onionskin`.
#[pymodule]
mod _onionskin {
    #[pymodule_export]
    use crate::arrow::PyArrowArray;
    #[pymodule_export]
    use crate::error::{AtlasError, BusyError, InputError, OnionskinError};
    #[pymodule_export]
    use crate::explain::{explain, pdf_worker};
    #[pymodule_export]
    use crate::minhash::{MinHashCore, optimal_bands};
    #[pymodule_export]
    use crate::recipe::{PyFilter, PyRecipe};
    #[pymodule_export]
    use crate::seen::{SeenIndex, Verdict};
    #[pymodule_export]
    use crate::sketch::{PySketch, features, sketch, sketches};
    #[pymodule_export]
    use crate::spark::spark;
    #[pymodule_export]
    use crate::stages::{avoid, avoid_formats, collections, dedup, report, run, scan, similar};
    #[pymodule_export]
    use crate::table::{Rows, TableScan, read_manifest};
    #[pymodule_export]
    use crate::text::{chunks, containment, resemblance, text_fingerprint, tokens};
    #[pymodule_export]
    use crate::texts::_text_addresses;

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        onionskin_store::table::hush_decoders();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
