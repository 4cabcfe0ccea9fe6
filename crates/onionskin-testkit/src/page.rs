//! Pages written out: as plain text, as a line of JSON, as HTML in some charset.

use crate::{
    draft::{Draft, push_number},
    html::{self, Charset, Markup},
    web::{Content, Link, Location, Web},
};

/// One page of a web, written out in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GeneratedPage {
    /// Its number.
    pub index: u64,
    /// Its address.
    pub url: String,
    /// What it says.
    pub text: String,
    /// How it says it on the web; in [`GeneratedPage::charset`].
    pub html: Vec<u8>,
    /// The encoding of the HTML.
    pub charset: Charset,
}

/// Writes pages of a web, in any order, reusing its buffers. Make one for each thread.
#[derive(Clone, Debug)]
pub struct Composer<'w> {
    web: &'w Web,
    draft: Draft,
    positions: Vec<u32>,
    links: Vec<Link>,
    text: Vec<u8>,
    html: Vec<u8>,
    encoded: Vec<u8>,
}

impl<'w> Composer<'w> {
    /// A composer for a web.
    pub fn new(web: &'w Web) -> Composer<'w> {
        Composer {
            web,
            draft: Draft::new(),
            positions: Vec::new(),
            links: Vec::new(),
            text: Vec::new(),
            html: Vec::new(),
            encoded: Vec::new(),
        }
    }

    pub(crate) fn draft(&mut self, page: u64) -> (&Draft, Content, Location) {
        let location = self.web.locate(page);
        let content = self.web.content(location);
        self.web.compose(&content, &mut self.draft, &mut self.positions);
        (&self.draft, content, location)
    }

    /// What a page says, blocks parted by line ends.
    pub fn text(&mut self, page: u64) -> &str {
        self.draft(page);
        self.text.clear();
        self.draft.write_text(self.web.vocabulary(self.draft.script), b"\n", &mut self.text);
        std::str::from_utf8(&self.text).expect("vocabularies are text")
    }

    /// A page as HTML, and its charset.
    pub fn html(&mut self, page: u64) -> (&[u8], Charset) {
        let (_, _, location) = self.draft(page);
        self.web.links(location, &mut self.links);
        let markup = Markup::new(self.web, location, self.draft.script);
        self.html.clear();
        html::write(self.web, location, &self.draft, &self.links, &markup, &mut self.html);
        match markup.charset {
            Charset::Utf8 => (&self.html, markup.charset),
            other => {
                self.encoded.clear();
                other.encode(
                    std::str::from_utf8(&self.html).expect("vocabularies are text"),
                    &mut self.encoded,
                );
                (&self.encoded, other)
            }
        }
    }

    /// Appends `{"id":…,"url":…,"text":…}` and a line end.
    pub fn push_json_line(&mut self, page: u64, out: &mut Vec<u8>) {
        let (_, _, location) = self.draft(page);
        out.extend_from_slice(b"{\"id\":\"");
        push_number(out, page);
        out.extend_from_slice(b"\",\"url\":\"");
        self.web.push_url(location, out);
        out.extend_from_slice(b"\",\"text\":\"");
        // Nothing in a generated text needs escaping but the line ends between its blocks.
        self.draft.write_text(self.web.vocabulary(self.draft.script), b"\\n", out);
        out.extend_from_slice(b"\"}\n");
    }

    /// A page with everything.
    pub fn page(&mut self, index: u64) -> GeneratedPage {
        let text = self.text(index).to_owned();
        let url = self.web.url(index);
        let (html, charset) = self.html(index);
        GeneratedPage { index, url, text, html: html.to_vec(), charset }
    }
}

impl Web {
    /// All pages, in order.
    pub fn pages(&self) -> impl Iterator<Item = GeneratedPage> + '_ {
        let mut composer = Composer::new(self);
        (0..self.n_pages()).map(move |page| composer.page(page))
    }

    /// One page. For many of them, keep a [`Composer`].
    pub fn page_number(&self, index: u64) -> GeneratedPage {
        Composer::new(self).page(index)
    }

    /// The encoding of a page's HTML.
    pub fn charset(&self, page: u64) -> Charset {
        let location = self.locate(page);
        Markup::new(self, location, self.content(location).script).charset
    }
}
