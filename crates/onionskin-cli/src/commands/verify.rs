//! `verify`: is the atlas whole?

use onionskin_store::atlas::{VerifyDepth, VerifyReport};
use onionskin_store::{Atlas, MemoryBudget};
use serde::Serialize;

use crate::Exit;
use crate::args::{Global, VerifyArgs};
use crate::output::{grouped, print, print_tagged};

#[derive(Serialize)]
struct Verified<'a> {
    atlas: String,
    whole: bool,
    #[serde(flatten)]
    report: &'a VerifyReport,
}

pub(crate) fn run(args: &VerifyArgs, global: &Global) -> anyhow::Result<Exit> {
    let atlas = Atlas::open(&args.atlas)?;
    let depth = if args.deep { VerifyDepth::Rows } else { VerifyDepth::Checksums };
    let memory = args.memory.unwrap_or_else(MemoryBudget::default_for_machine);
    let report = atlas.verify_within(depth, memory);
    if global.json {
        let atlas = args.atlas.display().to_string();
        print_tagged("verify", &Verified { atlas, whole: report.is_whole(), report: &report })?;
    } else {
        let mut text = String::new();
        for damage in &report.damage {
            text.push_str(&format!("{}: {}\n", damage.file, damage.problem));
        }
        text.push_str(&match report.damage.len() {
            0 => format!("{} files, all whole\n", grouped(report.files)),
            n => format!("{} of {} files damaged\n", grouped(n as u64), grouped(report.files)),
        });
        if let Some(stage) = report.stage_to_repeat() {
            text.push_str(&format!("run {stage} again, and the stages after it, or restore the files\n"));
        }
        print(&text)?;
    }
    Ok(if report.is_whole() { Exit::Done } else { Exit::No })
}
