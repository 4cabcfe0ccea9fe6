//! Whether every file is what was written, and what can be made of those that are not.

use std::path::{Path, PathBuf};

use onionskin_store::IoError;
use serde::Serialize;

use crate::acknowledged::{self, Acknowledged};
use crate::blocks::Room;
use crate::catalogue::{self, Catalogue};
use crate::error::SeenError;
use crate::reader::is_gone;
use crate::removed::{NOBODY, Removed};
use crate::run::{LOST_MINIMUM, Record, Run, RunMeta, RunPlan, RunWriter, Salvage};
use crate::wal::{self, Position};
use crate::writer::{Options, Seen, begin_wal, lock};

/// A file that is not what was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
}

/// What [`verify`] has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Files that were read.
    pub files: u64,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Bytes at the end of the log that belong to a batch that was never finished: no damage,
    /// unless the last batch was acknowledged and then harmed.
    pub torn_bytes: u64,
}

impl Verification {
    /// Nothing is wrong.
    pub fn is_whole(&self) -> bool {
        self.findings.is_empty()
    }

    fn note<T>(&mut self, path: &Path, result: Result<T, SeenError>) -> Option<T> {
        self.files += 1;
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let problem = match error {
                    SeenError::Damaged { what, .. } => what,
                    other => other.to_string(),
                };
                self.findings.push(Finding { path: path.to_owned(), problem });
                None
            }
        }
    }
}

/// Reads every file of an index and checks every block and every order. The index may be in use.
pub fn verify(dir: &Path) -> Result<Verification, SeenError> {
    for _ in 0..10 {
        let before = std::fs::read(dir.join(catalogue::FILE)).ok();
        let found = verify_once(dir)?;
        if found.is_whole() || before == std::fs::read(dir.join(catalogue::FILE)).ok() {
            return Ok(found);
        }
    }
    verify_once(dir)
}

fn verify_once(dir: &Path) -> Result<Verification, SeenError> {
    let mut found = Verification::default();
    let main = match Catalogue::read(dir) {
        Err(SeenError::Missing(dir)) => return Err(SeenError::Missing(dir)),
        result => found.note(&dir.join(catalogue::FILE), result),
    };
    let copy = found.note(&dir.join(catalogue::COPY), Catalogue::read_copy(dir));
    let Some(catalogue) = main.or(copy) else { return Ok(found) };
    for meta in &catalogue.runs {
        found.note(&meta.path(dir), verify_run(dir, meta, catalogue.sealed()));
    }
    if let Some((number, count)) = catalogue.removed {
        let removed = Removed::read(dir, number, count).and_then(|removed| {
            let documents = catalogue.sealed();
            let inside = |doc: u32| doc < documents;
            if removed.len() == count
                && removed.iter().all(|(doc, heir)| inside(doc) && (heir == NOBODY || inside(heir)))
            {
                return Ok(());
            }
            Err(SeenError::damaged(dir, "it names documents twice, or some that are not there"))
        });
        found.note(&Removed::path(dir, number), removed);
    }
    let path = wal::path(dir, catalogue.wal);
    if let Some(torn) = found.note(&path, verify_wal(dir, &path, catalogue.wal)) {
        found.torn_bytes = torn;
    }
    Ok(found)
}

fn verify_wal(dir: &Path, path: &Path, number: u64) -> Result<u64, SeenError> {
    let least = acknowledged::least(dir, number)?;
    let bytes = std::fs::read(path).map_err(|e| IoError::new("reading", path, e))?;
    let end = wal::replay(path, number, &bytes, Position::start(), |_| Ok(()))?;
    wal::ensure_torn(path, number, wal::behind(&bytes, end), end)?;
    acknowledged::ensure_reached(path, end, least)?;
    Ok(bytes.len() as u64 - end.offset)
}

fn verify_run(dir: &Path, meta: &RunMeta, documents: u32) -> Result<(), SeenError> {
    let run = Run::open(dir, *meta, true, Room::Some)?;
    let path = run.file().path();
    for block in 0..run.file().blocks() {
        run.file().read_block(block)?;
    }
    let mut centres = 0;
    for document in run.documents() {
        let (doc, record) = document?;
        if record.centre >= documents {
            return Err(SeenError::damaged(path, format!("document {doc} has a centre that is not there")));
        }
        centres += u32::from(record.centre == doc);
    }
    if centres != meta.centres {
        return Err(SeenError::damaged(
            path,
            format!("{centres} centres, the catalogue says {}", meta.centres),
        ));
    }
    run.check_sketches()?;
    let mut postings = run.postings()?;
    let mut last = None;
    while let Some(posting) = postings.next()? {
        if last.is_some_and(|last| last > posting) {
            return Err(SeenError::damaged(path, "its postings are out of order"));
        }
        last = Some(posting);
    }
    Ok(())
}

/// What [`repair`] has done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// What was wrong, as [`verify`] tells.
    #[serde(skip)]
    pub findings: Vec<Finding>,
    /// Documents whose records are lost. They are removed.
    pub lost_documents: u64,
    /// Entries of the index that are lost. A document is still found while r of its features are
    /// there.
    pub lost_postings: u64,
    /// Sketches that are lost: what these documents resemble is told by their features.
    pub lost_sketches: u64,
    /// Bytes of the log from the first bad batch on, which are lost.
    pub lost_log_bytes: u64,
    /// Tombstones are lost: what was removed is there again.
    pub lost_removals: bool,
}

/// Rebuilds damaged files from what is sound in them. A catalogue that is damaged, and its copy
/// too, cannot be helped.
pub fn repair(dir: &Path, options: Options) -> Result<Repair, SeenError> {
    let lock = lock(dir)?;
    let found = verify(dir)?;
    let mut done = Repair { findings: found.findings, ..Repair::default() };
    if done.findings.is_empty() {
        return Ok(done);
    }
    let damaged = |path: &Path| done.findings.iter().any(|finding| finding.path == path);
    let storage = options.storage.as_ref();
    let mut catalogue = Catalogue::read(dir).or_else(|error| Catalogue::read_copy(dir).map_err(|_| error))?;
    // A number that no file has, also where the copy is older than the catalogue was.
    catalogue.next += 1_000;
    let mut lost = Vec::new();
    for at in 0..catalogue.runs.len() {
        let meta = catalogue.runs[at];
        if damaged(&meta.path(dir)) {
            let number = catalogue.take_number();
            let rebuilt = match Salvage::open(dir, meta) {
                Ok(salvage) => {
                    let (rebuilt, sketches) =
                        rebuild(dir, &options, &catalogue, meta, number, &salvage, &mut lost)?;
                    done.lost_sketches += sketches;
                    rebuilt
                }
                Err(error) if is_gone(&error) => {
                    lost.extend(meta.first..meta.first + meta.docs);
                    let RunMeta { first, docs, sketch, .. } = meta;
                    let plan = RunPlan { number, first, docs, names: 2, sketch };
                    let mut writer = RunWriter::create(storage, dir, plan)?;
                    for doc in meta.first..meta.first + meta.docs {
                        writer.push_document(doc, Record { fp: 0, centre: doc, key: 0 })?;
                    }
                    writer.push_names(&[0, 0])?;
                    writer.begin_sketches()?;
                    for _ in 0..meta.docs {
                        writer.push_sketch(&vec![LOST_MINIMUM; sketch.minima as usize])?;
                    }
                    writer.finish()?
                }
                Err(error) => return Err(error),
            };
            done.lost_postings += meta.postings - rebuilt.postings;
            catalogue.runs[at] = rebuilt;
        }
    }
    if let Some((number, _)) = catalogue.removed
        && damaged(&Removed::path(dir, number))
    {
        catalogue.removed = None;
        done.lost_removals = true;
    }
    let path = wal::path(dir, catalogue.wal);
    if damaged(&path) {
        let bytes = std::fs::read(&path).unwrap_or_default();
        let there = (bytes.len() as u64).max(acknowledged::least(dir, catalogue.wal)?.offset);
        match wal::replay(&path, catalogue.wal, &bytes, Position::start(), |_| Ok(())) {
            Ok(end) => {
                done.lost_log_bytes = there - end.offset;
                drop(storage.append(&path, end.offset).map_err(|e| IoError::new("cutting", &path, e))?);
            }
            Err(_) => {
                done.lost_log_bytes = there;
                catalogue.wal = catalogue.take_number();
                drop(begin_wal(&options, dir, catalogue.wal)?);
            }
        }
        // What is lost is not missed a second time.
        drop(Acknowledged::restart(storage, dir));
    }
    catalogue.generation += 1;
    storage.sync_dir(dir).map_err(|e| IoError::new("syncing", dir, e))?;
    catalogue.replace(storage, dir)?;
    let mut seen = Seen::open_locked(dir, options, lock)?;
    done.lost_documents = lost.len() as u64;
    seen.remove(&lost)?;
    seen.close()?;
    Ok(done)
}

fn rebuild(
    dir: &Path,
    options: &Options,
    catalogue: &Catalogue,
    meta: RunMeta,
    number: u64,
    salvage: &Salvage,
    lost: &mut Vec<u32>,
) -> Result<(RunMeta, u64), SeenError> {
    tracing::warn!(run = meta.number, blocks = salvage.damaged_blocks(), "rebuilding a damaged run");
    let all = meta.first..meta.first + meta.docs;
    let names = catalogue.params.names;
    let empty = Record { fp: 0, centre: NOBODY, key: 0 };
    // A document is sound when its record and its name are.
    let sound = |doc: u32| {
        let record = salvage.record(doc)?;
        let name = if names { salvage.name(record.key)? } else { Vec::new() };
        (record.centre < catalogue.sealed()).then_some((record, name))
    };
    let mut names_len = 0;
    for doc in all.clone() {
        match sound(doc) {
            Some((_, name)) => names_len += name.len() as u64,
            None => lost.push(doc),
        }
    }
    let names_len = if names { names_len + 2 * u64::from(meta.docs) } else { 0 };
    let storage = options.storage.as_ref();
    let RunMeta { first, docs, sketch, .. } = meta;
    let plan = RunPlan { number, first, docs, names: names_len, sketch };
    let mut writer = RunWriter::create(storage, dir, plan)?;
    let mut place = 0;
    for doc in all.clone() {
        let (mut record, name) = sound(doc).unwrap_or((Record { centre: doc, ..empty }, Vec::new()));
        if names {
            record.key = place;
            place += 2 + name.len() as u64;
        }
        writer.push_document(doc, record)?;
    }
    if names {
        for doc in all.clone() {
            let name = sound(doc).map(|(_, name)| name).unwrap_or_default();
            writer.push_names(&(name.len() as u16).to_le_bytes())?;
            writer.push_names(&name)?;
        }
    }
    writer.begin_sketches()?;
    let mut lost_sketches = 0;
    if !sketch.is_none() {
        let nothing = vec![LOST_MINIMUM; sketch.minima as usize];
        for doc in all {
            // A lost document counts as a centre until it is removed.
            let record = sound(doc);
            if record.as_ref().is_none_or(|(record, _)| record.centre == doc) {
                let sketch = salvage.sketch(doc).filter(|_| record.is_some());
                lost_sketches += u64::from(record.is_some() && sketch.is_none());
                writer.push_sketch(sketch.as_ref().unwrap_or(&nothing))?;
            }
        }
    }
    salvage.postings(|key, doc| writer.push_posting(key, doc))?;
    Ok((writer.finish()?, lost_sketches))
}
