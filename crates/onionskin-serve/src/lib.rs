//! The server of onionskin.
