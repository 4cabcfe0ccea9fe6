//! What the tests of every format share: folders to write inputs into, and a reader that checks the
//! laws of the task stream on whatever it is given.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{
    BadRecord, Document, InputFailure, Options, Position, Scratch, SkipReason, Source, Tasks, Visitor,
    discover,
};

/// A document that owns its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Owned {
    pub(crate) source: u32,
    pub(crate) offset: u64,
    pub(crate) id: Option<String>,
    pub(crate) url: Option<String>,
    pub(crate) site: Option<String>,
    pub(crate) media_type: String,
    pub(crate) bytes: u64,
    pub(crate) title: String,
    pub(crate) text: String,
    pub(crate) links: Vec<String>,
    pub(crate) canonical: Option<String>,
    pub(crate) fetched_at: Option<i64>,
    pub(crate) payload_sha1: Option<[u8; 20]>,
    pub(crate) revisit: bool,
    pub(crate) revisit_of: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) documents: Vec<Owned>,
    pub(crate) bad: Vec<BadRecord>,
    pub(crate) skipped: Vec<SkipReason>,
    pub(crate) failed: Vec<InputFailure>,
}

impl Seen {
    pub(crate) fn texts(&self) -> Vec<&str> {
        self.documents.iter().map(|document| &*document.text).collect()
    }

    /// Offset and code of each bad record.
    pub(crate) fn bad_codes(&self) -> Vec<(u64, &'static str)> {
        self.bad.iter().map(|bad| (bad.offset, bad.reason.code())).collect()
    }

    fn append(&mut self, other: Seen) {
        self.documents.extend(other.documents);
        self.bad.extend(other.bad);
        self.skipped.extend(other.skipped);
        self.failed.extend(other.failed);
    }
}

impl Visitor for Seen {
    fn document(&mut self, document: Document<'_>) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        self.documents.push(Owned {
            source: document.source,
            offset: document.offset,
            id: owned(document.id),
            url: owned(document.url),
            site: owned(document.site),
            media_type: document.media_type.to_owned(),
            bytes: document.bytes,
            title: document.title.to_owned(),
            text: document.text.to_owned(),
            links: document.links.to_vec(),
            canonical: owned(document.canonical),
            fetched_at: document.fetched_at,
            payload_sha1: document.payload_sha1,
            revisit: document.revisit,
            revisit_of: owned(document.revisit_of),
        });
    }

    fn bad_record(&mut self, bad: BadRecord) {
        self.bad.push(bad);
    }

    fn skipped(&mut self, reason: SkipReason) {
        self.skipped.push(reason);
    }

    fn failed(&mut self, failure: InputFailure) {
        self.failed.push(failure);
    }
}

/// A folder that goes away.
pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    pub(crate) fn input(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn sources(&self, names: &[&str], options: &Options) -> Vec<Source> {
        let inputs: Vec<String> = names.iter().map(|name| self.input(name)).collect();
        discover(&inputs, options).unwrap()
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zst(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// What each task saw, and the position after it.
pub(crate) fn run_tasks(mut tasks: Tasks, options: &Options) -> Vec<(Position, Seen)> {
    let mut scratch = Scratch::new(options);
    let mut results = Vec::new();
    while let Some(task) = tasks.next_task() {
        let (position, mut seen) = (task.position(), Seen::default());
        task.run(&mut scratch, &mut seen);
        results.push((position, seen));
    }
    results
}

/// Reads the sources in order, and checks on the way that tasks can be run in any order, and taken
/// up after each of them.
pub(crate) fn read(sources: Vec<Source>, options: &Options) -> Seen {
    let (sources, shared): (Arc<[Source]>, _) = (sources.into(), Arc::new(options.clone()));
    let resumable = !sources.iter().any(Source::is_stream);
    let results = run_tasks(Tasks::new(Arc::clone(&sources), Arc::clone(&shared)), options);

    if resumable {
        let mut tasks = Tasks::new(Arc::clone(&sources), Arc::clone(&shared));
        let mut all: Vec<_> = std::iter::from_fn(|| tasks.next_task()).collect();
        let mut scratch = Scratch::new(options);
        all.reverse();
        for (task, (position, expected)) in all.into_iter().zip(results.iter().rev()) {
            assert_eq!(task.position(), *position);
            let mut seen = Seen::default();
            task.run(&mut scratch, &mut seen);
            assert_eq!(seen, *expected, "a task gives the same in any order");
        }
        // Every position when they are few, else some.
        let stride = results.len().div_ceil(40).max(1);
        let starts = (0..results.len()).step_by(stride).chain(results.len().checked_sub(1));
        for at in starts {
            let tail = Tasks::starting_at(Arc::clone(&sources), Arc::clone(&shared), results[at].0).unwrap();
            assert_eq!(run_tasks(tail, options), results[at + 1..], "taken up after task {at}");
        }
        if let Some((end, _)) = results.last() {
            assert!(end.source as usize <= sources.len());
        }
    }

    let mut seen = Seen::default();
    for (_, part) in results {
        seen.append(part);
    }
    if resumable {
        check_lookup(&sources, &seen, options);
    }
    seen
}

/// Every document, or some of many, is found again by its source and offset.
fn check_lookup(sources: &[Source], seen: &Seen, options: &Options) {
    let mut scratch = Scratch::new(options);
    let stride = seen.documents.len().div_ceil(40).max(1);
    for document in seen.documents.iter().step_by(stride) {
        let (source, offset) = (document.source, document.offset);
        let mut found = Seen::default();
        let read = sources[source as usize].read_at(offset, options, &mut scratch, &mut |document| {
            found.document(Document { source, ..document });
        });
        let there = seen.documents.iter().filter(|other| (other.source, other.offset) == (source, offset));
        assert_eq!(found.documents, there.cloned().collect::<Vec<_>>(), "{read:?} at {offset}");
    }
}
