//! Names of fields, in the order of preference.
//!
//! Every collection of texts calls its fields otherwise. The defaults are the names that Dolma,
//! FineWeb, RedPajama (both versions), C4 and OSCAR use.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// Names of one field; the first that a record has wins. Spelled with commas between them.
///
/// ```
/// use onionskin_corpus::FieldNames;
/// let names: FieldNames = "text, raw_content,".into();
/// assert_eq!(names.iter().collect::<Vec<_>>(), ["text", "raw_content"]);
/// assert_eq!(names.to_string(), "text,raw_content");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldNames(Vec<String>);

impl FieldNames {
    /// Where the text is.
    pub const TEXT: &'static str = "text,content,raw_content";
    /// Where the document's own name is.
    pub const ID: &'static str = "id,doc_id";
    /// Where the URL is.
    pub const URL: &'static str = "url,meta.url,metadata.url";
    /// Where the date is.
    pub const DATE: &'static str =
        "date,date_download,timestamp,meta.timestamp,metadata.date_download,created";

    /// One name, which may have commas in it.
    pub fn one(name: &str) -> FieldNames {
        FieldNames(vec![name.to_owned()])
    }

    /// The names, the preferred one first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Whether no name was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names for a sentence: `"text", "content" or "raw_content"`.
    pub fn spoken(&self) -> String {
        let quoted: Vec<String> = self.0.iter().map(|name| format!("{name:?}")).collect();
        match quoted.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => String::new(),
        }
    }
}

impl From<&str> for FieldNames {
    fn from(names: &str) -> FieldNames {
        let names = names.split(',').map(str::trim).filter(|name| !name.is_empty());
        FieldNames(names.map(str::to_owned).collect())
    }
}

impl FromStr for FieldNames {
    type Err = Infallible;

    fn from_str(names: &str) -> Result<FieldNames, Infallible> {
        Ok(names.into())
    }
}

impl fmt::Display for FieldNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.join(","))
    }
}
