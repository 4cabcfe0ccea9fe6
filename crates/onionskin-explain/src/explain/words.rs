//! Where in a text each canonical token stands.
//!
//! The scan needs tokens only, and its tokenizer hands out nothing else. To show a passage we must
//! know the characters that a token was made of. The naive way is a second tokenizer that keeps
//! places; it would drift from the first. Here the text is cut into pieces that the tokenizer
//! itself never looks across, every piece is given to it, and what it says is what counts. A piece
//! is a run of letters, digits and characters outside ASCII, with the punctuation after it. A run
//! with several tokens in it, such as a line of Chinese, is cut further where the tokenizer would
//! cut, and the cut is kept only if the tokens stay the same.

use std::ops::Range;

use onionskin_core::Recipe;
use onionskin_core::rabin::{Purpose, Rabin};
use onionskin_core::token::{Tokenizer, Tokens, Unit};
use onionskin_core::unicode::{self, CharClass};

/// The tokens of a text and where they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    /// The remainder of each token, as the scan has it.
    pub tokens: Vec<u64>,
    /// For each token the byte at which its piece begins; tokens that could not be told apart have
    /// the same.
    starts: Vec<usize>,
    text_len: usize,
}

impl Words {
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether the text can be cut before a token: `false` inside a piece of several tokens.
    pub fn can_cut(&self, token: usize) -> bool {
        match (token.checked_sub(1).and_then(|before| self.starts.get(before)), self.starts.get(token)) {
            (Some(before), Some(here)) => before != here,
            _ => true,
        }
    }

    /// Where the text is cut before a token. What stands before the first token goes with it.
    pub fn place(&self, token: usize) -> usize {
        match token {
            0 => 0,
            _ => self.starts.get(token).copied().unwrap_or(self.text_len),
        }
    }

    /// The tokens that begin in a range of the text.
    pub fn within(&self, range: &Range<usize>) -> Range<usize> {
        let before = |place: usize| self.starts.partition_point(|start| *start < place);
        // What stands before the first token goes with it.
        let first = if range.start == 0 { 0 } else { before(range.start) };
        first..before(range.end).max(first)
    }

    /// The fingerprint of the whole canonical text, as in the table of documents.
    pub fn text_fp(&self, recipe: &Recipe) -> Option<u64> {
        let rabin = Rabin::new(Purpose::Chunks, recipe.width());
        (!self.tokens.is_empty()).then(|| rabin.sequence(&self.tokens))
    }
}

/// Cuts texts as the scan did.
pub(super) struct Cutter {
    tokenizer: Tokenizer,
    tokens: Tokens,
    cuts: Vec<usize>,
}

impl Cutter {
    pub fn new(recipe: &Recipe) -> Cutter {
        Cutter {
            tokenizer: Tokenizer::new(Unit::Word, recipe.form(), recipe.width()),
            tokens: Tokens::default(),
            cuts: Vec::new(),
        }
    }

    pub fn cut(&mut self, text: &str) -> Words {
        let mut words = Words { text_len: text.len(), ..Words::default() };
        let bytes = text.as_bytes();
        let in_run = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        let mut at = 0;
        // Punctuation before the first token between blanks goes with that token.
        let mut opening = 0;
        while let Some(&byte) = bytes.get(at) {
            if !in_run(&byte) {
                at += 1;
                if byte.is_ascii_whitespace() {
                    opening = at;
                }
                continue;
            }
            let end = bytes[at..].iter().position(|byte| !in_run(byte)).map_or(bytes.len(), |n| at + n);
            let before = words.len();
            self.run(text, at, end, &mut words);
            if words.len() > before {
                if opening < at
                    && let Some(start) = words.starts.get_mut(before)
                    && *start == at
                {
                    move_start(&mut words.starts[before..], at, opening);
                }
                opening = bytes.len();
            }
            at = end;
        }
        words
    }

    fn run(&mut self, text: &str, start: usize, end: usize, words: &mut Words) {
        let run = &text[start..end];
        self.tokenizer.tokenize(run, &mut self.tokens);
        let before = words.len();
        words.tokens.extend_from_slice(self.tokens.remainders());
        let n = words.len() - before;
        if n <= 1 {
            words.starts.extend(std::iter::repeat_n(start, n));
            return;
        }
        cuts_of(run, &mut self.cuts);
        let ends = self.cuts.iter().copied().skip(1).chain([run.len()]);
        let same = self.cuts.len() == n
            && self.cuts.iter().zip(ends).zip(&words.tokens[before..]).all(|((&from, to), token)| {
                self.tokenizer.tokenize(&run[from..to], &mut self.tokens);
                self.tokens.remainders() == [*token]
            });
        if same {
            words.starts.extend(self.cuts.iter().map(|cut| start + cut));
        } else {
            words.starts.extend(std::iter::repeat_n(start, n));
        }
    }
}

/// Tokens that begin at `from` begin at `to` instead.
fn move_start(starts: &mut [usize], from: usize, to: usize) {
    starts.iter_mut().take_while(|start| **start == from).for_each(|start| *start = to);
}

/// Where the tokens of a run should begin, by the classes of its characters as they stand.
fn cuts_of(run: &str, cuts: &mut Vec<usize>) {
    cuts.clear();
    let (mut in_word, mut closed) = (false, false);
    for (at, c) in run.char_indices() {
        match unicode::class(c) {
            CharClass::Word => {
                if !in_word || closed {
                    cuts.push(at);
                }
                (in_word, closed) = (true, false);
            }
            CharClass::Single | CharClass::Cluster => {
                cuts.push(at);
                (in_word, closed) = (true, true);
            }
            CharClass::Separator => (in_word, closed) = (false, false),
            CharClass::Mark | CharClass::Ignored => {}
        }
    }
}

#[cfg(test)]
mod tests;
