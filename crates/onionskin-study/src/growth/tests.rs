use super::*;
use onionskin_core::{DocId, SplitMix64};
use proptest::prelude::*;

/// Sizes of clusters and the number of documents, in clusters or not.
struct Population {
    name: &'static str,
    sizes: Vec<u64>,
    documents: u64,
}

impl Population {
    /// Sizes from 2 on with a tail of exponent about 2.5, until half of the documents are in
    /// clusters.
    fn zipf(documents: u64) -> Population {
        let mut rng = SplitMix64::new(11);
        let mut sizes = Vec::new();
        while sizes.iter().sum::<u64>() < documents / 2 {
            let uniform = (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            sizes.push(((2.0 * (1.0 - uniform).powf(-1.0 / 1.5)) as u64).clamp(2, 2_000));
        }
        Population { name: "zipf", sizes, documents }
    }

    /// A third of everything is one cluster.
    fn giant(documents: u64) -> Population {
        let mut sizes = vec![documents / 3];
        sizes.extend(std::iter::repeat_n(2, documents as usize / 10));
        sizes.extend(std::iter::repeat_n(5, documents as usize / 50));
        Population { name: "one giant", sizes, documents }
    }

    fn duplicates(&self) -> f64 {
        self.sizes.iter().map(|size| size - 1).sum::<u64>() as f64
    }

    fn clustered(&self) -> f64 {
        self.sizes.iter().sum::<u64>() as f64
    }

    fn growth(&self, of: u32, seed: u64) -> Growth {
        let mut growth = Growth::new(self.documents, of);
        let mut doc = 0u32;
        for size in &self.sizes {
            let members = doc..doc + *size as u32;
            doc = members.end;
            let first = members.map(|doc| subcollection(DocId(doc), of, seed)).min().unwrap();
            growth.add(*size, first);
        }
        growth
    }
}

fn seeds() -> u64 {
    if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 2_000 } else { 300 }
}

fn covers(interval: Interval, truth: f64) -> bool {
    assert!(interval.low <= interval.value && interval.value <= interval.high, "{interval:?}");
    (interval.low..=interval.high).contains(&truth)
}

#[test]
fn subcollections_are_frozen_and_even() {
    let firsts: Vec<u32> = (0..10).map(|doc| subcollection(DocId(doc), 50, 0)).collect();
    // Estimates of finished searches were made with these.
    assert_eq!(firsts, [28, 41, 20, 0, 7, 27, 39, 25, 25, 15]);
    assert!(subcollection(DocId(7), 0, 3) == 0 && subcollection(DocId(7), 1, 3) == 0);
    for (of, seed) in [(7u32, 1u64), (50, 2), (50, 3)] {
        let mut counts = vec![0f64; of as usize];
        let n = 100_000u32;
        (0..n).for_each(|doc| counts[subcollection(DocId(doc), of, seed) as usize] += 1.0);
        let expected = f64::from(n) / f64::from(of);
        let chi2: f64 = counts.iter().map(|count| (count - expected).powi(2) / expected).sum();
        let free = f64::from(of - 1);
        assert!((chi2 - free).abs() < 4.0 * (2.0 * free).sqrt(), "chi² {chi2} of {of}, seed {seed}");
        // Neighbours are strangers: they meet as often as any two.
        let part = |doc| subcollection(DocId(doc), of, seed);
        let meet = (1..n).filter(|d| part(*d) == part(d - 1)).count();
        let deviation = (expected * (1.0 - 1.0 / f64::from(of))).sqrt();
        assert!((meet as f64 - expected).abs() < 4.0 * deviation, "{meet} of {expected}, seed {seed}");
    }
}

#[test]
fn estimates_are_unbiased_and_their_intervals_hold() {
    for population in [Population::zipf(50_000), Population::giant(50_000)] {
        for (iterations, of, most_off) in [(10, 50, 0.02), (25, 50, 0.005)] {
            let truth = [
                population.duplicates(),
                population.sizes.len() as f64,
                population.documents as f64 - population.clustered(),
                population.duplicates() / population.documents as f64,
            ];
            let mut covered = [0u64; 4];
            let (mut sum, mut squares) = ([0.0; 4], [0.0; 4]);
            for seed in 0..seeds() {
                let estimate = population.growth(of, seed).estimate(iterations);
                let all = [estimate.duplicates, estimate.clusters, estimate.unique, estimate.share];
                for (at, interval) in all.into_iter().enumerate() {
                    covered[at] += u64::from(covers(interval, truth[at]));
                    sum[at] += interval.value - truth[at];
                    squares[at] += (interval.value - truth[at]).powi(2);
                }
                let off = (estimate.share.value - truth[3]).abs();
                assert!(off < most_off, "{}, seed {seed}: off by {off} after {iterations}", population.name);
            }
            for at in 0..4 {
                let (n, name) = (seeds() as f64, population.name);
                let share = covered[at] as f64 / n;
                assert!(share >= 0.9, "{name}, {iterations} of {of}: number {at} covered {share}");
                let error = (squares[at] / n / n).sqrt();
                let bias = sum[at] / n;
                assert!(
                    bias.abs() < 4.0 * error,
                    "{name}, {iterations} of {of}: number {at} off by {bias} ± {error}"
                );
                // An interval that is far too wide covers, too.
                assert!(share <= 0.995, "{name}, {iterations} of {of}: number {at} covered {share}");
            }
        }
    }
}

#[test]
fn other_sums_are_unbiased_too() {
    // Of every other cluster one half is known beforehand, and of some all but one: those have a
    // negative value.
    let population = Population::zipf(20_000);
    let value =
        |at: usize, size: u64| if at.is_multiple_of(2) { (size / 2) as f64 } else { 1.0 - (at % 4) as f64 };
    let truth: f64 = population.sizes.iter().enumerate().map(|(at, size)| value(at, *size)).sum();
    let (mut covered, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for seed in 0..seeds() {
        let mut sample = Sample::new(3, 10);
        let mut doc = 0u32;
        for (at, size) in population.sizes.iter().enumerate() {
            let mut members = doc..doc + *size as u32;
            doc = members.end;
            if members.any(|doc| subcollection(DocId(doc), 10, seed) < 3) {
                sample.add(value(at, *size), *size, 1);
            }
        }
        let interval = sample.interval(1.0, 20_000.0, 20_000.0);
        covered += f64::from(u8::from(covers(interval, truth)));
        sum += interval.value - truth;
        squares += (interval.value - truth).powi(2);
    }
    let n = seeds() as f64;
    assert!((0.9..=0.995).contains(&(covered / n)), "covered {covered} of {n}");
    assert!((sum / n).abs() < 4.0 * squares.sqrt() / n, "off by {} ± {}", sum / n, squares.sqrt() / n);
}

#[test]
fn few_clusters_have_honest_intervals() {
    for sizes in [vec![2; 3], vec![2; 12], vec![2, 2, 2, 400], vec![3, 2, 7]] {
        let population = Population { name: "few", sizes, documents: 1_000 };
        let n = 2_000;
        let covered = (0..n)
            .filter(|seed| {
                covers(population.growth(10, *seed).estimate(2).duplicates, population.duplicates())
            })
            .count();
        assert!(covered as f64 >= 0.9 * n as f64, "{:?}: {covered} of {n}", population.sizes);
    }
    // Nothing found is not nothing there.
    let none = Growth::new(1_000, 10).estimate(2);
    assert_eq!((none.duplicates.value, none.duplicates.low), (0.0, 0.0));
    assert!(none.duplicates.high > 3.0 && none.duplicates.high < 20.0, "{none:?}");
    assert_eq!(none.unique.high, 1_000.0);
}

#[test]
fn intervals_never_leave_what_is_possible() {
    // Everything is in one cluster: no more can be found.
    let mut growth = Growth::new(5, 10);
    growth.add(5, 1);
    let estimate = growth.estimate(2);
    assert_eq!(
        (estimate.duplicates.value, estimate.duplicates.low, estimate.duplicates.high),
        (4.0, 4.0, 4.0)
    );
    assert_eq!((estimate.clusters.high, estimate.unique.high), (1.0, 0.0));
    // Before the first iteration anything may be.
    let before = growth.estimate(0);
    assert_eq!((before.duplicates.low, before.duplicates.high, before.share.high), (0.0, 4.0, 0.8));
    assert_eq!((before.clusters.high, before.unique.low), (2.0, 0.0));
    let empty = Growth::new(0, 0).estimate(1);
    assert_eq!((empty.share.value, empty.share.high, empty.unique.high), (0.0, 0.0, 0.0));
}

proptest! {
    #[test]
    fn the_curve_equals_the_definition(
        clusters in prop::collection::vec((0u64..6, 0u32..8), 0..30),
        of in 1u32..8,
    ) {
        let clusters: Vec<(u64, u32)> = clusters.into_iter().map(|(size, first)| (size, first % of)).collect();
        let documents = 200;
        let mut growth = Growth::new(documents, of);
        clusters.iter().for_each(|(size, first)| growth.add(*size, *first));
        let curve = growth.curve();
        prop_assert_eq!(curve.len(), of as usize);
        for (iteration, point) in (1..).zip(&curve) {
            let known = || clusters.iter().filter(|(size, first)| *size > 1 && *first < iteration);
            let (count, duplicates) = (known().count() as u64, known().map(|(size, _)| size - 1).sum::<u64>());
            prop_assert_eq!((point.iteration, point.clusters, point.duplicates), (iteration, count, duplicates));
            prop_assert_eq!(point.documents_compared, documents * u64::from(iteration) / u64::from(of));
            prop_assert_eq!(growth.at(iteration), *point);
            let estimate = growth.estimate(iteration);
            for interval in [estimate.duplicates, estimate.clusters, estimate.unique, estimate.share] {
                prop_assert!(interval.low <= interval.value && interval.value <= interval.high);
            }
            prop_assert!(estimate.duplicates.low >= duplicates as f64);
            prop_assert!(estimate.duplicates.high <= documents as f64 && estimate.unique.low >= 0.0);
        }
        let (last, end) = (curve[of as usize - 1], growth.estimate(of));
        for (interval, truth) in [(end.duplicates, last.duplicates), (end.clusters, last.clusters)] {
            prop_assert_eq!((interval.low, interval.value, interval.high), (truth as f64, truth as f64, truth as f64));
        }
        prop_assert_eq!(end.unique.low, end.unique.high);
    }
}

#[test]
fn an_earlier_collection_tells_how_this_one_will_end() {
    // The same shape, other documents, other numbers of subcollections: the paper had 15, 40
    // and 50.
    let reference = Population::zipf(60_000).growth(40, 1).reference();
    let population = Population::zipf(50_000);
    for (seed, of) in [(2, 50), (3, 15), (4, 40)] {
        let growth = population.growth(of, seed);
        let truth = population.duplicates() / population.documents as f64;
        for (iterations, most_off) in [(of.div_ceil(5), 0.02), (of.div_ceil(2), 0.005), (of, 1e-12)] {
            let guess = growth.estimate_from(&reference, iterations).unwrap();
            assert!((guess.share - truth).abs() < most_off, "seed {seed}, {iterations} of {of}: {guess:?}");
        }
    }
    let growth = population.growth(50, 1);
    assert_eq!(growth.estimate_from(&Reference::default(), 10), None);
    assert_eq!(growth.estimate_from(&reference, 0), None);
    // Nothing was found in either: nothing is expected.
    let nothing = Growth::new(10, 5);
    let guess = nothing.estimate_from(&Growth::new(9, 3).reference(), 2).unwrap();
    assert_eq!((guess.duplicates, guess.unique), (0.0, 10.0));
}

#[test]
fn between_two_iterations_the_reference_is_a_line() {
    let shares = [0.5, 0.9, 1.0, 1.0];
    let at = |fraction| share_at(&shares, fraction).unwrap();
    for (fraction, share) in [(0.0, 0.0), (0.125, 0.25), (0.25, 0.5), (0.375, 0.7), (0.5, 0.9), (1.0, 1.0)] {
        assert!((at(fraction) - share).abs() < 1e-12, "{fraction}");
    }
}

#[test]
fn with_half_of_the_iterations_nine_tenths_are_found() {
    // Pereira et al. 2006, section 4.2, "in every collection". Printed are documents, clusters,
    // duplicates (table 2) and clusters of two. Those that are larger are three here, where they
    // are missed most, and one that takes the rest.
    for (name, of, documents, clusters, duplicates, pairs) in [
        ("2003", 15, 2_067_278u64, 251_588u64, 804_338u64, 158_288u64),
        ("2004", 40, 2_033_113, 266_408, 876_047, 166_929),
        ("2005", 50, 2_174_520, 255_601, 778_290, 159_695),
    ] {
        let threes = clusters - pairs - 1;
        let rest = duplicates - pairs - 2 * threes + 1;
        let mut sizes = vec![rest];
        sizes.extend(std::iter::repeat_n(2, pairs as usize));
        sizes.extend(std::iter::repeat_n(3, threes as usize));
        let growth = Population { name, sizes, documents }.growth(of, 1);
        let curve = growth.curve();
        let last = curve[of as usize - 1];
        assert_eq!((last.clusters, last.duplicates), (clusters, duplicates), "{name}");
        let half = growth.reference().duplicates[of.div_ceil(2) as usize - 1];
        assert!(half > 0.9 && half < 0.96, "{name}: {half}");
    }
}
