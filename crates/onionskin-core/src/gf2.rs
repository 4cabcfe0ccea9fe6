//! Polynomials over GF(2), the slow and obvious way.
//!
//! A polynomial of degree below 64 is a `u64`, bit i the coefficient of tⁱ. A modulus of degree
//! 64 is written without its leading term, as is the custom: `Modulus::new(0x1b)` is t⁶⁴ + t⁴ +
//! t³ + t + 1. Everything here is the truth that the fast kernels are tested against, and what
//! makes their constants.

/// A modulus of degree 64, leading term left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulus(u64);

impl Modulus {
    /// t⁶⁴ plus `rest`.
    pub const fn new(rest: u64) -> Modulus {
        Modulus(rest)
    }

    /// A polynomial of degree 32 times t³²: arithmetic modulo it keeps everything that arithmetic
    /// modulo the small polynomial needs, so that one kernel of 64 bits serves both widths.
    pub const fn lifted(rest: u32) -> Modulus {
        Modulus((rest as u64) << 32)
    }

    /// The polynomial without its leading term.
    pub const fn rest(self) -> u64 {
        self.0
    }

    /// a·t mod M.
    pub const fn times_t(self, a: u64) -> u64 {
        (a << 1) ^ (if a >> 63 == 1 { self.0 } else { 0 })
    }

    /// a·b mod M, one bit at a time.
    pub const fn mul(self, a: u64, b: u64) -> u64 {
        let mut product = 0;
        let mut bit = 64;
        while bit > 0 {
            bit -= 1;
            product = self.times_t(product);
            if (b >> bit) & 1 == 1 {
                product ^= a;
            }
        }
        product
    }

    /// t^(64·n) mod M.
    pub const fn power_of_t64(self, n: usize) -> u64 {
        // t⁶⁴ mod M is the rest of M.
        let mut power = 1;
        let mut i = 0;
        while i < n {
            power = self.mul(power, self.0);
            i += 1;
        }
        power
    }

    /// ⌊t¹²⁸ / M⌋ without its leading term t⁶⁴: Barrett's constant.
    pub const fn barrett(self) -> u64 {
        // Long division of t¹²⁸ by M. After the first step the remainder is rest·t⁶⁴; the
        // quotient's lower 64 bits follow.
        let mut remainder = self.0 as u128;
        let mut quotient = 0u64;
        let mut step = 0;
        while step < 64 {
            remainder <<= 1;
            quotient <<= 1;
            if (remainder >> 64) & 1 == 1 {
                remainder ^= (1 << 64) | self.0 as u128;
                quotient |= 1;
            }
            step += 1;
        }
        quotient
    }
}

/// The product of two polynomials of degree below 64, of degree below 127.
pub const fn carryless_mul(a: u64, b: u64) -> u128 {
    let mut product = 0;
    let mut bit = 0;
    while bit < 64 {
        if (b >> bit) & 1 == 1 {
            product ^= (a as u128) << bit;
        }
        bit += 1;
    }
    product
}

/// Whether t^`degree` + `rest` is irreducible, by Rabin's test. `degree` must be a power of two, at
/// most 64.
pub fn is_irreducible(degree: u32, rest: u64) -> bool {
    assert!(degree.is_power_of_two() && (2..=64).contains(&degree), "degree {degree} is not handled");
    let polynomial = (1u128 << degree) | u128::from(rest);
    // P of degree d = 2^n is irreducible when t^(2^d) = t mod P and gcd(t^(2^(d/2)) - t, P) = 1.
    let mut x = 2u128;
    for squaring in 1..=degree {
        x = remainder(carryless_mul(x as u64, x as u64), polynomial);
        if squaring == degree / 2 && gcd(x ^ 2, polynomial) != 1 {
            return false;
        }
    }
    x == 2
}

fn remainder(mut a: u128, modulus: u128) -> u128 {
    let degree = modulus.ilog2();
    while a >> degree != 0 {
        a ^= modulus << (a.ilog2() - degree);
    }
    a
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, if a == 0 { 0 } else { remainder(a, b) });
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_irreducible_polynomials_by_trial_division() {
        for degree in [2u32, 4, 8] {
            for rest in 0..1u64 << degree {
                let polynomial = (1u128 << degree) | u128::from(rest);
                let by_trial = (2u128..1 << (degree / 2 + 1)).all(|d| remainder(polynomial, d) != 0);
                assert_eq!(is_irreducible(degree, rest), by_trial, "t^{degree} + {rest:#x}");
            }
        }
    }

    #[test]
    fn the_polynomial_of_gcm_style_codes() {
        assert!(is_irreducible(64, 0x1b));
        assert!(!is_irreducible(64, 0x1d ^ 0x02));
        assert!(is_irreducible(32, 0x8d));
    }

    #[test]
    fn barrett_is_the_quotient() {
        for rest in [0x1b, 0xd3e0_7387_4cda_f1b1, u64::MAX, 1 << 63] {
            let modulus = Modulus::new(rest);
            // t¹²⁸ = q·M + r with r of degree below 64, and q = t⁶⁴ + barrett.
            let q = modulus.barrett();
            let low_half_of_q_times_m = carryless_mul(q, rest) ^ (u128::from(q ^ rest) << 64);
            assert_eq!(low_half_of_q_times_m >> 64, 0, "{rest:#x}");
        }
    }
}
