//! Choices in JSON as people spell them: for types that print and parse, used with
//! `#[serde(with)]`.

use std::fmt::Display;
use std::str::FromStr;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Writes a choice; none is null.
pub fn serialize<T: Display, S: Serializer>(choice: &Option<T>, to: S) -> Result<S::Ok, S::Error> {
    choice.as_ref().map(ToString::to_string).serialize(to)
}

/// Reads a choice; null is none, and a word that is no choice is an error.
pub fn deserialize<'de, T, D>(from: D) -> Result<Option<T>, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let spelled = Option::<String>::deserialize(from)?;
    spelled.map(|word| word.parse().map_err(D::Error::custom)).transpose()
}
