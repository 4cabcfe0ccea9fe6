//! The catalogue: a small text that names the recipe and the files that make up the index. It is
//! replaced last, by renaming, so the index is what the old one says or what the new one says.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use onionskin_core::{FeatureFilter, Recipe};
use onionskin_store::IoError;
use onionskin_store::storage::Storage;

use crate::acknowledged;
use crate::error::SeenError;
use crate::run::RunMeta;
use crate::wal;

pub(crate) const FILE: &str = "catalogue";
/// The same again, written after it: what is left when it is damaged.
pub(crate) const COPY: &str = "catalogue.copy";
pub(crate) const MAGIC: &str = "onionskin-seen";
const VERSION: u32 = 1;
/// Of an index with sketches, so that older programs say what they lack. Others stay as they were.
const VERSION_SKETCHES: u32 = 2;

/// What an index is of. All of it changes answers, none of it can be changed later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    /// How features are made. Only what decides features is compared; kept sketches and chunks are
    /// not.
    pub recipe: Recipe,
    /// The seed of the permutations.
    pub seed: u64,
    /// Whether documents have names, which are kept, instead of 64-bit keys.
    pub names: bool,
    /// Postings of one feature that are read at most.
    pub crowd: u32,
    /// Whether the minima of centres are kept, so that resemblance is estimated from them: four
    /// bytes each, 336 a centre where there are 84.
    pub sketches: bool,
}

impl Params {
    /// Postings of one feature that are read at most, where nothing else is said.
    pub const CROWD: u32 = 256;

    /// For documents with names, or with keys.
    pub fn new(recipe: &Recipe, seed: u64, names: bool) -> Result<Params, SeenError> {
        let params =
            Params { recipe: features_only(recipe), seed, names, crowd: Params::CROWD, sketches: false };
        params.filter()?;
        Ok(params)
    }

    /// The same with sketches.
    pub fn with_sketches(self) -> Params {
        Params { sketches: true, ..self }
    }

    /// Minima that are kept of a centre: none in an index without sketches.
    pub fn minima(&self) -> usize {
        if self.sketches { self.recipe.scheme().sketch_len() } else { 0 }
    }

    /// The filter of the recipe.
    pub fn filter(&self) -> Result<FeatureFilter, SeenError> {
        self.recipe.scheme().filter().ok_or_else(|| SeenError::NoFeatures(self.recipe.to_string()))
    }

    /// An error that names both, when features of another recipe or seed are not those of this
    /// index.
    pub fn ensure_same_features(&self, recipe: &Recipe, seed: u64) -> Result<(), SeenError> {
        let given = features_only(recipe);
        if given == self.recipe && seed == self.seed {
            return Ok(());
        }
        Err(SeenError::Mismatch {
            index: format!("{} with seed {}", self.recipe, self.seed),
            given: format!("{given} with seed {seed}"),
        })
    }
}

/// A recipe without what it keeps beside features.
fn features_only(recipe: &Recipe) -> Recipe {
    let spelling = recipe.to_string();
    let features = spelling.split('+').next().unwrap_or_default();
    features.parse().unwrap_or_else(|_| recipe.clone())
}

/// Which files make up an index.
#[derive(Clone, Debug, PartialEq, Eq)]
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
        let Params { recipe, seed, names, crowd, sketches } = &self.params;
        let version = if *sketches { VERSION_SKETCHES } else { VERSION };
        let minima = if *sketches { format!("minima {}\n", self.params.minima()) } else { String::new() };
        let mut text = format!(
            "{MAGIC} {version}\nrecipe {recipe}\nseed {seed}\nnames {}\ncrowd {crowd}\n{minima}generation {}\nnext {}\nwal {}\n",
            u8::from(*names),
            self.generation,
            self.next,
            self.wal
        );
        if let Some((number, count)) = self.removed {
            let _ = writeln!(text, "removed {number} {count}");
        }
        for run in &self.runs {
            let RunMeta { number, first, docs, centres, postings, names, minima: _ } = run;
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
        let sketches = match version.parse::<u32>() {
            Ok(VERSION) => false,
            Ok(VERSION_SKETCHES) => true,
            Ok(found) => {
                return Err(SeenError::Version { path: path.to_owned(), found, known: VERSION_SKETCHES });
            }
            Err(_) => return Err(damaged("its version is no number")),
        };
        Catalogue::parse_lines(body, sketches).ok_or_else(|| damaged("a line is not understood"))
    }

    fn parse_lines(body: &str, sketches: bool) -> Option<Catalogue> {
        let mut lines = body.lines().skip(1);
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ').map(str::to_owned);
        let params = Params {
            recipe: field("recipe")?.parse().ok()?,
            seed: field("seed")?.parse().ok()?,
            names: field("names")? == "1",
            crowd: field("crowd")?.parse().ok()?,
            sketches,
        };
        params.filter().ok()?;
        if sketches && field("minima")?.parse::<usize>().ok()? != params.minima() {
            return None;
        }
        let minima = params.minima() as u32;
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
                    catalogue.runs.push(RunMeta { number, first, docs, centres, postings, names, minima });
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
