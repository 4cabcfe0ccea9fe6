//! A set of fingerprints that is emptied for every document.
//!
//! Sorting a document's fingerprints would tell repeats as well, in seven times the time. A hash table has to be emptied, which for a short
//! document takes as long as filling it. This one holds numbers instead of fingerprints, and they go on from document to document: a
//! number of an earlier document is as good as none.

/// Fingerprints of one document, each once, in order.
#[derive(Clone, Debug, Default)]
pub struct FingerprintSet {
    /// What was added, in order.
    members: Vec<u64>,
    /// One more than `base` and the place of a member; what is not above `base` is free.
    slots: Vec<u32>,
    base: u32,
    /// The part of the slots that is used for as many members as are expected.
    mask: usize,
    shift: u32,
}

impl FingerprintSet {
    /// Forgets everything and makes room for `n` fingerprints.
    ///
    /// # Panics
    /// When `n` is more than 2³⁰.
    pub fn reset(&mut self, n: usize) {
        assert!(n <= 1 << 30, "a document has fewer than 2³⁰ chunks");
        let capacity = (4 * n).next_power_of_two().max(16);
        self.mask = capacity - 1;
        self.shift = 64 - capacity.ilog2();
        if self.slots.len() < capacity {
            self.slots.resize(capacity, 0);
        }
        let used = self.base as usize + self.members.len();
        self.members.clear();
        self.members.reserve(n);
        if used + n < u32::MAX as usize {
            self.base = used as u32;
        } else {
            self.base = 0;
            self.slots.fill(0);
        }
    }

    /// Adds a fingerprint; false when it was there. No more can be added than there was room made for.
    #[inline]
    pub fn insert(&mut self, fingerprint: u64) -> bool {
        let mut slot = self.home(fingerprint);
        loop {
            match self.member(slot) {
                None => break,
                Some(member) if member == fingerprint => return false,
                Some(_) => slot = (slot + 1) & self.mask,
            }
        }
        self.members.push(fingerprint);
        self.slots[slot] = self.base + self.members.len() as u32;
        true
    }

    /// Whether a fingerprint was added.
    #[inline]
    pub fn contains(&self, fingerprint: u64) -> bool {
        let mut slot = self.home(fingerprint);
        loop {
            match self.member(slot) {
                None => return false,
                Some(member) if member == fingerprint => return true,
                Some(_) => slot = (slot + 1) & self.mask,
            }
        }
    }

    /// What was added, each once, in order.
    pub fn members(&self) -> &[u64] {
        &self.members
    }

    /// Keeps the first of equal fingerprints, in order.
    pub fn retain_first(&mut self, fingerprints: &mut Vec<u64>) {
        self.reset(fingerprints.len());
        fingerprints.iter().for_each(|fingerprint| _ = self.insert(*fingerprint));
        // Most documents repeat nothing.
        if self.members.len() < fingerprints.len() {
            fingerprints.clear();
            fingerprints.extend_from_slice(&self.members);
        }
    }

    #[inline]
    fn home(&self, fingerprint: u64) -> usize {
        (fingerprint.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize
    }

    #[inline]
    fn member(&self, slot: usize) -> Option<u64> {
        let place = self.slots[slot].checked_sub(self.base)?.checked_sub(1)?;
        self.members.get(place as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Documents one after the other, as sets of the standard library have them.
        #[test]
        fn a_set_is_a_set(documents in prop::collection::vec(prop::collection::vec(0u64..60, 0..80), 1..8), far: bool) {
            let mut set = FingerprintSet::default();
            if far {
                // Numbers run out in the middle.
                set.base = u32::MAX - 100;
            }
            for document in documents {
                set.reset(document.len());
                let mut seen = std::collections::HashSet::new();
                for fingerprint in &document {
                    prop_assert_eq!(set.insert(*fingerprint), seen.insert(*fingerprint));
                }
                for fingerprint in 0..60 {
                    prop_assert_eq!(set.contains(fingerprint), seen.contains(&fingerprint));
                }
                prop_assert_eq!(set.members().len(), seen.len());
            }
        }

        #[test]
        fn firsts_are_kept(values in prop::collection::vec(0u64..20, 0..50)) {
            let mut found = values.clone();
            let mut set = FingerprintSet::default();
            set.retain_first(&mut found);
            let mut naive = vec![];
            for value in values {
                if !naive.contains(&value) {
                    naive.push(value);
                }
            }
            prop_assert_eq!(set.members(), &naive);
            prop_assert_eq!(found, naive);
        }
    }
}
