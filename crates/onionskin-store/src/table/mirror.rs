//! Rows of the tables that the search for mirrors fills.

#![cfg_attr(feature = "openapi", allow(unused_qualifications, reason = "what utoipa writes has them"))]

use std::fmt;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use serde::Serialize;

use super::rows::{BATCH, flags, ids, maybe_words, row_table, shares, sizes, words};
use super::typed::Columns;
use super::{Input, PartMeta, PartWriter, TableError, TableReader, ValueProblem};
use crate::schema::Table;

/// A copy of a collection.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CollectionRow {
    /// The collection that it is a copy of.
    pub group: u32,
    /// Its number in the group.
    pub replica: u32,
    /// The site that it stands on.
    pub site: u32,
    /// The page to begin with.
    pub root_doc: u32,
    /// Its address.
    pub root_url: Option<String>,
    /// Pages of its own; virtual ones are not.
    pub pages: u64,
    /// Whether the others are measured by it.
    pub is_principal: bool,
    /// The folder that its pages are in.
    pub folder: String,
    /// Why it is there.
    pub kind: String,
    /// Of the pages of the principal, those that it has a copy of.
    pub coverage: f64,
    /// Pages that are similar to those of other replicas.
    pub copies: u64,
    /// Pages at the place of one of the principal that are no longer similar.
    pub changed: u64,
    /// Pages that the principal has not.
    pub added: u64,
    /// Pages of the principal that it has not.
    pub missing: u64,
    /// Pages of others that it links to in place of its own.
    pub virtual_pages: u64,
    /// Bytes of its own pages.
    pub bytes: u64,
    /// `principal`, `replica`, `same` or `unknown`: which of the two is the newer version.
    pub newer: String,
}

/// What a page is in its replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Similar to the pages of the same slot in other replicas.
    Copy,
    /// Not there, but linked to, on another replica (Cho et al. 2000, section 4).
    Virtual,
    /// At the same place as the pages of its slot, but no longer similar to them.
    Changed,
    /// Of this replica alone.
    Added,
    /// A second URL of the page that has this slot.
    Alias,
}

impl Role {
    /// Every role.
    pub const ALL: [Role; 5] = [Role::Copy, Role::Virtual, Role::Changed, Role::Added, Role::Alias];

    const KNOWN: &'static str = "copy, virtual, changed, added, alias";

    /// The word in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            Role::Copy => "copy",
            Role::Virtual => "virtual",
            Role::Changed => "changed",
            Role::Added => "added",
            Role::Alias => "alias",
        }
    }

    fn parse(word: &str) -> Option<Role> {
        Role::ALL.into_iter().find(|role| role.as_str() == word)
    }

    /// Whether a crawler that has the other replicas knows what the page says.
    pub fn is_copy(self) -> bool {
        matches!(self, Role::Copy | Role::Alias)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// A page of a copy of a collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CollectionPageRow {
    /// The collection.
    pub group: u32,
    /// The copy.
    pub replica: u32,
    /// Which page of the collection it is.
    pub slot: u32,
    /// The document.
    pub doc: u32,
    /// Whether it stands on another replica.
    pub is_virtual: bool,
    /// What it is there.
    #[serde(serialize_with = "crate::json::spelled")]
    pub role: Role,
}

/// A collection with all its copies.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CollectionGroupRow {
    /// Its number.
    pub group: u32,
    /// Why it is copied.
    pub kind: String,
    /// What it is called, from titles and paths.
    pub name: String,
    /// Copies: its cardinality.
    pub replicas: u64,
    /// Pages that two replicas or more have: its size.
    pub slots: u64,
    /// Sites that it stands on.
    pub sites: u64,
    /// Pages of all replicas.
    pub pages: u64,
    /// Bytes of all replicas.
    pub bytes: u64,
    /// Copies outside the principal: what a crawler can spare.
    pub duplicate_pages: u64,
    /// Their bytes.
    pub duplicate_bytes: u64,
    /// Whether it has fewer pages than ten.
    pub is_noise: bool,
    /// What the kind was told by.
    pub evidence: String,
}

/// A rewriting of addresses under which pages stay the same.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct UrlRuleRow {
    /// Its number.
    pub rule: u32,
    /// The host that it was learned on; `None` when it holds everywhere.
    pub host: Option<String>,
    /// What it does.
    pub kind: String,
    /// What it does it to.
    pub pattern: String,
    /// Pairs of addresses that it maps to each other and that are copies.
    pub support: u64,
    /// Pairs of addresses that it maps to each other.
    pub checked: u64,
    /// Support of checked.
    pub confidence: f64,
    /// An address.
    pub example_from: String,
    /// What becomes of it.
    pub example_to: String,
}

row_table!(
    Collections,
    CollectionRow,
    CollectionsWriter,
    CollectionsReader,
    "collections",
    (u32, u32),
    |row: &CollectionRow| (row.group, row.replica),
    |rows: &[CollectionRow]| {
        vec![
            ids(&rows.iter().map(|row| row.group).collect::<Vec<_>>()),
            ids(&rows.iter().map(|row| row.replica).collect::<Vec<_>>()),
            ids(&rows.iter().map(|row| row.site).collect::<Vec<_>>()),
            ids(&rows.iter().map(|row| row.root_doc).collect::<Vec<_>>()),
            maybe_words(rows.iter().map(|row| row.root_url.as_deref())),
            sizes(&rows.iter().map(|row| row.pages).collect::<Vec<_>>()),
            flags(&rows.iter().map(|row| row.is_principal).collect::<Vec<_>>()),
            words(rows.iter().map(|row| row.folder.as_str())),
            words(rows.iter().map(|row| row.kind.as_str())),
            shares(&rows.iter().map(|row| row.coverage).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.copies).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.changed).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.added).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.missing).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.virtual_pages).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.bytes).collect::<Vec<_>>()),
            words(rows.iter().map(|row| row.newer.as_str())),
        ]
    },
    |columns: &Columns<'_>| {
        let group = columns.ids("group")?;
        let replica = columns.ids("replica")?;
        let site = columns.ids("site")?;
        let root_doc = columns.ids("root_doc")?;
        let root_url = columns.strings("root_url")?;
        let pages = columns.sizes("pages")?;
        let is_principal = columns.typed("is_principal", |array| array.as_boolean_opt())?;
        let folder = columns.strings("folder")?;
        let kind = columns.strings("kind")?;
        let coverage = columns.shares("coverage")?;
        let copies = columns.sizes("copies")?;
        let changed = columns.sizes("changed")?;
        let added = columns.sizes("added")?;
        let missing = columns.sizes("missing")?;
        let virtual_pages = columns.sizes("virtual_pages")?;
        let bytes = columns.sizes("bytes")?;
        let newer = columns.strings("newer")?;
        let row = |i: usize| CollectionRow {
            group: group.value(i) as u32,
            replica: replica.value(i) as u32,
            site: site.value(i) as u32,
            root_doc: root_doc.value(i) as u32,
            root_url: root_url.is_valid(i).then(|| root_url.value(i).to_owned()),
            pages: pages.value(i) as u64,
            is_principal: is_principal.value(i),
            folder: folder.value(i).to_owned(),
            kind: kind.value(i).to_owned(),
            coverage: coverage.value(i),
            copies: copies.value(i) as u64,
            changed: changed.value(i) as u64,
            added: added.value(i) as u64,
            missing: missing.value(i) as u64,
            virtual_pages: virtual_pages.value(i) as u64,
            bytes: bytes.value(i) as u64,
            newer: newer.value(i).to_owned(),
        };
        Ok((0..group.len()).map(row).collect())
    }
);

row_table!(
    CollectionPages,
    CollectionPageRow,
    CollectionPagesWriter,
    CollectionPagesReader,
    "collection_pages",
    (u32, u32, u32, u32),
    |row: &CollectionPageRow| (row.group, row.replica, row.slot, row.doc),
    |rows: &[CollectionPageRow]| {
        vec![
            ids(&rows.iter().map(|row| row.group).collect::<Vec<_>>()),
            ids(&rows.iter().map(|row| row.replica).collect::<Vec<_>>()),
            ids(&rows.iter().map(|row| row.slot).collect::<Vec<_>>()),
            ids(&rows.iter().map(|row| row.doc).collect::<Vec<_>>()),
            flags(&rows.iter().map(|row| row.is_virtual).collect::<Vec<_>>()),
            words(rows.iter().map(|row| row.role.as_str())),
        ]
    },
    |columns: &Columns<'_>| {
        let group = columns.ids("group")?;
        let replica = columns.ids("replica")?;
        let slot = columns.ids("slot")?;
        let doc = columns.ids("doc")?;
        let is_virtual = columns.typed("is_virtual", |array| array.as_boolean_opt())?;
        let role = columns.strings("role")?;
        let row = |i: usize| {
            Ok(CollectionPageRow {
                group: group.value(i) as u32,
                replica: replica.value(i) as u32,
                slot: slot.value(i) as u32,
                doc: doc.value(i) as u32,
                is_virtual: is_virtual.value(i),
                role: Role::parse(role.value(i))
                    .ok_or_else(|| columns.place("role").wrong(ValueProblem::Word { known: Role::KNOWN }))?,
            })
        };
        (0..group.len()).map(row).collect()
    }
);

row_table!(
    CollectionGroups,
    CollectionGroupRow,
    CollectionGroupsWriter,
    CollectionGroupsReader,
    "collection_groups",
    u32,
    |row: &CollectionGroupRow| row.group,
    |rows: &[CollectionGroupRow]| {
        vec![
            ids(&rows.iter().map(|row| row.group).collect::<Vec<_>>()),
            words(rows.iter().map(|row| row.kind.as_str())),
            words(rows.iter().map(|row| row.name.as_str())),
            sizes(&rows.iter().map(|row| row.replicas).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.slots).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.sites).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.pages).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.bytes).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.duplicate_pages).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.duplicate_bytes).collect::<Vec<_>>()),
            flags(&rows.iter().map(|row| row.is_noise).collect::<Vec<_>>()),
            words(rows.iter().map(|row| row.evidence.as_str())),
        ]
    },
    |columns: &Columns<'_>| {
        let group = columns.ids("group")?;
        let kind = columns.strings("kind")?;
        let name = columns.strings("name")?;
        let replicas = columns.sizes("replicas")?;
        let slots = columns.sizes("slots")?;
        let sites = columns.sizes("sites")?;
        let pages = columns.sizes("pages")?;
        let bytes = columns.sizes("bytes")?;
        let duplicate_pages = columns.sizes("duplicate_pages")?;
        let duplicate_bytes = columns.sizes("duplicate_bytes")?;
        let is_noise = columns.typed("is_noise", |array| array.as_boolean_opt())?;
        let evidence = columns.strings("evidence")?;
        let row = |i: usize| CollectionGroupRow {
            group: group.value(i) as u32,
            kind: kind.value(i).to_owned(),
            name: name.value(i).to_owned(),
            replicas: replicas.value(i) as u64,
            slots: slots.value(i) as u64,
            sites: sites.value(i) as u64,
            pages: pages.value(i) as u64,
            bytes: bytes.value(i) as u64,
            duplicate_pages: duplicate_pages.value(i) as u64,
            duplicate_bytes: duplicate_bytes.value(i) as u64,
            is_noise: is_noise.value(i),
            evidence: evidence.value(i).to_owned(),
        };
        Ok((0..group.len()).map(row).collect())
    }
);

row_table!(
    UrlRules,
    UrlRuleRow,
    UrlRulesWriter,
    UrlRulesReader,
    "url_rules",
    u32,
    |row: &UrlRuleRow| row.rule,
    |rows: &[UrlRuleRow]| {
        vec![
            ids(&rows.iter().map(|row| row.rule).collect::<Vec<_>>()),
            maybe_words(rows.iter().map(|row| row.host.as_deref())),
            words(rows.iter().map(|row| row.kind.as_str())),
            words(rows.iter().map(|row| row.pattern.as_str())),
            sizes(&rows.iter().map(|row| row.support).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.checked).collect::<Vec<_>>()),
            shares(&rows.iter().map(|row| row.confidence).collect::<Vec<_>>()),
            words(rows.iter().map(|row| row.example_from.as_str())),
            words(rows.iter().map(|row| row.example_to.as_str())),
        ]
    },
    |columns: &Columns<'_>| {
        let rule = columns.ids("rule")?;
        let host = columns.strings("host")?;
        let kind = columns.strings("kind")?;
        let pattern = columns.strings("pattern")?;
        let support = columns.sizes("support")?;
        let checked = columns.sizes("checked")?;
        let confidence = columns.shares("confidence")?;
        let example_from = columns.strings("example_from")?;
        let example_to = columns.strings("example_to")?;
        let row = |i: usize| UrlRuleRow {
            rule: rule.value(i) as u32,
            host: host.is_valid(i).then(|| host.value(i).to_owned()),
            kind: kind.value(i).to_owned(),
            pattern: pattern.value(i).to_owned(),
            support: support.value(i) as u64,
            checked: checked.value(i) as u64,
            confidence: confidence.value(i),
            example_from: example_from.value(i).to_owned(),
            example_to: example_to.value(i).to_owned(),
        };
        Ok((0..rule.len()).map(row).collect())
    }
);
