//! One reader and one writer for every table whose rows are structs.
//!
//! [`rows!`] lists each column of a table once, with its type. The type says how the column is
//! encoded, checked and decoded: that is its [`Cell`]. From the list come the row, what a
//! [`RowWriter`] needs to gather rows in columns, and what a [`RowReader`] or [`BatchReader`]
//! needs to give them back.
//!
//! A [`TableReader`] checks the values of a whole batch by the rules of the schema, so that taking
//! a row out of one cannot fail.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::builder::{Int64Builder, StringBuilder, TimestampMicrosecondBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, TimestampMicrosecondType};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampMicrosecondArray,
};
use arrow_buffer::NullBufferBuilder;
use onionskin_core::{ClusterId, CollectionId, DocId, Id, Packed, ReplicaId, RuleId, SiteId, SlotId};

use super::mirror::{CollectionGroupRow, CollectionPageRow, CollectionRow};
use super::similar::{ClusterRow, PairRow};
use super::typed::Columns;
use super::writers::{out_of_order, signed, write_columns};
use super::{Input, PartMeta, PartWriter, TableError, TableReader, ValueProblem};
use crate::schema::Table;

/// Rows in a batch of rows without long strings.
pub(super) const BATCH: usize = 64 << 10;
/// Rows in a batch of rows with strings.
pub(super) const WIDE_BATCH: usize = 2 << 10;

/// How values of a column are encoded, checked and decoded.
pub trait Cell: 'static {
    /// A value, borrowed from its batch where it is text.
    type Value<'a>;
    /// Gathers values.
    type Builder;
    /// Checked values.
    type Array: Clone;

    /// Gathers nothing yet.
    fn builder() -> Self::Builder;
    /// Adds a value.
    fn append(builder: &mut Self::Builder, value: &Self::Value<'_>);
    /// The values so far, as a column.
    fn finish(builder: &mut Self::Builder) -> ArrayRef;
    /// Checks a column.
    fn decode(columns: &Columns<'_>, name: &str) -> Result<Self::Array, TableError>;
    /// A value of a checked column.
    fn value(array: &Self::Array, row: usize) -> Self::Value<'_>;
}

/// A cell whose values wait in a vector: what is stored for a value, how a column is checked, and
/// the value for what is stored.
macro_rules! plain_cell {
    (
        $({$($of:tt)+})? $cell:ty, $value:ty, $stored:ty => $array:ty:
        $store:expr, $decode:expr, $restore:expr
    ) => {
        impl $(<$($of)+>)? Cell for $cell {
            type Value<'a> = $value;
            type Builder = Vec<$stored>;
            type Array = $array;

            fn builder() -> Vec<$stored> {
                Vec::new()
            }
            #[inline]
            fn append(builder: &mut Vec<$stored>, value: &$value) {
                builder.push($store(*value));
            }
            fn finish(builder: &mut Vec<$stored>) -> ArrayRef {
                Arc::new(<$array>::from(std::mem::take(builder)))
            }
            fn decode(columns: &Columns<'_>, name: &str) -> Result<$array, TableError> {
                $decode(columns, name)
            }
            #[inline]
            fn value(array: &$array, row: usize) -> $value {
                $restore(array.value(row))
            }
        }
    };
}

macro_rules! id_cells {
    ($($id:ident),+) => {$(
        plain_cell!($id, $id, i64 => Int64Array: i64::from, Columns::integers, |id: i64| $id(id as u32));

        impl Cell for Option<$id> {
            type Value<'a> = Option<$id>;
            type Builder = Int64Builder;
            type Array = Int64Array;

            fn builder() -> Int64Builder {
                Int64Builder::new()
            }
            #[inline]
            fn append(builder: &mut Int64Builder, value: &Option<$id>) {
                builder.append_option(value.map(i64::from));
            }
            fn finish(builder: &mut Int64Builder) -> ArrayRef {
                Arc::new(builder.finish())
            }
            fn decode(columns: &Columns<'_>, name: &str) -> Result<Int64Array, TableError> {
                columns.integers(name)
            }
            #[inline]
            fn value(array: &Int64Array, row: usize) -> Option<$id> {
                array.is_valid(row).then(|| $id(array.value(row) as u32))
            }
        }
    )+};
}
id_cells!(DocId, SiteId, ClusterId, CollectionId, ReplicaId, SlotId, RuleId);

// An id in a column that has no nulls: none is the number that `Packed` has for it.
plain_cell!(
    {I: Id} Packed<I>, Option<I>, i64 => Int64Array:
    |id: Option<I>| i64::from(Packed::from(id).bits()),
    Columns::integers,
    |bits: i64| Packed::from_bits(bits as u32).get()
);

// A size, a number of things or an offset.
plain_cell!(u64, u64, i64 => Int64Array: signed, Columns::integers, |size: i64| size as u64);

// A number from 0 to 1.
plain_cell!(f64, f64, f64 => Float64Array: std::convert::identity, shares, std::convert::identity);

fn shares(columns: &Columns<'_>, name: &str) -> Result<Float64Array, TableError> {
    columns.typed(name, |array| array.as_primitive_opt::<Float64Type>())
}

plain_cell!(bool, bool, bool => BooleanArray: std::convert::identity, flags, std::convert::identity);

fn flags(columns: &Columns<'_>, name: &str) -> Result<BooleanArray, TableError> {
    columns.typed(name, |array| array.as_boolean_opt())
}

/// Text that is borrowed from its batch.
#[derive(Clone, Copy, Debug)]
pub enum Text {}

/// Strings, null or not, owned or borrowed: they differ in how a value is put in and taken out.
macro_rules! text_cells {
    ($($cell:ty, $life:lifetime $value:ty, $append:ident($put:expr), $take:expr;)+) => {$(
        impl Cell for $cell {
            type Value<$life> = $value;
            type Builder = StringBuilder;
            type Array = StringArray;

            fn builder() -> StringBuilder {
                StringBuilder::new()
            }
            #[inline]
            fn append(builder: &mut StringBuilder, value: &Self::Value<'_>) {
                builder.$append($put(value));
            }
            fn finish(builder: &mut StringBuilder) -> ArrayRef {
                Arc::new(builder.finish())
            }
            fn decode(columns: &Columns<'_>, name: &str) -> Result<StringArray, TableError> {
                columns.strings(name)
            }
            #[inline]
            fn value(array: &StringArray, row: usize) -> Self::Value<'_> {
                $take(array, row)
            }
        }
    )+};
}

text_cells!(
    Text, 'a &'a str, append_value(same), text;
    Option<Text>, 'a Option<&'a str>, append_option(copied), optional_text;
    String, 'a String, append_value(String::as_str), owned;
    Option<String>, 'a Option<String>, append_option(Option::as_deref), optional_owned;
);

fn same<'a>(text: &&'a str) -> &'a str {
    text
}

fn copied<'a>(text: &Option<&'a str>) -> Option<&'a str> {
    *text
}

fn text(array: &StringArray, row: usize) -> &str {
    array.value(row)
}

/// Null as `None`.
fn optional_text(array: &StringArray, row: usize) -> Option<&str> {
    array.is_valid(row).then(|| array.value(row))
}

fn owned(array: &StringArray, row: usize) -> String {
    array.value(row).to_owned()
}

fn optional_owned(array: &StringArray, row: usize) -> Option<String> {
    optional_text(array, row).map(str::to_owned)
}

/// A fingerprint, all bits of it.
impl Cell for Option<u64> {
    type Value<'a> = Option<u64>;
    type Builder = Int64Builder;
    type Array = Int64Array;

    fn builder() -> Int64Builder {
        Int64Builder::new()
    }
    #[inline]
    fn append(builder: &mut Int64Builder, value: &Option<u64>) {
        builder.append_option(value.map(|bits| bits as i64));
    }
    fn finish(builder: &mut Int64Builder) -> ArrayRef {
        Arc::new(builder.finish())
    }
    fn decode(columns: &Columns<'_>, name: &str) -> Result<Int64Array, TableError> {
        columns.integers(name)
    }
    #[inline]
    fn value(array: &Int64Array, row: usize) -> Option<u64> {
        array.is_valid(row).then(|| array.value(row) as u64)
    }
}

/// A time: microseconds since 1970, UTC.
impl Cell for Option<i64> {
    type Value<'a> = Option<i64>;
    type Builder = TimestampMicrosecondBuilder;
    type Array = TimestampMicrosecondArray;

    fn builder() -> TimestampMicrosecondBuilder {
        TimestampMicrosecondBuilder::new().with_timezone("UTC")
    }
    #[inline]
    fn append(builder: &mut TimestampMicrosecondBuilder, value: &Option<i64>) {
        builder.append_option(*value);
    }
    fn finish(builder: &mut TimestampMicrosecondBuilder) -> ArrayRef {
        Arc::new(builder.finish())
    }
    fn decode(columns: &Columns<'_>, name: &str) -> Result<TimestampMicrosecondArray, TableError> {
        columns.typed(name, |array| array.as_primitive_opt::<TimestampMicrosecondType>())
    }
    #[inline]
    fn value(array: &TimestampMicrosecondArray, row: usize) -> Option<i64> {
        array.is_valid(row).then(|| array.value(row))
    }
}

/// A SHA-1.
impl Cell for Option<[u8; 20]> {
    type Value<'a> = Option<[u8; 20]>;
    type Builder = (Vec<u8>, NullBufferBuilder);
    type Array = FixedSizeBinaryArray;

    fn builder() -> (Vec<u8>, NullBufferBuilder) {
        (Vec::new(), NullBufferBuilder::new(0))
    }
    #[inline]
    fn append((bytes, valid): &mut (Vec<u8>, NullBufferBuilder), value: &Option<[u8; 20]>) {
        bytes.extend_from_slice(&value.unwrap_or_default());
        valid.append(value.is_some());
    }
    fn finish((bytes, valid): &mut (Vec<u8>, NullBufferBuilder)) -> ArrayRef {
        Arc::new(FixedSizeBinaryArray::new(20, std::mem::take(bytes).into(), valid.finish()))
    }
    fn decode(columns: &Columns<'_>, name: &str) -> Result<FixedSizeBinaryArray, TableError> {
        columns.typed(name, |array| array.as_fixed_size_binary_opt())
    }
    #[inline]
    fn value(array: &FixedSizeBinaryArray, row: usize) -> Option<[u8; 20]> {
        if array.is_valid(row) { array.value(row).try_into().ok() } else { None }
    }
}

/// One of a few words.
pub trait Word: Copy + 'static {
    /// All of them, for messages.
    const KNOWN: &'static str;
    /// The word.
    fn word(self) -> &'static str;
    /// `None` for a word that is none of them.
    fn parse(word: &str) -> Option<Self>;
}

impl<W: Word> Cell for W {
    type Value<'a> = W;
    type Builder = StringBuilder;
    type Array = Vec<W>;

    fn builder() -> StringBuilder {
        StringBuilder::new()
    }
    #[inline]
    fn append(builder: &mut StringBuilder, value: &W) {
        builder.append_value(value.word());
    }
    fn finish(builder: &mut StringBuilder) -> ArrayRef {
        Arc::new(builder.finish())
    }
    fn decode(columns: &Columns<'_>, name: &str) -> Result<Vec<W>, TableError> {
        let words = columns.strings(name)?;
        let unknown =
            |row| columns.place(name).wrong_at(Some(row as u64), ValueProblem::Word { known: W::KNOWN });
        (0..words.len()).map(|row| W::parse(words.value(row)).ok_or_else(|| unknown(row))).collect()
    }
    #[inline]
    fn value(array: &Vec<W>, row: usize) -> W {
        array[row]
    }
}

/// One of a few words, or null.
impl<W: Word> Cell for Option<W> {
    type Value<'a> = Option<W>;
    type Builder = StringBuilder;
    type Array = Vec<Option<W>>;

    fn builder() -> StringBuilder {
        StringBuilder::new()
    }
    #[inline]
    fn append(builder: &mut StringBuilder, value: &Option<W>) {
        builder.append_option(value.map(Word::word));
    }
    fn finish(builder: &mut StringBuilder) -> ArrayRef {
        Arc::new(builder.finish())
    }
    fn decode(columns: &Columns<'_>, name: &str) -> Result<Vec<Option<W>>, TableError> {
        let words = columns.strings(name)?;
        let unknown = || columns.place(name).wrong(ValueProblem::Word { known: W::KNOWN });
        let parse = |word: Option<&str>| word.map(|word| W::parse(word).ok_or_else(unknown)).transpose();
        words.iter().map(parse).collect()
    }
    #[inline]
    fn value(array: &Vec<Option<W>>, row: usize) -> Option<W> {
        array[row]
    }
}

/// Some or all columns of a table, read together.
pub trait Selection: 'static {
    /// The columns of a row, borrowed from their batch where they are text.
    type Item<'a>;
    /// The columns of a batch, checked.
    type Arrays: Clone;
    /// The first column that rows of the table are sorted by.
    type First: Copy + Into<i64>;
    /// Names of the columns.
    const COLUMNS: &'static [&'static str];
    /// The table.
    const TABLE: Table;

    /// Checks the columns of a batch.
    fn decode(columns: &Columns<'_>) -> Result<Self::Arrays, TableError>;
    /// A row of a checked batch.
    fn item(arrays: &Self::Arrays, row: usize) -> Self::Item<'_>;
}

/// A whole row of a table.
pub trait Row: Selection {
    /// What rows are sorted by.
    type Key: Copy + Ord;
    /// Gathers rows in columns.
    type Builders;
    /// Rows in a batch. A fixed number, so that the bytes of a file depend on its rows alone.
    const BATCH: usize;

    /// What the row is sorted by.
    fn key(row: &Self::Item<'_>) -> Self::Key;
    /// Gathers nothing yet.
    fn builders() -> Self::Builders;
    /// Adds a row.
    fn append(builders: &mut Self::Builders, row: &Self::Item<'_>);
    /// The rows so far, as columns.
    fn finish(builders: &mut Self::Builders) -> Vec<ArrayRef>;
}

/// Lists each column of a table once: makes the row and its [`Row`].
///
/// A column is `name: Type`, where the type is also its [`Cell`], or `name: Type => Cell`.
macro_rules! rows {
    ($(
        $table:ident by $first:ident: $first_of:ident $(, $key:ident: $of:ident)* in batches of $batch:ident:
        $(#[$doc:meta])*
        struct $row:ident $(<$life:lifetime>)? {
            $($(#[$about:meta])* $field:ident: $type:ty $(=> $cell:ty)?,)+
        }
    )+) => {$(
        $(#[$doc])*
        pub struct $row $(<$life>)? {
            $($(#[$about])* pub $field: $type,)+
        }

        const _: () = {
            pub struct Builders {
                $($field: <$crate::table::row::cell!($type $(=> $cell)?) as Cell>::Builder,)+
            }

            #[derive(Clone)]
            pub struct Arrays {
                $($field: <$crate::table::row::cell!($type $(=> $cell)?) as Cell>::Array,)+
            }

            impl Selection for $crate::table::row::of!($row $($life)?; 'static) {
                type Item<'r> = $crate::table::row::of!($row $($life)?; 'r);
                type Arrays = Arrays;
                type First = $first_of;
                const COLUMNS: &'static [&'static str] = &[$(stringify!($field)),+];
                const TABLE: Table = Table::$table;

                fn decode(columns: &Columns<'_>) -> Result<Arrays, TableError> {
                    Ok(Arrays {
                        $($field: <$crate::table::row::cell!($type $(=> $cell)?) as Cell>::decode(
                            columns,
                            stringify!($field),
                        )?,)+
                    })
                }

                #[inline]
                fn item(arrays: &Arrays, row: usize) -> Self::Item<'_> {
                    $row {
                        $($field: <$crate::table::row::cell!($type $(=> $cell)?) as Cell>::value(
                            &arrays.$field,
                            row,
                        ),)+
                    }
                }
            }

            impl Row for $crate::table::row::of!($row $($life)?; 'static) {
                type Key = ($first_of, $($of,)*);
                type Builders = Builders;
                const BATCH: usize = $batch;

                #[inline]
                fn key(row: &Self::Item<'_>) -> ($first_of, $($of,)*) {
                    (row.$first, $(row.$key,)*)
                }

                fn builders() -> Builders {
                    Builders {
                        $($field: <$crate::table::row::cell!($type $(=> $cell)?) as Cell>::builder(),)+
                    }
                }

                #[inline]
                fn append(builders: &mut Builders, row: &Self::Item<'_>) {
                    $(<$crate::table::row::cell!($type $(=> $cell)?) as Cell>::append(
                        &mut builders.$field,
                        &row.$field,
                    );)+
                }

                fn finish(builders: &mut Builders) -> Vec<ArrayRef> {
                    vec![
                        $(<$crate::table::row::cell!($type $(=> $cell)?) as Cell>::finish(
                            &mut builders.$field,
                        ),)+
                    ]
                }
            }
        };
    )+};
}

/// Names the writer and the reader of tables.
macro_rules! handles {
    ($($table:literal: $writer:ident, $reader:ident of $row:ty;)+) => {$(
        #[doc = concat!("Writes `", $table, "`.")]
        pub type $writer = $crate::table::row::RowWriter<$row>;
        #[doc = concat!("Reads `", $table, "`.")]
        pub type $reader = $crate::table::row::RowReader<$row>;
    )+};
}

/// The cell of a column: its type, if nothing else is said.
macro_rules! cell {
    ($type:ty) => {
        $type
    };
    ($type:ty => $cell:ty) => {
        $cell
    };
}

/// The type of a row that does or does not borrow.
macro_rules! of {
    ($row:ident; $lives:lifetime) => { $row };
    ($row:ident $life:lifetime; $lives:lifetime) => { $row<$lives> };
}
pub(super) use {cell, handles, of, rows};

/// Writes a table of rows, in ascending order.
pub struct RowWriter<R: Row> {
    part: PartWriter,
    last: Option<R::Key>,
    buffered: usize,
    columns: R::Builders,
}

impl<R: Row> fmt::Debug for RowWriter<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowWriter").field("part", &self.part).finish_non_exhaustive()
    }
}

impl<R: Row> RowWriter<R> {
    /// Writes to a part of the table.
    pub fn new(part: PartWriter) -> RowWriter<R> {
        debug_assert_eq!(part.table(), &R::TABLE);
        RowWriter { part, last: None, buffered: 0, columns: R::builders() }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.part.rows() + self.buffered as u64
    }

    /// Appends a row, which must come after the one before.
    pub fn push(&mut self, row: &R::Item<'_>) -> Result<(), TableError> {
        let key = R::key(row);
        if self.last.is_some_and(|last| last >= key) {
            return Err(out_of_order(&self.part, self.rows()));
        }
        self.last = Some(key);
        R::append(&mut self.columns, row);
        self.buffered += 1;
        if self.buffered >= R::BATCH { self.flush() } else { Ok(()) }
    }

    /// Hands on the rows that are gathered, however few: for rows that are larger than most. When
    /// it is called must depend on the rows alone, since it changes the bytes of the file.
    pub fn end_batch(&mut self) -> Result<(), TableError> {
        if self.buffered > 0 { self.flush() } else { Ok(()) }
    }

    /// As [`RowWriter::end_batch`], and writes out the row group that is in memory.
    pub fn end_row_group(&mut self) -> Result<(), TableError> {
        self.end_batch()?;
        self.part.end_row_group()
    }

    fn flush(&mut self) -> Result<(), TableError> {
        self.buffered = 0;
        write_columns(&mut self.part, R::finish(&mut self.columns))
    }

    /// Writes the rest and the footer; with `sync`, returns when the file is on the disk.
    pub fn finish(mut self, sync: bool) -> Result<PartMeta, TableError> {
        if self.buffered > 0 {
            self.flush()?;
        }
        self.part.finish(sync)
    }
}

/// Some rows of a table.
#[derive(Clone)]
pub struct Batch<S: Selection> {
    batch: RecordBatch,
    arrays: S::Arrays,
}

impl<S: Selection> fmt::Debug for Batch<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("rows", &self.len()).finish_non_exhaustive()
    }
}

impl<S: Selection> Batch<S> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The columns as they are.
    pub fn record_batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// A row.
    ///
    /// # Panics
    ///
    /// When `row` is not below [`Batch::len`].
    #[inline]
    pub fn row(&self, row: usize) -> S::Item<'_> {
        S::item(&self.arrays, row)
    }

    /// All rows of the batch.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = S::Item<'_>> {
        (0..self.len()).map(|row| self.row(row))
    }
}

/// Reads some or all columns of a table, batch by batch.
#[derive(Debug)]
pub struct BatchReader<S: Selection> {
    reader: TableReader,
    selection: std::marker::PhantomData<fn() -> S>,
}

impl<S: Selection> BatchReader<S> {
    /// Reads the files in order.
    pub fn new(inputs: impl IntoIterator<Item = impl Into<Input>>) -> BatchReader<S> {
        BatchReader::over(TableReader::new(S::TABLE, inputs))
    }

    fn over(reader: TableReader) -> BatchReader<S> {
        BatchReader { reader: reader.columns(S::COLUMNS), selection: std::marker::PhantomData }
    }

    /// Reads other columns of the same table: those of `T` and no more.
    ///
    /// # Panics
    ///
    /// In debug builds, when `T` is of another table.
    pub fn select<T: Selection>(self) -> BatchReader<T> {
        debug_assert_eq!(T::TABLE, S::TABLE);
        BatchReader::over(self.reader)
    }

    /// Leaves out row groups without values of this range in the first column that rows are sorted
    /// by. Other rows of the row groups that are read still come.
    pub fn within(mut self, first: RangeInclusive<S::First>) -> BatchReader<S> {
        if let Some(column) = S::TABLE.sorted_by().first() {
            self.reader = self.reader.within(column, (*first.start()).into()..=(*first.end()).into());
        }
        self
    }

    /// The next rows; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<Batch<S>>, TableError> {
        let Some((batch, file)) = self.reader.next_batch()? else { return Ok(None) };
        let decoded = S::decode(&Columns { batch: &batch, table: &S::TABLE, file });
        let arrays = decoded.map_err(|error| error.in_file(|row| self.reader.row_in_file(row)))?;
        Ok(Some(Batch { batch, arrays }))
    }
}

impl<S: Selection> Iterator for BatchReader<S> {
    type Item = Result<Batch<S>, TableError>;

    fn next(&mut self) -> Option<Result<Batch<S>, TableError>> {
        self.next_batch().transpose()
    }
}

/// Reads a table one row after the other.
#[derive(Debug)]
pub struct RowReader<S: Selection> {
    batches: BatchReader<S>,
    batch: Option<Batch<S>>,
    at: usize,
}

impl<S: Selection> RowReader<S> {
    /// Reads the files in order.
    pub fn new(inputs: impl IntoIterator<Item = impl Into<Input>>) -> RowReader<S> {
        RowReader { batches: BatchReader::new(inputs), batch: None, at: 0 }
    }

    /// Leaves out row groups without values of this range in the first column that rows are sorted
    /// by. Other rows of the row groups that are read still come.
    pub fn within(mut self, first: RangeInclusive<S::First>) -> RowReader<S> {
        self.batches = self.batches.within(first);
        self
    }
}

impl<S: for<'a> Selection<Item<'a> = S>> Iterator for RowReader<S> {
    type Item = Result<S, TableError>;

    #[inline]
    fn next(&mut self) -> Option<Result<S, TableError>> {
        loop {
            if let Some(batch) = &self.batch
                && self.at < batch.len()
            {
                let row = batch.row(self.at);
                self.at += 1;
                return Some(Ok(row));
            }
            (self.batch, self.at) = (None, 0);
            match self.batches.next_batch() {
                Ok(None) => return None,
                Ok(batch) => self.batch = batch,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Takes a batch apart as the readers of rows do: they know the words that a column may have.
pub(crate) fn ensure_words(table: &Table, batch: &RecordBatch, file: &str) -> Result<(), TableError> {
    let columns = Columns { batch, table, file };
    match table {
        Table::Pairs => PairRow::decode(&columns).map(drop),
        Table::Clusters => ClusterRow::decode(&columns).map(drop),
        Table::Collections => CollectionRow::decode(&columns).map(drop),
        Table::CollectionPages => CollectionPageRow::decode(&columns).map(drop),
        Table::CollectionGroups => CollectionGroupRow::decode(&columns).map(drop),
        _ => Ok(()),
    }
}
