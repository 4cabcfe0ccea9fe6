//! From what was typed to the list of sources.
//!
//! Order is part of the result, since documents are numbered by it: inputs stay as they were given,
//! and what a folder or a glob expands to is sorted bytewise by path, so that neither the file
//! system nor the locale has a say.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use onionskin_warc::wacz::{self, Wacz, WaczError};
use walkdir::WalkDir;

use crate::options::{Format, Options};
use crate::sniff::{Encoding, HEAD_BYTES, Sniffed, sniff};
use crate::source::{FileKind, Location, Source, Stream, TreeFiles, is_of_one_file, slashed};
use crate::watch::Watch;

/// Why the inputs could not be made into sources.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// Nothing was given.
    #[error("no input given")]
    NoInput,
    /// The path does not exist.
    #[error("{input}: no such file or folder")]
    NotFound {
        /// The input as given.
        input: String,
    },
    /// A glob that matches no file.
    #[error("{input}: no file matches")]
    NoMatch {
        /// The input as given.
        input: String,
    },
    /// A folder without files.
    #[error("{input}: the folder has no files in it")]
    EmptyFolder {
        /// The input as given.
        input: String,
    },
    /// A glob that is not well-formed.
    #[error("{input}: not a valid pattern: {reason}")]
    BadGlob {
        /// The input as given.
        input: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file of a kind we cannot read, named by itself.
    #[error(
        "{input}: neither text nor a format that is known\nhint: name the format, if it is one of {known}"
    )]
    UnknownFormat {
        /// The input as given.
        input: String,
        /// The formats there are.
        known: String,
    },
    /// A remote address in a build without remote stores.
    #[error("{input}: this build reads local files only\nhint: use a build with the feature `remote`")]
    RemoteNotBuilt {
        /// The input as given.
        input: String,
    },
    /// A remote address that cannot be used.
    #[error("{input}: {reason}")]
    Remote {
        /// The input as given.
        input: String,
        /// What is wrong.
        reason: String,
    },
    /// A list of inputs inside a list of inputs.
    #[error("{input}: a list of inputs cannot name another list")]
    NestedList {
        /// The input as given.
        input: String,
    },
    /// Standard input is named twice.
    #[error("-: standard input can be given only once")]
    StandardInputTwice,
    /// The operating system said no.
    #[error("{path}")]
    Io {
        /// The file or folder.
        path: String,
        /// What it said.
        #[source]
        source: io::Error,
    },
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> DiscoverError + '_ {
    move |source| DiscoverError::Io { path: slashed(path), source }
}

/// Makes sources of inputs: files, folders (every file below, without hidden ones), globs (`**`
/// crosses folders), `@list.txt` (one input a line), `-` (standard input) and, with the feature
/// `remote`, addresses of object stores.
///
/// # Errors
///
/// When an input does not exist, matches nothing, cannot be read, or is a file that is neither text
/// nor in a known format. Inside a folder such a file is no error, and neither is one that cannot
/// be opened; the tasks tell of it as [skipped](crate::Visitor::skipped_file).
pub fn discover(inputs: &[String], options: &Options) -> Result<Vec<Source>, DiscoverError> {
    if inputs.is_empty() {
        return Err(DiscoverError::NoInput);
    }
    let mut discovery = Discovery { options, sources: Vec::new(), has_standard_input: false, tree: None };
    for input in inputs {
        match input.strip_prefix('@') {
            // A file whose own name begins with @ can be given as ./@name.
            Some(list) => discovery.add_list(Path::new(list))?,
            None => discovery.add(input)?,
        }
    }
    discovery.finish_tree();
    Ok(discovery.sources)
}

const REMOTE_SCHEMES: [&str; 6] = ["s3://", "gs://", "az://", "abfs://", "http://", "https://"];

struct Discovery<'a> {
    options: &'a Options,
    sources: Vec<Source>,
    has_standard_input: bool,
    /// The tree that the next file may still join.
    tree: Option<OpenTree>,
}

/// Neighbouring single-document files of one input, on their way to becoming one source.
struct OpenTree {
    /// What the source is called when it has more than one file; `None` for files that were named
    /// one by one.
    folder: Option<String>,
    files: TreeFiles,
}

impl Discovery<'_> {
    fn add_list(&mut self, list: &Path) -> Result<(), DiscoverError> {
        let text = fs::read_to_string(list).map_err(io_error(list))?;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if line.starts_with('@') {
                return Err(DiscoverError::NestedList { input: line.to_owned() });
            }
            self.add(line)?;
        }
        Ok(())
    }

    fn add(&mut self, input: &str) -> Result<(), DiscoverError> {
        if input == "-" {
            if std::mem::replace(&mut self.has_standard_input, true) {
                return Err(DiscoverError::StandardInputTwice);
            }
            return self.add_stream("-", Box::new(io::stdin()));
        }
        if REMOTE_SCHEMES.iter().any(|scheme| input.starts_with(scheme)) {
            return self.add_remote(input);
        }
        let path = Path::new(input);
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => self.add_folder(input, path),
            Ok(meta) if meta.is_file() => self.add_named_file(input, path, meta.len()),
            // A named pipe or a device: `<(zcat …)` in a shell.
            Ok(_) => {
                let file = File::open(path).map_err(io_error(path))?;
                self.add_stream(input, Box::new(file))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => match split_glob(input) {
                Some((base, pattern)) => self.add_glob(input, &base, &pattern),
                None => Err(DiscoverError::NotFound { input: input.to_owned() }),
            },
            Err(error) => Err(io_error(path)(error)),
        }
    }

    #[cfg(feature = "remote")]
    fn add_remote(&mut self, input: &str) -> Result<(), DiscoverError> {
        let failed = |reason: String| DiscoverError::Remote { input: input.to_owned(), reason };
        let found = crate::remote::find(input).map_err(failed)?;
        if found.is_empty() {
            return Err(DiscoverError::NoMatch { input: input.to_owned() });
        }
        let named = found.len() == 1 && found[0].name == input;
        self.finish_tree();
        for object in found {
            let mut head = Vec::new();
            let read = object.open().take(HEAD_BYTES as u64).read_to_end(&mut head);
            read.map_err(|error| failed(format!("{}: {error}", object.name)))?;
            let file_name = object.name.rsplit('/').next().unwrap_or_default();
            let sniffed = sniff(&head, file_name);
            let format = match self.options.format.or(sniffed.format) {
                Some(format) => format,
                None if named => return Err(DiscoverError::unknown(input)),
                // Told, and counted, when its turn comes.
                None => Format::Tree,
            };
            self.push(Source {
                name: object.name.clone(),
                bytes: object.len,
                format,
                encoding: sniffed.encoding,
                location: Location::Remote(object),
            });
        }
        Ok(())
    }

    #[cfg(not(feature = "remote"))]
    fn add_remote(&mut self, input: &str) -> Result<(), DiscoverError> {
        Err(DiscoverError::RemoteNotBuilt { input: input.to_owned() })
    }

    /// A pipe is looked into by reading its head, which is put back in front.
    fn add_stream(&mut self, name: &str, mut input: Box<dyn Read + Send>) -> Result<(), DiscoverError> {
        let mut head = Vec::new();
        input.by_ref().take(HEAD_BYTES as u64).read_to_end(&mut head).map_err(io_error(Path::new(name)))?;
        let sniffed = sniff(&head, name);
        let format = self.options.format.or(sniffed.format).ok_or_else(|| DiscoverError::unknown(name))?;
        self.finish_tree();
        self.sources.push(Source {
            name: name.to_owned(),
            bytes: 0,
            format,
            encoding: sniffed.encoding,
            location: Location::Stream(Stream::new(Box::new(io::Cursor::new(head).chain(input)))),
        });
        Ok(())
    }

    fn add_named_file(&mut self, input: &str, path: &Path, size: u64) -> Result<(), DiscoverError> {
        let sniffed = sniff_file(path).map_err(io_error(path))?;
        match self.options.format.or(sniffed.format) {
            None => Err(DiscoverError::unknown(input)),
            Some(Format::Tree) => {
                if self.tree.as_ref().is_none_or(|tree| tree.folder.is_some()) {
                    self.finish_tree();
                }
                let tree = self.tree.get_or_insert_with(|| OpenTree {
                    folder: None,
                    files: TreeFiles::new(PathBuf::new(), false),
                });
                tree.files.push(path, size, FileKind::Document, "");
                Ok(())
            }
            Some(format) => {
                self.push_file(slashed(path), path.to_owned(), size, format, sniffed.encoding);
                Ok(())
            }
        }
    }

    fn add_folder(&mut self, input: &str, folder: &Path) -> Result<(), DiscoverError> {
        // A folder that was named, and not found in another, has to be there.
        fs::read_dir(folder).map_err(io_error(folder))?;
        let found = walk(folder, self.options.follow_links, |_| true)?;
        if found.is_empty() {
            return Err(DiscoverError::EmptyFolder { input: input.to_owned() });
        }
        self.add_found(folder, found)
    }

    fn add_glob(&mut self, input: &str, base: &Path, pattern: &str) -> Result<(), DiscoverError> {
        let glob = GlobBuilder::new(pattern).literal_separator(true).build();
        let matcher = glob
            .map_err(|error| DiscoverError::BadGlob {
                input: input.to_owned(),
                reason: error.kind().to_string(),
            })?
            .compile_matcher();
        let root = if base.as_os_str().is_empty() { Path::new(".") } else { base };
        let found = if root.is_dir() {
            let wanted = |path: &Path| matches_itself_or_a_parent(&matcher, path);
            walk(root, self.options.follow_links, wanted)?
        } else {
            Vec::new()
        };
        if found.is_empty() {
            return Err(DiscoverError::NoMatch { input: input.to_owned() });
        }
        self.add_found(base, found)
    }

    /// Files below a folder, sorted. Those that are one document each become one source, before the
    /// others: with a second one, the name of the folder would not tell which is meant.
    fn add_found(&mut self, folder: &Path, found: Vec<Found>) -> Result<(), DiscoverError> {
        // Never continues a tree from an earlier input: its names are relative to another folder.
        self.finish_tree();
        let name = slashed(folder);
        let mut others = Vec::new();
        for Found { relative, size, skip } in found {
            let path = folder.join(&relative);
            let looked_at = match skip {
                Some(skip) => Err(skip),
                None => match sniff_file(&path) {
                    Ok(sniffed) => match self.options.format.or(sniffed.format) {
                        Some(format) => Ok((format, sniffed.encoding)),
                        None => Err((FileKind::Unknown, String::new())),
                    },
                    Err(error) if is_of_one_file(&error) => Err((FileKind::Unreadable, error.to_string())),
                    Err(error) => return Err(io_error(&path)(error)),
                },
            };
            let (kind, detail) = match looked_at {
                Ok((format, encoding)) if format != Format::Tree => {
                    others.push((path, size, format, encoding));
                    continue;
                }
                Ok(_) => (FileKind::Document, String::new()),
                Err(skip) => skip,
            };
            let tree = self.tree.get_or_insert_with(|| OpenTree {
                folder: Some(name.clone()),
                files: TreeFiles::new(folder.to_owned(), true),
            });
            tree.files.push(&relative, size, kind, &detail);
        }
        self.finish_tree();
        for (path, size, format, encoding) in others {
            self.push_file(slashed(&path), path, size, format, encoding);
        }
        Ok(())
    }

    fn push_file(&mut self, name: String, path: PathBuf, bytes: u64, format: Format, encoding: Encoding) {
        self.finish_tree();
        self.push(Source { name, bytes, format, encoding, location: Location::File(path) });
    }

    fn push(&mut self, source: Source) {
        self.sources.extend(expanded(source));
    }

    fn finish_tree(&mut self) {
        let Some(OpenTree { folder, files }) = self.tree.take() else { return };
        let name = match (folder, files.len()) {
            (_, 1) => slashed(&files.path(0)),
            (Some(folder), _) => folder,
            (None, n) => format!("{} and {} more files", slashed(&files.path(0)), n - 1),
        };
        self.sources.push(Source {
            name,
            bytes: files.bytes(),
            format: Format::Tree,
            encoding: Encoding::Plain,
            location: Location::Tree(Arc::new(files)),
        });
    }
}

/// Each WARC file in a WACZ is a source of its own.
pub(crate) fn expanded(source: Source) -> Vec<Source> {
    if source.format == Format::Wacz
        && let Ok(members) = wacz_members(&source)
    {
        return members;
    }
    // A WACZ that cannot be opened is told of when it is read.
    vec![source]
}

fn wacz_members(source: &Source) -> Result<Vec<Source>, WaczError> {
    let wacz = Wacz::open(BufReader::new(source.open(&Watch::default())?))?;
    let whole = Arc::new(source.clone());
    let member_source = |member: &wacz::Member| {
        let whole = Arc::clone(&whole);
        let location = match member.stored_at {
            Some(start) => Location::Slice { whole, start, len: member.bytes },
            None => Location::WaczMember { whole, name: member.name.clone() },
        };
        let name = format!("{}/{}", source.name, member.name);
        let mut found =
            Source { name, bytes: member.bytes, format: Format::Warc, encoding: Encoding::Plain, location };
        if member.stored_at.is_some() {
            let mut head = Vec::new();
            found.open(&Watch::default())?.take(4).read_to_end(&mut head)?;
            found.encoding = Encoding::of(&head);
        }
        Ok(found)
    };
    wacz.members().iter().map(member_source).collect()
}

impl DiscoverError {
    pub(crate) fn unknown(input: &str) -> DiscoverError {
        let known = Format::ALL.map(Format::as_str).join(", ");
        DiscoverError::UnknownFormat { input: input.to_owned(), known }
    }
}

fn sniff_file(path: &Path) -> io::Result<Sniffed> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    File::open(path)?.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    Ok(sniff(&head, &path.file_name().unwrap_or_default().to_string_lossy()))
}

struct Found {
    relative: PathBuf,
    size: u64,
    /// Why it is counted and never opened.
    skip: Option<(FileKind, String)>,
}

/// Every file below `root` whose relative path is wanted, sorted bytewise, without hidden ones.
///
/// A link that leads to a place below the root is followed; one that leads back up is left out,
/// since all of it is there already. A link out of the root is followed on request only: what it
/// leads to was not named. A file or folder that cannot be opened is one that was found and is not
/// read.
fn walk(
    root: &Path,
    follow_links: bool,
    wanted: impl Fn(&Path) -> bool,
) -> Result<Vec<Found>, DiscoverError> {
    let hidden = |entry: &walkdir::DirEntry| {
        entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".")
    };
    let real_root = fs::canonicalize(root).map_err(io_error(root))?;
    let mut found = Vec::new();
    let outside = RefCell::new(Vec::new());
    // Asked before a folder is entered, so that nothing outside is looked at.
    let stays_inside = |entry: &walkdir::DirEntry| {
        if follow_links || entry.depth() == 0 || !entry.path_is_symlink() {
            return true;
        }
        match fs::canonicalize(entry.path()) {
            Ok(target) if !target.starts_with(&real_root) => {
                let skip = (FileKind::Link, format!("leads to {}", slashed(&target)));
                outside.borrow_mut().push((entry.path().to_owned(), skip));
                false
            }
            _ => true,
        }
    };
    let entries = WalkDir::new(root).follow_links(true).into_iter();
    for entry in entries.filter_entry(|entry| !hidden(entry) && stays_inside(entry)) {
        let (path, size, skip) = match entry {
            Ok(entry) if entry.file_type().is_dir() => continue,
            Ok(entry) => match entry.metadata() {
                Ok(meta) if meta.is_file() => (entry.into_path(), meta.len(), None),
                // A pipe, a device: never opened.
                Ok(_) => (entry.into_path(), 0, Some((FileKind::Unknown, String::new()))),
                Err(error) => unreadable(root, error)?,
            },
            Err(error) if error.loop_ancestor().is_some() => {
                tracing::debug!(path = ?error.path(), "a link leads back up and is left out");
                continue;
            }
            Err(error) => unreadable(root, error)?,
        };
        found.push((path, size, skip));
    }
    found.extend(outside.into_inner().into_iter().map(|(path, skip)| (path, 0, Some(skip))));
    let below = |path: PathBuf| path.strip_prefix(root).map(Path::to_owned).unwrap_or(path);
    let found = found.into_iter().map(|(path, size, skip)| Found { relative: below(path), size, skip });
    let mut found: Vec<Found> = found.filter(|found| wanted(&found.relative)).collect();
    found.sort_by(|a, b| {
        a.relative.as_os_str().as_encoded_bytes().cmp(b.relative.as_os_str().as_encoded_bytes())
    });
    Ok(found)
}

type Unopened = (PathBuf, u64, Option<(FileKind, String)>);

/// What cannot be opened is passed over, if the error tells of it alone.
fn unreadable(root: &Path, error: walkdir::Error) -> Result<Unopened, DiscoverError> {
    let path = error.path().unwrap_or(root).to_owned();
    // A link to nothing, or to itself, says nothing of the disk it lies on.
    let is_link = fs::symlink_metadata(&path).is_ok_and(|meta| meta.file_type().is_symlink());
    match error.io_error() {
        Some(source) if path != root && (is_link || is_of_one_file(source)) => {
            let detail = source.to_string();
            Ok((path, 0, Some((FileKind::Unreadable, detail))))
        }
        _ => Err(walk_error(root, error)),
    }
}

fn walk_error(root: &Path, error: walkdir::Error) -> DiscoverError {
    let path = slashed(error.path().unwrap_or(root));
    DiscoverError::Io { path, source: error.into() }
}

/// A pattern that matches a folder takes everything in it, as a shell's would.
fn matches_itself_or_a_parent(matcher: &GlobMatcher, relative: &Path) -> bool {
    relative.ancestors().take_while(|path| !path.as_os_str().is_empty()).any(|path| matcher.is_match(path))
}

/// Splits `crawl/2024/*/x*.gz` into the folder to walk, `crawl/2024`, and the pattern below it,
/// `*/x*.gz`. `None` when there is nothing to expand.
fn split_glob(input: &str) -> Option<(PathBuf, String)> {
    let is_pattern = |part: &str| part.contains(['*', '?', '[', '{']);
    let parts: Vec<&str> = input.split('/').collect();
    let first = parts.iter().position(|part| is_pattern(part))?;
    let mut base = parts[..first].join("/");
    if first > 0 && base.is_empty() {
        base.push('/');
    }
    Some((PathBuf::from(base), parts[first..].join("/")))
}

#[cfg(test)]
mod tests;
