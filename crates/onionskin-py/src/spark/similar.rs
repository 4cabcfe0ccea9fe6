//! Kernels of the search for copies.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::builder::Int64Builder;
use arrow_array::{ArrayRef, Float64Array, Int64Array};
use arrow_schema::ArrowError;
use onionskin::similar::Search;
use onionskin::similar::parts;
use onionskin_core::feature::FeatureMaker;
use onionskin_core::{FeatureFilter, Recipe, Threshold};
use onionskin_similar::candidates;
use onionskin_similar::overlap::Engine;
use pyo3::prelude::*;

use super::columns::Columns;
use super::{MadeRows, failed, longs, refused, rows_of, table};

/// What makes a pair: `("overlap", T)`, `("resemblance", t)` or `("share", s)`.
fn bound(kind: &str, value: f64) -> PyResult<onionskin_similar::Bound> {
    Ok(match kind {
        "overlap" => {
            let threshold =
                Threshold::new(value as u32).ok_or_else(|| refused("the threshold is at least 1"))?;
            onionskin_similar::Bound::Overlap(threshold)
        }
        "resemblance" => onionskin_similar::Bound::Resemblance(value),
        "share" => onionskin_similar::Bound::Share(value),
        _ => return Err(refused(format!("unknown bound {kind:?}; known are overlap, resemblance, share"))),
    })
}

/// k, s and r of a filter; whether it is made of sketches; how many of how many minima agree.
type Chosen = ((usize, usize, usize), bool, Option<(u32, usize)>);

/// The filter for a threshold, out of what a recipe keeps: k, s, r; whether it is made of sketches,
/// and then how many of how many first minima agree at least in a pair that is looked at.
#[pyfunction]
#[pyo3(signature = (recipe, threshold, wanted=None))]
pub(super) fn filter_for(recipe: &str, threshold: f64, wanted: Option<(u32, u32, u32)>) -> PyResult<Chosen> {
    let recipe: Recipe = recipe.parse().map_err(refused)?;
    let wanted = wanted.map(|(k, s, r)| FeatureFilter::new(k, s, r)).transpose().map_err(refused)?;
    let choice = parts::filter_for(&recipe, threshold, wanted).map_err(refused)?;
    let filter = choice.filter;
    let sift = choice.sift.map(|sift| (sift.least, sift.minima));
    Ok(((filter.k(), filter.s(), filter.r()), choice.from_sketches, sift))
}

/// Members of a bucket up to which all pairs are looked at; `sizes` has how many buckets there are
/// of each size.
#[pyfunction]
pub(super) fn crowd_limit(sizes: BTreeMap<u64, u64>, documents: u64) -> u64 {
    let (mut large, mut pairs) = (BTreeMap::new(), 0u64);
    for (size, buckets) in sizes {
        if size > candidates::CROWD {
            large.insert(size, buckets);
        } else {
            pairs = pairs.saturating_add(buckets.saturating_mul(candidates::pairs_of(size)));
        }
    }
    candidates::crowd_limit(&large, pairs, documents)
}

/// The levels that a search notes for reports.
#[pyfunction]
pub(super) fn levels(method: &str, chunking: Option<&str>, threshold: f64) -> PyResult<Vec<String>> {
    let search = match method {
        "exact" => Search::Exact,
        "resemblance" => Search::Resemblance { threshold, filter: None, exact: false },
        "overlap" => Search::Overlap {
            chunking: chunking.unwrap_or_default().to_owned(),
            threshold: Threshold::new(threshold as u32)
                .ok_or_else(|| refused("the threshold is at least 1"))?,
            engine: Engine::Prefix,
        },
        _ => {
            return Err(refused(format!("unknown method {method:?}; known are exact, resemblance, overlap")));
        }
    };
    Ok(parts::levels(&search, chunking))
}

/// The features of documents, one a row, with their shades: out of `sketch` or of `features`.
#[pyfunction]
pub(super) fn meetings(
    data: &Bound<'_, PyAny>,
    filter: (u32, u32, u32),
    from_sketches: bool,
) -> PyResult<MadeRows> {
    let filter = FeatureFilter::new(filter.0, filter.1, filter.2).map_err(refused)?;
    let batches = rows_of(data)?;
    let made = data.py().detach(|| -> Result<_, ArrowError> {
        let mut maker = FeatureMaker::new(filter);
        let (mut features, mut docs, mut shades) = (Vec::new(), Vec::new(), Vec::new());
        let mut row_of_doc: Vec<u64> = Vec::new();
        let mut sketch: Vec<u32> = Vec::new();
        for batch in &batches {
            let columns = Columns(batch);
            let doc = columns.longs("doc")?;
            let mut push = |doc: i64, row: &[u64]| {
                for (feature, shade) in candidates::shaded(row) {
                    features.push(feature as i64);
                    docs.push(doc);
                    shades.push(i64::from(shade));
                }
            };
            if from_sketches {
                let sketches = columns.short_lists("sketch")?;
                for row in 0..batch.num_rows() {
                    let minima = sketches.get(row);
                    if minima.len() < filter.permutations() {
                        let words = format!("a sketch of {} minima is too short for {filter}", minima.len());
                        return Err(ArrowError::InvalidArgumentError(words));
                    }
                    sketch.clear();
                    sketch.extend(minima.iter().map(|minimum| *minimum as u32));
                    push(doc.value(row), maker.features(&sketch));
                }
            } else {
                let lists = columns.lists("features")?;
                for row in 0..batch.num_rows() {
                    row_of_doc.clear();
                    row_of_doc.extend(lists.get(row).iter().map(|feature| *feature as u64));
                    push(doc.value(row), &row_of_doc);
                }
            }
        }
        table(vec![("feature", longs(features)), ("doc", longs(docs)), ("shade", longs(shades))])
    });
    Ok(MadeRows(made.map_err(failed)?))
}

/// All sets of `r` of the features of a document that others have, as features: (doc, features) to
/// (feature, doc, shade).
#[pyfunction]
pub(super) fn super_features(data: &Bound<'_, PyAny>, r: usize) -> PyResult<MadeRows> {
    let batches = rows_of(data)?;
    let made = data.py().detach(|| -> Result<_, ArrowError> {
        let (mut features, mut docs, mut shades) = (Vec::new(), Vec::new(), Vec::new());
        for batch in &batches {
            let columns = Columns(batch);
            let (doc, lists) = (columns.longs("doc")?, columns.lists("features")?);
            for row in 0..batch.num_rows() {
                let mut own: Vec<u64> = lists.get(row).iter().map(|feature| *feature as u64).collect();
                own.sort_unstable();
                for (feature, shade) in candidates::super_features_of(&own, r) {
                    features.push(feature as i64);
                    docs.push(doc.value(row));
                    shades.push(i64::from(shade));
                }
            }
        }
        table(vec![("feature", longs(features)), ("doc", longs(docs)), ("shade", longs(shades))])
    });
    Ok(MadeRows(made.map_err(failed)?))
}

/// What pairs share: (a, b, set_a, set_b) to rows of `pairs` with sizes, those that fail a bound
/// left out.
#[pyfunction]
#[pyo3(signature = (data, kind=None, value=0.0))]
pub(super) fn count_shared(data: &Bound<'_, PyAny>, kind: Option<&str>, value: f64) -> PyResult<MadeRows> {
    let bound = kind.map(|kind| bound(kind, value)).transpose()?;
    let batches = rows_of(data)?;
    let made = data.py().detach(|| -> Result<_, ArrowError> {
        let mut counter = parts::Counter::default();
        let mut ids: [Int64Builder; 5] = Default::default();
        let mut shares: [Vec<f64>; 3] = Default::default();
        for batch in &batches {
            let columns = Columns(batch);
            let (a, b) = (columns.longs("a")?, columns.longs("b")?);
            let (set_a, set_b) = (columns.lists("set_a")?, columns.lists("set_b")?);
            for row in 0..batch.num_rows() {
                let unsigned = |list: &[i64]| list.iter().map(|chunk| *chunk as u64).collect::<Vec<_>>();
                let found = counter.count(unsigned(set_a.get(row)), unsigned(set_b.get(row)));
                if bound.is_some_and(|bound| !bound.holds(found.shared, found.size_a, found.size_b)) {
                    continue;
                }
                let numbers = [
                    a.value(row),
                    b.value(row),
                    found.shared.into(),
                    found.size_a.into(),
                    found.size_b.into(),
                ];
                ids.iter_mut().zip(numbers).for_each(|(column, number)| column.append_value(number));
                let values = [found.resemblance(), found.containment_a(), found.containment_b()];
                shares.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            }
        }
        let names = ["a", "b", "shared", "size_a", "size_b"];
        let mut columns: Vec<(&str, ArrayRef)> = names
            .into_iter()
            .zip(ids)
            .map(|(name, mut column)| (name, Arc::new(column.finish()) as ArrayRef))
            .collect();
        let names = ["resemblance", "containment_a", "containment_b"];
        columns.extend(
            names
                .into_iter()
                .zip(shares)
                .map(|(name, column)| (name, Arc::new(Float64Array::from(column)) as ArrayRef)),
        );
        table(columns)
    });
    Ok(MadeRows(made.map_err(failed)?))
}

/// Where documents must be met: (doc, size, counts, chunks) to (chunk, size, left, doc). `counts`
/// says how many documents have each of the chunks; chunks that nobody else has are left out of
/// both.
#[pyfunction]
pub(super) fn prefix(data: &Bound<'_, PyAny>, kind: &str, value: f64) -> PyResult<MadeRows> {
    let bound = bound(kind, value)?;
    let batches = rows_of(data)?;
    let made = data.py().detach(|| -> Result<_, ArrowError> {
        let mut made: [Vec<i64>; 4] = Default::default();
        for batch in &batches {
            let columns = Columns(batch);
            let (doc, size) = (columns.longs("doc")?, columns.longs("size")?);
            let (counts, chunks) = (columns.lists("counts")?, columns.lists("chunks")?);
            for row in 0..batch.num_rows() {
                let mut shared: Vec<(u64, u64)> = counts
                    .get(row)
                    .iter()
                    .zip(chunks.get(row))
                    .map(|(count, chunk)| (*count as u64, *chunk as u64))
                    .collect();
                let n = u32::try_from(size.value(row)).unwrap_or(u32::MAX);
                for (chunk, left) in parts::prefix(bound, n, &mut shared) {
                    let values = [chunk as i64, n.into(), left.into(), doc.value(row)];
                    made.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
                }
            }
        }
        let names = ["chunk", "size", "left", "doc"];
        table(names.into_iter().zip(made.map(longs)).collect())
    });
    Ok(MadeRows(made.map_err(failed)?))
}

/// Pairs of columns of all rows.
fn pairs(data: &Bound<'_, PyAny>, names: [&str; 2]) -> PyResult<Vec<(i64, i64)>> {
    let mut found = Vec::new();
    for batch in rows_of(data)? {
        let columns = Columns(&batch);
        let a: &Int64Array = columns.longs(names[0]).map_err(failed)?;
        let b: &Int64Array = columns.longs(names[1]).map_err(failed)?;
        found.extend(a.values().iter().copied().zip(b.values().iter().copied()));
    }
    Ok(found)
}

/// Centred clusters of whole components: (wish_a, a, wish_b, b) to (text, centre).
#[pyfunction]
pub(super) fn centred(data: &Bound<'_, PyAny>) -> PyResult<MadeRows> {
    let mut found = Vec::new();
    for batch in rows_of(data)? {
        let columns = Columns(&batch);
        let column = |name| columns.longs(name).map(|column| column.values().iter().copied()).map_err(failed);
        let a = column("wish_a")?.zip(column("a")?);
        found.extend(a.zip(column("wish_b")?.zip(column("b")?)));
    }
    let groups = data.py().detach(|| parts::centred(found));
    let columns = vec![
        ("text", longs(groups.iter().map(|group| group.0))),
        ("centre", longs(groups.iter().map(|group| group.1))),
    ];
    Ok(MadeRows(table(columns).map_err(failed)?))
}

/// Connected components of whole graphs: (a, b) to (node, root), the root being the smallest node.
#[pyfunction]
pub(super) fn unite(data: &Bound<'_, PyAny>) -> PyResult<MadeRows> {
    let edges = pairs(data, ["a", "b"])?;
    let found = data.py().detach(|| parts::components(edges));
    let columns = vec![
        ("node", longs(found.iter().map(|entry| entry.0))),
        ("root", longs(found.iter().map(|entry| entry.1))),
    ];
    Ok(MadeRows(table(columns).map_err(failed)?))
}
