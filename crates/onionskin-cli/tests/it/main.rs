//! The real executable, as people run it.

mod bad_inputs;
mod cli;
mod kill;
mod util;
