//! What several tests need.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use onionskin_core::{Recipe, SplitMix64, scramble};
use onionskin_store::MemoryBudget;
use onionskin_store::storage::Storage;
use onionskin_store::testing::Faulty;

use crate::{Document, Options, Params, Probe, Seen};

/// A folder in memory where there is one: these tests make thousands of files.
pub(crate) fn fast_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn options(table_documents: u32) -> Options {
    with_storage(table_documents, Faulty::never())
}

pub(crate) fn with_storage(table_documents: u32, storage: Arc<dyn Storage>) -> Options {
    Options { table_documents, storage, ..Options::new(MemoryBudget::from_mib(16)) }
}

pub(crate) fn params(recipe: &str, names: bool) -> Params {
    Params::new(&recipe.parse::<Recipe>().unwrap(), 1, names).unwrap()
}

/// A text with features of its own.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    pub fp: u64,
    pub features: Vec<u64>,
    /// Empty where there are no sketches.
    pub sketch: Vec<u32>,
}

impl Text {
    /// A text that shares nothing with others.
    pub(crate) fn lone(id: u64, k: usize) -> Text {
        let mut rng = SplitMix64::new(id);
        Text { fp: scramble(id), features: (0..k).map(|_| rng.next_u64()).collect(), sketch: vec![] }
    }

    /// The same with a sketch of its own.
    pub(crate) fn sketched(id: u64, k: usize, minima: usize) -> Text {
        let mut rng = SplitMix64::new(id ^ 0x5ca1ab1e);
        Text { sketch: (0..minima).map(|_| rng.next_u32()).collect(), ..Text::lone(id, k) }
    }

    pub(crate) fn probe(&self) -> Probe<'_> {
        Probe::new(self.fp, &self.features).with_sketch(&self.sketch)
    }

    pub(crate) fn document<'a>(&'a self, key: u64, name: &'a str) -> Document<'a> {
        Document { probe: self.probe(), key, name }
    }
}

/// The keys of all living documents, in order.
pub(crate) fn living(seen: &Seen) -> Vec<u64> {
    let mut keys = Vec::new();
    let view = seen.view();
    view.each_document(|doc, record| {
        if !view.removed.is_removed(doc) {
            keys.push(record.key);
        }
        Ok(())
    })
    .unwrap();
    keys
}

/// The files of a folder but for the lock, in order.
pub(crate) fn files(dir: &Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| !path.ends_with("lock"));
    files.sort();
    files
}
