//! What a scan must know to go on: kept in the journal with every commit.

use std::collections::BTreeMap;

use onionskin_corpus::Position;
use serde::{Deserialize, Serialize};

/// How many bad records are kept with place and reason; the rest is counted.
pub(super) const BAD_RECORD_EXAMPLES: usize = 100;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    source: u32,
    task: u32,
    pub documents: u64,
    pub empty_documents: u64,
    pub revisits: u64,
    pub tokens: u64,
    pub text_bytes: u64,
    pub input_bytes: u64,
    pub sites: u64,
    pub links_found: u64,
    pub links: u64,
    /// Bytes that sorting links wrote to disk.
    pub spilled_bytes: u64,
    pub chunks: BTreeMap<String, u64>,
    pub bad_records: BTreeMap<String, u64>,
    pub skipped: BTreeMap<String, u64>,
    pub bad_record_examples: Vec<(String, String)>,
    /// Documents and bad records of every source.
    pub per_source: Vec<(u64, u64)>,
}

impl State {
    pub fn new(sources: usize) -> State {
        State { per_source: vec![(0, 0); sources], ..State::default() }
    }

    pub fn position(&self) -> Position {
        Position { source: self.source, task: self.task }
    }

    pub fn set_position(&mut self, position: Position) {
        (self.source, self.task) = (position.source, position.task);
    }

    pub fn bad_record_count(&self) -> u64 {
        self.bad_records.values().sum()
    }
}
