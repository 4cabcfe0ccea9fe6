//! The link structure of a collection as a picture: columns by distance from the root.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use onionskin_core::{CollectionId, DocId, ReplicaId, SlotId};
use onionskin_search::{Place, Role, SearchError};

use crate::library::Library;
use crate::view::DocLine;

/// More pages than this are a smudge.
const MOST_NODES: usize = 80;
/// More lines than this hide the pages.
const MOST_EDGES: usize = 400;
const COLUMN: f64 = 130.0;
const ROW: f64 = 26.0;
const MARGIN: f64 = 24.0;

/// A page.
pub(crate) struct Node {
    pub doc: DocId,
    pub name: String,
    pub what: String,
    pub class: &'static str,
    pub x: f64,
    pub y: f64,
    pub radius: f64,
}

/// Pages and links of one replica.
pub(crate) struct Picture {
    pub width: f64,
    pub height: f64,
    pub nodes: Vec<Node>,
    /// Paths.
    pub edges: Vec<String>,
    pub words: String,
}

impl Picture {
    /// Of a replica; `None` when links are not at hand, or it has no pages.
    pub(crate) fn of(
        library: &Library,
        group: CollectionId,
        replica: ReplicaId,
    ) -> Result<Option<Picture>, SearchError> {
        let Some(links) = library.links() else { return Ok(None) };
        let copies = library.copies();
        let pages = copies.pages(group);
        let is_own = |page: &&Place| !matches!(page.role, Role::Alias | Role::Virtual);
        let own: BTreeMap<DocId, &Place> = pages
            .iter()
            .filter(|page| page.replica == replica)
            .filter(is_own)
            .map(|page| (page.doc, page))
            .collect();
        let root = copies.replicas(group).iter().find(|row| row.replica == replica).map(|row| row.root_doc);
        let Some(root) = root.filter(|root| own.contains_key(root)).or(own.keys().next().copied()) else {
            return Ok(None);
        };
        let mut standing: HashMap<SlotId, u64> = HashMap::new();
        for page in pages.iter().filter(is_own) {
            *standing.entry(page.slot).or_default() += 1;
        }
        let columns = columns(root, &own, |doc| links.out(doc));
        let shown: usize = columns.iter().map(Vec::len).sum();
        let tallest = columns.iter().map(Vec::len).max().unwrap_or(1);
        let height = 2.0 * MARGIN + ROW * tallest as f64;
        let replicas = copies.group(group).map_or(1, |row| row.replicas);
        let mut nodes = Vec::new();
        let mut at: HashMap<DocId, (f64, f64)> = HashMap::new();
        for (column, docs) in columns.iter().enumerate() {
            let top = (height - ROW * (docs.len() as f64 - 1.0)) / 2.0;
            for (row, doc) in docs.iter().enumerate() {
                let (x, y) = (MARGIN + COLUMN * column as f64, top + ROW * row as f64);
                at.insert(*doc, (x, y));
                let n = own.get(doc).and_then(|page| standing.get(&page.slot)).copied().unwrap_or(1);
                nodes.push(Node {
                    doc: *doc,
                    name: DocLine::of(library.index(), *doc)?.name,
                    what: format!("in {n} of {replicas} replicas"),
                    class: if n >= replicas { "everywhere" } else { "somewhere" },
                    x,
                    y,
                    radius: if *doc == root { 9.0 } else { 6.0 },
                });
            }
        }
        let mut all: Vec<(DocId, DocId)> = Vec::new();
        for node in &nodes {
            let inside = links.out(node.doc).iter().filter(|to| at.contains_key(to) && **to != node.doc);
            all.extend(inside.map(|to| (node.doc, *to)));
        }
        let edges = all.iter().take(MOST_EDGES).map(|(from, to)| edge(at[from], at[to])).collect();
        let mut words = format!("{} pages and {} links between them.", shown, all.len());
        if shown < own.len() {
            words = format!("The first {shown} of {} pages and {} links between them.", own.len(), all.len());
        }
        if all.len() > MOST_EDGES {
            words.push_str(&format!(" {MOST_EDGES} of the links are drawn."));
        }
        let width = 2.0 * MARGIN + COLUMN * (columns.len() as f64 - 1.0);
        Ok(Some(Picture { width: width.max(300.0), height, nodes, edges, words }))
    }
}

/// Pages by their distance from the root, breadth first; those that are not reached are in a column
/// of their own at the end.
fn columns<'a>(
    root: DocId,
    own: &BTreeMap<DocId, &Place>,
    out: impl Fn(DocId) -> &'a [DocId],
) -> Vec<Vec<DocId>> {
    let mut columns: Vec<Vec<DocId>> = Vec::new();
    let mut seen: BTreeSet<DocId> = BTreeSet::from([root]);
    let mut queue = VecDeque::from([(root, 0)]);
    let mut n = 0;
    while let Some((doc, depth)) = queue.pop_front() {
        if n == MOST_NODES {
            return columns;
        }
        n += 1;
        columns.resize_with(columns.len().max(depth + 1), Vec::new);
        columns[depth].push(doc);
        for to in out(doc) {
            if own.contains_key(to) && seen.insert(*to) {
                queue.push_back((*to, depth + 1));
            }
        }
    }
    let rest: Vec<DocId> =
        own.keys().filter(|doc| !seen.contains(doc)).copied().take(MOST_NODES - n).collect();
    if !rest.is_empty() {
        columns.push(rest);
    }
    columns
}

/// A line that bends, so that links within a column are seen, too.
fn edge(from: (f64, f64), to: (f64, f64)) -> String {
    let bend = if from.0 == to.0 { 34.0 } else { 0.0 };
    let middle = ((from.0 + to.0) / 2.0 + bend, (from.1 + to.1) / 2.0);
    format!("M{:.0} {:.0}Q{:.0} {:.0} {:.0} {:.0}", from.0, from.1, middle.0, middle.1, to.0, to.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_stand_by_their_distance_from_the_root() {
        let (group, replica, slot) = (CollectionId(0), ReplicaId(0), SlotId(0));
        let place = Place { group, replica, slot, doc: DocId(0), role: Role::Copy };
        let docs = |docs: &[u32]| docs.iter().copied().map(DocId).collect::<Vec<_>>();
        let own: BTreeMap<DocId, &Place> = DocId::range(0..6).map(|doc| (doc, &place)).collect();
        let out = [&[1, 2, 9][..], &[3, 0], &[3], &[0], &[], &[4]].map(docs);
        let expected = [&[0][..], &[1, 2], &[3], &[4, 5]].map(docs);
        assert_eq!(columns(DocId(0), &own, |doc| &out[doc.index()]), expected);
        let many: BTreeMap<DocId, &Place> = DocId::range(0..500).map(|doc| (doc, &place)).collect();
        let next: Vec<Vec<DocId>> = (0..500).map(|doc| docs(&[doc + 1, doc + 2])).collect();
        let shown = columns(DocId(0), &many, |doc| &next[doc.index()]);
        assert_eq!(shown.iter().map(Vec::len).sum::<usize>(), MOST_NODES);
    }
}
