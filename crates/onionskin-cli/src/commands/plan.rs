//! `plan`: which recipe, the curve of its filter, and what a scan will cost.

mod advice;

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::Context;
use comfy_table::Table;
use onionskin_core::{Analyzer, Chunking, FeatureFilter, Recipe};
use onionskin_store::process;
use onionskin_testkit::{Composer, Web, WebSpec};
use serde::Serialize;

use crate::Exit;
use crate::args::{Global, PlanArgs};
use crate::output::{bytes, grouped, print, print_tagged, seconds, table};

pub(crate) use advice::Goal;
use advice::{Advice, Candidate, filter_of, lacks, name_of, wanted_filter};

/// `onionskin plan --json`.
#[derive(Serialize)]
struct PlanWire {
    recipe: String,
    /// Its name, if it has one.
    name: Option<&'static str>,
    reason: String,
    commands: Vec<String>,
    /// What each of the recipes with a name would take.
    named: Vec<NamedWire>,
    k: usize,
    s: usize,
    r: usize,
    bytes_per_document: usize,
    half_point: f64,
    steepest: f64,
    threshold: f64,
    miss_at_threshold: f64,
    far: f64,
    accepted_at_far: f64,
    documents: u64,
    disk: Vec<DiskWire>,
    disk_bytes: u64,
    text_bytes_per_cpu_second: Option<f64>,
    cpu_seconds: Option<f64>,
    curve: Vec<(f64, f64)>,
}

#[derive(Serialize)]
struct NamedWire {
    name: &'static str,
    about: &'static str,
    disk_bytes: u64,
    text_bytes_per_cpu_second: Option<f64>,
    cpu_seconds: Option<f64>,
    /// The filter that makes candidates with it, and the share of pairs at the threshold it misses.
    filter: String,
    miss_at_threshold: f64,
    /// Why it does not serve, if it does not.
    lacks: Option<String>,
}

#[derive(Serialize)]
struct DiskWire {
    table: String,
    bytes: u64,
}

pub(crate) fn run(args: &PlanArgs, global: &Global) -> anyhow::Result<Exit> {
    let candidates = candidates(args)?;
    let advice = Advice::new(args, &candidates)?;
    let (recipe, filter) = (&advice.recipe, advice.filter);
    let far = args.far.unwrap_or(args.threshold * 2.0 / 3.0);
    // Of a given filter, the two points at which it errs once in a hundred.
    let (threshold, far) = match args.filter {
        Some(filter) => (filter.resemblance_at(0.99), filter.resemblance_at(0.01)),
        None => (args.threshold, far),
    };
    let disk = disk(recipe, args.documents, args.mean_words);
    let known = candidates.iter().find(|candidate| candidate.recipe == *recipe);
    let speed = match known {
        Some(known) => known.text_bytes_per_cpu_second,
        None => (!args.no_measure).then(|| measure(recipe)),
    };
    let wire = PlanWire {
        recipe: recipe.to_string(),
        name: name_of(recipe),
        named: candidates.into_iter().map(|candidate| named(candidate, args)).collect(),
        reason: advice.reason,
        commands: advice.commands,
        k: filter.k(),
        s: filter.s(),
        r: filter.r(),
        bytes_per_document: filter.bytes_per_document(),
        half_point: filter.half_point(),
        steepest: filter.steepest_resemblance(),
        threshold,
        miss_at_threshold: filter.miss(threshold),
        far,
        accepted_at_far: filter.acceptance(far),
        documents: args.documents,
        disk_bytes: together(&disk),
        disk,
        text_bytes_per_cpu_second: speed,
        cpu_seconds: speed.map(|speed| text_bytes(args) / speed),
        curve: (0..=100).map(|i| f64::from(i) / 100.0).map(|x| (x, filter.acceptance(x))).collect(),
    };
    if global.json {
        print_tagged("plan", &wire)?
    } else {
        print(&describe(&wire, filter, args))?
    }
    Ok(Exit::Done)
}

/// Text has a word every six bytes, the blank included.
const BYTES_PER_WORD: f64 = 6.0;

fn text_bytes(args: &PlanArgs) -> f64 {
    args.documents as f64 * args.mean_words as f64 * BYTES_PER_WORD
}

/// The recipes with a name, each measured.
fn candidates(args: &PlanArgs) -> anyhow::Result<Vec<Candidate>> {
    // What cannot be asked for is said before anything is measured.
    wanted_filter(args)?;
    let of = |(name, spelling, about): (_, &str, _)| {
        let recipe: Recipe = spelling.parse()?;
        let filter = filter_of(&recipe, args).context("a recipe with a name has a filter")?;
        let speed = (!args.no_measure).then(|| measure(&recipe));
        Ok(Candidate {
            name,
            about,
            filter,
            disk_bytes: together(&disk(&recipe, args.documents, args.mean_words)),
            cpu_seconds: speed.map(|speed| text_bytes(args) / speed),
            text_bytes_per_cpu_second: speed,
            lacks: lacks(&recipe, filter, args),
            recipe,
        })
    };
    Recipe::NAMED.into_iter().map(of).collect()
}

fn named(candidate: Candidate, args: &PlanArgs) -> NamedWire {
    let Candidate { name, about, filter, disk_bytes, cpu_seconds, text_bytes_per_cpu_second, lacks, .. } =
        candidate;
    NamedWire {
        name,
        about,
        disk_bytes,
        text_bytes_per_cpu_second,
        cpu_seconds,
        filter: filter.to_string(),
        miss_at_threshold: filter.miss(args.threshold),
        lacks,
    }
}

fn together(disk: &[DiskWire]) -> u64 {
    disk.iter().map(|table| table.bytes).sum()
}

fn disk(recipe: &Recipe, documents: u64, mean_words: u64) -> Vec<DiskWire> {
    let mut disk = vec![];
    let mut add = |table: &str, per_document: f64| {
        disk.push(DiskWire { table: table.to_owned(), bytes: (per_document * documents as f64) as u64 });
    };
    // An address, a title and numbers, compressed.
    add("documents", 140.0);
    if let Some(filter) = recipe.scheme().filter() {
        add("features", filter.bytes_per_document() as f64 + 1.0);
    }
    if recipe.keeps_sketches() {
        add("sketches", 4.0 * recipe.scheme().sketch_len() as f64 + 1.0);
    }
    for chunking in recipe.kept_chunks() {
        let words = mean_words as f64;
        // A line of text has ten words, a sentence fifteen.
        let chunks = match chunking {
            Chunking::Document => 1.0,
            Chunking::Lines(n) => (words / 10.0 / f64::from(n.get())).max(1.0),
            Chunking::Sentences => words / 15.0,
            Chunking::Paragraphs => words / 60.0,
            Chunking::ShingleParagraphs => (words / 45.0).max(1.0),
            Chunking::Shingles(onionskin_core::token::Unit::Word, _) => words,
            Chunking::Shingles(onionskin_core::token::Unit::Letter, _) => words * 5.0,
            Chunking::Shingles(onionskin_core::token::Unit::Line, _) => words / 10.0,
        };
        // Eight bytes of fingerprint; the document's number is packed to nearly nothing.
        add(&format!("chunks.{chunking}"), 8.1 * chunks);
    }
    disk
}

/// Bytes of text per CPU second on this machine, in a third of a second.
fn measure(recipe: &Recipe) -> f64 {
    let mut analyzer = Analyzer::new(recipe, 1);
    let Ok(web) = Web::new(&WebSpec::new(200, 1)) else { return 1.0 };
    let mut composer = Composer::new(&web);
    let texts: Vec<String> = (0..web.n_pages()).map(|page| composer.text(page).to_owned()).collect();
    let (start, begun) = (Instant::now(), process::cpu_seconds());
    let mut done = 0;
    while start.elapsed() < Duration::from_millis(300) {
        for text in &texts {
            analyzer.analyze(text);
            done += text.len();
        }
    }
    // Others may use the processor meanwhile. A system that does not tell gives wall time.
    let used = process::cpu_seconds() - begun;
    done as f64 / if used > 0.0 { used } else { start.elapsed().as_secs_f64() }
}

fn describe(plan: &PlanWire, filter: FeatureFilter, args: &PlanArgs) -> String {
    let mut text = String::new();
    let name = plan.name.map(|name| format!("{name}, spelled ")).unwrap_or_default();
    let _ = writeln!(text, "recipe     {name}{}", plan.recipe);
    let _ = writeln!(text, "reason     {}", plan.reason);
    for command in &plan.commands {
        let _ = writeln!(text, "command    {command}");
    }
    let _ = writeln!(
        text,
        "filter     {} features of {} minima, {} must agree: {} bytes a document",
        plan.k, plan.s, plan.r, plan.bytes_per_document
    );
    let _ = writeln!(
        text,
        "half point {:.3}: pairs of this resemblance are found every second time",
        plan.half_point
    );
    let _ = writeln!(text, "misses     {} of pairs at {:.3}", rate(plan.miss_at_threshold), plan.threshold);
    let _ = writeln!(text, "lets pass  {} of pairs at {:.3}\n", rate(plan.accepted_at_far), plan.far);
    text.push_str(&curve(filter));
    let mut costs = table(&["on disk", "for all", "a document"]);
    for entry in &plan.disk {
        let each = entry.bytes as f64 / plan.documents.max(1) as f64;
        costs.add_row([entry.table.clone(), bytes(entry.bytes), format!("{each:.0} B")]);
    }
    let each = plan.disk_bytes as f64 / plan.documents.max(1) as f64;
    costs.add_row(["together".to_owned(), bytes(plan.disk_bytes), format!("{each:.0} B")]);
    let _ = writeln!(
        text,
        "\n{} documents of {} words\n{costs}\n{}",
        grouped(plan.documents),
        grouped(args.mean_words),
        compared(plan)
    );
    let _ = writeln!(
        text,
        "memory     what --memory allows; 160 MB and 48 MB a thread are enough for full speed"
    );
    if let (Some(speed), Some(time)) = (plan.text_bytes_per_cpu_second, plan.cpu_seconds) {
        let _ = writeln!(
            text,
            "time       {} on one core at {}/s of text as measured here, reading and writing not counted",
            seconds(time),
            bytes(speed as u64)
        );
    }
    text
}

/// The recipes with a name, side by side.
fn compared(plan: &PlanWire) -> Table {
    let mut rows = table(&["recipe", "on disk", "text per CPU second", "for"]);
    for named in &plan.named {
        let speed = named.text_bytes_per_cpu_second.map_or_else(String::new, |speed| bytes(speed as u64));
        let about = match &named.lacks {
            Some(lacks) => format!("{} ({lacks})", named.about),
            None => named.about.to_owned(),
        };
        rows.add_row([named.name.to_owned(), bytes(named.disk_bytes), speed, about]);
    }
    rows
}

fn rate(value: f64) -> String {
    if value >= 0.001 { format!("{:.2} %", 100.0 * value) } else { format!("{value:.1e}") }
}

/// P(k,s,r) from 0.4 to 1, a character a column.
fn curve(filter: FeatureFilter) -> String {
    const COLUMNS: usize = 61;
    const ROWS: usize = 13;
    let at = |column: usize| 0.4 + 0.6 * column as f64 / (COLUMNS - 1) as f64;
    let mut text = String::new();
    for row in 0..ROWS {
        let level = 1.0 - row as f64 / (ROWS - 1) as f64;
        let label = if row % 3 == 0 { format!("{level:4.2} ┤") } else { "     │".to_owned() };
        text.push_str(&label);
        let line: String = (0..COLUMNS)
            .map(|column| {
                let reached = filter.acceptance(at(column)) * (ROWS - 1) as f64;
                let here = (ROWS - 1 - row) as f64;
                match reached - here {
                    d if (-0.5..0.5).contains(&d) => '●',
                    d if d >= 0.5 => '·',
                    _ => ' ',
                }
            })
            .collect();
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text.push_str("     └");
    for column in 0..COLUMNS {
        text.push(if column % 10 == 0 { '┴' } else { '─' });
    }
    text.push_str("\n      0.4       0.5       0.6       0.7       0.8       0.9       1.0\n");
    text.push_str("      resemblance of two documents, and the probability that they meet\n");
    text
}
