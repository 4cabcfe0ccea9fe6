//! What `onionskin.datasketch` is made of: minima of a set that grows, and the parameters of an
//! index of bands.

use std::cell::RefCell;

use onionskin_core::sketch::{NO_MEMBER, Permutations};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView, PyString, PyTuple};
use xxhash_rust::xxh3::xxh3_64;

thread_local! {
    /// Permutations and their scratch: one a thread, not one a sketch. Most sketches of a program
    /// are of one seed.
    static DRAWN: RefCell<Option<(usize, u64, Permutations)>> = const { RefCell::new(None) };
    /// Hashes of what is put in together.
    static HASHES: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The minima of some hashes, joined with those that are there.
fn join(minima: &mut [u32], seed: u64, hashes: &[u64]) {
    let t = minima.len();
    DRAWN.with_borrow_mut(|drawn| {
        let (_, _, permutations) = match drawn {
            Some(drawn) if (drawn.0, drawn.1) == (t, seed) => drawn,
            _ => drawn.insert((t, seed, Permutations::new(t, seed))),
        };
        for (minimum, new) in minima.iter_mut().zip(permutations.sketch(hashes)) {
            *minimum = (*minimum).min(*new);
        }
    });
}

/// The hash of a value: of its bytes, or of its letters.
fn hash(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(xxh3_64(bytes.as_bytes()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(xxh3_64(text.to_str()?.as_bytes()));
    }
    // Whatever has a buffer: bytearray, memoryview, numbers of numpy.
    if let Ok(view) = PyMemoryView::from(value) {
        let bytes = view.call_method0("tobytes")?;
        return Ok(xxh3_64(bytes.cast::<PyBytes>()?.as_bytes()));
    }
    Err(PyTypeError::new_err(format!(
        "bytes or str are wanted, not {}; give hashfunc= for other values",
        value.get_type().name()?
    )))
}

/// Minima of a set that grows.
#[pyclass(subclass, module = "onionskin._onionskin", name = "MinHashCore")]
pub(crate) struct MinHashCore {
    minima: Vec<u32>,
    #[pyo3(get)]
    seed: u64,
}

#[pymethods]
impl MinHashCore {
    #[new]
    #[pyo3(signature = (num_perm, seed))]
    fn new(num_perm: usize, seed: u64) -> PyResult<MinHashCore> {
        if num_perm == 0 || num_perm > 1 << 16 {
            return Err(PyValueError::new_err(format!("num_perm goes from 1 to 65536, not {num_perm}")));
        }
        Ok(MinHashCore { minima: vec![u32::MAX; num_perm], seed })
    }

    #[getter]
    fn num_perm(&self) -> usize {
        self.minima.len()
    }

    fn _put(&mut self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let hash = hash(value)?;
        join(&mut self.minima, self.seed, &[hash]);
        Ok(())
    }

    fn _put_many(&mut self, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut hashes = HASHES.take();
        hashes.clear();
        for value in values.try_iter()? {
            hashes.push(hash(&value?)?);
        }
        if !hashes.is_empty() {
            join(&mut self.minima, self.seed, &hashes);
        }
        HASHES.set(hashes);
        Ok(())
    }

    fn _put_hashes(&mut self, hashes: Vec<u64>) {
        if !hashes.is_empty() {
            join(&mut self.minima, self.seed, &hashes);
        }
    }

    fn _merge(&mut self, other: &Bound<'_, MinHashCore>) {
        // Merging with itself changes nothing.
        let Ok(other) = other.try_borrow() else { return };
        for (minimum, new) in self.minima.iter_mut().zip(&other.minima) {
            *minimum = (*minimum).min(*new);
        }
    }

    fn _agreeing(&self, other: &Bound<'_, MinHashCore>) -> usize {
        let Ok(other) = other.try_borrow() else { return self.minima.len() };
        self.minima.iter().zip(&other.minima).filter(|(a, b)| a == b).count()
    }

    fn _same(&self, other: &Bound<'_, MinHashCore>) -> bool {
        other.try_borrow().is_ok_and(|other| self.minima == other.minima)
    }

    fn _sum(&self) -> f64 {
        self.minima.iter().map(|minimum| f64::from(*minimum) / f64::from(u32::MAX)).sum()
    }

    fn is_empty(&self) -> bool {
        self.minima.iter().all(|minimum| *minimum == NO_MEMBER)
    }

    fn clear(&mut self) {
        self.minima.fill(NO_MEMBER);
    }

    fn _bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        PyBytes::new_with(py, 4 * self.minima.len(), |bytes| {
            for (out, value) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(&self.minima) {
                *out = value.to_le_bytes();
            }
            Ok(())
        })
    }

    fn _set(&mut self, bytes: &[u8]) -> PyResult<()> {
        let (values, rest) = bytes.as_chunks::<4>();
        if values.len() != self.minima.len() || !rest.is_empty() {
            return Err(PyValueError::new_err(format!("{} hash values are wanted", self.minima.len())));
        }
        for (minimum, value) in self.minima.iter_mut().zip(values) {
            *minimum = u32::from_le_bytes(*value);
        }
        Ok(())
    }

    /// One number a band of `r` minima, `b` of them.
    fn _bands(&self, b: usize, r: usize) -> PyResult<Vec<u64>> {
        if r == 0 || b * r > self.minima.len() {
            return Err(PyValueError::new_err(format!(
                "{b} bands of {r} do not fit {} minima",
                self.minima.len()
            )));
        }
        let mut bytes = Vec::with_capacity(4 * r);
        let bands = self.minima.chunks_exact(r).take(b).map(|band| {
            bytes.clear();
            band.iter().for_each(|minimum| bytes.extend_from_slice(&minimum.to_le_bytes()));
            xxh3_64(&bytes)
        });
        Ok(bands.collect())
    }

    fn __len__(&self) -> usize {
        self.minima.len()
    }

    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let interface = PyDict::new(py);
        interface.set_item("version", 3)?;
        interface.set_item("shape", PyTuple::new(py, [self.minima.len()])?)?;
        interface.set_item("typestr", "<u4")?;
        // A copy: the minima change.
        interface.set_item("data", self._bytes(py)?)?;
        Ok(interface)
    }
}

/// How many bands of how many minima have the least weighted error at a threshold, as datasketch
/// has it: the area under the curve below the threshold, and that above the curve beyond it.
#[pyfunction]
pub(crate) fn optimal_bands(
    py: Python<'_>,
    threshold: f64,
    num_perm: usize,
    false_positive_weight: f64,
    false_negative_weight: f64,
) -> (usize, usize) {
    py.detach(|| {
        let mut best = (f64::INFINITY, (0, 0));
        for b in 1..=num_perm {
            for r in 1..=num_perm / b {
                let accepted = |s: f64| 1.0 - (1.0 - s.powi(r as i32)).powi(b as i32);
                let wrong = integral(0.0, threshold, accepted);
                let missed = integral(threshold, 1.0, |s| 1.0 - accepted(s));
                let error = wrong * false_positive_weight + missed * false_negative_weight;
                if error < best.0 {
                    best = (error, (b, r));
                }
            }
        }
        best.1
    })
}

/// By Gauss and Legendre, five points in each of 64 parts: the curves are polynomials, and errors
/// are far below what tells two choices apart.
fn integral(from: f64, to: f64, f: impl Fn(f64) -> f64) -> f64 {
    const POINTS: [(f64, f64); 5] = [
        (0.0, 0.568_888_888_888_888_9),
        (0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (-0.538_469_310_105_683_1, 0.478_628_670_499_366_5),
        (0.906_179_845_938_664, 0.236_926_885_056_189_1),
        (-0.906_179_845_938_664, 0.236_926_885_056_189_1),
    ];
    const PARTS: usize = 64;
    let half = (to - from) / PARTS as f64 / 2.0;
    let part = |i: usize| {
        let middle = from + (2 * i + 1) as f64 * half;
        POINTS.iter().map(|(x, weight)| weight * f(middle + half * x)).sum::<f64>() * half
    };
    (0..PARTS).map(part).sum()
}
