//! Text in lines out of text in pieces.
//!
//! White space in HTML means almost nothing, and elements mean breaks of four strengths. The writer
//! keeps the strongest break since the last visible character and writes it only when another
//! visible character comes, so there is never white space at either end, nor more than one empty
//! line in a row.

/// What separates two pieces of text; stronger ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Break {
    /// Nothing.
    None,
    /// One space.
    Space,
    /// A tab: the next cell of a table.
    Tab,
    /// A new line.
    Line,
    /// An empty line.
    Paragraph,
}

impl Break {
    fn as_str(self) -> &'static str {
        match self {
            Break::None => "",
            Break::Space => " ",
            Break::Tab => "\t",
            Break::Line => "\n",
            Break::Paragraph => "\n\n",
        }
    }
}

/// Collects text, one strength of break at a time.
#[derive(Debug)]
pub(crate) struct TextWriter {
    out: String,
    pending: Break,
}

/// What a byte is to the writer.
const PLAIN: u8 = 0;
const SPACE: u8 = 1;
/// A control character, or the first byte of a two-byte character of which some are controls.
const ODD: u8 = 2;

const CLASS: [u8; 256] = {
    let mut class = [PLAIN; 256];
    let mut byte = 0;
    while byte < 0x20 {
        class[byte] = ODD;
        byte += 1;
    }
    class[b' ' as usize] = SPACE;
    class[b'\t' as usize] = SPACE;
    class[b'\n' as usize] = SPACE;
    class[0x0c] = SPACE;
    class[b'\r' as usize] = SPACE;
    class[0x7f] = ODD;
    class[0xc2] = ODD;
    class
};

impl TextWriter {
    /// A writer that goes on with an empty `out`, for the sake of its buffer.
    pub(crate) fn new(mut out: String) -> Self {
        out.clear();
        TextWriter { out, pending: Break::None }
    }

    /// The text.
    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// How many bytes were written.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// At least this break comes before the next text.
    pub(crate) fn break_at_least(&mut self, least: Break) {
        self.pending = self.pending.max(least);
    }

    /// Exactly this break comes before the next text; for cells, whose last paragraph ends no line.
    pub(crate) fn replace_break(&mut self, exact: Break) {
        self.pending = exact;
    }

    /// A line ends here, and if it was empty it is seen as an empty line.
    pub(crate) fn end_line(&mut self) {
        self.pending = if self.pending >= Break::Line { Break::Paragraph } else { Break::Line };
    }

    /// Adds text, with runs of white space made one space.
    pub(crate) fn push(&mut self, text: &str) {
        self.push_pieces(text, |writer, _| writer.break_at_least(Break::Space));
    }

    /// Adds text whose line ends are kept.
    pub(crate) fn push_lines(&mut self, text: &str) {
        self.push_pieces(text, |writer, space| {
            writer.break_at_least(Break::Space);
            for (at, &byte) in space.iter().enumerate() {
                if byte == b'\n' || (byte == b'\r' && space.get(at + 1) != Some(&b'\n')) {
                    writer.end_line();
                }
            }
        });
    }

    fn push_pieces(&mut self, text: &str, on_space: impl Fn(&mut Self, &[u8])) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match CLASS[usize::from(bytes[at])] {
                SPACE => {
                    let length =
                        bytes[at..].iter().take_while(|&&byte| CLASS[usize::from(byte)] == SPACE).count();
                    on_space(self, &bytes[at..at + length]);
                    at += length;
                }
                ODD => at += self.push_odd(text, at),
                _ => {
                    let end = end_of_regular(bytes, at);
                    self.write(&text[at..end]);
                    at = end;
                }
            }
        }
    }

    /// Handles one odd character and says how long it is.
    fn push_odd(&mut self, text: &str, at: usize) -> usize {
        let bytes = text.as_bytes();
        if bytes[at] != 0xc2 {
            return 1;
        }
        match bytes.get(at + 1) {
            // A space that does not break is still a space: pages use it for layout.
            Some(0xa0) => self.break_at_least(Break::Space),
            Some(0x80..0xa0) => {}
            // A soft hyphen is not seen, unless a line is broken there.
            Some(0xad) => {}
            _ => self.write(&text[at..at + 2]),
        }
        2
    }

    fn write(&mut self, text: &str) {
        if self.pending != Break::None {
            if !self.out.is_empty() {
                self.out.push_str(self.pending.as_str());
            }
            self.pending = Break::None;
        }
        self.out.push_str(text);
    }
}

/// The end of the longest run from `at`, which is at a plain byte, that can be copied as it is:
/// plain bytes, and single spaces between them. Goes by eight bytes at a time while they hold
/// nothing else.
fn end_of_regular(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    /// The high bit of each byte that is zero.
    fn zeros(word: u64) -> u64 {
        const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
        !(((word & LOW) + LOW) | word | LOW)
    }
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let word = u64::from_le_bytes(*chunk);
        let spaces = zeros(word ^ (ONES * 0x20));
        let odd = zeros(word & (ONES * 0xe0)) | zeros(word ^ (ONES * 0x7f)) | zeros(word ^ (ONES * 0xc2));
        if odd | (spaces & (spaces << 8)) != 0 {
            break;
        }
        // A space at the end of the chunk is looked at again, together with what follows it.
        at += if spaces >> 63 == 1 { 7 } else { 8 };
    }
    while at < bytes.len() {
        let byte = bytes[at];
        if CLASS[usize::from(byte)] == PLAIN {
            at += 1;
        } else if byte == b' ' && bytes.get(at + 1).is_some_and(|&next| CLASS[usize::from(next)] == PLAIN) {
            at += 2;
        } else {
            break;
        }
    }
    at
}

/// Copies plain text as it is, without the characters that are no text: line ends become `\n`, form
/// feeds too, and other control characters go.
pub(crate) fn copy_plain(text: &str, out: &mut String) {
    out.clear();
    let bytes = text.as_bytes();
    let (mut copied, mut at) = (0, 0);
    while at < bytes.len() {
        let byte = bytes[at];
        let (length, instead) = match byte {
            b'\n' | b'\t' | b' ' => {
                at += 1;
                continue;
            }
            _ if CLASS[usize::from(byte)] == PLAIN => {
                at += 1;
                continue;
            }
            b'\r' if bytes.get(at + 1) == Some(&b'\n') => (1, ""),
            b'\r' | 0x0c => (1, "\n"),
            0xc2 if bytes.get(at + 1).is_some_and(|&next| next >= 0xa0) => {
                at += 2;
                continue;
            }
            0xc2 => (2, ""),
            _ => (1, ""),
        };
        out.push_str(&text[copied..at]);
        out.push_str(instead);
        at += length;
        copied = at;
    }
    out.push_str(&text[copied..]);
}

#[cfg(test)]
mod tests;
