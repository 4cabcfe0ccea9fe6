use onionskin_store::MemoryBudget;

use super::*;
use crate::testing::{Named, graph};

/// The components of a small graph, in words: labels of clusters that came together.
fn joined(text: &str, merge: Merge) -> Vec<String> {
    let named: Named = graph(text);
    let pages = named.graph.pages();
    let sites = pages.iter().map(|page| page.site).collect();
    let least = |cluster: DocId| pages.iter().find(|page| page.cluster == cluster).unwrap().doc;
    let web = Web::new(sites, pages.iter().map(|page| (page.doc, least(page.cluster))));
    let links: Vec<(DocId, DocId)> = (0..pages.len() as u32)
        .flat_map(|from| named.graph.out(from).iter().map(move |&to| (DocId(from), DocId(to))))
        .collect();
    let open = || -> Result<Box<dyn Iterator<Item = _> + '_>, SimilarError> {
        Ok(Box::new(links.iter().map(|link| Ok(*link))))
    };
    let dir = tempfile::tempdir().unwrap();
    let growth = Growth { merge, single_site: true };
    let of = |bytes: u64| {
        let memory = MemoryBudget::from_bytes(bytes);
        let resources = Resources { memory, threads: 1, work_dir: dir.path().to_owned() };
        components(&web, &open, growth, &resources).unwrap()
    };
    let found = of(1 << 20);
    assert_eq!(found.component, of(4 << 10).component, "memory changes nothing");
    let mut by_component: std::collections::BTreeMap<DocId, Vec<&str>> = Default::default();
    for page in pages.iter().filter(|page| page.doc == least(page.cluster)) {
        if let Some(component) = found.component(page.doc) {
            let label = named.names[page.doc.index()].split('.').nth(1).unwrap();
            by_component.entry(component).or_default().push(label);
        }
    }
    by_component
        .into_values()
        .map(|mut labels| {
            labels.sort_unstable();
            labels.join(" ")
        })
        .collect()
}

#[test]
fn break_points_are_bridged() {
    // Figure 3(c): the paper gives nothing, and its section 6 asks for more.
    let text = "i.p>i.q i.q>i.r i.q>i.s  ii.p>ii.t ii.t>ii.r ii.t>ii.s";
    assert!(joined(text, Merge::Strict).is_empty());
    assert_eq!(joined(text, Merge::Tolerant), ["p r s"]);
}

#[test]
fn a_root_that_was_rewritten_holds_its_parts_together() {
    let text = "i.home1>i.a i.home1>i.b i.a>i.c  ii.home2>ii.a ii.home2>ii.b ii.a>ii.c";
    assert_eq!(joined(text, Merge::Tolerant), ["a b c"]);
}

#[test]
fn a_page_missing_in_one_mirror_breaks_nothing() {
    let text = "i.a>i.b i.b>i.c  ii.a>ii.b ii.b>ii.c  iii.a>iii.x iii.x>iii.c iii.a>iii.c";
    assert_eq!(joined(text, Merge::Strict), Vec::<String>::new());
    assert_eq!(joined(text, Merge::Tolerant), ["a b c"]);
}

#[test]
fn pages_of_the_newer_versions_join_the_rest() {
    // d is only in two of five; p was rewritten in them.
    let old = |site: &str| format!("{site}.a>{site}.b {site}.a>{site}.c {site}.a>{site}.p ");
    let new =
        |site: &str| format!("{site}.a>{site}.b {site}.a>{site}.c {site}.a>{site}.q {site}.a>{site}.d ");
    let text = [old("i"), old("ii"), old("iii"), new("iv"), new("v")].concat();
    assert_eq!(joined(&text, Merge::Tolerant), ["a b c d p q"]);
}

#[test]
fn a_licence_that_everybody_has_joins_nobody() {
    let collection = |site: &str, a: &str, b: &str| {
        format!("{site}.{a}>{site}.{b} {site}.{b}>{site}.{a} {site}.{a}>{site}.gpl {site}.gpl>{site}.{a} ")
    };
    let text: String = (0..3)
        .map(|n| collection(&format!("x{n}"), "a", "b"))
        .chain((0..3).map(|n| collection(&format!("y{n}"), "c", "d")))
        .chain((0..3).map(|n| collection(&format!("z{n}"), "e", "f")))
        .collect();
    assert_eq!(joined(&text, Merge::Tolerant), ["a b", "c d", "e f"]);
}

#[test]
fn second_addresses_of_a_page_weigh_nothing() {
    let mirror = |site: &str| format!("{site}.a>{site}.b.1 {site}.b.2 {site}.b.3 {site}.b.1>{site}.c ");
    let text = [mirror("i"), mirror("ii")].concat();
    assert_eq!(joined(&text, Merge::Tolerant), ["a b c"]);
}

#[test]
fn copies_in_one_site_are_counted_by_page() {
    let text = "i.a.1>i.b.1 i.b.1>i.c.1 i.a.2>i.b.2 i.b.2>i.c.2";
    assert_eq!(joined(text, Merge::Tolerant), ["a b c"]);
}

#[test]
fn extended_takes_in_what_is_linked_to() {
    let text = "i.a>i.b i.b>i.d  ii.a>ii.b ii.b>i.d";
    assert_eq!(joined(text, Merge::Strict), ["a b"]);
    assert_eq!(joined(text, Merge::Extended), ["a b d"]);
}
