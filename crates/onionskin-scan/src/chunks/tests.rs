use std::fs;

use onionskin_store::Quiet;
use onionskin_testkit::{Preset, Web, WebSpec};

use super::*;
use crate::scan;
use crate::testing::{CancelAfter, files, scan_into};

const ALL: &str = "w4-rabin64-6x14r2+sketch+w4+l2+l4+sp+c5+sent+ls2";
const LEAN: &str = "w4-rabin64-6x14r2+sketch";

fn chunkings(recipe: &str) -> Vec<Chunking> {
    recipe.parse::<Recipe>().unwrap().kept_chunks().to_vec()
}

fn params(atlas: &Path, recipe: &str) -> ChunksParams {
    let commit_bytes = 100 << 10;
    let memory = MemoryBudget::from_mib(256);
    ChunksParams {
        commit_bytes,
        memory,
        threads: 2,
        ..ChunksParams::new(atlas.to_owned(), chunkings(recipe))
    }
}

type Rows = Vec<(DocId, Vec<u64>)>;

/// Every chunk of every chunking, in order.
fn rows(atlas: &Path, recipe: &str) -> Vec<(ChunkingName, Rows)> {
    let atlas = Atlas::open(atlas).unwrap();
    let rows_of = |chunking: ChunkingName| {
        let mut reader = atlas.chunks(&chunking).unwrap();
        let mut rows = Vec::new();
        while let Some(doc) = reader.advance().unwrap() {
            rows.push((doc, reader.group().to_vec()));
        }
        (chunking, rows)
    };
    chunkings(recipe).into_iter().map(|chunking| rows_of(chunking.into())).collect()
}

/// A web as WARC, JSON lines and a folder, and a file with records that cannot be used.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let web = Web::new(&WebSpec::of(Preset::Demo, 300, 5)).unwrap();
    let mut inputs = web.write_three_shapes(folder).unwrap().to_vec();
    let odd = folder.join("odd.jsonl");
    fs::write(&odd, "{\"text\":\"\"}\n{\"text\":7}\n{oops\n{\"text\":\"one. two\\nthree\"}\n").unwrap();
    inputs.push(odd);
    inputs
}

fn scan_all(inputs: &[PathBuf], atlas: &Path, recipe: &str) {
    scan_into(&inputs.iter().map(PathBuf::as_path).collect::<Vec<_>>(), atlas, recipe);
}

#[test]
fn they_are_those_that_a_scan_keeps() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = inputs(folder.path());
    let (full, lean) = (folder.path().join("full"), folder.path().join("lean"));
    scan_all(&inputs, &full, ALL);
    scan_all(&inputs, &lean, LEAN);

    let made = make_chunks(&params(&lean, ALL), &Quiet).unwrap();
    let (expected, found) = (rows(&full, ALL), rows(&lean, ALL));
    assert_eq!(found, expected);
    for (chunking, rows) in expected {
        let naive: u64 = rows.iter().map(|(_, chunks)| chunks.len() as u64).sum();
        assert_eq!(made[chunking.as_str()], naive);
        assert!(naive > 300, "{chunking:?}");
    }
    // The other tables stay, and nothing is done twice.
    let atlas = Atlas::open(&lean).unwrap();
    assert_eq!(atlas.rows(&TableName::Sketches), Atlas::open(&full).unwrap().rows(&TableName::Sketches));
    assert_eq!(make_chunks(&params(&lean, ALL), &Quiet).unwrap(), BTreeMap::new());
}

#[test]
fn threads_memory_and_kills_do_not_change_a_byte() {
    let folder = tempfile::tempdir().unwrap();
    let inputs = inputs(folder.path());
    let mut expected = None;
    for (threads, mib) in [(1, 128), (2, 256), (5, 1024)] {
        let atlas = folder.path().join(format!("atlas-{threads}"));
        scan_all(&inputs, &atlas, LEAN);
        let params = ChunksParams {
            threads,
            memory: MemoryBudget::from_mib(mib),
            ..params(&atlas, "w4-rabin64-t1+w4+l4")
        };
        if threads == 2 {
            let stops = CancelAfter::until_done(1000, |progress| make_chunks(&params, progress));
            assert!(stops > 3, "{stops}");
        } else {
            make_chunks(&params, &Quiet).unwrap();
        }
        let found = files(&atlas);
        let parts = found.keys().filter(|name| name.starts_with("chunks/w4/")).count();
        assert!(parts > 2, "{:?}", found.keys());
        assert!(expected.get_or_insert_with(|| found.clone()) == &found, "{threads} threads differ");
    }
}

/// What the scan found too large is skipped again, though there is room for it now.
#[test]
fn records_that_the_scan_skipped_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.jsonl");
    let large = "word ".repeat(1_200_000);
    fs::write(&input, format!("{{\"text\":\"a b\"}}\n{{\"text\":\"{large}\"}}\n{{\"text\":\"c d\"}}\n"))
        .unwrap();
    let atlas = folder.path().join("atlas");
    let mut scanned = ScanParams::new(vec![input.display().to_string()], atlas.clone());
    scanned.memory = MemoryBudget::from_mib(128);
    assert_eq!(scan(&scanned, &Quiet).unwrap().documents, 2);
    make_chunks(
        &ChunksParams { memory: MemoryBudget::from_mib(2048), ..params(&atlas, "w1-rabin64-t1+w1") },
        &Quiet,
    )
    .unwrap();
    let rows = rows(&atlas, "w1-rabin64-t1+w1").remove(0).1;
    assert_eq!(
        rows.iter().map(|(doc, chunks)| (doc.get(), chunks.len())).collect::<Vec<_>>(),
        [(0, 2), (1, 2)]
    );
}

#[test]
fn inputs_that_are_gone_or_changed_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.jsonl");
    let write = |texts: [&str; 3]| {
        let lines: String = texts.iter().map(|text| format!("{{\"text\":\"{text}\"}}\n")).collect();
        fs::write(&input, lines).unwrap();
    };
    write(["one two", "three four", "five six"]);
    let atlas = folder.path().join("atlas");
    scan_all(std::slice::from_ref(&input), &atlas, LEAN);
    let before = files(&atlas);
    let error = || make_chunks(&params(&atlas, "w4-rabin64-t1+l4"), &Quiet).unwrap_err().to_string();

    // Of the same length, one document after the other, the last one too.
    for changed in [
        ["ONE TWO", "three FOUR", "five six"],
        ["one two", "three for4", "five six"],
        ["one two", "three four", "five sex"],
    ] {
        write(changed);
        let same = changed[1] == "three FOUR";
        if same {
            // Case does not count.
            assert!(make_chunks(&params(&atlas, "w4-rabin64-t1+l2"), &Quiet).is_ok());
            continue;
        }
        let message = error();
        assert!(message.contains("in.jsonl: the document at offset"), "{message}");
        assert!(message.contains("is not what it was"), "{message}");
    }
    fs::write(&input, "{\"text\":\"one two\"}\n{\"text\":\"three four\"}\n{\"text\":\"five six\"]\n")
        .unwrap();
    let message = error();
    assert!(message.contains("cannot be read any more"), "{message}");
    fs::write(&input, "{\"text\":\"one two\"}\n").unwrap();
    assert!(error().contains("it has 19 bytes, not"), "{}", error());
    fs::remove_file(&input).unwrap();
    assert!(error().contains("in.jsonl"), "{}", error());
    // Nothing of it is in the atlas.
    let after = files(&atlas);
    assert!(before.iter().all(|(name, bytes)| name == "manifest.json" || after.get(name) == Some(bytes)));
    assert!(!Atlas::open(&atlas).unwrap().chunkings().iter().any(|chunking| chunking.as_str() == "l4"));
}
