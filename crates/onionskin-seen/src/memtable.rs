//! Documents that are in no run yet.

use std::collections::HashMap;

use crate::run::Record;

/// The documents of the log, in memory.
#[derive(Debug, Default)]
pub(crate) struct Memtable {
    pub(crate) first: u32,
    pub(crate) records: Vec<Record>,
    /// As in a run: two bytes of length, then the name.
    pub(crate) names: Vec<u8>,
    /// Documents with sketches, in order, and their minima one behind the other.
    sketched: Vec<u32>,
    pub(crate) sketches: Vec<u32>,
    /// Only looked up, and sorted before it is written, so its order is nowhere to be seen.
    postings: HashMap<u64, Vec<u32>>,
    pub(crate) n_postings: u64,
}

impl Memtable {
    pub(crate) fn new(first: u32) -> Memtable {
        Memtable { first, ..Memtable::default() }
    }

    pub(crate) fn docs(&self) -> u32 {
        self.records.len() as u32
    }

    pub(crate) fn next(&self) -> u32 {
        self.first + self.docs()
    }

    pub(crate) fn record(&self, doc: u32) -> Option<Record> {
        self.records.get(doc.checked_sub(self.first)? as usize).copied()
    }

    pub(crate) fn name(&self, place: u64) -> Vec<u8> {
        let rest = self.names.get(place as usize..).unwrap_or_default();
        let Some((len, rest)) = rest.split_first_chunk() else { return Vec::new() };
        rest.get(..usize::from(u16::from_le_bytes(*len))).unwrap_or_default().to_vec()
    }

    pub(crate) fn push(&mut self, mut record: Record, name: Option<&[u8]>) {
        if let Some(name) = name {
            record.key = self.names.len() as u64;
            self.names.extend_from_slice(&(name.len() as u16).to_le_bytes());
            self.names.extend_from_slice(name);
        }
        self.records.push(record);
    }

    /// The sketch of the document that was pushed last.
    pub(crate) fn push_sketch(&mut self, sketch: &[u32]) {
        if !sketch.is_empty() {
            self.sketched.push(self.next() - 1);
            self.sketches.extend_from_slice(sketch);
        }
    }

    /// The minima of a document.
    pub(crate) fn sketch(&self, doc: u32, minima: usize) -> Option<&[u32]> {
        let at = self.sketched.binary_search(&doc).ok()?;
        self.sketches.get(at * minima..(at + 1) * minima)
    }

    pub(crate) fn post(&mut self, key: u64, doc: u32) {
        self.postings.entry(key).or_default().push(doc);
        self.n_postings += 1;
    }

    pub(crate) fn lookup(&self, key: u64, most: usize, out: &mut Vec<u32>) {
        if let Some(docs) = self.postings.get(&key) {
            out.extend(docs.iter().take(most.saturating_sub(out.len())));
        }
    }

    /// All postings in order of key and document.
    pub(crate) fn sorted_postings(&self) -> Vec<(u64, u32)> {
        let mut all = Vec::with_capacity(self.n_postings as usize);
        for (key, docs) in &self.postings {
            all.extend(docs.iter().map(|doc| (*key, *doc)));
        }
        all.sort_unstable();
        all
    }
}
