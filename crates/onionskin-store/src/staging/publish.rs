//! From a finished stage to tables of the atlas.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::{
    JOURNAL_FILE, STAGING_DIR, StageKind, Staging, StagingError, part_name, part_path, resume, staged_name,
};
use crate::atlas::{self, Atlas, AtlasError, written};
use crate::disk::IoError;
use crate::manifest::{FileEntry, MANIFEST_FILE, Manifest, TableEntry};
use crate::schema::{Table, TableName};
use crate::storage::{Storage, list};

impl Staging {
    /// Moves the committed parts into their tables, writes the manifest, and removes the work
    /// folder.
    ///
    /// `fill` completes the manifest: for a stage that creates the atlas a new one, else the one
    /// that is there, in both cases with the tables of this stage already in it. It must do the
    /// same on every call. When this returns an error, or the process dies in the middle, opening
    /// the stage again and publishing again ends in the same bytes.
    pub fn publish(mut self, fill: impl FnOnce(&mut Manifest)) -> Result<Atlas, StagingError> {
        self.ensure_usable()?;
        let open = self.slots.iter().map(|(name, slot)| (name.to_string(), slot.rows()));
        let mut open = open.chain(self.raw.iter().map(|(name, raw)| (name.clone(), raw.records())));
        if let Some((name, _)) = open.find(|(_, rows)| *rows > 0) {
            return Err(StagingError::Uncommitted { stage: self.params.stage, name });
        }
        self.slots.clear();
        self.raw.clear();

        let before = match atlas::read_manifest(&self.dir) {
            // A manifest that cannot be read is no loss when a new atlas takes its place.
            Err(AtlasError::Manifest { .. }) if self.params.kind == StageKind::Create => None,
            other => other?,
        };
        let mut manifest = match (self.params.kind, &before) {
            (StageKind::Create, _) => Manifest { recipe: self.params.recipe.clone(), ..Manifest::default() },
            (StageKind::Extend, Some(before)) => before.clone(),
            (StageKind::Extend, None) => {
                return Err(AtlasError::NotAnAtlas { dir: self.dir.clone(), unfinished: false }.into());
            }
        };
        for table in self.params.tables.clone() {
            let entry = self.table_entry(&table)?;
            manifest.tables.insert(table.name(), entry);
        }
        let is_same = |table: &Table| {
            before
                .as_ref()
                .is_some_and(|before| before.tables.get(&table.name()) == manifest.tables.get(&table.name()))
        };
        if !self.params.tables.iter().all(is_same) {
            for table in &self.params.voids {
                manifest.tables.remove(&table.name());
            }
        }
        fill(&mut manifest);

        if before.as_ref() != Some(&manifest) {
            self.withdraw(before)?;
        }
        self.move_parts(&manifest)?;
        self.sweep(&manifest)?;
        let storage = std::sync::Arc::clone(&self.params.storage);
        atlas::write_manifest(storage.as_ref(), &self.dir, &manifest)?;
        self.clean_up()?;
        let tables = self.params.tables.iter().filter_map(|table| manifest.tables.get(&table.name()));
        for file in tables.flat_map(|table| &table.files) {
            written::remember(&self.dir.join(&file.path), file.bytes, file.xxh3);
        }
        Ok(Atlas::open_with(self.dir.clone(), storage)?)
    }

    /// The files of a table, as the manifest will name them. A table without rows gets one empty
    /// file, so that other programs find its columns.
    fn table_entry(&self, table: &Table) -> Result<TableEntry, StagingError> {
        let (name, folder) = (table.name(), table.folder());
        let mut entry = TableEntry::default();
        for commit in &self.commits {
            for part in commit.parts.iter().filter(|part| part.table == name) {
                entry.rows += part.rows;
                entry.files.push(FileEntry {
                    path: format!("{folder}/{}", part_name(commit.commit)),
                    rows: part.rows,
                    bytes: part.bytes,
                    xxh3: part.xxh3,
                });
            }
        }
        if entry.files.is_empty() {
            let path = part_path(&self.stage_dir, &name, 0);
            let meta = self.create_part(table.clone(), &path)?.finish(true)?;
            let path = format!("{folder}/{}", part_name(0));
            entry.files.push(FileEntry { path, rows: 0, bytes: meta.bytes, xxh3: meta.xxh3 });
        }
        Ok(entry)
    }

    /// Takes what will be replaced out of the manifest that is there, before any of its files is
    /// touched.
    fn withdraw(&self, before: Option<Manifest>) -> Result<(), StagingError> {
        let storage = self.params.storage.as_ref();
        match self.params.kind {
            StageKind::Create => {
                let path = self.dir.join(MANIFEST_FILE);
                if path.exists() {
                    storage.remove_file(&path).map_err(|e| IoError::new("removing", &path, e))?;
                    storage.sync_dir(&self.dir).map_err(|e| IoError::new("syncing", &self.dir, e))?;
                }
            }
            StageKind::Extend => {
                let Some(mut manifest) = before else { return Ok(()) };
                let tables = manifest.tables.len();
                for table in self.params.tables.iter().chain(&self.params.voids) {
                    manifest.tables.remove(&table.name());
                }
                if manifest.tables.len() < tables {
                    atlas::write_manifest(storage, &self.dir, &manifest)?;
                }
            }
        }
        Ok(())
    }

    fn move_parts(&self, manifest: &Manifest) -> Result<(), StagingError> {
        let storage = self.params.storage.as_ref();
        let mut folders = BTreeSet::new();
        for table in &self.params.tables {
            let Some(entry) = manifest.tables.get(&table.name()) else { continue };
            let folder = self.dir.join(table.folder());
            if !folder.is_dir() {
                storage.create_dir_all(&folder).map_err(|e| IoError::new("creating", &folder, e))?;
            }
            for file in &entry.files {
                let Some((_, name)) = file.path.rsplit_once('/') else { continue };
                let here = self.stage_dir.join(staged_name(&table.name(), name));
                let there = folder.join(name);
                // One that is not here any more was moved by an attempt before this one; opening
                // the stage has checked it.
                if here.exists() {
                    storage
                        .rename(&here, &there)
                        .map_err(|e| IoError::new("moving into place", &there, e))?;
                } else if !there.exists() {
                    let problem = "committed, but not there".to_owned();
                    return Err(StagingError::Lost { file: here, problem });
                }
            }
            folders.extend(folder.parent().map(Path::to_owned));
            folders.insert(folder);
        }
        for folder in &folders {
            storage.sync_dir(folder).map_err(|e| IoError::new("syncing", folder, e))?;
        }
        Ok(())
    }

    /// Removes parts of earlier results from the tables of this stage; from all tables, when it
    /// begins the atlas.
    fn sweep(&self, manifest: &Manifest) -> Result<(), StagingError> {
        let storage = self.params.storage.as_ref();
        let keep: BTreeSet<PathBuf> = manifest
            .tables
            .values()
            .flat_map(|table| &table.files)
            .map(|file| self.dir.join(&file.path))
            .collect();
        let mut folders: BTreeSet<PathBuf> = self
            .params
            .tables
            .iter()
            .chain(&self.params.voids)
            .map(|table| self.dir.join(table.folder()))
            .collect();
        if self.params.kind == StageKind::Create {
            folders.extend(folders_of_tables(&self.dir)?);
        }
        for folder in &folders {
            sweep_folder(storage, folder, &keep)?;
        }
        Ok(())
    }

    /// Removes the work folder: this stage's, or all when a new atlas makes the work of other
    /// stages void.
    fn clean_up(&self) -> Result<(), StagingError> {
        let storage = self.params.storage.as_ref();
        let staging_dir = self.dir.join(STAGING_DIR);
        resume::discard(storage, &self.stage_dir)?;
        let begins = self.params.kind == StageKind::Create;
        for (other, _) in list(&staging_dir)?.into_iter().filter(|(_, is_dir)| *is_dir) {
            // Without a journal it is what a run that was killed while cleaning up has left.
            if begins || !other.join(JOURNAL_FILE).exists() {
                resume::discard(storage, &other)?;
            }
        }
        resume::remove_if_idle(storage, &self.lock)
    }
}

/// Folders in an atlas that tables are in, whatever its manifest says.
fn folders_of_tables(dir: &Path) -> Result<Vec<PathBuf>, IoError> {
    let mut folders: Vec<PathBuf> = TableName::directories().map(|folder| dir.join(folder)).collect();
    for family in ["chunks", "copies"] {
        let members = list(&dir.join(family))?.into_iter();
        folders.extend(members.filter(|(_, is_dir)| *is_dir).map(|(path, _)| path));
    }
    Ok(folders)
}

/// The Parquet files of these.
pub(super) fn files_of_tables(dir: &Path) -> Result<impl Iterator<Item = PathBuf>, IoError> {
    let mut files = Vec::new();
    for folder in folders_of_tables(dir)? {
        let found = list(&folder)?.into_iter().filter(|(_, is_dir)| !is_dir).map(|(path, _)| path);
        files.extend(found.filter(|path| path.extension().is_some_and(|kind| kind == "parquet")));
    }
    Ok(files.into_iter())
}

/// Removes the parts of a folder that are not to be kept, and the folder itself when it is empty
/// then.
fn sweep_folder(storage: &dyn Storage, folder: &Path, keep: &BTreeSet<PathBuf>) -> Result<(), StagingError> {
    let mut removed = false;
    for (path, is_dir) in list(folder)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !is_dir && name.starts_with("part-") && name.ends_with(".parquet") && !keep.contains(&path) {
            storage.remove_file(&path).map_err(|e| IoError::new("removing", &path, e))?;
            removed = true;
        }
    }
    if removed && fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none()) {
        storage.remove_dir(folder).map_err(|e| IoError::new("removing", folder, e))?;
    }
    Ok(())
}
