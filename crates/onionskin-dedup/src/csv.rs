//! Copies of CSV and TSV: the header and the records of documents that stay, byte for byte.
//!
//! Where a record ends can only be known by parsing it, since a quoted field may hold line feeds.
//! So the stream is cut by the scan's own reader, and what it hands out is copied or not.

use std::fs::File;
use std::io::{self, Write};

use onionskin_corpus::{CsvItem, CsvRecords, decoder};

use super::DedupError;
use super::plan::Job;
use super::shards::{Context, CopyReport, Meter};

/// Copies the records that are not of removed documents.
pub(super) fn filter(context: &Context<'_>, job: &Job, delimiter: u8) -> Result<CopyReport, DedupError> {
    let reading = |e: io::Error| job.io("copying", e);
    let input = File::open(&job.path).map_err(|e| job.io("opening", e))?;
    let input = decoder(Meter::new(input, context.copied), job.encoding).map_err(reading)?;
    let mut records = CsvRecords::new(input, delimiter, context.options.max_record_bytes);
    let mut verdicts = context.verdicts(job)?;
    let mut out = context.create(job)?;
    let mut report = CopyReport::default();
    // The header is no record of anything.
    let (mut count, mut is_header) = (0_u64, true);
    while let Some(item) = records.next_item() {
        let (bytes, begins) = match item {
            CsvItem::Between(bytes) => (bytes, None),
            CsvItem::Record { offset, bytes } | CsvItem::Broken { offset, bytes, .. } => {
                (bytes, Some(offset))
            }
            CsvItem::TooLong { offset, bytes, ends } => (bytes, ends.then_some(offset)),
        };
        let mut is_removed = false;
        if let Some(offset) = begins.filter(|_| !std::mem::take(&mut is_header)) {
            let verdict = verdicts.take_at(offset).map_err(reading)?;
            if let Some(verdict) = verdicts.peek().filter(|next| next.offset <= offset) {
                return Err(job.moved(verdict.offset));
            }
            count += 1;
            is_removed = verdict.is_some_and(|verdict| verdict.is_removed);
        }
        if is_removed {
            report.removed += 1;
            report.removed_bytes += bytes.len() as u64;
        } else {
            out.write_all(bytes).map_err(|e| job.io("writing the copy of", e))?;
        }
    }
    if let Some(verdict) = verdicts.peek() {
        return Err(job.moved(verdict.offset));
    }
    if let Some(error) = records.take_failure() {
        // The disk failed; that is not for us to pass over.
        if error.raw_os_error().is_some() {
            return Err(reading(error));
        }
        // The scan met the same break, and took nothing behind it for a document.
        report.damage = Some(error.to_string());
    }
    report.other_records = count.checked_sub(job.documents).ok_or_else(|| job.moved(0))?;
    report.bytes = out.finish().map_err(|e| job.io("writing the copy of", e))?;
    Ok(report)
}

#[cfg(test)]
mod tests;
