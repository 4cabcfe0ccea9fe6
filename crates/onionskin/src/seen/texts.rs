//! The texts of documents in an index, read again from the inputs of the atlas that they were
//! added from.
//!
//! An index keeps minima and no texts, so the resemblance in an answer is an estimate. The atlas
//! knows the source and offset of each of its documents. With both texts the resemblance is exact:
//! that of their sets of shingles.

use std::collections::HashMap;
use std::path::PathBuf;

use onionskin_core::{Analyzer, FingerprintSet, Recipe, RecipeError};
use onionskin_corpus::{Options, Scratch, Source};
use onionskin_scan::inputs::{limit_tools, reading_options, reopen_unchanged};
use onionskin_seen::intake::{Answer, Status};
use onionskin_seen::{Method, Params, SeenError};
use onionskin_store::manifest::InputEntry;
use onionskin_store::table::document;
use onionskin_store::{Atlas, AtlasError, MemoryBudget, TableError, TableName};
use xxhash_rust::xxh3::xxh3_64;

/// Why the documents of an atlas cannot be compared with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoredTextsError {
    /// The atlas cannot be used.
    #[error(transparent)]
    Atlas(#[from] Box<AtlasError>),
    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] Box<TableError>),
    /// The recipe of the atlas is of a newer version.
    #[error("the recipe of the atlas: {0}")]
    Recipe(#[from] RecipeError),
    /// The index was not made from such an atlas.
    #[error(transparent)]
    Other(#[from] SeenError),
    /// The places of all documents do not fit.
    #[error("the places of {documents} documents need {needed} of memory, and there are {given}")]
    TooLittleMemory {
        /// Documents of the atlas.
        documents: u64,
        /// What they need.
        needed: MemoryBudget,
        /// What there is for them.
        given: MemoryBudget,
    },
}

/// Where a text is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The hash of the document's name.
    name: u64,
    text_fp: u64,
    offset: u64,
    /// Its input in the manifest.
    input: u32,
}

/// Finds the texts of documents by their names. Takes 32 bytes per document of the atlas.
pub struct StoredTexts {
    dir: PathBuf,
    inputs: Vec<InputEntry>,
    /// In order.
    places: Vec<Place>,
    /// Inputs that were opened, or why they cannot be.
    sources: HashMap<u32, Result<Source, String>>,
    options: Options,
    scratch: Scratch,
    analyzer: Analyzer,
    new: FingerprintSet,
    stored: FingerprintSet,
}

/// Why a resemblance stays an estimate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unverified(String);

impl StoredTexts {
    /// Reads where the documents of an atlas are. `pdf_worker` is the command that reads PDF files
    /// apart from this process; see `ExtractOptions::pdf_worker`.
    ///
    /// # Errors
    ///
    /// When the atlas cannot be read, is not of the recipe of the index, or is too large for half
    /// of the memory.
    pub fn open(
        atlas: &Atlas,
        params: &Params,
        memory: MemoryBudget,
        pdf_worker: Vec<String>,
    ) -> Result<StoredTexts, StoredTextsError> {
        let recipe: Recipe = atlas.manifest().recipe.parse()?;
        params.ensure_same_features(&recipe, atlas.manifest().seed)?;
        let documents = atlas.rows(&TableName::Documents);
        let needed = MemoryBudget::from_bytes(documents.saturating_mul(size_of::<Place>() as u64));
        let given = memory.share(1, 2);
        if needed > given {
            return Err(StoredTextsError::TooLittleMemory { documents, needed, given });
        }
        let inputs = atlas.manifest().inputs.clone();
        let mut options = reading_options(atlas).map_err(Box::new)?;
        options.extract.pdf_worker = pdf_worker;
        limit_tools(&mut options, memory);
        Ok(StoredTexts {
            dir: atlas.dir().to_owned(),
            places: places(atlas, &inputs)?,
            inputs,
            sources: HashMap::new(),
            scratch: Scratch::new(&options),
            options,
            analyzer: Analyzer::new(&recipe.chunks_alone(), 0),
            new: FingerprintSet::default(),
            stored: FingerprintSet::default(),
        })
    }

    /// Replaces the estimate in an answer by the exact resemblance of a text to that of the
    /// document which it duplicates. Only near-duplicates have an estimate.
    ///
    /// # Errors
    ///
    /// When that text cannot be read again; the estimate stays.
    pub fn verify(&mut self, answer: &mut Answer, text: &str) -> Result<(), Unverified> {
        let of = match &mut answer.of {
            Some(of) if answer.status == Status::Near => of,
            _ => return Ok(()),
        };
        of.resemblance = self.resemblance(&of.name, text).map_err(Unverified)?;
        of.method = Method::Text;
        Ok(())
    }

    fn resemblance(&mut self, name: &str, text: &str) -> Result<f64, String> {
        let Place { input, offset, text_fp, .. } = self.place(name)?;
        let StoredTexts { inputs, sources, options, scratch, analyzer, new, stored, .. } = self;
        let entry = inputs.get(input as usize).ok_or("the atlas does not list its input")?;
        let source = sources.entry(input).or_insert_with(|| {
            reopen_unchanged(entry, None, options)
                .map_err(|changed| format!("{}: {}", changed.input, changed.reason))
        });
        let source = source.as_ref().map_err(Clone::clone)?;
        new.hold(analyzer.analyze(text).main_chunks());
        let mut is_there = false;
        let read = source.read_at(offset, options, scratch, &mut |document| {
            let analysis = analyzer.analyze(document.text);
            if analysis.text_fp().is_some_and(|fingerprint| fingerprint.0 == text_fp) {
                is_there = true;
                stored.hold(analysis.main_chunks());
            }
        });
        read.map_err(|error| error.to_string())?;
        if !is_there {
            return Err(format!("{}: the text of {name} is not what was scanned", source.place(offset)));
        }
        let shared = stored.members().iter().filter(|chunk| new.place(**chunk).is_some()).count();
        let all = new.members().len() + stored.members().len() - shared;
        Ok(shared as f64 / all.max(1) as f64)
    }

    fn place(&self, name: &str) -> Result<Place, String> {
        let hash = xxh3_64(name.as_bytes());
        let from = self.places.partition_point(|place| place.name < hash);
        let found = self.places[from..].iter().take_while(|place| place.name == hash);
        let (mut found, dir) = (found, self.dir.display());
        let Some(first) = found.next() else { return Err(format!("{dir} has no document called {name}")) };
        if found.any(|other| other.text_fp != first.text_fp) {
            return Err(format!("{dir} has several documents called {name}"));
        }
        Ok(*first)
    }
}

type Columns =
    (document::Doc, document::Id, document::Url, document::Source, document::Offset, document::TextFp);

/// The places of documents with a text, by the names that an index knows them by.
fn places(atlas: &Atlas, inputs: &[InputEntry]) -> Result<Vec<Place>, StoredTextsError> {
    let mut documents = atlas.documents().map_err(Box::new)?.select::<Columns>();
    let (mut places, mut at) = (Vec::new(), 0);
    while let Some(batch) = documents.next_batch().map_err(Box::new)? {
        for row in 0..batch.len() {
            let (doc, id, url, source, offset, text_fp) = batch.row(row);
            let Some(text_fp) = text_fp else { continue };
            let name = id
                .or(url)
                .map_or_else(|| xxh3_64(format!("doc:{doc}").as_bytes()), |name| xxh3_64(name.as_bytes()));
            // Documents are in the order of the inputs.
            if inputs.get(at).is_none_or(|input| input.name != source) {
                at = inputs.iter().position(|input| input.name == source).unwrap_or(inputs.len());
            }
            places.push(Place { name, text_fp, offset, input: at as u32 });
        }
    }
    places.sort_unstable();
    Ok(places)
}
