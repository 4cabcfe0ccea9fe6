//! A whole atlas that was sound, with one file damaged or one value changed, and a manifest that is
//! right: everything that reads tables, behind the checksums.
//!
//! The atlas is made by code, so that seeds are a few bytes: what to change, and how.
#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use onionskin_core::{ClusterId, CollectionId, DocId, ReplicaId, RuleId, SiteId, SlotId};
use onionskin_store::atlas::VerifyDepth;
use onionskin_store::schema::{ChunkingName, LevelName};
use onionskin_store::stage::StageName;
use onionskin_store::table::{
    ClusterRow, ClusterStatsRow, CollectionGroupRow, CollectionKind, CollectionPageRow, CollectionRow,
    CopyKind, DocumentRow, Method, Newer, PairRow, Role, SiteRow, UrlRuleRow,
};
use onionskin_store::testing::{Rewrite, copy_folder, numbers_of, rewrite};
use onionskin_store::{Atlas, MemoryBudget, StageParams, Staging, Table, TableName, untrusted};

const DOCUMENTS: u32 = 40;

/// The sound atlas, and where it is changed: in memory where there is such a folder.
struct Place {
    sound: PathBuf,
    changed: PathBuf,
    _dir: tempfile::TempDir,
}

static PLACE: LazyLock<Place> = LazyLock::new(|| {
    std::panic::set_hook(Box::new(|_| {}));
    let dir =
        tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder can be made");
    let (sound, changed) = (dir.path().join("sound"), dir.path().join("changed"));
    make(&sound).expect("an atlas can be made");
    let report = Atlas::open(&sound).expect("it is sound").verify(VerifyDepth::Rows);
    assert!(report.is_whole(), "{report:?}");
    Place { sound, changed, _dir: dir }
});

/// An atlas with some rows in every table.
fn make(dir: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let w4 = ChunkingName::new("w4").ok_or("a name")?;
    let exact = LevelName::new("exact").ok_or("a name")?;
    let tables = vec![
        Table::Documents,
        Table::Sites,
        Table::Links,
        Table::Chunks(w4.clone()),
        Table::Sketches { len: 4 },
        Table::Features { len: 2 },
        Table::Copies(exact.clone()),
        Table::Pairs,
        Table::Clusters,
        Table::ClusterStats,
        Table::Collections,
        Table::CollectionPages,
        Table::CollectionGroups,
        Table::UrlRules,
    ];
    let params =
        StageParams::new(StageName::Scan, serde_json::json!({}), "w4-rabin64-2x2r1+w4+sketch", tables);
    let (mut staging, _) = Staging::open(dir, params)?;
    for doc in DocId::range(0..DOCUMENTS) {
        let (number, url) = (u64::from(doc), format!("http://{}.example/{doc}", doc.get() % 4));
        staging.documents()?.push(&DocumentRow {
            doc,
            url: Some(&url),
            site: Some(SiteId(doc.get() % 4)),
            source: "pages.jsonl",
            media_type: "text/plain",
            bytes: 100,
            tokens: 9,
            text_fp: Some(number / 2),
            ..DocumentRow::default()
        })?;
        staging.links()?.push(doc, DocId((doc.get() + 4) % DOCUMENTS))?;
        staging.chunks(&w4)?.push(doc, &[number, number << 40])?;
        staging.sketches()?.push(doc, &[1, 2, doc.get(), 4])?;
        staging.features()?.push(doc, &[number, number << 33])?;
        let (cluster, centre) = (ClusterId(doc.get() / 2), DocId(doc.get() / 2 * 2));
        staging.copies(&exact)?.push(doc, centre)?;
        let (is_centre, kind) = (doc == centre, CopyKind::Exact);
        staging.clusters()?.push(&ClusterRow {
            cluster,
            doc,
            is_centre,
            resemblance_to_centre: 1.0,
            kind,
        })?;
        if doc == centre {
            let b = DocId(doc.get() + 1);
            let (shared, resemblance, method) = (1, 1.0, Method::Exact);
            let (containment_a, containment_b) = (1.0, 1.0);
            staging.pairs()?.push(&PairRow {
                a: doc,
                b,
                shared,
                resemblance,
                containment_a,
                containment_b,
                method,
            })?;
            let (documents, exact_copies, sites, same_site, cross_site) = (2, 1, 2, 0, 1);
            let lowest_resemblance = 1.0;
            staging.cluster_stats()?.push(&ClusterStatsRow {
                cluster,
                centre,
                documents,
                exact_copies,
                sites,
                same_site,
                cross_site,
                lowest_resemblance,
            })?;
        }
    }
    for site in 0..4 {
        let host = format!("{site}.example");
        staging.sites()?.push(&SiteRow {
            site: SiteId(site),
            host: &host,
            registered_domain: Some("example"),
        })?;
    }
    collection(&mut staging)?;
    staging.commit(serde_json::json!(null))?;
    staging.publish(|manifest| {
        manifest.counts.insert("documents".to_owned(), DOCUMENTS.into());
    })?;
    Ok(())
}

/// One collection with two replicas, and a rule.
fn collection(staging: &mut Staging) -> Result<(), Box<dyn std::error::Error>> {
    let group = CollectionId(0);
    let kind = CollectionKind::Mirror;
    for replica in 0..2 {
        let pages = (replica..DOCUMENTS).step_by(2).collect::<Vec<_>>();
        staging.collections()?.push(&CollectionRow {
            group,
            replica: ReplicaId(replica),
            site: Some(SiteId(replica)),
            root_doc: DocId(replica),
            root_url: None,
            pages: pages.len() as u64,
            is_principal: replica == 0,
            folder: "/".to_owned(),
            kind,
            coverage: 1.0,
            copies: pages.len() as u64,
            changed: 0,
            added: 0,
            missing: 0,
            virtual_pages: 0,
            bytes: 2_000,
            newer: Newer::Same,
        })?;
        for (slot, doc) in (0..).zip(pages) {
            let (replica, slot, doc, role) = (ReplicaId(replica), SlotId(slot), DocId(doc), Role::Copy);
            let row = CollectionPageRow { group, replica, slot, doc, is_virtual: false, role };
            staging.collection_pages()?.push(&row)?;
        }
    }
    staging.collection_groups()?.push(&CollectionGroupRow {
        group,
        kind,
        name: "pages".to_owned(),
        replicas: 2,
        slots: 20,
        sites: 2,
        pages: 40,
        bytes: 4_000,
        duplicate_pages: 20,
        duplicate_bytes: 2_000,
        is_noise: false,
        evidence: "all pages".to_owned(),
        principal_reason: None,
        principal_evidence: None,
    })?;
    staging.url_rules()?.push(&UrlRuleRow {
        rule: RuleId(0),
        host: None,
        kind: "lower case".to_owned(),
        pattern: "a".to_owned(),
        support: 3,
        checked: 4,
        confidence: 0.75,
        example_from: "http://A".to_owned(),
        example_to: "http://a".to_owned(),
    })?;
    Ok(())
}

/// Changes a file: pairs of a place and a byte. The manifest gets the checksum of what there is.
fn damage(dir: &Path, name: &TableName, edits: &[u8]) {
    let atlas = Atlas::open(dir).expect("the manifest is sound");
    let path = atlas.paths(name).expect("it has all tables").remove(0);
    let mut bytes = fs::read(&path).expect("its files can be read");
    let (edits, cut) = edits.as_chunks::<3>();
    for [low, high, value] in edits {
        let at = usize::from(u16::from_le_bytes([*low, *high])) % bytes.len();
        // The footer is where the claims are, so half of the places are counted from the end.
        let at = if high & 1 == 0 { at } else { bytes.len() - 1 - at };
        bytes[at] ^= *value;
    }
    if let [short] = cut {
        bytes.truncate(bytes.len() - usize::from(*short).min(bytes.len() - 1));
    }
    fs::write(&path, &bytes).expect("it can be written");
    let (xxh3, len) = onionskin_store::storage::checksum_file(&path).expect("it can be read");
    let mut atlas = atlas;
    let fixed = atlas.update(|manifest| {
        if let Some(file) = manifest.tables.get_mut(name).and_then(|entry| entry.files.first_mut()) {
            (file.bytes, file.xxh3) = (len, xxh3);
        }
    });
    fixed.expect("the manifest is sound");
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let place = &*PLACE;
    let Some(([kind, which, column], rest)) = data.split_first_chunk::<3>().map(|(a, b)| (*a, b)) else {
        return;
    };
    let _ = fs::remove_dir_all(&place.changed);
    copy_folder(&place.sound, &place.changed);
    let names: Vec<TableName> =
        Atlas::open(&place.sound).expect("it is sound").manifest().tables.keys().cloned().collect();
    let name = &names[usize::from(which) % names.len()];
    let Some(table) = name.table() else { return };
    let (integers, shares) = numbers_of(&table);
    let bits = rest.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    match kind % 8 {
        0 if !integers.is_empty() => {
            let column = &integers[usize::from(column) % integers.len()];
            rewrite(&place.changed, name, Rewrite::Integer(column, bits.cast_signed()));
        }
        1 if !shares.is_empty() => {
            let column = &shares[usize::from(column) % shares.len()];
            rewrite(&place.changed, name, Rewrite::Share(column, f64::from_bits(bits)));
        }
        2 => {
            let orders = [Rewrite::Reversed, Rewrite::Doubled, Rewrite::Repeated, Rewrite::Halved];
            rewrite(&place.changed, name, orders[usize::from(column) % 4]);
        }
        _ => damage(&place.changed, name, rest),
    }
    let atlas = Atlas::open(&place.changed).expect("the manifest is sound");
    let report = atlas.verify_within(VerifyDepth::Rows, MemoryBudget::from_bytes(1 << 20));
    // What verify takes for sound can be read, and no number in it is too large.
    for name in &names {
        let read = untrusted::atlas_table(&atlas, name);
        assert!(read.is_ok() || report.names(name), "{name}: {read:?}, but {report:?}");
    }
});
