//! Kernels of the scan.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Int32Builder, Int64Builder, ListBuilder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::ArrowError;
use onionskin::scan::inputs;
use onionskin::scan::parts::{self as parts, Reading, TaskResult};
use onionskin_core::Recipe;
use onionskin_corpus::{Options, TextRow};
use onionskin_extract::url::registered_domain;
use parquet::file::reader::{FileReader, SerializedFileReader};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use xxhash_rust::xxh3::xxh3_64;

use super::columns::Columns;
use super::{MadeRows, failed, longs, refused, rows_of, table};

/// How inputs are read, as a manifest spells it.
fn options(spelled: &str) -> PyResult<Options> {
    Ok(serde_json::from_str::<inputs::ScanRecord>(spelled).map_err(refused)?.into())
}

/// Who takes the text out of what, for the manifest.
#[pyfunction]
pub(super) fn extractors(reading: &str) -> PyResult<BTreeMap<String, String>> {
    Ok(parts::extractors(&options(reading)?))
}

/// A unit of the plan: source, inputs, nth, name, bytes, format, first task, tasks, files.
type UnitRow = (u32, Vec<String>, u32, String, u64, String, u32, Option<u32>, Vec<String>);

/// Plans the inputs; tells also what they are, in one word that changes when one of them does.
#[pyfunction]
pub(super) fn plan(
    py: Python<'_>,
    inputs: Vec<String>,
    reading: &str,
    tasks: u32,
) -> PyResult<(Vec<UnitRow>, String)> {
    let options = options(reading)?;
    let units = py.detach(|| parts::plan(&inputs, &options, tasks)).map_err(refused)?;
    let row = |unit: parts::Unit| {
        let parts::Unit { source, inputs, nth, name, bytes, format, tasks: (first, tasks), files } = unit;
        (source, inputs, nth, name, bytes, format.to_string(), first, tasks, files)
    };
    let identity = parts::fingerprint(&units);
    Ok((units.into_iter().map(row).collect(), identity))
}

/// Reads pieces of the inputs, task by task.
#[pyclass(module = "onionskin._onionskin.spark")]
pub(super) struct Worker {
    inner: Mutex<(parts::Worker, Option<Reading>)>,
    chunkings: Vec<String>,
}

#[pymethods]
impl Worker {
    #[new]
    fn new(recipe: &str, seed: u64, reading: &str) -> PyResult<Worker> {
        let recipe: Recipe = recipe.parse().map_err(refused)?;
        let chunkings = recipe.kept_chunks().iter().map(|chunking| chunking.to_string()).collect();
        let worker = parts::Worker::new(recipe, seed, options(reading)?);
        Ok(Worker { inner: Mutex::new((worker, None)), chunkings })
    }

    /// Begins to read a unit of the plan.
    #[pyo3(signature = (inputs, nth, name, first, tasks=None))]
    fn unit(
        &self,
        py: Python<'_>,
        inputs: Vec<String>,
        nth: u32,
        name: &str,
        first: u32,
        tasks: Option<u32>,
    ) -> PyResult<()> {
        py.detach(|| {
            let mut inner = self.inner.lock().map_err(refused)?;
            inner.1 = Some(inner.0.unit((&inputs, nth), name, (first, tasks)).map_err(refused)?);
            Ok(())
        })
    }

    /// Begins to read an input whose bytes are here.
    fn content(&self, name: &str, bytes: &Bound<'_, PyBytes>) -> PyResult<()> {
        let mut inner = self.inner.lock().map_err(refused)?;
        let reading = inner.0.bytes(name, bytes.as_bytes().into()).map_err(refused)?;
        inner.1 = Some(reading);
        Ok(())
    }

    /// The rows of the next task; `None` when all are done.
    fn next(&self, py: Python<'_>, source: i64) -> PyResult<Option<MadeRows>> {
        let made = py.detach(|| -> Result<Option<RecordBatch>, String> {
            let mut inner = self.inner.lock().map_err(|error| error.to_string())?;
            let (worker, reading) = &mut *inner;
            let Some(reading) = reading else { return Ok(None) };
            let Some(task) = worker.next(reading).map_err(|error| error.to_string())? else {
                return Ok(None);
            };
            let mut rows = ScanRows::new(&self.chunkings);
            rows.task(source, &task);
            rows.finish().map(Some).map_err(|error| error.to_string())
        });
        Ok(made.map_err(refused)?.map(MadeRows))
    }

    /// Rows of a table (text, id, url, row) as documents.
    fn rows(&self, data: &Bound<'_, PyAny>, name: &str, source: i64) -> PyResult<MadeRows> {
        let batches = rows_of(data)?;
        let made = data.py().detach(|| -> Result<RecordBatch, String> {
            let wrong = |error: ArrowError| error.to_string();
            let mut inner = self.inner.lock().map_err(|error| error.to_string())?;
            let mut rows = ScanRows::new(&self.chunkings);
            for batch in &batches {
                let columns = Columns(batch);
                let texts = columns.texts("text").map_err(wrong)?;
                let (ids, urls) = (columns.texts("id").map_err(wrong)?, columns.texts("url").map_err(wrong)?);
                let numbers = columns.longs("row").map_err(wrong)?;
                for row in 0..batch.num_rows() {
                    let text = TextRow { text: texts.get(row), id: ids.get(row), url: urls.get(row) };
                    let number = numbers.value(row);
                    let result = inner.0.rows(name, number as u64, std::iter::once(text));
                    rows.document_at(source, number, &result);
                }
            }
            rows.finish().map_err(wrong)
        });
        Ok(MadeRows(made.map_err(refused)?))
    }
}

/// What a row is.
const DOCUMENT: i32 = 0;
const BAD_RECORD: i32 = 1;
const SKIPPED: i32 = 2;
const TASK: i32 = 3;

/// Rows of a scan. A document has no note; the others have nothing else.
struct ScanRows<'a> {
    chunkings: &'a [String],
    what: Int32Builder,
    place: [Int64Builder; 3],
    texts: [StringBuilder; 6],
    numbers: [Int64Builder; 5],
    fetched_at: TimestampMicrosecondBuilder,
    payload_sha1: BinaryBuilder,
    revisit: BooleanBuilder,
    links: ListBuilder<Int64Builder>,
    features: ListBuilder<Int64Builder>,
    sketch: ListBuilder<Int32Builder>,
    chunks: Vec<ListBuilder<Int64Builder>>,
    notes: [StringBuilder; 3],
    count: Int64Builder,
}

impl<'a> ScanRows<'a> {
    fn new(chunkings: &'a [String]) -> ScanRows<'a> {
        ScanRows {
            chunkings,
            what: Int32Builder::new(),
            place: Default::default(),
            texts: Default::default(),
            numbers: Default::default(),
            fetched_at: TimestampMicrosecondBuilder::new().with_timezone("UTC"),
            payload_sha1: BinaryBuilder::new(),
            revisit: BooleanBuilder::new(),
            links: ListBuilder::new(Int64Builder::new()),
            features: ListBuilder::new(Int64Builder::new()),
            sketch: ListBuilder::new(Int32Builder::new()),
            chunks: chunkings.iter().map(|_| ListBuilder::new(Int64Builder::new())).collect(),
            notes: Default::default(),
            count: Int64Builder::new(),
        }
    }

    fn task(&mut self, source: i64, task: &TaskResult<'_>) {
        let number = i64::from(task.task);
        task.documents(|document| self.document([source, number, document.row() as i64], &document));
        let at = [source, number, 0];
        for (nth, bad) in (0..).zip(task.bad_records()) {
            self.bad_record([source, number, nth], &bad);
        }
        for (reason, count) in task.skipped() {
            self.note(SKIPPED, at, [None, None, Some(&reason)], count as i64);
        }
        self.no_text(at, task);
        self.note(TASK, at, [Some("input_bytes"), None, None], task.input_bytes() as i64);
        self.note(TASK, at, [Some("text_bytes"), None, None], task.text_bytes() as i64);
    }

    fn bad_record(&mut self, at: [i64; 3], bad: &parts::BadPart) {
        let notes = [Some(bad.code), Some(bad.place.as_str()), Some(bad.reason.as_str())];
        self.note(BAD_RECORD, at, notes, bad.records as i64);
        if bad.bytes > 0 {
            self.note(TASK, at, [Some("bad_record_bytes"), None, None], bad.bytes as i64);
        }
    }

    /// One row of a table: as a task, but numbered by the table.
    fn document_at(&mut self, source: i64, row: i64, task: &TaskResult<'_>) {
        task.documents(|document| self.document([source, 0, row], &document));
        let at = [source, 0, row];
        for bad in task.bad_records() {
            self.bad_record(at, &bad);
        }
        for (reason, count) in task.skipped() {
            self.note(SKIPPED, at, [None, None, Some(&reason)], count as i64);
        }
        self.no_text(at, task);
        self.note(TASK, at, [Some("text_bytes"), None, None], task.text_bytes() as i64);
    }

    fn no_text(&mut self, at: [i64; 3], task: &TaskResult<'_>) {
        if task.no_text() > 0 {
            self.note(TASK, at, [Some("no_text"), None, None], task.no_text() as i64);
        }
    }

    fn document(&mut self, at: [i64; 3], document: &parts::Scanned<'_>) {
        self.what.append_value(DOCUMENT);
        self.place.iter_mut().zip(at).for_each(|(column, value)| column.append_value(value));
        let texts = [
            document.id,
            document.url,
            document.host,
            document.title,
            document.canonical_url,
            Some(document.media_type),
        ];
        self.texts.iter_mut().zip(texts).for_each(|(column, text)| column.append_option(text));
        let numbers = [
            Some(document.offset as i64),
            Some(document.bytes as i64),
            Some(document.tokens as i64),
            document.text_fp.map(|text| text as i64),
            document.url_fp.map(|url| url as i64),
        ];
        self.numbers.iter_mut().zip(numbers).for_each(|(column, value)| column.append_option(value));
        self.fetched_at.append_option(document.fetched_at);
        self.payload_sha1.append_option(document.payload_sha1);
        self.revisit.append_value(document.revisit);
        append(&mut self.links, Some(document.links));
        append(&mut self.features, document.features);
        match document.sketch {
            None => self.sketch.append_null(),
            Some(sketch) => {
                self.sketch.values().append_values(
                    &sketch.iter().map(|minimum| *minimum as i32).collect::<Vec<_>>(),
                    &vec![true; sketch.len()],
                );
                self.sketch.append(true);
            }
        }
        for (list, chunks) in self.chunks.iter_mut().zip(document.chunks()) {
            append(list, Some(chunks));
        }
        self.notes.iter_mut().for_each(StringBuilder::append_null);
        self.count.append_null();
    }

    fn note(&mut self, what: i32, at: [i64; 3], notes: [Option<&str>; 3], count: i64) {
        self.what.append_value(what);
        self.place.iter_mut().zip(at).for_each(|(column, value)| column.append_value(value));
        self.texts.iter_mut().for_each(StringBuilder::append_null);
        self.numbers.iter_mut().for_each(Int64Builder::append_null);
        self.fetched_at.append_null();
        self.payload_sha1.append_null();
        self.revisit.append_null();
        self.links.append_null();
        self.features.append_null();
        self.sketch.append_null();
        self.chunks.iter_mut().for_each(ListBuilder::append_null);
        self.notes.iter_mut().zip(notes).for_each(|(column, note)| column.append_option(note));
        self.count.append_value(count);
    }

    fn finish(mut self) -> Result<RecordBatch, ArrowError> {
        let mut columns: Vec<(String, ArrayRef)> = vec![("what".to_owned(), Arc::new(self.what.finish()))];
        let mut add = |name: &str, array: ArrayRef| columns.push((name.to_owned(), array));
        for (name, column) in ["source", "task", "row"].into_iter().zip(&mut self.place) {
            add(name, Arc::new(column.finish()));
        }
        let names = ["id", "url", "host", "title", "canonical_url", "media_type"];
        for (name, column) in names.into_iter().zip(&mut self.texts) {
            add(name, Arc::new(column.finish()));
        }
        for (name, column) in
            ["offset", "bytes", "tokens", "text_fp", "url_fp"].into_iter().zip(&mut self.numbers)
        {
            add(name, Arc::new(column.finish()));
        }
        add("fetched_at", Arc::new(self.fetched_at.finish()));
        add("payload_sha1", Arc::new(self.payload_sha1.finish()));
        add("revisit", Arc::new(self.revisit.finish()));
        add("links", Arc::new(self.links.finish()));
        add("features", Arc::new(self.features.finish()));
        add("sketch", Arc::new(self.sketch.finish()));
        for (chunking, list) in self.chunkings.iter().zip(&mut self.chunks) {
            add(&format!("chunks_{}", chunking.replace('-', "_")), Arc::new(list.finish()));
        }
        for (name, column) in ["code", "place", "reason"].into_iter().zip(&mut self.notes) {
            add(name, Arc::new(column.finish()));
        }
        add("count", Arc::new(self.count.finish()));
        table(columns.iter().map(|(name, array)| (name.as_str(), Arc::clone(array))).collect())
    }
}

fn append(list: &mut ListBuilder<Int64Builder>, values: Option<&[u64]>) {
    match values {
        None => list.append_null(),
        Some(values) => {
            let signed: Vec<i64> = values.iter().map(|value| *value as i64).collect();
            list.values().append_values(&signed, &vec![true; signed.len()]);
            list.append(true);
        }
    }
}

/// Registered domains: (host) to (host, registered_domain).
#[pyfunction]
pub(super) fn domains(data: &Bound<'_, PyAny>) -> PyResult<MadeRows> {
    let (mut hosts, mut domains) = (StringBuilder::new(), StringBuilder::new());
    for batch in rows_of(data)? {
        let texts = Columns(&batch).texts("host").map_err(failed)?;
        for row in 0..batch.num_rows() {
            let host = texts.get(row).unwrap_or_default();
            hosts.append_value(host);
            domains.append_option(registered_domain(host));
        }
    }
    let columns: Vec<(&str, ArrayRef)> =
        vec![("host", Arc::new(hosts.finish())), ("registered_domain", Arc::new(domains.finish()))];
    Ok(MadeRows(table(columns).map_err(failed)?))
}

/// What a manifest says of Parquet files: (path), or (path, content) where the file is elsewhere,
/// to (path, rows, bytes, xxh3).
#[pyfunction]
pub(super) fn file(data: &Bound<'_, PyAny>) -> PyResult<MadeRows> {
    let (mut paths, mut sums) = (StringBuilder::new(), StringBuilder::new());
    let (mut rows, mut lengths) = (Vec::new(), Vec::new());
    for batch in rows_of(data)? {
        let columns = Columns(&batch);
        let path = columns.texts("path").map_err(failed)?;
        let content = columns.bytes("content").ok();
        for row in 0..batch.num_rows() {
            let name = path.get(row).unwrap_or_default();
            let bytes = match &content {
                Some(content) => bytes::Bytes::copy_from_slice(content.get(row).unwrap_or_default()),
                None => std::fs::read(name).map_err(|error| refused(format!("{name}: {error}")))?.into(),
            };
            paths.append_value(name);
            lengths.push(bytes.len() as i64);
            sums.append_value(format!("{:016x}", xxh3_64(&bytes)));
            let file =
                SerializedFileReader::new(bytes).map_err(|error| refused(format!("{name}: {error}")))?;
            rows.push(file.metadata().file_metadata().num_rows());
        }
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("path", Arc::new(paths.finish())),
        ("rows", longs(rows)),
        ("bytes", longs(lengths)),
        ("xxh3", Arc::new(sums.finish())),
    ];
    Ok(MadeRows(table(columns).map_err(failed)?))
}
