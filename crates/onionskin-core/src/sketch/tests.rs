use proptest::prelude::*;

use super::*;

/// Two sets of random fingerprints with `shared` in common and `own` more on each side.
pub(super) fn pair(shared: usize, own: usize, rng: &mut SplitMix64) -> (Vec<u64>, Vec<u64>) {
    let common: Vec<u64> = (0..shared).map(|_| rng.next_u64()).collect();
    let mut side = || common.iter().copied().chain((0..own).map(|_| rng.next_u64())).collect::<Vec<_>>();
    (side(), side())
}

/// Computed by an independent program from the definitions.
#[test]
fn frozen() {
    let mut permutations = Permutations::new(4, 1);
    assert_eq!(permutations.sketch(&[1, 2, 3]), [0x0d27_a3d1, 0x7988_e989, 0x1f5c_bcf9, 0x668e_a1f8]);
    let mut bottom = vec![];
    bottom_sketch(&[1, 2, 3], 4, 1, &mut bottom);
    assert_eq!(bottom, [0x081a_5c13, 0x5c52_bd40, 0xdec1_469c, NO_MEMBER]);
}

/// Ten thousand pairs: the mean error within four standard errors of nothing, the spread that of
/// the binomial.
#[test]
fn estimates_over_ten_thousand_pairs_lie_within_theory() {
    let pairs = 10_000;
    let t = 84;
    for (shared, own) in [(5, 95), (50, 50), (90, 5), (19, 1)] {
        let truth = shared as f64 / (shared + 2 * own) as f64;
        let seed = 0x5eed + shared as u64;
        let mut rng = SplitMix64::new(seed);
        let mut permutations = Permutations::new(t, seed);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..pairs {
            let (a, b) = pair(shared, own, &mut rng);
            let sketch = permutations.sketch(&a).to_vec();
            let error = estimate_resemblance(&sketch, permutations.sketch(&b)).value - truth;
            sum += error;
            squares += error * error;
        }
        let n = f64::from(pairs);
        let theory = standard_error(truth, t);
        let mean = sum / n;
        assert!(
            mean.abs() < 4.0 * theory / n.sqrt(),
            "seed {seed}: mean error {mean} of resemblance {truth}"
        );
        let spread = (squares / n).sqrt() / theory;
        // The standard deviation of n values is known to within 1/√(2n) of itself; a little is left
        // for the permutations, which are the same for all pairs.
        assert!(
            (spread - 1.0).abs() < 0.05,
            "seed {seed}: spread {spread} times theory at resemblance {truth}"
        );
    }
}

/// Every fixed pair of sets over many seeds: the permutations themselves are fair.
#[test]
fn permutations_are_fair_to_structured_fingerprints() {
    let a: Vec<u64> = (0..60).collect();
    let b: Vec<u64> = (30..90).collect();
    let truth = 30.0 / 90.0;
    let (seeds, t) = (4_000, 16);
    let mut agreeing = 0.0;
    for seed in 0..seeds {
        let mut permutations = Permutations::new(t, seed);
        let sketch = permutations.sketch(&a).to_vec();
        agreeing += estimate_resemblance(&sketch, permutations.sketch(&b)).value;
    }
    let mean = agreeing / seeds as f64;
    assert!((mean - truth).abs() < 4.0 * standard_error(truth, t * seeds as usize), "{mean} against {truth}");
}

#[test]
fn bottom_estimates_lie_within_theory() {
    let (pairs, t) = (4_000, 64);
    for (shared, own) in [(50, 100), (180, 20)] {
        let truth = f64::from(shared) / f64::from(shared + 2 * own);
        let mut rng = SplitMix64::new(7);
        let mut sum = 0.0;
        let (mut x, mut y) = (vec![], vec![]);
        for seed in 0..pairs {
            let (a, b) = pair(shared as usize, own as usize, &mut rng);
            bottom_sketch(&a, t, seed, &mut x);
            bottom_sketch(&b, t, seed, &mut y);
            sum += estimate_resemblance_from_bottom(&x, &y).value;
        }
        let mean = sum / pairs as f64;
        assert!(
            (mean - truth).abs() < 4.0 * standard_error(truth, t * pairs as usize),
            "{mean} against {truth}"
        );
    }
}

#[test]
fn short_sets_have_exact_bottom_estimates() {
    let (mut x, mut y) = (vec![], vec![]);
    bottom_sketch(&[1, 2, 3], 8, 5, &mut x);
    bottom_sketch(&[2, 3, 4, 4], 8, 5, &mut y);
    assert_eq!(estimate_resemblance_from_bottom(&x, &y).value, 0.5);
    bottom_sketch(&[], 8, 5, &mut y);
    assert_eq!(estimate_resemblance_from_bottom(&x, &y).value, 0.0);
}

#[test]
fn containment_follows_from_resemblance_and_sizes() {
    // A of 50 inside B of 100: resemblance one half, containment of A all, of B half.
    let half = Estimate { value: 0.5, standard_error: 0.0 };
    assert_eq!(containment(half, 50, 100).value, 1.0);
    assert_eq!(containment(half, 100, 50).value, 0.5);
    assert_eq!(containment(half, 0, 50).value, 0.0);
}

proptest! {
    #[test]
    fn a_sketch_equals_its_slow_twin(set in prop::collection::vec(any::<u64>(), 0..60), t in 1usize..150, seed: u64) {
        let mut permutations = Permutations::new(t, seed);
        let slow = permutations.sketch_trivial_but_slow(&set);
        prop_assert_eq!(permutations.sketch(&set), slow);
    }

    #[test]
    fn fewer_permutations_are_a_prefix(set in prop::collection::vec(any::<u64>(), 1..20), t in 1usize..100, more in 0usize..50, seed: u64) {
        let short = Permutations::new(t, seed).sketch(&set).to_vec();
        let mut long = Permutations::new(t + more, seed);
        prop_assert_eq!(&long.sketch(&set)[..t], &short[..]);
    }

    #[test]
    fn estimates_are_symmetric(a in prop::collection::vec(0u64..50, 0..30), b in prop::collection::vec(0u64..50, 0..30)) {
        let (mut x, mut y) = (vec![], vec![]);
        bottom_sketch(&a, 64, 3, &mut x);
        bottom_sketch(&b, 64, 3, &mut y);
        let bottom = estimate_resemblance_from_bottom(&x, &y);
        prop_assert_eq!(bottom, estimate_resemblance_from_bottom(&y, &x));
        // Sixty-four places hold both sets whole, so the estimate is the truth.
        prop_assert!((bottom.value - resemblance_trivial_but_slow(&a, &b)).abs() < 1e-12);
    }
}
