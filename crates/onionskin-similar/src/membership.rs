//! Which cluster a document belongs to, in order of documents.
//!
//! The tables of an atlas hold clusters one after the other; whoever walks through the documents
//! wants to know of each whether it has copies. The naive way loads all clusters into a map by
//! document, which takes memory in proportion to the copies. Here the rows are sorted by document
//! within a budget, and read beside the documents.

use std::path::Path;

use crate::cluster::{ClusterSink, Clustering};
use crate::{Resources, SimilarError};
use onionskin_core::{ClusterId, DocId};
use onionskin_store::join::SortedCursor;
use onionskin_store::sort::{Record, SortError, SortParams, SortedStream, Sorter};
use onionskin_store::table::{ClusterRow, ClusterStatsRow, CopyKind};
use onionskin_store::{Atlas, AtlasError, MemoryBudget, TableError, TableName};

use crate::{Reclustering, SimilarRecord, recluster};

/// A document that has copies, or is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Membership {
    /// The document.
    pub doc: DocId,
    /// Its cluster.
    pub cluster: ClusterId,
    /// Members of the cluster, this one included.
    pub size: u32,
    /// The member that stands for the others.
    pub centre: DocId,
    /// Resemblance to the centre; 1 for the centre itself.
    pub resemblance: f64,
    /// How it is a copy of the centre.
    pub kind: CopyKind,
}

/// Why memberships could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MembershipError {
    /// The atlas has no clusters, or they cannot be read.
    #[error("{0}{hint}", hint = if matches!(**.0, AtlasError::NoTable { .. }) { "\nhint: run `onionskin similar` on it first" } else { "" })]
    Atlas(Box<AtlasError>),
    /// A table is damaged.
    #[error(transparent)]
    Table(Box<TableError>),
    /// Sorting failed.
    #[error(transparent)]
    Sort(Box<SortError>),
    /// The clusters are chains.
    #[error(
        "the clusters are transitive: their members need not resemble the one that is kept\nhint: anything that deletes uses centred clusters; run the search again with centred clusters, or only annotate"
    )]
    Transitive,
    /// Clusters could not be made from pairs.
    #[error(transparent)]
    Similar(Box<SimilarError>),
    /// The two tables do not belong together.
    #[error("cluster {cluster}: `clusters` and `cluster_stats` disagree: {problem}")]
    Disagree {
        /// The cluster.
        cluster: ClusterId,
        /// About what.
        problem: &'static str,
    },
}

onionskin_store::boxed_sources!(MembershipError: Atlas(AtlasError), Table(TableError), Sort(SortError));

impl From<SimilarError> for MembershipError {
    fn from(error: SimilarError) -> MembershipError {
        match error {
            // Told like any other missing table.
            SimilarError::Atlas(error) => MembershipError::Atlas(error),
            other => MembershipError::Similar(Box::new(other)),
        }
    }
}

/// A membership in integers, so that its order is total: by document first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Packed {
    doc: DocId,
    cluster: ClusterId,
    size: u32,
    centre: DocId,
    resemblance: u64,
    is_near: bool,
}

impl Record for Packed {
    const BYTES: usize = 25;

    fn put(&self, out: &mut [u8]) {
        let ids = [self.doc.get(), self.cluster.get(), self.size, self.centre.get()];
        for (id, place) in ids.iter().zip(out.chunks_exact_mut(4)) {
            place.copy_from_slice(&id.to_le_bytes());
        }
        out[16..24].copy_from_slice(&self.resemblance.to_le_bytes());
        out[24] = u8::from(self.is_near);
    }

    fn get(bytes: &[u8]) -> Packed {
        let id = |at: usize| u32::get(&bytes[4 * at..4 * at + 4]);
        Packed {
            doc: DocId(id(0)),
            cluster: ClusterId(id(1)),
            size: id(2),
            centre: DocId(id(3)),
            resemblance: u64::get(&bytes[16..24]),
            is_near: bytes[24] != 0,
        }
    }
}

/// The memberships of an atlas, ascending by document.
#[derive(Debug)]
pub struct Memberships {
    sorted: SortedStream<Packed>,
}

impl Iterator for Memberships {
    type Item = Result<Membership, MembershipError>;

    fn next(&mut self) -> Option<Result<Membership, MembershipError>> {
        let packed = match self.sorted.next()? {
            Ok(packed) => packed,
            Err(error) => return Some(Err(error.into())),
        };
        Some(Ok(Membership {
            doc: packed.doc,
            cluster: packed.cluster,
            size: packed.size,
            centre: packed.centre,
            resemblance: f64::from_bits(packed.resemblance),
            kind: if packed.is_near { CopyKind::Near } else { CopyKind::Exact },
        }))
    }
}

/// Whether the clusters of an atlas are everything that pairs connect.
///
/// # Errors
///
/// When what the manifest says of the search cannot be read.
pub fn is_transitive(atlas: &Atlas) -> Result<bool, MembershipError> {
    let similar = atlas.record::<SimilarRecord>()?.unwrap_or_default();
    Ok(similar.search.cluster == Some(Clustering::Transitive))
}

/// Reads the tables `clusters` and `cluster_stats` of an atlas, sorting in `work_dir` what does not
/// fit into `memory`.
///
/// # Errors
///
/// When the atlas has no clusters, when they are transitive, or when the tables are damaged.
pub fn from_clusters_table(
    atlas: &Atlas,
    memory: MemoryBudget,
    work_dir: &Path,
) -> Result<Memberships, MembershipError> {
    if is_transitive(atlas)? {
        return Err(MembershipError::Transitive);
    }
    from_any_clusters_table(atlas, memory, work_dir)
}

/// The same, of transitive clusters too: for those who remove nothing.
///
/// # Errors
///
/// When the atlas has no clusters, or when the tables are damaged.
pub fn from_any_clusters_table(
    atlas: &Atlas,
    memory: MemoryBudget,
    work_dir: &Path,
) -> Result<Memberships, MembershipError> {
    let mut params = SortParams::new(work_dir, memory);
    params.expected_records = Some(atlas.table(&TableName::Clusters)?.rows);
    let mut sorter = Sorter::new(params)?;
    let mut stats = atlas.cluster_stats()?;
    let mut of: Option<Open> = None;
    for row in atlas.clusters()? {
        let row = row?;
        let open = match &mut of {
            Some(open) if open.stats.cluster == row.cluster => open,
            _ => {
                if let Some(open) = of.take() {
                    open.finish()?;
                }
                let disagree = || MembershipError::Disagree {
                    cluster: row.cluster,
                    problem: "which clusters there are",
                };
                let stats = stats.next().transpose()?.filter(|stats| stats.cluster == row.cluster);
                of.insert(Open { stats: stats.ok_or_else(disagree)?, members: 0, centres: 0 })
            }
        };
        open.members += 1;
        if row.is_centre != (row.doc == open.stats.centre) {
            return Err(MembershipError::Disagree { cluster: row.cluster, problem: "the centre" });
        }
        open.centres += u64::from(row.is_centre);
        sorter.push(Packed {
            doc: row.doc,
            cluster: row.cluster,
            size: u32::try_from(open.stats.documents).unwrap_or(u32::MAX),
            centre: open.stats.centre,
            resemblance: row.resemblance_to_centre.to_bits(),
            is_near: row.kind == CopyKind::Near,
        })?;
    }
    if let Some(open) = of {
        open.finish()?;
    }
    if let Some(row) = stats.next().transpose()? {
        return Err(MembershipError::Disagree { cluster: row.cluster, problem: "which clusters there are" });
    }
    Ok(Memberships { sorted: sorter.finish()? })
}

/// Makes clusters anew from the table `pairs`, under another threshold or survivor rule, without
/// going back to chunks or texts.
///
/// # Errors
///
/// When the atlas has no pairs, when pairs were kept from a higher threshold on only, when the
/// clusters asked for are transitive, or when the tables are damaged.
pub fn from_pairs(
    atlas: &Atlas,
    wanted: &Reclustering,
    memory: MemoryBudget,
    work_dir: &Path,
) -> Result<Memberships, MembershipError> {
    if wanted.clustering == Clustering::Transitive {
        return Err(MembershipError::Transitive);
    }
    let sorted = |share| SortParams::new(work_dir, memory.share(share, 8));
    let mut found = Found { members: Sorter::new(sorted(2))?, clusters: Sorter::new(sorted(1))? };
    let resources = Resources { memory: memory.share(4, 8), threads: 1, work_dir: work_dir.to_owned() };
    recluster(atlas, wanted, &resources, &mut found)?;
    // The size of a cluster is known after its members.
    let mut clusters = SortedCursor::new(found.clusters.finish()?);
    let mut by_doc = Sorter::new(sorted(2))?;
    for member in found.members.finish()? {
        let (cluster, doc, resemblance, near) = member?;
        let Some((_, size, centre)) = clusters.at(cluster, |cluster| cluster.0)? else {
            return Err(MembershipError::Disagree { cluster, problem: "which clusters there are" });
        };
        by_doc.push(Packed { doc, cluster, size, centre, resemblance, is_near: near == 1 })?;
    }
    Ok(Memberships { sorted: by_doc.finish()? })
}

/// Clusters as they are made.
struct Found {
    /// Cluster, document, resemblance as bits, near.
    members: Sorter<(ClusterId, DocId, u64, u8)>,
    /// Cluster, size, centre.
    clusters: Sorter<(ClusterId, u32, DocId)>,
}

impl ClusterSink for Found {
    fn member(&mut self, row: ClusterRow) -> Result<(), SimilarError> {
        let near = u8::from(row.kind == CopyKind::Near);
        Ok(self.members.push((row.cluster, row.doc, row.resemblance_to_centre.to_bits(), near))?)
    }

    fn cluster(&mut self, row: ClusterStatsRow) -> Result<(), SimilarError> {
        let size = u32::try_from(row.documents).unwrap_or(u32::MAX);
        Ok(self.clusters.push((row.cluster, size, row.centre))?)
    }
}

/// The cluster whose rows are being read.
struct Open {
    stats: ClusterStatsRow,
    members: u64,
    centres: u64,
}

impl Open {
    /// All rows have been seen.
    fn finish(self) -> Result<(), MembershipError> {
        let cluster = self.stats.cluster;
        if self.members != self.stats.documents {
            return Err(MembershipError::Disagree { cluster, problem: "the number of members" });
        }
        if self.centres != 1 {
            return Err(MembershipError::Disagree { cluster, problem: "the centre" });
        }
        Ok(())
    }
}
