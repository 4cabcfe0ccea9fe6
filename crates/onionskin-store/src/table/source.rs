//! Where the bytes of a Parquet file come from.
//!
//! The decoder asks for ranges that the file itself names. The reader it brings for plain files
//! reserves memory for any length before it looks whether the file is that long, and a refused
//! reservation ends the process. Here a range is checked against the length of the file first.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use super::checks::Known;
use crate::disk::IoError;

/// A Parquet file to read: on disk or in memory.
#[derive(Clone, Debug)]
pub enum Input {
    /// A file.
    File(PathBuf),
    /// A file of an atlas, with what the atlas knows of it.
    Stored(Stored),
    /// Bytes in memory, with a name for error messages.
    Bytes(String, Bytes),
}

/// A file of an atlas that was compared with its checksum. Its values are held against what the
/// atlas has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    pub(crate) path: PathBuf,
    pub(crate) known: Known,
}

impl Input {
    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Input::File(path) | Input::Stored(Stored { path, .. }) => Some(path),
            Input::Bytes(..) => None,
        }
    }

    pub(super) fn known(&self) -> Option<Known> {
        match self {
            Input::Stored(stored) => Some(stored.known),
            Input::File(_) | Input::Bytes(..) => None,
        }
    }

    /// The name that error messages carry.
    pub fn name(&self) -> String {
        match self {
            Input::File(path) | Input::Stored(Stored { path, .. }) => path.display().to_string(),
            Input::Bytes(name, _) => name.clone(),
        }
    }

    pub(super) fn open(&self) -> Result<Source, IoError> {
        match self {
            Input::File(path) | Input::Stored(Stored { path, .. }) => {
                let open = || {
                    let file = File::open(path)?;
                    let len = file.metadata()?.len();
                    Ok(Source::File(Arc::new(file), len))
                };
                open().map_err(|e| IoError::new("opening", path, e))
            }
            Input::Bytes(_, bytes) => Ok(Source::Bytes(bytes.clone())),
        }
    }
}

impl From<PathBuf> for Input {
    fn from(path: PathBuf) -> Input {
        Input::File(path)
    }
}

impl From<&Path> for Input {
    fn from(path: &Path) -> Input {
        Input::File(path.to_owned())
    }
}

/// An open file or a buffer, read by position: no seeking, so that column readers do not disturb
/// each other.
#[derive(Clone, Debug)]
pub(super) enum Source {
    File(Arc<File>, u64),
    Bytes(Bytes),
}

impl Length for Source {
    fn len(&self) -> u64 {
        match self {
            Source::File(_, len) => *len,
            Source::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

impl ChunkReader for Source {
    type T = io::BufReader<SourceReader>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        if start > self.len() {
            return Err(ParquetError::EOF(format!("byte {start} is beyond the end, {}", self.len())));
        }
        Ok(io::BufReader::new(SourceReader { source: self.clone(), at: start, reads_at_end: 0 }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.len());
        if end.is_none() {
            return Err(ParquetError::EOF(format!(
                "{length} bytes at {start} are beyond the end, {}",
                self.len()
            )));
        }
        match self {
            Source::File(file, _) => {
                let mut buffer = vec![0; length];
                file.read_exact_at(&mut buffer, start)?;
                Ok(buffer.into())
            }
            Source::Bytes(bytes) => {
                let start = start as usize;
                Ok(bytes.slice(start..start + length))
            }
        }
    }
}

/// More than any honest reader needs.
const MAX_READS_AT_END: u32 = 64;

/// Reads on from a position.
#[derive(Debug)]
pub(super) struct SourceReader {
    source: Source,
    at: u64,
    /// How often it was read at its end. A damaged header can claim thousands of millions of things
    /// to skip, and whoever skips takes an end for an empty thing.
    reads_at_end: u32,
}

impl Read for SourceReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = match &self.source {
            Source::File(file, _) => file.read_at(buf, self.at)?,
            Source::Bytes(bytes) => {
                let rest = bytes.get(usize::try_from(self.at).unwrap_or(usize::MAX)..).unwrap_or_default();
                let n = rest.len().min(buf.len());
                buf[..n].copy_from_slice(&rest[..n]);
                n
            }
        };
        self.at += n as u64;
        if n == 0 && !buf.is_empty() {
            self.reads_at_end += 1;
            if self.reads_at_end > MAX_READS_AT_END {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(n)
    }
}
