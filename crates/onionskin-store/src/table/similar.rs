//! Rows, writers and readers of what a search for copies leaves: `pairs`, `clusters`, `cluster_stats`.

#![cfg_attr(feature = "openapi", allow(unused_qualifications, reason = "what utoipa writes has them"))]

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use serde::Serialize;

use super::rows::{BATCH, ids, row_table, shares, sizes, words};
use super::typed::Columns;
use super::{Input, PartMeta, PartWriter, TableError, TableReader, ValueProblem};
use crate::schema::Table;

/// What found a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Method {
    /// Equal payload or equal canonical text.
    Exact,
    /// A number of shared chunks.
    Overlap,
    /// Resemblance of the shingle sets.
    #[default]
    Resemblance,
    /// A share of identical shingle paragraphs.
    Paragraphs,
}

/// Not a method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown method {name:?}; known are {known}", known = Method::KNOWN)]
pub struct UnknownMethod {
    /// What was given.
    pub name: String,
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 4] = [Method::Exact, Method::Overlap, Method::Resemblance, Method::Paragraphs];
    const KNOWN: &'static str = "exact, overlap, resemblance, paragraphs";

    /// The word in the table and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Exact => "exact",
            Method::Overlap => "overlap",
            Method::Resemblance => "resemblance",
            Method::Paragraphs => "paragraphs",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<Method, UnknownMethod> {
        let found = Method::ALL.into_iter().find(|method| method.as_str() == name);
        found.ok_or_else(|| UnknownMethod { name: name.to_owned() })
    }
}

/// How a member of a cluster is a copy of its centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum CopyKind {
    /// Equal payload or equal canonical text. The centre is exact too.
    Exact,
    /// Near.
    Near,
}

impl CopyKind {
    const KNOWN: &'static str = "exact, near";

    /// The word in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            CopyKind::Exact => "exact",
            CopyKind::Near => "near",
        }
    }

    fn parse(word: &str) -> Option<CopyKind> {
        [CopyKind::Exact, CopyKind::Near].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Two similar documents, verified.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PairRow {
    /// The smaller document.
    pub a: u32,
    /// The larger document.
    pub b: u32,
    /// Chunks that both have.
    pub shared: u64,
    /// Shared of all chunks of the two.
    pub resemblance: f64,
    /// Shared of the chunks of `a`.
    pub containment_a: f64,
    /// Shared of the chunks of `b`.
    pub containment_b: f64,
    /// What found it.
    pub method: Method,
}

/// A member of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClusterRow {
    /// Number of the cluster: dense, in order of the smallest document.
    pub cluster: u32,
    /// The document.
    pub doc: u32,
    /// Whether it is the centre.
    pub is_centre: bool,
    /// Its resemblance to the centre; 1 for the centre.
    pub resemblance_to_centre: f64,
    /// How it is a copy of the centre.
    pub kind: CopyKind,
}

/// A cluster in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ClusterStatsRow {
    /// Number of the cluster.
    pub cluster: u32,
    /// Its centre.
    pub centre: u32,
    /// Members, the centre included.
    pub documents: u64,
    /// Members that are exact copies of the centre, the centre not counted.
    pub exact_copies: u64,
    /// Different sites of its members; documents without a site count as one.
    pub sites: u64,
    /// Members on the site of the centre, the centre not counted.
    pub same_site: u64,
    /// Members on other sites.
    pub cross_site: u64,
    /// The lowest resemblance to the centre.
    pub lowest_resemblance: f64,
}

row_table!(
    Pairs,
    PairRow,
    PairsWriter,
    PairsReader,
    "pairs",
    (u32, u32),
    |row: &PairRow| (row.a, row.b),
    |rows: &[PairRow]| {
        let column = |of: fn(&PairRow) -> f64| shares(&rows.iter().map(of).collect::<Vec<_>>());
        vec![
            ids(&rows.iter().map(|row| row.a).collect::<Vec<_>>()),
            ids(&rows.iter().map(|row| row.b).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.shared).collect::<Vec<_>>()),
            column(|row| row.resemblance),
            column(|row| row.containment_a),
            column(|row| row.containment_b),
            words(rows.iter().map(|row| row.method.as_str())),
        ]
    },
    |columns: &Columns<'_>| {
        let (a, b, shared) = (columns.ids("a")?, columns.ids("b")?, columns.sizes("shared")?);
        let resemblance = columns.shares("resemblance")?;
        let containment_a = columns.shares("containment_a")?;
        let containment_b = columns.shares("containment_b")?;
        let method = columns.strings("method")?;
        let row = |i: usize| {
            Ok(PairRow {
                a: a.value(i) as u32,
                b: b.value(i) as u32,
                shared: shared.value(i) as u64,
                resemblance: resemblance.value(i),
                containment_a: containment_a.value(i),
                containment_b: containment_b.value(i),
                method: method.value(i).parse().map_err(|_| {
                    columns.place("method").wrong(ValueProblem::Word { known: Method::KNOWN })
                })?,
            })
        };
        (0..a.len()).map(row).collect()
    }
);

row_table!(
    Clusters,
    ClusterRow,
    ClustersWriter,
    ClustersReader,
    "clusters",
    (u32, u32),
    |row: &ClusterRow| (row.cluster, row.doc),
    |rows: &[ClusterRow]| {
        vec![
            ids(&rows.iter().map(|row| row.cluster).collect::<Vec<_>>()),
            ids(&rows.iter().map(|row| row.doc).collect::<Vec<_>>()),
            Arc::new(BooleanArray::from(rows.iter().map(|row| row.is_centre).collect::<Vec<_>>()))
                as ArrayRef,
            shares(&rows.iter().map(|row| row.resemblance_to_centre).collect::<Vec<_>>()),
            words(rows.iter().map(|row| row.kind.as_str())),
        ]
    },
    |columns: &Columns<'_>| {
        let (cluster, doc) = (columns.ids("cluster")?, columns.ids("doc")?);
        let is_centre = columns.typed("is_centre", |array| array.as_boolean_opt())?;
        let resemblance = columns.shares("resemblance_to_centre")?;
        let kind = columns.strings("kind")?;
        let row = |i: usize| {
            Ok(ClusterRow {
                cluster: cluster.value(i) as u32,
                doc: doc.value(i) as u32,
                is_centre: is_centre.value(i),
                resemblance_to_centre: resemblance.value(i),
                kind: CopyKind::parse(kind.value(i)).ok_or_else(|| {
                    columns.place("kind").wrong(ValueProblem::Word { known: CopyKind::KNOWN })
                })?,
            })
        };
        (0..doc.len()).map(row).collect()
    }
);

row_table!(
    ClusterStats,
    ClusterStatsRow,
    ClusterStatsWriter,
    ClusterStatsReader,
    "cluster_stats",
    (u32, u32),
    |row: &ClusterStatsRow| (row.cluster, 0),
    |rows: &[ClusterStatsRow]| {
        let count = |of: fn(&ClusterStatsRow) -> u64| sizes(&rows.iter().map(of).collect::<Vec<_>>());
        vec![
            ids(&rows.iter().map(|row| row.cluster).collect::<Vec<_>>()),
            ids(&rows.iter().map(|row| row.centre).collect::<Vec<_>>()),
            count(|row| row.documents),
            count(|row| row.exact_copies),
            count(|row| row.sites),
            count(|row| row.same_site),
            count(|row| row.cross_site),
            shares(&rows.iter().map(|row| row.lowest_resemblance).collect::<Vec<_>>()),
        ]
    },
    |columns: &Columns<'_>| {
        let (cluster, centre) = (columns.ids("cluster")?, columns.ids("centre")?);
        let (documents, exact) = (columns.sizes("documents")?, columns.sizes("exact_copies")?);
        let (sites, same) = (columns.sizes("sites")?, columns.sizes("same_site")?);
        let (cross, lowest) = (columns.sizes("cross_site")?, columns.shares("lowest_resemblance")?);
        let row = |i: usize| {
            Ok(ClusterStatsRow {
                cluster: cluster.value(i) as u32,
                centre: centre.value(i) as u32,
                documents: documents.value(i) as u64,
                exact_copies: exact.value(i) as u64,
                sites: sites.value(i) as u64,
                same_site: same.value(i) as u64,
                cross_site: cross.value(i) as u64,
                lowest_resemblance: lowest.value(i),
            })
        };
        (0..cluster.len()).map(row).collect()
    }
);
