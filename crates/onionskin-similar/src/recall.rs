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

use onionskin_core::{DocId, FingerprintSet, scramble};
use serde::{Deserialize, Serialize};

use crate::cluster::Open;
use crate::components::Components;
use crate::{Bound, ChunkSets, Resources, SharedPair, SimilarError};

/// Documents in the sample, at most.
pub const SAMPLE: usize = 10_000;
/// Chunks of the sample, at most; with long documents the sample is smaller.
const SAMPLE_CHUNKS: usize = 1 << 20;
/// Meetings of a sampled document that are looked at before half of them are passed over.
pub const MOST_NEIGHBOURS: usize = 64;
/// About so many documents are used to see which chunks are rare, one in sixteen at most.
const RARITY_DOCUMENTS: u64 = 50_000;
const RARITY_STEP: u64 = 16;

/// A share with a 95 % confidence interval.
///
/// In JSON a list: value, lower end, upper end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 3]", into = "[f64; 3]")]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl From<[f64; 3]> for Interval {
    fn from([value, low, high]: [f64; 3]) -> Interval {
        Interval { value, low, high }
    }
}

impl From<Interval> for [f64; 3] {
    fn from(interval: Interval) -> [f64; 3] {
        [interval.value, interval.low, interval.high]
    }
}

impl Interval {
    /// The interval of Clopper and Pearson for a share seen in `n` observations; `None` when there
    /// were none. It is never too narrow, also where nearly all or none are seen; `n` need not be
    /// whole.
    pub fn of(share: f64, n: f64) -> Option<Interval> {
        const TAIL: f64 = 0.025;
        if n <= 0.0 || !(0.0..=1.0).contains(&share) {
            return None;
        }
        let (seen, unseen) = (share * n, (1.0 - share) * n);
        let low = if seen <= 0.0 { 0.0 } else { beta_quantile(TAIL, seen, unseen + 1.0) };
        let high = if unseen <= 0.0 { 1.0 } else { beta_quantile(1.0 - TAIL, seen + 1.0, unseen) };
        Some(Interval { value: share, low: low.min(share), high: high.max(share) })
    }
}

/// Where the beta distribution has this much below it.
fn beta_quantile(below: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if beta_below(middle, a, b) < below { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The regularised incomplete beta function, by its continued fraction (Lentz's method).
fn beta_below(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_below(1.0 - x, b, a);
    }
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for i in 1..10_000 {
        let m = f64::from(i);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away(1.0 + numerator * d);
            c = away(1.0 + numerator / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front * fraction
}

/// The logarithm of the gamma function, by Stirling's series.
fn ln_gamma(x: f64) -> f64 {
    // Far enough out for the series to have all digits; the recurrence leads there.
    let (mut x, mut shift) = (x, 0.0);
    while x < 16.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series =
        (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

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
    /// The share of true pairs that are listed or connected through listed ones.
    pub connected: Option<Interval>,
    /// Listed pairs of sampled documents that were looked at again.
    pub checked_pairs: u64,
    /// The share of them that are true.
    pub precision: Option<Interval>,
}

/// The sets of the sampled documents, in ascending order of document.
struct Sample {
    docs: Vec<DocId>,
    sets: Vec<Vec<u64>>,
}

/// What was met of a sampled document.
#[derive(Default)]
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
}

/// Measures the pairs of a search on a sample. `pairs` are in ascending order.
pub fn measure(
    sets: &ChunkSets,
    documents: u64,
    bound: Bound,
    seed: u64,
    pairs: Open<'_, SharedPair>,
    resources: &Resources,
) -> Result<Recall, SimilarError> {
    let sample = Sample::draw(sets, seed, SAMPLE, SAMPLE_CHUNKS)?;
    if sample.docs.is_empty() {
        return Ok(Recall::default());
    }
    let neighbours = sample.neighbours(sets, documents, bound, seed)?;
    judge(&sample, &neighbours, documents, seed, pairs, resources)
}

fn hash_of(doc: DocId, seed: u64) -> u64 {
    scramble(scramble(seed ^ 0x5ec7_a11e).wrapping_add(u64::from(doc)))
}

impl Sample {
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
    ) -> Result<Vec<Neighbours>, SimilarError> {
        let mut index = Index::new(self, &Rarity::new(self, sets, documents, seed)?, bound);
        let mut neighbours: Vec<Neighbours> = self.docs.iter().map(|_| Neighbours::default()).collect();
        let mut met_with = vec![None; self.docs.len()];
        let mut seen = FingerprintSet::default();
        let mut reader = sets.reader();
        while let Some((doc, chunks)) = reader.next()? {
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
                    let of = &mut neighbours[at];
                    of.met.push((hash, doc, bound.holds(shared, size_a, size_b)));
                    while of.met.len() > MOST_NEIGHBOURS && of.halved < 32 {
                        of.halved += 1;
                        let halved = of.halved;
                        of.met.retain(|(hash, ..)| hash & ((1 << halved) - 1) == 0);
                    }
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

/// A true pair: both documents, which sampled document it belongs to, how many it stands for,
/// whether it is listed, whether connected.
struct TruePair {
    pair: (DocId, DocId),
    at: u32,
    weight: f64,
    listed: bool,
    connected: bool,
}

fn judge(
    sample: &Sample,
    neighbours: &[Neighbours],
    documents: u64,
    seed: u64,
    pairs: Open<'_, SharedPair>,
    resources: &Resources,
) -> Result<Recall, SimilarError> {
    let mut true_pairs: Vec<TruePair> = Vec::new();
    for ((doc, of), at) in sample.docs.iter().zip(neighbours).zip(0u32..) {
        let weight = f64::from(of.halved).exp2();
        true_pairs.extend(of.met.iter().filter(|met| met.2).map(|(_, other, _)| TruePair {
            pair: (*doc.min(other), *doc.max(other)),
            at,
            weight,
            listed: false,
            connected: false,
        }));
    }
    true_pairs.sort_unstable_by_key(|entry| (entry.pair, entry.at));
    let sampled = |doc: DocId| sample.docs.binary_search(&doc).ok();
    let mut checked = (0u64, 0u64);
    let mut components = Components::new(documents, resources)?;
    for pair in pairs()? {
        let SharedPair { a, b, .. } = pair?;
        components.unite(a, b)?;
        for (doc, other) in [(a, b), (b, a)] {
            let Some(at) = sampled(doc) else { continue };
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
    let mut labels: Vec<(DocId, DocId)> =
        true_pairs.iter().flat_map(|entry| [entry.pair.0, entry.pair.1]).map(|doc| (doc, doc)).collect();
    labels.sort_unstable();
    labels.dedup();
    components.finish(|doc, root| {
        if let Ok(place) = labels.binary_search_by_key(&doc, |label| label.0) {
            labels[place].1 = root;
        }
        Ok(())
    })?;
    let label =
        |doc: DocId| labels.binary_search_by_key(&doc, |label| label.0).map_or(doc, |place| labels[place].1);
    for entry in &mut true_pairs {
        entry.connected = label(entry.pair.0) == label(entry.pair.1);
    }
    Ok(sum_up(sample.docs.len(), &true_pairs, checked))
}

/// Pairs of one document are found or missed together, so documents are the observations: as many
/// as the squares of their weights say.
fn sum_up(sampled: usize, true_pairs: &[TruePair], checked: (u64, u64)) -> Recall {
    let mut per_document = vec![0f64; sampled];
    let (mut all, mut listed, mut connected) = (0.0, 0.0, 0.0);
    for entry in true_pairs {
        per_document[entry.at as usize] += entry.weight;
        all += entry.weight;
        listed += if entry.listed { entry.weight } else { 0.0 };
        connected += if entry.connected { entry.weight } else { 0.0 };
    }
    let squares: f64 = per_document.iter().map(|weight| weight * weight).sum();
    let observations = if squares > 0.0 { all * all / squares } else { 0.0 };
    let interval = |part: f64| Interval::of(if all > 0.0 { part / all } else { 0.0 }, observations);
    Recall {
        sampled: sampled as u64,
        with_neighbours: per_document.iter().filter(|weight| **weight > 0.0).count() as u64,
        true_pairs: true_pairs.len() as u64,
        listed_pairs: true_pairs.iter().filter(|entry| entry.listed).count() as u64,
        listed: interval(listed),
        connected: interval(connected),
        checked_pairs: checked.0,
        precision: Interval::of(
            if checked.0 > 0 { checked.1 as f64 / checked.0 as f64 } else { 0.0 },
            checked.0 as f64,
        ),
    }
}

#[cfg(test)]
mod tests;
