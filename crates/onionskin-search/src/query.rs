//! What people type: words, "phrases", -words that must not be there, site:example.org.

use tantivy::Term;
use tantivy::query::{BooleanQuery, Occur, PhraseQuery, Query as EngineQuery, TermQuery};
use tantivy::schema::IndexRecordOption;

use crate::index::Fields;
use crate::words::words_of;

/// More words than anybody types; each costs a list.
const MOST_WORDS: usize = 32;
/// Bytes of a query.
const LONGEST_QUERY: usize = 1000;

/// Something that must be there, or must not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Clause {
    /// A word.
    Word(String),
    /// Words that follow each other.
    Phrase(Vec<String>),
}

impl Clause {
    fn new(text: &str) -> Option<Clause> {
        let mut words = words_of(text);
        match words.len() {
            0 => None,
            1 => words.pop().map(Clause::Word),
            _ => Some(Clause::Phrase(words)),
        }
    }

    pub(crate) fn words(&self) -> &[String] {
        match self {
            Clause::Word(word) => std::slice::from_ref(word),
            Clause::Phrase(words) => words,
        }
    }

    fn engine(&self, fields: &Fields) -> Box<dyn EngineQuery> {
        let term = |word: &String| Term::from_field_text(fields.words, word);
        match self {
            Clause::Word(word) => Box::new(TermQuery::new(term(word), IndexRecordOption::WithFreqs)),
            Clause::Phrase(words) => Box::new(PhraseQuery::new(words.iter().map(term).collect())),
        }
    }
}

/// Why nothing can be looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryProblem {
    /// There is no word in it.
    #[error("there is no word to look for")]
    NoWords,
    /// It is too long.
    #[error("a query has at most {LONGEST_QUERY} bytes and {MOST_WORDS} words")]
    TooLong,
}

/// What is looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Query {
    /// What must be there.
    pub wanted: Vec<Clause>,
    /// What must not.
    pub unwanted: Vec<Clause>,
    /// The sites to look on, each with all below it; everywhere when there is none.
    pub sites: Vec<String>,
}

impl std::str::FromStr for Query {
    type Err = QueryProblem;

    /// Understands everything; what has no word in it is passed over.
    fn from_str(text: &str) -> Result<Query, QueryProblem> {
        if text.len() > LONGEST_QUERY {
            return Err(QueryProblem::TooLong);
        }
        let mut query = Query::default();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_unwanted = first == '-' && rest[1..].starts_with(|c: char| !c.is_whitespace());
            let body = if is_unwanted { &rest[1..] } else { rest };
            let (part, after) = match body.strip_prefix('"') {
                // A phrase that is not closed goes on to the end.
                Some(phrase) => phrase.split_once('"').unwrap_or((phrase, "")),
                None => body.split_once(char::is_whitespace).unwrap_or((body, "")),
            };
            rest = after.trim_start();
            if let Some(site) = part.strip_prefix("site:").filter(|_| !body.starts_with('"') && !is_unwanted)
            {
                query.sites.extend(site_name(site));
                continue;
            }
            let clauses = if is_unwanted { &mut query.unwanted } else { &mut query.wanted };
            clauses.extend(Clause::new(part).filter(|clause| !clauses.contains(clause)));
        }
        let words = query.wanted.iter().chain(&query.unwanted).map(|clause| clause.words().len());
        match words.sum::<usize>() + query.sites.len() {
            n if n > MOST_WORDS => Err(QueryProblem::TooLong),
            _ if query.wanted.is_empty() && query.sites.is_empty() => Err(QueryProblem::NoWords),
            _ => Ok(query),
        }
    }
}

/// The host that is meant, of a host or an address.
fn site_name(text: &str) -> Option<String> {
    let host = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or_default();
    let host = host.trim_start_matches("*.").trim_matches('.').to_lowercase();
    (!host.is_empty()).then_some(host)
}

impl Query {
    /// Every different word that is wanted, for marking.
    pub(crate) fn words(&self) -> Vec<&str> {
        let mut words: Vec<&str> = self.wanted.iter().flat_map(Clause::words).map(String::as_str).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// The word, where it is all that is asked for.
    pub(crate) fn single_word(&self) -> Option<&str> {
        match &self.wanted[..] {
            [Clause::Word(word)] if self.unwanted.is_empty() && self.sites.is_empty() => Some(word),
            _ => None,
        }
    }

    /// For the engine: pages with all that is wanted, or with any of it.
    pub(crate) fn engine(&self, fields: &Fields, any: bool) -> Box<dyn EngineQuery> {
        let wanted = self.wanted.iter().map(|clause| clause.engine(fields));
        let site = |site: &String| -> (Occur, Box<dyn EngineQuery>) {
            let term = Term::from_field_text(fields.site, site);
            (Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::Basic)))
        };
        let mut clauses: Vec<(Occur, Box<dyn EngineQuery>)> = Vec::new();
        if any {
            let some: Vec<_> = wanted.map(|clause| (Occur::Should, clause)).collect();
            if self.sites.is_empty() && self.unwanted.is_empty() {
                return Box::new(BooleanQuery::new(some));
            }
            clauses.push((Occur::Must, Box::new(BooleanQuery::new(some))));
        } else {
            clauses.extend(wanted.map(|clause| (Occur::Must, clause)));
        }
        match &self.sites[..] {
            [] => {}
            [one] => clauses.push((Occur::Must, site(one).1)),
            sites => {
                let any_site = BooleanQuery::new(sites.iter().map(site).collect());
                clauses.push((Occur::Must, Box::new(any_site)));
            }
        }
        clauses.extend(self.unwanted.iter().map(|clause| (Occur::MustNot, clause.engine(fields))));
        match clauses.len() {
            // An intersection of one is the list itself, which can be skipped through.
            1 => clauses.swap_remove(0).1,
            _ => Box::new(BooleanQuery::new(clauses)),
        }
    }
}

#[cfg(test)]
mod tests;
