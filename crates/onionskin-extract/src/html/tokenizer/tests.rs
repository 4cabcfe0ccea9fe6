use super::*;
use crate::html::gum;
use proptest::prelude::*;

/// What a tokenizer told, with neighbouring pieces of text put together.
#[derive(Debug, Default, PartialEq)]
struct Recorder {
    events: Vec<Event>,
    open: Option<(String, Vec<(String, String)>)>,
}

#[derive(Debug, PartialEq)]
enum Event {
    Start { name: String, attributes: Vec<(String, String)>, self_closing: bool },
    End(String),
    Text(String),
}

/// The standard replaces zeros in some states and keeps them in others; both are nothing in the
/// end.
fn readable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")
}

impl Sink for Recorder {
    fn open_tag(&mut self, _: Tag, name: &[u8]) {
        self.open = Some((readable(name), Vec::new()));
    }

    fn wants(&mut self, _: &[u8]) -> bool {
        true
    }

    fn attribute(&mut self, name: &[u8], value: &str) {
        let (_, attributes) = self.open.as_mut().unwrap();
        attributes.push((readable(&name.to_ascii_lowercase()), readable(value.as_bytes())));
    }

    fn close_tag(&mut self, self_closing: bool) {
        let (name, attributes) = self.open.take().unwrap();
        self.events.push(Event::Start { name, attributes, self_closing });
    }

    fn end_tag(&mut self, _: Tag, name: &[u8]) {
        self.events.push(Event::End(readable(name)));
    }

    fn text(&mut self, text: &str) {
        let text = readable(text.as_bytes());
        match self.events.last_mut() {
            Some(Event::Text(before)) => before.push_str(&text),
            _ => self.events.push(Event::Text(text)),
        }
    }
}

#[track_caller]
fn check(html: &str) {
    let (mut fast, mut by_the_letter) = (Recorder::default(), Recorder::default());
    tokenize(html, &mut fast, &mut Scratch::default());
    gum::tokenize(html, &mut by_the_letter);
    assert_eq!(fast.events, by_the_letter.events, "{html:?}");
}

#[test]
fn corners_of_the_standard() {
    for html in [
        "",
        "<",
        "</",
        "</>",
        "</ >a",
        "<>a",
        "<!",
        "<!>a",
        "<!->a",
        "<!-->a",
        "<!--->a",
        "<!---->a",
        "<!--a--!>b",
        "<!--a--!-->b",
        "<!--a--->b",
        "<!--<!-->b",
        "<!--<!->-->b",
        "<!----!>b",
        "<!--a",
        "<!doctype html public \"a>b\">c",
        "<![CDATA[a>b]]>c",
        "<?php a > b ?>c",
        "<a",
        "<a ",
        "<a b",
        "<a b=",
        "<a b=c",
        "<a b='c",
        "<a b='c'",
        "<a b='c'd=e>f",
        "<a =b>c",
        "<a b==c>d",
        "<a b = c>d",
        "<a b=>d",
        "<a b/c>d",
        "<a / b>c",
        "<a/>b<a//>c",
        "<a b=c/>d",
        "<a b='>'>c",
        "<a 'b'>c",
        "<A B=C>d</A B=C>e</a/>",
        "<a b=&copy=&copy;&copyx&amp&lt>c",
        "<a b=1 b=2>c",
        "<a\u{e9}>b<\u{e9}>c</\u{e9}>d",
        "a & b &amp c &ampamp; &notin; &notit; &#; &#x; &#65 &bogus; &",
        "<title><b>&amp;</b></titl></title x>a",
        "<title>a</title",
        "<title>a</title ",
        "<title>a</TITLE>b",
        "<textarea>&lt;</textarea>&lt;",
        "<style>&lt;<!--</style>--></style>a",
        "<xmp></xm></xmp>a",
        "<plaintext></plaintext>&amp;",
        "<noscript><b></noscript>a",
        "<script>a</script>b",
        "<script><!--</script>b",
        "<script><!--<script></script>--></script>b",
        "<script><!--<script></script></script>b",
        "<script><!--<script>--></script>b",
        "<script><!--<scriptx></script>b",
        "<script><!--><script></script>b",
        "<script><!---><script></script>b",
        "<script><!-- --><script></script>b",
        "<script><!-<script></script>b",
        "<script><!--<SCRIPT/</SCRIPT\n</script>b",
        "<script></scriptx></script/>b",
        "<script/>a</script>b",
        "a\0b<a\0b c\0d=e\0f>g<title>h\0</title>",
    ] {
        check(html);
    }
}

/// Real pages, where there are some: every file under the folder `ONIONSKIN_HTML_FOLDER` names.
#[test]
fn real_pages() {
    let Some(folder) = std::env::var_os("ONIONSKIN_HTML_FOLDER") else { return };
    let mut folders = vec![std::path::PathBuf::from(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                let bytes = std::fs::read(entry.path()).unwrap();
                // The one difference that is meant: the other does not know that `noframes` is not
                // parsed.
                check(&String::from_utf8_lossy(&bytes).replace('\r', "").replace("noframes", "x"));
            }
        }
    }
}

/// Pieces that are likely to mean something beside each other.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "<",
        "</",
        ">",
        "/>",
        "/",
        "!",
        "--",
        "-",
        "<!--",
        "-->",
        "--!>",
        "<!",
        "?",
        "=",
        "\"",
        "'",
        " ",
        "\n",
        "\t",
        "&",
        "&amp;",
        "&amp",
        "&copy",
        "&#",
        "&#x",
        "65",
        "6f",
        ";",
        "a",
        "b",
        "x",
        "A",
        "é",
        "script",
        "<script",
        "<script>",
        "</script",
        "</script>",
        "<SCRIPT>",
        "<title>",
        "</title>",
        "<title ",
        "textarea",
        "<textarea>",
        "</textarea>",
        "<style>",
        "</style>",
        "<xmp>",
        "</xmp>",
        "<plaintext>",
        "<a href=",
        "<div hidden>",
        "</div>",
        "<p",
        "<br/>",
        "[CDATA[",
        "]]>",
        "doctype",
        "\0",
        "日本",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn equal_to_the_tokenizer_by_the_letter(html in soup()) {
        check(&html);
    }

    #[test]
    fn any_text_goes_through(html in "\\PC{0,64}") {
        check(&html);
    }
}
