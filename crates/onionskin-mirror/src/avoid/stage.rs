//! What the next crawl can skip, and what a list of it is worth: made from the collections of an
//! atlas, replayed on a crawl, held against a new one.

pub mod alternate;
mod audit;
mod build;
mod fields;

use std::path::PathBuf;

use crate::avoid::{AvoidFileError, AvoidList, SimulatedPage, Simulation, simulate};
use onionskin_core::{ClusterId, DocId, Packed};
use onionskin_similar::SimilarError;
use onionskin_store::table::document::{Bytes, Doc, Url};
use onionskin_store::{Atlas, AtlasError, StageName, TableError, TableName};

pub use alternate::{Alternate, Why, alternates};
pub use audit::{AuditedEntry, audit};
pub use build::{AvoidParams, AvoidReport, Savings, avoid};

/// Why there is no list, or no answer about one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AvoidError {
    /// The atlas cannot be used.
    #[error(transparent)]
    Atlas(#[from] Box<AtlasError>),
    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] Box<TableError>),
    /// Similar pages cannot be gathered.
    #[error(transparent)]
    Similar(#[from] Box<SimilarError>),
    /// A stage has not been run.
    #[error("the atlas {} has no table {table}\nhint: run `onionskin {stage}` first", dir.display())]
    Missing {
        /// The atlas.
        dir: PathBuf,
        /// The table.
        table: TableName,
        /// What makes it.
        stage: StageName,
    },
    /// A list cannot be read.
    #[error("{}: {source}", path.display())]
    List {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<AvoidFileError>,
    },
    /// The file system failed.
    #[error("{}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The tables do not fit together.
    #[error("table {table} names document {doc}, but there are only {documents}")]
    Document {
        /// The table.
        table: &'static str,
        /// The document.
        doc: DocId,
        /// Documents of the atlas.
        documents: u64,
    },
    /// Not an address.
    #[error("{url:?} is no http or https address")]
    Url {
        /// What was given.
        url: String,
    },
}

impl From<AtlasError> for AvoidError {
    fn from(error: AtlasError) -> AvoidError {
        Box::new(error).into()
    }
}

impl From<SimilarError> for AvoidError {
    fn from(error: SimilarError) -> AvoidError {
        Box::new(error).into()
    }
}

impl From<TableError> for AvoidError {
    fn from(error: TableError) -> AvoidError {
        Box::new(error).into()
    }
}

fn documents(atlas: &Atlas) -> u64 {
    atlas.rows(&TableName::Documents)
}

/// Opens an atlas that has a table.
fn open(dir: &std::path::Path, table: TableName, stage: StageName) -> Result<Atlas, AvoidError> {
    let atlas = Atlas::open(dir)?;
    if atlas.has(&table) { Ok(atlas) } else { Err(AvoidError::Missing { dir: dir.to_owned(), table, stage }) }
}

/// Reads a list from a file.
pub fn read_list(path: &std::path::Path) -> Result<AvoidList, AvoidError> {
    let text =
        std::fs::read_to_string(path).map_err(|source| AvoidError::Io { path: path.to_owned(), source })?;
    AvoidList::from_json(&text)
        .map_err(|source| AvoidError::List { path: path.to_owned(), source: Box::new(source) })
}

/// The cluster of every document, and whether it has the text of the centre.
struct Clusters {
    cluster: Vec<Packed<ClusterId>>,
    is_exact: Vec<bool>,
    is_centre: Vec<bool>,
}

impl Clusters {
    fn read(atlas: &Atlas) -> Result<Clusters, AvoidError> {
        let documents = documents(atlas);
        let n = usize::try_from(documents).unwrap_or(usize::MAX);
        let mut clusters =
            Clusters { cluster: vec![Packed::NONE; n], is_exact: vec![false; n], is_centre: vec![false; n] };
        for row in atlas.clusters()? {
            let row = row?;
            let at = row.doc.index();
            if at >= n {
                return Err(AvoidError::Document { table: "clusters", doc: row.doc, documents });
            }
            clusters.cluster[at] = row.cluster.into();
            clusters.is_exact[at] = row.is_centre || row.kind == onionskin_store::table::CopyKind::Exact;
            clusters.is_centre[at] = row.is_centre;
        }
        Ok(clusters)
    }

    fn of(&self, doc: DocId) -> Option<ClusterId> {
        self.cluster.get(doc.index())?.get()
    }
}

/// Replays the crawl of an atlas against a list.
pub fn simulate_crawl(list: &AvoidList, atlas_dir: &std::path::Path) -> Result<Simulation, AvoidError> {
    let atlas = open(atlas_dir, TableName::Clusters, StageName::Similar)?;
    replay(list, &atlas, &Clusters::read(&atlas)?)
}

fn replay(list: &AvoidList, atlas: &Atlas, clusters: &Clusters) -> Result<Simulation, AvoidError> {
    let pages = atlas.documents()?.select::<(Doc, Url, Bytes)>().flat_map(|batch| {
        let rows: Vec<Result<SimulatedPage<String>, AvoidError>> = match batch {
            Err(error) => vec![Err(error.into())],
            Ok(batch) => batch
                .rows()
                .map(|(doc, url, bytes)| {
                    Ok(SimulatedPage {
                        url: url.unwrap_or_default().to_owned(),
                        cluster: clusters.of(doc),
                        is_exact_copy: clusters.is_exact.get(doc.index()).copied().unwrap_or_default(),
                        bytes,
                    })
                })
                .collect(),
        };
        rows
    });
    simulate(list, pages)
}

#[cfg(test)]
mod tests;
