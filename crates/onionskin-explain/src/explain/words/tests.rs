use super::*;
use proptest::prelude::*;

fn cut(text: &str) -> Words {
    Cutter::new(&Recipe::default()).cut(text)
}

/// The pieces of a text, each with the punctuation that goes with it.
fn pieces(text: &str) -> Vec<&str> {
    let words = cut(text);
    let borders: Vec<usize> =
        (0..=words.len()).filter(|at| words.can_cut(*at)).map(|at| words.place(at)).collect();
    borders.windows(2).map(|w| text[w[0]..w[1]].trim()).collect()
}

#[test]
fn punctuation_goes_with_its_word() {
    assert_eq!(pieces("  (A rose) is-a \"rose\"."), ["(A", "rose)", "is-", "a", "\"rose\"."]);
    assert_eq!(pieces("one -- two *** three!"), ["one --", "two ***", "three!"]);
    assert_eq!(pieces("... ---"), Vec::<&str>::new());
    assert_eq!(pieces("x “quoted” y"), ["x", "“quoted”", "y"]);
}

#[test]
fn scripts_without_spaces_are_cut() {
    assert_eq!(pieces("我们的 web站"), ["我", "们", "的", "web", "站"]);
    assert_eq!(pieces("ภาษาไทย").concat(), "ภาษาไทย");
    assert!(pieces("ภาษาไทย").len() > 3);
}

#[test]
fn a_text_has_the_fingerprint_of_the_scan() {
    let recipe = Recipe::default();
    let text = "Ein Text, mit “Zeichen” und 中文字.";
    let mut analyzer = onionskin_core::Analyzer::new(&recipe, 1);
    let analysis = analyzer.analyze(text);
    assert_eq!(cut(text).text_fp(&recipe), analysis.text_fp().map(|fingerprint| fingerprint.0));
    assert_eq!(cut(" .. ").text_fp(&recipe), None);
}

proptest! {
    #[test]
    fn tokens_are_those_of_the_scan(
        text in "([a-cA-C0-9]{0,9}|[ .,\n\t-]{1,3}|[äß中文ひらไทे́\u{301}\u{3000}\u{a0}ＡΐΪ“”—가\u{1100}\u{1161}]{1,4}){0,12}|.{0,40}",
        nfkc: bool,
    ) {
        let recipe: Recipe = if nfkc { "w4-nfkc-rabin64-t8" } else { "w4-rabin32-t8" }.parse().unwrap();
        let mut whole = Tokens::default();
        Tokenizer::new(Unit::Word, recipe.form(), recipe.width()).tokenize(&text, &mut whole);
        let words = Cutter::new(&recipe).cut(&text);
        prop_assert_eq!(&words.tokens, whole.remainders());
        let places: Vec<usize> = (0..=words.len()).map(|at| words.place(at)).collect();
        prop_assert!(places.is_sorted());
        prop_assert!(places.iter().all(|place| text.is_char_boundary(*place)));
        // Every piece has the tokens that it is said to have, and no other.
        let borders: Vec<usize> = (0..=words.len()).filter(|at| words.can_cut(*at)).collect();
        for pair in borders.windows(2) {
            let mut part = Tokens::default();
            let text = &text[words.place(pair[0])..words.place(pair[1])];
            Tokenizer::new(Unit::Word, recipe.form(), recipe.width()).tokenize(text, &mut part);
            prop_assert_eq!(part.remainders(), &words.tokens[pair[0]..pair[1]]);
        }
    }
}
