//! Copies of inputs, several at a time, each by one thread.

use std::fs;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use onionskin_core::Recipe;
use onionskin_corpus::{Options, Shares};
use onionskin_store::{IoError, cancel};

use super::decide::{Scanned, Stretches, Verdict, Verdicts};
use super::names::Names;
use super::output::{Encoded, Output};
use super::plan::{Job, Kind, Plan, What};
use super::{DedupError, check, csv, jsonl, parquet, warc};
use onionskin_store::progress::{Event, Progress};

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(200);

/// What everybody who copies needs.
pub(super) struct Context<'a> {
    pub output: &'a Output,
    pub options: &'a Options,
    pub recipe: &'a Recipe,
    /// Of the memory, for documents that are read again.
    pub shares: Shares,
    /// Who reads a large document has this; nobody else reads one then.
    pub large: &'a Mutex<()>,
    /// Every input of the atlas: where it is now, if it is copied too.
    pub paths: &'a [Option<std::path::PathBuf>],
    pub verdicts: &'a Stretches<Verdict>,
    /// The documents that an input is checked for before it is copied.
    pub scanned: &'a Stretches<Scanned>,
    pub names: &'a Path,
    pub dolma: Option<&'a str>,
    /// Bytes of input that were read so far.
    pub copied: &'a AtomicU64,
}

impl Context<'_> {
    pub fn verdicts(&self, job: &Job) -> Result<Verdicts, DedupError> {
        Ok(self.verdicts.open(job.input)?)
    }

    pub fn names(&self) -> Result<Names, DedupError> {
        Ok(Names::open(self.names).map_err(|e| IoError::new("reading", self.names, e))?)
    }

    /// The copy of an input, packed as the input is.
    pub fn create(&self, job: &Job) -> Result<Encoded, DedupError> {
        let path = self.output.place(&job.to)?;
        Ok(Encoded::create(&path, job.encoding).map_err(|e| IoError::new("creating", path, e))?)
    }
}

impl Job {
    pub fn io(&self, action: &str, error: io::Error) -> DedupError {
        IoError::from_io(error, action, &self.path).into()
    }

    /// There is no document where the scan found one.
    pub fn moved(&self, offset: u64) -> DedupError {
        DedupError::Moved { name: self.name.clone(), offset }
    }

    pub fn broken(&self, reason: impl ToString) -> DedupError {
        DedupError::Broken { name: self.name.clone(), reason: reason.to_string() }
    }
}

/// What became of an input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CopyReport {
    /// Length of the copy.
    pub bytes: u64,
    /// Records that are not in the copy.
    pub removed: u64,
    /// Bytes of the input, not compressed, that they took; see `DedupSummary`.
    pub removed_bytes: u64,
    /// Records that something was added to.
    pub annotated: u64,
    /// Lines and rows that are no documents, and stay.
    pub other_records: u64,
    /// Copies in a WARC file that became revisits.
    pub revisits: u64,
    /// Copies in a WARC file that a metadata record was put beside.
    pub metadata: u64,
    /// Copies that stay as they are because the file is damaged there.
    pub untouched: u64,
    /// The stream broke, as the scan saw too.
    pub damage: Option<String>,
}

/// Counts what is read.
pub(super) struct Meter<'a, R> {
    input: R,
    copied: &'a AtomicU64,
}

impl<'a, R> Meter<'a, R> {
    pub fn new(input: R, copied: &'a AtomicU64) -> Meter<'a, R> {
        Meter { input, copied }
    }
}

impl<R: Read> Read for Meter<'_, R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        cancel::check().map_err(io::Error::other)?;
        let n = self.input.read(into)?;
        self.copied.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// Does all jobs; reports are in the order of the jobs.
pub(super) fn run(
    plan: &Plan,
    context: &Context<'_>,
    threads: usize,
    progress: &dyn Progress,
) -> Result<Vec<CopyReport>, DedupError> {
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    let cancel = cancel::current();
    let (sender, receiver) = crossbeam_channel::unbounded();
    let mut reports: Vec<Option<CopyReport>> = vec![None; plan.jobs.len()];
    // The failure of the first job, not of the first moment.
    let mut failure: Option<(usize, DedupError)> = None;
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, plan.jobs.len().max(1)) {
            let (sender, next, failed, cancel) = (sender.clone(), &next, &failed, &cancel);
            scope.spawn(move || {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = plan.jobs.get(nth).filter(|_| !failed.load(Ordering::Relaxed)) else {
                        break;
                    };
                    let done = catch_unwind(AssertUnwindSafe(|| cancel::with(cancel, || one(context, job))));
                    // The decoders of Parquet may panic on damaged files.
                    let done = done.unwrap_or_else(|_| Err(job.broken("the decoder gave up")));
                    failed.fetch_or(done.is_err(), Ordering::Relaxed);
                    if sender.send((nth, done)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(TELL_EVERY) {
                Ok((nth, Ok(report))) => {
                    tracing::debug!(input = plan.jobs[nth].name, bytes = report.bytes, "copied");
                    reports[nth] = Some(report);
                }
                Ok((nth, Err(error))) => {
                    if failure.as_ref().is_none_or(|(first, _)| nth < *first) {
                        failure = Some((nth, error));
                    }
                }
                Err(crossbeam_channel::RecvTimeoutError::Timeout) => {}
                Err(crossbeam_channel::RecvTimeoutError::Disconnected) => break,
            }
            progress.event(Event::Copied { input_bytes: context.copied.load(Ordering::Relaxed) });
        }
    });
    match failure {
        Some((_, error)) => Err(error),
        None => Ok(reports.into_iter().flatten().collect()),
    }
}

fn one(context: &Context<'_>, job: &Job) -> Result<CopyReport, DedupError> {
    let changed = || fs::metadata(&job.path).map(|meta| (meta.len(), meta.modified().ok()));
    let before = changed().map_err(|e| job.io("reading", e))?;
    if job.is_checked {
        check::check(context, job)?;
    }
    let report = match job.what {
        What::Filter(Kind::Jsonl) => jsonl::filter(context, job),
        What::Annotate(Kind::Jsonl) => jsonl::annotate(context, job),
        What::Filter(Kind::Parquet) => parquet::copy(context, job, parquet::Mode::Filter),
        What::Annotate(Kind::Parquet) => parquet::copy(context, job, parquet::Mode::Annotate),
        What::Filter(Kind::Warc) => warc::copy(context, job, warc::Mode::Revisits),
        What::Annotate(Kind::Warc) => warc::copy(context, job, warc::Mode::Metadata),
        What::Filter(Kind::Csv { delimiter }) | What::Annotate(Kind::Csv { delimiter }) => {
            csv::filter(context, job, delimiter)
        }
        What::Dolma => jsonl::dolma(context, job, context.dolma.unwrap_or_default()),
    }?;
    // The length is compared before and after: a file that grew while it was read is not what the
    // scan saw. And one that was written to is not what was compared.
    let after = changed().map_err(|e| job.io("reading", e))?;
    if after.0 != job.bytes {
        return Err(DedupError::Changed { name: job.name.clone(), was: job.bytes, now: after.0 });
    }
    if before != after {
        return Err(DedupError::ChangedMeanwhile { name: job.name.clone() });
    }
    Ok(report)
}
