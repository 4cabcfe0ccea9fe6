//! Near-duplicates: documents that share at least a given percentage of their shingle paragraphs.

use std::ops::Range;

use onionskin_core::{DocId, Packed};

use super::shelf::Shelf;
use crate::components::Components;
use crate::overlap::rarity::{Rank, Rarity};
use crate::overlap::rounds::{Round, in_parallel};
use crate::{Bound, ChunkSets, Resources, SharedPair, SimilarError};

/// What [`near_duplicates`] found and what it took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NearStats {
    /// Documents that have shingles.
    pub documents: u64,
    /// For every percentage that was asked for, in that order.
    pub levels: Vec<Level>,
    /// Times that two documents were seen to have a rare shingle in common.
    pub pairs_enumerated: u64,
    /// Pairs whose shingles were compared.
    pub candidates: u64,
    /// Steps of the algorithm, m.
    pub steps: u64,
    /// The most bytes that table and counters held at once.
    pub peak_bytes: u64,
}

/// What is similar at one percentage (a column of the paper's table 3).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Level {
    /// The least share of identical shingle paragraphs, of the document that has more.
    pub share: f64,
    /// Pairs.
    pub pairs: u64,
    /// Documents in pairs.
    pub clustered: u64,
    /// Clusters, when whatever is connected by pairs belongs together.
    pub clusters: u64,
}

impl Level {
    /// Documents in clusters but one of each, the original. When copies have been folded away
    /// before, each of them is one more.
    pub fn near_duplicates(&self) -> u64 {
        self.clustered - self.clusters
    }
}

/// Hands over all pairs of documents of which the lowest of the percentages is identical
/// (definition 5), duplicates among them, in ascending order of the larger document within each
/// step. `shared`, `size_a` and `size_b` count repeats.
///
/// `shares` are fractions above 0 and at most 1, in any order: `[0.9, 0.7, 0.5]` is the paper's.
/// Since all pairs of a cluster of equal documents are handed over,
/// [`duplicates`](super::duplicates) should be folded away before.
pub fn near_duplicates(
    sets: &ChunkSets,
    documents: u64,
    shares: &[f64],
    resources: &Resources,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<NearStats, SimilarError> {
    let bound = Bound::Share(lowest_of(shares)?);
    let rarity =
        Rarity::of(sets, documents, resources.memory.share(1, 8).len(), resources, |_| true, |_| true)?;
    let search = Search { multisets: sets.clone().with_repeats(), rarity, bound, resources };
    let mut levels = Levels::new(shares, documents, &resources.share(1, 8))?;
    let mut stats = NearStats::default();
    let mut from = Some(DocId::MIN);
    while let Some(first) = from {
        from = search.step(first, &mut stats, &mut |pair| {
            levels.add(pair)?;
            emit(pair)
        })?;
    }
    stats.levels = levels.finish()?;
    Ok(stats)
}

fn lowest_of(shares: &[f64]) -> Result<f64, SimilarError> {
    if let Some(share) = shares.iter().find(|share| !(**share > 0.0 && **share <= 1.0)) {
        return Err(SimilarError::Parameters(format!(
            "{} % of the shingle paragraphs is no percentage above 0 and at most 100",
            share * 100.0
        )));
    }
    let lowest = shares.iter().copied().min_by(f64::total_cmp);
    lowest.ok_or_else(|| SimilarError::Parameters("near-duplicates need a percentage, as in 50".into()))
}

/// Counts what is similar at each percentage.
struct Levels(Vec<(Level, Components)>);

impl Levels {
    fn new(shares: &[f64], documents: u64, resources: &Resources) -> Result<Levels, SimilarError> {
        let resources = resources.share(1, shares.len() as u64);
        let level = |share: &f64| {
            Ok((Level { share: *share, ..Level::default() }, Components::new(documents, &resources)?))
        };
        Ok(Levels(shares.iter().map(level).collect::<Result<_, SimilarError>>()?))
    }

    fn add(&mut self, pair: SharedPair) -> Result<(), SimilarError> {
        for (level, components) in &mut self.0 {
            if Bound::Share(level.share).holds(pair.shared, pair.size_a, pair.size_b) {
                level.pairs += 1;
                components.unite(pair.a, pair.b)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<Level>, SimilarError> {
        let finish = |(mut level, components): (Level, Components)| {
            components.finish(|doc, root| {
                level.clustered += 1;
                level.clusters += u64::from(doc == root);
                Ok(())
            })?;
            Ok(level)
        };
        self.0.into_iter().map(finish).collect()
    }
}

/// What is the same in all steps.
struct Search<'a> {
    multisets: ChunkSets,
    rarity: Rarity,
    bound: Bound,
    resources: &'a Resources,
}

impl Search<'_> {
    /// Brings documents from `from` on into a table until it is full, and looks up all documents
    /// from `from` on. Returns where the next step begins.
    fn step(
        &self,
        from: DocId,
        stats: &mut NearStats,
        emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
    ) -> Result<Option<DocId>, SimilarError> {
        let mut shelf = Shelf::new(self.resources.memory.share(5, 16).len());
        let mut until = None;
        let limit = Round::limit(self.resources.memory);
        let mut round = Round::default();
        let mut reader = self.multisets.reader();
        while round.fill(&mut reader, limit, |doc| doc >= from)? {
            stats.documents += if stats.steps == 0 { round.documents.len() as u64 } else { 0 };
            let prepared = self.prepare(&round);
            for part in &prepared {
                for (doc, shingles, prefix) in part.documents() {
                    if until.is_none() && shelf.is_full() {
                        until = Some(doc);
                    } else if until.is_none() {
                        shelf.put(Some(doc), shingles, prefix);
                    }
                }
            }
            for part in &prepared {
                for found in self.look_up(&shelf, part) {
                    stats.pairs_enumerated += found.pairs_enumerated;
                    stats.candidates += found.candidates;
                    found.pairs.into_iter().try_for_each(&mut *emit)?;
                }
            }
        }
        stats.steps += 1;
        stats.peak_bytes = stats.peak_bytes.max(self.rarity.bytes() + shelf.bytes() as u64);
        Ok(until)
    }

    fn prepare(&self, round: &Round) -> Vec<Prepared> {
        in_parallel(&round.documents, self.resources.threads, |documents| {
            let mut prepared = Prepared::default();
            for (doc, range) in documents {
                prepared.add(*doc, &round.chunks[range.clone()], &self.rarity, self.bound);
            }
            prepared
        })
    }

    fn look_up(&self, shelf: &Shelf, part: &Prepared) -> Vec<Found> {
        in_parallel(&part.documents, self.resources.threads, |documents| {
            let mut found = Found::default();
            for place in documents {
                let (doc, shingles, prefix) = part.document(place);
                found.look_up(shelf, doc, shingles, prefix, self.bound);
            }
            found
        })
    }
}

/// A document, where its shingles lie, and where its prefix lies.
type PreparedPlace = (DocId, Range<usize>, Range<usize>);

/// Documents ready for the table.
#[derive(Default)]
struct Prepared {
    /// Sorted, end to end.
    shingles: Vec<u64>,
    /// The shingles where similar documents must be met, and for each how many do not come before
    /// it.
    prefixes: Vec<(u64, u32)>,
    /// Only those that may meet somebody.
    documents: Vec<PreparedPlace>,
    scratch: Vec<(Rank, u64, u32)>,
}

impl Prepared {
    fn document(&self, (doc, shingles, prefix): &PreparedPlace) -> (DocId, &[u64], &[(u64, u32)]) {
        (*doc, &self.shingles[shingles.clone()], &self.prefixes[prefix.clone()])
    }

    fn documents(&self) -> impl Iterator<Item = (DocId, &[u64], &[(u64, u32)])> {
        self.documents.iter().map(|place| self.document(place))
    }

    fn add(&mut self, doc: DocId, shingles: &[u64], rarity: &Rarity, bound: Bound) {
        let size = u32::try_from(shingles.len()).unwrap_or(u32::MAX);
        let prefix = bound.prefix_len(size);
        let start = self.shingles.len();
        self.shingles.extend_from_slice(shingles);
        self.shingles[start..].sort_unstable();
        self.scratch.clear();
        // A multiset is a set of occurrences: the first d, the second d. In the order they stand
        // together, so that the place of a shingle is that of its first occurrence. Those of this
        // document alone come first and are not looked for.
        let mut before = 0;
        for equal in self.shingles[start..].chunk_by(|a, b| a == b) {
            match rarity.rank(equal[0]) {
                Some(rank) => self.scratch.push((rank, equal[0], equal.len() as u32)),
                None => before += equal.len() as u32,
            }
        }
        self.scratch.sort_unstable();
        let first = self.prefixes.len();
        for (_, shingle, occurrences) in &self.scratch {
            if before >= prefix {
                break;
            }
            self.prefixes.push((*shingle, size - before));
            before += occurrences;
        }
        if self.prefixes.len() == first {
            self.shingles.truncate(start);
        } else {
            self.documents.push((doc, start..self.shingles.len(), first..self.prefixes.len()));
        }
    }
}

/// What a thread has found.
#[derive(Default)]
struct Found {
    pairs: Vec<SharedPair>,
    pairs_enumerated: u64,
    candidates: u64,
    slots: Vec<u32>,
}

impl Found {
    fn look_up(&mut self, shelf: &Shelf, doc: DocId, shingles: &[u64], prefix: &[(u64, u32)], bound: Bound) {
        let size_b = shingles.len() as u32;
        self.slots.clear();
        for (shingle, left) in prefix {
            for posting in shelf.having(*shingle) {
                let other = &shelf.documents[posting.slot as usize];
                self.pairs_enumerated += 1;
                // The same filters as in the join: each pair is found once, from its larger
                // document; and if this is the first shingle that both have, no more can be shared
                // than follows.
                if other.doc < Packed::some(doc)
                    && bound.sizes_fit(other.size, size_b)
                    && u64::from(posting.left.min(*left)) >= bound.least_shared(other.size, size_b)
                {
                    self.slots.push(posting.slot);
                }
            }
        }
        self.slots.sort_unstable();
        self.slots.dedup();
        self.candidates += self.slots.len() as u64;
        for slot in &self.slots {
            let other = &shelf.documents[*slot as usize];
            let (Some(a), size_a) = (other.doc.get(), other.size) else { continue };
            let shared = shared_of_sorted(shelf.shingles_of(other), shingles);
            if bound.holds(shared, size_a, size_b) {
                self.pairs.push(SharedPair { a, b: doc, shared, size_a, size_b });
            }
        }
    }
}

/// The size of the intersection of two sorted multisets.
fn shared_of_sorted(a: &[u64], b: &[u64]) -> u32 {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        shared += u32::from(a[i] == b[j]);
        let (step_a, step_b) = (a[i] <= b[j], b[j] <= a[i]);
        i += usize::from(step_a);
        j += usize::from(step_b);
    }
    shared
}
