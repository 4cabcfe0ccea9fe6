//! The pages and links of one component, in memory.
//!
//! Components are worked on one after the other, so this is small against the web: thirty bytes a
//! page and eight a link.

use onionskin_core::{DocId, Packed, SiteId};

/// A page as collections see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// The document.
    pub doc: DocId,
    /// Its trivial cluster, by the smallest document: pages of one are similar.
    pub cluster: DocId,
    /// Its site, if it has one.
    pub site: Packed<SiteId>,
    /// How many other sites link to it.
    pub linked_from: u32,
}

/// Pages, in ascending order of document, and the links between them.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    pages: Vec<Page>,
    out: Adjacency,
    into: Adjacency,
}

/// Neighbours of every page, ascending, no repeats.
#[derive(Clone, Debug, Default)]
struct Adjacency {
    starts: Vec<u32>,
    ends: Vec<u32>,
}

impl Adjacency {
    /// From pairs that are sorted and have no repeats.
    fn new(n_pages: usize, links: &[(u32, u32)]) -> Adjacency {
        let mut starts = vec![0; n_pages + 1];
        for &(from, _) in links {
            starts[from as usize + 1] += 1;
        }
        for page in 0..n_pages {
            starts[page + 1] += starts[page];
        }
        Adjacency { starts, ends: links.iter().map(|&(_, to)| to).collect() }
    }

    fn of(&self, page: u32) -> &[u32] {
        let page = page as usize;
        &self.ends[self.starts[page] as usize..self.starts[page + 1] as usize]
    }
}

impl Graph {
    /// Links are pairs of indices into `pages`; those from a page to itself and repeats are
    /// dropped.
    ///
    /// # Panics
    ///
    /// When pages are not in ascending order of document, or a link has no page.
    pub fn new(pages: Vec<Page>, mut links: Vec<(u32, u32)>) -> Graph {
        assert!(pages.is_sorted_by(|a, b| a.doc < b.doc), "pages are in order");
        links.retain(|(from, to)| from != to);
        links.sort_unstable();
        links.dedup();
        let out = Adjacency::new(pages.len(), &links);
        for (from, to) in &mut links {
            std::mem::swap(from, to);
        }
        links.sort_unstable();
        let into = Adjacency::new(pages.len(), &links);
        Graph { pages, out, into }
    }

    /// Its pages.
    pub fn pages(&self) -> &[Page] {
        &self.pages
    }

    /// A page by index.
    pub fn page(&self, index: u32) -> Page {
        self.pages[index as usize]
    }

    /// The index of a document.
    pub fn index_of(&self, doc: DocId) -> Option<u32> {
        self.pages.binary_search_by_key(&doc, |page| page.doc).ok().map(|index| index as u32)
    }

    /// Pages that a page links to.
    pub fn out(&self, page: u32) -> &[u32] {
        self.out.of(page)
    }

    /// Pages that link to a page.
    pub fn into(&self, page: u32) -> &[u32] {
        self.into.of(page)
    }

    /// Whether one page links to another.
    pub fn links(&self, from: u32, to: u32) -> bool {
        self.out(from).binary_search(&to).is_ok()
    }
}
