//! Recall of an atlas without shingles.
//!
//! An exact join over texts that are read again costs as much as the scan. Sketches are there: the
//! same join over those catches every pair whose minima agree about as often as those of similar
//! documents do. Of what is caught, the search has verified nearly all. The texts of the few others
//! are read again, at most [`MOST_READ`] pairs; where there are more, as in a crowd whose pairs are
//! not all listed, the sample is smaller.

use std::collections::HashSet;

use onionskin_core::{DocId, Threshold};

use super::{Found, Neighbours, Recall, SAMPLE, SAMPLE_CHUNKS, Sample, hash_of, judge};
use crate::cluster::Open;
use crate::{Bound, Candidates, ChunkSets, Resources, SharedPair, SimilarError, count_shared};

/// Pairs that are verified for the sample alone.
const MOST_READ: usize = 8192;

/// What catches the neighbours of a document.
#[derive(Clone, Copy)]
pub struct Net<'a> {
    /// The first minima of each document as a set: two documents share as many as agree.
    pub sketches: &'a ChunkSets,
    /// Pairs of which so many agree are caught.
    pub least: Threshold,
    /// Pairs that the search has verified, whether similar or not, smaller document first.
    pub verified: Open<'a, (DocId, DocId)>,
}

/// Measures what a search has found on a sample, by a join of sketches. `sets` has the chunks of
/// the documents that are verified.
///
/// One similar pair in a thousand has sketches that agree less than the net asks for.
pub fn measure_by_sketches(
    net: &Net<'_>,
    sets: &ChunkSets,
    documents: u64,
    bound: Bound,
    seed: u64,
    found: Found<'_>,
    resources: &Resources,
) -> Result<Recall, SimilarError> {
    let sample = Sample::draw(net.sketches, seed, SAMPLE, SAMPLE_CHUNKS)?;
    if sample.docs.is_empty() {
        return Ok(Recall::default());
    }
    let caught = sample.neighbours(net.sketches, documents, Bound::Overlap(net.least), seed, 0)?;
    let catch = Catch { sample, caught, seed };
    let pairs = (found.pairs)()?.map(|pair| pair.map(|SharedPair { a, b, .. }| (a, b)));
    let listed = catch.ends_among(pairs, |_, _| true)?;
    let verified = catch.ends_among((net.verified)()?, |caught, other| {
        caught.met.iter().any(|(_, met, caught)| *caught && *met == other)
    })?;
    let Catch { sample, mut caught, .. } = catch.smaller(&listed, &verified);
    let unknown = unknown(&sample, &caught, &listed, &verified);
    let similar = verify(unknown, sets, documents, bound, resources)?;
    for (doc, neighbours) in sample.docs.iter().zip(&mut caught) {
        neighbours.met.retain(|(_, other, caught)| *caught && !listed.contains(&(*doc, *other)));
        for (_, other, is_similar) in &mut neighbours.met {
            *is_similar = similar.contains(&(*doc.min(other), *doc.max(other)));
        }
    }
    for (doc, other) in &listed {
        if let Ok(at) = sample.docs.binary_search(doc) {
            caught[at].met.push((hash_of(*other, !seed), *other, true));
        }
    }
    let recall = judge(&sample, &caught, seed, found)?;
    // Every listed pair was verified by the search.
    Ok(Recall { checked_pairs: 0, precision: None, ..recall })
}

/// A sampled document and another.
type Ends = HashSet<(DocId, DocId)>;

/// A sample and what was caught of each of its documents.
struct Catch {
    sample: Sample,
    caught: Vec<Neighbours>,
    seed: u64,
}

impl Catch {
    /// The wanted pairs of a sampled document that are looked at.
    fn ends_among(
        &self,
        pairs: impl Iterator<Item = Result<(DocId, DocId), SimilarError>>,
        wanted: impl Fn(&Neighbours, DocId) -> bool,
    ) -> Result<Ends, SimilarError> {
        let mut ends = Ends::new();
        for pair in pairs {
            let (a, b) = pair?;
            for (at, other) in self.sample.ends(a, b) {
                let caught = &self.caught[at];
                if caught.looks_at(hash_of(other, !self.seed)) && wanted(caught, other) {
                    ends.insert((self.sample.docs[at], other));
                }
            }
        }
        Ok(ends)
    }

    /// As many of the sampled documents as there are pairs to be verified, those with the smallest
    /// hashes, which are a random sample too.
    fn smaller(self, listed: &Ends, verified: &Ends) -> Catch {
        let Catch { sample, caught, seed } = self;
        let mut documents: Vec<_> = sample.docs.into_iter().zip(sample.sets).zip(caught).collect();
        documents.sort_unstable_by_key(|((doc, _), _)| hash_of(*doc, seed));
        let mut pairs = 0;
        let fitting = documents.iter().take_while(|((doc, _), caught)| {
            pairs += unknown_of(*doc, caught, listed, verified).count();
            pairs <= MOST_READ
        });
        documents.truncate(fitting.count().max(1));
        documents.sort_unstable_by_key(|((doc, _), _)| *doc);
        let (drawn, caught): (Vec<_>, Vec<_>) = documents.into_iter().unzip();
        let (docs, sets) = drawn.into_iter().unzip();
        Catch { sample: Sample { docs, sets }, caught, seed }
    }
}

/// What was caught of a document and nobody has verified.
fn unknown_of<'a>(
    doc: DocId,
    caught: &'a Neighbours,
    listed: &'a Ends,
    verified: &'a Ends,
) -> impl Iterator<Item = DocId> + 'a {
    let others = caught.met.iter().filter(|(.., caught)| *caught).map(|(_, other, _)| *other);
    others.filter(move |other| !listed.contains(&(doc, *other)) && !verified.contains(&(doc, *other)))
}

/// The pairs of a sample that nobody has verified, each once, smaller document first.
fn unknown(sample: &Sample, caught: &[Neighbours], listed: &Ends, verified: &Ends) -> Vec<(DocId, DocId)> {
    let of = |(doc, caught): (&DocId, &_)| -> Vec<(DocId, DocId)> {
        let others = unknown_of(*doc, caught, listed, verified);
        others.map(|other| (*doc.min(&other), *doc.max(&other))).collect()
    };
    let mut pairs: Vec<_> = sample.docs.iter().zip(caught).flat_map(of).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

/// The similar ones among some pairs.
fn verify(
    pairs: Vec<(DocId, DocId)>,
    sets: &ChunkSets,
    documents: u64,
    bound: Bound,
    resources: &Resources,
) -> Result<HashSet<(DocId, DocId)>, SimilarError> {
    let mut similar = HashSet::new();
    if pairs.is_empty() {
        return Ok(similar);
    }
    let mut candidates = Candidates::new(documents, &resources.share(1, 8))?;
    for (a, b) in pairs {
        candidates.push(a, b)?;
    }
    count_shared(sets, candidates, Some(bound), &resources.share(3, 4), &mut |pair: SharedPair| {
        similar.insert((pair.a, pair.b));
        Ok(())
    })?;
    Ok(similar)
}
