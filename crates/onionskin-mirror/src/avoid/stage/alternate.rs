//! Pages that can stand in for one that is gone.

#![cfg_attr(feature = "openapi", allow(unused_qualifications, reason = "what utoipa writes has them"))]

use std::collections::BTreeMap;
use std::path::Path;

use crate::place;
use onionskin_core::{CollectionId, DocId};
use onionskin_extract::url::{normalize, site, without_user};
use onionskin_store::table::document::{Doc, Url};
use onionskin_store::table::{CollectionRow, CopyKind};
use onionskin_store::{Atlas, StageName, TableName};
use serde::{Serialize, Serializer};

use super::{AvoidError, open};

/// Why a page can stand in for another.
///
/// In JSON the words of [`Why::as_str`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It says the same, word for word.
    ExactCopy,
    /// It says nearly the same.
    NearCopy,
    /// It is the same page of another copy of the collection, changed.
    SamePage,
    /// It stands where the page stood, in another copy of the collection. The page itself was never
    /// seen.
    SamePlace,
}

impl Why {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Why::ExactCopy => "exact copy",
            Why::NearCopy => "near copy",
            Why::SamePage => "same page of a mirror",
            Why::SamePlace => "same place of a mirror",
        }
    }
}

impl Serialize for Why {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A page that can stand in.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Alternate {
    /// The document.
    #[cfg_attr(feature = "openapi", schema(value_type = u32))]
    pub doc: DocId,
    /// Its address, without a user name and a password.
    pub url: String,
    /// Why.
    #[cfg_attr(feature = "openapi", schema(value_type = String))]
    pub why: Why,
    /// Its resemblance to the centre of the cluster that both are in.
    pub resemblance: Option<f64>,
    /// The collection that both are in.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>))]
    pub group: Option<CollectionId>,
}

/// Finds pages that can stand in for an address, the best first: copies of the page where the atlas
/// has it, else what stands at the same place in mirrors of the collection that the address would
/// belong to.
pub fn alternates(atlas_dir: &Path, url: &str) -> Result<Vec<Alternate>, AvoidError> {
    let url = normalize(url).ok_or_else(|| AvoidError::Url { url: url.to_owned() })?;
    let atlas = open(atlas_dir, TableName::Clusters, StageName::Similar)?;
    let mut docs = Vec::new();
    for batch in atlas.documents()?.select::<(Doc, Url)>() {
        docs.extend(batch?.rows().filter(|(_, here)| *here == Some(&url)).map(|(doc, _)| doc));
    }
    let mut found: BTreeMap<DocId, (Why, Option<f64>, Option<CollectionId>)> = BTreeMap::new();
    let mut by_place = Vec::new();
    if docs.is_empty() {
        by_place = places(&atlas, &url)?;
    } else {
        similar(&atlas, &docs, &mut found)?;
        same_pages(&atlas, &docs, &mut found)?;
    }
    let mut alternates = Vec::new();
    for batch in atlas.documents()?.select::<(Doc, Url)>() {
        for (doc, here) in batch?.rows() {
            // The address of another user is the same address.
            let Some(here) = here.filter(|here| without_user(here) != without_user(&url)) else { continue };
            let place = by_place.iter().find(|(place, _)| place == here);
            let known = found.get(&doc).copied();
            if let Some((why, resemblance, group)) =
                known.or(place.map(|(_, group)| (Why::SamePlace, None, Some(*group))))
            {
                alternates.push(Alternate {
                    doc,
                    url: without_user(here).into_owned(),
                    why,
                    resemblance,
                    group,
                });
            }
        }
    }
    rank(&mut alternates);
    Ok(alternates)
}

/// Puts the best first: by why they can stand in, then by resemblance.
pub fn rank(alternates: &mut [Alternate]) {
    alternates.sort_by_key(|alternate| {
        (alternate.why, -(alternate.resemblance.unwrap_or(0.0) * 1e9) as i64, alternate.doc)
    });
}

/// The other members of the clusters of some documents.
fn similar(
    atlas: &Atlas,
    docs: &[DocId],
    found: &mut BTreeMap<DocId, (Why, Option<f64>, Option<CollectionId>)>,
) -> Result<(), AvoidError> {
    let mut ours = BTreeMap::new();
    for row in atlas.clusters()? {
        let row = row?;
        if docs.contains(&row.doc) {
            ours.insert(row.cluster, row.is_centre || row.kind == CopyKind::Exact);
        }
    }
    for row in atlas.clusters()? {
        let row = row?;
        if let Some(&is_exact) = ours.get(&row.cluster)
            && !docs.contains(&row.doc)
        {
            // Two pages that both have the text of the centre have one text.
            let same = is_exact && (row.is_centre || row.kind == CopyKind::Exact);
            let why = if same { Why::ExactCopy } else { Why::NearCopy };
            found.insert(row.doc, (why, Some(row.resemblance_to_centre), None));
        }
    }
    Ok(())
}

/// Pages of the same slot in other replicas.
fn same_pages(
    atlas: &Atlas,
    docs: &[DocId],
    found: &mut BTreeMap<DocId, (Why, Option<f64>, Option<CollectionId>)>,
) -> Result<(), AvoidError> {
    if !atlas.has(&TableName::CollectionPages) {
        return Ok(());
    }
    let mut slots = Vec::new();
    for row in atlas.collection_pages()? {
        let row = row?;
        if docs.contains(&row.doc) && !row.is_virtual {
            slots.push((row.group, row.slot));
        }
    }
    for row in atlas.collection_pages()? {
        let row = row?;
        if slots.contains(&(row.group, row.slot)) && !docs.contains(&row.doc) && !row.is_virtual {
            found.entry(row.doc).or_insert((Why::SamePage, None, None)).2 = Some(row.group);
        }
    }
    Ok(())
}

/// Addresses in other replicas that correspond to one that is in the folder of a replica, with the
/// group.
fn places(atlas: &Atlas, url: &str) -> Result<Vec<(String, CollectionId)>, AvoidError> {
    if !atlas.has(&TableName::Collections) {
        return Ok(Vec::new());
    }
    let rows: Vec<CollectionRow> = atlas.collections()?.collect::<Result<_, _>>()?;
    Ok(corresponding_places(&rows, url))
}

/// Addresses in other replicas that correspond to one that is in the folder of a replica, with the
/// group.
pub fn corresponding_places<'a>(
    replicas: impl IntoIterator<Item = &'a CollectionRow>,
    url: &str,
) -> Vec<(String, CollectionId)> {
    let rows: Vec<&CollectionRow> = replicas.into_iter().collect();
    let (host, path) = (site(url), place::path(url));
    // The deepest folder that the address is in.
    let here = rows
        .iter()
        .filter(|row| row.root_url.as_deref().and_then(site) == host && place::is_below(path, &row.folder))
        .max_by_key(|row| (row.folder.len(), std::cmp::Reverse((row.group, row.replica))));
    let Some(here) = here else { return Vec::new() };
    let others = rows.iter().filter(|row| row.group == here.group && row.replica != here.replica);
    let places = others.filter_map(|row| {
        let root = row.root_url.as_deref()?;
        let origin = &root[..root.len() - place::path(root).len()];
        // Common folders differ where one copy has only a part; roots correspond.
        let (ours, theirs) = place::corresponding(place::path(here.root_url.as_deref()?), place::path(root));
        let rest = path.strip_prefix(ours)?;
        Some((format!("{origin}{theirs}{rest}"), row.group))
    });
    places.collect()
}
