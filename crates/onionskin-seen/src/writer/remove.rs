//! Removing documents, and who takes the place of a removed centre.

use std::collections::{BTreeMap, BTreeSet};

use super::Seen;
use crate::error::SeenError;
use crate::removed::NOBODY;
use crate::wal::Change;

impl Seen {
    /// Removes documents by their numbers; returns how many were there. The oldest living copy of a
    /// removed centre inherits its place, and finding it takes one pass over all documents, however
    /// many are removed at once.
    pub fn remove(&mut self, docs: &[u32]) -> Result<u64, SeenError> {
        self.ensure_usable()?;
        let mut removed = 0;
        // Centres that need an heir.
        let mut orphaned = BTreeMap::new();
        for doc in docs {
            let Some(record) = self.view.record(*doc)? else { continue };
            if self.view.removed.is_removed(*doc) {
                continue;
            }
            removed += 1;
            let inherited = self.view.removed.inherited_from(*doc);
            self.stage(Change::Remove { doc: *doc, heir: NOBODY })?;
            if let Some(centre) = inherited.or((record.centre == *doc).then_some(*doc)) {
                orphaned.insert(centre, NOBODY);
            }
        }
        if !orphaned.is_empty() {
            let removed = &self.view.removed;
            self.view.each_document(|doc, record| {
                if let Some(heir) = orphaned.get_mut(&record.centre)
                    && *heir == NOBODY
                    && !removed.is_removed(doc)
                {
                    *heir = doc;
                }
                Ok(())
            })?;
            for (doc, heir) in orphaned {
                self.stage(Change::Remove { doc, heir })?;
            }
        }
        Ok(removed)
    }

    /// Removes all documents with these keys, in one pass or two over all documents. Returns how
    /// many each key had.
    pub fn remove_keys(&mut self, keys: &BTreeSet<u64>) -> Result<BTreeMap<u64, u64>, SeenError> {
        let mut counts = BTreeMap::new();
        if self.view.params.names {
            return Ok(counts);
        }
        let mut docs = Vec::new();
        let view = &self.view;
        view.each_document(|doc, record| {
            if keys.contains(&record.key) && !view.removed.is_removed(doc) {
                docs.push(doc);
                *counts.entry(record.key).or_insert(0) += 1;
            }
            Ok(())
        })?;
        self.remove(&docs)?;
        Ok(counts)
    }

    /// Removes all documents with these names, in one pass or two over all documents. Returns how
    /// many each name had.
    pub fn remove_names(&mut self, names: &BTreeSet<String>) -> Result<BTreeMap<String, u64>, SeenError> {
        let mut counts = BTreeMap::new();
        let mut docs = Vec::new();
        let view = &self.view;
        view.each_document(|doc, record| {
            if view.removed.is_removed(doc) {
                return Ok(());
            }
            if let Some(name) = view.name(doc, record)?.filter(|name| names.contains(name)) {
                docs.push(doc);
                *counts.entry(name).or_insert(0) += 1;
            }
            Ok(())
        })?;
        self.remove(&docs)?;
        Ok(counts)
    }
}
