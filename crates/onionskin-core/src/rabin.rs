//! Rabin fingerprints: a string is a polynomial over GF(2), its fingerprint the remainder by an
//! irreducible one.
//!
//! Two different strings of m bits collide for at most m/2⁶³ of the irreducible polynomials of
//! degree 64, whatever the strings are; that bound is why the papers use them (Broder 2000, section
//! 2). The polynomials here were drawn once, at random (the first irreducible values in a stream of
//! SHA-256 digests), and never change.
//!
//! **What is fingerprinted.** Text comes in two levels. A *word* of at most seven bytes is its
//! bytes with a one above them, which as a polynomial of degree below 64 is its own remainder and
//! costs nothing. A longer word is reduced in blocks of eight bytes, first block first, the last
//! one (0 to 7 bytes) with the one above. A *sequence* of n such remainders uᵢ has the fingerprint
//! (t^(64n) + Σ uᵢ·t^(64(n-i)))·t⁶⁴ mod P: the leading term tells lengths apart, the last factor
//! spreads short words over all 64 bits.
//!
//! **How.** The naive way takes a bit at a time ([`crate::gf2`]). With a carry-less multiplier a
//! window of w words is w products, one sum and one reduction, independent of its neighbours.
//! Without one, the fingerprint rolls over byte tables: 16 look-ups a word. Both are tested to be
//! equal to the naive way.
//!
//! **32 bits.** To repeat the papers: the same arithmetic modulo P·t³², brought down to P at the
//! end.

use std::sync::OnceLock;

use crate::gf2::Modulus;
use crate::simd::{self, Barrett, Sums};
use crate::token::{ascii_words, load_block};

/// The width of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// Degree 32, as in the papers.
    Bits32,
    /// Degree 64, the default.
    Bits64,
}

impl Width {
    /// 32 or 64.
    pub const fn bits(self) -> u32 {
        match self {
            Width::Bits32 => 32,
            Width::Bits64 => 64,
        }
    }
}

/// What a fingerprint is for: each use has a polynomial of its own, so that equal features say
/// nothing about equal chunks (Broder 2000, section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Chunks and shingles.
    Chunks,
    /// Groups of minima.
    Features,
}

/// The irreducible polynomial of a purpose and width, leading term left out.
pub const fn polynomial(purpose: Purpose, width: Width) -> u64 {
    match (purpose, width) {
        (Purpose::Chunks, Width::Bits64) => 0xd3e0_7387_4cda_f1b1,
        (Purpose::Features, Width::Bits64) => 0x53f7_a83e_355d_5cf9,
        (Purpose::Chunks, Width::Bits32) => 0x9521_3f2d,
        (Purpose::Features, Width::Bits32) => 0x5c62_882f,
    }
}

/// Fingerprints by one polynomial.
#[derive(Clone, Copy, Debug)]
pub struct Rabin {
    width: Width,
    modulus: Modulus,
    barrett: Barrett,
    /// t⁶⁴, t¹²⁸, …, t⁵¹² mod M.
    powers: [u64; 8],
    /// Multiplication by t⁶⁴ where the processor has no carry-less multiplier.
    advance: Option<&'static MulTable>,
}

impl Rabin {
    /// The fingerprinter of a purpose and width.
    pub fn new(purpose: Purpose, width: Width) -> Rabin {
        let portable = Rabin::portable(purpose, width);
        Rabin { advance: portable.advance.filter(|_| !simd::has_carryless_multiply()), ..portable }
    }

    /// The same, never using a carry-less multiplier.
    pub fn portable(purpose: Purpose, width: Width) -> Rabin {
        let polynomial = polynomial(purpose, width);
        let modulus = match width {
            Width::Bits64 => Modulus::new(polynomial),
            Width::Bits32 => Modulus::lifted(polynomial as u32),
        };
        let barrett = Barrett { mu: modulus.barrett(), rest: modulus.rest() };
        let powers = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| modulus.power_of_t64(n));
        Rabin { width, modulus, barrett, powers, advance: Some(advance_table(purpose, width, modulus)) }
    }

    /// `remainder`·t⁶⁴.
    #[inline]
    fn advance(&self, remainder: u64) -> u64 {
        match self.advance {
            None => simd::advance(remainder, self.barrett),
            Some(table) => table.mul(remainder),
        }
    }

    /// The remainders of runs of ASCII letters and digits in small letters.
    pub(crate) fn ascii_words(&self, text: &[u8], starts: &[u64], ends: &[u64], out: &mut [u64]) {
        match self.advance {
            None => simd::ascii_words(text, starts, ends, out, self.barrett),
            Some(table) => {
                ascii_words(starts, ends, out, |at| load_block(text, at), |remainder| table.mul(remainder));
            }
        }
    }

    /// The remainder of a word: what sequences are made of. The word holds no zero byte.
    #[inline]
    pub fn word(&self, word: &[u8]) -> u64 {
        debug_assert!(!word.contains(&0));
        let (blocks, tail) = word.as_chunks::<8>();
        let mut remainder = 0;
        for block in blocks {
            remainder = self.append(remainder, u64::from_le_bytes(*block));
        }
        self.append(remainder, stopped(tail))
    }

    /// `remainder`·t⁶⁴ + `block`.
    #[inline]
    pub(crate) fn append(&self, remainder: u64, block: u64) -> u64 {
        if remainder == 0 { block } else { self.advance(remainder) ^ block }
    }

    /// The fingerprint of a sequence of remainders.
    pub fn sequence(&self, blocks: &[u64]) -> u64 {
        self.finish(self.extend(1, blocks))
    }

    /// Goes on with a sequence begun with 1; [`Rabin::finish`] ends it.
    pub fn extend(&self, mut state: u64, blocks: &[u64]) -> u64 {
        match self.advance {
            None => simd::fold_blocks(state, blocks, &self.powers, self.barrett),
            Some(table) => {
                for block in blocks {
                    state = table.mul(state) ^ block;
                }
                state
            }
        }
    }

    /// The fingerprint of the sequence in `state`.
    pub fn finish(&self, state: u64) -> u64 {
        self.narrow(self.advance(state))
    }

    /// The fingerprint of any bytes, zero bytes too.
    pub fn bytes(&self, bytes: &[u8]) -> u64 {
        let (blocks, tail) = bytes.as_chunks::<8>();
        let mut state = 1;
        for some in blocks.chunks(64) {
            let mut numbers = [0; 64];
            for (number, block) in numbers.iter_mut().zip(some) {
                *number = u64::from_le_bytes(*block);
            }
            state = self.extend(state, &numbers[..some.len()]);
        }
        self.finish(self.extend(state, &[stopped(tail)]))
    }

    #[inline]
    fn narrow(&self, remainder: u64) -> u64 {
        match self.width {
            Width::Bits64 => remainder,
            // X·t³² mod P·t³² is (X mod P)·t³².
            Width::Bits32 => simd::mul(remainder, 1 << 32, self.barrett) >> 32,
        }
    }
}

/// Up to seven bytes with a one above them.
#[inline]
fn stopped(tail: &[u8]) -> u64 {
    let mut block = [0; 8];
    block[..tail.len()].copy_from_slice(tail);
    u64::from_le_bytes(block) | 1 << (8 * tail.len())
}

/// Fingerprints of all windows of w remainders.
#[derive(Debug)]
pub struct Shingler {
    rabin: Rabin,
    /// t^(64w), …, t⁶⁴ mod M.
    coefficients: Vec<u64>,
    /// t^(64(w+1)) mod M, what the leading one becomes.
    leading: u64,
    tables: Option<Box<RollingTables>>,
}

impl Shingler {
    /// For windows of `w` remainders; `w` is at least 1.
    pub fn new(rabin: Rabin, w: usize) -> Shingler {
        let mut shingler = Shingler::portable(rabin, w);
        if simd::has_carryless_multiply() {
            shingler.tables = None;
        }
        shingler
    }

    /// The same, never using a carry-less multiplier.
    pub fn portable(rabin: Rabin, w: usize) -> Shingler {
        assert!(w >= 1, "a shingle has at least one token");
        let coefficients: Vec<u64> = (1..=w).rev().map(|n| rabin.modulus.power_of_t64(n)).collect();
        let leading = rabin.modulus.power_of_t64(w + 1);
        let tables = Some(Box::new(RollingTables::new(rabin.modulus, leading)));
        Shingler { rabin, coefficients, leading, tables }
    }

    fn sums(&self) -> Sums<'_> {
        Sums { coefficients: &self.coefficients, constant: self.leading, barrett: self.rabin.barrett }
    }

    /// Tokens in a shingle.
    pub fn w(&self) -> usize {
        self.coefficients.len()
    }

    /// Appends the fingerprint of every w remainders, one group after the other; fewer at the end
    /// are left out.
    pub fn sequences_into(&self, blocks: &[u64], out: &mut Vec<u64>) {
        let start = out.len();
        let sums = match &self.tables {
            None => simd::group_sums(blocks, self.sums(), out),
            Some(_) => false,
        };
        if !sums {
            out.extend(blocks.chunks_exact(self.w()).map(|group| self.rabin.sequence(group)));
        } else if self.rabin.width == Width::Bits32 {
            out[start..].iter_mut().for_each(|sum| *sum = self.rabin.narrow(*sum));
        }
    }

    /// Appends one fingerprint per window, in order, repeats included. Fewer tokens than a window
    /// are one shingle, all of them; no tokens are none.
    pub fn shingle_into(&self, tokens: &[u64], out: &mut Vec<u64>) {
        if tokens.is_empty() {
            return;
        }
        if tokens.len() < self.w() {
            out.push(self.rabin.sequence(tokens));
            return;
        }
        let start = out.len();
        match &self.tables {
            None => {
                let summed = simd::window_sums(tokens, self.sums(), out);
                assert!(summed, "a carry-less multiplier was found when the shingler was made");
            }
            Some(tables) => tables.roll(tokens, self.w(), self.leading, out),
        }
        if self.rabin.width == Width::Bits32 {
            for fingerprint in &mut out[start..] {
                *fingerprint = self.rabin.narrow(*fingerprint);
            }
        }
    }
}

fn advance_table(purpose: Purpose, width: Width, modulus: Modulus) -> &'static MulTable {
    static TABLES: [OnceLock<Box<MulTable>>; 4] = [const { OnceLock::new() }; 4];
    let slot = match (purpose, width) {
        (Purpose::Chunks, Width::Bits64) => 0,
        (Purpose::Features, Width::Bits64) => 1,
        (Purpose::Chunks, Width::Bits32) => 2,
        (Purpose::Features, Width::Bits32) => 3,
    };
    TABLES[slot].get_or_init(|| Box::new(MulTable::new(modulus, modulus.power_of_t64(1))))
}

/// Multiplication by a constant as eight look-ups, one a byte.
#[derive(Debug)]
struct MulTable([[u64; 256]; 8]);

impl MulTable {
    fn new(modulus: Modulus, constant: u64) -> MulTable {
        let mut table = [[0; 256]; 8];
        let mut image = constant;
        for row in &mut table {
            for bit in 0..8 {
                for byte in 0..1 << bit {
                    row[byte | 1 << bit] = row[byte] ^ image;
                }
                image = modulus.times_t(image);
            }
        }
        MulTable(table)
    }

    fn mul(&self, x: u64) -> u64 {
        let bytes = x.to_le_bytes();
        (0..8).fold(0, |product, i| product ^ self.0[i][usize::from(bytes[i])])
    }
}

/// g(i) = (g(i-1) + uᵢ)·t⁶⁴ − u(i-w)·t^(64(w+1)).
#[derive(Debug)]
struct RollingTables {
    advance: MulTable,
    retire: MulTable,
}

impl RollingTables {
    fn new(modulus: Modulus, leading: u64) -> RollingTables {
        RollingTables {
            advance: MulTable::new(modulus, modulus.power_of_t64(1)),
            retire: MulTable::new(modulus, leading),
        }
    }

    fn roll(&self, tokens: &[u64], w: usize, leading: u64, out: &mut Vec<u64>) {
        let mut sum = 0;
        for (i, token) in tokens.iter().enumerate() {
            sum = self.advance.mul(sum ^ token);
            if i >= w {
                sum ^= self.retire.mul(tokens[i - w]);
            }
            if i + 1 >= w {
                out.push(sum ^ leading);
            }
        }
    }
}

#[cfg(test)]
mod tests;
