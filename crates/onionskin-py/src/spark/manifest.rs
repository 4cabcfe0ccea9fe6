//! Manifests that are read and written where an atlas is, on whatever file system Spark knows.

use onionskin_store::Manifest;
use pyo3::prelude::*;

use crate::error::failed;

fn text(bytes: Vec<u8>) -> PyResult<String> {
    String::from_utf8(bytes).map_err(failed)
}

/// A manifest as JSON, after comparing its checksum.
#[pyfunction]
pub(super) fn checked_manifest(manifest: &str) -> PyResult<String> {
    text(Manifest::parse(manifest.as_bytes()).map_err(failed)?.to_bytes().map_err(failed)?)
}

/// The bytes of a manifest, with its checksum.
#[pyfunction]
pub(super) fn sealed_manifest(manifest: &str) -> PyResult<String> {
    text(Manifest::parse(manifest.as_bytes()).map_err(failed)?.to_sealed_bytes().map_err(failed)?)
}
