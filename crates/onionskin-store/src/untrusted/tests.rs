use super::*;
use crate::storage::Disk;
use crate::table::{
    ChunksWriter, DocumentRow, DocumentsWriter, FeaturesWriter, IdPairsWriter, PartParams, PartWriter,
    SiteRow, SitesWriter, SketchesWriter,
};
use onionskin_core::{DocId, SiteId};
use proptest::prelude::*;
use std::sync::LazyLock;

/// A small whole file of each table that a scan fills.
static FILES: LazyLock<Vec<(Table, Vec<u8>)>> = LazyLock::new(|| {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let part = |table: &Table| {
        let params = PartParams { table: table.clone(), recipe: "w4".to_owned() };
        PartWriter::create(&Disk, &path, &params).unwrap()
    };
    let tables = [
        Table::Documents,
        Table::Sites,
        Table::Links,
        Table::chunks("w4").unwrap(),
        Table::Sketches { len: 4 },
        Table::Features { len: 6 },
    ];
    let write = |table: &Table| match table {
        Table::Documents => {
            let mut writer = DocumentsWriter::new(part(table));
            for doc in 0..20 {
                let url = format!("http://example.org/{doc}");
                let row = DocumentRow {
                    doc: DocId(doc),
                    url: Some(&url),
                    source: "a",
                    media_type: "text/html",
                    title: (doc % 2 == 0).then_some("t"),
                    payload_sha1: Some([doc as u8; 20]),
                    fetched_at: Some(1_000_000 * i64::from(doc)),
                    ..DocumentRow::default()
                };
                writer.push(&row).unwrap();
            }
            writer.finish(false).unwrap()
        }
        Table::Sites => {
            let mut writer = SitesWriter::new(part(table));
            writer.push(&SiteRow { site: SiteId(1), host: "example.org", registered_domain: None }).unwrap();
            writer.finish(false).unwrap()
        }
        Table::Links => {
            let mut writer = IdPairsWriter::new(part(table));
            (0..100).for_each(|i| writer.push(DocId(i / 3), DocId(i)).unwrap());
            writer.finish(false).unwrap()
        }
        Table::Chunks(_) => {
            let mut writer = ChunksWriter::new(part(table));
            (0..20).for_each(|doc| writer.push(DocId(doc), &[u64::from(doc) << 33, 5, 6]).unwrap());
            writer.finish(false).unwrap()
        }
        Table::Sketches { .. } => {
            let mut writer = SketchesWriter::new(part(table));
            (0..20).for_each(|doc| writer.push(DocId(doc), &[doc, 2, 3, u32::MAX]).unwrap());
            writer.finish(false).unwrap()
        }
        _ => {
            let mut writer = FeaturesWriter::new(part(table));
            (0..20).for_each(|doc| writer.push(DocId(doc), &[u64::from(doc), 2, 3, 4, 5, u64::MAX]).unwrap());
            writer.finish(false).unwrap()
        }
    };
    let file = |table: Table| {
        write(&table);
        let bytes = std::fs::read(&path).unwrap();
        (table, bytes)
    };
    tables.map(file).into()
});

#[test]
fn whole_files_are_read() {
    let rows: Vec<u64> = FILES.iter().map(|(kind, bytes)| table(kind, bytes).unwrap()).collect();
    assert_eq!(rows, [20, 1, 100, 20, 20, 20]);
}

#[test]
fn a_file_of_one_table_is_not_another() {
    for (i, (_, bytes)) in FILES.iter().enumerate() {
        for (j, (kind, _)) in FILES.iter().enumerate() {
            assert_eq!(table(kind, bytes).is_ok(), i == j, "file {i} read as {kind}");
        }
    }
}

#[test]
fn every_cut_is_an_error() {
    std::panic::set_hook(Box::new(|_| {}));
    for (kind, bytes) in FILES.iter() {
        for cut in (0..bytes.len()).step_by(7) {
            assert!(table(kind, &bytes[..cut]).is_err(), "{kind} cut at {cut}");
        }
    }
    let _ = std::panic::take_hook();
}

/// Few cases in a usual run; many where long tests are asked for.
fn cases() -> u32 {
    if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 200_000 } else { 256 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// The decoder may panic inside; nothing may come out but an answer.
    #[test]
    fn changed_files_are_answered(which in 0usize..6, changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6), in_footer: bool) {
        let (kind, bytes) = &FILES[which];
        let mut bytes = bytes.clone();
        for (at, value) in changes {
            // The footer is where the claims are.
            let from = if in_footer { bytes.len() - bytes.len() / 3 } else { 0 };
            let at = from + at.index(bytes.len() - from);
            bytes[at] = value;
        }
        let _ = table(kind, &bytes);
    }

    #[test]
    fn any_bytes_are_answered(bytes: Vec<u8>) {
        for (kind, _) in FILES.iter() {
            prop_assert!(table(kind, &bytes).is_err());
        }
        let _ = manifest(&bytes);
        let _ = journal(&bytes);
        let _ = raw::<(u64, u32)>(&bytes);
    }
}

/// Found by fuzzing: a page header of a damaged file claimed thousands of millions of things to
/// skip, and a kilobyte took most of a minute.
#[test]
fn a_header_that_claims_too_much_is_read_in_no_time() {
    let bytes = include_bytes!("../../testdata/endless-header.parquet");
    let start = std::time::Instant::now();
    for (kind, _) in FILES.iter() {
        let _ = table(kind, bytes);
    }
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
}
