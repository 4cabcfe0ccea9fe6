//! Sites that were copied, and a list of what to skip that must not have the originals in it.

use std::fmt::Write as _;

use crate::util::{Dir, files};

const FAMOUS: &str = "http://en.famous.org/wiki/";
const ATTACKER: &str = "http://attacker.com/";

/// A crawl as a WARC file.
#[derive(Default)]
struct Crawl(String);

impl Crawl {
    fn page(&mut self, url: &str, html: &str) {
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{html}");
        let _ = write!(
            self.0,
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-05-01T00:00:00Z\r\n\
             WARC-Record-ID: <urn:uuid:00000000-0000-0000-0000-{:012}>\r\n\
             Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{http}\r\n\r\n",
            self.0.len(),
            http.len()
        );
    }

    /// The same pages below an address, linked one to the next.
    fn copy(&mut self, base: &str, pages: usize) {
        let name = |n: usize| if n == 0 { String::new() } else { format!("p{n}.html") };
        for n in 0..pages {
            let words: String = (0..60).map(|at| format!("w{n}x{at} ")).collect();
            let link = format!("<a href=\"{base}{}\">next</a>", name((n + 1) % pages));
            let title = "=HYPERLINK(\"http://evil.net\")";
            self.page(&format!("{base}{}", name(n)), &format!("<title>{title}</title>{words}{link}"));
        }
    }

    /// A page that links somewhere.
    fn link(&mut self, host: &str, to: &str) {
        let words: String = (0..60).map(|at| format!("own{host}x{at} ")).collect();
        self.page(&format!("http://{host}/"), &format!("{words}<a href=\"{to}\">there</a>"));
    }
}

fn crawled(fill: impl FnOnce(&mut Crawl)) -> Dir {
    let (dir, mut crawl) = (Dir::new(), Crawl::default());
    fill(&mut crawl);
    dir.write("web.warc", crawl.0);
    let outcome = dir.run(&["run", "web.warc", "-o", "atlas", "-q"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    dir
}

#[test]
fn a_farm_of_subdomains_does_not_have_the_original_skipped() {
    let dir = crawled(|crawl| {
        crawl.copy(ATTACKER, 20);
        crawl.copy(FAMOUS, 20);
        (0..4).for_each(|n| crawl.link(&format!("www.site{n}.net"), FAMOUS));
        for n in 0..20 {
            crawl.link(&format!("s{n}.attacker.com"), ATTACKER);
            crawl.link(&format!("s{n}.farm.net"), ATTACKER);
        }
    });
    let report = dir.json(&["avoid", "atlas"]);
    let entries = report["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &report["weak"], &report["protected"]), (1, &0.into(), &0.into()));
    assert_eq!(entries[0]["host"], "attacker.com");
    assert_eq!(entries[0]["principal"], FAMOUS);
    assert_eq!(entries[0]["principal_reason"], "links");
    assert_eq!(entries[0]["principal_evidence"], "4 domains link to it, 1 to another");
    let said = dir.run(&["avoid", "atlas"]).stdout;
    assert!(said.contains("since") && said.contains("4 domains link to it, 1 to another"), "{said}");
    let shown = dir.run(&["collections", "atlas", "--show", "--json"]).stdout;
    assert!(shown.contains("\"principal_evidence\":\"4 domains link to it, 1 to another\""), "{shown}");
    let explained = dir.run(&["explain", "atlas", "collection:0"]).stdout;
    assert!(explained.contains("the principal: 4 domains link to it"), "{explained}");
    // The name of the collection is the title of its pages.
    let table = dir.run(&["avoid", "atlas", "--format", "csv"]).stdout;
    assert!(table.contains(",\"'=HYPERLINK(") && !table.contains(",\"=") && !table.contains(",="), "{table}");
    let table = std::fs::read_to_string(dir.path("atlas/report/tables/collections.csv")).unwrap();
    assert!(table.contains("\"'=HYPERLINK(") && !table.contains("\"="), "{table}");
}

#[test]
fn ten_pages_of_a_large_site_are_not_the_site() {
    let dir = crawled(|crawl| {
        crawl.copy(FAMOUS, 10);
        crawl.copy(ATTACKER, 10);
    });
    let report = dir.json(&["avoid", "atlas"]);
    assert_eq!((report["entries"].as_array().unwrap().len(), &report["weak"]), (0, &1.into()), "{report}");
    assert!(dir.run(&["avoid", "atlas"]).stdout.contains("--weak includes them"));
    // Asked for, it is no wider than what is known.
    let prefixes = dir.run(&["avoid", "atlas", "--weak", "--format", "prefixes"]).stdout;
    assert_eq!(prefixes, "http://en.famous.org/wiki/\nhttps://en.famous.org/wiki/\n");
    assert_eq!(dir.run(&["avoid", "atlas", "--weak", "--format", "hosts"]).stdout, "");

    dir.write("hosts.txt", "# ours\nexample.org\n\nfamous.org # and all below it\n");
    for protect in [["--protect", "Famous.ORG"], ["--protect", "@hosts.txt"]] {
        let report = dir.json(&[["avoid", "atlas", "--weak"].as_slice(), &protect].concat());
        assert_eq!((report["entries"].as_array().unwrap().len(), &report["protected"]), (0, &1.into()));
    }
    dir.write("bad.txt", "example.org\nnot a host\n");
    for (protect, said) in [("@bad.txt", "bad.txt, line 2"), ("@none.txt", "none.txt"), ("a b", "a b")] {
        let outcome = dir.run(&["avoid", "atlas", "--protect", protect]);
        assert_eq!(outcome.code, 2);
        assert!(outcome.stderr.contains(said), "{}", outcome.stderr);
    }
}

#[test]
fn a_list_that_cannot_be_written_leaves_nothing_behind() {
    let dir = crawled(|crawl| {
        crawl.copy(FAMOUS, 10);
        crawl.copy(ATTACKER, 10);
    });
    // A folder where a file should be.
    dir.write("lists/fast-urlfilter.txt/x", "");
    let outcome = dir.run(&["avoid", "atlas", "-o", "lists"]);
    assert_eq!(outcome.code, 2, "{}", outcome.stdout);
    let left = files(&dir.path("lists"));
    assert!(left.keys().all(|name| !name.ends_with(".new")), "{:?}", left.keys());
}
