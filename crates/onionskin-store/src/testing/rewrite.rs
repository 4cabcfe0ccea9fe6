//! Tables rewritten as no stage writes them, with a manifest that is right: what only a look at the
//! values can find.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_schema::DataType;

use crate::atlas::{self, Atlas};
use crate::schema::{Table, TableName};
use crate::storage::Disk;
use crate::table::{PartParams, PartWriter, TableReader};

/// A change of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rewrite<'a> {
    /// Another value in the middle row of a column of integers.
    Integer(&'a str, i64),
    /// Another value in the middle row of a column of shares.
    Share(&'a str, f64),
    /// The rows in the opposite order.
    Reversed,
    /// All rows twice, one copy behind the other.
    Doubled,
    /// Each row twice, next to each other.
    Repeated,
    /// The first half of the rows only.
    Halved,
}

/// The columns of a table that are integers and those that are shares.
pub fn numbers_of(table: &Table) -> (Vec<String>, Vec<String>) {
    let of = |wanted: &DataType| {
        let columns = table.columns().into_iter().filter(|column| column.field.data_type() == wanted);
        columns.map(|column| column.field.name().clone()).collect()
    };
    (of(&DataType::Int64), of(&DataType::Float64))
}

/// Rewrites a table of one file. `false` when it has too few rows for the change.
pub fn rewrite(dir: &Path, name: &TableName, change: Rewrite<'_>) -> bool {
    let found = Atlas::open(dir).unwrap();
    let path = found.paths(name).unwrap().pop().unwrap();
    assert_eq!(found.paths(name).unwrap().len(), 1, "{name} has one file");
    let mut reader = TableReader::new(name.table().unwrap(), [path.as_path()]).batch_rows(1 << 24);
    let Some((batch, _)) = reader.next_batch().unwrap() else { return false };
    assert!(reader.next_batch().unwrap().is_none(), "{name} is small");
    let batch = batch.clone();
    let rows = batch.num_rows();
    let one = |row| batch.slice(row, 1);
    let changed: Vec<RecordBatch> = match change {
        Rewrite::Integer(column, value) => vec![with_value(&batch, column, |array| {
            let numbers = array.as_primitive::<Int64Type>().iter().enumerate();
            let numbers = numbers.map(|(row, old)| if row == rows / 2 { Some(value) } else { old });
            Arc::new(numbers.collect::<Int64Array>())
        })],
        Rewrite::Share(column, value) => vec![with_value(&batch, column, |array| {
            let numbers = array.as_primitive::<Float64Type>().iter().enumerate();
            let numbers = numbers.map(|(row, old)| if row == rows / 2 { Some(value) } else { old });
            Arc::new(numbers.collect::<Float64Array>())
        })],
        Rewrite::Reversed => (0..rows).rev().map(one).collect(),
        Rewrite::Doubled => vec![batch.clone(), batch.clone()],
        Rewrite::Repeated => (0..rows).flat_map(|row| [one(row), one(row)]).collect(),
        Rewrite::Halved => vec![batch.slice(0, rows / 2)],
    };
    if changed.len() == 1 && changed.first() == Some(&batch) || rows < 2 {
        return false;
    }
    let mut table = name.table().unwrap();
    if let (Table::Sketches { len } | Table::Features { len }, DataType::FixedSizeList(_, found)) =
        (&mut table, batch.column(1).data_type())
    {
        *len = u32::try_from(*found).unwrap();
    }
    let params = PartParams { table, recipe: found.manifest().recipe.clone() };
    let mut part = PartWriter::create(&Disk, &path, &params).unwrap();
    for batch in &changed {
        part.write(&batch.clone().with_schema(Arc::clone(part.schema())).unwrap()).unwrap();
    }
    let meta = part.finish(false).unwrap();
    let mut manifest = found.manifest().clone();
    let entry = manifest.tables.get_mut(name).unwrap();
    entry.rows = meta.rows;
    (entry.files[0].rows, entry.files[0].bytes, entry.files[0].xxh3) = (meta.rows, meta.bytes, meta.xxh3);
    atlas::write_manifest(&Disk, dir, &manifest).unwrap();
    true
}

fn with_value(batch: &RecordBatch, column: &str, change: impl FnOnce(&dyn Array) -> ArrayRef) -> RecordBatch {
    let at = batch.schema().index_of(column).unwrap();
    let mut columns = batch.columns().to_vec();
    columns[at] = change(columns[at].as_ref());
    RecordBatch::try_new(batch.schema(), columns).unwrap()
}

/// Copies a folder with everything in it.
pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let there = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &there);
        } else {
            fs::copy(entry.path(), there).unwrap();
        }
    }
}
