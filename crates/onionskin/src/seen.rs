//! The online filter: see [`onionskin_seen`].

pub use onionskin_seen::*;
