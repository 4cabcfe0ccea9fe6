//! An atlas: a folder with a manifest and the tables it names.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::de::DeserializeOwned;

use crate::cancel::{self, Cancelled};
use crate::disk::IoError;
use crate::manifest::{FileEntry, MANIFEST_FILE, Manifest, ManifestError, TableEntry};
use crate::process;
use crate::schema::{ChunkingName, LevelName, Limits, Table, TableName};
use crate::stage::StageRecord;
use crate::storage::{Disk, Storage, checksum_file, list, replace_file};
use crate::table::{
    ChunksReader, ClusterStatsReader, ClustersReader, CollectionGroupsReader, CollectionPagesReader,
    CollectionsReader, DocumentsReader, FeaturesReader, IdPairsReader, Input, Known, PairsReader,
    SitesReader, SketchesReader, Stored, TableError, TableReader, UrlRulesReader, remedy,
};

mod verify;
pub(crate) mod written;

pub use verify::{Damage, VerifyDepth, VerifyReport};

/// No manifest is longer; a file that is, is not read into memory.
const MAX_MANIFEST_BYTES: u64 = 1 << 30;

/// An atlas that has been opened.
#[derive(Clone, Debug)]
pub struct Atlas {
    dir: PathBuf,
    manifest: Manifest,
    storage: Arc<dyn Storage>,
    /// Of the manifest when it was read; `None` where the system could not say.
    stamp: Option<Stamp>,
    sound: Arc<Mutex<Sound>>,
}

/// What was compared with the manifest so far.
#[derive(Debug, Default)]
struct Sound {
    /// Files that are as the manifest says, by name and checksum, and what they were then.
    files: BTreeMap<(String, u64), Stamp>,
    /// Bytes that were read to find out.
    checked_bytes: u64,
}

/// What changes when somebody writes to a file or puts another in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    file: (u64, u64),
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(path: &Path) -> io::Result<Stamp> {
        let found = fs::metadata(path)?;
        Ok(Stamp {
            file: (found.dev(), found.ino()),
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

/// Why an atlas cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtlasError {
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// There is a folder, but no manifest in it.
    #[error("{} is not an atlas: it has no manifest.json{}", dir.display(), if *unfinished { "\nhint: a scan into it was interrupted; run the same scan again to finish it" } else { "" })]
    NotAnAtlas {
        /// The folder.
        dir: PathBuf,
        /// Whether it holds the work of an interrupted scan.
        unfinished: bool,
    },
    /// The manifest is no good.
    #[error("{}: {source}", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        source: ManifestError,
    },
    /// A table that the atlas does not have.
    #[error("the atlas {} has no table {table}; it has {tables}", dir.display())]
    NoTable {
        /// The atlas.
        dir: PathBuf,
        /// The table.
        table: TableName,
        /// The tables it has.
        tables: String,
    },
    /// A table could not be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// Nobody wants to know any more.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// A file is not what was written.
    #[error("table {table}, {}: damaged: {problem}\nhint: {}", path.display(), remedy(&table.to_string()))]
    Damaged {
        /// The table.
        table: TableName,
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl Atlas {
    /// Opens the atlas in a folder.
    pub fn open(dir: impl Into<PathBuf>) -> Result<Atlas, AtlasError> {
        Atlas::open_with(dir.into(), Disk::shared())
    }

    /// The same, with updates going to a chosen storage.
    pub fn open_with(dir: PathBuf, storage: Arc<dyn Storage>) -> Result<Atlas, AtlasError> {
        let stamp = Stamp::of(&dir.join(MANIFEST_FILE)).ok();
        match read_manifest(&dir)? {
            Some(manifest) => Ok(Atlas { dir, manifest, storage, stamp, sound: Arc::default() }),
            None => {
                fs::metadata(&dir).map_err(|e| IoError::new("opening the atlas", &dir, e))?;
                let unfinished = dir.join(crate::staging::STAGING_DIR).is_dir();
                Err(AtlasError::NotAnAtlas { dir, unfinished })
            }
        }
    }

    /// The atlas as it is now, if its manifest was replaced since this one was opened. Files that
    /// were compared with their checksums and have not changed since are not compared again.
    pub fn newer(&self) -> Result<Option<Atlas>, AtlasError> {
        let stamp = Stamp::of(&self.dir.join(MANIFEST_FILE)).ok();
        if stamp.is_some() && stamp == self.stamp {
            return Ok(None);
        }
        let newer = Atlas::open_with(self.dir.clone(), Arc::clone(&self.storage))?;
        Ok(Some(Atlas { sound: Arc::clone(&self.sound), ..newer }))
    }

    /// Bytes that were read so far to compare files with their checksums, by this atlas and its
    /// clones.
    pub fn checked_bytes(&self) -> u64 {
        self.sound().checked_bytes
    }

    fn sound(&self) -> MutexGuard<'_, Sound> {
        self.sound.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Whether it has a table.
    pub fn has(&self, table: &TableName) -> bool {
        self.manifest.tables.contains_key(table)
    }

    /// Rows of a table; none when it has no such table.
    pub fn rows(&self, table: &TableName) -> u64 {
        self.manifest.tables.get(table).map_or(0, |entry| entry.rows)
    }

    /// What the manifest records of a stage; `None` when the stage was not run.
    pub fn record<R: StageRecord>(&self) -> Result<Option<R>, AtlasError> {
        self.manifest.stages.get().map_err(|source| self.unusable(source))
    }

    /// What the manifest records of a level; `None` when the level was not searched for.
    pub fn level<R: DeserializeOwned>(&self, level: &LevelName) -> Result<Option<R>, AtlasError> {
        self.manifest.stages.level(level).map_err(|source| self.unusable(source))
    }

    fn unusable(&self, source: ManifestError) -> AtlasError {
        AtlasError::Manifest { path: self.dir.join(MANIFEST_FILE), source }
    }

    /// The chunkings it has chunks of, in order of name.
    pub fn chunkings(&self) -> Vec<ChunkingName> {
        let chunking = |name: &TableName| match name {
            TableName::Chunks(chunking) => Some(chunking.clone()),
            _ => None,
        };
        self.manifest.tables.keys().filter_map(chunking).collect()
    }

    /// The entry of a table.
    pub fn table(&self, name: &TableName) -> Result<&TableEntry, AtlasError> {
        let tables = || self.manifest.tables.keys().map(ToString::to_string).collect::<Vec<_>>();
        self.manifest.tables.get(name).ok_or_else(|| AtlasError::NoTable {
            dir: self.dir.clone(),
            table: name.clone(),
            tables: tables().join(", "),
        })
    }

    /// Where the files of a table are, in order, whatever is in them.
    pub fn paths(&self, name: &TableName) -> Result<Vec<PathBuf>, AtlasError> {
        Ok(self.table(name)?.files.iter().map(|file| self.dir.join(&file.path)).collect())
    }

    /// The files of a table, in order, to read them. The first call for a table compares lengths
    /// and checksums with the manifest, so that nobody computes with damaged values.
    pub fn files(&self, name: &TableName) -> Result<Vec<PathBuf>, AtlasError> {
        for file in &self.table(name)?.files {
            self.ensure_sound(name, file)?;
        }
        self.paths(name)
    }

    /// The files of a table for its readers. They hold every id against the rows that the atlas
    /// has, and check the order of rows.
    pub fn inputs(&self, name: &TableName) -> Result<Vec<Input>, AtlasError> {
        let entry = self.table(name)?;
        for file in &entry.files {
            self.ensure_sound(name, file)?;
        }
        Ok(inputs_of(&self.dir, &self.manifest, entry))
    }

    fn ensure_sound(&self, table: &TableName, file: &FileEntry) -> Result<(), AtlasError> {
        let known = (file.path.clone(), file.xxh3);
        let path = self.dir.join(&file.path);
        // Taken first: who writes to the file while it is read changes it.
        let stamp = Stamp::of(&path).map_err(|e| IoError::new("opening", &path, e))?;
        if self.sound().files.get(&known) == Some(&stamp) {
            return Ok(());
        }
        if written::is_known(&stamp, file.xxh3) {
            self.sound().files.insert(known, stamp);
            return Ok(());
        }
        let begun = process::thread_cpu_seconds();
        let compared = verify::compare(&path, file, VerifyDepth::Checksums).map_err(stopped_or)?;
        let cpu_seconds = process::thread_cpu_seconds() - begun;
        tracing::debug!(file = %path.display(), bytes = stamp.bytes, cpu_seconds, "compared with its checksum");
        let mut sound = self.sound();
        sound.checked_bytes += stamp.bytes;
        if let Err(problem) = compared {
            return Err(AtlasError::Damaged { table: table.clone(), path, problem });
        }
        sound.files.insert(known, stamp);
        Ok(())
    }

    /// Reads `documents`.
    pub fn documents(&self) -> Result<DocumentsReader, AtlasError> {
        Ok(DocumentsReader::new(self.inputs(&TableName::Documents)?))
    }

    /// Reads `sites`.
    pub fn sites(&self) -> Result<SitesReader, AtlasError> {
        Ok(SitesReader::new(self.inputs(&TableName::Sites)?))
    }

    /// Reads `links`.
    pub fn links(&self) -> Result<IdPairsReader, AtlasError> {
        Ok(IdPairsReader::new(Table::Links, self.inputs(&TableName::Links)?))
    }

    /// Reads the chunks of a chunking.
    pub fn chunks(&self, chunking: &ChunkingName) -> Result<ChunksReader, AtlasError> {
        let inputs = self.inputs(&Table::Chunks(chunking.clone()).name())?;
        Ok(ChunksReader::new(chunking.clone(), inputs))
    }

    /// The levels it knows copies of, in order of name.
    pub fn levels(&self) -> Vec<LevelName> {
        let level = |name: &TableName| match name {
            TableName::Copies(level) => Some(level.clone()),
            _ => None,
        };
        self.manifest.tables.keys().filter_map(level).collect()
    }

    /// Reads the copies of a level: documents, each with the original it is a copy of, originals
    /// included.
    pub fn copies(&self, level: &LevelName) -> Result<IdPairsReader, AtlasError> {
        let table = Table::Copies(level.clone());
        let inputs = self.inputs(&table.name())?;
        Ok(IdPairsReader::new(table, inputs))
    }

    /// Reads `sketches`.
    pub fn sketches(&self) -> Result<SketchesReader, AtlasError> {
        Ok(SketchesReader::new(self.inputs(&TableName::Sketches)?))
    }

    /// Reads `features`.
    pub fn features(&self) -> Result<FeaturesReader, AtlasError> {
        Ok(FeaturesReader::new(self.inputs(&TableName::Features)?))
    }

    /// Reads `pairs`.
    pub fn pairs(&self) -> Result<PairsReader, AtlasError> {
        Ok(PairsReader::new(self.inputs(&TableName::Pairs)?))
    }

    /// Reads `clusters`.
    pub fn clusters(&self) -> Result<ClustersReader, AtlasError> {
        Ok(ClustersReader::new(self.inputs(&TableName::Clusters)?))
    }

    /// Reads `cluster_stats`.
    pub fn cluster_stats(&self) -> Result<ClusterStatsReader, AtlasError> {
        Ok(ClusterStatsReader::new(self.inputs(&TableName::ClusterStats)?))
    }

    /// Reads `collections`.
    pub fn collections(&self) -> Result<CollectionsReader, AtlasError> {
        Ok(CollectionsReader::new(self.inputs(&TableName::Collections)?))
    }

    /// Reads `collection_pages`.
    pub fn collection_pages(&self) -> Result<CollectionPagesReader, AtlasError> {
        Ok(CollectionPagesReader::new(self.inputs(&TableName::CollectionPages)?))
    }

    /// Reads `collection_groups`.
    pub fn collection_groups(&self) -> Result<CollectionGroupsReader, AtlasError> {
        Ok(CollectionGroupsReader::new(self.inputs(&TableName::CollectionGroups)?))
    }

    /// Reads `url_rules`.
    pub fn url_rules(&self) -> Result<UrlRulesReader, AtlasError> {
        Ok(UrlRulesReader::new(self.inputs(&TableName::UrlRules)?))
    }

    /// Reads any table as batches.
    pub fn read(&self, table: &Table) -> Result<TableReader, AtlasError> {
        Ok(TableReader::new(table.clone(), self.inputs(&table.name())?))
    }

    /// Changes the manifest and puts it in place of the old one, atomically.
    pub fn update(&mut self, change: impl FnOnce(&mut Manifest)) -> Result<(), AtlasError> {
        let mut manifest = self.manifest.clone();
        change(&mut manifest);
        write_manifest(self.storage.as_ref(), &self.dir, &manifest)?;
        self.stamp = Stamp::of(&self.dir.join(MANIFEST_FILE)).ok();
        self.manifest = manifest;
        Ok(())
    }

    /// Takes into the manifest the Parquet files that another program has put into a table's
    /// folder, in order of their names, after checking their columns, values and order. Files that
    /// begin with `.` or `_` are left out, as Spark does.
    pub fn adopt(&mut self, table: &Table) -> Result<(), AtlasError> {
        let folder = self.dir.join(table.folder());
        let mut entry = TableEntry::default();
        for (path, is_dir) in list(&folder)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if is_dir || name.starts_with(['.', '_']) || !name.ends_with(".parquet") {
                continue;
            }
            let mut reader = TableReader::new(table.clone(), [Input::from(path.as_path())]);
            let mut rows = 0;
            while let Some((batch, _)) = reader.next_batch()? {
                rows += batch.num_rows() as u64;
            }
            let (xxh3, bytes) = checksum_file(&path)?;
            entry.rows += rows;
            entry.files.push(FileEntry { path: format!("{}/{name}", table.folder()), rows, bytes, xxh3 });
        }
        let mut manifest = self.manifest.clone();
        if let Some((count, _)) = verify::COUNTS.iter().find(|(_, counted)| *counted == table.name()) {
            manifest.counts.entry((*count).to_owned()).and_modify(|rows| *rows = entry.rows);
        }
        manifest.tables.insert(table.name(), entry.clone());
        let inputs = inputs_of(&self.dir, &manifest, &entry);
        let mut reader = TableReader::new(table.clone(), inputs);
        while reader.next_batch()?.is_some() {}
        self.update(|old| *old = manifest)
    }
}

/// Why a file was not read to its end: the work is to stop, or the file system failed.
pub(crate) fn stopped_or(error: IoError) -> AtlasError {
    cancel::check().map_or_else(AtlasError::from, |()| error.into())
}

/// The files of a table for its readers, without a look at checksums.
fn inputs_of(dir: &Path, manifest: &Manifest, entry: &TableEntry) -> Vec<Input> {
    let (limits, mut before) = (Limits::of(manifest), 0);
    let inputs = entry.files.iter().map(|file| {
        let known = Known { rows: file.rows, before, limits };
        before = u64::saturating_add(before, file.rows);
        Input::Stored(Stored { path: dir.join(&file.path), known })
    });
    inputs.collect()
}

/// The manifest of a folder; `None` when there is no such file.
pub(crate) fn read_manifest(dir: &Path) -> Result<Option<Manifest>, AtlasError> {
    use io::Read;
    let path = dir.join(MANIFEST_FILE);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(IoError::new("opening", path, error).into()),
    };
    let mut bytes = Vec::new();
    file.take(MAX_MANIFEST_BYTES).read_to_end(&mut bytes).map_err(|e| IoError::new("reading", &path, e))?;
    Manifest::parse(&bytes).map(Some).map_err(|source| AtlasError::Manifest { path, source })
}

/// Puts a manifest in place, atomically.
pub(crate) fn write_manifest(
    storage: &dyn Storage,
    dir: &Path,
    manifest: &Manifest,
) -> Result<(), AtlasError> {
    let path = dir.join(MANIFEST_FILE);
    let bytes = manifest
        .validate()
        .and_then(|()| manifest.to_sealed_bytes())
        .map_err(|source| AtlasError::Manifest { path: path.clone(), source })?;
    Ok(replace_file(storage, &path, &bytes)?)
}

#[cfg(test)]
mod tests;
