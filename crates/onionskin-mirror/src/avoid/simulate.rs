//! A crawl replayed against a list: what would have been fetched, and how much of that would have
//! been copies.
//!
//! CSG00 §5.1 had 48 % of the pages similar to another before, and 13 % after. A page is similar
//! when another page of the same crawl is in its cluster, so what is skipped changes what its
//! copies are: the last one left of a cluster is similar to nothing. That takes the number of pages
//! left of each cluster, and one pass over the pages gives it, since all pages of a cluster are
//! then similar or none is. Memory is 16 bytes per cluster, whatever the number of pages.

use super::{AvoidList, Matcher};
use onionskin_core::ClusterId;
use serde::Serialize;

/// A page of the crawl that is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimulatedPage<S> {
    /// Its normalised address.
    pub url: S,
    /// The cluster that it is in, numbered densely from 0; `None` when it is similar to nothing.
    pub cluster: Option<ClusterId>,
    /// Whether its text is that of the centre of its cluster; so it is for the centre itself.
    pub is_exact_copy: bool,
    /// Its size.
    pub bytes: u64,
}

/// What a crawl fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(into = "CountsAndShares")]
pub struct CrawlCounts {
    /// Pages.
    pub pages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Pages with another page of the crawl in their cluster.
    pub similar: u64,
    /// Pages with another page of the crawl in their cluster, both with the text of its centre.
    pub exact: u64,
}

impl CrawlCounts {
    /// The share of similar pages; 0 for no pages.
    pub fn similar_share(&self) -> f64 {
        share(self.similar, self.pages)
    }

    /// The share of exact copies; 0 for no pages.
    pub fn exact_share(&self) -> f64 {
        share(self.exact, self.pages)
    }
}

/// Counts as programs see them.
#[derive(Serialize)]
struct CountsAndShares {
    pages: u64,
    bytes: u64,
    similar: u64,
    similar_share: f64,
    exact: u64,
    exact_share: f64,
}

impl From<CrawlCounts> for CountsAndShares {
    fn from(counts: CrawlCounts) -> CountsAndShares {
        CountsAndShares {
            pages: counts.pages,
            bytes: counts.bytes,
            similar: counts.similar,
            similar_share: counts.similar_share(),
            exact: counts.exact,
            exact_share: counts.exact_share(),
        }
    }
}

fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

/// What one entry skips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryCounts {
    /// Pages.
    pub pages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Pages that are in no cluster.
    pub lost: u64,
}

/// A crawl with and without a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Simulation {
    /// The crawl as it was.
    pub before: CrawlCounts,
    /// What is left of it.
    pub after: CrawlCounts,
    /// Pages that are skipped.
    pub skipped: u64,
    /// Bytes that are skipped.
    pub skipped_bytes: u64,
    /// Skipped pages that were in no cluster: content that nothing else has.
    pub lost: u64,
    /// Bytes of those.
    pub lost_bytes: u64,
    /// Skipped pages that were in a cluster of which nothing is left. Something had their content,
    /// but was skipped as well.
    pub lost_with_cluster: u64,
    /// By entry, in the order of the list. A page is counted for the entry with the most special
    /// rule.
    #[serde(skip)]
    pub by_entry: Vec<EntryCounts>,
}

/// Replays a crawl, in one pass over its pages.
pub fn simulate<S, E>(
    list: &AvoidList,
    pages: impl IntoIterator<Item = Result<SimulatedPage<S>, E>>,
) -> Result<Simulation, E>
where
    S: AsRef<str>,
{
    let matcher = Matcher::new(list);
    let mut simulation =
        Simulation { by_entry: vec![EntryCounts::default(); list.entries.len()], ..Simulation::default() };
    let mut clusters: Vec<ClusterCounts> = Vec::new();
    for page in pages {
        let page = page?;
        let hit = matcher.find(page.url.as_ref());
        simulation.before.pages += 1;
        simulation.before.bytes += page.bytes;
        if let Some(cluster) = page.cluster {
            let cluster = cluster.index();
            if cluster >= clusters.len() {
                clusters.resize(cluster + 1, ClusterCounts::default());
            }
            clusters[cluster].add(page.is_exact_copy, hit.is_some());
        }
        match hit {
            None => {
                simulation.after.pages += 1;
                simulation.after.bytes += page.bytes;
            }
            Some(hit) => {
                let entry = &mut simulation.by_entry[hit.entry];
                simulation.skipped += 1;
                simulation.skipped_bytes += page.bytes;
                entry.pages += 1;
                entry.bytes += page.bytes;
                if page.cluster.is_none() {
                    simulation.lost += 1;
                    simulation.lost_bytes += page.bytes;
                    entry.lost += 1;
                }
            }
        }
    }
    let if_several = |n: u32| if n >= 2 { u64::from(n) } else { 0 };
    for cluster in &clusters {
        simulation.before.similar += if_several(cluster.all);
        simulation.before.exact += if_several(cluster.all_exact);
        simulation.after.similar += if_several(cluster.left);
        simulation.after.exact += if_several(cluster.left_exact);
        if cluster.left == 0 {
            simulation.lost_with_cluster += u64::from(cluster.all);
        }
    }
    Ok(simulation)
}

/// Pages of a cluster. 32 bits, as documents have 32-bit numbers.
#[derive(Clone, Copy, Debug, Default)]
struct ClusterCounts {
    all: u32,
    all_exact: u32,
    left: u32,
    left_exact: u32,
}

impl ClusterCounts {
    fn add(&mut self, is_exact: bool, is_skipped: bool) {
        let exact = u32::from(is_exact);
        self.all += 1;
        self.all_exact += exact;
        if !is_skipped {
            self.left += 1;
            self.left_exact += exact;
        }
    }
}

#[cfg(test)]
mod tests;
