//! The known answers.
//!
//! A truth file is JSON lines, one fact each, told apart by `type`. It is written as a stream:
//! clusters are enumerated from the plan of the web, their texts composed again, their resemblances
//! counted exactly.
//!
//! Resemblances are in shingles of [`crate::WebSpec::shingle`] words, over the words of
//! [`crate::naive::words`]. Pairs of equal text are `exact` with resemblance 1. Clusters of up to
//! [`ALL_PAIRS_UP_TO`] pages list all their pairs, chains all that share a word run, larger ones
//! only the pairs with their centre; the `cluster` fact says which.

use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, Write},
};

use serde::{Deserialize, Serialize};

use crate::{
    html::Charset,
    output::Progress,
    page::Composer,
    pool::{Class, ClassKind},
    spec::{ClusterKind, MirrorKind},
    web::{CHAIN_REACH, CollectionKind, Web},
};

/// Clusters of at most so many pages list every pair.
pub const ALL_PAIRS_UP_TO: u64 = 16;

/// One line of a truth file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fact {
    /// A page.
    Page {
        /// Its number, in the order of the output.
        page: u64,
        /// Its address.
        url: String,
        /// Words, where the script has spaces to tell them by.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        words: Option<u32>,
        /// Its script.
        script: String,
        /// The charset of its HTML.
        charset: Charset,
    },
    /// A page without a word.
    Empty {
        /// Its address.
        url: String,
    },
    /// A page with fewer words than a shingle.
    Short {
        /// Its address.
        url: String,
        /// Its words.
        words: u32,
    },
    /// Pages that are copies of each other.
    Cluster {
        /// Its number in this file.
        cluster: u64,
        /// How they came to be alike.
        kind: Planted,
        /// Pages.
        pages: u64,
        /// The page that the others were made from.
        centre: String,
        /// Which of its pairs follow.
        pairs: Pairs,
    },
    /// Two pages that are copies.
    Copy {
        /// Their cluster.
        cluster: u64,
        /// One.
        a: String,
        /// The other.
        b: String,
        /// Whether the texts are equal.
        kind: CopyKind,
        /// In shingles of the web's size.
        resemblance: f64,
    },
    /// A collection and a replica of it.
    Mirror {
        /// The root page of the target.
        target: String,
        /// The root page of the replica.
        replica: String,
        /// What it is.
        kind: MirrorKind,
        /// Whether both are on one host.
        same_host: bool,
        /// The version that it shows; 0 is the target's.
        version: u8,
        /// Pages of the target.
        target_pages: u32,
        /// Pages of the replica.
        pages: u32,
        /// Pages that it lacks.
        missing: u32,
        /// Pages that say something slightly different.
        changed: u32,
        /// Pages that the target does not have.
        added: u32,
        /// Pages inside the tree that are replaced or gone, so that it falls apart.
        break_points: u32,
    },
    /// Boilerplate shared by pages that are not copies.
    Template {
        /// Its number.
        template: u32,
        /// Its words.
        words: u32,
        /// Pages that carry it.
        pages: u64,
        /// The root page of its site, if it is a site's own.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        root: Option<String>,
    },
    /// A calendar: pages alike but for their date.
    Calendar {
        /// Its first page.
        root: String,
        /// Its pages.
        pages: u32,
    },
    /// A site that no reachable page links to.
    Disconnected {
        /// Its root page.
        root: String,
        /// Its pages.
        pages: u32,
    },
    /// Everything counted. Stands last.
    Summary(Box<Summary>),
}

/// How the pages of a cluster came to be alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Planted {
    /// Copied without change.
    Exact,
    /// Edited from the centre.
    Near,
    /// Each edited from the one before.
    Chain,
    /// Days of one calendar.
    Calendar,
    /// The same page of several mirrors.
    Mirror,
}

/// Which pairs of a cluster a truth file lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairs {
    /// Every pair.
    All,
    /// Every pair that shares text; the others of the cluster share none.
    Sharing,
    /// The pairs with the centre.
    Centre,
}

/// Whether two texts are equal or alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyKind {
    /// Equal, word for word.
    Exact,
    /// Alike.
    Near,
}

/// What a web contains, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// The name of the specification.
    pub name: String,
    /// The seed.
    pub seed: u64,
    /// Words in a shingle.
    pub shingle: u32,
    /// Pages.
    pub documents: u64,
    /// Hosts.
    pub sites: u64,
    /// Pages without a word.
    pub empty: u64,
    /// Pages of one word.
    pub one_word: u64,
    /// Pages of at least one word and fewer than a shingle, those of one word included.
    pub short: u64,
    /// Clusters of two pages and more.
    pub clusters: u64,
    /// Pages whose text equals that of another page of their cluster, all but one of each text.
    /// Empty pages are copies of nothing.
    pub exact_copies: u64,
    /// Different texts in clusters, all but one of each cluster. Calendars are not counted.
    pub near_copies: u64,
    /// Replicas with every page, unchanged.
    pub full_mirrors: u64,
    /// Replicas without some branches.
    pub partial_mirrors: u64,
    /// Replicas of another version.
    pub skewed_mirrors: u64,
    /// Second names of hosts.
    pub aliases: u64,
    /// Pages in mirrors that break them apart.
    pub break_points: u64,
    /// Calendars.
    pub calendars: u64,
    /// Pages of calendars.
    pub calendar_pages: u64,
    /// Pages with boilerplate.
    pub template_pages: u64,
    /// Sites that no reachable page links to.
    pub disconnected_sites: u64,
    /// Their pages.
    pub disconnected_pages: u64,
    /// Ordered pairs of pages of the web of which the first links to the second, each counted once;
    /// a page that links to itself is such a pair.
    pub links: u64,
    /// Pages by charset.
    pub charsets: BTreeMap<Charset, u64>,
}

impl Summary {
    /// What was planted, as rows of a table.
    pub fn rows(&self) -> [(&'static str, u64); 20] {
        [
            ("documents", self.documents),
            ("sites", self.sites),
            ("links between documents", self.links),
            ("empty", self.empty),
            ("one word", self.one_word),
            ("shorter than a shingle", self.short),
            ("clusters", self.clusters),
            ("exact copies", self.exact_copies),
            ("near copies", self.near_copies),
            ("full mirrors", self.full_mirrors),
            ("partial mirrors", self.partial_mirrors),
            ("version-skewed mirrors", self.skewed_mirrors),
            ("break points", self.break_points),
            ("host aliases", self.aliases),
            ("calendars", self.calendars),
            ("calendar pages", self.calendar_pages),
            ("pages with boilerplate", self.template_pages),
            ("disconnected sites", self.disconnected_sites),
            ("disconnected pages", self.disconnected_pages),
            ("charsets", self.charsets.len() as u64),
        ]
    }
}

/// What a truth file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruthOptions {
    /// One fact for every page. For very large webs these are most of the file.
    pub pages: bool,
    /// One fact for every pair of copies.
    pub copies: bool,
}

impl Default for TruthOptions {
    fn default() -> TruthOptions {
        TruthOptions { pages: true, copies: true }
    }
}

/// Pages that are copies of each other, by what they were planted as.
#[derive(Clone, Copy, Debug)]
enum Cluster {
    Pool { pool: u8, first: u64, size: u32, kind: ClassKind },
    Slot { collection: u32, slot: u32 },
    Calendar { collection: u32 },
}

/// A page and which of its cluster's texts it shows.
type Member = (u64, u32);

impl Web {
    /// Calls `visit` for every cluster that may have more than one page.
    fn for_each_cluster<E>(&self, visit: &mut dyn FnMut(Cluster) -> Result<(), E>) -> Result<(), E> {
        for (index, pool) in self.pools.iter().enumerate() {
            for &Class { kind, first, n_clusters, size } in pool.classes.iter().filter(|class| class.size > 1)
            {
                for cluster in 0..n_clusters {
                    let first = first + cluster * u64::from(size);
                    visit(Cluster::Pool { pool: index as u8, first, size, kind })?;
                }
            }
        }
        // A text that stands at one position of its pool has copies only if that position has
        // several places.
        for &collection in self.places_of.keys() {
            let entry = &self.collections[collection as usize];
            for slot in 0..entry.slots {
                let CollectionKind::Ordinary { pool } = entry.kind else {
                    visit(Cluster::Slot { collection, slot })?;
                    continue;
                };
                let documents = &self.pools[usize::from(pool)];
                let document = documents.document_at(entry.serial + u64::from(slot));
                let kind = documents.membership(document).kind;
                if !matches!(kind, ClassKind::Empty | ClassKind::Cluster(_)) {
                    visit(Cluster::Pool { pool, first: document, size: 1, kind })?;
                }
            }
        }
        for (collection, entry) in self.collections.iter().enumerate() {
            if entry.kind == CollectionKind::Calendar {
                visit(Cluster::Calendar { collection: collection as u32 })?;
            }
        }
        Ok(())
    }

    /// Calls `visit` for every page of a cluster, the centre first.
    fn for_each_member<E>(
        &self,
        cluster: Cluster,
        visit: &mut dyn FnMut(Member) -> Result<(), E>,
    ) -> Result<(), E> {
        match cluster {
            Cluster::Pool { pool, first, size, kind } => {
                for member in 0..size {
                    let text = if kind == ClassKind::Cluster(ClusterKind::Exact) { 0 } else { member };
                    let position = self.pools[usize::from(pool)].position_of(first + u64::from(member));
                    let (collection, slot) = self.collection_at(pool, position);
                    for &place in self.places_of(collection) {
                        if let Some(page) = self.page_at(place, slot) {
                            visit((page, text))?;
                        }
                    }
                }
            }
            Cluster::Slot { collection, slot } => {
                let entry = &self.collections[collection as usize];
                for &place in self.places_of(collection) {
                    let Some(page) = self.page_at(place, slot) else { continue };
                    let text = match self.replica(&self.places[place as usize]) {
                        Some(replica) if replica.replaced.binary_search(&slot).is_ok() => continue,
                        Some(replica) if self.is_changed(entry, replica, slot) => {
                            u32::from(replica.spec.version)
                        }
                        _ => 0,
                    };
                    visit((page, text))?;
                }
            }
            Cluster::Calendar { collection } => {
                let entry = &self.collections[collection as usize];
                let first = self.places[entry.own as usize].first;
                for slot in 0..entry.slots {
                    visit((first + u64::from(slot), slot))?;
                }
            }
        }
        Ok(())
    }

    /// Counts what the web contains. Visits every page's links, but composes no text.
    pub fn summary(&self) -> Summary {
        self.count(&mut |_, _| {}).0
    }

    /// The summary, and for each template that is used its words and pages.
    fn count(&self, progress: &mut Progress<'_>) -> (Summary, BTreeMap<u32, (u32, u64)>) {
        let mut summary = Summary {
            name: self.spec.name.clone(),
            seed: self.spec.seed,
            shingle: self.spec.shingle,
            documents: self.n_pages(),
            sites: self.n_sites(),
            ..Summary::default()
        };
        let mut templates: BTreeMap<u32, (u32, u64)> = BTreeMap::new();
        let (mut links, mut dests) = (Vec::new(), Vec::new());
        for page in 0..self.n_pages() {
            let content = self.content(self.locate(page));
            let words = self.n_words(&content);
            summary.empty += u64::from(words == 0);
            summary.one_word += u64::from(words == 1);
            summary.short += u64::from(words > 0 && words < self.spec.shingle);
            if let Some(template) = content.template {
                templates.entry(template.group).or_insert((template.words, 0)).1 += 1;
                summary.template_pages += 1;
            }
            *summary.charsets.entry(self.charset(page)).or_default() += 1;
            if self.spec.linked {
                self.linked_pages(page, &mut links, &mut dests);
                summary.links += dests.len() as u64;
            }
            if page % 100_000 == 0 {
                progress(page, 0);
            }
        }
        for place in &self.places {
            if place.island {
                summary.disconnected_sites += 1;
                summary.disconnected_pages += u64::from(place.pages);
            }
            if let Some(replica) = self.replica(place) {
                summary.break_points += u64::from(replica.spec.break_points);
                match replica.spec.kind {
                    MirrorKind::Full => summary.full_mirrors += 1,
                    MirrorKind::Partial => summary.partial_mirrors += 1,
                    MirrorKind::Skewed => summary.skewed_mirrors += 1,
                    MirrorKind::Alias => summary.aliases += 1,
                }
            }
        }
        let mut texts: Vec<u32> = Vec::new();
        let counted: Result<(), std::convert::Infallible> = self.for_each_cluster(&mut |cluster| {
            texts.clear();
            self.for_each_member(cluster, &mut |(_, text)| {
                texts.push(text);
                Ok::<(), std::convert::Infallible>(())
            })?;
            let pages = texts.len() as u64;
            texts.sort_unstable();
            texts.dedup();
            summary.clusters += u64::from(pages > 1);
            summary.exact_copies += pages - texts.len() as u64;
            if matches!(cluster, Cluster::Calendar { .. }) {
                summary.calendars += 1;
                summary.calendar_pages += pages;
            } else {
                summary.near_copies += (texts.len() as u64).saturating_sub(1);
            }
            Ok(())
        });
        let Ok(()) = counted;
        (summary, templates)
    }

    /// Writes the truth: facts about pages, clusters and copies, mirrors, templates, calendars,
    /// islands, and a summary.
    pub fn write_truth<W: Write>(
        &self,
        out: &mut W,
        options: TruthOptions,
        progress: &mut Progress<'_>,
    ) -> io::Result<Summary> {
        let mut out = io::BufWriter::with_capacity(1 << 18, out);
        let (summary, templates) = self.count(progress);
        for page in 0..self.n_pages() {
            let content = self.content(self.locate(page));
            let words = self.n_words(&content);
            if options.pages {
                let fact = Fact::Page {
                    page,
                    url: self.url(page),
                    words: content.script.is_spaced().then_some(words),
                    script: content.script.as_str().to_owned(),
                    charset: self.charset(page),
                };
                write_fact(&mut out, &fact)?;
            }
            if words == 0 {
                write_fact(&mut out, &Fact::Empty { url: self.url(page) })?;
            } else if words < self.spec.shingle {
                write_fact(&mut out, &Fact::Short { url: self.url(page), words })?;
            }
        }
        if options.copies {
            let mut writer = ClusterWriter { web: self, composer: Composer::new(self), number: 0 };
            self.for_each_cluster(&mut |cluster| writer.write(cluster, &mut out))?;
        }
        self.write_structure(&templates, &mut out)?;
        write_fact(&mut out, &Fact::Summary(Box::new(summary.clone())))?;
        out.flush()?;
        Ok(summary)
    }

    fn write_structure<W: Write>(
        &self,
        templates: &BTreeMap<u32, (u32, u64)>,
        out: &mut W,
    ) -> io::Result<()> {
        for place in &self.places {
            let collection = &self.collections[place.collection as usize];
            let root = || self.url(place.first);
            if place.island {
                write_fact(out, &Fact::Disconnected { root: root(), pages: place.pages })?;
            }
            if collection.kind == CollectionKind::Calendar {
                write_fact(out, &Fact::Calendar { root: root(), pages: place.pages })?;
            }
            let Some(replica) = self.replica(place) else { continue };
            let own = &self.places[collection.own as usize];
            let changed = (0..collection.slots).filter(|&slot| {
                replica.local(slot).is_some()
                    && replica.replaced.binary_search(&slot).is_err()
                    && self.is_changed(collection, replica, slot)
            });
            let fact = Fact::Mirror {
                target: self.url(own.first),
                replica: root(),
                kind: replica.spec.kind,
                same_host: own.host == place.host,
                version: replica.spec.version,
                target_pages: collection.slots,
                pages: place.pages,
                missing: replica.n_missing(),
                changed: changed.count() as u32,
                added: replica.spec.added,
                break_points: replica.spec.break_points,
            };
            write_fact(out, &fact)?;
        }
        let common = self.spec.template.map_or(0, |template| template.groups);
        for (&template, &(words, pages)) in templates {
            let site = template.checked_sub(common).map(CollectionKind::TemplateSite);
            let own = self.collections.iter().find(|collection| Some(collection.kind) == site);
            let root = own.map(|collection| self.url(self.places[collection.own as usize].first));
            write_fact(out, &Fact::Template { template, words, pages, root })?;
        }
        Ok(())
    }
}

fn write_fact<W: Write>(out: &mut W, fact: &Fact) -> io::Result<()> {
    serde_json::to_writer(&mut *out, fact)?;
    out.write_all(b"\n")
}

/// Writes clusters and their pairs.
struct ClusterWriter<'w> {
    web: &'w Web,
    composer: Composer<'w>,
    number: u64,
}

/// A page of the cluster at hand, and the words of its text.
struct Shown {
    url: String,
    text: u32,
    words: Vec<u128>,
}

impl ClusterWriter<'_> {
    fn write<W: Write>(&mut self, cluster: Cluster, out: &mut W) -> io::Result<()> {
        let web = self.web;
        let mut pages = 0;
        let mut centre = None;
        web.for_each_member(cluster, &mut |(page, _)| {
            pages += 1;
            centre.get_or_insert(page);
            Ok::<(), io::Error>(())
        })?;
        let Some(centre) = centre.filter(|_| pages > 1) else { return Ok(()) };
        let (kind, mut pairs) = match cluster {
            Cluster::Calendar { .. } => (Planted::Calendar, Pairs::Centre),
            Cluster::Slot { .. } => (Planted::Mirror, Pairs::Centre),
            Cluster::Pool { kind: ClassKind::Cluster(ClusterKind::Chain), .. } => {
                (Planted::Chain, Pairs::Sharing)
            }
            Cluster::Pool { kind: ClassKind::Cluster(ClusterKind::Near { .. }), .. } => {
                (Planted::Near, Pairs::Centre)
            }
            Cluster::Pool { .. } => (Planted::Exact, Pairs::Centre),
        };
        if pages <= ALL_PAIRS_UP_TO {
            pairs = Pairs::All;
        }
        let number = self.number;
        self.number += 1;
        write_fact(out, &Fact::Cluster { cluster: number, kind, pages, centre: web.url(centre), pairs })?;

        // Each page is paired with those before it that are still in view: all, the near ones, or
        // the centre alone.
        let mut view: VecDeque<Shown> = VecDeque::new();
        web.for_each_member(cluster, &mut |(page, text)| {
            let mut words = Vec::new();
            match view.iter().rev().find(|shown| shown.text == text) {
                Some(shown) => words.clone_from(&shown.words),
                None => self.composer.draft(page).0.word_keys(&mut words),
            }
            let shown = Shown { url: web.url(page), text, words };
            if pairs == Pairs::Sharing {
                while view.front().is_some_and(|before| before.text + CHAIN_REACH <= text) {
                    view.pop_front();
                }
            }
            for before in &view {
                let exact = before.text == text;
                let resemblance = if exact {
                    1.0
                } else {
                    resemblance(&before.words, &shown.words, web.spec.shingle as usize)
                };
                let kind = if exact { CopyKind::Exact } else { CopyKind::Near };
                let (a, b) = (before.url.clone(), shown.url.clone());
                write_fact(out, &Fact::Copy { cluster: number, a, b, kind, resemblance })?;
            }
            if pairs != Pairs::Centre || view.is_empty() {
                view.push_back(shown);
            }
            Ok(())
        })
    }
}

/// Resemblance in shingles of `w`, of words given by number: sorted shingles, merged. The twin of
/// [`crate::naive::text_resemblance`], which takes a hundred times as long.
pub(crate) fn resemblance(a: &[u128], b: &[u128], w: usize) -> f64 {
    let (a, b) = (sorted_shingles(a, w), sorted_shingles(b, w));
    let (mut i, mut j, mut shared) = (0, 0, 0usize);
    while i < a.len() && j < b.len() {
        match a[i].cmp(b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => {
                shared += 1;
                i += 1;
                j += 1;
            }
        }
    }
    let union = a.len() + b.len() - shared;
    if union == 0 { 0.0 } else { shared as f64 / union as f64 }
}

fn sorted_shingles(words: &[u128], w: usize) -> Vec<&[u128]> {
    let mut shingles: Vec<&[u128]> = match words.len() {
        0 => Vec::new(),
        n if n < w || w == 0 => vec![words],
        _ => words.windows(w).collect(),
    };
    shingles.sort_unstable();
    shingles.dedup();
    shingles
}

#[cfg(test)]
mod tests;
