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
    copies: BTreeMap<DocId, DocId>,
    priorities: Vec<u64>,
    sites: Vec<Option<SiteId>>,
}

const N: usize = 24;

fn small() -> impl Strategy<Value = Small> {
    (
        prop::collection::vec(prop::collection::btree_set(0u64..8, 1..6), N),
        prop::collection::btree_map(1u32..N as u32, 0u32..N as u32, 0..8),
        prop::collection::vec(0u64..3, N),
        prop::collection::vec(prop::option::of((0u32..4).prop_map(SiteId)), N),
    )
        .prop_map(|(sets, wished, priorities, sites)| {
            // A copy is larger than what it copies, and nobody copies a copy.
            let mut copies: BTreeMap<DocId, DocId> = BTreeMap::new();
            for (doc, of) in wished {
                let (doc, of) = (DocId(doc), DocId(of));
                if of < doc && !copies.contains_key(&of) {
                    copies.insert(doc, of);
                }
            }
            Small { sets, copies, priorities, sites }
        })
}

impl Small {
    fn text(&self, doc: DocId) -> DocId {
        self.copies.get(&doc).copied().unwrap_or(doc)
    }

    fn resemblance(&self, a: DocId, b: DocId) -> f64 {
        let (a, b) = (&self.sets[self.text(a).index()], &self.sets[self.text(b).index()]);
        a.intersection(b).count() as f64 / a.union(b).count() as f64
    }

    fn pairs(&self, threshold: f64) -> Vec<SharedPair> {
        let texts: Vec<DocId> =
            DocId::range(0..N as u32).filter(|doc| !self.copies.contains_key(doc)).collect();
        let mut pairs = Vec::new();
        for a in &texts {
            for b in texts.iter().filter(|b| *b > a) {
                if self.resemblance(*a, *b) >= threshold {
                    let (x, y) = (&self.sets[a.index()], &self.sets[b.index()]);
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
            DocId::range(0..N as u32)
                .filter(|doc| !self.copies.contains_key(doc))
                .map(|doc| (doc, self.sets[doc.index()].iter().copied().collect()))
                .collect(),
        );
        let attributes = |doc: usize| Attributes {
            doc: DocId::at(doc),
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
    fn naive(
        &self,
        threshold: f64,
        clustering: Clustering,
        ranked: bool,
    ) -> BTreeMap<DocId, BTreeSet<DocId>> {
        let pairs = self.pairs(threshold);
        let wish =
            |doc: DocId| (std::cmp::Reverse(if ranked { self.priorities[doc.index()] } else { 0 }), doc);
        let docs_of = |text: DocId| DocId::range(0..N as u32).filter(move |doc| self.text(*doc) == text);
        let mut groups: BTreeMap<DocId, BTreeSet<DocId>> = BTreeMap::new();
        let texts: Vec<DocId> =
            DocId::range(0..N as u32).filter(|doc| !self.copies.contains_key(doc)).collect();
        match clustering {
            Clustering::Transitive => {
                let labels = naive_components(N, pairs.iter().map(|pair| (pair.a.index(), pair.b.index())));
                for text in texts {
                    groups.entry(DocId::at(labels[text.index()])).or_default().extend(docs_of(text));
                }
                let groups = groups.into_values().filter(|docs| docs.len() > 1);
                groups.map(|docs| (*docs.iter().min_by_key(|doc| wish(**doc)).unwrap(), docs)).collect()
            }
            Clustering::Centred => {
                let text_wish = |text: DocId| (docs_of(text).map(|doc| wish(doc).0).min().unwrap(), text);
                let mut order = texts.clone();
                order.sort_by_key(|text| text_wish(*text));
                let mut taken = BTreeSet::new();
                for text in &order {
                    if !taken.insert(*text) {
                        continue;
                    }
                    let mut docs: BTreeSet<DocId> = docs_of(*text).collect();
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
        let mut found: BTreeMap<DocId, BTreeSet<DocId>> = BTreeMap::new();
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
            let site = |doc: DocId| web.sites[doc.index()];
            let others = members.iter().filter(|row| row.doc != stats.centre);
            let same = others.filter(|row| site(row.doc) == site(stats.centre)).count() as u64;
            let sites: BTreeSet<Option<SiteId>> = members.iter().map(|row| site(row.doc)).collect();
            prop_assert_eq!(stats.documents, members.len() as u64);
            prop_assert_eq!((stats.same_site, stats.cross_site), (same, stats.documents - 1 - same));
            prop_assert_eq!(stats.sites, sites.len() as u64);
            prop_assert_eq!(stats.lowest_resemblance, lowest);
        }
        prop_assert_eq!(found, expected);
        // Clusters are numbered by their smallest document.
        let firsts: Vec<DocId> = seen.clusters.iter().map(|stats| {
            seen.members.iter().find(|row| row.cluster == stats.cluster).unwrap().doc
        }).collect();
        prop_assert!(firsts.is_sorted());
    }
}
