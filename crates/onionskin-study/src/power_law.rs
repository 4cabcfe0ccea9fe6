//! The exponent of a distribution with a long tail: how many clusters have how many documents
//! (Pereira et al. 2006, figures 2 to 4).
//!
//! The naive way is a straight line through the points in a log-log plot. It weighs the few large
//! clusters as much as the many small ones and is wrong by more than it says. Here the exponent is
//! the one under which the sizes are most likely, for sizes that are whole numbers: p(x) = x^−α /
//! ζ(α, least), with Hurwitz's zeta function (Clauset, Shalizi and Newman 2009, section 3).

/// Clusters that a fit needs at least.
const LEAST_CLUSTERS: u64 = 10;
/// Exponents above this say that there is no tail.
const HIGHEST: f64 = 100.0;
/// The step of numeric derivatives: small against exponents, and its square large against what 64
/// bits lose.
const STEP: f64 = 1e-3;

/// A fitted power law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PowerLaw {
    /// How fast it falls: a size that is ten times larger is 10^exponent times rarer.
    pub exponent: f64,
    /// The standard error of the exponent.
    pub standard_error: f64,
    /// The least size in the fit.
    pub least: u64,
    /// Clusters in the fit.
    pub tail: u64,
    /// The largest distance between the distribution and the fitted one (Kolmogorov and Smirnov): 0
    /// is a perfect fit.
    pub ks: f64,
}

impl PowerLaw {
    /// The expected share of clusters of a size among those in the fit.
    pub fn share(&self, size: u64) -> f64 {
        if size < self.least {
            return 0.0;
        }
        (-self.exponent * (size as f64 / self.least as f64).ln() - ln_scaled_zeta(self.exponent, self.least))
            .exp()
    }

    /// The expected share of clusters of this size and larger.
    pub fn share_from(&self, size: u64) -> f64 {
        if size <= self.least {
            return 1.0;
        }
        let scale = -self.exponent * (size as f64 / self.least as f64).ln();
        (scale + ln_scaled_zeta(self.exponent, size) - ln_scaled_zeta(self.exponent, self.least)).exp()
    }
}

/// Fits the sizes from `least` on (1 at least); `histogram` has sizes and how many clusters have
/// them, in any order. `None` for fewer than ten clusters, or where all are of one size or so
/// nearly that there is no tail.
///
/// ```
/// use onionskin_study::power_law::fit;
/// let sizes: Vec<(u64, u64)> = (2..1000).map(|size| (size, (1e8 * (size as f64).powf(-2.5)) as u64)).collect();
/// let law = fit(&sizes, 2).ok_or("no tail")?;
/// assert!((law.exponent - 2.5).abs() < 0.01);
/// assert!(fit(&[(2, 1000)], 2).is_none());
/// # Ok::<(), &str>(())
/// ```
pub fn fit(histogram: &[(u64, u64)], least: u64) -> Option<PowerLaw> {
    let least = least.max(1);
    let mut sizes: Vec<(u64, u64)> =
        histogram.iter().copied().filter(|(size, count)| *size >= least && *count > 0).collect();
    sizes.sort_unstable();
    let tail: u64 = sizes.iter().map(|(_, count)| count).sum();
    let one_size = sizes.first()?.0 == sizes.last()?.0;
    if tail < LEAST_CLUSTERS || one_size {
        return None;
    }
    // Sizes as multiples of the least, so that nothing is too small for a float.
    let sum: f64 = sizes.iter().map(|(size, count)| *count as f64 * (*size as f64 / least as f64).ln()).sum();
    let mean = sum / tail as f64;
    // The derivative of the likelihood is what the mean of the logarithms lacks; it rises with the
    // exponent, from infinity below.
    let lacks = |exponent: f64| {
        mean + (ln_scaled_zeta(exponent + STEP, least) - ln_scaled_zeta(exponent - STEP, least))
            / (2.0 * STEP)
    };
    let (mut low, mut high) = (1.0 + 2.0 * STEP, HIGHEST);
    if lacks(low) > 0.0 || lacks(high) < 0.0 {
        return None;
    }
    // Halving it sixty times leaves nothing of the bracket.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if lacks(middle) < 0.0 { low = middle } else { high = middle }
    }
    let exponent = 0.5 * (low + high);
    let curvature = (ln_scaled_zeta(exponent + STEP, least) - 2.0 * ln_scaled_zeta(exponent, least)
        + ln_scaled_zeta(exponent - STEP, least))
        / (STEP * STEP);
    let standard_error = 1.0 / (tail as f64 * curvature).sqrt();
    let mut law = PowerLaw { exponent, standard_error, least, tail, ks: 0.0 };
    law.ks = distance(&law, &sizes);
    Some(law)
}

/// The largest distance between two distribution functions. Between two sizes that are there, it is
/// largest at an end.
fn distance(law: &PowerLaw, sizes: &[(u64, u64)]) -> f64 {
    let mut largest: f64 = 0.0;
    let mut seen = 0;
    for (size, count) in sizes {
        let below = 1.0 - law.share_from(*size);
        largest = largest.max((below - seen as f64 / law.tail as f64).abs());
        seen += count;
        let up_to = 1.0 - law.share_from(size.saturating_add(1));
        largest = largest.max((up_to - seen as f64 / law.tail as f64).abs());
    }
    largest
}

/// Hurwitz's zeta function: the sum of (k + q)^−s over all k from 0 on, for s above 1 and q of at
/// least 1.
pub fn hurwitz_zeta(s: f64, q: u64) -> f64 {
    (ln_scaled_zeta(s, q) - s * (q as f64).ln()).exp()
}

/// The logarithm of q^s ζ(s, q), which is the sum of (1 + k/q)^−s: never too small or too large for
/// a float.
///
/// The first terms one by one, the rest by the formula of Euler and Maclaurin, whose terms fall
/// fast once k + q is larger than s.
fn ln_scaled_zeta(s: f64, q: u64) -> f64 {
    /// B(2j) / (2j)!, for j from 1 on.
    const BERNOULLI: [f64; 5] =
        [1.0 / 12.0, -1.0 / 720.0, 1.0 / 30_240.0, -1.0 / 1_209_600.0, 1.0 / 47_900_160.0];
    let q = q.max(1) as f64;
    let one_by_one = (12.0 + s - q).ceil().max(1.0) as u64;
    let term = |k: f64| (-s * (k / q).ln_1p()).exp();
    let first: f64 = (0..one_by_one).map(|k| term(k as f64)).sum();
    let at = one_by_one as f64;
    let end = q + at;
    let last = term(at);
    let mut rest = last * (end / (s - 1.0) + 0.5);
    // s (s+1) … (s+2j−2) / end^(2j−1)
    let mut factor = s / end;
    for (j, bernoulli) in (1..).zip(BERNOULLI) {
        rest += last * bernoulli * factor;
        let next = f64::from(2 * j);
        factor *= (s + next - 1.0) * (s + next) / (end * end);
    }
    (first + rest).ln()
}

#[cfg(test)]
mod tests;
