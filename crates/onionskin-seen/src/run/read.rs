//! Reads a run: single documents, lists of postings, or all of it in order.

use std::path::Path;

use super::format::{
    GROUP, GROUP_BYTES, HEADER, POSTING, RECORD, Record, RunMeta, Shape, nth_centre, posting_of,
};
use crate::blocks::{BlockFile, BlockStream, Room};
use crate::error::SeenError;

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

    /// What is kept of the minima of a centre, in an index with sketches.
    pub(crate) fn sketch(&self, doc: u32) -> Result<Option<Vec<u32>>, SeenError> {
        let shape = self.meta.sketch;
        if shape.is_none() {
            return Ok(None);
        }
        let Some(place) = self.sketch_place(doc)? else { return Ok(None) };
        let offset = self.meta.sketches_at() + place * shape.len() as u64;
        self.file.with_range(offset, shape.len(), |bytes| Some(shape.read(bytes)))
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
        if self.meta.sketch.is_none() {
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
