//! What the manifest records of each stage and of each level.
//!
//! The records themselves are types of the crates whose stages they describe. Here they are kept as
//! written, so that a record of a newer version survives a rewrite of the manifest.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ManifestError;
use crate::schema::LevelName;
use crate::stage::{StageName, StageRecord};

/// What the manifest records of each stage and of each level.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stages(BTreeMap<String, Value>);

fn level_key(level: &LevelName) -> String {
    format!("copies.{}", level.as_str())
}

impl Stages {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The record of a stage; `None` when it was not run.
    pub fn get<R: StageRecord>(&self) -> Result<Option<R>, ManifestError> {
        self.read(R::STAGE.as_str())
    }

    /// The record of a level; `None` when it was not searched for.
    pub fn level<R: DeserializeOwned>(&self, level: &LevelName) -> Result<Option<R>, ManifestError> {
        self.read(&level_key(level))
    }

    fn read<R: DeserializeOwned>(&self, key: &str) -> Result<Option<R>, ManifestError> {
        let parse = |value: &Value| {
            R::deserialize(value)
                .map_err(|error| ManifestError::Record { stage: key.to_owned(), reason: error.to_string() })
        };
        self.0.get(key).map(parse).transpose()
    }

    /// The record of a stage as it is written; null when it was not run.
    pub fn raw(&self, stage: StageName) -> &Value {
        self.0.get(stage.as_str()).unwrap_or(&Value::Null)
    }

    /// Writes the record of a stage.
    pub fn set<R: StageRecord>(&mut self, record: &R) {
        self.write(R::STAGE.as_str().to_owned(), record);
    }

    /// Writes the record of a level.
    pub fn set_level(&mut self, level: &LevelName, record: &impl Serialize) {
        self.write(level_key(level), record);
    }

    fn write(&mut self, key: String, record: &impl Serialize) {
        // Records are plain structs with string keys, which always serialise.
        self.0.insert(key, serde_json::to_value(record).unwrap_or_default());
    }

    /// Writes the record of a stage as another program would.
    pub fn set_raw(&mut self, stage: StageName, record: Value) {
        self.0.insert(stage.as_str().to_owned(), record);
    }

    /// Removes the record of a stage.
    pub fn remove(&mut self, stage: StageName) {
        self.0.remove(stage.as_str());
    }
}
