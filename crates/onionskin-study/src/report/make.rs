//! From an atlas to a written report, and what a caller is told of it.

use std::fs;
use std::path::{Path, PathBuf};

use onionskin_store::progress::{Event, Progress};
use onionskin_store::{Atlas, IoError, json};
use serde::Serialize;

use super::origin::{self, Origin};
use super::{Changes, Document, Written, changes, overview, write_report};
use crate::findings::{Findings, Level};
use crate::study::{CompareParams, ReportError, ReportParams, compare, study};

/// Where a report is, and its main numbers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReportSummary {
    /// The directory of the atlas.
    #[serde(serialize_with = "json::path")]
    pub atlas: PathBuf,
    /// The page and the files beside it.
    #[serde(flatten)]
    pub written: Written,
    /// Documents of the atlas.
    pub documents: u64,
    /// Sites that they are on.
    pub sites: u64,
    /// Links between them.
    pub links: u64,
    /// Duplicates, by every search that the atlas has, exact ones first.
    pub levels: Vec<LevelSummary>,
    /// Which of them the report is mainly about.
    pub main_level: Option<String>,
    /// Documents that a crawl by links reaches; `None` where there are no links.
    pub reached: Option<u64>,
    /// Replicated collections of ten pages and more; `None` where they were not searched.
    pub collections: Option<u64>,
    /// Their pages outside the principals, which a crawler need not fetch.
    pub duplicate_pages: Option<u64>,
}

/// Duplicates as one search sees them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelSummary {
    /// Its name, as in the tables `copies.<level>`.
    pub level: String,
    /// Its name for people.
    pub title: String,
    /// Documents with a text.
    pub documents: u64,
    /// Clusters of two documents and more.
    pub clusters: u64,
    /// Documents in them, but one of each.
    pub duplicates: u64,
    /// The same as a share of the documents.
    pub duplicate_share: f64,
    /// Documents in no cluster.
    pub unique: u64,
    /// Bytes of the duplicates.
    pub duplicate_bytes: u64,
    /// Duplicates on another site than their original.
    pub cross_site_duplicates: u64,
    /// Duplicates that a crawl by links reaches.
    pub connected_duplicates: u64,
    /// The same as a share of the documents it reaches.
    pub connected_duplicate_share: f64,
    /// Duplicates that it does not reach.
    pub disconnected_duplicates: u64,
    /// The same as a share of the documents it does not reach.
    pub disconnected_duplicate_share: f64,
}

impl LevelSummary {
    fn new(level: &Level) -> LevelSummary {
        let counts = &level.counts;
        LevelSummary {
            level: level.name.clone(),
            title: level.title.clone(),
            documents: counts.whole.documents,
            clusters: counts.whole.clusters,
            duplicates: counts.whole.duplicates(),
            duplicate_share: counts.whole.duplicate_share(),
            unique: counts.whole.unique(),
            duplicate_bytes: counts.duplicate_bytes,
            cross_site_duplicates: counts.classes.iter().map(|class| class.cross_site_duplicates).sum(),
            connected_duplicates: counts.connected.duplicates(),
            connected_duplicate_share: counts.connected.duplicate_share(),
            disconnected_duplicates: counts.disconnected.duplicates(),
            disconnected_duplicate_share: counts.disconnected.duplicate_share(),
        }
    }
}

impl ReportSummary {
    fn new(atlas: &Path, findings: &Findings, written: Written) -> ReportSummary {
        ReportSummary {
            atlas: atlas.to_owned(),
            written,
            documents: findings.documents,
            sites: findings.sites,
            links: findings.links,
            levels: findings.levels.iter().map(LevelSummary::new).collect(),
            main_level: findings.main_level().map(|level| level.name.clone()),
            reached: findings.parts.as_ref().map(|parts| parts.reached),
            collections: findings.collections.as_ref().map(|found| found.groups),
            duplicate_pages: findings.collections.as_ref().map(|found| found.duplicate_pages),
        }
    }
}

/// What changed between two crawls, and where the report on it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangesSummary {
    /// The page and the files beside it.
    #[serde(flatten)]
    pub written: Written,
    /// URLs in both with the same text.
    pub unchanged: u64,
    /// URLs in both with another text.
    pub changed: u64,
    /// URLs of the later crawl alone.
    pub new: u64,
    /// Those of them whose text was in the earlier crawl.
    pub new_with_known_text: u64,
    /// URLs of the earlier crawl alone.
    pub gone: u64,
    /// Those of them whose text is in the later crawl.
    pub gone_with_text_elsewhere: u64,
    /// Pages in both that had duplicates and have some.
    pub still_copied: u64,
    /// Pages in both that had duplicates and have none.
    pub no_longer_copied: u64,
    /// Pages in both that had no duplicates and have some.
    pub newly_copied: u64,
    /// Mirrors in both; `None` where one of the two was not searched for them.
    pub mirrors_still: Option<u64>,
    /// Mirrors of the later crawl alone.
    pub mirrors_new: Option<u64>,
    /// Mirrors of the earlier crawl alone.
    pub mirrors_gone: Option<u64>,
}

impl ChangesSummary {
    fn new(found: &Changes, written: Written) -> ChangesSummary {
        let mirrors = found.mirrors.as_ref();
        ChangesSummary {
            written,
            unchanged: found.unchanged,
            changed: found.changed,
            new: found.new.addresses,
            new_with_known_text: found.new.text_elsewhere,
            gone: found.gone.addresses,
            gone_with_text_elsewhere: found.gone.text_elsewhere,
            still_copied: found.still_copied,
            no_longer_copied: found.no_longer_copied,
            newly_copied: found.newly_copied,
            mirrors_still: mirrors.map(|mirrors| mirrors.still),
            mirrors_new: mirrors.map(|mirrors| mirrors.new),
            mirrors_gone: mirrors.map(|mirrors| mirrors.gone),
        }
    }
}

/// Studies an atlas and writes a report on it into [`ReportParams::output`].
///
/// # Errors
///
/// When the atlas cannot be read, the memory is too little, or the directory cannot be written to.
/// What is not an atlas gets no directory.
pub fn report(params: &ReportParams, progress: &dyn Progress) -> Result<ReportSummary, ReportError> {
    Atlas::open(&params.atlas)?;
    // Before the work: a place that cannot be written to is an error now.
    make_dir(&params.output)?;
    let origin = Origin::of(params)?;
    origin::forget(&params.output)?;
    let findings = study(params, progress)?;
    let written = write(&overview(&findings), &params.output, params.png, progress)?;
    origin.write(&params.output)?;
    Ok(ReportSummary::new(&params.atlas, &findings, written))
}

/// Compares two crawls and writes a report on what changed into `output`.
///
/// # Errors
///
/// As [`report()`].
pub fn report_changes(
    params: &CompareParams,
    output: &Path,
    png: bool,
    progress: &dyn Progress,
) -> Result<ChangesSummary, ReportError> {
    Atlas::open(&params.earlier)?;
    Atlas::open(&params.later)?;
    make_dir(output)?;
    origin::forget(output)?;
    let found = compare(params, progress)?;
    let written = write(&changes(&found), output, png, progress)?;
    Ok(ChangesSummary::new(&found, written))
}

fn make_dir(path: &Path) -> Result<(), ReportError> {
    Ok(fs::create_dir_all(path).map_err(|e| IoError::new("creating", path, e))?)
}

fn write(
    document: &Document,
    output: &Path,
    png: bool,
    progress: &dyn Progress,
) -> Result<Written, ReportError> {
    progress.event(Event::Step { name: "drawing figures" });
    write_report(document, output, png)
}
