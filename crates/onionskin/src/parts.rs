//! Pieces of the stages, for engines that move the data themselves.
//!
//! On one machine a stage reads, sorts and writes. Where many machines share the work, an engine such as Apache Spark does that, and
//! needs what is in between: functions of the rows that it has brought together, which give what the stage would give. They know
//! no files but the inputs, keep nothing between calls, and rely on no order of rows.
//!
//! - [`scan`] reads a piece of the inputs and fingerprints it;
//! - [`similar`] has features, prefixes, verification and clusters;
//! - [`mirror`] has the link structure: components, and collections of one component at a time.

pub mod mirror;
pub mod scan;
pub mod similar;
