//! One process at a time.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::StagingError;
use crate::disk::IoError;

/// The lock of an atlas: a file that this process has locked. The system gives the lock back when
/// the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Takes the lock of an atlas whose staging folder exists.
    pub(super) fn take(staging_dir: &Path, atlas_dir: &Path) -> Result<Lock, StagingError> {
        let path = staging_dir.join("lock");
        loop {
            let placed = |e: io::Error| IoError::new("locking", &path, e);
            let file = OpenOptions::new().create(true).append(true).open(&path).map_err(placed)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(StagingError::Busy { dir: atlas_dir.to_owned() });
                }
                Err(error) => return Err(placed(error.into()).into()),
            }
            // The process that had the lock may have removed the file between our open and our
            // lock; then what we hold is the lock of a file that nobody else can see.
            let ours = file.metadata().map_err(placed)?;
            match fs::metadata(&path) {
                Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => {
                    return Ok(Lock { path, _file: file });
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir_all(staging_dir).map_err(|e| IoError::new("creating", staging_dir, e))?;
                }
                Err(error) => return Err(placed(error).into()),
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
