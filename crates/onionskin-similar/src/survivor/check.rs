//! Whether a rule can tell documents apart.
//!
//! A rule that cannot leaves the first document of each cluster, as if nobody had asked for
//! anything. So it is an error, found before a search begins.

use onionskin_store::table::document::{FetchedAt, Source, Url};
use onionskin_store::{Atlas, TableName};

use super::{Survivor, is_from};
use crate::SimilarError;

/// Examples in a message.
const EXAMPLES: usize = 3;

/// A rule asks for what the atlas does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UselessRule {
    /// No document has a date.
    #[error(
        "the rule `earliest` looks for the date of a fetch, which none of the {documents} documents has\nhint: only WARC and ARC records have such dates; choose another rule"
    )]
    NoDates {
        /// Documents of the atlas.
        documents: u64,
    },
    /// No document links to another.
    #[error(
        "the rule `most-linked` counts links, but none of the {documents} documents links to another\nhint: only HTML with URLs has links; choose another rule"
    )]
    NoLinks {
        /// Documents of the atlas.
        documents: u64,
    },
    /// A place that nothing comes from.
    #[error(
        "the rule `prefer` looks for {place:?}, but no input and no URL begins with it, and no host is called so; the atlas has {there_is}\nhint: give the input as the atlas names it, the beginning of a URL, or a whole host"
    )]
    NoMatch {
        /// What was looked for.
        place: String,
        /// The nearest inputs and hosts.
        there_is: String,
    },
}

impl Survivor {
    /// Checks that the rule can prefer one document of the atlas to another.
    ///
    /// # Errors
    ///
    /// When the rule asks for dates, links or places that no document has.
    pub fn check(&self, atlas: &Atlas) -> Result<(), SimilarError> {
        let documents = atlas.rows(&TableName::Documents);
        if documents == 0 {
            return Ok(());
        }
        let useless = match self {
            Survivor::First | Survivor::Longest => None,
            Survivor::Earliest => (!has_dates(atlas)?).then_some(UselessRule::NoDates { documents }),
            Survivor::MostLinked => (!has_links(atlas)?).then_some(UselessRule::NoLinks { documents }),
            Survivor::Preferred(places) => match without_match(places, atlas)? {
                Some(place) => {
                    let there_is = what_there_is(&place, atlas)?;
                    Some(UselessRule::NoMatch { place, there_is })
                }
                None => None,
            },
        };
        useless.map_or(Ok(()), |useless| Err(useless.into()))
    }
}

fn has_dates(atlas: &Atlas) -> Result<bool, SimilarError> {
    let mut documents = atlas.documents()?.select::<(FetchedAt,)>();
    while let Some(batch) = documents.next_batch()? {
        if batch.rows().any(|(fetched_at,)| fetched_at.is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn has_links(atlas: &Atlas) -> Result<bool, SimilarError> {
    if !atlas.has(&TableName::Links) {
        return Ok(false);
    }
    for link in atlas.links()? {
        let (src, dest) = link?;
        if src != dest {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The first place that no document comes from. Every place is looked for: a misspelt one among
/// others would go unnoticed.
fn without_match(places: &[String], atlas: &Atlas) -> Result<Option<String>, SimilarError> {
    let mut missing: Vec<&String> = places.iter().collect();
    let mut documents = atlas.documents()?.select::<(Source, Url)>();
    while let Some(batch) = documents.next_batch()?.filter(|_| !missing.is_empty()) {
        for (source, url) in batch.rows() {
            missing.retain(|place| !is_from(place, source, url));
        }
    }
    Ok(missing.first().map(|place| (*place).clone()))
}

/// Inputs and hosts in words, those first that contain the place.
fn what_there_is(place: &str, atlas: &Atlas) -> Result<String, SimilarError> {
    let (mut inputs, mut hosts) = (Examples::default(), Examples::default());
    for input in &atlas.manifest().inputs {
        inputs.see(&input.name, place);
    }
    if atlas.has(&TableName::Sites) {
        for batch in atlas.sites()? {
            for site in batch?.rows() {
                hosts.see(site.host, place);
            }
        }
    }
    Ok(format!("{} and {}", inputs.said("inputs"), hosts.said("hosts")))
}

/// A few names of many.
#[derive(Default)]
struct Examples {
    count: u64,
    /// Those that contain what was looked for.
    near: Vec<String>,
    others: Vec<String>,
}

impl Examples {
    fn see(&mut self, name: &str, wanted: &str) {
        self.count += 1;
        let list = if name.contains(wanted) { &mut self.near } else { &mut self.others };
        if list.len() < EXAMPLES {
            list.push(name.to_owned());
        }
    }

    fn said(mut self, what: &str) -> String {
        self.near.append(&mut self.others);
        self.near.truncate(EXAMPLES);
        let more = if self.count > self.near.len() as u64 { ", …" } else { "" };
        match self.count {
            0 => format!("no {what}"),
            count => format!("{count} {what} ({}{more})", self.near.join(", ")),
        }
    }
}
