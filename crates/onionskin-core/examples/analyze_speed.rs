//! How fast text becomes features: `cargo run --release -p onionskin-core --example analyze_speed -- FILE [RECIPE]`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use onionskin_core::{Analyzer, Recipe};

/// Seconds this thread has had a processor: other load on the machine does not count.
fn cpu_seconds() -> f64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    times.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("name a text file")?;
    let text = std::fs::read_to_string(path)?;
    let documents: Vec<&str> = text.split("\n\n\n").collect();
    let recipes: Vec<String> = arguments.collect();
    let recipes = if recipes.is_empty() { vec![Recipe::DEFAULT.to_owned()] } else { recipes };
    let rounds = if std::env::var_os("ONCE").is_some() { 1 } else { 5 };
    for spelling in recipes {
        let mut analyzer = Analyzer::new(&spelling.parse()?, 1);
        let mut best = f64::MAX;
        let mut check = 0;
        for _ in 0..rounds {
            let start = cpu_seconds();
            check = 0;
            for document in &documents {
                check ^= analyzer.analyze(document).features().iter().fold(0, |sum, feature| sum ^ feature);
            }
            best = best.min(cpu_seconds() - start);
        }
        println!(
            "{spelling}: {:.0} MB/s ({} documents, {check:016x})",
            text.len() as f64 / best / 1e6,
            documents.len()
        );
    }
    Ok(())
}
