//! How fast records are sorted, and chunks written and read: `cargo run --release -p onionskin-store --example store_speed`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use onionskin_store::process::cpu_seconds;
use onionskin_store::schema::ChunkingName;
use onionskin_store::sort::{SortParams, Sorter};
use onionskin_store::storage::Disk;
use onionskin_store::table::{ChunksReader, ChunksWriter, PartParams, PartWriter};
use onionskin_store::{MemoryBudget, Table};

/// Spreads small numbers over 64 bits.
fn spread(i: u64) -> u64 {
    i.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let n = 20_000_000u64;
    for (name, mib) in [("in memory", 512), ("spilled", 32)] {
        let mut sorter = Sorter::new(SortParams::new(dir.path(), MemoryBudget::from_mib(mib)))?;
        let start = cpu_seconds();
        for i in 0..n {
            sorter.push((spread(i), i as u32))?;
        }
        let mut stream = sorter.finish()?;
        let mut block = Vec::new();
        while stream.next_block(&mut block, 4096)? {}
        let seconds = cpu_seconds() - start;
        println!("sorted {name}: {:.1} M records a CPU second", n as f64 / 1e6 / seconds);
    }

    let chunking = ChunkingName::new("w4").ok_or("a name")?;
    let fps: Vec<u64> = (0..1000).map(spread).collect();
    let params = PartParams { table: Table::Chunks(chunking.clone()), recipe: String::new() };
    let part = PartWriter::create(Disk::shared().as_ref(), &dir.path().join("chunks.parquet"), &params)?;
    let mut writer = ChunksWriter::new(part);
    let start = cpu_seconds();
    for doc in 0..50_000 {
        writer.push(doc, &fps)?;
    }
    let meta = writer.finish(false)?;
    println!("chunks written: {:.1} M rows a CPU second", meta.rows as f64 / 1e6 / (cpu_seconds() - start));
    let start = cpu_seconds();
    let mut reader = ChunksReader::new(chunking, [meta.file]);
    while reader.next_group()?.is_some() {}
    println!("chunks read: {:.1} M rows a CPU second", meta.rows as f64 / 1e6 / (cpu_seconds() - start));
    Ok(())
}
