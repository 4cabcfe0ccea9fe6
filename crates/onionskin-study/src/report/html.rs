//! A report as one HTML file that needs nothing else: no network, no script. Light or dark as the
//! reader has it, and black on white on paper.

use std::fmt::Write;

use onionskin_core::format::grouped;

use super::{Block, Cell, Document, Table, machine};
use crate::figure::Ink;

const STYLE: &str = include_str!("style.css");

/// Rows of a table before the rest is folded away.
const ROWS_SHOWN: usize = 25;

/// The report as a page.
pub fn html(document: &Document) -> String {
    // In a page, nothing in it may end the element it stands in.
    let data = machine::json(document).replace('<', "\\u003c");
    let mut out = String::new();
    let title = escape(&document.title);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"onionskin\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header>\n<h1>{title}</h1>\n<p class=\"subtitle\">{}</p>\n",
        escape(&document.subtitle)
    );
    if !document.headlines.is_empty() {
        out.push_str("<dl class=\"headlines\">\n");
        for headline in &document.headlines {
            let _ = writeln!(
                out,
                "<div><dt>{}</dt><dd>{}</dd></div>",
                escape(&headline.label),
                number(&headline.value)
            );
        }
        out.push_str("</dl>\n");
    }
    out.push_str("</header>\n<nav aria-label=\"Contents\"><ul>\n");
    for section in &document.sections {
        let _ = writeln!(out, "<li><a href=\"#{}\">{}</a></li>", escape(&section.id), escape(&section.title));
    }
    out.push_str("</ul></nav>\n<main>\n");
    for section in &document.sections {
        let id = escape(&section.id);
        let _ = writeln!(
            out,
            "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 id=\"{id}-title\">{}</h2>",
            escape(&section.title)
        );
        for block in &section.blocks {
            match block {
                Block::Text(text) => {
                    let _ = writeln!(out, "<p>{}</p>", prose(text));
                }
                Block::Table(table) => write_table(&mut out, table),
                Block::Figure { id, figure, sentence } => {
                    let label = escape(sentence);
                    let _ = writeln!(
                        out,
                        "<figure id=\"figure-{}\">\n<div class=\"plot\" role=\"img\" aria-label=\"{label}\" tabindex=\"0\">{}</div>\n<figcaption>{}</figcaption>\n</figure>",
                        escape(id),
                        figure.svg(Ink::Page, id),
                        prose(sentence)
                    );
                }
            }
        }
        out.push_str("</section>\n");
    }
    let _ = write!(
        out,
        "</main>\n<footer><p>{}</p></footer>\n<script type=\"application/json\" id=\"report-data\">\n{data}</script>\n</body>\n</html>\n",
        escape(&document.footer)
    );
    out
}

fn write_table(out: &mut String, table: &Table) {
    if table.folded {
        let _ = writeln!(out, "<details><summary>{}</summary>", escape(&table.title));
    }
    let caption =
        if table.folded { String::new() } else { format!("<caption>{}</caption>", escape(&table.title)) };
    let numeric: Vec<bool> = (0..table.columns.len())
        .map(|at| {
            table.rows.iter().any(|row| row[at].is_number())
                && !table.rows.iter().any(|row| matches!(row[at], Cell::Text(_) | Cell::Address(_)))
        })
        .collect();
    let head = |out: &mut String| {
        out.push_str("<thead><tr>");
        for (name, numeric) in table.columns.iter().zip(&numeric) {
            // The sign stays on the line of its word.
            let name = escape(name).replace(", %", ",\u{a0}%");
            let _ = write!(out, "<th scope=\"col\"{}>{name}</th>", class(*numeric));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
    };
    let (shown, rest) = table.rows.split_at(ROWS_SHOWN.min(table.rows.len()));
    let _ = write!(
        out,
        "<div class=\"table\" tabindex=\"0\"><table id=\"table-{}\">{caption}",
        escape(&table.id)
    );
    head(out);
    write_rows(out, shown, &numeric);
    out.push_str("</tbody></table></div>\n");
    if !rest.is_empty() {
        let _ = write!(
            out,
            "<details><summary>{} more</summary><div class=\"table\" tabindex=\"0\"><table>",
            grouped(rest.len() as u64)
        );
        head(out);
        write_rows(out, rest, &numeric);
        out.push_str("</tbody></table></div></details>\n");
    }
    if table.folded {
        out.push_str("</details>\n");
    }
}

fn class(numeric: bool) -> &'static str {
    if numeric { " class=\"n\"" } else { "" }
}

fn write_rows(out: &mut String, rows: &[Vec<Cell>], numeric: &[bool]) {
    for row in rows {
        out.push_str("<tr>");
        for (cell, numeric) in row.iter().zip(numeric) {
            let (class, inside) = match cell {
                Cell::Address(address) => {
                    let words = escape(address);
                    let is_web = address.starts_with("http://") || address.starts_with("https://");
                    let link = format!("<a href=\"{words}\" rel=\"noreferrer nofollow\">{words}</a>");
                    (" class=\"a\"", if is_web { link } else { words })
                }
                _ => (class(*numeric), number(cell)),
            };
            let _ = write!(out, "<td{class}>{inside}</td>");
        }
        out.push_str("</tr>\n");
    }
}

/// A cell: the sign of a percentage stays on the line of its number.
fn number(cell: &Cell) -> String {
    escape(&cell.words()).replace(" %", "\u{a0}%")
}

/// A sentence: the sign of a percentage stays on the line of its number, and what stands between
/// backticks is code.
fn prose(text: &str) -> String {
    let pieces = text.split('`').enumerate().map(|(at, piece)| {
        let piece = escape(piece).replace(" %", "\u{a0}%");
        if at % 2 == 1 { format!("<code>{piece}</code>") } else { piece }
    });
    pieces.collect()
}

/// Text that is nothing but text in a page, also between quotes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // What a page may not have, and what turns the direction of the text around it.
            c if (c.is_control() && c != '\n')
                || ('\u{202a}'..='\u{202e}').contains(&c)
                || ('\u{2066}'..='\u{2069}').contains(&c) =>
            {
                out.push('\u{fffd}')
            }
            c => out.push(c),
        }
    }
    out
}
