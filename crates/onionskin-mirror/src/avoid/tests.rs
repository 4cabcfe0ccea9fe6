use super::*;

/// An entry with rules written as `*` for the host, `/a/*` for a directory, and anything else for
/// one address.
pub(super) fn entry(host: &str, rules: &[&str], pages: u64) -> AvoidEntry {
    let rule = |text: &&str| match text.strip_suffix('*') {
        Some("") => SkipRule::Host,
        Some(directory) => SkipRule::prefix(directory).unwrap(),
        None => SkipRule::exact(text).unwrap(),
    };
    AvoidEntry {
        group: CollectionId(1),
        replica: ReplicaId(2),
        kind: "mirror".to_owned(),
        name: "A manual".to_owned(),
        principal: "http://kept.example/".to_owned(),
        principal_reason: Some("links".to_owned()),
        principal_evidence: Some("3 domains link to it".to_owned()),
        root: format!("http://{host}/"),
        host: RuleHost::new(host).unwrap(),
        other_ports: false,
        rules: rules.iter().map(rule).collect(),
        pages,
        bytes: 1000 * pages,
        coverage: 1.0,
        similar: pages,
        unique: 0,
        checked: None,
    }
}

pub(super) fn list(entries: Vec<AvoidEntry>) -> AvoidList {
    AvoidList { tool: Some("onionskin test".to_owned()), entries, ..AvoidList::default() }
}

#[test]
fn hosts_are_in_their_normalised_spelling() {
    for good in [
        "example.org",
        "a_b.example",
        "127.0.0.1",
        "[2001:db8::1]",
        "[::1]:8080",
        "h:0",
        "a$b(c).example",
        "h:443",
    ] {
        assert!(RuleHost::new(good).is_ok(), "{good}");
    }
    for bad in [
        "",
        "Example.org",
        "a b",
        "a\nb",
        "bücher.example",
        "a/b",
        "u@h",
        "h:",
        "h:08",
        "h:65536",
        "h:x",
        "[::1",
        "[::1]x",
        "a#b",
        "a:1:2",
        "%41",
        "[]",
        "::1",
    ] {
        assert!(RuleHost::new(bad).is_err(), "{bad}");
    }
    let host = RuleHost::new("[::1]:8080").unwrap();
    assert_eq!((host.name(), host.port()), ("[::1]", Some(8080)));
}

#[test]
fn the_host_of_an_address() {
    let of = |url| RuleHost::of_url(url).map(|host| host.to_string());
    assert_eq!(of("https://example.org:443/a").as_deref(), Some("example.org"));
    assert_eq!(of("http://example.org:443/a").as_deref(), Some("example.org:443"));
    assert_eq!(of("http://user@example.org/"), None);
    assert_eq!(of("ftp://example.org/"), None);
}

#[test]
fn paths_are_in_their_normalised_spelling() {
    for good in
        ["/", "/a.html", "/a?b", "/?", "/%C3%A9/", "/a'b", "/a?\\{`}|^", "/[x]|^", "//", "/...", "/a?/../"]
    {
        assert!(SkipRule::exact(good).is_ok(), "{good}");
    }
    for bad in [
        "", "a", "/a b", "/a\n", "/é", "/%c3", "/%41", "/%", "/%4", "/a#b", "/\"", "/<", "/`", "/{", "/a?'",
        "/\\", "/../a", "/a/..", "/./", "/\u{7f}", "/a?\"",
    ] {
        assert!(SkipRule::exact(bad).is_err(), "{bad}");
    }
    assert!(SkipRule::prefix("/a").is_err());
    assert!(SkipRule::prefix("/a/?b/").is_err());
    assert_eq!(SkipRule::prefix("/"), Ok(SkipRule::Host));
}

#[test]
fn a_cap_keeps_the_entries_with_most_pages() {
    let mut capped = list(vec![
        entry("small.example", &["/a/*", "/b"], 5),
        entry("large.example", &["/x", "/y/*", "/z"], 100),
        entry("same.example", &["*"], 50),
    ]);
    let untouched = capped.clone();
    assert_eq!(capped.cap(6), Capped::default());
    assert_eq!(capped, untouched);
    assert_eq!(capped.cap(3), Capped { rules: 3, entries: 2, shortened: 0 });
    assert_eq!(capped.entries.iter().map(|entry| entry.host.as_str()).collect::<Vec<_>>(), ["large.example"]);
    let mut capped = untouched;
    assert_eq!(capped.cap(2), Capped { rules: 4, entries: 2, shortened: 1 });
    // Directories before single addresses.
    assert_eq!(capped.entries[0].rules, entry("h", &["/y/*", "/x"], 0).rules);
}

#[test]
fn a_cap_counts_a_rule_of_two_entries_once() {
    let mut capped = list(vec![entry("a.example", &["/a/*", "/a/*"], 5), entry("a.example", &["/a/*"], 4)]);
    assert_eq!(capped.n_rules(), 1);
    assert_eq!(capped.cap(1), Capped::default());
    assert_eq!(capped.entries.len(), 2);
}

#[test]
fn what_is_kept_is_spared_by_every_rule() {
    let mut spared = list(vec![
        entry("a.example", &["*"], 5),
        entry("a.example", &["/a/*", "/b"], 5),
        entry("b.example", &["*"], 5),
    ]);
    assert_eq!(spared.spare(["http://c.example/"]), 0);
    assert_eq!(spared.spare(["https://a.example/a/x"]), 2);
    assert_eq!(spared, list(vec![entry("a.example", &["/b"], 5), entry("b.example", &["*"], 5)]));
}
