//! Components become groups, a batch of them at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::component::Web;
use crate::describe::{Description, describe};
use crate::grow::{Growth, grow};
use crate::principal::{self, Facts, Voter, Votes};
use crate::{Graph, Group, Merge, Page, Role, place, tolerant};
use onionskin_core::{CollectionId, DocId, Packed, ReplicaId, SiteId};
use onionskin_extract::url::without_user;
use onionskin_similar::SimilarError;
use onionskin_store::table::{CollectionGroupRow, CollectionPageRow, CollectionRow};
use onionskin_store::{Staging, raw::RawRecords};

use super::pages::{Material, OfAtlas, PAGE_BYTES, Pages, Sites};
use super::{Counts, LINKED, MEMBERS, Run, VOTES, nearby, open_links};

/// Bytes of an address, a title and a canonical address, as estimated for batches.
const TEXT_BYTES: u64 = 240;
/// Bytes of a link while its component is worked on.
const LINK_BYTES: u64 = 32;
/// Bytes of a domain that links to a page.
const VOTE_BYTES: u64 = size_of::<(DocId, Voter)>() as u64;
/// Bytes a document that are held beside batches: clusters, sites, components, places in the batch,
/// counts of links.
const HELD_BYTES: u64 = 28;

pub(super) fn run(run: &mut Run<'_, '_, '_>) -> Result<(), SimilarError> {
    let web = run.web()?;
    let mut sites = Sites::read(run.0.stage.atlas)?;
    for doc in DocId::range(0..web.documents()) {
        sites.count(web.site(doc));
    }
    let members = members(run.0.staging.raw_records(MEMBERS))?;
    let mut component_of = vec![Packed::NONE; web.documents() as usize];
    for &(component, doc) in &members {
        component_of[doc.index()] = component.into();
    }
    let links_of = count_links(run, &component_of)?;
    let votes_of = count_votes(run, &component_of)?;
    let voters: Arc<[Option<Voter>]> = sites.voters().into();
    let room = run.0.stage.params.batch_bytes.unwrap_or_else(|| run.resources(HELD_BYTES).memory.bytes());
    let mut rest = members.as_slice();
    let mut number = CollectionId::MIN;
    while !rest.is_empty() {
        let (batch, later) = rest.split_at(batch_len(rest, &links_of, &votes_of, room)?);
        rest = later;
        let material = OfAtlas(run.0.stage.atlas, web.documents());
        let linked_from = LinkedFrom(of_batch(run, LINKED, &component_of, batch)?);
        let votes = Votes { of_site: Arc::clone(&voters), cast: of_batch(run, VOTES, &component_of, batch)? };
        let batch = Batch {
            material: &material,
            growth: run.0.stage.growth(),
            web: &web,
            sites: &sites,
            component_of: &component_of,
            members: batch,
            linked_from: &linked_from,
            votes: &votes,
            near: None,
        };
        for described in batch.groups()? {
            described.write(&mut run.0.staging, number)?;
            described.count(&mut run.0.state.counts);
            number.0 += 1;
        }
    }
    Ok(())
}

/// Component and document, sorted.
fn members(records: RawRecords<(DocId, DocId)>) -> Result<Vec<(DocId, DocId)>, SimilarError> {
    let mut members = Vec::new();
    for record in records {
        let (doc, component) = record?;
        members.push((component, doc));
    }
    members.sort_unstable();
    Ok(members)
}

/// Links inside each component, at its smallest cluster.
fn count_links(run: &Run<'_, '_, '_>, component_of: &[Packed<DocId>]) -> Result<Vec<u32>, SimilarError> {
    let mut counts = vec![0u32; component_of.len()];
    for link in open_links(run.0.stage.atlas, component_of.len() as u32)? {
        let (source, destination) = link?;
        let component = component_of[source.index()];
        if let Some(at) = component.get()
            && component == component_of[destination.index()]
        {
            counts[at.index()] = counts[at.index()].saturating_add(1);
        }
    }
    Ok(counts)
}

/// Domains that link to the pages of each component, at its smallest cluster.
fn count_votes(run: &Run<'_, '_, '_>, component_of: &[Packed<DocId>]) -> Result<Vec<u32>, SimilarError> {
    let mut counts = vec![0u32; component_of.len()];
    for record in run.0.staging.raw_records::<(DocId, Voter)>(VOTES) {
        let (doc, _) = record?;
        if let Some(at) = component_of[doc.index()].get() {
            counts[at.index()] = counts[at.index()].saturating_add(1);
        }
    }
    Ok(counts)
}

/// How many of the next members make a batch: whole components, as many as fit, one at least.
fn batch_len(
    members: &[(DocId, DocId)],
    links_of: &[u32],
    votes_of: &[u32],
    room: u64,
) -> Result<usize, SimilarError> {
    let (mut len, mut held) = (0, 0);
    for component in members.chunk_by(|a, b| a.0 == b.0) {
        let links = u64::from(links_of[component[0].0.index()]);
        let votes = u64::from(votes_of[component[0].0.index()]);
        let bytes =
            component.len() as u64 * (PAGE_BYTES + TEXT_BYTES) + links * LINK_BYTES + votes * VOTE_BYTES;
        if bytes > room {
            return Err(SimilarError::LargeComponent { pages: component.len(), links, mib: bytes >> 20 });
        }
        if len > 0 && held + bytes > room {
            break;
        }
        held += bytes;
        len += component.len();
    }
    Ok(len)
}

/// What a work file has for the pages of a batch.
fn of_batch(
    run: &Run<'_, '_, '_>,
    file: &str,
    component_of: &[Packed<DocId>],
    members: &[(DocId, DocId)],
) -> Result<Vec<(DocId, u32)>, SimilarError> {
    let (first, last) = (members[0].0, members[members.len() - 1].0);
    let mut found = Vec::new();
    for record in run.0.staging.raw_records::<(DocId, u32)>(file) {
        let (doc, value) = record?;
        if component_of[doc.index()].get().is_some_and(|of| (first..=last).contains(&of)) {
            found.push((doc, value));
        }
    }
    Ok(found)
}

/// Some components.
pub(crate) struct Batch<'a> {
    pub material: &'a dyn Material,
    pub growth: Growth,
    pub web: &'a Web,
    pub sites: &'a Sites,
    pub component_of: &'a [Packed<DocId>],
    /// Component and document, sorted.
    pub members: &'a [(DocId, DocId)],
    pub linked_from: &'a LinkedFrom,
    pub votes: &'a Votes,
    /// Pages near replicas, where they are known already.
    pub near: Option<&'a [(DocId, nearby::Place)]>,
}

impl Batch<'_> {
    /// The collections of the components, in order.
    pub(crate) fn groups(&self) -> Result<Vec<Described>, SimilarError> {
        let (pages, mut groups) = self.copies()?;
        let near = if self.growth.merge == Merge::Tolerant {
            let near =
                nearby::take_in(self.material, self.web, self.component_of, &pages, self.near, &mut groups)?;
            // What was taken in may be the page that stands highest.
            for group in &mut groups {
                let linked_from = |doc| self.linked_from.of(doc);
                tolerant::choose_root(group, linked_from, |doc| path_of(&pages, &near, doc));
            }
            near
        } else {
            Pages::default()
        };
        Ok(self.describe(groups, &pages, &near))
    }

    /// What copies alone tell: groups before pages nearby are taken in, and what is known of their
    /// pages.
    pub(crate) fn copies(&self) -> Result<(Pages, Vec<Group>), SimilarError> {
        let (Some(first), Some(last)) = (self.members.first(), self.members.last()) else {
            return Ok((Pages::default(), Vec::new()));
        };
        let here = first.0..=last.0;
        let in_batch = |doc: DocId| self.component_of[doc.index()].get().is_some_and(|of| here.contains(&of));
        let pages = Pages::read(self.material, in_batch)?;
        let mut groups = Vec::new();
        for graph in &self.components(&pages)? {
            if self.growth.merge == Merge::Tolerant {
                let paths: Vec<&str> =
                    graph.pages().iter().map(|page| place::path(pages.info(page.doc).url)).collect();
                groups.extend(tolerant::assemble(graph, &paths));
            } else {
                groups.extend(grow(graph, self.growth));
            }
        }
        let (page, site) = (|doc: DocId| pages.info(doc), |site: Option<SiteId>| self.sites.info(site));
        let facts = Facts { page: &page, site: &site, site_of: &|doc| self.web.site(doc), votes: self.votes };
        for group in &mut groups {
            principal::choose(group, &facts);
            if self.growth.merge == Merge::Tolerant {
                tolerant::align_changed(group, |doc| place::path(pages.info(doc).url));
            }
        }
        Ok((pages, groups))
    }

    /// The graphs of the components, in order.
    fn components(&self, pages: &Pages) -> Result<Vec<Graph>, SimilarError> {
        let mut links: Vec<(DocId, DocId, DocId)> = Vec::new();
        let (first, last) = (self.members[0].0, self.members[self.members.len() - 1].0);
        for link in self.material.links()? {
            let (source, destination) = link?;
            let component = self.component_of[source.index()];
            if component == self.component_of[destination.index()]
                && let Some(component) = component.get().filter(|of| (first..=last).contains(of))
            {
                links.push((component, source, destination));
            }
        }
        links.sort_unstable();
        let mut links = links.chunk_by(|a, b| a.0 == b.0).peekable();
        let mut components = Vec::new();
        for members in self.members.chunk_by(|a, b| a.0 == b.0) {
            let here: Vec<Page> = members
                .iter()
                // A page without an address stands nowhere.
                .filter(|(_, doc)| !pages.info(*doc).url.is_empty() || self.growth.merge != Merge::Tolerant)
                .map(|&(_, doc)| Page {
                    doc,
                    cluster: self.web.cluster(doc),
                    site: self.web.site(doc).into(),
                    linked_from: self.linked_from.of(doc),
                })
                .collect();
            let index =
                |doc: DocId| here.binary_search_by_key(&doc, |page| page.doc).ok().map(|at| at as u32);
            let own = links.next_if(|links| links[0].0 == members[0].0).unwrap_or_default();
            let own = own.iter().filter_map(|&(_, from, to)| Some((index(from)?, index(to)?))).collect();
            components.push(Graph::new(here, own));
        }
        Ok(components)
    }

    fn describe(&self, groups: Vec<Group>, pages: &Pages, near: &Pages) -> Vec<Described> {
        let page = |doc: DocId| {
            let info = pages.info(doc);
            if info.url.is_empty() { near.info(doc) } else { info }
        };
        let described = groups.into_iter().map(|group| {
            let description = describe(&group, &page, &|site| self.sites.info(site));
            let root_urls = (0..group.replicas.len())
                .map(|replica| group.root_of(replica).map(|doc| page(doc).url).filter(|url| !url.is_empty()))
                // Tables are passed on; what a user is called there is nobody's business.
                .map(|url| url.map(|url| without_user(url).into_owned()))
                .collect();
            Described { group, description, root_urls }
        });
        described.collect()
    }
}

/// Documents that other sites link to, and how many do, in order.
pub(crate) struct LinkedFrom(pub Vec<(DocId, u32)>);

impl LinkedFrom {
    fn of(&self, doc: DocId) -> u32 {
        self.0.binary_search_by_key(&doc, |entry| entry.0).map_or(0, |at| self.0[at].1)
    }
}

/// The path of a page, of the batch or near it.
pub(super) fn path_of<'a>(pages: &'a Pages, near: &'a Pages, doc: DocId) -> &'a str {
    let url = pages.info(doc).url;
    place::path(if url.is_empty() { near.info(doc).url } else { url })
}

/// A group and what is said of it.
pub(crate) struct Described {
    pub group: Group,
    pub description: Description,
    pub root_urls: Vec<Option<String>>,
}

impl Described {
    /// Copies outside the principal, and their bytes.
    fn duplicates(&self) -> (u64, u64) {
        let others =
            self.description.replicas.iter().enumerate().filter(|(at, _)| *at != self.group.principal);
        others.fold((0, 0), |(pages, bytes), (_, replica)| {
            (pages + replica.copies, bytes + replica.copied_bytes)
        })
    }

    fn write(&self, staging: &mut Staging, number: CollectionId) -> Result<(), SimilarError> {
        staging.collection_groups()?.push(&self.group_row(number))?;
        for (at, replica) in self.group.replicas.iter().enumerate() {
            staging.collections()?.push(&self.replica_row(number, at))?;
            for member in &replica.members {
                staging.collection_pages()?.push(&CollectionPageRow {
                    group: number,
                    replica: ReplicaId::at(at),
                    slot: member.slot,
                    doc: member.doc,
                    is_virtual: member.role == Role::Virtual,
                    role: member.role,
                })?;
            }
        }
        Ok(())
    }

    /// The row of `collection_groups`.
    pub(crate) fn group_row(&self, number: CollectionId) -> CollectionGroupRow {
        let (group, description) = (&self.group, &self.description);
        let sites: BTreeSet<Option<SiteId>> = group.replicas.iter().map(|replica| replica.site).collect();
        let (duplicate_pages, duplicate_bytes) = self.duplicates();
        CollectionGroupRow {
            group: number,
            kind: description.kind,
            name: description.name.clone(),
            replicas: group.replicas.len() as u64,
            slots: description.size.into(),
            sites: sites.len() as u64,
            pages: description.replicas.iter().map(|replica| replica.pages).sum(),
            bytes: description.replicas.iter().map(|replica| replica.bytes).sum(),
            duplicate_pages,
            duplicate_bytes,
            is_noise: description.is_noise,
            evidence: description.evidence.clone(),
            principal_reason: Some(group.chosen.reason),
            principal_evidence: Some(group.chosen.evidence.clone()),
        }
    }

    /// The row of `collections` of a replica.
    pub(crate) fn replica_row(&self, number: CollectionId, at: usize) -> CollectionRow {
        let (group, described) = (&self.group, &self.description.replicas[at]);
        CollectionRow {
            group: number,
            replica: ReplicaId::at(at),
            site: group.replicas[at].site,
            root_doc: group.root_of(at).unwrap_or_default(),
            root_url: self.root_urls[at].clone(),
            pages: described.pages,
            is_principal: at == group.principal,
            folder: described.folder.clone(),
            kind: described.kind,
            coverage: described.coverage,
            copies: described.copies,
            changed: described.changed,
            added: described.added,
            missing: described.missing,
            virtual_pages: described.virtual_pages,
            bytes: described.bytes,
            newer: described.newer,
        }
    }

    fn count(&self, counts: &mut Counts) {
        let description = &self.description;
        counts.groups += 1;
        counts.noise_groups += u64::from(description.is_noise);
        counts.replicas += self.group.replicas.len() as u64;
        counts.pages += description.replicas.iter().map(|replica| replica.pages).sum::<u64>();
        if !description.is_noise {
            let (pages, bytes) = self.duplicates();
            counts.duplicate_pages += pages;
            counts.duplicate_bytes += bytes;
        }
        *counts.kinds.entry(description.kind.as_str().to_owned()).or_default() += 1;
    }
}
