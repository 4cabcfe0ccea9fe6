//! Numbers and tables for people, objects for programs.

use std::io::Write;

use comfy_table::presets::UTF8_FULL_CONDENSED;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use onionskin::ScanSummary;
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

/// Text on stdout; a closed pipe is an error that `main` knows.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

/// `onionskin scan --json`.
#[derive(Serialize)]
pub(crate) struct ScanWire<'a> {
    r#type: &'static str,
    atlas: String,
    recipe: String,
    documents: u64,
    empty_documents: u64,
    revisits: u64,
    tokens: u64,
    text_bytes: u64,
    sites: u64,
    links_found: u64,
    links: u64,
    chunks: &'a std::collections::BTreeMap<String, u64>,
    bad_records: &'a std::collections::BTreeMap<String, u64>,
    bad_record_examples: Vec<BadRecordWire<'a>>,
    skipped: &'a std::collections::BTreeMap<String, u64>,
    sources: u64,
    input_bytes: u64,
    resumed_documents: u64,
    seconds: f64,
    cpu_seconds: f64,
    peak_memory: Option<u64>,
    spilled_bytes: u64,
}

#[derive(Serialize)]
struct BadRecordWire<'a> {
    place: &'a str,
    reason: &'a str,
}

impl<'a> ScanWire<'a> {
    pub fn new(summary: &'a ScanSummary, atlas: &std::path::Path, recipe: String) -> ScanWire<'a> {
        let examples = summary.bad_record_examples.iter();
        ScanWire {
            r#type: "scan",
            atlas: atlas.display().to_string(),
            recipe,
            documents: summary.documents,
            empty_documents: summary.empty_documents,
            revisits: summary.revisits,
            tokens: summary.tokens,
            text_bytes: summary.text_bytes,
            sites: summary.sites,
            links_found: summary.links_found,
            links: summary.links,
            chunks: &summary.chunks,
            bad_records: &summary.bad_records,
            bad_record_examples: examples.map(|(place, reason)| BadRecordWire { place, reason }).collect(),
            skipped: &summary.skipped,
            sources: summary.sources,
            input_bytes: summary.input_bytes,
            resumed_documents: summary.resumed_documents,
            seconds: summary.seconds,
            cpu_seconds: summary.cpu_seconds,
            peak_memory: summary.peak_memory,
            spilled_bytes: summary.spilled_bytes,
        }
    }
}
