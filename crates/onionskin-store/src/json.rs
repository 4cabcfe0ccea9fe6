//! Small pieces of JSON that several files share.

use std::path::Path;

use serde::Serializer;

/// A path in a summary. What is not Unicode is shown as well as it can be, instead of failing.
pub fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// The same where there may be none.
pub fn optional_path<P: AsRef<Path>, S: Serializer>(
    path: &Option<P>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => serializer.collect_str(&path.as_ref().display()),
        None => serializer.serialize_none(),
    }
}

/// Anything that has a spelling, such as a filter.
pub fn spelled<T: std::fmt::Display, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// 64-bit checksums as sixteen hexadecimal digits: JSON numbers of that size are rounded by many
/// readers.
pub(crate) mod hex64 {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{value:016x}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
        match u64::from_str_radix(&text, 16) {
            Ok(value) if digits => Ok(value),
            _ => Err(D::Error::custom("a checksum is sixteen hexadecimal digits")),
        }
    }
}
