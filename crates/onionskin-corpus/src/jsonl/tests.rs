use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::SkipReason;
use crate::testing::{Folder, Owned, Seen, gzip, read, zst};

fn read_named(name: &str, bytes: &[u8], options: &Options) -> Seen {
    let folder = Folder::new();
    folder.file(name, bytes);
    read(folder.sources(&[name], options), options)
}

fn check(text: &str, expected_texts: &[&str], expected_bad: &[(u64, &str)]) -> Seen {
    let mut first = None;
    // From one byte a task to all in one, plain and compressed.
    for task_bytes in [1, 7, 64, 8 << 20] {
        let options = Options { task_bytes, format: Some(crate::Format::Jsonl), ..Options::default() };
        for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes()), zst(text.as_bytes())] {
            let seen = read_named("x.jsonl", &bytes, &options);
            assert_eq!(seen.texts(), expected_texts);
            assert_eq!(seen.bad_codes(), expected_bad);
            assert_eq!(*first.get_or_insert_with(|| seen.clone()), seen);
        }
    }
    first.unwrap()
}

#[test]
fn fields_become_a_document() {
    let seen = check(
        r#"{"id": "a", "text": "one two", "url": "HTTP://Example.ORG:80/a/../b#c", "other": [1, {"text": "no"}]}"#,
        &["one two"],
        &[],
    );
    let expected = Owned {
        id: Some("a".into()),
        url: Some("http://example.org/b".into()),
        site: Some("example.org".into()),
        media_type: "text/plain".into(),
        bytes: 7,
        text: "one two".into(),
        ..Owned::default()
    };
    assert_eq!(seen.documents, [expected]);
}

#[test]
fn digests_of_texts_on_request() {
    let options = Options { text_digests: true, ..Options::default() };
    let seen = read_named("x.jsonl", br#"{"text": "one two"}"#, &options);
    assert_eq!(seen.documents[0].payload_sha1, Some(sha1_of(b"one two")));
}

fn sha1_of(bytes: &[u8]) -> [u8; 20] {
    use sha1::{Digest, Sha1};
    Sha1::digest(bytes).into()
}

#[test]
fn line_ends_and_blank_lines() {
    check("{\"text\":\"a\"}\r\n\r\n  \t\n{\"text\":\"b\"}\n\n{\"text\":\"c\"}", &["a", "b", "c"], &[]);
    check("\u{feff}{\"text\":\"a\"}\n", &["a"], &[]);
    check("", &[], &[]);
    check("\n\n", &[], &[]);
}

#[test]
fn bad_lines_are_told_with_their_offset_and_the_others_read() {
    check(
        concat!(
            "{\"text\":\"a\"}\n",
            "{\"text\":\n",
            "[1]\n",
            "{\"id\":1}\n",
            "{\"text\":null}\n",
            "{\"text\":5}\n",
            "{\"text\":\"b\"} x\n",
            "nonsense\n",
            "{\"text\":\"\\ud800\"}\n",
            "{\"text\":\"c\"}\n",
        ),
        &["a", "c"],
        &[
            (13, "broken_json"),
            (22, "not_an_object"),
            (49, "text_not_a_string"),
            (60, "broken_json"),
            (75, "broken_json"),
            (84, "broken_json"),
        ],
    );
}

#[test]
fn other_kinds_of_id_and_url() {
    let seen = check(
        concat!(
            "{\"text\":\"a\",\"id\":17,\"url\":5}\n",
            "{\"text\":\"b\",\"id\":-1.5,\"url\":null}\n",
            "{\"text\":\"c\",\"id\":[1],\"url\":{\"a\":1}}\n",
            "{\"text\":\"d\",\"id\":true,\"url\":\"not an address\"}\n",
            "{\"text\":\"x\",\"text\":\"e\",\"id\":\"\\u0041\"}\n",
        ),
        &["a", "b", "c", "d", "e"],
        &[],
    );
    let ids: Vec<_> = seen.documents.iter().map(|document| document.id.as_deref()).collect();
    assert_eq!(ids, [Some("17"), Some("-1.5"), None, None, Some("A")]);
    let urls: Vec<_> = seen.documents.iter().map(|document| document.url.as_deref()).collect();
    assert_eq!(urls, [None, None, None, Some("not an address"), None]);
}

#[test]
fn invalid_utf8_is_told() {
    let options = Options::default();
    let seen = read_named("x.jsonl", b"{\"text\":\"a\"}\n{\"text\":\"\xff\"}\n{\"text\":\"b\"}\n", &options);
    assert_eq!((seen.texts(), seen.bad_codes()), (vec!["a", "b"], vec![(13, "invalid_utf8")]));
}

#[test]
fn dotted_fields() {
    let options = Options {
        text_field: "data.body".into(),
        id_field: "data.meta.id".into(),
        url_field: "a.b".into(),
        ..Options::default()
    };
    let seen = read_named(
        "x.jsonl",
        concat!(
            "{\"data\":{\"meta\":{\"id\":\"1\",\"x\":[]},\"body\":\"one\"},\"a.b\":\"http://a/\"}\n",
            "{\"data\":\"no object\"}\n",
            "{\"body\":\"not here\",\"data\":{\"body\":\"two\"},\"a\":{\"b\":\"http://b/\"}}\n",
            "{\"data\":[{\"body\":\"not in a list\"}]}\n",
        )
        .as_bytes(),
        &options,
    );
    assert_eq!(seen.texts(), ["one", "two"]);
    assert_eq!(seen.documents[0].id.as_deref(), Some("1"));
    let urls: Vec<_> = seen.documents.iter().map(|document| document.url.as_deref()).collect();
    assert_eq!(urls, [Some("http://a/"), Some("http://b/")]);
    assert_eq!((seen.bad, seen.skipped), (vec![], vec![SkipReason::NoText; 2]));
}

#[test]
fn html_in_the_text_field() {
    let options = Options { text_is_html: true, ..Options::default() };
    let line =
        json!({"text": "<title>T</title><p>caf\u{e9}<a href='b'>x</a>", "url": "http://a.org/"}).to_string();
    let seen = read_named("x.jsonl", line.as_bytes(), &options);
    assert_eq!(seen.texts(), ["caf\u{e9}x"]);
    assert_eq!(
        (&*seen.documents[0].title, &*seen.documents[0].links),
        ("T", &["http://a.org/b".to_owned()][..])
    );
}

#[test]
fn deep_nesting_is_passed_over() {
    let deep = format!("{{\"a\":{}{},\"text\":\"x\"}}\n", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(read_named("x.jsonl", deep.as_bytes(), &Options::default()).texts(), ["x"]);
    let deep_text = format!("{{\"text\":{}{}}}\n", "[".repeat(100_000), "]".repeat(100_000));
    let seen = read_named("x.jsonl", deep_text.as_bytes(), &Options::default());
    assert_eq!(seen.bad.len(), 1);
}

#[test]
fn long_lines_are_refused_wherever_they_are() {
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(100));
    let text = format!("{{\"text\":\"a\"}}\n{long}\n{long}\n{{\"text\":\"b\"}}\n{long}");
    for task_bytes in [1, 13, 50, 150, 1 << 20] {
        let options = Options {
            task_bytes,
            max_record_bytes: 50,
            format: Some(crate::Format::Jsonl),
            ..Options::default()
        };
        for bytes in [text.as_bytes().to_vec(), gzip(text.as_bytes())] {
            let seen = read_named("x.jsonl", &bytes, &options);
            assert_eq!(seen.texts(), ["a", "b"]);
            assert_eq!(seen.bad_codes(), [(13, "too_large"), (125, "too_large"), (250, "too_large")]);
        }
    }
}

#[test]
fn a_bomb_of_one_line() {
    let mut bomb = b"{\"text\":\"a\"}\n{\"text\":\"".to_vec();
    bomb.resize(200 << 20, b'x');
    let packed = zst(&bomb);
    drop(bomb);
    let seen =
        read_named("x.jsonl.zst", &packed, &Options { max_record_bytes: 1 << 20, ..Options::default() });
    assert_eq!((seen.texts(), seen.bad_codes()), (vec!["a"], vec![(13, "too_large")]));
}

#[test]
fn many_members_and_frames() {
    let (one, two) = (b"{\"text\":\"a\"}\n{\"te", b"xt\":\"b\"}\n");
    for bytes in [[gzip(one), gzip(two)].concat(), [zst(one), zst(two)].concat()] {
        let seen = read_named("x.jsonl", &bytes, &Options { task_bytes: 4, ..Options::default() });
        assert_eq!((seen.texts(), seen.bad_codes()), (vec!["a", "b"], vec![]));
    }
}

#[test]
fn cut_off_and_corrupt_streams_keep_what_came_before() {
    // Text that does not compress away, so that a cut falls into it.
    let text: String =
        (0_u32..2000).map(|i| format!("{{\"text\":\"{:x}\"}}\n", i.wrapping_mul(2_654_435_761))).collect();
    for packed in [gzip(text.as_bytes()), zst(text.as_bytes())] {
        let options = Options { task_bytes: 1000, format: Some(crate::Format::Jsonl), ..Options::default() };
        let seen = read_named("x", &packed[..packed.len() - 20], &options);
        let whole: Vec<_> =
            text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["text"].clone()).collect();
        assert!(seen.documents.iter().zip(&whole).all(|(document, text)| *text == *document.text));
        assert_eq!(seen.bad.len(), 1, "{:?}", seen.bad);
        assert_eq!(seen.bad[0].reason.code(), "cut_off");
    }
    let mut packed = [gzip(b"{\"text\":\"a\"}\n"), gzip(text.as_bytes())].concat();
    let middle = packed.len() / 2;
    packed[middle..middle + 50].fill(0xff);
    let seen = read_named("x.jsonl.gz", &packed, &Options::default());
    assert_eq!(seen.documents[0].text, "a");
    // Damage decodes to nonsense for a while before the checksum tells.
    assert_eq!(seen.bad.iter().filter(|bad| bad.reason.code() == "corrupt").count(), 1);
    assert_eq!(seen.bad.last().map(|bad| bad.reason.code()), Some("corrupt"));
}

#[test]
fn a_file_that_vanished_is_told_and_the_next_one_read() {
    let folder = Folder::new();
    let gone = folder.file("a.jsonl", "{\"text\":\"a\"}\n");
    let gone_packed = folder.file("b.jsonl.gz", gzip(b"{\"text\":\"b\"}\n"));
    folder.file("c.jsonl", "{\"text\":\"c\"}\n");
    let options = Options::default();
    let sources = folder.sources(&["a.jsonl", "b.jsonl.gz", "c.jsonl"], &options);
    std::fs::remove_file(gone).unwrap();
    std::fs::remove_file(gone_packed).unwrap();
    let seen = read(sources, &options);
    assert_eq!(seen.texts(), ["c"]);
    let failed: Vec<_> = seen.failed.iter().map(|failure| (failure.source, failure.byte)).collect();
    assert_eq!(failed, [(0, 0), (1, 0)]);
}

proptest! {
    #[test]
    fn any_task_size_reads_the_same(lines in prop::collection::vec("[ab{}\"\\\\]{0,12}|\\{\"text\":\"[xy]{0,9}\"\\}", 0..30), task_bytes in 1_u64..80) {
        let text = lines.join("\n");
        let read_in = |task_bytes, bytes: &[u8]| {
            let options = Options { task_bytes, format: Some(crate::Format::Jsonl), ..Options::default() };
            read_named("x.jsonl", bytes, &options)
        };
        let whole = read_in(1 << 20, text.as_bytes());
        prop_assert_eq!(&read_in(task_bytes, text.as_bytes()), &whole);
        prop_assert_eq!(&read_in(task_bytes, &gzip(text.as_bytes())), &whole);
    }
}

#[test]
fn the_layouts_of_known_collections_are_read() {
    let lines = [
        // Dolma, FineWeb, RedPajama 1 and 2, C4.
        r#"{"id":"d1","text":"dolma","created":"2021-02-03T00:00:00.000Z","metadata":{"url":"http://d.example/"}}"#,
        r#"{"text":"fineweb","id":"<urn:uuid:1>","url":"http://f.example/","date":"2013-05-18T07:24:24Z"}"#,
        r#"{"text":"red 1","meta":{"url":"http://r.example/1","timestamp":"2019-04-25T12:57:54Z"}}"#,
        r#"{"url":"http://r.example/2","date_download":"2014-07-22T10:40:13Z","raw_content":"red 2"}"#,
        r#"{"timestamp":"1611878400","url":"http://c.example/","text":"c4"}"#,
    ];
    let seen = read_named("x.jsonl", lines.join("\n").as_bytes(), &Options::default());
    assert_eq!(seen.texts(), ["dolma", "fineweb", "red 1", "red 2", "c4"]);
    let ids: Vec<_> = seen.documents.iter().map(|document| document.id.as_deref()).collect();
    assert_eq!(ids, [Some("d1"), Some("<urn:uuid:1>"), None, None, None]);
    let urls: Vec<_> = seen.documents.iter().flat_map(|document| document.url.as_deref()).collect();
    let hosts = ["http://d.example/", "http://f.example/", "http://r.example/1", "http://r.example/2"];
    assert_eq!(urls, [hosts.as_slice(), &["http://c.example/"]].concat());
    let day = |document: &Owned| document.fetched_at.map(|at| at / 86_400_000_000);
    let days: Vec<_> = seen.documents.iter().map(day).collect();
    assert_eq!(days, [Some(18_661), Some(15_843), Some(18_011), Some(16_273), None]);
}
