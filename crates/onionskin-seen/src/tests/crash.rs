//! Every operation of the storage fails once, in every way.

use std::collections::BTreeSet;
use std::path::Path;

use onionskin_store::testing::{Fault, Faulty};

use crate::testing::{Text, fast_dir, living, options, params, with_storage};
use crate::{Params, Seen, SeenError, verify};

const BATCHES: u64 = 9;

/// What one batch does to the living keys: three documents more, two of them copies; every third
/// batch takes the oldest away.
fn apply(batch: u64, keys: &mut BTreeSet<u64>) {
    keys.extend(batch * 10..batch * 10 + 3);
    if batch % 3 == 2 {
        keys.pop_first();
    }
}

fn states() -> Vec<BTreeSet<u64>> {
    let mut states = vec![BTreeSet::new()];
    for batch in 0..BATCHES {
        let mut next = states.last().cloned().unwrap_or_default();
        apply(batch, &mut next);
        states.push(next);
    }
    states
}

/// Every other operation is tried with sketches, and half of these with a byte of each minimum.
fn kind(nth: u64) -> (Params, usize) {
    let params = params("w4-rabin64-6x14r2", false);
    match nth % 4 {
        0 | 2 => (params, 0),
        1 => (params.with_sketches(), 84),
        _ => (Params { threshold: "0.9".parse().ok(), ..params.with_sketches() }, 84),
    }
}

fn work(seen: &mut Seen, from: u64, acknowledged: &mut u64) -> Result<(), SeenError> {
    let minima = seen.params().minima();
    for batch in from..BATCHES {
        for i in 0..3 {
            seen.add(&Text::sketched(batch * 10 + i / 2, 6, minima).document(batch * 10 + i, ""))?;
        }
        if batch % 3 == 2 {
            let oldest = *living(seen).first().unwrap();
            seen.remove_keys(&BTreeSet::from([oldest]))?;
        }
        seen.commit()?;
        *acknowledged = batch + 1;
        if batch == 6 {
            seen.compact()?;
        }
    }
    Ok(())
}

fn whole(
    at: &Path,
    params: Params,
    storage: std::sync::Arc<Faulty>,
    acknowledged: &mut u64,
) -> Result<(), SeenError> {
    let mut seen = Seen::create(at, params, with_storage(5, storage))?;
    work(&mut seen, 0, acknowledged)?;
    seen.close()
}

fn check_faults(fault: Fault) {
    let states = states();
    let mut operations = 0;
    for nth in 0.. {
        let dir = fast_dir();
        let at = dir.path().join("seen");
        let storage = Faulty::new(nth, fault);
        let mut acknowledged = 0;
        let result = whole(&at, kind(nth).0, storage.clone(), &mut acknowledged);
        storage.power_cut();
        if storage.failures() == 0 {
            result.unwrap();
            break;
        }
        operations += 1;
        // What is known of the length of the log may fail to be noted.
        assert!(result.is_err() || acknowledged == BATCHES, "operation {nth}");
        let mut seen = match Seen::open(&at, options(5)) {
            Err(SeenError::Missing(_)) => {
                assert_eq!(acknowledged, 0, "operation {nth}");
                Seen::create(&at, kind(nth).0, options(5)).unwrap()
            }
            other => other.unwrap_or_else(|error| panic!("operation {nth}, {fault:?}: {error}")),
        };
        let found = verify(&at).unwrap();
        // The copy of the catalogue may not have been written yet.
        let harmless = |path: &Path| path.ends_with("catalogue.copy");
        assert!(found.findings.iter().all(|f| harmless(&f.path)), "operation {nth}, {fault:?}: {found:?}");
        let keys = living(&seen);
        let set: BTreeSet<u64> = keys.iter().copied().collect();
        assert_eq!(keys.len(), set.len(), "operation {nth}: a document is there twice");
        // A batch that was not acknowledged is there whole, or not at all.
        let there = (acknowledged..=BATCHES.min(acknowledged + 1)).find(|n| states[*n as usize] == set);
        let Some(there) = there else {
            panic!("operation {nth}, {fault:?}: {keys:?} after {acknowledged} batches were acknowledged")
        };
        for key in &set {
            let text = Text::sketched(key / 10 * 10 + key % 10 / 2, 6, kind(nth).1);
            let answer = seen.check(&text.probe()).unwrap().unwrap();
            assert!(answer.exact, "operation {nth}: {key}");
        }
        work(&mut seen, there, &mut acknowledged).unwrap();
        seen.close().unwrap();
        let seen = Seen::open(&at, options(5)).unwrap();
        assert_eq!(
            living(&seen),
            states[BATCHES as usize].iter().copied().collect::<Vec<_>>(),
            "operation {nth}"
        );
        let found = verify(&at).unwrap();
        assert!(found.is_whole(), "operation {nth}: {found:?}");
    }
    assert!(operations > 80, "only {operations} operations were tried");
}

onionskin_store::fault_tests!(
    check_faults,
    tears: if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 40 } else { 3 }
);
