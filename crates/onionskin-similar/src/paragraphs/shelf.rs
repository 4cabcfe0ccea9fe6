//! One part of the collection in memory.

use onionskin_core::{DocId, FingerprintTable, Packed};

/// A document on the shelf.
#[derive(Debug)]
pub(super) struct Shelved {
    /// None as long as nobody knows whom it stands for.
    pub doc: Packed<DocId>,
    pub size: u32,
    start: usize,
}

/// One document that has a shingle in front.
#[derive(Clone, Copy, Debug)]
pub(super) struct Posting {
    /// Which document of the shelf.
    pub slot: u32,
    /// How many of its shingles do not come before this one.
    pub left: u32,
    /// The next posting of the shingle, counted from 1; 0 at the end.
    next: u32,
}

/// One part of the collection in memory: the paper's hash table of shingles, and the documents
/// themselves.
#[derive(Debug)]
pub(super) struct Shelf {
    /// From a shingle to its last posting, counted from 1.
    heads: FingerprintTable,
    postings: Vec<Posting>,
    pub documents: Vec<Shelved>,
    /// Sorted shingles of each document, end to end.
    shingles: Vec<u64>,
    /// Bytes in use that are enough. Vectors that double may hold twice as much.
    budget: usize,
}

impl Shelf {
    pub fn new(budget: usize) -> Shelf {
        let (postings, documents, shingles) = (Vec::new(), Vec::new(), Vec::new());
        Shelf { heads: FingerprintTable::of_bytes(0), postings, documents, shingles, budget }
    }

    pub fn bytes(&self) -> usize {
        self.heads.bytes()
            + self.postings.capacity() * size_of::<Posting>()
            + self.documents.capacity() * size_of::<Shelved>()
            + self.shingles.capacity() * size_of::<u64>()
    }

    /// Whether the next document has to wait for another step. Never for an empty shelf, else
    /// nothing would ever end.
    pub fn is_full(&self) -> bool {
        let used = self.heads.bytes()
            + self.postings.len() * size_of::<Posting>()
            + self.documents.len() * size_of::<Shelved>()
            + self.shingles.len() * size_of::<u64>();
        !self.documents.is_empty() && (used >= self.budget || self.postings.len() >= u32::MAX as usize / 2)
    }

    pub fn put(&mut self, doc: Option<DocId>, shingles: &[u64], prefix: &[(u64, u32)]) {
        let slot = self.documents.len() as u32;
        self.documents.push(Shelved {
            doc: doc.into(),
            size: shingles.len() as u32,
            start: self.shingles.len(),
        });
        self.shingles.extend_from_slice(shingles);
        for (shingle, left) in prefix {
            if self.heads.len() == self.heads.capacity() {
                self.heads.grow();
            }
            let next = self.heads.insert(*shingle, self.postings.len() as u32 + 1);
            self.postings.push(Posting { slot, left: *left, next });
        }
    }

    /// Documents that have a shingle in front, latest first.
    pub fn having(&self, shingle: u64) -> impl Iterator<Item = &Posting> {
        let at = |number: u32| (number > 0).then(|| &self.postings[number as usize - 1]);
        std::iter::successors(at(self.heads.get(shingle)), move |posting| at(posting.next))
    }

    /// The slot of the document that has the very same shingles.
    pub fn equal_to(&self, hash: u64, sorted: &[u64]) -> Option<u32> {
        let slots = self.having(hash).map(|posting| posting.slot);
        slots.into_iter().find(|slot| self.shingles_of(&self.documents[*slot as usize]) == sorted)
    }

    pub fn shingles_of(&self, document: &Shelved) -> &[u64] {
        &self.shingles[document.start..][..document.size as usize]
    }
}
