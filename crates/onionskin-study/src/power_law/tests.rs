use super::*;
use onionskin_core::SplitMix64;
use std::collections::BTreeMap;
use std::f64::consts::PI;

/// Exact samples without a zeta function: a Pareto variable, rounded down, is kept as often as its
/// size is rarer there than it should be.
fn sample(n: usize, exponent: f64, least: u64, seed: u64) -> Vec<(u64, u64)> {
    let mut rng = SplitMix64::new(seed);
    let mut uniform = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let ratio = |x: f64| x.powf(-exponent) / (x.powf(1.0 - exponent) - (x + 1.0).powf(1.0 - exponent));
    let most = ratio(least as f64);
    let mut counts = BTreeMap::new();
    let mut kept = 0;
    while kept < n {
        let x = (least as f64 * (1.0 - uniform()).powf(-1.0 / (exponent - 1.0))).floor();
        // Where the difference of neighbours drowns in rounding, the ratio is 1 / (exponent − 1).
        let ratio = if x > 1e6 { 1.0 / (exponent - 1.0) } else { ratio(x) };
        if uniform() * most < ratio {
            *counts.entry(x as u64).or_insert(0) += 1;
            kept += 1;
        }
    }
    counts.into_iter().collect()
}

#[test]
fn hurwitz_zeta_has_its_known_values() {
    let two = PI * PI / 6.0;
    for (s, q, value) in [
        (2.0, 1, two),
        (2.0, 2, two - 1.0),
        (2.0, 5, two - 1.0 - 0.25 - 1.0 / 9.0 - 1.0 / 16.0),
        (3.0, 1, 1.202_056_903_159_594_3),
        (4.0, 1, PI.powi(4) / 90.0),
        (1.5, 1, 2.612_375_348_685_488),
        (10.0, 1, PI.powi(10) / 93_555.0),
        (1.1, 1, 10.584_448_464_950_801),
    ] {
        let found = hurwitz_zeta(s, q);
        assert!((found / value - 1.0).abs() < 1e-13, "zeta({s}, {q}) is {value}, not {found}");
    }
}

#[test]
fn hurwitz_zeta_equals_its_sum() {
    // For exponents so large that the sum ends soon.
    for s in [6.5, 20.0, 99.0] {
        for q in [1u64, 2, 7, 40, 1_000] {
            let sum: f64 = (0..200_000u64).rev().map(|k| (1.0 + k as f64 / q as f64).powf(-s)).sum();
            assert!((ln_scaled_zeta(s, q).exp() / sum - 1.0).abs() < 1e-10, "s {s}, q {q}");
        }
    }
}

#[test]
fn exponents_are_recovered_within_four_standard_errors() {
    let repetitions = if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 100 } else { 10 };
    for exponent in [1.5, 2.0, 2.5, 3.2, 4.0] {
        for least in [2, 5] {
            let (mut off, n) = (0.0, 2_000);
            for seed in 0..repetitions {
                let law = fit(&sample(n, exponent, least, seed), least).unwrap();
                let errors = (law.exponent - exponent) / law.standard_error;
                assert!(errors.abs() < 4.0, "{exponent} from {least}, seed {seed}: {law:?}");
                // 1.95 / √n is passed once in a thousand when nothing is fitted, less often when
                // something is.
                assert!(law.ks < 1.95 / (n as f64).sqrt(), "{exponent} from {least}, seed {seed}: {law:?}");
                assert_eq!((law.tail, law.least), (n as u64, least));
                off += errors * errors;
            }
            // The standard error is one: the mean square of what it is off by is 1.
            let (mean, deviation) = (off / repetitions as f64, (2.0 / repetitions as f64).sqrt());
            assert!((mean - 1.0).abs() < 4.0 * deviation, "{exponent} from {least}: {mean}");
        }
    }
}

#[test]
fn a_fit_is_the_likeliest_exponent() {
    let sizes = sample(500, 2.3, 2, 9);
    let law = fit(&sizes, 2).unwrap();
    let likelihood = |exponent: f64| -> f64 {
        let each = hurwitz_zeta(exponent, 2).ln();
        sizes.iter().map(|(size, count)| -(*count as f64) * (exponent * (*size as f64).ln() + each)).sum()
    };
    for other in [-0.5, -0.01, 0.01, 0.5] {
        assert!(likelihood(law.exponent) > likelihood(law.exponent + other));
    }
    let total: f64 = (2..200).map(|size| law.share(size)).sum();
    assert!((total + law.share_from(200) - 1.0).abs() < 1e-12);
    assert_eq!((law.share(1), law.share_from(2)), (0.0, 1.0));
}

#[test]
fn only_the_tail_counts_and_order_does_not() {
    let sizes = sample(1_000, 2.5, 5, 4);
    let mut more: Vec<(u64, u64)> = sizes.iter().rev().copied().collect();
    more.extend([(2, 77), (3, 1), (9_999, 0)]);
    assert_eq!(fit(&sizes, 5), fit(&more, 5));
    assert!(fit(&more, 2).unwrap().ks > fit(&more, 5).unwrap().ks);
}

#[test]
fn what_has_no_tail_has_no_exponent() {
    assert_eq!(fit(&[], 2), None);
    assert_eq!(fit(&[(2, 5), (3, 4)], 2), None);
    assert_eq!(fit(&[(7, 1_000)], 2), None);
    assert_eq!(fit(&[(2, 1_000), (5, 3)], 3), None);
    // One of a thousand and one, a thousand of a thousand: far steeper than any tail.
    assert_eq!(fit(&[(1_000, 1_000), (1_001, 1)], 1_000), None);
    // As large as numbers are.
    assert!(fit(&[(2, 20), (u64::MAX, 5)], 2).is_some_and(|law| law.exponent > 1.0 && law.ks.is_finite()));
    assert!(fit(&[(1, 20), (3, 5)], 0).is_some_and(|law| law.least == 1));
}
