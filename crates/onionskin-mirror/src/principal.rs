//! Which copy of a collection is the principal: the one that others are measured by, and that a
//! crawler keeps while it skips the others.
//!
//! The naive choice is the copy with most pages, or the one that most sites link to. Whoever copies
//! a site can have both: pages cost nothing, and neither do hosts below a domain that one owns. An
//! avoid list that is made of such a choice skips the original for good. So the reasons are in the
//! order of what they cost somebody who wants to be taken for the original, and the first one that
//! decides is recorded:
//!
//! 1. *Canonical.* A copy whose pages name pages of another copy as canonical (or others on the
//!    registered domain of another copy) gives way. A site can only say that of itself, so it
//!    harms nobody. When all others give way to a copy, it is the principal.
//! 2. *Links.* A vote is a registered domain ([`onionskin_extract::url::voter`]) with a page that
//!    links to a copied page of the replica; a domain has one vote, however many hosts and links it
//!    has. Domains that host any replica of the collection have none, the replica's own included.
//!    Replicas with [`LEAD`] votes fewer than the first are out.
//! 3. *Fetched first.* The median page was fetched [`CLEARLY_EARLIER`] before those of the others,
//!    at least one domain links to it, and no other has more votes. Less says only in which order a
//!    crawl went through the web: a copy that nothing links to may have been crawled years before
//!    the original.
//!
//! What is left is chosen by reasons that say nothing of who copied whom. They are
//! [weak](PrincipalReason::is_weak): nothing is left out of a crawl because of them.
//!
//! 4. *Few links:* those that a domain links to before those that none does.
//! 5. *Size:* those with nine tenths of the pages of the fullest, since it should not be the
//!    poorest copy that the others are measured by.
//! 6. *Few links* again: more votes. *Fetched earlier. Depth:* the directory higher up. *Size:*
//!    more pages. *Address:* the first in the alphabet, so that the order of inputs decides
//!    nothing.
//!
//! A registered domain is one owner. Where a strong reason leaves replicas of one owner only, it is
//! what decided, whatever chooses among these.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use onionskin_core::format::{grouped, plural};
use onionskin_core::{DocId, SiteId};
use onionskin_extract::url;
pub use onionskin_store::table::PrincipalReason;

use crate::describe::{PageInfo, SiteInfo};
use crate::model::{Group, Member, Replica, Role};
use crate::place;

/// Votes by which a replica must lead, so that buying a domain is not enough.
pub const LEAD: usize = 2;

/// Thirty days in microseconds. A large crawl takes weeks, and where it begins is chance.
pub const CLEARLY_EARLIER: i64 = 30 * DAY;

const DAY: i64 = 86_400_000_000;

/// Why the principal is the principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// What decided.
    pub reason: PrincipalReason,
    /// The same in words, with numbers.
    pub evidence: String,
}

impl Default for Chosen {
    /// Nothing was looked at.
    fn default() -> Chosen {
        Chosen { reason: PrincipalReason::Address, evidence: String::new() }
    }
}

/// A domain that votes, by number.
pub(crate) type Voter = u32;

/// Who links to what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Votes {
    /// The voter that each site is part of.
    pub of_site: Arc<[Option<Voter>]>,
    /// Documents and domains that link there; sorted, none twice.
    pub cast: Vec<(DocId, Voter)>,
}

impl Votes {
    fn site(&self, site: Option<SiteId>) -> Option<Voter> {
        *self.of_site.get(site?.index())?
    }

    fn of(&self, doc: DocId) -> impl Iterator<Item = Voter> {
        let start = self.cast.partition_point(|vote| vote.0 < doc);
        self.cast[start..].iter().take_while(move |vote| vote.0 == doc).map(|vote| vote.1)
    }
}

/// What the choice is made by.
pub(crate) struct Facts<'f, 'a> {
    pub page: &'f dyn Fn(DocId) -> PageInfo<'a>,
    pub site: &'f dyn Fn(Option<SiteId>) -> SiteInfo<'a>,
    pub site_of: &'f dyn Fn(DocId) -> Option<SiteId>,
    pub votes: &'f Votes,
}

/// Makes the principal that of a group.
pub(crate) fn choose(group: &mut Group, facts: &Facts<'_, '_>) {
    let candidates = candidates(group, facts);
    let (at, chosen) = decide(&candidates);
    group.principal = at;
    group.chosen = chosen;
}

/// A replica, as far as the choice looks at it.
#[derive(Clone, Debug, Default)]
struct Candidate<'a> {
    /// Its registered domain or its host.
    owner: Option<&'a str>,
    /// Whether its pages say that another copy is the canonical one.
    gives_way: bool,
    /// Replicas whose pages name its pages.
    named_by: u64,
    votes: usize,
    /// When its median page was fetched.
    fetched: Option<i64>,
    depth: usize,
    pages: usize,
    /// What is left when all else is equal.
    address: (&'a str, Option<DocId>),
}

fn copies(replica: &Replica) -> impl Iterator<Item = Member> {
    replica.members.iter().copied().filter(|member| member.role.is_copy())
}

fn candidates<'a>(group: &Group, facts: &Facts<'_, 'a>) -> Vec<Candidate<'a>> {
    let owners: Vec<Option<&'a str>> = group
        .replicas
        .iter()
        .map(|replica| {
            let site = (facts.site)(replica.site);
            site.domain.or(Some(site.host)).filter(|owner| !owner.is_empty())
        })
        .collect();
    // Where replicas may be on several sites, each of these is one that hosts it.
    let hosts: BTreeSet<Option<SiteId>> = group
        .replicas
        .iter()
        .flat_map(|replica| replica.own_pages())
        .map(|member| (facts.site_of)(member.doc))
        .collect();
    let excluded: BTreeSet<Voter> = hosts.into_iter().filter_map(|site| facts.votes.site(site)).collect();
    let mut found: Vec<Candidate<'a>> = group
        .replicas
        .iter()
        .zip(&owners)
        .map(|(replica, owner)| {
            let voters: BTreeSet<Voter> = copies(replica)
                .flat_map(|member| facts.votes.of(member.doc))
                .filter(|voter| !excluded.contains(voter))
                .collect();
            let mut times: Vec<i64> =
                copies(replica).filter_map(|member| (facts.page)(member.doc).fetched_at).collect();
            times.sort_unstable();
            let path = |member: Member| place::path((facts.page)(member.doc).url);
            let address = |member: Member| ((facts.page)(member.doc).url, Some(member.doc));
            Candidate {
                owner: *owner,
                gives_way: false,
                named_by: 0,
                votes: voters.len(),
                fetched: times.get(times.len().saturating_sub(1) / 2).copied(),
                depth: place::common_folder(replica.own_pages().map(path)).matches('/').count(),
                pages: replica.own_pages().filter(|member| member.role != Role::Alias).count(),
                address: replica.own_pages().map(address).min().unwrap_or_default(),
            }
        })
        .collect();
    name_canonical(group, facts, &owners, &mut found);
    found
}

/// An address without its scheme, its query, and the name of an index page: where two of these are
/// equal at one slot, they are one page.
fn key(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let path = place::path(url);
    // Without a path, `path` is not a part of the address.
    let authority = url[start..].find('/').map_or(url.len(), |at| start + at);
    let end = if authority == url.len() { authority } else { authority + place::bare(path).len() };
    &url[start..end]
}

/// Finds out which replicas give way, and to which.
fn name_canonical<'a>(
    group: &Group,
    facts: &Facts<'_, 'a>,
    owners: &[Option<&'a str>],
    found: &mut [Candidate<'a>],
) {
    let canonical = |doc: DocId| (facts.page)(doc).canonical;
    let pages = || group.replicas.iter().flat_map(|replica| replica.own_pages());
    if !pages().any(|member| canonical(member.doc).is_some()) {
        return;
    }
    let mut replica_at: HashMap<(u32, &'a str), usize> = HashMap::new();
    for (at, replica) in group.replicas.iter().enumerate() {
        for member in replica.own_pages() {
            replica_at.entry((member.slot.get(), key((facts.page)(member.doc).url))).or_insert(at);
        }
    }
    for (at, replica) in group.replicas.iter().enumerate() {
        // Pages that name a page of another replica, and those that name another owner.
        let (mut all, mut away) = (0, 0);
        let mut to_replica: HashMap<usize, usize> = HashMap::new();
        let mut to_owner: HashMap<&str, usize> = HashMap::new();
        for member in replica.members.iter().filter(|member| member.role == Role::Copy) {
            all += 1;
            let Some(named) = canonical(member.doc) else { continue };
            match replica_at.get(&(member.slot.get(), key(named))) {
                Some(&other) if other == at => {}
                Some(&other) => {
                    away += 1;
                    *to_replica.entry(other).or_default() += 1;
                }
                None => {
                    let host = url::site(named).unwrap_or_default();
                    let owner = url::registered_domain(host).unwrap_or(host);
                    let is_other = owners[at] != Some(owner) && owners.contains(&Some(owner));
                    if is_other {
                        away += 1;
                        *to_owner.entry(owner).or_default() += 1;
                    }
                }
            }
        }
        found[at].gives_way = away * 2 > all;
        if found[at].gives_way {
            for (other, candidate) in found.iter_mut().enumerate().filter(|(other, _)| *other != at) {
                let direct = to_replica.get(&other).copied().unwrap_or_default();
                let owned =
                    candidate.owner.and_then(|owner| to_owner.get(owner)).copied().unwrap_or_default();
                candidate.named_by += u64::from((direct + owned) * 2 > all);
            }
        }
    }
}

/// The replicas that are left, and what has decided so far.
struct Choice<'c, 'a> {
    all: &'c [Candidate<'a>],
    left: Vec<usize>,
    /// The strong reason that left one owner only.
    owner_by: Option<PrincipalReason>,
    last: PrincipalReason,
}

impl<'c, 'a> Choice<'c, 'a> {
    fn get(&self) -> impl Iterator<Item = &'c Candidate<'a>> {
        let all = self.all;
        self.left.iter().map(move |&at| &all[at])
    }

    /// Keeps some of the replicas; none would be kept means all are.
    fn keep(&mut self, reason: PrincipalReason, stays: impl Fn(&Candidate<'a>) -> bool) {
        let kept: Vec<usize> = self.left.iter().copied().filter(|&at| stays(&self.all[at])).collect();
        if kept.is_empty() || kept.len() == self.left.len() {
            return;
        }
        let before = self.n_owners();
        self.left = kept;
        self.last = reason;
        if before > 1 && self.n_owners() == 1 && !reason.is_weak() {
            self.owner_by = Some(reason);
        }
    }

    /// Replicas without a host have nobody in common.
    fn n_owners(&self) -> usize {
        let owners: BTreeSet<&str> = self.get().filter_map(|candidate| candidate.owner).collect();
        owners.len() + self.get().filter(|candidate| candidate.owner.is_none()).count()
    }

    fn most_votes(&self) -> usize {
        self.get().map(|candidate| candidate.votes).max().unwrap_or(0)
    }
}

fn decide(all: &[Candidate<'_>]) -> (usize, Chosen) {
    use PrincipalReason as Reason;
    let mut choice = Choice { all, left: (0..all.len()).collect(), owner_by: None, last: Reason::Address };
    choice.keep(Reason::Canonical, |candidate| !candidate.gives_way);
    // Between owners the word of a copy counts for nothing, since anybody can have copies that name
    // each other.
    if choice.n_owners() == 1 {
        choice.keep(Reason::Canonical, |candidate| candidate.named_by > 0);
    }
    let most = choice.most_votes();
    if most >= LEAD {
        choice.keep(Reason::Links, |candidate| candidate.votes + LEAD > most);
    }
    if let Some(first) = clearly_earlier(&choice) {
        let is_first =
            |candidate: &Candidate<'_>| candidate.fetched.is_some_and(|time| time < first + CLEARLY_EARLIER);
        let is_linked = choice.get().any(|candidate| is_first(candidate) && candidate.votes > 0);
        choice.keep(if is_linked { Reason::FetchedFirst } else { Reason::FetchedEarlier }, is_first);
    }
    choice.keep(Reason::FewLinks, |candidate| candidate.votes > 0);
    let fullest = choice.get().map(|candidate| candidate.pages).max().unwrap_or(0);
    choice.keep(Reason::Size, |candidate| candidate.pages * 10 >= fullest * 9);
    let most = choice.most_votes();
    choice.keep(Reason::FewLinks, |candidate| candidate.votes == most);
    let times: Option<Vec<i64>> = choice.get().map(|candidate| candidate.fetched).collect();
    if let Some(earliest) = times.and_then(|times| times.into_iter().min()) {
        choice.keep(Reason::FetchedEarlier, |candidate| candidate.fetched == Some(earliest));
    }
    let least = choice.get().map(|candidate| candidate.depth).min().unwrap_or(0);
    choice.keep(Reason::Depth, |candidate| candidate.depth == least);
    let fullest = choice.get().map(|candidate| candidate.pages).max().unwrap_or(0);
    choice.keep(Reason::Size, |candidate| candidate.pages == fullest);
    let address = choice.get().map(|candidate| candidate.address).min().unwrap_or_default();
    choice.keep(Reason::Address, |candidate| candidate.address == address);
    let at = choice.left.first().copied().unwrap_or(0);
    let reason = choice.owner_by.unwrap_or(choice.last);
    (at, Chosen { reason, evidence: words(all, at, reason) })
}

/// When the first of the replicas was fetched, if that is long before some of them were, and it is
/// not these that more domains link to. A replica without dates may be the oldest of all.
fn clearly_earlier(choice: &Choice<'_, '_>) -> Option<i64> {
    let times: Vec<(i64, usize)> =
        choice.get().map(|candidate| Some((candidate.fetched?, candidate.votes))).collect::<Option<_>>()?;
    let first = times.iter().map(|(time, _)| *time).min()?;
    let most = |late: bool| {
        let of = times.iter().filter(|(time, _)| (*time >= first + CLEARLY_EARLIER) == late);
        of.map(|(_, votes)| *votes).max()
    };
    (most(true)? <= most(false)?).then_some(first)
}

/// The evidence in words; those it is compared with are the other owners' replicas, or all others
/// where there is one owner only.
fn words(all: &[Candidate<'_>], at: usize, reason: PrincipalReason) -> String {
    use PrincipalReason as Reason;
    let chosen = &all[at];
    let elsewhere = |candidate: &Candidate<'_>| candidate.owner != chosen.owner || chosen.owner.is_none();
    let has_others = all.iter().enumerate().any(|(other, candidate)| other != at && elsewhere(candidate));
    let others = || {
        all.iter()
            .enumerate()
            .filter(move |(other, candidate)| *other != at && (!has_others || elsewhere(candidate)))
            .map(|(_, candidate)| candidate)
    };
    match reason {
        Reason::Canonical => {
            format!(
                "named canonical by {} of {}",
                chosen.named_by,
                plural(all.len() as u64 - 1, "replica", "replicas")
            )
        }
        Reason::Links | Reason::FewLinks => {
            let link = if chosen.votes == 1 { "links" } else { "link" };
            let mut text = format!("{} {link} to it", plural(chosen.votes as u64, "domain", "domains"));
            let next = others().map(|candidate| candidate.votes).max().unwrap_or(0);
            if next > 0 {
                text += &format!(", {} to another", grouped(next as u64));
            }
            text
        }
        Reason::FetchedFirst | Reason::FetchedEarlier => {
            let next = others().filter_map(|candidate| candidate.fetched).min();
            let earlier = next.zip(chosen.fetched).map_or(0, |(next, time)| next.saturating_sub(time));
            let days = plural((earlier / DAY).max(0) as u64, "day", "days");
            match reason {
                Reason::FetchedFirst => format!("fetched first, {days} before the others"),
                _ if earlier >= CLEARLY_EARLIER && chosen.votes == 0 => {
                    format!("fetched {days} before the others, but nothing links to it")
                }
                _ => "fetched a little earlier".to_owned(),
            }
        }
        Reason::Size => {
            let next = others().map(|candidate| candidate.pages).max().unwrap_or(0);
            format!(
                "by size only: {}, {} elsewhere",
                plural(chosen.pages as u64, "page", "pages"),
                grouped(next as u64)
            )
        }
        Reason::Depth => "by depth only".to_owned(),
        _ => "by address only".to_owned(),
    }
}

#[cfg(test)]
mod tests;
