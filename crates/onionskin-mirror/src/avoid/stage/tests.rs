//! Crawls in which somebody has copied a site: whatever the copy does, the site is not skipped.

use std::fmt::Write as _;
use std::path::PathBuf;

use onionskin_scan::{ScanParams, scan};
use onionskin_similar::{SimilarParams, similar};
use onionskin_store::table::PrincipalReason as Reason;
use onionskin_store::{MemoryBudget, Quiet};

use super::*;
use crate::avoid::{AvoidReport, Matcher, Protected, SkipRule};
use crate::{CollectionsParams, collections};

/// The site that is copied, and the one that copies it.
const FAMOUS: &str = "http://famous.org/";
const ATTACKER: &str = "http://attacker.com/";

/// Pages in the order of the crawl.
#[derive(Clone, Default)]
struct Crawl {
    pages: Vec<(String, String, String)>,
}

impl Crawl {
    /// A copy of the same pages, linked one to the next, below an address. Where `canonical` is
    /// given, each names the page below that one.
    fn copy(mut self, base: &str, pages: usize, date: &str, canonical: Option<&str>) -> Crawl {
        let name = |n: usize| if n == 0 { String::new() } else { format!("p{n}.html") };
        for n in 0..pages {
            let words: String = (0..60).map(|at| format!("w{n}x{at} ")).collect();
            let head = canonical.map(|base| format!("<link rel=canonical href=\"{base}{}\">", name(n)));
            let links = format!("<a href=\"{base}{}\">next</a>", name((n + 1) % pages));
            let html =
                format!("<html><head>{}</head><body>{words}{links}</body></html>", head.unwrap_or_default());
            self.pages.push((format!("{base}{}", name(n)), date.to_owned(), html));
        }
        self
    }

    /// Sites with a page of their own that links somewhere.
    fn linking(mut self, hosts: impl Iterator<Item = String>, to: &str) -> Crawl {
        for host in hosts {
            let words: String = (0..60).map(|at| format!("own{host}x{at} ")).collect();
            let html = format!("<html><body>{words}<a href=\"{to}\">there</a></body></html>");
            self.pages.push((format!("http://{host}/"), NOW.to_owned(), html));
        }
        self
    }

    fn warc(&self) -> String {
        let mut warc = String::new();
        for (at, (url, date, html)) in self.pages.iter().enumerate() {
            let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{html}");
            let _ = write!(
                warc,
                "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: {date}\r\n\
                 WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{at:012}>\r\n\
                 Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
                http.len()
            );
        }
        warc
    }

    fn searched(&self) -> Searched {
        let folder = tempfile::tempdir().unwrap();
        let (input, atlas) = (folder.path().join("web.warc"), folder.path().join("atlas"));
        std::fs::write(&input, self.warc()).unwrap();
        let memory = MemoryBudget::from_mib(256);
        let mut params = ScanParams::new(vec![input.display().to_string()], atlas.clone());
        params.memory = memory;
        scan(&params, &Quiet).unwrap();
        let params = SimilarParams { measure_recall: false, memory, ..SimilarParams::new(atlas.clone()) };
        similar(&params, &Quiet).unwrap();
        let params = CollectionsParams { memory, ..CollectionsParams::new(atlas.clone()) };
        collections(&params, &Quiet).unwrap();
        Searched { atlas, _folder: folder }
    }
}

struct Searched {
    atlas: PathBuf,
    _folder: tempfile::TempDir,
}

impl Searched {
    fn avoid(&self, change: impl FnOnce(&mut AvoidParams)) -> AvoidReport {
        let mut params = AvoidParams::new(self.atlas.clone());
        params.memory = MemoryBudget::from_mib(64);
        change(&mut params);
        avoid(&params).unwrap()
    }
}

const NOW: &str = "2024-05-01T00:00:00Z";
const LONG_AGO: &str = "2010-05-01T00:00:00Z";

fn hosts(n: usize, of: &'static str) -> impl Iterator<Item = String> {
    (0..n).map(move |at| of.replace('*', &at.to_string()))
}

/// No page of the original is skipped, whatever the order of the crawl; and where there is
/// evidence, the copy is.
#[track_caller]
fn check(crawl: Crawl, strong: Option<Reason>) {
    let backwards = Crawl { pages: crawl.pages.iter().rev().cloned().collect() };
    for crawl in [crawl, backwards] {
        let searched = crawl.searched();
        let report = searched.avoid(|_| {});
        let matcher = Matcher::new(&report.list);
        for (url, ..) in &crawl.pages {
            assert!(!url.contains("famous.org/") || !matcher.skips(url), "{url}: {:?}", report.list);
        }
        assert!(!report.list.entries.iter().any(|entry| entry.host.as_str().ends_with("famous.org")));
        match strong {
            Some(reason) => {
                let entry = report.list.entries.first().expect("the copy is skipped");
                assert!(entry.host.as_str().ends_with("attacker.com"), "{entry:?}");
                assert_eq!(entry.principal_reason.as_deref(), Some(reason.as_str()), "{entry:?}");
                assert_eq!(report.weak, 0);
            }
            None => assert_eq!((report.list.entries.len(), report.weak), (0, 1), "{:?}", report.list),
        }
    }
}

fn both(pages: usize) -> Crawl {
    Crawl::default().copy(FAMOUS, pages, NOW, None).copy(ATTACKER, pages, NOW, None)
}

#[test]
fn linked_by_many() {
    check(both(20).linking(hosts(10, "site*.net"), FAMOUS), Some(Reason::Links));
    // One host with many pages has one vote.
    let farm = (0..15).fold(both(20).linking(hosts(3, "site*.net"), FAMOUS), |crawl, n| {
        let mut crawl = crawl.linking(hosts(1, "www.farm.net"), ATTACKER);
        if let Some(page) = crawl.pages.last_mut() {
            page.0 = format!("http://www.farm.net/{n}.html");
            page.2 = page.2.replace("own", &format!("own{n}"));
        }
        crawl
    });
    check(farm, Some(Reason::Links));
    let more = Crawl::default().copy(FAMOUS, 20, NOW, None).copy(ATTACKER, 23, NOW, None);
    check(more.linking(hosts(10, "site*.net"), FAMOUS), Some(Reason::Links));
}

#[test]
fn a_larger_copy_with_a_copy_of_its_own() {
    let three = Crawl::default().copy(FAMOUS, 12, NOW, None).copy(ATTACKER, 30, NOW, None).copy(
        "http://mirror.attacker.com/",
        30,
        NOW,
        None,
    );
    let searched = three.clone().linking(hosts(5, "site*.net"), FAMOUS).searched();
    let report = searched.avoid(|_| {});
    assert!(report.list.entries.iter().all(|entry| entry.host.as_str().ends_with("attacker.com")));
    let searched = three.searched();
    let report = searched.avoid(|_| {});
    assert!(!Matcher::new(&report.list).skips("http://famous.org/p3.html"), "{:?}", report.list);
}

#[test]
fn farms_of_subdomains() {
    let linked = || both(20).linking(hosts(10, "site*.net"), FAMOUS);
    check(linked().linking(hosts(30, "s*.farm.net"), ATTACKER), Some(Reason::Links));
    check(linked().linking(hosts(30, "s*.attacker.com"), ATTACKER), Some(Reason::Links));
    // Names that a company hands out to anybody.
    check(linked().linking(hosts(30, "s*.github.io"), ATTACKER), Some(Reason::Links));
    check(linked().linking(hosts(30, "192.0.2.*"), ATTACKER), Some(Reason::Links));
    // Without any other evidence a farm is none.
    check(both(20).linking(hosts(30, "s*.farm.net"), ATTACKER), None);
    check(both(20).linking(hosts(30, "s*.attacker.com"), ATTACKER), None);
}

#[test]
fn canonical_decides() {
    let copies = |from: &str, to: &str| {
        Crawl::default().copy(from, 20, NOW, Some(FAMOUS)).copy(to, 20, NOW, Some(FAMOUS))
    };
    let named = copies(FAMOUS, ATTACKER);
    check(named.clone().linking(hosts(30, "s*.farm.net"), ATTACKER), Some(Reason::Canonical));
    check(named.linking(hosts(5, "farm*.net"), ATTACKER), Some(Reason::Canonical));
    let docs = "http://famous.org/docs/";
    let deep = Crawl::default().copy(docs, 20, NOW, Some(docs)).copy(ATTACKER, 20, NOW, Some(docs));
    check(deep, Some(Reason::Canonical));
    // Another address of the same owner, which the crawl has not.
    let www = "https://www.famous.org/";
    check(
        Crawl::default().copy(FAMOUS, 20, NOW, None).copy(ATTACKER, 20, NOW, Some(www)),
        Some(Reason::Canonical),
    );
}

#[test]
fn canonical_names_by_the_copies_themselves_decide_nothing() {
    check(Crawl::default().copy(FAMOUS, 20, NOW, None).copy(ATTACKER, 20, NOW, Some(ATTACKER)), None);
    let own = Crawl::default()
        .copy(FAMOUS, 20, NOW, Some(FAMOUS))
        .copy(ATTACKER, 20, NOW, Some(ATTACKER))
        .copy("http://attacker.net/", 20, NOW, Some(ATTACKER));
    let report = own.searched().avoid(|_| {});
    assert_eq!((report.list.entries.len(), report.weak), (0, 2));
}

#[test]
fn ties() {
    check(both(20), None);
    check(both(20).linking(hosts(1, "evil.net"), ATTACKER), None);
    check(
        Crawl::default().copy(ATTACKER, 20, "2024-04-28T00:00:00Z", None).copy(FAMOUS, 20, NOW, None),
        None,
    );
    check(
        Crawl::default().copy(ATTACKER, 20, NOW, None).copy("http://famous.org/docs/", 20, NOW, None),
        None,
    );
}

/// A crawl that came to the copy years before the original says nothing of who copied whom.
#[test]
fn a_mirror_that_was_crawled_first() {
    let crawl = Crawl::default().copy(ATTACKER, 20, LONG_AGO, None).copy(FAMOUS, 20, NOW, None);
    check(crawl.clone(), None);
    assert_eq!(crawl.searched().avoid(|_| {}).weak, 1);
    check(crawl.clone().linking(hosts(1, "site.net"), FAMOUS), None);
    check(crawl.linking(hosts(2, "site*.net"), FAMOUS), Some(Reason::Links));
}

const WIKI: &str = "http://en.famous.org/wiki/";

#[test]
fn ten_pages_of_a_large_site() {
    let crawl = Crawl::default().copy(ATTACKER, 10, NOW, None).copy(WIKI, 10, LONG_AGO, None);
    check(crawl.clone().linking(hosts(1, "site.net"), WIKI), Some(Reason::FetchedFirst));
    check(crawl.clone(), None);
    check(crawl.clone().linking(hosts(1, "evil.net"), ATTACKER), None);
    // Somebody else's list is no wider either, whatever is known of the rest.
    let crawl = Crawl::default().copy(ATTACKER, 10, NOW, None).copy(WIKI, 10, NOW, None);
    let report = crawl.linking(hosts(4, "site*.net"), ATTACKER).searched().avoid(|_| {});
    let rules: Vec<&SkipRule> = report.list.entries.iter().flat_map(|entry| &entry.rules).collect();
    assert_eq!(rules, [&SkipRule::prefix("/wiki/").unwrap()]);
}

#[test]
fn weak_evidence_and_protected_hosts() {
    let searched = both(20).searched();
    let report = searched.avoid(|params| params.weak = true);
    assert_eq!((report.list.entries.len(), report.weak), (1, 0));
    let entry = &report.list.entries[0];
    // The first in the alphabet is kept.
    assert_eq!((entry.host.as_str(), entry.principal.as_str()), ("famous.org", ATTACKER));
    assert_eq!(entry.principal_evidence.as_deref(), Some("by address only"));
    let report = searched.avoid(|params| {
        params.weak = true;
        params.protect = Protected::new(["famous.org"]).unwrap();
    });
    assert_eq!((report.list.entries.len(), report.protected), (0, 1));
}

#[test]
fn copies_of_one_owner_need_no_evidence() {
    let crawl =
        Crawl::default().copy("http://www.a.org/", 20, NOW, None).copy("http://web2.a.org/", 20, NOW, None);
    let report = crawl.searched().avoid(|_| {});
    assert_eq!((report.list.entries.len(), report.weak), (1, 0));
}

#[test]
fn user_names_are_in_no_list() {
    let crawl = Crawl::default()
        .copy("http://me:secret@a.org/", 12, NOW, None)
        .copy("http://me:secret@b.org/", 12, NOW, None)
        .copy(FAMOUS, 12, NOW, None);
    let report = crawl.searched().avoid(|params| params.weak = true);
    assert!(!report.list.to_csv().contains("secret") && !report.list.to_json().unwrap().contains("secret"));
    assert!(!format!("{:?}", report.list).contains("secret"));
}
