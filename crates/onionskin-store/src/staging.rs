//! Crash-safe production of several tables at once.
//!
//! The naive way writes tables in place and hopes. A kill then leaves half a table that looks like
//! a whole one, and hours of work are lost. Here a stage works in a folder of its own,
//! `.staging/<stage>`, in steps:
//!
//! ```text
//! push rows ─▶ open parts ─ commit ─▶ parts synced ─▶ one line in the journal, synced      (repeat)
//!                           publish ─▶ parts renamed into the tables ─▶ manifest ─▶ .staging removed
//! ```
//!
//! - Everything before the last line of the journal is safe; everything after it is thrown away by
//!   the next [`Staging::open`], which gives the caller the state that was committed with that
//!   line.
//! - Publishing can be interrupted anywhere: a part is either still here or already in its table,
//!   and the caller, told by its own state that all is done, calls [`Staging::publish`] again. The
//!   manifest comes last, so the stage is there whole or not at all.
//! - Parts are named by the number of the commit. A caller that commits at places which depend on
//!   the input alone, not on time, memory or threads, gets the same files however often it was
//!   interrupted.
//!
//! An old result that is being replaced stays whole until publishing begins. Then it is taken out
//! of the manifest first.

mod journal;
mod lock;
mod publish;
mod resume;

use std::any::Any;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value;

use crate::atlas::AtlasError;
use crate::disk::IoError;
use crate::raw::{RawError, RawRecords, RawWriter, Record};
use crate::schema::{ChunkingName, LevelName, Table, TableName, is_folder_name};
use crate::stage::StageName;
use crate::storage::{Disk, Storage, StorageFile};
use crate::table::{
    ChunksWriter, ClusterStatsWriter, ClustersWriter, CollectionGroupsWriter, CollectionPagesWriter,
    CollectionsWriter, DocumentsWriter, FeaturesWriter, IdPairsWriter, PairsWriter, PartMeta, PartParams,
    PartWriter, Row, RowWriter, SitesWriter, SketchesWriter, TableError, UrlRulesWriter,
};
pub(crate) use journal::first_difference;
use journal::{Commit, PartEntry, RawEntry};
pub use journal::{JournalError, parse_journal_bytes};
use lock::Lock;

/// Folder inside an atlas where stages work.
pub const STAGING_DIR: &str = ".staging";
pub(crate) const JOURNAL_FILE: &str = "journal";

/// Whether a stage begins an atlas or adds to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageKind {
    /// Begins an atlas: everything that was there before goes.
    Create,
    /// Adds its tables to the manifest that is there, or replaces them.
    Extend,
}

/// What a stage is and what it makes.
#[derive(Clone, Debug)]
pub struct StageParams {
    /// The stage, whose name is that of its directory.
    pub stage: StageName,
    /// Whether it begins the atlas.
    pub kind: StageKind,
    /// Identity of the job: everything that changes its result, such as inputs, recipe and seed.
    /// Work is resumed only by a job with the same identity. An object makes the better error
    /// message: it can name the key that differs.
    pub job: Value,
    /// The recipe, kept in the metadata of every file.
    pub recipe: String,
    /// The tables it makes. Those that get no rows are published as empty tables.
    pub tables: Vec<Table>,
    /// Tables of later stages that were made from these. They go when the stage publishes something
    /// else than was there.
    pub voids: Vec<Table>,
    /// Whether it may replace a result that is there, or drop the unfinished work of another job.
    pub overwrite: bool,
    /// Where files are written.
    pub storage: Arc<dyn Storage>,
}

impl StageParams {
    /// A stage that begins an atlas on disk and replaces nothing.
    pub fn new(stage: StageName, job: Value, recipe: &str, tables: Vec<Table>) -> StageParams {
        StageParams {
            stage,
            kind: StageKind::Create,
            job,
            recipe: recipe.to_owned(),
            tables,
            voids: Vec::new(),
            overwrite: false,
            storage: Disk::shared(),
        }
    }
}

/// What was safe when the work stopped.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Commits so far.
    pub commits: u64,
    /// What the caller gave to the last commit.
    pub state: Value,
    /// Rows committed, by table.
    pub rows: BTreeMap<TableName, u64>,
    /// Records committed, by name of the work file.
    pub records: BTreeMap<String, u64>,
}

/// What can go wrong with a stage.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StagingError {
    /// The journal is damaged, not only cut off.
    #[error("{}: {source}\nhint: the unfinished work cannot be trusted; start over with overwrite, or remove the folder", path.display())]
    Journal {
        /// The journal.
        path: PathBuf,
        /// What is wrong with it.
        source: JournalError,
    },
    /// The folder above the atlas is not there.
    #[error("cannot make the atlas {}: the folder {} does not exist", dir.display(), parent.display())]
    NoParent {
        /// The atlas.
        dir: PathBuf,
        /// The folder that is missing.
        parent: PathBuf,
    },
    /// The folder has other things in it.
    #[error("{} is not an atlas and not empty (it has {entry:?})\nhint: name a new folder", dir.display())]
    NotEmpty {
        /// The folder.
        dir: PathBuf,
        /// Something in it.
        entry: String,
    },
    /// There are tables that nobody vouches for: what begins an atlas would remove them.
    #[error("{} has {file}, but neither a manifest.json nor an unfinished scan\nhint: put manifest.json back from a copy, name a new folder, or overwrite", dir.display())]
    NoManifest {
        /// The atlas.
        dir: PathBuf,
        /// One of the files.
        file: String,
    },
    /// The stage was finished before.
    #[error("{} already has a finished {stage}{}\nhint: use another folder, or overwrite", dir.display(), of_other_job(difference.as_deref()))]
    AlreadyFinished {
        /// The atlas.
        dir: PathBuf,
        /// The stage.
        stage: StageName,
        /// What sets its job apart from this one, where that is known.
        difference: Option<String>,
    },
    /// Another process has the atlas.
    #[error("another process is working on {}", dir.display())]
    Busy {
        /// The atlas.
        dir: PathBuf,
    },
    /// There is unfinished work of another job.
    #[error("{} has an unfinished {stage} of another job: {difference}\nhint: run that job again to finish it, or overwrite", dir.display())]
    OtherJob {
        /// The atlas.
        dir: PathBuf,
        /// The stage.
        stage: StageName,
        /// The first difference between the two.
        difference: String,
    },
    /// A committed file is not as it was.
    #[error("{}: {problem}\nhint: the unfinished work cannot be trusted; start over with overwrite", file.display())]
    Lost {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// A table or work file that the stage did not declare or that has an impossible name.
    #[error("the stage has no table or work file {name:?} of this kind")]
    Undeclared {
        /// The name.
        name: String,
    },
    /// Publishing with rows that were not committed.
    #[error("stage {stage}: {name} has rows that were not committed")]
    Uncommitted {
        /// The stage.
        stage: StageName,
        /// The table or work file.
        name: String,
    },
    /// The state that was committed is not one.
    #[error(
        "the unfinished {stage} was left by another version: {reason}\nhint: finish it with that version, or start over with overwrite"
    )]
    State {
        /// The stage.
        stage: StageName,
        /// What is wrong with it.
        reason: String,
    },
    /// Used after an error.
    #[error("stage {stage}: an earlier error has ended this attempt; open the stage again")]
    Poisoned {
        /// The stage.
        stage: StageName,
    },
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A table could not be written.
    #[error(transparent)]
    Table(#[from] TableError),
    /// A work file could not be read.
    #[error(transparent)]
    Raw(#[from] RawError),
    /// The atlas is no good.
    #[error(transparent)]
    Atlas(#[from] AtlasError),
}

fn of_other_job(difference: Option<&str>) -> String {
    difference.map(|difference| format!(" of another job: {difference}")).unwrap_or_default()
}

/// The open part of a table.
trait OpenPart: Any {
    fn rows(&self) -> u64;
    fn finish(self: Box<Self>) -> Result<PartMeta, TableError>;
}

/// A writer that can be the open part of a table.
trait PartOf: OpenPart {
    fn begin(part: PartWriter) -> Self;
}

macro_rules! open_parts {
    ($([$($of:tt)*] $writer:ty),+) => {$(
        impl<$($of)*> OpenPart for $writer {
            fn rows(&self) -> u64 {
                <$writer>::rows(self)
            }

            fn finish(self: Box<Self>) -> Result<PartMeta, TableError> {
                <$writer>::finish(*self, true)
            }
        }

        impl<$($of)*> PartOf for $writer {
            fn begin(part: PartWriter) -> Self {
                <$writer>::new(part)
            }
        }
    )+};
}
open_parts!([R: Row] RowWriter<R>, [] IdPairsWriter, [] ChunksWriter, [] SketchesWriter, [] FeaturesWriter);

/// A stage at work. Holds the lock of the atlas until dropped.
pub struct Staging {
    dir: PathBuf,
    stage_dir: PathBuf,
    params: StageParams,
    journal: Box<dyn StorageFile>,
    commits: Vec<Commit>,
    slots: BTreeMap<TableName, Box<dyn OpenPart>>,
    raw: BTreeMap<String, RawWriter>,
    poisoned: bool,
    // Last, so that everything is closed before others may come in.
    lock: Lock,
}

impl std::fmt::Debug for Staging {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Staging")
            .field("dir", &self.stage_dir)
            .field("commits", &self.commits.len())
            .finish_non_exhaustive()
    }
}

macro_rules! part_accessors {
    ($($table:ident $name:ident: $writer:ty),+ $(,)?) => {$(
        #[doc = concat!("The open part of `", stringify!($table), "`, begun where there is none.")]
        pub fn $table(&mut self) -> Result<&mut $writer, StagingError> {
            self.part(&TableName::$name)
        }
    )+};
}

impl Staging {
    /// Opens the folder of a stage and, where an earlier run of the same job stopped, what it had
    /// committed.
    ///
    /// Makes the folder of the atlas where it is missing, but not those above it.
    pub fn open(
        atlas_dir: impl Into<PathBuf>,
        params: StageParams,
    ) -> Result<(Staging, Option<Checkpoint>), StagingError> {
        resume::open(atlas_dir.into(), params)
    }

    part_accessors!(
        documents Documents: DocumentsWriter,
        sites Sites: SitesWriter,
        links Links: IdPairsWriter,
        sketches Sketches: SketchesWriter,
        features Features: FeaturesWriter,
        pairs Pairs: PairsWriter,
        clusters Clusters: ClustersWriter,
        cluster_stats ClusterStats: ClusterStatsWriter,
        collections Collections: CollectionsWriter,
        collection_pages CollectionPages: CollectionPagesWriter,
        collection_groups CollectionGroups: CollectionGroupsWriter,
        url_rules UrlRules: UrlRulesWriter,
    );

    /// The open part of the chunks of a chunking, begun where there is none.
    pub fn chunks(&mut self, chunking: &ChunkingName) -> Result<&mut ChunksWriter, StagingError> {
        self.part(&Table::Chunks(chunking.clone()).name())
    }

    /// The open part of the copies of a level, begun where there is none.
    pub fn copies(&mut self, level: &LevelName) -> Result<&mut IdPairsWriter, StagingError> {
        self.part(&Table::Copies(level.clone()).name())
    }

    fn part<W: PartOf>(&mut self, name: &TableName) -> Result<&mut W, StagingError> {
        let undeclared = || StagingError::Undeclared { name: name.to_string() };
        if !self.slots.contains_key(name) {
            self.ensure_usable()?;
            let declared = self.params.tables.iter().find(|table| table.name() == *name);
            let table = declared.cloned().ok_or_else(undeclared)?;
            let path = part_path(&self.stage_dir, name, self.commits.len() as u64);
            let part = self.create_part(table, &path)?;
            self.slots.insert(name.clone(), Box::new(W::begin(part)));
        }
        let slot: &mut dyn Any = self.slots.get_mut(name).ok_or_else(undeclared)?.as_mut();
        slot.downcast_mut().ok_or_else(undeclared)
    }

    fn create_part(&self, table: Table, path: &Path) -> Result<PartWriter, StagingError> {
        let params = PartParams { table, recipe: self.params.recipe.clone() };
        Ok(PartWriter::create(self.params.storage.as_ref(), path, &params)?)
    }

    /// The open work file of this name, begun where there is none: records that take part in
    /// commits and are not published.
    pub fn raw<R: Record>(&mut self, name: &str) -> Result<RawPart<'_, R>, StagingError> {
        let undeclared = || StagingError::Undeclared { name: name.to_owned() };
        if !self.raw.contains_key(name) {
            self.ensure_usable()?;
            if !is_folder_name(name) {
                return Err(undeclared());
            }
            let path = raw_path(&self.stage_dir, name, self.commits.len() as u64);
            let action = format!("writing the work file {name}");
            let writer = RawWriter::create::<R>(self.params.storage.as_ref(), &path, &action)?;
            self.raw.insert(name.to_owned(), writer);
        }
        let writer = self.raw.get_mut(name).ok_or_else(undeclared)?;
        Ok(RawPart { writer, record: PhantomData })
    }

    /// All committed records of a work file, in the order they were pushed.
    pub fn raw_records<R: Record>(&self, name: &str) -> RawRecords<R> {
        RawRecords::new(self.raw_files(name))
    }

    /// The committed files of a work file, for [`RawRecords::new`]: to read it while the stage is
    /// being written to.
    pub fn raw_files(&self, name: &str) -> Vec<PathBuf> {
        let files = self.commits.iter().filter(|commit| commit.raw.iter().any(|entry| entry.name == name));
        files.map(|commit| raw_path(&self.stage_dir, name, commit.commit)).collect()
    }

    /// The committed files of a table, in order. They can be read before they are published.
    pub fn files(&self, table: &TableName) -> Vec<PathBuf> {
        let committed =
            self.commits.iter().filter(|commit| commit.parts.iter().any(|part| part.table == *table));
        committed
            .map(|commit| {
                let here = part_path(&self.stage_dir, table, commit.commit);
                // A publication that was interrupted may have moved it already.
                match self.params.tables.iter().find(|declared| declared.name() == *table) {
                    Some(declared) if !here.exists() => {
                        self.dir.join(declared.folder()).join(part_name(commit.commit))
                    }
                    _ => here,
                }
            })
            .collect()
    }

    /// A folder for temporary files, such as sorted runs; emptied whenever the stage is opened.
    pub fn work_dir(&self) -> PathBuf {
        self.stage_dir.join("work")
    }

    /// The folder of the atlas.
    pub fn atlas_dir(&self) -> &Path {
        &self.dir
    }

    /// Where files are written.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.params.storage
    }

    /// What is safe now; `None` before the first commit.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        let last = self.commits.last()?;
        let mut rows = BTreeMap::new();
        let mut records = BTreeMap::new();
        for commit in &self.commits {
            for part in &commit.parts {
                *rows.entry(part.table.clone()).or_insert(0) += part.rows;
            }
            for raw in &commit.raw {
                *records.entry(raw.name.clone()).or_insert(0) += raw.records;
            }
        }
        Some(Checkpoint { commits: self.commits.len() as u64, state: last.state.clone(), rows, records })
    }

    /// Makes everything pushed so far safe, together with `state`, which a resumed run is given
    /// back.
    ///
    /// Commits must happen at places that depend on the input alone, or the files of an interrupted
    /// run will differ.
    pub fn commit(&mut self, state: Value) -> Result<(), StagingError> {
        self.ensure_usable()?;
        // Any way out but the last leaves the open parts in an unknown state.
        self.poisoned = true;
        let number = self.commits.len() as u64;
        let storage = Arc::clone(&self.params.storage);
        let sync_dir =
            |folder: &Path| storage.sync_dir(folder).map_err(|e| IoError::new("syncing", folder, e));
        let mut commit = Commit { commit: number, state, parts: Vec::new(), raw: Vec::new() };
        for (name, slot) in std::mem::take(&mut self.slots) {
            let path = part_path(&self.stage_dir, &name, number);
            if slot.rows() == 0 {
                drop(slot);
                storage.remove_file(&path).map_err(|e| IoError::new("removing", &path, e))?;
                continue;
            }
            let meta = slot.finish()?;
            commit.parts.push(PartEntry { table: name, rows: meta.rows, bytes: meta.bytes, xxh3: meta.xxh3 });
        }
        for (name, writer) in std::mem::take(&mut self.raw) {
            let path = raw_path(&self.stage_dir, &name, number);
            if writer.records() == 0 {
                drop(writer);
                storage.remove_file(&path).map_err(|e| IoError::new("removing", &path, e))?;
                continue;
            }
            let meta = writer.finish(true)?;
            commit.raw.push(RawEntry { name, records: meta.records, bytes: meta.bytes, xxh3: meta.xxh3 });
        }
        if !commit.parts.is_empty() || !commit.raw.is_empty() || number == 0 {
            sync_dir(&self.stage_dir)?;
        }
        // Nothing was lost with the folders before there was a commit.
        if number == 0 {
            sync_dir(&self.dir.join(STAGING_DIR))?;
            sync_dir(&self.dir)?;
        }
        self.append_to_journal(&commit)?;
        self.commits.push(commit);
        self.poisoned = false;
        Ok(())
    }

    fn append_to_journal(&mut self, commit: &Commit) -> Result<(), StagingError> {
        let path = self.stage_dir.join(JOURNAL_FILE);
        let line = journal::commit_line(commit)
            .map_err(|source| StagingError::Journal { path: path.clone(), source })?;
        self.journal
            .write_all(&line)
            .and_then(|()| self.journal.flush())
            .and_then(|()| self.journal.sync())
            .map_err(|e| IoError::while_writing("writing the journal", path, line.len() as u64, 0, e).into())
    }

    fn ensure_usable(&self) -> Result<(), StagingError> {
        if self.poisoned { Err(StagingError::Poisoned { stage: self.params.stage }) } else { Ok(()) }
    }
}

/// The open part of a work file.
#[derive(Debug)]
pub struct RawPart<'a, R> {
    writer: &'a mut RawWriter,
    record: PhantomData<R>,
}

impl<R: Record> RawPart<'_, R> {
    /// Appends a record.
    ///
    /// # Panics
    ///
    /// When the file was begun with records of another width.
    #[inline]
    pub fn push(&mut self, record: &R) -> Result<(), StagingError> {
        Ok(self.writer.push(record)?)
    }

    /// Records in the open part.
    pub fn records(&self) -> u64 {
        self.writer.records()
    }
}

fn part_name(commit: u64) -> String {
    format!("part-{commit:05}.parquet")
}

/// Where a part of a table is until it is published. All are in one folder, so that a commit has
/// one folder to sync.
fn part_path(stage_dir: &Path, table: &TableName, commit: u64) -> PathBuf {
    stage_dir.join(staged_name(table, &part_name(commit)))
}

fn staged_name(table: &TableName, part: &str) -> String {
    format!("{table}.{part}")
}

fn raw_path(stage_dir: &Path, name: &str, commit: u64) -> PathBuf {
    stage_dir.join(format!("{name}.part-{commit:05}.raw"))
}

#[cfg(test)]
mod tests;
