//! One input that [`discover`](crate::discover()) found: what it is called, what it holds, and how
//! to open it.
//!
//! Millions of small files in a folder are one source, not millions: their names lie end to end in
//! one string, so that a big tree costs its names and 24 bytes a file.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha1::{Digest, Sha1};

use crate::ahead::Ahead;
use crate::discover::{DiscoverError, expanded};
use crate::document::{InputFailure, SkipReason};
use crate::feed::Feed;
use crate::options::{Format, Options};
use crate::sniff::{Encoding, HEAD_BYTES, sniff};
use crate::watch::{Watch, Watched};

/// Bytes that can be entered anywhere.
pub(crate) trait Input: Read + Seek + Send {}
impl<T: Read + Seek + Send> Input for T {}

/// An input to read: a file, a pipe, a folder of small files.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Source {
    /// The input as it was given, with the path inside a folder after it; `/` between the parts.
    pub name: String,
    /// Size in bytes, 0 for a pipe, the sum for a tree.
    pub bytes: u64,
    /// What it is made of.
    pub format: Format,
    pub(crate) encoding: Encoding,
    pub(crate) location: Location,
}

/// Where the bytes are.
#[derive(Clone, Debug)]
pub(crate) enum Location {
    File(PathBuf),
    /// A part of a file that is a file itself: a member of a WACZ that is stored as it is.
    Slice {
        whole: Arc<Source>,
        start: u64,
        len: u64,
    },
    /// A member of a WACZ that is compressed again.
    WaczMember {
        whole: Arc<Source>,
        name: String,
    },
    Stream(Stream),
    Tree(Arc<TreeFiles>),
    /// Bytes that somebody else has read.
    Memory(Arc<[u8]>),
    #[cfg(feature = "remote")]
    Remote(crate::remote::RemoteObject),
}

/// A pipe: whoever takes it first has it.
#[derive(Clone)]
pub(crate) struct Stream(Arc<Mutex<Option<Box<dyn Read + Send>>>>);

impl Stream {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> Stream {
        Stream(Arc::new(Mutex::new(Some(input))))
    }

    fn take(&self) -> io::Result<Box<dyn Read + Send>> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| io::Error::other("a pipe can be read only once"))
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stream")
    }
}

impl Source {
    /// An input whose bytes somebody else has read, from a store that this program does not know.
    /// Its format is seen by its content as in [`discover`](crate::discover()); each WARC file in a
    /// WACZ is a source of its own.
    ///
    /// # Errors
    ///
    /// When it is neither text nor in a known format.
    pub fn in_memory(name: &str, bytes: Arc<[u8]>, options: &Options) -> Result<Vec<Source>, DiscoverError> {
        let file_name = name.rsplit('/').next().unwrap_or_default();
        let sniffed = sniff(&bytes[..bytes.len().min(HEAD_BYTES)], file_name);
        let format = options.format.or(sniffed.format).ok_or_else(|| DiscoverError::unknown(name))?;
        let source = Source {
            name: name.to_owned(),
            bytes: bytes.len() as u64,
            format,
            encoding: sniffed.encoding,
            location: Location::Memory(bytes),
        };
        Ok(expanded(source))
    }

    /// How many tasks the source is cut into, where that is known without decoding it, so that
    /// workers can begin anywhere; `None` when one has to read it from front to back.
    pub fn split(&self, options: &Options) -> Option<u32> {
        let mut feed = Feed::open(self, options, &Watch::default(), &Ahead::default());
        if !feed.is_cut_by_arithmetic() {
            return None;
        }
        let mut tasks = 0;
        while feed.next(options, &mut |_| {}).is_some() {
            tasks += 1;
        }
        Some(tasks)
    }

    /// True for a pipe: it is read once from the front, and a run that stopped inside it cannot go
    /// on.
    pub fn is_stream(&self) -> bool {
        matches!(self.location, Location::Stream(_))
    }

    /// How many files a tree has; 1 for every other source.
    pub fn files(&self) -> u64 {
        match &self.location {
            Location::Tree(files) => files.len() as u64,
            _ => 1,
        }
    }

    /// The folder whose files it is made of, if it is not made of files that were named one by one.
    pub fn folder(&self) -> Option<&Path> {
        match &self.location {
            Location::Tree(files) if files.under_folder() => Some(&files.root),
            _ => None,
        }
    }

    /// Its files, if it is made of several that were named one by one. Its own name is then no
    /// path.
    pub fn named_files(&self) -> Vec<String> {
        match &self.location {
            Location::Tree(files) if !files.under_folder() && files.len() > 1 => {
                (0..files.len()).map(|at| files.path(at).display().to_string()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether it is a folder with folders in it that have files.
    pub fn has_folders(&self) -> bool {
        let Location::Tree(files) = &self.location else { return false };
        files.under_folder() && (0..files.len()).any(|at| files.name(at).contains('/'))
    }

    /// Spells a place in this source for people, from the offset of a document or a bad record.
    pub fn place(&self, offset: u64) -> String {
        match &self.location {
            Location::Tree(files) => match usize::try_from(offset).ok().filter(|&at| at < files.len()) {
                Some(at) => files.path(at).display().to_string(),
                None => self.name.clone(),
            },
            _ if self.format == Format::Parquet => format!("{}, row {offset}", self.name),
            _ => format!("{}, byte {offset}", self.name),
        }
    }

    /// Spells the place where this source failed, for people.
    pub fn failure_place(&self, failure: &InputFailure) -> String {
        let file = match (&self.location, failure.file) {
            (Location::Tree(_), Some(at)) => self.place(at),
            _ => self.name.clone(),
        };
        format!("{file}, byte {}", failure.byte)
    }

    /// The first file of a tree that could not be opened when it was found: its place, and what
    /// the system said.
    pub fn first_unreadable(&self) -> Option<(String, &str)> {
        let Location::Tree(files) = &self.location else { return None };
        let at = (0..files.len()).find(|&at| files.skip_reason(at) == Some(SkipReason::UnreadableFile))?;
        Some((self.place(at as u64), files.detail(at)))
    }

    /// A digest of name, format, size, and the names and sizes of a tree's files: whether the input
    /// of an earlier run is still the same, as far as can be known without reading it. Times of
    /// change are left out on purpose, a copied corpus is the same corpus.
    pub fn identity(&self) -> [u8; 20] {
        let mut hash = Sha1::new();
        for part in [self.name.as_bytes(), self.format.as_str().as_bytes()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(self.bytes.to_le_bytes());
        if let Location::Tree(files) = &self.location {
            for at in 0..files.len() {
                let name = files.name(at);
                hash.update((name.len() as u64).to_le_bytes());
                hash.update(name.as_bytes());
                hash.update(files.size(at).to_le_bytes());
                // Only what is not read for a reason that did not exist when there were trees of
                // other kinds: their digests stay.
                if let Some(reason @ (SkipReason::UnreadableFile | SkipReason::LinkOutside)) =
                    files.skip_reason(at)
                {
                    hash.update(reason.code().as_bytes());
                }
            }
        }
        hash.finalize().into()
    }

    /// How many bytes are better jumped over than read: to enter a file elsewhere costs about as
    /// much as reading a page of it, to enter an object in a store costs a request.
    pub(crate) fn gap(&self) -> u64 {
        match &self.location {
            Location::File(_) | Location::Slice { .. } | Location::Memory(_) => 4 << 10,
            _ => 4 << 20,
        }
    }

    /// Opens a source that can be entered anywhere.
    pub(crate) fn open(&self, watch: &Watch) -> io::Result<Box<dyn Input>> {
        let len = Some(self.bytes);
        match &self.location {
            Location::File(path) => {
                let file = File::open(path).inspect_err(|error| watch.note(None, 0, error))?;
                #[cfg(unix)]
                let file = Positioned { file, position: 0 };
                Ok(Box::new(Watched::new(file, len, watch)))
            }
            Location::Slice { whole, start, len } => Ok(Box::new(Slice::open(whole, *start, *len, watch)?)),
            Location::Memory(bytes) => Ok(Box::new(io::Cursor::new(Arc::clone(bytes)))),
            #[cfg(feature = "remote")]
            Location::Remote(object) => Ok(Box::new(Watched::new(object.open(), len, watch))),
            Location::Stream(_) | Location::WaczMember { .. } => {
                let message = format!("{} needs a file and cannot be read from a pipe", self.format);
                Err(io::Error::new(io::ErrorKind::Unsupported, message))
            }
            Location::Tree(_) => Err(io::Error::new(io::ErrorKind::Unsupported, "not one file")),
        }
    }

    /// Opens a source to be read from the front.
    pub(crate) fn open_stream(&self, watch: &Watch) -> io::Result<Box<dyn Read + Send>> {
        let len = Some(self.bytes);
        match &self.location {
            Location::File(path) => {
                let file = File::open(path).inspect_err(|error| watch.note(None, 0, error))?;
                Ok(Box::new(Watched::new(file, len, watch)))
            }
            Location::Slice { whole, start, len } => Ok(Box::new(Slice::open(whole, *start, *len, watch)?)),
            Location::Memory(bytes) => Ok(Box::new(io::Cursor::new(Arc::clone(bytes)))),
            #[cfg(feature = "remote")]
            Location::Remote(object) => Ok(Box::new(Watched::new(object.open(), len, watch))),
            Location::Stream(stream) => Ok(Box::new(Watched::new(stream.take()?, None, watch))),
            Location::Tree(_) | Location::WaczMember { .. } => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "not one file"))
            }
        }
    }
}

/// A file that is told with every read where to read: going elsewhere costs no call of the system.
#[cfg(unix)]
struct Positioned {
    file: File,
    position: u64,
}

#[cfg(unix)]
impl Read for Positioned {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = std::os::unix::fs::FileExt::read_at(&self.file, into, self.position)?;
        self.position += n as u64;
        Ok(n)
    }
}

#[cfg(unix)]
impl Seek for Positioned {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let len = || self.file.metadata().map(|file| file.len());
        self.position = position_after(to, self.position, len)?;
        Ok(self.position)
    }
}

/// Where a file stands after a seek.
pub(crate) fn position_after(
    to: SeekFrom,
    position: u64,
    len: impl FnOnce() -> io::Result<u64>,
) -> io::Result<u64> {
    let position = match to {
        SeekFrom::Start(at) => Some(at),
        SeekFrom::Current(by) => position.checked_add_signed(by),
        SeekFrom::End(by) => len()?.checked_add_signed(by),
    };
    position.ok_or_else(outside)
}

fn outside() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "seek outside the file")
}

/// A part of a file, as a file of its own.
struct Slice {
    whole: Box<dyn Input>,
    start: u64,
    len: u64,
    position: u64,
}

impl Slice {
    fn open(whole: &Source, start: u64, len: u64, watch: &Watch) -> io::Result<Slice> {
        let mut whole = whole.open(watch)?;
        whole.seek(SeekFrom::Start(start))?;
        Ok(Slice { whole, start, len, position: 0 })
    }
}

impl Read for Slice {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let wanted = into.len().min(left);
        let n = self.whole.read(&mut into[..wanted])?;
        self.position += n as u64;
        Ok(n)
    }
}

impl Seek for Slice {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = position_after(to, self.position, || Ok(self.len))?;
        self.whole.seek(SeekFrom::Start(self.start.checked_add(position).ok_or_else(outside)?))?;
        self.position = position;
        Ok(position)
    }
}

/// The files of a tree, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct TreeFiles {
    /// What the names are relative to.
    root: PathBuf,
    /// The names may stand for addresses: they lie under a folder that was given.
    under_folder: bool,
    /// All names, end to end, `/` between the parts.
    names: String,
    entries: Vec<TreeEntry>,
    /// Paths that are not UTF-8, or not spelt as their name is.
    odd_paths: BTreeMap<usize, PathBuf>,
    /// What is said of files that are not read.
    details: BTreeMap<usize, String>,
    /// What the root was when its files were listed.
    root_id: Option<FolderId>,
}

/// Tells a folder from another that took its place, such as an empty mount point.
type FolderId = (u64, u64);

#[cfg(unix)]
fn folder_id(path: &Path) -> Option<FolderId> {
    use std::os::unix::fs::MetadataExt;
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    std::fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

#[cfg(not(unix))]
fn folder_id(path: &Path) -> Option<FolderId> {
    path.as_os_str().is_empty().then_some((0, 0)).or_else(|| path.is_dir().then_some((0, 0)))
}

#[derive(Clone, Debug)]
struct TreeEntry {
    name_end: usize,
    size: u64,
    kind: FileKind,
}

/// What is done with a file of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// It is one document.
    Document,
    /// It is not read: of no known kind.
    Unknown,
    /// It is not read: it, or the folder, cannot be opened.
    Unreadable,
    /// It is not read: a link that leads elsewhere.
    Link,
}

impl TreeFiles {
    pub(crate) fn new(root: PathBuf, under_folder: bool) -> TreeFiles {
        let root_id = if under_folder { folder_id(&root) } else { None };
        TreeFiles { root, under_folder, root_id, ..TreeFiles::default() }
    }

    /// `relative` is the path below the root. Of a file that is not read `detail` says more.
    pub(crate) fn push(&mut self, relative: &Path, size: u64, kind: FileKind, detail: &str) {
        let name = slashed(relative);
        if Path::new(&name) != relative {
            self.odd_paths.insert(self.entries.len(), relative.to_owned());
        }
        self.names.push_str(&name);
        if !detail.is_empty() {
            self.details.insert(self.entries.len(), detail.to_owned());
        }
        self.entries.push(TreeEntry { name_end: self.names.len(), size, kind });
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.entries.iter().fold(0, |sum, entry| sum.saturating_add(entry.size))
    }

    pub(crate) fn name(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.entries[at - 1].name_end };
        &self.names[start..self.entries[at].name_end]
    }

    pub(crate) fn size(&self, at: usize) -> u64 {
        self.entries[at].size
    }

    /// Why a file is not read.
    pub(crate) fn skip_reason(&self, at: usize) -> Option<SkipReason> {
        match self.entries[at].kind {
            FileKind::Document => None,
            FileKind::Unknown => Some(SkipReason::UnknownFile),
            FileKind::Unreadable => Some(SkipReason::UnreadableFile),
            FileKind::Link => Some(SkipReason::LinkOutside),
        }
    }

    /// What more is to be said of a file that is not read.
    pub(crate) fn detail(&self, at: usize) -> &str {
        self.details.get(&at).map_or("", String::as_str)
    }

    /// Whether an error on opening a file tells of this file alone. One that vanished does if the
    /// folders around it are still those that were listed: when a share goes away, or is unmounted,
    /// all of its files vanish.
    pub(crate) fn is_one_file(&self, at: usize, error: &io::Error) -> bool {
        if !self.under_folder || !is_of_one_file(error) {
            return false;
        }
        error.kind() != io::ErrorKind::NotFound
            || (self.root_id == folder_id(&self.root)
                && self.path(at).parent().is_some_and(|folder| folder_id(folder).is_some()))
    }

    pub(crate) fn under_folder(&self) -> bool {
        self.under_folder
    }

    pub(crate) fn path(&self, at: usize) -> PathBuf {
        match self.odd_paths.get(&at) {
            Some(path) => self.root.join(path),
            None => self.root.join(self.name(at)),
        }
    }
}

/// Whether an error on opening a file of a folder tells of that file, and not of the machine, the
/// disk or the network below it.
pub(crate) fn is_of_one_file(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(error.kind(), Kind::PermissionDenied | Kind::NotFound | Kind::NotADirectory | Kind::IsADirectory)
}

/// A path with `/` between its parts on every system.
pub(crate) fn slashed(path: &Path) -> String {
    let text = path.to_string_lossy();
    if std::path::MAIN_SEPARATOR == '/' {
        text.into_owned()
    } else {
        text.replace(std::path::MAIN_SEPARATOR, "/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tree_names_come_back() {
        let mut files = TreeFiles::new(PathBuf::from("root"), true);
        files.push(Path::new("a.html"), 3, FileKind::Document, "");
        files.push(Path::new("example.org/b.html"), 4, FileKind::Unreadable, "no");
        assert_eq!(
            (files.name(0), files.name(1), files.len(), files.bytes()),
            ("a.html", "example.org/b.html", 2, 7)
        );
        assert_eq!(files.path(1), Path::new("root/example.org/b.html"));
        assert_eq!(files.skip_reason(0), None);
        assert_eq!((files.skip_reason(1), files.detail(1)), (Some(SkipReason::UnreadableFile), "no"));
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_not_utf8_still_open() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let odd = Path::new(OsStr::from_bytes(b"caf\xe9.txt"));
        let mut files = TreeFiles::new(PathBuf::from("root"), true);
        files.push(odd, 1, FileKind::Document, "");
        assert_eq!(files.name(0), "caf\u{fffd}.txt");
        assert_eq!(files.path(0), Path::new("root").join(odd));
    }

    #[test]
    fn an_opened_file_stands_where_a_file_would() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        std::fs::write(&path, "{\"text\": \"one\"}\n").unwrap();
        let options = Options::default();
        let found = crate::discover(&[path.display().to_string()], &options).unwrap();
        let mut opened = found[0].open(&Watch::default()).unwrap();
        let mut expected = File::open(&path).unwrap();
        for seek in [
            SeekFrom::Start(3),
            SeekFrom::Current(4),
            SeekFrom::Current(-9),
            SeekFrom::End(-2),
            SeekFrom::End(5),
            SeekFrom::Current(-100),
            SeekFrom::Start(0),
        ] {
            assert_eq!(opened.seek(seek).ok(), expected.seek(seek).ok(), "{seek:?}");
            let (mut some, mut same) = ([0; 3], [0; 3]);
            assert_eq!(opened.read(&mut some).unwrap(), expected.read(&mut same).unwrap());
            assert_eq!(some, same, "{seek:?}");
        }
    }

    #[test]
    fn a_stream_is_taken_once() {
        let stream = Stream::new(Box::new(io::empty()));
        assert!(stream.take().is_ok());
        assert!(stream.take().is_err());
    }
}
