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
//! Shingles are a set and come once each, in order of first appearance. Other chunks come as often as they occur. Chunks are
//! made of canonical tokens, except for shingle paragraphs, whose borders are punctuation and characters: there the text
//! counts as it stands, white space collapsed.

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

/// Cuts text at sentence ends: a full stop, question or exclamation mark (or one of their ideographic and other forms) before
/// white space or the end, and an empty line. Titles and abbreviations are cut too; both copies of a text are cut alike.
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

/// Characters after which a sentence is cut when no period came (Pereira et al. 2006, definition 1).
pub const SENTENCE_CHARACTERS: usize = 150;
/// Sentences of a shingle paragraph.
pub const PARAGRAPH_SENTENCES: usize = 3;

/// Calls `chunk` with the text of every shingle paragraph (Pereira et al. 2006, definition 1): sentences end at a period or
/// at the 150th character, three of them make a paragraph, none is in two. White space is collapsed to single blanks, which
/// count as characters inside a sentence and not before it. A period with nothing before it ends nothing. The sentences left over
/// at the end, one or two, are a last, shorter paragraph: the paper looks only at documents long enough to do
/// without, but two documents that differ in their last words are not the same.
pub fn shingle_paragraphs(text: &str, scratch: &mut Vec<u8>, mut chunk: impl FnMut(&[u8])) {
    let bytes = text.as_bytes();
    scratch.clear();
    let (mut sentences, mut characters) = (0, 0);
    let mut blank = false;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        // White space in ASCII; other kinds are characters like any other.
        if matches!(byte, b' ' | b'\n' | b'\t' | b'\r' | 0x0b | 0x0c) {
            blank = true;
            at += 1;
            continue;
        }
        if characters == 0 && byte == b'.' {
            blank = false;
            at += 1;
            continue;
        }
        if blank && characters > 0 {
            scratch.push(b' ');
            characters += 1;
        }
        blank = false;
        let mut ends = characters == SENTENCE_CHARACTERS;
        if !ends {
            let length = if byte < 0x80 { 1 } else { (!byte).leading_zeros() as usize };
            scratch.extend_from_slice(&bytes[at..(at + length).min(bytes.len())]);
            at += length;
            characters += 1;
            ends = byte == b'.' || characters == SENTENCE_CHARACTERS;
        }
        if ends {
            // Sentences stay apart: a cut is not a blank.
            scratch.push(b'\n');
            characters = 0;
            sentences += 1;
            if sentences == PARAGRAPH_SENTENCES {
                chunk(scratch);
                scratch.clear();
                sentences = 0;
            }
        }
    }
    if !scratch.is_empty() {
        chunk(scratch);
        scratch.clear();
    }
}

#[cfg(test)]
mod tests;
