//! Copies of Parquet files: the same columns, the same order, the same row groups, the same
//! compression; without the rows of removed documents, or with four columns more.

use std::fs::File;
use std::io::BufWriter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReaderBuilder,
};
use ::parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use ::parquet::file::properties::WriterProperties;
use arrow_array::builder::{Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use arrow_select::filter::filter_record_batch;

use super::DedupError;
use super::decide::{Verdict, Verdicts};
use super::jsonl::Annotation;
use super::names::Names;
use super::output::finish_file;
use super::plan::Job;
use super::shards::{Context, CopyReport};

/// What a batch of rows should about come to.
const BATCH_BYTES: u64 = 4 << 20;

/// A row group is held until it is written; one that grows beyond this is ended early. A constant,
/// since it is seen in the file.
const MAX_GROUP_BYTES: usize = 256 << 20;

/// The schema as Arrow sees it; the writer adds its own.
const ARROW_SCHEMA: &str = "ARROW:schema";
/// What the datasets library keeps: a list of columns, which is not true any more when some are
/// added.
const HUGGING_FACE: &str = "huggingface";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Filter,
    Annotate,
}

pub(super) fn copy(context: &Context<'_>, job: &Job, mode: Mode) -> Result<CopyReport, DedupError> {
    let broken = |reason: &dyn ToString| job.broken(reason.to_string());
    let input = File::open(&job.path).map_err(|e| job.io("opening", e))?;
    let metadata = ArrowReaderMetadata::load(&input, ArrowReaderOptions::new()).map_err(|e| broken(&e))?;
    let schema = match mode {
        Mode::Filter => Arc::clone(metadata.schema()),
        Mode::Annotate => annotated_schema(metadata.schema()),
    };
    let properties = properties(metadata.metadata(), mode);
    let path = context.output.place(&job.to)?;
    let output = File::create_new(&path).map_err(|e| job.io("creating the copy of", e))?;
    let output = BufWriter::with_capacity(128 << 10, output);
    let mut writer =
        ArrowWriter::try_new(output, Arc::clone(&schema), Some(properties)).map_err(|e| broken(&e))?;
    let mut rows = Rows { verdicts: context.verdicts(job)?, names: context.names()?, next: 0, job };
    let mut report = CopyReport::default();
    for (nth, group) in metadata.metadata().row_groups().iter().enumerate() {
        let (written, removed) = (uncompressed(writer.flushed_row_groups()), report.removed);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(
            input.try_clone().map_err(|e| job.io("opening", e))?,
            metadata.clone(),
        );
        let reader = reader.with_row_groups(vec![nth]).with_batch_size(batch_rows(group)).build();
        for batch in reader.map_err(|e| broken(&e))? {
            let batch = batch.map_err(|e| broken(&e))?;
            let batch = match mode {
                Mode::Filter => rows.filter(&batch, &mut report)?,
                Mode::Annotate => rows.annotate(&batch, &schema, &mut report)?,
            };
            writer.write(&batch).map_err(|e| broken(&e))?;
            if writer.in_progress_size() > MAX_GROUP_BYTES {
                writer.flush().map_err(|e| broken(&e))?;
            }
        }
        writer.flush().map_err(|e| broken(&e))?;
        if report.removed > removed {
            let written = uncompressed(writer.flushed_row_groups()) - written;
            report.removed_bytes += uncompressed(std::slice::from_ref(group)).saturating_sub(written);
        }
        let stored = u64::try_from(group.compressed_size()).unwrap_or(0);
        context.copied.fetch_add(stored, Ordering::Relaxed);
    }
    if let Some(verdict) = rows.verdicts.peek() {
        return Err(job.moved(verdict.offset));
    }
    report.other_records = rows.next.checked_sub(job.documents).ok_or_else(|| job.moved(0))?;
    let output = writer.into_inner().map_err(|e| broken(&e))?;
    report.bytes = finish_file(output).map_err(|e| job.io("writing the copy of", e))?;
    Ok(report)
}

/// The size of row groups before compression, as the file itself says it.
fn uncompressed(groups: &[RowGroupMetaData]) -> u64 {
    groups.iter().map(|group| u64::try_from(group.total_byte_size()).unwrap_or(0)).sum()
}

fn batch_rows(group: &RowGroupMetaData) -> usize {
    let rows = u64::try_from(group.num_rows()).unwrap_or(0).max(1);
    let row_bytes = (u64::try_from(group.total_byte_size()).unwrap_or(0) / rows).max(1);
    usize::try_from((BATCH_BYTES / row_bytes).clamp(1, 8192)).unwrap_or(1)
}

/// Every column is compressed as it was, and what the file says of itself stays.
fn properties(metadata: &ParquetMetaData, mode: Mode) -> WriterProperties {
    // Row groups end where they did, by `flush`, and never because of the number of their rows.
    let mut builder = WriterProperties::builder().set_max_row_group_row_count(None);
    if let Some(group) = metadata.row_groups().first() {
        for (nth, column) in group.columns().iter().enumerate() {
            if nth == 0 {
                // For the columns that are added.
                builder = builder.set_compression(column.compression());
            }
            builder = builder.set_column_compression(column.column_path().clone(), column.compression());
        }
    }
    let kept = metadata.file_metadata().key_value_metadata().into_iter().flatten();
    let kept = kept.filter(|pair| pair.key != ARROW_SCHEMA);
    let kept = kept.filter(|pair| mode == Mode::Filter || pair.key != HUGGING_FACE);
    let kept: Vec<_> = kept.cloned().collect();
    builder.set_key_value_metadata((!kept.is_empty()).then_some(kept)).build()
}

fn added_fields() -> [Field; 4] {
    [
        Field::new("dup_cluster", DataType::Int64, true),
        Field::new("dup_size", DataType::Int64, true),
        Field::new("dup_of", DataType::Utf8, true),
        Field::new("dup_resemblance", DataType::Float64, true),
    ]
}

/// The columns that stay: all but those that an earlier run has added.
fn own_columns(schema: &Schema) -> Vec<usize> {
    let added = added_fields();
    let is_own = |nth: &usize| !added.iter().any(|field| field.name() == schema.field(*nth).name());
    (0..schema.fields().len()).filter(is_own).collect()
}

fn annotated_schema(schema: &Schema) -> SchemaRef {
    let own = own_columns(schema).into_iter().map(|nth| schema.field(nth).clone());
    let fields: Vec<Field> = own.chain(added_fields()).collect();
    let mut metadata = schema.metadata().clone();
    metadata.remove(HUGGING_FACE);
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// Rows, and what is said of them.
struct Rows<'a> {
    verdicts: Verdicts,
    names: Names,
    next: u64,
    job: &'a Job,
}

impl Rows<'_> {
    fn verdict(&mut self) -> Result<Option<Verdict>, DedupError> {
        let row = self.next;
        self.next += 1;
        let verdict = self.verdicts.take_at(row).map_err(|e| self.job.io("deciding on", e))?;
        match self.verdicts.peek().filter(|next| next.offset <= row) {
            Some(verdict) => Err(self.job.moved(verdict.offset)),
            None => Ok(verdict),
        }
    }

    fn filter(&mut self, batch: &RecordBatch, report: &mut CopyReport) -> Result<RecordBatch, DedupError> {
        let mut keep = Vec::with_capacity(batch.num_rows());
        for _ in 0..batch.num_rows() {
            keep.push(!self.verdict()?.is_some_and(|verdict| verdict.is_removed));
        }
        let removed = keep.iter().filter(|keep| !**keep).count();
        report.removed += removed as u64;
        if removed == 0 {
            return Ok(batch.clone());
        }
        filter_record_batch(batch, &BooleanArray::from(keep)).map_err(|e| self.job.broken(e))
    }

    fn annotate(
        &mut self,
        batch: &RecordBatch,
        schema: &SchemaRef,
        report: &mut CopyReport,
    ) -> Result<RecordBatch, DedupError> {
        let (mut cluster, mut size) = (Int64Builder::new(), Int64Builder::new());
        let (mut of, mut resemblance) = (StringBuilder::new(), Float64Builder::new());
        for _ in 0..batch.num_rows() {
            let annotation = match self.verdict()? {
                Some(verdict) => {
                    report.annotated += 1;
                    let found = Annotation::of(&verdict, &mut self.names);
                    Some(found.map_err(|e| self.job.io("deciding on", e))?)
                }
                None => None,
            };
            let some = annotation.as_ref();
            cluster.append_option(some.map(|a| i64::from(a.dup_cluster)));
            size.append_option(some.map(|a| i64::from(a.dup_size)));
            of.append_option(some.and_then(|a| a.dup_of.as_deref()));
            resemblance.append_option(some.map(|a| a.dup_resemblance));
        }
        let own = own_columns(&batch.schema()).into_iter();
        let mut columns: Vec<ArrayRef> = own.map(|nth| Arc::clone(batch.column(nth))).collect();
        let added: [ArrayRef; 4] = [
            Arc::new(cluster.finish()),
            Arc::new(size.finish()),
            Arc::new(of.finish()),
            Arc::new(resemblance.finish()),
        ];
        columns.extend(added);
        RecordBatch::try_new(Arc::clone(schema), columns).map_err(|e| self.job.broken(e))
    }
}

#[cfg(test)]
mod tests;
