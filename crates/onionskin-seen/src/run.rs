//! A run: the documents of a range of numbers, and postings to them in order of key. Written once, from front to back.
//!
//! ```text
//! header │ documents, 18 bytes each │ names │ sketches │ postings, 7 bytes each │ zeros │ directory, 4 bytes a bucket
//! ```
//!
//! Sketches are there in an index that keeps them. They begin with 12 bytes for every 64 documents: how many centres there are before, and a
//! bit for each that is one. Then the minima of centres follow, in order.

use std::path::{Path, PathBuf};

use onionskin_store::storage::{Disk, Storage};

use crate::blocks::{BlockFile, BlockStream, BlockWriter, PAYLOAD, Room, disk_len};
use crate::error::SeenError;

const MAGIC: &[u8; 8] = b"oskseenR";
const HEADER: usize = 40;
pub(crate) const RECORD: usize = 18;
const POSTING: usize = 7;
/// Bits of a key.
pub(crate) const KEY_BITS: u32 = 54;
/// The bits of a text's fingerprint that are kept.
pub(crate) const FP_MASK: u64 = (1 << 48) - 1;
/// A directory counts postings in 32 bits.
pub(crate) const MOST_POSTINGS: u64 = u32::MAX as u64;

/// What is kept of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// 48 bits of the fingerprint of its text.
    pub fp: u64,
    /// The document that its features are indexed with; itself for a centre.
    pub centre: u32,
    /// The caller's key, or the place of its name among the names of the run.
    pub key: u64,
}

impl Record {
    fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..6].copy_from_slice(&self.fp.to_le_bytes()[..6]);
        bytes[6..10].copy_from_slice(&self.centre.to_le_bytes());
        bytes[10..].copy_from_slice(&self.key.to_le_bytes());
        bytes
    }

    fn from_bytes(bytes: &[u8; RECORD]) -> Record {
        let [f0, f1, f2, f3, f4, f5, c0, c1, c2, c3, key @ ..] = *bytes;
        Record {
            fp: u64::from_le_bytes([f0, f1, f2, f3, f4, f5, 0, 0]),
            centre: u32::from_le_bytes([c0, c1, c2, c3]),
            key: u64::from_le_bytes(key),
        }
    }
}

/// What the catalogue says of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunMeta {
    pub number: u64,
    pub first: u32,
    pub docs: u32,
    pub centres: u32,
    pub postings: u64,
    pub names: u64,
    /// Minima in a sketch; 0 in an index without sketches. The same for all runs.
    pub minima: u32,
}

/// Documents whose centres are counted together.
const GROUP: u32 = 64;
/// Bytes for them: centres before, and which are centres.
const GROUP_BYTES: usize = 12;

/// A sketch that was lost to damage: that of the empty set, which is never added.
pub(crate) const LOST_MINIMUM: u32 = u32::MAX;

impl RunMeta {
    pub(crate) fn path(&self, dir: &Path) -> PathBuf {
        dir.join(format!("run-{:08}", self.number))
    }

    fn shape(&self) -> Shape {
        Shape::new(self.docs)
    }

    fn names_at(&self) -> u64 {
        HEADER as u64 + u64::from(self.docs) * RECORD as u64
    }

    fn groups_at(&self) -> u64 {
        self.names_at() + self.names
    }

    fn sketches_at(&self) -> u64 {
        let groups = if self.minima == 0 { 0 } else { self.docs.div_ceil(GROUP) };
        self.groups_at() + u64::from(groups) * GROUP_BYTES as u64
    }

    fn sketch_bytes(&self) -> usize {
        self.minima as usize * 4
    }

    fn postings_at(&self) -> u64 {
        self.sketches_at() + u64::from(self.centres) * self.sketch_bytes() as u64
    }

    fn directory_at(&self) -> u64 {
        // At the beginning of a block, so that no harm is done to the directory and to postings at once.
        (self.postings_at() + self.postings * POSTING as u64).next_multiple_of(PAYLOAD as u64)
    }

    fn content_len(&self) -> u64 {
        self.directory_at() + (self.shape().buckets() + 1) * 4
    }

    /// Bytes on disk.
    pub(crate) fn disk_len(&self) -> u64 {
        disk_len(self.content_len())
    }

    /// Bytes of sketches and of what finds them, checksums left out.
    pub(crate) fn all_sketch_bytes(&self) -> u64 {
        self.postings_at() - self.groups_at()
    }

    /// Bytes on disk without names.
    pub(crate) fn disk_len_without_names(&self) -> u64 {
        disk_len(self.content_len() - self.names)
    }

    /// Bytes of the directory in memory.
    pub(crate) fn directory_bytes(&self) -> u64 {
        (self.shape().buckets() + 1) * 4
    }

    fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&self.number.to_le_bytes());
        header[16..20].copy_from_slice(&self.first.to_le_bytes());
        header[20..24].copy_from_slice(&self.docs.to_le_bytes());
        header[24..32].copy_from_slice(&self.names.to_le_bytes());
        header[32..36].copy_from_slice(&self.minima.to_le_bytes());
        header
    }
}

/// How 54 bits of key and a document become a bucket and 56 bits.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// Bits of a document's place in the run.
    doc_bits: u32,
    bucket_bits: u32,
}

impl Shape {
    fn new(docs: u32) -> Shape {
        let doc_bits = u32::BITS - docs.saturating_sub(1).leading_zeros();
        Shape { doc_bits, bucket_bits: doc_bits.saturating_sub(2) }
    }

    fn buckets(self) -> u64 {
        1 << self.bucket_bits
    }

    fn rest_bits(self) -> u32 {
        KEY_BITS - self.bucket_bits
    }

    #[inline]
    fn bucket(self, key: u64) -> u64 {
        key >> self.rest_bits()
    }

    #[inline]
    fn rest(self, key: u64) -> u64 {
        key & ((1 << self.rest_bits()) - 1)
    }

    #[inline]
    fn pack(self, key: u64, doc: u32) -> u64 {
        self.rest(key) << self.doc_bits | u64::from(doc)
    }

    #[inline]
    fn unpack(self, bucket: u64, posting: u64) -> (u64, u32) {
        let doc = posting & ((1 << self.doc_bits) - 1);
        (bucket << self.rest_bits() | posting >> self.doc_bits, doc as u32)
    }
}

#[inline]
fn posting_of(bytes: &[u8; POSTING]) -> u64 {
    let [a, b, c, d, e, f, g] = *bytes;
    u64::from_le_bytes([a, b, c, d, e, f, g, 0])
}

/// What has to be known of a run before it is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunPlan {
    pub number: u64,
    pub first: u32,
    pub docs: u32,
    /// Bytes of names.
    pub names: u64,
    /// Minima in a sketch.
    pub minima: usize,
}

/// Writes a run: all documents, then all names, then all sketches, then all postings in order of key and document.
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
        let RunPlan { number, first, docs, names, minima } = plan;
        let minima = minima as u32;
        let meta = RunMeta { number, first, docs, centres: 0, postings: 0, names, minima };
        let mut out = BlockWriter::create(storage, &meta.path(dir), number)?;
        out.write(&meta.header())?;
        let shape = meta.shape();
        let directory = vec![0; shape.buckets() as usize + 1];
        let centres = if minima == 0 { vec![] } else { vec![0; docs.div_ceil(GROUP) as usize] };
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

    /// Ends documents and names; sketches follow, of all centres in order, or nothing in an index without them.
    pub(crate) fn begin_sketches(&mut self) -> Result<(), SeenError> {
        let mut before = 0u32;
        for bits in &self.centres {
            self.out.write(&before.to_le_bytes())?;
            self.out.write(&bits.to_le_bytes())?;
            before += bits.count_ones();
        }
        Ok(())
    }

    /// The minima of the next centre.
    pub(crate) fn push_sketch(&mut self, sketch: &[u32]) -> Result<(), SeenError> {
        sketch.iter().try_for_each(|minimum| self.out.write(&minimum.to_le_bytes()))
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

/// How many centres come before the document at a place of a group; `None` if it is no centre itself.
fn nth_centre(group: &[u8; GROUP_BYTES], place: u32) -> Option<u32> {
    let [a, b, c, d, bits @ ..] = *group;
    let bits = u64::from_le_bytes(bits);
    let before = (bits & ((1 << place) - 1)).count_ones();
    (bits >> place & 1 == 1).then(|| u32::from_le_bytes([a, b, c, d]).saturating_add(before))
}

/// A run that is read.
#[derive(Debug)]
pub(crate) struct Run {
    meta: RunMeta,
    shape: Shape,
    file: BlockFile,
    /// In memory when there is room for it.
    directory: Option<Vec<u32>>,
}

impl Run {
    pub(crate) fn open(
        dir: &Path,
        meta: RunMeta,
        directory_in_memory: bool,
        room: Room,
    ) -> Result<Run, SeenError> {
        let file = BlockFile::open(&meta.path(dir), meta.number, meta.content_len(), room)?;
        if !file.with_range(0, HEADER, |header| header == meta.header())? {
            return Err(SeenError::damaged(file.path(), "its header is not what the catalogue says"));
        }
        let mut run = Run { meta, shape: meta.shape(), file, directory: None };
        if directory_in_memory {
            run.directory = Some(run.read_directory()?);
        }
        Ok(run)
    }

    fn read_directory(&self) -> Result<Vec<u32>, SeenError> {
        let mut stream = self.file.stream(self.meta.directory_at());
        let mut directory = Vec::with_capacity(self.shape.buckets() as usize + 1);
        let mut last = 0;
        for _ in 0..=self.shape.buckets() {
            let next = u32::from_le_bytes(stream.take()?);
            if next < last || u64::from(next) > self.meta.postings {
                return Err(SeenError::damaged(self.file.path(), "its directory is out of order"));
            }
            directory.push(next);
            last = next;
        }
        Ok(directory)
    }

    pub(crate) fn meta(&self) -> &RunMeta {
        &self.meta
    }

    pub(crate) fn file(&self) -> &BlockFile {
        &self.file
    }

    /// The numbers of its documents.
    pub(crate) fn contains(&self, doc: u32) -> bool {
        doc >= self.meta.first && doc - self.meta.first < self.meta.docs
    }

    /// A document by its number.
    pub(crate) fn record(&self, doc: u32) -> Result<Record, SeenError> {
        let offset = HEADER as u64 + u64::from(doc - self.meta.first) * RECORD as u64;
        let record =
            self.file.with_range(offset, RECORD, |bytes| bytes.first_chunk().map(Record::from_bytes))?;
        record.ok_or_else(|| SeenError::damaged(self.file.path(), "a document is cut off"))
    }

    /// The name at a place.
    pub(crate) fn name(&self, place: u64) -> Result<Vec<u8>, SeenError> {
        let at = self.meta.names_at();
        let wrong = || SeenError::damaged(self.file.path(), "a name is out of place");
        if place.checked_add(2).is_none_or(|end| end > self.meta.names) {
            return Err(wrong());
        }
        let len = self.file.with_range(at + place, 2, |b| b.first_chunk().map(|b| u16::from_le_bytes(*b)))?;
        let len = len.ok_or_else(wrong)?;
        if place + 2 + u64::from(len) > self.meta.names {
            return Err(wrong());
        }
        self.file.with_range(at + place + 2, usize::from(len), <[u8]>::to_vec)
    }

    /// The place of a centre's sketch among sketches; `None` if it is no centre.
    fn sketch_place(&self, doc: u32) -> Result<Option<u64>, SeenError> {
        let place = doc - self.meta.first;
        let offset = self.meta.groups_at() + u64::from(place / GROUP) * GROUP_BYTES as u64;
        let group = self.file.with_range(offset, GROUP_BYTES, |bytes| bytes.first_chunk().copied())?;
        let Some(nth) = nth_centre(&group.unwrap_or_default(), place % GROUP) else { return Ok(None) };
        if nth >= self.meta.centres {
            return Err(SeenError::damaged(self.file.path(), "a sketch is out of place"));
        }
        Ok(Some(nth.into()))
    }

    /// The minima of a centre, in an index with sketches.
    pub(crate) fn sketch<T>(
        &self,
        doc: u32,
        work: impl FnOnce(&[[u8; 4]]) -> T,
    ) -> Result<Option<T>, SeenError> {
        if self.meta.minima == 0 {
            return Ok(None);
        }
        let Some(place) = self.sketch_place(doc)? else { return Ok(None) };
        let bytes = self.meta.sketch_bytes();
        let offset = self.meta.sketches_at() + place * bytes as u64;
        self.file.with_range(offset, bytes, |bytes| Some(work(bytes.as_chunks().0)))
    }

    /// All sketches, one behind the other, as they are in the file.
    pub(crate) fn copy_sketches(
        &self,
        sink: impl FnMut(&[u8]) -> Result<(), SeenError>,
    ) -> Result<(), SeenError> {
        let len = self.meta.postings_at() - self.meta.sketches_at();
        self.copy(self.meta.sketches_at(), len, sink)
    }

    /// An error if sketches are not those of the centres.
    pub(crate) fn check_sketches(&self) -> Result<(), SeenError> {
        if self.meta.minima == 0 {
            return Ok(());
        }
        let mut nth = 0;
        for document in self.documents() {
            let (doc, record) = document?;
            let expected = (record.centre == doc).then_some(nth);
            if self.sketch_place(doc)? != expected {
                return Err(SeenError::damaged(
                    self.file.path(),
                    format!("the sketch of {doc} is out of place"),
                ));
            }
            nth += u64::from(expected.is_some());
        }
        Ok(())
    }

    fn bucket_range(&self, bucket: u64) -> Result<(u64, u64), SeenError> {
        if let Some(directory) = &self.directory {
            let at = bucket as usize;
            return Ok((u64::from(directory[at]), u64::from(directory[at + 1])));
        }
        let offset = self.meta.directory_at() + bucket * 4;
        let both = self.file.with_range(offset, 8, |bytes| bytes.first_chunk::<8>().copied())?;
        let [a, b, c, d, e, f, g, h] = both.unwrap_or_default();
        let (start, end) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        if start > end || u64::from(end) > self.meta.postings {
            return Err(SeenError::damaged(self.file.path(), "its directory is out of order"));
        }
        Ok((start.into(), end.into()))
    }

    fn posting(&self, nth: u64) -> Result<u64, SeenError> {
        let offset = self.meta.postings_at() + nth * POSTING as u64;
        let posting = self.file.with_range(offset, POSTING, |bytes| bytes.first_chunk().map(posting_of))?;
        posting.ok_or_else(|| SeenError::damaged(self.file.path(), "a posting is cut off"))
    }

    /// Where the postings of a key are, if it has any.
    #[inline]
    pub(crate) fn locate(&self, key: u64) -> Result<Located, SeenError> {
        let (start, end) = self.bucket_range(self.shape.bucket(key))?;
        Ok(Located { key, start, end })
    }

    /// Begins to bring postings near.
    #[inline]
    pub(crate) fn touch(&self, located: &Located) -> u8 {
        self.file.touch(self.meta.postings_at() + located.start * POSTING as u64)
    }

    /// Appends the documents under a key, oldest first, until there are `most` in `out`.
    #[cfg(test)]
    pub(crate) fn lookup(&self, key: u64, most: usize, out: &mut Vec<u32>) -> Result<(), SeenError> {
        self.read_located(&self.locate(key)?, most, out)
    }

    /// The same where the place is known.
    pub(crate) fn read_located(
        &self,
        located: &Located,
        most: usize,
        out: &mut Vec<u32>,
    ) -> Result<(), SeenError> {
        /// Postings of a bucket that are read at once.
        const FEW: u64 = 256;
        let Located { key, mut start, end } = *located;
        let rest = self.shape.rest(key);
        let (doc_bits, first) = (self.shape.doc_bits, self.meta.first);
        if end - start > FEW {
            // A crowd: find its beginning by halving.
            let mut past = end;
            while start < past {
                let middle = start + (past - start) / 2;
                if self.posting(middle)? >> doc_bits < rest { start = middle + 1 } else { past = middle }
            }
        }
        let mask = (1u64 << doc_bits) - 1;
        while start < end && out.len() < most {
            let n = (end - start).min(FEW);
            let offset = self.meta.postings_at() + start * POSTING as u64;
            let passed = self.file.with_range(offset, n as usize * POSTING, |bytes| {
                for posting in bytes.as_chunks::<POSTING>().0 {
                    let posting = posting_of(posting);
                    let here = posting >> doc_bits;
                    if here > rest || out.len() == most {
                        return true;
                    }
                    if here == rest {
                        out.push(first + (posting & mask) as u32);
                    }
                }
                false
            })?;
            if passed {
                break;
            }
            start += n;
        }
        Ok(())
    }

    /// All documents in order.
    pub(crate) fn documents(&self) -> Documents<'_> {
        Documents { stream: self.file.stream(HEADER as u64), next: self.meta.first, left: self.meta.docs }
    }

    /// All names, one behind the other, as they are in the file.
    pub(crate) fn copy_names(
        &self,
        sink: impl FnMut(&[u8]) -> Result<(), SeenError>,
    ) -> Result<(), SeenError> {
        self.copy(self.meta.names_at(), self.meta.names, sink)
    }

    fn copy(
        &self,
        offset: u64,
        mut left: u64,
        mut sink: impl FnMut(&[u8]) -> Result<(), SeenError>,
    ) -> Result<(), SeenError> {
        let mut stream = self.file.stream(offset);
        let mut buffer = vec![0; 1 << 16];
        while left > 0 {
            let n = left.min(buffer.len() as u64) as usize;
            stream.fill(&mut buffer[..n])?;
            sink(&buffer[..n])?;
            left -= n as u64;
        }
        Ok(())
    }

    /// All postings in order.
    pub(crate) fn postings(&self) -> Result<Postings<'_>, SeenError> {
        let mut directory = self.file.stream(self.meta.directory_at());
        let zero = u32::from_le_bytes(directory.take()?);
        if zero != 0 {
            return Err(SeenError::damaged(self.file.path(), "its directory is out of order"));
        }
        Ok(Postings {
            run: self,
            stream: self.file.stream(self.meta.postings_at()),
            directory,
            bucket: 0,
            bucket_end: 0,
            opened: 0,
            nth: 0,
        })
    }

    /// Reads the sound part of a damaged file.
    pub(crate) fn open_damaged(dir: &Path, meta: RunMeta) -> Result<Salvage, SeenError> {
        let file = BlockFile::open_any(&meta.path(dir), meta.number, meta.content_len(), Room::Some)?;
        file.set_limit(64 << 20);
        let sound = (0..file.blocks()).map(|block| file.read_block(block).is_ok()).collect();
        Ok(Salvage { meta, file, sound })
    }
}

/// Where the postings of a key are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Located {
    key: u64,
    start: u64,
    end: u64,
}

/// See [`Run::documents`].
pub(crate) struct Documents<'a> {
    stream: BlockStream<'a>,
    next: u32,
    left: u32,
}

impl Iterator for Documents<'_> {
    type Item = Result<(u32, Record), SeenError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let doc = self.next;
        self.next += 1;
        Some(self.stream.take().map(|bytes| (doc, Record::from_bytes(&bytes))))
    }
}

/// See [`Run::postings`].
pub(crate) struct Postings<'a> {
    run: &'a Run,
    stream: BlockStream<'a>,
    directory: BlockStream<'a>,
    bucket: u64,
    bucket_end: u64,
    /// Buckets whose end is known.
    opened: u64,
    nth: u64,
}

impl Postings<'_> {
    /// The next key and document.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, u32)>, SeenError> {
        if self.nth == self.run.meta.postings {
            return Ok(None);
        }
        while self.nth >= self.bucket_end {
            if self.opened == self.run.shape.buckets() {
                return Err(SeenError::damaged(self.run.file.path(), "its directory is out of order"));
            }
            self.bucket = self.opened;
            self.opened += 1;
            self.bucket_end = u32::from_le_bytes(self.directory.take()?).into();
        }
        self.nth += 1;
        let (key, doc) = self.run.shape.unpack(self.bucket, posting_of(&self.stream.take()?));
        if doc >= self.run.meta.docs {
            return Err(SeenError::damaged(
                self.run.file.path(),
                "a posting to a document that is not there",
            ));
        }
        Ok(Some((key, self.run.meta.first + doc)))
    }
}

/// What is left of a damaged run.
pub(crate) struct Salvage {
    meta: RunMeta,
    file: BlockFile,
    sound: Vec<bool>,
}

impl Salvage {
    pub(crate) fn damaged_blocks(&self) -> u64 {
        self.sound.iter().filter(|sound| !**sound).count() as u64
    }

    fn is_sound(&self, offset: u64, len: u64) -> bool {
        let payload = PAYLOAD as u64;
        let mut blocks = offset / payload..=(offset + len.max(1) - 1) / payload;
        blocks.all(|block| self.sound.get(block as usize).copied().unwrap_or(false))
    }

    fn read<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        if !self.is_sound(offset, N as u64) {
            return None;
        }
        self.file.with_range(offset, N, |bytes| bytes.first_chunk().copied()).ok()?
    }

    fn read_vec(&self, offset: u64, len: usize) -> Option<Vec<u8>> {
        if !self.is_sound(offset, len as u64) {
            return None;
        }
        self.file.with_range(offset, len, <[u8]>::to_vec).ok()
    }

    /// A document, if it is sound.
    pub(crate) fn record(&self, doc: u32) -> Option<Record> {
        let offset = HEADER as u64 + u64::from(doc - self.meta.first) * RECORD as u64;
        self.read(offset).map(|bytes| Record::from_bytes(&bytes))
    }

    /// A name, if it is sound.
    pub(crate) fn name(&self, place: u64) -> Option<Vec<u8>> {
        // A place that is no place would go beyond all numbers.
        if place > self.meta.names {
            return None;
        }
        let at = self.meta.names_at() + place;
        let len = u64::from(u16::from_le_bytes(self.read(at)?));
        if place + 2 + len > self.meta.names {
            return None;
        }
        if len == 0 { Some(Vec::new()) } else { self.read_vec(at + 2, len as usize) }
    }

    /// The minima of a centre, if they are sound.
    pub(crate) fn sketch(&self, doc: u32) -> Option<Vec<u32>> {
        let place = doc - self.meta.first;
        let group = self.meta.groups_at() + u64::from(place / GROUP) * GROUP_BYTES as u64;
        let nth = nth_centre(&self.read(group)?, place % GROUP).filter(|nth| *nth < self.meta.centres)?;
        let at = self.meta.sketches_at() + u64::from(nth) * self.meta.sketch_bytes() as u64;
        let bytes = self.read_vec(at, self.meta.sketch_bytes())?;
        Some(bytes.as_chunks().0.iter().map(|minimum| u32::from_le_bytes(*minimum)).collect())
    }

    /// Where buckets begin, as far as it can be told.
    ///
    /// Between two entries that are sound, the postings tell: they ascend within a bucket, so they descend at borders of buckets only. When they
    /// descend as often as there are borders, these are the borders; when not, some bucket is empty, and none of them is known.
    fn directory(&self) -> Vec<Option<u32>> {
        let buckets = self.meta.shape().buckets();
        let entry = |at: u64| self.read(self.meta.directory_at() + at * 4).map(u32::from_le_bytes);
        let mut directory: Vec<Option<u32>> = (0..=buckets).map(entry).collect();
        directory[0] = Some(0);
        directory[buckets as usize] = u32::try_from(self.meta.postings).ok();
        let known: Vec<usize> = (0..directory.len()).filter(|at| directory[*at].is_some()).collect();
        for gap in known.windows(2).filter(|gap| gap[1] - gap[0] > 1) {
            let (Some(start), Some(end)) = (directory[gap[0]], directory[gap[1]]) else { continue };
            let Some(postings) = (start..end).map(|nth| self.posting(nth)).collect::<Option<Vec<_>>>() else {
                continue;
            };
            let descents = (start + 1..end).zip(postings.windows(2)).filter(|(_, two)| two[0] > two[1]);
            let borders: Vec<u32> = descents.map(|(nth, _)| nth).collect();
            if borders.len() == gap[1] - gap[0] - 1 {
                for (at, border) in (gap[0] + 1..).zip(borders) {
                    directory[at] = Some(border);
                }
            }
        }
        directory
    }

    fn posting(&self, nth: u32) -> Option<u64> {
        let offset = self.meta.postings_at() + u64::from(nth) * POSTING as u64;
        self.read(offset).map(|bytes| posting_of(&bytes))
    }

    /// Every posting that is sound, of buckets whose place is known, in order.
    pub(crate) fn postings(
        &self,
        mut sink: impl FnMut(u64, u32) -> Result<(), SeenError>,
    ) -> Result<(), SeenError> {
        let shape = self.meta.shape();
        let directory = self.directory();
        for (bucket, ends) in (0..).zip(directory.windows(2)) {
            let (Some(start), Some(end)) = (ends[0], ends[1]) else { continue };
            for nth in start..end {
                let Some(posting) = self.posting(nth) else { continue };
                let (key, doc) = shape.unpack(bucket, posting);
                if doc < self.meta.docs {
                    sink(key, self.meta.first + doc)?;
                }
            }
        }
        Ok(())
    }
}

/// Reads a run of this content, through a file in a folder, in every way that there is; returns how many postings could be read.
///
/// The first bytes say how large its parts are; the rest is what is in them, and zeros where it ends before.
pub fn parse_content(dir: &Path, content: &[u8]) -> Result<u64, SeenError> {
    let damaged = || SeenError::damaged(dir, "too short to say what is in it");
    let (sizes, mut content) = content.split_first_chunk::<8>().ok_or_else(damaged)?;
    let [first, first_high, docs, centres, postings, postings_high, names, minima] = sizes.map(u32::from);
    let (first, docs) = (first << 20 | first_high, docs.max(1));
    let meta = RunMeta {
        number: 1,
        first,
        docs,
        centres: centres.min(docs),
        postings: (postings + 256 * (postings_high % 4)).into(),
        names: names.into(),
        minima: minima % 16,
    };
    let mut out = BlockWriter::create(&Disk, &meta.path(dir), meta.number)?;
    out.write(&meta.header())?;
    let mut left = meta.content_len() - HEADER as u64;
    while left > 0 {
        let n = usize::try_from(left).unwrap_or(usize::MAX).min(content.len());
        let n = if n == 0 { out.write(&[0]).map(|()| 1)? } else { out.write(&content[..n]).map(|()| n)? };
        content = content.get(n..).unwrap_or_default();
        left -= n as u64;
    }
    out.finish()?;
    let salvage = Run::open_damaged(dir, meta)?;
    let mut read = 0;
    salvage.postings(|_, _| {
        read += 1;
        Ok(())
    })?;
    for in_memory in [false, true] {
        let room = if in_memory { Room::All } else { Room::Some };
        let Ok(run) = Run::open(dir, meta, in_memory, room) else { continue };
        let _ = run.check_sketches();
        let mut out = Vec::new();
        for document in run.documents() {
            let (doc, record) = document?;
            let _ = (run.name(record.key), run.sketch(doc, <[[u8; 4]]>::len), run.record(doc));
            if in_memory {
                let _ = (salvage.record(doc), salvage.name(record.key), salvage.sketch(doc));
            }
            let key = record.fp << (KEY_BITS - 48);
            let _ = run.locate(key).and_then(|located| run.read_located(&located, 9, &mut out));
            out.clear();
        }
        let mut postings = run.postings()?;
        while let Ok(Some((key, _))) = postings.next() {
            let _ = run.locate(key).and_then(|located| run.read_located(&located, 9, &mut out));
            out.clear();
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests;
