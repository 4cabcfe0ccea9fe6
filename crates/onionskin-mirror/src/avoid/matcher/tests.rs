use super::super::tests::{entry, list};
use super::*;
use proptest::prelude::*;

fn check(list: &AvoidList, url: &str, expected: Option<(usize, usize)>) {
    let found = Matcher::new(list).find(url).map(|hit| (hit.entry, hit.rule));
    assert_eq!(found, expected, "{url}");
}

#[test]
fn the_most_special_rule_is_told() {
    let list = list(vec![
        entry("a.example", &["*"], 1),
        entry("a.example", &["/x/*", "/x/y/*", "/x/y/z?q=/a/"], 1),
        entry("b.example:8080", &["*"], 1),
    ]);
    check(&list, "http://a.example/", Some((0, 0)));
    check(&list, "https://a.example/x", Some((0, 0)));
    check(&list, "https://a.example/x/", Some((1, 0)));
    check(&list, "https://a.example/x/y/z", Some((1, 1)));
    check(&list, "https://a.example/x/y/z?q=/a/", Some((1, 2)));
    check(&list, "https://a.example/q?u=/x/y/", Some((0, 0)));
    check(&list, "http://b.example:8080/", Some((2, 0)));
    check(&list, "http://b.example/", None);
    check(&list, "http://b.example:80/", None);
    assert_eq!(Matcher::new(&list).all("http://a.example/x/y/").len(), 3);
}

#[test]
fn ports_users_and_other_hosts_are_not_meant() {
    let list = list(vec![entry("www.example.org", &["*"], 1), entry("h:443", &["*"], 1)]);
    check(&list, "http://www.example.org:80/", Some((0, 0)));
    check(&list, "https://www.example.org:443/", Some((0, 0)));
    check(&list, "http://www.example.org", Some((0, 0)));
    check(&list, "http://h:443/", Some((1, 0)));
    for other in [
        "http://www.example.org:8080/",
        "http://www.example.org:443/",
        "https://www.example.org:80/",
        "http://user@www.example.org/",
        "http://wwwxexample.org/",
        "http://sub.www.example.org/",
        "http://www.example.org.evil.com/",
        "http://example.org/",
        "http://evil.com/http://www.example.org/",
        "http://evil.com/@www.example.org/",
        "ftp://www.example.org/",
        "www.example.org",
        "https://h:443/",
        "",
    ] {
        check(&list, other, None);
    }
}

proptest! {
    #[test]
    fn agrees_with_trying_every_rule(
        rules in prop::collection::vec((0..3usize, "(/[ab]{0,2}){0,3}/", 0..3u8), 0..12),
        urls in prop::collection::vec((0..3usize, "(/[ab]{0,2}){1,5}(\\?[ab/]{0,2})?"), 1..20),
    ) {
        let hosts = ["h", "h:81", "g"];
        let entries = rules.iter().map(|(host, path, kind)| {
            let rule = match kind {
                0 => "*".to_owned(),
                1 => format!("{path}*"),
                _ => path.clone(),
            };
            // Doubled slashes and all: these are legal paths.
            entry(hosts[*host], &[&rule], 1)
        });
        let list = list(entries.collect());
        let matcher = Matcher::new(&list);
        for (host, path_and_query) in &urls {
            let path = path_and_query.split('?').next().unwrap();
            let naive = list.entries.iter().any(|entry| {
                entry.host.as_str() == hosts[*host]
                    && match &entry.rules[0] {
                        SkipRule::Host => true,
                        SkipRule::Prefix(prefix) => path.starts_with(prefix.as_str()),
                        SkipRule::Exact(exact) => exact.as_str() == path_and_query,
                    }
            });
            let url = format!("https://{}{path_and_query}", hosts[*host]);
            prop_assert_eq!(matcher.skips(&url), naive, "{}", url);
        }
    }
}
