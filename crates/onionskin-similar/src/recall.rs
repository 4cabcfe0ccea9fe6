//! How much was found, measured on the data itself.
//!
//! An analytic curve says what a filter accepts if shingles were drawn at random. What it did
//! accept, here, on these documents, is measured: for a random sample of documents all true
//! neighbours are found by an exact join, and looked for among the pairs. Nothing is planted in the
//! data.
//!
//! The naive way compares every sampled document with every other: ten thousand times a million
//! sets. Here only the rarest chunks of the sampled documents are put into an index, as many as a
//! similar document cannot avoid altogether ([`Bound::prefix_len`]), and all documents stream past
//! it. How rare a chunk is, is estimated from a part of the documents; any order would be right, a
//! good one is fast.
//!
//! A sampled document with a crowd of neighbours is not compared with all of them: beyond
//! [`MOST_NEIGHBOURS`] a random half is looked at, and a half of that, each standing for as many as
//! were passed over.
//!
//! An atlas without shingles has sketches. The same join over those finds the neighbours but for
//! about one in a thousand, and the few that the search has not verified are read again (`net`).
//!
//! A true pair that is not listed is seldom lost: it may be in one cluster all the same, and of two
//! documents in different clusters one may be removed in favour of a third. So three shares are
//! measured: pairs that are listed, pairs that are in one cluster, and pairs of which a copy
//! without duplicates keeps both documents, the leak.

use onionskin_core::{DocId, FingerprintSet, scramble};
use onionskin_store::table::ClusterRow;
use serde::{Deserialize, Serialize};

use crate::cluster::Open;
use crate::{Bound, ChunkSets, SharedPair, SimilarError};

mod interval;
mod net;

pub use interval::Interval;
pub use net::{Net, measure_by_sketches};

/// Documents in the sample, at most.
pub const SAMPLE: usize = 10_000;
/// Chunks of the sample, at most; with long documents the sample is smaller.
const SAMPLE_CHUNKS: usize = 1 << 20;
/// Meetings of a sampled document that are looked at before half of them are passed over.
pub const MOST_NEIGHBOURS: usize = 64;
/// About so many documents are used to see which chunks are rare, one in sixteen at most.
const RARITY_DOCUMENTS: u64 = 50_000;
const RARITY_STEP: u64 = 16;

/// What the sample says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recall {
    /// Documents in the sample.
    pub sampled: u64,
    /// Those that have a true neighbour.
    pub with_neighbours: u64,
    /// True pairs that were looked for.
    pub true_pairs: u64,
    /// Those that are in the list of pairs.
    pub listed_pairs: u64,
    /// The share of true pairs that are listed.
    pub listed: Option<Interval>,
    /// The share of true pairs that are in one cluster. Unknown if there are no clusters.
    #[serde(default, alias = "connected")]
    pub clustered: Option<Interval>,
    /// The share of true pairs of which both documents are kept when every cluster keeps its
    /// centre alone.
    #[serde(default)]
    pub leaked: Option<Interval>,
    /// Listed pairs of sampled documents that were looked at again.
    pub checked_pairs: u64,
    /// The share of them that are true. Unknown if none were looked at again.
    pub precision: Option<Interval>,
}

/// What a search has found, and what recall is about.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    /// Similar pairs, in ascending order.
    pub pairs: Open<'a, SharedPair>,
    /// Members of clusters, in any order, if there are clusters.
    pub members: Option<Open<'a, ClusterRow>>,
}

/// The sets of the sampled documents, in ascending order of document.
struct Sample {
    docs: Vec<DocId>,
    sets: Vec<Vec<u64>>,
}

/// What was met of a sampled document.
struct Neighbours {
    /// Halvings so far: documents whose hash has a one among so many low bits are passed over.
    halved: u32,
    /// Hash and number of each document met, and whether it is similar.
    met: Vec<(u64, DocId, bool)>,
}

impl Neighbours {
    fn looks_at(&self, hash: u64) -> bool {
        hash & ((1 << self.halved) - 1) == 0
    }

    fn meet(&mut self, hash: u64, doc: DocId, is_similar: bool) {
        self.met.push((hash, doc, is_similar));
        while self.met.len() > MOST_NEIGHBOURS && self.halved < 32 {
            self.halved += 1;
            let halved = self.halved;
            self.met.retain(|(hash, ..)| hash & ((1 << halved) - 1) == 0);
        }
    }
}

/// Measures what a search has found on a sample, by an exact join.
///
/// Neighbours are looked for among all documents, or, where a set costs much to read, among one in
/// 2 to the power of `halvings`.
pub fn measure(
    sets: &ChunkSets,
    documents: u64,
    bound: Bound,
    seed: u64,
    found: Found<'_>,
    halvings: u32,
) -> Result<Recall, SimilarError> {
    let sample = Sample::draw(sets, seed, SAMPLE, SAMPLE_CHUNKS)?;
    if sample.docs.is_empty() {
        return Ok(Recall::default());
    }
    let neighbours = sample.neighbours(sets, documents, bound, seed, halvings)?;
    judge(&sample, &neighbours, seed, found)
}

fn hash_of(doc: DocId, seed: u64) -> u64 {
    scramble(scramble(seed ^ 0x5ec7_a11e).wrapping_add(u64::from(doc)))
}

impl Sample {
    /// The sampled documents of a pair, each with the other document.
    fn ends(&self, a: DocId, b: DocId) -> impl Iterator<Item = (usize, DocId)> {
        let end = |(doc, other)| Some((self.docs.binary_search(&doc).ok()?, other));
        [(a, b), (b, a)].into_iter().filter_map(end)
    }

    /// The documents with the smallest hashes.
    fn draw(sets: &ChunkSets, seed: u64, most: usize, most_chunks: usize) -> Result<Sample, SimilarError> {
        let mut heap = std::collections::BinaryHeap::<(u64, DocId, Vec<u64>)>::new();
        let mut chunks_held = 0;
        // Nobody whose hash is as large as that of one who was turned away can come in.
        let mut limit = u64::MAX;
        let mut reader = sets.reader();
        while let Some((doc, chunks)) = reader.next_of(|doc| hash_of(doc, seed) < limit)? {
            chunks_held += chunks.len();
            heap.push((hash_of(doc, seed), doc, chunks.to_vec()));
            while heap.len() > most || (chunks_held > most_chunks && heap.len() > 1) {
                if let Some((hash, _, chunks)) = heap.pop() {
                    chunks_held -= chunks.len();
                    limit = hash;
                }
            }
        }
        let mut drawn = heap.into_vec();
        drawn.sort_unstable_by_key(|(_, doc, _)| *doc);
        let (docs, sets) = drawn.into_iter().map(|(_, doc, chunks)| (doc, chunks)).unzip();
        Ok(Sample { docs, sets })
    }

    fn neighbours(
        &self,
        sets: &ChunkSets,
        documents: u64,
        bound: Bound,
        seed: u64,
        halvings: u32,
    ) -> Result<Vec<Neighbours>, SimilarError> {
        let mut index = Index::new(self, &Rarity::new(self, sets, documents, seed)?, bound);
        let unmet = || Neighbours { halved: halvings, met: Vec::new() };
        let mut neighbours: Vec<Neighbours> = self.docs.iter().map(|_| unmet()).collect();
        let mut met_with = vec![None; self.docs.len()];
        let mut seen = FingerprintSet::default();
        let mut reader = sets.reader();
        let wanted = |doc| hash_of(doc, !seed) & ((1 << halvings) - 1) == 0;
        while let Some((doc, chunks)) = reader.next_of(wanted)? {
            let hash = hash_of(doc, !seed);
            let mut in_table = false;
            for chunk in chunks {
                let Some(number) = index.list(*chunk) else { continue };
                let Index { lists, sampled, .. } = &mut index;
                let list = &mut lists[number];
                if hash & ((1 << list.halved) - 1) != 0 {
                    continue;
                }
                let mut least_halved = u32::MAX;
                for &at in &sampled[list.start as usize..list.end as usize] {
                    let at = at as usize;
                    least_halved = least_halved.min(neighbours[at].halved);
                    let set = &self.sets[at];
                    let (size_a, size_b) = (set.len() as u32, chunks.len() as u32);
                    if met_with[at] == Some(doc)
                        || self.docs[at] == doc
                        || !neighbours[at].looks_at(hash)
                        || !bound.sizes_fit(size_a, size_b)
                    {
                        continue;
                    }
                    met_with[at] = Some(doc);
                    if !in_table {
                        seen.hold(chunks);
                        in_table = true;
                    }
                    let shared = seen.count_shared(set);
                    neighbours[at].meet(hash, doc, bound.holds(shared, size_a, size_b));
                }
                list.halved = least_halved.min(32);
            }
        }
        Ok(neighbours)
    }
}

/// The rarest chunks of the sampled documents.
struct Index {
    /// One bit for a few of the hashes of chunks that are in it: most chunks are not, and are done
    /// with.
    filter: Vec<u64>,
    slots: Vec<u32>,
    lists: Vec<List>,
    sampled: Vec<u32>,
}

struct List {
    chunk: u64,
    start: u32,
    end: u32,
    /// The least halvings of those in the list.
    halved: u32,
}

fn mix(chunk: u64) -> u64 {
    chunk.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Index {
    fn new(sample: &Sample, rarity: &Rarity, bound: Bound) -> Index {
        let mut entries: Vec<(u64, u32)> = Vec::new();
        let mut ordered: Vec<(u32, u64, u64)> = Vec::new();
        for (at, set) in sample.sets.iter().enumerate() {
            ordered.clear();
            ordered.extend(set.iter().map(|chunk| (rarity.get(*chunk), scramble(*chunk), *chunk)));
            ordered.sort_unstable();
            let prefix = ordered.iter().take(bound.prefix_len(set.len() as u32) as usize);
            entries.extend(prefix.map(|(.., chunk)| (*chunk, at as u32)));
        }
        entries.sort_unstable();
        let mut lists: Vec<List> = Vec::new();
        for (place, (chunk, _)) in (0u32..).zip(&entries) {
            match lists.last_mut() {
                Some(list) if list.chunk == *chunk => list.end = place + 1,
                _ => lists.push(List { chunk: *chunk, start: place, end: place + 1, halved: 0 }),
            }
        }
        let mut filter = vec![0; (lists.len() / 8).next_power_of_two().max(64)];
        let mut slots = vec![0; (2 * lists.len()).next_power_of_two().max(16)];
        let (filter_mask, slot_mask) = (64 * filter.len() as u64 - 1, slots.len() - 1);
        for (number, list) in (1u32..).zip(&lists) {
            let hash = mix(list.chunk);
            let bit = hash >> 32 & filter_mask;
            filter[(bit / 64) as usize] |= 1 << (bit % 64);
            let mut slot = (hash >> 20) as usize & slot_mask;
            while slots[slot] != 0 {
                slot = (slot + 1) & slot_mask;
            }
            slots[slot] = number;
        }
        Index { filter, slots, lists, sampled: entries.into_iter().map(|(_, at)| at).collect() }
    }

    /// The number of the list of a chunk.
    #[inline]
    fn list(&self, chunk: u64) -> Option<usize> {
        let hash = mix(chunk);
        let bit = hash >> 32 & (64 * self.filter.len() as u64 - 1);
        if self.filter[(bit / 64) as usize] >> (bit % 64) & 1 == 0 {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut slot = (hash >> 20) as usize & mask;
        loop {
            match self.slots[slot] {
                0 => return None,
                number if self.lists[number as usize - 1].chunk == chunk => {
                    return Some(number as usize - 1);
                }
                _ => slot = (slot + 1) & mask,
            }
        }
    }
}

/// In how many of some documents each chunk of the sample stands.
struct Rarity {
    slots: Vec<(u64, u32)>,
}

impl Rarity {
    fn new(sample: &Sample, sets: &ChunkSets, documents: u64, seed: u64) -> Result<Rarity, SimilarError> {
        let chunks: usize = sample.sets.iter().map(Vec::len).sum();
        let mut rarity = Rarity { slots: vec![(0, 0); (2 * chunks).next_power_of_two().max(16)] };
        for chunk in sample.sets.iter().flatten() {
            let slot = rarity.slot(*chunk);
            rarity.slots[slot] = (*chunk, 1);
        }
        let mut reader = sets.reader();
        let step = RARITY_STEP.max(documents / RARITY_DOCUMENTS);
        let wanted = |doc| hash_of(doc, seed.rotate_left(17)).is_multiple_of(step);
        while let Some((_, chunks)) = reader.next_of(wanted)? {
            for chunk in chunks {
                let slot = rarity.slot(*chunk);
                if rarity.slots[slot].1 > 0 {
                    rarity.slots[slot].1 += 1;
                }
            }
        }
        Ok(rarity)
    }

    /// Where a chunk is, or the free slot where it would be.
    fn slot(&self, chunk: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = (mix(chunk) >> 24) as usize & mask;
        while self.slots[slot].1 > 0 && self.slots[slot].0 != chunk {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn get(&self, chunk: u64) -> u32 {
        self.slots[self.slot(chunk)].1
    }
}

/// A true pair: both documents, which sampled document it belongs to, how many it stands for, and
/// what became of it.
struct TruePair {
    pair: (DocId, DocId),
    at: u32,
    weight: f64,
    listed: bool,
    clustered: bool,
    leaked: bool,
}

fn judge(
    sample: &Sample,
    neighbours: &[Neighbours],
    seed: u64,
    found: Found<'_>,
) -> Result<Recall, SimilarError> {
    let mut true_pairs: Vec<TruePair> = Vec::new();
    for ((doc, of), at) in sample.docs.iter().zip(neighbours).zip(0u32..) {
        let weight = f64::from(of.halved).exp2();
        true_pairs.extend(of.met.iter().filter(|met| met.2).map(|(_, other, _)| TruePair {
            pair: (*doc.min(other), *doc.max(other)),
            at,
            weight,
            listed: false,
            clustered: false,
            leaked: false,
        }));
    }
    true_pairs.sort_unstable_by_key(|entry| (entry.pair, entry.at));
    let mut checked = (0u64, 0u64);
    for pair in (found.pairs)()? {
        let SharedPair { a, b, .. } = pair?;
        for (at, other) in sample.ends(a, b) {
            if !neighbours[at].looks_at(hash_of(other, !seed)) {
                continue;
            }
            checked.0 += 1;
            if let Ok(place) =
                true_pairs.binary_search_by_key(&((a, b), at as u32), |entry| (entry.pair, entry.at))
            {
                true_pairs[place].listed = true;
                checked.1 += 1;
            }
        }
    }
    if let Some(members) = found.members {
        follow(&mut true_pairs, members)?;
    }
    Ok(sum_up(sample.docs.len(), &true_pairs, checked, found.members.is_some()))
}

/// Notes which true pairs are in one cluster, and of which both documents are kept.
fn follow(true_pairs: &mut [TruePair], members: Open<'_, ClusterRow>) -> Result<(), SimilarError> {
    let docs = true_pairs.iter().flat_map(|entry| [entry.pair.0, entry.pair.1]);
    let mut fates: Vec<(DocId, Option<ClusterRow>)> = docs.map(|doc| (doc, None)).collect();
    fates.sort_unstable_by_key(|fate| fate.0);
    fates.dedup_by_key(|fate| fate.0);
    let place_of =
        |fates: &[(DocId, Option<ClusterRow>)], doc| fates.binary_search_by_key(&doc, |fate| fate.0);
    for member in members()? {
        let member = member?;
        if let Ok(place) = place_of(&fates, member.doc) {
            fates[place].1 = Some(member);
        }
    }
    let member = |doc| place_of(&fates, doc).ok().and_then(|place| fates[place].1);
    for entry in true_pairs {
        let (a, b) = (member(entry.pair.0), member(entry.pair.1));
        entry.clustered = a.is_some_and(|a| b.is_some_and(|b| a.cluster == b.cluster));
        let is_kept = |member: Option<ClusterRow>| member.is_none_or(|member| member.is_centre);
        entry.leaked = is_kept(a) && is_kept(b);
    }
    Ok(())
}

/// Pairs of one document are found or missed together, so documents are the observations: as many
/// as the squares of their weights say.
fn sum_up(sampled: usize, true_pairs: &[TruePair], checked: (u64, u64), has_clusters: bool) -> Recall {
    let mut per_document = vec![0f64; sampled];
    for entry in true_pairs {
        per_document[entry.at as usize] += entry.weight;
    }
    let all: f64 = per_document.iter().sum();
    let squares: f64 = per_document.iter().map(|weight| weight * weight).sum();
    let observations = if squares > 0.0 { all * all / squares } else { 0.0 };
    let share = |is_counted: fn(&TruePair) -> bool| {
        let part: f64 = true_pairs.iter().filter(|entry| is_counted(entry)).map(|entry| entry.weight).sum();
        Interval::of(if all > 0.0 { part / all } else { 0.0 }, observations)
    };
    let in_clusters = |is_counted| if has_clusters { share(is_counted) } else { None };
    Recall {
        sampled: sampled as u64,
        with_neighbours: per_document.iter().filter(|weight| **weight > 0.0).count() as u64,
        true_pairs: true_pairs.len() as u64,
        listed_pairs: true_pairs.iter().filter(|entry| entry.listed).count() as u64,
        listed: share(|entry| entry.listed),
        clustered: in_clusters(|entry| entry.clustered),
        leaked: in_clusters(|entry| entry.leaked),
        checked_pairs: checked.0,
        precision: Interval::of(
            if checked.0 > 0 { checked.1 as f64 / checked.0 as f64 } else { 0.0 },
            checked.0 as f64,
        ),
    }
}

#[cfg(test)]
mod tests;
