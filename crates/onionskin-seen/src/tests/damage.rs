//! Flipped bits and cut files: noticed, named, and repaired as far as it goes.

use std::fs;
use std::path::Path;

use onionskin_core::SplitMix64;

use crate::testing::{Text, fast_dir, files, options, params};
use crate::{Params, Seen, repair, verify};

const DOCUMENTS: u64 = 600;

/// Two runs, tombstones, and a log with three batches.
fn build(at: &Path) {
    build_of(at, params("w4-rabin64-6x14r2", true));
}

fn build_of(at: &Path, params: Params) {
    let minima = params.minima();
    let mut seen = Seen::create(at, params, options(1_000_000)).unwrap();
    for id in 0..DOCUMENTS {
        seen.add(&Text::sketched(id, 6, minima).document(0, &format!("name-{id}"))).unwrap();
        if id == 399 || id == 549 {
            seen.remove(&[7, id as u32 - 100]).unwrap();
            seen.close().unwrap();
            seen = Seen::open(at, options(1_000_000)).unwrap();
        }
        if id > 549 && id % 20 == 19 {
            seen.commit().unwrap();
        }
    }
    seen.commit().unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for file in files(from) {
        fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
    }
}

/// Harms a file, expects that it is named, repairs, and expects answers that are right or missing.
fn check(original: &Path, name: &str, harm: impl Fn(&mut Vec<u8>), what: &str) -> u64 {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    copy(original, &at);
    let path = at.join(name);
    let mut bytes = fs::read(&path).unwrap();
    harm(&mut bytes);
    fs::write(&path, &bytes).unwrap();
    let found = verify(&at).unwrap();
    let last_batch = name.starts_with("wal") && found.torn_bytes > 0;
    if !last_batch {
        assert!(found.findings.iter().any(|f| f.path == path), "{name}, {what}: {found:?}");
        let done = repair(&at, options(1_000_000)).unwrap();
        assert_eq!(done.findings, found.findings);
        let again = verify(&at).unwrap();
        assert!(again.is_whole(), "{name}, {what}: {again:?}");
    }
    let seen = Seen::open(&at, options(1_000_000)).unwrap();
    let mut missing = 0;
    for id in 0..DOCUMENTS {
        match seen.check(&Text::sketched(id, 6, seen.params().minima()).probe()).unwrap() {
            Some(answer) => assert_eq!(answer.name, Some(format!("name-{id}")), "{name}, {what}"),
            None => missing += 1,
        }
    }
    missing
}

#[test]
fn every_harm_is_noticed_named_and_repaired() {
    check_all(params("w4-rabin64-6x14r2", true));
}

#[test]
fn every_harm_to_an_index_with_sketches_is_noticed_named_and_repaired() {
    check_all(params("w4-rabin64-6x3r2", true).with_sketches());
}

/// A near copy is told by its features where the sketch is lost, and by its sketch again where it
/// is not.
#[test]
fn lost_sketches_are_told_and_features_decide() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    build_of(&at, params("w4-rabin64-6x14r2", true).with_sketches());
    let run = files(&at).into_iter().find(|path| path.to_string_lossy().contains("run-")).unwrap();
    let mut bytes = fs::read(&run).unwrap();
    // Four hundred documents with names come before; then 336 bytes each.
    bytes[50_000] ^= 1;
    fs::write(&run, bytes).unwrap();
    let done = repair(&at, options(1_000_000)).unwrap();
    assert_eq!((done.lost_documents, done.lost_postings), (0, 0), "{done:?}");
    assert!((12..=14).contains(&done.lost_sketches), "{done:?}");
    let seen = Seen::open(&at, options(1_000_000)).unwrap();
    let (mut by_features, mut by_sketch) = (0, 0);
    for id in (0..400).filter(|id| ![7, 299].contains(id)) {
        let mut near = Text { fp: 1, ..Text::sketched(id, 6, 84) };
        near.features[5] = 1;
        let found = seen.check(&near.probe().with_threshold(0.5)).unwrap().unwrap();
        assert_eq!((found.name, found.shared), (Some(format!("name-{id}")), 5));
        if found.resemblance == 1.0 { by_sketch += 1 } else { by_features += 1 }
    }
    assert_eq!((by_features, by_features + by_sketch), (done.lost_sketches, 398));
}

fn check_all(params: Params) {
    let dir = fast_dir();
    let original = dir.path().join("seen");
    build_of(&original, params);
    let names: Vec<String> = files(&original)
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), 6, "{names:?}");
    let tries = if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 400 } else { 12 };
    let mut rng = SplitMix64::new(3);
    for name in &names {
        let len = fs::metadata(original.join(name)).unwrap().len();
        for nth in 0..tries {
            let at = if nth == 0 { 0 } else { rng.next_u64() % len };
            let bit = rng.next_u64() % 8;
            let missing =
                check(&original, name, |bytes| bytes[at as usize] ^= 1 << bit, &format!("bit {bit} at {at}"));
            // A block has 409 names at most, and the log 50 documents altogether.
            assert!(missing <= 3 + 409, "{name}, bit {bit} at {at}: {missing} are missing");
            if name.starts_with("catalogue") {
                assert_eq!(missing, 3, "the removed");
            }
            // A log that ends between two batches is no harm that can be noticed.
            if !name.starts_with("wal") {
                check(&original, name, |bytes| bytes.truncate(at as usize), &format!("cut to {at}"));
            }
        }
        if !name.starts_with("wal") {
            check(&original, name, |bytes| bytes.push(0), "a byte more");
        }
    }
}

/// A damaged block is an error of the check that needs it, which names the file; never an answer.
#[test]
fn checks_never_answer_from_damaged_blocks() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    build(&at);
    let run = files(&at).into_iter().find(|path| path.to_string_lossy().contains("run-")).unwrap();
    let mut bytes = fs::read(&run).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(&run, bytes).unwrap();
    let seen = Seen::open(&at, options(1_000_000)).unwrap();
    let mut errors = 0;
    for id in 0..DOCUMENTS {
        match seen.check(&Text::lone(id, 6).probe()) {
            Ok(_) => {}
            Err(error) => {
                assert!(error.to_string().contains("checksum"), "{error}");
                assert!(error.to_string().contains(run.to_str().unwrap()), "{error}");
                errors += 1;
            }
        }
    }
    assert!(errors > 0);
}

/// The directory is told by the postings.
#[test]
fn a_lost_directory_costs_nothing() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    build(&at);
    let run = files(&at).into_iter().find(|path| path.to_string_lossy().contains("run-")).unwrap();
    let mut bytes = fs::read(&run).unwrap();
    let end = bytes.len() - 20;
    bytes[end] ^= 4;
    fs::write(&run, bytes).unwrap();
    let done = repair(&at, options(1_000_000)).unwrap();
    assert_eq!((done.findings.len(), done.lost_documents, done.lost_postings), (1, 0, 0), "{done:?}");
    assert!(verify(&at).unwrap().is_whole());
}
