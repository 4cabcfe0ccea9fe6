//! Duplicates and near-duplicates by shingle paragraphs (Pereira, Baeza-Yates and Ziviani 2006).
//!
//! A shingle paragraph is three sentences; a document has them one after the other, without overlap, and may have one more
//! than once. Documents with the same shingle paragraphs are duplicates (definition 2), those with a given percentage of
//! identical ones are near-duplicates (definition 5).
//!
//! The naive way compares all documents. The paper divides the collection into m parts, brings the shingles of one part into a
//! hash table in memory, and looks up all documents that have not been in a table before; m steps do it all. So does this
//! module, and here the budget decides m: a part is what fits.
//!
//! Three things differ from the paper:
//!
//! - It counts the shingles of one document that are found in the other, so that "e d e d" is taken for a duplicate of "e d f g", as
//!   the paper says itself. Here documents are multisets: what is shared is the lower number of occurrences.
//! - A shingle that stands everywhere, a menu, would bring all documents together. Documents are written down with their rarest
//!   shingles first, and similar ones must meet among the first (see [`overlap`](crate::overlap)): only those go into
//!   the table and are looked up.
//! - One run at the lowest percentage gives all: every pair comes with its counts.

use std::collections::HashMap;
use std::ops::Range;

use onionskin_core::scramble;

use crate::overlap::rarity::{Rank, Rarity};
use crate::overlap::rounds::{Round, in_parallel};
use crate::overlap::table::Table;
use crate::{Bits, Bound, ChunkSets, Resources, SharedPair, SimilarError};

/// What [`duplicates`] found (the columns of the paper's table 2) and what it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DuplicateStats {
    /// Documents that have shingles.
    pub documents: u64,
    /// Clusters, which is also the number of originals (definition 3).
    pub clusters: u64,
    /// Clustered documents but the originals (definition 4).
    pub duplicates: u64,
    /// Steps of the algorithm, m.
    pub steps: u64,
    /// The most bytes that table and counters held at once.
    pub peak_bytes: u64,
}

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
    /// Documents in clusters but one of each, the original. When copies have been folded away before, each of them is one more.
    pub fn near_duplicates(&self) -> u64 {
        self.clustered - self.clusters
    }
}

/// Hands over every duplicate with its original, the smallest document that has the same shingles as often (definition 2).
///
/// Not all pairs of a cluster: the paper has some of 20,000 documents.
pub fn duplicates(
    sets: &ChunkSets,
    documents: u64,
    resources: &Resources,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<DuplicateStats, SimilarError> {
    let sets = sets.clone().with_repeats();
    let (hashes, documents_with_shingles) = count_hashes(&sets, documents, resources)?;
    let mut stats = DuplicateStats { documents: documents_with_shingles, ..DuplicateStats::default() };
    let mut is_duplicate = Bits::new(documents);
    let mut is_original = Bits::new(documents);
    let mut from = 0;
    let mut sorted = Vec::new();
    loop {
        let mut shelf = Shelf::new(resources.memory.share(3, 8).len());
        let mut until = None;
        let mut reader = sets.reader();
        while let Some((doc, shingles)) = reader.next_of(|doc| doc >= from && !is_duplicate.get(doc))? {
            let hash = hash_of(shingles);
            if hashes.get(hash) < 2 {
                continue;
            }
            sort_into(&mut sorted, shingles);
            if let Some(slot) = shelf.equal_to(hash, &sorted) {
                let (a, size) = (shelf.documents[slot as usize].doc, sorted.len() as u32);
                is_duplicate.set(doc);
                is_original.set(a);
                emit(SharedPair { a, b: doc, shared: size, size_a: size, size_b: size })?;
            } else if until.is_none() {
                if shelf.is_full() {
                    until = Some(doc);
                } else {
                    shelf.put(doc, &sorted, &[(hash, 0)]);
                }
            }
        }
        stats.steps += 1;
        stats.peak_bytes = stats.peak_bytes.max(hashes.bytes() + shelf.bytes() as u64);
        match until {
            Some(doc) => from = doc,
            None => break,
        }
    }
    stats.clusters = is_original.count();
    stats.duplicates = is_duplicate.count();
    Ok(stats)
}

/// The same for the first steps only: hands over the duplicates of those clusters that have a member which is `drawn`, each cluster whole.
///
/// In the paper a subcollection is what is brought into the table in one step. Here the table is filled with what is drawn, in as many steps as the budget needs, and
/// all documents are looked up. The original is still the smallest document of the cluster, whether that was drawn or not.
pub fn duplicates_of_drawn(
    sets: &ChunkSets,
    documents: u64,
    drawn: &dyn Fn(u32) -> bool,
    resources: &Resources,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<DuplicateStats, SimilarError> {
    let sets = sets.clone().with_repeats();
    let (hashes, documents_with_shingles) = count_hashes(&sets, documents, resources)?;
    let mut stats = DuplicateStats { documents: documents_with_shingles, ..DuplicateStats::default() };
    // Documents whose cluster has been looked up whole.
    let mut is_settled = Bits::new(documents);
    let mut is_original = Bits::new(documents);
    let mut from = 0;
    let mut sorted = Vec::new();
    loop {
        let mut shelf = Shelf::new(resources.memory.share(3, 8).len());
        let mut until = None;
        let mut reader = sets.reader();
        while let Some((doc, shingles)) =
            reader.next_of(|doc| doc >= from && drawn(doc) && !is_settled.get(doc))?
        {
            let hash = hash_of(shingles);
            if hashes.get(hash) < 2 {
                continue;
            }
            sort_into(&mut sorted, shingles);
            if shelf.equal_to(hash, &sorted).is_some() {
                continue;
            }
            if shelf.is_full() {
                until = Some(doc);
                break;
            }
            // Whom it stands for is not known yet: members that were not drawn may be smaller.
            shelf.put(NOBODY, &sorted, &[(hash, 0)]);
        }
        let mut reader = sets.reader();
        while let Some((doc, shingles)) = reader.next_of(|doc| !is_settled.get(doc))? {
            let hash = hash_of(shingles);
            if hashes.get(hash) < 2 {
                continue;
            }
            sort_into(&mut sorted, shingles);
            let Some(slot) = shelf.equal_to(hash, &sorted) else { continue };
            is_settled.set(doc);
            let original = &mut shelf.documents[slot as usize].doc;
            if *original == NOBODY {
                *original = doc;
            } else {
                let (a, size) = (*original, sorted.len() as u32);
                is_original.set(a);
                stats.duplicates += 1;
                emit(SharedPair { a, b: doc, shared: size, size_a: size, size_b: size })?;
            }
        }
        stats.steps += 1;
        stats.peak_bytes = stats.peak_bytes.max(hashes.bytes() + shelf.bytes() as u64);
        match until {
            Some(doc) => from = doc,
            None => break,
        }
    }
    stats.clusters = is_original.count();
    Ok(stats)
}

/// How many documents have each hash, and how many there are. A table of all documents would be larger than it has to be: those that have
/// a hash to themselves have no equal.
fn count_hashes(
    sets: &ChunkSets,
    documents: u64,
    resources: &Resources,
) -> Result<(Rarity, u64), SimilarError> {
    let mut hashes = Rarity::new(documents, resources.memory.share(1, 8).len());
    let mut with_shingles = 0;
    let mut reader = sets.reader();
    while let Some((doc, shingles)) = reader.next()? {
        hashes.add_one(doc, hash_of(shingles));
        with_shingles += 1;
    }
    Ok((hashes, with_shingles))
}

/// No document: atlases have fewer.
const NOBODY: u32 = u32::MAX;

fn sort_into(sorted: &mut Vec<u64>, shingles: &[u64]) {
    sorted.clear();
    sorted.extend_from_slice(shingles);
    sorted.sort_unstable();
}

/// A hash of shingles that does not depend on their order. Two documents with the same one are compared.
fn hash_of(shingles: &[u64]) -> u64 {
    let sum = shingles.iter().fold(shingles.len() as u64, |sum, shingle| {
        sum.wrapping_add(scramble(shingle.wrapping_add(0x9e37_79b9_7f4a_7c15)))
    });
    scramble(sum)
}

/// Hands over all pairs of documents of which the lowest of the percentages is identical (definition 5), duplicates among them,
/// in ascending order of the larger document within each step. `shared`, `size_a` and `size_b` count repeats.
///
/// `shares` are fractions above 0 and at most 1, in any order: `[0.9, 0.7, 0.5]` is the paper's. Since all pairs of a cluster of
/// equal documents are handed over, [`duplicates`] should be folded away before.
pub fn near_duplicates(
    sets: &ChunkSets,
    documents: u64,
    shares: &[f64],
    resources: &Resources,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<NearStats, SimilarError> {
    if let Some(share) = shares.iter().find(|share| !(**share > 0.0 && **share <= 1.0)) {
        return Err(SimilarError::Parameters(format!(
            "{} % of the shingle paragraphs is no percentage above 0 and at most 100",
            share * 100.0
        )));
    }
    let Some(lowest) = shares.iter().copied().min_by(f64::total_cmp) else {
        return Err(SimilarError::Parameters("near-duplicates need a percentage, as in 50".into()));
    };
    let bound = Bound::Share(lowest);
    let rarity =
        Rarity::of(sets, documents, resources.memory.share(1, 8).len(), resources, |_| true, |_| true)?;
    let multisets = sets.clone().with_repeats();
    let mut stats = NearStats::default();
    let mut forests: Vec<(Level, Forest)> =
        shares.iter().map(|share| (Level { share: *share, ..Level::default() }, Forest::default())).collect();
    let limit = Round::limit(resources.memory);
    let mut round = Round::default();
    let mut from = 0;
    loop {
        let mut shelf = Shelf::new(resources.memory.share(3, 8).len());
        let mut until = None;
        let mut reader = multisets.reader();
        while round.fill(&mut reader, limit, |doc| doc >= from)? {
            stats.documents += if stats.steps == 0 { round.documents.len() as u64 } else { 0 };
            let prepared = in_parallel(&round.documents, resources.threads, |documents| {
                let mut prepared = Prepared::default();
                for (doc, range) in documents {
                    prepared.add(*doc, &round.chunks[range.clone()], &rarity, bound);
                }
                prepared
            });
            for part in &prepared {
                for (doc, shingles, prefix) in &part.documents {
                    if until.is_none() && shelf.is_full() {
                        until = Some(*doc);
                    } else if until.is_none() {
                        shelf.put(*doc, &part.shingles[shingles.clone()], &part.prefixes[prefix.clone()]);
                    }
                }
            }
            for part in &prepared {
                let found = in_parallel(&part.documents, resources.threads, |documents| {
                    let mut found = Found::default();
                    for (doc, shingles, prefix) in documents {
                        let shingles = &part.shingles[shingles.clone()];
                        found.look_up(&shelf, *doc, shingles, &part.prefixes[prefix.clone()], bound);
                    }
                    found
                });
                for found in found {
                    stats.pairs_enumerated += found.pairs_enumerated;
                    stats.candidates += found.candidates;
                    for pair in found.pairs {
                        for (level, forest) in &mut forests {
                            if Bound::Share(level.share).holds(pair.shared, pair.size_a, pair.size_b) {
                                level.pairs += 1;
                                forest.join(pair.a, pair.b);
                            }
                        }
                        emit(pair)?;
                    }
                }
            }
        }
        stats.steps += 1;
        stats.peak_bytes = stats.peak_bytes.max(rarity.bytes() + shelf.bytes() as u64);
        match until {
            Some(doc) => from = doc,
            None => break,
        }
    }
    stats.levels = forests
        .into_iter()
        .map(|(level, forest)| {
            let clustered = forest.parents.len() as u64;
            Level { clustered, clusters: clustered - forest.joined, ..level }
        })
        .collect();
    Ok(stats)
}

/// Documents ready for the table.
#[derive(Default)]
struct Prepared {
    /// Sorted, end to end.
    shingles: Vec<u64>,
    /// The shingles where similar documents must be met, and for each how many do not come before it.
    prefixes: Vec<(u64, u32)>,
    /// Only those that may meet somebody.
    documents: Vec<(u32, Range<usize>, Range<usize>)>,
    scratch: Vec<(Rank, u64, u32)>,
}

impl Prepared {
    fn add(&mut self, doc: u32, shingles: &[u64], rarity: &Rarity, bound: Bound) {
        let size = u32::try_from(shingles.len()).unwrap_or(u32::MAX);
        let prefix = bound.prefix_len(size);
        let start = self.shingles.len();
        self.shingles.extend_from_slice(shingles);
        self.shingles[start..].sort_unstable();
        self.scratch.clear();
        // A multiset is a set of occurrences: the first d, the second d. In the order they stand together, so that the place
        // of a shingle is that of its first occurrence. Those of this document alone come first and are not looked for.
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

/// A document on the shelf.
#[derive(Debug)]
struct Shelved {
    doc: u32,
    size: u32,
    start: usize,
}

/// One document that has a shingle in front.
#[derive(Clone, Copy, Debug)]
struct Posting {
    /// Which document of the shelf.
    slot: u32,
    /// How many of its shingles do not come before this one.
    left: u32,
    /// The next posting of the shingle, counted from 1; 0 at the end.
    next: u32,
}

/// One part of the collection in memory: the paper's hash table of shingles, and the documents themselves.
#[derive(Debug)]
struct Shelf {
    /// From a shingle to its last posting, counted from 1.
    heads: Table,
    postings: Vec<Posting>,
    documents: Vec<Shelved>,
    /// Sorted shingles of each document, end to end.
    shingles: Vec<u64>,
    /// Bytes in use that are enough. Vectors that double may hold twice as much.
    budget: usize,
}

impl Shelf {
    fn new(budget: usize) -> Shelf {
        let (postings, documents, shingles) = (Vec::new(), Vec::new(), Vec::new());
        Shelf { heads: Table::of_bytes(0), postings, documents, shingles, budget }
    }

    fn bytes(&self) -> usize {
        self.heads.bytes()
            + self.postings.capacity() * size_of::<Posting>()
            + self.documents.capacity() * size_of::<Shelved>()
            + self.shingles.capacity() * size_of::<u64>()
    }

    /// Whether the next document has to wait for another step. Never for an empty shelf, else nothing would ever end.
    fn is_full(&self) -> bool {
        let used = self.heads.bytes()
            + self.postings.len() * size_of::<Posting>()
            + self.documents.len() * size_of::<Shelved>()
            + self.shingles.len() * size_of::<u64>();
        !self.documents.is_empty() && (used >= self.budget || self.postings.len() >= u32::MAX as usize / 2)
    }

    fn put(&mut self, doc: u32, shingles: &[u64], prefix: &[(u64, u32)]) {
        let slot = self.documents.len() as u32;
        self.documents.push(Shelved { doc, size: shingles.len() as u32, start: self.shingles.len() });
        self.shingles.extend_from_slice(shingles);
        for (shingle, left) in prefix {
            if self.heads.len() == self.heads.capacity() {
                self.heads.grow();
            }
            let next = self.heads.insert(*shingle, self.postings.len() as u32 + 1);
            self.postings.push(Posting { slot, left: *left, next });
        }
    }

    /// Documents that have a shingle in front, latest first.
    fn having(&self, shingle: u64) -> impl Iterator<Item = &Posting> {
        let at = |number: u32| (number > 0).then(|| &self.postings[number as usize - 1]);
        std::iter::successors(at(self.heads.get(shingle)), move |posting| at(posting.next))
    }

    /// The slot of the document that has the very same shingles.
    fn equal_to(&self, hash: u64, sorted: &[u64]) -> Option<u32> {
        let slots = self.having(hash).map(|posting| posting.slot);
        slots.into_iter().find(|slot| self.shingles_of(&self.documents[*slot as usize]) == sorted)
    }

    fn shingles_of(&self, document: &Shelved) -> &[u64] {
        &self.shingles[document.start..][..document.size as usize]
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
    fn look_up(&mut self, shelf: &Shelf, doc: u32, shingles: &[u64], prefix: &[(u64, u32)], bound: Bound) {
        let size_b = shingles.len() as u32;
        self.slots.clear();
        for (shingle, left) in prefix {
            for posting in shelf.having(*shingle) {
                let other = &shelf.documents[posting.slot as usize];
                self.pairs_enumerated += 1;
                // The same filters as in the join: each pair is found once, from its larger document; and if this is the first
                // shingle that both have, no more can be shared than follows.
                if other.doc < doc
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
            let (a, size_a) = (other.doc, other.size);
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

/// Which clustered documents belong together. Documents without a pair take no room.
#[derive(Default)]
struct Forest {
    parents: HashMap<u32, u32>,
    /// Times that two clusters became one.
    joined: u64,
}

impl Forest {
    fn root(&mut self, doc: u32) -> u32 {
        let mut at = doc;
        loop {
            let parent = *self.parents.entry(at).or_insert(at);
            if parent == at {
                return at;
            }
            let grandparent = self.parents.get(&parent).copied().unwrap_or(parent);
            self.parents.insert(at, grandparent);
            at = grandparent;
        }
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        if a != b {
            self.parents.insert(a.max(b), a.min(b));
            self.joined += 1;
        }
    }
}

#[cfg(test)]
mod tests;
