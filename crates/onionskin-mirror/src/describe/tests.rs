use super::*;
use crate::model::Member;
use crate::principal::Chosen;

/// Pages of a test: address, title, content.
type Pages = Vec<(&'static str, &'static str, u64)>;

struct Web {
    pages: Pages,
    replicas: Vec<Vec<(SlotId, Role)>>,
}

impl Web {
    /// Pages `names` of several copies, each at its own address with its own title; content is the
    /// name's unless `changed` says otherwise.
    fn of(copies: &[(&'static str, &'static str, u64)], names: u32) -> Web {
        let mut pages = Pages::new();
        let mut replicas = Vec::new();
        for (nth, &(base, title, salt)) in copies.iter().enumerate() {
            let members = (0..names)
                .map(|slot| {
                    let url: &'static str = Box::leak(format!("{base}p{slot}.html").into_boxed_str());
                    pages.push((url, title, u64::from(slot) + if slot == 0 { salt } else { 0 }));
                    (SlotId(slot), Role::Copy)
                })
                .collect();
            assert_eq!(nth, replicas.len());
            replicas.push(members);
        }
        Web { pages, replicas }
    }

    fn describe(&self) -> Description {
        let host = |url: &'static str| url.split('/').nth(2).unwrap();
        let mut hosts: Vec<&str> = self.pages.iter().map(|page| host(page.0)).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let site_of = |url| SiteId::at(hosts.binary_search(&host(url)).unwrap());
        let mut doc = DocId(0);
        let replicas = self
            .replicas
            .iter()
            .map(|members| {
                let site = Some(site_of(self.pages[doc.index()].0));
                let members = members.iter().map(|&(slot, role)| {
                    let member = Member { slot, doc, role };
                    doc.0 += 1;
                    member
                });
                Replica { site, members: members.collect() }
            })
            .collect::<Vec<_>>();
        let slots =
            replicas.iter().flat_map(|r: &Replica| &r.members).map(|m| m.slot.get() + 1).max().unwrap();
        let group = Group { slots, root: SlotId(0), principal: 0, chosen: Chosen::default(), replicas };
        let page = |doc: DocId| {
            let (url, title, content) = self.pages[doc.index()];
            PageInfo { url, title: Some(title), bytes: 100, content: Some(content), ..PageInfo::default() }
        };
        let site = |site: Option<SiteId>| {
            let here = hosts[site.unwrap().index()];
            let domain = here.split_once('.').map(|(_, domain)| domain);
            SiteInfo {
                host: here,
                domain,
                pages: self.pages.iter().filter(|page| host(page.0) == here).count() as u64,
            }
        };
        describe(&group, &page, &site)
    }
}

#[track_caller]
fn check_kind(copies: &[(&'static str, &'static str, u64)], kind: Kind, newer: Newer) {
    let described = Web::of(copies, 12).describe();
    assert_eq!((described.replicas[1].kind, described.replicas[1].newer), (kind, newer), "{described:#?}");
    assert_eq!(described.replicas[0].kind, Kind::Principal);
}

#[test]
fn a_copy_elsewhere_is_a_mirror() {
    check_kind(
        &[("http://www.a.org/d/", "D", 0), ("http://ftp.b.net/pub/d/", "D", 0)],
        Kind::Mirror,
        Newer::Same,
    );
    check_kind(
        &[("http://www.a.org/d/", "D", 0), ("http://ftp.b.net/pub/d/", "D", 9)],
        Kind::Mirror,
        Newer::Unknown,
    );
}

#[test]
fn the_same_host_under_another_name() {
    check_kind(
        &[("http://www.a.org/", "D", 0), ("http://web2.a.org/", "D", 0)],
        Kind::HostAlias,
        Newer::Same,
    );
    check_kind(&[("http://www.a.org/", "D", 0), ("http://192.0.2.7/", "D", 0)], Kind::HostAlias, Newer::Same);
}

#[test]
fn versions_and_which_is_newer() {
    check_kind(
        &[("http://www.a.org/1.9/", "D", 0), ("http://www.a.org/1.10/", "D", 0)],
        Kind::Versions,
        Newer::Replica,
    );
    check_kind(
        &[("http://www.a.org/d/", "D", 0), ("http://www.a.org/d/1.10/", "D", 0)],
        Kind::Versions,
        Newer::Principal,
    );
    check_kind(
        &[("http://www.a.org/a/", "D 2.1", 0), ("http://www.a.org/b/", "D 2.0", 0)],
        Kind::Versions,
        Newer::Principal,
    );
    // On another site it is a mirror all the same, and an older one.
    check_kind(
        &[("http://www.a.org/a/", "D 2.1", 0), ("http://www.b.org/b/", "D 2.0", 1)],
        Kind::Mirror,
        Newer::Principal,
    );
}

#[test]
fn copies_on_one_site() {
    check_kind(
        &[("http://www.a.org/x/", "D", 0), ("http://www.a.org/y/", "D", 0)],
        Kind::UrlAlias,
        Newer::Same,
    );
    let described =
        Web::of(&[("http://www.a.org/x/", "D", 0), ("http://www.a.org/y/", "D", 5)], 4).describe();
    assert_eq!((described.kind, described.is_noise), (Kind::TemplateNoise, true));
}

#[test]
fn what_is_missing_changed_and_added() {
    let mut web = Web::of(&[("http://www.a.org/d/", "D", 0), ("http://www.b.org/d/", "D", 0)], 12);
    // The last three pages of the replica are: changed, added, and one only linked to.
    web.replicas[1][9].1 = Role::Changed;
    web.replicas[1][10] = (SlotId(12), Role::Added);
    web.replicas[1][11] = (SlotId(11), Role::Virtual);
    let replica = web.describe().replicas.remove(1);
    assert_eq!((replica.kind, replica.pages), (Kind::PartialMirror, 11));
    assert_eq!((replica.changed, replica.added, replica.virtual_pages, replica.missing), (1, 1, 1, 1));
    assert!((replica.coverage - 9.0 / 12.0).abs() < 1e-12);
    assert_eq!(
        replica.evidence,
        "9 of 12 pages are copies, 9 word for word, 1 changed, 1 missing, 1 only linked to, 1 added; same paths; whole hosts"
    );
}

#[test]
fn names() {
    let name = |title: &'static str| {
        Web::of(&[("http://www.a.org/d/", title, 0), ("http://www.b.org/d/", title, 0)], 3).describe().name
    };
    assert_eq!(name("Linux Documentation Project"), "Linux Documentation Project");
    assert_eq!(name("Index"), "d (www.a.org)");
    assert_eq!(
        common_words(&["os — Python 3 docs", "sys — Python 3 docs", "re — Python 3 docs"]).as_deref(),
        Some("Python 3 docs")
    );
    assert_eq!(common_words(&["Vim: motion", "Vim: undo", "Vim: map", "other"]).as_deref(), Some("Vim"));
    assert_eq!(common_words(&["a", "b"]), None);
    assert_eq!(shorten(&"word ".repeat(40)).chars().count(), 80);
}
