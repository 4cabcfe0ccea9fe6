//! Collections against the mirrors of a truth.
//!
//! A generated web says where each target and each of its mirrors stands: a host and a folder. A
//! page belongs to the deepest such place that it is in. A collection that was found *corresponds*
//! to the place that most of its pages are in, as a person would say who looks at it (Cho et al.
//! 2000, section 4). What corresponds to no place, and the smaller pieces of what was found in
//! several, are problem collections.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::Path;

use onionskin_core::{CollectionId, Packed, ReplicaId};
use onionskin_extract::url::site;
use onionskin_mirror::place;
use onionskin_store::table::document;
use onionskin_store::{Atlas, TableName};
use serde::{Deserialize, Serialize};

use super::EvaluateError;

/// A place counts as found whole when one collection has this share of its pages.
const WHOLE: f64 = 0.8;
/// And when others have no more than this share: two pages that also stand elsewhere do not break a
/// mirror.
const SCRAPS: f64 = 0.1;

/// How well mirrors were found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MirrorScore {
    /// Targets: collections that have mirrors.
    pub targets: u64,
    /// Targets of which two copies or more were found in one group.
    pub targets_found: u64,
    /// Mirrors of them.
    pub mirrors: u64,
    /// Mirrors that were found, whole or in pieces, in a group with another copy.
    pub mirrors_found: u64,
    /// Mirrors of which one collection has four fifths of the pages, in one group with most copies
    /// of the target, and others have no more than a tenth together.
    pub mirrors_whole: u64,
    /// By kind of mirror: how many there are, and how many of them are whole.
    pub by_kind: BTreeMap<String, (u64, u64)>,
    /// Collections that were found, copies counted one by one.
    pub collections: u64,
    /// Of these, those that correspond to no place, or are pieces of one.
    pub problems: u64,
    /// The same without groups of fewer than ten pages.
    pub collections_without_noise: u64,
    /// The same.
    pub problems_without_noise: u64,
    /// Mirrors that were not found whole: where they stand, and why.
    pub misses: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct MirrorLine {
    target: String,
    replica: String,
    #[serde(default)]
    kind: String,
}

/// A place of the truth.
struct Place {
    target: usize,
    root: String,
    kind: String,
    pages: u64,
    /// Group, pages, whether the group is noise: what was found there, largest first.
    found: Vec<(CollectionId, u64)>,
}

/// A collection and one of its copies.
type Of = (CollectionId, ReplicaId);

/// Holds the collections of an atlas against the mirrors of a truth; `None` when there is one
/// without the other.
pub fn evaluate_mirrors(atlas_dir: &Path, truth: &Path) -> Result<Option<MirrorScore>, EvaluateError> {
    let atlas = Atlas::open(atlas_dir)?;
    if !atlas.has(&TableName::CollectionGroups) {
        return Ok(None);
    }
    let (mut places, by_host) = read_places(truth)?;
    if places.is_empty() {
        return Ok(None);
    }
    let mut place_of: Vec<Packed<u32>> = Vec::new();
    for batch in atlas.documents()?.select::<(document::Url,)>() {
        for (url,) in batch?.rows() {
            let here = url.and_then(|url| {
                let regions = by_host.get(site(url)?)?;
                regions
                    .iter()
                    .find(|(folder, _)| place::is_below(place::path(url), folder))
                    .map(|region| region.1)
            });
            if let Some(here) = here {
                places[here as usize].pages += 1;
            }
            place_of.push(here.into());
        }
    }
    let mut noise = HashMap::new();
    for group in atlas.collection_groups()? {
        let group = group?;
        noise.insert(group.group, group.is_noise);
    }
    let mut score = MirrorScore::default();
    // Pages of one collection by place.
    let mut current: Option<(Of, BTreeMap<Packed<u32>, u64>)> = None;
    let mut finish = |((group, _), counts): (Of, BTreeMap<Packed<u32>, u64>)| {
        let all: u64 = counts.values().sum();
        let most = counts.iter().max_by_key(|(place, n)| (**n, std::cmp::Reverse(**place)));
        let here = most.filter(|(_, n)| **n * 2 > all).and_then(|(place, n)| Some((place.get()?, *n)));
        let is_noise = noise.get(&group).copied().unwrap_or(false);
        score.collections += 1;
        score.collections_without_noise += u64::from(!is_noise);
        match here {
            Some((place, n)) => places[place as usize].found.push((group, n)),
            None => {
                score.problems += 1;
                score.problems_without_noise += u64::from(!is_noise);
            }
        }
    };
    for row in atlas.collection_pages()? {
        let row = row?;
        if row.is_virtual {
            continue;
        }
        let key = (row.group, row.replica);
        if current.as_ref().is_none_or(|(at, _)| *at != key)
            && let Some(done) = current.replace((key, BTreeMap::new()))
        {
            finish(done);
        }
        if let Some((_, counts)) = &mut current {
            let place = place_of.get(row.doc.index()).copied().unwrap_or_default();
            *counts.entry(place).or_default() += 1;
        }
    }
    if let Some(done) = current {
        finish(done);
    }
    judge(&mut places, &noise, &mut score);
    Ok(Some(score))
}

/// Folders and place numbers of each host, deepest first.
type ByHost = HashMap<String, Vec<(String, u32)>>;

fn read_places(truth: &Path) -> Result<(Vec<Place>, ByHost), EvaluateError> {
    let io = |source| EvaluateError::Io { path: truth.to_owned(), source };
    let file = std::fs::File::open(truth).map_err(io)?;
    let mut places: Vec<Place> = Vec::new();
    let mut number_of: HashMap<String, usize> = HashMap::new();
    let mut targets = 0;
    for line in BufReader::new(file).lines() {
        let line = line.map_err(io)?;
        if !line.contains("\"mirror\"") {
            continue;
        }
        let Ok(mirror) = serde_json::from_str::<MirrorLine>(&line) else { continue };
        let target = match number_of.get(&mirror.target) {
            Some(&at) => places[at].target,
            None => {
                number_of.insert(mirror.target.clone(), places.len());
                let kind = String::new();
                places.push(Place {
                    target: targets,
                    root: mirror.target,
                    kind,
                    pages: 0,
                    found: Vec::new(),
                });
                targets += 1;
                targets - 1
            }
        };
        places.push(Place { target, root: mirror.replica, kind: mirror.kind, pages: 0, found: Vec::new() });
    }
    let mut by_host = ByHost::new();
    for (number, place) in (0..).zip(&places) {
        let Some(host) = site(&place.root) else { continue };
        let folder = place::folder(place::path(&place.root)).to_owned();
        by_host.entry(host.to_owned()).or_default().push((folder, number));
    }
    for regions in by_host.values_mut() {
        regions.sort_by_key(|(folder, number)| (std::cmp::Reverse(folder.len()), *number));
    }
    Ok((places, by_host))
}

fn judge(places: &mut [Place], noise: &HashMap<CollectionId, bool>, score: &mut MirrorScore) {
    for place in places.iter_mut() {
        place.found.sort_by_key(|&(group, pages)| (std::cmp::Reverse(pages), group));
        for (group, _) in place.found.iter().skip(1) {
            score.problems += 1;
            score.problems_without_noise += u64::from(!noise.get(group).copied().unwrap_or(false));
        }
    }
    // Targets come before their mirrors, and sorting leaves it so.
    places.sort_by_key(|place| place.target);
    for of_target in places.chunk_by(|a, b| a.target == b.target) {
        score.targets += 1;
        score.mirrors += of_target.len() as u64 - 1;
        // Copies and pages by group.
        let mut copies: BTreeMap<CollectionId, (u64, u64)> = BTreeMap::new();
        for place in of_target {
            let mut groups: BTreeMap<CollectionId, u64> = BTreeMap::new();
            place.found.iter().for_each(|(group, pages)| *groups.entry(*group).or_default() += pages);
            for (group, pages) in groups {
                let (n, all) = copies.entry(group).or_default();
                *n += 1;
                *all += pages;
            }
        }
        // The group that most copies of the target are in, with most of their pages.
        let main =
            copies.iter().max_by_key(|(group, n)| (**n, std::cmp::Reverse(**group))).map(|(group, _)| *group);
        score.targets_found += u64::from(copies.values().any(|(n, _)| *n > 1));
        for place in &of_target[1..] {
            score.mirrors_found += u64::from(place.found.iter().any(|(group, _)| copies[group].0 > 1));
            let others: u64 = place.found.iter().skip(1).map(|(_, pages)| pages).sum();
            let problem = match place.found.first() {
                None => Some("not found".to_owned()),
                Some(_) if others as f64 > SCRAPS * place.pages as f64 => {
                    Some(format!("in {} pieces", place.found.len()))
                }
                Some((group, _)) if Some(*group) != main => Some("in a group of its own".to_owned()),
                Some((_, pages)) if (*pages as f64) < WHOLE * place.pages as f64 => {
                    Some(format!("{pages} of {} pages", place.pages))
                }
                Some(_) => None,
            };
            let of_kind = score.by_kind.entry(place.kind.clone()).or_default();
            of_kind.0 += 1;
            of_kind.1 += u64::from(problem.is_none());
            match problem {
                None => score.mirrors_whole += 1,
                Some(problem) => score.misses.push((place.root.clone(), problem)),
            }
        }
    }
}
