//! Where everything is in a run, as sizes and offsets.

use std::path::{Path, PathBuf};

use crate::blocks::{PAYLOAD, disk_len};

const MAGIC: &[u8; 8] = b"oskseenR";
pub(crate) const HEADER: usize = 40;
pub(super) const RECORD: usize = 18;
pub(crate) const POSTING: usize = 7;
/// Bytes of a document at most beside postings and minima: its record, a directory of one to two
/// bytes, its share of a group, and a little for checksums.
pub(crate) const DOCUMENT_BYTES: f64 = RECORD as f64 + 2.0 + GROUP_BYTES as f64 / GROUP as f64 + 0.6;
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
    pub(super) fn to_bytes(self) -> [u8; RECORD] {
        let mut bytes = [0; RECORD];
        bytes[..6].copy_from_slice(&self.fp.to_le_bytes()[..6]);
        bytes[6..10].copy_from_slice(&self.centre.to_le_bytes());
        bytes[10..].copy_from_slice(&self.key.to_le_bytes());
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8; RECORD]) -> Record {
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
    /// The same for all runs.
    pub sketch: SketchShape,
}

/// How many minima a sketch has, and how much is kept of each. Two that differ have the same lowest
/// byte with probability 2^-8. That adds less than a thousandth to a resemblance of 0.8 and saves
/// three quarters of the bytes (Li and König 2010).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SketchShape {
    /// 0 in an index without sketches.
    pub minima: u32,
    /// Only the lowest byte of a minimum is kept, else all four.
    pub low_bytes: bool,
}

impl SketchShape {
    fn width(self) -> usize {
        if self.low_bytes { 1 } else { 4 }
    }

    /// Bytes of a sketch.
    pub(crate) fn len(self) -> usize {
        self.minima as usize * self.width()
    }

    pub(crate) fn is_none(self) -> bool {
        self.minima == 0
    }

    /// What is kept of a minimum.
    #[inline]
    pub(crate) fn kept(self, minimum: u32) -> u32 {
        if self.low_bytes { minimum & 0xff } else { minimum }
    }

    /// The minima in the bytes of a sketch, as far as they are kept.
    pub(crate) fn read(self, bytes: &[u8]) -> Vec<u32> {
        match self.low_bytes {
            true => bytes.iter().copied().map(u32::from).collect(),
            false => bytes.as_chunks().0.iter().map(|minimum| u32::from_le_bytes(*minimum)).collect(),
        }
    }

    /// The bytes of a sketch.
    pub(super) fn bytes(self, sketch: &[u32]) -> Vec<u8> {
        sketch.iter().flat_map(|minimum| minimum.to_le_bytes().into_iter().take(self.width())).collect()
    }

    /// How many minima agree in two sketches; `None` where the second was lost to damage.
    pub(crate) fn agreement(self, ours: &[u32], theirs: &[u32]) -> Option<usize> {
        let lost = self.kept(LOST_MINIMUM);
        let agreeing = ours.iter().zip(theirs).filter(|(a, b)| self.kept(**a) == self.kept(**b)).count();
        theirs.iter().any(|minimum| self.kept(*minimum) != lost).then_some(agreeing)
    }
}

/// Documents whose centres are counted together.
pub(super) const GROUP: u32 = 64;
/// Bytes for them: centres before, and which are centres.
pub(super) const GROUP_BYTES: usize = 12;

/// A sketch that was lost to damage: that of the empty set, which is never added.
pub(crate) const LOST_MINIMUM: u32 = onionskin_core::sketch::NO_MEMBER;

impl RunMeta {
    pub(crate) fn path(&self, dir: &Path) -> PathBuf {
        dir.join(format!("run-{:08}", self.number))
    }

    pub(super) fn shape(&self) -> Shape {
        Shape::new(self.docs)
    }

    pub(super) fn names_at(&self) -> u64 {
        HEADER as u64 + u64::from(self.docs) * RECORD as u64
    }

    pub(super) fn groups_at(&self) -> u64 {
        self.names_at() + self.names
    }

    pub(super) fn sketches_at(&self) -> u64 {
        let groups = if self.sketch.is_none() { 0 } else { self.docs.div_ceil(GROUP) };
        self.groups_at() + u64::from(groups) * GROUP_BYTES as u64
    }

    pub(super) fn postings_at(&self) -> u64 {
        self.sketches_at() + u64::from(self.centres) * self.sketch.len() as u64
    }

    pub(super) fn directory_at(&self) -> u64 {
        // At the beginning of a block, so that no harm is done to the directory and to postings at
        // once.
        (self.postings_at() + self.postings * POSTING as u64).next_multiple_of(PAYLOAD as u64)
    }

    pub(crate) fn content_len(&self) -> u64 {
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

    pub(crate) fn header(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(MAGIC);
        header[8..16].copy_from_slice(&self.number.to_le_bytes());
        header[16..20].copy_from_slice(&self.first.to_le_bytes());
        header[20..24].copy_from_slice(&self.docs.to_le_bytes());
        header[24..32].copy_from_slice(&self.names.to_le_bytes());
        header[32..36].copy_from_slice(&self.sketch.minima.to_le_bytes());
        header[36] = u8::from(self.sketch.low_bytes);
        header
    }
}

/// How 54 bits of key and a document become a bucket and 56 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Bits of a document's place in the run.
    pub(super) doc_bits: u32,
    pub(super) bucket_bits: u32,
}

impl Shape {
    pub(super) fn new(docs: u32) -> Shape {
        let doc_bits = u32::BITS - docs.saturating_sub(1).leading_zeros();
        Shape { doc_bits, bucket_bits: doc_bits.saturating_sub(2) }
    }

    pub(super) fn buckets(self) -> u64 {
        1 << self.bucket_bits
    }

    pub(super) fn rest_bits(self) -> u32 {
        KEY_BITS - self.bucket_bits
    }

    #[inline]
    pub(super) fn bucket(self, key: u64) -> u64 {
        key >> self.rest_bits()
    }

    #[inline]
    pub(super) fn rest(self, key: u64) -> u64 {
        key & ((1 << self.rest_bits()) - 1)
    }

    #[inline]
    pub(super) fn pack(self, key: u64, doc: u32) -> u64 {
        self.rest(key) << self.doc_bits | u64::from(doc)
    }

    #[inline]
    pub(super) fn unpack(self, bucket: u64, posting: u64) -> (u64, u32) {
        let doc = posting & ((1 << self.doc_bits) - 1);
        (bucket << self.rest_bits() | posting >> self.doc_bits, doc as u32)
    }
}

#[inline]
pub(super) fn posting_of(bytes: &[u8; POSTING]) -> u64 {
    let [a, b, c, d, e, f, g] = *bytes;
    u64::from_le_bytes([a, b, c, d, e, f, g, 0])
}

/// How many centres come before the document at a place of a group; `None` if it is no centre
/// itself.
pub(super) fn nth_centre(group: &[u8; GROUP_BYTES], place: u32) -> Option<u32> {
    let [a, b, c, d, bits @ ..] = *group;
    let bits = u64::from_le_bytes(bits);
    let before = (bits & ((1 << place) - 1)).count_ones();
    (bits >> place & 1 == 1).then(|| u32::from_le_bytes([a, b, c, d]).saturating_add(before))
}
