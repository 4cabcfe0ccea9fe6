//! The list in the formats of crawlers.
//!
//! Every format is what its crawler reads, whole: no line has to be added by hand. A format that
//! cannot say a rule leaves it out and tells so, rather than saying something wider. What each
//! crawler does with its file is in `docs/avoid.md`; the tests have an evaluator for each, written
//! from the crawler's own documentation.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fmt::Write as _;
use std::str::FromStr;

use serde::Serialize;

use super::{AvoidFileError, AvoidList, PathAndQuery, PathPrefix, RuleHost, SkipRule};

/// What a list can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Apache Nutch, `urlfilter-fast`: rules by host, the one to use for many hosts.
    NutchFast,
    /// Apache Nutch, `urlfilter-regex`: a regular expression a rule.
    NutchRegex,
    /// Apache Nutch, `urlfilter-domaindenylist`: whole hosts.
    NutchDomainDeny,
    /// Apache StormCrawler, `RegexURLFilter`.
    StormCrawlerRegex,
    /// Apache StormCrawler, `FastURLFilter`: rules by host.
    StormCrawlerFast,
    /// Heritrix, `SurtPrefixedDecideRule`.
    Heritrix,
    /// Browsertrix: `exclude` in its YAML.
    Browsertrix,
    /// Scrapy, for the middleware in `integrations/scrapy`.
    Scrapy,
    /// Beginnings of addresses, one a line.
    Prefixes,
    /// Whole hosts, one a line.
    Hosts,
    /// Single addresses, one a line.
    Urls,
    /// A table, one line a rule.
    Csv,
    /// The list itself.
    Json,
}

/// Not a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {name:?}; known are {}", Format::names().join(", "))]
pub struct UnknownFormat {
    /// What was given.
    pub name: String,
}

/// Why a format leaves a rule out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum WhyLeftOut {
    /// It has whole hosts only.
    WholeHostsOnly,
    /// It has single addresses only.
    SingleAddressesOnly,
    /// It has beginnings only, and this address may be the beginning of others.
    BeginningsOnly,
    /// It does not look at ports, and would skip the host on every one.
    Ports,
    /// It would skip subdomains too.
    Subdomains,
    /// Its spelling of this host is that of another one as well, or is not settled.
    UnusualHost,
}

impl fmt::Display for WhyLeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WhyLeftOut::WholeHostsOnly => "the format has whole hosts only",
            WhyLeftOut::SingleAddressesOnly => "the format has single addresses only",
            WhyLeftOut::BeginningsOnly => {
                "the format has beginnings only, and would skip longer addresses too"
            }
            WhyLeftOut::Ports => "the format does not look at ports, and would skip the host on every one",
            WhyLeftOut::Subdomains => "the format would skip subdomains too",
            WhyLeftOut::UnusualHost => "the format cannot tell this host from others",
        })
    }
}

/// Rules that a format left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Why.
    pub why: WhyLeftOut,
    /// How many.
    pub rules: u64,
}

/// A list in some format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// The file.
    pub text: String,
    /// Different rules in it.
    pub rules: u64,
    /// What is not in it.
    pub left_out: Vec<LeftOut>,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 13] = [
        Format::NutchFast,
        Format::NutchRegex,
        Format::NutchDomainDeny,
        Format::StormCrawlerRegex,
        Format::StormCrawlerFast,
        Format::Heritrix,
        Format::Browsertrix,
        Format::Scrapy,
        Format::Prefixes,
        Format::Hosts,
        Format::Urls,
        Format::Csv,
        Format::Json,
    ];

    /// Its name, which is also how it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Format::NutchFast => "nutch-fast",
            Format::NutchRegex => "nutch-regex",
            Format::NutchDomainDeny => "nutch-domaindeny",
            Format::StormCrawlerRegex => "stormcrawler-regex",
            Format::StormCrawlerFast => "stormcrawler-fast",
            Format::Heritrix => "heritrix",
            Format::Browsertrix => "browsertrix",
            Format::Scrapy => "scrapy",
            Format::Prefixes => "prefixes",
            Format::Hosts => "hosts",
            Format::Urls => "urls",
            Format::Csv => "csv",
            Format::Json => "json",
        }
    }

    /// All names.
    pub fn names() -> Vec<&'static str> {
        Format::ALL.iter().map(|format| format.name()).collect()
    }

    /// The name that the crawler looks for, where it looks for one.
    pub fn file_name(self) -> &'static str {
        match self {
            Format::NutchFast => "fast-urlfilter.txt",
            Format::NutchRegex => "regex-urlfilter.txt",
            Format::NutchDomainDeny => "domaindenylist-urlfilter.txt",
            Format::StormCrawlerRegex => "default-regex-filters.txt",
            Format::StormCrawlerFast => "fast.urlfilter.json",
            Format::Heritrix => "negative-surts.txt",
            Format::Browsertrix => "browsertrix-exclude.yaml",
            Format::Scrapy => "onionskin-scrapy.json",
            Format::Prefixes => "prefixes.txt",
            Format::Hosts => "hosts.txt",
            Format::Urls => "urls.txt",
            Format::Csv => "avoid.csv",
            Format::Json => "avoid.json",
        }
    }

    /// Writes a list. The same list gives the same text. Fails only as [`AvoidList::to_json`] does.
    pub fn render(self, list: &AvoidList) -> Result<Rendered, AvoidFileError> {
        let mut merged = merge(list);
        let mut counts: BTreeMap<WhyLeftOut, u64> = BTreeMap::new();
        for (host, rules) in &mut merged {
            self.leave_out(host, rules, &mut counts);
        }
        merged.retain(|_, rules| rules.n_rules() > 0);
        let rules = merged.values().map(|host| host.n_rules() as u64).sum();
        let left_out = counts.into_iter().map(|(why, rules)| LeftOut { why, rules }).collect();
        let text = match self {
            Format::NutchFast => nutch_fast(list, &merged),
            Format::NutchRegex | Format::StormCrawlerRegex => regex_lines(list, &merged),
            Format::NutchDomainDeny => comment(list) + &host_lines(&merged),
            Format::StormCrawlerFast => stormcrawler_fast(&merged)?,
            Format::Heritrix => surts(list, &merged),
            Format::Browsertrix => browsertrix(list, &merged)?,
            Format::Scrapy => scrapy(list, &merged)?,
            Format::Prefixes | Format::Urls => address_lines(&merged),
            Format::Hosts => host_lines(&merged),
            Format::Csv => list.to_csv(),
            Format::Json => list.to_json()?,
        };
        Ok(Rendered { text, rules, left_out })
    }

    /// Takes out what cannot be said, then what other rules hold for anyway. A rule that was taken
    /// out and is covered by one that was not is nothing to tell.
    fn leave_out<'a>(self, host: &RuleHost, rules: &mut Merged<'a>, counts: &mut BTreeMap<WhyLeftOut, u64>) {
        let refusal = |kind| self.refuses(host, rules.other_ports, kind);
        let whole = rules.whole.then(|| refusal(RuleKind::Host)).flatten();
        let (prefix, exact) = (refusal(RuleKind::Prefix), refusal(RuleKind::Exact));
        rules.whole = rules.whole && whole.is_none();
        let mut taken_out = Merged::default();
        if prefix.is_some() {
            taken_out.prefixes = std::mem::take(&mut rules.prefixes);
        }
        if exact.is_some() {
            taken_out.exact = std::mem::take(&mut rules.exact);
        }
        rules.simplify();
        if let Some(why) = whole {
            *counts.entry(why).or_default() += 1;
        }
        let lost_prefixes = taken_out.prefixes.iter().filter(|path| !rules.covers(path.as_str())).count();
        let lost_exact = taken_out.exact.iter().filter(|path| !rules.covers(path.as_str())).count();
        for (why, lost) in [(prefix, lost_prefixes), (exact, lost_exact)] {
            if let Some(why) = why.filter(|_| lost > 0) {
                *counts.entry(why).or_default() += lost as u64;
            }
        }
    }

    /// Why the format cannot say a rule, if it cannot.
    pub(super) fn refuses(self, host: &RuleHost, other_ports: bool, rule: RuleKind) -> Option<WhyLeftOut> {
        let blind_to_ports = matches!(
            self,
            Format::NutchFast | Format::NutchDomainDeny | Format::StormCrawlerFast | Format::Hosts
        );
        if blind_to_ports && (other_ports || host.port().is_some()) {
            return Some(WhyLeftOut::Ports);
        }
        match self {
            Format::NutchDomainDeny | Format::Hosts if rule != RuleKind::Host => {
                return Some(WhyLeftOut::WholeHostsOnly);
            }
            Format::Heritrix | Format::Prefixes if rule == RuleKind::Exact => {
                return Some(WhyLeftOut::BeginningsOnly);
            }
            Format::Urls if rule != RuleKind::Exact => return Some(WhyLeftOut::SingleAddressesOnly),
            _ => {}
        }
        match self {
            Format::NutchDomainDeny if has_subdomains(host.name()) => Some(WhyLeftOut::Subdomains),
            Format::Heritrix if !has_one_surt(host.name()) => Some(WhyLeftOut::UnusualHost),
            _ => None,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        let found = Format::ALL.into_iter().find(|format| format.name() == name);
        found.ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}

/// What a rule is, without its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleKind {
    Host,
    Prefix,
    Exact,
}

/// The rules of one host out of all entries, none of them within another.
#[derive(Debug, Default)]
struct Merged<'a> {
    whole: bool,
    prefixes: Vec<&'a PathPrefix>,
    exact: Vec<&'a PathAndQuery>,
    other_ports: bool,
    /// What is kept instead, and why.
    reasons: BTreeSet<(&'a str, &'a str)>,
}

impl Merged<'_> {
    fn n_rules(&self) -> usize {
        usize::from(self.whole) + self.prefixes.len() + self.exact.len()
    }

    /// Whether the host or a directory holds for a path. Directories must be simplified.
    fn covers(&self, path: &str) -> bool {
        // The only directory that can hold for it is the last one before it.
        let after = self.prefixes.partition_point(|prefix| prefix.as_str() <= path);
        self.whole || after.checked_sub(1).is_some_and(|n| path.starts_with(self.prefixes[n].as_str()))
    }

    /// Takes out rules that are within others.
    fn simplify(&mut self) {
        if self.whole {
            self.prefixes.clear();
            self.exact.clear();
            return;
        }
        // In order, what is below a directory follows it.
        self.prefixes.dedup_by(|later, earlier| later.as_str().starts_with(earlier.as_str()));
        let mut exact = std::mem::take(&mut self.exact);
        exact.retain(|path| !self.covers(path.as_str()));
        self.exact = exact;
    }
}

/// Rules by host, ascending, each once. Some crawlers take the last block of a host for all of it,
/// so each host has one.
fn merge(list: &AvoidList) -> BTreeMap<&RuleHost, Merged<'_>> {
    let mut merged: BTreeMap<&RuleHost, Merged<'_>> = BTreeMap::new();
    for entry in list.entries.iter().filter(|entry| !entry.rules.is_empty()) {
        let host = merged.entry(&entry.host).or_default();
        host.other_ports |= entry.other_ports;
        host.reasons.insert((&entry.kind, &entry.principal));
        for rule in &entry.rules {
            match rule {
                SkipRule::Host => host.whole = true,
                SkipRule::Prefix(prefix) => host.prefixes.push(prefix),
                SkipRule::Exact(exact) => host.exact.push(exact),
            }
        }
    }
    for host in merged.values_mut() {
        host.prefixes.sort_unstable();
        host.prefixes.dedup();
        host.exact.sort_unstable();
        host.exact.dedup();
    }
    merged
}

/// Whether Nutch's list of domains would take more than this host: it takes a registered domain, or
/// a public suffix, with everything under it. Names that the public suffix list knows nothing of
/// are not trusted either.
fn has_subdomains(host: &str) -> bool {
    if is_ip(host) {
        return false;
    }
    host.ends_with('.') || psl::domain_str(host).is_none_or(|domain| host == domain)
}

fn is_ip(host: &str) -> bool {
    host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok()
}

/// Whether no other host has the same SURT: a comma in a host reads like a dot, and a dot at its
/// end is lost.
fn has_one_surt(host: &str) -> bool {
    is_ip(host)
        || (host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
            && host.split('.').all(|label| !label.is_empty()))
}

/// Signs that mean something in a regular expression, in Java, JavaScript and Python alike. None
/// but these may be escaped under JavaScript's `u` flag.
fn escape_regex(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if matches!(c, '\\' | '^' | '$' | '.' | '|' | '?' | '*' | '+' | '(' | ')' | '[' | ']' | '{' | '}') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Full regular expressions for a host's rules, to be searched in an address.
///
/// The slash after the host ends it, so that no longer name matches, and `^` begins it, so that no
/// subdomain does. There is no optional
/// default port: crawlers take that away before they filter, and `(:80|:443)?` would take `http://host:443/`, which is another place.
fn patterns(host: &RuleHost, rules: &Merged<'_>) -> Vec<String> {
    let scheme = match host.schemes() {
        [only] => only,
        _ => "https?",
    };
    let begin = format!("^{scheme}://{}", escape_regex(host.as_str()));
    let whole = rules.whole.then(|| format!("{begin}/"));
    let prefixes = rules.prefixes.iter().map(|prefix| format!("{begin}{}", escape_regex(prefix.as_str())));
    let exact = rules.exact.iter().map(|exact| format!("{begin}{}$", escape_regex(exact.as_str())));
    whole.into_iter().chain(prefixes).chain(exact).collect()
}

/// Patterns for the path (`DenyPath`) and for path and query (`DenyPathQuery`), as both fast
/// filters have them.
fn path_patterns(rules: &Merged<'_>) -> Vec<String> {
    let whole = rules.whole.then(|| "DenyPath .*".to_owned());
    let prefixes = rules.prefixes.iter().map(|prefix| format!("DenyPath ^{}", escape_regex(prefix.as_str())));
    let exact = rules.exact.iter().map(|exact| format!("DenyPathQuery ^{}$", escape_regex(exact.as_str())));
    whole.into_iter().chain(prefixes).chain(exact).collect()
}

/// The first line of files that can have comments.
fn comment(list: &AvoidList) -> String {
    let tool = plain(list.tool.as_deref().unwrap_or("onionskin"));
    format!("# Copies that a crawl can skip, by {tool}. Each is kept at another address.\n")
}

/// Why a host is there. A line each for what is kept, and no more than a few.
fn reasons(rules: &Merged<'_>) -> String {
    const MOST: usize = 3;
    let mut text = String::new();
    for (kind, principal) in rules.reasons.iter().take(MOST) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "# {}, kept at {}", plain(kind), plain(principal));
    }
    if rules.reasons.len() > MOST {
        let _ = writeln!(text, "# and {} more", rules.reasons.len() - MOST);
    }
    text
}

/// Text that stays on its line, whatever it was.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect()
}

fn nutch_fast(list: &AvoidList, merged: &BTreeMap<&RuleHost, Merged<'_>>) -> String {
    let mut text = comment(list);
    for (host, rules) in merged {
        text.push_str(&reasons(rules));
        let _ = writeln!(text, "Host {host}");
        for pattern in path_patterns(rules) {
            let _ = writeln!(text, "  {pattern}");
        }
    }
    text
}

fn regex_lines(list: &AvoidList, merged: &BTreeMap<&RuleHost, Merged<'_>>) -> String {
    let mut text = comment(list);
    for (host, rules) in merged {
        text.push_str(&reasons(rules));
        for pattern in patterns(host, rules) {
            let _ = writeln!(text, "-{pattern}");
        }
    }
    // What no line takes is rejected, so the last line takes everything.
    text.push_str("# everything else\n+.\n");
    text
}

/// One scope of StormCrawler's fast filter.
#[derive(Serialize)]
struct FastScope {
    scope: String,
    patterns: Vec<String>,
}

#[derive(Serialize)]
struct FastRules {
    rules: Vec<FastScope>,
}

fn stormcrawler_fast(merged: &BTreeMap<&RuleHost, Merged<'_>>) -> Result<String, AvoidFileError> {
    let scopes = merged
        .iter()
        .map(|(host, rules)| FastScope { scope: format!("host:{host}"), patterns: path_patterns(rules) });
    let mut text = serde_json::to_string_pretty(&FastRules { rules: scopes.collect() })?;
    text.push('\n');
    Ok(text)
}

fn surts(list: &AvoidList, merged: &BTreeMap<&RuleHost, Merged<'_>>) -> String {
    let mut text = comment(list);
    for (host, rules) in merged {
        text.push_str(&reasons(rules));
        let begin = surt_of_host(host);
        if rules.whole {
            let _ = writeln!(text, "+{begin}/");
        }
        for prefix in &rules.prefixes {
            let _ = writeln!(text, "+{begin}{}", prefix.as_str());
        }
    }
    text
}

/// `http://(org,example,www,)`. The comma and the bracket after the last label keep subdomains out. https is compared as http. IPv4 addresses
/// are not turned round and have no comma; IPv6 addresses are to Heritrix a name of one label.
fn surt_of_host(host: &RuleHost) -> String {
    let mut surt = String::from("http://(");
    if host.name().parse::<std::net::Ipv4Addr>().is_ok() {
        surt.push_str(host.name());
    } else if host.name().starts_with('[') {
        surt.push_str(host.name());
        surt.push(',');
    } else {
        for label in host.name().rsplit('.') {
            surt.push_str(label);
            surt.push(',');
        }
    }
    if let Some(port) = host.port() {
        let _ = write!(surt, ":{port}");
    }
    surt.push(')');
    surt
}

fn browsertrix(list: &AvoidList, merged: &BTreeMap<&RuleHost, Merged<'_>>) -> Result<String, AvoidFileError> {
    let mut text = comment(list);
    if merged.is_empty() {
        text.push_str("exclude: []\n");
        return Ok(text);
    }
    text.push_str("exclude:\n");
    for (host, rules) in merged {
        for pattern in patterns(host, rules) {
            // Patterns are printable ASCII, for which a JSON string is a double-quoted YAML string.
            let _ = writeln!(text, "  - {}", serde_json::to_string(&pattern)?);
        }
    }
    Ok(text)
}

/// What the middleware reads.
#[derive(Serialize)]
struct ScrapyFile<'a> {
    format: &'static str,
    version: u32,
    tool: Option<&'a str>,
    hosts: BTreeMap<&'a str, ScrapyHost<'a>>,
}

#[derive(Serialize)]
struct ScrapyHost<'a> {
    all: bool,
    prefixes: Vec<&'a str>,
    exact: Vec<&'a str>,
}

fn scrapy(list: &AvoidList, merged: &BTreeMap<&RuleHost, Merged<'_>>) -> Result<String, AvoidFileError> {
    let hosts = merged.iter().map(|(host, rules)| {
        let host_rules = ScrapyHost {
            all: rules.whole,
            prefixes: rules.prefixes.iter().map(|prefix| prefix.as_str()).collect(),
            exact: rules.exact.iter().map(|exact| exact.as_str()).collect(),
        };
        (host.as_str(), host_rules)
    });
    let file = ScrapyFile {
        format: "onionskin-avoid-scrapy",
        version: 1,
        tool: list.tool.as_deref(),
        hosts: hosts.collect(),
    };
    let mut text = serde_json::to_string_pretty(&file)?;
    text.push('\n');
    Ok(text)
}

fn host_lines(merged: &BTreeMap<&RuleHost, Merged<'_>>) -> String {
    merged.keys().map(|host| format!("{host}\n")).collect()
}

/// Addresses on each scheme that the rules hold on.
fn address_lines(merged: &BTreeMap<&RuleHost, Merged<'_>>) -> String {
    let mut text = String::new();
    for (host, rules) in merged {
        let paths = rules.whole.then_some("/").into_iter();
        let paths = paths.chain(rules.prefixes.iter().map(|prefix| prefix.as_str()));
        for path in paths.chain(rules.exact.iter().map(|exact| exact.as_str())) {
            for scheme in host.schemes() {
                let _ = writeln!(text, "{scheme}://{host}{path}");
            }
        }
    }
    text
}

#[cfg(test)]
mod crawlers;
#[cfg(test)]
mod tests;
