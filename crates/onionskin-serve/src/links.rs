//! Links between documents, both ways, in memory: four bytes each way a link, and as many a
//! document.

use onionskin_core::DocId;
use onionskin_search::SearchError;
use onionskin_store::{Atlas, MemoryBudget, TableName};

/// Where links lead, by document.
#[derive(Debug, Default)]
struct Direction {
    /// Where the links of a document begin; one more at the end.
    starts: Vec<u32>,
    ends: Vec<DocId>,
}

impl Direction {
    fn new(documents: usize, links: impl Iterator<Item = (DocId, DocId)> + Clone) -> Direction {
        let mut starts = vec![0u32; documents + 1];
        for (from, _) in links.clone() {
            starts[from.index() + 1] += 1;
        }
        for at in 0..documents {
            starts[at + 1] += starts[at];
        }
        let mut next = starts.clone();
        let mut ends = vec![DocId::MIN; starts[documents] as usize];
        for (from, to) in links {
            let place = &mut next[from.index()];
            ends[*place as usize] = to;
            *place += 1;
        }
        Direction { starts, ends }
    }

    fn of(&self, doc: DocId) -> &[DocId] {
        let at = doc.index();
        match (self.starts.get(at), self.starts.get(at + 1)) {
            (Some(start), Some(end)) => &self.ends[*start as usize..*end as usize],
            _ => &[],
        }
    }
}

/// The links of an atlas.
#[derive(Debug, Default)]
pub struct Links {
    out: Direction,
    back: Direction,
}

impl Links {
    /// Reads them; `None` when there are none, or more than the budget allows.
    pub fn read(atlas: &Atlas, budget: MemoryBudget) -> Result<Option<Links>, SearchError> {
        let (documents, links) = (atlas.rows(&TableName::Documents), atlas.rows(&TableName::Links));
        // The table itself, both directions, and where they begin.
        let needed = links.saturating_mul(16).saturating_add(documents.saturating_mul(16));
        if links == 0 || needed > budget.bytes() || links > u64::from(u32::MAX) {
            return Ok(None);
        }
        let mut pairs = Vec::with_capacity(links as usize);
        for row in atlas.links()? {
            let (from, to) = row?;
            if u64::from(from.max(to)) >= documents {
                return Err(SearchError::NoSuchDocument { table: "links", doc: from.max(to) });
            }
            pairs.push((from, to));
        }
        let out = Direction::new(documents as usize, pairs.iter().copied());
        let back = Direction::new(documents as usize, pairs.iter().map(|(from, to)| (*to, *from)));
        Ok(Some(Links { out, back }))
    }

    /// Where a document links to.
    pub fn out(&self, doc: DocId) -> &[DocId] {
        self.out.of(doc)
    }

    /// What links to a document.
    pub fn back(&self, doc: DocId) -> &[DocId] {
        self.back.of(doc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_found_both_ways() {
        let pairs = [(0, 2), (2, 0), (2, 1), (2, 3), (3, 1)].map(|(from, to)| (DocId(from), DocId(to)));
        let out = Direction::new(4, pairs.iter().copied());
        let back = Direction::new(4, pairs.iter().map(|(from, to)| (*to, *from)));
        let of = |direction: &Direction, doc| -> Vec<u32> {
            direction.of(DocId(doc)).iter().map(|doc| doc.get()).collect()
        };
        assert_eq!([0, 1, 2, 3].map(|doc| of(&out, doc)), [vec![2], vec![], vec![0, 1, 3], vec![1]]);
        assert_eq!([0, 1, 2].map(|doc| of(&back, doc)), [vec![2], vec![2, 3], vec![0]]);
        assert!(of(&out, 4).is_empty());
    }
}
