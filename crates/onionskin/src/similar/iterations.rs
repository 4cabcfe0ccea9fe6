//! The first iterations of the search by shingle paragraphs, and what they say of the others (Pereira et al. 2006, section 4.2).
//!
//! Documents are dealt out by chance into subcollections, and the first of those are compared with everything: every cluster that has a member in one of them
//! is found, whole. Exact copies were folded before; they are members like all others, are dealt out like all others, and a text is drawn when one
//! of its copies is.

use onionskin_similar::paragraphs::duplicates_of_drawn;
use onionskin_similar::{Bits, ChunkSets, Resources, SharedPair, SimilarError};
use onionskin_store::raw::RawRecords;
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_study::growth::{Growth, Interval, subcollection};
use serde::{Deserialize, Serialize};

/// What the first iterations found. Estimates are of a complete search: value, and lower and upper end of the 95 % interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IterationSummary {
    /// Subcollections that were compared with everything.
    pub iterations: u32,
    /// Subcollections there are.
    pub of: u32,
    /// Documents that have at least one shingle paragraph, copies included.
    pub documents: u64,
    /// Clusters that have a member in one of the subcollections.
    pub clusters: u64,
    /// Documents in them, but one of each.
    pub duplicates: u64,
    /// All clusters.
    pub estimated_clusters: [f64; 3],
    /// All duplicates.
    pub estimated_duplicates: [f64; 3],
    /// Documents in no cluster.
    pub estimated_unique: [f64; 3],
    /// Duplicates out of all documents, between 0 and 1.
    pub estimated_share: [f64; 3],
}

/// Which documents are in the first subcollections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deal {
    iterations: u32,
    of: u32,
    seed: u64,
}

impl Deal {
    pub fn new(iterations: u32, of: u32, seed: u64) -> Deal {
        Deal { iterations, of, seed }
    }

    fn subcollection(self, doc: u32) -> u32 {
        subcollection(doc, self.of, self.seed)
    }

    fn draws(self, doc: u32) -> bool {
        self.subcollection(doc) < self.iterations
    }
}

/// Hands over the duplicates among texts that are found, each with its original, and counts clusters with all copies. `copies` opens the list of
/// copies, each with its text, in order of document.
pub(super) fn search(
    sets: &ChunkSets,
    documents: u64,
    deal: Deal,
    copies: &dyn Fn() -> RawRecords<(u32, u32)>,
    resources: &Resources,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<IterationSummary, SimilarError> {
    let [mut by_copy, mut copied] = [(); 2].map(|()| Bits::new(documents));
    let mut n_copies = 0;
    for copy in copies() {
        let (doc, text) = copy?;
        n_copies += 1;
        copied.set(text);
        if deal.draws(doc) {
            by_copy.set(text);
        }
    }
    let sort = || SortParams::new(&resources.work_dir, resources.memory.share(1, 8)).dedup();
    // Text and original, of all texts in clusters of two texts or more: an original comes with itself.
    let mut originals = Sorter::<(u32, u32)>::new(sort())?;
    let drawn = |doc: u32| deal.draws(doc) || by_copy.get(doc);
    let stats = duplicates_of_drawn(sets, documents, &drawn, &resources.share(5, 8), &mut |pair| {
        originals.push((pair.b, pair.a))?;
        originals.push((pair.a, pair.a))?;
        emit(pair)
    })?;
    // Text and copy.
    let mut of_texts = Sorter::<(u32, u32)>::new(sort())?;
    for copy in copies() {
        let (doc, text) = copy?;
        of_texts.push((text, doc))?;
    }
    // Original and member, of all clusters of two documents or more.
    let mut members = Sorter::<(u32, u32)>::new(sort())?;
    let mut of_texts = of_texts.finish()?.peekable();
    for text in originals.finish()? {
        let (text, original) = text?;
        // Texts before this one are equal to no other text.
        while let Some(copy) = of_texts.next_if(|copy| copy.as_ref().map_or(true, |(of, _)| *of <= text)) {
            let (of, doc) = copy?;
            let original = if of == text { original } else { of };
            members.push((original, doc))?;
            members.push((original, of))?;
        }
        members.push((original, text))?;
    }
    for copy in of_texts {
        let (of, doc) = copy?;
        members.push((of, doc))?;
        members.push((of, of))?;
    }
    let documents = stats.documents + n_copies;
    let mut growth = Growth::new(documents, deal.of);
    let mut cluster: Option<(u32, u64, u32)> = None;
    for member in members.finish()? {
        let (original, doc) = member?;
        let dealt = deal.subcollection(doc);
        cluster = match cluster {
            Some((of, size, first)) if of == original => Some((of, size + 1, first.min(dealt))),
            done => {
                add(&mut growth, done, deal);
                Some((original, 1, dealt))
            }
        };
    }
    add(&mut growth, cluster, deal);
    Ok(summary(&growth, deal, n_copies, copied.count()))
}

/// Copies of a text that was not drawn are known, but what else is in their cluster is not.
fn add(growth: &mut Growth, cluster: Option<(u32, u64, u32)>, deal: Deal) {
    if let Some((_, size, first)) = cluster
        && first < deal.iterations
    {
        growth.add(size, first);
    }
}

/// `copies` are copies of `texts` texts.
fn summary(growth: &Growth, deal: Deal, copies: u64, texts: u64) -> IterationSummary {
    let found = growth.at(deal.iterations);
    let estimate = growth.estimate(deal.iterations);
    let ends = |interval: Interval| [interval.value, interval.low, interval.high];
    // Copies of texts are all known, also in clusters that were not drawn: each is a duplicate, and neither they nor their texts are unique.
    let at_least = |known: f64, interval: Interval| ends(interval).map(|end| end.max(known));
    let share = if growth.documents() == 0 { 0.0 } else { copies as f64 / growth.documents() as f64 };
    let not_copied = growth.documents().saturating_sub(copies + texts) as f64;
    IterationSummary {
        iterations: deal.iterations,
        of: deal.of,
        documents: growth.documents(),
        clusters: found.clusters,
        duplicates: found.duplicates,
        estimated_clusters: ends(estimate.clusters),
        estimated_duplicates: at_least(copies as f64, estimate.duplicates),
        estimated_unique: ends(estimate.unique).map(|end| end.min(not_copied)),
        estimated_share: at_least(share, estimate.share),
    }
}
