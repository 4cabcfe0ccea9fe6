//! The result of folding one character.
//!
//! Of the 1606 characters that fold, all but 105 become one other character, at one of about a
//! hundred distances. An entry of the character trie therefore holds a small number: 0 for a
//! character that stays, then one for each distance, then one for each sequence of two or three.

use super::tables::{FOLD_DELTAS, FOLD_EXPANSIONS};

/// One to three characters, the case folding of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fold {
    /// Filled up with NUL.
    chars: [char; 3],
    len: u8,
}

impl Fold {
    #[inline]
    pub(super) fn one(c: char) -> Fold {
        Fold { chars: [c, '\0', '\0'], len: 1 }
    }

    /// The folding of `c`, given the fold number from its entry.
    #[inline]
    pub(super) fn by_number(number: u16, c: char) -> Fold {
        if number == 0 { Fold::one(c) } else { Fold::changed(number, c) }
    }

    fn changed(number: u16, c: char) -> Fold {
        let number = usize::from(number) - 1;
        match FOLD_DELTAS.get(number) {
            // A number that does not belong to `c` may point outside the scalar values; then `c`
            // stays.
            Some(&delta) => {
                Fold::one(u32::from(c).checked_add_signed(delta).and_then(char::from_u32).unwrap_or(c))
            }
            None => match FOLD_EXPANSIONS.get(number - FOLD_DELTAS.len()) {
                Some(&chars) => Fold { chars, len: if chars[2] == '\0' { 2 } else { 3 } },
                None => Fold::one(c),
            },
        }
    }

    /// The characters.
    #[inline]
    pub fn as_slice(&self) -> &[char] {
        &self.chars[..usize::from(self.len)]
    }
}

impl IntoIterator for Fold {
    type Item = char;
    type IntoIter = FoldIter;

    #[inline]
    fn into_iter(self) -> FoldIter {
        FoldIter(self.chars.into_iter().take(usize::from(self.len)))
    }
}

/// The characters of a [`Fold`], by value.
#[derive(Clone, Debug)]
pub struct FoldIter(std::iter::Take<std::array::IntoIter<char, 3>>);

impl Iterator for FoldIter {
    type Item = char;

    #[inline]
    fn next(&mut self) -> Option<char> {
        self.0.next()
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl ExactSizeIterator for FoldIter {}
