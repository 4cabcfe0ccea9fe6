use std::collections::BTreeSet;

use super::*;
use onionskin_store::MemoryBudget;
use proptest::prelude::*;

fn resources(dir: &tempfile::TempDir, memory: u64, threads: usize) -> Resources {
    Resources { memory: MemoryBudget::from_bytes(memory), threads, work_dir: dir.path().to_owned() }
}

fn naive(
    documents: &[(DocId, Vec<u64>)],
    pairs: &BTreeSet<(DocId, DocId)>,
    bound: Option<Bound>,
) -> Vec<SharedPair> {
    let set = |doc: DocId| -> BTreeSet<u64> {
        documents
            .iter()
            .find(|(other, _)| *other == doc)
            .map(|(_, set)| set.iter().copied().collect())
            .unwrap_or_default()
    };
    let mut found = Vec::new();
    for (b, a) in pairs {
        let (sa, sb) = (set(*a), set(*b));
        if sa.is_empty() || sb.is_empty() {
            continue;
        }
        let shared = sa.intersection(&sb).count() as u32;
        let (size_a, size_b) = (sa.len() as u32, sb.len() as u32);
        if bound.is_none_or(|bound| bound.holds(shared, size_a, size_b)) {
            found.push(SharedPair { a: *a, b: *b, shared, size_a, size_b });
        }
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn counts_what_the_definition_counts(
        documents in prop::collection::btree_map(0u32..60, prop::collection::vec(0u64..40, 0..30), 0..40),
        pairs in prop::collection::btree_set((0u32..60, 0u32..60).prop_map(|(a, b)| (DocId(a), DocId(b))), 0..120),
        tight: bool,
        threads in 1usize..4,
        least in prop::option::of(1u32..=10),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let documents: Vec<(DocId, Vec<u64>)> = documents.into_iter().map(|(doc, set)| (DocId(doc), set)).collect();
        let sets = ChunkSets::in_memory(documents.clone());
        let resources = resources(&dir, if tight { 4 << 10 } else { 64 << 20 }, threads);
        let mut candidates = Candidates::new(60, &resources).unwrap();
        for (a, b) in &pairs {
            candidates.push(*a, *b).unwrap();
        }
        let bound = least.map(|least| Bound::Resemblance(f64::from(least) / 10.0));
        let mut found = Vec::new();
        count_shared(&sets, candidates, bound, &resources, &mut |pair| { found.push(pair); Ok(()) }).unwrap();
        let ordered = pairs.iter().filter(|(a, b)| a != b).map(|(a, b)| (*a.max(b), *a.min(b))).collect();
        found.sort_by_key(|pair| (pair.b, pair.a));
        prop_assert_eq!(found, naive(&documents, &ordered, bound));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Documents of two crowds, distinguished by their differences from a base where they are near
    /// it, with chunks that repeat, in other orders, and a few documents of their own.
    #[test]
    fn crowds_count_what_the_definition_counts(
        seed: u64,
        edits in 0usize..120,
        candidates_in_10 in 1u32..=10,
        tight: bool,
        threads in 1usize..4,
        least in prop::option::of(1u32..=9),
    ) {
        let mut rng = onionskin_core::SplitMix64::new(seed);
        let mut below = |n: usize| (rng.next_u64() % n as u64) as usize;
        let documents: Vec<(DocId, Vec<u64>)> = DocId::range(0..40).map(|doc| {
            let crowd = below(2) as u64 * 1000;
            let mut set: Vec<u64> = (crowd..crowd + 200 + below(200) as u64).collect();
            if below(8) == 0 {
                set = (0..300).map(|at| 10_000 + u64::from(doc) * 1000 + at).collect();
            }
            for _ in 0..below(edits + 1) {
                let at = below(set.len());
                match below(4) {
                    0 => drop(set.remove(at)),
                    1 => set[at] = 5000 + below(500) as u64,
                    2 => set.push(set[at]),
                    _ => set.swap(at, below(at + 1)),
                }
            }
            (doc, set)
        }).collect();
        let pairs = DocId::range(0..40).flat_map(|b| DocId::range(0..b.get()).map(move |a| (b, a)));
        let pairs: BTreeSet<_> = pairs.filter(|_| below(10) < candidates_in_10 as usize).collect();
        let dir = tempfile::tempdir().unwrap();
        let resources = resources(&dir, if tight { 64 << 10 } else { 64 << 20 }, threads);
        let mut candidates = Candidates::new(40, &resources).unwrap();
        for (b, a) in &pairs {
            candidates.push(*b, *a).unwrap();
        }
        let bound = least.map(|least| Bound::Resemblance(f64::from(least) / 10.0));
        let sets = ChunkSets::in_memory(documents.clone());
        let mut found = Vec::new();
        count_shared(&sets, candidates, bound, &resources, &mut |pair| { found.push(pair); Ok(()) }).unwrap();
        found.sort_by_key(|pair| (pair.b, pair.a));
        prop_assert_eq!(found, naive(&documents, &pairs, bound));
    }
}

#[test]
fn sets_larger_than_the_budget_take_more_passes() {
    let dir = tempfile::tempdir().unwrap();
    // 64 documents of 100,000 chunks: 50 MB, of which a half is kept; 8 MB are given.
    let documents: Vec<(DocId, Vec<u64>)> = (0..64u32)
        .map(|doc| (DocId(doc), (0..100_000u64).map(|i| i * 2 + u64::from(doc % 2)).collect()))
        .collect();
    let sets = ChunkSets::in_memory(documents);
    let run = |memory| {
        let resources = resources(&dir, memory, 2);
        let mut candidates = Candidates::new(64, &resources).unwrap();
        for a in 0..63 {
            candidates.push(DocId(a), DocId(a + 1)).unwrap();
            candidates.push(DocId(a), DocId(63)).unwrap();
        }
        let mut found = Vec::new();
        let stats = count_shared(&sets, candidates, None, &resources, &mut |pair| {
            found.push(pair);
            Ok(())
        });
        found.sort();
        (stats.unwrap(), found)
    };
    let ((tight, found), (roomy, expected)) = (run(8 << 20), run(1 << 30));
    assert!(tight.passes > 5 && roomy.passes == 1, "{tight:?} {roomy:?}");
    assert_eq!(found, expected);
    assert_eq!(tight.candidates, 125);
    assert!(
        found
            .iter()
            .all(|pair| pair.shared == if (pair.a.get() + pair.b.get()) % 2 == 0 { 100_000 } else { 0 })
    );
}

#[test]
fn many_small_sets_share_a_tight_budget() {
    let dir = tempfile::tempdir().unwrap();
    // 20,000 documents of 20 chunks are 3.2 MB, of which the first half is kept for the second.
    let documents: Vec<(DocId, Vec<u64>)> = (0..20_000u32)
        .map(|doc| (DocId(doc), (0..20).map(|i| u64::from(doc % 10_000) * 20 + i).collect()))
        .collect();
    let sets = ChunkSets::in_memory(documents);
    let resources = resources(&dir, 1 << 20, 2);
    let mut candidates = Candidates::new(20_000, &resources).unwrap();
    for a in 0..10_000 {
        candidates.push(DocId(a), DocId(a + 10_000)).unwrap();
    }
    let mut found = 0;
    let stats = count_shared(&sets, candidates, None, &resources, &mut |pair| {
        found += u32::from(pair.shared == 20);
        Ok(())
    })
    .unwrap();
    assert_eq!(found, 10_000);
    assert!((2..=6).contains(&stats.passes), "{stats:?}");
}

#[test]
fn sets_go_when_their_last_partner_has_come_by() {
    let dir = tempfile::tempdir().unwrap();
    // 200 documents of 20,000 chunks, 32 MB, each like the next: two at a time are enough.
    let documents: Vec<(DocId, Vec<u64>)> =
        DocId::range(0..200).map(|doc| (doc, (0..20_000).collect())).collect();
    let sets = ChunkSets::in_memory(documents);
    let resources = resources(&dir, 4 << 20, 2);
    let mut candidates = Candidates::new(200, &resources).unwrap();
    for a in 0..199 {
        candidates.push(DocId(a), DocId(a + 1)).unwrap();
    }
    let mut found = 0;
    let stats = count_shared(&sets, candidates, None, &resources, &mut |pair| {
        found += u32::from(pair.shared == 20_000);
        Ok(())
    });
    assert_eq!((stats.unwrap().passes, found), (1, 199));
}
