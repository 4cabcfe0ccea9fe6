//! What a web looks like: its parts, and figures.

pub mod figure;
pub mod graph;
