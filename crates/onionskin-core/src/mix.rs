//! A scrambler and a generator of constants. Both reach disk through sketches, so both are frozen
//! by test vectors.

/// A bijection on 64 bits that leaves no linear structure behind.
///
/// Rabin fingerprints are linear over GF(2): near-equal shingles have related fingerprints. The
/// permutations of a sketch are linear too, over the integers. Scrambling in between lets their
/// minima be as good as random (Broder 2000, section 2: "random linear transformations are likely
/// to suffice in practice"). The constants are Stafford's mix 13.
#[inline]
pub fn scramble(x: u64) -> u64 {
    let x = half_scramble(x);
    x ^ (x >> 31)
}

/// The multipliers of [`scramble`].
pub(crate) const MULTIPLIERS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// [`scramble`] without its last step, which is for the lower bits.
#[inline]
pub(crate) fn half_scramble(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(MULTIPLIERS[0]);
    (x ^ (x >> 27)).wrapping_mul(MULTIPLIERS[1])
}

/// Steele, Lea and Flood's generator: what turns a seed into permutations.
#[derive(Clone, Debug)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Starts from a seed; every seed is good.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scramble(self.0)
    }

    /// The next 32 bits.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frozen() {
        // The published test vector of SplitMix64 for seed 1234567.
        let mut rng = SplitMix64::new(1_234_567);
        assert_eq!(
            [rng.next_u64(), rng.next_u64(), rng.next_u64()],
            [6457827717110365317, 3203168211198807973, 9817491932198370423]
        );
    }
}
