//! What to read out of the inputs, and within which limits.

use std::fmt;
use std::str::FromStr;

use onionskin_extract::{ExtractOptions, url};

use crate::decode::ZSTD_WINDOW_LOG;
use crate::fields::FieldNames;

/// How inputs are read. Everything here may change the documents or the borders of tasks, so two
/// runs that should agree must have equal options.
#[derive(Clone, Debug)]
pub struct Options {
    /// The field or column with the text, in JSON lines, Parquet, CSV and TSV. A dot goes into a
    /// nested object: `metadata.text`; a field whose own name has the dot is found as well. Of
    /// several names the first that a record of JSON, or the header of a table, has is taken; null
    /// is as good as absent in JSON.
    pub text_field: FieldNames,
    /// The field or column with the document's own name.
    pub id_field: FieldNames,
    /// The field or column with the address.
    pub url_field: FieldNames,
    /// The field or column with the time of the fetch: a date as WARC files write it, in JSON
    /// lines, CSV and TSV; in Parquet also a timestamp.
    pub date_field: FieldNames,
    /// The text field holds HTML, to be extracted like a page.
    pub text_is_html: bool,
    /// Compute the SHA-1 of texts in JSON lines, Parquet, CSV and TSV as well. Equal texts are
    /// found without it; it tells those that are equal to the byte from those that differ in case,
    /// punctuation or white space, and takes an eighth of a quick scan.
    pub text_digests: bool,
    /// Read every input as this format, whatever it looks like.
    pub format: Option<Format>,
    /// A line, record or file larger than this (decoded) is reported and skipped, never held in
    /// memory whole.
    pub max_record_bytes: u64,
    /// A page of Parquet that takes more memory, in bytes, is not read, nor is the rest of its row
    /// group.
    pub max_page_bytes: u64,
    /// A page that takes more is one that [`Visitor::before_large`](crate::Visitor::before_large)
    /// is asked about.
    pub small_page_bytes: u64,
    /// A zstd frame may ask for a window of up to 2 to this many bytes, where a whole input is
    /// compressed.
    pub max_window_log: u32,
    /// About how much input makes a task. A constant in production: the borders of tasks must not
    /// depend on the number of threads or the memory of a machine.
    pub task_bytes: u64,
    /// Take HTTP responses of any status from WARC files, not only 200.
    pub any_status: bool,
    /// Follow symbolic links that lead out of a folder. Those that lead to a place in it are
    /// followed anyway.
    pub follow_links: bool,
    /// The folders in a folder are hosts, whatever their names.
    pub hosts: bool,
    /// Where files come from; their URLs are this and their paths.
    pub base_url: Option<BaseUrl>,
    /// Take what crawls leave behind and nobody reads, robots.txt and CDX indexes, for documents.
    pub crawl_files: bool,
    /// How text is taken out of pages and files.
    pub extract: ExtractOptions,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            text_field: FieldNames::TEXT.into(),
            id_field: FieldNames::ID.into(),
            url_field: FieldNames::URL.into(),
            date_field: FieldNames::DATE.into(),
            text_is_html: false,
            text_digests: false,
            format: None,
            max_record_bytes: 64 << 20,
            max_page_bytes: u64::MAX,
            small_page_bytes: u64::MAX,
            max_window_log: ZSTD_WINDOW_LOG,
            task_bytes: 8 << 20,
            any_status: false,
            follow_links: false,
            hosts: false,
            base_url: None,
            crawl_files: false,
            extract: ExtractOptions::default(),
        }
    }
}

impl Options {
    /// The limit as a length of memory. Also keeps `task_bytes` above zero, without which nothing
    /// would advance.
    pub(crate) fn max_record(&self) -> usize {
        usize::try_from(self.max_record_bytes).unwrap_or(usize::MAX)
    }

    pub(crate) fn task_step(&self) -> u64 {
        self.task_bytes.max(1)
    }
}

/// Where the files of a folder come from: an http or https URL that ends in a slash, without a
/// query.
///
/// ```
/// use onionskin_corpus::BaseUrl;
/// let base: BaseUrl = "HTTP://Wiki.Test/docs?x".parse().unwrap();
/// assert_eq!(base.as_str(), "http://wiki.test/docs/");
/// assert!("wiki.test".parse::<BaseUrl>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl(String);

impl BaseUrl {
    /// The URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Not the URL of a site or a folder on one.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no base of URLs; write one as in http://example.org/docs/")]
pub struct NotABase {
    /// What was given.
    pub text: String,
}

impl FromStr for BaseUrl {
    type Err = NotABase;

    fn from_str(text: &str) -> Result<BaseUrl, NotABase> {
        let url = url::normalize(text).ok_or_else(|| NotABase { text: text.to_owned() })?;
        let path = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
        Ok(BaseUrl(format!("{path}/")))
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What an input is made of. Compression is not part of it: gzip and zstd are seen by their magic
/// bytes in every format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Format {
    /// WARC, WET or ARC.
    Warc,
    /// One JSON object a line.
    Jsonl,
    /// Apache Parquet.
    Parquet,
    /// Comma-separated values under a header row.
    Csv,
    /// Tab-separated values under a header row.
    Tsv,
    /// A WACZ archive: a zip with WARC files inside.
    Wacz,
    /// Files that are one document each: HTML, text, PDF, PostScript, DOCX, ODT.
    Tree,
}

impl Format {
    /// Every format, in the order of their names' usual listing.
    pub const ALL: [Format; 7] =
        [Format::Warc, Format::Jsonl, Format::Parquet, Format::Csv, Format::Tsv, Format::Wacz, Format::Tree];

    /// The name, as it stands in options and manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Warc => "warc",
            Format::Jsonl => "jsonl",
            Format::Parquet => "parquet",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::Wacz => "wacz",
            Format::Tree => "tree",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A format name that is not one of ours.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {name:?}; known: warc, jsonl, parquet, csv, tsv, wacz, tree")]
pub struct UnknownFormat {
    /// What was given.
    pub name: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        Format::ALL
            .into_iter()
            .find(|format| format.as_str() == name)
            .ok_or_else(|| UnknownFormat { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_names_round_trip() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let message = "json".parse::<Format>().unwrap_err().to_string();
        assert!(Format::ALL.iter().all(|format| message.contains(format.as_str())), "{message}");
    }
}
