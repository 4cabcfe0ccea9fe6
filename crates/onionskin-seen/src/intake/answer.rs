//! Answers, and the fields that every edge shows them with.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Serialize;

use super::documents::Prepared;
use super::request::{Request, Threshold, Verb};
use crate::catalogue::Params;
use crate::error::SeenError;
use crate::reader::Reader;
use crate::verify::{Repair, Verification};
use crate::view::{Match, Method, Probe, Stats};
use crate::writer::{Document, Seen};

/// What is known of a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SeenAnswer))]
pub struct Answer {
    /// The name as it was given; else the place, such as `-:3` for the third line.
    pub name: String,
    /// What was found.
    pub status: Status,
    /// Whether the document is in the index now because of this request.
    pub added: bool,
    /// The document that it duplicates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<MatchAnswer>,
    /// Why it is bad.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// `new`: no duplicate is in the index. `near`: a near-duplicate is. `exact`: the same words in the
/// same order are. `empty`: the document has no words and is never added. `bad`: it could not be
/// taken, for the reason in `problem`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SeenStatus))]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// No duplicate is in the index.
    New,
    /// A near-duplicate is.
    Near,
    /// The same words in the same order are.
    Exact,
    /// It has no words.
    Empty,
    /// It could not be taken.
    Bad,
}

impl Status {
    /// As it is serialised.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::New => "new",
            Status::Near => "near",
            Status::Exact => "exact",
            Status::Empty => "empty",
            Status::Bad => "bad",
        }
    }
}

/// The document in the index that another one duplicates.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SeenMatch))]
pub struct MatchAnswer {
    /// Its name; a number in digits in an index of numbers.
    pub name: String,
    /// Features in common.
    pub shared: usize,
    /// Features of each document.
    pub features: usize,
    /// An estimate from 0 to 1: the share of minima that agree in an index with sketches, else from
    /// the features in common. 1 for an exact duplicate.
    pub resemblance: f64,
    /// What the resemblance was found by.
    pub method: Method,
}

impl MatchAnswer {
    fn new(found: Match, params: &Params) -> MatchAnswer {
        MatchAnswer {
            name: found.name.unwrap_or_else(|| found.key.to_string()),
            shared: found.shared,
            features: params.filter.k(),
            resemblance: found.resemblance,
            method: found.method,
        }
    }
}

impl Answer {
    fn plain(name: &str, status: Status) -> Answer {
        Answer { name: name.to_owned(), status, added: false, of: None, problem: None }
    }

    fn bad(name: &str, problem: String) -> Answer {
        Answer { problem: Some(problem), ..Answer::plain(name, Status::Bad) }
    }

    fn found(name: &str, added: bool, found: Option<Match>, params: &Params) -> Answer {
        let status = match &found {
            None => Status::New,
            Some(found) if found.exact => Status::Exact,
            Some(_) => Status::Near,
        };
        let of = found.map(|found| MatchAnswer::new(found, params));
        Answer { added, of, ..Answer::plain(name, status) }
    }
}

/// What was asked, before it is known whether there is anything to look for.
enum Step<'a> {
    Done(Answer),
    Ask(Document<'a>),
}

/// Everything that can be said of a document without looking into the index.
fn prepare<'a>(params: &Params, one: &'a Prepared, threshold: Option<Threshold>, adds: bool) -> Step<'a> {
    let features = match &one.features {
        Ok(features) => features,
        Err(problem) => return Step::Done(Answer::bad(&one.name, problem.clone())),
    };
    let Some(probe) = features.probe() else {
        return Step::Done(Answer::plain(&one.name, Status::Empty));
    };
    // A check keeps no name, so that any will do.
    let key = match params.key_of(&one.name) {
        Ok(key) => key,
        Err(_) if !adds => 0,
        Err(error) => return Step::Done(Answer::bad(&one.name, error.to_string())),
    };
    let probe = Probe { threshold: threshold.map(Threshold::get), ..probe };
    Step::Ask(Document { probe, key, name: &one.name })
}

impl Params {
    /// The key of a document by its name: the number that it spells in an index of numbers, where
    /// any other name is an error; 0 in an index of names.
    pub fn key_of(&self, name: &str) -> Result<u64, SeenError> {
        if self.names {
            return Ok(0);
        }
        name.parse().map_err(|_| SeenError::NotANumber(name.to_owned()))
    }

    /// An error if one of these cannot be a name in this index.
    pub fn ensure_names<'a>(&self, names: impl IntoIterator<Item = &'a String>) -> Result<(), SeenError> {
        names.into_iter().try_for_each(|name| self.key_of(name).map(|_| ()))
    }
}

impl Reader {
    /// What is known of a document.
    pub fn answer(&self, one: &Prepared, threshold: Option<Threshold>) -> Result<Answer, SeenError> {
        match prepare(self.params(), one, threshold, false) {
            Step::Done(answer) => Ok(answer),
            Step::Ask(document) => {
                let found = self.check(&document.probe)?;
                Ok(Answer::found(&one.name, false, found, self.params()))
            }
        }
    }
}

impl Seen {
    /// Does what was asked about a document. An addition is safe after [`Seen::commit`].
    pub fn answer(&mut self, one: &Prepared, request: Request) -> Result<Answer, SeenError> {
        let adds = request.verb != Verb::Check;
        let document = match prepare(self.params(), one, request.threshold, adds) {
            Step::Done(answer) => return Ok(answer),
            Step::Ask(document) => document,
        };
        let outcome = match request.verb {
            Verb::Check => self.check(&document.probe).map(|found| (false, found)),
            Verb::Add => self.add(&document).map(|outcome| (outcome.doc.is_some(), outcome.seen)),
            Verb::AddIfNew => self.add_if_new(&document).map(|outcome| (outcome.doc.is_some(), outcome.seen)),
        };
        match outcome {
            Ok((added, found)) => Ok(Answer::found(&one.name, added, found, self.params())),
            Err(error @ SeenError::LongName(_)) => Ok(Answer::bad(&one.name, error.to_string())),
            Err(error) => Err(error),
        }
    }

    /// Removes documents by their names; says how many each name had, in order of name. A name that
    /// is no number is an error in an index of numbers, and nothing is removed then.
    pub fn remove_named(&mut self, names: &BTreeSet<String>) -> Result<Vec<RemovedName>, SeenError> {
        self.params().ensure_names(names)?;
        let documents: Vec<u64> = if self.params().names {
            let counts = self.remove_names(names)?;
            names.iter().map(|name| counts.get(name).copied().unwrap_or(0)).collect()
        } else {
            let keys = names.iter().map(|name| self.params().key_of(name)).collect::<Result<Vec<_>, _>>()?;
            let counts = self.remove_keys(&keys.iter().copied().collect())?;
            keys.iter().map(|key| counts.get(key).copied().unwrap_or(0)).collect()
        };
        let removed = names.iter().zip(documents);
        Ok(removed.map(|(name, documents)| RemovedName { name: name.clone(), documents }).collect())
    }
}

/// What a removal did to one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SeenRemovedName))]
pub struct RemovedName {
    /// The name.
    pub name: String,
    /// Documents that had it, and were removed.
    pub documents: u64,
}

/// What an index is of and how large it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SeenIndexStats))]
pub struct IndexStats {
    /// How minima are made.
    pub recipe: String,
    /// The seed of the permutations.
    pub seed: u64,
    /// Whether documents have names, or numbers.
    pub names: bool,
    /// The features that documents are indexed by, made of the minima.
    pub filter: String,
    /// The resemblance that the index was made for; `null` where features decide.
    pub threshold: Option<f64>,
    /// The least share of documents that it finds, of those exactly at its threshold.
    pub found_at_threshold: Option<f64>,
    /// Minima per document that is indexed by its features; 0 in an index without sketches.
    pub minima: usize,
    /// How large it is.
    #[serde(flatten)]
    pub stats: Stats,
    /// Bytes on disk per document, names left out.
    pub bytes_per_document: f64,
    /// The same at most, of a document that is indexed by its features.
    pub expected_bytes_per_document: f64,
}

impl IndexStats {
    /// Of an index.
    pub fn new(params: &Params, stats: Stats) -> IndexStats {
        IndexStats {
            recipe: params.recipe.to_string(),
            seed: params.seed,
            names: params.names,
            filter: params.filter.to_string(),
            threshold: params.threshold.map(Threshold::get),
            found_at_threshold: params.threshold.map(|threshold| params.finds(threshold.get())),
            minima: params.minima(),
            bytes_per_document: stats.bytes_per_document(),
            expected_bytes_per_document: params.expected_bytes_per_document(),
            stats,
        }
    }
}

/// Whether an index is as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VerifyAnswer {
    /// Nothing is damaged.
    pub whole: bool,
    /// Files that were read.
    pub files: u64,
    /// Bytes at the end of the log that belong to a batch that was never finished.
    pub torn_bytes: u64,
    /// What is damaged.
    pub damage: Vec<Damage>,
    /// What a repair has done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repaired: Option<Repair>,
}

/// A damaged file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Its path.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

impl VerifyAnswer {
    /// Of what was found and, where it was asked for, repaired.
    pub fn new(found: &Verification, repaired: Option<Repair>) -> VerifyAnswer {
        let path = |path: &Path| path.display().to_string();
        let damage = found
            .findings
            .iter()
            .map(|finding| Damage { file: path(&finding.path), problem: finding.problem.clone() });
        VerifyAnswer {
            whole: found.is_whole(),
            files: found.files,
            torn_bytes: found.torn_bytes,
            damage: damage.collect(),
            repaired,
        }
    }
}
