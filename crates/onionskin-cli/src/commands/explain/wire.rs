//! `explain --json`.

use std::collections::BTreeMap;
use std::ops::Range;

use onionskin::explain::{Block, ClusterMember, Comparison, DocumentFacts, Explanation, Overlap, Stretch};
use onionskin_store::table::{ClusterRow, ClusterStatsRow, PairRow};
use onionskin_warc::format_date;
use serde::Serialize;

/// One object for two documents.
#[derive(Serialize)]
pub(super) struct ExplainWire<'a> {
    r#type: &'static str,
    recipe: &'a str,
    a: DocumentWire<'a>,
    b: DocumentWire<'a>,
    /// One for each chunking, the main one first.
    chunkings: Vec<OverlapWire<'a>>,
    sketch: Option<SketchWire>,
    features: Option<FeaturesWire>,
    payload_equal: Option<bool>,
    text_equal: Option<bool>,
    same_site: Option<bool>,
    same_domain: Option<bool>,
    pair: Option<PairWire>,
    cluster_a: Option<MembershipWire>,
    cluster_b: Option<MembershipWire>,
    /// Why there is no text, if there is none.
    text_problem: Option<String>,
    texts: Option<TextsWire<'a>>,
}

#[derive(Serialize)]
struct DocumentWire<'a> {
    doc: u32,
    id: Option<&'a str>,
    url: Option<&'a str>,
    host: Option<&'a str>,
    title: Option<&'a str>,
    source: &'a str,
    offset: u64,
    place: String,
    media_type: &'a str,
    bytes: u64,
    words: u64,
    fetched: Option<String>,
    /// Documents that have the name it was called by.
    same_name: u64,
}

impl<'a> DocumentWire<'a> {
    fn new(facts: &'a DocumentFacts) -> DocumentWire<'a> {
        DocumentWire {
            doc: facts.doc,
            id: facts.id.as_deref(),
            url: facts.url.as_deref(),
            host: facts.host.as_deref(),
            title: facts.title.as_deref(),
            source: &facts.source,
            offset: facts.offset,
            place: facts.place(),
            media_type: &facts.media_type,
            bytes: facts.bytes,
            words: facts.tokens,
            fetched: facts.fetched_at.map(format_date),
            same_name: facts.same_name,
        }
    }
}

#[derive(Serialize)]
struct OverlapWire<'a> {
    chunking: &'a str,
    main: bool,
    a: u64,
    b: u64,
    shared: u64,
    resemblance: f64,
    containment_a: f64,
    containment_b: f64,
    from_text: bool,
}

impl<'a> OverlapWire<'a> {
    fn new(overlap: &'a Overlap) -> OverlapWire<'a> {
        OverlapWire {
            chunking: &overlap.chunking,
            main: overlap.is_main,
            a: overlap.size_a,
            b: overlap.size_b,
            shared: overlap.shared,
            resemblance: overlap.resemblance(),
            containment_a: overlap.containment_a(),
            containment_b: overlap.containment_b(),
            from_text: overlap.from_text,
        }
    }
}

#[derive(Serialize)]
struct SketchWire {
    resemblance: f64,
    standard_error: f64,
    length: usize,
}

#[derive(Serialize)]
struct FeaturesWire {
    equal: usize,
    of: usize,
    needed: usize,
    filter: String,
}

#[derive(Serialize)]
struct PairWire {
    a: u32,
    b: u32,
    shared: u64,
    resemblance: f64,
    containment_a: f64,
    containment_b: f64,
    method: &'static str,
}

impl From<PairRow> for PairWire {
    fn from(row: PairRow) -> PairWire {
        let PairRow { a, b, shared, resemblance, containment_a, containment_b, method } = row;
        PairWire { a, b, shared, resemblance, containment_a, containment_b, method: method.as_str() }
    }
}

#[derive(Serialize)]
struct MembershipWire {
    cluster: u32,
    is_centre: bool,
    resemblance_to_centre: f64,
    kind: &'static str,
}

impl From<ClusterRow> for MembershipWire {
    fn from(row: ClusterRow) -> MembershipWire {
        let ClusterRow { cluster, is_centre, resemblance_to_centre, kind, .. } = row;
        MembershipWire { cluster, is_centre, resemblance_to_centre, kind: kind.as_str() }
    }
}

/// Offsets are in characters (Unicode scalar values), as Python counts them.
#[derive(Serialize)]
struct TextsWire<'a> {
    text_a: &'a str,
    text_b: &'a str,
    words_a: usize,
    words_b: usize,
    shared_words: usize,
    /// Which of the texts is another one than when it was scanned.
    changed_a: bool,
    changed_b: bool,
    /// Passages have at least so many words.
    least_words: usize,
    passages: Vec<PassageWire>,
    only_a: Vec<[usize; 2]>,
    only_b: Vec<[usize; 2]>,
}

#[derive(Serialize)]
struct PassageWire {
    a: [usize; 2],
    b: [usize; 2],
    words: usize,
    moved: bool,
}

/// Numbers of characters before given bytes of a text.
struct Characters(BTreeMap<usize, usize>);

impl Characters {
    fn of(text: &str, mut places: Vec<usize>) -> Characters {
        places.sort_unstable();
        places.dedup();
        let (mut at, mut characters) = (0, 0);
        let counted = places.into_iter().map(|place| {
            characters += text.get(at..place).map_or(0, |part| part.chars().count());
            at = place;
            (place, characters)
        });
        Characters(counted.collect())
    }

    fn range(&self, range: &Range<usize>) -> [usize; 2] {
        [range.start, range.end].map(|place| self.0.get(&place).copied().unwrap_or(0))
    }
}

impl<'a> TextsWire<'a> {
    fn new(comparison: &'a Comparison, changed: [bool; 2]) -> TextsWire<'a> {
        let gaps = |side: fn(&Block) -> &[Stretch]| {
            let stretches = comparison.blocks.iter().flat_map(side);
            stretches.filter(|stretch| stretch.moved.is_none()).map(|stretch| stretch.range.clone()).collect()
        };
        let gaps_a: Vec<Range<usize>> = gaps(|block| match block {
            Block::Differ { a, .. } => a,
            Block::Same(_) => &[],
        });
        let gaps_b: Vec<Range<usize>> = gaps(|block| match block {
            Block::Differ { b, .. } => b,
            Block::Same(_) => &[],
        });
        let passages = || comparison.passages.iter();
        let ends = |ranges: &mut dyn Iterator<Item = &Range<usize>>| {
            ranges.flat_map(|range| [range.start, range.end]).collect::<Vec<_>>()
        };
        let in_a = ends(&mut passages().map(|passage| &passage.a).chain(&gaps_a));
        let in_b = ends(&mut passages().map(|passage| &passage.b).chain(&gaps_b));
        let (in_a, in_b) =
            (Characters::of(&comparison.text_a, in_a), Characters::of(&comparison.text_b, in_b));
        TextsWire {
            text_a: &comparison.text_a,
            text_b: &comparison.text_b,
            words_a: comparison.words_a,
            words_b: comparison.words_b,
            shared_words: comparison.shared_words(),
            changed_a: changed[0],
            changed_b: changed[1],
            least_words: comparison.shingle,
            passages: passages()
                .map(|passage| PassageWire {
                    a: in_a.range(&passage.a),
                    b: in_b.range(&passage.b),
                    words: passage.words,
                    moved: passage.moved,
                })
                .collect(),
            only_a: gaps_a.iter().map(|range| in_a.range(range)).collect(),
            only_b: gaps_b.iter().map(|range| in_b.range(range)).collect(),
        }
    }
}

impl<'a> ExplainWire<'a> {
    pub(super) fn new(explained: &'a Explanation, with_text: bool) -> ExplainWire<'a> {
        let texts = explained.texts.as_ref().ok().filter(|_| with_text);
        ExplainWire {
            r#type: "explain",
            recipe: &explained.recipe,
            a: DocumentWire::new(&explained.a),
            b: DocumentWire::new(&explained.b),
            chunkings: explained.overlaps.iter().map(OverlapWire::new).collect(),
            sketch: explained.sketch.map(|sketch| SketchWire {
                resemblance: sketch.estimate.value,
                standard_error: sketch.estimate.standard_error,
                length: sketch.length,
            }),
            features: explained.features.map(|features| FeaturesWire {
                equal: features.equal,
                of: features.filter.k(),
                needed: features.filter.r(),
                filter: features.filter.to_string(),
            }),
            payload_equal: explained.payload_equal,
            text_equal: explained.text_equal,
            same_site: explained.same_site,
            same_domain: explained.same_domain,
            pair: explained.pair.map(PairWire::from),
            cluster_a: explained.clusters[0].map(MembershipWire::from),
            cluster_b: explained.clusters[1].map(MembershipWire::from),
            text_problem: explained.texts.as_ref().err().map(ToString::to_string),
            texts: texts.map(|texts| TextsWire::new(&texts.comparison, texts.changed)),
        }
    }
}

/// One object for each member of a cluster.
#[derive(Serialize)]
pub(super) struct MemberWire<'a> {
    r#type: &'static str,
    cluster: u32,
    doc: u32,
    is_centre: bool,
    resemblance_to_centre: f64,
    kind: &'static str,
    id: Option<&'a str>,
    url: Option<&'a str>,
    title: Option<&'a str>,
    words: u64,
}

impl<'a> MemberWire<'a> {
    pub(super) fn new(member: &ClusterMember<'a>) -> MemberWire<'a> {
        let ClusterRow { cluster, doc, is_centre, resemblance_to_centre, kind } = member.row;
        MemberWire {
            r#type: "member",
            cluster,
            doc,
            is_centre,
            resemblance_to_centre,
            kind: kind.as_str(),
            id: member.id,
            url: member.url,
            title: member.title,
            words: member.tokens,
        }
    }
}

/// A cluster in numbers, after its members.
#[derive(Serialize)]
pub(super) struct ClusterWire {
    r#type: &'static str,
    cluster: u32,
    centre: u32,
    documents: u64,
    exact_copies: u64,
    sites: u64,
    same_site: u64,
    cross_site: u64,
    lowest_resemblance: f64,
}

impl From<ClusterStatsRow> for ClusterWire {
    fn from(row: ClusterStatsRow) -> ClusterWire {
        ClusterWire {
            r#type: "cluster",
            cluster: row.cluster,
            centre: row.centre,
            documents: row.documents,
            exact_copies: row.exact_copies,
            sites: row.sites,
            same_site: row.same_site,
            cross_site: row.cross_site,
            lowest_resemblance: row.lowest_resemblance,
        }
    }
}
