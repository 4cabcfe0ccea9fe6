//! Looking for near copies of a few pages among many.
//!
//! The naive way compares the sketch of every sampled page with that of every document. Here the
//! minima of a sketch are cut into bands, as in a search for copies, and only documents that agree
//! in a band are compared. The bands are as long as the threshold allows: at the threshold itself
//! one pair in two hundred is missed, above it hardly any.

use std::collections::HashMap;

use crate::size::{By, Page};
use onionskin_core::scramble;

/// The share of pairs at the threshold that bands may miss.
const MISS: f64 = 0.005;

/// Some pages, found again by their sketch or by their text.
pub(super) struct NearIndex<'a> {
    pages: &'a [Page],
    by: By,
    minima: usize,
    bands: HashMap<(usize, u64), Vec<u32>>,
    texts: HashMap<u64, Vec<u32>>,
    found: Vec<u32>,
}

/// Minima in a band, for sketches of `t` minima and a threshold.
pub(super) fn band_length(t: usize, threshold: f64) -> usize {
    let miss = |s: usize| (1.0 - threshold.powi(s as i32)).powi((t / s) as i32);
    (1..=t.max(1)).rev().find(|s| miss(*s) <= MISS).unwrap_or(1)
}

fn bands(sketch: &[u32], minima: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
    let hash =
        |band: &[u32]| band.iter().fold(0, |sum: u64, min| scramble(sum ^ u64::from(*min)).wrapping_add(1));
    sketch.chunks_exact(minima).map(hash).enumerate()
}

impl<'a> NearIndex<'a> {
    pub(super) fn new(pages: &'a [Page], threshold: f64) -> NearIndex<'a> {
        let t = pages.iter().find_map(|page| page.sketch.as_ref()).map_or(1, Vec::len);
        let mut index = NearIndex {
            pages,
            by: By::Near { threshold },
            minima: band_length(t, threshold),
            bands: HashMap::new(),
            texts: HashMap::new(),
            found: Vec::new(),
        };
        for (at, page) in (0..).zip(pages) {
            if let Some(text) = page.text_fp {
                index.texts.entry(text).or_default().push(at);
            }
            for band in bands(page.sketch.as_deref().unwrap_or_default(), index.minima) {
                index.bands.entry(band).or_default().push(at);
            }
        }
        index
    }

    /// The pages that a document is a copy of, ascending.
    pub(super) fn copies(&mut self, document: &Page) -> &[u32] {
        self.found.clear();
        if let Some(same) = document.text_fp.and_then(|text| self.texts.get(&text)) {
            self.found.extend(same);
        }
        for band in bands(document.sketch.as_deref().unwrap_or_default(), self.minima) {
            self.found.extend(self.bands.get(&band).into_iter().flatten());
        }
        self.found.sort_unstable();
        self.found.dedup();
        let (pages, by) = (self.pages, self.by);
        self.found.retain(|at| by.same(&pages[*at as usize], document));
        &self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bands_fit_the_threshold() {
        for (t, threshold) in [(84, 0.9), (84, 0.5), (20, 0.95), (1, 0.9), (84, 1.0)] {
            let s = band_length(t, threshold);
            let miss = |s: usize| (1.0 - f64::powi(threshold, s as i32)).powi((t / s) as i32);
            assert!(miss(s) <= MISS || s == 1, "{t} {threshold}: {s}");
        }
        assert_eq!((band_length(84, 0.9), band_length(84, 1.0)), (8, 84));
    }

    proptest! {
        #[test]
        fn what_is_found_is_a_copy_and_nothing_is_missed_at_short_bands(
            sketches in prop::collection::vec(prop::collection::vec(0u32..3, 6), 1..12),
            others in prop::collection::vec((prop::collection::vec(0u32..3, 6), 0u64..4), 1..12),
        ) {
            let page = |sketch: &Vec<u32>, text: u64| Page { url: None, text_fp: Some(text), sketch: Some(sketch.clone()) };
            let pages: Vec<Page> = (0..).zip(&sketches).map(|(at, sketch)| page(sketch, at)).collect();
            // At a threshold this low a band is one minimum, and whoever shares none is not a copy.
            let threshold = 1.0 / 6.0;
            let mut index = NearIndex::new(&pages, threshold);
            prop_assert_eq!(index.minima, 1);
            for (sketch, text) in &others {
                let document = page(sketch, *text);
                let by = By::Near { threshold };
                let naive: Vec<u32> = (0..).zip(&pages).filter(|(_, p)| by.same(p, &document)).map(|(at, _)| at).collect();
                prop_assert_eq!(index.copies(&document), naive);
            }
        }
    }
}
