//! Collections of which copies lack pages, have more of them, or have changed some: what section 6
//! of Cho et al. 2000 asks for.
//!
//! The paper's conditions ask all copies of two pages to link alike. One page that is missing in
//! one mirror of ten breaks them, and the mirror falls into pieces around it. Here trivial clusters
//! come together when *most* of their copies link alike; gaps are bridged over pages that belong to
//! neither side (that happens before, over the whole web); and what the pages of a component are to
//! each other is decided by where they stand:
//!
//! 1. Pages of one site are a *piece*; copies in corresponding folders of it are pieces of their
//!    own ([`crate::place`]).
//! 2. Pieces that share at least half of the smaller one's pages with another are replicas of one
//!    collection. A component that was held together by a licence text falls apart again.
//! 3. A page that all but a few replicas have is a slot of all of them; who has not got it lacks
//!    it.
//! 4. Pages nearby, on the same site, in the folder, linked with the rest, are taken in: at the
//!    place of a slot as *changed*, else as *added*.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use onionskin_core::{DocId, Packed, SiteId, SlotId};

use crate::graph::Graph;
use crate::model::{Group, Member, Replica, Role};
use crate::place;
use crate::principal::Chosen;

/// Replicas that a straggler is compared with, beside the largest.
const COMPARED: usize = 16;

/// Pieces that have a page, above which it tells nothing.
const POPULAR: usize = 4_096;
/// A place with fewer pages than this part of one that has it in its folder is a part of that one.
const PART: usize = 5;
/// Copies of one page inside a replica that are told apart by comparing addresses, at most; more
/// are taken in order.
const COMPARED_COPIES: usize = 256;

/// Pages of one site that belong together.
#[derive(Clone, Debug)]
struct Piece {
    site: Packed<SiteId>,
    /// Cluster and page, sorted. A cluster comes twice where the collection has copies inside.
    pages: Vec<(DocId, u32)>,
    /// Second addresses of those, with the page that has the first.
    aliases: Vec<(u32, u32)>,
}

/// Makes groups of the pages of a component; `paths` are those of its pages. Links between pages of
/// different sites are not looked at.
pub fn assemble(graph: &Graph, paths: &[&str]) -> Vec<Group> {
    let pieces = pieces(graph, paths);
    let mut groups: Vec<Group> =
        cohesive(&pieces).iter().filter_map(|replicas| group(graph, paths, &pieces, replicas)).collect();
    groups.sort_by_key(|group| group.replicas[0].members.iter().map(|member| member.doc).min());
    groups
}

fn pieces(graph: &Graph, paths: &[&str]) -> Vec<Piece> {
    let mut by_site: BTreeMap<Packed<SiteId>, Vec<u32>> = BTreeMap::new();
    for (index, page) in (0..).zip(graph.pages()) {
        by_site.entry(page.site).or_default().push(index);
    }
    let mut pieces = Vec::new();
    for (site, pages) in by_site {
        let located: Vec<(DocId, &str)> =
            pages.iter().map(|&page| (graph.page(page).cluster, paths[page as usize])).collect();
        let mut by_place: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (page, number) in pages.into_iter().zip(place::places(&located)) {
            by_place.entry(number).or_default().push(page);
        }
        for pages in join_parts(by_place.into_values().collect(), paths) {
            pieces.push(piece(graph, paths, site, &pages));
        }
    }
    pieces
}

/// Small places inside the folder of a large one are copies that the collection has inside, not
/// copies of it.
fn join_parts(mut places: Vec<Vec<u32>>, paths: &[&str]) -> Vec<Vec<u32>> {
    places.sort_by_key(|pages| (std::cmp::Reverse(pages.len()), pages.first().copied()));
    let mut joined: Vec<(&str, usize, Vec<u32>)> = Vec::new();
    for pages in places {
        let folder = place::common_folder(pages.iter().map(|&page| paths[page as usize]));
        // Sizes fall, so that those that are large enough stand in front.
        let whole = joined
            .iter_mut()
            .take_while(|(_, size, _)| pages.len() * PART < *size)
            .find(|(large, _, _)| place::is_below(folder, large));
        match whole {
            Some((_, _, whole)) => whole.extend(pages),
            None => joined.push((folder, pages.len(), pages)),
        }
    }
    let mut joined: Vec<Vec<u32>> = joined.into_iter().map(|(_, _, pages)| pages).collect();
    joined.iter_mut().for_each(|pages| pages.sort_unstable());
    joined.sort_unstable();
    joined
}

fn piece(graph: &Graph, paths: &[&str], site: Packed<SiteId>, pages: &[u32]) -> Piece {
    // The address that most pages link to, then the shortest, then the first, has the page; others
    // are second addresses of it.
    let rank = |page: u32| {
        let path = paths[page as usize];
        (std::cmp::Reverse(graph.into(page).len()), path.len(), page)
    };
    let mut best: BTreeMap<(DocId, &str), u32> = BTreeMap::new();
    let key = |page: u32| (graph.page(page).cluster, place::bare(paths[page as usize]));
    for &page in pages {
        let slot = best.entry(key(page)).or_insert(page);
        if rank(page) < rank(*slot) {
            *slot = page;
        }
    }
    let aliases =
        pages.iter().map(|&page| (best[&key(page)], page)).filter(|(first, page)| first != page).collect();
    let mut own: Vec<(DocId, u32)> = best.into_iter().map(|((cluster, _), page)| (cluster, page)).collect();
    own.sort_unstable();
    Piece { site, pages: own, aliases }
}

/// Pages that two pieces share, copies inside counted as often as both have them.
fn shared(one: &Piece, other: &Piece) -> usize {
    let (mut a, mut b) = (one.pages.iter().peekable(), other.pages.iter().peekable());
    let mut n = 0;
    while let (Some(left), Some(right)) = (a.peek(), b.peek()) {
        match left.0.cmp(&right.0) {
            std::cmp::Ordering::Less => drop(a.next()),
            std::cmp::Ordering::Greater => drop(b.next()),
            std::cmp::Ordering::Equal => {
                n += 1;
                a.next();
                b.next();
            }
        }
    }
    n
}

/// Whether two pieces are copies of one collection: at least two pages, and half of the smaller
/// one.
fn is_alike(one: &Piece, other: &Piece) -> bool {
    let shared = shared(one, other);
    shared >= 2 && shared * 2 >= one.pages.len().min(other.pages.len())
}

/// Groups of pieces, each around its largest; stragglers may be alike to another of the larger ones
/// instead.
///
/// The naive way compares every piece with every other. Pieces that are alike share pages, so that
/// those who have a page of the one at hand are all that need be looked at; pages that very many
/// have tell nothing, and are passed over where there are others.
fn cohesive(pieces: &[Piece]) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..pieces.len()).filter(|&at| pieces[at].pages.len() > 1).collect();
    let mut having: HashMap<DocId, Vec<usize>> = HashMap::new();
    for &at in &order {
        for copies in pieces[at].pages.chunk_by(|a, b| a.0 == b.0) {
            having.entry(copies[0].0).or_default().push(at);
        }
    }
    order.sort_by_key(|&at| (std::cmp::Reverse(pieces[at].pages.len()), at));
    let mut taken = vec![false; pieces.len()];
    let mut groups = Vec::new();
    for largest in order {
        if std::mem::replace(&mut taken[largest], true) {
            continue;
        }
        let mut group = vec![largest];
        let mut compared = 0;
        while compared < group.len().min(COMPARED) {
            let with = &pieces[group[compared]];
            let mut near = neighbours(with, &mut having, &taken);
            near.retain(|&at| is_alike(with, &pieces[at]));
            // Larger ones first, as they are compared with others next.
            near.sort_by_key(|&at| (std::cmp::Reverse(pieces[at].pages.len()), at));
            near.iter().for_each(|&at| taken[at] = true);
            group.extend(near);
            compared += 1;
        }
        if group.len() > 1 {
            group.sort_unstable();
            groups.push(group);
        }
    }
    groups
}

/// Pieces that are not taken and have a page of this one.
fn neighbours(piece: &Piece, having: &mut HashMap<DocId, Vec<usize>>, taken: &[bool]) -> Vec<usize> {
    let clusters: Vec<DocId> = piece.pages.chunk_by(|a, b| a.0 == b.0).map(|copies| copies[0].0).collect();
    let len = |having: &HashMap<DocId, Vec<usize>>, cluster: &DocId| having.get(cluster).map_or(0, Vec::len);
    let telling = clusters.iter().filter(|cluster| len(having, cluster) <= POPULAR).count();
    let mut near: Vec<usize> = Vec::new();
    for cluster in clusters {
        if telling < 2 || len(having, &cluster) <= POPULAR {
            let Some(list) = having.get_mut(&cluster) else { continue };
            list.retain(|&at| !taken[at]);
            near.extend_from_slice(list);
        }
    }
    near.sort_unstable();
    near.dedup();
    near
}

/// Gives every page of the pieces a key, so that pages with the same one correspond: its cluster,
/// and which of the copies inside the collection it is.
fn correspondence(pieces: &[&Piece], paths: &[&str]) -> Vec<Vec<(DocId, u32)>> {
    let mut most: BTreeMap<DocId, (usize, usize)> = BTreeMap::new();
    for (at, piece) in pieces.iter().enumerate() {
        for copies in piece.pages.chunk_by(|a, b| a.0 == b.0) {
            let (n, _) = most.get(&copies[0].0).copied().unwrap_or_default();
            if copies.len() > n {
                most.insert(copies[0].0, (copies.len(), at));
            }
        }
    }
    let reference = |cluster: DocId| -> Vec<u32> {
        let (_, at) = most[&cluster];
        let pages = &pieces[at].pages;
        let start = pages.partition_point(|page| page.0 < cluster);
        pages[start..].iter().take_while(|page| page.0 == cluster).map(|page| page.1).collect()
    };
    let keys_of = |piece: &Piece| {
        let mut keys = Vec::with_capacity(piece.pages.len());
        for copies in piece.pages.chunk_by(|a, b| a.0 == b.0) {
            let cluster = copies[0].0;
            if most[&cluster].0 == 1 {
                keys.push((cluster, 0));
                continue;
            }
            let reference = reference(cluster);
            if reference.len() > COMPARED_COPIES {
                keys.extend((0..copies.len() as u32).map(|nth| (cluster, nth)));
                continue;
            }
            // The pair of addresses with most segments in common at the end first.
            let mut pairs: Vec<(std::cmp::Reverse<usize>, usize, usize)> = Vec::new();
            for (nth, &(_, page)) in copies.iter().enumerate() {
                for (variant, &other) in reference.iter().enumerate() {
                    let common = place::common_ending(paths[page as usize], paths[other as usize]);
                    pairs.push((std::cmp::Reverse(common), nth, variant));
                }
            }
            pairs.sort_unstable();
            let (mut key, mut taken) = (vec![None; copies.len()], vec![false; reference.len()]);
            for (_, nth, variant) in pairs {
                if key[nth].is_none() && !taken[variant] {
                    key[nth] = Some(variant as u32);
                    taken[variant] = true;
                }
            }
            keys.extend(key.into_iter().map(|variant| (cluster, variant.unwrap_or_default())));
        }
        keys
    };
    pieces.iter().map(|piece| keys_of(piece)).collect()
}

fn group(graph: &Graph, paths: &[&str], pieces: &[Piece], members: &[usize]) -> Option<Group> {
    let pieces: Vec<&Piece> = members.iter().map(|&at| &pieces[at]).collect();
    let keys = correspondence(&pieces, paths);
    // How many have a page, and its first document.
    let mut having: BTreeMap<(DocId, u32), (u32, u32)> = BTreeMap::new();
    for (piece, keys) in pieces.iter().zip(&keys) {
        for (&(_, page), &key) in piece.pages.iter().zip(keys) {
            let (n, first) = having.entry(key).or_insert((0, page));
            *n += 1;
            *first = (*first).min(page);
        }
    }
    if having.values().filter(|(n, _)| *n > 1).count() < 2 {
        return None;
    }
    let mut order: Vec<(DocId, u32)> = having.keys().copied().collect();
    order.sort_by_key(|key| (having[key].0 < 2, having[key].1));
    let slot_of: HashMap<(DocId, u32), SlotId> =
        SlotId::MIN.onward().zip(&order).map(|(slot, key)| (*key, slot)).collect();
    let mut replicas: Vec<Replica> = pieces
        .iter()
        .zip(&keys)
        .map(|(piece, keys)| {
            let slot_of_page: HashMap<u32, SlotId> =
                piece.pages.iter().zip(keys).map(|(&(_, page), key)| (page, slot_of[key])).collect();
            let own = piece.pages.iter().zip(keys).map(|(&(_, page), key)| Member {
                slot: slot_of[key],
                doc: graph.page(page).doc,
                role: if having[key].0 > 1 { Role::Copy } else { Role::Added },
            });
            let aliases = piece.aliases.iter().map(|&(first, page)| Member {
                slot: slot_of_page[&first],
                doc: graph.page(page).doc,
                role: Role::Alias,
            });
            let mut members: Vec<Member> = own.chain(aliases).collect();
            members.sort_unstable();
            Replica { site: piece.site.get(), members }
        })
        .collect();
    replicas.sort_by_key(|replica| replica.members.iter().map(|member| member.doc).min());
    // Which one is the principal is decided when more is known of the pages.
    let (root, chosen) = (SlotId::MIN, Chosen::default());
    let mut group = Group { slots: order.len() as u32, root, principal: 0, chosen, replicas };
    let path_of = |doc: DocId| graph.index_of(doc).map_or("/", |index| paths[index as usize]);
    choose_root(&mut group, |doc| linked_from(graph, doc), path_of);
    Some(group)
}

fn linked_from(graph: &Graph, doc: DocId) -> u32 {
    graph.index_of(doc).map_or(0, |index| graph.page(index).linked_from)
}

/// Makes the natural root that of a group: of the pages that two replicas or more have, the one
/// that most other sites link to, then the one that stands highest, an index page before others.
pub fn choose_root<'a>(
    group: &mut Group,
    linked_from: impl Fn(DocId) -> u32,
    path_of: impl Fn(DocId) -> &'a str,
) {
    // Copies, sites that link there, and how high it stands: folders, whether it is an index page,
    // length.
    let mut rank: Vec<(u32, u64, (usize, bool, usize))> =
        vec![(0, 0, (usize::MAX, true, usize::MAX)); group.slots as usize];
    for replica in &group.replicas {
        let top = place::common_folder(replica.own_pages().map(|member| path_of(member.doc)));
        let depth = top.matches('/').count();
        for member in replica.own_pages().filter(|member| member.role != Role::Alias) {
            let path = path_of(member.doc);
            let place = (path.matches('/').count().saturating_sub(depth), !place::is_index(path), path.len());
            let (n, linked, highest) = &mut rank[member.slot.index()];
            *n += 1;
            *linked += u64::from(linked_from(member.doc));
            *highest = (*highest).min(place);
        }
    }
    let candidates = SlotId::range(0..group.slots).filter(|slot| rank[slot.index()].0 > 1);
    let best = candidates.max_by_key(|&slot| {
        let (_, linked, highest) = rank[slot.index()];
        (linked, std::cmp::Reverse((highest, slot)))
    });
    group.root = best.unwrap_or_default();
}

/// Where a replica stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its site.
    pub site: Option<SiteId>,
    /// The folder that its pages are in.
    pub folder: String,
}

/// The region of a replica; `path_of` gives the paths of its pages.
pub fn region<'a>(replica: &Replica, path_of: impl Fn(DocId) -> &'a str) -> Region {
    let folder = place::common_folder(replica.own_pages().map(|member| path_of(member.doc)));
    Region { site: replica.site, folder: folder.to_owned() }
}

/// A page in the region of a replica that is no part of it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearby<'a> {
    /// The document.
    pub doc: DocId,
    /// Its path.
    pub path: &'a str,
}

/// Takes pages nearby into a replica: those at the place of a slot that it lacks as changed, others
/// as added. Returns how many of each. The principal's own come first, as added; `paths` knows the
/// paths of all pages of the group.
pub fn take_in<'a>(
    group: &mut Group,
    replica: usize,
    nearby: &[Nearby<'a>],
    path_of: impl Fn(DocId) -> &'a str,
) -> (u64, u64) {
    let folders = (replica != group.principal).then(|| alignment(group, replica, &path_of)).flatten();
    let mut slot_at: HashMap<&str, SlotId> = HashMap::new();
    if folders.is_some() {
        for member in group.replicas[group.principal].own_pages() {
            slot_at.insert(path_of(member.doc), member.slot);
        }
    }
    let mut taken: BTreeSet<SlotId> =
        group.replicas[replica].members.iter().map(|member| member.slot).collect();
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
                new.push(Member { slot: SlotId(group.slots), doc: page.doc, role: Role::Added });
                group.slots += 1;
            }
        }
    }
    let members = &mut group.replicas[replica].members;
    members.extend(new);
    members.sort_unstable();
    (changed, added)
}

/// The folders of the principal and of a replica that correspond, as most of the pages that both
/// have say it; `None` when there is no majority.
pub fn alignment<'a>(
    group: &Group,
    replica: usize,
    path_of: impl Fn(DocId) -> &'a str,
) -> Option<(String, String)> {
    let principal = &group.replicas[group.principal];
    let mut votes: HashMap<(&str, &str), usize> = HashMap::new();
    let mut n = 0;
    for member in group.replicas[replica].members.iter().filter(|member| member.role == Role::Copy) {
        let Some(there) = principal.page(member.slot).filter(|there| there.role == Role::Copy) else {
            continue;
        };
        n += 1;
        *votes.entry(place::corresponding(path_of(there.doc), path_of(member.doc))).or_default() += 1;
    }
    let (folders, count) = votes.into_iter().max_by_key(|&(folders, count)| (count, folders))?;
    (count * 2 > n).then(|| (folders.0.to_owned(), folders.1.to_owned()))
}

/// Puts changed pages of two clusters at one place into one slot: where a replica has a page at the
/// place of a slot of the principal that it lacks, it is that page, changed.
pub fn align_changed<'a>(group: &mut Group, path_of: impl Fn(DocId) -> &'a str) {
    for replica in 0..group.replicas.len() {
        if replica == group.principal {
            continue;
        }
        let Some((there, here)) = alignment(group, replica, &path_of) else { continue };
        let slot_at: HashMap<&str, SlotId> = group.replicas[group.principal]
            .own_pages()
            .filter(|member| member.role != Role::Alias)
            .map(|member| (path_of(member.doc), member.slot))
            .collect();
        let principal_has: BTreeSet<SlotId> =
            group.replicas[group.principal].members.iter().map(|member| member.slot).collect();
        let mut taken: BTreeSet<SlotId> =
            group.replicas[replica].members.iter().map(|member| member.slot).collect();
        for member in &mut group.replicas[replica].members {
            if principal_has.contains(&member.slot) || matches!(member.role, Role::Virtual | Role::Alias) {
                continue;
            }
            let rest = path_of(member.doc).strip_prefix(here.as_str());
            let Some(slot) = rest.and_then(|rest| slot_at.get(format!("{there}{rest}").as_str()).copied())
            else {
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
    let used: BTreeSet<SlotId> =
        group.replicas.iter().flat_map(|replica| &replica.members).map(|member| member.slot).collect();
    let number: HashMap<SlotId, SlotId> =
        SlotId::MIN.onward().zip(&used).map(|(number, slot)| (*slot, number)).collect();
    for member in group.replicas.iter_mut().flat_map(|replica| &mut replica.members) {
        member.slot = number[&member.slot];
    }
    group.root = number.get(&group.root).copied().unwrap_or_default();
    group.slots = used.len() as u32;
}

/// Marks what replicas link to on the principal and do not have themselves. `links` are from pages
/// of the replica to pages of the principal.
pub fn mark_virtual(group: &mut Group, replica: usize, links: impl IntoIterator<Item = DocId>) -> u64 {
    if replica == group.principal {
        return 0;
    }
    let slot_of: HashMap<DocId, SlotId> =
        group.replicas[group.principal].own_pages().map(|member| (member.doc, member.slot)).collect();
    let members = &mut group.replicas[replica].members;
    let mut taken: BTreeSet<SlotId> = members.iter().map(|member| member.slot).collect();
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
