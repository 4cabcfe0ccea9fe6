//! A member out of anything that answers queries.
//!
//! **Sampling** (Bharat and Broder 1998): words drawn from a lexicon, two in conjunction; up to 100
//! results; one of them at random. A page is then drawn the more often the more queries reach it,
//! and the fewer other results those have. Two steps undo that, in the manner of Bar-Yossef and
//! Gurevich (2006). All results of all queries are put together, so that every pair of a query and
//! a result is equally likely, and all engines are measured by one yardstick. Of those pairs, pages
//! are chosen with probability one over the number of queries that their own words make, which
//! turns that yardstick into pages. Weights would do the same as choosing, but a few pages with few
//! words would then have most of the weight; there are more candidates than are checked, so
//! choosing costs nothing.
//!
//! **Ranking** decides what is seen of a query with more results than can be fetched. Such queries
//! are thrown away, which is the lecture's "fetch all". Keeping them is offered to show what they
//! do.
//!
//! **Checking**: a strong query of the page's rarest words, and a look for the page among the
//! results.

use std::collections::{BTreeSet, HashMap};

use super::random::Dice;
use super::{By, Effort, Member, MemberFailure, Page, Presence, Sample, Sampled};

/// Why a query has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SearchFailure {
    /// This one failed, after all retries.
    #[error("{reason}")]
    Failed {
        /// Why.
        reason: String,
    },
    /// There will be no more answers: so many requests were allowed.
    #[error("the limit of requests is reached")]
    Exhausted,
}

/// Answers conjunctive queries.
pub trait SearchEngine {
    /// What it is called.
    fn name(&self) -> &str;

    /// Addresses of pages that have all words, each in one spelling and once, the best first, at
    /// most `limit`.
    ///
    /// # Errors
    /// When there is no answer.
    fn search(&mut self, words: &[&str], limit: usize) -> Result<Vec<String>, SearchFailure>;

    /// Requests that were sent so far.
    fn requests(&self) -> u64;
}

/// Knows what stands on pages.
pub trait Texts {
    /// The different words of each page; `None` where they are not to be had.
    ///
    /// # Errors
    /// When whatever knows them cannot be read.
    fn words(&mut self, urls: &[&str]) -> Result<Vec<Option<Vec<String>>>, MemberFailure>;

    /// Each page with what is known of its content.
    ///
    /// # Errors
    /// When whatever knows it cannot be read.
    fn contents(&mut self, urls: &[&str]) -> Result<Vec<Option<Page>>, MemberFailure>;
}

/// Words, how common they are, and which of them queries are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lexicon {
    /// Ascending, each once, with the number of documents that have it; 0 where that is not known.
    words: Vec<(String, u64)>,
    /// Whether queries are made of the word.
    asked: Vec<bool>,
    /// The places of those words.
    askable: Vec<usize>,
}

impl Lexicon {
    /// Words with the number of documents that have each. A word that comes twice has the larger
    /// number. Queries are made of all.
    pub fn new(words: impl IntoIterator<Item = (String, u64)>) -> Lexicon {
        let mut words: Vec<(String, u64)> = words.into_iter().collect();
        words.sort_unstable();
        words.dedup_by(|later, earlier| {
            let same = later.0 == earlier.0;
            if same {
                earlier.1 = later.1;
            }
            same
        });
        let (asked, askable) = (vec![true; words.len()], (0..words.len()).collect());
        Lexicon { words, asked, askable }
    }

    /// The same words, of which only those that so many documents have are put into queries. The
    /// others still tell how rare they are.
    ///
    /// Common words make queries whose results are cut, or so many that one sample stands for a
    /// hundred.
    pub fn asking(mut self, documents: std::ops::RangeInclusive<u64>) -> Lexicon {
        self.asked = self.words.iter().map(|(_, n)| documents.contains(n)).collect();
        self.askable = (0..self.words.len()).filter(|at| self.asked[*at]).collect();
        self
    }

    /// Number of words that queries are made of.
    pub fn len(&self) -> usize {
        self.askable.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.askable.is_empty()
    }

    /// All words with their numbers, ascending.
    pub fn words(&self) -> &[(String, u64)] {
        &self.words
    }

    fn place(&self, word: &str) -> Option<usize> {
        self.words.binary_search_by(|(known, _)| known.as_str().cmp(word)).ok()
    }

    /// How many documents have a word; `None` for a word that is not in it.
    pub fn frequency(&self, word: &str) -> Option<u64> {
        self.place(word).map(|at| self.words[at].1)
    }

    /// Whether queries are made of a word.
    fn asks(&self, word: &str) -> bool {
        self.place(word).is_some_and(|at| self.asked[at])
    }

    /// Different words at random, `n` of them as far as there are so many.
    fn draw(&self, n: usize, dice: &mut Dice) -> Vec<&str> {
        let mut drawn: Vec<&str> = Vec::with_capacity(n);
        while drawn.len() < n.min(self.askable.len()) {
            let word = self.words[self.askable[dice.index(self.askable.len())]].0.as_str();
            if !drawn.contains(&word) {
                drawn.push(word);
            }
        }
        drawn
    }
}

/// How to look for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Queries, each of words of its own.
    pub queries: usize,
    /// Words of a query.
    pub words: usize,
}

/// What samples of a query are weighted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Correction {
    /// Nothing: the lecture's method as it stands.
    Nothing,
    /// The number of results of the query: one yardstick for all engines, in which pages with many
    /// words count more.
    Results,
    /// The same over the number of queries that the page's words make: pages.
    #[default]
    Pages,
}

/// How an engine is sampled and checked.
#[derive(Clone, Copy, Debug)]
pub struct EngineParams {
    /// Words of a random query.
    pub query_words: usize,
    /// Results that are fetched, at most.
    pub most_results: usize,
    /// Whether queries with so many results count, although the rest was not seen.
    pub keep_cut: bool,
    /// How to look for a page.
    pub check: Check,
    /// What makes two pages the same.
    pub by: By,
    /// What samples are weighted by.
    pub correction: Correction,
    /// Random queries for each sample that is wanted, at most.
    pub tries: usize,
    /// Pages out of which each one of the sample is chosen, where weights are those of pages. Their
    /// words are needed; they are not checked.
    pub candidates: usize,
}

impl Default for EngineParams {
    fn default() -> EngineParams {
        EngineParams {
            query_words: 2,
            most_results: 100,
            keep_cut: false,
            check: Check { queries: 1, words: 8 },
            by: By::Url,
            correction: Correction::Pages,
            tries: 50,
            candidates: 4,
        }
    }
}

/// Chooses about `wanted` of more candidates with probability in proportion to their weights, at
/// even distances along all of them. A candidate that is chosen several times is there once, with
/// that weight. Few candidates stay as they are.
fn resample<'u>(weighed: Vec<(&'u str, f64)>, wanted: usize, dice: &mut Dice) -> Vec<(&'u str, f64)> {
    if weighed.len() <= wanted || wanted == 0 {
        return weighed;
    }
    let step = weighed.iter().map(|(_, weight)| weight).sum::<f64>() / wanted as f64;
    let mut next = step * dice.unit();
    let mut sum = 0.0;
    let mut chosen = Vec::with_capacity(wanted);
    for (url, weight) in weighed {
        sum += weight;
        let mut times = 0.0;
        while next < sum {
            times += 1.0;
            next += step;
        }
        if times > 0.0 {
            chosen.push((url, times));
        }
    }
    chosen
}

/// A search engine as a member.
pub struct EngineMember<'a> {
    engine: Box<dyn SearchEngine + 'a>,
    lexicon: &'a Lexicon,
    texts: &'a std::cell::RefCell<dyn Texts + 'a>,
    params: EngineParams,
    effort: Effort,
}

/// The addresses that strong queries brought up.
struct Looked {
    results: Vec<String>,
    /// Whether one of the queries was answered in full.
    complete: bool,
}

impl<'a> EngineMember<'a> {
    /// An engine, words to ask it for, and what knows the words of pages.
    pub fn new(
        engine: Box<dyn SearchEngine + 'a>,
        lexicon: &'a Lexicon,
        texts: &'a std::cell::RefCell<dyn Texts + 'a>,
        params: EngineParams,
    ) -> EngineMember<'a> {
        EngineMember { engine, lexicon, texts, params, effort: Effort::default() }
    }

    fn search(&mut self, words: &[&str]) -> Result<Vec<String>, SearchFailure> {
        let answer = self.engine.search(words, self.params.most_results);
        self.effort.requests = self.engine.requests();
        if matches!(answer, Err(SearchFailure::Failed { .. })) {
            self.effort.failures += 1;
        }
        answer
    }

    /// The results of random queries that have some.
    fn draw(&mut self, wanted: usize, dice: &mut Dice) -> Vec<Vec<String>> {
        let mut drawn = Vec::with_capacity(wanted.min(1 << 16));
        let lexicon = self.lexicon;
        let tries = 100 + wanted.saturating_mul(self.params.tries);
        for _ in 0..tries {
            if drawn.len() >= wanted || lexicon.len() < self.params.query_words.max(1) {
                break;
            }
            let words = lexicon.draw(self.params.query_words, dice);
            let answer = match self.search(&words) {
                Ok(answer) => answer,
                Err(SearchFailure::Exhausted) => break,
                Err(SearchFailure::Failed { .. }) => {
                    self.effort.queries += 1;
                    continue;
                }
            };
            self.effort.queries += 1;
            if answer.is_empty() {
                self.effort.empty_queries += 1;
            } else if answer.len() >= self.params.most_results && !self.params.keep_cut {
                self.effort.cut_queries += 1;
            } else {
                drawn.push(answer);
            }
        }
        drawn
    }

    /// The pages that may become the sample: one result of each query, as the lecture has it; or
    /// pairs of a query and a result, each as likely as any other, and more of them than are wanted
    /// where they will be chosen from.
    fn candidates(&self, answers: Vec<Vec<String>>, wanted: usize, dice: &mut Dice) -> Vec<String> {
        if self.params.correction == Correction::Nothing {
            return answers
                .into_iter()
                .map(|mut answer| answer.swap_remove(dice.index(answer.len())))
                .collect();
        }
        let enough = match self.params.correction {
            Correction::Pages => wanted.saturating_mul(self.params.candidates.max(1)),
            _ => wanted,
        };
        let mut pairs: Vec<String> = answers.into_iter().flatten().collect();
        for at in 0..enough.min(pairs.len()) {
            let other = at + dice.index(pairs.len() - at);
            pairs.swap(at, other);
        }
        pairs.truncate(enough);
        pairs
    }

    /// How many queries the words of a page make; 0 when they make none.
    fn degree(&self, words: &[String]) -> f64 {
        let known = words.iter().filter(|word| self.lexicon.asks(word)).count();
        let k = self.params.query_words;
        // Binomial: known over k.
        (0..k).map(|i| known.saturating_sub(i) as f64 / (k - i) as f64).product()
    }

    /// The words of a strong query, rarest first: those that the lexicon does not know, then by
    /// frequency, then the longer ones.
    fn strong_queries<'w>(&self, words: &'w [String]) -> Vec<Vec<&'w str>> {
        let mut ranked: Vec<&str> = words.iter().map(String::as_str).collect();
        ranked.sort_by_cached_key(|word| {
            let frequency = self.lexicon.frequency(word).map_or(0, |n| n.max(1));
            (frequency, usize::MAX - word.chars().count(), *word)
        });
        let Check { queries, words } = self.params.check;
        ranked.truncate(queries * words);
        // Dealt in turn, so that every query has some of the rarest.
        let queries = queries.min(ranked.len().div_ceil(words.max(1))).max(1);
        let mut dealt = vec![Vec::new(); queries];
        for (at, word) in ranked.into_iter().enumerate() {
            dealt[at % queries].push(word);
        }
        dealt.retain(|query| !query.is_empty());
        dealt
    }

    /// Looks for a page. `None` when it cannot be looked for.
    fn look(&mut self, page: &Page, words: &[String]) -> Option<Looked> {
        let mut looked = Looked { results: Vec::new(), complete: false };
        let mut answered = false;
        for query in self.strong_queries(words) {
            let Ok(answer) = self.search(&query) else { continue };
            answered = true;
            looked.complete |= answer.len() < self.params.most_results;
            let found = self.params.by == By::Url && answer.iter().any(|url| Some(url) == page.url.as_ref());
            looked.results.extend(answer);
            if found {
                break;
            }
        }
        answered.then_some(looked)
    }

    /// How many different addresses of the engine have each page; `None` where that is not known.
    fn matches(&mut self, pages: &[Page]) -> Result<Vec<Option<usize>>, MemberFailure> {
        // A page that was drawn twice is looked for once.
        let mut first: HashMap<&str, usize> = HashMap::new();
        let mut urls: Vec<&str> = Vec::new();
        for url in pages.iter().filter_map(|page| page.url.as_deref()) {
            first.entry(url).or_insert_with(|| {
                urls.push(url);
                urls.len() - 1
            });
        }
        let words = self.texts.borrow_mut().words(&urls)?;
        let mut looked: Vec<Option<Option<Looked>>> = urls.iter().map(|_| None).collect();
        let place = |page: &Page| page.url.as_deref().and_then(|url| first.get(url).copied());
        for page in pages {
            let Some(at) = place(page) else { continue };
            if looked[at].is_none() {
                let words = words[at].as_deref().filter(|words| !words.is_empty());
                looked[at] = Some(words.and_then(|words| self.look(page, words)));
            }
        }
        let contents = self.contents_of(&looked)?;
        let by = self.params.by;
        let count = |page: &Page| {
            let looked = looked[place(page)?].as_ref()?.as_ref()?;
            let different: BTreeSet<&String> = looked.results.iter().collect();
            let same = |url: &&&String| match by {
                By::Url => Some(**url) == page.url.as_ref(),
                _ => {
                    Some(**url) == page.url.as_ref()
                        || contents.get(url.as_str()).is_some_and(|other| by.same(page, other))
                }
            };
            let found = different.iter().filter(same).count();
            (found > 0 || looked.complete).then_some(found)
        };
        let counts = pages.iter().map(count).collect();
        Ok(counts)
    }

    /// What is known of all results, where contents are compared.
    fn contents_of(&self, looked: &[Option<Option<Looked>>]) -> Result<HashMap<String, Page>, MemberFailure> {
        if self.params.by == By::Url {
            return Ok(HashMap::new());
        }
        let results = looked.iter().flatten().flatten().flat_map(|looked| &looked.results);
        let urls: BTreeSet<&str> = results.map(String::as_str).collect();
        let urls: Vec<&str> = urls.into_iter().collect();
        let contents = self.texts.borrow_mut().contents(&urls)?;
        let known = urls.into_iter().zip(contents).filter_map(|(url, page)| Some((url.to_owned(), page?)));
        Ok(known.collect())
    }
}

impl Member for EngineMember<'_> {
    fn name(&self) -> &str {
        self.engine.name()
    }

    fn count(&mut self) -> Result<Option<u64>, MemberFailure> {
        Ok(None)
    }

    fn sample(&mut self, wanted: usize, seed: u64) -> Result<Sample, MemberFailure> {
        let mut dice = Dice::new(seed);
        let answers = self.draw(wanted, &mut dice);
        let candidates = self.candidates(answers, wanted, &mut dice);
        let urls: Vec<&str> = candidates.iter().map(String::as_str).collect();
        let mut weighed: Vec<(&str, f64)> = Vec::with_capacity(urls.len());
        match self.params.correction {
            Correction::Pages => {
                let words = self.texts.borrow_mut().words(&urls)?;
                for (url, words) in urls.iter().zip(words) {
                    // A page that has not the words it was found by cannot be weighted: an engine
                    // also finds pages by the words of links to them.
                    match words.map(|words| self.degree(&words)).filter(|degree| *degree > 0.0) {
                        Some(degree) => weighed.push((url, 1.0 / degree)),
                        None => self.effort.dropped_pages += 1,
                    }
                }
                weighed = resample(weighed, wanted, &mut dice);
            }
            _ => weighed.extend(urls.iter().map(|url| (*url, 1.0))),
        }
        let urls: Vec<&str> = weighed.iter().map(|(url, _)| *url).collect();
        let contents = match self.params.by {
            By::Url => urls
                .iter()
                .map(|url| Some(Page { url: Some((*url).to_owned()), ..Page::default() }))
                .collect(),
            _ => self.texts.borrow_mut().contents(&urls)?,
        };
        let mut pages = Vec::with_capacity(weighed.len());
        for ((_, weight), page) in weighed.into_iter().zip(contents) {
            match page {
                Some(page) => pages.push(Sampled { page, weight }),
                None => self.effort.dropped_pages += 1,
            }
        }
        if self.params.by != By::Url {
            // Contents are counted, not addresses: what the engine has in several places was as
            // many times as likely.
            let asked: Vec<Page> = pages.iter().map(|sampled| sampled.page.clone()).collect();
            for (sampled, copies) in pages.iter_mut().zip(self.matches(&asked)?) {
                sampled.weight /= copies.unwrap_or(1).max(1) as f64;
            }
        }
        Ok(Sample { pages, is_whole: false })
    }

    fn contains(&mut self, pages: &[Page]) -> Result<Vec<Presence>, MemberFailure> {
        let mut answers = Vec::with_capacity(pages.len());
        for found in self.matches(pages)? {
            answers.push(match found {
                Some(0) => Presence::Absent,
                Some(_) => Presence::Present,
                None => {
                    self.effort.unknown_checks += 1;
                    Presence::Unknown
                }
            });
        }
        Ok(answers)
    }

    fn effort(&self) -> Effort {
        self.effort
    }
}

#[cfg(test)]
mod tests;
