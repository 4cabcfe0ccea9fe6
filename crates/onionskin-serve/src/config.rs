//! What a server is told when it starts.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use onionskin_store::MemoryBudget;

use crate::auth::Token;

/// What is served, where, and to whom.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder of the atlas.
    pub atlas: Option<PathBuf>,
    /// Where the inputs of the atlas are now, if not where they were.
    pub base: Option<PathBuf>,
    /// Where the full-text index of the atlas is; in the atlas when not given.
    pub index: Option<PathBuf>,
    /// Make the index although there is one.
    pub reindex: bool,
    /// The command that reads PDF files apart from this process.
    pub pdf_worker: Vec<String>,
    /// The folder of an index of seen documents.
    pub seen: Option<PathBuf>,
    /// Another process adds to the index; this one only looks.
    pub seen_read_only: bool,
    /// Where to listen. Port 0 takes a free one.
    pub listen: SocketAddr,
    /// What callers have to know.
    pub token: Option<Token>,
    /// Names by which the server may be called, besides those of this machine's loopback. With any
    /// of them, reading needs the token.
    pub allow_hosts: Vec<String>,
    /// Reading needs the token on loopback too.
    pub require_token: bool,
    /// Requests of a kind that are worked on at a time: see [`Lane`](crate::Lane).
    pub threads: usize,
    /// Memory for indexes and caches.
    pub memory: MemoryBudget,
    /// What a caller may use up.
    pub limits: Limits,
}

impl Config {
    /// Where to listen when nothing is said.
    pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7311);

    /// Serves nothing yet, on loopback.
    pub fn new(memory: MemoryBudget) -> Config {
        Config {
            atlas: None,
            base: None,
            index: None,
            reindex: false,
            pdf_worker: Vec::new(),
            seen: None,
            seen_read_only: false,
            listen: Config::LISTEN,
            token: None,
            allow_hosts: Vec::new(),
            require_token: false,
            threads: std::thread::available_parallelism().map_or(1, |n| n.get()),
            memory,
            limits: Limits::default(),
        }
    }
}

/// What a caller may use up.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open connections. Further ones wait until one of them ends, or until one on which nothing
    /// happens makes room.
    pub connections: usize,
    /// From the start of a connection, or from the end of a request, to the end of the next
    /// request's headers. So this is also how long an idle connection is kept: to the server both
    /// are the same, a connection that is open for nothing.
    pub header_time: Duration,
    /// From the headers to the end of the body.
    pub body_time: Duration,
    /// From the headers to the beginning of the answer.
    pub request_time: Duration,
    /// How long a caller may take none of the answer.
    pub write_time: Duration,
    /// How long running requests may go on when the server is to stop.
    pub stop_time: Duration,
    /// Bytes of one body.
    pub body_bytes: usize,
    /// Bytes of all bodies that are in memory at a time. Half of the memory, where that is less.
    pub all_body_bytes: usize,
    /// Bytes of a body from somebody who signs in.
    pub sign_in_bytes: usize,
    /// Requests of a kind that wait for a thread. Further ones are refused. One client has half of
    /// these places.
    pub queue: usize,
    /// Words of two documents together that are compared.
    pub compared_words: u64,
    /// Documents in one request.
    pub batch_documents: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 1024,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(20),
            request_time: Duration::from_secs(30),
            write_time: Duration::from_secs(30),
            stop_time: Duration::from_secs(10),
            body_bytes: 16 << 20,
            all_body_bytes: 256 << 20,
            sign_in_bytes: 4 << 10,
            queue: 256,
            compared_words: 200_000,
            batch_documents: 10_000,
        }
    }
}
