use std::collections::BTreeSet;

use super::*;
use crate::Resources;
use crate::cluster::Rows;
use onionskin_core::{ClusterId, SplitMix64, Threshold, UnionFind};
use onionskin_store::MemoryBudget;
use onionskin_store::table::CopyKind;
use onionskin_testkit::naive::naive_pairs;
use proptest::prelude::*;

fn resources(dir: &tempfile::TempDir) -> Resources {
    Resources { memory: MemoryBudget::from_mib(16), threads: 1, work_dir: dir.path().to_owned() }
}

/// Clusters of edited copies in a sea of documents, and a chunk that all have.
fn web(n: u32, seed: u64) -> Vec<(DocId, Vec<u64>)> {
    let mut rng = SplitMix64::new(seed);
    (0..n)
        .map(|doc| {
            let base = u64::from(doc / 3) << 20;
            let edits = rng.next_u64() % 4;
            let mut set: Vec<u64> =
                (0..30).map(|i| base + if i < edits { 1000 + rng.next_u64() % 1000 } else { i }).collect();
            set.push(7);
            set.dedup();
            (DocId(doc), set)
        })
        .collect()
}

fn as_pairs(web: &[(DocId, Vec<u64>)], bound: Bound) -> Vec<SharedPair> {
    let sets: Vec<BTreeSet<u64>> = web.iter().map(|(_, set)| set.iter().copied().collect()).collect();
    let all = naive_pairs(&sets, 0.01).into_iter().map(|(a, b, _)| {
        let shared = sets[a].intersection(&sets[b]).count() as u32;
        SharedPair {
            a: DocId::at(a),
            b: DocId::at(b),
            shared,
            size_a: sets[a].len() as u32,
            size_b: sets[b].len() as u32,
        }
    });
    all.filter(|pair| bound.holds(pair.shared, pair.size_a, pair.size_b)).collect()
}

/// Clusters of what is connected, each with its smallest document as the centre.
fn members(n: u32, pairs: &[SharedPair]) -> Vec<ClusterRow> {
    let mut sets = UnionFind::<DocId>::new(n);
    for pair in pairs {
        sets.join(pair.a, pair.b);
    }
    let roots: Vec<u32> = sets.into_roots().into_iter().map(DocId::get).collect();
    let size = |root: u32| roots.iter().filter(|other| **other == root).count();
    let in_cluster = (0..n).filter(|doc| size(roots[*doc as usize]) > 1);
    let rows = in_cluster.map(|doc| {
        let root = roots[doc as usize];
        let is_centre = roots.iter().position(|other| *other == root) == Some(doc as usize);
        let (cluster, doc) = (ClusterId(root), DocId(doc));
        ClusterRow { cluster, doc, is_centre, resemblance_to_centre: 1.0, kind: CopyKind::Near }
    });
    rows.collect()
}

/// Calls `measure` with what was found.
fn with_found<T>(pairs: &[SharedPair], members: &[ClusterRow], measure: impl FnOnce(Found<'_>) -> T) -> T {
    let pairs =
        || -> Result<Rows<'_, SharedPair>, SimilarError> { Ok(Box::new(pairs.iter().copied().map(Ok))) };
    let members =
        || -> Result<Rows<'_, ClusterRow>, SimilarError> { Ok(Box::new(members.iter().copied().map(Ok))) };
    measure(Found { pairs: &pairs, members: Some(&members) })
}

/// The shares of true pairs that are listed, in one cluster, and of which both are kept.
fn naive_shares(truth: &[SharedPair], listed: &[SharedPair], members: &[ClusterRow]) -> [f64; 3] {
    let member = |doc: DocId| members.iter().find(|member| member.doc == doc);
    let kept = |doc: DocId| member(doc).is_none_or(|member| member.is_centre);
    let together = |pair: &SharedPair| {
        member(pair.a).is_some_and(|a| member(pair.b).is_some_and(|b| a.cluster == b.cluster))
    };
    let share = |n: usize| n as f64 / truth.len() as f64;
    [
        share(truth.iter().filter(|pair| listed.contains(pair)).count()),
        share(truth.iter().filter(|pair| together(pair)).count()),
        share(truth.iter().filter(|pair| kept(pair.a) && kept(pair.b)).count()),
    ]
}

fn assert_shares(recall: &Recall, naive: [f64; 3], tolerance: f64) {
    let found = [recall.listed, recall.clustered, recall.leaked].map(Option::unwrap);
    for (found, naive) in found.into_iter().zip(naive) {
        assert!((found.value - naive).abs() <= tolerance, "{found:?} {naive}");
        assert!(found.low <= naive + tolerance && naive <= found.high + tolerance, "{found:?} {naive}");
    }
}

/// Sets as sketches of `t` minima, each minimum with its number.
fn sketched(web: &[(DocId, Vec<u64>)], t: u64) -> Vec<(DocId, Vec<u64>)> {
    let min = |set: &[u64], i: u64| {
        set.iter().map(|chunk| scramble(scramble(i) ^ chunk) >> 32).min().map(|min| i << 32 | min)
    };
    web.iter().map(|(doc, set)| (*doc, (0..t).filter_map(|i| min(set, i)).collect())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn a_sample_of_everything_counts_everything(seed: u64, lost in 1usize..5, percent in 60u32..95) {
        // So few that a chunk which all have, and which by chance seems rare, leaves no neighbour
        // out.
        let n = MOST_NEIGHBOURS as u32;
        let web = web(n, seed);
        let bound = Bound::Resemblance(f64::from(percent) / 100.0);
        let all = as_pairs(&web, bound);
        let kept: Vec<SharedPair> = all.iter().enumerate().filter(|(i, _)| i % lost == 0).map(|(_, pair)| *pair).collect();
        let sets = ChunkSets::in_memory(web);
        let members = members(n, &kept);
        let recall = with_found(&kept, &members, |found| measure(&sets, n.into(), bound, seed, found, 0)).unwrap();
        prop_assert_eq!(recall.sampled, u64::from(n));
        // Every pair is seen from both of its ends.
        prop_assert_eq!(recall.true_pairs, 2 * all.len() as u64);
        prop_assert_eq!(recall.listed_pairs, 2 * kept.len() as u64);
        prop_assert_eq!(recall.checked_pairs, 2 * kept.len() as u64);
        if !all.is_empty() {
            assert_shares(&recall, naive_shares(&all, &kept, &members), 1e-9);
            prop_assert_eq!(recall.precision.unwrap().value, 1.0);
        }
    }

    /// With sketches the same is counted, but for pairs that agree in few minima by chance.
    #[test]
    fn sketches_find_what_an_exact_join_finds(seed: u64, lost in 1usize..5, percent in 60u32..95, known: bool) {
        let dir = tempfile::tempdir().unwrap();
        let n = 200;
        let web = web(n, seed);
        let threshold = f64::from(percent) / 100.0;
        let bound = Bound::Resemblance(threshold);
        let all = as_pairs(&web, bound);
        let listed: Vec<SharedPair> = all.iter().enumerate().filter(|(i, _)| i % lost == 0).map(|(_, pair)| *pair).collect();
        // What the search has verified: what it lists and some that are not similar, or no more
        // than it lists.
        let different = as_pairs(&web, Bound::Resemblance(0.01)).into_iter().filter(|pair| known && !all.contains(pair));
        let looked_at: Vec<(DocId, DocId)> = different.chain(listed.iter().copied()).map(|pair| (pair.a, pair.b)).collect();
        let verified = || -> Result<Rows<'_, (DocId, DocId)>, SimilarError> { Ok(Box::new(looked_at.iter().copied().map(Ok))) };
        let least = Threshold::new(onionskin_core::feature::least_agreement(84, threshold, 0.001) as u32).unwrap();
        let sketches = ChunkSets::in_memory(sketched(&web, 84));
        let net = Net { sketches: &sketches, least, verified: &verified };
        let sets = ChunkSets::in_memory(web);
        let members = members(n, &listed);
        let recall = with_found(&listed, &members, |found| {
            measure_by_sketches(&net, &sets, n.into(), bound, seed, found, &resources(&dir))
        }).unwrap();
        prop_assert_eq!(recall.sampled, u64::from(n));
        // One true pair in a thousand may be missing, listed or not; all that are there are true.
        for (found, there) in [(recall.true_pairs, all.len()), (recall.listed_pairs, listed.len())] {
            let there = 2 * there as u64;
            prop_assert!(found <= there && found + 2 * 3 >= there, "{} of {}", found, there);
        }
        if !all.is_empty() {
            assert_shares(&recall, naive_shares(&all, &listed, &members), 3.0 / all.len() as f64 + 1e-9);
        }
        prop_assert_eq!((recall.checked_pairs, recall.precision), (0, None));
    }
}

#[test]
fn false_pairs_lower_the_precision() {
    let web = web(300, 5);
    let bound = Bound::Resemblance(0.8);
    let mut listed = as_pairs(&web, bound);
    let truth = listed.len();
    listed.extend((0..truth as u32).map(|i| SharedPair {
        a: DocId(i / 199),
        b: DocId(100 + i % 199),
        shared: 1,
        size_a: 30,
        size_b: 30,
    }));
    listed.sort();
    assert!(listed.windows(2).all(|two| (two[0].a, two[0].b) != (two[1].a, two[1].b)));
    let sets = ChunkSets::in_memory(web);
    let recall = with_found(&listed, &[], |found| measure(&sets, 300, bound, 1, found, 0)).unwrap();
    assert_eq!((recall.listed.unwrap().value, recall.precision.unwrap().value), (1.0, 0.5));
    // Nothing is in a cluster, so nothing is removed.
    assert_eq!((recall.clustered.unwrap().value, recall.leaked.unwrap().value), (0.0, 1.0));
}

#[test]
fn a_crowd_is_estimated_from_a_part() {
    // All 4,000 are near copies of each other: eight million pairs. A third of the documents is
    // listed with the first.
    let web: Vec<(DocId, Vec<u64>)> =
        DocId::range(0..4000).map(|doc| (doc, (0..40).chain([1000 + u64::from(doc)]).collect())).collect();
    let bound = Bound::Resemblance(0.9);
    let listed: Vec<SharedPair> = DocId::range(1..4000)
        .step_by(3)
        .map(|b| SharedPair { a: DocId(0), b, shared: 40, size_a: 41, size_b: 41 })
        .collect();
    let members = members(4000, &listed);
    let sketches = ChunkSets::in_memory(sketched(&web, 84));
    let sets = ChunkSets::in_memory(web);
    let dir = tempfile::tempdir().unwrap();
    let verified = || -> Result<Rows<'_, (DocId, DocId)>, SimilarError> {
        Ok(Box::new(listed.iter().map(|pair| Ok((pair.a, pair.b)))))
    };
    let net = Net { sketches: &sketches, least: Threshold::new(67).unwrap(), verified: &verified };
    let by_sketches = with_found(&listed, &members, |found| {
        measure_by_sketches(&net, &sets, 4000, bound, 1, found, &resources(&dir)).unwrap()
    });
    // The pairs of a few sampled documents are verified, not those of all.
    assert!(by_sketches.sampled < 1000 && by_sketches.sampled > 100, "{by_sketches:?}");
    let by_shingles =
        with_found(&listed, &members, |found| measure(&sets, 4000, bound, 1, found, 0)).unwrap();
    for recall in [by_shingles, by_sketches] {
        assert!(recall.true_pairs < 4000 * MOST_NEIGHBOURS as u64, "{recall:?}");
        // Two documents are in one cluster when both are among the third: one pair in nine. Both
        // are kept when neither is: four in nine.
        for (share, expected) in [(recall.clustered, 1.0 / 9.0), (recall.leaked, 4.0 / 9.0)] {
            let share = share.unwrap();
            assert!((share.value - expected).abs() < 0.1, "{share:?}");
            assert!(share.low <= expected && expected <= share.high, "{share:?}");
        }
    }
}
