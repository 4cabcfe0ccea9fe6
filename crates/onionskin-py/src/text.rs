//! Functions of one text, or of two.

use onionskin_core::token::canonical_words;
use onionskin_core::unicode::Form;
use onionskin_core::{Analyzer, Chunking, Recipe};
use pyo3::prelude::*;

use crate::error::value_error;

/// A recipe that keeps one chunking and has the smallest sketch there is.
fn chunk_recipe(chunking: &str) -> PyResult<Recipe> {
    let chunking: Chunking = chunking.parse().map_err(value_error)?;
    format!("{chunking}-rabin64-t1+{chunking}").parse().map_err(value_error)
}

/// The words of a text as they are compared: case, punctuation and white space do not count.
///
/// >>> tokens("A rose, is a ROSE!")
/// ['a', 'rose', 'is', 'a', 'rose']
#[pyfunction]
pub(crate) fn tokens(text: &str) -> Vec<String> {
    canonical_words(text, Form::Nfc)
}

/// Fingerprints of the chunks of a text: 64-bit numbers. Shingles (`w4`: four words, `c9`: nine
/// letters, `ls2`: two lines) come once each, others (`l4`: four lines, `sent`, `para`, `sp`:
/// shingle paragraphs, `doc`) as often as they occur.
///
/// >>> len(chunks("a rose is a rose is a rose"))
/// 3
/// >>> chunks("a rose is a rose", chunking="w5") == chunks("A rose is a rose!", chunking="doc")
/// True
#[pyfunction]
#[pyo3(signature = (text, chunking = "w4"))]
pub(crate) fn chunks(py: Python<'_>, text: &str, chunking: &str) -> PyResult<Vec<u64>> {
    let recipe = chunk_recipe(chunking)?;
    Ok(py.detach(|| Analyzer::new(&recipe, 0).analyze_chunks(text).chunks(0).to_vec()))
}

/// The fingerprint of the words of a text, as in the column `text_fp` of an atlas; `None` for a
/// text without words.
///
/// >>> text_fingerprint("A rose.") == text_fingerprint("a ROSE")
/// True
#[pyfunction]
pub(crate) fn text_fingerprint(py: Python<'_>, text: &str) -> PyResult<Option<u64>> {
    let recipe = chunk_recipe("doc")?;
    Ok(py
        .detach(|| Analyzer::new(&recipe, 0).analyze_chunks(text).text_fp().map(|fingerprint| fingerprint.0)))
}

/// Sizes of the two sets of chunks, and of what they share.
fn overlap(py: Python<'_>, a: &str, b: &str, chunking: &str) -> PyResult<(usize, usize, usize)> {
    let recipe = chunk_recipe(chunking)?;
    Ok(py.detach(|| {
        let mut analyzer = Analyzer::new(&recipe, 0);
        let mut set = |text: &str| {
            let mut set = analyzer.analyze_chunks(text).chunks(0).to_vec();
            set.sort_unstable();
            set.dedup();
            set
        };
        let (a, b) = (set(a), set(b));
        let shared = a.iter().filter(|chunk| b.binary_search(chunk).is_ok()).count();
        (a.len(), b.len(), shared)
    }))
}

/// How much of two texts is shared, exactly: |A∩B| / |A∪B| of their sets of chunks. 0 when one has
/// none.
///
/// >>> resemblance("one two three four five", "one two three four six")
/// 0.3333333333333333
#[pyfunction]
#[pyo3(signature = (a, b, chunking = "w4"))]
pub(crate) fn resemblance(py: Python<'_>, a: &str, b: &str, chunking: &str) -> PyResult<f64> {
    let (a, b, shared) = overlap(py, a, b, chunking)?;
    let union = a + b - shared;
    Ok(if union == 0 { 0.0 } else { shared as f64 / union as f64 })
}

/// How much of the first text is in the second, exactly: |A∩B| / |A| of their sets of chunks. 0
/// when the first has none.
///
/// >>> containment("one two three four five", "zero one two three four five six")
/// 1.0
#[pyfunction]
#[pyo3(signature = (a, b, chunking = "w4"))]
pub(crate) fn containment(py: Python<'_>, a: &str, b: &str, chunking: &str) -> PyResult<f64> {
    let (a, _, shared) = overlap(py, a, b, chunking)?;
    Ok(if a == 0 { 0.0 } else { shared as f64 / a as f64 })
}
