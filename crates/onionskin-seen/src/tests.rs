//! The index as a whole.
#![allow(clippy::unwrap_used, reason = "tests")]

mod crash;
mod damage;
mod oracle;
mod statistics;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

use onionskin_store::MemoryBudget;

use crate::testing::{Text, fast_dir, living, options, params};
use crate::{Options, Reader, Seen, SeenError, SharedReader};

#[test]
fn a_copy_is_told_with_its_name() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    let mut seen = Seen::create(&at, params("w4-rabin64-6x14r2", true), options(2)).unwrap();
    let text = Text::lone(1, 6);
    let near = Text { fp: 99, features: [&text.features[..3], &[7, 8, 9]].concat(), ..text.clone() };
    assert_eq!(seen.add(&text.document(0, "first")).unwrap().doc, Some(0));
    assert_eq!(seen.add(&Text::lone(2, 6).document(0, "other")).unwrap().seen, None);
    let answer = seen.check(&near.probe()).unwrap().unwrap();
    assert_eq!(
        (answer.doc, answer.name.as_deref(), answer.shared, answer.exact),
        (0, Some("first"), 3, false)
    );
    assert!((answer.resemblance - 0.5f64.powf(1.0 / 14.0)).abs() < 1e-12);
    let outcome = seen.add_if_new(&near.document(0, "near")).unwrap();
    assert_eq!((outcome.doc, outcome.seen), (None, Some(answer)));
    assert_eq!(seen.add(&near.document(0, "near")).unwrap().doc, Some(2));
    let answer = seen.check(&near.probe()).unwrap().unwrap();
    assert_eq!((answer.doc, answer.name.as_deref(), answer.exact), (2, Some("near"), true));
    assert!(seen.add(&text.document(0, "again")).unwrap().seen.unwrap().exact);
    seen.close().unwrap();

    let mut seen = Seen::open(&at, options(2)).unwrap();
    let counts = seen.remove_names(&BTreeSet::from(["first".to_owned(), "none".to_owned()])).unwrap();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [("first".to_owned(), 1)]);
    for _ in 0..2 {
        // The heir stands for the centre, before and after compaction.
        let answer = seen.check(&text.probe()).unwrap().unwrap();
        assert_eq!((answer.name.as_deref(), answer.exact, answer.shared), (Some("again"), true, 6));
        seen.compact().unwrap();
    }
    assert_eq!(seen.stats().documents, 3);
    assert_eq!(seen.check(&Text::lone(2, 6).probe()).unwrap().unwrap().name.as_deref(), Some("other"));
}

#[test]
fn mistakes_are_told() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    let mut seen = Seen::create(&at, params("w4-rabin64-6x14r2", false), options(2)).unwrap();
    assert!(matches!(Seen::open(&at, options(2)), Err(SeenError::Busy(_))));
    let wrong = seen.add(&Text::lone(1, 5).document(1, "")).unwrap_err();
    assert!(matches!(wrong, SeenError::Features { expected: 6, found: 5 }));
    drop(seen);
    assert!(matches!(
        Seen::create(&at, params("w4-rabin64-6x14r2", false), options(2)),
        Err(SeenError::Exists(_))
    ));
    assert!(matches!(Seen::open(dir.path(), options(2)), Err(SeenError::Missing(_))));
    let error = Seen::create(dir.path(), params("w4-rabin64-6x14r2", false), options(2)).err().unwrap();
    assert!(matches!(&error, SeenError::NotEmpty { entry, .. } if entry == "seen"), "{error}");
    assert!(matches!(Reader::open(dir.path(), MemoryBudget::from_mib(1)), Err(SeenError::Missing(_))));
}

/// Many centres with one feature in common: the same answers however they are spread over runs, and
/// lists that end.
#[test]
fn crowds_are_cut_and_exact_copies_are_found_all_the_same() {
    let text = |id: u64| {
        let mut text = Text::lone(id, 3);
        text.features[..2].fill(77);
        text
    };
    let mut answers = Vec::new();
    for table in [1, 5, 1000] {
        let dir = fast_dir();
        let mut params = params("w4-rabin64-3x2r3", false);
        params.crowd = 4;
        let mut seen = Seen::create(&dir.path().join("seen"), params, options(table)).unwrap();
        for id in 0..50 {
            assert_eq!(seen.add_if_new(&text(id).document(id, "")).unwrap().doc, Some(id as u32));
            seen.commit().unwrap();
        }
        for id in 0..50 {
            let answer = seen.check(&text(id).probe()).unwrap().unwrap();
            assert_eq!((answer.key, answer.exact), (id, true));
        }
        let found = seen.view().find(&text(49).probe()).unwrap();
        assert!(found.crowded);
        // Only the oldest four were met under the common features.
        let near = Text { fp: 1, ..text(9) };
        answers.push(seen.check(&near.probe()).unwrap().map(|answer| answer.key));
        let near = Text { fp: 1, ..text(2) };
        assert_eq!(seen.check(&near.probe()).unwrap().unwrap().key, 2);
    }
    assert_eq!(answers, [None, None, None]);
}

/// A near-duplicate is found by its own features, not only by those of what it is like.
#[test]
fn what_is_like_a_near_duplicate_is_found() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    let mut seen = Seen::create(&at, params("w4-rabin64-4x2r2", false), options(2)).unwrap();
    let text = |fp, features: [u64; 4]| Text { fp, features: features.to_vec(), sketch: vec![] };
    let chain = [text(1, [1, 2, 3, 4]), text(2, [1, 2, 5, 6]), text(3, [7, 8, 5, 6]), text(4, [7, 8, 9, 9])];
    for (key, text) in (0..).zip(&chain) {
        let like = seen.add(&text.document(key, "")).unwrap().seen.map(|found| found.key);
        assert_eq!(like, key.checked_sub(1));
        seen.commit().unwrap();
    }
    assert_eq!(seen.stats().centres, 4);
    // An exact copy adds no entry but that of its text.
    let before = seen.stats().postings;
    assert_eq!(seen.add(&chain[2].document(9, "")).unwrap().seen.map(|found| found.key), Some(2));
    assert_eq!((seen.stats().centres, seen.stats().postings), (4, before + 1));
}

/// Where every feature has a crowd, a near-duplicate has no entry of its own, which nobody would
/// read; its exact copies are found.
#[test]
fn near_duplicates_of_a_crowd_are_recorded_with_it() {
    let dir = fast_dir();
    let mut params = params("w4-rabin64-2x2r1", false);
    params.crowd = 3;
    let mut seen = Seen::create(&dir.path().join("seen"), params, options(4)).unwrap();
    for key in 0..20 {
        seen.add(&Text { fp: 100 + key, features: vec![1, 2], sketch: vec![] }.document(key, "")).unwrap();
        seen.commit().unwrap();
    }
    let stats = seen.stats();
    // Three with two entries and one of the text where a list was full; the others with the last.
    assert_eq!((stats.documents, stats.centres, stats.postings), (20, 3, 3 * 2 + 17));
    for key in 0..20 {
        let text = Text { fp: 100 + key, features: vec![1, 2], sketch: vec![] };
        let found = seen.check(&text.probe()).unwrap().unwrap();
        assert_eq!((found.key, found.exact), (key, true));
    }
}

#[test]
fn what_is_acknowledged_is_seen_by_readers_beside_the_writer() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    let mut seen = Seen::create(&at, params("w4-rabin64-6x14r2", false), options(40)).unwrap();
    let acknowledged = AtomicU64::new(0);
    const DOCUMENTS: u64 = 3000;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut reader = Reader::open(&at, MemoryBudget::from_mib(1)).unwrap();
                loop {
                    let before = acknowledged.load(Ordering::Acquire);
                    reader.refresh().unwrap();
                    for id in (0..before).step_by(17) {
                        let answer = reader.check(&Text::lone(id, 6).probe()).unwrap().unwrap();
                        assert_eq!((answer.key, answer.exact), (id, true), "of {before}");
                    }
                    assert!(reader.stats().documents >= before);
                    if before == DOCUMENTS {
                        break;
                    }
                }
            });
        }
        for id in 0..DOCUMENTS {
            seen.add_if_new(&Text::lone(id, 6).document(id, "")).unwrap();
            if id % 10 == 9 {
                seen.commit().unwrap();
                acknowledged.store(id + 1, Ordering::Release);
            }
            if id % 1000 == 999 {
                seen.compact().unwrap();
            }
        }
    });
    assert_eq!(living(&seen), (0..DOCUMENTS).collect::<Vec<_>>());
}

/// One reader for several threads, beside a writer that adds, merges and compacts.
#[test]
fn a_shared_reader_sees_what_was_committed_before_its_refresh() {
    const DOCUMENTS: u64 = 2000;
    let dir = fast_dir();
    let at = dir.path().join("seen");
    let writer = Seen::create(&at, params("w4-rabin64-6x14r2", false), options(40)).unwrap();
    let writer = std::sync::Mutex::new(writer);
    let shared = SharedReader::new(Reader::open(&at, MemoryBudget::from_mib(16)).unwrap());
    let visible = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (shared, visible) = (&shared, &visible);
            scope.spawn(move || {
                loop {
                    let before = visible.load(Ordering::Acquire);
                    for id in (thread..before).step_by(13) {
                        let answer = shared.check(&Text::lone(id, 6).probe()).unwrap().unwrap();
                        assert_eq!((answer.key, answer.exact), (id, true), "of {before}");
                    }
                    if before == DOCUMENTS {
                        break;
                    }
                }
            });
        }
        for id in 0..DOCUMENTS {
            let mut seen = writer.lock().unwrap();
            assert_eq!(seen.add_if_new(&Text::lone(id, 6).document(id, "")).unwrap().seen, None);
            if id % 10 == 9 {
                if id % 500 == 499 {
                    seen.compact().unwrap()
                } else {
                    seen.commit().unwrap()
                }
                if id % 20 == 19 {
                    shared.refresh_beside(&seen).unwrap()
                } else {
                    shared.refresh().unwrap()
                }
                visible.store(id + 1, Ordering::Release);
            }
        }
    });
    assert_eq!(shared.with(Reader::stats).documents, DOCUMENTS);
}

/// A directory counts postings in 32 bits. With a small limit in place of 2^32: what is too large
/// for one run stays in several, and answers are right.
#[test]
fn runs_stay_below_the_postings_that_a_directory_counts() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    let settings = || Options { run_postings: 64, ..options(5) };
    let mut seen = Seen::create(&at, params("w4-rabin64-6x14r2", false), settings()).unwrap();
    for id in 0..60 {
        seen.add(&Text::lone(id, 6).document(id, "")).unwrap();
        seen.commit().unwrap();
        let postings: Vec<u64> = seen.runs().iter().map(|run| run.meta().postings).collect();
        assert!(postings.iter().all(|n| *n <= 64), "{postings:?}");
    }
    assert_eq!(seen.runs().len(), 6);
    seen.remove(&(0..60).filter(|doc| doc % 3 == 0).collect::<Vec<_>>()).unwrap();
    for _ in 0..2 {
        seen.compact().unwrap();
        let postings: Vec<u64> = seen.runs().iter().map(|run| run.meta().postings).collect();
        assert_eq!(postings, [60, 60, 60, 60]);
    }
    for id in 0..60 {
        let found = seen.check(&Text::lone(id, 6).probe()).unwrap().map(|found| found.key);
        assert_eq!(found, (id % 3 != 0).then_some(id));
    }
    seen.close().unwrap();
    assert!(crate::verify(&at).unwrap().is_whole());
    // Without the limit they become one.
    let mut seen = Seen::open(&at, options(5)).unwrap();
    seen.compact().unwrap();
    assert_eq!(seen.runs().len(), 1);
}

#[test]
fn few_bytes_a_document_and_few_runs() {
    let dir = fast_dir();
    let at = dir.path().join("seen");
    let mut seen = Seen::create(&at, params("w4-rabin64-6x14r2", false), options(512)).unwrap();
    for id in 0..40_000 {
        seen.add(&Text::lone(id, 6).document(id, "")).unwrap();
        if id % 512 == 511 {
            seen.commit().unwrap();
            assert!(seen.stats().runs <= 6, "{:?}", seen.stats());
        }
    }
    seen.commit().unwrap();
    let stats = seen.stats();
    assert_eq!((stats.documents, stats.centres, stats.postings), (40_000, 40_000, 240_000));
    assert!(stats.bytes_per_document() < 64.0, "{} {stats:?}", stats.bytes_per_document());
    seen.close().unwrap();
    let stats = Reader::open(&at, MemoryBudget::from_mib(1)).unwrap().stats();
    assert_eq!(stats.in_log, 0);
    assert!(stats.bytes_per_document() < 62.5, "{} {stats:?}", stats.bytes_per_document());
}
