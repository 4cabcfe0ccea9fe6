//! The figures of Cho et al. 2000, and a twin that follows the definitions word for word.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::check::{Demands, Verdict, Violation, check};
use crate::graph::Page;
use crate::testing::{Named, graph, grown};

#[track_caller]
fn check_grown(text: &str, merge: Merge, expected: &[&str]) {
    assert_eq!(grown(&graph(text), merge, true), expected, "{merge}, single site");
    // Nothing in these figures links from site to site unless it says so.
    if merge == Merge::Strict {
        assert_eq!(grown(&graph(text), merge, false), expected, "{merge}, any site");
    }
}

/// Both of the paper's conditions give the same.
#[track_caller]
fn check_both(text: &str, expected: &[&str]) {
    check_grown(text, Merge::Strict, expected);
    check_grown(text, Merge::Extended, expected);
}

/// A group as it is given, replicas of sites with labels in the same order.
fn group_of(named: &Named, replicas: &[&[&str]]) -> Group {
    let doc = |name: &str| named.names.iter().position(|known| known == name).unwrap() as u32;
    let replicas: Vec<Replica> = replicas
        .iter()
        .map(|pages| Replica {
            site: named.graph.page(doc(pages[0])).site.get(),
            members: SlotId::MIN
                .onward()
                .zip(*pages)
                .map(|(slot, name)| Member { slot, doc: DocId(doc(name)), role: Role::Copy })
                .collect(),
        })
        .collect();
    Group {
        slots: replicas[0].members.len() as u32,
        root: SlotId(0),
        principal: 0,
        chosen: Chosen::default(),
        replicas,
    }
}

const DEFINITION_8: Demands = Demands { definition_8: true, single_site: true };

#[test]
fn figure_2_collections_with_similar_pages() {
    let text = "i.p>i.q i.p>i.r i.q>i.s  ii.p>ii.q ii.p>ii.r ii.q>ii.s  iii.p>iii.q iii.p>iii.r iii.q>iii.s";
    check_both(text, &["i.p i.q i.r i.s | ii.p ii.q ii.r ii.s | iii.p iii.q iii.r iii.s"]);
}

#[test]
fn figure_3a_the_core_is_found_and_the_page_more_is_not() {
    let text = "i.p>i.q i.p>i.r  ii.p>ii.q ii.p>ii.r ii.p>ii.s";
    check_both(text, &["i.p i.q i.r | ii.p ii.q ii.r"]);
    let named = graph(text);
    let mut uneven = group_of(&named, &[&["i.p", "i.q", "i.r"], &["ii.p", "ii.q", "ii.r"]]);
    let s = named.names.iter().position(|name| name == "ii.s").unwrap() as u32;
    uneven.slots = 4;
    uneven.replicas[1].members.push(Member { slot: SlotId(3), doc: DocId(s), role: Role::Copy });
    let verdict = check(&uneven, &named.graph, DEFINITION_8, |_| None);
    assert_eq!(verdict, Err(Violation::Size { replica: 0, pages: 3, slots: 4 }));
}

#[test]
fn figure_3b_without_a_one_to_one_mapping_they_are_dissimilar() {
    let text = "i.p>i.q i.p>i.r i.r>i.s.1 i.r>i.s.2  ii.p>ii.q.1 ii.p>ii.q.2 ii.p>ii.r ii.r>ii.s";
    for merge in [Merge::Strict, Merge::Extended] {
        let found = grown(&graph(text), merge, true);
        assert_eq!(found, ["i.p i.r | ii.p ii.r"], "what has copies within stays out");
    }
}

#[test]
fn figure_3c_break_points_leave_nothing_but_trivial_clusters() {
    let text = "i.p>i.q i.q>i.r i.q>i.s  ii.p>ii.t ii.t>ii.r ii.t>ii.s";
    check_both(text, &[]);
}

#[test]
fn figure_3d_one_similar_parent_is_enough() {
    let text = "i.p>i.r i.q>i.r i.q>i.p  ii.p ii.q>ii.r ii.q>ii.p";
    let named = graph(text);
    let group = group_of(&named, &[&["i.q", "i.p", "i.r"], &["ii.q", "ii.p", "ii.r"]]);
    assert_eq!(check(&group, &named.graph, DEFINITION_8, |_| None), Ok(Verdict::Similar));
    check_both(text, &["i.p i.q i.r | ii.p ii.q ii.r"]);
    // As drawn, with the roots p and q unconnected on the right: similar by definition 5, but no
    // connected collection.
    let drawn = graph("i.p>i.r i.q>i.r  ii.p ii.q>ii.r");
    let group = group_of(&drawn, &[&["i.q", "i.p", "i.r"], &["ii.q", "ii.p", "ii.r"]]);
    let verdict = check(&group, &drawn.graph, DEFINITION_8, |_| None);
    assert_eq!(verdict, Err(Violation::NotConnected { replica: 1 }));
    assert_eq!(grown(&drawn, Merge::Strict, true), ["i.q i.r | ii.q ii.r"]);
}

/// One graph, two ways to see a similar cluster in it; cardinality wins.
const FIGURE_4: &str =
    "i.a>i.b i.a>i.c i.b>i.d i.b>i.e  ii.a>ii.b ii.a>ii.c ii.b>ii.d ii.b>ii.e  iii.b>iii.d iii.b>iii.e";

#[test]
fn figures_4_and_5_both_clusters_are_similar_and_cardinality_is_preferred() {
    let named = graph(FIGURE_4);
    let five =
        group_of(&named, &[&["i.a", "i.b", "i.c", "i.d", "i.e"], &["ii.a", "ii.b", "ii.c", "ii.d", "ii.e"]]);
    assert_eq!(check(&five, &named.graph, DEFINITION_8, |_| None), Ok(Verdict::Similar));
    let three =
        group_of(&named, &[&["i.b", "i.d", "i.e"], &["ii.b", "ii.d", "ii.e"], &["iii.b", "iii.d", "iii.e"]]);
    assert_eq!(check(&three, &named.graph, DEFINITION_8, |_| None), Ok(Verdict::Similar));
    check_both(FIGURE_4, &["i.a i.c | ii.a ii.c", "i.b i.d i.e | ii.b ii.d ii.e | iii.b iii.d iii.e"]);
}

#[test]
fn figure_6_growing() {
    // t has two copies where the others have three; s and g stand alone.
    let text = "i.a>i.b i.a>i.c i.b>i.c i.b>i.d i.a>i.t  ii.a>ii.b ii.b>ii.c ii.b>ii.d ii.a>ii.t
        iii.a>iii.b iii.b>iii.c iii.b>iii.d  i.s i.g";
    let expected = ["i.a i.b i.c i.d | ii.a ii.b ii.c ii.d | iii.a iii.b iii.c iii.d"];
    check_grown(text, Merge::Strict, &expected);
    // Nor does the extended condition take t: not every a links to one.
    check_grown(text, Merge::Extended, &expected);
}

#[test]
fn figure_7_the_start_is_the_page_that_more_sites_link_to() {
    let text = "x.a>x.b y.a>y.b x.b>y.a y.b>x.a";
    let both = |more: &str| grown(&graph(&format!("{text} {more}")), Merge::Strict, false);
    assert_eq!(both("x.a=2 y.a=1 x.b=1"), ["x.a x.b | y.a y.b"]);
    assert_eq!(both("x.b=2 y.b=2 x.a=1"), ["x.a y.b | x.b y.a"]);
}

/// [ii] is a partial mirror of [i] and links to what it has not.
const FIGURE_10: &str = "i.a>i.b i.a>i.c i.b>i.d i.b>i.e i.c>i.f i.c>i.g
    ii.a>ii.b ii.a>ii.c ii.b>i.d ii.b>i.e ii.c>i.f ii.c>i.g";

#[test]
fn figure_10_partial_mirrors() {
    check_grown(FIGURE_10, Merge::Strict, &["i.a i.b i.c | ii.a ii.b ii.c"]);
    for single_site in [true, false] {
        assert_eq!(
            grown(&graph(FIGURE_10), Merge::Extended, single_site),
            ["i.a i.b i.c i.d i.e i.f i.g | (i.d) (i.e) (i.f) (i.g) ii.a ii.b ii.c"]
        );
    }
}

#[test]
fn a_page_that_all_copies_link_to_elsewhere_is_no_part_of_them() {
    let text = "i.a>i.b i.a>w.home  ii.a>ii.b ii.a>w.home  w.home>w.news";
    assert_eq!(grown(&graph(text), Merge::Extended, true), ["i.a i.b | ii.a ii.b"]);
    // Without the restriction to single sites the paper's condition takes it in, and what follows.
    assert_eq!(
        grown(&graph(text), Merge::Extended, false),
        ["i.a i.b w.home w.news | (w.home) (w.news) ii.a ii.b"]
    );
}

#[test]
fn copies_inside_one_site_are_told_apart_by_their_links() {
    let text = "i.a.1>i.b.1 i.b.1>i.c.1 i.a.2>i.b.2 i.b.2>i.c.2";
    check_both(text, &["i.a.1 i.b.1 i.c.1 | i.a.2 i.b.2 i.c.2"]);
}

#[test]
fn where_links_are_ambiguous_a_matching_decides() {
    // The first a links to both bs, the second only to the first.
    let text = "i.a.1>i.b.1 i.a.1>i.b.2 i.a.2>i.b.1";
    check_both(text, &["i.a.1 i.b.2 | i.a.2 i.b.1"]);
}

#[test]
fn a_root_with_a_parent_in_one_copy_only_is_taken_out() {
    let text = "i.a>i.b i.b>i.c i.c>i.a  ii.a>ii.b ii.b>ii.c";
    check_both(text, &["i.b i.c | ii.b ii.c"]);
}

#[test]
fn identical_collections() {
    let named = graph("i.a>i.b i.b>i.c  ii.a>ii.b ii.b>ii.c");
    let group = group_of(&named, &[&["i.a", "i.b", "i.c"], &["ii.a", "ii.b", "ii.c"]]);
    let same = |doc: DocId| Some(u64::from(named.graph.page(doc.get()).cluster));
    assert_eq!(check(&group, &named.graph, DEFINITION_8, same), Ok(Verdict::Identical));
    assert_eq!(check(&group, &named.graph, DEFINITION_8, |doc| Some(u64::from(doc))), Ok(Verdict::Similar));
    // One link more, and the link structure is no longer identical.
    let named = graph("i.a>i.b i.b>i.c  ii.a>ii.b ii.b>ii.c ii.a>ii.c");
    assert_eq!(check(&group, &named.graph, DEFINITION_8, same), Ok(Verdict::Similar));
}

#[test]
fn no_pages_no_groups() {
    check_both("", &[]);
    check_both("i.a ii.a iii.a", &[]);
}

/// A graph of a few pages on a few sites, few things to say, and links at random.
fn small_graphs() -> impl Strategy<Value = Graph> {
    let page = || (0u32..4, 0u32..3, 0u32..3);
    (2usize..11)
        .prop_flat_map(move |n| {
            let links = prop::collection::vec((0..n as u32, 0..n as u32), 0..24);
            (prop::collection::vec(page(), n), links)
        })
        .prop_map(|(pages, links)| {
            let pages = (0..).zip(pages).map(|(doc, (cluster, site, linked_from))| Page {
                doc: DocId(doc),
                cluster: DocId(cluster),
                site: SiteId(site).into(),
                linked_from,
            });
            Graph::new(pages.collect(), links)
        })
}

/// Edges of the trivial cluster graph, by the definitions of a, b, s and d, with sets.
fn naive_edges(graph: &Graph, growth: Growth) -> BTreeSet<(DocId, DocId)> {
    let of = |cluster: DocId| -> Vec<u32> {
        (0..graph.pages().len() as u32).filter(|&page| graph.page(page).cluster == cluster).collect()
    };
    let clusters: BTreeSet<DocId> = graph.pages().iter().map(|page| page.cluster).collect();
    let mut edges = BTreeSet::new();
    for &i in &clusters {
        for &j in clusters.iter().filter(|&&j| j != i) {
            let (ri, rj) = (of(i), of(j));
            let allowed = |p: u32, q: u32| {
                let (p_site, q_site) = (graph.page(p).site, graph.page(q).site);
                let copies = ri.iter().any(|&copy| graph.page(copy).site == q_site);
                !growth.single_site || p_site == q_site || (growth.merge == Merge::Extended && copies)
            };
            let linked = |p: u32, q: u32| graph.out(p).contains(&q) && allowed(p, q);
            let s = ri.iter().filter(|&&p| rj.iter().any(|&q| linked(p, q))).count();
            let d = rj.iter().filter(|&&q| ri.iter().any(|&p| linked(p, q))).count();
            let holds = match growth.merge {
                Merge::Strict => ri.len() == s && s == d && d == rj.len(),
                _ => ri.len() == s && s >= d && d == rj.len(),
            };
            if holds {
                edges.insert((i, j));
            }
        }
    }
    edges
}

/// The component of every cluster, by going round until nothing changes.
fn naive_components(edges: &BTreeSet<(DocId, DocId)>) -> BTreeMap<DocId, DocId> {
    let mut component: BTreeMap<DocId, DocId> = edges.iter().flat_map(|&(i, j)| [(i, i), (j, j)]).collect();
    loop {
        let before = component.clone();
        for (i, j) in edges {
            let least = component[i].min(component[j]);
            component.insert(*i, least);
            component.insert(*j, least);
        }
        if component == before {
            return component;
        }
    }
}

/// Whether definition 5 holds between two collections under a mapping by slots, read off the page.
fn naive_similar(graph: &Graph, one: &Replica, other: &Replica) -> bool {
    let pages =
        |replica: &Replica| -> Vec<u32> { replica.members.iter().map(|member| member.doc.get()).collect() };
    let (c1, c2) = (pages(one), pages(other));
    c1.len() == c2.len()
        && c1.iter().zip(&c2).all(|(&p, &q)| {
            let parents = |collection: &[u32], page: u32| -> Vec<u32> {
                collection.iter().copied().filter(|&parent| graph.out(parent).contains(&page)).collect()
            };
            let (p1, p2) = (parents(&c1, p), parents(&c2, q));
            let similar = |a: u32, b: u32| graph.page(a).cluster == graph.page(b).cluster;
            similar(p, q)
                && ((p1.is_empty() && p2.is_empty()) || p1.iter().any(|&a| p2.iter().any(|&b| similar(a, b))))
        })
}

/// When every step leaves no choice, what is found must be the whole component: assigns by
/// following single links.
fn naive_unambiguous(
    graph: &Graph,
    edges: &BTreeSet<(DocId, DocId)>,
    component: &BTreeSet<DocId>,
) -> Option<usize> {
    let of = |cluster: DocId| -> Vec<u32> {
        (0..graph.pages().len() as u32).filter(|&page| graph.page(page).cluster == cluster).collect()
    };
    for &(i, j) in edges.iter().filter(|(i, j)| component.contains(i) && component.contains(j)) {
        let same_site = |p: u32, q: u32| graph.page(p).site == graph.page(q).site;
        let linked = |p: u32, q: u32| graph.out(p).contains(&q) && same_site(p, q);
        let single = of(i).iter().all(|&p| of(j).iter().filter(|&&q| linked(p, q)).count() == 1)
            && of(j).iter().all(|&q| of(i).iter().filter(|&&p| linked(p, q)).count() == 1);
        if !single {
            return None;
        }
    }
    // A tree of edges leaves one way to assign; parents outside it must not exist, or definition 5
    // may take slots out.
    let inside: Vec<&(DocId, DocId)> =
        edges.iter().filter(|(i, j)| component.contains(i) && component.contains(j)).collect();
    let pages: Vec<u32> = component.iter().flat_map(|&cluster| of(cluster)).collect();
    let n_links: usize =
        pages.iter().map(|&p| graph.out(p).iter().filter(|to| pages.contains(to)).count()).sum();
    let cardinality = of(*component.first()?).len();
    let is_tree = inside.len() + 1 == component.len() && n_links == inside.len() * cardinality;
    is_tree.then_some(component.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_twin_agrees(graph in small_graphs(), extended in any::<bool>(), single_site in any::<bool>()) {
        let merge = if extended { Merge::Extended } else { Merge::Strict };
        let growth = Growth { merge, single_site };
        let clusters = Clusters::new(&graph, growth);
        let number = |local: u32| graph.page(clusters.pages[local as usize][0]).cluster;
        let edges: BTreeSet<(DocId, DocId)> = (0..clusters.out.len() as u32)
            .flat_map(|from| clusters.out[from as usize].iter().map(move |&to| (from, to)))
            .map(|(from, to)| (number(from), number(to)))
            .collect();
        let naive = naive_edges(&graph, growth);
        prop_assert_eq!(&edges, &naive, "edges of the trivial cluster graph");

        let component = naive_components(&naive);
        let groups = grow(&graph, growth);
        let mut used = BTreeSet::new();
        for group in &groups {
            // Definition 8, by our checker and by the twin, and the whole group in one component.
            let verdict = check(group, &graph, Demands { definition_8: true, single_site }, |_| None);
            prop_assert!(verdict.is_ok(), "{:?} {:?}", verdict, group);
            for one in &group.replicas {
                for other in &group.replicas {
                    prop_assert!(naive_similar(&graph, one, other), "{:?}", group);
                }
            }
            let here: BTreeSet<DocId> =
                group.replicas[0].members.iter().map(|m| graph.page(m.doc.get()).cluster).collect();
            let components: BTreeSet<DocId> = here.iter().map(|cluster| component[cluster]).collect();
            prop_assert_eq!(components.len(), 1);
            prop_assert!(here.iter().all(|cluster| used.insert(*cluster)), "a cluster has one slot in all");
        }
        if merge == Merge::Strict && single_site {
            let mut members: BTreeMap<DocId, BTreeSet<DocId>> = BTreeMap::new();
            for (&cluster, &least) in &component {
                members.entry(least).or_default().insert(cluster);
            }
            for whole in members.values() {
                let cardinality = graph.pages().iter().filter(|page| Some(&page.cluster) == whole.first()).count();
                if cardinality > 1 && let Some(slots) = naive_unambiguous(&graph, &naive, whole) {
                    let found = groups.iter().any(|group| group.slots as usize == slots
                        && whole.contains(&graph.page(group.replicas[0].members[0].doc.get()).cluster));
                    prop_assert!(found, "{:?} was not found whole", whole);
                }
            }
        }
    }
}

#[test]
fn pages_that_only_one_replica_has_are_no_collection() {
    // Two similar pages, each linking to two pages that nobody has twice. One of these links back
    // to one of the two, so that their parents differ and their slot goes; a replica is left with
    // the site of a page that it only links to, unless it is seen that nothing is copied.
    let page = |doc, cluster, site| Page {
        doc: DocId(doc),
        cluster: DocId(cluster),
        site: SiteId(site).into(),
        linked_from: 0,
    };
    let pages = vec![page(0, 2, 2), page(1, 1, 2), page(2, 1, 1), page(3, 0, 1)];
    let graph = Graph::new(pages, vec![(0, 3), (1, 0), (1, 3), (2, 0), (2, 3), (3, 1)]);
    assert_eq!(grow(&graph, Growth { merge: Merge::Extended, single_site: true }), []);
}
