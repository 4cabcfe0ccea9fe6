//! Normal forms C and KC (Unicode Standard Annex 15).
//!
//! The naive way is to take the whole text apart, put the marks of each character in order, and
//! join what joins. But nearly all text is normal already, so the text is scanned first for a
//! *suspect*: a character that is not certain to stay, or is not a starter. All others are borders:
//! nothing that happens before them reaches behind. Between two borders that follow each other
//! there is nothing to do; a border with the suspects after it is a *segment*, the unit of work.
//! The quick check of the annex settles most segments (a Hindi vowel sign is suspect and always
//! right); the rest are taken apart, ordered and joined by themselves.
//!
//! A segment is as long as outside data wants it to be. Work on it takes 4 bytes a decomposed
//! character and the time of one stable sort.

use super::tables::{
    COMPOSITE_SLOTS, COMPOSITES, DECOMPOSED, EMPTY_SLOT, RECORD_BLOCKS, RECORD_INDEX, RECORDS,
};
use super::{NFC_SUSPECT, NFKC_SUSPECT, lookup};

/// A normal form that composes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// Canonical equivalents become one: `e` with a combining acute is `é`.
    Nfc,
    /// Compatible characters become one as well: `ﬁ` is `fi`, `Ａ` is `A`, `①` is `1`.
    Nfkc,
}

impl Form {
    #[inline]
    pub(super) fn suspect_bit(self) -> u16 {
        match self {
            Form::Nfc => NFC_SUSPECT,
            Form::Nfkc => NFKC_SUSPECT,
        }
    }
}

/// What normalisation knows of a character, Hangul syllables apart.
#[derive(Clone, Copy)]
pub(super) struct Record {
    canonical_start: u16,
    compatible_start: u16,
    /// 0 when the character does not decompose.
    canonical_len: u8,
    compatible_len: u8,
    combining_class: u8,
    check: u8,
}

const NFC_NO: u8 = 1;
const NFC_MAYBE: u8 = 1 << 1;
const NFKC_NO: u8 = 1 << 2;
const NFKC_MAYBE: u8 = 1 << 3;

impl Record {
    pub(super) const fn new(
        canonical_start: u16,
        canonical_len: u8,
        compatible_start: u16,
        compatible_len: u8,
        combining_class: u8,
        check: u8,
    ) -> Record {
        Record { canonical_start, compatible_start, canonical_len, compatible_len, combining_class, check }
    }

    fn of(c: char) -> &'static Record {
        let code = u32::from(c) as usize;
        let number =
            RECORD_INDEX.get(code >> 6).map_or(0, |&block| RECORD_BLOCKS[usize::from(block)][code & 63]);
        &RECORDS[usize::from(number)]
    }

    /// The full decomposition in canonical order, empty when the character stays.
    fn decomposition(&self, form: Form) -> &'static [char] {
        let (start, len) = match form {
            Form::Nfc => (self.canonical_start, self.canonical_len),
            Form::Nfkc => (self.compatible_start, self.compatible_len),
        };
        &DECOMPOSED[usize::from(start)..][..usize::from(len)]
    }

    fn quick_check(&self, form: Form) -> Answer {
        let (no, maybe) = match form {
            Form::Nfc => (NFC_NO, NFC_MAYBE),
            Form::Nfkc => (NFKC_NO, NFKC_MAYBE),
        };
        if self.check & no != 0 {
            Answer::No
        } else if self.check & maybe != 0 {
            Answer::Maybe
        } else {
            Answer::Yes
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Yes,
    No,
    Maybe,
}

/// Is the text in the given form? The answer is exact.
pub fn is_normalized(text: &str, form: Form) -> bool {
    let mut work = Workspace::default();
    let mut normal = String::new();
    let mut segments = Segments::new(text, form);
    while let Some((start, end)) = segments.next_segment() {
        let segment = &text[start..end];
        match quick_check(segment, form) {
            Answer::Yes => {}
            Answer::No => return false,
            Answer::Maybe => {
                normal.clear();
                work.normalize_segment(segment, form, &mut normal);
                if normal != segment {
                    return false;
                }
            }
        }
    }
    true
}

/// Append the given form of `text` to `out`. What `out` held before is left alone, and does not
/// join with it.
pub fn normalize_into(text: &str, form: Form, out: &mut String) {
    out.reserve(text.len());
    let mut work = Workspace::default();
    let mut copied = 0;
    let mut segments = Segments::new(text, form);
    while let Some((start, end)) = segments.next_segment() {
        let segment = &text[start..end];
        if quick_check(segment, form) != Answer::Yes {
            out.push_str(&text[copied..start]);
            work.normalize_segment(segment, form, out);
            copied = end;
        }
    }
    out.push_str(&text[copied..]);
}

/// The parts of a text that need a closer look.
struct Segments<'a> {
    text: &'a str,
    form: Form,
    /// Everything before is done, and a border (or the end) is here.
    at: usize,
}

impl<'a> Segments<'a> {
    fn new(text: &'a str, form: Form) -> Segments<'a> {
        Segments { text, form, at: 0 }
    }

    /// Start and end of the next run of suspects, with the border before it.
    fn next_segment(&mut self) -> Option<(usize, usize)> {
        let suspect = self.next_suspect()?;
        let border = self.text[self.at..suspect].chars().next_back();
        let start = suspect - border.map_or(0, char::len_utf8);
        let run = &self.text[suspect..];
        let end = suspect + run.find(|c| !lookup(c).is_suspect(self.form)).unwrap_or(run.len());
        self.at = end;
        Some((start, end))
    }

    fn next_suspect(&self) -> Option<usize> {
        let end = self.text.len();
        let mut chars = self.text[self.at..].chars();
        loop {
            let rest = chars.as_str();
            let ascii = ascii_prefix(rest.as_bytes());
            if ascii != 0 {
                chars = rest[ascii..].chars();
            }
            // One stretch of other text, up to the next ASCII character.
            loop {
                let before = chars.as_str().len();
                let c = chars.next()?;
                if c.is_ascii() {
                    break;
                }
                if lookup(c).is_suspect(self.form) {
                    return Some(end - before);
                }
            }
        }
    }
}

/// How many bytes from the start are ASCII, counted eight at a time.
fn ascii_prefix(bytes: &[u8]) -> usize {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    let (words, tail) = bytes.as_chunks::<8>();
    for (i, &word) in words.iter().enumerate() {
        let high = u64::from_le_bytes(word) & HIGH_BITS;
        if high != 0 {
            return i * 8 + (high.trailing_zeros() / 8) as usize;
        }
    }
    words.len() * 8 + tail.iter().take_while(|b| b.is_ascii()).count()
}

/// The quick check of the annex, section 9: wrong order and characters that never occur are a clear
/// no.
fn quick_check(segment: &str, form: Form) -> Answer {
    let mut last_class = 0;
    let mut answer = Answer::Yes;
    for c in segment.chars() {
        let record = Record::of(c);
        let class = record.combining_class;
        if class != 0 && class < last_class {
            return Answer::No;
        }
        match record.quick_check(form) {
            Answer::Yes => {}
            Answer::No => return Answer::No,
            Answer::Maybe => answer = Answer::Maybe,
        }
        last_class = class;
    }
    answer
}

/// A character and its combining class in 4 bytes, so that a hostile run of marks costs little and
/// sorts fast.
#[derive(Clone, Copy)]
struct Classed(u32);

impl Classed {
    fn new(c: char) -> Classed {
        Classed::with_class(c, Record::of(c).combining_class)
    }

    fn with_class(c: char, class: u8) -> Classed {
        Classed(u32::from(class) << 24 | u32::from(c))
    }

    fn class(self) -> u8 {
        (self.0 >> 24) as u8
    }

    fn char(self) -> char {
        // Always a scalar value, as `with_class` is the only way here.
        char::from_u32(self.0 & 0x00ff_ffff).unwrap_or(char::REPLACEMENT_CHARACTER)
    }
}

/// Room for one segment, used again for the next.
#[derive(Default)]
struct Workspace {
    chars: Vec<Classed>,
}

impl Workspace {
    fn normalize_segment(&mut self, segment: &str, form: Form, out: &mut String) {
        self.chars.clear();
        for c in segment.chars() {
            self.decompose(c, form);
        }
        self.reorder();
        self.compose(out);
    }

    fn decompose(&mut self, c: char, form: Form) {
        if let Some(jamo) = hangul::decompose(c) {
            self.chars.extend(jamo.into_iter().flatten().map(Classed::new));
            return;
        }
        let record = Record::of(c);
        match record.decomposition(form) {
            [] => self.chars.push(Classed::with_class(c, record.combining_class)),
            parts => self.chars.extend(parts.iter().map(|&part| Classed::new(part))),
        }
    }

    /// Put each run of non-starters in the order of their classes, equals as they stood.
    fn reorder(&mut self) {
        for run in self.chars.chunk_by_mut(|_, next| next.class() != 0) {
            // The first may be a starter, whose class 0 keeps it in front.
            if !run.is_sorted_by_key(|c| c.class()) {
                run.sort_by_key(|c| c.class());
            }
        }
    }

    /// Join each character with the last starter before it, unless something between them stands in
    /// the way.
    fn compose(&mut self, out: &mut String) {
        // `kept` characters are final but for the starter, which may still grow. The rest of the
        // vector is read and never overtaken.
        let mut kept = 0;
        let mut starter: Option<(usize, char)> = None;
        let mut last_class = None;
        for i in 0..self.chars.len() {
            let next = self.chars[i];
            let class = next.class();
            if let Some((at, first)) = starter
                // Right behind the starter, or behind characters of lower classes that did not
                // join.
                && last_class.is_none_or(|last| last < class)
                && let Some(joined) = pair(first, next.char())
            {
                // What begins with a starter is one.
                self.chars[at] = Classed::with_class(joined, 0);
                starter = Some((at, joined));
                continue;
            }
            self.chars[kept] = next;
            if class == 0 {
                starter = Some((kept, next.char()));
                last_class = None;
            } else {
                last_class = Some(class);
            }
            kept += 1;
        }
        out.extend(self.chars[..kept].iter().map(|c| c.char()));
    }
}

/// The canonical combining class.
#[cfg(test)]
pub(super) fn combining_class(c: char) -> u8 {
    Record::of(c).combining_class
}

/// The full decomposition, the character itself when there is none.
#[cfg(test)]
pub(super) fn decomposition(c: char, form: Form) -> Vec<char> {
    match hangul::decompose(c) {
        Some(jamo) => jamo.into_iter().flatten().collect(),
        None => match Record::of(c).decomposition(form) {
            [] => vec![c],
            parts => parts.to_vec(),
        },
    }
}

/// The character that the two join to.
pub(super) fn pair(first: char, second: char) -> Option<char> {
    hangul::compose(first, second).or_else(|| {
        // Every pair is tried that might join: with binary search over the sorted pairs, decomposed
        // Vietnamese took half as long again.
        let hash = u32::from(first)
            .wrapping_mul(0x9e37_79b1)
            .wrapping_add(u32::from(second).wrapping_mul(0x85eb_ca6b));
        let mut slot = (hash >> (u32::BITS - COMPOSITE_SLOTS.len().ilog2())) as usize;
        loop {
            let number = COMPOSITE_SLOTS[slot];
            if number == EMPTY_SLOT {
                return None;
            }
            let (a, b, joined) = COMPOSITES[usize::from(number)];
            if (a, b) == (first, second) {
                return Some(joined);
            }
            // Half of the slots are empty, so this ends.
            slot = (slot + 1) % COMPOSITE_SLOTS.len();
        }
    })
}

/// [`pair`] without the hash table.
#[cfg(test)]
pub(super) fn naive_pair(first: char, second: char) -> Option<char> {
    hangul::compose(first, second).or_else(|| {
        COMPOSITES.iter().find(|&&(a, b, _)| (a, b) == (first, second)).map(|&(_, _, joined)| joined)
    })
}

/// The 11,172 Hangul syllables are arithmetic (The Unicode Standard, section 3.12).
mod hangul {
    const S_BASE: u32 = 0xac00;
    const L_BASE: u32 = 0x1100;
    const V_BASE: u32 = 0x1161;
    /// One before the first trailing consonant: a syllable without one counts as its own.
    const T_BASE: u32 = 0x11a7;
    const L_COUNT: u32 = 19;
    const V_COUNT: u32 = 21;
    const T_COUNT: u32 = 28;
    const S_COUNT: u32 = L_COUNT * V_COUNT * T_COUNT;

    /// Position of `c` in a range of `count`.
    fn index(c: char, base: u32, count: u32) -> Option<u32> {
        u32::from(c).checked_sub(base).filter(|&i| i < count)
    }

    pub(super) fn decompose(c: char) -> Option<[Option<char>; 3]> {
        let s = index(c, S_BASE, S_COUNT)?;
        let trailing = match s % T_COUNT {
            0 => None,
            t => char::from_u32(T_BASE + t),
        };
        Some([
            char::from_u32(L_BASE + s / (V_COUNT * T_COUNT)),
            char::from_u32(V_BASE + s / T_COUNT % V_COUNT),
            trailing,
        ])
    }

    pub(super) fn compose(first: char, second: char) -> Option<char> {
        if let Some(l) = index(first, L_BASE, L_COUNT) {
            let v = index(second, V_BASE, V_COUNT)?;
            return char::from_u32(S_BASE + (l * V_COUNT + v) * T_COUNT);
        }
        let s = index(first, S_BASE, S_COUNT)?;
        let t = index(second, T_BASE, T_COUNT)?;
        // Only a syllable without a trailing consonant takes one.
        if s % T_COUNT == 0 && t != 0 { char::from_u32(S_BASE + s + t) } else { None }
    }
}
