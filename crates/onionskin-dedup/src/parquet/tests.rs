use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::metadata::KeyValue;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, Float64Array, Int64Array, ListArray, StringArray};

use super::super::Copying;
use super::super::testing::{Bench, near};
use super::*;

fn rows() -> RecordBatch {
    let lists = ListArray::from_iter_primitive::<Int64Type, _, _>([
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
        Some(vec![Some(7)]),
        Some(vec![Some(8)]),
        None,
    ]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("n", Arc::new(Int64Array::from(vec![0, 1, 2, 3, 4, 5]))),
        (
            "text",
            Arc::new(StringArray::from(vec![Some("a"), Some("b"), None, Some("d"), Some("e"), Some("f")])),
        ),
        ("id", Arc::new(StringArray::from(vec!["i0", "i1", "i2", "i3", "i4", "i5"]))),
        ("share", Arc::new(Float64Array::from(vec![Some(0.5), None, Some(f64::NAN), None, None, Some(1.0)]))),
        ("list", Arc::new(lists)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
        .unwrap()
}

/// A file with row groups of 2 and 4 rows, two codecs, and something that it says of itself.
fn write(bench: &Bench, batch: &RecordBatch) {
    let zstd = Compression::ZSTD(ZstdLevel::try_new(3).unwrap());
    let note = |key: &str| KeyValue::new(key.to_owned(), "kept".to_owned());
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_column_compression("text".into(), zstd)
        .set_key_value_metadata(Some(vec![note("made-by"), note("huggingface")]))
        .build();
    std::fs::create_dir_all(bench.path("in")).unwrap();
    let file = File::create(bench.path("in/a.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch.slice(0, 2)).unwrap();
    writer.flush().unwrap();
    writer.write(&batch.slice(2, 4)).unwrap();
    writer.close().unwrap();
}

fn read(bench: &Bench) -> (ParquetMetaData, RecordBatch) {
    let file = File::open(bench.path("out/shards/a.parquet")).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
    let (metadata, schema) = (builder.metadata().as_ref().clone(), Arc::clone(builder.schema()));
    let batches: Vec<RecordBatch> = builder.build().unwrap().map(Result::unwrap).collect();
    (metadata, arrow_select::concat::concat_batches(&schema, &batches).unwrap())
}

fn bench() -> Bench {
    let bench = Bench::new();
    write(&bench, &rows());
    // Documents are the rows 0, 1, 3, 4, 5: row 2 has no text.
    bench.atlas(&[near(1, &[(0, 0.75), (2, 0.5), (4, 0.25)])]);
    bench
}

#[test]
fn rows_go_and_everything_else_stays() {
    let bench = bench();
    let summary = bench.dedup(|_| {}).unwrap();
    assert_eq!((summary.removed_records, summary.other_records), (3, 1));
    let (metadata, found) = read(&bench);
    let keep = BooleanArray::from(vec![false, true, true, false, true, false]);
    // NaN is not itself, so the two are compared as they are printed.
    let expected = filter_record_batch(&rows(), &keep).unwrap();
    assert_eq!(format!("{:?}", found.columns()), format!("{:?}", expected.columns()));
    assert_eq!(metadata.row_groups().iter().map(|group| group.num_rows()).collect::<Vec<_>>(), [1, 2]);
    for column in metadata.row_group(0).columns() {
        let is_text = column.column_path().string() == "text";
        assert_eq!(matches!(column.compression(), Compression::ZSTD(_)), is_text);
        assert_eq!(column.compression() == Compression::SNAPPY, !is_text);
    }
    let notes = metadata.file_metadata().key_value_metadata().unwrap();
    assert_eq!(notes.iter().filter(|pair| pair.value.as_deref() == Some("kept")).count(), 2);
    assert_eq!(notes.iter().filter(|pair| pair.key == ARROW_SCHEMA).count(), 1);
}

#[test]
fn annotated_rows_have_four_columns_more() {
    let bench = bench();
    let summary = bench.dedup(|params| params.copying = Copying::Annotate).unwrap();
    assert_eq!((summary.annotated, summary.removed_records), (4, 0));
    let (metadata, found) = read(&bench);
    assert_eq!(
        format!("{:?}", found.project(&[0, 1, 2, 3, 4]).unwrap().columns()),
        format!("{:?}", rows().columns())
    );
    let cluster = found.column_by_name("dup_cluster").unwrap().as_primitive::<Int64Type>();
    assert_eq!(cluster.iter().collect::<Vec<_>>(), [Some(0), Some(0), None, Some(0), None, Some(0)]);
    let size = found.column_by_name("dup_size").unwrap().as_primitive::<Int64Type>();
    assert_eq!((size.value(0), size.null_count()), (4, 2));
    let of = found.column_by_name("dup_of").unwrap().as_string::<i32>();
    assert_eq!(of.iter().collect::<Vec<_>>(), [Some("i1"), None, None, Some("i1"), None, Some("i1")]);
    let resemblance = found.column_by_name("dup_resemblance").unwrap().as_primitive::<Float64Type>();
    assert_eq!(
        resemblance.iter().collect::<Vec<_>>(),
        [Some(0.75), Some(1.0), None, Some(0.5), None, Some(0.25)]
    );
    let notes = metadata.file_metadata().key_value_metadata().unwrap();
    assert!(notes.iter().all(|pair| pair.key != HUGGING_FACE), "its list of columns is not true any more");

    // A second annotation replaces the first: the file is the one made from the original.
    let again = Bench::new();
    std::fs::create_dir_all(again.path("in")).unwrap();
    std::fs::copy(bench.path("out/shards/a.parquet"), again.path("in/a.parquet")).unwrap();
    for clusters in [near(1, &[(0, 0.75), (2, 0.5), (4, 0.25)]), near(3, &[(4, 0.625)])] {
        again.clear();
        again.atlas(std::slice::from_ref(&clusters));
        again.dedup(|params| params.copying = Copying::Annotate).unwrap();
        bench.clear();
        bench.atlas(&[clusters]);
        bench.dedup(|params| params.copying = Copying::Annotate).unwrap();
        assert!(again.out("shards/a.parquet") == bench.out("shards/a.parquet"));
    }
    let (_, found) = read(&again);
    assert_eq!(found.num_columns(), 9);
    assert_eq!(found.column_by_name("dup_cluster").unwrap().null_count(), 4);
}

/// The number for files without a plain size, against the sizes that the footers state.
#[test]
fn what_left_a_file_is_told_in_bytes_before_compression() {
    let bench = Bench::new();
    let texts: Vec<String> = (0..60_u32).map(|n| format!("{n} {}", "x".repeat(n as usize * 97))).collect();
    let text: ArrayRef = Arc::new(StringArray::from(texts.clone()));
    write(&bench, &RecordBatch::try_from_iter([("text", text)]).unwrap().slice(0, 6));
    let file = File::create(bench.path("in/b.parquet")).unwrap();
    let text: ArrayRef = Arc::new(StringArray::from(texts));
    let batch = RecordBatch::try_from_iter([("text", text)]).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    for from in [0, 20, 40] {
        writer.write(&batch.slice(from, 20)).unwrap();
        writer.flush().unwrap();
    }
    writer.close().unwrap();
    // Documents 6 to 65 are the second file; of its row groups the first stays and the last goes.
    let removed: Vec<(u32, f64)> = (30..66).map(|doc| (doc, 0.9)).collect();
    bench.atlas(&[near(0, &removed)]);
    let summary = bench.dedup(|_| {}).unwrap();
    let size = |path: std::path::PathBuf| {
        let file = File::open(path).unwrap();
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        uncompressed(reader.metadata().row_groups())
    };
    let naive = size(bench.path("in/b.parquet")) - size(bench.path("out/shards/b.parquet"));
    assert_eq!(summary.removed_record_bytes, naive);
    let values: u64 = (24..60).map(|n| n * 97).sum();
    assert!(naive > values && naive < values + values / 10, "{naive} of {values}");
}

#[test]
fn a_file_may_lose_all_its_rows() {
    let bench = Bench::new();
    write(&bench, &rows());
    bench.write("in/0.jsonl", "{\"text\":\"the centre\"}\n");
    bench.atlas(&[near(0, &[(1, 0.9), (2, 0.9), (3, 0.9), (4, 0.9), (5, 0.9)])]);
    bench.dedup(|_| {}).unwrap();
    let (_, found) = read(&bench);
    assert_eq!((found.num_rows(), found.num_columns()), (1, 5), "the row without a text stays");
}

#[test]
fn damage_in_a_column_that_the_scan_did_not_read_is_an_error() {
    let bench = bench();
    let path = bench.path("in/a.parquet");
    let mut bytes = std::fs::read(&path).unwrap();
    // The first column, which is not the text: its pages follow the magic.
    bytes[4..40].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let error = bench.dedup(|_| {}).unwrap_err().to_string();
    assert!(error.contains("a.parquet"), "{error}");
    assert!(!bench.path("out").exists());
}
