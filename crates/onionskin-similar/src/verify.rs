//! Verification: how many chunks two documents really share.

use std::ops::Range;

use onionskin_store::sort::{SortParams, Sorter};

use crate::sets::Seen;
use crate::{Bits, Bound, ChunkSets, Resources, SimilarError};

/// Two documents, the number of chunks they share, and how many each has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedPair {
    /// The smaller document.
    pub a: u32,
    /// The larger document.
    pub b: u32,
    /// Chunks that both have.
    pub shared: u32,
    /// Chunks of `a`.
    pub size_a: u32,
    /// Chunks of `b`.
    pub size_b: u32,
}

impl SharedPair {
    /// |A∩B| / |A∪B|.
    pub fn resemblance(&self) -> f64 {
        let union = u64::from(self.size_a) + u64::from(self.size_b) - u64::from(self.shared);
        if union == 0 { 0.0 } else { f64::from(self.shared) / union as f64 }
    }

    /// |A∩B| / |A|.
    pub fn containment_a(&self) -> f64 {
        if self.size_a == 0 { 0.0 } else { f64::from(self.shared) / f64::from(self.size_a) }
    }

    /// |A∩B| / |B|.
    pub fn containment_b(&self) -> f64 {
        if self.size_b == 0 { 0.0 } else { f64::from(self.shared) / f64::from(self.size_b) }
    }
}

/// Pairs of documents to look at, in any order and as often as they come up.
#[derive(Debug)]
pub struct Candidates {
    /// Larger document first: that is the order in which they are looked at.
    sorter: Sorter<(u32, u32)>,
    smaller: Bits,
    larger: Bits,
}

impl Candidates {
    /// None yet. `documents` is how many there are.
    pub fn new(documents: u64, resources: &Resources) -> Result<Candidates, SimilarError> {
        let params = SortParams::new(&resources.work_dir, resources.memory).dedup();
        Ok(Candidates {
            sorter: Sorter::new(params)?,
            smaller: Bits::new(documents),
            larger: Bits::new(documents),
        })
    }

    /// Two documents; one alone is no pair.
    pub fn push(&mut self, a: u32, b: u32) -> Result<(), SimilarError> {
        if a != b {
            let (a, b) = (a.min(b), a.max(b));
            self.smaller.set(a);
            self.larger.set(b);
            self.sorter.push((b, a))?;
        }
        Ok(())
    }

    /// How many were pushed, repeats included.
    pub fn pushed(&self) -> u64 {
        self.sorter.stats().records
    }

    /// Hands over every different pair, smaller document first, in ascending order of the larger document.
    pub fn for_each(
        self,
        mut call: impl FnMut(u32, u32) -> Result<(), SimilarError>,
    ) -> Result<(), SimilarError> {
        for pair in self.sorter.finish()? {
            let (b, a) = pair?;
            call(a, b)?;
        }
        Ok(())
    }
}

/// What verification has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyStats {
    /// Different candidates.
    pub candidates: u64,
    /// Those that held.
    pub verified: u64,
    /// Times the chunks were read.
    pub passes: u64,
    /// Bytes that sorting wrote to disk.
    pub spilled_bytes: u64,
}

/// Documents of one round of work, on which threads work side by side.
#[derive(Default)]
struct Round {
    /// Chunks of the larger documents, end to end.
    chunks: Vec<u64>,
    /// A document, where its chunks lie, where its candidates lie.
    larger: Vec<(u32, Range<usize>, Range<usize>)>,
    /// The smaller documents of the candidates.
    smaller: Vec<u32>,
}

/// Sets that are kept until the larger document of a pair comes by.
struct Kept {
    /// In ascending order: a document, its segment, and where in it.
    index: Vec<(u32, u32, Range<u32>)>,
    segments: Vec<Vec<u64>>,
    /// Chunks in a segment, unless one document alone has more.
    segment: usize,
    bytes: usize,
}

impl Kept {
    /// Segments are an eighth of the budget: larger ones would fill it with the first document.
    fn new(budget: usize) -> Kept {
        let segment = (budget / 8 / size_of::<u64>()).clamp(1 << 10, 1 << 20);
        Kept { index: Vec::new(), segments: Vec::new(), segment, bytes: 0 }
    }

    fn push(&mut self, doc: u32, chunks: &[u64]) {
        if self.segments.last().is_none_or(|segment| segment.len() + chunks.len() > segment.capacity()) {
            let len = self.segment.max(chunks.len());
            self.segments.push(Vec::with_capacity(len));
            self.bytes += len * size_of::<u64>();
        }
        let number = self.segments.len() as u32 - 1;
        if let Some(segment) = self.segments.last_mut() {
            let start = segment.len() as u32;
            segment.extend_from_slice(chunks);
            self.index.push((doc, number, start..segment.len() as u32));
            self.bytes += size_of::<(u32, u32, Range<u32>)>();
        }
    }

    fn get(&self, doc: u32) -> Option<&[u64]> {
        let at = self.index.binary_search_by_key(&doc, |entry| entry.0).ok()?;
        let (_, segment, range) = &self.index[at];
        Some(&self.segments[*segment as usize][range.start as usize..range.end as usize])
    }
}

/// Chunks in a round, at most.
const ROUND_CHUNKS: usize = 2 << 20;
/// Candidates in a round, at most.
const ROUND_PAIRS: usize = 256 << 10;

/// Counts for every candidate the chunks that the two documents share, and hands on those that are similar, in ascending order of
/// the larger document, then the smaller.
///
/// The naive way loads two sets for every pair. Here the sets are read once from front to back. Whoever is the smaller
/// document of a candidate is kept; when the larger one comes by, its chunks go into a hash table and the kept ones are looked
/// up in it. When the kept sets fill the budget, no more are kept, and pairs of later documents wait for another pass:
/// as many passes as the sets of the smaller documents are larger than the budget.
pub fn count_shared(
    sets: &ChunkSets,
    candidates: Candidates,
    bound: Option<Bound>,
    resources: &Resources,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<VerifyStats, SimilarError> {
    let Candidates { sorter, smaller, larger } = candidates;
    let mut stats = VerifyStats::default();
    let mut waiting = sorter.finish()?;
    let mut first_pass = true;
    // Documents below this one have been kept in an earlier pass.
    let mut from = 0;
    let kept_bytes = (resources.memory.len() / 2).max(1 << 20);
    let round_chunks = (kept_bytes / 8 / size_of::<u64>()).min(ROUND_CHUNKS);
    let round_pairs = (kept_bytes / 16 / size_of::<u32>()).min(ROUND_PAIRS);
    loop {
        stats.spilled_bytes += waiting.stats().spilled_bytes;
        let later_params = SortParams::new(&resources.work_dir, resources.memory.share(1, 8));
        let mut later: Option<Sorter<(u32, u32)>> = None;
        let mut pairs = waiting.peekable();
        if pairs.peek().is_none() {
            return Ok(stats);
        }
        stats.passes += 1;
        let mut kept = Kept::new(kept_bytes);
        let mut until = u32::MAX;
        let mut round = Round::default();
        let mut reader = sets.reader();
        loop {
            let wanted = |doc| larger.get(doc) || (doc >= from && doc < until && smaller.get(doc));
            let Some((doc, chunks)) = reader.next_of(wanted)? else { break };
            if doc >= from && doc < until && smaller.get(doc) {
                if kept.bytes >= kept_bytes {
                    until = doc;
                } else {
                    kept.push(doc, chunks);
                }
            }
            // Candidates of documents that have no chunks, which is possible only with features from elsewhere, are dropped.
            while let Some(Ok((b, _))) = pairs.peek()
                && *b < doc
            {
                pairs.next();
            }
            let first = round.smaller.len();
            while let Some(pair) =
                pairs.next_if(|pair| pair.as_ref().is_err() || matches!(pair, Ok((b, _)) if *b == doc))
            {
                let (b, a) = pair?;
                stats.candidates += u64::from(first_pass);
                if a < until {
                    round.smaller.push(a);
                } else {
                    let later = match &mut later {
                        Some(later) => later,
                        none => none.insert(Sorter::new(later_params.clone())?),
                    };
                    later.push((b, a))?;
                }
            }
            if round.smaller.len() > first {
                let start = round.chunks.len();
                round.chunks.extend_from_slice(chunks);
                round.larger.push((doc, start..round.chunks.len(), first..round.smaller.len()));
            }
            if round.chunks.len() >= round_chunks || round.smaller.len() >= round_pairs {
                stats.verified += work(&round, &kept, bound, resources.threads, emit)?;
                round.chunks.clear();
                round.larger.clear();
                round.smaller.clear();
            }
        }
        stats.verified += work(&round, &kept, bound, resources.threads, emit)?;
        match later {
            None => return Ok(stats),
            Some(later) => waiting = later.finish()?,
        }
        from = until;
        first_pass = false;
    }
}

fn work(
    round: &Round,
    kept: &Kept,
    bound: Option<Bound>,
    threads: usize,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<u64, SimilarError> {
    let count = |larger: &[(u32, Range<usize>, Range<usize>)]| {
        let mut seen = Seen::default();
        let mut found = Vec::new();
        for (doc, chunks, smaller) in larger {
            let chunks = &round.chunks[chunks.clone()];
            seen.reset(chunks.len());
            chunks.iter().for_each(|chunk| {
                seen.insert(*chunk);
            });
            let size_b = chunks.len() as u32;
            for a in &round.smaller[smaller.clone()] {
                let Some(other) = kept.get(*a) else { continue };
                let size_a = other.len() as u32;
                if bound.is_some_and(|bound| !bound.sizes_fit(size_a, size_b)) {
                    continue;
                }
                let shared = other.iter().filter(|chunk| seen.contains(**chunk)).count() as u32;
                if bound.is_none_or(|bound| bound.holds(shared, size_a, size_b)) {
                    found.push(SharedPair { a: *a, b: *doc, shared, size_a, size_b });
                }
            }
        }
        found
    };
    let part = round.larger.len().div_ceil(threads.max(1)).max(1);
    let found: Vec<Vec<SharedPair>> = if round.larger.len() < 256 || threads < 2 {
        vec![count(&round.larger)]
    } else {
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                round.larger.chunks(part).map(|larger| scope.spawn(move || count(larger))).collect();
            workers.into_iter().map(|worker| worker.join().expect("counting does not panic")).collect()
        })
    };
    let mut verified = 0;
    for pair in found.into_iter().flatten() {
        verified += 1;
        emit(pair)?;
    }
    Ok(verified)
}

#[cfg(test)]
mod tests;
