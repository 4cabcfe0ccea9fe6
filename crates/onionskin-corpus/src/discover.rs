//! From what was typed to the list of sources.
//!
//! Order is part of the result, since documents are numbered by it: inputs stay as they were given,
//! and what a folder or a glob expands to is sorted bytewise by path, so that neither the file
//! system nor the locale has a say.

use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobMatcher};
use onionskin_warc::wacz::{self, Wacz, WaczError};
use walkdir::WalkDir;

use crate::options::{Format, Options};
use crate::sniff::{Encoding, HEAD_BYTES, Sniffed, sniff};
use crate::source::{Location, Source, Stream, TreeFiles, slashed};

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
/// nor in a known format. Inside a folder such a file is no error; the tasks count it as skipped.
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
                tree.files.push(path, size, true);
                Ok(())
            }
            Some(format) => {
                self.push_file(slashed(path), path.to_owned(), size, format, sniffed.encoding);
                Ok(())
            }
        }
    }

    fn add_folder(&mut self, input: &str, folder: &Path) -> Result<(), DiscoverError> {
        let found = walk(folder, |_| true)?;
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
            walk(root, |path| matches_itself_or_a_parent(&matcher, path))?
        } else {
            Vec::new()
        };
        if found.is_empty() {
            return Err(DiscoverError::NoMatch { input: input.to_owned() });
        }
        self.add_found(base, found)
    }

    /// Files below a folder, sorted. Neighbours that are one document each become one source.
    fn add_found(&mut self, folder: &Path, found: Vec<Found>) -> Result<(), DiscoverError> {
        // Never continues a tree from an earlier input: its names are relative to another folder.
        self.finish_tree();
        let name = slashed(folder);
        for Found { relative, size, regular } in found {
            let path = folder.join(&relative);
            let sniffed = if regular {
                sniff_file(&path).map_err(io_error(&path))?
            } else {
                Sniffed { encoding: Encoding::Plain, format: None }
            };
            let format = if regular { self.options.format.or(sniffed.format) } else { None };
            match format {
                None | Some(Format::Tree) => {
                    let tree = self.tree.get_or_insert_with(|| OpenTree {
                        folder: Some(name.clone()),
                        files: TreeFiles::new(folder.to_owned(), true),
                    });
                    tree.files.push(&relative, size, format.is_some());
                }
                Some(format) => self.push_file(slashed(&path), path, size, format, sniffed.encoding),
            }
        }
        self.finish_tree();
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
    let wacz = Wacz::open(BufReader::new(source.open()?))?;
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
            found.open()?.take(4).read_to_end(&mut head)?;
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
    /// Not a regular file, or a link to nothing: counted, never opened.
    regular: bool,
}

/// Every file below `root` whose relative path is wanted, sorted bytewise, without hidden ones.
/// Links are followed; one that leads back up is left out.
fn walk(root: &Path, wanted: impl Fn(&Path) -> bool) -> Result<Vec<Found>, DiscoverError> {
    let hidden = |entry: &walkdir::DirEntry| {
        entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".")
    };
    let mut found = Vec::new();
    for entry in WalkDir::new(root).follow_links(true).into_iter().filter_entry(|entry| !hidden(entry)) {
        let (path, size, regular) = match entry {
            Ok(entry) if entry.file_type().is_dir() => continue,
            Ok(entry) => {
                let meta = entry.metadata().map_err(|error| walk_error(root, error))?;
                (entry.into_path(), meta.len(), meta.is_file())
            }
            Err(error) if error.loop_ancestor().is_some() => {
                tracing::debug!(path = ?error.path(), "a link leads back up and is left out");
                continue;
            }
            // A link to nothing.
            Err(error) if error.io_error().is_some_and(|error| error.kind() == io::ErrorKind::NotFound) => {
                match error.path() {
                    Some(path) => (path.to_owned(), 0, false),
                    None => return Err(walk_error(root, error)),
                }
            }
            Err(error) => return Err(walk_error(root, error)),
        };
        let relative = path.strip_prefix(root).unwrap_or(&path);
        if wanted(relative) {
            found.push(Found { relative: relative.to_owned(), size, regular });
        }
    }
    found.sort_by(|a, b| {
        a.relative.as_os_str().as_encoded_bytes().cmp(b.relative.as_os_str().as_encoded_bytes())
    });
    Ok(found)
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
