use super::*;
use crate::schema::{ChunkingName, Table, TableName};
use crate::storage::Disk;
use arrow_array::builder::{Int32Builder, Int64Builder, ListBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Int32Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
};
use onionskin_core::{CollectionId, DocId, ReplicaId, SiteId, SlotId};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::reader::{FileReader, SerializedFileReader};
use proptest::prelude::*;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

fn part(dir: &Path, name: &str, table: Table) -> PartWriter {
    PartWriter::create(&Disk, &dir.join(name), &PartParams { table, recipe: "w4-test".to_owned() }).unwrap()
}

fn w4() -> ChunkingName {
    ChunkingName::new("w4").unwrap()
}

fn write_foreign(path: &Path, columns: Vec<(&str, ArrayRef)>) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

#[test]
fn documents_come_back_as_they_went() {
    let dir = tempfile::tempdir().unwrap();
    let full = DocumentRow {
        doc: DocId(7),
        id: Some("a-1"),
        url: Some("http://example.org/ä"),
        site: Some(SiteId::MAX),
        source: "crawl/one.warc.gz",
        offset: 1 << 40,
        media_type: "text/html",
        bytes: 1234,
        tokens: 99,
        title: Some(""),
        canonical_url: Some("http://example.org/"),
        fetched_at: Some(-1_000_000),
        payload_sha1: Some([9; 20]),
        text_fp: Some(u64::MAX),
    };
    let bare = DocumentRow { doc: DocId(8), source: "x", media_type: "text/plain", ..DocumentRow::default() };
    let mut first = DocumentsWriter::new(part(dir.path(), "a.parquet", Table::Documents));
    first.push(&full).unwrap();
    let meta = first.finish(true).unwrap();
    let mut second = DocumentsWriter::new(part(dir.path(), "b.parquet", Table::Documents));
    second.push(&bare).unwrap();
    let other = second.finish(false).unwrap();

    assert_eq!(meta.rows, 1);
    let bytes = std::fs::read(&meta.file).unwrap();
    assert_eq!((meta.bytes, meta.xxh3), (bytes.len() as u64, xxhash_rust::xxh3::xxh3_64(&bytes)));
    let mut rows = Vec::new();
    for batch in DocumentsReader::new([&*meta.file, &*other.file]) {
        let batch = batch.unwrap();
        assert_eq!(batch.record_batch().num_columns(), 14);
        rows.extend(batch.rows().map(|row| format!("{row:?}")));
    }
    assert_eq!(rows, [format!("{full:?}"), format!("{bare:?}")]);
    // Of some columns, a row has these and no others.
    let mut some =
        DocumentsReader::new([&*meta.file, &*other.file])
            .select::<(document::TextFp, document::Doc, document::Source)>();
    let first = some.next_batch().unwrap().unwrap();
    assert_eq!(first.record_batch().num_columns(), 3);
    assert_eq!(first.row(0), (full.text_fp, DocId(7), full.source));
    assert_eq!(some.next_batch().unwrap().unwrap().rows().next(), Some((None, DocId(8), bare.source)));
}

#[test]
fn sites_and_links_come_back_as_they_went() {
    let dir = tempfile::tempdir().unwrap();
    let sites = [
        SiteRow { site: SiteId(0), host: "www.example.org", registered_domain: Some("example.org") },
        SiteRow { site: SiteId(3), host: "192.0.2.1", registered_domain: None },
    ];
    let mut writer = SitesWriter::new(part(dir.path(), "s.parquet", Table::Sites));
    for site in &sites {
        writer.push(site).unwrap();
    }
    let meta = writer.finish(true).unwrap();
    let batch = SitesReader::new([meta.file]).next().unwrap().unwrap();
    assert_eq!(batch.rows().collect::<Vec<_>>(), sites);

    let links: Vec<(DocId, DocId)> = (0..200_000).map(|i| (DocId(i / 3), DocId(i % 3 + i / 7))).collect();
    let mut writer = IdPairsWriter::new(part(dir.path(), "l.parquet", Table::Links));
    for (src, dest) in &links {
        writer.push(*src, *dest).unwrap();
    }
    assert_eq!(writer.rows(), 200_000);
    let meta = writer.finish(true).unwrap();
    assert_eq!(IdPairsReader::new(Table::Links, [meta.file]).map(Result::unwrap).collect::<Vec<_>>(), links);
}

#[test]
fn lists_come_back_as_they_went() {
    let dir = tempfile::tempdir().unwrap();
    let mut sketches = SketchesWriter::new(part(dir.path(), "s.parquet", Table::Sketches { len: 3 }));
    let mut features = FeaturesWriter::new(part(dir.path(), "f.parquet", Table::Features { len: 2 }));
    for doc in 0..5000u32 {
        sketches.push(DocId(doc), &[doc, u32::MAX, u32::MAX - doc]).unwrap();
        features.push(DocId(doc * 2), &[u64::MAX - u64::from(doc), 1 << 63]).unwrap();
    }
    assert!(matches!(
        sketches.push(DocId(9999), &[1]),
        Err(TableError::ListLength { found: 1, wanted: 3, .. })
    ));
    let (sketches, features) = (sketches.finish(true).unwrap(), features.finish(true).unwrap());
    let mut reader = SketchesReader::new([sketches.file]);
    for doc in 0..5000u32 {
        assert_eq!(reader.next_row().unwrap(), Some((DocId(doc), &[doc, u32::MAX, u32::MAX - doc][..])));
    }
    assert_eq!(reader.next_row().unwrap(), None);
    assert_eq!(reader.list_len(), Some(3));
    let mut reader = FeaturesReader::new([features.file]);
    for doc in 0..5000u32 {
        assert_eq!(
            reader.next_row().unwrap(),
            Some((DocId(doc * 2), &[u64::MAX - u64::from(doc), 1 << 63][..]))
        );
    }
    assert_eq!(reader.next_row().unwrap(), None);
}

#[test]
fn rows_out_of_order_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = ChunksWriter::new(part(dir.path(), "c.parquet", Table::Chunks(w4())));
    writer.push(DocId(5), &[1, 2]).unwrap();
    writer.push(DocId(5), &[3]).unwrap();
    assert_eq!(
        writer.push(DocId(4), &[4]).unwrap_err().to_string(),
        "table chunks.w4: row 3 is out of order"
    );
    let mut writer = IdPairsWriter::new(part(dir.path(), "l.parquet", Table::Links));
    writer.push(DocId(1), DocId(5)).unwrap();
    assert!(matches!(writer.push(DocId(1), DocId(4)), Err(TableError::OutOfOrder { .. })));
    let mut writer = FeaturesWriter::new(part(dir.path(), "f.parquet", Table::Features { len: 1 }));
    writer.push(DocId(1), &[5]).unwrap();
    assert!(matches!(writer.push(DocId(1), &[5]), Err(TableError::OutOfOrder { .. })));
}

#[test]
fn the_layout_of_a_chunks_file_is_the_documented_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = ChunksWriter::new(part(dir.path(), "c.parquet", Table::Chunks(w4())));
    for doc in 0..300u32 {
        let fps: Vec<u64> =
            (0..5000).map(|i| (u64::from(doc) << 32 | i).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        writer.push(DocId(doc), &fps).unwrap();
    }
    let meta = writer.finish(true).unwrap();
    let reader = SerializedFileReader::new(File::open(&meta.file).unwrap()).unwrap();
    let metadata = reader.metadata();
    assert_eq!(metadata.file_metadata().created_by(), Some("onionskin version 1.0.0 (build 1)"));
    let pairs = metadata.file_metadata().key_value_metadata().unwrap();
    let value = |key: &str| pairs.iter().find(|pair| pair.key == key).and_then(|pair| pair.value.as_deref());
    assert_eq!(value(TABLE_KEY), Some("chunks.w4"));
    assert_eq!(value(RECIPE_KEY), Some("w4-test"));
    assert_eq!(value(FORMAT_VERSION_KEY), Some("1"));
    let rows: Vec<i64> = metadata.row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(rows, [1 << 20, 1_500_000 - (1 << 20)]);
    for group in metadata.row_groups() {
        let (fp, doc) = (group.column(0), group.column(1));
        assert_eq!(fp.compression(), Compression::UNCOMPRESSED);
        assert!(matches!(doc.compression(), Compression::ZSTD(_)));
        assert!(fp.encodings().any(|e| e == Encoding::PLAIN));
        assert!(doc.encodings().any(|e| e == Encoding::DELTA_BINARY_PACKED));
        assert!(fp.dictionary_page_offset().is_none() && doc.dictionary_page_offset().is_none());
        assert!(fp.statistics().is_none() && doc.statistics().is_some());
        assert!(fp.offset_index_offset().is_some() && doc.column_index_offset().is_some());
        assert_eq!(group.sorting_columns().unwrap()[0].column_idx, 1);
    }
    assert!(meta.bytes < 1_500_000 * 8 + 40_000, "{} bytes", meta.bytes);
}

#[test]
fn addresses_are_written_as_what_differs_from_the_one_before() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = DocumentsWriter::new(part(dir.path(), "d.parquet", Table::Documents));
    let addresses: Vec<String> = (0..5000).map(|i| format!("http://www.example.org/deep/in/{i}")).collect();
    for (doc, address) in (0..).zip(&addresses) {
        let url = (doc % 7 > 0).then_some(address.as_str());
        writer.push(&DocumentRow { doc: DocId(doc), url, ..DocumentRow::default() }).unwrap();
    }
    let meta = writer.finish(true).unwrap();
    let reader = SerializedFileReader::new(File::open(&meta.file).unwrap()).unwrap();
    let group = reader.metadata().row_group(0);
    let url = group.columns().iter().find(|column| column.column_path().string() == "url").unwrap();
    assert!(url.encodings().any(|e| e == Encoding::DELTA_BYTE_ARRAY));
    assert!(url.uncompressed_size() < 5000 * 8, "{} bytes", url.uncompressed_size());
}

#[test]
fn the_same_rows_give_the_same_bytes_however_they_are_pushed() {
    let dir = tempfile::tempdir().unwrap();
    let fps: Vec<u64> = (0..200_000u64).map(|i| i * i).collect();
    let mut at_once = ChunksWriter::new(part(dir.path(), "a.parquet", Table::Chunks(w4())));
    at_once.push(DocId(3), &fps).unwrap();
    let mut in_pieces = ChunksWriter::new(part(dir.path(), "b.parquet", Table::Chunks(w4())));
    for piece in fps.chunks(777) {
        in_pieces.push(DocId(3), piece).unwrap();
    }
    let (a, b) = (at_once.finish(true).unwrap(), in_pieces.finish(false).unwrap());
    assert_eq!((a.rows, a.bytes, a.xxh3), (b.rows, b.bytes, b.xxh3));
}

#[test]
fn tables_of_other_programs_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("spark.parquet");
    let mut lists = ListBuilder::new(Int64Builder::new());
    for row in [[1, 2], [3, -1]] {
        lists.append_value(row.map(Some));
    }
    let docs: ArrayRef = Arc::new(Int32Array::from(vec![4, 5]));
    let extra: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
    write_foreign(&path, vec![("features", Arc::new(lists.finish())), ("note", extra), ("doc", docs)]);
    let mut reader = FeaturesReader::new([path.as_path()]);
    assert_eq!(reader.next_row().unwrap(), Some((DocId(4), &[1, 2][..])));
    assert_eq!(reader.next_row().unwrap(), Some((DocId(5), &[3, u64::MAX][..])));
    assert_eq!(reader.next_row().unwrap(), None);

    let mut lists = ListBuilder::new(Int32Builder::new());
    lists.append_value([Some(1)]);
    lists.append_value([Some(1), Some(2)]);
    let docs: ArrayRef = Arc::new(Int64Array::from(vec![4, 5]));
    write_foreign(&path, vec![("doc", docs), ("sketch", Arc::new(lists.finish()))]);
    let error = SketchesReader::new([path.as_path()]).next_row().unwrap_err().to_string();
    assert!(error.contains("column \"sketch\": a list of 2 among lists of 1\nhint: "), "{error}");

    let site: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let host: ArrayRef = Arc::new(LargeStringArray::from(vec!["h"]));
    let none: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
    write_foreign(&path, vec![("site", site), ("host", host), ("registered_domain", none)]);
    let batch = SitesReader::new([path.as_path()]).next_batch().unwrap().unwrap();
    assert_eq!(batch.rows().next(), Some(SiteRow { site: SiteId(1), host: "h", registered_domain: None }));
}

#[test]
fn wrong_values_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("links.parquet");
    let column = |values: Vec<Option<i64>>| Arc::new(Int64Array::from(values)) as ArrayRef;
    for (dest, problem) in [
        (Some(1 << 32), "4294967296 is not in 0..2^32"),
        (Some(-1), "-1 is not in 0..2^32"),
        (None, "a null where none may be"),
    ] {
        write_foreign(&path, vec![("src", column(vec![Some(1)])), ("dest", column(vec![dest]))]);
        let error =
            IdPairsReader::new(Table::Links, [path.as_path()]).next().unwrap().unwrap_err().to_string();
        let wanted = format!("links.parquet, row 0: column \"dest\": {problem}\nhint: ");
        assert!(error.contains(&wanted), "{error}");
    }
}

#[test]
fn a_word_that_is_none_of_the_known_ones_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pages.parquet");
    let number = || Arc::new(Int64Array::from(vec![0])) as ArrayRef;
    let flag: ArrayRef = Arc::new(BooleanArray::from(vec![false]));
    for (role, problem) in [("alias", None), ("twin", Some("copy, virtual, changed, added, alias"))] {
        let role: ArrayRef = Arc::new(StringArray::from(vec![role]));
        let ids = ["group", "replica", "slot", "doc"].map(|name| (name, number()));
        let others = [("is_virtual", Arc::clone(&flag)), ("role", role)];
        write_foreign(&path, ids.into_iter().chain(others).collect());
        let row = CollectionPagesReader::new([path.as_path()]).next().unwrap();
        match (row, problem) {
            (Ok(row), None) => assert_eq!((row.role, row.slot), (Role::Alias, SlotId(0))),
            (Err(error), Some(known)) => assert!(error.to_string().contains(known), "{error}"),
            (row, _) => panic!("{row:?}"),
        }
    }
    for kind in CollectionKind::ALL {
        assert_eq!(kind.to_string().parse(), Ok(kind));
    }
    let error = "newest".parse::<Newer>().unwrap_err().to_string();
    assert!(error.contains("\"newest\"; known are same, principal, replica, unknown"), "{error}");
}

#[test]
fn a_replica_without_a_site_comes_back_as_it_went() {
    let dir = tempfile::tempdir().unwrap();
    let row = |replica, site| CollectionRow {
        group: CollectionId(0),
        replica: ReplicaId(replica),
        site,
        root_doc: DocId(5),
        root_url: None,
        pages: 3,
        is_principal: replica == 0,
        folder: "/".to_owned(),
        kind: CollectionKind::Mirror,
        coverage: 0.5,
        copies: 1,
        changed: 0,
        added: 0,
        missing: 2,
        virtual_pages: 0,
        bytes: 7,
        newer: Newer::Unknown,
    };
    let rows = [row(0, Some(SiteId(4))), row(1, None)];
    let mut writer = CollectionsWriter::new(part(dir.path(), "c.parquet", Table::Collections));
    rows.iter().for_each(|row| writer.push(row).unwrap());
    let meta = writer.finish(false).unwrap();
    let back: Vec<CollectionRow> = CollectionsReader::new([&*meta.file]).map(Result::unwrap).collect();
    assert_eq!(back, rows);
}

#[test]
fn files_from_before_a_column_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("old.parquet");
    let number = |name| (name, Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef);
    let text = |name, word| (name, Arc::new(StringArray::from(vec![word, word])) as ArrayRef);
    let numbers = ["replicas", "slots", "sites", "pages", "bytes", "duplicate_pages", "duplicate_bytes"];
    let mut columns: Vec<(&str, ArrayRef)> = numbers.map(number).into_iter().collect();
    columns.extend([number("group"), text("kind", "mirror"), text("name", "n"), text("evidence", "e")]);
    columns.push(("is_noise", Arc::new(BooleanArray::from(vec![false, true]))));
    write_foreign(&path, columns.clone());
    let rows: Vec<CollectionGroupRow> =
        CollectionGroupsReader::new([path.as_path()]).map(Result::unwrap).collect();
    assert_eq!((rows.len(), rows[1].group), (2, CollectionId(2)));
    assert!(rows.iter().all(|row| row.principal_reason.is_none() && row.principal_evidence.is_none()));
    // With one of them, and a word that nobody knows.
    for (word, fits) in [("links", true), ("bribery", false)] {
        let later = [text("principal_reason", word)];
        write_foreign(&path, columns.iter().cloned().chain(later).collect());
        let row = CollectionGroupsReader::new([path.as_path()]).next().unwrap();
        match row {
            Ok(row) => assert!(fits && row.principal_reason == Some(PrincipalReason::Links)),
            Err(error) => assert!(!fits && error.to_string().contains("fetched first"), "{error}"),
        }
    }
    // Columns that were always there are still asked for.
    columns.retain(|(name, _)| *name != "evidence");
    write_foreign(&path, columns);
    let error = CollectionGroupsReader::new([path.as_path()]).next().unwrap().unwrap_err();
    assert!(error.to_string().contains("evidence"), "{error}");
}

#[test]
fn columns_can_be_chosen() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = DocumentsWriter::new(part(dir.path(), "d.parquet", Table::Documents));
    writer
        .push(&DocumentRow {
            doc: DocId(1),
            url: Some("u"),
            source: "s",
            media_type: "m",
            ..Default::default()
        })
        .unwrap();
    let meta = writer.finish(true).unwrap();
    let mut reader = TableReader::new(Table::Documents, [meta.file]).columns(&["url", "doc"]);
    let (batch, file) = reader.next_batch().unwrap().unwrap();
    assert!(file.ends_with("d.parquet"));
    let names: Vec<_> = batch.schema().fields().iter().map(|f| f.name().clone()).collect();
    assert_eq!(names, ["doc", "url"]);
}

#[test]
fn looking_up_a_row_leaves_out_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let rows = 3 * Table::Documents.row_group_rows() as u32;
    let mut writer = DocumentsWriter::new(part(dir.path(), "d.parquet", Table::Documents));
    for doc in 0..rows {
        writer
            .push(&DocumentRow { doc: DocId(doc), source: "x", media_type: "y", ..DocumentRow::default() })
            .unwrap();
    }
    let file = writer.finish(false).unwrap().file;
    let docs = |range: std::ops::RangeInclusive<u32>| {
        let mut docs = Vec::new();
        for batch in DocumentsReader::new([file.clone()]).within(DocId(*range.start())..=DocId(*range.end()))
        {
            docs.extend(batch.unwrap().rows().map(|row| row.doc.get()));
        }
        docs
    };
    let group = rows / 3;
    assert!(docs(group + 5..=group + 5).into_iter().eq(group..2 * group));
    assert!(docs(group - 1..=group).into_iter().eq(0..2 * group));
    assert!(docs(0..=u32::MAX).into_iter().eq(0..rows));
    assert!(docs(rows..=u32::MAX).is_empty());
}

#[test]
fn a_missing_or_foreign_file_is_named() {
    let error =
        IdPairsReader::new(Table::Links, [Path::new("/nowhere/l.parquet")]).next().unwrap().unwrap_err();
    assert!(error.to_string().starts_with("opening /nowhere/l.parquet: "), "{error}");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), b"PAR1 not at all PAR1").unwrap();
    let mut reader = IdPairsReader::new(Table::Links, [file.path()]);
    let error = reader.next().unwrap().unwrap_err();
    assert!(error.to_string().contains("damaged or not Parquet"), "{error}");
    assert!(reader.next().is_none(), "an error ends the reading");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Groups may lie across batches and files; the naive twin puts all rows in one vector.
    #[test]
    fn chunks_come_back_by_document(sizes in prop::collection::vec(prop_oneof![0usize..20, Just(70_000)], 0..6), cut in 0usize..6) {
        let dir = tempfile::tempdir().unwrap();
        let mut next = 0u64;
        let mut expected: Vec<(DocId, Vec<u64>)> = Vec::new();
        let mut files = Vec::new();
        let (before, after) = sizes.split_at(cut.min(sizes.len()));
        let mut doc = DocId(0);
        for (name, sizes) in [("a", before), ("b", after)] {
            let mut writer = ChunksWriter::new(part(dir.path(), name, Table::Chunks(w4())));
            for size in sizes {
                let fps: Vec<u64> = (0..*size).map(|_| { next += 1; next.wrapping_mul(0x9E37_79B9_7F4A_7C15) }).collect();
                writer.push(doc, &fps).unwrap();
                match expected.last_mut() {
                    Some((last, all)) if *last == doc => all.extend(fps),
                    _ if fps.is_empty() => {}
                    _ => expected.push((doc, fps)),
                }
                doc.0 += (size % 2) as u32;
            }
            files.push(writer.finish(false).unwrap().file);
        }
        let mut reader = ChunksReader::new(w4(), files.clone());
        let mut found = Vec::new();
        while let Some((doc, fps)) = reader.next_group().unwrap() {
            found.push((doc, fps.to_vec()));
        }
        prop_assert_eq!(&found, &expected);
        let mut reader = ChunksReader::new(w4(), files);
        let mut rows = Vec::new();
        while let Some(batch) = reader.next_batch().unwrap() {
            rows.extend(batch.docs.iter().map(|doc| DocId(*doc as u32)).zip(batch.fps.iter().copied()));
        }
        let naive: Vec<_> = expected.iter().flat_map(|(doc, fps)| fps.iter().map(|fp| (*doc, *fp))).collect();
        prop_assert_eq!(rows, naive);
    }
}

#[test]
fn rows_are_counted_over_row_groups_that_are_left_out() {
    use super::checks::RowNumbers;
    let mut rows = RowNumbers::new([(3, true), (4, false), (2, true), (1, false), (5, true)]);
    assert_eq!([0, 2, 3, 4, 5, 9].map(|row| rows.in_file(row)), [0, 2, 7, 8, 10, 14]);
    assert!(rows.are_one(3) && !rows.are_one(4));
    rows.advance(3);
    assert_eq!((rows.in_file(0), rows.in_file(2)), (7, 10));
    assert!(rows.are_one(0) && rows.are_one(2) && !rows.are_one(3));
}

/// A small table of an atlas in some files, and whether readers take it.
fn is_taken(
    name: &str,
    columns: &[&str],
    files: &[Vec<Vec<i64>>],
    batch: usize,
    limits: &[(&str, u64)],
) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let mut manifest = crate::Manifest::default();
    for (table, rows) in limits {
        manifest.tables.entry(TableName::from(*table)).or_default().rows = *rows;
    }
    let limits = crate::schema::Limits::of(&manifest);
    let (mut before, mut inputs) = (0, Vec::new());
    for (nth, rows) in files.iter().enumerate() {
        let path = dir.path().join(format!("{nth}.parquet"));
        let number =
            |at: usize| Arc::new(rows.iter().map(|row| Some(row[at])).collect::<Int64Array>()) as ArrayRef;
        let mut of: Vec<(&str, ArrayRef)> =
            columns.iter().enumerate().map(|(at, name)| (*name, number(at))).collect();
        if name == "clusters" {
            of.push(("is_centre", Arc::new(BooleanArray::from(vec![true; rows.len()]))));
            of.push((
                "resemblance_to_centre",
                Arc::new(arrow_array::Float64Array::from(vec![1.0; rows.len()])),
            ));
            of.push(("kind", Arc::new(StringArray::from(vec!["exact"; rows.len()]))));
        }
        write_foreign(&path, of);
        let known = Known { rows: rows.len() as u64, before, limits };
        before += known.rows;
        inputs.push(Input::Stored(Stored { path, known }));
    }
    let mut reader = TableReader::new(TableName::from(name).table().unwrap(), inputs).batch_rows(batch);
    loop {
        match reader.next_batch() {
            Ok(Some(_)) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The checks look at whole columns, over batches and files; the naive ones at all rows at
    /// once.
    #[test]
    fn checks_are_those_of_a_list(
        mut rows in prop::collection::vec((0i64..5, 0i64..7), 1..12),
        is_sorted: bool,
        is_dense: bool,
        cut: prop::sample::Index,
        batch in 1usize..5,
    ) {
        if is_sorted {
            rows.sort_unstable();
        }
        if is_dense {
            let mut next = -1;
            let mut last = None;
            for row in &mut rows {
                next += i64::from(last.replace(row.0) != Some(row.0));
                row.0 = next;
            }
        }
        let table: Vec<Vec<i64>> = rows.iter().map(|(a, b)| vec![*a, *b]).collect();
        let (first, second) = table.split_at(cut.index(table.len() + 1));
        let files = [first.to_vec(), second.to_vec()];
        let fits = rows.iter().all(|(a, b)| *a < 6 && *b < 6);
        let taken = is_taken("links", &["src", "dest"], &files, batch, &[("documents", 6)]);
        prop_assert_eq!(taken, fits && rows.is_sorted());
        let clusters = rows.last().map_or(0, |row| row.0 + 1);
        let steps = rows[0].0 == 0 && rows.windows(2).all(|pair| pair[1].0 - pair[0].0 <= 1);
        let limits = [("documents", 6), ("cluster_stats", clusters.cast_unsigned())];
        let taken = is_taken("clusters", &["cluster", "doc"], &files, batch, &limits);
        let is_strict = rows.windows(2).all(|pair| pair[0] < pair[1]);
        prop_assert_eq!(taken, steps && is_strict && rows.iter().all(|row| row.1 < 6));
        let too_many = [("documents", 6), ("cluster_stats", clusters.cast_unsigned() + 1)];
        prop_assert!(!is_taken("clusters", &["cluster", "doc"], &files, batch, &too_many));
    }
}
