//! What a scan must know to go on: kept in the journal with every commit.

use std::collections::BTreeMap;

use onionskin_corpus::Position;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ScanError;

/// How many bad records are kept with place and reason; the rest is counted.
pub(super) const BAD_RECORD_EXAMPLES: usize = 100;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    source: u32,
    task: u32,
    /// All input has been read.
    pub read: bool,
    /// Links have been resolved.
    pub linked: bool,
    pub documents: u64,
    pub empty_documents: u64,
    pub revisits: u64,
    pub tokens: u64,
    pub text_bytes: u64,
    pub input_bytes: u64,
    pub sites: u64,
    pub links_found: u64,
    pub links: u64,
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

    pub fn from_json(value: Value, sources: usize) -> Result<State, ScanError> {
        let state: State =
            serde_json::from_value(value).map_err(|error| ScanError::State(error.to_string()))?;
        if state.per_source.len() != sources {
            return Err(ScanError::State(format!(
                "it knows {} inputs, not {sources}",
                state.per_source.len()
            )));
        }
        Ok(state)
    }

    pub fn to_json(&self) -> Result<Value, ScanError> {
        serde_json::to_value(self).map_err(|error| ScanError::State(error.to_string()))
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
