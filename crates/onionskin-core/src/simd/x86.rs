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

use super::{Barrett, ByteClasses, Sums};
use crate::token::{Runs, ascii_words as ascii_words_with, load_block, write_places};

/// One polynomial in the lower half of a register.
#[target_feature(enable = "pclmulqdq,sse2")]
#[inline]
fn register(value: u64) -> __m128i {
    _mm_cvtsi64_si128(value.cast_signed())
}

#[target_feature(enable = "pclmulqdq,sse2")]
#[inline]
fn reduce(product: __m128i, barrett: __m128i) -> u64 {
    let remainder = remainders!(product, barrett; _mm_unpackhi_epi64, _mm_clmulepi64_si128, _mm_xor_si128);
    _mm_cvtsi128_si64(remainder).cast_unsigned()
}

/// Σ blockⱼ·coefficientⱼ mod M, xor the constant.
#[target_feature(enable = "pclmulqdq,sse2")]
#[inline]
fn sum_of(stretch: &[u64], sums: Sums<'_>, barrett: __m128i) -> u64 {
    let mut sum = _mm_setzero_si128();
    for (block, coefficient) in stretch.iter().zip(sums.coefficients) {
        sum = _mm_xor_si128(sum, _mm_clmulepi64_si128::<0x00>(register(*block), register(*coefficient)));
    }
    reduce(sum, barrett) ^ sums.constant
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

load!(load_four: [u64; 4] => __m256i, "avx2", _mm256_loadu_si256);
load!(load_permutations: [u32; 8] => __m256i, "avx2", _mm256_loadu_si256);
load!(load_half_block: [u8; 32] => __m256i, "avx2", _mm256_loadu_si256);

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
pub(super) fn window_sums(blocks: &[u64], sums: Sums<'_>, out: &mut Vec<u64>) -> bool {
    let any_width = || {
        let barrett = constants(sums.barrett);
        blocks.windows(sums.coefficients.len()).map(move |window| sum_of(window, sums, barrett))
    };
    by_width!(fixed_window_sums(blocks, sums, out) for 3 | 4 | 5 | 8, else out.extend(any_width()));
    true
}

#[target_feature(enable = "pclmulqdq,sse2")]
pub(super) fn group_sums(blocks: &[u64], sums: Sums<'_>, out: &mut Vec<u64>) -> bool {
    let barrett = constants(sums.barrett);
    out.extend(blocks.chunks_exact(sums.coefficients.len()).map(|group| sum_of(group, sums, barrett)));
    true
}

#[target_feature(enable = "pclmulqdq,sse2")]
fn fixed_window_sums<const W: usize>(blocks: &[u64], wanted: Sums<'_>, out: &mut Vec<u64>) {
    let barrett = constants(wanted.barrett);
    let mut registers = [_mm_setzero_si128(); W];
    for (register_of, coefficient) in registers.iter_mut().zip(wanted.coefficients) {
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
        *slot = reduce(sum, barrett) ^ wanted.constant;
    }
}

/// The same, two windows to a register: the even windows are i and i+2, the odd ones i+1 and i+3.
/// `false` for widths that nobody uses; then nothing is written.
#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq,sse2")]
pub(super) fn window_sums_wide(blocks: &[u64], sums: Sums<'_>, out: &mut Vec<u64>) -> bool {
    by_width!(fixed_window_sums_wide(blocks, sums, out) for 3 | 4 | 5 | 8, else return false);
    true
}

#[target_feature(enable = "vpclmulqdq,avx2,pclmulqdq,sse2")]
fn fixed_window_sums_wide<const W: usize>(blocks: &[u64], wanted: Sums<'_>, out: &mut Vec<u64>) {
    let barrett = constants(wanted.barrett);
    let wide_barrett = _mm256_broadcastsi128_si256(barrett);
    let wide_constant = _mm256_set1_epi64x(wanted.constant.cast_signed());
    let mut factors = [_mm256_setzero_si256(); W];
    for (factor, coefficient) in factors.iter_mut().zip(wanted.coefficients) {
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
        let (even, odd) = even_and_odd_windows!(
            W, factors, four;
            _mm256_setzero_si256, _mm256_xor_si256, _mm256_clmulepi64_epi128,
            |four: __m256i| _mm256_slli_si256::<8>(four),
            |four: __m256i| _mm256_blend_epi32::<0b1100_1100>(_mm256_setzero_si256(), four)
        );
        let remainders =
            _mm256_unpacklo_epi64(reduce_wide(even, wide_barrett), reduce_wide(odd, wide_barrett));
        let sums = _mm256_xor_si256(remainders, wide_constant);
        // SAFETY: four u64 are 32 writable bytes, and the store needs no alignment.
        unsafe { _mm256_storeu_si256(slot.as_mut_ptr().cast(), sums) };
    }
    // SAFETY: there is room for all windows, and four for each of `fours` were written just above.
    unsafe { out.set_len(start + 4 * fours) };
    out.extend(blocks[4 * fours..].windows(W).map(|window| sum_of(window, wanted, barrett)));
}

#[target_feature(enable = "vpclmulqdq,avx2")]
#[inline]
fn reduce_wide(products: __m256i, barrett: __m256i) -> __m256i {
    remainders!(products, barrett; _mm256_unpackhi_epi64, _mm256_clmulepi64_epi128, _mm256_xor_si256)
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
        *register = load_permutations(eight);
    }
    registers
}

/// What a block is made of, as many bytes at a time as a register holds. Signed comparison serves
/// for ranges once the range is moved to the bottom of the signed bytes.
macro_rules! classify_by {
    (
        $block:ident, $bytes:literal, $load:expr;
        $all:ident, $or:ident, $add:ident, $greater:ident, $equal:ident, $mask:ident
    ) => {{
        let mut classes = ByteClasses::default();
        let (parts, _) = $block.as_chunks::<$bytes>();
        for (i, part) in parts.iter().enumerate() {
            let bytes = $load(part);
            let lower = $or(bytes, $all(0x20));
            // x in 'a'..='z' when x - 'a' - 128, as a signed byte, is below -128 + 26.
            let letter = $greater($all(-128 + 26), $add(lower, $all((-128i8).wrapping_sub(b'a' as i8))));
            let digit = $greater($all(-128 + 10), $add(bytes, $all((-128i8).wrapping_sub(b'0' as i8))));
            let newline = $equal(bytes, $all(b'\n' as i8));
            let shifted = |mask: i32| u64::from(mask.cast_unsigned()) << ($bytes * i);
            classes.alphanumeric |= shifted($mask($or(letter, digit)));
            classes.high |= shifted($mask(bytes));
            classes.newline |= shifted($mask(newline));
        }
        classes
    }};
}

#[inline]
pub(super) fn classify(block: &[u8; 64]) -> ByteClasses {
    // SAFETY: SSE2 is part of x86-64; a part is 16 readable bytes, and the load needs no alignment.
    unsafe {
        classify_by!(
            block, 16, |part: &[u8; 16]| _mm_loadu_si128(part.as_ptr().cast());
            _mm_set1_epi8, _mm_or_si128, _mm_add_epi8, _mm_cmpgt_epi8, _mm_cmpeq_epi8, _mm_movemask_epi8
        )
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn classify_avx2(block: &[u8; 64]) -> ByteClasses {
    classify_by!(
        block, 32, load_half_block;
        _mm256_set1_epi8, _mm256_or_si256, _mm256_add_epi8, _mm256_cmpgt_epi8, _mm256_cmpeq_epi8,
        _mm256_movemask_epi8
    )
}
