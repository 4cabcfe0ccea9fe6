//! x86-64 with AVX-512: sixty-four bytes, eight windows, eight images at a time.
//!
//! Each does what its sibling in [`super::x86`] does, and is chosen where the processor has what
//! [`super::has_avx512`] asks for.

use std::arch::x86_64::{
    __m128i, __m512i, _mm_bsrli_si128, _mm_loadu_si128, _mm512_add_epi64, _mm512_broadcast_i32x4,
    _mm512_bslli_epi128, _mm512_castsi128_si512, _mm512_castsi512_si128, _mm512_clmulepi64_epi128,
    _mm512_cmpeq_epi8_mask, _mm512_cmplt_epu8_mask, _mm512_cmpneq_epu64_mask, _mm512_cvtepu8_epi64,
    _mm512_extracti32x4_epi32, _mm512_inserti32x4, _mm512_loadu_si512, _mm512_mask_blend_epi64,
    _mm512_maskz_compress_epi8, _mm512_movepi8_mask, _mm512_mul_epu32, _mm512_mullo_epi64, _mm512_or_si512,
    _mm512_set1_epi8, _mm512_set1_epi64, _mm512_setzero_si512, _mm512_shuffle_epi32, _mm512_slli_epi64,
    _mm512_srli_epi64, _mm512_storeu_si512, _mm512_sub_epi8, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
    _mm512_xor_si512,
};

use super::{Barrett, ByteClasses, Sums, filled_portable, lower_bins_portable, x86};
use crate::mix::MULTIPLIERS;
use crate::token::{RUNS_OF_BLOCK, Runs};

/// 0, 1, …, 63.
const PLACES: [u8; 64] = {
    let mut places = [0; 64];
    let mut i = 0;
    while i < 64 {
        places[i] = i as u8;
        i += 1;
    }
    places
};

load!(load_bytes: [u8; 64] => __m512i, "avx512f", _mm512_loadu_si512);
load!(load_eight: [u64; 8] => __m512i, "avx512f", _mm512_loadu_si512);
load!(load_two: [u64; 2] => __m128i, "avx512f,sse2", _mm_loadu_si128);

#[target_feature(enable = "avx512f")]
#[inline]
fn store_eight(eight: &mut [u64; 8], register: __m512i) {
    // SAFETY: eight u64 are 64 writable bytes, and the store needs no alignment.
    unsafe { _mm512_storeu_si512(eight.as_mut_ptr().cast(), register) };
}

#[target_feature(enable = "avx512f")]
#[inline]
fn all(value: u64) -> __m512i {
    _mm512_set1_epi64(value.cast_signed())
}

/// A register for each coefficient.
#[target_feature(enable = "avx512f")]
#[inline]
fn all_of<const N: usize>(coefficients: &[u64]) -> [__m512i; N] {
    let mut registers = [_mm512_setzero_si512(); N];
    for (register, coefficient) in registers.iter_mut().zip(coefficients) {
        *register = all(*coefficient);
    }
    registers
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
fn classify(block: &[u8; 64]) -> ByteClasses {
    let bytes = load_bytes(block);
    let lower = _mm512_or_si512(bytes, _mm512_set1_epi8(0x20));
    let below = |bytes, first: u8, count: i8| {
        _mm512_cmplt_epu8_mask(
            _mm512_sub_epi8(bytes, _mm512_set1_epi8(first.cast_signed())),
            _mm512_set1_epi8(count),
        )
    };
    ByteClasses {
        alphanumeric: below(lower, b'a', 26) | below(bytes, b'0', 10),
        high: _mm512_movepi8_mask(bytes),
        newline: _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b'\n'.cast_signed())),
    }
}

/// The places of bits are the numbers of bytes, compressed.
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
#[inline]
fn write_places(out: &mut [u64; RUNS_OF_BLOCK], base: u64, bits: u64) {
    let places = _mm512_maskz_compress_epi8(bits, load_bytes(&PLACES));
    let base = all(base);
    let (eights, _) = out.as_chunks_mut::<8>();
    let first = _mm512_castsi512_si128(places);
    store_eight(&mut eights[0], _mm512_add_epi64(_mm512_cvtepu8_epi64(first), base));
    store_eight(&mut eights[1], _mm512_add_epi64(_mm512_cvtepu8_epi64(_mm_bsrli_si128::<8>(first)), base));
    if bits.count_ones() > 16 {
        let second = _mm512_extracti32x4_epi32::<1>(places);
        store_eight(&mut eights[2], _mm512_add_epi64(_mm512_cvtepu8_epi64(second), base));
        let rest = _mm_bsrli_si128::<8>(second);
        store_eight(&mut eights[3], _mm512_add_epi64(_mm512_cvtepu8_epi64(rest), base));
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,bmi1,bmi2,popcnt,lzcnt")]
pub(super) fn find_runs(blocks: &[[u8; 64]], base: usize, runs: &mut Runs) {
    runs.find(blocks, base, |block| classify(block), |out, base, bits| write_places(out, base, bits));
}

/// Four windows to a register; see [`x86::window_sums_wide`], which has two. `false` for widths
/// that nobody uses; then nothing is written.
#[target_feature(enable = "avx512f,avx512bw,vpclmulqdq,pclmulqdq,sse2")]
pub(super) fn window_sums(blocks: &[u64], sums: Sums<'_>, out: &mut Vec<u64>) -> bool {
    by_width!(fixed_window_sums(blocks, sums, out) for 3 | 4 | 5 | 8, else return false);
    true
}

#[target_feature(enable = "avx512f,avx512bw,vpclmulqdq,pclmulqdq,sse2")]
fn fixed_window_sums<const W: usize>(blocks: &[u64], sums: Sums<'_>, out: &mut Vec<u64>) {
    let factors = all_of::<W>(sums.coefficients);
    let constants = (_mm512_broadcast_i32x4(x86::constants(sums.barrett)), all(sums.constant));
    let windows = (blocks.len() + 1).saturating_sub(W);
    let eights = windows.div_ceil(8);
    out.reserve(8 * eights);
    let (slots, _) = out.spare_capacity_mut().as_chunks_mut::<8>();
    for (i, slot) in slots[..eights].iter_mut().enumerate() {
        let blocks = &blocks[8 * i..];
        let sums = if blocks.len() >= W + 8 {
            eight_windows::<W>(blocks, &factors, constants)
        } else {
            // With zeros behind the last blocks; what is written too much is not counted.
            let mut padded = [0; 24];
            padded[..blocks.len()].copy_from_slice(blocks);
            eight_windows::<W>(&padded, &factors, constants)
        };
        // SAFETY: eight u64 are 64 writable bytes, and the store needs no alignment.
        unsafe { _mm512_storeu_si512(slot.as_mut_ptr().cast(), sums) };
    }
    // SAFETY: there was room for eights of windows, and all of them were written just above.
    unsafe { out.set_len(out.len() + windows) };
}

/// The sums of eight windows that begin with the first eight of the blocks, of which there are W +
/// 8 or more.
#[target_feature(enable = "avx512f,avx512bw,vpclmulqdq")]
#[inline]
fn eight_windows<const W: usize>(
    blocks: &[u64],
    factors: &[__m512i; W],
    (barrett, constant): (__m512i, __m512i),
) -> __m512i {
    let blocks = &blocks[..W + 8];
    let eight = |at: usize| load_eight(blocks[at..].first_chunk().expect("eight windows reach W + 8 blocks"));
    let (even, odd) = even_and_odd_windows!(
        W, factors, eight;
        _mm512_setzero_si512, _mm512_xor_si512, _mm512_clmulepi64_epi128,
        |blocks: __m512i| _mm512_bslli_epi128::<8>(blocks),
        |blocks: __m512i| _mm512_mask_blend_epi64(0b1010_1010, _mm512_setzero_si512(), blocks)
    );
    _mm512_xor_si512(_mm512_unpacklo_epi64(reduce(even, barrett), reduce(odd, barrett)), constant)
}

/// Four groups to a register. `false` for sizes that few use, and for fewer than four groups; then
/// nothing is written.
#[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse2")]
pub(super) fn group_sums(blocks: &[u64], sums: Sums<'_>, out: &mut Vec<u64>) -> bool {
    // Features of five minima or six, and of thirteen or fourteen.
    by_width!(fixed_group_sums(blocks, sums, out) for 4 | 8, else false)
}

#[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse2")]
fn fixed_group_sums<const G: usize>(blocks: &[u64], wanted: Sums<'_>, out: &mut Vec<u64>) -> bool {
    let (groups, _) = blocks.as_chunks::<G>();
    if groups.len() < 4 {
        return false;
    }
    let barrett = _mm512_broadcast_i32x4(x86::constants(wanted.barrett));
    let (factors, constant) = (all_of::<G>(wanted.coefficients), all(wanted.constant));
    let start = out.len();
    out.resize(start + groups.len(), 0);
    let out = &mut out[start..];
    // The last four may have been begun by those before.
    for at in (0..groups.len()).step_by(4).map(|at| at.min(groups.len() - 4)) {
        let four = &groups[at..at + 4];
        let mut sums = _mm512_setzero_si512();
        for j in (0..G).step_by(2) {
            // Blocks j and j + 1 of each.
            let two = |lane: usize| load_two(four[lane][j..].first_chunk().expect("groups are even"));
            let blocks = _mm512_castsi128_si512(two(0));
            let blocks = _mm512_inserti32x4::<1>(blocks, two(1));
            let blocks = _mm512_inserti32x4::<2>(blocks, two(2));
            let blocks = _mm512_inserti32x4::<3>(blocks, two(3));
            sums = _mm512_xor_si512(sums, _mm512_clmulepi64_epi128::<0x00>(blocks, factors[j]));
            sums = _mm512_xor_si512(sums, _mm512_clmulepi64_epi128::<0x01>(blocks, factors[j + 1]));
        }
        let mut eight = [0; 8];
        store_eight(&mut eight, _mm512_xor_si512(reduce(sums, barrett), constant));
        for (lane, sum) in out[at..at + 4].iter_mut().enumerate() {
            *sum = eight[2 * lane];
        }
    }
    true
}

#[target_feature(enable = "avx512f,vpclmulqdq")]
#[inline]
fn reduce(products: __m512i, barrett: __m512i) -> __m512i {
    remainders!(products, barrett; _mm512_unpackhi_epi64, _mm512_clmulepi64_epi128, _mm512_xor_si512)
}

/// Four sums side by side, each of every fourth pair of blocks, which are brought together at the
/// end. What waits for the eight blocks before is one multiplication.
#[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse2")]
pub(super) fn fold_blocks(state: u64, blocks: &[u64], powers: &[u64; 8], barrett: Barrett) -> u64 {
    let (groups, rest) = blocks.as_chunks::<8>();
    if groups.is_empty() {
        return x86::fold_blocks(state, rest, powers, barrett);
    }
    let &[p1, p2, p3, p4, p5, p6, p7, p8] = powers;
    let p9 = x86::advance(p8, barrett);
    let past = load_eight(&[p8, p9, p8, p9, p8, p9, p8, p9]);
    // What comes before the first pair stands in the last sum.
    let mut sums = load_eight(&[0, 0, 0, 0, 0, 0, state, 0]);
    let times = |sums: __m512i, factors: __m512i| {
        _mm512_xor_si512(
            _mm512_clmulepi64_epi128::<0x00>(sums, factors),
            _mm512_clmulepi64_epi128::<0x11>(sums, factors),
        )
    };
    for group in groups {
        // The first of two blocks is the upper half.
        let pairs = _mm512_shuffle_epi32::<0b01_00_11_10>(load_eight(group));
        sums = _mm512_xor_si512(times(sums, past), pairs);
    }
    let mut halves = [0; 8];
    store_eight(&mut halves, times(sums, load_eight(&[p6, p7, p4, p5, p2, p3, 1, p1])));
    let lower = halves.iter().step_by(2).fold(0, |sum, half| sum ^ half);
    let upper = halves.iter().skip(1).step_by(2).fold(0, |sum, half| sum ^ half);
    x86::fold_blocks(x86::advance(upper, barrett) ^ lower, rest, powers, barrett)
}

/// Eights of images that are made before any of them goes to its bin.
const EIGHTS: usize = 4;

/// See [`super::lower_bins`]. There are fewer than 2³² bins.
#[target_feature(enable = "avx512f,avx512dq")]
pub(super) fn lower_bins(fingerprints: &[u64], key: u64, least: &mut [u64]) {
    let (wide_key, t) = (all(key), all(least.len() as u64));
    let [first, second] = [all(MULTIPLIERS[0]), all(MULTIPLIERS[1])];
    let (eights, rest) = fingerprints.as_chunks::<8>();
    let (mut bins, mut images) = ([[0; 8]; EIGHTS], [[0; 8]; EIGHTS]);
    for eights in eights.chunks(EIGHTS) {
        for ((eight, bins), images) in eights.iter().zip(&mut bins).zip(&mut images) {
            let x = _mm512_xor_si512(load_eight(eight), wide_key);
            let x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64::<30>(x)), first);
            let x = _mm512_mullo_epi64(_mm512_xor_si512(x, _mm512_srli_epi64::<27>(x)), second);
            // The product of 64 and 32 bits out of two.
            let (low, high) = (_mm512_mul_epu32(x, t), _mm512_mul_epu32(_mm512_srli_epi64::<32>(x), t));
            let middle = _mm512_add_epi64(high, _mm512_srli_epi64::<32>(low));
            store_eight(bins, _mm512_srli_epi64::<32>(middle));
            store_eight(images, _mm512_add_epi64(low, _mm512_slli_epi64::<32>(high)));
        }
        let made = bins[..eights.len()].as_flattened().iter().zip(images.as_flattened());
        for (bin, image) in made {
            let least = &mut least[*bin as usize];
            *least = (*least).min(*image);
        }
    }
    lower_bins_portable(rest, key, least);
}

/// A bit for each of at most 64 bins that holds something else than `none`.
#[target_feature(enable = "avx512f")]
pub(super) fn filled(bins: &[u64], none: u64) -> u64 {
    let (eights, rest) = bins.as_chunks::<8>();
    let mut bits = 0;
    for (i, eight) in eights.iter().enumerate() {
        bits |= u64::from(_mm512_cmpneq_epu64_mask(load_eight(eight), all(none))) << (8 * i);
    }
    if rest.is_empty() { bits } else { bits | filled_portable(rest, none) << (8 * eights.len()) }
}
