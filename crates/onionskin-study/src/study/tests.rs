use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::replication::PartCounts;
use crate::report::{csv, html, json, overview, write_report};
use onionskin_similar::cluster::Clustering;
use onionskin_testkit::naive::{naive_components, naive_pairs, shingles, words};
use onionskin_testkit::{Composer, Preset, WarcOptions, Web, WebSpec};

use super::*;
use onionskin_mirror::{CollectionsParams, collections};
use onionskin_scan::testing::{files, scan_into};
use onionskin_similar::Search;
use onionskin_similar::{SimilarParams, similar};
use onionskin_store::Quiet;
use onionskin_store::schema::ChunkingName;
use serde_json::Value;

const RECIPE: &str = "w4-rabin64-6x14r2+sketch+w4+l4+l2+sp";

struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    fn web(spec: &WebSpec) -> (Made, Web) {
        let folder = tempfile::tempdir().unwrap();
        let web = Web::new(spec).unwrap();
        let input = folder.path().join("pages.warc");
        let mut file = fs::File::create(&input).unwrap();
        web.write_warc(&mut file, 0..web.n_pages(), WarcOptions::default(), &mut |_, _| {}).unwrap();
        let made = Made { folder };
        scan_into(&[&input], &made.atlas(), RECIPE);
        (made, web)
    }

    /// Documents as JSON lines, with addresses where there are any.
    fn documents(documents: &[(&str, &str)]) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("texts.jsonl");
        let line = |(url, text): &(&str, &str)| {
            if url.is_empty() {
                serde_json::json!({ "text": text }).to_string()
            } else {
                serde_json::json!({ "url": url, "text": text }).to_string()
            }
        };
        fs::write(&input, documents.iter().map(line).collect::<Vec<_>>().join("\n")).unwrap();
        let made = Made { folder };
        scan_into(&[&input], &made.atlas(), RECIPE);
        made
    }

    fn atlas(&self) -> PathBuf {
        self.folder.path().join("atlas")
    }

    fn search(&self, search: Search, for_report: bool) {
        let mut params = SimilarParams::new(self.atlas());
        params.search = search;
        params.clustering = Clustering::Transitive;
        params.for_report = for_report;
        params.memory = MemoryBudget::from_mib(256);
        params.threads = 2;
        similar(&params, &Quiet).unwrap();
    }

    fn params(&self) -> ReportParams {
        let mut params = ReportParams::new(self.atlas(), self.folder.path().join("work"));
        params.memory = MemoryBudget::from_mib(256);
        params
    }

    fn study(&self) -> Findings {
        study(&self.params(), &Quiet).unwrap()
    }
}

/// What is true of a web, by the definitions.
struct Truth {
    sites: Vec<String>,
    bytes: Vec<u64>,
    has_text: Vec<bool>,
    reached: Vec<bool>,
}

impl Truth {
    /// Documents of a cluster each, by the cluster's smallest; from anything that tells which
    /// belong together.
    fn check(&self, level: &Level, together: &[usize]) {
        let mut clusters: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (doc, cluster) in together.iter().enumerate().filter(|(doc, _)| self.has_text[*doc]) {
            clusters.entry(*cluster).or_default().push(doc);
        }
        let part = |within: &dyn Fn(usize) -> bool| {
            let mut counts = PartCounts::default();
            for members in clusters.values() {
                let size = members.iter().filter(|doc| within(**doc)).count() as u64;
                counts.documents += size;
                if size > 1 {
                    counts.clusters += 1;
                    counts.clustered += size;
                    *counts.sizes.entry(size).or_insert(0) += 1;
                }
            }
            counts
        };
        let counts = &level.counts;
        assert_eq!(counts.whole, part(&|_| true), "{}", level.name);
        assert_eq!(counts.connected, part(&|doc| self.reached[doc]), "{}", level.name);
        assert_eq!(counts.disconnected, part(&|doc| !self.reached[doc]), "{}", level.name);
        let several = || clusters.values().filter(|members| members.len() > 1);
        let reached = |members: &Vec<usize>| members.iter().any(|doc| self.reached[*doc]);
        assert_eq!(counts.clusters_reached, several().filter(|members| reached(members)).count() as u64);
        let unique =
            clusters.values().filter(|members| members.len() == 1 && self.reached[members[0]]).count();
        assert_eq!(counts.unique_reached(), unique as u64);
        let bytes: u64 = several().flat_map(|members| &members[1..]).map(|doc| self.bytes[*doc]).sum();
        assert_eq!(counts.duplicate_bytes, bytes);
        let on_site = |same: bool| {
            let of = |members: &&Vec<usize>| {
                let home = &self.sites[members[0]];
                members[1..].iter().filter(|doc| (self.sites[**doc] == *home) == same).count() as u64
            };
            clusters.values().map(|members| of(&members)).sum::<u64>()
        };
        let total =
            |of: fn(&crate::replication::ClassCounts) -> u64| counts.classes.iter().map(of).sum::<u64>();
        assert_eq!(total(|class| class.same_site_duplicates), on_site(true));
        assert_eq!(total(|class| class.cross_site_duplicates), on_site(false));
        let sizes: Vec<u64> = counts.largest.iter().map(|cluster| cluster.documents).collect();
        let mut expected: Vec<u64> = several().map(|members| members.len() as u64).collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        expected.truncate(sizes.len());
        assert_eq!(sizes, expected);
    }
}

fn hashed(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Everything that is reached from some documents, by looking at all links until nothing changes.
fn naive_reach(n: usize, links: &[(u32, u32)], from: impl Fn(usize) -> bool, backwards: bool) -> Vec<bool> {
    let mut reached: Vec<bool> = (0..n).map(from).collect();
    loop {
        let mut changed = false;
        for (src, dest) in links {
            let (src, dest) = if backwards { (*dest, *src) } else { (*src, *dest) };
            if reached[src as usize] && !reached[dest as usize] {
                reached[dest as usize] = true;
                changed = true;
            }
        }
        if !changed {
            return reached;
        }
    }
}

/// The largest set of documents that all reach each other; of equal ones that with the smallest
/// document.
fn naive_core(n: usize, links: &[(u32, u32)]) -> Vec<bool> {
    let mut best: Vec<bool> = vec![false; n];
    let mut known = vec![false; n];
    for doc in 0..n {
        if known[doc] {
            continue;
        }
        let (there, back) =
            (naive_reach(n, links, |at| at == doc, false), naive_reach(n, links, |at| at == doc, true));
        let component: Vec<bool> = there.iter().zip(&back).map(|(there, back)| *there && *back).collect();
        for at in 0..n {
            known[at] |= component[at];
        }
        let size = |of: &[bool]| of.iter().filter(|is| **is).count();
        if size(&component) > size(&best) {
            best = component;
        }
    }
    best
}

fn truth(made: &Made, web: &Web) -> (Truth, Vec<BTreeSet<u64>>, Vec<u64>) {
    let atlas = Atlas::open(made.atlas()).unwrap();
    let links = atlas.links().unwrap().map(Result::unwrap);
    let links: Vec<(u32, u32)> = links.map(|(src, dest)| (src.get(), dest.get())).collect();
    let mut composer = Composer::new(web);
    let n = web.n_pages() as usize;
    let mut truth = Truth { sites: Vec::new(), bytes: Vec::new(), has_text: Vec::new(), reached: Vec::new() };
    let (mut sets, mut texts) = (Vec::new(), Vec::new());
    for page in 0..web.n_pages() {
        let page = composer.page(page);
        truth.sites.push(page.url.split('/').nth(2).unwrap().to_owned());
        truth.bytes.push(page.html.len() as u64);
        let tokens = words(&page.text);
        truth.has_text.push(!tokens.is_empty());
        texts.push(hashed(&tokens));
        sets.push(shingles(&tokens, 4).iter().map(hashed).collect());
    }
    let core = naive_core(n, &links);
    truth.reached = naive_reach(n, &links, |doc| core[doc], false);
    (truth, sets, texts)
}

/// The number of the first of all that are equal.
fn grouped_by<K: Ord>(keys: impl IntoIterator<Item = K>) -> Vec<usize> {
    let mut first: BTreeMap<K, usize> = BTreeMap::new();
    keys.into_iter().enumerate().map(|(at, key)| *first.entry(key).or_insert(at)).collect()
}

#[test]
fn every_number_equals_the_truth() {
    let mut spec = WebSpec::of(Preset::Demo, 500, 3).with_scripts(&[(onionskin_testkit::Script::Latin, 1)]);
    spec.lengths.mean = 90.0;
    let (made, web) = Made::web(&spec);
    made.search(Search::Resemblance { threshold: 0.9, filter: None, exact: true }, false);
    made.search(Search::Paragraphs { share: 0.7 }, true);
    let (truth, sets, texts) = truth(&made, &web);
    let findings = made.study();
    let n = web.n_pages() as usize;
    assert_eq!(findings.documents, n as u64);
    assert_eq!(findings.texts, truth.has_text.iter().filter(|has| **has).count() as u64);
    assert_eq!(findings.bytes, truth.bytes.iter().sum::<u64>());
    assert_eq!(findings.sites, truth.sites.iter().collect::<BTreeSet<_>>().len() as u64);
    let parts = findings.parts.as_ref().unwrap();
    assert_eq!(parts.reached, truth.reached.iter().filter(|is| **is).count() as u64);
    assert_eq!(parts.documents.iter().sum::<u64>(), n as u64);
    assert_eq!(parts.by_depth.iter().sum::<u64>(), parts.reached);
    assert!(parts.reached < n as u64, "the islands are not reached");
    let level = |name: &str| findings.levels.iter().find(|level| level.name == name).unwrap();
    let equal = grouped_by(&texts);
    truth.check(level("exact"), &equal);
    let pairs = naive_pairs(&sets, 0.9).into_iter().map(|(a, b, _)| (a, b));
    let alike = naive_components(n, pairs.chain(equal.iter().copied().enumerate()));
    truth.check(level("resemblance-w4-90"), &grouped_by(alike));
    // Shingle paragraphs as they are in the atlas; equal texts belong together whatever their
    // punctuation.
    let atlas = Atlas::open(made.atlas()).unwrap();
    let mut paragraphs = vec![Vec::new(); n];
    let mut reader = atlas.chunks(&ChunkingName::new("sp").unwrap()).unwrap();
    while let Some((doc, fps)) = reader.next_group().unwrap() {
        paragraphs[doc.index()] = fps.to_vec();
        paragraphs[doc.index()].sort_unstable();
    }
    let same =
        grouped_by(paragraphs.iter().enumerate().map(|(doc, fps)| (fps.is_empty().then_some(doc), fps)));
    let same = naive_components(n, same.into_iter().enumerate().chain(equal.iter().copied().enumerate()));
    truth.check(level("paragraphs-100"), &grouped_by(same));
    // Near-duplicates: components of the pairs at each percentage, and the copies of their texts.
    let shared = |a: &[u64], b: &[u64]| {
        let mut left = b.to_vec();
        a.iter()
            .filter(|fp| left.iter().position(|at| at == *fp).map(|at| left.swap_remove(at)).is_some())
            .count()
    };
    let folded: Vec<usize> = (0..n).filter(|doc| truth.has_text[*doc] && equal[*doc] == *doc).collect();
    let copies = truth.has_text.iter().filter(|has| **has).count() - folded.len();
    assert_eq!(findings.near.iter().map(|(percent, _)| *percent).collect::<Vec<_>>(), [90, 70, 50]);
    for (percent, found) in &findings.near {
        let mut pairs = Vec::new();
        for (at, a) in folded.iter().enumerate() {
            for b in &folded[at + 1..] {
                let (a, b) = (*a, *b);
                let most = paragraphs[a].len().max(paragraphs[b].len());
                if 100 * shared(&paragraphs[a], &paragraphs[b]) >= *percent as usize * most {
                    pairs.push((a, b));
                }
            }
        }
        let components = naive_components(n, pairs.iter().copied());
        let near = folded.iter().filter(|doc| components[**doc] != **doc).count();
        assert_eq!(*found, (near + copies) as u64, "{percent} %");
    }
    assert_eq!(
        findings.main_level().unwrap().name,
        "resemblance-w4-90",
        "that of the search that clusters are from"
    );

    // What is written tells the same.
    let parsed: Value = serde_json::from_str(&json(&overview(&findings))).unwrap();
    let tables: Vec<&Value> = parsed["sections"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|section| section["tables"].as_array().unwrap())
        .collect();
    let rows = |id: &str| tables.iter().find(|table| table["id"] == id).unwrap()["rows"].as_array().unwrap();
    for (level, row) in findings.levels.iter().zip(rows("levels")) {
        let whole = &level.counts.whole;
        assert_eq!(row["level"], level.title);
        for (key, n) in [
            ("documents", whole.documents),
            ("clusters", whole.clusters),
            ("duplicates", whole.duplicates()),
            ("unique", whole.unique()),
            ("bytes_in_duplicates", level.counts.duplicate_bytes),
        ] {
            assert_eq!(row[key], n, "{key}");
        }
    }
    for (level, row) in findings.levels.iter().zip(rows("coverage")) {
        assert_eq!(row["useful_reached"], level.counts.useful_reached());
        assert_eq!(row["clusters_reached"], level.counts.clusters_reached);
    }
    for (level, row) in findings.levels.iter().zip(rows("duplicates-by-part")) {
        assert_eq!(row["disconnected"], level.counts.disconnected.duplicates());
        assert_eq!(row["connected"], level.counts.connected.duplicates());
    }
    let of_tie: Vec<u64> = rows("bow-tie").iter().map(|row| row["documents"].as_u64().unwrap()).collect();
    assert_eq!(of_tie, parts.documents);
    let copied: u64 = findings.copied_sites.iter().map(|site| u64::from(site.counts.duplicates)).sum();
    assert_eq!(copied, level("resemblance-w4-90").counts.whole.duplicates(), "fewer sites than are listed");
    assert_eq!(findings.site_shares.iter().sum::<u64>(), findings.sites);
}

#[test]
fn a_crawl_begins_where_it_is_told() {
    let (made, web) = Made::web(&WebSpec::of(Preset::Disconnected, 300, 5));
    let atlas = Atlas::open(made.atlas()).unwrap();
    let links = atlas.links().unwrap().map(Result::unwrap);
    let links: Vec<(u32, u32)> = links.map(|(src, dest)| (src.get(), dest.get())).collect();
    let n = web.n_pages() as usize;
    let last = n - 1;
    let mut params = made.params();
    params.seeds = vec![web.page_number(last as u64).url, "http://nowhere.example/".to_owned()];
    let findings = study(&params, &Quiet).unwrap();
    let reached = naive_reach(n, &links, |doc| doc == last, false);
    let parts = findings.parts.unwrap();
    assert_eq!(parts.seeds, Some(1));
    assert_eq!(parts.reached, reached.iter().filter(|is| **is).count() as u64);
    params.seeds = vec!["http://nowhere.example/".to_owned()];
    assert!(matches!(study(&params, &Quiet), Err(ReportError::NoSeeds(1))));
}

#[test]
fn duplicates_where_links_do_not_lead_are_told_and_early_iterations_tell_the_end() {
    let mut spec = WebSpec::of(Preset::Disconnected, 20_000, 11).with_mean_words(40.0);
    spec.varied_markup = false;
    let (made, _) = Made::web(&spec);
    made.search(Search::Paragraphs { share: 0.5 }, false);
    let findings = made.study();
    let level = findings.levels.iter().find(|level| level.name == "paragraphs-100").unwrap();
    let counts = &level.counts;
    assert!(
        counts.disconnected.duplicate_share() > 1.2 * counts.connected.duplicate_share(),
        "{} {}",
        counts.disconnected.duplicate_share(),
        counts.connected.duplicate_share()
    );
    let share = counts.whole.duplicate_share();
    for (iterations, points) in [(10, 2.0), (25, 0.5)] {
        let estimate = counts.growth.estimate(iterations).share;
        assert!(100.0 * (estimate.value - share).abs() < points, "{iterations}: {estimate:?}, {share}");
        assert!(estimate.low <= share && share <= estimate.high, "{iterations}: {estimate:?}, {share}");
    }
    let end = counts.growth.estimate(50).share;
    assert_eq!((end.low, end.high), (share, share));
    let page = html(&overview(&findings));
    assert!(page.contains("they are more common where links do not lead"), "the tables show it");

    // The paper's own way: an earlier web of the same kind is the yardstick.
    let (earlier, _) = Made::web(&WebSpec { seed: 12, ..spec });
    earlier.search(Search::Paragraphs { share: 0.5 }, false);
    let mut params = made.params();
    params.reference = Some(earlier.atlas());
    let findings = study(&params, &Quiet).unwrap();
    let (_, reference) = findings.reference.as_ref().unwrap();
    let main = &findings.main_level().unwrap().counts;
    for (iterations, points) in [(10, 2.0), (25, 0.5)] {
        let guess = main.growth.estimate_from(reference, iterations).unwrap();
        assert!(
            100.0 * (guess.share - main.whole.duplicate_share()).abs() < points,
            "{iterations}: {guess:?}"
        );
    }
    let table = csv(&overview(&findings)).into_iter().find(|(name, _)| name == "estimates.csv").unwrap().1;
    assert!(table.starts_with("level,iterations_percent,") && table.contains("estimated_by_the_reference"));
}

#[test]
fn exponents_of_planted_sizes_are_found() {
    let (made, _) =
        {
            use onionskin_testkit::{ClusterKind, ClusterSize, ClusterSpec};
            let size = ClusterSize::Zipf { exponent: 2.5, most: 100_000 };
            let spec = WebSpec::of(Preset::Text, 30_000, 4)
                .with_mean_words(20.0)
                .with_clusters(&[ClusterSpec { kind: ClusterKind::Exact, share: 0.9, size }]);
            Made::web(&spec)
        };
    let findings = made.study();
    let sizes: Vec<(u64, u64)> =
        findings.levels[0].counts.whole.sizes.iter().map(|(size, n)| (*size, *n)).collect();
    let law = crate::power_law::fit(&sizes, 2).unwrap();
    assert!((law.exponent - 2.5).abs() < 4.0 * law.standard_error, "{law:?}");
}

#[test]
fn small_webs_and_nothing_at_all_read_well() {
    let cases: [(&str, &[(&str, &str)]); 5] = [
        ("nothing", &[]),
        ("one", &[("http://a.example/", "one document by itself")]),
        ("empty", &[("http://a.example/", ""), ("http://a.example/b", " ")]),
        ("no addresses", &[("", "the same words twice"), ("", "the same words twice")]),
        (
            "two",
            &[("http://a.example/", "the same words twice"), ("http://b.example/", "the same words twice")],
        ),
    ];
    for (name, documents) in cases {
        let made =
            if documents.is_empty() { Made::documents(&[("", "")]) } else { Made::documents(documents) };
        for searched in [false, true] {
            if searched {
                made.search(Search::Resemblance { threshold: 0.9, filter: None, exact: false }, false);
            }
            let findings = made.study();
            let document = overview(&findings);
            let page = html(&document);
            for wrong in
                ["NaN", "inf\u{a0}%", " -0", " 1 documents", " 1 clusters", " 1 sites", "the 1 ", "  "]
            {
                let text = page.split("<main>").nth(1).unwrap().split("</main>").next().unwrap();
                let text: String =
                    text.split('<').filter_map(|piece| piece.split_once('>')).map(|(_, text)| text).collect();
                assert!(!text.contains(wrong), "{name}: {wrong:?} in {text}");
            }
            assert!(page.contains("There are no links between these documents"));
            let duplicates = findings.levels[0].counts.whole.duplicates();
            assert_eq!(duplicates, u64::from(name == "two" || name == "no addresses"), "{name}");
            for (figure, text) in csv(&document) {
                assert!(text.ends_with('\n'), "{figure}");
            }
        }
    }
}

#[test]
fn a_level_for_the_report_leaves_the_rest_alone() {
    let (made, _) = Made::web(&WebSpec::of(Preset::Demo, 500, 8));
    made.search(Search::Resemblance { threshold: 0.9, filter: None, exact: false }, false);
    let mut params = CollectionsParams::new(made.atlas());
    params.memory = MemoryBudget::from_mib(256);
    collections(&params, &Quiet).unwrap();
    let before = files(&made.atlas());
    made.search(
        Search::Overlap {
            chunking: "l4".to_owned(),
            threshold: onionskin_core::Threshold::new(2).unwrap(),
            engine: onionskin_similar::Engine::Prefix,
        },
        true,
    );
    let after = files(&made.atlas());
    assert!(
        after.contains_key("copies/overlap-l4-2/part-00000.parquet")
            || after.keys().any(|name| name.starts_with("copies/overlap-l4-2/"))
    );
    for (name, bytes) in &before {
        assert!(name == "manifest.json" || after[name] == *bytes, "{name}");
    }
    let findings = made.study();
    let names: Vec<&str> = findings.levels.iter().map(|level| level.name.as_str()).collect();
    assert_eq!(names, ["exact", "overlap-l4-2", "resemblance-w4-90"]);
    assert_eq!(findings.main, 2);
    let found = findings.collections.as_ref().unwrap();
    assert!(
        found.groups > 0 && !found.top.is_empty() && found.points.len() as u64 == found.groups + found.noise
    );
    assert!(findings.costs.iter().any(|cost| cost.stage == "similar" && cost.of == "overlap-l4-2"));
    // A new scan begins anew.
    let level = LevelName::new("overlap-l4-2").unwrap();
    let record = Atlas::open(made.atlas()).unwrap().level::<LevelRecord>(&level).unwrap().unwrap();
    assert_eq!(record.search.threshold(), Some(2.0));
}

#[test]
fn memory_changes_nothing() {
    let (made, _) = Made::web(&WebSpec::of(Preset::Demo, 800, 2));
    made.search(Search::Resemblance { threshold: 0.9, filter: None, exact: false }, false);
    let report = |mib| {
        let mut params = made.params();
        params.memory = MemoryBudget::from_mib(mib);
        json(&overview(&study(&params, &Quiet).unwrap()))
    };
    assert_eq!(report(64), report(1024));
    let mut params = made.params();
    params.memory = MemoryBudget::from_mib(32);
    assert!(matches!(study(&params, &Quiet), Err(ReportError::TooLittleMemory { .. })));
    assert!(!params.work_dir.exists(), "nothing is left behind");
}

#[test]
fn files_are_written_and_old_ones_go() {
    let made = Made::documents(&[
        ("http://a.example/", "words of a text"),
        ("http://b.example/", "words of a text"),
    ]);
    let folder = made.folder.path().join("out");
    fs::create_dir_all(folder.join("figures")).unwrap();
    fs::write(folder.join("figures/old.svg"), "").unwrap();
    fs::write(folder.join("mine.txt"), "").unwrap();
    let document = overview(&made.study());
    let written = write_report(&document, &folder, true).unwrap();
    let found = files(&folder);
    assert!(
        found.contains_key("report.html")
            && found.contains_key("report.json")
            && found.contains_key("mine.txt")
    );
    assert!(found.contains_key("figures/replicas.svg") && found.contains_key("figures/replicas.png"));
    assert!(found.contains_key("tables/levels.csv") && !found.contains_key("figures/old.svg"));
    assert_eq!(written.files as usize, found.len() - 1);
    let again = write_report(&document, &folder, true).unwrap();
    assert_eq!((again, files(&folder)), (written, found), "the same bytes");
}

#[test]
fn two_crawls_are_compared() {
    let earlier = Made::documents(&[
        ("http://a.example/same", "this page does not change at all"),
        ("http://a.example/edited", "this page will be edited by somebody"),
        ("http://a.example/moved", "this page will move to another place"),
        ("http://a.example/gone", "this page will be gone for good"),
        ("http://b.example/copy1", "two pages of one text in both crawls"),
        ("http://b.example/copy2", "two pages of one text in both crawls"),
        ("http://c.example/empty", ""),
        ("", "nobody knows where this was"),
    ]);
    let later = Made::documents(&[
        ("http://a.example/same", "this page does not change at all"),
        ("http://a.example/edited", "this page has been edited by somebody else"),
        ("http://d.example/moved", "this page will move to another place"),
        ("http://d.example/new", "this page is new"),
        ("http://b.example/copy1", "two pages of one text in both crawls"),
        ("http://b.example/copy2", "two pages of one text in both crawls"),
        ("http://d.example/copy3", "two pages of one text in both crawls"),
        ("http://d.example/blank", ""),
        // The same page fetched twice: the last one counts.
        ("http://a.example/edited", "this page will be edited by somebody"),
    ]);
    let params = CompareParams {
        earlier: earlier.atlas(),
        later: later.atlas(),
        memory: MemoryBudget::from_mib(128),
        work_dir: later.folder.path().join("work"),
    };
    let found = compare(&params, &Quiet).unwrap();
    assert_eq!((found.documents, found.addresses, found.without_address), ([8, 9], [7, 8], [1, 0]));
    assert_eq!((found.unchanged, found.changed), (4, 0), "edited and edited back");
    let fate = |fate: crate::report::Fate| (fate.addresses, fate.text_elsewhere, fate.empty, fate.copied);
    assert_eq!(fate(found.new), (4, 2, 1, 1), "moved, new, copy3, blank");
    assert_eq!(fate(found.gone), (3, 1, 1, 0), "moved, gone, empty");
    assert_eq!((found.still_copied, found.no_longer_copied, found.newly_copied), (2, 0, 0));
    assert_eq!((found.sites_both, found.sites_new, found.sites_gone), (2, 1, 1));
    assert_eq!(found.levels.len(), 1);
    assert_eq!((found.levels[0].1[0].duplicates(), found.levels[0].1[1].duplicates()), (1, 2));
    let host = found.sites.iter().find(|site| site.host == "d.example").unwrap();
    assert_eq!((host.before, host.after, host.new, host.gone), (0, 4, 4, 0));
    let page = html(&crate::report::changes(&found));
    assert!(page.contains("4 pages are in both crawls") && page.contains("1 document of"));

    // A crawl against itself.
    let same = compare(&CompareParams { later: earlier.atlas(), ..params }, &Quiet).unwrap();
    assert_eq!((same.unchanged, same.changed, same.new.addresses, same.gone.addresses), (7, 0, 0, 0));
}
