use proptest::prelude::*;

use super::*;

fn check(text: &str, expected: &[&str]) {
    assert_eq!(words_of(text), expected, "{text:?}");
}

#[test]
fn case_accents_and_encodings_fall_away() {
    check("Café, CAFE\u{301} cafe!", &["cafe", "cafe", "cafe"]);
    check("Straße STRASSE", &["strasse", "strasse"]);
    check("ﬁne ＦＩＮＥ", &["fine", "fine"]);
    check("Ångström’s x-ray_2", &["angstrom", "s", "x", "ray", "2"]);
    check("Привет ΐ", &["привет", "ι"]);
}

#[test]
fn scripts_without_spaces_are_cut() {
    check("東京タワー 2024", &["東", "京", "タワー", "2024"]);
    check("ひらがな", &["ひ", "ら", "か\u{3099}", "な"]);
    check("שלום עולם", &["שלום", "עולם"]);
    check("한국어 검색", &words_of("한국어 검색").iter().map(String::as_str).collect::<Vec<_>>());
    assert_eq!(words_of("한국어 검색").len(), 2);
}

#[test]
fn what_has_no_words_has_none() {
    check("", &[]);
    check(" .,;!— … \u{301}\u{301} 😀", &[]);
    check(&"x".repeat(81), &[]);
    check(&format!("{} end", "é".repeat(200)), &["end"]);
}

proptest! {
    /// Ranges ascend and lie on characters; the words of what stands in a range are the word.
    #[test]
    fn words_stand_where_they_are_said_to(text in "[aÉß東ひ\u{301}ー1 .😀\u{200d}ﬁא]{0,24}") {
        let mut words = Words::new(&text);
        let (mut word, mut end) = (String::new(), 0);
        while let Some(range) = words.next_into(&mut word) {
            prop_assert!(range.start >= end && range.end > range.start);
            end = range.end;
            prop_assert_eq!(words_of(&text[range]), [word.clone()]);
        }
    }
}
