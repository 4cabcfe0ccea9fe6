//! Rows of the tables that the search for mirrors fills.

#![cfg_attr(feature = "openapi", allow(unused_qualifications, reason = "what utoipa writes has them"))]

use arrow_array::ArrayRef;
use onionskin_core::{CollectionId, DocId, Packed, ReplicaId, RuleId, SiteId, SlotId};
use serde::Serialize;

use super::TableError;
use super::row::{BATCH, Cell, Row, Selection, handles, rows};
use super::typed::Columns;
use super::words::{CollectionKind, Newer, PrincipalReason, Role};
use crate::schema::Table;

handles! {
    "collections": CollectionsWriter, CollectionsReader of CollectionRow;
    "collection_pages": CollectionPagesWriter, CollectionPagesReader of CollectionPageRow;
    "collection_groups": CollectionGroupsWriter, CollectionGroupsReader of CollectionGroupRow;
    "url_rules": UrlRulesWriter, UrlRulesReader of UrlRuleRow;
}

rows! {
    Collections by group: CollectionId, replica: ReplicaId in batches of BATCH:
    /// A copy of a collection.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    struct CollectionRow {
        /// The collection that it is a copy of.
        #[cfg_attr(feature = "openapi", schema(value_type = u32))]
        group: CollectionId,
        /// Its number in the group.
        #[cfg_attr(feature = "openapi", schema(value_type = u32))]
        replica: ReplicaId,
        /// The site that it stands on.
        #[cfg_attr(feature = "openapi", schema(value_type = Option<u32>))]
        site: Option<SiteId> => Packed<SiteId>,
        /// The page to begin with.
        #[cfg_attr(feature = "openapi", schema(value_type = u32))]
        root_doc: DocId,
        /// Its address.
        root_url: Option<String>,
        /// Pages of its own; virtual ones are not.
        pages: u64,
        /// Whether the others are measured by it.
        is_principal: bool,
        /// The folder that its pages are in.
        folder: String,
        /// Why it is there.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        kind: CollectionKind,
        /// Of the pages of the principal, those that it has a copy of.
        coverage: f64,
        /// Pages that are similar to those of other replicas.
        copies: u64,
        /// Pages at the place of one of the principal that are no longer similar.
        changed: u64,
        /// Pages that the principal has not.
        added: u64,
        /// Pages of the principal that it has not.
        missing: u64,
        /// Pages of others that it links to in place of its own.
        virtual_pages: u64,
        /// Bytes of its own pages.
        bytes: u64,
        /// Which of the two is the newer version.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        newer: Newer,
    }

    CollectionPages by group: CollectionId, replica: ReplicaId, slot: SlotId, doc: DocId in batches of BATCH:
    /// A page of a copy of a collection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    struct CollectionPageRow {
        /// The collection.
        group: CollectionId,
        /// The copy.
        replica: ReplicaId,
        /// Which page of the collection it is.
        slot: SlotId,
        /// The document.
        doc: DocId,
        /// Whether it stands on another replica.
        is_virtual: bool,
        /// What it is there.
        role: Role,
    }

    CollectionGroups by group: CollectionId in batches of BATCH:
    /// A collection with all its copies.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
    struct CollectionGroupRow {
        /// Its number.
        #[cfg_attr(feature = "openapi", schema(value_type = u32))]
        group: CollectionId,
        /// Why it is copied.
        #[cfg_attr(feature = "openapi", schema(value_type = String))]
        kind: CollectionKind,
        /// What it is called, from titles and paths.
        name: String,
        /// Copies: its cardinality.
        replicas: u64,
        /// Pages that two replicas or more have: its size.
        slots: u64,
        /// Sites that it stands on.
        sites: u64,
        /// Pages of all replicas.
        pages: u64,
        /// Bytes of all replicas.
        bytes: u64,
        /// Copies outside the principal: what a crawler can spare.
        duplicate_pages: u64,
        /// Their bytes.
        duplicate_bytes: u64,
        /// Whether it has fewer pages than ten.
        is_noise: bool,
        /// What the kind was told by.
        evidence: String,
        /// What the principal was chosen by; `None` in atlases that do not say.
        #[cfg_attr(feature = "openapi", schema(value_type = Option<String>))]
        principal_reason: Option<PrincipalReason>,
        /// The same in words, with numbers.
        principal_evidence: Option<String>,
    }

    UrlRules by rule: RuleId in batches of BATCH:
    /// A rewriting of addresses under which pages stay the same.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    struct UrlRuleRow {
        /// Its number.
        rule: RuleId,
        /// The host that it was learned on; `None` when it holds everywhere.
        host: Option<String>,
        /// What it does.
        kind: String,
        /// What it does it to.
        pattern: String,
        /// Pairs of addresses that it maps to each other and that are copies.
        support: u64,
        /// Pairs of addresses that it maps to each other.
        checked: u64,
        /// Support of checked.
        confidence: f64,
        /// An address.
        example_from: String,
        /// What becomes of it.
        example_to: String,
    }
}
