use std::collections::{BTreeMap, BTreeSet};

use super::*;
use onionskin_store::MemoryBudget;
use onionskin_testkit::naive::naive_components;
use proptest::prelude::*;

#[derive(Default)]
struct Seen {
    members: Vec<ClusterRow>,
    clusters: Vec<ClusterStatsRow>,
}

impl ClusterSink for Seen {
    fn member(&mut self, row: ClusterRow) -> Result<(), SimilarError> {
        self.members.push(row);
        Ok(())
    }
    fn cluster(&mut self, row: ClusterStatsRow) -> Result<(), SimilarError> {
        self.clusters.push(row);
        Ok(())
    }
}

/// A small web: sets of chunks, copies of documents, priorities, sites.
#[derive(Clone, Debug)]
struct Small {
    sets: Vec<BTreeSet<u64>>,
    copies: BTreeMap<u32, u32>,
    priorities: Vec<u64>,
    sites: Vec<Option<u32>>,
}

const N: usize = 24;

fn small() -> impl Strategy<Value = Small> {
    (
        prop::collection::vec(prop::collection::btree_set(0u64..8, 1..6), N),
        prop::collection::btree_map(1u32..N as u32, 0u32..N as u32, 0..8),
        prop::collection::vec(0u64..3, N),
        prop::collection::vec(prop::option::of(0u32..4), N),
    )
        .prop_map(|(sets, wished, priorities, sites)| {
            // A copy is larger than what it copies, and nobody copies a copy.
            let mut copies: BTreeMap<u32, u32> = BTreeMap::new();
            for (doc, of) in wished {
                if of < doc && !copies.contains_key(&of) {
                    copies.insert(doc, of);
                }
            }
            Small { sets, copies, priorities, sites }
        })
}

impl Small {
    fn text(&self, doc: u32) -> u32 {
        self.copies.get(&doc).copied().unwrap_or(doc)
    }

    fn resemblance(&self, a: u32, b: u32) -> f64 {
        let (a, b) = (&self.sets[self.text(a) as usize], &self.sets[self.text(b) as usize]);
        a.intersection(b).count() as f64 / a.union(b).count() as f64
    }

    fn pairs(&self, threshold: f64) -> Vec<SharedPair> {
        let texts: Vec<u32> = (0..N as u32).filter(|doc| !self.copies.contains_key(doc)).collect();
        let mut pairs = Vec::new();
        for a in &texts {
            for b in texts.iter().filter(|b| *b > a) {
                if self.resemblance(*a, *b) >= threshold {
                    let (x, y) = (&self.sets[*a as usize], &self.sets[*b as usize]);
                    let shared = x.intersection(y).count() as u32;
                    pairs.push(SharedPair {
                        a: *a,
                        b: *b,
                        shared,
                        size_a: x.len() as u32,
                        size_b: y.len() as u32,
                    });
                }
            }
        }
        pairs
    }

    fn run(&self, threshold: f64, clustering: Clustering, ranked: bool, memory: u64) -> Seen {
        let dir = tempfile::tempdir().unwrap();
        let memory = MemoryBudget::from_bytes(memory);
        let resources = Resources { memory, threads: 2, work_dir: dir.path().to_owned() };
        let pairs = self.pairs(threshold);
        let sets = ChunkSets::in_memory(
            (0..N as u32)
                .filter(|doc| !self.copies.contains_key(doc))
                .map(|doc| (doc, self.sets[doc as usize].iter().copied().collect()))
                .collect(),
        );
        let attributes = |doc: usize| Attributes {
            doc: doc as u32,
            priority: if ranked { self.priorities[doc] } else { 0 },
            site: self.sites[doc],
            can_lead: true,
        };
        let input = ClusterInput {
            clustering,
            documents: N as u64,
            copies: &|| Ok(Box::new(self.copies.iter().map(|(doc, of)| Ok((*doc, *of))))),
            pairs: &|| Ok(Box::new(pairs.iter().map(|pair| Ok(*pair)))),
            attributes: &|| Ok(Box::new((0..N).map(move |doc| Ok(attributes(doc))))),
            ranked,
            sets: Some(&sets),
        };
        let mut seen = Seen::default();
        cluster(&input, &resources, &mut seen).unwrap();
        seen
    }

    /// Who belongs with whom, the centre first.
    fn naive(&self, threshold: f64, clustering: Clustering, ranked: bool) -> BTreeMap<u32, BTreeSet<u32>> {
        let pairs = self.pairs(threshold);
        let wish =
            |doc: u32| (std::cmp::Reverse(if ranked { self.priorities[doc as usize] } else { 0 }), doc);
        let docs_of = |text: u32| (0..N as u32).filter(move |doc| self.text(*doc) == text);
        let mut groups: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        let texts: Vec<u32> = (0..N as u32).filter(|doc| !self.copies.contains_key(doc)).collect();
        match clustering {
            Clustering::Transitive => {
                let labels = naive_components(N, pairs.iter().map(|pair| (pair.a as usize, pair.b as usize)));
                for text in texts {
                    groups.entry(labels[text as usize] as u32).or_default().extend(docs_of(text));
                }
                let groups = groups.into_values().filter(|docs| docs.len() > 1);
                groups.map(|docs| (*docs.iter().min_by_key(|doc| wish(**doc)).unwrap(), docs)).collect()
            }
            Clustering::Centred => {
                let text_wish = |text: u32| (docs_of(text).map(|doc| wish(doc).0).min().unwrap(), text);
                let mut order = texts.clone();
                order.sort_by_key(|text| text_wish(*text));
                let mut taken = BTreeSet::new();
                for text in &order {
                    if !taken.insert(*text) {
                        continue;
                    }
                    let mut docs: BTreeSet<u32> = docs_of(*text).collect();
                    for other in &texts {
                        let similar = pairs
                            .iter()
                            .any(|pair| (pair.a, pair.b) == ((*text).min(*other), (*text).max(*other)));
                        if similar && taken.insert(*other) {
                            docs.extend(docs_of(*other));
                        }
                    }
                    if docs.len() > 1 {
                        groups.insert(docs_of(*text).min_by_key(|doc| wish(*doc)).unwrap(), docs);
                    }
                }
                groups
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn clusters_are_what_the_definition_says(
        web in small(),
        threshold in 3u32..9,
        ranked: bool,
        centred: bool,
        tight: bool,
    ) {
        let threshold = f64::from(threshold) / 10.0;
        let clustering = if centred { Clustering::Centred } else { Clustering::Transitive };
        let seen = web.run(threshold, clustering, ranked, if tight { 1 << 10 } else { 16 << 20 });
        let expected = web.naive(threshold, clustering, ranked);
        let mut found: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for stats in &seen.clusters {
            let members: Vec<&ClusterRow> = seen.members.iter().filter(|row| row.cluster == stats.cluster).collect();
            found.insert(stats.centre, members.iter().map(|row| row.doc).collect());
            let mut lowest = 1f64;
            for row in &members {
                prop_assert_eq!(row.is_centre, row.doc == stats.centre);
                prop_assert_eq!(row.resemblance_to_centre, web.resemblance(row.doc, stats.centre));
                prop_assert_eq!(row.kind == CopyKind::Exact, web.text(row.doc) == web.text(stats.centre));
                prop_assert!(!centred || row.resemblance_to_centre >= threshold);
                lowest = lowest.min(row.resemblance_to_centre);
            }
            let site = |doc: u32| web.sites[doc as usize];
            let others = members.iter().filter(|row| row.doc != stats.centre);
            let same = others.filter(|row| site(row.doc) == site(stats.centre)).count() as u64;
            let sites: BTreeSet<Option<u32>> = members.iter().map(|row| site(row.doc)).collect();
            prop_assert_eq!(stats.documents, members.len() as u64);
            prop_assert_eq!((stats.same_site, stats.cross_site), (same, stats.documents - 1 - same));
            prop_assert_eq!(stats.sites, sites.len() as u64);
            prop_assert_eq!(stats.lowest_resemblance, lowest);
        }
        prop_assert_eq!(found, expected);
        // Clusters are numbered by their smallest document.
        let firsts: Vec<u32> = seen.clusters.iter().map(|stats| {
            seen.members.iter().find(|row| row.cluster == stats.cluster).unwrap().doc
        }).collect();
        prop_assert!(firsts.is_sorted());
    }
}
