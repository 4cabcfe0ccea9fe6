//! The online filter, for the class `Deduplicator`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use onionskin_seen::intake::{
    Answer, Gathered, IndexStats, Intake, Limits, LineReader, OpenError, Prepared, RECIPE, RemovedName,
    Request, Status, Threshold, Verb, Verify, Wanted, place,
};
use onionskin_seen::{Options, Params, SeenError};
use onionskin_store::MemoryBudget;
use onionskin_store::storage::{Disk, Storage, StorageFile};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error::{failed, value_error};
use crate::recipe::{PyRecipe, recipe_of};
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
    answer: Answer,
    /// Whether ids are names, or numbers.
    names: bool,
    /// Whether the document was given an id.
    has_id: bool,
}

/// A name as Python has it: a number in an index of numbers.
fn id<'py>(py: Python<'py>, name: &str, names: bool) -> PyResult<Bound<'py, PyAny>> {
    match name.parse::<u64>() {
        Ok(key) if !names => Ok(key.into_pyobject(py)?.into_any()),
        _ => Ok(name.into_pyobject(py)?.into_any()),
    }
}

#[pymethods]
impl Verdict {
    /// What was found: `new`, `near`, `exact`, `empty` or `bad`.
    #[getter]
    fn status(&self) -> &'static str {
        self.answer.status.as_str()
    }

    /// Nothing like it was there.
    #[getter]
    fn is_new(&self) -> bool {
        self.answer.status == Status::New
    }

    /// It is word for word another.
    #[getter]
    fn is_exact(&self) -> bool {
        self.answer.status == Status::Exact
    }

    /// It is nearly another.
    #[getter]
    fn is_near(&self) -> bool {
        self.answer.status == Status::Near
    }

    /// It has no word: such a document is never added, and like nothing.
    #[getter]
    fn is_empty(&self) -> bool {
        self.answer.status == Status::Empty
    }

    /// It could not be taken, for the reason in `problem`.
    #[getter]
    fn is_bad(&self) -> bool {
        self.answer.status == Status::Bad
    }

    /// Why it could not be taken.
    #[getter]
    fn problem(&self) -> Option<&str> {
        self.answer.problem.as_deref()
    }

    /// It is in the index now.
    #[getter]
    fn added(&self) -> bool {
        self.answer.added
    }

    /// Its id; `None` where it was only looked for.
    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.has_id.then(|| id(py, &self.answer.name, self.names)).transpose()
    }

    /// The id of the document that it is like.
    #[getter]
    fn like_id<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.answer.of.as_ref().map(|of| id(py, &of.name, self.names)).transpose()
    }

    /// The estimated resemblance to that document: the share of minima that agree in an index with
    /// sketches, else from the features in common.
    #[getter]
    fn resemblance(&self) -> Option<f64> {
        self.answer.of.as_ref().map(|of| of.resemblance)
    }

    /// What the resemblance was found by: `exact`, `sketch` or `features`.
    #[getter]
    fn method(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let Some(of) = &self.answer.of else { return Ok(None) };
        serialized(py, &of.method)?.extract().map(Some)
    }

    /// Features in common with that document.
    #[getter]
    fn shared(&self) -> usize {
        self.answer.of.as_ref().map_or(0, |of| of.shared)
    }

    /// All of it as a dictionary, with the fields of `onionskin seen` and of the server.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        serialized(py, &self.answer)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let what = match (&self.answer.of, &self.answer.problem) {
            (None, None) => self.status().to_owned(),
            (None, Some(problem)) => format!("bad: {problem}"),
            (Some(of), _) => {
                let other = id(py, &of.name, self.names)?.repr()?;
                match self.answer.status {
                    Status::Exact => format!("exact copy of {other}"),
                    _ => format!("like {other}, {:.2}", of.resemblance),
                }
            }
        };
        Ok(format!("Verdict({what})"))
    }
}

/// What is serialised the same for every edge, as values of Python.
fn serialized<'py>(py: Python<'py>, value: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(value).map_err(value_error)?;
    py.import("json")?.call_method1("loads", (text,))
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

struct Inner {
    intake: Intake,
    lines: LineReader,
    /// Documents so far: the id of the next that has none of its own.
    documents: u64,
    uncommitted: u32,
}

/// An index that is open. The class around it is in Python.
#[pyclass(frozen, module = "onionskin._onionskin", name = "SeenIndex")]
pub(crate) struct SeenIndex {
    inner: Mutex<Option<Inner>>,
    params: Params,
    threshold: Option<Threshold>,
}

#[pymethods]
impl SeenIndex {
    #[new]
    #[pyo3(signature = (path, *, create, scratch, recipe, seed, names, sketches, threshold, memory, threads))]
    #[expect(clippy::too_many_arguments, reason = "the class in Python has them as keywords")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        create: bool,
        scratch: bool,
        recipe: Option<&Bound<'_, PyAny>>,
        seed: Option<u64>,
        names: Option<bool>,
        sketches: Option<bool>,
        threshold: Option<f64>,
        memory: &str,
        threads: Option<usize>,
    ) -> PyResult<SeenIndex> {
        let threshold = threshold.map(Threshold::try_from).transpose().map_err(value_error)?;
        let memory: MemoryBudget = memory.parse().map_err(value_error)?;
        let mut options = Options::new(memory);
        if scratch {
            options.storage = Arc::new(Scratch);
        }
        let recipe = recipe.map(|recipe| recipe_of(Some(recipe), RECIPE)).transpose()?;
        let sketches = sketches.or(threshold.map(|_| true));
        let wanted = Wanted { recipe, seed, names, sketches, threshold };
        let seen = py.detach(|| match create {
            true => wanted.open_or_create(&path, None, options),
            false => wanted.open(&path, options),
        });
        let seen = seen.map_err(not_opened)?;
        let params = seen.params().clone();
        let documents = seen.stats().documents;
        let intake = Intake::new(seen.into(), crate::texts::threads(threads)?);
        let inner = Inner { intake, lines: LineReader::default(), documents, uncommitted: 0 };
        let threshold = threshold.or(params.threshold);
        Ok(SeenIndex { inner: Mutex::new(Some(inner)), params, threshold })
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

    #[getter]
    fn threshold(&self) -> Option<f64> {
        self.threshold.map(Threshold::get)
    }

    /// Documents that are added and not removed.
    fn len(&self, py: Python<'_>) -> PyResult<u64> {
        let IndexStats { stats, .. } = self.with(py, |inner| Ok(inner.intake.stats()))?;
        Ok(stats.documents - stats.removed)
    }

    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        serialized(py, &self.with(py, |inner| Ok(inner.intake.stats()))?)
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
        let request = self.request(mode, None)?;
        let texts = Texts::of(texts, column)?;
        if let (Texts::List(list), Some(ids)) = (&texts, &ids)
            && list.len() != ids.len()
        {
            return Err(PyValueError::new_err(format!("{} ids for {} texts", ids.len(), list.len())));
        }
        let mut verdicts: Vec<Verdict> = Vec::new();
        texts.each_piece(py, |piece| {
            let mut guard = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            let inner = guard.as_mut().ok_or_else(closed)?;
            let texts: Vec<&str> = piece.iter().map(|text| text.unwrap_or_default()).collect();
            let features = inner.intake.features().of(&texts);
            for features in features {
                let at = verdicts.len();
                let name =
                    match &ids {
                        None if request.verb == Verb::Check => None,
                        None => Some(inner.documents.to_string()),
                        Some(ids) => Some(ids.at(at).ok_or_else(|| {
                            PyValueError::new_err(format!("{} ids for more texts", ids.len()))
                        })?),
                    };
                let has_id = name.is_some();
                let one = Prepared { name: name.unwrap_or_default(), features: Ok(features) };
                verdicts.push(self.verdict(inner, &one, request, has_id)?);
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

    /// Answers documents that are objects of JSON, one each, and makes additions safe.
    #[pyo3(signature = (documents, mode, threshold, verify))]
    fn documents(
        &self,
        py: Python<'_>,
        documents: Vec<String>,
        mode: &str,
        threshold: Option<f64>,
        verify: Option<&str>,
    ) -> PyResult<Vec<Verdict>> {
        let threshold = threshold.map(Threshold::try_from).transpose().map_err(value_error)?;
        let request = self.request(mode, threshold)?;
        let verify: Option<Verify> = verify.map(str::parse).transpose().map_err(value_error)?;
        verify.map_or(Ok(()), |how| how.ensure_possible(&self.params, false)).map_err(refused)?;
        self.with(py, |inner| {
            let mut verdicts = Vec::new();
            // Copies of the texts, and what is known of them, exist for some at a time.
            let mut gathered = Gathered::new(usize::MAX, &Limits::of_records(u64::MAX));
            let mut lines = (1..).zip(&documents).peekable();
            while let Some((n, line)) = lines.next() {
                gathered.push(inner.lines.read(line.as_bytes(), || place("-", n)), 0);
                if gathered.is_full() || lines.peek().is_none() {
                    for one in inner.intake.features().prepare(gathered.take()) {
                        verdicts.push(self.verdict(inner, &one, request, true)?);
                    }
                }
            }
            inner.commit()?;
            Ok(verdicts)
        })
    }

    /// Removes documents by their ids; how many each had.
    fn remove<'py>(&self, py: Python<'py>, ids: Ids) -> PyResult<Bound<'py, PyAny>> {
        let names = ids.into_names().into_iter().collect();
        let removed: Vec<RemovedName> = self.with(py, |inner| {
            let removed = inner.intake.remove(&names).map_err(refused)?;
            inner.commit()?;
            Ok(removed)
        })?;
        serialized(py, &removed)
    }

    /// Makes everything safe.
    fn commit(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, Inner::commit)
    }

    /// Rewrites the index without what was removed.
    fn compact(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |inner| {
            inner.commit()?;
            inner.intake.compact().map_err(failed)
        })
    }

    /// Makes everything safe and lets go of the folder.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
            match inner {
                Some(inner) => inner.intake.close().map_err(failed),
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

    /// What is asked; the threshold of the index where the call has none of its own.
    fn request(&self, mode: &str, threshold: Option<Threshold>) -> PyResult<Request> {
        let verb: Verb = mode.parse().map_err(value_error)?;
        let request = Request { verb, threshold: threshold.or(self.threshold) };
        request.ensure_possible(&self.params).map_err(refused)?;
        Ok(request)
    }

    fn verdict(
        &self,
        inner: &mut Inner,
        one: &Prepared,
        request: Request,
        has_id: bool,
    ) -> PyResult<Verdict> {
        let answer = inner.intake.answer_prepared(one, request).map_err(failed)?;
        inner.documents += u64::from(answer.added);
        inner.uncommitted += u32::from(answer.added);
        Ok(Verdict { answer, names: self.params.names, has_id })
    }
}

fn closed() -> PyErr {
    PyValueError::new_err("the Deduplicator is closed")
}

/// An index that is not what the arguments say is a mistake in the arguments.
fn not_opened(error: OpenError) -> PyErr {
    match error {
        OpenError::Names { names, .. } => {
            let kind = if names { "str" } else { "int" };
            value_error(format!("the ids of this index are {kind}; say ids={kind}"))
        }
        OpenError::Sketches { sketches: false, .. } => {
            value_error(format!("{error}; it was made with sketches=False"))
        }
        OpenError::Sketches { .. } => value_error(format!("{error}; sketches=False is for new ones")),
        OpenError::Threshold(error) => value_error(error),
        OpenError::Seen(error) => refused(error),
        other => failed(other),
    }
}

/// What cannot be asked of this index is a mistake in the arguments.
fn refused(error: SeenError) -> PyErr {
    match error {
        SeenError::NoFeatures(_) | SeenError::NoSketches | SeenError::NoTexts | SeenError::NotANumber(_) => {
            value_error(error)
        }
        other => failed(other),
    }
}

impl Inner {
    fn commit(&mut self) -> PyResult<()> {
        self.uncommitted = 0;
        self.intake.commit().map_err(failed)
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

    fn at(&self, at: usize) -> Option<String> {
        match self {
            Ids::Keys(keys) => keys.get(at).map(u64::to_string),
            Ids::Names(names) => names.get(at).cloned(),
        }
    }

    fn into_names(self) -> Vec<String> {
        match self {
            Ids::Keys(keys) => keys.iter().map(u64::to_string).collect(),
            Ids::Names(names) => names,
        }
    }
}
