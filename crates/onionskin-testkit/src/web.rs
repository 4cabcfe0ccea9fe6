//! A web laid out: which page is where, what it says, and where its links lead.
//!
//! The words: a **collection** is a tree of pages, numbered by **slot** from its root; a **place**
//! is a collection laid out under a host and a folder. An ordinary site is a collection at one
//! place. A mirror is a second place of the same collection, perhaps with slots missing, with pages
//! **added** that the collection does not have, or showing another version. Pages are numbered
//! place by place, so page to place is a binary search, and all else is arithmetic on hashes: the
//! memory is that of the tables of places and collections, whatever the number of pages.

use std::collections::BTreeMap;

use crate::{
    draft::{BlockKind, Draft, Edit, Extra},
    math,
    pool::{ClassKind, Membership, Pool},
    rng::{Dice, Permutation, below, mix, unit},
    spec::{ClusterKind, MirrorKind, ReplicaSpec, SpecError, WebSpec},
    vocab::{Namespace, Script, Vocabulary, unique_word},
};

mod build;
mod links;
mod urls;

pub(crate) use links::{Dest, Link};
pub(crate) use urls::push_relative;

/// What a hash is about, so that no two decisions share one.
pub(crate) mod topic {
    pub(crate) const POOL: u64 = 1;
    pub(crate) const COLLECTION: u64 = 2;
    pub(crate) const SHUFFLE: u64 = 3;
    pub(crate) const PLACES: u64 = 4;
    pub(crate) const SIZES: u64 = 5;
    pub(crate) const SCRIPT: u64 = 6;
    pub(crate) const TEMPLATE: u64 = 7;
    pub(crate) const TEMPLATE_TEXT: u64 = 8;
    pub(crate) const EDIT: u64 = 9;
    pub(crate) const BAND: u64 = 10;
    pub(crate) const VERSION: u64 = 11;
    pub(crate) const REPLICA: u64 = 12;
    pub(crate) const MOUNT: u64 = 13;
    pub(crate) const LINKS: u64 = 14;
    pub(crate) const NAMES: u64 = 15;
    pub(crate) const MARKUP: u64 = 16;
    pub(crate) const TEXT: u64 = 17;
    pub(crate) const STYLE: u64 = 18;
    pub(crate) const CHAIN: u64 = 1 << 32;
}

/// Documents on either side of which nothing of a chain is shared.
pub(crate) const CHAIN_REACH: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CollectionKind {
    Ordinary { pool: u8 },
    Target(u32),
    Calendar,
    TemplateSite(u32),
}

#[derive(Clone, Debug)]
pub(crate) struct Collection {
    pub(crate) key: u64,
    /// The pool position of slot 0, or a number for it that is unique among collections outside the
    /// pools.
    pub(crate) serial: u64,
    pub(crate) slots: u32,
    pub(crate) kind: CollectionKind,
    /// The place it was made for.
    pub(crate) own: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folder {
    Root,
    /// The collection's name under a folder of mirrors.
    Mirror {
        collection: u32,
        replica: u32,
    },
    Version {
        replica: u32,
        version: u8,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) first: u64,
    pub(crate) pages: u32,
    pub(crate) collection: u32,
    pub(crate) host: u32,
    pub(crate) folder: Folder,
    /// Index into the replicas.
    replica: Option<u32>,
    pub(crate) island: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Replica {
    pub(crate) spec: ReplicaSpec,
    pub(crate) seed: u64,
    /// Slots that it lacks: ascending `(first, length)`.
    missing: Vec<(u32, u32)>,
    /// Slots that are about something else.
    pub(crate) replaced: Vec<u32>,
    /// Slots with children that it lacks; its root links to those children.
    pub(crate) cut: Vec<u32>,
}

impl Replica {
    pub(crate) fn n_missing(&self) -> u32 {
        self.missing.iter().map(|&(_, length)| length).sum()
    }

    /// The `local`-th slot that is there.
    fn slot(&self, local: u32) -> u32 {
        self.missing
            .iter()
            .fold(local, |slot, &(first, length)| if slot >= first { slot + length } else { slot })
    }

    /// How many slots that are there come before `slot`, or `None` if it is missing.
    pub(crate) fn local(&self, slot: u32) -> Option<u32> {
        let mut before = 0;
        for &(first, length) in &self.missing {
            if slot < first {
                break;
            }
            if slot < first + length {
                return None;
            }
            before += length;
        }
        Some(slot - before)
    }
}

/// A page within its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spot {
    Slot(u32),
    Added(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) place: u32,
    pub(crate) spot: Spot,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ContentKind {
    Empty,
    OneWord,
    Brief,
    Prose,
    Chain { member: u32 },
    Day(u32),
}

/// Boilerplate: which, and how many words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) group: u32,
    pub(crate) words: u32,
}

/// All that a page's text follows from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    pub(crate) kind: ContentKind,
    pub(crate) key: u64,
    pub(crate) topic: Extra,
    pub(crate) script: Script,
    pub(crate) template: Option<Template>,
    pub(crate) edit: Option<Edit>,
}

/// A web with known answers. See the [crate documentation](crate) for an example.
#[derive(Clone, Debug)]
pub struct Web {
    pub(crate) spec: WebSpec,
    vocabularies: Vec<Option<Vocabulary>>,
    latin: Vocabulary,
    script_weights: u64,
    mu: f64,
    pub(crate) pools: Vec<Pool>,
    /// For each pool its collections, by position.
    pool_collections: Vec<Vec<u32>>,
    pub(crate) collections: Vec<Collection>,
    pub(crate) places: Vec<Place>,
    pub(crate) replicas: Vec<Replica>,
    hosts: Vec<urls::Host>,
    /// The places of collections that have more than one: their own first.
    pub(crate) places_of: BTreeMap<u32, Vec<u32>>,
    /// Places that links from elsewhere may lead to.
    main_places: Vec<u32>,
}

impl Web {
    /// Lays out a web. Takes time and memory in proportion to the number of sites, not of pages.
    pub fn new(spec: &WebSpec) -> Result<Web, SpecError> {
        spec.validate()?;
        build::build(spec)
    }

    /// What it was made from.
    pub fn spec(&self) -> &WebSpec {
        &self.spec
    }

    /// The number of pages: exactly what the specification asked for.
    pub fn n_pages(&self) -> u64 {
        self.spec.pages
    }

    /// The number of different hosts.
    pub fn n_sites(&self) -> u64 {
        self.hosts.len() as u64
    }

    pub(crate) fn vocabulary(&self, script: Script) -> &Vocabulary {
        self.vocabularies.get(script as usize).and_then(Option::as_ref).unwrap_or(&self.latin)
    }

    pub(crate) fn replica(&self, place: &Place) -> Option<&Replica> {
        self.replicas.get(place.replica? as usize)
    }

    /// Where a page is. Pages are numbered below [`Web::n_pages`]; larger numbers mean the last
    /// one.
    pub(crate) fn locate(&self, page: u64) -> Location {
        let page = page.min(self.n_pages() - 1);
        let place = self.places.partition_point(|place| place.first <= page).saturating_sub(1);
        let entry = &self.places[place];
        let local = (page - entry.first) as u32;
        let spot = match self.replica(entry) {
            None => Spot::Slot(local),
            Some(replica) => {
                let present = self.n_present(entry);
                if local < present { Spot::Slot(replica.slot(local)) } else { Spot::Added(local - present) }
            }
        };
        Location { place: place as u32, spot }
    }

    /// The page that shows `slot` at `place`, if the place has it.
    pub(crate) fn page_at(&self, place: u32, slot: u32) -> Option<u64> {
        let entry = &self.places[place as usize];
        let local = match self.replica(entry) {
            None => slot,
            Some(replica) => replica.local(slot)?,
        };
        Some(entry.first + u64::from(local))
    }

    /// The page at a location that exists.
    pub(crate) fn page(&self, location: Location) -> u64 {
        let place = &self.places[location.place as usize];
        match location.spot {
            Spot::Slot(slot) => self.page_at(location.place, slot).unwrap_or(place.first),
            Spot::Added(nth) => place.first + u64::from(self.n_present(place) + nth),
        }
    }

    /// Slots of the collection that a place has.
    pub(crate) fn n_present(&self, place: &Place) -> u32 {
        self.collections[place.collection as usize].slots - self.replica(place).map_or(0, Replica::n_missing)
    }

    /// All places of a collection, its own first.
    pub(crate) fn places_of(&self, collection: u32) -> &[u32] {
        match self.places_of.get(&collection) {
            Some(places) => places,
            None => std::slice::from_ref(&self.collections[collection as usize].own),
        }
    }

    /// The collection and slot at a position of a pool.
    pub(crate) fn collection_at(&self, pool: u8, position: u64) -> (u32, u32) {
        let members = &self.pool_collections[usize::from(pool)];
        let nth =
            members.partition_point(|&c| self.collections[c as usize].serial <= position).saturating_sub(1);
        let collection = members[nth];
        (collection, (position - self.collections[collection as usize].serial) as u32)
    }

    /// Whether a replica's version of a slot differs from the target's. The root of another version
    /// always does: it bears the date.
    pub(crate) fn is_changed(&self, collection: &Collection, replica: &Replica, slot: u32) -> bool {
        let ReplicaSpec { version, changed, .. } = replica.spec;
        version > 0
            && changed > 0.0
            && (slot == 0 || unit(self.version_key(collection, version, slot)) < changed)
    }

    fn version_key(&self, collection: &Collection, version: u8, slot: u32) -> u64 {
        mix(mix(mix(collection.key, topic::VERSION), u64::from(version)), u64::from(slot))
    }

    /// What a page says.
    pub(crate) fn content(&self, location: Location) -> Content {
        let place = &self.places[location.place as usize];
        let collection = &self.collections[place.collection as usize];
        let replica = self.replica(place);
        match (location.spot, replica) {
            (Spot::Added(nth), replica) => {
                let key = mix(replica.map_or(0, |replica| replica.seed), u64::from(nth));
                self.lone_content(key, self.page(location))
            }
            (Spot::Slot(slot), Some(replica)) if replica.replaced.binary_search(&slot).is_ok() => {
                self.lone_content(mix(mix(replica.seed, topic::TEXT), u64::from(slot)), self.page(location))
            }
            (Spot::Slot(slot), replica) => {
                let mut content = self.slot_content(collection, slot);
                if let Some(replica) = replica.filter(|replica| self.is_changed(collection, replica, slot)) {
                    content.edit = Some(self.version_edit(collection, replica.spec.version, slot));
                }
                content
            }
        }
    }

    /// A page that is nowhere else.
    fn lone_content(&self, key: u64, page: u64) -> Content {
        Content {
            kind: ContentKind::Prose,
            key,
            topic: Extra::Unique(unique_word(Namespace::Page, page)),
            script: Script::Latin,
            template: None,
            edit: None,
        }
    }

    fn version_edit(&self, collection: &Collection, version: u8, slot: u32) -> Edit {
        let key = self.version_key(collection, version, slot);
        let (low, high) = match collection.kind {
            CollectionKind::Target(index) => {
                self.spec.targets.get(index as usize).map_or((0.9, 0.9), |target| (target.low, target.high))
            }
            _ => (0.9, 0.9),
        };
        Edit {
            seed: mix(key, topic::EDIT),
            resemblance: low + (high - low) * unit(mix(key, topic::BAND)),
            mark: unique_word(
                Namespace::Version,
                (collection.serial + u64::from(slot)) * 8 + u64::from(version),
            ),
        }
    }

    /// What a collection's own place says at `slot`.
    fn slot_content(&self, collection: &Collection, slot: u32) -> Content {
        let number = collection.serial + u64::from(slot);
        let key = mix(mix(collection.key, topic::TEXT), u64::from(slot));
        let topic_word = Extra::Unique(unique_word(Namespace::Slot, number));
        let content = Content {
            kind: ContentKind::Prose,
            key,
            topic: topic_word,
            script: Script::Latin,
            template: None,
            edit: None,
        };
        match collection.kind {
            CollectionKind::Ordinary { pool } => {
                let document = self.pools[usize::from(pool)].document_at(number);
                self.pool_content(pool, document)
            }
            CollectionKind::Target(_) => {
                Content { script: self.spaced_script(mix(collection.key, topic::SCRIPT)), ..content }
            }
            CollectionKind::Calendar => Content {
                kind: ContentKind::Day(slot),
                key: collection.key,
                topic: Extra::Unique(unique_word(Namespace::Slot, collection.serial)),
                ..content
            },
            CollectionKind::TemplateSite(nth) => {
                let group = self.spec.template.map_or(0, |template| template.groups) + nth;
                Content {
                    template: Some(Template { group, words: self.spec.template_site_words }),
                    ..content
                }
            }
        }
    }

    /// What document `document` of a pool says.
    pub(crate) fn pool_content(&self, pool: u8, document: u64) -> Content {
        let entry = &self.pools[usize::from(pool)];
        let Membership { kind, centre, member } = entry.membership(document);
        let number = entry.number_base + centre;
        let key = mix(mix(self.spec.seed, topic::POOL), number);
        let mut script = self.any_script(mix(key, topic::SCRIPT));
        let mut template = self.spec.template.and_then(|template| {
            let roll = mix(key, topic::TEMPLATE);
            (unit(roll) < template.share).then(|| Template {
                group: below(mix(roll, 1), u64::from(template.groups)) as u32,
                words: template.words,
            })
        });
        let mut edit = None;
        let content_kind = match kind {
            ClassKind::Empty => ContentKind::Empty,
            ClassKind::OneWord => ContentKind::OneWord,
            ClassKind::Brief => ContentKind::Brief,
            ClassKind::Cluster(ClusterKind::Chain) => ContentKind::Chain { member },
            _ => ContentKind::Prose,
        };
        if matches!(content_kind, ContentKind::Empty | ContentKind::OneWord | ContentKind::Brief) {
            (script, template) = (Script::Latin, None);
        }
        if let ClassKind::Cluster(ClusterKind::Near { low, high }) = kind
            && member > 0
        {
            let own = mix(mix(key, topic::EDIT), u64::from(member));
            edit = Some(Edit {
                seed: own,
                resemblance: low + (high - low) * unit(mix(own, topic::BAND)),
                mark: unique_word(Namespace::Edit, entry.number_base + document),
            });
        }
        // Edits and chains are measured in words, so the words must be beyond dispute; boilerplate
        // is in one language.
        let measured = matches!(kind, ClassKind::Cluster(ClusterKind::Near { .. } | ClusterKind::Chain));
        if template.is_some() {
            script = Script::Latin;
        } else if measured && !script.is_spaced() {
            script = self.spaced_script(mix(key, topic::SCRIPT));
        }
        let topic = Extra::Unique(unique_word(Namespace::Topic, number));
        Content { kind: content_kind, key, topic, script, template, edit }
    }

    fn any_script(&self, hash: u64) -> Script {
        let mut at = below(hash, self.script_weights);
        for &(script, weight) in &self.spec.scripts {
            if at < u64::from(weight) {
                return script;
            }
            at -= u64::from(weight);
        }
        Script::Latin
    }

    fn spaced_script(&self, hash: u64) -> Script {
        let script = self.any_script(hash);
        if script.is_spaced() { script } else { Script::Latin }
    }

    /// Writes a content down as words.
    pub(crate) fn compose(&self, content: &Content, draft: &mut Draft, positions: &mut Vec<u32>) {
        draft.clear(content.script);
        let vocabulary = self.vocabulary(content.script);
        let mut dice = Dice::new(content.key);
        if let Some(template) = content.template {
            self.boilerplate(template, 0, draft);
        }
        match content.kind {
            ContentKind::Empty => {}
            ContentKind::OneWord => draft.prose(vocabulary, &mut dice, 1, content.topic),
            ContentKind::Brief => {
                let words = self.brief_length(&mut dice);
                draft.prose(vocabulary, &mut dice, words, content.topic);
            }
            ContentKind::Prose => {
                let words = self.length(&mut dice);
                draft.prose(vocabulary, &mut dice, words, content.topic);
            }
            ContentKind::Chain { member } => {
                let words = self.chain_block();
                for block in member..member + CHAIN_REACH {
                    let mut dice = Dice::new(mix(content.key, topic::CHAIN | u64::from(block)));
                    draft.sentences(vocabulary, &mut dice, words, BlockKind::Paragraph);
                }
            }
            ContentKind::Day(day) => self.calendar_day(content, day, &mut dice, draft),
        }
        if let Some(template) = content.template {
            self.boilerplate(template, 1, draft);
        }
        if let Some(edit) = &content.edit {
            edit.apply(draft, vocabulary, self.spec.shingle, positions);
        }
    }

    /// The words that [`Web::compose`] will write, without writing them.
    pub(crate) fn n_words(&self, content: &Content) -> u32 {
        let mut dice = Dice::new(content.key);
        let own = match content.kind {
            ContentKind::Empty => 0,
            ContentKind::OneWord => 1,
            ContentKind::Brief => self.brief_length(&mut dice),
            ContentKind::Prose => self.length(&mut dice),
            ContentKind::Chain { .. } => CHAIN_REACH * self.chain_block(),
            ContentKind::Day(_) => 6 + day_length(&mut dice),
        };
        own + content.template.map_or(0, |template| template.words)
    }

    fn brief_length(&self, dice: &mut Dice) -> u32 {
        dice.between(2, self.spec.shingle.saturating_sub(1).max(2))
    }

    /// Words that a member of a chain does not share with the one before.
    fn chain_block(&self) -> u32 {
        (self.spec.shingle * 2).max((self.spec.lengths.mean / f64::from(CHAIN_REACH)) as u32)
    }

    /// Words of a text: log-normal, with the wanted mean.
    fn length(&self, dice: &mut Dice) -> u32 {
        let lengths = &self.spec.lengths;
        let words = math::exp(self.mu + lengths.sigma * dice.normal());
        (words as u32).clamp(lengths.least.max(1), lengths.most.max(1))
    }

    /// Half of a template: 0 is the header, 1 the footer.
    fn boilerplate(&self, template: Template, half: u64, draft: &mut Draft) {
        let key = mix(mix(self.spec.seed, topic::TEMPLATE_TEXT), u64::from(template.group));
        let mut dice = Dice::new(mix(key, half));
        let vocabulary = self.vocabulary(Script::Latin);
        let (words, kind) = if half == 0 {
            (template.words / 2, BlockKind::Header)
        } else {
            (template.words - template.words / 2, BlockKind::Footer)
        };
        // Several blocks, as navigation bars and small print have.
        let mut left = words;
        while left > 0 {
            let block = if left < 50 { left } else { 25 };
            draft.sentences(vocabulary, &mut dice, block, kind);
            left -= block;
        }
    }

    /// All days of a calendar are alike but for their date, which stands at the top and at the
    /// bottom.
    fn calendar_day(&self, content: &Content, day: u32, dice: &mut Dice, draft: &mut Draft) {
        let vocabulary = self.vocabulary(content.script);
        let date = calendar_date(day);
        let month = below(mix(content.key, u64::from(date.1)), u64::from(vocabulary.len())) as u32;
        let push_date = |draft: &mut Draft| {
            draft.push_extra(Extra::Number(date.2));
            draft.push_word(month);
            draft.push_extra(Extra::Number(date.0));
        };
        push_date(draft);
        draft.end_block(BlockKind::Title);
        let words = day_length(dice);
        draft.prose(vocabulary, dice, words, content.topic);
        push_date(draft);
        draft.end_block(BlockKind::Paragraph);
    }

    /// What markup varies by: the same for all places of a collection, so that a mirror is a copy
    /// byte for byte.
    pub(crate) fn markup_key(&self, location: Location) -> u64 {
        let place = &self.places[location.place as usize];
        let key = mix(self.collections[place.collection as usize].key, topic::MARKUP);
        match location.spot {
            Spot::Slot(slot) => mix(key, u64::from(slot)),
            Spot::Added(nth) => mix(mix(key, 1 << 40 | u64::from(location.place)), u64::from(nth)),
        }
    }
}

/// Words of a calendar page besides its dates.
fn day_length(dice: &mut Dice) -> u32 {
    dice.between(90, 160)
}

/// Year, month and day of a calendar page, in months of 28 days.
pub(crate) fn calendar_date(day: u32) -> (u32, u32, u32) {
    (1990 + day / 336, 1 + day / 28 % 12, 1 + day % 28)
}

/// The first slot without children in a tree of `slots` pages with `branching` children each.
pub(crate) fn first_leaf(slots: u32, branching: u32) -> u32 {
    if slots < 2 { 0 } else { (slots - 2) / branching + 1 }
}

/// The slots that a replica lacks, as a mask: for partial mirrors whole branches, otherwise leaves,
/// and `cut` slots.
fn missing_slots(slots: u32, branching: u32, spec: &ReplicaSpec, cut: &[u32], seed: u64) -> Vec<bool> {
    let mut missing = vec![false; slots as usize];
    for &slot in cut {
        missing[slot as usize] = true;
    }
    let mut wanted = (spec.missing * f64::from(slots)).round() as u64;
    if spec.kind == MirrorKind::Partial && slots > 1 {
        let order = Permutation::new(u64::from(slots - 1), seed);
        for nth in 0..u64::from(slots - 1) {
            let top = 1 + order.apply(nth);
            // Level by level, a branch is a range that grows by the branching factor.
            let (mut low, mut high) = (top, top);
            let mut branch = Vec::new();
            while low < u64::from(slots) {
                branch.push(low..(high + 1).min(u64::from(slots)));
                (low, high) = (low * u64::from(branching) + 1, (high + 1) * u64::from(branching));
            }
            let size: u64 = branch.iter().map(|range| range.end - range.start).sum();
            if size <= wanted && !branch.iter().cloned().flatten().any(|slot| missing[slot as usize]) {
                branch.into_iter().flatten().for_each(|slot| missing[slot as usize] = true);
                wanted -= size;
            }
            if wanted == 0 {
                break;
            }
        }
    } else {
        let leaves = first_leaf(slots, branching).max(1);
        let n_leaves = u64::from(slots.saturating_sub(leaves));
        let order = Permutation::new(n_leaves.max(1), seed);
        for nth in 0..wanted.min(n_leaves) {
            missing[leaves as usize + order.apply(nth) as usize] = true;
        }
    }
    missing
}

fn ranges(mask: &[bool]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for (slot, _) in mask.iter().enumerate().filter(|&(_, &missing)| missing) {
        match ranges.last_mut() {
            Some((first, length)) if *first + *length == slot as u32 => *length += 1,
            _ => ranges.push((slot as u32, 1)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests;
