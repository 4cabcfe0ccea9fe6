//! Documents by what people call them.

use std::fmt;
use std::str::FromStr;

use onionskin_core::DocId;
use onionskin_extract::url;
use onionskin_store::{Atlas, TableName};

use super::ExplainError;

/// What a document was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocRef {
    /// `doc:7`: its number.
    Doc(DocId),
    /// `url:...`: its address.
    Url(String),
    /// `id:...`: its own name.
    Id(String),
    /// Something else: a number when it is one of a document, else an address, else a name.
    Any(String),
}

/// Not a way to call a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not the number of a document")]
pub struct BadDocRef {
    /// What was given.
    pub given: String,
}

impl FromStr for DocRef {
    type Err = BadDocRef;

    fn from_str(given: &str) -> Result<DocRef, BadDocRef> {
        if let Some(number) = given.strip_prefix("doc:") {
            return number.parse().map(DocRef::Doc).map_err(|_| BadDocRef { given: given.to_owned() });
        }
        if let Some(url) = given.strip_prefix("url:") {
            return Ok(DocRef::Url(url.to_owned()));
        }
        Ok(match given.strip_prefix("id:") {
            Some(id) => DocRef::Id(id.to_owned()),
            None => DocRef::Any(given.to_owned()),
        })
    }
}

impl fmt::Display for DocRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DocRef::Doc(doc) => write!(f, "doc:{doc}"),
            DocRef::Url(url) => write!(f, "url:{url}"),
            DocRef::Id(id) => write!(f, "id:{id}"),
            DocRef::Any(name) => f.write_str(name),
        }
    }
}

/// How many spellings are suggested.
const SUGGESTIONS: usize = 3;

/// One search in a pass over the documents.
#[derive(Default)]
struct Search {
    url: Option<String>,
    normalized: Option<String>,
    id: Option<String>,
    by_url: Found,
    by_id: Found,
    near: Vec<String>,
}

/// The first document that was meant, and how many could be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Found {
    first: Option<DocId>,
    count: u64,
}

impl Found {
    fn note(&mut self, doc: DocId) {
        self.first.get_or_insert(doc);
        self.count += 1;
    }
}

impl Search {
    fn new(of: &DocRef) -> Search {
        let (url, id) = match of {
            DocRef::Doc(_) => (None, None),
            DocRef::Url(url) => (Some(url), None),
            DocRef::Id(id) => (None, Some(id)),
            DocRef::Any(name) => (Some(name), Some(name)),
        };
        let normalized = url.and_then(|url| url::normalize(url));
        Search { url: url.cloned(), normalized, id: id.cloned(), ..Search::default() }
    }

    fn look(&mut self, doc: DocId, id: Option<&str>, url: Option<&str>) {
        if id.is_some() && id == self.id.as_deref() {
            self.by_id.note(doc);
        }
        let (Some(url), Some(wanted)) = (url, &self.url) else { return };
        if url == wanted || self.normalized.as_deref() == Some(url) {
            self.by_url.note(doc);
        } else if self.near.len() < SUGGESTIONS
            && loosely(url).eq_ignore_ascii_case(loosely(self.normalized.as_deref().unwrap_or(wanted)))
            && !self.near.iter().any(|known| known == url)
        {
            self.near.push(url.to_owned());
        }
    }

    fn found(&self) -> Found {
        if self.by_url.first.is_some() { self.by_url } else { self.by_id }
    }
}

/// An address without what people leave out or get wrong: scheme, `www.`, fragment, the name of the
/// index page, the last slash.
fn loosely(url: &str) -> &str {
    let url = url.split_once("://").map_or(url, |(_, rest)| rest);
    let url = url.strip_prefix("www.").unwrap_or(url);
    let url = url.split_once('#').map_or(url, |(before, _)| before);
    let index = ["index.html", "index.htm", "index.php"].iter().find_map(|name| url.strip_suffix(name));
    index.filter(|before| before.ends_with('/')).unwrap_or(url).trim_end_matches('/')
}

/// The number of each document, and how many documents have the name.
pub(super) fn find_documents(atlas: &Atlas, wanted: &[DocRef]) -> Result<Vec<(DocId, u64)>, ExplainError> {
    let documents = atlas.table(&TableName::Documents)?.rows;
    let number = |of: &DocRef| match of {
        DocRef::Doc(doc) => Some(*doc),
        DocRef::Any(name) if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) => {
            name.parse().ok().filter(|doc| u64::from(*doc) < documents)
        }
        _ => None,
    };
    let mut searches: Vec<Search> = wanted.iter().map(Search::new).collect();
    if wanted.iter().any(|of| number(of).is_none()) {
        for batch in atlas.documents()? {
            for row in batch?.rows() {
                searches.iter_mut().for_each(|search| search.look(row.doc, row.id, row.url));
            }
        }
    }
    let found = wanted.iter().zip(&searches).map(|(of, search)| {
        if let Some(doc) = number(of) {
            return Ok((doc, 1));
        }
        let found = search.found();
        let doc = found.first.ok_or_else(|| ExplainError::NotFound {
            what: of.to_string(),
            documents,
            near: search.near.clone(),
        })?;
        Ok((doc, found.count))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_call_a_document() {
        let parse = |text: &str| text.parse::<DocRef>();
        assert_eq!(parse("7"), Ok(DocRef::Any("7".into())));
        assert_eq!(parse("doc:7"), Ok(DocRef::Doc(DocId(7))));
        assert_eq!(parse("url:http://a.org/"), Ok(DocRef::Url("http://a.org/".into())));
        assert_eq!(parse("id:doc:7"), Ok(DocRef::Id("doc:7".into())));
        assert_eq!(parse("http://a.org/"), Ok(DocRef::Any("http://a.org/".into())));
        for wrong in ["doc:", "doc:x", "doc:-1", "doc:5000000000"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        for text in ["7", "doc:7", "url:x", "id:x"] {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn spellings_that_are_near() {
        for same in ["http://a.org/x", "https://www.a.org/x/", "http://a.org/x/index.html", "a.org/x#top"] {
            assert_eq!(loosely(same), "a.org/x", "{same}");
        }
        assert_ne!(loosely("http://a.org/xindex.html"), "a.org/x");
    }
}
