//! Rows, writers and readers of what a search for copies leaves: `pairs`, `clusters`, `cluster_stats`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};

use super::typed::Columns;
use super::{Input, PartMeta, PartWriter, TableError, TableReader, ValueProblem};
use crate::schema::Table;

/// Rows in a batch.
const BATCH: usize = 64 << 10;

/// What found a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Method {
    /// Equal payload or equal canonical text.
    Exact,
    /// A number of shared chunks.
    Overlap,
    /// Resemblance of the shingle sets.
    Resemblance,
    /// A share of identical shingle paragraphs.
    Paragraphs,
}

/// Not a method.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown method {name:?}; known are {known}", known = Method::KNOWN)]
pub struct UnknownMethod {
    /// What was given.
    pub name: String,
}

impl Method {
    /// Every method.
    pub const ALL: [Method; 4] = [Method::Exact, Method::Overlap, Method::Resemblance, Method::Paragraphs];
    const KNOWN: &'static str = "exact, overlap, resemblance, paragraphs";

    /// The word in the table and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Method::Exact => "exact",
            Method::Overlap => "overlap",
            Method::Resemblance => "resemblance",
            Method::Paragraphs => "paragraphs",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(name: &str) -> Result<Method, UnknownMethod> {
        let found = Method::ALL.into_iter().find(|method| method.as_str() == name);
        found.ok_or_else(|| UnknownMethod { name: name.to_owned() })
    }
}

/// How a member of a cluster is a copy of its centre.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyKind {
    /// Equal payload or equal canonical text. The centre is exact too.
    Exact,
    /// Near.
    Near,
}

impl CopyKind {
    const KNOWN: &'static str = "exact, near";

    /// The word in the table.
    pub fn as_str(self) -> &'static str {
        match self {
            CopyKind::Exact => "exact",
            CopyKind::Near => "near",
        }
    }

    fn parse(word: &str) -> Option<CopyKind> {
        [CopyKind::Exact, CopyKind::Near].into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Two similar documents, verified.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairRow {
    /// The smaller document.
    pub a: u32,
    /// The larger document.
    pub b: u32,
    /// Chunks that both have.
    pub shared: u64,
    /// Shared of all chunks of the two.
    pub resemblance: f64,
    /// Shared of the chunks of `a`.
    pub containment_a: f64,
    /// Shared of the chunks of `b`.
    pub containment_b: f64,
    /// What found it.
    pub method: Method,
}

/// A member of a cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterRow {
    /// Number of the cluster: dense, in order of the smallest document.
    pub cluster: u32,
    /// The document.
    pub doc: u32,
    /// Whether it is the centre.
    pub is_centre: bool,
    /// Its resemblance to the centre; 1 for the centre.
    pub resemblance_to_centre: f64,
    /// How it is a copy of the centre.
    pub kind: CopyKind,
}

/// A cluster in numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClusterStatsRow {
    /// Number of the cluster.
    pub cluster: u32,
    /// Its centre.
    pub centre: u32,
    /// Members, the centre included.
    pub documents: u64,
    /// Members that are exact copies of the centre, the centre not counted.
    pub exact_copies: u64,
    /// Different sites of its members; documents without a site count as one.
    pub sites: u64,
    /// Members on the site of the centre, the centre not counted.
    pub same_site: u64,
    /// Members on other sites.
    pub cross_site: u64,
    /// The lowest resemblance to the centre.
    pub lowest_resemblance: f64,
}

fn ids(values: &[u32]) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.iter().map(|id| i64::from(*id))))
}

fn sizes(values: &[u64]) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values.iter().map(|n| i64::try_from(*n).unwrap_or(i64::MAX))))
}

fn shares(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from_iter_values(values.iter().copied()))
}

fn words<'a>(words: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(words))
}

/// A writer that gathers rows and a reader that hands them out one by one.
macro_rules! row_table {
    ($table:ident, $row:ident, $writer:ident, $reader:ident, $name:literal, $order:expr, $encode:expr, $decode:expr) => {
        #[doc = concat!("Writes `", $name, "`, in ascending order.")]
        #[derive(Debug)]
        pub struct $writer {
            part: PartWriter,
            last: Option<(u32, u32)>,
            rows: Vec<$row>,
        }

        impl $writer {
            #[doc = concat!("Writes to a part of the table `", $name, "`.")]
            pub fn new(part: PartWriter) -> $writer {
                debug_assert_eq!(part.table(), &Table::$table);
                $writer { part, last: None, rows: Vec::new() }
            }

            /// Rows so far.
            pub fn rows(&self) -> u64 {
                self.part.rows() + self.rows.len() as u64
            }

            /// Appends a row, which must come after the one before.
            pub fn push(&mut self, row: &$row) -> Result<(), TableError> {
                let key = ($order)(row);
                if self.last.is_some_and(|last| last >= key) {
                    return Err(TableError::OutOfOrder { table: $name.to_owned(), row: self.rows() });
                }
                self.last = Some(key);
                self.rows.push(*row);
                if self.rows.len() == BATCH { self.flush() } else { Ok(()) }
            }

            fn flush(&mut self) -> Result<(), TableError> {
                let columns: Vec<ArrayRef> = ($encode)(self.rows.as_slice());
                let batch = RecordBatch::try_new(Arc::clone(self.part.schema()), columns)
                    .map_err(|e| TableError::Encode { table: $name.to_owned(), reason: e.to_string() })?;
                self.rows.clear();
                self.part.write(&batch)
            }

            /// Writes the rest and the footer; with `sync`, returns when the file is on the disk.
            pub fn finish(mut self, sync: bool) -> Result<PartMeta, TableError> {
                if !self.rows.is_empty() {
                    self.flush()?;
                }
                self.part.finish(sync)
            }
        }

        #[doc = concat!("Reads `", $name, "`, one row after the other.")]
        #[derive(Debug)]
        pub struct $reader {
            reader: TableReader,
            rows: std::vec::IntoIter<$row>,
        }

        impl $reader {
            /// Reads the files in order.
            pub fn new(inputs: impl IntoIterator<Item = impl Into<Input>>) -> $reader {
                $reader { reader: TableReader::new(Table::$table, inputs), rows: Vec::new().into_iter() }
            }

            /// Leaves out row groups without values of this range in the first column that rows are sorted by; others of
            /// the row groups that are read still come.
            pub fn within(mut self, first: std::ops::RangeInclusive<u32>) -> $reader {
                let (start, end) = (i64::from(*first.start()), i64::from(*first.end()));
                if let Some(column) = Table::$table.sorted_by().first() {
                    self.reader = self.reader.within(column, start..=end);
                }
                self
            }

            fn fill(&mut self) -> Result<bool, TableError> {
                let Some((batch, file)) = self.reader.next_batch()? else { return Ok(false) };
                let columns = Columns { batch: &batch, table: &Table::$table, file };
                let rows: Result<Vec<$row>, TableError> = ($decode)(&columns);
                self.rows = rows?.into_iter();
                Ok(true)
            }
        }

        impl Iterator for $reader {
            type Item = Result<$row, TableError>;

            #[inline]
            fn next(&mut self) -> Option<Result<$row, TableError>> {
                loop {
                    if let Some(row) = self.rows.next() {
                        return Some(Ok(row));
                    }
                    match self.fill() {
                        Ok(true) => {}
                        Ok(false) => return None,
                        Err(error) => return Some(Err(error)),
                    }
                }
            }
        }
    };
}

row_table!(
    Pairs,
    PairRow,
    PairsWriter,
    PairsReader,
    "pairs",
    |row: &PairRow| (row.a, row.b),
    |rows: &[PairRow]| {
        let column = |of: fn(&PairRow) -> f64| shares(&rows.iter().map(of).collect::<Vec<_>>());
        vec![
            ids(&rows.iter().map(|row| row.a).collect::<Vec<_>>()),
            ids(&rows.iter().map(|row| row.b).collect::<Vec<_>>()),
            sizes(&rows.iter().map(|row| row.shared).collect::<Vec<_>>()),
            column(|row| row.resemblance),
            column(|row| row.containment_a),
            column(|row| row.containment_b),
            words(rows.iter().map(|row| row.method.as_str())),
        ]
    },
    |columns: &Columns<'_>| {
        let (a, b, shared) = (columns.ids("a")?, columns.ids("b")?, columns.sizes("shared")?);
        let resemblance = columns.shares("resemblance")?;
        let containment_a = columns.shares("containment_a")?;
        let containment_b = columns.shares("containment_b")?;
        let method = columns.strings("method")?;
        let row = |i: usize| {
            Ok(PairRow {
                a: a.value(i) as u32,
                b: b.value(i) as u32,
                shared: shared.value(i) as u64,
                resemblance: resemblance.value(i),
                containment_a: containment_a.value(i),
                containment_b: containment_b.value(i),
                method: method.value(i).parse().map_err(|_| {
                    columns.place("method").wrong(ValueProblem::Word { known: Method::KNOWN })
                })?,
            })
        };
        (0..a.len()).map(row).collect()
    }
);

row_table!(
    Clusters,
    ClusterRow,
    ClustersWriter,
    ClustersReader,
    "clusters",
    |row: &ClusterRow| (row.cluster, row.doc),
    |rows: &[ClusterRow]| {
        vec![
            ids(&rows.iter().map(|row| row.cluster).collect::<Vec<_>>()),
            ids(&rows.iter().map(|row| row.doc).collect::<Vec<_>>()),
            Arc::new(BooleanArray::from(rows.iter().map(|row| row.is_centre).collect::<Vec<_>>()))
                as ArrayRef,
            shares(&rows.iter().map(|row| row.resemblance_to_centre).collect::<Vec<_>>()),
            words(rows.iter().map(|row| row.kind.as_str())),
        ]
    },
    |columns: &Columns<'_>| {
        let (cluster, doc) = (columns.ids("cluster")?, columns.ids("doc")?);
        let is_centre = columns.typed("is_centre", |array| array.as_boolean_opt())?;
        let resemblance = columns.shares("resemblance_to_centre")?;
        let kind = columns.strings("kind")?;
        let row = |i: usize| {
            Ok(ClusterRow {
                cluster: cluster.value(i) as u32,
                doc: doc.value(i) as u32,
                is_centre: is_centre.value(i),
                resemblance_to_centre: resemblance.value(i),
                kind: CopyKind::parse(kind.value(i)).ok_or_else(|| {
                    columns.place("kind").wrong(ValueProblem::Word { known: CopyKind::KNOWN })
                })?,
            })
        };
        (0..doc.len()).map(row).collect()
    }
);

row_table!(
    ClusterStats,
    ClusterStatsRow,
    ClusterStatsWriter,
    ClusterStatsReader,
    "cluster_stats",
    |row: &ClusterStatsRow| (row.cluster, 0),
    |rows: &[ClusterStatsRow]| {
        let count = |of: fn(&ClusterStatsRow) -> u64| sizes(&rows.iter().map(of).collect::<Vec<_>>());
        vec![
            ids(&rows.iter().map(|row| row.cluster).collect::<Vec<_>>()),
            ids(&rows.iter().map(|row| row.centre).collect::<Vec<_>>()),
            count(|row| row.documents),
            count(|row| row.exact_copies),
            count(|row| row.sites),
            count(|row| row.same_site),
            count(|row| row.cross_site),
            shares(&rows.iter().map(|row| row.lowest_resemblance).collect::<Vec<_>>()),
        ]
    },
    |columns: &Columns<'_>| {
        let (cluster, centre) = (columns.ids("cluster")?, columns.ids("centre")?);
        let (documents, exact) = (columns.sizes("documents")?, columns.sizes("exact_copies")?);
        let (sites, same) = (columns.sizes("sites")?, columns.sizes("same_site")?);
        let (cross, lowest) = (columns.sizes("cross_site")?, columns.shares("lowest_resemblance")?);
        let row = |i: usize| {
            Ok(ClusterStatsRow {
                cluster: cluster.value(i) as u32,
                centre: centre.value(i) as u32,
                documents: documents.value(i) as u64,
                exact_copies: exact.value(i) as u64,
                sites: sites.value(i) as u64,
                same_site: same.value(i) as u64,
                cross_site: cross.value(i) as u64,
                lowest_resemblance: lowest.value(i),
            })
        };
        (0..cluster.len()).map(row).collect()
    }
);

impl Columns<'_> {
    /// Numbers from 0 to 1.
    fn shares(&self, name: &str) -> Result<Float64Array, TableError> {
        let array = self.typed(name, |array| array.as_primitive_opt::<Float64Type>())?;
        match array.values().iter().find(|value| !(0.0..=1.0).contains(*value)) {
            Some(value) => Err(self.place(name).wrong(ValueProblem::Share { value: *value })),
            None => Ok(array),
        }
    }
}
