//! Files of blocks: 4092 bytes and their CRC-32C, which also covers the number of the file and of
//! the block, so that a block that is whole but in the wrong place is noticed too. A file that was
//! cut off still has its sound blocks.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock, PoisonError, RwLock};

use onionskin_store::IoError;
use onionskin_store::storage::{Storage, StorageFile};

use crate::error::SeenError;

/// Bytes of a block on disk.
pub(crate) const BLOCK: usize = 4096;
/// Bytes of a block without its checksum.
pub(crate) const PAYLOAD: usize = BLOCK - 4;
/// Bytes that are written or streamed at once.
const STEP: usize = 64 * BLOCK;

fn checksum(number: u64, block: u64, payload: &[u8]) -> u32 {
    let mut place = [0; 16];
    place[..8].copy_from_slice(&number.to_le_bytes());
    place[8..].copy_from_slice(&block.to_le_bytes());
    crc32c::crc32c_append(crc32c::crc32c(&place), payload)
}

/// Bytes on disk of a file with this many bytes of content.
pub(crate) fn disk_len(content: u64) -> u64 {
    content + 4 * content.div_ceil(PAYLOAD as u64)
}

/// Writes a file from front to back.
pub(crate) struct BlockWriter {
    file: Box<dyn StorageFile>,
    path: PathBuf,
    number: u64,
    blocks: u64,
    /// Whole blocks with their checksums, then the open one.
    out: Vec<u8>,
    open: usize,
    len: u64,
}

impl BlockWriter {
    pub(crate) fn create(storage: &dyn Storage, path: &Path, number: u64) -> Result<BlockWriter, SeenError> {
        let file = storage.create(path).map_err(|e| IoError::new("creating", path, e))?;
        let out = Vec::with_capacity(STEP + BLOCK);
        Ok(BlockWriter { file, path: path.to_owned(), number, blocks: 0, out, open: 0, len: 0 })
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> Result<(), SeenError> {
        self.len += bytes.len() as u64;
        loop {
            let room = PAYLOAD - (self.out.len() - self.open);
            let Some((now, later)) = bytes.split_at_checked(room) else {
                self.out.extend_from_slice(bytes);
                return Ok(());
            };
            self.out.extend_from_slice(now);
            bytes = later;
            self.seal_block()?;
        }
    }

    fn seal_block(&mut self) -> Result<(), SeenError> {
        let crc = checksum(self.number, self.blocks, &self.out[self.open..]);
        self.out.extend_from_slice(&crc.to_le_bytes());
        self.blocks += 1;
        self.open = self.out.len();
        if self.out.len() >= STEP { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), SeenError> {
        let written = self.blocks * BLOCK as u64;
        let needed = self.out.len() as u64;
        self.file
            .write_all(&self.out)
            .map_err(|e| IoError::while_writing("writing", &self.path, needed, written, e))?;
        self.out.clear();
        self.open = 0;
        Ok(())
    }

    /// Makes the file safe and returns the length of its content.
    pub(crate) fn finish(mut self) -> Result<u64, SeenError> {
        if self.out.len() > self.open {
            self.seal_block()?;
        }
        self.flush()?;
        self.file.sync().map_err(|e| IoError::while_writing("syncing", &self.path, 0, self.len, e))?;
        Ok(self.len)
    }
}

#[derive(Debug, Default)]
struct Slot {
    block: RwLock<Option<Box<[u8]>>>,
    /// Since the hand of the clock came by.
    used: AtomicBool,
}

/// Blocks that were read.
#[derive(Debug)]
enum Blocks {
    /// There is room for all of them: a block that is there stays, and reading it takes no lock.
    All(Vec<OnceLock<Box<[u8]>>>),
    /// There is room for some.
    Some { slots: Vec<Slot>, kept: AtomicUsize, hand: Mutex<usize> },
}

/// Reads a file by position and keeps blocks that were read, up to a limit.
#[derive(Debug)]
pub(crate) struct BlockFile {
    file: File,
    path: PathBuf,
    number: u64,
    len: u64,
    blocks: Blocks,
    limit: AtomicUsize,
}

impl BlockFile {
    /// Opens a file whose content has `len` bytes. Another size is damage.
    pub(crate) fn open(path: &Path, number: u64, len: u64, room: Room) -> Result<BlockFile, SeenError> {
        let file = BlockFile::open_any(path, number, len, room)?;
        let there = file.file.metadata().map_err(|e| IoError::new("reading", path, e))?.len();
        if there != disk_len(len) {
            return Err(SeenError::damaged(path, format!("{there} bytes, it should have {}", disk_len(len))));
        }
        Ok(file)
    }

    /// Opens a file whatever its size is.
    pub(crate) fn open_any(path: &Path, number: u64, len: u64, room: Room) -> Result<BlockFile, SeenError> {
        let file = File::open(path).map_err(|e| IoError::new("opening", path, e))?;
        let n = usize::try_from(len.div_ceil(PAYLOAD as u64)).unwrap_or(usize::MAX);
        let blocks = match room {
            Room::All => Blocks::All((0..n).map(|_| OnceLock::new()).collect()),
            Room::Some => Blocks::Some {
                slots: (0..n).map(|_| Slot::default()).collect(),
                kept: AtomicUsize::new(0),
                hand: Mutex::new(0),
            },
        };
        Ok(BlockFile { file, path: path.to_owned(), number, len, blocks, limit: AtomicUsize::new(0) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn blocks(&self) -> usize {
        match &self.blocks {
            Blocks::All(slots) => slots.len(),
            Blocks::Some { slots, .. } => slots.len(),
        }
    }

    /// Whether all blocks may stay.
    pub(crate) fn room(&self) -> Room {
        match self.blocks {
            Blocks::All(_) => Room::All,
            Blocks::Some { .. } => Room::Some,
        }
    }

    /// Bytes of memory that blocks may take, where there is room for some.
    pub(crate) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Relaxed);
    }

    fn block_len(&self, block: usize) -> usize {
        let start = block as u64 * PAYLOAD as u64;
        usize::try_from(self.len.saturating_sub(start)).unwrap_or(usize::MAX).min(PAYLOAD)
    }

    /// Reads a block from the disk and checks it.
    pub(crate) fn read_block(&self, block: usize) -> Result<Box<[u8]>, SeenError> {
        let len = self.block_len(block);
        let mut bytes = vec![0; len + 4];
        self.file.read_exact_at(&mut bytes, block as u64 * BLOCK as u64).map_err(|e| self.unreadable(e))?;
        self.check(block, &bytes)?;
        bytes.truncate(len);
        Ok(bytes.into())
    }

    fn unreadable(&self, error: std::io::Error) -> SeenError {
        if error.kind() == std::io::ErrorKind::UnexpectedEof {
            return SeenError::damaged(&self.path, "it is cut off");
        }
        IoError::new("reading", &self.path, error).into()
    }

    fn check(&self, block: usize, bytes: &[u8]) -> Result<(), SeenError> {
        let (payload, crc) = bytes.split_at(bytes.len() - 4);
        if checksum(self.number, block as u64, payload).to_le_bytes() == crc {
            return Ok(());
        }
        let at = block * BLOCK;
        Err(SeenError::damaged(
            &self.path,
            format!("the checksum of the {} bytes at {at} is wrong", bytes.len()),
        ))
    }

    /// Lends a block, from memory where it is there.
    #[inline]
    fn with_block<T>(&self, block: usize, work: impl FnOnce(&[u8]) -> T) -> Result<T, SeenError> {
        match &self.blocks {
            Blocks::All(slots) => match slots.get(block).and_then(OnceLock::get) {
                Some(bytes) => Ok(work(bytes)),
                None => self.read_and_stay(slots, block).map(work),
            },
            Blocks::Some { slots, kept, hand } => {
                let Some(slot) = slots.get(block) else { return Err(self.behind_end()) };
                if let Some(bytes) = slot.block.read().unwrap_or_else(PoisonError::into_inner).as_deref() {
                    if !slot.used.load(Relaxed) {
                        slot.used.store(true, Relaxed);
                    }
                    return Ok(work(bytes));
                }
                let bytes = self.read_block(block)?;
                let result = work(&bytes);
                self.keep(slots, kept, hand, slot, bytes);
                Ok(result)
            }
        }
    }

    #[cold]
    fn behind_end(&self) -> SeenError {
        SeenError::damaged(&self.path, "a place behind its end is asked for")
    }

    #[cold]
    fn read_and_stay<'a>(
        &self,
        slots: &'a [OnceLock<Box<[u8]>>],
        block: usize,
    ) -> Result<&'a [u8], SeenError> {
        let Some(slot) = slots.get(block) else { return Err(self.behind_end()) };
        let bytes = self.read_block(block)?;
        Ok(slot.get_or_init(|| bytes))
    }

    /// Begins to bring the bytes at an offset near, if their block is in memory. Processors wait
    /// for several places in memory at once, but for one after the other if what is read at the
    /// first decides where to go on: so many are touched, and then looked at.
    #[inline]
    pub(crate) fn touch(&self, offset: u64) -> u8 {
        let Blocks::All(slots) = &self.blocks else { return 0 };
        let block = slots.get((offset / PAYLOAD as u64) as usize).and_then(OnceLock::get);
        block.and_then(|bytes| bytes.get((offset % PAYLOAD as u64) as usize)).copied().unwrap_or(0)
    }

    fn keep(&self, slots: &[Slot], kept: &AtomicUsize, hand: &Mutex<usize>, slot: &Slot, bytes: Box<[u8]>) {
        let limit = self.limit.load(Relaxed);
        if limit < BLOCK {
            return;
        }
        while kept.load(Relaxed) + BLOCK > limit && forget_one(slots, kept, hand) {}
        let before = slot.block.write().unwrap_or_else(PoisonError::into_inner).replace(bytes);
        if before.is_none() {
            kept.fetch_add(BLOCK, Relaxed);
        }
    }

    /// Lends a range of the content; it is put together where it lies in several blocks.
    #[inline]
    pub(crate) fn with_range<T>(
        &self,
        offset: u64,
        len: usize,
        work: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, SeenError> {
        let block = (offset / PAYLOAD as u64) as usize;
        let at = (offset % PAYLOAD as u64) as usize;
        if at + len <= PAYLOAD {
            let lent = self.with_block(block, |bytes| bytes.get(at..at + len).map(work))?;
            return lent.ok_or_else(|| SeenError::damaged(&self.path, "a place behind its end is asked for"));
        }
        let mut bytes = Vec::with_capacity(len);
        let (mut block, mut at) = (block, at);
        while bytes.len() < len {
            let wanted = len - bytes.len();
            let got = self.with_block(block, |content| {
                let part = content.get(at..content.len().min(at + wanted)).unwrap_or_default();
                bytes.extend_from_slice(part);
                part.len()
            })?;
            if got == 0 {
                return Err(SeenError::damaged(&self.path, "a place behind its end is asked for"));
            }
            (block, at) = (block + 1, 0);
        }
        Ok(work(&bytes))
    }

    /// Reads on from an offset, past the memory for blocks.
    pub(crate) fn stream(&self, offset: u64) -> BlockStream<'_> {
        let block = (offset / PAYLOAD as u64) as usize;
        BlockStream {
            file: self,
            block,
            skip: (offset % PAYLOAD as u64) as usize,
            content: Vec::new(),
            at: 0,
        }
    }
}

/// How much room there is for the blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// For all.
    All,
    /// For some, see [`BlockFile::set_limit`].
    Some,
}

/// Goes round like the hand of a clock and forgets the first block that was not used since it came
/// by last.
fn forget_one(slots: &[Slot], kept: &AtomicUsize, hand: &Mutex<usize>) -> bool {
    let mut hand = hand.lock().unwrap_or_else(PoisonError::into_inner);
    for _ in 0..2 * slots.len() {
        *hand = (*hand + 1) % slots.len();
        let slot = &slots[*hand];
        if slot.used.swap(false, Relaxed) {
            continue;
        }
        if slot.block.write().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            kept.fetch_sub(BLOCK, Relaxed);
            return true;
        }
    }
    false
}

/// Reads a file in large steps.
pub(crate) struct BlockStream<'a> {
    file: &'a BlockFile,
    block: usize,
    skip: usize,
    content: Vec<u8>,
    at: usize,
}

impl BlockStream<'_> {
    /// The next bytes; damage when there are not as many.
    #[inline]
    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], SeenError> {
        if let Some(bytes) = self.content.get(self.at..).and_then(|rest| rest.first_chunk::<N>()) {
            self.at += N;
            return Ok(*bytes);
        }
        self.take_slow()
    }

    fn take_slow<const N: usize>(&mut self) -> Result<[u8; N], SeenError> {
        let mut out = [0; N];
        self.fill(&mut out)?;
        Ok(out)
    }

    /// Fills a buffer.
    pub(crate) fn fill(&mut self, mut out: &mut [u8]) -> Result<(), SeenError> {
        while !out.is_empty() {
            if self.at == self.content.len() {
                self.read_on()?;
            }
            let rest = &self.content[self.at..];
            let n = rest.len().min(out.len());
            out[..n].copy_from_slice(&rest[..n]);
            self.at += n;
            out = &mut out[n..];
        }
        Ok(())
    }

    fn read_on(&mut self) -> Result<(), SeenError> {
        let file = self.file;
        self.content.clear();
        let end = file.blocks().min(self.block + STEP / BLOCK);
        let lens = (self.block..end).map(|block| file.block_len(block));
        let mut bytes = vec![0; lens.map(|len| len + 4).sum()];
        file.file
            .read_exact_at(&mut bytes, self.block as u64 * BLOCK as u64)
            .map_err(|e| file.unreadable(e))?;
        for block in bytes.chunks(BLOCK) {
            file.check(self.block, block)?;
            self.content.extend_from_slice(&block[..block.len() - 4]);
            self.block += 1;
        }
        self.at = std::mem::take(&mut self.skip).min(self.content.len());
        if self.at == self.content.len() {
            return Err(SeenError::damaged(&file.path, "a place behind its end is asked for"));
        }
        Ok(())
    }
}
