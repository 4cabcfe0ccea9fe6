//! Opening a stage: a fresh start, or where an earlier run stopped.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use super::journal::{self, Header, JOURNAL_VERSION, Journal, TableDecl};
use super::lock::Lock;
use super::publish;
use super::{
    Checkpoint, JOURNAL_FILE, STAGING_DIR, StageKind, StageParams, Staging, StagingError, part_name,
    part_path, raw_path,
};
use crate::atlas::{self, AtlasError};
use crate::disk::IoError;
use crate::schema::{Table, is_folder_name};
use crate::storage::{Sink, Storage, StorageFile, checksum_file, list, remove_tree};

pub(super) fn open(dir: PathBuf, params: StageParams) -> Result<(Staging, Option<Checkpoint>), StagingError> {
    let storage = std::sync::Arc::clone(&params.storage);
    prepare_folder(storage.as_ref(), &dir, params.kind)?;
    let staging_dir = dir.join(STAGING_DIR);
    let stage_dir = staging_dir.join(params.stage.as_str());
    storage.create_dir_all(&staging_dir).map_err(|e| IoError::new("creating", &staging_dir, e))?;
    let lock = Lock::take(&staging_dir, &dir)?;

    let header = header_of(&params);
    let found = read_journal(&stage_dir, params.overwrite)?;
    let journal = match found.header {
        Some(ref before) => match difference(before, &header) {
            None => Some(found),
            Some(_) if params.overwrite => None,
            Some(difference) => {
                return Err(StagingError::OtherJob { dir, stage: params.stage, difference });
            }
        },
        None => None,
    };
    let (journal_file, commits) = match journal {
        Some(journal) => {
            check_committed(&dir, &stage_dir, &params.tables, &journal)?;
            remove_uncommitted(storage.as_ref(), &stage_dir, &journal)?;
            let path = stage_dir.join(JOURNAL_FILE);
            let mut file = storage
                .append(&path, journal.valid_bytes)
                .map_err(|e| IoError::new("opening the journal", &path, e))?;
            file.sync().map_err(|e| IoError::new("syncing the journal", &path, e))?;
            (file, journal.commits)
        }
        None => {
            refuse_finished(&dir, &params).inspect_err(|_| tidy(storage.as_ref(), &stage_dir, &lock))?;
            (begin(storage.as_ref(), &stage_dir, &header)?, Vec::new())
        }
    };
    let staging = Staging {
        dir,
        stage_dir,
        params,
        journal: journal_file,
        commits,
        slots: Default::default(),
        raw: Default::default(),
        poisoned: false,
        lock,
    };
    let checkpoint = staging.checkpoint();
    Ok((staging, checkpoint))
}

/// Makes the folder of the atlas, or makes sure that it is one.
fn prepare_folder(storage: &dyn Storage, dir: &Path, kind: StageKind) -> Result<(), StagingError> {
    let parent = match dir.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => dir,
    };
    if !parent.is_dir() {
        return Err(StagingError::NoParent { dir: dir.to_owned(), parent: parent.to_owned() });
    }
    match fs::metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && kind == StageKind::Create => {
            storage.create_dir_all(dir).map_err(|e| IoError::new("creating the atlas", dir, e))?;
            storage.sync_dir(parent).map_err(|e| IoError::new("syncing", parent, e))?;
            return Ok(());
        }
        Err(error) => return Err(IoError::new("opening the atlas", dir, error).into()),
        Ok(_) => {}
    }
    let entries = list(dir)?;
    let has = |name: &str| entries.iter().any(|(path, _)| path.file_name().is_some_and(|file| file == name));
    if has(crate::manifest::MANIFEST_FILE) || has(STAGING_DIR) {
        return Ok(());
    }
    match entries.first() {
        _ if kind == StageKind::Extend => {
            Err(AtlasError::NotAnAtlas { dir: dir.to_owned(), unfinished: false }.into())
        }
        None => Ok(()),
        Some((path, _)) => {
            let entry = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Err(StagingError::NotEmpty { dir: dir.to_owned(), entry })
        }
    }
}

fn header_of(params: &StageParams) -> Header {
    let tables = params.tables.iter().map(|table| TableDecl {
        name: table.name(),
        list_len: match table {
            Table::Sketches { len } | Table::Features { len } => Some(*len),
            _ => None,
        },
    });
    Header {
        journal: JOURNAL_VERSION,
        stage: params.stage,
        recipe: params.recipe.clone(),
        tables: tables.collect(),
        job: params.job.clone(),
    }
}

/// What sets two jobs apart; `None` when they are the same.
fn difference(before: &Header, now: &Header) -> Option<String> {
    let tables =
        |header: &Header| json!(header.tables.iter().map(|t| (&t.name, t.list_len)).collect::<Vec<_>>());
    let whole = |header: &Header| json!({"recipe": header.recipe, "tables": tables(header)});
    journal::first_difference(&before.job, &now.job)
        .or_else(|| journal::first_difference(&whole(before), &whole(now)))
}

fn read_journal(stage_dir: &Path, overwrite: bool) -> Result<Journal, StagingError> {
    let path = stage_dir.join(JOURNAL_FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Journal::default()),
        Err(error) => return Err(IoError::new("reading the journal", path, error).into()),
    };
    match journal::parse(&bytes) {
        Ok(journal) => Ok(journal),
        Err(_) if overwrite => Ok(Journal::default()),
        Err(source) => Err(StagingError::Journal { path, source }),
    }
}

/// An earlier result stands in the way, or one that should be extended is not there.
fn refuse_finished(dir: &Path, params: &StageParams) -> Result<(), StagingError> {
    let found = match (atlas::read_manifest(dir), params.kind) {
        // Nothing is lost when something unreadable is replaced, as was asked for.
        (Err(AtlasError::Manifest { .. }), StageKind::Create) if params.overwrite => None,
        (found, _) => found?,
    };
    let finished = match (found, params.kind) {
        // Publishing removes what the new manifest does not name. Without a journal of this stage
        // that is no half of its own result: the manifest is lost.
        (None, StageKind::Create) if params.overwrite => false,
        (None, StageKind::Create) => match publish::files_of_tables(dir)?.next() {
            None => false,
            Some(path) => {
                let file = path.strip_prefix(dir).unwrap_or(&path).display().to_string();
                return Err(StagingError::NoManifest { dir: dir.to_owned(), file });
            }
        },
        (None, StageKind::Extend) => {
            return Err(AtlasError::NotAnAtlas { dir: dir.to_owned(), unfinished: true }.into());
        }
        (Some(_), StageKind::Create) => true,
        (Some(manifest), StageKind::Extend) => {
            params.tables.iter().any(|table| manifest.tables.contains_key(&table.name()))
        }
    };
    if finished && !params.overwrite {
        return Err(StagingError::AlreadyFinished {
            dir: dir.to_owned(),
            stage: params.stage,
            difference: None,
        });
    }
    Ok(())
}

/// Leaves a folder that was refused as it was found, without what a finished stage may have left
/// behind. Only tries: the refusal is what the caller must hear of.
fn tidy(storage: &dyn Storage, stage_dir: &Path, lock: &Lock) {
    let tidied = discard(storage, stage_dir).and_then(|()| remove_if_idle(storage, lock));
    if let Err(error) = tidied {
        tracing::debug!(%error, "the work folder was left behind");
    }
}

/// Removes the work folder of an atlas when no stage has work in it.
pub(super) fn remove_if_idle(storage: &dyn Storage, lock: &Lock) -> Result<(), StagingError> {
    let staging_dir = lock.path().parent().unwrap_or(lock.path());
    let idle = list(staging_dir)?.iter().all(|(path, _)| path == lock.path());
    if idle { Ok(remove_tree(storage, staging_dir)?) } else { Ok(()) }
}

/// An empty stage with a journal that names the job. It is synced with the first commit: there is
/// nothing to lose before.
fn begin(
    storage: &dyn Storage,
    stage_dir: &Path,
    header: &Header,
) -> Result<Box<dyn StorageFile>, StagingError> {
    discard(storage, stage_dir)?;
    storage.create_dir_all(stage_dir).map_err(|e| IoError::new("creating", stage_dir, e))?;
    let path = stage_dir.join(JOURNAL_FILE);
    let line = journal::header_line(header)
        .map_err(|source| StagingError::Journal { path: path.clone(), source })?;
    let placed = |e| IoError::from_io(e, "writing the journal", &path);
    let mut sink = Sink::create(storage, &path, "writing the journal").map_err(placed)?;
    sink.write_all(&line).and_then(|()| sink.flush()).map_err(placed)?;
    drop(sink);
    let append = storage.append(&path, line.len() as u64);
    Ok(append.map_err(|e| IoError::new("opening the journal", &path, e))?)
}

/// Removes the work of a stage. The journal goes first: without it, what remains is nobody's.
pub(super) fn discard(storage: &dyn Storage, stage_dir: &Path) -> Result<(), StagingError> {
    let journal = stage_dir.join(JOURNAL_FILE);
    if journal.exists() {
        storage.remove_file(&journal).map_err(|e| IoError::new("removing", &journal, e))?;
        storage.sync_dir(stage_dir).map_err(|e| IoError::new("syncing", stage_dir, e))?;
    }
    Ok(remove_tree(storage, stage_dir)?)
}

/// Every committed file must be there, in the stage or already in its table, with its length and
/// checksum.
fn check_committed(
    dir: &Path,
    stage_dir: &Path,
    tables: &[Table],
    journal: &Journal,
) -> Result<(), StagingError> {
    for commit in &journal.commits {
        for part in &commit.parts {
            let here = part_path(stage_dir, &part.table, commit.commit);
            let Some(table) = tables.iter().find(|table| table.name() == part.table) else {
                return Err(StagingError::Lost {
                    file: here,
                    problem: "of no table of this stage".to_owned(),
                });
            };
            let there = dir.join(table.folder()).join(part_name(commit.commit));
            check_file(if here.exists() { &here } else { &there }, &here, part.bytes, part.xxh3)?;
        }
        for raw in &commit.raw {
            if !is_folder_name(&raw.name) {
                let file = stage_dir.join(JOURNAL_FILE);
                return Err(StagingError::Lost {
                    file,
                    problem: format!("names a work file {:?}", raw.name),
                });
            }
            let path = raw_path(stage_dir, &raw.name, commit.commit);
            check_file(&path, &path, raw.bytes, raw.xxh3)?;
        }
    }
    Ok(())
}

fn check_file(file: &Path, named: &Path, bytes: u64, xxh3: u64) -> Result<(), StagingError> {
    let lost = |problem: String| StagingError::Lost { file: named.to_owned(), problem };
    let found = match fs::metadata(file) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(lost("committed, but not there".to_owned()));
        }
        Err(error) => return Err(IoError::new("reading", file, error).into()),
    };
    if found != bytes {
        return Err(lost(format!("{found} bytes long, committed with {bytes}")));
    }
    let (sum, _) = checksum_file(file).map_err(atlas::stopped_or)?;
    if sum != xxh3 { Err(lost("changed since it was committed".to_owned())) } else { Ok(()) }
}

/// Removes every file of the stage that no commit names.
fn remove_uncommitted(
    storage: &dyn Storage,
    stage_dir: &Path,
    journal: &Journal,
) -> Result<(), StagingError> {
    let mut named = BTreeSet::from([stage_dir.join(JOURNAL_FILE)]);
    for commit in &journal.commits {
        named.extend(commit.parts.iter().map(|part| part_path(stage_dir, &part.table, commit.commit)));
        named.extend(commit.raw.iter().map(|raw| raw_path(stage_dir, &raw.name, commit.commit)));
    }
    remove_tree(storage, &stage_dir.join("work"))?;
    for (path, is_dir) in list(stage_dir)? {
        if !is_dir && !named.contains(&path) {
            storage.remove_file(&path).map_err(|e| IoError::new("removing", &path, e))?;
        }
    }
    Ok(())
}
