//! What makes two documents similar, and what follows from it for each of them alone.

use onionskin_core::Threshold;

/// When two sets are similar enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// They share at least so many chunks (Shivakumar and Garcia-Molina 1998, section 2).
    Overlap(Threshold),
    /// |A∩B| / |A∪B| is at least this (Broder 2000, section 2).
    Resemblance(f64),
    /// |A∩B| / max(|A|, |B|) is at least this: a percentage of the chunks of *both* (Pereira et al. 2006, definition 5).
    Share(f64),
}

/// Lowers a bound by more than the rounding of a division, so that no pair on the border is lost;
/// `holds` has the last word.
fn ceil_of(share: f64, n: u64) -> u64 {
    (share * n as f64 * (1.0 - 1e-12) - 1e-9).ceil().max(1.0) as u64
}

impl Bound {
    /// Whether two sets of these sizes that share so many are similar. Sets that share nothing
    /// never are.
    pub fn holds(self, shared: u32, size_a: u32, size_b: u32) -> bool {
        let (n_a, n_b, both) = (u64::from(size_a), u64::from(size_b), f64::from(shared));
        shared > 0
            && match self {
                Bound::Overlap(threshold) => shared >= threshold.get(),
                Bound::Resemblance(least) => {
                    both / (n_a + n_b).saturating_sub(u64::from(shared)) as f64 >= least
                }
                Bound::Share(least) => both / n_a.max(n_b) as f64 >= least,
            }
    }

    /// The fewest chunks that two sets of these sizes must share; more than either has when they
    /// cannot be similar.
    pub fn least_shared(self, size_a: u32, size_b: u32) -> u64 {
        let (n_a, n_b) = (u64::from(size_a), u64::from(size_b));
        match self {
            Bound::Overlap(threshold) => u64::from(threshold.get()),
            Bound::Resemblance(least) => ceil_of(least / (1.0 + least), n_a + n_b),
            Bound::Share(least) => ceil_of(least, n_a.max(n_b)),
        }
    }

    /// Whether sets of these sizes can be similar at all.
    pub fn sizes_fit(self, size_a: u32, size_b: u32) -> bool {
        self.least_shared(size_a, size_b) <= u64::from(size_a.min(size_b))
    }

    /// How many chunks of a set of `n`, in any order that is the same for all sets, must be looked
    /// at so that no similar set is missed: two similar sets meet in these first chunks of both. 0
    /// when no set is similar to one so small.
    pub fn prefix_len(self, n: u32) -> u32 {
        let least = match self {
            Bound::Overlap(threshold) => u64::from(threshold.get()),
            Bound::Resemblance(least) | Bound::Share(least) => ceil_of(least, u64::from(n)),
        };
        (u64::from(n) + 1).saturating_sub(least) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bounds() -> impl Strategy<Value = Bound> {
        prop_oneof![
            (1u32..40).prop_map(|t| Bound::Overlap(Threshold::new(t).unwrap())),
            (1u32..=100).prop_map(|t| Bound::Resemblance(f64::from(t) / 100.0)),
            (1u32..=100).prop_map(|t| Bound::Share(f64::from(t) / 100.0)),
        ]
    }

    proptest! {
        #[test]
        fn what_holds_is_never_ruled_out(bound in bounds(), n_a in 1u32..200, n_b in 1u32..200, part in 0.0f64..=1.0) {
            let shared = (f64::from(n_a.min(n_b)) * part).round() as u32;
            if bound.holds(shared, n_a, n_b) {
                prop_assert!(u64::from(shared) >= bound.least_shared(n_a, n_b));
                prop_assert!(bound.sizes_fit(n_a, n_b));
                // Whatever the order: the shared chunks cannot all hide behind the prefix.
                prop_assert!(n_a - shared < bound.prefix_len(n_a));
                prop_assert!(n_b - shared < bound.prefix_len(n_b));
            }
        }
    }

    #[test]
    fn the_border_counts() {
        assert!(Bound::Resemblance(0.9).holds(9, 9, 10) && !Bound::Resemblance(0.9).holds(17, 18, 19));
        assert!(Bound::Overlap(Threshold::new(15).unwrap()).holds(15, 100, 100));
        assert_eq!(Bound::Overlap(Threshold::new(15).unwrap()).prefix_len(14), 0);
        assert!(Bound::Share(0.5).holds(1, 2, 2) && !Bound::Share(0.5).holds(1, 1, 3));
        assert!(!Bound::Resemblance(0.1).holds(0, 1, 1));
    }
}
