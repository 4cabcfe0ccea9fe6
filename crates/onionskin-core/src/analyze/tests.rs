use proptest::prelude::*;

use super::*;
use crate::rabin::Width;

fn analyzer(recipe: &str) -> Analyzer {
    Analyzer::new(&recipe.parse().unwrap(), 1)
}

/// Broder 2000, section 2.
#[test]
fn a_rose_is_a_rose_is_a_rose() {
    let mut analyzer = analyzer("w4-rabin64-6x14r2+w4");
    let analysis = analyzer.analyze("a rose is a rose is a rose");
    assert_eq!(analysis.tokens(), 8);
    let rabin = Rabin::new(Purpose::Chunks, Width::Bits64);
    let [a, rose, is] = ["a", "rose", "is"].map(|word| rabin.word(word.as_bytes()));
    let expected =
        [[a, rose, is, a], [rose, is, a, rose], [is, a, rose, is]].map(|shingle| rabin.sequence(&shingle));
    assert_eq!(analysis.chunks(0), expected);
}

/// Computed by an independent program from the definitions.
#[test]
fn frozen() {
    let mut analyzer = analyzer(Recipe::PAPERS);
    let analysis =
        analyzer.analyze("Onionskin is the thin paper of carbon copies.\nIt shows what lies under it.\n");
    assert_eq!(analysis.text_fp(), Some(Fingerprint(0x97e7_da2c_c88a_c4cd)));
    assert_eq!(analysis.features()[0], 0x52a7_5c97_b469_bca3);
    assert_eq!(analysis.sketch()[..2], [0x061c_f26f, 0x272e_6cea]);
    let first_chunks: Vec<u64> = (0..4).map(|nth| analysis.chunks(nth)[0]).collect();
    assert_eq!(
        first_chunks,
        [0x42a5_cdfc_ab53_821b, 0x7668_6627_4345_9beb, 0x7668_6627_4345_9beb, 0x38a3_f69a_ccda_b484]
    );
}

#[test]
fn a_fingerprint_alone_is_the_same() {
    let texts = ["", "...", "One.", "Ｆｕｌｌ width, ﬁne\nand lines\n", "東京は夜の七時", "a rose is a rose"];
    for recipe in [Recipe::DEFAULT, Recipe::PAPERS, "l2-rabin32-t8+l2", "w4-nfkc-rabin64-6x14r2"] {
        let mut alone = TextFingerprinter::new(&recipe.parse().unwrap());
        let mut analyzer = analyzer(recipe);
        for text in texts {
            assert_eq!(alone.text_fp(text), analyzer.analyze(text).text_fp(), "{recipe}: {text:?}");
        }
    }
}

#[test]
fn an_empty_document_has_nothing() {
    let mut analyzer = analyzer("w4-rabin64-6x14r2+sketch+w4+l2+sp+sent+para+doc");
    analyzer.analyze("something that leaves its traces behind");
    for text in ["", " \n\t", "... !!! --- ", "\u{200b}"] {
        let analysis = analyzer.analyze(text);
        assert_eq!((analysis.tokens(), analysis.text_fp()), (0, None), "{text:?}");
        assert!(analysis.sketch().is_empty() && analysis.features().is_empty());
        assert!((0..6).all(|nth| analysis.chunks(nth).is_empty()), "{text:?}");
    }
}

#[test]
fn a_document_shorter_than_a_shingle_has_one_shingle() {
    let mut analyzer = analyzer("w8-rabin64-6x14r2+w8");
    let one = analyzer.analyze("one").chunks(0).to_vec();
    let two = analyzer.analyze("one two").chunks(0).to_vec();
    assert_eq!((one.len(), two.len()), (1, 1));
    assert_ne!(one, two);
    assert_eq!(analyzer.analyze("ONE!").chunks(0), one);
    let features = analyzer.analyze("one").features().to_vec();
    assert_eq!(features.len(), 6);
    assert!(analyzer.analyze("two").features().iter().zip(&features).all(|(a, b)| a != b));
}

#[test]
fn line_chunks_do_not_overlap_and_skip_blank_lines() {
    let mut analyzer = analyzer("l2-rabin64-t8+l2+l4+ls2");
    let counts = |analyzer: &mut Analyzer, text: &str| {
        let analysis = analyzer.analyze(text);
        [0, 1, 2].map(|nth| analysis.chunks(nth).len())
    };
    assert_eq!(counts(&mut analyzer, "a\n\nb\n--\nc\nd\ne"), [3, 2, 4]);
    let with_blanks = analyzer.analyze("a\n\nb\n--\nc\nd\ne").chunks(0).to_vec();
    assert_eq!(analyzer.analyze("A\nB\nC\nD\nE\n").chunks(0), with_blanks);
    // Where a line breaks is part of a line chunk.
    let joined = analyzer.analyze("a b\nc\nd\ne").chunks(0).to_vec();
    assert!(joined.iter().all(|chunk| !with_blanks.contains(chunk)) || joined != with_blanks);
}

#[test]
fn narrow_fingerprints_are_narrow() {
    let mut analyzer = analyzer("w3-rabin32-b16+w3+sp+doc");
    let analysis = analyzer.analyze("to repeat the papers, thirty-two bits are enough");
    assert!((0..3).flat_map(|nth| analysis.chunks(nth)).all(|fingerprint| *fingerprint < 1 << 32));
    assert_eq!(analysis.sketch().len(), 16);
}

#[test]
fn what_is_kept_does_not_change_the_features() {
    let text = "the same words again and again, the same words again and again, and then some more of them";
    let lean = analyzer("w4-rabin64-6x14r2").analyze(text).features().to_vec();
    assert_eq!(analyzer(Recipe::DEFAULT).analyze(text).features(), lean);
}

proptest! {
    #[test]
    fn shingles_are_a_set_in_order(words in prop::collection::vec("[ab]", 0..60), w in 1usize..6) {
        let mut analyzer = analyzer(&format!("w{w}-rabin64-t8+w{w}"));
        let found = analyzer.analyze(&words.join(" ")).chunks(0).to_vec();
        let mut naive: Vec<&[String]> = vec![];
        let windows: Vec<&[String]> = if words.is_empty() { vec![] } else { words.windows(w.min(words.len())).collect() };
        for window in windows {
            if !naive.contains(&window) {
                naive.push(window);
            }
        }
        let rabin = Rabin::new(Purpose::Chunks, Width::Bits64);
        let naive: Vec<u64> = naive
            .iter()
            .map(|shingle| rabin.sequence(&shingle.iter().map(|word| rabin.word(word.as_bytes())).collect::<Vec<_>>()))
            .collect();
        prop_assert_eq!(found, naive);
    }

    #[test]
    fn chunks_alone_are_the_same_chunks(text in "([a-c]{1,3}[ .\n]{1,2}){0,40}") {
        let recipe = "w2-rabin64-2x3r1+w2+l2+sent+sp+doc+c4";
        let (mut whole, mut lean) = (analyzer(recipe), analyzer(recipe));
        whole.analyze("something before");
        let (whole, lean) = (whole.analyze(&text), lean.analyze_chunks(&text));
        for nth in 0..6 {
            prop_assert_eq!(whole.chunks(nth), lean.chunks(nth));
        }
        prop_assert_eq!(whole.tokens(), lean.tokens());
        prop_assert!(lean.sketch().is_empty() && lean.features().is_empty());
    }

    /// What a fresh analyzer holds afterwards, and copies of what is kept.
    #[test]
    fn memory_is_known_before(
        texts in prop::collection::vec(
            prop_oneof![any::<String>(), "[a-c. \n]{0,200}", "[é東กﷺﬃ½́ a]{0,60}", "(a\n|b[.]){0,100}"],
            1..3,
        ),
        nth in 0usize..4,
    ) {
        let recipe = [
            Recipe::DEFAULT,
            "c3-nfkc-rabin64-2x3r1+sketch+c3+w2+l2+sent+para+sp+doc+ls2",
            "w5-rabin64-14x5r1-one",
            "l2-rabin64-b8+l2+ls3",
        ][nth];
        let text = texts.concat();
        let mut analyzer = analyzer(recipe);
        let bound = analyzer.memory_for(&text);
        analyzer.analyze(&text);
        let mut held = 8 * analyzer.tokens.remainders().len() + 8 * analyzer.scratch.lines.len();
        held += analyzer.letters.as_ref().map_or(0, |(_, letters)| 8 * letters.remainders().len());
        for (place, chunker) in analyzer.chunkers.iter().enumerate() {
            let copies = analyzer.kept.iter().filter(|kept| **kept == place).count();
            held += 8 * chunker.fingerprints.len() * (1 + copies);
        }
        prop_assert!(held <= bound, "{held} > {bound} for {text:?}");
    }

    #[test]
    fn no_text_makes_it_fail(texts in prop::collection::vec(any::<String>(), 1..4)) {
        let mut reused = analyzer("c3-nfkc-rabin64-2x3r1+sketch+c3+w2+l2+sent+para+sp+doc+ls2");
        for text in &texts {
            let features = reused.analyze(text).features().to_vec();
            let fresh = analyzer("c3-nfkc-rabin64-2x3r1+sketch+c3+w2+l2+sent+para+sp+doc+ls2").analyze(text).features().to_vec();
            prop_assert_eq!(features, fresh);
        }
    }
}
