//! From the addresses of a replica to the fewest rules that cover it.
//!
//! The plain way is one rule an address. But mirrors are directories, so the rule is the largest
//! directory in which everything that is known belongs to the replica, and little of it is no copy.
//! A host's addresses are sorted, so that a directory is a range of them; ranges are cut into their
//! subdirectories until they are pure. The work is a sort and a walk over the bytes of the
//! addresses.
//!
//! All that is known of a host may be a handful of its pages: a crawl that touched `/wiki/` ten
//! times knows nothing of the rest. So no rule is wider than the directory that all pages of the
//! replica are in, and none holds for the host unless its root page is one of these.
//!
//! Directories are tested without regard to case: Heritrix compares addresses in lower case, so
//! `/Docs/` may only become a rule when nothing to be fetched is known below `/docs/` either.

use std::collections::HashSet;

use super::address::{Address, path_of, split_port};
use super::matcher::HostTable;
use super::{Hit, RuleHost, SkipRule};
use crate::place;

/// What a page is to the replica that rules are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageRole {
    /// Part of the replica, and a copy of something that is kept.
    Copy,
    /// Part of the replica, but no copy: lost if it is skipped.
    Unique,
    /// No part of the replica. Kept pages are among these, and no rule may hold for one.
    Outside,
}

/// A page of the crawl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownPage<'a> {
    /// Its normalised address.
    pub url: &'a str,
    /// What it is to the replica.
    pub role: PageRole,
}

/// When a directory becomes a rule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RuleLimits {
    /// The largest share of pages in a directory that may be no copies.
    pub max_unique: f64,
    /// How many pages of the replica a directory has at least, at different paths. One page says
    /// little of what else may be beside it.
    pub min_pages: u64,
}

impl Default for RuleLimits {
    fn default() -> RuleLimits {
        RuleLimits { max_unique: 0.1, min_pages: 2 }
    }
}

/// Rules for one host of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRules {
    /// The host.
    pub host: RuleHost,
    /// Whether pages of the same host are known on another port.
    pub other_ports: bool,
    /// Ascending, and none within another.
    pub rules: Vec<SkipRule>,
    /// Copies that the rules hold for.
    pub copies: u64,
    /// Pages of the replica that the rules hold for and that are no copies.
    pub unique: u64,
    /// Copies that no rule holds for, since the rule would hold for something else as well.
    pub uncovered: u64,
}

/// Rules for a replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MadeRules {
    /// Ascending by host. Hosts without a copy are not in it.
    pub hosts: Vec<HostRules>,
    /// Addresses that are not spelt as http or https addresses are.
    pub unreadable: u64,
}

/// Rules that hold for the copies of a replica and for nothing outside of it.
///
/// `known` is every page that is known of the replica's hosts, in any order: only what is given can
/// be spared. A replica is commonly on one host; if it is on several, or on several ports, each has
/// rules of its own.
///
/// ```
/// use onionskin_mirror::avoid::{KnownPage, PageRole, RuleLimits, SkipRule, rules_for};
/// let known = [("http://a.org/", PageRole::Outside), ("http://a.org/m/", PageRole::Copy), ("http://a.org/m/b", PageRole::Copy)];
/// let made = rules_for(known.map(|(url, role)| KnownPage { url, role }), &RuleLimits::default());
/// assert_eq!(made.hosts[0].rules, [SkipRule::prefix("/m/").unwrap()]);
/// ```
pub fn rules_for<'a>(known: impl IntoIterator<Item = KnownPage<'a>>, limits: &RuleLimits) -> MadeRules {
    let mut made = MadeRules::default();
    let mut pages: Vec<Known<'a>> = Vec::new();
    for page in known {
        match Address::split(page.url) {
            Some(address) => pages.push(Known {
                authority: address.authority,
                path_and_query: address.path_and_query,
                role: page.role,
                has_user: address.has_user,
            }),
            None => made.unreadable += 1,
        }
    }
    pages.sort_unstable();
    // A host and its ports are next to each other only as long as nothing sorts in between:
    // `a.org-b` comes before `a.org:80`.
    let mut names: Vec<(&str, &str)> = pages
        .chunk_by(|a, b| a.authority == b.authority)
        .map(|group| (name_of(group[0].authority), group[0].authority))
        .collect();
    names.sort_unstable();
    let on_several_ports: HashSet<&str> =
        names.windows(2).filter(|pair| pair[0].0 == pair[1].0).map(|pair| pair[0].0).collect();
    for group in pages.chunk_by(|a, b| a.authority == b.authority) {
        if !group.iter().any(|page| page.role == PageRole::Copy) {
            continue;
        }
        let authority = group[0].authority;
        let Ok(host) = RuleHost::new(authority) else {
            made.unreadable += group.len() as u64;
            continue;
        };
        let other_ports = on_several_ports.contains(name_of(authority));
        made.hosts.push(rules_of_host(host, other_ports, group, limits));
    }
    made
}

fn name_of(authority: &str) -> &str {
    split_port(authority).map_or(authority, |(host, _)| host)
}

/// Sorts by host, then path, then role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Known<'a> {
    authority: &'a str,
    path_and_query: &'a str,
    role: PageRole,
    has_user: bool,
}

/// Pages of a replica at one path, on http and https together.
#[derive(Clone, Copy, Debug)]
struct Spot<'a> {
    path_and_query: &'a str,
    /// Copies and others at and before this spot, so that a range is counted by a subtraction.
    copies_until: u64,
    unique_until: u64,
    /// Whether all that is known here are copies.
    only_copies: bool,
}

fn rules_of_host(host: RuleHost, other_ports: bool, pages: &[Known<'_>], limits: &RuleLimits) -> HostRules {
    let mut spots: Vec<Spot<'_>> = Vec::new();
    let (mut copies, mut unique, mut with_user) = (0, 0, 0);
    let mut blocked = Blocked::default();
    for group in pages.chunk_by(|a, b| a.path_and_query == b.path_and_query) {
        let path_and_query = group[0].path_and_query;
        let mut outside = false;
        let (copies_before, unique_before) = (copies, unique);
        for page in group {
            match page.role {
                PageRole::Outside => outside = true,
                // No rule holds for an address with a user name, so it is neither a reason for a
                // rule nor covered by one.
                PageRole::Copy if page.has_user => with_user += 1,
                PageRole::Unique if page.has_user => {}
                PageRole::Copy => copies += 1,
                PageRole::Unique => unique += 1,
            }
        }
        if outside {
            blocked.block_all_above(path_and_query);
        }
        if (copies, unique) != (copies_before, unique_before) {
            let only_copies = !outside && unique == unique_before;
            spots.push(Spot { path_and_query, copies_until: copies, unique_until: unique, only_copies });
        }
    }

    // Rules are right by the way they are made. A list that skips what it must not does harm for
    // months before it is seen, so the outcome is tried on everything all the same, and what fails
    // is cut further.
    let least_len = own_directory_len(&spots);
    let rules = loop {
        let rules = cut(&spots, least_len, &blocked, limits);
        let mut table = HostTable::default();
        for (rule_idx, rule) in rules.iter().enumerate() {
            table.add(rule, Hit { entry: 0, rule: rule_idx });
        }
        table.finish();
        let outside = pages.iter().filter(|page| page.role == PageRole::Outside);
        let offending: HashSet<usize> =
            outside.flat_map(|page| table.hits(page.path_and_query)).map(|hit| hit.rule).collect();
        if offending.is_empty() {
            break rules;
        }
        for rule_idx in offending {
            match &rules[rule_idx] {
                SkipRule::Host => blocked.block("/"),
                SkipRule::Prefix(prefix) => blocked.block(prefix.as_str()),
                SkipRule::Exact(exact) => blocked.block_exact(exact.as_str()),
            }
        }
    };

    let mut table = HostTable::default();
    rules.iter().for_each(|rule| table.add(rule, Hit { entry: 0, rule: 0 }));
    table.finish();
    let (mut covered_copies, mut covered_unique) = (0, 0);
    for (n, spot) in spots.iter().enumerate() {
        if table.hits(spot.path_and_query).next().is_some() {
            let (copies, unique) = count(&spots[..=n], n);
            covered_copies += copies;
            covered_unique += unique;
        }
    }
    HostRules {
        host,
        other_ports,
        rules,
        copies: covered_copies,
        unique: covered_unique,
        uncovered: copies - covered_copies + with_user,
    }
}

/// Copies and others from a place on to the end.
fn count(spots: &[Spot<'_>], from: usize) -> (u64, u64) {
    let before = from.checked_sub(1).map_or((0, 0), |n| (spots[n].copies_until, spots[n].unique_until));
    spots.last().map_or((0, 0), |last| (last.copies_until - before.0, last.unique_until - before.1))
}

/// The length of the shortest directory that may be a rule: the whole host where its root page is
/// among the pages of the replica, else the directory that all of these are in.
fn own_directory_len(spots: &[Spot<'_>]) -> usize {
    let is_root = |spot: &Spot<'_>| {
        let path = spot.path_and_query;
        place::folder(path) == "/" && !path.contains('?') && place::is_index(path)
    };
    if spots.iter().any(is_root) {
        return 1;
    }
    // Sorted, so that what the first and the last have in common all have.
    let (Some(first), Some(last)) = (spots.first(), spots.last()) else { return 1 };
    let (first, last) = (place::folder(first.path_and_query), place::folder(last.path_and_query));
    let common = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
    let common = first[..common].rfind('/').map_or(0, |slash| slash + 1);
    // Longer than `/`, at the least.
    common.max(2)
}

/// Largest directories that may become rules, and single addresses of what is left. Not recursive:
/// paths can be as deep as they are long.
fn cut(spots: &[Spot<'_>], least_len: usize, blocked: &Blocked, limits: &RuleLimits) -> Vec<SkipRule> {
    let mut rules = Vec::new();
    // Ranges of spots whose paths have the same beginning of so many bytes, a directory.
    let mut ranges = vec![(0, spots.len(), 1)];
    while let Some((begin, end, directory_len)) = ranges.pop() {
        let Some(first) = spots[begin..end].first() else { continue };
        let directory = &first.path_and_query[..directory_len];
        let (copies, unique) = count(&spots[..end], begin);
        let mostly_copies = copies > 0 && unique as f64 <= limits.max_unique * (copies + unique) as f64;
        // One page on http and on https is one page.
        let pure = mostly_copies && (end - begin) as u64 >= limits.min_pages;
        if pure
            && directory_len >= least_len
            && !blocked.has(directory)
            && let Ok(rule) = SkipRule::prefix(directory)
        {
            rules.push(rule);
            continue;
        }
        let mut at = begin;
        while at < end {
            let spot = &spots[at];
            match subdirectory(spot.path_and_query, directory_len) {
                Some(deeper_len) => {
                    let deeper = &spot.path_and_query[..deeper_len];
                    let length = spots[at..end]
                        .iter()
                        .take_while(|next| next.path_and_query.starts_with(deeper))
                        .count();
                    ranges.push((at, at + length, deeper_len));
                    at += length;
                }
                None => {
                    if spot.only_copies && !blocked.has_exact(spot.path_and_query) {
                        rules.extend(SkipRule::exact(spot.path_and_query));
                    }
                    at += 1;
                }
            }
        }
    }
    rules.sort_unstable();
    rules
}

/// Length of the directory below one of `directory_len` bytes that the path is in; `None` when it
/// is in that directory itself.
fn subdirectory(path_and_query: &str, directory_len: usize) -> Option<usize> {
    let path = path_of(path_and_query);
    path.as_bytes()[directory_len..].iter().position(|&b| b == b'/').map(|at| directory_len + at + 1)
}

/// Directories that have something to be fetched below them, whatever the case of their letters.
///
/// Kept as 64-bit hashes. Two directories with one hash mean that one of them is cut further than
/// it need be, never that a rule is too wide.
#[derive(Debug, Default)]
struct Blocked {
    directories: HashSet<u64>,
    exact: HashSet<String>,
}

impl Blocked {
    fn block_all_above(&mut self, path_and_query: &str) {
        let mut hash = FNV_OFFSET;
        for &byte in path_of(path_and_query).as_bytes() {
            hash = fnv(hash, byte);
            if byte == b'/' {
                self.directories.insert(hash);
            }
        }
    }

    fn block(&mut self, directory: &str) {
        self.directories.insert(folded_hash(directory));
    }

    fn block_exact(&mut self, path_and_query: &str) {
        self.exact.insert(path_and_query.to_owned());
    }

    fn has(&self, directory: &str) -> bool {
        self.directories.contains(&folded_hash(directory))
    }

    fn has_exact(&self, path_and_query: &str) -> bool {
        !self.exact.is_empty() && self.exact.contains(path_and_query)
    }
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;

fn fnv(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0000_0100_0000_01b3)
}

fn folded_hash(text: &str) -> u64 {
    text.bytes().fold(FNV_OFFSET, fnv)
}

#[cfg(test)]
mod tests;
