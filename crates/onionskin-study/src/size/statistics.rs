//! Intervals, and the few functions they need.

/// A range that the truth lies in, with a given confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether a value lies in it, ends included.
    pub fn covers(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// A number and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The number.
    pub value: f64,
    /// Where the truth lies.
    pub interval: Interval,
}

/// The middle part of some values, by nearest rank. `None` when there are no values. Sorts them.
pub fn percentiles(values: &mut [f64], confidence: f64) -> Option<Interval> {
    values.sort_unstable_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let tail = (1.0 - confidence) / 2.0;
    let at = |share: f64| values[((share * last as f64).round() as usize).min(last)];
    Some(Interval { low: at(tail), high: at(1.0 - tail) })
}

/// The value below which a standard normal number lies with probability `p`: Acklam's rational
/// approximation, good to nine digits.
pub fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969683028665376e1,
        2.209460984245205e2,
        -2.759285104469687e2,
        1.38357751867269e2,
        -3.066479806614716e1,
        2.506628277459239,
    ];
    const B: [f64; 5] = [
        -5.447609879822406e1,
        1.615858368580409e2,
        -1.556989798598866e2,
        6.680131188771972e1,
        -1.328068155288572e1,
    ];
    const C: [f64; 6] = [
        -7.784894002430293e-3,
        -3.223964580411365e-1,
        -2.400758277161838,
        -2.549732539343734,
        4.374664141464968,
        2.938163982698783,
    ];
    const D: [f64; 4] = [7.784695709041462e-3, 3.224671290700398e-1, 2.445134137142996, 3.754408661907416];
    let polynomial = |terms: &[f64], x: f64| terms.iter().fold(0.0, |sum, term| sum * x + term);
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        polynomial(&C, q) / (polynomial(&D, q) * q + 1.0)
    };
    if p <= 0.0 {
        f64::NEG_INFINITY
    } else if p >= 1.0 {
        f64::INFINITY
    } else if p < 0.02425 {
        tail(p)
    } else if p > 1.0 - 0.02425 {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        let r = q * q;
        polynomial(&A, r) * q / (polynomial(&B, r) * r + 1.0)
    }
}

/// Wilson's interval for a share of which `found` of `of` were seen.
pub fn wilson(found: f64, of: f64, confidence: f64) -> Interval {
    if of <= 0.0 {
        return Interval { low: 0.0, high: 1.0 };
    }
    let z = normal_quantile(0.5 + confidence / 2.0);
    let (share, z2) = (found / of, z * z);
    let middle = (share + z2 / (2.0 * of)) / (1.0 + z2 / of);
    let half = z / (1.0 + z2 / of) * (share * (1.0 - share) / of + z2 / (4.0 * of * of)).sqrt();
    // The ends are exact where rounding would leave a speck.
    let low = if found <= 0.0 { 0.0 } else { (middle - half).max(0.0) };
    let high = if found >= of { 1.0 } else { (middle + half).min(1.0) };
    Interval { low, high }
}

/// The largest distance between the distribution functions of two samples (Kolmogorov and Smirnov).
/// Sorts both.
pub fn ks_distance(a: &mut [f64], b: &mut [f64]) -> f64 {
    a.sort_unstable_by(f64::total_cmp);
    b.sort_unstable_by(f64::total_cmp);
    let (mut i, mut j, mut most) = (0, 0, 0f64);
    while i < a.len() && j < b.len() {
        // Equal values are taken together: a step is a step only after all of them.
        let value = if a[i] <= b[j] { a[i] } else { b[j] };
        while i < a.len() && a[i] <= value {
            i += 1;
        }
        while j < b.len() && b[j] <= value {
            j += 1;
        }
        most = most.max((i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs());
    }
    most
}

/// The distance that two samples of one distribution stay below with 95 % probability, for large
/// samples.
pub fn ks_limit(a: usize, b: usize) -> f64 {
    let (a, b) = (a.max(1) as f64, b.max(1) as f64);
    1.358 * ((a + b) / (a * b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_and_intervals_of_the_books() {
        for (p, x) in [(0.5, 0.0), (0.975, 1.959_963_985), (0.995, 2.575_829_304), (0.001, -3.090_232_306)] {
            assert!((normal_quantile(p) - x).abs() < 1e-8, "{p}: {}", normal_quantile(p));
        }
        // Newcombe 1998: 81 of 263 gives 0.2553 to 0.3662; 0 of 20 gives 0 to 0.1611.
        let found = wilson(81.0, 263.0, 0.95);
        assert!((found.low - 0.2553).abs() < 5e-5 && (found.high - 0.3662).abs() < 5e-5, "{found:?}");
        let none = wilson(0.0, 20.0, 0.95);
        assert!(none.low == 0.0 && (none.high - 0.1611).abs() < 5e-5, "{none:?}");
        assert_eq!(wilson(0.0, 0.0, 0.95), Interval { low: 0.0, high: 1.0 });
        assert_eq!(wilson(7.0, 7.0, 0.95).high, 1.0);
    }

    #[test]
    fn percentiles_are_of_the_sorted_values() {
        let mut values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        assert_eq!(percentiles(&mut values, 0.9), Some(Interval { low: 5.0, high: 95.0 }));
        assert_eq!(percentiles(&mut [], 0.9), None);
        assert_eq!(percentiles(&mut [3.0], 0.95), Some(Interval { low: 3.0, high: 3.0 }));
    }

    proptest::proptest! {
        #[test]
        fn ks_equals_the_definition(a in proptest::collection::vec(0u8..6, 1..12), b in proptest::collection::vec(0u8..6, 1..12)) {
            let float = |v: &[u8]| v.iter().map(|x| f64::from(*x)).collect::<Vec<_>>();
            let share = |v: &[u8], x: u8| v.iter().filter(|y| **y <= x).count() as f64 / v.len() as f64;
            let slow = (0..6).map(|x| (share(&a, x) - share(&b, x)).abs()).fold(0.0, f64::max);
            proptest::prop_assert!((ks_distance(&mut float(&a), &mut float(&b)) - slow).abs() < 1e-12);
        }
    }
}
