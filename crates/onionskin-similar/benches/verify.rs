//! Counting what candidates share, beside the naive twin.
#![allow(clippy::unwrap_used, reason = "a bench")]

use std::collections::BTreeSet;

use divan::Bencher;
use divan::counter::ItemsCount;
use onionskin_core::{DocId, SplitMix64};
use onionskin_similar::{Bound, Candidates, ChunkSets, Resources, count_shared};
use onionskin_store::MemoryBudget;

/// Documents, and shingles of each.
const DOCUMENTS: u32 = 2_000;
const SHINGLES: usize = 200;
/// Candidates: each document with this many of the ones before it.
const EARLIER: u32 = 4;

fn main() {
    divan::main();
}

/// Every document has nine tenths of its shingles from the one before.
fn documents() -> Vec<(DocId, Vec<u64>)> {
    let mut rng = SplitMix64::new(1);
    let mut set: Vec<u64> = (0..SHINGLES).map(|_| rng.next_u64()).collect();
    let documents = (0..DOCUMENTS).map(|doc| {
        for _ in 0..SHINGLES / 10 {
            let at = rng.next_u64() as usize % SHINGLES;
            set[at] = rng.next_u64();
        }
        let mut chunks = set.clone();
        chunks.sort_unstable();
        (DocId(doc), chunks)
    });
    documents.collect()
}

fn pairs() -> impl Iterator<Item = (DocId, DocId)> {
    (0..DOCUMENTS).flat_map(|b| (1..=EARLIER.min(b)).map(move |back| (DocId(b - back), DocId(b))))
}

const BOUND: Bound = Bound::Resemblance(0.7);

#[divan::bench(args = [1 << 20, 64 << 20], sample_count = 10)]
fn counted(bencher: Bencher<'_, '_>, memory: u64) {
    let dir = tempfile::tempdir().unwrap();
    let sets = ChunkSets::in_memory(documents());
    let memory = MemoryBudget::from_bytes(memory);
    let resources = Resources { memory, threads: 1, work_dir: dir.path().to_owned() };
    bencher.counter(ItemsCount::new(pairs().count())).bench_local(|| {
        let mut candidates = Candidates::new(u64::from(DOCUMENTS), &resources).unwrap();
        for (a, b) in pairs() {
            candidates.push(a, b).unwrap();
        }
        let mut found = 0;
        count_shared(&sets, candidates, Some(BOUND), &resources, &mut |_| {
            found += 1;
            Ok(())
        })
        .unwrap();
        found
    });
}

#[divan::bench(sample_count = 10)]
fn naive(bencher: Bencher<'_, '_>) {
    let documents = documents();
    bencher.counter(ItemsCount::new(pairs().count())).bench_local(|| {
        let set = |doc: DocId| documents[doc.index()].1.iter().copied().collect::<BTreeSet<u64>>();
        let holds = |(a, b): &(DocId, DocId)| {
            let (a, b) = (set(*a), set(*b));
            BOUND.holds(a.intersection(&b).count() as u32, a.len() as u32, b.len() as u32)
        };
        pairs().filter(holds).count()
    });
}
