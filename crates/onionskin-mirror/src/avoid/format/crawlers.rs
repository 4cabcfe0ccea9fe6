//! What crawlers do with their files: parsers and evaluators written from the crawlers'
//! documentation and sources, not from our writers. Each answers whether an address is skipped.

use std::collections::{HashMap, HashSet};

use regex::Regex;

use super::Format;

/// A crawler that has read a file.
pub(super) enum Crawler {
    NutchFast(HashMap<String, Vec<Deny>>),
    /// Sign and expression of `urlfilter-regex` and of StormCrawler's twin of it.
    Regex(Vec<(bool, Regex)>),
    Domains(HashSet<String>),
    StormCrawlerFast(HashMap<String, Vec<Deny>>),
    Surts(Vec<String>),
    Exclude(Vec<Regex>),
    Scrapy(serde_json::Value),
    Prefixes(Vec<String>),
    Hosts(HashSet<String>),
    Urls(HashSet<String>),
}

/// A rule of the fast filters.
pub(super) struct Deny {
    with_query: bool,
    pattern: Regex,
}

impl Crawler {
    /// `None` for formats that no crawler reads.
    pub(super) fn read(format: Format, text: &str) -> Option<Crawler> {
        let lines = || text.lines().map(str::to_owned);
        Some(match format {
            Format::NutchFast => Crawler::NutchFast(read_nutch_fast(text)),
            Format::NutchRegex | Format::StormCrawlerRegex => Crawler::Regex(read_regex_rules(text)),
            Format::NutchDomainDeny => Crawler::Domains(
                lines()
                    .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
                    .map(|line| line.trim().to_lowercase())
                    .collect(),
            ),
            Format::StormCrawlerFast => Crawler::StormCrawlerFast(read_stormcrawler_fast(text)),
            Format::Heritrix => Crawler::Surts(read_surts(text)),
            Format::Browsertrix => Crawler::Exclude(
                read_yaml_list(text).iter().map(|pattern| Regex::new(pattern).unwrap()).collect(),
            ),
            Format::Scrapy => Crawler::Scrapy(serde_json::from_str(text).unwrap()),
            Format::Prefixes => Crawler::Prefixes(lines().collect()),
            Format::Hosts => Crawler::Hosts(lines().collect()),
            Format::Urls => Crawler::Urls(lines().collect()),
            Format::Csv | Format::Json => return None,
        })
    }

    pub(super) fn skips(&self, url: &str) -> bool {
        let parts = JavaUrl::new(url);
        match self {
            // Rules of the host, in order; accepted when none is found. Domain rules are not read:
            // we write none.
            Crawler::NutchFast(hosts) | Crawler::StormCrawlerFast(hosts) => {
                hosts.get(parts.host).into_iter().flatten().any(|rule| {
                    let haystack = if rule.with_query { parts.file } else { parts.path };
                    rule.pattern.is_match(haystack)
                })
            }
            // The first expression that is found decides; rejected when none is.
            Crawler::Regex(rules) => {
                !rules.iter().find(|(_, regex)| regex.is_match(url)).is_some_and(|(accept, _)| *accept)
            }
            Crawler::Domains(set) => {
                let suffix = psl::suffix_str(parts.host);
                let domain = psl::domain_str(parts.host);
                [suffix, domain, Some(parts.host)].into_iter().flatten().any(|name| set.contains(name))
            }
            Crawler::Surts(prefixes) => {
                let candidate = candidate_surt(url);
                prefixes.iter().any(|prefix| candidate.starts_with(prefix.as_str()))
            }
            Crawler::Exclude(patterns) => patterns.iter().any(|pattern| pattern.is_match(url)),
            Crawler::Scrapy(file) => scrapy_skips(file, url),
            Crawler::Prefixes(prefixes) => prefixes.iter().any(|prefix| url.starts_with(prefix.as_str())),
            Crawler::Hosts(hosts) => hosts.contains(parts.host),
            Crawler::Urls(urls) => urls.contains(url),
        }
    }
}

/// An address as `java.net.URL` cuts it.
struct JavaUrl<'a> {
    /// Without user and port; an IPv6 address keeps its brackets.
    host: &'a str,
    path: &'a str,
    /// Path and query.
    file: &'a str,
}

impl<'a> JavaUrl<'a> {
    fn new(url: &'a str) -> JavaUrl<'a> {
        let after = &url[url.find("://").unwrap() + 3..];
        let after = &after[..after.find('#').unwrap_or(after.len())];
        let (authority, file) = after.split_at(after.find(['/', '?']).unwrap_or(after.len()));
        let host_and_port = &authority[authority.rfind('@').map_or(0, |at| at + 1)..];
        let host = match host_and_port.find(']') {
            Some(at) => &host_and_port[..=at],
            None => &host_and_port[..host_and_port.find(':').unwrap_or(host_and_port.len())],
        };
        JavaUrl { host, path: &file[..file.find('?').unwrap_or(file.len())], file }
    }
}

/// "Comments start with # and reach until the end of the line"; `Host` and `Domain` begin a block;
/// `.*` and `.?` deny everything.
fn read_nutch_fast(text: &str) -> HashMap<String, Vec<Deny>> {
    let mut hosts: HashMap<String, Vec<Deny>> = HashMap::new();
    let mut current = None;
    for line in text.lines() {
        let line = line.split('#').next().unwrap().trim();
        let mut words = line.split_whitespace();
        let Some(word) = words.next() else { continue };
        let value = words.next().expect("a word after the first").to_owned();
        if word.starts_with("Host") {
            current = Some(value);
        } else if word.starts_with("DenyPath") {
            let host = current.clone().expect("a host before its rules");
            let with_query = word.starts_with("DenyPathQuery");
            hosts.entry(host).or_default().push(Deny { with_query, pattern: Regex::new(&value).unwrap() });
        } else {
            panic!("Nutch would warn of {line:?}");
        }
    }
    hosts
}

/// `+` or `-` and an expression a line; blank lines and `#` are passed over, and Nutch knows `>`
/// and `<` for sections.
fn read_regex_rules(text: &str) -> Vec<(bool, Regex)> {
    let mut rules = Vec::new();
    for line in text.lines() {
        match line.chars().next() {
            None | Some('#' | ' ') => {}
            Some(sign @ ('+' | '-')) => rules.push((sign == '+', Regex::new(&line[1..]).unwrap())),
            Some(_) => panic!("invalid first character: {line:?}"),
        }
    }
    rules
}

/// An object with one member is its value; a later scope of a host takes the place of an earlier
/// one.
fn read_stormcrawler_fast(text: &str) -> HashMap<String, Vec<Deny>> {
    let root: serde_json::Value = serde_json::from_str(text).unwrap();
    let object = root.as_object().unwrap();
    assert_eq!(object.len(), 1);
    let mut hosts = HashMap::new();
    for scope in object.values().next().unwrap().as_array().unwrap() {
        let host = scope["scope"].as_str().unwrap().trim().strip_prefix("host:").unwrap();
        let rules = scope["patterns"].as_array().unwrap().iter().map(|line| {
            let line = line.as_str().unwrap();
            let (kind, pattern) = line.split_once(' ').unwrap();
            let with_query = match kind.to_ascii_lowercase().as_str() {
                "denypath" => false,
                "denypathquery" => true,
                _ => panic!("unknown type of rule: {line:?}"),
            };
            Deny { with_query, pattern: Regex::new(pattern.trim()).unwrap() }
        });
        hosts.insert(host.to_owned(), rules.collect());
    }
    hosts
}

/// Lines of one word; `+` begins a directive, which is a SURT if it has a bracket, and is put into
/// lower case.
fn read_surts(text: &str) -> Vec<String> {
    let mut prefixes = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        assert!(!line.contains(char::is_whitespace), "{line:?}");
        let surt = line.strip_prefix('+').expect("a directive");
        assert!(surt.find('(').is_some_and(|at| at > 0), "{surt:?}");
        prefixes.push(surt.to_lowercase());
    }
    prefixes
}

/// The SURT of an address: `scheme://(tld,domain,:port@user)/path`, in lower case, https as http. Dotted quads are not turned round.
fn candidate_surt(url: &str) -> String {
    let (scheme, after) = url.split_once("://").unwrap();
    let (authority, path) = after.split_at(after.find('/').unwrap_or(after.len()));
    let (user, host_and_port) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let port_at = host_and_port.rfind(':').filter(|&at| {
        at + 1 < host_and_port.len() && host_and_port[at + 1..].bytes().all(|b| b.is_ascii_digit())
    });
    let (host, port) = host_and_port.split_at(port_at.unwrap_or(host_and_port.len()));
    let quad = host.split('.').count() == 4
        && host
            .split('.')
            .all(|part| matches!(part.len(), 1..=3) && part.bytes().all(|b| b.is_ascii_digit()));
    let mut surt = format!("{}://(", if scheme == "https" { "http" } else { scheme });
    if quad {
        surt.push_str(host);
    } else {
        for label in host.rsplit('.') {
            surt.push_str(label);
            surt.push(',');
        }
    }
    surt.push_str(port);
    if let Some(user) = user {
        surt.push('@');
        surt.push_str(user);
    }
    surt.push(')');
    surt.push_str(path);
    surt.to_lowercase()
}

/// A block sequence of double-quoted scalars under the key `exclude`, or the empty flow sequence
/// (YAML 1.2, 7.3.1 and 8.2.1).
pub(super) fn read_yaml_list(text: &str) -> Vec<String> {
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    match lines.next() {
        Some("exclude: []") => {
            assert_eq!(lines.next(), None);
            return Vec::new();
        }
        first => assert_eq!(first, Some("exclude:")),
    }
    lines.map(|line| read_double_quoted(line.strip_prefix("  - ").expect("an item"))).collect()
}

fn read_double_quoted(text: &str) -> String {
    let inside = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).expect("quotes");
    let mut out = String::new();
    let mut chars = inside.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => panic!("a quote within quotes: {text}"),
            '\\' => match chars.next() {
                Some(escaped @ ('\\' | '"' | '/')) => out.push(escaped),
                other => panic!("an escape that patterns do not need: {other:?}"),
            },
            c => out.push(c),
        }
    }
    out
}

/// As `integrations/scrapy` has it: host and port without the default one, then the address, its
/// directories, or all.
fn scrapy_skips(file: &serde_json::Value, url: &str) -> bool {
    let (scheme, after) = url.split_once("://").unwrap();
    let (authority, path_and_query) = after.split_at(after.find('/').unwrap());
    let default = if scheme == "http" { ":80" } else { ":443" };
    let rules = &file["hosts"][authority.strip_suffix(default).unwrap_or(authority)];
    if authority.contains('@') || rules.is_null() {
        return false;
    }
    let has = |key: &str, path: &str| rules[key].as_array().unwrap().iter().any(|rule| rule == path);
    let path = path_and_query.split('?').next().unwrap();
    rules["all"] == true
        || has("exact", path_and_query)
        || path.match_indices('/').any(|(at, _)| has("prefixes", &path[..=at]))
}
