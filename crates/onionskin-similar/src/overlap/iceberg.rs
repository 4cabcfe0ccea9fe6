//! Coarse counting (Shivakumar and Garcia-Molina 1998, section 2.2), with the techniques of Fang et
//! al. (1998) that it builds on.
//!
//! A table with a counter for every pair of documents that meets somewhere would not fit. A counter
//! at the place that a hash of the pair says, shared with whatever falls there, does: it is never
//! below the count of any of its pairs, so a pair in a bucket below the threshold is light for
//! sure. What is left is counted exactly.
//!
//! ```text
//!  chunks ─▶ documents that cannot have T in common with anyone, dropped           up to three times
//!  chunks ─▶ sort ─▶ groups of documents
//!  groups ─▶ pilot sample: pairs that are probably heavy, counted apart
//!  groups ─▶ two arrays of counters ─▶ two bitmaps
//!  groups ─▶ pairs with both bits, in a table; several scans when it does not hold them
//!  pairs that reached the threshold ─▶ verify
//! ```
//!
//! Two departures from the paper, neither of which loses a heavy pair. Before anything is paired,
//! documents are dropped that have too few chunks which anybody else has. And up to half as many
//! chunks as must be shared are put aside in every document, the most common ones, if they are
//! common at all; what two documents have lost by it is at most the larger half, because in an
//! order of all chunks by rarity what they put aside is the end of what they share. So the
//! threshold is halved at worst and the square of a common chunk is never enumerated where
//! documents have rarer ones. The last step counts on the whole sets again.

use onionskin_core::{DocId, FingerprintTable, scramble};
use onionskin_store::sort::{SortParams, Sorter};

use super::groups::{Groups, pairs_of};
use super::rarity::{Rank, Rarity};
use super::{Emit, JoinStats, Task, own_least};
use crate::{Bits, Candidates, SimilarError};

/// Rounds of dropping documents, at most.
const DROPS: u32 = 3;
/// A chunk that stands in more documents than this is common and may be put aside.
const COMMON: u8 = 32;

pub(super) fn join(task: Task<'_>, emit: Emit<'_>) -> Result<JoinStats, SimilarError> {
    let mut stats = JoinStats::default();
    let (groups, threshold) = reduced_groups(task, &mut stats)?;
    let mut candidates = Candidates::new(task.documents, &task.resources.share(1, 4))?;
    let memory = task.resources.memory;

    let deferred = pilot(&groups, memory.share(1, 8).len(), &mut stats)?;
    let coarse = CoarseCount::new(&groups, threshold, deferred, memory.share(1, 2).len(), &mut stats)?;
    coarse.count_candidates(memory.share(1, 4).len(), &mut stats, &mut candidates)?;
    drop(coarse);
    drop(groups);

    task.verify(candidates, &mut stats, emit)?;
    Ok(stats)
}

/// The chunks worth pairing, and how many of them similar documents share at least.
fn reduced_groups(task: Task<'_>, stats: &mut JoinStats) -> Result<(Groups, u32), SimilarError> {
    let Task { sets, documents, bound, resources } = task;
    let counter_bytes = resources.memory.share(1, 2).len();
    let mut dropped = Bits::new(documents);
    let mut drops = 0;
    let rarity = loop {
        let size_counts = |n| own_least(bound, n).is_some();
        let alive = |doc| !dropped.get(doc);
        let rarity = Rarity::of(sets, documents, counter_bytes, resources, alive, size_counts)?;
        let mut reader = sets.reader();
        let mut changed = false;
        while let Some((doc, chunks)) = reader.next_of(|doc| !dropped.get(doc))? {
            let met = chunks.iter().filter(|chunk| rarity.get(**chunk) > 1).count() as u64;
            if own_least(bound, chunks.len()).is_none_or(|least| met < u64::from(least)) {
                dropped.set(doc);
                changed = true;
            }
        }
        stats.passes += 2;
        drops += 1;
        if !changed || drops == DROPS {
            break rarity;
        }
    };

    let params = SortParams::new(&resources.work_dir, resources.memory.share(3, 8));
    let mut chunks_of = Sorter::<(u64, DocId)>::new(params)?;
    let mut threshold = u32::MAX;
    let mut scratch: Vec<(Rank, u64)> = Vec::new();
    let mut reader = sets.reader();
    while let Some((doc, chunks)) = reader.next_of(|doc| !dropped.get(doc))? {
        let Some(least) = own_least(bound, chunks.len()) else { continue };
        rarity.ranked(chunks, &mut scratch);
        let common = scratch.iter().filter(|(rank, _)| rank.counter() > COMMON).count();
        let aside = common.min(least as usize / 2);
        if aside > 0 {
            let keep = scratch.len() - aside;
            scratch.select_nth_unstable(keep);
            scratch.truncate(keep);
        }
        threshold = threshold.min(least - aside as u32);
        for (_, chunk) in &scratch {
            chunks_of.push((*chunk, doc))?;
        }
    }
    stats.passes += 1;
    stats.hold(rarity.bytes() + chunks_of.stats().peak_bytes);
    drop(rarity);
    Ok((Groups::write(chunks_of.finish()?, resources, stats)?, threshold))
}

fn pair_key(a: DocId, b: DocId) -> u64 {
    // Documents of a group ascend, so that the second is above 0 and so is the key.
    u64::from(a) << 32 | u64::from(b)
}

/// Bytes of a table that holds all pairs even if all are different: no budget is worth more.
fn bytes_for(groups: &Groups) -> usize {
    usize::try_from(groups.pairs.saturating_mul(3 * 12)).unwrap_or(usize::MAX)
}

/// The pilot sample: pairs that meet more than once in a few of the groups are probably heavy. They
/// get counters of their own and do not make heavy the buckets that others fall into.
fn pilot(groups: &Groups, bytes: usize, stats: &mut JoinStats) -> Result<FingerprintTable, SimilarError> {
    let mut sample = FingerprintTable::of_bytes(bytes.min(bytes_for(groups)));
    let room = sample.capacity();
    // As many groups as fill the table by half if all their pairs are different.
    let share = (room as f64 / 2.0 / groups.pairs.max(1) as f64).min(1.0);
    let mut number = 0u64;
    groups.scan(|documents| {
        number += 1;
        let chance = scramble(number) as f64 / u64::MAX as f64;
        let pairs = pairs_of(documents.len() as u64);
        // A large group would take the room of many small ones, and tell as much as one of them.
        if chance <= share && pairs <= (room / 16).max(1) as u64 {
            if sample.len() as u64 + pairs > room as u64 {
                return Ok(false);
            }
            for (at, a) in documents.iter().enumerate() {
                for b in &documents[at + 1..] {
                    let pair = pair_key(*a, *b);
                    let count = sample.get(pair);
                    sample.insert(pair, count.saturating_add(1));
                }
            }
        }
        Ok(true)
    })?;
    stats.passes += 1;
    let heavy = sample.iter().filter(|(_, count)| *count > 1).count();
    stats.hold((sample.bytes() + heavy * 16) as u64);
    let mut deferred = FingerprintTable::of_bytes(heavy.saturating_mul(2 * 16));
    for (pair, _) in sample.iter().filter(|(_, count)| *count > 1) {
        deferred.insert(pair, 1);
    }
    Ok(deferred)
}

/// Two bitmaps, one for each hash function, as long as the arrays of counters they were made of.
struct Bitmaps {
    words: [Vec<u64>; 2],
    len: usize,
}

impl Bitmaps {
    /// Whether a pair may be heavy.
    #[inline]
    fn may_be_heavy(&self, pair: u64) -> bool {
        places(pair, self.len)
            .into_iter()
            .zip(&self.words)
            .all(|(place, words)| words[place / 64] >> (place % 64) & 1 == 1)
    }
}

/// The buckets of a pair: the two halves of one hash serve as two hash functions.
#[inline]
fn places(pair: u64, len: usize) -> [usize; 2] {
    let hash = scramble(pair);
    [hash >> 32, hash & 0xffff_ffff].map(|half| ((half * len as u64) >> 32) as usize)
}

/// A coarse count of all pairs of all groups, and an exact one of the deferred ones.
struct CoarseCount<'g> {
    groups: &'g Groups,
    threshold: u32,
    /// Pairs in light buckets are light.
    bitmaps: Bitmaps,
    /// Counts of deferred pairs. They begin at 1, as 0 is no entry.
    deferred: FingerprintTable,
}

impl<'g> CoarseCount<'g> {
    fn new(
        groups: &'g Groups,
        threshold: u32,
        mut deferred: FingerprintTable,
        bytes: usize,
        stats: &mut JoinStats,
    ) -> Result<CoarseCount<'g>, SimilarError> {
        // A byte saturates at 255: a bucket that got there counts as heavy whatever the threshold.
        let enough = u8::try_from(threshold).unwrap_or(u8::MAX);
        let wanted = usize::try_from(groups.pairs.saturating_mul(4)).unwrap_or(usize::MAX);
        let len = (bytes / 2).min(wanted).clamp(64, u32::MAX as usize);
        let mut counters = [vec![0u8; len], vec![0u8; len]];
        let count_apart = !deferred.is_empty();
        groups.scan(|documents| {
            for (at, a) in documents.iter().enumerate() {
                for b in &documents[at + 1..] {
                    let pair = pair_key(*a, *b);
                    if count_apart && let Some(count) = deferred.get_mut(pair) {
                        *count = count.saturating_add(1);
                        continue;
                    }
                    let [first, second] = places(pair, len);
                    let (one, two) = (counters[0][first], counters[1][second]);
                    let least = one.min(two);
                    if least < enough {
                        // Only the lower of the two goes up (Estan and Varghese 2002): it is the
                        // one that bounds the pair from above, and stays above it.
                        counters[0][first] = one.max(least + 1);
                        counters[1][second] = two.max(least + 1);
                    }
                }
            }
            Ok(true)
        })?;
        stats.pairs_enumerated += groups.pairs;
        stats.passes += 1;
        let words = |counters: &[u8]| -> Vec<u64> {
            let bits = |counters: &[u8]| {
                counters.iter().rev().fold(0, |word, counter| word << 1 | u64::from(*counter >= enough))
            };
            counters.chunks(64).map(bits).collect()
        };
        stats.hold((2 * len + len / 4 + deferred.bytes()) as u64);
        let [one, two] = counters;
        let first = words(&one);
        drop(one);
        let bitmaps = Bitmaps { words: [first, words(&two)], len };
        Ok(CoarseCount { groups, threshold, bitmaps, deferred })
    }

    /// Hands over all heavy pairs: counts exactly those whose buckets are heavy.
    ///
    /// A full table gives up the upper half of the hashes it was to hold and goes on with the lower
    /// half; the next scan begins where this one ended. So the number of scans is what the table
    /// needs and nobody has to know it before.
    fn count_candidates(
        &self,
        bytes: usize,
        stats: &mut JoinStats,
        candidates: &mut Candidates,
    ) -> Result<(), SimilarError> {
        let CoarseCount { groups, threshold, bitmaps, deferred } = self;
        let mut push = |pair: u64| candidates.push(DocId((pair >> 32) as u32), DocId(pair as u32));
        for (pair, _) in deferred.iter().filter(|(_, count)| count > threshold) {
            push(pair)?;
        }
        // Half as much again while entries are given up.
        let mut table = FingerprintTable::of_bytes((bytes / 3 * 2).min(bytes_for(groups)));
        let mut from = 0u64;
        loop {
            let mut to = u64::MAX;
            groups.scan(|documents| {
                for (at, a) in documents.iter().enumerate() {
                    for b in &documents[at + 1..] {
                        let pair = pair_key(*a, *b);
                        if !(from..=to).contains(&scramble(pair)) || !bitmaps.may_be_heavy(pair) {
                            continue;
                        }
                        if let Some(count) = table.get_mut(pair) {
                            *count = count.saturating_add(1);
                            continue;
                        }
                        if deferred.get(pair) > 0 {
                            continue;
                        }
                        while table.len() >= table.capacity() {
                            // Different pairs have different hashes, so that halving always ends.
                            to = from + (to - from) / 2;
                            table.retain(|pair| (from..=to).contains(&scramble(pair)));
                        }
                        if (from..=to).contains(&scramble(pair)) {
                            table.insert(pair, 1);
                        }
                    }
                }
                Ok(true)
            })?;
            stats.pairs_enumerated += groups.pairs;
            stats.passes += 1;
            stats.candidates += table.len() as u64;
            for (pair, _) in table.iter().filter(|(_, count)| count >= threshold) {
                push(pair)?;
            }
            if to == u64::MAX {
                break;
            }
            table.clear();
            from = to + 1;
        }
        let bitmap_bytes: usize = bitmaps.words.iter().map(|words| 8 * words.len()).sum();
        stats.hold((table.bytes() / 2 * 3 + bitmap_bytes + deferred.bytes()) as u64);
        stats.candidates += deferred.len() as u64;
        Ok(())
    }
}
