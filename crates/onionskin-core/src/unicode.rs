//! Frozen character tables: which characters make words, how they fold, what their normal form is.
//!
//! Two pages that differ only in case, punctuation or the way an accent is encoded must give the
//! same tokens, on every machine and for as long as an index lives. The obvious means,
//! `char::is_alphanumeric`, `str::to_lowercase` and a normalisation crate, all follow the Unicode
//! version of the toolchain or of the crate: an update would quietly change stored fingerprints. So
//! the tables are generated once, by `scripts/unicode_tables.py`, kept in the source, and pinned by
//! a checksum. They are Unicode [`UNICODE_VERSION`]; characters that are younger are separators,
//! fold to themselves and are normal.
//!
//! The tokenizer asks about every character, so everything it wants to know is one load from a
//! two-stage trie of 60 KB, of which a text touches a few hundred bytes: [`lookup`] gives an
//! [`Entry`] with the class, the folding and whether normalisation must look closer. What
//! normalisation needs beyond that is in tables of its own, which are read only for characters that
//! may change.
//!
//! ```
//! use onionskin_core::unicode::{self, CharClass, Form};
//!
//! assert_eq!(unicode::class('ß'), CharClass::Word);
//! assert_eq!(unicode::fold('ß').as_slice(), ['s', 's']);
//! assert_eq!(unicode::class('漢'), CharClass::Single);
//!
//! let mut text = String::new();
//! unicode::normalize_into("cafe\u{301} ﬁn", Form::Nfkc, &mut text);
//! assert_eq!(text, "café fin");
//! ```

mod fold;
mod normal;
mod tables;
#[cfg(test)]
mod tests;

pub use fold::{Fold, FoldIter};
pub use normal::{Form, is_normalized, normalize_into};

use tables::{ENTRY_BLOCKS, ENTRY_INDEX, ENTRY_LIMIT, FAR_IGNORED};

/// The Unicode version of the tables. It is part of what a stored fingerprint means.
pub const UNICODE_VERSION: &str = tables::VERSION;

/// What a character does in a token.
///
/// The first rule is that letters and numbers (general categories L and N) make words and
/// everything else separates them; the exceptions are told at each variant. A text should be
/// normalised before it is classified: `㍿` is a symbol, and four ideographs after NFKC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum CharClass {
    /// Not in any token: spaces, controls, punctuation, symbols, emoji, private use, unassigned.
    /// Apostrophes are separators even where Unicode calls them letters (U+02BB to U+02BD, U+02EE),
    /// since people type them as punctuation just as often.
    Separator = 0,
    /// Joins with its neighbours: letters of scripts with spaces, Hangul, Katakana, and the numbers
    /// of all scripts.
    Word = 1,
    /// Belongs to the character before it, and is nothing alone: combining marks (M), the two
    /// zero-width joiners, and the marks that lengthen or voice a kana (`ー`).
    Mark = 2,
    /// A token of its own with the marks that follow: Han ideographs, Hiragana, Bopomofo, Yi, and
    /// other scripts without spaces whose characters stand for words or syllables.
    Single = 3,
    /// A letter of a script without spaces whose words only a dictionary finds: Thai, Lao, Khmer,
    /// Myanmar, the Tai scripts, Ahom, Balinese, Javanese. A token of its own with the marks that
    /// follow, as for [`Single`](Self::Single), but kept apart since one letter says far less than
    /// one ideograph.
    Cluster = 4,
    /// As if it were not there: soft hyphen, zero-width space, byte order mark, direction controls,
    /// variation selectors, fillers, tags.
    Ignored = 5,
}

/// All that the tokenizer asks of a character, from one load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry(u16);

const CLASS_MASK: u16 = 0b111;
const NFC_SUSPECT: u16 = 1 << 3;
const NFKC_SUSPECT: u16 = 1 << 4;
const FOLD_SHIFT: u32 = 5;

impl Entry {
    /// What the character does in a token.
    #[inline]
    pub fn class(self) -> CharClass {
        match self.0 & CLASS_MASK {
            1 => CharClass::Word,
            2 => CharClass::Mark,
            3 => CharClass::Single,
            4 => CharClass::Cluster,
            5 => CharClass::Ignored,
            _ => CharClass::Separator,
        }
    }

    /// Does case folding change the character?
    #[inline]
    pub fn folds(self) -> bool {
        self.0 >> FOLD_SHIFT != 0
    }

    /// The case folding of `c`, whose entry this is.
    #[inline]
    pub fn fold(self, c: char) -> Fold {
        Fold::by_number(self.0 >> FOLD_SHIFT, c)
    }

    /// Might the text be in another than the given form because of this character? `false` means
    /// that the character is a starter, that the form leaves it as it is, and that it never joins
    /// with what stands before it: a text of such characters alone is normalised, and normalisation
    /// can be cut before each of them.
    #[inline]
    pub fn is_suspect(self, form: Form) -> bool {
        self.0 & form.suspect_bit() != 0
    }
}

/// The entry of a character.
#[inline]
pub fn lookup(c: char) -> Entry {
    let code = u32::from(c);
    if code < ENTRY_LIMIT {
        let block = &ENTRY_BLOCKS[usize::from(ENTRY_INDEX[(code >> 6) as usize])];
        Entry(block[(code & 63) as usize])
    } else {
        far_entry(code)
    }
}

/// Beyond the trie only the special-purpose plane has anything, and all of that is ignored.
#[cold]
fn far_entry(code: u32) -> Entry {
    let ignored = FAR_IGNORED.iter().any(|&(first, last)| (first..=last).contains(&code));
    Entry(if ignored { CharClass::Ignored as u16 } else { CharClass::Separator as u16 })
}

/// What a character does in a token.
#[inline]
pub fn class(c: char) -> CharClass {
    lookup(c).class()
}

/// The full case folding of a character: one to three characters.
///
/// Folding is not lower-casing: it takes `ς` and `Σ` to `σ`, `ß` and `ẞ` to `ss`, and Cherokee to
/// its capitals. It knows no language, so the Turkish dotless `ı` is left alone and `İ` becomes `i`
/// with a dot above.
///
/// Folding may leave the normal form: `ΐ` becomes `ι` and two marks. To compare without regard to
/// case, normalise again after folding wherever a folding has more than one character or a suspect
/// follows a folded character.
#[inline]
pub fn fold(c: char) -> Fold {
    if c.is_ascii() {
        return Fold::one(c.to_ascii_lowercase());
    }
    lookup(c).fold(c)
}
