//! `onionskin serve`, as people start and stop it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::util::Dir;

const TOKEN: &str = "correct-horse-battery";

pub(crate) struct Server {
    child: Child,
    address: String,
}

impl Server {
    pub(crate) fn start(dir: &Dir, arguments: &[&str]) -> Server {
        let fixed = ["serve", "--listen", "127.0.0.1:0", "--json", "--memory", "96M"];
        let mut command = dir.onionskin(&[fixed.as_slice(), arguments].concat());
        command.env("ONIONSKIN_TOKEN", TOKEN);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(told["type"], "listening");
        Server { child, address: told["address"].as_str().unwrap().to_owned() }
    }

    /// `None` when the server went away meanwhile.
    fn request(&self, method: &str, path: &str, body: &str) -> Option<(u16, String)> {
        self.request_as("application/json", method, path, body)
    }

    pub(crate) fn request_as(
        &self,
        content_type: &str,
        method: &str,
        path: &str,
        body: &str,
    ) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Words that no two documents share.
fn text(id: u64) -> String {
    (0..30).map(|word| format!("w{}", id * 1000 + word)).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_signal_ends_it_well() {
    let dir = Dir::new();
    for signal in [Signal::TERM, Signal::INT] {
        let mut server = Server::start(&dir, &["--seen", "index"]);
        let (status, body) = server.request("GET", "/health", "").unwrap();
        assert_eq!(status, 200);
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["seen"], "add");
        // Somebody who holds a connection and says nothing does not hold the server.
        let _idle = TcpStream::connect(&server.address).unwrap();
        let start = Instant::now();
        server.signal(signal);
        assert_eq!(server.child.wait().unwrap().code(), Some(0));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let dir = Dir::new();
    let rounds = if std::env::var_os("ONIONSKIN_SLOW_TESTS").is_some() { 20 } else { 3 };
    let mut acknowledged = Vec::new();
    for round in 0..rounds {
        let mut server = Server::start(&dir, &["--seen", "index"]);
        let clients: Vec<Vec<u64>> = std::thread::scope(|scope| {
            let server = &server;
            let client = |client: u64| {
                move || {
                    let mut safe = Vec::new();
                    for n in 0.. {
                        let id = round * 1_000_000 + client * 100_000 + n;
                        let documents = json!([{"name": format!("d{id}"), "text": text(id)}]);
                        let body = json!({"documents": documents, "if_new": true}).to_string();
                        match server.request("POST", "/api/v1/seen/add", &body) {
                            Some((200, answer)) if answer.contains("\"added\":true") => safe.push(id),
                            _ => break,
                        }
                    }
                    safe
                }
            };
            let clients: Vec<_> = (0..3).map(|n| scope.spawn(client(n))).collect();
            std::thread::sleep(Duration::from_millis(150 + 70 * (round % 5)));
            server.signal(Signal::KILL);
            clients.into_iter().map(|client| client.join().unwrap()).collect()
        });
        server.child.wait().unwrap();
        acknowledged.extend(clients.into_iter().flatten());
        assert!(!acknowledged.is_empty());
    }
    let input: String = acknowledged
        .iter()
        .map(|id| format!("{}\n", json!({"id": format!("d{id}"), "text": text(*id)})))
        .collect();
    dir.write("in.jsonl", input);
    let outcome = dir.run(&["seen", "check", "index", "in.jsonl"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let found = outcome.stdout.lines().filter(|line| line.contains("\"status\":\"exact\"")).count();
    assert_eq!(found, acknowledged.len(), "of those that were acknowledged");
    let stats = dir.json(&["seen", "stats", "index"]);
    assert!(stats["documents"].as_u64().unwrap() >= acknowledged.len() as u64);
    assert_eq!(dir.run(&["seen", "verify", "index"]).code, 0);
}

#[test]
fn mistakes_are_told_before_it_starts() {
    let dir = Dir::new();
    let fails = |arguments: &[&str], told: &str| {
        let outcome = dir.run(&[&["serve"], arguments].concat());
        assert_eq!(outcome.code, 2, "{arguments:?}");
        assert!(outcome.stderr.contains(told), "{arguments:?}: {}", outcome.stderr);
    };
    fails(&[], "required");
    fails(&["nothing", "--listen", "127.0.0.1:0"], "nothing");
    fails(&["--seen", "index", "--listen", "0.0.0.0:0"], "needs a token");
    fails(&["--seen", "index", "--listen", "0.0.0.0:0"], "--token-file");
    fails(&["--seen", "index", "--allow-host", "search.example.org"], "needs a token");
    fails(&["--seen", "index", "--allow-host", "search.example.org"], "--token-file");
    fails(&["--seen", "index", "--allow-host", "http://a.example"], "without a scheme");
    fails(&["--seen", "index", "--require-token"], "reading is to need the token");
    dir.write("short", "secret\n");
    fails(&["--seen", "index", "--token-file", "short"], "16 characters at least");
    fails(&["--seen", "index", "--token-file", "missing"], "missing");
    fails(&["--seen", "index", "--seen-read-only"], "has no index");
    assert!(!dir.path("index").exists(), "nothing was made before everything was checked");
    let _server = Server::start(&dir, &["--seen", "index"]);
    fails(&["--seen", "index", "--listen", "127.0.0.1:0"], "--seen-read-only");
    let second = Server::start(&dir, &["--seen", "index", "--seen-read-only"]);
    assert_eq!(second.request("GET", "/api/v1/seen/stats", "").unwrap().0, 200);
    fails(&["--seen", "other", "--listen", &second.address], "listening on");
}

#[test]
fn an_atlas() {
    let dir = Dir::new();
    dir.write("in.jsonl", format!("{}\n", json!({"id": "a", "text": text(1)})));
    assert_eq!(dir.run(&["scan", "in.jsonl", "-o", "atlas", "-q"]).code, 0);
    let server = Server::start(&dir, &["atlas"]);
    let (status, page) = server.request("GET", "/", "").unwrap();
    assert_eq!(status, 200);
    assert!(page.contains("role=\"search\""));
    let (status, body) = server.request("GET", "/api/v1/seen/stats", "").unwrap();
    assert_eq!(status, 404);
    assert!(body.contains("--seen DIR"), "{body}");
}

/// A scanned atlas of many words.
fn atlas_of_words(dir: &Dir, documents: u64, words: u64) {
    let document = |id: u64| {
        let text: Vec<String> = (0..words).map(|word| format!("w{}", id * words + word)).collect();
        format!("{}\n", json!({"id": format!("d{id}"), "text": text.join(" ")}))
    };
    dir.write("in.jsonl", (0..documents).map(document).collect::<String>());
    assert_eq!(dir.run(&["scan", "in.jsonl", "-o", "atlas", "-q"]).code, 0);
}

#[test]
fn too_little_memory_is_told_with_what_is_needed() {
    let dir = Dir::new();
    atlas_of_words(&dir, 3, 30);
    let outcome = dir.run(&["serve", "atlas", "--listen", "127.0.0.1:0", "--memory", "16M"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("needs at least 96M of memory, and 16M is given"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("hint: give --memory 96M"), "{}", outcome.stderr);
    assert!(!dir.path("atlas/search").exists());
    let arguments = ["serve", "atlas", "--seen", "index", "--listen", "127.0.0.1:0", "--memory", "96M"];
    let both = dir.run(&arguments);
    assert!(both.stderr.contains("hint: give --memory 192M"), "{}", both.stderr);
    assert!(!dir.path("index").exists());
}

#[test]
fn an_index_that_cannot_be_written_is_told() {
    let dir = Dir::new();
    atlas_of_words(&dir, 200, 5000);
    let check = |outcome: &crate::util::Outcome, what: &str| {
        assert_eq!(outcome.code, 2, "{}", outcome.stderr);
        for part in [what, "the full-text index cannot be written", "hint: --index puts"] {
            assert!(outcome.stderr.contains(part), "{}", outcome.stderr);
        }
        assert!(!outcome.stderr.contains("killed"), "{}", outcome.stderr);
    };
    let arguments =
        ["serve", "atlas", "--listen", "127.0.0.1:0", "--memory", "96M", "--index", "in.jsonl/index"];
    check(&dir.run(&arguments), "in.jsonl");
    // As a full disk: no file may have more than 100 or 200 KiB, as shells count.
    let limited = "trap '' XFSZ; ulimit -f 200; exec \"$0\" serve atlas --listen 127.0.0.1:0 --memory 96M --index \"$1\"";
    let program = env!("CARGO_BIN_EXE_onionskin");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", limited, program, "place/index"]).current_dir(dir.path(""));
    check(&crate::util::Outcome::of(shell.output().unwrap()), "File too large");
    assert_eq!(std::fs::read_dir(dir.path("place")).unwrap().count(), 0, "nothing is left");
}
