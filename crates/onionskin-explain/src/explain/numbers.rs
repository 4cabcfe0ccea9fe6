//! What the tables of an atlas say about two documents.

use std::collections::BTreeSet;
use std::iter;

use onionskin_core::DocId;
use onionskin_core::feature::FeatureMaker;
use onionskin_core::sketch::{estimate_resemblance, estimate_resemblance_from_bottom};
use onionskin_core::{Analyzer, Chunking, FeatureFilter, Recipe, SketchScheme};
use onionskin_similar::SimilarRecord;
use onionskin_store::schema::ChunkingName;
use onionskin_store::table::{ClusterRow, PairRow};
use onionskin_store::{Atlas, TableError, TableName};

use super::{ExplainError, FeatureEvidence, Overlap, SketchEvidence};

/// Shared chunks of every chunking that is kept.
pub(super) fn overlaps(
    atlas: &Atlas,
    recipe: &Recipe,
    docs: [DocId; 2],
) -> Result<Vec<Overlap>, ExplainError> {
    let main = recipe.main().to_string();
    let mut overlaps = Vec::new();
    for chunking in atlas.chunkings() {
        let set = |doc: DocId| -> Result<BTreeSet<u64>, ExplainError> {
            let mut reader = atlas.chunks(&chunking)?.within(doc..=doc);
            while let Some((found, chunks)) = reader.next_group()? {
                if found >= doc {
                    return Ok(if found == doc { chunks.iter().copied().collect() } else { BTreeSet::new() });
                }
            }
            Ok(BTreeSet::new())
        };
        let name = chunking.as_str();
        overlaps.push(overlap(name, name == main, &set(docs[0])?, &set(docs[1])?));
    }
    Ok(overlaps)
}

fn overlap(chunking: &str, is_main: bool, a: &BTreeSet<u64>, b: &BTreeSet<u64>) -> Overlap {
    Overlap {
        chunking: chunking.to_owned(),
        is_main,
        size_a: a.len() as u64,
        size_b: b.len() as u64,
        shared: a.intersection(b).count() as u64,
        from_text: false,
    }
}

/// The same from the texts themselves, for the main chunking and those of the papers, as far as
/// they are not kept.
pub(super) fn overlaps_of_texts(
    atlas: &Atlas,
    recipe: &Recipe,
    a: &str,
    b: &str,
) -> Result<Vec<Overlap>, ExplainError> {
    let (main, papers) = (recipe.main(), Recipe::PAPERS.parse::<Recipe>()?);
    let others = papers.kept_chunks().iter().copied().filter(|chunking| *chunking != papers.main());
    let kept = atlas.chunkings();
    let chunkings = iter::once(main).chain(others);
    let chunkings: Vec<Chunking> =
        chunkings.filter(|chunking| !kept.contains(&ChunkingName::from(*chunking))).collect();
    let Some(counted) = recipe.only_chunks(&chunkings) else { return Ok(Vec::new()) };
    let mut analyzer = Analyzer::new(&counted, atlas.manifest().seed);
    let mut sets = |text: &str| -> Vec<BTreeSet<u64>> {
        let analysis = analyzer.analyze(text);
        (0..chunkings.len()).map(|nth| analysis.chunks(nth).iter().copied().collect()).collect()
    };
    let sets = iter::zip(sets(a), sets(b));
    let overlaps = chunkings.iter().zip(sets).map(|(chunking, (a, b))| Overlap {
        from_text: true,
        ..overlap(&chunking.to_string(), *chunking == main, &a, &b)
    });
    Ok(overlaps.collect())
}

/// Reads a list of each of two documents, where both have one.
macro_rules! two_lists {
    ($reader:expr, $docs:expr) => {{
        let mut lists = Vec::new();
        for doc in $docs {
            let mut reader = $reader?.within(doc..=doc);
            while let Some((found, list)) = reader.next_row()? {
                if found >= doc {
                    if found == doc {
                        lists.push(list.to_vec());
                    }
                    break;
                }
            }
        }
        <[_; 2]>::try_from(lists).ok().filter(|[a, b]| a.len() == b.len())
    }};
}

/// What the sketches say.
pub(super) fn sketches(
    atlas: &Atlas,
    recipe: &Recipe,
    docs: [DocId; 2],
) -> Result<Option<SketchEvidence>, ExplainError> {
    if !atlas.has(&TableName::Sketches) {
        return Ok(None);
    }
    let lists: Option<[Vec<u32>; 2]> = two_lists!(atlas.sketches(), docs);
    Ok(lists.map(|[a, b]| {
        let estimate = match recipe.scheme() {
            SketchScheme::Bottom(_) => estimate_resemblance_from_bottom(&a, &b),
            SketchScheme::Features(_) | SketchScheme::Minima(_) => estimate_resemblance(&a, &b),
        };
        SketchEvidence { estimate, length: a.len() }
    }))
}

/// What the features say, by the filter of the last search: those of the recipe, or others that it
/// has made of the minima.
pub(super) fn features(
    atlas: &Atlas,
    recipe: &Recipe,
    docs: [DocId; 2],
) -> Result<Option<FeatureEvidence>, ExplainError> {
    let evidence = |filter, a: &[u64], b: &[u64]| FeatureEvidence {
        equal: a.iter().zip(b).filter(|(a, b)| a == b).count(),
        filter,
    };
    let own = recipe.scheme().filter().filter(|_| atlas.has(&TableName::Features));
    let searched = last_filter(atlas)?;
    let is_own = |filter: FeatureFilter| own.is_some_and(|own| own.has_features_of(filter));
    if let Some(filter) = searched.filter(|filter| !is_own(*filter) && atlas.has(&TableName::Sketches)) {
        let lists: Option<[Vec<u32>; 2]> = two_lists!(atlas.sketches(), docs);
        if let Some([a, b]) = lists.filter(|[a, _]| a.len() >= filter.permutations()) {
            let [a, b] = [a, b].map(|sketch| FeatureMaker::new(filter).features(&sketch).to_vec());
            return Ok(Some(evidence(filter, &a, &b)));
        }
    }
    let Some(filter) = searched.filter(|filter| is_own(*filter)).or(own) else { return Ok(None) };
    let lists: Option<[Vec<u64>; 2]> = two_lists!(atlas.features(), docs);
    Ok(lists.map(|[a, b]| evidence(filter, &a, &b)))
}

/// The filter that the last search has found its candidates by, if it was one by features.
fn last_filter(atlas: &Atlas) -> Result<Option<FeatureFilter>, ExplainError> {
    Ok(atlas.record::<SimilarRecord>()?.and_then(|similar| similar.search.filter))
}

/// The row of `pairs`.
pub(super) fn pair(atlas: &Atlas, docs: [DocId; 2]) -> Result<Option<PairRow>, ExplainError> {
    if !atlas.has(&TableName::Pairs) {
        return Ok(None);
    }
    let wanted = (docs[0].min(docs[1]), docs[0].max(docs[1]));
    let mut rows = atlas.pairs()?.within(wanted.0..=wanted.0);
    Ok(rows.find(|row| !matches!(row, Ok(row) if (row.a, row.b) != wanted)).transpose()?)
}

/// The rows of `clusters`. They are in order of the cluster, so all are looked at until both have
/// been found.
pub(super) fn clusters(atlas: &Atlas, docs: [DocId; 2]) -> Result<[Option<ClusterRow>; 2], ExplainError> {
    let mut found = [None; 2];
    if !atlas.has(&TableName::Clusters) {
        return Ok(found);
    }
    for row in atlas.clusters()? {
        let row: ClusterRow = row.map_err(|error: TableError| ExplainError::from(error))?;
        for (doc, found) in docs.iter().zip(&mut found) {
            if row.doc == *doc {
                *found = Some(row);
            }
        }
        if found.iter().all(Option::is_some) {
            break;
        }
    }
    Ok(found)
}
