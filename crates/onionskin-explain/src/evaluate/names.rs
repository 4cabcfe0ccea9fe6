//! From names to documents, for any number of both.
//!
//! The naive way is a hash table of every address. Here names and documents are sorted together by
//! a 128-bit digest of the name, and what meets is a match; then the answers are sorted back into
//! the order of the questions. Two sorts within the budget, whatever the sizes.

use onionskin_core::DocId;
use onionskin_extract::url;
use onionskin_store::join::SortedCursor;
use onionskin_store::sort::{SortParams, SortedStream, Sorter};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::EvaluateError;
use super::truth::Name;

/// Seeds that keep addresses and ids apart.
const URL: u64 = 1;
const ID: u64 = 2;

/// Collects questions and documents.
pub(super) struct Names {
    /// Digest; 0 for a document and more for a question, by how much it is believed; document or
    /// number of the question.
    sorter: Sorter<(u128, u32, u64)>,
    params: SortParams,
    questions: u64,
}

impl Names {
    pub fn new(params: SortParams) -> Result<Names, EvaluateError> {
        Ok(Names { sorter: Sorter::new(params.clone())?, params, questions: 0 })
    }

    /// Asks for the document of a name. Answers come in the order of the questions.
    pub fn ask(&mut self, name: &Name<'_>) -> Result<(), EvaluateError> {
        let question = self.questions;
        self.questions += 1;
        let (as_url, as_id) = match name {
            Name::Any(name) => (Some(name), Some(name)),
            Name::Url(name) => (Some(name), None),
            Name::Id(name) => (None, Some(name)),
            Name::Doc(_) => (None, None),
        };
        if let Some(name) = as_url {
            self.sorter.push((digest(URL, name), 1, question))?;
            if let Some(normal) = url::normalize(name).filter(|normal| normal != name) {
                self.sorter.push((digest(URL, &normal), 2, question))?;
            }
        }
        if let Some(name) = as_id {
            self.sorter.push((digest(ID, name), 3, question))?;
        }
        Ok(())
    }

    /// A document and its names.
    pub fn offer(&mut self, doc: DocId, id: Option<&str>, url: Option<&str>) -> Result<(), EvaluateError> {
        if let Some(url) = url {
            self.sorter.push((digest(URL, url), 0, u64::from(doc)))?;
        }
        if let Some(id) = id {
            self.sorter.push((digest(ID, id), 0, u64::from(doc)))?;
        }
        Ok(())
    }

    /// All questions answered.
    pub fn answers(self, documents: u64) -> Result<Answers, EvaluateError> {
        let mut answers: Sorter<Numbered> = Sorter::new(self.params)?;
        let mut current: Option<(u128, DocId, bool)> = None;
        let sorted = self.sorter.finish()?;
        let mut spilled_bytes = sorted.stats().spilled_bytes;
        for record in sorted {
            let (name, belief, value) = record?;
            match (&mut current, belief) {
                (Some((known, _, several)), 0) if *known == name => *several = true,
                (_, 0) => current = Some((name, DocId(value as u32), false)),
                (Some((known, doc, several)), _) if *known == name => {
                    answers.push((value, 2 * belief + u32::from(*several), *doc))?;
                }
                _ => {}
            }
        }
        let answers = answers.finish()?;
        spilled_bytes += answers.stats().spilled_bytes;
        Ok(Answers { answers: SortedCursor::new(answers), documents, question: 0, spilled_bytes })
    }
}

fn digest(kind: u64, name: &str) -> u128 {
    xxh3_128_with_seed(name.as_bytes(), kind)
}

/// A document that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub doc: DocId,
    /// Other documents have the same name; this is the first of them.
    pub ambiguous: bool,
}

/// The number of a question, how good the answer is, and the document.
type Numbered = (u64, u32, DocId);

/// Gives the answers, one question after the other.
pub(super) struct Answers {
    answers: SortedCursor<SortedStream<Numbered>, Numbered>,
    documents: u64,
    question: u64,
    /// Bytes that sorting wrote to disk.
    pub spilled_bytes: u64,
}

impl Answers {
    /// The answer to the next question, which is asked again for the sake of numbers.
    pub fn next(&mut self, name: &Name<'_>) -> Result<Option<Answer>, EvaluateError> {
        let question = self.question;
        self.question += 1;
        let mut found = None;
        while let Some((_, belief, doc)) = self.answers.next_if(|answer| answer.0 <= question)? {
            // The most believed comes first.
            found.get_or_insert(Answer { doc, ambiguous: belief % 2 == 1 });
        }
        let number = match name {
            Name::Doc(doc) => Some(*doc),
            Name::Any(name) => number(name),
            Name::Url(_) | Name::Id(_) => None,
        };
        let as_number = || {
            let doc = number.filter(|doc| *doc < self.documents)?;
            Some(Answer { doc: DocId(u32::try_from(doc).ok()?), ambiguous: false })
        };
        Ok(found.or_else(as_number))
    }
}

fn number(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("doc:").unwrap_or(name);
    let all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| all)
}
