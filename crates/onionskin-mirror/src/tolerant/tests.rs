use super::*;
use crate::graph::Page;

/// Pages as `site/path` with what they say after `=`: `a/x/p.html=p`; links within a site as
/// `a/x/p.html>a/x/q.html` are not needed here.
struct Web {
    graph: Graph,
    urls: Vec<&'static str>,
}

impl Web {
    fn new(text: &'static str) -> Web {
        let mut sites: Vec<&str> = Vec::new();
        let mut says: Vec<&str> = Vec::new();
        let number = |list: &mut Vec<&'static str>, word: &'static str| match list
            .iter()
            .position(|known| *known == word)
        {
            Some(at) => at as u32,
            None => {
                list.push(word);
                list.len() as u32 - 1
            }
        };
        let mut urls = Vec::new();
        let mut pages = Vec::new();
        for (doc, word) in DocId::MIN.onward().zip(text.split_whitespace()) {
            let (url, label) = word.split_once('=').unwrap();
            let site = url.split('/').next().unwrap();
            pages.push(Page {
                doc,
                cluster: DocId(number(&mut says, label)),
                site: SiteId(number(&mut sites, site)).into(),
                linked_from: 0,
            });
            urls.push(url);
        }
        Web { graph: Graph::new(pages, Vec::new()), urls }
    }

    fn path(&self, doc: DocId) -> &'static str {
        let url = self.urls[doc.index()];
        &url[url.find('/').unwrap()..]
    }

    fn groups(&self) -> Vec<Group> {
        let paths: Vec<&str> = DocId::range(0..self.urls.len() as u32).map(|doc| self.path(doc)).collect();
        assemble(&self.graph, &paths)
    }

    /// Replicas in words, pages by slot.
    fn words(&self, group: &Group) -> Vec<String> {
        let member = |member: &Member| {
            let role =
                if member.role == Role::Copy { String::new() } else { format!(":{}", member.role.as_str()) };
            format!("{}{role}", self.urls[member.doc.index()])
        };
        let replica = |replica: &Replica| replica.members.iter().map(member).collect::<Vec<_>>().join(" ");
        group.replicas.iter().map(replica).collect()
    }
}

#[track_caller]
fn check_groups(text: &'static str, expected: &[&[&str]]) {
    let web = Web::new(text);
    let groups: Vec<Vec<String>> = web.groups().iter().map(|group| web.words(group)).collect();
    assert_eq!(groups, expected);
}

#[test]
fn one_replica_a_site() {
    check_groups(
        "a/p=p a/q=q a/r=r b/m/p=p b/m/r=r c/p=p c/q=q",
        &[&["a/p a/q a/r", "b/m/p b/m/r", "c/p c/q"]],
    );
}

#[test]
fn versions_on_one_site_are_replicas() {
    check_groups("a/v1/p=p a/v1/q=q a/v2/p=p a/v2/q=q", &[&["a/v1/p a/v1/q", "a/v2/p a/v2/q"]]);
}

#[test]
fn a_component_held_together_by_a_licence_falls_apart() {
    check_groups(
        "a/p=p a/q=q a/gpl=gpl b/p=p b/q=q b/gpl=gpl c/s=s c/t=t c/u=u c/gpl=gpl d/s=s d/t=t d/u=u d/gpl=gpl e/gpl=gpl",
        &[&["a/p a/q a/gpl", "b/p b/q b/gpl"], &["c/s c/t c/u c/gpl", "d/s d/t d/u d/gpl"]],
    );
}

#[test]
fn second_addresses_have_no_slot_of_their_own() {
    check_groups(
        "a/p=p a/x/=q a/x/index.html=q b/p=p b/x/=q",
        &[&["a/p a/x/ a/x/index.html:alias", "b/p b/x/"]],
    );
}

#[test]
fn copies_inside_a_collection_keep_their_places() {
    // Both mirrors have a small folder twice, beside a large collection; the copies correspond by
    // their addresses.
    let text = "a/1=1 a/2=2 a/3=3 a/4=4 a/5=5 a/6=6 a/7=7 a/8=8 a/9=9 a/10=10 a/11=11 a/x/u=u a/y/u=u
        b/1=1 b/2=2 b/3=3 b/4=4 b/5=5 b/6=6 b/7=7 b/8=8 b/9=9 b/10=10 b/11=11 b/y/u=u b/x/u=u";
    let web = Web::new(text);
    let groups = web.groups();
    assert_eq!(groups.len(), 1);
    let (a, b) = (&groups[0].replicas[0], &groups[0].replicas[1]);
    assert_eq!((a.members.len(), b.members.len(), groups[0].slots), (13, 13, 13));
    for (one, other) in a.members.iter().zip(&b.members) {
        assert_eq!((one.slot, web.path(one.doc)), (other.slot, web.path(other.doc)));
    }
}

#[test]
fn what_was_rewritten_keeps_its_slot() {
    let web = Web::new(
        "a/d/p=p a/d/q=q a/d/r=r1 a/d/s=s b/m/p=p b/m/q=q b/m/r=r2 b/m/s=s c/d/p=p c/d/q=q c/d/r=r2",
    );
    let mut groups = web.groups();
    assert_eq!(groups.len(), 1);
    align_changed(&mut groups[0], |doc| web.path(doc));
    assert_eq!(
        web.words(&groups[0]),
        ["a/d/p a/d/q a/d/s a/d/r:added", "b/m/p b/m/q b/m/s b/m/r:changed", "c/d/p c/d/q c/d/r:changed"]
    );
}

#[test]
fn pages_nearby_are_changed_or_added() {
    let web = Web::new("a/p=p a/q=q b/m/p=p b/m/q=q a/new=n b/m/new=x b/m/other=o");
    let paths: Vec<&str> = DocId::range(0..4).map(|doc| web.path(doc)).collect();
    let graph = Graph::new(web.graph.pages()[..4].to_vec(), Vec::new());
    let mut group = assemble(&graph, &paths).remove(0);
    let near = |docs: &[u32]| {
        let docs = docs.iter().map(|&doc| DocId(doc));
        docs.map(|doc| Nearby { doc, path: web.path(doc) }).collect::<Vec<_>>()
    };
    assert_eq!(take_in(&mut group, 0, &near(&[4]), |doc| web.path(doc)), (0, 1));
    assert_eq!(take_in(&mut group, 1, &near(&[5, 6]), |doc| web.path(doc)), (1, 1));
    assert_eq!(web.words(&group), ["a/p a/q a/new:added", "b/m/p b/m/q b/m/new:changed b/m/other:added"]);
    assert_eq!(mark_virtual(&mut group, 1, [0, 4].map(DocId)), 0, "it has all that the principal has");
}

#[test]
fn what_is_only_linked_to_is_virtual() {
    let web = Web::new("a/p=p a/q=q b/p=p b/q=q a/r=r");
    let graph = Graph::new(web.graph.pages()[..4].to_vec(), Vec::new());
    let mut group = assemble(&graph, &["/p", "/q", "/p", "/q"]).remove(0);
    take_in(&mut group, 0, &[Nearby { doc: DocId(4), path: "/r" }], |doc| web.path(doc));
    assert_eq!(mark_virtual(&mut group, 1, [4, 4, 0].map(DocId)), 1);
    assert_eq!(web.words(&group)[1], "b/p b/q a/r:virtual");
}

#[test]
fn the_root_stands_highest() {
    let web = Web::new(
        "a/x/faq=f a/x/index.html=i a/x/sub/index.html=s b/x/faq=f b/x/index.html=i b/x/sub/index.html=s",
    );
    let group = &web.groups()[0];
    assert_eq!(web.urls[group.root_of(0).unwrap().index()], "a/x/index.html");
}
