//! How big one crawl, index or search engine is against another.
//!
//! The problem: |x| / |y| for two sets of pages that nobody can list. The naive way is to list
//! them. Bharat and Broder (1998) need only two things of each: a random page of it, and whether it
//! has a given page. Let `f_xy` be the share of x that y has as well. Both `f_xy |x|` and
//! `f_yx |y|` are what the two share, so |x| / |y| = f_yx / f_xy.
//!
//! A [`Member`] is what can be sampled and asked; [`measure`] does both, and [`overlap::estimate`]
//! makes sizes of the answers. [`engine`] makes a member of anything that answers queries. Members
//! by content, by address, in memory, on disk or behind a network differ in their `Member` alone,
//! so that an index of another kind needs that trait and nothing else.
//!
//! Three other methods of the same lecture stand beside it: [`mod@searches`] out of a query log,
//! [`addresses`] that were tried at random, and a random [`mod@walk`]. Each knows its [`bias`]es,
//! and whoever prints a number prints them too.

pub mod addresses;
pub mod bias;
pub mod engine;
mod fields;
pub mod overlap;
pub mod random;
pub mod searches;
mod stage;
pub mod statistics;
pub mod walk;

pub use fields::{AddressReport, WalkReport};
pub use stage::{
    BadResultPath, ByChoice, EngineSettings, FileError, HttpEngine, MemberKind, Remedy, ResultPath,
    SearchesReport, SizeError, SizeParams, SizeReport, Step, http, read_addresses, read_lexicon,
    read_queries, searches, size, walk,
};

use std::error::Error;

use onionskin_core::sketch::estimate_resemblance;

/// A page, as far as it is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// Its address, in one spelling.
    pub url: Option<String>,
    /// The fingerprint of its text; `None` when it is empty or not known. A page without one is
    /// equal to no other.
    pub text_fp: Option<u64>,
    /// The sketch of its text, where near copies count.
    pub sketch: Option<Vec<u32>>,
}

/// What makes two pages the same.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum By {
    /// The address.
    Url,
    /// The text, word by word.
    Text,
    /// The text, nearly: sketches agree in this share at least.
    Near {
        /// The share.
        threshold: f64,
    },
}

impl By {
    /// Whether two pages are the same. What is not known is not the same as anything.
    pub fn same(self, a: &Page, b: &Page) -> bool {
        let equal = |a: Option<u64>, b: Option<u64>| a.is_some() && a == b;
        match self {
            By::Url => a.url.is_some() && a.url == b.url,
            By::Text => equal(a.text_fp, b.text_fp),
            By::Near { threshold } => {
                let near = |a: &[u32], b: &[u32]| {
                    a.len() == b.len() && !a.is_empty() && estimate_resemblance(a, b).value >= threshold
                };
                equal(a.text_fp, b.text_fp)
                    || a.sketch.as_deref().zip(b.sketch.as_deref()).is_some_and(|(a, b)| near(a, b))
            }
        }
    }
}

/// Whether a member has a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// It has.
    Present,
    /// It was asked, it answered, and it has not.
    Absent,
    /// It could not be asked, or its answer was cut off. Never the same as absent.
    Unknown,
}

/// A sampled page and what it stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// The page.
    pub page: Page,
    /// How many times more rarely than others such a page is drawn: samples count by their weight.
    /// Above 0.
    pub weight: f64,
}

/// What a member went through to give a sample and to answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Requests that were sent.
    pub requests: u64,
    /// Requests that failed for good, after all retries.
    pub failures: u64,
    /// Random queries.
    pub queries: u64,
    /// Random queries without a result.
    pub empty_queries: u64,
    /// Random queries with as many results as could be fetched, or more: ranking decides what is
    /// seen of those, so they are thrown away.
    pub cut_queries: u64,
    /// Sampled pages whose words were not to be had, or that have not the words they were found by.
    pub dropped_pages: u64,
    /// Checks whose answer is not known.
    pub unknown_checks: u64,
}

/// A sample of a member.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The pages; fewer than were wanted when there are no more, or when it costs too much.
    pub pages: Vec<Sampled>,
    /// Whether the sample is the whole member, so that its fractions are exact.
    pub is_whole: bool,
}

/// What a member says when it fails.
pub type MemberFailure = Box<dyn Error + Send + Sync>;

/// Something that has pages: a crawl, an index, a list, a search engine.
pub trait Member {
    /// What it is called.
    fn name(&self) -> &str;

    /// How many pages it has, where that can be counted.
    ///
    /// # Errors
    /// When it cannot be read.
    fn count(&mut self) -> Result<Option<u64>, MemberFailure>;

    /// Some of its pages, drawn independently of other members.
    ///
    /// # Errors
    /// When it cannot be read.
    fn sample(&mut self, wanted: usize, seed: u64) -> Result<Sample, MemberFailure>;

    /// Whether it has each of the pages, in their order.
    ///
    /// # Errors
    /// When it cannot be read. A page that cannot be checked is [`Presence::Unknown`], not an
    /// error.
    fn contains(&mut self, pages: &[Page]) -> Result<Vec<Presence>, MemberFailure>;

    /// What it went through so far.
    fn effort(&self) -> Effort {
        Effort::default()
    }
}

/// A sampled page after all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// What it stands for.
    pub weight: f64,
    /// Whether each member has it; its own has.
    pub found: Vec<Presence>,
}

/// What was seen of one member.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// What it is called.
    pub name: String,
    /// Its pages, where they can be counted.
    pub count: Option<u64>,
    /// Its sample.
    pub samples: Vec<Checked>,
    /// Whether the sample is all of it.
    pub is_whole: bool,
    /// What it went through.
    pub effort: Effort,
}

impl Observed {
    /// Whether it has no pages, as opposed to pages that could not be seen or used.
    pub fn is_empty(&self) -> bool {
        let Effort { failures, cut_queries, dropped_pages, .. } = self.effort;
        let all_went_well = failures + cut_queries + dropped_pages == 0;
        self.samples.is_empty() && self.count.map_or(all_went_well, |count| count == 0)
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeasureError {
    /// One member has no other to be measured against.
    #[error("sizes are relative: {found} given, at least two are needed")]
    TooFew {
        /// Members.
        found: usize,
    },
    /// So many that the parts of their union cannot be told apart.
    #[error("{found} given, at most {MOST_MEMBERS} can be compared at once")]
    TooMany {
        /// Members.
        found: usize,
    },
    /// A member failed.
    #[error("{name}")]
    Member {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: MemberFailure,
    },
}

/// Members that can be compared at once: parts of the union are numbered by the bits of a word, and
/// there are twice as many with each.
pub const MOST_MEMBERS: usize = 16;

/// Samples every member and checks every sampled page in every other.
///
/// The samples of different members come from different seeds: pages that were drawn together would
/// make errors that no interval knows.
///
/// # Errors
///
/// When there are too few members, or one fails.
pub fn measure(
    members: &mut [Box<dyn Member + '_>],
    wanted: usize,
    seed: u64,
    hear: &mut dyn FnMut(&str),
) -> Result<Vec<Observed>, MeasureError> {
    let n = members.len();
    if n < 2 {
        return Err(MeasureError::TooFew { found: n });
    }
    if n > MOST_MEMBERS {
        return Err(MeasureError::TooMany { found: n });
    }
    let mut dice = random::Dice::new(seed);
    let mut samples = Vec::with_capacity(n);
    let mut counts = Vec::with_capacity(n);
    for member in members.iter_mut() {
        hear(&format!("sampling {}", member.name()));
        let name = member.name().to_owned();
        let failed = |source| MeasureError::Member { name: name.clone(), source };
        samples.push(member.sample(wanted, dice.next_u64()).map_err(failed)?);
        counts.push(member.count().map_err(failed)?);
    }
    let mut found: Vec<Vec<Vec<Presence>>> = Vec::with_capacity(n);
    for sample in &samples {
        found.push(vec![vec![Presence::Present; n]; sample.pages.len()]);
    }
    for (at, member) in members.iter_mut().enumerate() {
        hear(&format!("checking in {}", member.name()));
        // One batch for each member, since a crawl on disk answers a thousand questions in the same
        // pass as one.
        let mut pages: Vec<Page> = Vec::new();
        for (_, sample) in samples.iter().enumerate().filter(|(of, _)| *of != at) {
            pages.extend(sample.pages.iter().map(|sampled| sampled.page.clone()));
        }
        let name = member.name().to_owned();
        let failed = |source| MeasureError::Member { name: name.clone(), source };
        let answers = member.contains(&pages).map_err(failed)?;
        let mut answers = answers.into_iter();
        for (of, rows) in found.iter_mut().enumerate() {
            for row in rows.iter_mut().filter(|_| of != at) {
                row[at] = answers.next().unwrap_or(Presence::Unknown);
            }
        }
    }
    let mut observed = Vec::with_capacity(n);
    for (((member, sample), count), found) in members.iter().zip(samples).zip(counts).zip(found) {
        let samples = sample.pages.iter().zip(found);
        observed.push(Observed {
            name: member.name().to_owned(),
            count,
            is_whole: sample.is_whole,
            samples: samples.map(|(sampled, found)| Checked { weight: sampled.weight, found }).collect(),
            effort: member.effort(),
        });
    }
    Ok(observed)
}

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
