//! What is asked of an index about documents.

use std::str::FromStr;

use onionskin_core::spelled;
use serde::Deserialize;

use crate::catalogue::Params;
use crate::error::SeenError;

/// What is to be done with documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Look for them and add none.
    Check,
    /// Add them, duplicates too.
    Add,
    /// Add those that are new. Check and addition are one step.
    AddIfNew,
}

spelled!(Verb, as_str: Check => "check", Add => "add", AddIfNew => "add-if-new");

/// Not a verb.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode {0:?}; known: {known}", known = Verb::KNOWN)]
pub struct UnknownVerb(pub String);

impl FromStr for Verb {
    type Err = UnknownVerb;

    fn from_str(text: &str) -> Result<Verb, UnknownVerb> {
        Verb::find(text).ok_or_else(|| UnknownVerb(text.to_owned()))
    }
}

/// Only documents that may have this resemblance are near. Above 0 and at most 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "f64")]
pub struct Threshold(f64);

/// Not a threshold.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a threshold is above 0 and at most 1, not {0}")]
pub struct InvalidThreshold(String);

impl Threshold {
    /// The number itself.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Threshold {
    type Error = InvalidThreshold;

    fn try_from(value: f64) -> Result<Threshold, InvalidThreshold> {
        if value > 0.0 && value <= 1.0 {
            return Ok(Threshold(value));
        }
        Err(InvalidThreshold(value.to_string()))
    }
}

impl FromStr for Threshold {
    type Err = InvalidThreshold;

    fn from_str(text: &str) -> Result<Threshold, InvalidThreshold> {
        let value: f64 = text.parse().map_err(|_| InvalidThreshold(format!("{text:?}")))?;
        value.try_into()
    }
}

/// How the resemblance of near-duplicates is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Verify {
    /// It is estimated from the minima in the index.
    Sketch,
    /// It is computed from the texts of both.
    Text,
}

spelled!(Verify, as_str: Sketch => "sketch", Text => "text");

/// No way to verify.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown way to verify {0:?}; known: {known}", known = Verify::KNOWN)]
pub struct UnknownVerify(pub String);

impl FromStr for Verify {
    type Err = UnknownVerify;

    fn from_str(text: &str) -> Result<Verify, UnknownVerify> {
        Verify::find(text).ok_or_else(|| UnknownVerify(text.to_owned()))
    }
}

impl TryFrom<String> for Verify {
    type Error = UnknownVerify;

    fn try_from(text: String) -> Result<Verify, UnknownVerify> {
        text.parse()
    }
}

impl Verify {
    /// An error if such an index has not what it takes. Texts are never in an index; `has_texts`
    /// says whether the caller knows where they are.
    pub fn ensure_possible(self, params: &Params, has_texts: bool) -> Result<(), SeenError> {
        match self {
            Verify::Sketch if !params.sketches => Err(SeenError::NoSketches),
            Verify::Text if !has_texts => Err(SeenError::NoTexts),
            Verify::Sketch | Verify::Text => Ok(()),
        }
    }
}

/// What is asked about documents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// What is to be done with them.
    pub verb: Verb,
    /// With none, that of the index; where it has none either, the features decide what is near.
    pub threshold: Option<Threshold>,
}

impl Request {
    /// Without a threshold.
    pub fn new(verb: Verb) -> Request {
        Request { verb, threshold: None }
    }

    /// An error if it cannot be asked of such an index: a threshold needs sketches, unless the
    /// index was made for it.
    pub fn ensure_possible(&self, params: &Params) -> Result<(), SeenError> {
        match self.threshold {
            Some(_) if !params.sketches && self.threshold != params.threshold => Err(SeenError::NoSketches),
            _ => Ok(()),
        }
    }
}
