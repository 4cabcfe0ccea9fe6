//! A collection and how its copies differ from the principal, page by page.

use std::collections::{BTreeMap, HashMap};

use onionskin_core::{CollectionId, DocId, ReplicaId, SlotId};
use onionskin_store::table::{CollectionGroupRow, CollectionRow, Role, document};
use onionskin_store::{Atlas, TableName};

use serde::Serialize;

use super::ExplainError;

/// A copy of a collection against its principal; pages by address.
///
/// In JSON the columns of the table, and the lists under `missing_pages`, `linked_pages`,
/// `changed_pages` and `added_pages`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplicaDifferences {
    /// What the table says of it.
    #[serde(flatten)]
    pub row: CollectionRow,
    /// Pages of the principal that it has not.
    #[serde(rename = "missing_pages")]
    pub missing: Vec<String>,
    /// Pages of the principal that it links to instead of having them.
    #[serde(rename = "linked_pages")]
    pub linked: Vec<String>,
    /// Pages that stand at the same place and are no longer similar: the principal's, and its own.
    #[serde(rename = "changed_pages")]
    pub changed: Vec<(String, String)>,
    /// Pages that the principal has not.
    #[serde(rename = "added_pages")]
    pub added: Vec<String>,
}

/// A collection with all its copies.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectionExplanation {
    /// What the table says of it.
    pub group: CollectionGroupRow,
    /// Its copies, in order.
    pub replicas: Vec<ReplicaDifferences>,
}

/// Tells how the copies of a collection differ. Memory is in proportion to the collection.
pub fn explain_collection(atlas: &Atlas, group: CollectionId) -> Result<CollectionExplanation, ExplainError> {
    let no_collection = || ExplainError::NoCollection {
        collection: group,
        collections: atlas.rows(&TableName::CollectionGroups),
    };
    if !atlas.has(&TableName::CollectionGroups) {
        return Err(no_collection());
    }
    let mut found = None;
    for row in atlas.collection_groups()?.within(group..=group) {
        let row = row?;
        if row.group == group {
            found = Some(row);
        }
    }
    let found = found.ok_or_else(no_collection)?;
    let mut rows: Vec<CollectionRow> = Vec::new();
    for row in atlas.collections()?.within(group..=group) {
        let row = row?;
        if row.group == group {
            rows.push(row);
        }
    }
    // Pages of every replica by slot, second addresses left out: document and role.
    let mut pages: BTreeMap<ReplicaId, BTreeMap<SlotId, (DocId, Role)>> = BTreeMap::new();
    for page in atlas.collection_pages()?.within(group..=group) {
        let page = page?;
        if page.group == group && page.role != Role::Alias {
            pages.entry(page.replica).or_default().insert(page.slot, (page.doc, page.role));
        }
    }
    let mut urls: HashMap<DocId, String> =
        pages.values().flat_map(BTreeMap::values).map(|(doc, _)| (*doc, String::new())).collect();
    for batch in atlas.documents()?.select::<(document::Doc, document::Url)>() {
        for (doc, url) in batch?.rows() {
            if let (Some(url), Some(slot)) = (url, urls.get_mut(&doc)) {
                url.clone_into(slot);
            }
        }
    }
    let url = |doc: DocId| urls.get(&doc).cloned().unwrap_or_default();
    let none = BTreeMap::new();
    let principal =
        rows.iter().find(|row| row.is_principal).and_then(|row| pages.get(&row.replica)).unwrap_or(&none);
    let own = |of: &BTreeMap<SlotId, (DocId, Role)>, slot: &SlotId| {
        of.get(slot).filter(|page| page.1 != Role::Virtual).copied()
    };
    let replicas = rows
        .iter()
        .map(|row| {
            let here = pages.get(&row.replica).unwrap_or(&none);
            let mut differences = ReplicaDifferences {
                row: row.clone(),
                missing: Vec::new(),
                linked: Vec::new(),
                changed: Vec::new(),
                added: Vec::new(),
            };
            if row.is_principal {
                return differences;
            }
            for slot in principal.keys() {
                let Some((there, _)) = own(principal, slot) else { continue };
                match here.get(slot) {
                    None => differences.missing.push(url(there)),
                    Some((_, Role::Virtual)) => differences.linked.push(url(there)),
                    Some((doc, Role::Changed)) => differences.changed.push((url(there), url(*doc))),
                    Some(_) => {}
                }
            }
            let added =
                here.iter().filter(|(slot, page)| page.1 != Role::Virtual && own(principal, slot).is_none());
            differences.added = added.map(|(_, (doc, _))| url(*doc)).collect();
            differences
        })
        .collect();
    Ok(CollectionExplanation { group: found, replicas })
}
