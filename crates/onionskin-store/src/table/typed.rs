//! Readers of the narrow tables that a scan fills, by columns, and the checks of columns.
//!
//! Values were checked when the batch was read, so that the accessors cannot fail.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, Int64Array, RecordBatch, StringArray};
use arrow_buffer::ScalarBuffer;
use onionskin_core::DocId;

use super::reader::Place;
use super::{Input, TableError, TableReader, ValueProblem};
use crate::schema::{ChunkingName, Table};

/// Rows in a batch of narrow rows.
const NARROW_BATCH: usize = 64 << 10;

/// A column of a batch, with its place for error messages.
pub struct Columns<'a> {
    pub(super) batch: &'a RecordBatch,
    pub(super) table: &'a Table,
    pub(super) file: &'a str,
}

impl<'a> Columns<'a> {
    pub(super) fn place<'b>(&'b self, column: &'b str) -> Place<'b> {
        Place { table: self.table, file: self.file, column }
    }

    fn column(&self, name: &str) -> Result<&'a dyn Array, TableError> {
        let found =
            self.batch.column_by_name(name).ok_or_else(|| self.place(name).damaged("a column is gone"))?;
        Ok(found.as_ref())
    }

    pub(super) fn typed<T: Clone + 'a>(
        &self,
        name: &str,
        downcast: impl Fn(&'a dyn Array) -> Option<&'a T>,
    ) -> Result<T, TableError> {
        downcast(self.column(name)?)
            .cloned()
            .ok_or_else(|| self.place(name).damaged("not the type of the schema"))
    }

    pub(super) fn strings(&self, name: &str) -> Result<StringArray, TableError> {
        self.typed(name, |array| array.as_string_opt())
    }

    pub(super) fn integers(&self, name: &str) -> Result<Int64Array, TableError> {
        self.typed(name, |array| array.as_primitive_opt::<Int64Type>())
    }
}

/// Reads a table of two ids a row, `links` or `copies`, one row after the other.
#[derive(Debug)]
pub struct IdPairsReader {
    reader: TableReader,
    table: Table,
    first: ScalarBuffer<i64>,
    second: ScalarBuffer<i64>,
    at: usize,
}

impl IdPairsReader {
    /// Reads the files of the table in order.
    pub fn new(table: Table, inputs: impl IntoIterator<Item = impl Into<Input>>) -> IdPairsReader {
        debug_assert!(matches!(table, Table::Links | Table::Copies(_)));
        let reader = TableReader::new(table.clone(), inputs).batch_rows(NARROW_BATCH);
        IdPairsReader { reader, table, first: Vec::new().into(), second: Vec::new().into(), at: 0 }
    }

    fn fill(&mut self) -> Result<bool, TableError> {
        let Some((batch, file)) = self.reader.next_batch()? else { return Ok(false) };
        let columns = Columns { batch: &batch, table: &self.table, file };
        let [first, second] = if self.table == Table::Links { ["src", "dest"] } else { ["doc", "original"] };
        self.first = columns.integers(first)?.values().clone();
        self.second = columns.integers(second)?.values().clone();
        self.at = 0;
        Ok(true)
    }
}

impl Iterator for IdPairsReader {
    type Item = Result<(DocId, DocId), TableError>;

    #[inline]
    fn next(&mut self) -> Option<Result<(DocId, DocId), TableError>> {
        while self.at == self.first.len() {
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        let row = (DocId(*self.first.get(self.at)? as u32), DocId(*self.second.get(self.at)? as u32));
        self.at += 1;
        Some(Ok(row))
    }
}

/// Some rows of a `chunks` table, as columns of equal length.
#[derive(Clone, Debug)]
pub struct ChunkBatch {
    /// Fingerprints.
    pub fps: ScalarBuffer<u64>,
    /// The document of each: all in 0..2^32.
    pub docs: ScalarBuffer<i64>,
}

/// Reads a `chunks` table, by columns or by document.
#[derive(Debug)]
pub struct ChunksReader {
    reader: TableReader,
    table: Table,
    batch: ChunkBatch,
    at: usize,
    /// The rows of the current document, where they lie in one batch.
    group: std::ops::Range<usize>,
    /// Its fingerprints, where they do not.
    gathered: Vec<u64>,
}

impl ChunksReader {
    /// Reads the files in order.
    pub fn new(chunking: ChunkingName, inputs: impl IntoIterator<Item = impl Into<Input>>) -> ChunksReader {
        let table = Table::Chunks(chunking);
        let reader = TableReader::new(table.clone(), inputs).batch_rows(NARROW_BATCH);
        let batch = ChunkBatch { fps: Vec::new().into(), docs: Vec::new().into() };
        ChunksReader { reader, table, batch, at: 0, group: 0..0, gathered: Vec::new() }
    }

    /// Leaves out row groups without documents of this range; others of the row groups that are
    /// read still come.
    pub fn within(mut self, documents: std::ops::RangeInclusive<DocId>) -> ChunksReader {
        self.reader = self.reader.within("doc", i64::from(*documents.start())..=i64::from(*documents.end()));
        self
    }

    /// The next rows; `None` at the end. Not to be mixed with [`ChunksReader::next_group`].
    pub fn next_batch(&mut self) -> Result<Option<ChunkBatch>, TableError> {
        let Some((batch, file)) = self.reader.next_batch()? else { return Ok(None) };
        let columns = Columns { batch: &batch, table: &self.table, file };
        let docs = columns.integers("doc")?.values().clone();
        // The same bits, seen as unsigned.
        let fps = ScalarBuffer::from(columns.integers("fp")?.values().clone().into_inner());
        Ok(Some(ChunkBatch { fps, docs }))
    }

    /// The next document and its fingerprints: the rows that follow each other with one `doc`.
    /// Documents without chunks have no rows and do not come up.
    pub fn next_group(&mut self) -> Result<Option<(DocId, &[u64])>, TableError> {
        let doc = self.advance()?;
        Ok(doc.map(|doc| (doc, self.group())))
    }

    /// Goes to the next document, whose fingerprints [`ChunksReader::group`] then gives; `None` at
    /// the end.
    pub fn advance(&mut self) -> Result<Option<DocId>, TableError> {
        self.gathered.clear();
        self.group = 0..0;
        let mut group_doc = None;
        loop {
            if self.at == self.batch.docs.len() {
                match self.next_batch()? {
                    Some(batch) => (self.batch, self.at) = (batch, 0),
                    None => return Ok(group_doc.map(|doc: i64| DocId(doc as u32))),
                }
            }
            let rest = self.batch.docs.get(self.at..).unwrap_or_default();
            let Some(&first) = rest.first() else { continue };
            let doc = *group_doc.get_or_insert(first);
            if doc != first {
                return Ok(Some(DocId(doc as u32)));
            }
            let n = rest.iter().take_while(|other| **other == doc).count();
            let rows = self.at..self.at + n;
            self.at += n;
            let whole = n < rest.len();
            if whole && self.gathered.is_empty() {
                // The usual case: the whole group lies inside the batch, and nothing is copied.
                self.group = rows;
                return Ok(Some(DocId(doc as u32)));
            }
            self.gathered.extend_from_slice(self.batch.fps.get(rows).unwrap_or_default());
            if whole {
                return Ok(Some(DocId(doc as u32)));
            }
        }
    }

    /// The fingerprints of the document that [`ChunksReader::advance`] went to.
    pub fn group(&self) -> &[u64] {
        if self.group.is_empty() {
            &self.gathered
        } else {
            self.batch.fps.get(self.group.clone()).unwrap_or_default()
        }
    }
}

macro_rules! list_reader {
    ($(#[$doc:meta])* $name:ident, $variant:ident, $column:literal, $unsigned:ty, $arrow:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            reader: TableReader,
            docs: ScalarBuffer<i64>,
            values: ScalarBuffer<$unsigned>,
            len: Option<usize>,
            at: usize,
        }

        impl $name {
            /// Reads the files in order. The length of the lists is the files' to say.
            pub fn new(inputs: impl IntoIterator<Item = impl Into<Input>>) -> $name {
                let reader = TableReader::new(Table::$variant { len: 1 }, inputs);
                $name { reader, docs: Vec::new().into(), values: Vec::new().into(), len: None, at: 0 }
            }

            /// Leaves out row groups without documents of this range; others of the row groups that
            /// are read still come.
            pub fn within(mut self, documents: std::ops::RangeInclusive<DocId>) -> $name {
                self.reader = self.reader.within("doc", i64::from(*documents.start())..=i64::from(*documents.end()));
                self
            }

            /// Length of every list, once the first row was read.
            pub fn list_len(&self) -> Option<usize> {
                self.len
            }

            /// The next document and its list; `None` at the end.
            pub fn next_row(&mut self) -> Result<Option<(DocId, &[$unsigned])>, TableError> {
                if self.at == self.docs.len() && !self.fill()? {
                    return Ok(None);
                }
                let (row, len) = (self.at, self.len.unwrap_or(0));
                self.at += 1;
                let doc = self.docs.get(row).copied().unwrap_or(0);
                Ok(Some((DocId(doc as u32), self.values.get(row * len..(row + 1) * len).unwrap_or_default())))
            }

            fn fill(&mut self) -> Result<bool, TableError> {
                let Some((batch, file)) = self.reader.next_batch()? else { return Ok(false) };
                let table = Table::$variant { len: 1 };
                let columns = Columns { batch: &batch, table: &table, file };
                self.docs = columns.integers("doc")?.values().clone();
                let lists = columns.typed($column, |array| array.as_fixed_size_list_opt())?;
                let found = usize::try_from(lists.value_length()).unwrap_or(0);
                let wanted = *self.len.get_or_insert(found);
                if found != wanted {
                    return Err(columns.place($column).wrong(ValueProblem::ListLength { found, wanted }));
                }
                let values = lists.values().as_primitive_opt::<$arrow>();
                let values = values.ok_or_else(|| columns.place($column).damaged("not the type of the schema"))?;
                self.values = ScalarBuffer::from(values.values().clone().into_inner());
                self.at = 0;
                Ok(true)
            }
        }
    };
}

list_reader!(
    /// Reads `sketches`.
    SketchesReader, Sketches, "sketch", u32, Int32Type
);
list_reader!(
    /// Reads `features`.
    FeaturesReader, Features, "features", u64, Int64Type
);
