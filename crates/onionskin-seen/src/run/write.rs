//! Writes a run, once, from front to back.

use std::path::Path;

use onionskin_store::storage::Storage;

use super::format::{GROUP, POSTING, Record, RunMeta, Shape, SketchShape};
use crate::blocks::BlockWriter;
use crate::error::SeenError;

/// What has to be known of a run before it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunPlan {
    pub number: u64,
    pub first: u32,
    pub docs: u32,
    /// Bytes of names.
    pub names: u64,
    /// What sketches are like.
    pub sketch: SketchShape,
}

/// Writes a run: all documents, then all names, then all sketches, then all postings in order of
/// key and document.
pub(crate) struct RunWriter {
    out: BlockWriter,
    meta: RunMeta,
    shape: Shape,
    /// Which documents are centres, where there are sketches.
    centres: Vec<u64>,
    /// Postings in each bucket, one further on.
    directory: Vec<u32>,
}

impl RunWriter {
    /// Begins a run. How many postings and centres there are comes out in the end.
    pub(crate) fn create(storage: &dyn Storage, dir: &Path, plan: RunPlan) -> Result<RunWriter, SeenError> {
        let RunPlan { number, first, docs, names, sketch } = plan;
        let meta = RunMeta { number, first, docs, centres: 0, postings: 0, names, sketch };
        let mut out = BlockWriter::create(storage, &meta.path(dir), number)?;
        out.write(&meta.header())?;
        let shape = meta.shape();
        let directory = vec![0; shape.buckets() as usize + 1];
        let centres = if sketch.is_none() { vec![] } else { vec![0; docs.div_ceil(GROUP) as usize] };
        Ok(RunWriter { out, meta, shape, centres, directory })
    }

    /// The next document; `doc` is its number.
    pub(crate) fn push_document(&mut self, doc: u32, record: Record) -> Result<(), SeenError> {
        if record.centre == doc {
            self.meta.centres += 1;
            let place = doc - self.meta.first;
            if let Some(bits) = self.centres.get_mut((place / GROUP) as usize) {
                *bits |= 1 << (place % GROUP);
            }
        }
        self.out.write(&record.to_bytes())
    }

    pub(crate) fn push_names(&mut self, bytes: &[u8]) -> Result<(), SeenError> {
        self.out.write(bytes)
    }

    /// Ends documents and names; sketches follow, of all centres in order, or nothing in an index
    /// without them.
    pub(crate) fn begin_sketches(&mut self) -> Result<(), SeenError> {
        let mut before = 0u32;
        for bits in &self.centres {
            self.out.write(&before.to_le_bytes())?;
            self.out.write(&bits.to_le_bytes())?;
            before += bits.count_ones();
        }
        Ok(())
    }

    /// The minima of the next centres.
    pub(crate) fn push_sketch(&mut self, sketch: &[u32]) -> Result<(), SeenError> {
        self.out.write(&self.meta.sketch.bytes(sketch))
    }

    /// Sketches as they are in another run.
    pub(crate) fn push_sketch_bytes(&mut self, bytes: &[u8]) -> Result<(), SeenError> {
        self.out.write(bytes)
    }

    /// The next posting, to a document by its number.
    #[inline]
    pub(crate) fn push_posting(&mut self, key: u64, doc: u32) -> Result<(), SeenError> {
        let posting = self.shape.pack(key, doc - self.meta.first).to_le_bytes();
        self.directory[self.shape.bucket(key) as usize + 1] += 1;
        self.meta.postings += 1;
        self.out.write(&posting[..POSTING])
    }

    /// Makes the run safe.
    pub(crate) fn finish(mut self) -> Result<RunMeta, SeenError> {
        let end = self.meta.postings_at() + self.meta.postings * POSTING as u64;
        self.out.write(&vec![0; (self.meta.directory_at() - end) as usize])?;
        let mut sum = 0u32;
        for count in &self.directory {
            sum = sum.saturating_add(*count);
            self.out.write(&sum.to_le_bytes())?;
        }
        self.out.finish()?;
        Ok(self.meta)
    }
}
