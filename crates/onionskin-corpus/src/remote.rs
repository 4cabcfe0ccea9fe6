//! Inputs in object stores and on web servers.
//!
//! The readers of this crate want bytes at a place, now; the stores answer in futures. One thread
//! of its own drives all requests (a connection lives on the runtime that opened it, so there must
//! be one that is always running), and whoever wants bytes waits for its answer. Reads are ranges
//! that grow while reading goes on in order, so that looking at the head of a file costs little and
//! reading all of it few requests.

use std::fmt;
use std::future::Future;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, OnceLock, mpsc};

use bytes::Bytes;
use globset::GlobBuilder;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore};
use tokio::runtime::Handle;
use url::Url;

use crate::source::position_after;

/// The first range of a read in order, and the largest.
const FIRST_RANGE: u64 = 64 << 10;
const LARGEST_RANGE: u64 = 8 << 20;

/// More objects than this under one prefix are not listed: somebody pointed at a whole bucket by
/// mistake.
const MAX_OBJECTS: usize = 10_000_000;

/// One object: a file that is somewhere else.
#[derive(Clone)]
pub(crate) struct RemoteObject {
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// Its address, in the words it was asked for.
    pub(crate) name: String,
    pub(crate) len: u64,
}

impl fmt::Debug for RemoteObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteObject")
            .field("name", &self.name)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

/// Finds what an address stands for: one object; everything below it when it ends in `/`; or what a
/// pattern matches. The last two are sorted bytewise, and need a store that can list.
pub(crate) fn find(address: &str) -> Result<Vec<RemoteObject>, String> {
    let (base, pattern) = split_pattern(address);
    let url = Url::parse(base).map_err(|error| error.to_string())?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err("addresses with a query are not supported".to_owned());
    }
    let (store, path) = open_store(&url).map_err(|error| error.to_string())?;
    let store: Arc<dyn ObjectStore> = store.into();
    if pattern.is_empty() && !base.ends_with('/') {
        let len = wait(size_of(Arc::clone(&store), path.clone()))?
            .map_err(|error| without_durations(&error.to_string()))?;
        return Ok(vec![RemoteObject { store, path, name: address.to_owned(), len }]);
    }
    if matches!(url.scheme(), "http" | "https") {
        return Err("a web server does not list its files; name them one by one, or in a @list".to_owned());
    }
    let matcher = match pattern {
        "" => None,
        pattern => Some(
            GlobBuilder::new(pattern)
                .literal_separator(true)
                .build()
                .map_err(|error| format!("not a valid pattern: {}", error.kind()))?
                .compile_matcher(),
        ),
    };
    let listed = wait(list(Arc::clone(&store), path.clone()))?.map_err(|error| error.to_string())?;
    let prefix = path.as_ref();
    let mut found: Vec<RemoteObject> = listed
        .into_iter()
        .filter_map(|(location, len)| {
            let below = location.as_ref().strip_prefix(prefix)?.trim_start_matches('/');
            let hidden = below.split('/').any(|part| part.starts_with('.'));
            if below.is_empty() || hidden || matcher.as_ref().is_some_and(|matcher| !matcher.is_match(below))
            {
                return None;
            }
            let name = format!("{}/{below}", base.trim_end_matches('/'));
            Some(RemoteObject { store: Arc::clone(&store), path: location, name, len })
        })
        .collect();
    found.sort_by(|a, b| a.name.as_bytes().cmp(b.name.as_bytes()));
    Ok(found)
}

/// Splits `s3://bucket/a/*.gz` into `s3://bucket/a/` and `*.gz`.
fn split_pattern(address: &str) -> (&str, &str) {
    match address.find(['*', '?', '[', '{']) {
        None => (address, ""),
        Some(first) => address.split_at(address[..first].rfind('/').map_or(first, |slash| slash + 1)),
    }
}

/// Credentials and regions come from the environment, under the names the stores' own tools use.
fn open_store(url: &Url) -> object_store::Result<(Box<dyn ObjectStore>, Path)> {
    let known = ["aws_", "google_", "azure_"];
    let mut options: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(key, value)| {
            Some((key.into_string().ok()?.to_ascii_lowercase(), value.into_string().ok()?))
        })
        .filter(|(key, _)| known.iter().any(|prefix| key.starts_with(prefix)))
        .collect();
    if url.scheme() == "http" {
        options.push(("allow_http".to_owned(), "true".to_owned()));
    }
    object_store::parse_url_opts(url, options)
}

async fn size_of(store: Arc<dyn ObjectStore>, path: Path) -> object_store::Result<u64> {
    let options = GetOptions { head: true, ..GetOptions::default() };
    Ok(store.get_opts(&path, options).await?.meta.size)
}

async fn list(store: Arc<dyn ObjectStore>, prefix: Path) -> object_store::Result<Vec<(Path, u64)>> {
    let mut found = Vec::new();
    let mut folders = vec![prefix];
    while let Some(folder) = folders.pop() {
        let listed = store.list_with_delimiter(Some(&folder)).await?;
        found.extend(listed.objects.into_iter().map(|object| (object.location, object.size)));
        folders.extend(listed.common_prefixes);
        if found.len() > MAX_OBJECTS {
            let source = format!("more than {MAX_OBJECTS} objects below {folder}").into();
            return Err(object_store::Error::Generic { store: "onionskin", source });
        }
    }
    Ok(found)
}

/// The runtime that drives every request.
fn runtime() -> io::Result<&'static Handle> {
    static RUNTIME: OnceLock<Result<Handle, String>> = OnceLock::new();
    let start = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        std::thread::Builder::new()
            .name("onionskin-remote".to_owned())
            .spawn(move || runtime.block_on(std::future::pending::<()>()))?;
        Ok(handle)
    };
    let started = RUNTIME.get_or_init(|| start().map_err(|error: io::Error| error.to_string()));
    started.as_ref().map_err(|error| io::Error::other(error.clone()))
}

/// Waits for an answer on a thread that has no runtime.
fn wait<F>(future: F) -> Result<F::Output, String>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (answer, answered) = mpsc::channel();
    let handle = runtime().map_err(|error| error.to_string())?;
    handle.spawn(async move {
        // Nobody waits any more: then nobody misses it.
        let _ = answer.send(future.await);
    });
    answered.recv().map_err(|_| "the request was dropped".to_owned())
}

impl RemoteObject {
    /// The object as a file.
    pub(crate) fn open(&self) -> RemoteFile {
        RemoteFile {
            object: self.clone(),
            position: 0,
            piece: Bytes::new(),
            piece_start: 0,
            next_range: FIRST_RANGE,
        }
    }

    fn fetch(&self, start: u64, len: u64) -> io::Result<Bytes> {
        let (store, path) = (Arc::clone(&self.store), self.path.clone());
        let range = GetRange::Bounded(start..start.saturating_add(len).min(self.len));
        let options = GetOptions { range: Some(range), ..GetOptions::default() };
        let answer = wait(async move {
            let result = store.get_opts(&path, options).await?;
            let size = result.meta.size;
            object_store::Result::Ok((size, result.bytes().await?))
        });
        let (size, bytes) = answer.map_err(io::Error::other)?.map_err(unreadable)?;
        if size != self.len {
            let message = format!("was {} bytes when it was found and is {size} now", self.len);
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, message));
        }
        Ok(bytes)
    }
}

/// Not `Other` or `InvalidData`, which decoders answer to damaged data: this is the store's fault.
fn unreadable(error: object_store::Error) -> io::Error {
    let kind = match error {
        object_store::Error::NotFound { .. } => io::ErrorKind::NotFound,
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        _ => io::ErrorKind::ConnectionAborted,
    };
    io::Error::new(kind, without_durations(&error.to_string()))
}

/// The library's messages tell how long a request took; the same failure should be told in the same
/// words each time.
fn without_durations(message: &str) -> String {
    let is_duration = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_digit())
            && word.trim_end_matches([',', ';', ':']).ends_with('s')
    };
    let mut out: Vec<&str> = Vec::new();
    for word in message.split(' ') {
        if is_duration(word) && out.last() == Some(&"in") {
            out.pop();
        } else {
            out.push(word);
        }
    }
    out.join(" ")
}

/// An object being read.
pub(crate) struct RemoteFile {
    object: RemoteObject,
    position: u64,
    /// The last range that was fetched.
    piece: Bytes,
    piece_start: u64,
    next_range: u64,
}

impl Read for RemoteFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() || self.position >= self.object.len {
            return Ok(0);
        }
        let piece_end = self.piece_start + self.piece.len() as u64;
        if !(self.piece_start..piece_end).contains(&self.position) {
            let in_order = self.position == piece_end && !self.piece.is_empty();
            self.next_range = if in_order { (self.next_range * 2).min(LARGEST_RANGE) } else { FIRST_RANGE };
            let wanted = self.next_range.max((into.len() as u64).min(LARGEST_RANGE));
            self.piece = self.object.fetch(self.position, wanted)?;
            self.piece_start = self.position;
            if self.piece.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let start = usize::try_from(self.position - self.piece_start).unwrap_or(usize::MAX);
        let rest = self.piece.get(start..).unwrap_or_default();
        let n = rest.len().min(into.len());
        into[..n].copy_from_slice(&rest[..n]);
        self.position += n as u64;
        Ok(n)
    }
}

impl Seek for RemoteFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.position = position_after(to, self.position, || Ok(self.object.len))?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests;
