//! From bytes to text, title and links.
//!
//! A crawl hands over bodies: bytes with a declared type that is often wrong and a charset that is
//! often missing. What the rest of the system wants is text in lines, a title, and absolute links.
//! The naive way is to build a tree with a browser-grade parser and walk it; on a hostile page that
//! recurses until the stack ends, or spends quadratic time in the attribute list. So nothing here
//! builds a tree: HTML is one pass of a tokenizer over the bytes, whose events drive a small state
//! machine of bounded size, and everything else (PDF, PostScript, Office) runs under limits of time
//! and size.
//!
//! ```
//! use onionskin_extract::{Hints, HtmlExtractor, Page};
//!
//! let mut extractor = HtmlExtractor::new();
//! let mut page = Page::default();
//! let hints = Hints { url: Some("http://example.org/a/"), ..Hints::default() };
//! extractor.extract(b"<title>T</title><p>One &amp; <b>two</b><p><a href=b>three</a>", &hints, &mut page);
//! assert_eq!(page.text, "One & two\n\nthree");
//! assert_eq!(page.links, ["http://example.org/a/b"]);
//! ```
//!
//! - [`Extractor`]: every kind of document, by what it is declared as and by what it is.
//! - [`HtmlExtractor`]: HTML alone, the hot path.
//! - [`url`]: normal forms, sites, and the keys archives sort by.

mod charset;
mod extractor;
mod html;
mod media;
mod office;
mod pdf;
mod text;
mod tool;
pub mod url;

pub use extractor::{ExtractError, ExtractOptions, Extractor, PdfTool};
pub use html::{HtmlExtractor, fuzz_html};
pub use media::{MediaType, media_type_of_extension};
pub use pdf::{PDF_THREAD_NAME, pdf_worker};

/// What a document says, apart from how it says it.
///
/// Made to be reused: [`Page::clear`] keeps the buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The visible text, in lines, without control characters other than `\n` and `\t`. Except in
    /// plain text, which is kept as it is, white space is collapsed, at most one empty line stands
    /// in a row, and none at either end.
    pub text: String,
    /// The title, in one line; empty when there is none.
    pub title: String,
    /// Where the page links to: absolute, normalised, http and https only, in order of appearance,
    /// no repeats.
    pub links: Vec<String>,
    /// Links of the page that are not among them, since they come after as many as are kept of one
    /// page; a repeat counts again.
    pub links_over_limit: u64,
    /// Links that are relative to the page, whose own address is not known.
    pub links_unresolved: u64,
    /// The address the page gives for itself (`link rel=canonical`), normalised. A claim, never a
    /// proof.
    pub canonical: Option<String>,
    /// What the page asks of robots.
    pub robots: Robots,
    /// The encoding the bytes were read in, by its WHATWG name; empty where bytes have no charset,
    /// as in a PDF.
    pub charset: &'static str,
}

impl Page {
    /// Empties the page and keeps its buffers.
    pub fn clear(&mut self) {
        self.text.clear();
        self.title.clear();
        self.links.clear();
        self.links_over_limit = 0;
        self.links_unresolved = 0;
        self.canonical = None;
        self.robots = Robots::default();
        self.charset = "";
    }
}

/// The wishes of `<meta name=robots>` that matter to those who show or follow a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Robots {
    /// Not to be listed.
    pub noindex: bool,
    /// Its links are not to be followed.
    pub nofollow: bool,
    /// No copy is to be shown.
    pub noarchive: bool,
}

impl Robots {
    /// Adds what a comma-separated list such as `noindex, nofollow` asks for; the value of a robots
    /// `meta` or of an `X-Robots-Tag` header.
    pub fn add(&mut self, directives: &str) {
        for word in directives.split(|c: char| c == ',' || c.is_ascii_whitespace()) {
            if word.eq_ignore_ascii_case("none") {
                self.noindex = true;
                self.nofollow = true;
            } else if word.eq_ignore_ascii_case("noindex") {
                self.noindex = true;
            } else if word.eq_ignore_ascii_case("nofollow") {
                self.nofollow = true;
            } else if word.eq_ignore_ascii_case("noarchive") {
                self.noarchive = true;
            }
        }
    }
}

/// What is known of a document from outside it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hints<'a> {
    /// Its address: what links are relative to, and whose top-level domain helps to guess the
    /// charset.
    pub url: Option<&'a str>,
    /// The charset of the HTTP `Content-Type`.
    pub charset: Option<&'a str>,
}
