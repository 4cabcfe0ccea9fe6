//! Pages near a replica that have no copies anywhere: they are what was added or changed.
//!
//! A page is near when it stands on the replica's site in the replica's folder and is linked with it, directly or over other such pages. A folder
//! counts only where at least a third of what it holds belongs to the replica; else a collection at the root of a large site would take in the
//! site.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use onionskin_mirror::component::{NONE, Web};
use onionskin_mirror::tolerant::{self, Nearby};
use onionskin_mirror::{Group, place};
use onionskin_similar::{Bits, SimilarError};
use onionskin_store::Atlas;

use super::assemble::path_of;
use super::open_links;
use super::pages::{COLUMNS, Pages};

/// A replica: group and number.
type Place = (u32, u32);

/// Takes pages nearby into the groups, and marks what replicas only link to. Returns what is known of the pages that were looked at.
pub(super) fn take_in(
    atlas: &Atlas,
    web: &Web,
    component_of: &[u32],
    pages: &Pages,
    groups: &mut [Group],
) -> Result<Pages, SimilarError> {
    let regions = Regions::new(groups, pages);
    let (near, candidates) = regions.candidates(atlas, web, component_of)?;
    let kept = dense(groups, pages, &near, candidates);
    let found = Links::read(atlas, web, groups, &kept)?;
    let reached = found.reached(&kept);
    let mut nearby: BTreeMap<Place, Vec<u32>> = BTreeMap::new();
    for (&(doc, place), _) in kept.iter().zip(&reached).filter(|(_, reached)| **reached) {
        nearby.entry(place).or_default().push(doc);
    }
    for (number, group) in (0..).zip(groups) {
        // The principal first: what it has is what the others may have changed.
        let mut order: Vec<u32> = (0..group.replicas.len() as u32).collect();
        order.sort_by_key(|&replica| replica as usize != group.principal);
        let path_of = |doc: u32| path_of(pages, &near, doc);
        for replica in order {
            let docs = nearby.remove(&(number, replica)).unwrap_or_default();
            let docs: Vec<Nearby<'_>> = docs.iter().map(|&doc| Nearby { doc, path: path_of(doc) }).collect();
            tolerant::take_in(group, replica as usize, &docs, path_of);
        }
        for replica in 0..group.replicas.len() {
            let here = (number, replica as u32);
            let links = found.to_principal.range((here, 0)..=(here, u32::MAX)).map(|(_, doc)| *doc);
            tolerant::mark_virtual(group, replica, links);
        }
    }
    Ok(near)
}

/// The folders of replicas, by site and folder.
struct Regions {
    by_site: HashMap<u32, HashMap<String, Vec<Place>>>,
}

impl Regions {
    fn new(groups: &[Group], pages: &Pages) -> Regions {
        let mut by_site: HashMap<u32, HashMap<String, Vec<Place>>> = HashMap::new();
        for (number, group) in (0..).zip(groups) {
            for (at, replica) in (0..).zip(&group.replicas) {
                let region = tolerant::region(replica, |doc| place::path(pages.info(doc).url));
                by_site.entry(region.site).or_default().entry(region.folder).or_default().push((number, at));
            }
        }
        Regions { by_site }
    }

    /// Pages without copies in these folders, with the replica of each group that they are near.
    fn candidates(
        &self,
        atlas: &Atlas,
        web: &Web,
        component_of: &[u32],
    ) -> Result<(Pages, Vec<(u32, Place)>), SimilarError> {
        let (mut near, mut candidates) = (Pages::default(), Vec::new());
        for batch in atlas.documents()?.only(&COLUMNS) {
            for row in batch?.rows() {
                let site = web.site(row.doc);
                if component_of[row.doc as usize] != NONE || site == NONE {
                    continue;
                }
                let (Some(regions), Some(url)) = (self.by_site.get(&site), row.url) else { continue };
                let path = place::path(url);
                let before = candidates.len();
                // Of each group the replica with the deepest folder.
                for folder in place::folders(path) {
                    for &place in regions.get(folder).into_iter().flatten() {
                        if candidates[before..].iter().all(|(_, known): &(u32, Place)| known.0 != place.0) {
                            candidates.push((row.doc, place));
                        }
                    }
                }
                if candidates.len() > before {
                    near.push(&row);
                }
            }
        }
        Ok((near, candidates))
    }
}

/// Leaves out candidates of folders that mostly hold something else. The answer is sorted by document.
fn dense(groups: &[Group], pages: &Pages, near: &Pages, candidates: Vec<(u32, Place)>) -> Vec<(u32, Place)> {
    let mut of_place: BTreeMap<Place, Vec<u32>> = BTreeMap::new();
    for (doc, place) in candidates {
        of_place.entry(place).or_default().push(doc);
    }
    let mut kept = Vec::new();
    for (place, docs) in of_place {
        let replica = &groups[place.0 as usize].replicas[place.1 as usize];
        let own = replica.own_pages().count();
        if own * 2 >= docs.len() {
            kept.extend(docs.into_iter().map(|doc| (doc, place)));
            continue;
        }
        // Folder by folder: pages of the replica against others.
        let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
        for member in replica.own_pages() {
            counts.entry(place::folder(place::path(pages.info(member.doc).url))).or_default().0 += 1;
        }
        let folder_of = |doc: u32| place::folder(place::path(near.info(doc).url));
        for &doc in &docs {
            counts.entry(folder_of(doc)).or_default().1 += 1;
        }
        let is_dense = |doc: u32| counts.get(folder_of(doc)).is_some_and(|(own, others)| own * 2 >= *others);
        kept.extend(docs.into_iter().filter(|&doc| is_dense(doc)).map(|doc| (doc, place)));
    }
    kept.sort_unstable();
    kept
}

/// Links of pages nearby, and from replicas to their principals.
struct Links {
    /// Candidates that a page of their replica links to, or that link to one.
    linked: Vec<bool>,
    /// Candidates that are linked with each other.
    between: Vec<(u32, u32)>,
    /// Replica, and the page of the principal that it links to.
    to_principal: BTreeSet<(Place, u32)>,
}

impl Links {
    fn read(
        atlas: &Atlas,
        web: &Web,
        groups: &[Group],
        kept: &[(u32, Place)],
    ) -> Result<Links, SimilarError> {
        let mut place_of: HashMap<u32, Place> = HashMap::new();
        let mut known = Bits::new(web.documents().into());
        for (number, group) in (0..).zip(groups) {
            for (at, replica) in (0..).zip(&group.replicas) {
                for member in replica.own_pages() {
                    place_of.insert(member.doc, (number, at));
                    known.set(member.doc);
                }
            }
        }
        for &(doc, _) in kept {
            known.set(doc);
        }
        let entries = |doc: u32| {
            let start = kept.partition_point(|entry| entry.0 < doc);
            (start..kept.len()).take_while(move |&at| kept[at].0 == doc)
        };
        let principal = |place: Place| (place.0, groups[place.0 as usize].principal as u32);
        let mut links =
            Links { linked: vec![false; kept.len()], between: Vec::new(), to_principal: BTreeSet::new() };
        for link in open_links(atlas, web.documents())? {
            let (source, destination) = link?;
            if !known.get(source) || !known.get(destination) {
                continue;
            }
            let (from, to) = (place_of.get(&source).copied(), place_of.get(&destination).copied());
            if web.site(source) == web.site(destination) {
                match (from, to) {
                    (Some(_), Some(_)) => {}
                    (Some(place), None) => {
                        entries(destination)
                            .filter(|&at| kept[at].1 == place)
                            .for_each(|at| links.linked[at] = true);
                    }
                    (None, Some(place)) => {
                        entries(source)
                            .filter(|&at| kept[at].1 == place)
                            .for_each(|at| links.linked[at] = true);
                    }
                    (None, None) => {
                        for a in entries(source) {
                            let same = entries(destination).filter(|&b| kept[b].1 == kept[a].1);
                            links.between.extend(same.map(|b| (a as u32, b as u32)));
                        }
                    }
                }
            } else if let Some(place) = from {
                let at_principal = to == Some(principal(place))
                    || entries(destination).any(|at| kept[at].1 == principal(place));
                if at_principal {
                    links.to_principal.insert((place, destination));
                }
            }
        }
        Ok(links)
    }

    /// Which candidates hang together with their replica.
    fn reached(&self, kept: &[(u32, Place)]) -> Vec<bool> {
        let mut neighbours: HashMap<u32, Vec<u32>> = HashMap::new();
        for &(a, b) in &self.between {
            neighbours.entry(a).or_default().push(b);
            neighbours.entry(b).or_default().push(a);
        }
        let mut reached = self.linked.clone();
        let mut queue: Vec<u32> = (0..kept.len() as u32).filter(|&at| reached[at as usize]).collect();
        while let Some(at) = queue.pop() {
            for &next in neighbours.get(&at).into_iter().flatten() {
                if !std::mem::replace(&mut reached[next as usize], true) {
                    queue.push(next);
                }
            }
        }
        reached
    }
}
