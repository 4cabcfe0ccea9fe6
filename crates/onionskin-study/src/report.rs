//! A report as sections of sentences, figures and tables, and its spellings: one HTML file, JSON,
//! CSV.
//!
//! What a report says is put together once, as a [`Document`]; every spelling is made from it, so
//! that the page, the files for programs and the pictures tell the same numbers.

mod changes;
mod files;
mod html;
mod machine;
mod make;
mod origin;
mod overview;

use std::borrow::Cow;

use onionskin_core::format::{bytes, grouped, percent, seconds};
use onionskin_extract::url::without_user;

use crate::figure::Figure;

pub use changes::{Changes, Fate, MirrorChanges, SiteChanges, changes};
pub use files::{Written, write_report};
pub use html::html;
pub use machine::{csv, json};
pub use make::{ChangesSummary, LevelSummary, ReportSummary, report, report_changes};
pub use overview::overview;

/// A report.
#[derive(Debug, Default)]
pub struct Document {
    /// What stands above it.
    pub title: String,
    /// What it is about, below the title.
    pub subtitle: String,
    /// The few numbers that matter most.
    pub headlines: Vec<Headline>,
    /// The rest.
    pub sections: Vec<Section>,
    /// Below everything: what made it.
    pub footer: String,
}

/// A number that matters.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// The number.
    pub value: Cell,
    /// What it counts.
    pub label: String,
}

/// A part of a report.
#[derive(Debug, Default)]
pub struct Section {
    /// Its name in addresses; letters, digits and `-`.
    pub id: String,
    /// What stands above it.
    pub title: String,
    /// What is in it, in order.
    pub blocks: Vec<Block>,
}

impl Section {
    /// An empty section.
    pub fn new(id: &str, title: &str) -> Section {
        Section { id: id.to_owned(), title: title.to_owned(), blocks: Vec::new() }
    }

    /// Adds a paragraph.
    pub fn say(&mut self, text: impl Into<String>) {
        self.blocks.push(Block::Text(text.into()));
    }

    /// Adds a figure with the sentence that says what it shows.
    pub fn show(&mut self, id: &str, figure: Figure, sentence: impl Into<String>) {
        self.blocks.push(Block::Figure { id: id.to_owned(), figure, sentence: sentence.into() });
    }

    /// Adds a table.
    pub fn table(&mut self, table: Table) {
        self.blocks.push(Block::Table(table));
    }
}

/// Something in a section.
#[derive(Debug)]
pub enum Block {
    /// A paragraph.
    Text(String),
    /// A picture.
    Figure {
        /// Its name in files.
        id: String,
        /// The picture.
        figure: Figure,
        /// What it shows.
        sentence: String,
    },
    /// Numbers.
    Table(Table),
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Its name in files.
    pub id: String,
    /// What stands above it.
    pub title: String,
    /// Whether the page shows it only when asked to: the numbers of a figure.
    pub folded: bool,
    /// Names of the columns, for people and, in lower case with `_`, for programs.
    pub columns: Vec<String>,
    /// As many cells in each as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

impl Table {
    /// An empty table.
    pub fn new(id: &str, title: &str, columns: &[&str]) -> Table {
        Table {
            id: id.to_owned(),
            title: title.to_owned(),
            folded: false,
            columns: columns.iter().map(|name| (*name).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// A table with all its rows.
    pub fn of<const N: usize>(
        id: &str,
        title: &str,
        columns: [&str; N],
        rows: impl IntoIterator<Item = [Cell; N]>,
    ) -> Table {
        let mut table = Table::new(id, title, &columns);
        rows.into_iter().for_each(|row| table.row(row));
        table
    }

    /// The same, shown when asked to.
    pub fn folded(mut self) -> Table {
        self.folded = true;
        self
    }

    /// Adds a row. A report is passed on, so user names and passwords of addresses are not in it.
    pub fn row(&mut self, cells: impl Into<Vec<Cell>>) {
        let mut cells = cells.into();
        for cell in &mut cells {
            if let Cell::Text(text) | Cell::Address(text) = cell
                && let Cow::Owned(without) = without_user(text)
            {
                *text = without;
            }
        }
        debug_assert_eq!(cells.len(), self.columns.len(), "{}", self.id);
        self.rows.push(cells);
    }
}

/// A value in a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Nothing is known.
    None,
    /// Words.
    Text(String),
    /// An address. Only http and https become links.
    Address(String),
    /// A number of things.
    Count(u64),
    /// A number of bytes.
    Bytes(u64),
    /// A share of one.
    Share(f64),
    /// A time.
    Seconds(f64),
    /// Any other number, with so many digits after the point.
    Number(f64, usize),
    /// An estimated share of one: value, low, high.
    ShareBetween(f64, f64, f64),
    /// An estimated number of things: value, low, high.
    CountBetween(f64, f64, f64),
    /// Any other estimate.
    NumberBetween(f64, f64, f64),
}

impl From<u64> for Cell {
    fn from(n: u64) -> Cell {
        Cell::Count(n)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Cell {
        cell.map_or(Cell::None, Into::into)
    }
}

impl Cell {
    /// As people read it.
    pub fn words(&self) -> String {
        match self {
            Cell::None => "–".to_owned(),
            Cell::Text(text) | Cell::Address(text) => text.clone(),
            Cell::Count(n) => grouped(*n),
            Cell::Bytes(n) => bytes(*n),
            Cell::Share(share) => percent(*share),
            Cell::Seconds(time) => seconds(*time),
            Cell::Number(value, digits) => format!("{value:.digits$}"),
            Cell::ShareBetween(value, low, high) => {
                format!("{} ({} to {})", percent(*value), percent(*low), percent(*high))
            }
            Cell::CountBetween(value, low, high) => {
                let whole = |value: f64| grouped(value.max(0.0).round() as u64);
                format!("{} ({} to {})", whole(*value), whole(*low), whole(*high))
            }
            Cell::NumberBetween(value, low, high) => format!("{value:.2} ({low:.2} to {high:.2})"),
        }
    }

    /// Whether it is set to the right.
    fn is_number(&self) -> bool {
        !matches!(self, Cell::None | Cell::Text(_) | Cell::Address(_))
    }
}

#[cfg(test)]
mod tests;
