use proptest::prelude::*;

use super::super::testing::{Bench, Cluster, pair};
use super::*;
use onionskin_similar::membership::from_clusters_table;
use onionskin_store::table::PairRow;

const DOCUMENTS: u32 = 60;

/// Every document in at most one cluster, any member the centre, some pairs with evidence.
fn arbitrary_clusters() -> impl Strategy<Value = (Vec<Cluster>, Vec<PairRow>)> {
    let member = (0..8_u32, any::<bool>(), 0..100_u32);
    proptest::collection::vec(member, DOCUMENTS as usize).prop_map(|members| {
        let mut groups: Vec<Vec<(u32, bool, u32)>> = vec![Vec::new(); 8];
        for (doc, (group, flag, number)) in (0..).zip(members) {
            groups[group as usize].push((doc, flag, number));
        }
        let (mut clusters, mut pairs) = (Vec::new(), Vec::new());
        // The first group are the documents that are alone.
        for group in groups.into_iter().skip(1).filter(|group| group.len() > 1) {
            let at = group[0].2 as usize % group.len();
            let centre = group[at].0;
            let mut copies = Vec::new();
            for (doc, flag, number) in group.into_iter().filter(|member| member.0 != centre) {
                let share = f64::from(number) / 100.0;
                copies.push((doc, share, if flag { CopyKind::Near } else { CopyKind::Exact }));
                if number % 3 > 0 {
                    pairs.push(pair(doc.min(centre), doc.max(centre), share, share / 2.0, share / 4.0));
                }
            }
            clusters.push((centre, copies));
        }
        pairs.push(pair(0, 1, 0.5, 0.5, 0.5));
        pairs.sort_by_key(|pair| (pair.a, pair.b));
        pairs.dedup_by_key(|pair| (pair.a, pair.b));
        (clusters, pairs)
    })
}

fn bench() -> Bench {
    let bench = Bench::new();
    let lines: String =
        (0..DOCUMENTS).map(|doc| format!("{{\"id\":\"i{doc}\",\"text\":\"text {doc}\"}}\n")).collect();
    bench.write("in/a.jsonl", lines);
    bench.scan(|_| {});
    bench
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Against looking everything up in the lists that the tables were made of, in any memory.
    #[test]
    fn evidence_finds_its_document((clusters, pairs) in arbitrary_clusters(), memory in 600..20_000_u64) {
        let bench = bench();
        bench.clusters(&clusters, &pairs, "centred");
        let atlas = Atlas::open(bench.path("atlas")).unwrap();
        let work = bench.path("work");
        std::fs::create_dir(&work).unwrap();
        let members = from_clusters_table(&atlas, MemoryBudget::from_mib(1), &work).unwrap();
        let gathered = gather(&atlas, members, MemoryBudget::from_bytes(memory), &work).unwrap();
        let mut names = Names::open(&gathered.names).unwrap();
        let clustered = clusters.iter().map(|(_, copies)| copies.len() as u64 + 1).sum::<u64>();
        prop_assert!(memory > 2000 || clustered < 20 || gathered.spilled_bytes > 0);
        let mut seen = 0;
        let mut last = None;
        for entry in gathered.entries {
            let entry = entry.unwrap();
            prop_assert!(last < Some(entry.doc));
            last = Some(entry.doc);
            seen += 1;
            let of = |doc: u32| move |cluster: &&Cluster| cluster.0 == doc || cluster.1.iter().any(|copy| copy.0 == doc);
            let (centre, copies) = clusters.iter().find(of(entry.doc.get())).unwrap();
            prop_assert_eq!((entry.centre.get(), entry.size as usize), (*centre, copies.len() + 1));
            let kept = names.get(entry.name).unwrap();
            prop_assert_eq!((kept.doc.get(), kept.id), (*centre, Some(format!("i{centre}"))));
            let Some((doc, resemblance, kind)) = copies.iter().find(|copy| copy.0 == entry.doc.get()) else {
                prop_assert!(entry.is_centre());
                continue;
            };
            prop_assert_eq!((entry.resemblance(), entry.kind()), (*resemblance, *kind));
            let (a, b) = (*doc.min(centre), *doc.max(centre));
            let expected = pairs.iter().find(|pair| (pair.a.get(), pair.b.get()) == (a, b)).map(|pair| {
                let own = if *doc == a { (pair.containment_a, pair.containment_b) } else { (pair.containment_b, pair.containment_a) };
                Evidence { method: pair.method, containment: own.0, containment_of_kept: own.1 }
            });
            prop_assert_eq!(entry.evidence(), expected);
        }
        prop_assert_eq!(seen, clustered);
    }
}
