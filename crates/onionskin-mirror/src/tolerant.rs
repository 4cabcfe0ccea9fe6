//! Collections of which copies lack pages, have more of them, or have changed some: what section 6 of Cho et al. 2000 asks for.
//!
//! The paper's conditions ask all copies of two pages to link alike. One page that is missing in one mirror of ten breaks them, and the
//! mirror falls into pieces around it. Here trivial clusters come together when *most* of their copies link alike; gaps are bridged over pages
//! that belong to neither side (that happens before, over the whole web); and what the pages of a component are to each other is decided by
//! where they stand:
//!
//! 1. Pages of one site are a *piece*; copies in corresponding folders of it are pieces of their own ([`crate::place`]).
//! 2. Pieces that share at least half of the smaller one's pages with another are replicas of one collection. A component that was held
//!    together by a licence text falls apart again.
//! 3. A page that all but a few replicas have is a slot of all of them; who has not got it lacks it.
//! 4. Pages nearby, on the same site, in the folder, linked with the rest, are taken in: at the place of a slot as *changed*, else as *added*.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::graph::Graph;
use crate::grow::principal;
use crate::model::{Group, Member, Replica, Role};
use crate::place;

/// Replicas that a straggler is compared with, beside the largest.
const COMPARED: usize = 16;

/// Pages of one site that belong together.
#[derive(Clone, Debug)]
struct Piece {
    site: u32,
    /// Cluster and page, one of each cluster, ascending.
    pages: Vec<(u32, u32)>,
    /// Second addresses of those.
    aliases: Vec<(u32, u32)>,
}

/// Makes groups of the pages of a component; `paths` are those of its pages. Links between pages of different sites are not looked at.
pub fn assemble(graph: &Graph, paths: &[&str]) -> Vec<Group> {
    let pieces = pieces(graph, paths);
    let mut groups: Vec<Group> =
        cohesive(&pieces).iter().filter_map(|replicas| group(graph, paths, &pieces, replicas)).collect();
    groups.sort_by_key(|group| group.replicas[0].members.iter().map(|member| member.doc).min());
    groups
}

fn pieces(graph: &Graph, paths: &[&str]) -> Vec<Piece> {
    let mut by_site: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (index, page) in (0..).zip(graph.pages()) {
        by_site.entry(page.site).or_default().push(index);
    }
    let mut pieces = Vec::new();
    for (site, pages) in by_site {
        let located: Vec<(u32, &str)> =
            pages.iter().map(|&page| (graph.page(page).cluster, paths[page as usize])).collect();
        let mut by_place: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (page, number) in pages.into_iter().zip(place::places(&located)) {
            by_place.entry(number).or_default().push(page);
        }
        for pages in by_place.into_values() {
            let mut best: BTreeMap<u32, u32> = BTreeMap::new();
            // The address that most pages link to, then the shortest, then the first.
            let rank = |page: u32| {
                let path = paths[page as usize];
                (std::cmp::Reverse(graph.into(page).len()), path.len(), page)
            };
            for &page in &pages {
                let slot = best.entry(graph.page(page).cluster).or_insert(page);
                if rank(page) < rank(*slot) {
                    *slot = page;
                }
            }
            let aliases = pages
                .iter()
                .map(|&page| (graph.page(page).cluster, page))
                .filter(|(cluster, page)| best[cluster] != *page)
                .collect();
            pieces.push(Piece { site, pages: best.into_iter().collect(), aliases });
        }
    }
    pieces
}

fn shared(one: &Piece, other: &Piece) -> usize {
    let (small, large) = if one.pages.len() < other.pages.len() { (one, other) } else { (other, one) };
    small
        .pages
        .iter()
        .filter(|(cluster, _)| large.pages.binary_search_by_key(cluster, |(cluster, _)| *cluster).is_ok())
        .count()
}

/// Whether two pieces are copies of one collection: at least two pages, and half of the smaller one.
fn is_alike(one: &Piece, other: &Piece) -> bool {
    let shared = shared(one, other);
    shared >= 2 && shared * 2 >= one.pages.len().min(other.pages.len())
}

/// Groups of pieces, each around its largest; stragglers may be alike to another of the larger ones instead.
fn cohesive(pieces: &[Piece]) -> Vec<Vec<usize>> {
    let mut remaining: Vec<usize> = (0..pieces.len()).filter(|&at| pieces[at].pages.len() > 1).collect();
    remaining.sort_by_key(|&at| (std::cmp::Reverse(pieces[at].pages.len()), at));
    let mut groups = Vec::new();
    while let Some(&largest) = remaining.first() {
        let mut group = vec![largest];
        remaining.remove(0);
        let mut compared = 0;
        while compared < group.len().min(COMPARED) {
            let with = &pieces[group[compared]];
            let (alike, rest) = remaining.iter().partition(|&&at| is_alike(with, &pieces[at]));
            group.extend::<Vec<usize>>(alike);
            remaining = rest;
            compared += 1;
        }
        if group.len() > 1 {
            group.sort_unstable();
            groups.push(group);
        }
    }
    groups
}

fn group(graph: &Graph, paths: &[&str], pieces: &[Piece], members: &[usize]) -> Option<Group> {
    let mut copies_of: BTreeMap<u32, u32> = BTreeMap::new();
    for &at in members {
        for &(cluster, _) in &pieces[at].pages {
            *copies_of.entry(cluster).or_default() += 1;
        }
    }
    // The root first: the page that most other sites link to, then the one that stands highest.
    let mut rank: BTreeMap<u32, (u64, usize, u32)> = BTreeMap::new();
    for &at in members {
        for &(cluster, page) in &pieces[at].pages {
            let path = paths[page as usize];
            let depth = path.len() + 1000 * path.matches('/').count();
            let (linked, highest, first) = rank.entry(cluster).or_insert((0, usize::MAX, page));
            *linked += u64::from(graph.page(page).linked_from);
            *highest = (*highest).min(depth);
            *first = (*first).min(page);
        }
    }
    let shared = |cluster: &u32| copies_of[cluster] > 1;
    if rank.keys().filter(|cluster| shared(cluster)).count() < 2 {
        return None;
    }
    let root = *rank
        .iter()
        .filter(|(cluster, _)| shared(cluster))
        .max_by_key(|(_, (linked, depth, first))| (*linked, std::cmp::Reverse((*depth, *first))))?
        .0;
    let mut order: Vec<u32> = rank.keys().copied().collect();
    order.sort_by_key(|cluster| (*cluster != root, !shared(cluster), rank[cluster].2));
    let slot_of: HashMap<u32, u32> = (0..).zip(&order).map(|(slot, cluster)| (*cluster, slot)).collect();
    let mut replicas: Vec<Replica> = members
        .iter()
        .map(|&at| {
            let piece = &pieces[at];
            let member = |role: Role| {
                let slot_of = &slot_of;
                move |&(cluster, page): &(u32, u32)| Member {
                    slot: slot_of[&cluster],
                    doc: graph.page(page).doc,
                    role,
                }
            };
            let own = piece.pages.iter().map(|entry| {
                let role = if shared(&entry.0) { Role::Copy } else { Role::Added };
                member(role)(entry)
            });
            let mut members: Vec<Member> = own.chain(piece.aliases.iter().map(member(Role::Alias))).collect();
            members.sort_unstable();
            Replica { site: piece.site, members }
        })
        .collect();
    replicas.sort_by_key(|replica| replica.members.iter().map(|member| member.doc).min());
    let principal = principal(graph, 0, &replicas);
    Some(Group { slots: order.len() as u32, root: 0, principal, replicas })
}

/// Where a replica stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its site.
    pub site: u32,
    /// The folder that its pages are in.
    pub folder: String,
}

/// The region of a replica; `path_of` gives the paths of its pages.
pub fn region<'a>(replica: &Replica, path_of: impl Fn(u32) -> &'a str) -> Region {
    let folder = place::common_folder(replica.own_pages().map(|member| path_of(member.doc)));
    Region { site: replica.site, folder: folder.to_owned() }
}

/// A page in the region of a replica that is no part of it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearby<'a> {
    /// The document.
    pub doc: u32,
    /// Its path.
    pub path: &'a str,
}

/// Takes pages nearby into a replica: those at the place of a slot that it lacks as changed, others as added. Returns how many of each. The
/// principal's own come first, as added; `paths` knows the paths of all pages of the group.
pub fn take_in<'a>(
    group: &mut Group,
    replica: usize,
    nearby: &[Nearby<'a>],
    path_of: impl Fn(u32) -> &'a str,
) -> (u64, u64) {
    let folders = (replica != group.principal).then(|| alignment(group, replica, &path_of)).flatten();
    let mut slot_at: HashMap<&str, u32> = HashMap::new();
    if folders.is_some() {
        for member in group.replicas[group.principal].own_pages() {
            slot_at.insert(path_of(member.doc), member.slot);
        }
    }
    let mut taken: BTreeSet<u32> = group.replicas[replica].members.iter().map(|member| member.slot).collect();
    let (mut changed, mut added) = (0, 0);
    let mut new: Vec<Member> = Vec::new();
    for page in nearby {
        let aligned = folders.as_ref().and_then(|(there, here)| {
            let rest = page.path.strip_prefix(here.as_str())?;
            slot_at.get(format!("{there}{rest}").as_str()).copied()
        });
        match aligned.filter(|&slot| taken.insert(slot)) {
            Some(slot) => {
                changed += 1;
                new.push(Member { slot, doc: page.doc, role: Role::Changed });
            }
            None => {
                added += 1;
                new.push(Member { slot: group.slots, doc: page.doc, role: Role::Added });
                group.slots += 1;
            }
        }
    }
    let members = &mut group.replicas[replica].members;
    members.extend(new);
    members.sort_unstable();
    (changed, added)
}

/// The folders of the principal and of a replica that correspond, as most of the pages that both have say it; `None` when there is no majority.
pub fn alignment<'a>(
    group: &Group,
    replica: usize,
    path_of: impl Fn(u32) -> &'a str,
) -> Option<(String, String)> {
    let principal = &group.replicas[group.principal];
    let mut votes: HashMap<(&str, &str), usize> = HashMap::new();
    let mut n = 0;
    for member in group.replicas[replica].members.iter().filter(|member| member.role == Role::Copy) {
        let Some(there) = principal.page(member.slot).filter(|there| there.role == Role::Copy) else { continue };
        n += 1;
        *votes.entry(place::corresponding(path_of(there.doc), path_of(member.doc))).or_default() += 1;
    }
    let (folders, count) = votes.into_iter().max_by_key(|&(folders, count)| (count, folders))?;
    (count * 2 > n).then(|| (folders.0.to_owned(), folders.1.to_owned()))
}

/// Puts changed pages of two clusters at one place into one slot: where a replica has a page at the place of a slot of the principal that it lacks,
/// it is that page, changed.
pub fn align_changed<'a>(group: &mut Group, path_of: impl Fn(u32) -> &'a str) {
    for replica in 0..group.replicas.len() {
        if replica == group.principal {
            continue;
        }
        let Some((there, here)) = alignment(group, replica, &path_of) else { continue };
        let slot_at: HashMap<&str, u32> = group.replicas[group.principal]
            .own_pages()
            .filter(|member| member.role != Role::Alias)
            .map(|member| (path_of(member.doc), member.slot))
            .collect();
        let principal_has: BTreeSet<u32> =
            group.replicas[group.principal].members.iter().map(|member| member.slot).collect();
        let mut taken: BTreeSet<u32> = group.replicas[replica].members.iter().map(|member| member.slot).collect();
        for member in &mut group.replicas[replica].members {
            if principal_has.contains(&member.slot) || matches!(member.role, Role::Virtual | Role::Alias) {
                continue;
            }
            let rest = path_of(member.doc).strip_prefix(here.as_str());
            let Some(slot) = rest.and_then(|rest| slot_at.get(format!("{there}{rest}").as_str()).copied()) else {
                continue;
            };
            if taken.insert(slot) {
                *member = Member { slot, doc: member.doc, role: Role::Changed };
            }
        }
        group.replicas[replica].members.sort_unstable();
    }
    drop_empty_slots(group);
}

/// Numbers slots anew so that each has a page.
pub(crate) fn drop_empty_slots(group: &mut Group) {
    let used: BTreeSet<u32> =
        group.replicas.iter().flat_map(|replica| &replica.members).map(|member| member.slot).collect();
    let number: HashMap<u32, u32> = (0..).zip(&used).map(|(number, slot)| (*slot, number)).collect();
    for member in group.replicas.iter_mut().flat_map(|replica| &mut replica.members) {
        member.slot = number[&member.slot];
    }
    group.root = number.get(&group.root).copied().unwrap_or(0);
    group.slots = used.len() as u32;
}

/// Marks what replicas link to on the principal and do not have themselves. `links` are from pages of the replica to pages of the
/// principal.
pub fn mark_virtual(group: &mut Group, replica: usize, links: impl IntoIterator<Item = u32>) -> u64 {
    if replica == group.principal {
        return 0;
    }
    let slot_of: HashMap<u32, u32> =
        group.replicas[group.principal].own_pages().map(|member| (member.doc, member.slot)).collect();
    let members = &mut group.replicas[replica].members;
    let mut taken: BTreeSet<u32> = members.iter().map(|member| member.slot).collect();
    let before = members.len();
    for doc in links {
        if let Some(&slot) = slot_of.get(&doc)
            && taken.insert(slot)
        {
            members.push(Member { slot, doc, role: Role::Virtual });
        }
    }
    let marked = members.len() - before;
    members.sort_unstable();
    marked as u64
}

#[cfg(test)]
mod tests;
