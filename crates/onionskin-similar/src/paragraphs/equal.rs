//! Duplicates: documents with the same shingle paragraphs.

use onionskin_core::{DocId, scramble};

use super::shelf::{Shelf, Shelved};
use crate::overlap::rarity::Rarity;
use crate::{Bits, ChunkSets, Resources, SharedPair, SimilarError};

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

/// Hands over every duplicate with its original, the smallest document that has the same shingles
/// as often (definition 2).
///
/// Not all pairs of a cluster: the paper has some of 20,000 documents.
pub fn duplicates(
    sets: &ChunkSets,
    documents: u64,
    resources: &Resources,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<DuplicateStats, SimilarError> {
    Search::new(sets, documents, resources, emit)?.run(None)
}

/// The same for the first steps only: hands over the duplicates of those clusters that have a
/// member which is `drawn`, each cluster whole.
///
/// In the paper a subcollection is what is brought into the table in one step. Here the table is
/// filled with what is drawn, in as many steps as the budget needs, and all documents are looked
/// up. The original is still the smallest document of the cluster, whether that was drawn or not.
pub fn duplicates_of_drawn(
    sets: &ChunkSets,
    documents: u64,
    drawn: &dyn Fn(DocId) -> bool,
    resources: &Resources,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<DuplicateStats, SimilarError> {
    Search::new(sets, documents, resources, emit)?.run(Some(drawn))
}

/// What one walk over the documents does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// Puts documents on the shelf that stand for nobody yet.
    Fill,
    /// Looks documents up on the shelf.
    LookUp,
    /// Both at once. In ascending order the first document with its shingles is the original.
    FillAndLookUp,
}

struct Search<'a> {
    multisets: ChunkSets,
    hashes: Rarity,
    /// Bytes for the shelf.
    budget: usize,
    /// Duplicates that were found, and originals of which all duplicates were.
    is_settled: Bits,
    is_original: Bits,
    stats: DuplicateStats,
    emit: &'a mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
}

impl<'a> Search<'a> {
    fn new(
        sets: &ChunkSets,
        documents: u64,
        resources: &Resources,
        emit: &'a mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
    ) -> Result<Search<'a>, SimilarError> {
        let multisets = sets.clone().with_repeats();
        let (hashes, with_shingles) = count_hashes(&multisets, documents, resources)?;
        Ok(Search {
            multisets,
            hashes,
            budget: resources.memory.share(3, 8).len(),
            is_settled: Bits::new(documents),
            is_original: Bits::new(documents),
            stats: DuplicateStats { documents: with_shingles, ..DuplicateStats::default() },
            emit,
        })
    }

    /// Step after step, until everything that is drawn has been on a shelf; without `drawn`,
    /// everything is.
    fn run(mut self, drawn: Option<&dyn Fn(DocId) -> bool>) -> Result<DuplicateStats, SimilarError> {
        let mut from = Some(DocId::MIN);
        while let Some(first) = from {
            let mut shelf = Shelf::new(self.budget);
            from = match drawn {
                None => self.walk(&mut shelf, Walk::FillAndLookUp, |doc| doc >= first)?,
                Some(drawn) => {
                    let until = self.walk(&mut shelf, Walk::Fill, |doc| doc >= first && drawn(doc))?;
                    // Members that were not drawn may be smaller than those that were.
                    self.walk(&mut shelf, Walk::LookUp, |_| true)?;
                    until
                }
            };
            self.stats.steps += 1;
            self.stats.peak_bytes = self.stats.peak_bytes.max(self.hashes.bytes() + shelf.bytes() as u64);
        }
        self.stats.clusters = self.is_original.count();
        Ok(self.stats)
    }

    /// Returns the first document that had no room on the shelf.
    fn walk(
        &mut self,
        shelf: &mut Shelf,
        walk: Walk,
        wanted: impl Fn(DocId) -> bool,
    ) -> Result<Option<DocId>, SimilarError> {
        let mut until = None;
        let mut sorted = Vec::new();
        let mut reader = self.multisets.reader();
        while let Some((doc, shingles)) = reader.next_of(|doc| wanted(doc) && !self.is_settled.get(doc))? {
            let hash = hash_of(shingles);
            if self.hashes.get(hash) < 2 {
                continue;
            }
            sort_into(&mut sorted, shingles);
            match shelf.equal_to(hash, &sorted) {
                Some(_) if walk == Walk::Fill => {}
                Some(slot) => self.settle(&mut shelf.documents[slot as usize], doc)?,
                None if walk == Walk::LookUp || until.is_some() => {}
                None if shelf.is_full() => {
                    until = Some(doc);
                    if walk == Walk::Fill {
                        break;
                    }
                }
                None => {
                    let original = (walk != Walk::Fill).then_some(doc);
                    shelf.put(original, &sorted, &[(hash, 0)]);
                }
            }
        }
        Ok(until)
    }

    /// A document has the shingles of one on the shelf.
    fn settle(&mut self, shelved: &mut Shelved, doc: DocId) -> Result<(), SimilarError> {
        self.is_settled.set(doc);
        let Some(original) = shelved.doc.get() else {
            shelved.doc = doc.into();
            return Ok(());
        };
        self.is_original.set(original);
        self.stats.duplicates += 1;
        let size = shelved.size;
        (self.emit)(SharedPair { a: original, b: doc, shared: size, size_a: size, size_b: size })
    }
}

/// How many documents have each hash, and how many there are. A table of all documents would be
/// larger than it has to be: those that have a hash to themselves have no equal.
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

fn sort_into(sorted: &mut Vec<u64>, shingles: &[u64]) {
    sorted.clear();
    sorted.extend_from_slice(shingles);
    sorted.sort_unstable();
}

/// A hash of shingles that does not depend on their order. Two documents with the same one are
/// compared.
fn hash_of(shingles: &[u64]) -> u64 {
    let sum = shingles.iter().fold(shingles.len() as u64, |sum, shingle| {
        sum.wrapping_add(scramble(shingle.wrapping_add(0x9e37_79b9_7f4a_7c15)))
    });
    scramble(sum)
}
