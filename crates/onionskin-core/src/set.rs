//! A set of fingerprints that is emptied for every document.
//!
//! Sorting a document's fingerprints would tell repeats as well, in seven times the time. A hash
//! table has to be emptied, which for a short document takes as long as filling it. This one holds
//! numbers instead of fingerprints, and they go on from document to document: a number of an
//! earlier document is as good as none.

/// Fingerprints of one document, each once, in order.
#[derive(Clone, Debug, Default)]
pub struct FingerprintSet {
    /// The members, in order, and what earlier sets have left behind them.
    buffer: Vec<u64>,
    len: usize,
    /// One more than `base` and the place of a member; what is not above `base` is free.
    slots: Vec<u32>,
    base: u32,
    /// The part of the slots that is used for as many members as there may be.
    mask: usize,
    shift: u32,
}

impl FingerprintSet {
    /// Forgets its members and takes these, each once.
    ///
    /// # Panics
    /// When there are more than 2³⁰.
    pub fn hold(&mut self, fingerprints: &[u64]) {
        self.make_room(fingerprints.len());
        // Kept in registers: what waits for memory here waits once for every fingerprint.
        let (slots, members) = (&mut self.slots[..=self.mask], &mut self.buffer[..fingerprints.len()]);
        let (base, mask, shift) = (self.base, self.mask, self.shift);
        let mut len = 0;
        for fingerprint in fingerprints {
            // It is the next member, unless it is found among those before.
            members[len] = *fingerprint;
            let mut slot = home(*fingerprint, shift);
            loop {
                let number = slots[slot];
                if number <= base {
                    len += 1;
                    slots[slot] = base + len as u32;
                    break;
                }
                if members[(number - base - 1) as usize] == *fingerprint {
                    break;
                }
                slot = (slot + 1) & mask;
            }
        }
        self.len = len;
    }

    fn make_room(&mut self, n: usize) {
        self.make_slots(n);
        if self.buffer.len() < n {
            self.buffer.resize(n, 0);
        }
    }

    fn make_slots(&mut self, n: usize) {
        assert!(n <= 1 << 30, "a document has fewer than 2³⁰ chunks");
        let capacity = slots_for(n);
        self.mask = capacity - 1;
        self.shift = 64 - capacity.ilog2();
        if self.slots.len() < capacity {
            // Not through a copy of the old ones.
            self.slots = Vec::new();
            self.slots.resize(capacity, 0);
            (self.base, self.len) = (0, 0);
        }
        let used = self.base as usize + self.len;
        if used + n < u32::MAX as usize {
            self.base = used as u32;
        } else {
            self.base = 0;
            self.slots.fill(0);
        }
    }

    /// Where among the members a fingerprint is; `None` when it is none of them.
    #[inline]
    pub fn place(&self, fingerprint: u64) -> Option<usize> {
        let mut slot = home(fingerprint, self.shift);
        // A set that never held anything has no slots.
        while let Some(number) = self.slots.get(slot).copied()
            && number > self.base
        {
            let place = (number - self.base - 1) as usize;
            if self.buffer[place] == fingerprint {
                return Some(place);
            }
            slot = (slot + 1) & self.mask;
        }
        None
    }

    /// How many of these fingerprints, no two of which are equal, are members.
    ///
    /// What two documents share they have in nearly the same order: after one that is a member, the
    /// next is the next member, and one look tells. The table is asked only where they differ.
    pub fn count_shared(&self, fingerprints: &[u64]) -> u32 {
        self.count_shared_from(0, fingerprints).unwrap_or(0)
    }

    /// The same, `None` when they are fewer than `least`: that is often known long before the end,
    /// since everything that is not a member takes from what could still be shared.
    pub fn count_shared_from(&self, least: u64, fingerprints: &[u64]) -> Option<u32> {
        let members = self.members();
        let mut may_miss = (fingerprints.len() as u64).checked_sub(least)?;
        let (mut shared, mut next) = (0, 0);
        for fingerprint in fingerprints {
            if members.get(next) == Some(fingerprint) {
                shared += 1;
                next += 1;
            } else if let Some(place) = self.place(*fingerprint) {
                shared += 1;
                next = place + 1;
            } else {
                may_miss = may_miss.checked_sub(1)?;
            }
        }
        Some(shared)
    }

    /// What it holds, each once, in order.
    pub fn members(&self) -> &[u64] {
        &self.buffer[..self.len]
    }

    /// Keeps the first of equal fingerprints, in order.
    pub fn retain_first(&mut self, fingerprints: &mut Vec<u64>) {
        if fingerprints.len() > MANY {
            return self.retain_first_of_many(fingerprints);
        }
        self.hold(fingerprints);
        // Most documents repeat nothing.
        if self.len < fingerprints.len() {
            fingerprints.clear();
            fingerprints.extend_from_slice(self.members());
        }
    }

    /// As [`FingerprintSet::retain_first`], without a second copy: the members are those of the
    /// fingerprints that were kept so far. Holds nothing afterwards.
    fn retain_first_of_many(&mut self, fingerprints: &mut Vec<u64>) {
        self.make_slots(fingerprints.len());
        let slots = &mut self.slots[..=self.mask];
        let (base, mask, shift) = (self.base, self.mask, self.shift);
        let mut len = 0;
        for at in 0..fingerprints.len() {
            let fingerprint = fingerprints[at];
            fingerprints[len] = fingerprint;
            let mut slot = home(fingerprint, shift);
            loop {
                let number = slots[slot];
                if number <= base {
                    len += 1;
                    slots[slot] = base + len as u32;
                    break;
                }
                if fingerprints[(number - base - 1) as usize] == fingerprint {
                    break;
                }
                slot = (slot + 1) & mask;
            }
        }
        fingerprints.truncate(len);
        self.base += len as u32;
        self.len = 0;
    }

    /// Memory that it takes to keep the first of equal fingerprints among so many.
    pub fn bytes_for(n: usize) -> usize {
        4 * slots_for(n) + if n > MANY { 0 } else { 8 * n }
    }
}

/// From here on memory counts for more than time.
const MANY: usize = 1 << 18;

/// Few are full, or with many at most two in three.
fn slots_for(n: usize) -> usize {
    if n > MANY { (3 * n / 2).next_power_of_two() } else { (4 * n).next_power_of_two().max(16) }
}

/// The slot where a fingerprint is looked for first.
#[inline]
fn home(fingerprint: u64, shift: u32) -> usize {
    (fingerprint.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> shift) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn firsts_of_many_are_kept() {
        let mut set = FingerprintSet::default();
        // Before and after few, and when numbers run out.
        for (n, distinct) in [(MANY + 9, MANY / 3), (5, 2), (MANY + 1, MANY + 1), (2 * MANY, 7)] {
            let values = (0..n as u64).map(|i| (i * i) % distinct as u64).collect::<Vec<_>>();
            let mut seen = std::collections::HashSet::new();
            let expected = values.iter().copied().filter(|value| seen.insert(*value)).collect::<Vec<_>>();
            let mut found = values;
            set.retain_first(&mut found);
            assert_eq!(found, expected);
            set.base = set.base.max(u32::MAX - 2 * n as u32);
        }
    }

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
                set.hold(&document);
                let seen: std::collections::HashSet<u64> = document.into_iter().collect();
                for fingerprint in 0..60 {
                    let first = set.members().iter().position(|member| *member == fingerprint);
                    prop_assert_eq!(set.place(fingerprint), first);
                    prop_assert_eq!(first.is_some(), seen.contains(&fingerprint));
                }
                prop_assert_eq!(set.members().len(), seen.len());
            }
        }

        /// Documents that were one, and were edited.
        #[test]
        fn members_are_counted(
            document in prop::collection::hash_set(any::<u64>(), 0..80),
            others in prop::collection::vec(any::<u64>(), 0..10),
            kept in prop::collection::vec(any::<bool>(), 80),
            turned in 0usize..80,
        ) {
            let mut set = FingerprintSet::default();
            let members: Vec<u64> = document.iter().copied().collect();
            set.hold(&members);
            let mut other: Vec<u64> =
                members.iter().zip(kept).filter(|(_, kept)| *kept).map(|(member, _)| *member).collect();
            let expected = other.len() as u32;
            for (i, fingerprint) in others.into_iter().filter(|x| !document.contains(x)).enumerate() {
                other.insert((7 * i) % (other.len() + 1), fingerprint);
            }
            let turn = turned % other.len().max(1);
            other.rotate_left(turn);
            prop_assert_eq!(set.count_shared(&other), expected);
            for least in 0..=other.len() as u64 + 1 {
                let enough = (u64::from(expected) >= least).then_some(expected);
                prop_assert_eq!(set.count_shared_from(least, &other), enough);
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
