//! Growing similar clusters, as the paper does it (Cho et al. 2000, section 3).
//!
//! Trivial clusters are vertices; two are joined by an edge when the merge condition holds between
//! them. A start gives each of its pages a replica of its own; from there, along edges, every page
//! joins the replica whose page links to it.
//!
//! The paper leaves three things open, which are settled here so that definition 8 holds for
//! whatever comes out:
//!
//! - The condition counts pages on both sides, and does not say that they can be paired. Where a
//!   page links to several pages of the next cluster, a matching decides; where there is none, the
//!   edge is not used.
//! - A component need not have a vertex that reaches all others. Edges between clusters of the same
//!   size are followed backwards too.
//! - A page that was not reached by a link (the start, or one that was reached backwards) may have
//!   parents in one replica and no similar parent in another. Such a slot is taken out again, with
//!   what hung on it alone.
//!
//! Clusters of one page take part under the extended condition, where they are what other replicas
//! only link to; a result with one replica is none.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use onionskin_core::{DocId, Packed, SiteId, SlotId};

use crate::graph::Graph;
use crate::matching::{self, Matched};
use crate::model::{Group, Member, Merge, Replica, Role};
use crate::principal::Chosen;

/// How to grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The merge condition. [`grow`] takes strict and extended only.
    pub merge: Merge,
    /// Whether every replica keeps to one site.
    pub single_site: bool,
}

/// A link that counts: between pages of one site, or to the site of another copy of the page that
/// links (that is how a partial mirror points at what it did not copy). Without the restriction
/// every link counts.
pub fn link_counts(growth: Growth, same_site: bool, on_site_of_a_copy: impl FnOnce() -> bool) -> bool {
    !growth.single_site || same_site || (growth.merge == Merge::Extended && on_site_of_a_copy())
}

/// The clusters of a component and the edges between them.
struct Clusters<'g> {
    graph: &'g Graph,
    growth: Growth,
    /// Pages of each cluster, ascending.
    pages: Vec<Vec<u32>>,
    /// The cluster of each page.
    of_page: Vec<u32>,
    /// Sites of each cluster, sorted.
    sites: Vec<Vec<Packed<SiteId>>>,
    /// Where the condition holds.
    out: Vec<Vec<u32>>,
    into: Vec<Vec<u32>>,
}

impl<'g> Clusters<'g> {
    fn new(graph: &'g Graph, growth: Growth) -> Clusters<'g> {
        let mut by_cluster: BTreeMap<DocId, Vec<u32>> = BTreeMap::new();
        for (index, page) in (0..).zip(graph.pages()) {
            by_cluster.entry(page.cluster).or_default().push(index);
        }
        // Order of the smallest page, which is a matter of the graph and not of the clusters'
        // numbers.
        let mut pages: Vec<Vec<u32>> = by_cluster.into_values().collect();
        pages.sort_unstable();
        let mut of_page = vec![0; graph.pages().len()];
        let mut sites = Vec::with_capacity(pages.len());
        for (cluster, members) in (0..).zip(&pages) {
            let mut here: Vec<Packed<SiteId>> = members.iter().map(|&page| graph.page(page).site).collect();
            here.sort_unstable();
            here.dedup();
            sites.push(here);
            for &page in members {
                of_page[page as usize] = cluster;
            }
        }
        let n = pages.len();
        let mut clusters = Clusters {
            graph,
            growth,
            pages,
            of_page,
            sites,
            out: vec![Vec::new(); n],
            into: vec![Vec::new(); n],
        };
        clusters.find_edges();
        clusters
    }

    fn counts(&self, from: u32, to: u32) -> bool {
        let (source, destination) = (self.graph.page(from), self.graph.page(to));
        link_counts(self.growth, source.site == destination.site, || {
            self.sites[self.of_page[from as usize] as usize].binary_search(&destination.site).is_ok()
        })
    }

    fn size(&self, cluster: u32) -> usize {
        self.pages[cluster as usize].len()
    }

    fn find_edges(&mut self) {
        let mut found = Vec::new();
        for cluster in 0..self.pages.len() as u32 {
            let mut linked: Vec<(u32, u32, u32)> = Vec::new();
            for &page in &self.pages[cluster as usize] {
                for &to in self.graph.out(page) {
                    let other = self.of_page[to as usize];
                    if other != cluster && self.counts(page, to) {
                        linked.push((other, page, to));
                    }
                }
            }
            linked.sort_unstable();
            for group in linked.chunk_by(|a, b| a.0 == b.0) {
                let other = group[0].0;
                let sources = group.chunk_by(|a, b| a.1 == b.1).count();
                let destinations: BTreeSet<u32> = group.iter().map(|link| link.2).collect();
                let holds = self.growth.merge.holds(
                    self.size(cluster) as u32,
                    self.size(other) as u32,
                    sources as u32,
                    destinations.len() as u32,
                );
                if holds {
                    found.push((cluster, other));
                }
            }
        }
        for (from, to) in found {
            self.out[from as usize].push(to);
            self.into[to as usize].push(from);
        }
    }

    /// How many other sites link to the pages of a cluster.
    fn linked_from(&self, cluster: u32) -> u64 {
        self.pages[cluster as usize].iter().map(|&page| u64::from(self.graph.page(page).linked_from)).sum()
    }
}

/// A slot while a group grows: the page of each replica, and whether it is really there.
#[derive(Clone, Debug)]
struct Slot {
    cluster: u32,
    pages: Vec<(u32, bool)>,
}

/// Grows every similar cluster of a graph that holds whole trivial clusters: two slots and two
/// replicas at least.
///
/// # Panics
///
/// When asked for the tolerant condition, which is not the paper's.
pub fn grow(graph: &Graph, growth: Growth) -> Vec<Group> {
    assert_ne!(growth.merge, Merge::Tolerant, "tolerant merging is done elsewhere");
    let clusters = Clusters::new(graph, growth);
    let mut remaining: BTreeSet<u32> = (0..clusters.pages.len() as u32).collect();
    // Largest cardinality first, then the most natural root (section 3.1), then the first page.
    let mut starts: Vec<u32> = remaining.iter().copied().filter(|&c| clusters.size(c) > 1).collect();
    starts.sort_by_key(|&c| (std::cmp::Reverse((clusters.size(c), clusters.linked_from(c))), c));
    let mut groups = Vec::new();
    for start in starts {
        if !remaining.remove(&start) {
            continue;
        }
        let mut slots = spread(&clusters, start, &remaining);
        enforce(&clusters, &mut slots);
        if slots.len() > 1 && all_copied(&slots) {
            for slot in &slots {
                remaining.remove(&slot.cluster);
            }
            groups.push(group(&clusters, &slots));
        }
    }
    groups.sort_by_key(|group| group.replicas[0].members.iter().map(|member| member.doc).min());
    groups
}

/// Follows edges from the start as far as pages can be assigned.
fn spread(clusters: &Clusters<'_>, start: u32, remaining: &BTreeSet<u32>) -> Vec<Slot> {
    let first = clusters.pages[start as usize].iter().map(|&page| (page, true)).collect();
    let mut slots = vec![Slot { cluster: start, pages: first }];
    let mut taken = BTreeSet::from([start]);
    let mut queue = VecDeque::from([0usize]);
    while let Some(at) = queue.pop_front() {
        let cluster = slots[at].cluster;
        let forward = clusters.out[cluster as usize].iter().map(|&other| (other, true));
        let backward = clusters.into[cluster as usize]
            .iter()
            .filter(|&&other| clusters.size(other) == clusters.size(cluster))
            .map(|&other| (other, false));
        let mut next: Vec<(u32, bool)> = forward.chain(backward).collect();
        // By number, and forwards first where both are possible.
        next.sort_by_key(|&(other, forward)| (other, !forward));
        for (other, forward) in next {
            if taken.contains(&other) || !remaining.contains(&other) {
                continue;
            }
            if let Some(slot) = assign(clusters, &slots[at], other, forward) {
                taken.insert(other);
                slots.push(slot);
                queue.push_back(slots.len() - 1);
            }
        }
    }
    slots
}

/// Gives every page of `other` to the replica whose page in `slot` it is linked with.
fn assign(clusters: &Clusters<'_>, slot: &Slot, other: u32, forward: bool) -> Option<Slot> {
    let graph = clusters.graph;
    let members = &clusters.pages[other as usize];
    let linked = |replica_page: u32, page: u32| {
        let (from, to) = if forward { (replica_page, page) } else { (page, replica_page) };
        graph.links(from, to) && clusters.counts(from, to)
    };
    let may_own = |replica_page: u32, page: u32| {
        !clusters.growth.single_site || graph.page(replica_page).site == graph.page(page).site
    };
    // The replica in which a page of the slot is really there.
    let owner: BTreeMap<u32, u32> = (0..)
        .zip(&slot.pages)
        .filter(|(_, (_, real))| *real)
        .map(|(replica, &(page, _))| (page, replica))
        .collect();
    let choices: Vec<Vec<u32>> = members
        .iter()
        .map(|&page| {
            let neighbours = if forward { graph.into(page) } else { graph.out(page) };
            neighbours
                .iter()
                .filter_map(|neighbour| owner.get(neighbour).map(|&replica| (replica, *neighbour)))
                .filter(|&(_, neighbour)| linked(neighbour, page) && may_own(neighbour, page))
                .map(|(replica, _)| replica)
                .collect()
        })
        .collect();
    let Matched(owners) = matching::saturate(&choices, slot.pages.len())?;
    let mut pages: Vec<Option<(u32, bool)>> = vec![None; slot.pages.len()];
    for (&page, &replica) in members.iter().zip(&owners) {
        pages[replica as usize] = Some((page, true));
    }
    // What a replica has not got itself, it links to on another.
    let pages = (0..)
        .zip(pages)
        .map(|(replica, page): (usize, _)| {
            page.or_else(|| {
                let (here, _) = slot.pages[replica];
                let virtual_page = if forward {
                    members.iter().copied().find(|&page| linked(here, page))
                } else {
                    // Backwards only clusters of one size are met: what is virtual here is so
                    // there.
                    let real = owner.get(&here)?;
                    owners.iter().position(|owner| owner == real).map(|at| members[at])
                };
                virtual_page.map(|page| (page, false))
            })
        })
        .collect::<Option<Vec<_>>>()?;
    Some(Slot { cluster: other, pages })
}

/// Takes out slots until definition 5 holds between all replicas and each is connected.
fn enforce(clusters: &Clusters<'_>, slots: &mut Vec<Slot>) {
    loop {
        let before = slots.len();
        let parents = parents_in_replicas(clusters, slots);
        let mut keep: Vec<bool> = parents.iter().map(|replicas| parents_agree(replicas)).collect();
        if keep.iter().all(|&keep| keep) {
            keep = connected(clusters, slots);
        }
        let mut keep = keep.into_iter();
        slots.retain(|_| keep.next().unwrap_or(false));
        if slots.len() == before || slots.len() < 2 {
            return;
        }
    }
}

/// Whether every replica has a page that another has too. Where the slot that growth began in was
/// taken out, what is left may be pages that only one of them has and the others link to, and these
/// are copies of nothing.
fn all_copied(slots: &[Slot]) -> bool {
    let n_replicas = slots.first().map_or(0, |slot| slot.pages.len());
    (0..n_replicas).all(|replica| {
        slots
            .iter()
            .any(|slot| slot.pages[replica].1 && slot.pages.iter().filter(|(_, real)| *real).count() > 1)
    })
}

/// For every slot and replica, the slots of the pages in the replica that link to it, ascending.
fn parents_in_replicas(clusters: &Clusters<'_>, slots: &[Slot]) -> Vec<Vec<Vec<u32>>> {
    let graph = clusters.graph;
    let slot_of: BTreeMap<u32, u32> = (0..).zip(slots).map(|(number, slot)| (slot.cluster, number)).collect();
    slots
        .iter()
        .map(|slot| {
            (0..)
                .zip(&slot.pages)
                .map(|(replica, &(page, _)): (usize, _)| {
                    let mut parents: Vec<u32> = graph
                        .into(page)
                        .iter()
                        .filter_map(|&parent| {
                            let number = *slot_of.get(&clusters.of_page[parent as usize])?;
                            (slots[number as usize].pages[replica].0 == parent).then_some(number)
                        })
                        .collect();
                    parents.sort_unstable();
                    parents
                })
                .collect()
        })
        .collect()
}

/// Whether any two replicas share a parent slot, or have none both.
pub(crate) fn parents_agree<S: Ord>(replicas: &[Vec<S>]) -> bool {
    let Some((first, rest)) = replicas.split_first() else { return true };
    // One parent that all have is the usual case, and cheap to see.
    if first.iter().any(|parent| rest.iter().all(|other| other.binary_search(parent).is_ok())) {
        return true;
    }
    let agree = |a: &Vec<S>, b: &Vec<S>| {
        (a.is_empty() && b.is_empty()) || a.iter().any(|parent| b.binary_search(parent).is_ok())
    };
    // Replicas with the same parents agree; there are few different ones even where replicas are
    // many.
    let mut different: Vec<&Vec<S>> = replicas.iter().collect();
    different.sort_unstable();
    different.dedup();
    (0..different.len()).all(|a| (a + 1..different.len()).all(|b| agree(different[a], different[b])))
}

/// Which slots hang together with the first in every replica.
fn connected(clusters: &Clusters<'_>, slots: &[Slot]) -> Vec<bool> {
    let graph = clusters.graph;
    let slot_of: BTreeMap<u32, u32> = (0..).zip(slots).map(|(number, slot)| (slot.cluster, number)).collect();
    let n_replicas = slots.first().map_or(0, |slot| slot.pages.len());
    let mut reached_in = vec![0; slots.len()];
    for replica in 0..n_replicas {
        let mut seen = vec![false; slots.len()];
        let mut queue = vec![0u32];
        seen[0] = true;
        while let Some(slot) = queue.pop() {
            reached_in[slot as usize] += 1;
            let page = slots[slot as usize].pages[replica].0;
            for &neighbour in graph.out(page).iter().chain(graph.into(page)) {
                let Some(&other) = slot_of.get(&clusters.of_page[neighbour as usize]) else { continue };
                if !seen[other as usize] && slots[other as usize].pages[replica].0 == neighbour {
                    seen[other as usize] = true;
                    queue.push(other);
                }
            }
        }
    }
    reached_in.into_iter().map(|reached| reached == n_replicas).collect()
}

fn group(clusters: &Clusters<'_>, slots: &[Slot]) -> Group {
    let graph = clusters.graph;
    let root = SlotId::MIN
        .onward()
        .zip(slots)
        .max_by_key(|(number, slot)| (clusters.linked_from(slot.cluster), std::cmp::Reverse(*number)))
        .map_or(SlotId::MIN, |(number, _)| number);
    let mut replicas: Vec<Replica> = (0..slots[0].pages.len())
        .map(|replica| Replica {
            // The site of a page that it has, not of one that it links to.
            site: slots
                .iter()
                .map(|slot| slot.pages[replica])
                .find(|(_, real)| *real)
                .and_then(|(page, _)| graph.page(page).site.get()),
            members: SlotId::MIN
                .onward()
                .zip(slots)
                .map(|(slot, pages)| {
                    let (page, real) = pages.pages[replica];
                    let role = if real { Role::Copy } else { Role::Virtual };
                    Member { slot, doc: graph.page(page).doc, role }
                })
                .collect(),
        })
        .collect();
    replicas.sort_by_key(|replica| replica.own_pages().map(|member| member.doc).min());
    // Which one is the principal is decided when more is known of the pages.
    Group { slots: slots.len() as u32, root, principal: 0, chosen: Chosen::default(), replicas }
}

#[cfg(test)]
mod tests;
