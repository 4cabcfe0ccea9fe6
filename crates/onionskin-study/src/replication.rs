//! How often documents are replicated, and where (Shivakumar and Garcia-Molina 1998, figure 1;
//! Pereira et al. 2006, tables 2 to 6).
//!
//! The naive way keeps the members of every cluster. Here documents in clusters come sorted by
//! cluster, site and number, once, and everything is counted as they go by: one cluster at a time,
//! and of that only how many documents each of its sites has.

use std::collections::{BTreeMap, BinaryHeap};

use onionskin_core::{DocId, SiteId};

use crate::graph::Part;
use crate::growth::{Growth, subcollection};

/// Lower ends of the classes by number of replicas, the document itself counted (Shivakumar and
/// Garcia-Molina 1998, figure 1).
pub const REPLICA_CLASSES: [u64; 8] = [1, 2, 3, 6, 11, 101, 1_001, 10_001];
/// Lower ends of the classes of clusters by size.
pub const SIZE_CLASSES: [u64; 5] = [2, 3, 11, 101, 1_001];
/// Large clusters that are kept with their originals.
const LARGEST: usize = 20;

/// The name of a class: `3 to 5`, `10,001 and more`.
pub fn class_name(classes: &[u64], at: usize) -> String {
    use onionskin_core::format::grouped;
    match (classes.get(at), classes.get(at + 1)) {
        (Some(low), Some(next)) if *next == low + 1 => grouped(*low),
        (Some(low), Some(next)) => format!("{} to {}", grouped(*low), grouped(next - 1)),
        (Some(low), None) => format!("{} and more", grouped(*low)),
        (None, _) => String::new(),
    }
}

fn class_of(classes: &[u64], value: u64) -> usize {
    classes.partition_point(|low| *low <= value).saturating_sub(1)
}

/// A document of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The document.
    pub doc: DocId,
    /// Its site.
    pub site: Option<SiteId>,
    /// Whether a crawl reaches it.
    pub connected: bool,
    /// Its part of the bow tie.
    pub part: Part,
    /// Whether it has a text of its own.
    pub has_text: bool,
    /// Its length.
    pub bytes: u64,
}

/// Documents of a web, or of a part of it, and the clusters among them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartCounts {
    /// Documents that can have copies.
    pub documents: u64,
    /// Documents in clusters.
    pub clustered: u64,
    /// Clusters: of two and more documents.
    pub clusters: u64,
    /// Clusters by size.
    pub sizes: BTreeMap<u64, u64>,
}

impl PartCounts {
    /// Documents in clusters but one of each (Pereira et al. 2006, definition 4).
    pub fn duplicates(&self) -> u64 {
        self.clustered - self.clusters
    }

    /// Documents in no cluster.
    pub fn unique(&self) -> u64 {
        self.documents - self.clustered
    }

    /// What is worth having: unique documents, and one of each cluster.
    pub fn useful(&self) -> u64 {
        self.unique() + self.clusters
    }

    /// Duplicates of all documents.
    pub fn duplicate_share(&self) -> f64 {
        share(self.duplicates(), self.documents)
    }

    /// Documents by the number of their replicas, themselves counted, in [`REPLICA_CLASSES`].
    pub fn by_replicas(&self) -> [u64; REPLICA_CLASSES.len()] {
        let mut classes = [0; REPLICA_CLASSES.len()];
        classes[0] = self.unique();
        for (size, clusters) in &self.sizes {
            classes[class_of(&REPLICA_CLASSES, *size)] += size * clusters;
        }
        classes
    }

    fn add(&mut self, size: u64) {
        if size >= 2 {
            self.clustered += size;
            self.clusters += 1;
            *self.sizes.entry(size).or_insert(0) += 1;
        }
    }
}

/// A part of a whole; 0 of nothing.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Clusters of a class of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassCounts {
    /// Clusters.
    pub clusters: u64,
    /// Their documents.
    pub documents: u64,
    /// Clusters whose documents are all on one site.
    pub one_site: u64,
    /// Duplicates on the site of their original.
    pub same_site_duplicates: u64,
    /// Duplicates on other sites.
    pub cross_site_duplicates: u64,
}

/// A cluster worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LargeCluster {
    /// Its documents.
    pub documents: u64,
    /// The other way round, so that the largest with the smallest original comes first.
    original: std::cmp::Reverse<DocId>,
    /// Sites they are on.
    pub sites: u64,
}

impl LargeCluster {
    /// The document it stands under.
    pub fn original(&self) -> DocId {
        self.original.0
    }
}

/// A site and what of it is copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteCounts {
    /// Documents of the site.
    pub documents: u32,
    /// In clusters.
    pub clustered: u32,
    /// In clusters that reach other sites.
    pub elsewhere: u32,
    /// Duplicates: not the original of their cluster.
    pub duplicates: u32,
}

/// What is copied at one level of likeness.
#[derive(Clone, Debug)]
pub struct LevelCounts {
    /// All documents.
    pub whole: PartCounts,
    /// Those that a crawl reaches, clusters cut down to them.
    pub connected: PartCounts,
    /// The others, likewise.
    pub disconnected: PartCounts,
    /// Clusters with at least one document that a crawl reaches.
    pub clusters_reached: u64,
    /// Clusters of the whole with one document in each part: the two parts have neither.
    pub clusters_lost: u64,
    /// Documents in clusters by part of the bow tie.
    pub by_part: [u64; Part::ALL.len()],
    /// Bytes of all documents in clusters but the originals.
    pub duplicate_bytes: u64,
    /// Clusters by size, in [`SIZE_CLASSES`].
    pub classes: [ClassCounts; SIZE_CLASSES.len()],
    /// The largest clusters, largest first.
    pub largest: Vec<LargeCluster>,
    /// How clusters and duplicates would be found by and by.
    pub growth: Growth,
}

impl LevelCounts {
    /// Unique documents that a crawl reaches.
    pub fn unique_reached(&self) -> u64 {
        // In a cluster of the whole, cut down to one in the part, a document is not unique.
        let single = self.connected.documents - self.connected.clustered;
        single - self.lone_connected()
    }

    /// Documents that a crawl reaches and that are alone there of their cluster.
    fn lone_connected(&self) -> u64 {
        self.clusters_reached - self.connected.clusters
    }

    /// Useful documents that a crawl covers: unique ones, and clusters it has a document of.
    pub fn useful_reached(&self) -> u64 {
        self.unique_reached() + self.clusters_reached
    }
}

/// Counts clusters of one level as their documents come by.
#[derive(Debug)]
pub struct Tally {
    counts: LevelCounts,
    seed: u64,
    of: u32,
    sites: Option<Vec<SiteCounts>>,
    largest: BinaryHeap<std::cmp::Reverse<LargeCluster>>,
    open: Option<Open>,
}

/// The cluster that is coming by.
#[derive(Debug, Default)]
struct Open {
    original: DocId,
    size: u64,
    connected: u64,
    bytes: u64,
    /// Of the original.
    kept_bytes: u64,
    /// Documents on each site, and whether the original is there.
    sites: Vec<(Option<SiteId>, u32, bool)>,
    first: u32,
}

impl Tally {
    /// Begins. `texts` and `connected_texts` are documents that have a text, everywhere and where a
    /// crawl comes; subcollections are `of` many, drawn by `seed`.
    pub fn new(texts: u64, connected_texts: u64, of: u32, seed: u64) -> Tally {
        let documents = |documents: u64| PartCounts { documents, ..PartCounts::default() };
        Tally {
            counts: LevelCounts {
                whole: documents(texts),
                connected: documents(connected_texts),
                disconnected: documents(texts.saturating_sub(connected_texts)),
                clusters_reached: 0,
                clusters_lost: 0,
                by_part: [0; Part::ALL.len()],
                duplicate_bytes: 0,
                classes: [ClassCounts::default(); SIZE_CLASSES.len()],
                largest: Vec::new(),
                growth: Growth::new(texts, of),
            },
            seed,
            of,
            sites: None,
            largest: BinaryHeap::new(),
            open: None,
        }
    }

    /// Also counts by site, into these.
    pub fn with_sites(mut self, sites: Vec<SiteCounts>) -> Tally {
        self.sites = Some(sites);
        self
    }

    /// A document of the cluster of `original`. All of one cluster come one after the other, and in
    /// it all of one site.
    pub fn member(&mut self, original: DocId, member: Member) {
        if self.open.as_ref().is_some_and(|open| open.original != original) {
            self.close();
        }
        let counts = &mut self.counts;
        if !member.has_text {
            // A record that only says that a text was met again: no document of its own until it is
            // a copy.
            counts.whole.documents += 1;
            let part = if member.connected { &mut counts.connected } else { &mut counts.disconnected };
            part.documents += 1;
        }
        counts.by_part[member.part as usize] += 1;
        let open = self.open.get_or_insert_with(|| Open { original, first: u32::MAX, ..Open::default() });
        open.size += 1;
        open.connected += u64::from(member.connected);
        open.bytes += member.bytes;
        open.first = open.first.min(subcollection(member.doc, self.of, self.seed));
        let is_original = member.doc == original;
        if is_original {
            open.kept_bytes = member.bytes;
        }
        match open.sites.last_mut() {
            Some((site, n, has_original)) if *site == member.site => {
                *n += 1;
                *has_original |= is_original;
            }
            _ => open.sites.push((member.site, 1, is_original)),
        }
    }

    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        // A document that is alone is no cluster, whoever says so.
        if open.size < 2 {
            return;
        }
        let counts = &mut self.counts;
        let disconnected = open.size - open.connected;
        counts.whole.add(open.size);
        counts.connected.add(open.connected);
        counts.disconnected.add(disconnected);
        counts.clusters_reached += u64::from(open.connected > 0);
        counts.clusters_lost += u64::from(open.connected == 1 && disconnected == 1);
        counts.duplicate_bytes += open.bytes - open.kept_bytes;
        counts.growth.add(open.size, open.first);
        let class = &mut counts.classes[class_of(&SIZE_CLASSES, open.size)];
        let same = open.sites.iter().find(|(_, _, here)| *here).map_or(0, |(_, n, _)| u64::from(*n - 1));
        class.clusters += 1;
        class.documents += open.size;
        class.one_site += u64::from(open.sites.len() == 1);
        class.same_site_duplicates += same;
        class.cross_site_duplicates += open.size - 1 - same;
        if let Some(sites) = &mut self.sites {
            for (site, n, has_original) in &open.sites {
                if let Some(counts) = site.and_then(|site| sites.get_mut(site.index())) {
                    counts.clustered += n;
                    counts.elsewhere += if open.sites.len() > 1 { *n } else { 0 };
                    counts.duplicates += n - u32::from(*has_original);
                }
            }
        }
        let large = LargeCluster {
            documents: open.size,
            original: std::cmp::Reverse(open.original),
            sites: open.sites.len() as u64,
        };
        self.largest.push(std::cmp::Reverse(large));
        if self.largest.len() > LARGEST {
            self.largest.pop();
        }
    }

    /// What was counted, and by site where that was asked for.
    pub fn finish(mut self) -> (LevelCounts, Vec<SiteCounts>) {
        self.close();
        self.counts.growth.set_documents(self.counts.whole.documents);
        let mut largest: Vec<LargeCluster> = self.largest.into_iter().map(|large| large.0).collect();
        largest.sort_unstable_by(|a, b| b.cmp(a));
        self.counts.largest = largest;
        (self.counts, self.sites.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests;
