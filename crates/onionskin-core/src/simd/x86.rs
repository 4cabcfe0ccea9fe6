//! x86-64: carry-less multiplication, one or two at a time; eight permutations, sixteen or
//! thirty-two bytes at a time.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_add_epi8, _mm_clmulepi64_si128, _mm_cmpeq_epi8, _mm_cmpgt_epi8, _mm_cvtsi64_si128,
    _mm_cvtsi128_si64, _mm_loadu_si128, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8, _mm_setzero_si128,
    _mm_unpackhi_epi64, _mm_xor_si128, _mm256_add_epi8, _mm256_add_epi32, _mm256_blend_epi32,
    _mm256_broadcastsi128_si256, _mm256_castsi256_si128, _mm256_clmulepi64_epi128, _mm256_cmpeq_epi8,
    _mm256_cmpgt_epi8, _mm256_extracti128_si256, _mm256_loadu_si256, _mm256_min_epu32, _mm256_movemask_epi8,
    _mm256_mullo_epi32, _mm256_or_si256, _mm256_set_epi64x, _mm256_set1_epi8, _mm256_set1_epi64x,
    _mm256_setzero_si256, _mm256_slli_si256, _mm256_storeu_si256, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi64, _mm256_xor_si256,
};

use super::{Barrett, ByteClasses};
use crate::token::{Runs, ascii_words as ascii_words_with, load_block, write_places};

/// One polynomial in the lower half of a register.
#[target_feature(enable = "pclmulqdq,sse2")]
#[inline]
fn register(value: u64) -> __m128i {
    _mm_cvtsi64_si128(value.cast_signed())
}

/// Barrett's reduction of a product of degree below 128: two multiplications.
///
/// With M = t⁶⁴ + m and μ = ⌊t¹²⁸/M⌋ = t⁶⁴ + μ', the quotient of H·t⁶⁴ + L is q = H + ⌊H·μ'/t⁶⁴⌋
/// and the remainder L + (q·m mod t⁶⁴), since q·t⁶⁴ cancels the upper half.
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
pub(super) fn constants(barrett: Barrett) -> __m128i {
    std::arch::x86_64::_mm_set_epi64x(barrett.rest.cast_signed(), barrett.mu.cast_signed())
}

#[target_feature(enable = "pclmulqdq,sse2")]
pub(super) fn mul(a: u64, b: u64, barrett: Barrett) -> u64 {
    reduce(_mm_clmulepi64_si128::<0x00>(register(a), register(b)), constants(barrett))
}

/// Of `remainder`·t⁶⁴ the upper half is all there is.
#[target_feature(enable = "pclmulqdq,sse2")]
#[inline]
pub(super) fn advance(remainder: u64, barrett: Barrett) -> u64 {
    let (upper, barrett) = (register(remainder), constants(barrett));
    let estimate = _mm_clmulepi64_si128::<0x00>(upper, barrett);
    let quotient = _mm_xor_si128(_mm_unpackhi_epi64(estimate, estimate), upper);
    _mm_cvtsi128_si64(_mm_clmulepi64_si128::<0x10>(quotient, barrett)).cast_unsigned()
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt,pclmulqdq,sse2")]
pub(super) fn ascii_words(text: &[u8], starts: &[u64], ends: &[u64], out: &mut [u64], barrett: Barrett) {
    let advance = |remainder| advance(remainder, barrett);
    let Some(last) = text.len().checked_sub(8) else {
        return ascii_words_with(starts, ends, out, |at| load_block(text, at), advance);
    };
    // SAFETY: eight bytes can be read at `last` and everywhere before; the read needs no alignment.
    let load = |at: u64| unsafe {
        let at = (at as usize).min(last);
        u64::from_le(text.as_ptr().add(at).cast::<u64>().read_unaligned())
    };
    ascii_words_with(starts, ends, out, load, advance);
    // A block that reaches beyond the end of the text was read too early. Only the last words of a
    // text have one.
    let whole = ends.iter().rposition(|end| *end <= last as u64).map_or(0, |word| word + 1);
    ascii_words_with(&starts[whole..], &ends[whole..], &mut out[whole..], |at| load_block(text, at), advance);
}

#[target_feature(enable = "avx2,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn find_runs(blocks: &[[u8; 64]], base: usize, runs: &mut Runs) {
    runs.find(blocks, base, |block| classify_avx2(block), write_places);
}

/// The sum of eight blocks, each times its power, four products of two at a time. The state stays a
/// product of two halves that is reduced once at the end: its two multiplications are all that
/// waits for the group before.
#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq,sse2")]
pub(super) fn fold_blocks_wide(state: u64, blocks: &[u64], powers: &[u64; 8], barrett: Barrett) -> u64 {
    let (groups, rest) = blocks.as_chunks::<8>();
    if groups.is_empty() {
        return fold_blocks(state, rest, powers, barrett);
    }
    let pair = |upper: u64, lower: u64| _mm256_set_epi64x(0, upper.cast_signed(), 0, lower.cast_signed());
    // Of each four blocks the even and the odd ones meet a register, in two lanes.
    let even = [pair(powers[4], powers[6]), pair(powers[0], powers[2])];
    let odd = [pair(powers[3], powers[5]), pair(1, powers[1])];
    let past =
        std::arch::x86_64::_mm_set_epi64x(advance(powers[7], barrett).cast_signed(), powers[7].cast_signed());
    let mut sum = register(state);
    for group in groups {
        let (fours, _) = group.as_chunks::<4>();
        let mut wide = _mm256_setzero_si256();
        for i in 0..2 {
            let four = load_four(&fours[i]);
            let products = _mm256_xor_si256(
                _mm256_clmulepi64_epi128::<0x00>(four, even[i]),
                _mm256_clmulepi64_epi128::<0x01>(four, odd[i]),
            );
            wide = _mm256_xor_si256(wide, products);
        }
        let both = _mm_xor_si128(_mm256_castsi256_si128(wide), _mm256_extracti128_si256::<1>(wide));
        let carried =
            _mm_xor_si128(_mm_clmulepi64_si128::<0x00>(sum, past), _mm_clmulepi64_si128::<0x11>(sum, past));
        sum = _mm_xor_si128(both, carried);
    }
    fold_blocks(reduce(sum, constants(barrett)), rest, powers, barrett)
}

#[target_feature(enable = "avx2")]
#[inline]
fn load_four(four: &[u64; 4]) -> __m256i {
    // SAFETY: four u64 are 32 readable bytes, and the load needs no alignment.
    unsafe { _mm256_loadu_si256(four.as_ptr().cast()) }
}

/// Eight blocks at a time, then what is left at once: one dependent reduction for each group
/// instead of each block.
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

/// No window depends on the one before, so that the multiplications of several windows overlap in
/// the pipeline: for the shingles of a few words that people use this is faster than rolling, whose
/// every step waits for the last.
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
pub(super) fn group_sums(
    blocks: &[u64],
    coefficients: &[u64],
    constant: u64,
    barrett: Barrett,
    out: &mut Vec<u64>,
) {
    let barrett = constants(barrett);
    out.extend(blocks.chunks_exact(coefficients.len()).map(|group| {
        let mut sum = _mm_setzero_si128();
        for (block, coefficient) in group.iter().zip(coefficients) {
            let product = _mm_clmulepi64_si128::<0x00>(register(*block), register(*coefficient));
            sum = _mm_xor_si128(sum, product);
        }
        reduce(sum, barrett) ^ constant
    }));
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

/// The same, two windows to a register: of four blocks in a row the even ones belong to windows i
/// and i+2 and the odd ones to windows i+1 and i+3. The last block of a window is multiplied by
/// t⁶⁴, which is to say moved to the upper half. `false` for widths that nobody uses; then nothing
/// is written.
#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq,sse2")]
pub(super) fn window_sums_wide(
    blocks: &[u64],
    coefficients: &[u64],
    constant: u64,
    barrett: Barrett,
    out: &mut Vec<u64>,
) -> bool {
    match coefficients.len() {
        3 => fixed_window_sums_wide::<3>(blocks, coefficients, constant, barrett, out),
        4 => fixed_window_sums_wide::<4>(blocks, coefficients, constant, barrett, out),
        5 => fixed_window_sums_wide::<5>(blocks, coefficients, constant, barrett, out),
        8 => fixed_window_sums_wide::<8>(blocks, coefficients, constant, barrett, out),
        _ => return false,
    }
    true
}

#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq,sse2")]
fn fixed_window_sums_wide<const W: usize>(
    blocks: &[u64],
    coefficients: &[u64],
    constant: u64,
    barrett: Barrett,
    out: &mut Vec<u64>,
) {
    let wide_barrett = _mm256_broadcastsi128_si256(constants(barrett));
    let wide_constant = _mm256_set1_epi64x(constant.cast_signed());
    let mut factors = [_mm256_setzero_si256(); W];
    for (factor, coefficient) in factors.iter_mut().zip(coefficients) {
        *factor = _mm256_set1_epi64x(coefficient.cast_signed());
    }
    let windows = (blocks.len() + 1).saturating_sub(W);
    let start = out.len();
    out.reserve(windows);
    // The registers of four windows reach W + 4 blocks far.
    let fours = (blocks.len() + 1).saturating_sub(W + 4) / 4;
    let (slots, _) = out.spare_capacity_mut().as_chunks_mut::<4>();
    for (i, slot) in slots[..fours].iter_mut().enumerate() {
        let reach = &blocks[4 * i..4 * i + W + 4];
        let four = |at: usize| load_four(reach[at..].first_chunk().expect("four windows reach W + 4 blocks"));
        let mut first = _mm256_setzero_si256();
        let mut second = _mm256_setzero_si256();
        for (j, factor) in factors[..W - 1].iter().enumerate() {
            // Block j of the windows i and i+2, and block j of the windows i+1 and i+3.
            let (a, b) = if j % 2 == 0 {
                let four = four(j);
                (
                    _mm256_clmulepi64_epi128::<0x00>(four, *factor),
                    _mm256_clmulepi64_epi128::<0x01>(four, *factor),
                )
            } else {
                (
                    _mm256_clmulepi64_epi128::<0x01>(four(j - 1), *factor),
                    _mm256_clmulepi64_epi128::<0x00>(four(j + 1), *factor),
                )
            };
            first = _mm256_xor_si256(first, a);
            second = _mm256_xor_si256(second, b);
        }
        let raise_even = |four: __m256i| _mm256_slli_si256::<8>(four);
        let raise_odd = |four: __m256i| _mm256_blend_epi32::<0b1100_1100>(_mm256_setzero_si256(), four);
        let (a, b) = if (W - 1).is_multiple_of(2) {
            (raise_even(four(W - 1)), raise_odd(four(W - 1)))
        } else {
            (raise_odd(four(W - 2)), raise_even(four(W)))
        };
        let first = reduce_wide(_mm256_xor_si256(first, a), wide_barrett);
        let second = reduce_wide(_mm256_xor_si256(second, b), wide_barrett);
        let sums = _mm256_xor_si256(_mm256_unpacklo_epi64(first, second), wide_constant);
        // SAFETY: four u64 are 32 writable bytes, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(slot.as_mut_ptr().cast(), sums) };
    }
    // SAFETY: there is room for all windows, and four for each of `fours` were written just above.
    unsafe { out.set_len(start + 4 * fours) };
    let constants = constants(barrett);
    out.extend(blocks[4 * fours..].windows(W).map(|window| {
        let mut sum = _mm_setzero_si128();
        for (block, coefficient) in window.iter().zip(coefficients) {
            let product = _mm_clmulepi64_si128::<0x00>(register(*block), register(*coefficient));
            sum = _mm_xor_si128(sum, product);
        }
        reduce(sum, constants) ^ constant
    }));
}

/// [`reduce`] in both lanes; the remainders are in the lower half of each.
#[target_feature(enable = "vpclmulqdq,avx2")]
#[inline]
fn reduce_wide(products: __m256i, barrett: __m256i) -> __m256i {
    let upper = _mm256_unpackhi_epi64(products, products);
    let estimate = _mm256_clmulepi64_epi128::<0x00>(upper, barrett);
    let quotient = _mm256_xor_si256(_mm256_unpackhi_epi64(estimate, estimate), upper);
    let back = _mm256_clmulepi64_epi128::<0x10>(quotient, barrett);
    _mm256_xor_si256(back, products)
}

/// Walks all values once per tile of permutations, so that multipliers, offsets and minima of the
/// tile stay in registers. A register holds eight permutations; broadcasting a value as 64 bits
/// hands its halves to even and odd ones in turn.
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

/// Sixteen bytes at a time. Signed comparison serves for ranges once the range is moved to the
/// bottom of the signed bytes.
#[inline]
pub(super) fn classify(block: &[u8; 64]) -> ByteClasses {
    let mut classes = ByteClasses::default();
    let (quarters, _) = block.as_chunks::<16>();
    for (i, quarter) in quarters.iter().enumerate() {
        // SAFETY: a quarter is 16 readable bytes and the load needs no alignment; SSE2 is part of
        // x86-64.
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

/// The same, thirty-two bytes at a time.
#[target_feature(enable = "avx2")]
#[inline]
fn classify_avx2(block: &[u8; 64]) -> ByteClasses {
    let mut classes = ByteClasses::default();
    let (halves, _) = block.as_chunks::<32>();
    for (i, half) in halves.iter().enumerate() {
        // SAFETY: a half is 32 readable bytes, and the load needs no alignment.
        let bytes = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
        let lower = _mm256_or_si256(bytes, _mm256_set1_epi8(0x20));
        let letter = _mm256_cmpgt_epi8(
            _mm256_set1_epi8(-128 + 26),
            _mm256_add_epi8(lower, _mm256_set1_epi8((-128i8).wrapping_sub(b'a' as i8))),
        );
        let digit = _mm256_cmpgt_epi8(
            _mm256_set1_epi8(-128 + 10),
            _mm256_add_epi8(bytes, _mm256_set1_epi8((-128i8).wrapping_sub(b'0' as i8))),
        );
        let newline = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b'\n' as i8));
        let mask = |bytes: __m256i| u64::from(_mm256_movemask_epi8(bytes).cast_unsigned());
        let shift = 32 * i;
        classes.alphanumeric |= mask(_mm256_or_si256(letter, digit)) << shift;
        classes.high |= mask(bytes) << shift;
        classes.newline |= mask(newline) << shift;
    }
    classes
}
