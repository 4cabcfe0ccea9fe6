//! Documents in portions, on which threads work side by side.

use onionskin_core::DocId;
use std::ops::Range;

use onionskin_store::MemoryBudget;

use crate::{SetReader, SimilarError};

/// A portion of documents.
#[derive(Debug, Default)]
pub(crate) struct Round {
    /// Their chunks, end to end.
    pub(crate) chunks: Vec<u64>,
    /// A document, and where its chunks lie.
    pub(crate) documents: Vec<(DocId, Range<usize>)>,
}

impl Round {
    /// How many chunks a portion should have, so that it takes a sixteenth of the budget.
    pub(crate) fn limit(memory: MemoryBudget) -> usize {
        (memory.len() / 16 / size_of::<u64>()).clamp(64, 1 << 20)
    }

    /// Replaces the portion by the next one; false when there is nothing left.
    pub(crate) fn fill(
        &mut self,
        reader: &mut SetReader,
        limit: usize,
        wanted: impl Fn(DocId) -> bool,
    ) -> Result<bool, SimilarError> {
        self.chunks.clear();
        self.documents.clear();
        while self.chunks.len() < limit
            && let Some((doc, chunks)) = reader.next_of(&wanted)?
        {
            let start = self.chunks.len();
            self.chunks.extend_from_slice(chunks);
            self.documents.push((doc, start..self.chunks.len()));
        }
        Ok(!self.documents.is_empty())
    }
}

/// Gives each thread a part of the items, in order; the results are in the same order.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    work: impl Fn(&[T]) -> R + Sync,
) -> Vec<R> {
    // Starting a thread costs as much as the work on a few hundred documents.
    if threads < 2 || items.len() < 256 {
        return vec![work(items)];
    }
    let part = items.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = items.chunks(part).map(|items| scope.spawn(move || work(items))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
