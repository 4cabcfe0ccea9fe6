//! The links of a web by the document they leave, and what follows from them: [the bow
//! tie](bow_tie) and [crawls](crawl).
//!
//! The naive way is a vector of neighbours for every document. Here all targets are in one row, and
//! every document has a place in it: eight bytes per document and four per link.
//!
//! ```text
//! offsets   0   2   2   3          document 0 links to 1 and 2, document 1 to nothing, document 2 to 0
//! targets   1 2 | | 0
//! ```
//!
//! Where that does not fit, the targets are a file that is read by place, some at a time. Answers
//! are the same; walks that jump about cost one read of a file for each document that they come to.

mod bow_tie;
mod crawl;

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use onionskin_core::DocId;
use onionskin_store::{IoError, TableError};

pub use bow_tie::{BowTie, Part, bow_tie};
pub use crawl::{Crawl, crawl};

/// Targets that are read at once when a walk goes on where it was: 64 KiB.
const AHEAD: u64 = 16 << 10;
/// Targets that are read at once when it jumped: a page of memory, since most of more would be
/// thrown away.
const JUMP: u64 = 1 << 10;
/// Targets that are written at once.
const WRITE_BYTES: usize = 256 << 10;

/// Tells the files of several graphs of one process apart that share a folder.
static NEXT_GRAPH: AtomicU64 = AtomicU64::new(0);

/// What went wrong with a graph.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A link that should have come earlier.
    #[error("the link from {src} to {dest} comes after a larger one; links have to be sorted")]
    OutOfOrder {
        /// Where the link is.
        src: DocId,
        /// Where it goes.
        dest: DocId,
    },
    /// A document that is not there.
    #[error("there is no document {doc}; there are {nodes}")]
    NoSuchDocument {
        /// The document.
        doc: DocId,
        /// How many there are.
        nodes: u32,
    },
    /// The file of targets is not what was written.
    #[error("{}: the file was changed while it was in use", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// The system would not give the memory.
    #[error("the system refused {bytes} bytes of memory for links")]
    Memory {
        /// What was asked for.
        bytes: u64,
    },
    /// The links cannot be read.
    #[error(transparent)]
    Table(#[from] TableError),
    /// The file of targets cannot be written or read.
    #[error(transparent)]
    Io(#[from] IoError),
}

impl From<Infallible> for GraphError {
    fn from(never: Infallible) -> GraphError {
        match never {}
    }
}

/// The links of a web by source.
///
/// ```
/// use std::convert::Infallible;
/// use onionskin_core::DocId;
/// use onionskin_study::graph::LinkGraph;
/// # let dir = tempfile::tempdir()?;
/// let links = [(0, 1), (0, 2), (2, 0)].map(|(src, dest)| (DocId(src), DocId(dest)));
/// let mut graph = LinkGraph::build(3, links.into_iter().map(Ok::<_, Infallible>), 1 << 20, dir.path())?;
/// assert_eq!(graph.targets(DocId(0))?, [DocId(1), DocId(2)]);
/// assert!(graph.targets(DocId(1))?.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LinkGraph {
    /// Where the targets of each document begin; one more at the end.
    offsets: Vec<u64>,
    targets: Targets,
}

#[derive(Debug)]
enum Targets {
    Memory(Vec<DocId>),
    File(TargetFile),
}

impl LinkGraph {
    /// Takes the links between documents below `nodes`, which come sorted by source and target; a
    /// link that comes twice counts once.
    ///
    /// Targets stay in memory while they and the eight bytes per document that are always there fit
    /// `limit_bytes`; else they are a file in `work_dir`, which is made when needed. The file goes
    /// when the graph does.
    pub fn build<E: Into<GraphError>>(
        nodes: u32,
        links: impl IntoIterator<Item = Result<(DocId, DocId), E>>,
        limit_bytes: u64,
        work_dir: &Path,
    ) -> Result<LinkGraph, GraphError> {
        let n = nodes as usize;
        let mut offsets: Vec<u64> = Vec::new();
        let refused = GraphError::Memory { bytes: 8 * (u64::from(nodes) + 1) };
        offsets.try_reserve_exact(n + 1).map_err(|_| refused)?;
        let room = limit_bytes.saturating_sub(8 * (u64::from(nodes) + 1)) / 4;
        let mut sink = Sink::Memory { targets: Vec::new(), room };
        let mut last = None;
        let mut count = 0u64;
        for link in links {
            let (src, dest) = link.map_err(Into::into)?;
            if src.max(dest).get() >= nodes {
                return Err(GraphError::NoSuchDocument { doc: src.max(dest), nodes });
            }
            if last == Some((src, dest)) {
                continue;
            }
            if last > Some((src, dest)) {
                return Err(GraphError::OutOfOrder { src, dest });
            }
            last = Some((src, dest));
            while offsets.len() <= src.index() {
                offsets.push(count);
            }
            sink.push(dest, work_dir)?;
            count += 1;
        }
        offsets.resize(n + 1, count);
        Ok(LinkGraph { offsets, targets: sink.finish(nodes)? })
    }

    /// How many documents there are.
    pub fn nodes(&self) -> u32 {
        // As many as `build` was told.
        (self.offsets.len() - 1) as u32
    }

    /// How many links there are.
    pub fn links(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// How many links leave a document.
    pub fn degree(&self, node: DocId) -> Result<u32, GraphError> {
        let range = self.range(node)?;
        // No target comes twice, so that there are no more than documents.
        Ok((range.end - range.start) as u32)
    }

    /// Bytes it holds in memory.
    pub fn bytes(&self) -> u64 {
        let targets = match &self.targets {
            Targets::Memory(targets) => 4 * targets.capacity(),
            Targets::File(file) => file.raw.capacity() + 4 * file.window.capacity(),
        };
        (8 * self.offsets.capacity() + targets) as u64
    }

    /// Whether the targets are in a file.
    pub fn is_on_disk(&self) -> bool {
        matches!(self.targets, Targets::File(_))
    }

    /// Where a document links to, ascending. From a file, all of them are in memory at once.
    pub fn targets(&mut self, node: DocId) -> Result<&[DocId], GraphError> {
        let range = self.range(node)?;
        match &mut self.targets {
            Targets::Memory(targets) => Ok(&targets[range.start as usize..range.end as usize]),
            Targets::File(file) => file.read(range),
        }
    }

    /// Some of the targets from the `skip`th on; none when there are no more. A walk that comes
    /// back to a document many times does not read all of its links every time.
    fn some_targets(&mut self, node: DocId, skip: u32) -> Result<&[DocId], GraphError> {
        let range = self.range(node)?;
        let start = (range.start + u64::from(skip)).min(range.end);
        match &mut self.targets {
            Targets::Memory(targets) => Ok(&targets[start as usize..range.end as usize]),
            Targets::File(file) => file.read(start..range.end.min(start + JUMP)),
        }
    }

    fn range(&self, node: DocId) -> Result<Range<u64>, GraphError> {
        let nodes = self.nodes();
        match self.offsets.get(node.index()..node.index() + 2) {
            Some(&[start, end]) => Ok(start..end),
            _ => Err(GraphError::NoSuchDocument { doc: node, nodes }),
        }
    }
}

/// Where targets go while a graph is built.
enum Sink {
    Memory { targets: Vec<DocId>, room: u64 },
    File(BufWriter<File>, Removed),
}

impl Sink {
    fn push(&mut self, target: DocId, work_dir: &Path) -> Result<(), GraphError> {
        if let Sink::Memory { targets, room } = self {
            if (targets.len() as u64) < *room {
                if targets.len() == targets.capacity() {
                    // Never more than there is room for, which doubling would be.
                    let more = (targets.len() as u64).max(1 << 10).min(*room - targets.len() as u64);
                    let refused = GraphError::Memory { bytes: 4 * (targets.len() as u64 + more) };
                    targets.try_reserve_exact(more as usize).map_err(|_| refused)?;
                }
                targets.push(target);
                return Ok(());
            }
            let targets = std::mem::take(targets);
            fs::create_dir_all(work_dir).map_err(|e| IoError::new("making", work_dir, e))?;
            let number = NEXT_GRAPH.fetch_add(1, Ordering::Relaxed);
            let path = work_dir.join(format!("links-{}-{number}.targets", std::process::id()));
            let file = File::options().read(true).write(true).create(true).truncate(true).open(&path);
            let file = file.map_err(|e| IoError::new("making", &path, e))?;
            *self = Sink::File(BufWriter::with_capacity(WRITE_BYTES, file), Removed(path));
            targets.into_iter().try_for_each(|target| self.push(target, work_dir))?;
        }
        if let Sink::File(writer, file) = self {
            let written = writer.write_all(&target.get().to_le_bytes());
            written.map_err(|e| IoError::while_writing("writing links to", &file.0, 4, 0, e))?;
        }
        Ok(())
    }

    fn finish(self, nodes: u32) -> Result<Targets, GraphError> {
        match self {
            Sink::Memory { mut targets, .. } => {
                targets.shrink_to_fit();
                Ok(Targets::Memory(targets))
            }
            Sink::File(writer, path) => {
                let file = writer
                    .into_inner()
                    .map_err(|e| IoError::while_writing("writing links to", &path.0, 4, 0, e.into_error()))?;
                let len = file.metadata().map_err(|e| IoError::new("reading", &path.0, e))?.len() / 4;
                let (raw, window) = (Vec::new(), Vec::new());
                Ok(Targets::File(TargetFile { file, path, nodes, len, start: 0, raw, window }))
            }
        }
    }
}

/// A file that goes when it is no longer used.
#[derive(Debug)]
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        // What stays behind is in a work folder that is cleared.
        let _ = fs::remove_file(&self.0);
    }
}

/// Targets in a file: four bytes each, little-endian.
#[derive(Debug)]
struct TargetFile {
    file: File,
    path: Removed,
    nodes: u32,
    /// Targets in the file.
    len: u64,
    /// Where the window begins.
    start: u64,
    raw: Vec<u8>,
    window: Vec<DocId>,
}

impl TargetFile {
    fn read(&mut self, range: Range<u64>) -> Result<&[DocId], GraphError> {
        if range.is_empty() {
            return Ok(&[]);
        }
        let end = self.start + self.window.len() as u64;
        if range.start < self.start || range.end > end {
            let goes_on = (self.start..=end).contains(&range.start);
            let ahead = if goes_on { AHEAD } else { JUMP };
            let until = range.end.max(range.start + ahead).min(self.len);
            self.fill(range.start..until)?;
        }
        let at = (range.start - self.start) as usize;
        Ok(&self.window[at..at + (range.end - range.start) as usize])
    }

    fn fill(&mut self, range: Range<u64>) -> Result<(), GraphError> {
        // Should the reading fail, the window is empty and claims nothing.
        self.window.clear();
        self.start = range.start;
        self.raw.resize(4 * (range.end - range.start) as usize, 0);
        let read = self.file.read_exact_at(&mut self.raw, 4 * range.start);
        read.map_err(|e| IoError::new("reading links from", &self.path.0, e))?;
        let targets =
            self.raw.chunks_exact(4).map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        self.window.extend(targets.map(DocId));
        if self.window.iter().any(|target| target.get() >= self.nodes) {
            self.window.clear();
            return Err(GraphError::Changed { path: self.path.0.clone() });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
