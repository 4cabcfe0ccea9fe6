//! Why two documents are alike.

use std::ops::Range;
use std::path::PathBuf;

use onionskin::explain::{Block, DocumentFacts, Overlap};
use onionskin::{ExplainParams, explain as explain_documents};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::value_error;
use crate::progress::stage;

fn document<'py>(py: Python<'py>, facts: &DocumentFacts) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("doc", facts.doc)?;
    dict.set_item("id", &facts.id)?;
    dict.set_item("url", &facts.url)?;
    dict.set_item("host", &facts.host)?;
    dict.set_item("title", &facts.title)?;
    dict.set_item("place", facts.place())?;
    dict.set_item("bytes", facts.bytes)?;
    dict.set_item("tokens", facts.tokens)?;
    Ok(dict)
}

fn overlap<'py>(py: Python<'py>, overlap: &Overlap) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("chunking", &overlap.chunking)?;
    dict.set_item("size_a", overlap.size_a)?;
    dict.set_item("size_b", overlap.size_b)?;
    dict.set_item("shared", overlap.shared)?;
    dict.set_item("resemblance", overlap.resemblance())?;
    dict.set_item("containment_a", overlap.containment_a())?;
    dict.set_item("containment_b", overlap.containment_b())?;
    Ok(dict)
}

/// Stretches as text. What stands between two, white space mostly, goes with the first.
fn stretches<'a>(whole: &'a str, ranges: &[(Range<usize>, bool)]) -> Vec<(&'a str, bool)> {
    let begins = ranges.iter().map(|(range, _)| range.start).skip(1).chain([whole.len()]);
    let told = ranges.iter().zip(begins).map(|((range, shared), next)| {
        // Stretches that do not ascend are shown as they are.
        let end = if next >= range.end { next } else { range.end };
        (whole.get(range.start..end).unwrap_or_default(), *shared)
    });
    told.collect()
}

/// Two documents and everything that speaks for or against their being copies.
#[pyfunction]
pub(crate) fn explain<'py>(
    py: Python<'py>,
    atlas: PathBuf,
    a: &str,
    b: &str,
    base: Option<PathBuf>,
    pdf_worker: Vec<String>,
) -> PyResult<Bound<'py, PyDict>> {
    let (a, b) = (a.parse().map_err(value_error)?, b.parse().map_err(value_error)?);
    let params = ExplainParams { atlas, a, b, inputs: base, pdf_worker };
    let found = stage(py, None, |_| explain_documents(&params))?;
    let dict = PyDict::new(py);
    dict.set_item("a", document(py, &found.a)?)?;
    dict.set_item("b", document(py, &found.b)?)?;
    let overlaps = found.overlaps.iter().map(|one| overlap(py, one)).collect::<PyResult<Vec<_>>>()?;
    dict.set_item("overlaps", overlaps)?;
    dict.set_item("estimate", found.sketch.map(|sketch| sketch.estimate.value))?;
    dict.set_item("features", found.features.map(|found| (found.equal, found.filter.k(), found.filter.r())))?;
    dict.set_item("text_equal", found.text_equal)?;
    dict.set_item("payload_equal", found.payload_equal)?;
    dict.set_item("same_site", found.same_site)?;
    dict.set_item("clusters", found.clusters.map(|row| row.map(|row| row.cluster)))?;
    // Stretches of both texts in order, and whether they are in both.
    let mut sides: [Vec<(Range<usize>, bool)>; 2] = [Vec::new(), Vec::new()];
    let (mut whole, mut unreadable) = (["", ""], None);
    match &found.texts {
        Err(error) => unreadable = Some(error.to_string()),
        Ok(texts) => {
            let comparison = &texts.comparison;
            whole = [&comparison.text_a, &comparison.text_b];
            for block in &comparison.blocks {
                match block {
                    Block::Same(nth) => {
                        if let Some(passage) = comparison.passages.get(*nth) {
                            sides[0].push((passage.a.clone(), true));
                            sides[1].push((passage.b.clone(), true));
                        }
                    }
                    Block::Differ { a, b } => {
                        for (side, stretches) in sides.iter_mut().zip([a, b]) {
                            side.extend(stretches.iter().map(|one| (one.range.clone(), one.moved.is_some())));
                        }
                    }
                }
            }
        }
    }
    dict.set_item("text_a", stretches(whole[0], &sides[0]))?;
    dict.set_item("text_b", stretches(whole[1], &sides[1]))?;
    dict.set_item("unreadable", unreadable)?;
    Ok(dict)
}

/// Reads one PDF from standard input for a scan; a process of its own, so that a hostile file harms nobody.
#[pyfunction]
pub(crate) fn pdf_worker(py: Python<'_>) -> PyResult<()> {
    py.detach(|| onionskin_extract::pdf_worker(std::io::stdin().lock(), std::io::stdout().lock()))?;
    Ok(())
}
