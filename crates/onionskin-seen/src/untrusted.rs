//! Every parser of this crate as a function of bytes, for fuzzing: each answers any bytes with a
//! value or an error. Those of files of blocks are given content, which gets its checksums: behind
//! those, few bytes would ever come.

use std::path::Path;

use onionskin_store::storage::Disk;

use crate::blocks::{BlockWriter, Room};
pub use crate::catalogue::parse_bytes as catalogue;
use crate::error::SeenError;
pub use crate::removed::parse_content as removed;
use crate::run::{HEADER, KEY_BITS, Run, RunMeta, Salvage, SketchShape};
pub use crate::wal::parse_bytes as wal;

/// Reads a run of this content, through a file in a folder, in every way that there is; returns how
/// many postings could be read.
///
/// The first bytes say how large its parts are; the rest is what is in them, and zeros where it
/// ends before.
pub fn run(dir: &Path, content: &[u8]) -> Result<u64, SeenError> {
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
        sketch: SketchShape { minima: minima % 16, low_bytes: minima >= 128 },
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
    let salvage = Salvage::open(dir, meta)?;
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
            let _ = (run.name(record.key), run.sketch(doc), run.record(doc));
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
