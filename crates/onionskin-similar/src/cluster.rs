//! Clusters: which documents belong together, which of them stands for the others, and how much the
//! others are like it.
//!
//! - `transitive`, the papers' definition (Cho et al. 2000, definition 4): everything that is
//!   connected by similar pairs. Chains grow: the ends of A ~ B ~ C may share nothing.
//! - `centred`: every member is itself similar to the centre. Documents are taken in the order of
//!   the survivor rule; one that is not taken yet becomes a centre and takes its similar documents
//!   that are not taken yet. What deletes or hides uses this.
//!
//! Both are made over texts, not documents: exact copies were folded, and follow their text.
//! Everything is a sort or a walk along sorted streams, over the documents that are in clusters;
//! one bit a document is all that is kept beside.
//!
//! ```text
//! pairs ─▶ (text, group) ─┐
//! copies ─────────────────┴▶ (doc, text, group) ─ + priority, site ─▶ by group: centre first ─▶ (text, centre's text)
//!            pairs, or verification where there is no pair ─▶ resemblance to the centre ─▶ rows, cluster by cluster
//! ```

use onionskin_core::{ClusterId, DocId, Packed, Resemblance, SiteId, spelled};
use onionskin_store::join::SortedCursor;
use onionskin_store::record;
use onionskin_store::sort::{Record, SortParams, SortedStream, Sorter};
use onionskin_store::table::{ClusterRow, ClusterStatsRow, CopyKind};
use serde::Serialize;

use crate::components::Components;
use crate::{Bits, Candidates, ChunkSets, Resources, SharedPair, SimilarError, count_shared};

/// How pairs become clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Clustering {
    /// Everything that is connected.
    Transitive,
    /// Everything that is similar to a centre.
    #[default]
    Centred,
}

spelled!(Clustering, as_str: Transitive => "transitive", Centred => "centred");

impl std::str::FromStr for Clustering {
    type Err = String;

    fn from_str(word: &str) -> Result<Clustering, String> {
        let word = if word == "centered" { Clustering::Centred.as_str() } else { word };
        Clustering::find(word)
            .ok_or_else(|| format!("unknown clustering {word:?}; known are {}", Clustering::KNOWN))
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
    pub doc: DocId,
    /// How much the survivor rule wants it for a centre. Among equals the smallest document is
    /// taken.
    pub priority: u64,
    /// Its site.
    pub site: Option<SiteId>,
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
    pub copies: Open<'a, (DocId, DocId)>,
    /// Similar pairs among those that are no copies.
    pub pairs: Open<'a, SharedPair>,
    /// Every document.
    pub attributes: Open<'a, Attributes>,
    /// Whether priorities differ at all.
    pub ranked: bool,
    /// For the resemblance of those to the centre that form no pair with it. Without, it is told
    /// as 0.
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

record! {
    /// A text and the group it belongs to.
    struct TextGroup { text: DocId, group: DocId }
}

record! {
    /// A document of a text.
    struct DocOfText { text: DocId, doc: DocId }
}

record! {
    /// How little a text is wanted as a centre.
    struct TextWish { text: DocId, unwanted: u64 }
}

record! {
    /// Texts, the most wanted first.
    struct ByWish { unwanted: u64, text: DocId }
}

record! {
    /// The place of a text in the order in which texts are wanted.
    struct TextRank { text: DocId, rank: u32 }
}

record! {
    /// A pair of texts of which one has its rank.
    struct HalfRanked { b: DocId, a: DocId, rank_a: u32 }
}

record! {
    /// A pair of texts, the more wanted one first.
    struct RankedPair { rank: u32, other_rank: u32, text: DocId, other: DocId }
}

record! {
    /// A document of a cluster.
    struct ByDoc { doc: DocId, text: DocId, group: DocId }
}

record! {
    /// Documents of a group, the one that becomes the centre first.
    struct ByGroup {
        group: DocId,
        /// It cannot be the centre.
        is_barred: bool,
        unwanted: u64,
        doc: DocId,
        text: DocId,
        site: Packed<SiteId>,
    }
}

record! {
    /// A document with its centre.
    struct ByText {
        text: DocId,
        group: DocId,
        doc: DocId,
        centre: DocId,
        centre_text: DocId,
        /// It is on the centre's site.
        is_same_site: bool,
        site: Packed<SiteId>,
    }
}

record! {
    /// Two texts, smaller first, and which of them is not the centre's.
    struct Wanted { a: DocId, b: DocId, text: DocId }
}

record! {
    /// Two texts, smaller first, and their resemblance as bits.
    struct Counted { a: DocId, b: DocId, resemblance: u64 }
}

record! {
    /// The resemblance of a text to the text of its centre, as bits.
    struct ToCentre { text: DocId, resemblance: u64 }
}

record! {
    /// A row of a group whose smallest document is not known yet.
    struct OfGroup {
        group: DocId,
        doc: DocId,
        centre: DocId,
        resemblance: u64,
        is_exact: bool,
        is_same_site: bool,
        site: Packed<SiteId>,
    }
}

record! {
    /// A row of a cluster, which goes by its smallest document.
    struct Row {
        smallest: DocId,
        doc: DocId,
        centre: DocId,
        resemblance: u64,
        is_exact: bool,
        is_same_site: bool,
    }
}

record! {
    /// A site of a cluster.
    struct SiteOf { smallest: DocId, site: Packed<SiteId> }
}

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
        components.finish(|text, group| Ok(groups.push(TextGroup { text, group })?))?;
        Ok(groups.finish()?)
    }

    fn centred(&self) -> Result<SortedStream<TextGroup>, SimilarError> {
        if self.input.ranked {
            return self.centred_by_rank();
        }
        let pairs = (self.input.pairs)()?;
        self.take(pairs.map(|pair| {
            pair.map(|SharedPair { a, b, .. }| RankedPair {
                rank: a.get(),
                other_rank: b.get(),
                text: a,
                other: b,
            })
        }))
    }

    /// From pairs of ranks, in order, with their texts: whoever comes first takes those who are
    /// left.
    fn take(
        &self,
        pairs: impl Iterator<Item = Result<RankedPair, SimilarError>>,
    ) -> Result<SortedStream<TextGroup>, SimilarError> {
        let mut taken = Bits::new(self.input.documents);
        let mut groups = self.sorter()?;
        let mut centre = None;
        for pair in pairs {
            let RankedPair { rank, other_rank, text, other } = pair?;
            let (rank, other_rank) = (DocId(rank), DocId(other_rank));
            if taken.get(rank) || taken.get(other_rank) {
                continue;
            }
            taken.set(other_rank);
            if centre != Some(text) {
                groups.push(TextGroup { text, group: text })?;
                centre = Some(text);
            }
            groups.push(TextGroup { text: other, group: text })?;
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
        let mut of_text = self.sorter::<TextWish>()?;
        let mut copies = SortedCursor::new((self.input.copies)()?);
        for attributes in (self.input.attributes)()? {
            let Attributes { doc, priority, .. } = attributes?;
            let text = copies.at(doc, |copy| copy.0)?.map_or(doc, |copy| copy.1);
            if paired.get(text) {
                of_text.push(TextWish { text, unwanted: u64::MAX - priority })?;
            }
        }
        let mut by_wish = self.sorter::<ByWish>()?;
        let mut last = None;
        for entry in of_text.finish()? {
            let TextWish { text, unwanted } = entry?;
            if last != Some(text) {
                by_wish.push(ByWish { unwanted, text })?;
                last = Some(text);
            }
        }
        // Twice: once for the smaller documents of the pairs, once for the larger.
        let (mut of_a, mut of_b) = (self.sorter::<TextRank>()?, self.sorter::<TextRank>()?);
        for (rank, entry) in (0u32..).zip(by_wish.finish()?) {
            let text = entry?.text;
            of_a.push(TextRank { text, rank })?;
            of_b.push(TextRank { text, rank })?;
        }
        let rank_of = |ranks: &mut SortedCursor<SortedStream<TextRank>, TextRank>, text: DocId| {
            Ok::<_, SimilarError>(ranks.at(text, |entry| entry.text)?.map_or(u32::MAX, |entry| entry.rank))
        };
        let mut half_ranked = self.sorter::<HalfRanked>()?;
        let mut ranks = SortedCursor::new(of_a.finish()?);
        for pair in (self.input.pairs)()? {
            let SharedPair { a, b, .. } = pair?;
            half_ranked.push(HalfRanked { b, a, rank_a: rank_of(&mut ranks, a)? })?;
        }
        let mut ranked = self.sorter::<RankedPair>()?;
        let mut ranks = SortedCursor::new(of_b.finish()?);
        for entry in half_ranked.finish()? {
            let HalfRanked { b, a, rank_a } = entry?;
            let rank_b = rank_of(&mut ranks, b)?;
            ranked.push(if rank_a < rank_b {
                RankedPair { rank: rank_a, other_rank: rank_b, text: a, other: b }
            } else {
                RankedPair { rank: rank_b, other_rank: rank_a, text: b, other: a }
            })?;
        }
        self.take(ranked.finish()?.map(|pair| pair.map_err(SimilarError::from)))
    }

    /// Every document of a cluster with its text and group, in the order in which it is wanted as
    /// the centre.
    fn members(&self, groups: SortedStream<TextGroup>) -> Result<SortedStream<ByGroup>, SimilarError> {
        // Texts that have copies, and texts that have a group.
        let mut of_text = self.sorter::<DocOfText>()?;
        for copy in (self.input.copies)()? {
            let (doc, text) = copy?;
            of_text.push(DocOfText { text, doc })?;
        }
        let mut by_doc = self.sorter::<ByDoc>()?;
        let mut groups = SortedCursor::new(groups);
        let mut last: Option<TextGroup> = None;
        for entry in of_text.finish()? {
            let DocOfText { text, doc } = entry?;
            // Groups of texts without copies.
            while let Some(TextGroup { text, group }) = groups.next_if(|other| other.text < text)? {
                if last.is_none_or(|last| last.text != text) {
                    by_doc.push(ByDoc { doc: text, text, group })?;
                }
            }
            let group = match last {
                Some(last) if last.text == text => last.group,
                _ => {
                    let group = groups.next_if(|other| other.text == text)?.map_or(text, |other| other.group);
                    by_doc.push(ByDoc { doc: text, text, group })?;
                    last = Some(TextGroup { text, group });
                    group
                }
            };
            by_doc.push(ByDoc { doc, text, group })?;
        }
        while let Some(TextGroup { text, group }) = groups.next()? {
            by_doc.push(ByDoc { doc: text, text, group })?;
        }
        let mut by_group = self.sorter::<ByGroup>()?;
        let mut attributes = SortedCursor::new((self.input.attributes)()?);
        for member in by_doc.finish()? {
            let ByDoc { doc, text, group } = member?;
            let Attributes { priority, site, can_lead, .. } = attributes
                .at(doc, |row| row.doc)?
                .unwrap_or(Attributes { doc, priority: 0, site: None, can_lead: true });
            let is_barred = !can_lead || (self.input.clustering == Clustering::Centred && text != group);
            let (unwanted, site) = (u64::MAX - priority, site.into());
            by_group.push(ByGroup { group, is_barred, unwanted, doc, text, site })?;
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
        let mut centre: Option<ByGroup> = None;
        for member in by_group {
            let member = member?;
            let centre = match centre {
                Some(centre) if centre.group == member.group => centre,
                _ => *centre.insert(member),
            };
            let ByGroup { group, doc, text, site, .. } = member;
            by_text.push(ByText {
                text,
                group,
                doc,
                centre: centre.doc,
                centre_text: centre.text,
                is_same_site: site == centre.site,
                site,
            })?;
            if text != centre.text {
                wanted.push(Wanted { a: text.min(centre.text), b: text.max(centre.text), text })?;
            }
        }
        Ok((by_text.finish()?, wanted.finish()?))
    }

    /// For every text its resemblance to the text of its centre: from the pairs, else counted.
    fn resemblances(&self, wanted: SortedStream<Wanted>) -> Result<SortedStream<ToCentre>, SimilarError> {
        let mut resemblances = self.sorter::<ToCentre>()?;
        let mut unknown = self.sorter::<Wanted>()?;
        let mut pairs = SortedCursor::new((self.input.pairs)()?);
        for entry in wanted {
            let entry = entry?;
            match pairs.at((entry.a, entry.b), |pair| (pair.a, pair.b))? {
                Some(pair) => resemblances
                    .push(ToCentre { text: entry.text, resemblance: pair.resemblance().to_bits() })?,
                None => unknown.push(entry)?,
            }
        }
        let mut candidates = Candidates::new(self.input.documents, &self.resources.share(1, 8))?;
        let mut waiting = self.sorter::<Wanted>()?;
        for entry in unknown.finish()? {
            let entry = entry?;
            candidates.push(entry.a, entry.b)?;
            waiting.push(entry)?;
        }
        let mut counted = self.sorter::<Counted>()?;
        if let Some(sets) = self.input.sets
            && candidates.pushed() > 0
        {
            count_shared(sets, candidates, None, &self.resources.share(1, 2), &mut |pair| {
                let resemblance = pair.resemblance().to_bits();
                Ok(counted.push(Counted { a: pair.a, b: pair.b, resemblance })?)
            })?;
        }
        let mut counted = SortedCursor::new(counted.finish()?);
        for entry in waiting.finish()? {
            let Wanted { a, b, text } = entry?;
            let found = counted.at((a, b), |pair| (pair.a, pair.b))?;
            resemblances.push(ToCentre { text, resemblance: found.map_or(0, |pair| pair.resemblance) })?;
        }
        Ok(resemblances.finish()?)
    }

    fn rows(
        &self,
        by_text: SortedStream<ByText>,
        resemblances: SortedStream<ToCentre>,
    ) -> Result<(SortedStream<Row>, SortedStream<SiteOf>), SimilarError> {
        let mut by_group = self.sorter::<OfGroup>()?;
        let mut resemblances = SortedCursor::new(resemblances);
        for entry in by_text {
            let ByText { text, group, doc, centre, centre_text, is_same_site, site } = entry?;
            let is_exact = text == centre_text;
            let counted = resemblances.at(text, |entry| entry.text)?.map_or(0, |entry| entry.resemblance);
            let resemblance = if is_exact { 1f64.to_bits() } else { counted };
            by_group.push(OfGroup { group, doc, centre, resemblance, is_exact, is_same_site, site })?;
        }
        let mut rows = self.sorter::<Row>()?;
        let mut sites = Sorter::new(
            SortParams::new(&self.resources.work_dir, self.resources.memory.share(1, 10)).dedup(),
        )?;
        let mut first = None;
        for entry in by_group.finish()? {
            let OfGroup { group, doc, centre, resemblance, is_exact, is_same_site, site } = entry?;
            let smallest = match first {
                Some((of, smallest)) if of == group => smallest,
                _ => first.insert((group, doc)).1,
            };
            rows.push(Row { smallest, doc, centre, resemblance, is_exact, is_same_site })?;
            sites.push(SiteOf { smallest, site })?;
        }
        Ok((rows.finish()?, sites.finish()?))
    }
}

fn emit(
    rows: SortedStream<Row>,
    sites: SortedStream<SiteOf>,
    sink: &mut dyn ClusterSink,
) -> Result<(), SimilarError> {
    let mut sites = SortedCursor::new(sites);
    let mut current: Option<(DocId, ClusterStatsRow)> = None;
    for row in rows {
        let Row { smallest, doc, centre, resemblance, is_exact, is_same_site } = row?;
        let stats = match &mut current {
            Some((of, stats)) if *of == smallest => stats,
            _ => {
                let cluster =
                    current.as_ref().map_or(ClusterId::MIN, |(_, stats)| ClusterId(stats.cluster.get() + 1));
                if let Some((_, stats)) = current.take() {
                    sink.cluster(stats)?;
                }
                let mut n_sites = 0;
                while sites.next_if(|site| site.smallest == smallest)?.is_some() {
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
            stats.exact_copies += u64::from(is_exact);
            stats.same_site += u64::from(is_same_site);
            stats.cross_site += u64::from(!is_same_site);
        }
        sink.member(ClusterRow {
            cluster: stats.cluster,
            doc,
            is_centre: doc == centre,
            resemblance_to_centre: resemblance,
            kind: if is_exact { CopyKind::Exact } else { CopyKind::Near },
        })?;
    }
    match current {
        Some((_, stats)) => sink.cluster(stats),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
