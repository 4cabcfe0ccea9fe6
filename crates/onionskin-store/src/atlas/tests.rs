use super::*;
use crate::stage::StageName;
use crate::staging::{StageParams, Staging};
use crate::table::{IdPairsWriter, Method, PairRow, PartParams, PartWriter};
use onionskin_core::DocId;
use serde_json::json;

fn small_atlas(dir: &Path) -> Atlas {
    let params =
        StageParams::new(StageName::Scan, json!({}), "w4", vec![Table::Links, Table::Features { len: 2 }]);
    let (mut staging, _) = Staging::open(dir, params).unwrap();
    for src in 0..1000 {
        staging.links().unwrap().push(DocId(src), DocId(src + 1)).unwrap();
        staging.features().unwrap().push(DocId(src), &[u64::from(src) << 50, 7]).unwrap();
    }
    staging.commit(json!(null)).unwrap();
    staging.publish(|_| ()).unwrap()
}

#[test]
fn a_whole_atlas_verifies() {
    let dir = tempfile::tempdir().unwrap();
    let atlas = small_atlas(&dir.path().join("a"));
    let report = Atlas::open(atlas.dir()).unwrap().verify(VerifyDepth::Rows);
    assert!(report.is_whole(), "{report:?}");
    assert_eq!((report.files, report.rows), (2, 2000));
}

#[test]
fn damage_is_listed_by_file() {
    let dir = tempfile::tempdir().unwrap();
    let atlas = small_atlas(&dir.path().join("a"));
    let links = atlas.files(&TableName::Links).unwrap().pop().unwrap();
    let features = atlas.files(&TableName::Features).unwrap().pop().unwrap();
    let mut bytes = fs::read(&links).unwrap();
    bytes[30] ^= 1;
    fs::write(&links, &bytes).unwrap();
    fs::remove_file(features).unwrap();
    let report = atlas.verify(VerifyDepth::Checksums);
    let found: Vec<_> = report.damage.iter().map(|damage| damage.file.as_str()).collect();
    assert_eq!(found, ["features/part-00000.parquet", "links/part-00000.parquet"]);
    assert!(report.damage[1].problem.starts_with("checksum "), "{report:?}");
    fs::write(&links, &bytes[..30]).unwrap();
    let report = atlas.verify(VerifyDepth::Sizes);
    assert_eq!(report.damage[1].problem, format!("30 bytes long, should be {}", bytes.len()));
}

#[test]
fn wrong_rows_are_found_by_reading_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut atlas = small_atlas(&dir.path().join("a"));
    let update = atlas.update(|manifest| {
        let table = manifest.tables.get_mut(&TableName::Links).unwrap();
        (table.rows, table.files[0].rows) = (5, 5);
    });
    update.unwrap();
    assert!(atlas.verify(VerifyDepth::Checksums).is_whole());
    assert_eq!(atlas.verify(VerifyDepth::Rows).damage[0].problem, "1000 rows, should be 5");
}

#[test]
fn folders_that_are_no_atlas_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let error = Atlas::open(dir.path()).unwrap_err().to_string();
    assert!(error.ends_with("is not an atlas: it has no manifest.json"), "{error}");
    let error = Atlas::open(dir.path().join("gone")).unwrap_err().to_string();
    assert!(error.starts_with("opening the atlas /") && error.contains("No such file"), "{error}");
    let (staging, _) =
        Staging::open(dir.path().join("half"), StageParams::new(StageName::Scan, json!(1), "", vec![]))
            .unwrap();
    drop(staging);
    let error = Atlas::open(dir.path().join("half")).unwrap_err().to_string();
    assert!(error.contains("hint: a scan into it was interrupted"), "{error}");
    fs::write(dir.path().join("manifest.json"), "{\"format_version\": 1, \"tool").unwrap();
    let error = Atlas::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("manifest.json: not a readable manifest: "), "{error}");
    fs::write(dir.path().join("manifest.json"), "{\"format_version\": 99}").unwrap();
    let error = Atlas::open(dir.path()).unwrap_err().to_string();
    assert!(error.contains("format version 99"), "{error}");
}

#[test]
fn a_table_that_is_not_there_is_named_with_those_that_are() {
    let dir = tempfile::tempdir().unwrap();
    let atlas = small_atlas(&dir.path().join("a"));
    let error = atlas.documents().unwrap_err().to_string();
    assert!(error.ends_with("has no table documents; it has features, links"), "{error}");
    assert!(atlas.has(&TableName::Links) && !atlas.has(&TableName::Sites));
}

#[test]
fn an_update_is_seen_by_the_next_to_open() {
    let dir = tempfile::tempdir().unwrap();
    let mut atlas = small_atlas(&dir.path().join("a"));
    let change = |manifest: &mut Manifest| {
        manifest.counts.insert("pairs".to_owned(), 9);
    };
    atlas.update(change).unwrap();
    assert_eq!(Atlas::open(atlas.dir()).unwrap().manifest().counts["pairs"], 9);
    let bad = atlas.update(|manifest| manifest.tables.get_mut(&TableName::Links).unwrap().rows = 1);
    assert!(matches!(bad, Err(AtlasError::Manifest { .. })));
    assert_eq!(atlas.table(&TableName::Links).unwrap().rows, 1000, "a refused update changes nothing");
}

#[test]
fn files_of_another_program_are_adopted() {
    let dir = tempfile::tempdir().unwrap();
    let mut atlas = small_atlas(&dir.path().join("a"));
    let folder = atlas.dir().join("links");
    let params = PartParams { table: Table::Links, recipe: String::new() };
    let mut writer =
        IdPairsWriter::new(PartWriter::create(&Disk, &folder.join("part-7-spark.parquet"), &params).unwrap());
    writer.push(DocId(1000), DocId(2)).unwrap();
    writer.finish(true).unwrap();
    fs::write(folder.join("_SUCCESS"), "").unwrap();
    atlas.adopt(&Table::Links).unwrap();
    assert_eq!(atlas.table(&TableName::Links).unwrap().rows, 1001);
    assert!(atlas.verify(VerifyDepth::Rows).is_whole());
    let mut writer =
        IdPairsWriter::new(PartWriter::create(&Disk, &folder.join("y.parquet"), &params).unwrap());
    writer.push(DocId(1), DocId(2)).unwrap();
    writer.finish(true).unwrap();
    let error = atlas.adopt(&Table::Links).unwrap_err().to_string();
    assert!(error.contains("y.parquet, row 0: column \"src\": out of order"), "{error}");
    fs::remove_file(folder.join("y.parquet")).unwrap();
    fs::write(folder.join("z.parquet"), "junk").unwrap();
    assert!(atlas.adopt(&Table::Links).unwrap_err().to_string().contains("z.parquet"));
}

/// Only `verify` looked at checksums: other commands read damaged tables and answered wrongly.
#[test]
fn a_damaged_file_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let atlas = small_atlas(&dir.path().join("a"));
    let links = atlas.files(&TableName::Links).unwrap().pop().unwrap();
    let sound = fs::read(&links).unwrap();
    for at in (0..sound.len()).step_by(97) {
        let mut bytes = sound.clone();
        bytes[at] ^= 4;
        fs::write(&links, &bytes).unwrap();
        let error = Atlas::open(atlas.dir()).unwrap().links().unwrap_err();
        assert!(matches!(error, AtlasError::Damaged { .. }), "byte {at}: {error}");
        assert!(error.to_string().contains("links/part-00000.parquet: damaged: checksum "), "{error}");
    }
    fs::write(&links, &sound[..sound.len() - 1]).unwrap();
    assert!(Atlas::open(atlas.dir()).unwrap().links().unwrap_err().to_string().contains("bytes long"));
    fs::write(&links, &sound).unwrap();
    assert!(Atlas::open(atlas.dir()).unwrap().links().is_ok());
}

/// Each file once, as long as it stays the same file.
#[test]
fn an_open_atlas_compares_a_file_once() {
    let dir = tempfile::tempdir().unwrap();
    let atlas = small_atlas(&dir.path().join("a"));
    let atlas = Atlas::open(atlas.dir()).unwrap();
    let links = atlas.paths(&TableName::Links).unwrap().pop().unwrap();
    let dated = |seconds: u64| {
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1000 * seconds + 7);
        File::options().append(true).open(&links).unwrap().set_modified(time).unwrap();
    };
    // Not as this process has written it.
    dated(1);
    atlas.links().unwrap();
    let sound = fs::read(&links).unwrap();
    assert_eq!(atlas.checked_bytes(), sound.len() as u64);
    atlas.clone().links().unwrap();
    assert!(atlas.newer().unwrap().is_none());
    assert_eq!(atlas.checked_bytes(), sound.len() as u64);

    // Another manifest: what was compared is known there too.
    Atlas::open(atlas.dir()).unwrap().update(|manifest| manifest.seed = 7).unwrap();
    let newer = atlas.newer().unwrap().unwrap();
    assert_eq!(newer.manifest().seed, 7);
    newer.links().unwrap();
    assert_eq!(atlas.checked_bytes(), sound.len() as u64);
    assert!(newer.newer().unwrap().is_none());

    // Damage that comes later is damage.
    let mut bytes = sound.clone();
    bytes[30] ^= 1;
    fs::write(&links, &bytes).unwrap();
    dated(2);
    assert!(matches!(atlas.links().unwrap_err(), AtlasError::Damaged { .. }));
}

/// What this process has written it need not read again, unless somebody has changed it.
#[test]
fn files_that_were_just_written_are_known() {
    let dir = tempfile::tempdir().unwrap();
    let atlas = small_atlas(&dir.path().join("a"));
    let entry = atlas.table(&TableName::Links).unwrap().files[0].clone();
    let links = atlas.paths(&TableName::Links).unwrap().pop().unwrap();
    // Whether a stage remembers a file that it has just written depends on the clock.
    std::thread::sleep(std::time::Duration::from_millis(40));
    written::remember(&links, entry.bytes, entry.xxh3);
    let checked = || {
        let atlas = Atlas::open(atlas.dir()).unwrap();
        atlas.links().map(|_| atlas.checked_bytes())
    };
    assert_eq!(checked().unwrap(), 0);
    let sound = fs::read(&links).unwrap();
    let mut bytes = sound.clone();
    bytes[30] ^= 1;
    fs::write(&links, &bytes).unwrap();
    assert!(matches!(checked().unwrap_err(), AtlasError::Damaged { .. }));
    fs::write(&links, &sound).unwrap();
    assert_eq!(checked().unwrap(), entry.bytes);
    // Another checksum is another file, and one that was written this very moment is not known.
    written::remember(&links, entry.bytes, entry.xxh3 ^ 1);
    assert_eq!(checked().unwrap(), entry.bytes);
    fs::write(&links, &sound).unwrap();
    written::remember(&links, entry.bytes, entry.xxh3);
    fs::write(&links, &bytes).unwrap();
    assert!(matches!(checked().unwrap_err(), AtlasError::Damaged { .. }));
}

/// A server gives up a question whose files are large.
#[test]
fn comparing_a_file_can_be_stopped() {
    use crate::cancel::{self, Cancel};
    let dir = tempfile::tempdir().unwrap();
    let atlas = small_atlas(&dir.path().join("a"));
    let links = atlas.paths(&TableName::Links).unwrap().pop().unwrap();
    let stop = Cancel::default();
    stop.cancel();
    let error = cancel::with(&stop, || checksum_file(&links)).unwrap_err();
    assert!(error.to_string().contains("stopped on request"), "{error}");
    assert!(checksum_file(&links).is_ok());
    // Not as this process has written it.
    fs::write(&links, fs::read(&links).unwrap()).unwrap();
    let error = cancel::with(&stop, || atlas.links()).unwrap_err();
    assert!(matches!(error, AtlasError::Cancelled(_)), "{error}");
}

/// A second error in another file is found as well, and one in a word as one in a number.
#[test]
fn every_file_is_looked_at() {
    let dir = tempfile::tempdir().unwrap();
    let params = StageParams::new(StageName::Similar, json!({}), "w4", vec![Table::Pairs]);
    let (mut staging, _) = Staging::open(dir.path().join("a"), params).unwrap();
    for a in 0..4 {
        let (a, b, method) = (DocId(a), DocId(9), Method::Exact);
        let (resemblance, containment_a, containment_b) = (1.0, 1.0, 1.0);
        let row = PairRow { a, b, shared: 1, resemblance, containment_a, containment_b, method };
        staging.pairs().unwrap().push(&row).unwrap();
        staging.commit(json!(null)).unwrap();
    }
    let mut atlas = staging.publish(|_| ()).unwrap();
    assert!(atlas.verify(VerifyDepth::Rows).is_whole());
    let part = |nth: u32| atlas.dir().join(format!("pairs/part-{nth:05}.parquet"));
    // The third is in the place of the first, too, and has another word in its own.
    let third = fs::read(part(2)).unwrap();
    let place = third.windows(5).position(|word| word == b"exact").unwrap();
    let mut other = third.clone();
    other[place..place + 5].copy_from_slice(b"exalt");
    fs::write(part(0), &third).unwrap();
    fs::write(part(2), &other).unwrap();
    let paths: Vec<PathBuf> = (0..4).map(part).collect();
    let update = atlas.update(|manifest| {
        let entry = manifest.tables.get_mut(&TableName::Pairs).unwrap();
        for (file, path) in entry.files.iter_mut().zip(&paths) {
            (file.xxh3, file.bytes) = checksum_file(path).unwrap();
        }
    });
    update.unwrap();
    assert!(atlas.verify(VerifyDepth::Checksums).is_whole());
    let report = atlas.verify(VerifyDepth::Rows);
    let found: Vec<_> =
        report.damage.iter().map(|damage| (damage.file.as_str(), damage.problem.as_str())).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0], ("pairs/part-00001.parquet", "row 0: column \"a\": out of order"));
    assert_eq!(found[1].0, "pairs/part-00002.parquet");
    assert_eq!(report.stage_to_repeat(), Some(StageName::Similar));
}
