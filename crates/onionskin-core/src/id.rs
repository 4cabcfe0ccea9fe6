//! Small types that leave no room for mistakes.

use std::cmp::Ordering;
use std::fmt;
use std::num::NonZeroU32;

/// A document of an atlas: dense, in input order. 32 bits hold four thousand million documents, which is more than
/// one machine scans; tables on disk are wider, so that a cluster may go past it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocId(pub u32);

/// A site of an atlas: dense, in order of first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteId(pub u32);

/// A Rabin fingerprint. Those of degree 32 leave the upper half zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u64);

/// Two different documents, smaller id first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DocPair {
    lo: DocId,
    hi: DocId,
}

impl DocPair {
    /// `None` when a document is paired with itself.
    pub fn new(a: DocId, b: DocId) -> Option<DocPair> {
        match a.cmp(&b) {
            Ordering::Less => Some(DocPair { lo: a, hi: b }),
            Ordering::Greater => Some(DocPair { lo: b, hi: a }),
            Ordering::Equal => None,
        }
    }

    /// The smaller of the two.
    pub fn lo(self) -> DocId {
        self.lo
    }

    /// The larger of the two.
    pub fn hi(self) -> DocId {
        self.hi
    }
}

/// |A∩B| / |A∪B|, from 0 to 1 (Broder 2000, section 2).
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Resemblance(f64);

impl Resemblance {
    /// `None` outside 0 to 1 and for not-a-number.
    pub fn new(value: f64) -> Option<Resemblance> {
        (0.0..=1.0).contains(&value).then_some(Resemblance(value))
    }

    /// Of two sets of distinct values, each sorted ascending. Two empty sets resemble each other in nothing.
    pub fn of_sorted_sets(a: &[u64], b: &[u64]) -> Resemblance {
        debug_assert!(a.windows(2).all(|w| w[0] < w[1]) && b.windows(2).all(|w| w[0] < w[1]));
        let shared = shared_of_sorted_sets(a, b);
        let union = a.len() + b.len() - shared;
        Resemblance(if union == 0 { 0.0 } else { shared as f64 / union as f64 })
    }

    /// The number itself.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// How many values two sorted sets share.
pub(crate) fn shared_of_sorted_sets(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        shared += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    shared
}

/// A number of shared chunks that is enough: *at least* this many. The papers say both that and "more than".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Threshold(NonZeroU32);

impl Threshold {
    /// `None` for zero: then everything would be similar.
    pub fn new(at_least: u32) -> Option<Threshold> {
        NonZeroU32::new(at_least).map(Threshold)
    }

    /// The number itself.
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_ordered_and_never_of_one() {
        let pair = DocPair::new(DocId(7), DocId(3)).unwrap();
        assert_eq!((pair.lo(), pair.hi()), (DocId(3), DocId(7)));
        assert_eq!(DocPair::new(DocId(3), DocId(3)), None);
    }

    #[test]
    fn resemblance_of_small_sets() {
        assert_eq!(Resemblance::of_sorted_sets(&[1, 2, 3], &[2, 3, 4]).get(), 0.5);
        assert_eq!(Resemblance::of_sorted_sets(&[], &[]).get(), 0.0);
        assert_eq!(Resemblance::of_sorted_sets(&[5], &[5]).get(), 1.0);
        assert!(Resemblance::new(f64::NAN).is_none() && Resemblance::new(1.01).is_none());
    }
}
