//! How big crawls, lists of addresses and search engines are against each other.
//!
//! The mathematics is in `crate::size`; here are its members: atlases and lists on disk (`stored`),
//! indexes of seen documents (`index`), engines behind HTTP (`search`), and what knows the texts of
//! their pages (`texts`). [`size()`] measures overlaps, [`searches()`] puts the queries of a log to
//! engines, [`walk()`] walks over the links of an atlas, and [`read_addresses`] reads the results
//! of a study of random addresses.

mod files;
pub mod http;
mod index;
mod near;
mod search;
mod stored;
mod texts;

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use crate::size::bias::{self, Bias, Circumstances};
use crate::size::engine::{Correction, EngineMember, EngineParams, Lexicon, SearchEngine, SearchFailure};
use crate::size::overlap::{self, EstimateParams, Estimates};
use crate::size::searches::{self, Answered, SearchEstimates};
use crate::size::walk::{WalkError, WalkParams, Walked};
use crate::size::{By, MeasureError, Member, MemberFailure, Observed, measure};
use onionskin_core::{Recipe, RecipeError, SketchScheme};
use onionskin_seen::{Entry, SeenError};
use onionskin_store::{Atlas, AtlasError, MemoryBudget, TableName};

pub use files::{FileError, read_addresses, read_lexicon, read_queries};
pub use search::{BadResultPath, EngineSettings, HttpEngine, ResultPath, Step};

use http::{HttpClient, HttpParams};
use index::IndexMember;
use onionskin_store::progress::{Event, Progress};
use stored::{AtlasMember, ListMember, Room, Stored};
use texts::TextStore;

/// What makes two pages the same, as it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByChoice {
    /// Contents where all members are atlases and indexes of seen documents, else addresses.
    #[default]
    Auto,
    /// Addresses.
    Url,
    /// Texts, word by word.
    Text,
    /// Texts, nearly.
    Near,
    /// Texts, nearly where sketches can be compared, else word by word.
    Content,
}

/// What to measure, and with what.
#[derive(Clone, Debug)]
pub struct SizeParams {
    /// Atlases, indexes of seen documents, lists of addresses (`-` for standard input), engines
    /// with `{query}` in their address.
    pub members: Vec<String>,
    /// What makes two pages the same.
    pub by: ByChoice,
    /// The resemblance that makes a near copy.
    pub threshold: f64,
    /// Pages of each member; by default [`SizeParams::SAMPLES`], or [`SizeParams::ENGINE_SAMPLES`]
    /// when one is an engine.
    pub samples: Option<usize>,
    /// The seed of the samples.
    pub seed: u64,
    /// How sizes are estimated; its seed is not used.
    pub estimate: EstimateParams,
    /// How engines are sampled and checked; its `by` is not used.
    pub engine: EngineParams,
    /// How engines are asked.
    pub settings: EngineSettings,
    /// How requests are made.
    pub http: HttpParams,
    /// Words for queries, in a file; by default they are taken from the texts of atlases.
    pub lexicon: Option<PathBuf>,
    /// An atlas that knows the texts of pages, beside those that are members.
    pub texts: Option<PathBuf>,
    /// Whether pages that no atlas knows are fetched.
    pub fetch: bool,
    /// Where inputs of atlases with relative names are; the current directory when not given.
    pub base: Option<PathBuf>,
    /// The command that reads PDF files apart from this process.
    pub pdf_worker: Vec<String>,
    /// Memory for sorting.
    pub memory: MemoryBudget,
    /// Where sorts spill; made and left behind empty.
    pub work_dir: PathBuf,
}

impl SizeParams {
    /// Pages of a member that give a fraction to about two points, 19 times in 20: 1.96 √(¼ /
    /// 2400) = 0.02.
    pub const SAMPLES: usize = 2_400;
    /// The same to about five points, where every page costs requests.
    pub const ENGINE_SAMPLES: usize = 400;
    /// The seed of a measurement that says nothing else.
    pub const SEED: u64 = 1;

    /// Everything else as it is by default.
    pub fn new(members: Vec<String>) -> SizeParams {
        SizeParams {
            members,
            by: ByChoice::Auto,
            threshold: 0.9,
            samples: None,
            seed: SizeParams::SEED,
            estimate: EstimateParams::default(),
            engine: EngineParams::default(),
            settings: EngineSettings::default(),
            http: HttpParams::default(),
            lexicon: None,
            texts: None,
            fetch: false,
            base: None,
            pdf_worker: Vec::new(),
            memory: MemoryBudget::default_for_machine(),
            work_dir: std::env::temp_dir(),
        }
    }
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SizeError {
    /// An atlas cannot be used.
    #[error(transparent)]
    Atlas(#[from] Box<AtlasError>),
    /// The recipe of an atlas is not one.
    #[error("the recipe of {name}: {source}")]
    Recipe {
        /// The atlas.
        name: String,
        /// What is wrong with it.
        source: RecipeError,
    },
    /// A member cannot be opened.
    #[error("{name}: {source}")]
    Open {
        /// The member.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// A member is given twice: its overlap with itself says nothing.
    #[error("{name} is given twice")]
    Twice {
        /// The member.
        name: String,
    },
    /// An index of seen documents cannot be used.
    #[error(transparent)]
    Seen(#[from] SeenError),
    /// An index of seen documents without addresses.
    #[error("{name} keeps numbers for documents and no addresses to compare\nhint: compare by text")]
    NoAddresses {
        /// The index.
        name: String,
    },
    /// A list of addresses has no contents.
    #[error("{name} is a list of addresses and has no contents to compare\nhint: compare by URL")]
    NoContents {
        /// The list.
        name: String,
    },
    /// Atlases whose numbers mean different things.
    #[error("{a} and {b} cannot be compared {what}: {why}\nhint: {remedy}")]
    Incomparable {
        /// One.
        a: String,
        /// The other.
        b: String,
        /// By what.
        what: &'static str,
        /// Why not.
        why: String,
        /// What to do.
        remedy: Remedy,
    },
    /// Engines need words.
    #[error(
        "an engine needs words to be asked for: {why}\nhint: give a lexicon, or an atlas whose inputs are still there"
    )]
    NoWords {
        /// Why there are none.
        why: String,
    },
    /// Only engines can be searched.
    #[error("{name} is not a search engine; queries go to addresses with {{query}} in them")]
    NotAnEngine {
        /// The member.
        name: String,
    },
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// A measurement failed.
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A walk failed.
    #[error(transparent)]
    Walk(#[from] WalkError),
    /// Texts cannot be read.
    #[error("{0}")]
    Texts(MemberFailure),
}

/// What to do about members that cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Scan with sketches, or compare by text.
    SketchesOrText,
    /// Compare by text or by URL.
    TextOrUrl,
    /// Compare by URL.
    Url,
    /// Scan both with one recipe, or compare by text.
    AlikeOrText,
    /// Scan both with one recipe, or compare by URL.
    AlikeOrUrl,
}

impl std::fmt::Display for Remedy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Remedy::SketchesOrText => "scan with a recipe that has +sketch, or compare by text",
            Remedy::TextOrUrl => "indexes of seen documents are compared by text or by URL",
            Remedy::Url => "compare by URL",
            Remedy::AlikeOrText => "compare by text, or scan both alike",
            Remedy::AlikeOrUrl => "compare by URL, or scan both alike",
        })
    }
}

onionskin_store::boxed_sources!(SizeError: Atlas(AtlasError));

/// What kind of member a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberKind {
    /// An atlas.
    Atlas,
    /// An index of seen documents.
    Seen,
    /// A list of addresses.
    List,
    /// A search engine.
    Engine,
}

impl MemberKind {
    /// An address with `{query}` is an engine, a folder with the catalogue of one an index of seen
    /// documents, any other folder an atlas, and anything else a list.
    pub fn of(name: &str) -> MemberKind {
        if name.contains("{query}") {
            MemberKind::Engine
        } else if name != "-" && onionskin_seen::is_index(Path::new(name)) {
            MemberKind::Seen
        } else if name != "-" && Path::new(name).is_dir() {
            MemberKind::Atlas
        } else {
            MemberKind::List
        }
    }
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct SizeReport {
    /// What each member is.
    pub kinds: Vec<MemberKind>,
    /// What was seen of each.
    pub observed: Vec<Observed>,
    /// What follows.
    pub estimates: Estimates,
    /// What made two pages the same.
    pub by: By,
    /// Pages that were wanted of each.
    pub samples: usize,
    /// Words that queries were made of.
    pub lexicon_words: Option<usize>,
    /// The probability with which intervals have the truth.
    pub confidence: f64,
    /// The seed of the samples.
    pub seed: u64,
    /// What may be wrong.
    pub biases: Vec<Bias>,
    /// How long it took.
    pub seconds: f64,
}

/// Texts that a lexicon is made of.
const LEXICON_TEXTS: usize = 2_000;

/// Measures relative sizes and coverage by overlaps.
///
/// # Errors
///
/// When members cannot be opened, read or compared.
pub fn size(params: &SizeParams, progress: &dyn Progress) -> Result<SizeReport, SizeError> {
    let start = Instant::now();
    let kinds: Vec<MemberKind> = params.members.iter().map(|name| MemberKind::of(name)).collect();
    for (at, name) in params.members.iter().enumerate() {
        if params.members[..at].contains(name) {
            return Err(SizeError::Twice { name: name.clone() });
        }
    }
    if params.members.len() < 2 {
        return Err(MeasureError::TooFew { found: params.members.len() }.into());
    }
    let room = Room { memory: params.memory, work_dir: params.work_dir.clone() };
    let (mut atlases, mut indexes) = (Vec::new(), Vec::new());
    for (name, kind) in params.members.iter().zip(&kinds) {
        indexes.push(match kind {
            MemberKind::Seen => Some(IndexMember::open(name, &room)?),
            _ => None,
        });
        atlases.push(match kind {
            MemberKind::Atlas => Some(Atlas::open(name)?),
            _ => None,
        });
    }
    let has_engines = kinds.contains(&MemberKind::Engine);
    let texts_atlas = params.texts.as_ref().map(Atlas::open).transpose()?;
    let by = choose(params, &kinds, &atlases, &indexes, texts_atlas.as_ref())?;
    let text_bits = if kinds.contains(&MemberKind::Seen) { Entry::TEXT_BITS } else { u64::MAX };
    std::fs::create_dir_all(&params.work_dir)
        .map_err(|source| SizeError::Open { name: params.work_dir.display().to_string(), source })?;

    let client = Rc::new(RefCell::new(HttpClient::new(params.http.clone())));
    let known: Vec<Atlas> = texts_atlas.iter().chain(atlases.iter().flatten()).cloned().collect();
    let recipe = match known.first() {
        Some(atlas) if has_engines => (recipe_of(atlas)?, atlas.manifest().seed),
        _ => (Recipe::default(), onionskin_scan::ScanParams::SEED),
    };
    let mut store = TextStore::new(known, recipe);
    store.base = params.base.clone();
    store.pdf_worker = params.pdf_worker.clone();
    store.fetcher = params.fetch.then(|| Rc::clone(&client));
    let lexicon = if has_engines { lexicon(params, &store, progress)? } else { Lexicon::default() };
    let texts = RefCell::new(store);

    let engine = EngineParams { by, ..params.engine };
    let mut members: Vec<Box<dyn Member + '_>> = Vec::new();
    for ((name, kind), stored) in params.members.iter().zip(&kinds).zip(atlases.into_iter().zip(indexes)) {
        members.push(match (kind, stored) {
            (MemberKind::Engine, _) => {
                let asked = HttpEngine::new(name, params.settings.clone(), Rc::clone(&client));
                Box::new(EngineMember::new(Box::new(asked), &lexicon, &texts, engine))
            }
            (_, (Some(atlas), _)) => {
                let atlas = AtlasMember::new(atlas, by).with_text_bits(text_bits);
                Box::new(Stored::new(name, &room, atlas))
            }
            (_, (None, Some(index))) => Box::new(Stored::new(name, &room, index.by(by))),
            (_, (None, None)) => {
                let list = ListMember::new(name, &room);
                let list = list.map_err(|source| SizeError::Open { name: name.clone(), source })?;
                Box::new(Stored::new(name, &room, list))
            }
        });
    }
    let default = if has_engines { SizeParams::ENGINE_SAMPLES } else { SizeParams::SAMPLES };
    let samples = params.samples.unwrap_or(default);
    let mut hear = |step: &str| {
        tracing::info!(step, "size");
        let name = if step.starts_with("sampling") { "sampling" } else { "checking" };
        progress.event(Event::Step { name });
    };
    let observed = measure(&mut members, samples, params.seed, &mut hear)?;
    progress.event(Event::Step { name: "estimating" });
    let estimates = overlap::estimate(&observed, &EstimateParams { seed: params.seed, ..params.estimate });
    let how = Circumstances {
        engines: has_engines,
        corrected: params.engine.correction == Correction::Pages,
        by_url: by == By::Url,
        near: matches!(by, By::Near { .. }),
    };
    Ok(SizeReport {
        kinds,
        observed,
        estimates,
        by,
        samples,
        lexicon_words: has_engines.then(|| lexicon.len()),
        confidence: params.estimate.confidence,
        seed: params.seed,
        biases: bias::overlap(how),
        seconds: start.elapsed().as_secs_f64(),
    })
}

fn recipe_of(atlas: &Atlas) -> Result<Recipe, SizeError> {
    let name = || atlas.dir().display().to_string();
    atlas.manifest().recipe.parse().map_err(|source| SizeError::Recipe { name: name(), source })
}

/// What decides whether the numbers of two members mean the same.
struct Compared {
    name: String,
    recipe: Recipe,
    seed: u64,
    /// Has minima of all documents.
    sketches: bool,
    /// What to do where there are none.
    remedy: Remedy,
}

impl Compared {
    fn atlas(atlas: &Atlas) -> Result<Compared, SizeError> {
        let recipe = recipe_of(atlas)?;
        let bottom = matches!(recipe.scheme(), SketchScheme::Bottom(_));
        Ok(Compared {
            name: atlas.dir().display().to_string(),
            recipe,
            seed: atlas.manifest().seed,
            sketches: !bottom && atlas.has(&TableName::Sketches),
            remedy: Remedy::SketchesOrText,
        })
    }

    fn index(index: &IndexMember) -> Compared {
        let params = index.params();
        Compared {
            name: index.name().to_owned(),
            recipe: params.recipe.clone(),
            seed: params.seed,
            // Copies have none, whatever is kept of others.
            sketches: false,
            remedy: Remedy::TextOrUrl,
        }
    }
}

/// Decides what makes two pages the same, and that all members can be compared by it.
fn choose(
    params: &SizeParams,
    kinds: &[MemberKind],
    atlases: &[Option<Atlas>],
    indexes: &[Option<IndexMember>],
    texts: Option<&Atlas>,
) -> Result<By, SizeError> {
    let with_contents = kinds.iter().all(|kind| matches!(kind, MemberKind::Atlas | MemberKind::Seen));
    let choice = match params.by {
        ByChoice::Auto if with_contents => ByChoice::Content,
        ByChoice::Auto => ByChoice::Url,
        choice => choice,
    };
    if choice == ByChoice::Url {
        return match indexes.iter().flatten().find(|index| !index.params().names) {
            Some(index) => Err(SizeError::NoAddresses { name: index.name().to_owned() }),
            None => Ok(By::Url),
        };
    }
    let first = |kind| params.members.iter().zip(kinds).find(|(_, is)| **is == kind).map(|(name, _)| name);
    if let Some(name) = first(MemberKind::List) {
        return Err(SizeError::NoContents { name: name.clone() });
    }
    if let (Some(engine), Some(index)) = (first(MemberKind::Engine), indexes.iter().flatten().next()) {
        return Err(SizeError::Incomparable {
            a: engine.clone(),
            b: index.name().to_owned(),
            what: "by text",
            why: "an engine is checked by whole fingerprints of texts, and an index keeps 48 bits".to_owned(),
            remedy: Remedy::Url,
        });
    }
    let mut compared = Vec::new();
    for atlas in texts.into_iter().chain(atlases.iter().flatten()) {
        compared.push(Compared::atlas(atlas)?);
    }
    compared.extend(indexes.iter().flatten().map(Compared::index));
    let near = By::Near { threshold: params.threshold };
    match choice {
        ByChoice::Near => comparable(&compared, true).map(|()| near),
        ByChoice::Text => comparable(&compared, false).map(|()| By::Text),
        _ => comparable(&compared, true)
            .map(|()| near)
            .or_else(|_| comparable(&compared, false).map(|()| By::Text)),
    }
}

/// Whether texts, or sketches, mean the same.
fn comparable(all: &[Compared], sketches: bool) -> Result<(), SizeError> {
    let Some((first, others)) = all.split_first() else { return Ok(()) };
    if let Some(without) = all.iter().find(|one| sketches && !one.sketches) {
        let Compared { name, recipe, remedy, .. } = without;
        return Err(SizeError::Incomparable {
            a: first.name.clone(),
            b: name.clone(),
            what: "by near copies",
            why: format!("{name} keeps no minima, or not of all documents (recipe {recipe})"),
            remedy: *remedy,
        });
    }
    for other in others {
        let (a, b) = (&first.recipe, &other.recipe);
        let words = (a.form(), a.width()) == (b.form(), b.width());
        let minima = (a.main(), a.scheme().sketch_len(), a.minwise())
            == (b.main(), b.scheme().sketch_len(), b.minwise())
            && first.seed == other.seed;
        if !words || (sketches && !minima) {
            return Err(SizeError::Incomparable {
                a: first.name.clone(),
                b: other.name.clone(),
                what: if sketches { "by near copies" } else { "by text" },
                why: format!("recipes {a} and {b}, seeds {} and {}", first.seed, other.seed),
                remedy: if words { Remedy::AlikeOrText } else { Remedy::AlikeOrUrl },
            });
        }
    }
    Ok(())
}

/// The words for queries: those of a file, or of some texts.
fn lexicon(params: &SizeParams, store: &TextStore, progress: &dyn Progress) -> Result<Lexicon, SizeError> {
    let no_words = |why: &str| SizeError::NoWords { why: why.to_owned() };
    let lexicon = match &params.lexicon {
        Some(path) => read_lexicon(path)?,
        None if store.atlases.is_empty() => return Err(no_words("there is neither a lexicon nor an atlas")),
        None => {
            progress.event(Event::Step { name: "reading texts for a lexicon" });
            let (words, texts) = store.lexicon(LEXICON_TEXTS, params.seed).map_err(SizeError::Texts)?;
            // Words of a single text are misspellings and names; words of more than one text in
            // twenty make queries with too many results.
            words.asking(2..=(texts / 20).max(2))
        }
    };
    if lexicon.len() < params.engine.query_words.max(1) {
        return Err(no_words("the lexicon has too few"));
    }
    Ok(lexicon)
}

/// What the queries of a log found.
#[derive(Clone, Debug)]
pub struct SearchesReport {
    /// The engines.
    pub names: Vec<String>,
    /// Queries of the log.
    pub queries: u64,
    /// Queries that count.
    pub used: u64,
    /// Queries with too many results in all, or with a list that was cut.
    pub too_many: u64,
    /// Queries that an engine did not answer.
    pub failed: u64,
    /// Requests of each engine.
    pub requests: Vec<u64>,
    /// What follows.
    pub estimates: SearchEstimates,
    /// The probability with which intervals have the truth.
    pub confidence: f64,
    /// The seed of the intervals.
    pub seed: u64,
    /// What may be wrong.
    pub biases: Vec<Bias>,
    /// How long it took.
    pub seconds: f64,
}

/// Puts the queries of a log to engines. Queries with more than `max_results` results in all do not
/// count.
///
/// # Errors
///
/// When a member is not an engine, or there are fewer than two.
pub fn searches(
    params: &SizeParams,
    queries: &[String],
    max_results: usize,
    progress: &dyn Progress,
) -> Result<SearchesReport, SizeError> {
    let start = Instant::now();
    if let Some(name) = params.members.iter().find(|name| MemberKind::of(name) != MemberKind::Engine) {
        return Err(SizeError::NotAnEngine { name: name.clone() });
    }
    if params.members.len() < 2 {
        return Err(MeasureError::TooFew { found: params.members.len() }.into());
    }
    let client = Rc::new(RefCell::new(HttpClient::new(params.http.clone())));
    let engine = |name: &String| HttpEngine::new(name, params.settings.clone(), Rc::clone(&client));
    let mut engines: Vec<HttpEngine> = params.members.iter().map(engine).collect();
    let n = engines.len();
    progress.event(Event::Step { name: "searching" });
    let (mut answers, mut too_many, mut failed) = (Vec::new(), 0, 0);
    'queries: for query in queries {
        let words: Vec<&str> = query.split_whitespace().collect();
        let mut results: Vec<std::collections::BTreeSet<String>> = Vec::new();
        for engine in &mut engines {
            // One more than may be: then it is known that there are more.
            match engine.search(&words, max_results + 1) {
                Ok(found) => results.push(found.into_iter().collect()),
                Err(SearchFailure::Exhausted) => break 'queries,
                Err(_) => {
                    failed += 1;
                    continue 'queries;
                }
            }
        }
        if results.iter().map(|found| found.len()).sum::<usize>() > max_results {
            too_many += 1;
            continue;
        }
        let shared = |x: usize, y: usize| results[x].intersection(&results[y]).count() as u64;
        answers.push(Answered {
            results: results.iter().map(|found| found.len() as u64).collect(),
            shared: (0..n).map(|x| (0..n).map(|y| shared(x, y)).collect()).collect(),
        });
    }
    let EstimateParams { confidence, draws, .. } = params.estimate;
    Ok(SearchesReport {
        names: engines.iter().map(|engine| engine.name().to_owned()).collect(),
        queries: queries.len() as u64,
        used: answers.len() as u64,
        too_many,
        failed,
        requests: engines.iter().map(|engine| engine.requests()).collect(),
        estimates: searches::estimate(&answers, n, confidence, draws, params.seed),
        confidence,
        seed: params.seed,
        biases: bias::searches(),
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Walks over the links of an atlas.
///
/// # Errors
///
/// When the atlas has no links, or they cannot be read.
pub fn walk(
    atlas: &Atlas,
    params: &WalkParams,
    memory: MemoryBudget,
    work_dir: &Path,
) -> Result<Walked, SizeError> {
    let nodes = u32::try_from(atlas.table(&TableName::Documents)?.rows).unwrap_or(u32::MAX);
    let links = atlas.links()?;
    std::fs::create_dir_all(work_dir)
        .map_err(|source| SizeError::Open { name: work_dir.display().to_string(), source })?;
    Ok(crate::size::walk::walk(nodes, links, params, memory, work_dir)?)
}

#[cfg(test)]
mod tests;
