//! Clusters: which documents belong together, which of them stands for the others, and how much the others are like it.
//!
//! - `transitive`, the papers' definition (Cho et al. 2000, definition 4): everything that is connected by similar pairs. Chains grow:
//!   the ends of A ~ B ~ C may share nothing.
//! - `centred`: every member is itself similar to the centre. Documents are taken in the order of the survivor rule; one that is
//!   not taken yet becomes a centre and takes its similar documents that are not taken yet. What deletes or hides uses this.
//!
//! Both are made over texts, not documents: exact copies were folded, and follow their text. Everything is a sort or a walk along
//! sorted streams, over the documents that are in clusters; one bit a document is all that is kept beside.
//!
//! ```text
//! pairs ─▶ (text, group) ─┐
//! copies ─────────────────┴▶ (doc, text, group) ─ + priority, site ─▶ by group: centre first ─▶ (text, centre's text)
//!            pairs, or verification where there is no pair ─▶ resemblance to the centre ─▶ rows, cluster by cluster
//! ```

use std::iter::Peekable;

use onionskin_core::Resemblance;
use onionskin_store::sort::{Record, SortParams, SortedStream, Sorter};
use onionskin_store::table::{ClusterRow, ClusterStatsRow, CopyKind};

use crate::components::Components;
use crate::{Bits, Candidates, ChunkSets, Resources, SharedPair, SimilarError, count_shared};

/// How pairs become clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clustering {
    /// Everything that is connected.
    Transitive,
    /// Everything that is similar to a centre.
    Centred,
}

impl Clustering {
    /// The word on the command line and in manifests.
    pub fn as_str(self) -> &'static str {
        match self {
            Clustering::Transitive => "transitive",
            Clustering::Centred => "centred",
        }
    }
}

impl std::fmt::Display for Clustering {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::str::FromStr for Clustering {
    type Err = String;

    fn from_str(word: &str) -> Result<Clustering, String> {
        match word {
            "transitive" => Ok(Clustering::Transitive),
            "centred" | "centered" => Ok(Clustering::Centred),
            _ => Err(format!("unknown clustering {word:?}; known are transitive, centred")),
        }
    }
}

/// Rows of a stream that can be opened again.
pub type Rows<'a, T> = Box<dyn Iterator<Item = Result<T, SimilarError>> + 'a>;
/// Opens a stream from its beginning.
pub type Open<'a, T> = &'a dyn Fn() -> Result<Rows<'a, T>, SimilarError>;

/// What clustering must know of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    /// The document.
    pub doc: u32,
    /// How much the survivor rule wants it for a centre. Among equals the smallest document is taken.
    pub priority: u64,
    /// Its site.
    pub site: Option<u32>,
    /// Whether it can be a centre: it has a text to compare with.
    pub can_lead: bool,
}

/// Everything clusters are made of. Streams are in ascending order of document, or of `(a, b)`.
pub struct ClusterInput<'a> {
    /// Which clusters.
    pub clustering: Clustering,
    /// How many documents there are.
    pub documents: u64,
    /// Copies, each with the document it is a copy of.
    pub copies: Open<'a, (u32, u32)>,
    /// Similar pairs among those that are no copies.
    pub pairs: Open<'a, SharedPair>,
    /// Every document.
    pub attributes: Open<'a, Attributes>,
    /// Whether priorities differ at all.
    pub ranked: bool,
    /// For the resemblance of those to the centre that form no pair with it. Without, it is told as 0.
    pub sets: Option<&'a ChunkSets>,
}

/// Receives clusters, in order.
pub trait ClusterSink {
    /// A member; all members of a cluster come one after the other, in ascending order.
    fn member(&mut self, row: ClusterRow) -> Result<(), SimilarError>;
    /// The cluster whose members have come.
    fn cluster(&mut self, row: ClusterStatsRow) -> Result<(), SimilarError>;
}

/// Makes clusters.
pub fn cluster(
    input: &ClusterInput<'_>,
    resources: &Resources,
    sink: &mut dyn ClusterSink,
) -> Result<(), SimilarError> {
    let step = Step { input, resources };
    let groups = match input.clustering {
        Clustering::Transitive => step.transitive()?,
        Clustering::Centred => step.centred()?,
    };
    let by_group = step.members(groups)?;
    let (by_text, wanted) = step.centres(by_group)?;
    let resemblances = step.resemblances(wanted)?;
    let (rows, sites) = step.rows(by_text, resemblances)?;
    emit(rows, sites, sink)
}

/// Text and the group it belongs to.
type TextGroup = (u32, u32);
/// Group; whether it cannot be the centre; how little it is wanted; document; text; site.
type ByGroup = ((u32, u8, u64), (u32, u32, u32));
/// Text; group; document; centre; the centre's text; whether it is on the centre's site; site.
type ByText = ((u32, u32, u32), (u32, u32), (u8, u32));
/// Two texts, smaller first, and which of them is not the centre.
type Wanted = (u32, u32, u32);
/// Smallest document of the cluster; document; centre; resemblance as bits; exact copy; same site.
type Row = ((u32, u32), (u32, u64), (u8, u8));

/// Smallest document of the cluster; a site of it.
type SiteOf = (u32, u32);

const NO_SITE: u32 = u32::MAX;

struct Step<'s, 'a> {
    input: &'s ClusterInput<'a>,
    resources: &'s Resources,
}

impl Step<'_, '_> {
    /// A tenth of the memory for each of the sorts, of which a few are alive at a time.
    fn sorter<R: Record>(&self) -> Result<Sorter<R>, SimilarError> {
        Ok(Sorter::new(SortParams::new(&self.resources.work_dir, self.resources.memory.share(1, 10)))?)
    }

    fn transitive(&self) -> Result<SortedStream<TextGroup>, SimilarError> {
        let mut components = Components::new(self.input.documents, &self.resources.share(1, 2))?;
        for pair in (self.input.pairs)()? {
            let pair = pair?;
            components.unite(pair.a, pair.b)?;
        }
        let mut groups = self.sorter()?;
        components.finish(|text, root| Ok(groups.push((text, root))?))?;
        Ok(groups.finish()?)
    }

    fn centred(&self) -> Result<SortedStream<TextGroup>, SimilarError> {
        if self.input.ranked {
            return self.centred_by_rank();
        }
        let pairs = (self.input.pairs)()?;
        self.take(pairs.map(|pair| pair.map(|pair| ((pair.a, pair.b), (pair.a, pair.b)))))
    }

    /// From pairs of ranks, in order, with their texts: whoever comes first takes those who are left.
    fn take(
        &self,
        pairs: impl Iterator<Item = Result<((u32, u32), (u32, u32)), SimilarError>>,
    ) -> Result<SortedStream<TextGroup>, SimilarError> {
        let mut taken = Bits::new(self.input.documents);
        let mut groups = self.sorter()?;
        let mut centre = None;
        for pair in pairs {
            let ((first, second), (text, other)) = pair?;
            if taken.get(first) || taken.get(second) {
                continue;
            }
            taken.set(second);
            if centre != Some(text) {
                groups.push((text, text))?;
                centre = Some(text);
            }
            groups.push((other, text))?;
        }
        Ok(groups.finish()?)
    }

    /// Numbers texts in the order in which they are wanted, and takes in that order.
    fn centred_by_rank(&self) -> Result<SortedStream<TextGroup>, SimilarError> {
        let mut paired = Bits::new(self.input.documents);
        for pair in (self.input.pairs)()? {
            let pair = pair?;
            paired.set(pair.a);
            paired.set(pair.b);
        }
        // The priority of a text is the best of its documents.
        let mut of_text = self.sorter::<(u32, u64)>()?;
        let mut copies = (self.input.copies)()?.peekable();
        for attributes in (self.input.attributes)()? {
            let Attributes { doc, priority, .. } = attributes?;
            let text = copy_of(&mut copies, doc)?.unwrap_or(doc);
            if paired.get(text) {
                of_text.push((text, u64::MAX - priority))?;
            }
        }
        let mut by_wish = self.sorter::<(u64, u32)>()?;
        let mut last = None;
        for entry in of_text.finish()? {
            let (text, unwanted) = entry?;
            if last != Some(text) {
                by_wish.push((unwanted, text))?;
                last = Some(text);
            }
        }
        // Twice: once for the smaller documents of the pairs, once for the larger.
        let (mut of_a, mut of_b) = (self.sorter::<(u32, u32)>()?, self.sorter::<(u32, u32)>()?);
        for (rank, entry) in (0u32..).zip(by_wish.finish()?) {
            let text = entry?.1;
            of_a.push((text, rank))?;
            of_b.push((text, rank))?;
        }
        let mut half_ranked = self.sorter::<(u32, u32, u32)>()?;
        let mut ranks = of_a.finish()?.map(|entry| entry.map_err(SimilarError::from)).peekable();
        for pair in (self.input.pairs)()? {
            let SharedPair { a, b, .. } = pair?;
            let rank = seek(&mut ranks, a, |entry| entry.0)?.map_or(u32::MAX, |entry| entry.1);
            half_ranked.push((b, a, rank))?;
        }
        let mut ranked = self.sorter::<((u32, u32), (u32, u32))>()?;
        let mut ranks = of_b.finish()?.map(|entry| entry.map_err(SimilarError::from)).peekable();
        for entry in half_ranked.finish()? {
            let (b, a, rank_a) = entry?;
            let rank_b = seek(&mut ranks, b, |entry| entry.0)?.map_or(u32::MAX, |entry| entry.1);
            ranked.push(if rank_a < rank_b {
                ((rank_a, rank_b), (a, b))
            } else {
                ((rank_b, rank_a), (b, a))
            })?;
        }
        self.take(ranked.finish()?.map(|pair| pair.map_err(SimilarError::from)))
    }

    /// Every document of a cluster with its text and group, in the order in which it is wanted as the centre.
    fn members(&self, groups: SortedStream<TextGroup>) -> Result<SortedStream<ByGroup>, SimilarError> {
        // Texts that have copies, and texts that have a group.
        let mut of_text = self.sorter::<(u32, u32)>()?;
        for copy in (self.input.copies)()? {
            let (doc, text) = copy?;
            of_text.push((text, doc))?;
        }
        let mut by_doc = self.sorter::<(u32, u32, u32)>()?;
        let mut groups = groups.peekable();
        let mut last = None;
        for entry in of_text.finish()? {
            let (text, doc) = entry?;
            // Groups of texts without copies.
            while let Some(other) =
                groups.next_if(|other| other.as_ref().map_or(true, |(other, _)| *other < text))
            {
                let (other, group) = other?;
                if last.is_none_or(|(last, _)| last != other) {
                    by_doc.push((other, other, group))?;
                }
            }
            let group = match last {
                Some((last, group)) if last == text => group,
                _ => {
                    let group =
                        match groups.next_if(|other| matches!(other, Ok((other, _)) if *other == text)) {
                            Some(group) => group?.1,
                            None => text,
                        };
                    by_doc.push((text, text, group))?;
                    last = Some((text, group));
                    group
                }
            };
            by_doc.push((doc, text, group))?;
        }
        for other in groups {
            let (other, group) = other?;
            by_doc.push((other, other, group))?;
        }
        let mut by_group = self.sorter::<ByGroup>()?;
        let mut attributes = (self.input.attributes)()?.peekable();
        for member in by_doc.finish()? {
            let (doc, text, group) = member?;
            let Attributes { priority, site, can_lead, .. } = loop {
                match attributes.next() {
                    Some(row) => {
                        let row = row?;
                        if row.doc == doc {
                            break row;
                        }
                    }
                    None => break Attributes { doc, priority: 0, site: None, can_lead: true },
                }
            };
            let barred = !can_lead || (self.input.clustering == Clustering::Centred && text != group);
            let wish = (group, u8::from(barred), u64::MAX - priority);
            by_group.push((wish, (doc, text, site.unwrap_or(NO_SITE))))?;
        }
        Ok(by_group.finish()?)
    }

    /// The first of each group is its centre.
    fn centres(
        &self,
        by_group: SortedStream<ByGroup>,
    ) -> Result<(SortedStream<ByText>, SortedStream<Wanted>), SimilarError> {
        let mut by_text = self.sorter::<ByText>()?;
        let mut wanted = Sorter::new(
            SortParams::new(&self.resources.work_dir, self.resources.memory.share(1, 10)).dedup(),
        )?;
        let mut centre = None;
        for member in by_group {
            let ((group, ..), (doc, text, site)) = member?;
            let (centre, centre_text, centre_site) = match centre {
                Some((of, centre)) if of == group => centre,
                _ => centre.insert((group, (doc, text, site))).1,
            };
            by_text.push((
                (text, group, doc),
                (centre, centre_text),
                (u8::from(site == centre_site), site),
            ))?;
            if text != centre_text {
                wanted.push((text.min(centre_text), text.max(centre_text), text))?;
            }
        }
        Ok((by_text.finish()?, wanted.finish()?))
    }

    /// For every text its resemblance to the text of its centre: from the pairs, else counted.
    fn resemblances(&self, wanted: SortedStream<Wanted>) -> Result<SortedStream<(u32, u64)>, SimilarError> {
        let mut resemblances = self.sorter::<(u32, u64)>()?;
        let mut unknown = self.sorter::<Wanted>()?;
        let mut pairs = (self.input.pairs)()?.peekable();
        for entry in wanted {
            let (a, b, text) = entry?;
            let found = seek(&mut pairs, (a, b), |pair| (pair.a, pair.b))?;
            match found {
                Some(pair) => resemblances.push((text, pair.resemblance().to_bits()))?,
                None => unknown.push((a, b, text))?,
            }
        }
        let mut candidates = Candidates::new(self.input.documents, &self.resources.share(1, 8))?;
        let mut waiting = self.sorter::<Wanted>()?;
        for entry in unknown.finish()? {
            let (a, b, text) = entry?;
            candidates.push(a, b)?;
            waiting.push((a, b, text))?;
        }
        let mut counted = self.sorter::<(u32, u32, u64)>()?;
        if let Some(sets) = self.input.sets
            && candidates.pushed() > 0
        {
            count_shared(sets, candidates, None, &self.resources.share(1, 2), &mut |pair| {
                Ok(counted.push((pair.a, pair.b, pair.resemblance().to_bits()))?)
            })?;
        }
        let mut counted = counted.finish()?.map(|entry| entry.map_err(SimilarError::from)).peekable();
        for entry in waiting.finish()? {
            let (a, b, text) = entry?;
            let found = seek(&mut counted, (a, b), |entry| (entry.0, entry.1))?;
            resemblances.push((text, found.map_or(0, |entry| entry.2)))?;
        }
        Ok(resemblances.finish()?)
    }

    fn rows(
        &self,
        by_text: SortedStream<ByText>,
        resemblances: SortedStream<(u32, u64)>,
    ) -> Result<(SortedStream<Row>, SortedStream<SiteOf>), SimilarError> {
        let mut by_group = self.sorter::<((u32, u32), (u32, u64), (u8, u8, u32))>()?;
        let mut resemblances = resemblances.peekable();
        for entry in by_text {
            let ((text, group, doc), (centre, centre_text), (same_site, site)) = entry?;
            while let Some(passed) =
                resemblances.next_if(|entry| entry.as_ref().map_or(true, |entry| entry.0 < text))
            {
                passed?;
            }
            let resemblance = match resemblances.peek() {
                _ if text == centre_text => 1f64.to_bits(),
                Some(Ok((of, resemblance))) if *of == text => *resemblance,
                _ => 0,
            };
            let exact = u8::from(text == centre_text);
            by_group.push(((group, doc), (centre, resemblance), (exact, same_site, site)))?;
        }
        let mut rows = self.sorter::<Row>()?;
        let mut sites = Sorter::new(
            SortParams::new(&self.resources.work_dir, self.resources.memory.share(1, 10)).dedup(),
        )?;
        let mut first = None;
        for entry in by_group.finish()? {
            let ((group, doc), about, (exact, same_site, site)) = entry?;
            let smallest = match first {
                Some((of, smallest)) if of == group => smallest,
                _ => first.insert((group, doc)).1,
            };
            rows.push(((smallest, doc), about, (exact, same_site)))?;
            sites.push((smallest, site))?;
        }
        Ok((rows.finish()?, sites.finish()?))
    }
}

/// The document that `doc` is a copy of. Documents are asked for in ascending order.
fn copy_of<I: Iterator<Item = Result<(u32, u32), SimilarError>>>(
    copies: &mut Peekable<I>,
    doc: u32,
) -> Result<Option<u32>, SimilarError> {
    Ok(seek(copies, doc, |copy| copy.0)?.map(|copy| copy.1))
}

/// The entry with a key, in a stream in ascending order of key. Keys are asked for in ascending order.
fn seek<T: Copy, K: Ord, I: Iterator<Item = Result<T, SimilarError>>>(
    stream: &mut Peekable<I>,
    key: K,
    key_of: impl Fn(&T) -> K,
) -> Result<Option<T>, SimilarError> {
    while let Some(passed) = stream.next_if(|entry| entry.as_ref().map_or(true, |entry| key_of(entry) < key))
    {
        passed?;
    }
    Ok(match stream.peek() {
        Some(Ok(entry)) if key_of(entry) == key => Some(*entry),
        _ => None,
    })
}

fn emit(
    rows: SortedStream<Row>,
    sites: SortedStream<SiteOf>,
    sink: &mut dyn ClusterSink,
) -> Result<(), SimilarError> {
    let mut sites = sites.peekable();
    let mut current: Option<(u32, ClusterStatsRow)> = None;
    for row in rows {
        let ((smallest, doc), (centre, resemblance), (exact, same_site)) = row?;
        let stats = match &mut current {
            Some((of, stats)) if *of == smallest => stats,
            _ => {
                let cluster = current.as_ref().map_or(0, |(_, stats)| stats.cluster + 1);
                if let Some((_, stats)) = current.take() {
                    sink.cluster(stats)?;
                }
                let mut n_sites = 0;
                while let Some(site) =
                    sites.next_if(|site| site.as_ref().map_or(true, |site| site.0 == smallest))
                {
                    site?;
                    n_sites += 1;
                }
                let stats = ClusterStatsRow {
                    cluster,
                    centre,
                    documents: 0,
                    exact_copies: 0,
                    sites: n_sites,
                    same_site: 0,
                    cross_site: 0,
                    lowest_resemblance: 1.0,
                };
                &mut current.insert((smallest, stats)).1
            }
        };
        let resemblance = Resemblance::new(f64::from_bits(resemblance)).map_or(0.0, Resemblance::get);
        stats.documents += 1;
        stats.lowest_resemblance = stats.lowest_resemblance.min(resemblance);
        if doc != centre {
            stats.exact_copies += u64::from(exact);
            stats.same_site += u64::from(same_site);
            stats.cross_site += u64::from(1 - same_site);
        }
        sink.member(ClusterRow {
            cluster: stats.cluster,
            doc,
            is_centre: doc == centre,
            resemblance_to_centre: resemblance,
            kind: if exact == 1 { CopyKind::Exact } else { CopyKind::Near },
        })?;
    }
    match current {
        Some((_, stats)) => sink.cluster(stats),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
