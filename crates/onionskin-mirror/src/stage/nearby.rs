//! Pages near a replica that have no copies anywhere: they are what was added or changed.
//!
//! A page is near when it stands on the replica's site in the replica's folder and is linked with
//! it, directly or over other such pages. A folder counts only where at least a third of what it
//! holds belongs to the replica; else a collection at the root of a large site would take in the
//! site.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::component::Web;
use crate::tolerant::{self, Nearby};
use crate::{Group, place};
use onionskin_core::{DocId, Packed, SiteId};
use onionskin_similar::{Bits, SimilarError};

use super::assemble::path_of;
use super::pages::{Material, Pages, Seen};

/// A replica: its group in the list of groups, and its place in the group.
pub(crate) type Place = (u32, u32);

/// Takes pages nearby into the groups, and marks what replicas only link to; `known` are those that
/// stand densely enough, sorted, where somebody has counted already. Returns what is known of the
/// pages that were looked at.
pub(super) fn take_in(
    material: &dyn Material,
    web: &Web,
    component_of: &[Packed<DocId>],
    pages: &Pages,
    known: Option<&[(DocId, Place)]>,
    groups: &mut [Group],
) -> Result<Pages, SimilarError> {
    let (near, kept) = match known {
        Some(known) => {
            let near =
                Pages::read(material, |doc| known.binary_search_by_key(&doc, |entry| entry.0).is_ok())?;
            (near, known.to_vec())
        }
        None => {
            let density = Density::new(groups, pages);
            Regions::new(groups, pages).candidates(material, web, component_of, density)?
        }
    };
    let found = Links::read(material, web, groups, &kept)?;
    let reached = found.reached(&kept);
    let mut nearby: BTreeMap<Place, Vec<DocId>> = BTreeMap::new();
    for (&(doc, place), _) in kept.iter().zip(&reached).filter(|(_, reached)| **reached) {
        nearby.entry(place).or_default().push(doc);
    }
    for (number, group) in (0..).zip(groups) {
        // The principal first: what it has is what the others may have changed.
        let mut order: Vec<u32> = (0..group.replicas.len() as u32).collect();
        order.sort_by_key(|&replica| replica as usize != group.principal);
        let path_of = |doc: DocId| path_of(pages, &near, doc);
        for replica in order {
            let docs = nearby.remove(&(number, replica)).unwrap_or_default();
            let docs: Vec<Nearby<'_>> = docs.iter().map(|&doc| Nearby { doc, path: path_of(doc) }).collect();
            tolerant::take_in(group, replica as usize, &docs, path_of);
        }
        for replica in 0..group.replicas.len() {
            let here = (number, replica as u32);
            let links =
                found.to_principal.range((here, DocId::MIN)..=(here, DocId::MAX)).map(|(_, doc)| *doc);
            tolerant::mark_virtual(group, replica, links);
        }
    }
    Ok(near)
}

/// The folders of replicas, by site and folder.
struct Regions {
    by_site: HashMap<Option<SiteId>, HashMap<String, Vec<Place>>>,
}

impl Regions {
    fn new(groups: &[Group], pages: &Pages) -> Regions {
        let mut by_site: HashMap<Option<SiteId>, HashMap<String, Vec<Place>>> = HashMap::new();
        for (number, group) in (0..).zip(groups) {
            for (at, replica) in (0..).zip(&group.replicas) {
                let region = tolerant::region(replica, |doc| place::path(pages.info(doc).url));
                by_site.entry(region.site).or_default().entry(region.folder).or_default().push((number, at));
            }
        }
        Regions { by_site }
    }

    /// Hands out pages without copies that stand in these folders, with the replica of each group
    /// that they are near.
    fn visit(
        &self,
        material: &dyn Material,
        web: &Web,
        component_of: &[Packed<DocId>],
        mut near: impl FnMut(&Seen<'_>, &str, &[Place]),
    ) -> Result<(), SimilarError> {
        let mut places: Vec<Place> = Vec::new();
        material.documents(&mut |row| {
            let site = web.site(row.doc);
            if component_of[row.doc.index()].is_some() || site.is_none() {
                return;
            }
            let (Some(regions), Some(url)) = (self.by_site.get(&site), row.url) else { return };
            let path = place::path(url);
            places.clear();
            // Of each group the replica with the deepest folder.
            for folder in place::folders(path) {
                for &place in regions.get(folder).into_iter().flatten() {
                    if places.iter().all(|known| known.0 != place.0) {
                        places.push(place);
                    }
                }
            }
            if !places.is_empty() {
                near(row, place::folder(path), &places);
            }
        })
    }

    /// Pages that are near enough: a first pass counts, so that what the second one keeps is in
    /// proportion to the replicas, however large the sites are that they stand on. Candidates are
    /// sorted by document.
    fn candidates(
        &self,
        material: &dyn Material,
        web: &Web,
        component_of: &[Packed<DocId>],
        mut density: Density,
    ) -> Result<(Pages, Vec<(DocId, Place)>), SimilarError> {
        self.visit(material, web, component_of, |_, folder, places| {
            places.iter().for_each(|&place| density.count(place, folder));
        })?;
        let (mut near, mut candidates) = (Pages::default(), Vec::new());
        self.visit(material, web, component_of, |row, folder, places| {
            let before = candidates.len();
            let dense = places.iter().filter(|&&place| density.is_dense(place, folder));
            candidates.extend(dense.map(|&place| (row.doc, place)));
            if candidates.len() > before {
                near.push(row);
            }
        })?;
        candidates.sort_unstable();
        Ok((near, candidates))
    }
}

/// Pages of a replica, and others.
#[derive(Clone, Copy, Debug, Default)]
struct Mixture {
    own: u64,
    others: u64,
}

impl Mixture {
    fn is_dense(self) -> bool {
        self.own * 2 >= self.others
    }
}

/// What the folders of replicas hold beside them: all in all, and in each folder that has pages of
/// the replica.
struct Density {
    whole: HashMap<Place, Mixture>,
    folders: HashMap<Place, HashMap<String, Mixture>>,
}

impl Density {
    fn new(groups: &[Group], pages: &Pages) -> Density {
        let mut density = Density { whole: HashMap::new(), folders: HashMap::new() };
        for (number, group) in (0..).zip(groups) {
            for (at, replica) in (0..).zip(&group.replicas) {
                let folders = density.folders.entry((number, at)).or_default();
                let whole = density.whole.entry((number, at)).or_default();
                for member in replica.own_pages() {
                    whole.own += 1;
                    let folder = place::folder(place::path(pages.info(member.doc).url));
                    match folders.get_mut(folder) {
                        Some(mixture) => mixture.own += 1,
                        None => {
                            folders.insert(folder.to_owned(), Mixture { own: 1, others: 0 });
                        }
                    }
                }
            }
        }
        density
    }

    fn count(&mut self, place: Place, folder: &str) {
        self.whole.entry(place).or_default().others += 1;
        if let Some(mixture) = self.folders.get_mut(&place).and_then(|folders| folders.get_mut(folder)) {
            mixture.others += 1;
        }
    }

    fn is_dense(&self, place: Place, folder: &str) -> bool {
        let here = || self.folders.get(&place).and_then(|folders| folders.get(folder));
        self.whole.get(&place).is_some_and(|mixture| mixture.is_dense())
            || here().is_some_and(|mixture| mixture.is_dense())
    }
}

/// Links of pages nearby, and from replicas to their principals.
struct Links {
    /// Candidates that a page of their replica links to, or that link to one.
    linked: Vec<bool>,
    /// Candidates that are linked with each other.
    between: Vec<(u32, u32)>,
    /// Replica, and the page of the principal that it links to.
    to_principal: BTreeSet<(Place, DocId)>,
}

impl Links {
    fn read(
        material: &dyn Material,
        web: &Web,
        groups: &[Group],
        kept: &[(DocId, Place)],
    ) -> Result<Links, SimilarError> {
        let mut place_of: HashMap<DocId, Place> = HashMap::new();
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
        let entries = |doc: DocId| {
            let start = kept.partition_point(|entry| entry.0 < doc);
            (start..kept.len()).take_while(move |&at| kept[at].0 == doc)
        };
        let principal = |place: Place| (place.0, groups[place.0 as usize].principal as u32);
        let mut links =
            Links { linked: vec![false; kept.len()], between: Vec::new(), to_principal: BTreeSet::new() };
        for link in material.links()? {
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
    fn reached(&self, kept: &[(DocId, Place)]) -> Vec<bool> {
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
