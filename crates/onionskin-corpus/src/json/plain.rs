//! The plain parts of strings: found and copied in one go.
//!
//! The naive way, which is what happens where the processor has nothing better, looks for the end of a plain part and then copies what lies
//! before. Where 64 bytes fit into a register they are stored as they are looked at, and what was stored too much is written over by
//! what follows.

#![allow(unsafe_code)]

use memchr::memchr2;

/// Appends what comes before the first quote or backslash, or the whole text when it has none, and tells how long that is.
#[inline]
pub(super) fn push_plain(text: &str, out: &mut String) -> usize {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512bw") {
        // SAFETY: the features that `avx512::push_plain` enables were detected just above.
        return unsafe { avx512::push_plain(text, out) };
    }
    push_plain_portable(text, out)
}

/// The truth for [`push_plain`].
fn push_plain_portable(text: &str, out: &mut String) -> usize {
    let plain = memchr2(b'"', b'\\', text.as_bytes()).unwrap_or(text.len());
    out.push_str(&text[..plain]);
    plain
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512i, _mm512_cmpeq_epi8_mask, _mm512_loadu_si512, _mm512_mask_storeu_epi8,
        _mm512_maskz_loadu_epi8, _mm512_set1_epi8, _mm512_storeu_si512,
    };
    use std::mem::MaybeUninit;

    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn push_plain(text: &str, out: &mut String) -> usize {
        out.reserve(text.len());
        // SAFETY: what is added ends before a quote or a backslash or at the end of the text, so that it is whole characters.
        let bytes = unsafe { out.as_mut_vec() };
        let plain = copy_plain(text.as_bytes(), bytes.spare_capacity_mut());
        // SAFETY: there was room for the whole text, and so much of it was written.
        unsafe { bytes.set_len(bytes.len() + plain) };
        plain
    }

    /// Copies what comes before the first quote or backslash, and perhaps more. The target is as long as the source or longer.
    #[target_feature(enable = "avx512f,avx512bw")]
    fn copy_plain(from: &[u8], to: &mut [MaybeUninit<u8>]) -> usize {
        let to = &mut to[..from.len()];
        let (blocks, rest) = from.as_chunks::<64>();
        let (slots, rest_slot) = to.as_chunks_mut::<64>();
        for (i, (block, slot)) in blocks.iter().zip(slots).enumerate() {
            // SAFETY: 64 readable bytes, and the load needs no alignment.
            let bytes = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
            // SAFETY: 64 writable bytes, and the store needs no alignment.
            unsafe { _mm512_storeu_si512(slot.as_mut_ptr().cast(), bytes) };
            let ends = ends(bytes);
            if ends != 0 {
                return 64 * i + ends.trailing_zeros() as usize;
            }
        }
        if rest.is_empty() {
            return from.len();
        }
        let mask = u64::MAX >> (64 - rest.len());
        // SAFETY: the bytes under the mask are those of `rest`; the others are not read.
        let bytes = unsafe { _mm512_maskz_loadu_epi8(mask, rest.as_ptr().cast()) };
        // SAFETY: `rest_slot` is as long as `rest`, and nothing beyond the mask is written.
        unsafe { _mm512_mask_storeu_epi8(rest_slot.as_mut_ptr().cast(), mask, bytes) };
        // Zeros beyond the mask end nothing.
        (from.len() - rest.len()) + (ends(bytes).trailing_zeros() as usize).min(rest.len())
    }

    /// A bit for every quote and backslash.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn ends(bytes: __m512i) -> u64 {
        _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b'"'.cast_signed()))
            | _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(b'\\'.cast_signed()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn plain_parts_equal_their_portable_twin(
            before in "[a-zé]{0,9}",
            text in prop_oneof!["[a-zé東]{0,200}", "[a-zé]{60,70}[\"\\\\]?[a-z\"]{0,3}", "[a-z\"\\\\é]{0,80}"],
        ) {
            let (mut found, mut expected) = (before.clone(), before);
            prop_assert_eq!(push_plain(&text, &mut found), push_plain_portable(&text, &mut expected));
            prop_assert_eq!(found, expected);
        }
    }
}
