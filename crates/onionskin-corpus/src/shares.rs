//! Limits of reading that a memory budget has room for.
//!
//! Foreign bytes decide how much there is to hold: a kilobyte of compressed input may hold millions
//! of rows, and one record may be all of its file. So each thing that grows with the input has a
//! share of the budget and a bound of its own:
//!
//! | share | bound |
//! |---|---|
//! | batches: rows that wait to be taken | a batch is handed on when it is full |
//! | small records, some for each thread | above that size a record is large |
//! | inputs decoded ahead, where there are several threads | [`Shares::ahead`] |
//! | one large record | one at a time; what is too large is skipped and reported |
//!
//! What a small budget can change is which records are too large. The number of threads cannot.

use crate::ahead::Ahead;
use crate::options::Options;

/// A batch of this size is worth handing to another thread; with room for its buffers to grow.
const USEFUL_BATCH_BYTES: u64 = 24 << 20;
/// A large record of ordinary text, while it is decoded and analysed, per byte.
const LARGE_FACTOR: u64 = 8;
/// The copies of a text while it is analysed: a line and its unpacked text, or a page, what it was
/// decoded to, and its text.
const COPIES_OF_TEXT: u64 = 4;
/// A small record, while it is decoded and analysed, per byte: words of one letter.
const SMALL_FACTOR: u64 = 48;
/// What a thread holds beside the record: its share of a stream that is decoded in order, and the
/// buffers of a reader.
const THREAD_BYTES: u64 = 10 << 20;
/// No record is large that is smaller.
const LEAST_SMALL_BYTES: u64 = 64 << 10;
/// More than this per thread is not decoded ahead.
const THREAD_AHEAD_BYTES: u64 = 64 << 20;
/// A page of Parquet is decoded, and its rows are copied out.
const PAGE_FACTOR: u64 = 3;
/// What the reader of one PDF has at the most.
const MOST_TOOL_BYTES: u64 = 4 << 30;
/// Less than this is not worth a first attempt at a PDF.
const LEAST_TOOL_BYTES: u64 = 48 << 20;
/// Windows of zstd that all readers have, and that the largest budgets allow.
const WINDOW_LOGS: std::ops::RangeInclusive<u32> = 23..=27;

/// The shares of a budget.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// Batches that may exist.
    pub permits: usize,
    /// Threads that read and analyse.
    pub threads: usize,
    /// A batch that holds this much is handed on.
    pub batch_bytes: usize,
    /// For one large record.
    pub large_bytes: u64,
    /// A record above this is large.
    pub small_record_bytes: u64,
    /// What a thread may hold of small records.
    pub small_bytes: u64,
    /// The largest window of a zstd frame, as a power of two.
    pub window_log: u32,
    /// For compressed input that is decoded ahead.
    pub ahead_bytes: u64,
}

impl Shares {
    /// Of memory for nothing but reading and analysing, in bytes, with some threads.
    pub fn of(work: u64, threads: usize) -> Shares {
        let threads = threads.max(1) as u64;
        let batches = work / 4;
        let permits = (batches / USEFUL_BATCH_BYTES).clamp(1, 2 * threads);
        // A thread that is alone waits for nobody, and has nothing to do ahead.
        let ahead =
            |threads: u64| if threads < 2 { 0 } else { (work / 16).min(threads * THREAD_AHEAD_BYTES) };
        let small = work / 4 - ahead(threads.min(permits));
        let threads = threads.min(permits).min(small / (2 * THREAD_BYTES)).max(1);
        let small_bytes = small / threads;
        let small_record_bytes =
            (small_bytes.saturating_sub(THREAD_BYTES) / SMALL_FACTOR).max(LEAST_SMALL_BYTES);
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Shares {
            permits: whole(permits),
            threads: whole(threads),
            // Buffers double when they grow.
            batch_bytes: whole(batches / permits / 2),
            large_bytes: work / 2,
            small_record_bytes,
            small_bytes,
            ahead_bytes: ahead(threads),
            window_log: (work / 8).max(1).ilog2().clamp(*WINDOW_LOGS.start(), *WINDOW_LOGS.end()),
        }
    }

    /// Options with limits that the budget has room for.
    pub fn limit(&self, options: &Options) -> Options {
        let mut options = options.clone();
        let pages = |bytes: u64| bytes / PAGE_FACTOR;
        options.max_record_bytes = options.max_record_bytes.min(self.record_bytes());
        options.max_page_bytes = options.max_page_bytes.min(pages(self.large_bytes));
        options.small_page_bytes = options.small_page_bytes.min(pages(self.small_bytes));
        options.max_window_log = options.max_window_log.min(self.window_log);
        let extract = &mut options.extract;
        extract.max_text_bytes = extract.max_text_bytes.min(self.record_bytes());
        extract.small_text_bytes = extract.small_text_bytes.min(self.small_record_bytes);
        extract.tool_memory_bytes = extract.tool_memory_bytes.min(self.large_bytes).min(MOST_TOOL_BYTES);
        let small_tool = if self.small_bytes < LEAST_TOOL_BYTES { 0 } else { self.small_bytes };
        extract.small_tool_memory_bytes = extract.small_tool_memory_bytes.min(small_tool);
        options
    }

    /// Decodes ahead within its share.
    pub fn ahead(&self) -> Ahead {
        Ahead::within(self.ahead_bytes)
    }

    /// The largest record: in whole mebibytes, since people read it.
    fn record_bytes(&self) -> u64 {
        (self.large_bytes / LARGE_FACTOR).next_multiple_of(1 << 20)
    }

    /// Whether there is room to analyse a text that takes so much memory.
    pub fn fits(&self, text_bytes: usize, analysis_bytes: usize) -> bool {
        (text_bytes as u64).saturating_mul(COPIES_OF_TEXT).saturating_add(analysis_bytes as u64)
            <= self.large_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In MiB.
    const BUDGETS: [u64; 8] = [64, 88, 120, 184, 440, 952, 4024, 65464];

    #[test]
    fn shares_fit_into_the_budget() {
        for mib in BUDGETS {
            for threads in [1, 2, 6, 64] {
                let shares = Shares::of(mib << 20, threads);
                let small = shares.threads as u64 * (THREAD_BYTES + SMALL_FACTOR * shares.small_record_bytes);
                let batches = 2 * (shares.permits * shares.batch_bytes) as u64;
                let held = shares.large_bytes + small + batches + shares.ahead_bytes;
                assert!(held <= mib << 20, "{mib} MiB, {threads} threads: {held}");
                assert!(shares.record_bytes() >= 4 << 20, "{mib} MiB, {threads} threads");
                assert!(shares.threads >= 1 && shares.threads <= threads);
            }
        }
    }

    #[test]
    fn limits_do_not_depend_on_threads() {
        for mib in BUDGETS {
            let limits = [1, 2, 6, 64].map(|threads| {
                let shares = Shares::of(mib << 20, threads);
                let options = shares.limit(&Options::default());
                let Options { max_record_bytes, max_page_bytes, max_window_log, extract, .. } = options;
                let extract = (extract.max_text_bytes, extract.tool_memory_bytes);
                (max_record_bytes, max_page_bytes, max_window_log, extract, shares.fits(4 << 20, 20 << 20))
            });
            assert!(limits.iter().all(|limit| *limit == limits[0]), "{mib} MiB: {limits:?}");
        }
    }

    #[test]
    fn an_ordinary_machine_reads_the_largest_records() {
        let shares = Shares::of(6000 << 20, 4);
        let options = Options::default();
        let limited = shares.limit(&options);
        assert_eq!(limited.max_record_bytes, options.max_record_bytes);
        assert_eq!(limited.max_window_log, options.max_window_log);
        assert_eq!((shares.permits, shares.threads), (8, 4));
        assert!(shares.small_record_bytes > 4 << 20);
    }
}
