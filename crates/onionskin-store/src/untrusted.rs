//! Every parser of this crate as a function of bytes.
//!
//! Each of these reads all of its input as far as it goes, and must answer every sequence of bytes
//! with a value or an error: no panic, no endless loop, no memory in proportion to what the bytes
//! claim. They exist for fuzzing and for the tests.

use std::path::Path;

use bytes::Bytes;

use crate::atlas::{Atlas, AtlasError};
use crate::manifest::{Manifest, ManifestError};
use crate::raw::{RawError, RawReader, Record};
use crate::schema::{Table, TableName};
pub use crate::staging::parse_journal_bytes as journal;
use crate::table::{
    ChunksReader, ClusterStatsReader, ClustersReader, CollectionGroupsReader, CollectionPagesReader,
    CollectionsReader, DocumentsReader, FeaturesReader, IdPairsReader, Input, PairsReader, SitesReader,
    SketchesReader, TableError, UrlRulesReader,
};

/// Parses a manifest.
pub fn manifest(bytes: &[u8]) -> Result<Manifest, ManifestError> {
    Manifest::parse(bytes)
}

/// Reads a file of records and counts them.
pub fn raw<R: Record>(bytes: &[u8]) -> Result<u64, RawError> {
    let mut reader = RawReader::<R, _>::new(bytes, Path::new("bytes.raw"))?;
    let (mut scratch, mut block, mut records) = (Vec::new(), Vec::new(), 0);
    while reader.next_block(&mut scratch, &mut block)? {
        records += block.len() as u64;
    }
    Ok(records)
}

/// Reads a Parquet file as a table through its typed reader, where it has one, and counts the rows
/// (documents, for chunks).
pub fn table(table: &Table, bytes: &[u8]) -> Result<u64, TableError> {
    let input = Input::Bytes("bytes.parquet".to_owned(), Bytes::copy_from_slice(bytes));
    read_table(table, vec![input])
}

/// Reads a table of an atlas in the same way.
pub fn atlas_table(atlas: &Atlas, name: &TableName) -> Result<u64, AtlasError> {
    let inputs = atlas.inputs(name)?;
    Ok(name.table().map_or(Ok(0), |table| read_table(&table, inputs))?)
}

fn read_table(table: &Table, input: Vec<Input>) -> Result<u64, TableError> {
    let mut rows = 0;
    match table {
        Table::Documents => {
            let mut reader = DocumentsReader::new(input);
            while let Some(batch) = reader.next_batch()? {
                rows += batch.rows().count() as u64;
            }
        }
        Table::Sites => {
            let mut reader = SitesReader::new(input);
            while let Some(batch) = reader.next_batch()? {
                rows += batch.rows().count() as u64;
            }
        }
        Table::Links | Table::Copies(_) => rows += count(IdPairsReader::new(table.clone(), input))?,
        Table::Chunks(chunking) => {
            let mut reader = ChunksReader::new(chunking.clone(), input);
            while reader.next_group()?.is_some() {
                rows += 1;
            }
        }
        Table::Sketches { .. } => {
            let mut reader = SketchesReader::new(input);
            while reader.next_row()?.is_some() {
                rows += 1;
            }
        }
        Table::Features { .. } => {
            let mut reader = FeaturesReader::new(input);
            while reader.next_row()?.is_some() {
                rows += 1;
            }
        }
        Table::Pairs => rows += count(PairsReader::new(input))?,
        Table::Clusters => rows += count(ClustersReader::new(input))?,
        Table::ClusterStats => rows += count(ClusterStatsReader::new(input))?,
        Table::Collections => rows += count(CollectionsReader::new(input))?,
        Table::CollectionPages => rows += count(CollectionPagesReader::new(input))?,
        Table::CollectionGroups => rows += count(CollectionGroupsReader::new(input))?,
        Table::UrlRules => rows += count(UrlRulesReader::new(input))?,
    }
    Ok(rows)
}

/// Rows until the end or the first error.
fn count<T>(rows: impl Iterator<Item = Result<T, TableError>>) -> Result<u64, TableError> {
    let mut n = 0;
    for row in rows {
        row?;
        n += 1;
    }
    Ok(n)
}

#[cfg(test)]
mod tests;
