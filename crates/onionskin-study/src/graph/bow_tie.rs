//! The bow tie: how the parts of a web hang together (Broder et al. 2000, "Graph structure in the
//! Web").
//!
//! ```text
//!            tubes
//!       ╭─────────────╮
//!   in ─┴──▶  core  ──┴─▶ out          the core: everything there reaches everything else
//!   │                     ▲
//!   ╰─▶ tendrils ─────────╯            and what is linked with none of them is disconnected
//! ```
//!
//! The naive way asks of every document what it reaches. Here the strongly connected components are
//! found by one walk in depth (Tarjan 1972, with the one number a document of Pearce 2016). They
//! come out with the last ones first, so that what is reached from where, and what reaches it, is
//! handed on from component to component in that order, and links are never needed the other way
//! round.

use onionskin_core::{DocId, UnionFind};

use super::{GraphError, LinkGraph};

/// The part of the bow tie that a document is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Part {
    /// The largest strongly connected component.
    Core,
    /// Reaches the core and is not reached from it.
    In,
    /// Reached from the core and does not reach it.
    Out,
    /// On a way from `In` to `Out` that does not touch the core.
    Tube,
    /// The rest of what hangs together with the core when links count both ways.
    Tendril,
    /// Everything else.
    Disconnected,
}

impl Part {
    /// All of them, in the order of the counts.
    pub const ALL: [Part; 6] =
        [Part::Core, Part::In, Part::Out, Part::Tube, Part::Tendril, Part::Disconnected];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Part::Core => "core",
            Part::In => "in",
            Part::Out => "out",
            Part::Tube => "tubes",
            Part::Tendril => "tendrils",
            Part::Disconnected => "disconnected",
        }
    }
}

/// The part of every document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BowTie {
    parts: Vec<Part>,
    counts: [u64; 6],
    strong_components: u64,
    largest_weak: u64,
}

impl BowTie {
    /// The part of a document; `Disconnected` beyond the end.
    pub fn part(&self, doc: DocId) -> Part {
        self.parts.get(doc.index()).copied().unwrap_or(Part::Disconnected)
    }

    /// The parts of all documents.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// How many documents a part has.
    pub fn count(&self, part: Part) -> u64 {
        self.counts[part as usize]
    }

    /// The documents of a part, ascending.
    pub fn documents(&self, part: Part) -> impl Iterator<Item = DocId> + '_ {
        DocId::MIN.onward().zip(&self.parts).filter(move |(_, is)| **is == part).map(|(doc, _)| doc)
    }

    /// Strongly connected components; a document that is in no circle is one.
    pub fn strong_components(&self) -> u64 {
        self.strong_components
    }

    /// Documents in the largest component when links count both ways.
    pub fn largest_weak(&self) -> u64 {
        self.largest_weak
    }
}

/// Finds the parts. Of several largest components the one with the smallest document is the core;
/// in a web without circles that is document 0 alone.
///
/// Beside the graph it takes at most 20 bytes per document while it walks (four of them always,
/// sixteen for a chain through all documents; vectors that have just grown have reserved up to
/// twice that) and 14 after. What is returned has one.
pub fn bow_tie(graph: &mut LinkGraph) -> Result<BowTie, GraphError> {
    let (component, strong) = strong_components(graph)?;
    let members = Members::new(&component, strong);
    let core = members.largest(&component);
    let mut flags = vec![0u8; strong as usize];
    if let Some(core) = core {
        flags[core as usize] = FROM_CORE | TO_CORE;
        // Links go to the same component or a later one, so that one turn from front to back hands
        // on what is reached ...
        for c in core..strong {
            if flags[c as usize] & FROM_CORE != 0 {
                members.for_each_link(graph, c, |target| flags[component[target] as usize] |= FROM_CORE)?;
            }
        }
        // ... and one from back to front what is reached in the end.
        for c in (0..strong).rev() {
            let mut seen = 0;
            members.for_each_link(graph, c, |target| seen |= flags[component[target] as usize])?;
            let to_out = if seen & FROM_CORE != 0 { TO_OUT } else { 0 };
            flags[c as usize] |= seen & (TO_CORE | TO_OUT) | to_out;
        }
        for c in 0..strong {
            let is_in = flags[c as usize] & (TO_CORE | FROM_CORE) == TO_CORE;
            if is_in || flags[c as usize] & FROM_IN != 0 {
                members.for_each_link(graph, c, |target| flags[component[target] as usize] |= FROM_IN)?;
            }
        }
    }
    drop(members);
    let mut parts: Vec<Part> = component.iter().map(|c| part_of(flags[*c as usize])).collect();
    drop((component, flags));
    let (hangs_with_core, largest_weak) = weak_component(graph, parts.iter().position(|p| *p == Part::Core))?;
    let mut counts = [0; 6];
    for (doc, part) in parts.iter_mut().enumerate() {
        if *part == Part::Tendril && !hangs_with_core(doc) {
            *part = Part::Disconnected;
        }
        counts[*part as usize] += 1;
    }
    Ok(BowTie { parts, counts, strong_components: u64::from(strong), largest_weak })
}

/// Reached from the core, or in it.
const FROM_CORE: u8 = 1;
/// Reaches the core, or is in it.
const TO_CORE: u8 = 2;
/// Reached from `In`.
const FROM_IN: u8 = 4;
/// Reaches the core or `Out`.
const TO_OUT: u8 = 8;

/// What flags say; whether a tendril hangs with the core they do not say.
fn part_of(flags: u8) -> Part {
    match (flags & FROM_CORE != 0, flags & TO_CORE != 0) {
        (true, true) => Part::Core,
        (false, true) => Part::In,
        (true, false) => Part::Out,
        (false, false) if flags & FROM_IN != 0 && flags & TO_OUT != 0 => Part::Tube,
        (false, false) => Part::Tendril,
    }
}

/// The strongly connected component of every document, and how many there are. Links go from a
/// component to itself or to one with a higher number.
///
/// While a document is open its number is the lowest place on the path that it is known to reach;
/// when its component is complete, it is that of the component. Components count down from the
/// number of documents, so that they are above every place that is still in use.
fn strong_components(graph: &mut LinkGraph) -> Result<(Vec<u32>, u32), GraphError> {
    /// A document on the path.
    struct Step {
        doc: DocId,
        /// The link to follow next.
        next: u32,
        /// Whether it is not known to reach anything before it.
        is_root: bool,
    }
    let nodes = graph.nodes();
    let mut number = vec![0u32; nodes as usize];
    let mut path: Vec<Step> = Vec::new();
    // Documents that were left and reach something that is still on the path.
    let mut waiting: Vec<DocId> = Vec::new();
    let mut component = nodes;
    let mut place = 1;
    for start in DocId::range(0..nodes) {
        if number[start.index()] != 0 {
            continue;
        }
        number[start.index()] = place;
        place += 1;
        path.push(Step { doc: start, next: 0, is_root: true });
        while let Some(step) = path.last_mut() {
            let doc = step.doc;
            let targets = graph.some_targets(doc, step.next)?;
            if !targets.is_empty() {
                let mut deeper = None;
                let mut lowest = number[doc.index()];
                for target in targets {
                    step.next += 1;
                    match number[target.index()] {
                        0 => {
                            deeper = Some(*target);
                            break;
                        }
                        reached if reached < lowest => {
                            lowest = reached;
                            step.is_root = false;
                        }
                        _ => {}
                    }
                }
                number[doc.index()] = lowest;
                if let Some(target) = deeper {
                    number[target.index()] = place;
                    place += 1;
                    path.push(Step { doc: target, next: 0, is_root: true });
                }
                continue;
            }
            if step.is_root {
                let own = number[doc.index()];
                while let Some(member) = waiting.pop_if(|member| number[member.index()] >= own) {
                    number[member.index()] = component;
                    place -= 1;
                }
                number[doc.index()] = component;
                place -= 1;
                component -= 1;
            } else {
                waiting.push(doc);
            }
            let reached = number[doc.index()];
            path.pop();
            if let Some(before) = path.last_mut()
                && reached < number[before.doc.index()]
            {
                number[before.doc.index()] = reached;
                before.is_root = false;
            }
        }
    }
    number.iter_mut().for_each(|number| *number -= component + 1);
    Ok((number, nodes - component))
}

/// The documents of every component: four bytes per document and four per component.
struct Members {
    docs: Vec<DocId>,
    /// Where each component ends in them.
    ends: Vec<u32>,
}

impl Members {
    fn new(component: &[u32], strong: u32) -> Members {
        let mut ends = vec![0u32; strong as usize];
        component.iter().for_each(|c| ends[*c as usize] += 1);
        let mut sum = 0;
        for end in &mut ends {
            // Where it begins, for now; filling moves it to where it ends.
            sum += std::mem::replace(end, sum);
        }
        let mut docs = vec![DocId::MIN; component.len()];
        for (doc, c) in DocId::MIN.onward().zip(component) {
            let place = &mut ends[*c as usize];
            docs[*place as usize] = doc;
            *place += 1;
        }
        Members { docs, ends }
    }

    fn of(&self, c: u32) -> &[DocId] {
        let start = if c == 0 { 0 } else { self.ends[c as usize - 1] };
        &self.docs[start as usize..self.ends[c as usize] as usize]
    }

    /// The largest component; of several, the one with the smallest document.
    fn largest(&self, component: &[u32]) -> Option<u32> {
        let mut best = None;
        for c in component {
            let size = self.of(*c).len();
            if best.is_none_or(|(most, _)| size > most) {
                best = Some((size, *c));
            }
        }
        best.map(|(_, c)| c)
    }

    fn for_each_link(
        &self,
        graph: &mut LinkGraph,
        c: u32,
        mut see: impl FnMut(usize),
    ) -> Result<(), GraphError> {
        for doc in self.of(c) {
            graph.targets(*doc)?.iter().for_each(|target| see(target.index()));
        }
        Ok(())
    }
}

/// Which documents hang together with one when links count both ways, and how many do in the
/// largest such component.
fn weak_component(
    graph: &mut LinkGraph,
    with: Option<usize>,
) -> Result<(impl Fn(usize) -> bool + use<>, u64), GraphError> {
    let nodes = graph.nodes();
    let mut sets = UnionFind::new(nodes);
    for doc in DocId::range(0..nodes) {
        for target in graph.targets(doc)? {
            sets.join(doc, *target);
        }
    }
    let roots = sets.into_roots();
    let mut sizes = vec![0u32; nodes as usize];
    for root in &roots {
        sizes[root.index()] += 1;
    }
    let largest = sizes.into_iter().max().unwrap_or(0);
    let wanted = with.map(|doc| roots[doc]);
    Ok((move |doc: usize| Some(roots[doc]) == wanted, u64::from(largest)))
}
