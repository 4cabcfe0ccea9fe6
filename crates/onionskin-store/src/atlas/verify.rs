//! Whether an atlas is what its stages have left.
//!
//! Lengths and checksums tell whether files are as they were written. Whoever can write the
//! manifest can write checksums, too, and a program can be wrong. So the deepest look reads every
//! row: values against the rules of the schema, which readers check anyway, and tables against each
//! other, which they do not.

mod deep;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde::Serialize;

use super::{Atlas, inputs_of};
use crate::MemoryBudget;
use crate::disk::IoError;
use crate::manifest::{FileEntry, TableEntry};
use crate::schema::TableName;
use crate::stage::StageName;
use crate::storage::checksum_file;
use crate::table::{TableReader, ensure_words};

/// The counts of the manifest that are rows of a table.
pub(super) const COUNTS: [(&str, TableName); 7] = [
    ("documents", TableName::Documents),
    ("sites", TableName::Sites),
    ("links", TableName::Links),
    ("similar.clusters", TableName::ClusterStats),
    ("similar.clustered_documents", TableName::Clusters),
    ("collections.groups", TableName::CollectionGroups),
    ("collections.replicas", TableName::Collections),
];

/// How closely to look in [`Atlas::verify`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum VerifyDepth {
    /// Lengths of files.
    Sizes,
    /// Lengths and checksums.
    Checksums,
    /// Lengths, checksums, every row, and what tables say of each other.
    Rows,
}

/// A file of the atlas that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The table.
    pub table: TableName,
    /// Path inside the atlas.
    pub file: String,
    /// What is wrong.
    pub problem: String,
    /// The stage that makes the table again; `None` for a table that this version does not know.
    pub stage: Option<StageName>,
}

/// What [`Atlas::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Files looked at.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Rows decoded, at depth [`VerifyDepth::Rows`].
    pub rows: u64,
    /// What is wrong, by table and file.
    pub damage: Vec<Damage>,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty()
    }

    /// Whether something is wrong with a table.
    pub fn names(&self, table: &TableName) -> bool {
        self.damage.iter().any(|damage| damage.table == *table)
    }

    /// The first stage to run again: the others follow from it.
    pub fn stage_to_repeat(&self) -> Option<StageName> {
        self.damage.iter().filter_map(|damage| damage.stage).min()
    }

    fn note(&mut self, table: &TableName, file: &str, problem: String) {
        let stage = table.table().map(|table| table.stage());
        self.damage.push(Damage { table: table.clone(), file: file.to_owned(), problem, stage });
    }
}

impl Atlas {
    /// Compares every file with the manifest. Damage is part of the answer, not an error. The look
    /// at all rows takes as much memory as a machine has for a stage.
    pub fn verify(&self, depth: VerifyDepth) -> VerifyReport {
        self.verify_within(depth, MemoryBudget::default_for_machine())
    }

    /// The same with a memory budget, which bounds what is kept of documents while tables are
    /// compared.
    pub fn verify_within(&self, depth: VerifyDepth, memory: MemoryBudget) -> VerifyReport {
        let mut report = VerifyReport::default();
        for (name, entry) in &self.manifest.tables {
            let mut damaged = BTreeSet::new();
            for file in &entry.files {
                report.files += 1;
                report.bytes += file.bytes;
                let compared = compare(&self.dir.join(&file.path), file, depth);
                if let Err(problem) = compared.unwrap_or_else(|e| Err(e.source.to_string())) {
                    report.note(name, &file.path, problem);
                    damaged.insert(file.path.as_str());
                }
            }
            if depth == VerifyDepth::Rows {
                self.verify_rows(name, entry, &damaged, &mut report);
            }
        }
        if depth == VerifyDepth::Rows {
            deep::verify(self, memory, &mut report);
        }
        report
    }

    /// Reads every row of a table but those of damaged files. The first thing that is wrong with a
    /// file is noted, then comes the next.
    fn verify_rows(
        &self,
        name: &TableName,
        entry: &TableEntry,
        damaged: &BTreeSet<&str>,
        report: &mut VerifyReport,
    ) {
        let Some(table) = name.table() else { return };
        let inputs = inputs_of(&self.dir, &self.manifest, entry);
        let all = entry.files.iter().zip(inputs);
        let mut left: Vec<_> = all.filter(|(file, _)| !damaged.contains(file.path.as_str())).collect();
        left.reverse();
        while !left.is_empty() {
            let rest = left.iter().rev().map(|(_, input)| input.clone());
            let mut reader = TableReader::new(table.clone(), rest);
            let error = loop {
                let words = match reader.next_batch() {
                    Ok(Some((batch, file))) => {
                        report.rows += batch.num_rows() as u64;
                        ensure_words(&table, &batch, file)
                    }
                    Ok(None) => return,
                    Err(error) => break error,
                };
                if let Err(error) = words {
                    break error.in_file(|row| reader.row_in_file(row));
                }
            };
            // Files come in order: those that were opened before are sound.
            let opened = left.len() - reader.files_left();
            left.truncate(left.len() - (opened - 1).min(left.len() - 1));
            if let Some((file, _)) = left.pop() {
                report.note(name, &file.path, error.problem());
            }
        }
    }
}

/// Compares the length and the checksum of a file with the manifest, and says what is wrong.
pub(super) fn compare(
    path: &Path,
    file: &FileEntry,
    depth: VerifyDepth,
) -> Result<Result<(), String>, IoError> {
    let found = fs::metadata(path).map_err(|e| IoError::new("opening", path, e))?.len();
    if found != file.bytes {
        return Ok(Err(format!("{found} bytes long, should be {}", file.bytes)));
    }
    if depth == VerifyDepth::Sizes {
        return Ok(Ok(()));
    }
    let (xxh3, _) = checksum_file(path)?;
    if xxh3 != file.xxh3 {
        return Ok(Err(format!("checksum {xxh3:016x}, should be {:016x}", file.xxh3)));
    }
    Ok(Ok(()))
}
