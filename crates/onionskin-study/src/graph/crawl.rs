//! What a crawler reaches that follows links.

use onionskin_core::DocId;
use onionskin_similar::Bits;

use super::{GraphError, LinkGraph};

/// What was reached from where a crawl began.
#[derive(Clone, Debug)]
pub struct Crawl {
    reached: Bits,
    by_depth: Vec<u64>,
}

impl Crawl {
    /// Whether a document was reached.
    pub fn reached(&self, doc: DocId) -> bool {
        self.reached.get(doc)
    }

    /// One bit a document.
    pub fn reached_bits(&self) -> &Bits {
        &self.reached
    }

    /// How many documents are so many links away from where it began, and not fewer; those where it
    /// began come first.
    pub fn by_depth(&self) -> &[u64] {
        &self.by_depth
    }

    /// How many documents were reached.
    pub fn documents(&self) -> u64 {
        self.by_depth.iter().sum()
    }
}

/// Follows all links from the seeds on, those that are near first (Pereira et al. 2006, section
/// 4.1). Seeds that come twice count once.
///
/// Takes one bit a document and, at worst, eight bytes for each document that is reached.
pub fn crawl(graph: &mut LinkGraph, seeds: impl IntoIterator<Item = DocId>) -> Result<Crawl, GraphError> {
    let nodes = graph.nodes();
    let mut reached = Bits::new(u64::from(nodes));
    let mut here = Vec::new();
    for doc in seeds {
        if doc.get() >= nodes {
            return Err(GraphError::NoSuchDocument { doc, nodes });
        }
        if !reached.get(doc) {
            reached.set(doc);
            here.push(doc);
        }
    }
    let mut by_depth = Vec::new();
    let mut next = Vec::new();
    while !here.is_empty() {
        by_depth.push(here.len() as u64);
        // In order, so that links are read from front to back.
        here.sort_unstable();
        for doc in here.drain(..) {
            for target in graph.targets(doc)? {
                if !reached.get(*target) {
                    reached.set(*target);
                    next.push(*target);
                }
            }
        }
        std::mem::swap(&mut here, &mut next);
    }
    Ok(Crawl { reached, by_depth })
}
