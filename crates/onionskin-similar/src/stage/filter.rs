//! Which filter makes the candidates, and out of what.
//!
//! A scan keeps the features of its recipe, 48 bytes per document for `[6,14,2]`, and by default
//! the minima they are made of. A filter has one threshold that it fits; out of minima any other
//! filter can be made. So a search for a threshold does not make do with the recipe's filter: it
//! takes the one that finds nearly all pairs above the threshold, out of as many minima as there
//! are, and lets verification throw away what comes along.
//!
//! Such a filter is lax: of pairs at 0.7 it accepts half when the threshold is 0.9, and verifying
//! one means to read two texts and to count thousands of shingles. So candidates are *sifted*
//! first. The share of all minima that agree estimates the resemblance, and a pair whose estimate
//! is so low that only one similar pair in a thousand has it is dropped. That costs 84 comparisons,
//! and the sketches are read in one pass, like the sets of a verification.

use std::sync::Arc;

use crate::candidates::{CandidateStats, FeatureJoin, SharedFeatures};
use crate::{
    Bits, Bound, Candidates, ChunkSets, Resources, SetCursor, SetSource, SharedPair, SimilarError,
    VerifyStats, count_shared,
};
use onionskin_core::feature::{FeatureMaker, least_agreement};
use onionskin_core::{DocId, FeatureFilter, Recipe, SketchScheme, Threshold};
use onionskin_store::table::SketchesReader;
use onionskin_store::{Atlas, TableName, json};
use serde::Serialize;

use super::Job;

/// The share of pairs at the threshold that the chosen filter may miss.
const MISS: f64 = 0.005;
/// The share of pairs at the threshold that sifting may drop.
const SIFT_MISS: f64 = 0.001;
/// Minima that are compared to sift a pair, at most.
const SIFT_MINIMA: usize = 128;

/// A filter, where its features come from, and what it finds in theory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FilterChoice {
    /// The filter.
    #[serde(serialize_with = "json::spelled")]
    pub filter: FeatureFilter,
    /// Whether features are made anew from the kept minima.
    pub from_sketches: bool,
    /// How many of the first minima of two sketches agree at least where a pair is looked at.
    pub sift: Option<Sift>,
    /// The share of pairs exactly at the threshold that it finds.
    pub at_threshold: f64,
}

/// Which candidates are verified, by their sketches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Sift {
    /// The first minima of a sketch that are compared.
    pub minima: usize,
    /// At least so many agree.
    pub least: u32,
}

impl Sift {
    /// With as many minima as an atlas has of each document; `None` if it has none.
    pub(super) fn of(atlas: &Atlas, recipe: &Recipe, threshold: f64) -> Option<Sift> {
        let minima = kept_minima(recipe, atlas.has(&TableName::Sketches));
        (minima > 0).then(|| Sift::new(minima, threshold))
    }

    fn new(minima: usize, threshold: f64) -> Sift {
        let minima = minima.min(SIFT_MINIMA);
        Sift { minima, least: least_agreement(minima, threshold, SIFT_MISS) as u32 }
    }
}

impl FilterChoice {
    pub(super) fn new(
        atlas: &Atlas,
        recipe: &Recipe,
        threshold: f64,
        wanted: Option<FeatureFilter>,
    ) -> Result<FilterChoice, SimilarError> {
        FilterChoice::out_of(
            recipe,
            (atlas.has(&TableName::Sketches), atlas.has(&TableName::Features)),
            threshold,
            wanted,
        )
    }

    /// The same where it is known whether sketches and features were kept.
    pub(crate) fn out_of(
        recipe: &Recipe,
        (has_sketches, has_features): (bool, bool),
        threshold: f64,
        wanted: Option<FeatureFilter>,
    ) -> Result<FilterChoice, SimilarError> {
        let minima = kept_minima(recipe, has_sketches);
        let own = recipe.scheme().filter().filter(|_| has_features);
        let choice = |filter: FeatureFilter, from_sketches: bool| {
            let sift = from_sketches.then(|| Sift::new(minima, threshold));
            let kept = if sift.is_some() { 1.0 - SIFT_MISS } else { 1.0 };
            FilterChoice { filter, from_sketches, sift, at_threshold: kept * filter.acceptance(threshold) }
        };
        let missing = |what: String| SimilarError::NoFeatures { what, recipe: recipe.to_string() };
        match wanted {
            Some(filter) if own.is_some_and(|own| own.has_features_of(filter)) => Ok(choice(filter, false)),
            Some(filter) if filter.permutations() <= minima => Ok(choice(filter, true)),
            Some(filter) => Err(missing(format!("{} minima for the filter {filter}", filter.permutations()))),
            None => {
                // The recipe's own features are there already; they will do when they miss no more.
                let own = own.map(|own| choice(own, false));
                if let Some(own) = own.filter(|own| own.filter.miss(threshold) <= MISS) {
                    return Ok(own);
                }
                let best =
                    FeatureFilter::for_threshold(minima, threshold, MISS).map(|filter| choice(filter, true));
                best.or(own).ok_or_else(|| missing("features".to_owned()))
            }
        }
    }
}

/// How many minima there are of each document that features can be made of.
fn kept_minima(recipe: &Recipe, has_sketches: bool) -> usize {
    match recipe.scheme() {
        _ if !has_sketches => 0,
        SketchScheme::Bottom(_) => 0,
        scheme => scheme.sketch_len(),
    }
}

/// Finds the candidates among the documents that are not folded, and a document of each crowd.
pub(super) fn find(
    job: &Job<'_>,
    choice: &FilterChoice,
    folded: &Bits,
    resources: &Resources,
    candidate: &mut impl FnMut(DocId, DocId) -> Result<(), SimilarError>,
    crowd: &mut impl FnMut(DocId) -> Result<(), SimilarError>,
) -> Result<CandidateStats, SimilarError> {
    let atlas = job.atlas;
    let mut join = FeatureJoin::new(choice.filter, resources)?;
    if choice.from_sketches {
        let mut maker = FeatureMaker::new(choice.filter);
        let mut sketches = atlas.sketches()?;
        while let Some((doc, sketch)) = sketches.next_row()? {
            if !folded.get(doc) {
                if sketch.len() < choice.filter.permutations() {
                    return Err(SimilarError::Parameters(format!(
                        "sketches of {} minima are too short for the filter {}",
                        sketch.len(),
                        choice.filter
                    )));
                }
                join.push(doc, maker.features(sketch))?;
            }
        }
    } else {
        let n_features = atlas.table(&TableName::Features)?.rows.saturating_mul(choice.filter.k() as u64);
        let mut shared = SharedFeatures::new(n_features, resources);
        if let Some(shared) = &mut shared {
            let mut features = atlas.features()?;
            while let Some((doc, row)) = features.next_row()? {
                if !folded.get(doc) {
                    shared.count(row);
                }
            }
        }
        join = join.among(shared);
        let mut features = atlas.features()?;
        while let Some((doc, row)) = features.next_row()? {
            if !folded.get(doc) {
                join.push(doc, row)?;
            }
        }
    }
    join.finish(candidate, crowd)
}

/// Hands on the candidates whose sketches agree well enough, larger document after larger document.
pub(super) fn sift(
    atlas: &Atlas,
    sift: Sift,
    candidates: Candidates,
    resources: &Resources,
    candidate: &mut dyn FnMut(DocId, DocId) -> Result<(), SimilarError>,
) -> Result<VerifyStats, SimilarError> {
    let sketches = sketch_sets(atlas, sift);
    let bound = Threshold::new(sift.least).map(Bound::Overlap);
    count_shared(&sketches, candidates, bound, resources, &mut |pair: SharedPair| candidate(pair.a, pair.b))
}

/// The sketches of an atlas as sets: two share as many members as minima agree.
pub(super) fn sketch_sets(atlas: &Atlas, sift: Sift) -> ChunkSets {
    ChunkSets::from_source(Arc::new(Sketches { atlas: atlas.clone(), minima: sift.minima }))
}

#[derive(Debug)]
struct Sketches {
    atlas: Atlas,
    minima: usize,
}

struct SketchCursor {
    rows: SketchesReader,
    minima: usize,
    set: Vec<u64>,
}

impl SetSource for Sketches {
    fn open(&self) -> Result<Box<dyn SetCursor>, SimilarError> {
        Ok(Box::new(SketchCursor { rows: self.atlas.sketches()?, minima: self.minima, set: Vec::new() }))
    }
}

impl SetCursor for SketchCursor {
    fn advance(&mut self, wanted: &dyn Fn(DocId) -> bool) -> Result<Option<DocId>, SimilarError> {
        while let Some((doc, sketch)) = self.rows.next_row()? {
            if wanted(doc) {
                self.set.clear();
                self.set.extend(
                    (0u64..).zip(sketch).take(self.minima).map(|(at, min)| at << 32 | u64::from(*min)),
                );
                return Ok(Some(doc));
            }
        }
        Ok(None)
    }

    fn chunks(&self) -> &[u64] {
        &self.set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_fits_the_threshold() {
        // Of 84 minima, as the default recipe keeps.
        let spelled = |threshold| FeatureFilter::for_threshold(84, threshold, MISS).unwrap().to_string();
        assert_eq!([0.5, 0.8, 0.9, 0.95].map(spelled), ["42x2r1", "16x5r1", "10x8r1", "7x12r1"]);
        for threshold in [0.5, 0.7, 0.8, 0.9, 0.95, 0.99] {
            assert!(
                FeatureFilter::for_threshold(84, threshold, MISS).unwrap().miss(threshold) <= MISS,
                "{threshold}"
            );
        }
        assert_eq!(FeatureFilter::for_threshold(0, 0.9, MISS), None);
        // Too few minima: as good as can be had.
        assert_eq!(FeatureFilter::for_threshold(4, 0.5, MISS).unwrap().to_string(), "4x1r1");
    }
}
