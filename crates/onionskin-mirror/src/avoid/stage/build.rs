//! From collections to a list.
//!
//! Memory: some 20 bytes per document of the atlas, 16 per page of a replica, 8 per page of a
//! principal, and the addresses of as many hosts at a time as fit.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;

use crate::avoid::{
    AvoidEntry, AvoidList, Capped, Date, KnownPage, MAX_RULES, PageRole, Protected, RuleLimits, Simulation,
    rules_for,
};
use crate::describe::Kind;
use onionskin_core::{CollectionId, DocId, Packed, ReplicaId, SiteId, SlotId};
use onionskin_extract::url::without_user;
use onionskin_similar::Bits;
use onionskin_similar::SimilarRecord;
use onionskin_store::table::{CollectionGroupRow, CollectionRow, PrincipalReason, Role, document};
use onionskin_store::{Atlas, MemoryBudget, StageName, TableName};

use super::{AvoidError, Clusters, documents, open, replay};

/// Bytes of an address in memory, with what is kept beside it, as estimated for batches.
const ADDRESS_BYTES: u64 = 160;

/// What to put on a list.
#[derive(Clone, Debug)]
pub struct AvoidParams {
    /// The folder of the atlas.
    pub atlas: PathBuf,
    /// Which copies: by kind.
    pub kinds: Vec<Kind>,
    /// Copies with a smaller part of their principal are left out.
    pub min_coverage: f64,
    /// Whether collections of fewer than ten pages count.
    pub noise: bool,
    /// Whether copies count whose principal was chosen without evidence that it is the original.
    pub weak: bool,
    /// Hosts that nothing is skipped of.
    pub protect: Protected,
    /// When a directory becomes a rule.
    pub limits: RuleLimits,
    /// Rules of the list, at most.
    pub max_rules: usize,
    /// Memory for addresses.
    pub memory: MemoryBudget,
}

impl AvoidParams {
    /// Kinds that say the same as their principal. Versions do not, and noise says nothing.
    pub const KINDS: [Kind; 5] =
        [Kind::Mirror, Kind::PartialMirror, Kind::HostAlias, Kind::UrlAlias, Kind::SameSite];

    /// Mirrors and aliases that have half of their principal or more.
    pub fn new(atlas: PathBuf) -> AvoidParams {
        AvoidParams {
            atlas,
            kinds: AvoidParams::KINDS.to_vec(),
            min_coverage: 0.5,
            noise: false,
            weak: false,
            protect: Protected::default(),
            limits: RuleLimits::default(),
            max_rules: MAX_RULES,
            memory: MemoryBudget::default_for_machine(),
        }
    }
}

/// What could be spared at one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Savings {
    /// Pages.
    pub pages: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A list, and what it is worth.
#[derive(Clone, Debug)]
pub struct AvoidReport {
    /// The directory of the atlas.
    pub atlas: PathBuf,
    /// The list.
    pub list: AvoidList,
    /// All pages of the crawl.
    pub all: Savings,
    /// Pages that are word for word another, all but one of each.
    pub exact: Savings,
    /// Pages that are similar to another, all but one of each cluster.
    pub near: Savings,
    /// The crawl replayed against the list.
    pub simulation: Simulation,
    /// Copies that were left out because of what they are, or how little of the principal they
    /// have.
    pub left_out: BTreeMap<String, u64>,
    /// Copies that were left out because nothing tells which copy of their collection is the
    /// original.
    pub weak: u64,
    /// Copies that were left out because they are on a protected host.
    pub protected: u64,
    /// Copies without a rule, since it would have held for something else too.
    pub uncovered: u64,
    /// Rules that would have held for a page that is kept, and went.
    pub spared: u64,
    /// What the limit on rules left out.
    pub capped: Capped,
}

/// A replica that may be skipped.
struct Wanted {
    row: CollectionRow,
    name: String,
    principal: String,
    reason: Option<PrincipalReason>,
    evidence: Option<String>,
    /// Its pages among all members.
    members: Range<usize>,
}

/// Makes the list of what the next crawl can skip.
pub fn avoid(params: &AvoidParams) -> Result<AvoidReport, AvoidError> {
    let atlas = open(&params.atlas, TableName::CollectionGroups, StageName::Collections)?;
    let Chosen { mut wanted, left_out, weak, protected } = wanted(params, &atlas)?;
    let (members, kept) = members(&atlas, &mut wanted)?;
    let crawl = Crawl::read(&atlas)?;
    let mut list = AvoidList {
        tool: Some(format!("onionskin {}", env!("CARGO_PKG_VERSION"))),
        recipe: Some(atlas.manifest().recipe.clone()),
        threshold: atlas
            .record::<SimilarRecord>()?
            .and_then(|similar| similar.search.threshold)
            .map(|threshold| threshold.to_string()),
        crawl_from: crawl.first.map(|date| date.to_string()),
        crawl_to: crawl.last.map(|date| date.to_string()),
        entries: Vec::new(),
    };
    let mut uncovered = 0;
    let mut kept_urls = Vec::new();
    for sites in batches(&wanted, &crawl.site_pages, params.memory) {
        let addresses = Addresses::read(&atlas, &sites)?;
        kept_urls.extend(addresses.kept(&kept));
        for wanted in wanted
            .iter()
            .filter(|wanted| wanted.row.site.is_some_and(|site| sites.binary_search(&site).is_ok()))
        {
            uncovered +=
                entries(wanted, &members[wanted.members.clone()], &addresses, &crawl, params, &mut list);
        }
    }
    list.entries.sort_by_key(|entry| (std::cmp::Reverse(entry.pages), entry.group, entry.replica));
    let spared = list.spare(kept_urls.iter().map(String::as_str));
    let capped = list.cap(params.max_rules);
    let clusters =
        if atlas.has(&TableName::Clusters) { Clusters::read(&atlas)? } else { no_clusters(&atlas) };
    let simulation = replay(&list, &atlas, &clusters)?;
    let (exact, near) = savings(&atlas, &clusters)?;
    let all = Savings { pages: simulation.before.pages, bytes: simulation.before.bytes };
    let atlas = params.atlas.clone();
    Ok(AvoidReport {
        atlas,
        list,
        all,
        exact,
        near,
        simulation,
        left_out,
        weak,
        protected,
        uncovered,
        spared,
        capped,
    })
}

fn no_clusters(atlas: &Atlas) -> Clusters {
    let n = usize::try_from(documents(atlas)).unwrap_or(usize::MAX);
    Clusters { cluster: vec![Packed::NONE; n], is_exact: vec![false; n], is_centre: vec![false; n] }
}

/// Replicas that are asked for, and why others are not.
#[derive(Default)]
struct Chosen {
    /// In order of group and number.
    wanted: Vec<Wanted>,
    left_out: BTreeMap<String, u64>,
    weak: u64,
    protected: u64,
}

fn wanted(params: &AvoidParams, atlas: &Atlas) -> Result<Chosen, AvoidError> {
    let mut groups: HashMap<CollectionId, CollectionGroupRow> = HashMap::new();
    for group in atlas.collection_groups()? {
        let group = group?;
        groups.insert(group.group, group);
    }
    let mut rows: Vec<CollectionRow> = Vec::new();
    let mut principals: HashMap<CollectionId, CollectionRow> = HashMap::new();
    for row in atlas.collections()? {
        let row = row?;
        if row.is_principal {
            principals.insert(row.group, row);
        } else {
            rows.push(row);
        }
    }
    let hosts = Hosts::read(atlas, rows.iter().chain(principals.values()).filter_map(|row| row.site))?;
    let mut chosen = Chosen::default();
    for row in rows {
        let (Some(group), principal) = (groups.get(&row.group), principals.get(&row.group)) else { continue };
        if hosts.host(row.site).is_some_and(|host| params.protect.covers(host)) {
            chosen.protected += 1;
            continue;
        }
        let why = if group.is_noise && !params.noise {
            Some("collection of fewer than ten pages".to_owned())
        } else if !params.kinds.contains(&row.kind) {
            Some(row.kind.to_string())
        } else if row.coverage < params.min_coverage {
            Some(format!("covers less than {} % of its principal", (params.min_coverage * 100.0).round()))
        } else {
            None
        };
        if let Some(why) = why {
            *chosen.left_out.entry(why).or_default() += 1;
            continue;
        }
        // One owner may skip any copy of what is theirs; nobody is robbed of an original.
        let same_owner = principal.is_some_and(|principal| hosts.have_one_owner(row.site, principal.site));
        if !params.weak && !same_owner && group.principal_reason.is_none_or(PrincipalReason::is_weak) {
            chosen.weak += 1;
            continue;
        }
        let root = principal.and_then(|principal| principal.root_url.as_deref()).unwrap_or_default();
        chosen.wanted.push(Wanted {
            row,
            name: group.name.clone(),
            principal: without_user(root).into_owned(),
            reason: group.principal_reason,
            evidence: group.principal_evidence.clone(),
            members: 0..0,
        });
    }
    Ok(chosen)
}

/// Hosts and registered domains of some sites.
struct Hosts(HashMap<SiteId, (String, Option<String>)>);

impl Hosts {
    fn read(atlas: &Atlas, sites: impl Iterator<Item = SiteId>) -> Result<Hosts, AvoidError> {
        let mut hosts: HashMap<SiteId, (String, Option<String>)> =
            sites.map(|site| (site, (String::new(), None))).collect();
        for batch in atlas.sites()? {
            for row in batch?.rows() {
                if let Some(host) = hosts.get_mut(&row.site) {
                    *host = (row.host.to_owned(), row.registered_domain.map(str::to_owned));
                }
            }
        }
        Ok(Hosts(hosts))
    }

    fn host(&self, site: Option<SiteId>) -> Option<&str> {
        self.0.get(&site?).map(|(host, _)| host.as_str())
    }

    /// Whether two sites are one host, or have a registered domain in common.
    fn have_one_owner(&self, one: Option<SiteId>, other: Option<SiteId>) -> bool {
        let domain = |site: Option<SiteId>| self.0.get(&site?)?.1.as_deref();
        one.is_some() && (one == other || (domain(one).is_some() && domain(one) == domain(other)))
    }
}

/// Documents of the wanted replicas with whether they are copies of what is kept, replica by
/// replica, ascending; and what is kept. A page that only other copies have is no copy here:
/// skipping all of those would lose it.
fn members(atlas: &Atlas, wanted: &mut [Wanted]) -> Result<(Vec<(DocId, bool)>, Bits), AvoidError> {
    let documents = documents(atlas);
    let mut kept = Bits::new(documents);
    let mut principals: HashMap<CollectionId, ReplicaId> = HashMap::new();
    for row in atlas.collections()? {
        let row = row?;
        if row.is_principal {
            principals.insert(row.group, row.replica);
        }
    }
    // Principals are not the first of their groups, so that what they have is gathered before.
    let mut kept_slots: Vec<(CollectionId, SlotId)> = Vec::new();
    for row in atlas.collection_pages()? {
        let row = row?;
        if principals.get(&row.group) == Some(&row.replica) && row.role == Role::Copy {
            kept_slots.push((row.group, row.slot));
        }
    }
    kept_slots.sort_unstable();
    let mut members = Vec::new();
    let mut at = 0;
    for row in atlas.collection_pages()? {
        let row = row?;
        if u64::from(row.doc) >= documents {
            return Err(AvoidError::Document { table: "collection_pages", doc: row.doc, documents });
        }
        let key = (row.group, row.replica);
        if principals.get(&row.group) == Some(&row.replica) && !row.is_virtual {
            kept.set(row.doc);
        }
        while at < wanted.len() && (wanted[at].row.group, wanted[at].row.replica) < key {
            at += 1;
        }
        let here = wanted.get_mut(at).filter(|wanted| (wanted.row.group, wanted.row.replica) == key);
        if let Some(here) = here.filter(|_| !row.is_virtual) {
            if here.members.is_empty() {
                here.members = members.len()..members.len();
            }
            let is_kept = kept_slots.binary_search(&(row.group, row.slot)).is_ok();
            members.push((row.doc, is_kept && row.role.is_copy()));
            here.members.end = members.len();
        }
    }
    for wanted in wanted {
        members[wanted.members.clone()].sort_unstable();
    }
    Ok((members, kept))
}

/// When, and how many pages of each site.
struct Crawl {
    site_pages: Vec<u64>,
    first: Option<Date>,
    last: Option<Date>,
}

impl Crawl {
    fn read(atlas: &Atlas) -> Result<Crawl, AvoidError> {
        let mut site_pages: Vec<u64> = Vec::new();
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for batch in atlas.documents()?.select::<(document::Site, document::FetchedAt)>() {
            for (site, fetched_at) in batch?.rows() {
                if let Some(site) = site {
                    let at = site.index();
                    if site_pages.len() <= at {
                        site_pages.resize(at + 1, 0);
                    }
                    site_pages[at] += 1;
                }
                if let Some(time) = fetched_at {
                    (first, last) = (first.min(time), last.max(time));
                }
            }
        }
        let date = |time: i64| {
            let days = u32::try_from(time.div_euclid(86_400_000_000)).ok()?;
            Some(Date::new(1970, 1, 1)?.plus_days(days))
        };
        let known = first <= last;
        Ok(Crawl { site_pages, first: date(first).filter(|_| known), last: date(last).filter(|_| known) })
    }
}

/// Sites of the wanted replicas, as many at a time as fit, each list in order.
fn batches(wanted: &[Wanted], site_pages: &[u64], memory: MemoryBudget) -> Vec<Vec<SiteId>> {
    let mut sites: Vec<SiteId> = wanted.iter().filter_map(|wanted| wanted.row.site).collect();
    sites.sort_unstable();
    sites.dedup();
    let room = memory.bytes() / 2;
    let mut batches: Vec<Vec<SiteId>> = Vec::new();
    let mut held = u64::MAX;
    for site in sites {
        let bytes = site_pages.get(site.index()).copied().unwrap_or(0) * ADDRESS_BYTES;
        if held.saturating_add(bytes) > room {
            batches.push(Vec::new());
            held = 0;
        }
        held += bytes;
        if let Some(batch) = batches.last_mut() {
            batch.push(site);
        }
    }
    batches
}

/// The addresses of some sites.
struct Addresses {
    text: String,
    /// Site, document, and where its address ends; sorted by site once read.
    at: Vec<(SiteId, DocId, usize, usize)>,
}

impl Addresses {
    fn read(atlas: &Atlas, sites: &[SiteId]) -> Result<Addresses, AvoidError> {
        let mut addresses = Addresses { text: String::new(), at: Vec::new() };
        for batch in atlas.documents()?.select::<(document::Doc, document::Site, document::Url)>() {
            for (doc, site, url) in batch?.rows() {
                if let (Some(site), Some(url)) = (site, url)
                    && sites.binary_search(&site).is_ok()
                {
                    let start = addresses.text.len();
                    addresses.text.push_str(url);
                    addresses.at.push((site, doc, start, addresses.text.len()));
                }
            }
        }
        addresses.at.sort_unstable();
        Ok(addresses)
    }

    fn of_site(&self, site: SiteId) -> impl Iterator<Item = (DocId, &str)> {
        let start = self.at.partition_point(|entry| entry.0 < site);
        self.at[start..]
            .iter()
            .take_while(move |entry| entry.0 == site)
            .map(|&(_, doc, start, end)| (doc, &self.text[start..end]))
    }

    fn kept(&self, kept: &Bits) -> Vec<String> {
        let kept = self.at.iter().filter(|entry| kept.get(entry.1));
        kept.map(|&(_, _, start, end)| self.text[start..end].to_owned()).collect()
    }
}

/// Makes the entries of one replica, one for each port that it is known on. Returns the copies
/// without a rule.
fn entries(
    wanted: &Wanted,
    members: &[(DocId, bool)],
    addresses: &Addresses,
    crawl: &Crawl,
    params: &AvoidParams,
    list: &mut AvoidList,
) -> u64 {
    let known = wanted.row.site.into_iter().flat_map(|site| addresses.of_site(site)).map(|(doc, url)| {
        let role = match members.binary_search_by_key(&doc, |member| member.0) {
            Ok(at) if members[at].1 => PageRole::Copy,
            Ok(_) => PageRole::Unique,
            Err(_) => PageRole::Outside,
        };
        KnownPage { url, role }
    });
    let made = rules_for(known, &params.limits);
    let row = &wanted.row;
    let mut uncovered = 0;
    for host in made.hosts {
        uncovered += host.uncovered;
        if host.rules.is_empty() {
            continue;
        }
        list.entries.push(AvoidEntry {
            group: row.group,
            replica: row.replica,
            kind: row.kind.to_string(),
            name: wanted.name.clone(),
            principal: wanted.principal.clone(),
            principal_reason: wanted.reason.map(|reason| reason.to_string()),
            principal_evidence: wanted.evidence.clone(),
            root: without_user(row.root_url.as_deref().unwrap_or_default()).into_owned(),
            host: host.host,
            other_ports: host.other_ports,
            rules: host.rules,
            pages: row.pages,
            bytes: row.bytes,
            coverage: row.coverage,
            similar: host.copies,
            unique: host.unique,
            checked: crawl.last.map(|date| date.to_string()),
        });
    }
    uncovered
}

/// Exact copies, and similar pages, all but one of each.
fn savings(atlas: &Atlas, clusters: &Clusters) -> Result<(Savings, Savings), AvoidError> {
    let (mut exact, mut near) = (Savings::default(), Savings::default());
    for batch in atlas.documents()?.select::<(document::Doc, document::Bytes)>() {
        for (doc, bytes) in batch?.rows() {
            let at = doc.index();
            if clusters.of(doc).is_none() || clusters.is_centre[at] {
                continue;
            }
            near.pages += 1;
            near.bytes += bytes;
            if clusters.is_exact[at] {
                exact.pages += 1;
                exact.bytes += bytes;
            }
        }
    }
    Ok((exact, near))
}
