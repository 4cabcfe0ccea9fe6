//! x86-64: carry-less multiplication, eight permutations at a time, sixteen bytes at a time.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi8, _mm_clmulepi64_si128, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_cvtsi64_si128,
    _mm_cvtsi128_si64, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8, _mm_setzero_si128,
    _mm_unpackhi_epi64, _mm_xor_si128, _mm256_add_epi32, _mm256_loadu_si256, _mm256_min_epu32,
    _mm256_mullo_epi32, _mm256_set1_epi64x, _mm256_setzero_si256, _mm256_storeu_si256,
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

/// Eight blocks at a time, then what is left at once: one dependent reduction for each group instead of each block.
#[target_feature(enable = "pclmulqdq,sse2")]
pub(super) fn fold_blocks(mut state: u64, blocks: &[u64], powers: &[u64; 8], barrett: Barrett) -> u64 {
    let barrett = constants(barrett);
    for group in blocks.chunks(8) {
        let (&last, before) = group.split_last().expect("chunks are never empty");
        let mut power = before.len();
        let mut sum = _mm_clmulepi64_si128::<0x00>(register(state), register(powers[power]));
        for block in before {
            power -= 1;
            sum = _mm_xor_si128(sum, _mm_clmulepi64_si128::<0x00>(register(*block), register(powers[power])));
        }
        state = reduce(sum, barrett) ^ last;
    }
    state
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

/// Walks all values once per tile of permutations, so that multipliers, offsets and minima of the tile stay in registers. A
/// register holds eight permutations; broadcasting a value as 64 bits hands its halves to even and odd ones in turn.
#[target_feature(enable = "avx2")]
pub(super) fn lower_minima_avx2(values: &[u64], multipliers: &[u32], offsets: &[u32], minima: &mut [u32]) {
    let mut at = 0;
    while minima.len() - at >= 32 {
        tile_avx2::<4>(values, &multipliers[at..], &offsets[at..], &mut minima[at..]);
        at += 32;
    }
    match minima.len() - at {
        24 => tile_avx2::<3>(values, &multipliers[at..], &offsets[at..], &mut minima[at..]),
        16 => tile_avx2::<2>(values, &multipliers[at..], &offsets[at..], &mut minima[at..]),
        8 => tile_avx2::<1>(values, &multipliers[at..], &offsets[at..], &mut minima[at..]),
        _ => {}
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn tile_avx2<const REGISTERS: usize>(
    values: &[u64],
    multipliers: &[u32],
    offsets: &[u32],
    minima: &mut [u32],
) {
    let a = load_avx2::<REGISTERS>(multipliers);
    let b = load_avx2::<REGISTERS>(offsets);
    let mut lowest = load_avx2::<REGISTERS>(minima);
    for x in values {
        let x = _mm256_set1_epi64x(x.cast_signed());
        for i in 0..REGISTERS {
            let image = _mm256_add_epi32(_mm256_mullo_epi32(a[i], x), b[i]);
            lowest[i] = _mm256_min_epu32(lowest[i], image);
        }
    }
    let (eights, _) = minima.as_chunks_mut::<8>();
    for (eight, register) in eights.iter_mut().zip(lowest) {
        // SAFETY: eight u32 are 32 writable bytes, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(eight.as_mut_ptr().cast(), register) };
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_avx2<const REGISTERS: usize>(values: &[u32]) -> [__m256i; REGISTERS] {
    let (eights, _) = values.as_chunks::<8>();
    let mut registers = [_mm256_setzero_si256(); REGISTERS];
    for (register, eight) in registers.iter_mut().zip(eights) {
        // SAFETY: eight u32 are 32 readable bytes, and the load needs no alignment.
        *register = unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) };
    }
    registers
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
