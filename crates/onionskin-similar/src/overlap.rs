//! All pairs of documents that share enough chunks: none missed, none invented, with the count of
//! each.
//!
//! The problem: millions of sets of fingerprints, and the few pairs of them that are similar. The
//! naive way compares every document with every other. A little less naive is to bring equal chunks
//! together and to look at the pairs of documents that meet there; but a chunk that stands on every
//! page of a site, a menu or a licence, brings all of them together, and the pairs of one such
//! chunk are the square of the pages.
//!
//! Three engines give one answer:
//!
//! | engine | idea | the square of a common chunk |
//! |---|---|---|
//! | [`Engine::Sort`] | write all pairs that meet, sort, count (Shivakumar and Garcia-Molina 1998, section 2.1) | on disk |
//! | [`Engine::Iceberg`] | count all pairs that meet in a few bytes of memory each (section 2.2) | in time, halved thresholds keep most of it away |
//! | [`Engine::Prefix`] | similar documents must meet in their rarest chunks already | avoided |
//!
//! Memory is the budget, and beside it a few blocks of files (1 MiB), two bits a document, and the
//! documents of the one chunk that is most common among those that are enumerated, 4 to 12 bytes
//! each.

mod groups;
mod iceberg;
mod prefix;
pub(crate) mod rarity;
pub(crate) mod rounds;
mod sort;

use std::str::FromStr;

use onionskin_core::spelled;
use serde::{Deserialize, Serialize};

use crate::{Bound, Candidates, ChunkSets, Resources, SharedPair, SimilarError, VerifyStats, count_shared};

/// How to find the pairs. The answer is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Everything is written down, sorted and counted: the yardstick. Takes disk for the square of
    /// common chunks.
    Sort,
    /// Coarse counting in memory.
    Iceberg,
    /// Rarest chunks first.
    #[default]
    Prefix,
}

spelled!(Engine, name: Sort => "sort", Iceberg => "iceberg", Prefix => "prefix");

impl FromStr for Engine {
    type Err = SimilarError;

    fn from_str(name: &str) -> Result<Engine, SimilarError> {
        Engine::find(name).ok_or_else(|| {
            let known = Engine::KNOWN;
            SimilarError::Parameters(format!("there is no engine {name:?}\nhint: the engines are {known}"))
        })
    }
}

/// What a join has cost. None of it but `pairs` is the same for all engines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinStats {
    /// Pairs of chunk and document that were brought together.
    pub records: u64,
    /// Chunks among them that two or more documents have.
    pub groups: u64,
    /// Pairs of documents that were looked at, each as often as it met.
    pub pairs_enumerated: u64,
    /// Different pairs whose shared chunks were counted exactly.
    pub candidates: u64,
    /// Pairs that were handed over.
    pub pairs: u64,
    /// Times that the chunks, or the groups made of them, were read.
    pub passes: u64,
    /// Bytes that were written to disk on the way.
    pub spilled_bytes: u64,
    /// The most bytes that the structures of a step held at once.
    pub peak_bytes: u64,
}

impl JoinStats {
    /// Notes what a step holds.
    fn hold(&mut self, bytes: u64) {
        self.peak_bytes = self.peak_bytes.max(bytes);
    }
}

/// What an engine works on.
#[derive(Clone, Copy)]
struct Task<'a> {
    sets: &'a ChunkSets,
    documents: u64,
    bound: Bound,
    resources: &'a Resources,
}

/// Takes the pairs that are found.
type Emit<'a> = &'a mut dyn FnMut(SharedPair) -> Result<(), SimilarError>;

impl Task<'_> {
    /// Counts what the candidates share, the last step of an engine that has candidates.
    fn verify(
        &self,
        candidates: Candidates,
        stats: &mut JoinStats,
        emit: Emit<'_>,
    ) -> Result<VerifyStats, SimilarError> {
        let verified =
            count_shared(self.sets, candidates, Some(self.bound), &self.resources.share(3, 4), emit)?;
        stats.pairs = verified.verified;
        stats.passes += verified.passes;
        stats.spilled_bytes += verified.spilled_bytes;
        Ok(verified)
    }
}

/// Hands over all pairs for which the bound holds, with the number of chunks they share and the
/// sizes of both sets.
///
/// The pairs come in an order that is the same from run to run. It is another one for every engine,
/// and may be another one for another budget.
///
/// ```
/// use onionskin_core::{DocId, Threshold};
/// use onionskin_similar::overlap::{Engine, join};
/// use onionskin_similar::{Bound, ChunkSets, Resources};
/// # let dir = tempfile::tempdir()?;
/// # let (memory, work_dir) = ("1M".parse()?, dir.path().to_owned());
/// let resources = Resources { memory, threads: 1, work_dir };
/// let sets = ChunkSets::in_memory(
///     (0..).map(DocId).zip([vec![1, 2, 3], vec![2, 3, 4], vec![4, 5]]).collect(),
/// );
/// let bound = Bound::Overlap(Threshold::new(2).ok_or("not zero")?);
/// let mut found = Vec::new();
/// join(&sets, 3, bound, Engine::Prefix, &resources, &mut |pair| {
///     found.push((pair.a, pair.b, pair.shared));
///     Ok(())
/// })?;
/// assert_eq!(found, [(DocId(0), DocId(1), 2)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn join(
    sets: &ChunkSets,
    documents: u64,
    bound: Bound,
    engine: Engine,
    resources: &Resources,
    emit: &mut dyn FnMut(SharedPair) -> Result<(), SimilarError>,
) -> Result<JoinStats, SimilarError> {
    let task = Task { sets, documents, bound, resources };
    let stats = match engine {
        Engine::Sort => sort::join(task, emit),
        Engine::Iceberg => iceberg::join(task, emit),
        Engine::Prefix => prefix::join(task, emit),
    }?;
    tracing::info!(
        engine = engine.name(),
        records = stats.records,
        pairs_enumerated = stats.pairs_enumerated,
        candidates = stats.candidates,
        pairs = stats.pairs,
        spilled_bytes = stats.spilled_bytes,
        "join done"
    );
    Ok(stats)
}

/// The fewest chunks that a set of `n` shares with any set that it is similar to; `None` when it is
/// similar to none.
fn own_least(bound: Bound, n: usize) -> Option<u32> {
    let n = u32::try_from(n).unwrap_or(u32::MAX);
    match bound.prefix_len(n) {
        0 => None,
        // No set of a fitting size has to share fewer, so all but this many less one have to be
        // looked at.
        prefix => Some((u64::from(n) + 1 - u64::from(prefix)) as u32),
    }
}

#[cfg(test)]
mod tests;
