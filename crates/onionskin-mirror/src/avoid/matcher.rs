//! Which addresses a list skips.
//!
//! The plain way is to try every rule on every address. Here the host is looked up first, then the
//! whole address among the single ones, then those beginnings of the path that have the length of
//! some directory of that host, longest first.

use std::collections::HashMap;

use super::address::{Address, path_of};
use super::{AvoidList, RuleHost, SkipRule};

/// The rule that holds for an address: places in the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hit {
    /// Which of the list's entries.
    pub entry: usize,
    /// Which of the entry's rules.
    pub rule: usize,
}

/// A list, made ready for looking up addresses.
///
/// ```
/// use onionskin_mirror::avoid::{AvoidList, Matcher};
/// let list = AvoidList::default();
/// assert!(!Matcher::new(&list).skips("http://example.org/"));
/// ```
#[derive(Debug)]
pub struct Matcher<'a> {
    // Addresses come from outside, so the hash is one that nobody can choose collisions for; the
    // order of the maps reaches nothing.
    hosts: HashMap<&'a str, HostTable<'a>>,
}

/// The rules of one host. Where several entries have a rule the first one is told.
#[derive(Debug, Default)]
pub(super) struct HostTable<'a> {
    whole: Vec<Hit>,
    exact: HashMap<&'a str, Vec<Hit>>,
    prefixes: HashMap<&'a str, Vec<Hit>>,
    /// Lengths of the directories, each once, longest first. A hostile path has thousands of
    /// slashes, but few of them stand where a directory of the list ends.
    lengths: Vec<usize>,
}

impl<'a> Matcher<'a> {
    /// Makes the tables. Memory is in proportion to the rules.
    pub fn new(list: &'a AvoidList) -> Matcher<'a> {
        let mut hosts: HashMap<&'a str, HostTable<'a>> = HashMap::new();
        for (entry_idx, entry) in list.entries.iter().enumerate() {
            let table = hosts.entry(RuleHost::as_str(&entry.host)).or_default();
            for (rule_idx, rule) in entry.rules.iter().enumerate() {
                table.add(rule, Hit { entry: entry_idx, rule: rule_idx });
            }
        }
        hosts.values_mut().for_each(HostTable::finish);
        Matcher { hosts }
    }

    /// The rule that holds for a normalised address: the one of the address itself, else that of
    /// the longest directory, else that of the host. `None` when it is to be fetched.
    pub fn find(&self, url: &str) -> Option<Hit> {
        let (table, path_and_query) = self.table(url)?;
        table.hits(path_and_query).next()
    }

    /// Whether a normalised address is skipped.
    pub fn skips(&self, url: &str) -> bool {
        self.find(url).is_some()
    }

    /// All rules that hold for a normalised address, of all entries, most special first.
    pub fn all(&self, url: &str) -> Vec<Hit> {
        self.table(url)
            .map(|(table, path_and_query)| table.hits(path_and_query).collect())
            .unwrap_or_default()
    }

    fn table<'u>(&self, url: &'u str) -> Option<(&HostTable<'a>, &'u str)> {
        let address = Address::split(url).filter(|address| !address.has_user)?;
        Some((self.hosts.get(address.authority)?, address.path_and_query))
    }
}

impl<'a> HostTable<'a> {
    pub(super) fn add(&mut self, rule: &'a SkipRule, hit: Hit) {
        match rule {
            SkipRule::Host => self.whole.push(hit),
            SkipRule::Prefix(prefix) => self.prefixes.entry(prefix.as_str()).or_default().push(hit),
            SkipRule::Exact(exact) => self.exact.entry(exact.as_str()).or_default().push(hit),
        }
    }

    pub(super) fn finish(&mut self) {
        self.lengths = self.prefixes.keys().map(|prefix| prefix.len()).collect();
        self.lengths.sort_unstable_by(|a, b| b.cmp(a));
        self.lengths.dedup();
    }

    /// Rules that hold for a path, most special first.
    pub(super) fn hits<'t>(&'t self, path_and_query: &'t str) -> impl Iterator<Item = Hit> + 't {
        let path = path_of(path_and_query);
        let prefixes = self
            .lengths
            .iter()
            .filter(move |&&length| length <= path.len() && path.as_bytes()[length - 1] == b'/')
            .filter_map(move |&length| self.prefixes.get(&path[..length]));
        let exact = if self.exact.is_empty() { None } else { self.exact.get(path_and_query) };
        exact.into_iter().chain(prefixes).flatten().chain(&self.whole).copied()
    }
}

#[cfg(test)]
mod tests;
