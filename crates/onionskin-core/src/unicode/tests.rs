use std::collections::BTreeMap;

use super::*;

mod against_icu;
mod naive;

fn scalars() -> impl Iterator<Item = char> {
    '\0'..=char::MAX
}

fn folded(text: &str) -> String {
    text.chars().flat_map(fold).collect()
}

fn normal(text: &str, form: Form) -> String {
    let mut out = String::new();
    normalize_into(text, form, &mut out);
    out
}

/// 64-bit FNV-1a.
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// A string and an end that no UTF-8 contains.
    fn write_str(&mut self, text: &str) {
        self.write(text.as_bytes());
        self.write(&[0xff]);
    }
}

/// The meaning of the tables, not their layout. When one of these fails, stored fingerprints no
/// longer mean what they did: do not correct the number, find out what changed.
mod frozen {
    use super::*;

    fn check(expected: u64, each: impl Fn(&mut Fnv, char)) {
        let mut sum = Fnv::new();
        scalars().for_each(|c| each(&mut sum, c));
        assert_eq!(sum.0, expected, "got {:#018x}", sum.0);
    }

    #[test]
    fn version() {
        assert_eq!(UNICODE_VERSION, "18.0.0");
    }

    #[test]
    fn classes() {
        check(0x8f27_7dcf_2c41_6725, |sum, c| sum.write(&[class(c) as u8]));
    }

    #[test]
    fn foldings() {
        check(0x8e9c_5051_457c_5d7c, |sum, c| sum.write_str(&fold(c).into_iter().collect::<String>()));
    }

    #[test]
    fn normal_forms_of_characters() {
        check(0x45b9_54c7_4085_d5c8, |sum, c| {
            let mut buffer = [0; 4];
            let text = c.encode_utf8(&mut buffer);
            sum.write_str(&normal(text, Form::Nfc));
            sum.write_str(&normal(text, Form::Nfkc));
        });
    }

    #[test]
    fn composition_and_order() {
        let mut sum = Fnv::new();
        for &(first, second, joined) in &tables::COMPOSITES {
            sum.write_str(&String::from_iter([first, second, joined]));
        }
        for c in scalars() {
            sum.write(&[normal::combining_class(c)]);
        }
        assert_eq!(sum.0, 0x4f47_e476_f303_5751, "got {:#018x}", sum.0);
    }

    #[test]
    fn suspects() {
        check(0xc1b7_8936_27bb_6488, |sum, c| {
            let entry = lookup(c);
            sum.write(&[entry.is_suspect(Form::Nfc).into(), entry.is_suspect(Form::Nfkc).into()]);
        });
    }
}

#[test]
fn the_hot_tables_are_small() {
    assert!(size_of_val(&ENTRY_INDEX) + size_of_val(&ENTRY_BLOCKS) <= 60_000);
}

#[test]
fn entry_and_functions_agree() {
    for c in scalars() {
        let entry = lookup(c);
        assert_eq!(entry.class(), class(c), "{c:?}");
        assert_eq!(entry.fold(c), fold(c), "{c:?}");
        assert_eq!(entry.folds(), fold(c).as_slice() != [c], "{c:?}");
        assert_eq!(fold(c).into_iter().len(), fold(c).as_slice().len(), "{c:?}");
    }
}

#[test]
fn an_entry_of_another_character_folds_without_panic() {
    for c in ['\0', 'Σ', '\u{d7ff}', '\u{e000}', char::MAX] {
        for bits in (0..=u16::MAX).step_by(16) {
            let fold = Entry(bits).fold(c);
            assert!((1..=3).contains(&fold.as_slice().len()));
        }
    }
}

#[test]
fn ascii_classes() {
    for c in '\0'..='\x7f' {
        let expected = if c.is_ascii_alphanumeric() { CharClass::Word } else { CharClass::Separator };
        assert_eq!(class(c), expected, "{c:?}");
    }
}

/// One line a script or kind of character; every character of a line has the line's class.
#[test]
fn classes_by_script() {
    use CharClass::*;
    let samples = [
        // Scripts with spaces, and numbers of all scripts.
        (Word, "Latin AzßæøłŁǅʔꟼ𝼀 ＡｚＺ"),
        (Word, "Greek αΩςἈ"),
        (Word, "Cyrillic яЖѣꙮ"),
        (Word, "Armenian աՖև Georgian აჰᲐ Coptic ⲁ Glagolitic Ⰰ Gothic 𐌰"),
        (Word, "Hebrew את Arabic عيٱ Syriac ܐ Thaana ހ NKo ߊ Samaritan ࠀ Mandaic ࡀ"),
        (Word, "Devanagari कऄ Bengali ক Gurmukhi ਕ Gujarati ક Oriya କ Tamil க Telugu క"),
        (Word, "Kannada ಕ Malayalam ക Sinhala ක Tibetan ཀ"),
        (Word, "Ethiopic ሀ Cherokee Ꭰꭰ Canadian ᐁ Ogham ᚁ Runic ᚠ Tagalog ᜀ Mongolian ᠠ"),
        (Word, "Limbu ᤀ Buginese ᨀ Sundanese ᮃ Batak ᯀ Lepcha ᰀ OlChiki ᱚ Tifinagh ⴰ"),
        (Word, "Lisu ꓐ Vai ꔀ Bamum ꚠ PhagsPa ꡀ Saurashtra ꢂ KayahLi ꤊ Rejang ꤰ Cham ꨀ Meetei ꫠ"),
        (Word, "LinearA 𐘀 LinearB 𐀀 Carian 𐊠 Ugaritic 𐎀 Deseret 𐐀 Osage 𐒰 Avestan 𐬀 Garay 𐵐"),
        (Word, "Brahmi 𑀅 Chakma 𑄃 Grantha 𑌅 Tirhuta 𑒁 Siddham 𑖀 Takri 𑚀 WarangCiti 𑢠 Adlam 𞤀"),
        (Word, "Hangul 가힣각ㄱﾡ"),
        (Word, "Katakana アヿㇰｱ𛀀ヽ"),
        (Word, "0９٣३๓໓៣၃²½Ⅷ①㉑𝟘"),
        // Without spaces, by character.
        (Single, "漢㐀𠀀𪜀𰀀𲎰豈﨎々〇〆〡㊀㈠"),
        (Single, "ひゞゟ𛀁𛄲"),
        (Single, "ㄅㆠ"),
        (Single, "ꀀ𗀀𘠀𛅰𘬀𘸀𽀀𒀀𓀀𔐀"),
        // Without spaces, by dictionary.
        (Cluster, "กๆเาะ"),
        (Cluster, "ກໆ"),
        (Cluster, "កឥ"),
        (Cluster, "ကဥꩠꧠ"),
        (Cluster, "ᥐᦀᨠꪀ𑜀ᬅꦄ"),
        // Attached.
        (
            Mark,
            "\u{301}\u{483}\u{5b0}\u{64b}\u{93e}\u{94d}\u{e31}\u{f71}\u{1ab0}\u{20dd}\u{3099}\u{a67c}\u{fe20}",
        ),
        (Mark, "\u{903}\u{16ff0}\u{1d165}\u{1e8d0}\u{200c}\u{200d}ーｰﾞﾟ"),
        // Invisible.
        (Ignored, "\u{ad}\u{34f}\u{61c}\u{115f}\u{180b}\u{180e}\u{200b}\u{200e}\u{202e}\u{2060}\u{2066}"),
        (Ignored, "\u{3164}\u{fe00}\u{fe0f}\u{feff}\u{ffa0}\u{e0001}\u{e0020}\u{e007f}\u{e0100}\u{e01ef}"),
        // Everything else.
        (Separator, " \t\n\u{85}\u{a0}\u{2028}\u{3000}_-'’‘ʼʻʽˮ.,;:!?…—–·・،؟।။་。、「」"),
        (Separator, "+<=>|~$€©°№℃→∑█☃😀🇩♥️"),
        (Separator, "\u{600}\u{6dd}\u{fff9}\u{fffc}\u{fffd}\u{fffe}\u{e000}\u{f8ff}\u{f0000}\u{10ffff}"),
        // Unassigned in the frozen version.
        (Separator, "\u{378}\u{530}\u{1fff}\u{2fe0}\u{40000}\u{e0000}\u{e0002}\u{e0080}\u{e01f0}\u{e0fff}"),
    ];
    for (expected, sample) in samples {
        for c in sample.chars() {
            // The names of scripts are Latin, and emoji come with variation selectors.
            if c == ' '
                || (c.is_ascii_alphanumeric() && expected != Word)
                || (c == '\u{fe0f}' && expected != Ignored)
            {
                continue;
            }
            assert_eq!(class(c), expected, "{c:?} U+{:04X}", u32::from(c));
        }
    }
}

/// The toolchain's tables may be of another version; where both know a letter they must agree.
#[test]
fn letters_and_digits_of_the_toolchain_are_in_tokens() {
    let mut strays = BTreeMap::new();
    for c in scalars().filter(|c| c.is_alphanumeric()) {
        let class = class(c);
        if matches!(class, CharClass::Separator | CharClass::Ignored) {
            *strays.entry(u32::from(c) >> 8).or_insert(0) += 1;
        }
    }
    // Apostrophes; Hangul fillers; Khmer inherent vowels; circled letters, which are symbols;
    // halfwidth filler.
    let expected = BTreeMap::from([(0x02, 4), (0x11, 2), (0x24, 52), (0x31, 1), (0xff, 1), (0x1f1, 78)]);
    assert_eq!(strays, expected);
}

#[test]
fn spaces_separate() {
    for c in scalars().filter(|c| c.is_whitespace() || c.is_control()) {
        let expected = if c == '\u{ad}' { CharClass::Ignored } else { CharClass::Separator };
        assert_eq!(class(c), expected, "{c:?}");
    }
}

#[test]
fn foldings_of_all_kinds() {
    // As `str.casefold` gives them.
    let samples = [
        ("Straße STRASSE ẞ", "strasse strasse ss"),
        ("Σίσυφος ΣΊΣΥΦΟΣ", "σίσυφοσ σίσυφοσ"),
        ("ЁЖИК Їжак", "ёжик їжак"),
        ("İstanbul Iı", "i\u{307}stanbul iı"),
        ("ﬀ ﬃ ﬅ ﬓ", "ff ffi st մն"),
        ("ŉ ǰ ΐ և ẖ", "ʼn j\u{30c} ι\u{308}\u{301} եւ h\u{331}"),
        ("ᾳ ᾼ ᾀ ᾷ ῼ", "αι αι ἀι α\u{342}ι ωι"),
        ("Å K Ω µ ſ ẛ", "å k ω μ s ṡ"),
        ("ᏸ ꭰ Ꭰ", "Ᏸ Ꭰ Ꭰ"),
        ("Ǆ ǅ ǆ", "ǆ ǆ ǆ"),
        ("Ⅷ Ⓐ Ａ 𐐀 𞤀 Ა", "ⅷ ⓐ ａ 𐐨 𞤢 ა"),
        // Younger than Unicode 14.
        ("\u{1c89} \u{a7cb} \u{a7dc} \u{10d50} \u{16ea0}", "\u{1c8a} \u{264} \u{19b} \u{10d70} \u{16ebb}"),
        ("\u{a7e2} \u{1df40} \u{1df95}", "\u{27c} \u{1df41} ss"),
        ("漢字 ひらがな 한글 กขค עברית عربي", "漢字 ひらがな 한글 กขค עברית عربي"),
        ("\u{378} \u{10ffff}", "\u{378} \u{10ffff}"),
    ];
    for (text, expected) in samples {
        assert_eq!(folded(text), expected);
    }
}

#[test]
fn a_character_and_its_lower_case_fold_alike() {
    for c in scalars() {
        // Only what the frozen version knows: a later toolchain has more pairs.
        if class(c) == CharClass::Separator && !lookup(c).folds() {
            continue;
        }
        let lower: String = c.to_lowercase().collect();
        assert_eq!(folded(&lower), fold(c).into_iter().collect::<String>(), "U+{:04X}", u32::from(c));
    }
}

#[test]
fn folding_twice_is_folding_once() {
    for c in scalars() {
        let once: String = fold(c).into_iter().collect();
        assert_eq!(folded(&once), once, "U+{:04X}", u32::from(c));
    }
}
