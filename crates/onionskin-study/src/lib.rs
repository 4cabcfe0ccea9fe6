//! How much is copied, and where: statistics, figures, reports.

pub mod figure;
pub mod graph;
pub mod report;
