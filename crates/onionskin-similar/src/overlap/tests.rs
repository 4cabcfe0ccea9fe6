use std::collections::BTreeSet;

use super::*;
use onionskin_core::{DocId, SplitMix64, Threshold};
use onionskin_store::MemoryBudget;
use onionskin_testkit::naive::{naive_overlap, naive_pairs};
use proptest::prelude::*;

fn resources(dir: &tempfile::TempDir, memory: u64, threads: usize) -> Resources {
    Resources { memory: MemoryBudget::from_bytes(memory), threads, work_dir: dir.path().join("work") }
}

fn overlap(at_least: u32) -> Bound {
    Bound::Overlap(Threshold::new(at_least).unwrap())
}

fn run(
    documents: &[(DocId, Vec<u64>)],
    bound: Bound,
    engine: Engine,
    memory: u64,
    threads: usize,
) -> (Vec<SharedPair>, JoinStats) {
    let dir = tempfile::tempdir().unwrap();
    let sets = ChunkSets::in_memory(documents.to_vec());
    let resources = resources(&dir, memory, threads);
    let n = documents.last().map_or(0, |(doc, _)| u64::from(*doc) + 1);
    let mut found = Vec::new();
    let stats = join(&sets, n, bound, engine, &resources, &mut |pair| {
        found.push(pair);
        Ok(())
    })
    .unwrap();
    found.sort();
    assert_eq!(stats.pairs, found.len() as u64);
    let left = std::fs::read_dir(&resources.work_dir).map_or(0, Iterator::count);
    assert_eq!(left, 0, "work files are removed");
    (found, stats)
}

/// All pairs for which the bound holds, by the oracles of the testkit.
fn naive(documents: &[(DocId, Vec<u64>)], bound: Bound) -> Vec<SharedPair> {
    let sets: Vec<BTreeSet<u64>> =
        documents.iter().map(|(_, chunks)| chunks.iter().copied().collect()).collect();
    let mut pairs: Vec<SharedPair> = naive_overlap(&sets, 1)
        .into_iter()
        .map(|(a, b, shared)| SharedPair {
            a: documents[a].0,
            b: documents[b].0,
            shared: shared as u32,
            size_a: sets[a].len() as u32,
            size_b: sets[b].len() as u32,
        })
        .collect();
    match bound {
        Bound::Overlap(threshold) => pairs.retain(|pair| pair.shared >= threshold.get()),
        Bound::Share(least) => {
            pairs.retain(|pair| f64::from(pair.shared) / f64::from(pair.size_a.max(pair.size_b)) >= least)
        }
        Bound::Resemblance(least) => {
            let similar: BTreeSet<(DocId, DocId)> = naive_pairs(&sets, least)
                .into_iter()
                .map(|(a, b, _)| (documents[a].0, documents[b].0))
                .collect();
            pairs.retain(|pair| similar.contains(&(pair.a, pair.b)));
        }
    }
    pairs
}

fn bounds() -> impl Strategy<Value = Bound> {
    prop_oneof![
        (1u32..12).prop_map(overlap),
        (0u32..=20).prop_map(|t| Bound::Resemblance(f64::from(t) / 20.0)),
        (0u32..=20).prop_map(|t| Bound::Share(f64::from(t) / 20.0)),
    ]
}

/// Small webs: few different chunks, repeats in documents, some documents made from others, gaps
/// between the numbers.
fn webs() -> impl Strategy<Value = Vec<(DocId, Vec<u64>)>> {
    let document = prop::collection::vec(0u64..60, 0..30);
    let copies = prop::collection::vec((0usize..40, 0usize..8, 1u32..4), 0..40);
    (prop::collection::vec(document, 1..40), copies).prop_map(|(mut documents, copies)| {
        for (from, changed, _) in &copies {
            let mut copy = documents[from % documents.len()].clone();
            let turn = changed % copy.len().max(1);
            copy.rotate_left(turn);
            copy.iter_mut().take(*changed).for_each(|chunk| *chunk += 7);
            documents.push(copy);
        }
        let gaps = copies.iter().map(|(_, _, gap)| *gap).chain(std::iter::repeat(1));
        let mut doc = 0;
        documents
            .into_iter()
            .zip(gaps)
            .map(|(document, gap)| {
                doc += gap;
                (DocId(doc), document)
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn all_engines_find_what_the_definition_finds(
        documents in webs(),
        bound in bounds(),
        memory in prop_oneof![Just(4u64 << 10), Just(16 << 10), Just(16 << 20)],
        threads in 1usize..4,
    ) {
        let expected = naive(&documents, bound);
        for engine in Engine::ALL {
            let (found, stats) = run(&documents, bound, engine, memory, threads);
            prop_assert_eq!(&found, &expected, "{} {:?}", engine, stats);
        }
    }
}

/// A web that is large enough for threads, spills and several scans: `clusters` of `copies`
/// documents that share `kept` of their `size` chunks, and one chunk that everybody has.
fn planted(clusters: u32, copies: u32, kept: usize, size: usize) -> Vec<(DocId, Vec<u64>)> {
    let mut dice = SplitMix64::new(7);
    let mut documents = Vec::new();
    for cluster in 0..clusters {
        let common: Vec<u64> = (0..kept).map(|_| dice.next_u64()).collect();
        for copy in 0..copies {
            let mut chunks = vec![1];
            chunks.extend_from_slice(&common);
            chunks.resize_with(size, || dice.next_u64());
            documents.push((DocId(cluster * copies + copy), chunks));
        }
    }
    documents
}

#[test]
fn budgets_and_threads_change_nothing() {
    let documents = planted(150, 4, 18, 25);
    for bound in [overlap(15), Bound::Resemblance(0.5), Bound::Share(0.7)] {
        let expected = naive(&documents, bound);
        assert_eq!(expected.len(), 150 * 6);
        for engine in Engine::ALL {
            for (memory, threads) in [(32 << 10, 1), (128 << 10, 3), (64 << 20, 1), (64 << 20, 2)] {
                let (found, stats) = run(&documents, bound, engine, memory, threads);
                assert!(found == expected, "{engine} {bound:?} {memory} {threads} {stats:?}");
                assert!(memory > 32 << 10 || stats.spilled_bytes > 0, "{engine} {stats:?}");
                assert!(stats.peak_bytes <= memory, "{engine} {bound:?} {memory} {stats:?}");
            }
        }
    }
}

#[test]
fn a_table_too_small_for_the_candidates_takes_more_scans() {
    // 300 copies of a page: every pair is heavy, and the table holds a few hundred of the 44,850.
    let documents = planted(1, 300, 20, 22);
    let expected = naive(&documents, overlap(10));
    let (found, tight) = run(&documents, overlap(10), Engine::Iceberg, 64 << 10, 1);
    assert!(found == expected);
    let (found, roomy) = run(&documents, overlap(10), Engine::Iceberg, 64 << 20, 1);
    assert!(found == expected);
    assert!(tight.passes > roomy.passes + 10, "{tight:?} {roomy:?}");
}

#[test]
fn a_chunk_that_everybody_has_does_not_cost_its_square() {
    // A page in ten has a near-copy. The square of 20,000 is 200 million pairs.
    let mut documents = planted(1_000, 2, 18, 20);
    let mut dice = SplitMix64::new(11);
    for doc in 2_000..20_000 {
        let mut chunks = vec![1];
        chunks.resize_with(20, || dice.next_u64());
        documents.push((DocId(doc), chunks));
    }
    for engine in [Engine::Prefix, Engine::Iceberg] {
        let (found, stats) = run(&documents, overlap(15), engine, 32 << 20, 2);
        assert_eq!(found.len(), 1_000);
        assert!(
            found
                .iter()
                .all(|pair| pair.shared == 19 && pair.a.get() + 1 == pair.b.get() && pair.a.get() % 2 == 0)
        );
        assert!(stats.pairs_enumerated < 100_000 && stats.candidates < 2_000, "{engine} {stats:?}");
    }
    // Even when everybody has a copy, so that nobody can be dropped.
    let documents = planted(10_000, 2, 18, 20);
    for engine in [Engine::Prefix, Engine::Iceberg] {
        let (found, stats) = run(&documents, overlap(15), engine, 32 << 20, 2);
        assert_eq!(found.len(), 10_000);
        assert!(stats.pairs_enumerated < 1_000_000 && stats.candidates < 20_000, "{engine} {stats:?}");
    }
}

#[test]
fn chunks_of_one_document_alone_are_never_written() {
    let documents: Vec<(DocId, Vec<u64>)> =
        planted(500, 1, 0, 40).into_iter().map(|(doc, chunks)| (doc, chunks[1..].to_vec())).collect();
    let (found, stats) = run(&documents, Bound::Resemblance(0.8), Engine::Prefix, 64 << 20, 2);
    assert!(found.is_empty() && stats.records < 100, "{stats:?}");
}

#[test]
fn nothing_and_next_to_nothing() {
    for engine in Engine::ALL {
        assert!(run(&[], overlap(1), engine, 1 << 20, 2).0.is_empty());
        assert!(run(&[(DocId(3), vec![])], overlap(1), engine, 1 << 20, 2).0.is_empty());
        let two = [(DocId(3), vec![5, 5, 0]), (DocId(9), vec![0])];
        let pair = SharedPair { a: DocId(3), b: DocId(9), shared: 1, size_a: 2, size_b: 1 };
        assert_eq!(run(&two, overlap(1), engine, 1 << 20, 2).0, [pair], "{engine}");
        assert!(run(&two, overlap(2), engine, 1 << 20, 2).0.is_empty(), "{engine}");
        assert!(run(&two, overlap(u32::MAX), engine, 1 << 20, 2).0.is_empty(), "{engine}");
        assert!(run(&two, Bound::Resemblance(f64::NAN), engine, 1 << 20, 2).0.is_empty(), "{engine}");
    }
}

#[test]
fn names_of_engines() {
    for engine in Engine::ALL {
        assert_eq!(engine.to_string().parse::<Engine>().unwrap(), engine);
    }
    let error = "merge".parse::<Engine>().unwrap_err().to_string();
    assert_eq!(error, "there is no engine \"merge\"\nhint: the engines are sort, iceberg, prefix");
}

#[test]
fn what_emit_returns_ends_the_join() {
    let dir = tempfile::tempdir().unwrap();
    let sets = ChunkSets::in_memory(planted(3, 3, 18, 20));
    for engine in Engine::ALL {
        let mut seen = 0;
        let stopped = join(&sets, 9, overlap(5), engine, &resources(&dir, 1 << 20, 1), &mut |_| {
            seen += 1;
            Err(SimilarError::Parameters("enough".into()))
        });
        assert_eq!((stopped.unwrap_err().to_string(), seen), ("enough".into(), 1), "{engine}");
    }
}
