#![allow(clippy::unwrap_used, reason = "tests")]
use super::format::Shape;
use super::*;
use crate::blocks::Room;
use crate::testing::fast_dir;
use onionskin_store::testing::Faulty;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Few keys, many documents: every list is as a scan of all postings says, whatever is in
    /// memory.
    #[test]
    fn lists_are_those_of_a_scan(
        postings in prop::collection::btree_set((0u64..40, 0u32..900), 0..600),
        docs in 900u32..1100,
        first in 0u32..50,
        most in 1usize..300,
        spread in prop::sample::select(vec![1u64, 1 << 20, (1 << 54) / 40]),
        in_memory: bool,
        stays: bool,
    ) {
        let dir = fast_dir();
        let storage = Faulty::never();
        let plan = RunPlan { number: 7, first, docs, names: 0, sketch: SketchShape::default() };
        let mut writer = RunWriter::create(storage.as_ref(), dir.path(), plan).unwrap();
        for doc in 0..docs {
            let record = Record { fp: u64::from(doc), centre: first, key: u64::from(doc) << 40 };
            writer.push_document(first + doc, record).unwrap();
        }
        for (key, doc) in &postings {
            writer.push_posting(key * spread, first + doc).unwrap();
        }
        let meta = writer.finish().unwrap();
        prop_assert_eq!(meta.centres, 1);
        let room = if stays { Room::All } else { Room::Some };
        let run = Run::open(dir.path(), meta, in_memory, room).unwrap();
        run.file().set_limit(if in_memory { 1 << 20 } else { 2 * crate::blocks::BLOCK });
        for key in 0..41 {
            let mut found = Vec::new();
            run.lookup(key * spread, most, &mut found).unwrap();
            let naive = postings.iter().filter(|posting| posting.0 == key).map(|posting| first + posting.1);
            prop_assert_eq!(found, naive.take(most).collect::<Vec<_>>());
        }
        let mut all = run.postings().unwrap();
        for (key, doc) in &postings {
            prop_assert_eq!(all.next().unwrap(), Some((key * spread, first + doc)));
        }
        prop_assert_eq!(all.next().unwrap(), None);
        prop_assert_eq!(run.record(first + 899).unwrap().key, 899 << 40);
        prop_assert_eq!(run.documents().count(), docs as usize);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every centre has the sketch that it was given, and others have none.
    #[test]
    fn sketches_are_those_of_their_centres(
        is_centre in prop::collection::vec(any::<bool>(), 1..300),
        first in 0u32..50,
        minima in 1u32..90,
        low_bytes: bool,
    ) {
        let dir = fast_dir();
        let storage = Faulty::never();
        let docs = is_centre.len() as u32;
        let plan = RunPlan { number: 7, first, docs, names: 3, sketch: SketchShape { minima, low_bytes } };
        let mut writer = RunWriter::create(storage.as_ref(), dir.path(), plan).unwrap();
        let sketch = |doc: u32| -> Vec<u32> { (0..minima).map(|i| doc * 1000 + i).collect() };
        for (doc, is_centre) in (first..).zip(&is_centre) {
            let centre = if *is_centre { doc } else { doc + 1 };
            writer.push_document(doc, Record { fp: 1, centre, key: 0 }).unwrap();
        }
        writer.push_names(&[1, 0, 7]).unwrap();
        writer.begin_sketches().unwrap();
        let centres: Vec<u32> = (first..).zip(&is_centre).filter(|(_, is)| **is).map(|(doc, _)| doc).collect();
        centres.iter().for_each(|doc| writer.push_sketch(&sketch(*doc)).unwrap());
        writer.push_posting(5, first).unwrap();
        let meta = writer.finish().unwrap();
        prop_assert_eq!(meta.centres as usize, centres.len());
        let run = Run::open(dir.path(), meta, true, Room::All).unwrap();
        run.check_sketches().unwrap();
        let salvage = Salvage::open(dir.path(), meta).unwrap();
        let kept = |doc| sketch(doc).into_iter().map(|minimum| meta.sketch.kept(minimum)).collect::<Vec<_>>();
        for doc in first..first + docs {
            let expected = centres.contains(&doc).then(|| kept(doc));
            prop_assert_eq!(run.sketch(doc).unwrap(), expected.clone());
            prop_assert_eq!(salvage.sketch(doc), expected);
            prop_assert_eq!(meta.sketch.agreement(&sketch(doc), &kept(doc)), Some(minima as usize));
            prop_assert_eq!(meta.sketch.agreement(&sketch(doc), &vec![LOST_MINIMUM; minima as usize]), None);
        }
        let mut found = Vec::new();
        run.lookup(5, 9, &mut found).unwrap();
        prop_assert_eq!(found, [first]);
        prop_assert_eq!(run.name(0).unwrap(), [7]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_content_is_read_or_an_error(content in prop::collection::vec(any::<u8>(), 0..3000)) {
        let dir = fast_dir();
        let _ = crate::untrusted::run(dir.path(), &content);
    }
}

#[test]
fn a_posting_is_56_bits_for_every_size() {
    for docs in [1, 2, 3, 4, 5, 1000, 1 << 20, (1 << 20) + 1, u32::MAX] {
        let shape = Shape::new(docs);
        assert!(shape.rest_bits() + shape.doc_bits <= 56, "{docs}");
        let key = (1 << KEY_BITS) - 12_345;
        assert_eq!(shape.unpack(shape.bucket(key), shape.pack(key, docs - 1)), (key, docs - 1));
    }
}
