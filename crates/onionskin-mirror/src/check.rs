//! The paper's definitions as checkers (Cho et al. 2000, definitions 3, 5, 7 and 8).
//!
//! They know nothing of how a group was found. Slots say which pages correspond, so that the
//! one-to-one mapping is given and every condition can be looked at page by page.

use std::collections::{BTreeMap, BTreeSet};

use onionskin_core::{DocId, SlotId};

use crate::graph::Graph;
use crate::grow::parents_agree;
use crate::model::{Group, Role};

/// What a group proved to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Pages have identical content and links are the same (definitions 3 and 7).
    Identical,
    /// Pages are similar and have similar parents (definitions 5 and 8).
    Similar,
    /// Pages that correspond are similar, but replicas differ in size or links: a group of the
    /// tolerant condition.
    Tolerant,
}

impl Verdict {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Identical => "identical",
            Verdict::Similar => "similar",
            Verdict::Tolerant => "tolerant",
        }
    }
}

/// Why a group is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// Nothing is replicated.
    #[error("it has {replicas} replicas and {slots} slots; two are the least")]
    TooSmall {
        /// Replicas.
        replicas: usize,
        /// Slots.
        slots: u32,
    },
    /// Definition 6.
    #[error("replica {replica} has {pages} pages, not {slots}")]
    Size {
        /// Which.
        replica: usize,
        /// Its pages.
        pages: usize,
        /// Slots of the group.
        slots: u32,
    },
    /// Two pages of one replica have a slot, or a page has two slots.
    #[error("the mapping of replica {replica} is not one to one at document {doc}")]
    NotOneToOne {
        /// Which.
        replica: usize,
        /// Where.
        doc: DocId,
    },
    /// A page that is in no trivial cluster of the graph.
    #[error("document {doc} is not among the pages")]
    UnknownPage {
        /// Which.
        doc: DocId,
    },
    /// Pages of a slot are not similar.
    #[error("documents {a} and {b} have the same slot and are not similar")]
    PagesDiffer {
        /// One.
        a: DocId,
        /// The other.
        b: DocId,
    },
    /// A page stands on another site than its replica.
    #[error("document {doc} is not on the site of replica {replica}")]
    OtherSite {
        /// Which.
        replica: usize,
        /// Where.
        doc: DocId,
    },
    /// Definition 5, second part.
    #[error("pages of slot {slot} have no similar parents")]
    LinksDiffer {
        /// Which.
        slot: SlotId,
    },
    /// A collection falls apart.
    #[error("replica {replica} is not connected")]
    NotConnected {
        /// Which.
        replica: usize,
    },
}

/// What to ask of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demands {
    /// Equal sizes, similar parents and connectedness: definition 8. Else pages that correspond
    /// need only be similar.
    pub definition_8: bool,
    /// Every page that is really there stands on the site of its replica.
    pub single_site: bool,
}

/// Proves that a group is what the paper calls a similar or identical cluster, or says why not. The
/// graph holds the pages of the group and all links between them; `content` gives equal numbers to
/// pages of equal content.
pub fn check(
    group: &Group,
    graph: &Graph,
    demands: Demands,
    content: impl Fn(DocId) -> Option<u64>,
) -> Result<Verdict, Violation> {
    if group.replicas.len() < 2 || group.slots < 2 {
        return Err(Violation::TooSmall { replicas: group.replicas.len(), slots: group.slots });
    }
    let replicas = mappings(group, graph, demands)?;
    similar_pages(group, graph)?;
    let equal_sizes = replicas.iter().all(|pages| pages.len() == group.slots as usize);
    let similar = if equal_sizes { similar_links(&replicas, graph) } else { Ok(()) };
    if demands.definition_8 {
        if let Some(replica) = replicas.iter().position(|pages| pages.len() != group.slots as usize) {
            return Err(Violation::Size { replica, pages: replicas[replica].len(), slots: group.slots });
        }
        similar.clone()?;
        for (number, pages) in replicas.iter().enumerate() {
            if !is_connected(pages, graph) {
                return Err(Violation::NotConnected { replica: number });
            }
        }
    }
    let all_copies = group.replicas.iter().all(|replica| {
        replica.members.iter().all(|member| matches!(member.role, Role::Copy | Role::Virtual))
    });
    Ok(if !equal_sizes || similar.is_err() || !all_copies {
        Verdict::Tolerant
    } else if is_identical(&replicas, graph, content) {
        Verdict::Identical
    } else {
        Verdict::Similar
    })
}

/// The page of every slot of every replica.
type Mapping = BTreeMap<SlotId, u32>;

fn mappings(group: &Group, graph: &Graph, demands: Demands) -> Result<Vec<Mapping>, Violation> {
    let mut mappings = Vec::new();
    for (number, replica) in group.replicas.iter().enumerate() {
        let mut mapping = Mapping::new();
        let mut seen = BTreeSet::new();
        for member in &replica.members {
            let page = graph.index_of(member.doc).ok_or(Violation::UnknownPage { doc: member.doc })?;
            if demands.single_site
                && member.role != Role::Virtual
                && graph.page(page).site.get() != replica.site
            {
                return Err(Violation::OtherSite { replica: number, doc: member.doc });
            }
            let again = !seen.insert(member.doc);
            let taken = member.role != Role::Alias && mapping.insert(member.slot, page).is_some();
            if again || taken || member.slot.get() >= group.slots {
                return Err(Violation::NotOneToOne { replica: number, doc: member.doc });
            }
        }
        mappings.push(mapping);
    }
    Ok(mappings)
}

fn similar_pages(group: &Group, graph: &Graph) -> Result<(), Violation> {
    let mut slot_page: BTreeMap<SlotId, DocId> = BTreeMap::new();
    let copies = group.replicas.iter().flat_map(|replica| &replica.members);
    for member in copies.filter(|member| matches!(member.role, Role::Copy | Role::Virtual)) {
        let first = *slot_page.entry(member.slot).or_insert(member.doc);
        let cluster = |doc| graph.index_of(doc).map(|index| graph.page(index).cluster);
        if cluster(first) != cluster(member.doc) {
            return Err(Violation::PagesDiffer { a: first, b: member.doc });
        }
    }
    Ok(())
}

/// The slots of a page's parents in its own collection.
fn parents(mapping: &Mapping, slot_of: &BTreeMap<u32, SlotId>, graph: &Graph, slot: SlotId) -> Vec<SlotId> {
    let Some(&page) = mapping.get(&slot) else { return Vec::new() };
    let mut parents: Vec<SlotId> =
        graph.into(page).iter().filter_map(|parent| slot_of.get(parent).copied()).collect();
    parents.sort_unstable();
    parents
}

fn slots_of_pages(mapping: &Mapping) -> BTreeMap<u32, SlotId> {
    mapping.iter().map(|(&slot, &page)| (page, slot)).collect()
}

fn similar_links(replicas: &[Mapping], graph: &Graph) -> Result<(), Violation> {
    let slots_of: Vec<BTreeMap<u32, SlotId>> = replicas.iter().map(slots_of_pages).collect();
    for &slot in replicas[0].keys() {
        let all: Vec<Vec<SlotId>> =
            replicas.iter().zip(&slots_of).map(|(mapping, of)| parents(mapping, of, graph, slot)).collect();
        if !parents_agree(&all) {
            return Err(Violation::LinksDiffer { slot });
        }
    }
    Ok(())
}

fn is_connected(mapping: &Mapping, graph: &Graph) -> bool {
    let pages: BTreeSet<u32> = mapping.values().copied().collect();
    let Some(&first) = pages.first() else { return true };
    let mut seen = BTreeSet::from([first]);
    let mut queue = vec![first];
    while let Some(page) = queue.pop() {
        for &neighbour in graph.out(page).iter().chain(graph.into(page)) {
            if pages.contains(&neighbour) && seen.insert(neighbour) {
                queue.push(neighbour);
            }
        }
    }
    seen.len() == pages.len()
}

fn is_identical(replicas: &[Mapping], graph: &Graph, content: impl Fn(DocId) -> Option<u64>) -> bool {
    let slots_of: Vec<BTreeMap<u32, SlotId>> = replicas.iter().map(slots_of_pages).collect();
    replicas[0].keys().all(|slot| {
        let same_content = |mapping: &Mapping| {
            let of = |mapping: &Mapping| mapping.get(slot).and_then(|&page| content(graph.page(page).doc));
            of(mapping).is_some() && of(mapping) == of(&replicas[0])
        };
        let same_links = |(mapping, of): (&Mapping, &BTreeMap<u32, SlotId>)| {
            parents(mapping, of, graph, *slot) == parents(&replicas[0], &slots_of[0], graph, *slot)
        };
        replicas.iter().all(same_content) && replicas.iter().zip(&slots_of).all(same_links)
    })
}
