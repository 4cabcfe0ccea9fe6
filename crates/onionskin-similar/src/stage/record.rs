//! What the manifest records of a search: what was asked for and what was found.

use onionskin_core::FeatureFilter;
use onionskin_store::schema::ChunkingName;
use onionskin_store::table::Method;
use onionskin_store::{StageName, StageRecord, spelled};
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::{ClusterSummary, IterationSummary, Job, Search};
use crate::cluster::Clustering;
use crate::recall::Recall;
use crate::survivor::Survivor;

/// Everything that decides the result of a search. The engine is left out: all engines find the
/// same.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SearchRecord {
    /// How similar documents were found.
    #[serde(with = "spelled")]
    pub method: Option<Method>,
    /// The chunks that pairs were verified on.
    pub chunking: Option<String>,
    /// How pairs became clusters.
    #[serde(with = "spelled")]
    pub cluster: Option<Clustering>,
    /// Which document is the centre of its cluster.
    #[serde(with = "spelled")]
    pub survivor: Option<Survivor>,
    /// Whether recall was measured.
    pub measure_recall: bool,
    /// The least resemblance or share, or the least number of shared chunks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Number>,
    /// Whether every pair was found, by an exact join.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<bool>,
    /// The filter that made the candidates.
    #[serde(with = "spelled", skip_serializing_if = "Option::is_none")]
    pub filter: Option<FeatureFilter>,
    /// Subcollections that were compared with everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u32>,
    /// Subcollections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<u32>,
}

/// What a search found: nothing that memory or threads could change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoundRecord {
    /// Different texts.
    pub texts: u64,
    /// Exact duplicates.
    pub exact_copies: u64,
    /// Candidates that were verified.
    pub candidates: u64,
    /// Near pairs.
    pub near_pairs: u64,
    /// Recall on a sample.
    pub recall: Option<Recall>,
    /// Clusters.
    pub clusters: ClusterSummary,
    /// The first iterations of a search by shingle paragraphs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<IterationSummary>,
}

/// The last search of an atlas.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SimilarRecord {
    /// What was asked for.
    #[serde(flatten)]
    pub search: SearchRecord,
    /// What was found.
    #[serde(default)]
    pub found: FoundRecord,
}

impl StageRecord for SimilarRecord {
    const STAGE: StageName = StageName::Similar;
}

/// A level whose duplicates are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelRecord {
    /// The search that found it.
    #[serde(flatten)]
    pub search: SearchRecord,
    /// Documents that have what the level compares.
    #[serde(default)]
    pub texts: u64,
    /// Percentages, and documents that are near-duplicates at each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<(u32, u64)>,
    /// What the search found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<FoundRecord>,
}

impl SearchRecord {
    pub(super) fn new(job: &Job<'_>) -> SearchRecord {
        let params = job.params;
        let mut record = SearchRecord {
            method: Some(params.search.method()),
            chunking: job.chunking.as_ref().map(|name: &ChunkingName| name.as_str().to_owned()),
            cluster: Some(params.clustering),
            survivor: Some(params.survivor.clone()),
            measure_recall: params.measure_recall,
            ..SearchRecord::default()
        };
        match &params.search {
            Search::Exact => {}
            Search::Resemblance { threshold, exact, .. } => {
                record.threshold = Number::from_f64(*threshold);
                record.exact = Some(*exact);
                record.filter = job.filter.as_ref().map(|choice| choice.filter);
            }
            Search::Overlap { threshold, .. } => record.threshold = Some(threshold.get().into()),
            Search::Paragraphs { share } => record.threshold = Number::from_f64(*share),
            Search::Subcollections { iterations, of } => {
                record.threshold = Number::from_f64(1.0);
                record.iterations = Some(*iterations);
                record.of = Some(*of);
            }
        }
        record
    }

    /// The threshold as a number.
    pub fn threshold(&self) -> Option<f64> {
        self.threshold.as_ref().and_then(Number::as_f64)
    }

    /// Whether a level was found by the same kind of search. What a level does not say is left
    /// open.
    pub fn is_level_of(&self, last: &SearchRecord) -> bool {
        fn fits<T: PartialEq>(level: &Option<T>, last: &Option<T>) -> bool {
            level.is_none() || level == last
        }
        self.method == last.method
            && fits(&self.chunking, &last.chunking)
            && fits(&self.threshold, &last.threshold)
            && fits(&self.cluster, &last.cluster)
    }
}
