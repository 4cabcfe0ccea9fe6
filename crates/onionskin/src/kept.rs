//! Features that a scan keeps in memory for the search that follows it in the same process, so that they are not read back and decoded: all of
//! them, or none when they do not fit.
//!
//! Shingles are not kept, although a search makes those of its candidates again: they take more room than the texts, and memory that is touched
//! for the first time costs a page fault every 4 KB. To put down the shingles of likely copies alone, an eighth of a web, took longer
//! than to read and cut these texts once more.

/// With less than this there is better use for memory.
const LEAST_MEMORY: u64 = 256 << 20;
/// How much of a budget may be kept.
pub(crate) fn share_of(memory: u64) -> u64 {
    if memory < LEAST_MEMORY { 0 } else { memory / 8 }
}

/// The features of documents, in order.
#[derive(Debug, Default)]
pub(crate) struct KeptFeatures {
    docs: Vec<u32>,
    values: Vec<u64>,
    /// Rows that there is room for.
    room: u64,
}

impl KeptFeatures {
    /// Of `k` a document, in at most so many bytes.
    pub fn new(k: usize, bytes: u64) -> KeptFeatures {
        // Twice, since growing copies.
        let row = 2 * (size_of::<u32>() + k * size_of::<u64>()) as u64;
        KeptFeatures { room: bytes / row, ..KeptFeatures::default() }
    }

    /// Adds a document. When there is no room, all are forgotten.
    pub fn push(&mut self, doc: u32, features: &[u64]) {
        if self.room > self.docs.len() as u64 {
            self.docs.push(doc);
            self.values.extend_from_slice(features);
        } else if self.room > 0 {
            *self = KeptFeatures::default();
        }
    }

    /// The features of `n` documents, `k` each; `None` when these are not all.
    pub fn rows(&self, n: u64, k: usize) -> Option<impl Iterator<Item = (u32, &[u64])> + Clone> {
        let all = self.docs.len() as u64 == n && n > 0 && self.values.len() == self.docs.len() * k;
        all.then(|| self.docs.iter().copied().zip(self.values.chunks_exact(k.max(1))))
    }

    /// Memory that is held.
    pub fn bytes(&self) -> u64 {
        (self.docs.capacity() * size_of::<u32>() + self.values.capacity() * size_of::<u64>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_all_there_or_none() {
        let mut features = KeptFeatures::new(2, 1 << 10);
        (0..20).for_each(|doc| features.push(doc, &[1, u64::from(doc)]));
        assert_eq!(features.rows(20, 2).unwrap().nth(3), Some((3, [1, 3].as_slice())));
        assert!(features.rows(21, 2).is_none() && features.rows(20, 3).is_none());
        assert!(features.bytes() >= 20 * 20);
        (20..40).for_each(|doc| features.push(doc, &[1, u64::from(doc)]));
        assert!(features.rows(40, 2).is_none() && features.rows(0, 2).is_none());
        assert_eq!(features.bytes(), 0);
    }

    #[test]
    fn nothing_is_kept_in_no_memory() {
        let mut features = KeptFeatures::new(1, share_of(128 << 20));
        features.push(0, &[7]);
        assert!(features.rows(1, 1).is_none());
    }
}
