//! Proves the groups of an atlas by the definitions, from the tables alone.

use std::collections::BTreeMap;
use std::path::Path;

use crate::check::{Demands, Verdict, check as check_group};
use crate::component::Web;
use crate::principal::Chosen;
use crate::{Graph, Group, Member, Merge, Page, Replica};
use onionskin_core::{CollectionId, DocId, Packed, SlotId};
use onionskin_similar::{Bits, Resources, SimilarError};
use onionskin_store::table::{CollectionPageRow, document};
use onionskin_store::{Atlas, MemoryBudget, TableName};
use serde::Serialize;

use super::trivial;
use super::{CollectionsRecord, FIXED_BYTES, SearchRecord, dense, open_links};

/// Pages of groups that are looked at in one pass over the links.
const BATCH_PAGES: usize = 1 << 20;

/// What the groups proved to be.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CheckReport {
    /// Groups by what they are.
    pub verdicts: BTreeMap<&'static str, u64>,
    /// How many groups are not what they should be.
    pub violations: u64,
    /// The first hundred of them.
    pub examples: Vec<Violation>,
}

/// A group that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The collection.
    pub group: CollectionId,
    /// What is wrong with it.
    pub problem: String,
}

/// Looks at every group of an atlas: under `--merge strict` and `extended` each must be a similar
/// cluster by definition 8; a tolerant one must have similar pages in every slot.
pub fn check_collections(
    atlas_dir: &Path,
    memory: MemoryBudget,
    work_dir: &Path,
) -> Result<CheckReport, SimilarError> {
    let atlas = Atlas::open(atlas_dir)?;
    let record = atlas.record::<CollectionsRecord>()?.and_then(|record| record.search);
    let SearchRecord { merge, single_site, trivial: kind, .. } =
        record.ok_or_else(|| SimilarError::Missing {
            what: "collections".to_owned(),
            method: "checking them".to_owned(),
            recipe: atlas.manifest().recipe.clone(),
            hint: "run onionskin collections first".to_owned(),
        })?;
    let demands = Demands { definition_8: merge != Merge::Tolerant, single_site };
    let documents = atlas.rows(&TableName::Documents);
    let memory = MemoryBudget::from_bytes(memory.bytes().max(4 * FIXED_BYTES) / 2);
    let resources = Resources { memory, threads: 1, work_dir: work_dir.to_owned() };
    let mut sites = vec![Packed::NONE; usize::try_from(documents).unwrap_or(usize::MAX)];
    let mut texts = vec![0u64; sites.len()];
    for batch in atlas.documents()?.select::<(document::Doc, document::Site, document::TextFp)>() {
        for (doc, site, text) in batch?.rows() {
            *dense(&mut sites, doc)? = site.into();
            *dense(&mut texts, doc)? = text.unwrap_or(0);
        }
    }
    let mut clustered = Vec::new();
    trivial::find(&atlas, kind, documents, &resources, |doc, least| {
        clustered.push((doc, least));
        Ok(())
    })?;
    let web = Web::new(sites, clustered);
    let mut report = CheckReport::default();
    let mut rows = atlas.collection_pages()?.peekable();
    loop {
        let mut batch: Vec<CollectionPageRow> = Vec::new();
        while let Some(row) = rows.next() {
            batch.push(row?);
            let last = batch.last().map(|row| row.group);
            let group_ends = !matches!(rows.peek(), Some(Ok(next)) if Some(next.group) == last);
            if batch.len() >= BATCH_PAGES && group_ends {
                break;
            }
        }
        if batch.is_empty() {
            return Ok(report);
        }
        check_batch(&atlas, &web, &texts, demands, &batch, &mut report)?;
    }
}

fn check_batch(
    atlas: &Atlas,
    web: &Web,
    texts: &[u64],
    demands: Demands,
    batch: &[CollectionPageRow],
    report: &mut CheckReport,
) -> Result<(), SimilarError> {
    let mut wanted = Bits::new(web.documents().into());
    for row in batch {
        if row.doc.get() >= web.documents() {
            let words =
                format!("collection_pages: document {}, but the atlas has {}", row.doc, web.documents());
            return Err(SimilarError::Parameters(words));
        }
        wanted.set(row.doc);
    }
    let mut links: Vec<(DocId, DocId)> = Vec::new();
    for link in open_links(atlas, web.documents())? {
        let (source, destination) = link?;
        if wanted.get(source) && wanted.get(destination) {
            links.push((source, destination));
        }
    }
    links.sort_unstable();
    for rows in batch.chunk_by(|a, b| a.group == b.group) {
        let group = group_of(rows, web);
        let mut docs: Vec<DocId> = rows.iter().map(|row| row.doc).collect();
        docs.sort_unstable();
        docs.dedup();
        let index = |doc: DocId| docs.binary_search(&doc).ok().map(|at| at as u32);
        let own: Vec<(u32, u32)> = docs
            .iter()
            .flat_map(|&doc| {
                let start = links.partition_point(|link| link.0 < doc);
                links[start..].iter().take_while(move |link| link.0 == doc)
            })
            .filter_map(|&(from, to)| Some((index(from)?, index(to)?)))
            .collect();
        let pages = docs.iter().map(|&doc| Page {
            doc,
            cluster: web.cluster(doc),
            site: web.site(doc).into(),
            linked_from: 0,
        });
        let graph = Graph::new(pages.collect(), own);
        let content = |doc: DocId| Some(texts[doc.index()]).filter(|text| *text != 0);
        match check_group(&group, &graph, demands, content) {
            Ok(verdict) => *report.verdicts.entry(Verdict::as_str(verdict)).or_default() += 1,
            Err(violation) => {
                report.violations += 1;
                if report.examples.len() < 100 {
                    let problem = violation.to_string();
                    report.examples.push(Violation { group: rows[0].group, problem });
                }
            }
        }
    }
    Ok(())
}

fn group_of(rows: &[CollectionPageRow], web: &Web) -> Group {
    let replicas: Vec<Replica> = rows
        .chunk_by(|a, b| a.replica == b.replica)
        .map(|rows| Replica {
            site: rows.iter().find(|row| !row.is_virtual).and_then(|row| web.site(row.doc)),
            members: rows.iter().map(|row| Member { slot: row.slot, doc: row.doc, role: row.role }).collect(),
        })
        .collect();
    let slots = rows.iter().map(|row| row.slot.get().saturating_add(1)).max().unwrap_or(0);
    Group { slots, root: SlotId::MIN, principal: 0, chosen: Chosen::default(), replicas }
}
