//! The sort-based approach (Shivakumar and Garcia-Molina 1998, section 2.1).
//!
//! Sort chunks, write down every pair of documents that meets in a chunk, sort the pairs, count.
//! Simple enough to be believed, which is what it is for: the cross product of a common chunk is as
//! large as the square of its documents.

use onionskin_core::DocId;
use onionskin_store::disk::free_bytes;
use onionskin_store::sort::{SortParams, Sorter};

use super::groups::Groups;
use super::{Emit, JoinStats, Task, own_least};
use crate::{ChunkSets, SetReader, SharedPair, SimilarError};

/// Bytes of a pair on disk.
const PAIR_BYTES: u64 = 8;

pub(super) fn join(task: Task<'_>, emit: Emit<'_>) -> Result<JoinStats, SimilarError> {
    let Task { sets, bound, resources, .. } = task;
    let mut stats = JoinStats { passes: 1, ..JoinStats::default() };
    let mut chunks = Sorter::<(u64, DocId)>::new(SortParams::new(&resources.work_dir, resources.memory))?;
    let mut reader = sets.reader();
    while let Some((doc, set)) = reader.next()? {
        for chunk in set {
            chunks.push((*chunk, doc))?;
        }
    }
    let groups = Groups::write(chunks.finish()?, resources, &mut stats)?;
    let half = resources.memory.share(1, 2);
    check_room(groups.pairs, half.bytes(), free_bytes(&resources.work_dir).ok())?;

    let mut params = SortParams::new(&resources.work_dir, half);
    params.expected_records = Some(groups.pairs);
    let mut pairs = Sorter::<(DocId, DocId)>::new(params)?;
    groups.scan(|documents| {
        for (at, a) in documents.iter().enumerate() {
            for b in &documents[at + 1..] {
                pairs.push((*a, *b))?;
            }
        }
        Ok(true)
    })?;
    stats.pairs_enumerated = groups.pairs;
    stats.passes += 1;
    drop(groups);

    // The pairs come in the order of the first document, so its size is found by reading along.
    // That of the second takes another sort, of what is left.
    let counted = pairs.finish()?;
    stats.spilled_bytes += counted.stats().spilled_bytes;
    stats.hold(counted.stats().peak_bytes);
    let mut counted = counted.peekable();
    let mut second = Sorter::<(DocId, DocId, u32, u32)>::new(SortParams::new(
        &resources.work_dir,
        resources.memory.share(3, 8),
    ))?;
    let mut sizes = Sizes::new(sets);
    while let Some(pair) = counted.next() {
        let pair @ (a, b) = pair?;
        let mut shared = 1u32;
        while counted.next_if(|next| matches!(next, Ok(next) if *next == pair)).is_some() {
            shared = shared.saturating_add(1);
        }
        stats.candidates += 1;
        let size_a = sizes.of(a)?;
        if own_least(bound, size_a as usize).is_some_and(|least| shared >= least) {
            second.push((b, a, shared, size_a))?;
        }
    }
    stats.passes += 2;
    let second = second.finish()?;
    stats.spilled_bytes += second.stats().spilled_bytes;
    stats.hold(second.stats().peak_bytes);
    let mut sizes = Sizes::new(sets);
    for pair in second {
        let (b, a, shared, size_a) = pair?;
        let size_b = sizes.of(b)?;
        if bound.holds(shared, size_a, size_b) {
            stats.pairs += 1;
            emit(SharedPair { a, b, shared, size_a, size_b })?;
        }
    }
    Ok(stats)
}

/// Fails before the first pair is written when the disk will not hold them.
fn check_room(pairs: u64, memory: u64, free: Option<u64>) -> Result<(), SimilarError> {
    let needed = pairs.saturating_mul(PAIR_BYTES);
    match free {
        Some(free) if needed > memory && needed > free => Err(SimilarError::TooLarge {
            what: format!("the sort of {pairs} pairs of documents that share a chunk"),
            needed,
            free,
            hint: "use the engine prefix, which does not write them down".into(),
        }),
        _ => Ok(()),
    }
}

/// Sizes of sets, asked for in ascending order of document.
struct Sizes {
    reader: SetReader,
    current: Option<(DocId, u32)>,
}

impl Sizes {
    fn new(sets: &ChunkSets) -> Sizes {
        Sizes { reader: sets.reader(), current: None }
    }

    fn of(&mut self, wanted: DocId) -> Result<u32, SimilarError> {
        while self.current.is_none_or(|(doc, _)| doc < wanted) {
            match self.reader.next_of(|doc| doc >= wanted)? {
                Some((doc, set)) => self.current = Some((doc, set.len() as u32)),
                None => break,
            }
        }
        // A document that met another one has a set.
        Ok(self.current.filter(|(doc, _)| *doc == wanted).map_or(0, |(_, size)| size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cross_product_larger_than_the_disk_is_refused_before_it_begins() {
        let error = check_room(1 << 40, 1 << 20, Some(1 << 30)).unwrap_err().to_string();
        assert!(error.contains("would take 8796093022208 bytes of disk, 1073741824 are free"), "{error}");
        assert!(error.contains("\nhint: use the engine prefix"), "{error}");
        check_room(1 << 20, 1 << 20, Some(1 << 30)).unwrap();
        // What fits in memory needs no disk, and a disk that cannot be asked is taken to have room.
        check_room(1 << 20, 1 << 30, Some(0)).unwrap();
        check_room(1 << 40, 1 << 20, None).unwrap();
        assert!(check_room(u64::MAX, 1, Some(u64::MAX - 1)).is_err());
    }
}
