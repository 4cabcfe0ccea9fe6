//! Searching: the best page of every group of copies, ranked, and put into an order that repeats
//! itself little.
//!
//! **Folding while collecting.** For every group (a collection, a cluster, a text, or a page by
//! itself) the best page is kept. When as many groups are there as are wanted, the score of the
//! worst is what a page must beat from then on, and the engine skips whole blocks of pages that
//! cannot. A group that had to go comes back if a better page of it turns up, so what is found is
//! exactly the best groups: a group's score is that of its best page, and that page has beaten the
//! bar.
//!
//! **Replication** is a ranking signal: a page with more copies ranks higher, by a tenth for each
//! doubling.
//!
//! **Overlap** (Shivakumar and Garcia-Molina 1998, section 1, item 2): of results that remain, one
//! that stands for the most part in those above it sinks. From the top, each place is given to the
//! result with the highest score after what the places above already tell is taken off.

use onionskin_core::{ClusterId, CollectionId, DocId};
use tantivy::query::{EnableScoring, Query as _};
use tantivy::{Score, Term};

use crate::overlap::Sketch;
use crate::snippet::{Fragment, snippet};
use crate::{Copies, Index, Query, SearchError, StoredPage};

/// Groups that are ranked and put in order; those after them follow by score.
const WINDOW: usize = 20;
/// Documents of a segment that are looked at to reckon how many match.
const COUNTED: u32 = 2048;
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

    fn key(self, copies: &Copies, doc: DocId) -> u64 {
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
    pub within: Option<CollectionId>,
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
    pub doc: DocId,
    /// The share of this page that stands there, as sketches estimate it.
    pub share: f32,
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The page that stands for its group, without its text.
    pub page: StoredPage,
    /// The score that it is ranked by, before overlap is taken off.
    pub score: f32,
    /// Copies of it, itself included.
    pub replication: u64,
    /// Its cluster.
    pub cluster: Option<ClusterId>,
    /// Its collection.
    pub group: Option<CollectionId>,
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
    doc: DocId,
    score: Score,
}

/// The best groups, and how many pages match where all of them were looked at.
pub(crate) struct Found {
    best: Vec<Best>,
    all: Option<u64>,
}

/// Better first: by score, then by document.
fn better(a: &Best, b: &Best) -> std::cmp::Ordering {
    b.score.total_cmp(&a.score).then(a.doc.cmp(&b.doc))
}

/// The best groups so far, best first. There are few, so that a scan finds a group faster than a
/// table would.
struct BestGroups {
    wanted: usize,
    kept: Vec<Best>,
    /// What a page must beat.
    bar: Score,
}

impl BestGroups {
    fn new(wanted: usize) -> BestGroups {
        BestGroups { wanted, kept: Vec::with_capacity(wanted + 1), bar: Score::MIN }
    }

    fn push(&mut self, found: Best) {
        if let Some(place) = self.kept.iter().position(|best| best.key == found.key) {
            // Pages come in order, so the first of equal ones stays.
            if found.score <= self.kept[place].score {
                return;
            }
            self.kept.remove(place);
        }
        let place = self.kept.partition_point(|best| better(best, &found).is_lt());
        self.kept.insert(place, found);
        self.kept.truncate(self.wanted);
        if let Some(worst) = self.kept.get(self.wanted - 1) {
            self.bar = worst.score;
        }
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
        let mut found = self.best_groups(copies, query, false, params, wanted)?;
        let any = found.best.is_empty() && query.wanted.len() > 1;
        if any {
            found = self.best_groups(copies, query, true, params, wanted)?;
        }
        let is_relaxed = any && !found.best.is_empty();
        let matches = self.matches(query, any, params, copies, &found)?;
        let ordered = self.ordered(copies, found.best, params)?;
        let more = ordered.len() > params.offset + params.limit;
        let words = query.words();
        let mut hits = Vec::new();
        for (best, overlap) in ordered.into_iter().skip(params.offset).take(params.limit) {
            let Some(mut page) = self.page(best.doc)? else { continue };
            // Results are remembered; texts are too long for that.
            let text = page.text.take();
            hits.push(Hit {
                snippet: text.map(|text| snippet(&text, &words)).unwrap_or_default(),
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
    ) -> Result<Found, SearchError> {
        let engine = query.engine(&self.fields, any);
        let scoring = EnableScoring::enabled_from_searcher(&self.searcher);
        let weight = engine.weight(scoring).map_err(|error| self.failed(error))?;
        let mut groups = BestGroups::new(wanted);
        let mut pages = 0;
        for (first, segment) in &self.segments {
            let reader = self.searcher.segment_reader(*segment);
            // The bar of the segments before holds here too.
            let bar = groups.bar;
            let mut collect = |at: u32, score: Score| {
                let doc = DocId(first + at);
                if params.within.is_none_or(|group| copies.group_of(doc) == Some(group)) {
                    pages += 1;
                    groups.push(Best { key: params.fold.key(copies, doc), doc, score });
                }
                groups.bar
            };
            weight.for_each_pruning(bar, reader, &mut collect).map_err(|error| self.failed(error))?;
        }
        let all = (groups.bar == Score::MIN).then_some(pages);
        Ok(Found { best: groups.kept, all })
    }

    /// Ranks with replication, and lets results sink that stand in those above them.
    fn ordered(
        &self,
        copies: &Copies,
        mut best: Vec<Best>,
        params: &SearchParams,
    ) -> Result<Vec<(Best, Option<Sunk>)>, SearchError> {
        // Only among the first, so that pages of results continue each other.
        let rest = best.split_off(best.len().min(WINDOW));
        if params.replication {
            for best in &mut best {
                let doublings = (copies.replication(best.doc) as f32).log2();
                best.score *= 1.0 + REPLICATION_WEIGHT * doublings;
            }
            best.sort_by(better);
        }
        if !params.reorder {
            return Ok(best.into_iter().chain(rest).map(|best| (best, None)).collect());
        }
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

    /// How many pages match: counted while collecting where nothing was skipped, looked up for a
    /// single word, and else reckoned from the first documents of each segment. Counting all would
    /// take longer than finding the best.
    fn matches(
        &self,
        query: &Query,
        any: bool,
        params: &SearchParams,
        copies: &Copies,
        found: &Found,
    ) -> Result<Matches, SearchError> {
        if let Some(pages) = found.all {
            return Ok(Matches { pages, is_exact: true });
        }
        let failed = |error| self.failed(error);
        if let (Some(word), None) = (query.single_word(), params.within) {
            let term = Term::from_field_text(self.fields.words, word);
            let pages = self.searcher.doc_freq(&term).map_err(failed)?;
            return Ok(Matches { pages, is_exact: true });
        }
        let reckoned = self.reckon(query, any, params, copies, COUNTED)?;
        Ok(Matches { pages: reckoned.pages.max(found.best.len() as u64), ..reckoned })
    }

    /// How many pages match, going by the first `counted` documents of each segment.
    fn reckon(
        &self,
        query: &Query,
        any: bool,
        params: &SearchParams,
        copies: &Copies,
        counted: u32,
    ) -> Result<Matches, SearchError> {
        let failed = |error| self.failed(error);
        let engine = query.engine(&self.fields, any);
        let weight = engine.weight(EnableScoring::disabled_from_searcher(&self.searcher)).map_err(failed)?;
        let (mut pages, mut looked_at) = (0u64, 0u64);
        for (first, segment) in &self.segments {
            let reader = self.searcher.segment_reader(*segment);
            let end = reader.max_doc().min(counted);
            let mut docs = weight.scorer(reader, 1.0).map_err(failed)?;
            while docs.doc() < end {
                let inside = params
                    .within
                    .is_none_or(|group| copies.group_of(DocId(first + docs.doc())) == Some(group));
                pages += u64::from(inside);
                docs.advance();
            }
            looked_at += u64::from(end);
        }
        if looked_at == u64::from(self.documents()) {
            return Ok(Matches { pages, is_exact: true });
        }
        let reckoned = pages as f64 * f64::from(self.documents()) / looked_at as f64;
        // Two digits are all that it tells.
        let unit = 10f64.powf((reckoned.max(1.0).log10().floor() - 1.0).max(0.0));
        let pages = ((reckoned / unit).round() * unit) as u64;
        Ok(Matches { pages, is_exact: false })
    }
}

#[cfg(test)]
mod tests;
