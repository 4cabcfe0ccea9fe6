//! Writers of the narrow tables that a scan fills: ids, fingerprints and lists of numbers.
//!
//! Rows are gathered in plain columns and handed on in batches of a fixed number of rows, so that
//! the bytes of a file depend on its rows alone. Order is checked here, since the files claim it.

use std::sync::Arc;

use arrow_array::{ArrayRef, FixedSizeListArray, Int32Array, Int64Array, RecordBatch};
use arrow_schema::DataType;
use onionskin_core::DocId;

use super::{PartMeta, PartWriter, TableError};
use crate::schema::{Table, list_element};

/// Rows in a batch of narrow rows.
const NARROW_BATCH: usize = 64 << 10;
/// Elements in a batch of lists.
const LIST_BATCH_ELEMENTS: usize = 32 << 10;

pub(super) fn out_of_order(part: &PartWriter, row: u64) -> TableError {
    TableError::OutOfOrder { table: part.table().to_string(), row }
}

pub(super) fn write_columns(part: &mut PartWriter, columns: Vec<ArrayRef>) -> Result<(), TableError> {
    let batch = RecordBatch::try_new(Arc::clone(part.schema()), columns)
        .map_err(|e| TableError::Encode { table: part.table().to_string(), reason: e.to_string() })?;
    part.write(&batch)
}

/// Numbers that fit an Arrow column; sizes and offsets above 2^63 do not exist.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Writes a table of two ids a row, `links` or `copies`, in ascending order.
#[derive(Debug)]
pub struct IdPairsWriter {
    part: PartWriter,
    last: Option<(DocId, DocId)>,
    first: Vec<i64>,
    second: Vec<i64>,
}

impl IdPairsWriter {
    /// Writes to a part of the table.
    pub fn new(part: PartWriter) -> IdPairsWriter {
        debug_assert!(matches!(part.table(), Table::Links | Table::Copies(_)));
        IdPairsWriter { part, last: None, first: Vec::new(), second: Vec::new() }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.part.rows() + self.first.len() as u64
    }

    /// Appends a row; not smaller than the one before.
    pub fn push(&mut self, first: DocId, second: DocId) -> Result<(), TableError> {
        if self.last.is_some_and(|last| last > (first, second)) {
            return Err(out_of_order(&self.part, self.rows()));
        }
        self.last = Some((first, second));
        self.first.push(i64::from(first));
        self.second.push(i64::from(second));
        if self.first.len() >= NARROW_BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let first = std::mem::replace(&mut self.first, Vec::with_capacity(NARROW_BATCH));
        let second = std::mem::replace(&mut self.second, Vec::with_capacity(NARROW_BATCH));
        write_columns(
            &mut self.part,
            vec![Arc::new(Int64Array::from(first)), Arc::new(Int64Array::from(second))],
        )
    }

    /// Writes the footer; with `sync`, returns when the file is on the disk.
    pub fn finish(mut self, sync: bool) -> Result<PartMeta, TableError> {
        if !self.first.is_empty() {
            self.flush()?;
        }
        self.part.finish(sync)
    }
}

/// Writes a `chunks` table, in ascending order of `doc`.
#[derive(Debug)]
pub struct ChunksWriter {
    part: PartWriter,
    last_doc: DocId,
    fp: Vec<i64>,
    doc: Vec<i64>,
}

impl ChunksWriter {
    /// Writes to a part of a table `chunks`.
    pub fn new(part: PartWriter) -> ChunksWriter {
        debug_assert!(matches!(part.table(), Table::Chunks(_)));
        ChunksWriter {
            part,
            last_doc: DocId::MIN,
            fp: Vec::with_capacity(NARROW_BATCH),
            doc: Vec::with_capacity(NARROW_BATCH),
        }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.part.rows() + self.fp.len() as u64
    }

    /// Appends the chunks of a document; `doc` must not be smaller than the one before.
    #[inline]
    pub fn push(&mut self, doc: DocId, fps: &[u64]) -> Result<(), TableError> {
        if doc < self.last_doc {
            return Err(out_of_order(&self.part, self.rows()));
        }
        self.last_doc = doc;
        let mut rest = fps;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(NARROW_BATCH - self.fp.len()));
            self.fp.extend(now.iter().map(|fp| *fp as i64));
            self.doc.resize(self.fp.len(), i64::from(doc));
            if self.fp.len() == NARROW_BATCH {
                self.flush()?;
            }
            rest = later;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let fp = std::mem::replace(&mut self.fp, Vec::with_capacity(NARROW_BATCH));
        let doc = std::mem::replace(&mut self.doc, Vec::with_capacity(NARROW_BATCH));
        write_columns(&mut self.part, vec![Arc::new(Int64Array::from(fp)), Arc::new(Int64Array::from(doc))])
    }

    /// Writes the footer; with `sync`, returns when the file is on the disk.
    pub fn finish(mut self, sync: bool) -> Result<PartMeta, TableError> {
        if !self.fp.is_empty() {
            self.flush()?;
        }
        self.part.finish(sync)
    }
}

macro_rules! list_writer {
    ($(#[$doc:meta])* $name:ident, $variant:ident, $unsigned:ty, $signed:ty, $array:ty, $element:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            part: PartWriter,
            len: usize,
            last_doc: Option<DocId>,
            doc: Vec<i64>,
            values: Vec<$signed>,
        }

        impl $name {
            /// Writes to a part of the table.
            pub fn new(part: PartWriter) -> $name {
                let len = match part.table() {
                    Table::$variant { len } => *len as usize,
                    _ => 0,
                };
                debug_assert!(len > 0);
                let rows = $name::batch_rows(len);
                $name {
                    part,
                    len,
                    last_doc: None,
                    doc: Vec::with_capacity(rows),
                    values: Vec::with_capacity(rows * len),
                }
            }

            /// Rows of a batch.
            fn batch_rows(len: usize) -> usize {
                LIST_BATCH_ELEMENTS.div_ceil(len.max(1))
            }

            /// Rows so far.
            pub fn rows(&self) -> u64 {
                self.part.rows() + self.doc.len() as u64
            }

            /// Length of every list.
            pub fn list_len(&self) -> usize {
                self.len
            }

            /// Appends the list of a document; `doc` must be larger than the one before.
            pub fn push(&mut self, doc: DocId, list: &[$unsigned]) -> Result<(), TableError> {
                if list.len() != self.len {
                    let table = self.part.table().to_string();
                    return Err(TableError::ListLength { table, found: list.len(), wanted: self.len });
                }
                if self.last_doc.is_some_and(|last| last >= doc) {
                    return Err(out_of_order(&self.part, self.rows()));
                }
                self.last_doc = Some(doc);
                self.doc.push(i64::from(doc));
                self.values.extend(list.iter().map(|value| *value as $signed));
                if self.values.len() >= LIST_BATCH_ELEMENTS { self.flush() } else { Ok(()) }
            }

            fn flush(&mut self) -> Result<(), TableError> {
                let rows = $name::batch_rows(self.len);
                let doc = std::mem::replace(&mut self.doc, Vec::with_capacity(rows));
                let values = std::mem::replace(&mut self.values, Vec::with_capacity(rows * self.len));
                let (doc, values) = (Int64Array::from(doc), <$array>::from(values));
                let lists = FixedSizeListArray::try_new(list_element($element), self.len as i32, Arc::new(values), None)
                    .map_err(|e| TableError::Encode { table: self.part.table().to_string(), reason: e.to_string() })?;
                write_columns(&mut self.part, vec![Arc::new(doc), Arc::new(lists)])
            }

            /// Writes the footer; with `sync`, returns when the file is on the disk.
            pub fn finish(mut self, sync: bool) -> Result<PartMeta, TableError> {
                if !self.doc.is_empty() {
                    self.flush()?;
                }
                self.part.finish(sync)
            }
        }
    };
}

list_writer!(
    /// Writes `sketches`, in ascending order of `doc`.
    SketchesWriter, Sketches, u32, i32, Int32Array, DataType::Int32
);
list_writer!(
    /// Writes `features`, in ascending order of `doc`.
    FeaturesWriter, Features, u64, i64, Int64Array, DataType::Int64
);
