//! Pages made to hurt. Each is extracted once for what comes out, and those that could cost more
//! than their size at two sizes, for how the time grows.

use super::*;
use rustix::time::{ClockId, clock_gettime};

fn extract(html: &[u8]) -> Page {
    let mut page = Page::default();
    HtmlExtractor::new().extract(html, &Hints { url: Some("http://example.org/"), charset: None }, &mut page);
    page
}

fn cpu_seconds(html: &[u8]) -> f64 {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let begin = now();
    extract(html);
    now() - begin
}

/// Four times the page takes four times as long; sixteen would be quadratic. Noise is allowed for
/// generously.
#[track_caller]
fn check_linear(make: impl Fn(usize) -> String, n: usize) {
    let (small, large) = (make(n), make(4 * n));
    let best = |html: &str| (0..3).map(|_| cpu_seconds(html.as_bytes())).fold(f64::MAX, f64::min);
    let (small, large) = (best(&small), best(&large));
    assert!(large < 10.0 * small + 0.02, "{small} s, and {large} s for four times as much");
}

#[test]
fn deep_nesting() {
    for open in [
        "<div>",
        "<b>",
        "<table><tr><td>",
        "<a><b></a>",
        "<ul><li>",
        "<p><div hidden>",
        "<x-y hidden>",
        "<svg>",
    ] {
        let html = format!("{}text", open.repeat(100_000));
        let page = extract(html.as_bytes());
        let hidden = open.contains("hidden") || open.contains("svg");
        assert_eq!(page.text, if hidden { "" } else { "text" }, "{open}");
        check_linear(|n| open.repeat(n), 10_000);
    }
}

#[test]
fn many_end_tags_inside_something_hidden() {
    check_linear(
        |n| format!("<div hidden>{}{}", "<i>".repeat(200), "</p></li><li><td><p></b>".repeat(n)),
        5_000,
    );
}

#[test]
fn many_attributes() {
    let attributes = |n: usize| (0..n).map(|i| format!(" a{i}=b")).collect::<String>();
    let page = extract(format!("<a{} href=x>y", attributes(200_000)).as_bytes());
    assert_eq!((page.text.as_str(), page.links.len()), ("y", 1));
    check_linear(|n| format!("<a{}>", attributes(n)), 20_000);
    check_linear(|n| format!("<a{}>", " href=x".repeat(n)), 20_000);
    check_linear(|n| format!("<a style='{}'>", ";:".repeat(n)), 20_000);
}

#[test]
fn one_huge_text() {
    let html = "x ".repeat(25_000_000);
    assert_eq!(extract(html.as_bytes()).text.len(), html.len() - 1);
}

#[test]
fn things_that_never_end() {
    let filler = "a < b & c > d -- </ ".repeat(10_000);
    for (open, text) in [
        ("<!--", ""),
        ("<a href='", ""),
        ("<a ", ""),
        ("<script>", ""),
        ("<style>", ""),
        ("<title>", ""),
        ("<!doctype ", ""),
    ] {
        let html = format!("before{open}{}", filler.replace('>', ""));
        assert_eq!(extract(html.as_bytes()).text, format!("before{text}"), "{open}");
        check_linear(|n| open.repeat(n), 10_000);
        check_linear(|n| format!("{open}{}", "</x".repeat(n)), 10_000);
        check_linear(|n| format!("{open}{}", "-".repeat(n)), 10_000);
        check_linear(|n| format!("{open}{}", "<!--<script".repeat(n)), 10_000);
    }
    assert!(extract(format!("<title>{filler}").as_bytes()).title.len() <= 16 << 10);
}

#[test]
fn millions_of_references() {
    assert_eq!(extract("&lt;".repeat(1_000_000).as_bytes()).text.len(), 1_000_000);
    assert_eq!(extract("&nGt;".repeat(100_000).as_bytes()).text, "≫⃒".repeat(100_000));
    for reference in ["&", "&a", "&#", "&#x", "&#9", "&CounterClockwiseContourIntegra"] {
        check_linear(|n| reference.repeat(n), 10_000);
    }
}

#[test]
fn bytes_that_are_no_text() {
    assert_eq!(extract(b"a\0b\x01\x02\x7f\xc2\x85c").text, "abc");
    assert_eq!(extract("a\u{ad}b\u{85}c\u{a0}\u{a0}d".as_bytes()).text, "abc d");
    let page = extract(b"<meta charset=utf-8>a\xff\xfe\xc3b");
    assert_eq!(page.text, "a\u{fffd}\u{fffd}\u{fffd}b");
    fuzz_html(&(0..=255).cycle().take(100_000).collect::<Vec<u8>>());
}

#[test]
fn a_million_less_than_signs() {
    assert_eq!(extract("<".repeat(1_000_000).as_bytes()).text.len(), 1_000_000);
    check_linear(|n| "<".repeat(n), 50_000);
    check_linear(|n| "</".repeat(n), 50_000);
    check_linear(|n| "<!".repeat(n), 50_000);
}

#[test]
fn more_links_than_anyone_needs() {
    let links = |n: usize| (0..n).map(|i| format!("<a href=/p{i}>")).collect::<String>();
    let page = extract(links(100_010).as_bytes());
    assert_eq!(page.links.len(), builder::MAX_LINKS);
    assert_eq!(page.links[99_999], "http://example.org/p99999");
    assert_eq!(page.links_over_limit, 10);
    check_linear(links, 5_000);
    check_linear(|n| format!("<base href='/{}'>{}", "a/".repeat(100), "<a href=../b>".repeat(n)), 5_000);
}

#[test]
fn long_addresses_are_no_links() {
    let html = format!("<a href='data:{0}'><a href='http://x.org/{0}'><a href=/ok>", "x".repeat(1 << 20));
    assert_eq!(extract(html.as_bytes()).links, ["http://example.org/ok"]);
}

#[test]
fn the_product_of_base_and_links_is_bounded() {
    // A long base before many short links would be a page of gigabytes.
    let base = "a/".repeat(30_000);
    let links: String = (0..20_000).map(|i| format!("<a href=b{i}>")).collect();
    let page = extract(format!("<base href='/{base}'>{links}").as_bytes());
    let bytes: usize = page.links.iter().map(String::len).sum();
    assert!(bytes < 64 << 20, "{bytes} bytes of links");
    assert_eq!(page.links.len() as u64 + page.links_over_limit, 20_000);
}
