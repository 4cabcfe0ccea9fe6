//! Additions and checks per second, and bytes per document, of an index of generated features.
//!
//! With `COMPACT=1` each size is compacted and measured again. With `ONLY_CHECK=1` the directory
//! has such an index already, of the one size that is given. `BATCH` and `MEMORY` are 1000 and 2G.
//! Checks are counted per CPU second as well, which other programs do not change.
//!
//! Features are random, so every document is a centre: the largest index that so many documents can
//! make. Half of the checks are of documents that are there. `cold` is the first time after
//! opening, with the files still in the memory of the system; `warm` is again.

use std::path::Path;
use std::time::Instant;

use onionskin_core::SplitMix64;
use onionskin_seen::{Document, Options, Params, Probe, Reader, Seen};
use onionskin_store::MemoryBudget;
use onionskin_store::process::cpu_seconds;

const CHECKS: u64 = 500_000;

fn features(id: u64) -> (u64, [u64; 6]) {
    let mut rng = SplitMix64::new(id.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (rng.next_u64(), [(); 6].map(|()| rng.next_u64()))
}

/// Fills an index up to each of the sizes, and measures it there.
pub(crate) fn measure(dir: &Path, sizes: &[u64]) -> anyhow::Result<()> {
    let batch: u64 = std::env::var("BATCH").map_or(Ok(1000), |batch| batch.parse())?;
    let memory = std::env::var("MEMORY").map_or(Ok(MemoryBudget::from_mib(2048)), |memory| memory.parse())?;
    if std::env::var_os("ONLY_CHECK").is_some() {
        return tell(dir, memory, sizes[0], "as it is");
    }
    let recipe = "w4-rabin64-6x14r2".parse()?;
    let mut seen = Seen::create(dir, Params::new(&recipe, 1, false)?, Options::new(memory))?;
    let mut added = 0;
    for &size in sizes {
        let (start, cpu, from) = (Instant::now(), cpu_seconds(), added);
        let mut slowest = 0.0f64;
        while added < size {
            let batch_start = Instant::now();
            for _ in 0..batch {
                let (text_fp, features) = features(added);
                let probe = Probe::new(text_fp, &features);
                let outcome = seen.add_if_new(&Document { probe, key: added, name: "" })?;
                assert!(outcome.seen.is_none());
                added += 1;
            }
            seen.commit()?;
            slowest = slowest.max(batch_start.elapsed().as_secs_f64());
        }
        let seconds = start.elapsed().as_secs_f64();
        let rate = (added - from) as f64 / seconds;
        println!(
            "{added} documents: {rate:.0} durable additions a second in batches of {batch}, {:.0} by processor time, slowest batch {slowest:.2} s",
            (added - from) as f64 / (cpu_seconds() - cpu)
        );
        tell(dir, memory, added, "as it is")?;
        if std::env::var_os("COMPACT").is_some() {
            let start = Instant::now();
            seen.compact()?;
            println!("compacted in {:.1} s", start.elapsed().as_secs_f64());
            tell(dir, memory, added, "compacted")?;
        }
    }
    Ok(())
}

fn tell(dir: &Path, memory: MemoryBudget, added: u64, what: &str) -> anyhow::Result<()> {
    let reader = Reader::open(dir, memory)?;
    let stats = reader.stats();
    println!(
        "  {what}: {:.2} bytes a document, {} runs, {} in the log",
        stats.bytes_per_document(),
        stats.runs,
        stats.in_log
    );
    // Enough to read every block.
    for round in ["cold", "warm", "warm"] {
        let (start, cpu) = (Instant::now(), cpu_seconds());
        let mut rng = SplitMix64::new(7);
        let mut found = 0;
        for check in 0..CHECKS {
            let there = check % 2 == 0;
            let id = rng.next_u64() % added;
            let (text_fp, features) = features(if there { id } else { u64::MAX - id });
            let answer = reader.check(&Probe::new(text_fp, &features))?;
            assert_eq!(answer.map(|answer| answer.key), there.then_some(id));
            found += u64::from(there);
        }
        let rate = CHECKS as f64 / start.elapsed().as_secs_f64();
        let by_cpu = CHECKS as f64 / (cpu_seconds() - cpu);
        println!(
            "  {round}: {rate:.0} checks a second on one core, {by_cpu:.0} by processor time ({found} found)"
        );
    }
    println!("  memory at most: {:?} bytes", onionskin_store::process::peak_rss());
    Ok(())
}
