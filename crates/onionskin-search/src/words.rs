//! Words as a searcher means them: without case, accents and ways of encoding.
//!
//! The tokens of the scan are fingerprints and are frozen, since they are compared with those of
//! other days. Those of a search are words that are made anew with every index, and may be kinder:
//! `Café`, `CAFE` and `cafe` are one. The borders are the same: runs of letters and digits, and one
//! ideograph, hiragana or Thai base character at a time where a script has no spaces.

use std::ops::Range;

use icu_normalizer::DecomposingNormalizer;
use onionskin_core::unicode::{self, CharClass};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};

/// Nobody looks for a longer one; what is longer is no word but a key or a number.
const LONGEST_WORD: usize = 80;

/// The words of a text, one after the other.
pub(crate) struct Words<'t> {
    text: &'t str,
    at: usize,
    decomposed: String,
}

impl<'t> Words<'t> {
    pub(crate) fn new(text: &'t str) -> Words<'t> {
        Words { text, at: 0, decomposed: String::new() }
    }

    /// Puts the next word into `word`, and tells where it stands.
    pub(crate) fn next_into(&mut self, word: &mut String) -> Option<Range<usize>> {
        let bytes = self.text.as_bytes();
        loop {
            while bytes.get(self.at).is_some_and(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric()) {
                self.at += 1;
            }
            let start = self.at;
            if start >= bytes.len() {
                return None;
            }
            let ascii = bytes[start..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            let range = match bytes.get(start + ascii) {
                Some(next) if !next.is_ascii() => self.piece(start),
                _ => start..start + ascii,
            };
            self.at = range.end;
            word.clear();
            if range.len() == ascii {
                word.extend(self.text[range.clone()].chars().map(|c| c.to_ascii_lowercase()));
            } else {
                self.fold(range.clone(), word);
            }
            if !word.is_empty() && word.len() <= LONGEST_WORD {
                return Some(range);
            }
        }
    }

    /// The characters from here on that make one word, or none.
    fn piece(&self, start: usize) -> Range<usize> {
        let mut alone = false;
        let mut any = false;
        for (at, c) in self.text[start..].char_indices() {
            let end = start..start + at;
            match unicode::class(c) {
                CharClass::Word if alone => return end,
                CharClass::Word => any = true,
                CharClass::Single | CharClass::Cluster if any => return end,
                CharClass::Single | CharClass::Cluster => (alone, any) = (true, true),
                CharClass::Separator if any => return end,
                // One separator at a time, which has no word.
                CharClass::Separator => return start..start + at + c.len_utf8(),
                CharClass::Mark | CharClass::Ignored => {}
            }
        }
        start..self.text.len()
    }

    fn fold(&mut self, range: Range<usize>, word: &mut String) {
        self.decomposed.clear();
        let normalizer = DecomposingNormalizer::new_nfkd();
        // Writing to a string cannot fail.
        let _ = normalizer.normalize_to(&self.text[range], &mut self.decomposed);
        for c in self.decomposed.chars() {
            let is_accent = ('\u{300}'..='\u{36f}').contains(&c);
            let is_part = matches!(
                unicode::class(c),
                CharClass::Word | CharClass::Mark | CharClass::Single | CharClass::Cluster
            );
            if is_part && !is_accent {
                word.extend(unicode::fold(c).as_slice());
            }
        }
        // Marks alone are no word.
        if word.chars().all(|c| unicode::class(c) == CharClass::Mark) {
            word.clear();
        }
    }
}

/// All words of a text.
pub fn words_of(text: &str) -> Vec<String> {
    let mut words = Words::new(text);
    let (mut word, mut all) = (String::new(), Vec::new());
    while words.next_into(&mut word).is_some() {
        all.push(word.clone());
    }
    all
}

/// Gives the words to the index.
#[derive(Clone, Default)]
pub(crate) struct WordTokenizer;

pub(crate) struct WordStream<'t> {
    words: Words<'t>,
    token: Token,
}

impl Tokenizer for WordTokenizer {
    type TokenStream<'a> = WordStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream<'a> {
        WordStream { words: Words::new(text), token: Token::default() }
    }
}

impl TokenStream for WordStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(range) = self.words.next_into(&mut self.token.text) else { return false };
        self.token.offset_from = range.start;
        self.token.offset_to = range.end;
        self.token.position = self.token.position.wrapping_add(1);
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

#[cfg(test)]
mod tests;
