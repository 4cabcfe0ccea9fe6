use std::collections::BTreeSet;

use crate::Merge;
use onionskin_store::Atlas;
use onionskin_testkit::{Preset, Web as Generated, WebSpec};

use super::*;
use crate::{CollectionsParams, collections as search};
use onionskin_scan::testing::scan_into;
use onionskin_similar::{SimilarParams, similar};
use onionskin_store::Quiet;
use onionskin_store::table::PrincipalReason;

/// Everything that the search is made of, with the numbers of documents and sites moved far up.
struct Whole {
    pages: BTreeMap<i64, PageRow>,
    links: Vec<(i64, i64)>,
    atlas: std::path::PathBuf,
    _folder: tempfile::TempDir,
}

const FAR: i64 = 1 << 40;

impl Whole {
    fn new(pages: u64) -> Whole {
        let folder = tempfile::tempdir().unwrap();
        let web = Generated::new(&WebSpec::of(Preset::Demo, pages, 3)).unwrap();
        let path = folder.path().join("web.warc");
        let mut warc = std::fs::File::create(&path).unwrap();
        web.write_warc(&mut warc, 0..web.n_pages(), Default::default(), &mut |_, _| {}).unwrap();
        let atlas = folder.path().join("atlas");
        scan_into(&[&path], &atlas, "w4-rabin64-6x14r2+sketch+w4");
        let params = SimilarParams { measure_recall: false, threads: 1, ..SimilarParams::new(atlas.clone()) };
        similar(&params, &Quiet).unwrap();
        let opened = Atlas::open(&atlas).unwrap();
        let mut hosts = BTreeMap::new();
        let mut sites = opened.sites().unwrap();
        while let Some(batch) = sites.next_batch().unwrap() {
            for row in batch.rows() {
                hosts.insert(row.site, (row.host.to_owned(), row.registered_domain.map(str::to_owned)));
            }
        }
        let mut pages = BTreeMap::new();
        let mut site_pages: BTreeMap<SiteId, u32> = BTreeMap::new();
        for batch in opened.documents().unwrap() {
            for row in batch.unwrap().rows() {
                if let Some(site) = row.site {
                    *site_pages.entry(site).or_default() += 1;
                }
                let about = row.site.and_then(|site| hosts.get(&site)).cloned();
                let page = PageRow {
                    doc: i64::from(row.doc) + FAR,
                    cluster: Some(i64::from(row.doc) + FAR),
                    site: row.site.map(|site| i64::from(site) + FAR),
                    url: row.url.map(str::to_owned),
                    title: row.title.map(str::to_owned),
                    canonical_url: row.canonical_url.map(str::to_owned),
                    bytes: row.bytes,
                    fetched_at: row.fetched_at,
                    text_fp: row.text_fp,
                    host: about.clone().map(|about| about.0),
                    domain: about.and_then(|about| about.1),
                    ..PageRow::default()
                };
                pages.insert(page.doc, page);
            }
        }
        for page in pages.values_mut() {
            page.site_pages = page.site.map_or(0, |site| site_pages[&SiteId((site - FAR) as u32)]);
        }
        let edges: Vec<(i64, i64)> = opened
            .pairs()
            .unwrap()
            .map(|pair| pair.map(|pair| (i64::from(pair.a) + FAR, i64::from(pair.b) + FAR)).unwrap())
            .collect();
        for (doc, least) in onionskin_similar::parts::components(edges) {
            pages.get_mut(&doc).unwrap().cluster = Some(least);
        }
        let links: Vec<(i64, i64)> = opened
            .links()
            .unwrap()
            .map(|link| link.map(|(from, to)| (i64::from(from) + FAR, i64::from(to) + FAR)).unwrap())
            .collect();
        let mut linked: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
        for (from, to) in &links {
            let (source, destination) = (pages[from].site, pages[to].site);
            if let Some(site) = source.filter(|_| source != destination) {
                linked.entry(*to).or_default().insert(site);
            }
        }
        for (doc, sites) in linked {
            let voters = sites.iter().filter_map(|site| voter(&hosts[&SiteId((site - FAR) as u32)].0));
            let voters: BTreeSet<String> = voters.map(str::to_owned).collect();
            let page = pages.get_mut(&doc).unwrap();
            page.linked_from = sites.len() as u32;
            page.voters = voters.into_iter().collect();
        }
        Whole { pages, links, atlas, _folder: folder }
    }

    fn components(&self, growth: Growth) -> BTreeMap<i64, i64> {
        let documents: Vec<(i64, i64, Option<i64>)> =
            self.pages.values().map(|page| (page.doc, page.cluster.unwrap_or(page.doc), page.site)).collect();
        let work = tempfile::tempdir().unwrap();
        let resources =
            Resources { memory: "64M".parse().unwrap(), threads: 1, work_dir: work.path().to_owned() };
        components(&documents, &self.links, growth, &resources).unwrap().into_iter().collect()
    }

    /// Each component with the pages near it.
    fn collections(&self, growth: Growth) -> Vec<Collection> {
        let components = self.components(growth);
        let home = |page: &PageRow| page.cluster.and_then(|cluster| components.get(&cluster)).copied();
        let names: BTreeSet<i64> = components.values().copied().collect();
        let outside: Vec<&PageRow> = self.pages.values().filter(|page| home(page).is_none()).collect();
        let mut found = Vec::new();
        for name in names {
            let mut pages: Vec<PageRow> =
                self.pages.values().filter(|page| home(page) == Some(name)).cloned().collect();
            // Whatever the order.
            pages.reverse();
            let mut component = Component { pages, links: self.links.clone() };
            if growth.merge == Merge::Tolerant {
                let regions = regions(component.clone(), growth).unwrap();
                component.pages.extend(naive_nearby(&regions, &outside));
            }
            found.extend(collections(component, growth).unwrap());
        }
        found
    }
}

/// Pages in the folders of replicas, of each group the deepest, where at least a third of what
/// stands there, or in their own folder, is the replica's.
fn naive_nearby(regions: &[RegionRow], outside: &[&PageRow]) -> Vec<PageRow> {
    let groups: BTreeSet<u32> = regions.iter().map(|region| region.group).collect();
    let mut near: Vec<(&PageRow, &RegionRow, &str)> = Vec::new();
    for page in outside {
        let Some(url) = page.url.as_deref() else { continue };
        for group in &groups {
            let here = |region: &&RegionRow| region.group == *group && Some(region.site) == page.site;
            let best = folders(url)
                .find_map(|folder| regions.iter().filter(here).find(|region| region.folder == folder));
            near.extend(best.map(|region| (*page, region, folders(url).next().unwrap())));
        }
    }
    let others = |region: &RegionRow, folder: Option<&str>| {
        let same =
            near.iter().filter(|(_, of, at)| *of == region && folder.is_none_or(|folder| folder == *at));
        same.count() as u64
    };
    let mut kept: BTreeMap<i64, PageRow> = BTreeMap::new();
    for (page, region, folder) in &near {
        let whole = region.own.values().sum::<u64>() * 2 >= others(region, None);
        let own = region.own.get(*folder).is_some_and(|own| own * 2 >= others(region, Some(folder)));
        if whole || own {
            let kept = kept.entry(page.doc).or_insert_with(|| PageRow { cluster: None, ..(*page).clone() });
            kept.near.push((region.group, region.replica));
        }
    }
    kept.into_values().collect()
}

#[test]
fn components_by_themselves_are_the_search() {
    let whole = Whole::new(900);
    for merge in Merge::ALL {
        let growth = Growth { merge, single_site: true };
        let params = CollectionsParams { merge, threads: 1, ..CollectionsParams::new(whole.atlas.clone()) };
        search(&params, &Quiet).unwrap();
        let atlas = Atlas::open(&whole.atlas).unwrap();
        let found = whole.collections(growth);
        let groups: Vec<CollectionGroupRow> =
            atlas.collection_groups().unwrap().map(|row| row.unwrap()).collect();
        assert!(groups.len() > 2, "{merge}");
        let ours: Vec<CollectionGroupRow> = CollectionId::MIN
            .onward()
            .zip(&found)
            .map(|(number, found)| CollectionGroupRow { group: number, ..found.group.clone() })
            .collect();
        assert_eq!(ours, groups, "{merge}");
        let members: Vec<(CollectionId, SlotId, i64, Role)> = atlas
            .collection_pages()
            .unwrap()
            .map(|row| row.map(|row| (row.group, row.slot, i64::from(row.doc) + FAR, row.role)).unwrap())
            .collect();
        let ours: Vec<(CollectionId, SlotId, i64, Role)> = CollectionId::MIN
            .onward()
            .zip(&found)
            .flat_map(|(group, found)| {
                found.members.iter().map(move |member| (group, member.slot, member.doc, member.role))
            })
            .collect();
        assert_eq!(ours, members, "{merge}");
        let reasons: BTreeSet<_> = groups.iter().map(|group| group.principal_reason.unwrap()).collect();
        assert!(reasons.contains(&PrincipalReason::Links), "{reasons:?}");
        let roots: Vec<(i64, i64)> = atlas
            .collections()
            .unwrap()
            .map(|row| {
                row.map(|row| (i64::from(row.site.unwrap()) + FAR, i64::from(row.root_doc) + FAR)).unwrap()
            })
            .collect();
        let ours: Vec<(i64, i64)> =
            found.iter().flat_map(|found| found.replicas.iter().map(|row| (row.1, row.2))).collect();
        assert_eq!(ours, roots, "{merge}");
    }
}

#[test]
fn regions_count_the_pages_of_replicas() {
    let whole = Whole::new(600);
    let growth = Growth { merge: Merge::Tolerant, single_site: true };
    let components = whole.components(growth);
    let name = *components.values().next().unwrap();
    let pages: Vec<PageRow> = whole
        .pages
        .values()
        .filter(|page| page.cluster.and_then(|cluster| components.get(&cluster)) == Some(&name))
        .cloned()
        .collect();
    let component = Component { pages, links: whole.links.clone() };
    let rows = regions(component.clone(), growth).unwrap();
    let found = collections(component, growth).unwrap();
    let replicas: usize = found.iter().map(|found| found.replicas.len()).sum();
    assert_eq!(rows.len(), replicas);
    let own: u64 = rows.iter().flat_map(|row| row.own.values()).sum();
    let members = found.iter().flat_map(|found| &found.members).filter(|member| member.role != Role::Virtual);
    assert_eq!(own as usize, members.count());
    for row in &rows {
        assert!(row.own.keys().all(|folder| folder.starts_with(&row.folder)), "{row:?}");
    }
}

#[test]
fn rows_that_cannot_be_are_told() {
    let growth = Growth { merge: Merge::Tolerant, single_site: true };
    let page = PageRow { doc: 5, cluster: Some(5), ..PageRow::default() };
    let twice = Component { pages: vec![page.clone(), page.clone()], links: Vec::new() };
    assert!(collections(twice, growth).unwrap_err().to_string().contains("twice"));
    let lost = Component { pages: vec![PageRow { cluster: Some(4), ..page }], links: Vec::new() };
    assert!(regions(lost, growth).unwrap_err().to_string().contains("not there"));
}

#[test]
fn folders_and_rewritings() {
    assert_eq!(folders("http://a.org/x/y/z.html?q=/").collect::<Vec<_>>(), ["/x/y/", "/x/", "/"]);
    let found = rewritings("http://a.org/x/index.html");
    assert!(found.iter().any(|how| how.outcome == "http://a.org/x/"), "{found:?}");
}
