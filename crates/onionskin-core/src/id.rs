//! Small types that leave no room for mistakes.

use std::fmt;
use std::marker::PhantomData;
use std::num::{NonZeroU32, ParseIntError};
use std::ops::Range;
use std::str::FromStr;

/// A number that names one kind of thing. 32 bits hold four thousand million documents, which is
/// more than one machine scans. Tables on disk are wider, so that a later format may go past it.
pub trait Id: Copy + Ord + Send + Sync + 'static {
    /// The thing with this number.
    fn of(number: u32) -> Self;
    /// Its number.
    fn number(self) -> u32;
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub u32);

        impl $name {
            /// The smallest.
            pub const MIN: $name = $name(0);
            /// The largest.
            pub const MAX: $name = $name(u32::MAX);

            /// The thing at this place of a list.
            ///
            /// # Panics
            ///
            /// When the place is not below 2^32.
            #[inline]
            pub fn at(index: usize) -> $name {
                $name(u32::try_from(index).expect("ids are below 2^32"))
            }

            /// This one and all that follow.
            pub fn onward(self) -> impl Iterator<Item = $name> + Clone {
                (self.0..).map($name)
            }

            /// Those with these numbers.
            pub fn range(numbers: Range<u32>) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator + Clone {
                numbers.map($name)
            }

            /// The number.
            #[inline]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Its place in a list that has one entry per id.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl Id for $name {
            #[inline]
            fn of(number: u32) -> $name {
                $name(number)
            }

            #[inline]
            fn number(self) -> u32 {
                self.0
            }
        }

        impl From<u32> for $name {
            #[inline]
            fn from(number: u32) -> $name {
                $name(number)
            }
        }

        impl From<$name> for u32 {
            #[inline]
            fn from(id: $name) -> u32 {
                id.0
            }
        }

        impl From<$name> for u64 {
            #[inline]
            fn from(id: $name) -> u64 {
                u64::from(id.0)
            }
        }

        impl From<$name> for i64 {
            #[inline]
            fn from(id: $name) -> i64 {
                i64::from(id.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(number: &str) -> Result<$name, ParseIntError> {
                number.parse().map($name)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_u32(self.0)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                u32::deserialize(deserializer).map($name)
            }
        }
    )+};
}

ids!(
    /// A document of an atlas: dense, in input order.
    DocId,
    /// A site of an atlas: dense, in order of first appearance.
    SiteId,
    /// A cluster of similar documents: dense, in order of the smallest document.
    ClusterId,
    /// A replicated collection, `group` in tables: dense, in order of size.
    CollectionId,
    /// A replica of a collection: dense inside its collection.
    ReplicaId,
    /// A page position that the replicas of a collection share: dense inside its collection.
    SlotId,
    /// A rule that rewrites URLs: dense.
    RuleId,
);

/// An id or none in 32 bits, for long lists in memory. The largest number means none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Packed<I>(u32, PhantomData<I>);

/// The number that means none, here and nowhere else.
const NONE: u32 = u32::MAX;

impl<I: Id> Packed<I> {
    /// No id. Comes after every id.
    pub const NONE: Packed<I> = Packed(NONE, PhantomData);

    /// An id.
    ///
    /// # Panics
    ///
    /// In debug builds, for the largest number of 32 bits.
    #[inline]
    pub fn some(id: I) -> Packed<I> {
        debug_assert_ne!(id.number(), NONE, "the largest number means none");
        Packed(id.number(), PhantomData)
    }

    /// The id, if there is one.
    #[inline]
    pub fn get(self) -> Option<I> {
        (self.0 != NONE).then(|| I::of(self.0))
    }

    /// Whether there is an id.
    #[inline]
    pub fn is_some(self) -> bool {
        self.0 != NONE
    }

    /// Whether there is none.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == NONE
    }

    /// The 32 bits, for records of fixed width.
    #[inline]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// From [`Packed::bits`].
    #[inline]
    pub const fn from_bits(bits: u32) -> Packed<I> {
        Packed(bits, PhantomData)
    }
}

impl<I: Id> Default for Packed<I> {
    fn default() -> Packed<I> {
        Packed::NONE
    }
}

impl<I: Id> From<Option<I>> for Packed<I> {
    #[inline]
    fn from(id: Option<I>) -> Packed<I> {
        id.map_or(Packed::NONE, Packed::some)
    }
}

impl<I: Id> From<I> for Packed<I> {
    #[inline]
    fn from(id: I) -> Packed<I> {
        Packed::some(id)
    }
}

impl<I: Id + fmt::Debug> fmt::Debug for Packed<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// A place in a list that lives in memory only, where [`Packed`] needs a number of no kind.
impl Id for u32 {
    #[inline]
    fn of(number: u32) -> u32 {
        number
    }

    #[inline]
    fn number(self) -> u32 {
        self
    }
}

/// A Rabin fingerprint. Those of degree 32 leave the upper half zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub u64);

/// |A∩B| / |A∪B|, from 0 to 1 (Broder 2000, section 2).
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Resemblance(f64);

impl Resemblance {
    /// `None` outside 0 to 1 and for not-a-number.
    pub fn new(value: f64) -> Option<Resemblance> {
        (0.0..=1.0).contains(&value).then_some(Resemblance(value))
    }

    /// Of two sets of distinct values, each sorted ascending. Two empty sets resemble each other in
    /// nothing.
    pub fn of_sorted_sets(a: &[u64], b: &[u64]) -> Resemblance {
        debug_assert!(a.windows(2).all(|w| w[0] < w[1]) && b.windows(2).all(|w| w[0] < w[1]));
        let shared = shared_of_sorted_sets(a, b);
        let union = a.len() + b.len() - shared;
        Resemblance(if union == 0 { 0.0 } else { shared as f64 / union as f64 })
    }

    /// The number itself.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// How many values two sorted sets share.
pub(crate) fn shared_of_sorted_sets(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut shared) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        shared += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    shared
}

/// A number of shared chunks that is enough: *at least* this many. The papers say both that and
/// "more than".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Threshold(NonZeroU32);

impl Threshold {
    /// `None` for zero: then everything would be similar.
    pub fn new(at_least: u32) -> Option<Threshold> {
        NonZeroU32::new(at_least).map(Threshold)
    }

    /// The number itself.
    pub fn get(self) -> u32 {
        self.0.get()
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_numbers_of_one_kind() {
        assert_eq!((DocId(7).get(), DocId(7).index(), DocId::at(7)), (7, 7, DocId(7)));
        assert_eq!(format!("{:>3}|{}", DocId(7), SiteId(3)), "  7|3");
        assert_eq!("12".parse(), Ok(ClusterId(12)));
        assert!("4294967296".parse::<DocId>().is_err() && DocId(2) < DocId(10));
    }

    #[test]
    fn packed_ids_take_32_bits_and_none_comes_last() {
        assert_eq!(size_of::<Packed<SiteId>>(), 4);
        let mut packed: Vec<Packed<SiteId>> = vec![None.into(), SiteId(5).into(), Some(SiteId(0)).into()];
        packed.sort_unstable();
        let ids: Vec<Option<SiteId>> = packed.iter().map(|id| id.get()).collect();
        assert_eq!(ids, [Some(SiteId(0)), Some(SiteId(5)), None]);
        assert!(packed[2].is_none() && packed[0].is_some());
        assert_eq!(Packed::<SiteId>::from_bits(packed[1].bits()), packed[1]);
        assert_eq!(Packed::<SiteId>::default(), Packed::NONE);
        assert_eq!(format!("{:?}", packed[1]), "Some(SiteId(5))");
    }

    #[test]
    fn resemblance_of_small_sets() {
        assert_eq!(Resemblance::of_sorted_sets(&[1, 2, 3], &[2, 3, 4]).get(), 0.5);
        assert_eq!(Resemblance::of_sorted_sets(&[], &[]).get(), 0.0);
        assert_eq!(Resemblance::of_sorted_sets(&[5], &[5]).get(), 1.0);
        assert!(Resemblance::new(f64::NAN).is_none() && Resemblance::new(1.01).is_none());
    }
}
