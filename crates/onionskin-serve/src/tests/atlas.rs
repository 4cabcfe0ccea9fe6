use std::fs;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use onionskin::explain::ExplainLimits;
use onionskin::{CollectionsParams, Quiet, ScanParams, Search, SimilarParams, collections, scan, similar};
use onionskin_core::DocId;
use onionskin_store::{Atlas, MemoryBudget, TableName};
use onionskin_testkit::{Preset, WarcOptions, Web, WebSpec};

use super::client::Server;
use crate::library::{Library, LibraryParams, Unopened};

/// A generated web with mirrors, searched; made once for all tests.
fn atlas() -> PathBuf {
    static MADE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let web = Web::new(&WebSpec::of(Preset::Demo, 500, 3)).unwrap();
        let input = folder.path().join("web.warc");
        let mut file = fs::File::create(&input).unwrap();
        web.write_warc(&mut file, 0..web.n_pages(), WarcOptions::default(), &mut |_, _| {}).unwrap();
        let hostile = folder.path().join("hostile.jsonl");
        let line = serde_json::json!({
            "url": "javascript:alert(1)",
            "text": "<script>alert(2)</script> hostile \"words\" that stand nowhere else at all",
        });
        fs::write(&hostile, format!("{line}\n")).unwrap();
        let atlas = folder.path().join("atlas");
        let inputs = [&input, &hostile].map(|path| path.display().to_string());
        let mut params = ScanParams::new(inputs.to_vec(), atlas.clone());
        params.memory = MemoryBudget::from_mib(256);
        scan(&params, &Quiet).unwrap();
        similar(&SimilarParams::new(atlas.clone()), &Quiet).unwrap();
        collections(&CollectionsParams::new(atlas.clone()), &Quiet).unwrap();
        library_of(&atlas);
        folder
    });
    made.path().join("atlas")
}

fn library_of(atlas: &std::path::Path) -> Library {
    Library::open(params_of(atlas), &Quiet).unwrap()
}

fn params_of(atlas: &std::path::Path) -> LibraryParams {
    LibraryParams {
        atlas: atlas.to_owned(),
        base: None,
        pdf_worker: Vec::new(),
        index: None,
        reindex: false,
        memory: MemoryBudget::from_mib(256),
        compared: ExplainLimits::of_words(100_000),
    }
}

/// Every comparison of two pages read all files of the tables that it touched, and the start of a
/// server read the full-text index twice.
#[test]
fn files_are_compared_with_their_checksums_once() {
    let folder = tempfile::tempdir().unwrap();
    let (input, atlas) = (folder.path().join("in.jsonl"), folder.path().join("atlas"));
    let words: String = (0..80).map(|n| format!("w{n} ")).collect();
    let line = |n: u32| format!("{{\"text\":\"{words} and number {n}\"}}\n");
    fs::write(&input, (0..9).map(line).collect::<String>()).unwrap();
    let mut params = ScanParams::new(vec![input.display().to_string()], atlas.clone());
    params.memory = MemoryBudget::from_mib(256);
    scan(&params, &Quiet).unwrap();
    similar(&SimilarParams::new(atlas.clone()), &Quiet).unwrap();
    library_of(&atlas);

    // The index is there. Without its description it could not be opened once more.
    let unopened = Unopened::new(params_of(&atlas)).unwrap();
    assert!(unopened.least_memory() <= MemoryBudget::from_mib(64), "{}", unopened.least_memory());
    fs::remove_file(atlas.join("search/search.json")).unwrap();
    let library = Library::of(unopened, &Quiet).unwrap();
    assert!(!atlas.join("search/search.json").exists(), "the index was made again");

    // Not the file that this process has written.
    let pairs = library.atlas().paths(&TableName::Pairs).unwrap().pop().unwrap();
    fs::write(&pairs, fs::read(&pairs).unwrap()).unwrap();
    let explained = |library: &Library| library.explain(DocId(0), DocId(1)).unwrap().pair.is_some();
    let before = library.atlas().checked_bytes();
    assert!(explained(&library));
    let checked = library.atlas().checked_bytes();
    assert!(checked > before);
    assert!(explained(&library));
    assert_eq!(library.atlas().checked_bytes(), checked);
    // A search that is run again is seen.
    similar(&SimilarParams { search: Search::Exact, ..SimilarParams::new(atlas) }, &Quiet).unwrap();
    assert!(!explained(&library));
}

fn server() -> Server {
    let atlas = atlas();
    Server::new(move |config| config.atlas = Some(atlas))
}

/// Some pages that any search finds, two that can be compared, and two that are too long for that.
fn long_pages() -> PathBuf {
    static MADE: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("in.jsonl");
        let words = |n: u64, seed: u64| -> String {
            (0..n).map(|i| format!("w{} ", (i * i + i * seed) % 9973)).collect()
        };
        let half = words(10_000, 1) + &words(10_000, 2);
        let texts = [words(20_000, 1), half, words(500_000, 1), words(500_000, 2)];
        let small = (0..50).map(|n| format!("a small page number {n} w{n}"));
        let lines = texts.into_iter().chain(small);
        let lines = lines.map(|text| format!("{}\n", serde_json::json!({ "text": text })));
        fs::write(&input, lines.collect::<String>()).unwrap();
        let atlas = folder.path().join("atlas");
        let mut params = ScanParams::new(vec![input.display().to_string()], atlas.clone());
        params.memory = MemoryBudget::from_mib(256);
        scan(&params, &Quiet).unwrap();
        library_of(&atlas);
        folder
    });
    made.path().join("atlas")
}

#[test]
fn long_texts_are_not_compared_while_others_wait() {
    let atlas = long_pages();
    let server = Server::new(move |config| {
        config.atlas = Some(atlas);
        config.memory = MemoryBudget::from_mib(1024);
        config.limits.compared_words = 50_000;
    });
    let start = Instant::now();
    let page = server.get("/compare?a=2&b=3");
    let text = page.text();
    assert_eq!(page.status, 200);
    for part in
        ["1,000,000 words", "at most 50,000", "onionskin explain ATLAS doc:2 doc:3", "class=\"sides\""]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let refused = server.get("/api/v1/explain?a=2&b=3");
    assert_eq!((refused.status, refused.code().as_str()), (422, "too_costly"));
    assert!(refused.text().contains("onionskin explain"), "{}", refused.text());
    assert!(start.elapsed() < Duration::from_secs(5), "they were read: {:?}", start.elapsed());
    let explained = server.get("/api/v1/explain?a=0&b=1");
    assert_eq!(explained.status, 200, "{}", explained.text());
    assert!(!explained.json()["passages"].as_array().unwrap().is_empty());
    let page = server.get("/compare?a=0&b=1").text();
    assert!(page.contains("20,000") && !page.contains("at most"), "{page}");
}

/// Comparisons, and bodies that never end, do not keep a search waiting.
#[test]
fn searches_stay_quick_beside_slow_work() {
    let atlas = long_pages();
    let server = Server::new(move |config| {
        config.atlas = Some(atlas);
        config.memory = MemoryBudget::from_mib(1024);
        config.limits.compared_words = 50_000;
    });
    let head = "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 203.0.113.9\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 1000\r\n\r\ntoken=";
    let hanging: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = server.connect();
            std::io::Write::write_all(&mut stream, head.as_bytes()).unwrap();
            stream
        })
        .collect();
    let search = |word: String| {
        let start = Instant::now();
        let found = server.get(&format!("/api/v1/search?q=small+{word}"));
        assert_eq!(found.status, 200);
        assert!(!found.json()["results"].as_array().unwrap().is_empty());
        start.elapsed()
    };
    // A machine may have other work to do.
    let alone = (0..5).map(|n| search(format!("w{n}"))).max().unwrap_or_default();
    let (mut times, compared) = std::thread::scope(|scope| {
        let server = &server;
        let comparing: Vec<_> = (0..20)
            .map(|n| {
                let path = if n % 2 == 0 { "/compare?a=0&b=1" } else { "/compare?a=2&b=3" };
                scope.spawn(move || server.get(path).status)
            })
            .collect();
        let times: Vec<Duration> = (5..45).map(|n| search(format!("w{n}"))).collect();
        (times, comparing.into_iter().map(|asked| asked.join().unwrap()).collect::<Vec<_>>())
    });
    drop(hanging);
    times.sort();
    let bound = Duration::from_secs(1).max(20 * alone);
    assert!(times[times.len() - 1] < bound, "{alone:?} alone, {times:?}");
    assert_eq!(compared, [200; 20]);
}

#[test]
fn links_out_of_the_atlas_are_not_followed() {
    let made = tempfile::tempdir().unwrap();
    let (atlas, secret) = (made.path().join("atlas"), made.path().join("secret"));
    fs::write(&secret, "secret").unwrap();
    let input = made.path().join("in.jsonl");
    fs::write(&input, "{\"text\":\"a few words\"}\n").unwrap();
    let mut params = ScanParams::new(vec![input.display().to_string()], atlas.clone());
    params.memory = MemoryBudget::from_mib(256);
    scan(&params, &Quiet).unwrap();
    library_of(&atlas);
    fs::create_dir_all(atlas.join("report/tables")).unwrap();
    std::os::unix::fs::symlink(&secret, atlas.join("report/report.html")).unwrap();
    std::os::unix::fs::symlink(&secret, atlas.join("report/tables/a.csv")).unwrap();
    std::os::unix::fs::symlink(made.path(), atlas.join("report/figures")).unwrap();
    let serving = atlas.clone();
    let server = Server::new(move |config| config.atlas = Some(serving));
    let refused = |path: &str| {
        let answer = server.get(path);
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        assert!(!answer.text().contains("secret\n"), "{path}");
    };
    refused("/report");
    refused("/downloads/report/report.html");
    refused("/downloads/report/tables/a.csv");
    refused("/downloads/report/figures/secret");
    assert!(!server.get("/downloads").text().contains("figures"), "not even their names are shown");
    // A table, too.
    let table = Atlas::open(&atlas).unwrap().paths(&TableName::Documents).unwrap()[0].clone();
    assert_eq!(server.get("/downloads/tables/documents/0.parquet").status, 200);
    fs::rename(&table, made.path().join("moved")).unwrap();
    std::os::unix::fs::symlink(made.path().join("moved"), &table).unwrap();
    refused("/downloads/tables/documents/0.parquet");
}

/// It takes a minute of indexing to learn it otherwise.
#[test]
fn too_little_memory_is_told_before_anything_is_made() {
    let dir = atlas();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("index");
    let open = |mib| {
        let mut config = crate::Config::new(MemoryBudget::from_mib(mib));
        (config.atlas, config.index) = (Some(dir.clone()), Some(folder.clone()));
        crate::AppState::open(config)
    };
    let Err(crate::StateError::Memory { needed, budget }) = open(16) else { panic!("it was enough") };
    assert_eq!(budget, MemoryBudget::from_mib(16));
    assert!(!folder.exists(), "nothing was made");
    assert!(open(needed.bytes() >> 20).is_ok(), "what is said to be needed is enough");
}

#[test]
fn every_page_and_route_answers() {
    let server = server();
    let json = |path: &str| {
        let answer = server.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    };
    let collections = json("/api/v1/collections?noise=true&sort=replicas");
    let group = collections["collections"][0]["group"].as_u64().unwrap();
    let clusters = json("/api/v1/clusters?sort=unlike");
    let cluster = clusters["clusters"][0]["cluster"].as_u64().unwrap();
    let members = json(&format!("/api/v1/clusters/{cluster}"));
    let doc = |at: usize| members["members"][at]["doc"].as_u64().unwrap();
    let explained = json(&format!("/api/v1/explain?a={}&b={}", doc(0), doc(1)));
    assert!(explained["overlaps"][0]["resemblance"].as_f64().unwrap() > 0.5, "{explained}");
    let replicas = json(&format!("/api/v1/collections/{group}"));
    assert!(replicas["members"].as_array().unwrap().len() >= 2);
    let root = replicas["members"][0]["root_doc"].as_u64().unwrap();
    let page = json(&format!("/api/v1/documents/{root}"));
    assert!(
        !page["places"].as_array().unwrap().is_empty() && page["links"]["to_count"].as_u64().unwrap() > 0
    );
    let url = page["url"].as_str().unwrap();
    assert_eq!(json(&format!("/api/v1/documents?url={url}"))["docs"][0], root);
    for path in [
        "/".to_owned(),
        "/search".to_owned(),
        "/search?q=a&fold=off&plain=1&stay=1&page=3".to_owned(),
        format!("/search?q=site:example.com&collection={group}"),
        format!("/documents/{root}"),
        "/clusters?sort=exact&only=near&page=2".to_owned(),
        format!("/clusters/{cluster}"),
        "/collections?noise=1&name=e".to_owned(),
        format!("/collections/{group}"),
        format!("/collections/{group}/replicas?only=same"),
        format!("/compare?a={}&b=doc:{}", doc(0), doc(1)),
        "/compare?a=nothing&b=0".to_owned(),
        format!("/alternates?url={url}"),
        "/downloads".to_owned(),
        "/downloads/tables/documents/0.parquet".to_owned(),
        "/downloads/filters/prefixes".to_owned(),
    ] {
        let answer = server.get(&path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert!(answer.header("content-security-policy").contains("default-src 'none'"), "{path}");
    }
    for path in [
        "/documents/99999999",
        "/documents/x",
        "/clusters/99999999",
        "/collections/99999999",
        "/report",
        "/downloads/tables/documents/9.parquet",
        "/downloads/tables/nothing/0.parquet",
        "/downloads/report/..%2f..%2fmanifest.json",
        "/downloads/filters/nothing",
        "/api/v1/documents/99999999",
        "/api/v1/search?q=...",
        "/api/v1/search?q=a&limit=0",
        "/api/v1/search?q=a&group=99999999",
        "/api/v1/clusters?limit=1001",
        "/api/v1/alternates?url=nothing",
        "/api/v1/explain?a=0&b=nothing",
    ] {
        let answer = server.get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {}", answer.status);
    }
}

#[test]
fn what_a_crawled_page_says_is_text() {
    let server = server();
    let page = server.get("/search?q=hostile").text();
    assert!(page.contains("&#60;script&#62;") || page.contains("&lt;script&gt;"), "{page}");
    assert!(!page.contains("<script>alert") && !page.contains("href=\"javascript:"), "{page}");
    let found = server.get("/api/v1/search?q=hostile").json();
    let doc = found["results"][0]["doc"].as_u64().unwrap();
    let page = server.get(&format!("/documents/{doc}")).text();
    assert!(page.contains("javascript:alert(1)") && !page.contains("href=\"javascript:"));
    assert!(!page.contains("<script>alert"));
    let typed = server.get("/search?q=%3Cscript%3Ealert(3)%3C/script%3E").text();
    assert!(!typed.contains("<script>alert"));
}

/// The stand-ins that are found with arrays and the index are those that are found by reading the
/// tables.
#[test]
fn stand_ins_are_those_of_the_tables() {
    let dir = atlas();
    let library = library_of(&dir);
    let mut tried = 0;
    let mut documents = Atlas::open(&dir).unwrap().documents().unwrap();
    while let Some(batch) = documents.next_batch().unwrap() {
        for row in batch.rows().step_by(23) {
            let Some(url) = row.url.filter(|url| url.starts_with("http")) else { continue };
            // The page itself, and one that would stand beside it.
            for url in [url.to_owned(), format!("{url}x")] {
                let found = library.alternates(&url).unwrap().unwrap();
                assert_eq!(found, onionskin::avoid::alternates(&dir, &url).unwrap(), "{url}");
                tried += found.len();
            }
        }
    }
    assert!(tried > 20, "{tried}");
    assert_eq!(library.alternates("nothing").unwrap(), None);
}

#[test]
fn a_question_that_was_asked_is_remembered() {
    let library = library_of(&atlas());
    let (query, params) = ("a".parse().unwrap(), onionskin_search::SearchParams::default());
    let first = library.search(&query, &params).unwrap();
    assert!(std::sync::Arc::ptr_eq(&first, &library.search(&query, &params).unwrap()));
}
