//! The online filter over HTTP.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use onionskin_seen::intake::Wanted;
use onionskin_seen::{Options, Seen};
use onionskin_store::MemoryBudget;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde_json::{Value, json};

use super::client::{Server, TOKEN};
use crate::{AppState, Config, StateError};

/// Words that no two documents share.
fn text(id: u64) -> String {
    (0..30).map(|word| format!("w{}", id * 1000 + word)).collect::<Vec<_>>().join(" ")
}

fn statuses(answers: &Value) -> Vec<&str> {
    answers["answers"].as_array().unwrap().iter().map(|answer| answer["status"].as_str().unwrap()).collect()
}

#[test]
fn adding_checking_removing() {
    let server = Server::plain();
    let long: String = (0..200).map(|word| format!("word{word} ")).collect();
    let documents = json!([
        {"name": "a", "text": long},
        {"name": "b", "text": format!("{long}more")},
        {"name": "c", "text": "  "},
        {"name": "d".repeat(70_000), "text": "something else altogether here"},
    ]);
    let checked = server.post("/api/v1/seen/check", &json!({"documents": documents})).json();
    assert_eq!(statuses(&checked), ["new", "new", "empty", "new"]);
    let added = server.post("/api/v1/seen/add", &json!({"documents": documents, "if_new": true})).json();
    assert_eq!(statuses(&added), ["new", "near", "empty", "bad"]);
    assert_eq!(added["answers"][0]["added"], true);
    assert_eq!(added["answers"][1]["added"], false);
    assert_eq!(added["answers"][1]["of"]["name"], "a");
    assert!(added["answers"][1]["of"]["resemblance"].as_f64().unwrap() > 0.9);
    assert!(added["answers"][3]["problem"].as_str().unwrap().contains("70000 bytes"));
    // Whoever has been answered finds what was added.
    let checked = server.post("/api/v1/seen/check", &json!({"documents": documents})).json();
    assert_eq!(statuses(&checked), ["exact", "near", "empty", "new"]);
    let stats = server.get("/api/v1/seen/stats").json();
    assert_eq!((&stats["documents"], &stats["read_only"]), (&1.into(), &false.into()));
    let removed = server.post("/api/v1/seen/remove", &json!({"names": ["zz", "a"]})).json();
    assert_eq!(removed, json!({"removed": [{"name": "a", "documents": 1}, {"name": "zz", "documents": 0}]}));
    let checked = server.post("/api/v1/seen/check", &json!({"documents": documents})).json();
    assert_eq!(statuses(&checked), ["new", "new", "empty", "new"]);
    let metrics = server.get("/metrics").text();
    assert!(metrics.contains("onionskin_seen_added_total 1\n"), "{metrics}");
    assert!(metrics.contains("onionskin_seen_removed_total 1\n"), "{metrics}");
    assert!(metrics.contains("onionskin_seen_answers_total{status=\"near\"} 2"), "{metrics}");
}

#[test]
fn lines_in_lines_out() {
    let server = Server::plain();
    let lines = format!(
        "{}\n\nnonsense\n{}",
        json!({"name": "a", "text": text(1)}),
        json!({"name": "b", "text": text(1)})
    );
    let bearer = format!("Bearer {TOKEN}");
    let headers =
        [("Authorization", bearer.as_str()), ("Content-Type", "application/x-ndjson; charset=utf-8")];
    let answer = server.request("POST", "/api/v1/seen/add?if_new=true", &headers, &lines);
    assert_eq!(answer.header("content-type"), "application/x-ndjson");
    let answers: Vec<Value> = answer.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> =
        answers.iter().map(|answer| (&answer["name"], &answer["status"], &answer["added"])).collect();
    assert_eq!(
        told,
        [
            (&json!("a"), &json!("new"), &json!(true)),
            (&json!("-:3"), &json!("bad"), &json!(false)),
            (&json!("b"), &json!("exact"), &json!(false)),
        ]
    );
}

/// An index that a server then opens.
fn with_index(wanted: &Wanted) -> (tempfile::TempDir, Server) {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("seen");
    drop(wanted.open_or_create(&dir, None, Options::new(MemoryBudget::from_mib(16))).unwrap());
    let server = Server::new(|config| config.seen = Some(dir));
    (folder, server)
}

#[test]
fn a_threshold_decides_what_is_near() {
    let (_folder, server) = with_index(&Wanted::default());
    let words = |from: u32, to: u32| (from..to).map(|word| format!("word{word} ")).collect::<String>();
    server.post("/api/v1/seen/add", &json!({"documents": [{"name": "a", "text": words(0, 200)}]}));
    let check = |threshold: f64| {
        let documents = json!([{"name": "b", "text": words(4, 204)}]);
        let body = json!({"documents": documents, "threshold": threshold});
        server.post("/api/v1/seen/check", &body).json()
    };
    assert_eq!(statuses(&check(0.8)), ["near"]);
    assert_eq!(statuses(&check(1.0)), ["new"]);
    let stats = server.get("/api/v1/seen/stats").json();
    assert_eq!((&stats["filter"], &stats["threshold"]), (&"10x8r1".into(), &0.9.into()));
    assert_eq!((&stats["minima"], &stats["sketch_bytes"]), (&84.into(), &336.into()));
    for wrong in [json!(0), json!(1.5), json!("much")] {
        let body = json!({"documents": [], "threshold": wrong});
        assert_eq!(server.post("/api/v1/seen/check", &body).status, 400, "{body}");
    }
    let (_folder, plain) = with_index(&Wanted { sketches: Some(false), ..Wanted::default() });
    let body = json!({"documents": [{"name": "a", "text": "b"}], "threshold": 0.9});
    for path in ["/api/v1/seen/check", "/api/v1/seen/add"] {
        assert_eq!(plain.post(path, &body).status, 400);
    }
}

#[test]
fn an_index_of_numbers_has_no_other_names() {
    let (_folder, server) = with_index(&Wanted { names: Some(false), ..Wanted::default() });
    let documents = json!([{"name": "7", "text": text(1)}, {"name": "x", "text": text(2)}]);
    let added = server.post("/api/v1/seen/add", &json!({"documents": documents})).json();
    assert_eq!(statuses(&added), ["new", "bad"]);
    let refused = server.post("/api/v1/seen/remove", &json!({"names": ["7", "x"]}));
    assert_eq!((refused.status, refused.code().as_str()), (400, "bad_request"));
    let removed = server.post("/api/v1/seen/remove", &json!({"names": ["7"]})).json();
    assert_eq!(removed, json!({"removed": [{"name": "7", "documents": 1}]}));
}

#[test]
fn html_and_other_names() {
    let server = Server::plain();
    let documents = json!([
        {"id": "a", "html": "<title>T</title><p>some words of a <b>page</b>"},
        {"url": "http://b/", "text": "Some words of a page."},
        {"text": "words without a name"},
    ]);
    let added = server.post("/api/v1/seen/add", &json!({"documents": documents, "if_new": true})).json();
    assert_eq!(statuses(&added), ["new", "exact", "new"]);
    let names: Vec<_> =
        added["answers"].as_array().unwrap().iter().map(|answer| answer["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "http://b/", "-:3"]);
}

#[test]
fn of_two_who_add_the_same_one_is_first() {
    let server = Server::plain();
    const CLIENTS: usize = 8;
    const ROUNDS: u64 = 10;
    let answers: Vec<Vec<bool>> = std::thread::scope(|scope| {
        let client = |client: usize| {
            let server = &server;
            move || {
                let round = |round| {
                    let name = format!("{client}-{round}");
                    let documents = json!([{"name": name, "text": text(round)}]);
                    let answer =
                        server.post("/api/v1/seen/add", &json!({"documents": documents, "if_new": true}));
                    let answer = answer.json();
                    assert_eq!(
                        answer["answers"][0]["status"] == "new",
                        answer["answers"][0]["added"] == true
                    );
                    answer["answers"][0]["added"] == true
                };
                (0..ROUNDS).map(round).collect()
            }
        };
        let clients: Vec<_> = (0..CLIENTS).map(|n| scope.spawn(client(n))).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    for round in 0..ROUNDS as usize {
        let added = answers.iter().filter(|client| client[round]).count();
        assert_eq!(added, 1, "round {round}");
    }
    let stats = server.get("/api/v1/seen/stats").json();
    assert_eq!(stats["documents"], ROUNDS);
}

#[test]
fn what_was_added_is_there_after_the_end() {
    let mut server = Server::plain();
    let documents: Vec<Value> =
        (0..50).map(|id| json!({"name": format!("d{id}"), "text": text(id)})).collect();
    server.post("/api/v1/seen/add", &json!({"documents": documents}));
    server.stop(crate::Stop::Soon);
    server.join();
    server.state.seen().unwrap().close();
    let seen = Seen::open(server.dir(), Options::new(MemoryBudget::from_mib(16))).unwrap();
    assert_eq!((seen.stats().documents, seen.stats().in_log), (50, 0));
    drop(seen);
}

#[test]
fn mistakes_are_told() {
    let server = Server::new(|config| config.limits.batch_documents = 3);
    let many: Vec<Value> = (0..4).map(|_| json!({"name": "a", "text": "b"})).collect();
    let answer = server.post("/api/v1/seen/check", &json!({"documents": many}));
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"));
    assert_eq!(server.post("/api/v1/seen/remove", &json!({"names": ["a", "b", "c", "d"]})).status, 413);
    for body in [
        json!({}),
        json!([]),
        json!({"documents": [{}]}),
        json!({"documents": [], "typo": 1}),
        json!({"documents": [{"text": "a", "typo": 1}]}),
        json!({"documents": [{"text": "a", "html": "a"}]}),
        json!({"documents": ["a"]}),
    ] {
        let answer = server.post("/api/v1/seen/check", &body);
        assert_eq!((answer.status, answer.code().as_str()), (400, "bad_request"), "{body}");
    }
    let lines = [("Content-Type", "application/x-ndjson")];
    assert_eq!(server.request("POST", "/api/v1/seen/check?typo=1", &lines, "{}").status, 400);
    let parquet = [("Content-Type", "application/vnd.apache.parquet")];
    assert_eq!(server.request("POST", "/api/v1/seen/check", &parquet, "PAR1 and nothing else").status, 400);
    let text = [("Content-Type", "text/plain")];
    assert_eq!(server.request("POST", "/api/v1/seen/check", &text, "{}").status, 415);
    assert_eq!(server.request("POST", "/api/v1/seen/check", &[], "{}").status, 415);
}

#[test]
fn an_index_that_another_process_writes_to() {
    let writing = Server::plain();
    let mut config = Config::new(MemoryBudget::from_mib(16));
    config.seen = Some(writing.dir().to_owned());
    assert!(matches!(
        AppState::open(config.clone()).err(),
        Some(StateError::Seen(crate::StartError::Locked(_)))
    ));
    let dir = writing.dir().to_owned();
    let reading = Server::new(|config| (config.seen, config.seen_read_only) = (Some(dir), true));
    let documents = json!([{"name": "a", "text": text(1)}]);
    assert_eq!(writing.post("/api/v1/seen/add", &json!({"documents": documents})).status, 200);
    std::thread::sleep(std::time::Duration::from_millis(250));
    let checked = reading.post("/api/v1/seen/check", &json!({"documents": documents})).json();
    assert_eq!(statuses(&checked), ["exact"]);
    assert_eq!(reading.post("/api/v1/seen/add", &json!({"documents": documents})).code(), "forbidden");
    assert_eq!(reading.get("/health").json()["seen"], "check");
}

#[test]
fn the_page() {
    let server = Server::plain();
    let documents = json!([{"name": "javascript:alert('<b>')", "text": text(1)}]);
    server.post("/api/v1/seen/add", &json!({"documents": documents}));
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let body = format!("text={}%3C%2Ftextarea%3E", text(1).replace(' ', "+"));
    let page = server.request("POST", "/seen", &form, &body).text();
    assert!(page.contains("copy.</strong>"), "{page}");
    assert!(page.contains("javascript:alert(&#39;&#60;b&#62;&#39;)"), "{page}");
    assert!(!page.contains("href=\"javascript"));
    assert_eq!(page.matches("</textarea>").count(), 1);
    let page = server.request("POST", "/seen", &form, "text=unheard+of+words+indeed").text();
    assert!(page.contains("New.</strong>"));
    let page = server.request("POST", "/seen", &form, "text=").text();
    assert!(page.contains("Empty.</strong>"));
}

#[test]
fn without_an_index() {
    let mut config = Config::new(MemoryBudget::from_mib(16));
    config.listen = "127.0.0.1:0".parse().unwrap();
    assert!(matches!(AppState::open(config).err(), Some(StateError::Nothing)));
}

/// A few bytes that are many times the same text: in a page of its own, or in a dictionary.
fn parquet_of(text: &str, rows: usize, dictionary: bool) -> Vec<u8> {
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..rows).map(|_| text)));
    let batch = RecordBatch::try_from_iter([("text", texts)]).unwrap();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_dictionary_enabled(dictionary)
        .set_dictionary_page_size_limit(1 << 30)
        .set_data_page_size_limit(1 << 30)
        .build();
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    out
}

/// A body of a few kilobytes was unpacked to any size, and all of its rows were copied at once.
#[test]
fn parquet_that_unpacks_to_more_than_is_taken() {
    let server = Server::new(|config| config.limits.body_bytes = 1 << 20);
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/vnd.apache.parquet")];
    let send = |path: &str, body: &[u8]| server.request("POST", path, &headers, body);
    let words = |n: usize| "word ".repeat(n);
    let page = parquet_of(&words(400_000), 10, false);
    let dictionary = parquet_of(&words(40_000), 2_000, true);
    for (body, said) in [(&page, "the body is too large"), (&dictionary, "bytes together")] {
        assert!(body.len() < 100 << 10, "{}", body.len());
        for path in ["/api/v1/seen/check", "/api/v1/seen/add"] {
            let answer = send(path, body);
            assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"), "{}", answer.text());
            assert!(answer.text().contains(said), "{}", answer.text());
        }
    }
    assert_eq!(server.get("/api/v1/seen/stats").json()["documents"], 0);
    // What is not much larger than its body is taken.
    let sound = parquet_of(&words(1_000), 500, true);
    let checked = send("/api/v1/seen/check", &sound).json();
    assert_eq!(statuses(&checked), vec!["new"; 500]);
}

/// Words of one letter take twenty times their size while they are analysed, on every thread.
#[test]
fn texts_of_too_many_words_for_the_memory() {
    let server = Server::new(|config| config.memory = MemoryBudget::from_mib(128));
    let send =
        |text: &str| server.post("/api/v1/seen/check", &json!({"documents": [{"name": "a", "text": text}]}));
    let many = "a ".repeat(4 << 20);
    let answer = send(&many);
    assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"), "{}", answer.text());
    assert!(answer.text().contains("MiB of memory, and the server has 32"), "{}", answer.text());
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    assert_eq!(
        server.request("POST", "/seen", &form, format!("text={}", many.replace(' ', "+"))).status,
        413
    );
    for (kind, body) in [
        ("application/x-ndjson", json!({"name": "a", "text": many}).to_string()),
        ("text/html", format!("<p>{many}")),
    ] {
        let kind = [("Content-Type", kind)];
        assert_eq!(server.request("POST", "/api/v1/seen/check", &kind, body).status, 413);
    }
    // One that fits is taken as often as it comes: its memory is given back.
    let fits = text(1) + &" b".repeat(250_000);
    for _ in 0..5 {
        assert_eq!(send(&fits).status, 200);
    }
    let together: Vec<u16> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| send(&fits).status)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(together.iter().all(|status| [200, 503].contains(status)), "{together:?}");
    assert_eq!(send(&fits).status, 200);
}

/// An item of a list may be two bytes, and much more in memory.
#[test]
fn lists_are_counted_while_they_are_read() {
    let server = Server::new(|config| config.limits.batch_documents = 3);
    let many = vec![1; 100_000];
    for (path, body) in [
        ("/api/v1/seen/check", json!({"documents": many})),
        ("/api/v1/seen/add", json!({"documents": many})),
        ("/api/v1/seen/remove", json!({"names": vec![""; 100_000]})),
    ] {
        let answer = server.post(path, &body);
        assert_eq!((answer.status, answer.code().as_str()), (413, "too_large"), "{path}");
        assert!(answer.text().contains("at most 3"), "{}", answer.text());
    }
    for body in [json!({"documents": null}), json!({"documents": {}}), json!({"documents": 1})] {
        assert_eq!(server.post("/api/v1/seen/check", &body).status, 400, "{body}");
    }
}
