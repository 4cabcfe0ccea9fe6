//! Tokens, chunkings, Rabin fingerprints, sketches and features: the mathematics of resemblance.

pub mod unicode;
