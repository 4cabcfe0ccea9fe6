//! Records sorted, in memory and spilled, beside `Vec::sort_unstable`; chunks written and read.
#![allow(clippy::unwrap_used, reason = "a bench")]

use std::path::Path;

use divan::Bencher;
use divan::counter::ItemsCount;
use onionskin_core::DocId;
use onionskin_store::schema::ChunkingName;
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::storage::Disk;
use onionskin_store::table::{ChunksReader, ChunksWriter, PartParams, PartWriter};
use onionskin_store::{MemoryBudget, PartMeta, Table};

/// Records to sort, of 12 bytes.
const RECORDS: u64 = 500_000;
/// Documents with chunks, and chunks of each.
const DOCUMENTS: u32 = 500;
const CHUNKS: u64 = 1_000;

fn main() {
    divan::main();
}

/// Spreads small numbers over 64 bits.
fn spread(i: u64) -> u64 {
    i.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn records() -> impl Iterator<Item = (u64, u32)> {
    (0..RECORDS).map(|i| (spread(i), i as u32))
}

/// In memory with 64 MiB, spilled with 1.
#[divan::bench(args = [64, 1], sample_count = 10)]
fn sort(bencher: Bencher<'_, '_>, mib: u64) {
    let dir = tempfile::tempdir().unwrap();
    bencher.counter(ItemsCount::new(RECORDS)).bench_local(|| {
        let mut sorter = Sorter::new(SortParams::new(dir.path(), MemoryBudget::from_mib(mib))).unwrap();
        for record in records() {
            sorter.push(record).unwrap();
        }
        let mut stream = sorter.finish().unwrap();
        let mut block = Vec::new();
        while stream.next_block(&mut block, 4096).unwrap() {}
    });
}

#[divan::bench(sample_count = 10)]
fn sort_naive(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(RECORDS)).bench_local(|| {
        let mut all: Vec<(u64, u32)> = records().collect();
        all.sort_unstable();
        all
    });
}

fn chunking() -> ChunkingName {
    ChunkingName::new("w4").unwrap()
}

fn write_chunks(path: &Path) -> PartMeta {
    let chunks: Vec<u64> = (0..CHUNKS).map(spread).collect();
    let params = PartParams { table: Table::Chunks(chunking()), recipe: String::new() };
    let part = PartWriter::create(Disk::shared().as_ref(), path, &params).unwrap();
    let mut writer = ChunksWriter::new(part);
    for doc in 0..DOCUMENTS {
        writer.push(DocId(doc), &chunks).unwrap();
    }
    writer.finish(false).unwrap()
}

#[divan::bench(sample_count = 10)]
fn chunks_written(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("chunks.parquet");
    bencher.counter(ItemsCount::new(u64::from(DOCUMENTS) * CHUNKS)).bench_local(|| write_chunks(&path));
}

#[divan::bench(sample_count = 10)]
fn chunks_read(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().unwrap();
    let meta = write_chunks(&dir.path().join("chunks.parquet"));
    bencher.counter(ItemsCount::new(meta.rows)).bench_local(|| {
        let mut reader = ChunksReader::new(chunking(), [meta.file.clone()]);
        while reader.next_group().unwrap().is_some() {}
    });
}
