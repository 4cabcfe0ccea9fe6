//! The fields of an [`Evaluation`] as programs see them: shares beside the counts, and a name
//! beside every document.

use onionskin_core::DocId;
use serde::{Serialize, Serializer};

use super::{Band, ClusterError, ClusterScore, Evaluation, PairScore, TruthCounts, f1};

#[derive(Serialize)]
struct Fields<'a> {
    documents: u64,
    threshold: f64,
    truth: &'a TruthCounts,
    pairs: Option<Scored<'a, PairScore>>,
    clusters: Option<Clusters<'a>>,
    bands: &'a [Band],
    spilled_bytes: u64,
}

/// Counts and what follows from them.
#[derive(Serialize)]
struct Scored<'a, T> {
    #[serde(flatten)]
    counts: &'a T,
    precision: f64,
    recall: f64,
    f1: f64,
}

impl<'a, T> Scored<'a, T> {
    fn new(counts: &'a T, precision: f64, recall: f64) -> Scored<'a, T> {
        Scored { counts, precision, recall, f1: f1(precision, recall) }
    }
}

#[derive(Serialize)]
struct Clusters<'a> {
    #[serde(flatten)]
    scored: Scored<'a, ClusterScore>,
    adjusted_rand_index: f64,
    worst_split: Vec<Worst<'a>>,
    worst_mixed: Vec<Worst<'a>>,
}

#[derive(Serialize)]
struct Worst<'a> {
    #[serde(flatten)]
    error: &'a ClusterError,
    examples: Vec<Example<'a>>,
}

#[derive(Serialize)]
struct Example<'a> {
    doc: DocId,
    name: &'a str,
}

impl<'a> Clusters<'a> {
    fn new(score: &'a ClusterScore, of: &'a Evaluation) -> Clusters<'a> {
        let example = |doc: &DocId| Example { doc: *doc, name: of.name_of(*doc) };
        let worst =
            |error: &'a ClusterError| Worst { error, examples: error.examples.iter().map(example).collect() };
        Clusters {
            scored: Scored::new(score, score.precision(), score.recall()),
            adjusted_rand_index: score.adjusted_rand_index(),
            worst_split: score.split.iter().map(worst).collect(),
            worst_mixed: score.mixed.iter().map(worst).collect(),
        }
    }
}

impl Serialize for Evaluation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = Fields {
            documents: self.documents,
            threshold: self.threshold,
            truth: &self.truth,
            pairs: self.pairs.as_ref().map(|pairs| Scored::new(pairs, pairs.precision(), pairs.recall())),
            clusters: self.clusters.as_ref().map(|clusters| Clusters::new(clusters, self)),
            bands: &self.bands,
            spilled_bytes: self.spilled_bytes,
        };
        fields.serialize(serializer)
    }
}
