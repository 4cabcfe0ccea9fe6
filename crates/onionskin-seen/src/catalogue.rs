//! The catalogue: a small text that names the recipe and the files that make up the index. It is
//! replaced last, by renaming, so the index is what the old one says or what the new one says.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use onionskin_core::feature::least_agreement;
use onionskin_core::{FeatureFilter, Recipe, SketchScheme};
use onionskin_store::IoError;
use onionskin_store::storage::Storage;

use crate::acknowledged;
use crate::error::SeenError;
use crate::intake::Threshold;
use crate::run::{DOCUMENT_BYTES, POSTING as POSTING_BYTES, RunMeta, SketchShape};
use crate::wal;

pub(crate) const FILE: &str = "catalogue";
/// The same again, written after it: what is left when it is damaged.
pub(crate) const COPY: &str = "catalogue.copy";
pub(crate) const MAGIC: &str = "onionskin-seen";
const VERSION: u32 = 1;
/// Of an index with sketches, so that older programs say what they lack. Others stay as they were.
const VERSION_SKETCHES: u32 = 2;
/// Of an index with a filter or a threshold of its own, which keeps a byte of each minimum.
const VERSION_FILTER: u32 = 3;

/// The share of documents at the threshold that the chosen filter may miss.
const FILTER_MISS: f64 = 0.005;
/// The share of documents at the threshold whose sketches agree too little to be near.
const SKETCH_MISS: f64 = 0.004;

/// What an index is of. All of it changes answers, none of it can be changed later.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// How minima are made, and features where the filter is that of the recipe. Kept sketches and
    /// chunks are not part of it.
    pub recipe: Recipe,
    /// The seed of the permutations.
    pub seed: u64,
    /// Whether documents have names, which are kept, instead of 64-bit keys.
    pub names: bool,
    /// Postings of one feature that are read at most.
    pub crowd: u32,
    /// Whether minima of documents are kept, so that resemblance is estimated from them: a byte of
    /// each in an index made for a threshold, else all four.
    pub sketches: bool,
    /// Which features documents are indexed by. They are made of the minima of the recipe.
    pub filter: FeatureFilter,
    /// The resemblance that the index is made for: what is near where a request names none.
    pub threshold: Option<Threshold>,
}

impl Params {
    /// Postings of one feature that are read at most, where nothing else is said.
    pub const CROWD: u32 = 256;

    /// By the recipe's own features, which decide what is near. For documents with names, or with
    /// keys.
    pub fn new(recipe: &Recipe, seed: u64, names: bool) -> Result<Params, SeenError> {
        let filter = recipe.scheme().filter().ok_or_else(|| SeenError::NoFeatures(recipe.to_string()))?;
        let (recipe, crowd) = (recipe.without_kept(), Params::CROWD);
        Ok(Params { recipe, seed, names, crowd, sketches: false, filter, threshold: None })
    }

    /// With the filter that finds documents of this resemblance, out of the minima of a recipe, and
    /// with sketches, which decide what is near.
    pub fn made_for(
        threshold: Threshold,
        recipe: &Recipe,
        seed: u64,
        names: bool,
    ) -> Result<Params, SeenError> {
        let filter = FeatureFilter::for_threshold(n_minima(recipe), threshold.get(), FILTER_MISS)
            .ok_or_else(|| SeenError::NoFeatures(recipe.to_string()))?;
        let (recipe, crowd, threshold) = (recipe.without_kept(), Params::CROWD, Some(threshold));
        Ok(Params { recipe, seed, names, crowd, sketches: true, filter, threshold })
    }

    /// The same with sketches.
    pub fn with_sketches(self) -> Params {
        Params { sketches: true, ..self }
    }

    /// Minima that are kept of a document: none in an index without sketches.
    pub fn minima(&self) -> usize {
        if self.sketches { self.recipe.scheme().sketch_len() } else { 0 }
    }

    /// What is kept of a sketch.
    pub(crate) fn sketch_shape(&self) -> SketchShape {
        SketchShape { minima: self.minima() as u32, low_bytes: self.sketches && !self.is_of_recipe() }
    }

    /// Whether the recipe says all, as in indexes of versions 1 and 2.
    fn is_of_recipe(&self) -> bool {
        self.recipe.scheme().filter() == Some(self.filter) && self.threshold.is_none()
    }

    /// Whether the features are those of the recipe; else they are made of minima.
    pub fn has_own_features(&self) -> bool {
        let own = self.recipe.scheme().filter();
        own.is_some_and(|own| own.has_features_of(self.filter))
    }

    /// How many minima agree at least in a document that is near by a threshold: a few documents in
    /// a thousand exactly at the threshold have fewer.
    pub fn least_agreement(&self, threshold: f64) -> usize {
        least_agreement(self.minima(), threshold, SKETCH_MISS)
    }

    /// The least share of documents that are found, of those with this resemblance to one that is
    /// indexed, when it is also the threshold.
    pub fn finds(&self, resemblance: f64) -> f64 {
        let agree = if self.sketches { 1.0 - SKETCH_MISS } else { 1.0 };
        agree * self.filter.acceptance(resemblance)
    }

    /// Bytes on disk at most for a document that is indexed by its features, names left out.
    pub fn expected_bytes_per_document(&self) -> f64 {
        DOCUMENT_BYTES + (POSTING_BYTES * self.filter.k() + self.sketch_shape().len()) as f64
    }

    /// An error that names both, when features of another recipe or seed are not those of this
    /// index.
    pub fn ensure_same_features(&self, recipe: &Recipe, seed: u64) -> Result<(), SeenError> {
        let given = recipe.without_kept();
        if given == self.recipe && seed == self.seed {
            return Ok(());
        }
        Err(SeenError::Mismatch {
            index: format!("{} with seed {}", self.recipe, self.seed),
            given: format!("{given} with seed {seed}"),
        })
    }
}

/// How many minima a recipe makes that features can be made of.
fn n_minima(recipe: &Recipe) -> usize {
    match recipe.scheme() {
        SketchScheme::Bottom(_) => 0,
        scheme => scheme.sketch_len(),
    }
}

/// Which files make up an index.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalogue {
    pub(crate) params: Params,
    /// Changes of the catalogue so far.
    pub(crate) generation: u64,
    /// The number of the next file.
    pub(crate) next: u64,
    pub(crate) wal: u64,
    /// The file of the removed and how many they are.
    pub(crate) removed: Option<(u64, u64)>,
    /// Oldest first, without gaps.
    pub(crate) runs: Vec<RunMeta>,
}

impl Catalogue {
    /// What the index is of.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Documents in runs.
    pub(crate) fn sealed(&self) -> u32 {
        self.runs.last().map_or(0, |run| run.first + run.docs)
    }

    pub(crate) fn to_text(&self) -> String {
        let Params { recipe, seed, names, crowd, sketches, filter, threshold } = &self.params;
        let minima = format!("minima {}\n", self.params.minima());
        let (version, beside) = match (self.params.is_of_recipe(), *sketches) {
            (true, false) => (VERSION, String::new()),
            (true, true) => (VERSION_SKETCHES, minima),
            (false, _) => {
                let threshold = threshold.map_or_else(|| "none".to_owned(), |at| at.get().to_string());
                (VERSION_FILTER, format!("{minima}filter {filter}\nthreshold {threshold}\n"))
            }
        };
        let mut text = format!(
            "{MAGIC} {version}\nrecipe {recipe}\nseed {seed}\nnames {}\ncrowd {crowd}\n{beside}generation {}\nnext {}\nwal {}\n",
            u8::from(*names),
            self.generation,
            self.next,
            self.wal
        );
        if let Some((number, count)) = self.removed {
            let _ = writeln!(text, "removed {number} {count}");
        }
        for run in &self.runs {
            let RunMeta { number, first, docs, centres, postings, names, sketch: _ } = run;
            let _ = writeln!(text, "run {number} {first} {docs} {centres} {postings} {names}");
        }
        let crc = crc32c::crc32c(text.as_bytes());
        let _ = writeln!(text, "crc32c {crc:08x}");
        text
    }

    pub(crate) fn parse(path: &Path, bytes: &[u8]) -> Result<Catalogue, SeenError> {
        let damaged = |what: &str| SeenError::damaged(path, what);
        let text = std::str::from_utf8(bytes).map_err(|_| damaged("it is not text"))?;
        let version = text.lines().next().and_then(|line| line.strip_prefix(MAGIC)).map(str::trim);
        let version = version.ok_or_else(|| damaged("it is no catalogue"))?;
        let (body, crc) = text
            .strip_suffix('\n')
            .and_then(|text| text.rsplit_once('\n'))
            .and_then(|(body, last)| Some((body, last.strip_prefix("crc32c ")?)))
            .ok_or_else(|| damaged("it is cut off"))?;
        let told = crc32c::crc32c(&bytes[..=body.len()]);
        if format!("{told:08x}") != crc {
            return Err(damaged("its checksum is wrong"));
        }
        let version = match version.parse::<u32>() {
            Ok(version @ VERSION..=VERSION_FILTER) => version,
            Ok(found) => {
                return Err(SeenError::Version { path: path.to_owned(), found, known: VERSION_FILTER });
            }
            Err(_) => return Err(damaged("its version is no number")),
        };
        Catalogue::parse_lines(body, version).ok_or_else(|| damaged("a line is not understood"))
    }

    fn parse_lines(body: &str, version: u32) -> Option<Catalogue> {
        let mut lines = body.lines().skip(1);
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned);
        let recipe: Recipe = field("recipe")?.parse().ok()?;
        let (seed, names) = (field("seed")?.parse().ok()?, field("names")? == "1");
        let crowd = field("crowd")?.parse().ok()?;
        let minima = match version {
            VERSION => 0,
            _ => field("minima")?.parse::<usize>().ok()?,
        };
        let (filter, threshold) = match version {
            VERSION_FILTER => (field("filter")?.parse().ok()?, parse_threshold(&field("threshold")?)?),
            _ => (recipe.scheme().filter()?, None),
        };
        if filter.permutations() > n_minima(&recipe) {
            return None;
        }
        let sketches = if version == VERSION_FILTER { minima > 0 } else { version == VERSION_SKETCHES };
        let params = Params { recipe, seed, names, crowd, sketches, filter, threshold };
        if params.minima() != minima {
            return None;
        }
        let sketch = params.sketch_shape();
        let (generation, next) = (field("generation")?.parse().ok()?, field("next")?.parse().ok()?);
        let wal = field("wal")?.parse().ok()?;
        let mut catalogue = Catalogue { params, generation, next, wal, removed: None, runs: Vec::new() };
        for line in lines {
            let (name, numbers) = line.split_once(' ')?;
            let numbers: Vec<u64> = numbers.split(' ').map(|n| n.parse().ok()).collect::<Option<_>>()?;
            match (name, numbers.as_slice()) {
                ("removed", &[number, count]) => catalogue.removed = Some((number, count)),
                ("run", &[number, first, docs, centres, postings, names]) => {
                    let narrow = |n: u64| u32::try_from(n).ok();
                    let (first, docs, centres) = (narrow(first)?, narrow(docs)?, narrow(centres)?);
                    let follows = first == catalogue.sealed() && docs > 0 && centres <= docs;
                    if !follows || first.checked_add(docs).is_none() || postings > crate::run::MOST_POSTINGS {
                        return None;
                    }
                    // Lengths are added up; none of them comes near 2^64.
                    if names >> 56 != 0 {
                        return None;
                    }
                    catalogue.runs.push(RunMeta { number, first, docs, centres, postings, names, sketch });
                }
                _ => return None,
            }
        }
        Some(catalogue)
    }

    /// Reads the catalogue of a folder.
    pub(crate) fn read(dir: &Path) -> Result<Catalogue, SeenError> {
        let path = dir.join(FILE);
        match std::fs::read(&path) {
            Ok(bytes) => Catalogue::parse(&path, &bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                ensure_no_remains(dir)?;
                Err(SeenError::Missing(dir.to_owned()))
            }
            Err(error) => Err(IoError::new("reading", path, error).into()),
        }
    }

    /// Reads the copy of the catalogue.
    pub(crate) fn read_copy(dir: &Path) -> Result<Catalogue, SeenError> {
        let path = dir.join(COPY);
        let bytes = std::fs::read(&path).map_err(|e| IoError::new("reading", &path, e))?;
        Catalogue::parse(&path, &bytes)
    }

    /// Puts this catalogue in the place of the one that is there.
    pub(crate) fn replace(&self, storage: &dyn Storage, dir: &Path) -> Result<(), SeenError> {
        self.write(storage, dir, FILE)?;
        self.write(storage, dir, COPY)
    }

    /// Writes the copy again if it differs from this catalogue: after a kill between the two, and
    /// after damage. The files that an older copy names are about to be removed.
    pub(crate) fn renew_copy(&self, storage: &dyn Storage, dir: &Path) -> Result<(), SeenError> {
        if Catalogue::read_copy(dir).is_ok_and(|copy| copy == *self) {
            return Ok(());
        }
        self.write(storage, dir, COPY)
    }

    fn write(&self, storage: &dyn Storage, dir: &Path, name: &str) -> Result<(), SeenError> {
        let text = self.to_text();
        let (path, temporary) = (dir.join(name), dir.join(format!("{name}.tmp")));
        let mut file = storage.create(&temporary).map_err(|e| IoError::new("creating", &temporary, e))?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.sync())
            .map_err(|e| IoError::while_writing("writing", &temporary, text.len() as u64, 0, e))?;
        drop(file);
        storage.rename(&temporary, &path).map_err(|e| IoError::new("renaming into place", &path, e))?;
        storage.sync_dir(dir).map_err(|e| IoError::new("syncing", dir, e))?;
        Ok(())
    }
}

/// The threshold of a catalogue; the outer `None` for what is none.
fn parse_threshold(field: &str) -> Option<Option<Threshold>> {
    if field == "none" { Some(None) } else { field.parse().ok().map(Some) }
}

/// An error if a directory without a catalogue has files of an index that had one: its catalogue is
/// lost, and a new index in its place would remove them. A creation that was interrupted leaves an
/// empty log at most.
pub(crate) fn ensure_no_remains(dir: &Path) -> Result<(), SeenError> {
    let names = match file_names(dir) {
        Err(SeenError::Io(error)) if is_absent(&error.source) => return Ok(()),
        names => names?,
    };
    for name in names {
        let least = if name == acknowledged::FILE { Some(0) } else { None };
        let least = least.or_else(|| name.starts_with("wal-").then_some(wal::HEADER as u64));
        let remains = if let Some(least) = least {
            let path = dir.join(&name);
            let len = std::fs::metadata(&path).map_err(|e| IoError::new("reading", &path, e))?.len();
            len > least
        } else {
            name.starts_with("run-") || name.starts_with("removed-") || name == COPY
        };
        if remains {
            let what = format!("it is missing, but {name} of its index is there");
            return Err(SeenError::damaged(&dir.join(FILE), what));
        }
    }
    Ok(())
}

fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
}

/// The files of a directory, in order.
pub(crate) fn file_names(dir: &Path) -> Result<Vec<String>, SeenError> {
    let placed = |e| IoError::new("listing", dir, e);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(placed)? {
        names.push(entry.map_err(placed)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Parses a catalogue.
pub fn parse_bytes(bytes: &[u8]) -> Result<Catalogue, SeenError> {
    Catalogue::parse(Path::new(FILE), bytes)
}

#[cfg(test)]
mod tests;
