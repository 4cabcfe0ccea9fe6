//! Builds a [`Page`] from the events of a tokenizer.
//!
//! What a tree would be needed for is to know where a hidden element ends. Here only the elements
//! opened inside a hidden one are remembered, at most [`MAX_OPEN_HIDDEN`] of them, with the rules
//! for elements whose end tags may be left out; and for each kind of element how many are open at
//! all, so that the end of one that was open before the hidden element began ends that too. A page
//! that leaves everything open costs a bounded search a tag.

use super::Sink;
use super::tags::Tag;
use crate::text::{Break, TextWriter};
use crate::{Page, Robots, url};
use std::collections::HashSet;
use xxhash_rust::xxh3::xxh3_64;

/// Links past this many are not collected: no page is written by hand with so many, and traps have
/// no end.
pub(crate) const MAX_LINKS: usize = 100_000;

/// How many bytes of addresses are put together for one page. A base of 60 KB before a hundred
/// thousand short links would otherwise be a page of gigabytes.
const MAX_JOINED_BYTES: usize = 64 << 20;

/// Titles are cut here. A title element that is never closed would take the whole page.
const MAX_TITLE_BYTES: usize = 16 << 10;

/// Attribute values past this size are not looked at.
const MAX_VALUE_BYTES: usize = url::MAX_URL_BYTES;

/// How many open elements are remembered inside a hidden one; deeper ones are only counted.
const MAX_OPEN_HIDDEN: usize = 128;

/// Collects what a page says. Made once and reused.
#[derive(Debug, Default)]
pub(crate) struct PageBuilder {
    text: Option<TextWriter>,
    title: Option<TextWriter>,
    robots: Robots,
    tag: PendingTag,
    /// The element whose unparsed content is being skipped, or shown as text.
    skipped: Option<Tag>,
    in_title: bool,
    title_seen: bool,
    /// How many elements that keep line breaks are open.
    keeps_lines: u32,
    hidden: Hidden,
    /// How many of each known element are open, as far as end tags were written.
    open: OpenCounts,
    base: Option<String>,
    canonical: Option<String>,
    /// Raw link texts, one after another.
    link_bytes: String,
    /// Where each link in `link_bytes` ends.
    link_ends: Vec<usize>,
    /// Links that came after as many as are kept.
    links_over_limit: u64,
    seen: HashSet<u64>,
}

/// The start tag whose attributes are being read.
#[derive(Debug)]
struct PendingTag {
    tag: Tag,
    /// Tells unknown elements apart.
    key: u64,
    hidden: bool,
    open: bool,
    values: [Option<String>; Attribute::COUNT],
}

impl Default for PendingTag {
    fn default() -> Self {
        PendingTag { tag: Tag::Other, key: 0, hidden: false, open: false, values: Default::default() }
    }
}

/// The attributes whose values are kept until the tag ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attribute {
    Href,
    Src,
    Rel,
    Name,
    Content,
    HttpEquiv,
    /// Looked at and thrown away.
    Style,
    Hidden,
    Open,
}

impl Attribute {
    /// Those that are kept.
    const COUNT: usize = 6;

    fn of(tag: Tag, name: &[u8]) -> Option<Attribute> {
        let is = |wanted: &[u8]| name.eq_ignore_ascii_case(wanted);
        match name.len() {
            3 if matches!(tag, Tag::Frame | Tag::Iframe) && is(b"src") => Some(Attribute::Src),
            3 if tag == Tag::Link && is(b"rel") => Some(Attribute::Rel),
            4 if matches!(tag, Tag::A | Tag::Area | Tag::Base | Tag::Link) && is(b"href") => {
                Some(Attribute::Href)
            }
            4 if tag == Tag::Meta && is(b"name") => Some(Attribute::Name),
            4 if tag == Tag::Dialog && is(b"open") => Some(Attribute::Open),
            5 if is(b"style") => Some(Attribute::Style),
            6 if is(b"hidden") => Some(Attribute::Hidden),
            7 if tag == Tag::Meta && is(b"content") => Some(Attribute::Content),
            10 if tag == Tag::Meta && is(b"http-equiv") => Some(Attribute::HttpEquiv),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct OpenCounts([u32; Tag::COUNT]);

impl Default for OpenCounts {
    fn default() -> Self {
        OpenCounts([0; Tag::COUNT])
    }
}

/// The hidden element we are in, if any.
#[derive(Debug, Default)]
struct Hidden {
    /// The hidden element and those opened in it.
    stack: Vec<(Tag, u64)>,
    /// How many are open above the remembered ones.
    overflow: u32,
}

impl Hidden {
    fn is_active(&self) -> bool {
        !self.stack.is_empty()
    }

    fn clear(&mut self) {
        self.stack.clear();
        self.overflow = 0;
    }

    fn push(&mut self, tag: Tag, key: u64) {
        if self.stack.len() < MAX_OPEN_HIDDEN {
            self.stack.push((tag, key));
        } else {
            self.overflow = self.overflow.saturating_add(1);
        }
    }

    /// A start tag may end elements whose end tags were left out, the hidden one among them.
    fn end_implied_by(&mut self, tag: Tag) {
        if self.overflow > 0 {
            return;
        }
        let end = self.stack.iter().rposition(|&(open, _)| implies_end(tag, open) || is_scope(tag, open));
        if let Some(end) = end.filter(|&end| implies_end(tag, self.stack[end].0)) {
            self.stack.truncate(end);
        }
    }

    fn end(&mut self, tag: Tag, key: u64, open_outside: bool) {
        if self.overflow > 0 {
            self.overflow -= 1;
        } else if let Some(end) = self.stack.iter().rposition(|&(_, open)| open == key) {
            self.stack.truncate(end);
        } else if open_outside && tag.meaning().container {
            // What ends here was open before the hidden element began, so that has ended too.
            self.stack.clear();
        }
    }
}

/// Whether a start tag ends an open element that needs no end tag of its own.
fn implies_end(tag: Tag, open: Tag) -> bool {
    match open {
        Tag::P => {
            let meaning = tag.meaning();
            // What the standard lists: blocks, but not the parts of tables, which cannot be inside
            // a paragraph.
            (meaning.container && meaning.around >= Break::Line && tag != Tag::Select)
                || matches!(tag, Tag::Hr | Tag::Plaintext | Tag::Xmp)
        }
        Tag::Li => tag == Tag::Li,
        Tag::Dd | Tag::Dt => matches!(tag, Tag::Dd | Tag::Dt),
        Tag::Option => matches!(tag, Tag::Option | Tag::Optgroup),
        Tag::Optgroup => tag == Tag::Optgroup,
        Tag::Td | Tag::Th => {
            matches!(tag, Tag::Td | Tag::Th | Tag::Tr | Tag::Tbody | Tag::Thead | Tag::Tfoot)
        }
        Tag::Tr => matches!(tag, Tag::Tr | Tag::Tbody | Tag::Thead | Tag::Tfoot),
        Tag::Tbody | Tag::Thead | Tag::Tfoot => matches!(tag, Tag::Tbody | Tag::Thead | Tag::Tfoot),
        Tag::Head => tag == Tag::Body,
        _ => false,
    }
}

/// Whether an open element keeps a start tag inside it from ending anything outside it.
fn is_scope(tag: Tag, open: Tag) -> bool {
    match tag {
        Tag::Li => matches!(open, Tag::Ul | Tag::Ol | Tag::Menu | Tag::Dir | Tag::Table | Tag::Template),
        Tag::Dd | Tag::Dt => matches!(open, Tag::Dl | Tag::Table | Tag::Template),
        Tag::Option | Tag::Optgroup => matches!(open, Tag::Select | Tag::Template),
        Tag::Td | Tag::Th | Tag::Tr | Tag::Tbody | Tag::Thead | Tag::Tfoot => {
            matches!(open, Tag::Table | Tag::Template)
        }
        // Blocks end an open paragraph, unless it is outside of one of these.
        _ => matches!(open, Tag::Button | Tag::Table | Tag::Td | Tag::Th | Tag::Object | Tag::Template),
    }
}

impl PageBuilder {
    /// Starts a page, in the buffers of `page`.
    pub(crate) fn begin(&mut self, page: &mut Page) {
        self.text = Some(TextWriter::new(std::mem::take(&mut page.text)));
        self.title = Some(TextWriter::new(std::mem::take(&mut page.title)));
        self.robots = Robots::default();
        self.tag = PendingTag::default();
        self.skipped = None;
        self.in_title = false;
        self.title_seen = false;
        self.keeps_lines = 0;
        self.hidden.clear();
        self.open = OpenCounts::default();
        self.base = None;
        self.canonical = None;
        self.link_bytes.clear();
        self.link_ends.clear();
        self.links_over_limit = 0;
        self.seen.clear();
    }

    /// Ends the page and fills it.
    pub(crate) fn finish(&mut self, page_url: Option<&str>, page: &mut Page) {
        page.text = self.text.take().map(TextWriter::finish).unwrap_or_default();
        page.title = self.title.take().map(TextWriter::finish).unwrap_or_default();
        page.robots = self.robots;
        let joiner = url::Joiner::new(page_url, self.base.take().as_deref());
        page.canonical = self.canonical.take().and_then(|href| joiner.join(href.trim_ascii()));
        self.seen.clear();
        let base_length = joiner.base_length();
        let (mut begin, mut joined) = (0, 0);
        page.links_over_limit = self.links_over_limit;
        for (nth, &end) in self.link_ends.iter().enumerate() {
            joined += base_length + (end - begin);
            if joined > MAX_JOINED_BYTES {
                page.links_over_limit += (self.link_ends.len() - nth) as u64;
                break;
            }
            match joiner.join(&self.link_bytes[begin..end]) {
                Some(link) => {
                    if self.seen.insert(xxh3_64(link.as_bytes())) {
                        page.links.push(link);
                    }
                }
                None => page.links_unresolved += u64::from(base_length == 0),
            }
            begin = end;
        }
    }

    fn add_link(&mut self, href: &str) {
        let href = href.trim_ascii();
        let href = &href[..memchr::memchr(b'#', href.as_bytes()).unwrap_or(href.len())];
        // An empty reference, or one that was all fragment, is the page itself.
        if href.is_empty() || is_foreign_scheme(href) {
            return;
        }
        if self.link_ends.len() >= MAX_LINKS {
            self.links_over_limit += u64::from(!self.seen.contains(&xxh3_64(href.as_bytes())));
            return;
        }
        if self.seen.insert(xxh3_64(href.as_bytes())) {
            self.link_bytes.push_str(href);
            self.link_ends.push(self.link_bytes.len());
        }
    }

    fn handle_links(&mut self) {
        let mut take = |attribute: Attribute| self.tag.values[attribute as usize].take();
        match self.tag.tag {
            Tag::A | Tag::Area => {
                if let Some(href) = take(Attribute::Href) {
                    self.add_link(&href);
                }
            }
            Tag::Frame | Tag::Iframe => {
                if let Some(src) = take(Attribute::Src) {
                    self.add_link(&src);
                }
            }
            Tag::Base => {
                let href = take(Attribute::Href);
                if self.base.is_none() {
                    self.base = href;
                }
            }
            Tag::Link => {
                if let (Some(rel), Some(href)) = (take(Attribute::Rel), take(Attribute::Href))
                    && self.canonical.is_none()
                    && rel.split_ascii_whitespace().any(|word| word.eq_ignore_ascii_case("canonical"))
                    && !href.trim_ascii().is_empty()
                {
                    self.canonical = Some(href);
                }
            }
            Tag::Meta => {
                let Some(content) = take(Attribute::Content) else { return };
                let name = take(Attribute::Name);
                let http_equiv = take(Attribute::HttpEquiv);
                if name.is_some_and(|name| name.trim_ascii().eq_ignore_ascii_case("robots")) {
                    self.robots.add(&content);
                }
                if http_equiv.is_some_and(|name| name.trim_ascii().eq_ignore_ascii_case("refresh"))
                    && let Some(target) = refresh_target(&content)
                {
                    self.add_link(target);
                }
            }
            _ => {}
        }
    }

    /// Whether what comes now is part of the page's text.
    fn is_shown(&self) -> bool {
        self.skipped.is_none() && !self.hidden.is_active()
    }

    fn break_around(&mut self, tag: Tag) {
        if self.hidden.is_active() {
            return;
        }
        if let Some(text) = &mut self.text {
            if tag == Tag::Br {
                text.end_line();
            } else {
                text.break_at_least(tag.meaning().around);
            }
        }
    }
}

impl Sink for PageBuilder {
    fn open_tag(&mut self, tag: Tag, name: &[u8]) {
        self.tag.tag = tag;
        self.tag.key = key_of(tag, name);
        self.tag.hidden = false;
        self.tag.open = false;
        self.tag.values = Default::default();
    }

    fn wants(&mut self, name: &[u8]) -> bool {
        Attribute::of(self.tag.tag, name).is_some()
    }

    fn attribute(&mut self, name: &[u8], value: &str) {
        let Some(attribute) = Attribute::of(self.tag.tag, name) else { return };
        match attribute {
            Attribute::Hidden => self.tag.hidden = true,
            Attribute::Open => self.tag.open = true,
            _ if value.len() > MAX_VALUE_BYTES => {}
            Attribute::Style => self.tag.hidden |= style_hides(value),
            kept => {
                // The first of several attributes of one name counts.
                let slot = &mut self.tag.values[kept as usize];
                if slot.is_none() {
                    *slot = Some(value.to_owned());
                }
            }
        }
    }

    fn close_tag(&mut self, self_closing: bool) {
        let PendingTag { tag, key, hidden, open, .. } = self.tag;
        if self.skipped.is_some() {
            // Cannot be while a tokenizer skips what it should; harmless if one does not.
            return;
        }
        self.handle_links();
        let meaning = tag.meaning();
        if self.hidden.is_active() {
            self.hidden.end_implied_by(tag);
        }
        self.break_around(tag);
        if meaning.void {
            return;
        }
        if meaning.skipped {
            self.skipped = Some(tag);
            return;
        }
        let in_foreign = self.hidden.stack.first().is_some_and(|&(root, _)| root == Tag::Svg);
        let closed_at_once = self_closing && (in_foreign || matches!(tag, Tag::Svg | Tag::Math));
        if closed_at_once {
            return;
        }
        if self.hidden.is_active() {
            self.hidden.push(tag, key);
        } else if hidden || meaning.unseen || (tag == Tag::Dialog && !open) {
            // A hidden `html` or `body` is one that a script will show.
            if !matches!(tag, Tag::Html | Tag::Body) {
                self.hidden.push(tag, key);
            }
        } else if tag == Tag::Title && !self.title_seen {
            self.title_seen = true;
            self.in_title = true;
        }
        if !self.hidden.is_active() {
            let count = &mut self.open.0[tag as usize];
            *count = count.saturating_add(1);
            if meaning.keeps_lines {
                self.keeps_lines = self.keeps_lines.saturating_add(1);
            }
        }
    }

    fn end_tag(&mut self, tag: Tag, name: &[u8]) {
        if let Some(skipped) = self.skipped {
            if skipped == tag {
                self.skipped = None;
                self.break_around(tag);
            }
            return;
        }
        if self.hidden.is_active() {
            let open_outside = self.open.0[tag as usize] > 0;
            let depth_before = self.hidden.stack.len();
            self.hidden.end(tag, key_of(tag, name), open_outside);
            if self.hidden.is_active() || depth_before > 0 && !open_outside {
                self.break_around(tag);
                return;
            }
        }
        let meaning = tag.meaning();
        let count = &mut self.open.0[tag as usize];
        if meaning.keeps_lines && *count > 0 {
            self.keeps_lines = self.keeps_lines.saturating_sub(1);
        }
        *count = count.saturating_sub(1);
        if tag == Tag::Title {
            self.in_title = false;
        }
        // `</br>` is read as `<br>`; other end tags of void elements are nothing.
        if !meaning.void || tag == Tag::Br {
            self.break_around(tag);
        }
    }

    fn text(&mut self, text: &str) {
        if !self.is_shown() {
            return;
        }
        if self.in_title {
            if let Some(title) = &mut self.title {
                // One byte is kept for the space that may come before.
                let room = MAX_TITLE_BYTES.saturating_sub(title.len() + 1);
                let mut end = text.len().min(room);
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                title.push(&text[..end]);
            }
        } else if let Some(out) = &mut self.text {
            if self.keeps_lines > 0 {
                out.push_lines(text);
            } else {
                out.push(text);
            }
        }
    }
}

/// Tells elements apart, unknown ones by a hash of their name.
fn key_of(tag: Tag, name: &[u8]) -> u64 {
    match tag {
        Tag::Other => xxh3_64(name) | 1 << 63,
        known => known as u64,
    }
}

/// References that are not for the web, known by their first bytes without parsing what may be a
/// megabyte of data.
fn is_foreign_scheme(href: &str) -> bool {
    ["javascript:", "data:", "mailto:", "tel:", "about:", "blob:"].iter().any(|scheme| {
        href.len() >= scheme.len() && href.as_bytes()[..scheme.len()].eq_ignore_ascii_case(scheme.as_bytes())
    })
}

/// Whether an inline style takes the element out of sight.
fn style_hides(style: &str) -> bool {
    style.split(';').any(|declaration| {
        let Some((property, value)) = declaration.split_once(':') else { return false };
        let property = property.trim_ascii();
        let value = value.split('!').next().unwrap_or_default().trim_ascii();
        (property.eq_ignore_ascii_case("display") && value.eq_ignore_ascii_case("none"))
            || (property.eq_ignore_ascii_case("visibility") && value.eq_ignore_ascii_case("hidden"))
    })
}

/// The address in `5; url='...'`.
fn refresh_target(content: &str) -> Option<&str> {
    let content = content.trim_ascii_start();
    let digits = content.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    if digits.len() == content.len() {
        return None;
    }
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ';' || c == ',');
    let is_url = rest.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("url"));
    let rest = match rest.get(3..).map(str::trim_ascii_start).and_then(|rest| rest.strip_prefix('=')) {
        Some(value) if is_url => value.trim_ascii_start(),
        _ => rest,
    };
    let target = match rest.chars().next()? {
        quote @ ('"' | '\'') => rest[1..].split(quote).next()?,
        _ => rest,
    };
    (!target.is_empty()).then_some(target)
}
