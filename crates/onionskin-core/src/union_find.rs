//! Disjoint sets of numbers: what is joined belongs together.

use std::marker::PhantomData;

use crate::id::Id;

/// Disjoint sets of the numbers or ids below a length. Four bytes per number.
///
/// The root of a set is its smallest member, so that the result does not depend on the order of
/// joining. Paths are halved on the way up, which keeps them short without ranks.
///
/// ```
/// let mut sets = onionskin_core::UnionFind::new(4);
/// assert!(sets.join(3, 1) && sets.join(1, 2) && !sets.join(2, 3));
/// assert_eq!([0, 1, 2, 3].map(|n| sets.root(n)), [0, 1, 1, 1]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnionFind<I = u32> {
    /// Never larger than the number itself; a root is its own parent.
    parent: Vec<u32>,
    of: PhantomData<I>,
}

impl<I: Id> UnionFind<I> {
    /// Every number below `len` in a set of its own.
    pub fn new(len: u32) -> UnionFind<I> {
        UnionFind { parent: (0..len).collect(), of: PhantomData }
    }

    /// How many numbers there are.
    pub fn len(&self) -> u32 {
        self.parent.len() as u32
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.parent.is_empty()
    }

    /// Makes sure that `number` is there, with all numbers below it.
    pub fn extend_to(&mut self, number: I) {
        self.parent.extend(self.len()..=number.number());
    }

    /// The smallest member of the set of a number.
    pub fn root(&mut self, number: I) -> I {
        I::of(self.root_of(number.number()))
    }

    fn root_of(&mut self, mut number: u32) -> u32 {
        while self.parent[number as usize] != number {
            let above = self.parent[self.parent[number as usize] as usize];
            self.parent[number as usize] = above;
            number = above;
        }
        number
    }

    /// Makes one set of two. Returns whether they were apart.
    pub fn join(&mut self, a: I, b: I) -> bool {
        let (a, b) = (self.root_of(a.number()), self.root_of(b.number()));
        self.parent[a.max(b) as usize] = a.min(b);
        a != b
    }

    /// The root of every number.
    pub fn into_roots(mut self) -> Vec<I> {
        for number in 0..self.parent.len() {
            // Parents are smaller, so that theirs are roots already.
            self.parent[number] = self.parent[self.parent[number] as usize];
        }
        self.parent.into_iter().map(I::of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Labels that are written over with every join.
    fn naive_roots(len: u32, joins: &[(u32, u32)]) -> Vec<u32> {
        let mut labels: Vec<u32> = (0..len).collect();
        for (a, b) in joins {
            let (a, b) = (labels[*a as usize], labels[*b as usize]);
            labels.iter_mut().filter(|label| **label == a.max(b)).for_each(|label| *label = a.min(b));
        }
        labels
    }

    proptest! {
        #[test]
        fn sets_are_what_was_joined(joins in prop::collection::vec((0u32..20, 0u32..20), 0..30)) {
            let mut sets = UnionFind::new(7);
            sets.extend_to(19);
            sets.extend_to(3);
            let mut before = naive_roots(20, &[]);
            for n in 0..joins.len() {
                let after = naive_roots(20, &joins[..=n]);
                prop_assert_eq!(sets.join(joins[n].0, joins[n].1), after != before);
                before = after;
            }
            prop_assert_eq!(sets.clone().into_roots(), before.clone());
            prop_assert_eq!((0..sets.len()).map(|n| sets.root(n)).collect::<Vec<_>>(), before);
        }
    }

    #[test]
    fn no_number_is_no_set() {
        assert!(UnionFind::<u32>::default().is_empty() && UnionFind::<u32>::new(0).into_roots().is_empty());
    }
}
