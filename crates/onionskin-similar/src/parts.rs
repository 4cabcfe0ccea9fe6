//! Pieces of the search for copies: candidates, verification, clusters.

use std::collections::{HashMap, HashSet};

use crate::{Bound, SharedPair, SimilarError};
use onionskin_core::{DocId, FeatureFilter, Recipe, UnionFind};

use crate::{FilterChoice, Search};

/// The filter that a search on a machine would take out of what a scan under this recipe keeps.
///
/// # Errors
///
/// When the recipe keeps neither sketches nor features that it could be made of.
pub fn filter_for(
    recipe: &Recipe,
    threshold: f64,
    wanted: Option<FeatureFilter>,
) -> Result<FilterChoice, SimilarError> {
    let kept = (recipe.keeps_sketches(), recipe.scheme().filter().is_some());
    FilterChoice::out_of(recipe, kept, threshold, wanted)
}

/// The levels that a search notes for reports, its own last.
pub fn levels(search: &Search, chunking: Option<&str>) -> Vec<String> {
    crate::levels::all(search, chunking).iter().map(|level| level.as_str().to_owned()).collect()
}

/// Counts what two sets share; buffers are kept between calls.
#[derive(Debug, Default)]
pub struct Counter {
    a: Vec<u64>,
    b: Vec<u64>,
}

impl Counter {
    /// What two documents share of their chunks, each chunk once. The numbers of the documents are
    /// 0 and 1.
    ///
    /// ```
    /// use onionskin_similar::parts::Counter;
    /// let found = Counter::default().count([1, 2, 2, 3], [2, 3, 4, 4]);
    /// assert_eq!((found.shared, found.size_a, found.size_b), (2, 3, 3));
    /// assert_eq!(found.resemblance(), 0.5);
    /// ```
    pub fn count(
        &mut self,
        a: impl IntoIterator<Item = u64>,
        b: impl IntoIterator<Item = u64>,
    ) -> SharedPair {
        let size_a = fill(&mut self.a, a);
        let size_b = fill(&mut self.b, b);
        let (mut at, mut shared) = (0, 0);
        for chunk in &self.a {
            while self.b.get(at).is_some_and(|other| other < chunk) {
                at += 1;
            }
            shared += u32::from(self.b.get(at) == Some(chunk));
        }
        SharedPair { a: DocId(0), b: DocId(1), shared, size_a, size_b }
    }
}

fn fill(set: &mut Vec<u64>, chunks: impl IntoIterator<Item = u64>) -> u32 {
    set.clear();
    set.extend(chunks);
    set.sort_unstable();
    set.dedup();
    u32::try_from(set.len()).unwrap_or(u32::MAX)
}

/// Where a document must be met by every similar one: of the chunks that others have, as (how many
/// have it, chunk), the rarest. Each comes with how many of the document's chunks do not come
/// before it. `size` counts all its chunks, those that nobody else has included, which come before
/// all others.
///
/// ```
/// use onionskin_similar::parts::prefix;
/// use onionskin_core::Threshold;
/// use onionskin_similar::Bound;
/// // Four chunks of which one is its own: to share three, others must have one of the two rarest.
/// let bound = Bound::Overlap(Threshold::new(3).unwrap());
/// assert_eq!(prefix(bound, 4, &mut [(9, 30), (2, 10), (5, 20)]), [(10, 3)]);
/// ```
pub fn prefix(bound: Bound, size: u32, shared: &mut [(u64, u64)]) -> Vec<(u64, u32)> {
    let alone = size.saturating_sub(shared.len() as u32);
    let keep = bound.prefix_len(size).saturating_sub(alone) as usize;
    shared.sort_unstable();
    (alone..).zip(shared.iter()).take(keep).map(|(at, (_, chunk))| (*chunk, size - at)).collect()
}

/// A text in the order in which it is wanted as a centre: how little it is wanted, and its number.
pub type Wish = (i64, i64);

/// Centred clusters out of similar pairs: whoever comes first takes those who are left. Gives every
/// text that is in a cluster with its centre, in ascending order. Pairs of one component must come
/// together; of several, in any order.
pub fn centred(pairs: impl IntoIterator<Item = (Wish, Wish)>) -> Vec<(i64, i64)> {
    let oriented = pairs.into_iter().map(|(a, b)| if a < b { (a, b) } else { (b, a) });
    let mut pairs: Vec<(Wish, Wish)> = oriented.collect();
    pairs.sort_unstable();
    pairs.dedup();
    let mut taken: HashSet<i64> = HashSet::new();
    let mut groups = Vec::new();
    let mut centre = None;
    for ((_, first), (_, second)) in pairs {
        if taken.contains(&first) || taken.contains(&second) {
            continue;
        }
        taken.insert(second);
        if centre != Some(first) {
            groups.push((first, first));
            centre = Some(first);
        }
        groups.push((second, first));
    }
    groups.sort_unstable();
    groups
}

/// Connected components: every node with the smallest of its component, in ascending order.
pub fn components(edges: impl IntoIterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut index: HashMap<i64, u32> = HashMap::new();
    let mut nodes: Vec<i64> = Vec::new();
    let mut number = |node: i64| {
        *index.entry(node).or_insert_with(|| {
            nodes.push(node);
            nodes.len() as u32 - 1
        })
    };
    let united: Vec<(u32, u32)> = edges.into_iter().map(|(a, b)| (number(a), number(b))).collect();
    // The smallest node of a component must be its root.
    let mut order: Vec<u32> = (0..nodes.len() as u32).collect();
    order.sort_unstable_by_key(|at| nodes[*at as usize]);
    let mut rank = vec![0u32; nodes.len()];
    for (place, at) in (0..).zip(&order) {
        rank[*at as usize] = place;
    }
    let mut sets = UnionFind::new(nodes.len() as u32);
    for (a, b) in united {
        sets.join(rank[a as usize], rank[b as usize]);
    }
    (order.iter().zip(sets.into_roots()))
        .map(|(at, root)| (nodes[*at as usize], nodes[order[root as usize] as usize]))
        .collect()
}

#[cfg(test)]
mod tests;
