//! One module a verb.

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

/// Hostile PDF files are read by a process of their own, which is this program again.
fn pdf_worker() -> Vec<String> {
    let program = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
    program.map(|program| vec![program, "pdf-worker".to_owned()]).unwrap_or_default()
}
