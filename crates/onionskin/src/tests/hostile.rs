//! One value, or the order of rows, in one table is not what a stage writes, and the manifest is
//! right. Checksums cannot tell.

use std::time::{Duration, Instant};

use onionskin_store::atlas::VerifyDepth;
use onionskin_store::testing::{Rewrite, copy_folder, numbers_of, rewrite};
use onionskin_store::{Atlas, TableName};

use super::commands::{COMMANDS, answer, fast_dir, small_atlas};

/// No atlas has as many documents, sites or bytes.
const IMPOSSIBLE: [i64; 2] = [-1, 1 << 62];
/// No small atlas has as many of anything but bytes, and lists of this length would not fit.
const LARGE: [i64; 2] = [1 << 31, (1 << 32) - 1];

/// Columns that are not held against anything: any 64 bits are a fingerprint, and nothing tells
/// whether a page is of two gigabytes.
fn is_free(column: &str, value: i64) -> bool {
    match column {
        "fp" | "text_fp" => true,
        "offset" | "bytes" | "shared" | "support" | "checked" | "duplicate_bytes" => {
            (0..=1 << 48).contains(&value)
        }
        // No site at all.
        "site" => value == i64::from(u32::MAX),
        _ => false,
    }
}

#[test]
fn hostile_values_end_in_a_named_error() {
    let folder = fast_dir();
    small_atlas(folder.path());
    let sound = folder.path().join("atlas");
    let report = Atlas::open(&sound).unwrap().verify(VerifyDepth::Rows);
    assert!(report.is_whole(), "{report:?}");
    let names: Vec<TableName> = Atlas::open(&sound).unwrap().manifest().tables.keys().cloned().collect();
    assert!(names.len() >= 14, "{names:?}");
    let (mut case, mut missed) = (0, Vec::new());
    for name in &names {
        let (integers, shares) = numbers_of(&name.table().unwrap());
        let integers = integers.iter().flat_map(|column| {
            IMPOSSIBLE
                .iter()
                .chain(&LARGE)
                .map(|value| (Rewrite::Integer(column, *value), *value, column.as_str()))
        });
        let shares = shares.iter().map(|column| (Rewrite::Share(column, f64::NAN), -1, column.as_str()));
        let orders = [Rewrite::Reversed, Rewrite::Doubled, Rewrite::Repeated, Rewrite::Halved];
        let orders = orders.into_iter().map(|order| (order, -1, ""));
        for (change, value, column) in integers.chain(shares).chain(orders) {
            let at = folder.path().join(format!("case-{case}"));
            copy_folder(&sound, &at.join("atlas"));
            if !rewrite(&at.join("atlas"), name, change) {
                continue;
            }
            let what = format!("{name} {change:?}");
            let found = Atlas::open(at.join("atlas")).unwrap().verify(VerifyDepth::Rows);
            // A chunk may come twice in a document.
            let may_be = matches!((name, change), (TableName::Chunks(_), Rewrite::Repeated));
            let is_found = may_be || is_free(column, value) || !found.is_whole();
            if !is_found {
                missed.push(what.clone());
            }
            // All commands on one value of a column, some on the others.
            let commands = COMMANDS.iter().enumerate();
            for (_, (command, run)) in
                commands.filter(|(nth, _)| LARGE.contains(&value) || (nth + case) % 4 == 0)
            {
                let begun = Instant::now();
                let answer = answer(command, *run, &at, &what);
                assert!(begun.elapsed() < Duration::from_secs(20), "{command} on {what}");
                if let Err(error) = answer {
                    assert!(
                        error.contains("table ") || error.contains("row"),
                        "{command} on {what}: {error}"
                    );
                }
            }
            std::fs::remove_dir_all(&at).unwrap();
            case += 1;
        }
    }
    assert!(missed.is_empty(), "not found: {missed:#?}");
    assert!(case > 200, "{case} cases");
}
