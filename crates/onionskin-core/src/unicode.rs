//! Frozen character tables.
