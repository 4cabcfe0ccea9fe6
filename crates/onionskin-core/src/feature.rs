//! Features: k groups of s minima, one fingerprint a group. Documents that share at least r are
//! candidates (Broder 2000, section 3). `[6, 14, 2]` is 48 bytes per document.

use std::fmt;
use std::num::NonZeroU8;
use std::str::FromStr;
use std::sync::Arc;

use crate::rabin::{Purpose, Rabin, Shingler, Width};

/// The `[k, s, r]` filter. Invariant: 1 ≤ r ≤ k, 1 ≤ s, k·s ≤ 4096.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FeatureFilter {
    k: NonZeroU8,
    s: NonZeroU8,
    r: NonZeroU8,
}

/// Not a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FilterError {
    /// Not of the form `6x14r2`.
    #[error("`{0}` is not a filter; write k features of s minima, r to agree, as in 6x14r2")]
    Spelling(String),
    /// Numbers that make no filter.
    #[error("no filter has k={k}, s={s}, r={r}: r goes from 1 to k, s from 1, and k times s to 4096")]
    Range {
        /// Features.
        k: u32,
        /// Minima a feature.
        s: u32,
        /// Features to agree.
        r: u32,
    },
}

impl FeatureFilter {
    /// k features of s minima each, r of which must agree.
    pub fn new(k: u32, s: u32, r: u32) -> Result<FeatureFilter, FilterError> {
        let narrow = |n: u32| u8::try_from(n).ok().and_then(NonZeroU8::new);
        match (narrow(k), narrow(s), narrow(r)) {
            (Some(k8), Some(s8), Some(r8)) if r <= k && k * s <= 4096 => {
                Ok(FeatureFilter { k: k8, s: s8, r: r8 })
            }
            _ => Err(FilterError::Range { k, s, r }),
        }
    }

    /// Features a document.
    pub fn k(self) -> usize {
        usize::from(self.k.get())
    }

    /// Minima a feature.
    pub fn s(self) -> usize {
        usize::from(self.s.get())
    }

    /// Features that must agree.
    pub fn r(self) -> usize {
        usize::from(self.r.get())
    }

    /// Permutations needed: k·s.
    pub fn permutations(self) -> usize {
        self.k() * self.s()
    }

    /// Whether both are about the same features, however many of them must agree.
    pub fn has_features_of(self, other: FeatureFilter) -> bool {
        (self.k, self.s) == (other.k, other.s)
    }

    /// Bytes a document: eight a feature.
    pub fn bytes_per_document(self) -> usize {
        8 * self.k()
    }

    /// P(k,s,r)(ρ): the probability that two documents of resemblance ρ share r features or more, Σ
    /// over i from r to k of C(k,i)·ρ^(s·i)·(1-ρ^s)^(k-i). Fingerprint collisions are left out
    /// (below 10⁻¹⁸).
    pub fn acceptance(self, resemblance: f64) -> f64 {
        let group = resemblance.clamp(0.0, 1.0).powi(self.s() as i32);
        upper_binomial_tail(self.k(), self.r(), group)
    }

    /// 1 - P, without losing the digits of a small miss.
    pub fn miss(self, resemblance: f64) -> f64 {
        let group = resemblance.clamp(0.0, 1.0).powi(self.s() as i32);
        // Fewer than r agree exactly when more than k-r differ.
        upper_binomial_tail(self.k(), self.k() - self.r() + 1, 1.0 - group)
    }

    /// The filter of one feature to agree that misses at most the share `miss` of pairs at the
    /// threshold, with as many minima per feature as that bears: more minima mean fewer candidates
    /// that are none. `minima` is how many there are of a document. When every filter misses more,
    /// the one that misses least; `None` without minima.
    ///
    /// ```
    /// use onionskin_core::FeatureFilter;
    /// // Out of the 84 minima of the default recipe.
    /// let filter = FeatureFilter::for_threshold(84, 0.9, 0.005).unwrap();
    /// assert_eq!(filter.to_string(), "10x8r1");
    /// assert!(filter.miss(0.9) <= 0.005);
    /// ```
    pub fn for_threshold(minima: usize, threshold: f64, miss: f64) -> Option<FeatureFilter> {
        let filters = (1..=minima.min(255)).rev().filter_map(|s| {
            let k = (minima / s).min(255);
            FeatureFilter::new(k as u32, s as u32, 1).ok()
        });
        let mut least: Option<FeatureFilter> = None;
        for filter in filters {
            if filter.miss(threshold) <= miss {
                return Some(filter);
            }
            if least.is_none_or(|least| filter.miss(threshold) < least.miss(threshold)) {
                least = Some(filter);
            }
        }
        least
    }

    /// The resemblance at which half of the pairs are accepted: where the total error is least
    /// under a uniform distribution of resemblance (section 4).
    pub fn half_point(self) -> f64 {
        self.resemblance_at(0.5)
    }

    /// The resemblance at which this share of pairs is accepted: the inverse of
    /// [`FeatureFilter::acceptance`].
    pub fn resemblance_at(self, acceptance: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if self.acceptance(middle) < acceptance { low = middle } else { high = middle }
        }
        0.5 * (low + high)
    }

    /// The s at which the slope of ρ^s is steepest at ρ₀: 1 / ln(1/ρ₀) (section 4, equation 3).
    pub fn steepest_s(resemblance: f64) -> f64 {
        1.0 / (1.0 / resemblance).ln()
    }

    /// The resemblance at which ρ^s is steepest: e^(-1/s).
    pub fn steepest_resemblance(self) -> f64 {
        (-1.0 / self.s() as f64).exp()
    }
}

/// How many of `n` minima, at most 255, agree at least in all but the share `miss` of the pairs
/// with this resemblance.
///
/// ```
/// use onionskin_core::feature::least_agreement;
/// // Of 84 minima 75.6 agree on average; 66 and more in 999 of 1,000 pairs.
/// assert_eq!(least_agreement(84, 0.9, 0.001), 66);
/// assert_eq!(least_agreement(84, 1.0, 0.001), 84);
/// ```
pub fn least_agreement(n: usize, resemblance: f64, miss: f64) -> usize {
    let p = resemblance.clamp(0.0, 1.0);
    let (mut choose, mut lost) = (1.0, 0.0);
    for i in 0..n {
        lost += choose * p.powi(i as i32) * (1.0 - p).powi((n - i) as i32);
        if lost > miss {
            return i;
        }
        choose *= (n - i) as f64 / (i + 1) as f64;
    }
    n
}

/// P(X ≥ at_least) of a binomial with n trials.
fn upper_binomial_tail(n: usize, at_least: usize, p: f64) -> f64 {
    // C(n, i) grows step by step; n is at most 255, so every term is finite in f64.
    let mut choose = 1.0;
    let mut sum = 0.0;
    for i in 0..=n {
        if i >= at_least {
            sum += choose * p.powi(i as i32) * (1.0 - p).powi((n - i) as i32);
        }
        choose *= (n - i) as f64 / (i + 1) as f64;
    }
    sum.min(1.0)
}

/// What a filter is to do, and how often it may fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Pairs of this resemblance and more are wanted.
    pub threshold: f64,
    /// The share of pairs at the threshold that may be missed.
    pub miss: f64,
    /// Pairs of this resemblance and less are not wanted.
    pub far: f64,
    /// The share of pairs at `far` that may be accepted.
    pub false_accept: f64,
}

/// Why no filter was chosen.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// Not 0 < far < threshold < 1, or rates outside 0 to 1.
    #[error(
        "needs 0 < far < threshold < 1 and error rates between 0 and 1, not far {far}, threshold {threshold}, miss {miss}, false {false_accept}"
    )]
    Target {
        /// As asked.
        far: f64,
        /// As asked.
        threshold: f64,
        /// As asked.
        miss: f64,
        /// As asked.
        false_accept: f64,
    },
    /// Beyond the search.
    #[error("no filter of up to {most} features does that; raise an error rate or lower `far`")]
    TooSharp {
        /// The most features tried.
        most: u32,
    },
}

/// The smallest filter that meets a target: fewest features, then fewest permutations, then the
/// fewest missed.
///
/// Filters of which one to three features must agree come first, even where one with more features
/// to agree would be smaller: finding pairs that share many features costs far more than a few
/// bytes (section 3 advises one or two).
pub fn choose(target: Target) -> Result<FeatureFilter, PlanError> {
    const MOST_FEATURES: u32 = 64;
    const FEW: u32 = 3;
    let Target { threshold, miss, far, false_accept } = target;
    let rate = |p: f64| p > 0.0 && p < 1.0;
    if !(0.0 < far && far < threshold && threshold < 1.0 && rate(miss) && rate(false_accept)) {
        return Err(PlanError::Target { far, threshold, miss, false_accept });
    }
    let sizes = [FEW, MOST_FEATURES]
        .into_iter()
        .flat_map(|most_agreeing| (1..=MOST_FEATURES).map(move |k| (k, most_agreeing)));
    for (k, most_agreeing) in sizes {
        let mut best: Option<FeatureFilter> = None;
        for r in 1..=k.min(most_agreeing) {
            // More minima a feature accept less: the smallest s that keeps `far` out is the one
            // that misses least.
            let fits = (1..=255)
                .filter_map(|s| FeatureFilter::new(k, s, r).ok())
                .find(|filter| filter.acceptance(far) <= false_accept)
                .filter(|filter| filter.miss(threshold) <= miss);
            if let Some(filter) = fits
                && best.is_none_or(|best| {
                    let cost = |f: FeatureFilter| (f.permutations(), f.miss(threshold));
                    cost(filter) < cost(best)
                })
            {
                best = Some(filter);
            }
        }
        if let Some(filter) = best {
            return Ok(filter);
        }
    }
    Err(PlanError::TooSharp { most: MOST_FEATURES })
}

/// Makes the features of sketches.
#[derive(Clone, Debug)]
pub struct FeatureMaker {
    filter: FeatureFilter,
    rabin: Arc<Shingler>,
    blocks: Vec<u64>,
    features: Vec<u64>,
}

impl FeatureMaker {
    /// For sketches of at least `filter.permutations()` minima.
    pub fn new(filter: FeatureFilter) -> FeatureMaker {
        // Features are 64 bits whatever the chunks are: shared features make pairs, and spurious
        // ones cost work.
        let rabin = Rabin::new(Purpose::Features, Width::Bits64);
        // The group's number, and two minima to a block.
        let rabin = Arc::new(Shingler::new(rabin, 1 + filter.s().div_ceil(2)));
        FeatureMaker { filter, rabin, blocks: vec![], features: vec![] }
    }

    /// One fingerprint a group, the group's number mixed in, by a polynomial of its own (Broder
    /// 2000, section 3).
    ///
    /// # Panics
    /// When the sketch is too short.
    pub fn features(&mut self, sketch: &[u32]) -> &[u64] {
        let FeatureMaker { filter, rabin, blocks, features } = self;
        let groups = sketch[..filter.permutations()].chunks_exact(filter.s());
        blocks.clear();
        for (group, number) in groups.zip(0..) {
            blocks.push(number);
            let (pairs, odd) = group.as_chunks::<2>();
            blocks.extend(pairs.iter().map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32));
            blocks.extend(odd.iter().map(|minimum| u64::from(*minimum)));
        }
        features.clear();
        rabin.sequences_into(blocks, features);
        features
    }
}

impl fmt::Display for FeatureFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}r{}", self.k, self.s, self.r)
    }
}

impl FromStr for FeatureFilter {
    type Err = FilterError;

    fn from_str(spelling: &str) -> Result<FeatureFilter, FilterError> {
        let bad = || FilterError::Spelling(spelling.to_owned());
        let (k, rest) = spelling.split_once('x').ok_or_else(bad)?;
        let (s, r) = rest.split_once('r').ok_or_else(bad)?;
        let number =
            |digits: &str| digits.parse::<u32>().ok().filter(|n| n.to_string() == digits).ok_or_else(bad);
        FeatureFilter::new(number(k)?, number(s)?, number(r)?)
    }
}

#[cfg(test)]
mod tests;
