//! Trees: files that are one document each.
//!
//! A folder that mirrors a web, `example.org/docs/a.html`, tells the address of every page in it;
//! any other file is known by its path alone.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

use onionskin_extract::{media_type_of_extension, url};

use crate::decode::{read_gently, unpack_gently};
use crate::document::{BadReason, BadRecord, SkipReason, Visitor};
use crate::options::Options;
use crate::record::Payload;
use crate::sniff::Encoding;
use crate::source::TreeFiles;
use crate::task::Scratch;

/// No task has more files than this, however small they are.
const MAX_FILES: usize = 1024;

/// The files that make a task, from `first` on: as many as are within `task_bytes` together, at
/// least one.
pub(crate) fn next_group(files: &TreeFiles, first: usize, task_bytes: u64) -> Range<usize> {
    let mut bytes = 0_u64;
    let mut end = first;
    while end < files.len() && end - first < MAX_FILES {
        bytes = bytes.saturating_add(files.size(end));
        if end > first && bytes > task_bytes {
            break;
        }
        end += 1;
    }
    first..end
}

/// Reads a group of files.
pub(crate) fn run(
    files: &TreeFiles,
    group: Range<usize>,
    source: u32,
    options: &Options,
    scratch: &mut Scratch,
    visitor: &mut dyn Visitor,
) {
    for at in group {
        if !files.is_known(at) {
            visitor.skipped(SkipReason::UnknownFile);
            continue;
        }
        let offset = at as u64;
        if !visitor.wants(offset) {
            continue;
        }
        let mut before_large = |bytes| visitor.before_large(bytes);
        match read_whole(&files.path(at), options, &mut scratch.file, &mut before_large) {
            Ok(false) => {
                let name = files.name(at);
                let address = if files.under_folder() { url::from_tree_path(Path::new(name)) } else { None };
                emit(FileRecord { source, offset, name, url: address.as_deref() }, scratch, visitor);
            }
            Ok(true) => {
                let reason = BadReason::TooLarge { limit: options.max_record_bytes };
                visitor.bad_record(BadRecord { source, offset, reason });
            }
            Err(error) => {
                visitor.bad_record(BadRecord { source, offset, reason: BadReason::from_io(&error) })
            }
        }
    }
}

/// A whole file that is one document; its bytes are in the scratch.
pub(crate) struct FileRecord<'a> {
    pub(crate) source: u32,
    pub(crate) offset: u64,
    pub(crate) name: &'a str,
    pub(crate) url: Option<&'a str>,
}

/// Makes a document of the bytes in `scratch.file`.
pub(crate) fn emit(record: FileRecord<'_>, scratch: &mut Scratch, visitor: &mut dyn Visitor) {
    let FileRecord { source, offset, name, url } = record;
    let bare = [".gz", ".zst"].iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
    let ending = bare.rsplit_once('.').map_or("", |(_, ending)| ending);
    let declared = media_type_of_extension(ending);
    let payload =
        Payload { source, offset, id: Some(name), url, bytes: &scratch.file, declared, ..Payload::default() };
    payload.emit(&mut scratch.extraction, visitor);
}

/// Reads a file, unpacked if it is compressed. `true` when it is larger than the limit.
fn read_whole(
    path: &Path,
    options: &Options,
    out: &mut Vec<u8>,
    before_large: &mut dyn FnMut(u64),
) -> io::Result<bool> {
    if read_gently(File::open(path)?, options.max_record_bytes, out, before_large)? {
        return Ok(true);
    }
    match Encoding::of(out) {
        Encoding::Plain => Ok(false),
        encoding => {
            let packed = std::mem::take(out);
            unpack_gently(&packed, encoding, options, out, before_large)
        }
    }
}

#[cfg(test)]
mod tests;
