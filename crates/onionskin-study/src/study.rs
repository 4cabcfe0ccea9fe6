//! The study of a web: how much is copied, and where. From an atlas to what a report tells of it.
//!
//! ```text
//! documents ─▶ totals                                       links ─▶ bow tie, crawl ─▶ the part of every document
//! copies.<level> + documents ─▶ by cluster, site ─▶ counts  collections, url_rules, costs ─▶ lists
//! ```
//!
//! Two bytes per document and 32 per site stay in memory, and thirty per document while links are
//! followed. Links are in memory if they fit, otherwise in a file. Clusters are counted as they
//! come out of a sort.

mod compare;
mod lists;

use std::fs;
use std::path::{Path, PathBuf};

use crate::figure::FigureError;
use crate::findings::{Findings, Level, WebParts};
use crate::graph::{BowTie, GraphError, LinkGraph, Part, bow_tie, crawl};
use crate::growth::{Growth, subcollection};
use crate::replication::{LevelCounts, Member, SiteCounts, Tally, share};
use onionskin_core::{DocId, Packed, SiteId};
use onionskin_extract::url;
use onionskin_similar::exact::exact_copies;
use onionskin_similar::{Bits, Resources, SimilarError};
use onionskin_store::join::SortedCursor;
use onionskin_store::schema::LevelName;
use onionskin_store::sort::{SortError, SortParams, SortedStream, Sorter};
use onionskin_store::table::document;
use onionskin_store::{Atlas, AtlasError, IoError, MemoryBudget, TableError, TableName};

pub use compare::{CompareParams, compare};
use onionskin_similar::{LevelRecord, SimilarRecord, levels};
use onionskin_store::costs::costs;
use onionskin_store::progress::{Event, Progress};

/// What to tell, and how. The first group decides the result; the second only speed.
#[derive(Clone, Debug)]
pub struct ReportParams {
    /// The folder of the atlas.
    pub atlas: PathBuf,
    /// The directory of the report; made where it is missing.
    pub output: PathBuf,
    /// Draw PNG figures beside the SVG ones.
    pub png: bool,
    /// Addresses where the simulated crawl begins; in the largest strongly connected component when
    /// there are none.
    pub seeds: Vec<String>,
    /// An earlier atlas whose growth is the yardstick of this one's.
    pub reference: Option<PathBuf>,
    /// Iterations of the growth.
    pub iterations: u32,

    /// Memory for everything.
    pub memory: MemoryBudget,
    /// A folder for files that do not outlive the work; made when needed, and removed.
    pub work_dir: PathBuf,
}

impl ReportParams {
    /// The least memory a report is made with.
    pub const LEAST_MEMORY: u64 = 64 << 20;
    /// Iterations where nothing is said (Pereira et al. 2006, the collection of 2005).
    pub const ITERATIONS: u32 = 50;

    /// The directory of a report in its atlas.
    pub const IN_ATLAS: &str = "report";

    /// A report on an atlas, written into a directory.
    pub fn new(atlas: PathBuf, output: PathBuf) -> ReportParams {
        let work_dir = output.join(".work");
        ReportParams {
            atlas,
            output,
            png: false,
            seeds: Vec::new(),
            reference: None,
            iterations: ReportParams::ITERATIONS,
            memory: MemoryBudget::default_for_machine(),
            work_dir,
        }
    }

    /// The report in its atlas.
    pub fn in_atlas(atlas: PathBuf) -> ReportParams {
        let output = atlas.join(ReportParams::IN_ATLAS);
        ReportParams::new(atlas, output)
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// None of the pages where the crawl should begin is there.
    #[error("none of the {0} seeds is a document of the atlas")]
    NoSeeds(usize),
    /// Tables that do not fit together.
    #[error("{0}")]
    Disagree(String),
    /// Too little memory to begin.
    #[error("a report of {documents} documents needs at least {least} of memory, not {given}")]
    TooLittleMemory {
        /// How many there are.
        documents: u64,
        /// What it was given.
        given: MemoryBudget,
        /// What it needs.
        least: MemoryBudget,
    },
    /// The atlas cannot be used.
    #[error(transparent)]
    Atlas(Box<AtlasError>),
    /// A table cannot be read.
    #[error(transparent)]
    Table(Box<TableError>),
    /// A sort failed.
    #[error(transparent)]
    Sort(#[from] SortError),
    /// Links cannot be followed.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// Exact copies cannot be found.
    #[error(transparent)]
    Similar(#[from] SimilarError),
    /// A file cannot be written.
    #[error(transparent)]
    Io(#[from] IoError),
    /// A figure cannot be drawn.
    #[error(transparent)]
    Figure(#[from] FigureError),
}

onionskin_store::boxed_sources!(ReportError: Atlas(AtlasError), Table(TableError));

/// Memory that does not grow.
const FIXED_BYTES: u64 = 48 << 20;
/// Bytes a document while links are walked: places of its links, what the bow tie needs, part,
/// bits. Vectors that have just grown may have twice as much.
const WALK_BYTES: u64 = 8 + 20 + 2;

/// What is counted of documents.
type Counted = (document::Doc, document::Site, document::Bytes, document::TextFp);

/// What is known of the documents as a whole.
#[derive(Debug, Default)]
struct Totals {
    documents: u64,
    texts: u64,
    bytes: u64,
    connected_texts: u64,
    sites: Vec<SiteCounts>,
}

/// Where documents are.
struct Places {
    /// Reached by the crawl.
    reached: Option<Bits>,
    tie: Option<BowTie>,
}

impl Places {
    fn connected(&self, doc: DocId) -> bool {
        self.reached.as_ref().is_none_or(|reached| reached.get(doc))
    }

    fn part(&self, doc: DocId) -> Part {
        self.tie.as_ref().map_or(Part::Disconnected, |tie| tie.part(doc))
    }
}

/// Gathers what is known of a web and the copies in it.
pub fn study(params: &ReportParams, progress: &dyn Progress) -> Result<Findings, ReportError> {
    let work = WorkDir::new(&params.work_dir)?;
    let atlas = Atlas::open(&params.atlas)?;
    let study = Study::new(params, &atlas, work.path.clone())?;
    progress.event(Event::Step { name: "following links" });
    let (places, parts) = study.places()?;
    progress.event(Event::Step { name: "counting documents" });
    let totals = study.totals(&places)?;
    progress.event(Event::Step { name: "counting copies" });
    let mut names: Vec<LevelName> = atlas.levels();
    if names.iter().all(|name| name.as_str() != levels::EXACT) {
        names.push(levels::exact_level());
    }
    names.sort_by_key(|name| Level::spell(name.as_str()));
    let main = study.main_level(&names)?;
    let mut found = Vec::new();
    let mut sites = Vec::new();
    for (at, name) in names.iter().enumerate() {
        let by_site = if at == main { totals.sites.clone() } else { Vec::new() };
        let (counts, of_sites) = study.level(name, &totals, &places, by_site)?;
        if at == main {
            sites = of_sites;
        }
        let title = Level::spell(name.as_str()).1;
        found.push(Level { name: name.as_str().to_owned(), title, counts, largest: Vec::new() });
    }
    drop(places);
    progress.event(Event::Step { name: "listing sites and collections" });
    for level in &mut found {
        let wanted: Vec<DocId> = level.counts.largest.iter().map(|cluster| cluster.original()).collect();
        level.largest = lists::names(&atlas, &wanted)?;
    }
    let manifest = atlas.manifest();
    let reference = match &params.reference {
        None => None,
        Some(folder) => Some(study.reference(folder, found.get(main).map(|level| level.name.as_str()))?),
    };
    Ok(Findings {
        name: name_of(&params.atlas),
        tool: manifest.tool.clone(),
        recipe: manifest.recipe.clone(),
        inputs: manifest.inputs.len() as u64,
        bad_records: manifest.inputs.iter().map(|input| input.bad_records).sum(),
        documents: totals.documents,
        texts: totals.texts,
        bytes: totals.bytes,
        sites: totals.sites.len() as u64,
        links: study.links(),
        main,
        near: near_of(&atlas)?,
        parts,
        copied_sites: lists::copied_sites(&atlas, &sites)?,
        site_shares: site_shares(&sites),
        collections: lists::collections(&atlas)?,
        recall: recall_of(&atlas)?,
        reference,
        costs: costs(&params.atlas).into_iter().map(lists::cost).collect(),
        tables: manifest
            .tables
            .iter()
            .map(|(name, table)| {
                (name.to_string(), table.rows, table.files.iter().map(|file| file.bytes).sum())
            })
            .collect(),
        levels: found,
    })
}

/// The last part of a path that tells something: many an atlas is called just that.
fn name_of(folder: &Path) -> String {
    let whole = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let last = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    match (whole.parent().and_then(last), last(&whole)) {
        (Some(above), Some(name)) if name == "atlas" => format!("{above}/{name}"),
        (_, Some(name)) => name,
        (_, None) => folder.display().to_string(),
    }
}

/// A folder that goes when the work is done.
struct WorkDir {
    path: PathBuf,
}

impl WorkDir {
    fn new(path: &Path) -> Result<WorkDir, ReportError> {
        fs::create_dir_all(path).map_err(|e| IoError::new("creating", path, e))?;
        Ok(WorkDir { path: path.to_owned() })
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        // What is left over does no harm, and there is nobody to tell.
        let _ = fs::remove_dir_all(&self.path);
    }
}

struct Study<'a> {
    params: &'a ReportParams,
    atlas: &'a Atlas,
    documents: u64,
    work_dir: PathBuf,
}

impl<'a> Study<'a> {
    fn new(params: &'a ReportParams, atlas: &'a Atlas, work_dir: PathBuf) -> Result<Study<'a>, ReportError> {
        let documents = atlas.table(&TableName::Documents)?.rows;
        let study = Study { params, atlas, documents, work_dir };
        let walked = if study.links() > 0 { documents.saturating_mul(WALK_BYTES * 3 / 2) } else { 0 };
        let least = MemoryBudget::from_bytes((FIXED_BYTES + walked).max(ReportParams::LEAST_MEMORY));
        if params.memory < least {
            return Err(ReportError::TooLittleMemory { documents, given: params.memory, least });
        }
        Ok(study)
    }

    fn links(&self) -> u64 {
        self.atlas.rows(&TableName::Links)
    }

    /// What is left for sorts beside what stays.
    fn resources(&self) -> Resources {
        let held = FIXED_BYTES + 2 * self.documents;
        let memory = self.params.memory.bytes().saturating_sub(held).max(16 << 20);
        Resources {
            memory: MemoryBudget::from_bytes(memory / 10 * 9),
            threads: 1,
            work_dir: self.work_dir.clone(),
        }
    }

    fn places(&self) -> Result<(Places, Option<WebParts>), ReportError> {
        if self.links() == 0 {
            return Ok((Places { reached: None, tie: None }, None));
        }
        let nodes = u32::try_from(self.documents)
            .map_err(|_| ReportError::Disagree("more documents than numbers for them".to_owned()))?;
        let held = FIXED_BYTES + self.documents * (WALK_BYTES - 8) * 3 / 2;
        let limit = self.params.memory.bytes().saturating_sub(held);
        let mut graph = LinkGraph::build(nodes, self.atlas.links()?, limit, &self.work_dir)?;
        let tie = bow_tie(&mut graph)?;
        let seeds = self.seeds()?;
        let crawled = match &seeds {
            None => crawl(&mut graph, tie.documents(Part::Core))?,
            Some(seeds) => crawl(&mut graph, seeds.iter().copied())?,
        };
        let parts = WebParts {
            documents: Part::ALL.map(|part| tie.count(part)),
            strong_components: tie.strong_components(),
            largest_weak: tie.largest_weak(),
            seeds: seeds.map(|seeds| seeds.len() as u64),
            reached: crawled.documents(),
            by_depth: crawled.by_depth().to_vec(),
        };
        Ok((Places { reached: Some(crawled.reached_bits().clone()), tie: Some(tie) }, Some(parts)))
    }

    /// Documents where the crawl begins, if any were named.
    fn seeds(&self) -> Result<Option<Vec<DocId>>, ReportError> {
        if self.params.seeds.is_empty() {
            return Ok(None);
        }
        let mut wanted: Vec<String> = self
            .params
            .seeds
            .iter()
            .map(|seed| url::normalize(seed).unwrap_or_else(|| seed.clone()))
            .collect();
        wanted.sort_unstable();
        let mut found = Vec::new();
        for batch in self.atlas.documents()?.select::<(document::Doc, document::Url)>() {
            for (doc, url) in batch?.rows() {
                if url.is_some_and(|url| wanted.binary_search_by(|seed| seed.as_str().cmp(url)).is_ok()) {
                    found.push(doc);
                }
            }
        }
        if found.is_empty() { Err(ReportError::NoSeeds(self.params.seeds.len())) } else { Ok(Some(found)) }
    }

    fn totals(&self, places: &Places) -> Result<Totals, ReportError> {
        let sites = self.atlas.rows(&TableName::Sites);
        let mut totals = Totals { sites: vec![SiteCounts::default(); sites as usize], ..Totals::default() };
        for batch in self.atlas.documents()?.select::<Counted>() {
            for (doc, site, bytes, text_fp) in batch?.rows() {
                totals.documents += 1;
                totals.bytes += bytes;
                if text_fp.is_some() {
                    totals.texts += 1;
                    totals.connected_texts += u64::from(places.connected(doc));
                }
                if let Some(site) = site {
                    let counts = totals.sites.get_mut(site.index()).ok_or_else(|| {
                        ReportError::Disagree(format!(
                            "document {doc} is on site {site}, which is not in the table of sites"
                        ))
                    })?;
                    counts.documents += 1;
                }
            }
        }
        Ok(totals)
    }

    /// The level of the last search, or the last one there is.
    fn main_level(&self, names: &[LevelName]) -> Result<usize, ReportError> {
        let Some(last) = self.atlas.record::<SimilarRecord>()? else { return Ok(0) };
        let mut main = 0;
        for (at, name) in names.iter().enumerate() {
            let level = self.atlas.level::<LevelRecord>(name)?;
            if level.is_some_and(|level| level.search.is_level_of(&last.search)) {
                main = at;
            }
        }
        Ok(main)
    }

    /// Documents with their originals, by document.
    fn copies(&self, atlas: &Atlas, level: &LevelName) -> Result<Copies, ReportError> {
        if atlas.levels().contains(level) {
            return Ok(Copies::Table(Box::new(atlas.copies(level)?)));
        }
        // Equal texts can be found without a search.
        let resources = self.resources();
        let mut rows = Sorter::<(DocId, DocId)>::new(
            SortParams::new(&self.work_dir, resources.memory.share(1, 4)).dedup(),
        )?;
        exact_copies(atlas, &resources.share(1, 2), |doc, original| {
            rows.push((doc, original))?;
            Ok(rows.push((original, original))?)
        })?;
        Ok(Copies::Sorted(rows.finish()?))
    }

    fn level(
        &self,
        level: &LevelName,
        totals: &Totals,
        places: &Places,
        sites: Vec<SiteCounts>,
    ) -> Result<(LevelCounts, Vec<SiteCounts>), ReportError> {
        // Original, site, document; flags and bytes.
        let sort = SortParams::new(&self.work_dir, self.resources().memory.share(1, 2));
        let mut sorter = Sorter::<((DocId, Packed<SiteId>, DocId), (u8, u64))>::new(sort)?;
        let mut copies = SortedCursor::new(self.copies(self.atlas, level)?);
        for batch in self.atlas.documents()?.select::<Counted>() {
            for (here, site, bytes, text_fp) in batch?.rows() {
                let Some((doc, original)) = copies.next_if(|(doc, _)| *doc <= here)? else { continue };
                if doc != here {
                    return Err(out_of_step(level, doc));
                }
                let flags = u8::from(text_fp.is_some());
                sorter.push(((original, site.into(), doc), (flags, bytes)))?;
            }
        }
        if let Some((doc, _)) = copies.next()? {
            return Err(out_of_step(level, doc));
        }
        let seed = self.atlas.manifest().seed;
        let mut tally = Tally::new(totals.texts, totals.connected_texts, self.params.iterations, seed);
        if !sites.is_empty() {
            tally = tally.with_sites(sites);
        }
        for record in sorter.finish()? {
            let ((original, site, doc), (flags, bytes)) = record?;
            let member = Member {
                doc,
                site: site.get(),
                connected: places.connected(doc),
                part: places.part(doc),
                has_text: flags == 1,
                bytes,
            };
            tally.member(original, member);
        }
        Ok(tally.finish())
    }

    /// The growth of an earlier web at the same level.
    fn reference(
        &self,
        folder: &Path,
        level: Option<&str>,
    ) -> Result<(String, crate::growth::Reference), ReportError> {
        let earlier = Atlas::open(folder)?;
        let wanted = level.and_then(LevelName::new).unwrap_or_else(levels::exact_level);
        if wanted.as_str() != levels::EXACT && !earlier.levels().contains(&wanted) {
            return Err(ReportError::Disagree(format!(
                "{} has no copies at the level {}, so it cannot be the reference\nhint: run the same search on it",
                folder.display(),
                wanted.as_str()
            )));
        }
        let seed = earlier.manifest().seed;
        let mut by_original = Sorter::<(DocId, u32)>::new(SortParams::new(
            &self.work_dir,
            self.resources().memory.share(1, 2),
        ))?;
        for copy in self.copies(&earlier, &wanted)? {
            let (doc, original) = copy?;
            by_original.push((original, subcollection(doc, self.params.iterations, seed)))?;
        }
        let mut growth = Growth::new(earlier.table(&TableName::Documents)?.rows, self.params.iterations);
        let mut open: Option<(DocId, u64, u32)> = None;
        for record in by_original.finish()? {
            let (original, part) = record?;
            match &mut open {
                // Sorted, so that the first is the lowest.
                Some((of, size, _)) if *of == original => *size += 1,
                _ => {
                    if let Some((_, size, first)) = open.replace((original, 1, part)) {
                        growth.add(size, first);
                    }
                }
            }
        }
        if let Some((_, size, first)) = open {
            growth.add(size, first);
        }
        Ok((name_of(folder), growth.reference()))
    }
}

fn out_of_step(level: &LevelName, doc: DocId) -> ReportError {
    ReportError::Disagree(format!(
        "the table copies.{} has document {doc} where documents do not have it, or twice\nhint: run the search again",
        level.as_str()
    ))
}

/// Documents with their originals, ascending.
enum Copies {
    Table(Box<onionskin_store::table::IdPairsReader>),
    Sorted(SortedStream<(DocId, DocId)>),
}

impl Iterator for Copies {
    type Item = Result<(DocId, DocId), ReportError>;

    fn next(&mut self) -> Option<Result<(DocId, DocId), ReportError>> {
        match self {
            Copies::Table(rows) => rows.next().map(|row| row.map_err(ReportError::from)),
            Copies::Sorted(rows) => rows.next().map(|row| row.map_err(ReportError::from)),
        }
    }
}

/// Near-duplicates by percentage, the highest first.
fn near_of(atlas: &Atlas) -> Result<Vec<(u32, u64)>, ReportError> {
    let level = LevelName::new(levels::PARAGRAPHS).map(|name| atlas.level::<LevelRecord>(&name));
    let mut near = level.transpose()?.flatten().unwrap_or_default().near;
    near.sort_unstable_by(|a, b| b.cmp(a));
    Ok(near)
}

/// Recall of clusters, as the search measured it.
fn recall_of(atlas: &Atlas) -> Result<Option<(u64, [f64; 3])>, ReportError> {
    let recall = atlas.record::<SimilarRecord>()?.and_then(|similar| similar.found.recall);
    Ok(recall.and_then(|recall| Some((recall.sampled, recall.clustered?.into()))))
}

/// Sites by the share of their documents that are in clusters: none, up to a quarter, a half, three
/// quarters, less than all, all.
fn site_shares(sites: &[SiteCounts]) -> [u64; 6] {
    let mut shares = [0; 6];
    for site in sites {
        let of = share(u64::from(site.clustered), u64::from(site.documents));
        let class = match of {
            _ if site.clustered == 0 => 0,
            _ if site.clustered == site.documents => 5,
            of if of <= 0.25 => 1,
            of if of <= 0.5 => 2,
            of if of <= 0.75 => 3,
            _ => 4,
        };
        shares[class] += 1;
    }
    shares
}

#[cfg(test)]
mod tests;
