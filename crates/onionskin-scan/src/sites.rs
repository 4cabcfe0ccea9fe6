//! Numbers for hosts, in order of first appearance.
//!
//! The names themselves go to the table at once; only a fingerprint and a number stay in memory.
//! Each slot has 12 bytes, and between 3/8 and 3/4 of the slots are used: 16 to 32 bytes per host.
//! While the table grows, the old and the new one are in memory. This is the one thing in a scan
//! that grows with the web.

use onionskin_core::{FingerprintTable, SiteId};
use xxhash_rust::xxh3::xxh3_64;

pub(super) struct Sites {
    /// From the fingerprint of a host to its number, counted from 1.
    numbers: FingerprintTable,
}

impl Sites {
    pub fn new() -> Sites {
        Sites { numbers: FingerprintTable::of_bytes(16 << 10) }
    }

    pub fn len(&self) -> u32 {
        self.numbers.len() as u32
    }

    /// Bytes it occupies, and would while growing once more.
    pub fn bytes_when_grown(&self) -> u64 {
        3 * self.numbers.bytes() as u64
    }

    /// The number of a host, and whether it is new.
    pub fn number(&mut self, host: &str) -> (SiteId, bool) {
        let fingerprint = xxh3_64(host.as_bytes());
        let known = self.numbers.get(fingerprint);
        if known != 0 {
            return (SiteId(known - 1), false);
        }
        if self.numbers.len() == self.numbers.capacity() {
            self.numbers.grow();
        }
        self.numbers.insert(fingerprint, self.len() + 1);
        (SiteId(self.len() - 1), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_first_appearance() {
        let mut sites = Sites::new();
        for round in 0..2 {
            for i in 0..5_000 {
                assert_eq!(sites.number(&format!("host{i}.example")), (SiteId(i), round == 0));
            }
        }
        assert_eq!(sites.len(), 5_000);
    }
}
