//! The search for copies: from an atlas to pairs and clusters.
//!
//! Steps, each committed when it is done, so that a killed run goes on after the last whole one:
//!
//! ```text
//! 1 exact        documents ─▶ copies (doc, centre)
//! 2 candidates   features or sketches ─▶ candidates (a, b)                     resemblance by features only
//! 3 pairs        candidates + chunks, or an exact join ─▶ near pairs, verified
//! 4 clusters     copies + near pairs ─▶ tables pairs, clusters, cluster_stats, copies.<level>
//! 5 recall       a sample against an exact join, pairs and clusters ─▶ numbers
//! ```
//!
//! A search that compares the chunks of all documents has them made first, by a stage of its own
//! ([`onionskin_scan::chunks`]), if the scan did not keep them.
//!
//! Nothing that reaches a table depends on memory or threads: sorts give one order whatever they
//! spill, and joins one set.

mod filter;
mod iterations;
pub mod levels;
mod record;
mod reread;
mod state;
mod summary;
mod tables;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::candidates::CandidateStats;
use crate::cluster::Clustering;
use crate::exact::{ExactStats, exact_copies};
use crate::overlap::{Engine, JoinStats, join};
use crate::recall::{self, Found, Net, Recall};
use crate::{
    Bits, Bound, Candidates, ChunkSets, Resources, SharedPair, SimilarError, VerifyStats, count_shared,
};
use onionskin_core::{Chunking, DocId, FeatureFilter, Recipe, Threshold};
use onionskin_scan::ScanParams;
use onionskin_scan::chunks::{ChunksParams, make_chunks};
use onionskin_store::raw::RawRecords;
use onionskin_store::schema::{ChunkingName, LevelName};
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::stage::{self, Step, Work};
use onionskin_store::staging::StageKind;
use onionskin_store::table::{ClusterRow, ClustersReader, Method};
use onionskin_store::{
    Atlas, Manifest, MemoryBudget, Progress, Stage, StageName, StageParams, Staging, Table, TableName,
    TooLittleMemory,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::survivor::Survivor;
pub use filter::{FilterChoice, Sift};
pub use iterations::IterationSummary;
pub use record::{FoundRecord, LevelRecord, SearchRecord, SimilarRecord};
use reread::Reread;
use state::State;
pub use tables::{ClusterSummary, Reclustering, recluster};

/// How similar documents are found.
#[derive(Clone, Debug, PartialEq)]
pub enum Search {
    /// Equal payload or text, nothing else.
    Exact,
    /// Resemblance of shingle sets of at least this.
    Resemblance {
        /// The least resemblance.
        threshold: f64,
        /// Candidates by this filter; `None` chooses one for the threshold out of what the scan
        /// kept.
        filter: Option<FeatureFilter>,
        /// Find every pair, by an exact join instead of features.
        exact: bool,
    },
    /// At least so many shared chunks.
    Overlap {
        /// Which chunks.
        chunking: String,
        /// How many.
        threshold: Threshold,
        /// By which engine.
        engine: Engine,
    },
    /// At least this share of identical shingle paragraphs in both.
    Paragraphs {
        /// The share.
        share: f64,
    },
    /// The same shingle paragraphs, as far as the first subcollections tell: clusters that have a
    /// member in one of them, and an estimate of what the others have.
    Subcollections {
        /// How many of the subcollections are compared with everything.
        iterations: u32,
        /// How many there are.
        of: u32,
    },
}

impl Search {
    /// The least resemblance where none is given.
    pub const THRESHOLD: f64 = 0.9;

    /// The method as it stands in `pairs`.
    pub fn method(&self) -> Method {
        match self {
            Search::Exact => Method::Exact,
            Search::Resemblance { .. } => Method::Resemblance,
            Search::Overlap { .. } => Method::Overlap,
            Search::Paragraphs { .. } | Search::Subcollections { .. } => Method::Paragraphs,
        }
    }

    /// What makes a pair; `None` where only equality counts.
    pub fn bound(&self) -> Option<Bound> {
        match self {
            Search::Exact => None,
            Search::Resemblance { threshold, .. } => Some(Bound::Resemblance(*threshold)),
            Search::Overlap { threshold, .. } => Some(Bound::Overlap(*threshold)),
            Search::Paragraphs { share } => Some(Bound::Share(*share)),
            Search::Subcollections { .. } => Some(Bound::Share(1.0)),
        }
    }
}

/// What to search, and how. The first group decides the result; the second only speed.
#[derive(Clone, Debug)]
pub struct SimilarParams {
    /// The folder of the atlas.
    pub atlas: PathBuf,
    /// How similar documents are found.
    pub search: Search,
    /// How pairs become clusters.
    pub clustering: Clustering,
    /// Which document stands for its cluster.
    pub survivor: Survivor,
    /// Whether to measure on a sample what was found.
    pub measure_recall: bool,
    /// Leave pairs and clusters as they are and only note which documents are copies at this level.
    pub for_report: bool,
    /// Input between two commits while chunks are made, in bytes. Also decides where files of their
    /// tables end.
    pub commit_bytes: u64,

    /// The command that reads PDF files apart from this process; see `ExtractOptions::pdf_worker`.
    pub pdf_worker: Vec<String>,
    /// Memory for everything.
    pub memory: MemoryBudget,
    /// Threads.
    pub threads: usize,
}

impl SimilarParams {
    /// The least memory a search works with.
    pub const LEAST_MEMORY: u64 = 128 << 20;

    /// The default search in an atlas.
    pub fn new(atlas: PathBuf) -> SimilarParams {
        SimilarParams {
            atlas,
            search: Search::Resemblance { threshold: Search::THRESHOLD, filter: None, exact: false },
            clustering: Clustering::Centred,
            survivor: Survivor::First,
            measure_recall: true,
            for_report: false,
            commit_bytes: ScanParams::COMMIT_BYTES,
            pdf_worker: Vec::new(),
            memory: MemoryBudget::default_for_machine(),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        }
    }

    /// What can be said against them before there is an atlas.
    pub fn check(&self) -> Result<(), SimilarError> {
        TooLittleMemory::check(StageName::Similar, self.memory, SimilarParams::LEAST_MEMORY)?;
        match self.search {
            Search::Resemblance { threshold: share, .. } | Search::Paragraphs { share }
                if !(share > 0.0 && share <= 1.0) =>
            {
                let words = format!("the threshold is above 0 and at most 1, not {share}");
                Err(SimilarError::Parameters(words))
            }
            Search::Subcollections { iterations, of } if iterations == 0 || iterations > of => {
                let words =
                    format!("iterations are from 1 to {of}, the number of subcollections, not {iterations}");
                Err(SimilarError::Parameters(words))
            }
            // A level that is not complete would be taken for one that is.
            Search::Subcollections { .. } if self.for_report => {
                let words =
                    "the first iterations of a search give no level for reports\nhint: search without them";
                Err(SimilarError::Parameters(words.to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// The chunks that pairs are verified on.
    fn chunking_of(&self, atlas: &Atlas) -> Option<String> {
        match &self.search {
            Search::Exact => None,
            Search::Resemblance { .. } => {
                atlas.manifest().recipe.parse().ok().map(|recipe: Recipe| recipe.main().to_string())
            }
            Search::Overlap { chunking, .. } => Some(chunking.clone()),
            Search::Paragraphs { .. } | Search::Subcollections { .. } => Some("sp".to_owned()),
        }
    }

    /// Whether the atlas has the result of this very search.
    pub fn is_done(&self, atlas: &Atlas) -> Result<bool, SimilarError> {
        // What cannot be done was not done; doing it will tell why.
        let Ok(job) = Job::new(self, atlas) else { return Ok(false) };
        let is_found = if self.for_report {
            levels::is_known(&job)?
        } else {
            let record = atlas.record::<SimilarRecord>()?;
            record.is_some_and(|record| record.search == SearchRecord::new(&job))
        };
        Ok(is_found && stage::is_whole(&job, atlas))
    }
}

/// What was found.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(into = "summary::Fields")]
pub struct SimilarSummary {
    /// The directory of the atlas.
    pub atlas: PathBuf,
    /// What makes documents similar.
    pub method: Method,
    /// How pairs became clusters.
    pub cluster: Clustering,
    /// Documents of the atlas.
    pub documents: u64,
    /// Exact copies.
    pub exact: ExactStats,
    /// The filter that made the candidates, and what it was expected to find.
    pub filter: Option<FilterChoice>,
    /// Candidates by features.
    pub candidates: CandidateStats,
    /// Their verification.
    pub verified: VerifyStats,
    /// The exact join, where that was used instead.
    pub join: JoinStats,
    /// Similar pairs that are no exact copies.
    pub near_pairs: u64,
    /// Whether pairs were verified on texts that were read again, because the scan kept no
    /// shingles.
    pub texts_read_again: bool,
    /// What the sample says.
    pub recall: Option<Recall>,
    /// Shingle paragraphs: documents that are duplicates, by definition 2 and by percentages, and
    /// the steps it took.
    pub paragraphs: Option<ParagraphSummary>,
    /// The first iterations of a search by shingle paragraphs: what they found, and what the others
    /// would find.
    pub iterations: Option<IterationSummary>,
    /// Clusters.
    pub clusters: ClusterSummary,
    /// Whether the work of an earlier run was taken up.
    pub resumed: bool,
    /// Seconds this run took.
    pub seconds: f64,
    /// CPU seconds this run took.
    pub cpu_seconds: f64,
    /// The most memory that was resident, where the system tells.
    pub peak_memory: Option<u64>,
}

/// What the method of shingle paragraphs tells beside pairs (Pereira et al. 2006, tables 2 and 3).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParagraphSummary {
    /// Steps of the algorithm: subcollections whose table was in memory one at a time.
    pub steps: u64,
    /// Documents that have at least one paragraph.
    pub documents: u64,
    /// Duplicates by definition 2.
    pub duplicates: u64,
    /// Percentage, and documents that are near-duplicates at it, those above included.
    pub near: Vec<(u32, u64)>,
}

/// The order of the steps: what an earlier version has begun in another order is not resumed.
const STEPS: &str = "exact candidates pairs clusters recall";

/// Work files.
const COPIES: &str = "copies";
const CANDIDATES: &str = "candidates";
const CROWDS: &str = "crowds";
const NEAR: &str = "near";
const DUPLICATES: &str = "duplicates";
/// Where recall is measured on texts that are read again: neighbours are looked for among a half,
/// a quarter or an eighth of the documents, if these are at least so many.
const RECALL_DOCUMENTS: u64 = 32_768;
const MOST_HALVINGS: u32 = 3;
/// Tables and their readers, which do not grow.
const FIXED_BYTES: u64 = 64 << 20;

/// A similar pair in a work file: documents, shared, sizes.
pub(crate) type NearRecord = ((DocId, DocId), (u32, u32, u32));

fn near_record(pair: SharedPair) -> NearRecord {
    ((pair.a, pair.b), (pair.shared, pair.size_a, pair.size_b))
}

fn shared_pair(((a, b), (shared, size_a, size_b)): NearRecord) -> SharedPair {
    SharedPair { a, b, shared, size_a, size_b }
}

/// Finds the similar documents of an atlas, or resumes an interrupted run of the same search. Pairs
/// and clusters of an earlier search are replaced when this one is done.
pub fn similar(params: &SimilarParams, progress: &dyn Progress) -> Result<SimilarSummary, SimilarError> {
    params.check()?;
    let atlas = with_chunks(params, progress)?;
    let job = Job::new(params, &atlas)?;
    if let Some(texts) = &job.elsewhere {
        texts.check_inputs()?;
    }
    let done = stage::run(&job, progress)?;
    Ok(done.state.summary(&job, done.usage))
}

/// Opens the atlas and checks that the survivor rule fits it. Chunks of all documents are made
/// first if the search compares them and the atlas does not have them. For candidates alone, a few
/// texts are read again instead.
fn with_chunks(params: &SimilarParams, progress: &dyn Progress) -> Result<Atlas, SimilarError> {
    let atlas = Atlas::open(&params.atlas)?;
    params.survivor.check(&atlas)?;
    if matches!(params.search, Search::Resemblance { exact: false, .. }) {
        return Ok(atlas);
    }
    let chunking = params.chunking_of(&atlas).and_then(|name| name.parse::<Chunking>().ok());
    match chunking {
        Some(chunking) if !atlas.chunkings().contains(&ChunkingName::from(chunking)) => {
            let SimilarParams { commit_bytes, memory, threads, .. } = *params;
            let chunks = ChunksParams::new(params.atlas.clone(), vec![chunking]);
            let pdf_worker = params.pdf_worker.clone();
            let chunks = ChunksParams { commit_bytes, pdf_worker, memory, threads, ..chunks };
            make_chunks(&chunks, progress)?;
            Ok(Atlas::open(&params.atlas)?)
        }
        _ => Ok(atlas),
    }
}

/// What is to be done, checked against the atlas.
struct Job<'a> {
    params: &'a SimilarParams,
    atlas: &'a Atlas,
    documents: u64,
    /// The chunks that pairs are verified on.
    chunking: Option<ChunkingName>,
    /// The texts that they are made of when the scan did not keep them.
    elsewhere: Option<Reread>,
    filter: Option<FilterChoice>,
    /// How similar documents are told by their sketches, if the atlas has any.
    sift: Option<Sift>,
}

impl<'a> Job<'a> {
    fn new(params: &'a SimilarParams, atlas: &'a Atlas) -> Result<Job<'a>, SimilarError> {
        let manifest = atlas.manifest();
        let documents = atlas.rows(&TableName::Documents);
        let recipe: Recipe = manifest
            .recipe
            .parse()
            .map_err(|error| SimilarError::Parameters(format!("the recipe of the atlas: {error}")))?;
        let chunking = params.chunking_of(atlas);
        // Shingles can be made again from the texts, since there are few texts to be verified.
        let has = |name: &ChunkingName| atlas.chunkings().contains(name);
        let elsewhere = match (&params.search, chunking.as_deref().and_then(ChunkingName::new)) {
            (Search::Resemblance { .. }, Some(name)) if !has(&name) => {
                Some(Reread::new(params, atlas, &recipe)?)
            }
            _ => None,
        };
        let chunking = chunking
            .map(|name| {
                let known = ChunkingName::new(&name).filter(|name| elsewhere.is_some() || has(name));
                known.ok_or_else(|| SimilarError::Missing {
                    what: format!("chunks of {name}"),
                    method: format!("the method {}", params.search.method()),
                    recipe: manifest.recipe.clone(),
                    hint: format!(
                        "scan again with a recipe that keeps them, as in {}+{name}",
                        recipe.without_kept()
                    ),
                })
            })
            .transpose()?;
        let (filter, sift) = match params.search {
            Search::Resemblance { threshold, filter, exact: false } => {
                let filter = FilterChoice::new(atlas, &recipe, threshold, filter)?;
                (Some(filter), Sift::of(atlas, &recipe, threshold))
            }
            _ => (None, None),
        };
        Ok(Job { params, atlas, documents, chunking, elsewhere, filter, sift })
    }

    /// Everything that decides the bytes of the result: parameters, and the tables it is made from.
    fn identity(&self) -> Value {
        let inputs: Vec<Value> = self
            .atlas
            .manifest()
            .tables
            .iter()
            .filter(|(name, _)| {
                use TableName::{Chunks, Documents, Features, Links, Sites, Sketches};
                matches!(name, Documents | Sites | Links | Sketches | Features)
                    || matches!(name, Chunks(chunking) if self.chunking.as_ref() == Some(chunking))
            })
            .flat_map(|(_, table)| {
                table.files.iter().map(|file| json!(format!("{}:{:016x}", file.path, file.xxh3)))
            })
            .collect();
        let mut identity = serde_json::to_value(SearchRecord::new(self)).unwrap_or_default();
        identity["inputs"] = Value::Array(inputs);
        identity["steps"] = json!(STEPS);
        identity["for_report"] = json!(self.params.for_report);
        identity
    }

    /// The levels that are noted for reports.
    fn levels(&self) -> Vec<LevelName> {
        levels::all(&self.params.search, self.chunking.as_ref().map(ChunkingName::as_str))
    }

    fn resources(&self, staging: &Staging) -> Resources {
        let memory = self.params.memory.bytes();
        let memory = MemoryBudget::from_bytes((memory - FIXED_BYTES.min(memory / 2)) / 10 * 9);
        Resources { memory, threads: self.params.threads.max(1), work_dir: staging.work_dir() }
    }
}

impl Stage for Job<'_> {
    const NAME: StageName = StageName::Similar;
    const LEAST_MEMORY: u64 = SimilarParams::LEAST_MEMORY;
    type State = State;
    type Error = SimilarError;

    fn place(&self) -> (&Path, MemoryBudget) {
        (&self.params.atlas, self.params.memory)
    }

    fn staging(&self) -> StageParams {
        let mut tables: Vec<Table> = self.levels().into_iter().map(Table::Copies).collect();
        let recipe = &self.atlas.manifest().recipe;
        let mut voids = Vec::new();
        if !self.params.for_report {
            tables.extend([Table::Pairs, Table::Clusters, Table::ClusterStats]);
            voids.extend(Table::MIRRORS);
        }
        let stage = StageParams::new(StageName::Similar, self.identity(), recipe, tables);
        StageParams { kind: StageKind::Extend, overwrite: true, voids, ..stage }
    }

    fn begin(&self) -> State {
        State::default()
    }

    fn steps(&self) -> Vec<Step<'_, Self>> {
        vec![
            Step::new("finding exact copies", |work| Run(work).find_exact()),
            Step::new("finding candidates", |work| Run(work).find_candidates()),
            Step::new("verifying pairs", |work| Run(work).find_pairs()),
            Step::new("making clusters", |work| Run(work).make_tables()),
            Step::new("measuring recall", |work| Run(work).measure_recall()),
        ]
    }

    fn describe(&self, state: &State, manifest: &mut Manifest) {
        for level in self.levels() {
            manifest.stages.set_level(&level, &levels::described(&level, self, state));
        }
        if self.params.for_report {
            return;
        }
        manifest.stages.set(&SimilarRecord { search: SearchRecord::new(self), found: state.found() });
        if !manifest.tables.contains_key(&TableName::Collections) {
            manifest.stages.remove(StageName::Collections);
            manifest.counts.retain(|name, _| !name.starts_with("collections."));
        }
        for (name, count) in [
            ("similar.exact_copies", state.exact.copies),
            ("similar.near_pairs", state.near_pairs),
            ("similar.clusters", state.clusters.clusters),
            ("similar.clustered_documents", state.clusters.documents),
        ] {
            manifest.counts.insert(name.to_owned(), count);
        }
    }

    fn cost_of(&self) -> String {
        levels::own(&self.params.search, self.chunking.as_ref().map(ChunkingName::as_str))
    }
}

/// The steps of a search.
struct Run<'w, 'a, 'j>(&'w mut Work<'a, Job<'j>>);

impl Run<'_, '_, '_> {
    fn resources(&self) -> Resources {
        self.0.stage.resources(&self.0.staging)
    }

    fn find_exact(&mut self) -> Result<(), SimilarError> {
        let resources = self.resources();
        let staging = &mut self.0.staging;
        self.0.state.exact = exact_copies(self.0.stage.atlas, &resources, |doc, centre| {
            Ok(staging.raw::<(DocId, DocId)>(COPIES)?.push(&(doc, centre))?)
        })?;
        Ok(())
    }

    /// One bit for every document that is a copy of another.
    fn folded(&self) -> Result<Arc<Bits>, SimilarError> {
        let mut folded = Bits::new(self.0.stage.documents);
        for copy in self.0.staging.raw_records::<(DocId, DocId)>(COPIES) {
            folded.set(copy?.0);
        }
        Ok(Arc::new(folded))
    }

    fn sets(&self) -> Result<Option<ChunkSets>, SimilarError> {
        let sets = match (&self.0.stage.elsewhere, &self.0.stage.chunking) {
            (Some(elsewhere), Some(_)) => ChunkSets::from_source(elsewhere.sets(&self.resources())),
            (None, Some(chunking)) => ChunkSets::of_atlas(self.0.stage.atlas, chunking)?,
            (_, None) => return Ok(None),
        };
        Ok(Some(sets.without(self.folded()?)))
    }

    fn find_candidates(&mut self) -> Result<(), SimilarError> {
        let Some(filter) = &self.0.stage.filter else { return Ok(()) };
        let resources = self.resources();
        let folded = self.folded()?;
        let mut met = Candidates::new(self.0.stage.documents, &resources.share(1, 8))?;
        let staging = &mut self.0.staging;
        let mut crowd = |doc| Ok(staging.raw::<DocId>(CROWDS)?.push(&doc)?);
        self.0.state.candidates = filter::find(
            self.0.stage,
            filter,
            &folded,
            &resources.share(3, 4),
            &mut |a, b| met.push(a, b),
            &mut crowd,
        )?;
        let mut keep = |a: DocId, b: DocId| Ok(staging.raw::<(DocId, DocId)>(CANDIDATES)?.push(&(a, b))?);
        match filter.sift {
            Some(sift) => {
                let sifted = filter::sift(self.0.stage.atlas, sift, met, &resources.share(3, 4), &mut keep)?;
                self.0.state.candidates.spilled_bytes += sifted.spilled_bytes;
                self.0.state.candidates.met = sifted.candidates;
            }
            None => self.0.state.candidates.met = met.for_each(&mut keep)?,
        }
        Ok(())
    }

    fn find_pairs(&mut self) -> Result<(), SimilarError> {
        let (Some(sets), Some(bound)) = (self.sets()?, self.0.stage.params.search.bound()) else {
            return Ok(());
        };
        let resources = self.resources();
        let sort = SortParams::new(&resources.work_dir, resources.memory.share(1, 8));
        let mut near = Sorter::<NearRecord>::new(sort)?;
        let mut emit = |pair: SharedPair| Ok(near.push(near_record(pair))?);
        let documents = self.0.stage.documents;
        match &self.0.stage.params.search {
            Search::Exact => {}
            Search::Resemblance { exact: false, .. } => {
                let mut candidates = Candidates::new(documents, &resources.share(1, 8))?;
                for pair in self.0.staging.raw_records::<(DocId, DocId)>(CANDIDATES) {
                    let (a, b) = pair?;
                    candidates.push(a, b)?;
                }
                let verified =
                    count_shared(&sets, candidates, Some(bound), &resources.share(3, 4), &mut emit)?;
                self.0.state.verified = verified;
            }
            Search::Resemblance { .. } => {
                self.0.state.join =
                    join(&sets, documents, bound, Engine::Prefix, &resources.share(7, 8), &mut emit)?;
            }
            Search::Overlap { engine, .. } => {
                self.0.state.join =
                    join(&sets, documents, bound, *engine, &resources.share(7, 8), &mut emit)?;
            }
            Search::Paragraphs { share } => {
                let staging = &mut self.0.staging;
                let mut equal = |pair: SharedPair| {
                    Ok(staging.raw::<(DocId, DocId)>(DUPLICATES)?.push(&(pair.b, pair.a))?)
                };
                let resources = resources.share(7, 8);
                let found = tables::paragraphs(&sets, documents, *share, &resources, &mut equal, &mut emit)?;
                self.0.state.paragraphs = Some(found);
            }
            Search::Subcollections { iterations, of } => {
                let deal = iterations::Deal::new(*iterations, *of, self.0.stage.atlas.manifest().seed);
                let copies = || self.0.staging.raw_records::<(DocId, DocId)>(COPIES);
                let resources = resources.share(7, 8);
                let found = iterations::search(&sets, documents, deal, &copies, &resources, &mut emit)?;
                self.0.state.iterations = Some(found);
            }
        }
        let near = near.finish()?;
        for pair in near {
            self.0.staging.raw::<NearRecord>(NEAR)?.push(&pair?)?;
            self.0.state.near_pairs += 1;
        }
        Ok(())
    }

    fn measure_recall(&mut self) -> Result<(), SimilarError> {
        let Job { params, atlas, documents, filter, elsewhere, sift, .. } = self.0.stage;
        let (Some(_), Some(sets), Some(bound)) = (filter, self.sets()?, params.search.bound()) else {
            return Ok(());
        };
        if !params.measure_recall {
            return Ok(());
        }
        let (near, candidates) = (self.0.staging.raw_files(NEAR), self.0.staging.raw_files(CANDIDATES));
        let clusters = self.0.staging.files(&TableName::Clusters);
        let pairs = || near_pairs(&near);
        let members = || Ok(members(&clusters));
        let has_clusters = !params.for_report;
        let found = Found { pairs: &pairs, members: if has_clusters { Some(&members) } else { None } };
        let seed = atlas.manifest().seed;
        let net = sift.and_then(|sift| Some((sift, Threshold::new(sift.least)?)));
        let recall = match net {
            Some((sift, least)) if elsewhere.is_some() => {
                let sketches = filter::sketch_sets(atlas, sift).without(self.folded()?);
                let verified = || {
                    let pairs = RawRecords::<(DocId, DocId)>::new(candidates.clone());
                    Ok(Box::new(pairs.map(|pair| pair.map_err(SimilarError::from))) as Box<_>)
                };
                let net = Net { sketches: &sketches, least, verified: &verified };
                let resources = self.resources();
                recall::measure_by_sketches(&net, &sets, *documents, bound, seed, found, &resources)?
            }
            // Texts are read again: those of a part of the documents are enough.
            None if elsewhere.is_some() => {
                let halvings = (documents / RECALL_DOCUMENTS).checked_ilog2().unwrap_or(0);
                recall::measure(&sets, *documents, bound, seed, found, halvings.min(MOST_HALVINGS))?
            }
            _ => recall::measure(&sets, *documents, bound, seed, found, 0)?,
        };
        self.0.state.recall = Some(recall);
        Ok(())
    }

    fn make_tables(&mut self) -> Result<(), SimilarError> {
        let resources = self.resources();
        let sets = self.sets()?;
        self.0.state.clusters = tables::write(&mut self.0.staging, self.0.stage, sets.as_ref(), &resources)?;
        Ok(())
    }
}

fn near_pairs<'a>(files: &[PathBuf]) -> Result<crate::cluster::Rows<'a, SharedPair>, SimilarError> {
    let records = RawRecords::<NearRecord>::new(files.to_vec());
    Ok(Box::new(records.map(|record| record.map(shared_pair).map_err(SimilarError::from))))
}

/// The members of clusters that are not published yet.
fn members(files: &[PathBuf]) -> crate::cluster::Rows<'static, ClusterRow> {
    let rows = ClustersReader::new(files.to_vec());
    Box::new(rows.map(|row| row.map_err(SimilarError::from)))
}

#[cfg(test)]
mod tests;
