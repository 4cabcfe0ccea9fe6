//! Trivial clusters: pages that are similar.

use std::str::FromStr;

use onionskin_core::{DocId, spelled};
use onionskin_similar::components::Components;
use onionskin_similar::{Resources, SimilarError};
use onionskin_store::{Atlas, TableName};
use serde::{Deserialize, Serialize};

/// What makes a trivial cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Trivial {
    /// The transitive closure of the table `pairs` (Cho et al. 2000, definition 4).
    #[default]
    Transitive,
    /// The table `clusters`, as it is.
    Clusters,
}

spelled!(Trivial, as_str: Transitive => "transitive", Clusters => "clusters");

impl Trivial {
    /// The table that they are made from.
    pub(super) fn table(self) -> TableName {
        match self {
            Trivial::Transitive => TableName::Pairs,
            Trivial::Clusters => TableName::Clusters,
        }
    }
}

impl FromStr for Trivial {
    type Err = String;

    fn from_str(name: &str) -> Result<Trivial, String> {
        Trivial::find(name)
            .ok_or_else(|| format!("unknown kind of trivial cluster {name:?}; known are {}", Trivial::KNOWN))
    }
}

/// Hands out every document that has copies with the smallest document of its cluster, in order.
pub(crate) fn find(
    atlas: &Atlas,
    trivial: Trivial,
    documents: u64,
    resources: &Resources,
    mut emit: impl FnMut(DocId, DocId) -> Result<(), SimilarError>,
) -> Result<(), SimilarError> {
    let mut components = Components::new(documents, resources)?;
    let within = |doc: DocId| {
        if u64::from(doc) < documents {
            return Ok(doc);
        }
        let table = trivial.table();
        Err(SimilarError::Parameters(format!("{table}: document {doc}, but the atlas has {documents}")))
    };
    match trivial {
        Trivial::Transitive => {
            for pair in atlas.pairs()? {
                let pair = pair?;
                components.unite(within(pair.a)?, within(pair.b)?)?;
            }
        }
        Trivial::Clusters => {
            let mut first = None;
            for row in atlas.clusters()? {
                let row = row?;
                let first = match first {
                    Some((cluster, first)) if cluster == row.cluster => first,
                    _ => first.insert((row.cluster, row.doc)).1,
                };
                components.unite(within(first)?, within(row.doc)?)?;
            }
        }
    }
    components.finish(&mut emit)?;
    Ok(())
}
