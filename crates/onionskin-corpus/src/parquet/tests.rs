use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::file::properties::WriterProperties;
use arrow_array::{
    BinaryArray, DictionaryArray, Float64Array, Int64Array, StringArray, StructArray, types::Int32Type,
};
use arrow_schema::Field;
use proptest::prelude::*;

use super::*;
use crate::SkipReason;
use crate::testing::{Folder, Seen, read};

fn write(columns: Vec<(&str, ArrayRef)>, rows_per_group: usize) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(rows_per_group)).build();
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    out
}

fn read_bytes(bytes: &[u8], options: &Options) -> Seen {
    let folder = Folder::new();
    folder.file("x.parquet", bytes);
    read(folder.sources(&["x.parquet"], options), options)
}

fn strings(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn columns_become_documents() {
    let bytes = write(
        vec![
            ("other", strings(&["x", "y", "z"])),
            ("text", Arc::new(StringArray::from(vec![Some("one"), None, Some("three")]))),
            ("id", Arc::new(Int64Array::from(vec![10, 20, 30]))),
            ("url", Arc::new(StringArray::from(vec![Some("http://A.org"), None, None]))),
        ],
        2,
    );
    // Row groups as tasks, and in batches when a group is large for a task.
    for task_bytes in [1, 1 << 20] {
        let seen = read_bytes(&bytes, &Options { task_bytes, ..Options::default() });
        assert_eq!(
            (seen.texts(), seen.skipped.as_slice()),
            (vec!["one", "three"], [SkipReason::NoText].as_slice())
        );
        assert_eq!(seen.bad, []);
        assert_eq!(seen.documents[1].offset, 2);
        assert_eq!(seen.documents[1].id.as_deref(), Some("30"));
        assert_eq!(seen.documents[0].url.as_deref(), Some("http://a.org/"));
    }
}

/// Pages larger than is thought small are asked about, and how many rows are read at a time leaves
/// no trace.
#[test]
fn pages_are_unpacked_within_limits() {
    let long = "some words of a long text ".repeat(400);
    let texts: Vec<String> = (0..600).map(|row| format!("{} {row}", &long[..row * 16])).collect();
    let ids: Vec<String> = (0..600).map(|row| format!("id {row}")).collect();
    let borrowed = |values: &[String]| strings(&values.iter().map(String::as_str).collect::<Vec<_>>());
    let batch = RecordBatch::try_from_iter([("text", borrowed(&texts)), ("id", borrowed(&ids))]).unwrap();
    for encoding in [None, Some(::parquet::basic::Encoding::DELTA_BYTE_ARRAY)] {
        let mut properties = WriterProperties::builder()
            .set_compression(::parquet::basic::Compression::SNAPPY)
            .set_data_page_size_limit(64 << 10)
            .set_write_batch_size(16)
            .set_dictionary_enabled(encoding.is_none());
        if let Some(encoding) = encoding {
            properties = properties.set_encoding(encoding);
        }
        let mut bytes = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties.build())).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        for task_bytes in [1, 4 << 10, 1 << 30] {
            let options = Options { task_bytes, ..Options::default() };
            let expected = read_bytes(&bytes, &options);
            assert_eq!(expected.texts(), texts);
            for small_page_bytes in [1 << 10, 300 << 10] {
                let options = Options { small_page_bytes, max_page_bytes: 3 << 20, ..options.clone() };
                assert_eq!(read_bytes(&bytes, &options).documents, expected.documents);
            }
        }
        let options = Options { small_page_bytes: 1 << 10, max_page_bytes: 16 << 10, ..Options::default() };
        let seen = read_bytes(&bytes, &options);
        assert_eq!(seen.bad_codes().last().map(|(_, code)| *code), Some("too_large"));
        assert!(seen.documents.len() < 600);
    }
}

/// A few bytes that stand for gigabytes: every row has the one value of a dictionary.
#[test]
fn rows_of_a_dictionary_are_read_some_at_a_time() {
    let value = "much the same ".repeat(300_000);
    let keys = arrow_array::Int32Array::from(vec![0; 500]);
    let values: DictionaryArray<Int32Type> =
        DictionaryArray::try_new(keys, Arc::new(StringArray::from(vec![value.as_str()]))).unwrap();
    let bytes = write(vec![("text", Arc::new(values))], 1000);
    let chunks =
        Chunks::new(Box::new(io::Cursor::new(bytes.clone())), bytes.len() as u64, &Options::default());
    let file = ParquetFile::of(chunks, &Options::default()).unwrap();
    let mut batches = file.batches(0, 0, &Options::default());
    let rows = batches.next(&mut |_| {}).unwrap().unwrap();
    assert!(
        rows.len() as u64 * value.len() as u64 <= MOST_BATCH_BYTES + value.len() as u64,
        "{}",
        rows.len()
    );
    let mut all = rows.len();
    while let Some(rows) = batches.next(&mut |_| {}) {
        all += rows.unwrap().len();
    }
    assert_eq!(all, 500);
}

#[test]
fn rows_one_after_the_other() {
    let bytes = write(
        vec![
            ("text", Arc::new(StringArray::from(vec![Some("one"), None, Some("three")]))),
            ("html", strings(&["<p>one", "<p>two", "<p>three"])),
            ("id", Arc::new(Int64Array::from(vec![10, 20, 30]))),
            ("url", Arc::new(StringArray::from(vec![Some("http://A.org"), None, None]))),
        ],
        2,
    );
    let all = |options: &Options| {
        let mut texts = ParquetTexts::open(io::Cursor::new(bytes.clone()), options, "html").unwrap();
        let mut rows = Vec::new();
        let mut note = |row: ParquetText<'_>| {
            let text = row.text.map(str::to_owned);
            rows.push((row.row, text, row.id.map(str::to_owned), row.url.map(str::to_owned)));
        };
        while texts.next_rows(&mut note).unwrap() {}
        (texts.is_html(), rows)
    };
    let owned = |text: &str| Some(text.to_owned());
    let (is_html, rows) = all(&Options { max_record_bytes: 4, ..Options::default() });
    assert!(!is_html);
    assert_eq!(
        rows,
        [
            (0, Ok("one".to_owned()), owned("10"), owned("http://A.org")),
            (1, Err(BadReason::MissingText), owned("20"), None),
            (2, Err(BadReason::TooLarge { limit: 4 }), owned("30"), None),
        ]
    );
    let (is_html, rows) = all(&Options { text_field: "body".into(), ..Options::default() });
    assert!(is_html);
    assert_eq!(rows[1].1.as_deref(), Ok("<p>two"));
    let missing = ParquetTexts::open(
        io::Cursor::new(bytes.clone()),
        &Options { text_field: "body".into(), ..Options::default() },
        "page",
    );
    assert!(matches!(missing.err(), Some(BadReason::MissingColumn { column, .. }) if column == "\"body\""));
}

#[test]
fn other_types_of_string() {
    let dictionary: DictionaryArray<Int32Type> = vec!["one", "two", "one"].into_iter().collect();
    let texts: [ArrayRef; 4] = [
        Arc::new(LargeStringArray::from(vec!["one", "two", "one"])),
        Arc::new(BinaryArray::from(vec![b"one".as_slice(), b"two", b"one"])),
        Arc::new(dictionary),
        Arc::new(arrow_array::StringViewArray::from(vec!["one", "two", "one"])),
    ];
    for text in texts {
        let bytes = write(vec![("text", text)], 100);
        assert_eq!(read_bytes(&bytes, &Options::default()).texts(), ["one", "two", "one"]);
    }
    let bytes = write(vec![("text", Arc::new(BinaryArray::from(vec![b"one".as_slice(), b"\xff"])))], 100);
    let seen = read_bytes(&bytes, &Options::default());
    assert_eq!((seen.texts(), seen.bad_codes()), (vec!["one"], vec![(1, "invalid_utf8")]));
}

#[test]
fn nested_columns() {
    let inner: ArrayRef = strings(&["http://a/", "http://b/"]);
    let nested = StructArray::from(vec![(Arc::new(Field::new("url", DataType::Utf8, true)), inner)]);
    let bytes = write(vec![("text", strings(&["one", "two"])), ("metadata", Arc::new(nested))], 100);
    let options = Options { url_field: "metadata.url".into(), ..Options::default() };
    let seen = read_bytes(&bytes, &options);
    assert_eq!(seen.documents[1].url.as_deref(), Some("http://b/"));
    let seen = read_bytes(&bytes, &Options { text_field: "metadata.url".into(), ..Options::default() });
    assert_eq!(seen.texts(), ["http://a/", "http://b/"]);
}

#[test]
fn a_missing_column_names_those_there_are() {
    let body = strings(&["one", "two", "three"]);
    let bytes = write(vec![("body", body), ("n", Arc::new(Int64Array::from(vec![1, 2, 3])))], 2);
    let seen = read_bytes(&bytes, &Options::default());
    assert_eq!(seen.bad.len(), 1);
    // The footer has their number.
    assert_eq!((seen.bad[0].records, seen.bad[0].bytes), (3, bytes.len() as u64));
    assert_eq!(
        seen.bad[0].reason.to_string(),
        "no column \"text\", \"content\" or \"raw_content\"; there are body, n"
    );
    let bytes = write(vec![("text", Arc::new(Float64Array::from(vec![1.0])))], 100);
    assert_eq!(read_bytes(&bytes, &Options::default()).bad_codes(), [(0, "text_not_a_string")]);
}

#[test]
fn limits() {
    let bytes = write(vec![("text", strings(&["short", "far too long", "short"]))], 100);
    let seen = read_bytes(&bytes, &Options { max_record_bytes: 6, ..Options::default() });
    assert_eq!((seen.texts(), seen.bad_codes()), (vec!["short", "short"], vec![(1, "too_large")]));
}

#[test]
fn cut_off_files_are_told() {
    let bytes = write(vec![("text", strings(&["one", "two"]))], 1);
    for len in [4, 20, bytes.len() / 2, bytes.len() - 1] {
        let seen = read_bytes(&bytes[..len], &Options::default());
        assert_eq!((seen.texts(), seen.bad.len()), (vec![], 1), "{len}");
        assert_eq!(seen.bad[0].reason.code(), "broken_parquet");
    }
}

fn sample() -> Vec<u8> {
    let texts: Vec<String> =
        (0..40_u64).map(|i| format!("{:x}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    write(vec![("text", Arc::new(StringArray::from(texts)))], 10)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn damage_is_told_and_never_a_panic(at in 0_usize..10_000, byte: u8, task_bytes in prop::sample::select(vec![1_u64, 1 << 20])) {
        let mut bytes = sample();
        let at = 4 + at % (bytes.len() - 4);
        bytes[at] ^= byte;
        let folder = Folder::new();
        folder.file("x.parquet", &bytes);
        let options = Options { task_bytes, ..Options::default() };
        let sources = folder.sources(&["x.parquet"], &options);
        // Not through `read`: the laws hold for damage too, but this is about coming back at all.
        let tasks = crate::Tasks::new(sources.into(), Arc::new(options.clone()));
        crate::testing::run_tasks(tasks, &options);
    }

    #[test]
    fn any_task_size_reads_the_same(texts in prop::collection::vec("[ab]{0,30}", 1..40), rows in 1_usize..20, task_bytes in 1_u64..100) {
        let bytes = write(vec![("text", Arc::new(StringArray::from(texts.clone())))], rows);
        let seen = read_bytes(&bytes, &Options { task_bytes, ..Options::default() });
        prop_assert_eq!(seen.texts(), texts);
    }
}
