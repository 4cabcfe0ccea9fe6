//! What somebody needs to copy an input that was read before: where it is, how it is compressed,
//! and what a line of it says.

use std::path::Path;

use crate::document::BadReason;
use crate::fields::FieldNames;
use crate::json::{FIELDS, JsonBuffers, JsonError, Path as FieldPath, Slot, each_key, find_fields};
use crate::options::Options;
use crate::sniff::Encoding;
use crate::source::{Location, Source};

impl Source {
    /// The file that this source is, whole; `None` for pipes, trees, members of a WACZ and objects
    /// in a store.
    pub fn path(&self) -> Option<&Path> {
        match &self.location {
            Location::File(path) => Some(path),
            _ => None,
        }
    }

    /// How its bytes are compressed as a whole.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }
}

/// Three fields of a line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonLine<'a> {
    /// The text.
    pub text: &'a str,
    /// The document's own name; a number is one as it is spelt.
    pub id: Option<&'a str>,
    /// The other field that was asked for, if it is a string.
    pub beside: Option<&'a str>,
}

/// What a line has in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonField<'a> {
    /// None of its names.
    Absent,
    /// Null.
    Null,
    /// A string.
    Text(&'a str),
    /// A number, as it is spelt.
    Number(&'a str),
    /// True, false, an array or an object.
    Other,
}

impl<'a> JsonField<'a> {
    /// A string.
    pub fn text(self) -> Option<&'a str> {
        match self {
            JsonField::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A string or a number, which are names of documents.
    pub fn name(self) -> Option<&'a str> {
        match self {
            JsonField::Text(name) | JsonField::Number(name) => Some(name),
            _ => None,
        }
    }
}

/// Reads fields of lines by the rules of a scan: what it takes for a document is one here, and
/// nothing else.
#[derive(Debug, Default)]
pub struct JsonLineReader {
    buffers: JsonBuffers,
}

impl JsonLineReader {
    /// The text, the name and one field more of a line; `None` for a line that a scan would not
    /// take for a document. The byte order mark in front of a file is not part of its first line.
    ///
    /// ```
    /// use onionskin_corpus::{JsonLineReader, Options};
    /// let mut reader = JsonLineReader::default();
    /// let line = reader.read(br#"{"id": 7, "text": "a\u0020rose", "source": "web"}"#, &Options::default(), "source");
    /// let line = line.unwrap();
    /// assert_eq!((line.text, line.id, line.beside), ("a rose", Some("7"), Some("web")));
    /// assert_eq!(reader.read(b"[1]", &Options::default(), "source"), None);
    /// ```
    pub fn read<'a>(&'a mut self, line: &'a [u8], options: &Options, beside: &str) -> Option<JsonLine<'a>> {
        let beside = FieldNames::one(beside);
        let [text, id, beside] = self.fields(line, [&options.text_field, &options.id_field, &beside]).ok()?;
        Some(JsonLine { text: text.text()?, id: id.name(), beside: beside.text() })
    }

    /// Up to four fields of a line, each under the first of its names that the line has.
    ///
    /// # Errors
    ///
    /// When the line is no object.
    ///
    /// ```
    /// use onionskin_corpus::{FieldNames, JsonField, JsonLineReader};
    /// let (text, id) = (FieldNames::from("text,content"), FieldNames::one("id"));
    /// let mut reader = JsonLineReader::default();
    /// let found = reader.fields(br#"{"id": 7, "text": null}"#, [&text, &id]).unwrap();
    /// assert_eq!(found, [JsonField::Null, JsonField::Number("7")]);
    /// ```
    pub fn fields<'a, const N: usize>(
        &'a mut self,
        line: &'a [u8],
        names: [&FieldNames; N],
    ) -> Result<[JsonField<'a>; N], BadReason> {
        const { assert!(N <= FIELDS) };
        self.buffers.shrink();
        let line = simdutf8::basic::from_utf8(line).map_err(|_| BadReason::InvalidUtf8)?;
        let slots = find_fields(line, &FieldPath::all(&names), &mut self.buffers).map_err(bad)?;
        let unpacked = &self.buffers.unpacked;
        Ok(std::array::from_fn(|field| match slots[field] {
            Slot::Absent => JsonField::Absent,
            Slot::Null => JsonField::Null,
            Slot::Borrowed(value) => JsonField::Text(value),
            Slot::Unpacked => JsonField::Text(&unpacked[field]),
            Slot::Number(number) => JsonField::Number(number),
            Slot::Other => JsonField::Other,
        }))
    }

    /// Visits the keys of the object that a line holds, those of objects inside it left out.
    ///
    /// ```
    /// use onionskin_corpus::JsonLineReader;
    /// let (mut reader, mut keys) = (JsonLineReader::default(), Vec::new());
    /// reader.keys(br#"{"id": 7, "meta": {"lang": "en"}}"#, |key| keys.push(key.to_owned())).unwrap();
    /// assert_eq!(keys, ["id", "meta"]);
    /// assert!(reader.keys(b"[1]", |_| {}).is_err());
    /// ```
    pub fn keys(&mut self, line: &[u8], visit: impl FnMut(&str)) -> Result<(), BadReason> {
        let line = simdutf8::basic::from_utf8(line).map_err(|_| BadReason::InvalidUtf8)?;
        each_key(line, &mut self.buffers, visit).map_err(bad)
    }
}

fn bad(error: JsonError) -> BadReason {
    match error {
        JsonError::NotAnObject => BadReason::NotAnObject,
        JsonError::Broken { .. } => BadReason::BrokenJson { detail: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_scan_would_not_read_is_no_line() {
        let (mut reader, options) = (JsonLineReader::default(), Options::default());
        for line in
            ["", "{}", "{\"text\":1}", "{\"text\":null}", "{\"text\":\"a\"", "[]", "{\"text\":\"a\"} x"]
        {
            assert_eq!(reader.read(line.as_bytes(), &options, "source"), None, "{line}");
        }
        assert_eq!(reader.read(b"{\"text\":\"\xff\"}", &options, "source"), None);
        let twice = reader.read("{\"text\":\"a\",\"text\":\"tab\there\"}\r".as_bytes(), &options, "source");
        assert_eq!(twice, Some(JsonLine { text: "tab\there", id: None, beside: None }));
    }
}
