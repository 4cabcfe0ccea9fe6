//! What a web looks like: figures, and how big it is.

pub mod figure;
pub mod size;
