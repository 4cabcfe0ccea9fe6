//! The whole job in one process: scan, similar, collections, report.
//!
//! The stages leave the same bytes as when each is run on its own. Each commits as it goes, so a
//! killed run resumes in the middle of the stage it was in.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use onionskin_mirror::{CollectionsParams, CollectionsSummary, collections};
use onionskin_scan::{ScanError, ScanParams, ScanSummary, scan};
use onionskin_similar::{SimilarError, SimilarParams, SimilarSummary, similar};
use onionskin_store::{Atlas, AtlasError, MemoryBudget, Progress, TableName, process};
use onionskin_study::{ReportError, ReportParams, ReportSummary, report};
use serde::ser::{Serialize, SerializeStruct, Serializer};

/// What to do, and how. The atlas, the memory and the threads are those of the scan, whatever the
/// other stages say.
#[derive(Clone, Debug)]
pub struct RunParams {
    /// The scan.
    pub scan: ScanParams,
    /// The search for similar documents.
    pub similar: SimilarParams,
    /// The search for mirrors, where it is wanted.
    pub collections: Option<CollectionsParams>,
    /// The report, where it is wanted.
    pub report: Option<ReportParams>,
}

impl RunParams {
    /// The least memory a run works with.
    pub const LEAST_MEMORY: u64 = SimilarParams::LEAST_MEMORY;

    /// A scan, and what follows it by default.
    pub fn new(scan: ScanParams) -> RunParams {
        let mut similar = SimilarParams::new(scan.atlas.clone());
        similar.pdf_worker.clone_from(&scan.options.extract.pdf_worker);
        let collections = Some(CollectionsParams::new(scan.atlas.clone()));
        let report = Some(ReportParams::in_atlas(scan.atlas.clone()));
        RunParams { scan, similar, collections, report }
    }
}

/// What became of a stage.
#[derive(Clone, Debug)]
pub enum Outcome<S> {
    /// It was done, or an earlier run of it brought to its end.
    Done(S),
    /// An earlier run had finished it.
    WasThere,
    /// It was not wanted.
    NotWanted,
    /// There are no links between documents, so there is nothing that it could find.
    NoLinks,
}

impl<S> Outcome<S> {
    /// What it saw, if it was done.
    pub fn summary(&self) -> Option<&S> {
        match self {
            Outcome::Done(summary) => Some(summary),
            _ => None,
        }
    }

    /// For machines.
    pub fn as_str(&self) -> &'static str {
        match self {
            Outcome::Done(_) => "done",
            Outcome::WasThere => "was_there",
            Outcome::NotWanted => "not_wanted",
            Outcome::NoLinks => "no_links",
        }
    }
}

/// What was seen and found.
#[derive(Clone, Debug)]
pub struct RunSummary {
    /// The directory of the atlas.
    pub atlas: PathBuf,
    /// The scan.
    pub scan: Outcome<ScanSummary>,
    /// The search for similar documents.
    pub similar: Outcome<SimilarSummary>,
    /// The search for mirrors.
    pub collections: Outcome<CollectionsSummary>,
    /// The report.
    pub report: Outcome<ReportSummary>,
    /// Seconds this run took.
    pub seconds: f64,
    /// CPU seconds this run took.
    pub cpu_seconds: f64,
    /// The most memory that was resident, where the system tells.
    pub peak_memory: Option<u64>,
}

impl RunSummary {
    /// Whether earlier runs had done everything that was wanted.
    pub fn is_nothing_new(&self) -> bool {
        let RunSummary { scan, similar, collections, report, .. } = self;
        let done = [
            scan.summary().is_some(),
            similar.summary().is_some(),
            collections.summary().is_some(),
            report.summary().is_some(),
        ];
        !done.contains(&true)
    }
}

/// Under `outcomes` what became of every stage; under its name what it saw, or null.
impl Serialize for RunSummary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RunSummary { atlas, scan, similar, collections, report, seconds, cpu_seconds, peak_memory } =
            self;
        let mut fields = serializer.serialize_struct("RunSummary", 9)?;
        fields.serialize_field("atlas", &atlas.display().to_string())?;
        let outcomes = [
            ("scan", scan.as_str()),
            ("similar", similar.as_str()),
            ("collections", collections.as_str()),
            ("report", report.as_str()),
        ];
        fields.serialize_field("outcomes", &BTreeMap::from(outcomes))?;
        fields.serialize_field("scan", &scan.summary())?;
        fields.serialize_field("similar", &similar.summary())?;
        fields.serialize_field("collections", &collections.summary())?;
        fields.serialize_field("report", &report.summary())?;
        fields.serialize_field("seconds", seconds)?;
        fields.serialize_field("cpu_seconds", cpu_seconds)?;
        fields.serialize_field("peak_memory", peak_memory)?;
        fields.end()
    }
}

/// Why a run ended early. What was committed stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Too little memory to begin.
    #[error("a run needs at least {least} of memory, not {given}")]
    TooLittleMemory {
        /// What it was given.
        given: MemoryBudget,
        /// What it needs.
        least: MemoryBudget,
    },
    /// The scan.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// A search.
    #[error(transparent)]
    Search(#[from] SimilarError),
    /// The report.
    #[error(transparent)]
    Report(Box<ReportError>),
    /// The atlas cannot be read.
    #[error(transparent)]
    Atlas(#[from] AtlasError),
}

onionskin_store::boxed_sources!(RunError: Report(ReportError));

/// Does the whole job, or what is left of it after an earlier run of the same.
pub fn run(params: &RunParams, progress: &dyn Progress) -> Result<RunSummary, RunError> {
    let begun = (Instant::now(), process::cpu_seconds());
    let least = MemoryBudget::from_bytes(RunParams::LEAST_MEMORY);
    if params.scan.memory < least {
        return Err(RunError::TooLittleMemory { given: params.scan.memory, least });
    }
    let ScanParams { atlas, memory, threads, .. } = &params.scan;
    let mut search = params.similar.clone();
    (search.atlas, search.memory, search.threads) = (atlas.clone(), *memory, *threads);
    search.check()?;
    let mirrors = params.collections.clone().map(|mut mirrors| {
        (mirrors.atlas, mirrors.memory, mirrors.threads) = (atlas.clone(), *memory, *threads);
        mirrors
    });
    let page = params.report.clone().map(|mut page| {
        (page.atlas, page.memory) = (atlas.clone(), *memory);
        page
    });

    let scan =
        if params.scan.is_done()? { Outcome::WasThere } else { Outcome::Done(scan(&params.scan, progress)?) };
    let fresh = scan.summary().is_some();
    let similar = if !fresh && search.is_done(&Atlas::open(atlas)?)? {
        Outcome::WasThere
    } else {
        Outcome::Done(similar(&search, progress)?)
    };
    let fresh = fresh || similar.summary().is_some();
    let collections = match &mirrors {
        None => Outcome::NotWanted,
        Some(mirrors) => {
            let opened = Atlas::open(atlas)?;
            if opened.manifest().tables.get(&TableName::Links).is_none_or(|links| links.rows == 0) {
                Outcome::NoLinks
            } else if !fresh && mirrors.is_done(&opened)? {
                Outcome::WasThere
            } else {
                Outcome::Done(collections(mirrors, progress)?)
            }
        }
    };
    let fresh = fresh || collections.summary().is_some();
    let report = match &page {
        None => Outcome::NotWanted,
        Some(page) if !fresh && page.is_done()? => Outcome::WasThere,
        Some(page) => Outcome::Done(report(page, progress)?),
    };
    Ok(RunSummary {
        atlas: atlas.clone(),
        scan,
        similar,
        collections,
        report,
        seconds: begun.0.elapsed().as_secs_f64(),
        cpu_seconds: process::cpu_seconds() - begun.1,
        peak_memory: process::peak_rss(),
    })
}

#[cfg(test)]
mod tests;
