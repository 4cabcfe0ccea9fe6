//! Verification: how many chunks two documents really share.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::iter::Peekable;
use std::ops::Range;

use onionskin_core::FingerprintSet;
use onionskin_store::sort::{SortParams, SortedStream, Sorter};

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
        // A table from elsewhere may claim to share more than there is.
        let union = (u64::from(self.size_a) + u64::from(self.size_b)).saturating_sub(u64::from(self.shared));
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
    /// Smaller document first: how long it has to be kept.
    last: Sorter<(u32, u32)>,
    smaller: Bits,
    larger: Bits,
}

impl Candidates {
    /// None yet. `documents` is how many there are.
    pub fn new(documents: u64, resources: &Resources) -> Result<Candidates, SimilarError> {
        let params = SortParams::new(&resources.work_dir, resources.memory.share(1, 2)).dedup();
        Ok(Candidates {
            sorter: Sorter::new(params.clone())?,
            last: Sorter::new(params)?,
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
            self.last.push((a, b))?;
        }
        Ok(())
    }

    /// How many were pushed, repeats included.
    pub fn pushed(&self) -> u64 {
        self.sorter.stats().records
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
    /// Chunks of the larger documents, end to end, as often as they occur.
    chunks: Vec<u64>,
    /// A document, where its chunks lie, where its candidates lie.
    larger: Vec<(u32, Range<usize>, Range<usize>)>,
    /// The smaller documents of the candidates.
    smaller: Vec<u32>,
}

/// Sets that are kept until the last larger document of their pairs has come by.
#[derive(Default)]
struct Kept {
    sets: HashMap<u32, Box<[u64]>>,
    /// The last larger document, and the kept one.
    expiry: BinaryHeap<Reverse<(u32, u32)>>,
    bytes: usize,
    /// What makes a set of chunks.
    seen: FingerprintSet,
}

impl Kept {
    /// What a set takes beside its chunks.
    const OVERHEAD: usize = 64;

    /// Keeps a set, or chunks that may repeat as a set.
    fn push(&mut self, doc: u32, chunks: &[u64], may_repeat: bool, last: u32) {
        let mut set = chunks;
        if may_repeat {
            self.seen.hold(chunks);
            set = self.seen.members();
        }
        self.bytes += size_of_val(set) + Kept::OVERHEAD;
        self.sets.insert(doc, set.into());
        self.expiry.push(Reverse((last, doc)));
    }

    /// Lets go of those that no document from this one on needs.
    fn release(&mut self, from: u32) {
        while let Some(Reverse((last, doc))) = self.expiry.peek().copied()
            && last < from
        {
            self.expiry.pop();
            if let Some(chunks) = self.sets.remove(&doc) {
                self.bytes -= size_of_val(&*chunks) + Kept::OVERHEAD;
            }
        }
    }

    fn get(&self, doc: u32) -> Option<&[u64]> {
        self.sets.get(&doc).map(|chunks| &**chunks)
    }
}

/// The largest document of each group of a sorted stream, for documents that are asked for in ascending order.
struct LastPartner {
    pairs: Peekable<SortedStream<(u32, u32)>>,
}

impl LastPartner {
    fn of(&mut self, doc: u32) -> Result<u32, SimilarError> {
        let mut last = doc;
        while let Some(pair) = self.pairs.next_if(|pair| pair.as_ref().map_or(true, |pair| pair.0 <= doc)) {
            let (smaller, larger) = pair?;
            if smaller == doc {
                last = larger;
            }
        }
        Ok(last)
    }
}

/// Chunks in a part of a round, at most: they are read twice, the second time out of the cache.
const ROUND_CHUNKS: usize = 16 << 10;
/// Candidates in a part of a round, at most.
const ROUND_PAIRS: usize = 8 << 10;

/// Counts for every candidate the chunks that the two documents share, and hands on those that are similar, in ascending order of
/// the larger document, then the smaller.
///
/// The naive way loads two sets for every pair. Here the sets are read once from front to back. Whoever is the smaller
/// document of a candidate is kept; when the larger one comes by, its chunks go into a hash table and the kept ones are looked
/// up in it. A set goes when its last partner has come by. When the kept sets fill the budget all the same, no more are kept,
/// and pairs of later documents wait for another pass: as many passes as the sets that must be kept at a time are larger than
/// the budget.
pub fn count_shared(
    sets: &ChunkSets,
    candidates: Candidates,
    bound: Option<Bound>,
    resources: &Resources,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<VerifyStats, SimilarError> {
    let Candidates { sorter, last, smaller, larger } = candidates;
    let mut stats = VerifyStats::default();
    let mut waiting = sorter.finish()?;
    let last = last.finish()?;
    stats.spilled_bytes += last.stats().spilled_bytes;
    // Documents are kept in ascending order over all passes, so one walk along their partners is enough.
    let mut last = LastPartner { pairs: last.peekable() };
    let mut first_pass = true;
    // Documents below this one have been kept in an earlier pass.
    let mut from = 0;
    let kept_bytes = (resources.memory.len() / 2).max(1 << 20);
    let threads = resources.threads.max(1);
    // More than one thread has to be worth starting.
    let parts = if threads == 1 { 1 } else { 32 * threads };
    let round_chunks = (kept_bytes / 8 / size_of::<u64>()).min(ROUND_CHUNKS * parts);
    let round_pairs = (kept_bytes / 16 / size_of::<u32>()).min(ROUND_PAIRS * parts);
    loop {
        stats.spilled_bytes += waiting.stats().spilled_bytes;
        let later_params = SortParams::new(&resources.work_dir, resources.memory.share(1, 8));
        let mut later: Option<Sorter<(u32, u32)>> = None;
        let mut pairs = waiting.peekable();
        if pairs.peek().is_none() {
            return Ok(stats);
        }
        stats.passes += 1;
        let mut kept = Kept::default();
        let mut until = u32::MAX;
        let mut round = Round::default();
        let mut reader = sets.reader();
        loop {
            let wanted = |doc| larger.get(doc) || (doc >= from && doc < until && smaller.get(doc));
            let Some((doc, chunks)) = reader.next_with_repeats(wanted)? else { break };
            if doc >= from && doc < until && smaller.get(doc) {
                let full = kept.bytes >= kept_bytes;
                if full {
                    stats.verified += work(&mut round, &kept, bound, resources.threads, emit)?;
                    kept.release(doc);
                }
                // Not for the sake of a few: a round has to be worth its while.
                if full && kept.bytes >= kept_bytes / 8 * 7 {
                    until = doc;
                } else {
                    kept.push(doc, chunks, sets.may_repeat(), last.of(doc)?);
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
                stats.verified += work(&mut round, &kept, bound, resources.threads, emit)?;
                kept.release(doc.saturating_add(1));
            }
        }
        stats.verified += work(&mut round, &kept, bound, resources.threads, emit)?;
        match later {
            None => return Ok(stats),
            Some(later) => waiting = later.finish()?,
        }
        from = until;
        first_pass = false;
    }
}

/// Counts for the documents of a round, and empties it.
fn work(
    round: &mut Round,
    kept: &Kept,
    bound: Option<Bound>,
    threads: usize,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<u64, SimilarError> {
    let done = &*round;
    let count = |larger: &[(u32, Range<usize>, Range<usize>)]| {
        let mut seen = FingerprintSet::default();
        let mut found = Vec::new();
        for (doc, chunks, smaller) in larger {
            let chunks = &done.chunks[chunks.clone()];
            seen.hold(chunks);
            let size_b = seen.members().len() as u32;
            for a in &done.smaller[smaller.clone()] {
                let Some(other) = kept.get(*a) else { continue };
                let size_a = other.len() as u32;
                if bound.is_some_and(|bound| !bound.sizes_fit(size_a, size_b)) {
                    continue;
                }
                let shared = seen.count_shared(other);
                if bound.is_none_or(|bound| bound.holds(shared, size_a, size_b)) {
                    found.push(SharedPair { a: *a, b: *doc, shared, size_a, size_b });
                }
            }
        }
        found
    };
    let part = done.larger.len().div_ceil(threads.max(1)).max(1);
    let found: Vec<Vec<SharedPair>> = if done.larger.len() < 256 || threads < 2 {
        vec![count(&done.larger)]
    } else {
        std::thread::scope(|scope| {
            let workers: Vec<_> =
                done.larger.chunks(part).map(|larger| scope.spawn(move || count(larger))).collect();
            workers.into_iter().map(|worker| worker.join().expect("counting does not panic")).collect()
        })
    };
    round.chunks.clear();
    round.larger.clear();
    round.smaller.clear();
    let mut verified = 0;
    for pair in found.into_iter().flatten() {
        verified += 1;
        emit(pair)?;
    }
    Ok(verified)
}

#[cfg(test)]
mod tests;
