//! A page's text before it is written: words by number, with their punctuation, in blocks.
//!
//! Plain text and HTML are two ways of writing the same draft, so that what a reader of the HTML
//! sees, word for word, is what the plain text says. Links and markup add no visible word: a link
//! wraps a word that is there anyway.

use crate::{
    naive,
    rng::{Dice, mix},
    vocab::{Namespace, Script, Vocabulary, unique_word},
};

/// A word and what follows it. The low 24 bits are its number; above them stand the flags.
pub(crate) type Token = u32;

const ID: Token = (1 << 24) - 1;
/// The number is an index into [`Draft::extras`].
const EXTRA: Token = 1 << 24;
const CAPITAL: Token = 1 << 25;
const STOP: Token = 1 << 26;
const COMMA: Token = 1 << 27;
const DASH: Token = 1 << 28;
const AMPERSAND: Token = 1 << 29;
const FLAGS: Token = CAPITAL | STOP | COMMA | DASH | AMPERSAND;

/// A word outside the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    Unique([u8; 12]),
    Number(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// Navigation shared by many pages.
    Header,
    Title,
    Heading,
    Paragraph,
    Item,
    /// Small print shared by many pages.
    Footer,
}

/// Words up to `end`, from where the block before ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) kind: BlockKind,
    pub(crate) end: u32,
}

/// The text of one page. Reused from page to page.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) script: Script,
    pub(crate) tokens: Vec<Token>,
    pub(crate) extras: Vec<Extra>,
    pub(crate) blocks: Vec<Block>,
}

impl Draft {
    pub(crate) fn new() -> Draft {
        Draft { script: Script::Latin, tokens: Vec::new(), extras: Vec::new(), blocks: Vec::new() }
    }

    pub(crate) fn clear(&mut self, script: Script) {
        self.script = script;
        self.tokens.clear();
        self.extras.clear();
        self.blocks.clear();
    }

    pub(crate) fn n_words(&self) -> u32 {
        self.tokens.len() as u32
    }

    pub(crate) fn push_extra(&mut self, extra: Extra) {
        let index = self.extras.len() as u32;
        self.extras.push(extra);
        self.tokens.push((index & ID) | EXTRA);
    }

    pub(crate) fn push_word(&mut self, id: u32) {
        self.tokens.push(id & ID);
    }

    /// Ends a block here and capitalises its first word, unless nothing was added to it.
    pub(crate) fn end_block(&mut self, kind: BlockKind) {
        let start = self.blocks.last().map_or(0, |block| block.end);
        let end = self.n_words();
        if start < end {
            self.tokens[start as usize] |= CAPITAL;
            self.blocks.push(Block { kind, end });
        }
    }

    /// Adds `n` words in sentences, as one block.
    pub(crate) fn sentences(&mut self, vocabulary: &Vocabulary, rng: &mut Dice, n: u32, kind: BlockKind) {
        let mut left = n;
        while left > 0 {
            let shape = rng.next();
            // A sentence of 5 to 20 words; one that would leave a stump takes it in.
            let mut length = 5 + (shape & 15) as u32;
            if left < length + 4 {
                length = left;
            }
            let first = self.tokens.len();
            self.tokens.extend((0..length).map(|_| vocabulary.draw(rng)));
            let last = self.tokens.len() - 1;
            self.tokens[first] |= CAPITAL;
            self.tokens[last] |= STOP;
            let middle = first + (length / 2) as usize;
            if length > 7 {
                self.tokens[middle] |= match (shape >> 4) & 31 {
                    0..16 => COMMA,
                    16 | 17 => DASH,
                    18 => AMPERSAND,
                    _ => 0,
                };
            }
            left -= length;
        }
        self.end_block(kind);
    }

    /// Adds a page's own text of exactly `n` words: a title with `topic` in it, paragraphs,
    /// headings, lists.
    pub(crate) fn prose(&mut self, vocabulary: &Vocabulary, rng: &mut Dice, n: u32, topic: Extra) {
        if n == 0 {
            return;
        }
        // A very short text is one sentence with its topic in the middle, where most shingles see
        // it.
        let (title, short) = if n < 12 { (n, true) } else { (rng.between(2, 6), false) };
        let place = if short { n / 2 } else { rng.between(0, title - 1) };
        for position in 0..title {
            if position == place {
                self.push_extra(topic);
            } else {
                let word = vocabulary.draw(rng);
                self.push_word(word);
            }
        }
        if short {
            let last = self.tokens.len() - 1;
            self.tokens[last] |= STOP;
            return self.end_block(BlockKind::Paragraph);
        }
        self.end_block(BlockKind::Title);
        let mut left = n - title;
        while left > 0 {
            let shape = rng.next();
            match shape & 15 {
                0 if left > 40 => {
                    let words = 2 + ((shape >> 8) & 3) as u32;
                    for _ in 0..words {
                        let word = vocabulary.draw(rng);
                        self.push_word(word);
                    }
                    self.end_block(BlockKind::Heading);
                    left -= words;
                }
                1 if left > 40 => {
                    for item in 0..3 + (shape >> 8) % 4 {
                        let words = (3 + ((shape >> (12 + 3 * item)) & 7) as u32).min(left);
                        self.sentences(vocabulary, rng, words, BlockKind::Item);
                        left -= words;
                    }
                }
                _ => {
                    let mut words = 20 + ((shape >> 8) & 127) as u32;
                    if left < words + 12 {
                        words = left;
                    }
                    self.sentences(vocabulary, rng, words, BlockKind::Paragraph);
                    left -= words;
                }
            }
        }
    }

    /// Replaces the word at `position`, leaving punctuation as it was.
    pub(crate) fn replace(&mut self, position: u32, word: u32) {
        if let Some(token) = self.tokens.get_mut(position as usize) {
            *token = (*token & FLAGS) | (word & ID);
        }
    }

    /// Replaces the word at `position` by one outside the vocabulary.
    pub(crate) fn replace_by_extra(&mut self, position: u32, extra: Extra) {
        let index = self.extras.len() as u32;
        self.extras.push(extra);
        if let Some(token) = self.tokens.get_mut(position as usize) {
            *token = (*token & FLAGS) | EXTRA | (index & ID);
        }
    }

    /// The vocabulary number at `position`, if the word has one.
    pub(crate) fn word_at(&self, position: u32) -> Option<u32> {
        self.tokens.get(position as usize).filter(|&&token| token & EXTRA == 0).map(|token| token & ID)
    }

    /// Appends the text, blocks parted by `newline` (which lets JSON have it escaped).
    pub(crate) fn write_text(&self, vocabulary: &Vocabulary, newline: &[u8], out: &mut Vec<u8>) {
        let mut start = 0;
        for block in &self.blocks {
            if start > 0 {
                out.extend_from_slice(newline);
            }
            self.write_words(vocabulary, start..block.end, out);
            start = block.end;
        }
    }

    /// Appends the words of a range, in one line.
    pub(crate) fn write_words(
        &self,
        vocabulary: &Vocabulary,
        range: std::ops::Range<u32>,
        out: &mut Vec<u8>,
    ) {
        let Some(tokens) = self.tokens.get(range.start as usize..range.end as usize) else { return };
        if self.script.is_spaced() {
            let mut spaced = false;
            for &token in tokens {
                if spaced {
                    out.push(b' ');
                }
                spaced = true;
                self.write_word(vocabulary, token, out);
                if token & (STOP | COMMA | DASH | AMPERSAND) != 0 {
                    out.extend_from_slice(self.punctuation(token, false).as_bytes());
                }
            }
        } else {
            let mut before = 0;
            for (position, &token) in tokens.iter().enumerate() {
                if position > 0 && self.space_between(before, token) {
                    out.push(b' ');
                }
                self.write_word(vocabulary, token, out);
                out.extend_from_slice(self.punctuation(token, false).as_bytes());
                before = token;
            }
        }
    }

    /// Appends one word without what follows it.
    #[inline]
    pub(crate) fn write_word(&self, vocabulary: &Vocabulary, token: Token, out: &mut Vec<u8>) {
        if token & EXTRA == 0 {
            return vocabulary.push(out, token & ID, token & CAPITAL != 0);
        }
        match self.extras.get((token & ID) as usize) {
            Some(Extra::Unique(word)) => {
                let start = out.len();
                out.extend_from_slice(word);
                if token & CAPITAL != 0 {
                    out[start].make_ascii_uppercase();
                }
            }
            Some(Extra::Number(number)) => push_number(out, u64::from(*number)),
            None => {}
        }
    }

    /// What stands after a word, as HTML entities where `entities` asks for them.
    pub(crate) fn punctuation(&self, token: Token, entities: bool) -> &'static str {
        match (token & (STOP | COMMA | DASH | AMPERSAND), self.script) {
            (0, _) => "",
            (STOP, Script::Han) => "。",
            (STOP, Script::Thai) => " ",
            (STOP, _) => ".",
            (COMMA, Script::Han) => "，",
            (COMMA, Script::Thai) => "",
            (COMMA, Script::Arabic) => "،",
            (COMMA, _) => ",",
            (DASH, _) if entities => " &mdash;",
            (DASH, _) => " —",
            (AMPERSAND, _) if entities => " &amp;",
            _ => " &",
        }
    }

    /// Whether white space parts two neighbouring words.
    pub(crate) fn space_between(&self, before: Token, after: Token) -> bool {
        self.script.is_spaced() || (before | after) & EXTRA != 0 || before & (DASH | AMPERSAND) != 0
    }

    /// Appends one number per word, equal exactly where the words are equal as tokens.
    pub(crate) fn word_keys(&self, out: &mut Vec<u128>) {
        out.extend(self.tokens.iter().map(|&token| {
            if token & EXTRA == 0 {
                return u128::from(token & ID);
            }
            match self.extras.get((token & ID) as usize) {
                Some(Extra::Unique(word)) => word.iter().fold(1, |key, &byte| (key << 8) | u128::from(byte)),
                Some(Extra::Number(number)) => (1 << 120) | u128::from(*number),
                None => 1 << 121,
            }
        }));
    }

    /// The text as a string; slow, for tests and for the truth.
    pub(crate) fn to_text(&self, vocabulary: &Vocabulary) -> String {
        let mut out = Vec::new();
        self.write_text(vocabulary, b"\n", &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

/// Appends a number in decimal.
pub(crate) fn push_number(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[first..]);
}

/// Chooses which words of `n` to replace so that exactly `changed` of the `w`-shingles contain a
/// replaced one, spread over the whole text.
///
/// A single replaced word in the open touches `w` shingles, a run of `m` touches `m + w - 1`, and
/// one near the start fewer. So the touched shingles are laid out as separate runs, each as short
/// as the total allows, with the untouched ones dealt out between them. Positions come in ascending
/// order.
pub(crate) fn edit_positions(n: u32, w: u32, changed: u32, rng: &mut Dice, out: &mut Vec<u32>) {
    out.clear();
    let w = w.max(1);
    if n == 0 || changed == 0 {
        return;
    }
    if n < w {
        // One shingle, all of it: any word will do.
        return out.push(rng.below(u64::from(n)) as u32);
    }
    let n_shingles = n - w + 1;
    let changed = changed.min(n_shingles);
    if changed < w {
        // The first `changed` shingles contain word `changed - 1`, and no other does.
        return out.push(changed - 1);
    }
    let runs = changed / w;
    let mut spare = changed % w;
    let mut free = n_shingles - changed;
    let mut at = 0;
    for run in 0..runs {
        let runs_left = runs - run;
        let gap = rng.below(u64::from(2 * free / (runs_left + 1)) + 1).min(u64::from(free)) as u32;
        free -= gap;
        at += gap;
        let longer = spare.div_ceil(runs_left);
        spare -= longer;
        out.extend(at + w - 1..at + w + longer);
        at += w + longer;
    }
}

/// How many of `n_shingles` must change for a resemblance of `wanted`, when every change replaces a
/// shingle by a new one: (N - x) / (N + x) = wanted. At least one.
pub(crate) fn shingles_to_change(n_shingles: u32, wanted: f64) -> u32 {
    let wanted = wanted.clamp(0.0, 1.0);
    let n = f64::from(n_shingles);
    // Round to the nearer resemblance, not the nearer count: the two differ for few shingles.
    let below = (n * (1.0 - wanted) / (1.0 + wanted)).floor();
    let resemblance = |x: f64| (n - x) / (n + x);
    let x =
        if resemblance(below) - wanted <= wanted - resemblance(below + 1.0) { below } else { below + 1.0 };
    (x as u32).clamp(1, n_shingles.max(1))
}

/// An edit of a text: its random choices, what it aims at, and the word that makes it unlike all
/// other edits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit {
    pub(crate) seed: u64,
    pub(crate) resemblance: f64,
    pub(crate) mark: [u8; 12],
}

impl Edit {
    /// Changes the draft so that its resemblance to what it was comes as near to the aim as
    /// counting can make it.
    pub(crate) fn apply(&self, draft: &mut Draft, vocabulary: &Vocabulary, w: u32, positions: &mut Vec<u32>) {
        let n = draft.n_words();
        let n_shingles = if n < w { u32::from(n > 0) } else { n - w + 1 };
        self.apply_changing(
            draft,
            vocabulary,
            w,
            shingles_to_change(n_shingles, self.resemblance),
            positions,
        );
    }

    fn apply_changing(
        &self,
        draft: &mut Draft,
        vocabulary: &Vocabulary,
        w: u32,
        changed: u32,
        positions: &mut Vec<u32>,
    ) {
        let mut rng = Dice::new(self.seed);
        edit_positions(draft.n_words(), w, changed, &mut rng, positions);
        let mark_at = rng.below(positions.len() as u64) as usize;
        for (nth, &position) in positions.iter().enumerate() {
            if nth == mark_at {
                draft.replace_by_extra(position, Extra::Unique(self.mark));
            } else {
                // All words alike, not by frequency: a rare word makes no shingle that is there
                // already.
                let drawn = rng.below(u64::from(vocabulary.len())) as u32;
                let word = if draft.word_at(position) == Some(drawn) {
                    (drawn + 1) % vocabulary.len()
                } else {
                    drawn
                };
                draft.replace(position, word);
            }
        }
    }
}

/// Two texts of `n_words` words, the second edited from the first so that their resemblance in word
/// shingles of `w` is as near as possible to `target`, and that resemblance, computed by
/// [`naive::text_resemblance`].
///
/// `target` is clamped to `0..=1`; 1 gives two equal texts.
///
/// ```
/// let (a, b, exact) = onionskin_testkit::pairs_with_resemblance(300, 4, 0.8, 1);
/// assert!((exact - 0.8).abs() < 0.005);
/// assert_eq!(onionskin_testkit::naive::text_resemblance(&a, &b, 4), exact);
/// ```
pub fn pairs_with_resemblance(n_words: u32, w: u32, target: f64, seed: u64) -> (String, String, f64) {
    let vocabulary = Vocabulary::new(Script::Latin);
    pair_from(&vocabulary, n_words, w, target, seed)
}

/// [`pairs_with_resemblance`] with a vocabulary that is there already.
pub(crate) fn pair_from(
    vocabulary: &Vocabulary,
    n_words: u32,
    w: u32,
    target: f64,
    seed: u64,
) -> (String, String, f64) {
    let w = w.max(1);
    let target = if target.is_nan() { 0.0 } else { target.clamp(0.0, 1.0) };
    let mut original = Draft::new();
    let mut rng = Dice::new(mix(seed, 1));
    original.prose(vocabulary, &mut rng, n_words, Extra::Unique(unique_word(Namespace::Topic, seed)));
    let a = original.to_text(vocabulary);
    let n_shingles = if n_words < w { u32::from(n_words > 0) } else { n_words - w + 1 };
    if n_shingles == 0 || target == 1.0 {
        let exact = naive::text_resemblance(&a, &a, w as usize);
        return (a.clone(), a, exact);
    }
    let shingles_of_a = naive::shingles(&naive::words(&a), w as usize);
    let edit = Edit { seed: mix(seed, 2), resemblance: target, mark: unique_word(Namespace::Edit, seed) };
    let mut positions = Vec::new();
    let mut attempt = |changed: u32| {
        let mut edited = original.clone();
        edit.apply_changing(&mut edited, vocabulary, w, changed, &mut positions);
        let b = edited.to_text(vocabulary);
        let exact = naive::resemblance(&shingles_of_a, &naive::shingles(&naive::words(&b), w as usize));
        (b, exact)
    };
    // Repeated shingles make the count differ a little from the formula, so its neighbours are
    // tried too.
    let middle = shingles_to_change(n_shingles, target);
    let mut best = attempt(middle);
    for step in 1..=4u32 {
        if (best.1 - target).abs() * f64::from(n_shingles) < 0.25 {
            break;
        }
        for changed in [middle.saturating_sub(step).max(1), (middle + step).min(n_shingles)] {
            let candidate = attempt(changed);
            if (candidate.1 - target).abs() < (best.1 - target).abs() {
                best = candidate;
            }
        }
    }
    (a, best.0, best.1)
}

#[cfg(test)]
mod tests;
