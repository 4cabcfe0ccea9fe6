//! What a web looks like: its parts, how copies are spread over it, and figures.

pub mod figure;
pub mod graph;
pub mod growth;
pub mod power_law;
