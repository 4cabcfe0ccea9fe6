//! What a group is: how much each replica covers, why it is there, which version is newer, and a
//! name for people.

use std::collections::HashMap;
use std::fmt::Write;

use onionskin_core::{DocId, SiteId, SlotId};
pub use onionskin_store::table::{CollectionKind as Kind, Newer};

use crate::model::{Group, Replica, Role};
use crate::place;
use crate::version::{self, Version};

/// Groups with fewer slots are noise (Cho et al. 2000, section 5.1).
pub const NOISE_BELOW: u32 = 10;

/// What is known of a page.
#[derive(Clone, Copy, Debug, Default)]
pub struct PageInfo<'a> {
    /// Its address.
    pub url: &'a str,
    /// Its title.
    pub title: Option<&'a str>,
    /// The address that it names as canonical, its own aside.
    pub canonical: Option<&'a str>,
    /// Its length.
    pub bytes: u64,
    /// When it was fetched, in microseconds.
    pub fetched_at: Option<i64>,
    /// Equal for pages of equal content.
    pub content: Option<u64>,
}

/// What is known of a site.
#[derive(Clone, Copy, Debug)]
pub struct SiteInfo<'a> {
    /// Its host.
    pub host: &'a str,
    /// The part of the host that somebody registered.
    pub domain: Option<&'a str>,
    /// Its pages.
    pub pages: u64,
}

/// A replica against its principal.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaDescription {
    /// Why it is there.
    pub kind: Kind,
    /// The folder that its pages are in.
    pub folder: String,
    /// Of the pages of the principal, those that it has a copy of.
    pub coverage: f64,
    /// Pages of its own.
    pub pages: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Pages that are similar to those of other replicas, second addresses included.
    pub copies: u64,
    /// Bytes of them.
    pub copied_bytes: u64,
    /// Pages at the place of one of the principal that are no longer similar.
    pub changed: u64,
    /// Pages that the principal has not.
    pub added: u64,
    /// Pages of the principal that it has not, links to them aside.
    pub missing: u64,
    /// Pages of the principal that it links to instead.
    pub virtual_pages: u64,
    /// Which is newer.
    pub newer: Newer,
    /// What all this was told by.
    pub evidence: String,
}

/// A group in words and numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// Why it is copied.
    pub kind: Kind,
    /// What to call it.
    pub name: String,
    /// Slots that two replicas or more have: the size of the collection.
    pub size: u32,
    /// Whether it is smaller than ten pages.
    pub is_noise: bool,
    /// What the kind was told by.
    pub evidence: String,
    /// Its replicas, in order.
    pub replicas: Vec<ReplicaDescription>,
}

/// Describes a group.
pub fn describe<'a>(
    group: &Group,
    page: &impl Fn(DocId) -> PageInfo<'a>,
    site: &impl Fn(Option<SiteId>) -> SiteInfo<'a>,
) -> Description {
    let replicas: Vec<ReplicaDescription> =
        (0..group.replicas.len()).map(|at| describe_replica(group, at, page, site)).collect();
    let size = size(group);
    let sites: std::collections::BTreeSet<Option<SiteId>> =
        group.replicas.iter().map(|replica| replica.site).collect();
    let is_noise = size < NOISE_BELOW;
    let (kind, evidence) = group_kind(group, &replicas, sites.len(), size);
    Description { kind, name: name(group, page, site), size, is_noise, evidence, replicas }
}

/// Slots that two replicas or more have a page of their own in, or an extended group links to.
fn size(group: &Group) -> u32 {
    let mut having = vec![0u32; group.slots as usize];
    for replica in &group.replicas {
        for member in replica.members.iter().filter(|member| member.role != Role::Alias) {
            having[member.slot.index()] += 1;
        }
    }
    having.iter().filter(|&&n| n > 1).count() as u32
}

fn group_kind(group: &Group, replicas: &[ReplicaDescription], sites: usize, size: u32) -> (Kind, String) {
    let others = replicas.iter().enumerate().filter(|(at, _)| *at != group.principal).map(|(_, r)| r);
    let mut counts: Vec<(usize, Kind)> = Vec::new();
    for replica in others.clone() {
        match counts.iter_mut().find(|(_, kind)| *kind == replica.kind) {
            Some((n, _)) => *n += 1,
            None => counts.push((1, replica.kind)),
        }
    }
    counts.sort_by_key(|&(n, kind)| (std::cmp::Reverse(n), kind));
    let kind = counts.first().map_or(Kind::SameSite, |&(_, kind)| kind);
    let told = || {
        let first = others.clone().find(|replica| replica.kind == kind);
        first.map_or(String::new(), |replica| replica.evidence.clone())
    };
    // Slide shows and calendars: many copies of few pages, all of one site.
    let many = replicas.len() as u64 > 2 * u64::from(size);
    let same = matches!(kind, Kind::SameSite | Kind::UrlAlias);
    let few = size < NOISE_BELOW;
    if sites == 1 && ((same && (few || many)) || (kind == Kind::Versions && few && many)) {
        let words = format!("{} copies of {size} pages, all on one site", replicas.len());
        return (Kind::TemplateNoise, words);
    }
    let summary: Vec<String> = counts.iter().map(|(n, kind)| format!("{n} {kind}")).collect();
    (kind, format!("{}; {}", summary.join(", "), told()))
}

/// Copies of a replica with what the principal has in the same slot.
fn aligned<'g>(group: &'g Group, replica: &'g Replica) -> impl Iterator<Item = (DocId, DocId)> + 'g {
    let principal = &group.replicas[group.principal];
    replica.members.iter().filter(|member| member.role == Role::Copy).filter_map(move |member| {
        let there = principal.page(member.slot).filter(|there| there.role == Role::Copy)?;
        Some((there.doc, member.doc))
    })
}

fn describe_replica<'a>(
    group: &Group,
    at: usize,
    page: &impl Fn(DocId) -> PageInfo<'a>,
    site: &impl Fn(Option<SiteId>) -> SiteInfo<'a>,
) -> ReplicaDescription {
    let (replica, principal) = (&group.replicas[at], &group.replicas[group.principal]);
    let path_of = |doc: DocId| place::path(page(doc).url);
    let folder = place::common_folder(replica.own_pages().map(|member| path_of(member.doc))).to_owned();
    let count = |role: Role| replica.members.iter().filter(|member| member.role == role).count() as u64;
    let principal_slots =
        principal.members.iter().filter(|member| !matches!(member.role, Role::Alias | Role::Virtual)).count()
            as u64;
    let has = |slot: SlotId, role: Role| replica.page(slot).is_some_and(|member| member.role == role);
    let of_principal = |role: Role| {
        let slots = principal.members.iter().filter(|m| !matches!(m.role, Role::Alias | Role::Virtual));
        slots.filter(|member| has(member.slot, role)).count() as u64
    };
    let covered = if at == group.principal { principal_slots } else { of_principal(Role::Copy) };
    let changed = if at == group.principal { 0 } else { of_principal(Role::Changed) };
    let virtual_pages = count(Role::Virtual);
    let own = || replica.own_pages().map(|member| member.doc);
    let copied = || replica.members.iter().filter(|member| member.role.is_copy()).map(|member| member.doc);
    let mut described = ReplicaDescription {
        kind: Kind::Principal,
        folder,
        coverage: if principal_slots == 0 { 0.0 } else { covered as f64 / principal_slots as f64 },
        pages: own().count() as u64,
        bytes: own().map(|doc| page(doc).bytes).sum(),
        copies: copied().count() as u64,
        copied_bytes: copied().map(|doc| page(doc).bytes).sum(),
        changed,
        added: (own().count() as u64)
            .saturating_sub(count(Role::Alias))
            .saturating_sub(if at == group.principal { principal_slots } else { covered + changed }),
        missing: principal_slots.saturating_sub(covered + changed + virtual_pages),
        virtual_pages,
        newer: Newer::Same,
        evidence: String::new(),
    };
    if at == group.principal {
        described.evidence.clone_from(&group.chosen.evidence);
        return described;
    }
    let facts = Facts::new(group, at, page, site, &described);
    described.newer = facts.newer(&described);
    described.kind = facts.kind(&described);
    described.evidence = facts.words(&described, covered, principal_slots);
    described
}

/// What the kind of a replica is decided by.
struct Facts<'a> {
    here: SiteInfo<'a>,
    there: SiteInfo<'a>,
    same_site: bool,
    /// Of the aligned pages, those word for word the same, and those at the same path.
    aligned: u64,
    identical: u64,
    same_path: u64,
    /// Whether both are (nearly) all of their hosts.
    whole_hosts: bool,
    /// Whether the principal is covered by the replica and the other way round.
    both_ways: bool,
    /// Versions in titles or folders: the principal's and the replica's.
    versions: Option<(String, String)>,
    /// Days from the principal's fetching to the replica's.
    days_later: Option<f64>,
}

impl<'a> Facts<'a> {
    fn new(
        group: &Group,
        at: usize,
        page: &impl Fn(DocId) -> PageInfo<'a>,
        site: &impl Fn(Option<SiteId>) -> SiteInfo<'a>,
        described: &ReplicaDescription,
    ) -> Facts<'a> {
        let (replica, principal) = (&group.replicas[at], &group.replicas[group.principal]);
        let (here, there) = (site(replica.site), site(principal.site));
        let (mut aligned_pages, mut identical, mut same_path) = (0, 0, 0);
        let mut titles: HashMap<(String, String), u64> = HashMap::new();
        for (theirs, ours) in aligned(group, replica) {
            let (theirs, ours) = (page(theirs), page(ours));
            aligned_pages += 1;
            identical += u64::from(theirs.content.is_some() && theirs.content == ours.content);
            same_path += u64::from(place::path(theirs.url) == place::path(ours.url));
            if let (Some(a), Some(b)) = (theirs.title, ours.title)
                && let Some((a, b)) = version::difference(a, b)
            {
                *titles.entry((a.to_owned(), b.to_owned())).or_default() += 1;
            }
        }
        let title_of = |at: usize| group.root_of(at).and_then(|doc| page(doc).title);
        let in_roots = || {
            let (a, b) = version::difference(title_of(group.principal)?, title_of(at)?)?;
            Some((a.to_owned(), b.to_owned()))
        };
        let in_titles = titles
            .into_iter()
            .max_by_key(|(versions, n)| (*n, versions.clone()))
            .filter(|(_, n)| *n >= 2 || *n * 2 > aligned_pages)
            .map(|(versions, _)| versions);
        let path_of = |doc: DocId| place::path(page(doc).url);
        let in_folders = || {
            let (there, here) = crate::tolerant::alignment(group, at, path_of)?;
            let (a, b) = version::in_folders(&there, &here)?;
            Some((a.to_owned(), b.to_owned()))
        };
        let in_hosts = || {
            let (a, b) = version::in_folders(&there.host.replace('.', "/"), &here.host.replace('.', "/"))
                .map(|(a, b)| (a.to_owned(), b.to_owned()))?;
            (there.domain == here.domain && here.domain.is_some()).then_some((a, b))
        };
        let own = |replica: &Replica| replica.own_pages().count() as f64;
        let whole = |replica: &Replica, site: SiteInfo<'_>| own(replica) >= 0.9 * site.pages as f64;
        let fetched = |replica: &Replica| {
            let mut times: Vec<i64> =
                replica.own_pages().filter_map(|member| page(member.doc).fetched_at).collect();
            times.sort_unstable();
            times.get(times.len() / 2).copied()
        };
        let days_later =
            fetched(replica).zip(fetched(principal)).map(|(ours, theirs)| (ours - theirs) as f64 / 86_400e6);
        Facts {
            here,
            there,
            same_site: replica.site == principal.site,
            aligned: aligned_pages,
            identical,
            same_path,
            whole_hosts: whole(replica, here) && whole(principal, there),
            both_ways: described.coverage >= 0.9 && (described.added as f64) <= 0.1 * own(replica),
            versions: in_titles.or_else(in_roots).or_else(in_folders).or_else(in_hosts),
            days_later,
        }
    }

    fn share(&self, of: u64) -> f64 {
        if self.aligned == 0 { 0.0 } else { of as f64 / self.aligned as f64 }
    }

    fn kind(&self, described: &ReplicaDescription) -> Kind {
        let word_for_word = self.both_ways && self.share(self.identical) >= 0.9;
        if self.same_site {
            return match &self.versions {
                Some(_) => Kind::Versions,
                None if word_for_word => Kind::UrlAlias,
                None => Kind::SameSite,
            };
        }
        let is_address = |host: &str| host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok();
        let one_owner = (self.here.domain.is_some() && self.here.domain == self.there.domain)
            || is_address(self.here.host)
            || is_address(self.there.host);
        if one_owner && self.whole_hosts && word_for_word && self.share(self.same_path) >= 0.9 {
            Kind::HostAlias
        } else if one_owner && self.versions.is_some() {
            Kind::Versions
        } else if described.coverage >= 0.9 {
            Kind::Mirror
        } else {
            Kind::PartialMirror
        }
    }

    fn newer(&self, described: &ReplicaDescription) -> Newer {
        if let Some((theirs, ours)) = &self.versions {
            return match Version::parse(theirs).cmp(&Version::parse(ours)) {
                std::cmp::Ordering::Less => Newer::Replica,
                std::cmp::Ordering::Greater => Newer::Principal,
                std::cmp::Ordering::Equal => Newer::Unknown,
            };
        }
        let differs = described.changed + described.added + described.missing + described.virtual_pages > 0
            || self.identical < self.aligned;
        match self.days_later {
            _ if !differs => Newer::Same,
            Some(days) if days > 1.0 => Newer::Replica,
            Some(days) if days < -1.0 => Newer::Principal,
            _ => Newer::Unknown,
        }
    }

    fn words(&self, described: &ReplicaDescription, covered: u64, of: u64) -> String {
        let mut words = format!("{covered} of {of} pages are copies, {} word for word", self.identical);
        for (n, what) in [
            (described.changed, "changed"),
            (described.missing, "missing"),
            (described.virtual_pages, "only linked to"),
            (described.added, "added"),
        ] {
            if n > 0 {
                let _ = write!(words, ", {n} {what}");
            }
        }
        if !self.same_site {
            let paths = self.share(self.same_path);
            words += if paths >= 0.9 {
                "; same paths"
            } else if paths > 0.1 {
                "; some paths the same"
            } else {
                "; other paths"
            };
            if self.here.domain.is_some() && self.here.domain == self.there.domain {
                words += "; same registered domain";
            }
            if self.whole_hosts {
                words += "; whole hosts";
            }
        }
        if let Some((theirs, ours)) = &self.versions {
            let _ = write!(words, "; version {ours:?} against {theirs:?}");
        } else if let Some(days) = self.days_later.filter(|days| days.abs() > 1.0) {
            let (days, order) = (days.abs(), if days > 0.0 { "later" } else { "earlier" });
            let _ = write!(words, "; fetched {days:.0} days {order}");
        }
        words
    }
}

/// Titles that say nothing.
const EMPTY_TITLES: [&str; 16] = [
    "index",
    "home",
    "homepage",
    "home page",
    "welcome",
    "untitled",
    "untitled document",
    "contents",
    "table of contents",
    "overview",
    "main page",
    "default",
    "start",
    "page",
    "readme",
    "search",
];

fn name<'a>(
    group: &Group,
    page: &impl Fn(DocId) -> PageInfo<'a>,
    site: &impl Fn(Option<SiteId>) -> SiteInfo<'a>,
) -> String {
    let principal = &group.replicas[group.principal];
    let title = |doc: DocId| page(doc).title.map(str::trim).filter(|title| !title.is_empty());
    let says = |title: &&str| {
        let plain = title.to_lowercase();
        !EMPTY_TITLES.contains(&plain.as_str()) && !plain.starts_with("index of ")
    };
    if let Some(title) = group.root_of(group.principal).and_then(title).filter(says) {
        return shorten(title);
    }
    let titles: Vec<&str> =
        principal.own_pages().filter_map(|member| title(member.doc)).take(1_000).collect();
    if let Some(common) = common_words(&titles).filter(|common| says(&common.as_str())) {
        return shorten(&common);
    }
    let folder = place::common_folder(principal.own_pages().map(|member| place::path(page(member.doc).url)));
    let host = site(principal.site).host;
    folder
        .split('/')
        .rfind(|part| !part.is_empty())
        .map_or_else(|| host.to_owned(), |part| format!("{part} ({host})"))
}

/// Words that most titles end or begin with: `os.path — Python 3.11 documentation` has its name at
/// the end.
fn common_words(titles: &[&str]) -> Option<String> {
    let most = |edge: fn(&str) -> Vec<&str>| {
        let mut counts: HashMap<Vec<&str>, usize> = HashMap::new();
        for title in titles {
            let words = edge(title);
            for n in 1..=words.len().min(8) {
                *counts.entry(words[..n].to_vec()).or_default() += 1;
            }
        }
        counts
            .into_iter()
            .filter(|(words, n)| *n >= 2 && n * 10 >= titles.len() * 6 && words.concat().chars().count() > 3)
            .max_by_key(|(words, n)| (words.len(), *n, words.clone()))
            .map(|(words, _)| words)
    };
    let ending = most(|title| title.split_whitespace().rev().collect()).map(|mut words| {
        words.reverse();
        words
    });
    let found = ending.or_else(|| most(|title| title.split_whitespace().collect()))?;
    let text = found.join(" ");
    let text = text.trim_matches(|c: char| !c.is_alphanumeric());
    (!text.is_empty()).then(|| text.to_owned())
}

fn shorten(title: &str) -> String {
    let words = title.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", words[..at].trim_end()),
        None => words,
    }
}

#[cfg(test)]
mod tests;
