use proptest::prelude::*;

use super::*;

/// Tokens as text, a character at a time, without masks or remainders.
fn naive_words(text: &str, form: Form) -> Vec<Vec<String>> {
    text.split('\n')
        .map(|line| {
            let mut normalized = String::new();
            unicode::normalize_into(line, form, &mut normalized);
            let mut words: Vec<String> = vec![];
            // What may follow: anything that joins a word, marks only, or nothing.
            let mut open = false;
            let mut marks_only = false;
            for c in normalized.chars() {
                let folded: String = unicode::fold(c).into_iter().collect();
                match unicode::class(c) {
                    CharClass::Word if open && !marks_only => words.last_mut().unwrap().push_str(&folded),
                    CharClass::Word => {
                        words.push(folded);
                        (open, marks_only) = (true, false);
                    }
                    CharClass::Single | CharClass::Cluster => {
                        words.push(folded);
                        (open, marks_only) = (true, true);
                    }
                    CharClass::Mark if open => words.last_mut().unwrap().push(c),
                    CharClass::Separator => open = false,
                    CharClass::Mark | CharClass::Ignored => {}
                }
            }
            let settle = |word: &String| {
                let mut settled = String::new();
                unicode::normalize_into(word, form, &mut settled);
                settled
            };
            words.iter().map(settle).collect()
        })
        .collect()
}

fn tokens_of(text: &str, unit: Unit, form: Form) -> Tokens {
    let mut tokens = Tokens::default();
    // A used buffer must not show through.
    let mut tokenizer = Tokenizer::new(unit, form, Width::Bits64);
    tokenizer.tokenize("left\nover", &mut tokens);
    tokenizer.tokenize(text, &mut tokens);
    tokens
}

fn check(text: &str, form: Form) {
    let rabin = Rabin::new(Purpose::Chunks, Width::Bits64);
    let naive = naive_words(text, form);
    let expected: Vec<Vec<u64>> = naive
        .iter()
        .map(|line| line.iter().map(|word| rabin.word(word.as_bytes())).collect::<Vec<_>>())
        .filter(|line| !line.is_empty())
        .collect();
    let tokens = tokens_of(text, Unit::Word, form);
    let found: Vec<Vec<u64>> = tokens.lines().map(<[u64]>::to_vec).collect();
    assert_eq!(found, expected, "{text:?} should be {naive:?}");

    let mut in_one = Tokens::default();
    Tokenizer::new(Unit::Word, form, Width::Bits64).without_lines().tokenize(text, &mut in_one);
    assert_eq!(in_one.remainders(), tokens.remainders(), "without lines: {text:?}");
    assert!(in_one.lines().count() <= 1);

    let letters: Vec<u64> =
        naive.iter().flatten().flat_map(|word| word.chars()).map(|c| u64::from(u32::from(c))).collect();
    assert_eq!(tokens_of(text, Unit::Letter, form).remainders(), letters, "letters of {text:?}");
}

fn same(a: &str, b: &str) {
    assert_eq!(
        tokens_of(a, Unit::Word, Form::Nfc).remainders(),
        tokens_of(b, Unit::Word, Form::Nfc).remainders(),
        "{a:?} and {b:?}"
    );
}

#[test]
fn case_punctuation_and_white_space_do_not_matter() {
    same("A rose is a ROSE.", "a  rose\n\tis: a (rose)");
    same("Don't stop", "don’t—stop!");
    same("STRASSE ΌΣΟΣ", "straße όσος");
    same("ΐ ΰ ǰ ẖ", "Ϊ\u{301} Ϋ\u{301} J\u{30c} H\u{331}");
    same("re\u{301}sume\u{301}", "RÉSUMÉ");
}

#[test]
fn scripts_without_spaces_are_cut() {
    let count = |text: &str| tokens_of(text, Unit::Word, Form::Nfc).remainders().len();
    assert_eq!(count("東京都に住む"), 6);
    assert_eq!(count("コンピューター"), 1);
    assert_eq!(count("한국어 위키"), 2);
    assert!(count("ภาษาไทยเป็นภาษา") > 8);
    assert_eq!(count("abc東def"), 3);
    assert_eq!(count("naïve café"), 2);
}

#[test]
fn nfkc_folds_forms_that_nfc_keeps() {
    let nfkc = |text: &str| tokens_of(text, Unit::Word, Form::Nfkc).remainders().to_vec();
    assert_eq!(nfkc("ﬁne ＡＢＣ"), nfkc("fine abc"));
    assert_ne!(
        tokens_of("ﬁne ＡＢＣ", Unit::Word, Form::Nfc).remainders(),
        tokens_of("fine abc", Unit::Word, Form::Nfc).remainders()
    );
}

#[test]
fn lengths_around_a_block() {
    for length in [0, 1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 127, 128, 129, 200] {
        for pad in [0, 1, 7, 55, 63, 64] {
            check(&format!("{}{}", " ".repeat(pad), "x".repeat(length)), Form::Nfc);
            check(&format!("{}{} y\n", "z".repeat(pad), "É".repeat(length)), Form::Nfc);
        }
    }
}

#[test]
fn a_giant_word_is_one_token() {
    check(&"a".repeat(1 << 20), Form::Nfc);
    assert_eq!(tokens_of(&"a".repeat(1 << 20), Unit::Word, Form::Nfc).remainders().len(), 1);
}

fn check_spelling(text: &str, form: Form) {
    let naive: Vec<String> = naive_words(text, form).into_iter().flatten().collect();
    let words = canonical_words(text, form);
    assert_eq!(words, naive, "{text:?}");
    let mut tokens = Tokens::default();
    Tokenizer::new(Unit::Word, form, Width::Bits64).tokenize(text, &mut tokens);
    let rabin = Rabin::new(Purpose::Chunks, Width::Bits64);
    let remainders: Vec<u64> = words.iter().map(|word| rabin.word(word.as_bytes())).collect();
    assert_eq!(remainders, tokens.remainders(), "{text:?}");
}

proptest! {
    #[test]
    fn words_are_spelled_as_they_are_fingerprinted(text in "([a-zA-Z0-9 .,'\n]{0,20}|[éßΐΪИжΣ東のカ\u{301}\u{338}<ไำ한ﬁ’\u{ad}\u{200b}]{0,6}){0,20}") {
        check_spelling(&text, Form::Nfc);
        check_spelling(&text, Form::Nfkc);
    }

    #[test]
    fn tokens_equal_their_naive_twin(text in "([a-zA-Z0-9 .,'\n]{0,20}|[éßΐΪИжΣ東のカ\u{301}\u{338}<ไำ한ﬁ’\u{ad}\u{200b}]{0,6}){0,20}") {
        check(&text, Form::Nfc);
        check(&text, Form::Nfkc);
    }

    #[test]
    fn any_text_at_all(text in any::<String>()) {
        check(&text, Form::Nfc);
        check(&text, Form::Nfkc);
    }
}
