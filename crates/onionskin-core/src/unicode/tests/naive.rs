//! Normalisation word by word as the standard defines it, over the same tables but with none of the
//! shortcuts.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::super::normal::{combining_class, decomposition, naive_pair, pair};
use super::*;

const FORMS: [Form; 2] = [Form::Nfc, Form::Nfkc];

/// Decompose everything, swap neighbours until all are in order, join each character with any
/// starter before it that it is not blocked from.
fn naive_normal(text: &str, form: Form) -> String {
    let mut chars: Vec<char> = text.chars().flat_map(|c| decomposition(c, form)).collect();
    let mut swapped = true;
    while swapped {
        swapped = false;
        for i in 1..chars.len() {
            let (a, b) = (combining_class(chars[i - 1]), combining_class(chars[i]));
            if b != 0 && a > b {
                chars.swap(i - 1, i);
                swapped = true;
            }
        }
    }
    let mut i = 1;
    while i < chars.len() {
        let class = combining_class(chars[i]);
        let starter = (0..i).rev().find(|&j| combining_class(chars[j]) == 0);
        let joined = starter.and_then(|j| {
            // D115: blocked by anything between that is a starter or of the same or a higher class.
            let blocked =
                chars[j + 1..i].iter().any(|&b| combining_class(b) == 0 || combining_class(b) >= class);
            if blocked { None } else { naive_pair(chars[j], chars[i]).map(|c| (j, c)) }
        });
        match joined {
            Some((j, c)) => {
                chars[j] = c;
                chars.remove(i);
            }
            None => i += 1,
        }
    }
    chars.into_iter().collect()
}

/// Characters that do something to each other, and a few that do not.
fn lively_char() -> impl Strategy<Value = char> {
    let lively: Vec<char> = concat!(
        "aeoAKſω ﬁ①Å½",
        "\u{301}\u{300}\u{308}\u{307}\u{323}\u{327}\u{328}\u{31b}\u{338}\u{345}\u{344}\u{340}\u{5b0}\u{64b}\u{670}",
        "ǖéệṩΐᾳ\u{958}\u{93c}\u{915}\u{94d}\u{9c7}\u{9be}\u{9d7}\u{9cb}\u{bc6}\u{bbe}\u{b92}\u{bd7}",
        "\u{dd9}\u{dca}\u{dcf}\u{ddd}\u{f71}\u{f72}\u{f73}\u{f75}\u{f81}\u{f40}\u{fb5}\u{f69}\u{1025}\u{102e}",
        "\u{1100}\u{1161}\u{11a8}\u{11a7}\u{1175}\u{11c2}\u{1112}가각힣\u{3131}\u{314f}\u{ffa1}\u{ffc2}",
        "\u{304b}\u{3099}\u{309a}が\u{ff76}\u{ff9e}\u{30ab}\u{fdfa}\u{2126}\u{212b}\u{f900}\u{2f800}\u{fb1d}",
        "\u{11099}\u{110ba}\u{1109a}\u{11131}\u{11127}\u{113c2}\u{113b8}\u{113c5}\u{11382}\u{113c9}",
        "\u{16d63}\u{16d67}\u{16d68}\u{16d69}\u{16d6a}\u{1d157}\u{1d165}\u{1d15e}\u{1d16e}\u{1d1bb}",
        "\u{34f}\u{200d}\u{fe0f}\u{378}\u{e0100}"
    )
    .chars()
    .collect();
    prop_oneof![
        8 => prop::sample::select(lively),
        2 => prop::char::range('\u{300}', '\u{36f}'),
        1 => any::<char>(),
    ]
}

pub(super) fn lively_text() -> impl Strategy<Value = String> {
    prop::collection::vec(lively_char(), 0..24).prop_map(String::from_iter)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn normalising_is_as_defined(text in lively_text()) {
        for form in FORMS {
            prop_assert_eq!(normal(&text, form), naive_normal(&text, form));
        }
    }

    #[test]
    fn the_check_is_exact(text in lively_text()) {
        for form in FORMS {
            let normal = normal(&text, form);
            prop_assert_eq!(is_normalized(&text, form), normal == text);
            prop_assert!(is_normalized(&normal, form));
        }
    }

    #[test]
    fn normalising_twice_is_normalising_once(text in lively_text()) {
        for form in FORMS {
            let once = normal(&text, form);
            prop_assert_eq!(normal(&once, form), once);
        }
    }

    /// What `Entry::is_suspect` promises to those who cut a text.
    #[test]
    fn a_character_that_is_not_suspect_is_a_border(before in lively_text(), border in lively_char(), after in lively_text()) {
        for form in FORMS {
            if lookup(border).is_suspect(form) {
                continue;
            }
            let after = format!("{border}{after}");
            let whole = normal(&format!("{before}{after}"), form);
            prop_assert_eq!(whole, normal(&before, form) + &normal(&after, form));
        }
    }

    /// Long enough for whole words of ASCII on either side, and at every alignment.
    #[test]
    fn ascii_around_changes_nothing(left in "[ -~]{0,40}", text in lively_text(), right in "[ -~]{0,40}") {
        let whole = format!("{left}{text}{right}{text}");
        for form in FORMS {
            prop_assert_eq!(normal(&whole, form), naive_normal(&whole, form));
            prop_assert_eq!(is_normalized(&whole, form), naive_normal(&whole, form) == whole);
        }
    }
}

#[test]
fn every_character_alone_and_after_a_letter() {
    for c in scalars() {
        // Nearly all characters are in no table; one in a block of those will do.
        if u32::from(c) >= 0x30000 && u32::from(c) % 64 != 0 {
            continue;
        }
        for form in FORMS {
            let alone = c.to_string();
            assert_eq!(normal(&alone, form), naive_normal(&alone, form), "U+{:04X}", u32::from(c));
            let after = format!("\u{16d67}{c}\u{323}");
            assert_eq!(normal(&after, form), naive_normal(&after, form), "U+{:04X}", u32::from(c));
        }
    }
}

#[test]
fn what_is_not_suspect_stays() {
    for c in scalars() {
        for form in FORMS {
            let text = c.to_string();
            if !lookup(c).is_suspect(form) {
                assert_eq!(normal(&text, form), text, "U+{:04X}", u32::from(c));
            }
            assert_eq!(is_normalized(&text, form), normal(&text, form) == text, "U+{:04X}", u32::from(c));
        }
    }
}

#[test]
fn all_pairs_of_jamo() {
    for first in ('\u{1100}'..='\u{1112}').chain(['가', '각', '힣', 'a']) {
        for second in '\u{1160}'..='\u{11c3}' {
            let text = String::from_iter([first, second]);
            assert_eq!(normal(&text, Form::Nfc), naive_normal(&text, Form::Nfc), "{text:?}");
        }
    }
}

#[test]
fn the_table_of_pairs_holds_all_pairs_and_no_others() {
    let firsts: BTreeSet<char> = tables::COMPOSITES.iter().map(|&(first, _, _)| first).collect();
    let seconds: BTreeSet<char> = tables::COMPOSITES.iter().map(|&(_, second, _)| second).collect();
    let joined: BTreeMap<_, _> = tables::COMPOSITES.iter().map(|&(a, b, c)| ((a, b), c)).collect();
    assert_eq!(joined.len(), tables::COMPOSITES.len());
    for &first in &firsts {
        for &second in &seconds {
            assert_eq!(pair(first, second), joined.get(&(first, second)).copied(), "{first:?} {second:?}");
        }
    }
    assert_eq!(pair('\0', '\0'), None);
    assert_eq!(pair(char::MAX, char::MAX), None);
}

#[test]
fn appends() {
    let mut out = String::from("e");
    normalize_into("\u{301}e\u{301}", Form::Nfc, &mut out);
    assert_eq!(out, "e\u{301}é");
}

#[test]
fn samples() {
    let samples = [
        (Form::Nfc, "", ""),
        (Form::Nfc, "e\u{323}\u{302}", "ệ"),
        (Form::Nfc, "e\u{302}\u{323}", "ệ"),
        (Form::Nfc, "ﬁ Å", "ﬁ Å"),
        (Form::Nfkc, "ﬁ Å Ａ ① ㍿ ｶﾞ", "fi Å A 1 株式会社 ガ"),
        (Form::Nfc, "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}", "한글"),
        (Form::Nfc, "\u{915}\u{93c} \u{958}", "\u{915}\u{93c} \u{915}\u{93c}"),
        // Not joined: the same class stands between.
        (Form::Nfc, "a\u{305}\u{301}", "a\u{305}\u{301}"),
        // Joined over a lower class.
        (Form::Nfc, "a\u{328}\u{334}\u{301}", "ą\u{334}\u{301}"),
    ];
    for (form, text, expected) in samples {
        assert_eq!(normal(text, form), expected, "{text:?}");
        assert_eq!(is_normalized(text, form), text == expected, "{text:?}");
    }
}

/// A page may be one letter and a million accents.
#[test]
fn a_million_marks_are_sorted_once() {
    let marks: String =
        ['\u{334}', '\u{301}', '\u{323}', '\u{345}'].into_iter().rev().cycle().take(1_000_000).collect();
    let text = format!("q{marks}");
    let result = normal(&text, Form::Nfc);
    assert_eq!(result.len(), text.len());
    assert!(result.chars().map(combining_class).is_sorted());
    assert!(!is_normalized(&text, Form::Nfc));
    assert!(is_normalized(&result, Form::Nfc));

    // Starters that may join: one segment without a sort.
    let vowels = "\u{1161}".repeat(1_000_000);
    assert!(is_normalized(&vowels, Form::Nfkc));
    assert_eq!(normal(&vowels, Form::Nfkc), vowels);

    // The longest expansion there is.
    let ligatures = "\u{fdfa}".repeat(100_000);
    assert_eq!(normal(&ligatures, Form::Nfkc).chars().count(), 1_800_000);
}
