use super::super::tests::{entry, list};
use super::super::{AvoidEntry, KnownPage, Matcher, PageRole, RuleLimits, rules_for};
use super::crawlers::{Crawler, read_yaml_list};
use super::*;
use onionskin_extract::url::{normalize, site};
use proptest::prelude::*;
use std::collections::HashSet;

/// The file without its comments.
fn rendered(format: Format, list: &AvoidList) -> String {
    let text = format.render(list).unwrap().text;
    text.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect()
}

fn sample() -> AvoidList {
    list(vec![
        entry("www.example.org", &["/mirror/*"], 10),
        entry("a.b.example.com", &["*"], 5),
        entry("www.example.org", &["/a.html?b=1", "/mirror/deep/*", "/mirror/x"], 2),
        entry("h.example.com:8080", &["/m/*"], 1),
    ])
}

#[test]
fn nutch_fast_has_a_block_a_host() {
    assert_eq!(
        rendered(Format::NutchFast, &sample()),
        "Host a.b.example.com\n  DenyPath .*\nHost www.example.org\n  DenyPath ^/mirror/\n  DenyPathQuery ^/a\\.html\\?b=1$\n"
    );
}

#[test]
fn regular_expressions_are_anchored_and_end_with_all() {
    let lines = "-^https?://a\\.b\\.example\\.com/\n-^https?://h\\.example\\.com:8080/m/\n\
                 -^https?://www\\.example\\.org/mirror/\n-^https?://www\\.example\\.org/a\\.html\\?b=1$\n+.\n";
    assert_eq!(rendered(Format::NutchRegex, &sample()), lines);
    assert_eq!(rendered(Format::StormCrawlerRegex, &sample()), lines);
}

#[test]
fn stormcrawler_has_a_scope_a_host() {
    let text = rendered(Format::StormCrawlerFast, &sample());
    let expected = serde_json::json!({"rules": [
        {"scope": "host:a.b.example.com", "patterns": ["DenyPath .*"]},
        {"scope": "host:www.example.org", "patterns": ["DenyPath ^/mirror/", "DenyPathQuery ^/a\\.html\\?b=1$"]},
    ]});
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), expected);
}

#[test]
fn surts_close_their_bracket() {
    let expected =
        "+http://(com,example,b,a,)/\n+http://(com,example,h,:8080)/m/\n+http://(org,example,www,)/mirror/\n";
    assert_eq!(rendered(Format::Heritrix, &sample()), expected);
    let addresses = list(vec![entry("127.0.0.1", &["*"], 1), entry("[2001:db8::1]:81", &["/m/*"], 1)]);
    assert_eq!(
        rendered(Format::Heritrix, &addresses),
        "+http://(127.0.0.1)/\n+http://([2001:db8::1],:81)/m/\n"
    );
}

#[test]
fn yaml_is_quoted() {
    let text =
        rendered(Format::Browsertrix, &list(vec![entry("www.example.org", &["/it's|[x]/*", "/q?\\"], 1)]));
    assert_eq!(
        text,
        "exclude:\n  - \"^https?://www\\\\.example\\\\.org/it's\\\\|\\\\[x\\\\]/\"\n  - \"^https?://www\\\\.example\\\\.org/q\\\\?\\\\\\\\$\"\n"
    );
    assert_eq!(read_yaml_list(&text)[1], "^https?://www\\.example\\.org/q\\?\\\\$");
    assert_eq!(rendered(Format::Browsertrix, &list(vec![])), "exclude: []\n");
}

#[test]
fn plain_lists_have_one_kind_of_rule_each() {
    assert_eq!(rendered(Format::Hosts, &sample()), "a.b.example.com\n");
    assert_eq!(rendered(Format::NutchDomainDeny, &sample()), "a.b.example.com\n");
    assert_eq!(
        rendered(Format::Urls, &sample()),
        "http://www.example.org/a.html?b=1\nhttps://www.example.org/a.html?b=1\n\
         http://www.example.org/mirror/x\nhttps://www.example.org/mirror/x\n"
    );
    assert_eq!(
        rendered(Format::Prefixes, &sample()),
        "http://a.b.example.com/\nhttps://a.b.example.com/\nhttp://h.example.com:8080/m/\nhttps://h.example.com:8080/m/\n\
         http://www.example.org/mirror/\nhttps://www.example.org/mirror/\n"
    );
}

#[test]
fn a_port_that_is_the_default_of_one_scheme_is_on_the_other() {
    let list = list(vec![entry("h.example:443", &["*"], 1), entry("h.example:80", &["/a"], 1)]);
    assert_eq!(
        rendered(Format::NutchRegex, &list),
        "-^http://h\\.example:443/\n-^https://h\\.example:80/a$\n+.\n"
    );
    assert_eq!(rendered(Format::Prefixes, &list), "http://h.example:443/\n");
}

#[track_caller]
fn check_left_out(format: Format, rules: u64, left_out: &[(WhyLeftOut, u64)]) {
    let mut list = sample();
    list.entries.push(entry("example.net", &["*"], 1));
    list.entries.push(entry("a,b.example.net", &["*"], 1));
    let mut other_ports = entry("p.example.net", &["*"], 1);
    other_ports.other_ports = true;
    list.entries.push(other_ports);
    let rendered = format.render(&list).unwrap();
    let expected: Vec<LeftOut> = left_out.iter().map(|&(why, rules)| LeftOut { why, rules }).collect();
    assert_eq!((rendered.rules, rendered.left_out), (rules, expected), "{format}");
}

#[test]
fn what_a_format_cannot_say_is_told() {
    use WhyLeftOut::*;
    check_left_out(Format::NutchRegex, 7, &[]);
    check_left_out(Format::Browsertrix, 7, &[]);
    check_left_out(Format::Scrapy, 7, &[]);
    check_left_out(Format::NutchFast, 5, &[(Ports, 2)]);
    check_left_out(Format::StormCrawlerFast, 5, &[(Ports, 2)]);
    check_left_out(Format::Heritrix, 5, &[(BeginningsOnly, 1), (UnusualHost, 1)]);
    check_left_out(Format::Prefixes, 6, &[(BeginningsOnly, 1)]);
    check_left_out(Format::Urls, 2, &[(SingleAddressesOnly, 7)]);
    check_left_out(Format::Hosts, 3, &[(WholeHostsOnly, 4), (Ports, 2)]);
    check_left_out(Format::NutchDomainDeny, 2, &[(WholeHostsOnly, 4), (Ports, 2), (Subdomains, 1)]);
    assert!(Ports.to_string().contains("ports"));
}

#[test]
fn nothing_that_people_wrote_makes_a_line() {
    let mut list = sample();
    list.tool = Some("x\n+.".to_owned());
    for entry in &mut list.entries {
        entry.kind = "mirror\r\n-.\u{2028}\u{85}é".to_owned();
        entry.principal = "http://kept.example/\n+http://(\nHost a\n\tDenyPath .*".to_owned();
        entry.name = "\n+.".to_owned();
    }
    for format in Format::ALL {
        if !matches!(format, Format::Csv | Format::Json) {
            let text = format.render(&list).unwrap().text;
            let plain: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
            let expected = rendered(format, &sample());
            if format != Format::Scrapy {
                assert_eq!(plain, expected.lines().collect::<Vec<_>>(), "{format}");
            }
            assert!(text.is_ascii(), "{format}");
        }
    }
}

#[test]
fn formats_go_by_their_names() {
    let files: HashSet<&str> = Format::ALL.iter().map(|format| format.file_name()).collect();
    assert_eq!(files.len(), Format::ALL.len());
    for format in Format::ALL {
        assert_eq!(format.to_string().parse(), Ok(format));
    }
    let error = "nutch".parse::<Format>().unwrap_err().to_string();
    assert!(error.starts_with("unknown format \"nutch\"; known are nutch-fast, nutch-regex, "), "{error}");
}

/// Hosts that look like each other, or like a regular expression, or whose SURTs do.
const HOSTS: &[&str] = &[
    "www.example.org",
    "wwwxexample.org",
    "www.example.org.evil.com",
    "sub.www.example.org",
    "example.org",
    "WWW.Example.ORG.",
    "a+b.example",
    "aab.example",
    "a$b(c.example",
    "a*.example",
    "a,b.example",
    "b.a.example",
    "'q'.example",
    "\"q\".example",
    "{x}~&;.example",
    "bücher.example",
    "xn--bcher-kva.example",
    "ＷＷＷ.example",
    "127.0.0.1",
    "127.0.0.10",
    "[2001:db8::1]",
    "[2001:db8::10]",
    "localhost",
    "co.uk",
    "www.host.co.uk",
];

const SEGMENTS: &[&str] = &[
    "m", "m", "m", "M", "mm", "m.n", "mxn", "m+", "(m)", "[m]", "^m$", "m|n", "{1}", ".*", "%2F", "%6d",
    "%c3%a9", "é", "漢字", "\u{202e}", "\u{85}", "it's", "\"", "a\nb", "\t", "\\", "~", "", ".", "..", " ",
    "-", "+.", "#", "%0A", "%", "$", "&amp;", ",", "<b>",
];

const QUERIES: &[&str] = &[
    "",
    "",
    "",
    "?",
    "?x=1",
    "?x=1&y=2",
    "?u=/m/m/",
    "?u=http://www.example.org/m/",
    "?'\"\\",
    "?é\n",
    "?a$",
    "?|^{}",
];

const PORTS: &[&str] = &["", "", "", "", ":80", ":443", ":8080"];

const USERS: &[&str] = &["", "", "", "", "", "", "", "", "", "", "", "me@"];

/// An address in its normalised spelling, of anything but that.
fn any_url(hosts: std::ops::Range<usize>) -> impl Strategy<Value = Option<String>> {
    let place = (any::<bool>(), hosts, 0..PORTS.len(), 0..USERS.len());
    let path = prop::collection::vec(0..SEGMENTS.len(), 0..5);
    (place, path, 0..QUERIES.len()).prop_map(|((https, host, port, user), path, query)| {
        let scheme = if https { "https" } else { "http" };
        let path: String = path.iter().map(|&n| format!("/{}", SEGMENTS[n])).collect();
        let (host, port, user) = (HOSTS[host], PORTS[port], USERS[user]);
        normalize(&format!("{scheme}://{user}{host}{port}{path}{}", QUERIES[query]))
    })
}

fn entry_of(made: super::super::HostRules) -> AvoidEntry {
    let mut entry = entry("h", &[], made.copies);
    entry.host = made.host;
    entry.rules = made.rules;
    entry.other_ports = made.other_ports;
    entry
}

/// What the rules made of a crawl do in every crawler.
fn check_crawl(known: &[(String, PageRole)], probes: &[String]) -> Result<(), TestCaseError> {
    let pages = known.iter().map(|(url, role)| KnownPage { url, role: *role });
    let made = rules_for(pages, &RuleLimits::default());
    prop_assert_eq!(made.unreadable, 0);
    let list = list(made.hosts.into_iter().map(entry_of).collect());
    let matcher = Matcher::new(&list);
    let known_places: HashSet<String> = known.iter().map(|(url, _)| place_of(url).0).collect();
    let known_hosts: HashSet<&str> = known.iter().filter_map(|(url, _)| site(url)).collect();
    for format in Format::ALL {
        let rendered = format.render(&list).unwrap();
        let Some(crawler) = Crawler::read(format, &rendered.text) else { continue };
        // To Heritrix `a,b.example` is `b.a.example`. The name system has no commas, so it is the
        // only one that can be meant.
        let cannot_be = |url: &str| format == Format::Heritrix && site(url).unwrap().contains(',');
        for (url, role) in known.iter().filter(|(url, _)| !cannot_be(url)) {
            // The law above all others.
            prop_assert!(
                *role != PageRole::Outside || !crawler.skips(url),
                "{format} skips {url}\n{}",
                rendered.text
            );
        }
        for url in known.iter().map(|(url, _)| url).chain(probes).filter(|url| !cannot_be(url)) {
            let (place, has_user) = place_of(url);
            let hit = |url: &str| {
                matcher.all(url).iter().any(|hit| {
                    let entry = &list.entries[hit.entry];
                    let kind = match entry.rules[hit.rule] {
                        SkipRule::Host => RuleKind::Host,
                        SkipRule::Prefix(_) => RuleKind::Prefix,
                        SkipRule::Exact(_) => RuleKind::Exact,
                    };
                    format.refuses(&entry.host, entry.other_ports, kind).is_none()
                })
            };
            let (expected, found) = (hit(url), crawler.skips(url));
            let host = site(url).unwrap();
            let blind = matches!(
                format,
                Format::NutchFast | Format::NutchDomainDeny | Format::StormCrawlerFast | Format::Hosts
            );
            // Crawlers that look at the host alone see neither user nor port. On a port that the
            // crawl has never seen they skip what they would on the default one.
            let as_seen = if blind && (has_user || !known_places.contains(&place)) {
                let path = url.splitn(4, '/').nth(3).unwrap();
                hit(&format!("http://{host}/{path}"))
            } else if format == Format::Heritrix && !expected {
                // Heritrix does not look at case either.
                list.entries.iter().any(|entry| {
                    let path = format!("/{}", url.splitn(4, '/').nth(3).unwrap()).to_lowercase();
                    entry.host.as_str() == place
                        && !has_user
                        && format.refuses(&entry.host, entry.other_ports, RuleKind::Prefix).is_none()
                        && entry.rules.iter().any(|rule| {
                            matches!(rule, SkipRule::Prefix(prefix) if path.starts_with(&prefix.as_str().to_lowercase()))
                        })
                })
            } else {
                expected
            };
            prop_assert_eq!(found, as_seen, "{} of {}\n{}", format, url, rendered.text);
            prop_assert!(
                !found || known_hosts.contains(host),
                "{format} skips a host it does not know: {url}"
            );
        }
    }
    Ok(())
}

/// Host and port without the default one, and whether there is a user.
fn place_of(url: &str) -> (String, bool) {
    let authority = url.split('/').nth(2).unwrap();
    let (has_user, place) = authority.rsplit_once('@').map_or((false, authority), |(_, place)| (true, place));
    (place.to_owned(), has_user)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn crawlers_skip_what_the_list_says(
        urls in prop::collection::vec((any_url(0..HOSTS.len()), any::<u8>()), 1..20),
        probes in prop::collection::vec(any_url(0..HOSTS.len()), 1..20),
        below_m in any::<bool>(),
        host_rules in prop::collection::vec(any::<bool>(), HOSTS.len()),
    ) {
        let hosts: HashSet<String> = HOSTS
            .iter()
            .zip(host_rules)
            .filter(|(_, in_replica)| *in_replica)
            .filter_map(|(host, _)| normalize(&format!("http://{host}/")).and_then(|url| site(&url).map(str::to_owned)))
            .collect();
        let known: Vec<(String, PageRole)> = urls
            .into_iter()
            .filter_map(|(url, n)| {
                let url = url?;
                let in_replica = hosts.contains(site(&url)?) && (!below_m || url.contains("/m/"));
                let role = match n {
                    0..8 => PageRole::Outside,
                    8..12 => PageRole::Unique,
                    12..16 => PageRole::Copy,
                    _ if in_replica => PageRole::Copy,
                    _ => PageRole::Outside,
                };
                Some((url, role))
            })
            .collect();
        check_crawl(&known, &probes.into_iter().flatten().collect::<Vec<_>>())?;
    }

    /// Few hosts, so that there are directories.
    #[test]
    fn crawlers_skip_directories_and_no_more(
        first in 0..HOSTS.len() - 1,
        urls in prop::collection::vec((any_url(0..2), 0..20u8), 1..40),
        probes in prop::collection::vec(any_url(0..2), 1..40),
    ) {
        // The two hosts in the place of the two that the addresses were made with.
        let moved = |url: &str| {
            let (from, to) = if url.contains("wwwxexample") { (HOSTS[1], HOSTS[first + 1]) } else { (HOSTS[0], HOSTS[first]) };
            normalize(&url.replacen(from, to, 1))
        };
        let known: Vec<(String, PageRole)> = urls
            .iter()
            .filter_map(|(url, n)| {
                let url = moved(url.as_deref()?)?;
                let role = match n {
                    0 => PageRole::Outside,
                    1 => PageRole::Unique,
                    _ if url.contains("/m/") => PageRole::Copy,
                    2..5 => PageRole::Copy,
                    _ => PageRole::Outside,
                };
                Some((url, role))
            })
            .collect();
        let probes: Vec<String> = probes.iter().flatten().filter_map(|url| moved(url)).collect();
        check_crawl(&known, &probes)?;
    }

    /// Rules are made of normalised addresses, whatever they were before.
    #[test]
    fn every_normalised_address_has_a_rule(url in any_url(0..HOSTS.len()), text in any::<String>()) {
        let anything = normalize(&format!("http://h.example/{text}"));
        for url in url.into_iter().chain(anything) {
            let (place, _) = place_of(&url);
            let path = format!("/{}", url.splitn(4, '/').nth(3).unwrap());
            prop_assert!(RuleHost::new(&place).is_ok(), "{url}");
            prop_assert!(SkipRule::exact(&path).is_ok(), "{url}");
            let directory = &path[..=path.split('?').next().unwrap().rfind('/').unwrap()];
            prop_assert!(SkipRule::prefix(directory).is_ok(), "{url}");
        }
    }
}
