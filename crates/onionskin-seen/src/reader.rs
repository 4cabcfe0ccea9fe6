//! Those who read beside the writer.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use onionskin_store::{IoError, MemoryBudget};

use crate::acknowledged;
use crate::catalogue::{self, Catalogue, Params};
use crate::error::SeenError;
use crate::run::{FP_MASK, Record, Run};
use crate::view::{Match, Probe, Stats, View};
use crate::wal::{self, Change, Position};
use crate::writer::Seen;

/// An index as it is at one time. Checks can be made from several threads at once.
#[derive(Debug)]
pub struct Reader {
    dir: PathBuf,
    memory: MemoryBudget,
    catalogue: Catalogue,
    view: View,
    wal_at: Position,
}

/// What a reader has not seen yet.
enum News {
    /// Batches of the log, and where they end.
    Changes(Vec<Change>, Position),
    /// Other files.
    Files(Box<Reader>),
}

/// How often a reader tries to open files that the writer is replacing.
const ATTEMPTS: u32 = 100;

impl Reader {
    /// Opens an index for reading. It needs no lock, and sees whole batches only.
    pub fn open(dir: &Path, memory: MemoryBudget) -> Result<Reader, SeenError> {
        Reader::open_with(dir, memory, &[])
    }

    fn open_with(dir: &Path, memory: MemoryBudget, open: &[Arc<Run>]) -> Result<Reader, SeenError> {
        let mut attempt = 0;
        loop {
            let catalogue = Catalogue::read(dir)?;
            match Reader::open_catalogue(dir, memory, &catalogue, open) {
                Err(error) if attempt < ATTEMPTS && is_gone(&error) && Catalogue::read(dir)? != catalogue => {
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    fn open_catalogue(
        dir: &Path,
        memory: MemoryBudget,
        catalogue: &Catalogue,
        open: &[Arc<Run>],
    ) -> Result<Reader, SeenError> {
        let view = View::open(dir, catalogue, memory, open)?;
        let catalogue = catalogue.clone();
        let mut reader = Reader { dir: dir.to_owned(), memory, catalogue, view, wal_at: Position::start() };
        let (changes, at) = reader.read_log()?;
        reader.take_in(News::Changes(changes, at));
        Ok(reader)
    }

    /// What the log has behind the place up to which it was read. A bad batch with a good one
    /// behind it is damage, unless a new writer has just replaced the torn end of the log: then the
    /// second reading finds whole batches.
    fn read_log(&self) -> Result<(Vec<Change>, Position), SeenError> {
        match self.read_log_once() {
            Err(SeenError::Damaged { .. }) => self.read_log_once(),
            result => result,
        }
    }

    fn read_log_once(&self) -> Result<(Vec<Change>, Position), SeenError> {
        let path = wal::path(&self.dir, self.catalogue.wal);
        let reading = |e| IoError::new("reading", &path, e);
        let mut bytes = Vec::new();
        let mut changes = Vec::new();
        let mut note = |change| {
            changes.push(change);
            Ok(())
        };
        let number = self.catalogue.wal;
        let least = acknowledged::least(&self.dir, number)?;
        let mut file = File::open(&path).map_err(reading)?;
        let (from, at) = if self.wal_at == Position::start() {
            file.read_to_end(&mut bytes).map_err(reading)?;
            (0, wal::replay(&path, number, &bytes, self.wal_at, &mut note)?)
        } else {
            file.seek(SeekFrom::Start(self.wal_at.offset)).map_err(reading)?;
            file.read_to_end(&mut bytes).map_err(reading)?;
            (self.wal_at.offset, wal::replay_rest(&path, number, &bytes, self.wal_at, &mut note)?)
        };
        // A batch that is being written looks torn, and nothing is behind it.
        let rest = bytes.get((at.offset - from) as usize..).unwrap_or_default();
        wal::ensure_torn(&path, number, rest, at)?;
        acknowledged::ensure_reached(&path, at, least)?;
        Ok((changes, at))
    }

    /// What has been committed since. Files that are open, here or with others, are not opened
    /// again.
    fn news(&self, open: &[Arc<Run>]) -> Result<News, SeenError> {
        let now = Catalogue::read(&self.dir)?;
        if now == self.catalogue {
            match self.read_log() {
                Err(error) if is_gone(&error) => {}
                result => return result.map(|(changes, at)| News::Changes(changes, at)),
            }
        }
        let open: Vec<_> = self.view.runs.iter().chain(open).cloned().collect();
        Ok(News::Files(Box::new(Reader::open_with(&self.dir, self.memory, &open)?)))
    }

    /// Takes news in; returns what is to be dropped, which may take a while.
    fn take_in(&mut self, news: News) -> Option<Reader> {
        match news {
            News::Changes(changes, at) => {
                changes.iter().for_each(|change| self.view.apply(change));
                self.wal_at = at;
                None
            }
            News::Files(reader) => Some(std::mem::replace(self, *reader)),
        }
    }

    /// Sees what has been committed since. After an error the reader is as it was.
    pub fn refresh(&mut self) -> Result<(), SeenError> {
        let news = self.news(&[])?;
        self.take_in(news);
        Ok(())
    }

    /// What the index is of.
    pub fn params(&self) -> &Params {
        &self.catalogue.params
    }

    /// Whether a document, or one nearly like it, is there.
    pub fn check(&self, probe: &Probe<'_>) -> Result<Option<Match>, SeenError> {
        self.view.check(probe)
    }

    /// Every document that was not removed, in order.
    pub fn each_document<E: From<SeenError>>(
        &self,
        mut visit: impl FnMut(Entry<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let view = &self.view;
        let mut tell = |doc: u32, record: Record| {
            if view.removed.is_removed(doc) {
                return Ok(());
            }
            let name = view.name(doc, record)?;
            let key = if name.is_some() { 0 } else { record.key };
            visit(Entry { text_fp: record.fp, key, name: name.as_deref() })
        };
        for run in &view.runs {
            for document in run.documents() {
                let (doc, record) = document?;
                tell(doc, record)?;
            }
        }
        let table = &view.memtable;
        (table.first..).zip(&table.records).try_for_each(|(doc, record)| tell(doc, *record))
    }

    /// How large it is.
    pub fn stats(&self) -> Stats {
        self.view.stats(&self.dir)
    }
}

/// A document that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The part of its text's fingerprint that is kept: [`Entry::TEXT_BITS`].
    pub text_fp: u64,
    /// Its key; 0 in an index of names.
    pub key: u64,
    /// Its name, in an index of names.
    pub name: Option<&'a str>,
}

impl Entry<'_> {
    /// The bits of a text's fingerprint that an index keeps: the lowest 48.
    pub const TEXT_BITS: u64 = FP_MASK;
}

/// Whether a folder is an index, by what its catalogue or its copy begins with.
pub fn is_index(dir: &Path) -> bool {
    let begins = |name: &str| {
        let mut head = [0; catalogue::MAGIC.len()];
        let read = File::open(dir.join(name)).and_then(|mut file| file.read_exact(&mut head));
        read.is_ok() && head == *catalogue::MAGIC.as_bytes()
    };
    begins(catalogue::FILE) || begins(catalogue::COPY)
}

/// A reader for many threads, beside one that writes: in this process or in another.
///
/// Checks go on while news is read from the disk, and wait only while it is taken in: a millisecond
/// for a batch of a thousand, less for files that were merged. A document is seen by checks when
/// [`SharedReader::refresh`], called after the commit, has returned.
///
/// ```
/// use std::sync::Mutex;
/// use onionskin_seen::{Document, Options, Params, Probe, Reader, Seen, SharedReader};
/// use onionskin_store::MemoryBudget;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let dir = folder.path().join("seen");
/// let memory = MemoryBudget::from_mib(64);
/// let params = Params::new(&"w4-rabin64-6x14r2".parse()?, 1, false)?;
/// let writer = Mutex::new(Seen::create(&dir, params, Options::new(memory))?);
/// let checks = SharedReader::new(Reader::open(&dir, memory)?);
/// let probe = Probe::new(7, &[1, 2, 3, 4, 5, 6]);
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| checks.check(&probe));
///     }
///     scope.spawn(|| {
///         let mut seen = writer.lock().expect("nobody has panicked");
///         seen.add_if_new(&Document { probe, key: 99, name: "" })?;
///         seen.commit()?;
///         checks.refresh_beside(&seen)
///     });
/// });
/// assert_eq!(checks.check(&probe)?.map(|found| found.key), Some(99));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SharedReader {
    reader: RwLock<Reader>,
    /// One refresh at a time.
    refreshing: Mutex<()>,
}

impl SharedReader {
    /// Shares a reader.
    pub fn new(reader: Reader) -> SharedReader {
        SharedReader { reader: RwLock::new(reader), refreshing: Mutex::new(()) }
    }

    /// Lends the reader, as it is at one time: several checks see the same documents. A refresh
    /// waits until it is given back.
    pub fn with<T>(&self, work: impl FnOnce(&Reader) -> T) -> T {
        work(&self.reader.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a document, or one nearly like it, is there.
    pub fn check(&self, probe: &Probe<'_>) -> Result<Option<Match>, SeenError> {
        self.with(|reader| reader.check(probe))
    }

    /// Sees what has been committed since. After an error it is as it was.
    pub fn refresh(&self) -> Result<(), SeenError> {
        self.refresh_with(&[])
    }

    /// The same in the process that writes: files and blocks in memory are shared with the writer,
    /// which should have the same budget then.
    pub fn refresh_beside(&self, writer: &Seen) -> Result<(), SeenError> {
        self.refresh_with(writer.runs())
    }

    fn refresh_with(&self, open: &[Arc<Run>]) -> Result<(), SeenError> {
        let _one = self.refreshing.lock().unwrap_or_else(PoisonError::into_inner);
        let news = self.with(|reader| reader.news(open))?;
        let mut reader = self.reader.write().unwrap_or_else(PoisonError::into_inner);
        let before = reader.take_in(news);
        drop(reader);
        drop(before);
        Ok(())
    }
}

/// A file was removed because the catalogue has changed.
pub(crate) fn is_gone(error: &SeenError) -> bool {
    matches!(error, SeenError::Io(error) if error.source.kind() == io::ErrorKind::NotFound)
}
