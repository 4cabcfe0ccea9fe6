//! Copies of JSON lines: lines as they are, without those of removed documents; or with four keys
//! more; or, beside them, a file of Dolma attributes.

mod former;

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;

use onionskin_core::ClusterId;
use onionskin_corpus::{JsonLineReader, Options, decoder};
use serde::Serialize;

use super::DedupError;
use super::decide::{Verdict, Verdicts};
use super::names::Names;
use super::output::Encoded;
use super::plan::Job;
use super::shards::{Context, CopyReport, Meter};
use super::window::Window;

const BUFFER_BYTES: usize = 256 << 10;

/// A line, or a part of one that is longer than it may be held.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece<'a> {
    /// Where the line begins in the decoded stream.
    pub offset: u64,
    /// With its line feed, if it has one.
    pub bytes: &'a [u8],
    pub begins: bool,
    pub ends: bool,
}

/// Lends the lines of a stream. A line that is longer than may be held comes in pieces; one up to
/// the limit is always whole.
pub(super) struct Lines<R> {
    pub window: Window<R>,
    searched: usize,
    /// Offset of the line that the window begins in, and of the window itself.
    line: u64,
    offset: u64,
    limit: usize,
    inside: bool,
}

impl<R: Read> Lines<R> {
    pub fn new(input: R, limit: u64) -> Lines<R> {
        Lines {
            window: Window::new(input, BUFFER_BYTES),
            searched: 0,
            line: 0,
            offset: 0,
            limit: usize::try_from(limit).unwrap_or(usize::MAX).max(1),
            inside: false,
        }
    }

    pub fn next(&mut self) -> io::Result<Option<Piece<'_>>> {
        loop {
            let bytes = self.window.bytes();
            if let Some(at) = memchr::memchr(b'\n', &bytes[self.searched..]) {
                return Ok(Some(self.piece(self.searched + at + 1, true)));
            }
            let len = bytes.len();
            self.searched = len;
            // One more than the limit is read, so that a line of just that length is known to be
            // whole.
            if len > self.limit {
                return Ok(Some(self.piece(len, false)));
            }
            if self.window.at_end {
                return Ok((len > 0).then(|| self.piece(len, true)));
            }
            self.window.refill(self.limit.saturating_add(1))?;
        }
    }

    fn piece(&mut self, len: usize, ends: bool) -> Piece<'_> {
        let begins = !self.inside;
        if begins {
            self.line = self.offset;
        }
        self.offset += len as u64;
        self.searched = 0;
        self.inside = !ends;
        Piece { offset: self.line, bytes: self.window.take(len), begins, ends }
    }
}

/// White space, or nothing: not a line that anybody counts.
fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n'))
}

struct Copy<'a> {
    job: &'a Job,
    lines: Lines<Box<dyn Read + Send + 'a>>,
    verdicts: Verdicts,
    out: Encoded,
    report: CopyReport,
}

impl<'a> Copy<'a> {
    fn open(context: &'a Context<'a>, job: &'a Job, limit: u64) -> Result<Copy<'a>, DedupError> {
        let input = File::open(&job.path).map_err(|e| job.io("opening", e))?;
        let input = Meter::new(input, context.copied);
        let decoded = decoder(input, job.encoding).map_err(|e| job.io("reading", e))?;
        Ok(Copy {
            lines: Lines::new(decoded, limit),
            verdicts: context.verdicts(job)?,
            out: context.create(job)?,
            report: CopyReport::default(),
            job,
        })
    }

    /// Every verdict must have met its line, and there must be a line for every document.
    fn finish(mut self, lines: u64) -> Result<CopyReport, DedupError> {
        if let Some(verdict) = self.verdicts.peek() {
            return Err(self.job.moved(verdict.offset));
        }
        let others = lines.checked_sub(self.job.documents).ok_or_else(|| self.job.moved(0))?;
        self.report.other_records = others;
        self.report.damage = self.lines.window.damage.take();
        self.report.bytes = self.out.finish().map_err(|e| self.job.io("writing the copy of", e))?;
        Ok(self.report)
    }
}

/// Copies the lines that are not of removed documents.
pub(super) fn filter(context: &Context<'_>, job: &Job) -> Result<CopyReport, DedupError> {
    let mut copy = Copy::open(context, job, BUFFER_BYTES as u64)?;
    let (mut lines, mut blank, mut keep) = (0, true, true);
    loop {
        let Some(piece) = copy.lines.next().map_err(|e| job.io("reading", e))? else { break };
        if piece.begins {
            let verdict = copy.verdicts.take_at(piece.offset).map_err(|e| job.io("deciding on", e))?;
            if let Some(verdict) = copy.verdicts.peek().filter(|next| next.offset <= piece.offset) {
                return Err(job.moved(verdict.offset));
            }
            keep = !verdict.is_some_and(|verdict| verdict.is_removed);
            copy.report.removed += u64::from(!keep);
            blank = true;
        }
        blank &= is_blank(piece.bytes);
        lines += u64::from(piece.ends && !blank);
        if !keep {
            copy.report.removed_bytes += piece.bytes.len() as u64;
        } else {
            copy.out.write_all(piece.bytes).map_err(|e| job.io("writing the copy of", e))?;
        }
    }
    // A stream that broke inside a line longer than the buffer has begun it and not ended it.
    copy.finish(lines)
}

/// What is added to a line.
#[derive(Serialize)]
pub(super) struct Annotation {
    pub dup_cluster: ClusterId,
    pub dup_size: u32,
    /// Null for the document that is kept.
    pub dup_of: Option<String>,
    pub dup_resemblance: f64,
}

impl Annotation {
    pub fn of(verdict: &Verdict, names: &mut Names) -> io::Result<Annotation> {
        let entry = &verdict.entry;
        Ok(Annotation {
            dup_cluster: entry.cluster,
            dup_size: entry.size,
            dup_of: if entry.is_centre() { None } else { Some(names.get(entry.name)?.name()) },
            dup_resemblance: entry.resemblance(),
        })
    }
}

/// Copies every line; those of documents in clusters get the keys of [`Annotation`] at their end.
/// What an earlier run has added is taken away, from all lines.
pub(super) fn annotate(context: &Context<'_>, job: &Job) -> Result<CopyReport, DedupError> {
    let mut copy = Copy::open(context, job, line_limit(context.options))?;
    let mut names = context.names()?;
    let (mut lines, mut blank) = (0, true);
    loop {
        let Some(piece) = copy.lines.next().map_err(|e| job.io("reading", e))? else { break };
        let mut verdict = None;
        if piece.begins {
            verdict = copy.verdicts.take_at(piece.offset).map_err(|e| job.io("deciding on", e))?;
            if let Some(verdict) = copy.verdicts.peek().filter(|next| next.offset <= piece.offset) {
                return Err(job.moved(verdict.offset));
            }
            blank = true;
        }
        blank &= is_blank(piece.bytes);
        lines += u64::from(piece.ends && !blank);
        let (line, left) = (piece.bytes, unannotated(&piece, verdict.is_some()));
        let mut write =
            |bytes: &[u8]| copy.out.write_all(bytes).map_err(|e| job.io("writing the copy of", e));
        let Some(verdict) = verdict else {
            left.into_iter().try_for_each(|stretch| write(&line[stretch]))?;
            continue;
        };
        let brace = memchr::memrchr(b'}', line).filter(|_| piece.ends);
        let brace = brace.filter(|at| is_blank(&line[at + 1..])).ok_or_else(|| job.moved(verdict.offset))?;
        let annotation = Annotation::of(&verdict, &mut names).map_err(|e| job.io("deciding on", e))?;
        let keys = serde_json::to_vec(&annotation).map_err(|e| job.io("annotating", e.into()))?;
        copy.report.annotated += 1;
        // The last stretch reaches to the end of the line, so the brace is in it.
        left.into_iter().try_for_each(|stretch| write(&line[stretch.start..stretch.end.min(brace)]))?;
        // Without its own opening brace, behind a comma: a document has a text, so the object is
        // not empty.
        write(b",")?;
        write(&keys[1..])?;
        write(&line[brace + 1..])?;
    }
    copy.finish(lines)
}

/// What is left of a line without an earlier annotation. What is no JSON is left alone, and so is a
/// line that comes in pieces.
fn unannotated(piece: &Piece<'_>, is_document: bool) -> Vec<Range<usize>> {
    let whole = || std::iter::once(0..piece.bytes.len()).collect();
    if !(piece.begins && piece.ends) {
        return whole();
    }
    let left = former::without(piece.bytes);
    let is_json = || serde_json::from_slice::<serde::de::IgnoredAny>(piece.bytes).is_ok();
    if left.len() == 1 || is_document || is_json() { left } else { whole() }
}

/// A line of Dolma attributes, but for the object whose key is chosen by people.
#[derive(Serialize)]
struct DolmaLine<'a> {
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<&'a str>,
    attributes: std::collections::BTreeMap<&'a str, Vec<(u64, u64, f64)>>,
}

/// Writes a line of attributes for every line.
pub(super) fn dolma(context: &Context<'_>, job: &Job, attribute: &str) -> Result<CopyReport, DedupError> {
    let mut copy = Copy::open(context, job, line_limit(context.options))?;
    let key = format!("{attribute}__near_dup");
    let mut reader = JsonLineReader::default();
    let mut lines = 0;
    loop {
        let Some(piece) = copy.lines.next().map_err(|e| job.io("reading", e))? else { break };
        let verdict = if piece.begins {
            copy.verdicts.take_at(piece.offset).map_err(|e| job.io("deciding on", e))?
        } else {
            None
        };
        if let Some(verdict) = copy.verdicts.peek().filter(|next| next.offset <= piece.offset) {
            return Err(job.moved(verdict.offset));
        }
        if !piece.ends {
            continue;
        }
        // The rest of a line that is too long to be a document is not one either.
        let whole = match piece.offset {
            _ if !piece.begins => b"",
            0 => piece.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(piece.bytes),
            _ => piece.bytes,
        };
        lines += u64::from(!piece.begins || !is_blank(piece.bytes));
        let fields = reader.read(whole, context.options, "source");
        let mut spans = Vec::new();
        if let Some(verdict) = verdict.filter(|verdict| verdict.is_removed) {
            let Some(fields) = fields else { return Err(job.moved(verdict.offset)) };
            // Dolma counts characters, and the end is exclusive.
            spans.push((0, fields.text.chars().count() as u64, verdict.entry.resemblance()));
            copy.report.annotated += 1;
        }
        let line = DolmaLine {
            id: fields.and_then(|fields| fields.id),
            source: fields.and_then(|fields| fields.beside),
            attributes: [(key.as_str(), spans)].into(),
        };
        let mut bytes = serde_json::to_vec(&line).map_err(|e| job.io("writing attributes of", e.into()))?;
        bytes.push(b'\n');
        copy.out.write_all(&bytes).map_err(|e| job.io("writing attributes of", e))?;
    }
    copy.finish(lines)
}

/// What a scan takes for a document is no longer than this, the line feed included.
fn line_limit(options: &Options) -> u64 {
    options.max_record_bytes.saturating_add(1)
}

#[cfg(test)]
mod tests;
