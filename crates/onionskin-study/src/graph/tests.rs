use super::*;
use onionskin_core::SplitMix64;
use proptest::prelude::*;

/// Links by the numbers of their documents.
fn ids(links: &[(u32, u32)]) -> impl Iterator<Item = Result<(DocId, DocId), Infallible>> {
    links.iter().map(|(src, dest)| Ok((DocId(*src), DocId(*dest))))
}

/// In memory and from a file.
fn both(nodes: u32, links: &[(u32, u32)], dir: &Path) -> [LinkGraph; 2] {
    let mut links = links.to_vec();
    links.sort_unstable();
    [u64::MAX, 0].map(|limit| LinkGraph::build(nodes, ids(&links), limit, dir).unwrap())
}

/// `closure[a][b]`: b is reached from a by some links, or none.
fn naive_closure(n: usize, links: &[(u32, u32)]) -> Vec<Vec<bool>> {
    let mut closure = vec![vec![false; n]; n];
    (0..n).for_each(|doc| closure[doc][doc] = true);
    links.iter().for_each(|(a, b)| closure[*a as usize][*b as usize] = true);
    for via in 0..n {
        for a in 0..n {
            for b in 0..n {
                closure[a][b] |= closure[a][via] && closure[via][b];
            }
        }
    }
    closure
}

fn naive_bow_tie(nodes: u32, links: &[(u32, u32)]) -> BowTieFacts {
    let n = nodes as usize;
    let closure = naive_closure(n, links);
    let both_ways: Vec<(u32, u32)> = links.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
    let weak = naive_closure(n, &both_ways);
    let strong = |a: usize| (0..n).filter(|b| closure[a][*b] && closure[*b][a]).collect::<Vec<_>>();
    let mut components: Vec<Vec<usize>> = (0..n).map(strong).collect();
    components.sort();
    components.dedup();
    let largest = components.iter().map(Vec::len).max().unwrap_or(0);
    let core = components.iter().filter(|c| c.len() == largest).min().cloned().unwrap_or_default();
    let basic = |doc: usize| {
        let from_core = core.iter().any(|c| closure[*c][doc]);
        let to_core = core.iter().any(|c| closure[doc][*c]);
        (from_core, to_core)
    };
    let is_in = |doc: usize| basic(doc) == (false, true);
    let is_out = |doc: usize| basic(doc) == (true, false);
    let part = |doc: usize| match basic(doc) {
        (true, true) => Part::Core,
        (false, true) => Part::In,
        (true, false) => Part::Out,
        _ if (0..n).any(|a| is_in(a) && closure[a][doc]) && (0..n).any(|b| is_out(b) && closure[doc][b]) => {
            Part::Tube
        }
        _ if core.iter().any(|c| weak[*c][doc]) => Part::Tendril,
        _ => Part::Disconnected,
    };
    let largest_weak = weak.iter().map(|row| row.iter().filter(|is| **is).count()).max().unwrap_or(0);
    ((0..n).map(part).collect(), components.len() as u64, largest_weak as u64)
}

/// Parts, strong components, documents of the largest weak one.
type BowTieFacts = (Vec<Part>, u64, u64);

fn facts(bow: &BowTie) -> BowTieFacts {
    for part in Part::ALL {
        assert_eq!(bow.count(part), bow.documents(part).count() as u64);
    }
    (bow.parts().to_vec(), bow.strong_components(), bow.largest_weak())
}

/// Documents by distance from the seeds, by asking for every number of links.
fn naive_depths(nodes: u32, links: &[(u32, u32)], seeds: &[u32]) -> Vec<Option<usize>> {
    let mut depths = vec![None; nodes as usize];
    seeds.iter().for_each(|seed| depths[*seed as usize] = Some(0));
    for depth in 0..nodes as usize {
        for (a, b) in links {
            if depths[*a as usize] == Some(depth) && depths[*b as usize].is_none() {
                depths[*b as usize] = Some(depth + 1);
            }
        }
    }
    depths
}

/// Sparse and dense ones: around one link a document all parts are there.
fn webs() -> impl Strategy<Value = (u32, Vec<(u32, u32)>)> {
    (1u32..24).prop_flat_map(|nodes| {
        let link = (0..nodes, 0..nodes);
        (Just(nodes), prop::collection::vec(link, 0..2 * nodes as usize + 4))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn the_bow_tie_equals_the_definition((nodes, links) in webs()) {
        let dir = tempfile::tempdir().unwrap();
        let expected = naive_bow_tie(nodes, &links);
        for mut graph in both(nodes, &links, dir.path()) {
            prop_assert_eq!(facts(&bow_tie(&mut graph).unwrap()), expected.clone());
        }
    }

    #[test]
    fn crawls_equal_the_definition((nodes, links) in webs(), seeds in prop::collection::vec(0u32..24, 0..4)) {
        let dir = tempfile::tempdir().unwrap();
        let seeds: Vec<u32> = seeds.into_iter().filter(|seed| *seed < nodes).collect();
        let expected = naive_depths(nodes, &links, &seeds);
        for mut graph in both(nodes, &links, dir.path()) {
            let crawl = crawl(&mut graph, seeds.iter().copied().map(DocId)).unwrap();
            for (doc, depth) in DocId::range(0..nodes).zip(&expected) {
                prop_assert_eq!(crawl.reached(doc), depth.is_some());
            }
            for (depth, count) in crawl.by_depth().iter().enumerate() {
                let there = expected.iter().filter(|d| **d == Some(depth)).count();
                prop_assert_eq!(*count, there as u64);
            }
            prop_assert_eq!(crawl.documents(), expected.iter().flatten().count() as u64);
        }
    }
}

#[test]
fn every_part_is_found() {
    // 0 ⇄ 1 the core, 2 in, 3 out, 4 a tube, 5 hangs on in, 6 leads to out, 7 hangs on 6 alone, 8 →
    // 9 apart.
    let links = [(0, 1), (1, 0), (2, 0), (1, 3), (2, 4), (4, 3), (2, 5), (6, 3), (6, 7), (8, 9)];
    let dir = tempfile::tempdir().unwrap();
    use Part::*;
    let expected = [Core, Core, In, Out, Tube, Tendril, Tendril, Tendril, Disconnected, Disconnected];
    for mut graph in both(10, &links, dir.path()) {
        let bow = bow_tie(&mut graph).unwrap();
        assert_eq!(bow.parts(), expected);
        assert_eq!((bow.strong_components(), bow.largest_weak(), bow.part(DocId(99))), (9, 8, Disconnected));
    }
}

#[test]
fn of_two_largest_components_the_one_with_the_smallest_document_is_the_core() {
    let dir = tempfile::tempdir().unwrap();
    let [mut graph, _] = both(6, &[(5, 1), (1, 5), (2, 3), (3, 2), (1, 2), (0, 4)], dir.path());
    assert_eq!(bow_tie(&mut graph).unwrap().documents(Part::Core).collect::<Vec<_>>(), [DocId(1), DocId(5)]);
}

#[test]
fn nothing_and_nothing_linked() {
    let dir = tempfile::tempdir().unwrap();
    for mut graph in both(0, &[], dir.path()) {
        let bow = bow_tie(&mut graph).unwrap();
        assert_eq!(facts(&bow), (vec![], 0, 0));
        assert!(crawl(&mut graph, []).unwrap().by_depth().is_empty());
        assert!(graph.targets(DocId(0)).is_err());
    }
    for mut graph in both(3, &[], dir.path()) {
        let bow = bow_tie(&mut graph).unwrap();
        assert_eq!(facts(&bow), (vec![Part::Core, Part::Disconnected, Part::Disconnected], 3, 1));
    }
}

#[test]
fn a_chain_of_a_million_needs_no_deep_stack() {
    let n = 1_000_000;
    let dir = tempfile::tempdir().unwrap();
    // There and back again at the end: one component out of all but the first.
    let links: Vec<(u32, u32)> =
        (0..n).map(|doc| if doc + 1 < n { (doc, doc + 1) } else { (doc, 1) }).collect();
    for limit in [u64::MAX, 0] {
        let mut graph = LinkGraph::build(n, ids(&links), limit, dir.path()).unwrap();
        let bow = bow_tie(&mut graph).unwrap();
        assert_eq!((bow.count(Part::In), bow.count(Part::Core)), (1, u64::from(n) - 1));
        assert_eq!(crawl(&mut graph, [DocId(0)]).unwrap().by_depth().len(), n as usize);
    }
}

#[test]
fn a_document_with_many_links_is_read_in_parts() {
    // Every return to document 0 goes on in its links, which are more than one read.
    let n = 50_000u32;
    let dir = tempfile::tempdir().unwrap();
    let links: Vec<(u32, u32)> =
        (1..n).map(|doc| (0, doc)).chain((1..n).filter(|doc| doc % 2 == 0).map(|doc| (doc, 0))).collect();
    let [mut memory, mut file] = both(n, &links, dir.path());
    let bow = bow_tie(&mut memory).unwrap();
    assert_eq!(bow.count(Part::Core), u64::from(n).div_ceil(2));
    assert!(bow == bow_tie(&mut file).unwrap());
}

#[test]
fn targets_are_the_same_in_any_order_and_within_the_limit() {
    let (nodes, mut rng) = (20_000u32, SplitMix64::new(5));
    let mut links: Vec<(u32, u32)> =
        (0..200_000).map(|_| (rng.next_u32() % nodes, rng.next_u32() % nodes)).collect();
    links.sort_unstable();
    let distinct = {
        let mut links = links.clone();
        links.dedup();
        links.len() as u64
    };
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("made/when/needed");
    let offsets = 8 * (u64::from(nodes) + 1);
    let build = |limit| LinkGraph::build(nodes, ids(&links), limit, &work).unwrap();
    let mut memory = build(offsets + 4 * distinct);
    assert!(!work.exists(), "a graph that fits writes nothing");
    let mut file = build(offsets + 4 * distinct - 1);
    assert!(!memory.is_on_disk() && file.is_on_disk());
    assert_eq!((memory.links(), file.links(), memory.nodes()), (distinct, distinct, nodes));
    assert_eq!(memory.bytes(), offsets + 4 * distinct);
    for step in 0..3 * nodes {
        // Once through in order, then by chance.
        let doc = if step < nodes { step } else { rng.next_u32() % nodes };
        let expected: Vec<DocId> = {
            let from = links.partition_point(|(src, _)| *src < doc);
            let here = links[from..].iter().take_while(|(src, _)| *src == doc);
            let mut dests: Vec<DocId> = here.map(|(_, dest)| DocId(*dest)).collect();
            dests.dedup();
            dests
        };
        let doc = DocId(doc);
        assert_eq!(memory.targets(doc).unwrap(), expected, "document {doc}");
        assert_eq!(file.targets(doc).unwrap(), expected, "document {doc}");
        assert_eq!(file.degree(doc).unwrap() as usize, expected.len());
    }
    assert!(file.bytes() < offsets + (256 << 10), "{} bytes", file.bytes());
    let files = || fs::read_dir(&work).unwrap().count();
    assert_eq!(files(), 1);
    drop(file);
    assert_eq!(files(), 0, "the file goes with the graph");
}

#[test]
fn what_is_not_a_sorted_list_of_links_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let build = |links: &[(u32, u32)]| LinkGraph::build(3, ids(links), 1 << 20, dir.path());
    assert!(matches!(
        build(&[(1, 2), (1, 1)]),
        Err(GraphError::OutOfOrder { src: DocId(1), dest: DocId(1) })
    ));
    assert!(matches!(build(&[(1, 2), (0, 1)]), Err(GraphError::OutOfOrder { .. })));
    assert!(matches!(build(&[(1, 3)]), Err(GraphError::NoSuchDocument { doc: DocId(3), nodes: 3 })));
    assert!(matches!(build(&[(7, 0)]), Err(GraphError::NoSuchDocument { doc: DocId(7), .. })));
    let mut graph = build(&[(0, 1)]).unwrap();
    assert!(matches!(crawl(&mut graph, [DocId(3)]), Err(GraphError::NoSuchDocument { doc: DocId(3), .. })));
    let failed = [Err(IoError::new("reading", "links", std::io::ErrorKind::UnexpectedEof.into()).into())];
    let failed: [Result<(DocId, DocId), TableError>; 1] = failed;
    assert!(matches!(LinkGraph::build(3, failed, 0, dir.path()), Err(GraphError::Table(_))));
}

#[test]
fn a_file_that_was_changed_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let [_, mut graph] = both(3, &[(0, 1), (1, 2)], dir.path());
    let path = fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&7u32.to_le_bytes(), 4).unwrap();
    assert!(matches!(graph.targets(DocId(0)), Err(GraphError::Changed { .. })));
    file.set_len(0).unwrap();
    assert!(matches!(bow_tie(&mut graph), Err(GraphError::Io(_))));
}
