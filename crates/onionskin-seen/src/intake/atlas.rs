//! The documents of an atlas, with the features that the scan has made.

use std::path::PathBuf;

use onionskin_core::feature::FeatureMaker;
use onionskin_core::{DocId, Recipe, RecipeError};
use onionskin_store::table::{Batch, BatchReader, FeaturesReader, SketchesReader, document};
use onionskin_store::{Atlas, AtlasError, TableError, TableName};

use super::features::Features;
use crate::catalogue::Params;
use crate::error::SeenError;

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
    /// The index needs sketches and the atlas has none.
    #[error(
        "{} has no sketches, which the index needs (its recipe is {recipe})\nhint: scan with a recipe that has +sketch", atlas.display()
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

/// What an index wants to know of a document.
type Columns = (document::Doc, document::Id, document::Url, document::TextFp);

/// Where features come from.
enum Source {
    /// The scan has made them.
    Table(Box<FeaturesReader>),
    /// They are made of minima.
    Sketches(FeatureMaker),
}

/// The documents of an atlas with their features, in order, read once from front to back.
pub struct AtlasDocuments {
    documents: BatchReader<Columns>,
    features: Source,
    /// For an index that keeps them, or whose features are made of them.
    sketches: Option<SketchesReader>,
    keeps_sketches: bool,
    batch: Option<Batch<Columns>>,
    row: usize,
    /// The row of features that was read last.
    ahead: Option<(DocId, Vec<u64>)>,
    /// The row of sketches that was read last.
    sketch_ahead: Option<(DocId, Vec<u32>)>,
}

/// A document of an atlas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtlasDocument {
    /// Its number in the atlas.
    pub doc: DocId,
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
        let needs_sketches = params.sketches || !params.has_own_features();
        if needs_sketches && !atlas.has(&TableName::Sketches) {
            return Err(AtlasDocumentsError::NoSketches { atlas: atlas.dir().to_owned(), recipe });
        }
        let features = match params.has_own_features() {
            true => Source::Table(Box::new(atlas.features()?)),
            false => Source::Sketches(FeatureMaker::new(params.filter)),
        };
        Ok(AtlasDocuments {
            documents: atlas.documents()?.select(),
            features,
            sketches: needs_sketches.then(|| atlas.sketches()).transpose()?,
            keeps_sketches: params.sketches,
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
                let (doc, id, url, text_fp) = batch.row(self.row);
                let name = id.or(url).map_or_else(|| format!("doc:{doc}"), str::to_owned);
                self.row += 1;
                let mut sketch = self.sketch_of(doc)?;
                let features = match &mut self.features {
                    Source::Sketches(_) if sketch.is_empty() => Vec::new(),
                    Source::Sketches(maker) => maker.features(&sketch).to_vec(),
                    Source::Table(table) => features_of(table, &mut self.ahead, doc)?,
                };
                if !self.keeps_sketches {
                    sketch.clear();
                }
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

    fn sketch_of(&mut self, doc: DocId) -> Result<Vec<u32>, AtlasDocumentsError> {
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

/// The features of a document, whose row may have been read before.
fn features_of(
    table: &mut FeaturesReader,
    ahead: &mut Option<(DocId, Vec<u64>)>,
    doc: DocId,
) -> Result<Vec<u64>, AtlasDocumentsError> {
    loop {
        match ahead {
            Some((at, features)) if *at == doc => return Ok(std::mem::take(features)),
            Some((at, _)) if *at > doc => return Ok(Vec::new()),
            _ => match table.next_row()? {
                Some((at, features)) => *ahead = Some((at, features.to_vec())),
                None => return Ok(Vec::new()),
            },
        }
    }
}
