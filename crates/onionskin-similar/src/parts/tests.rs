use std::collections::{BTreeMap, BTreeSet};

use onionskin_core::Threshold;
use proptest::prelude::*;

use super::*;

/// The definition: documents in the order of the wish; one that is not taken yet takes its
/// neighbours that are not taken yet.
fn naive_centred(pairs: &BTreeSet<(Wish, Wish)>) -> BTreeMap<i64, i64> {
    let mut wishes: Vec<Wish> = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect();
    wishes.sort_unstable();
    wishes.dedup();
    let mut taken = BTreeMap::new();
    for centre in &wishes {
        if taken.contains_key(&centre.1) {
            continue;
        }
        for other in &wishes {
            let similar = pairs.contains(&(*centre, *other)) || pairs.contains(&(*other, *centre));
            if similar && !taken.contains_key(&other.1) {
                taken.insert(other.1, centre.1);
                taken.insert(centre.1, centre.1);
            }
        }
    }
    taken
}

proptest! {
    #[test]
    fn centred_clusters_are_the_definition(
        priorities in prop::collection::vec(0i64..3, 12),
        pairs in prop::collection::vec((0usize..12, 0usize..12), 0..30),
    ) {
        let wish = |doc: usize| (priorities[doc], doc as i64);
        let pairs: BTreeSet<(Wish, Wish)> =
            pairs.into_iter().filter(|(a, b)| a != b).map(|(a, b)| (wish(a), wish(b))).collect();
        let found: BTreeMap<i64, i64> = centred(pairs.iter().copied()).into_iter().collect();
        prop_assert_eq!(found, naive_centred(&pairs));
    }

    #[test]
    fn components_are_what_is_connected(edges in prop::collection::vec((0i64..40, 0i64..40), 0..40)) {
        let offset = 1i64 << 40;
        let found: BTreeMap<i64, i64> =
            components(edges.iter().map(|(a, b)| (a + offset, b + offset))).into_iter().collect();
        // The naive way: the smallest number spreads until nothing changes.
        let mut naive: BTreeMap<i64, i64> =
            edges.iter().flat_map(|(a, b)| [(a + offset, a + offset), (b + offset, b + offset)]).collect();
        for _ in 0..40 {
            for (a, b) in &edges {
                let (a, b) = (a + offset, b + offset);
                let least = naive[&a].min(naive[&b]);
                naive.insert(a, least);
                naive.insert(b, least);
            }
        }
        prop_assert_eq!(found, naive);
    }

    #[test]
    fn similar_sets_meet_in_their_prefixes(
        sets in prop::collection::vec(prop::collection::btree_set(0u64..12, 1..9), 2..8),
        threshold in 1u32..5, share in 1u32..=10, by_overlap: bool,
    ) {
        let bound = if by_overlap {
            Bound::Overlap(Threshold::new(threshold).unwrap())
        } else {
            Bound::Resemblance(f64::from(share) / 10.0)
        };
        let count = |chunk: &u64| sets.iter().filter(|set| set.contains(chunk)).count() as u64;
        let prefixes: Vec<BTreeSet<u64>> = sets
            .iter()
            .map(|set| {
                let mut shared: Vec<(u64, u64)> =
                    set.iter().map(|chunk| (count(chunk), *chunk)).filter(|(count, _)| *count > 1).collect();
                prefix(bound, set.len() as u32, &mut shared).into_iter().map(|(chunk, _)| chunk).collect()
            })
            .collect();
        let mut counter = Counter::default();
        for (b, larger) in sets.iter().enumerate() {
            for (a, smaller) in sets[..b].iter().enumerate() {
                let found = counter.count(smaller.iter().copied(), larger.iter().copied());
                prop_assert_eq!(found.shared as usize, smaller.intersection(larger).count());
                if bound.holds(found.shared, found.size_a, found.size_b) {
                    prop_assert!(!prefixes[a].is_disjoint(&prefixes[b]));
                }
            }
        }
    }
}

#[test]
fn the_filter_is_the_one_of_a_search() {
    let recipe: Recipe = Recipe::DEFAULT.parse().unwrap();
    let choice = filter_for(&recipe, 0.9, None).unwrap();
    assert_eq!((choice.filter.to_string().as_str(), choice.from_sketches), ("10x8r1", true));
    let bare: Recipe = "w4-rabin64-6x14r2".parse().unwrap();
    assert_eq!(filter_for(&bare, 0.9, None).unwrap().filter.to_string(), "6x14r2");
    assert!(filter_for(&bare, 0.9, FeatureFilter::new(20, 5, 1).ok()).is_err());
    let search = Search::Resemblance { threshold: 0.9, filter: None, exact: false };
    assert_eq!(levels(&search, Some("w4")), ["exact", "resemblance-w4-90"]);
}
