//! Output that is compared with files in `tests/golden`. `ONIONSKIN_BLESS=1` rewrites them.

mod demo;
mod file;
mod help;
mod json;
mod shape;
