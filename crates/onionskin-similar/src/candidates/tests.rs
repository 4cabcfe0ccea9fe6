use std::collections::{BTreeMap, BTreeSet};

use super::*;
use onionskin_store::MemoryBudget;
use proptest::prelude::*;

fn resources(dir: &tempfile::TempDir, memory: u64) -> Resources {
    Resources { memory: MemoryBudget::from_bytes(memory), threads: 1, work_dir: dir.path().to_owned() }
}

fn run(
    filter: FeatureFilter,
    documents: &[Vec<u64>],
    memory: u64,
) -> (BTreeSet<(DocId, DocId)>, CandidateStats) {
    run_among(filter, documents, memory, |_| None)
}

fn run_among(
    filter: FeatureFilter,
    documents: &[Vec<u64>],
    memory: u64,
    shared: impl FnOnce(&Resources) -> Option<SharedFeatures>,
) -> (BTreeSet<(DocId, DocId)>, CandidateStats) {
    let dir = tempfile::tempdir().unwrap();
    let resources = resources(&dir, memory);
    let mut join = FeatureJoin::new(filter, &resources).unwrap().among(shared(&resources));
    for (doc, features) in documents.iter().enumerate() {
        join.push(DocId::at(doc), features).unwrap();
    }
    let mut found = BTreeSet::new();
    let mut candidate = |a: DocId, b: DocId| {
        if a != b {
            found.insert((a.min(b), a.max(b)));
        }
        Ok(())
    };
    let mut crowds = 0;
    let mut crowd = |_| {
        crowds += 1;
        Ok(())
    };
    let stats = join.finish(&mut candidate, &mut crowd).unwrap();
    assert_eq!(crowds, stats.crowded_buckets);
    (found, stats)
}

fn naive(filter: FeatureFilter, documents: &[Vec<u64>]) -> BTreeSet<(DocId, DocId)> {
    let mut found = BTreeSet::new();
    for a in 0..documents.len() {
        for b in a + 1..documents.len() {
            let shared = documents[a].iter().zip(&documents[b]).filter(|(x, y)| x == y).count();
            if shared >= filter.r() {
                found.insert((DocId::at(a), DocId::at(b)));
            }
        }
    }
    found
}

/// The number of the feature mixed in, as it is in real ones.
fn distinct(documents: Vec<Vec<u64>>) -> Vec<Vec<u64>> {
    documents
        .into_iter()
        .map(|row| row.into_iter().enumerate().map(|(i, f)| f * 1000 + i as u64).collect())
        .collect()
}

fn filters() -> impl Strategy<Value = FeatureFilter> {
    // 12 over 6 is beyond what becomes super-features, so pairs are counted.
    prop_oneof![Just((6, 2, 1)), Just((6, 14, 2)), Just((6, 14, 3)), Just((12, 2, 6)), Just((3, 1, 3))]
        .prop_map(|(k, s, r)| FeatureFilter::new(k, s, r).unwrap())
}

#[test]
fn features_of_one_document_are_let_alone_and_others_never() {
    let dir = tempfile::tempdir().unwrap();
    let mut rng = onionskin_core::SplitMix64::new(5);
    let mut shared = SharedFeatures::new(20_000, &resources(&dir, 1 << 20)).unwrap();
    let (single, double): (Vec<u64>, Vec<u64>) =
        (0..10_000).map(|_| (rng.next_u64(), rng.next_u64())).unzip();
    [&single, &double, &double].into_iter().for_each(|features| shared.count(features));
    assert!(double.iter().all(|feature| shared.may_be_shared(*feature)));
    let mistaken = single.iter().filter(|feature| shared.may_be_shared(**feature)).count();
    assert!(mistaken < 1_500, "{mistaken} of 10000");
    // More features than counters that fit.
    assert!(SharedFeatures::new(1 << 30, &resources(&dir, 1 << 20)).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn small_buckets_give_exactly_those_that_share_r(
        (filter, documents) in filters().prop_flat_map(|filter| {
            (Just(filter), prop::collection::vec(prop::collection::vec(0u64..4, filter.k()), 0..28))
        }),
        tight: bool,
    ) {
        let documents = distinct(documents);
        let (found, _) = run(filter, &documents, if tight { 2 << 10 } else { 16 << 20 });
        prop_assert_eq!(found, naive(filter, &documents));
    }

    /// Buckets of up to all documents, which are no crowds as long as the work is bounded.
    #[test]
    fn large_buckets_give_exactly_those_that_share_r(
        (filter, documents) in filters().prop_flat_map(|filter| {
            (Just(filter), prop::collection::vec(prop::collection::vec(0u64..2, filter.k()), 30..90))
        }),
        tight: bool,
    ) {
        let documents = distinct(documents);
        let (found, stats) = run(filter, &documents, if tight { 64 << 10 } else { 16 << 20 });
        prop_assert_eq!(found, naive(filter, &documents));
        prop_assert_eq!(stats.crowded_buckets, 0);
    }

    #[test]
    fn the_limit_is_the_largest_that_fits(
        sizes in prop::collection::btree_map(CROWD + 1..3_000, 1u64..40, 0..12),
        pairs in 0u64..2_000_000,
        documents in 0u64..40_000,
    ) {
        let bound = (documents * PAIRS_PER_DOCUMENT).max(LEAST_PAIRS);
        let up_to = |limit: u64| -> u64 {
            let fit = sizes.iter().filter(|(size, _)| **size <= limit);
            pairs + fit.map(|(size, buckets)| size * (size - 1) / 2 * buckets).sum::<u64>()
        };
        let naive = sizes.keys().copied().filter(|size| up_to(*size) <= bound).max().unwrap_or(CROWD);
        prop_assert_eq!(crowd_limit(&sizes, pairs, documents), naive);
    }

    /// Crowded buckets too: counting first changes nothing but the work.
    #[test]
    fn counting_first_changes_nothing(
        (filter, documents) in filters().prop_flat_map(|filter| {
            (Just(filter), prop::collection::vec(prop::collection::vec(0u64..7, filter.k()), 0..150))
        }),
        tight: bool,
    ) {
        let documents = distinct(documents);
        let memory = if tight { 64 << 10 } else { 16 << 20 };
        let (expected, before) = run(filter, &documents, memory);
        let (found, after) = run_among(filter, &documents, memory, |resources| {
            let mut shared = SharedFeatures::new((documents.len() * filter.k()) as u64, resources).unwrap();
            documents.iter().for_each(|features| shared.count(features));
            Some(shared)
        });
        prop_assert_eq!(found, expected);
        prop_assert_eq!(
            (after.documents, after.buckets, after.crowded_buckets, after.largest_bucket),
            (before.documents, before.buckets, before.crowded_buckets, before.largest_bucket)
        );
    }
}

#[test]
fn a_crowd_is_joined_with_linear_work() {
    for (k, s, r) in [(6, 14, 2), (10, 8, 1), (12, 2, 6)] {
        let filter = FeatureFilter::new(k, s, r).unwrap();
        let n = 20_000;
        // One crowd of near copies, each with one feature of its own, and as many documents that
        // share nothing.
        let mut documents: Vec<Vec<u64>> = (0..n)
            .map(|doc| {
                (0..u64::from(k)).map(|i| if doc % u64::from(k) == i { 1_000_000 + doc } else { i }).collect()
            })
            .collect();
        documents.extend(
            (n..2 * n).map(|doc| (0..u64::from(k)).map(|i| 2_000_000 + doc * 100 + i).collect::<Vec<u64>>()),
        );
        let (found, stats) = run(filter, &documents, 16 << 20);
        assert!(stats.crowded_buckets > 0 && stats.largest_bucket > n / 4, "{stats:?}");
        assert!(found.len() < 150 * n as usize, "{} pairs", found.len());
        let mut smallest: BTreeMap<DocId, DocId> = BTreeMap::new();
        for (a, b) in &found {
            assert!(u64::from(*b) < n);
            let known = smallest.entry(*b).or_insert(*a);
            *known = (*known).min(*a);
        }
        // Everybody is paired with somebody before: the crowd is one component.
        assert_eq!(smallest.len() as u64, n - 1);
    }
}

#[test]
fn combinations_are_counted() {
    assert_eq!([combinations(6, 2), combinations(12, 6)], [15, 924]);
    assert!(combinations(255, 128) > MOST_SUPER_FEATURES);
    let mut seen = BTreeSet::new();
    for_combinations(&[1, 2, 3, 4, 5, 6], 2, |hash, _| {
        seen.insert(hash);
        Ok(())
    })
    .unwrap();
    assert_eq!(seen.len(), 15);
}
