//! The log of what is in no run yet. A batch is one record: its length, its place in the sequence,
//! a CRC-32C, and the changes. It is synced before it is acknowledged, and the next is begun only
//! then; so only the last record can be torn, and it was not acknowledged. A bad record with a good
//! one behind it is damage.

use std::path::{Path, PathBuf};

use crate::error::SeenError;
use crate::removed::NOBODY;

const MAGIC: &[u8; 8] = b"oskseenW";
/// Magic, number, checksum.
pub(crate) const HEADER: usize = 20;
/// Length, place in the sequence, checksum.
const RECORD_HEADER: usize = 16;

/// A change. Everything that was decided is in it, so that replaying decides nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Add {
        fp: u64,
        /// [`NOBODY`] for a centre.
        centre: u32,
        key: u64,
        name: Option<Vec<u8>>,
        /// Of a centre; empty for others.
        features: Vec<u64>,
        /// Of a centre in an index with sketches; else empty.
        sketch: Vec<u32>,
        /// Indexed by its text too.
        by_text: bool,
    },
    Remove {
        doc: u32,
        heir: u32,
    },
}

impl Change {
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Change::Add { fp, centre, key, name, features, sketch, by_text } => {
                let kind = if sketch.is_empty() { 1 } else { 3 };
                out.extend([kind, u8::from(*by_text), u8::from(name.is_some()), features.len() as u8]);
                out.extend(fp.to_le_bytes());
                out.extend(centre.to_le_bytes());
                match name {
                    Some(name) => {
                        out.extend((name.len() as u16).to_le_bytes());
                        out.extend(name);
                    }
                    None => out.extend(key.to_le_bytes()),
                }
                features.iter().for_each(|feature| out.extend(feature.to_le_bytes()));
                if !sketch.is_empty() {
                    out.extend((sketch.len() as u16).to_le_bytes());
                    sketch.iter().for_each(|minimum| out.extend(minimum.to_le_bytes()));
                }
            }
            Change::Remove { doc, heir } => {
                out.push(2);
                out.extend(doc.to_le_bytes());
                out.extend(heir.to_le_bytes());
            }
        }
    }

    fn decode(input: &mut &[u8]) -> Option<Change> {
        let [kind] = take(input)?;
        match kind {
            1 | 3 => {
                let [by_text, named, k] = take(input)?;
                let fp = u64::from_le_bytes(take(input)?);
                let centre = u32::from_le_bytes(take(input)?);
                let (mut key, mut name) = (0, None);
                if named == 1 {
                    let len = u16::from_le_bytes(take(input)?);
                    let (bytes, rest) = input.split_at_checked(len.into())?;
                    name = Some(bytes.to_vec());
                    *input = rest;
                } else {
                    key = u64::from_le_bytes(take(input)?);
                }
                let features =
                    (0..k).map(|_| take(input).map(u64::from_le_bytes)).collect::<Option<Vec<_>>>()?;
                if features.is_empty() == (centre == NOBODY) {
                    return None;
                }
                let minima = if kind == 3 { u16::from_le_bytes(take(input)?) } else { 0 };
                let (bytes, rest) = input.split_at_checked(usize::from(minima) * 4)?;
                let sketch = bytes.as_chunks().0.iter().map(|minimum| u32::from_le_bytes(*minimum)).collect();
                *input = rest;
                Some(Change::Add { fp, centre, key, name, features, sketch, by_text: by_text == 1 })
            }
            2 => Some(Change::Remove {
                doc: u32::from_le_bytes(take(input)?),
                heir: u32::from_le_bytes(take(input)?),
            }),
            _ => None,
        }
    }
}

fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(*bytes)
}

pub(crate) fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("wal-{number:08}"))
}

pub(crate) fn header(number: u64) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(MAGIC);
    header[8..16].copy_from_slice(&number.to_le_bytes());
    let crc = crc32c::crc32c(&header[..16]);
    header[16..].copy_from_slice(&crc.to_le_bytes());
    header
}

fn checksum(number: u64, sequence: u64, payload: &[u8]) -> u32 {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), &sequence.to_le_bytes());
    crc32c::crc32c_append(crc, payload)
}

/// A batch as it is written. Changes are encoded behind a place for the header, which is filled in
/// here.
pub(crate) struct Batch(Vec<u8>);

impl Batch {
    pub(crate) fn new() -> Batch {
        Batch(vec![0; RECORD_HEADER])
    }

    pub(crate) fn push(&mut self, change: &Change) {
        change.encode(&mut self.0);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.len() == RECORD_HEADER
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn seal(&mut self, number: u64, sequence: u64) -> &[u8] {
        let payload = &self.0[RECORD_HEADER..];
        let crc = checksum(number, sequence, payload);
        let len = payload.len() as u32;
        self.0[..4].copy_from_slice(&len.to_le_bytes());
        self.0[4..12].copy_from_slice(&sequence.to_le_bytes());
        self.0[12..16].copy_from_slice(&crc.to_le_bytes());
        &self.0
    }

    pub(crate) fn clear(&mut self) {
        self.0.truncate(RECORD_HEADER);
    }
}

/// Where replaying has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) offset: u64,
    pub(crate) sequence: u64,
}

impl Position {
    pub(crate) fn start() -> Position {
        Position { offset: HEADER as u64, sequence: 0 }
    }
}

/// Reads the batches of a log from a position on and hands their changes over. Returns where the
/// sound part ends.
///
/// `bytes` are those of the whole file.
pub(crate) fn replay(
    path: &Path,
    number: u64,
    bytes: &[u8],
    at: Position,
    apply: impl FnMut(Change) -> Result<(), SeenError>,
) -> Result<Position, SeenError> {
    if bytes.get(..HEADER) != Some(&header(number)) {
        return Err(SeenError::damaged(path, "its header is wrong"));
    }
    replay_rest(path, number, behind(bytes, at), at, apply)
}

/// The same, of the bytes from the position on: for those who have read the others before.
pub(crate) fn replay_rest(
    path: &Path,
    number: u64,
    mut rest: &[u8],
    mut at: Position,
    mut apply: impl FnMut(Change) -> Result<(), SeenError>,
) -> Result<Position, SeenError> {
    while let Some(payload) = record(number, rest, 0, at.sequence) {
        let mut input = payload;
        while !input.is_empty() {
            let change = Change::decode(&mut input).ok_or_else(|| {
                SeenError::damaged(path, format!("batch {} is not understood", at.sequence))
            })?;
            apply(change)?;
        }
        let len = RECORD_HEADER + payload.len();
        rest = &rest[len..];
        at.offset += len as u64;
        at.sequence += 1;
    }
    Ok(at)
}

/// The bytes of a log behind a position.
pub(crate) fn behind(bytes: &[u8], at: Position) -> &[u8] {
    bytes.get(at.offset as usize..).unwrap_or_default()
}

/// An error when there is a good batch in the bytes behind the position where the sound part ends.
pub(crate) fn ensure_torn(path: &Path, number: u64, rest: &[u8], at: Position) -> Result<(), SeenError> {
    match sound_record_behind(number, rest, at.sequence) {
        None => Ok(()),
        Some(later) => {
            let Position { offset, sequence } = at;
            let later = offset + later as u64;
            let what = format!("batch {sequence} at {offset} is bad, and there is a good one at {later}");
            Err(SeenError::damaged(path, what))
        }
    }
}

/// The payload of the record at an offset, if it is sound and the next in the sequence.
fn record(number: u64, bytes: &[u8], offset: usize, sequence: u64) -> Option<&[u8]> {
    let (found, payload, crc) = any_record(bytes, offset)?;
    (found == sequence && checksum(number, found, payload) == crc).then_some(payload)
}

fn any_record(bytes: &[u8], offset: usize) -> Option<(u64, &[u8], u32)> {
    let mut input = bytes.get(offset..)?;
    let len = u32::from_le_bytes(take(&mut input)?);
    let sequence = u64::from_le_bytes(take(&mut input)?);
    let crc = u32::from_le_bytes(take(&mut input)?);
    // An empty batch is never written; a stretch of zeros would look like many.
    let payload = input.get(..len as usize).filter(|payload| !payload.is_empty())?;
    Some((sequence, payload, crc))
}

fn sound_record_behind(number: u64, rest: &[u8], expected: u64) -> Option<usize> {
    (1..rest.len()).find(|offset| {
        any_record(rest, *offset).is_some_and(|(sequence, payload, crc)| {
            // Only plausible places are worth a checksum.
            sequence.wrapping_sub(expected) <= rest.len() as u64 && checksum(number, sequence, payload) == crc
        })
    })
}

/// Reads a log with the number that its header says, and counts changes.
pub fn parse_bytes(bytes: &[u8]) -> Result<u64, SeenError> {
    let path = Path::new("wal");
    let number = bytes.get(8..16).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b));
    let mut changes = 0;
    let end = replay(path, number, bytes, Position::start(), |_| {
        changes += 1;
        Ok(())
    })?;
    ensure_torn(path, number, behind(bytes, end), end)?;
    Ok(changes)
}

#[cfg(test)]
mod tests;
