//! The size of a web from addresses that were tried at random (O'Neill, McClain and Lavoie 1997;
//! Lawrence and Giles 1999).
//!
//! Nothing here tries an address: the results of a study are given. Of `tried` addresses out of
//! `space` some had a server, so there are about `space · found / tried` servers, and pages are
//! servers times the mean number of pages. The first is clean statistics. The second is not: pages
//! per server follow a power law, often one without a variance, and then the mean of a sample is
//! nearly always too low and no interval from the sample knows it. So the tail is measured and
//! told.

use super::random::Dice;
use super::statistics::{Estimate, Interval, percentiles, wilson};

/// The results of a study.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AddressStudy {
    /// Addresses that there are.
    pub space: u64,
    /// Addresses that were tried.
    pub tried: u64,
    /// Servers that were found.
    pub found: u64,
    /// The pages of each server that was crawled.
    pub pages: Vec<u64>,
}

/// The tail of the distribution of pages over servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// The exponent of the density: servers with n pages are about n^-exponent. Hill's estimate.
    pub exponent: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Servers that it was measured on.
    pub servers: usize,
    /// They have more pages than this.
    pub from: u64,
}

/// What follows from a study.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressEstimates {
    /// Servers in the whole space.
    pub servers: Estimate,
    /// Pages of a server on average; `None` when none was crawled.
    pub mean_pages: Option<Estimate>,
    /// Pages in the whole space.
    pub pages: Option<Estimate>,
    /// The same without the largest server that was found.
    pub pages_without_largest: Option<f64>,
    /// The share of all pages seen that the largest server has.
    pub largest_share: Option<f64>,
    /// The tail; `None` when there are too few servers to tell.
    pub tail: Option<Tail>,
    /// Why the interval of the pages should not be trusted.
    pub warnings: Vec<String>,
}

/// Why a study says nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Nothing was tried.
    #[error("no address was tried")]
    NothingTried,
    /// More than there are.
    #[error("{tried} addresses tried of {space} that there are")]
    TriedTooMany {
        /// Addresses that were tried.
        tried: u64,
        /// Addresses that there are.
        space: u64,
    },
    /// More servers than addresses.
    #[error("{found} servers on {tried} addresses tried")]
    FoundTooMany {
        /// Servers.
        found: u64,
        /// Addresses.
        tried: u64,
    },
    /// More were crawled than found.
    #[error("{crawled} servers crawled of {found} found")]
    CrawledTooMany {
        /// Servers that were crawled.
        crawled: u64,
        /// Servers that were found.
        found: u64,
    },
}

/// Servers at least for a tail.
const TAIL_SERVERS: usize = 10;

/// Estimates servers and pages.
///
/// # Errors
///
/// When the numbers of the study contradict each other.
pub fn estimate(
    study: &AddressStudy,
    confidence: f64,
    draws: usize,
    seed: u64,
) -> Result<AddressEstimates, AddressError> {
    let AddressStudy { space, tried, found, ref pages } = *study;
    let crawled = pages.len() as u64;
    if tried == 0 {
        return Err(AddressError::NothingTried);
    }
    if tried > space {
        return Err(AddressError::TriedTooMany { tried, space });
    }
    if found > tried {
        return Err(AddressError::FoundTooMany { found, tried });
    }
    if crawled > found {
        return Err(AddressError::CrawledTooMany { crawled, found });
    }
    let whole = space as f64;
    let share = wilson(found as f64, tried as f64, confidence);
    let servers = Estimate {
        value: whole * (found as f64 / tried as f64),
        interval: Interval { low: whole * share.low, high: whole * share.high },
    };
    let mut out = AddressEstimates {
        servers,
        mean_pages: None,
        pages: None,
        pages_without_largest: None,
        largest_share: None,
        tail: tail(pages),
        warnings: Vec::new(),
    };
    if pages.is_empty() {
        return Ok(out);
    }
    let sum: f64 = pages.iter().map(|n| *n as f64).sum();
    let largest = pages.iter().max().copied().unwrap_or(0) as f64;
    let n = pages.len() as f64;
    let mut dice = Dice::new(seed);
    let (mut means, mut totals) = (Vec::with_capacity(draws), Vec::with_capacity(draws));
    for _ in 0..draws {
        let resampled: f64 = pages.iter().map(|_| pages[dice.index(pages.len())] as f64).sum();
        let mean = resampled / n;
        // Servers vary too: Jeffreys' distribution of the share.
        let (yes, no) = (dice.gamma(found as f64 + 0.5), dice.gamma((tried - found) as f64 + 0.5));
        totals.push(whole * yes / (yes + no) * mean);
        means.push(mean);
    }
    let around = |value: f64, draws: &mut [f64]| {
        let interval = percentiles(draws, confidence).unwrap_or(Interval { low: value, high: value });
        Some(Estimate { value, interval })
    };
    out.mean_pages = around(sum / n, &mut means);
    out.pages = around(servers.value * sum / n, &mut totals);
    out.largest_share = (sum > 0.0).then_some(largest / sum);
    if pages.len() > 1 {
        out.pages_without_largest = Some(servers.value * (sum - largest) / (n - 1.0));
    }
    out.warnings = warnings(&out, pages.len());
    Ok(out)
}

/// Hill's estimate over the largest tenth of the servers, at least ten.
fn tail(pages: &[u64]) -> Option<Tail> {
    let mut sorted: Vec<u64> = pages.iter().copied().filter(|n| *n > 0).collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let servers = (sorted.len() / 10).max(TAIL_SERVERS);
    let from = *sorted.get(servers)?;
    let logs: f64 = sorted[..servers].iter().map(|n| (*n as f64 / from as f64).ln()).sum();
    // Servers of one size have no tail.
    if logs <= 0.0 {
        return None;
    }
    let index = servers as f64 / logs;
    Some(Tail { exponent: 1.0 + index, standard_error: index / (servers as f64).sqrt(), servers, from })
}

fn warnings(estimates: &AddressEstimates, crawled: usize) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(tail) = estimates.tail {
        let Tail { exponent, .. } = tail;
        if exponent < 2.0 {
            found.push(format!(
                "the tail exponent of pages per server is {exponent:.2}, below 2: the mean itself does not exist in such a distribution, and the estimate of pages grows with the sample"
            ));
        } else if exponent < 3.0 {
            found.push(format!(
                "the tail exponent of pages per server is {exponent:.2}, below 3: the variance is infinite and the interval of the pages is too narrow"
            ));
        }
    } else {
        found.push(format!(
            "{crawled} servers are too few, or too equal, to tell the tail of pages per server"
        ));
    }
    if let Some(share) = estimates.largest_share.filter(|share| *share > 0.1 && crawled > 1) {
        found.push(format!(
            "the largest server has {:.0} % of all pages seen: the estimate hangs on one server",
            100.0 * share
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_lawrence_and_giles() {
        // 2500 servers observed, 2.8 million in all, 289 pages each: 800 million pages. The share
        // of addresses with a server follows from the first two.
        let tried = (2500.0 * (1u64 << 32) as f64 / 2.8e6) as u64;
        let study = AddressStudy { space: 1 << 32, tried, found: 2500, pages: vec![289; 2500] };
        let found = estimate(&study, 0.95, 200, 1).unwrap();
        assert!((found.servers.value - 2.8e6).abs() < 100.0, "{:?}", found.servers);
        // The binomial error of 2500 is 2 %, so 95 % are about 110 thousand to each side.
        let half = (found.servers.interval.high - found.servers.interval.low) / 2.0;
        assert!((half - 1.96 * 0.02 * 2.8e6).abs() < 2000.0, "{half}");
        let pages = found.pages.unwrap();
        assert!((pages.value / 8e8 - 1.0).abs() < 0.015, "{pages:?}: printed as 800 million");
        assert!(pages.interval.covers(8e8) && found.tail.is_none());
    }

    #[test]
    fn a_power_law_is_seen_and_told() {
        let mut dice = Dice::new(5);
        // Density exponent 1 + 1.2: infinite variance.
        let pages: Vec<u64> = (0..5000).map(|_| dice.unit().powf(-1.0 / 1.2) as u64).collect();
        let study = AddressStudy { space: 1 << 32, tried: 1 << 24, found: 6000, pages };
        let found = estimate(&study, 0.95, 100, 1).unwrap();
        let tail = found.tail.unwrap();
        assert!((tail.exponent - 2.2).abs() < 4.0 * tail.standard_error, "{tail:?}, seed 5");
        assert!(found.warnings.iter().any(|w| w.contains("below 3")), "{:?}", found.warnings);
        assert!(found.pages_without_largest.unwrap() < found.pages.unwrap().value);
        // Light tails are left in peace.
        let pages: Vec<u64> = (0..5000).map(|_| 50 + dice.below(100)).collect();
        let study = AddressStudy { space: 1 << 32, tried: 1 << 24, found: 6000, pages };
        let found = estimate(&study, 0.95, 100, 1).unwrap();
        assert!(found.warnings.is_empty(), "{:?}", found.warnings);
    }

    #[test]
    fn little_is_told_of_little() {
        let nothing = AddressStudy { space: 100, tried: 10, found: 0, pages: vec![] };
        let found = estimate(&nothing, 0.95, 100, 1).unwrap();
        assert_eq!((found.servers.value, found.pages), (0.0, None));
        assert!(
            found.servers.interval.high > 20.0,
            "three of ten could have been missed: {:?}",
            found.servers
        );
        let bad = |tried, found, pages: &[u64]| {
            let study = AddressStudy { space: 100, tried, found, pages: pages.to_vec() };
            estimate(&study, 0.95, 10, 1).unwrap_err()
        };
        assert_eq!(bad(0, 0, &[]), AddressError::NothingTried);
        assert_eq!(bad(101, 0, &[]), AddressError::TriedTooMany { tried: 101, space: 100 });
        assert_eq!(bad(10, 11, &[]), AddressError::FoundTooMany { found: 11, tried: 10 });
        assert_eq!(bad(10, 1, &[3, 4]), AddressError::CrawledTooMany { crawled: 2, found: 1 });
    }
}
