//! What a web looks like: figures.

pub mod figure;
