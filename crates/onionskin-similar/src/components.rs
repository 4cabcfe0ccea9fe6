//! Connected components of a graph of documents: the transitive closure of "is similar to".
//!
//! The naive way keeps a parent for every document and unites: four bytes per document, and it is
//! what happens as long as they fit. When they do not, the same answer comes from sequential scans
//! over sorted edges: every document hands its neighbours to the smallest one it knows, in two
//! kinds of turns, until each component is a star around its smallest document. (Kiveris et al.
//! 2014 call the turns large-star and small-star; long chains shrink by a constant factor a turn,
//! so that turns are few.)
//!
//! ```text
//! 1 ─ 2 ─ 3 ─ 4      large-star: my larger neighbours meet my smallest one      1 ─ 2   1 ─ 3   2 ─ 4
//!                    small-star: I and my smaller neighbours meet the smallest  1 ─ 2   1 ─ 3   1 ─ 4 …
//! ```

use onionskin_core::{DocId, UnionFind};
use onionskin_store::sort::{SortParams, SortedStream, Sorter};

use crate::{Bits, Resources, SimilarError};

/// Collects edges; gives components.
#[derive(Debug)]
pub struct Components {
    state: State,
    resources: Resources,
}

#[derive(Debug)]
enum State {
    Memory {
        sets: UnionFind<DocId>,
        touched: Bits,
    },
    /// Edges, larger document first.
    Disk {
        edges: Sorter<(DocId, DocId)>,
    },
}

/// What finding components has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComponentStats {
    /// Turns over the edges; 0 when everything was in memory.
    pub turns: u64,
    /// Bytes that sorting wrote to disk.
    pub spilled_bytes: u64,
}

impl Components {
    /// No edges yet, between documents below `documents`. Parents are kept in memory where they fit
    /// a half of it.
    pub fn new(documents: u64, resources: &Resources) -> Result<Components, SimilarError> {
        let fits = documents.saturating_mul(4) + documents / 8 <= resources.memory.bytes() / 2;
        let state = if fits {
            let sets = UnionFind::new(u32::try_from(documents).unwrap_or(u32::MAX));
            State::Memory { sets, touched: Bits::new(documents) }
        } else {
            State::Disk { edges: Sorter::new(sort_params(resources))? }
        };
        Ok(Components { state, resources: resources.clone() })
    }

    /// Two documents belong together.
    pub fn unite(&mut self, a: DocId, b: DocId) -> Result<(), SimilarError> {
        match &mut self.state {
            State::Memory { sets, touched } => {
                touched.set(a);
                touched.set(b);
                // A document above the number that was announced: the pairs come from elsewhere.
                sets.extend_to(a.max(b));
                sets.join(a, b);
                Ok(())
            }
            State::Disk { edges } => Ok(edges.push((a.max(b), a.min(b)))?),
        }
    }

    /// Every document that was united with something, itself included, and the smallest of its
    /// component, in order.
    pub fn finish(
        self,
        mut emit: impl FnMut(DocId, DocId) -> Result<(), SimilarError>,
    ) -> Result<ComponentStats, SimilarError> {
        match self.state {
            State::Memory { sets, touched } => {
                for (doc, root) in DocId::MIN.onward().zip(sets.into_roots()) {
                    if touched.get(doc) {
                        emit(doc, root)?;
                    }
                }
                Ok(ComponentStats::default())
            }
            State::Disk { edges } => on_disk(edges.finish()?, &self.resources, emit),
        }
    }
}

/// Two sorts are alive at a time, and the one that is read needs little.
fn sort_params(resources: &Resources) -> SortParams {
    SortParams::new(&resources.work_dir, resources.memory.share(2, 5)).dedup()
}

/// An order-free sum over edges, to see whether a turn changed anything.
fn digest(edge: (DocId, DocId)) -> u64 {
    onionskin_core::scramble(u64::from(edge.0) << 32 | u64::from(edge.1))
}

fn on_disk(
    mut edges: SortedStream<(DocId, DocId)>,
    resources: &Resources,
    mut emit: impl FnMut(DocId, DocId) -> Result<(), SimilarError>,
) -> Result<ComponentStats, SimilarError> {
    let mut stats = ComponentStats::default();
    let mut last = None;
    loop {
        stats.spilled_bytes += edges.stats().spilled_bytes;
        stats.turns += 1;
        // Large-star: edges both ways; in the group of a document its smallest neighbour comes
        // first.
        let mut both = Sorter::new(sort_params(resources))?;
        for edge in edges {
            let (a, b) = edge?;
            both.push((a, b))?;
            both.push((b, a))?;
        }
        let both = both.finish()?;
        stats.spilled_bytes += both.stats().spilled_bytes;
        let mut handed = Sorter::new(sort_params(resources))?;
        let (mut group, mut least) = (None, DocId::MIN);
        for edge in both {
            let (doc, neighbour) = edge?;
            if group != Some(doc) {
                (group, least) = (Some(doc), doc.min(neighbour));
            }
            if neighbour > doc {
                handed.push((neighbour, least))?;
            }
        }
        // Small-star: the same among smaller neighbours only, which is how the edges are sorted.
        let mut next = Sorter::new(sort_params(resources))?;
        let (mut group, mut least) = (None, DocId::MIN);
        let handed = handed.finish()?;
        stats.spilled_bytes += handed.stats().spilled_bytes;
        for edge in handed {
            let (doc, neighbour) = edge?;
            if group != Some(doc) {
                (group, least) = (Some(doc), neighbour);
                next.push((doc, least))?;
            } else if neighbour != least {
                next.push((neighbour, least))?;
            }
        }
        let mut sum = (0u64, 0u64);
        let next = next.finish()?;
        // The edges are needed twice: summed here, used in the next turn.
        let mut kept = Sorter::new(sort_params(resources))?;
        for edge in next {
            let edge = edge?;
            sum = (sum.0 + 1, sum.1.wrapping_add(digest(edge)));
            kept.push(edge)?;
        }
        edges = kept.finish()?;
        if last == Some(sum) {
            break;
        }
        last = Some(sum);
    }
    // Now every edge leads to the smallest of its component, which lacks an entry of its own.
    let mut all = Sorter::new(sort_params(resources))?;
    for edge in edges {
        let (doc, root) = edge?;
        all.push((doc, root))?;
        all.push((root, root))?;
    }
    for entry in all.finish()? {
        let (doc, root) = entry?;
        emit(doc, root)?;
    }
    Ok(stats)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onionskin_store::MemoryBudget;
    use onionskin_testkit::naive::naive_components;
    use proptest::prelude::*;

    fn run(n: u32, edges: &[(u32, u32)], memory: u64) -> (Vec<(u32, u32)>, ComponentStats) {
        let dir = tempfile::tempdir().unwrap();
        let memory = MemoryBudget::from_bytes(memory);
        let resources = Resources { memory, threads: 1, work_dir: dir.path().to_owned() };
        let mut components = Components::new(u64::from(n), &resources).unwrap();
        for (a, b) in edges {
            components.unite(DocId(*a), DocId(*b)).unwrap();
        }
        let mut found = Vec::new();
        let stats = components.finish(|doc, root| {
            found.push((doc.get(), root.get()));
            Ok(())
        });
        (found, stats.unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn both_ways_equal_the_definition(edges in prop::collection::vec((0u32..80, 0u32..80), 0..90)) {
            let edges: Vec<(u32, u32)> = edges.into_iter().filter(|(a, b)| a != b).collect();
            let labels = naive_components(80, edges.iter().map(|(a, b)| (*a as usize, *b as usize)));
            let expected: Vec<(u32, u32)> = (0..80u32)
                .filter(|doc| edges.iter().any(|(a, b)| a == doc || b == doc))
                .map(|doc| (doc, labels[doc as usize] as u32))
                .collect();
            prop_assert_eq!(&run(80, &edges, 1 << 20).0, &expected);
            let (found, stats) = run(80, &edges, 512);
            prop_assert_eq!(&found, &expected);
            prop_assert!(edges.is_empty() || stats.turns > 0);
        }
    }

    #[test]
    fn a_long_chain_takes_few_turns() {
        let n = 20_000u32;
        // In a scrambled order, so that neighbours are far apart.
        let place = |i: u32| (u64::from(i) * 7919 % u64::from(n)) as u32;
        let edges: Vec<(u32, u32)> = (1..n).map(|i| (place(i - 1), place(i))).collect();
        let (found, stats) = run(n, &edges, 64 << 10);
        assert_eq!(found.len(), n as usize);
        assert!(found.iter().all(|(_, root)| *root == 0));
        assert!((1..30).contains(&stats.turns) && stats.spilled_bytes > 0, "{stats:?}");
    }
}
