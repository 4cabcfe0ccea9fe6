//! What readers and the writer have in common: runs, the table in memory, tombstones, and how a
//! document is looked for in them.

use std::path::Path;
use std::sync::Arc;

use onionskin_core::sketch::estimate_resemblance;
use onionskin_core::{FeatureFilter, scramble};
use onionskin_store::MemoryBudget;
use serde::Serialize;

use crate::blocks::Room;
use crate::catalogue::{Catalogue, Params};
use crate::error::SeenError;
use crate::memtable::Memtable;
use crate::removed::{NOBODY, Removed};
use crate::run::{FP_MASK, KEY_BITS, LOST_MINIMUM, Located, Record, Run, RunMeta};
use crate::wal::Change;

/// A document that is looked for: the fingerprint of its text and its features. A document without
/// words has neither and is never looked for.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// The fingerprint of the whole canonical text.
    pub text_fp: u64,
    /// k features.
    pub features: &'a [u64],
    /// k·s minima, for an index with sketches. Others do not look at them.
    pub sketch: &'a [u32],
    /// Documents whose estimated resemblance is less are not near. With 0, the features decide.
    /// Needs an index with sketches. Exact copies are told whatever it is.
    pub threshold: f64,
}

impl<'a> Probe<'a> {
    /// Looks for a text by its fingerprint and features.
    pub fn new(text_fp: u64, features: &'a [u64]) -> Probe<'a> {
        Probe { text_fp, features, sketch: &[], threshold: 0.0 }
    }

    /// With minima, for an index with sketches.
    pub fn with_sketch(self, sketch: &'a [u32]) -> Probe<'a> {
        Probe { sketch, ..self }
    }

    /// Only documents of this estimated resemblance or more are near.
    pub fn with_threshold(self, threshold: f64) -> Probe<'a> {
        Probe { threshold, ..self }
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
    /// The share of minima that agree, in an index with sketches; else what the shared features
    /// tell of the resemblance. 1 for an exact copy.
    pub resemblance: f64,
    /// The number of the centre that the document is recorded with.
    pub centre: u32,
}

/// How large an index is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = SeenSizes))]
pub struct Stats {
    /// Documents that were added and not compacted away.
    pub documents: u64,
    /// Of them, removed.
    pub removed: u64,
    /// Of them, indexed by their features: those that were new when they were added.
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
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Hit {
    pub doc: u32,
    /// As it is in the records: not its heir.
    pub centre: u32,
    pub shared: usize,
    pub exact: bool,
    pub resemblance: f64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) params: Params,
    pub(crate) filter: FeatureFilter,
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
            filter: catalogue.params.filter()?,
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

    /// Looks for a document. An exact copy is the answer before any near one, then the one that
    /// resembles it most (shares most features, in an index without sketches), then the oldest.
    pub(crate) fn find(&self, probe: &Probe<'_>) -> Result<Found, SeenError> {
        let k = self.filter.k();
        if probe.features.len() != k {
            return Err(SeenError::Features { expected: k, found: probe.features.len() });
        }
        let minima = self.params.minima();
        if minima > 0 && probe.sketch.len() != minima {
            return Err(SeenError::Minima { expected: minima, found: probe.sketch.len() });
        }
        if minima == 0 && probe.threshold > 0.0 {
            return Err(SeenError::NoSketches);
        }
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
        found.crowded = lists.iter().any(|list| list.len() >= self.params.crowd as usize);
        let mut candidates = lists.concat();
        candidates.sort_unstable();
        let fp = probe.text_fp & FP_MASK;
        let mut exact: Option<Hit> = None;
        for group in candidates.chunk_by(|a, b| a == b) {
            let (centre, shared) = (group[0], group.len());
            if shared < self.filter.r() {
                continue;
            }
            let Some(doc) = self.removed.stand_in(centre) else { continue };
            let resemblance = self.resemblance(centre, shared, probe)?;
            let hit = Hit { doc, centre, shared, exact: false, resemblance };
            // Equal texts share all features, but some may have been lost to damage or in a crowd.
            if self.record(doc)?.is_some_and(|record| record.fp == fp) {
                let hit = Hit { exact: true, resemblance: 1.0, ..hit };
                exact = Some(exact.map_or(hit, |best| if best.doc < doc { best } else { hit }));
            }
            let better = |best: Hit| {
                let order = resemblance.total_cmp(&best.resemblance).then(shared.cmp(&best.shared));
                order.then(best.doc.cmp(&doc)).is_gt()
            };
            if resemblance >= probe.threshold && found.hit.is_none_or(better) {
                found.hit = Some(hit);
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

    /// What is known of the resemblance to a centre.
    fn resemblance(&self, centre: u32, shared: usize, probe: &Probe<'_>) -> Result<f64, SeenError> {
        let by_features = estimate(self.filter, shared);
        let minima = self.params.minima();
        if minima == 0 {
            return Ok(by_features);
        }
        let share = |sketch: &[u32]| {
            // A sketch that was lost to damage tells nothing.
            if sketch.iter().all(|minimum| *minimum == LOST_MINIMUM) {
                return by_features;
            }
            estimate_resemblance(sketch, probe.sketch).value
        };
        Ok(self.sketch(centre)?.map_or(by_features, |sketch| share(&sketch)))
    }

    /// The minima of a centre, in an index with sketches.
    pub(crate) fn sketch(&self, doc: u32) -> Result<Option<Vec<u32>>, SeenError> {
        let numbers = |bytes: &[[u8; 4]]| bytes.iter().map(|minimum| u32::from_le_bytes(*minimum)).collect();
        match self.runs.iter().find(|run| run.contains(doc)) {
            Some(run) => run.sketch(doc, numbers),
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
                return Ok(Some(Hit { doc, centre: record.centre, shared, exact: true, resemblance: 1.0 }));
            }
        }
        Ok(None)
    }

    /// The answer as callers see it.
    pub(crate) fn describe(&self, hit: Hit) -> Result<Match, SeenError> {
        let key = self.record(hit.doc)?.map_or(0, |record| record.key);
        let name = if self.params.names { Some(self.name_of(hit.doc, key)?) } else { None };
        let shared = if hit.exact { self.filter.k() } else { hit.shared };
        Ok(Match {
            doc: hit.doc,
            key: if name.is_some() { 0 } else { key },
            name,
            exact: hit.exact,
            shared,
            resemblance: hit.resemblance,
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
