use proptest::prelude::*;

use super::*;
use crate::gf2;

/// The definition, a product at a time.
fn naive_sequence(purpose: Purpose, width: Width, tokens: &[u64]) -> u64 {
    let polynomial = polynomial(purpose, width);
    let modulus = match width {
        Width::Bits64 => Modulus::new(polynomial),
        Width::Bits32 => Modulus::lifted(polynomial as u32),
    };
    let t64 = modulus.rest();
    let state = tokens.iter().fold(1, |state, token| modulus.mul(state, t64) ^ token);
    let full = modulus.mul(state, t64);
    match width {
        Width::Bits64 => full,
        Width::Bits32 => modulus.mul(full, 1 << 32) >> 32,
    }
}

/// The definition over single bits: long division of a bit string by the polynomial.
fn remainder_bit_by_bit(degree: u32, polynomial: u64, bits: impl Iterator<Item = bool>) -> u64 {
    let mask = if degree == 64 { u64::MAX } else { (1 << degree) - 1 };
    bits.fold(0, |remainder, bit| {
        let carry = (remainder >> (degree - 1)) & 1 == 1;
        let shifted = ((remainder << 1) & mask) | u64::from(bit);
        if carry { shifted ^ polynomial } else { shifted }
    })
}

fn bits_of(tokens: &[u64]) -> Vec<bool> {
    let words = std::iter::once(&1).chain(tokens).chain(std::iter::once(&0));
    words.flat_map(|word| (0..64).rev().map(move |bit| (word >> bit) & 1 == 1)).collect()
}

#[test]
fn polynomials_are_irreducible_and_differ() {
    let all = [Purpose::Chunks, Purpose::Features].map(|purpose| {
        [Width::Bits32, Width::Bits64].map(|width| {
            assert!(gf2::is_irreducible(width.bits(), polynomial(purpose, width)), "{purpose:?} {width:?}");
            polynomial(purpose, width)
        })
    });
    assert_ne!(all[0], all[1]);
}

/// Computed by an independent program from the definitions.
#[test]
fn frozen() {
    let rabin = Rabin::new(Purpose::Chunks, Width::Bits64);
    assert_eq!(rabin.word(b"rose"), u64::from_le_bytes(*b"rose\x01\0\0\0"));
    assert_eq!(rabin.word(b"fingerprint"), 0x117d_ab57_147c_3fae);
    assert_eq!(rabin.bytes(b""), 0x0837_955f_c7c2_40c3);
    assert_eq!(rabin.bytes(b"onionskin is the thin paper of carbon copies"), 0x339e_95c0_14c0_6078);
    let features = Rabin::new(Purpose::Features, Width::Bits64);
    assert_eq!(features.sequence(&[1, 2, 3]), 0x247f_251d_4a32_7bb2);
    let small = Rabin::new(Purpose::Chunks, Width::Bits32);
    assert_eq!(small.bytes(b"onionskin is the thin paper of carbon copies"), 0xc384_3eb5);
}

proptest! {
    #[test]
    fn groups_are_sequences(blocks in prop::collection::vec(any::<u64>(), 0..40), w in 1usize..9, wide: bool) {
        let width = if wide { Width::Bits64 } else { Width::Bits32 };
        let rabin = Rabin::new(Purpose::Features, width);
        let expected: Vec<u64> = blocks.chunks_exact(w).map(|group| rabin.sequence(group)).collect();
        for shingler in [Shingler::new(rabin, w), Shingler::portable(rabin, w)] {
            let mut found = vec![];
            shingler.sequences_into(&blocks, &mut found);
            prop_assert_eq!(&found, &expected);
        }
    }

    #[test]
    fn sequences_are_remainders_of_long_division(tokens in prop::collection::vec(any::<u64>(), 0..12)) {
        for purpose in [Purpose::Chunks, Purpose::Features] {
            for width in [Width::Bits32, Width::Bits64] {
                let found = Rabin::new(purpose, width).sequence(&tokens);
                prop_assert_eq!(found, Rabin::portable(purpose, width).sequence(&tokens));
                prop_assert_eq!(found, naive_sequence(purpose, width, &tokens));
                // A remainder by P of degree 32 of the same bit string, times the same t^64.
                let bits = bits_of(&tokens).into_iter();
                prop_assert_eq!(found, remainder_bit_by_bit(width.bits(), polynomial(purpose, width), bits));
            }
        }
    }

    #[test]
    fn shingles_are_sequences(tokens in prop::collection::vec(any::<u64>(), 0..40), w in 1usize..12) {
        for width in [Width::Bits32, Width::Bits64] {
            let rabin = Rabin::new(Purpose::Chunks, width);
            let expected: Vec<u64> = if tokens.is_empty() {
                vec![]
            } else if tokens.len() < w {
                vec![rabin.sequence(&tokens)]
            } else {
                tokens.windows(w).map(|window| rabin.sequence(window)).collect()
            };
            for shingler in [Shingler::new(rabin, w), Shingler::portable(rabin, w)] {
                let mut found = vec![];
                shingler.shingle_into(&tokens, &mut found);
                prop_assert_eq!(&found, &expected);
            }
        }
    }

    #[test]
    fn words_are_remainders(word in "[a-zé]{1,40}") {
        let rabin = Rabin::new(Purpose::Chunks, Width::Bits64);
        let modulus = Modulus::new(polynomial(Purpose::Chunks, Width::Bits64));
        let mut expected = 0;
        let (blocks, tail) = word.as_bytes().as_chunks::<8>();
        for block in blocks {
            expected = modulus.mul(expected, modulus.rest()) ^ u64::from_le_bytes(*block);
        }
        expected = modulus.mul(expected, modulus.rest()) ^ stopped(tail);
        prop_assert_eq!(rabin.word(word.as_bytes()), expected);
    }

    #[test]
    fn bytes_of_any_kind_rarely_collide(a in prop::collection::vec(0u8..2, 0..30), b in prop::collection::vec(0u8..2, 0..30)) {
        let rabin = Rabin::new(Purpose::Chunks, Width::Bits64);
        prop_assert_eq!(rabin.bytes(&a) == rabin.bytes(&b), a == b);
    }
}
