//! Why two pages are alike, or not: every number that a search for copies goes by, and the passages
//! that they share.
//!
//! A pair in a table is a claim. The naive way to check it is to open both pages and read. Here the
//! claim is taken apart: what each chunking counts, what sketch and features would have guessed,
//! what the tables of pairs and clusters say; and then the two texts are read again from the inputs
//! by source and offset, tokenised as the scan did it, and laid side by side with what both have
//! and what only one of them has.
//!
//! Only the row groups that hold the two documents are read of the large tables, so an explanation
//! takes well under a second for documents given by number; an address or an id costs one pass over
//! `documents`, a table of clusters one pass over that.

mod cluster;
mod collection;
mod compare;
mod fields;
mod find;
mod numbers;
mod runs;
mod text;
mod words;

use std::path::{Path, PathBuf};

use onionskin_core::sketch::Estimate;
use onionskin_core::{ClusterId, CollectionId, DocId, SiteId};
use onionskin_core::{FeatureFilter, Recipe, RecipeError};
use onionskin_corpus::Scratch;
use onionskin_scan::inputs::{limit_tools, reading_options};
use onionskin_store::cancel::{self, Cancelled};
use onionskin_store::table::{ClusterRow, DocumentRow, PairRow};
use onionskin_store::{Atlas, AtlasError, MemoryBudget, TableError, TableName};

pub use cluster::{ClusterMember, explain_cluster};
pub use collection::{CollectionExplanation, ReplicaDifferences, explain_collection};
pub use compare::{Block, Comparison, Passage, Shortened, Side, Stretch};
pub use fields::{DocumentFields, FeatureFields, Numbers, OverlapFields, PassageFields, SketchFields};
pub use find::{BadDocRef, DocRef};
pub use text::TextError;

use words::Cutter;

/// What to explain, and with what.
#[derive(Clone, Debug)]
pub struct ExplainParams {
    /// The folder of the atlas.
    pub atlas: PathBuf,
    /// One document.
    pub a: DocRef,
    /// The other.
    pub b: DocRef,
    /// Where inputs with relative names are; the current directory when not given.
    pub base: Option<PathBuf>,
    /// The command that reads PDF files apart from this process; see `ExtractOptions::pdf_worker`.
    pub pdf_worker: Vec<String>,
    /// What it may cost; nothing is too much when not given.
    pub limits: Option<ExplainLimits>,
}

/// What an explanation may cost, where others wait. Texts beyond it are not compared, and not even
/// read: the atlas says how long they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainLimits {
    /// Words of both texts together.
    pub words: u64,
    /// Bytes of a document in its input, decompressed, and of its text.
    pub bytes: u64,
    /// Seconds for each document that is read by a program.
    pub tool_seconds: u32,
}

impl ExplainLimits {
    /// Bytes of memory for each word, at most: tokens and their places, pairs of places, passages,
    /// and the chunks that are counted anew.
    const EACH_WORD: u64 = 768;
    /// Bytes of memory for each byte of a document, at most: as it is stored, decoded, taken apart,
    /// and its text.
    const EACH_BYTE: u64 = 24;
    /// Bytes of a document for each word: what pages have around their words.
    const BYTES_A_WORD: u64 = 24;

    /// For so many words of both texts together; a minute for a program that reads one of them.
    pub const fn of_words(words: u64) -> ExplainLimits {
        let bytes = words.saturating_mul(ExplainLimits::BYTES_A_WORD);
        ExplainLimits { words, bytes, tool_seconds: 60 }
    }

    /// The memory that an explanation within these limits takes at most.
    pub const fn memory(&self) -> u64 {
        let words = self.words.saturating_mul(ExplainLimits::EACH_WORD);
        words.saturating_add(self.bytes.saturating_mul(ExplainLimits::EACH_BYTE))
    }

    /// The most words that fit into some memory.
    pub const fn within(memory: u64) -> ExplainLimits {
        let each = ExplainLimits::EACH_WORD + ExplainLimits::BYTES_A_WORD * ExplainLimits::EACH_BYTE;
        ExplainLimits::of_words(memory / each)
    }

    /// Whether two documents are within the limits, as far as the atlas knows them.
    fn allow(&self, facts: [&DocumentFacts; 2]) -> Result<(), TextError> {
        self.allow_words(facts[0].tokens.saturating_add(facts[1].tokens))?;
        let (most, large) = (self.bytes, facts.into_iter().find(|facts| facts.bytes > self.bytes));
        large.map_or(Ok(()), |facts| {
            let (doc, bytes) = (facts.doc, facts.bytes);
            Err(TextError::TooLarge { doc, bytes, most })
        })
    }

    /// A record has more around its document: headers, other fields.
    fn record_bytes(&self) -> u64 {
        self.bytes.saturating_mul(2).saturating_add(64 << 10)
    }

    fn allow_words(&self, words: u64) -> Result<(), TextError> {
        let most = self.words;
        if words > most { Err(TextError::TooLong { words, most }) } else { Ok(()) }
    }
}

/// Why there is no explanation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExplainError {
    /// The atlas cannot be used.
    #[error(transparent)]
    Atlas(#[from] Box<AtlasError>),
    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] Box<TableError>),
    /// Nobody wants to know any more.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
    /// The recipe of the atlas is not one.
    #[error("the recipe of the atlas: {0}")]
    Recipe(#[from] RecipeError),
    /// No document is called this.
    #[error("no document is called {what}; there are {documents}{}", near_hint(near))]
    NotFound {
        /// What was wanted.
        what: String,
        /// Documents of the atlas.
        documents: u64,
        /// Addresses that are spelled nearly like it.
        near: Vec<String>,
    },
    /// No cluster has this number.
    #[error("there is no cluster {cluster}; there are {clusters}")]
    NoCluster {
        /// The number.
        cluster: ClusterId,
        /// Clusters of the atlas.
        clusters: u64,
    },
    /// No collection has this number.
    #[error("there is no collection {collection}; there are {collections}")]
    NoCollection {
        /// The number.
        collection: CollectionId,
        /// Collections of the atlas.
        collections: u64,
    },
}

fn near_hint(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("\nhint: did you mean {}?", near.join(", or ")) }
}

onionskin_store::boxed_sources!(ExplainError: Atlas(AtlasError), Table(TableError));

/// A document, as the atlas knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DocumentFacts {
    /// Its number.
    pub doc: DocId,
    /// Documents that have the name it was called by; the first is taken.
    pub same_name: u64,
    /// Its own name.
    pub id: Option<String>,
    /// Its address.
    pub url: Option<String>,
    /// Number of its site.
    pub site: Option<SiteId>,
    /// Its host.
    pub host: Option<String>,
    /// The registered domain of its host.
    pub domain: Option<String>,
    /// The input it came from.
    pub source: String,
    /// What the input is made of, as in the manifest.
    pub format: Option<String>,
    /// Where in the input: a byte, a row of Parquet, the number of a file.
    pub offset: u64,
    /// The media type of its payload.
    pub media_type: String,
    /// Length of the payload.
    pub bytes: u64,
    /// Words.
    pub tokens: u64,
    /// Its title.
    pub title: Option<String>,
    /// When it was fetched: microseconds since 1970, UTC.
    pub fetched_at: Option<i64>,
    /// SHA-1 of the payload.
    pub payload_sha1: Option<[u8; 20]>,
    /// Fingerprint of the canonical text; `None` when it is empty.
    pub text_fp: Option<u64>,
}

impl DocumentFacts {
    fn new(row: &DocumentRow<'_>, same_name: u64) -> DocumentFacts {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        DocumentFacts {
            doc: row.doc,
            same_name,
            id: owned(row.id),
            url: owned(row.url),
            site: row.site,
            source: row.source.to_owned(),
            offset: row.offset,
            media_type: row.media_type.to_owned(),
            bytes: row.bytes,
            tokens: row.tokens,
            title: owned(row.title),
            fetched_at: row.fetched_at,
            payload_sha1: row.payload_sha1,
            text_fp: row.text_fp,
            ..DocumentFacts::default()
        }
    }

    /// Its place in the input, spelled for people.
    pub fn place(&self) -> String {
        match self.format.as_deref() {
            Some("tree") => match &self.id {
                Some(id) if *id != self.source => format!("{}, file {id}", self.source),
                _ => self.source.clone(),
            },
            Some("parquet") => format!("{}, row {}", self.source, self.offset),
            _ => format!("{}, byte {}", self.source, self.offset),
        }
    }
}

/// What two documents share in one chunking, as sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The chunking, as in the recipe.
    pub chunking: String,
    /// Whether sketches and features are made of it.
    pub is_main: bool,
    /// Different chunks of the first document.
    pub size_a: u64,
    /// Different chunks of the second.
    pub size_b: u64,
    /// Chunks that both have.
    pub shared: u64,
    /// Counted in the texts, since the scan did not keep these chunks.
    pub from_text: bool,
}

impl Overlap {
    /// |A∩B| / |A∪B|.
    pub fn resemblance(&self) -> f64 {
        share(self.shared, self.size_a + self.size_b - self.shared.min(self.size_b))
    }

    /// |A∩B| / |A|.
    pub fn containment_a(&self) -> f64 {
        share(self.shared, self.size_a)
    }

    /// |A∩B| / |B|.
    pub fn containment_b(&self) -> f64 {
        share(self.shared, self.size_b)
    }
}

fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// What the sketches say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SketchEvidence {
    /// The resemblance they estimate.
    pub estimate: Estimate,
    /// Numbers in a sketch.
    pub length: usize,
}

/// What the features say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureEvidence {
    /// Features that agree.
    pub equal: usize,
    /// How many there are, and how many make two documents candidates: as the last search had it,
    /// or else the recipe.
    pub filter: FeatureFilter,
}

/// Two documents and everything that speaks for or against their being copies.
#[derive(Debug)]
pub struct Explanation {
    /// One document.
    pub a: DocumentFacts,
    /// The other.
    pub b: DocumentFacts,
    /// The recipe of the scan.
    pub recipe: String,
    /// What they share, the main chunking first.
    pub overlaps: Vec<Overlap>,
    /// What their sketches say, where those are kept and neither document is empty.
    pub sketch: Option<SketchEvidence>,
    /// What their features say, likewise.
    pub features: Option<FeatureEvidence>,
    /// Whether the payloads are equal, by their digests, or by the texts where they are all there
    /// is; `None` when neither is known.
    pub payload_equal: Option<bool>,
    /// Whether the canonical texts are equal; `None` when one is empty.
    pub text_equal: Option<bool>,
    /// Whether they are on one site; `None` when one has none.
    pub same_site: Option<bool>,
    /// Whether their hosts belong to one registered domain; `None` when one has none.
    pub same_domain: Option<bool>,
    /// Whether the atlas has pairs.
    pub has_pairs: bool,
    /// The row of `pairs`, where there is one.
    pub pair: Option<PairRow>,
    /// Whether the atlas has clusters.
    pub has_clusters: bool,
    /// The cluster of each, where it is in one.
    pub clusters: [Option<ClusterRow>; 2],
    /// The texts, or why they cannot be shown.
    pub texts: Result<Texts, TextError>,
}

/// The texts of both, read again.
#[derive(Debug)]
pub struct Texts {
    /// What they share and what they do not.
    pub comparison: Comparison,
    /// Which of the two has another text now than when it was scanned.
    pub changed: [bool; 2],
}

/// Explains two documents.
pub fn explain(params: &ExplainParams) -> Result<Explanation, ExplainError> {
    explain_in(&Atlas::open(&params.atlas)?, params)
}

/// The same, in an atlas that is open already; the folder in `params` is not looked at. An atlas
/// that is opened for each question compares every file that it reads with its checksum each time.
pub fn explain_in(atlas: &Atlas, params: &ExplainParams) -> Result<Explanation, ExplainError> {
    let recipe: Recipe = atlas.manifest().recipe.parse()?;
    let found = find::find_documents(atlas, &[params.a.clone(), params.b.clone()])?;
    let facts = |(doc, same_name): (DocId, u64)| document_facts(atlas, doc, same_name);
    let [a, b] = [facts(found[0])?, facts(found[1])?];

    let docs = [a.doc, b.doc];
    let allowed = params.limits.map_or(Ok(()), |limits| limits.allow([&a, &b]));
    // Chunks of a text are as many as its words.
    let mut overlaps = match allowed {
        Ok(()) => numbers::overlaps(atlas, &recipe, docs)?,
        Err(_) => Vec::new(),
    };
    let texts = allowed.and_then(|()| read_texts(params, atlas, &recipe, [&a, &b]));
    cancel::check()?;
    if let Ok(texts) = &texts {
        let Comparison { text_a, text_b, .. } = &texts.comparison;
        overlaps.extend(numbers::overlaps_of_texts(atlas, &recipe, text_a, text_b)?);
    }
    overlaps.sort_by_key(|overlap| !overlap.is_main);
    Ok(Explanation {
        recipe: recipe.to_string(),
        overlaps,
        sketch: numbers::sketches(atlas, &recipe, docs)?,
        features: numbers::features(atlas, &recipe, docs)?,
        payload_equal: payload_equal(&a, &b, &texts),
        text_equal: a.text_fp.zip(b.text_fp).map(|(a, b)| a == b),
        same_site: a.site.zip(b.site).map(|(a, b)| a == b),
        same_domain: a.domain.as_ref().zip(b.domain.as_ref()).map(|(a, b)| a == b),
        has_pairs: atlas.has(&TableName::Pairs),
        pair: numbers::pair(atlas, docs)?,
        has_clusters: atlas.has(&TableName::Clusters),
        clusters: numbers::clusters(atlas, docs)?,
        texts,
        a,
        b,
    })
}

/// A document and the cluster it is in.
#[derive(Clone, Debug, PartialEq)]
pub struct DocumentExplanation {
    /// The document.
    pub document: DocumentFacts,
    /// Whether the atlas has clusters.
    pub has_clusters: bool,
    /// Its row of `clusters`, where it is in one.
    pub cluster: Option<ClusterRow>,
}

/// Finds a document and its cluster.
pub fn explain_document(atlas: &Atlas, name: &DocRef) -> Result<DocumentExplanation, ExplainError> {
    let (doc, same_name) = find::find_documents(atlas, std::slice::from_ref(name))?[0];
    let [cluster, _] = numbers::clusters(atlas, [doc, doc])?;
    Ok(DocumentExplanation {
        document: document_facts(atlas, doc, same_name)?,
        has_clusters: atlas.has(&TableName::Clusters),
        cluster,
    })
}

fn payload_equal(a: &DocumentFacts, b: &DocumentFacts, texts: &Result<Texts, TextError>) -> Option<bool> {
    match (a.payload_sha1, b.payload_sha1) {
        (Some(a), Some(b)) => Some(a == b),
        // Records without a digest are nothing but a text, if the text is what it was.
        (None, None) => match texts {
            Ok(Texts { comparison, changed: [false, false] }) => Some(comparison.text_a == comparison.text_b),
            _ => None,
        },
        _ => None,
    }
}

/// What the atlas knows of a document; `same_name` is kept as it is given.
pub fn document_facts(atlas: &Atlas, doc: DocId, same_name: u64) -> Result<DocumentFacts, ExplainError> {
    let mut found = None;
    for batch in atlas.documents()?.within(doc..=doc) {
        let batch = batch?;
        found = batch.rows().find(|row| row.doc == doc).map(|row| DocumentFacts::new(&row, same_name));
        if found.is_some() {
            break;
        }
    }
    let documents = atlas.table(&TableName::Documents)?.rows;
    let missing = || ExplainError::NotFound { what: format!("doc:{doc}"), documents, near: vec![] };
    let mut facts = found.ok_or_else(missing)?;
    let inputs = &atlas.manifest().inputs;
    facts.format = inputs.iter().find(|input| input.name == facts.source).map(|input| input.format.clone());
    if let Some(site) = facts.site
        && atlas.has(&TableName::Sites)
    {
        for batch in atlas.sites()?.within(site..=site) {
            if let Some(row) = batch?.rows().find(|row| row.site == site) {
                facts.host = Some(row.host.to_owned());
                facts.domain = row.registered_domain.map(str::to_owned);
                break;
            }
        }
    }
    Ok(facts)
}

/// With less hardly any PDF can be read; a scan gives it with the least memory, too.
const LEAST_TOOL_BYTES: u64 = 32 << 20;

fn read_texts(
    params: &ExplainParams,
    atlas: &Atlas,
    recipe: &Recipe,
    facts: [&DocumentFacts; 2],
) -> Result<Texts, TextError> {
    let mut options = reading_options(atlas).map_err(Box::new)?;
    options.extract.pdf_worker.clone_from(&params.pdf_worker);
    let limits = params.limits.as_ref();
    limit_tools(&mut options, MemoryBudget::default_for_machine());
    if let Some(limits) = limits {
        let extract = &mut options.extract;
        // Before there are texts to compare, the program that reads one has their memory.
        extract.tool_memory_bytes = extract.tool_memory_bytes.min(limits.memory().max(LEAST_TOOL_BYTES));
        extract.tool_seconds = extract.tool_seconds.min(limits.tool_seconds);
        options.max_record_bytes = options.max_record_bytes.min(limits.record_bytes());
        options.extract.max_text_bytes = options.extract.max_text_bytes.min(limits.bytes);
    }
    let mut scratch = Scratch::new(&options);
    let base: Option<&Path> = params.base.as_deref();
    let mut read = |facts| text::read_text(facts, base, &options, &mut scratch);
    let (text_a, text_b) = (read(facts[0])?, read(facts[1])?);
    cancel::check()?;
    let mut cutter = Cutter::new(recipe);
    let (a, b) = (cutter.cut(&text_a), cutter.cut(&text_b));
    // The inputs may have other texts now than those that the atlas knows.
    limits.map_or(Ok(()), |limits| limits.allow_words(a.len() as u64 + b.len() as u64))?;
    cancel::check()?;
    let changed = [a.text_fp(recipe) != facts[0].text_fp, b.text_fp(recipe) != facts[1].text_fp];
    Ok(Texts { comparison: Comparison::of_words(text_a, text_b, a, b, recipe, limits), changed })
}

#[cfg(test)]
mod tests;
