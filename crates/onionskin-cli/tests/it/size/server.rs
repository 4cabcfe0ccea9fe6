//! Search engines on the loopback: an inverted index behind a form, conjunctive queries, a ranking
//! of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A page of an engine.
#[derive(Clone)]
pub struct Page {
    pub url: String,
    pub text: String,
    /// Small numbers come first.
    pub rank: u64,
}

/// An engine that answers until the test ends.
pub struct Engine {
    address: String,
    requests: Arc<AtomicU64>,
}

impl Engine {
    /// Every `fails_every`th request is answered with 503.
    pub fn start(pages: Vec<Page>, fails_every: Option<u64>) -> Engine {
        Engine::of(|_| pages, fails_every)
    }

    /// The same, for pages that stand at its own address.
    pub fn of(pages: impl FnOnce(&str) -> Vec<Page>, fails_every: Option<u64>) -> Engine {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let pages = pages(&address);
        let requests = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&requests);
        let mut index: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        for (at, page) in pages.iter().enumerate() {
            for word in page.text.split_whitespace() {
                index.entry(word.to_lowercase()).or_default().insert(at);
            }
        }
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let nth = counted.fetch_add(1, Ordering::SeqCst) + 1;
                let fails = fails_every.is_some_and(|every| nth.is_multiple_of(every));
                let _ = answer(stream, &pages, &index, fails);
            }
        });
        Engine { address, requests }
    }

    /// The template of its address.
    pub fn template(&self) -> String {
        format!("http://{}/search?q={{query}}&n={{count}}&from={{start}}", self.address)
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

fn answer(
    mut stream: TcpStream,
    pages: &[Page],
    index: &BTreeMap<String, BTreeSet<usize>>,
    fails: bool,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    let mut request = String::new();
    lines.read_line(&mut request)?;
    let mut header = String::new();
    while lines.read_line(&mut header)? > 2 {
        header.clear();
    }
    if fails {
        return stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
    }
    let path = request.split(' ').nth(1).unwrap_or_default();
    if let Some(page) = pages.iter().find(|page| path.starts_with("/page/") && page.url.ends_with(path)) {
        let body = format!("<html><body><p>{}</p></body></html>", page.text);
        return write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{body}");
    }
    let query = request.split(['?', ' ']).nth(2).unwrap_or_default();
    let value = |key: &str| {
        let found = query.split('&').find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
        found.unwrap_or_default().replace("%20", " ")
    };
    let number = |key: &str| value(key).parse::<usize>().unwrap_or(0);
    let mut found: Option<BTreeSet<usize>> = None;
    for word in value("q").split_whitespace() {
        let here = index.get(word).cloned().unwrap_or_default();
        found = Some(match found {
            Some(found) => found.intersection(&here).copied().collect(),
            None => here,
        });
    }
    let mut found: Vec<usize> = found.unwrap_or_default().into_iter().collect();
    found.sort_by_key(|at| (pages[*at].rank, *at));
    let shown = found.iter().skip(number("from")).take(number("n").min(50));
    let results: Vec<_> = shown.map(|at| serde_json::json!({ "url": pages[*at].url })).collect();
    let body = serde_json::json!({ "total": found.len(), "results": results }).to_string();
    // No length: the end of the connection is the end of the answer.
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{body}")
}
