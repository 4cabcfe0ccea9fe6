//! A cluster and its members.

use onionskin_core::{ClusterId, DocId};
use onionskin_store::table::{ClusterRow, ClusterStatsRow, DocumentBatch, DocumentsReader};
use onionskin_store::{Atlas, TableName};

use serde::Serialize;

use super::ExplainError;

/// A member of a cluster, and what the atlas knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClusterMember<'a> {
    /// Its row of `clusters`.
    #[serde(flatten)]
    pub row: ClusterRow,
    /// Its own name.
    pub id: Option<&'a str>,
    /// Its address.
    pub url: Option<&'a str>,
    /// Its title.
    pub title: Option<&'a str>,
    /// Its words.
    pub tokens: u64,
}

/// Hands out the members of a cluster in order of their number, and returns its row of
/// `cluster_stats` where there is one. Both tables are in order of document within a cluster, so
/// nothing is held in memory, however large the cluster is.
pub fn explain_cluster<E: From<ExplainError>>(
    atlas: &Atlas,
    cluster: ClusterId,
    member: &mut dyn FnMut(ClusterMember<'_>) -> Result<(), E>,
) -> Result<Option<ClusterStatsRow>, E> {
    let failed = |error: ExplainError| E::from(error);
    let stats = stats(atlas, cluster).map_err(failed)?;
    let rows = atlas.clusters().map_err(|error| failed(error.into()))?.within(cluster..=cluster);
    let mut documents = None;
    let mut batch: Option<DocumentBatch> = None;
    let mut at = 0;
    let mut found = false;
    for row in rows {
        let row = row.map_err(|error| failed(error.into()))?;
        match row.cluster.cmp(&cluster) {
            std::cmp::Ordering::Less => continue,
            std::cmp::Ordering::Greater => break,
            std::cmp::Ordering::Equal => found = true,
        }
        let documents: &mut DocumentsReader = match &mut documents {
            Some(documents) => documents,
            none => {
                let all = atlas.documents().map_err(|error| failed(error.into()))?;
                none.insert(all.within(row.doc..=DocId::MAX))
            }
        };
        loop {
            let rest =
                batch.as_ref().filter(|batch| at < batch.len() && batch.row(batch.len() - 1).doc >= row.doc);
            if let Some(batch) = rest {
                while at < batch.len() && batch.row(at).doc < row.doc {
                    at += 1;
                }
                break;
            }
            at = 0;
            batch = documents.next_batch().map_err(|error| failed(error.into()))?;
            if batch.is_none() {
                break;
            }
        }
        let document = batch.as_ref().filter(|batch| at < batch.len()).map(|batch| batch.row(at));
        let document = document.filter(|document| document.doc == row.doc).unwrap_or_default();
        let (id, url, title) = (document.id, document.url, document.title);
        member(ClusterMember { row, id, url, title, tokens: document.tokens })?;
    }
    if found {
        return Ok(stats);
    }
    let clusters = count(atlas).map_err(failed)?;
    Err(failed(ExplainError::NoCluster { cluster, clusters }))
}

fn stats(atlas: &Atlas, cluster: ClusterId) -> Result<Option<ClusterStatsRow>, ExplainError> {
    if !atlas.has(&TableName::ClusterStats) {
        return Ok(None);
    }
    for row in atlas.cluster_stats()?.within(cluster..=cluster) {
        let row = row?;
        if row.cluster == cluster {
            return Ok(Some(row));
        }
    }
    Ok(None)
}

fn count(atlas: &Atlas) -> Result<u64, ExplainError> {
    if atlas.has(&TableName::ClusterStats) {
        return Ok(atlas.table(&TableName::ClusterStats)?.rows);
    }
    let mut last = None;
    for row in atlas.clusters()? {
        last = Some(row?.cluster);
    }
    Ok(last.map_or(0, |last| u64::from(last) + 1))
}
