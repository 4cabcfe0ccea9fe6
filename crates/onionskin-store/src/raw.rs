//! Files of fixed-width records in checksummed blocks.
//!
//! Sorted runs and the work files of a stage are written once, read once or a few times from front
//! to back, and thrown away. Parquet would be the wrong tool; a plain dump of records would hide a
//! cut-off or a flipped bit. So: a header with the record width, blocks with length and CRC-32C,
//! and a trailer with the number of records. The checksum of a block covers its number as well, so
//! that a block that moved is as visible as one that changed.
//!
//! ```text
//! header   "OSKRAW01"  width: u32  zero: u32                      16 bytes
//! block    len: u32    crc: u32    payload: len bytes             len is a positive multiple of width
//! trailer  0: u32      crc: u32    records: u64                   16 bytes, then the file ends
//! ```
//!
//! All numbers are little-endian. `crc` is the CRC-32C of the block's number (u64), its `len` and
//! its payload; that of the trailer is taken with the number of records as the payload.

use std::fs::File;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use onionskin_core::{ClusterId, CollectionId, DocId, Id, Packed, ReplicaId, SiteId, SlotId};

use crate::disk::IoError;
use crate::storage::{Sink, Storage};

const MAGIC: &[u8; 8] = b"OSKRAW01";
const HEADER_BYTES: usize = 16;
/// Payload of a block, at most, when writing.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;
/// No block may claim more than this, whatever a damaged file says.
const MAX_BLOCK_BYTES: usize = 1 << 20;
/// No record is wider than this.
pub const MAX_RECORD_BYTES: usize = 4096;

/// A record of fixed width.
///
/// The order of `Ord` must be total over the encoded bytes: records that compare equal encode the
/// same. Otherwise the result of a sort would depend on the memory it had.
pub trait Record: Copy + Ord + Send + 'static {
    /// Width of the encoded record: positive, at most [`MAX_RECORD_BYTES`].
    const BYTES: usize;
    /// Encodes into exactly [`Record::BYTES`] bytes.
    fn put(&self, out: &mut [u8]);
    /// Decodes from exactly [`Record::BYTES`] bytes. Every pattern of bytes is a record.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! integer_records {
    ($($int:ty),*) => {$(
        impl Record for $int {
            const BYTES: usize = size_of::<$int>();
            #[inline]
            fn put(&self, out: &mut [u8]) {
                out.copy_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn get(bytes: &[u8]) -> $int {
                let mut le = [0; size_of::<$int>()];
                le.copy_from_slice(bytes);
                <$int>::from_le_bytes(le)
            }
        }
    )*};
}
integer_records!(u8, u16, u32, u64, u128, i32, i64);

macro_rules! id_records {
    ($($id:ident),*) => {$(
        /// The same bytes as its number.
        impl Record for $id {
            const BYTES: usize = u32::BYTES;
            #[inline]
            fn put(&self, out: &mut [u8]) {
                self.0.put(out);
            }
            #[inline]
            fn get(bytes: &[u8]) -> $id {
                $id(u32::get(bytes))
            }
        }
    )*};
}
id_records!(DocId, SiteId, ClusterId, CollectionId, ReplicaId, SlotId);

impl<I: Id> Record for Packed<I> {
    const BYTES: usize = u32::BYTES;
    #[inline]
    fn put(&self, out: &mut [u8]) {
        self.bits().put(out);
    }
    #[inline]
    fn get(bytes: &[u8]) -> Packed<I> {
        Packed::from_bits(u32::get(bytes))
    }
}

macro_rules! tuple_records {
    ($(($($name:ident $field:ident $index:tt),+)),*) => {$(
        impl<$($name: Record),+> Record for ($($name,)+) {
            const BYTES: usize = $($name::BYTES +)+ 0;
            #[inline]
            fn put(&self, out: &mut [u8]) {
                let rest = out;
                $(let (here, rest) = rest.split_at_mut($name::BYTES); self.$index.put(here);)+
                debug_assert!(rest.is_empty());
            }
            #[inline]
            fn get(bytes: &[u8]) -> Self {
                let rest = bytes;
                $(let (here, rest) = rest.split_at($name::BYTES); let $field = $name::get(here);)+
                debug_assert!(rest.is_empty());
                ($($field,)+)
            }
        }
    )*};
}
tuple_records!((A a 0, B b 1), (A a 0, B b 1, C c 2), (A a 0, B b 1, C c 2, D d 3));

impl Record for bool {
    const BYTES: usize = 1;
    #[inline]
    fn put(&self, out: &mut [u8]) {
        u8::from(*self).put(out);
    }
    #[inline]
    fn get(bytes: &[u8]) -> bool {
        u8::get(bytes) != 0
    }
}

/// A struct that is a [`Record`]: its fields one after the other, and ordered in the order in which
/// they are written. It has the bytes and the order of a tuple of the same fields.
///
/// ```
/// onionskin_store::record! {
///     /// A document of a text.
///     struct CopyOf { text: u32, doc: u32 }
/// }
/// use onionskin_store::raw::Record;
/// let (mut named, mut tuple) = ([0; CopyOf::BYTES], [0; 8]);
/// CopyOf { text: 1, doc: 2 }.put(&mut named);
/// (1u32, 2u32).put(&mut tuple);
/// assert_eq!(named, tuple);
/// ```
#[macro_export]
macro_rules! record {
    (
        $(#[$about:meta])*
        $vis:vis struct $name:ident {
            $($(#[$about_field:meta])* $field_vis:vis $field:ident: $type:ty),+ $(,)?
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $vis struct $name {
            $($(#[$about_field])* $field_vis $field: $type,)+
        }

        impl $crate::raw::Record for $name {
            const BYTES: usize = $(<$type as $crate::raw::Record>::BYTES +)+ 0;
            #[inline]
            fn put(&self, out: &mut [u8]) {
                let rest = out;
                $(
                    let (here, rest) = rest.split_at_mut(<$type as $crate::raw::Record>::BYTES);
                    $crate::raw::Record::put(&self.$field, here);
                )+
                debug_assert!(rest.is_empty());
            }
            #[inline]
            fn get(bytes: &[u8]) -> Self {
                let rest = bytes;
                $(
                    let (here, rest) = rest.split_at(<$type as $crate::raw::Record>::BYTES);
                    let $field = <$type as $crate::raw::Record>::get(here);
                )+
                debug_assert!(rest.is_empty());
                $name { $($field),+ }
            }
        }
    };
}

impl<const N: usize> Record for [u8; N] {
    const BYTES: usize = N;
    #[inline]
    fn put(&self, out: &mut [u8]) {
        out.copy_from_slice(self);
    }
    #[inline]
    fn get(bytes: &[u8]) -> [u8; N] {
        let mut record = [0; N];
        record.copy_from_slice(bytes);
        record
    }
}

/// Why a file of records cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RawError {
    /// The file system failed.
    #[error(transparent)]
    Io(#[from] IoError),
    /// The bytes are not what was written.
    #[error("{}: damaged at byte {offset}: {problem}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// Where the block begins that is wrong.
        offset: u64,
        /// What is wrong with it.
        problem: RawDamage,
    },
}

/// What can be wrong with a file of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RawDamage {
    /// The file ends before its trailer.
    #[error("the file is cut off")]
    CutOff,
    /// The first bytes are not those of a record file.
    #[error("not a record file")]
    NotARecordFile,
    /// Records of another width.
    #[error("records are {found} bytes wide, expected {wanted}")]
    Width {
        /// In the file.
        found: u32,
        /// Asked for.
        wanted: u32,
    },
    /// A block of an impossible length.
    #[error("a block claims {claimed} bytes")]
    BlockLength {
        /// The claim.
        claimed: u32,
    },
    /// A checksum does not agree.
    #[error("the checksum does not agree")]
    Checksum,
    /// The trailer counts other records than there are.
    #[error("the trailer counts {claimed} records, there are {found}")]
    Count {
        /// In the trailer.
        claimed: u64,
        /// Seen.
        found: u64,
    },
    /// Bytes after the trailer.
    #[error("bytes follow the end")]
    Trailing,
}

impl From<RawError> for io::Error {
    fn from(error: RawError) -> io::Error {
        match error {
            RawError::Io(error) => error.into_io(),
            damaged => io::Error::new(io::ErrorKind::InvalidData, damaged),
        }
    }
}

fn block_crc(index: u64, len: u32, payload: &[u8]) -> u32 {
    let mut head = [0; 12];
    head[..8].copy_from_slice(&index.to_le_bytes());
    head[8..].copy_from_slice(&len.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&head), payload)
}

/// What [`RawWriter::finish`] tells of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawMeta {
    /// Records in the file.
    pub records: u64,
    /// Length of the file.
    pub bytes: u64,
    /// XXH3 of the file.
    pub xxh3: u64,
}

/// Writes a file of records. The record type is a matter of each [`RawWriter::push`], the width one
/// of the file.
#[derive(Debug)]
pub struct RawWriter {
    sink: Sink,
    width: usize,
    block: Vec<u8>,
    block_bytes: usize,
    blocks: u64,
    records: u64,
}

impl RawWriter {
    /// Creates the file for records of type `R`.
    pub fn create<R: Record>(storage: &dyn Storage, path: &Path, action: &str) -> Result<RawWriter, IoError> {
        RawWriter::with_block_records::<R>(storage, path, action, BLOCK_BYTES / R::BYTES)
    }

    /// The same with a chosen number of records in a block, for sorts that have little memory.
    pub(crate) fn with_block_records<R: Record>(
        storage: &dyn Storage,
        path: &Path,
        action: &str,
        block_records: usize,
    ) -> Result<RawWriter, IoError> {
        const { assert!(R::BYTES > 0 && R::BYTES <= MAX_RECORD_BYTES, "records are 1 to 4096 bytes wide") };
        let block_bytes = block_records.clamp(1, BLOCK_BYTES / R::BYTES) * R::BYTES;
        let mut sink = Sink::create(storage, path, action).map_err(|e| IoError::from_io(e, action, path))?;
        let mut header = [0; HEADER_BYTES];
        header[..8].copy_from_slice(MAGIC);
        header[8..12].copy_from_slice(&(R::BYTES as u32).to_le_bytes());
        sink.write_all(&header).map_err(|e| IoError::from_io(e, action, path))?;
        // The block is assembled behind room for its own head, so that one write takes both to the
        // disk.
        let mut block = Vec::with_capacity(8 + block_bytes);
        block.extend_from_slice(&[0; 8]);
        Ok(RawWriter { sink, width: R::BYTES, block, block_bytes, blocks: 0, records: 0 })
    }

    /// Appends a record.
    ///
    /// # Panics
    ///
    /// When the record is not as wide as those of the file.
    #[inline]
    pub fn push<R: Record>(&mut self, record: &R) -> Result<(), IoError> {
        assert_eq!(R::BYTES, self.width, "one file holds records of one width");
        let at = self.block.len();
        self.block.resize(at + R::BYTES, 0);
        record.put(&mut self.block[at..]);
        self.records += 1;
        if self.block.len() >= 8 + self.block_bytes { self.write_block() } else { Ok(()) }
    }

    /// Records pushed so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    fn write_block(&mut self) -> Result<(), IoError> {
        let len = (self.block.len() - 8) as u32;
        let crc = block_crc(self.blocks, len, &self.block[8..]);
        self.block[..4].copy_from_slice(&len.to_le_bytes());
        self.block[4..8].copy_from_slice(&crc.to_le_bytes());
        self.sink.write_all(&self.block).map_err(|e| IoError::from_io(e, "writing", self.sink.path()))?;
        self.block.truncate(8);
        self.blocks += 1;
        Ok(())
    }

    /// Writes what is left and the trailer; with `sync`, returns when all of it is on the disk.
    pub fn finish(mut self, sync: bool) -> Result<RawMeta, IoError> {
        if self.block.len() > 8 {
            self.write_block()?;
        }
        let mut trailer = [0; 16];
        trailer[8..].copy_from_slice(&self.records.to_le_bytes());
        let crc = block_crc(self.blocks, 0, &trailer[8..]);
        trailer[4..8].copy_from_slice(&crc.to_le_bytes());
        let placed = |e: io::Error, sink: &Sink| IoError::from_io(e, "writing", sink.path());
        self.sink.write_all(&trailer).map_err(|e| placed(e, &self.sink))?;
        self.sink.flush().map_err(|e| placed(e, &self.sink))?;
        if sync {
            self.sink.sync().map_err(|e| placed(e, &self.sink))?;
        }
        Ok(RawMeta { records: self.records, bytes: self.sink.bytes(), xxh3: self.sink.xxh3() })
    }
}

/// Reads a file of records block by block.
#[derive(Debug)]
pub struct RawReader<R, I = File> {
    input: I,
    file: PathBuf,
    offset: u64,
    blocks: u64,
    records: u64,
    done: bool,
    record: PhantomData<R>,
}

impl<R: Record> RawReader<R> {
    /// Opens a file and checks its header.
    pub fn open(path: &Path) -> Result<RawReader<R>, RawError> {
        let input = File::open(path).map_err(|e| IoError::new("opening", path, e))?;
        RawReader::new(input, path)
    }
}

impl<R: Record, I: Read> RawReader<R, I> {
    /// Reads from anywhere; `file` is the name that errors carry.
    pub fn new(mut input: I, file: &Path) -> Result<RawReader<R, I>, RawError> {
        let mut header = [0; HEADER_BYTES];
        let damaged = |problem| RawError::Damaged { file: file.to_owned(), offset: 0, problem };
        match input.read_exact(&mut header) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(damaged(RawDamage::CutOff));
            }
            Err(error) => return Err(IoError::new("reading", file, error).into()),
        }
        if &header[..8] != MAGIC || header[12..] != [0; 4] {
            return Err(damaged(RawDamage::NotARecordFile));
        }
        let width = u32::get(&header[8..12]);
        if width as usize != R::BYTES {
            return Err(damaged(RawDamage::Width { found: width, wanted: R::BYTES as u32 }));
        }
        let offset = HEADER_BYTES as u64;
        Ok(RawReader {
            input,
            file: file.to_owned(),
            offset,
            blocks: 0,
            records: 0,
            done: false,
            record: PhantomData,
        })
    }

    /// Replaces `out` by the next block of records; `false` at the end of the file. `bytes` is
    /// scratch.
    pub fn next_block(&mut self, bytes: &mut Vec<u8>, out: &mut Vec<R>) -> Result<bool, RawError> {
        out.clear();
        if self.done {
            return Ok(false);
        }
        let mut head = [0; 8];
        self.read_exact(&mut head)?;
        let len = u32::get(&head[..4]);
        let crc = u32::get(&head[4..]);
        if len == 0 {
            return self.read_trailer(crc).map(|()| false);
        }
        let n = len as usize;
        if n > MAX_BLOCK_BYTES || !n.is_multiple_of(R::BYTES) {
            return Err(self.damaged(RawDamage::BlockLength { claimed: len }));
        }
        bytes.resize(n, 0);
        self.read_exact(bytes)?;
        if block_crc(self.blocks, len, bytes) != crc {
            return Err(self.damaged(RawDamage::Checksum));
        }
        out.extend(bytes.chunks_exact(R::BYTES).map(R::get));
        self.blocks += 1;
        self.records += out.len() as u64;
        self.offset += 8 + u64::from(len);
        Ok(true)
    }

    fn read_trailer(&mut self, crc: u32) -> Result<(), RawError> {
        let mut count = [0; 8];
        self.read_exact(&mut count)?;
        if block_crc(self.blocks, 0, &count) != crc {
            return Err(self.damaged(RawDamage::Checksum));
        }
        let claimed = u64::from_le_bytes(count);
        if claimed != self.records {
            return Err(self.damaged(RawDamage::Count { claimed, found: self.records }));
        }
        let mut more = [0; 1];
        match self.input.read(&mut more) {
            Ok(0) => {}
            Ok(_) => return Err(self.damaged(RawDamage::Trailing)),
            Err(error) => return Err(IoError::new("reading", &self.file, error).into()),
        }
        self.done = true;
        Ok(())
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), RawError> {
        self.input.read_exact(bytes).map_err(|error| {
            if error.kind() == io::ErrorKind::UnexpectedEof {
                self.damaged(RawDamage::CutOff)
            } else {
                IoError::new("reading", &self.file, error).into()
            }
        })
    }

    fn damaged(&self, problem: RawDamage) -> RawError {
        RawError::Damaged { file: self.file.clone(), offset: self.offset, problem }
    }
}

/// All records of several files, one after the other.
#[derive(Debug)]
pub struct RawRecords<R> {
    files: std::vec::IntoIter<PathBuf>,
    current: Option<RawReader<R>>,
    bytes: Vec<u8>,
    block: Vec<R>,
    at: usize,
    failed: bool,
}

impl<R: Record> RawRecords<R> {
    /// Records of `files` in that order. Files are opened when their turn comes.
    pub fn new(files: Vec<PathBuf>) -> RawRecords<R> {
        RawRecords {
            files: files.into_iter(),
            current: None,
            bytes: Vec::new(),
            block: Vec::new(),
            at: 0,
            failed: false,
        }
    }

    /// The next records, a block of them; `None` at the end. Do not mix with the iterator in the
    /// middle of a block.
    pub fn next_block(&mut self) -> Result<Option<&[R]>, RawError> {
        self.at = 0;
        loop {
            if let Some(reader) = &mut self.current {
                if reader.next_block(&mut self.bytes, &mut self.block)? {
                    return Ok(Some(&self.block));
                }
                self.current = None;
            }
            match self.files.next() {
                Some(file) => self.current = Some(RawReader::open(&file)?),
                None => return Ok(None),
            }
        }
    }
}

impl<R: Record> Iterator for RawRecords<R> {
    type Item = Result<R, RawError>;

    fn next(&mut self) -> Option<Result<R, RawError>> {
        if self.failed {
            return None;
        }
        loop {
            if let Some(record) = self.block.get(self.at) {
                self.at += 1;
                return Some(Ok(*record));
            }
            match self.next_block() {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(error) => {
                    self.failed = true;
                    self.block.clear();
                    return Some(Err(error));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
