//! Rarest chunks first.
//!
//! Take any order of all chunks there are, and write down every document in that order. Two
//! documents of n chunks that share at least T must meet among the first n - T + 1 of both: the
//! chunks behind that are T - 1 only, and cannot hold all that is shared. When the order begins
//! with the rarest chunks, what stands in front is met by few, and what everybody has, menus and
//! licences, is left at the end. The idea is that of Chaudhuri, Ganti and Kaushik (2006) and of
//! Bayardo, Ma and Srikant (2007); the filter by size is the latter's, that by position Xiao et
//! al.'s (2008).
//!
//! ```text
//!  chunks ─▶ counters                                          pass 1, see rarity
//!  chunks ─▶ first n - T + 1 of each document ─▶ sort by chunk  pass 2
//!  documents that meet, of fitting sizes ─▶ candidates ─▶ verify
//! ```
//!
//! No sort sees all chunks. Those that stand in one document only take places in front and are
//! never written: a document that nobody has copied from costs two readings and nothing more.

use onionskin_core::{DocId, scramble};
use onionskin_store::sort::{SortParams, SortedStream, Sorter};

use super::rarity::{Rank, Rarity};
use super::rounds::{Round, in_parallel};
use super::{Emit, JoinStats, Task, own_least};
use crate::{Bound, Candidates, SimilarError};

/// A chunk, the size of the document's set, how many of its chunks do not come before this one, and
/// the document. In a bucket the smallest sets come first.
type Posting = (u64, u32, u32, DocId);

pub(super) fn join(task: Task<'_>, emit: Emit<'_>) -> Result<JoinStats, SimilarError> {
    let Task { sets, documents, bound, resources } = task;
    let mut stats = JoinStats { passes: 2, ..JoinStats::default() };
    let memory = resources.memory;
    let size_counts = |n| own_least(bound, n).is_some();
    let rarity = Rarity::of(sets, documents, memory.share(3, 8).len(), resources, |_| true, size_counts)?;

    let mut postings = Sorter::<Posting>::new(SortParams::new(&resources.work_dir, memory.share(3, 8)))?;
    let mut reader = sets.reader();
    let mut round = Round::default();
    while round.fill(&mut reader, Round::limit(memory), |_| true)? {
        let found = in_parallel(&round.documents, resources.threads, |documents| {
            let mut found = Vec::new();
            let mut scratch = Vec::new();
            for (doc, range) in documents {
                prefix_of(&rarity, *doc, &round.chunks[range.clone()], bound, &mut scratch, &mut found);
            }
            found
        });
        for found in found {
            postings.push_slice(&found)?;
        }
    }
    let counters = rarity.bytes();
    drop((rarity, round, reader));

    let postings = postings.finish()?;
    stats.records = postings.stats().records;
    stats.spilled_bytes += postings.stats().spilled_bytes;
    stats.hold(counters + postings.stats().peak_bytes);
    let mut candidates = Candidates::new(documents, &resources.share(3, 8))?;
    let recent = Recent::new(memory.share(1, 16).len());
    meet(postings, bound, recent, &mut candidates, &mut stats)?;

    stats.candidates = task.verify(candidates, &mut stats, emit)?.candidates;
    Ok(stats)
}

/// Adds the chunks of a document where similar ones must be met.
fn prefix_of(
    rarity: &Rarity,
    doc: DocId,
    chunks: &[u64],
    bound: Bound,
    scratch: &mut Vec<(Rank, u64)>,
    found: &mut Vec<Posting>,
) {
    let size = u32::try_from(chunks.len()).unwrap_or(u32::MAX);
    let prefix = bound.prefix_len(size);
    if prefix == 0 {
        return;
    }
    rarity.ranked(chunks, scratch);
    // Chunks of this document alone come first in the order, and nobody is met there.
    let alone = size - scratch.len() as u32;
    let keep = prefix.saturating_sub(alone) as usize;
    if keep == 0 {
        return;
    }
    if keep < scratch.len() {
        scratch.select_nth_unstable(keep);
        scratch.truncate(keep);
    }
    if matches!(bound, Bound::Overlap(_)) {
        // Wherever in the prefix they meet, enough chunks are left: the position would tell
        // nothing.
        found.extend(scratch.iter().map(|(_, chunk)| (*chunk, size, size, doc)));
    } else {
        scratch.sort_unstable();
        found.extend((alone..).zip(&*scratch).map(|(at, (_, chunk))| (*chunk, size, size - at, doc)));
    }
}

/// Pairs of documents that meet in a chunk and may be similar.
fn meet(
    postings: SortedStream<Posting>,
    bound: Bound,
    mut recent: Recent,
    candidates: &mut Candidates,
    stats: &mut JoinStats,
) -> Result<(), SimilarError> {
    let mut current = None;
    // Size, chunks left, and document of those in the bucket that are not too small for the sets to
    // come.
    let mut window: Vec<(u32, u32, DocId)> = Vec::new();
    let mut start = 0;
    let mut in_bucket = 0u64;
    for posting in postings {
        let (chunk, size, left, doc) = posting?;
        if current != Some(chunk) {
            current = Some(chunk);
            window.clear();
            (start, in_bucket) = (0, 0);
        }
        in_bucket += 1;
        stats.groups += u64::from(in_bucket == 2);
        while start < window.len() && !bound.sizes_fit(window[start].0, size) {
            start += 1;
        }
        if start > 1024 && start > window.len() / 2 {
            window.drain(..start);
            start = 0;
        }
        let (mut last_size, mut least) = (0, u64::MAX);
        for (other_size, other_left, other) in &window[start..] {
            if *other_size != last_size {
                last_size = *other_size;
                least = bound.least_shared(*other_size, size);
            }
            // If this is the first chunk that both have, no more can be shared than follows in the
            // shorter rest. A similar pair has a first one, and passes there.
            if u64::from(left.min(*other_left)) >= least && recent.is_new(*other, doc) {
                candidates.push(*other, doc)?;
            }
        }
        stats.pairs_enumerated += (window.len() - start) as u64;
        window.push((size, left, doc));
    }
    Ok(())
}

/// Remembers pairs that came by not long ago. Two near-copies meet in hundreds of chunks; the sort
/// of the candidates would see the pair every time.
struct Recent {
    pairs: Vec<u64>,
}

impl Recent {
    fn new(bytes: usize) -> Recent {
        Recent { pairs: vec![0; (bytes / size_of::<u64>()).clamp(16, 1 << 20)] }
    }

    /// False when the pair is remembered. A true pair is never 0, as its documents differ.
    #[inline]
    fn is_new(&mut self, a: DocId, b: DocId) -> bool {
        let pair = u64::from(a.min(b)) << 32 | u64::from(a.max(b));
        let at = ((u128::from(scramble(pair)) * self.pairs.len() as u128) >> 64) as usize;
        std::mem::replace(&mut self.pairs[at], pair) != pair
    }
}
