//! Which ordinary document is a copy of which, without a list.
//!
//! The documents of a pool are numbered, and the numbers are laid out in classes: so many empty
//! ones, so many clusters of size 2, so many of size 3, then the unique rest. Class, cluster and
//! member of a number follow by arithmetic; a keyed permutation scatters the numbers over the
//! pages, and runs backwards to find the pages of a cluster. A pool of a billion documents takes as
//! much memory as one of ten.

use crate::{
    math,
    rng::Permutation,
    spec::{ClusterKind, ClusterSize, PoolSpec},
};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ClassKind {
    Empty,
    OneWord,
    Brief,
    Unique,
    Cluster(ClusterKind),
}

/// Documents `first..` in clusters of `size`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Class {
    pub(crate) kind: ClassKind,
    pub(crate) first: u64,
    pub(crate) n_clusters: u64,
    pub(crate) size: u32,
}

/// Where a document stands in its pool.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Membership {
    pub(crate) kind: ClassKind,
    /// The first document of the cluster.
    pub(crate) centre: u64,
    pub(crate) member: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) n_documents: u64,
    /// Added to a document's number to make it unique among all pools.
    pub(crate) number_base: u64,
    pub(crate) classes: Vec<Class>,
    shuffle: Permutation,
}

impl Pool {
    pub(crate) fn new(spec: &PoolSpec, n_documents: u64, number_base: u64, seed: u64) -> Pool {
        let mut pool = Pool {
            n_documents,
            number_base,
            classes: Vec::new(),
            shuffle: Permutation::new(n_documents.max(1), seed),
        };
        let mut used = 0;
        let share = |share: f64| (share * n_documents as f64).round() as u64;
        let singles = [
            (ClassKind::Empty, spec.empty),
            (ClassKind::OneWord, spec.one_word),
            (ClassKind::Brief, spec.brief),
        ];
        for (kind, part) in singles {
            pool.add(kind, share(part), 1, &mut used);
        }
        for cluster in &spec.clusters {
            let kind = ClassKind::Cluster(cluster.kind);
            let documents = share(cluster.share);
            match cluster.size {
                ClusterSize::Fixed(size) => {
                    pool.add(kind, documents / u64::from(size.max(1)), size, &mut used)
                }
                ClusterSize::One if documents >= 2 => pool.add(kind, 1, documents as u32, &mut used),
                ClusterSize::One => {}
                ClusterSize::Zipf { exponent, most } => {
                    for (size, n_clusters) in zipf_sizes(documents, exponent, most) {
                        pool.add(kind, n_clusters, size, &mut used);
                    }
                }
            }
        }
        let rest = n_documents - used;
        pool.add(ClassKind::Unique, rest, 1, &mut used);
        pool
    }

    fn add(&mut self, kind: ClassKind, n_clusters: u64, size: u32, used: &mut u64) {
        // Rounded shares may add up to a document too many; the last class gives way.
        let n_clusters = n_clusters.min((self.n_documents - *used) / u64::from(size.max(1)));
        if n_clusters > 0 {
            self.classes.push(Class { kind, first: *used, n_clusters, size });
            *used += n_clusters * u64::from(size);
        }
    }

    /// The document shown at a position of the pool's sites.
    pub(crate) fn document_at(&self, position: u64) -> u64 {
        self.shuffle.apply(position)
    }

    /// Where a document is shown.
    pub(crate) fn position_of(&self, document: u64) -> u64 {
        self.shuffle.invert(document)
    }

    pub(crate) fn membership(&self, document: u64) -> Membership {
        let class = self.classes.partition_point(|class| class.first <= document).saturating_sub(1);
        let Some(class) = self.classes.get(class) else {
            return Membership { kind: ClassKind::Unique, centre: document, member: 0 };
        };
        let member = (document - class.first) % u64::from(class.size);
        Membership { kind: class.kind, centre: document - member, member: member as u32 }
    }
}

/// How many clusters of each size share out `documents`, with numbers falling as `size^-exponent`.
/// The tail, where the law asks for less than one cluster of a size, gets single clusters further
/// and further apart.
fn zipf_sizes(documents: u64, exponent: f64, most: u32) -> Vec<(u32, u64)> {
    let weight = |size: u32| math::pow(f64::from(size), -exponent);
    let mass: f64 = (2..=most).map(|size| weight(size) * f64::from(size)).sum();
    let per_weight = if mass > 0.0 { documents as f64 / mass } else { 0.0 };
    let mut left = documents;
    let mut owed = 0.0;
    let mut sizes = Vec::new();
    for size in 2..=most {
        owed += per_weight * weight(size);
        let n_clusters = (owed as u64).min(left / u64::from(size));
        owed -= owed.floor();
        if n_clusters > 0 {
            sizes.push((size, n_clusters));
            left -= n_clusters * u64::from(size);
        }
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ClusterSpec;
    use proptest::prelude::*;

    fn zipf_pool(n: u64) -> Pool {
        let kind = ClusterKind::Exact;
        let size = ClusterSize::Zipf { exponent: 2.0, most: 100 };
        let clusters = vec![
            ClusterSpec { kind, share: 0.5, size },
            ClusterSpec { kind: ClusterKind::Chain, share: 0.1, size: ClusterSize::Fixed(7) },
        ];
        Pool::new(&PoolSpec { empty: 0.1, one_word: 0.05, brief: 0.01, clusters }, n, 0, 1)
    }

    #[test]
    fn classes_tile_the_pool() {
        for n in [0, 1, 2, 10, 1_000, 54_321] {
            let pool = zipf_pool(n);
            let mut next = 0;
            for class in &pool.classes {
                assert_eq!(class.first, next);
                next += class.n_clusters * u64::from(class.size);
            }
            assert_eq!(next, n);
        }
    }

    #[test]
    fn zipf_sizes_follow_the_law_and_fill_the_share() {
        let sizes = zipf_sizes(1_000_000, 2.0, 1_000);
        let documents: u64 = sizes.iter().map(|&(size, n)| u64::from(size) * n).sum();
        assert!((990_000..=1_000_000).contains(&documents), "{documents}");
        let count = |wanted| sizes.iter().find(|&&(size, _)| size == wanted).map_or(0, |&(_, n)| n) as f64;
        assert!((count(2) / count(4) - 4.0).abs() < 0.01);
        assert!((count(3) / count(9) - 9.0).abs() < 0.1);
    }

    proptest! {
        #[test]
        fn members_know_their_cluster(n in 1u64..3_000, document in any::<u64>()) {
            let pool = zipf_pool(n);
            let document = document % n;
            let membership = pool.membership(document);
            prop_assert_eq!(membership.centre + u64::from(membership.member), document);
            let class = pool.classes.iter()
                .find(|c| (c.first..c.first + c.n_clusters * u64::from(c.size)).contains(&document)).unwrap();
            prop_assert_eq!(class.kind, membership.kind);
            prop_assert_eq!((membership.centre - class.first) % u64::from(class.size), 0);
            prop_assert_eq!(pool.position_of(pool.document_at(document)), document);
        }
    }
}
