//! A hash table that knows what it weighs.

/// From 64-bit fingerprints to counts, places or numbers, none of which is 0.
///
/// Open addressing with linear probing. A value of 0 marks a free slot, so that every key may
/// occur. Keys should be fingerprints or the like: those in arithmetic progression would crowd.
#[derive(Clone, Debug)]
pub struct FingerprintTable {
    keys: Vec<u64>,
    values: Vec<u32>,
    len: usize,
    shift: u32,
}

/// Bytes of a slot.
const SLOT: usize = size_of::<u64>() + size_of::<u32>();

impl FingerprintTable {
    /// An empty table of about so many bytes: the largest power of two of slots that fits, 16 at
    /// least.
    pub fn of_bytes(bytes: usize) -> FingerprintTable {
        let slots = (bytes / SLOT).max(16);
        FingerprintTable::of_slots(1 << slots.ilog2())
    }

    fn of_slots(slots: usize) -> FingerprintTable {
        FingerprintTable { keys: vec![0; slots], values: vec![0; slots], len: 0, shift: 64 - slots.ilog2() }
    }

    /// Keys in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Keys that it has room for: three of four slots, beyond which searches become long.
    pub fn capacity(&self) -> usize {
        self.keys.len() / 4 * 3
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.keys.len() * SLOT
    }

    #[inline]
    fn slot(&self, key: u64) -> usize {
        let mask = self.keys.len() - 1;
        let mut slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        while self.values[slot] != 0 && self.keys[slot] != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// The value of a key; 0 when it is not there.
    #[inline]
    pub fn get(&self, key: u64) -> u32 {
        self.values[self.slot(key)]
    }

    /// The value of a key that is there.
    #[inline]
    pub fn get_mut(&mut self, key: u64) -> Option<&mut u32> {
        let slot = self.slot(key);
        Some(&mut self.values[slot]).filter(|value| **value != 0)
    }

    /// Sets the value of a key, not 0, and gives what it was. The caller sees to it that there is
    /// room.
    pub fn insert(&mut self, key: u64, value: u32) -> u32 {
        debug_assert!(value != 0 && self.len < self.keys.len() - 1);
        let slot = self.slot(key);
        self.keys[slot] = key;
        let before = std::mem::replace(&mut self.values[slot], value);
        self.len += usize::from(before == 0);
        before
    }

    /// Twice the slots.
    pub fn grow(&mut self) {
        let mut larger = FingerprintTable::of_slots(self.keys.len() * 2);
        for (key, value) in self.iter() {
            larger.insert(key, value);
        }
        *self = larger;
    }

    /// Keys and values, in the order of the slots.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        self.keys
            .iter()
            .zip(&self.values)
            .filter(|(_, value)| **value != 0)
            .map(|(key, value)| (*key, *value))
    }

    /// Keeps some of the keys. Holds those twice for a moment.
    pub fn retain(&mut self, keep: impl Fn(u64) -> bool) {
        let kept: Vec<(u64, u32)> = self.iter().filter(|(key, _)| keep(*key)).collect();
        self.clear();
        for (key, value) in kept {
            self.insert(key, value);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.values.fill(0);
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn behaves_as_a_map(keys in prop::collection::vec(0u64..60, 0..200), keep in 0u64..60) {
            let mut table = FingerprintTable::of_bytes(0);
            let mut map = BTreeMap::new();
            for (at, key) in keys.iter().enumerate() {
                if table.len() == table.capacity() {
                    table.grow();
                }
                let value = at as u32 + 1;
                prop_assert_eq!(table.insert(*key, value), map.insert(*key, value).unwrap_or(0));
            }
            table.retain(|key| key < keep);
            map.retain(|key, _| *key < keep);
            prop_assert_eq!(table.len(), map.len());
            prop_assert_eq!(table.iter().collect::<BTreeMap<_, _>>(), map.clone());
            for key in 0..60 {
                prop_assert_eq!(table.get(key), map.get(&key).copied().unwrap_or(0));
                prop_assert_eq!(table.get_mut(key).copied(), map.get(&key).copied());
            }
        }
    }
}
