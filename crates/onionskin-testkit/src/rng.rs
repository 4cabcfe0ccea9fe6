//! Randomness that is the same everywhere and can be entered at any point.
//!
//! A web of twenty million pages is written as a stream, yet page 17,000,000 must be obtainable
//! without the pages before it, and a truth file must be able to ask "where did I put member 3 of
//! cluster 812?" without having kept a list. So there is no global generator. Every decision is a
//! hash of what it is about ([`mix`]), every text has its own generator seeded by such a hash
//! ([`Dice`]), and shuffles are keyed permutations that run in both directions ([`Permutation`]).

use crate::math;

/// The finaliser of splitmix64: a bijection on 64 bits in which every input bit reaches every
/// output bit.
pub(crate) fn scramble(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Hashes a fact about something already hashed: `mix(mix(seed, place), slot)`.
pub(crate) fn mix(state: u64, fact: u64) -> u64 {
    scramble(state.rotate_left(23) ^ scramble(fact.wrapping_add(0x9e37_79b9_7f4a_7c15)))
}

/// A hash as a fraction in `0..1`.
pub(crate) fn unit(hash: u64) -> f64 {
    (hash >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// A hash as an index in `0..n`; `n` of 0 gives 0.
pub(crate) fn below(hash: u64, n: u64) -> u64 {
    ((u128::from(hash) * u128::from(n)) >> 64) as u64
}

/// xoshiro256++, seeded by splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Dice {
    state: [u64; 4],
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        let mut walk = seed;
        let state = std::array::from_fn(|_| {
            walk = walk.wrapping_add(0x9e37_79b9_7f4a_7c15);
            scramble(walk)
        });
        Dice { state }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number in `0..n`; `n` of 0 gives 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        below(self.next(), n)
    }

    /// A number in `lo..=hi`.
    pub(crate) fn between(&mut self, lo: u32, hi: u32) -> u32 {
        lo + self.below(u64::from(hi.saturating_sub(lo)) + 1) as u32
    }

    /// A standard normal variate, near enough: the sum of twelve uniforms, which needs no logarithm
    /// and so no platform's idea of one.
    pub(crate) fn normal(&mut self) -> f64 {
        let mut sum = 0u64;
        for _ in 0..3 {
            let bits = self.next();
            sum += (bits & 0xffff) + ((bits >> 16) & 0xffff) + ((bits >> 32) & 0xffff) + (bits >> 48);
        }
        (sum as f64 + 6.0) / 65_536.0 - 6.0
    }
}

/// A keyed shuffle of `0..n` that needs no table: a four-round Feistel network over the next even
/// number of bits, walked until it lands inside.
#[derive(Clone, Debug)]
pub(crate) struct Permutation {
    n: u64,
    half_bits: u32,
    keys: [u64; 4],
}

impl Permutation {
    pub(crate) fn new(n: u64, seed: u64) -> Permutation {
        let bits = (64 - n.saturating_sub(1).leading_zeros()).max(2);
        let keys = std::array::from_fn(|round| mix(seed, round as u64));
        Permutation { n, half_bits: bits.div_ceil(2), keys }
    }

    /// Where `x` goes. `x` must be below `n`.
    pub(crate) fn apply(&self, x: u64) -> u64 {
        debug_assert!(x < self.n, "{x} is not one of {}", self.n);
        let mut y = x;
        loop {
            let (mut left, mut right) = self.split(y);
            for key in self.keys {
                (left, right) = (right, left ^ self.round(right, key));
            }
            y = (left << self.half_bits) | right;
            if y < self.n {
                return y;
            }
        }
    }

    /// What goes to `y`. `y` must be below `n`.
    pub(crate) fn invert(&self, y: u64) -> u64 {
        debug_assert!(y < self.n, "{y} is not one of {}", self.n);
        let mut x = y;
        loop {
            let (mut left, mut right) = self.split(x);
            for key in self.keys.into_iter().rev() {
                (left, right) = (right ^ self.round(left, key), left);
            }
            x = (left << self.half_bits) | right;
            if x < self.n {
                return x;
            }
        }
    }

    fn split(&self, x: u64) -> (u64, u64) {
        (x >> self.half_bits, x & self.mask())
    }

    fn mask(&self) -> u64 {
        (1 << self.half_bits) - 1
    }

    fn round(&self, half: u64, key: u64) -> u64 {
        scramble(half ^ key) & self.mask()
    }
}

/// Zipf sampling in constant time by Walker's alias method: one column, one coin.
#[derive(Clone, Debug)]
pub(crate) struct ZipfTable {
    /// `(keep, other)`: the column's own rank when the coin is below `keep`, else `other`.
    columns: Vec<(u32, u32)>,
}

impl ZipfTable {
    /// Ranks `0..n` with weight `1 / (rank + 2)^exponent`; the shift flattens the very top, as in
    /// real text (Mandelbrot's form).
    pub(crate) fn new(n: u32, exponent: f64) -> ZipfTable {
        let weights: Vec<f64> =
            (0..n).map(|rank| math::exp(-exponent * math::ln(f64::from(rank) + 2.0))).collect();
        let mean = weights.iter().sum::<f64>() / f64::from(n.max(1));
        let mut scaled: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let mut columns: Vec<(u32, u32)> = (0..n).map(|rank| (u32::MAX, rank)).collect();
        let (mut small, mut large): (Vec<u32>, Vec<u32>) =
            (0..n).partition(|&rank| scaled[rank as usize] < 1.0);
        while let (Some(&poor), Some(&rich)) = (small.last(), large.last()) {
            small.pop();
            columns[poor as usize] = ((scaled[poor as usize] * 4_294_967_295.0) as u32, rich);
            scaled[rich as usize] -= 1.0 - scaled[poor as usize];
            if scaled[rich as usize] < 1.0 {
                large.pop();
                small.push(rich);
            }
        }
        ZipfTable { columns }
    }

    /// A rank from 64 random bits, all of which are used.
    #[inline]
    pub(crate) fn rank(&self, bits: u64) -> u32 {
        let column = ((bits >> 32) * self.columns.len() as u64) >> 32;
        match self.columns.get(column as usize) {
            Some(&(keep, _)) if (bits as u32) < keep => column as u32,
            Some(&(_, other)) => other,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn streams_are_frozen() {
        // Webs are named by their seeds; these values may never change.
        let mut rng = Dice::new(1);
        let got: Vec<u64> = (0..3).map(|_| rng.next()).collect();
        assert_eq!(got, FROZEN_STREAM);
        assert_eq!(mix(1, 2), FROZEN_MIX);
    }
    const FROZEN_STREAM: [u64; 3] =
        [14_971_601_782_005_023_387, 13_781_649_495_232_077_965, 1_847_458_086_238_483_744];
    const FROZEN_MIX: u64 = 12_481_302_077_157_674_812;

    #[test]
    fn normal_has_mean_zero_and_variance_one() {
        let mut rng = Dice::new(7);
        let n = 20_000;
        let sample: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        let mean = sample.iter().sum::<f64>() / f64::from(n);
        let variance = sample.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 4.0 / f64::from(n).sqrt(), "mean {mean}");
        assert!((variance - 1.0).abs() < 0.05, "variance {variance}");
    }

    #[test]
    fn zipf_ranks_come_in_their_shares() {
        let table = ZipfTable::new(100, 1.0);
        let mut rng = Dice::new(3);
        let draws = 200_000;
        let mut counts = [0u32; 100];
        for _ in 0..draws {
            counts[table.rank(rng.next()) as usize] += 1;
        }
        let total: f64 = (0..100).map(|rank| 1.0 / (f64::from(rank) + 2.0)).sum();
        for rank in [0, 1, 5, 50, 99] {
            let share = 1.0 / (rank as f64 + 2.0) / total;
            let expected = share * f64::from(draws);
            let error = (share * f64::from(draws) * (1.0 - share)).sqrt();
            let got = f64::from(counts[rank]);
            assert!((got - expected).abs() < 4.0 * error, "rank {rank}: {got}, expected {expected}");
        }
    }

    proptest! {
        #[test]
        fn a_permutation_undoes_itself_and_stays_inside(n in 1u64..5_000_000, x in any::<u64>(), seed in any::<u64>()) {
            let permutation = Permutation::new(n, seed);
            let x = x % n;
            let y = permutation.apply(x);
            prop_assert!(y < n);
            prop_assert_eq!(permutation.invert(y), x);
        }

        #[test]
        fn a_permutation_reaches_every_place_once(n in 1u64..300, seed in any::<u64>()) {
            let permutation = Permutation::new(n, seed);
            let mut image: Vec<u64> = (0..n).map(|x| permutation.apply(x)).collect();
            image.sort_unstable();
            prop_assert_eq!(image, (0..n).collect::<Vec<_>>());
        }
    }
}
