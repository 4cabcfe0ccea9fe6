//! Recipes and filters.

use onionskin_core::feature::{Target, choose};
use onionskin_core::{FeatureFilter, Minwise, Recipe, SketchScheme};
use onionskin_study::figure::{Figure, Ink, LineSeries, Lines};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::error::value_error;

/// How texts become sketches and features, in one short spelling: `w4-rabin64-6x14r2` is shingles
/// of four words, 64-bit fingerprints, 6 features of 14 minima of which 2 must agree; `t128`
/// instead is 128 minima and no features, `b128` the 128 smallest of one permutation. After `+`
/// stands what a scan keeps.
///
/// >>> recipe = Recipe("w4-rabin64-6x14r2+sketch")
/// >>> recipe.chunking, recipe.sketch_len, recipe.filter
/// ('w4', 84, FeatureFilter(k=6, s=14, r=2))
#[pyclass(frozen, eq, hash, module = "onionskin", name = "Recipe", from_py_object)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PyRecipe(pub(crate) Recipe);

#[pymethods]
impl PyRecipe {
    /// The recipe of a scan that says nothing else.
    #[classattr]
    const DEFAULT: &'static str = Recipe::DEFAULT;

    #[new]
    #[pyo3(signature = (spelling = None))]
    fn new(spelling: Option<&str>) -> PyResult<PyRecipe> {
        spelling.unwrap_or(Recipe::DEFAULT).parse().map(PyRecipe).map_err(value_error)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("Recipe('{}')", self.0)
    }

    fn __getnewargs__(&self) -> (String,) {
        (self.0.to_string(),)
    }

    /// What sketches and features are made of.
    #[getter]
    fn chunking(&self) -> String {
        self.0.main().to_string()
    }

    /// Bits of the fingerprints of chunks.
    #[getter]
    fn fingerprint_bits(&self) -> u32 {
        self.0.width().bits()
    }

    /// Numbers in a sketch.
    #[getter]
    fn sketch_len(&self) -> usize {
        self.0.scheme().sketch_len()
    }

    /// The filter, where there are features.
    #[getter]
    fn filter(&self) -> Option<PyFilter> {
        self.0.scheme().filter().map(PyFilter)
    }

    /// Where minima come from: `independent`, `one permutation` or `bottom`.
    #[getter]
    fn kind(&self) -> &'static str {
        match (self.0.scheme(), self.0.minwise()) {
            (SketchScheme::Bottom(_), _) => "bottom",
            (_, Minwise::One) => "one permutation",
            (_, Minwise::Independent) => "independent",
        }
    }

    /// Whether a scan keeps minima.
    #[getter]
    fn keeps_sketches(&self) -> bool {
        self.0.keeps_sketches()
    }

    /// Chunkings that a scan keeps.
    #[getter]
    fn kept_chunks(&self) -> Vec<String> {
        self.0.kept_chunks().iter().map(ToString::to_string).collect()
    }
}

/// A recipe that is given as one, as its spelling, or not at all.
pub(crate) fn recipe_of(given: Option<&Bound<'_, PyAny>>, default: &str) -> PyResult<Recipe> {
    let Some(given) = given.filter(|given| !given.is_none()) else {
        return default.parse().map_err(value_error);
    };
    if let Ok(recipe) = given.cast::<PyRecipe>() {
        return Ok(recipe.get().0.clone());
    }
    match given.cast::<PyString>() {
        Ok(spelling) => spelling.to_str()?.parse().map_err(value_error),
        Err(_) => Err(PyTypeError::new_err("a recipe is a Recipe or its spelling")),
    }
}

/// The filter of Broder 2000: k features of s minima each, of which r must agree. In a notebook it
/// is its curve.
///
/// >>> filter = FeatureFilter(6, 14, 2)
/// >>> round(filter.acceptance(0.975), 4), round(filter.acceptance(0.7), 6)
/// (0.9893, 0.000678)
/// >>> filter.bytes_per_document
/// 48
#[pyclass(frozen, eq, hash, module = "onionskin", name = "FeatureFilter", from_py_object)]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PyFilter(pub(crate) FeatureFilter);

#[pymethods]
impl PyFilter {
    #[new]
    fn new(k: u32, s: u32, r: u32) -> PyResult<PyFilter> {
        FeatureFilter::new(k, s, r).map(PyFilter).map_err(value_error)
    }

    /// From its spelling.
    ///
    /// >>> FeatureFilter.parse("6x14r2")
    /// FeatureFilter(k=6, s=14, r=2)
    #[staticmethod]
    fn parse(spelling: &str) -> PyResult<PyFilter> {
        spelling.parse().map(PyFilter).map_err(value_error)
    }

    /// The smallest filter that misses at most `miss` of the pairs at the threshold, and accepts at
    /// most `false_accept` of those at `far` (two thirds of the threshold where nothing is said).
    ///
    /// >>> FeatureFilter.choose(0.9, miss=0.01, false_accept=0.01)
    /// FeatureFilter(k=14, s=7, r=3)
    #[staticmethod]
    #[pyo3(signature = (threshold = 0.9, *, miss = 0.01, far = None, false_accept = 0.01))]
    fn choose(threshold: f64, miss: f64, far: Option<f64>, false_accept: f64) -> PyResult<PyFilter> {
        let far = far.unwrap_or(threshold * 2.0 / 3.0);
        choose(Target { threshold, miss, far, false_accept }).map(PyFilter).map_err(value_error)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("FeatureFilter(k={}, s={}, r={})", self.0.k(), self.0.s(), self.0.r())
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, [self.0.k(), self.0.s(), self.0.r()])
    }

    /// Features a document.
    #[getter]
    fn k(&self) -> usize {
        self.0.k()
    }

    /// Minima a feature.
    #[getter]
    fn s(&self) -> usize {
        self.0.s()
    }

    /// Features that must agree.
    #[getter]
    fn r(&self) -> usize {
        self.0.r()
    }

    /// Permutations that are needed.
    #[getter]
    fn permutations(&self) -> usize {
        self.0.permutations()
    }

    /// Bytes of features a document.
    #[getter]
    fn bytes_per_document(&self) -> usize {
        self.0.bytes_per_document()
    }

    /// The resemblance at which half of the pairs are accepted.
    #[getter]
    fn half_point(&self) -> f64 {
        self.0.half_point()
    }

    /// The share of pairs of a resemblance that is accepted.
    fn acceptance(&self, resemblance: f64) -> f64 {
        self.0.acceptance(resemblance)
    }

    /// The share that is not, with all its digits.
    fn miss(&self, resemblance: f64) -> f64 {
        self.0.miss(resemblance)
    }

    /// The resemblance at which a share of pairs is accepted.
    fn resemblance_at(&self, acceptance: f64) -> f64 {
        self.0.resemblance_at(acceptance)
    }

    /// Points of the curve: resemblance and share that is accepted.
    ///
    /// >>> FeatureFilter(6, 14, 2).curve(3)[-1]
    /// (1.0, 1.0)
    #[pyo3(signature = (n = 101))]
    fn curve(&self, n: usize) -> PyResult<Vec<(f64, f64)>> {
        if !(2..=1_000_000).contains(&n) {
            return Err(value_error(format!("a curve has from 2 to 1000000 points, not {n}")));
        }
        let at = |i: usize| i as f64 / (n - 1) as f64;
        Ok((0..n).map(|i| (at(i), self.0.acceptance(at(i)))).collect())
    }

    fn _repr_svg_(&self) -> PyResult<String> {
        let half = self.0.half_point();
        let figure = Figure::Lines(Lines {
            title: format!("Pairs that {} accepts", self.0),
            x_label: "resemblance".to_owned(),
            y_label: "share that is accepted".to_owned(),
            series: vec![LineSeries {
                name: format!("{} (half at {half:.3})", self.0),
                points: self.curve(201)?,
                band: None,
                dashed: false,
            }],
            marks: vec![],
        });
        Ok(figure.svg(Ink::Page, &format!("onionskin-{}", self.0)))
    }
}
