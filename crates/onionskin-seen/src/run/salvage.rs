//! What can still be read of a damaged run.

use std::path::Path;

use super::format::{GROUP, GROUP_BYTES, HEADER, POSTING, RECORD, Record, RunMeta, nth_centre, posting_of};
use crate::blocks::{BlockFile, PAYLOAD, Room};
use crate::error::SeenError;

/// What is left of a damaged run.
pub(crate) struct Salvage {
    meta: RunMeta,
    file: BlockFile,
    sound: Vec<bool>,
}

impl Salvage {
    /// Reads the sound part of a damaged file.
    pub(crate) fn open(dir: &Path, meta: RunMeta) -> Result<Salvage, SeenError> {
        let file = BlockFile::open_any(&meta.path(dir), meta.number, meta.content_len(), Room::Some)?;
        file.set_limit(64 << 20);
        let sound = (0..file.blocks()).map(|block| file.read_block(block).is_ok()).collect();
        Ok(Salvage { meta, file, sound })
    }

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
        let at = self.meta.sketches_at() + u64::from(nth) * self.meta.sketch.len() as u64;
        self.read_vec(at, self.meta.sketch.len()).map(|bytes| self.meta.sketch.read(&bytes))
    }

    /// Where buckets begin, as far as it can be known.
    ///
    /// Between two entries that are sound, the postings tell: they ascend within a bucket, so they
    /// descend at borders of buckets only. When they descend as often as there are borders, these
    /// are the borders; when not, some bucket is empty, and none of them is known.
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
