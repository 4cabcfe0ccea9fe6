//! From a text to everything a recipe asks for, with memory that is kept from one document to the
//! next.

use crate::chunk::{self, Chunking, ParagraphScratch};
use crate::feature::FeatureMaker;
use crate::id::Fingerprint;
use crate::rabin::{Purpose, Rabin, Shingler};
use crate::recipe::{Minwise, Recipe, SketchScheme};
use crate::set::FingerprintSet;
use crate::sketch::{OnePermutation, Permutations, bottom_sketch};
use crate::token::{Tokenizer, Tokens, Unit};
use crate::unicode::{self, CharClass, Form};

/// Analyses documents one after the other. One for each thread.
pub struct Analyzer {
    rabin: Rabin,
    words: Tokenizer,
    tokens: Tokens,
    letters: Option<(Tokenizer, Tokens)>,
    /// The main chunking first, then those that are kept and differ from it.
    chunkers: Vec<Chunker>,
    /// For each kept chunking its place among the chunkers.
    kept: Vec<usize>,
    sketcher: Sketcher,
    set: FingerprintSet,
    scratch: Scratch,
    text_fp: Option<Fingerprint>,
}

struct Chunker {
    chunking: Chunking,
    shingler: Option<Shingler>,
    /// Kept chunks of shingles must be a set. Minima do not care.
    as_set: bool,
    fingerprints: Vec<u64>,
}

struct Sketcher {
    kind: SketchKind,
    maker: Option<FeatureMaker>,
    sketch: Vec<u32>,
    features: Vec<u64>,
}

enum SketchKind {
    Independent(Permutations),
    One(OnePermutation),
    Bottom { t: usize, seed: u64 },
}

#[derive(Default)]
struct Scratch {
    lines: Vec<u64>,
    piece: Tokens,
    paragraphs: ParagraphScratch,
}

/// What was found in one document. Everything is empty when the document has no token.
pub struct Analysis<'a>(&'a Analyzer);

impl Analysis<'_> {
    /// Words.
    pub fn tokens(&self) -> u64 {
        self.0.tokens.remainders().len() as u64
    }

    /// The fingerprint of the whole canonical text; `None` for an empty document.
    pub fn text_fp(&self) -> Option<Fingerprint> {
        self.0.text_fp
    }

    /// Fingerprints of the nth kept chunking of the recipe.
    pub fn chunks(&self, nth: usize) -> &[u64] {
        &self.0.chunkers[self.0.kept[nth]].fingerprints
    }

    /// Fingerprints of the main chunking; shingles may repeat when the recipe does not keep them.
    pub fn main_chunks(&self) -> &[u64] {
        &self.0.chunkers[0].fingerprints
    }

    /// The sketch; empty for an empty document.
    pub fn sketch(&self) -> &[u32] {
        &self.0.sketcher.sketch
    }

    /// The features; empty for an empty document, or when the recipe has none.
    pub fn features(&self) -> &[u64] {
        &self.0.sketcher.features
    }
}

impl Analyzer {
    /// For a recipe and the seed of its permutations.
    pub fn new(recipe: &Recipe, seed: u64) -> Analyzer {
        let rabin = Rabin::new(Purpose::Chunks, recipe.width());
        let mut chunkers = vec![Chunker::new(recipe.main(), rabin)];
        let kept = recipe
            .kept_chunks()
            .iter()
            .map(|chunking| {
                let place = chunkers.iter().position(|chunker| chunker.chunking == *chunking);
                let place = place.unwrap_or_else(|| {
                    chunkers.push(Chunker::new(*chunking, rabin));
                    chunkers.len() - 1
                });
                chunkers[place].as_set = matches!(chunking, Chunking::Shingles(..));
                place
            })
            .collect();
        let by_line = |chunker: &Chunker| {
            matches!(chunker.chunking, Chunking::Lines(_) | Chunking::Shingles(Unit::Line, _))
        };
        let lines = chunkers.iter().any(by_line);
        let tokenizer = |unit| {
            let tokenizer = Tokenizer::new(unit, recipe.form(), recipe.width());
            if lines { tokenizer } else { tokenizer.without_lines() }
        };
        Analyzer {
            rabin,
            words: tokenizer(Unit::Word),
            tokens: Tokens::default(),
            letters: recipe.needs_letters().then(|| (tokenizer(Unit::Letter), Tokens::default())),
            chunkers,
            kept,
            sketcher: Sketcher::new(recipe, seed),
            set: FingerprintSet::default(),
            scratch: Scratch::default(),
            text_fp: None,
        }
    }

    /// Analyses one document.
    pub fn analyze(&mut self, text: &str) -> Analysis<'_> {
        self.cut(text);
        if !self.tokens.remainders().is_empty() {
            self.sketcher.sum_up(&self.chunkers[0].fingerprints);
        }
        Analysis(self)
    }

    /// The most memory, in bytes, that it takes to analyse a text and to copy out what is kept of
    /// it. Buffers that never grow are not counted.
    pub fn memory_for(&self, text: &str) -> usize {
        let TextCounts { words, letters, lines, periods } = TextCounts::of(text, self.words.form());
        let by_line = self.words.sees_lines();
        let mut bytes = 8 * words + if by_line { 8 * lines + 8 * lines.min(words) } else { 0 };
        bytes += if self.letters.is_some() { 8 * letters } else { 0 };
        let mut set_bytes = 0;
        for (place, chunker) in self.chunkers.iter().enumerate() {
            let most = match chunker.chunking {
                Chunking::Document => 1,
                Chunking::Lines(n) => lines.min(words) / usize::from(n.get()) + 1,
                Chunking::Shingles(Unit::Line, _) => lines.min(words),
                Chunking::Shingles(Unit::Letter, _) => letters,
                Chunking::Shingles(Unit::Word, _) => words,
                // The words of one piece are in memory as well.
                Chunking::Sentences | Chunking::Paragraphs => 2 * words,
                Chunking::ShingleParagraphs => {
                    let sentences = periods + text.len() / chunk::SENTENCE_CHARACTERS;
                    bytes += text.len();
                    sentences / chunk::PARAGRAPH_SENTENCES + 1
                }
            };
            let copies = self.kept.iter().filter(|kept| **kept == place).count();
            bytes += 8 * most * (1 + copies);
            if chunker.as_set {
                set_bytes = set_bytes.max(FingerprintSet::bytes_for(most));
            }
        }
        bytes + set_bytes
    }

    /// Cuts one document into chunks, and makes no sketch and no feature of them.
    pub fn analyze_chunks(&mut self, text: &str) -> Analysis<'_> {
        self.cut(text);
        Analysis(self)
    }

    fn cut(&mut self, text: &str) {
        self.words.tokenize(text, &mut self.tokens);
        for chunker in &mut self.chunkers {
            chunker.fingerprints.clear();
        }
        self.sketcher.clear();
        self.text_fp = None;
        if !self.tokens.remainders().is_empty() {
            self.text_fp = Some(Fingerprint(self.rabin.sequence(self.tokens.remainders())));
            if let Some((tokenizer, tokens)) = &mut self.letters {
                tokenizer.tokenize(text, tokens);
            }
            self.chunk(text);
        }
    }

    fn chunk(&mut self, text: &str) {
        let Scratch { lines, piece, paragraphs } = &mut self.scratch;
        lines.clear();
        for chunker in &mut self.chunkers {
            let out = &mut chunker.fingerprints;
            match chunker.chunking {
                Chunking::Document => out.extend(self.text_fp.map(|fingerprint| fingerprint.0)),
                Chunking::Lines(_) | Chunking::Shingles(Unit::Line, _) => {
                    if lines.is_empty() {
                        lines.extend(self.tokens.lines().map(|line| self.rabin.sequence(line)));
                    }
                    match (&chunker.shingler, chunker.chunking) {
                        (Some(shingler), _) => shingler.shingle_into(lines, out),
                        (None, Chunking::Lines(n)) => {
                            out.extend(
                                lines.chunks(usize::from(n.get())).map(|group| self.rabin.sequence(group)),
                            );
                        }
                        (None, _) => unreachable!("shingles have a shingler"),
                    }
                }
                Chunking::Sentences => {
                    for sentence in chunk::sentences(text) {
                        push_piece(&mut self.words, piece, &self.rabin, sentence, out);
                    }
                }
                Chunking::Paragraphs => {
                    for paragraph in chunk::paragraphs(text) {
                        push_piece(&mut self.words, piece, &self.rabin, paragraph, out);
                    }
                }
                Chunking::ShingleParagraphs => {
                    chunk::shingle_paragraphs(text, paragraphs, |chunk| out.push(self.rabin.bytes(chunk)));
                }
                Chunking::Shingles(unit, _) => {
                    let tokens = match (&self.letters, unit) {
                        (Some((_, letters)), Unit::Letter) => letters,
                        _ => &self.tokens,
                    };
                    if let Some(shingler) = &chunker.shingler {
                        shingler.shingle_into(tokens.remainders(), out);
                    }
                }
            }
            if chunker.as_set {
                self.set.retain_first(out);
            }
        }
    }
}

/// Makes the fingerprints of whole texts as an [`Analyzer`] does, and nothing else.
pub struct TextFingerprinter {
    rabin: Rabin,
    words: Tokenizer,
    tokens: Tokens,
}

impl TextFingerprinter {
    /// For the tokens and the fingerprints of a recipe.
    pub fn new(recipe: &Recipe) -> TextFingerprinter {
        TextFingerprinter {
            rabin: Rabin::new(Purpose::Chunks, recipe.width()),
            words: Tokenizer::new(Unit::Word, recipe.form(), recipe.width()).without_lines(),
            tokens: Tokens::default(),
        }
    }

    /// The fingerprint of a canonical text; `None` for an empty one.
    pub fn text_fp(&mut self, text: &str) -> Option<Fingerprint> {
        self.words.tokenize(text, &mut self.tokens);
        let words = self.tokens.remainders();
        (!words.is_empty()).then(|| Fingerprint(self.rabin.sequence(words)))
    }
}

/// How much there is of a text, at the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TextCounts {
    words: usize,
    letters: usize,
    lines: usize,
    periods: usize,
}

impl TextCounts {
    fn of(text: &str, form: Form) -> TextCounts {
        // What a character of a compatibility form becomes: `ﷺ` has the most, four words.
        let (most_words, most_letters) = if form == Form::Nfkc { (4, 18) } else { (1, 4) };
        let mut counts = TextCounts { words: 0, letters: 0, lines: 1, periods: 0 };
        let mut in_word = false;
        for c in text.chars() {
            if c.is_ascii() {
                let goes_on = c.is_ascii_alphanumeric();
                counts.words += usize::from(goes_on && !in_word);
                counts.letters += usize::from(goes_on);
                counts.lines += usize::from(c == '\n');
                counts.periods += usize::from(c == '.');
                in_word = goes_on;
                continue;
            }
            counts.letters += most_letters;
            match unicode::class(c) {
                CharClass::Word if form == Form::Nfc => {
                    counts.words += usize::from(!in_word);
                    in_word = true;
                }
                CharClass::Separator if form == Form::Nfc => in_word = false,
                CharClass::Mark | CharClass::Ignored if form == Form::Nfc => {}
                _ => {
                    counts.words += most_words;
                    in_word = false;
                }
            }
        }
        counts
    }
}

fn push_piece(words: &mut Tokenizer, piece: &mut Tokens, rabin: &Rabin, text: &str, out: &mut Vec<u64>) {
    words.tokenize(text, piece);
    if !piece.remainders().is_empty() {
        out.push(rabin.sequence(piece.remainders()));
    }
}

impl Chunker {
    fn new(chunking: Chunking, rabin: Rabin) -> Chunker {
        let shingler = match chunking {
            Chunking::Shingles(_, w) => Some(Shingler::new(rabin, usize::from(w.get()))),
            _ => None,
        };
        Chunker { chunking, shingler, as_set: false, fingerprints: vec![] }
    }
}

impl Sketcher {
    fn new(recipe: &Recipe, seed: u64) -> Sketcher {
        let t = recipe.scheme().sketch_len();
        let kind = match (recipe.scheme(), recipe.minwise()) {
            (SketchScheme::Bottom(_), _) => SketchKind::Bottom { t, seed },
            (_, Minwise::Independent) => SketchKind::Independent(Permutations::new(t, seed)),
            (_, Minwise::One) => SketchKind::One(OnePermutation::new(t, seed)),
        };
        let maker = recipe.scheme().filter().map(FeatureMaker::new);
        Sketcher { kind, maker, sketch: vec![], features: vec![] }
    }

    fn clear(&mut self) {
        self.sketch.clear();
        self.features.clear();
    }

    fn sum_up(&mut self, fingerprints: &[u64]) {
        match &mut self.kind {
            SketchKind::Independent(permutations) => {
                self.sketch.extend_from_slice(permutations.sketch(fingerprints));
            }
            SketchKind::One(permutation) => self.sketch.extend_from_slice(permutation.sketch(fingerprints)),
            SketchKind::Bottom { t, seed } => bottom_sketch(fingerprints, *t, *seed, &mut self.sketch),
        }
        if let Some(maker) = &mut self.maker {
            self.features.extend_from_slice(maker.features(&self.sketch));
        }
    }
}

#[cfg(test)]
mod tests;
