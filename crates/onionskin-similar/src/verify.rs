//! Verification: how many chunks two documents really share.

mod difference;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use onionskin_core::{DocId, FingerprintSet};
use onionskin_store::join::SortedCursor;
use onionskin_store::sort::{SortParams, SortedStream, Sorter};
use serde::{Deserialize, Serialize};

use crate::overlap::rounds::in_parallel;
use crate::{Bits, Bound, ChunkSets, Resources, SimilarError};
use difference::{Difference, Held};

/// Two documents, the number of chunks they share, and how many each has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SharedPair {
    /// The smaller document.
    pub a: DocId,
    /// The larger document.
    pub b: DocId,
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
    sorter: Sorter<(DocId, DocId)>,
    /// Smaller document first: how long it has to be kept.
    last: Sorter<(DocId, DocId)>,
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
    pub fn push(&mut self, a: DocId, b: DocId) -> Result<(), SimilarError> {
        if a != b {
            let (a, b) = (a.min(b), a.max(b));
            self.smaller.set(a);
            self.larger.set(b);
            self.sorter.push((b, a))?;
            self.last.push((a, b))?;
        }
        Ok(())
    }

    /// Hands over each pair once, smaller document first, in ascending order of the larger; returns
    /// how many there are.
    pub fn for_each(
        self,
        pair: &mut dyn FnMut(DocId, DocId) -> Result<(), SimilarError>,
    ) -> Result<u64, SimilarError> {
        let mut pairs = 0;
        for entry in self.sorter.finish()? {
            let (b, a) = entry?;
            pair(a, b)?;
            pairs += 1;
        }
        Ok(pairs)
    }

    /// How many were pushed, repeats included.
    pub fn pushed(&self) -> u64 {
        self.sorter.stats().records
    }
}

/// What verification has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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

/// A larger document of candidates.
struct Larger {
    doc: DocId,
    /// Where its chunks lie.
    chunks: Range<usize>,
    /// Where its candidates lie.
    smaller: Range<usize>,
    /// The document that it is told apart from, if it is in a crowd.
    base: Option<DocId>,
    difference: Option<Arc<Difference>>,
}

/// Documents of one round of work, on which threads work side by side.
#[derive(Default)]
struct Round {
    /// Chunks of the larger documents, end to end, as often as they occur.
    chunks: Vec<u64>,
    larger: Vec<Larger>,
    /// The smaller documents of the candidates.
    smaller: Vec<DocId>,
}

impl Round {
    fn clear(&mut self) {
        self.chunks.clear();
        self.larger.clear();
        self.smaller.clear();
    }

    /// The differences of some of its larger documents from their bases.
    fn differences(&self, larger: &[Larger], kept: &Kept) -> Vec<Option<Arc<Difference>>> {
        let mut seen = FingerprintSet::default();
        let mut of = |larger: &Larger| {
            let base = kept.sets.get(&larger.base?)?;
            seen.hold(&self.chunks[larger.chunks.clone()]);
            Difference::of(&seen, &base.chunks).map(Arc::new)
        };
        larger.iter().map(&mut of).collect()
    }

    /// The pairs of some of its larger documents that are similar.
    fn count(&self, larger: &[Larger], kept: &Kept, bound: Option<Bound>) -> Vec<SharedPair> {
        let mut counter = Counter::default();
        let mut found = Vec::new();
        for larger in larger {
            counter.hold(larger, &self.chunks[larger.chunks.clone()], kept);
            for a in &self.smaller[larger.smaller.clone()] {
                let Some(other) = kept.sets.get(a) else { continue };
                let (size_a, size_b) = (other.chunks.len() as u32, counter.size());
                let least = bound.map_or(0, |bound| bound.least_shared(size_a, size_b));
                let Some(shared) = counter.count(*a, other, least) else { continue };
                if bound.is_none_or(|bound| bound.holds(shared, size_a, size_b)) {
                    found.push(SharedPair { a: *a, b: larger.doc, shared, size_a, size_b });
                }
            }
        }
        found
    }
}

/// Counts what one document shares with others.
#[derive(Default)]
struct Counter<'a> {
    chunks: &'a [u64],
    /// Whether the set holds the chunks: it need not where differences tell.
    is_seen: bool,
    seen: FingerprintSet,
    /// The base, its chunks, and the difference from it.
    from_base: Option<(DocId, &'a [u64], &'a Difference)>,
    held: Held,
}

impl<'a> Counter<'a> {
    fn hold(&mut self, larger: &'a Larger, chunks: &'a [u64], kept: &'a Kept) {
        let base = larger.base.and_then(|base| Some((base, &*kept.sets.get(&base)?.chunks)));
        let difference = larger.difference.as_deref();
        self.from_base = base.zip(difference).map(|((base, chunks), difference)| (base, chunks, difference));
        (self.chunks, self.is_seen) = (chunks, false);
        match self.from_base {
            Some((_, base, difference)) => self.held.hold(difference, base),
            None => self.see(),
        }
    }

    fn see(&mut self) {
        if !self.is_seen {
            self.seen.hold(self.chunks);
            self.is_seen = true;
        }
    }

    fn size(&self) -> u32 {
        match self.from_base {
            Some((_, base, difference)) => difference.size(base),
            None => self.seen.members().len() as u32,
        }
    }

    /// `None` may stand for less than `least`.
    fn count(&mut self, a: DocId, other: &KeptSet, least: u64) -> Option<u32> {
        match (self.from_base, &other.difference) {
            (Some((base, chunks, difference)), _) if a == base => Some(difference.shared_with_base(chunks)),
            (Some((base, ..)), Some(of_other)) if other.base == base => Some(self.held.shared_with(of_other)),
            _ => {
                self.see();
                self.seen.count_shared_from(least, &other.chunks)
            }
        }
    }
}

/// A set, and what it is told apart from.
struct KeptSet {
    chunks: Box<[u64]>,
    /// Itself if it is told apart from nothing.
    base: DocId,
    difference: Option<Arc<Difference>>,
}

impl KeptSet {
    /// What it takes beside its chunks.
    const OVERHEAD: usize = 96;

    fn bytes(&self) -> usize {
        let difference = self.difference.as_ref().map_or(0, |difference| difference.bytes());
        size_of_val(&*self.chunks) + difference + KeptSet::OVERHEAD
    }
}

/// Sets that are kept until the last larger document of their pairs has come by.
#[derive(Default)]
struct Kept {
    sets: HashMap<DocId, KeptSet>,
    /// The last larger document, and the kept one.
    expiry: BinaryHeap<Reverse<(DocId, DocId)>>,
    bytes: usize,
    /// What makes a set of chunks.
    seen: FingerprintSet,
}

impl Kept {
    /// Keeps a set, or chunks that may repeat as a set.
    fn push(&mut self, doc: DocId, chunks: &[u64], may_repeat: bool, last: DocId) {
        let mut set = chunks;
        if may_repeat {
            self.seen.hold(chunks);
            set = self.seen.members();
        }
        let kept = KeptSet { chunks: set.into(), base: doc, difference: None };
        self.bytes += kept.bytes();
        self.sets.insert(doc, kept);
        self.expiry.push(Reverse((last, doc)));
    }

    /// Lets go of those that no document from this one on needs.
    fn release(&mut self, from: DocId) {
        while let Some(Reverse((last, doc))) = self.expiry.peek().copied()
            && last < from
        {
            self.expiry.pop();
            if let Some(kept) = self.sets.remove(&doc) {
                self.bytes -= kept.bytes();
            }
        }
    }

    /// What a document in a crowd is told apart from: what its first candidate is.
    fn base_of(&self, first: DocId) -> Option<DocId> {
        let base = self.sets.get(&first)?.base;
        Some(if self.sets.contains_key(&base) { base } else { first })
    }

    fn set_base(&mut self, doc: DocId, base: DocId) {
        if let Some(kept) = self.sets.get_mut(&doc) {
            kept.base = base;
        }
    }

    /// `None` if it is too large.
    fn set_difference(&mut self, doc: DocId, difference: Option<&Arc<Difference>>) {
        if let Some(kept) = self.sets.get_mut(&doc) {
            match difference {
                Some(difference) => self.bytes += difference.bytes(),
                None => kept.base = doc,
            }
            kept.difference = difference.cloned();
        }
    }
}

/// The fewest candidates of a document in a crowd, and the fewest chunks of its text. With fewer,
/// its difference from another costs more than it saves.
const CROWD: usize = 4;
const LONG: usize = 256;

/// Chunks in a part of a round, at most: they are read twice, the second time out of the cache.
const ROUND_CHUNKS: usize = 16 << 10;
/// Candidates in a part of a round, at most.
const ROUND_PAIRS: usize = 8 << 10;

/// Counts for every candidate the chunks that the two documents share, and hands on those that are
/// similar, in ascending order of the larger document, then the smaller.
///
/// The naive way loads two sets for every pair. Here the sets are read once from front to back.
/// Whoever is the smaller document of a candidate is kept; when the larger one comes by, its chunks
/// go into a hash table and the kept ones are looked up in it. A set goes when its last partner has
/// come by. When the kept sets fill the budget all the same, no more are kept, and pairs of later
/// documents wait for another pass: as many passes as the sets that must be kept at a time are
/// larger than the budget.
pub fn count_shared(
    sets: &ChunkSets,
    candidates: Candidates,
    bound: Option<Bound>,
    resources: &Resources,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<VerifyStats, SimilarError> {
    let Candidates { sorter, last, smaller, larger } = candidates;
    let mut waiting = sorter.finish()?;
    let last = last.finish()?;
    let stats = VerifyStats { spilled_bytes: last.stats().spilled_bytes, ..VerifyStats::default() };
    let job = Job::new(sets, (smaller, larger), bound, resources);
    let mut output = Output { stats, emit };
    // Documents are kept in ascending order over all passes, so one walk along their partners is
    // enough.
    let mut last = SortedCursor::new(last);
    let mut from = DocId::MIN;
    loop {
        output.stats.spilled_bytes += waiting.stats().spilled_bytes;
        let mut pass = Pass::new(&job, waiting, from);
        if pass.pairs.peek()?.is_none() {
            return Ok(output.stats);
        }
        output.stats.passes += 1;
        pass.run(&mut last, &mut output)?;
        from = pass.keeps.end;
        match pass.later {
            None => return Ok(output.stats),
            Some(later) => waiting = later.finish()?,
        }
    }
}

/// Pairs of documents in order.
type Pairs = SortedCursor<SortedStream<(DocId, DocId)>, (DocId, DocId)>;

/// What is the same in all passes.
struct Job<'a> {
    sets: &'a ChunkSets,
    /// The smaller documents of candidates.
    smaller: Bits,
    /// The larger documents of candidates.
    larger: Bits,
    bound: Option<Bound>,
    resources: &'a Resources,
    /// Bytes of kept sets, at most.
    kept_bytes: usize,
    /// Chunks of a round, at most.
    round_chunks: usize,
    /// Candidates of a round, at most.
    round_pairs: usize,
}

impl<'a> Job<'a> {
    fn new(
        sets: &'a ChunkSets,
        (smaller, larger): (Bits, Bits),
        bound: Option<Bound>,
        resources: &'a Resources,
    ) -> Job<'a> {
        let kept_bytes = (resources.memory.len() / 2).max(1 << 20);
        // More than one thread has to be worth starting.
        let parts = if resources.threads <= 1 { 1 } else { 32 * resources.threads };
        let round_chunks = (kept_bytes / 8 / size_of::<u64>()).min(ROUND_CHUNKS * parts);
        let round_pairs = (kept_bytes / 16 / size_of::<DocId>()).min(ROUND_PAIRS * parts);
        Job { sets, smaller, larger, bound, resources, kept_bytes, round_chunks, round_pairs }
    }
}

/// Where counted pairs go.
struct Output<'e> {
    stats: VerifyStats,
    emit: &'e mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
}

/// One pass over the sets.
struct Pass<'j> {
    job: &'j Job<'j>,
    /// Candidates that no earlier pass has counted, larger document first.
    pairs: Pairs,
    /// Which smaller documents are kept: those below have been kept in an earlier pass, those above
    /// wait for a later one.
    keeps: Range<DocId>,
    kept: Kept,
    round: Round,
    /// Candidates for a later pass.
    later: Option<Sorter<(DocId, DocId)>>,
}

impl<'j> Pass<'j> {
    fn new(job: &'j Job<'j>, waiting: SortedStream<(DocId, DocId)>, from: DocId) -> Pass<'j> {
        Pass {
            job,
            pairs: SortedCursor::new(waiting),
            keeps: from..DocId::MAX,
            kept: Kept::default(),
            round: Round::default(),
            later: None,
        }
    }

    fn run(&mut self, last: &mut Pairs, output: &mut Output<'_>) -> Result<(), SimilarError> {
        let job = self.job;
        let mut reader = job.sets.reader();
        loop {
            let keeps = self.keeps.clone();
            let is_kept = |doc: DocId| keeps.contains(&doc) && job.smaller.get(doc);
            let wanted = |doc| job.larger.get(doc) || is_kept(doc);
            let Some((doc, chunks)) = reader.next_with_repeats(wanted)? else { break };
            if is_kept(doc) && self.has_room(doc, output)? {
                let partner = last.last_at(doc, |pair| pair.0)?.map_or(doc, |pair| pair.1);
                self.kept.push(doc, chunks, job.sets.may_repeat(), partner);
            }
            self.take_candidates(doc, chunks, output)?;
            if self.round.chunks.len() >= job.round_chunks || self.round.smaller.len() >= job.round_pairs {
                self.count(output)?;
                self.kept.release(DocId(doc.get().saturating_add(1)));
            }
        }
        self.count(output)
    }

    /// Whether a set can be kept. If not, no more are kept in this pass.
    fn has_room(&mut self, doc: DocId, output: &mut Output<'_>) -> Result<bool, SimilarError> {
        if self.kept.bytes < self.job.kept_bytes {
            return Ok(true);
        }
        self.count(output)?;
        self.kept.release(doc);
        // Not for the sake of a few: a round has to be worth its while.
        let has_room = self.kept.bytes < self.job.kept_bytes / 8 * 7;
        if !has_room {
            self.keeps.end = doc;
        }
        Ok(has_room)
    }

    /// Adds a larger document to the round, with those of its candidates that are kept.
    fn take_candidates(
        &mut self,
        doc: DocId,
        chunks: &[u64],
        output: &mut Output<'_>,
    ) -> Result<(), SimilarError> {
        // Candidates of documents that have no chunks, which is possible only with features from
        // elsewhere, are dropped.
        while self.pairs.next_if(|(b, _)| *b < doc)?.is_some() {}
        let first = self.round.smaller.len();
        while let Some((b, a)) = self.pairs.next_if(|(b, _)| *b == doc)? {
            output.stats.candidates += u64::from(output.stats.passes == 1);
            if a < self.keeps.end {
                self.round.smaller.push(a);
            } else {
                self.wait((b, a))?;
            }
        }
        if self.round.smaller.len() > first {
            let start = self.round.chunks.len();
            self.round.chunks.extend_from_slice(chunks);
            let smaller = first..self.round.smaller.len();
            let in_crowd = smaller.len() >= CROWD && chunks.len() >= LONG;
            let base = if in_crowd { self.kept.base_of(self.round.smaller[first]) } else { None };
            if let Some(base) = base {
                self.kept.set_base(doc, base);
            }
            let chunks = start..self.round.chunks.len();
            self.round.larger.push(Larger { doc, chunks, smaller, base, difference: None });
        }
        Ok(())
    }

    fn wait(&mut self, pair: (DocId, DocId)) -> Result<(), SimilarError> {
        let later = match &mut self.later {
            Some(later) => later,
            none => {
                let resources = self.job.resources;
                let params = SortParams::new(&resources.work_dir, resources.memory.share(1, 8));
                none.insert(Sorter::new(params)?)
            }
        };
        Ok(later.push(pair)?)
    }

    /// Counts for the documents of the round, and empties it.
    fn count(&mut self, output: &mut Output<'_>) -> Result<(), SimilarError> {
        let (bound, threads) = (self.job.bound, self.job.resources.threads);
        let (round, kept) = (&self.round, &self.kept);
        let differences = in_parallel(&round.larger, threads, |larger| round.differences(larger, kept));
        for (larger, difference) in self.round.larger.iter_mut().zip(differences.into_iter().flatten()) {
            if larger.base.is_some() {
                self.kept.set_difference(larger.doc, difference.as_ref());
            }
            larger.difference = difference;
        }
        let (round, kept) = (&self.round, &self.kept);
        let found = in_parallel(&round.larger, threads, |larger| round.count(larger, kept, bound));
        self.round.clear();
        for pair in found.into_iter().flatten() {
            output.stats.verified += 1;
            (output.emit)(pair)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
