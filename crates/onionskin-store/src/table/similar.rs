//! Rows of what a search for duplicates leaves: `pairs`, `clusters`, `cluster_stats`.

#![cfg_attr(feature = "openapi", allow(unused_qualifications, reason = "what utoipa writes has them"))]

use arrow_array::ArrayRef;
use onionskin_core::{ClusterId, DocId};
use serde::Serialize;

use super::TableError;
use super::row::{BATCH, Cell, Row, Selection, handles, rows};
use super::typed::Columns;
use super::words::{CopyKind, Method};
use crate::schema::Table;

handles! {
    "pairs": PairsWriter, PairsReader of PairRow;
    "clusters": ClustersWriter, ClustersReader of ClusterRow;
    "cluster_stats": ClusterStatsWriter, ClusterStatsReader of ClusterStatsRow;
}

rows! {
    Pairs by a: DocId, b: DocId in batches of BATCH:
    /// Two similar documents, verified.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    struct PairRow {
        /// The smaller document.
        #[cfg_attr(feature = "openapi", schema(value_type = u32))]
        a: DocId,
        /// The larger document.
        #[cfg_attr(feature = "openapi", schema(value_type = u32))]
        b: DocId,
        /// Chunks that both have.
        shared: u64,
        /// Shared of all chunks of the two.
        resemblance: f64,
        /// Shared of the chunks of `a`.
        containment_a: f64,
        /// Shared of the chunks of `b`.
        containment_b: f64,
        /// What found it.
        method: Method,
    }

    Clusters by cluster: ClusterId, doc: DocId in batches of BATCH:
    /// A member of a cluster.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    struct ClusterRow {
        /// Number of the cluster: dense, in order of the smallest document.
        #[cfg_attr(feature = "openapi", schema(value_type = u32))]
        cluster: ClusterId,
        /// The document.
        #[cfg_attr(feature = "openapi", schema(value_type = u32))]
        doc: DocId,
        /// Whether it is the centre.
        is_centre: bool,
        /// Its resemblance to the centre; 1 for the centre.
        resemblance_to_centre: f64,
        /// How it is a copy of the centre.
        kind: CopyKind,
    }

    ClusterStats by cluster: ClusterId in batches of BATCH:
    /// A cluster in numbers.
    #[derive(Clone, Copy, Debug, PartialEq, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    struct ClusterStatsRow {
        /// Number of the cluster.
        #[cfg_attr(feature = "openapi", schema(value_type = u32))]
        cluster: ClusterId,
        /// Its centre.
        #[cfg_attr(feature = "openapi", schema(value_type = u32))]
        centre: DocId,
        /// Members, the centre included.
        documents: u64,
        /// Members that are exact copies of the centre, the centre not counted.
        exact_copies: u64,
        /// Different sites of its members; documents without a site count as one.
        sites: u64,
        /// Members on the site of the centre, the centre not counted.
        same_site: u64,
        /// Members on other sites.
        cross_site: u64,
        /// The lowest resemblance to the centre.
        lowest_resemblance: f64,
    }
}
