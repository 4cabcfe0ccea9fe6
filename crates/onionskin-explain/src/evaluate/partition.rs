//! Two ways to divide documents into clusters, compared.
//!
//! Counting pairs of documents one by one is quadratic. All that is needed is how many documents
//! each cluster of the one shares with each cluster of the other: n documents in both make n(n-1)/2
//! pairs that both put together. These counts come out of a sort of (truth, found, document), and
//! again of (found, truth, document), within the budget.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use onionskin_core::DocId;
use onionskin_store::sort::{SortParams, SortedStream, Sorter};
use serde::Serialize;

use super::EvaluateError;

/// n(n-1)/2.
pub(super) fn pairs_among(n: u64) -> u64 {
    if n.is_multiple_of(2) { n / 2 * n.saturating_sub(1) } else { n.saturating_sub(1) / 2 * n }
}

/// Documents of a cluster, and of which clusters of the other division they are.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ClusterError {
    /// For a cluster that was split, its smallest document; for one that was mixed, its number.
    pub cluster: u64,
    /// Its documents.
    pub documents: u64,
    /// The clusters of the other division that it is spread over; a document alone is one.
    pub parts: u64,
    /// Pairs of its documents that the other division puts apart.
    pub pairs: u64,
    /// The smallest document of its largest parts, largest first.
    #[serde(skip)]
    pub examples: Vec<DocId>,
}

/// How two divisions of the same documents agree.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClusterScore {
    /// Documents that were compared.
    pub documents: u64,
    /// Clusters of two and more by the truth.
    pub truth_clusters: u64,
    /// Clusters of two and more that were found.
    pub found_clusters: u64,
    /// Pairs of documents that the truth puts together.
    pub truth_pairs: u64,
    /// Pairs that were found together.
    pub found_pairs: u64,
    /// Pairs that are together in both.
    pub common_pairs: u64,
    /// Clusters of the truth that were split.
    #[serde(rename = "split")]
    pub n_split: u64,
    /// The worst of them.
    #[serde(skip)]
    pub split: Vec<ClusterError>,
    /// Found clusters that mix clusters of the truth.
    #[serde(rename = "mixed")]
    pub n_mixed: u64,
    /// The worst of them.
    #[serde(skip)]
    pub mixed: Vec<ClusterError>,
}

impl ClusterScore {
    /// Of the pairs found together, those that belong together; 1 when there are none.
    pub fn precision(&self) -> f64 {
        super::ratio(self.common_pairs, self.found_pairs)
    }

    /// Of the pairs that belong together, those found together; 1 when there are none.
    pub fn recall(&self) -> f64 {
        super::ratio(self.common_pairs, self.truth_pairs)
    }

    /// The adjusted Rand index (Hubert and Arabie 1985): 1 when both divisions are the same, about
    /// 0 when one is drawn by lot.
    pub fn adjusted_rand_index(&self) -> f64 {
        let all = pairs_among(self.documents) as f64;
        let (truth, found) = (self.truth_pairs as f64, self.found_pairs as f64);
        let expected = if all == 0.0 { 0.0 } else { truth * found / all };
        let most = 0.5 * (truth + found);
        // Both all alone, or both all together: they agree, and there is nothing to adjust.
        if most == expected { 1.0 } else { (self.common_pairs as f64 - expected) / (most - expected) }
    }
}

/// Examples that are kept of each cluster.
const EXAMPLES: usize = 4;

/// A document, its cluster by the truth and its cluster as found. Documents in no cluster have a
/// label of their own.
pub(super) type Labelled = (u64, u64, DocId);

/// Compares two divisions, given the clusters of every document.
pub(super) fn compare(
    documents: impl Iterator<Item = Labelled>,
    sort: &SortParams,
    show: usize,
    spilled_bytes: &mut u64,
) -> Result<ClusterScore, EvaluateError> {
    let mut by_truth: Sorter<Labelled> = Sorter::new(sort.clone())?;
    let mut by_found: Sorter<Labelled> = Sorter::new(sort.clone())?;
    let mut score = ClusterScore::default();
    for (truth, found, doc) in documents {
        score.documents += 1;
        by_truth.push((truth, found, doc))?;
        by_found.push((found, truth, doc))?;
    }
    let by_truth = by_truth.finish()?;
    *spilled_bytes += by_truth.stats().spilled_bytes;
    let split = spread(by_truth, show)?;
    (score.truth_clusters, score.truth_pairs) = (split.clusters, split.pairs);
    (score.common_pairs, score.n_split, score.split) = (split.kept, split.n_errors, split.errors);
    let by_found = by_found.finish()?;
    *spilled_bytes += by_found.stats().spilled_bytes;
    let mixed = spread(by_found, show)?;
    (score.found_clusters, score.found_pairs) = (mixed.clusters, mixed.pairs);
    (score.n_mixed, score.mixed) = (mixed.n_errors, mixed.errors);
    Ok(score)
}

/// The most pairs first; of equals the first cluster.
type Ranked = (u64, Reverse<u64>, ClusterError);

#[derive(Default)]
struct Spread {
    clusters: u64,
    pairs: u64,
    /// Pairs that are together in both.
    kept: u64,
    n_errors: u64,
    errors: Vec<ClusterError>,
}

/// How the clusters of the first column are spread over those of the second.
fn spread(sorted: SortedStream<Labelled>, show: usize) -> Result<Spread, EvaluateError> {
    let mut sum = Spread::default();
    let mut worst: BinaryHeap<Reverse<Ranked>> = BinaryHeap::new();
    let mut cluster = OpenCluster::default();
    let mut close = |cluster: OpenCluster| {
        let OpenCluster { label, documents, parts, kept, mut largest, .. } = cluster;
        let pairs = pairs_among(documents);
        sum.clusters += u64::from(documents > 1);
        sum.pairs += pairs;
        sum.kept += kept;
        if parts > 1 {
            sum.n_errors += 1;
            largest.sort();
            let examples = largest.into_iter().map(|Reverse((_, Reverse(doc)))| doc).collect();
            let lost = pairs - kept;
            let error = ClusterError { cluster: label, documents, parts, pairs: lost, examples };
            worst.push(Reverse((lost, Reverse(label), error)));
            if worst.len() > show {
                worst.pop();
            }
        }
    };
    for row in sorted {
        let (label, part, doc) = row?;
        if cluster.documents > 0 && cluster.label != label {
            cluster.end_part();
            close(std::mem::take(&mut cluster));
        }
        if cluster.documents == 0 || cluster.part != part {
            cluster.end_part();
            (cluster.label, cluster.part, cluster.part_first) = (label, part, doc);
            cluster.parts += 1;
        }
        cluster.part_documents += 1;
        cluster.documents += 1;
    }
    if cluster.documents > 0 {
        cluster.end_part();
        close(cluster);
    }
    sum.errors = worst.into_sorted_vec().into_iter().map(|Reverse((_, _, error))| error).collect();
    Ok(sum)
}

#[derive(Default)]
struct OpenCluster {
    label: u64,
    documents: u64,
    parts: u64,
    kept: u64,
    part: u64,
    part_first: DocId,
    part_documents: u64,
    /// The largest parts: size and smallest document.
    largest: Vec<Reverse<(u64, Reverse<DocId>)>>,
}

impl OpenCluster {
    fn end_part(&mut self) {
        if self.part_documents == 0 {
            return;
        }
        self.kept += pairs_among(self.part_documents);
        self.largest.push(Reverse((self.part_documents, Reverse(self.part_first))));
        if self.largest.len() > EXAMPLES {
            self.largest.sort();
            self.largest.truncate(EXAMPLES);
        }
        self.part_documents = 0;
    }
}

#[cfg(test)]
mod tests;
