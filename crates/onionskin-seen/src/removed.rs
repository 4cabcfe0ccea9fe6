//! What was removed, and who inherits the place of a removed centre.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use onionskin_store::storage::{Disk, Storage};

use crate::blocks::{BlockFile, BlockWriter, Room};
use crate::error::SeenError;

/// No document has this number.
pub(crate) const NOBODY: u32 = onionskin_core::Packed::<u32>::NONE.bits();

/// Tombstones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Removed {
    /// By document; the heir, or [`NOBODY`].
    heirs: BTreeMap<u32, u32>,
    /// The other way round.
    centres: BTreeMap<u32, u32>,
}

impl Removed {
    pub(crate) fn len(&self) -> u64 {
        self.heirs.len() as u64
    }

    pub(crate) fn is_removed(&self, doc: u32) -> bool {
        self.heirs.contains_key(&doc)
    }

    /// The document that stands for a centre: itself, its heir, or nobody.
    pub(crate) fn stand_in(&self, centre: u32) -> Option<u32> {
        match self.heirs.get(&centre) {
            None => Some(centre),
            Some(&NOBODY) => None,
            Some(&heir) => Some(heir),
        }
    }

    /// The centre whose place a document has inherited.
    pub(crate) fn inherited_from(&self, doc: u32) -> Option<u32> {
        self.centres.get(&doc).copied()
    }

    /// Removes a document, or gives a removed one another heir.
    pub(crate) fn set(&mut self, doc: u32, heir: u32) {
        if let Some(before) = self.heirs.insert(doc, heir) {
            self.centres.remove(&before);
        }
        if heir != NOBODY {
            self.centres.insert(heir, doc);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.heirs.iter().map(|(doc, heir)| (*doc, *heir))
    }

    /// The removed, in order.
    pub(crate) fn sorted(&self) -> Vec<u32> {
        self.heirs.keys().copied().collect()
    }

    pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
        dir.join(format!("removed-{number:08}"))
    }

    pub(crate) fn write(&self, storage: &dyn Storage, dir: &Path, number: u64) -> Result<(), SeenError> {
        let mut out = BlockWriter::create(storage, &Removed::path(dir, number), number)?;
        for (doc, heir) in self.iter() {
            out.write(&doc.to_le_bytes())?;
            out.write(&heir.to_le_bytes())?;
        }
        out.finish()?;
        Ok(())
    }

    pub(crate) fn read(dir: &Path, number: u64, count: u64) -> Result<Removed, SeenError> {
        let path = Removed::path(dir, number);
        let len =
            count.checked_mul(8).ok_or_else(|| SeenError::damaged(&path, "its length is impossible"))?;
        let file = BlockFile::open(&path, number, len, Room::Some)?;
        let mut stream = file.stream(0);
        let mut removed = Removed::default();
        for _ in 0..count {
            let doc = u32::from_le_bytes(stream.take()?);
            removed.set(doc, u32::from_le_bytes(stream.take()?));
        }
        Ok(removed)
    }
}

/// Reads a file of the removed with this content, through a file in a folder; returns how many
/// there are.
pub fn parse_content(dir: &Path, content: &[u8]) -> Result<u64, SeenError> {
    let mut out = BlockWriter::create(&Disk, &Removed::path(dir, 1), 1)?;
    out.write(content)?;
    out.finish()?;
    let removed = Removed::read(dir, 1, content.len() as u64 / 8)?;
    for (doc, _) in removed.iter() {
        let _ = (removed.stand_in(doc), removed.inherited_from(doc));
    }
    Ok(removed.len())
}

#[cfg(test)]
mod tests;
