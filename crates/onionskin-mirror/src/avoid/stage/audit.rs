//! An old list against a new crawl.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::avoid::{AuditParams, Audited, AvoidList, Date, Matcher, Seen, audit_entry};
use crate::place;
use onionskin_core::{DocId, Packed};
use onionskin_extract::url::site;
use onionskin_similar::Resources;
use onionskin_store::table::document;
use onionskin_store::{Atlas, MemoryBudget};
use onionskin_store::{StageName, TableName};
use serde::Serialize;

use super::{AvoidError, documents, open};
use crate::stage::trivial::{self, Trivial};

/// An entry of the old list, judged.
#[derive(Clone, Debug, Serialize)]
#[serde(into = "Fields")]
pub struct AuditedEntry {
    /// Its number in the list.
    pub entry: usize,
    /// Root address of the replica.
    pub root: String,
    /// The host that its rules hold for.
    pub host: String,
    /// What the new crawl has of it.
    pub seen: Seen,
    /// What that means.
    pub audited: Audited,
}

/// An audited entry as programs see it.
#[derive(Serialize)]
struct Fields {
    entry: usize,
    root: String,
    host: String,
    verdict: &'static str,
    stays: bool,
    reason: String,
    look_again: String,
    pages: u64,
    copies_of_principal: u64,
    copies_elsewhere: u64,
    unique: u64,
    principal_pages: u64,
}

impl From<AuditedEntry> for Fields {
    fn from(entry: AuditedEntry) -> Fields {
        let AuditedEntry { entry, root, host, seen, audited } = entry;
        Fields {
            entry,
            root,
            host,
            verdict: audited.verdict.name(),
            stays: audited.verdict.stays(),
            reason: audited.reason,
            look_again: audited.look_again.to_string(),
            pages: seen.pages,
            copies_of_principal: seen.copies_of_principal,
            copies_elsewhere: seen.copies_elsewhere,
            unique: seen.unique(),
            principal_pages: seen.principal_pages,
        }
    }
}

/// What each document is connected with by similar pairs: the smallest of them, as collections see
/// it. Four bytes per document.
fn connected(atlas: &Atlas) -> Result<Vec<Packed<DocId>>, AvoidError> {
    let n = documents(atlas);
    let memory = MemoryBudget::default_for_machine();
    let resources = Resources { memory, threads: 1, work_dir: std::env::temp_dir() };
    let mut least_of = vec![Packed::NONE; usize::try_from(n).unwrap_or(usize::MAX)];
    trivial::find(atlas, Trivial::Transitive, n, &resources, |doc, least| {
        least_of[doc.index()] = least.into();
        Ok(())
    })?;
    Ok(least_of)
}

/// Judges every entry of a list by a new atlas. A page under an entry's rules is a copy of the
/// principal when one of its cluster is in the folder of the principal's root.
pub fn audit(
    list: &AvoidList,
    atlas_dir: &Path,
    crawled: Date,
    params: &AuditParams,
) -> Result<Vec<AuditedEntry>, AvoidError> {
    let atlas = open(atlas_dir, TableName::Pairs, StageName::Similar)?;
    let clusters = connected(&atlas)?;
    let matcher = Matcher::new(list);
    let mut principals: HashMap<&str, Vec<(&str, usize)>> = HashMap::new();
    for (number, entry) in list.entries.iter().enumerate() {
        if let Some(host) = site(&entry.principal) {
            let folder = place::folder(place::path(&entry.principal));
            principals.entry(host).or_default().push((folder, number));
        }
    }
    let mut seen = vec![Seen::default(); list.entries.len()];
    // Clusters with a page under an entry's rules, with one of its principal, and with any page
    // elsewhere.
    let mut under: Vec<(usize, Option<DocId>)> = Vec::new();
    let mut of_principal: HashSet<(DocId, usize)> = HashSet::new();
    let mut elsewhere: HashMap<DocId, u64> = HashMap::new();
    let mut hosts_seen: HashSet<String> = HashSet::new();
    for batch in atlas.documents()?.select::<(document::Doc, document::Url)>() {
        for (doc, url) in batch?.rows() {
            let Some(url) = url else { continue };
            let cluster = clusters.get(doc.index()).and_then(|cluster| cluster.get());
            let hit = matcher.find(url);
            if let Some(hit) = hit {
                seen[hit.entry].pages += 1;
                under.push((hit.entry, cluster));
            } else if let Some(cluster) = cluster {
                *elsewhere.entry(cluster).or_default() += 1;
            }
            let Some(host) = site(url) else { continue };
            if !hosts_seen.contains(host) {
                hosts_seen.insert(host.to_owned());
            }
            for &(folder, number) in principals.get(host).into_iter().flatten() {
                // What an entry skips is not what is kept instead of it, even in one folder.
                if place::is_below(place::path(url), folder) && hit.is_none_or(|hit| hit.entry != number) {
                    seen[number].principal_pages += 1;
                    of_principal.extend(cluster.map(|cluster| (cluster, number)));
                }
            }
        }
    }
    for (entry, cluster) in under {
        match cluster {
            Some(cluster) if of_principal.contains(&(cluster, entry)) => seen[entry].copies_of_principal += 1,
            Some(cluster) if elsewhere.contains_key(&cluster) => seen[entry].copies_elsewhere += 1,
            _ => {}
        }
    }
    let audited = list.entries.iter().enumerate().map(|(number, entry)| {
        let mut seen = seen[number];
        seen.asked = hosts_seen.contains(entry.host.name());
        AuditedEntry {
            entry: number,
            root: entry.root.clone(),
            host: entry.host.as_str().to_owned(),
            seen,
            audited: audit_entry(entry, &seen, crawled, params),
        }
    });
    Ok(audited.collect())
}
