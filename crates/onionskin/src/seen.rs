//! The online filter, joined with what makes features: texts as they come, and atlases in bulk.
//!
//! The index itself is [`onionskin_seen`], which knows numbers only. Here are the two ways to get them: [`TextFeatures`] makes them of
//! texts, several threads at a time and in order, and [`AtlasDocuments`] reads them from an atlas, where the scan has left them.

use std::path::PathBuf;

use onionskin_core::{Analyzer, Recipe, RecipeError};
pub use onionskin_seen::{
    Document, Finding, Match, Options, Outcome, Params, Probe, Reader, Repair, Seen, SeenError, SharedReader,
    Stats, Verification, repair, verify,
};
use onionskin_store::table::{DocumentBatch, DocumentsReader, FeaturesReader, SketchesReader};
use onionskin_store::{Atlas, AtlasError, TableError, TableName};

/// What an index needs to know of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// The fingerprint of the canonical text; `None` for a document without words, which is never seen.
    pub text_fp: Option<u64>,
    /// Its features; none for a document without words.
    pub features: Vec<u64>,
    /// Its minima, for an index that keeps sketches; else none.
    pub sketch: Vec<u32>,
}

impl Features {
    /// As it is looked for; `None` for a document without words.
    pub fn probe(&self) -> Option<Probe<'_>> {
        self.text_fp.map(|text_fp| Probe::new(text_fp, &self.features).with_sketch(&self.sketch))
    }
}

/// Makes features of texts by the recipe of an index.
pub struct TextFeatures {
    analyzers: Vec<Analyzer>,
    sketches: bool,
}

impl TextFeatures {
    /// With this many threads, one at least.
    pub fn new(params: &Params, threads: usize) -> TextFeatures {
        let analyzers = (0..threads.max(1)).map(|_| Analyzer::new(&params.recipe, params.seed)).collect();
        TextFeatures { analyzers, sketches: params.sketches }
    }

    /// The features of each text, in order.
    pub fn of<T: AsRef<str> + Sync>(&mut self, texts: &[T]) -> Vec<Features> {
        let mut out = vec![Features::default(); texts.len()];
        let share = texts.len().div_ceil(self.analyzers.len()).max(1);
        let sketches = self.sketches;
        let work = move |analyzer: &mut Analyzer, texts: &[T], out: &mut [Features]| {
            for (text, features) in texts.iter().zip(out) {
                let analysis = analyzer.analyze(text.as_ref());
                features.text_fp = analysis.text_fp().map(|fp| fp.0);
                features.features.extend_from_slice(analysis.features());
                if sketches {
                    features.sketch.extend_from_slice(analysis.sketch());
                }
            }
        };
        let mut parts = self.analyzers.iter_mut().zip(texts.chunks(share).zip(out.chunks_mut(share)));
        let first = parts.next();
        std::thread::scope(|scope| {
            for (analyzer, (texts, out)) in parts {
                scope.spawn(move || work(analyzer, texts, out));
            }
            if let Some((analyzer, (texts, out))) = first {
                work(analyzer, texts, out);
            }
        });
        out
    }
}

/// Why the documents of an atlas cannot be read for an index.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AtlasDocumentsError {
    /// The atlas is no good.
    #[error(transparent)]
    Atlas(#[from] AtlasError),
    /// A table is no good.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The manifest has no recipe that we know.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The features are not those of the index.
    #[error(transparent)]
    Seen(#[from] SeenError),
    /// The index keeps sketches and the atlas has none.
    #[error(
        "{} has no sketches, which the index keeps (its recipe is {recipe})\nhint: scan with a recipe that has +sketch", atlas.display()
    )]
    NoSketches {
        /// The atlas.
        atlas: PathBuf,
        /// Its recipe.
        recipe: Recipe,
    },
}

/// The recipe and the seed of an atlas.
pub fn recipe_of(atlas: &Atlas) -> Result<(Recipe, u64), AtlasDocumentsError> {
    Ok((atlas.manifest().recipe.parse()?, atlas.manifest().seed))
}

/// The documents of an atlas with their features, in order, read once from front to back.
pub struct AtlasDocuments {
    documents: DocumentsReader,
    features: FeaturesReader,
    /// For an index that keeps them.
    sketches: Option<SketchesReader>,
    batch: Option<DocumentBatch>,
    row: usize,
    /// The row of features that was read last.
    ahead: Option<(u32, Vec<u64>)>,
    /// The row of sketches that was read last.
    sketch_ahead: Option<(u32, Vec<u32>)>,
}

/// A document of an atlas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtlasDocument {
    /// Its number in the atlas.
    pub doc: u32,
    /// Its id, else its address, else `doc:` and its number.
    pub name: String,
    /// Its features.
    pub features: Features,
}

impl AtlasDocuments {
    /// Begins to read. An error when the atlas has features of another kind than the index.
    pub fn open(atlas: &Atlas, params: &Params) -> Result<AtlasDocuments, AtlasDocumentsError> {
        let (recipe, seed) = recipe_of(atlas)?;
        params.ensure_same_features(&recipe, seed)?;
        if params.sketches && !atlas.has(&TableName::Sketches) {
            return Err(AtlasDocumentsError::NoSketches { atlas: atlas.dir().to_owned(), recipe });
        }
        Ok(AtlasDocuments {
            documents: atlas.documents()?.only(&["id", "url", "text_fp"]),
            features: atlas.features()?,
            sketches: params.sketches.then(|| atlas.sketches()).transpose()?,
            batch: None,
            row: 0,
            ahead: None,
            sketch_ahead: None,
        })
    }

    /// The next document.
    pub fn next_document(&mut self) -> Result<Option<AtlasDocument>, AtlasDocumentsError> {
        loop {
            if let Some(batch) = self.batch.as_ref().filter(|batch| self.row < batch.len()) {
                let row = batch.row(self.row);
                let name = row.id.or(row.url).map_or_else(|| format!("doc:{}", row.doc), str::to_owned);
                let (doc, text_fp) = (row.doc, row.text_fp);
                self.row += 1;
                let features = self.features_of(doc)?;
                let sketch = self.sketch_of(doc)?;
                // Without features there is nothing to look for, whatever else there is.
                let text_fp = text_fp.filter(|_| !features.is_empty());
                return Ok(Some(AtlasDocument {
                    doc,
                    name,
                    features: Features { text_fp, features, sketch },
                }));
            }
            match self.documents.next_batch()? {
                Some(batch) => (self.batch, self.row) = (Some(batch), 0),
                None => return Ok(None),
            }
        }
    }

    fn features_of(&mut self, doc: u32) -> Result<Vec<u64>, AtlasDocumentsError> {
        loop {
            match &mut self.ahead {
                Some((at, features)) if *at == doc => return Ok(std::mem::take(features)),
                Some((at, _)) if *at > doc => return Ok(Vec::new()),
                _ => match self.features.next_row()? {
                    Some((at, features)) => self.ahead = Some((at, features.to_vec())),
                    None => return Ok(Vec::new()),
                },
            }
        }
    }

    fn sketch_of(&mut self, doc: u32) -> Result<Vec<u32>, AtlasDocumentsError> {
        let Some(sketches) = &mut self.sketches else { return Ok(Vec::new()) };
        loop {
            match &mut self.sketch_ahead {
                Some((at, sketch)) if *at == doc => return Ok(std::mem::take(sketch)),
                Some((at, _)) if *at > doc => return Ok(Vec::new()),
                _ => match sketches.next_row()? {
                    Some((at, sketch)) => self.sketch_ahead = Some((at, sketch.to_vec())),
                    None => return Ok(Vec::new()),
                },
            }
        }
    }
}

#[cfg(test)]
mod tests;
