//! Pieces of the search for mirrors.
//!
//! Documents and sites have numbers of 64 bits here. Inside they are numbered anew, in the same
//! order, so that whatever is decided by the smaller number is decided as in the whole web.

use std::collections::BTreeMap;

use crate::alias::rewritings as every_rewriting;
use crate::component::{self, Web};
use crate::grow::Growth;
use crate::principal::{Voter, Votes};
use crate::{Role, place, tolerant};
use onionskin_core::{CollectionId, DocId, Packed, ReplicaId, SiteId, SlotId};
pub use onionskin_extract::url::voter;
use onionskin_similar::{Resources, SimilarError};
use onionskin_store::table::{CollectionGroupRow, CollectionRow};

use crate::stage::Links;
use crate::stage::assemble::{Batch, LinkedFrom};
use crate::stage::pages::{Material, Seen, Sites};

/// A page of a component, or near one.
#[derive(Clone, Debug, Default)]
pub struct PageRow {
    /// The document.
    pub doc: i64,
    /// The smallest document of its trivial cluster; `None` for a page that is only near the
    /// component.
    pub cluster: Option<i64>,
    /// Its site.
    pub site: Option<i64>,
    /// How many other sites link to it.
    pub linked_from: u32,
    /// The domains that vote for it, as [`voter`] names them: those of pages that link to it. Its
    /// own may be among them.
    pub voters: Vec<String>,
    /// Its address.
    pub url: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The address that it names as canonical.
    pub canonical_url: Option<String>,
    /// Length of the payload.
    pub bytes: u64,
    /// When it was fetched.
    pub fetched_at: Option<i64>,
    /// Fingerprint of its text.
    pub text_fp: Option<u64>,
    /// The host of its site.
    pub host: Option<String>,
    /// The registered domain of its site.
    pub domain: Option<String>,
    /// Pages of its site, all in all.
    pub site_pages: u32,
    /// The replicas that it is near, as group and replica of [`regions`], where it stands densely
    /// enough; of pages that are only near.
    pub near: Vec<(u32, u32)>,
}

/// A component: pages that came together, pages near them, and links between all of these.
#[derive(Clone, Debug, Default)]
pub struct Component {
    /// Pages, in any order; none twice.
    pub pages: Vec<PageRow>,
    /// Links between them, in any order.
    pub links: Vec<(i64, i64)>,
}

/// A page of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberRow {
    /// The replica in its group.
    pub replica: ReplicaId,
    /// Which page of the collection it is.
    pub slot: SlotId,
    /// The document.
    pub doc: i64,
    /// What it is there.
    pub role: Role,
}

/// A collection and its replicas. Numbers of documents and sites in the rows are places in `docs`
/// and `sites`, groups are counted from 0.
#[derive(Clone, Debug)]
pub struct Collection {
    /// What is said of it.
    pub group: CollectionGroupRow,
    /// Its replicas, with site and root page.
    pub replicas: Vec<(CollectionRow, i64, i64)>,
    /// Their pages.
    pub members: Vec<MemberRow>,
}

/// Where a replica stands, and how many of its own pages are where: what decides which pages are
/// near it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionRow {
    /// The group in its component.
    pub group: u32,
    /// The replica in its group.
    pub replica: u32,
    /// Its site.
    pub site: i64,
    /// The folder that holds all its pages.
    pub folder: String,
    /// Pages of its own by folder.
    pub own: BTreeMap<String, u64>,
}

/// A component under new numbers.
struct Numbered {
    docs: Vec<i64>,
    sites: Vec<i64>,
    pages: Vec<PageRow>,
    links: Vec<(DocId, DocId)>,
    web: Web,
    known_sites: Sites,
    component_of: Vec<Packed<DocId>>,
    members: Vec<(DocId, DocId)>,
    linked_from: LinkedFrom,
    votes: Votes,
    near: Vec<(DocId, (u32, u32))>,
}

impl Numbered {
    fn new(component: Component) -> Result<Numbered, SimilarError> {
        let Component { mut pages, links } = component;
        pages.sort_unstable_by_key(|page| page.doc);
        let docs: Vec<i64> = pages.iter().map(|page| page.doc).collect();
        let wrong = |words: String| SimilarError::Parameters(words);
        if let Some(twice) = docs.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(wrong(format!("document {} is twice in its component", twice[0])));
        }
        let mut sites: Vec<(i64, usize)> =
            pages.iter().enumerate().filter_map(|(at, page)| Some((page.site?, at))).collect();
        sites.sort_unstable();
        sites.dedup_by_key(|entry| entry.0);
        let mut known_sites = Sites::default();
        for (_, at) in &sites {
            let page = &pages[*at];
            let host = page.host.as_deref().unwrap_or_default();
            known_sites.push(host, page.domain.as_deref(), page.site_pages);
        }
        let sites: Vec<i64> = sites.into_iter().map(|(site, _)| site).collect();
        let place_of = |doc: i64| docs.binary_search(&doc).ok().map(DocId::at);
        let site_of: Vec<Packed<SiteId>> = pages
            .iter()
            .map(|page| page.site.and_then(|site| sites.binary_search(&site).ok()).map(SiteId::at).into())
            .collect();
        let mut clustered = Vec::new();
        for (at, page) in DocId::MIN.onward().zip(&pages) {
            if let Some(cluster) = page.cluster {
                let least = place_of(cluster).ok_or_else(|| {
                    wrong(format!("document {} is in cluster {cluster}, which is not there", page.doc))
                })?;
                clustered.push((at, least));
            }
        }
        // A component is named by its smallest cluster, and that by its smallest document.
        let name = clustered.iter().map(|(_, least)| *least).min();
        let mut component_of = vec![Packed::NONE; docs.len()];
        let mut members = Vec::with_capacity(clustered.len());
        for (at, _) in &clustered {
            component_of[at.index()] = name.into();
            members.extend(name.map(|name| (name, *at)));
        }
        let links = links.iter().filter_map(|(from, to)| Some((place_of(*from)?, place_of(*to)?))).collect();
        let web = Web::new(site_of, clustered);
        // As in the whole web, links to pages that are only near are not counted.
        let linked = DocId::MIN
            .onward()
            .zip(&pages)
            .filter(|(_, page)| page.linked_from > 0 && page.cluster.is_some());
        let linked_from = LinkedFrom(linked.map(|(at, page)| (at, page.linked_from)).collect());
        let votes = votes(&pages, &known_sites);
        let near = DocId::MIN
            .onward()
            .zip(&pages)
            .flat_map(|(at, page)| page.near.iter().map(move |place| (at, *place)));
        let mut near: Vec<(DocId, (u32, u32))> = near.collect();
        near.sort_unstable();
        near.dedup();
        Ok(Numbered {
            docs,
            sites,
            pages,
            links,
            web,
            known_sites,
            component_of,
            members,
            linked_from,
            votes,
            near,
        })
    }

    /// The number that a site had before; -1 for none.
    fn site_number(&self, site: Option<SiteId>) -> i64 {
        site.and_then(|site| self.sites.get(site.index()).copied()).unwrap_or(-1)
    }

    fn batch(&self, growth: Growth) -> Batch<'_> {
        Batch {
            material: self,
            growth,
            web: &self.web,
            sites: &self.known_sites,
            component_of: &self.component_of,
            members: &self.members,
            linked_from: &self.linked_from,
            votes: &self.votes,
            near: Some(&self.near),
        }
    }
}

/// Votes for the pages of a component; numbers are in the order of the domains that are in it.
fn votes(pages: &[PageRow], sites: &Sites) -> Votes {
    let names: Vec<Option<&str>> = sites.voter_names().collect();
    let cast = pages.iter().filter(|page| page.cluster.is_some()).flat_map(|page| &page.voters);
    let mut known: Vec<&str> = names.iter().copied().flatten().chain(cast.map(String::as_str)).collect();
    known.sort_unstable();
    known.dedup();
    let number = |name: &str| known.binary_search(&name).ok().map(|at| at as Voter);
    let mut cast: Vec<(DocId, Voter)> = DocId::MIN
        .onward()
        .zip(pages)
        .filter(|(_, page)| page.cluster.is_some())
        .flat_map(|(at, page)| page.voters.iter().filter_map(move |name| Some((at, number(name)?))))
        .collect();
    cast.sort_unstable();
    cast.dedup();
    Votes { of_site: names.into_iter().map(|name| number(name?)).collect(), cast }
}

impl Material for Numbered {
    fn documents(&self, visit: &mut dyn FnMut(&Seen<'_>)) -> Result<(), SimilarError> {
        for (doc, page) in DocId::MIN.onward().zip(&self.pages) {
            visit(&Seen {
                doc,
                url: page.url.as_deref(),
                title: page.title.as_deref(),
                canonical: page.canonical_url.as_deref(),
                bytes: page.bytes,
                fetched_at: page.fetched_at,
                text_fp: page.text_fp,
            });
        }
        Ok(())
    }

    fn links(&self) -> Result<Links<'_>, SimilarError> {
        Ok(Box::new(self.links.iter().map(|link| Ok(*link))))
    }
}

/// Where the replicas of a component stand, as far as copies tell.
pub fn regions(component: Component, growth: Growth) -> Result<Vec<RegionRow>, SimilarError> {
    let numbered = Numbered::new(component)?;
    let (pages, groups) = numbered.batch(growth).copies()?;
    let site_number = |site: Option<SiteId>| numbered.site_number(site);
    let mut rows = Vec::new();
    for (group, found) in (0..).zip(&groups) {
        for (replica, of) in (0..).zip(&found.replicas) {
            let path = |doc: DocId| place::path(pages.info(doc).url);
            let region = tolerant::region(of, path);
            let mut own = BTreeMap::new();
            for member in of.own_pages() {
                *own.entry(place::folder(path(member.doc)).to_owned()).or_default() += 1;
            }
            let site = site_number(region.site);
            rows.push(RegionRow { group, replica, site, folder: region.folder, own });
        }
    }
    Ok(rows)
}

/// The collections of a component. Pages near it say which replicas of its [`regions`] they are
/// near.
pub fn collections(component: Component, growth: Growth) -> Result<Vec<Collection>, SimilarError> {
    let numbered = Numbered::new(component)?;
    let doc = |at: DocId| numbered.docs[at.index()];
    let described = numbered.batch(growth).groups()?;
    Ok(CollectionId::MIN
        .onward()
        .zip(described)
        .map(|(number, described)| {
            let replicas = described.group.replicas.iter().enumerate();
            Collection {
                group: described.group_row(number),
                replicas: replicas
                    .clone()
                    .map(|(at, replica)| {
                        let row = described.replica_row(number, at);
                        let site = numbered.site_number(replica.site);
                        let root = doc(row.root_doc);
                        (row, site, root)
                    })
                    .collect(),
                members: replicas
                    .flat_map(|(at, replica)| {
                        replica.members.iter().map(move |member| (ReplicaId::at(at), member))
                    })
                    .map(|(replica, member)| MemberRow {
                        replica,
                        slot: member.slot,
                        doc: doc(member.doc),
                        role: member.role,
                    })
                    .collect(),
            }
        })
        .collect())
}

/// Which trivial clusters come together, all at once, for webs whose clusters and links fit into
/// the memory of one worker: every cluster with its component. Documents come as (document,
/// smallest of its cluster, site), those without copies as their own.
pub fn components(
    documents: &[(i64, i64, Option<i64>)],
    links: &[(i64, i64)],
    growth: Growth,
    resources: &Resources,
) -> Result<Vec<(i64, i64)>, SimilarError> {
    let mut documents = documents.to_vec();
    documents.sort_unstable();
    documents.dedup_by_key(|entry| entry.0);
    let place_of = |doc: i64| documents.binary_search_by_key(&doc, |entry| entry.0).ok().map(DocId::at);
    let mut sites: Vec<i64> = documents.iter().filter_map(|entry| entry.2).collect();
    sites.sort_unstable();
    sites.dedup();
    let site = |site: Option<i64>| {
        Packed::from(site.and_then(|site| sites.binary_search(&site).ok()).map(SiteId::at))
    };
    let site_of: Vec<Packed<SiteId>> = documents.iter().map(|entry| site(entry.2)).collect();
    let clustered: Vec<(DocId, DocId)> = DocId::MIN
        .onward()
        .zip(&documents)
        .filter_map(|(at, entry)| Some((at, place_of(entry.1)?)))
        .collect();
    let web = Web::new(site_of, clustered);
    let links: Vec<(DocId, DocId)> =
        links.iter().filter_map(|(from, to)| Some((place_of(*from)?, place_of(*to)?))).collect();
    let open = || -> Result<Links<'_>, SimilarError> { Ok(Box::new(links.iter().map(|link| Ok(*link)))) };
    let found = component::components(&web, &open, growth, resources)?;
    Ok(DocId::range(0..web.documents())
        .filter(|&at| web.cluster(at) == at)
        .filter_map(|at| Some((documents[at.index()].0, documents[found.component(at)?.index()].0)))
        .collect())
}

/// The folders of an address, deepest first.
pub fn folders(url: &str) -> impl Iterator<Item = &str> {
    place::folders(place::path(url))
}

/// A rewriting of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewritingRow {
    /// What it does.
    pub kind: String,
    /// To what.
    pub pattern: String,
    /// Whether it may hold on every host.
    pub is_general: bool,
    /// What it makes of the address.
    pub outcome: String,
}

/// Every way of rewriting an address that applies to it.
pub fn rewritings(url: &str) -> Vec<RewritingRow> {
    let mut found = Vec::new();
    every_rewriting(url, &mut String::new(), |how, outcome| {
        found.push(RewritingRow {
            kind: how.kind().to_owned(),
            pattern: how.pattern().to_owned(),
            is_general: how.is_general(),
            outcome: outcome.to_owned(),
        });
    });
    found
}

#[cfg(test)]
mod tests;
