use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Pages written as `+url` for a copy, `~url` for a page of the replica that is none, `-url` for
/// anything else.
fn known(text: &str) -> Vec<KnownPage<'_>> {
    text.split_whitespace()
        .map(|word| {
            let role = match word.as_bytes()[0] {
                b'+' => PageRole::Copy,
                b'~' => PageRole::Unique,
                b'-' => PageRole::Outside,
                _ => panic!("{word}"),
            };
            KnownPage { url: &word[1..], role }
        })
        .collect()
}

/// Rules written as in lists: `h *`, `h /a/*`, `h /page`.
fn show(made: &MadeRules) -> String {
    let mut words = Vec::new();
    for host in &made.hosts {
        for rule in &host.rules {
            let path = match rule {
                SkipRule::Host => "*".to_owned(),
                SkipRule::Prefix(prefix) => format!("{}*", prefix.as_str()),
                SkipRule::Exact(exact) => exact.as_str().to_owned(),
            };
            words.push(format!("{} {path}", host.host));
        }
    }
    words.join(", ")
}

#[track_caller]
fn check(pages: &str, expected: &str) {
    let made = rules_for(known(pages), &RuleLimits::default());
    assert_eq!(show(&made), expected, "{made:?}");
}

#[test]
fn the_largest_pure_directories_are_rules() {
    check("+http://h/ +http://h/a/b +http://h/c", "h *");
    check("-http://h/ +http://h/a/b +http://h/a/c/d", "h /a/*");
    check(
        "-http://h/a/ +http://h/a/b/1 +http://h/a/b/2 +http://h/a/c/3 +http://h/a/c/d/4",
        "h /a/b/*, h /a/c/*",
    );
    check("-http://h/x +http://h/y +http://h/z?q=1", "h /y, h /z?q=1");
}

#[test]
fn no_rule_is_wider_than_the_directory_of_the_replica() {
    check("+http://h/wiki/1 +http://h/wiki/2", "h /wiki/*");
    check("+http://h/a/wiki/1 +http://h/a/wiki/x/2", "h /a/wiki/*");
    // What is known of the host may be little of it, wherever that is.
    check("+http://h/wiki/1 +http://h/wiki/2 +http://h/help/1 +http://h/help/2", "h /help/*, h /wiki/*");
    check("+http://h/1 +http://h/2", "h /1, h /2");
    check("+http://h/wiki/1 +http://h/wiki-x/2", "h /wiki-x/2, h /wiki/1");
    // With its root page a replica is the host.
    check("+http://h/ +http://h/wiki/1", "h *");
    check("+http://h/index.html +http://h/wiki/1", "h *");
    check("+http://h/?q +http://h/wiki/1", "h /?q, h /wiki/1");
    check("+http://h/wiki/ +http://h/wiki/1", "h /wiki/*");
}

#[test]
fn one_page_makes_no_directory() {
    check("+http://h/", "h /");
    check("-http://h/ +http://h/a/b/c/", "h /a/b/c/");
    check("-http://h/ +http://h/a/1 +https://h/a/1", "h /a/1");
}

#[test]
fn queries_are_no_directories() {
    check("-http://h/a?u=/x/ +http://h/a?v=/x/1 +http://h/a?v=/x/2", "h /a?v=/x/1, h /a?v=/x/2");
    check("-http://h/ +http://h/d/?a +http://h/d/?b", "h /d/*");
    // The page `/d` is not in the directory `/d/`.
    check("-http://h/d +http://h/d/1 +http://h/d/2", "h /d/*");
}

#[test]
fn pages_that_are_no_copies_may_be_few() {
    let copies: String = (0..9).map(|n| format!("+http://h/m/{n} ")).collect();
    check(&format!("{copies} -http://h/ ~http://h/m/u"), "h /m/*");
    // Two in eleven are too many, and what is left is named one by one.
    let made =
        rules_for(known(&format!("{copies} -http://h/ ~http://h/m/u ~http://h/m/v")), &RuleLimits::default());
    assert_eq!(made.hosts[0].rules.len(), 9);
    assert_eq!((made.hosts[0].copies, made.hosts[0].unique, made.hosts[0].uncovered), (9, 0, 0));
}

#[test]
fn http_and_https_are_one() {
    check("+http://h/a/1 +http://h/a/2 -https://h/a/3 -https://h/", "h /a/1, h /a/2");
    // The same path is a copy on one and something else on the other: no rule can tell them apart.
    let made = rules_for(known("+http://h/1 -https://h/1"), &RuleLimits::default());
    assert_eq!((show(&made).as_str(), made.hosts[0].uncovered), ("", 1));
    let made = rules_for(known("-http://h/ +http://h/1 ~https://h/1"), &RuleLimits::default());
    assert_eq!((show(&made).as_str(), made.hosts[0].uncovered), ("", 1));
}

#[test]
fn ports_are_hosts_of_their_own() {
    let made = rules_for(
        known(
            "+http://h/ +http://h/b -http://h:8080/ +http://h-x/ +http://h-x/b +https://h:80/ +https://h:80/2",
        ),
        &RuleLimits::default(),
    );
    assert_eq!(show(&made), "h *, h-x *, h:80 *");
    let ports: Vec<bool> = made.hosts.iter().map(|host| host.other_ports).collect();
    assert_eq!(ports, [true, false, true]);
}

#[test]
fn case_does_not_make_room() {
    // Heritrix would skip /docs/ along with /Docs/.
    check("-http://h/docs/x +http://h/Docs/1 +http://h/Docs/2", "h /Docs/1, h /Docs/2");
    check(
        "-http://h/ +http://h/Docs/1 +http://h/docs/2 +http://h/docs/3 +http://h/Docs/4",
        "h /Docs/*, h /docs/*",
    );
}

#[test]
fn what_has_no_rule_is_counted() {
    let pages = [
        ("http://h/b", PageRole::Copy),
        ("http://h/ü", PageRole::Copy),
        ("http://user@h/c", PageRole::Copy),
        ("http://h/x", PageRole::Outside),
        ("mailto:x", PageRole::Copy),
        ("http://H/", PageRole::Copy),
    ];
    let made = rules_for(pages.map(|(url, role)| KnownPage { url, role }), &RuleLimits::default());
    assert_eq!(show(&made), "h /b");
    assert_eq!((made.hosts[0].uncovered, made.unreadable), (2, 2));
}

#[test]
fn an_address_with_a_user_is_spared_too() {
    check("-http://user@h/m/x +http://h/m/1 +http://h/m/2", "h /m/1, h /m/2");
}

#[test]
fn a_directory_that_is_blocked_is_cut_further() {
    let pages = known("+http://h/a/1 +http://h/a/2 +http://h/a/b/3 +http://h/a/b/4");
    let spots: Vec<Spot<'_>> = pages
        .iter()
        .zip(1..)
        .map(|(page, n)| Spot {
            path_and_query: &page.url["http://h".len()..],
            copies_until: n,
            unique_until: 0,
            only_copies: true,
        })
        .collect();
    let mut blocked = Blocked::default();
    let rules = |blocked: &Blocked| cut(&spots, 1, blocked, &RuleLimits::default());
    assert_eq!(rules(&blocked), [SkipRule::Host]);
    blocked.block("/");
    assert_eq!(rules(&blocked), [SkipRule::prefix("/a/").unwrap()]);
    blocked.block("/a/");
    blocked.block_exact("/a/2");
    assert_eq!(rules(&blocked), [SkipRule::prefix("/a/b/").unwrap(), SkipRule::exact("/a/1").unwrap()]);
}

#[test]
fn paths_as_deep_as_they_are_long_are_cut_too() {
    let deep = format!("http://h{}", "/a".repeat(30_000));
    let beside = format!("{deep}/x");
    let pages = [(deep.as_str(), PageRole::Copy), (beside.as_str(), PageRole::Outside)];
    let made = rules_for(pages.map(|(url, role)| KnownPage { url, role }), &RuleLimits::default());
    assert_eq!(made.hosts[0].rules.len(), 1);
}

/// Every directory, tried by itself against every page; then the largest ones; then what they
/// leave.
fn naive_rules(pages: &[(String, PageRole)], limits: &RuleLimits) -> BTreeSet<String> {
    let path_of = |url: &str| url.split('?').next().unwrap().to_owned();
    let mut directories = BTreeSet::new();
    for (url, _) in pages {
        let path = path_of(url);
        directories.extend(path.match_indices('/').map(|(at, _)| path[..=at].to_owned()));
    }
    let own: Vec<String> =
        pages.iter().filter(|(_, role)| *role != PageRole::Outside).map(|(url, _)| url.clone()).collect();
    // Narrow enough: the whole host with its root page, else a directory that has all pages of the
    // replica in it only where no deeper one has.
    let is_narrow = |directory: &String| {
        let has_all = |directory: &String| own.iter().all(|url| path_of(url).starts_with(directory));
        let deeper = directories
            .iter()
            .any(|other| other != directory && other.starts_with(directory.as_str()) && has_all(other));
        own.iter().any(|url| url == "/") || (directory != "/" && !deeper)
    };
    let good = |directory: &String| {
        let below =
            |role| pages.iter().filter(|(url, r)| *r == role && path_of(url).starts_with(directory)).count();
        let outside = pages.iter().any(|(url, role)| {
            *role == PageRole::Outside && path_of(url).to_lowercase().starts_with(&directory.to_lowercase())
        });
        let (copies, unique) = (below(PageRole::Copy), below(PageRole::Unique));
        let in_replica = pages
            .iter()
            .filter(|(url, role)| *role != PageRole::Outside && path_of(url).starts_with(directory));
        let paths: BTreeSet<&String> = in_replica.map(|(url, _)| url).collect();
        !outside
            && is_narrow(directory)
            && copies > 0
            && paths.len() as u64 >= limits.min_pages
            && unique as f64 <= limits.max_unique * (copies + unique) as f64
    };
    let good: Vec<&String> = directories.iter().filter(|directory| good(directory)).collect();
    let mut rules: BTreeSet<String> = good
        .iter()
        .filter(|directory| !good.iter().any(|other| other != *directory && directory.starts_with(*other)))
        .map(|directory| format!("{directory}*"))
        .collect();
    for (url, role) in pages {
        let covered = rules
            .iter()
            .filter_map(|rule| rule.strip_suffix('*'))
            .any(|directory| path_of(url).starts_with(directory));
        let pure = pages.iter().all(|(other, role)| other != url || *role == PageRole::Copy);
        if *role == PageRole::Copy && pure && !covered {
            rules.insert(url.clone());
        }
    }
    rules
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn agrees_with_trying_every_directory(
        pages in prop::collection::vec(("(/[aAb]{0,1}){1,4}(\\?[a/]{0,2})?", 0..8u8), 1..24),
        split in 0..4u8,
        max_unique in prop::sample::select(vec![0.0, 0.1, 0.34, 1.0]),
        min_pages in 0..4u64,
    ) {
        let limits = RuleLimits { max_unique, min_pages };
        // Mirrors are directories: the first letter often says what a page is.
        let role = |path: &str, n: u8| match n {
            0 => PageRole::Outside,
            1 => PageRole::Unique,
            2 => PageRole::Copy,
            _ if split == 0 || path.starts_with("/a") => PageRole::Copy,
            _ => PageRole::Outside,
        };
        let pages: Vec<(String, PageRole)> = pages.iter().map(|(path, n)| (path.clone(), role(path, *n))).collect();
        let urls: Vec<String> = pages.iter().map(|(path, _)| format!("http://h{path}")).collect();
        let given = urls.iter().zip(&pages).map(|(url, (_, role))| KnownPage { url, role: *role });
        let made = rules_for(given, &limits);
        let found: BTreeSet<String> = made
            .hosts
            .iter()
            .flat_map(|host| &host.rules)
            .map(|rule| match rule {
                SkipRule::Host => "/*".to_owned(),
                SkipRule::Prefix(prefix) => format!("{}*", prefix.as_str()),
                SkipRule::Exact(exact) => exact.as_str().to_owned(),
            })
            .collect();
        prop_assert_eq!(&found, &naive_rules(&pages, &limits));
        // Order does not matter.
        let reversed = urls.iter().zip(&pages).rev().map(|(url, (_, role))| KnownPage { url, role: *role });
        prop_assert_eq!(&rules_for(reversed, &limits), &made);
        for host in &made.hosts {
            let copies = pages.iter().filter(|(_, role)| *role == PageRole::Copy).count() as u64;
            prop_assert_eq!(host.copies + host.uncovered, copies);
        }
    }
}
