//! How common chunks are, roughly, in a byte each.
//!
//! To look at rare chunks first one must know what is rare. The naive way sorts all chunks and
//! counts. But the order need not be right, it only has to be the same for all documents: any
//! function of the fingerprint will do, and the better it tells rare from common, the less work is
//! left. So chunks are counted in an array of bytes, as many as the budget has, at the place that
//! their hash says. Where chunks fall together, both count as more common than they are.
//!
//! Two things are certain: a counter is never below the number of documents that have the chunk, as
//! long as that is below 128, and so a chunk whose counter is 1 stands in one document and nobody
//! can be met there. Above, a counter goes up with falling probability, so that a byte tells 200
//! documents from 200,000. Chance is a hash of chunk and document, so that it falls the same way
//! every time.

use onionskin_core::{DocId, scramble};

use super::rounds::Round;
use crate::{ChunkSets, Resources, SimilarError};

/// Up to here counters are exact.
const EXACT: u8 = 128;
/// Steps of a counter in which its meaning doubles.
const OCTAVE: u8 = 8;

/// The counters.
#[derive(Debug)]
pub(crate) struct Rarity {
    counters: Vec<u8>,
}

impl Rarity {
    /// Counters for about `expected` chunks, within so many bytes.
    pub(crate) fn new(expected: u64, bytes: usize) -> Rarity {
        // With four for each, more than three of four chunks that stand alone are seen to. Eight
        // took twice the memory and a seventh more time for a tenth fewer records.
        let wanted = usize::try_from(expected.saturating_mul(4)).unwrap_or(usize::MAX);
        Rarity { counters: vec![0; wanted.min(bytes).max(1024)] }
    }

    /// Counts the chunks of all documents that are wanted and have a size that counts.
    ///
    /// The first portion of documents tells how many chunks there may be in all.
    pub(crate) fn of(
        sets: &ChunkSets,
        documents: u64,
        bytes: usize,
        resources: &Resources,
        wanted: impl Fn(DocId) -> bool,
        size_counts: impl Fn(usize) -> bool + Sync,
    ) -> Result<Rarity, SimilarError> {
        let mut reader = sets.reader();
        let mut round = Round::default();
        let limit = Round::limit(resources.memory);
        let mut rarity: Option<Rarity> = None;
        while round.fill(&mut reader, limit, &wanted)? {
            let rarity = rarity.get_or_insert_with(|| {
                let mean = round.chunks.len().div_ceil(round.documents.len()) as u64;
                Rarity::new(documents.saturating_mul(mean), bytes)
            });
            rarity.add(&round, resources.threads, &size_counts);
        }
        Ok(rarity.unwrap_or_else(|| Rarity::new(0, bytes)))
    }

    /// Every thread reads all chunks and has a part of the counters to itself: no locks, and the
    /// same counters for any number of threads.
    fn add(&mut self, round: &Round, threads: usize, size_counts: &(impl Fn(usize) -> bool + Sync)) {
        let len = self.counters.len();
        let add_to = |first: usize, counters: &mut [u8]| {
            for (doc, range) in round.documents.iter().filter(|(_, range)| size_counts(range.len())) {
                for chunk in &round.chunks[range.clone()] {
                    let hash = scramble(*chunk);
                    if let Some(counter) = counters.get_mut(place(hash, len).wrapping_sub(first)) {
                        count_up(counter, hash, *doc);
                    }
                }
            }
        };
        if threads < 2 || round.chunks.len() < 1 << 14 {
            return add_to(0, &mut self.counters);
        }
        let part = len.div_ceil(threads);
        std::thread::scope(|scope| {
            for (number, counters) in self.counters.chunks_mut(part).enumerate() {
                scope.spawn(move || add_to(number * part, counters));
            }
        });
    }

    /// Counts one chunk of a document.
    pub(crate) fn add_one(&mut self, doc: DocId, chunk: u64) {
        let hash = scramble(chunk);
        let at = place(hash, self.counters.len());
        count_up(&mut self.counters[at], hash, doc);
    }

    /// The counter of a chunk.
    #[inline]
    pub(crate) fn get(&self, chunk: u64) -> u8 {
        self.counters[place(scramble(chunk), self.counters.len())]
    }

    /// Where a chunk stands in the order that all documents share, rarest first; `None` when it
    /// stands in one document only. Chunks of the same rank are told apart by their fingerprint.
    #[inline]
    pub(crate) fn rank(&self, chunk: u64) -> Option<Rank> {
        let hash = scramble(chunk);
        let counter = self.counters[place(hash, self.counters.len())];
        // Without the hash the order within a counter would be that of fingerprints, which related
        // chunks share.
        (counter > 1).then_some(Rank(u64::from(counter) << 56 | hash >> 8))
    }

    /// Replaces `out` by the chunks that may stand in several documents, with their ranks, in no
    /// order.
    pub(crate) fn ranked(&self, chunks: &[u64], out: &mut Vec<(Rank, u64)>) {
        out.clear();
        out.extend(chunks.iter().filter_map(|chunk| Some((self.rank(*chunk)?, *chunk))));
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> u64 {
        self.counters.len() as u64
    }
}

/// A place in the order of rarity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(u64);

impl Rank {
    /// The counter.
    pub(crate) fn counter(self) -> u8 {
        (self.0 >> 56) as u8
    }
}

#[inline]
fn place(hash: u64, len: usize) -> usize {
    ((u128::from(hash) * len as u128) >> 64) as usize
}

#[inline]
fn count_up(counter: &mut u8, hash: u64, doc: DocId) {
    if *counter < EXACT {
        *counter += 1;
    } else if *counter < u8::MAX {
        let doublings = u32::from((*counter - EXACT) / OCTAVE) + 1;
        let chance = scramble(hash ^ (u64::from(doc) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        *counter += u8::from(chance.trailing_zeros() >= doublings);
    }
}
