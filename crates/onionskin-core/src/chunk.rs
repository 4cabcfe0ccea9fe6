//! Chunkings: the ways to cut a document into the pieces that are fingerprinted and compared.
//!
//! | spelling | chunk | source |
//! |---|---|---|
//! | `doc` | the whole document | |
//! | `l4` | four lines, without overlap; lines with no word do not count | Shivakumar and Garcia-Molina 1998; Cho et al. 2000 |
//! | `sent` | a sentence | |
//! | `para` | a paragraph: lines up to an empty one | |
//! | `sp` | a shingle paragraph: three sentences without overlap | Pereira, Baeza-Yates and Ziviani 2006, definition 1 |
//! | `w4` | four words, overlapping, as a set | Broder 2000, section 2 |
//! | `c9`, `ls2` | nine letters, two lines; overlapping, as sets | Broder 2000, section 2 |
//!
//! Shingles are a set and come once each, in order of first appearance. Other chunks come as often
//! as they occur. Chunks are made of canonical tokens, except for shingle paragraphs, whose borders
//! are punctuation and characters: there the text counts as it stands, white space collapsed.

use std::fmt;
use std::num::NonZeroU16;
use std::str::FromStr;

use crate::token::Unit;

/// A way to cut a document. The default recipe says which ones a scan keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chunking {
    /// All of it.
    Document,
    /// n lines, without overlap; what is left at the end is a shorter chunk.
    Lines(NonZeroU16),
    /// Sentences.
    Sentences,
    /// Paragraphs.
    Paragraphs,
    /// Three sentences, each ended by a period or cut at 150 characters.
    ShingleParagraphs,
    /// Overlapping shingles of w tokens, as a set.
    Shingles(Unit, NonZeroU16),
}

/// Not a chunking.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown chunking `{0}`; known are doc, sent, para, sp, l<n> (lines), w<n> (words), c<n> (letters) and ls<n> (line shingles), n from 1 to 1024"
)]
pub struct UnknownChunking(pub String);

impl fmt::Display for Chunking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Chunking::Document => f.write_str("doc"),
            Chunking::Lines(n) => write!(f, "l{n}"),
            Chunking::Sentences => f.write_str("sent"),
            Chunking::Paragraphs => f.write_str("para"),
            Chunking::ShingleParagraphs => f.write_str("sp"),
            Chunking::Shingles(Unit::Word, w) => write!(f, "w{w}"),
            Chunking::Shingles(Unit::Letter, w) => write!(f, "c{w}"),
            Chunking::Shingles(Unit::Line, w) => write!(f, "ls{w}"),
        }
    }
}

impl FromStr for Chunking {
    type Err = UnknownChunking;

    fn from_str(spelling: &str) -> Result<Chunking, UnknownChunking> {
        let counted = |prefix: &str, make: fn(NonZeroU16) -> Chunking| {
            let digits = spelling.strip_prefix(prefix)?;
            let n: NonZeroU16 = digits.parse().ok()?;
            // A leading zero or sign would give one chunking two spellings.
            (n.get() <= 1024 && n.to_string() == digits).then(|| make(n))
        };
        match spelling {
            "doc" => Some(Chunking::Document),
            "sent" => Some(Chunking::Sentences),
            "para" => Some(Chunking::Paragraphs),
            "sp" => Some(Chunking::ShingleParagraphs),
            _ => counted("ls", |n| Chunking::Shingles(Unit::Line, n))
                .or_else(|| counted("l", Chunking::Lines))
                .or_else(|| counted("w", |n| Chunking::Shingles(Unit::Word, n)))
                .or_else(|| counted("c", |n| Chunking::Shingles(Unit::Letter, n))),
        }
        .ok_or_else(|| UnknownChunking(spelling.to_owned()))
    }
}

/// Cuts text at sentence ends: a full stop, question or exclamation mark (or one of their
/// ideographic and other forms) before white space or the end, and an empty line. Titles and
/// abbreviations are cut too; both copies of a text are cut alike.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut chars = rest.char_indices().peekable();
        let mut end = rest.len();
        while let Some((at, c)) = chars.next() {
            let next = chars.peek().map(|&(_, next)| next);
            let ends = match c {
                '.' | '!' | '?' | '؟' | '।' | '…' => next.is_none_or(char::is_whitespace),
                '。' | '！' | '？' => true,
                '\n' => next == Some('\n'),
                _ => false,
            };
            if ends {
                end = at + c.len_utf8();
                break;
            }
        }
        let (sentence, remaining) = rest.split_at(end);
        rest = remaining;
        Some(sentence)
    })
}

/// Cuts text at empty lines.
pub fn paragraphs(text: &str) -> impl Iterator<Item = &str> {
    let mut lines = text.split_inclusive('\n');
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        for line in lines.by_ref() {
            at += line.len();
            if line.trim().is_empty() {
                break;
            }
        }
        (at > start).then(|| &text[start..at])
    })
}

/// Characters after which a sentence is cut when no period came (Pereira et al. 2006, definition
/// 1).
pub const SENTENCE_CHARACTERS: usize = 150;
/// Sentences of a shingle paragraph.
pub const PARAGRAPH_SENTENCES: usize = 3;

/// Calls `chunk` with the text of every shingle paragraph (Pereira et al. 2006, definition 1):
/// sentences end at a period or at the 150th character, three of them make a paragraph, none is in
/// two. White space is collapsed to single blanks, which count as characters inside a sentence and
/// not before it. A period with nothing before it ends nothing. The sentences left over at the end,
/// one or two, are a last, shorter paragraph: the paper looks only at documents long enough to do
/// without, but two documents that differ in their last words are not the same.
pub fn shingle_paragraphs(text: &str, scratch: &mut ParagraphScratch, mut chunk: impl FnMut(&[u8])) {
    let ParagraphScratch { collapsed, paragraph } = scratch;
    collapse_white_space(text.as_bytes(), collapsed);
    paragraph.clear();
    let mut sentences = 0;
    let mut rest = &collapsed[..];
    while let Some(start) = rest.iter().position(|byte| !matches!(byte, b' ' | b'.')) {
        let (sentence, remaining) = rest[start..].split_at(sentence_length(&rest[start..]));
        rest = remaining;
        paragraph.extend_from_slice(sentence);
        // Sentences stay apart: a cut is not a blank.
        paragraph.push(b'\n');
        sentences += 1;
        if sentences == PARAGRAPH_SENTENCES {
            chunk(paragraph);
            paragraph.clear();
            sentences = 0;
        }
    }
    if !paragraph.is_empty() {
        chunk(paragraph);
    }
}

/// Memory that [`shingle_paragraphs`] keeps from one document to the next.
#[derive(Clone, Debug, Default)]
pub struct ParagraphScratch {
    collapsed: Vec<u8>,
    paragraph: Vec<u8>,
}

/// Bytes up to and with a period, or of 150 characters, or all.
fn sentence_length(text: &[u8]) -> usize {
    let window = &text[..text.len().min(SENTENCE_CHARACTERS)];
    if let Some(period) = memchr::memchr(b'.', window) {
        // No more bytes than characters are wanted, so the period comes in time.
        return period + 1;
    }
    if window.is_ascii() {
        return window.len();
    }
    // A character begins at every byte that does not go on with one.
    let mut characters = 0;
    for (at, byte) in text.iter().enumerate() {
        let begins = *byte & 0xc0 != 0x80;
        if begins && characters == SENTENCE_CHARACTERS {
            return at;
        }
        characters += usize::from(begins);
        if *byte == b'.' {
            return at + 1;
        }
    }
    text.len()
}

/// Copies text with runs of ASCII white space made one blank, none at the end. (Other kinds of
/// space are characters like any other.)
fn collapse_white_space(text: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.resize(text.len(), 0);
    let mut length = 0;
    let mut after_blank = true;
    for byte in text {
        let blank = matches!(byte, b' ' | b'\t'..=b'\r');
        out[length] = if blank { b' ' } else { *byte };
        // Without a branch: the place is written again when it was not wanted.
        length += usize::from(!(blank && after_blank));
        after_blank = blank;
    }
    out.truncate(length);
    if out.last() == Some(&b' ') {
        out.pop();
    }
}

#[cfg(test)]
mod tests;
