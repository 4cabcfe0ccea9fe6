//! What comes out of an input: documents, records that could not be read, and records that are no
//! documents.

use std::fmt;
use std::ops::Range;

use crate::decode::asks_for_window;

/// One document, lent to a [`Visitor`] for the time of the call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Document<'a> {
    /// Index into the sources.
    pub source: u32,
    /// Where in the source it begins: a byte offset in files (of the decoded bytes in compressed
    /// JSON lines and CSV, of the compressed member in WARC), the row in Parquet, the number of the
    /// file in a tree. [`Source::place`](crate::Source::place) spells it.
    pub offset: u64,
    /// The document's own name: the id field, the WARC record id, or the path within a tree.
    pub id: Option<&'a str>,
    /// Its address: normalised when it parses, else as it was given.
    pub url: Option<&'a str>,
    /// The host of the address.
    pub site: Option<&'a str>,
    /// What the text was taken from, such as `text/html`; `warc/revisit` for a revisit.
    pub media_type: &'a str,
    /// Size of the payload the text was taken from.
    pub bytes: u64,
    /// The title, empty when there is none.
    pub title: &'a str,
    /// The text.
    pub text: &'a str,
    /// Addresses the document links to: absolute, normalised, in order, without repeats.
    pub links: &'a [String],
    /// Links that the document has beyond those that are kept of one.
    pub links_over_limit: u64,
    /// Links that are relative to the document, whose own address is not known.
    pub links_unresolved: u64,
    /// The address the document itself says it should have.
    pub canonical: Option<&'a str>,
    /// When it was fetched, in microseconds since 1970, UTC.
    pub fetched_at: Option<i64>,
    /// SHA-1 of the payload: a WARC record's own digest where it is usable (it is that of the body
    /// before content encodings are undone), else computed from the decoded payload. Of a record
    /// that is nothing but a text only on request
    /// ([`Options::text_digests`](crate::Options::text_digests)).
    pub payload_sha1: Option<[u8; 20]>,
    /// The record says only that the payload with this digest was met again: there is no text, and
    /// the document counts as an exact copy of the one with the same `payload_sha1`.
    pub revisit: bool,
    /// The address at which a revisited payload was first met, as the record gives it.
    pub revisit_of: Option<&'a str>,
}

/// A record that could not be read, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecord {
    /// Index into the sources.
    pub source: u32,
    /// Where, in the terms of [`Document::offset`].
    pub offset: u64,
    /// Why.
    pub reason: BadReason,
    /// How many records are lost: 1 where that cannot be known.
    pub records: u64,
    /// How many bytes of the input they take, as far as that can be known.
    pub bytes: u64,
}

/// What is lost of a source: a [`BadRecord`] before the number of its source is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) offset: u64,
    pub(crate) reason: BadReason,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
}

impl Loss {
    /// A record of so many bytes.
    pub(crate) fn record(offset: u64, bytes: u64, reason: BadReason) -> Loss {
        Loss { offset, reason, records: 1, bytes }
    }

    /// So many records. The number comes from the file itself and may be anything; sums of it must
    /// not overflow.
    pub(crate) fn records(mut self, records: u64) -> Loss {
        self.records = records.clamp(1, 1 << 40);
        self
    }

    pub(crate) fn of(self, source: u32) -> BadRecord {
        let Loss { offset, reason, records, bytes } = self;
        BadRecord { source, offset, reason, records, bytes }
    }
}

/// An input failed while it was read: a disk, a share, a file that is gone or got shorter. It is
/// no bad record: nothing is known of what comes after it, and the run has to stop.
/// [`Source::failure_place`](crate::Source::failure_place) spells the place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFailure {
    /// Index into the sources.
    pub source: u32,
    /// The number of the file in a tree.
    pub file: Option<u64>,
    /// The byte of the file, as it is stored.
    pub byte: u64,
    /// What the system said.
    pub detail: String,
}

/// A file of a folder that is not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedFile {
    /// Index into the sources.
    pub source: u32,
    /// Which, in the terms of [`Document::offset`].
    pub offset: u64,
    /// Why.
    pub reason: SkipReason,
    /// What the system said, or where a link leads; empty where the reason says all.
    pub detail: String,
}

/// Why a record could not be read. Counted by [`code`](BadReason::code), shown by `Display`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadReason {
    /// The line is not JSON.
    BrokenJson {
        /// What the parser said.
        detail: String,
    },
    /// The line is JSON, but not an object.
    NotAnObject,
    /// The record has no text field, or it is null. A scan reports it by [`Visitor::no_text`].
    MissingText,
    /// The text field holds something other than a string.
    TextNotAString,
    /// The bytes are not UTF-8.
    InvalidUtf8,
    /// The record is larger than the limit.
    TooLarge {
        /// The limit in bytes.
        limit: u64,
    },
    /// A page of a Parquet file that there is no memory for; the rest of its row group is lost.
    LargePage {
        /// What a page may take, in bytes.
        limit: u64,
    },
    /// The text has more words than can be analysed in the memory there is.
    NeedsMemory {
        /// The memory in bytes.
        limit: u64,
    },
    /// The input ends in the middle of a record or of compressed data.
    CutOff,
    /// Compressed data that does not decode.
    Corrupt {
        /// What the decoder said.
        detail: String,
    },
    /// A CSV record with more or fewer fields than its header, or otherwise broken.
    BrokenCsv {
        /// What is wrong with it.
        detail: String,
    },
    /// A Parquet file, or part of one, that does not decode.
    BrokenParquet {
        /// What the reader said.
        detail: String,
    },
    /// The columns asked for are not there.
    MissingColumn {
        /// The column asked for.
        column: String,
        /// The columns there are.
        known: String,
    },
    /// A damaged place in a WARC, ARC or WACZ file.
    BrokenWarc {
        /// What is wrong with it.
        detail: String,
    },
    /// A response that is not an HTTP message.
    BrokenHttp {
        /// What is wrong with it.
        detail: String,
    },
    /// The text could not be extracted.
    ExtractionFailed {
        /// What the extractor said.
        detail: String,
    },
    /// The operating system or the object store failed. A task tells of it by
    /// [`Visitor::failed`].
    Io {
        /// What it said.
        detail: String,
    },
}

impl BadReason {
    /// A short name that never changes, to count by.
    pub fn code(&self) -> &'static str {
        match self {
            BadReason::BrokenJson { .. } => "broken_json",
            BadReason::NotAnObject => "not_an_object",
            BadReason::MissingText => "missing_text",
            BadReason::TextNotAString => "text_not_a_string",
            BadReason::InvalidUtf8 => "invalid_utf8",
            BadReason::TooLarge { .. } | BadReason::NeedsMemory { .. } | BadReason::LargePage { .. } => {
                "too_large"
            }
            BadReason::CutOff => "cut_off",
            BadReason::Corrupt { .. } => "corrupt",
            BadReason::BrokenCsv { .. } => "broken_csv",
            BadReason::BrokenParquet { .. } => "broken_parquet",
            BadReason::MissingColumn { .. } => "missing_column",
            BadReason::BrokenWarc { .. } => "broken_warc",
            BadReason::BrokenHttp { .. } => "broken_http",
            BadReason::ExtractionFailed { .. } => "extraction_failed",
            BadReason::Io { .. } => "io",
        }
    }

    /// Cuts what foreign bytes made long, at about so many bytes.
    pub fn shorten(&mut self, bytes: usize) {
        let cut = |text: &mut String| {
            if text.len() > bytes {
                cut_at(text, bytes.saturating_sub('…'.len_utf8()));
                text.push('…');
                text.shrink_to_fit();
            }
        };
        match self {
            BadReason::MissingColumn { column, known } => [column, known].into_iter().for_each(cut),
            BadReason::BrokenJson { detail }
            | BadReason::Corrupt { detail }
            | BadReason::BrokenCsv { detail }
            | BadReason::BrokenParquet { detail }
            | BadReason::BrokenWarc { detail }
            | BadReason::BrokenHttp { detail }
            | BadReason::ExtractionFailed { detail }
            | BadReason::Io { detail } => cut(detail),
            _ => {}
        }
    }

    /// Sorts a failed read: an end too early and undecodable data are the input's fault, the rest
    /// is the machine's.
    pub(crate) fn from_io(error: &std::io::Error) -> BadReason {
        use std::io::ErrorKind;
        match error.kind() {
            ErrorKind::UnexpectedEof => BadReason::CutOff,
            // What flate2 and zstd answer to broken data.
            ErrorKind::InvalidInput | ErrorKind::InvalidData | ErrorKind::Other
                if error.raw_os_error().is_none() =>
            {
                // The zstd reader has no kind of its own for an input that ends inside a frame.
                if error.to_string().contains("incomplete frame") {
                    BadReason::CutOff
                } else if asks_for_window(error) {
                    let detail = "a zstd frame asks for a larger window than there is memory for".to_owned();
                    BadReason::Corrupt { detail }
                } else {
                    BadReason::Corrupt { detail: error.to_string() }
                }
            }
            _ => BadReason::Io { detail: error.to_string() },
        }
    }
}

/// Cuts a text at a number of bytes, or before the character that they end in.
pub(crate) fn cut_at(text: &mut String, bytes: usize) {
    let end = (0..=bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    text.truncate(end.unwrap_or(0));
}

impl fmt::Display for BadReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadReason::BrokenJson { detail } => write!(f, "broken JSON: {detail}"),
            BadReason::NotAnObject => f.write_str("the line is not a JSON object"),
            BadReason::MissingText => f.write_str("no text field"),
            BadReason::TextNotAString => f.write_str("the text field is not a string"),
            BadReason::InvalidUtf8 => f.write_str("not UTF-8"),
            BadReason::TooLarge { limit } => write!(f, "larger than {limit} bytes"),
            BadReason::LargePage { limit } => {
                write!(f, "a page needs more than {limit} bytes of memory; its row group is not read further")
            }
            BadReason::NeedsMemory { limit } => {
                write!(f, "its words need more than {limit} bytes of memory")
            }
            BadReason::CutOff => f.write_str("the input is cut off"),
            BadReason::Corrupt { detail } => write!(f, "corrupt compressed data: {detail}"),
            BadReason::BrokenCsv { detail } => write!(f, "broken CSV record: {detail}"),
            BadReason::BrokenParquet { detail } => write!(f, "broken Parquet: {detail}"),
            BadReason::MissingColumn { column, known } => {
                write!(f, "no column {column}; there are {known}")
            }
            BadReason::BrokenWarc { detail } => write!(f, "damaged WARC: {detail}"),
            BadReason::BrokenHttp { detail } => write!(f, "not an HTTP response: {detail}"),
            BadReason::ExtractionFailed { detail } => write!(f, "no text could be extracted: {detail}"),
            BadReason::Io { detail } => write!(f, "cannot be read: {detail}"),
        }
    }
}

/// A record that is read and is no document; nothing is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SkipReason {
    /// A file in a folder that is of no kind we know.
    UnknownFile,
    /// A file or folder in a folder that cannot be opened.
    UnreadableFile,
    /// A symbolic link that leads out of the folder that was named.
    LinkOutside,
    /// A link of a page that has more than are kept.
    LinkOverLimit,
    /// A robots.txt.
    RobotsFile,
    /// An index of an archive: CDX or CDXJ.
    CdxIndex,
    /// A record whose text is null or not there.
    NoText,
    /// A media type without text, such as an image.
    Unsupported {
        /// The media type.
        media_type: String,
    },
    /// A tool that this media type needs is not installed.
    ToolMissing {
        /// The tool's name.
        tool: String,
    },
    /// A WARC record of another type: `request`, `metadata`, `warcinfo`, …
    RecordType {
        /// The type.
        name: &'static str,
    },
    /// An HTTP response with a status other than 200: redirects, errors.
    Status {
        /// The status.
        status: u16,
    },
}

impl SkipReason {
    /// A short name that never changes, to count by.
    pub fn code(&self) -> &'static str {
        match self {
            SkipReason::UnknownFile => "unknown_file",
            SkipReason::UnreadableFile => "unreadable_file",
            SkipReason::LinkOutside => "link_outside",
            SkipReason::LinkOverLimit => "link_over_limit",
            SkipReason::RobotsFile => "robots_file",
            SkipReason::CdxIndex => "cdx_index",
            SkipReason::NoText => "no_text",
            SkipReason::Unsupported { .. } => "unsupported",
            SkipReason::ToolMissing { .. } => "tool_missing",
            SkipReason::RecordType { .. } => "record_type",
            SkipReason::Status { .. } => "status",
        }
    }
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::UnknownFile => f.write_str("file of unknown kind"),
            SkipReason::UnreadableFile => f.write_str("unreadable file"),
            SkipReason::LinkOutside => f.write_str("symbolic link out of the folder"),
            SkipReason::LinkOverLimit => f.write_str("link beyond those kept of one page"),
            SkipReason::RobotsFile => f.write_str("robots.txt"),
            SkipReason::CdxIndex => f.write_str("CDX index"),
            SkipReason::NoText => f.write_str("record without a text"),
            SkipReason::Unsupported { media_type } => write!(f, "no text in {media_type}"),
            SkipReason::ToolMissing { tool } => write!(f, "{tool} is not installed"),
            SkipReason::RecordType { name } => write!(f, "{name} record"),
            SkipReason::Status { status } => write!(f, "HTTP status {status}"),
        }
    }
}

/// Receives what the tasks read, in the order of the input within each task.
pub trait Visitor {
    /// Whether the record at an offset of the source is wanted. It is asked before the record is
    /// parsed; one that is not wanted is passed over in silence.
    fn wants(&mut self, _offset: u64) -> bool {
        true
    }
    /// Where the next record that is wanted begins, at an offset of the source or after it, and
    /// before which offset it ends; `None` when none is wanted from there on. A reader that can
    /// jumps there and reads no more than that; whoever says where a record begins must know it.
    fn next_wanted(&mut self, from: u64) -> Option<Range<u64>> {
        Some(from..u64::MAX)
    }
    /// Called before a record of this size, in bytes, is in memory, and again as it grows. It may
    /// wait until there is room.
    fn before_large(&mut self, _bytes: u64) {}
    /// A document.
    fn document(&mut self, document: Document<'_>);
    /// A record that could not be read.
    fn bad_record(&mut self, bad: BadRecord);
    /// A record that is no document.
    fn skipped(&mut self, reason: SkipReason);
    /// A record, at an offset of a source, whose text is null or not there. `fields` lists those
    /// that it has, `None` where the text is among them.
    fn no_text(&mut self, _place: (u32, u64), _fields: &mut dyn FnMut() -> Option<String>) {
        self.skipped(SkipReason::NoText);
    }
    /// A file of a folder that is not read, by name.
    fn skipped_file(&mut self, file: SkippedFile) {
        self.skipped(file.reason);
    }
    /// The input failed. What came from the same task before, bad records above all, is not to be
    /// trusted.
    fn failed(&mut self, failure: InputFailure);
}
