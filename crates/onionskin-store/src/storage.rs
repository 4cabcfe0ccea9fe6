//! The file operations that change something, behind a seam.
//!
//! Crash safety is a claim about the order of writes, syncs and renames. To test it, every such
//! operation goes through [`Storage`], and the tests put a storage there that fails, or loses
//! power, at the nth operation, for every n. Reading is not part of the seam.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3Default;

use crate::cancel;
use crate::disk::IoError;

/// A file being written.
pub trait StorageFile: Write + Send {
    /// Returns when all bytes written so far are on the disk.
    fn sync(&mut self) -> io::Result<()>;
}

/// A place where files are made, renamed and removed.
pub trait Storage: fmt::Debug + Send + Sync {
    /// Creates a file, or empties the one that is there.
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;
    /// Cuts a file to `len` bytes and opens it for writing at its end.
    fn append(&self, path: &Path, len: u64) -> io::Result<Box<dyn StorageFile>>;
    /// Creates a folder and those above it that are missing.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Renames a file over whatever has the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Returns when the entries of a folder (new names, renames, removals) are on the disk.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
}

/// The file system itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Disk {
    /// The file system, ready to be shared.
    pub fn shared() -> Arc<dyn Storage> {
        Arc::new(Disk)
    }
}

impl StorageFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Storage for Disk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(File::create(path)?))
    }

    fn append(&self, path: &Path, len: u64) -> io::Result<Box<dyn StorageFile>> {
        let file = OpenOptions::new().append(true).open(path)?;
        file.set_len(len)?;
        Ok(Box::new(file))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
}

/// Removes a folder and all in it, one operation of the seam at a time. Symbolic links are removed,
/// not followed.
pub(crate) fn remove_tree(storage: &dyn Storage, path: &Path) -> Result<(), IoError> {
    // A stack, not recursion: the depth of a folder is not ours to trust.
    let mut stack = vec![(path.to_owned(), false)];
    while let Some((folder, emptied)) = stack.pop() {
        if emptied {
            storage.remove_dir(&folder).map_err(|e| IoError::new("removing", &folder, e))?;
            continue;
        }
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(IoError::new("listing", folder, error)),
        };
        stack.push((folder.clone(), true));
        for entry in sorted_entries(&folder, entries)? {
            if entry.1 {
                stack.push((entry.0, false));
            } else {
                storage.remove_file(&entry.0).map_err(|e| IoError::new("removing", &entry.0, e))?;
            }
        }
    }
    Ok(())
}

/// Paths in a folder and whether each is a folder, in the order of their names.
fn sorted_entries(folder: &Path, entries: fs::ReadDir) -> Result<Vec<(PathBuf, bool)>, IoError> {
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| IoError::new("listing", folder, e))?;
        let kind = entry.file_type().map_err(|e| IoError::new("listing", entry.path(), e))?;
        found.push((entry.path(), kind.is_dir()));
    }
    found.sort();
    Ok(found)
}

/// Paths in a folder and whether each is a folder, in the order of their names; none when the
/// folder is not there.
pub(crate) fn list(folder: &Path) -> Result<Vec<(PathBuf, bool)>, IoError> {
    match fs::read_dir(folder) {
        Ok(entries) => sorted_entries(folder, entries),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(IoError::new("listing", folder, error)),
    }
}

/// Replaces a small file so that readers see the old bytes or the new ones, never a mixture:
/// written beside it under another name, synced, renamed, and the folder synced.
pub(crate) fn replace_file(storage: &dyn Storage, path: &Path, bytes: &[u8]) -> Result<(), IoError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".tmp");
    let temporary = path.with_file_name(name);
    let mut sink = Sink::create(storage, &temporary, "writing")
        .map_err(|e| IoError::from_io(e, "creating", &temporary))?;
    sink.write_all(bytes)
        .and_then(|()| sink.sync())
        .map_err(|e| IoError::from_io(e, "writing", &temporary))?;
    drop(sink);
    storage.rename(&temporary, path).map_err(|e| IoError::new("renaming into place", path, e))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    storage.sync_dir(folder).map_err(|e| IoError::new("syncing", folder, e))
}

/// A file being written that knows its length and checksum, and whose errors say what was being
/// written where.
pub(crate) struct Sink {
    file: Box<dyn StorageFile>,
    path: PathBuf,
    action: String,
    bytes: u64,
    hasher: Xxh3Default,
    /// Set by the first error. Bytes may be missing then, so nothing may succeed any more.
    failed: bool,
}

impl Sink {
    /// Creates the file. `action` opens the error messages: "writing table links".
    pub(crate) fn create(storage: &dyn Storage, path: &Path, action: &str) -> io::Result<Sink> {
        let file = storage
            .create(path)
            .map_err(|e| IoError::new(format!("{action}: creating"), path, e).into_io())?;
        Ok(Sink {
            file,
            path: path.to_owned(),
            action: action.to_owned(),
            bytes: 0,
            hasher: Xxh3Default::new(),
            failed: false,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn xxh3(&self) -> u64 {
        self.hasher.digest()
    }

    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.ensure_whole()?;
        self.file.sync().map_err(|e| {
            self.failed = true;
            IoError::while_writing(format!("{}: syncing", self.action), &self.path, 0, self.bytes, e)
                .into_io()
        })
    }

    fn ensure_whole(&self) -> io::Result<()> {
        if !self.failed {
            return Ok(());
        }
        let source = io::Error::other("an earlier write to this file failed");
        Err(IoError::new(self.action.clone(), &self.path, source).into_io())
    }
}

impl Write for Sink {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.ensure_whole()?;
        match self.file.write(buf) {
            Ok(n) => {
                self.hasher.update(buf.get(..n).unwrap_or(buf));
                self.bytes += n as u64;
                Ok(n)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                self.failed = true;
                let needed = buf.len() as u64;
                Err(IoError::while_writing(self.action.clone(), &self.path, needed, self.bytes, error)
                    .into_io())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.ensure_whole()?;
        self.file.flush()
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sink").field("path", &self.path).field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

/// The XXH3 checksum and length of a file, read from front to back. Large files take a while, so
/// it ends early when the work is to stop.
pub fn checksum_file(path: &Path) -> Result<(u64, u64), IoError> {
    use std::io::Read;
    let mut file = File::open(path).map_err(|e| IoError::new("opening", path, e))?;
    let mut hasher = Xxh3Default::new();
    let mut buffer = vec![0u8; 1 << 18];
    let mut bytes = 0;
    loop {
        cancel::check().map_err(|stop| IoError::new("reading", path, io::Error::other(stop)))?;
        match file.read(&mut buffer) {
            Ok(0) => return Ok((hasher.digest(), bytes)),
            Ok(n) => {
                hasher.update(buffer.get(..n).unwrap_or_default());
                bytes += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(IoError::new("reading", path, error)),
        }
    }
}
