//! The kernels that use what the processor has, each behind a safe function, each equal by test to
//! its portable twin.
//!
//! Every call asks which instructions there are; the standard library caches the answer. Tests call
//! the twins directly.

#![allow(unsafe_code)]

/// The kernel compiled for as many coefficients as there are, or else `$other`.
#[cfg(target_arch = "x86_64")]
macro_rules! by_width {
    ($kernel:ident($blocks:expr, $sums:expr, $out:expr) for $($width:literal)|+, else $other:expr) => {
        match $sums.coefficients.len() {
            $($width => $kernel::<$width>($blocks, $sums, $out),)+
            _ => $other,
        }
    };
}

/// A function that loads a register from as many bytes.
#[cfg(target_arch = "x86_64")]
macro_rules! load {
    ($name:ident: $from:ty => $register:ty, $features:literal, $load:ident) => {
        #[target_feature(enable = $features)]
        #[inline]
        fn $name(from: &$from) -> $register {
            const { assert!(size_of::<$from>() == size_of::<$register>()) };
            // SAFETY: as many readable bytes as the register has, and the load needs no alignment.
            unsafe { $load(from.as_ptr().cast()) }
        }
    };
}

/// Barrett's reduction of products of degree below 128, one in each lane of a register: two
/// multiplications. The remainders are in the lower half of each lane.
///
/// With M = t⁶⁴ + m and μ = ⌊t¹²⁸/M⌋ = t⁶⁴ + μ', the quotient of H·t⁶⁴ + L is q = H + ⌊H·μ'/t⁶⁴⌋
/// and the remainder L + (q·m mod t⁶⁴), since q·t⁶⁴ cancels the upper half.
#[cfg(target_arch = "x86_64")]
macro_rules! remainders {
    ($products:expr, $barrett:expr; $upper:ident, $multiply:ident, $xor:ident) => {{
        let upper = $upper($products, $products);
        let estimate = $multiply::<0x00>(upper, $barrett);
        let quotient = $xor($upper(estimate, estimate), upper);
        $xor($multiply::<0x10>(quotient, $barrett), $products)
    }};
}

/// The sums of the windows that begin in one register, as products: those of the even ones and
/// those of the odd ones. `$load` gives the register that begins at a block.
///
/// Of blocks in a row the even ones belong to the even windows and the odd ones to the odd windows,
/// by turns. The last block of a window is multiplied by t⁶⁴, that is, moved to the upper half.
#[cfg(target_arch = "x86_64")]
macro_rules! even_and_odd_windows {
    (
        $width:ident, $factors:expr, $load:expr;
        $zero:ident, $xor:ident, $multiply:ident, $raise_even:expr, $raise_odd:expr
    ) => {{
        let (mut even, mut odd) = ($zero(), $zero());
        for (j, factor) in $factors[..$width - 1].iter().enumerate() {
            // Block j of the even windows, and block j of the odd ones.
            let (a, b) = if j % 2 == 0 {
                let blocks = $load(j);
                ($multiply::<0x00>(blocks, *factor), $multiply::<0x01>(blocks, *factor))
            } else {
                ($multiply::<0x01>($load(j - 1), *factor), $multiply::<0x00>($load(j + 1), *factor))
            };
            even = $xor(even, a);
            odd = $xor(odd, b);
        }
        let (a, b) = if ($width - 1).is_multiple_of(2) {
            ($raise_even($load($width - 1)), $raise_odd($load($width - 1)))
        } else {
            ($raise_odd($load($width - 2)), $raise_even($load($width)))
        };
        ($xor(even, a), $xor(odd, b))
    }};
}

#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::gf2;
use crate::mix::half_scramble;
use crate::token::{Runs, ascii_words as ascii_words_with, load_block, write_places};

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

/// Whether it multiplies twice without carry in one instruction.
#[cfg(target_arch = "x86_64")]
fn has_wide_carryless_multiply() -> bool {
    has_carryless_multiply()
        && std::arch::is_x86_feature_detected!("vpclmulqdq")
        && std::arch::is_x86_feature_detected!("avx2")
}

/// Whether it has registers of 512 bits for all that [`avx512`] does.
#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has_wide_carryless_multiply()
        && has_wide_integers()
        && has!("avx512f")
        && has!("avx512bw")
        && has!("avx512dq")
        && has!("avx512vbmi2")
}

/// Sums over stretches of blocks: Σ blockⱼ·coefficientⱼ mod M, xor `constant`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sums<'a> {
    /// As many as a stretch has blocks.
    pub coefficients: &'a [u64],
    pub constant: u64,
    pub barrett: Barrett,
}

/// Appends the sum of every window of blocks to `out`. `false` when the processor cannot; then
/// nothing is written.
pub(crate) fn window_sums(blocks: &[u64], sums: Sums<'_>, out: &mut Vec<u64>) -> bool {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the features that each of them enables are detected just before.
    return unsafe {
        (has_avx512() && avx512::window_sums(blocks, sums, out))
            || (has_wide_carryless_multiply() && x86::window_sums_wide(blocks, sums, out))
            || (has_carryless_multiply() && x86::window_sums(blocks, sums, out))
    };
    #[cfg(not(target_arch = "x86_64"))]
    return without_kernel(blocks, sums, out);
}

/// The same for groups of blocks that do not overlap.
pub(crate) fn group_sums(blocks: &[u64], sums: Sums<'_>, out: &mut Vec<u64>) -> bool {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the features that each of them enables are detected just before.
    return unsafe {
        (has_avx512() && avx512::group_sums(blocks, sums, out))
            || (has_carryless_multiply() && x86::group_sums(blocks, sums, out))
    };
    #[cfg(not(target_arch = "x86_64"))]
    return without_kernel(blocks, sums, out);
}

#[cfg(not(target_arch = "x86_64"))]
fn without_kernel(_: &[u64], _: Sums<'_>, _: &mut Vec<u64>) -> bool {
    false
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

/// `remainder`·t⁶⁴ mod M.
#[inline]
pub(crate) fn advance(remainder: u64, barrett: Barrett) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if has_carryless_multiply() {
        // SAFETY: the feature was detected just above.
        return unsafe { x86::advance(remainder, barrett) };
    }
    // M = t⁶⁴ + rest, so t⁶⁴ is the rest.
    gf2::Modulus::new(barrett.rest).mul(remainder, barrett.rest)
}

/// [`ascii_words_with`] by the multiplier that the processor has.
pub(crate) fn ascii_words(text: &[u8], starts: &[u64], ends: &[u64], out: &mut [u64], barrett: Barrett) {
    #[cfg(target_arch = "x86_64")]
    if has_carryless_multiply() && has_wide_integers() {
        // SAFETY: the features that `ascii_words` enables were detected just above.
        return unsafe { x86::ascii_words(text, starts, ends, out, barrett) };
    }
    ascii_words_with(starts, ends, out, |at| load_block(text, at), |remainder| advance(remainder, barrett));
}

/// Writes down the runs of a window of blocks.
pub(crate) fn find_runs(blocks: &[[u8; 64]], base: usize, runs: &mut Runs) {
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the features that `find_runs` enables were detected just above.
        return unsafe { avx512::find_runs(blocks, base, runs) };
    }
    #[cfg(target_arch = "x86_64")]
    if has_wide_integers() {
        // SAFETY: the features that `find_runs` enables were detected just above.
        return unsafe { x86::find_runs(blocks, base, runs) };
    }
    runs.find(blocks, base, classify, write_places);
}

/// Whether the processor has 256-bit integers, and counts and masks bits in one instruction.
#[cfg(target_arch = "x86_64")]
fn has_wide_integers() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("bmi1") && has!("bmi2") && has!("popcnt") && has!("lzcnt")
}

/// `state`·t^(64n) + Σ blockᵢ·t^(64(n-i)) mod M, where `powers` are t⁶⁴, …, t⁵¹².
pub(crate) fn fold_blocks(mut state: u64, blocks: &[u64], powers: &[u64; 8], barrett: Barrett) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the features that `fold_blocks` enables were detected just above.
        return unsafe { avx512::fold_blocks(state, blocks, powers, barrett) };
    }
    #[cfg(target_arch = "x86_64")]
    if has_wide_carryless_multiply() {
        // SAFETY: the features were detected just above.
        return unsafe { x86::fold_blocks_wide(state, blocks, powers, barrett) };
    }
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

/// Lowers each accumulator to the smallest image of the values under its permutation: for i, the
/// minimum over x of `multipliers[i] * half(x, i) + offsets[i]` modulo 2³², where the half of x is
/// the low one for even i and the high one for odd i. All three slices have the same length, a
/// multiple of 8.
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

/// Cuts the range of a permutation into as many bins as there are numbers in `least`, and lowers
/// each of these to the least image in its bin. The image of a fingerprint is how far it is from
/// the beginning of its bin, as many times as fine as there are bins.
pub(crate) fn lower_bins(fingerprints: &[u64], key: u64, least: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    if has_avx512() && u32::try_from(least.len()).is_ok() {
        // SAFETY: the features that `lower_bins` enables were detected just above.
        return unsafe { avx512::lower_bins(fingerprints, key, least) };
    }
    lower_bins_portable(fingerprints, key, least);
}

/// The truth for [`lower_bins`].
pub(crate) fn lower_bins_portable(fingerprints: &[u64], key: u64, least: &mut [u64]) {
    let t = least.len();
    // Four images at a time, so that no multiplication waits for a bin.
    let (fours, rest) = fingerprints.as_chunks::<4>();
    for four in fours {
        for (bin, image) in four.map(|fingerprint| image(fingerprint, key, t)) {
            least[bin] = least[bin].min(image);
        }
    }
    for (bin, image) in rest.iter().map(|fingerprint| image(*fingerprint, key, t)) {
        least[bin] = least[bin].min(image);
    }
}

/// A bit for every bin that holds something else than `none`, 64 to a word.
pub(crate) fn find_filled(bins: &[u64], none: u64, filled: &mut Vec<u64>) {
    filled.clear();
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        // SAFETY: the features that `filled` enables were detected just above.
        return filled.extend(bins.chunks(64).map(|some| unsafe { avx512::filled(some, none) }));
    }
    filled.extend(bins.chunks(64).map(|some| filled_portable(some, none)));
}

/// The truth for 64 bins of [`find_filled`], or fewer.
pub(crate) fn filled_portable(bins: &[u64], none: u64) -> u64 {
    bins.iter().zip(0..).fold(0, |bits, (least, bit)| bits | u64::from(*least != none) << bit)
}

/// The bin of a fingerprint among `t`, and its image there. The permutation is that of
/// [`crate::scramble`] without its last step, which is for the lower bits: the bin and the least
/// are chosen by the upper ones.
#[inline]
pub(crate) fn image(fingerprint: u64, key: u64, t: usize) -> (usize, u64) {
    let scaled = u128::from(half_scramble(fingerprint ^ key)) * t as u128;
    ((scaled >> 64) as usize, scaled as u64)
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

    type FindRuns = fn(&[[u8; 64]], usize, &mut Runs);

    type SumKernel = fn(&[u64], Sums<'_>, &mut Vec<u64>) -> bool;

    /// Each kernel that the processor has gives the sums of the stretches.
    fn check_sums(
        blocks: &[u64],
        stretches: &[&[u64]],
        w: usize,
        rest: u64,
        constant: u64,
        kernels: &[SumKernel],
    ) -> Result<(), TestCaseError> {
        let modulus = gf2::Modulus::new(rest);
        let coefficients: Vec<u64> = (1..=w).rev().map(|n| modulus.power_of_t64(n)).collect();
        let product_sum = |stretch: &&[u64]| {
            stretch.iter().zip(&coefficients).fold(constant, |sum, (x, c)| sum ^ modulus.mul(*x, *c))
        };
        let expected: Vec<u64> = stretches.iter().map(product_sum).collect();
        let sums =
            Sums { coefficients: &coefficients, constant, barrett: Barrett { mu: modulus.barrett(), rest } };
        for kernel in kernels {
            let mut found = vec![];
            if kernel(blocks, sums, &mut found) {
                prop_assert_eq!(&found, &expected);
            }
        }
        Ok(())
    }

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
        fn bins_equal_their_portable_twin(fingerprints in prop::collection::vec(any::<u64>(), 0..120), key: u64, t in 1usize..200) {
            let (mut found, mut expected) = (vec![u64::MAX; t], vec![u64::MAX; t]);
            lower_bins(&fingerprints, key, &mut found);
            lower_bins_portable(&fingerprints, key, &mut expected);
            prop_assert_eq!(&found, &expected);
            let mut filled = vec![7];
            find_filled(&found, u64::MAX, &mut filled);
            let expected: Vec<u64> = found.chunks(64).map(|some| filled_portable(some, u64::MAX)).collect();
            prop_assert_eq!(filled, expected);
        }

        #[test]
        fn classes_equal_their_portable_twin(bytes in prop::array::uniform32(any::<u8>()), more in prop::array::uniform32(any::<u8>())) {
            let mut block = [0; 64];
            block[..32].copy_from_slice(&bytes);
            block[32..].copy_from_slice(&more);
            prop_assert_eq!(classify(&block), classify_portable(&block));
        }

        #[test]
        fn runs_equal_their_portable_twin(text in "([a-zA-Z0-9]{1,9}[ .\n]{0,2}|[éß東]{1,3}| {0,70}|x{60,70}){0,60}") {
            let (blocks, _) = text.as_bytes().as_chunks::<64>();
            let kernels: Vec<FindRuns> = vec![
                find_runs,
                |blocks, base, runs| runs.find(blocks, base, classify, write_places),
                #[cfg(target_arch = "x86_64")]
                |blocks, base, runs| {
                    if has_wide_integers() {
                        // SAFETY: the features were detected just above.
                        unsafe { x86::find_runs(blocks, base, runs) }
                    } else {
                        find_runs(blocks, base, runs);
                    }
                },
            ];
            for kernel in kernels {
                let (mut found, mut expected) = (Runs::default(), Runs::default());
                found.begin(true);
                expected.begin(true);
                for (i, window) in blocks.chunks(3).enumerate() {
                    kernel(window, 192 * i, &mut found);
                    expected.find(window, 192 * i, classify_portable, write_places);
                    prop_assert_eq!(found.ended(), expected.ended());
                    prop_assert_eq!((&found.beyond_ascii, &found.newlines), (&expected.beyond_ascii, &expected.newlines));
                    found.next_window();
                    expected.next_window();
                }
            }
        }

        /// The processor's best kernel, the next best ones, and the definition.
        #[test]
        fn windows_equal_their_twins(blocks in prop::collection::vec(any::<u64>(), 0..80), w in 1usize..10, rest: u64, constant: u64) {
            check_sums(&blocks, &blocks.windows(w).collect::<Vec<_>>(), w, rest, constant, &[
                window_sums,
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the features are detected just before.
                |blocks, sums, out| has_wide_carryless_multiply() && unsafe { x86::window_sums_wide(blocks, sums, out) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the feature is detected just before.
                |blocks, sums, out| has_carryless_multiply() && unsafe { x86::window_sums(blocks, sums, out) },
            ])?;
        }

        #[test]
        fn groups_equal_their_twins(blocks in prop::collection::vec(any::<u64>(), 0..100), w in 1usize..10, rest: u64, constant: u64) {
            check_sums(&blocks, &blocks.chunks_exact(w).collect::<Vec<_>>(), w, rest, constant, &[
                group_sums,
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the feature is detected just before.
                |blocks, sums, out| has_carryless_multiply() && unsafe { x86::group_sums(blocks, sums, out) },
            ])?;
        }

        #[test]
        fn folds_equal_their_twins(state: u64, blocks in prop::collection::vec(any::<u64>(), 0..40), rest: u64) {
            let modulus = gf2::Modulus::new(rest);
            let barrett = Barrett { mu: modulus.barrett(), rest };
            let powers = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| modulus.power_of_t64(n));
            let expected = blocks.iter().fold(state, |state, block| modulus.mul(state, powers[0]) ^ block);
            prop_assert_eq!(fold_blocks(state, &blocks, &powers, barrett), expected);
            #[cfg(target_arch = "x86_64")]
            if has_wide_carryless_multiply() {
                // SAFETY: the features were detected just above.
                prop_assert_eq!(unsafe { x86::fold_blocks_wide(state, &blocks, &powers, barrett) }, expected);
            }
            #[cfg(target_arch = "x86_64")]
            if has_carryless_multiply() {
                // SAFETY: the feature was detected just above.
                prop_assert_eq!(unsafe { x86::fold_blocks(state, &blocks, &powers, barrett) }, expected);
            }
            prop_assert_eq!(advance(state, barrett), modulus.mul(state, powers[0]));
        }

        #[test]
        fn ascii_words_equal_their_portable_twin(words in prop::collection::vec("[a-zA-Z0-9]{1,30}", 0..150), rest: u64) {
            let modulus = gf2::Modulus::new(rest);
            let barrett = Barrett { mu: modulus.barrett(), rest };
            let text = words.join(" ");
            let starts: Vec<u64> = (0..words.len()).map(|i| words[..i].iter().map(|word| word.len() as u64 + 1).sum()).collect();
            let ends: Vec<u64> = starts.iter().zip(&words).map(|(start, word)| start + word.len() as u64).collect();
            let (mut found, mut expected) = (vec![0; words.len()], vec![0; words.len()]);
            ascii_words(text.as_bytes(), &starts, &ends, &mut found, barrett);
            ascii_words_with(&starts, &ends, &mut expected, |at| load_block(text.as_bytes(), at), |remainder| modulus.mul(remainder, rest));
            prop_assert_eq!(found, expected);
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
