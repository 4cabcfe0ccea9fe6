//! The search for mirrors: from similar pages and links to replicated collections.
//!
//! Steps, each committed when it is done:
//!
//! ```text
//! 1 trivial      pairs (or clusters) ─▶ the trivial cluster of every document that has copies
//! 2 components   links, counted by sorting ─▶ trivial clusters that come together; who links to each page
//! 3 collections  components, some at a time ─▶ groups, replicas, pages: described and written
//! 4 url rules    documents ─▶ rewritings of addresses under which pages stay the same
//! ```
//!
//! Step 2 keeps some forty bytes per document in memory; links are read from front to back and
//! counted by sorts that spill. Step 3 takes as many components at a time as fit, each whole; which
//! ones are taken together changes nothing.

pub(crate) mod assemble;
mod check;
pub(crate) mod nearby;
pub(crate) mod pages;
mod rules;
pub(crate) mod trivial;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::Merge;
use crate::component::{self, Web};
use crate::grow::Growth;
use onionskin_core::{DocId, Packed, SiteId};
use onionskin_similar::{Resources, SimilarError};
use onionskin_store::join::SortedCursor;
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::stage::{self, Done, Step, Work};
use onionskin_store::staging::StageKind;
use onionskin_store::table::{CollectionGroupRow, CollectionRow, document};
use onionskin_store::{
    Atlas, Manifest, MemoryBudget, Progress, Stage, StageName, StageParams, StageRecord, Table, TableName,
    TooLittleMemory,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use pages::Sites;

pub use check::{CheckReport, Violation, check_collections};
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
    pub fn is_done(&self, atlas: &Atlas) -> Result<bool, SimilarError> {
        let record = atlas.record::<CollectionsRecord>()?;
        let asked = record.is_some_and(|record| record.search == Some(SearchRecord::new(self)));
        Ok(asked && stage::is_whole(&Job { params: self, atlas, documents: 0 }, atlas))
    }
}

/// What the manifest records of a search for mirrors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CollectionsRecord {
    /// What was asked for.
    #[serde(flatten)]
    pub search: Option<SearchRecord>,
    /// What was found.
    #[serde(default)]
    pub found: Counts,
}

impl StageRecord for CollectionsRecord {
    const STAGE: StageName = StageName::Collections;
}

/// Everything that decides the result of a search for mirrors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// When trivial clusters grow together.
    pub merge: Merge,
    /// Whether every replica keeps to one site.
    pub single_site: bool,
    /// What makes a trivial cluster.
    pub trivial: Trivial,
    /// Whether URL normalisation rules were learned.
    pub url_rules: bool,
}

impl SearchRecord {
    fn new(params: &CollectionsParams) -> SearchRecord {
        let CollectionsParams { merge, single_site, trivial, url_rules, .. } = *params;
        SearchRecord { merge, single_site, trivial, url_rules }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CollectionsSummary {
    /// The directory of the atlas.
    #[serde(serialize_with = "onionskin_store::json::path")]
    pub atlas: PathBuf,
    /// When pages grew together.
    #[serde(serialize_with = "onionskin_store::json::spelled")]
    pub merge: Merge,
    /// Whether a replica is on one site.
    pub single_site: bool,
    /// Documents of the atlas.
    pub documents: u64,
    /// Links between them.
    pub links: u64,
    /// What was counted on the way.
    #[serde(flatten)]
    pub counts: Counts,
    /// Whether the work of an earlier run was taken up.
    pub resumed: bool,
    /// Seconds this run took.
    pub seconds: f64,
    /// CPU seconds this run took.
    pub cpu_seconds: f64,
    /// The most memory that was resident, where the system tells.
    pub peak_memory: Option<u64>,
}

/// A collection and its replicas, as the tables have them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Collection {
    /// The collection as a whole.
    #[serde(flatten)]
    pub group: CollectionGroupRow,
    /// Its replicas.
    pub members: Vec<CollectionRow>,
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
const VOTES: &str = "votes";
/// Tables and their readers, which do not grow.
const FIXED_BYTES: u64 = 32 << 20;

/// Finds the replicated collections of an atlas, or resumes an interrupted run of the same search.
/// Collections of an earlier search are replaced when this one is done.
pub fn collections(
    params: &CollectionsParams,
    progress: &dyn Progress,
) -> Result<CollectionsSummary, SimilarError> {
    TooLittleMemory::check(StageName::Collections, params.memory, CollectionsParams::LEAST_MEMORY)?;
    if params.merge == Merge::Tolerant && !params.single_site {
        return Err(SimilarError::TolerantAnySite);
    }
    let atlas = Atlas::open(&params.atlas)?;
    for (table, stage) in [(TableName::Links, "scan"), (params.trivial.table(), "similar")] {
        if !atlas.has(&table) {
            return Err(SimilarError::Missing {
                what: format!("table {table}"),
                method: "the search for mirrors".to_owned(),
                recipe: atlas.manifest().recipe.clone(),
                hint: format!("run onionskin {stage} first"),
            });
        }
    }
    let documents = atlas.rows(&TableName::Documents);
    let needed = documents.saturating_mul(Web::BYTES_A_DOCUMENT) * 3 / 2 + FIXED_BYTES;
    TooLittleMemory::check(StageName::Collections, params.memory, needed)?;
    let job = Job { params, atlas: &atlas, documents };
    let Done { state, usage } = stage::run(&job, progress)?;
    Ok(CollectionsSummary {
        atlas: params.atlas.clone(),
        merge: params.merge,
        single_site: params.single_site,
        documents,
        links: atlas.rows(&TableName::Links),
        counts: state.counts,
        resumed: usage.resumed,
        seconds: usage.seconds,
        cpu_seconds: usage.cpu_seconds,
        peak_memory: usage.peak_memory,
    })
}

/// What a search must know to go on.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    counts: Counts,
}

/// What is to be done, checked against the atlas.
struct Job<'a> {
    params: &'a CollectionsParams,
    atlas: &'a Atlas,
    documents: u64,
}

impl Job<'_> {
    /// Everything that decides the bytes of the result.
    fn identity(&self) -> Value {
        let names = [TableName::Documents, TableName::Sites, TableName::Links, self.params.trivial.table()];
        let tables = names.iter().filter_map(|name| self.atlas.manifest().tables.get(name));
        let files = tables.flat_map(|table| &table.files);
        let inputs = files.map(|file| json!(format!("{}:{:016x}", file.path, file.xxh3))).collect();
        let mut identity = serde_json::to_value(SearchRecord::new(self.params)).unwrap_or_default();
        identity["inputs"] = Value::Array(inputs);
        identity
    }

    fn growth(&self) -> Growth {
        Growth { merge: self.params.merge, single_site: self.params.single_site }
    }
}

impl Stage for Job<'_> {
    const NAME: StageName = StageName::Collections;
    const LEAST_MEMORY: u64 = CollectionsParams::LEAST_MEMORY;
    type State = State;
    type Error = SimilarError;

    fn place(&self) -> (&Path, MemoryBudget) {
        (&self.params.atlas, self.params.memory)
    }

    fn staging(&self) -> StageParams {
        let recipe = &self.atlas.manifest().recipe;
        let tables = Table::MIRRORS.to_vec();
        let stage = StageParams::new(StageName::Collections, self.identity(), recipe, tables);
        StageParams { kind: StageKind::Extend, overwrite: true, ..stage }
    }

    fn begin(&self) -> State {
        State::default()
    }

    fn steps(&self) -> Vec<Step<'_, Self>> {
        vec![
            Step::new("gathering similar pages", |work| Run(work).find_trivial()),
            Step::new("counting links", |work| Run(work).find_components()),
            Step::new("assembling collections", |work| assemble::run(&mut Run(work))),
            Step::new("learning rewrite rules", |work| Run(work).learn_rules()),
        ]
    }

    fn describe(&self, state: &State, manifest: &mut Manifest) {
        let counts = &state.counts;
        let search = Some(SearchRecord::new(self.params));
        manifest.stages.set(&CollectionsRecord { search, found: counts.clone() });
        for (name, count) in [
            ("collections.groups", counts.groups),
            ("collections.replicas", counts.replicas),
            ("collections.pages", counts.pages),
        ] {
            manifest.counts.insert(name.to_owned(), count);
        }
    }

    fn cost_of(&self) -> String {
        self.params.merge.to_string()
    }
}

/// The steps of a search.
struct Run<'w, 'a, 'j>(&'w mut Work<'a, Job<'j>>);

impl Run<'_, '_, '_> {
    /// What is left beside `held` bytes per document.
    fn resources(&self, held: u64) -> Resources {
        let Job { params, documents, .. } = self.0.stage;
        let held = FIXED_BYTES + documents.saturating_mul(held);
        let memory = params.memory.bytes().saturating_sub(held).max(FIXED_BYTES);
        Resources {
            memory: MemoryBudget::from_bytes(memory / 10 * 9),
            threads: params.threads.max(1),
            work_dir: self.0.staging.work_dir(),
        }
    }

    fn find_trivial(&mut self) -> Result<(), SimilarError> {
        let resources = self.resources(0);
        let staging = &mut self.0.staging;
        let mut clustered = 0;
        let mut clusters = 0;
        trivial::find(
            self.0.stage.atlas,
            self.0.stage.params.trivial,
            self.0.stage.documents,
            &resources,
            |doc, least| {
                clustered += 1;
                clusters += u64::from(doc == least);
                Ok(staging.raw::<(DocId, DocId)>(TRIVIAL)?.push(&(doc, least))?)
            },
        )?;
        self.0.state.counts.trivial_clusters = clusters;
        self.0.state.counts.clustered_documents = clustered;
        Ok(())
    }

    /// Clusters and sites of all documents.
    fn web(&self) -> Result<Web, SimilarError> {
        let mut sites = vec![Packed::NONE; usize::try_from(self.0.stage.documents).unwrap_or(usize::MAX)];
        for batch in self.0.stage.atlas.documents()?.select::<(document::Doc, document::Site)>() {
            for (doc, site) in batch?.rows() {
                *dense(&mut sites, doc)? = site.into();
            }
        }
        let mut failed = None;
        let trivial = self.0.staging.raw_records::<(DocId, DocId)>(TRIVIAL);
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
        let atlas = self.0.stage.atlas;
        let links = || open_links(atlas, web.documents());
        let found = component::components(&web, &links, self.0.stage.growth(), &resources)?;
        let counts = &mut self.0.state.counts;
        counts.counted_links = found.summary.links;
        counts.linked_pairs = found.summary.pairs;
        counts.edges = found.edges;
        counts.bridged = found.bridged;
        counts.components = found.components;
        for doc in DocId::range(0..web.documents()) {
            if let Some(component) = found.component(web.cluster(doc)) {
                self.0.staging.raw::<(DocId, DocId)>(MEMBERS)?.push(&(doc, component))?;
            }
        }
        // How many other sites link to each page that may become a root.
        let sort = SortParams::new(&resources.work_dir, resources.memory).dedup();
        let mut linked = Sorter::<(DocId, SiteId)>::new(sort)?;
        for link in links()? {
            let (source, destination) = link?;
            let (from, to) = (web.site(source), web.site(destination));
            if let Some(site) = from
                && from != to
                && found.component(web.cluster(destination)).is_some()
            {
                linked.push((destination, site))?;
            }
        }
        let voter_of = Sites::read(atlas)?.voters();
        let mut linked = SortedCursor::new(linked.finish()?);
        let (mut sites, mut voters) = (Vec::new(), Vec::new());
        while let Some(doc) = linked.peek()?.map(|entry| entry.0) {
            linked.take_group(doc, |entry| entry.0, &mut sites)?;
            let home = web.site(doc).and_then(|site| *voter_of.get(site.index())?);
            voters.clear();
            voters.extend(sites.iter().filter_map(|(_, site)| *voter_of.get(site.index())?));
            voters.retain(|voter| Some(*voter) != home);
            voters.sort_unstable();
            voters.dedup();
            self.0.staging.raw::<(DocId, u32)>(LINKED)?.push(&(doc, sites.len() as u32))?;
            for &voter in &voters {
                self.0.staging.raw::<(DocId, u32)>(VOTES)?.push(&(doc, voter))?;
            }
        }
        Ok(())
    }

    fn learn_rules(&mut self) -> Result<(), SimilarError> {
        if self.0.stage.params.url_rules {
            let web = self.web()?;
            let resources = self.resources(16);
            self.0.state.counts.url_rules =
                rules::learn(self.0.stage.atlas, &web, &resources, &mut self.0.staging)?;
        }
        Ok(())
    }
}

/// The place of a document in a list of all; numbers that are not dense, which only another program
/// can have written, are an error.
fn dense<T>(list: &mut [T], doc: DocId) -> Result<&mut T, SimilarError> {
    let documents = list.len();
    let words = || format!("documents: number {doc}, but there are {documents}");
    list.get_mut(doc.index()).ok_or_else(|| SimilarError::Parameters(words()))
}

/// Links as source and destination.
pub(crate) type Links<'a> = Box<dyn Iterator<Item = Result<(DocId, DocId), SimilarError>> + 'a>;

/// The links of an atlas; those that lead out of its documents, which only another program can have
/// written, are an error.
fn open_links(atlas: &Atlas, documents: u32) -> Result<Links<'_>, SimilarError> {
    Ok(Box::new(atlas.links()?.map(move |link| {
        let (source, destination) = link?;
        if source.max(destination).get() >= documents {
            let words = format!("links: {source} to {destination}, but the atlas has {documents} documents");
            return Err(SimilarError::Parameters(words));
        }
        Ok((source, destination))
    })))
}

#[cfg(test)]
mod tests;
