//! Numbers and tables for people, objects for programs.

use std::io::Write;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
pub(crate) use onionskin_core::format::{bytes, grouped, percent, seconds};
use serde::Serialize;

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

/// Text on stdout; a closed pipe is an error that `main` knows.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}
