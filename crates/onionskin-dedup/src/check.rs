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
//!
//! Documents are read within the shares of a scan with the same memory. Several threads read small
//! ones, and one of them a large one.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use onionskin_core::{Recipe, TextFingerprinter};
use onionskin_corpus::{
    BadReason, BadRecord, Document, InputFailure, Scratch, Shares, SkipReason, Tasks, Visitor,
};

use super::DedupError;
use super::decide::{Scanned, Stretch};
use super::plan::Job;
use super::shards::Context;

/// Compares documents of an input with what the scan found.
pub(super) fn check(context: &Context<'_>, job: &Job) -> Result<(), DedupError> {
    let options = Arc::new(context.options.clone());
    let mut scratch = Scratch::new(&options);
    let mut visitor = Check {
        job,
        scanned: context.scanned.open(job.input)?,
        fingerprinter: TextFingerprinter::new(context.recipe),
        recipe: context.recipe,
        shares: context.shares,
        large: context.large,
        holds: None,
        here: None,
        error: None,
    };
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
    recipe: &'a Recipe,
    shares: Shares,
    large: &'a Mutex<()>,
    /// While a large document is read.
    holds: Option<MutexGuard<'a, ()>>,
    /// A place with documents, and the fingerprints of the documents that begin there: records of a
    /// compressed WARC file may share one.
    here: Option<(u64, Vec<u64>)>,
    error: Option<DedupError>,
}

/// Buffers for the analysis of a longer text are not kept for the next.
const KEPT_TEXT_BYTES: usize = 1 << 20;

impl Check<'_> {
    /// Waits until there is memory for a text; an error if there never will be.
    fn make_room(&mut self, document: &Document<'_>) -> bool {
        let length = document.text.len();
        self.before_large(length as u64);
        // Eight bytes a word, each of which is a letter and a space at least.
        let fits = self.holds.is_none() || self.shares.fits(length, 4 * length);
        if !fits {
            let (limit, name) = (self.shares.large_bytes, self.job.source.place(document.offset));
            let reason = format!("{}; more memory helps", BadReason::NeedsMemory { limit });
            self.fail(DedupError::Broken { name, reason });
        }
        fits
    }

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
        self.holds = None;
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
        if !self.make_room(&document) {
            return;
        }
        let text = self.fingerprinter.text_fp(document.text);
        let (at, found) = self.here.get_or_insert_with(|| (document.offset, Vec::new()));
        if *at == document.offset {
            found.extend(text.map(|fingerprint| fingerprint.0));
        }
        if document.text.len() > KEPT_TEXT_BYTES {
            self.fingerprinter = TextFingerprinter::new(self.recipe);
        }
        self.holds = None;
    }

    fn before_large(&mut self, bytes: u64) {
        if bytes > self.shares.small_record_bytes && self.holds.is_none() {
            self.holds = Some(self.large.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn bad_record(&mut self, _: BadRecord) {
        self.holds = None;
    }

    fn skipped(&mut self, _: SkipReason) {}

    fn failed(&mut self, failure: InputFailure) {
        let (place, reason) = (self.job.source.failure_place(&failure), failure.detail);
        // Whatever was made of the bytes before.
        self.error = Some(DedupError::Broken { name: place, reason });
    }
}
