//! Full-text search over an atlas.
