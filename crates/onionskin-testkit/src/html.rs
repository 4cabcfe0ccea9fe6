//! A draft as HTML.
//!
//! The visible words are the draft's, in order, and no others. Around them: a title, headings,
//! lists, links on words that are there anyway, and on pages with varied markup what the web is
//! full of: comments, scripts and styles that are not text, entities, unquoted attributes,
//! charsets.

use crate::{
    draft::{BlockKind, Draft},
    rng::{below, mix},
    vocab::Script,
    web::{Dest, Link, Location, Spot, Web, push_relative},
};

/// The encoding of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Charset {
    /// UTF-8.
    Utf8,
    /// UTF-8 that says so with a byte order mark.
    Utf8Bom,
    /// ASCII, with character references for all else.
    Ascii,
    /// ISO-8859-1, with character references for what it lacks.
    Latin1,
    /// windows-1251, with character references for what it lacks.
    Windows1251,
    /// UTF-16, little-endian, with a byte order mark.
    Utf16Le,
}

impl Charset {
    /// The name that pages and headers give it.
    pub fn as_str(self) -> &'static str {
        match self {
            Charset::Utf8 | Charset::Utf8Bom => "utf-8",
            Charset::Ascii => "us-ascii",
            Charset::Latin1 => "iso-8859-1",
            Charset::Windows1251 => "windows-1251",
            Charset::Utf16Le => "utf-16le",
        }
    }

    /// Appends HTML in this charset. What it lacks becomes a numeric character reference.
    pub fn encode(self, html: &str, out: &mut Vec<u8>) {
        match self {
            Charset::Utf8 => out.extend_from_slice(html.as_bytes()),
            Charset::Utf8Bom => {
                out.extend_from_slice(b"\xef\xbb\xbf");
                out.extend_from_slice(html.as_bytes());
            }
            Charset::Utf16Le => {
                out.extend_from_slice(b"\xff\xfe");
                out.extend(html.encode_utf16().flat_map(u16::to_le_bytes));
            }
            Charset::Ascii | Charset::Latin1 | Charset::Windows1251 => {
                for c in html.chars() {
                    match self.single_byte(c) {
                        Some(byte) => out.push(byte),
                        None => out.extend_from_slice(reference(c).as_bytes()),
                    }
                }
            }
        }
    }

    fn single_byte(self, c: char) -> Option<u8> {
        match (self, u32::from(c)) {
            (_, code @ 0..0x80) => Some(code as u8),
            (Charset::Latin1, code @ 0xa0..0x100) => Some(code as u8),
            (Charset::Windows1251, code @ 0x410..0x450) => Some((code - 0x410 + 0xc0) as u8),
            _ => None,
        }
    }

    fn choose(script: Script, roll: u64) -> Charset {
        let percent = below(roll, 100);
        match (script, percent) {
            (_, 0..3) => Charset::Utf8Bom,
            (_, 3..5) => Charset::Utf16Le,
            (Script::Latin, 5..15) | (Script::Accented, 5..45) => Charset::Latin1,
            (Script::Latin, 15..17) | (Script::Accented, 45..60) => Charset::Ascii,
            (Script::Cyrillic, 5..50) => Charset::Windows1251,
            _ => Charset::Utf8,
        }
    }
}

/// A character reference, by name where old editors would have used one.
fn reference(c: char) -> String {
    let named = match c {
        'é' => "eacute",
        'è' => "egrave",
        'ê' => "ecirc",
        'ü' => "uuml",
        'ö' => "ouml",
        'ä' => "auml",
        'ñ' => "ntilde",
        'ç' => "ccedil",
        'å' => "aring",
        _ => return format!("&#{};", u32::from(c)),
    };
    format!("&{named};")
}

/// How a page is marked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Markup {
    pub(crate) charset: Charset,
    varied: bool,
    roll: u64,
}

impl Markup {
    pub(crate) fn new(web: &Web, location: Location, script: Script) -> Markup {
        let roll = web.markup_key(location);
        let varied = web.spec.varied_markup;
        let charset = if varied { Charset::choose(script, mix(roll, 1)) } else { Charset::Utf8 };
        Markup { charset, varied, roll }
    }

    /// A decision that falls `percent` times in a hundred, on pages that vary.
    fn has(&self, what: u64, percent: u64) -> bool {
        self.varied && below(mix(self.roll, 100 + what), 100) < percent
    }
}

/// Appends a page in UTF-8.
pub(crate) fn write(
    web: &Web,
    location: Location,
    draft: &Draft,
    links: &[Link],
    markup: &Markup,
    out: &mut Vec<u8>,
) {
    let vocabulary = web.vocabulary(draft.script);
    let shout = markup.has(0, 15);
    let entities = markup.has(1, 50);
    if markup.has(2, 70) {
        out.extend_from_slice(b"<!DOCTYPE html>\n");
    }
    out.extend_from_slice(if shout { b"<HTML><HEAD>\n" } else { b"<html><head>\n" });
    if !matches!(markup.charset, Charset::Utf8Bom | Charset::Utf16Le) {
        if markup.has(3, 50) {
            out.extend_from_slice(b"<meta http-equiv=\"Content-Type\" content=\"text/html; charset=");
        } else {
            out.extend_from_slice(b"<meta charset=\"");
        }
        out.extend_from_slice(markup.charset.as_str().as_bytes());
        out.extend_from_slice(b"\">\n");
    }
    out.extend_from_slice(b"<title>");
    let title_end = draft.blocks.iter().find(|block| block.kind == BlockKind::Title).map(|block| block.end);
    if let Some(end) = title_end {
        let start = draft.blocks.iter().rev().find(|block| block.end < end).map_or(0, |block| block.end);
        let words_start = out.len();
        draft.write_words(vocabulary, start..end, out);
        debug_assert!(!out[words_start..].contains(&b'<'));
    }
    out.extend_from_slice(b"</title>\n");
    if markup.has(4, 30) {
        out.extend_from_slice(
            b"<style type=\"text/css\">body { color: #222 } .nav > a:hover { color: red }</style>\n",
        );
    }
    if markup.has(5, 30) {
        out.extend_from_slice(
            b"<script>var pages = 3; if (pages < 4 && window.top) { document.title += \"<b>!</b>\"; }</script>\n",
        );
    }
    out.extend_from_slice(if shout { b"</HEAD><BODY>\n" } else { b"</head>\n<body>\n" });
    if markup.has(6, 30) {
        out.extend_from_slice(b"<!-- last changed by hand; <p>not shown</p> -->\n");
    }
    body(web, location, draft, links, &Style { shout, entities }, out);
    if markup.has(7, 20) {
        out.extend_from_slice(
            b"<noscript></noscript><script type=\"text/javascript\">count('<i>visits</i>');</script>\n",
        );
    }
    out.extend_from_slice(if shout { b"</BODY></HTML>\n" } else { b"</body></html>\n" });
}

struct Style {
    shout: bool,
    entities: bool,
}

fn body(web: &Web, location: Location, draft: &Draft, links: &[Link], style: &Style, out: &mut Vec<u8>) {
    let vocabulary = web.vocabulary(draft.script);
    let mut hrefs = Hrefs::new(web, location);
    let n_words = draft.tokens.len();
    let mut waiting = links.iter().enumerate();
    let mut next = waiting.next();
    // Link k of L stands on word k n / L.
    let word_of = |nth: usize| nth * n_words / links.len().max(1);

    let mut start = 0;
    let mut in_list = false;
    for block in &draft.blocks {
        let is_item = block.kind == BlockKind::Item;
        if is_item != in_list {
            out.extend_from_slice(if is_item { b"<ul>\n" } else { b"</ul>\n" });
            in_list = is_item;
        }
        out.extend_from_slice(opening(block.kind, style.shout));
        for position in start..block.end as usize {
            let token = draft.tokens[position];
            if position > start && draft.space_between(draft.tokens[position - 1], token) {
                out.push(b' ');
            }
            let mut open = false;
            while let Some((nth, link)) = next.filter(|&(nth, _)| word_of(nth) == position) {
                // Two links on one word: the earlier becomes an image, which has nothing to read.
                let last = word_of(nth + 1) != position || nth + 1 == links.len();
                hrefs.anchor(link, style.shout, out);
                if last {
                    open = true;
                } else {
                    out.extend_from_slice(b"<img src=\"dot.gif\" alt=\"\"></a>");
                }
                next = waiting.next();
            }
            draft.write_word(vocabulary, token, out);
            if open {
                out.extend_from_slice(if style.shout { b"</A>" } else { b"</a>" });
            }
            // A bare ampersand before a space is legal too, and common.
            out.extend_from_slice(draft.punctuation(token, style.entities).as_bytes());
        }
        out.extend_from_slice(closing(block.kind));
        start = block.end as usize;
    }
    if in_list {
        out.extend_from_slice(b"</ul>\n");
    }
    // A page without words links by an image map.
    if let Some((_, link)) = next {
        out.extend_from_slice(b"<map name=\"m\">");
        for link in std::iter::once(link).chain(waiting.map(|(_, link)| link)) {
            out.extend_from_slice(b"<area alt=\"\" href=\"");
            hrefs.push(link, out);
            out.extend_from_slice(b"\">");
        }
        out.extend_from_slice(b"</map><img src=\"map.gif\" usemap=\"#m\" alt=\"\">\n");
    }
}

fn opening(kind: BlockKind, shout: bool) -> &'static [u8] {
    match (kind, shout) {
        (BlockKind::Header, _) => b"<div class=nav>",
        (BlockKind::Title, _) => b"<h1>",
        (BlockKind::Heading, _) => b"<h2>",
        (BlockKind::Paragraph, false) => b"<p>",
        (BlockKind::Paragraph, true) => b"<P>",
        (BlockKind::Item, _) => b"<li>",
        (BlockKind::Footer, _) => b"<div class=\"foot\">",
    }
}

fn closing(kind: BlockKind) -> &'static [u8] {
    match kind {
        BlockKind::Header | BlockKind::Footer => b"</div>\n",
        BlockKind::Title => b"</h1>\n",
        BlockKind::Heading => b"</h2>\n",
        BlockKind::Paragraph => b"</p>\n",
        BlockKind::Item => b"</li>\n",
    }
}

/// Writes references from one page.
struct Hrefs<'w> {
    web: &'w Web,
    from: Location,
    /// Whether the page may stand elsewhere too, so that links within its place must move with it.
    moves: bool,
    from_path: Vec<u8>,
    to_path: Vec<u8>,
}

impl<'w> Hrefs<'w> {
    fn new(web: &'w Web, from: Location) -> Hrefs<'w> {
        let mut from_path = Vec::new();
        web.push_path(from, &mut from_path);
        let collection = web.places[from.place as usize].collection;
        Hrefs { web, from, moves: web.places_of(collection).len() > 1, from_path, to_path: Vec::new() }
    }

    fn anchor(&mut self, link: &Link, shout: bool, out: &mut Vec<u8>) {
        let (open, quote): (&[u8], &[u8]) = match (shout, (link.roll >> 16) & 7) {
            (true, 0) => (b"<A HREF=", b""),
            (true, _) => (b"<A HREF=\"", b"\""),
            (false, 0) => (b"<a class='x' href='", b"'"),
            (false, _) => (b"<a href=\"", b"\""),
        };
        out.extend_from_slice(open);
        self.push(link, out);
        out.extend_from_slice(quote);
        out.push(b'>');
    }

    fn push(&mut self, link: &Link, out: &mut Vec<u8>) {
        let to = match link.dest {
            Dest::Page(page) => self.web.locate(page),
            Dest::Absent { place, slot } => Location { place, spot: Spot::Slot(slot) },
        };
        if to.place == self.from.place && !link.absolute {
            self.to_path.clear();
            self.web.push_path(to, &mut self.to_path);
            match link.roll & 15 {
                0 if !self.moves => out.extend_from_slice(&self.to_path),
                1 if !self.moves => self.web.push_url(to, out),
                2 => {
                    out.extend_from_slice(b"./");
                    push_relative(&self.from_path, &self.to_path, out);
                }
                _ => push_relative(&self.from_path, &self.to_path, out),
            }
        } else {
            self.web.push_url(to, out);
        }
        if (link.roll >> 8) & 15 == 0 {
            out.extend_from_slice(b"#part");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charsets_encode_what_they_have_and_refer_to_the_rest() {
        let encoded = |charset: Charset, html: &str| {
            let mut out = Vec::new();
            charset.encode(html, &mut out);
            out
        };
        assert_eq!(encoded(Charset::Latin1, "né—Ω"), b"n\xe9&#8212;&#937;");
        assert_eq!(encoded(Charset::Ascii, "né—"), b"n&eacute;&#8212;");
        assert_eq!(encoded(Charset::Windows1251, "Аяé"), b"\xc0\xff&eacute;");
        assert_eq!(encoded(Charset::Utf16Le, "aж"), b"\xff\xfea\x00\x36\x04");
        assert_eq!(encoded(Charset::Utf8Bom, "ж"), b"\xef\xbb\xbf\xd0\xb6");
    }
}
