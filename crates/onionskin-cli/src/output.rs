//! Numbers and tables for people, objects for programs.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use onionskin_core::format::shown_lines;
pub(crate) use onionskin_core::format::{bytes, grouped, percent, seconds, shown};
use serde::Serialize;

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

/// One object on a line of stdout.
pub(crate) fn print_json<T: Serialize>(value: &T) -> anyhow::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    std::io::stdout().lock().write_all(&line)?;
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
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// Where lines of the log go: to stderr, as harmless as [`print`].
pub(crate) struct ShownStderr(std::io::Stderr);

impl ShownStderr {
    pub fn new() -> ShownStderr {
        ShownStderr(std::io::stderr())
    }
}

impl Write for ShownStderr {
    /// A line comes in one piece.
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.write_all(shown_lines(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// A remark on stderr, beside the data; as harmless as [`print`].
#[expect(clippy::print_stderr, reason = "the one place for remarks")]
pub(crate) fn tell(text: &str) {
    eprintln!("{}", shown_lines(text));
}
