//! The graph of links: made, cut into a bow tie and crawled, on disk and in memory, beside a crawl
//! over vectors of vectors.
//!
//! `ONIONSKIN_BENCH_DOCUMENTS` is the number of documents, 50,000 where nothing is said.
#![allow(clippy::unwrap_used, reason = "a bench")]

use std::convert::Infallible;

use divan::Bencher;
use divan::counter::ItemsCount;
use onionskin_core::{DocId, SplitMix64};
use onionskin_study::graph::{LinkGraph, Part, bow_tie, crawl};

/// Links of a document, on average, as in the larger crawls.
const DEGREE: f64 = 10.4;
/// Where a graph is kept.
const PLACES: [&str; 2] = ["disk", "memory"];

fn main() {
    divan::main();
}

fn nodes() -> u32 {
    std::env::var("ONIONSKIN_BENCH_DOCUMENTS").map_or(50_000, |text| text.parse().unwrap())
}

/// Half of the documents have no links of their own. The others link nearby, where a site would be,
/// and to pages anywhere, the popular ones more often.
fn links() -> Vec<(DocId, DocId)> {
    let nodes = nodes();
    let mut rng = SplitMix64::new(1);
    let mut links = Vec::new();
    for doc in 0..nodes {
        let degree = if rng.next_u32() & 1 == 0 { 0 } else { rng.next_u32() % (4.0 * DEGREE) as u32 };
        for _ in 0..degree {
            let by_chance = rng.next_u32();
            let target = if !by_chance.is_multiple_of(4) {
                (doc / 200 * 200 + by_chance / 4 % 200).min(nodes - 1)
            } else {
                let uniform = f64::from(rng.next_u32()) / f64::from(u32::MAX);
                ((uniform * uniform * uniform) * f64::from(nodes - 1)) as u32
            };
            links.push((DocId(doc), DocId(target)));
        }
    }
    links.sort_unstable();
    links.dedup();
    links
}

fn build(links: &[(DocId, DocId)], place: &str, dir: &std::path::Path) -> LinkGraph {
    let memory = if place == "memory" { u64::MAX } else { 0 };
    LinkGraph::build(nodes(), links.iter().copied().map(Ok::<_, Infallible>), memory, dir).unwrap()
}

#[divan::bench(args = PLACES, sample_count = 5)]
fn made(bencher: Bencher<'_, '_>, place: &str) {
    let (links, dir) = (links(), tempfile::tempdir().unwrap());
    bencher.counter(ItemsCount::new(links.len())).bench_local(|| build(&links, place, dir.path()));
}

#[divan::bench(args = PLACES, sample_count = 5)]
fn bow_tie_of_all(bencher: Bencher<'_, '_>, place: &str) {
    let (links, dir) = (links(), tempfile::tempdir().unwrap());
    let mut graph = build(&links, place, dir.path());
    bencher.counter(ItemsCount::new(links.len())).bench_local(|| bow_tie(&mut graph).unwrap());
}

#[divan::bench(args = PLACES, sample_count = 5)]
fn crawl_from_the_core(bencher: Bencher<'_, '_>, place: &str) {
    let (links, dir) = (links(), tempfile::tempdir().unwrap());
    let mut graph = build(&links, place, dir.path());
    let core: Vec<DocId> = bow_tie(&mut graph).unwrap().documents(Part::Core).collect();
    bencher
        .counter(ItemsCount::new(links.len()))
        .bench_local(|| crawl(&mut graph, core.iter().copied()).unwrap().documents());
}

#[divan::bench(sample_count = 5)]
fn crawl_naive(bencher: Bencher<'_, '_>) {
    let links = links();
    let mut targets = vec![Vec::new(); nodes() as usize];
    for (source, target) in &links {
        targets[source.index()].push(*target);
    }
    let first = links[0].0;
    bencher.counter(ItemsCount::new(links.len())).bench_local(|| {
        let mut reached = vec![false; targets.len()];
        reached[first.index()] = true;
        let mut left = vec![first];
        while let Some(doc) = left.pop() {
            for target in &targets[doc.index()] {
                if !std::mem::replace(&mut reached[target.index()], true) {
                    left.push(*target);
                }
            }
        }
        reached.iter().filter(|reached| **reached).count()
    });
}
