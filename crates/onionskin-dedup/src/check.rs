//! Whether an input still holds the documents that the scan found in it.
//!
//! A length says little: two lines of equal length that changed places leave it as it was, and then
//! the line of a unique document is taken out for that of a copy. The naive way compares a checksum
//! of the whole file, which the scan would have to make: it reads files in pieces, out of order,
//! and of some formats not all. Here documents are read again by the scan's own reader at their
//! places, and the fingerprints of their texts are compared with those in the atlas. Those of
//! clusters always are, removed or kept: all that is taken out is then what the scan saw, and what
//! it is a copy of is there. The others are, where somebody has written to the file since the scan.
//! To read all texts of all files again costs more than to copy them.

use std::ops::Range;
use std::sync::Arc;

use onionskin_core::TextFingerprinter;
use onionskin_corpus::{BadRecord, Document, InputFailure, Scratch, SkipReason, Tasks, Visitor};

use super::DedupError;
use super::decide::{Scanned, Stretch};
use super::plan::Job;
use super::shards::Context;

/// Compares documents of an input with what the scan found.
pub(super) fn check(context: &Context<'_>, job: &Job) -> Result<(), DedupError> {
    let options = Arc::new(context.options.clone());
    let mut scratch = Scratch::new(&options);
    let fingerprinter = TextFingerprinter::new(context.recipe);
    let scanned = context.scanned.open(job.input)?;
    let mut visitor = Check { job, scanned, fingerprinter, here: None, error: None };
    let mut tasks = Tasks::new(Arc::new([job.source.clone()]), Arc::clone(&options));
    while visitor.scanned.peek().is_some() && visitor.error.is_none() {
        let Some(task) = tasks.next_task() else { break };
        onionskin_store::cancel::check().map_err(|error| job.io("reading", std::io::Error::other(error)))?;
        task.run(&mut scratch, &mut visitor);
    }
    visitor.settle_before(u64::MAX);
    match (visitor.error, visitor.scanned.peek()) {
        (Some(error), _) => Err(error),
        (None, Some(scanned)) => Err(job.moved(scanned.offset)),
        (None, None) => Ok(()),
    }
}

struct Check<'a> {
    job: &'a Job,
    /// Those that are not yet met.
    scanned: Stretch<Scanned>,
    fingerprinter: TextFingerprinter,
    /// A place with documents, and the fingerprints of the documents that begin there: records of a
    /// compressed WARC file may share one.
    here: Option<(u64, Vec<u64>)>,
    error: Option<DedupError>,
}

impl Check<'_> {
    fn fail(&mut self, error: DedupError) {
        self.error.get_or_insert(error);
    }

    /// Compares what begins before an offset; nothing more will come of it.
    fn settle_before(&mut self, offset: u64) {
        let found = self.here.take_if(|(at, _)| *at < offset);
        while let Some(scanned) = self.scanned.peek().filter(|next| next.offset < offset).copied() {
            let is_there = match (&found, scanned.text_fp) {
                (Some((at, fingerprints)), Some(text)) => {
                    *at == scanned.offset && fingerprints.contains(&text)
                }
                // A document without words has nothing to compare, as a revisit.
                (_, None) => true,
                (None, Some(_)) => false,
            };
            if !is_there {
                let place = self.job.source.place(scanned.offset);
                return self.fail(DedupError::OtherContent { place });
            }
            if let Err(error) = self.scanned.take_at(scanned.offset) {
                return self.fail(self.job.io("deciding on", error));
            }
        }
    }
}

impl Visitor for Check<'_> {
    fn wants(&mut self, offset: u64) -> bool {
        self.settle_before(offset);
        self.error.is_none() && self.scanned.peek().is_some_and(|next| next.offset == offset)
    }

    fn next_wanted(&mut self, from: u64) -> Option<Range<u64>> {
        self.settle_before(from);
        if self.error.is_some() {
            return None;
        }
        self.scanned.peek().map(|next| next.offset..u64::MAX)
    }

    fn document(&mut self, document: Document<'_>) {
        let text = self.fingerprinter.text_fp(document.text);
        let (at, found) = self.here.get_or_insert_with(|| (document.offset, Vec::new()));
        if *at == document.offset {
            found.extend(text.map(|fingerprint| fingerprint.0));
        }
    }

    fn bad_record(&mut self, _: BadRecord) {}

    fn skipped(&mut self, _: SkipReason) {}

    fn failed(&mut self, failure: InputFailure) {
        let (place, reason) = (self.job.source.failure_place(&failure), failure.detail);
        // Whatever was made of the bytes before.
        self.error = Some(DedupError::Broken { name: place, reason });
    }
}
