//! The chunk sets of documents, in ascending order of document, as often as they are wanted.

use std::sync::Arc;

use onionskin_core::{Chunking, DocId, FingerprintSet};
use onionskin_store::Atlas;
use onionskin_store::schema::{ChunkingName, Table};
use onionskin_store::table::{ChunksReader, Input};

use crate::SimilarError;

/// One bit a document.
#[derive(Clone, Debug, Default)]
pub struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// All false, for `n` documents.
    pub fn new(n: u64) -> Bits {
        Bits { words: vec![0; n.div_ceil(64) as usize] }
    }

    /// Makes the bit of a document true; grows when needed.
    #[inline]
    pub fn set(&mut self, doc: DocId) {
        let word = doc.index() / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (doc.get() % 64);
    }

    /// The bit of a document; false beyond the end.
    #[inline]
    pub fn get(&self, doc: DocId) -> bool {
        self.words.get(doc.index() / 64).is_some_and(|word| word >> (doc.get() % 64) & 1 == 1)
    }

    /// How many are true.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// The chunk sets of all documents but those that are folded away.
#[derive(Clone, Debug)]
pub struct ChunkSets {
    source: Source,
    folded: Arc<Bits>,
    distinct: bool,
}

#[derive(Clone, Debug)]
enum Source {
    Files(ChunkingName, Vec<Input>),
    Memory(Arc<Vec<(DocId, Vec<u64>)>>),
    Other(Arc<dyn SetSource>),
}

/// Sets that come from elsewhere than a table: texts that are read and cut again.
pub trait SetSource: std::fmt::Debug + Send + Sync {
    /// Reads from the beginning.
    fn open(&self) -> Result<Box<dyn SetCursor>, SimilarError>;
}

/// One pass over such sets.
pub trait SetCursor {
    /// Goes to the next document that is wanted, in ascending order; `None` at the end.
    fn advance(&mut self, wanted: &dyn Fn(DocId) -> bool) -> Result<Option<DocId>, SimilarError>;
    /// The chunks of the document it went to, each as often as it likes.
    fn chunks(&self) -> &[u64];
}

impl ChunkSets {
    /// The chunks of a chunking of an atlas, each once a document.
    pub fn of_atlas(atlas: &Atlas, chunking: &ChunkingName) -> Result<ChunkSets, SimilarError> {
        let inputs = atlas.inputs(&Table::Chunks(chunking.clone()).name())?;
        let source = Source::Files(chunking.clone(), inputs);
        Ok(ChunkSets { source, folded: Arc::default(), distinct: !are_sets(chunking) })
    }

    /// Sets that are given, in ascending order of document. For tests and small things.
    pub fn in_memory(documents: Vec<(DocId, Vec<u64>)>) -> ChunkSets {
        debug_assert!(documents.is_sorted_by(|a, b| a.0 < b.0));
        ChunkSets { source: Source::Memory(Arc::new(documents)), folded: Arc::default(), distinct: true }
    }

    /// Sets from elsewhere. Each chunk is taken once a document.
    pub fn from_source(source: Arc<dyn SetSource>) -> ChunkSets {
        ChunkSets { source: Source::Other(source), folded: Arc::default(), distinct: true }
    }

    /// The same without these documents.
    pub fn without(self, folded: Arc<Bits>) -> ChunkSets {
        ChunkSets { folded, ..self }
    }

    /// The same with chunks as often as they occur.
    pub fn with_repeats(self) -> ChunkSets {
        ChunkSets { distinct: false, ..self }
    }

    /// Whether chunks come more than once out of [`SetReader::next_with_repeats`].
    pub(crate) fn may_repeat(&self) -> bool {
        self.distinct
    }

    /// Reads from the beginning.
    pub fn reader(&self) -> SetReader {
        let cursor = match &self.source {
            Source::Files(chunking, inputs) => {
                Cursor::Table(Box::new(ChunksReader::new(chunking.clone(), inputs.clone())))
            }
            Source::Memory(documents) => Cursor::Memory(Arc::clone(documents), 0),
            Source::Other(source) => Cursor::Unopened(Arc::clone(source)),
        };
        SetReader {
            cursor,
            folded: Arc::clone(&self.folded),
            distinct: self.distinct,
            seen: FingerprintSet::default(),
            set: Vec::new(),
        }
    }
}

/// Shingles are sets already; other chunks come as often as they occur.
fn are_sets(chunking: &ChunkingName) -> bool {
    matches!(chunking.chunking(), Some(Chunking::Shingles(..)))
}

enum Cursor {
    Table(Box<ChunksReader>),
    Memory(Arc<Vec<(DocId, Vec<u64>)>>, usize),
    Unopened(Arc<dyn SetSource>),
    Other(Box<dyn SetCursor>),
}

/// Gives one document after the other.
pub struct SetReader {
    cursor: Cursor,
    folded: Arc<Bits>,
    distinct: bool,
    seen: FingerprintSet,
    set: Vec<u64>,
}

impl SetReader {
    /// The next document and its chunks, in order of appearance, never none; `None` at the end.
    #[expect(clippy::should_implement_trait, reason = "it lends what it gives")]
    pub fn next(&mut self) -> Result<Option<(DocId, &[u64])>, SimilarError> {
        self.next_of(|_| true)
    }

    /// The next document that is wanted. The others cost next to nothing.
    pub fn next_of(
        &mut self,
        wanted: impl Fn(DocId) -> bool,
    ) -> Result<Option<(DocId, &[u64])>, SimilarError> {
        let Some(doc) = self.advance(wanted)? else { return Ok(None) };
        if !self.distinct {
            return Ok(Some((doc, self.chunks())));
        }
        let mut set = std::mem::take(&mut self.set);
        set.clear();
        set.extend_from_slice(self.chunks());
        self.seen.retain_first(&mut set);
        self.set = set;
        Ok(Some((doc, &self.set)))
    }

    /// The same, for whoever makes a set of the chunks in any case: they may repeat.
    pub fn next_with_repeats(
        &mut self,
        wanted: impl Fn(DocId) -> bool,
    ) -> Result<Option<(DocId, &[u64])>, SimilarError> {
        let doc = self.advance(wanted)?;
        Ok(doc.map(|doc| (doc, self.chunks())))
    }

    fn advance(&mut self, wanted: impl Fn(DocId) -> bool) -> Result<Option<DocId>, SimilarError> {
        if let Cursor::Unopened(source) = &self.cursor {
            self.cursor = Cursor::Other(source.open()?);
        }
        loop {
            let doc = match &mut self.cursor {
                Cursor::Unopened(_) => None,
                Cursor::Other(cursor) => {
                    let folded = &self.folded;
                    cursor.advance(&|doc| !folded.get(doc) && wanted(doc))?
                }
                Cursor::Table(reader) => reader.advance()?,
                Cursor::Memory(documents, at) => {
                    *at += 1;
                    documents.get(*at - 1).map(|(doc, _)| *doc)
                }
            };
            let Some(doc) = doc else { return Ok(None) };
            if !self.folded.get(doc) && wanted(doc) && !self.chunks().is_empty() {
                return Ok(Some(doc));
            }
        }
    }

    fn chunks(&self) -> &[u64] {
        match &self.cursor {
            Cursor::Table(reader) => reader.group(),
            Cursor::Memory(documents, at) => &documents[*at - 1].1,
            Cursor::Unopened(_) => &[],
            Cursor::Other(cursor) => cursor.chunks(),
        }
    }
}
