//! Flipped bits and cut files: noticed, named, and repaired as far as it goes.

use std::fs;
use std::path::Path;

use onionskin_core::SplitMix64;

use onionskin_store::MemoryBudget;

use crate::intake::{OpenError, Wanted};
use crate::testing::{Text, fast_dir, files, options, params};
use crate::{Params, Reader, Seen, SeenError, repair, verify};

const DOCUMENTS: u64 = 600;

fn memory() -> MemoryBudget {
    MemoryBudget::from_mib(8)
}

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
    // What is known of the length of the log is no part of the index.
    if name != "acknowledged" {
        assert!(found.findings.iter().any(|f| f.path == path), "{name}, {what}: {found:?}");
        if name.starts_with("wal") {
            let error = Reader::open(&at, memory()).unwrap_err();
            assert!(matches!(error, SeenError::Damaged { .. }), "{name}, {what}: {error}");
        }
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
    let threshold = "0.9".parse().ok();
    check_all(Params { threshold, ..params("w4-rabin64-6x3r2", true).with_sketches() });
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
    assert_eq!(names.len(), 7, "{names:?}");
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
            check(&original, name, |bytes| bytes.truncate(at as usize), &format!("cut to {at}"));
            let zeroed = at as usize..(at as usize + 16).min(len as usize);
            let whole = fs::read(original.join(name)).unwrap();
            if whole[zeroed.clone()].iter().any(|byte| *byte != 0) {
                check(&original, name, |bytes| bytes[zeroed.clone()].fill(0), &format!("zeros from {at}"));
            }
        }
        // Behind its last batch a log may have one that was never finished.
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

/// An index without its catalogue was taken for an empty directory: adding to it removed all runs.
#[test]
fn a_lost_catalogue_is_damage_and_its_copy_is_used() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    build(&at);
    fs::remove_file(at.join("catalogue")).unwrap();
    let before = files(&at);
    let params = || params("w4-rabin64-6x14r2", true);
    let damaged = |error: SeenError| {
        let text = error.to_string();
        assert!(matches!(error, SeenError::Damaged { .. }) && text.contains("missing"), "{text}");
    };
    damaged(Seen::open(&at, options(1_000_000)).err().unwrap());
    damaged(Seen::create(&at, params(), options(1_000_000)).err().unwrap());
    damaged(Reader::open(&at, memory()).unwrap_err());
    match Wanted::default().open_or_create(&at, None, options(1_000_000)).err().unwrap() {
        OpenError::Seen(error) => damaged(error),
        other => panic!("{other}"),
    }
    assert_eq!(files(&at), before, "nothing is removed");
    let found = verify(&at).unwrap();
    assert_eq!(found.findings.len(), 1, "{found:?}");
    assert_eq!(found.findings[0].path, at.join("catalogue"));
    let done = repair(&at, options(1_000_000)).unwrap();
    assert_eq!((done.lost_documents, done.lost_postings, done.lost_log_bytes), (0, 0, 0), "{done:?}");
    assert!(verify(&at).unwrap().is_whole());
    let seen = Seen::open(&at, options(1_000_000)).unwrap();
    let found = (0..DOCUMENTS).filter(|id| seen.check(&Text::sketched(*id, 6, 0).probe()).unwrap().is_some());
    assert_eq!(found.count() as u64, DOCUMENTS - 3);
}

/// Each kind of file alone shows that there was an index; what an interrupted creation leaves does
/// not.
#[test]
fn any_file_of_an_index_keeps_a_new_one_away() {
    let dir = fast_dir();
    let original = dir.path().join("seen");
    build(&original);
    let params = || params("w4-rabin64-6x14r2", true);
    for file in files(&original) {
        let name = file.file_name().unwrap().to_str().unwrap();
        if ["catalogue", "lock"].contains(&name) {
            continue;
        }
        let at = dir.path().join(format!("only-{name}"));
        fs::create_dir(&at).unwrap();
        fs::copy(&file, at.join(name)).unwrap();
        let error = Seen::create(&at, params(), options(2)).err().unwrap();
        assert!(matches!(&error, SeenError::Damaged { .. }), "{name}: {error}");
        assert!(at.join(name).exists());
    }
    let at = dir.path().join("interrupted");
    fs::create_dir(&at).unwrap();
    fs::write(at.join("wal-00000001"), crate::wal::header(1)).unwrap();
    fs::write(at.join("catalogue.tmp"), "onionskin-s").unwrap();
    Seen::create(&at, params(), options(2)).unwrap();
}

/// A kill after the catalogue and before its copy: the copy names files that are removed when the
/// index is opened, so that it has to be written again before.
#[test]
fn an_old_copy_of_the_catalogue_is_written_again() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    build(&at);
    let old = fs::read(at.join("catalogue.copy")).unwrap();
    Seen::open(&at, options(1_000_000)).unwrap().close().unwrap();
    fs::write(at.join("catalogue.copy"), old).unwrap();
    drop(Seen::open(&at, options(1_000_000)).unwrap());
    assert_eq!(fs::read(at.join("catalogue")).unwrap(), fs::read(at.join("catalogue.copy")).unwrap());
}

/// A reader that took damage for the end of the log answered "new" for acknowledged documents.
#[test]
fn a_reader_refuses_a_log_with_a_bad_batch_in_the_middle() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    let mut seen = Seen::create(&at, params("w4-rabin64-6x14r2", true), options(1_000_000)).unwrap();
    let mut add = |id: u64| {
        seen.add(&Text::sketched(id, 6, 0).document(0, &format!("name-{id}"))).unwrap();
        seen.commit().unwrap();
        fs::metadata(at.join("wal-00000001")).unwrap().len() as usize
    };
    add(0);
    let mut reader = Reader::open(&at, memory()).unwrap();
    let second = add(1);
    let third = add(2);
    drop(seen);
    let log = at.join("wal-00000001");
    let sound = fs::read(&log).unwrap();
    let mut bytes = sound.clone();
    bytes[second - 1] ^= 1;
    fs::write(&log, &bytes).unwrap();
    for error in [Reader::open(&at, memory()).unwrap_err(), reader.refresh().unwrap_err()] {
        assert!(matches!(error, SeenError::Damaged { .. }), "{error}");
    }
    // After a power cut, which may take what is known of the length, a torn end is no damage.
    fs::remove_file(at.join("acknowledged")).unwrap();
    fs::write(&log, &sound[..third - 1]).unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.stats().documents, 2);
    fs::write(&log, &sound).unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.stats().documents, 3);
}

/// A log that was cut off lost batches that were acknowledged, and nobody noticed.
#[test]
fn a_log_that_lost_its_end_is_damage() {
    let dir = fast_dir();
    let original = dir.path().join("seen");
    let mut seen = Seen::create(&original, params("w4-rabin64-6x14r2", true), options(1_000_000)).unwrap();
    let log = "wal-00000001";
    let mut ends = vec![fs::metadata(original.join(log)).unwrap().len()];
    for id in 0..6 {
        seen.add(&Text::sketched(id, 6, 0).document(0, &format!("name-{id}"))).unwrap();
        seen.commit().unwrap();
        ends.push(fs::metadata(original.join(log)).unwrap().len());
    }
    drop(seen);
    let whole = *ends.last().unwrap();
    for cut in (0..whole).step_by(7).chain(ends.iter().copied().filter(|end| *end < whole)) {
        let at = dir.path().join(format!("cut-{cut}"));
        copy(&original, &at);
        let bytes = fs::read(at.join(log)).unwrap();
        fs::write(at.join(log), &bytes[..cut as usize]).unwrap();
        let found = verify(&at).unwrap();
        assert_eq!(found.findings.len(), 1, "{cut}: {found:?}");
        assert_eq!(found.findings[0].path, at.join(log));
        for error in [Reader::open(&at, memory()).err(), Seen::open(&at, options(1_000_000)).err()] {
            let error = error.unwrap_or_else(|| panic!("{cut} is not noticed"));
            assert!(matches!(error, SeenError::Damaged { .. }), "{cut}: {error}");
        }
        let kept = ends.iter().filter(|end| **end <= cut).count().saturating_sub(1);
        let done = repair(&at, options(1_000_000)).unwrap();
        let end = ends.iter().filter(|end| **end <= cut).max().copied().unwrap_or(0);
        assert_eq!(done.lost_log_bytes, whole - end, "{cut}");
        assert!(verify(&at).unwrap().is_whole(), "{cut}");
        let mut seen = Seen::open(&at, options(1_000_000)).unwrap();
        assert_eq!(seen.stats().documents, kept as u64, "{cut}");
        seen.add(&Text::sketched(9, 6, 0).document(0, "name-9")).unwrap();
        seen.commit().unwrap();
        drop(seen);
        assert_eq!(Reader::open(&at, memory()).unwrap().stats().documents, kept as u64 + 1);
        fs::remove_dir_all(&at).unwrap();
    }
}

/// A batch that was begun when the power went, and an index that an older version has left: what is
/// behind the last acknowledged batch is nothing, and without `acknowledged` so is less.
#[test]
fn a_torn_tail_is_no_damage() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    let mut seen = Seen::create(&at, params("w4-rabin64-6x14r2", true), options(1_000_000)).unwrap();
    for id in 0..3 {
        seen.add(&Text::sketched(id, 6, 0).document(0, &format!("name-{id}"))).unwrap();
        seen.commit().unwrap();
    }
    drop(seen);
    let log = at.join("wal-00000001");
    let sound = fs::read(&log).unwrap();
    let last = sound.len() - 10;
    let torn = [&sound[..], &sound[last - 50..last]].concat();
    let noted = fs::read(at.join("acknowledged")).unwrap();
    assert_eq!(noted.len(), 3 * 32);
    // Records of the file that are lost, torn or zeros tell less, and nothing that is wrong.
    let half = [&noted[..40], &[0; 50]].concat();
    for (bytes, noted, documents) in [
        (&torn[..], Some(&noted[..]), 3),
        (&torn[..], Some(&half[..]), 3),
        (&sound[..last], Some(&half[..]), 2),
        (&sound[..last], None, 2),
    ] {
        fs::write(&log, bytes).unwrap();
        match noted {
            Some(noted) => fs::write(at.join("acknowledged"), noted).unwrap(),
            None => fs::remove_file(at.join("acknowledged")).unwrap(),
        }
        let found = verify(&at).unwrap();
        assert!(found.is_whole() && found.torn_bytes > 0, "{found:?}");
        assert_eq!(Reader::open(&at, memory()).unwrap().stats().documents, documents);
    }
    let mut seen = Seen::open(&at, options(1_000_000)).unwrap();
    seen.add(&Text::sketched(7, 6, 0).document(0, "name-7")).unwrap();
    seen.commit().unwrap();
    drop(seen);
    assert_eq!(fs::read(at.join("acknowledged")).unwrap().len(), 32);
    assert!(verify(&at).unwrap().is_whole());
}
