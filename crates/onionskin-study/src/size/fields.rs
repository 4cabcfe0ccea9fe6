//! Measurements as programs see them: one object each, with the method in it.

use serde::{Serialize, Serializer};

use super::addresses::{AddressEstimates, AddressStudy};
use super::bias::Bias;
use super::overlap::Basis;
use super::statistics::Estimate;
use super::walk::{Rule, WalkParams, Walked};
use super::{By, MemberKind, SearchesReport, SizeReport};

/// A random walk over the links of an atlas.
#[derive(Clone, Copy, Debug)]
pub struct WalkReport<'a> {
    /// The atlas, as it was named.
    pub atlas: &'a str,
    /// How it went.
    pub params: &'a WalkParams,
    /// What it saw.
    pub walked: &'a Walked,
    /// What may be wrong.
    pub biases: &'a [Bias],
    /// How long it took.
    pub seconds: f64,
}

/// A study of random addresses.
#[derive(Clone, Copy, Debug)]
pub struct AddressReport<'a> {
    /// What was tried and found.
    pub study: &'a AddressStudy,
    /// What follows.
    pub estimates: &'a AddressEstimates,
    /// The probability with which intervals have the truth.
    pub confidence: f64,
    /// The seed of the intervals.
    pub seed: u64,
    /// What may be wrong.
    pub biases: &'a [Bias],
}

macro_rules! serialised_as {
    ($report:ty, $fields:ident) => {
        impl Serialize for $report {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $fields::new(self).serialize(serializer)
            }
        }
    };
}

serialised_as!(SizeReport, Overlap);
serialised_as!(SearchesReport, Searches);
serialised_as!(WalkReport<'_>, Walk);
serialised_as!(AddressReport<'_>, Addresses);

/// A number with its interval.
#[derive(Serialize)]
struct Number {
    value: f64,
    low: f64,
    high: f64,
}

impl From<Estimate> for Number {
    fn from(estimate: Estimate) -> Number {
        Number { value: estimate.value, low: estimate.interval.low, high: estimate.interval.high }
    }
}

fn number(estimate: Option<Estimate>) -> Option<Number> {
    estimate.map(Number::from)
}

/// The result of sampling and checking.
#[derive(Serialize)]
struct Overlap<'a> {
    method: &'static str,
    by: &'static str,
    threshold: Option<f64>,
    confidence: f64,
    seed: u64,
    samples_wanted: u64,
    lexicon_words: Option<u64>,
    /// Where the sizes behind coverage come from: `overlap`, `counts` or `nothing`.
    basis: &'static str,
    reference: Option<&'a str>,
    members: Vec<MemberWire<'a>>,
    fractions: Vec<FractionWire<'a>>,
    ratios: Vec<RatioWire<'a>>,
    parts: Vec<PartWire<'a>>,
    biases: &'a [Bias],
    seconds: f64,
}

#[derive(Serialize)]
struct MemberWire<'a> {
    name: &'a str,
    kind: &'static str,
    counted: Option<u64>,
    samples: u64,
    effective_samples: f64,
    is_whole: bool,
    size: Option<Number>,
    coverage: Option<Number>,
    requests: u64,
    failures: u64,
    queries: u64,
    empty_queries: u64,
    cut_queries: u64,
    dropped_pages: u64,
    unknown_checks: u64,
}

#[derive(Serialize)]
struct FractionWire<'a> {
    of: &'a str,
    r#in: &'a str,
    found: u64,
    checked: u64,
    share: Number,
}

#[derive(Serialize)]
struct RatioWire<'a> {
    x: &'a str,
    y: &'a str,
    ratio: Option<Number>,
}

#[derive(Serialize)]
struct PartWire<'a> {
    members: Vec<&'a str>,
    share: Number,
}

impl<'a> Overlap<'a> {
    fn new(report: &'a SizeReport) -> Overlap<'a> {
        let found = &report.estimates;
        let n = report.observed.len();
        let name = |x: usize| report.observed[x].name.as_str();
        let (by, threshold) = match report.by {
            By::Url => ("url", None),
            By::Text => ("text", None),
            By::Near { threshold } => ("near", Some(threshold)),
        };
        let mut members = Vec::with_capacity(n);
        let mut fractions = Vec::new();
        for (x, observed) in report.observed.iter().enumerate() {
            let effort = observed.effort;
            members.push(MemberWire {
                name: name(x),
                kind: match report.kinds[x] {
                    MemberKind::Atlas => "atlas",
                    MemberKind::Seen => "seen",
                    MemberKind::List => "list",
                    MemberKind::Engine => "engine",
                },
                counted: observed.count,
                samples: observed.samples.len() as u64,
                effective_samples: found.effective_samples[x],
                is_whole: observed.is_whole,
                size: number(found.sizes[x]),
                coverage: number(found.coverage[x]),
                requests: effort.requests,
                failures: effort.failures,
                queries: effort.queries,
                empty_queries: effort.empty_queries,
                cut_queries: effort.cut_queries,
                dropped_pages: effort.dropped_pages,
                unknown_checks: effort.unknown_checks,
            });
            for (y, fraction) in found.fractions[x].iter().enumerate() {
                fractions.extend(fraction.map(|fraction| FractionWire {
                    of: name(x),
                    r#in: name(y),
                    found: fraction.found,
                    checked: fraction.checked,
                    share: fraction.share.into(),
                }));
            }
        }
        let ratios = found.ratios.iter();
        let parts = found.parts.iter();
        Overlap {
            method: "overlap",
            by,
            threshold,
            confidence: report.confidence,
            seed: report.seed,
            samples_wanted: report.samples as u64,
            lexicon_words: report.lexicon_words.map(|n| n as u64),
            basis: match found.basis {
                Basis::Overlap => "overlap",
                Basis::Counts => "counts",
                Basis::Nothing => "nothing",
            },
            reference: found.reference.map(name),
            members,
            fractions,
            ratios: ratios
                .map(|r| RatioWire { x: name(r.x), y: name(r.y), ratio: number(r.ratio) })
                .collect(),
            parts: parts
                .map(|part| PartWire {
                    members: part.members.iter().map(|x| name(*x)).collect(),
                    share: part.share.into(),
                })
                .collect(),
            biases: &report.biases,
            seconds: report.seconds,
        }
    }
}

/// The result of searches out of a log.
#[derive(Serialize)]
struct Searches<'a> {
    method: &'static str,
    confidence: f64,
    seed: u64,
    queries: u64,
    used: u64,
    empty: u64,
    too_many: u64,
    failed: u64,
    members: Vec<SearchedWire<'a>>,
    ratios: Vec<SearchRatioWire<'a>>,
    biases: &'a [Bias],
    seconds: f64,
}

#[derive(Serialize)]
struct SearchedWire<'a> {
    name: &'a str,
    results: u64,
    requests: u64,
}

#[derive(Serialize)]
struct SearchRatioWire<'a> {
    x: &'a str,
    y: &'a str,
    ratio_of_sums: Option<Number>,
    mean_of_ratios: Option<Number>,
    harmonic_mean: Option<Number>,
    without_x: u64,
    without_y: u64,
    of_x_in_y: Option<Number>,
    of_y_in_x: Option<Number>,
}

impl<'a> Searches<'a> {
    fn new(report: &'a SearchesReport) -> Searches<'a> {
        let name = |x: usize| report.names[x].as_str();
        let members = (0..report.names.len()).map(|x| SearchedWire {
            name: name(x),
            results: report.estimates.totals[x],
            requests: report.requests[x],
        });
        let ratios = report.estimates.ratios.iter().map(|ratio| SearchRatioWire {
            x: name(ratio.x),
            y: name(ratio.y),
            ratio_of_sums: number(ratio.of_sums),
            mean_of_ratios: number(ratio.mean),
            harmonic_mean: number(ratio.harmonic),
            without_x: ratio.without_x,
            without_y: ratio.without_y,
            of_x_in_y: number(ratio.overlap[0]),
            of_y_in_x: number(ratio.overlap[1]),
        });
        Searches {
            method: "searches",
            confidence: report.confidence,
            seed: report.seed,
            queries: report.queries,
            used: report.used,
            empty: report.estimates.empty,
            too_many: report.too_many,
            failed: report.failed,
            members: members.collect(),
            ratios: ratios.collect(),
            biases: &report.biases,
            seconds: report.seconds,
        }
    }
}

/// The result of a walk.
#[derive(Serialize)]
struct Walk<'a> {
    method: &'static str,
    atlas: &'a str,
    rule: &'static str,
    confidence: f64,
    seed: u64,
    steps: u64,
    pages: u64,
    visited: u64,
    sample: u64,
    caught: [u64; 2],
    recaught: u64,
    reachable: Option<Number>,
    unlinked: u64,
    mean_in_links_sample: f64,
    mean_in_links_all: f64,
    ks_distance: f64,
    ks_limit: f64,
    biases: &'a [Bias],
    seconds: f64,
}

impl<'a> Walk<'a> {
    fn new(report: &WalkReport<'a>) -> Walk<'a> {
        let WalkReport { atlas, params, walked, biases, seconds } = *report;
        Walk {
            method: "walk",
            atlas,
            rule: if params.rule == Rule::Metropolis { "metropolis" } else { "jumping" },
            confidence: params.confidence,
            seed: params.seed,
            steps: params.steps,
            pages: walked.pages,
            visited: walked.visited,
            sample: walked.sample.len() as u64,
            caught: walked.caught,
            recaught: walked.recaught,
            reachable: number(walked.size),
            unlinked: walked.unlinked,
            mean_in_links_sample: walked.mean_in_links[0],
            mean_in_links_all: walked.mean_in_links[1],
            ks_distance: walked.distance,
            ks_limit: walked.distance_limit,
            biases,
            seconds,
        }
    }
}

/// The result of a study of random addresses.
#[derive(Serialize)]
struct Addresses<'a> {
    method: &'static str,
    confidence: f64,
    seed: u64,
    space: u64,
    tried: u64,
    found: u64,
    crawled: u64,
    servers: Number,
    pages_of_a_server: Option<Number>,
    pages: Option<Number>,
    pages_without_largest: Option<f64>,
    largest_share: Option<f64>,
    tail_exponent: Option<f64>,
    tail_standard_error: Option<f64>,
    tail_servers: Option<u64>,
    warnings: &'a [String],
    biases: &'a [Bias],
}

impl<'a> Addresses<'a> {
    fn new(report: &AddressReport<'a>) -> Addresses<'a> {
        let AddressReport { study, estimates: found, confidence, seed, biases } = *report;
        Addresses {
            method: "addresses",
            confidence,
            seed,
            space: study.space,
            tried: study.tried,
            found: study.found,
            crawled: study.pages.len() as u64,
            servers: found.servers.into(),
            pages_of_a_server: number(found.mean_pages),
            pages: number(found.pages),
            pages_without_largest: found.pages_without_largest,
            largest_share: found.largest_share,
            tail_exponent: found.tail.map(|tail| tail.exponent),
            tail_standard_error: found.tail.map(|tail| tail.standard_error),
            tail_servers: found.tail.map(|tail| tail.servers as u64),
            warnings: &found.warnings,
            biases,
        }
    }
}
