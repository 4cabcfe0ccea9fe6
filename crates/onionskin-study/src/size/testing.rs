//! Members in memory, for tests.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::engine::{SearchEngine, SearchFailure, Texts};
use super::random::Dice;
use super::{By, Member, MemberFailure, Page, Presence, Sample, Sampled};

/// How many repetitions a statistical test makes.
pub(super) fn repetitions(always: u64, slow: u64) -> u64 {
    if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { slow } else { always }
}

/// A crawl in memory: (address, content) of each page.
pub(super) struct Crawl {
    name: String,
    by: By,
    pages: Vec<Page>,
    /// The different units: one page of each.
    units: Vec<usize>,
    urls: HashSet<String>,
    texts: HashSet<u64>,
}

impl Crawl {
    pub(super) fn new(name: &str, by: By, pages: impl IntoIterator<Item = (u64, u64)>) -> Crawl {
        let page = |(url, content): (u64, u64)| Page {
            url: Some(format!("http://e.example/{url}")),
            text_fp: Some(content),
            sketch: None,
        };
        let pages: Vec<Page> = pages.into_iter().map(page).collect();
        let mut seen = BTreeSet::new();
        let unit = |page: &Page| match by {
            By::Url => (page.url.clone(), None),
            _ => (None, page.text_fp),
        };
        let units = (0..pages.len()).filter(|at| seen.insert(unit(&pages[*at]))).collect();
        let urls = pages.iter().filter_map(|page| page.url.clone()).collect();
        let texts = pages.iter().filter_map(|page| page.text_fp).collect();
        Crawl { name: name.to_owned(), by, pages, units, urls, texts }
    }
}

impl Member for Crawl {
    fn name(&self) -> &str {
        &self.name
    }

    fn count(&mut self) -> Result<Option<u64>, MemberFailure> {
        Ok(Some(self.units.len() as u64))
    }

    fn sample(&mut self, wanted: usize, seed: u64) -> Result<Sample, MemberFailure> {
        let mut dice = Dice::new(seed);
        let mut units = self.units.clone();
        let wanted = wanted.min(units.len());
        for at in 0..wanted {
            let other = at + dice.index(units.len() - at);
            units.swap(at, other);
        }
        let pages = units[..wanted].iter().map(|at| Sampled { page: self.pages[*at].clone(), weight: 1.0 });
        Ok(Sample { pages: pages.collect(), is_whole: wanted == self.units.len() })
    }

    fn contains(&mut self, pages: &[Page]) -> Result<Vec<Presence>, MemberFailure> {
        let has = |page: &Page| match self.by {
            By::Url => page.url.as_ref().is_some_and(|url| self.urls.contains(url)),
            _ => page.text_fp.is_some_and(|text| self.texts.contains(&text)),
        };
        let answer = |page| if has(page) { Presence::Present } else { Presence::Absent };
        Ok(pages.iter().map(answer).collect())
    }
}

/// Pages with words, short ones and long ones, rare words and common ones.
pub(super) struct Pages {
    pub(super) words: Vec<Vec<String>>,
    pub(super) contents: Vec<u64>,
}

impl Pages {
    /// `n` pages of up to `longest` words out of `vocabulary`, of which the first are the most
    /// common.
    pub(super) fn new(n: usize, longest: u64, vocabulary: u64, seed: u64) -> Pages {
        let mut dice = Dice::new(seed);
        let mut words = Vec::with_capacity(n);
        for _ in 0..n {
            let length = 20 + dice.below(longest - 20);
            let mut page = BTreeSet::new();
            while (page.len() as u64) < length {
                // About Zipf: the logarithm of the rank is uniform for half of the words; the
                // others are any.
                let rank = if dice.below(2) == 0 {
                    ((vocabulary as f64).powf(dice.unit())) as u64 - 1
                } else {
                    dice.below(vocabulary)
                };
                page.insert(format!("w{rank:05}"));
            }
            words.push(page.into_iter().collect());
        }
        Pages { words, contents: (0..n as u64).map(|at| 1_000_000 + at).collect() }
    }

    pub(super) fn url(at: usize) -> String {
        format!("http://p.example/{at}")
    }

    fn at(url: &str) -> usize {
        url.rsplit('/').next().unwrap().parse().unwrap()
    }
}

/// What stands on the pages of a web.
pub(super) struct Library<'a>(pub(super) &'a Pages);

impl Texts for Library<'_> {
    fn words(&mut self, urls: &[&str]) -> Result<Vec<Option<Vec<String>>>, MemberFailure> {
        Ok(urls.iter().map(|url| Some(self.0.words[Pages::at(url)].clone())).collect())
    }

    fn contents(&mut self, urls: &[&str]) -> Result<Vec<Option<Page>>, MemberFailure> {
        let page = |url: &&str| Page {
            url: Some((*url).to_owned()),
            text_fp: Some(self.0.contents[Pages::at(url)]),
            sketch: None,
        };
        Ok(urls.iter().map(|url| Some(page(url))).collect())
    }
}

/// How an engine orders results.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ranking {
    /// Pages with many words first.
    Longest,
    /// Pages with small numbers first.
    Popular,
    /// In an order that has nothing to do with the pages.
    Scrambled,
}

/// An inverted index behind a search form.
#[derive(Clone)]
pub(super) struct Toy {
    name: String,
    index: Rc<HashMap<String, Vec<usize>>>,
    rank: Rc<Vec<u64>>,
    requests: u64,
    /// Every so many requests fail.
    pub(super) fails_every: Option<u64>,
}

impl Toy {
    pub(super) fn new(name: &str, pages: &Pages, has: impl Fn(usize) -> bool, ranking: Ranking) -> Toy {
        let mut index: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, words) in pages.words.iter().enumerate().filter(|(at, _)| has(*at)) {
            for word in words {
                index.entry(word.clone()).or_default().push(at);
            }
        }
        let rank = |(at, words): (usize, &Vec<String>)| match ranking {
            Ranking::Longest => u64::MAX - words.len() as u64,
            Ranking::Popular => at as u64,
            Ranking::Scrambled => onionskin_core::scramble(at as u64 + 1),
        };
        let rank = Rc::new(pages.words.iter().enumerate().map(rank).collect());
        Toy { name: name.to_owned(), index: Rc::new(index), rank, requests: 0, fails_every: None }
    }
}

impl SearchEngine for Toy {
    fn name(&self) -> &str {
        &self.name
    }

    fn search(&mut self, words: &[&str], limit: usize) -> Result<Vec<String>, SearchFailure> {
        self.requests += 1;
        if self.fails_every.is_some_and(|every| self.requests.is_multiple_of(every)) {
            return Err(SearchFailure::Failed { reason: "time-out".to_owned() });
        }
        let mut lists: Vec<&[usize]> =
            words.iter().map(|word| self.index.get(*word).map_or(&[][..], Vec::as_slice)).collect();
        lists.sort_by_key(|list| list.len());
        let Some((shortest, others)) = lists.split_first() else { return Ok(Vec::new()) };
        let in_all = |at: &&usize| others.iter().all(|list| list.binary_search(at).is_ok());
        let mut found: Vec<usize> = shortest.iter().filter(in_all).copied().collect();
        found.sort_by_key(|at| (self.rank[*at], *at));
        found.truncate(limit);
        Ok(found.into_iter().map(Pages::url).collect())
    }

    fn requests(&self) -> u64 {
        self.requests
    }
}
