//! The real executable, as people run it.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod bad_inputs;
mod cli;
mod collections;
mod compressed;
mod dedup;
mod digests;
mod evaluate;
mod explain;
#[cfg(feature = "serve")]
mod golden;
mod inputs;
mod kill;
mod layouts;
mod memory;
mod nothing_to_do;
#[cfg(unix)]
mod progress;
mod report;
mod reread;
mod run;
mod seen;
#[cfg(feature = "serve")]
mod seen_edges;
#[cfg(feature = "serve")]
mod serve;
mod similar;
mod size;
mod trust;
mod util;
