//! Copies of CSV and TSV: the header and the records of documents that stay, byte for byte.
//!
//! Where a record ends can only be known by parsing it, since a quoted field may hold line feeds.
//! So the parser that the scan used runs along, and what it has passed over is copied or not.

use std::fs::File;
use std::io::{self, Read, Write};

use csv_core::ReadRecordResult;
use onionskin_corpus::decoder;

use super::DedupError;
use super::plan::Job;
use super::shards::{Context, CopyReport, Meter};
use super::window::Window;

const READ_BYTES: usize = 128 << 10;

/// Takes a stream of CSV apart into records, without looking at their fields.
pub(super) struct Records<R> {
    window: Window<R>,
    parser: csv_core::Reader,
    pub offset: u64,
    /// Fields go here and are forgotten.
    fields: Vec<u8>,
    ends: Vec<usize>,
}

impl<R: Read> Records<R> {
    pub fn new(input: R, delimiter: u8) -> Records<R> {
        Records {
            window: Window::new(input, READ_BYTES),
            parser: csv_core::ReaderBuilder::new().delimiter(delimiter).build(),
            offset: 0,
            fields: vec![0; 4096],
            ends: vec![0; 256],
        }
    }

    /// Passes over a byte order mark.
    pub fn begin(&mut self, out: &mut impl Write) -> io::Result<()> {
        while self.window.bytes().len() < 3 && !self.window.at_end {
            self.window.refill(READ_BYTES)?;
        }
        if self.window.bytes().starts_with(b"\xef\xbb\xbf") {
            self.pass(3, Some(out))?;
        }
        Ok(())
    }

    /// Passes over line ends between records. `false` at the end; else `offset` is where a record
    /// begins.
    pub fn find(&mut self, out: &mut impl Write) -> io::Result<bool> {
        loop {
            let rest = self.window.bytes();
            let line_ends = rest.iter().take_while(|&&byte| matches!(byte, b'\r' | b'\n')).count();
            let found = line_ends < rest.len();
            self.pass(line_ends, Some(out))?;
            if found || self.window.at_end {
                return Ok(found);
            }
            self.window.refill(READ_BYTES)?;
        }
    }

    /// Passes over a record, and copies it if there is somewhere to copy it to.
    pub fn record(&mut self, mut out: Option<&mut impl Write>) -> io::Result<()> {
        loop {
            if self.window.bytes().is_empty() && !self.window.at_end {
                self.window.refill(READ_BYTES)?;
            }
            // The parser takes an empty input for the end.
            let (result, read, _, _) =
                self.parser.read_record(self.window.bytes(), &mut self.fields, &mut self.ends);
            self.pass(read, out.as_deref_mut())?;
            match result {
                ReadRecordResult::Record | ReadRecordResult::End => break,
                ReadRecordResult::InputEmpty
                | ReadRecordResult::OutputFull
                | ReadRecordResult::OutputEndsFull => {}
            }
        }
        // The line feed behind a carriage return belongs to the record, whether the parser has
        // taken it yet or not.
        if self.window.bytes().is_empty() && !self.window.at_end {
            self.window.refill(READ_BYTES)?;
        }
        if self.window.bytes().first() == Some(&b'\n') {
            self.pass(1, out)?;
        }
        Ok(())
    }

    fn pass(&mut self, n: usize, out: Option<&mut impl Write>) -> io::Result<()> {
        let bytes = self.window.take(n);
        if let Some(out) = out {
            out.write_all(bytes)?;
        }
        self.offset += n as u64;
        Ok(())
    }
}

/// Copies the records that are not of removed documents.
pub(super) fn filter(context: &Context<'_>, job: &Job, delimiter: u8) -> Result<CopyReport, DedupError> {
    let reading = |e: io::Error| job.io("copying", e);
    let input = File::open(&job.path).map_err(|e| job.io("opening", e))?;
    let input = decoder(Meter::new(input, context.copied), job.encoding).map_err(reading)?;
    let mut records = Records::new(input, delimiter);
    let mut verdicts = context.verdicts(job)?;
    let mut out = context.create(job)?;
    let mut report = CopyReport::default();
    let mut count = 0_u64;
    records.begin(&mut out).map_err(reading)?;
    if records.find(&mut out).map_err(reading)? {
        records.record(Some(&mut out)).map_err(reading)?;
    }
    while records.find(&mut out).map_err(reading)? {
        let offset = records.offset;
        let verdict = verdicts.take_at(offset).map_err(reading)?;
        if let Some(verdict) = verdicts.peek().filter(|next| next.offset <= offset) {
            return Err(job.moved(verdict.offset));
        }
        count += 1;
        if verdict.is_some_and(|verdict| verdict.is_removed) {
            report.removed += 1;
            records.record(None::<&mut io::Sink>).map_err(reading)?;
        } else {
            records.record(Some(&mut out)).map_err(reading)?;
        }
    }
    if let Some(verdict) = verdicts.peek() {
        return Err(job.moved(verdict.offset));
    }
    report.other_records = count.checked_sub(job.documents).ok_or_else(|| job.moved(0))?;
    report.damage = records.window.damage.take();
    report.bytes = out.finish().map_err(|e| job.io("writing the copy of", e))?;
    Ok(report)
}

#[cfg(test)]
mod tests;
