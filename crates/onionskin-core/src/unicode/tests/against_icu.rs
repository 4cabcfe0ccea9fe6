//! The tables and the algorithm against an implementation that shares neither. Its data is of the
//! same Unicode version today; when an update brings characters that the frozen tables do not know,
//! leave those out here.

use icu_normalizer::{ComposingNormalizer, ComposingNormalizerBorrowed};
use proptest::prelude::*;

use super::naive::lively_text;
use super::*;

fn icu() -> [(Form, ComposingNormalizerBorrowed<'static>); 2] {
    [(Form::Nfc, ComposingNormalizer::new_nfc()), (Form::Nfkc, ComposingNormalizer::new_nfkc())]
}

#[test]
fn every_character() {
    for (form, icu) in icu() {
        for c in scalars() {
            let text = c.to_string();
            assert_eq!(normal(&text, form), icu.normalize(&text), "U+{:04X} {form:?}", u32::from(c));
            assert_eq!(
                is_normalized(&text, form),
                icu.is_normalized(&text),
                "U+{:04X} {form:?}",
                u32::from(c)
            );
        }
    }
}

#[test]
fn every_character_between_marks() {
    for (form, icu) in icu() {
        for c in scalars().filter(|&c| lookup(c).class() != CharClass::Separator) {
            let text = format!("o\u{345}{c}\u{301}\u{323}{c}\u{3099}");
            assert_eq!(normal(&text, form), icu.normalize(&text), "U+{:04X} {form:?}", u32::from(c));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn texts(text in lively_text()) {
        for (form, icu) in icu() {
            prop_assert_eq!(normal(&text, form), icu.normalize(&text));
            prop_assert_eq!(is_normalized(&text, form), icu.is_normalized(&text));
        }
    }
}
