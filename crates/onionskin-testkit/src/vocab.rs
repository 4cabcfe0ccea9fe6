//! Made-up words, ready to be copied.
//!
//! Real word lists would bring licences and surprises; invented words can be as many as wanted, in
//! any script, and never mean anything. A vocabulary is built once from syllables, its words are
//! kept as bytes in slots of fixed size (so that writing one is a copy of constant length and a
//! shortening), and they are drawn by Zipf's law.
//!
//! Three properties hold, and the truth file depends on them. Lower-casing is one-to-one on every
//! vocabulary, so two words are equal as tokens exactly when their numbers are. No word contains an
//! apostrophe, a mark or a digit, so every reasonable tokeniser cuts spaced scripts in the same
//! places. And the words of [`unique_word`] occur in no vocabulary and are different for different
//! numbers, so that a text that contains one is equal to no other.

use std::collections::HashSet;

use crate::rng::{Dice, ZipfTable, mix};

/// The writing system of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Script {
    /// Latin letters without accents.
    Latin,
    /// Latin letters with accents, all of them in ISO-8859-1.
    Accented,
    /// Russian letters.
    Cyrillic,
    /// Greek letters.
    Greek,
    /// Arabic letters.
    Arabic,
    /// Chinese characters, written without spaces.
    Han,
    /// Thai, written without spaces.
    Thai,
}

impl Script {
    /// Every script, plainest first.
    pub const ALL: [Script; 7] = [
        Script::Latin,
        Script::Accented,
        Script::Cyrillic,
        Script::Greek,
        Script::Arabic,
        Script::Han,
        Script::Thai,
    ];

    /// The name used in truth files.
    pub fn as_str(self) -> &'static str {
        match self {
            Script::Latin => "latin",
            Script::Accented => "accented",
            Script::Cyrillic => "cyrillic",
            Script::Greek => "greek",
            Script::Arabic => "arabic",
            Script::Han => "han",
            Script::Thai => "thai",
        }
    }

    /// Whether words are parted by spaces. Only such texts are edited to a wanted resemblance: in
    /// the others the words depend on who cuts them.
    pub fn is_spaced(self) -> bool {
        !matches!(self, Script::Han | Script::Thai)
    }

    fn letters(self) -> Letters {
        match self {
            Script::Latin => Letters {
                onsets: &[
                    "b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "v", "br", "st", "tr",
                    "pl", "",
                ],
                nuclei: &["a", "e", "i", "o", "u", "a", "e", "ea"],
                codas: &["", "", "", "n", "r", "s", "l", "t"],
            },
            Script::Accented => Letters {
                onsets: &["b", "ç", "d", "f", "g", "l", "m", "ñ", "p", "r", "s", "t", "v", ""],
                nuclei: &["a", "é", "e", "í", "o", "ü", "ö", "ä", "è", "ê", "å", "ø", "ó"],
                codas: &["", "", "", "n", "r", "s", "l"],
            },
            Script::Cyrillic => Letters {
                onsets: &[
                    "б", "в", "г", "д", "ж", "з", "к", "л", "м", "н", "п", "р", "с", "т", "ш", "ст", "",
                ],
                nuclei: &["а", "е", "и", "о", "у", "ы", "я"],
                codas: &["", "", "", "н", "р", "й", "л"],
            },
            // No sigma: it has two small forms, and which one a capital becomes depends on its
            // neighbours.
            Script::Greek => Letters {
                onsets: &["β", "γ", "δ", "θ", "κ", "λ", "μ", "ν", "π", "ρ", "τ", "φ", "χ", ""],
                nuclei: &["α", "ε", "η", "ι", "ο", "υ", "ω"],
                codas: &["", "", "", "ν", "ρ"],
            },
            Script::Arabic => Letters {
                onsets: &["ب", "ت", "ج", "ح", "د", "ر", "س", "ش", "ع", "ف", "ق", "ك", "ل", "م", "ن"],
                nuclei: &["ا", "و", "ي", ""],
                codas: &["", "", "ب", "د", "ر", "ن"],
            },
            Script::Thai => Letters {
                onsets: &["ก", "ข", "ค", "ง", "จ", "ด", "ต", "น", "บ", "ป", "พ", "ม", "ร", "ล", "ว", "ส"],
                nuclei: &["า", "ี", "ุ", "ู", "ิ"],
                codas: &["", "", "น", "ง", "ม"],
            },
            Script::Han => Letters { onsets: &[], nuclei: &[], codas: &[] },
        }
    }

    /// How many words there are. The other scripts get fewer, to keep building them cheap.
    fn vocabulary_size(self) -> u32 {
        if self == Script::Latin { 16_384 } else { 6_000 }
    }
}

struct Letters {
    onsets: &'static [&'static str],
    nuclei: &'static [&'static str],
    codas: &'static [&'static str],
}

/// Bytes of a slot: 23 of word, and its length.
const SLOT: usize = 24;
/// Shorter than a [`unique_word`], so that no vocabulary can contain one.
const MAX_LETTERS: usize = 10;

/// The words of one script, most frequent first.
#[derive(Clone, Debug)]
pub(crate) struct Vocabulary {
    lower: Vec<[u8; SLOT]>,
    capital: Vec<[u8; SLOT]>,
    frequency: ZipfTable,
}

impl Vocabulary {
    /// The same vocabulary every time: seeds choose texts, not words.
    pub(crate) fn new(script: Script) -> Vocabulary {
        let size = script.vocabulary_size();
        let mut rng = Dice::new(mix(0x766f_6361, script as u64));
        let letters = script.letters();
        let mut seen = HashSet::new();
        let mut vocabulary = Vocabulary {
            lower: Vec::with_capacity(size as usize),
            capital: Vec::with_capacity(size as usize),
            frequency: ZipfTable::new(size, 1.0),
        };
        while vocabulary.lower.len() < size as usize {
            // Frequent words are short, as everywhere.
            let rank = vocabulary.lower.len();
            let word = if script == Script::Han {
                han_word(&mut rng, rank)
            } else {
                let most = if rank < 60 { 1 } else { 3 };
                let least = if rank < 500 { 1 } else { 2 };
                spoken_word(&mut rng, &letters, least, most.max(least))
            };
            if word.chars().count() > MAX_LETTERS || word.len() >= SLOT || !seen.insert(word.clone()) {
                continue;
            }
            vocabulary.capital.push(slot(&capitalised(&word)));
            vocabulary.lower.push(slot(&word));
        }
        vocabulary
    }

    pub(crate) fn len(&self) -> u32 {
        self.lower.len() as u32
    }

    /// The number of a word, drawn by frequency.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Dice) -> u32 {
        self.frequency.rank(rng.next())
    }

    /// Appends word number `id`.
    #[inline]
    pub(crate) fn push(&self, out: &mut Vec<u8>, id: u32, capital: bool) {
        let words = if capital { &self.capital } else { &self.lower };
        let Some(slot) = words.get(id as usize) else { return };
        let start = out.len();
        // One copy of constant length is much faster than one of variable length.
        out.extend_from_slice(slot);
        out.truncate(start + usize::from(slot[SLOT - 1]));
    }

    /// Word number `id % len`, for names of hosts and files.
    pub(crate) fn name(&self, id: u64, out: &mut Vec<u8>) {
        self.push(out, (id % u64::from(self.len().max(1))) as u32, false);
    }
}

fn slot(word: &str) -> [u8; SLOT] {
    let mut slot = [b' '; SLOT];
    slot[..word.len()].copy_from_slice(word.as_bytes());
    slot[SLOT - 1] = word.len() as u8;
    slot
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

fn spoken_word(rng: &mut Dice, letters: &Letters, least: u32, most: u32) -> String {
    let mut word = String::new();
    for _ in 0..rng.between(least, most) {
        for part in [letters.onsets, letters.nuclei, letters.codas] {
            let choice = rng.below(part.len() as u64) as usize;
            word.push_str(part.get(choice).copied().unwrap_or_default());
        }
    }
    word
}

fn han_word(rng: &mut Dice, rank: usize) -> String {
    let length = if rank < 400 { 1 } else { rng.between(2, 3) };
    (0..length).filter_map(|_| char::from_u32(0x4e00 + rng.between(0, 2_999))).collect()
}

/// Who a unique word belongs to; numbers are unique within each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Namespace {
    /// A text that may have copies.
    Topic = 0,
    /// A page of a collection that may be mirrored.
    Slot = 1,
    /// The mark of an edit in the open.
    Edit = 2,
    /// The mark of a version of a mirrored page.
    Version = 3,
    /// A page that only one replica has.
    Page = 4,
}

/// Six syllables, twelve letters, different for every `(space, number)` as long as numbers stay
/// below 2^33.
pub(crate) fn unique_word(space: Namespace, number: u64) -> [u8; 12] {
    const CONSONANTS: &[u8; 16] = b"bcdfghjklmnprstv";
    const VOWELS: &[u8; 4] = b"aeio";
    const MASK: u64 = (1 << 36) - 1;
    let packed = ((space as u64) << 33) | (number & ((1 << 33) - 1));
    // A multiplication by an odd number and a xor-shift are bijections on 36 bits; neighbours stop
    // looking alike.
    let mut bits = packed.wrapping_mul(0x5_deec_e66d) & MASK;
    bits ^= bits >> 17;
    bits = bits.wrapping_mul(0xb_3c6e_f372_fe95) & MASK;
    let mut word = [0u8; 12];
    for pair in word.chunks_exact_mut(2) {
        pair[0] = CONSONANTS[(bits & 15) as usize];
        pair[1] = VOWELS[((bits >> 4) & 3) as usize];
        bits >>= 6;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(slot: &[u8; SLOT]) -> String {
        String::from_utf8(slot[..usize::from(slot[SLOT - 1])].to_vec()).unwrap()
    }

    #[test]
    fn lower_casing_is_one_to_one_and_words_are_letters() {
        for script in Script::ALL {
            let vocabulary = Vocabulary::new(script);
            let mut seen = HashSet::new();
            for (lower, capital) in vocabulary.lower.iter().zip(&vocabulary.capital) {
                let (lower, capital) = (text(lower), text(capital));
                assert_eq!(capital.to_lowercase(), lower, "{script:?}");
                assert!(lower.chars().count() <= MAX_LETTERS && !lower.is_empty());
                assert!(!lower.contains(char::is_whitespace));
                if script.is_spaced() {
                    assert_eq!(crate::naive::words(&lower), std::slice::from_ref(&lower), "{script:?}");
                }
                assert!(seen.insert(lower), "{script:?}");
            }
        }
    }

    #[test]
    fn unique_words_are_unique() {
        let mut seen = HashSet::new();
        for space in [Namespace::Topic, Namespace::Slot, Namespace::Edit, Namespace::Version, Namespace::Page]
        {
            for number in (0..20_000).chain((1 << 33) - 1000..1 << 33) {
                assert!(seen.insert(unique_word(space, number)), "{space:?} {number}");
            }
        }
        assert!(seen.iter().all(|word| word.len() > MAX_LETTERS));
    }
}
