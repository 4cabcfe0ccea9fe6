//! Sums over all clusters, estimated from random subcollections (Pereira et al. 2006, section 4.2).

use onionskin_core::{DocId, scramble};

use crate::recall::Interval;

/// The 97.5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The subcollection that a document is in, out of `of`, by chance.
///
/// Not by order: neighbours in an input are copies of each other more often than strangers are, and
/// the first pages of a crawl are not like the others.
pub fn subcollection(doc: DocId, of: u32, seed: u64) -> u32 {
    let mixed = scramble(scramble(seed ^ 0x7375_6263_6f6c_6c65).wrapping_add(u64::from(doc)));
    // The high half of the product: as even as a remainder, and without its division.
    ((u128::from(mixed) * u128::from(of.max(1))) >> 64) as u32
}

/// A sum over all clusters, from those that have a member in the first subcollections.
///
/// Where exact duplicates are known beforehand, only what is equal beyond them is a matter of
/// chance.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The share of documents that are not in the first subcollections.
    outside: f64,
    found: f64,
    estimated: f64,
    variance: f64,
}

impl Sample {
    /// Nothing yet, after so many iterations of all.
    pub fn new(iterations: u32, of: u32) -> Sample {
        let of = of.max(1);
        let outside = 1.0 - f64::from(iterations.min(of)) / f64::from(of);
        Sample { outside, found: 0.0, estimated: 0.0, variance: 0.0 }
    }

    /// `count` clusters of `size` documents that were found, each of which adds `value`.
    pub fn add(&mut self, value: f64, size: u64, count: u64) {
        let (missed, count) = (self.missed(size), count as f64);
        let seen = 1.0 - missed;
        self.found += count * value;
        self.estimated += count * value / seen;
        self.variance += count * value * value * missed / (seen * seen);
    }

    /// The sum over what was found.
    pub fn found(&self) -> f64 {
        self.found
    }

    /// The interval of all sums H with (H − estimate)² ≤ z² V(H), where the variance of what is not
    /// accounted for is that of pairs, each with the value `of_pair`. No end is more than `less`
    /// below what was found, or `more` above it.
    pub fn interval(&self, of_pair: f64, less: f64, more: f64) -> Interval {
        let (least, most) = (self.found - less.max(0.0), self.found + more.max(0.0));
        let missed = self.missed(2);
        if missed >= 1.0 {
            return Interval { value: self.found, low: least, high: most };
        }
        let half = Z * Z * of_pair * missed / (1.0 - missed) / 2.0;
        let root = (half * half + Z * Z * self.variance).sqrt();
        let within = |value: f64| value.clamp(least, most);
        Interval {
            value: within(self.estimated),
            low: within(self.estimated + half - root),
            high: within(self.estimated + half + root),
        }
    }

    /// How likely it is that no member of a cluster is in the first subcollections.
    fn missed(&self, size: u64) -> f64 {
        self.outside.powf(size as f64)
    }
}
