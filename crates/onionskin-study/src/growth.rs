//! How clusters and duplicates grow with the iterations of a search, and what the first ones say of
//! the end (Pereira et al. 2006, section 4.2).
//!
//! The paper compares one subcollection after the other with everything. After an iteration all
//! clusters are known, whole, that have a member in one of the subcollections so far. So nothing
//! has to be run again to draw the curve: the size of each cluster and the first subcollection that
//! one of its members is in are enough.
//!
//! ```text
//! subcollection   0     1     2     3          after iteration 1: the cluster a, 3 documents, 2 duplicates
//!                a c   a b    a   b c          after iteration 2: a and b and c, as many as there will ever be
//! ```
//!
//! Here documents are [dealt out by chance](subcollection), each by itself. Then it is known how
//! often a cluster of some size is missed, and a count of what was found can be made one of what
//! there is, with an interval; the paper needs another collection for that, and so does
//! [`Growth::estimate_from`].

use std::collections::BTreeMap;

pub use onionskin_similar::recall::Interval;
pub use onionskin_similar::sample::{Sample, subcollection};

/// What is known after an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Iterations so far, from 1 on.
    pub iteration: u32,
    /// Documents in the subcollections so far, on average.
    pub documents_compared: u64,
    /// Clusters found.
    pub clusters: u64,
    /// Documents in them, but one of each.
    pub duplicates: u64,
}

/// What there will be at the end, with 95 % intervals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Documents in clusters, but one of each.
    pub duplicates: Interval,
    /// Clusters.
    pub clusters: Interval,
    /// Documents in no cluster.
    pub unique: Interval,
    /// Duplicates out of all documents, between 0 and 1.
    pub share: Interval,
}

/// The growth of a complete search as shares of its end: what another search is [judged
/// by](Growth::estimate_from).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    /// The share of all clusters that were known after each iteration, from the first on.
    pub clusters: Vec<f64>,
    /// The same of duplicates.
    pub duplicates: Vec<f64>,
}

/// What there will be at the end if all webs grow alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Guess {
    /// Documents in clusters, but one of each.
    pub duplicates: f64,
    /// Clusters.
    pub clusters: f64,
    /// Documents in no cluster.
    pub unique: f64,
    /// Duplicates out of all documents, between 0 and 1.
    pub share: f64,
}

/// Clusters by size and by the iteration that finds them.
///
/// ```
/// use onionskin_study::growth::Growth;
/// let mut growth = Growth::new(10, 4);
/// growth.add(3, 0);
/// growth.add(2, 2);
/// let duplicates: Vec<u64> = growth.curve().iter().map(|point| point.duplicates).collect();
/// assert_eq!(duplicates, [2, 2, 3, 3]);
/// assert_eq!(growth.estimate(4).duplicates.high, 3.0);
/// ```
#[derive(Clone, Debug)]
pub struct Growth {
    documents: u64,
    of: u32,
    /// How many clusters of a size have their first member in a subcollection: as many numbers as
    /// there are different ones.
    found: BTreeMap<(u32, u64), u64>,
}

impl Growth {
    /// No clusters yet, in a collection of so many documents and subcollections (one at least).
    pub fn new(documents: u64, of: u32) -> Growth {
        Growth { documents, of: of.max(1), found: BTreeMap::new() }
    }

    /// A cluster of `size` documents, all of them counted, and the lowest subcollection that one of
    /// them is in. A document by itself is no cluster.
    pub fn add(&mut self, size: u64, first_subcollection: u32) {
        if size > 1 {
            *self.found.entry((first_subcollection, size)).or_default() += 1;
        }
    }

    /// Corrects the number of documents, for a collection that is counted while its clusters are.
    pub fn set_documents(&mut self, documents: u64) {
        self.documents = documents;
    }

    /// Documents of the collection.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Subcollections.
    pub fn of(&self) -> u32 {
        self.of
    }

    /// What is known after some iterations.
    pub fn at(&self, iterations: u32) -> Point {
        let iteration = iterations.min(self.of);
        let (mut clusters, mut duplicates) = (0, 0);
        for ((_, size), count) in self.known(iteration) {
            clusters += count;
            duplicates += count * (size - 1);
        }
        let compared = u128::from(self.documents) * u128::from(iteration) / u128::from(self.of);
        Point { iteration, documents_compared: compared as u64, clusters, duplicates }
    }

    /// What is known after each iteration.
    pub fn curve(&self) -> Vec<Point> {
        let mut found = self.found.iter().peekable();
        let (mut clusters, mut duplicates) = (0, 0);
        let mut points = Vec::with_capacity(self.of as usize);
        for iteration in 1..=self.of {
            while let Some(((_, size), count)) = found.next_if(|((first, _), _)| *first < iteration) {
                clusters += count;
                duplicates += count * (size - 1);
            }
            let compared = u128::from(self.documents) * u128::from(iteration) / u128::from(self.of);
            points.push(Point { iteration, documents_compared: compared as u64, clusters, duplicates });
        }
        points
    }

    /// The same as shares of what is known in the end.
    pub fn reference(&self) -> Reference {
        let curve = self.curve();
        let shares = |of: fn(&Point) -> u64| {
            let last = curve.last().map_or(0, of);
            let share = |point| if last == 0 { 1.0 } else { of(point) as f64 / last as f64 };
            curve.iter().map(share).collect()
        };
        Reference { clusters: shares(|point| point.clusters), duplicates: shares(|point| point.duplicates) }
    }

    /// What there will be at the end, from what the first iterations found.
    ///
    /// After a fraction f of the iterations a cluster of k documents is found with probability 1 −
    /// (1−f)^k. What is found counts as often as it would have been missed on average (Horvitz and
    /// Thompson 1952), which is right on average for any distribution of sizes; the variance has
    /// the usual unbiased estimate. Intervals are those of Wilson's score: what may still be
    /// missing is taken to be pairs, so that an upper end is above what was found even where
    /// nothing was. No end leaves what is possible, and after all iterations both ends are the
    /// number itself.
    pub fn estimate(&self, iterations: u32) -> Estimate {
        let sample = Sample::new(iterations, self.of);
        let [mut duplicates, mut clusters, mut clustered] = [sample; 3];
        for ((_, size), count) in self.known(iterations) {
            duplicates.add((*size - 1) as f64, *size, *count);
            clusters.add(1.0, *size, *count);
            clustered.add(*size as f64, *size, *count);
        }
        let documents = self.documents as f64;
        // What is in no cluster that was found may be in one that was not.
        let left = (documents - clustered.found()).max(0.0);
        let duplicates = duplicates.interval(1.0, 0.0, (left - 1.0).max(0.0));
        let clusters = clusters.interval(1.0, 0.0, (left / 2.0).floor());
        let clustered = clustered.interval(2.0, 0.0, left);
        let share = |n: f64| if self.documents == 0 { 0.0 } else { n / documents };
        Estimate {
            duplicates,
            clusters,
            unique: Interval {
                value: (documents - clustered.value).max(0.0),
                low: (documents - clustered.high).max(0.0),
                high: (documents - clustered.low).max(0.0),
            },
            share: Interval {
                value: share(duplicates.value),
                low: share(duplicates.low),
                high: share(duplicates.high),
            },
        }
    }

    /// The paper's own way: what was found after some iterations is taken to be the same share of
    /// the end as it was in an earlier collection after the same fraction of its iterations.
    /// Between two iterations of that one it is a straight line. `None` where the reference says
    /// nothing.
    pub fn estimate_from(&self, reference: &Reference, iterations: u32) -> Option<Guess> {
        let fraction = f64::from(iterations.min(self.of)) / f64::from(self.of);
        let Point { clusters, duplicates, .. } = self.at(iterations);
        let documents = self.documents as f64;
        let whole = |found: u64, shares: &[f64]| {
            let share = share_at(shares, fraction).filter(|share| *share > 0.0)?;
            Some((found as f64 / share).min(documents))
        };
        let duplicates = whole(duplicates, &reference.duplicates)?;
        let clusters = whole(clusters, &reference.clusters)?;
        let unique = (documents - duplicates - clusters).max(0.0);
        let share = if self.documents == 0 { 0.0 } else { duplicates / documents };
        Some(Guess { duplicates, clusters, unique, share })
    }

    /// What the first iterations found.
    fn known(&self, iterations: u32) -> impl Iterator<Item = (&(u32, u64), &u64)> {
        self.found.range(..(iterations.min(self.of), 0))
    }
}

/// A curve that begins at nothing and has its last point at 1, at some place between.
fn share_at(shares: &[f64], fraction: f64) -> Option<f64> {
    let last = shares.len().checked_sub(1)?;
    let place = fraction * shares.len() as f64;
    let (whole, rest) = ((place.floor() as usize).min(shares.len()), place.fract());
    let before = if whole == 0 { 0.0 } else { shares[whole - 1] };
    Some(before + rest * (shares[whole.min(last)] - before))
}

#[cfg(test)]
mod tests;
