//! HTML to text, title and links, in one pass and without a tree.
//!
//! The naive way parses into a tree and walks it. Tree builders that follow the standard can be
//! made to recurse or to run in quadratic time by a page of a megabyte, so here a tokenizer hands
//! its events to a [`builder`], which keeps a few counters instead of a tree.

mod builder;
mod entities;
mod entity_table;
#[cfg(test)]
mod gum;
mod tags;
mod tokenizer;

use crate::charset::{self, SelfDeclaration};
use crate::{Hints, Page};
use builder::PageBuilder;
use tags::Tag;

/// What a tokenizer tells.
pub(crate) trait Sink {
    /// A start tag begins; the name is in lower case.
    fn open_tag(&mut self, tag: Tag, name: &[u8]);
    /// Whether the value of this attribute of the open tag is of interest. The name is as it is
    /// written.
    fn wants(&mut self, name: &[u8]) -> bool;
    /// An attribute of the open tag that is wanted; character references are decoded.
    fn attribute(&mut self, name: &[u8], value: &str);
    /// The open start tag ends.
    fn close_tag(&mut self, self_closing: bool);
    /// An end tag; the name is in lower case.
    fn end_tag(&mut self, tag: Tag, name: &[u8]);
    /// A piece of text; character references are decoded. One run of text may come in several
    /// pieces.
    fn text(&mut self, text: &str);
}

/// Extracts HTML pages, one after another, in buffers of its own.
#[derive(Debug, Default)]
pub struct HtmlExtractor {
    decoded: String,
    tokens: tokenizer::Scratch,
    builder: PageBuilder,
}

impl HtmlExtractor {
    /// An extractor with empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fills `page` with what the bytes of an HTML page say.
    ///
    /// Never fails: whatever the bytes are, a browser would show something. Time is linear in the
    /// size of the page.
    pub fn extract(&mut self, bytes: &[u8], hints: &Hints<'_>, page: &mut Page) {
        self.extract_declared(bytes, hints, SelfDeclaration::Meta, page);
    }

    pub(crate) fn extract_declared(
        &mut self,
        bytes: &[u8],
        hints: &Hints<'_>,
        declaration: SelfDeclaration,
        page: &mut Page,
    ) {
        page.clear();
        let mut decoded = std::mem::take(&mut self.decoded);
        let (text, charset) = charset::decode(bytes, hints, declaration, &mut decoded);
        page.charset = charset;
        self.builder.begin(page);
        tokenizer::tokenize(text, &mut self.builder, &mut self.tokens);
        self.builder.finish(hints.url, page);
        self.decoded = decoded;
    }
}

/// Extracts a page from any bytes and checks what [`Page`] promises; the entry of the fuzzer.
///
/// # Panics
///
/// When a promise is broken.
#[doc(hidden)]
pub fn fuzz_html(data: &[u8]) {
    let mut page = Page::default();
    let hints = Hints { url: Some("http://example.org/a/b.html"), charset: None };
    HtmlExtractor::new().extract(data, &hints, &mut page);
    for text in [&page.text, &page.title] {
        assert!(
            !text.chars().any(|c| c.is_control() && c != '\n' && c != '\t'),
            "control characters are gone: {text:?}"
        );
        assert!(!text.contains("\n\n\n"), "at most one empty line: {text:?}");
        assert!(!text.contains("  "), "white space is collapsed: {text:?}");
        let trimmed = text.trim_matches([' ', '\t', '\n']);
        assert_eq!(trimmed, text, "no white space at the ends");
    }
    assert!(!page.title.contains('\n'), "the title is one line: {:?}", page.title);
    for link in page.links.iter().chain(&page.canonical) {
        assert_eq!(crate::url::normalize(link).as_ref(), Some(link), "links are absolute and normal");
        assert!(crate::url::site(link).is_some(), "links have a site: {link}");
    }
    let mut links: Vec<&String> = page.links.iter().collect();
    links.sort_unstable();
    links.dedup();
    assert_eq!(links.len(), page.links.len(), "no link twice");
}

#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod tests;
