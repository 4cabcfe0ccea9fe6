use super::*;
use onionskin_store::MemoryBudget;
use proptest::prelude::*;

fn compare_labels(labels: &[(u64, u64)], memory: u64) -> ClusterScore {
    let folder = tempfile::tempdir().unwrap();
    let sort = SortParams::new(folder.path(), MemoryBudget::from_bytes(memory));
    let documents = labels.iter().zip(DocId::MIN.onward()).map(|((truth, found), doc)| (*truth, *found, doc));
    let mut spilled_bytes = 0;
    let score = compare(documents, &sort, 3, &mut spilled_bytes).unwrap();
    assert!(memory > 64 || labels.len() < 8 || spilled_bytes > 0);
    score
}

/// By the definition, over all pairs: the adjusted Rand index from the four counts of agreement.
fn naive_adjusted_rand_index(labels: &[(u64, u64)]) -> f64 {
    let (mut both, mut truth, mut found, mut neither) = (0.0, 0.0, 0.0, 0.0);
    for (i, x) in labels.iter().enumerate() {
        for y in &labels[..i] {
            match (x.0 == y.0, x.1 == y.1) {
                (true, true) => both += 1.0,
                (true, false) => truth += 1.0,
                (false, true) => found += 1.0,
                (false, false) => neither += 1.0,
            }
        }
    }
    let bottom: f64 = (both + truth) * (truth + neither) + (both + found) * (found + neither);
    if bottom == 0.0 { 1.0 } else { 2.0 * (both * neither - truth * found) / bottom }
}

#[test]
fn pairs_among_few_and_many() {
    assert_eq!([0, 1, 2, 3, 4, 5].map(pairs_among), [0, 0, 1, 3, 6, 10]);
    assert_eq!(pairs_among(1 << 32), (1 << 63) - (1 << 31));
}

#[test]
fn the_worst_come_first() {
    // Truth 1 is split in three, 2 in two; found 10 mixes both.
    let labels = [(1, 10), (1, 10), (1, 11), (1, 12), (2, 10), (2, 13), (3, 14)];
    let score = compare_labels(&labels, 1 << 20);
    let errors = |errors: &[ClusterError]| {
        errors
            .iter()
            .map(|e| {
                (
                    e.cluster,
                    e.documents,
                    e.parts,
                    e.pairs,
                    e.examples.iter().map(|doc| doc.get()).collect::<Vec<_>>(),
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(errors(&score.split), [(1, 4, 3, 5, vec![0, 2, 3]), (2, 2, 2, 1, vec![4, 5])]);
    assert_eq!(errors(&score.mixed), [(10, 3, 2, 2, vec![0, 4])]);
    assert_eq!((score.n_split, score.n_mixed, score.truth_clusters, score.found_clusters), (2, 1, 2, 1));
}

#[test]
fn known_values_of_the_index() {
    // The example of scikit-learn's documentation.
    let labels = [(0, 0), (0, 0), (1, 1), (1, 2)];
    let index = compare_labels(&labels, 1 << 20).adjusted_rand_index();
    assert!((index - 0.571_428_571_428_571_4).abs() < 1e-12, "{index}");
    let opposite = [(0, 0), (0, 1), (1, 0), (1, 1)];
    assert!((compare_labels(&opposite, 1 << 20).adjusted_rand_index() + 0.5).abs() < 1e-12);
    assert_eq!(compare_labels(&[], 1 << 20).adjusted_rand_index(), 1.0);
    assert_eq!(compare_labels(&[(0, 1), (1, 2)], 1 << 20).adjusted_rand_index(), 1.0);
}

proptest! {
    #[test]
    fn counts_are_those_of_all_pairs(labels in prop::collection::vec((0_u64..5, 0_u64..5), 0..40), spills: bool) {
        let score = compare_labels(&labels, if spills { 64 } else { 1 << 20 });
        let count = |together: fn(&(u64, u64), &(u64, u64)) -> bool| {
            (0..labels.len()).map(|i| labels[..i].iter().filter(|y| together(&labels[i], y)).count() as u64).sum::<u64>()
        };
        prop_assert_eq!(score.truth_pairs, count(|x, y| x.0 == y.0));
        prop_assert_eq!(score.found_pairs, count(|x, y| x.1 == y.1));
        prop_assert_eq!(score.common_pairs, count(|x, y| x == y));
        prop_assert!((score.adjusted_rand_index() - naive_adjusted_rand_index(&labels)).abs() < 1e-9);
        let lost: u64 = score.split.iter().map(|error| error.pairs).sum();
        prop_assert!(lost <= score.truth_pairs - score.common_pairs);
        prop_assert!(score.n_split > 3 || lost == score.truth_pairs - score.common_pairs);
    }

    #[test]
    fn unions_connect_what_was_joined(joins in prop::collection::vec((0_u32..20, 0_u32..20), 0..30)) {
        let mut unions = onionskin_core::UnionFind::new(20);
        joins.iter().for_each(|(a, b)| _ = unions.join(DocId(*a), DocId(*b)));
        let naive = onionskin_testkit::naive::naive_components(20, joins.iter().map(|(a, b)| (*a as usize, *b as usize)));
        let roots: Vec<usize> = DocId::range(0..20).map(|doc| unions.root(doc).index()).collect();
        prop_assert_eq!(roots, naive);
    }
}
