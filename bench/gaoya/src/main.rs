//! `peer-gaoya INPUT OUTPUT [THRESHOLD]`: a whole job of the gaoya crate, JSONL in, pairs and
//! clusters out, on one thread.
//!
//! It is what a reader of gaoya's documentation would write, with the quicker of its choices: bands
//! from its own `calculate_minhash_params`, the container of ids that it calls faster, windows of
//! words hashed in place instead of joined into strings, and each document asked for before it is
//! inserted, so that a pair is met once.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};

use anyhow::Context;
use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32, VecContainer, calculate_minhash_params};
use gaoya::text::whitespace_split;

const SIZE: usize = 4;
const PERMUTATIONS: usize = 128;
const THRESHOLD: f64 = 0.8;

#[derive(serde::Deserialize)]
struct Record {
    text: String,
}

/// The smallest member of a document's component.
fn find(parents: &mut [u32], document: u32) -> u32 {
    let mut root = document;
    while parents[root as usize] != root {
        root = parents[root as usize];
    }
    let mut at = document;
    while parents[at as usize] != root {
        at = std::mem::replace(&mut parents[at as usize], root);
    }
    root
}

/// The most memory that this process has held; `None` where the system does not tell.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let usage = "usage: peer-gaoya INPUT OUTPUT [THRESHOLD]";
    let input = arguments.next().context(usage)?;
    let output = arguments.next().context(usage)?;
    let threshold = match arguments.next() {
        Some(text) => text.to_string_lossy().parse().context("the threshold is not a number")?,
        None => THRESHOLD,
    };
    let (bands, width) = calculate_minhash_params(threshold, PERMUTATIONS);
    let hasher = MinHasher32::new(bands * width);
    let mut index = MinHashIndex::<u32, u32, VecContainer<u32>>::new_index(bands, width, threshold);
    let mut pairs = vec![];
    let mut parents: Vec<u32> = vec![];
    for line in BufReader::new(File::open(&input)?).lines() {
        let record: Record = serde_json::from_str(&line?)?;
        let text = record.text.to_lowercase();
        let words: Vec<&str> = whitespace_split(&text).collect();
        let signature = hasher.create_signature(words.windows(SIZE.min(words.len()).max(1)));
        let document = parents.len() as u32;
        parents.push(document);
        for &other in index.query(&signature) {
            pairs.push((other, document));
            let (a, b) = (find(&mut parents, other), find(&mut parents, document));
            parents[a.max(b) as usize] = a.min(b);
        }
        index.insert(document, signature);
    }
    let mut out = BufWriter::new(File::create(&output)?);
    for (a, b) in &pairs {
        writeln!(out, "pair\t{a}\t{b}")?;
    }
    for document in 0..parents.len() as u32 {
        let root = find(&mut parents, document);
        if root != document {
            writeln!(out, "cluster\t{root}\t{document}")?;
        }
    }
    out.flush()?;
    let parameters = format!("{} hashes, {bands} bands of {width}, verified on sketches", bands * width);
    println!("{}", serde_json::json!({"parameters": parameters, "peak_memory": peak_memory()}));
    Ok(())
}
