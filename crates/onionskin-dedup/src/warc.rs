//! Copies of WARC files: everything byte for byte, but exact copies become revisits, and near ones
//! get a note beside them.
//!
//! A reader of archives believes a `revisit` to have the payload of the record it refers to, so
//! nothing but the same bytes may become one: a copy is compared with the record that stays,
//! payload with payload, before its own is dropped. An equal text in other markup is near, not
//! equal, and keeps its payload. The note on a near copy is a `metadata` record behind it, since
//! the standard knows no profile of revisits that are nearly the same. Notes of an earlier copy are
//! left out, whatever they say: the new ones take their place.
//!
//! The copy is made by stretches of the stored file: what lies between two changes is never decoded
//! for writing.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;

use onionskin_core::DocId;
use onionskin_corpus::{Encoding, Options};
use onionskin_store::table::CopyKind;
use onionskin_warc::writer::{IDENTICAL_PAYLOAD_PROFILE_1_1, RecordId, WarcWriter};
use onionskin_warc::{
    Compression, Item, Limits, Reader, Record, RecordKind, format_date, http_head_len, parse_response,
};
use sha1::{Digest, Sha1};

use super::DedupError;
use super::decide::{Entry, Verdict, Verdicts};
use super::names::{Kept, Names};
use super::output::finish_file;
use super::plan::{Job, SHARED_MEMBER};
use super::shards::{Context, CopyReport, Meter};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Exact copies become revisits.
    Revisits,
    /// Every copy stays, with a note beside it.
    Metadata,
}

pub(super) fn copy(context: &Context<'_>, job: &Job, mode: Mode) -> Result<CopyReport, DedupError> {
    let reading = |e: io::Error| job.io("reading", e);
    let writing = |e: io::Error| job.io("writing the copy of", e);
    let compression = match job.encoding {
        Encoding::Plain => Compression::None,
        Encoding::Gzip => Compression::Gzip,
        Encoding::Zstd => Compression::Zstd,
    };
    let input = File::open(&job.path).map_err(|e| job.io("opening", e))?;
    // Another file handle: a clone would share its place with the reader.
    let mut stored = File::open(&job.path).map_err(|e| job.io("opening", e))?;
    let path = context.output.place(&job.to)?;
    let output = BufWriter::with_capacity(128 << 10, File::create_new(&path).map_err(writing)?);
    let mut writer = WarcWriter::new(output, compression).map_err(writing)?;
    let mut judge = Judge::new(context, job, mode)?;
    let mut report = CopyReport::default();
    let mut done = 0;

    let reader = Reader::new(Meter::new(input, context.copied), limits(context.options));
    let mut items = reader.map_err(|e| job.broken(e))?.peekable();
    while let Some(item) = items.next() {
        let Item::Record(record) = item.map_err(reading)? else { continue };
        match judge.fate(&record, items.peek())? {
            Fate::Keep => {}
            Fate::Untouched => report.untouched += 1,
            Fate::Drop { place } => {
                copy_stretch(&mut stored, done..place.start, &mut writer).map_err(writing)?;
                done = place.end;
            }
            Fate::Revisit { place, fields, block } => {
                copy_stretch(&mut stored, done..place.start, &mut writer).map_err(writing)?;
                writer.write_fields(&borrowed(&fields), &block).map_err(writing)?;
                report.revisits += 1;
                report.removed += 1;
                report.removed_bytes += record.block.len().saturating_sub(block.len()) as u64;
                done = place.end;
            }
            Fate::Note { place, fields, block } => {
                copy_stretch(&mut stored, done..place.end, &mut writer).map_err(writing)?;
                if job.encoding == Encoding::Plain && !ends_record(&mut stored, place.end).map_err(reading)? {
                    writer.copy(&mut b"\r\n\r\n".as_slice()).map_err(writing)?;
                }
                writer.write_fields(&borrowed(&fields), block.as_bytes()).map_err(writing)?;
                report.metadata += 1;
                done = place.end;
            }
        }
    }
    if let Some(verdict) = judge.verdicts.peek() {
        return Err(job.moved(verdict.offset));
    }
    copy_stretch(&mut stored, done..job.bytes, &mut writer).map_err(writing)?;
    let output = writer.finish().map_err(writing)?;
    report.bytes = finish_file(output).map_err(writing)?;
    Ok(report)
}

/// What happens to a record.
enum Fate {
    /// It is copied byte for byte.
    Keep,
    /// It is a copy, but which bytes of the file it takes is not known.
    Untouched,
    /// It is a note of an earlier copy.
    Drop { place: Range<u64> },
    /// A revisit takes its place.
    Revisit { place: Range<u64>, fields: Fields, block: Vec<u8> },
    /// A note follows it.
    Note { place: Range<u64>, fields: Fields, block: String },
}

/// Decides the fate of each record of a file.
struct Judge<'a> {
    context: &'a Context<'a>,
    job: &'a Job,
    mode: Mode,
    verdicts: Verdicts,
    names: Names,
    centres: Centres<'a>,
}

impl<'a> Judge<'a> {
    fn new(context: &'a Context<'a>, job: &'a Job, mode: Mode) -> Result<Judge<'a>, DedupError> {
        let (verdicts, names) = (context.verdicts(job)?, context.names()?);
        Ok(Judge { context, job, mode, verdicts, names, centres: Centres { context, last: None } })
    }

    /// `next` is what follows the record in the file.
    fn fate(&mut self, record: &Record, next: Option<&io::Result<Item>>) -> Result<Fate, DedupError> {
        let job = self.job;
        let verdict = self.verdicts.take_at(record.offset).map_err(|e| job.io("reading", e))?;
        let Some(verdict) = verdict else {
            return match self.verdicts.peek().filter(|next| next.offset < record.offset) {
                Some(verdict) => Err(job.moved(verdict.offset)),
                None => Ok(self.fate_without_verdict(record, next)),
            };
        };
        let Some((end, is_damaged)) = self.end(record, next) else { return Ok(Fate::Keep) };
        let is_segment = record.headers.get("WARC-Segment-Number").is_some();
        if job.encoding != Encoding::Plain && record.stored_len.is_none() && !is_damaged && !is_segment {
            // Which of the records in this member the verdict is on is not known either.
            return Err(DedupError::NotCopied { name: job.name.clone(), why: SHARED_MEMBER });
        }
        if verdict.entry.is_centre() {
            return Ok(Fate::Keep);
        }
        let Some(place) = place(record, end, job.encoding) else { return Ok(Fate::Untouched) };
        match record.kind {
            RecordKind::Revisit => Ok(Fate::Keep),
            RecordKind::Response | RecordKind::Resource | RecordKind::Conversion => {
                self.fate_of_copy(record, &verdict, place)
            }
            _ => Err(job.moved(verdict.offset)),
        }
    }

    /// Where the next thing begins, and whether the record is damaged. `None` if the copy will end
    /// with an error, when that is taken.
    fn end(&self, record: &Record, next: Option<&io::Result<Item>>) -> Option<(u64, bool)> {
        match next {
            None => Some((self.job.bytes, record.truncated)),
            Some(Ok(Item::Record(next))) => Some((next.offset, record.truncated)),
            Some(Ok(Item::Damage(damage))) => Some((damage.offset, true)),
            Some(Err(_)) => None,
        }
    }

    fn fate_without_verdict(&self, record: &Record, next: Option<&io::Result<Item>>) -> Fate {
        if !is_note(record) {
            return Fate::Keep;
        }
        let end = self.end(record, next).filter(|(_, is_damaged)| !is_damaged);
        let place = end.and_then(|(end, _)| place(record, end, self.job.encoding));
        place.map_or(Fate::Keep, |place| Fate::Drop { place })
    }

    fn fate_of_copy(
        &mut self,
        record: &Record,
        verdict: &Verdict,
        place: Range<u64>,
    ) -> Result<Fate, DedupError> {
        let job = self.job;
        let kept = self.names.get(verdict.entry.name).map_err(|e| job.io("deciding on", e))?;
        let original = self.centres.find(&kept).map_err(|e| job.io("comparing with the kept copy of", e))?;
        if self.mode == Mode::Revisits
            && verdict.is_removed
            && verdict.entry.kind() == CopyKind::Exact
            && let Some(original) = original
            && let Some((fields, block)) = revisit(record, original, &limits(self.context.options))
        {
            return Ok(Fate::Revisit { place, fields, block });
        }
        let (fields, block) = metadata(record, verdict, &kept, original, &job.name);
        Ok(Fate::Note { place, fields, block })
    }
}

fn limits(options: &Options) -> Limits {
    Limits { max_record_bytes: options.max_record_bytes, max_body_bytes: options.max_record_bytes }
}

/// The bytes of the file that are this record and nothing else; `None` when that cannot be known,
/// or it is damaged. `end` is where the next thing begins.
fn place(record: &Record, end: u64, encoding: Encoding) -> Option<Range<u64>> {
    if record.truncated || end <= record.offset {
        return None;
    }
    match encoding {
        Encoding::Plain => Some(record.offset..end),
        Encoding::Gzip | Encoding::Zstd => {
            let stored_end = record.offset.checked_add(record.stored_len?)?;
            (stored_end <= end).then_some(record.offset..stored_end)
        }
    }
}

fn copy_stretch<W: Write>(
    stored: &mut File,
    stretch: Range<u64>,
    writer: &mut WarcWriter<W>,
) -> io::Result<()> {
    stored.seek(SeekFrom::Start(stretch.start))?;
    let length = stretch.end.saturating_sub(stretch.start);
    let copied = writer.copy(&mut stored.take(length))?;
    if copied.length != length {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than it was"));
    }
    Ok(())
}

/// Whether the two line ends that close a record stand before `end`.
fn ends_record(stored: &mut File, end: u64) -> io::Result<bool> {
    let Some(start) = end.checked_sub(4) else { return Ok(false) };
    stored.seek(SeekFrom::Start(start))?;
    let mut last = [0; 4];
    stored.read_exact(&mut last)?;
    Ok(&last == b"\r\n\r\n")
}

/// Records that are kept, read again where they are. Copies of one record stand together often
/// enough to keep the last.
struct Centres<'a> {
    context: &'a Context<'a>,
    last: Option<(DocId, Option<Record>)>,
}

impl Centres<'_> {
    /// The record of a document that is kept; `None` when it is not in a WARC file that is copied
    /// too.
    fn find(&mut self, kept: &Kept) -> io::Result<Option<&Record>> {
        if self.last.as_ref().is_none_or(|(doc, _)| *doc != kept.doc) {
            self.last = None;
            let record = self.read(kept)?;
            self.last = Some((kept.doc, record));
        }
        Ok(self.last.as_ref().and_then(|(_, record)| record.as_ref()))
    }

    fn read(&self, kept: &Kept) -> io::Result<Option<Record>> {
        let Some(Some(path)) = self.context.paths.get(kept.source as usize) else { return Ok(None) };
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(kept.offset))?;
        let Ok(mut reader) = Reader::new(file, limits(self.context.options)) else { return Ok(None) };
        let Some(item) = reader.next() else { return Ok(None) };
        match item? {
            Item::Record(record) if !record.truncated && record.record_id() == kept.id.as_deref() => {
                Ok(Some(record))
            }
            _ => Ok(None),
        }
    }
}

/// Fields of a record's head.
type Fields = Vec<(String, String)>;

fn borrowed(fields: &Fields) -> Vec<(&str, &str)> {
    fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// What becomes of a record whose payload is that of `original`; `None` when it is not, or a reader
/// could not find that.
fn revisit(record: &Record, original: &Record, limits: &Limits) -> Option<(Fields, Vec<u8>)> {
    let (head, body) = payload(record)?;
    let (_, original_body) = payload(original)?;
    if record.kind != original.kind
        || record.kind == RecordKind::Conversion
        || is_partial(record)
        || is_partial(original)
    {
        return None;
    }
    if body != original_body && !same_message(record, original, limits) {
        return None;
    }
    let (uri, date) = (original.target_uri()?, original.date()?);
    record.target_uri()?;
    record.date()?;
    let digest = match (record.payload_digest(), original.payload_digest()) {
        // Somebody computed one of them from something else; a reader that compares them would not
        // find the original.
        (Some(own), Some(other)) if own != other => return None,
        (Some(digest), _) | (None, Some(digest)) => digest.to_owned(),
        (None, None) => sha1_digest(body),
    };

    let mut fields = Fields::new();
    for (name, value) in record.headers.iter() {
        const REPLACED: [&str; 9] = [
            "WARC-Type",
            "WARC-Profile",
            "WARC-Refers-To",
            "WARC-Refers-To-Target-URI",
            "WARC-Refers-To-Date",
            "WARC-Payload-Digest",
            "WARC-Truncated",
            "Content-Length",
            "Content-Type",
        ];
        if REPLACED.iter().any(|replaced| replaced.eq_ignore_ascii_case(name)) || !is_plain(name, value) {
            continue;
        }
        if name.eq_ignore_ascii_case("WARC-Block-Digest") {
            fields.push((name.to_owned(), sha1_digest(head)));
        } else {
            fields.push((name.to_owned(), value.to_owned()));
        }
    }
    fields.insert(0, field("WARC-Type", "revisit"));
    fields.push(field("WARC-Profile", IDENTICAL_PAYLOAD_PROFILE_1_1));
    if let Some(id) = original.record_id() {
        fields.push(field("WARC-Refers-To", &format!("<{id}>")));
    }
    fields.push(field("WARC-Refers-To-Target-URI", uri));
    fields.push(field("WARC-Refers-To-Date", date));
    fields.push(field("WARC-Payload-Digest", &digest));
    fields.push(field("WARC-Truncated", "length"));
    if !head.is_empty() {
        fields.push(field(
            "Content-Type",
            record.content_type().unwrap_or("application/http; msgtype=response"),
        ));
    }
    Some((fields, head.to_vec()))
}

/// The head of the HTTP message in a record, and its payload; a record without a message is payload
/// altogether.
fn payload(record: &Record) -> Option<(&[u8], &[u8])> {
    if record.kind != RecordKind::Response {
        return Some((&[], &record.block));
    }
    if !record.is_http_response() {
        return None;
    }
    record.block.split_at_checked(http_head_len(&record.block).ok()?)
}

/// Not all of what was fetched.
fn is_partial(record: &Record) -> bool {
    record.truncated
        || record.declared_truncation().is_some()
        || record.headers.get("WARC-Segment-Number").is_some()
}

/// The same payload in two cuttings into chunks.
fn same_message(a: &Record, b: &Record, limits: &Limits) -> bool {
    if a.kind != RecordKind::Response {
        return false;
    }
    let parse = |record: &Record| parse_response(record.block.clone(), limits).ok();
    let (Some(a), Some(b)) = (parse(a), parse(b)) else { return false };
    let same_coding = a.headers.get("Content-Encoding") == b.headers.get("Content-Encoding");
    same_coding && a.problems.is_empty() && b.problems.is_empty() && a.body == b.body
}

/// Whether a record is a note that [`metadata`] made: it has the fields of one, and no others.
fn is_note(record: &Record) -> bool {
    if record.kind != RecordKind::Metadata || record.content_type() != Some(NOTE_TYPE) {
        return false;
    }
    let Ok(block) = std::str::from_utf8(&record.block) else { return false };
    let names: Vec<&str> =
        block.lines().filter_map(|line| line.split_once(": ")).map(|(name, _)| name).collect();
    names.len() == block.lines().count()
        && names.iter().any(|name| NOTE_SUBJECTS.contains(name))
        && names.ends_with(&["method", "cluster"])
        && names.iter().all(|name| NOTE_SUBJECTS.contains(name) || NOTE_VALUES.contains(name))
}

const NOTE_TYPE: &str = "application/warc-fields";
/// Fields of a note that say what the record is a duplicate of.
const NOTE_SUBJECTS: [&str; 4] =
    ["near-duplicate-of-uri", "near-duplicate-of-date", "near-duplicate-of-record-id", "near-duplicate-of"];
/// Its other fields.
const NOTE_VALUES: [&str; 4] = ["resemblance", "containment", "method", "cluster"];

/// The note on a copy.
fn metadata(
    record: &Record,
    verdict: &Verdict,
    kept: &Kept,
    original: Option<&Record>,
    input: &str,
) -> (Fields, String) {
    let entry: &Entry = &verdict.entry;
    // The same note on the same record has the same name, in every run.
    let subject = record.record_id().map_or_else(|| format!("{input} {}", verdict.offset), str::to_owned);
    let hash =
        xxhash_rust::xxh3::xxh3_128(format!("near-duplicate of {}\n{subject}", kept.name()).as_bytes());
    let date = record.date().unwrap_or("1970-01-01T00:00:00Z");
    let mut fields = vec![
        field("WARC-Type", "metadata"),
        field("WARC-Record-ID", &format!("<{}>", RecordId::from_hash(hash))),
        field("WARC-Date", date),
    ];
    if let Some(uri) = record.headers.get("WARC-Target-URI") {
        fields.push(field("WARC-Target-URI", uri));
    }
    if let Some(id) = record.record_id() {
        fields.push(field("WARC-Refers-To", &format!("<{id}>")));
    }
    fields.push(field("Content-Type", NOTE_TYPE));

    let mut block = String::new();
    let mut line = |name: &str, value: &str| {
        let (name, value) = field(name, value);
        block.push_str(&format!("{name}: {value}\r\n"));
    };
    let uri = original.and_then(Record::target_uri).or(kept.url.as_deref());
    if let Some(uri) = uri {
        line("near-duplicate-of-uri", uri);
    }
    let written = kept.fetched_at.map(format_date);
    if let Some(date) = original.and_then(Record::date).or(written.as_deref()) {
        line("near-duplicate-of-date", date);
    }
    match original.and_then(Record::record_id) {
        Some(id) => line("near-duplicate-of-record-id", &format!("<{id}>")),
        None if uri.is_none() => line("near-duplicate-of", &kept.name()),
        None => {}
    }
    line("resemblance", &entry.resemblance().to_string());
    if let Some(evidence) = entry.evidence() {
        line("containment", &evidence.containment.to_string());
    }
    let method = entry.evidence().map(|evidence| evidence.method.as_str());
    match entry.kind() {
        // Equal tokens; what is around them differs, or could not be compared.
        CopyKind::Exact => line("method", method.unwrap_or("exact")),
        CopyKind::Near => line("method", method.unwrap_or("resemblance")),
    }
    line("cluster", &entry.cluster.to_string());
    (fields, block)
}

/// A field that can be written, whatever the value came from.
fn field(name: &str, value: &str) -> (String, String) {
    let value = value.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    (name.to_owned(), value)
}

fn is_plain(name: &str, value: &str) -> bool {
    !name.is_empty()
        && !name.contains(|c: char| c.is_control() || matches!(c, ':' | ' '))
        && !value.contains(|c: char| c.is_control())
}

/// `sha1:` and base 32, as everybody writes it.
fn sha1_digest(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text = String::from("sha1:");
    // Five bytes are eight letters of five bits; the digest is four times five bytes.
    for five in Sha1::digest(bytes).chunks_exact(5) {
        let bits = five.iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
        for nth in (0..8).rev() {
            text.push(char::from(LETTERS[(bits >> (5 * nth) & 31) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests;
