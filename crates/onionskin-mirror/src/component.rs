//! Which trivial clusters come together, over the whole web.
//!
//! Memory: up to 42 bytes per document ([`Web::BYTES_A_DOCUMENT`]), for the cluster, the site and
//! the component of each; links are read from front to back and counted by sorting
//! ([`crate::summary`]).
//!
//! Under the paper's conditions one pass over the links decides. Under the tolerant condition a
//! pass brings together what most copies link alike; then gaps are bridged, in turns, until nothing
//! more comes together:
//!
//! ```text
//!     mirror 1:   x ──▶ q ──▶ y          q and t are different pages: x and y are copies on both sides of a break
//!     mirror 2:   x ──▶ t ──▶ y          point, and are joined when most copies of y can be reached so
//! ```

use std::cmp::Reverse;

use onionskin_core::{DocId, Packed, SiteId, UnionFind};
use onionskin_similar::components::Components;
use onionskin_similar::{Resources, SimilarError};
use onionskin_store::join::SortedCursor;
use onionskin_store::record;
use onionskin_store::sort::{SortParams, SortedStream, Sorter};

use crate::grow::{Growth, link_counts};
use crate::model::Merge;
use crate::summary::{Summarizer, SummaryStats};

/// Turns of bridging, at most. Each turn bridges over one page, so that collections this many
/// breaks deep are joined.
const MOST_TURNS: u32 = 8;

/// Components that meet at one page outside them, at most; a page that many lead to bridges
/// nothing.
const MEETING: usize = 8;

/// Documents by number: their trivial clusters and sites.
#[derive(Clone, Debug, Default)]
pub struct Web {
    /// The smallest document of the trivial cluster; the document itself where it has no copies.
    cluster: Vec<DocId>,
    /// Its site, if it has one.
    site: Vec<Packed<SiteId>>,
    /// Documents of a cluster, at its smallest document.
    size: Vec<u32>,
    /// Clusters of two documents and more, with each of their sites once, sorted.
    cluster_sites: Vec<(DocId, Packed<SiteId>)>,
}

impl Web {
    /// Bytes a document that finding components holds, at most.
    pub const BYTES_A_DOCUMENT: u64 = 42;

    /// Sites of all documents that have one, and the documents of clusters with the smallest of
    /// each.
    pub fn new(site: Vec<Packed<SiteId>>, clustered: impl IntoIterator<Item = (DocId, DocId)>) -> Web {
        let mut cluster: Vec<DocId> = DocId::range(0..site.len() as u32).collect();
        let mut size = vec![1; site.len()];
        let mut cluster_sites = Vec::new();
        for (doc, least) in clustered {
            let (at, home) = (doc.index(), least.index());
            if at >= cluster.len() || home >= cluster.len() || doc == least {
                continue;
            }
            cluster[at] = least;
            size[at] = 0;
            size[home] += 1;
            cluster_sites.push((least, site[at]));
        }
        let own: Vec<(DocId, Packed<SiteId>)> = DocId::MIN
            .onward()
            .zip(&size)
            .filter(|(_, size)| **size > 1)
            .map(|(doc, _)| (doc, site[doc.index()]))
            .collect();
        cluster_sites.extend(own);
        cluster_sites.sort_unstable();
        cluster_sites.dedup();
        Web { cluster, site, size, cluster_sites }
    }

    /// Documents.
    pub fn documents(&self) -> u32 {
        self.cluster.len() as u32
    }

    /// The trivial cluster of a document, by its smallest document.
    pub fn cluster(&self, doc: DocId) -> DocId {
        self.cluster[doc.index()]
    }

    /// The site of a document.
    pub fn site(&self, doc: DocId) -> Option<SiteId> {
        self.site[doc.index()].get()
    }

    /// Documents of a cluster.
    pub fn size(&self, cluster: DocId) -> u32 {
        self.size[cluster.index()]
    }

    /// The sites of a cluster of two documents and more.
    fn sites(&self, cluster: DocId) -> &[(DocId, Packed<SiteId>)] {
        let start = self.cluster_sites.partition_point(|entry| entry.0 < cluster);
        let here = &self.cluster_sites[start..];
        &here[..here.partition_point(|entry| entry.0 == cluster)]
    }

    fn same_site(&self, a: DocId, b: DocId) -> bool {
        self.site(a) == self.site(b) && self.site(a).is_some()
    }

    /// Whether a link is one that the paper's conditions look at.
    pub fn counts(&self, growth: Growth, source: DocId, destination: DocId) -> bool {
        if growth.single_site && (self.site(source).is_none() || self.site(destination).is_none()) {
            return false;
        }
        link_counts(growth, self.same_site(source, destination), || {
            let cluster = self.cluster(source);
            self.size(cluster) > 1
                && self.sites(cluster).binary_search(&(cluster, self.site[destination.index()])).is_ok()
        })
    }
}

/// The component of every cluster, at its smallest document, and what it has cost.
#[derive(Clone, Debug, Default)]
pub struct Found {
    component: Vec<Packed<DocId>>,
    /// The link summary.
    pub summary: SummaryStats,
    /// Pairs of clusters that the condition holds for.
    pub edges: u64,
    /// Turns of bridging.
    pub turns: u32,
    /// Components that were joined across break points.
    pub bridged: u64,
    /// Components of two clusters and more.
    pub components: u64,
}

impl Found {
    /// The component of a cluster of the web, by the smallest cluster in it; `None` for what stands
    /// alone.
    pub fn component(&self, cluster: DocId) -> Option<DocId> {
        self.component[cluster.index()].get()
    }
}

/// Links as `(source, destination)`, as often as they are asked for.
pub type OpenLinks<'a> = dyn Fn() -> Result<Box<dyn Iterator<Item = Result<(DocId, DocId), SimilarError>> + 'a>, SimilarError>
    + 'a;

/// Brings trivial clusters together by a merge condition.
pub fn components(
    web: &Web,
    links: &OpenLinks<'_>,
    growth: Growth,
    resources: &Resources,
) -> Result<Found, SimilarError> {
    let mut found = match growth.merge {
        Merge::Tolerant => tolerant(web, links, resources)?,
        _ => by_the_paper(web, links, growth, resources)?,
    };
    // What stands alone is no component; neither is one without copies.
    let n = web.documents() as usize;
    let (mut clusters, mut largest) = (vec![0u32; n], vec![0u32; n]);
    for cluster in DocId::range(0..n as u32) {
        if let Some(component) = found.component(cluster) {
            let at = component.index();
            clusters[at] += 1;
            largest[at] = largest[at].max(web.size(cluster));
        }
    }
    for component in &mut found.component {
        if component.get().is_some_and(|at| clusters[at.index()] < 2 || largest[at.index()] < 2) {
            *component = Packed::NONE;
        }
    }
    found.components = (0..n).filter(|&at| clusters[at] > 1 && largest[at] > 1).count() as u64;
    Ok(found)
}

fn by_the_paper(
    web: &Web,
    links: &OpenLinks<'_>,
    growth: Growth,
    resources: &Resources,
) -> Result<Found, SimilarError> {
    let mut summarizer = Summarizer::new(&resources.share(2, 3))?;
    for link in links()? {
        let (source, destination) = link?;
        let (from, to) = (web.cluster(source), web.cluster(destination));
        // Alone, a page can only be what copies of another link to.
        let alone = growth.merge == Merge::Strict && (web.size(from) < 2 || web.size(to) < 2);
        if from != to && !alone && web.counts(growth, source, destination) {
            summarizer.push((from, to), (source.get(), destination.get()))?;
        }
    }
    let mut united = Components::new(u64::from(web.documents()), &resources.share(1, 3))?;
    let mut edges = 0;
    let summary = summarizer.finish(|pair| {
        let (a, b) = (web.size(pair.from), web.size(pair.to));
        if growth.merge.holds(a, b, pair.sources, pair.destinations) {
            edges += 1;
            united.unite(pair.from, pair.to)?;
        }
        Ok(())
    })?;
    let mut component = vec![Packed::NONE; web.documents() as usize];
    united.finish(|cluster, least| {
        component[cluster.index()] = least.into();
        Ok(())
    })?;
    Ok(Found { component, summary, edges, ..Found::default() })
}

/// How the tolerant condition counts: copies on different sites by site, so that second addresses
/// of a page weigh nothing; copies on one site only by page.
struct Places<'w> {
    web: &'w Web,
    /// Places of a cluster, at its smallest document.
    places: Vec<u32>,
    /// Whether places are sites.
    by_site: Vec<bool>,
}

impl<'w> Places<'w> {
    fn new(web: &'w Web) -> Places<'w> {
        let mut places = web.size.clone();
        let mut by_site = vec![false; places.len()];
        for sites in web.cluster_sites.chunk_by(|a, b| a.0 == b.0) {
            if sites.len() > 1 {
                places[sites[0].0.index()] = sites.len() as u32;
                by_site[sites[0].0.index()] = true;
            }
        }
        Places { web, places, by_site }
    }

    fn of(&self, cluster: DocId) -> u32 {
        self.places[cluster.index()]
    }

    /// The number of the site, or of the document.
    fn place(&self, doc: DocId) -> u32 {
        if self.by_site[self.web.cluster(doc).index()] {
            self.web.site[doc.index()].bits()
        } else {
            doc.get()
        }
    }
}

fn tolerant(web: &Web, links: &OpenLinks<'_>, resources: &Resources) -> Result<Found, SimilarError> {
    let places = Places::new(web);
    let mut summarizer = Summarizer::new(&resources.share(2, 3))?;
    for link in links()? {
        let (source, destination) = link?;
        let (from, to) = (web.cluster(source), web.cluster(destination));
        if from != to && web.size(from) > 1 && web.size(to) > 1 && web.same_site(source, destination) {
            summarizer.push((from, to), (places.place(source), places.place(destination)))?;
        }
    }
    let n = web.documents();
    let mut sets = UnionFind::new(n);
    let mut edges = 0;
    let summary = summarizer.finish(|pair| {
        if Merge::Tolerant.holds(places.of(pair.from), places.of(pair.to), pair.sources, pair.destinations) {
            edges += 1;
            sets.join(pair.from, pair.to);
        }
        Ok(())
    })?;
    let mut found = Found { summary, edges, ..Found::default() };
    while found.turns < MOST_TURNS {
        found.turns += 1;
        let joined = bridge(&places, links, &mut sets, resources)?;
        found.bridged += joined;
        if joined == 0 {
            break;
        }
    }
    found.component = DocId::range(0..n)
        .map(|cluster| (web.size(cluster) > 1).then(|| sets.root(cluster)).into())
        .collect();
    Ok(found)
}

record! {
    /// A component leads to a place of a cluster of another one.
    struct Lead { from: DocId, cluster: DocId, place: u32 }
}

record! {
    /// A component links to a page that is in none.
    struct IntoPage { page: DocId, from: DocId }
}

record! {
    /// A page that is in no component links to a document of one.
    struct OutOfPage { page: DocId, doc: DocId }
}

/// One turn: joins components of which one leads to most copies of a page of the other, directly or
/// over one page that is in neither. Returns how many were joined.
fn bridge(
    places: &Places<'_>,
    links: &OpenLinks<'_>,
    sets: &mut UnionFind<DocId>,
    resources: &Resources,
) -> Result<u64, SimilarError> {
    let turn = Turn::new(places, sets);
    let crossing = turn.crossing(links, resources)?;
    let mut leads = SortedCursor::new(turn.with_detours(crossing)?);
    let mut joined = 0;
    while let Some(Lead { from, cluster, .. }) = leads.next()? {
        let mut reached = 1;
        while leads.next_if(|lead| (lead.from, lead.cluster) == (from, cluster))?.is_some() {
            reached += 1;
        }
        if turn.is_bridged(from, cluster, reached) && sets.join(from, cluster) {
            joined += 1;
        }
    }
    Ok(joined)
}

/// Components as a turn of bridging begins.
struct Turn<'t, 'w> {
    places: &'t Places<'w>,
    /// The component of a cluster, if it has one.
    component: Vec<Packed<DocId>>,
    /// Clusters of a component.
    slots: Vec<u32>,
    /// The most places that a cluster of a component has.
    most: Vec<u32>,
}

/// Links that leave a component, sorted for counting.
struct Crossing {
    leads: Sorter<Lead>,
    into: Sorter<IntoPage>,
    out: Sorter<OutOfPage>,
}

impl<'t, 'w> Turn<'t, 'w> {
    fn new(places: &'t Places<'w>, sets: &mut UnionFind<DocId>) -> Turn<'t, 'w> {
        let n = places.web.documents();
        let mut component = vec![Packed::NONE; n as usize];
        let (mut slots, mut most) = (vec![0u32; n as usize], vec![0u32; n as usize]);
        for cluster in DocId::range(0..n).filter(|&cluster| places.web.size(cluster) > 1) {
            let home = sets.root(cluster);
            component[cluster.index()] = home.into();
            slots[home.index()] += 1;
            most[home.index()] = most[home.index()].max(places.of(cluster));
        }
        Turn { places, component, slots, most }
    }

    fn component_of(&self, doc: DocId) -> Option<DocId> {
        self.component[self.places.web.cluster(doc).index()].get()
    }

    fn lead(&self, from: DocId, doc: DocId) -> Lead {
        Lead { from, cluster: self.places.web.cluster(doc), place: self.places.place(doc) }
    }

    fn crossing(&self, links: &OpenLinks<'_>, resources: &Resources) -> Result<Crossing, SimilarError> {
        let sort = |share| SortParams::new(&resources.work_dir, resources.memory.share(share, 10)).dedup();
        let (mut leads, mut into, mut out) =
            (Sorter::new(sort(4))?, Sorter::new(sort(3))?, Sorter::new(sort(3))?);
        for link in links()? {
            let (source, destination) = link?;
            if !self.places.web.same_site(source, destination) {
                continue;
            }
            match (self.component_of(source), self.component_of(destination)) {
                (None, None) => {}
                (Some(from), None) => into.push(IntoPage { page: destination, from })?,
                (None, Some(_)) => out.push(OutOfPage { page: source, doc: destination })?,
                (Some(from), Some(to)) if from != to => leads.push(self.lead(from, destination))?,
                _ => {}
            }
        }
        Ok(Crossing { leads, into, out })
    }

    /// All leads, also those over one page that is in no component.
    fn with_detours(&self, crossing: Crossing) -> Result<SortedStream<Lead>, SimilarError> {
        let Crossing { mut leads, into, out } = crossing;
        let (mut into, mut out) = (SortedCursor::new(into.finish()?), SortedCursor::new(out.finish()?));
        let (mut sources, mut destinations) = (Vec::new(), Vec::new());
        while let Some(OutOfPage { page, .. }) = out.peek()?.copied() {
            into.take_group(page, |link| link.page, &mut sources)?;
            out.take_group(page, |link| link.page, &mut destinations)?;
            for from in self.meeting(&sources, &destinations) {
                let others = destinations.iter().filter(|link| self.component_of(link.doc) != Some(from));
                for link in others {
                    leads.push(self.lead(from, link.doc))?;
                }
            }
        }
        Ok(leads.finish()?)
    }

    /// Components that lead to whatever a page outside links to.
    fn meeting(&self, sources: &[IntoPage], destinations: &[OutOfPage]) -> Vec<DocId> {
        // What hangs on one page outside hangs together, too: the largest stands for all.
        let there = destinations.iter().filter_map(|link| self.component_of(link.doc));
        let hub = there
            .chain(sources.iter().map(|link| link.from))
            .max_by_key(|&component| (self.slots[component.index()], Reverse(component)));
        let sources = if sources.len() > MEETING { &[] } else { sources };
        let mut components: Vec<DocId> = sources.iter().map(|link| link.from).chain(hub).collect();
        components.sort_unstable();
        components.dedup();
        components
    }

    /// Whether a component that leads to so many places of a cluster belongs to its component.
    fn is_bridged(&self, from: DocId, cluster: DocId, reached: u32) -> bool {
        let Some(home) = self.component[cluster.index()].get() else { return false };
        let is_most_of = |all: u32| u64::from(reached) * 2 > u64::from(all);
        let (a, b) = (from.index(), home.index());
        reached >= 2
            && is_most_of(self.places.of(cluster))
            && (is_most_of(self.most[a]) || self.slots[a] >= self.slots[b])
    }
}

#[cfg(test)]
mod tests;
