//! WARC, WET and ARC records become documents.
//!
//! `response`, `resource` and `conversion` records hold pages; a `revisit` says that a page known
//! by its digest was met again; the others are about the crawl and are counted. A file with a gzip
//! member for each record is cut into byte ranges that workers enter on their own; any other is
//! decoded in order, and handed out in blocks of records.

use std::io::{BufReader, Read, Seek};
use std::ops::Range;

use onionskin_extract::url;
use onionskin_warc::wacz::{Wacz, WaczError};
use onionskin_warc::{
    Damage, DamageKind, HttpProblem, Item, Limits, OpenError, Reader, Record, RecordKind,
    parse_response_gently, read_range,
};

use crate::document::{BadReason, Document, Loss, SkipReason, Visitor};
use crate::options::Options;
use crate::record::{Extraction, Payload};
use crate::source::{Location, Source};
use crate::tree;
use crate::watch::Watch;

/// No block has more records than this, however small they are.
const MAX_RECORDS: usize = 4096;

/// The head of most records is smaller.
const USUAL_HEAD_BYTES: usize = 4 << 10;

pub(crate) fn limits(options: &Options) -> Limits {
    Limits { max_record_bytes: options.max_record_bytes, max_body_bytes: options.max_record_bytes }
}

/// Why a container could not be opened.
pub(crate) fn open_reason(error: &OpenError) -> BadReason {
    match error {
        OpenError::Io(error) => BadReason::from_io(error),
        other => BadReason::BrokenWarc { detail: other.to_string() },
    }
}

/// Records in order, to be worked on elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Records {
    items: Vec<Item>,
    failure: Option<BadReason>,
    pub(crate) input_bytes: u64,
    pub(crate) last: bool,
}

impl Records {
    /// Keeps the records at an offset, and tells when there are later ones. `false` when nothing is
    /// left.
    pub(crate) fn keep_at(&mut self, offset: u64, passed: &mut bool) -> bool {
        self.items.retain(|item| {
            let at = item_offset(item);
            *passed |= at > offset;
            at == offset
        });
        self.failure = None;
        !self.items.is_empty()
    }
}

/// Memory of a record, as far as it is more than the usual head.
fn held_bytes(record: &Record) -> u64 {
    let fields = record.headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>();
    record.block.len() as u64 + fields.saturating_sub(USUAL_HEAD_BYTES) as u64
}

fn item_offset(item: &Item) -> u64 {
    match item {
        Item::Record(record) => record.offset,
        Item::Damage(damage) => damage.offset,
    }
}

/// Cuts the records of a reader into blocks of about the same size.
pub(crate) struct RecordBlocks<R: Read> {
    reader: Reader<R>,
    /// One read ahead, so that the last block is known to be the last.
    ahead: Option<std::io::Result<Item>>,
    begun: bool,
}

impl<R: Read> RecordBlocks<R> {
    pub(crate) fn new(input: R, options: &Options) -> Result<RecordBlocks<R>, OpenError> {
        let reader = Reader::new(input, limits(options))?;
        Ok(RecordBlocks { reader, ahead: None, begun: false })
    }

    /// `before_large` is called with the size of each record before it is in memory.
    pub(crate) fn next_block(
        &mut self,
        block_bytes: u64,
        before_large: &mut dyn FnMut(u64),
    ) -> Option<Records> {
        if !self.begun {
            self.begun = true;
            self.ahead = self.reader.next_item(before_large);
        }
        let mut block = Records::default();
        let mut held = 0;
        loop {
            match self.ahead.take() {
                None => break,
                Some(Ok(item)) => {
                    if let Item::Record(record) = &item {
                        block.input_bytes += record.block.len() as u64;
                        held += held_bytes(record);
                    }
                    block.items.push(item);
                    self.ahead = self.reader.next_item(before_large);
                }
                Some(Err(error)) => {
                    block.failure = Some(BadReason::from_io(&error));
                    break;
                }
            }
            if held >= block_bytes || block.items.len() >= MAX_RECORDS {
                break;
            }
        }
        block.last = self.ahead.is_none();
        (!block.items.is_empty() || block.failure.is_some()).then_some(block)
    }
}

/// What every record needs to become a document.
pub(crate) struct RecordRunner<'a> {
    pub(crate) source: u32,
    pub(crate) options: &'a Options,
    pub(crate) extraction: &'a mut Extraction,
    pub(crate) visitor: &'a mut dyn Visitor,
}

impl RecordRunner<'_> {
    /// The records whose member begins in a range.
    pub(crate) fn range(&mut self, input: impl Read + Seek, range: Range<u64>) {
        let offset = range.start;
        match read_range(input, range.start, range.end, limits(self.options)) {
            Ok(reader) => self.reader(reader, offset),
            Err(error) => self.bad(offset, range.end.saturating_sub(offset), open_reason(&error)),
        }
    }

    /// Everything a reader has.
    pub(crate) fn reader<R: Read>(&mut self, mut reader: Reader<R>, mut offset: u64) {
        while let Some(item) = reader.next_item(&mut |bytes| self.visitor.before_large(bytes)) {
            match item {
                Ok(item) => {
                    offset = item_offset(&item);
                    self.item(item);
                }
                Err(error) => return self.bad(offset, 0, BadReason::from_io(&error)),
            }
        }
    }

    /// The first record of a reader that was begun at an offset of its file.
    pub(crate) fn first<R: Read>(&mut self, mut reader: Reader<R>, offset: u64) {
        if let Some(Ok(Item::Record(mut record))) = reader.next()
            && record.offset == 0
        {
            record.offset = offset;
            self.record(record);
        }
    }

    /// A WARC file that lies compressed in a WACZ.
    pub(crate) fn wacz_member(&mut self, source: &Source, watch: &Watch) {
        let Location::WaczMember { whole, name } = &source.location else { return };
        if let Err(reason) = self.try_wacz_member(whole, name, watch) {
            self.bad(0, source.bytes, reason);
        }
    }

    fn try_wacz_member(&mut self, whole: &Source, name: &str, watch: &Watch) -> Result<(), BadReason> {
        let broken = |error: WaczError| match error {
            WaczError::Io(error) => BadReason::Io { detail: error.to_string() },
            other => BadReason::BrokenWarc { detail: other.to_string() },
        };
        let file = whole.open(watch).map_err(|error| BadReason::Io { detail: error.to_string() })?;
        let mut wacz = Wacz::open(BufReader::new(file)).map_err(broken)?;
        let Some(member) = wacz.members().iter().find(|member| member.name == name).cloned() else {
            return Err(BadReason::BrokenWarc { detail: "changed while it was read".to_owned() });
        };
        let input = wacz.read(&member).map_err(broken)?;
        let reader = Reader::new(input, limits(self.options)).map_err(|error| open_reason(&error))?;
        self.reader(reader, 0);
        Ok(())
    }

    pub(crate) fn block(&mut self, block: Records) {
        let mut offset = 0;
        for item in block.items {
            offset = item_offset(&item);
            self.item(item);
        }
        if let Some(reason) = block.failure {
            self.bad(offset, 0, reason);
        }
    }

    /// Tells of so many bytes that hold nothing readable.
    pub(crate) fn bad(&mut self, offset: u64, bytes: u64, reason: BadReason) {
        self.visitor.bad_record(Loss::record(offset, bytes, reason).of(self.source));
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Record(record) => self.record(record),
            Item::Damage(Damage { offset, kind, lost_bytes }) => {
                let reason = match kind {
                    DamageKind::CutOff => BadReason::CutOff,
                    DamageKind::TooLarge => BadReason::TooLarge { limit: self.options.max_record_bytes },
                    DamageKind::CorruptMember => BadReason::Corrupt { detail: kind.to_string() },
                    other => BadReason::BrokenWarc { detail: other.to_string() },
                };
                self.bad(offset, lost_bytes, reason);
            }
        }
    }

    fn record(&mut self, record: Record) {
        if !self.visitor.wants(record.offset) {
            return;
        }
        let is_of_crawl = |record: &Record| {
            !self.options.crawl_files && record.target_uri().is_some_and(tree::is_robots_file)
        };
        match record.kind {
            RecordKind::Response | RecordKind::Resource | RecordKind::Conversion | RecordKind::Revisit
                if is_of_crawl(&record) =>
            {
                self.visitor.skipped(SkipReason::RobotsFile);
            }
            RecordKind::Revisit => self.revisit(&record),
            RecordKind::Response if record.is_http_response() => self.response(record),
            RecordKind::Response if says_http(&record) => {
                let detail = "the block does not begin with an HTTP status line".to_owned();
                self.bad(record.offset, record.block.len() as u64, BadReason::BrokenHttp { detail });
            }
            RecordKind::Response | RecordKind::Resource | RecordKind::Conversion => self.plain(&record),
            other => self.visitor.skipped(SkipReason::RecordType { name: other.as_str() }),
        }
    }

    fn revisit(&mut self, record: &Record) {
        let address = address(record);
        self.visitor.document(Document {
            source: self.source,
            offset: record.offset,
            id: record.record_id(),
            url: address.as_deref(),
            site: address.as_deref().and_then(url::site),
            media_type: "warc/revisit",
            fetched_at: record.timestamp_micros(),
            payload_sha1: record.payload_digest().and_then(parse_sha1),
            revisit: true,
            revisit_of: record.refers_to_target_uri(),
            ..Document::default()
        });
    }

    /// An answer with its HTTP head.
    fn response(&mut self, mut record: Record) {
        let offset = record.offset;
        let block = std::mem::take(&mut record.block);
        let bytes = block.len() as u64;
        let mut before_large = |bytes| self.visitor.before_large(bytes);
        let response = match parse_response_gently(block, &limits(self.options), &mut before_large) {
            Ok(response) => response,
            Err(error) => {
                return self.bad(offset, bytes, BadReason::BrokenHttp { detail: error.to_string() });
            }
        };
        if response.status != 200 && !self.options.any_status {
            return self.visitor.skipped(SkipReason::Status { status: response.status });
        }
        for problem in &response.problems {
            match problem {
                HttpProblem::OverLimit => {
                    let reason = BadReason::TooLarge { limit: self.options.max_record_bytes };
                    return self.bad(offset, bytes, reason);
                }
                // Bytes that nobody can decode are not a text.
                HttpProblem::UnknownEncoding => {
                    return self.bad(offset, bytes, BadReason::BrokenHttp { detail: problem.to_string() });
                }
                HttpProblem::BadEncoding if response.body.is_empty() => {
                    return self.bad(offset, bytes, BadReason::BrokenHttp { detail: problem.to_string() });
                }
                // The others left something to read, and it is read.
                _ => {}
            }
        }
        let address = address(&record);
        let canonical =
            response.headers.get_all("Link").find_map(|link| canonical_link(link, address.as_deref()));
        self.payload(
            &record,
            &response.body,
            response.headers.get("Content-Type"),
            address.as_deref(),
            canonical.as_deref(),
        );
    }

    /// A payload without an HTTP head.
    fn plain(&mut self, record: &Record) {
        if record.target_uri().is_some_and(|uri| !is_web_address(uri)) {
            // `dns:`, `urn:`, `metadata:`: what crawlers write about themselves.
            return self.visitor.skipped(SkipReason::RecordType { name: "crawler's own" });
        }
        let address = address(record);
        self.payload(record, &record.block, record.content_type(), address.as_deref(), None);
    }

    fn payload(
        &mut self,
        record: &Record,
        bytes: &[u8],
        declared: Option<&str>,
        url: Option<&str>,
        canonical: Option<&str>,
    ) {
        // The digest of a record that did not arrive whole is that of something else.
        let known = if record.truncated { None } else { record.payload_digest().and_then(parse_sha1) };
        let payload = Payload {
            source: self.source,
            offset: record.offset,
            id: record.record_id(),
            url,
            bytes,
            declared,
            fetched_at: record.timestamp_micros(),
            sha1: known,
            canonical,
        };
        payload.emit(self.extraction, self.visitor);
    }
}

fn says_http(record: &Record) -> bool {
    let declared = record.content_type().unwrap_or("application/http").trim_start();
    declared.get(..16).is_some_and(|start| start.eq_ignore_ascii_case("application/http"))
}

/// The address, normalised when it parses.
fn address(record: &Record) -> Option<String> {
    let uri = record.target_uri()?;
    Some(url::normalize(uri).unwrap_or_else(|| uri.to_owned()))
}

fn is_web_address(uri: &str) -> bool {
    match uri.split_once(':') {
        Some((scheme, _)) => {
            ["http", "https", "ftp", "file"].iter().any(|known| scheme.eq_ignore_ascii_case(known))
        }
        None => true,
    }
}

/// The target of `<target>; rel="canonical"` in an HTTP `Link` header.
fn canonical_link(header: &str, base: Option<&str>) -> Option<String> {
    let (target, parameters) = header.trim_start().strip_prefix('<')?.split_once('>')?;
    let is_canonical = parameters.split(',').next()?.split(';').any(|parameter| {
        parameter.split_once('=').is_some_and(|(name, value)| {
            name.trim().eq_ignore_ascii_case("rel")
                && value.trim().trim_matches('"').eq_ignore_ascii_case("canonical")
        })
    });
    if !is_canonical {
        return None;
    }
    base.and_then(|base| url::join(base, target)).or_else(|| url::normalize(target))
}

/// The digest of `sha1:` and base 32 or hexadecimal; also without the prefix, as some writers have
/// it.
pub(crate) fn parse_sha1(digest: &str) -> Option<[u8; 20]> {
    let digest = digest.trim();
    let value = match digest.split_once(':') {
        Some((name, value)) if name.eq_ignore_ascii_case("sha1") || name.eq_ignore_ascii_case("sha-1") => {
            value
        }
        Some(_) => return None,
        None => digest,
    };
    let mut out = [0; 20];
    match value.len() {
        32 => {
            // Eight letters of five bits are five bytes.
            for (letters, bytes) in value.as_bytes().chunks_exact(8).zip(out.chunks_exact_mut(5)) {
                let mut bits = 0_u64;
                for &letter in letters {
                    let five = match letter.to_ascii_uppercase() {
                        letter @ b'A'..=b'Z' => letter - b'A',
                        digit @ b'2'..=b'7' => digit - b'2' + 26,
                        _ => return None,
                    };
                    bits = bits << 5 | u64::from(five);
                }
                bytes.copy_from_slice(&bits.to_be_bytes()[3..]);
            }
        }
        40 => {
            for (digits, byte) in value.as_bytes().chunks_exact(2).zip(&mut out) {
                let nibble = |digit: u8| char::from(digit).to_digit(16);
                *byte = u8::try_from(nibble(digits[0])? << 4 | nibble(digits[1])?).ok()?;
            }
        }
        _ => return None,
    }
    Some(out)
}

#[cfg(test)]
mod tests;
