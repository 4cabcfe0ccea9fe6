//! The search for mirrors: from similar pages and links to replicated collections.
//!
//! Steps, each committed when it is done:
//!
//! ```text
//! 1 trivial      pairs (or clusters) ─▶ the trivial cluster of every document that has copies
//! 2 components   links, counted by sorting ─▶ trivial clusters that come together; sites that link to each page
//! 3 collections  components, some at a time ─▶ groups, replicas, pages: described and written
//! 4 url rules    documents ─▶ rewritings of addresses under which pages stay the same
//! ```
//!
//! Step 2 keeps some forty bytes a document in memory; links are read from front to back and counted by sorts that spill. Step 3 takes as many
//! components at a time as fit, each whole; which ones are taken together changes nothing.

pub(crate) mod assemble;
mod check;
pub(crate) mod nearby;
pub(crate) mod pages;
mod rules;
pub(crate) mod trivial;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use crate::Merge;
use crate::component::{self, NONE, Web};
use crate::grow::Growth;
use onionskin_similar::{Resources, SimilarError};
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::staging::StageKind;
use onionskin_store::{Atlas, MemoryBudget, StageParams, Staging, Table, process};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use check::{CheckReport, check_collections};
use onionskin_store::costs::{self, Cost};
use onionskin_store::progress::{Event, Progress};
pub use trivial::Trivial;

/// What to search, and how. The first group decides the result; the second only speed.
#[derive(Clone, Debug)]
pub struct CollectionsParams {
    /// The folder of the atlas.
    pub atlas: PathBuf,
    /// When trivial clusters grow together.
    pub merge: Merge,
    /// Whether every replica keeps to one site.
    pub single_site: bool,
    /// What makes a trivial cluster.
    pub trivial: Trivial,
    /// Whether to learn rewritings of addresses.
    pub url_rules: bool,

    /// Memory for everything.
    pub memory: MemoryBudget,
    /// Threads.
    pub threads: usize,
    /// Memory for the components that are worked on at a time, instead of what is left. For tests.
    pub batch_bytes: Option<u64>,
}

impl CollectionsParams {
    /// The least memory a search works with.
    pub const LEAST_MEMORY: u64 = 64 << 20;

    /// The default search in an atlas.
    pub fn new(atlas: PathBuf) -> CollectionsParams {
        CollectionsParams {
            atlas,
            merge: Merge::Tolerant,
            single_site: true,
            trivial: Trivial::Transitive,
            url_rules: true,
            memory: MemoryBudget::default_for_machine(),
            threads: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            batch_bytes: None,
        }
    }

    /// Whether the atlas has the result of this very search.
    pub fn is_done(&self, atlas: &Atlas) -> bool {
        let Some(Value::Object(done)) = atlas.manifest().stages.get("collections") else { return false };
        let mut done = done.clone();
        done.remove("found");
        let tables = ["collections", "collection_pages", "collection_groups", "url_rules"];
        Value::Object(done) == description(self) && tables.iter().all(|table| atlas.has(table))
    }
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct CollectionsSummary {
    /// Documents of the atlas.
    pub documents: u64,
    /// Links between them.
    pub links: u64,
    /// What was counted on the way.
    pub counts: Counts,
    /// Whether the work of an earlier run was taken up.
    pub resumed: bool,
    /// Seconds this run took.
    pub seconds: f64,
    /// Seconds of processor time this run took.
    pub cpu_seconds: f64,
    /// The most memory that was resident, where the system tells.
    pub peak_memory: Option<u64>,
}

/// Numbers of a search for mirrors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Counts {
    /// Trivial clusters of two documents and more.
    pub trivial_clusters: u64,
    /// Documents in them.
    pub clustered_documents: u64,
    /// Links that the condition looks at.
    pub counted_links: u64,
    /// Pairs of clusters that are linked.
    pub linked_pairs: u64,
    /// Pairs that the condition holds for.
    pub edges: u64,
    /// Components that were joined across break points.
    pub bridged: u64,
    /// Components of two clusters and more.
    pub components: u64,
    /// Collections that are replicated.
    pub groups: u64,
    /// Of these, those of fewer than ten pages.
    pub noise_groups: u64,
    /// Their replicas, principals included.
    pub replicas: u64,
    /// Pages of all replicas.
    pub pages: u64,
    /// Copies outside the principals: what a crawler can spare. Noise is not counted.
    pub duplicate_pages: u64,
    /// Their bytes.
    pub duplicate_bytes: u64,
    /// Groups by kind, noise left out where the kind says it.
    pub kinds: BTreeMap<String, u64>,
    /// Rewritings of addresses.
    pub url_rules: u64,
}

/// Work files.
const TRIVIAL: &str = "trivial";
const MEMBERS: &str = "members";
const LINKED: &str = "linked";
/// Tables and their readers, which do not grow.
const FIXED_BYTES: u64 = 32 << 20;

/// Finds the replicated collections of an atlas, or goes on where an earlier run of the same search was stopped. Collections of an earlier
/// search are replaced when this one is done.
pub fn collections(
    params: &CollectionsParams,
    progress: &dyn Progress,
) -> Result<CollectionsSummary, SimilarError> {
    let begun = (Instant::now(), process::cpu_seconds());
    let least = MemoryBudget::from_bytes(CollectionsParams::LEAST_MEMORY);
    if params.memory < least {
        return Err(SimilarError::TooLittleMemory { given: params.memory, least });
    }
    if params.merge == Merge::Tolerant && !params.single_site {
        let words = "tolerant merging needs replicas on single sites\nhint: --merge extended or strict go with --any-site";
        return Err(SimilarError::Parameters(words.to_owned()));
    }
    let atlas = Atlas::open(&params.atlas)?;
    for (table, stage) in [("links", "scan"), (params.trivial.table(), "similar")] {
        if !atlas.has(table) {
            return Err(SimilarError::Missing {
                what: format!("table {table}"),
                method: "the search for mirrors".to_owned(),
                recipe: atlas.manifest().recipe.clone(),
                hint: format!("run onionskin {stage} first"),
            });
        }
    }
    let documents = atlas.manifest().tables.get("documents").map_or(0, |table| table.rows);
    let needed = documents.saturating_mul(Web::BYTES_A_DOCUMENT) * 3 / 2 + FIXED_BYTES;
    if needed > params.memory.bytes() {
        let least = MemoryBudget::from_bytes(needed);
        return Err(SimilarError::TooLittleMemory { given: params.memory, least });
    }
    let recipe = &atlas.manifest().recipe;
    let mut stage =
        StageParams::new("collections", identity(params, &atlas), recipe, Table::MIRRORS.to_vec());
    stage.kind = StageKind::Extend;
    stage.overwrite = true;
    let (staging, checkpoint) = Staging::open(&params.atlas, stage)?;
    let state = match checkpoint {
        None => State::default(),
        Some(checkpoint) => serde_json::from_value(checkpoint.state).map_err(|error| {
            SimilarError::Parameters(format!("the unfinished search was left by another version: {error}"))
        })?,
    };
    let resumed = state.step > 0;
    let mut run = Run { params, atlas: &atlas, documents, staging, state, progress };
    run.go()?;
    let counts = run.publish()?;
    let summary = CollectionsSummary {
        documents,
        links: atlas.manifest().tables.get("links").map_or(0, |table| table.rows),
        counts,
        resumed,
        seconds: begun.0.elapsed().as_secs_f64(),
        cpu_seconds: process::cpu_seconds() - begun.1,
        peak_memory: process::peak_rss(),
    };
    let cost = Cost {
        stage: "collections".to_owned(),
        of: params.merge.as_str().to_owned(),
        seconds: summary.seconds,
        cpu_seconds: summary.cpu_seconds,
        peak_memory: summary.peak_memory,
        resumed,
    };
    costs::record(&params.atlas, &cost, false);
    tracing::info!(stage = "collections", groups = summary.counts.groups, "stage done");
    Ok(summary)
}

/// Everything that decides the bytes of the result.
fn identity(params: &CollectionsParams, atlas: &Atlas) -> Value {
    let inputs: Vec<Value> = ["documents", "sites", "links", params.trivial.table()]
        .iter()
        .filter_map(|name| atlas.manifest().tables.get(*name))
        .flat_map(|table| table.files.iter().map(|file| json!(format!("{}:{:016x}", file.path, file.xxh3))))
        .collect();
    let mut identity = description(params);
    identity["inputs"] = Value::Array(inputs);
    identity
}

/// For the manifest.
fn description(params: &CollectionsParams) -> Value {
    json!({
        "merge": params.merge.as_str(),
        "single_site": params.single_site,
        "trivial": params.trivial.as_str(),
        "url_rules": params.url_rules,
    })
}

/// What a search must know to go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Steps that are done.
    step: u32,
    counts: Counts,
}

type StepFn<R> = fn(&mut R) -> Result<(), SimilarError>;

struct Run<'a> {
    params: &'a CollectionsParams,
    atlas: &'a Atlas,
    documents: u64,
    staging: Staging,
    state: State,
    progress: &'a dyn Progress,
}

impl Run<'_> {
    fn growth(&self) -> Growth {
        Growth { merge: self.params.merge, single_site: self.params.single_site }
    }

    /// What is left beside `held` bytes a document.
    fn resources(&self, held: u64) -> Resources {
        let held = FIXED_BYTES + self.documents.saturating_mul(held);
        let memory = self.params.memory.bytes().saturating_sub(held).max(FIXED_BYTES);
        Resources {
            memory: MemoryBudget::from_bytes(memory / 10 * 9),
            threads: self.params.threads.max(1),
            work_dir: self.staging.work_dir(),
        }
    }

    fn go(&mut self) -> Result<(), SimilarError> {
        let steps: [(&'static str, StepFn<Self>); 4] = [
            ("gathering similar pages", Run::find_trivial),
            ("counting links", Run::find_components),
            ("assembling collections", Run::assemble),
            ("learning rewrite rules", Run::learn_rules),
        ];
        for (number, (name, step)) in (1..).zip(steps) {
            if self.state.step < number {
                self.progress.event(Event::Step { name });
                step(self)?;
                self.state.step = number;
                let state = serde_json::to_value(&self.state)
                    .map_err(|error| SimilarError::Parameters(error.to_string()))?;
                self.staging.commit(state)?;
            }
        }
        Ok(())
    }

    fn find_trivial(&mut self) -> Result<(), SimilarError> {
        let resources = self.resources(0);
        let staging = &mut self.staging;
        let mut clustered = 0;
        let mut clusters = 0;
        trivial::find(self.atlas, self.params.trivial, self.documents, &resources, |doc, least| {
            clustered += 1;
            clusters += u64::from(doc == least);
            Ok(staging.raw::<(u32, u32)>(TRIVIAL)?.push(&(doc, least))?)
        })?;
        self.state.counts.trivial_clusters = clusters;
        self.state.counts.clustered_documents = clustered;
        Ok(())
    }

    /// Clusters and sites of all documents.
    fn web(&self) -> Result<Web, SimilarError> {
        let mut sites = vec![NONE; usize::try_from(self.documents).unwrap_or(usize::MAX)];
        for batch in self.atlas.documents()?.only(&["site"]) {
            for row in batch?.rows() {
                *dense(&mut sites, row.doc)? = row.site.unwrap_or(NONE);
            }
        }
        let mut failed = None;
        let trivial = self.staging.raw_records::<(u32, u32)>(TRIVIAL);
        let clustered = trivial.map_while(|record| match record {
            Ok(record) => Some(record),
            Err(error) => {
                failed = Some(error);
                None
            }
        });
        let web = Web::new(sites, clustered);
        match failed {
            Some(error) => Err(error.into()),
            None => Ok(web),
        }
    }

    fn find_components(&mut self) -> Result<(), SimilarError> {
        let web = self.web()?;
        let resources = self.resources(Web::BYTES_A_DOCUMENT);
        let atlas = self.atlas;
        let links = || open_links(atlas, web.documents());
        let found = component::components(&web, &links, self.growth(), &resources)?;
        let counts = &mut self.state.counts;
        counts.counted_links = found.summary.links;
        counts.linked_pairs = found.summary.pairs;
        counts.edges = found.edges;
        counts.bridged = found.bridged;
        counts.components = found.components;
        for doc in 0..web.documents() {
            let component = found.component(web.cluster(doc));
            if component != NONE {
                self.staging.raw::<(u32, u32)>(MEMBERS)?.push(&(doc, component))?;
            }
        }
        // How many other sites link to each page that may become a root.
        let sort = SortParams::new(&resources.work_dir, resources.memory).dedup();
        let mut linked = Sorter::<(u32, u32)>::new(sort)?;
        for link in links()? {
            let (source, destination) = link?;
            let (from, to) = (web.site(source), web.site(destination));
            if from != to && from != NONE && found.component(web.cluster(destination)) != NONE {
                linked.push((destination, from))?;
            }
        }
        let mut current: Option<(u32, u32)> = None;
        for entry in linked.finish()? {
            let (doc, _) = entry?;
            match &mut current {
                Some((at, n)) if *at == doc => *n += 1,
                _ => {
                    if let Some(done) = current.replace((doc, 1)) {
                        self.staging.raw::<(u32, u32)>(LINKED)?.push(&done)?;
                    }
                }
            }
        }
        if let Some(done) = current {
            self.staging.raw::<(u32, u32)>(LINKED)?.push(&done)?;
        }
        Ok(())
    }

    fn assemble(&mut self) -> Result<(), SimilarError> {
        assemble::run(self)
    }

    fn learn_rules(&mut self) -> Result<(), SimilarError> {
        if self.params.url_rules {
            let web = self.web()?;
            let resources = self.resources(16);
            self.state.counts.url_rules = rules::learn(self.atlas, &web, &resources, &mut self.staging)?;
        }
        Ok(())
    }

    fn publish(self) -> Result<Counts, SimilarError> {
        let mut described = description(self.params);
        let counts = self.state.counts;
        described["found"] =
            serde_json::to_value(&counts).map_err(|error| SimilarError::Parameters(error.to_string()))?;
        let manifest_counts = [
            ("collections.groups", counts.groups),
            ("collections.replicas", counts.replicas),
            ("collections.pages", counts.pages),
        ];
        self.staging.publish(|manifest| {
            manifest.stages.insert("collections".to_owned(), described);
            for (name, count) in manifest_counts {
                manifest.counts.insert(name.to_owned(), count);
            }
        })?;
        Ok(counts)
    }
}

/// The place of a document in a list of all; numbers that are not dense, which only another program can have written, are an error.
fn dense<T>(list: &mut [T], doc: u32) -> Result<&mut T, SimilarError> {
    let documents = list.len();
    let words = || format!("documents: number {doc}, but there are {documents}");
    list.get_mut(doc as usize).ok_or_else(|| SimilarError::Parameters(words()))
}

/// Links as source and destination.
pub(crate) type Links<'a> = Box<dyn Iterator<Item = Result<(u32, u32), SimilarError>> + 'a>;

/// The links of an atlas; those that lead out of its documents, which only another program can have written, are an error.
fn open_links(atlas: &Atlas, documents: u32) -> Result<Links<'_>, SimilarError> {
    Ok(Box::new(atlas.links()?.map(move |link| {
        let (source, destination) = link?;
        if source.max(destination) >= documents {
            let words = format!("links: {source} to {destination}, but the atlas has {documents} documents");
            return Err(SimilarError::Parameters(words));
        }
        Ok((source, destination))
    })))
}

#[cfg(test)]
mod tests;
