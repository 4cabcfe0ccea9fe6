//! The sets of one unit of work, which may be larger than the memory.
//!
//! Most units of work are a mebibyte of text. One row group or one compressed member can be a
//! gigabyte. Its sets are held up to a bound, and those after them wait in a file.

use std::collections::VecDeque;
use std::iter::Peekable;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Resources, SimilarError};
use onionskin_core::DocId;
use onionskin_store::IoError;
use onionskin_store::raw::{RawRecords, RawWriter};
use onionskin_store::storage::Disk;

/// The least memory for sets.
const LEAST_BYTES: usize = 1 << 20;

/// Tells files apart that lie in one folder.
static NEXT_FILE: AtomicU64 = AtomicU64::new(0);

/// A document and one of its chunks.
type Record = (DocId, u64);

/// Sets of documents, first in, first out.
pub(super) struct HeldSets {
    most_bytes: usize,
    /// Documents whose sets are in memory, and where the chunks of each end.
    docs: VecDeque<(DocId, usize)>,
    chunks: Vec<u64>,
    /// The set that was handed out last.
    current: Range<usize>,
    /// Where the sets wait that do not fit.
    path: PathBuf,
    written: Option<RawWriter>,
    read: Option<Peekable<RawRecords<Record>>>,
}

impl HeldSets {
    pub fn new(resources: &Resources) -> HeldSets {
        let number = NEXT_FILE.fetch_add(1, Ordering::Relaxed);
        HeldSets {
            most_bytes: resources.memory.len().max(LEAST_BYTES),
            docs: VecDeque::new(),
            chunks: Vec::new(),
            current: 0..0,
            path: resources.work_dir.join(format!("texts-{number}")),
            written: None,
            read: None,
        }
    }

    /// Adds a set when all sets of an earlier unit of work have been handed out.
    pub fn push(&mut self, doc: DocId, set: &[u64]) -> Result<(), SimilarError> {
        let bytes = size_of_val(&self.chunks[..]) + size_of_val(set) + self.docs.len() * size_of::<Record>();
        // The largest set has to be in memory in any case.
        if self.written.is_none() && (self.docs.is_empty() || bytes <= self.most_bytes) {
            self.chunks.extend_from_slice(set);
            self.docs.push_back((doc, self.chunks.len()));
            return Ok(());
        }
        let file = match &mut self.written {
            Some(file) => file,
            none => {
                let dir = self.path.parent().unwrap_or(&self.path);
                std::fs::create_dir_all(dir).map_err(|error| IoError::new("creating", dir, error))?;
                none.insert(RawWriter::create::<Record>(&Disk, &self.path, "writing")?)
            }
        };
        for chunk in set {
            file.push(&(doc, *chunk))?;
        }
        Ok(())
    }

    /// Goes to the next set; `None` when there is none. Empty sets may be left out.
    pub fn advance(&mut self) -> Result<Option<DocId>, SimilarError> {
        if let Some((doc, end)) = self.docs.pop_front() {
            self.current = self.current.end..end;
            return Ok(Some(doc));
        }
        self.chunks.clear();
        if self.chunks.capacity() * size_of::<u64>() > 2 * self.most_bytes {
            self.chunks = Vec::new();
        }
        self.current = 0..0;
        if let Some(file) = self.written.take() {
            file.finish(false)?;
            self.read = Some(RawRecords::new(vec![self.path.clone()]).peekable());
        }
        let Some(records) = &mut self.read else { return Ok(None) };
        let Some(first) = records.next() else {
            self.read = None;
            let removed = std::fs::remove_file(&self.path);
            removed.map_err(|error| IoError::new("removing", &self.path, error))?;
            return Ok(None);
        };
        let (doc, chunk) = first?;
        self.chunks.push(chunk);
        while let Some(record) = records.next_if(|record| !matches!(record, Ok((other, _)) if *other != doc))
        {
            self.chunks.push(record?.1);
        }
        self.current = 0..self.chunks.len();
        Ok(Some(doc))
    }

    /// The set it went to.
    pub fn chunks(&self) -> &[u64] {
        &self.chunks[self.current.clone()]
    }
}

#[cfg(test)]
mod tests;
