//! The one who writes: adds, commits, and seals the table in memory.

mod compact;
mod remove;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onionskin_store::storage::{Disk, Storage, StorageFile};
use onionskin_store::{IoError, MemoryBudget};
use rustix::fs::{FlockOperation, flock};

use crate::acknowledged::{self, Acknowledged};
use crate::catalogue::{self, Catalogue, Params, file_names};
use crate::error::SeenError;
use crate::removed::{NOBODY, Removed};
use crate::run::{MOST_POSTINGS, Run, RunPlan, RunWriter};
use crate::view::{Match, Probe, Stats, View};
use crate::wal::{self, Batch, Change, Position};

/// What changes no answer.
#[derive(Clone, Debug)]
pub struct Options {
    /// Memory for directories and blocks.
    pub memory: MemoryBudget,
    /// Documents in memory and in the log before they become a run.
    pub table_documents: u32,
    /// Where files are written.
    pub storage: Arc<dyn Storage>,
    /// Entries of a file of the index at most: what would have more is left in several. More than a
    /// directory can count are never taken.
    pub run_postings: u64,
}

impl Options {
    /// Documents in memory before they become a run, where nothing else is said.
    pub const TABLE_DOCUMENTS: u32 = 32_768;

    /// With this much memory, on disk.
    pub fn new(memory: MemoryBudget) -> Options {
        let (storage, run_postings) = (Disk::shared(), MOST_POSTINGS);
        Options { memory, table_documents: Options::TABLE_DOCUMENTS, storage, run_postings }
    }

    fn most_postings(&self) -> u64 {
        self.run_postings.min(MOST_POSTINGS)
    }
}

/// A document to add.
#[derive(Clone, Copy, Debug)]
pub struct Document<'a> {
    /// Its text's fingerprint and features.
    pub probe: Probe<'a>,
    /// The caller's key. Not kept in an index of names.
    pub key: u64,
    /// Its name. Not kept in an index of keys.
    pub name: &'a str,
}

/// What became of a document.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Its number, if it was added.
    pub doc: Option<u32>,
    /// What it is a copy of, if of anything.
    pub seen: Option<Match>,
}

/// An index that is written to. One at a time, in all processes.
///
/// Changes are staged and seen by this one's own checks at once; they are safe, and seen by others,
/// when [`Seen::commit`] returns.
pub struct Seen {
    dir: PathBuf,
    options: Options,
    catalogue: Catalogue,
    view: View,
    wal: Box<dyn StorageFile>,
    wal_at: Position,
    acknowledged: Acknowledged,
    batch: Batch,
    /// The removed are not all in the file that the catalogue names.
    removed_changed: bool,
    /// Set while something is half done.
    poisoned: bool,
    _lock: File,
}

/// A batch is written at the latest when it has this many bytes.
const BATCH_BYTES: usize = 64 << 20;

impl Seen {
    /// Begins an index in a folder that is new or empty.
    pub fn create(dir: &Path, params: Params, options: Options) -> Result<Seen, SeenError> {
        options.storage.create_dir_all(dir).map_err(|e| IoError::new("creating", dir, e))?;
        let lock = lock(dir)?;
        if dir.join(catalogue::FILE).exists() {
            return Err(SeenError::Exists(dir.to_owned()));
        }
        for name in file_names(dir)? {
            if !is_ours(&name) {
                return Err(SeenError::NotEmpty { dir: dir.to_owned(), entry: name });
            }
        }
        catalogue::ensure_no_remains(dir)?;
        let catalogue = Catalogue { params, generation: 0, next: 2, wal: 1, removed: None, runs: vec![] };
        begin_wal(&options, dir, catalogue.wal)?;
        // The catalogue must not be there without the log that it names.
        options.storage.sync_dir(dir).map_err(|e| IoError::new("syncing", dir, e))?;
        if let Some(parent) = dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            options.storage.sync_dir(parent).map_err(|e| IoError::new("syncing", parent, e))?;
        }
        catalogue.replace(options.storage.as_ref(), dir)?;
        Seen::open_locked(dir, options, lock)
    }

    /// Opens an index, with everything that was acknowledged.
    pub fn open(dir: &Path, options: Options) -> Result<Seen, SeenError> {
        // Without a lock, which makes a file, where there is nothing to lock.
        if !dir.join(catalogue::FILE).exists() {
            catalogue::ensure_no_remains(dir)?;
            return Err(SeenError::Missing(dir.to_owned()));
        }
        let lock = lock(dir)?;
        Seen::open_locked(dir, options, lock)
    }

    pub(crate) fn open_locked(dir: &Path, options: Options, lock: File) -> Result<Seen, SeenError> {
        let catalogue = Catalogue::read(dir)?;
        let mut view = View::open(dir, &catalogue, options.memory, &[])?;
        let path = wal::path(dir, catalogue.wal);
        let least = acknowledged::least(dir, catalogue.wal)?;
        let bytes = std::fs::read(&path).map_err(|e| IoError::new("reading", &path, e))?;
        let mut removed_changed = false;
        let wal_at = wal::replay(&path, catalogue.wal, &bytes, Position::start(), |change| {
            removed_changed |= matches!(change, Change::Remove { .. });
            view.apply(&change);
            Ok(())
        })?;
        wal::ensure_torn(&path, catalogue.wal, wal::behind(&bytes, wal_at), wal_at)?;
        acknowledged::ensure_reached(&path, wal_at, least)?;
        let storage = Arc::clone(&options.storage);
        catalogue.renew_copy(storage.as_ref(), dir)?;
        let wal = storage.append(&path, wal_at.offset).map_err(|e| IoError::new("opening", &path, e))?;
        remove_orphans(storage.as_ref(), dir, &catalogue)?;
        let acknowledged = Acknowledged::open(storage.as_ref(), dir);
        Ok(Seen {
            dir: dir.to_owned(),
            options,
            catalogue,
            view,
            wal,
            wal_at,
            acknowledged,
            batch: Batch::new(),
            removed_changed,
            poisoned: false,
            _lock: lock,
        })
    }

    /// What the index is of.
    pub fn params(&self) -> &Params {
        &self.catalogue.params
    }

    /// Whether a document, or one nearly like it, is there.
    pub fn check(&self, probe: &Probe<'_>) -> Result<Option<Match>, SeenError> {
        self.view.check(probe)
    }

    #[cfg(test)]
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// The files that are open.
    pub(crate) fn runs(&self) -> &[Arc<Run>] {
        &self.view.runs
    }

    /// How large it is.
    pub fn stats(&self) -> Stats {
        self.view.stats(&self.dir)
    }

    /// Adds a document. An exact copy of another is recorded with that one's centre.
    pub fn add(&mut self, document: &Document<'_>) -> Result<Outcome, SeenError> {
        self.add_or_not(document, true)
    }

    /// Adds a document if neither it nor one nearly like it is there: check and addition are
    /// acknowledged together.
    pub fn add_if_new(&mut self, document: &Document<'_>) -> Result<Outcome, SeenError> {
        self.add_or_not(document, false)
    }

    fn add_or_not(&mut self, document: &Document<'_>, copies_too: bool) -> Result<Outcome, SeenError> {
        self.ensure_usable()?;
        let names = self.view.params.names;
        if names && document.name.len() > usize::from(u16::MAX) {
            return Err(SeenError::LongName(document.name.len()));
        }
        let found = self.view.find(&document.probe)?;
        let seen = found.hit.map(|hit| self.view.describe(hit)).transpose()?;
        if seen.is_some() && !copies_too {
            return Ok(Outcome { doc: None, seen });
        }
        let doc = self.view.documents();
        if doc >= NOBODY - 1 {
            return Err(SeenError::Full);
        }
        // Where all features have crowds, nobody would read what is added to them.
        let is_copy = found.hit.is_some_and(|hit| hit.is_exact() || found.all_crowded);
        let features = if is_copy { Vec::new() } else { document.probe.features.to_vec() };
        let keep = !is_copy && self.view.params.sketches;
        self.stage(Change::Add {
            fp: document.probe.text_fp,
            centre: found.hit.filter(|_| is_copy).map_or(NOBODY, |hit| hit.centre),
            key: if names { 0 } else { document.key },
            name: names.then(|| document.name.as_bytes().to_vec()),
            features,
            sketch: if keep { document.probe.sketch.to_vec() } else { Vec::new() },
            by_text: is_copy || found.crowded,
        })?;
        Ok(Outcome { doc: Some(doc), seen })
    }

    fn stage(&mut self, change: Change) -> Result<(), SeenError> {
        self.removed_changed |= matches!(change, Change::Remove { .. });
        self.batch.push(&change);
        self.view.apply(&change);
        if self.batch.len() > BATCH_BYTES { self.write_batch() } else { Ok(()) }
    }

    fn ensure_usable(&self) -> Result<(), SeenError> {
        if self.poisoned { Err(SeenError::Poisoned(self.dir.clone())) } else { Ok(()) }
    }

    /// Makes everything staged safe. When it returns, the changes are acknowledged.
    pub fn commit(&mut self) -> Result<(), SeenError> {
        self.write_batch()?;
        if self.view.memtable.docs() >= self.options.table_documents {
            self.seal()?;
            self.merge()?;
        }
        Ok(())
    }

    fn write_batch(&mut self) -> Result<(), SeenError> {
        self.ensure_usable()?;
        if self.batch.is_empty() {
            return Ok(());
        }
        // What is in memory is not on the disk if this fails, and a sync that failed cannot be
        // tried again.
        self.poisoned = true;
        let bytes = self.batch.seal(self.catalogue.wal, self.wal_at.sequence);
        let len = bytes.len() as u64;
        self.wal.write_all(bytes).and_then(|()| self.wal.sync()).map_err(|e| {
            let path = wal::path(&self.dir, self.catalogue.wal);
            IoError::while_writing("writing", path, len, self.wal_at.offset, e)
        })?;
        self.wal_at = Position { offset: self.wal_at.offset + len, sequence: self.wal_at.sequence + 1 };
        self.acknowledged.note(self.catalogue.wal, self.wal_at);
        self.batch.clear();
        self.poisoned = false;
        Ok(())
    }

    /// Commits and empties the log, so that the next one to open it has nothing to do.
    pub fn close(mut self) -> Result<(), SeenError> {
        self.write_batch()?;
        if self.wal_at != Position::start() {
            self.seal()?;
            self.merge()?;
        }
        Ok(())
    }

    /// Turns the table in memory into a run, and begins another log.
    fn seal(&mut self) -> Result<(), SeenError> {
        self.ensure_usable()?;
        self.poisoned = true;
        let storage = Arc::clone(&self.options.storage);
        let mut next = self.catalogue.clone();
        let table = &self.view.memtable;
        if table.docs() > 0 {
            let plan = RunPlan {
                number: next.take_number(),
                first: table.first,
                docs: table.docs(),
                names: table.names.len() as u64,
                sketch: self.view.params.sketch_shape(),
            };
            let mut writer = RunWriter::create(storage.as_ref(), &self.dir, plan)?;
            for (doc, record) in (table.first..).zip(&table.records) {
                writer.push_document(doc, *record)?;
            }
            writer.push_names(&table.names)?;
            writer.begin_sketches()?;
            writer.push_sketch(&table.sketches)?;
            for (key, doc) in table.sorted_postings() {
                writer.push_posting(key, doc)?;
            }
            next.runs.push(writer.finish()?);
        }
        if self.removed_changed {
            let number = next.take_number();
            self.view.removed.write(storage.as_ref(), &self.dir, number)?;
            next.removed = (self.view.removed.len() > 0).then_some((number, self.view.removed.len()));
        }
        next.wal = next.take_number();
        self.wal = begin_wal(&self.options, &self.dir, next.wal)?;
        self.wal_at = Position::start();
        let removed = std::mem::take(&mut self.view.removed);
        self.switch(next, removed)?;
        self.acknowledged = Acknowledged::restart(storage.as_ref(), &self.dir);
        self.removed_changed = false;
        self.poisoned = false;
        Ok(())
    }

    /// Puts another catalogue in place, opens what is new in it and removes what is no longer in
    /// it.
    fn switch(&mut self, mut next: Catalogue, removed: Removed) -> Result<(), SeenError> {
        next.generation += 1;
        let storage = Arc::clone(&self.options.storage);
        storage.sync_dir(&self.dir).map_err(|e| IoError::new("syncing", &self.dir, e))?;
        next.replace(storage.as_ref(), &self.dir)?;
        let mut unread = next.clone();
        unread.removed = None;
        self.view = View::open(&self.dir, &unread, self.options.memory, &self.view.runs)?;
        self.view.removed = removed;
        self.catalogue = next;
        remove_orphans(storage.as_ref(), &self.dir, &self.catalogue)
    }
}

impl Catalogue {
    pub(crate) fn take_number(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        number
    }

    /// Whether a file is part of the index.
    fn names_file(&self, name: &str) -> bool {
        let numbered = |prefix: &str| name.strip_prefix(prefix).and_then(|digits| digits.parse::<u64>().ok());
        if let Some(number) = numbered("run-") {
            return self.runs.iter().any(|run| run.number == number);
        }
        if let Some(number) = numbered("removed-") {
            return self.removed.is_some_and(|(there, _)| there == number);
        }
        numbered("wal-").is_none_or(|number| number == self.wal) && !name.ends_with(".tmp")
    }
}

/// Creates an empty log that is safe but for its name.
pub(crate) fn begin_wal(
    options: &Options,
    dir: &Path,
    number: u64,
) -> Result<Box<dyn StorageFile>, SeenError> {
    let path = wal::path(dir, number);
    let mut file = options.storage.create(&path).map_err(|e| IoError::new("creating", &path, e))?;
    file.write_all(&wal::header(number))
        .and_then(|()| file.sync())
        .map_err(|e| IoError::while_writing("writing", &path, wal::HEADER as u64, 0, e))?;
    Ok(file)
}

pub(crate) fn lock(dir: &Path) -> Result<File, SeenError> {
    let path = dir.join("lock");
    let placed = |e| IoError::new("locking", &path, e);
    let file = OpenOptions::new().create(true).append(true).open(&path).map_err(placed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(SeenError::Busy(dir.to_owned())),
        Err(error) => Err(placed(error.into()).into()),
    }
}

/// Whether a file looks like one that we have made.
fn is_ours(name: &str) -> bool {
    ["run-", "wal-", "removed-", "catalogue"].iter().any(|prefix| name.starts_with(prefix))
        || name == "lock"
        || name == acknowledged::FILE
}

/// Removes what a run that was killed, or the catalogue before this one, has left.
fn remove_orphans(storage: &dyn Storage, dir: &Path, catalogue: &Catalogue) -> Result<(), SeenError> {
    for name in file_names(dir)? {
        if is_ours(&name) && !catalogue.names_file(&name) {
            let path = dir.join(&name);
            storage.remove_file(&path).map_err(|e| IoError::new("removing", path, e))?;
        }
    }
    Ok(())
}
