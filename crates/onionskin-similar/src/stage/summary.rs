//! The fields of a [`SimilarSummary`] as programs see them: one level of names, and the costs of
//! all steps added up.

use std::path::PathBuf;

use onionskin_store::json;
use onionskin_store::table::Method;
use serde::Serialize;

use super::{IterationSummary, ParagraphSummary, SimilarSummary};
use crate::cluster::Clustering;
use crate::recall::Recall;

#[derive(Serialize)]
pub(super) struct Fields {
    #[serde(serialize_with = "json::path")]
    atlas: PathBuf,
    method: Method,
    cluster: Clustering,
    documents: u64,
    texts: u64,
    exact_copies: u64,
    filter: Option<String>,
    expected_at_threshold: Option<f64>,
    candidates: u64,
    crowded_buckets: u64,
    largest_bucket: u64,
    crowd_limit: u64,
    crowded_clusters: u64,
    passes: u64,
    near_pairs: u64,
    texts_read_again: bool,
    recall: Option<Recall>,
    paragraphs: Option<ParagraphSummary>,
    iterations: Option<IterationSummary>,
    clusters: u64,
    clustered_documents: u64,
    exact_members: u64,
    near_members: u64,
    largest_cluster: u64,
    one_site_clusters: u64,
    same_site: u64,
    cross_site: u64,
    lowest_resemblance: Option<f64>,
    spilled_bytes: u64,
    resumed: bool,
    seconds: f64,
    cpu_seconds: f64,
    peak_memory: Option<u64>,
}

impl From<SimilarSummary> for Fields {
    fn from(summary: SimilarSummary) -> Fields {
        let SimilarSummary { exact, candidates, verified, join, clusters, .. } = summary;
        Fields {
            atlas: summary.atlas,
            method: summary.method,
            cluster: summary.cluster,
            documents: summary.documents,
            texts: exact.texts,
            exact_copies: exact.copies,
            filter: summary.filter.map(|choice| choice.filter.to_string()),
            expected_at_threshold: summary.filter.map(|choice| choice.at_threshold),
            candidates: verified.candidates + join.candidates,
            crowded_buckets: candidates.crowded_buckets,
            largest_bucket: candidates.largest_bucket,
            crowd_limit: candidates.crowd_limit,
            crowded_clusters: clusters.crowded,
            passes: verified.passes + join.passes,
            near_pairs: summary.near_pairs,
            texts_read_again: summary.texts_read_again,
            recall: summary.recall,
            paragraphs: summary.paragraphs,
            iterations: summary.iterations,
            clusters: clusters.clusters,
            clustered_documents: clusters.documents,
            exact_members: clusters.exact_members,
            near_members: clusters.near_members,
            largest_cluster: clusters.largest,
            one_site_clusters: clusters.one_site_clusters,
            same_site: clusters.same_site,
            cross_site: clusters.cross_site,
            lowest_resemblance: clusters.lowest_resemblance,
            spilled_bytes: exact.spilled_bytes
                + candidates.spilled_bytes
                + verified.spilled_bytes
                + join.spilled_bytes,
            resumed: summary.resumed,
            seconds: summary.seconds,
            cpu_seconds: summary.cpu_seconds,
            peak_memory: summary.peak_memory,
        }
    }
}
