use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use onionskin_corpus::{FieldNames, Shares};
use onionskin_store::MemoryBudget;
use parquet::arrow::ArrowWriter;

use super::*;
use crate::testing::fast_dir;
use crate::{Options, SeenError};

fn options() -> Options {
    Options::new(MemoryBudget::from_mib(16))
}

fn intake(wanted: &Wanted) -> (tempfile::TempDir, Intake) {
    let dir = fast_dir();
    let seen = wanted.open_or_create(&dir.path().join("seen"), None, options()).unwrap();
    (dir, Intake::new(seen.into(), 2))
}

/// Reads lines as the edges do.
fn read(fields: &Fields, lines: &str) -> Vec<Incoming> {
    let mut documents =
        Documents::lines("-", Cursor::new(lines.to_owned()), fields.clone(), &Limits::of_records(200));
    std::iter::from_fn(|| documents.next_document().unwrap()).collect()
}

fn check_read(line: &str, name: &str, text: Result<&str, &str>) {
    let read = read(&Fields::default(), line);
    assert_eq!(read.len(), 1, "{line}");
    assert_eq!(read[0].name, name, "{line}");
    match (&read[0].text, text) {
        (Ok(read), Ok(text)) => assert_eq!(read, text, "{line}"),
        (Err(read), Err(text)) => assert!(read.contains(text), "{line}: {read}"),
        (read, text) => panic!("{line}: {read:?}, not {text:?}"),
    }
}

#[test]
fn a_document_has_a_name_and_a_text() {
    check_read(r#"{"id": "a", "text": "b"}"#, "a", Ok("b"));
    check_read(r#"{"name": "a", "text": "b"}"#, "a", Ok("b"));
    check_read(r#"{"id": 7, "url": "http://x/", "text": "b"}"#, "7", Ok("b"));
    check_read(r#"{"id": null, "url": "http://x/", "text": "b"}"#, "http://x/", Ok("b"));
    check_read(r#"{"text": "b"}"#, "-:1", Ok("b"));
    check_read("\n\n{\"text\": \"b\"}", "-:3", Ok("b"));
    check_read("\u{feff}{\"text\": \"b\"}", "-:1", Ok("b"));
    // Writers that forget to escape a tab are common.
    check_read("{\"text\": \"b\tc\"}", "-:1", Ok("b\tc"));
    check_read(r#"{"id": "a", "html": "<title>t</title><p>b &amp; c"}"#, "a", Ok("b & c"));
    check_read(r#"{"id": "a", "text": null, "html": "<p>b"}"#, "a", Ok("b"));
}

#[test]
fn what_is_wrong_with_a_line_is_said() {
    check_read(
        r#"{"id": "a", "txt": "b"}"#,
        "-:1",
        Err(r#"unknown field "txt"; known: name, id, url, text, html"#),
    );
    check_read(r#"{"id": "a", "text": "b", "lang": "en"}"#, "a", Err(r#"unknown field "lang""#));
    check_read(r#"{"id": "a", "name": "a", "text": "b"}"#, "a", Err(r#"both "name" and "id""#));
    check_read(r#"{"id": "a", "text": "b", "html": "c"}"#, "a", Err(r#"both "text" and "html""#));
    check_read(r#"{"id": "a"}"#, "-:1", Err(r#"neither "text" nor "html""#));
    check_read(r#"{"id": "a", "text": 3}"#, "-:1", Err(r#"neither "text" nor "html""#));
    check_read("[1]", "-:1", Err("not a JSON object"));
    check_read(r#"{"id": "a", "text": "b""#, "-:1", Err("broken JSON"));
    check_read(&format!(r#"{{"text": "{}"}}"#, "b".repeat(300)), "-:1", Err("larger than 200 bytes"));
}

#[test]
fn fields_can_have_other_names() {
    let fields = Fields {
        text: FieldNames::one("doc.body"),
        id: FieldNames::one("key"),
        others: OtherFields::Ignored,
        ..Fields::default()
    };
    let found = read(&fields, r#"{"key": "a", "doc": {"body": "b"}, "lang": "en"}"#);
    assert_eq!(found, [Incoming { name: "a".to_owned(), text: Ok("b".to_owned()) }]);
    let strict = Fields { others: OtherFields::Refused, ..fields };
    assert!(read(&strict, r#"{"key": "a", "doc": {"body": "b"}, "lang": "en"}"#)[0].text.is_err());
    assert!(read(&strict, r#"{"key": "a", "doc": {"body": "b", "lang": "en"}}"#)[0].text.is_ok());
}

#[test]
fn files_have_the_fields_of_known_layouts() {
    let check = |line: &str, name: &str, text: Result<&str, &str>| {
        let found = &read(&Fields::of_files(), line)[0];
        let was = (found.name.as_str(), found.text.as_deref().map_err(String::as_str));
        assert_eq!(was, (name, text), "{line}");
    };
    check(r#"{"id": "d", "text": "a", "metadata": {"url": "http://d/"}, "source": "s"}"#, "d", Ok("a"));
    check(r#"{"text": "a", "meta": {"url": "http://r/1"}}"#, "http://r/1", Ok("a"));
    check(r#"{"raw_content": "a", "url": "http://r/2", "doc_id": "2"}"#, "2", Ok("a"));
    check(r#"{"text": null, "content": "b", "name": "n", "id": "i"}"#, "i", Ok("b"));
    check(r#"{"text": "a", "html": "<p>b"}"#, "-:1", Ok("a"));
    check(r#"{"text": null, "html": "<p>b"}"#, "-:1", Ok("b"));
    check(r#"{"text": null, "id": 7}"#, "7", Ok(""));
    let neither = "no text: neither \"text\", \"content\" or \"raw_content\" nor \"html\" has a string";
    check(r#"{"body": "a", "id": 7}"#, "-:1", Err(neither));
}

#[test]
fn rows_of_parquet_are_documents() {
    let text: ArrayRef = Arc::new(StringArray::from(vec![Some("one two"), None, Some("three")]));
    let html: ArrayRef = Arc::new(StringArray::from(vec!["<p>one two", "<p>2", "<p>three"]));
    let id: ArrayRef = Arc::new(Int64Array::from(vec![Some(7), None, None]));
    let url: ArrayRef = Arc::new(StringArray::from(vec![Some("http://A"), Some("http://B"), None]));
    let dir = fast_dir();
    let check = |columns: Vec<(&str, ArrayRef)>, expected: [(&str, Result<&str, &str>); 3]| {
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.into_iter().map(|(name, array)| (name, array, true)),
        );
        let (path, batch) = (dir.path().join("in"), batch.unwrap());
        let file = std::fs::File::create(&path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let path = path.to_str().unwrap();
        let mut documents = Documents::open(path, Fields::default(), &Limits::of_records(1 << 20)).unwrap();
        for (name, text) in expected {
            let found = documents.next_document().unwrap().unwrap();
            let place = found.name.strip_prefix(path).unwrap_or(&found.name);
            assert_eq!((place, found.text.as_deref().map_err(String::as_str)), (name, text));
        }
        assert_eq!(documents.next_document().unwrap(), None);
        assert!(!documents.is_waiting());
    };
    // Columns that nobody asks for are not read.
    let columns =
        vec![("text", text), ("html", html.clone()), ("id", id), ("url", url), ("lang", html.clone())];
    check(columns, [("7", Ok("one two")), ("http://B", Ok("")), (":3", Ok("three"))]);
    check(vec![("html", html)], [(":1", Ok("one two")), (":2", Ok("2")), (":3", Ok("three"))]);
}

#[test]
fn verbs_and_thresholds_are_those_that_are_known() {
    for verb in Verb::ALL {
        assert_eq!(verb.as_str().parse(), Ok(verb));
    }
    let error = "add_if_new".parse::<Verb>().unwrap_err().to_string();
    assert_eq!(error, r#"unknown mode "add_if_new"; known: check, add, add-if-new"#);
    assert_eq!("0.9".parse::<Threshold>().map(Threshold::get), Ok(0.9));
    for wrong in ["0", "-1", "1.01", "NaN", "inf", "much"] {
        assert!(wrong.parse::<Threshold>().is_err(), "{wrong}");
    }
}

#[test]
fn an_index_that_is_there_must_be_what_is_wanted() {
    let (dir, intake) = intake(&Wanted { seed: Some(5), ..Wanted::default() });
    assert_eq!((intake.stats().recipe.as_str(), intake.stats().seed), (RECIPE, 5));
    intake.close().unwrap();
    let open = |wanted: Wanted| wanted.open_or_create(&dir.path().join("seen"), None, options()).map(drop);
    open(Wanted::default()).unwrap();
    open(Wanted { seed: Some(5), names: Some(true), recipe: RECIPE.parse().ok(), ..Wanted::default() })
        .unwrap();
    let other = Wanted { seed: Some(6), ..Wanted::default() };
    assert!(matches!(open(other), Err(OpenError::Seen(SeenError::Mismatch { .. }))));
    let numbers = Wanted { names: Some(false), ..Wanted::default() };
    assert!(matches!(open(numbers), Err(OpenError::Names { names: true, .. })));
    let features = Wanted { sketches: Some(false), ..Wanted::default() };
    assert!(matches!(open(features), Err(OpenError::Sketches { sketches: true, .. })));
    open(Wanted { threshold: "0.5".parse().ok(), sketches: Some(true), ..Wanted::default() }).unwrap();
    let missing = Wanted::default().open(&dir.path().join("nothing"), options());
    assert!(matches!(missing.err(), Some(OpenError::Seen(SeenError::Missing(_)))));
}

#[test]
fn names_of_an_index_of_numbers_are_numbers() {
    let (_dir, mut intake) = intake(&Wanted { names: Some(false), ..Wanted::default() });
    let documents = || {
        ["7", "x"].map(|name| Incoming { name: name.to_owned(), text: Ok(format!("words of {name} here")) })
    };
    let answers = intake.answer(documents().into(), Request::new(Verb::Add)).unwrap();
    assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [Status::New, Status::Bad]);
    let problem = "\"x\" is not a whole number, as the names of this index are";
    assert_eq!(answers[1].problem.as_deref(), Some(problem));
    // A check keeps no name, so that any will do.
    let answers = intake.answer(documents().into(), Request::new(Verb::Check)).unwrap();
    assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [Status::Exact, Status::New]);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    assert!(matches!(intake.remove(&names(&["7", "x"])), Err(SeenError::NotANumber(name)) if name == "x"));
    let removed = intake.remove(&names(&["7", "8"])).unwrap();
    assert_eq!(removed.iter().map(|one| one.documents).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn a_threshold_needs_sketches() {
    let (_dir, mut intake) = intake(&Wanted { sketches: Some(false), ..Wanted::default() });
    let request = Request { verb: Verb::Check, threshold: "0.9".parse().ok() };
    let documents = vec![Incoming { name: String::new(), text: Ok("words".to_owned()) }];
    assert!(matches!(intake.answer(documents, request), Err(SeenError::NoSketches)));
}

#[test]
fn an_index_that_is_read_takes_no_additions() {
    let (dir, writing) = intake(&Wanted::default());
    writing.close().unwrap();
    let reader = Wanted::default().open_reader(&dir.path().join("seen"), MemoryBudget::from_mib(1)).unwrap();
    let mut intake = Intake::new(reader.into(), 1);
    let one = Prepared { name: "a".to_owned(), features: Ok(Features::default()) };
    assert!(matches!(intake.answer_prepared(&one, Request::new(Verb::Add)), Err(SeenError::ReadOnly)));
    assert_eq!(intake.answer_prepared(&one, Request::new(Verb::Check)).unwrap().status, Status::Empty);
    assert!(matches!(intake.remove(&BTreeSet::new()), Err(SeenError::ReadOnly)));
}

#[test]
fn names_to_remove_are_read_from_lines() {
    let dir = fast_dir();
    let path = dir.path().join("names.jsonl");
    let path = path.to_str().unwrap();
    let check = |lines: &str, expected: Result<&[&str], &str>| {
        std::fs::write(path, lines).unwrap();
        match (read_names(path, &Fields::default()), expected) {
            (Ok(names), Ok(expected)) => assert_eq!(names, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (names, _) => panic!("{lines}: {names:?}"),
        }
    };
    check(
        "\"a\"\n7\n\n{\"id\": \"b\", \"url\": \"c\"}\n{\"url\": \"c\"}\n{\"name\": \"d\"}\n",
        Ok(&["a", "7", "b", "c", "d"]),
    );
    check("\"a\"\nb\n", Err("names.jsonl:2: not JSON"));
    check("{\"title\": \"a\"}", Err("unknown field \"title\""));
    check("{\"text\": \"a\"}", Err("no id, name or url"));
}

/// A file of another format is read by a thread that hands on some documents at a time.
#[test]
fn documents_are_handed_on_in_parts() {
    let dir = fast_dir();
    let path = dir.path().join("in.csv");
    let rows: String = (0..500).map(|n| format!("{n},{}\n", "word ".repeat(n % 90))).collect();
    std::fs::write(&path, format!("id,text\n{rows}")).unwrap();
    let path = path.to_str().unwrap();
    let read = |limits: &Limits| {
        let mut documents = Documents::open(path, Fields::default(), limits).unwrap();
        std::iter::from_fn(|| documents.next_document().unwrap()).collect::<Vec<_>>()
    };
    // The naive way: all at once.
    let expected = read(&Limits::of_records(u64::MAX));
    assert_eq!(expected.len(), 500);
    for (batch_bytes, small_record_bytes) in [(1, 0), (1000, 100), (100_000, 50), (1 << 20, 1 << 20)] {
        let shares = Shares { batch_bytes, small_record_bytes, ..Shares::of(64 << 20, 1) };
        let limits = Limits { shares: Some(shares), ..Limits::of_records(u64::MAX) };
        assert!(read(&limits) == expected, "{shares:?}");
        // Whoever has enough leaves.
        let mut some = Documents::open(path, Fields::default(), &limits).unwrap();
        assert_eq!(some.next_document().unwrap().as_ref(), expected.first());
    }
    std::fs::remove_file(path).unwrap();
}

/// A Parquet file is refused by the size of its pages, before they are unpacked.
#[test]
fn parquet_with_a_page_that_is_too_large_is_an_error() {
    let dir = fast_dir();
    let path = dir.path().join("in.parquet");
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..20).map(|_| "word ".repeat(100_000))));
    let batch = RecordBatch::try_from_iter([("text", text)]).unwrap();
    let mut writer =
        ArrowWriter::try_new(std::fs::File::create(&path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let path = path.to_str().unwrap();
    let read = |max_page_bytes: u64| {
        let limits = Limits { max_page_bytes, ..Limits::of_records(u64::MAX) };
        let mut documents = Documents::open(path, Fields::default(), &limits).unwrap();
        std::iter::from_fn(|| documents.next_document().transpose()).collect::<Result<Vec<_>, _>>()
    };
    assert_eq!(read(8 << 20).unwrap().len(), 20);
    let error = read(100_000).unwrap_err();
    assert!(error.is_too_large() && error.to_string().contains(path), "{error}");
}
