//! The server over real sockets.

mod atlas;
mod client;
mod limits;
mod rules;
mod seen;
