//! The index: made once from the texts of an atlas, then only read.
//!
//! **One field for all words.** Title, address and text go into one field of words, the title
//! twice, so that a query of several words is an intersection of plain lists, which is what the
//! engine can skip through. **One thread, in order.** Documents are added in the order of the atlas
//! and segments are joined with their neighbours only. So the number of a document is the place of
//! its segment and its place there, nothing has to be looked up, and equal scores are always in the
//! order of the atlas, whatever the budget was.

mod build;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use onionskin_core::DocId;
use onionskin_extract::url::normalize;
use onionskin_scan::texts::{LostInput, TextsParams};
use onionskin_store::storage::checksum_file;
use onionskin_store::{Atlas, MemoryBudget, Progress, TableName};
use serde_json::{Value, json};
use tantivy::query::{EnableScoring, Query as _, TermQuery};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions, Value as _,
};
use tantivy::{DocAddress, DocSet, ReloadPolicy, Searcher, TERMINATED, TantivyDocument, TantivyError, Term};
use xxhash_rust::xxh3::xxh3_64;

use crate::SearchError;
use crate::overlap::Sketches;
use crate::words::WordTokenizer;
pub(crate) use build::beginning;

/// Raised when files or words are made in another way.
const FORMAT: u64 = 1;
/// Bytes of a text that are kept to be shown.
pub const STORED_TEXT: usize = 32 << 10;
/// Bytes of a text whose words are found. A constant, so that no answer depends on the memory that
/// an index was made with; books are shorter, and one document must not take more than the budget.
pub const INDEXED_TEXT: usize = 4 << 20;
const WORDS: &str = "words";

/// How to make an index.
#[derive(Clone, Debug)]
pub struct BuildParams {
    /// How the inputs are found and read.
    pub texts: TextsParams,
    /// Memory for what is not on disk yet; [`BuildParams::LEAST_MEMORY`] or more.
    pub memory: MemoryBudget,
    /// Where to put it; in the atlas when not given.
    pub folder: Option<PathBuf>,
}

impl BuildParams {
    /// What making an index takes at least, as measured: the process, what reads the inputs, and
    /// the engine with its smallest buffer.
    pub const LEAST_MEMORY: MemoryBudget = MemoryBudget::from_mib(96);
}

impl Default for BuildParams {
    fn default() -> BuildParams {
        BuildParams {
            texts: TextsParams::default(),
            memory: MemoryBudget::default_for_machine(),
            folder: None,
        }
    }
}

/// What was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Built {
    /// Documents.
    pub documents: u64,
    /// Documents that have no text any more: they are found by title and address alone.
    pub without_text: u64,
    /// Inputs that could not be read.
    pub lost: Vec<LostInput>,
}

/// The fields of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub doc: Field,
    pub words: Field,
    pub site: Field,
    pub address: Field,
    pub url: Field,
    pub id: Field,
    pub title: Field,
    pub text: Field,
}

fn schema() -> (Schema, Fields) {
    let mut builder = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer(WORDS)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let site = TextFieldIndexing::default()
        .set_tokenizer("raw")
        .set_fieldnorms(false)
        .set_index_option(IndexRecordOption::Basic);
    let fields = Fields {
        doc: builder.add_u64_field("doc", FAST),
        words: builder.add_text_field("words", TextOptions::default().set_indexing_options(words)),
        site: builder.add_text_field("site", TextOptions::default().set_indexing_options(site)),
        address: builder.add_u64_field("address", INDEXED),
        url: builder.add_text_field("url", STORED),
        id: builder.add_text_field("id", STORED),
        title: builder.add_text_field("title", STORED),
        text: builder.add_text_field("text", STORED),
    };
    (builder.build(), fields)
}

/// A document as the index has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredPage {
    /// Its number in the atlas.
    pub doc: DocId,
    /// Its address.
    pub url: Option<String>,
    /// Its own name.
    pub id: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The first 32 KiB of its text; `None` when the input could not be read.
    pub text: Option<String>,
}

impl StoredPage {
    /// What to call it: its title, else its address, else its name, else its number.
    pub fn name(&self) -> String {
        let given = [&self.title, &self.url, &self.id];
        let name = given.into_iter().flatten().find(|name| !name.trim().is_empty());
        name.cloned().unwrap_or_else(|| format!("document {}", self.doc))
    }
}

/// A full-text index over the documents of an atlas.
pub struct Index {
    folder: PathBuf,
    pub(crate) searcher: Searcher,
    pub(crate) fields: Fields,
    /// The first document of each segment, and the number of the segment, ascending.
    pub(crate) segments: Vec<(u32, u32)>,
    pub(crate) sketches: Sketches,
    documents: u32,
    without_text: u64,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("folder", &self.folder).field("documents", &self.documents).finish()
    }
}

/// Where an index lies.
fn folder_of(atlas: &Atlas, folder: Option<&Path>) -> PathBuf {
    folder.map_or_else(|| atlas.dir().join("search"), Path::to_owned)
}

/// What an index must have been made from: the documents of the scan, by the checksums of their
/// files.
fn key_of(atlas: &Atlas) -> Result<Value, SearchError> {
    let files = atlas.table(&TableName::Documents)?.files.iter().map(|file| format!("{:016x}", file.xxh3));
    Ok(json!({ "format": FORMAT, "documents": files.collect::<Vec<_>>() }))
}

/// The files of an index but `search.json`, each with its checksum. Queries read a file in places
/// all over it, so all of it is compared before the first.
fn files_of(folder: &Path) -> Result<Value, SearchError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| SearchError::Io { path, source }
    };
    let mut files = serde_json::Map::new();
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Locks are made by whoever opens the index.
        if name == "search.json" || name.ends_with(".lock") || !path.is_file() {
            continue;
        }
        let (sum, _) = checksum_file(&path).map_err(|error| failed(&path)(error.source))?;
        files.insert(name, Value::String(format!("{sum:016x}")));
    }
    Ok(Value::Object(files))
}

/// Writes `search.json` beside the other files of an index.
fn describe(atlas: &Atlas, folder: &Path, without_text: u64) -> Result<(), SearchError> {
    let files = files_of(folder)?;
    let mut meta = json!({ "of": key_of(atlas)?, "without_text": without_text, "files": files });
    meta["seal"] = seal_of(&meta);
    let path = folder.join("search.json");
    fs::write(&path, format!("{meta:#}\n")).map_err(|source| SearchError::NotWritten { path, source })
}

/// The checksum of what `search.json` says.
fn seal_of(meta: &Value) -> Value {
    let said = ["of", "without_text", "files"].map(|key| meta.get(key).unwrap_or(&Value::Null));
    let text = json!(said).to_string();
    json!(format!("{:016x}", xxh3_64(text.as_bytes())))
}

impl Index {
    /// Opens the index of an atlas; [`SearchError::Stale`] when there is none that fits.
    pub fn open(atlas: &Atlas, folder: Option<&Path>) -> Result<Index, SearchError> {
        let folder = folder_of(atlas, folder);
        let stale = |reason: &str| SearchError::Stale { path: folder.clone(), reason: reason.to_owned() };
        let meta = match fs::read(folder.join("search.json")) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(stale("there is no index")),
            Err(source) => return Err(SearchError::Io { path: folder.join("search.json"), source }),
        };
        let meta: Value =
            serde_json::from_slice(&meta).map_err(|_| stale("search.json is not what it should be"))?;
        if meta.get("of") != Some(&key_of(atlas)?) {
            return Err(stale("it was made from other documents, or by another version"));
        }
        if meta.get("seal") != Some(&seal_of(&meta)) {
            return Err(stale("search.json is not what was written"));
        }
        if meta.get("files") != Some(&files_of(&folder)?) {
            return Err(stale("its files are not what was written"));
        }
        let without_text = meta.get("without_text").and_then(Value::as_u64).unwrap_or(0);
        let failed = |source: TantivyError| engine(&folder, source);
        let index = tantivy::Index::open_in_dir(&folder).map_err(failed)?;
        index.tokenizers().register(WORDS, WordTokenizer);
        let (expected, fields) = schema();
        if index.schema() != expected {
            return Err(stale("it has other fields"));
        }
        let reader = index
            .reader_builder()
            .reload_policy(ReloadPolicy::Manual)
            .doc_store_cache_num_blocks(256)
            .try_into()
            .map_err(failed)?;
        let searcher = reader.searcher();
        let segments = segments_of(&searcher).map_err(failed)?;
        let rows = atlas.table(&TableName::Documents)?.rows;
        let documents =
            u32::try_from(searcher.num_docs()).ok().filter(|documents| u64::from(*documents) == rows);
        let (Some(segments), Some(documents)) = (segments, documents) else {
            return Err(stale("it has other documents than the atlas"));
        };
        let sketches = Sketches::open(&folder.join("sketches"), documents)
            .map_err(|source| SearchError::Io { path: folder.join("sketches"), source })?;
        Ok(Index { folder, searcher, fields, segments, sketches, documents, without_text })
    }

    /// Opens the index, or makes it first where there is none that fits.
    pub fn open_or_build(
        atlas: &Atlas,
        params: &BuildParams,
        progress: &dyn Progress,
    ) -> Result<(Index, Option<Built>), SearchError> {
        match Index::open(atlas, params.folder.as_deref()) {
            Ok(index) => Ok((index, None)),
            Err(error) => {
                tracing::info!(reason = %error, "the full-text index is made");
                let built = Index::build(atlas, params, progress)?;
                Ok((Index::open(atlas, params.folder.as_deref())?, Some(built)))
            }
        }
    }

    /// Documents in it.
    pub fn documents(&self) -> u32 {
        self.documents
    }

    /// Documents that are found by title and address alone, since their inputs could not be read.
    pub fn without_text(&self) -> u64 {
        self.without_text
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn failed(&self, source: TantivyError) -> SearchError {
        engine(&self.folder, source)
    }

    /// A document; `None` when there is none of this number.
    pub fn page(&self, doc: DocId) -> Result<Option<StoredPage>, SearchError> {
        let number = doc.get();
        if number >= self.documents {
            return Ok(None);
        }
        let at = self.segments.partition_point(|(first, _)| *first <= number);
        let Some((first, segment)) = at.checked_sub(1).map(|at| self.segments[at]) else { return Ok(None) };
        let stored: TantivyDocument = self
            .searcher
            .doc(DocAddress::new(segment, number - first))
            .map_err(|error| self.failed(error))?;
        let get = |field| stored.get_first(field).and_then(|value| value.as_str()).map(str::to_owned);
        let Fields { url, id, title, text, .. } = self.fields;
        Ok(Some(StoredPage { doc, url: get(url), id: get(id), title: get(title), text: get(text) }))
    }

    /// The documents with an address, ascending.
    pub fn documents_at(&self, url: &str) -> Result<Vec<DocId>, SearchError> {
        let term = Term::from_field_u64(self.fields.address, address_key(url));
        let query = TermQuery::new(term, IndexRecordOption::Basic);
        let scoring = EnableScoring::disabled_from_searcher(&self.searcher);
        let weight = query.weight(scoring).map_err(|error| self.failed(error))?;
        let mut found = Vec::new();
        for (first, segment) in &self.segments {
            let reader = self.searcher.segment_reader(*segment);
            let mut docs = weight.scorer(reader, 1.0).map_err(|error| self.failed(error))?;
            while docs.doc() != TERMINATED {
                found.push(DocId(first + docs.doc()));
                docs.advance();
            }
        }
        Ok(found)
    }
}

fn engine(folder: &Path, source: TantivyError) -> SearchError {
    SearchError::Engine { path: folder.to_owned(), source: Box::new(source) }
}

fn name_of(folder: &Path) -> String {
    folder.file_name().map_or_else(|| "search".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The one number of an address, however it is spelled.
fn address_key(url: &str) -> u64 {
    match normalize(url) {
        Some(normal) => xxh3_64(normal.as_bytes()),
        None => xxh3_64(url.as_bytes()),
    }
}

/// The first document of every segment, ascending; `None` when segments are not ranges of
/// documents.
fn segments_of(searcher: &Searcher) -> Result<Option<Vec<(u32, u32)>>, TantivyError> {
    let mut segments = Vec::new();
    for (number, reader) in (0..).zip(searcher.segment_readers()) {
        if reader.max_doc() == 0 {
            continue;
        }
        let docs = reader.fast_fields().u64("doc")?;
        let (first, last) = (docs.first(0), docs.first(reader.max_doc() - 1));
        let (Some(first), Some(last)) = (first, last) else { return Ok(None) };
        let is_range = last.checked_sub(first) == Some(u64::from(reader.max_doc()) - 1);
        match u32::try_from(first) {
            Ok(first) if is_range && reader.num_docs() == reader.max_doc() => segments.push((first, number)),
            _ => return Ok(None),
        }
    }
    segments.sort_unstable();
    let mut next = 0;
    for (first, number) in &segments {
        if *first != next {
            return Ok(None);
        }
        next += searcher.segment_reader(*number).max_doc();
    }
    Ok(Some(segments))
}

#[cfg(test)]
mod tests;
