use super::*;
use proptest::prelude::*;

const BASE: &str = "http://example.org/a/b.html";

fn page(html: &str) -> Page {
    page_of_bytes(html.as_bytes())
}

fn page_of_bytes(html: &[u8]) -> Page {
    let mut page = Page::default();
    HtmlExtractor::new().extract(html, &Hints { url: Some(BASE), charset: None }, &mut page);
    page
}

#[track_caller]
fn check_text(html: &str, text: &str) {
    assert_eq!(page(html).text, text, "{html}");
}

#[track_caller]
fn check_links(html: &str, links: &[&str]) {
    assert_eq!(page(html).links, links, "{html}");
}

#[test]
fn blocks_break_lines_and_paragraphs_leave_one_empty() {
    check_text("<div>a</div><div>b</div>", "a\nb");
    check_text("<p>a<p>b</p>\n\n\n<p></p><p></p><h1>c</h1>d", "a\n\nb\n\nc\n\nd");
    check_text("a<br>b<br><br><br><br>c", "a\nb\n\nc");
    check_text("<ul><li>a<li>b</ul>c", "a\nb\nc");
    check_text("a<hr>b", "a\n\nb");
    check_text("<i>a</i><b>b</b> <u>c</u>\n d", "ab c d");
}

#[test]
fn cells_are_separated_by_tabs_and_rows_by_lines() {
    check_text("<table><tr><td>a</td><td>b<tr><th>c<td>d</table>", "a\tb\nc\td");
}

#[test]
fn preformatted_text_keeps_its_lines() {
    check_text("x<pre>\na  b\n\n\n  c\n</pre>y\nz", "x\n\na b\n\nc\n\ny z");
    check_text("<textarea>a\nb</textarea>", "a\nb");
    check_text("<xmp><b>a</b>\nb</xmp>c", "<b>a</b>\nb\n\nc");
    check_text("a<plaintext>b\n</plaintext><p>c", "a\n\nb\n</plaintext><p>c");
}

#[test]
fn entities_are_decoded_quirks_included() {
    check_text("&lt;a&gt; &amp &eacute;&#233;&#xE9; &#150; &notit; &nbsp;&nbsp;x", "<a> & ééé – ¬it; x");
    check_text("&#0;&#xD800;&#x110000;", "\u{fffd}\u{fffd}\u{fffd}");
    check_text("&unknown; &", "&unknown; &");
}

#[test]
fn scripts_styles_and_hidden_markup_are_gone() {
    check_text("a<script>if (1 < 2) '<b>no</b>'</script>b", "ab");
    check_text("a<style>p { }</style>b<noscript>no <b>no</b></noscript>c<!-- no -->d", "abcd");
    check_text("a<template><p>no</p></template>b<svg><title>no</title><path/><text>no</text></svg>c", "abc");
    check_text("a<div hidden>no<div>no</div>no</div>b", "a\nb");
    check_text("a<span style='color:red; DISPLAY : none !important'>no</span>b", "ab");
    check_text("a<span style='visibility:hidden'>no</span>b<span style='display:block'>c</span>", "abc");
    check_text("a<input type=hidden value=no>b", "ab");
    check_text("a<dialog>no</dialog>b<dialog open>c</dialog>", "a\nb\nc");
    check_text("<iframe src=x>no</iframe>a", "a");
}

#[test]
fn a_hidden_element_ends_where_it_would_in_a_browser() {
    check_text("<p hidden>no<p>a", "a");
    check_text("<ul><li hidden>no<ul><li>no</ul>no<li>a</ul>", "a");
    check_text("<div><span hidden>no</div>a", "a");
    check_text("<div hidden><b>no</div>a", "a");
    check_text("<div hidden></b></p>no</div>a", "a");
    check_text("<table><tr><td hidden>no<table><tr><td>no</table><td>a</table>", "a");
    check_text("<x-a hidden><x-b>no</x-a>a", "a");
    check_text("<img hidden>a<br hidden>b", "a\nb");
    check_text("<body hidden>a", "a");
}

#[test]
fn the_title_is_apart_and_only_the_first() {
    let page = page("<title> A &amp;\n B<b> </title><title>C</title><svg><title>D</title></svg>x");
    assert_eq!(page.title, "A & B<b>");
    assert_eq!(page.text, "Cx");
}

#[test]
fn links_are_absolute_and_without_repeats() {
    check_links(
        "<a href=c.html#x>1</a><a HREF='../d'>2</a><area href=//other.org><a href=c.html>3</a><a href='#top'>4</a>
         <a href='  '>5</a><a>6</a><a href=mailto:x@y>7</a><a href='JavaScript:void(0)'>8</a><a href=data:text/html,x>9</a>
         <frame src=f><iframe src=g></iframe><a href='/e?a=1&amp;b=2' rel=nofollow>10</a><a href=ftp://x.org/>11</a>",
        &[
            "http://example.org/a/c.html",
            "http://example.org/d",
            "http://other.org/",
            "http://example.org/a/f",
            "http://example.org/a/g",
            "http://example.org/e?a=1&b=2",
        ],
    );
}

#[test]
fn the_first_base_counts_even_for_links_before_it() {
    check_links("<a href=x></a><base href=/c/><base href=/d/>", &["http://example.org/c/x"]);
    check_links("<base target=_top><base href=/c/><a href=x></a>", &["http://example.org/c/x"]);
    check_links("<base href=javascript:x><a href=x></a>", &["http://example.org/a/x"]);
}

#[test]
fn refresh_is_a_link_and_canonical_is_not() {
    let page = page(
        "<meta http-equiv=Refresh content='5; URL=\"/next\"'><link rel='x Canonical' href=/me#x>
         <link rel=canonical href=/other><link rel=stylesheet href=/s.css>",
    );
    assert_eq!(page.links, ["http://example.org/next"]);
    assert_eq!(page.canonical.as_deref(), Some("http://example.org/me"));
}

#[test]
fn wishes_of_the_page_are_read() {
    let robots = page("<META NAME=Robots CONTENT='NoIndex, noarchive'>").robots;
    assert_eq!(robots, crate::Robots { noindex: true, nofollow: false, noarchive: true });
    assert!(page("<meta name=robots content=none>").robots.nofollow);
}

#[test]
fn buffers_of_an_earlier_page_leave_nothing_behind() {
    let mut extractor = HtmlExtractor::new();
    let mut page = Page::default();
    let hints = Hints { url: Some(BASE), charset: None };
    let first = b"<base href=/x/><title>t</title><link rel=canonical href=c><meta name=robots content=none><a href=a>\
        <pre><div hidden><script>";
    extractor.extract(first, &hints, &mut page);
    assert_eq!((page.title.as_str(), page.links.len(), page.robots.noindex), ("t", 1, true));
    extractor.extract(b"a\nb<a href=a>", &hints, &mut page);
    let mut fresh = Page::default();
    HtmlExtractor::new().extract(b"a\nb<a href=a>", &hints, &mut fresh);
    assert_eq!(page, fresh);
    assert_eq!(page.text, "a b");
}

#[test]
fn a_page_without_an_address_still_has_its_absolute_links() {
    let mut page = Page::default();
    HtmlExtractor::new().extract(b"<a href=x><a href=http://a.org>", &Hints::default(), &mut page);
    assert_eq!(page.links, ["http://a.org/"]);
}

/// Pieces of markup that mean something to the builder.
fn markup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<p>",
        "</p>",
        "<p hidden>",
        "<div>",
        "</div>",
        "<div hidden>",
        "<span style=display:none>",
        "</span>",
        "<li>",
        "<ul>",
        "</ul>",
        "<li hidden>",
        "<table>",
        "<tr>",
        "<td>",
        "<td hidden>",
        "</table>",
        "<pre>",
        "</pre>",
        "<br>",
        "<svg>",
        "<path/>",
        "</svg>",
        "<title>",
        "</title>",
        "<script>",
        "</script>",
        "<template>",
        "</template>",
        "<a href=x#y>",
        "<a href='//b.org/%41%zz'>",
        "<a href='http://[::1'>",
        "<base href='/c/'>",
        "<base href='http://d.org?'>",
        "<link rel=canonical href=' e '>",
        "<meta http-equiv=refresh content='0;url=f'>",
        "<frame src='?q#'>",
        "&nbsp;",
        "&#1;",
        "\u{85}",
        "\u{a0}",
        "\n",
        "\n\n\n",
        "  ",
        "\t",
        "a",
        "b c",
        "<textarea>",
        "</textarea>",
        "<plaintext>",
    ]);
    prop::collection::vec(piece, 0..32).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn pages_keep_their_promises(html in markup()) {
        fuzz_html(html.as_bytes());
    }

    #[test]
    fn whatever_the_bytes(bytes in prop::collection::vec(any::<u8>(), 0..256)) {
        fuzz_html(&bytes);
    }
}
