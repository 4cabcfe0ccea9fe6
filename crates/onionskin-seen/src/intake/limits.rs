//! What documents may take while they are read, prepared and answered.

use onionskin_corpus::{Options, Shares};
use onionskin_store::MemoryBudget;

use super::documents::Incoming;

/// Limits of reading, and who reads PDF.
#[derive(Clone, Debug)]
pub struct Limits {
    /// A line, a record or a text that is longer is bad.
    pub max_record_bytes: u64,
    /// A Parquet file with a page that takes more memory cannot be read.
    pub max_page_bytes: u64,
    /// The command that reads PDF files apart from this process; see `ExtractOptions::pdf_worker`.
    pub pdf_worker: Vec<String>,
    /// The shares of a memory budget, which limit whatever else grows with the input.
    pub shares: Option<Shares>,
}

/// What a document takes beside its text and its name: features, minima, the answer.
const EACH_BYTES: usize = 1 << 10;

/// Documents that are handed on together where no budget says how many.
const PART_BYTES: usize = 8 << 20;

/// Reading has this much of a budget at least, if that is not more than half of it.
const LEAST_READING: MemoryBudget = MemoryBudget::from_mib(64);

/// More than this makes no difference: the largest records fit, with many threads.
const MOST_READING: MemoryBudget = MemoryBudget::from_mib(4 << 10);

impl Limits {
    /// Of records only.
    pub fn of_records(max_record_bytes: u64) -> Limits {
        Limits { max_record_bytes, max_page_bytes: u64::MAX, pdf_worker: Vec::new(), shares: None }
    }

    /// With a memory budget and some threads.
    pub fn within(max_record_bytes: u64, memory: MemoryBudget, threads: usize) -> Limits {
        let shares = Some(Shares::of(memory.bytes(), threads));
        Limits { shares, ..Limits::of_records(max_record_bytes) }
    }

    /// Splits the memory of a job: for the index, and for reading and preparing documents.
    pub fn split(memory: MemoryBudget) -> (MemoryBudget, MemoryBudget) {
        let reading = memory.share(1, 4).max(LEAST_READING).min(memory.share(1, 2)).min(MOST_READING);
        (MemoryBudget::from_bytes(memory.bytes() - reading.bytes()), reading)
    }

    /// Options of a scan with these limits.
    pub(super) fn apply(&self, options: Options) -> Options {
        let mut options = Options {
            max_record_bytes: self.max_record_bytes,
            max_page_bytes: self.max_page_bytes,
            ..options
        };
        options.extract.pdf_worker.clone_from(&self.pdf_worker);
        match &self.shares {
            Some(shares) => shares.limit(&options),
            None => options,
        }
    }

    /// Documents of this size together are enough.
    pub(super) fn part_bytes(&self) -> usize {
        self.shares.map_or(PART_BYTES, |shares| shares.batch_bytes)
    }

    /// A text that is larger is read and prepared when nothing else is.
    pub(super) fn small_bytes(&self) -> u64 {
        self.shares.map_or(u64::MAX, |shares| shares.small_record_bytes)
    }
}

impl Incoming {
    /// What it takes in memory, about.
    pub(super) fn held_bytes(&self) -> usize {
        let text = self.text.as_ref().map_or_else(String::len, String::len);
        size_of::<Incoming>() + self.name.len() + text
    }
}

/// Documents that are answered together: as many as are wanted, or as there is memory for.
#[derive(Debug)]
pub struct Gathered {
    documents: Vec<Incoming>,
    held: usize,
    /// The last one is to be answered before more is read.
    ends_large: bool,
    most: usize,
    part_bytes: usize,
    small_bytes: u64,
}

impl Gathered {
    /// None yet, and at most so many.
    pub fn new(most: usize, limits: &Limits) -> Gathered {
        let (part_bytes, small_bytes) = (limits.part_bytes(), limits.small_bytes());
        Gathered { documents: Vec::new(), held: 0, ends_large: false, most, part_bytes, small_bytes }
    }

    /// Takes one, of which the caller keeps so many bytes more.
    pub fn push(&mut self, document: Incoming, more_bytes: usize) {
        self.held += document.held_bytes() + EACH_BYTES + more_bytes;
        self.ends_large = document.text.as_ref().is_ok_and(|text| text.len() as u64 > self.small_bytes);
        self.documents.push(document);
    }

    /// Whether they are to be answered before more is read.
    pub fn is_full(&self) -> bool {
        self.documents.len() >= self.most || self.held >= self.part_bytes || self.ends_large
    }

    /// Gives them away and begins anew.
    pub fn take(&mut self) -> Vec<Incoming> {
        (self.held, self.ends_large) = (0, false);
        std::mem::take(&mut self.documents)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Incoming {
        Incoming { name: "a".to_owned(), text: Ok(text.to_owned()) }
    }

    #[test]
    fn a_batch_ends_by_number_by_bytes_and_after_a_large_text() {
        let limits = Limits::within(64 << 20, MemoryBudget::from_mib(64), 2);
        let shares = limits.shares.unwrap();
        let mut gathered = Gathered::new(1000, &limits);
        let count = |gathered: &mut Gathered, text: &str| {
            while !gathered.is_full() {
                gathered.push(document(text), 0);
            }
            gathered.take().len()
        };
        assert_eq!(count(&mut gathered, "a few words"), 1000);
        let long = "a".repeat(64 << 10);
        let many = count(&mut gathered, &long);
        assert!(many < 200 && many * long.len() <= 2 * shares.batch_bytes, "{many}");
        assert_eq!(count(&mut gathered, &"a".repeat(shares.small_record_bytes as usize + 1)), 1);
    }

    #[test]
    fn a_budget_is_split_without_loss() {
        for mib in [1, 16, 128, 256, 1024, 1 << 20] {
            let memory = MemoryBudget::from_mib(mib);
            let (index, reading) = Limits::split(memory);
            assert_eq!(index.bytes() + reading.bytes(), memory.bytes());
            assert!(index >= reading, "{mib}");
        }
    }
}
