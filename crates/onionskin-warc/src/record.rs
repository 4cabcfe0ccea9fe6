//! What a reader hands out: records, and the places where there should have been one.

use crate::Headers;
use crate::date::parse_date;

/// The kind of a record, from `WARC-Type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordKind {
    /// What a server answered, usually a whole HTTP response.
    Response,
    /// A payload without its protocol headers.
    Resource,
    /// Another record in another form, such as the text of a page (WET).
    Conversion,
    /// A visit that found what an earlier one had found.
    Revisit,
    /// Something said about another record.
    Metadata,
    /// What the crawler asked for.
    Request,
    /// About the file; also the first record of an ARC file.
    WarcInfo,
    /// A later segment of a record. The reader joins segments that follow each other, so this kind
    /// is only met when writing.
    Continuation,
    /// Any other type.
    Other,
}

impl RecordKind {
    pub(crate) fn from_type(name: &str) -> RecordKind {
        const KINDS: [(&str, RecordKind); 8] = [
            ("response", RecordKind::Response),
            ("resource", RecordKind::Resource),
            ("conversion", RecordKind::Conversion),
            ("revisit", RecordKind::Revisit),
            ("metadata", RecordKind::Metadata),
            ("request", RecordKind::Request),
            ("warcinfo", RecordKind::WarcInfo),
            ("continuation", RecordKind::Continuation),
        ];
        let found = KINDS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map_or(RecordKind::Other, |&(_, kind)| kind)
    }

    /// The spelling in `WARC-Type`; `other` for [`RecordKind::Other`].
    pub fn as_str(self) -> &'static str {
        match self {
            RecordKind::Response => "response",
            RecordKind::Resource => "resource",
            RecordKind::Conversion => "conversion",
            RecordKind::Revisit => "revisit",
            RecordKind::Metadata => "metadata",
            RecordKind::Request => "request",
            RecordKind::WarcInfo => "warcinfo",
            RecordKind::Continuation => "continuation",
            RecordKind::Other => "other",
        }
    }
}

/// One record, its block in memory.
///
/// A record of an ARC file looks like the WARC record it would be: `WARC-Target-URI`, `WARC-Date`,
/// `WARC-IP-Address` and `Content-Type` are filled in, and the type that the ARC file gave is in
/// `ARC-Content-Type`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// From `WARC-Type`.
    pub kind: RecordKind,
    /// All fields of the record's head.
    pub headers: Headers,
    /// The block, as long as `Content-Length` says or shorter when `truncated`.
    pub block: Vec<u8>,
    /// Where the record begins in the file. In a compressed file this is where its gzip member or
    /// zstd frame begins, also when more records lie in the same one.
    pub offset: u64,
    /// How many bytes of the file hold this record and no other; `None` when it shares a member or
    /// a frame.
    pub stored_len: Option<u64>,
    /// The block is not what its writer held: it was cut off, is damaged, or lacks a segment; a
    /// [`Damage`] follows. What the *writer* left out is in [`Record::declared_truncation`].
    pub truncated: bool,
}

impl Record {
    /// `WARC-Target-URI`, without the angle brackets that some writers put around it.
    pub fn target_uri(&self) -> Option<&str> {
        self.headers.get("WARC-Target-URI").map(unbracketed).filter(|uri| !uri.is_empty())
    }

    /// `WARC-Date`, as written.
    pub fn date(&self) -> Option<&str> {
        self.headers.get("WARC-Date")
    }

    /// `WARC-Date` in microseconds since 1970, UTC; `None` when it is absent or not a date.
    pub fn timestamp_micros(&self) -> Option<i64> {
        self.date().and_then(parse_date)
    }

    /// `WARC-Payload-Digest`, as written: `sha1:` and base 32, as a rule.
    pub fn payload_digest(&self) -> Option<&str> {
        self.headers.get("WARC-Payload-Digest")
    }

    /// `Content-Type` of the block, as written.
    pub fn content_type(&self) -> Option<&str> {
        self.headers.get("Content-Type")
    }

    /// `WARC-Record-ID` without its angle brackets.
    pub fn record_id(&self) -> Option<&str> {
        self.headers.get("WARC-Record-ID").map(unbracketed)
    }

    /// `WARC-Refers-To` without its angle brackets.
    pub fn refers_to(&self) -> Option<&str> {
        self.headers.get("WARC-Refers-To").map(unbracketed)
    }

    /// `WARC-Refers-To-Target-URI` without angle brackets.
    pub fn refers_to_target_uri(&self) -> Option<&str> {
        self.headers.get("WARC-Refers-To-Target-URI").map(unbracketed)
    }

    /// `WARC-Truncated`: why the writer of the file kept only a part, such as `length` or `time`.
    pub fn declared_truncation(&self) -> Option<&str> {
        self.headers.get("WARC-Truncated")
    }

    /// True when the block is an HTTP response (perhaps, in a revisit, only its head).
    pub fn is_http_response(&self) -> bool {
        let is_response = matches!(self.kind, RecordKind::Response | RecordKind::Revisit);
        let declared = self.content_type().is_none_or(|media_type| {
            // Old crawlers left the msgtype out, or wrote another spelling of it.
            media_type
                .trim_start()
                .get(..16)
                .is_some_and(|start| start.eq_ignore_ascii_case("application/http"))
        });
        is_response && declared && self.block.starts_with(b"HTTP/")
    }
}

/// `<uri>` is what the grammar of WARC 1.0 asked for and wget still writes.
fn unbracketed(value: &str) -> &str {
    let inner = value.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
    inner.unwrap_or(value).trim()
}

/// A place in the file where something could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins in the file.
    pub offset: u64,
    /// What is wrong.
    pub kind: DamageKind,
    /// How many bytes were passed over: bytes of the file where a member or a frame could not be
    /// decoded, decoded bytes where decoding worked and the text was wrong.
    pub lost_bytes: u64,
}

/// What is wrong at a place in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum DamageKind {
    /// A gzip member or zstd frame does not decode, or its checksum is wrong.
    #[error("corrupt compressed data")]
    CorruptMember,
    /// The file ends inside a record.
    #[error("the file ends inside a record")]
    CutOff,
    /// The head of a record has no usable length, or does not end.
    #[error("unreadable record header")]
    BadHeader,
    /// A record above [`Limits::max_record_bytes`](crate::Limits), passed over.
    #[error("record above the size limit")]
    TooLarge,
    /// Bytes that belong to no record.
    #[error("bytes outside any record")]
    Garbage,
    /// The block ends elsewhere than `Content-Length` says.
    #[error("record length does not match its block")]
    WrongLength,
    /// A record was written in segments and they do not follow each other in this file.
    #[error("segments of a record are missing")]
    MissingSegment,
}

impl DamageKind {
    /// A short name that stays the same, for counters and logs.
    pub fn code(self) -> &'static str {
        match self {
            DamageKind::CorruptMember => "corrupt-member",
            DamageKind::CutOff => "cut-off",
            DamageKind::BadHeader => "bad-header",
            DamageKind::TooLarge => "too-large",
            DamageKind::Garbage => "garbage",
            DamageKind::WrongLength => "wrong-length",
            DamageKind::MissingSegment => "missing-segment",
        }
    }
}

/// What a [`Reader`](crate::Reader) finds next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// A record.
    Record(Record),
    /// A place where something could not be read; it comes after the record it concerns, if one was
    /// saved.
    Damage(Damage),
}
