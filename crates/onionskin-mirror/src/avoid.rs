//! What the next crawl can skip.
//!
//! A replica is worth fetching once, to know that it is one. An [`AvoidList`] names the replicas of
//! a crawl with the copies that are kept instead of them, and rules that cover them: whole hosts,
//! directories, single addresses. Naively one would list the replica's addresses; a directory is
//! shorter, and holds for pages that were not there at the last crawl. What it must never do is to
//! hold for anything that is no part of the replica, so rules are made from all that is known of a
//! host ([`rules_for`]), and every format that they are written in ([`Format`]) is tested to take
//! exactly the addresses that [`Matcher`] takes, or fewer.
//!
//! What a rule means:
//!
//! - It holds for one host, on http and https alike, on the default port of each. A replica on
//!   another port has rules of its own: its [`RuleHost`] has the port in it and holds for that port
//!   only. Subdomains are other hosts.
//! - [`SkipRule::Host`] holds for all of the host, [`SkipRule::Prefix`] for a directory with all
//!   that is below it, queries included, and [`SkipRule::Exact`] for one path with one query, or
//!   with none.
//! - Addresses are compared in their normalised spelling, byte for byte. Another spelling of a page
//!   is fetched once more; that is waste, but nothing is lost.
//! - An address with a user name in it is never skipped.
//! - No rule is wider than the directory that all pages of its replica are in, and none holds for a
//!   whole host unless the root page of the host is a page of the replica: what is known of a large
//!   host may be ten pages of it.

mod address;
mod audit;
mod file;
mod format;
mod matcher;
mod protect;
mod rules;
mod simulate;
mod stage;

pub use address::{AddressError, PathAndQuery, PathPrefix, RuleHost, SkipRule};
pub use audit::{AuditParams, Audited, Date, DateError, Seen, Verdict, audit_entry};
pub use file::{AvoidFileError, FORMAT_VERSION};
pub use format::{Format, LeftOut, Rendered, UnknownFormat, WhyLeftOut};
pub use matcher::{Hit, Matcher};
pub use protect::Protected;
pub use rules::{HostRules, KnownPage, MadeRules, PageRole, RuleLimits, rules_for};
pub use simulate::{CrawlCounts, EntryCounts, SimulatedPage, Simulation, simulate};
pub use stage::{
    Alternate, AuditedEntry, AvoidError, AvoidParams, AvoidReport, Savings, Why, alternate, alternates,
    audit, avoid, read_list, simulate_crawl,
};

use std::collections::HashSet;

use onionskin_core::{CollectionId, ReplicaId};

/// Rules that a list has at most, unless told otherwise. Crawlers that try one regular expression
/// after another are slow long before this.
pub const MAX_RULES: usize = 10_000;

/// Replicas that a crawl can skip, and where the knowledge comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AvoidList {
    /// Name and version of the program that made the list.
    pub tool: Option<String>,
    /// How pages were compared: the spelling of the recipe.
    pub recipe: Option<String>,
    /// From when on pages were similar, as it was given.
    pub threshold: Option<String>,
    /// When the first page of the crawl was fetched.
    pub crawl_from: Option<String>,
    /// When the last page of the crawl was fetched.
    pub crawl_to: Option<String>,
    /// The replicas.
    pub entries: Vec<AvoidEntry>,
}

/// One replica: what to skip, and what is kept instead of it.
#[derive(Clone, Debug, PartialEq)]
pub struct AvoidEntry {
    /// The group of replicas that it belongs to.
    pub group: CollectionId,
    /// Its number in the group.
    pub replica: ReplicaId,
    /// Why it is a copy: `mirror`, `partial mirror`, `host alias`, `versioned documentation` and so
    /// on.
    pub kind: String,
    /// A name for people.
    pub name: String,
    /// Root address of the copy that is kept.
    pub principal: String,
    /// What it was chosen by: `canonical`, `links`, `fetched first`, or a weak reason; `None` where
    /// the atlas does not say.
    pub principal_reason: Option<String>,
    /// The same in words: `3 domains link to it`.
    pub principal_evidence: Option<String>,
    /// Root address of this replica.
    pub root: String,
    /// The host that the rules hold for.
    pub host: RuleHost,
    /// Whether the crawl has this host on other ports too. Formats that cannot tell ports leave
    /// such an entry out, since they would skip those pages as well.
    pub other_ports: bool,
    /// What to skip.
    pub rules: Vec<SkipRule>,
    /// Pages that the crawl has of it.
    pub pages: u64,
    /// Bytes of those pages.
    pub bytes: u64,
    /// The share of the principal's pages that it has, from 0 to 1.
    pub coverage: f64,
    /// Pages under its rules that are copies.
    pub similar: u64,
    /// Pages under its rules that are no copies, and are lost by skipping it.
    pub unique: u64,
    /// When it was last found to be a copy, as `2026-11-16`.
    pub checked: Option<String>,
}

/// What a cap left out of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capped {
    /// Rules that are not in the list any more.
    pub rules: u64,
    /// Entries that lost all their rules, and are not in the list any more.
    pub entries: u64,
    /// Entries that lost some of their rules.
    pub shortened: u64,
}

impl AvoidList {
    /// How many different rules the list has, a host's rules counted once however many entries have
    /// them.
    pub fn n_rules(&self) -> usize {
        self.different_rules().len()
    }

    fn different_rules(&self) -> HashSet<(&RuleHost, &SkipRule)> {
        self.entries
            .iter()
            .flat_map(|entry| entry.rules.iter().map(move |rule| (&entry.host, rule)))
            .collect()
    }

    /// Shortens the list to so many rules. Entries with most pages have theirs first, and in an
    /// entry whole hosts and directories come before single addresses, as they save more. The order
    /// of entries stays.
    pub fn cap(&mut self, max_rules: usize) -> Capped {
        let mut capped = Capped::default();
        if self.n_rules() <= max_rules {
            return capped;
        }
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_key(|&n| {
            let entry = &self.entries[n];
            (std::cmp::Reverse(entry.pages), entry.group, entry.replica, n)
        });
        let mut taken: HashSet<(RuleHost, SkipRule)> = HashSet::new();
        for n in order {
            let entry = &mut self.entries[n];
            let before = entry.rules.len();
            entry.rules.sort_unstable();
            entry.rules.dedup();
            let duplicates = before - entry.rules.len();
            entry.rules.retain(|rule| {
                let key = (entry.host.clone(), rule.clone());
                taken.contains(&key) || (taken.len() < max_rules && taken.insert(key))
            });
            let lost = before - duplicates - entry.rules.len();
            capped.rules += lost as u64;
            if lost > 0 && entry.rules.is_empty() {
                capped.entries += 1;
            } else if lost > 0 {
                capped.shortened += 1;
            }
        }
        self.entries.retain(|entry| !entry.rules.is_empty());
        capped
    }

    /// Takes out every rule that holds for one of these addresses, which are to be fetched. Returns
    /// how many went; an entry without rules goes with them.
    ///
    /// [`rules_for`] knows one replica at a time. A page that is part of one group's replica may be
    /// kept by another group: this is the last look, over all that is kept.
    pub fn spare<'a>(&mut self, kept: impl IntoIterator<Item = &'a str>) -> u64 {
        let offending: HashSet<Hit> = {
            let matcher = Matcher::new(self);
            kept.into_iter().flat_map(|url| matcher.all(url)).collect()
        };
        if offending.is_empty() {
            return 0;
        }
        for (entry_idx, entry) in self.entries.iter_mut().enumerate() {
            let mut rule_idx = 0;
            entry.rules.retain(|_| {
                let stays = !offending.contains(&Hit { entry: entry_idx, rule: rule_idx });
                rule_idx += 1;
                stays
            });
        }
        self.entries.retain(|entry| !entry.rules.is_empty());
        offending.len() as u64
    }
}

#[cfg(test)]
mod tests;
