//! What the tests of several stages share.

#![allow(clippy::unwrap_used, reason = "a test fails where it is used")]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use onionskin_core::{ClusterId, DocId};
use onionskin_store::cancel::{self, Cancel};
use onionskin_store::staging::StageKind;
use onionskin_store::table::{ClusterRow, ClusterStatsRow, CopyKind, Method, PairRow};
use onionskin_store::{MemoryBudget, StageName, StageParams, Staging, Table};
use serde_json::json;

use onionskin_store::{Event, Progress, Quiet};

use crate::{ScanParams, scan};

/// Scans inputs with little memory and many tasks.
pub fn scan_into(inputs: &[&Path], atlas: &Path, recipe: &str) {
    let inputs = inputs.iter().map(|input| input.display().to_string()).collect();
    let mut params = ScanParams::new(inputs, atlas.to_owned());
    params.threads = 2;
    params.memory = MemoryBudget::from_mib(256);
    params.options.task_bytes = 8 << 10;
    params.commit_bytes = 100 << 10;
    params.recipe = Some(recipe.parse().unwrap());
    scan(&params, &Quiet).unwrap();
}

/// A pair that shares nine of its chunks, or all when it is exact.
pub fn pair(a: u32, b: u32, resemblance: f64, method: Method) -> PairRow {
    let (containment_a, containment_b) = (resemblance, resemblance);
    PairRow { a: DocId(a), b: DocId(b), shared: 9, resemblance, containment_a, containment_b, method }
}

/// Puts pairs and clusters into an atlas, as a search would. The first member of a cluster is its
/// centre.
pub fn write_similar(atlas: &Path, threshold: Option<f64>, pairs: &[PairRow], clusters: &[Vec<u32>]) {
    let tables = vec![Table::Pairs, Table::Clusters, Table::ClusterStats];
    let mut params = StageParams::new(StageName::Similar, json!({ "test": true }), "w4", tables);
    params.kind = StageKind::Extend;
    params.overwrite = true;
    let (mut staging, _) = Staging::open(atlas, params).unwrap();
    for pair in pairs {
        staging.pairs().unwrap().push(pair).unwrap();
    }
    for (cluster, members) in ClusterId::MIN.onward().zip(clusters) {
        let mut sorted: Vec<DocId> = members.iter().copied().map(DocId).collect();
        let centre = sorted[0];
        sorted.sort_unstable();
        for doc in sorted {
            let is_centre = doc == centre;
            let resemblance_to_centre = if is_centre { 1.0 } else { 0.95 };
            let row = ClusterRow { cluster, doc, is_centre, resemblance_to_centre, kind: CopyKind::Near };
            staging.clusters().unwrap().push(&row).unwrap();
        }
        let stats = ClusterStatsRow {
            cluster,
            centre,
            documents: members.len() as u64,
            exact_copies: 0,
            sites: 1,
            same_site: members.len() as u64 - 1,
            cross_site: 0,
            lowest_resemblance: 0.95,
        };
        staging.cluster_stats().unwrap().push(&stats).unwrap();
    }
    staging.commit(json!({})).unwrap();
    staging
        .publish(|manifest| {
            manifest.stages.set_raw(StageName::Similar, json!({ "threshold": threshold }));
        })
        .unwrap();
}

/// Every file below a folder, by path, but for the one that tells of the run.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(here) = folders.pop() {
        for entry in fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name != onionskin_store::costs::COSTS_FILE) {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Says stop after some events.
pub struct CancelAfter {
    cancel: Cancel,
    left: Cell<u32>,
}

impl CancelAfter {
    /// Does a stage that is stopped after so many events.
    pub fn events<T>(n: u32, stage: impl FnOnce(&dyn Progress) -> T) -> T {
        let stopper = CancelAfter { cancel: Cancel::default(), left: Cell::new(n) };
        cancel::with(&stopper.cancel.clone(), || stage(&stopper))
    }

    /// Does a stage again and again, stopped later each time, until it is done. How often it was
    /// stopped, which is less than `most`.
    pub fn until_done<T, E: std::fmt::Display>(
        most: u32,
        mut stage: impl FnMut(&dyn Progress) -> Result<T, E>,
    ) -> u32 {
        for patience in 0..most {
            match CancelAfter::events(patience, &mut stage) {
                Ok(_) => return patience,
                Err(error) => assert!(error.to_string().contains("stopped on request"), "{error}"),
            }
        }
        panic!("it was stopped {most} times and is not done");
    }
}

impl Progress for CancelAfter {
    fn event(&self, _: Event<'_>) {
        match self.left.get() {
            0 => self.cancel.cancel(),
            left => self.left.set(left - 1),
        }
    }
}
