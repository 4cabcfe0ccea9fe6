//! Reads inputs with one thread and says how fast: `cargo run --release --example read -- INPUT...`

#![allow(clippy::print_stdout, reason = "it is what the program is for")]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use onionskin_corpus::{
    BadRecord, Document, InputFailure, Options, Scratch, SkipReason, Source, Tasks, Visitor, discover,
};

#[derive(Default)]
struct Count {
    documents: u64,
    text_bytes: u64,
    links: u64,
    bad: Vec<BadRecord>,
    skipped: u64,
    failed: Option<String>,
}

impl Visitor for Count {
    fn document(&mut self, document: Document<'_>) {
        self.documents += 1;
        self.text_bytes += document.text.len() as u64;
        self.links += document.links.len() as u64;
    }

    fn bad_record(&mut self, bad: BadRecord) {
        self.bad.push(bad);
    }

    fn skipped(&mut self, _: SkipReason) {
        self.skipped += 1;
    }

    fn failed(&mut self, failure: InputFailure) {
        self.failed = Some(failure.detail);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let inputs: Vec<String> = std::env::args().skip(1).collect();
    let options = Arc::new(Options::default());
    let sources: Arc<[Source]> = discover(&inputs, &options)?.into();
    let start = Instant::now();
    let (mut scratch, mut count, mut input_bytes) = (Scratch::new(&options), Count::default(), 0);
    let mut tasks = Tasks::new(Arc::clone(&sources), Arc::clone(&options));
    while let Some(task) = tasks.next_task() {
        input_bytes += task.input_bytes();
        task.run(&mut scratch, &mut count);
    }
    if let Some(failure) = count.failed {
        return Err(failure.into());
    }
    let seconds = start.elapsed().as_secs_f64();
    for bad in count.bad.iter().take(10) {
        println!("{}: {}", sources[bad.source as usize].place(bad.offset), bad.reason);
    }
    println!(
        "{} documents, {} links, {} bad, {} skipped; {:.1} MB of input, {:.1} MB of text in {seconds:.3} s: {:.0} MB/s",
        count.documents,
        count.links,
        count.bad.len(),
        count.skipped,
        input_bytes as f64 / 1e6,
        count.text_bytes as f64 / 1e6,
        input_bytes as f64 / 1e6 / seconds,
    );
    Ok(())
}
