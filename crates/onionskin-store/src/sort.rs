//! External merge sort of fixed-width records within a memory budget.
//!
//! The problem: more records than memory, wanted in order. The naive way is to hold them all and
//! call `sort`; it is also what happens here as long as they fit.
//!
//! ```text
//! fits     push ─▶ [ buffer ]  sort ─▶ stream
//!
//! spills   push ─▶ [ buffer ]  sort ─▶ run 0 ┐
//!          push ─▶ [ buffer ]  sort ─▶ run 1 ├─ loser tree ─▶ stream
//!          push ─▶ [ buffer ]  sort ─▶ run 2 ┘
//! ```
//!
//! Runs are [raw files](crate::raw), checksummed by block, so that a cut-off or changed run is an
//! error with a file name and never a wrong result. When there are more runs than the budget has
//! room for read buffers, the smallest are merged into one first. The budget counts the record
//! buffer while pushing, and the read buffers of all open runs plus one block of raw bytes while
//! merging; `peak_bytes` of the [`SortStats`] says what was really used.
//!
//! ```
//! use onionskin_store::MemoryBudget;
//! use onionskin_store::sort::{SortParams, Sorter};
//! # let dir = tempfile::tempdir()?;
//! let mut sorter = Sorter::<(u64, u32)>::new(SortParams::new(dir.path(), MemoryBudget::from_mib(1)))?;
//! sorter.push((7, 1))?;
//! sorter.push((3, 2))?;
//! let sorted: Vec<_> = sorter.finish()?.collect::<Result<_, _>>()?;
//! assert_eq!(sorted, [(3, 2), (7, 1)]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod merge;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::budget::MemoryBudget;
use crate::cancel::{self, Cancelled};
use crate::disk::IoError;
pub use crate::raw::Record;
use crate::raw::{BLOCK_BYTES, RawError, RawWriter};
use crate::storage::{Disk, Storage};
use merge::Merge;

/// Open files of one merge, at most, whatever the budget allows: descriptors are scarce too.
const MAX_FAN_IN: usize = 256;

/// Records in memory that are handed out before it is asked whether to stop.
const ASK_EVERY: usize = 1 << 16;

/// Tells the runs of several sorters of one process apart that share a folder.
static NEXT_SORTER: AtomicU64 = AtomicU64::new(0);

/// What went wrong in a sort.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SortError {
    /// The system would not give the memory of the budget.
    #[error("the system refused {bytes} bytes of memory for sorting\nhint: give a smaller memory budget")]
    Memory {
        /// What was asked for.
        bytes: u64,
    },
    /// A run could not be written or removed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A run could not be read back.
    #[error(transparent)]
    Run(#[from] RawError),
    /// Somebody said stop.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl From<SortError> for std::io::Error {
    fn from(error: SortError) -> std::io::Error {
        match error {
            SortError::Io(error) => error.into_io(),
            SortError::Run(error) => error.into(),
            stopped @ SortError::Cancelled(_) => std::io::Error::other(stopped),
            memory @ SortError::Memory { .. } => std::io::Error::new(std::io::ErrorKind::OutOfMemory, memory),
        }
    }
}

/// How to sort. Nothing here changes the result except `dedup`.
#[derive(Clone, Debug)]
pub struct SortParams {
    /// Folder for runs; made when the first run is written.
    pub dir: PathBuf,
    /// Memory for everything the sort holds.
    pub memory: MemoryBudget,
    /// Whether equal records are given once only.
    pub dedup: bool,
    /// How many records will come, if known; saves reserving the whole budget for few.
    pub expected_records: Option<u64>,
    /// Where runs are written.
    pub storage: Arc<dyn Storage>,
}

impl SortParams {
    /// A sort that keeps equal records and writes its runs to the folder `dir` on disk.
    pub fn new(dir: impl Into<PathBuf>, memory: MemoryBudget) -> SortParams {
        SortParams { dir: dir.into(), memory, dedup: false, expected_records: None, storage: Disk::shared() }
    }

    /// Gives equal records once only.
    pub fn dedup(self) -> SortParams {
        SortParams { dedup: true, ..self }
    }
}

/// What a sort has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SortStats {
    /// Records pushed.
    pub records: u64,
    /// Sorted runs written while pushing; 0 when everything fitted.
    pub runs: u64,
    /// Merges that wrote another run because there were too many to merge at once.
    pub extra_merges: u64,
    /// Bytes of all runs written.
    pub spilled_bytes: u64,
    /// The most bytes held at once.
    pub peak_bytes: u64,
}

/// A run on disk, removed when dropped.
#[derive(Debug)]
struct Run {
    path: PathBuf,
    records: u64,
    storage: Arc<dyn Storage>,
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Err(error) = self.storage.remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "a sorted run was left behind");
        }
    }
}

/// Takes records in any order.
#[derive(Debug)]
pub struct Sorter<R: Record> {
    params: SortParams,
    id: u64,
    buffer: Vec<R>,
    capacity: usize,
    runs: Vec<Run>,
    next_run: u64,
    block_records: usize,
    stats: SortStats,
}

impl<R: Record> Sorter<R> {
    /// A sorter without records.
    pub fn new(params: SortParams) -> Result<Sorter<R>, SortError> {
        let budget = params.memory.len();
        let width = size_of::<R>().max(R::BYTES).max(1);
        // A sixteenth of the budget for a block leaves room for a merge of a dozen runs; large
        // budgets get whole blocks.
        let block_records = ((budget / 16).min(BLOCK_BYTES) / width).max(1);
        // While a run is written, one encoded block is held beside the buffer.
        let for_buffer = budget.saturating_sub(block_records * R::BYTES);
        let mut capacity = (for_buffer / size_of::<R>().max(1)).max(2);
        if let Some(expected) = params.expected_records {
            capacity = capacity.min(usize::try_from(expected).unwrap_or(usize::MAX).max(2));
        }
        let id = NEXT_SORTER.fetch_add(1, Ordering::Relaxed);
        Ok(Sorter {
            params,
            id,
            buffer: Vec::new(),
            capacity,
            runs: Vec::new(),
            next_run: 0,
            block_records,
            stats: SortStats::default(),
        })
    }

    /// Takes one record.
    #[inline]
    pub fn push(&mut self, record: R) -> Result<(), SortError> {
        if self.buffer.len() == self.buffer.capacity() || self.buffer.len() >= self.capacity {
            self.make_room()?;
        }
        self.buffer.push(record);
        self.stats.records += 1;
        Ok(())
    }

    /// Takes many records.
    pub fn push_slice(&mut self, mut records: &[R]) -> Result<(), SortError> {
        while !records.is_empty() {
            let room = self.capacity.min(self.buffer.capacity()).saturating_sub(self.buffer.len());
            if room == 0 {
                self.make_room()?;
                continue;
            }
            let (now, later) = records.split_at(room.min(records.len()));
            self.buffer.extend_from_slice(now);
            self.stats.records += now.len() as u64;
            records = later;
        }
        Ok(())
    }

    /// What the sort has cost so far.
    pub fn stats(&self) -> SortStats {
        self.stats
    }

    /// Sorts what is left and gives everything in order.
    pub fn finish(mut self) -> Result<SortedStream<R>, SortError> {
        cancel::check()?;
        if self.runs.is_empty() {
            self.sort_buffer();
            let records = std::mem::take(&mut self.buffer);
            return Ok(SortedStream {
                source: Source::Memory { records, at: 0 },
                stats: self.stats,
                failed: false,
            });
        }
        self.spill()?;
        self.buffer = Vec::new();
        let fan_in = self.fan_in();
        while self.runs.len() > fan_in {
            self.merge_smallest(fan_in)?;
        }
        let runs = std::mem::take(&mut self.runs);
        let merge = Merge::new(runs, self.block_records, self.params.dedup)?;
        self.note_merge(merge.fan_in());
        Ok(SortedStream { source: Source::Runs(Box::new(merge)), stats: self.stats, failed: false })
    }

    /// The buffer is full for now: reserve more of the budget, or spill.
    #[cold]
    fn make_room(&mut self) -> Result<(), SortError> {
        cancel::check()?;
        if self.buffer.len() >= self.capacity {
            return self.spill();
        }
        // Reserved at once and in whole: pages that are never touched cost nothing, while growing
        // by doubling would hold two copies at the moment it matters most.
        let bytes = (self.capacity as u64).saturating_mul(size_of::<R>() as u64);
        self.buffer
            .try_reserve_exact(self.capacity - self.buffer.len())
            .map_err(|_| SortError::Memory { bytes })
    }

    fn sort_buffer(&mut self) {
        let bytes = (self.buffer.len() * size_of::<R>()) as u64;
        self.stats.peak_bytes = self.stats.peak_bytes.max(bytes);
        self.buffer.sort_unstable();
        if self.params.dedup {
            self.buffer.dedup();
        }
    }

    fn spill(&mut self) -> Result<(), SortError> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let held = self.buffer.len() * size_of::<R>() + self.block_records * R::BYTES;
        self.sort_buffer();
        self.stats.peak_bytes = self.stats.peak_bytes.max(held as u64);
        let (mut writer, mut run) = self.create_run()?;
        for record in &self.buffer {
            writer.push(record)?;
        }
        let meta = writer.finish(false)?;
        run.records = meta.records;
        self.stats.runs += 1;
        self.stats.spilled_bytes += meta.bytes;
        self.runs.push(run);
        self.buffer.clear();
        Ok(())
    }

    fn create_run(&mut self) -> Result<(RawWriter, Run), SortError> {
        let dir = &self.params.dir;
        let storage = &self.params.storage;
        if self.next_run == 0 {
            storage
                .create_dir_all(dir)
                .map_err(|e| IoError::new("creating the folder for sorted runs", dir, e))?;
        }
        let path = dir.join(format!("sort-{}-{}-{}.run", std::process::id(), self.id, self.next_run));
        self.next_run += 1;
        // The guard comes first, so that a run that could not be written whole is removed as well.
        let run = Run { path, records: 0, storage: Arc::clone(storage) };
        let writer = RawWriter::with_block_records::<R>(
            storage.as_ref(),
            &run.path,
            "writing a sorted run",
            self.block_records,
        )?;
        Ok((writer, run))
    }

    /// How many runs can be merged at once: a block of records for each, one block of raw bytes for
    /// all, and one for the output. Two at least, else nothing would ever end.
    fn fan_in(&self) -> usize {
        let per_run = self.block_records * size_of::<R>().max(1);
        let fixed = 2 * self.block_records * R::BYTES;
        (self.params.memory.len().saturating_sub(fixed) / per_run).clamp(2, MAX_FAN_IN)
    }

    /// Merges the smallest runs into one: as few as leave a number that merges in full steps,
    /// `fan_in` at most.
    fn merge_smallest(&mut self, fan_in: usize) -> Result<(), SortError> {
        let surplus = (self.runs.len() - 1) % (fan_in - 1);
        let take = if surplus == 0 { fan_in } else { surplus + 1 };
        // Largest first, so that the smallest are the tail. Equal sizes keep the order they were
        // written in.
        self.runs.sort_by_key(|run| std::cmp::Reverse(run.records));
        let tail = self.runs.split_off(self.runs.len() - take);
        let (mut writer, mut run) = self.create_run()?;
        let mut merge = Merge::<R>::new(tail, self.block_records, self.params.dedup)?;
        self.note_merge(merge.fan_in());
        while let Some(record) = merge.next_record()? {
            writer.push(&record)?;
        }
        let meta = writer.finish(false)?;
        run.records = meta.records;
        self.stats.extra_merges += 1;
        self.stats.spilled_bytes += meta.bytes;
        self.runs.push(run);
        Ok(())
    }

    fn note_merge(&mut self, runs: usize) {
        let held = runs * self.block_records * size_of::<R>() + 2 * self.block_records * R::BYTES;
        self.stats.peak_bytes = self.stats.peak_bytes.max(held as u64);
    }
}

#[derive(Debug)]
enum Source<R: Record> {
    Memory { records: Vec<R>, at: usize },
    Runs(Box<Merge<R>>),
}

/// Records in ascending order.
#[derive(Debug)]
pub struct SortedStream<R: Record> {
    source: Source<R>,
    stats: SortStats,
    failed: bool,
}

impl<R: Record> SortedStream<R> {
    /// What the sort has cost.
    pub fn stats(&self) -> SortStats {
        self.stats
    }

    /// Replaces `out` by the next records, at most `max` of them; `false` when there are none left.
    pub fn next_block(&mut self, out: &mut Vec<R>, max: usize) -> Result<bool, SortError> {
        out.clear();
        cancel::check()?;
        match &mut self.source {
            Source::Memory { records, at } => {
                let end = at.saturating_add(max).min(records.len());
                out.extend_from_slice(&records[*at..end]);
                *at = end;
            }
            Source::Runs(merge) => {
                while out.len() < max {
                    match merge.next_record()? {
                        Some(record) => out.push(record),
                        None => break,
                    }
                }
            }
        }
        Ok(!out.is_empty())
    }
}

impl<R: Record> Iterator for SortedStream<R> {
    type Item = Result<R, SortError>;

    #[inline]
    fn next(&mut self) -> Option<Result<R, SortError>> {
        match &mut self.source {
            Source::Memory { records, at } => {
                let record = records.get(*at)?;
                if *at % ASK_EVERY == 0
                    && let Err(stopped) = cancel::check()
                {
                    *at = records.len();
                    return Some(Err(stopped.into()));
                }
                *at += 1;
                Some(Ok(*record))
            }
            Source::Runs(_) if self.failed => None,
            Source::Runs(merge) => match merge.next_record() {
                Ok(record) => record.map(Ok),
                Err(error) => {
                    self.failed = true;
                    Some(Err(error))
                }
            },
        }
    }
}

#[cfg(test)]
mod tests;
