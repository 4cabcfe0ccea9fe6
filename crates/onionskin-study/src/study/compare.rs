//! Two crawls compared: what is new, what is gone, what is still copied.
//!
//! ```text
//! documents of both ─▶ by address ─▶ in both, new, gone ─┐
//! texts of both ──────────────────────────────────────────┴▶ by text ─▶ which of the new and gone ones the other crawl has elsewhere
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::findings::Level;
use crate::replication::PartCounts;
use crate::report::{Changes, Fate, MirrorChanges, SiteChanges};
use onionskin_core::{DocId, Packed, SiteId};
use onionskin_store::join::SortedCursor;
use onionskin_store::schema::LevelName;
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::table::document::{Doc, Site, TextFp, Url};
use onionskin_store::{Atlas, MemoryBudget, TableName};
use xxhash_rust::xxh3::xxh3_128;

use super::{Places, ReportError, ReportParams, Study, WorkDir, name_of};
use onionskin_similar::levels;
use onionskin_store::progress::{Event, Progress};

/// What to compare, and how.
#[derive(Clone, Debug)]
pub struct CompareParams {
    /// The atlas of the earlier crawl.
    pub earlier: PathBuf,
    /// The atlas of the later one.
    pub later: PathBuf,
    /// Memory for everything.
    pub memory: MemoryBudget,
    /// A folder for files that do not outlive the work; made when needed, and removed.
    pub work_dir: PathBuf,
}

/// Sites and copies that are listed.
const LISTED: usize = 50;

/// Address, crawl (0, 1), document; text; flags and site.
type ByAddress = ((u128, u8, DocId), u64, (u8, Packed<SiteId>));
const HAS_TEXT: u8 = 1;
const IS_COPIED: u8 = 2;
/// Text, and who speaks of it: crawls that have it before addresses that ask.
type ByText = (u64, u8);
const NEW: u8 = 2;
const GONE: u8 = 3;

/// Pages of a site: before, after, new, gone.
type SitePages = [u64; 4];

/// Compares two crawls.
pub fn compare(params: &CompareParams, progress: &dyn Progress) -> Result<Changes, ReportError> {
    let work = WorkDir::new(&params.work_dir)?;
    let atlases = [Atlas::open(&params.earlier)?, Atlas::open(&params.later)?];
    let folders = [&params.earlier, &params.later];
    let of = folders.map(|folder| ReportParams {
        memory: params.memory,
        ..ReportParams::new(folder.clone(), params.work_dir.clone())
    });
    let studies = [
        Study::new(&of[0], &atlases[0], work.path.clone())?,
        Study::new(&of[1], &atlases[1], work.path.clone())?,
    ];
    let level = common_level(&studies)?;
    let mut changes = Changes {
        earlier: name_of(&params.earlier),
        later: name_of(&params.later),
        tool: atlases[1].manifest().tool.clone(),
        level: Level::spell(level.as_str()).1,
        ..Changes::default()
    };
    if changes.earlier == changes.later {
        // Two folders of the same name are told apart by their paths.
        changes.earlier = params.earlier.display().to_string();
        changes.later = params.later.display().to_string();
    }
    progress.event(Event::Step { name: "comparing pages" });
    let sort = || SortParams::new(&work.path, studies[0].resources().memory.share(3, 8));
    let mut by_address = Sorter::<ByAddress>::new(sort())?;
    let mut by_text = Sorter::<ByText>::new(sort())?;
    let mut sites = Sites::default();
    for (side, (study, atlas)) in (0u8..).zip(studies.iter().zip(&atlases)) {
        let numbers = sites.of(atlas)?;
        let mut copies = SortedCursor::new(study.copies(atlas, &level)?);
        let [documents, without] =
            [&mut changes.documents, &mut changes.without_address].map(|of| &mut of[usize::from(side)]);
        for batch in atlas.documents()?.select::<(Doc, Url, Site, TextFp)>() {
            for (here, url, site, text_fp) in batch?.rows() {
                *documents += 1;
                let copied = copies.next_if(|(doc, _)| *doc <= here)?.is_some_and(|(doc, _)| doc == here);
                if let Some(text) = text_fp {
                    by_text.push((text, side))?;
                }
                let Some(url) = url else {
                    *without += 1;
                    continue;
                };
                let flags = if text_fp.is_some() { HAS_TEXT } else { 0 } | if copied { IS_COPIED } else { 0 };
                let site = site.and_then(|site| numbers.get(site.index())).copied();
                let key = (xxh3_128(url.as_bytes()), side, here);
                by_address.push((key, text_fp.unwrap_or(0), (flags, site.into())))?;
            }
        }
    }
    let mut pages: Vec<SitePages> = vec![[0; 4]; sites.hosts.len()];
    let mut group: [Option<ByAddress>; 2] = [None, None];
    let mut current = None;
    for record in by_address.finish()? {
        let record = record?;
        let (address, side, _) = record.0;
        if current.is_some_and(|of| of != address) {
            add(&mut changes, &mut pages, &mut by_text, std::mem::take(&mut group))?;
        }
        current = Some(address);
        // The last document of an address comes last.
        group[usize::from(side)] = Some(record);
    }
    add(&mut changes, &mut pages, &mut by_text, group)?;
    let mut known = (None, [false; 2]);
    for record in by_text.finish()? {
        let (text, who) = record?;
        if known.0 != Some(text) {
            known = (Some(text), [false; 2]);
        }
        match who {
            NEW => changes.new.text_elsewhere += u64::from(known.1[0]),
            GONE => changes.gone.text_elsewhere += u64::from(known.1[1]),
            side => known.1[usize::from(side)] = true,
        }
    }
    tell_sites(&mut changes, &sites, &pages);
    progress.event(Event::Step { name: "counting copies" });
    changes.levels = common_levels(&studies)?;
    changes.mirrors = mirrors(&atlases)?;
    Ok(changes)
}

/// An address with its last documents in both crawls.
fn add(
    changes: &mut Changes,
    pages: &mut [SitePages],
    by_text: &mut Sorter<ByText>,
    group: [Option<ByAddress>; 2],
) -> Result<(), ReportError> {
    let count = |fate: &mut Fate, (_, _, (flags, _)): &ByAddress| {
        fate.addresses += 1;
        fate.empty += u64::from(flags & HAS_TEXT == 0);
        fate.copied += u64::from(flags & IS_COPIED != 0);
    };
    let site = group.iter().flatten().map(|(_, _, (_, site))| *site).next();
    let mut none = [0; 4];
    let of_site = site.and_then(|site| pages.get_mut(site.get()?.index())).unwrap_or(&mut none);
    for (side, there) in group.iter().map(Option::is_some).enumerate() {
        changes.addresses[side] += u64::from(there);
        of_site[side] += u64::from(there);
    }
    match group {
        [Some(before), Some(after)] => {
            let texts = |record: &ByAddress| (record.2.0 & HAS_TEXT, record.1);
            if texts(&before) == texts(&after) {
                changes.unchanged += 1;
            } else {
                changes.changed += 1;
            }
            let copied = |record: &ByAddress| record.2.0 & IS_COPIED != 0;
            match (copied(&before), copied(&after)) {
                (true, true) => changes.still_copied += 1,
                (true, false) => changes.no_longer_copied += 1,
                (false, true) => changes.newly_copied += 1,
                (false, false) => {}
            }
        }
        [None, Some(after)] => {
            count(&mut changes.new, &after);
            of_site[2] += 1;
            if after.2.0 & HAS_TEXT != 0 {
                by_text.push((after.1, NEW))?;
            }
        }
        [Some(before), None] => {
            count(&mut changes.gone, &before);
            of_site[3] += 1;
            if before.2.0 & HAS_TEXT != 0 {
                by_text.push((before.1, GONE))?;
            }
        }
        [None, None] => {}
    }
    Ok(())
}

/// Hosts of both crawls under one number.
#[derive(Default)]
struct Sites {
    numbers: BTreeMap<String, SiteId>,
    hosts: Vec<String>,
}

impl Sites {
    /// The numbers of the sites of an atlas.
    fn of(&mut self, atlas: &Atlas) -> Result<Vec<SiteId>, ReportError> {
        let mut numbers = Vec::new();
        if !atlas.has(&TableName::Sites) {
            return Ok(numbers);
        }
        for batch in atlas.sites()? {
            for row in batch?.rows() {
                let next = SiteId::at(self.hosts.len());
                let number = *self.numbers.entry(row.host.to_owned()).or_insert(next);
                if number == next {
                    self.hosts.push(row.host.to_owned());
                }
                numbers.push(number);
            }
        }
        Ok(numbers)
    }
}

fn tell_sites(changes: &mut Changes, sites: &Sites, pages: &[SitePages]) {
    for [before, after, ..] in pages {
        match (*before > 0, *after > 0) {
            (true, true) => changes.sites_both += 1,
            (false, true) => changes.sites_new += 1,
            (true, false) => changes.sites_gone += 1,
            (false, false) => {}
        }
    }
    let mut order: Vec<usize> =
        (0..pages.len()).filter(|site| pages[*site][2] + pages[*site][3] > 0).collect();
    order.sort_by_key(|site| (std::cmp::Reverse(pages[*site][2] + pages[*site][3]), &sites.hosts[*site]));
    order.truncate(LISTED);
    changes.sites = order
        .into_iter()
        .map(|site| {
            let [before, after, new, gone] = pages[site];
            SiteChanges { host: sites.hosts[site].clone(), before, after, new, gone }
        })
        .collect();
}

/// The level of the later crawl's last search, if the earlier one has it too.
fn common_level(studies: &[Study<'_>; 2]) -> Result<LevelName, ReportError> {
    let names = studies[1].atlas.levels();
    let main =
        names.get(studies[1].main_level(&names)?).filter(|name| studies[0].atlas.levels().contains(name));
    Ok(main.cloned().unwrap_or_else(levels::exact_level))
}

fn common_levels(studies: &[Study<'_>; 2]) -> Result<Vec<(String, [PartCounts; 2])>, ReportError> {
    let mut names = studies[1].atlas.levels();
    names.retain(|name| studies[0].atlas.levels().contains(name));
    if names.iter().all(|name| name.as_str() != levels::EXACT) {
        names.push(levels::exact_level());
    }
    names.sort_by_key(|name| Level::spell(name.as_str()));
    let everywhere = Places { reached: None, tie: None };
    // Once for all levels.
    let totals = [studies[0].totals(&everywhere)?, studies[1].totals(&everywhere)?];
    let mut found = Vec::new();
    for name in names {
        let counts = |at: usize| -> Result<PartCounts, ReportError> {
            Ok(studies[at].level(&name, &totals[at], &everywhere, Vec::new())?.0.whole)
        };
        found.push((Level::spell(name.as_str()).1, [counts(0)?, counts(1)?]));
    }
    Ok(found)
}

/// Copies of collections by the address of their root.
type Roots = BTreeMap<String, (String, String, u64)>;

fn roots(atlas: &Atlas) -> Result<Option<Roots>, ReportError> {
    if !atlas.has(&TableName::Collections) || !atlas.has(&TableName::CollectionGroups) {
        return Ok(None);
    }
    let mut noise = Vec::new();
    for row in atlas.collection_groups()? {
        let row = row?;
        if row.is_noise {
            noise.push(row.group);
        }
    }
    let mut found = Roots::new();
    let mut group: Vec<onionskin_store::table::CollectionRow> = Vec::new();
    let mut close = |group: &mut Vec<onionskin_store::table::CollectionRow>| {
        let principal = group.iter().find(|row| row.is_principal).and_then(|row| row.root_url.clone());
        for row in group.drain(..).filter(|row| !row.is_principal) {
            if let Some(root) = row.root_url {
                found.insert(root, (principal.clone().unwrap_or_default(), row.kind.to_string(), row.pages));
            }
        }
    };
    for row in atlas.collections()? {
        let row = row?;
        if group.last().is_some_and(|last| last.group != row.group) {
            close(&mut group);
        }
        if noise.binary_search(&row.group).is_err() {
            group.push(row);
        }
    }
    close(&mut group);
    Ok(Some(found))
}

fn mirrors(atlases: &[Atlas; 2]) -> Result<Option<MirrorChanges>, ReportError> {
    let (Some(before), Some(after)) = (roots(&atlases[0])?, roots(&atlases[1])?) else { return Ok(None) };
    let mut changes = MirrorChanges::default();
    let mut listed = Vec::new();
    for (root, (principal, kind, pages)) in &after {
        let fate = if before.contains_key(root) { "still there" } else { "new" };
        if before.contains_key(root) {
            changes.still += 1;
        } else {
            changes.new += 1;
        }
        listed.push((fate.to_owned(), root.clone(), principal.clone(), kind.clone(), *pages));
    }
    for (root, (principal, kind, pages)) in before.iter().filter(|(root, _)| !after.contains_key(*root)) {
        changes.gone += 1;
        listed.push(("gone".to_owned(), root.clone(), principal.clone(), kind.clone(), *pages));
    }
    // What has changed comes before what has not.
    listed.sort_by(|a, b| (a.0 == "still there", b.4, &a.1).cmp(&(b.0 == "still there", a.4, &b.1)));
    listed.truncate(LISTED);
    changes.listed = listed;
    Ok(Some(changes))
}
