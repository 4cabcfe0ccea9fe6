//! Free space, and errors of the file system that say what was being done, to which file, and, when
//! the disk was full, how much was needed and how much was left.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A file operation that failed.
#[derive(Debug)]
pub struct IoError {
    /// What was being done, as in "writing table chunks.w4".
    pub action: String,
    /// To which file or folder.
    pub path: PathBuf,
    /// Space needed and free, when the disk was full.
    pub full: Option<DiskFull>,
    /// What the system said.
    pub source: io::Error,
}

/// The figures of a full disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskFull {
    /// Bytes the failed operation still needed, at least.
    pub needed: u64,
    /// Bytes free on that file system, where it could be asked.
    pub free: Option<u64>,
    /// Bytes already in the file.
    pub written: u64,
}

impl IoError {
    /// An error with its place.
    pub fn new(action: impl Into<String>, path: impl Into<PathBuf>, source: io::Error) -> IoError {
        IoError::while_writing(action, path, 0, 0, source)
    }

    /// An error of a write of `needed` bytes to a file that has `written` already.
    pub fn while_writing(
        action: impl Into<String>,
        path: impl Into<PathBuf>,
        needed: u64,
        written: u64,
        source: io::Error,
    ) -> IoError {
        let path = path.into();
        let is_full = matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        let full = is_full.then(|| DiskFull { needed, free: free_bytes(&path).ok(), written });
        IoError { action: action.into(), path, full, source }
    }

    /// Wraps the error so that it passes through an interface that knows only `io::Error`.
    pub fn into_io(self) -> io::Error {
        io::Error::new(self.source.kind(), self)
    }

    /// Takes out an error that [`IoError::into_io`] wrapped, or gives this one its place.
    pub fn from_io(error: io::Error, action: impl Into<String>, path: impl Into<PathBuf>) -> IoError {
        match error.downcast::<IoError>() {
            Ok(placed) => placed,
            Err(error) => IoError::new(action, path, error),
        }
    }
}

impl fmt::Display for IoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.action, self.path.display(), self.source)?;
        if let Some(full) = self.full {
            write!(f, " (the file has {} bytes", full.written)?;
            if full.needed > 0 {
                write!(f, ", at least {} more were needed", full.needed)?;
            }
            if let Some(free) = full.free {
                write!(f, ", {free} are free")?;
            }
            write!(f, ")\nhint: free some space and run the same command again; finished work is kept")?;
        }
        Ok(())
    }
}

impl std::error::Error for IoError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl From<IoError> for io::Error {
    fn from(error: IoError) -> io::Error {
        error.into_io()
    }
}

/// Bytes that this user may still write on the file system of `path`, or of its nearest ancestor
/// that exists.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let mut at = path;
    loop {
        match rustix::fs::statvfs(if at.as_os_str().is_empty() { Path::new(".") } else { at }) {
            Ok(found) => return Ok(found.f_bavail.saturating_mul(found.f_frsize)),
            Err(error) if error == rustix::io::Errno::NOENT => match at.parent() {
                Some(parent) => at = parent,
                None => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
}

/// Fails early, with both figures, when fewer than `needed` bytes are free for `what` at `path`.
///
/// A file system that cannot be asked is taken to have room.
pub fn ensure_free(path: &Path, needed: u64, what: &str) -> Result<(), IoError> {
    match free_bytes(path) {
        Ok(free) if free < needed => Err(IoError {
            action: format!("making room for {what} in"),
            path: path.to_owned(),
            full: Some(DiskFull { needed, free: Some(free), written: 0 }),
            source: io::Error::from(io::ErrorKind::StorageFull),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_of_a_file_that_is_not_there_yet() {
        assert!(free_bytes(Path::new("/tmp/not/there/yet/at-all")).unwrap() > 0);
        assert!(free_bytes(Path::new("relative-and-not-there")).unwrap() > 0);
    }

    #[test]
    fn a_full_disk_says_how_much_was_needed() {
        let source = io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
        let error = IoError::while_writing("writing table links", "/tmp/links.parquet", 4096, 77, source);
        let text = error.to_string();
        assert!(text.starts_with("writing table links /tmp/links.parquet: No space left"), "{text}");
        assert!(text.contains("the file has 77 bytes, at least 4096 more were needed, "), "{text}");
        assert!(text.contains(" are free)\nhint: "), "{text}");
    }

    #[test]
    fn an_impossible_demand_fails_early() {
        let error = ensure_free(Path::new("/tmp"), u64::MAX, "the chunks").unwrap_err();
        assert!(error.to_string().contains("making room for the chunks in /tmp"), "{error}");
        ensure_free(Path::new("/tmp"), 1, "one byte").unwrap();
    }

    #[test]
    fn a_placed_error_survives_the_passage_through_io() {
        let placed = IoError::new("writing", "/a", io::Error::from(io::ErrorKind::TimedOut));
        let passed = IoError::from_io(placed.into_io(), "reading", "/b");
        assert_eq!(passed.to_string(), "writing /a: timed out");
    }
}
