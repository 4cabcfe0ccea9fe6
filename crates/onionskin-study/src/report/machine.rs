//! A report for programs.

use std::fmt::Write;

use onionskin_core::csv;

use super::{Block, Cell, Document, Table};

/// Version of the JSON; it grows when something that was there changes its meaning.
const VERSION: u32 = 1;

/// The report as JSON: headlines, and for every section its sentences, the names of its figures,
/// and its tables with rows as objects. An estimate has two more keys, with `_low` and `_high` at
/// their ends. Shares are of one, times in seconds.
pub fn json(document: &Document) -> String {
    let mut out = String::new();
    let _ = write!(out, "{{\n  \"type\": \"report\",\n  \"version\": {VERSION},\n  \"title\": ");
    string(&mut out, &document.title);
    out.push_str(",\n  \"subtitle\": ");
    string(&mut out, &document.subtitle);
    out.push_str(",\n  \"headlines\": [");
    list(&mut out, &document.headlines, "\n    ", |out, headline| {
        out.push_str("{\"label\": ");
        string(out, &headline.label);
        out.push_str(", \"value\": ");
        value(out, &headline.value);
        out.push('}');
    });
    out.push_str("],\n  \"sections\": [");
    list(&mut out, &document.sections, "\n    ", |out, section| {
        out.push_str("{\"id\": ");
        string(out, &section.id);
        out.push_str(", \"title\": ");
        string(out, &section.title);
        let texts = section.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(text),
            _ => None,
        });
        out.push_str(",\n      \"sentences\": [");
        list(out, texts, "\n        ", |out, text| string(out, text));
        let figures = section.blocks.iter().filter_map(|block| match block {
            Block::Figure { id, sentence, .. } => Some((id, sentence)),
            _ => None,
        });
        out.push_str("],\n      \"figures\": [");
        list(out, figures, "\n        ", |out, (id, sentence)| {
            out.push_str("{\"id\": ");
            string(out, id);
            out.push_str(", \"shows\": ");
            string(out, sentence);
            out.push('}');
        });
        out.push_str("],\n      \"tables\": [");
        list(out, tables_of(&section.blocks), "\n        ", table_json);
        out.push_str("]}");
    });
    out.push_str("]\n}\n");
    out
}

fn table_json(out: &mut String, table: &Table) {
    out.push_str("{\"id\": ");
    string(out, &table.id);
    out.push_str(", \"title\": ");
    string(out, &table.title);
    out.push_str(", \"rows\": [");
    let keys = keys(table);
    list(out, &table.rows, "\n          ", |out, row| {
        out.push('{');
        let mut first = true;
        for (cell, key) in row.iter().zip(&keys) {
            for (ending, part) in parts(cell) {
                if !std::mem::take(&mut first) {
                    out.push_str(", ");
                }
                string(out, &format!("{key}{ending}"));
                out.push_str(": ");
                value(out, &part);
            }
        }
        out.push('}');
    });
    out.push_str("]}");
}

/// Every table of a report as CSV under the name of its file.
pub fn csv(document: &Document) -> Vec<(String, String)> {
    let tables = document.sections.iter().flat_map(|section| tables_of(&section.blocks));
    tables.map(|table| (format!("{}.csv", table.id), table_csv(table))).collect()
}

fn table_csv(table: &Table) -> String {
    let mut out = String::new();
    let keys = keys(table);
    // A column of estimates becomes three, also where a row has none.
    let wide: Vec<bool> = (0..keys.len())
        .map(|at| table.rows.iter().any(|row| row.get(at).is_some_and(|cell| parts(cell).len() > 1)))
        .collect();
    let mut names: Vec<String> = Vec::new();
    for (key, wide) in keys.iter().zip(&wide) {
        names.push(key.clone());
        if *wide {
            names.extend([format!("{key}_low"), format!("{key}_high")]);
        }
    }
    line(&mut out, names.iter().map(|name| (name.as_str(), true)));
    for row in &table.rows {
        let mut fields = Vec::new();
        for (cell, wide) in row.iter().zip(&wide) {
            let is_text = !cell.is_number();
            let mut values: Vec<(String, bool)> =
                parts(cell).iter().map(|(_, part)| (plain(part), is_text)).collect();
            values.resize(if *wide { 3 } else { 1 }, (String::new(), true));
            fields.extend(values);
        }
        line(&mut out, fields.iter().map(|(field, is_text)| (field.as_str(), *is_text)));
    }
    out
}

/// A line of fields, each with whether it is text; numbers may begin with a sign.
fn line<'a>(out: &mut String, fields: impl Iterator<Item = (&'a str, bool)>) {
    for (at, (field, is_text)) in fields.enumerate() {
        if at > 0 {
            out.push(',');
        }
        if is_text {
            csv::push_text(out, field);
        } else {
            out.push_str(field);
        }
    }
    out.push('\n');
}

fn tables_of(blocks: &[Block]) -> impl Iterator<Item = &Table> {
    blocks.iter().filter_map(|block| match block {
        Block::Table(table) => Some(table),
        _ => None,
    })
}

/// Names of columns for programs.
fn keys(table: &Table) -> Vec<String> {
    let key = |name: &String| {
        let words = name.replace('%', " percent ");
        let plain: String = words
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { ' ' })
            .collect();
        plain.split_whitespace().collect::<Vec<_>>().join("_")
    };
    table.columns.iter().map(key).collect()
}

/// An estimate is three numbers.
fn parts(cell: &Cell) -> Vec<(&'static str, Cell)> {
    let endings = ["", "_low", "_high"];
    match cell {
        Cell::ShareBetween(value, low, high)
        | Cell::CountBetween(value, low, high)
        | Cell::NumberBetween(value, low, high) => {
            endings.into_iter().zip([value, low, high].map(|value| Cell::Number(*value, 6))).collect()
        }
        cell => vec![("", cell.clone())],
    }
}

fn plain(cell: &Cell) -> String {
    match cell {
        Cell::None => String::new(),
        Cell::Text(text) | Cell::Address(text) => text.clone(),
        Cell::Count(n) | Cell::Bytes(n) => n.to_string(),
        Cell::Share(value)
        | Cell::Seconds(value)
        | Cell::Number(value, _)
        | Cell::ShareBetween(value, ..)
        | Cell::CountBetween(value, ..)
        | Cell::NumberBetween(value, ..) => number(*value),
    }
}

/// A number that JSON can have.
fn number(value: f64) -> String {
    if value.is_finite() { format!("{value}") } else { String::new() }
}

fn value(out: &mut String, cell: &Cell) {
    match cell {
        Cell::None => out.push_str("null"),
        Cell::Text(text) | Cell::Address(text) => string(out, text),
        cell => {
            let plain = plain(cell);
            out.push_str(if plain.is_empty() { "null" } else { &plain });
        }
    }
}

fn list<T>(
    out: &mut String,
    items: impl IntoIterator<Item = T>,
    before: &str,
    mut each: impl FnMut(&mut String, T),
) {
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(before);
        each(out, item);
    }
}

/// A JSON string.
fn string(out: &mut String, text: &str) {
    // A text is always a string of JSON.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}
