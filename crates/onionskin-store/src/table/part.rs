//! One Parquet file, from its properties to its checksum.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;

use super::{PartMeta, TableError};
use crate::disk::IoError;
use crate::manifest::FORMAT_VERSION;
use crate::schema::{Column, Layout, Table};
use crate::storage::{Sink, Storage};

/// Key of the format version in the metadata of every file.
pub const FORMAT_VERSION_KEY: &str = "onionskin.format_version";
/// Key of the table's name in the metadata of every file.
pub const TABLE_KEY: &str = "onionskin.table";
/// Key of the recipe in the metadata of every file.
pub const RECIPE_KEY: &str = "onionskin.recipe";

/// The writer named in every file. Ours and fixed: an update of a library must not change the bytes
/// of an atlas. It has the form that Parquet readers parse, else some of them distrust the
/// statistics.
const CREATED_BY: &str = "onionskin version 1.0.0 (build 1)";
/// Enough for any string column to be pruned by; whole URLs would only swell the footer.
const STATISTICS_BYTES: usize = 32;
/// Rows in a page of narrow columns: half a megabyte of fingerprints.
const PAGE_ROWS: usize = 64 << 10;

/// What a part is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartParams {
    /// The table.
    pub table: Table,
    /// The recipe that made its numbers, kept in the file's metadata.
    pub recipe: String,
}

/// Writes one Parquet file of a table.
///
/// Dropping it unfinished leaves a file without a footer, which no reader takes for a table.
pub struct PartWriter {
    writer: ArrowWriter<Sink>,
    table: Table,
    path: PathBuf,
    schema: SchemaRef,
    rows: u64,
}

impl PartWriter {
    /// Creates the file.
    pub fn create(storage: &dyn Storage, path: &Path, params: &PartParams) -> Result<PartWriter, TableError> {
        let table = params.table.clone();
        let action = format!("writing table {table}");
        let sink = Sink::create(storage, path, &action).map_err(|e| IoError::from_io(e, action, path))?;
        let schema = table.schema();
        let options = ArrowWriterOptions::new().with_properties(properties(params));
        let writer = ArrowWriter::try_new_with_options(sink, Arc::clone(&schema), options)
            .map_err(|e| encode_error(e, &table, path))?;
        Ok(PartWriter { writer, table, path: path.to_owned(), schema, rows: 0 })
    }

    /// The columns that batches must have, in order.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Rows written so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Bytes held in memory for the row group that is being gathered.
    pub fn memory_bytes(&self) -> usize {
        self.writer.memory_size()
    }

    /// Appends rows. For the same bytes, the same rows must come in batches of the same sizes.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), TableError> {
        self.writer.write(batch).map_err(|e| encode_error(e, &self.table, &self.path))?;
        self.rows += batch.num_rows() as u64;
        Ok(())
    }

    /// Writes out the rows that are in memory, as a row group of their own.
    pub fn end_row_group(&mut self) -> Result<(), TableError> {
        self.writer.flush().map_err(|e| encode_error(e, &self.table, &self.path))
    }

    /// Writes the footer; with `sync`, returns when the file is on the disk.
    pub fn finish(mut self, sync: bool) -> Result<PartMeta, TableError> {
        let failed = |e, writer: &PartWriter| encode_error(e, &writer.table, &writer.path);
        self.writer.finish().map_err(|e| failed(e, &self))?;
        self.writer.sync().map_err(|e| failed(e.into(), &self))?;
        let sink = self.writer.inner_mut();
        if sync {
            sink.sync().map_err(|e| IoError::from_io(e, "syncing", &self.path))?;
        }
        Ok(PartMeta { rows: self.rows, bytes: sink.bytes(), xxh3: sink.xxh3(), file: self.path })
    }
}

impl std::fmt::Debug for PartWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PartWriter")
            .field("path", &self.path)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

/// An encoder's error; one that came from the disk is taken out of its wrappings.
fn encode_error(error: ParquetError, table: &Table, path: &Path) -> TableError {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(io) => IoError::from_io(*io, format!("writing table {table}"), path).into(),
            Err(other) => TableError::Encode { table: table.to_string(), reason: other.to_string() },
        },
        other => TableError::Encode { table: table.to_string(), reason: other.to_string() },
    }
}

fn properties(params: &PartParams) -> WriterProperties {
    let table = &params.table;
    let zstd = Compression::ZSTD(ZstdLevel::try_new(3).unwrap_or_default());
    let columns = table.columns();
    let sorting = table
        .sorted_by()
        .iter()
        .filter_map(|name| columns.iter().position(|column| column.field.name() == name))
        .map(|index| SortingColumn { column_idx: index as i32, descending: false, nulls_first: false })
        .collect::<Vec<_>>();
    let entry = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let mut properties = WriterProperties::builder()
        .set_created_by(CREATED_BY.to_owned())
        // The first version of the page format is the one that every reader can read.
        .set_writer_version(WriterVersion::PARQUET_1_0)
        .set_compression(zstd)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::Page)
        .set_statistics_truncate_length(Some(STATISTICS_BYTES))
        .set_column_index_truncate_length(Some(STATISTICS_BYTES))
        .set_max_row_group_row_count(Some(table.row_group_rows()))
        .set_max_row_group_bytes(None)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_sorting_columns((!sorting.is_empty()).then_some(sorting))
        .set_key_value_metadata(Some(vec![
            entry(FORMAT_VERSION_KEY, FORMAT_VERSION.to_string()),
            entry(TABLE_KEY, table.to_string()),
            entry(RECIPE_KEY, params.recipe.clone()),
        ]));
    for Column { field, layout, .. } in &columns {
        let path = match field.data_type() {
            DataType::FixedSizeList(..) => {
                ColumnPath::new(vec![field.name().clone(), "list".to_owned(), "element".to_owned()])
            }
            _ => ColumnPath::new(vec![field.name().clone()]),
        };
        properties = match layout {
            Layout::Random => properties
                .set_column_encoding(path.clone(), Encoding::PLAIN)
                .set_column_compression(path.clone(), Compression::UNCOMPRESSED)
                .set_column_statistics_enabled(path, EnabledStatistics::None),
            Layout::Delta => properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED),
            Layout::Prefixed => properties.set_column_encoding(path, Encoding::DELTA_BYTE_ARRAY),
            Layout::Repeating => properties.set_column_dictionary_enabled(path, true),
            Layout::Plain => properties,
        };
    }
    properties.build()
}
