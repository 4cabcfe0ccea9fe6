use proptest::prelude::*;

use super::*;
use crate::size::{Checked, Effort};

/// A member with a sample of outcomes: `+` found, `-` not, `?` unknown, one a member, and how
/// often.
fn observed(outcomes: &[(&str, usize)]) -> Observed {
    let presence = |c: char| match c {
        '+' => Presence::Present,
        '-' => Presence::Absent,
        _ => Presence::Unknown,
    };
    let mut samples = Vec::new();
    for (found, times) in outcomes {
        let checked = Checked { weight: 1.0, found: found.chars().map(presence).collect() };
        samples.extend(std::iter::repeat_n(checked, *times));
    }
    Observed { name: "m".to_owned(), count: None, samples, is_whole: false, effort: Effort::default() }
}

#[test]
fn the_numbers_of_the_lecture() {
    // A ∩ B is a half of A and a sixth of B: A / B = 1/3.
    let members = [observed(&[("++", 30), ("+-", 30)]), observed(&[("++", 10), ("-+", 50)])];
    let found = estimate(&members, &EstimateParams::default());
    let ratio = found.ratios[0].ratio.unwrap();
    assert!((ratio.value - 1.0 / 3.0).abs() < 1e-12, "{ratio:?}");
    assert!(ratio.interval.covers(1.0 / 3.0) && ratio.interval.low > 0.1 && ratio.interval.high < 0.7);
    assert!((found.sizes[1].unwrap().value - 3.0).abs() < 1e-12);
    // Of A + B - A∩B = 1 + 3 - 1/2, A has 1.
    assert!((found.coverage[0].unwrap().value - 1.0 / 3.5).abs() < 1e-12);
    assert!((found.coverage[1].unwrap().value - 3.0 / 3.5).abs() < 1e-12);
}

#[test]
fn unknown_answers_are_left_out() {
    let members = [observed(&[("++", 30), ("+-", 30), ("+?", 400)]), observed(&[("++", 10), ("-+", 50)])];
    let found = estimate(&members, &EstimateParams::default());
    assert!((found.ratios[0].ratio.unwrap().value - 1.0 / 3.0).abs() < 1e-12);
    let fraction = found.fractions[0][1].unwrap();
    assert_eq!((fraction.found, fraction.checked), (30, 60));
    // And where nothing is known, nothing is told.
    let members = [observed(&[("+?", 400)]), observed(&[("++", 10), ("-+", 50)])];
    let found = estimate(&members, &EstimateParams::default());
    assert_eq!((found.fractions[0][1], found.ratios[0].ratio, found.sizes[1]), (None, None, None));
}

#[test]
fn tiny_samples_have_wide_intervals() {
    let members = [observed(&[("++", 2), ("+-", 1)]), observed(&[("++", 1), ("-+", 2)])];
    let ratio = estimate(&members, &EstimateParams::default()).ratios[0].ratio.unwrap();
    assert!(ratio.interval.low < 0.2 && ratio.interval.high > 1.2, "{ratio:?}");
}

#[test]
fn weights_settle_what_a_poor_pair_cannot() {
    // A and C hardly overlap, and by chance C was found too often in A. B overlaps both and says
    // that all are equal.
    let members = [
        observed(&[("++-", 500), ("+--", 498), ("+-+", 2)]),
        observed(&[("++-", 500), ("-++", 500)]),
        observed(&[("-++", 500), ("--+", 490), ("+-+", 10)]),
    ];
    let by = |fit| estimate(&members, &EstimateParams { fit, ..EstimateParams::default() }).sizes[2].unwrap();
    let (plain, weighted) = (by(Fit::Plain), by(Fit::Weighted));
    assert!((weighted.value - 1.0).abs() < 0.06, "{weighted:?}");
    assert!(plain.interval.covers(1.0) && weighted.interval.covers(1.0), "{plain:?} {weighted:?}");
}

/// The sum of squares, from its definition.
fn sum_of_squares(fractions: &[Vec<f64>], sizes: &[f64]) -> f64 {
    let mut sum = 0.0;
    for x in 0..sizes.len() {
        for y in x + 1..sizes.len() {
            sum += (fractions[x][y] * sizes[x] - fractions[y][x] * sizes[y]).powi(2);
        }
    }
    sum
}

proptest! {
    #[test]
    fn no_other_sizes_are_better(cells in prop::collection::vec(1u32..=8, 16), nudge in 0usize..6) {
        let n = 4;
        let fraction = |x: usize, y: usize| if x == y { 1.0 } else { f64::from(cells[4 * x + y]) / 8.0 };
        let fractions: Vec<Vec<f64>> = (0..n).map(|x| (0..n).map(|y| fraction(x, y)).collect()).collect();
        let tallies: Vec<Tally> = (0..n).map(|_| Tally::new(&observed(&[("++++", 8)]))).collect();
        let fitter = Fitter::new(&fractions, &tallies, &[true; 4], Some(0), Fit::Plain);
        let sizes = fitter.solve(&fractions);
        prop_assert!(sizes.iter().all(|size| *size > 0.0), "{sizes:?}");
        let best = sum_of_squares(&fractions, &sizes);
        let mut other = sizes.clone();
        other[1 + nudge / 2] *= if nudge % 2 == 0 { 1.01 } else { 0.99 };
        prop_assert!(sum_of_squares(&fractions, &other) >= best - 1e-12);
    }

    #[test]
    fn outcomes_together_count_as_pages_apart(outcomes in prop::collection::vec((0u8..3, 0u8..3, 1usize..5), 1..6)) {
        let letters = ["+", "-", "?"];
        let spelled: Vec<(String, usize)> = outcomes
            .iter()
            .map(|(b, c, n)| (format!("+{}{}", letters[usize::from(*b)], letters[usize::from(*c)]), *n))
            .collect();
        let borrowed: Vec<(&str, usize)> = spelled.iter().map(|(s, n)| (s.as_str(), *n)).collect();
        let member = observed(&borrowed);
        let numbers = Numbers::of(&[Tally::new(&member)], None);
        let known = member.samples.iter().filter(|s| s.found.iter().all(|p| *p != Presence::Unknown));
        let all = known.clone().count() as f64;
        let both = known.filter(|s| s.found == [Presence::Present; 3]).count() as f64;
        let found = numbers.patterns[0].iter().find(|(pattern, _)| *pattern == 0b111).map_or(0.0, |(_, s)| *s);
        let expected = if all > 0.0 { both / all } else { 0.0 };
        prop_assert!((found - expected).abs() < 1e-12);
    }
}

#[test]
fn the_same_seed_gives_the_same_intervals() {
    let members = [observed(&[("++", 30), ("+-", 30)]), observed(&[("++", 10), ("-+", 50)])];
    let with = |seed| estimate(&members, &EstimateParams { seed, ..EstimateParams::default() });
    assert_eq!(with(3), with(3));
    assert_ne!(with(3), with(4));
}
