use proptest::prelude::*;

use super::*;
use crate::feature::{FeatureFilter, FeatureMaker};
use crate::sketch::tests::pair;
use crate::sketch::{estimate_resemblance, standard_error};

/// Computed by an independent program from the definitions.
#[test]
fn frozen() {
    let mut permutation = OnePermutation::new(8, 1);
    assert_eq!(
        permutation.sketch(&[1, 2, 3]),
        [
            0x40d2_e09b,
            0x869b_2208,
            0xe295_ea07,
            0x6261_1240,
            0x40d2_e09b,
            0x3d8e_9aa8,
            0xf60a_34e9,
            0x6261_1240
        ]
    );
    let many: Vec<u64> = (0..1000).collect();
    assert_eq!(
        permutation.sketch(&many),
        [
            0x004a_3a3d,
            0xea8a_6e98,
            0x0013_23a8,
            0x8a51_c328,
            0x0048_fbea,
            0xce2e_cf90,
            0x00ea_01a0,
            0xc1eb_bba0
        ]
    );
    let mut wide = OnePermutation::new(300, 7);
    assert_eq!(wide.sketch(&[5])[298..], [0x0202_66cd, 0x6d8f_c860]);
}

#[test]
fn documents_of_one_shingle_differ_in_every_feature() {
    let filter: FeatureFilter = "16x5r1".parse().unwrap();
    let (mut permutation, mut maker) = (OnePermutation::new(80, 1), FeatureMaker::new(filter));
    let mut features = |fingerprint: u64| maker.features(permutation.sketch(&[fingerprint])).to_vec();
    let (one, two) = (features(1), features(2));
    assert!(one.iter().zip(&two).all(|(a, b)| a != b));
}

#[test]
fn an_empty_set_has_no_minima() {
    assert_eq!(OnePermutation::new(3, 1).sketch(&[]), [u32::MAX; 3]);
}

/// Sets from a handful of shingles, where nearly all bins borrow, to many in every bin.
const SETS: [(usize, usize); 9] =
    [(1, 1), (3, 1), (8, 1), (8, 4), (36, 8), (90, 10), (40, 40), (400, 40), (900, 300)];

/// Pairs of all sizes: the estimate is unbiased, and hardly more spread than that of independent
/// permutations.
#[test]
fn estimates_are_unbiased_for_sets_of_every_size() {
    let (pairs, t) = (10_000, 80);
    for (shared, own) in SETS {
        let truth = shared as f64 / (shared + 2 * own) as f64;
        let seed = 0x5eed + shared as u64;
        let mut rng = SplitMix64::new(seed);
        let (mut sum, mut squares) = (0.0, 0.0);
        for i in 0..pairs {
            let mut permutation = OnePermutation::new(t, seed + i);
            let (a, b) = pair(shared, own, &mut rng);
            let sketch = permutation.sketch(&a).to_vec();
            let error = estimate_resemblance(&sketch, permutation.sketch(&b)).value - truth;
            sum += error;
            squares += error * error;
        }
        let n = pairs as f64;
        let (mean, spread) = (sum / n, (squares / n).sqrt());
        assert!(
            mean.abs() < 4.0 * spread / n.sqrt(),
            "seed {seed}: mean error {mean} of resemblance {truth}"
        );
        // Where there are fewer shingles than bins, some lend to more of them than others.
        let allowed = if shared + 2 * own < t { 1.4 } else { 1.1 };
        let theory = standard_error(truth, t);
        assert!(spread < allowed * theory, "seed {seed}: spread {spread} against {theory} of {truth}");
    }
}

/// Every fixed pair of sets over many seeds: the permutation itself is fair.
#[test]
fn the_permutation_is_fair_to_structured_fingerprints() {
    for (stride, t) in [(1, 16), (1 << 32, 16), (0x1_0001, 80), (1 << 57, 16)] {
        let a: Vec<u64> = (0..60u64).map(|i| i.wrapping_mul(stride)).collect();
        let b: Vec<u64> = (30..90u64).map(|i| i.wrapping_mul(stride)).collect();
        let (seeds, truth) = (4_000, 30.0 / 90.0);
        let mut agreeing = 0.0;
        for seed in 0..seeds {
            let mut permutation = OnePermutation::new(t, seed);
            let sketch = permutation.sketch(&a).to_vec();
            agreeing += estimate_resemblance(&sketch, permutation.sketch(&b)).value;
        }
        let mean = agreeing / seeds as f64;
        let allowed = 4.0 * standard_error(truth, t * seeds as usize);
        assert!((mean - truth).abs() < allowed, "{mean} against {truth}, stride {stride:#x}");
    }
}

/// The share of pairs that meet follows the curve of the filter, small sets included.
#[test]
fn features_follow_the_curve_of_the_filter() {
    let pairs = 6_000;
    for filter in ["16x5r1", "6x14r2", "10x8r1"] {
        let filter: FeatureFilter = filter.parse().unwrap();
        let mut maker = FeatureMaker::new(filter);
        for (shared, own) in SETS {
            let resemblance = shared as f64 / (shared + 2 * own) as f64;
            let mut rng = SplitMix64::new(77 + shared as u64);
            let mut accepted = 0;
            for seed in 0..pairs {
                let (a, b) = pair(shared, own, &mut rng);
                let mut meets = |first: &[u32], second: &[u32]| {
                    let first = maker.features(first).to_vec();
                    let agreeing = first.iter().zip(maker.features(second)).filter(|(x, y)| x == y).count();
                    u32::from(agreeing >= filter.r())
                };
                let mut permutation = OnePermutation::new(filter.permutations(), seed);
                let first = permutation.sketch(&a).to_vec();
                accepted += meets(&first, permutation.sketch(&b));
            }
            let measured = f64::from(accepted) / pairs as f64;
            let theory = filter.acceptance(resemblance);
            let sigma = (theory * (1.0 - theory) / pairs as f64).sqrt().max(1.0 / pairs as f64);
            // Where there are fewer shingles than minima, these are no longer independent. That
            // moves the curve a little.
            let allowed = 4.0 * sigma + if shared + 2 * own < 80 { 0.025 } else { 0.0 };
            assert!(
                (measured - theory).abs() < allowed,
                "{filter}, {shared} shared and {own} own: {measured} against {theory}"
            );
        }
    }
}

proptest! {
    #[test]
    fn a_sketch_equals_its_slow_twin(set in prop::collection::vec(any::<u64>(), 0..60), t in 1usize..200, seed: u64) {
        let mut permutation = OnePermutation::new(t, seed);
        // A used buffer must not show through.
        permutation.sketch(&[1, 2, 3, 4]);
        let slow = permutation.sketch_trivial_but_slow(&set);
        prop_assert_eq!(permutation.sketch(&set), slow);
    }

    #[test]
    fn order_and_repeats_do_not_matter(set in prop::collection::vec(0u64..40, 0..60), t in 1usize..100, seed: u64) {
        let mut permutation = OnePermutation::new(t, seed);
        let sketch = permutation.sketch(&set).to_vec();
        let mut sorted = set;
        sorted.sort_unstable();
        sorted.dedup();
        prop_assert_eq!(permutation.sketch(&sorted), sketch);
    }
}
