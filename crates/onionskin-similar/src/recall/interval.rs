//! Shares with their confidence intervals.

use serde::{Deserialize, Serialize};

/// A share with a 95 % confidence interval.
///
/// In JSON a list: value, lower end, upper end.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "[f64; 3]", into = "[f64; 3]")]
pub struct Interval {
    /// The estimate.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl From<[f64; 3]> for Interval {
    fn from([value, low, high]: [f64; 3]) -> Interval {
        Interval { value, low, high }
    }
}

impl From<Interval> for [f64; 3] {
    fn from(interval: Interval) -> [f64; 3] {
        [interval.value, interval.low, interval.high]
    }
}

impl Interval {
    /// The interval of Clopper and Pearson for a share seen in `n` observations; `None` when there
    /// were none. It is never too narrow, also where nearly all or none are seen; `n` need not be
    /// whole.
    pub fn of(share: f64, n: f64) -> Option<Interval> {
        const TAIL: f64 = 0.025;
        if n <= 0.0 || !(0.0..=1.0).contains(&share) {
            return None;
        }
        // A sum of nothing is -0.0.
        let share = share + 0.0;
        let (seen, unseen) = (share * n, (1.0 - share) * n);
        let low = if seen <= 0.0 { 0.0 } else { beta_quantile(TAIL, seen, unseen + 1.0) };
        let high = if unseen <= 0.0 { 1.0 } else { beta_quantile(1.0 - TAIL, seen + 1.0, unseen) };
        Some(Interval { value: share, low: low.min(share), high: high.max(share) })
    }
}

/// Where the beta distribution has this much below it.
fn beta_quantile(below: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if beta_below(middle, a, b) < below { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The regularised incomplete beta function, by its continued fraction (Lentz's method).
fn beta_below(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_below(1.0 - x, b, a);
    }
    const TINY: f64 = 1e-300;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp() / a;
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for i in 1..10_000 {
        let m = f64::from(i);
        for numerator in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / away(1.0 + numerator * d);
            c = away(1.0 + numerator / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    front * fraction
}

/// The logarithm of the gamma function, by Stirling's series.
fn ln_gamma(x: f64) -> f64 {
    // Far enough out for the series to have all digits; the recurrence leads there.
    let (mut x, mut shift) = (x, 0.0);
    while x < 16.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let square = x * x;
    let series =
        (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_of_known_values() {
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 5e-5, "{found} {expected}");
        // Clopper and Pearson 1934 for 8 of 10; the rule of three and its kin for all of 100;
        // closed forms for one missed of 527.
        let interval = Interval::of(0.8, 10.0).unwrap();
        near(interval.low, 0.44390);
        near(interval.high, 0.97479);
        let none = Interval::of([].iter().sum(), 100.0).unwrap();
        assert_eq!(format!("{:.2} {:.2}", none.value, none.low), "0.00 0.00");
        let all = Interval::of(1.0, 100.0).unwrap();
        near(all.low, 0.025f64.powf(0.01));
        assert_eq!((all.value, all.high), (1.0, 1.0));
        near(Interval::of(526.0 / 527.0, 527.0).unwrap().high, 0.975f64.powf(1.0 / 527.0));
        near(Interval::of(0.0, 40.0).unwrap().high, 1.0 - 0.025f64.powf(1.0 / 40.0));
        assert_eq!(Interval::of(0.5, 0.0), None);
        // Gamma of whole numbers is a factorial.
        near(ln_gamma(10.0), 362_880f64.ln());
        near(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln());
    }
}
