//! A set as its difference from another, for crowds of near-duplicates.
//!
//! In a crowd of a few hundred pages each set is compared with hundreds of others, nearly all of
//! what is compared is the same, and the sets do not stay in the cache. So a member of a crowd has,
//! beside its set, its difference from a base that the crowd has in common: the places of what it
//! lacks of the base, m, and what it has that the base has not, e. Of two such sets
//!
//! |A∩B| = |C| − |mA| − |mB| + |mA∩mB| + |eA∩eB|
//!
//! which is exact and takes as long as what differs: a tenth of the sets at a resemblance of 0.9.

use onionskin_core::FingerprintSet;

/// What a set lacks of a base, and what it has beside it.
#[derive(Debug)]
pub(super) struct Difference {
    /// Places in the base, in ascending order.
    missing: Box<[u32]>,
    extra: Box<[u64]>,
}

impl Difference {
    /// Of a set from a base; `None` if it is so large that nothing is gained by it.
    pub(super) fn of(set: &FingerprintSet, base: &[u64]) -> Option<Difference> {
        let members = set.members();
        let most = (members.len() + base.len()) / 4;
        let mut is_met = vec![false; members.len()];
        let (mut missing, mut next) = (Vec::new(), 0);
        for (at, chunk) in (0u32..).zip(base) {
            // Mostly in the same order.
            let follows = members.get(next) == Some(chunk);
            match if follows { Some(next) } else { set.place(*chunk) } {
                Some(place) => {
                    is_met[place] = true;
                    next = place + 1;
                }
                None if missing.len() == most => return None,
                None => missing.push(at),
            }
        }
        let extra = members.iter().zip(&is_met).filter(|(_, is_met)| !**is_met).map(|(chunk, _)| *chunk);
        let extra: Box<[u64]> = extra.collect();
        (missing.len() + extra.len() <= most).then(|| Difference { missing: missing.into(), extra })
    }

    /// What it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.missing) + size_of_val(&*self.extra)
    }

    /// How many members the set has.
    pub(super) fn size(&self, base: &[u64]) -> u32 {
        (base.len() - self.missing.len() + self.extra.len()) as u32
    }

    /// How many members the set and the base have in common.
    pub(super) fn shared_with_base(&self, base: &[u64]) -> u32 {
        (base.len() - self.missing.len()) as u32
    }
}

/// A set that others are compared with, by their differences from the same base.
#[derive(Default)]
pub(super) struct Held {
    /// A bit for each member of the base that it lacks.
    missing: Vec<u64>,
    extra: FingerprintSet,
    shared_with_base: u32,
}

impl Held {
    pub(super) fn hold(&mut self, difference: &Difference, base: &[u64]) {
        self.missing.clear();
        self.missing.resize(base.len().div_ceil(64), 0);
        for place in &difference.missing {
            self.missing[(place / 64) as usize] |= 1 << (place % 64);
        }
        self.extra.hold(&difference.extra);
        self.shared_with_base = difference.shared_with_base(base);
    }

    /// How many members it has in common with another set.
    pub(super) fn shared_with(&self, other: &Difference) -> u32 {
        let lacks = |place: &u32| self.missing[(place / 64) as usize] >> (place % 64) & 1;
        let both_lack: u64 = other.missing.iter().map(lacks).sum();
        let extra = self.extra.count_shared(&other.extra);
        self.shared_with_base - other.missing.len() as u32 + both_lack as u32 + extra
    }
}
