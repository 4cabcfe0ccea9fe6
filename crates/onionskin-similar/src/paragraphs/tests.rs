use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{ChunkSets, Resources, SharedPair, SimilarError};
use onionskin_core::{DocId, SplitMix64};
use onionskin_store::MemoryBudget;
use onionskin_testkit::naive::naive_components;
use proptest::prelude::*;

fn resources(dir: &tempfile::TempDir, memory: u64, threads: usize) -> Resources {
    Resources { memory: MemoryBudget::from_bytes(memory), threads, work_dir: dir.path().to_owned() }
}

fn documents_in(documents: &[(DocId, Vec<u64>)]) -> u64 {
    documents.last().map_or(0, |(doc, _)| u64::from(*doc) + 1)
}

fn run_duplicates(documents: &[(DocId, Vec<u64>)], memory: u64) -> (Vec<(DocId, DocId)>, DuplicateStats) {
    let dir = tempfile::tempdir().unwrap();
    let sets = ChunkSets::in_memory(documents.to_vec());
    let mut found = Vec::new();
    let stats = duplicates(&sets, documents_in(documents), &resources(&dir, memory, 1), &mut |pair| {
        assert!(pair.shared == pair.size_a && pair.shared == pair.size_b);
        found.push((pair.a, pair.b));
        Ok(())
    });
    found.sort_unstable();
    (found, stats.unwrap())
}

fn run_drawn(
    documents: &[(DocId, Vec<u64>)],
    drawn: &BTreeSet<DocId>,
    memory: u64,
) -> (Vec<(DocId, DocId)>, DuplicateStats) {
    let dir = tempfile::tempdir().unwrap();
    let sets = ChunkSets::in_memory(documents.to_vec());
    let (resources, is_drawn) = (resources(&dir, memory, 1), |doc: DocId| drawn.contains(&doc));
    let mut found = Vec::new();
    let stats = duplicates_of_drawn(&sets, documents_in(documents), &is_drawn, &resources, &mut |pair| {
        assert!(pair.shared == pair.size_a && pair.shared == pair.size_b);
        found.push((pair.a, pair.b));
        Ok(())
    });
    found.sort_unstable();
    (found, stats.unwrap())
}

fn run_near(
    documents: &[(DocId, Vec<u64>)],
    shares: &[f64],
    memory: u64,
    threads: usize,
) -> (Vec<SharedPair>, NearStats) {
    let dir = tempfile::tempdir().unwrap();
    let sets = ChunkSets::in_memory(documents.to_vec());
    let resources = resources(&dir, memory, threads);
    let mut found = Vec::new();
    let stats = near_duplicates(&sets, documents_in(documents), shares, &resources, &mut |pair| {
        found.push(pair);
        Ok(())
    });
    found.sort_unstable();
    (found, stats.unwrap())
}

fn multiset(shingles: &[u64]) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::new();
    shingles.iter().for_each(|shingle| *counts.entry(*shingle).or_default() += 1);
    counts
}

fn naive_near(documents: &[(DocId, Vec<u64>)], share: f64) -> Vec<SharedPair> {
    let mut pairs = Vec::new();
    for (at, (a, of_a)) in documents.iter().enumerate() {
        for (b, of_b) in &documents[at + 1..] {
            let (in_a, in_b) = (multiset(of_a), multiset(of_b));
            let shared = in_a.iter().map(|(shingle, n)| *n.min(in_b.get(shingle).unwrap_or(&0))).sum();
            let (size_a, size_b) = (of_a.len() as u32, of_b.len() as u32);
            if shared > 0 && f64::from(shared) / f64::from(size_a.max(size_b)) >= share {
                pairs.push(SharedPair { a: *a, b: *b, shared, size_a, size_b });
            }
        }
    }
    pairs
}

/// Documents in pairs, and clusters of them.
fn naive_clusters(documents: u64, pairs: &[SharedPair]) -> (u64, u64) {
    let clustered: BTreeSet<DocId> = pairs.iter().flat_map(|pair| [pair.a, pair.b]).collect();
    let edges = pairs.iter().map(|pair| (pair.a.index(), pair.b.index()));
    let labels = naive_components(documents as usize, edges);
    let clusters: BTreeSet<usize> = clustered.iter().map(|doc| labels[doc.index()]).collect();
    (clustered.len() as u64, clusters.len() as u64)
}

fn naive_duplicates(documents: &[(DocId, Vec<u64>)]) -> Vec<(DocId, DocId)> {
    let mut originals: BTreeMap<BTreeMap<u64, u32>, DocId> = BTreeMap::new();
    let mut pairs = Vec::new();
    for (doc, shingles) in documents.iter().filter(|(_, shingles)| !shingles.is_empty()) {
        let original = *originals.entry(multiset(shingles)).or_insert(*doc);
        if original != *doc {
            pairs.push((original, *doc));
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Letters stand for shingles, as in the paper's figure 1.
fn letters(documents: &[(u32, &str)]) -> Vec<(DocId, Vec<u64>)> {
    documents.iter().map(|(doc, text)| (DocId(*doc), text.bytes().map(u64::from).collect())).collect()
}

#[test]
fn the_collection_of_figure_1() {
    // Twenty documents of four shingles. Document 19 has those of document 2, in another order.
    let mut documents: Vec<(DocId, Vec<u64>)> =
        DocId::range(1..21).map(|doc| (doc, (0..4).map(|i| 1_000 * u64::from(doc) + i).collect())).collect();
    for (doc, shingles) in letters(&[(1, "abcd"), (2, "edfg"), (19, "gedf"), (20, "abch")]) {
        documents[doc.index() - 1].1 = shingles;
    }
    let (found, stats) = run_duplicates(&documents, 1 << 20);
    assert_eq!(found, [(DocId(2), DocId(19))]);
    assert_eq!((stats.documents, stats.clusters, stats.duplicates, stats.steps), (20, 1, 1, 1));
    let (found, stats) = run_near(&documents, &[0.9, 0.7, 0.5], 1 << 20, 1);
    let near: Vec<(u32, u32, u32)> =
        found.iter().map(|pair| (pair.a.get(), pair.b.get(), pair.shared)).collect();
    assert_eq!(near, [(1, 20, 3), (2, 19, 4)]);
    let levels: Vec<(u64, u64)> =
        stats.levels.iter().map(|level| (level.pairs, level.near_duplicates())).collect();
    assert_eq!(levels, [(1, 1), (2, 2), (2, 2)]);
}

#[test]
fn repeats_are_no_false_match() {
    // Section 3: every shingle of document 3 is found in document 2, and both have four.
    let documents = letters(&[(2, "edfg"), (3, "eded"), (4, "deed")]);
    assert_eq!(run_duplicates(&documents, 1 << 20).0, [(DocId(3), DocId(4))]);
    let (found, stats) = run_near(&documents, &[0.5, 1.0], 1 << 20, 1);
    let shared: Vec<(u32, u32, u32)> =
        found.iter().map(|pair| (pair.a.get(), pair.b.get(), pair.shared)).collect();
    assert_eq!(shared, [(2, 3, 2), (2, 4, 2), (3, 4, 4)]);
    assert_eq!((stats.levels[0].near_duplicates(), stats.levels[1].near_duplicates()), (2, 1));
}

#[test]
fn percentages_that_are_none() {
    let dir = tempfile::tempdir().unwrap();
    let resources = resources(&dir, 1 << 20, 1);
    for shares in [&[][..], &[0.0], &[0.5, 1.5], &[f64::NAN], &[-0.5]] {
        let sets = ChunkSets::in_memory(letters(&[(0, "ab")]));
        let refused = near_duplicates(&sets, 1, shares, &resources, &mut |_| Ok(()));
        assert!(matches!(refused, Err(SimilarError::Parameters(_))), "{shares:?}");
    }
}

#[test]
fn a_paragraph_that_stands_everywhere_does_not_cost_its_square() {
    let mut dice = SplitMix64::new(3);
    let mut documents: Vec<(DocId, Vec<u64>)> = Vec::new();
    for doc in 0..20_000 {
        let mut shingles = vec![1, 2];
        shingles.resize_with(8, || dice.next_u64());
        documents.push((DocId(doc), shingles));
    }
    for doc in 0..100 {
        let mut copy = documents[doc].1.clone();
        copy[7] = dice.next_u64();
        documents.push((DocId(20_000 + doc as u32), copy));
    }
    let (found, stats) = run_near(&documents, &[0.5], 64 << 20, 2);
    assert_eq!(found.len(), 100);
    assert!(found.iter().all(|pair| pair.shared == 7 && pair.a.get() + 20_000 == pair.b.get()));
    assert!(stats.pairs_enumerated < 50_000 && stats.candidates < 1_000, "{stats:?}");
    assert_eq!((stats.steps, stats.documents), (1, 20_100));
}

#[test]
fn the_table_is_held_to_the_budget() {
    let mut dice = SplitMix64::new(5);
    let documents: Vec<(DocId, Vec<u64>)> = (0..2_000)
        .map(|doc| {
            (
                DocId(doc),
                (0..20)
                    .map(|i| if i < 15 { u64::from(doc % 500) << 8 | i } else { dice.next_u64() })
                    .collect(),
            )
        })
        .collect();
    let (expected, roomy) = run_near(&documents, &[0.5], 64 << 20, 1);
    assert_eq!((expected.len(), roomy.steps), (500 * 6, 1));
    let (found, tight) = run_near(&documents, &[0.5], 200 << 10, 3);
    assert!(found == expected);
    assert!(tight.steps > 3 && tight.peak_bytes <= 200 << 10, "{tight:?}");
    assert_eq!(tight.levels, roomy.levels);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn multisets_against_the_definition(
        documents in prop::collection::btree_map(0u32..80, prop::collection::vec(0u64..12, 0..8), 0..50),
        shares in prop::collection::vec((1u32..=20).prop_map(|share| f64::from(share) / 20.0), 1..4),
        memory in prop_oneof![Just(1u64), Just(4 << 10), Just(16 << 20)],
        threads in 1usize..4,
    ) {
        let documents: Vec<(DocId, Vec<u64>)> = documents.into_iter().map(|(doc, shingles)| (DocId(doc), shingles)).collect();
        let (found, stats) = run_near(&documents, &shares, memory, threads);
        let lowest = shares.iter().copied().fold(1.0, f64::min);
        prop_assert_eq!(found, naive_near(&documents, lowest));
        for (level, share) in stats.levels.iter().zip(&shares) {
            let pairs = naive_near(&documents, *share);
            let (clustered, clusters) = naive_clusters(documents_in(&documents), &pairs);
            let expected = Level { share: *share, pairs: pairs.len() as u64, clustered, clusters };
            prop_assert_eq!(*level, expected);
        }
        let (found, stats) = run_duplicates(&documents, memory);
        let expected = naive_duplicates(&documents);
        let clusters: BTreeSet<DocId> = expected.iter().map(|(original, _)| *original).collect();
        prop_assert_eq!(stats.clusters, clusters.len() as u64);
        prop_assert_eq!(stats.duplicates, expected.len() as u64);
        prop_assert_eq!(found, expected);
    }
}

/// Of all duplicates those of clusters with a member that was drawn.
fn naive_drawn(documents: &[(DocId, Vec<u64>)], drawn: &BTreeSet<DocId>) -> Vec<(DocId, DocId)> {
    let all = naive_duplicates(documents);
    let members = |original: DocId| all.iter().filter(move |(a, _)| *a == original).map(|(_, b)| *b);
    let is_drawn = |a: DocId| drawn.contains(&a) || members(a).any(|b| drawn.contains(&b));
    all.iter().copied().filter(|(a, _)| is_drawn(*a)).collect()
}

#[test]
fn a_cluster_is_found_whole_by_its_last_member() {
    let documents = letters(&[(1, "ab"), (2, "ba"), (3, "cd"), (4, "dc"), (7, "ab"), (9, "xy")]);
    let (found, stats) = run_drawn(&documents, &BTreeSet::from([DocId(7), DocId(9)]), 1 << 20);
    assert_eq!(found, [(DocId(1), DocId(2)), (DocId(1), DocId(7))]);
    assert_eq!((stats.documents, stats.clusters, stats.duplicates, stats.steps), (6, 1, 2, 1));
    assert_eq!(run_drawn(&documents, &BTreeSet::new(), 1 << 20).0, []);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn what_was_drawn_against_the_definition(
        documents in prop::collection::btree_map(0u32..80, prop::collection::vec(0u64..4, 0..4), 0..70),
        drawn in prop::collection::btree_set((0u32..80).prop_map(DocId), 0..40),
        memory in prop_oneof![Just(1u64), Just(4 << 10), Just(16 << 20)],
    ) {
        let documents: Vec<(DocId, Vec<u64>)> = documents.into_iter().map(|(doc, shingles)| (DocId(doc), shingles)).collect();
        let expected = naive_drawn(&documents, &drawn);
        let (found, stats) = run_drawn(&documents, &drawn, memory);
        let clusters: BTreeSet<DocId> = expected.iter().map(|(original, _)| *original).collect();
        prop_assert_eq!((stats.clusters, stats.duplicates), (clusters.len() as u64, expected.len() as u64));
        prop_assert_eq!(found, expected);
        // All of them are everything, and the same as without drawing.
        let (found, stats) = run_drawn(&documents, &DocId::range(0..80).collect(), memory);
        let (all, whole) = run_duplicates(&documents, memory);
        prop_assert_eq!(found, all);
        prop_assert_eq!((stats.clusters, stats.documents), (whole.clusters, whole.documents));
    }
}
