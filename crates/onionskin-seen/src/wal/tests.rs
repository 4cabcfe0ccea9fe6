#![allow(clippy::unwrap_used, reason = "tests")]
use super::*;
use proptest::prelude::*;

fn change() -> impl Strategy<Value = Change> {
    let features = prop::collection::vec(any::<u64>(), 1..5);
    let name = prop::option::of(prop::collection::vec(any::<u8>(), 0..20));
    let sketch = prop::collection::vec(any::<u32>(), 0..3);
    let add =
        (any::<u64>(), prop::option::of(0..NOBODY), any::<u64>(), name, features, sketch, any::<bool>());
    prop_oneof![
        add.prop_map(|(fp, centre, key, name, features, sketch, by_text)| Change::Add {
            fp,
            centre: centre.unwrap_or(NOBODY),
            key: if name.is_some() { 0 } else { key },
            name,
            features: if centre.is_some() { vec![] } else { features },
            sketch: if centre.is_some() { vec![] } else { sketch },
            by_text,
        }),
        any::<(u32, u32)>().prop_map(|(doc, heir)| Change::Remove { doc, heir }),
    ]
}

fn write(number: u64, batches: &[Vec<Change>]) -> Vec<u8> {
    let mut bytes = header(number).to_vec();
    for (sequence, changes) in (0..).zip(batches) {
        let mut batch = Batch::new();
        changes.iter().for_each(|change| batch.push(change));
        bytes.extend(batch.seal(number, sequence));
    }
    bytes
}

fn read(number: u64, bytes: &[u8]) -> Result<Vec<Change>, SeenError> {
    let mut changes = Vec::new();
    let path = Path::new("wal");
    let end = replay(path, number, bytes, Position::start(), |change| {
        changes.push(change);
        Ok(())
    })?;
    ensure_torn(path, number, behind(bytes, end), end)?;
    Ok(changes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_log_reads_back_and_its_damage_is_told(
        batches in prop::collection::vec(prop::collection::vec(change(), 1..4), 1..4),
        at in any::<prop::sample::Index>(),
        bit in 0..8,
    ) {
        let bytes = write(5, &batches);
        prop_assert_eq!(read(5, &bytes).unwrap(), batches.concat());
        prop_assert!(read(6, &bytes).is_err());
        let ends: Vec<_> = (0..=batches.len()).map(|n| write(5, &batches[..n]).len()).collect();
        // Cut anywhere: the whole batches are left.
        let cut = at.index(bytes.len());
        match read(5, &bytes[..cut]) {
            Ok(found) => {
                let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
                prop_assert_eq!(found, batches[..whole].concat());
            }
            Err(_) => prop_assert!(cut < HEADER),
        }
        // A flipped bit: an error, or the last batch is gone.
        let mut harmed = bytes.clone();
        harmed[cut] ^= 1u8 << bit;
        match read(5, &harmed) {
            Ok(found) => {
                prop_assert!(cut >= ends[batches.len() - 1]);
                prop_assert_eq!(found, batches[..batches.len() - 1].concat());
            }
            Err(_) => prop_assert!(cut < ends[batches.len() - 1]),
        }
    }

    #[test]
    fn any_bytes_are_a_log_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200), number: u64) {
        let _ = parse_bytes(&bytes);
        let _ = parse_bytes(&[&header(number)[..], &bytes].concat());
    }
}
