//! The bytes of every table stay what they were: digests are stored beside the tests.
//!
//! A change of the format is a decision, not an accident. When one is meant, take the digests that
//! a failing test prints over into `tests/data/digests.json`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::util::Dir;

/// Table by table the checksums of its files, and by them the name of the table.
type Digests = BTreeMap<String, Vec<String>>;

/// What the manifest says of the tables, after `verify` has compared it with the files.
fn digests(dir: &Dir, atlas: &str) -> Digests {
    let verified = dir.run(&["verify", atlas]);
    assert_eq!(verified.code, 0, "{}", verified.stderr);
    let manifest = std::fs::read(dir.path(atlas).join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let tables = manifest["tables"].as_object().unwrap();
    let files = |table: &serde_json::Value| {
        let files = table["files"].as_array().unwrap();
        files.iter().map(|file| format!("{} {}", file["rows"], file["xxh3"].as_str().unwrap())).collect()
    };
    tables.iter().map(|(name, table)| (name.clone(), files(table))).collect()
}

fn check(name: &str, found: &Digests) {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/digests.json");
    let stored: BTreeMap<String, Digests> = serde_json::from_slice(&std::fs::read(stored).unwrap()).unwrap();
    let printed = serde_json::to_string_pretty(found).unwrap();
    assert!(stored.get(name) == Some(found), "{name} has other bytes than before; now:\n{printed}");
}

fn run(dir: &Dir, arguments: &[&str]) {
    let outcome = dir.run(arguments);
    assert_eq!(outcome.code, 0, "{arguments:?}: {}", outcome.stderr);
}

#[test]
fn a_generated_web() {
    let dir = Dir::new();
    run(&dir, &["generate", "demo", "--pages", "2000", "--format", "warc", "-o", "web", "-q"]);
    run(&dir, &["run", "web", "-o", "atlas", "-q"]);
    check("generated web", &digests(&dir, "atlas"));
    // Every table that a recipe can ask for, and searches of other kinds.
    let recipe = ["--recipe", "w4-rabin64-6x14r2+sketch+w4+l4+l2+sp"];
    run(&dir, &[["scan", "web", "-o", "full", "-q"].as_slice(), &recipe].concat());
    run(&dir, &["similar", "full", "--method", "overlap", "--chunking", "l4", "--threshold", "5", "-q"]);
    run(&dir, &["similar", "full", "--method", "resemblance", "--threshold", "0.8", "--exact", "-q"]);
    run(&dir, &["collections", "full", "--merge", "extended", "-q"]);
    check("generated web, all tables", &digests(&dir, "full"));
}

#[test]
fn a_directory_of_real_pages() {
    let dir = Dir::new();
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/attrs.jsonl");
    for page in std::fs::read_to_string(pages).unwrap().lines() {
        let page: serde_json::Value = serde_json::from_str(page).unwrap();
        let (name, html) = (page["name"].as_str().unwrap(), page["html"].as_str().unwrap());
        for host in ["www.example.org", "mirror.example.net"] {
            dir.write(&format!("pages/{host}/{name}"), html);
        }
    }
    run(&dir, &["run", "pages", "-o", "atlas", "-q"]);
    check("real pages", &digests(&dir, "atlas"));
}
