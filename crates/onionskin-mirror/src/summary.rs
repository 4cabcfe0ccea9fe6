//! The link summary: for every two trivial clusters that are linked, how many pages take part (Cho
//! et al. 2000, figure 8).
//!
//! The naive way joins links with clusters twice and counts distinct values in hash sets, one for
//! each pair of clusters. Here a link becomes a record (from cluster, to cluster, source,
//! destination); sorting brings each pair of clusters together, with sources in order, so that
//! counting them takes one number. Destinations of one pair are gathered and sorted by themselves;
//! a pair with more of them than fit goes through a second sort.

use onionskin_core::DocId;
use onionskin_similar::{Resources, SimilarError};
use onionskin_store::sort::{SortParams, Sorter};

/// Two trivial clusters of which the first links to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkSummary {
    /// The cluster that links.
    pub from: DocId,
    /// The cluster that is linked to.
    pub to: DocId,
    /// Pages of `from` that link to at least one page of `to`: s.
    pub sources: u32,
    /// Pages of `to` that are linked from at least one page of `from`: d.
    pub destinations: u32,
}

/// What it has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SummaryStats {
    /// Links that were counted.
    pub links: u64,
    /// Pairs of clusters.
    pub pairs: u64,
    /// Bytes that sorting wrote to disk.
    pub spilled_bytes: u64,
}

/// Takes links in any order.
#[derive(Debug)]
pub struct Summarizer {
    links: Sorter<((DocId, DocId), (u32, u32))>,
    resources: Resources,
}

impl Summarizer {
    /// No links yet.
    pub fn new(resources: &Resources) -> Result<Summarizer, SimilarError> {
        let sort = SortParams::new(&resources.work_dir, resources.memory.share(3, 4)).dedup();
        Ok(Summarizer { links: Sorter::new(sort)?, resources: resources.clone() })
    }

    /// A link between pages of two clusters, known by their smallest documents. Source and
    /// destination are numbers of what is counted.
    #[inline]
    pub fn push(
        &mut self,
        (from, to): (DocId, DocId),
        (source, destination): (u32, u32),
    ) -> Result<(), SimilarError> {
        Ok(self.links.push(((from, to), (source, destination)))?)
    }

    /// Every pair of clusters once, in order.
    pub fn finish(
        self,
        mut emit: impl FnMut(LinkSummary) -> Result<(), SimilarError>,
    ) -> Result<SummaryStats, SimilarError> {
        let links = self.links.finish()?;
        let mut stats =
            SummaryStats { spilled_bytes: links.stats().spilled_bytes, ..SummaryStats::default() };
        let mut destinations = Distinct::new(&self.resources.share(1, 4));
        let mut current: Option<(LinkSummary, u32)> = None;
        for link in links {
            let ((from, to), (source, destination)) = link?;
            stats.links += 1;
            match &mut current {
                Some((summary, last)) if (summary.from, summary.to) == (from, to) => {
                    summary.sources += u32::from(*last != source);
                    *last = source;
                }
                _ => {
                    if let Some((mut summary, _)) = current.take() {
                        summary.destinations = destinations.count(&mut stats)?;
                        stats.pairs += 1;
                        emit(summary)?;
                    }
                    current = Some((LinkSummary { from, to, sources: 1, destinations: 0 }, source));
                }
            }
            destinations.push(destination)?;
        }
        if let Some((mut summary, _)) = current {
            summary.destinations = destinations.count(&mut stats)?;
            stats.pairs += 1;
            emit(summary)?;
        }
        Ok(stats)
    }
}

/// Counts distinct numbers in a part of the memory.
#[derive(Debug)]
struct Distinct {
    held: Vec<u32>,
    most: usize,
    overflow: Option<Sorter<u32>>,
    resources: Resources,
}

impl Distinct {
    fn new(resources: &Resources) -> Distinct {
        // Half for what is held, half for the second sort.
        let most = (resources.memory.len() / 8).max(16);
        Distinct { held: Vec::new(), most, overflow: None, resources: resources.share(1, 2) }
    }

    #[inline]
    fn push(&mut self, value: u32) -> Result<(), SimilarError> {
        self.held.push(value);
        if self.held.len() == self.most { self.shrink() } else { Ok(()) }
    }

    #[cold]
    fn shrink(&mut self) -> Result<(), SimilarError> {
        self.held.sort_unstable();
        self.held.dedup();
        if self.held.len() > self.most / 2 {
            let sorter = match &mut self.overflow {
                Some(sorter) => sorter,
                empty => {
                    let sort = SortParams::new(&self.resources.work_dir, self.resources.memory).dedup();
                    empty.insert(Sorter::new(sort)?)
                }
            };
            sorter.push_slice(&self.held)?;
            self.held.clear();
        }
        Ok(())
    }

    /// How many there were; begins anew.
    fn count(&mut self, stats: &mut SummaryStats) -> Result<u32, SimilarError> {
        let count = match self.overflow.take() {
            None => {
                self.held.sort_unstable();
                self.held.dedup();
                self.held.len()
            }
            Some(mut sorter) => {
                sorter.push_slice(&self.held)?;
                let sorted = sorter.finish()?;
                stats.spilled_bytes += sorted.stats().spilled_bytes;
                let mut count = 0;
                for value in sorted {
                    value?;
                    count += 1;
                }
                count
            }
        };
        self.held.clear();
        Ok(u32::try_from(count).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests;
