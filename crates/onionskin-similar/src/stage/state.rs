//! What a search must know to go on: kept in the journal with every commit.

use crate::VerifyStats;
use crate::candidates::CandidateStats;
use crate::exact::ExactStats;
use crate::overlap::JoinStats;
use crate::recall::{Interval, Recall};
use onionskin_store::stage::Usage;
use serde::{Deserialize, Serialize};

use super::record::FoundRecord;
use super::{ClusterSummary, IterationSummary, Job, ParagraphSummary, SimilarSummary};

/// A twin that can be written down: the libraries below do not serialise.
macro_rules! twin {
    ($name:ident, $of:ty, { $($field:ident: $type:ty),+ }) => {
        #[derive(Clone, Debug, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $(pub $field: $type),+
        }

        impl From<$of> for $name {
            fn from(of: $of) -> $name {
                $name { $($field: of.$field),+ }
            }
        }

        impl From<&$name> for $of {
            fn from(twin: &$name) -> $of {
                Self { $($field: twin.$field),+ }
            }
        }
    };
}

twin!(ExactTwin, ExactStats, { texts: u64, copies: u64, spilled_bytes: u64 });
twin!(CandidateTwin, CandidateStats, {
    documents: u64, buckets: u64, crowded_buckets: u64, largest_bucket: u64, spilled_bytes: u64
});
twin!(VerifyTwin, VerifyStats, { candidates: u64, verified: u64, passes: u64, spilled_bytes: u64 });
twin!(JoinTwin, JoinStats, {
    records: u64, groups: u64, pairs_enumerated: u64, candidates: u64, pairs: u64, passes: u64, spilled_bytes: u64, peak_bytes: u64
});

/// Value, low, high.
type IntervalTwin = Option<[f64; 3]>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecallTwin {
    pub sampled: u64,
    with_neighbours: u64,
    true_pairs: u64,
    listed_pairs: u64,
    listed: IntervalTwin,
    pub connected: IntervalTwin,
    checked_pairs: u64,
    precision: IntervalTwin,
}

fn to_twin(interval: Option<Interval>) -> IntervalTwin {
    interval.map(|interval| [interval.value, interval.low, interval.high])
}

fn from_twin(twin: IntervalTwin) -> Option<Interval> {
    twin.map(|[value, low, high]| Interval { value, low, high })
}

impl From<Recall> for RecallTwin {
    fn from(recall: Recall) -> RecallTwin {
        RecallTwin {
            sampled: recall.sampled,
            with_neighbours: recall.with_neighbours,
            true_pairs: recall.true_pairs,
            listed_pairs: recall.listed_pairs,
            listed: to_twin(recall.listed),
            connected: to_twin(recall.connected),
            checked_pairs: recall.checked_pairs,
            precision: to_twin(recall.precision),
        }
    }
}

impl From<&RecallTwin> for Recall {
    fn from(twin: &RecallTwin) -> Recall {
        Recall {
            sampled: twin.sampled,
            with_neighbours: twin.with_neighbours,
            true_pairs: twin.true_pairs,
            listed_pairs: twin.listed_pairs,
            listed: from_twin(twin.listed),
            connected: from_twin(twin.connected),
            checked_pairs: twin.checked_pairs,
            precision: from_twin(twin.precision),
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    pub exact: ExactTwin,
    pub candidates: CandidateTwin,
    pub verified: VerifyTwin,
    pub join: JoinTwin,
    pub near_pairs: u64,
    pub recall: Option<RecallTwin>,
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
            recall: self.recall.clone(),
            clusters: self.clusters.clone(),
            iterations: self.iterations.clone(),
        }
    }

    pub fn summary(self, job: &Job<'_>, usage: Usage) -> SimilarSummary {
        SimilarSummary {
            documents: job.documents,
            exact: (&self.exact).into(),
            filter: job.filter,
            candidates: (&self.candidates).into(),
            verified: (&self.verified).into(),
            join: (&self.join).into(),
            near_pairs: self.near_pairs,
            texts_read_again: job.elsewhere.is_some(),
            recall: self.recall.as_ref().map(Recall::from),
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
