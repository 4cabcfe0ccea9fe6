//! The fields of an [`Explanation`] as programs see them. The command line, the server and Python
//! show these.
//!
//! Offsets are in characters (Unicode scalar values), as Python counts them; in the library itself
//! they are in bytes.

#![cfg_attr(feature = "openapi", allow(unused_qualifications, reason = "what utoipa writes has them"))]

use std::collections::BTreeMap;
use std::ops::Range;

use onionskin_core::DocId;
use onionskin_store::table::{ClusterRow, PairRow};
use onionskin_warc::format_date;
use serde::{Serialize, Serializer};

use super::{Block, Comparison, DocumentFacts, Explanation, Overlap, Stretch, Texts};

/// A document, as the atlas knows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DocumentFields {
    /// Its number.
    #[cfg_attr(feature = "openapi", schema(value_type = u32))]
    pub doc: DocId,
    /// Its own name.
    pub id: Option<String>,
    /// Its URL.
    pub url: Option<String>,
    /// Its host.
    pub host: Option<String>,
    /// Its title.
    pub title: Option<String>,
    /// The input it came from.
    pub source: String,
    /// Where in the input: a byte, a row of Parquet, the number of a file.
    pub offset: u64,
    /// Input and offset, spelled for people.
    pub place: String,
    /// The media type of its payload.
    pub media_type: String,
    /// Length of the payload.
    pub bytes: u64,
    /// Canonical tokens.
    pub tokens: u64,
    /// When it was fetched, as in `2024-05-01T12:00:00Z`.
    pub fetched_at: Option<String>,
    /// Documents that have the name it was called by; this is the first of them.
    pub same_name: u64,
}

impl From<&DocumentFacts> for DocumentFields {
    fn from(facts: &DocumentFacts) -> DocumentFields {
        DocumentFields {
            doc: facts.doc,
            id: facts.id.clone(),
            url: facts.url.clone(),
            host: facts.host.clone(),
            title: facts.title.clone(),
            source: facts.source.clone(),
            offset: facts.offset,
            place: facts.place(),
            media_type: facts.media_type.clone(),
            bytes: facts.bytes,
            tokens: facts.tokens,
            fetched_at: facts.fetched_at.map(format_date),
            same_name: facts.same_name,
        }
    }
}

/// What two documents share in one chunking, as sets.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OverlapFields {
    /// The chunking, as in the recipe.
    pub chunking: String,
    /// Whether sketches and features are made of it.
    pub is_main: bool,
    /// Different chunks of the first document.
    pub size_a: u64,
    /// Different chunks of the second.
    pub size_b: u64,
    /// Chunks that both have.
    pub shared: u64,
    /// Shared of all chunks of the two.
    pub resemblance: f64,
    /// Shared of the chunks of the first.
    pub containment_a: f64,
    /// Shared of the chunks of the second.
    pub containment_b: f64,
    /// Counted in the texts, since the scan did not keep these chunks.
    pub from_text: bool,
}

impl From<&Overlap> for OverlapFields {
    fn from(overlap: &Overlap) -> OverlapFields {
        OverlapFields {
            chunking: overlap.chunking.clone(),
            is_main: overlap.is_main,
            size_a: overlap.size_a,
            size_b: overlap.size_b,
            shared: overlap.shared,
            resemblance: overlap.resemblance(),
            containment_a: overlap.containment_a(),
            containment_b: overlap.containment_b(),
            from_text: overlap.from_text,
        }
    }
}

/// What the sketches say.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SketchFields {
    /// The resemblance they estimate.
    pub resemblance: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Numbers in a sketch.
    pub length: usize,
}

/// What the features say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct FeatureFields {
    /// Features that agree.
    pub equal: usize,
    /// Features there are.
    pub of: usize,
    /// Features that must agree to make two documents candidates.
    pub needed: usize,
    /// The filter, as in `6x14r2`.
    pub filter: String,
}

/// Everything that speaks for or against two documents being duplicates, but their texts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Numbers {
    /// The recipe of the scan.
    pub recipe: String,
    /// One document.
    pub a: DocumentFields,
    /// The other.
    pub b: DocumentFields,
    /// What they share, by chunking, the main one first.
    pub overlaps: Vec<OverlapFields>,
    /// What their sketches say, where those are kept and neither document is empty.
    pub sketch: Option<SketchFields>,
    /// What their features say, likewise.
    pub features: Option<FeatureFields>,
    /// Whether the payloads are equal; null when that is not known.
    pub payload_equal: Option<bool>,
    /// Whether the canonical texts are equal; null when one is empty.
    pub text_equal: Option<bool>,
    /// Whether they are on one site; null when one has none.
    pub same_site: Option<bool>,
    /// Whether their hosts belong to one registered domain; null when one has none.
    pub same_domain: Option<bool>,
    /// The row of the table `pairs`, where there is one.
    pub pair: Option<PairRow>,
    /// The row of the first document in the table `clusters`.
    pub cluster_a: Option<ClusterRow>,
    /// The row of the second.
    pub cluster_b: Option<ClusterRow>,
    /// Why the texts cannot be read again, if they cannot.
    pub text_problem: Option<String>,
}

impl From<&Explanation> for Numbers {
    fn from(explained: &Explanation) -> Numbers {
        Numbers {
            recipe: explained.recipe.clone(),
            a: (&explained.a).into(),
            b: (&explained.b).into(),
            overlaps: explained.overlaps.iter().map(OverlapFields::from).collect(),
            sketch: explained.sketch.map(|sketch| SketchFields {
                resemblance: sketch.estimate.value,
                standard_error: sketch.estimate.standard_error,
                length: sketch.length,
            }),
            features: explained.features.map(|features| FeatureFields {
                equal: features.equal,
                of: features.filter.k(),
                needed: features.filter.r(),
                filter: features.filter.to_string(),
            }),
            payload_equal: explained.payload_equal,
            text_equal: explained.text_equal,
            same_site: explained.same_site,
            same_domain: explained.same_domain,
            pair: explained.pair,
            cluster_a: explained.clusters[0],
            cluster_b: explained.clusters[1],
            text_problem: explained.texts.as_ref().err().map(ToString::to_string),
        }
    }
}

/// A passage of both texts. Places are first character and the one after the last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PassageFields {
    /// Where it is in the first text, in characters.
    pub a: [usize; 2],
    /// Where it is in the second text, in characters.
    pub b: [usize; 2],
    /// Its tokens.
    pub tokens: usize,
    /// Whether it is in another order among the passages of the second text.
    pub moved: bool,
}

#[derive(Serialize)]
struct TextFields<'a> {
    text_a: &'a str,
    text_b: &'a str,
    tokens_a: usize,
    tokens_b: usize,
    shared_tokens: usize,
    /// Which of the texts is another one than when it was scanned.
    changed_a: bool,
    changed_b: bool,
    /// Passages have at least this many tokens.
    least_tokens: usize,
    passages: Vec<PassageFields>,
    only_a: Vec<[usize; 2]>,
    only_b: Vec<[usize; 2]>,
}

/// Numbers of characters before given bytes of a text.
struct Characters(BTreeMap<usize, usize>);

impl Characters {
    fn of<'a>(text: &str, ranges: impl Iterator<Item = &'a Range<usize>>) -> Characters {
        let mut places: Vec<usize> = ranges.flat_map(|range| [range.start, range.end]).collect();
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

/// What only one text has.
fn gaps(comparison: &Comparison, side: fn(&Block) -> &[Stretch]) -> Vec<Range<usize>> {
    let stretches = comparison.blocks.iter().flat_map(side);
    stretches.filter(|stretch| stretch.moved.is_none()).map(|stretch| stretch.range.clone()).collect()
}

impl Texts {
    /// The passages of both texts, in the order of the first, with offsets in characters.
    pub fn passages(&self) -> Vec<PassageFields> {
        TextFields::new(self).passages
    }
}

impl<'a> TextFields<'a> {
    fn new(texts: &'a Texts) -> TextFields<'a> {
        let comparison = &texts.comparison;
        let gaps_a = gaps(comparison, |block| match block {
            Block::Differ { a, .. } => a,
            Block::Same(_) => &[],
        });
        let gaps_b = gaps(comparison, |block| match block {
            Block::Differ { b, .. } => b,
            Block::Same(_) => &[],
        });
        let passages = || comparison.passages.iter();
        let in_a = Characters::of(&comparison.text_a, passages().map(|passage| &passage.a).chain(&gaps_a));
        let in_b = Characters::of(&comparison.text_b, passages().map(|passage| &passage.b).chain(&gaps_b));
        let passage = |passage: &super::Passage| PassageFields {
            a: in_a.range(&passage.a),
            b: in_b.range(&passage.b),
            tokens: passage.words,
            moved: passage.moved,
        };
        TextFields {
            text_a: &comparison.text_a,
            text_b: &comparison.text_b,
            tokens_a: comparison.words_a,
            tokens_b: comparison.words_b,
            shared_tokens: comparison.shared_words(),
            changed_a: texts.changed[0],
            changed_b: texts.changed[1],
            least_tokens: comparison.shingle,
            passages: passages().map(passage).collect(),
            only_a: gaps_a.iter().map(|range| in_a.range(range)).collect(),
            only_b: gaps_b.iter().map(|range| in_b.range(range)).collect(),
        }
    }
}

impl Serialize for Texts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        TextFields::new(self).serialize(serializer)
    }
}

/// The numbers, and under `texts` the two texts with what they share.
impl Serialize for Explanation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Whole<'a> {
            #[serde(flatten)]
            numbers: Numbers,
            texts: Option<&'a Texts>,
        }

        Whole { numbers: self.into(), texts: self.texts.as_ref().ok() }.serialize(serializer)
    }
}
