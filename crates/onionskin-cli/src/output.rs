//! Numbers and tables for people, objects for programs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
pub(crate) use onionskin_core::format::{bytes, grouped, percent, seconds, shown};
use onionskin_core::format::{shown_lines, steers};
use serde::Serialize;
use serde_json::ser::Formatter;

use crate::args::Global;

/// A table whose columns after the first are numbers.
pub(crate) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(UTF8_FULL_CONDENSED)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// A table of things and how many of them there are.
pub(crate) struct Counts(Table);

impl Counts {
    pub fn new(head: &str) -> Counts {
        Counts(table(&[head, "number"]))
    }

    pub fn row(&mut self, name: &str, count: u64) {
        self.0.add_row([name.to_owned(), grouped(count)]);
    }

    /// A row for every entry, under its name after the prefix.
    pub fn rows(&mut self, prefix: &str, counts: &BTreeMap<String, u64>) {
        for (name, count) in counts {
            self.row(&format!("{prefix}{name}"), *count);
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// JSON in which no word from outside steers a terminal: control and bidirectional characters are
/// spelled, as in `\u202e`, which is the same value. [`serde_json`] spells those below a space.
pub(crate) fn write_json<T: Serialize>(out: impl Write, value: &T) -> serde_json::Result<()> {
    value.serialize(&mut serde_json::Serializer::with_formatter(out, Harmless))
}

struct Harmless;

impl Formatter for Harmless {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, text: &str) -> io::Result<()> {
        out.write_all(harmless_json(text).as_bytes())
    }
}

/// The same of JSON text. What steers a terminal can be in strings only, or is white space.
pub(crate) fn harmless_json(text: &str) -> Cow<'_, str> {
    // White space of JSON stays. There is none unspelled in a string.
    let is_spelled = |c: char| steers(c) && !matches!(c, '\n' | '\r' | '\t');
    // Most of what is printed is ASCII, and quickly known to be.
    if (text.is_ascii() && !text.contains('\x7f')) || !text.contains(is_spelled) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_spelled(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = fmt::Write::write_fmt(&mut out, format_args!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// One object on a line of stdout.
pub(crate) fn print_json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    let mut line = Vec::with_capacity(128);
    write_json(&mut line, value)?;
    line.push(b'\n');
    io::stdout().lock().write_all(&line)?;
    Ok(())
}

/// A value whose `type` says what it is.
#[derive(Serialize)]
pub(crate) struct Tagged<'a, T> {
    pub r#type: &'static str,
    #[serde(flatten)]
    pub value: &'a T,
}

/// A summary, row or answer on a line of stdout, with its `type`.
pub(crate) fn print_tagged<T: Serialize>(r#type: &'static str, value: &T) -> anyhow::Result<()> {
    print_json(&Tagged { r#type, value })
}

/// A summary as one object under `--json`, or in words.
pub(crate) fn print_summary<T: Serialize>(
    global: &Global,
    r#type: &'static str,
    summary: &T,
    describe: impl FnOnce(&T) -> String,
) -> anyhow::Result<()> {
    if global.json { print_tagged(r#type, summary) } else { print(&describe(summary)) }
}

/// Text for people on stdout; a closed pipe is an error that `main` knows. Words of foreign origin
/// may be in it anywhere, and none of them reaches a terminal as it is.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_as_is(&shown_lines(text))
}

/// Data on stdout, or text that is known to be harmless.
pub(crate) fn print_as_is(text: &str) -> anyhow::Result<()> {
    io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// Where lines of the log go: to stderr, as harmless as [`print`].
pub(crate) struct ShownStderr(io::Stderr);

impl ShownStderr {
    pub fn new() -> ShownStderr {
        ShownStderr(io::stderr())
    }
}

impl Write for ShownStderr {
    /// A line comes in one piece.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(shown_lines(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// A remark on stderr, beside the data; as harmless as [`print`].
#[expect(clippy::print_stderr, reason = "the one place for remarks")]
pub(crate) fn tell(text: &str) {
    eprintln!("{}", shown_lines(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A title with U+202E or U+009B steered the terminal that JSON was printed to.
    #[test]
    fn json_is_harmless_and_the_same_value() {
        let words =
            "rtl \u{202e}gnp.exe \u{9b}2J \u{7f} \u{1b}[31m \u{2066} \u{feff} \"\\\n é 東京 \u{1f600}";
        let value = serde_json::json!({ words: [words, "plain", 1.5, null] });
        let mut line = Vec::new();
        write_json(&mut line, &value).unwrap();
        let line = String::from_utf8(line).unwrap();
        assert!(!line.contains(steers), "{line:?}");
        assert!(line.contains("rtl \\u202egnp.exe \\u009b2J \\u007f \\u001b[31m"), "{line}");
        assert!(line.contains("é 東京 \u{1f600}"), "{line}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&line).unwrap(), value);
        let pretty = format!("{value:#}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&harmless_json(&pretty)).unwrap(), value);
        assert!(!harmless_json(&pretty).contains(|c| c != '\n' && steers(c)));
    }
}
