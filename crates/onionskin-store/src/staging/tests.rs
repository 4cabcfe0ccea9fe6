use super::*;
use crate::atlas::{Atlas, VerifyDepth};
use crate::manifest::Manifest;
use crate::table::{ClusterRow, CopyKind, DocumentRow, SiteRow};
use crate::testing::{Fault, Faulty};
use onionskin_core::{ClusterId, DocId, SiteId};
use proptest::prelude::*;
use serde_json::json;
use std::fs;

fn w4() -> ChunkingName {
    ChunkingName::new("w4").unwrap()
}

fn params(storage: Arc<dyn Storage>) -> StageParams {
    let tables =
        vec![Table::Documents, Table::Sites, Table::Links, Table::Chunks(w4()), Table::Features { len: 2 }];
    let job = json!({"inputs": ["a", "b"], "seed": 1});
    StageParams { storage, ..StageParams::new(StageName::Scan, job, "w4-test", tables) }
}

/// A folder in memory where there is one: these tests make thousands of files, and a busy disk
/// would take minutes.
fn fast_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

const SHARDS: u32 = 3;

/// A small scan: a few documents a shard, a commit after each, links resolved at the end, `sites`
/// left empty.
fn scan(dir: &Path, params: StageParams) -> Result<(Atlas, u64), StagingError> {
    let (mut staging, resumed) = Staging::open(dir, params)?;
    let resumed_commits = resumed.as_ref().map_or(0, |checkpoint| checkpoint.commits);
    let (mut shard, mut finished) = (0, false);
    if let Some(checkpoint) = resumed {
        shard = checkpoint.state["shard"].as_u64().unwrap() as u32;
        finished = checkpoint.state["finished"].as_bool().unwrap();
        assert_eq!(checkpoint.rows[&TableName::Documents], u64::from(shard) * 10);
    }
    while shard < SHARDS {
        for doc in shard * 10..(shard + 1) * 10 {
            let url = format!("http://example.org/{doc}");
            let row = DocumentRow {
                doc: DocId(doc),
                url: Some(&url),
                source: "a",
                media_type: "text/plain",
                text_fp: Some(u64::from(doc)),
                ..DocumentRow::default()
            };
            staging.documents()?.push(&row)?;
            staging.chunks(&w4())?.push(DocId(doc), &[u64::from(doc), u64::from(doc) << 40])?;
            staging.features()?.push(DocId(doc), &[1, u64::from(doc)])?;
            staging.raw::<(u32, u64)>("links")?.push(&(doc, u64::from(doc * 7 % 30)))?;
        }
        shard += 1;
        staging.commit(json!({"shard": shard, "finished": false}))?;
    }
    if !finished {
        let mut links = Vec::new();
        for record in staging.raw_records::<(u32, u64)>("links") {
            let (src, dest) = record?;
            links.push((src, dest as u32));
        }
        assert_eq!(links.len(), 30);
        for (src, dest) in links {
            staging.links()?.push(DocId(src), DocId(dest))?;
        }
        staging.commit(json!({"shard": shard, "finished": true}))?;
    }
    let atlas = staging.publish(|manifest| {
        manifest.seed = 1;
        manifest.counts.insert("documents".to_owned(), 30);
    })?;
    Ok((atlas, resumed_commits))
}

/// Every file below a folder with its bytes.
fn contents(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for (path, is_dir) in crate::storage::list(&folder).unwrap() {
            if is_dir {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_str().unwrap().to_owned();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

fn reference() -> BTreeMap<String, Vec<u8>> {
    let dir = fast_dir();
    let (atlas, _) = scan(&dir.path().join("atlas"), params(Faulty::never())).unwrap();
    contents(atlas.dir())
}

#[test]
fn a_stage_becomes_an_atlas() {
    let dir = fast_dir();
    let (atlas, resumed) = scan(&dir.path().join("atlas"), params(Disk::shared())).unwrap();
    assert_eq!(resumed, 0);
    let names: Vec<_> = contents(atlas.dir()).into_keys().collect();
    assert_eq!(
        names,
        [
            "chunks/w4/part-00000.parquet",
            "chunks/w4/part-00001.parquet",
            "chunks/w4/part-00002.parquet",
            "documents/part-00000.parquet",
            "documents/part-00001.parquet",
            "documents/part-00002.parquet",
            "features/part-00000.parquet",
            "features/part-00001.parquet",
            "features/part-00002.parquet",
            "links/part-00003.parquet",
            "manifest.json",
            "sites/part-00000.parquet",
        ]
    );
    assert!(atlas.verify(VerifyDepth::Rows).is_whole());
    assert_eq!(atlas.table(&TableName::Sites).unwrap().rows, 0);
    let docs: usize = atlas.documents().unwrap().map(|batch| batch.unwrap().len()).sum();
    assert_eq!(docs, 30);
    assert_eq!(atlas.links().unwrap().count(), 30);
    let mut chunks = atlas.chunks(&w4()).unwrap();
    assert_eq!(chunks.next_group().unwrap(), Some((DocId(0), &[0, 0][..])));
    assert_eq!(reference(), contents(atlas.dir()));
}

/// Fails one operation after the other, in every way, and runs again: the bytes are always those of
/// an undisturbed run, and what was committed is never done twice.
fn check_faults(fault: Fault) {
    let expected = reference();
    let mut operations = 0;
    for nth in 0.. {
        let dir = fast_dir();
        let atlas = dir.path().join("atlas");
        let storage = Faulty::new(nth, fault);
        let result = scan(&atlas, params(storage.clone()));
        storage.power_cut();
        let committed = storage.syncs_of("journal").saturating_sub(1);
        if storage.failures() == 0 {
            assert!(result.is_ok());
            assert!(contents(&atlas) == expected);
            break;
        }
        operations += 1;
        let error = result.map(|_| ()).unwrap_err();
        if fault == Fault::Full {
            assert!(error.to_string().contains("No space left"), "operation {nth}: {error}");
        }
        let again = scan(&atlas, params(Faulty::never()));
        match again {
            Ok((atlas, resumed)) => {
                assert!(resumed >= committed, "operation {nth}: resumed at {resumed}, {committed} were safe");
                assert!(atlas.verify(VerifyDepth::Checksums).is_whole());
            }
            // All that was left to do was to tidy up.
            Err(StagingError::AlreadyFinished { .. }) => {}
            Err(error) => panic!("operation {nth}: {error}"),
        }
        let found = contents(&atlas);
        assert!(found == expected, "operation {nth}: {:?}", found.keys());
    }
    assert!(operations > 50, "only {operations} operations were tried");
}

crate::fault_tests!(check_faults, tears: 4);

/// The same with an older atlas in the place: it is whole, or gone and replaced, never mixed.
#[test]
fn a_kill_while_replacing_an_atlas_never_mixes_two() {
    let expected = reference();
    for nth in 0.. {
        let dir = fast_dir();
        let atlas = dir.path().join("atlas");
        old_atlas(&atlas);
        let old = contents(&atlas);
        let storage = Faulty::new(nth, Fault::PowerCut);
        let overwriting = |storage| StageParams { overwrite: true, ..params(storage) };
        let result = scan(&atlas, overwriting(storage.clone()));
        storage.power_cut();
        if let Ok(opened) = Atlas::open(&atlas) {
            assert!(opened.verify(VerifyDepth::Checksums).is_whole(), "operation {nth}");
            let manifest = fs::read(atlas.join("manifest.json")).unwrap();
            assert!(manifest == old["manifest.json"] || manifest == expected["manifest.json"]);
        }
        if storage.failures() == 0 {
            result.unwrap();
            break;
        }
        scan(&atlas, overwriting(Faulty::never())).unwrap();
        assert!(contents(&atlas) == expected, "operation {nth}");
    }
}

/// An atlas of another shape: more parts, and tables that the new one does not have.
fn old_atlas(dir: &Path) {
    let tables = vec![Table::Documents, Table::chunks("lines2").unwrap()];
    let old = StageParams::new(StageName::Scan, json!("old"), "lines2-test", tables);
    let (mut staging, _) = Staging::open(dir, StageParams { storage: Faulty::never(), ..old }).unwrap();
    for doc in 0..5 {
        let row = DocumentRow {
            doc: DocId(doc),
            source: "old",
            media_type: "text/plain",
            ..DocumentRow::default()
        };
        staging.documents().unwrap().push(&row).unwrap();
        staging.chunks(&ChunkingName::new("lines2").unwrap()).unwrap().push(DocId(doc), &[1]).unwrap();
        staging.commit(json!(doc)).unwrap();
    }
    staging.publish(|_| ()).unwrap();
}

#[test]
fn a_finished_atlas_is_not_replaced_unasked() {
    let dir = fast_dir();
    let atlas = dir.path().join("atlas");
    old_atlas(&atlas);
    let before = contents(&atlas);
    let error = scan(&atlas, params(Disk::shared())).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("already has a finished scan\nhint: "), "{error}");
    assert!(before == contents(&atlas), "not even a lock is left");
    let overwriting = StageParams { overwrite: true, ..params(Disk::shared()) };
    scan(&atlas, overwriting).unwrap();
    assert!(contents(&atlas) == reference());

    fs::write(atlas.join("manifest.json"), "{").unwrap();
    let error = scan(&atlas, params(Disk::shared())).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("not a readable manifest"), "{error}");
    let overwriting = StageParams { overwrite: true, ..params(Disk::shared()) };
    scan(&atlas, overwriting).unwrap();
    assert!(contents(&atlas) == reference());
}

/// The manifest is lost while a killed stage has left its work: the next scan, of whatever inputs,
/// took the folder for one that an interrupted scan had begun, and removed all tables.
#[test]
fn tables_without_a_manifest_are_not_replaced_unasked() {
    let dir = fast_dir();
    let atlas = dir.path().join("atlas");
    old_atlas(&atlas);
    let similar = StageParams::new(StageName::Similar, json!({}), "", vec![Table::Pairs]);
    drop(Staging::open(&atlas, StageParams { kind: StageKind::Extend, ..similar }).unwrap());
    let manifest = fs::read(atlas.join("manifest.json")).unwrap();
    fs::remove_file(atlas.join("manifest.json")).unwrap();
    let before = contents(&atlas);

    let error = scan(&atlas, params(Disk::shared())).map(|_| ()).unwrap_err();
    assert!(matches!(error, StagingError::NoManifest { .. }), "{error}");
    let said = "has documents/part-00000.parquet, but neither a manifest.json nor an unfinished scan\nhint: ";
    assert!(error.to_string().contains(said), "{error}");
    assert!(before == contents(&atlas), "nothing is removed");
    fs::write(atlas.join("manifest.json"), manifest).unwrap();
    assert!(Atlas::open(&atlas).unwrap().verify(VerifyDepth::Checksums).is_whole());

    fs::remove_file(atlas.join("manifest.json")).unwrap();
    let overwriting = StageParams { overwrite: true, ..params(Disk::shared()) };
    scan(&atlas, overwriting).unwrap();
    assert!(contents(&atlas) == reference());
}

#[test]
fn an_unfinished_atlas_is_not_extended() {
    let dir = fast_dir();
    let atlas = dir.path().join("atlas");
    drop(Staging::open(&atlas, params(Disk::shared())).unwrap());
    for overwrite in [false, true] {
        let similar = StageParams::new(StageName::Similar, json!({}), "", vec![Table::Pairs]);
        let similar = StageParams { kind: StageKind::Extend, overwrite, ..similar };
        let error = Staging::open(&atlas, similar).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("hint: a scan into it was interrupted"), "{error}");
    }
    scan(&atlas, params(Disk::shared())).unwrap();
    assert!(contents(&atlas) == reference());
}

#[test]
fn the_work_of_another_job_is_not_taken_over() {
    let dir = fast_dir();
    let atlas = dir.path().join("atlas");
    let (mut staging, _) = Staging::open(&atlas, params(Disk::shared())).unwrap();
    staging.sites().unwrap().push(&SiteRow { site: SiteId(0), host: "h", registered_domain: None }).unwrap();
    staging.commit(json!({})).unwrap();
    drop(staging);
    let other = |job: Value| StageParams { job, ..params(Disk::shared()) };
    for (job, difference) in [
        (json!({"inputs": ["a", "b"], "seed": 2}), "seed was 1, is now 2"),
        (json!({"inputs": ["a", "c"], "seed": 1}), "inputs[1] was \"b\", is now \"c\""),
        (json!({"inputs": ["a", "b"]}), "seed was 1, is now absent"),
        (json!(null), "the job was {\"inputs\":[\"a\",\"b\"],\"seed\":1}, is now null"),
    ] {
        let error = Staging::open(&atlas, other(job)).map(|_| ()).unwrap_err().to_string();
        assert!(error.contains(&format!("another job: {difference}\nhint: ")), "{error}");
    }
    let recipe = StageParams { recipe: "w5".to_owned(), ..params(Disk::shared()) };
    let error = Staging::open(&atlas, recipe).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("recipe was \"w4-test\", is now \"w5\""), "{error}");
    let overwriting = StageParams { overwrite: true, ..other(json!(3)) };
    let (_, resumed) = Staging::open(&atlas, overwriting).unwrap();
    assert_eq!(resumed, None);
}

#[test]
fn two_at_once_are_refused() {
    let dir = fast_dir();
    let atlas = dir.path().join("atlas");
    let first = Staging::open(&atlas, params(Disk::shared())).unwrap();
    let error = Staging::open(&atlas, params(Disk::shared())).map(|_| ()).unwrap_err();
    assert!(error.to_string().starts_with("another process is working on /"), "{error}");
    drop(first);
    Staging::open(&atlas, params(Disk::shared())).unwrap();
}

#[test]
fn folders_that_will_not_do_are_refused() {
    let dir = fast_dir();
    let open = |path: &Path| Staging::open(path, params(Disk::shared())).map(|_| ()).unwrap_err().to_string();
    let error = open(&dir.path().join("no/such/atlas"));
    assert!(
        error.contains("no/such/atlas: the folder ") && error.ends_with("no/such does not exist"),
        "{error}"
    );
    fs::write(dir.path().join("letter.txt"), "dear").unwrap();
    let error = open(dir.path());
    assert!(error.contains("is not an atlas and not empty (it has \"letter.txt\")"), "{error}");
    let error = open(&dir.path().join("letter.txt"));
    assert!(error.contains("letter.txt"), "{error}");
    let extend = StageParams { kind: StageKind::Extend, ..params(Disk::shared()) };
    let error = Staging::open(dir.path(), extend).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("is not an atlas: it has no manifest.json"), "{error}");
}

#[test]
fn a_stage_extends_an_atlas_and_replaces_only_its_own_tables() {
    let dir = fast_dir();
    let atlas = dir.path().join("atlas");
    scan(&atlas, params(Disk::shared())).unwrap();
    let extend = |overwrite| StageParams {
        kind: StageKind::Extend,
        overwrite,
        ..StageParams::new(StageName::Similar, json!({}), "w4-test", vec![Table::Clusters, Table::Pairs])
    };
    let (mut staging, _) = Staging::open(&atlas, extend(false)).unwrap();
    let row = ClusterRow {
        cluster: ClusterId(0),
        doc: DocId(2),
        is_centre: true,
        resemblance_to_centre: 1.0,
        kind: CopyKind::Exact,
    };
    staging.clusters().unwrap().push(&row).unwrap();
    staging.commit(json!(null)).unwrap();
    let extended = staging.publish(|manifest| {
        manifest.stages.set_raw(StageName::Similar, json!({"threshold": 0.9}));
    });
    let extended = extended.unwrap();
    assert_eq!(extended.table(&TableName::Clusters).unwrap().rows, 1);
    assert_eq!(extended.table(&TableName::Documents).unwrap().rows, 30);
    assert!(extended.verify(VerifyDepth::Rows).is_whole());

    let error = Staging::open(&atlas, extend(false)).map(|_| ()).unwrap_err();
    assert!(matches!(error, StagingError::AlreadyFinished { .. }));
    let (staging, _) = Staging::open(&atlas, extend(true)).unwrap();
    let replaced = staging.publish(|_| ()).unwrap();
    assert_eq!(replaced.table(&TableName::Clusters).unwrap().rows, 0);
    assert_eq!(replaced.table(&TableName::Documents).unwrap().rows, 30);
    assert!(!atlas.join(STAGING_DIR).exists());
}

#[test]
fn rows_that_were_not_committed_are_not_published() {
    let dir = fast_dir();
    let (mut staging, _) = Staging::open(dir.path().join("atlas"), params(Disk::shared())).unwrap();
    staging.sites().unwrap().push(&SiteRow { site: SiteId(0), host: "h", registered_domain: None }).unwrap();
    assert!(
        matches!(staging.publish(|_: &mut Manifest| ()), Err(StagingError::Uncommitted { name, .. }) if name == "sites")
    );
}

#[test]
fn a_table_that_was_not_declared_is_refused() {
    let dir = fast_dir();
    let (mut staging, _) = Staging::open(dir.path().join("atlas"), params(Disk::shared())).unwrap();
    assert!(matches!(staging.sketches(), Err(StagingError::Undeclared { .. })));
    assert!(matches!(staging.pairs(), Err(StagingError::Undeclared { .. })));
    assert!(matches!(staging.raw::<u64>("../x"), Err(StagingError::Undeclared { .. })));
}

#[test]
fn a_committed_part_that_changed_is_found() {
    for damage in ["changed", "cut", "gone"] {
        let dir = fast_dir();
        let atlas = dir.path().join("atlas");
        let (mut staging, _) = Staging::open(&atlas, params(Disk::shared())).unwrap();
        staging.links().unwrap().push(DocId(1), DocId(2)).unwrap();
        staging.commit(json!({})).unwrap();
        let file = staging.files(&TableName::Links).pop().unwrap();
        drop(staging);
        let mut bytes = fs::read(&file).unwrap();
        match damage {
            "changed" => bytes[20] ^= 1,
            "cut" => bytes.truncate(20),
            _ => fs::remove_file(&file).unwrap(),
        }
        if damage != "gone" {
            fs::write(&file, bytes).unwrap();
        }
        let error = Staging::open(&atlas, params(Disk::shared())).map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("links.part-00000.parquet: "), "{error}");
        assert!(matches!(error, StagingError::Lost { .. }));
    }
}

fn journal_of_three() -> Vec<u8> {
    let header = journal::Header {
        journal: journal::JOURNAL_VERSION,
        stage: StageName::Scan,
        recipe: "r".to_owned(),
        tables: Vec::new(),
        job: json!({"a": "line\nfeed"}),
    };
    let mut bytes = journal::header_line(&header).unwrap();
    for commit in 0..2 {
        let raw = vec![RawEntry { name: "x".to_owned(), records: 1, bytes: 2, xxh3: 3 }];
        let commit = Commit { commit, state: json!(commit), parts: Vec::new(), raw };
        bytes.extend(journal::commit_line(&commit).unwrap());
    }
    bytes
}

#[test]
fn a_cut_off_line_is_dropped_and_a_damaged_one_is_not() {
    let whole = journal_of_three();
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(i, _)| i + 1).collect();
    assert_eq!(ends.len(), 3);
    for cut in 0..=whole.len() {
        let journal = journal::parse(&whole[..cut]).unwrap();
        let lines = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(journal.commits.len(), lines.saturating_sub(1), "cut at {cut}");
        assert_eq!(journal.valid_bytes as usize, if lines == 0 { 0 } else { ends[lines - 1] });
    }
    // The line feed before the last line is left out: without it, the last two lines are one, and
    // cut off.
    for at in 0..ends[1] - 1 {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        assert!(matches!(journal::parse(&bytes), Err(JournalError::Damaged { .. })), "byte {at}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_an_error_or_a_journal(bytes: Vec<u8>) {
        let _ = parse_journal_bytes(&bytes);
        let with_header = [&journal_of_three()[..], &bytes].concat();
        let _ = parse_journal_bytes(&with_header);
    }
}
