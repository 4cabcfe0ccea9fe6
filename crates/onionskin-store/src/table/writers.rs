//! One writer for each table that a scan fills, with typed rows.
//!
//! Rows are gathered in plain columns and handed on in batches of a fixed number of rows, so that the bytes of a file depend
//! on its rows alone. Order is checked here, since the files claim it.

use std::sync::Arc;

use arrow_array::builder::{
    FixedSizeBinaryBuilder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, FixedSizeListArray, Int32Array, Int64Array, RecordBatch};
use arrow_schema::DataType;

use super::{PartMeta, PartWriter, TableError};
use crate::schema::{Table, list_element};

/// Rows in a batch of narrow rows.
const NARROW_BATCH: usize = 64 << 10;
/// Rows in a batch of rows with strings.
const WIDE_BATCH: usize = 2 << 10;
/// Elements in a batch of lists.
const LIST_BATCH_ELEMENTS: usize = 32 << 10;

/// A document, as a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DocumentRow<'a> {
    /// Number of the document: dense, in the order of the input.
    pub doc: u32,
    /// The id the input gave it.
    pub id: Option<&'a str>,
    /// Its URL.
    pub url: Option<&'a str>,
    /// Its site, a row of `sites`.
    pub site: Option<u32>,
    /// The input it came from.
    pub source: &'a str,
    /// Where in the input.
    pub offset: u64,
    /// The media type of the payload.
    pub media_type: &'a str,
    /// Length of the payload.
    pub bytes: u64,
    /// Number of canonical tokens.
    pub tokens: u64,
    /// Its title.
    pub title: Option<&'a str>,
    /// The URL it names as its canonical one.
    pub canonical_url: Option<&'a str>,
    /// When it was fetched: microseconds since 1970, UTC.
    pub fetched_at: Option<i64>,
    /// SHA-1 of the payload.
    pub payload_sha1: Option<[u8; 20]>,
    /// Fingerprint of the canonical text; `None` when the document is empty.
    pub text_fp: Option<u64>,
}

/// A site, as a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteRow<'a> {
    /// Number of the site.
    pub site: u32,
    /// Its host.
    pub host: &'a str,
    /// The domain under a public suffix that the host belongs to.
    pub registered_domain: Option<&'a str>,
}

fn out_of_order(part: &PartWriter, row: u64) -> TableError {
    TableError::OutOfOrder { table: part.table().to_string(), row }
}

fn write_columns(part: &mut PartWriter, columns: Vec<ArrayRef>) -> Result<(), TableError> {
    let batch = RecordBatch::try_new(Arc::clone(part.schema()), columns)
        .map_err(|e| TableError::Encode { table: part.table().to_string(), reason: e.to_string() })?;
    part.write(&batch)
}

/// Numbers that fit an Arrow column; sizes and offsets above 2^63 do not exist.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// Writes `documents`, in ascending order of `doc`.
#[derive(Debug)]
pub struct DocumentsWriter {
    part: PartWriter,
    last_doc: Option<u32>,
    buffered: usize,
    doc: Int64Builder,
    id: StringBuilder,
    url: StringBuilder,
    site: Int64Builder,
    source: StringBuilder,
    offset: Int64Builder,
    media_type: StringBuilder,
    bytes: Int64Builder,
    tokens: Int64Builder,
    title: StringBuilder,
    canonical_url: StringBuilder,
    fetched_at: TimestampMicrosecondBuilder,
    payload_sha1: FixedSizeBinaryBuilder,
    text_fp: Int64Builder,
}

impl DocumentsWriter {
    /// Writes to a part of the table `documents`.
    pub fn new(part: PartWriter) -> DocumentsWriter {
        debug_assert_eq!(part.table(), &Table::Documents);
        DocumentsWriter {
            part,
            last_doc: None,
            buffered: 0,
            doc: Int64Builder::new(),
            id: StringBuilder::new(),
            url: StringBuilder::new(),
            site: Int64Builder::new(),
            source: StringBuilder::new(),
            offset: Int64Builder::new(),
            media_type: StringBuilder::new(),
            bytes: Int64Builder::new(),
            tokens: Int64Builder::new(),
            title: StringBuilder::new(),
            canonical_url: StringBuilder::new(),
            fetched_at: TimestampMicrosecondBuilder::new().with_timezone("UTC"),
            payload_sha1: FixedSizeBinaryBuilder::new(20),
            text_fp: Int64Builder::new(),
        }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.part.rows() + self.buffered as u64
    }

    /// Appends a document; `doc` must be larger than the one before.
    pub fn push(&mut self, row: &DocumentRow<'_>) -> Result<(), TableError> {
        if self.last_doc.is_some_and(|last| last >= row.doc) {
            return Err(out_of_order(&self.part, self.rows()));
        }
        self.last_doc = Some(row.doc);
        self.doc.append_value(i64::from(row.doc));
        self.id.append_option(row.id);
        self.url.append_option(row.url);
        self.site.append_option(row.site.map(i64::from));
        self.source.append_value(row.source);
        self.offset.append_value(signed(row.offset));
        self.media_type.append_value(row.media_type);
        self.bytes.append_value(signed(row.bytes));
        self.tokens.append_value(signed(row.tokens));
        self.title.append_option(row.title);
        self.canonical_url.append_option(row.canonical_url);
        self.fetched_at.append_option(row.fetched_at);
        match &row.payload_sha1 {
            Some(digest) => self.payload_sha1.append_value(digest).map_err(|e| TableError::Encode {
                table: self.part.table().to_string(),
                reason: e.to_string(),
            })?,
            None => self.payload_sha1.append_null(),
        }
        self.text_fp.append_option(row.text_fp.map(|fp| fp as i64));
        self.buffered += 1;
        if self.buffered >= WIDE_BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TableError> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.doc.finish()),
            Arc::new(self.id.finish()),
            Arc::new(self.url.finish()),
            Arc::new(self.site.finish()),
            Arc::new(self.source.finish()),
            Arc::new(self.offset.finish()),
            Arc::new(self.media_type.finish()),
            Arc::new(self.bytes.finish()),
            Arc::new(self.tokens.finish()),
            Arc::new(self.title.finish()),
            Arc::new(self.canonical_url.finish()),
            Arc::new(self.fetched_at.finish()),
            Arc::new(self.payload_sha1.finish()),
            Arc::new(self.text_fp.finish()),
        ];
        self.buffered = 0;
        write_columns(&mut self.part, columns)
    }

    /// Writes the footer; with `sync`, returns when the file is on the disk.
    pub fn finish(mut self, sync: bool) -> Result<PartMeta, TableError> {
        if self.buffered > 0 {
            self.flush()?;
        }
        self.part.finish(sync)
    }
}

/// Writes `sites`, in ascending order of `site`.
#[derive(Debug)]
pub struct SitesWriter {
    part: PartWriter,
    last_site: Option<u32>,
    buffered: usize,
    site: Int64Builder,
    host: StringBuilder,
    registered_domain: StringBuilder,
}

impl SitesWriter {
    /// Writes to a part of the table `sites`.
    pub fn new(part: PartWriter) -> SitesWriter {
        debug_assert_eq!(part.table(), &Table::Sites);
        SitesWriter {
            part,
            last_site: None,
            buffered: 0,
            site: Int64Builder::new(),
            host: StringBuilder::new(),
            registered_domain: StringBuilder::new(),
        }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.part.rows() + self.buffered as u64
    }

    /// Appends a site; `site` must be larger than the one before.
    pub fn push(&mut self, row: &SiteRow<'_>) -> Result<(), TableError> {
        if self.last_site.is_some_and(|last| last >= row.site) {
            return Err(out_of_order(&self.part, self.rows()));
        }
        self.last_site = Some(row.site);
        self.site.append_value(i64::from(row.site));
        self.host.append_value(row.host);
        self.registered_domain.append_option(row.registered_domain);
        self.buffered += 1;
        if self.buffered >= WIDE_BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TableError> {
        self.buffered = 0;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(self.site.finish()),
            Arc::new(self.host.finish()),
            Arc::new(self.registered_domain.finish()),
        ];
        write_columns(&mut self.part, columns)
    }

    /// Writes the footer; with `sync`, returns when the file is on the disk.
    pub fn finish(mut self, sync: bool) -> Result<PartMeta, TableError> {
        if self.buffered > 0 {
            self.flush()?;
        }
        self.part.finish(sync)
    }
}

/// Writes a table of two ids a row, `links` or `copies`, in ascending order.
#[derive(Debug)]
pub struct IdPairsWriter {
    part: PartWriter,
    last: Option<(u32, u32)>,
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
    pub fn push(&mut self, first: u32, second: u32) -> Result<(), TableError> {
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
    last_doc: u32,
    fp: Vec<i64>,
    doc: Vec<i64>,
}

impl ChunksWriter {
    /// Writes to a part of a table `chunks`.
    pub fn new(part: PartWriter) -> ChunksWriter {
        debug_assert!(matches!(part.table(), Table::Chunks(_)));
        ChunksWriter {
            part,
            last_doc: 0,
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
    pub fn push(&mut self, doc: u32, fps: &[u64]) -> Result<(), TableError> {
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
            last_doc: Option<u32>,
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
            pub fn push(&mut self, doc: u32, list: &[$unsigned]) -> Result<(), TableError> {
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
