//! What several tests need: a generated web, all the way to its index.

use std::fs;
use std::path::PathBuf;

use onionskin_mirror::{CollectionsParams, collections};
use onionskin_scan::{ScanParams, scan};
use onionskin_similar::{SimilarParams, similar};
use onionskin_store::Quiet;
use onionskin_store::{Atlas, MemoryBudget};
use onionskin_testkit::{Preset, WarcOptions, Web, WebSpec};

use crate::{BuildParams, Built, Copies, Index};

pub(crate) struct Indexed {
    pub folder: tempfile::TempDir,
    pub atlas: Atlas,
    pub copies: Copies,
    pub index: Index,
    pub built: Built,
}

impl Indexed {
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// A generated web with copies and mirrors in it, searched and indexed.
pub(crate) fn indexed(preset: Preset, pages: u64, seed: u64) -> Indexed {
    let folder = tempfile::tempdir().unwrap();
    let web = Web::new(&WebSpec::of(preset, pages, seed)).unwrap();
    let input = folder.path().join("web.warc");
    let mut file = fs::File::create(&input).unwrap();
    web.write_warc(&mut file, 0..web.n_pages(), WarcOptions::default(), &mut |_, _| {}).unwrap();
    index_file(folder, input)
}

/// A file, searched and indexed.
pub(crate) fn index_file(folder: tempfile::TempDir, input: PathBuf) -> Indexed {
    let atlas_dir = folder.path().join("atlas");
    let mut params = ScanParams::new(vec![input.display().to_string()], atlas_dir.clone());
    params.memory = MemoryBudget::from_mib(256);
    scan(&params, &Quiet).unwrap();
    similar(&SimilarParams::new(atlas_dir.clone()), &Quiet).unwrap();
    collections(&CollectionsParams::new(atlas_dir.clone()), &Quiet).unwrap();
    let atlas = Atlas::open(&atlas_dir).unwrap();
    let memory = MemoryBudget::from_mib(256);
    let built = Index::build(&atlas, &BuildParams { memory, ..BuildParams::default() }, &Quiet).unwrap();
    let index = Index::open(&atlas, None).unwrap();
    let copies = Copies::read(&atlas, memory).unwrap();
    Indexed { folder, atlas, copies, index, built }
}
