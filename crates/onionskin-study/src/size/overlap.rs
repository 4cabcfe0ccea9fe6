//! Sizes and coverage from pages that were sampled in each member and checked in all the others.
//!
//! **Sizes.** Two members need a division. With more there are more equations than unknowns,
//! `f_xy x - f_yx y = e` for each pair, and the sum of squares is made least with one size fixed at
//! 1 (Bharat and Broder 1998). [`Fit::Plain`] counts every equation alike. [`Fit::Weighted`]
//! divides each by the variance that its two fractions give it, which depends on the sizes and is
//! therefore found by turns; an equation between members that hardly overlap then says no more than
//! it knows.
//!
//! **Coverage.** Pairs do not say how much three members share, but each page was checked in all of
//! them, so the set of members that have it is known. A page that k members have could have been
//! sampled in k ways and counts 1/k in each. With that, the size of every part of the union (only
//! in x, in x and y, ...) is a sum over samples, and all parts together are 100 %.
//!
//! **Intervals.** The Bayesian bootstrap (Rubin 1981): in each draw every sampled page has a random
//! weight, exponential with mean 1, and everything is computed again. It is smooth, so that no draw
//! has a fraction of 0 / 0, and pages that were found in the same members need one gamma number
//! together, so that a draw costs the number of different outcomes and not of pages. Two pages are
//! added in each draw, one that all have and one that only its own member has, each with half a
//! weight: then the fraction of a pair has the distribution Beta(k + 1/2, n - k + 1/2), which is
//! Jeffreys' interval, whose coverage holds at 0 and at 1 too, where resampling would claim to be
//! sure. Members that were sampled whole do not vary.

use super::random::Dice;
use super::statistics::{Estimate, Interval, percentiles};
use super::{Observed, Presence};

/// How more than two members are brought together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// Every pair counts alike, as Bharat and Broder have it.
    Plain,
    /// Every pair counts by what it knows.
    #[default]
    Weighted,
}

/// How to estimate.
#[derive(Clone, Copy, Debug)]
pub struct EstimateParams {
    /// The probability with which intervals hold the truth.
    pub confidence: f64,
    /// Draws of the bootstrap.
    pub draws: usize,
    /// The seed of the draws.
    pub seed: u64,
    /// How more than two members are brought together.
    pub fit: Fit,
}

impl Default for EstimateParams {
    fn default() -> EstimateParams {
        EstimateParams { confidence: 0.95, draws: 2000, seed: 1, fit: Fit::Weighted }
    }
}

/// The share of one member that another has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fraction {
    /// Pages that were found.
    pub found: u64,
    /// Pages whose answer is known.
    pub checked: u64,
    /// The share, by weight.
    pub share: Estimate,
}

/// The sizes of two members against each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairRatio {
    /// One.
    pub x: usize,
    /// The other.
    pub y: usize,
    /// |x| / |y| from these two alone; `None` when no overlap was seen from one of them.
    pub ratio: Option<Estimate>,
}

/// A part of the union: the pages that these members have, and no others.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which, ascending.
    pub members: Vec<usize>,
    /// Its share of the union.
    pub share: Estimate,
}

/// Where relative sizes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// From overlaps.
    Overlap,
    /// From counts, since overlaps do not connect all members.
    Counts,
    /// They cannot be known.
    Nothing,
}

/// What follows from the samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimates {
    /// `fractions[x][y]` is the share of x that y has; `None` on the diagonal and where no answer
    /// is known.
    pub fractions: Vec<Vec<Option<Fraction>>>,
    /// Every pair, the earlier member first.
    pub ratios: Vec<PairRatio>,
    /// The member whose size is 1: the first that has pages.
    pub reference: Option<usize>,
    /// Sizes against the reference; `None` for members that no chain of overlaps connects with it.
    /// Empty members have size 0.
    pub sizes: Vec<Option<Estimate>>,
    /// The share of the union that each member has; `None` when sizes cannot be known.
    pub coverage: Vec<Option<Estimate>>,
    /// The parts of the union that were seen, the largest first.
    pub parts: Vec<Part>,
    /// Where the sizes behind coverage and parts come from.
    pub basis: Basis,
    /// Samples of equal weight that would be as precise as these, for each member.
    pub effective_samples: Vec<f64>,
}

/// Pages of one member with the same outcome and weight.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    present: u32,
    unknown: u32,
    weight: f64,
    pages: u64,
}

/// The sample of one member, by outcome.
struct Tally {
    outcomes: Vec<Outcome>,
    /// The weight of an added page.
    typical_weight: f64,
    effective: f64,
    is_whole: bool,
}

impl Tally {
    fn new(observed: &Observed) -> Tally {
        let mut all: Vec<(u32, u32, f64)> = Vec::with_capacity(observed.samples.len());
        for sample in &observed.samples {
            let mut masks = (0, 0);
            for (y, presence) in sample.found.iter().enumerate() {
                match presence {
                    Presence::Present => masks.0 |= 1 << y,
                    Presence::Unknown => masks.1 |= 1 << y,
                    Presence::Absent => {}
                }
            }
            all.push((masks.0, masks.1, sample.weight));
        }
        all.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
        let mut outcomes: Vec<Outcome> = Vec::new();
        for (present, unknown, weight) in all {
            match outcomes.last_mut() {
                Some(last) if (last.present, last.unknown, last.weight) == (present, unknown, weight) => {
                    last.pages += 1;
                }
                _ => outcomes.push(Outcome { present, unknown, weight, pages: 1 }),
            }
        }
        let sum: f64 = outcomes.iter().map(|o| o.weight * o.pages as f64).sum();
        let squares: f64 = outcomes.iter().map(|o| o.weight * o.weight * o.pages as f64).sum();
        Tally {
            outcomes,
            typical_weight: if sum > 0.0 { squares / sum } else { 1.0 },
            effective: if squares > 0.0 { sum * sum / squares } else { 0.0 },
            is_whole: observed.is_whole,
        }
    }

    /// The outcomes with their weights as they are, or as a draw has them.
    fn weigh(&self, own: usize, members: usize, dice: Option<&mut Dice>, out: &mut Vec<(u32, u32, f64)>) {
        out.clear();
        let weighed = |o: &Outcome, factor: f64| (o.present, o.unknown, o.weight * factor);
        match dice {
            Some(dice) if !self.is_whole && !self.outcomes.is_empty() => {
                out.extend(self.outcomes.iter().map(|o| weighed(o, dice.gamma(o.pages as f64))));
                for present in [((1u64 << members) - 1) as u32, 1 << own] {
                    out.push((present, 0, self.typical_weight * dice.gamma(0.5)));
                }
            }
            _ => out.extend(self.outcomes.iter().map(|o| weighed(o, o.pages as f64))),
        }
    }
}

/// Everything that one set of weights gives.
struct Numbers {
    /// `NaN` where no answer is known.
    fractions: Vec<Vec<f64>>,
    /// Weighted shares of each member by the set of members that have the page, where all answers
    /// are known.
    patterns: Vec<Vec<(u32, f64)>>,
}

impl Numbers {
    fn of(tallies: &[Tally], mut dice: Option<&mut Dice>) -> Numbers {
        let n = tallies.len();
        let mut fractions = vec![vec![f64::NAN; n]; n];
        let mut patterns = Vec::with_capacity(n);
        let mut weighed = Vec::new();
        for (x, tally) in tallies.iter().enumerate() {
            tally.weigh(x, n, dice.as_deref_mut(), &mut weighed);
            for (y, fraction) in fractions[x].iter_mut().enumerate() {
                let known = weighed.iter().filter(|(_, unknown, _)| unknown >> y & 1 == 0);
                let (mut all, mut found) = (0.0, 0.0);
                for (present, _, weight) in known {
                    all += weight;
                    found += if present >> y & 1 == 1 { *weight } else { 0.0 };
                }
                *fraction = found / all;
            }
            let mut shares: Vec<(u32, f64)> = Vec::new();
            let mut all = 0.0;
            for (present, unknown, weight) in &weighed {
                if *unknown != 0 {
                    continue;
                }
                all += weight;
                match shares.iter_mut().find(|(pattern, _)| pattern == present) {
                    Some((_, sum)) => *sum += weight,
                    None => shares.push((*present, *weight)),
                }
            }
            for (_, share) in &mut shares {
                *share /= all;
            }
            patterns.push(shares);
        }
        Numbers { fractions, patterns }
    }

    /// The share of each part of the union under given sizes, ascending by part.
    fn parts(&self, sizes: &[f64]) -> Vec<(u32, f64)> {
        let mut parts = std::collections::BTreeMap::new();
        let mut union = 0.0;
        for (shares, size) in self.patterns.iter().zip(sizes) {
            for (pattern, share) in shares {
                let pages = size * share / f64::from(pattern.count_ones().max(1));
                *parts.entry(*pattern).or_insert(0.0) += pages;
                union += pages;
            }
        }
        parts.into_iter().map(|(pattern, pages)| (pattern, pages / union)).collect()
    }
}

/// Estimates sizes, coverage and their intervals.
pub fn estimate(observed: &[Observed], params: &EstimateParams) -> Estimates {
    let n = observed.len();
    let tallies: Vec<Tally> = observed.iter().map(Tally::new).collect();
    let plain = Numbers::of(&tallies, None);
    let has_pages = |x: usize| !observed[x].samples.is_empty();
    let reference = (0..n).find(|x| has_pages(*x));
    let linked = linked(&plain.fractions, reference);
    let fitter = Fitter::new(&plain.fractions, &tallies, &linked, reference, params.fit);
    let sizes = fitter.solve(&plain.fractions);

    // Where overlaps do not connect all members, counts may.
    let all_linked = (0..n).all(|x| linked[x] || observed[x].is_empty());
    let counts: Option<Vec<f64>> = observed.iter().map(|o| o.count.map(|count| count as f64)).collect();
    let basis = match (reference, all_linked, &counts) {
        (None, ..) => Basis::Nothing,
        (_, true, _) => Basis::Overlap,
        (_, false, Some(_)) => Basis::Counts,
        (_, false, None) => Basis::Nothing,
    };
    let union_sizes = |sizes: &[f64]| match basis {
        Basis::Counts => counts.clone().unwrap_or_default(),
        _ => sizes.to_vec(),
    };
    let parts = plain.parts(&union_sizes(&sizes));

    let mut drawn = Drawn::new(n, parts.len());
    let mut dice = Dice::new(params.seed);
    for _ in 0..params.draws {
        let numbers = Numbers::of(&tallies, Some(&mut dice));
        let sizes = fitter.solve(&numbers.fractions);
        drawn.push(&numbers, &sizes, &numbers.parts(&union_sizes(&sizes)), &parts);
    }
    assemble(observed, &tallies, &plain, Fitted { sizes, linked, reference, parts, basis }, drawn, params)
}

/// What was fitted to the samples as they are.
struct Fitted {
    sizes: Vec<f64>,
    linked: Vec<bool>,
    reference: Option<usize>,
    parts: Vec<(u32, f64)>,
    basis: Basis,
}

/// What the draws gave, one vector a number.
struct Drawn {
    fractions: Vec<Vec<Vec<f64>>>,
    sizes: Vec<Vec<f64>>,
    coverage: Vec<Vec<f64>>,
    parts: Vec<Vec<f64>>,
}

impl Drawn {
    fn new(n: usize, parts: usize) -> Drawn {
        Drawn {
            fractions: vec![vec![Vec::new(); n]; n],
            sizes: vec![Vec::new(); n],
            coverage: vec![Vec::new(); n],
            parts: vec![Vec::new(); parts],
        }
    }

    fn push(&mut self, numbers: &Numbers, sizes: &[f64], drawn: &[(u32, f64)], wanted: &[(u32, f64)]) {
        for (into, from) in self.fractions.iter_mut().flatten().zip(numbers.fractions.iter().flatten()) {
            into.push(*from);
        }
        for (x, size) in sizes.iter().enumerate() {
            self.sizes[x].push(*size);
            let of = drawn.iter().filter(|(pattern, _)| pattern >> x & 1 == 1);
            self.coverage[x].push(of.map(|(_, share)| share).sum());
        }
        for (into, (pattern, _)) in self.parts.iter_mut().zip(wanted) {
            let share = drawn.iter().find(|(other, _)| other == pattern);
            into.push(share.map_or(0.0, |(_, share)| *share));
        }
    }
}

fn assemble(
    observed: &[Observed],
    tallies: &[Tally],
    plain: &Numbers,
    fitted: Fitted,
    mut drawn: Drawn,
    params: &EstimateParams,
) -> Estimates {
    let n = observed.len();
    let estimate = |value: f64, draws: &mut Vec<f64>| {
        draws.retain(|draw| !draw.is_nan());
        let interval = percentiles(draws, params.confidence).unwrap_or(Interval { low: value, high: value });
        Estimate { value, interval }
    };
    let mut fractions = vec![vec![None; n]; n];
    let mut ratios = Vec::new();
    for x in 0..n {
        for y in 0..n {
            if x < y {
                let (there, back) = (plain.fractions[x][y], plain.fractions[y][x]);
                let mut draws: Vec<f64> =
                    drawn.fractions[y][x].iter().zip(&drawn.fractions[x][y]).map(|(b, t)| b / t).collect();
                let ratio = (there > 0.0 && back > 0.0).then(|| estimate(back / there, &mut draws));
                ratios.push(PairRatio { x, y, ratio });
            }
        }
    }
    for x in 0..n {
        for y in (0..n).filter(|y| *y != x && !plain.fractions[x][*y].is_nan()) {
            let known = observed[x].samples.iter().filter(|sample| sample.found[y] != Presence::Unknown);
            let checked = known.clone().count() as u64;
            let found = known.filter(|sample| sample.found[y] == Presence::Present).count() as u64;
            let mut share = estimate(plain.fractions[x][y], &mut drawn.fractions[x][y]);
            // What was never seen may be 0, what was always seen may be all.
            if found == 0 {
                share.interval.low = 0.0;
            }
            if found == checked {
                share.interval.high = 1.0;
            }
            fractions[x][y] = Some(Fraction { found, checked, share });
        }
    }
    let exactly = |value: f64| Estimate { value, interval: Interval { low: value, high: value } };
    let mut sizes = Vec::with_capacity(n);
    let mut coverage = Vec::with_capacity(n);
    for (x, member) in observed.iter().enumerate() {
        sizes.push(match fitted.reference {
            _ if member.is_empty() => Some(exactly(0.0)),
            Some(reference) if reference == x => Some(exactly(1.0)),
            _ if fitted.linked[x] => Some(estimate(fitted.sizes[x], &mut drawn.sizes[x])),
            _ => None,
        });
        let share = fitted.parts.iter().filter(|(pattern, _)| pattern >> x & 1 == 1);
        let share = share.map(|(_, share)| share).sum();
        let covered = fitted.basis != Basis::Nothing;
        coverage.push(covered.then(|| estimate(share, &mut drawn.coverage[x])));
    }
    let mut parts = Vec::new();
    for ((pattern, share), draws) in fitted.parts.iter().zip(&mut drawn.parts) {
        let members = (0..n).filter(|x| pattern >> x & 1 == 1).collect();
        parts.push(Part { members, share: estimate(*share, draws) });
    }
    if fitted.basis == Basis::Nothing {
        parts.clear();
    }
    parts.sort_by(|a, b| b.share.value.total_cmp(&a.share.value).then_with(|| a.members.cmp(&b.members)));
    let effective_samples = tallies.iter().map(|tally| tally.effective).collect();
    Estimates {
        fractions,
        ratios,
        reference: fitted.reference,
        sizes,
        coverage,
        parts,
        basis: fitted.basis,
        effective_samples,
    }
}

/// Which members a chain of overlaps, seen from both sides, connects with the reference.
fn linked(fractions: &[Vec<f64>], reference: Option<usize>) -> Vec<bool> {
    let n = fractions.len();
    let mut linked = vec![false; n];
    let mut waiting: Vec<usize> = reference.into_iter().collect();
    while let Some(x) = waiting.pop() {
        if !std::mem::replace(&mut linked[x], true) {
            waiting.extend((0..n).filter(|y| fractions[x][*y] > 0.0 && fractions[*y][x] > 0.0));
        }
    }
    linked
}

/// The equations, with the weight of each.
struct Fitter {
    /// Members with an unknown size.
    unknowns: Vec<usize>,
    reference: Option<usize>,
    /// Weight of the equation between two members; 0 where there is none.
    weights: Vec<Vec<f64>>,
}

impl Fitter {
    /// Turns that weights and sizes take to settle; they do within a few.
    const TURNS: usize = 20;

    fn new(
        fractions: &[Vec<f64>],
        tallies: &[Tally],
        linked: &[bool],
        reference: Option<usize>,
        fit: Fit,
    ) -> Fitter {
        let n = fractions.len();
        let unknowns = (0..n).filter(|x| linked[*x] && Some(*x) != reference).collect();
        let usable = |x: usize, y: usize| {
            let known = |x: usize, y: usize| !fractions[x][y].is_nan();
            x != y && linked[x] && linked[y] && known(x, y) && known(y, x)
        };
        let weight = |x, y| if usable(x, y) { 1.0 } else { 0.0 };
        let weights = (0..n).map(|x| (0..n).map(|y| weight(x, y)).collect()).collect();
        let mut fitter = Fitter { unknowns, reference, weights };
        if fit == Fit::Plain || fitter.unknowns.len() < 2 {
            return fitter;
        }
        // Variance of a fraction, with half a page on each side so that none is 0. A whole sample
        // has nearly none.
        let variance = |x: usize, y: usize| {
            let pages = tallies[x].effective.max(1.0);
            let share = (fractions[x][y] * pages + 0.5) / (pages + 1.0);
            let whole = if tallies[x].is_whole { 1e-3 } else { 1.0 };
            whole * share * (1.0 - share) / pages
        };
        for _ in 0..Fitter::TURNS {
            let sizes = fitter.solve(fractions);
            for x in 0..n {
                for y in (0..n).filter(|y| usable(x, *y)) {
                    let (a, b) = (sizes[x], sizes[y]);
                    let noise = a * a * variance(x, y) + b * b * variance(y, x);
                    fitter.weights[x][y] = if noise > 0.0 { 1.0 / noise } else { 1.0 };
                }
            }
        }
        fitter
    }

    /// The sizes that make the weighted sum of squares least; `NaN` for members that are not
    /// linked.
    fn solve(&self, fractions: &[Vec<f64>]) -> Vec<f64> {
        let n = fractions.len();
        let mut sizes = vec![f64::NAN; n];
        let Some(reference) = self.reference else { return sizes };
        sizes[reference] = 1.0;
        let k = self.unknowns.len();
        // Normal equations: one row an unknown, the right-hand side last.
        let mut rows = vec![vec![0.0; k + 1]; k];
        for (row, &x) in rows.iter_mut().zip(&self.unknowns) {
            for y in (0..n).filter(|y| self.weights[x][*y] > 0.0) {
                let weight = self.weights[x][y];
                let (there, back) = (fractions[x][y], fractions[y][x]);
                if let Some(at) = self.unknowns.iter().position(|other| *other == x) {
                    row[at] += weight * there * there;
                }
                match self.unknowns.iter().position(|other| *other == y) {
                    Some(at) => row[at] -= weight * there * back,
                    None => row[k] += weight * there * back,
                }
            }
        }
        for (x, size) in self.unknowns.iter().zip(eliminate(rows)) {
            sizes[*x] = size;
        }
        sizes
    }
}

/// Solves a small linear system by elimination with pivots. Unknowns that nothing determines are
/// `NaN`.
fn eliminate(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let n = rows.len();
    for column in 0..n {
        let pivot = (column..n).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()));
        let Some(pivot) = pivot.filter(|pivot| rows[*pivot][column].abs() > f64::MIN_POSITIVE) else {
            return vec![f64::NAN; n];
        };
        rows.swap(column, pivot);
        let top = rows[column].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(at, _)| *at != column) {
            let factor = row[column] / top[column];
            for (value, above) in row.iter_mut().zip(&top) {
                *value -= factor * above;
            }
        }
    }
    (0..n).map(|at| rows[at][n] / rows[at][at]).collect()
}

#[cfg(test)]
mod tests;
