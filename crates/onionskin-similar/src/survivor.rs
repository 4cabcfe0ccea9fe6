//! Which document of a cluster stands for the others.

use onionskin_core::DocId;
use std::fmt;
use std::str::FromStr;

use crate::cluster::{Attributes, Rows};
use crate::{Resources, SimilarError};
use onionskin_store::join::SortedCursor;
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::table::document::{Doc, FetchedAt, Site, Source, TextFp, Tokens, Url};
use onionskin_store::table::{DocumentsReader, Selection};
use onionskin_store::{Atlas, TableName};

mod check;

pub use check::UselessRule;

/// The rule. Among equals the first document is taken, the one with the smallest number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Survivor {
    /// The first in the order of the inputs, which has the smallest number (Shivakumar and
    /// Garcia-Molina 1998, section 2.2).
    #[default]
    First,
    /// The one with the most words, whatever its bytes.
    Longest,
    /// The one that most documents of the atlas link to.
    MostLinked,
    /// The one that was fetched first; those without a date last.
    Earliest,
    /// The first of these that it comes from: beginnings of URLs, host names or names of inputs.
    Preferred(Vec<String>),
}

/// Not a rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown rule {name:?}; known are first, longest, most-linked, earliest, and prefer:A,B,... with beginnings of URLs, hosts or inputs"
)]
pub struct UnknownSurvivor {
    /// What was given.
    pub name: String,
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Survivor::First => f.write_str("first"),
            Survivor::Longest => f.write_str("longest"),
            Survivor::MostLinked => f.write_str("most-linked"),
            Survivor::Earliest => f.write_str("earliest"),
            Survivor::Preferred(places) => write!(f, "prefer:{}", places.join(",")),
        }
    }
}

impl FromStr for Survivor {
    type Err = UnknownSurvivor;

    fn from_str(name: &str) -> Result<Survivor, UnknownSurvivor> {
        match name {
            // Its former name, which atlases and scripts have.
            "first" | "smallest" => Ok(Survivor::First),
            "longest" => Ok(Survivor::Longest),
            "most-linked" => Ok(Survivor::MostLinked),
            "earliest" => Ok(Survivor::Earliest),
            _ => {
                let places = name.strip_prefix("prefer:").map(|places| places.split(',').map(str::to_owned));
                let places: Option<Vec<String>> = places.map(Iterator::collect);
                places
                    .filter(|places| places.iter().all(|place| !place.is_empty()))
                    .map(Survivor::Preferred)
                    .ok_or_else(|| UnknownSurvivor { name: name.to_owned() })
            }
        }
    }
}

impl Survivor {
    /// Whether documents differ in priority at all.
    pub(crate) fn ranks(&self) -> bool {
        *self != Survivor::First
    }

    /// Priority and site of every document, in order.
    pub(crate) fn attributes<'a>(
        &'a self,
        atlas: &Atlas,
        resources: &Resources,
    ) -> Result<Rows<'a, Attributes>, SimilarError> {
        let documents = atlas.documents()?;
        let site_only = |doc, site, text: Option<u64>, priority| Attributes {
            doc,
            priority,
            site,
            can_lead: text.is_some(),
        };
        Ok(match self {
            Survivor::First => {
                rows::<(Doc, Site, TextFp)>(documents, move |(doc, site, text)| site_only(doc, site, text, 0))
            }
            Survivor::MostLinked => {
                let mut linked = SortedCursor::new(links_in(atlas, resources)?);
                let unlinked = rows::<(Doc, Site, TextFp)>(documents, move |(doc, site, text)| {
                    site_only(doc, site, text, 0)
                });
                Box::new(unlinked.map(move |row| {
                    let mut row = row?;
                    row.priority += links_to(&mut linked, row.doc)?;
                    Ok(row)
                }))
            }
            Survivor::Longest => {
                rows::<(Doc, Site, TextFp, Tokens)>(documents, move |(doc, site, text, tokens)| {
                    site_only(doc, site, text, tokens)
                })
            }
            Survivor::Earliest => {
                rows::<(Doc, Site, TextFp, FetchedAt)>(documents, move |(doc, site, text, fetched_at)| {
                    site_only(doc, site, text, earlier(fetched_at))
                })
            }
            Survivor::Preferred(places) => {
                rows::<(Doc, Site, TextFp, Source, Url)>(documents, move |(doc, site, text, source, url)| {
                    site_only(doc, site, text, preferred(places, source, url))
                })
            }
        })
    }
}

/// All documents, by some of their columns.
fn rows<'a, S: Selection>(
    documents: DocumentsReader,
    attributes: impl for<'r> Fn(S::Item<'r>) -> Attributes + 'a,
) -> Rows<'a, Attributes> {
    let mut documents = documents.select::<S>();
    let mut rows: std::vec::IntoIter<Attributes> = Vec::new().into_iter();
    Box::new(std::iter::from_fn(move || {
        loop {
            if let Some(row) = rows.next() {
                return Some(Ok(row));
            }
            match documents.next_batch() {
                Ok(Some(batch)) => rows = batch.rows().map(&attributes).collect::<Vec<_>>().into_iter(),
                Ok(None) => return None,
                Err(error) => return Some(Err(error.into())),
            }
        }
    }))
}

/// Earlier is more, also before 1970; any date is more than none.
fn earlier(fetched_at: Option<i64>) -> u64 {
    fetched_at.map_or(0, |time| (!(time as u64 ^ 1 << 63)).max(1))
}

/// More for an earlier one of the places.
fn preferred(places: &[String], source: &str, url: Option<&str>) -> u64 {
    let first = places.iter().position(|place| is_from(place, source, url));
    first.map_or(0, |at| (places.len() - at) as u64)
}

/// Whether a document comes from a place: its input or its URL begins with it, or it is the host.
fn is_from(place: &str, source: &str, url: Option<&str>) -> bool {
    source.starts_with(place)
        || url.is_some_and(|url| {
            url.starts_with(place)
                || url.split_once("://").is_some_and(|(_, rest)| {
                    rest.strip_prefix(place)
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
                })
        })
}

/// How many of the targets are a document.
fn links_to(
    targets: &mut SortedCursor<Rows<'static, DocId>, DocId>,
    doc: DocId,
) -> Result<u64, SimilarError> {
    let mut links = 0;
    while let Some(target) = targets.next_if(|target| *target <= doc)? {
        links += u64::from(target == doc);
    }
    Ok(links)
}

/// The target of every link from another document, in order.
fn links_in(atlas: &Atlas, resources: &Resources) -> Result<Rows<'static, DocId>, SimilarError> {
    let mut targets =
        Sorter::<DocId>::new(SortParams::new(&resources.work_dir, resources.memory.share(1, 10)))?;
    if atlas.has(&TableName::Links) {
        for link in atlas.links()? {
            let (src, dest) = link?;
            if src != dest {
                targets.push(dest)?;
            }
        }
    }
    Ok(Box::new(targets.finish()?.map(|target| target.map_err(SimilarError::from))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_round_trip() {
        for rule in ["first", "longest", "most-linked", "earliest", "prefer:https://a.org/,b.org"] {
            assert_eq!(rule.parse::<Survivor>().unwrap().to_string(), rule);
        }
        assert_eq!("smallest".parse(), Ok(Survivor::First));
        for wrong in ["", "best", "prefer:", "prefer:a,,b"] {
            assert!(wrong.parse::<Survivor>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn priorities_of_a_row() {
        assert!(earlier(Some(5)) > earlier(Some(6)) && earlier(Some(5)) > earlier(None));
        let at = |time| earlier(Some(time));
        let times = [i64::MIN, -3_786_912_000_000_000, -1, 0, 1, i64::MAX - 1];
        assert!(times.is_sorted_by(|a, b| at(*a) > at(*b)) && at(i64::MAX) > 0);
        let priority = |rule: &str| match rule.parse::<Survivor>().unwrap() {
            Survivor::Preferred(places) => preferred(&places, "crawl-1/a.warc", Some("https://b.org/x")),
            other => panic!("{other}"),
        };
        assert_eq!(
            ["prefer:a.org,b.org", "prefer:b.or", "prefer:crawl-1", "prefer:https://b.org/,c"].map(priority),
            [1, 0, 1, 2]
        );
    }
}
