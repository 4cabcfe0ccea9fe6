//! Additions and checks, beside the naive table in memory, which is gone with the process.
//!
//! Features are random, so that every document is a centre: the largest index that so many
//! documents can make. `onionskin-bench seen` measures millions.
#![allow(clippy::unwrap_used, reason = "a bench")]

use std::collections::HashMap;

use divan::Bencher;
use divan::counter::ItemsCount;
use onionskin_core::SplitMix64;
use onionskin_seen::{Document, Options, Params, Probe, Reader, Seen};
use onionskin_store::MemoryBudget;

const DOCUMENTS: u64 = 20_000;
const BATCH: u64 = 1_000;

fn main() {
    divan::main();
}

fn features(id: u64) -> (u64, [u64; 6]) {
    let mut rng = SplitMix64::new(id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (rng.next_u64(), [(); 6].map(|()| rng.next_u64()))
}

/// The documents that are asked for: half of them are there.
fn asked() -> impl Iterator<Item = (u64, [u64; 6])> {
    (0..DOCUMENTS).map(|id| features(if id % 2 == 0 { id } else { u64::MAX - id }))
}

fn fill(dir: &std::path::Path, n: u64) {
    let recipe = "w4-rabin64-6x14r2".parse().unwrap();
    let options = Options::new(MemoryBudget::from_mib(256));
    let mut seen = Seen::create(dir, Params::new(&recipe, 1, false).unwrap(), options).unwrap();
    for id in 0..n {
        let (text_fp, features) = features(id);
        let document = Document { probe: Probe::new(text_fp, &features), key: id, name: "" };
        seen.add_if_new(&document).unwrap();
        if id % BATCH == BATCH - 1 {
            seen.commit().unwrap();
        }
    }
    seen.close().unwrap();
}

#[derive(Default)]
struct Naive(HashMap<u64, Vec<u64>>);

impl Naive {
    fn add(&mut self, key: u64, features: &[u64; 6]) {
        for feature in features {
            self.0.entry(*feature).or_default().push(key);
        }
    }

    /// The first document that shares two features.
    fn check(&self, features: &[u64; 6]) -> Option<u64> {
        let mut found: Vec<u64> =
            features.iter().filter_map(|feature| self.0.get(feature)).flatten().copied().collect();
        found.sort_unstable();
        found.windows(2).find(|two| two[0] == two[1]).map(|two| two[0])
    }
}

/// With the writing and the syncing of every batch.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn add(bencher: Bencher<'_, '_>) {
    let dirs = || tempfile::tempdir().unwrap();
    bencher
        .counter(ItemsCount::new(DOCUMENTS))
        .with_inputs(dirs)
        .bench_local_refs(|dir| fill(&dir.path().join("index"), DOCUMENTS));
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn add_naive(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(DOCUMENTS)).bench_local(|| {
        let mut naive = Naive::default();
        (0..DOCUMENTS).for_each(|id| naive.add(id, &features(id).1));
        naive
    });
}

#[divan::bench(sample_count = 20)]
fn check(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().unwrap();
    let index = dir.path().join("index");
    fill(&index, DOCUMENTS);
    let reader = Reader::open(&index, MemoryBudget::from_mib(256)).unwrap();
    bencher.counter(ItemsCount::new(DOCUMENTS)).bench_local(|| {
        let seen = asked()
            .filter(|(text_fp, features)| reader.check(&Probe::new(*text_fp, features)).unwrap().is_some());
        seen.count()
    });
}

#[divan::bench(sample_count = 20)]
fn check_naive(bencher: Bencher<'_, '_>) {
    let mut naive = Naive::default();
    (0..DOCUMENTS).for_each(|id| naive.add(id, &features(id).1));
    bencher
        .counter(ItemsCount::new(DOCUMENTS))
        .bench_local(|| asked().filter(|(_, features)| naive.check(features).is_some()).count());
}
