//! Numbers and tables for people, objects for programs.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Write;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
pub(crate) use onionskin_core::format::{bytes, grouped, percent, seconds};
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

/// Text on stdout; a closed pipe is an error that `main` knows.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}
