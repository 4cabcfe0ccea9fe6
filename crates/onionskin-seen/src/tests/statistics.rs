//! Broder's figures for [6, 14, 2], measured through the index.

use onionskin_core::feature::FeatureMaker;
use onionskin_core::{FeatureFilter, SplitMix64};

use crate::Seen;
use crate::testing::{Text, fast_dir, options, params};

/// Pairs whose minima agree with probability ρ, as those of documents of resemblance ρ do.
#[test]
fn pairs_of_known_resemblance_are_accepted_as_often_as_the_curve_says() {
    let filter = FeatureFilter::new(6, 14, 2).unwrap();
    let pairs: u64 = if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 200_000 } else { 4_000 };
    for (seed, resemblance) in [(1, 0.77), (2, 0.9), (3, 0.95), (4, 0.975), (5, 0.998)] {
        let mut rng = SplitMix64::new(seed);
        let mut maker = FeatureMaker::new(filter);
        let dir = fast_dir();
        let mut seen =
            Seen::create(&dir.path().join("seen"), params("w4-rabin64-6x14r2", false), options(1_000))
                .unwrap();
        let mut others = Vec::new();
        for pair in 0..pairs {
            let sketch: Vec<u32> = (0..84).map(|_| rng.next_u32()).collect();
            let agree = (resemblance * 2f64.powi(53)) as u64;
            let other: Vec<u32> = sketch
                .iter()
                .map(|min| if rng.next_u64() >> 11 < agree { *min } else { rng.next_u32() })
                .collect();
            let text =
                Text { fp: rng.next_u64(), features: maker.features(&sketch).to_vec(), sketch: vec![] };
            seen.add_if_new(&text.document(pair, "")).unwrap();
            others.push(Text {
                fp: rng.next_u64(),
                features: maker.features(&other).to_vec(),
                sketch: vec![],
            });
            if pair % 500 == 0 {
                seen.commit().unwrap();
            }
        }
        assert_eq!(seen.stats().documents, pairs, "two that have nothing in common were taken for copies");
        let mut accepted = 0u64;
        for (pair, other) in (0..).zip(&others) {
            if let Some(answer) = seen.check(&other.probe()).unwrap() {
                assert_eq!(answer.key, pair, "seed {seed}");
                assert!(!answer.exact && answer.shared >= 2);
                accepted += 1;
            }
        }
        let expected = filter.acceptance(resemblance);
        let error = (expected * (1.0 - expected) / pairs as f64).sqrt();
        let share = accepted as f64 / pairs as f64;
        assert!(
            (share - expected).abs() <= 4.0 * error + 1e-9,
            "seed {seed}, resemblance {resemblance}: {share} accepted, the curve says {expected} ± {error}"
        );
    }
}
