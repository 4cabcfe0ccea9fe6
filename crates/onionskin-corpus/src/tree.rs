//! Trees: files that are one document each.
//!
//! A folder that mirrors a web, `example.org/docs/a.html`, tells the address of every page in it;
//! any other file is known by its path alone.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use onionskin_extract::{media_type_of_extension, url};

use crate::decode::{read_gently, unpack_gently};
use crate::document::{BadReason, BadRecord, Document, InputFailure, Loss, SkipReason, SkippedFile, Visitor};
use crate::options::Options;
use crate::record::Payload;
use crate::sniff::Encoding;
use crate::source::TreeFiles;
use crate::task::Scratch;
use crate::watch::{Watch, Watched};

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
    (scratch, watch): (&mut Scratch, &Watch),
    visitor: &mut dyn Visitor,
) {
    for at in group {
        let offset = at as u64;
        let skipped =
            |reason, detail: &str| SkippedFile { source, offset, reason, detail: detail.to_owned() };
        if let Some(reason) = files.skip_reason(at) {
            visitor.skipped_file(skipped(reason, files.detail(at)));
            continue;
        }
        if !visitor.wants(offset) {
            continue;
        }
        let name = files.name(at);
        let address = address(name, files.under_folder(), options);
        if let Some(reason) = crawl_file(name, address.as_deref(), options) {
            visitor.skipped_file(skipped(reason, ""));
            continue;
        }
        let bad = |reason| Loss::record(offset, files.size(at), reason).of(source);
        let opened = File::open(files.path(at)).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (len, file) = match opened {
            Ok(opened) => opened,
            Err(error) if files.is_one_file(at, &error) => {
                visitor.skipped_file(skipped(SkipReason::UnreadableFile, &error.to_string()));
                continue;
            }
            Err(error) => return watch.note(Some(offset), 0, &error),
        };
        let file = Watched::of_tree(file, len, offset, watch);
        let mut before_large = |bytes| visitor.before_large(bytes);
        let read = read_whole(file, options, &mut scratch.file, &mut before_large);
        if watch.failure().is_some() {
            return;
        }
        match read {
            Ok(false) => {
                let record = FileRecord { source, offset, name, url: address.as_deref() };
                emit(record, scratch, &mut Named { source, offset, visitor });
            }
            Ok(true) => visitor.bad_record(bad(BadReason::TooLarge { limit: options.max_record_bytes })),
            Err(error) => visitor.bad_record(bad(BadReason::from_io(&error))),
        }
    }
}

/// The URL of a file; `under_folder` says that its name is relative to a folder that was given.
fn address(name: &str, under_folder: bool, options: &Options) -> Option<String> {
    let path = Path::new(name);
    match &options.base_url {
        Some(base) => url::below(base.as_str(), path),
        None if !under_folder => None,
        None if options.hosts => url::from_host_path(path),
        None => url::from_tree_path(path),
    }
}

/// Why a file is no document, if it is what a crawl leaves behind.
pub(crate) fn crawl_file(name: &str, url: Option<&str>, options: &Options) -> Option<SkipReason> {
    if options.crawl_files {
        return None;
    }
    let file = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
    let bare = [".gz", ".zst"].iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(&file);
    if bare.ends_with(".cdx") || bare.ends_with(".cdxj") {
        return Some(SkipReason::CdxIndex);
    }
    (file == "robots.txt" && url.is_none_or(is_robots_file)).then_some(SkipReason::RobotsFile)
}

/// Whether this is the URL of a host's robots.txt.
pub(crate) fn is_robots_file(url: &str) -> bool {
    let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
    path.and_then(|path| path.split(['?', '#']).next()) == Some("robots.txt")
}

/// Tells by name of a file that is read and is no document.
struct Named<'v> {
    source: u32,
    offset: u64,
    visitor: &'v mut dyn Visitor,
}

impl Visitor for Named<'_> {
    fn before_large(&mut self, bytes: u64) {
        self.visitor.before_large(bytes);
    }

    fn document(&mut self, document: Document<'_>) {
        self.visitor.document(document);
    }

    fn bad_record(&mut self, bad: BadRecord) {
        self.visitor.bad_record(bad);
    }

    fn skipped(&mut self, reason: SkipReason) {
        let Named { source, offset, .. } = *self;
        self.visitor.skipped_file(SkippedFile { source, offset, reason, detail: String::new() });
    }

    fn no_text(&mut self, place: (u32, u64), fields: &mut dyn FnMut() -> Option<String>) {
        self.visitor.no_text(place, fields);
    }

    fn failed(&mut self, failure: InputFailure) {
        self.visitor.failed(failure);
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
    file: impl Read,
    options: &Options,
    out: &mut Vec<u8>,
    before_large: &mut dyn FnMut(u64),
) -> io::Result<bool> {
    if read_gently(file, options.max_record_bytes, out, before_large)? {
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
