//! What is found: groups of replicas, their pages slot by slot.

use serde::{Deserialize, Serialize};
use std::str::FromStr;

use onionskin_core::{DocId, SiteId, SlotId, spelled};
pub use onionskin_store::table::Role;

use crate::principal::Chosen;

/// When trivial clusters grow together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Merge {
    /// a = s = d = b: every copy has every page (Cho et al. 2000, section 3.1).
    Strict,
    /// a = s ≥ d = b: what some copies only link to is a virtual page of theirs (section 4).
    Extended,
    /// Most copies have most pages: pages may be missing, added and changed, and gaps are bridged
    /// (section 6 asks for it).
    #[default]
    Tolerant,
}

/// Not a merge condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown merge condition {name:?}; known are {known}", known = Merge::KNOWN)]
pub struct UnknownMerge {
    /// What was given.
    pub name: String,
}

spelled!(Merge, as_str: Strict => "strict", Extended => "extended", Tolerant => "tolerant");

impl Merge {
    /// Whether two clusters of sizes `a` and `b` merge, of which `s` pages link to `d` pages.
    ///
    /// ```
    /// use onionskin_mirror::Merge;
    /// assert!(Merge::Strict.holds(3, 3, 3, 3) && Merge::Extended.holds(3, 3, 3, 3));
    /// assert!(!Merge::Strict.holds(2, 1, 2, 1) && Merge::Extended.holds(2, 1, 2, 1));
    /// assert!(!Merge::Extended.holds(8, 8, 7, 7) && Merge::Tolerant.holds(8, 8, 7, 7));
    /// ```
    pub fn holds(self, a: u32, b: u32, s: u32, d: u32) -> bool {
        match self {
            Merge::Strict => a == s && s == d && d == b,
            Merge::Extended => a == s && s >= d && d == b,
            // More than half of either, and two at least: one copy is no evidence.
            Merge::Tolerant => {
                s.min(d) >= 2 && u64::from(s) * 2 > u64::from(a) && u64::from(d) * 2 > u64::from(b)
            }
        }
    }
}

impl FromStr for Merge {
    type Err = UnknownMerge;

    fn from_str(name: &str) -> Result<Merge, UnknownMerge> {
        Merge::find(name).ok_or_else(|| UnknownMerge { name: name.to_owned() })
    }
}

/// A page of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// Which page of the collection it is.
    pub slot: SlotId,
    /// The document.
    pub doc: DocId,
    /// What it is there.
    pub role: Role,
}

/// One copy of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The site that it stands on, if its pages have one.
    pub site: Option<SiteId>,
    /// Its pages, by slot; one of every slot at most, aliases apart.
    pub members: Vec<Member>,
}

impl Replica {
    /// The page that has a slot.
    pub fn page(&self, slot: SlotId) -> Option<Member> {
        let start = self.members.partition_point(|member| member.slot < slot);
        let here = self.members[start..].iter().take_while(|member| member.slot == slot);
        here.copied().find(|member| member.role != Role::Alias)
    }

    /// Pages that stand on its own site.
    pub fn own_pages(&self) -> impl Iterator<Item = Member> {
        self.members.iter().copied().filter(|member| member.role != Role::Virtual)
    }
}

/// Copies of one collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Slots are below this.
    pub slots: u32,
    /// The slot of the natural root.
    pub root: SlotId,
    /// The replica that the others are measured by.
    pub principal: usize,
    /// Why it is that one.
    pub chosen: Chosen,
    /// All replicas, in order of their first document.
    pub replicas: Vec<Replica>,
}

impl Group {
    /// The page to begin with in a replica: that of the root slot, else its first.
    pub fn root_of(&self, replica: usize) -> Option<DocId> {
        let replica = self.replicas.get(replica)?;
        let at_root = replica.page(self.root).or_else(|| replica.members.first().copied());
        at_root.map(|member| member.doc)
    }
}
