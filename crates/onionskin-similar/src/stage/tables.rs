//! Copies and near pairs become the tables `pairs`, `clusters` and `cluster_stats`, and levels for
//! reports.

use std::path::PathBuf;

use crate::cluster::{ClusterInput, ClusterSink, Clustering, Rows, cluster};
use crate::exact::exact_copies;
use crate::paragraphs::{duplicates, near_duplicates};
use crate::{Bits, Bound, ChunkSets, Resources, SharedPair, SimilarError};
use onionskin_core::{ClusterId, DocId};
use onionskin_store::raw::RawRecords;
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::table::{ClusterRow, ClusterStatsRow, Method, PairRow};
use onionskin_store::{Atlas, Staging, TableName};
use serde::{Deserialize, Serialize};

use super::{COPIES, CROWDS, Job, NEAR, ParagraphSummary, Search, SimilarRecord, levels, near_pairs};
use crate::survivor::Survivor;

/// Clusters, counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClusterSummary {
    /// Clusters of two documents and more.
    pub clusters: u64,
    /// Documents in them.
    pub documents: u64,
    /// Members that are exact copies of their centre, centres not counted.
    pub exact_members: u64,
    /// Members that are near copies of their centre.
    pub near_members: u64,
    /// Documents of the largest.
    pub largest: u64,
    /// Members on the site of their centre.
    pub same_site: u64,
    /// Members on other sites.
    pub cross_site: u64,
    /// Clusters whose members are all on one site.
    pub one_site_clusters: u64,
    /// The lowest resemblance of a member to its centre.
    pub lowest_resemblance: Option<f64>,
    /// Those that have a crowd of documents with equal features, whose pairs are not all listed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub crowded: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ClusterSummary {
    fn add(&mut self, row: &ClusterStatsRow) {
        self.clusters += 1;
        self.documents += row.documents;
        self.exact_members += row.exact_copies;
        self.near_members += row.documents - 1 - row.exact_copies;
        self.largest = self.largest.max(row.documents);
        self.same_site += row.same_site;
        self.cross_site += row.cross_site;
        self.one_site_clusters += u64::from(row.sites == 1);
        let lowest = self.lowest_resemblance.unwrap_or(1.0);
        self.lowest_resemblance = Some(lowest.min(row.lowest_resemblance));
    }
}

fn copies<'a>(files: &[PathBuf]) -> Result<Rows<'a, (DocId, DocId)>, SimilarError> {
    let records = RawRecords::<(DocId, DocId)>::new(files.to_vec());
    Ok(Box::new(records.map(|record| record.map_err(SimilarError::from))))
}

/// Writes the three tables.
pub(super) fn write(
    staging: &mut Staging,
    job: &Job<'_>,
    sets: Option<&ChunkSets>,
    resources: &Resources,
) -> Result<ClusterSummary, SimilarError> {
    let (copy_files, near_files) = (staging.raw_files(COPIES), staging.raw_files(NEAR));
    let params = job.params;
    if !params.for_report {
        write_pairs(staging, params.search.method(), &copy_files, &near_files, resources)?;
    }
    // Of documents that are equal each is paired with one other only; what is connected is similar
    // all the same, whoever is the centre.
    let all_equal = matches!(params.search, Search::Subcollections { .. });
    let input = ClusterInput {
        clustering: if all_equal { Clustering::Transitive } else { params.clustering },
        documents: job.documents,
        copies: &|| copies(&copy_files),
        pairs: &|| near_pairs(&near_files),
        attributes: &|| params.survivor.attributes(job.atlas, resources),
        ranked: params.survivor.ranks(),
        sets,
    };
    let mut sink = TableSink {
        staging,
        for_report: params.for_report,
        summary: ClusterSummary::default(),
        original: None,
        rows: levels::rows(resources)?,
        crowds: Bits::default(),
        is_crowded: false,
    };
    for doc in RawRecords::<DocId>::new(sink.staging.raw_files(CROWDS)) {
        sink.crowds.set(doc?);
    }
    cluster(&input, &resources.share(7, 8), &mut sink)?;
    let TableSink { summary, rows, .. } = sink;
    levels::write(staging, job, rows, resources)?;
    Ok(summary)
}

/// Exact copies with their centre, and near pairs, in one order.
fn write_pairs(
    staging: &mut Staging,
    method: Method,
    copy_files: &[PathBuf],
    near_files: &[PathBuf],
    resources: &Resources,
) -> Result<(), SimilarError> {
    let sort = SortParams::new(&resources.work_dir, resources.memory.share(1, 4));
    let mut exact = Sorter::<(DocId, DocId)>::new(sort)?;
    for copy in copies(copy_files)? {
        let (doc, centre) = copy?;
        exact.push((doc.min(centre), doc.max(centre)))?;
    }
    let mut exact = exact.finish()?.peekable();
    let mut near = near_pairs(near_files)?.peekable();
    loop {
        let exact_first = match (exact.peek(), near.peek()) {
            (None, None) => return Ok(()),
            (Some(Ok(pair)), Some(Ok(other))) => *pair < (other.a, other.b),
            (Some(_), None) | (Some(Err(_)), _) => true,
            (None, Some(_)) | (_, Some(Err(_))) => false,
        };
        let row = if exact_first {
            let Some(pair) = exact.next() else { continue };
            let (a, b) = pair?;
            // The one chunk that is the whole document.
            let (resemblance, containment_a, containment_b) = (1.0, 1.0, 1.0);
            PairRow { a, b, shared: 1, resemblance, containment_a, containment_b, method: Method::Exact }
        } else {
            let Some(pair) = near.next() else { continue };
            let pair = pair?;
            PairRow {
                a: pair.a,
                b: pair.b,
                shared: u64::from(pair.shared),
                resemblance: pair.resemblance(),
                containment_a: pair.containment_a(),
                containment_b: pair.containment_b(),
                method,
            }
        };
        staging.pairs()?.push(&row)?;
    }
}

struct TableSink<'a> {
    staging: &'a mut Staging,
    for_report: bool,
    summary: ClusterSummary,
    /// The cluster that is being written, and its smallest document.
    original: Option<(ClusterId, DocId)>,
    /// Every document in a cluster, with the smallest of it.
    rows: levels::Rows,
    /// A document of each crowd.
    crowds: Bits,
    /// Whether the cluster that is being written has one of them.
    is_crowded: bool,
}

impl ClusterSink for TableSink<'_> {
    fn member(&mut self, row: ClusterRow) -> Result<(), SimilarError> {
        let original = match self.original {
            Some((cluster, original)) if cluster == row.cluster => original,
            _ => {
                self.is_crowded = false;
                row.doc
            }
        };
        if self.crowds.get(row.doc) && !std::mem::replace(&mut self.is_crowded, true) {
            self.summary.crowded += 1;
        }
        self.original = Some((row.cluster, original));
        self.rows.push((row.doc, original))?;
        if self.for_report { Ok(()) } else { Ok(self.staging.clusters()?.push(&row)?) }
    }

    fn cluster(&mut self, row: ClusterStatsRow) -> Result<(), SimilarError> {
        self.summary.add(&row);
        if self.for_report { Ok(()) } else { Ok(self.staging.cluster_stats()?.push(&row)?) }
    }
}

/// Shingle paragraphs: pairs at a share, and the counts of Pereira et al. 2006, tables 2 and 3.
pub(super) fn paragraphs(
    sets: &ChunkSets,
    documents: u64,
    share: f64,
    resources: &Resources,
    equal: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<ParagraphSummary, SimilarError> {
    let equal = duplicates(sets, documents, resources, equal)?;
    // All percentages in one go: those of the paper, and the one asked for.
    let mut shares = vec![0.9, 0.7, 0.5];
    if !shares.contains(&share) {
        shares.push(share);
    }
    let bound = Bound::Share(share);
    let near = near_duplicates(sets, documents, &shares, resources, &mut |pair| {
        if bound.holds(pair.shared, pair.size_a, pair.size_b) { emit(pair) } else { Ok(()) }
    })?;
    let percent = |share: f64| (share * 100.0).round() as u32;
    Ok(ParagraphSummary {
        steps: near.steps,
        documents: near.documents,
        duplicates: equal.duplicates,
        near: near.levels.iter().map(|level| (percent(level.share), level.near_duplicates())).collect(),
    })
}

/// A stored pair with its sizes, which follow from what is shared of each.
fn pair_of(row: &PairRow) -> SharedPair {
    let size = |containment: f64| {
        if containment > 0.0 { (row.shared as f64 / containment).round() as u32 } else { 0 }
    };
    SharedPair {
        a: row.a,
        b: row.b,
        shared: u32::try_from(row.shared).unwrap_or(u32::MAX),
        size_a: size(row.containment_a),
        size_b: size(row.containment_b),
    }
}

/// Another clustering of the pairs that an atlas has.
#[derive(Clone, Debug)]
pub struct Reclustering {
    /// How pairs become clusters.
    pub clustering: Clustering,
    /// Only pairs at this and above: a resemblance, or a number of chunks where pairs were found by
    /// overlap. `None` for all.
    pub threshold: Option<f64>,
    /// Which document stands for its cluster.
    pub survivor: Survivor,
}

/// Makes clusters from the stored pairs, without going back to chunks or texts.
///
/// For clusters of transitive members that form no pair with the centre, the resemblance is told
/// as 0.
pub fn recluster(
    atlas: &Atlas,
    wanted: &Reclustering,
    resources: &Resources,
    sink: &mut dyn ClusterSink,
) -> Result<(), SimilarError> {
    let stored = atlas.record::<SimilarRecord>()?.and_then(|similar| similar.search.threshold());
    if let (Some(wanted), Some(stored)) = (wanted.threshold, stored)
        && wanted < stored
    {
        return Err(SimilarError::BelowStored { stored, wanted });
    }
    let documents = atlas.table(&TableName::Documents)?.rows;
    // Copies again from the documents: a pair does not say which of the two is the centre. Eight
    // bytes per copy.
    let mut copies = Vec::new();
    exact_copies(atlas, resources, |doc, centre| {
        copies.push((doc, centre));
        Ok(())
    })?;
    let threshold = wanted.threshold.unwrap_or(0.0);
    let pairs = || -> Result<Rows<'_, SharedPair>, SimilarError> {
        let rows = atlas.pairs()?.filter_map(move |row| match row {
            Err(error) => Some(Err(error.into())),
            Ok(row) => {
                let value = match row.method {
                    Method::Exact => return None,
                    Method::Overlap => row.shared as f64,
                    Method::Paragraphs => row.containment_a.min(row.containment_b),
                    _ => row.resemblance,
                };
                (value >= threshold).then(|| Ok(pair_of(&row)))
            }
        });
        Ok(Box::new(rows))
    };
    let input = ClusterInput {
        clustering: wanted.clustering,
        documents,
        copies: &|| Ok(Box::new(copies.iter().map(|copy| Ok(*copy)))),
        pairs: &pairs,
        attributes: &|| wanted.survivor.attributes(atlas, resources),
        ranked: wanted.survivor.ranks(),
        sets: None,
    };
    cluster(&input, resources, sink)
}
