//! How long the bow tie of a large web takes: `cargo run --release -p onionskin-study --example graph_speed [MILLIONS]`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::convert::Infallible;
use std::time::Instant;

use onionskin_core::SplitMix64;
use onionskin_store::process::peak_rss;
use onionskin_study::graph::{LinkGraph, Part, bow_tie, crawl};

/// Links a document, on average, as in the larger crawls.
const DEGREE: f64 = 10.4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let millions: u32 = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    let nodes = millions * 1_000_000;
    let dir = tempfile::tempdir()?;
    for (name, limit) in [("file", 0), ("memory", u64::MAX)] {
        let start = Instant::now();
        let mut graph = LinkGraph::build(nodes, links(nodes).map(Ok::<_, Infallible>), limit, dir.path())?;
        println!(
            "{name}: {} documents, {} links, {} MiB, made in {:.1} s",
            graph.nodes(),
            graph.links(),
            graph.bytes() >> 20,
            start.elapsed().as_secs_f64()
        );
        let start = Instant::now();
        let bow = bow_tie(&mut graph)?;
        println!(
            "  bow tie in {:.1} s, peak {} MiB so far",
            start.elapsed().as_secs_f64(),
            peak_rss().unwrap_or(0) >> 20
        );
        for part in Part::ALL {
            println!("    {}: {}", part.name(), bow.count(part));
        }
        let start = Instant::now();
        let reached = crawl(&mut graph, bow.documents(Part::Core))?;
        println!("  crawl of {} in {:.1} s", reached.documents(), start.elapsed().as_secs_f64());
        let start = Instant::now();
        let reached = crawl(&mut graph, bow.documents(Part::Core).take(1))?;
        println!("  from one, depth {}, in {:.1} s", reached.by_depth().len(), start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Half of the documents have no links of their own; the others link nearby, where a site would be, and to pages anywhere, the popular ones more often.
fn links(nodes: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut rng = SplitMix64::new(1);
    let mut targets = Vec::new();
    (0..nodes).flat_map(move |doc| {
        targets.clear();
        let degree = if rng.next_u32() & 1 == 0 { 0 } else { rng.next_u32() % (4.0 * DEGREE) as u32 };
        for _ in 0..degree {
            let by_chance = rng.next_u32();
            let target = if !by_chance.is_multiple_of(4) {
                (doc / 200 * 200 + by_chance / 4 % 200).min(nodes - 1)
            } else {
                let uniform = f64::from(rng.next_u32()) / f64::from(u32::MAX);
                ((uniform * uniform * uniform) * f64::from(nodes - 1)) as u32
            };
            targets.push(target);
        }
        targets.sort_unstable();
        targets.dedup();
        targets.iter().map(|target| (doc, *target)).collect::<Vec<_>>()
    })
}
