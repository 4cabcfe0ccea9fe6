//! Exponential and logarithm from the four operations alone.
//!
//! The standard library hands these to the platform's mathematics library, whose last digit differs
//! from system to system; a page that is one word longer on one of them is another web. Addition,
//! multiplication and division are the same everywhere.

const LN_2: f64 = std::f64::consts::LN_2;

/// e to the power of `x`, to about 1e-14 of its value for `x` in `-600..600`; clamped outside.
pub(crate) fn exp(x: f64) -> f64 {
    let x = x.clamp(-600.0, 600.0);
    let halvings = (x / LN_2).round();
    let rest = x - halvings * LN_2;
    let mut term = 1.0;
    let mut sum = 1.0;
    for n in 1..20 {
        term *= rest / f64::from(n);
        sum += term;
    }
    let base = if halvings < 0.0 { 0.5 } else { 2.0 };
    (0..halvings.abs() as u32).fold(sum, |value, _| value * base)
}

/// The natural logarithm of `x`, which must be positive and finite.
pub(crate) fn ln(x: f64) -> f64 {
    debug_assert!(x > 0.0 && x.is_finite());
    let mut scale = 0.0;
    let mut x = x;
    while x > 1.5 {
        x *= 0.5;
        scale += 1.0;
    }
    while x < 0.75 {
        x *= 2.0;
        scale -= 1.0;
    }
    // ln x = 2 artanh((x - 1) / (x + 1)), and |z| is at most 1/5 here.
    let z = (x - 1.0) / (x + 1.0);
    let mut power = z;
    let mut sum = 0.0;
    for n in 0..14 {
        sum += power / f64::from(2 * n + 1);
        power *= z * z;
    }
    2.0 * sum + scale * LN_2
}

/// `base` to the power of `exponent`, for a positive base.
pub(crate) fn pow(base: f64, exponent: f64) -> f64 {
    exp(exponent * ln(base))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_platform() {
        for x in [-40.0, -3.3, -0.5, 0.0, 1e-9, 0.5, 1.0, 2.0, 7.25, 30.0] {
            let (got, expected) = (exp(x), f64::exp(x));
            assert!((got / expected - 1.0).abs() < 1e-13, "exp({x}) = {got}");
        }
        for x in [1e-6, 0.3, 0.74, 0.76, 1.0, 1.49, 1.51, 2.0, 10.0, 123_456.0, 1e12] {
            let (got, expected) = (ln(x), f64::ln(x));
            assert!((got - expected).abs() < 1e-12 * (1.0 + expected.abs()), "ln({x}) = {got}");
        }
        assert!((pow(3.0, 2.5) - 3f64.powf(2.5)).abs() < 1e-11);
    }
}
