#![allow(unused_qualifications, reason = "what askama writes has them")]

use super::*;

#[test]
fn only_web_addresses_are_links() {
    for url in ["http://a/", "https://a/b?c=%20#d", "HTTP://A/", "https://例え.jp/"] {
        assert_eq!(crawled_href(url), Some(url));
    }
    for url in [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        " http://a/",
        "java\tscript:alert(1)",
        "http://a/\nb",
        "data:text/html,<script>",
        "http://",
        "http:/a",
        "//a/",
        "",
        "é",
        "vbscript:x",
        "blob:http://a/",
    ] {
        assert_eq!(crawled_href(url), None, "{url:?}");
    }
}

#[derive(Template)]
#[template(source = "{% import \"macros.html\" as m %}{% call m::crawled(url) %}{% endcall %}", ext = "html")]
struct Link<'a> {
    url: &'a str,
}

#[test]
fn links_are_escaped() {
    let link = Link { url: "http://a/\"><script>alert(1)</script>" }.render().unwrap();
    assert!(!link.contains("<script"), "{link}");
    assert!(link.contains("rel=\"noopener noreferrer nofollow\""), "{link}");
    let text = Link { url: "javascript:alert('<b>')" }.render().unwrap();
    assert!(!text.contains("<a") && !text.contains("<b>"), "{text}");
}
