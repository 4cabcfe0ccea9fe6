//! Sketches: a few hundred bytes from which the resemblance of two documents can be estimated.
//!
//! The minimum of a random permutation of A∪B lies in A∩B with probability |A∩B| / |A∪B|, so the
//! share of permutations whose minima agree estimates the resemblance (Broder 2000, section 2).
//! Three kinds are made:
//!
//! - [`Permutations`]: t independent permutations, a minimum each. What features are built of.
//! - [`OnePermutation`]: one permutation in t bins, a minimum each. Features can be built of it
//!   too, in a small part of the time.
//! - [`bottom_sketch`]: one permutation, its t smallest images. Quicker for long documents, useless
//!   for features.
//!
//! A permutation is x ↦ a·x + b modulo 2³², a odd, over one half of the scrambled fingerprint: the
//! low half for even numbers, the high half for odd ones, so that a pair of minima tells 64 bits
//! apart and a one-shingle document is not mistaken for another. 32 bits are enough for minima
//! ("the shingle fingerprints can be quite short", section 2) and make sketches half as long and
//! twice as fast. A sketch of one recipe says nothing about a sketch of another.

use crate::id::{Packed, shared_of_sorted_sets};
use crate::mix::{SplitMix64, scramble};
use crate::simd;

mod one;

pub use one::OnePermutation;

/// t min-wise permutations, drawn from a seed.
#[derive(Clone, Debug)]
pub struct Permutations {
    t: usize,
    /// Odd, and padded to a multiple of eight, as the offsets are.
    multipliers: Vec<u32>,
    offsets: Vec<u32>,
    scrambled: Vec<u64>,
    minima: Vec<u32>,
}

impl Permutations {
    /// The first `t` permutations of a seed: fewer are always a prefix of more.
    pub fn new(t: usize, seed: u64) -> Permutations {
        let mut rng = SplitMix64::new(seed);
        let padded = t.next_multiple_of(8);
        let (multipliers, offsets) = (0..padded).map(|_| (rng.next_u32() | 1, rng.next_u32())).unzip();
        Permutations { t, multipliers, offsets, scrambled: vec![], minima: vec![] }
    }

    /// How many there are.
    pub fn t(&self) -> usize {
        self.t
    }

    /// The sketch of a set of fingerprints; repeats do no harm. All ones for an empty set, which
    /// resembles nothing.
    pub fn sketch(&mut self, fingerprints: &[u64]) -> &[u32] {
        self.scrambled.clear();
        self.scrambled.extend(fingerprints.iter().map(|fingerprint| scramble(*fingerprint)));
        self.minima.clear();
        self.minima.resize(self.multipliers.len(), u32::MAX);
        simd::lower_minima(&self.scrambled, &self.multipliers, &self.offsets, &mut self.minima);
        &self.minima[..self.t]
    }

    /// The same by the definition, one permutation and one fingerprint at a time.
    pub fn sketch_trivial_but_slow(&self, fingerprints: &[u64]) -> Vec<u32> {
        (0..self.t)
            .map(|i| {
                let image = |fingerprint: &u64| {
                    let x = scramble(*fingerprint);
                    let half = if i % 2 == 0 { x as u32 } else { (x >> 32) as u32 };
                    self.multipliers[i].wrapping_mul(half).wrapping_add(self.offsets[i])
                };
                fingerprints.iter().map(image).min().unwrap_or(u32::MAX)
            })
            .collect()
    }
}

/// An estimate and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimated share, from 0 to 1.
    pub value: f64,
    /// Its standard error, estimated from the value.
    pub standard_error: f64,
}

impl Estimate {
    fn of_share(agreeing: usize, of: usize) -> Estimate {
        if of == 0 {
            return Estimate { value: 0.0, standard_error: 0.0 };
        }
        let value = agreeing as f64 / of as f64;
        Estimate { value, standard_error: standard_error(value, of) }
    }
}

/// The standard error of a resemblance estimated from `t` minima: √(ρ(1-ρ)/t).
pub fn standard_error(resemblance: f64, t: usize) -> f64 {
    (resemblance * (1.0 - resemblance) / t as f64).sqrt()
}

/// Estimates resemblance from two sketches by the same permutations.
///
/// # Panics
/// When the sketches have different lengths.
pub fn estimate_resemblance(a: &[u32], b: &[u32]) -> Estimate {
    assert_eq!(a.len(), b.len(), "sketches of different recipes cannot be compared");
    Estimate::of_share(a.iter().zip(b).filter(|(x, y)| x == y).count(), a.len())
}

/// Turns a resemblance into the containment |A∩B| / |A| of sets of known sizes: with r = I/(A+B-I),
/// I = r(A+B)/(1+r).
pub fn containment(resemblance: Estimate, size_a: u64, size_b: u64) -> Estimate {
    if size_a == 0 {
        return Estimate { value: 0.0, standard_error: 0.0 };
    }
    let (r, total) = (resemblance.value, (size_a + size_b) as f64);
    let value = (r / (1.0 + r) * total / size_a as f64).min(1.0);
    // The derivative of r/(1+r) is 1/(1+r)².
    let standard_error = resemblance.standard_error * total / size_a as f64 / (1.0 + r).powi(2);
    Estimate { value, standard_error }
}

/// Padding of a bottom sketch that has fewer than t members.
pub const NO_MEMBER: u32 = Packed::<u32>::NONE.bits();

/// The t smallest images of a set under one permutation, ascending, padded with [`NO_MEMBER`]
/// (Broder 2000, section 2, in brackets). The images are the upper halves of the scrambled and
/// seeded fingerprints.
pub fn bottom_sketch(fingerprints: &[u64], t: usize, seed: u64, out: &mut Vec<u32>) {
    let key = SplitMix64::new(seed).next_u64();
    out.clear();
    out.extend(
        fingerprints
            .iter()
            .map(|fingerprint| ((scramble(fingerprint ^ key) >> 32) as u32).min(NO_MEMBER - 1)),
    );
    // Repeats have equal images; cutting at t before they are gone would lose members, so cut only
    // what is sure to be beyond.
    out.sort_unstable();
    out.dedup();
    out.resize(t.min(out.len()), NO_MEMBER);
    out.resize(t, NO_MEMBER);
}

/// Estimates resemblance from two bottom sketches: of the t smallest images of the union, the share
/// that is in both.
///
/// # Panics
/// When the sketches have different lengths.
pub fn estimate_resemblance_from_bottom(a: &[u32], b: &[u32]) -> Estimate {
    assert_eq!(a.len(), b.len(), "sketches of different recipes cannot be compared");
    let t = a.len();
    let (mut i, mut j, mut seen, mut shared) = (0, 0, 0, 0);
    while seen < t {
        let (x, y) = (a.get(i).copied().unwrap_or(NO_MEMBER), b.get(j).copied().unwrap_or(NO_MEMBER));
        if x == NO_MEMBER && y == NO_MEMBER {
            break;
        }
        shared += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
        seen += 1;
    }
    Estimate::of_share(shared, seen)
}

/// The true resemblance of two sets of fingerprints, in any order.
pub fn resemblance_trivial_but_slow(a: &[u64], b: &[u64]) -> f64 {
    let sorted = |set: &[u64]| {
        let mut set = set.to_vec();
        set.sort_unstable();
        set.dedup();
        set
    };
    let (a, b) = (sorted(a), sorted(b));
    let shared = shared_of_sorted_sets(&a, &b);
    let union = a.len() + b.len() - shared;
    if union == 0 { 0.0 } else { shared as f64 / union as f64 }
}

#[cfg(test)]
mod tests;
