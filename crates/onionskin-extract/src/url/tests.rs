use super::*;
use proptest::prelude::*;

#[track_caller]
fn check_normal(url: &str, expected: &str) {
    assert_eq!(normalize(url).as_deref(), Some(expected), "{url}");
}

#[test]
fn addresses_have_one_spelling() {
    check_normal("HTTP://EXAMPLE.org", "http://example.org/");
    check_normal("http://example.org:80/", "http://example.org/");
    check_normal("https://example.org:443/", "https://example.org/");
    check_normal("http://example.org:443/", "http://example.org:443/");
    check_normal("http://example.org/a/./b/../c/%2e%2E/d", "http://example.org/a/d");
    check_normal("http://example.org/%7e%41%2d%2f%c3%a9?%61=%2b", "http://example.org/~A-%2F%C3%A9?a=%2B");
    check_normal("http://example.org/é b", "http://example.org/%C3%A9%20b");
    check_normal("http://example.org/a#b", "http://example.org/a");
    check_normal("http://example.org/?", "http://example.org/?");
    check_normal("http://bücher.example/", "http://xn--bcher-kva.example/");
    check_normal("http://0x7f.1/", "http://127.0.0.1/");
    check_normal("http:\\\\example.org\\a", "http://example.org/a");
    check_normal("http://example.org/%%34%31%", "http://example.org/%2541%25");
    check_normal("  http://example.org/a\n", "http://example.org/a");
}

#[test]
fn what_is_no_web_address_has_none() {
    for url in [
        "",
        "a",
        "/a",
        "mailto:a@b",
        "ftp://a.org/",
        "http://",
        "http:///",
        "javascript:1",
        "http://[::1",
        "data:,a",
    ] {
        assert_eq!(normalize(url), None, "{url}");
    }
    assert_eq!(normalize(&format!("http://example.org/{}", "a".repeat(MAX_URL_BYTES))), None);
}

#[test]
fn references_are_joined() {
    for (reference, expected) in [
        ("c", "http://example.org/a/c"),
        ("/c", "http://example.org/c"),
        ("//Other.org/c", "http://other.org/c"),
        ("?q", "http://example.org/a/b?q"),
        ("../../c", "http://example.org/c"),
        ("HTTPS://other.org", "https://other.org/"),
    ] {
        assert_eq!(join("http://example.org/a/b", reference).as_deref(), Some(expected), "{reference}");
    }
    assert_eq!(join("http://example.org/", "mailto:a"), None);
    assert_eq!(join("nothing", "a"), None);
}

#[test]
fn the_site_is_the_host() {
    assert_eq!(site("https://user:pw@example.org:8080/a@b:c"), Some("example.org"));
    assert_eq!(site("http://[2001:db8::1]:80/"), Some("[2001:db8::1]"));
    assert_eq!(site("http://example.org?q"), Some("example.org"));
    assert_eq!(site("ftp://example.org/"), None);
    assert_eq!(site("http:///a"), None);
}

#[test]
fn someone_registered_part_of_the_host() {
    assert_eq!(registered_domain("www.example.co.uk"), Some("example.co.uk"));
    assert_eq!(registered_domain("example.org."), Some("example.org"));
    for host in ["127.0.0.1", "[::1]", "::1", "localhost", "co.uk", "org", ""] {
        assert_eq!(registered_domain(host), None, "{host}");
    }
}

#[test]
fn mirrored_trees_have_addresses() {
    for (path, expected) in [
        ("example.org/index.html", Some("http://example.org/index.html")),
        ("./Example.org/a/b%20c.html", Some("http://example.org/a/b%20c.html")),
        ("example.org/a#b?c=é", Some("http://example.org/a%23b?c=%C3%A9")),
        ("example.org:8080/a", Some("http://example.org:8080/a")),
        ("example.org_8080/a", Some("http://example.org:8080/a")),
        ("localhost/a", Some("http://localhost/a")),
        ("localhost+81/a", Some("http://localhost:81/a")),
        ("10.0.0.1/a", Some("http://10.0.0.1/a")),
        ("docs/index.html", None),
        ("v1.2/index.html", None),
        ("archive.zip/a", None),
        ("example.org", None),
        ("/example.org/a", None),
        ("../example.org/a", None),
        ("example.org/../a", None),
        ("a..org/b", None),
        (".hidden/b", None),
        ("example.org_99999/a", None),
    ] {
        assert_eq!(from_tree_path(Path::new(path)).as_deref(), expected, "{path}");
    }
}

#[test]
fn keys_are_those_of_the_python_package() {
    let pairs = include_str!("../../testdata/surt.tsv");
    let mut checked = 0;
    let mut wrong = Vec::new();
    for line in pairs.lines().filter(|line| !line.starts_with('#')) {
        let (url, key) = line.split_once('\t').unwrap();
        if cdx_key(url).as_deref() != Some(key) {
            wrong.push(format!("{url}: {:?}, not {key}", cdx_key(url)));
        }
        checked += 1;
    }
    assert!(checked >= 60);
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn keys_of_nothing_are_none() {
    for url in ["", "  ", "http://example.org:port/", "http://example.org:99999/"] {
        assert_eq!(cdx_key(url), None, "{url}");
    }
}

#[test]
fn crawlers_have_their_own_form() {
    for (url, expected) in [
        ("http://www.archive.org/Movies#x", "http://(org,archive,www,)/Movies"),
        ("https://www.example.org/mirror/", "http://(org,example,www,)/mirror/"),
        ("http://user@example.org:8080/", "http://(org,example,:8080@user)/"),
        ("http://127.0.0.1/a", "http://(127.0.0.1)/a"),
        ("http://[::1]:81/a", "http://([::1]:81)/a"),
    ] {
        assert_eq!(heritrix_surt(url).as_deref(), Some(expected), "{url}");
    }
    assert_eq!(heritrix_surt("ftp://a.org/"), None);
}

#[test]
fn common_addresses_are_plainly_normal() {
    for url in [
        "http://www.nilneas28.de/index.html",
        "https://a.example/",
        "http://a-b.example.org/x/y?q=1&r=2:3",
        "http://1.a/",
    ] {
        assert!(is_plainly_normal(url), "{url}");
    }
    for url in [
        "http://a.example",
        "http://a.example/../b",
        "http://a.example/b#c",
        "http://1.2.3.4/",
        "http://a.0x7/",
        "http://A.example/",
        "http://a..example/",
        "http://a.example./",
        "http://xn--a.example/",
        "http://a.example/%7e",
        "ftp://a.example/",
        "http:///a",
        "http://a.example:80/",
        "http://u@a.example/",
        "http://a.example/b c",
    ] {
        assert!(!is_plainly_normal(url), "{url}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_normal_form_is_its_own(path in "[a-zA-Z0-9%/.?&=;:@~\\\\ é+-]{0,40}", host in "[a-zA-Z0-9.-]{1,12}") {
        if let Some(once) = normalize(&format!("http://{host}/{path}")) {
            prop_assert_eq!(normalize(&once), Some(once.clone()));
            prop_assert!(site(&once).is_some());
            prop_assert!(heritrix_surt(&once).is_some());
        }
    }

    /// The quick way agrees with the parser wherever it is taken.
    #[test]
    fn what_is_plainly_normal_is_normal(
        scheme in "https?://|HTTP://|ftp://", host in "([a-z0-9]{1,4}[.-]?|xn--a|0x|_|A|1\\.){0,4}",
        path in "(/|[a-zA-Z0-9]{1,3}|[-_~!$&()*+,;=:@.?'#%|\\\\{}^\"<> é]){0,12}",
    ) {
        for url in [format!("{scheme}{host}/{path}"), format!("{scheme}{host}{path}")] {
            if is_plainly_normal(&url) {
                prop_assert_eq!(Url::parse(&url).ok().and_then(finish), Some(url));
            }
        }
    }

    #[test]
    fn no_address_is_too_strange(url in "\\PC{0,48}") {
        let _ = (normalize(&url), join(&url, &url), site(&url), registered_domain(&url), cdx_key(&url), heritrix_surt(&url));
        let _ = from_tree_path(Path::new(&url));
    }
}
