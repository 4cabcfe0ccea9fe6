//! What a written report was made from, so that it is not made again.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use onionskin_store::IoError;
use onionskin_store::manifest::MANIFEST_FILE;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::study::{ReportError, ReportParams};

/// The file beside the page. It is written last, and removed first.
const FILE: &str = "made-from.json";
/// The page.
const PAGE: &str = "report.html";

/// Everything that decides what a report says, but for the times that stages took.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Origin {
    /// Reports of another version may say something else.
    version: String,
    /// Checksum of the manifest, which has those of the tables.
    manifest: String,
    /// The same of the atlas that is the yardstick.
    reference: Option<String>,
    png: bool,
    seeds: Vec<String>,
    iterations: u32,
}

impl Origin {
    pub(super) fn of(params: &ReportParams) -> Result<Origin, IoError> {
        Ok(Origin {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            manifest: digest(&params.atlas)?,
            reference: params.reference.as_deref().map(digest).transpose()?,
            png: params.png,
            seeds: params.seeds.clone(),
            iterations: params.iterations,
        })
    }

    pub(super) fn write(&self, output: &Path) -> Result<(), IoError> {
        let path = output.join(FILE);
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        fs::write(&path, text).map_err(|e| IoError::new("writing", &path, e))
    }
}

/// Before a report is replaced: what is there is not whole from now on.
pub(super) fn forget(output: &Path) -> Result<(), IoError> {
    let path = output.join(FILE);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(IoError::new("removing", &path, error)),
        _ => Ok(()),
    }
}

fn digest(atlas: &Path) -> Result<String, IoError> {
    let path = atlas.join(MANIFEST_FILE);
    let manifest = fs::read(&path).map_err(|e| IoError::new("reading", &path, e))?;
    Ok(format!("{:016x}", xxh3_64(&manifest)))
}

impl ReportParams {
    /// Whether the directory has this very report on the atlas as it is now.
    pub fn is_done(&self) -> Result<bool, ReportError> {
        let Ok(text) = fs::read(self.output.join(FILE)) else { return Ok(false) };
        let Ok(was) = serde_json::from_slice::<Origin>(&text) else { return Ok(false) };
        Ok(was == Origin::of(self)? && self.output.join(PAGE).is_file())
    }
}
