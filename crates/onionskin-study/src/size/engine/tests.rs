use std::cell::RefCell;
use std::collections::BTreeMap;

use super::*;
use crate::size::overlap::{EstimateParams, Estimates, estimate};
use crate::size::testing::{Library, Pages, Ranking, Toy, repetitions};
use crate::size::{Observed, measure};

/// The words of a web that are on at least two pages and on no more than one in twenty.
fn lexicon(pages: &Pages) -> Lexicon {
    let mut counts: BTreeMap<&String, u64> = BTreeMap::new();
    for word in pages.words.iter().flatten() {
        *counts.entry(word).or_default() += 1;
    }
    let most = pages.words.len() as u64 / 20;
    Lexicon::new(counts.into_iter().map(|(word, n)| (word.clone(), n))).asking(2..=most)
}

/// A web and three engines over it, each with a ranking of its own. The first prefers long pages,
/// so that random queries, which do too, overrate it.
struct Fair {
    pages: Pages,
    lexicon: Lexicon,
    toys: [Toy; 3],
    /// Sizes of the second and the third against the first.
    truth: [f64; 2],
}

impl Fair {
    fn new(n: usize) -> Fair {
        let pages = Pages::new(n, 120, 2_000, 77);
        let long = |at: usize| pages.words[at].len() > 70;
        let has: [&dyn Fn(usize) -> bool; 3] =
            [&|at| long(at) || at % 3 == 0, &|at| at % 4 != 0, &|at| at % 2 == 0];
        let toys = [
            Toy::new("longest", &pages, has[0], Ranking::Longest),
            Toy::new("popular", &pages, has[1], Ranking::Popular),
            Toy::new("scrambled", &pages, has[2], Ranking::Scrambled),
        ];
        let count = |x: usize| (0..n).filter(|at| has[x](*at)).count() as f64;
        let truth = [count(1) / count(0), count(2) / count(0)];
        let lexicon = lexicon(&pages);
        Fair { lexicon, toys, truth, pages }
    }

    fn run(&self, params: EngineParams, samples: usize, seed: u64) -> (Vec<Observed>, Estimates) {
        let texts = RefCell::new(Library(&self.pages));
        let mut members: Vec<Box<dyn Member + '_>> = Vec::new();
        for toy in self.toys.clone() {
            members.push(Box::new(EngineMember::new(Box::new(toy), &self.lexicon, &texts, params)));
        }
        let observed = measure(&mut members, samples, seed, &mut |_| {}).unwrap();
        let found = estimate(&observed, &EstimateParams { draws: 300, seed, ..EstimateParams::default() });
        (observed, found)
    }
}

/// How often the intervals of the two sizes have the truth, and the mean of the sizes.
fn coverage(fair: &Fair, params: EngineParams, runs: u64, seeds: u64) -> ([u64; 2], [f64; 2]) {
    let (mut covered, mut means) = ([0; 2], [0.0; 2]);
    for run in 0..runs {
        let (_, found) = fair.run(params, 120, seeds + run);
        for x in 0..2 {
            let size = found.sizes[x + 1].unwrap();
            covered[x] += u64::from(size.interval.covers(fair.truth[x]));
            means[x] += size.value / runs as f64;
        }
    }
    (covered, means)
}

#[test]
fn three_engines_with_rankings_of_their_own_are_recovered() {
    let fair = Fair::new(2_000);
    let runs = repetitions(60, 200);
    let (covered, means) = coverage(&fair, EngineParams::default(), runs, 300);
    // 60 runs at 95 % have a standard deviation of 3 %, so fewer runs get more room.
    let least = if runs >= 200 { 0.9 } else { 0.85 };
    let enough = covered.iter().all(|n| *n as f64 >= least * runs as f64);
    assert!(enough, "{covered:?} of {runs}, means {means:?}, truth {:?}, seeds from 300", fair.truth);
}

#[test]
fn without_weights_queries_favour_the_engine_with_long_pages() {
    let fair = Fair::new(2_000);
    let params = EngineParams { correction: Correction::Nothing, ..EngineParams::default() };
    let (covered, means) = coverage(&fair, params, 10, 400);
    assert!(
        covered.iter().all(|n| *n <= 2),
        "{covered:?} of 10, means {means:?}, truth {:?}, seeds from 400",
        fair.truth
    );
    assert!(means[0] < 0.85 * fair.truth[0] && means[1] < 0.85 * fair.truth[1], "{means:?} {:?}", fair.truth);
}

#[test]
fn cut_results_are_biased_by_ranking_and_left_out() {
    // Single words have dozens of results, of which five are seen.
    let fair = Fair::new(2_000);
    let cut = EngineParams { query_words: 1, most_results: 5, keep_cut: true, ..EngineParams::default() };
    // Checks see all.
    let (observed, _) = fair.run(EngineParams { keep_cut: false, ..cut }, 20, 1);
    let effort = observed[0].effort;
    assert!(effort.cut_queries > effort.queries / 2, "{effort:?}");
    let drawn = |params: EngineParams| {
        let texts = RefCell::new(Library(&fair.pages));
        let mut member = EngineMember::new(Box::new(fair.toys[0].clone()), &fair.lexicon, &texts, params);
        let sample = member.sample(400, 9).unwrap();
        let length = |sampled: &Sampled| {
            let url = sampled.page.url.as_ref().unwrap();
            fair.pages.words[url.rsplit('/').next().unwrap().parse::<usize>().unwrap()].len() as f64
        };
        let weights: f64 = sample.pages.iter().map(|sampled| sampled.weight).sum();
        sample.pages.iter().map(|sampled| sampled.weight * length(sampled)).sum::<f64>() / weights
    };
    let all = EngineParams { query_words: 1, most_results: 1_000, ..EngineParams::default() };
    let pages = (0..2_000).filter(|at| fair.pages.words[*at].len() > 70 || at % 3 == 0);
    let lengths: Vec<f64> = pages.map(|at| fair.pages.words[at].len() as f64).collect();
    let truth = lengths.iter().sum::<f64>() / lengths.len() as f64;
    let (seen, complete) = (drawn(cut), drawn(all));
    // 400 pages whose length has a deviation of 25: four standard errors are 6 with the weights.
    assert!((complete - truth).abs() < 6.0, "{complete}, truth {truth}, seed 9");
    assert!(seen > truth + 15.0, "the longest first: {seen}, truth {truth}, seed 9");
}

#[test]
fn failures_are_counted_and_are_not_absence() {
    let mut fair = Fair::new(1_000);
    fair.toys[1].fails_every = Some(4);
    let (observed, found) = fair.run(EngineParams::default(), 150, 5);
    let effort = observed[1].effort;
    assert!(effort.failures > 30 && effort.unknown_checks > 20, "{effort:?}");
    let fraction = found.fractions[0][1].unwrap();
    assert!(fraction.checked < observed[0].samples.len() as u64, "{fraction:?}");
    let (_, without) = Fair::new(1_000).run(EngineParams::default(), 150, 5);
    let (a, b) = (fraction.share.value, without.fractions[0][1].unwrap().share.value);
    assert!((a - b).abs() < 0.15, "{a} with failures, {b} without, seed 5");
}

#[test]
fn copies_are_found_by_content() {
    // 1000 contents; two in five stand at a second and a third address. The first engine has all
    // addresses of its contents, the second has 1 address of each, and of those with copies not the
    // first.
    let mut pages = Pages::new(1_000, 60, 1_500, 8);
    let copied = |content: usize| content % 5 < 2;
    let mut of: Vec<usize> = (0..1_000).collect();
    for content in (0..1_000).filter(|content| copied(*content)) {
        for _ in 0..2 {
            pages.words.push(pages.words[content].clone());
            pages.contents.push(pages.contents[content]);
            of.push(content);
        }
    }
    let first = Toy::new("first", &pages, |at| of[at] < 700, Ranking::Popular);
    let is_last = |at: usize| of[at + 1..].iter().all(|other| *other != of[at]);
    let last: Vec<bool> = (0..of.len()).map(is_last).collect();
    let second = Toy::new("second", &pages, |at| of[at] >= 300 && last[at], Ranking::Scrambled);
    let lexicon = lexicon(&pages);
    let ratio = |by: By, seed: u64| {
        let texts = RefCell::new(Library(&pages));
        let mut members: Vec<Box<dyn Member + '_>> = Vec::new();
        for toy in [first.clone(), second.clone()] {
            let params = EngineParams { by, ..EngineParams::default() };
            members.push(Box::new(EngineMember::new(Box::new(toy), &lexicon, &texts, params)));
        }
        let observed = measure(&mut members, 250, seed, &mut |_| {}).unwrap();
        let found = estimate(&observed, &EstimateParams { draws: 200, seed, ..EstimateParams::default() });
        found.ratios[0].ratio.unwrap()
    };
    let (mut urls, mut texts) = (0, 0);
    for seed in 20..30 {
        urls += u32::from(ratio(By::Url, seed).interval.covers(1.0));
        texts += u32::from(ratio(By::Text, seed).interval.covers(1.0));
    }
    assert_eq!(urls, 0, "both have 700 contents, the first 1260 addresses; seeds from 20");
    assert!(texts >= 8, "{texts} of 10, seeds from 20");
}

#[test]
fn strong_queries_take_the_rarest_words() {
    let pages = Pages { words: vec![], contents: vec![] };
    let lexicon =
        Lexicon::new([("the", 900), ("cat", 40), ("sat", 30), ("on", 800)].map(|(w, n)| (w.to_owned(), n)));
    let texts = RefCell::new(Library(&pages));
    let toy = || Box::new(Toy::new("t", &pages, |_| true, Ranking::Popular));
    let words: Vec<String> = ["the", "cat", "sat", "on", "zebra", "xylophone"].map(str::to_owned).to_vec();
    let queries = |queries, words_each| {
        let params = EngineParams { check: Check { queries, words: words_each }, ..EngineParams::default() };
        let member = EngineMember::new(toy(), &lexicon, &texts, params);
        member.strong_queries(&words).iter().map(|query| query.join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(queries(1, 3), ["xylophone zebra sat"]);
    assert_eq!(queries(2, 2), ["xylophone sat", "zebra cat"]);
    assert_eq!(queries(5, 4), ["xylophone sat on", "zebra cat the"]);
    assert_eq!(lexicon.frequency("sat"), Some(30));
}
