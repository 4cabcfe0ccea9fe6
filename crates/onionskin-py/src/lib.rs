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
    use crate::{
        arrow::PyArrowArray,
        error::{AtlasError, BusyError, InputError, OnionskinError},
        explain::{explain, pdf_worker},
        minhash::{MinHashCore, optimal_bands},
        recipe::{PyFilter, PyRecipe},
        seen::{SeenIndex, Verdict},
        sketch::{PySketch, features, sketch, sketches},
        spark::spark,
        stages::{avoid, avoid_formats, collections, dedup, report, run, scan, similar},
        table::{Rows, TableScan, read_manifest},
        text::{chunks, containment, resemblance, text_fingerprint, tokens},
        texts::_text_addresses,
    };

    use super::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        onionskin_store::table::hush_decoders();
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
