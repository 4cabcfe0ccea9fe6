//! What readers and the writer have in common: runs, the table in memory, tombstones, and how a
//! document is looked for in them.

use std::cmp::Reverse;
use std::path::Path;
use std::sync::Arc;

use onionskin_core::{FeatureFilter, scramble};
use onionskin_store::MemoryBudget;
use serde::Serialize;

use crate::blocks::Room;
use crate::catalogue::{Catalogue, Params};
use crate::error::SeenError;
use crate::intake::Threshold;
use crate::memtable::Memtable;
use crate::removed::{NOBODY, Removed};
use crate::run::{FP_MASK, KEY_BITS, Located, Record, Run, RunMeta};
use crate::wal::Change;

/// A document that is looked for: the fingerprint of its text and its features. A document without
/// words has neither and is never looked for.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// The fingerprint of the whole canonical text.
    pub text_fp: u64,
    /// k features.
    pub features: &'a [u64],
    /// The minima of the recipe, for an index with sketches. Others do not look at them.
    pub sketch: &'a [u32],
    /// Documents whose minima agree less than is to be expected at this resemblance are not near.
    /// `None` for that of the index; with 0, the features decide. Needs an index with sketches.
    /// Exact copies are found whatever it is.
    pub threshold: Option<f64>,
}

impl<'a> Probe<'a> {
    /// Looks for a text by its fingerprint and features.
    pub fn new(text_fp: u64, features: &'a [u64]) -> Probe<'a> {
        Probe { text_fp, features, sketch: &[], threshold: None }
    }

    /// With minima, for an index with sketches.
    pub fn with_sketch(self, sketch: &'a [u32]) -> Probe<'a> {
        Probe { sketch, ..self }
    }

    /// Only documents that may have this resemblance are near: see [`Params::least_agreement`].
    pub fn with_threshold(self, threshold: f64) -> Probe<'a> {
        Probe { threshold: Some(threshold), ..self }
    }
}

/// What a document is a copy of.
#[derive(Clone, Debug, PartialEq)]
pub struct Match {
    /// The number of the document that is there. Numbers change when the index is compacted.
    pub doc: u32,
    /// Its key; 0 in an index of names.
    pub key: u64,
    /// Its name, in an index of names.
    pub name: Option<String>,
    /// The texts are equal, word by word.
    pub exact: bool,
    /// Features that agree, of k. In a document that has inherited the place of a removed one: with
    /// that one.
    pub shared: usize,
    /// The share of minima that agree, in an index with sketches; else the estimate from the shared
    /// features. 1 for an exact copy.
    pub resemblance: f64,
    /// What the resemblance was found by.
    pub method: Method,
    /// The number of the centre that the document is recorded with.
    pub centre: u32,
}

/// What a resemblance was found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SeenMethod))]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// The fingerprints of the texts are equal.
    Exact,
    /// The share of minima that agree.
    Sketch,
    /// The features in common.
    Features,
    /// The sets of shingles of both texts: no estimate. The command line only.
    Text,
}

/// How large an index is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SeenSizes))]
pub struct Stats {
    /// Documents that were added and not compacted away.
    pub documents: u64,
    /// Of them, removed.
    pub removed: u64,
    /// Of them, indexed by their features: all but exact copies.
    pub centres: u64,
    /// Entries of the index.
    pub postings: u64,
    /// Files of documents and entries.
    pub runs: u64,
    /// Documents that are in the log only.
    pub in_log: u64,
    /// Bytes on disk of all files.
    pub bytes: u64,
    /// Of them, names.
    pub name_bytes: u64,
    /// Of them, sketches.
    pub sketch_bytes: u64,
}

impl Stats {
    /// Bytes on disk a document, names left out.
    pub fn bytes_per_document(&self) -> f64 {
        (self.bytes - self.name_bytes) as f64 / (self.documents.max(1)) as f64
    }
}

/// The key of a feature. Features agree when they are equal at the same place.
#[inline]
pub(crate) fn feature_key(place: usize, feature: u64) -> u64 {
    scramble(feature ^ scramble(place as u64 + 1)) >> (u64::BITS - KEY_BITS)
}

/// The key of a text.
#[inline]
pub(crate) fn text_key(fp: u64) -> u64 {
    scramble(fp ^ scramble(u64::MAX)) >> (u64::BITS - KEY_BITS)
}

/// Keys that are looked up together.
const KEYS: usize = 16;

/// Bytes of memory for the blocks of a run: three quarters of the budget, by the sizes of runs.
fn block_share(memory: MemoryBudget, run: &RunMeta, all: u64) -> u64 {
    memory.share(3, 4).share(run.disk_len(), all.max(1)).bytes()
}

/// What a search has found.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    pub hit: Option<Hit>,
    /// Some feature has a crowd, of which only the oldest were read.
    pub crowded: bool,
    /// Every feature has one: a document that is added to them would not be read.
    pub all_crowded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hit {
    pub doc: u32,
    /// As it is in the records: not its heir.
    pub centre: u32,
    pub shared: usize,
    pub resemblance: f64,
    pub method: Method,
}

impl Hit {
    pub(crate) fn is_exact(&self) -> bool {
        self.method == Method::Exact
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) params: Params,
    pub(crate) filter: FeatureFilter,
    /// Minima that agree at least by the threshold of the index.
    least: usize,
    pub(crate) runs: Vec<Arc<Run>>,
    pub(crate) memtable: Memtable,
    pub(crate) memtable_centres: u64,
    pub(crate) removed: Removed,
}

impl View {
    /// Opens what a catalogue names. Runs that are open already are taken from `open`.
    pub(crate) fn open(
        dir: &Path,
        catalogue: &Catalogue,
        memory: MemoryBudget,
        open: &[Arc<Run>],
    ) -> Result<View, SeenError> {
        let directories: u64 = catalogue.runs.iter().map(|run| run.directory_bytes()).sum();
        let in_memory = directories <= memory.bytes() / 4;
        let all = catalogue.runs.iter().map(|run| run.disk_len()).sum();
        let mut runs = Vec::with_capacity(catalogue.runs.len());
        for meta in &catalogue.runs {
            // What stays in memory must go when there is no longer room for all.
            let fits = block_share(memory, meta, all) >= meta.disk_len();
            let room = if fits { Room::All } else { Room::Some };
            let usable = |run: &&Arc<Run>| run.meta() == meta && (fits || run.file().room() == Room::Some);
            runs.push(match open.iter().find(usable) {
                Some(run) => Arc::clone(run),
                None => Arc::new(Run::open(dir, *meta, in_memory, room)?),
            });
        }
        let removed = match catalogue.removed {
            Some((number, count)) => Removed::read(dir, number, count)?,
            None => Removed::default(),
        };
        let view = View {
            filter: catalogue.params.filter,
            least: catalogue.params.threshold.map_or(0, |at| catalogue.params.least_agreement(at.get())),
            params: catalogue.params.clone(),
            runs,
            memtable: Memtable::new(catalogue.sealed()),
            memtable_centres: 0,
            removed,
        };
        view.share_memory(memory);
        Ok(view)
    }

    /// Gives every run its part of the memory for blocks.
    pub(crate) fn share_memory(&self, memory: MemoryBudget) {
        let all: u64 = self.runs.iter().map(|run| run.meta().disk_len()).sum();
        for run in &self.runs {
            let share = block_share(memory, run.meta(), all);
            run.file().set_limit(usize::try_from(share).unwrap_or(usize::MAX));
        }
    }

    pub(crate) fn documents(&self) -> u32 {
        self.memtable.next()
    }

    pub(crate) fn record(&self, doc: u32) -> Result<Option<Record>, SeenError> {
        match self.runs.iter().find(|run| run.contains(doc)) {
            Some(run) => run.record(doc).map(Some),
            None => Ok(self.memtable.record(doc)),
        }
    }

    /// The oldest documents under each key, as many as a crowd has at most.
    fn lookup_all(&self, keys: &[u64], lists: &mut [Vec<u32>]) -> Result<(), SeenError> {
        let most = self.params.crowd as usize;
        for run in &self.runs {
            // Step by step for all keys, so that memory is waited for once a step and not once a
            // key.
            let mut located = [Located::default(); KEYS];
            for (keys, lists) in keys.chunks(KEYS).zip(lists.chunks_mut(KEYS)) {
                for (key, located) in keys.iter().zip(&mut located) {
                    *located = run.locate(*key)?;
                }
                let located = &located[..keys.len()];
                std::hint::black_box(located.iter().fold(0, |sum, located| sum ^ run.touch(located)));
                for (located, list) in located.iter().zip(lists) {
                    if list.len() < most {
                        run.read_located(located, most, list)?;
                    }
                }
            }
        }
        for (key, list) in keys.iter().zip(lists) {
            self.memtable.lookup(*key, most, list);
        }
        Ok(())
    }

    /// An error for a document that has not what this index compares. Returns how many minima agree
    /// at least in one that is near.
    fn ensure_comparable(&self, probe: &Probe<'_>) -> Result<usize, SeenError> {
        let (k, minima) = (self.filter.k(), self.params.minima());
        if probe.features.len() != k {
            return Err(SeenError::Features { expected: k, found: probe.features.len() });
        }
        if minima > 0 && probe.sketch.len() != minima {
            return Err(SeenError::Minima { expected: minima, found: probe.sketch.len() });
        }
        let own = self.params.threshold.map(Threshold::get);
        match probe.threshold {
            None => Ok(self.least),
            threshold if threshold == own => Ok(self.least),
            Some(threshold) if threshold <= 0.0 => Ok(0),
            Some(_) if minima == 0 => Err(SeenError::NoSketches),
            Some(threshold) => Ok(self.params.least_agreement(threshold)),
        }
    }

    /// Looks for a document. An exact copy is the answer before any near one, then the one that
    /// resembles it most (shares most features, in an index without sketches), then the oldest.
    pub(crate) fn find(&self, probe: &Probe<'_>) -> Result<Found, SeenError> {
        let least = self.ensure_comparable(probe)?;
        let mut found = Found::default();
        // The text is looked up with the features, though an exact centre needs it not: together it
        // costs next to nothing.
        let keys: Vec<u64> = (0..)
            .zip(probe.features)
            .map(|(place, feature)| feature_key(place, *feature))
            .chain([text_key(probe.text_fp)])
            .collect();
        let mut lists = vec![Vec::new(); keys.len()];
        self.lookup_all(&keys, &mut lists)?;
        let texts = lists.pop().unwrap_or_default();
        let crowd = self.params.crowd as usize;
        found.crowded = lists.iter().any(|list| list.len() >= crowd);
        found.all_crowded = lists.iter().all(|list| list.len() >= crowd);
        let fp = probe.text_fp & FP_MASK;
        let mut exact: Option<Hit> = None;
        for (centre, shared) in self.candidates(lists) {
            let Some(doc) = self.removed.stand_in(centre) else { continue };
            // Equal texts share all features, but some may have been lost to damage or in a crowd.
            if self.record(doc)?.is_some_and(|record| record.fp == fp) {
                let hit = Hit { doc, centre, shared, resemblance: 1.0, method: Method::Exact };
                exact = Some(exact.map_or(hit, |best| if best.doc < doc { best } else { hit }));
            }
            let agreeing = self.agreement(centre, probe.sketch)?;
            let (resemblance, method) = match agreeing {
                Some(agreeing) => (agreeing as f64 / probe.sketch.len() as f64, Method::Sketch),
                None => (estimate(self.filter, shared), Method::Features),
            };
            let better = |best: Hit| {
                let order = resemblance.total_cmp(&best.resemblance).then(shared.cmp(&best.shared));
                order.then(best.doc.cmp(&doc)).is_gt()
            };
            if agreeing.is_none_or(|agreeing| agreeing >= least) && found.hit.is_none_or(better) {
                found.hit = Some(Hit { doc, centre, shared, resemblance, method });
            }
        }
        if exact.is_none_or(|hit| hit.doc != hit.centre) {
            let copy = self.find_text(fp, &texts, found.hit)?;
            exact = match (exact, copy) {
                (Some(a), Some(b)) => Some(if b.doc < a.doc { b } else { a }),
                (a, b) => a.or(b),
            };
        }
        found.hit = exact.or(found.hit);
        Ok(found)
    }

    /// The documents in these lists of postings that share enough features, and how many: those
    /// that share most, as many as a crowd has, since each is compared.
    fn candidates(&self, lists: Vec<Vec<u32>>) -> impl Iterator<Item = (u32, usize)> {
        let mut postings = lists.concat();
        postings.sort_unstable();
        let groups = postings.chunk_by(|a, b| a == b).map(|group| (Reverse(group.len()), group[0]));
        let mut candidates: Vec<_> = groups.filter(|(shared, _)| shared.0 >= self.filter.r()).collect();
        let most = self.params.crowd as usize;
        if candidates.len() > most {
            candidates.sort_unstable();
            candidates.truncate(most);
        }
        candidates.into_iter().map(|(shared, centre)| (centre, shared.0))
    }

    /// How many minima of a document agree with these; `None` where none are kept of it, or they
    /// were lost to damage.
    fn agreement(&self, centre: u32, sketch: &[u32]) -> Result<Option<usize>, SeenError> {
        if !self.params.sketches {
            return Ok(None);
        }
        let shape = self.params.sketch_shape();
        Ok(self.sketch(centre)?.and_then(|theirs| shape.agreement(sketch, &theirs)))
    }

    /// What is kept of the minima of a centre, in an index with sketches.
    pub(crate) fn sketch(&self, doc: u32) -> Result<Option<Vec<u32>>, SeenError> {
        match self.runs.iter().find(|run| run.contains(doc)) {
            Some(run) => run.sketch(doc),
            None => Ok(self.memtable.sketch(doc, self.params.minima()).map(<[u32]>::to_vec)),
        }
    }

    /// The oldest document with this text, among those that are indexed by it.
    fn find_text(&self, fp: u64, list: &[u32], near: Option<Hit>) -> Result<Option<Hit>, SeenError> {
        for &doc in list {
            if self.removed.is_removed(doc) {
                continue;
            }
            if let Some(record) = self.record(doc)?.filter(|record| record.fp == fp) {
                // Its text is ours, so it shares with its centre what we share with it.
                let shared =
                    near.filter(|hit| hit.centre == record.centre).map_or(self.filter.k(), |hit| hit.shared);
                let shared = if record.centre == doc { self.filter.k() } else { shared };
                let (centre, method) = (record.centre, Method::Exact);
                return Ok(Some(Hit { doc, centre, shared, resemblance: 1.0, method }));
            }
        }
        Ok(None)
    }

    /// The answer as callers see it.
    pub(crate) fn describe(&self, hit: Hit) -> Result<Match, SeenError> {
        let key = self.record(hit.doc)?.map_or(0, |record| record.key);
        let name = if self.params.names { Some(self.name_of(hit.doc, key)?) } else { None };
        let shared = if hit.is_exact() { self.filter.k() } else { hit.shared };
        Ok(Match {
            doc: hit.doc,
            key: if name.is_some() { 0 } else { key },
            name,
            exact: hit.is_exact(),
            shared,
            resemblance: hit.resemblance,
            method: hit.method,
            centre: hit.centre,
        })
    }

    fn name_of(&self, doc: u32, place: u64) -> Result<String, SeenError> {
        let bytes = match self.runs.iter().find(|run| run.contains(doc)) {
            Some(run) => run.name(place)?,
            None => self.memtable.name(place),
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub(crate) fn check(&self, probe: &Probe<'_>) -> Result<Option<Match>, SeenError> {
        match self.find(probe)?.hit {
            Some(hit) => self.describe(hit).map(Some),
            None => Ok(None),
        }
    }

    /// Does what the log says.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::Add { fp, centre, key, name, features, sketch, by_text } => {
                let doc = self.documents();
                let is_centre = *centre == NOBODY;
                self.memtable_centres += u64::from(is_centre);
                let centre = if is_centre { doc } else { *centre };
                self.memtable.push(Record { fp: fp & FP_MASK, centre, key: *key }, name.as_deref());
                self.memtable.push_sketch(sketch);
                for (place, feature) in features.iter().enumerate() {
                    self.memtable.post(feature_key(place, *feature), doc);
                }
                if *by_text {
                    self.memtable.post(text_key(*fp), doc);
                }
            }
            Change::Remove { doc, heir } => self.removed.set(*doc, *heir),
        }
    }

    /// Every document with its record, in order.
    pub(crate) fn each_document(
        &self,
        mut visit: impl FnMut(u32, Record) -> Result<(), SeenError>,
    ) -> Result<(), SeenError> {
        for run in &self.runs {
            for document in run.documents() {
                let (doc, record) = document?;
                visit(doc, record)?;
            }
        }
        for (doc, record) in (self.memtable.first..).zip(&self.memtable.records) {
            visit(doc, *record)?;
        }
        Ok(())
    }

    /// The name of a document whose record is at hand.
    pub(crate) fn name(&self, doc: u32, record: Record) -> Result<Option<String>, SeenError> {
        if self.params.names { self.name_of(doc, record.key).map(Some) } else { Ok(None) }
    }

    pub(crate) fn stats(&self, dir: &Path) -> Stats {
        let sum = |of: fn(&Run) -> u64| self.runs.iter().map(|run| of(run)).sum::<u64>();
        let name_bytes = sum(|run| run.meta().disk_len() - run.meta().disk_len_without_names());
        let mut bytes = 0;
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            bytes += entry.metadata().map_or(0, |meta| meta.len());
        }
        Stats {
            documents: self.documents().into(),
            removed: self.removed.len(),
            centres: sum(|run| run.meta().centres.into()) + self.memtable_centres,
            postings: sum(|run| run.meta().postings) + self.memtable.n_postings,
            runs: self.runs.len() as u64,
            in_log: self.memtable.docs().into(),
            bytes,
            name_bytes: (name_bytes + self.memtable.names.len() as u64).min(bytes),
            sketch_bytes: sum(|run| run.meta().all_sketch_bytes()) + self.memtable.sketches.len() as u64 * 4,
        }
    }
}

/// What m shared features of k tell of the resemblance: each is shared with probability ρ^s. (m +
/// ½) / (k + 1) is taken for the share, since m = k does not make the texts equal.
fn estimate(filter: FeatureFilter, shared: usize) -> f64 {
    let share = (shared as f64 + 0.5) / (filter.k() as f64 + 1.0);
    share.powf(1.0 / filter.s() as f64)
}
