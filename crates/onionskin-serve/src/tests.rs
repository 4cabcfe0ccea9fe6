//! The server over real sockets.

mod client;
mod limits;
mod rules;
mod seen;
