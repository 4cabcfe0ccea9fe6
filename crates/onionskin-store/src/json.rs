//! Small pieces of JSON that several files share.

/// 64-bit checksums as sixteen hexadecimal digits: JSON numbers of that size are rounded by many readers.
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
