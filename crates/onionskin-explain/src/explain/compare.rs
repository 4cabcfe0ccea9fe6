//! Two texts, taken apart into what they share and what only one of them has.

use std::ops::Range;

use onionskin_core::rabin::{Purpose, Rabin, Shingler};
use onionskin_core::token::Unit;
use onionskin_core::{Chunking, Recipe};

use super::ExplainLimits;
use super::runs::{PAIRS, Run, common_runs, in_order};
use super::words::{Cutter, Words};

/// Words in a shingle where the recipe has none of words.
const SHINGLE: usize = 4;

/// A passage that stands in both texts, word for word as far as canonical tokens go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// Where it stands in the first text, in bytes.
    pub a: Range<usize>,
    /// Where it stands in the second text, in bytes.
    pub b: Range<usize>,
    /// Its words.
    pub words: usize,
    /// Whether it stands in another order among the passages of the second text.
    pub moved: bool,
}

/// A stretch of one text between two passages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Where, in bytes.
    pub range: Range<usize>,
    /// Its words.
    pub words: usize,
    /// The passage it is, where it stands elsewhere in the other text; `None` when only this text
    /// has it.
    pub moved: Option<usize>,
}

/// The two texts side by side, from the beginning of both to their ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A passage of both, by its number.
    Same(usize),
    /// What stands between two passages in each.
    Differ {
        /// In the first text.
        a: Vec<Stretch>,
        /// In the second text.
        b: Vec<Stretch>,
    },
}

/// Two texts compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The first text.
    pub text_a: String,
    /// The second text.
    pub text_b: String,
    /// Words of the first.
    pub words_a: usize,
    /// Words of the second.
    pub words_b: usize,
    /// Passages have at least so many words, unless the texts are equal.
    pub shingle: usize,
    /// What both have, in the order of the first text.
    pub passages: Vec<Passage>,
    /// Both texts from beginning to end.
    pub blocks: Vec<Block>,
    words: [Words; 2],
}

/// One of two texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    A,
    /// The second.
    B,
}

/// A part of a text without its middle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shortened {
    /// Its beginning, in bytes.
    pub head: Range<usize>,
    /// Words left out.
    pub left_out: usize,
    /// Its end, in bytes.
    pub tail: Range<usize>,
}

impl Comparison {
    /// Compares two texts by the words of a recipe.
    pub fn new(text_a: String, text_b: String, recipe: &Recipe) -> Comparison {
        Comparison::within(text_a, text_b, recipe, None)
    }

    /// The same with bounded memory. The texts themselves are taken as they are; what is shared is
    /// looked for no further than the limits allow.
    pub fn within(
        text_a: String,
        text_b: String,
        recipe: &Recipe,
        limits: Option<&ExplainLimits>,
    ) -> Comparison {
        let mut cutter = Cutter::new(recipe);
        let (a, b) = (cutter.cut(&text_a), cutter.cut(&text_b));
        Comparison::of_words(text_a, text_b, a, b, recipe, limits)
    }

    pub(super) fn of_words(
        text_a: String,
        text_b: String,
        a: Words,
        b: Words,
        recipe: &Recipe,
        limits: Option<&ExplainLimits>,
    ) -> Comparison {
        let shingle = match recipe.main() {
            Chunking::Shingles(Unit::Word, w) => usize::from(w.get()),
            _ => SHINGLE,
        };
        let shingler = Shingler::new(Rabin::new(Purpose::Chunks, recipe.width()), shingle);
        let pairs = match limits {
            Some(limits) => usize::try_from(limits.words).unwrap_or(usize::MAX),
            None => (4 * (a.len() + b.len())).saturating_add(PAIRS),
        };
        let mut runs = common_runs(&a.tokens, &b.tokens, &shingler, pairs);
        runs.iter_mut().for_each(|run| fit_to_pieces(run, &a, &b));
        runs.retain(|run| run.len > 0);
        let ordered = in_order(&runs);
        let passages = runs.iter().zip(&ordered).map(|(run, ordered)| Passage {
            a: trimmed(&text_a, a.place(run.a)..a.place(run.a + run.len)),
            b: trimmed(&text_b, b.place(run.b)..b.place(run.b + run.len)),
            words: run.len,
            moved: !ordered,
        });
        let passages = passages.collect();
        let blocks = blocks(&text_a, &text_b, &a, &b, &runs, &ordered);
        let (words_a, words_b) = (a.len(), b.len());
        Comparison { words_a, words_b, shingle, passages, blocks, text_a, text_b, words: [a, b] }
    }

    /// A text.
    pub fn text(&self, side: Side) -> &str {
        match side {
            Side::A => &self.text_a,
            Side::B => &self.text_b,
        }
    }

    /// The first and the last `words` of a part of a text; `None` when there are not more of them
    /// than `at_most`.
    pub fn shortened(
        &self,
        side: Side,
        range: &Range<usize>,
        words: usize,
        at_most: usize,
    ) -> Option<Shortened> {
        let all = &self.words[side as usize];
        let tokens = all.within(range);
        if tokens.len() <= at_most || tokens.len() <= 2 * words {
            return None;
        }
        let (head, tail) = (tokens.start + words, tokens.end - words);
        let text = self.text(side);
        Some(Shortened {
            head: trimmed(text, range.start..all.place(head).max(range.start)),
            left_out: tail - head,
            tail: trimmed(text, all.place(tail).min(range.end)..range.end),
        })
    }

    /// Words of all passages.
    pub fn shared_words(&self) -> usize {
        self.passages.iter().map(|passage| passage.words).sum()
    }
}

/// Moves the ends of a run to places where both texts can be cut.
fn fit_to_pieces(run: &mut Run, a: &Words, b: &Words) {
    while run.len > 0 && !(a.can_cut(run.a) && b.can_cut(run.b)) {
        *run = Run { a: run.a + 1, b: run.b + 1, len: run.len - 1 };
    }
    while run.len > 0 && !(a.can_cut(run.a + run.len) && b.can_cut(run.b + run.len)) {
        run.len -= 1;
    }
}

/// A range of a text without white space at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + (part.len() - part.trim_start().len());
    let end = range.end - (part.len() - part.trim_end().len());
    start.min(end)..end
}

fn blocks(text_a: &str, text_b: &str, a: &Words, b: &Words, runs: &[Run], ordered: &[bool]) -> Vec<Block> {
    let numbered = || runs.iter().enumerate().filter(|(at, _)| !ordered[*at]);
    let mut moved_a: Vec<(usize, Range<usize>)> = numbered().map(|(at, run)| (at, run.in_a())).collect();
    let mut moved_b: Vec<(usize, Range<usize>)> = numbered().map(|(at, run)| (at, run.in_b())).collect();
    moved_a.sort_by_key(|(_, range)| range.start);
    moved_b.sort_by_key(|(_, range)| range.start);
    let (mut moved_a, mut moved_b) = (moved_a.as_slice(), moved_b.as_slice());
    let mut blocks = Vec::new();
    let (mut from_a, mut from_b) = (0, 0);
    let ends = runs.iter().enumerate().filter(|(at, _)| ordered[*at]);
    let ends = ends.map(|(at, run)| (Some(at), *run));
    let end = Run { a: a.len(), b: b.len(), len: 0 };
    for (at, run) in ends.chain([(None, end)]) {
        let in_a = stretches(text_a, a, from_a..run.a, &mut moved_a);
        let in_b = stretches(text_b, b, from_b..run.b, &mut moved_b);
        if !in_a.is_empty() || !in_b.is_empty() {
            blocks.push(Block::Differ { a: in_a, b: in_b });
        }
        blocks.extend(at.map(Block::Same));
        (from_a, from_b) = (run.a + run.len, run.b + run.len);
    }
    blocks
}

/// Cuts a gap at the passages in it that stand elsewhere in the other text.
fn stretches(
    text: &str,
    words: &Words,
    gap: Range<usize>,
    moved: &mut &[(usize, Range<usize>)],
) -> Vec<Stretch> {
    let mut found = Vec::new();
    let mut push = |range: Range<usize>, moved: Option<usize>| {
        if !range.is_empty() {
            let bytes = trimmed(text, words.place(range.start)..words.place(range.end));
            found.push(Stretch { range: bytes, words: range.len(), moved });
        }
    };
    let mut from = gap.start;
    while let Some(((at, range), rest)) = moved.split_first()
        && range.start < gap.end
    {
        *moved = rest;
        push(from..range.start, None);
        push(range.clone(), Some(*at));
        from = range.end;
    }
    push(from..gap.end, None);
    found
}

#[cfg(test)]
mod tests;
