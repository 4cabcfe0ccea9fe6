//! Random searches from a query log (Lawrence and Giles 1998, 1999).
//!
//! Each query is put to all engines, and the different addresses in their results are counted. Only
//! queries whose results are few and complete count, since the number of results that an engine
//! claims is a guess, and a list that was cut tells the length of the list. What one number to make
//! of many ratios is an old question; three answers are given, each with its flaw: the ratio of
//! sums, the mean of ratios, and the harmonic mean of ratios.

use super::random::Dice;
use super::statistics::{Estimate, Interval, percentiles};

/// The results of one query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Different addresses that each engine gave.
    pub results: Vec<u64>,
    /// `shared[x][y]`: addresses that both gave.
    pub shared: Vec<Vec<u64>>,
}

/// The sizes of two engines against each other.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchRatio {
    /// One.
    pub x: usize,
    /// The other.
    pub y: usize,
    /// Σ x / Σ y.
    pub of_sums: Option<Estimate>,
    /// The mean of x / y over queries that y answers.
    pub mean: Option<Estimate>,
    /// One over the mean of y / x, over queries that x answers.
    pub harmonic: Option<Estimate>,
    /// Queries that y gave nothing for: not in the mean.
    pub without_y: u64,
    /// Queries that x gave nothing for: not in the harmonic mean.
    pub without_x: u64,
    /// The share of x's results that y gave as well, and the other way round.
    pub overlap: [Option<Estimate>; 2],
}

/// What follows from the answers.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchEstimates {
    /// Results of each engine in all.
    pub totals: Vec<u64>,
    /// Every pair, the earlier engine first.
    pub ratios: Vec<SearchRatio>,
    /// Queries that no engine had a result for.
    pub empty: u64,
}

/// Ratios with intervals from resampling the queries.
pub fn estimate(
    answers: &[Answered],
    engines: usize,
    confidence: f64,
    draws: usize,
    seed: u64,
) -> SearchEstimates {
    let mut totals = vec![0; engines];
    for answer in answers {
        for (total, results) in totals.iter_mut().zip(&answer.results) {
            *total += results;
        }
    }
    let empty = answers.iter().filter(|answer| answer.results.iter().all(|n| *n == 0)).count() as u64;
    let mut ratios = Vec::new();
    for x in 0..engines {
        for y in x + 1..engines {
            let pairs: Vec<[f64; 3]> = answers
                .iter()
                .map(|answer| [answer.results[x], answer.results[y], answer.shared[x][y]].map(|n| n as f64))
                .collect();
            let without = |side: usize| pairs.iter().filter(|pair| pair[side] == 0.0).count() as u64;
            let plain = numbers(pairs.iter());
            let mut drawn: [Vec<f64>; 5] = Default::default();
            // Every pair of engines sees the same draws.
            let mut dice = Dice::new(seed);
            for _ in 0..draws {
                let resampled = (0..pairs.len()).map(|_| &pairs[dice.index(pairs.len())]);
                for (into, value) in drawn.iter_mut().zip(numbers(resampled)) {
                    into.push(value);
                }
            }
            let mut estimates = plain.into_iter().zip(drawn).map(|(value, mut draws)| {
                draws.retain(|draw| draw.is_finite());
                let around = percentiles(&mut draws, confidence);
                let interval = around.unwrap_or(Interval { low: value, high: value });
                value.is_finite().then_some(Estimate { value, interval })
            });
            let mut next = || estimates.next().flatten();
            ratios.push(SearchRatio {
                x,
                y,
                of_sums: next(),
                mean: next(),
                harmonic: next(),
                overlap: [next(), next()],
                without_y: without(1),
                without_x: without(0),
            });
        }
    }
    SearchEstimates { totals, ratios, empty }
}

/// The ratio of sums, the mean of ratios, the harmonic mean, and the two overlaps; not finite where
/// there is none.
fn numbers<'a>(pairs: impl Iterator<Item = &'a [f64; 3]>) -> [f64; 5] {
    let (mut x_sum, mut y_sum, mut both) = (0.0, 0.0, 0.0);
    let (mut ratios, mut with_y, mut inverse, mut with_x) = (0.0, 0.0, 0.0, 0.0);
    for [x, y, shared] in pairs {
        x_sum += x;
        y_sum += y;
        both += shared;
        if *y > 0.0 {
            ratios += x / y;
            with_y += 1.0;
        }
        if *x > 0.0 {
            inverse += y / x;
            with_x += 1.0;
        }
    }
    [x_sum / y_sum, ratios / with_y, with_x / inverse, both / x_sum, both / y_sum]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(x: u64, y: u64, both: u64) -> Answered {
        Answered { results: vec![x, y], shared: vec![vec![x, both], vec![both, y]] }
    }

    #[test]
    fn three_ratios_of_three_queries() {
        let answers = [answered(4, 2, 2), answered(3, 3, 0), answered(0, 5, 0), answered(0, 0, 0)];
        let found = estimate(&answers, 2, 0.95, 200, 1);
        assert_eq!((found.totals.as_slice(), found.empty), ([7, 10].as_slice(), 1));
        let ratio = &found.ratios[0];
        let value = |estimate: &Option<Estimate>| estimate.unwrap().value;
        assert_eq!(value(&ratio.of_sums), 0.7);
        assert_eq!(value(&ratio.mean), (2.0 + 1.0 + 0.0) / 3.0);
        assert_eq!(value(&ratio.harmonic), 2.0 / (0.5 + 1.0));
        assert_eq!((ratio.without_x, ratio.without_y), (2, 1));
        assert_eq!([value(&ratio.overlap[0]), value(&ratio.overlap[1])], [2.0 / 7.0, 0.2]);
    }

    #[test]
    fn nothing_found_is_no_ratio() {
        let found = estimate(&[answered(0, 0, 0)], 2, 0.95, 50, 1);
        assert_eq!((found.empty, &found.ratios[0].of_sums, &found.ratios[0].mean), (1, &None, &None));
        assert_eq!(estimate(&[], 2, 0.95, 50, 1).ratios[0].of_sums, None);
    }

    #[test]
    fn the_interval_of_the_ratio_of_sums_covers() {
        // Results of y are about Poisson around twice those of x; the truth is 1/2.
        let (mut covered, runs) = (0, 200);
        for run in 0..runs {
            let mut dice = Dice::new(1000 + run);
            let answers: Vec<Answered> = (0..150)
                .map(|_| {
                    let pages = dice.below(40);
                    let x = (0..pages).filter(|_| dice.below(4) == 0).count() as u64;
                    let y = (0..pages).filter(|_| dice.below(2) == 0).count() as u64;
                    answered(x, y, 0)
                })
                .collect();
            let found = estimate(&answers, 2, 0.95, 300, run);
            covered += u32::from(found.ratios[0].of_sums.unwrap().interval.covers(0.5));
        }
        // 95 % of 200 are 190, with a standard deviation of 3.1.
        assert!(covered >= 180, "{covered} of 200, seeds from 1000");
    }
}
