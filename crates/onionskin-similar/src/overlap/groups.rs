//! The documents of every chunk that two or more have: what both `sort` and `iceberg` read, more
//! than once.

use onionskin_core::DocId;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use onionskin_store::IoError;
use onionskin_store::raw::{RawReader, RawWriter};
use onionskin_store::sort::SortedStream;
use onionskin_store::storage::{Disk, Storage};

use super::JoinStats;
use crate::{Resources, SimilarError};

/// Tells the files of several joins of one process apart.
static NEXT_FILE: AtomicU64 = AtomicU64::new(0);

/// A file of groups: the number of documents, then the documents in ascending order, 4 bytes each.
/// The fingerprint itself is of no more use. Removed when dropped.
#[derive(Debug)]
pub(crate) struct Groups {
    path: PathBuf,
    storage: Arc<dyn Storage>,
    /// Pairs that meet in all groups together.
    pub(crate) pairs: u64,
}

impl Drop for Groups {
    fn drop(&mut self) {
        if let Err(error) = self.storage.remove_file(&self.path) {
            tracing::debug!(path = %self.path.display(), %error, "a work file was left behind");
        }
    }
}

impl Groups {
    /// Writes the groups of sorted chunks and documents.
    pub(crate) fn write(
        sorted: SortedStream<(u64, DocId)>,
        resources: &Resources,
        stats: &mut JoinStats,
    ) -> Result<Groups, SimilarError> {
        let storage = Disk::shared();
        let dir = &resources.work_dir;
        storage.create_dir_all(dir).map_err(|e| IoError::new("creating the work folder", dir, e))?;
        let number = NEXT_FILE.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("groups-{}-{number}.raw", std::process::id()));
        // The guard comes first, so that a file that could not be written whole is removed as well.
        let mut groups = Groups { path, storage, pairs: 0 };
        let mut writer =
            RawWriter::create::<u32>(groups.storage.as_ref(), &groups.path, "writing groups of documents")?;
        let sorting = sorted.stats();
        stats.spilled_bytes += sorting.spilled_bytes;
        stats.hold(sorting.peak_bytes);
        stats.records += sorting.records;
        let mut documents: Vec<DocId> = Vec::new();
        let mut current = None;
        for record in sorted {
            let (chunk, doc) = record?;
            if current != Some(chunk) {
                groups.write_one(&mut writer, &documents, stats)?;
                documents.clear();
                current = Some(chunk);
            }
            // Sets have no repeats, but a table from elsewhere may.
            if documents.last() != Some(&doc) {
                documents.push(doc);
            }
        }
        groups.write_one(&mut writer, &documents, stats)?;
        stats.spilled_bytes += writer.finish(false)?.bytes;
        Ok(groups)
    }

    fn write_one(
        &mut self,
        writer: &mut RawWriter,
        documents: &[DocId],
        stats: &mut JoinStats,
    ) -> Result<(), SimilarError> {
        if documents.len() > 1 {
            writer.push(&(documents.len() as u32))?;
            documents.iter().try_for_each(|doc| writer.push(doc))?;
            stats.groups += 1;
            self.pairs = self.pairs.saturating_add(pairs_of(documents.len() as u64));
        }
        Ok(())
    }

    /// Hands over the documents of each group. False ends it early.
    pub(crate) fn scan(
        &self,
        mut each: impl FnMut(&[DocId]) -> Result<bool, SimilarError>,
    ) -> Result<(), SimilarError> {
        // Numbers of documents and documents are both four bytes, and handed over without a copy.
        let mut reader = RawReader::<DocId>::open(&self.path)?;
        let (mut bytes, mut block, mut group) = (Vec::new(), Vec::new(), Vec::new());
        // Documents of the group that are still to come.
        let mut missing = 0;
        while reader.next_block(&mut bytes, &mut block)? {
            let mut rest = &block[..];
            while !rest.is_empty() {
                if missing == 0 {
                    missing = rest[0].index();
                    rest = &rest[1..];
                    group.clear();
                }
                let (here, after) = rest.split_at(missing.min(rest.len()));
                missing -= here.len();
                rest = after;
                let goes_on = match (missing, group.is_empty()) {
                    (0, true) => each(here)?,
                    (more, _) => {
                        group.extend_from_slice(here);
                        more > 0 || each(&group)?
                    }
                };
                if !goes_on {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// How many pairs `n` documents make.
pub(crate) fn pairs_of(n: u64) -> u64 {
    (u128::from(n) * u128::from(n.saturating_sub(1)) / 2).try_into().unwrap_or(u64::MAX)
}
