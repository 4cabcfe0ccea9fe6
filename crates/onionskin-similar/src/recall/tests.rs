use std::collections::BTreeSet;

use super::*;
use onionskin_core::SplitMix64;
use onionskin_store::MemoryBudget;
use onionskin_testkit::naive::naive_pairs;
use proptest::prelude::*;

fn resources(dir: &tempfile::TempDir) -> Resources {
    Resources { memory: MemoryBudget::from_mib(16), threads: 1, work_dir: dir.path().to_owned() }
}

/// Clusters of edited copies in a sea of documents, and a chunk that all have.
fn web(n: u32, seed: u64) -> Vec<(DocId, Vec<u64>)> {
    let mut rng = SplitMix64::new(seed);
    (0..n)
        .map(|doc| {
            let base = u64::from(doc / 3) << 20;
            let edits = rng.next_u64() % 4;
            let mut set: Vec<u64> =
                (0..30).map(|i| base + if i < edits { 1000 + rng.next_u64() % 1000 } else { i }).collect();
            set.push(7);
            set.dedup();
            (DocId(doc), set)
        })
        .collect()
}

fn as_pairs(web: &[(DocId, Vec<u64>)], bound: Bound) -> Vec<SharedPair> {
    let sets: Vec<BTreeSet<u64>> = web.iter().map(|(_, set)| set.iter().copied().collect()).collect();
    let all = naive_pairs(&sets, 0.01).into_iter().map(|(a, b, _)| {
        let shared = sets[a].intersection(&sets[b]).count() as u32;
        SharedPair {
            a: DocId::at(a),
            b: DocId::at(b),
            shared,
            size_a: sets[a].len() as u32,
            size_b: sets[b].len() as u32,
        }
    });
    all.filter(|pair| bound.holds(pair.shared, pair.size_a, pair.size_b)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_sample_of_everything_counts_everything(seed: u64, lost in 1usize..5, percent in 60u32..95) {
        let dir = tempfile::tempdir().unwrap();
        // So few that a chunk which all have, and which by chance seems rare, leaves no neighbour
        // out.
        let n = MOST_NEIGHBOURS as u32;
        let web = web(n, seed);
        let bound = Bound::Resemblance(f64::from(percent) / 100.0);
        let all = as_pairs(&web, bound);
        let kept: Vec<SharedPair> = all.iter().enumerate().filter(|(i, _)| i % lost == 0).map(|(_, pair)| *pair).collect();
        let sets = ChunkSets::in_memory(web);
        let open = || -> Result<crate::cluster::Rows<'_, SharedPair>, SimilarError> { Ok(Box::new(kept.iter().map(|pair| Ok(*pair)))) };
        let recall = measure(&sets, n.into(), bound, seed, &open, &resources(&dir)).unwrap();
        prop_assert_eq!(recall.sampled, u64::from(n));
        // Every pair is seen from both of its ends.
        prop_assert_eq!(recall.true_pairs, 2 * all.len() as u64);
        prop_assert_eq!(recall.listed_pairs, 2 * kept.len() as u64);
        prop_assert_eq!(recall.checked_pairs, 2 * kept.len() as u64);
        if !all.is_empty() {
            let truth = kept.len() as f64 / all.len() as f64;
            let listed = recall.listed.unwrap();
            prop_assert!((listed.value - truth).abs() < 1e-9 && listed.low <= truth && truth <= listed.high);
            prop_assert!(recall.connected.unwrap().value >= listed.value);
            prop_assert_eq!(recall.precision.unwrap().value, 1.0);
        }
    }
}

#[test]
fn false_pairs_lower_the_precision() {
    let dir = tempfile::tempdir().unwrap();
    let web = web(300, 5);
    let bound = Bound::Resemblance(0.8);
    let mut listed = as_pairs(&web, bound);
    let truth = listed.len();
    listed.extend((0..truth as u32).map(|i| SharedPair {
        a: DocId(i / 199),
        b: DocId(100 + i % 199),
        shared: 1,
        size_a: 30,
        size_b: 30,
    }));
    listed.sort();
    assert!(listed.windows(2).all(|two| (two[0].a, two[0].b) != (two[1].a, two[1].b)));
    let sets = ChunkSets::in_memory(web);
    let open = || -> Result<crate::cluster::Rows<'_, SharedPair>, SimilarError> {
        Ok(Box::new(listed.iter().map(|pair| Ok(*pair))))
    };
    let recall = measure(&sets, 300, bound, 1, &open, &resources(&dir)).unwrap();
    assert_eq!((recall.listed.unwrap().value, recall.precision.unwrap().value), (1.0, 0.5));
}

#[test]
fn a_crowd_is_estimated_from_a_part() {
    let dir = tempfile::tempdir().unwrap();
    // All 4,000 are near copies of each other: eight million pairs. A third of the documents is
    // listed with the first.
    let web: Vec<(DocId, Vec<u64>)> =
        DocId::range(0..4000).map(|doc| (doc, (0..40).chain([1000 + u64::from(doc)]).collect())).collect();
    let bound = Bound::Resemblance(0.9);
    let listed: Vec<SharedPair> = DocId::range(1..4000)
        .step_by(3)
        .map(|b| SharedPair { a: DocId(0), b, shared: 40, size_a: 41, size_b: 41 })
        .collect();
    let sets = ChunkSets::in_memory(web);
    let open = || -> Result<crate::cluster::Rows<'_, SharedPair>, SimilarError> {
        Ok(Box::new(listed.iter().map(|pair| Ok(*pair))))
    };
    let recall = measure(&sets, 4000, bound, 1, &open, &resources(&dir)).unwrap();
    assert!(recall.true_pairs < 4000 * MOST_NEIGHBOURS as u64, "{recall:?}");
    // Two documents are connected when both are among the third: one pair in nine.
    let connected = recall.connected.unwrap();
    assert!((connected.value - 1.0 / 9.0).abs() < 0.02, "{connected:?}");
    assert!(connected.low <= 1.0 / 9.0 && 1.0 / 9.0 <= connected.high);
}

#[test]
fn intervals_of_known_values() {
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 5e-5, "{found} {expected}");
    // Clopper and Pearson 1934 for 8 of 10; the rule of three and its kin for all of 100; closed
    // forms for one missed of 527.
    let interval = Interval::of(0.8, 10.0).unwrap();
    near(interval.low, 0.44390);
    near(interval.high, 0.97479);
    let all = Interval::of(1.0, 100.0).unwrap();
    near(all.low, 0.025f64.powf(0.01));
    assert_eq!((all.value, all.high), (1.0, 1.0));
    near(Interval::of(526.0 / 527.0, 527.0).unwrap().high, 0.975f64.powf(1.0 / 527.0));
    near(Interval::of(0.0, 40.0).unwrap().high, 1.0 - 0.025f64.powf(1.0 / 40.0));
    assert_eq!(Interval::of(0.5, 0.0), None);
    // Gamma of whole numbers is a factorial.
    near(ln_gamma(10.0), 362_880f64.ln());
    near(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln());
}
