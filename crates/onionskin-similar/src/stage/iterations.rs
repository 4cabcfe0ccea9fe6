//! The first iterations of the search by shingle paragraphs, and what they say of the others
//! (Pereira et al. 2006, section 4.2).
//!
//! Documents are dealt out by chance into subcollections, and the first of those are compared with
//! everything: every cluster that has a member in one of them is found, whole. Exact copies were
//! folded before; they are members like all others, are dealt out like all others, and a text is
//! drawn when one of its copies is.
//!
//! All copies of texts are known already, also in clusters that were not drawn. So chance decides
//! only on what is equal beyond them: how many texts are in a cluster, not how many documents.

use crate::paragraphs::duplicates_of_drawn;
use crate::recall::Interval;
use crate::sample::{Sample, subcollection};
use crate::{Bits, ChunkSets, Resources, SharedPair, SimilarError};
use onionskin_core::DocId;
use onionskin_store::join::SortedCursor;
use onionskin_store::raw::RawRecords;
use onionskin_store::sort::{SortParams, Sorter};
use serde::{Deserialize, Serialize};

/// What the first iterations found. Estimates are of a complete search: value, and lower and upper
/// end of the 95 % interval.
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

    fn draws(self, doc: DocId) -> bool {
        subcollection(doc, self.of, self.seed) < self.iterations
    }
}

/// Hands over the duplicates among texts that are found, each with its original, and counts
/// clusters with all copies. `copies` opens the list of copies, each with its text, in order of
/// document.
pub(super) fn search(
    sets: &ChunkSets,
    documents: u64,
    deal: Deal,
    copies: &dyn Fn() -> RawRecords<(DocId, DocId)>,
    resources: &Resources,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<IterationSummary, SimilarError> {
    let mut by_copy = Bits::new(documents);
    let mut counted = Counted::new(deal);
    for copy in copies() {
        let (doc, text) = copy?;
        if deal.draws(doc) {
            by_copy.set(text);
        }
    }
    let sort = || SortParams::new(&resources.work_dir, resources.memory.share(1, 8)).dedup();
    // Text and original, of all texts in clusters of two texts or more: an original comes with
    // itself.
    let mut originals = Sorter::<(DocId, DocId)>::new(sort())?;
    let drawn = |doc: DocId| deal.draws(doc) || by_copy.get(doc);
    let stats = duplicates_of_drawn(sets, documents, &drawn, &resources.share(5, 8), &mut |pair| {
        originals.push((pair.b, pair.a))?;
        originals.push((pair.a, pair.a))?;
        emit(pair)
    })?;
    // Text and copy.
    let mut of_texts = Sorter::<(DocId, DocId)>::new(sort())?;
    for copy in copies() {
        let (doc, text) = copy?;
        of_texts.push((text, doc))?;
    }
    // Original, text and document, of all clusters of two documents or more.
    let mut members = Sorter::<(DocId, DocId, DocId)>::new(sort())?;
    let mut of_texts = SortedCursor::new(of_texts.finish()?);
    for text in originals.finish()? {
        let (text, original) = text?;
        // Texts before this one are equal to no other text.
        while let Some((of, doc)) = of_texts.next_if(|(of, _)| *of <= text)? {
            let original = if of == text { original } else { of };
            members.push((original, of, doc))?;
            members.push((original, of, of))?;
        }
        members.push((original, text, text))?;
    }
    while let Some((of, doc)) = of_texts.next()? {
        members.push((of, of, doc))?;
        members.push((of, of, of))?;
    }
    let mut cluster = Cluster::default();
    let mut last = None;
    for member in members.finish()? {
        let (original, text, doc) = member?;
        if last.is_some_and(|(of, _)| of != original) {
            counted.add(&cluster);
            cluster = Cluster::default();
        }
        cluster.add(last != Some((original, text)), deal.draws(doc));
        last = Some((original, text));
    }
    counted.add(&cluster);
    Ok(counted.summary(stats.documents))
}

/// A cluster whose members come one after the other, text by text.
#[derive(Clone, Copy, Debug, Default)]
struct Cluster {
    documents: u64,
    texts: u64,
    /// Texts that have copies.
    copied: u64,
    /// Documents of the text that is coming.
    of_text: u64,
    is_drawn: bool,
}

impl Cluster {
    fn add(&mut self, is_new_text: bool, is_drawn: bool) {
        self.of_text = if is_new_text { 1 } else { self.of_text + 1 };
        self.documents += 1;
        self.texts += u64::from(is_new_text);
        self.copied += u64::from(self.of_text == 2);
        self.is_drawn |= is_drawn;
    }
}

/// What is known of clusters.
#[derive(Clone, Debug)]
struct Counted {
    deal: Deal,
    /// Clusters with a member that was drawn, and their duplicates.
    clusters: u64,
    duplicates: u64,
    /// Copies, and texts that have some: of all clusters.
    copies: u64,
    copied: u64,
    /// Texts of clusters that have several, and those of them that have copies.
    joined: u64,
    joined_copied: u64,
    /// What such clusters add to what copies alone tell: duplicates, clusters, documents in
    /// clusters.
    more_duplicates: Sample,
    more_clusters: Sample,
    more_clustered: Sample,
}

impl Counted {
    fn new(deal: Deal) -> Counted {
        let sample = Sample::new(deal.iterations, deal.of);
        Counted {
            deal,
            clusters: 0,
            duplicates: 0,
            copies: 0,
            copied: 0,
            joined: 0,
            joined_copied: 0,
            more_duplicates: sample,
            more_clusters: sample,
            more_clustered: sample,
        }
    }

    fn add(&mut self, cluster: &Cluster) {
        let Cluster { documents, texts, copied, is_drawn, .. } = *cluster;
        self.copies += documents - texts;
        self.copied += copied;
        if is_drawn {
            self.clusters += 1;
            self.duplicates += documents - 1;
        }
        // Several texts are only known to be one cluster when it was drawn.
        if is_drawn && texts > 1 {
            self.joined += texts;
            self.joined_copied += copied;
            self.more_duplicates.add((texts - 1) as f64, documents, 1);
            // Copies alone would be one cluster for each text that has some.
            self.more_clusters.add(1.0 - copied as f64, documents, 1);
            self.more_clustered.add((texts - copied) as f64, documents, 1);
        }
    }

    /// `texts` are those that have shingle paragraphs.
    fn summary(&self, texts: u64) -> IterationSummary {
        let documents = texts + self.copies;
        // Texts that are not known to be equal to others may still be.
        let left = texts.saturating_sub(self.joined) as f64;
        let left_copied = (self.copied - self.joined_copied) as f64;
        let duplicates = self.more_duplicates.interval(1.0, 0.0, (left - 1.0).max(0.0));
        let clusters = self.more_clusters.interval(1.0, (left_copied - 1.0).max(0.0), (left / 2.0).floor());
        let clustered = self.more_clustered.interval(2.0, 0.0, left - left_copied);
        let beyond =
            |known: u64, more: Interval| [more.value, more.low, more.high].map(|end| known as f64 + end);
        let estimated_duplicates = beyond(self.copies, duplicates);
        let [value, low, high] = beyond(self.copies + self.copied, clustered);
        IterationSummary {
            iterations: self.deal.iterations,
            of: self.deal.of,
            documents,
            clusters: self.clusters,
            duplicates: self.duplicates,
            estimated_clusters: beyond(self.copied, clusters),
            estimated_duplicates,
            estimated_unique: [value, high, low].map(|clustered| documents as f64 - clustered),
            estimated_share: estimated_duplicates
                .map(|n| if documents == 0 { 0.0 } else { n / documents as f64 }),
        }
    }
}
