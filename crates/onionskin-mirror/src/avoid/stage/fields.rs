//! The fields of an [`AvoidReport`] as programs see them: one level of names, and the entries of
//! the list.

use std::collections::BTreeMap;
use std::path::Path;

use onionskin_store::json;
use serde::{Serialize, Serializer};

use super::AvoidReport;
use crate::avoid::AvoidEntry;

#[derive(Serialize)]
struct Fields<'a> {
    #[serde(serialize_with = "json::path")]
    atlas: &'a Path,
    rules: u64,
    pages: u64,
    bytes: u64,
    exact_pages: u64,
    exact_bytes: u64,
    near_pages: u64,
    near_bytes: u64,
    skipped_pages: u64,
    skipped_bytes: u64,
    lost_pages: u64,
    similar_share_before: f64,
    similar_share_after: f64,
    exact_share_before: f64,
    exact_share_after: f64,
    uncovered: u64,
    spared_rules: u64,
    capped_rules: u64,
    left_out: &'a BTreeMap<String, u64>,
    weak: u64,
    protected: u64,
    entries: &'a [AvoidEntry],
}

impl Serialize for AvoidReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let replayed = &self.simulation;
        let fields = Fields {
            atlas: &self.atlas,
            rules: self.list.n_rules() as u64,
            pages: self.all.pages,
            bytes: self.all.bytes,
            exact_pages: self.exact.pages,
            exact_bytes: self.exact.bytes,
            near_pages: self.near.pages,
            near_bytes: self.near.bytes,
            skipped_pages: replayed.skipped,
            skipped_bytes: replayed.skipped_bytes,
            lost_pages: replayed.lost,
            similar_share_before: replayed.before.similar_share(),
            similar_share_after: replayed.after.similar_share(),
            exact_share_before: replayed.before.exact_share(),
            exact_share_after: replayed.after.exact_share(),
            uncovered: self.uncovered,
            spared_rules: self.spared,
            capped_rules: self.capped.rules,
            left_out: &self.left_out,
            weak: self.weak,
            protected: self.protected,
            entries: &self.list.entries,
        };
        fields.serialize(serializer)
    }
}
