//! The folder that results go to: there whole, or not at all.
//!
//! Everything is written below `.unfinished` and moved into its place at the end; `dedup.json`
//! comes last, so that a folder with that file in it is whole. What a killed run left is cleared
//! away by the next one.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use onionskin_corpus::Encoding;
use onionskin_store::IoError;

use super::DedupError;

const UNFINISHED: &str = ".unfinished";
/// The file that says that all is there.
pub(super) const SUMMARY: &str = "dedup.json";
/// The list of kept documents.
pub(super) const KEPT: &str = "kept.jsonl";
/// The list of removed documents.
pub(super) const REMOVED: &str = "removed.jsonl";
/// The folder of copied inputs.
pub(super) const SHARDS: &str = "shards";
/// The folder of Dolma attributes.
pub(super) const ATTRIBUTES: &str = "attributes";
/// The list of what is about to be moved into place, for whoever clears up after a kill in the
/// middle of it.
const MOVED: &str = "moved";

/// The level gzip itself uses, and the one zstd itself uses.
const GZIP_LEVEL: u32 = 6;
const ZSTD_LEVEL: i32 = 3;

/// A folder being filled.
#[derive(Debug)]
pub(super) struct Output {
    dir: PathBuf,
    unfinished: PathBuf,
    /// Locked as long as we work; the system gives it back however we end.
    lock: File,
    was_made: bool,
    is_whole: bool,
}

impl Output {
    /// Takes a new or empty folder, or one that a killed run left behind.
    pub fn open(dir: &Path) -> Result<Output, DedupError> {
        let was_made = match fs::create_dir(dir) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(IoError::new("creating", dir, error).into()),
        };
        let mut left = Vec::new();
        for entry in fs::read_dir(dir).map_err(|e| IoError::new("reading the folder", dir, e))? {
            let entry = entry.map_err(|e| IoError::new("reading the folder", dir, e))?;
            left.push(entry.file_name().to_string_lossy().into_owned());
        }
        left.sort_unstable();
        let moved = fs::read_to_string(dir.join(UNFINISHED).join(MOVED)).unwrap_or_default();
        let was_moved = |name: &str| moved.lines().any(|line| line == name);
        // With the summary it is whole, though the run may have been killed while it cleared up.
        let is_whole = left.iter().any(|name| name == SUMMARY);
        let is_ours = |name: &String| !is_whole && (name == UNFINISHED || was_moved(name));
        if let Some(entry) = left.iter().find(|name| !is_ours(name)) {
            return Err(DedupError::NotEmpty { dir: dir.to_owned(), entry: entry.clone() });
        }
        let unfinished = dir.join(UNFINISHED);
        let placed = |path: &Path, error| IoError::new("preparing", path, error);
        fs::create_dir_all(&unfinished).map_err(|e| placed(&unfinished, e))?;
        let lock_path = unfinished.join("lock");
        let lock =
            File::options().create(true).append(true).open(&lock_path).map_err(|e| placed(&lock_path, e))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => return Err(DedupError::Busy { dir: dir.to_owned() }),
            Err(fs::TryLockError::Error(error)) => return Err(placed(&lock_path, error).into()),
        }
        let output = Output { dir: dir.to_owned(), unfinished, lock, was_made, is_whole: false };
        // The list goes last: a kill in the middle of this leaves it to the next run.
        for name in left.iter().filter(|name| was_moved(name)) {
            let path = dir.join(name);
            let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
            removed.map_err(|e| placed(&path, e))?;
        }
        output.clear()?;
        let work = output.work_dir();
        fs::create_dir(&work).map_err(|e| placed(&work, e))?;
        Ok(output)
    }

    /// Removes everything unfinished but the lock.
    fn clear(&self) -> Result<(), IoError> {
        let placed = |error| IoError::new("clearing", &self.unfinished, error);
        for entry in fs::read_dir(&self.unfinished).map_err(placed)? {
            let path = entry.map_err(placed)?.path();
            if path.is_dir() {
                fs::remove_dir_all(&path).map_err(placed)?;
            } else if path.file_name().is_some_and(|name| name != "lock") {
                fs::remove_file(&path).map_err(placed)?;
            }
        }
        Ok(())
    }

    /// A folder for what does not outlive the run.
    pub fn work_dir(&self) -> PathBuf {
        self.unfinished.join("work")
    }

    /// Where a file is written that will be at `relative` in the end; the folders above it are
    /// made.
    pub fn place(&self, relative: &str) -> Result<PathBuf, DedupError> {
        let path = self.unfinished.join("whole").join(relative);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(|e| IoError::new("creating", parent, e))?;
        }
        Ok(path)
    }

    /// Moves everything into place, `summary` last.
    pub fn publish(mut self, summary: &[u8]) -> Result<(), DedupError> {
        let whole = self.unfinished.join("whole");
        let path = self.place(SUMMARY)?;
        let placed = |path: &Path, error| IoError::new("publishing", path, error);
        let mut file = File::create_new(&path).map_err(|e| placed(&path, e))?;
        file.write_all(summary).and_then(|()| file.sync_all()).map_err(|e| placed(&path, e))?;
        let mut names = Vec::new();
        for entry in fs::read_dir(&whole).map_err(|e| placed(&whole, e))? {
            let name = entry.map_err(|e| placed(&whole, e))?.file_name();
            names.push(name.to_string_lossy().into_owned());
        }
        names.sort_unstable_by_key(|name| (name == SUMMARY, name.clone()));
        let list = self.unfinished.join(MOVED);
        fs::write(&list, names.join("\n")).map_err(|e| placed(&list, e))?;
        for name in names {
            let to = self.dir.join(&name);
            fs::rename(whole.join(&name), &to).map_err(|e| placed(&to, e))?;
        }
        self.is_whole = true;
        Ok(())
    }
}

impl Drop for Output {
    /// What is unfinished is of no use to anybody: nothing of it is taken up again.
    fn drop(&mut self) {
        let removed = fs::remove_dir_all(&self.unfinished);
        if let Err(error) = removed {
            tracing::debug!(path = %self.unfinished.display(), %error, "unfinished work was left behind");
        }
        if self.was_made && !self.is_whole {
            // Only if it is empty, that is, if it is as we made it.
            let _ = fs::remove_dir(&self.dir);
        }
        let _ = self.lock.unlock();
    }
}

/// A file that is compressed as its original is.
pub(super) enum Encoded {
    Plain(BufWriter<File>),
    Gzip(Box<GzEncoder<BufWriter<File>>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, BufWriter<File>>>),
}

impl Encoded {
    pub fn create(path: &Path, encoding: Encoding) -> io::Result<Encoded> {
        let output = BufWriter::with_capacity(128 << 10, File::create_new(path)?);
        Ok(match encoding {
            Encoding::Plain => Encoded::Plain(output),
            Encoding::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                Encoded::Gzip(Box::new(GzEncoder::new(output, level)))
            }
            Encoding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(output, ZSTD_LEVEL)?;
                encoder.include_checksum(true)?;
                Encoded::Zstd(Box::new(encoder))
            }
        })
    }

    /// Writes what is left and gives the length of the file, which is then on the disk.
    pub fn finish(self) -> io::Result<u64> {
        let output = match self {
            Encoded::Plain(output) => output,
            Encoded::Gzip(encoder) => encoder.finish()?,
            Encoded::Zstd(encoder) => encoder.finish()?,
        };
        finish_file(output)
    }
}

/// Flushes a file to the disk and tells its length.
pub(super) fn finish_file(output: BufWriter<File>) -> io::Result<u64> {
    let file = output.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()?;
    Ok(file.metadata()?.len())
}

impl Write for Encoded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Encoded::Plain(output) => output.write(bytes),
            Encoded::Gzip(output) => output.write(bytes),
            Encoded::Zstd(output) => output.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Encoded::Plain(output) => output.flush(),
            Encoded::Gzip(output) => output.flush(),
            Encoded::Zstd(output) => output.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_taken_when_it_is_empty_or_was_left_by_a_killed_run() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("out");
        // Given up: nothing stays behind.
        let output = Output::open(&dir).unwrap();
        fs::write(output.place(KEPT).unwrap(), "half").unwrap();
        drop(output);
        assert!(!dir.exists());
        // Killed between two renames.
        let output = Output::open(&dir).unwrap();
        assert!(matches!(Output::open(&dir), Err(DedupError::Busy { .. })));
        fs::write(output.place("shards/a/b.jsonl").unwrap(), "half").unwrap();
        fs::write(dir.join(KEPT), "old").unwrap();
        fs::write(output.unfinished.join(MOVED), format!("{KEPT}\n{SUMMARY}")).unwrap();
        output.lock.unlock().unwrap();
        std::mem::forget(output);
        let output = Output::open(&dir).unwrap();
        assert!(!dir.join(KEPT).exists());
        fs::write(output.place("shards/a/c.jsonl").unwrap(), "whole").unwrap();
        output.publish(b"{}\n").unwrap();
        let mut found: Vec<String> =
            fs::read_dir(&dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        found.sort();
        assert_eq!(found, [SUMMARY, SHARDS]);
        assert_eq!(fs::read(dir.join("shards/a/c.jsonl")).unwrap(), b"whole");
        assert!(!dir.join("shards/a/b.jsonl").exists());
        // Whole, and so not to be touched, whatever a kill left of the rest.
        assert!(matches!(Output::open(&dir), Err(DedupError::NotEmpty { .. })));
        fs::create_dir(dir.join(UNFINISHED)).unwrap();
        fs::write(dir.join(UNFINISHED).join(MOVED), format!("{SHARDS}\n{SUMMARY}")).unwrap();
        assert!(matches!(Output::open(&dir), Err(DedupError::NotEmpty { .. })));
        assert!(dir.join("shards/a/c.jsonl").exists());
    }

    #[test]
    fn a_folder_with_other_things_in_it_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "do not lose this").unwrap();
        let error = Output::open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("not empty") && error.contains("thesis.txt"), "{error}");
        // A name like ours is not ours without the mark of an unfinished run.
        fs::remove_file(folder.path().join("thesis.txt")).unwrap();
        fs::write(folder.path().join(KEPT), "mine").unwrap();
        assert!(matches!(Output::open(folder.path()), Err(DedupError::NotEmpty { .. })));
        assert!(folder.path().join(KEPT).exists());
        assert!(!folder.path().join(UNFINISHED).exists());
    }
}
