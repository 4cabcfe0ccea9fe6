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
