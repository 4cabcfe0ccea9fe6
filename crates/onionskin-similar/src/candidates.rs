//! Candidates: documents that share at least r features (Broder 2000, section 3).
//!
//! The naive way compares every document with every other. Here features are sorted, and documents
//! that meet in a bucket of equal features are paired. With r = 1 that is all. With r = 2 and more,
//! pairs that share fewer are many and useless (every page of a site shares a feature with some
//! others because of the template), so they are not enumerated at all:
//!
//! ```text
//! (feature, doc)  sort ─▶ features that two or more have ─▶ (doc, feature)  sort
//!                 ─▶ for each document all sets of r of its features, as super-features ─▶ (super-feature, doc)  sort ─▶ buckets
//! ```
//!
//! "In general it is possible to avoid the third phase if we again group every r features into a
//! super-feature, but this forces the number of features per document to become C(k, r)" (section
//! 3): but only of those features that anybody else has, which for most documents are none. Where
//! C(k, r) is large, pairs are counted instead.
//!
//! **The work is bounded.** A bucket of m members has m(m-1)/2 pairs, and a page that a million
//! sites have would make half a billion of them a thousand times over. Buckets of at most [`CROWD`]
//! members are paired all with all at once. Larger ones are put aside while the others are paired
//! and their sizes are counted. Then it is known up to which size all pairs of all buckets fit into
//! [`PAIRS_PER_DOCUMENT`] on average, and buckets up to that size are paired all with all too. Only
//! a bucket beyond it is a *crowd*, and costs linear work: a member is paired with the smallest of
//! the bucket, and of those that agree with it in one more feature with the smallest and with the
//! one before it. The limit depends on the documents alone, never on memory.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use onionskin_core::scramble;
use onionskin_core::{DocId, FeatureFilter};
use onionskin_store::IoError;
use onionskin_store::raw::{RawRecords, RawWriter};
use onionskin_store::sort::{SortParams, SortedStream, Sorter};
use onionskin_store::storage::Disk;
use serde::{Deserialize, Serialize};

use crate::{Resources, SimilarError};

/// Members of a bucket that are paired all with all, however many such buckets there are.
pub const CROWD: u64 = 32;
/// Pairs of bucket members that are looked at, per document, before larger buckets are crowds. A
/// pair at the threshold meets in five to ten buckets, so that these are at least 50 neighbours.
pub const PAIRS_PER_DOCUMENT: u64 = 512;
/// The same for all documents together where they are few.
pub const LEAST_PAIRS: u64 = 1 << 20;
/// Shades of a crowded bucket that are distinguished; members of others are paired with the
/// smallest only.
pub const MOST_SHADES: usize = 4096;
/// Super-features of a document, at most; with more, pairs are counted.
pub const MOST_SUPER_FEATURES: u64 = 128;

/// What finding candidates has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateStats {
    /// Documents that were looked at.
    pub documents: u64,
    /// Buckets with two members and more.
    pub buckets: u64,
    /// Those of them that were too full for all pairs.
    pub crowded_buckets: u64,
    /// Members of the fullest bucket.
    pub largest_bucket: u64,
    /// Members of a bucket up to which all pairs were looked at.
    #[serde(default)]
    pub crowd_limit: u64,
    /// Different pairs that met.
    #[serde(default)]
    pub met: u64,
    /// Bytes that sorting wrote to disk.
    pub spilled_bytes: u64,
}

/// A feature, the document, and its shade: one more feature of the same document in short.
type Meeting = (u64, DocId, u32);

/// Which features more than one document may have.
///
/// Most documents share nothing with anyone, and sorting their features to learn that is most of
/// the work. Counting into buckets of hashed features first, as Shivakumar and Garcia-Molina 1998
/// do for pairs (section 2.2), leaves the few that are shared, and some whose bucket is: one in
/// ten, with eight buckets a feature. A feature that two documents have is never lost.
#[derive(Debug)]
pub struct SharedFeatures {
    /// Counters of two bits that stop at two; four to a byte.
    counters: Vec<u8>,
    shift: u32,
}

impl SharedFeatures {
    /// For about so many features; `None` when the memory does not suffice for counting to be of
    /// use.
    pub fn new(features: u64, resources: &Resources) -> Option<SharedFeatures> {
        let affordable = (resources.memory.bytes() / 8).saturating_mul(4).max(1);
        let counters = features.saturating_mul(8).max(1 << 10).checked_next_power_of_two()?;
        let counters = counters.min(1 << affordable.ilog2());
        if counters < features {
            return None;
        }
        let bytes = usize::try_from(counters / 4).ok().filter(|bytes| *bytes > 0)?;
        Some(SharedFeatures { counters: vec![0; bytes], shift: 64 - counters.ilog2() })
    }

    #[inline]
    fn place(&self, feature: u64) -> (usize, u32) {
        let counter = feature.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        ((counter / 4) as usize, (counter % 4) as u32 * 2)
    }

    /// Counts the features of a document.
    pub fn count(&mut self, features: &[u64]) {
        for feature in features {
            let (byte, bit) = self.place(*feature);
            let counters = &mut self.counters[byte];
            // None, one, and from then on two: the second bit says that the first was there.
            *counters |= (1 | (*counters >> bit & 1) << 1) << bit;
        }
    }

    /// False when at most one document has the feature.
    #[inline]
    pub fn may_be_shared(&self, feature: u64) -> bool {
        let (byte, bit) = self.place(feature);
        self.counters[byte] >> bit & 2 != 0
    }
}

/// Takes the features of documents, and finds who shares.
#[derive(Debug)]
pub struct FeatureJoin {
    filter: FeatureFilter,
    shared: Option<SharedFeatures>,
    resources: Resources,
    meetings: Sorter<Meeting>,
    stats: CandidateStats,
}

impl FeatureJoin {
    /// Under a filter; the seed does not matter here.
    pub fn new(filter: FeatureFilter, resources: &Resources) -> Result<FeatureJoin, SimilarError> {
        let meetings = Sorter::new(SortParams::new(&resources.work_dir, resources.memory.share(1, 2)))?;
        let stats = CandidateStats::default();
        Ok(FeatureJoin { filter, shared: None, resources: resources.clone(), meetings, stats })
    }

    /// Lets features alone that only one document has. All that will be pushed must have been
    /// counted.
    pub fn among(mut self, shared: Option<SharedFeatures>) -> FeatureJoin {
        self.shared = shared;
        self
    }

    /// The features of a document: as many as the filter has.
    pub fn push(&mut self, doc: DocId, features: &[u64]) -> Result<(), SimilarError> {
        self.stats.documents += 1;
        for (i, some) in features.chunks(64).enumerate() {
            // All are asked before any is taken: a look into a table this large takes its time, and
            // guessing what it will say does not pay.
            let mut taken = self.shared.as_ref().map_or(u64::MAX >> (64 - some.len()), |shared| {
                some.iter()
                    .rev()
                    .fold(0, |bits, feature| bits << 1 | u64::from(shared.may_be_shared(*feature)))
            });
            while taken != 0 {
                let at = 64 * i + taken.trailing_zeros() as usize;
                taken &= taken - 1;
                let next = features.get(at + 1).unwrap_or(&features[0]);
                self.meetings.push((features[at], doc, shade(*next)))?;
            }
        }
        Ok(())
    }

    /// Hands over the candidates, in any order, and as often as they meet; and of each crowd the
    /// document that all of it was compared with.
    pub fn finish(
        self,
        candidate: &mut impl FnMut(DocId, DocId) -> Result<(), SimilarError>,
        crowd: &mut impl FnMut(DocId) -> Result<(), SimilarError>,
    ) -> Result<CandidateStats, SimilarError> {
        let FeatureJoin { filter, shared, resources, meetings, mut stats } = self;
        drop(shared);
        let meetings = meetings.finish()?;
        if filter.r() == 1 {
            pair_buckets(meetings, &resources, &mut stats, |a, b, _| candidate(a, b), crowd)?;
        } else if combinations(filter.k(), filter.r()) <= MOST_SUPER_FEATURES {
            let meetings = super_features(meetings, filter, &resources, &mut stats)?;
            pair_buckets(meetings, &resources, &mut stats, |a, b, _| candidate(a, b), crowd)?;
        } else {
            count_pairs(meetings, filter, &resources, &mut stats, candidate, crowd)?;
        }
        Ok(stats)
    }
}

/// The features of a document, each with the shade of the one after it.
pub fn shaded(features: &[u64]) -> impl Iterator<Item = (u64, u32)> {
    with_next(features).map(|(feature, next)| (*feature, shade(*next)))
}

/// Each feature with the one after it, the last with the first.
fn with_next(features: &[u64]) -> impl Iterator<Item = (&u64, &u64)> {
    features.iter().zip(features.iter().cycle().skip(1))
}

/// What of one more feature of a document is kept beside a feature of it.
pub fn shade(feature: u64) -> u32 {
    (scramble(feature) >> 32) as u32
}

/// How many sets of `r` there are of `n`.
pub fn combinations(n: usize, r: usize) -> u64 {
    (0..r as u64).fold(1u64, |product, i| product.saturating_mul(n as u64 - i) / (i + 1))
}

/// Turns features that are shared into super-features.
fn super_features(
    meetings: SortedStream<Meeting>,
    filter: FeatureFilter,
    resources: &Resources,
    stats: &mut CandidateStats,
) -> Result<SortedStream<Meeting>, SimilarError> {
    stats.spilled_bytes += meetings.stats().spilled_bytes;
    let params = || SortParams::new(&resources.work_dir, resources.memory.share(1, 4));
    let mut shared = Sorter::<(DocId, u64)>::new(params())?;
    let mut before: Option<(u64, DocId, bool)> = None;
    for meeting in meetings {
        let (feature, doc, _) = meeting?;
        before = match before {
            Some((other, first, first_pushed)) if other == feature => {
                if !first_pushed {
                    shared.push((first, feature))?;
                }
                shared.push((doc, feature))?;
                Some((feature, doc, true))
            }
            _ => Some((feature, doc, false)),
        };
    }
    let shared = shared.finish()?;
    stats.spilled_bytes += shared.stats().spilled_bytes;
    let mut supers = Sorter::<Meeting>::new(params())?;
    let mut features = Vec::with_capacity(filter.k());
    let mut of_doc = None;
    let mut emit = |doc: DocId, features: &[u64]| {
        for_combinations(features, filter.r(), |super_feature, rest| {
            supers.push((super_feature, doc, shade(rest))).map_err(SimilarError::from)
        })
    };
    for entry in shared {
        let (doc, feature) = entry?;
        if of_doc != Some(doc) {
            if let Some(doc) = of_doc {
                emit(doc, &features)?;
            }
            features.clear();
            of_doc = Some(doc);
        }
        features.push(feature);
    }
    if let Some(doc) = of_doc {
        emit(doc, &features)?;
    }
    Ok(supers.finish()?)
}

/// The super-features of a document and their shades, from those of its features that others have,
/// sorted.
pub fn super_features_of(features: &[u64], r: usize) -> Vec<(u64, u32)> {
    let mut found = Vec::new();
    for_combinations(features, r, |super_feature, rest| {
        found.push((super_feature, shade(rest)));
        Ok(())
    })
    .expect("collecting cannot fail");
    found
}

/// Calls for every set of `r` of the features, which are sorted, with a hash of the set and one of
/// the features that are not in it (0 when there is none).
fn for_combinations(
    features: &[u64],
    r: usize,
    mut call: impl FnMut(u64, u64) -> Result<(), SimilarError>,
) -> Result<(), SimilarError> {
    if features.len() < r {
        return Ok(());
    }
    let mut chosen: Vec<usize> = (0..r).collect();
    loop {
        let hash = chosen.iter().fold(0, |hash, at| scramble(hash ^ features[*at]));
        let rest = (0..features.len()).find(|at| !chosen.contains(at)).map_or(0, |at| features[at]);
        call(hash, rest)?;
        // The next set in order: move the last one that can move.
        let Some(last) = (0..r).rev().find(|&i| chosen[i] < features.len() - r + i) else { return Ok(()) };
        chosen[last] += 1;
        for i in last + 1..r {
            chosen[i] = chosen[i - 1] + 1;
        }
    }
}

/// Counts how many buckets each pair meets in; those that meet in r are candidates, and so are
/// those of crowded buckets, for which the count is not known.
fn count_pairs(
    meetings: SortedStream<Meeting>,
    filter: FeatureFilter,
    resources: &Resources,
    stats: &mut CandidateStats,
    candidate: &mut impl FnMut(DocId, DocId) -> Result<(), SimilarError>,
    crowd: &mut impl FnMut(DocId) -> Result<(), SimilarError>,
) -> Result<(), SimilarError> {
    let mut pairs =
        Sorter::<(DocId, DocId)>::new(SortParams::new(&resources.work_dir, resources.memory.share(1, 4)))?;
    let mut pair = |a: DocId, b: DocId, crowded: bool| {
        if crowded { candidate(a, b) } else { Ok(pairs.push((a.min(b), a.max(b)))?) }
    };
    pair_buckets(meetings, resources, stats, &mut pair, crowd)?;
    let pairs = pairs.finish()?;
    stats.spilled_bytes += pairs.stats().spilled_bytes;
    let mut current = None;
    for pair in pairs {
        let pair = pair?;
        let times = match current {
            Some((of, times)) if of == pair => times + 1,
            _ => 1,
        };
        current = Some((pair, times));
        if times == filter.r() {
            candidate(pair.0, pair.1)?;
        }
    }
    Ok(())
}

/// Members of a bucket up to which all pairs are looked at: the largest for which the pairs of all
/// buckets up to it stay within the bound. `sizes` has the number of buckets of each size
/// above [`CROWD`], `pairs` how many pairs the smaller ones have.
pub fn crowd_limit(sizes: &BTreeMap<u64, u64>, pairs: u64, documents: u64) -> u64 {
    let bound = documents.saturating_mul(PAIRS_PER_DOCUMENT).max(LEAST_PAIRS);
    let mut pairs = pairs;
    let within = sizes.iter().take_while(|(size, buckets)| {
        pairs = pairs.saturating_add(pairs_of(**size).saturating_mul(**buckets));
        pairs <= bound
    });
    within.last().map_or(CROWD, |(size, _)| (*size).max(CROWD))
}

/// Pairs of so many members.
pub fn pairs_of(members: u64) -> u64 {
    members.saturating_mul(members.saturating_sub(1)) / 2
}

fn all_pairs(
    members: &[Meeting],
    pair: &mut impl FnMut(DocId, DocId, bool) -> Result<(), SimilarError>,
) -> Result<(), SimilarError> {
    for (i, (_, b, _)) in members.iter().enumerate() {
        for (_, a, _) in &members[..i] {
            pair(*a, *b, false)?;
        }
    }
    Ok(())
}

/// Pairs the members of every bucket; says of each pair whether it is one of a crowd. Hands over
/// the smallest document of each crowd.
fn pair_buckets(
    meetings: SortedStream<Meeting>,
    resources: &Resources,
    stats: &mut CandidateStats,
    mut pair: impl FnMut(DocId, DocId, bool) -> Result<(), SimilarError>,
    crowd: &mut impl FnMut(DocId) -> Result<(), SimilarError>,
) -> Result<(), SimilarError> {
    stats.spilled_bytes += meetings.stats().spilled_bytes;
    let mut aside = Aside::new(resources);
    let mut pairs = 0;
    let mut few: Vec<Meeting> = Vec::with_capacity(CROWD as usize);
    let mut members = 0;
    let mut of = None;
    let mut close = |members: u64, few: &mut Vec<Meeting>, aside: &mut Aside| {
        stats.buckets += u64::from(members > 1);
        if members > 1 {
            stats.largest_bucket = stats.largest_bucket.max(members);
        }
        if members > CROWD {
            *aside.sizes.entry(members).or_default() += 1;
        } else {
            pairs += pairs_of(members);
        }
        all_pairs(few, &mut pair)?;
        few.clear();
        Ok::<_, SimilarError>(())
    };
    for meeting in meetings {
        let meeting = meeting?;
        if of != Some(meeting.0) {
            close(members, &mut few, &mut aside)?;
            (of, members) = (Some(meeting.0), 0);
        }
        members += 1;
        if members <= CROWD {
            few.push(meeting);
            continue;
        }
        for early in few.drain(..) {
            aside.push(&early)?;
        }
        aside.push(&meeting)?;
    }
    close(members, &mut few, &mut aside)?;
    let limit = crowd_limit(&aside.sizes, pairs, stats.documents);
    stats.crowd_limit = limit;
    stats.crowded_buckets = aside.sizes.range(limit + 1..).map(|(_, buckets)| buckets).sum();
    let mut bucket = Bucket::new(limit);
    let mut of = None;
    aside.for_each(|meeting| {
        if of != Some(meeting.0) {
            bucket.close(&mut pair, crowd)?;
            of = Some(meeting.0);
        }
        bucket.add(meeting, &mut pair)
    })?;
    bucket.close(&mut pair, crowd)
}

/// Buckets that are put aside until it is known which of them are crowds.
struct Aside {
    path: PathBuf,
    file: Option<RawWriter>,
    /// How many buckets there are of each size.
    sizes: BTreeMap<u64, u64>,
}

impl Aside {
    fn new(resources: &Resources) -> Aside {
        Aside { path: resources.work_dir.join("large-buckets"), file: None, sizes: BTreeMap::new() }
    }

    fn push(&mut self, meeting: &Meeting) -> Result<(), SimilarError> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let dir = self.path.parent().unwrap_or(&self.path);
                std::fs::create_dir_all(dir).map_err(|error| IoError::new("creating", dir, error))?;
                none.insert(RawWriter::create::<Meeting>(&Disk, &self.path, "writing")?)
            }
        };
        Ok(file.push(meeting)?)
    }

    fn for_each(self, mut take: impl FnMut(Meeting) -> Result<(), SimilarError>) -> Result<(), SimilarError> {
        let Some(file) = self.file else { return Ok(()) };
        file.finish(false)?;
        for meeting in RawRecords::<Meeting>::new(vec![self.path.clone()]) {
            take(meeting?)?;
        }
        std::fs::remove_file(&self.path).map_err(|error| IoError::new("removing", self.path, error).into())
    }
}

/// A bucket while its members stream by, in ascending order of document.
struct Bucket {
    /// More members than this are a crowd.
    limit: u64,
    members: u64,
    /// The members, as long as they are no crowd.
    few: Vec<Meeting>,
    /// The smallest document.
    smallest: DocId,
    /// For each shade the smallest document with it, and the last.
    shades: HashMap<u32, (DocId, DocId)>,
}

impl Bucket {
    fn new(limit: u64) -> Bucket {
        Bucket { limit, members: 0, few: Vec::new(), smallest: DocId::default(), shades: HashMap::new() }
    }

    fn add(
        &mut self,
        meeting: Meeting,
        pair: &mut impl FnMut(DocId, DocId, bool) -> Result<(), SimilarError>,
    ) -> Result<(), SimilarError> {
        self.members += 1;
        if self.members <= self.limit {
            self.few.push(meeting);
            return Ok(());
        }
        if self.members == self.limit + 1 {
            // Now it is a crowd: the members so far are treated as such.
            let so_far = std::mem::take(&mut self.few);
            self.smallest = so_far[0].1;
            for early in so_far {
                self.crowd(early, pair)?;
            }
        }
        self.crowd(meeting, pair)
    }

    fn crowd(
        &mut self,
        (_, doc, shade): Meeting,
        pair: &mut impl FnMut(DocId, DocId, bool) -> Result<(), SimilarError>,
    ) -> Result<(), SimilarError> {
        pair(self.smallest, doc, true)?;
        let full = self.shades.len() >= MOST_SHADES;
        match self.shades.get_mut(&shade) {
            Some((smallest, last)) => {
                pair(*smallest, doc, true)?;
                pair(*last, doc, true)?;
                *last = doc;
            }
            None if full => {}
            None => {
                self.shades.insert(shade, (doc, doc));
            }
        }
        Ok(())
    }

    /// Pairs what was no crowd, and makes room for the next bucket.
    fn close(
        &mut self,
        pair: &mut impl FnMut(DocId, DocId, bool) -> Result<(), SimilarError>,
        crowd: &mut impl FnMut(DocId) -> Result<(), SimilarError>,
    ) -> Result<(), SimilarError> {
        all_pairs(&self.few, pair)?;
        if self.members > self.limit {
            crowd(self.smallest)?;
        }
        self.members = 0;
        self.few.clear();
        self.shades.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
