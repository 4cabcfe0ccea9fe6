use proptest::prelude::*;

use super::*;
use crate::mix::SplitMix64;
use crate::sketch::Permutations;

fn filter(k: u32, s: u32, r: u32) -> FeatureFilter {
    FeatureFilter::new(k, s, r).unwrap()
}

/// Broder 2000, sections 1 and 4. The prose rounds: 0.0107 is printed as "less than 0.01".
#[test]
fn the_numbers_of_the_paper() {
    let broder = filter(6, 14, 2);
    assert_eq!(broder.bytes_per_document(), 48);
    assert!((broder.miss(0.975) - 0.0107).abs() < 0.00005, "{}", broder.miss(0.975));
    assert!(broder.miss(0.99) < 0.00022, "{}", broder.miss(0.99));
    assert!(broder.acceptance(0.77) < 0.01, "{}", broder.acceptance(0.77));
    assert!(broder.acceptance(0.5) < 0.6e-7, "{}", broder.acceptance(0.5));
    assert!((broder.half_point() - 0.909).abs() < 0.001, "{}", broder.half_point());
    assert!((broder.acceptance(broder.resemblance_at(0.01)) - 0.01).abs() < 1e-9);
    assert!((broder.steepest_resemblance() - 0.931).abs() < 0.001);
    assert!((FeatureFilter::steepest_s(0.931) - 14.0).abs() < 0.05);
}

#[test]
fn acceptance_at_the_ends() {
    assert_eq!(filter(6, 14, 2).acceptance(0.0), 0.0);
    assert_eq!(filter(6, 14, 2).acceptance(1.0), 1.0);
    assert_eq!(filter(6, 14, 2).miss(1.0), 0.0);
    assert!((filter(1, 1, 1).acceptance(0.3) - 0.3).abs() < 1e-12);
}

#[test]
fn a_chosen_filter_meets_its_target_and_no_smaller_one_does() {
    let target = Target { threshold: 0.9, miss: 0.01, far: 0.6, false_accept: 0.01 };
    let chosen = choose(target).unwrap();
    assert!(chosen.miss(0.9) <= 0.01 && chosen.acceptance(0.6) <= 0.01, "{chosen}");
    for k in 1..chosen.k() as u32 {
        for s in 1..=255 {
            for r in 1..=k.min(3) {
                let Ok(smaller) = FeatureFilter::new(k, s, r) else { continue };
                assert!(smaller.miss(0.9) > 0.01 || smaller.acceptance(0.6) > 0.01, "{smaller} would do");
            }
        }
    }
    assert!(chosen.r() <= 3, "{chosen}");
    // Where three do not suffice, more are better than none.
    let sharp = choose(Target { threshold: 0.8, miss: 0.01, far: 0.6, false_accept: 0.01 }).unwrap();
    assert!(sharp.r() > 3 && sharp.miss(0.8) <= 0.01 && sharp.acceptance(0.6) <= 0.01, "{sharp}");
    assert!(matches!(choose(Target { far: 0.95, ..target }), Err(PlanError::Target { .. })));
    let sharp = Target { threshold: 0.9, miss: 1e-9, far: 0.899, false_accept: 1e-9 };
    assert_eq!(choose(sharp), Err(PlanError::TooSharp { most: 64 }));
}

#[test]
fn nonsense_is_refused() {
    for bad in
        ["", "6x14", "6x14r", "x14r2", "6x14r7", "0x14r0", "06x14r2", "6x300r2", "255x255r1", "6 x14r2"]
    {
        assert!(bad.parse::<FeatureFilter>().is_err(), "{bad}");
    }
}

/// Computed by an independent program from the definitions.
#[test]
fn frozen() {
    let sketch: Vec<u32> = (0..84).collect();
    let features = FeatureMaker::new(filter(6, 14, 2)).features(&sketch).to_vec();
    assert_eq!(features.len(), 6);
    assert_eq!(features[0], 0xeeb0_6f79_f47f_10f3);
    assert_eq!(features[5], 0x34dc_54b6_fec3_ca99);
}

/// Equal minima in different groups are different features.
#[test]
fn the_number_of_the_group_counts() {
    let features = FeatureMaker::new(filter(6, 14, 2)).features(&[7; 84]).to_vec();
    let distinct: std::collections::BTreeSet<_> = features.iter().collect();
    assert_eq!(distinct.len(), 6);
}

/// The whole chain on pairs of known resemblance: P(6,14,2) within four standard errors.
#[test]
fn measured_acceptance_follows_the_formula() {
    let broder = filter(6, 14, 2);
    let pairs = 3_000;
    for (shared, own) in [(77, 11), (90, 5), (39, 1), (96, 2)] {
        let resemblance = f64::from(shared) / f64::from(shared + 2 * own);
        let mut rng = SplitMix64::new(99);
        let mut accepted = 0;
        for seed in 0..pairs {
            let common: Vec<u64> = (0..shared).map(|_| rng.next_u64()).collect();
            let mut side =
                || common.iter().copied().chain((0..own).map(|_| rng.next_u64())).collect::<Vec<_>>();
            let (a, b) = (side(), side());
            let mut permutations = Permutations::new(broder.permutations(), seed);
            let mut maker = FeatureMaker::new(broder);
            let first = maker.features(permutations.sketch(&a)).to_vec();
            let second = maker.features(permutations.sketch(&b));
            let agreeing = first.iter().zip(second).filter(|(x, y)| x == y).count();
            accepted += i32::from(agreeing >= broder.r());
        }
        let measured = f64::from(accepted) / pairs as f64;
        let theory = broder.acceptance(resemblance);
        let tolerance = 4.0 * (theory * (1.0 - theory) / pairs as f64).sqrt().max(1.0 / pairs as f64);
        assert!((measured - theory).abs() < tolerance, "{measured} against {theory} at {resemblance}");
    }
}

proptest! {
    #[test]
    fn spelling_round_trips(k in 1u32..64, s in 1u32..64, r in 1u32..64) {
        prop_assume!(r <= k);
        let filter = FeatureFilter::new(k, s, r).unwrap();
        prop_assert_eq!(filter.to_string().parse(), Ok(filter));
    }

    #[test]
    fn acceptance_and_miss_are_one(k in 1u32..40, s in 1u32..40, r in 1u32..40, resemblance in 0.0f64..=1.0) {
        prop_assume!(r <= k);
        let filter = FeatureFilter::new(k, s, r).unwrap();
        prop_assert!((filter.acceptance(resemblance) + filter.miss(resemblance) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn more_groups_never_lower_acceptance(k in 1u32..40, s in 1u32..30, r in 1u32..40, resemblance in 0.0f64..=1.0) {
        prop_assume!(r <= k);
        let fewer = FeatureFilter::new(k, s, r).unwrap().acceptance(resemblance);
        let more = FeatureFilter::new(k + 1, s, r).unwrap().acceptance(resemblance);
        prop_assert!(more >= fewer - 1e-12);
    }
}
