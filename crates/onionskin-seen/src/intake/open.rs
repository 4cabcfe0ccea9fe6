//! Opening an index, or creating one, and asking it about documents.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use onionskin_core::{Recipe, RecipeError};
use onionskin_store::{Atlas, MemoryBudget, TableName};

use super::answer::{Answer, IndexStats, RemovedName};
use super::atlas::{AtlasDocumentsError, recipe_of};
use super::documents::{Incoming, Prepared};
use super::features::TextFeatures;
use super::limits::Limits;
use super::request::{InvalidThreshold, Request, Threshold, Verb};
use crate::catalogue::Params;
use crate::error::SeenError;
use crate::reader::Reader;
use crate::writer::{Options, Seen};

/// The recipe of an index that is created without one.
pub const RECIPE: &str = "w4-rabin64-6x14r2";

/// The seed of an index that is created without one: that of a scan.
pub const SEED: u64 = 1;

/// The resemblance that an index is made for where nothing else is said: that of a search.
pub const THRESHOLD: f64 = 0.9;

/// What an index should be like. What is left open is as it is in an index that is there, and has a
/// default in one that is created.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// How features are made; by default as in the atlas, else [`RECIPE`].
    pub recipe: Option<Recipe>,
    /// The seed of the permutations; by default as in the atlas, else [`SEED`].
    pub seed: Option<u64>,
    /// Whether documents have names, or numbers; names by default.
    pub names: Option<bool>,
    /// Whether it keeps sketches, or features decide what is near. By default it keeps them, unless
    /// the atlas has none.
    pub sketches: Option<bool>,
    /// The resemblance that a new index is made for; [`THRESHOLD`] by default.
    pub threshold: Option<Threshold>,
}

/// Why an index cannot be opened or created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The index is no good, or has features of another kind.
    #[error(transparent)]
    Seen(#[from] SeenError),
    /// The atlas is no good.
    #[error(transparent)]
    Atlas(#[from] Box<AtlasDocumentsError>),
    /// Not a recipe.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// It has numbers where names are wanted, or names where numbers are.
    #[error("the index in {} keeps {}", dir.display(), if *.names { "names, not numbers" } else { "numbers, not names" })]
    Names {
        /// The index.
        dir: PathBuf,
        /// Whether it has names.
        names: bool,
    },
    /// It has sketches, or none, where the other is wanted.
    #[error("the index in {} keeps {}sketches", dir.display(), if *.sketches { "" } else { "no " })]
    Sketches {
        /// The index.
        dir: PathBuf,
        /// Whether it has sketches.
        sketches: bool,
    },
    /// Not a threshold.
    #[error(transparent)]
    Threshold(#[from] InvalidThreshold),
}

impl Wanted {
    /// Opens an index for writing.
    pub fn open(&self, dir: &Path, options: Options) -> Result<Seen, OpenError> {
        let seen = Seen::open(dir, options)?;
        self.ensure(dir, seen.params())?;
        Ok(seen)
    }

    /// Opens an index for writing, or creates it where there is none.
    pub fn open_or_create(
        &self,
        dir: &Path,
        atlas: Option<&Atlas>,
        options: Options,
    ) -> Result<Seen, OpenError> {
        match self.open(dir, options.clone()) {
            Err(OpenError::Seen(SeenError::Missing(_))) => {
                Ok(Seen::create(dir, self.params(atlas)?, options)?)
            }
            other => other,
        }
    }

    /// Opens an index for reading.
    pub fn open_reader(&self, dir: &Path, memory: MemoryBudget) -> Result<Reader, OpenError> {
        let reader = Reader::open(dir, memory)?;
        self.ensure(dir, reader.params())?;
        Ok(reader)
    }

    fn params(&self, atlas: Option<&Atlas>) -> Result<Params, OpenError> {
        let (recipe, seed) = match atlas {
            Some(atlas) => recipe_of(atlas).map_err(Box::new)?,
            None => (RECIPE.parse()?, SEED),
        };
        let recipe = self.recipe.clone().unwrap_or(recipe);
        let (seed, names) = (self.seed.unwrap_or(seed), self.names.unwrap_or(true));
        let lacking = atlas.filter(|atlas| !atlas.has(&TableName::Sketches));
        if let Some(atlas) = lacking.filter(|_| self.sketches == Some(true)) {
            let atlas = atlas.dir().to_owned();
            return Err(Box::new(AtlasDocumentsError::NoSketches { atlas, recipe }).into());
        }
        if self.sketches.unwrap_or(lacking.is_none()) {
            let threshold = self.threshold.map_or_else(|| THRESHOLD.try_into(), Ok)?;
            return Ok(Params::made_for(threshold, &recipe, seed, names)?);
        }
        Ok(Params { threshold: self.threshold, ..Params::new(&recipe, seed, names)? })
    }

    /// An error if an index is not like this.
    fn ensure(&self, dir: &Path, params: &Params) -> Result<(), OpenError> {
        let recipe = self.recipe.as_ref().unwrap_or(&params.recipe);
        params.ensure_same_features(recipe, self.seed.unwrap_or(params.seed))?;
        if self.names.is_some_and(|names| names != params.names) {
            return Err(OpenError::Names { dir: dir.to_owned(), names: params.names });
        }
        if self.sketches.is_some_and(|sketches| sketches != params.sketches) {
            return Err(OpenError::Sketches { dir: dir.to_owned(), sketches: params.sketches });
        }
        Ok(())
    }
}

/// An index that is asked about documents.
pub enum Index {
    /// One that is written to.
    Writing(Box<Seen>),
    /// One that others may be writing to.
    Reading(Box<Reader>),
}

impl From<Seen> for Index {
    fn from(seen: Seen) -> Index {
        Index::Writing(Box::new(seen))
    }
}

impl From<Reader> for Index {
    fn from(reader: Reader) -> Index {
        Index::Reading(Box::new(reader))
    }
}

impl Index {
    fn params(&self) -> &Params {
        match self {
            Index::Writing(seen) => seen.params(),
            Index::Reading(reader) => reader.params(),
        }
    }

    fn writer(&mut self) -> Result<&mut Seen, SeenError> {
        match self {
            Index::Writing(seen) => Ok(seen),
            Index::Reading(_) => Err(SeenError::ReadOnly),
        }
    }
}

/// An index and what makes features for it.
pub struct Intake {
    index: Index,
    features: TextFeatures,
}

impl Intake {
    /// Makes features with this many threads, one at least.
    pub fn new(index: Index, threads: usize) -> Intake {
        let features = TextFeatures::new(index.params(), threads);
        Intake { index, features }
    }

    /// With the threads and the texts that limits have room for. A document whose text they have no
    /// room for is bad.
    pub fn within(index: Index, limits: &Limits, threads: usize) -> Intake {
        let features = match limits.shares {
            Some(shares) => TextFeatures::within(index.params(), shares),
            None => TextFeatures::new(index.params(), threads),
        };
        Intake { index, features }
    }

    /// What the index is of.
    pub fn params(&self) -> &Params {
        self.index.params()
    }

    /// What the index is of and how large it is.
    pub fn stats(&self) -> IndexStats {
        let stats = match &self.index {
            Index::Writing(seen) => seen.stats(),
            Index::Reading(reader) => reader.stats(),
        };
        IndexStats::new(self.params(), stats)
    }

    /// Makes features by the recipe of the index.
    pub fn features(&mut self) -> &mut TextFeatures {
        &mut self.features
    }

    /// Answers documents in order: each is compared with those before it. Additions are safe after
    /// [`Intake::commit`].
    pub fn answer(&mut self, documents: Vec<Incoming>, request: Request) -> Result<Vec<Answer>, SeenError> {
        let prepared = self.features.prepare(documents);
        prepared.iter().map(|one| self.answer_prepared(one, request)).collect()
    }

    /// Answers one document whose features are known.
    pub fn answer_prepared(&mut self, one: &Prepared, request: Request) -> Result<Answer, SeenError> {
        request.ensure_possible(self.params())?;
        match &mut self.index {
            Index::Writing(seen) => seen.answer(one, request),
            Index::Reading(reader) if request.verb == Verb::Check => reader.answer(one, request.threshold),
            Index::Reading(_) => Err(SeenError::ReadOnly),
        }
    }

    /// Removes documents by their names: see [`Seen::remove_named`].
    pub fn remove(&mut self, names: &BTreeSet<String>) -> Result<Vec<RemovedName>, SeenError> {
        self.index.writer()?.remove_named(names)
    }

    /// Makes all changes safe. Nothing is to be done for an index that is open for reading.
    pub fn commit(&mut self) -> Result<(), SeenError> {
        match &mut self.index {
            Index::Writing(seen) => seen.commit(),
            Index::Reading(_) => Ok(()),
        }
    }

    /// Rewrites the index without what was removed.
    pub fn compact(&mut self) -> Result<(), SeenError> {
        self.index.writer()?.compact()
    }

    /// Makes all changes safe and lets go of the index.
    pub fn close(self) -> Result<(), SeenError> {
        match self.index {
            Index::Writing(seen) => seen.close(),
            Index::Reading(_) => Ok(()),
        }
    }
}
