//! The passages that two texts share, as runs of tokens.
//!
//! The problem: two lists of tokens, and wanted are the pieces that a person would call the same,
//! longest first, none used twice. The naive way looks at every pair of places, takes the longest
//! common run, marks it, and begins again: quadratic, times the number of runs. Here runs are found
//! by the shingles that both texts have, since a run of at least w tokens is a sequence of shared
//! shingles and nothing else:
//!
//! ```text
//!  shared shingles ──▶ pairs of places ──▶ runs along diagonals ──▶ heap, longest first ──▶ taken, cut or dropped
//! ```
//!
//! In ordinary texts a shingle stands in few places and all of this is linear. A text that repeats
//! itself has as many pairs of places as the square of the repeats. Then the pairs of the rarest
//! shingles are looked at, up to a limit, and of the others only the first with the first, the
//! second with the second, and so on. What is found is always true; what is found of texts beyond
//! the limit need not be the longest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::ops::Range;

use onionskin_core::rabin::Shingler;

/// Pairs of places that are looked at, besides four for each token, where nobody waits.
pub(super) const PAIRS: usize = 4 << 20;

/// Tokens that stand in both texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    /// The first token in one text.
    pub a: usize,
    /// The first token in the other.
    pub b: usize,
    /// Tokens.
    pub len: usize,
}

impl Run {
    pub fn in_a(&self) -> Range<usize> {
        self.a..self.a + self.len
    }

    pub fn in_b(&self) -> Range<usize> {
        self.b..self.b + self.len
    }
}

/// The runs of at least a shingle that both texts have, longest first (then by place in `a`, then
/// in `b`), no token in two of them; in order of `a`.
///
/// At most `limit` pairs of places are looked at.
pub(super) fn common_runs(a: &[u64], b: &[u64], shingler: &Shingler, limit: usize) -> Vec<Run> {
    if a.is_empty() || b.is_empty() {
        return Vec::new();
    }
    if a == b {
        // Also the only way in which texts shorter than a shingle share one.
        return vec![Run { a: 0, b: 0, len: a.len() }];
    }
    let w = shingler.w();
    if a.len() < w || b.len() < w {
        return Vec::new();
    }
    let places = pairs_of_places(a, b, shingler, limit);
    choose(&diagonal_runs(a, b, w, &places, limit), w)
}

/// Places of every shingle, by fingerprint.
fn places_by_shingle(tokens: &[u64], shingler: &Shingler) -> Vec<(u64, u32)> {
    let mut fingerprints = Vec::with_capacity(tokens.len());
    shingler.shingle_into(tokens, &mut fingerprints);
    let mut places: Vec<(u64, u32)> = fingerprints.into_iter().zip(0..).collect();
    places.sort_unstable();
    places
}

/// Pairs of places with the same shingle, as diagonal (`b` - `a`) and place in `a`, in order.
fn pairs_of_places(a: &[u64], b: &[u64], shingler: &Shingler, limit: usize) -> Vec<(i64, u32)> {
    let (by_a, by_b) = (places_by_shingle(a, shingler), places_by_shingle(b, shingler));
    let mut shared = Vec::new();
    let mut rest = by_b.as_slice();
    for group in by_a.chunk_by(|x, y| x.0 == y.0) {
        let fingerprint = group[0].0;
        rest = &rest[rest.partition_point(|other| other.0 < fingerprint)..];
        let n = rest.partition_point(|other| other.0 == fingerprint);
        if n > 0 {
            shared.push((group.len().saturating_mul(n), group, &rest[..n]));
        }
    }
    // Rare ones first, as they say the most.
    shared.sort_by_key(|(pairs, group, _)| (*pairs, group[0].1));
    let mut places = Vec::new();
    let mut push = |i: u32, j: u32| places.push((i64::from(j) - i64::from(i), i));
    let mut left = limit;
    for (pairs, in_a, in_b) in shared {
        if pairs <= left {
            left -= pairs;
            for (_, i) in in_a {
                in_b.iter().for_each(|(_, j)| push(*i, *j));
            }
        } else {
            in_a.iter().zip(in_b).for_each(|((_, i), (_, j))| push(*i, *j));
        }
    }
    places.sort_unstable();
    places
}

/// Maximal runs that begin in the pairs of places.
fn diagonal_runs(a: &[u64], b: &[u64], w: usize, places: &[(i64, u32)], limit: usize) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut last: Option<(i64, usize)> = None;
    // Only texts that repeat themselves need more steps than there are pairs.
    let mut steps = limit.saturating_mul(4);
    for &(diagonal, i) in places {
        let i = i as usize;
        let Some(j) = usize::try_from(i as i64 + diagonal).ok() else { continue };
        let seen = last.filter(|last| last.0 == diagonal).map_or(0, |last| last.1);
        if i + w <= seen || a.get(i..i + w) != b.get(j..j + w) {
            continue;
        }
        let before = a[seen.min(i)..i].iter().rev().zip(b[..j].iter().rev());
        let back = before.take(steps).take_while(|(x, y)| x == y).count();
        let after = a[i + w..].iter().zip(&b[j + w..]);
        let on = after.take(steps).take_while(|(x, y)| x == y).count();
        steps = steps.saturating_sub(back + on);
        let run = Run { a: i - back, b: j - back, len: back + w + on };
        last = Some((diagonal, run.a + run.len));
        runs.push(run);
    }
    runs
}

/// Longest first; what overlaps an earlier one is cut down to what is left of it.
fn choose(runs: &[Run], w: usize) -> Vec<Run> {
    let mut heap: BinaryHeap<(usize, Reverse<usize>, Reverse<usize>)> =
        runs.iter().map(|run| (run.len, Reverse(run.a), Reverse(run.b))).collect();
    let mut taken = Vec::new();
    let (mut taken_a, mut taken_b) = (Taken::default(), Taken::default());
    let mut cuts_left = runs.len().saturating_mul(8).saturating_add(1 << 16);
    while let Some((len, Reverse(a), Reverse(b))) = heap.pop() {
        let run = Run { a, b, len };
        let mut holes: Vec<Range<usize>> = Vec::new();
        taken_a.overlaps(run.in_a(), |range| holes.push(range.start - a..range.end - a));
        taken_b.overlaps(run.in_b(), |range| holes.push(range.start - b..range.end - b));
        if holes.is_empty() {
            taken_a.insert(run.in_a());
            taken_b.insert(run.in_b());
            taken.push(run);
            continue;
        }
        if cuts_left == 0 {
            continue;
        }
        cuts_left -= 1;
        holes.sort_by_key(|hole| hole.start);
        let mut from = 0;
        for hole in holes.into_iter().chain(std::iter::once(len..len)) {
            if hole.start >= from + w {
                heap.push((hole.start - from, Reverse(a + from), Reverse(b + from)));
            }
            from = from.max(hole.end);
        }
    }
    taken.sort_unstable();
    taken
}

/// Disjoint ranges: end by start.
#[derive(Default)]
struct Taken(BTreeMap<usize, usize>);

impl Taken {
    fn insert(&mut self, range: Range<usize>) {
        self.0.insert(range.start, range.end);
    }

    /// The parts of a range that are taken.
    fn overlaps(&self, range: Range<usize>, mut found: impl FnMut(Range<usize>)) {
        if let Some((_, &end)) = self.0.range(..range.start).next_back()
            && end > range.start
        {
            found(range.start..end.min(range.end));
        }
        for (&start, &end) in self.0.range(range.clone()) {
            found(start..end.min(range.end));
        }
    }
}

/// Which of the runs stand in the same order in both texts: of all ways to choose them, the one
/// with the most tokens.
pub(super) fn in_order(runs: &[Run]) -> Vec<bool> {
    // By place in `b`; runs are in order of `a`. The best chain that ends before a place is a
    // maximum over a prefix, which a Fenwick tree keeps.
    let mut by_b: Vec<usize> = (0..runs.len()).collect();
    by_b.sort_by_key(|&at| runs[at].b);
    let mut rank = vec![0; runs.len()];
    by_b.iter().enumerate().for_each(|(place, &at)| rank[at] = place + 1);
    let mut best: Vec<(usize, Option<usize>)> = vec![(0, None); runs.len() + 1];
    let mut before = vec![None; runs.len()];
    let mut end = (0, None);
    for (at, run) in runs.iter().enumerate() {
        let mut chain = (0, None);
        let mut i = rank[at] - 1;
        while i > 0 {
            if best[i].0 > chain.0 {
                chain = best[i];
            }
            i &= i - 1;
        }
        before[at] = chain.1;
        let whole = (chain.0 + run.len, Some(at));
        if whole.0 > end.0 {
            end = whole;
        }
        let mut i = rank[at];
        while i <= runs.len() {
            if whole.0 > best[i].0 {
                best[i] = whole;
            }
            i += i & i.wrapping_neg();
        }
    }
    let mut chosen = vec![false; runs.len()];
    let mut next = end.1;
    while let Some(at) = next {
        chosen[at] = true;
        next = before[at];
    }
    chosen
}

#[cfg(test)]
mod tests;
