//! The tables of the atlas: names, folders, columns and types.
//!
//! All integers are signed, because Spark neither reads nor writes unsigned Parquet columns well.
//! Ids (`doc`, `site`, `src`, `dest`, ...) are 64 bits wide and hold values below 2^32;
//! fingerprints are 64-bit integers with the same bits as the unsigned number, sketch minima 32-bit
//! integers likewise.
//!
//! What we write has exactly these types. What we read may come from Spark, DuckDB or pandas, so
//! readers also take narrower integers for ids, a variable list where we write a fixed-size one,
//! any width of string, any unit of time, columns in any order, and columns we do not know.
//! Anything else is an error that names table, column, the type found and the type wanted.

mod name;
mod rules;

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};

use onionskin_core::Chunking;

use crate::stage::StageName;
use crate::table::TableError;
pub use name::{Table, TableName};
pub(crate) use rules::{ID_END, Limits, MAX_SIZE, Rows, Rule};

/// Elements of a list column, at most: a file that claims more is not ours.
pub const MAX_LIST_LEN: u32 = 1 << 16;

/// Whether something can be a folder name everywhere: lower-case letters, digits, `-` and `_`.
pub(crate) fn is_folder_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_')
}

macro_rules! names {
    ($($(#[$doc:meta])* $name:ident),+) => {$(
        $(#[$doc])*
        ///
        /// Made of lower-case letters, digits, `-` and `_`, so that it can be a folder name
        /// everywhere.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// `None` when the name is empty, too long or has other characters.
            pub fn new(name: &str) -> Option<$name> {
                is_folder_name(name).then(|| $name(name.to_owned()))
            }

            /// The name.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }
    )+};
}

names!(
    /// The name of a chunking inside a table name, as `w4` in `chunks.w4`.
    ChunkingName,
    /// The name of a level inside a table name, as `overlap-l4-15` in `copies.overlap-l4-15`.
    LevelName
);

impl ChunkingName {
    /// The chunking of this name; `None` when it is none of ours.
    pub fn chunking(&self) -> Option<Chunking> {
        self.0.parse().ok()
    }
}

impl From<Chunking> for ChunkingName {
    fn from(chunking: Chunking) -> ChunkingName {
        ChunkingName(chunking.to_string())
    }
}

/// How a column is laid out in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Random bits: plain, uncompressed, no dictionary, no statistics.
    Random,
    /// Integers that are near each other: delta-packed, then zstd.
    Delta,
    /// Strings that repeat: dictionary, then zstd.
    Repeating,
    /// Strings that begin like the one before: what is the same and what is not apart, then zstd.
    Prefixed,
    /// All else: plain, then zstd.
    Plain,
}

/// A column: its field, its layout, and what its values must be.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) field: Field,
    pub(crate) layout: Layout,
    pub(crate) rule: Rule,
}

impl Table {
    /// The tables of the search for mirrors, which go when the pairs they were made from are
    /// replaced.
    pub const MIRRORS: [Table; 4] =
        [Table::Collections, Table::CollectionPages, Table::CollectionGroups, Table::UrlRules];

    /// The chunks table of a chunking; `None` when the name cannot be a folder.
    pub fn chunks(chunking: &str) -> Option<Table> {
        ChunkingName::new(chunking).map(Table::Chunks)
    }

    /// Its name in manifests and messages.
    pub fn name(&self) -> TableName {
        TableName::from(self)
    }

    /// The folder of its files inside the atlas, with `/` between parts.
    pub fn folder(&self) -> String {
        match self {
            Table::Chunks(chunking) => format!("chunks/{}", chunking.0),
            Table::Copies(level) => format!("copies/{}", level.0),
            table => table.to_string(),
        }
    }

    /// Rows in a row group. A fixed number for each table, never a matter of memory, so that the
    /// same rows give the same bytes; chosen so that a row group is about ten megabytes.
    pub fn row_group_rows(&self) -> usize {
        match self {
            Table::Documents => 64 << 10,
            Table::Sites
            | Table::Collections
            | Table::ClusterStats
            | Table::CollectionGroups
            | Table::UrlRules => 128 << 10,
            Table::Links | Table::Chunks(_) | Table::Copies(_) => 1 << 20,
            Table::Sketches { len } => group_rows(*len, 4),
            Table::Features { len } => group_rows(*len, 8),
            Table::Pairs | Table::Clusters | Table::CollectionPages => 256 << 10,
        }
    }

    /// The columns that rows are sorted by, as far as the writer makes sure of it.
    pub fn sorted_by(&self) -> &'static [&'static str] {
        match self {
            Table::Documents
            | Table::Chunks(_)
            | Table::Sketches { .. }
            | Table::Features { .. }
            | Table::Copies(_) => &["doc"],
            Table::Sites => &["site"],
            Table::Links => &["src", "dest"],
            Table::Pairs => &["a", "b"],
            Table::Clusters => &["cluster", "doc"],
            Table::ClusterStats => &["cluster"],
            Table::Collections => &["group", "replica"],
            Table::CollectionPages => &["group", "replica", "slot", "doc"],
            Table::CollectionGroups => &["group"],
            Table::UrlRules => &["rule"],
        }
    }

    /// Whether a column came later than the table: files without it are read as if it were null.
    pub(crate) fn is_later(&self, column: &str) -> bool {
        *self == Table::CollectionGroups && matches!(column, "principal_reason" | "principal_evidence")
    }

    /// The columns as we write them.
    pub fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.columns().into_iter().map(|column| column.field).collect::<Vec<_>>()))
    }

    /// Whether no two rows have the same values in the columns that rows are sorted by.
    pub(crate) fn is_sorted_strictly(&self) -> bool {
        !matches!(self, Table::Links | Table::Chunks(_))
    }

    /// The stage that makes it.
    pub fn stage(&self) -> StageName {
        match self {
            Table::Documents
            | Table::Sites
            | Table::Links
            | Table::Chunks(_)
            | Table::Sketches { .. }
            | Table::Features { .. } => StageName::Scan,
            Table::Copies(_) | Table::Pairs | Table::Clusters | Table::ClusterStats => StageName::Similar,
            Table::Collections | Table::CollectionPages | Table::CollectionGroups | Table::UrlRules => {
                StageName::Collections
            }
        }
    }

    /// The columns as we write them: how each is laid out, and what its values must be.
    pub(crate) fn columns(&self) -> Vec<Column> {
        use Rows::{Clusters, Collections, Documents, Pages, Replicas, Sites};
        use Rule::{Any, AtMost, Dense, Row, RowOrNone, Share, Size, Steps};
        let column = |name: &str, of, is_nullable, layout, rule| Column {
            field: Field::new(name, of, is_nullable),
            layout,
            rule,
        };
        let int = |name, rule| column(name, DataType::Int64, false, Layout::Delta, rule);
        let text = |name, layout| column(name, DataType::Utf8, false, layout, Any);
        let maybe_text = |name| column(name, DataType::Utf8, true, Layout::Plain, Any);
        let maybe_name = |name| column(name, DataType::Utf8, true, Layout::Prefixed, Any);
        let flag = |name| column(name, DataType::Boolean, false, Layout::Plain, Any);
        let share = |name| column(name, DataType::Float64, false, Layout::Plain, Share);
        let list = |name: &str, of, len| Column {
            field: list_field(name, of, len),
            layout: Layout::Random,
            rule: Any,
        };
        match self {
            Table::Documents => vec![
                int("doc", Dense),
                maybe_name("id"),
                maybe_name("url"),
                column("site", DataType::Int64, true, Layout::Delta, Row(Sites)),
                text("source", Layout::Repeating),
                int("offset", Size),
                text("media_type", Layout::Repeating),
                int("bytes", Size),
                int("tokens", Size),
                maybe_text("title"),
                maybe_name("canonical_url"),
                column("fetched_at", timestamp(), true, Layout::Delta, Any),
                column("payload_sha1", DataType::FixedSizeBinary(20), true, Layout::Random, Any),
                column("text_fp", DataType::Int64, true, Layout::Random, Any),
            ],
            Table::Sites => {
                vec![int("site", Dense), text("host", Layout::Plain), maybe_text("registered_domain")]
            }
            Table::Links => vec![int("src", Row(Documents)), int("dest", Row(Documents))],
            Table::Chunks(_) => {
                vec![column("fp", DataType::Int64, false, Layout::Random, Any), int("doc", Row(Documents))]
            }
            Table::Copies(_) => vec![int("doc", Row(Documents)), int("original", Row(Documents))],
            Table::Sketches { len } => {
                vec![int("doc", Row(Documents)), list("sketch", DataType::Int32, *len)]
            }
            Table::Features { len } => {
                vec![int("doc", Row(Documents)), list("features", DataType::Int64, *len)]
            }
            Table::Pairs => vec![
                int("a", Row(Documents)),
                int("b", Row(Documents)),
                int("shared", Size),
                share("resemblance"),
                share("containment_a"),
                share("containment_b"),
                text("method", Layout::Repeating),
            ],
            Table::Clusters => vec![
                int("cluster", Steps(Clusters)),
                int("doc", Row(Documents)),
                flag("is_centre"),
                share("resemblance_to_centre"),
                text("kind", Layout::Repeating),
            ],
            Table::ClusterStats => vec![
                int("cluster", Dense),
                int("centre", Row(Documents)),
                int("documents", AtMost(Documents)),
                int("exact_copies", AtMost(Documents)),
                int("sites", AtMost(Documents)),
                int("same_site", AtMost(Documents)),
                int("cross_site", AtMost(Documents)),
                share("lowest_resemblance"),
            ],
            Table::Collections => vec![
                int("group", Steps(Collections)),
                int("replica", Row(Replicas)),
                int("site", RowOrNone(Sites)),
                int("root_doc", Row(Documents)),
                maybe_text("root_url"),
                int("pages", AtMost(Documents)),
                flag("is_principal"),
                text("folder", Layout::Plain),
                text("kind", Layout::Repeating),
                share("coverage"),
                int("copies", AtMost(Documents)),
                int("changed", AtMost(Documents)),
                int("added", AtMost(Documents)),
                int("missing", AtMost(Documents)),
                int("virtual_pages", AtMost(Pages)),
                int("bytes", Size),
                text("newer", Layout::Repeating),
            ],
            Table::CollectionPages => vec![
                int("group", Steps(Collections)),
                int("replica", Row(Replicas)),
                int("slot", Row(Pages)),
                int("doc", Row(Documents)),
                flag("is_virtual"),
                text("role", Layout::Repeating),
            ],
            Table::CollectionGroups => vec![
                int("group", Dense),
                text("kind", Layout::Repeating),
                text("name", Layout::Plain),
                int("replicas", AtMost(Replicas)),
                int("slots", AtMost(Pages)),
                int("sites", AtMost(Documents)),
                int("pages", AtMost(Documents)),
                int("bytes", Size),
                int("duplicate_pages", AtMost(Documents)),
                int("duplicate_bytes", Size),
                flag("is_noise"),
                text("evidence", Layout::Plain),
                column("principal_reason", DataType::Utf8, true, Layout::Repeating, Any),
                maybe_text("principal_evidence"),
            ],
            Table::UrlRules => vec![
                int("rule", Dense),
                maybe_text("host"),
                text("kind", Layout::Repeating),
                text("pattern", Layout::Plain),
                int("support", Size),
                int("checked", Size),
                share("confidence"),
                text("example_from", Layout::Plain),
                text("example_to", Layout::Plain),
            ],
        }
    }
}

/// Rows that make about eight megabytes of lists.
fn group_rows(len: u32, element_bytes: usize) -> usize {
    let row = (len as usize).clamp(1, MAX_LIST_LEN as usize) * element_bytes;
    ((8 << 20) / row).clamp(1 << 10, 256 << 10)
}

fn timestamp() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

fn list_field(name: &str, element: DataType, len: u32) -> Field {
    Field::new(name, list_type(element, len), false)
}

/// A fixed-size list of non-null elements, named as the Parquet specification names them.
pub(crate) fn list_type(element: DataType, len: u32) -> DataType {
    let len = i32::try_from(len.min(MAX_LIST_LEN)).unwrap_or(i32::MAX);
    DataType::FixedSizeList(list_element(element), len)
}

/// The element field of our lists.
pub(crate) fn list_element(element: DataType) -> FieldRef {
    Arc::new(Field::new("element", element, false))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

/// How a column that was found fits the one wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It is the same.
    Same,
    /// It can be cast without loss.
    Cast,
    /// It cannot be used.
    Not,
}

/// Whether a column of type `found` can stand for one of type `wanted`.
pub(crate) fn fit(found: &DataType, wanted: &DataType) -> Fit {
    use DataType as T;
    if found == wanted {
        return Fit::Same;
    }
    let casts = match (wanted, found) {
        (T::Int64, T::Int8 | T::Int16 | T::Int32 | T::UInt8 | T::UInt16 | T::UInt32) => true,
        (T::Int32, T::Int8 | T::Int16 | T::UInt8 | T::UInt16) => true,
        (T::Float64, T::Float32) => true,
        (T::Utf8, T::LargeUtf8 | T::Utf8View) => true,
        (T::Utf8, T::Dictionary(_, value)) => matches!(**value, T::Utf8 | T::LargeUtf8),
        (T::Timestamp(..), T::Timestamp(..)) => true,
        (T::FixedSizeBinary(_), T::Binary | T::LargeBinary | T::BinaryView) => true,
        (T::FixedSizeList(want, _), T::List(have) | T::LargeList(have)) => {
            fit(have.data_type(), want.data_type()) != Fit::Not
        }
        (T::FixedSizeList(want, n), T::FixedSizeList(have, m)) => {
            n == m && fit(have.data_type(), want.data_type()) != Fit::Not
        }
        _ => false,
    };
    if casts { Fit::Cast } else { Fit::Not }
}

/// Checks that `found` has every column of `table` with a type that fits, and gives their indices
/// in the table's order; `None` for a column that came later than the file.
pub(crate) fn check(found: &Schema, table: &Table, file: &str) -> Result<Vec<Option<usize>>, TableError> {
    let mut indices = Vec::new();
    for Column { field: wanted, .. } in table.columns() {
        let Ok(index) = found.index_of(wanted.name()) else {
            if table.is_later(wanted.name()) {
                indices.push(None);
                continue;
            }
            let columns = found.fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>().join(", ");
            return Err(TableError::MissingColumn {
                table: table.to_string(),
                file: file.to_owned(),
                column: wanted.name().clone(),
                columns,
            });
        };
        let have = found.field(index).data_type();
        // The length of a list is the file's to say; readers check that all rows agree.
        let want = match (wanted.data_type(), have) {
            (DataType::FixedSizeList(element, _), DataType::FixedSizeList(_, len)) => {
                DataType::FixedSizeList(Arc::clone(element), *len)
            }
            (want, _) => want.clone(),
        };
        if fit(have, &want) == Fit::Not {
            return Err(TableError::ColumnType {
                table: table.to_string(),
                file: file.to_owned(),
                column: wanted.name().clone(),
                found: have.to_string(),
                wanted: want.to_string(),
            });
        }
        indices.push(Some(index));
    }
    Ok(indices)
}

#[cfg(test)]
mod tests;
