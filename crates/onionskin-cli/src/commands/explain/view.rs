//! Two texts in two columns, with what differs marked.
//!
//! ```text
//!   the same on both sides          │   the same on both sides
//!   … 123 words the same …          │   … 123 words the same …
//! - only in A                       │ + only in B
//! ~ in both, but elsewhere          │
//! ```
//!
//! Marks, not colours, carry the meaning. Texts come from anywhere, so nothing in them may steer
//! the terminal.

use std::ops::Range;

use onionskin::explain::{Block, Comparison, Side, Stretch};
use onionskin_core::format::steers;
use unicode_width::UnicodeWidthChar;

use crate::output::grouped;

/// How the view looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// Columns of the terminal.
    pub width: usize,
    /// Words of an equal part that are shown at each of its ends; `None` for all.
    pub context: Option<usize>,
    pub colour: bool,
}

/// Each column has at least so much.
const LEAST_COLUMN: usize = 16;
/// Of parts that only one text has, this many times the context is shown at each end.
const DIFFERENCE: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Same,
    OnlyA,
    OnlyB,
    Moved,
}

impl Mark {
    fn sign(self) -> char {
        match self {
            Mark::Same => ' ',
            Mark::OnlyA => '-',
            Mark::OnlyB => '+',
            Mark::Moved => '~',
        }
    }

    fn paint(self) -> &'static str {
        match self {
            Mark::Same => "\x1b[2m",
            Mark::OnlyA => "\x1b[31m",
            Mark::OnlyB => "\x1b[32m",
            Mark::Moved => "\x1b[33m",
        }
    }
}

type Line = (Mark, String);

struct View<'c> {
    comparison: &'c Comparison,
    look: Look,
    /// Room for text in a column.
    room: usize,
    out: String,
}

/// Draws the two texts.
pub(super) fn side_by_side(comparison: &Comparison, look: Look) -> String {
    // A mark and a blank before each text, and a rule between the columns.
    let room = (look.width.saturating_sub(3) / 2).saturating_sub(2).max(LEAST_COLUMN);
    let mut view = View { comparison, look, room, out: String::new() };
    view.rows(vec![(Mark::Same, "A".to_owned())], vec![(Mark::Same, "B".to_owned())]);
    for block in &comparison.blocks {
        match block {
            Block::Same(at) => {
                let passage = &comparison.passages[*at];
                view.same(&passage.a, &passage.b);
            }
            Block::Differ { a, b } => {
                let left = view.stretches(Side::A, a);
                let right = view.stretches(Side::B, b);
                view.rows(left, right);
            }
        }
    }
    view.out
}

impl View<'_> {
    /// A passage of both. Its two spellings have the same words, so they are shortened alike.
    fn same(&mut self, a: &Range<usize>, b: &Range<usize>) {
        let short = self.look.context.and_then(|context| {
            // Leaving out a few words would save nothing.
            let at_most = 2 * context + 4;
            let a = self.comparison.shortened(Side::A, a, context, at_most)?;
            Some((a, self.comparison.shortened(Side::B, b, context, at_most)?))
        });
        let Some((short_a, short_b)) = short else {
            let (left, right) = (self.part(Side::A, a, Mark::Same), self.part(Side::B, b, Mark::Same));
            return self.rows(left, right);
        };
        let left = self.part(Side::A, &short_a.head, Mark::Same);
        let right = self.part(Side::B, &short_b.head, Mark::Same);
        self.rows(left, right);
        let gap =
            |words: usize| self.wrapped(&format!("… {} words the same …", grouped(words as u64)), Mark::Same);
        let (left, right) = (gap(short_a.left_out), gap(short_b.left_out));
        self.rows(left, right);
        let left = self.part(Side::A, &short_a.tail, Mark::Same);
        let right = self.part(Side::B, &short_b.tail, Mark::Same);
        self.rows(left, right);
    }

    fn stretches(&self, side: Side, stretches: &[Stretch]) -> Vec<Line> {
        let mut lines = Vec::new();
        for stretch in stretches {
            let mark = match (stretch.moved, side) {
                (Some(_), _) => Mark::Moved,
                (None, Side::A) => Mark::OnlyA,
                (None, Side::B) => Mark::OnlyB,
            };
            let short = self.look.context.and_then(|context| {
                let words = DIFFERENCE * context.max(1);
                self.comparison.shortened(side, &stretch.range, words, 2 * words + 8)
            });
            match short {
                None => lines.extend(self.part(side, &stretch.range, mark)),
                Some(short) => {
                    let what =
                        if mark == Mark::Moved { "more that stand elsewhere" } else { "more only here" };
                    lines.extend(self.part(side, &short.head, mark));
                    let gap = format!("… {} words {what} …", grouped(short.left_out as u64));
                    lines.extend(self.wrapped(&gap, mark));
                    lines.extend(self.part(side, &short.tail, mark));
                }
            }
        }
        lines
    }

    fn part(&self, side: Side, range: &Range<usize>, mark: Mark) -> Vec<Line> {
        self.wrapped(&self.comparison.text(side)[range.clone()], mark)
    }

    fn wrapped(&self, text: &str, mark: Mark) -> Vec<Line> {
        wrap(text, self.room).into_iter().map(|line| (mark, line)).collect()
    }

    /// Lines of both columns, from the same row on.
    fn rows(&mut self, left: Vec<Line>, right: Vec<Line>) {
        let rows = left.len().max(right.len());
        let (mut left, mut right) = (left.into_iter(), right.into_iter());
        for _ in 0..rows {
            let (a, b) = (left.next(), right.next());
            self.cell(a.as_ref());
            let used = a.map_or(0, |(_, text)| 2 + width_of(&text));
            self.out.extend(std::iter::repeat_n(' ', (self.room + 2).saturating_sub(used)));
            self.out.push_str(" │ ");
            self.cell(b.as_ref());
            // Blanks at the end of a line help nobody.
            self.out.truncate(self.out.trim_end_matches(' ').len());
            self.out.push('\n');
        }
    }

    fn cell(&mut self, line: Option<&Line>) {
        let Some((mark, text)) = line else { return };
        let (on, off) = if self.look.colour { (mark.paint(), "\x1b[0m") } else { ("", "") };
        self.out.push_str(on);
        self.out.push(mark.sign());
        self.out.push(' ');
        self.out.push_str(text);
        self.out.push_str(off);
    }
}

/// A character as it may be shown: none that steer the terminal or turn the direction of what
/// follows.
fn harmless(c: char) -> char {
    if steers(c) { '\u{fffd}' } else { c }
}

fn width_of(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// Cuts a text into lines, between words where that is possible.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut used) = (String::new(), 0);
    for word in text.split_whitespace() {
        let word: String = word.chars().map(harmless).collect();
        let width = width_of(&word);
        if used > 0 && used + 1 + width > room {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        for c in word.chars() {
            let wide = c.width().unwrap_or(0);
            if used + wide > room && used > 0 {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            line.push(c);
            used += wide;
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(a: &str, b: &str, width: usize, context: Option<usize>) -> String {
        let recipe = "w2-rabin64-t8".parse().unwrap();
        let comparison = Comparison::new(a.to_owned(), b.to_owned(), &recipe);
        side_by_side(&comparison, Look { width, context, colour: false })
    }

    #[test]
    fn lines_fit() {
        assert_eq!(wrap("one two  three\nfour", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("incomprehensible", 7), ["incompr", "ehensib", "le"]);
        assert_eq!(wrap("我们的网站", 5), ["我们", "的网", "站"]);
        assert_eq!(wrap(" \n ", 5), Vec::<String>::new());
        assert_eq!(wrap("a\u{1b}[31mred\u{202e}", 80), ["a\u{fffd}[31mred\u{fffd}"]);
    }

    #[test]
    fn differences_are_marked() {
        let wanted = [
            "  A                  │   B",
            "  the quick          │   The Quick,",
            "- brown              │ + red",
            "  fox jumps over     │   fox jumps over",
            "                     │ + gladly",
        ];
        assert_eq!(
            view("the quick brown fox jumps over", "The Quick, red fox jumps over gladly", 43, None)
                .lines()
                .collect::<Vec<_>>(),
            wanted
        );
        let moved = view("a b c d e f g", "e f g a b c d", 43, None);
        assert!(
            moved.contains(
                "                     │ ~ e f g\n  a b c d            │   a b c d\n~ e f g              │\n"
            ),
            "{moved}"
        );
    }

    #[test]
    fn long_parts_are_shortened() {
        let words: Vec<String> = (0..2000).map(|n| format!("w{n}")).collect();
        let text = words.join(" ");
        let short = view(&text, &text, 100, Some(3));
        assert_eq!(short.lines().count(), 4, "{short}");
        assert!(short.contains("… 1,994 words the same …") && short.contains("w1999"), "{short}");
        let short = view(&text, "nothing like it", 100, Some(3));
        assert!(short.contains("… 1,952 words more only here …"), "{short}");
        assert!(view(&text, &text, 100, None).lines().count() > 200);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let text =
            "我们的网站 ".repeat(50) + &"long ".repeat(90) + "incomprehensibilities".repeat(9).as_str();
        for width in [43, 44, 80, 100, 201] {
            for line in view(&text, "long long 我们的网站 long", width, Some(5)).lines() {
                assert!(width_of(line) <= width, "{width}: {line}");
            }
        }
    }
}
