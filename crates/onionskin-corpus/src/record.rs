//! From a record, however it was stored, to a document.
//!
//! There are two kinds: a text with a name and an address beside it (JSON lines, CSV, Parquet), and
//! a payload whose text must be extracted first (WARC, files).

use onionskin_extract::{ExtractError, Extractor, Hints, Page, url};
use onionskin_warc::parse_date;
use sha1::{Digest, Sha1};

use crate::document::{BadReason, Document, Loss, SkipReason, Visitor, cut_at};
use crate::options::Options;

/// Names of media types are foreign words; of those that are longer, the beginning counts.
const LONGEST_MEDIA_TYPE: usize = 100;

/// What turns payloads into text, kept by a worker between documents.
pub(crate) struct Extraction {
    pub(crate) extractor: Extractor,
    pub(crate) page: Page,
}

impl Extraction {
    pub(crate) fn new(options: &Options) -> Extraction {
        Extraction { extractor: Extractor::new(options.extract.clone()), page: Page::default() }
    }

    /// A page of many megabytes should not be paid for by every worker until the end.
    pub(crate) fn shrink(&mut self) {
        if self.page.text.capacity() > 4 << 20 {
            self.page.text = String::new();
        }
    }
}

/// A text as it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextRecord<'a> {
    pub(crate) source: u32,
    pub(crate) offset: u64,
    pub(crate) id: Option<&'a str>,
    pub(crate) url: Option<&'a str>,
    pub(crate) fetched_at: Option<i64>,
    pub(crate) text: &'a str,
}

impl TextRecord<'_> {
    /// Makes a document of the record and hands it out.
    pub(crate) fn emit(self, options: &Options, extraction: &mut Extraction, visitor: &mut dyn Visitor) {
        let normalised = self.url.and_then(url::normalized);
        let url = normalised.as_deref().or(self.url);
        if options.text_is_html {
            let payload = Payload {
                source: self.source,
                offset: self.offset,
                id: self.id,
                url,
                bytes: self.text.as_bytes(),
                declared: Some("text/html; charset=utf-8"),
                fetched_at: self.fetched_at,
                ..Payload::default()
            };
            return payload.emit(extraction, visitor);
        }
        visitor.document(Document {
            source: self.source,
            offset: self.offset,
            id: self.id,
            url,
            site: normalised.as_deref().and_then(url::site),
            media_type: "text/plain",
            bytes: self.text.len() as u64,
            text: self.text,
            fetched_at: self.fetched_at,
            payload_sha1: options.text_digests.then(|| Sha1::digest(self.text.as_bytes()).into()),
            ..Document::default()
        });
    }
}

/// The time that a field of a record spells. Ten or twelve digits are seconds of some clock as a
/// rule, and no date.
pub(crate) fn fetch_date(text: &str) -> Option<i64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && !matches!(text.len(), 8 | 14) { None } else { parse_date(text) }
}

/// Bytes that hold a text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Payload<'a> {
    pub(crate) source: u32,
    pub(crate) offset: u64,
    pub(crate) id: Option<&'a str>,
    /// Normalised already.
    pub(crate) url: Option<&'a str>,
    pub(crate) bytes: &'a [u8],
    /// The media type somebody says it has, perhaps with a charset.
    pub(crate) declared: Option<&'a str>,
    pub(crate) fetched_at: Option<i64>,
    /// Computed when not known.
    pub(crate) sha1: Option<[u8; 20]>,
    /// What the HTTP head says the address should be; what the page itself says comes first.
    pub(crate) canonical: Option<&'a str>,
}

impl Payload<'_> {
    /// Extracts the text and hands out the document, or tells why there is none.
    pub(crate) fn emit(self, extraction: &mut Extraction, visitor: &mut dyn Visitor) {
        let Extraction { extractor, page } = extraction;
        let hints = Hints { url: self.url, charset: None };
        let bad = |reason| Loss::record(self.offset, self.bytes.len() as u64, reason).of(self.source);
        let mut before_large = |bytes| visitor.before_large(bytes);
        before_large(self.bytes.len() as u64);
        let extracted = extractor.extract_gently(self.bytes, self.declared, &hints, page, &mut before_large);
        let media_type = match extracted {
            Ok(media_type) => media_type,
            Err(ExtractError::Unsupported { mut media_type }) => {
                cut_at(&mut media_type, LONGEST_MEDIA_TYPE);
                return visitor.skipped(SkipReason::Unsupported { media_type });
            }
            Err(ExtractError::ToolMissing { tool }) => {
                return visitor.skipped(SkipReason::ToolMissing { tool: tool.to_owned() });
            }
            Err(ExtractError::TooLarge { limit }) => {
                return visitor.bad_record(bad(BadReason::TooLarge { limit }));
            }
            Err(error) => {
                return visitor.bad_record(bad(BadReason::ExtractionFailed { detail: error.to_string() }));
            }
        };
        visitor.document(Document {
            source: self.source,
            offset: self.offset,
            id: self.id,
            url: self.url,
            site: self.url.and_then(url::site),
            media_type: media_type.as_str(),
            bytes: self.bytes.len() as u64,
            title: &page.title,
            text: &page.text,
            links: &page.links,
            links_over_limit: page.links_over_limit,
            links_unresolved: page.links_unresolved,
            canonical: page.canonical.as_deref().or(self.canonical),
            fetched_at: self.fetched_at,
            payload_sha1: Some(self.sha1.unwrap_or_else(|| Sha1::digest(self.bytes).into())),
            ..Document::default()
        });
    }
}
