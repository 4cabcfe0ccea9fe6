use super::*;

fn text(words: std::ops::Range<u32>) -> String {
    words.map(|word| format!("w{word}x ")).collect()
}

/// The share of the first text that stands in the second, within four standard errors of thirty
/// minima.
#[test]
fn containment_is_estimated() {
    let mut sketcher = Sketcher::new();
    for (a, b, truth) in [
        (0..1000, 0..1000, 1.0),
        (0..1000, 2000..3000, 0.0),
        (0..1000, 500..1500, 0.5),
        (0..500, 0..1000, 1.0),
        (0..1000, 0..500, 0.5),
    ] {
        let (a, b) = (sketcher.sketch(&text(a)), sketcher.sketch(&text(b)));
        let found = a.contained_in(&b);
        assert!((found - truth).abs() < 0.36, "{found} for {truth}");
        assert!(truth != 1.0 || found > 0.6, "{found} for {truth}");
        assert!(truth != 0.0 || found == 0.0, "{found} for {truth}");
    }
    assert_eq!(sketcher.sketch("").contained_in(&sketcher.sketch("")), 0.0);
}

#[test]
fn sketches_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sketches");
    let mut sketcher = Sketcher::new();
    let sketches: Vec<Sketch> = (0..5).map(|n| sketcher.sketch(&text(n * 3..n * 40))).collect();
    let mut writer = SketchesWriter::create(&path).unwrap();
    sketches.iter().for_each(|sketch| writer.push(*sketch).unwrap());
    writer.finish().unwrap();
    let file = Sketches::open(&path, 5).unwrap();
    assert!((0..5).all(|doc| file.get(DocId(doc)).unwrap() == sketches[doc as usize]));
    assert!(file.get(DocId(5)).is_err());
    assert!(Sketches::open(&path, 6).is_err());
}
