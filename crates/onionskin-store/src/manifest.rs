//! `manifest.json`: what the atlas is made of.
//!
//! The manifest names the format version, the inputs, the recipe, and for each table its files,
//! rows and checksums. It is replaced last and atomically, so that a stage is there whole or not at
//! all. It holds nothing that may differ between two runs over the same inputs: no times, no thread
//! counts, no budgets.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use xxhash_rust::xxh3::xxh3_64;

use crate::json::hex64;
use crate::schema::TableName;

mod stages;

pub use stages::Stages;

/// Version of the atlas format that this crate writes, and the newest it reads.
pub const FORMAT_VERSION: u32 = 1;
/// The oldest version it reads.
pub const OLDEST_FORMAT_VERSION: u32 = 1;
/// Name of the manifest in the folder of an atlas.
pub const MANIFEST_FILE: &str = "manifest.json";

/// The key of the checksum.
const CHECKSUM: &str = "checksum";
/// How the JSON ends.
const END: &str = "\n}\n";
/// What stands between the rest and the checksum, and behind it.
const SEAL: &str = ",\n  \"checksum\": \"xxh3:";
const SEAL_END: &str = "\"\n}\n";
/// No writer packs more rows into a byte: a page holds at most 64 Ki of them, and has a header.
pub(crate) const MAX_VALUES_PER_BYTE: u64 = 64 << 10;

/// What an atlas is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the format.
    pub format_version: u32,
    /// The program that wrote it.
    pub tool: String,
    /// The recipe, in its short spelling.
    pub recipe: String,
    /// The seed of all permutations.
    pub seed: u64,
    /// The inputs, in order.
    pub inputs: Vec<InputEntry>,
    /// Extractor of each media type, with its version.
    pub extractors: BTreeMap<String, String>,
    /// Counts of all kinds.
    pub counts: BTreeMap<String, u64>,
    /// What was asked of each stage, and what it found.
    #[serde(default, skip_serializing_if = "Stages::is_empty")]
    pub stages: Stages,
    /// The tables.
    pub tables: BTreeMap<TableName, TableEntry>,
    /// Keys that this version does not know; kept when the manifest is rewritten.
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

/// An input of the scan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputEntry {
    /// As given, with the path below it.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its format.
    pub format: String,
    /// Documents in it.
    pub documents: u64,
    /// Records of it that could not be read.
    pub bad_records: u64,
    /// Its files, if it is made of several that were named one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
}

/// A table of the atlas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEntry {
    /// Rows in all files.
    pub rows: u64,
    /// Its files, in order.
    pub files: Vec<FileEntry>,
}

/// A file of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Path inside the atlas, with `/` between parts.
    pub path: String,
    /// Rows in it.
    pub rows: u64,
    /// Its length.
    pub bytes: u64,
    /// XXH3 (64 bits, seed 0) of it, in sixteen hexadecimal digits.
    #[serde(with = "hex64")]
    pub xxh3: u64,
}

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// Not JSON, or not the JSON of a manifest.
    #[error(
        "not a readable manifest: {reason}\nhint: if the file was edited or copied in part, restore it; otherwise run the scan again"
    )]
    Unreadable {
        /// What the parser said.
        reason: String,
    },
    /// Not what was written.
    #[error(
        "the checksum does not agree: it is damaged, or was edited\nhint: restore the file, or run the scan again; after an edit that was meant, remove the key `checksum`"
    )]
    Checksum,
    /// More rows than fit the bytes of a file.
    #[error("table {table}: {path:?} cannot have {rows} rows in {bytes} bytes")]
    TooManyRows {
        /// The table.
        table: TableName,
        /// The file.
        path: String,
        /// Rows that it is said to have.
        rows: u64,
        /// Its bytes.
        bytes: u64,
    },
    /// Written by a version that we do not know.
    #[error(
        "the atlas has format version {found}, this program reads {oldest} to {newest}\nhint: use a newer onionskin, or scan again"
    )]
    Version {
        /// Version of the file.
        found: u64,
        /// The oldest we read.
        oldest: u32,
        /// The newest we read.
        newest: u32,
    },
    /// The record of a stage is not one that this version knows.
    #[error(
        "the record of {stage} cannot be used: {reason}\nhint: run that stage again, or use the version that wrote it"
    )]
    Record {
        /// The stage or level.
        stage: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file outside the atlas, or named twice.
    #[error("table {table}: {path:?} is not a file name inside the atlas")]
    Path {
        /// The table.
        table: TableName,
        /// The path.
        path: String,
    },
    /// The rows of the files do not add up.
    #[error("table {table}: {rows} rows, but its files have {in_files}")]
    Rows {
        /// The table.
        table: TableName,
        /// Rows of the table.
        rows: u64,
        /// Rows of its files together.
        in_files: u64,
    },
}

/// The one field that is looked at before the others are trusted.
#[derive(Deserialize)]
struct VersionOnly {
    format_version: u64,
}

impl Default for Manifest {
    /// Empty, with the version and the name of this program.
    fn default() -> Manifest {
        Manifest {
            format_version: FORMAT_VERSION,
            tool: concat!("onionskin ", env!("CARGO_PKG_VERSION")).to_owned(),
            recipe: String::new(),
            seed: 0,
            inputs: Vec::new(),
            extractors: BTreeMap::new(),
            counts: BTreeMap::new(),
            stages: Stages::default(),
            tables: BTreeMap::new(),
            more: BTreeMap::new(),
        }
    }
}

impl Manifest {
    /// Parses and checks a manifest. One without a checksum, of another program or an older
    /// version, is taken as it is.
    pub fn parse(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let unreadable = |e: serde_json::Error| ManifestError::Unreadable { reason: e.to_string() };
        let version: VersionOnly = serde_json::from_slice(bytes).map_err(unreadable)?;
        let known = u64::from(OLDEST_FORMAT_VERSION)..=u64::from(FORMAT_VERSION);
        if !known.contains(&version.format_version) {
            return Err(ManifestError::Version {
                found: version.format_version,
                oldest: OLDEST_FORMAT_VERSION,
                newest: FORMAT_VERSION,
            });
        }
        let bytes = unsealed(bytes)?;
        let manifest: Manifest = serde_json::from_slice(&bytes).map_err(unreadable)?;
        if manifest.more.contains_key(CHECKSUM) {
            return Err(ManifestError::Checksum);
        }
        manifest.validate()?;
        Ok(manifest)
    }

    /// The bytes of `manifest.json`: the same for equal manifests. The last key is the checksum of
    /// all before it.
    pub fn to_sealed_bytes(&self) -> Result<Vec<u8>, ManifestError> {
        let mut bytes = self.to_bytes()?;
        bytes.truncate(bytes.len() - END.len());
        let sum = xxh3_64(&bytes);
        bytes.extend_from_slice(format!("{SEAL}{sum:016x}{SEAL_END}").as_bytes());
        Ok(bytes)
    }

    /// The same without a checksum, as JSON.
    pub fn to_bytes(&self) -> Result<Vec<u8>, ManifestError> {
        let unreadable = |e: serde_json::Error| ManifestError::Unreadable { reason: e.to_string() };
        let mut bytes = serde_json::to_vec_pretty(self).map_err(unreadable)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Checks what the types do not: paths stay inside the atlas and are named once, rows add up.
    pub fn validate(&self) -> Result<(), ManifestError> {
        let mut seen = BTreeSet::new();
        for (name, table) in &self.tables {
            for file in &table.files {
                if !is_inside(&file.path) || !seen.insert(&file.path) {
                    return Err(ManifestError::Path { table: name.clone(), path: file.path.clone() });
                }
            }
            for file in &table.files {
                // The numbers of rows become sizes in memory.
                if file.rows > file.bytes.saturating_mul(MAX_VALUES_PER_BYTE) {
                    let (path, rows, bytes) = (file.path.clone(), file.rows, file.bytes);
                    return Err(ManifestError::TooManyRows { table: name.clone(), path, rows, bytes });
                }
            }
            let in_files = table.files.iter().fold(0u64, |sum, file| sum.saturating_add(file.rows));
            if in_files != table.rows {
                return Err(ManifestError::Rows { table: name.clone(), rows: table.rows, in_files });
            }
        }
        Ok(())
    }
}

/// Takes the checksum off, after comparing it. What has no checksum in its place is given back.
fn unsealed(bytes: &[u8]) -> Result<Cow<'_, [u8]>, ManifestError> {
    let seal = SEAL.len() + 16 + SEAL_END.len();
    let Some((body, end)) = bytes.len().checked_sub(seal).map(|at| bytes.split_at(at)) else {
        return Ok(bytes.into());
    };
    let sum = end.strip_prefix(SEAL.as_bytes()).and_then(|end| end.strip_suffix(SEAL_END.as_bytes()));
    match sum {
        None => Ok(bytes.into()),
        Some(sum) if *sum == *format!("{:016x}", xxh3_64(body)).as_bytes() => {
            Ok([body, END.as_bytes()].concat().into())
        }
        Some(_) => Err(ManifestError::Checksum),
    }
}

/// Whether a path is relative, names a file and never goes up.
fn is_inside(path: &str) -> bool {
    !path.is_empty()
        && !path.contains('\0')
        && !path.contains('\\')
        && Path::new(path).components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests;
