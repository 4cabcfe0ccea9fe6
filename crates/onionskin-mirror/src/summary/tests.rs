use std::collections::{BTreeMap, BTreeSet};

use onionskin_store::MemoryBudget;
use proptest::prelude::*;

use super::*;

fn resources(dir: &tempfile::TempDir, bytes: u64) -> Resources {
    Resources { memory: MemoryBudget::from_bytes(bytes), threads: 1, work_dir: dir.path().to_owned() }
}

/// Links as (from cluster, to cluster, source, destination).
type Links = Vec<((DocId, DocId), (u32, u32))>;

fn naive_summary(links: &Links) -> Vec<LinkSummary> {
    let mut pairs: BTreeMap<(DocId, DocId), (BTreeSet<u32>, BTreeSet<u32>)> = BTreeMap::new();
    for &(pair, (source, destination)) in links {
        let (sources, destinations) = pairs.entry(pair).or_default();
        sources.insert(source);
        destinations.insert(destination);
    }
    let count = |set: BTreeSet<u32>| set.len() as u32;
    pairs
        .into_iter()
        .map(|((from, to), (s, d))| LinkSummary { from, to, sources: count(s), destinations: count(d) })
        .collect()
}

fn summary(links: &Links, bytes: u64) -> (Vec<LinkSummary>, SummaryStats) {
    let dir = tempfile::tempdir().unwrap();
    let mut summarizer = Summarizer::new(&resources(&dir, bytes)).unwrap();
    for &(pair, link) in links {
        summarizer.push(pair, link).unwrap();
    }
    let mut found = Vec::new();
    let stats = summarizer
        .finish(|summary| {
            found.push(summary);
            Ok(())
        })
        .unwrap();
    (found, stats)
}

proptest! {
    #[test]
    fn sorting_counts_what_sets_count(
        links in prop::collection::vec(((0u32..5, 0u32..5).prop_map(|(from, to)| (DocId(from), DocId(to))), (0u32..200, 0u32..200)), 0..600),
        bytes in prop_oneof![Just(512u64), Just(4 << 10), Just(1 << 20)],
    ) {
        prop_assert_eq!(summary(&links, bytes).0, naive_summary(&links));
    }
}

#[test]
fn a_pair_with_more_destinations_than_fit_is_counted_on_disk() {
    let links: Links = (0..5_000).map(|n| ((DocId(1), DocId(2)), (n % 7, n))).collect();
    let (found, stats) = summary(&links, 2 << 10);
    assert_eq!(found, [LinkSummary { from: DocId(1), to: DocId(2), sources: 7, destinations: 5_000 }]);
    assert!(stats.spilled_bytes > 5_000 * 16 + 5_000 * 4, "both sorts spilled: {stats:?}");
}

#[test]
fn no_links_no_pairs() {
    assert_eq!(summary(&Vec::new(), 1 << 20), (Vec::new(), SummaryStats::default()));
}
