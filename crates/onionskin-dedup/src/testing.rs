//! A folder with inputs, an atlas and clusters that a test writes down.

use std::fs;
use std::path::{Path, PathBuf};

use onionskin_core::{ClusterId, DocId};
use onionskin_store::staging::{StageKind, StageParams};
use onionskin_store::table::{ClusterRow, ClusterStatsRow, CopyKind, Method, PairRow};
use onionskin_store::{MemoryBudget, StageName, Staging, Table};
use serde_json::{Value, json};

use super::{DedupError, DedupParams, DedupSummary, dedup};
use onionskin_scan::{ScanParams, scan};
use onionskin_store::progress::Quiet;

/// A cluster: its centre, and the other members with resemblance and kind.
pub(crate) type Cluster = (u32, Vec<(u32, f64, CopyKind)>);

pub(crate) fn exact(centre: u32, copies: &[u32]) -> Cluster {
    (centre, copies.iter().map(|doc| (*doc, 1.0, CopyKind::Exact)).collect())
}

pub(crate) fn near(centre: u32, copies: &[(u32, f64)]) -> Cluster {
    (centre, copies.iter().map(|(doc, resemblance)| (*doc, *resemblance, CopyKind::Near)).collect())
}

pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Scans what is in the folder `in`, and says what its clusters are.
    pub fn atlas(&self, clusters: &[Cluster]) {
        self.scan(|_| {});
        self.clusters(clusters, &[], "centred");
    }

    pub fn scan(&self, change: impl FnOnce(&mut ScanParams)) {
        let inputs = vec![self.path("in").display().to_string()];
        let mut params = ScanParams::new(inputs, self.path("atlas"));
        params.threads = 1;
        params.memory = MemoryBudget::from_mib(256);
        params.overwrite = true;
        change(&mut params);
        scan(&params, &Quiet).unwrap();
    }

    pub fn clusters(&self, clusters: &[Cluster], pairs: &[PairRow], how: &str) {
        write_clusters(&self.path("atlas"), clusters, pairs, how);
    }

    pub fn params(&self) -> DedupParams {
        let mut params = DedupParams::new(self.path("atlas"), self.path("out"));
        params.threads = 2;
        params.memory = MemoryBudget::from_mib(256);
        params
    }

    pub fn dedup(&self, change: impl FnOnce(&mut DedupParams)) -> Result<DedupSummary, DedupError> {
        let mut params = self.params();
        change(&mut params);
        dedup(&params, &Quiet)
    }

    /// A file of the results.
    pub fn out(&self, name: &str) -> Vec<u8> {
        fs::read(self.path("out").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub fn out_text(&self, name: &str) -> String {
        String::from_utf8(self.out(name)).unwrap()
    }

    pub fn out_lines(&self, name: &str) -> Vec<Value> {
        self.out_text(name).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn clear(&self) {
        let _ = fs::remove_dir_all(self.path("out"));
    }
}

pub(crate) fn write_clusters(atlas: &Path, clusters: &[Cluster], pairs: &[PairRow], how: &str) {
    let mut sorted = clusters.to_vec();
    sorted.sort_by_key(|(centre, others)| others.iter().map(|(doc, _, _)| *doc).chain([*centre]).min());
    let tables = vec![Table::Pairs, Table::Clusters, Table::ClusterStats];
    let params = StageParams::new(StageName::Similar, json!({ "cluster": how }), "test", tables);
    let params = StageParams { kind: StageKind::Extend, overwrite: true, ..params };
    let (mut staging, _) = Staging::open(atlas, params).unwrap();
    for pair in pairs {
        staging.pairs().unwrap().push(pair).unwrap();
    }
    for (cluster, (centre, others)) in ClusterId::MIN.onward().zip(&sorted) {
        let mut members = others.clone();
        members.push((*centre, 1.0, CopyKind::Exact));
        members.sort_by_key(|(doc, _, _)| *doc);
        for (doc, resemblance_to_centre, kind) in &members {
            let row = ClusterRow {
                cluster,
                doc: DocId(*doc),
                is_centre: doc == centre,
                resemblance_to_centre: *resemblance_to_centre,
                kind: *kind,
            };
            staging.clusters().unwrap().push(&row).unwrap();
        }
        let stats = ClusterStatsRow {
            cluster,
            centre: DocId(*centre),
            documents: members.len() as u64,
            exact_copies: others.iter().filter(|other| other.2 == CopyKind::Exact).count() as u64,
            sites: 1,
            same_site: others.len() as u64,
            cross_site: 0,
            lowest_resemblance: others.iter().fold(1.0, |lowest, other| other.1.min(lowest)),
        };
        staging.cluster_stats().unwrap().push(&stats).unwrap();
    }
    staging.commit(json!({})).unwrap();
    let how = how.to_owned();
    staging
        .publish(|manifest| {
            manifest.stages.set_raw(StageName::Similar, json!({ "cluster": how }));
        })
        .unwrap();
}

pub(crate) fn pair(a: u32, b: u32, resemblance: f64, containment_a: f64, containment_b: f64) -> PairRow {
    let method = Method::Resemblance;
    PairRow { a: DocId(a), b: DocId(b), shared: 7, resemblance, containment_a, containment_b, method }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn gunzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Read;
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}
