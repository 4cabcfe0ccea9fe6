//! How long the log is at least.
//!
//! A batch that was never finished looks like the end of a log, and so does a log that has lost its
//! end: by a copy that stopped early, by a file system, by a bit that flipped in its last batch.
//! The file `acknowledged` tells them apart. After a batch is synced, its end is appended here, and
//! only then is it acknowledged. So what stands here is in the log, and a log that ends before it
//! is damaged.
//!
//! The file is not synced, which would double the price of a batch. The kill of a process loses
//! nothing of it. A power cut may lose its last records, or all of them: then less is known, and
//! nothing is wrong. For the same reason a record that cannot be read, or written, is no error.
//!
//! A record has 32 bytes: the number of the log, its length, its batches (8 each), the CRC-32C of
//! these (4), zeros (4).

use std::io::Write as _;
use std::path::Path;

use onionskin_store::IoError;
use onionskin_store::storage::{Storage, StorageFile};

use crate::error::SeenError;
use crate::wal::Position;

/// Comes first in the order of names, so that whoever copies an index in use has it before the log.
pub(crate) const FILE: &str = "acknowledged";
const RECORD: usize = 32;

/// Notes what is acknowledged.
pub(crate) struct Acknowledged(Option<Box<dyn StorageFile>>);

impl Acknowledged {
    /// Goes on behind the records that are there.
    pub(crate) fn open(storage: &dyn Storage, dir: &Path) -> Acknowledged {
        let path = dir.join(FILE);
        let whole = std::fs::metadata(&path).map(|file| file.len() / RECORD as u64 * RECORD as u64);
        Acknowledged::usable(match whole {
            Ok(len) => storage.append(&path, len),
            Err(_) => storage.create(&path),
        })
    }

    /// Begins without records, for a new log.
    pub(crate) fn restart(storage: &dyn Storage, dir: &Path) -> Acknowledged {
        Acknowledged::usable(storage.create(&dir.join(FILE)))
    }

    fn usable(file: std::io::Result<Box<dyn StorageFile>>) -> Acknowledged {
        if let Err(error) = &file {
            tracing::warn!(%error, "the length of the log is not noted");
        }
        Acknowledged(file.ok())
    }

    /// Notes that a log is safe up to here.
    pub(crate) fn note(&mut self, number: u64, at: Position) {
        let Some(file) = &mut self.0 else { return };
        if let Err(error) = file.write_all(&record(number, at)).and_then(|()| file.flush()) {
            tracing::warn!(%error, "the length of the log is not noted any more");
            self.0 = None;
        }
    }
}

fn record(number: u64, at: Position) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    for (place, value) in record.chunks_exact_mut(8).zip([number, at.offset, at.sequence]) {
        place.copy_from_slice(&value.to_le_bytes());
    }
    let crc = crc32c::crc32c(&record[..24]);
    record[24..28].copy_from_slice(&crc.to_le_bytes());
    record
}

/// How far a log is acknowledged, as far as is known. To be read before the log: what comes later
/// is longer.
pub(crate) fn least(dir: &Path, number: u64) -> Result<Position, SeenError> {
    let path = dir.join(FILE);
    match std::fs::read(&path) {
        Ok(bytes) => Ok(parse(&bytes, number)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Position::start()),
        Err(error) => Err(IoError::new("reading", path, error).into()),
    }
}

/// The furthest place that sound records of a log name.
fn parse(bytes: &[u8], number: u64) -> Position {
    let word = |record: &[u8], nth: usize| {
        record
            .get(nth * 8..nth * 8 + 8)
            .and_then(|bytes| bytes.first_chunk())
            .map_or(0, |b| u64::from_le_bytes(*b))
    };
    let mut least = Position::start();
    for found in bytes.chunks_exact(RECORD) {
        let at = Position { offset: word(found, 1), sequence: word(found, 2) };
        if found == record(number, at).as_slice() && at.offset > least.offset {
            least = at;
        }
    }
    least
}

/// An error when a log ends before what was acknowledged.
pub(crate) fn ensure_reached(path: &Path, end: Position, least: Position) -> Result<(), SeenError> {
    if end.offset >= least.offset {
        return Ok(());
    }
    let (batches, bytes) = (least.sequence.saturating_sub(end.sequence), least.offset - end.offset);
    let what = format!(
        "it ends at {} after {} batches, but {batches} more of {bytes} bytes were acknowledged",
        end.offset, end.sequence
    );
    Err(SeenError::damaged(path, what))
}
