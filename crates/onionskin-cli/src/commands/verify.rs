//! `verify`: is the atlas whole?

use onionskin_store::Atlas;
use onionskin_store::atlas::VerifyDepth;
use serde::Serialize;

use crate::Exit;
use crate::args::{Global, VerifyArgs};
use crate::output::{grouped, print, print_json};

#[derive(Serialize)]
struct VerifyWire {
    r#type: &'static str,
    atlas: String,
    whole: bool,
    files: u64,
    damage: Vec<DamageWire>,
}

#[derive(Serialize)]
struct DamageWire {
    file: String,
    problem: String,
}

pub(crate) fn run(args: &VerifyArgs, global: &Global) -> anyhow::Result<Exit> {
    let atlas = Atlas::open(&args.atlas)?;
    let report = atlas.verify(if args.deep { VerifyDepth::Rows } else { VerifyDepth::Checksums });
    if global.json {
        let damage = report.damage.iter();
        let damage = damage.map(|d| DamageWire { file: d.file.clone(), problem: d.problem.clone() });
        print_json(&VerifyWire {
            r#type: "verify",
            atlas: args.atlas.display().to_string(),
            whole: report.is_whole(),
            files: report.files,
            damage: damage.collect(),
        })?;
    } else {
        let mut text = String::new();
        for damage in &report.damage {
            text.push_str(&format!("{}: {}\n", damage.file, damage.problem));
        }
        text.push_str(&match report.damage.len() {
            0 => format!("{} files, all whole\n", grouped(report.files)),
            n => format!("{} of {} files damaged\n", grouped(n as u64), grouped(report.files)),
        });
        print(&text)?;
    }
    Ok(if report.is_whole() { Exit::Done } else { Exit::No })
}
