//! What a search must know to go on: kept in the journal with every commit.

use crate::VerifyStats;
use crate::candidates::CandidateStats;
use crate::exact::ExactStats;
use crate::overlap::JoinStats;
use crate::recall::Recall;
use onionskin_store::stage::Usage;
use serde::{Deserialize, Serialize};

use super::record::FoundRecord;
use super::{ClusterSummary, IterationSummary, Job, ParagraphSummary, SimilarSummary};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    pub exact: ExactStats,
    pub candidates: CandidateStats,
    pub verified: VerifyStats,
    pub join: JoinStats,
    pub near_pairs: u64,
    pub recall: Option<Recall>,
    pub paragraphs: Option<ParagraphSummary>,
    pub iterations: Option<IterationSummary>,
    pub clusters: ClusterSummary,
}

impl State {
    /// For the manifest.
    pub fn found(&self) -> FoundRecord {
        FoundRecord {
            texts: self.exact.texts,
            exact_copies: self.exact.copies,
            candidates: self.verified.candidates,
            near_pairs: self.near_pairs,
            recall: self.recall,
            clusters: self.clusters.clone(),
            iterations: self.iterations.clone(),
        }
    }

    pub fn summary(self, job: &Job<'_>, usage: Usage) -> SimilarSummary {
        SimilarSummary {
            atlas: job.params.atlas.clone(),
            method: job.params.search.method(),
            cluster: job.params.clustering,
            documents: job.documents,
            exact: self.exact,
            filter: job.filter,
            candidates: self.candidates,
            verified: self.verified,
            join: self.join,
            near_pairs: self.near_pairs,
            texts_read_again: job.elsewhere.is_some(),
            recall: self.recall,
            paragraphs: self.paragraphs,
            iterations: self.iterations,
            clusters: self.clusters,
            resumed: usage.resumed,
            seconds: usage.seconds,
            cpu_seconds: usage.cpu_seconds,
            peak_memory: usage.peak_memory,
        }
    }
}

#[cfg(test)]
mod tests;
