//! The online filter, for the class `Deduplicator`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use onionskin::seen::{Document, Features, Options, Params, Seen, TextFeatures};
use onionskin_store::MemoryBudget;
use onionskin_store::storage::{Disk, Storage, StorageFile};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{failed, value_error};
use crate::recipe::{PyRecipe, recipe_of};
use crate::sketch::RECIPE;
use crate::texts::Texts;

/// What is known of a document that was added or looked for.
///
/// >>> from onionskin import Deduplicator
/// >>> seen = Deduplicator()
/// >>> _ = seen.add("one two three four five six", id="x")
/// >>> verdict = seen.check("One two three; four, five, six.")
/// >>> verdict.is_exact, verdict.like_id, verdict.resemblance
/// (True, 'x', 1.0)
#[pyclass(frozen, eq, module = "onionskin", name = "Verdict")]
#[derive(Clone, PartialEq)]
pub(crate) struct Verdict {
    /// `None` for a document without words.
    found: Option<Option<Like>>,
    added: bool,
    key: Option<u64>,
    name: Option<String>,
}

/// What a document is like.
#[derive(Clone, PartialEq)]
struct Like {
    key: u64,
    name: Option<String>,
    exact: bool,
    shared: usize,
    resemblance: f64,
}

impl Verdict {
    fn like(&self) -> Option<&Like> {
        self.found.as_ref().and_then(Option::as_ref)
    }
}

/// A name or a key as Python has it.
fn id<'py>(py: Python<'py>, key: Option<u64>, name: Option<&str>) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(match (name, key) {
        (Some(name), _) => Some(name.into_pyobject(py)?.into_any()),
        (None, Some(key)) => Some(key.into_pyobject(py)?.into_any()),
        (None, None) => None,
    })
}

#[pymethods]
impl Verdict {
    /// Nothing like it was there.
    #[getter]
    fn is_new(&self) -> bool {
        matches!(self.found, Some(None))
    }

    /// It is word for word another.
    #[getter]
    fn is_exact(&self) -> bool {
        self.like().is_some_and(|like| like.exact)
    }

    /// It is nearly another.
    #[getter]
    fn is_near(&self) -> bool {
        self.like().is_some_and(|like| !like.exact)
    }

    /// It has no word: such a document is never added, and like nothing.
    #[getter]
    fn is_empty(&self) -> bool {
        self.found.is_none()
    }

    /// It is in the index now.
    #[getter]
    fn added(&self) -> bool {
        self.added
    }

    /// Its id; `None` where it was only looked for.
    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        id(py, self.key, self.name.as_deref())
    }

    /// The id of the document that it is like.
    #[getter]
    fn like_id<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.like() {
            None => Ok(None),
            Some(like) => id(py, Some(like.key), like.name.as_deref()),
        }
    }

    /// The resemblance to that document: estimated from minima with a threshold, else what the features tell.
    #[getter]
    fn resemblance(&self) -> Option<f64> {
        self.like().map(|like| like.resemblance)
    }

    /// Features that agree with that document's.
    #[getter]
    fn agreeing_features(&self) -> usize {
        self.like().map_or(0, |like| like.shared)
    }

    /// All of it as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("id", self.id(py)?)?;
        dict.set_item("is_new", self.is_new())?;
        dict.set_item("is_exact", self.is_exact())?;
        dict.set_item("is_near", self.is_near())?;
        dict.set_item("is_empty", self.is_empty())?;
        dict.set_item("added", self.added)?;
        dict.set_item("like_id", self.like_id(py)?)?;
        dict.set_item("resemblance", self.resemblance())?;
        dict.set_item("agreeing_features", self.agreeing_features())?;
        Ok(dict)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let what = match (&self.found, self.like()) {
            (None, _) => "empty".to_owned(),
            (_, None) => "new".to_owned(),
            (_, Some(like)) => {
                let of = self.like_id(py)?.map(|id| id.repr().map(|repr| repr.to_string())).transpose()?;
                let of = of.unwrap_or_default();
                if like.exact {
                    format!("exact copy of {of}")
                } else {
                    format!("like {of}, {:.2}", like.resemblance)
                }
            }
        };
        Ok(format!("Verdict({what})"))
    }
}

/// A folder whose loss is no loss: nothing waits for the disk.
#[derive(Debug)]
struct Scratch;

struct ScratchFile(Box<dyn StorageFile>);

impl io::Write for ScratchFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl StorageFile for ScratchFile {
    fn sync(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Storage for Scratch {
    fn create(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(ScratchFile(Disk.create(path)?)))
    }

    fn append(&self, path: &Path, len: u64) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(ScratchFile(Disk.append(path, len)?)))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        Disk.create_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        Disk.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        Disk.remove_dir(path)
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

/// Whether documents are added, and which.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Check,
    Add,
    AddIfNew,
}

struct Inner {
    seen: Seen,
    features: TextFeatures,
    /// Documents so far: the id of the next that has none of its own.
    documents: u64,
    uncommitted: u32,
}

/// An index that is open. The class around it is in Python.
#[pyclass(frozen, module = "onionskin._onionskin", name = "SeenIndex")]
pub(crate) struct SeenIndex {
    inner: Mutex<Option<Inner>>,
    params: Params,
    threshold: f64,
}

#[pymethods]
impl SeenIndex {
    #[new]
    #[pyo3(signature = (path, *, create, scratch, recipe, seed, names, threshold, memory, threads))]
    #[expect(clippy::too_many_arguments, reason = "the class in Python has them as keywords")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        create: bool,
        scratch: bool,
        recipe: Option<&Bound<'_, PyAny>>,
        seed: Option<u64>,
        names: bool,
        threshold: Option<f64>,
        memory: &str,
        threads: Option<usize>,
    ) -> PyResult<SeenIndex> {
        if let Some(threshold) = threshold
            && !(threshold > 0.0 && threshold <= 1.0)
        {
            return Err(PyValueError::new_err(format!(
                "threshold is above 0 and at most 1, not {threshold}"
            )));
        }
        let memory: MemoryBudget = memory.parse().map_err(value_error)?;
        let mut options = Options::new(memory);
        if scratch {
            options.storage = Arc::new(Scratch);
        }
        let seen = if create {
            let recipe = recipe_of(recipe, RECIPE)?;
            let mut params = Params::new(&recipe, seed.unwrap_or(1), names).map_err(value_error)?;
            if threshold.is_some() {
                params = params.with_sketches();
            }
            py.detach(|| Seen::create(&path, params, options)).map_err(failed)?
        } else {
            let seen = py.detach(|| Seen::open(&path, options)).map_err(failed)?;
            if let Some(recipe) = recipe {
                let recipe = recipe_of(Some(recipe), RECIPE)?;
                seen.params()
                    .ensure_same_features(&recipe, seed.unwrap_or(seen.params().seed))
                    .map_err(failed)?;
            }
            if threshold.is_some() && !seen.params().sketches {
                return Err(PyValueError::new_err(
                    "the index keeps no sketches, which a threshold needs; it was made without threshold=",
                ));
            }
            seen
        };
        let params = seen.params().clone();
        let n_threads = crate::texts::threads(threads)?;
        let features = TextFeatures::new(&params, n_threads);
        let documents = seen.stats().documents;
        let inner = Mutex::new(Some(Inner { seen, features, documents, uncommitted: 0 }));
        Ok(SeenIndex { inner, params, threshold: threshold.unwrap_or(0.0) })
    }

    #[getter]
    fn recipe(&self) -> PyRecipe {
        PyRecipe(self.params.recipe.clone())
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.params.seed
    }

    #[getter]
    fn names(&self) -> bool {
        self.params.names
    }

    #[getter]
    fn sketches(&self) -> bool {
        self.params.sketches
    }

    /// Documents that are added and not removed.
    fn len(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |inner| {
            let stats = inner.seen.stats();
            Ok(stats.documents - stats.removed)
        })
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.with(py, |inner| Ok(inner.seen.stats()))?;
        let dict = PyDict::new(py);
        dict.set_item("documents", stats.documents)?;
        dict.set_item("removed", stats.removed)?;
        dict.set_item("centres", stats.centres)?;
        dict.set_item("runs", stats.runs)?;
        dict.set_item("in_log", stats.in_log)?;
        dict.set_item("bytes", stats.bytes)?;
        dict.set_item("name_bytes", stats.name_bytes)?;
        dict.set_item("sketch_bytes", stats.sketch_bytes)?;
        Ok(dict)
    }

    /// Looks for texts or adds them. `ids` is as long as `texts`, or absent.
    #[pyo3(signature = (texts, ids, mode, column, commit_every))]
    fn batch(
        &self,
        texts: &Bound<'_, PyAny>,
        ids: Option<Ids>,
        mode: &str,
        column: Option<&str>,
        commit_every: u32,
    ) -> PyResult<Vec<Verdict>> {
        let py = texts.py();
        let mode = match mode {
            "check" => Mode::Check,
            "add" => Mode::Add,
            _ => Mode::AddIfNew,
        };
        let texts = Texts::of(texts, column)?;
        if let (Texts::List(list), Some(ids)) = (&texts, &ids)
            && list.len() != ids.len()
        {
            return Err(PyValueError::new_err(format!("{} ids for {} texts", ids.len(), list.len())));
        }
        let mut verdicts: Vec<Verdict> = Vec::new();
        let (names, threshold) = (self.params.names, self.threshold);
        texts.each_piece(py, |piece| {
            let mut guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let inner = guard.as_mut().ok_or_else(closed)?;
            let texts: Vec<&str> = piece.iter().map(|text| text.unwrap_or_default()).collect();
            let features = inner.features.of(&texts);
            for features in &features {
                let at = verdicts.len();
                let (key, name) = match &ids {
                    None if mode == Mode::Check => (0, String::new()),
                    None if names => (0, inner.documents.to_string()),
                    None => (inner.documents, String::new()),
                    Some(ids) => ids
                        .at(at)
                        .ok_or_else(|| PyValueError::new_err(format!("{} ids for more texts", ids.len())))?,
                };
                verdicts.push(inner.one(features, key, &name, mode, threshold, names).map_err(failed)?);
                if inner.uncommitted >= commit_every {
                    inner.commit()?;
                }
            }
            Ok(())
        })?;
        if let Some(ids) = ids.filter(|ids| ids.len() != verdicts.len()) {
            let n = verdicts.len();
            return Err(PyValueError::new_err(format!(
                "{} ids for {n} texts; the texts were taken",
                ids.len()
            )));
        }
        Ok(verdicts)
    }

    /// Removes documents by their ids; how many there were.
    fn remove(&self, py: Python<'_>, ids: Ids) -> PyResult<u64> {
        self.with(py, |inner| {
            let removed: u64 = match ids {
                Ids::Names(names) => {
                    inner.seen.remove_names(&names.into_iter().collect()).map_err(failed)?.values().sum()
                }
                Ids::Keys(keys) => {
                    inner.seen.remove_keys(&keys.into_iter().collect()).map_err(failed)?.values().sum()
                }
            };
            inner.commit()?;
            Ok(removed)
        })
    }

    /// Makes everything safe.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Inner::commit)
    }

    /// Rewrites the index without what was removed.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |inner| {
            inner.commit()?;
            inner.seen.compact().map_err(failed)
        })
    }

    /// Makes everything safe and lets go of the folder.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
            match inner {
                Some(inner) => inner.seen.close().map_err(failed),
                None => Ok(()),
            }
        })
    }
}

impl SeenIndex {
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Inner) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            work(guard.as_mut().ok_or_else(closed)?)
        })
    }
}

fn closed() -> PyErr {
    PyValueError::new_err("the Deduplicator is closed")
}

impl Inner {
    fn commit(&mut self) -> PyResult<()> {
        self.uncommitted = 0;
        self.seen.commit().map_err(failed)
    }

    fn one(
        &mut self,
        features: &Features,
        key: u64,
        name: &str,
        mode: Mode,
        threshold: f64,
        names: bool,
    ) -> Result<Verdict, onionskin::seen::SeenError> {
        let known = mode != Mode::Check;
        let mut verdict = Verdict {
            found: None,
            added: false,
            key: (known && !names).then_some(key),
            name: (known && names).then(|| name.to_owned()),
        };
        let Some(probe) = features.probe() else { return Ok(verdict) };
        let probe = probe.with_threshold(threshold);
        let document = Document { probe, key, name };
        let (added, seen) = match mode {
            Mode::Check => (false, self.seen.check(&probe)?),
            Mode::Add => {
                let outcome = self.seen.add(&document)?;
                (outcome.doc.is_some(), outcome.seen)
            }
            Mode::AddIfNew => {
                let outcome = self.seen.add_if_new(&document)?;
                (outcome.doc.is_some(), outcome.seen)
            }
        };
        self.documents += u64::from(added);
        self.uncommitted += u32::from(added);
        verdict.added = added;
        verdict.found = Some(seen.map(|seen| Like {
            key: seen.key,
            name: seen.name,
            exact: seen.exact,
            shared: seen.shared,
            resemblance: seen.resemblance,
        }));
        Ok(verdict)
    }
}

/// Ids of documents.
#[derive(FromPyObject)]
enum Ids {
    Keys(Vec<u64>),
    Names(Vec<String>),
}

impl Ids {
    fn len(&self) -> usize {
        match self {
            Ids::Keys(keys) => keys.len(),
            Ids::Names(names) => names.len(),
        }
    }

    fn at(&self, at: usize) -> Option<(u64, String)> {
        match self {
            Ids::Keys(keys) => keys.get(at).map(|key| (*key, String::new())),
            Ids::Names(names) => names.get(at).map(|name| (0, name.clone())),
        }
    }
}
