//! Which document of a cluster stands for the others.

use std::fmt;
use std::str::FromStr;

use crate::cluster::{Attributes, Rows};
use crate::{Resources, SimilarError};
use onionskin_store::join::SortedCursor;
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::table::DocumentRow;
use onionskin_store::{Atlas, TableName};

/// The rule. Among equals the smallest document is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Survivor {
    /// The smallest document, which was read first (Shivakumar and Garcia-Molina 1998, section 2.2).
    #[default]
    Smallest,
    /// The one with the most words.
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
    "unknown rule {name:?}; known are smallest, longest, most-linked, earliest, and prefer:A,B,... with beginnings of URLs, hosts or inputs"
)]
pub struct UnknownSurvivor {
    /// What was given.
    pub name: String,
}

impl fmt::Display for Survivor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Survivor::Smallest => f.write_str("smallest"),
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
            "smallest" => Ok(Survivor::Smallest),
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
        *self != Survivor::Smallest
    }

    /// Priority and site of every document, in order.
    pub(crate) fn attributes<'a>(
        &'a self,
        atlas: &Atlas,
        resources: &Resources,
    ) -> Result<Rows<'a, Attributes>, SimilarError> {
        let mut linked = match self {
            Survivor::MostLinked => Some(SortedCursor::new(links_in(atlas, resources)?)),
            _ => None,
        };
        let columns: &[&'static str] = match self {
            Survivor::Smallest | Survivor::MostLinked => &["site", "text_fp"],
            Survivor::Longest => &["site", "text_fp", "tokens"],
            Survivor::Earliest => &["site", "text_fp", "fetched_at"],
            Survivor::Preferred(_) => &["site", "text_fp", "source", "url"],
        };
        let mut documents = atlas.documents()?.only(columns);
        let mut rows: std::vec::IntoIter<Attributes> = Vec::new().into_iter();
        Ok(Box::new(std::iter::from_fn(move || {
            loop {
                if let Some(mut row) = rows.next() {
                    if let Some(linked) = &mut linked {
                        match links_to(linked, row.doc) {
                            Ok(links) => row.priority += links,
                            Err(error) => return Some(Err(error)),
                        }
                    }
                    return Some(Ok(row));
                }
                match documents.next_batch() {
                    Ok(Some(batch)) => {
                        let attributes = batch.rows().map(|row| Attributes {
                            doc: row.doc,
                            priority: self.priority(&row),
                            site: row.site,
                            can_lead: row.text_fp.is_some(),
                        });
                        rows = attributes.collect::<Vec<_>>().into_iter();
                    }
                    Ok(None) => return None,
                    Err(error) => return Some(Err(error.into())),
                }
            }
        })))
    }

    /// As far as the document's own row tells.
    fn priority(&self, row: &DocumentRow<'_>) -> u64 {
        match self {
            Survivor::Smallest | Survivor::MostLinked => 0,
            Survivor::Longest => row.tokens,
            // Earlier is more, also before 1970; any date is more than none.
            Survivor::Earliest => row.fetched_at.map_or(0, |time| (!(time as u64 ^ 1 << 63)).max(1)),
            Survivor::Preferred(places) => {
                let from = |place: &String| {
                    row.source.starts_with(place.as_str())
                        || row.url.is_some_and(|url| {
                            url.starts_with(place.as_str())
                                || url.split_once("://").is_some_and(|(_, rest)| {
                                    rest.strip_prefix(place.as_str())
                                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', ':']))
                                })
                        })
                };
                places.iter().position(from).map_or(0, |at| (places.len() - at) as u64)
            }
        }
    }
}

/// How many of the targets are a document.
fn links_to(targets: &mut SortedCursor<Rows<'static, u32>, u32>, doc: u32) -> Result<u64, SimilarError> {
    let mut links = 0;
    while let Some(target) = targets.next_if(|target| *target <= doc)? {
        links += u64::from(target == doc);
    }
    Ok(links)
}

/// The target of every link from another document, in order.
fn links_in(atlas: &Atlas, resources: &Resources) -> Result<Rows<'static, u32>, SimilarError> {
    let mut targets =
        Sorter::<u32>::new(SortParams::new(&resources.work_dir, resources.memory.share(1, 10)))?;
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
        for rule in ["smallest", "longest", "most-linked", "earliest", "prefer:https://a.org/,b.org"] {
            assert_eq!(rule.parse::<Survivor>().unwrap().to_string(), rule);
        }
        for wrong in ["", "best", "prefer:", "prefer:a,,b"] {
            assert!(wrong.parse::<Survivor>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn priorities_of_a_row() {
        let row = DocumentRow {
            url: Some("https://b.org/x"),
            source: "crawl-1/a.warc",
            tokens: 7,
            fetched_at: Some(5),
            ..DocumentRow::default()
        };
        let priority = |rule: &str| rule.parse::<Survivor>().unwrap().priority(&row);
        assert_eq!(priority("longest"), 7);
        assert!(
            priority("earliest") > Survivor::Earliest.priority(&DocumentRow { fetched_at: Some(6), ..row })
        );
        assert!(priority("earliest") > Survivor::Earliest.priority(&DocumentRow { fetched_at: None, ..row }));
        let at = |time| Survivor::Earliest.priority(&DocumentRow { fetched_at: Some(time), ..row });
        let times = [i64::MIN, -3_786_912_000_000_000, -1, 0, 1, i64::MAX - 1];
        assert!(times.is_sorted_by(|a, b| at(*a) > at(*b)) && at(i64::MAX) > 0);
        assert_eq!(
            ["prefer:a.org,b.org", "prefer:b.or", "prefer:crawl-1", "prefer:https://b.org/,c"].map(priority),
            [1, 0, 1, 2]
        );
    }
}
