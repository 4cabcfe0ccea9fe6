//! Searching: the best page of every group of copies, ranked, and put into an order that repeats itself little.
//!
//! **Folding while collecting.** For every group (a collection, a cluster, a text, or a page by itself) the best page is kept. When twice as many groups are there as are wanted, the worse half goes,
//! and the score of the worst that stays is what a page must beat from then on; the engine skips whole blocks of pages that cannot. A group that went
//! comes back if a better page of it turns up, so what is found is exactly the best groups: a group's score is that of its best page, and that page has beaten the bar.
//!
//! **Replication** (design: a ranking signal): what many have copied is worth more, by a tenth for each doubling.
//!
//! **Overlap** (Shivakumar and Garcia-Molina 1998, section 1, item 2): of results that remain, one that stands for the most part in those above it sinks. From the top, each place is given to the result with the
//! highest score after what the places above already tell is taken off.

use std::collections::HashMap;

use tantivy::Score;
use tantivy::query::{EnableScoring, Query as _};

use crate::overlap::Sketch;
use crate::snippet::{Fragment, snippet};
use crate::{Copies, Index, Query, SearchError, StoredPage};

/// Groups that are ranked and put in order; those after them follow by score.
const WINDOW: usize = 60;
/// What a doubling of copies adds to a score.
const REPLICATION_WEIGHT: f32 = 0.1;
/// From this share on an overlap makes a result sink.
const OVERLAP_FROM: f32 = 0.5;
/// What a whole overlap takes off a score.
const OVERLAP_WEIGHT: f32 = 0.8;

/// What is taken for one result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fold {
    /// Nothing: every page is a result.
    Off,
    /// Pages with the same text.
    Exact,
    /// Pages of a cluster.
    Near,
    /// Pages of a collection and of its replicas; those in no collection by cluster.
    #[default]
    Collection,
}

impl Fold {
    /// All of them.
    pub const ALL: [Fold; 4] = [Fold::Collection, Fold::Near, Fold::Exact, Fold::Off];

    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Fold::Off => "off",
            Fold::Exact => "exact",
            Fold::Near => "near",
            Fold::Collection => "collection",
        }
    }

    fn key(self, copies: &Copies, doc: u32) -> u64 {
        // Documents, clusters and collections are numbered apart.
        let cluster = || copies.cluster_of(doc).map(|cluster| 1 << 32 | u64::from(cluster));
        let group = || copies.group_of(doc).map(|group| 2 << 32 | u64::from(group));
        let key = match self {
            Fold::Off => None,
            Fold::Exact => Some(u64::from(copies.original(doc))),
            Fold::Near => cluster(),
            Fold::Collection => group().or_else(cluster),
        };
        key.unwrap_or(u64::from(doc))
    }
}

/// How to search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SearchParams {
    /// What is folded.
    pub fold: Fold,
    /// Whether copies raise a score.
    pub replication: bool,
    /// Whether results that overlap sink.
    pub reorder: bool,
    /// Only pages of this collection.
    pub within: Option<u32>,
    /// Results to leave out at the beginning.
    pub offset: usize,
    /// Results wanted.
    pub limit: usize,
}

impl Default for SearchParams {
    fn default() -> SearchParams {
        let fold = Fold::default();
        SearchParams { fold, replication: true, reorder: true, within: None, offset: 0, limit: 10 }
    }
}

/// A result that is lower than its score, because another tells most of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sunk {
    /// The result above that overlaps most.
    pub doc: u32,
    /// The share of this page that stands there, as sketches estimate it.
    pub share: f32,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The page that stands for its group.
    pub page: StoredPage,
    /// The score that it is ranked by, before overlap is taken off.
    pub score: f32,
    /// Copies of it, itself included.
    pub replication: u64,
    /// Its cluster.
    pub cluster: Option<u32>,
    /// Its collection.
    pub group: Option<u32>,
    /// Where much of it stands above.
    pub overlap: Option<Sunk>,
    /// Why it was found.
    pub snippet: Vec<Fragment>,
}

/// How many pages match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Matches {
    /// Pages, copies included.
    pub pages: u64,
    /// Counted, or reckoned from a part of the index.
    pub is_exact: bool,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Results, in order.
    pub hits: Vec<Hit>,
    /// Pages that match.
    pub matches: Matches,
    /// Whether there are results after these.
    pub more: bool,
    /// No page has all the words; these have some.
    pub is_relaxed: bool,
}

/// The best page of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Best {
    key: u64,
    doc: u32,
    score: Score,
}

/// Better first: by score, then by document.
fn better(a: &Best, b: &Best) -> std::cmp::Ordering {
    b.score.total_cmp(&a.score).then(a.doc.cmp(&b.doc))
}

/// The best groups so far.
struct BestGroups {
    wanted: usize,
    /// At most twice as many as wanted.
    kept: Vec<Best>,
    /// Where a group is in `kept`.
    places: HashMap<u64, usize>,
    /// What a page must beat.
    bar: Score,
}

impl BestGroups {
    fn new(wanted: usize) -> BestGroups {
        BestGroups { wanted, kept: Vec::new(), places: HashMap::new(), bar: Score::MIN }
    }

    fn push(&mut self, found: Best) {
        match self.places.get(&found.key) {
            Some(place) => {
                let best = &mut self.kept[*place];
                // Pages come in order, so the first of equal ones stays.
                if found.score > best.score {
                    *best = found;
                }
            }
            None => {
                self.places.insert(found.key, self.kept.len());
                self.kept.push(found);
                if self.kept.len() == 2 * self.wanted {
                    self.cut();
                }
            }
        }
    }

    fn cut(&mut self) {
        if self.kept.len() > self.wanted {
            let (_, worst, _) = self.kept.select_nth_unstable_by(self.wanted - 1, better);
            self.bar = worst.score;
            self.kept.truncate(self.wanted);
            self.places = self.kept.iter().enumerate().map(|(place, best)| (best.key, place)).collect();
        }
    }

    fn finish(mut self) -> Vec<Best> {
        self.kept.sort_unstable_by(better);
        self.kept.truncate(self.wanted);
        self.kept
    }
}

impl Index {
    /// Looks for pages.
    pub fn search(
        &self,
        copies: &Copies,
        query: &Query,
        params: &SearchParams,
    ) -> Result<Results, SearchError> {
        let wanted = WINDOW.max(params.offset.saturating_add(params.limit).saturating_add(1));
        let mut is_relaxed = false;
        let mut matches = self.matches(query, false, params, copies)?;
        let mut best = Vec::new();
        if matches.pages > 0 {
            best = self.best_groups(copies, query, false, params, wanted)?;
        } else if query.wanted.len() > 1 {
            matches = self.matches(query, true, params, copies)?;
            best = self.best_groups(copies, query, true, params, wanted)?;
            is_relaxed = !best.is_empty();
        }
        let ordered = self.ordered(copies, best, params)?;
        let more = ordered.len() > params.offset + params.limit;
        let words = query.words();
        let mut hits = Vec::new();
        for (best, overlap) in ordered.into_iter().skip(params.offset).take(params.limit) {
            let Some(page) = self.page(best.doc)? else { continue };
            hits.push(Hit {
                snippet: page.text.as_deref().map(|text| snippet(text, &words)).unwrap_or_default(),
                page,
                score: best.score,
                replication: copies.replication(best.doc),
                cluster: copies.cluster_of(best.doc),
                group: copies.group_of(best.doc),
                overlap,
            });
        }
        Ok(Results { hits, matches, more, is_relaxed })
    }

    /// The best page of each of the best groups, best first.
    pub(crate) fn best_groups(
        &self,
        copies: &Copies,
        query: &Query,
        any: bool,
        params: &SearchParams,
        wanted: usize,
    ) -> Result<Vec<Best>, SearchError> {
        let engine = query.engine(&self.fields, any);
        let scoring = EnableScoring::enabled_from_searcher(&self.searcher);
        let weight = engine.weight(scoring).map_err(|error| self.failed(error))?;
        let mut groups = BestGroups::new(wanted);
        for (first, segment) in &self.segments {
            let reader = self.searcher.segment_reader(*segment);
            // The bar of the segments before holds here too.
            let bar = groups.bar;
            let mut collect = |at: u32, score: Score| {
                let doc = first + at;
                if params.within.is_none_or(|group| copies.group_of(doc) == Some(group)) {
                    groups.push(Best { key: params.fold.key(copies, doc), doc, score });
                }
                groups.bar
            };
            weight.for_each_pruning(bar, reader, &mut collect).map_err(|error| self.failed(error))?;
        }
        Ok(groups.finish())
    }

    /// Ranks with replication, and lets results sink that stand in those above them.
    fn ordered(
        &self,
        copies: &Copies,
        mut best: Vec<Best>,
        params: &SearchParams,
    ) -> Result<Vec<(Best, Option<Sunk>)>, SearchError> {
        if params.replication {
            for best in &mut best {
                let doublings = (copies.replication(best.doc) as f32).log2();
                best.score *= 1.0 + REPLICATION_WEIGHT * doublings;
            }
            best.sort_by(better);
        }
        if !params.reorder {
            return Ok(best.into_iter().map(|best| (best, None)).collect());
        }
        let rest = best.split_off(best.len().min(WINDOW));
        let sketches: Vec<Sketch> = best
            .iter()
            .map(|best| self.sketches.get(best.doc))
            .collect::<Result<_, _>>()
            .map_err(|source| SearchError::Io { path: self.folder().join("sketches"), source })?;
        let mut ordered: Vec<(Best, Option<Sunk>)> = Vec::with_capacity(best.len() + rest.len());
        // Results that have no place yet, with the largest overlap with those that have.
        let mut waiting: Vec<(usize, Option<Sunk>)> = (0..best.len()).map(|at| (at, None)).collect();
        while !waiting.is_empty() {
            let left = |(at, overlap): &(usize, Option<Sunk>)| {
                best[*at].score * (1.0 - OVERLAP_WEIGHT * overlap.map_or(0.0, |overlap| overlap.share))
            };
            // The first of equal ones: `waiting` is in order of score.
            let mut next = 0;
            for candidate in 1..waiting.len() {
                if left(&waiting[candidate]) > left(&waiting[next]) {
                    next = candidate;
                }
            }
            let (at, overlap) = waiting.remove(next);
            ordered.push((best[at], overlap));
            for (other, overlap) in &mut waiting {
                let share = sketches[*other].contained_in(&sketches[at]);
                if share >= OVERLAP_FROM && overlap.is_none_or(|overlap| share > overlap.share) {
                    *overlap = Some(Sunk { doc: best[at].doc, share });
                }
            }
        }
        ordered.extend(rest.into_iter().map(|best| (best, None)));
        Ok(ordered)
    }

    /// How many pages match.
    fn matches(
        &self,
        query: &Query,
        any: bool,
        params: &SearchParams,
        copies: &Copies,
    ) -> Result<Matches, SearchError> {
        let failed = |error| self.failed(error);
        let engine = query.engine(&self.fields, any);
        let weight = engine.weight(EnableScoring::disabled_from_searcher(&self.searcher)).map_err(failed)?;
        let mut pages = 0;
        for (first, segment) in &self.segments {
            let reader = self.searcher.segment_reader(*segment);
            match params.within {
                None => pages += u64::from(weight.count(reader).map_err(failed)?),
                Some(group) => weight
                    .for_each_no_score(reader, &mut |docs| {
                        let inside = docs.iter().filter(|doc| copies.group_of(first + **doc) == Some(group));
                        pages += inside.count() as u64;
                    })
                    .map_err(failed)?,
            }
        }
        Ok(Matches { pages, is_exact: true })
    }
}

#[cfg(test)]
mod tests;
