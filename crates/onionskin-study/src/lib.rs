//! How much is copied, where, and how large it all is: parts of a web, how copies are spread over
//! it, figures, reports, sizes.

pub mod figure;
pub mod findings;
pub mod graph;
pub mod growth;
pub mod power_law;
pub mod replication;
pub mod report;
pub mod size;
mod study;

pub use report::{ReportSummary, report};
pub use study::{CompareParams, ReportError, ReportParams, compare, study};
