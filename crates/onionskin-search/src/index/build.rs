//! Making an index, within a memory budget.
//!
//! The engine takes documents through a queue of ten thousand and reckons only with what it has
//! taken out of it. Left to itself it keeps ten thousand texts in memory, whatever its budget. So a
//! document carries a claim on [`Waiting`] with it, given back when the engine has dropped the
//! document, and whoever reads the inputs waits while too many bytes are under way.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use onionskin_extract::url::site;
use onionskin_scan::ScanParams;
use onionskin_scan::texts::{TextsError, TextsParams, read_texts};
use onionskin_store::table::DocumentRow;
use onionskin_store::{Atlas, Event, MemoryBudget, Progress};
use tantivy::indexer::NoMergePolicy;
use tantivy::schema::Document;
use tantivy::{IndexSettings, IndexWriter, ReloadPolicy, TantivyDocument, TantivyError};

use super::{
    BuildParams, Built, Fields, INDEXED_TEXT, Index, STORED_TEXT, WORDS, address_key, describe, engine,
    folder_of, name_of, schema, segments_of,
};
use crate::SearchError;
use crate::overlap::{Sketch, Sketcher, SketchesWriter};
use crate::words::WordTokenizer;

/// More segments than this are joined: every word of a query is looked up in each.
pub(super) const MOST_SEGMENTS: usize = 4;
/// Memory for everything but what grows with the buffer, as measured.
const FIXED: u64 = 64 << 20;
/// The engine takes no smaller buffer.
const LEAST_BUFFER: usize = 15_000_000;
/// A larger one gains nothing.
const MOST_BUFFER: usize = 512 << 20;
/// Bytes of documents that may be under way to the engine, at least and at most.
const UNDER_WAY: (usize, usize) = (1 << 20, 64 << 20);

impl Index {
    /// Makes the index of an atlas, in place of one that is there.
    pub fn build(atlas: &Atlas, params: &BuildParams, progress: &dyn Progress) -> Result<Built, SearchError> {
        let least = BuildParams::LEAST_MEMORY;
        if params.memory < least {
            let (needed, budget) = (least.bytes(), params.memory.bytes());
            return Err(SearchError::Memory { what: "making the full-text index", needed, budget });
        }
        let folder = folder_of(atlas, params.folder.as_deref());
        let parent = folder.parent().unwrap_or(Path::new("."));
        let not_written = |path: &Path| {
            let path = path.to_owned();
            move |source| SearchError::NotWritten { path, source }
        };
        // What is there is replaced in the end, so it had better be an index.
        let is_taken = fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some());
        if is_taken && !folder.join("search.json").is_file() {
            let reason = "it has other files in it, and is left as it is".to_owned();
            return Err(SearchError::Stale { path: folder, reason });
        }
        fs::create_dir_all(parent).map_err(not_written(parent))?;
        remove_leftovers(parent, &folder);
        let work = parent.join(format!("{}.part-{}", name_of(&folder), std::process::id()));
        fs::create_dir_all(&work).map_err(not_written(&work))?;
        let finish = |built: &Built| {
            describe(atlas, &work, built.without_text)?;
            if folder.exists() {
                fs::remove_dir_all(&folder).map_err(not_written(&folder))?;
            }
            fs::rename(&work, &folder).map_err(not_written(&folder))
        };
        let built = write(atlas, params, &work, progress).and_then(|built| finish(&built).map(|()| built));
        if built.is_err() {
            let _ = fs::remove_dir_all(&work);
        }
        built
    }
}

/// What builds that were killed have left.
fn remove_leftovers(parent: &Path, folder: &Path) {
    let prefix = format!("{}.part-", name_of(folder));
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(&prefix));
        let is_alive = process.is_some_and(|process| Path::new("/proc").join(process).exists());
        if process.is_some() && !is_alive {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// How many bytes of documents are under way to the engine.
struct Waiting {
    under_way: Mutex<UnderWay>,
    less: Condvar,
    most: usize,
}

#[derive(Default)]
struct UnderWay {
    bytes: usize,
    /// Nothing was given back for long. Nobody waits until something is.
    is_stuck: bool,
}

/// A document's claim, given back when it is dropped.
struct Claim {
    waiting: Arc<Waiting>,
    bytes: usize,
}

impl Waiting {
    /// An engine that has died may keep what was under way, and says so when it is given the next
    /// document. One that writes a segment may take longer: the documents that it is given
    /// meanwhile do no harm.
    const PATIENCE: Duration = Duration::from_secs(5);

    fn new(most: usize) -> Arc<Waiting> {
        Arc::new(Waiting { under_way: Mutex::default(), less: Condvar::new(), most })
    }

    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room; one document alone always has room.
    fn claim(self: &Arc<Waiting>, bytes: usize) -> Claim {
        let full = |now: &mut UnderWay| {
            !now.is_stuck && now.bytes > 0 && now.bytes.saturating_add(bytes) > self.most
        };
        let waited = self.less.wait_timeout_while(self.under_way(), Waiting::PATIENCE, full);
        let (mut now, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        now.is_stuck |= waited.timed_out();
        now.bytes += bytes;
        Claim { waiting: Arc::clone(self), bytes }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut now = self.waiting.under_way();
        now.bytes -= self.bytes;
        now.is_stuck = false;
        self.waiting.less.notify_one();
    }
}

/// A document with its claim.
struct Charged {
    document: TantivyDocument,
    _claim: Claim,
}

impl Document for Charged {
    type Value<'a> = <TantivyDocument as Document>::Value<'a>;
    type FieldsValuesIter<'a> = <TantivyDocument as Document>::FieldsValuesIter<'a>;

    fn iter_fields_and_values(&self) -> Self::FieldsValuesIter<'_> {
        Document::iter_fields_and_values(&self.document)
    }
}

/// Why a document could not be added.
#[derive(Debug)]
enum Refused {
    Engine(TantivyError),
    Io(io::Error),
}

/// What the engine says that it cannot write is an error of writing, whatever it is wrapped in.
fn failed_writing(work: &Path, source: TantivyError) -> SearchError {
    use tantivy::directory::error::OpenWriteError;
    let io = match &source {
        TantivyError::IoError(io) => io::Error::new(io.kind(), io.to_string()),
        TantivyError::OpenWriteError(OpenWriteError::IoError { io_error, .. }) => {
            io::Error::new(io_error.kind(), io_error.to_string())
        }
        // Of some errors of the system only the words are left.
        TantivyError::InternalError(words) if words.contains("os error") => io::Error::other(words.clone()),
        _ => return engine(work, source),
    };
    SearchError::NotWritten { path: work.to_owned(), source: io }
}

fn write(
    atlas: &Atlas,
    params: &BuildParams,
    work: &Path,
    progress: &dyn Progress,
) -> Result<Built, SearchError> {
    let failed = |source: TantivyError| failed_writing(work, source);
    let (schema, fields) = schema();
    // Results are read one by one from all over the store; small blocks waste less.
    let settings = IndexSettings { docstore_blocksize: 4 << 10, ..IndexSettings::default() };
    let index =
        tantivy::Index::builder().schema(schema).settings(settings).create_in_dir(work).map_err(failed)?;
    index.tokenizers().register(WORDS, WordTokenizer);
    // Beside what there must be, words take most of the memory while they are collected, and as
    // much again while they are flushed.
    let beside = params.memory.bytes().saturating_sub(FIXED);
    let buffer = MemoryBudget::from_bytes(beside).share(1, 3).len().clamp(LEAST_BUFFER, MOST_BUFFER);
    let waiting = Waiting::new(params.memory.share(1, 16).len().clamp(UNDER_WAY.0, UNDER_WAY.1));
    let mut writer: IndexWriter<Charged> = index.writer_with_num_threads(1, buffer).map_err(failed)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    let sketches = work.join("sketches");
    let sketches_failed = |source| SearchError::NotWritten { path: sketches.clone(), source };
    let mut sketches_out = SketchesWriter::create(&sketches).map_err(sketches_failed)?;
    let mut sketcher = Sketcher::new();

    progress.event(Event::Step { name: "indexing words" });
    let total: u64 = atlas.manifest().inputs.iter().map(|input| input.bytes).sum();
    progress.event(Event::Discovered { sources: atlas.manifest().inputs.len(), bytes: total });
    let (mut documents, mut without_text, mut bytes) = (0, 0, 0);
    // Words take the other half. With less than a scan has, hardly any PDF could be read.
    let memory = params.memory.share(1, 2).max(MemoryBudget::from_bytes(ScanParams::LEAST_MEMORY));
    let texts = TextsParams { memory: Some(memory), ..params.texts.clone() };
    let read = read_texts(atlas, &texts, |row, text| {
        documents += 1;
        bytes += row.bytes;
        without_text += u64::from(text.is_none() && row.text_fp.is_some());
        if documents % 1000 == 0 {
            progress.event(Event::Scanned { documents, input_bytes: bytes, bad_records: 0 });
        }
        let sketch = text.map_or_else(Sketch::default, |text| sketcher.sketch(text));
        sketches_out.push(sketch).map_err(Refused::Io)?;
        let claim = waiting.claim(length(row, text));
        let document = Charged { document: document(&fields, row, text), _claim: claim };
        writer.add_document(document).map_err(Refused::Engine)?;
        Ok(())
    });
    let lost = match read {
        Ok(lost) => lost,
        Err(TextsError::Receiver(Refused::Engine(error))) => {
            // The queue knows only that the engine's thread is gone; the thread's own end says why.
            return Err(failed(writer.prepare_commit().err().unwrap_or(error)));
        }
        Err(TextsError::Receiver(Refused::Io(error))) => return Err(sketches_failed(error)),
        Err(TextsError::Atlas(error)) => return Err(error.into()),
        Err(TextsError::Table(error)) => return Err(error.into()),
        Err(other) => {
            return Err(SearchError::Stale { path: work.to_owned(), reason: format!("{other:?}") });
        }
    };
    sketches_out.finish().map_err(sketches_failed)?;
    progress.event(Event::Step { name: "writing the index" });
    writer.commit().map_err(failed)?;
    join_neighbours(&index, &mut writer).map_err(failed)?;
    writer.wait_merging_threads().map_err(failed)?;
    Ok(Built { documents, without_text, lost })
}

/// Joins neighbouring segments until there are few.
pub(super) fn join_neighbours<D: Document>(
    index: &tantivy::Index,
    writer: &mut IndexWriter<D>,
) -> Result<(), TantivyError> {
    let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
    let searcher = reader.searcher();
    let Some(segments) = segments_of(&searcher)? else { return Ok(()) };
    if segments.len() <= MOST_SEGMENTS {
        return Ok(());
    }
    let joined = segments.len().div_ceil(MOST_SEGMENTS);
    for neighbours in segments.chunks(joined) {
        let ids: Vec<_> =
            neighbours.iter().map(|(_, number)| searcher.segment_reader(*number).segment_id()).collect();
        if ids.len() > 1 {
            writer.merge(&ids).wait()?;
        }
    }
    writer.garbage_collect_files().wait()?;
    Ok(())
}

/// Bytes of a document in memory, about: what is copied for the words, and for showing it.
fn length(row: &DocumentRow<'_>, text: Option<&str>) -> usize {
    let text = text.map_or(0, |text| text.len().min(INDEXED_TEXT) + text.len().min(STORED_TEXT));
    let title = row.title.map_or(0, |title| 3 * title.len());
    let names = [row.url, row.id].into_iter().flatten().map(|name| 3 * name.len()).sum::<usize>();
    text + title + names + 1000
}

pub(super) fn document(fields: &Fields, row: &DocumentRow<'_>, text: Option<&str>) -> TantivyDocument {
    let mut document = TantivyDocument::default();
    document.add_u64(fields.doc, u64::from(row.doc));
    // Twice, since the title says what a page is about.
    if let Some(title) = row.title {
        document.add_text(fields.words, title);
        document.add_text(fields.words, title);
        document.add_text(fields.title, title);
    }
    if let Some(url) = row.url {
        document.add_u64(fields.address, address_key(url));
        document.add_text(fields.words, url);
        document.add_text(fields.url, url);
        // A site is found by its own name and by that of every domain above it.
        let mut name = site(url).unwrap_or_default();
        while !name.is_empty() {
            document.add_text(fields.site, name);
            name = name.split_once('.').map_or("", |(_, above)| above);
        }
    }
    if let Some(id) = row.id {
        document.add_text(fields.id, id);
    }
    if let Some(text) = text {
        document.add_text(fields.words, beginning(text, INDEXED_TEXT));
        document.add_text(fields.text, beginning(text, STORED_TEXT));
    }
    document
}

/// The beginning of a text, at most so many bytes.
pub(crate) fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// However slow who takes them is, no more than so many bytes are under way, but for one
    /// document that is larger by itself.
    #[test]
    fn documents_under_way_are_bounded() {
        let waiting = Waiting::new(100);
        let (send, receive) = mpsc::channel();
        let giving = Arc::clone(&waiting);
        let giver = std::thread::spawn(move || {
            for n in 0..200 {
                let bytes = if n == 50 { 1000 } else { 7 + n % 60 };
                send.send(giving.claim(bytes)).unwrap();
            }
        });
        let mut most = 0;
        for claim in receive {
            let under_way = waiting.under_way().bytes;
            assert!(under_way <= 100.max(claim.bytes), "{under_way}");
            most = most.max(under_way);
            std::thread::sleep(Duration::from_micros(200));
        }
        giver.join().unwrap();
        assert!(most >= 1000, "{most}");
        assert_eq!(waiting.under_way().bytes, 0);
    }
}
