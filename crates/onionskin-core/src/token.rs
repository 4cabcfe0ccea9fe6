//! Canonical tokens: documents that differ only in case, punctuation or white space have the same
//! ones.
//!
//! A token is handed on as its Rabin remainder ([`Rabin::word`]), never as a string: the common
//! word of at most seven ASCII letters is one load, one mask and one `or`. The text is walked 64
//! bytes at a time as bit masks. A maximal run of letters and digits that is all ASCII is a word as
//! it stands, lower-cased by setting one bit a byte. A run with any other character in it goes the
//! long way: normalised if it has to be, case-folded and cut by the frozen tables of
//! [`crate::unicode`].
//!
//! Words are cut in two steps, a window of the text at a time: the first writes down where runs
//! begin and end (`Runs`), the second turns them into remainders. Doing both at once would guess
//! wrong at nearly every block how many words it holds, and at every third word whether it is a
//! long one, and a wrong guess costs as much as two words.
//!
//! ASCII separators never compose with what stands beside them into a word character, so cutting
//! before normalising is safe.
//!
//! Words are runs of letters, digits and their marks. Scripts that are written without spaces are
//! cut, not taken for one giant word: every ideograph and hiragana is a token, and so is every base
//! character of Thai, Lao, Khmer, Burmese and their like, with the marks on it. (A dictionary would
//! cut them better and change with every release; shingles of several tokens make up for it.)

use crate::rabin::{Purpose, Rabin, Width};
use crate::simd::{self, ByteClasses};
use crate::unicode::{self, CharClass, Entry, Form};

mod runs;

pub(crate) use runs::{RUNS_OF_BLOCK, Runs, WINDOW_BLOCKS, ascii_words, load_block, write_places};

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Words.
    Word,
    /// Letters and digits, one by one.
    Letter,
    /// Lines that have a word in them; equal when their words are.
    Line,
}

/// The tokens of one document. Buffers are kept between documents.
#[derive(Clone, Debug, Default)]
pub struct Tokens {
    /// As long as there ever were tokens: what is written anyway need not be cleared before.
    buffer: Vec<u64>,
    len: usize,
    line_ends: Vec<usize>,
}

impl Tokens {
    /// The remainder of every token, in order.
    pub fn remainders(&self) -> &[u64] {
        &self.buffer[..self.len]
    }

    /// The tokens of each line that has any.
    pub fn lines(&self) -> impl Iterator<Item = &[u64]> {
        let mut start = 0;
        let ends = self.line_ends.iter().copied().chain(std::iter::once(self.len));
        ends.filter_map(move |end| {
            let line = &self.buffer[start..end];
            start = end;
            (!line.is_empty()).then_some(line)
        })
    }

    fn clear(&mut self) {
        self.len = 0;
        self.line_ends.clear();
    }

    /// Room for `n` tokens more, to be written by the caller.
    fn extend(&mut self, n: usize) -> &mut [u64] {
        let before = self.len;
        self.len += n;
        if self.len > self.buffer.len() {
            self.buffer.resize(self.len, 0);
        }
        &mut self.buffer[before..self.len]
    }

    fn push(&mut self, remainder: u64) {
        self.extend(1)[0] = remainder;
    }
}

/// Cuts text into words or letters.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    form: Form,
    letters: bool,
    /// Whether somebody asks where lines end.
    lines: bool,
    rabin: Rabin,
    /// A run after normalisation.
    normalized: String,
    /// The word being put together.
    word: String,
    /// Folding may leave the normal form where marks are involved: `ΐ` becomes a letter and two
    /// marks, but a capital with two marks becomes a letter that composes with the first.
    unsettled: bool,
    runs: Runs,
    /// The words themselves, when somebody wants to see them.
    spelled: Option<Vec<String>>,
}

impl Tokenizer {
    /// Words or letters under a normal form, as remainders for fingerprints of a width. Lines are
    /// made of words.
    pub fn new(unit: Unit, form: Form, width: Width) -> Tokenizer {
        Tokenizer {
            form,
            letters: unit == Unit::Letter,
            lines: true,
            rabin: Rabin::new(Purpose::Chunks, width),
            normalized: String::new(),
            word: String::new(),
            unsettled: false,
            runs: Runs::default(),
            spelled: None,
        }
    }

    /// The same, for whoever does not ask for lines: all words are of one.
    pub fn without_lines(self) -> Tokenizer {
        Tokenizer { lines: false, ..self }
    }

    /// The normal form of its words.
    pub(crate) fn form(&self) -> Form {
        self.form
    }

    /// Whether it finds lines.
    pub(crate) fn sees_lines(&self) -> bool {
        self.lines
    }

    /// Replaces what is in `tokens` with the tokens of `text`.
    pub fn tokenize(&mut self, text: &str, tokens: &mut Tokens) {
        tokens.clear();
        let (blocks, tail) = text.as_bytes().as_chunks::<64>();
        // Blanks after the end close what is open.
        let mut last = [b' '; 64];
        last[..tail.len()].copy_from_slice(tail);
        let last_base = 64 * blocks.len();
        if self.letters {
            let mut walk = Walk::default();
            for (i, block) in blocks.iter().enumerate() {
                self.letters_of_block(text, 64 * i, simd::classify(block), &mut walk, tokens);
            }
            return self.letters_of_block(text, last_base, simd::classify(&last), &mut walk, tokens);
        }
        let mut runs = std::mem::take(&mut self.runs);
        runs.begin(self.lines);
        for (i, window) in blocks.chunks(WINDOW_BLOCKS).enumerate() {
            if i > 0 {
                self.words(text, &runs, tokens);
                runs.next_window();
            }
            simd::find_runs(window, 64 * WINDOW_BLOCKS * i, &mut runs);
        }
        // There is room for one block more.
        simd::find_runs(&[last], last_base, &mut runs);
        self.words(text, &runs, tokens);
        self.runs = runs;
    }

    /// Appends the words of the runs that have ended in a window.
    fn words(&mut self, text: &str, runs: &Runs, tokens: &mut Tokens) {
        let mut done = 0;
        let mut newlines = runs.newlines.iter().peekable();
        // One that is still open at the end of the window is not ours yet.
        let beyond_ascii = runs.beyond_ascii.iter().copied().filter(|run| *run < runs.n_ends);
        for next in beyond_ascii.map(Some).chain(std::iter::once(None)) {
            let until = next.unwrap_or(runs.n_ends);
            let before = tokens.len;
            while let Some(newline) = newlines.next_if(|newline| **newline <= until) {
                tokens.line_ends.push(before + newline - done);
            }
            let (starts, ends) = (&runs.starts[done..until], &runs.ends[done..until]);
            let words = tokens.extend(until - done);
            self.rabin.ascii_words(text.as_bytes(), starts, ends, words);
            if let Some(run) = next {
                self.unicode_run(&text[runs.starts[run] as usize..runs.ends[run] as usize], tokens);
                done = run + 1;
            }
        }
    }

    /// Looks at 64 bytes. Where the mask of runs rises a run begins, where it falls one ends.
    fn letters_of_block(
        &mut self,
        text: &str,
        base: usize,
        classes: ByteClasses,
        walk: &mut Walk,
        tokens: &mut Tokens,
    ) {
        let ByteClasses { alphanumeric, high, newline } = classes;
        let runs = alphanumeric | high;
        let edges = runs ^ (runs << 1 | u64::from(walk.in_run));
        let mut events = edges | newline;
        while events != 0 {
            let bit = events.trailing_zeros();
            events &= events - 1;
            let at = base + bit as usize;
            if (edges >> bit) & 1 == 1 {
                if walk.in_run {
                    let high_before = high & ((1 << bit) - 1);
                    if high_before != 0 {
                        walk.high_until = base + high_before.ilog2() as usize + 1;
                    }
                    self.run(text, walk.start, at, walk.high_until > walk.start, tokens);
                } else {
                    walk.start = at;
                }
                walk.in_run = !walk.in_run;
            }
            if (newline >> bit) & 1 == 1 && self.lines {
                tokens.line_ends.push(tokens.len);
            }
        }
        if high != 0 {
            walk.high_until = base + high.ilog2() as usize + 1;
        }
    }

    /// A maximal run of ASCII letters and digits and characters outside ASCII.
    #[inline]
    fn run(&mut self, text: &str, start: usize, end: usize, beyond_ascii: bool, tokens: &mut Tokens) {
        if beyond_ascii {
            self.unicode_run(&text[start..end], tokens);
        } else {
            let bytes = &text.as_bytes()[start..end];
            let letters = tokens.extend(bytes.len()).iter_mut().zip(bytes);
            letters.for_each(|(letter, byte)| *letter = u64::from(byte | 0x20));
        }
    }

    #[cold]
    #[inline(never)]
    fn unicode_run(&mut self, run: &str, tokens: &mut Tokens) {
        if unicode::is_normalized(run, self.form) {
            self.cut(run, tokens);
        } else {
            let mut normalized = std::mem::take(&mut self.normalized);
            normalized.clear();
            unicode::normalize_into(run, self.form, &mut normalized);
            self.cut(&normalized, tokens);
            self.normalized = normalized;
        }
    }

    fn cut(&mut self, run: &str, tokens: &mut Tokens) {
        // A token that only marks may join.
        let mut closed = false;
        for c in run.chars() {
            let entry = unicode::lookup(c);
            match entry.class() {
                CharClass::Word => {
                    if closed {
                        self.end_word(tokens);
                    }
                    closed = false;
                    self.push_folded(c, entry);
                }
                CharClass::Single | CharClass::Cluster => {
                    self.end_word(tokens);
                    self.push_folded(c, entry);
                    closed = true;
                }
                CharClass::Mark => {
                    if !self.word.is_empty() {
                        self.word.push(c);
                        self.unsettled = true;
                    }
                }
                CharClass::Separator => {
                    self.end_word(tokens);
                    closed = false;
                }
                CharClass::Ignored => {}
            }
        }
        self.end_word(tokens);
    }

    #[inline]
    fn push_folded(&mut self, c: char, entry: Entry) {
        if !entry.folds() {
            self.word.push(c);
            return;
        }
        let folded = entry.fold(c);
        self.unsettled |= folded.as_slice().len() > 1;
        self.word.extend(folded);
    }

    fn end_word(&mut self, tokens: &mut Tokens) {
        if self.word.is_empty() {
            return;
        }
        if std::mem::take(&mut self.unsettled) && !unicode::is_normalized(&self.word, self.form) {
            let mut settled = String::with_capacity(self.word.len());
            unicode::normalize_into(&self.word, self.form, &mut settled);
            self.word = settled;
        }
        if let Some(spelled) = &mut self.spelled {
            spelled.push(self.word.clone());
        }
        if self.letters {
            self.word.chars().for_each(|c| tokens.push(u64::from(u32::from(c))));
        } else {
            tokens.push(self.rabin.word(self.word.as_bytes()));
        }
        self.word.clear();
    }
}

/// The canonical words of a text, spelled out. For people: nothing here is fast, and nothing else
/// needs the letters of a word.
///
/// ```
/// use onionskin_core::token::canonical_words;
/// use onionskin_core::unicode::Form;
/// assert_eq!(canonical_words("A rose, is a ROSE!", Form::Nfc), ["a", "rose", "is", "a", "rose"]);
/// ```
pub fn canonical_words(text: &str, form: Form) -> Vec<String> {
    let mut tokenizer = Tokenizer::new(Unit::Word, form, Width::Bits64);
    tokenizer.spelled = Some(Vec::new());
    let mut tokens = Tokens::default();
    let separates = |c: char| c.is_ascii() && !c.is_ascii_alphanumeric();
    for run in text.split(separates).filter(|run| !run.is_empty()) {
        if run.is_ascii() {
            tokenizer.spelled.get_or_insert_default().push(run.to_ascii_lowercase());
        } else {
            tokenizer.unicode_run(run, &mut tokens);
        }
    }
    tokenizer.spelled.unwrap_or_default()
}

/// Where the walk over the masks stands.
#[derive(Default)]
struct Walk {
    in_run: bool,
    start: usize,
    /// Just past the last byte outside ASCII.
    high_until: usize,
}

#[cfg(test)]
mod tests;
