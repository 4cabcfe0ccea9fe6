//! How fast text becomes features: `cargo run --release -p onionskin-core --example analyze_speed -- FILE [RECIPE]`.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::time::Instant;

use onionskin_core::{Analyzer, Recipe};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("name a text file")?;
    let text = std::fs::read_to_string(path)?;
    let documents: Vec<&str> = text.split("\n\n\n").collect();
    let recipes: Vec<String> = arguments.collect();
    let recipes = if recipes.is_empty() { vec![Recipe::DEFAULT.to_owned()] } else { recipes };
    for spelling in recipes {
        let mut analyzer = Analyzer::new(&spelling.parse()?, 1);
        let mut best = f64::MAX;
        let mut check = 0;
        for _ in 0..5 {
            let start = Instant::now();
            check = 0;
            for document in &documents {
                check ^= analyzer.analyze(document).features().iter().fold(0, |sum, feature| sum ^ feature);
            }
            best = best.min(start.elapsed().as_secs_f64());
        }
        println!(
            "{spelling}: {:.0} MB/s ({} documents, {check:016x})",
            text.len() as f64 / best / 1e6,
            documents.len()
        );
    }
    Ok(())
}
