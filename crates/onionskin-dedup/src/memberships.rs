//! Which clusters decide: those of the atlas, or others made anew from its pairs.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use onionskin_similar::cluster::Clustering;
use onionskin_similar::membership::{
    MembershipError, Memberships, from_any_clusters_table, from_clusters_table, from_pairs, is_transitive,
};
use onionskin_similar::{Reclustering, SimilarRecord};
use onionskin_store::Atlas;
use onionskin_store::table::Method;

use crate::{DedupError, DedupParams, Duplicates};

/// Where memberships are sorted. The directory is made only where the sort does not fit into
/// memory, and goes with this value; so does what a killed run has left there.
pub(crate) struct SortDir(PathBuf);

impl SortDir {
    /// Beside the results, where there is room for them; where nothing is written, among the
    /// temporary files.
    pub(crate) fn new(params: &DedupParams) -> SortDir {
        SortDir(match params.output.file_name() {
            Some(name) if !params.dry_run => {
                let mut hidden = OsString::from(".");
                hidden.push(name);
                hidden.push(".sort");
                params.output.with_file_name(hidden)
            }
            _ => std::env::temp_dir().join(format!("onionskin-sort-{}", std::process::id())),
        })
    }
}

impl Drop for SortDir {
    fn drop(&mut self) {
        // Nearly always there is none.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The memberships that `params` ask for, ascending by document, and what they allow to do. Members
/// of transitive clusters need not resemble the one that would stay, so they are only noted.
pub(crate) fn memberships(
    params: &DedupParams,
    atlas: &Atlas,
    work_dir: &SortDir,
) -> Result<(Memberships, Duplicates), DedupError> {
    let memory = params.membership_memory();
    let mut duplicates = Duplicates::Go;
    let found = match reclustering(params, atlas)? {
        Some(wanted) => from_pairs(atlas, &wanted, memory, &work_dir.0),
        None if params.only_notes() && is_transitive(atlas).map_err(failed)? => {
            duplicates = Duplicates::Stay;
            from_any_clusters_table(atlas, memory, &work_dir.0)
        }
        None => from_clusters_table(atlas, memory, &work_dir.0),
    };
    Ok((found.map_err(failed)?, duplicates))
}

fn failed(error: MembershipError) -> DedupError {
    DedupError::Memberships(Box::new(error))
}

/// What is asked of clusters that the atlas does not have; `None` where those of the atlas will do.
fn reclustering(params: &DedupParams, atlas: &Atlas) -> Result<Option<Reclustering>, DedupError> {
    if params.threshold.is_none() && params.survivor.is_none() {
        return Ok(None);
    }
    let search = atlas.record::<SimilarRecord>()?.unwrap_or_default().search;
    if let Some(threshold) = params.threshold {
        let by_overlap = search.method == Some(Method::Overlap);
        let fits = if by_overlap {
            threshold.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&threshold)
        } else {
            threshold > 0.0 && threshold <= 1.0
        };
        if !fits {
            return Err(DedupError::Threshold { threshold, by_overlap });
        }
    }
    if let Some(survivor) = &params.survivor {
        survivor.check(atlas).map_err(|error| failed(error.into()))?;
    }
    let survivor = params.survivor.clone().or(search.survivor).unwrap_or_default();
    Ok(Some(Reclustering { clustering: Clustering::Centred, threshold: params.threshold, survivor }))
}
