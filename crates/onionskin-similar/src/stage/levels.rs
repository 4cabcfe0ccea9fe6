//! What a search leaves for reports: which documents are copies at its level of likeness, and of
//! which.
//!
//! Pairs and clusters are those of the last search. How much is copied is asked at several levels
//! at once (Shivakumar and Garcia-Molina 1998, figure 1: the same text, fifteen shared chunks of
//! four lines, twenty-five of two), so every search also notes its own level in a table
//! `copies.<level>`, two numbers for each document that has copies, and other searches leave it
//! alone. The level `exact` comes with every search, and `paragraphs-100`, the duplicates by
//! definition 2 of Pereira et al. 2006, with every search by shingle paragraphs.

use crate::{Resources, SimilarError};
use onionskin_core::DocId;
use onionskin_store::Staging;
use onionskin_store::join::SortedCursor;
use onionskin_store::schema::{ChunkingName, LevelName};
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::table::Method;
use serde_json::Number;

use super::record::{LevelRecord, SearchRecord};
use super::{COPIES, DUPLICATES, Job, Search, State};

/// The level of equal texts.
pub const EXACT: &str = "exact";
/// The level of equal shingle paragraphs.
pub const PARAGRAPHS: &str = "paragraphs-100";

/// [`EXACT`] as the name of a level.
pub fn exact_level() -> LevelName {
    LevelName::new(EXACT).expect("a word of letters is the name of a level")
}

/// Document and original, in any order; each row once.
pub(super) type Rows = Sorter<(DocId, DocId)>;

pub(super) fn rows(resources: &Resources) -> Result<Rows, SimilarError> {
    let sort = SortParams::new(&resources.work_dir, resources.memory.share(1, 8)).dedup();
    Ok(Sorter::new(sort)?)
}

/// The level that a search notes as its own.
pub(super) fn own(search: &Search, chunking: Option<&str>) -> String {
    let chunking = chunking.unwrap_or_default();
    match search {
        Search::Exact => EXACT.to_owned(),
        Search::Resemblance { threshold, .. } => format!("resemblance-{chunking}-{}", percent(*threshold)),
        Search::Overlap { threshold, .. } => format!("overlap-{chunking}-{}", threshold.get()),
        Search::Paragraphs { share } => format!("paragraphs-{}", percent(*share)),
        Search::Subcollections { iterations, of } => format!("{PARAGRAPHS}-{iterations}-of-{of}"),
    }
}

/// A share in hundredths, spelled so that it can be a folder: 90, 97_5.
fn percent(share: f64) -> String {
    let hundredths = format!("{:.4}", share * 100.0);
    hundredths.trim_end_matches('0').trim_end_matches('.').replace('.', "_")
}

/// All levels that a search notes, its own last.
pub(crate) fn all(search: &Search, chunking: Option<&str>) -> Vec<LevelName> {
    let mut names = vec![EXACT.to_owned()];
    if matches!(search, Search::Paragraphs { .. }) {
        names.push(PARAGRAPHS.to_owned());
    }
    let own = own(search, chunking);
    // What is not complete is no level: copies that were not looked for would count as unique.
    if !names.contains(&own) && !matches!(search, Search::Subcollections { .. }) {
        names.push(own);
    }
    names.iter().filter_map(|name| LevelName::new(name)).collect()
}

/// Whether the atlas has noted the level of this very search. Equal texts, and equal paragraphs,
/// are the same whatever else was asked for; that their tables are there is enough.
pub(super) fn is_known(job: &Job<'_>) -> Result<bool, SimilarError> {
    let own = own(&job.params.search, job.chunking.as_ref().map(ChunkingName::as_str));
    if own == EXACT || own == PARAGRAPHS {
        return Ok(true);
    }
    let Some(level) = LevelName::new(&own) else { return Ok(false) };
    let record = job.atlas.level::<LevelRecord>(&level)?;
    Ok(record.is_some_and(|record| record.search == SearchRecord::new(job)))
}

/// Writes all levels. `of_clusters` is what the search itself has found.
pub(super) fn write(
    staging: &mut Staging,
    job: &Job<'_>,
    of_clusters: Rows,
    resources: &Resources,
) -> Result<(), SimilarError> {
    let levels = job.levels();
    let mut of_clusters = Some(of_clusters);
    for level in &levels {
        let found = match level.as_str() {
            EXACT => exact(staging, resources)?,
            PARAGRAPHS => equal_paragraphs(staging, resources)?,
            _ => match of_clusters.take() {
                Some(rows) => rows,
                None => continue,
            },
        };
        for row in found.finish()? {
            let (doc, original) = row?;
            staging.copies(level)?.push(doc, original)?;
        }
    }
    Ok(())
}

fn exact(staging: &Staging, resources: &Resources) -> Result<Rows, SimilarError> {
    let mut found = rows(resources)?;
    for copy in staging.raw_records::<(DocId, DocId)>(COPIES) {
        let (doc, centre) = copy?;
        // A revisit record may come before the text it repeats.
        found.push((doc, centre))?;
        found.push((centre, centre))?;
    }
    Ok(found)
}

/// Duplicates by definition 2, to which the copies of their texts belong.
fn equal_paragraphs(staging: &Staging, resources: &Resources) -> Result<Rows, SimilarError> {
    let sort = || SortParams::new(&resources.work_dir, resources.memory.share(1, 8));
    let mut duplicates = Sorter::<(DocId, DocId)>::new(sort())?;
    for pair in staging.raw_records::<(DocId, DocId)>(DUPLICATES) {
        duplicates.push(pair?)?;
    }
    let mut by_centre = Sorter::<(DocId, DocId)>::new(sort())?;
    for copy in staging.raw_records::<(DocId, DocId)>(COPIES) {
        let (doc, centre) = copy?;
        by_centre.push((centre, doc))?;
    }
    let mut found = rows(resources)?;
    let mut duplicates = SortedCursor::new(duplicates.finish()?);
    let mut take = |before: Option<DocId>, found: &mut Rows| -> Result<Option<DocId>, SimilarError> {
        let mut last = None;
        while let Some((doc, original)) = duplicates.next_if(|(doc, _)| before.is_none_or(|at| *doc <= at))? {
            found.push((doc, original))?;
            found.push((original, original))?;
            last = (before == Some(doc)).then_some(original);
        }
        Ok(last)
    };
    let mut current = None;
    for copy in by_centre.finish()? {
        let (centre, doc) = copy?;
        let original = match current {
            Some((of, original)) if of == centre => original,
            _ => take(Some(centre), &mut found)?.unwrap_or(centre),
        };
        current = Some((centre, original));
        found.push((centre, original))?;
        found.push((doc, original))?;
    }
    take(None, &mut found)?;
    Ok(found)
}

/// What the manifest records of a level.
pub(super) fn described(level: &LevelName, job: &Job<'_>, state: &State) -> LevelRecord {
    let texts = state.exact.texts;
    match level.as_str() {
        EXACT => LevelRecord {
            search: SearchRecord { method: Some(Method::Exact), ..SearchRecord::default() },
            texts,
            ..LevelRecord::default()
        },
        PARAGRAPHS => {
            let paragraphs = state.paragraphs.clone().unwrap_or_default();
            let copies = state.exact.copies;
            let threshold = Number::from_f64(1.0);
            let method = Some(Method::Paragraphs);
            LevelRecord {
                search: SearchRecord { method, threshold, ..SearchRecord::default() },
                texts: paragraphs.documents + copies,
                near: paragraphs.near.iter().map(|(percent, n)| (*percent, n + copies)).collect(),
                found: None,
            }
        }
        _ => LevelRecord {
            search: SearchRecord::new(job),
            texts,
            near: Vec::new(),
            found: Some(state.found()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine;
    use onionskin_core::Threshold;

    #[test]
    fn levels_have_names_that_can_be_folders() {
        let resemblance = |threshold| Search::Resemblance { threshold, filter: None, exact: false };
        let overlap = Search::Overlap {
            chunking: "l4".to_owned(),
            threshold: Threshold::new(15).unwrap(),
            engine: Engine::Prefix,
        };
        let spelled = |search: &Search, chunking| {
            all(search, chunking).iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(spelled(&Search::Exact, None), "exact");
        assert_eq!(spelled(&resemblance(0.9), Some("w4")), "exact resemblance-w4-90");
        assert_eq!(spelled(&resemblance(0.975), Some("w4")), "exact resemblance-w4-97_5");
        assert_eq!(spelled(&resemblance(1.0), Some("w4")), "exact resemblance-w4-100");
        assert_eq!(spelled(&overlap, Some("l4")), "exact overlap-l4-15");
        assert_eq!(
            spelled(&Search::Paragraphs { share: 0.5 }, Some("sp")),
            "exact paragraphs-100 paragraphs-50"
        );
        assert_eq!(spelled(&Search::Paragraphs { share: 1.0 }, Some("sp")), "exact paragraphs-100");
        let first = Search::Subcollections { iterations: 10, of: 50 };
        assert_eq!(
            (spelled(&first, Some("sp")).as_str(), own(&first, None).as_str()),
            ("exact", "paragraphs-100-10-of-50")
        );
    }
}
