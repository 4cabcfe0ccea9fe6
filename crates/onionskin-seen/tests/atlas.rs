//! Features of texts and of the atlas that a scan makes of them are the same.
#![allow(clippy::unwrap_used, reason = "tests")]

use onionskin::{Quiet, ScanParams};
use onionskin_core::{DocId, Recipe};
use onionskin_seen::{
    AtlasDocument, AtlasDocuments, AtlasDocumentsError, Document, Options, Params, Seen, SeenError,
    TextFeatures, intake,
};
use onionskin_store::{Atlas, MemoryBudget};

fn params() -> Params {
    Params::new(&Recipe::default(), 1, true).unwrap()
}

#[test]
fn threads_change_nothing_and_empty_documents_have_nothing() {
    let texts: Vec<String> =
        (0..23).map(|n| "a rose is a rose ".repeat(n % 5) + &"x ".repeat(n % 3)).collect();
    let one = TextFeatures::new(&params(), 1).of(&texts);
    for threads in [2, 3, 40] {
        assert_eq!(TextFeatures::new(&params(), threads).of(&texts), one);
    }
    assert_eq!(one[0].probe().map(|probe| probe.text_fp), None);
    // Shorter than a shingle, and still a document.
    assert_eq!(one[1].features.len(), 6);
    assert!(TextFeatures::new(&params(), 2).of::<&str>(&[]).is_empty());
}

#[test]
fn an_atlas_without_sketches_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.jsonl");
    std::fs::write(&input, "{\"text\":\"one two three four five\"}\n").unwrap();
    let mut scan = ScanParams::new(vec![input.display().to_string()], dir.path().join("atlas"));
    scan.recipe = Some("w4-rabin64-6x14r2".parse().unwrap());
    scan.seed = 1;
    onionskin::scan(&scan, &Quiet).unwrap();
    let atlas = Atlas::open(dir.path().join("atlas")).unwrap();
    AtlasDocuments::open(&atlas, &params()).unwrap();
    let error = AtlasDocuments::open(&atlas, &params().with_sketches()).err().unwrap().to_string();
    assert!(error.contains("has no sketches") && error.contains("+sketch"), "{error}");
}

#[test]
fn texts_and_their_atlas_have_the_same_features() {
    check_same_features(params());
    check_same_features(params().with_sketches());
}

fn check_same_features(params: Params) {
    let texts = ["one two three four five six", "", "one", "One, two; three four five six!"];
    let dir = tempfile::tempdir().unwrap();
    let lines: Vec<String> = (0..)
        .zip(texts)
        .map(|(n, text): (u32, _)| format!("{{\"id\":\"d{n}\",\"text\":{text:?}}}\n"))
        .collect();
    let input = dir.path().join("in.jsonl");
    std::fs::write(&input, lines.concat()).unwrap();
    let mut scan = ScanParams::new(vec![input.display().to_string()], dir.path().join("atlas"));
    scan.seed = 1;
    onionskin::scan(&scan, &Quiet).unwrap();
    let atlas = Atlas::open(dir.path().join("atlas")).unwrap();
    let expected = TextFeatures::new(&params, 1).of(&texts);
    assert!(
        expected
            .iter()
            .all(|features| features.sketch.len() == features.features.len() / 6 * params.minima())
    );
    let mut documents = AtlasDocuments::open(&atlas, &params).unwrap();
    let at = dir.path().join("seen");
    let mut seen = Seen::create(&at, params.clone(), Options::new(MemoryBudget::from_mib(1))).unwrap();
    for (n, features) in (0..).zip(&expected) {
        let found = documents.next_document().unwrap().unwrap();
        assert_eq!(found, AtlasDocument { doc: DocId(n), name: format!("d{n}"), features: features.clone() });
        if let Some(probe) = found.features.probe() {
            seen.add(&Document { probe, key: 0, name: &found.name }).unwrap();
        }
    }
    assert_eq!(documents.next_document().unwrap(), None);
    let answer = seen.check(&expected[3].probe().unwrap()).unwrap().unwrap();
    assert_eq!((answer.name.as_deref(), answer.exact), (Some("d0"), true));
    let other = Params::new(&"w5-rabin64-6x14r2".parse().unwrap(), 1, true).unwrap();
    assert!(matches!(
        AtlasDocuments::open(&atlas, &other),
        Err(AtlasDocumentsError::Seen(SeenError::Mismatch { .. }))
    ));
}

#[test]
fn an_index_has_the_seed_of_a_scan() {
    assert_eq!(intake::SEED, ScanParams::SEED);
}
