//! x86-64: carry-less multiplication, and loops that vectorise under a wider instruction set.

use std::arch::x86_64::{
    __m128i, _mm_add_epi8, _mm_clmulepi64_si128, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_cvtsi64_si128,
    _mm_cvtsi128_si64, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8, _mm_setzero_si128,
    _mm_unpackhi_epi64, _mm_xor_si128,
};

use super::{Barrett, ByteClasses};

/// One polynomial in the lower half of a register.
#[target_feature(enable = "pclmulqdq,sse2")]
#[inline]
fn register(value: u64) -> __m128i {
    _mm_cvtsi64_si128(value.cast_signed())
}

/// Barrett's reduction of a product of degree below 128: two multiplications.
///
/// With M = t⁶⁴ + m and μ = ⌊t¹²⁸/M⌋ = t⁶⁴ + μ', the quotient of H·t⁶⁴ + L is q = H + ⌊H·μ'/t⁶⁴⌋ and the
/// remainder L + (q·m mod t⁶⁴), since q·t⁶⁴ cancels the upper half.
#[target_feature(enable = "pclmulqdq,sse2")]
#[inline]
fn reduce(product: __m128i, barrett: __m128i) -> u64 {
    let upper = _mm_unpackhi_epi64(product, product);
    let estimate = _mm_clmulepi64_si128::<0x00>(upper, barrett);
    let quotient = _mm_xor_si128(_mm_unpackhi_epi64(estimate, estimate), upper);
    let back = _mm_clmulepi64_si128::<0x10>(quotient, barrett);
    _mm_cvtsi128_si64(_mm_xor_si128(back, product)).cast_unsigned()
}

#[target_feature(enable = "pclmulqdq,sse2")]
#[inline]
fn constants(barrett: Barrett) -> __m128i {
    std::arch::x86_64::_mm_set_epi64x(barrett.rest.cast_signed(), barrett.mu.cast_signed())
}

#[target_feature(enable = "pclmulqdq,sse2")]
pub(super) fn mul(a: u64, b: u64, barrett: Barrett) -> u64 {
    reduce(_mm_clmulepi64_si128::<0x00>(register(a), register(b)), constants(barrett))
}

#[target_feature(enable = "pclmulqdq,sse2")]
pub(super) fn dot4(a: [u64; 4], b: [u64; 4], barrett: Barrett) -> u64 {
    let mut sum = _mm_setzero_si128();
    for i in 0..4 {
        sum = _mm_xor_si128(sum, _mm_clmulepi64_si128::<0x00>(register(a[i]), register(b[i])));
    }
    reduce(sum, constants(barrett))
}

/// No window depends on the one before, so that the multiplications of several windows overlap in the pipeline: for
/// the shingles of a few words that people use this is faster than rolling, whose every step waits for the last.
#[target_feature(enable = "pclmulqdq,sse2")]
pub(super) fn window_sums(
    blocks: &[u64],
    coefficients: &[u64],
    constant: u64,
    barrett: Barrett,
    out: &mut Vec<u64>,
) {
    match coefficients.len() {
        3 => fixed_window_sums::<3>(blocks, coefficients, constant, barrett, out),
        4 => fixed_window_sums::<4>(blocks, coefficients, constant, barrett, out),
        5 => fixed_window_sums::<5>(blocks, coefficients, constant, barrett, out),
        8 => fixed_window_sums::<8>(blocks, coefficients, constant, barrett, out),
        _ => {
            let barrett = constants(barrett);
            out.extend(blocks.windows(coefficients.len()).map(|window| {
                let mut sum = _mm_setzero_si128();
                for (block, coefficient) in window.iter().zip(coefficients) {
                    let product = _mm_clmulepi64_si128::<0x00>(register(*block), register(*coefficient));
                    sum = _mm_xor_si128(sum, product);
                }
                reduce(sum, barrett) ^ constant
            }));
        }
    }
}

#[target_feature(enable = "pclmulqdq,sse2")]
fn fixed_window_sums<const W: usize>(
    blocks: &[u64],
    coefficients: &[u64],
    constant: u64,
    barrett: Barrett,
    out: &mut Vec<u64>,
) {
    let barrett = constants(barrett);
    let mut registers = [_mm_setzero_si128(); W];
    for (register_of, coefficient) in registers.iter_mut().zip(coefficients) {
        *register_of = register(*coefficient);
    }
    let windows = (blocks.len() + 1).saturating_sub(W);
    let start = out.len();
    out.resize(start + windows, 0);
    for (slot, window) in out[start..].iter_mut().zip(blocks.windows(W)) {
        let window: &[u64; W] = window.try_into().expect("windows(W) yields W blocks");
        let mut sum = _mm_setzero_si128();
        for j in 0..W {
            sum = _mm_xor_si128(sum, _mm_clmulepi64_si128::<0x00>(register(window[j]), registers[j]));
        }
        *slot = reduce(sum, barrett) ^ constant;
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn lower_minima_avx2(values: &[u64], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    lower_minima_tiled(values, multipliers, offsets, minima);
}

#[target_feature(enable = "avx512f")]
pub(super) fn lower_minima_avx512(values: &[u64], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    lower_minima_tiled(values, multipliers, offsets, minima);
}

/// Walks all values once per tile of permutations, so that multipliers, offsets and minima of the tile stay in registers.
#[inline(always)]
fn lower_minima_tiled(values: &[u64], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    let mut at = 0;
    while minima.len() - at >= 32 {
        tile::<32>(values, &multipliers[at..], &offsets[at..], &mut minima[at..]);
        at += 32;
    }
    match minima.len() - at {
        24 => tile::<24>(values, &multipliers[at..], &offsets[at..], &mut minima[at..]),
        16 => tile::<16>(values, &multipliers[at..], &offsets[at..], &mut minima[at..]),
        8 => tile::<8>(values, &multipliers[at..], &offsets[at..], &mut minima[at..]),
        _ => {}
    }
}

#[inline(always)]
fn tile<const N: usize>(values: &[u64], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    let a: [u32; N] = multipliers[..N].try_into().expect("a tile is N wide");
    let b: [u32; N] = offsets[..N].try_into().expect("a tile is N wide");
    let mut lowest: [u32; N] = minima[..N].try_into().expect("a tile is N wide");
    for x in values {
        let halves = [*x as u32, (*x >> 32) as u32];
        for i in 0..N {
            let image = a[i].wrapping_mul(halves[i % 2]).wrapping_add(b[i]);
            lowest[i] = lowest[i].min(image);
        }
    }
    minima[..N].copy_from_slice(&lowest);
}

/// Sixteen bytes at a time. Signed comparison serves for ranges once the range is moved to the bottom of the signed bytes.
#[inline]
pub(super) fn classify(block: &[u8; 64]) -> ByteClasses {
    let mut classes = ByteClasses::default();
    let (quarters, _) = block.as_chunks::<16>();
    for (i, quarter) in quarters.iter().enumerate() {
        // SAFETY: a quarter is 16 readable bytes and the load needs no alignment; SSE2 is part of x86-64.
        let (alphanumeric, high, newline) = unsafe {
            let bytes = _mm_loadu_si128(quarter.as_ptr().cast());
            let lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
            // x in 'a'..='z' when x - 'a' - 128, as a signed byte, is below -128 + 26.
            let letter = _mm_cmpgt_epi8(
                _mm_set1_epi8(-128 + 26),
                _mm_add_epi8(lower, _mm_set1_epi8((-128i8).wrapping_sub(b'a' as i8))),
            );
            let digit = _mm_cmpgt_epi8(
                _mm_set1_epi8(-128 + 10),
                _mm_add_epi8(bytes, _mm_set1_epi8((-128i8).wrapping_sub(b'0' as i8))),
            );
            let newline = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\n' as i8));
            (
                _mm_movemask_epi8(_mm_or_si128(letter, digit)),
                _mm_movemask_epi8(bytes),
                _mm_movemask_epi8(newline),
            )
        };
        let shift = 16 * i;
        classes.alphanumeric |= u64::from(alphanumeric.cast_unsigned()) << shift;
        classes.high |= u64::from(high.cast_unsigned()) << shift;
        classes.newline |= u64::from(newline.cast_unsigned()) << shift;
    }
    classes
}
