use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::avoid::Matcher;
use onionskin_core::{CollectionId, DocId, ReplicaId};
use onionskin_store::table::document;
use onionskin_store::table::{CollectionGroupRow, CollectionPageRow, CollectionRow, UrlRuleRow};
use onionskin_testkit::{Preset, ReplicaSpec, TargetSpec, Web as Generated, WebSpec};
use serde_json::json;

use super::*;
use crate::avoid::{AvoidParams, avoid, simulate_crawl};
use onionskin_explain::evaluate::{MirrorScore, evaluate_mirrors};
use onionskin_scan::testing::CancelAfter;
use onionskin_scan::{ScanParams, scan};
use onionskin_similar::Search;
use onionskin_similar::{SimilarParams, similar};
use onionskin_store::{Event, Quiet};

struct Made {
    folder: tempfile::TempDir,
}

impl Made {
    /// A web, scanned and searched for similar pages.
    fn of(spec: &WebSpec) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let web = Generated::new(spec).unwrap();
        let mut warc = fs::File::create(folder.path().join("web.warc")).unwrap();
        web.write_warc(&mut warc, 0..web.n_pages(), Default::default(), &mut |_, _| {}).unwrap();
        let mut truth = fs::File::create(folder.path().join("truth.jsonl")).unwrap();
        web.write_truth(&mut truth, Default::default(), &mut |_, _| {}).unwrap();
        let made = Made { folder };
        made.scan("web.warc");
        made
    }

    /// Pages as address and text, one a line.
    fn of_pages(pages: &[(String, String)]) -> Made {
        let folder = tempfile::tempdir().unwrap();
        let lines: Vec<String> =
            pages.iter().map(|(url, text)| json!({ "url": url, "text": text }).to_string()).collect();
        fs::write(folder.path().join("pages.jsonl"), lines.join("\n")).unwrap();
        let made = Made { folder };
        made.scan("pages.jsonl");
        made
    }

    fn scan(&self, input: &str) {
        let input = self.folder.path().join(input).display().to_string();
        let mut params = ScanParams::new(vec![input], self.atlas());
        params.memory = MemoryBudget::from_mib(256);
        scan(&params, &Quiet).unwrap();
        let mut params = SimilarParams::new(self.atlas());
        params.memory = MemoryBudget::from_mib(256);
        params.search = Search::Resemblance { threshold: 0.8, filter: None, exact: false };
        params.measure_recall = false;
        similar(&params, &Quiet).unwrap();
    }

    fn atlas(&self) -> PathBuf {
        self.folder.path().join("atlas")
    }

    fn params(&self, merge: Merge) -> CollectionsParams {
        let mut params = CollectionsParams::new(self.atlas());
        params.merge = merge;
        params.memory = MemoryBudget::from_mib(256);
        params
    }

    fn find(&self, merge: Merge) -> CollectionsSummary {
        collections(&self.params(merge), &Quiet).unwrap()
    }

    fn score(&self) -> MirrorScore {
        evaluate_mirrors(&self.atlas(), &self.folder.path().join("truth.jsonl")).unwrap().unwrap()
    }

    fn check(&self) -> CheckReport {
        check_collections(&self.atlas(), MemoryBudget::from_mib(128), &self.folder.path().join("work"))
            .unwrap()
    }

    fn open(&self) -> Atlas {
        Atlas::open(self.atlas()).unwrap()
    }

    fn groups(&self) -> Vec<CollectionGroupRow> {
        self.open().collection_groups().unwrap().map(Result::unwrap).collect()
    }

    fn replicas(&self) -> Vec<CollectionRow> {
        self.open().collections().unwrap().map(Result::unwrap).collect()
    }

    fn pages(&self) -> Vec<CollectionPageRow> {
        self.open().collection_pages().unwrap().map(Result::unwrap).collect()
    }

    fn rules(&self) -> Vec<UrlRuleRow> {
        self.open().url_rules().unwrap().map(Result::unwrap).collect()
    }

    fn urls(&self) -> Vec<String> {
        let mut urls = Vec::new();
        for batch in self.open().documents().unwrap().select::<(document::Url,)>() {
            urls.extend(batch.unwrap().rows().map(|(url,)| url.unwrap_or_default().to_owned()));
        }
        urls
    }

    fn tables(&self) -> BTreeMap<String, Vec<u8>> {
        let mut found = BTreeMap::new();
        for table in ["collections", "collection_pages", "collection_groups", "url_rules"] {
            let Ok(entries) = fs::read_dir(self.atlas().join(table)) else { continue };
            for entry in entries {
                let path = entry.unwrap().path();
                let name = format!("{table}/{}", path.file_name().unwrap().display());
                found.insert(name, fs::read(path).unwrap());
            }
        }
        found.insert("manifest.json".to_owned(), fs::read(self.atlas().join("manifest.json")).unwrap());
        found
    }
}

/// The experiment of section 4, smaller where time is short.
fn experiment() -> Made {
    let pages = if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 50_000 } else { 12_000 };
    Made::of(&WebSpec::of(Preset::Mirrors, pages, 7))
}

#[test]
fn the_experiment_of_section_4() {
    let made = experiment();
    let mut problems = Vec::new();
    for merge in Merge::ALL {
        made.find(merge);
        let report = made.check();
        assert_eq!(report.violations, 0, "{merge}: {report:?}");
        let score = made.score();
        assert!(score.targets >= 24, "{score:?}");
        assert_eq!(score.targets_found, score.targets, "{merge}: every target has its cluster");
        problems.push((score.problems, score.collections));
        if merge == Merge::Tolerant {
            let whole = score.mirrors_whole as f64 / score.mirrors as f64;
            assert!(whole >= 0.98, "{whole} of {} mirrors are whole: {:?}", score.mirrors, score.misses);
            assert!(score.problems * 50 <= score.collections, "{score:?}");
        }
    }
    // The paper: 31 of 180 under the strict condition, 8 under the extended one. Our mirrors differ
    // more than theirs.
    assert!(
        problems[1].0 * 2 < problems[0].0,
        "the extended condition halves the problem collections: {problems:?}"
    );
}

#[test]
fn the_same_bytes_for_any_memory_threads_and_batches() {
    let made = Made::of(&WebSpec::of(Preset::Demo, 1_500, 4));
    for merge in Merge::ALL {
        made.find(merge);
        let expected = made.tables();
        for (mib, threads, batch_bytes) in [(64, 1, None), (256, 2, Some(150_000)), (1024, 3, Some(400_000))]
        {
            let mut params = made.params(merge);
            params.memory = MemoryBudget::from_mib(mib);
            params.threads = threads;
            params.batch_bytes = batch_bytes;
            collections(&params, &Quiet).unwrap();
            assert!(
                made.tables() == expected,
                "{merge}, {mib} MiB, {threads} threads, batches of {batch_bytes:?}"
            );
        }
    }
}

/// Panics at the nth event.
struct StopAt(Cell<u32>);

impl Progress for StopAt {
    fn event(&self, _: Event<'_>) {
        let left = self.0.get();
        assert!(left > 0, "stopped by the test");
        self.0.set(left - 1);
    }
}

#[test]
fn a_run_that_was_stopped_ends_in_the_same_bytes() {
    let made = Made::of(&WebSpec::of(Preset::Demo, 700, 4));
    made.find(Merge::Tolerant);
    let expected = made.tables();
    for stop in 1..4 {
        let params = made.params(Merge::Tolerant);
        let stopped = catch_unwind(AssertUnwindSafe(|| collections(&params, &StopAt(Cell::new(stop)))));
        assert!(stopped.is_err());
        let summary = collections(&params, &Quiet).unwrap();
        assert!(summary.resumed);
        assert!(made.tables() == expected, "stopped after {stop} steps");
    }
}

#[test]
fn a_search_for_mirrors_stops_when_it_is_told_and_goes_on() {
    let made = Made::of(&WebSpec::of(Preset::Demo, 700, 4));
    made.find(Merge::Tolerant);
    let expected = made.tables();
    let params = made.params(Merge::Tolerant);
    let stops = CancelAfter::until_done(20, |progress| collections(&params, progress));
    assert!(stops >= 2, "{stops} stops");
    assert!(made.tables() == expected);
}

#[test]
fn kinds_of_copies_are_told() {
    let mut spec = WebSpec::of(Preset::Mirrors, 1_200, 5);
    let target = |replicas| TargetSpec { pages: 40, low: 0.85, high: 0.98, replicas };
    spec.targets = vec![
        target(vec![ReplicaSpec::full(), ReplicaSpec::partial(0.4)]),
        target(vec![ReplicaSpec::skewed(1, 0.1, 0.05, 2).on_same_host()]),
    ];
    spec.aliased_sites = vec![30];
    let made = Made::of(&spec);
    made.find(Merge::Tolerant);
    let kinds: BTreeSet<&str> = made.replicas().iter().map(|replica| replica.kind.as_str()).collect();
    for kind in ["principal", "mirror", "partial mirror", "host alias"] {
        assert!(kinds.contains(kind), "{kind}: {kinds:?}");
    }
    assert!(
        kinds.contains("versioned documentation") || kinds.contains("copy on the same site"),
        "a copy inside a site is told from mirrors: {kinds:?}"
    );
    let groups = made.groups();
    assert!(groups.iter().all(|group| !group.name.is_empty() && !group.evidence.is_empty()));
    for replica in made.replicas() {
        assert!((0.0..=1.0).contains(&replica.coverage));
        let pages = made.pages();
        let own = pages.iter().filter(|page| (page.group, page.replica) == (replica.group, replica.replica));
        assert_eq!(own.filter(|page| !page.is_virtual).count() as u64, replica.pages);
    }
}

#[test]
fn rewritings_of_addresses_are_learned() {
    let words = |n: usize| (0..40).map(|at| format!("w{n}x{at}")).collect::<Vec<_>>().join(" ");
    let mut pages = Vec::new();
    for n in 0..12 {
        pages.push((format!("http://a.org/p{n}?id={n}"), words(n)));
        pages.push((format!("http://a.org/p{n}?id={n}&sid=77{n}"), words(n)));
        pages.push((format!("http://a.org/d{n}/"), words(100 + n)));
        pages.push((format!("http://a.org/d{n}/index.html"), words(100 + n)));
        // Here dropping the parameter leads to another page.
        pages.push((format!("http://b.org/list?page={n}"), words(200 + n)));
        pages.push((format!("http://b.org/list?page={n}&sort=up"), words(300 + n)));
    }
    let made = Made::of_pages(&pages);
    made.find(Merge::Tolerant);
    let rules = made.rules();
    let rule = |kind: &str, pattern: &str, host: Option<&str>| {
        rules.iter().find(|rule| {
            (rule.kind.as_str(), rule.pattern.as_str(), rule.host.as_deref()) == (kind, pattern, host)
        })
    };
    let sid = rule("drop parameter", "sid", Some("a.org")).expect("session ids are seen");
    assert_eq!((sid.support, sid.checked, sid.confidence), (12, 12, 1.0));
    assert!(sid.example_from.contains("sid=") && !sid.example_to.contains("sid="));
    assert!(rule("drop index page", "index.html", Some("a.org")).is_some());
    assert!(rule("drop index page", "index.html", None).is_some(), "it may hold everywhere");
    assert!(!rules.iter().any(|rule| rule.pattern == "sort" || rule.pattern == "page"), "{rules:?}");
}

#[test]
fn an_avoid_list_skips_copies_and_nothing_else() {
    let made = Made::of(&WebSpec::of(Preset::Mirrors, 6_000, 3));
    made.find(Merge::Tolerant);
    let careful = avoid(&AvoidParams::new(made.atlas())).unwrap();
    // Links of the generated web are skewed: not every original is linked to by several domains.
    let params = AvoidParams { weak: true, ..AvoidParams::new(made.atlas()) };
    let report = avoid(&params).unwrap();
    assert!(careful.list.entries.len() > 10 && careful.weak > 0);
    assert_eq!(report.list.entries.len(), careful.list.entries.len() + careful.weak as usize);
    // Every page that a rule holds for is a page of that replica, and no kept page is among them.
    let urls = made.urls();
    let matcher = Matcher::new(&report.list);
    let mut of_replica: BTreeMap<(CollectionId, ReplicaId), BTreeSet<DocId>> = BTreeMap::new();
    for page in made.pages().into_iter().filter(|page| !page.is_virtual) {
        of_replica.entry((page.group, page.replica)).or_default().insert(page.doc);
    }
    let principals: BTreeSet<(CollectionId, ReplicaId)> =
        made.replicas().iter().filter(|row| row.is_principal).map(|row| (row.group, row.replica)).collect();
    let mut skipped = 0;
    for (doc, url) in DocId::MIN.onward().zip(&urls) {
        for hit in matcher.all(url) {
            let entry = &report.list.entries[hit.entry];
            assert!(
                of_replica[&(entry.group, entry.replica)].contains(&doc),
                "{url} is outside its collection"
            );
        }
        if matcher.skips(url) {
            skipped += 1;
            assert!(!principals.iter().any(|key| of_replica[key].contains(&doc)), "{url} is kept");
        }
    }
    assert_eq!(skipped, report.simulation.skipped);
    let (before, after) = (&report.simulation.before, &report.simulation.after);
    assert!(before.similar_share() > 0.5 && after.similar_share() < 0.05, "{before:?} {after:?}");
    assert_eq!(simulate_crawl(&report.list, &made.atlas()).unwrap(), report.simulation);
    // A crawl that is the same as the one the list was made from has nothing that must come off.
    let date = "2026-11-16".parse().unwrap();
    let audited = crate::avoid::audit(&report.list, &made.atlas(), date, &Default::default()).unwrap();
    assert!(audited.iter().all(|entry| entry.audited.verdict.stays()), "{audited:?}");
}

#[test]
fn a_mirror_that_became_something_else_comes_off_the_list() {
    let page = |site: &str, n: usize, salt: &str| {
        let words: Vec<String> = (0..60).map(|at| format!("w{salt}{n}x{at}")).collect();
        let links = format!("<a href=/p{}.html>x</a>", (n + 1) % 15);
        (format!("http://{site}/p{n}.html"), format!("{} {links}", words.join(" ")))
    };
    let crawl = |salt: &str| -> Vec<(String, String)> {
        (0..15).map(|n| page("www.a.org", n, "")).chain((0..15).map(|n| page("www.b.org", n, salt))).collect()
    };
    let scan = |pages: &[(String, String)]| {
        let folder = tempfile::tempdir().unwrap();
        let lines: Vec<String> =
            pages.iter().map(|(url, text)| json!({ "url": url, "text": text }).to_string()).collect();
        fs::write(folder.path().join("pages.jsonl"), lines.join("\n")).unwrap();
        let made = Made { folder };
        let mut params =
            ScanParams::new(vec![made.folder.path().join("pages.jsonl").display().to_string()], made.atlas());
        params.options.text_is_html = true;
        scan(&params, &Quiet).unwrap();
        similar(&SimilarParams::new(made.atlas()), &Quiet).unwrap();
        made
    };
    let (old, new) = (scan(&crawl("")), scan(&crawl("other")));
    old.find(Merge::Tolerant);
    let params = AvoidParams { weak: true, ..AvoidParams::new(old.atlas()) };
    let report = avoid(&params).unwrap();
    assert_eq!(report.list.entries.len(), 1, "{:?}", old.groups());
    let audit = |made: &Made| {
        let date = "2026-11-16".parse().unwrap();
        crate::avoid::audit(&report.list, &made.atlas(), date, &Default::default()).unwrap().remove(0).audited
    };
    assert_eq!(audit(&old).verdict.name(), "holds");
    assert_eq!(audit(&new).verdict.name(), "changed");
    // And a dead page of the copy has a stand-in.
    let found = crate::avoid::alternates(&old.atlas(), "http://www.b.org/p3.html").unwrap();
    assert_eq!(found[0].url, "http://www.a.org/p3.html");
    let gone = crate::avoid::alternates(&old.atlas(), "http://www.b.org/never-seen.html").unwrap();
    assert!(gone.is_empty());
}

#[test]
fn another_search_for_similar_pages_voids_collections() {
    let made = Made::of(&WebSpec::of(Preset::Demo, 600, 4));
    made.find(Merge::Tolerant);
    let again = |threshold| {
        let mut params = SimilarParams::new(made.atlas());
        params.search = Search::Resemblance { threshold, filter: None, exact: false };
        params.measure_recall = false;
        similar(&params, &Quiet).unwrap();
    };
    again(0.8);
    assert!(made.open().has(&TableName::Collections), "the same pairs leave them as they are");
    again(0.5);
    for table in Table::MIRRORS {
        assert!(!made.open().has(&table.name()), "{table}");
        assert!(!made.atlas().join(table.folder()).exists(), "{table}");
    }
    assert!(made.open().record::<CollectionsRecord>().unwrap().is_none());
    made.find(Merge::Strict);
    assert!(made.open().has(&TableName::Collections));
}

#[test]
fn what_is_missing_is_told() {
    let made = Made::of_pages(&[("http://a.org/".to_owned(), "one two three four five".to_owned())]);
    let summary = made.find(Merge::Tolerant);
    assert_eq!((summary.counts.groups, summary.counts.url_rules), (0, 0));
    assert_eq!(made.check(), CheckReport::default());
    let mut params = made.params(Merge::Tolerant);
    params.single_site = false;
    assert!(
        collections(&params, &Quiet).unwrap_err().to_string().contains("hint: extended and strict merging")
    );
    params = made.params(Merge::Strict);
    params.memory = MemoryBudget::from_mib(8);
    assert!(collections(&params, &Quiet).unwrap_err().to_string().contains("at least 64M"));
    let error = avoid(&AvoidParams::new(Path::new("/nowhere/at/all").to_owned())).unwrap_err().to_string();
    assert!(error.contains("/nowhere/at/all"), "{error}");
}
