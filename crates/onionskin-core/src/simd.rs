//! The kernels that use what the processor has, each behind a safe function, each equal by test to its portable twin.
//!
//! The choice is made once per process. `ONIONSKIN_PORTABLE=1` in the environment is not read here (this crate does no
//! I/O); tests call the twins directly.

#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod x86;

use crate::gf2;

/// The constants of one modulus that the carry-less kernel needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Barrett {
    /// ⌊t¹²⁸ / M⌋ without its leading term.
    pub mu: u64,
    /// M without its leading term.
    pub rest: u64,
}

/// Whether the processor multiplies without carry.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_carryless_multiply() -> bool {
    std::arch::is_x86_feature_detected!("pclmulqdq") && std::arch::is_x86_feature_detected!("sse2")
}

#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn has_carryless_multiply() -> bool {
    false
}

/// For every window of `coefficients.len()` blocks: Σ blockⱼ·coefficientⱼ mod M, xor `constant`, appended to `out`.
/// `None` when the processor cannot; then nothing is written.
pub(crate) fn window_sums(
    blocks: &[u64],
    coefficients: &[u64],
    constant: u64,
    barrett: Barrett,
    out: &mut Vec<u64>,
) -> Option<()> {
    #[cfg(target_arch = "x86_64")]
    if has_carryless_multiply() {
        // SAFETY: the features that `window_sums` enables were detected just above.
        unsafe { x86::window_sums(blocks, coefficients, constant, barrett, out) };
        return Some(());
    }
    let _ = (blocks, coefficients, constant, barrett, out);
    None
}

/// a·b mod M.
pub(crate) fn mul(a: u64, b: u64, barrett: Barrett) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if has_carryless_multiply() {
        // SAFETY: the feature was detected just above.
        return unsafe { x86::mul(a, b, barrett) };
    }
    gf2::Modulus::new(barrett.rest).mul(a, b)
}

/// `state`·t^(64n) + Σ blockᵢ·t^(64(n-i)) mod M, where `powers` are t⁶⁴, …, t⁵¹².
pub(crate) fn fold_blocks(mut state: u64, blocks: &[u64], powers: &[u64; 8], barrett: Barrett) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if has_carryless_multiply() {
        // SAFETY: the feature was detected just above.
        return unsafe { x86::fold_blocks(state, blocks, powers, barrett) };
    }
    for block in blocks {
        state = mul(state, powers[0], barrett) ^ block;
    }
    state
}

/// Lowers each accumulator to the smallest image of the values under its permutation: for i, the minimum over x of
/// `multipliers[i] * half(x, i) + offsets[i]` modulo 2³², where the half of x is the low one for even i and the
/// high one for odd i. All three slices have the same length, a multiple of 8.
pub(crate) fn lower_minima(values: &[u64], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    assert!(
        multipliers.len() == minima.len() && offsets.len() == minima.len() && minima.len().is_multiple_of(8)
    );
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the feature was detected just above.
            unsafe { x86::lower_minima_avx2(values, multipliers, offsets, minima) };
            return;
        }
    }
    lower_minima_portable(values, multipliers, offsets, minima);
}

/// The truth for [`lower_minima`].
pub(crate) fn lower_minima_portable(
    values: &[u64],
    multipliers: &[u32],
    offsets: &[u32],
    minima: &mut [u32],
) {
    for (i, ((minimum, a), b)) in minima.iter_mut().zip(multipliers).zip(offsets).enumerate() {
        for x in values {
            let half = if i % 2 == 0 { *x as u32 } else { (*x >> 32) as u32 };
            *minimum = (*minimum).min(a.wrapping_mul(half).wrapping_add(*b));
        }
    }
}

/// What 64 bytes of text are made of, a bit a byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ByteClasses {
    /// ASCII letters and digits.
    pub alphanumeric: u64,
    /// Bytes above 127: parts of a character outside ASCII.
    pub high: u64,
    /// Line feeds.
    pub newline: u64,
}

/// Classifies 64 bytes at once.
#[inline]
pub(crate) fn classify(block: &[u8; 64]) -> ByteClasses {
    #[cfg(target_arch = "x86_64")]
    {
        // SSE2 is part of every x86-64 processor.
        x86::classify(block)
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        classify_portable(block)
    }
}

/// The truth for [`classify`].
#[cfg_attr(target_arch = "x86_64", allow(dead_code, reason = "the twin that tests compare with"))]
pub(crate) fn classify_portable(block: &[u8; 64]) -> ByteClasses {
    let mut classes = ByteClasses::default();
    for (i, byte) in block.iter().enumerate() {
        classes.alphanumeric |= u64::from(byte.is_ascii_alphanumeric()) << i;
        classes.high |= u64::from(!byte.is_ascii()) << i;
        classes.newline |= u64::from(*byte == b'\n') << i;
    }
    classes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn minima_equal_their_portable_twin(values in prop::collection::vec(any::<u64>(), 0..40), eights in 1usize..20, seed: u64) {
            let mut rng = crate::SplitMix64::new(seed);
            let n = eights * 8;
            let multipliers: Vec<u32> = (0..n).map(|_| rng.next_u32() | 1).collect();
            let offsets: Vec<u32> = (0..n).map(|_| rng.next_u32()).collect();
            let mut expected = vec![u32::MAX; n];
            lower_minima_portable(&values, &multipliers, &offsets, &mut expected);
            let mut found = vec![u32::MAX; n];
            lower_minima(&values, &multipliers, &offsets, &mut found);
            prop_assert_eq!(&found, &expected);
        }

        #[test]
        fn classes_equal_their_portable_twin(bytes in prop::array::uniform32(any::<u8>()), more in prop::array::uniform32(any::<u8>())) {
            let mut block = [0; 64];
            block[..32].copy_from_slice(&bytes);
            block[32..].copy_from_slice(&more);
            prop_assert_eq!(classify(&block), classify_portable(&block));
        }

        #[test]
        fn product_equals_its_slow_twin(a: u64, b: u64, rest: u64) {
            let modulus = gf2::Modulus::new(rest);
            let barrett = Barrett { mu: modulus.barrett(), rest };
            prop_assert_eq!(mul(a, b, barrett), modulus.mul(a, b));
        }
    }

    #[test]
    fn every_byte_is_classified_like_its_twin() {
        for byte in 0..=255u8 {
            assert_eq!(classify(&[byte; 64]), classify_portable(&[byte; 64]), "{byte:#x}");
        }
    }
}
