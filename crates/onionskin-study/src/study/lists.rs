//! Lists of a report: sites, collections, aliases, and the names of documents.

use std::collections::BTreeMap;

use crate::figure::CollectionPoint;
use crate::findings::{self, CollectionRow, Collections, CopiedSite, RuleRow};
use crate::replication::SiteCounts;
use onionskin_core::{CollectionId, DocId, Packed, SiteId};
use onionskin_mirror::CollectionsRecord;
use onionskin_store::table::{CollectionGroupRow, CollectionKind, document};
use onionskin_store::{Atlas, TableName};

use super::ReportError;

/// Sites, collections, aliases and rules that a report lists.
const LISTED: usize = 50;
/// Collections in the scatter; the ones with most copies when there are more.
const POINTS: usize = 20_000;

pub(super) fn cost(cost: onionskin_store::costs::Cost) -> findings::Cost {
    let onionskin_store::costs::Cost { stage, of, seconds, cpu_seconds, peak_memory, resumed } = cost;
    let stage = stage.to_string();
    findings::Cost { stage, of, seconds, cpu_seconds, peak_memory, resumed }
}

/// The address and the title of a document.
type Name = (Option<String>, Option<String>);

/// Address and title of some documents, in their order. Only the row groups that have them are
/// read.
pub(super) fn names(atlas: &Atlas, wanted: &[DocId]) -> Result<Vec<Name>, ReportError> {
    let mut found: BTreeMap<DocId, Option<Name>> = wanted.iter().map(|doc| (*doc, None)).collect();
    for doc in wanted {
        if found.get(doc).is_some_and(Option::is_some) {
            continue;
        }
        let named = atlas.documents()?.select::<(document::Doc, document::Url, document::Title)>();
        for batch in named.within(*doc..=*doc) {
            for (here, url, title) in batch?.rows() {
                if let Some(name) = found.get_mut(&here) {
                    *name = Some((url.map(str::to_owned), title.map(str::to_owned)));
                }
            }
        }
    }
    Ok(wanted.iter().map(|doc| found.get(doc).cloned().flatten().unwrap_or_default()).collect())
}

/// The sites with most duplicates.
pub(super) fn copied_sites(atlas: &Atlas, sites: &[SiteCounts]) -> Result<Vec<CopiedSite>, ReportError> {
    let mut order: Vec<usize> = (0..sites.len()).filter(|site| sites[*site].clustered > 0).collect();
    let key = |site: &usize| {
        (std::cmp::Reverse(sites[*site].duplicates), std::cmp::Reverse(sites[*site].clustered), *site)
    };
    if order.len() > LISTED {
        order.select_nth_unstable_by_key(LISTED, key);
        order.truncate(LISTED);
    }
    order.sort_unstable_by_key(key);
    if order.is_empty() {
        return Ok(Vec::new());
    }
    let mut hosts: BTreeMap<usize, String> = BTreeMap::new();
    for batch in atlas.sites()? {
        for row in batch?.rows() {
            if order.contains(&row.site.index()) {
                hosts.insert(row.site.index(), row.host.to_owned());
            }
        }
    }
    let listed = order
        .into_iter()
        .map(|site| CopiedSite { host: hosts.remove(&site).unwrap_or_default(), counts: sites[site] });
    Ok(listed.collect())
}

/// What the search for mirrors has left.
pub(super) fn collections(atlas: &Atlas) -> Result<Option<Collections>, ReportError> {
    if !atlas.has(&TableName::CollectionGroups) {
        return Ok(None);
    }
    let record = atlas.record::<CollectionsRecord>()?.and_then(|record| record.search);
    let merge = record.map(|search| search.merge.to_string()).unwrap_or_default();
    let mut found = Collections { merge, ..Collections::default() };
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut top: Vec<CollectionGroupRow> = Vec::new();
    // The ones that are copied most often first, and of these the large ones.
    let key = |row: &CollectionGroupRow| (std::cmp::Reverse((row.replicas, row.slots)), row.group);
    let mut aliases: BTreeMap<CollectionId, u64> = BTreeMap::new();
    for row in atlas.collection_groups()? {
        let row = row?;
        found.points.push(CollectionPoint {
            cardinality: row.replicas,
            size: row.slots,
            name: row.name.clone(),
            kind: row.kind.to_string(),
        });
        if found.points.len() >= 2 * POINTS {
            shorten(&mut found.points);
        }
        if row.is_noise {
            found.noise += 1;
            continue;
        }
        found.groups += 1;
        found.duplicate_pages += row.duplicate_pages;
        found.duplicate_bytes += row.duplicate_bytes;
        *kinds.entry(row.kind.to_string()).or_insert(0) += 1;
        if row.kind == CollectionKind::HostAlias {
            aliases.insert(row.group, row.slots);
        }
        top.push(row);
        if top.len() >= 2 * LISTED {
            top.sort_by_key(key);
            top.truncate(LISTED);
        }
    }
    top.sort_by_key(key);
    top.truncate(LISTED);
    if found.points.len() > POINTS {
        shorten(&mut found.points);
    }
    found.kinds = kinds.into_iter().collect();
    let mut roots: BTreeMap<CollectionId, Option<String>> = top.iter().map(|row| (row.group, None)).collect();
    // The site of the principal, and sites and pages of the others.
    type Hosts = (Option<Packed<SiteId>>, Vec<(Packed<SiteId>, u64)>);
    let mut hosts: BTreeMap<CollectionId, Hosts> = BTreeMap::new();
    for row in atlas.collections()? {
        let row = row?;
        if row.is_principal
            && let Some(root) = roots.get_mut(&row.group)
        {
            root.clone_from(&row.root_url);
        }
        if aliases.contains_key(&row.group) {
            let of = hosts.entry(row.group).or_default();
            if row.is_principal {
                of.0 = Some(row.site.into());
            } else {
                of.1.push((row.site.into(), row.pages));
            }
        }
    }
    let mut pairs: Vec<(Packed<SiteId>, Packed<SiteId>, u64)> = hosts
        .into_values()
        .filter_map(|(principal, copies)| principal.map(|principal| (principal, copies)))
        .flat_map(|(principal, copies)| copies.into_iter().map(move |(site, pages)| (site, principal, pages)))
        .filter(|(site, principal, _)| site != principal)
        .collect();
    pairs.sort_unstable_by_key(|(site, principal, pages)| (std::cmp::Reverse(*pages), *site, *principal));
    pairs.truncate(LISTED);
    found.aliases = with_hosts(atlas, &pairs)?;
    found.top = top
        .into_iter()
        .map(|row| CollectionRow {
            root: roots.remove(&row.group).flatten(),
            name: row.name,
            kind: row.kind.to_string(),
            replicas: row.replicas,
            size: row.slots,
            sites: row.sites,
            duplicate_pages: row.duplicate_pages,
        })
        .collect();
    if atlas.has(&TableName::UrlRules) {
        for row in atlas.url_rules()?.take(LISTED) {
            let row = row?;
            found.rules.push(RuleRow {
                host: row.host,
                kind: row.kind,
                pattern: row.pattern,
                support: row.support,
                checked: row.checked,
                from: row.example_from,
                to: row.example_to,
            });
        }
    }
    Ok(Some(found))
}

fn shorten(points: &mut Vec<CollectionPoint>) {
    points.sort_by(|a, b| (b.cardinality, b.size, &a.name).cmp(&(a.cardinality, a.size, &b.name)));
    points.truncate(POINTS);
}

fn with_hosts(
    atlas: &Atlas,
    pairs: &[(Packed<SiteId>, Packed<SiteId>, u64)],
) -> Result<Vec<(String, String, u64)>, ReportError> {
    let mut hosts: BTreeMap<Packed<SiteId>, String> = pairs
        .iter()
        .flat_map(|(alias, principal, _)| [(*alias, String::new()), (*principal, String::new())])
        .collect();
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    for batch in atlas.sites()? {
        for row in batch?.rows() {
            if let Some(host) = hosts.get_mut(&row.site.into()) {
                row.host.clone_into(host);
            }
        }
    }
    let host = |site: &Packed<SiteId>| hosts.get(site).cloned().unwrap_or_default();
    Ok(pairs.iter().map(|(alias, principal, pages)| (host(alias), host(principal), *pages)).collect())
}
