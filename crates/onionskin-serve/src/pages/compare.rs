//! Two pages side by side, with what they share.

use askama::Template;
use axum::Router;
use axum::extract::{Query, State};
use axum::routing::get;
use onionskin::explain::{Block, Comparison, Explanation, Side, Stretch, TextError};
use onionskin_core::DocId;
use serde::Deserialize;

use crate::error::ServeError;
use crate::lanes::Lane;
use crate::layout::{Chrome, Page, Rendered, Section, grouped};
use crate::library::Library;
use crate::state::AppState;
use crate::view::{DocLine, percent};

/// Words of a shared passage that are shown at each end.
const ENDS: usize = 40;
/// Shared passages with more words than this are shown without their middle.
const LONG: usize = 120;
/// Rows of a page.
const MOST_ROWS: usize = 400;

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/compare", get(compare))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    a: String,
    b: String,
}

/// A part of a text.
pub(crate) struct Part {
    pub text: String,
    /// `same`, `moved` or `own`.
    pub class: &'static str,
    /// Words that are left out after it.
    pub left_out: usize,
}

/// What stands beside each other.
pub(crate) struct Row {
    pub a: Vec<Part>,
    pub b: Vec<Part>,
    pub is_same: bool,
}

struct OverlapLine {
    chunking: String,
    shared: String,
    resemblance: String,
    containment_a: String,
    containment_b: String,
}

#[derive(Template)]
#[template(path = "compare.html")]
struct ComparePage {
    chrome: Chrome,
    /// What was typed.
    a: String,
    b: String,
    problem: Option<String>,
    shown: Option<Shown>,
}

struct Shown {
    a: DocLine,
    b: DocLine,
    verdict: &'static str,
    overlaps: Vec<OverlapLine>,
    sketch: Option<String>,
    features: Option<String>,
    pair: Option<String>,
    same_site: Option<bool>,
    texts: Option<Sides>,
    note: Option<String>,
}

struct Sides {
    rows: Vec<Row>,
    shared: String,
    words_a: String,
    words_b: String,
    is_cut: bool,
}

async fn compare(State(state): State<AppState>, Query(asked): Query<Asked>) -> Rendered<ComparePage> {
    let chrome = Chrome::new(&state, Section::Clusters, "Two pages side by side");
    state.read(Lane::Compare, move |library| show(library, chrome, asked)).await.map(Page)
}

fn show(library: &Library, chrome: Chrome, asked: Asked) -> Result<ComparePage, ServeError> {
    let Asked { a, b } = asked;
    let mut page = ComparePage { chrome, a, b, problem: None, shown: None };
    if page.a.trim().is_empty() || page.b.trim().is_empty() {
        return Ok(page);
    }
    let (doc_a, doc_b) = (library.meant(&page.a)?, library.meant(&page.b)?);
    let (Some(doc_a), Some(doc_b)) = (doc_a, doc_b) else {
        let which = if doc_a.is_none() { &page.a } else { &page.b };
        page.problem = Some(format!("no document is called {which:?}"));
        return Ok(page);
    };
    let explanation = library.explain(doc_a, doc_b)?;
    let (texts, note) = match &explanation.texts {
        Ok(texts) => {
            let changed = texts.changed != [false, false];
            let note = "One of the inputs has another text now than when it was scanned.";
            (Some(sides(&texts.comparison)), changed.then(|| note.to_owned()))
        }
        Err(error) => {
            let stored = library.compare_stored(doc_a, doc_b)?;
            let note = note(error, stored.is_some(), [doc_a, doc_b]);
            (stored.as_ref().map(sides), Some(note))
        }
    };
    page.shown = Some(Shown {
        a: DocLine::new(&library.page(doc_a)?),
        b: DocLine::new(&library.page(doc_b)?),
        verdict: verdict(&explanation),
        overlaps: overlaps(&explanation),
        sketch: explanation.sketch.map(|sketch| {
            format!(
                "{} (± {}), {} minima",
                percent(sketch.estimate.value),
                percent(sketch.estimate.standard_error),
                sketch.length
            )
        }),
        features: explanation.features.map(|features| {
            let filter = features.filter;
            format!("{} of {} agree, {} make a candidate", features.equal, filter.k(), filter.r())
        }),
        pair: explanation.pair.map(|pair| {
            format!("resemblance {}, found by {}", percent(pair.resemblance), pair.method.as_str())
        }),
        same_site: explanation.same_site,
        texts,
        note,
    });
    Ok(page)
}

/// Why the whole texts are not shown, and what is shown instead.
fn note(error: &TextError, has_stored: bool, docs: [DocId; 2]) -> String {
    let kept = "these are the texts that the index keeps, which end after 32 KiB";
    match (error, has_stored) {
        (TextError::TooLong { .. } | TextError::TooLarge { .. }, _) => {
            let shown = if has_stored { format!("; {kept}") } else { String::new() };
            let [a, b] = docs;
            format!("{error}{shown}. `onionskin explain ATLAS doc:{a} doc:{b}` compares all of it.")
        }
        (_, true) => format!("The inputs cannot be read any more; {kept}."),
        (_, false) => "The texts cannot be read any more.".to_owned(),
    }
}

fn verdict(explanation: &Explanation) -> &'static str {
    match (explanation.payload_equal, explanation.text_equal, &explanation.pair) {
        (Some(true), ..) => "The same, byte for byte.",
        (_, Some(true), _) => "The same words in the same order.",
        (.., Some(_)) => "Nearly the same: a verified pair.",
        (.., None) if explanation.has_pairs => "Not a pair: they share too little, or were never compared.",
        _ => "No pairs were searched for yet.",
    }
}

fn overlaps(explanation: &Explanation) -> Vec<OverlapLine> {
    let line = |overlap: &onionskin::explain::Overlap| OverlapLine {
        chunking: overlap.chunking.clone(),
        shared: format!("{} of {} and {}", overlap.shared, overlap.size_a, overlap.size_b),
        resemblance: percent(overlap.resemblance()),
        containment_a: percent(overlap.containment_a()),
        containment_b: percent(overlap.containment_b()),
    };
    explanation.overlaps.iter().map(line).collect()
}

/// Both texts in rows.
fn sides(comparison: &Comparison) -> Sides {
    let mut rows = Vec::new();
    for block in comparison.blocks.iter().take(MOST_ROWS) {
        rows.push(match block {
            Block::Same(at) => {
                let passage = &comparison.passages[*at];
                let part = |side, range| vec![part(comparison, side, range, "same")];
                Row { a: part(Side::A, &passage.a), b: part(Side::B, &passage.b), is_same: true }
            }
            Block::Differ { a, b } => {
                let parts = |side, stretches: &[Stretch]| {
                    let class = |stretch: &Stretch| if stretch.moved.is_some() { "moved" } else { "own" };
                    stretches.iter().map(|s| part(comparison, side, &s.range, class(s))).collect()
                };
                Row { a: parts(Side::A, a), b: parts(Side::B, b), is_same: false }
            }
        });
    }
    Sides {
        rows,
        shared: grouped(comparison.shared_words() as u64),
        words_a: grouped(comparison.words_a as u64),
        words_b: grouped(comparison.words_b as u64),
        is_cut: comparison.blocks.len() > MOST_ROWS,
    }
}

fn part(comparison: &Comparison, side: Side, range: &std::ops::Range<usize>, class: &'static str) -> Part {
    let text = comparison.text(side);
    match comparison.shortened(side, range, ENDS, LONG) {
        Some(short) => {
            let left_out = short.left_out;
            Part { text: format!("{} … {}", &text[short.head], &text[short.tail]), class, left_out }
        }
        None => Part { text: text[range.clone()].to_owned(), class, left_out: 0 },
    }
}
