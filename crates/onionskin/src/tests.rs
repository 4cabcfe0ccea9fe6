//! What all later stages say of an atlas that is not what was written.

mod commands;
mod flips;
mod hostile;
