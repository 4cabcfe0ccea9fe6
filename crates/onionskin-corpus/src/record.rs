//! What JSON lines, CSV and Parquet have in common: a record is a text with a name and an address beside it.

use onionskin_extract::url;
use sha1::{Digest, Sha1};

use crate::document::{Document, Visitor};
use crate::options::Options;

/// A record as it was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextRecord<'a> {
    pub(crate) source: u32,
    pub(crate) offset: u64,
    pub(crate) id: Option<&'a str>,
    pub(crate) url: Option<&'a str>,
    pub(crate) text: &'a str,
}

impl TextRecord<'_> {
    /// Makes a document of the record and hands it out.
    pub(crate) fn emit(self, _options: &Options, visitor: &mut dyn Visitor) {
        let normalised = self.url.and_then(url::normalize);
        let url = normalised.as_deref().or(self.url);
        visitor.document(Document {
            source: self.source,
            offset: self.offset,
            id: self.id,
            url,
            site: normalised.as_deref().and_then(url::site),
            media_type: "text/plain",
            bytes: self.text.len() as u64,
            text: self.text,
            payload_sha1: Some(Sha1::digest(self.text.as_bytes()).into()),
            ..Document::default()
        });
    }
}
