//! `onionskin-bench STAGE RECIPE INPUT...`: one part of the scan on one thread, measured in
//! processor time.
//!
//! Stages build on each other: `read` hands out documents, `tokenize` cuts them into words as well,
//! `sketch` makes everything the recipe asks for. What the whole scan takes beyond `sketch` is
//! writing. `signature` is apart: texts are in memory before the clock starts, as they are for
//! peers.
//!
//! `onionskin-bench web PAGES LINKS ATLAS` makes an atlas of linked pages without texts, for the
//! search for mirrors.
//!
//! `onionskin-bench seen DIRECTORY DOCUMENTS...` fills an index of seen documents up to each of the
//! numbers and measures it.
#![allow(clippy::print_stdout, reason = "a tool for people and scripts")]

mod seen;
mod web;

use std::hint::black_box;
use std::sync::Arc;

use anyhow::{Context, bail};
use onionskin_core::token::{Tokenizer, Tokens, Unit};
use onionskin_core::{Analyzer, Recipe};
use onionskin_corpus::{
    BadRecord, Document, InputFailure, Options, Scratch, SkipReason, Tasks, Visitor, discover,
};
use onionskin_store::process;

enum Stage {
    Read,
    Tokenize(Box<Tokenizer>, Tokens),
    Sketch(Box<Analyzer>),
    Keep(Vec<String>),
}

struct Measured {
    stage: Stage,
    documents: u64,
    payload_bytes: u64,
    text_bytes: u64,
    bad_records: u64,
    failure: Option<InputFailure>,
}

impl Visitor for Measured {
    fn document(&mut self, document: Document<'_>) {
        self.documents += 1;
        self.payload_bytes += document.bytes;
        self.text_bytes += document.text.len() as u64;
        match &mut self.stage {
            Stage::Read => {
                black_box(document);
            }
            Stage::Tokenize(tokenizer, tokens) => {
                tokenizer.tokenize(document.text, tokens);
                black_box(tokens);
            }
            Stage::Sketch(analyzer) => {
                black_box(analyzer.analyze(document.text).sketch());
            }
            Stage::Keep(texts) => texts.push(document.text.to_owned()),
        }
    }

    fn bad_record(&mut self, _: BadRecord) {
        self.bad_records += 1;
    }

    fn skipped(&mut self, _: SkipReason) {}

    fn failed(&mut self, failure: InputFailure) {
        self.failure.get_or_insert(failure);
    }
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: onionskin-bench read|tokenize|sketch|signature RECIPE INPUT...";
    let stage = arguments.next().context(usage)?;
    if stage == "web" {
        let usage = "usage: onionskin-bench web PAGES LINKS-A-PAGE ATLAS";
        let pages = arguments.next().context(usage)?.parse()?;
        let links = arguments.next().context(usage)?.parse()?;
        return web::write(pages, links, arguments.next().context(usage)?.as_ref());
    }
    if stage == "seen" {
        let usage = "usage: onionskin-bench seen DIRECTORY DOCUMENTS...";
        let directory = arguments.next().context(usage)?;
        let sizes: Vec<u64> = arguments.map(|size| size.parse()).collect::<Result<_, _>>()?;
        anyhow::ensure!(!sizes.is_empty(), usage);
        return seen::measure(directory.as_ref(), &sizes);
    }
    let recipe: Recipe = arguments.next().context(usage)?.parse()?;
    let inputs: Vec<String> = arguments.collect();
    let stage = match stage.as_str() {
        "read" => Stage::Read,
        "tokenize" => {
            let tokenizer = Tokenizer::new(Unit::Word, recipe.form(), recipe.width());
            Stage::Tokenize(Box::new(tokenizer), Tokens::default())
        }
        "signature" => Stage::Keep(vec![]),
        "sketch" => Stage::Sketch(Box::new(Analyzer::new(&recipe, 1))),
        other => bail!("unknown stage {other}\n{usage}"),
    };
    let mut measured =
        Measured { stage, documents: 0, payload_bytes: 0, text_bytes: 0, bad_records: 0, failure: None };
    let options = Arc::new(Options::default());
    let mut tasks = Tasks::new(discover(&inputs, &options)?.into(), Arc::clone(&options));
    let mut scratch = Scratch::new(&options);
    let start = process::cpu_seconds();
    while let Some(task) = tasks.next_task() {
        task.run(&mut scratch, &mut measured);
    }
    if let Some(failure) = measured.failure {
        bail!("an input failed at byte {}: {}", failure.byte, failure.detail);
    }
    let mut seconds = process::cpu_seconds() - start;
    if let Stage::Keep(texts) = &measured.stage {
        let mut analyzer = Analyzer::new(&recipe, 1);
        let start = process::cpu_seconds();
        for text in texts {
            black_box(analyzer.analyze(text).sketch());
        }
        seconds = process::cpu_seconds() - start;
    }
    let line = serde_json::json!({
        "documents": measured.documents,
        "payload_bytes": measured.payload_bytes,
        "text_bytes": measured.text_bytes,
        "bad_records": measured.bad_records,
        "cpu_seconds": seconds,
        "peak_memory": process::peak_rss(),
    });
    println!("{line}");
    Ok(())
}
