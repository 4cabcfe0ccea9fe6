use onionskin_store::TableName;
use std::convert::Infallible;
use std::fs;

use onionskin_core::{Analyzer, DocId};
use onionskin_testkit::{Preset, Web, WebSpec};

use super::*;
use crate::testing::scan_into;

type Given = Vec<(DocId, Option<u64>, Option<String>)>;

fn texts(atlas: &Atlas) -> (Given, Vec<LostInput>) {
    let mut given = Vec::new();
    let lost = read_texts(atlas, &TextsParams::default(), |row, text| {
        given.push((row.doc, row.text_fp, text.map(str::to_owned)));
        Ok::<(), Infallible>(())
    })
    .unwrap();
    (given, lost)
}

/// Every document comes once, in order, with the very text that was scanned, in every shape of
/// input; those of an input that is gone come without one.
#[test]
fn texts_come_back_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let web = Web::new(&WebSpec::of(Preset::Demo, 400, 5)).unwrap();
    let third = web.n_pages() / 3;
    let path = |name: &str| folder.path().join(name);
    let [warc, jsonl, plain] = web.write_three_shapes(folder.path()).unwrap();
    let atlas_dir = path("atlas");
    scan_into(&[&warc, &jsonl, &plain], &atlas_dir, "w4-rabin64-6x14r2");
    let atlas = Atlas::open(&atlas_dir).unwrap();
    let recipe = atlas.manifest().recipe.parse().unwrap();
    let mut analyzer = Analyzer::new(&recipe, atlas.manifest().seed);

    let (given, lost) = texts(&atlas);
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(given.len() as u64, atlas.table(&TableName::Documents).unwrap().rows);
    for (at, (doc, text_fp, text)) in given.iter().enumerate() {
        assert_eq!(doc.index(), at);
        let text = text.as_ref().unwrap();
        assert_eq!(analyzer.analyze(text).text_fp().map(|fp| fp.0), *text_fp, "document {doc}");
    }

    fs::remove_file(jsonl).unwrap();
    let (without, lost) = texts(&atlas);
    assert_eq!(lost.len(), 1);
    assert!(lost[0].input.ends_with("b.jsonl") && lost[0].documents == third, "{lost:?}");
    for (old, new) in given.iter().zip(&without) {
        let gone = (third..2 * third).contains(&u64::from(old.0));
        assert_eq!(new.2.is_none(), gone, "document {}", old.0);
        assert!(gone || old == new);
    }
    assert_eq!(given.len(), without.len());

    let stopped =
        read_texts(
            &atlas,
            &TextsParams::default(),
            |row, _| if row.doc < DocId(7) { Ok(()) } else { Err(row.doc) },
        );
    assert!(matches!(stopped, Err(TextsError::Receiver(DocId(7)))));
}

/// A changed input of the same length: no document gets the text of another, and the input is
/// reported with the number of documents that lost theirs.
#[test]
fn changed_texts_of_equal_length_are_not_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let line = |word: &str| format!("{{\"text\":\"the page of {word} and nothing else\"}}\n");
    let words = ["apples", "cherry", "plums!", "quince", "medlar"];
    let write = |words: &[&str]| fs::write(&path, words.iter().map(|word| line(word)).collect::<String>());
    write(&words).unwrap();
    let atlas_dir = folder.path().join("atlas");
    scan_into(&[&path], &atlas_dir, "w4-rabin64-6x14r2");
    let atlas = Atlas::open(&atlas_dir).unwrap();

    write(&["cherry", "apples", "PLUMS?", "quince", "medlar"]).unwrap();
    let (given, lost) = texts(&atlas);
    let has_text: Vec<bool> = given.iter().map(|(_, _, text)| text.is_some()).collect();
    // Case and punctuation are no part of a text.
    assert_eq!(has_text, [false, false, true, true, true]);
    let [LostInput { input, documents: 2, reason }] = &lost[..] else { panic!("{lost:?}") };
    assert!(input.ends_with("a.jsonl") && reason.contains("changed"), "{lost:?}");

    // Records at other places are lost as well, and reported.
    write(&["app", "cherry", "plums!", "quince", "medlars!!"]).unwrap();
    let (given, lost) = texts(&atlas);
    assert!(given.iter().all(|(_, _, text)| text.is_none()), "{given:?}");
    assert!(matches!(&lost[..], [LostInput { documents: 5, .. }]), "{lost:?}");
}
