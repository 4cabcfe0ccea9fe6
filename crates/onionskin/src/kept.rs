//! What a scan keeps in memory for the search that follows it in the same process.
//!
//! **Features**, so that they are not read back and decoded: all of them, or none when they do not fit.
//!
//! **Shingles.** An atlas of features has none, so a search reads the texts of its candidates again and cuts them again. A scan has them in hand, 8
//! bytes a word. To keep them all does not pay: memory that is touched for the first time costs a page fault every 4 KB, and 240 MB of
//! shingles took as long to put down (180 ms) as the candidates among them to read again; huge pages took longer still where the
//! system had to make them. But copies come in pairs, and when the later one is read, features tell that it looks like one that
//! came before. Only those are kept, an eighth of a web; the earlier ones, and those that there is no room for, are read again. The
//! answer is the same, whoever was kept.
//!
//! ```text
//! worker ─▶ block, 1 MB ─ full ─▶ keeper        places (block, start, length), in order of document, travel with the batches
//! ```

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Shingles of a block. Documents of more are not kept.
const BLOCK: usize = 128 << 10;
const BLOCK_BYTES: u64 = (BLOCK * size_of::<u64>()) as u64;
/// What a place takes, in shingles.
const PLACE: usize = size_of::<(u32, Place)>() / size_of::<u64>();
/// With less than this there is better use for memory.
const LEAST_MEMORY: u64 = 256 << 20;
/// Features of a document that are looked up: enough to meet one of a near copy.
const LOOKED_UP: usize = 8;
/// Features that are remembered, of the latest documents when there are more.
const REMEMBERED: usize = 1 << 20;

/// How much of a budget may be kept.
pub(crate) fn share_of(memory: u64) -> u64 {
    if memory < LEAST_MEMORY { 0 } else { memory / 4 }
}

/// Tells documents that look like copies, hands out blocks to workers and takes them back.
pub(crate) struct Keeper {
    n_blocks: u64,
    handed_out: AtomicU64,
    blocks: Mutex<Vec<(u64, Vec<u64>)>>,
    /// Sixteen bits of a feature, where others say.
    seen: Vec<AtomicU16>,
}

/// Where the shingles of a document are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    block: u32,
    start: u32,
    len: u32,
}

impl Place {
    /// Of a document that was not kept.
    pub const NONE: Place = Place { block: 0, start: 0, len: u32::MAX };
}

impl Keeper {
    /// Of at most so many bytes.
    pub fn new(bytes: u64) -> Keeper {
        let n_blocks = (bytes / BLOCK_BYTES).min(u64::from(u32::MAX));
        let n_seen = if n_blocks == 0 { 0 } else { REMEMBERED };
        let seen = std::iter::repeat_with(AtomicU16::default).take(n_seen).collect();
        Keeper { n_blocks, handed_out: AtomicU64::new(0), blocks: Mutex::new(Vec::new()), seen }
    }

    /// The bytes that may be kept.
    pub fn capacity(&self) -> u64 {
        self.n_blocks * BLOCK_BYTES
    }

    /// For one worker.
    pub fn hand(&self) -> Hand<'_> {
        Hand { keeper: self, block: None, used: 0, full: false }
    }

    /// Whether some features of a document were met before, and remembers them. Where all were, it is an exact copy, most likely, which nobody
    /// will ask for.
    fn looks_like_a_copy(&self, features: &[u64]) -> bool {
        let looked_up = &features[..features.len().min(LOOKED_UP)];
        let mut met = 0;
        for feature in looked_up {
            let mixed = feature.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            // Threads race for a slot, and one of them is forgotten: the search then reads a text that it need not have read.
            if let Some(slot) = self.seen.get((mixed >> 44) as usize & (REMEMBERED - 1)) {
                met += usize::from(slot.load(Ordering::Relaxed) == mixed as u16);
                slot.store(mixed as u16, Ordering::Relaxed);
            }
        }
        met > 0 && met < looked_up.len()
    }

    fn block(&self) -> Option<(u64, Vec<u64>)> {
        let more = |n| (n < self.n_blocks).then_some(n + 1);
        let number = self.handed_out.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some((number, Vec::with_capacity(BLOCK)))
    }

    /// What was kept, when all workers are done. Places are in order of document.
    pub fn finish(self, places: Vec<(u32, Place)>, features: Features) -> Kept {
        let mut blocks = self.blocks.into_inner().unwrap_or_else(PoisonError::into_inner);
        blocks.sort_unstable_by_key(|(number, _)| *number);
        // Every number that was handed out has come back.
        let blocks = blocks.into_iter().map(|(_, block)| block).collect();
        Kept { places, blocks, features }
    }
}

/// The block that a worker fills.
pub(crate) struct Hand<'a> {
    keeper: &'a Keeper,
    block: Option<(u64, Vec<u64>)>,
    used: usize,
    full: bool,
}

impl Hand<'_> {
    /// Keeps the shingles of a document if it looks like a copy and there is room.
    pub fn keep(&mut self, shingles: &[u64], features: &[u64]) -> Place {
        if !self.keeper.looks_like_a_copy(features) || shingles.len() + PLACE > BLOCK {
            return Place::NONE;
        }
        // Room for the place as well, or short documents would take more than they are given.
        let room = shingles.len() + PLACE;
        let fits = |_: &(u64, Vec<u64>)| self.used + room <= BLOCK;
        if !self.full && !self.block.as_ref().is_some_and(fits) {
            self.give_back();
            self.block = self.keeper.block();
            self.full = self.block.is_none();
            self.used = 0;
        }
        let Some((number, block)) = &mut self.block else { return Place::NONE };
        let place = Place { block: *number as u32, start: block.len() as u32, len: shingles.len() as u32 };
        block.extend_from_slice(shingles);
        self.used += room;
        place
    }

    fn give_back(&mut self) {
        if let Some(block) = self.block.take() {
            self.keeper.blocks.lock().unwrap_or_else(PoisonError::into_inner).push(block);
        }
    }
}

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// The features of documents, in order.
#[derive(Debug, Default)]
pub(crate) struct Features {
    docs: Vec<u32>,
    values: Vec<u64>,
    /// Rows that there is room for.
    room: u64,
}

impl Features {
    /// Of `k` a document, in at most so many bytes.
    pub fn new(k: usize, bytes: u64) -> Features {
        // Twice, since growing copies.
        let row = 2 * (size_of::<u32>() + k * size_of::<u64>()) as u64;
        Features { room: bytes / row, ..Features::default() }
    }

    /// Adds a document. When there is no room, all are forgotten.
    pub fn push(&mut self, doc: u32, features: &[u64]) {
        if self.room > self.docs.len() as u64 {
            self.docs.push(doc);
            self.values.extend_from_slice(features);
        } else if self.room > 0 {
            *self = Features::default();
        }
    }

    /// The features of `n` documents, `k` each; `None` when these are not all.
    pub fn rows(&self, n: u64, k: usize) -> Option<impl Iterator<Item = (u32, &[u64])>> {
        let all = self.docs.len() as u64 == n && n > 0 && self.values.len() == self.docs.len() * k;
        all.then(|| self.docs.iter().copied().zip(self.values.chunks_exact(k.max(1))))
    }

    fn bytes(&self) -> u64 {
        (self.docs.capacity() * size_of::<u32>() + self.values.capacity() * size_of::<u64>()) as u64
    }
}

/// What was kept.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    /// Documents and their places, in order.
    places: Vec<(u32, Place)>,
    /// Shingles in order of appearance, repeats included.
    blocks: Vec<Vec<u64>>,
    pub features: Features,
}

impl Kept {
    fn place(&self, doc: u32) -> Option<Place> {
        let at = self.places.binary_search_by_key(&doc, |(doc, _)| *doc).ok()?;
        self.places.get(at).map(|(_, place)| *place)
    }

    /// Whether the shingles of a document are here.
    pub fn has(&self, doc: u32) -> bool {
        self.place(doc).is_some()
    }

    /// One more than the last document that was kept.
    pub fn end(&self) -> u32 {
        self.places.last().map_or(0, |(doc, _)| doc.saturating_add(1))
    }

    /// Puts the shingles of a document into `out`; false when they are not here.
    pub fn copy_into(&self, doc: u32, out: &mut Vec<u64>) -> bool {
        let Some(Place { block, start, len }) = self.place(doc) else { return false };
        let shingles = &self.blocks[block as usize][start as usize..][..len as usize];
        out.clear();
        out.extend_from_slice(shingles);
        true
    }

    /// Memory that is held.
    pub fn bytes(&self) -> u64 {
        let blocks = self.blocks.len() as u64 * BLOCK_BYTES;
        blocks + (self.places.capacity() * size_of::<(u32, Place)>()) as u64 + self.features.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shingles(doc: u64, n: usize) -> Vec<u64> {
        (0..n as u64).map(|at| at * 31 + doc).collect()
    }

    #[test]
    fn later_copies_are_kept_while_there_is_room() {
        let keeper = Keeper::new(2 * BLOCK_BYTES);
        // Three fit into a block, and six into two.
        let third = BLOCK / 3 - PLACE;
        let mut places = Vec::new();
        {
            let (mut a, mut b) = (keeper.hand(), keeper.hand());
            assert_eq!(a.keep(&[1, 2], &[7, 8, 9]), Place::NONE, "the first of its kind");
            assert_eq!(a.keep(&[1, 2], &[7, 8, 9]), Place::NONE, "an exact copy");
            assert_eq!(a.keep(&vec![1; BLOCK + 1], &[7, 8, 1]), Place::NONE, "longer than a block");
            for doc in 0..8 {
                let hand = if doc % 2 == 0 { &mut a } else { &mut b };
                let place = hand.keep(&shingles(doc, third), &[7, 8, 1000 + doc]);
                assert_eq!(place == Place::NONE, doc >= 6);
                if doc < 6 {
                    places.push((doc as u32 + 10, place));
                }
            }
        }
        let kept = keeper.finish(places, Features::default());
        let mut found = Vec::new();
        for doc in 0..8u64 {
            assert_eq!(kept.has(doc as u32 + 10), doc < 6, "{doc}");
            assert_eq!(kept.copy_into(doc as u32 + 10, &mut found), doc < 6);
            assert!(doc >= 6 || found == shingles(doc, third), "{doc}");
        }
        assert!(!kept.has(9) && !kept.has(18) && !kept.has(19));
        assert_eq!((kept.end(), Kept::default().end()), (16, 0));
        assert!(kept.bytes() >= 2 * BLOCK_BYTES);
    }

    #[test]
    fn nothing_is_kept_in_no_memory() {
        let keeper = Keeper::new(share_of(128 << 20));
        let mut hand = keeper.hand();
        for doc in 0..4 {
            assert_eq!(hand.keep(&[1, 2, 3], &[5, doc]), Place::NONE);
        }
    }

    #[test]
    fn features_are_all_there_or_none() {
        let mut features = Features::new(2, 1 << 10);
        (0..20).for_each(|doc| features.push(doc, &[1, u64::from(doc)]));
        assert_eq!(features.rows(20, 2).unwrap().nth(3), Some((3, [1, 3].as_slice())));
        assert!(features.rows(21, 2).is_none() && features.rows(20, 3).is_none());
        (20..40).for_each(|doc| features.push(doc, &[1, u64::from(doc)]));
        assert!(features.rows(40, 2).is_none() && features.rows(0, 2).is_none());
        assert_eq!(features.bytes(), 0);
    }
}
