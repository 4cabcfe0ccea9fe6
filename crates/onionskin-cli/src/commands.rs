//! One module a verb.

use std::collections::BTreeMap;
use std::path::Path;

use onionskin_store::{Atlas, TableName};
use serde::Serialize;

use crate::Exit;
use crate::args::Global;
use crate::output::{grouped, print, print_tagged, shown};

pub(crate) mod avoid;
pub(crate) mod collections;
pub(crate) mod dedup;
pub(crate) mod demo;
pub(crate) mod evaluate;
pub(crate) mod explain;
pub(crate) mod generate;
pub(crate) mod man;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod scan;
pub(crate) mod seen;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod similar;
pub(crate) mod size;
pub(crate) mod verify;

/// Says that the result of this very command is there, and what it is.
fn nothing_to_do(
    global: &Global,
    command: &'static str,
    place: &Path,
    found: &[(&'static str, u64)],
    hint: &str,
) -> anyhow::Result<Exit> {
    if global.json {
        let found: BTreeMap<&str, u64> = found.iter().copied().collect();
        let place = place.display().to_string();
        let answer = NothingToDo { command, place: &place, found };
        print_tagged("nothing_to_do", &answer)?;
    } else {
        let found: Vec<String> =
            found.iter().map(|(name, number)| format!("{} {name}", grouped(*number))).collect();
        let found = if found.is_empty() { String::new() } else { format!(": {}", found.join(", ")) };
        let place = shown(&place.display().to_string()).into_owned();
        print(&format!(
            "nothing to do: {place} has the result of this {command} already{found}\nhint: {hint}\n"
        ))?;
    }
    Ok(Exit::Done)
}

#[derive(Serialize)]
struct NothingToDo<'a> {
    command: &'a str,
    place: &'a str,
    found: BTreeMap<&'a str, u64>,
}

/// Rows of a table of an atlas.
fn rows_of(atlas: &Atlas, table: &TableName) -> u64 {
    atlas.manifest().tables.get(table).map_or(0, |table| table.rows)
}

/// Hostile PDF files are read by a process of their own, which is this program again.
fn pdf_worker() -> Vec<String> {
    let program = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
    program.map(|program| vec![program, "pdf-worker".to_owned()]).unwrap_or_default()
}
