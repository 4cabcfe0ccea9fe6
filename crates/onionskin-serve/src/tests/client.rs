//! A server on a free port, and the simplest of clients.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use onionskin_store::MemoryBudget;
use tokio::sync::watch;

use crate::auth::Token;
use crate::server::{self, Stop};
use crate::{AppState, Config, Lane, assemble};

pub(super) const TOKEN: &str = "correct-horse-battery";

/// A server that ends with the test.
pub(super) struct Server {
    pub address: SocketAddr,
    pub state: AppState,
    stop: watch::Sender<Stop>,
    thread: Option<std::thread::JoinHandle<()>>,
    _dir: tempfile::TempDir,
}

impl Server {
    /// With an index of seen documents, a token, and some routes for tests: they panic or are slow.
    pub fn new(change: impl FnOnce(&mut Config)) -> Server {
        let dir = tempfile::tempdir().unwrap();
        let mut config = Config::new(MemoryBudget::from_mib(128));
        config.seen = Some(dir.path().join("seen"));
        config.listen = "127.0.0.1:0".parse().unwrap();
        config.token = Some(Token::new(TOKEN).unwrap());
        config.threads = 2;
        change(&mut config);
        // What is bound is always loopback; rules go by what was asked for.
        let state = AppState::open(config).unwrap();
        let more = Router::new()
            .route("/panic", get(|| async { panic!("on purpose") as &str }))
            .route("/panic-at-work", get(panic_at_work))
            .route("/slow", get(slow))
            .route("/until-stopped", get(until_stopped));
        let (stop, stopped) = watch::channel(Stop::Running);
        let (tell, told) = std::sync::mpsc::channel();
        let serving = state.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                server::serve(listener, assemble(serving.clone(), more), &serving, stopped).await;
            });
        });
        Server { address: told.recv().unwrap(), state, stop, thread: Some(thread), _dir: dir }
    }

    pub fn plain() -> Server {
        Server::new(|_| {})
    }

    pub fn dir(&self) -> &Path {
        self.state.config().seen.as_ref().unwrap()
    }

    pub fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends bytes and reads until the other side closes.
    pub fn raw(&self, request: impl AsRef<[u8]>) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_ref()).unwrap();
        Answer::read(&mut stream)
    }

    pub fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
    ) -> Answer {
        let body = body.as_ref();
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text.push_str("Host: localhost\r\n");
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        self.raw([text.as_bytes(), body].concat())
    }

    pub fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], "")
    }

    /// JSON with the token.
    pub fn post(&self, path: &str, body: &serde_json::Value) -> Answer {
        let bearer = format!("Bearer {TOKEN}");
        let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        self.request("POST", path, &headers, body.to_string())
    }

    pub fn stop(&self, stop: Stop) {
        let _ = self.stop.send(stop);
    }

    /// Waits for the end.
    pub fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(Stop::Now);
        self.join();
        self.state.seen().into_iter().for_each(crate::SeenService::close);
    }
}

async fn panic_at_work(axum::extract::State(state): axum::extract::State<AppState>) -> &'static str {
    state.work(Lane::Search, || panic!("at work")).await.unwrap_or("busy")
}

async fn slow(
    axum::extract::State(state): axum::extract::State<AppState>,
) -> Result<&'static str, crate::ServeError> {
    Ok(state
        .work(Lane::Search, || {
            std::thread::sleep(Duration::from_millis(400));
            "done"
        })
        .await?)
}

/// Works for twenty seconds, unless it is told to stop.
async fn until_stopped(axum::extract::State(state): axum::extract::State<AppState>) -> &'static str {
    let work = || {
        let start = std::time::Instant::now();
        while start.elapsed() < Duration::from_secs(20) && onionskin_store::cancel::check().is_ok() {
            std::thread::sleep(Duration::from_millis(5));
        }
        "done"
    };
    state.work(Lane::Search, work).await.unwrap_or("busy")
}

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Until the end of the stream. A status of 0: it ended without an answer.
    pub fn read(stream: &mut TcpStream) -> Answer {
        let mut bytes = Vec::new();
        // A reset after the answer is no harm.
        let _ = stream.read_to_end(&mut bytes);
        Answer::parse(&bytes)
    }

    fn parse(bytes: &[u8]) -> Answer {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Answer { status: 0, headers: vec![], body: bytes.to_vec() };
        };
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").unwrap())
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let mut body = bytes[end + 4..].to_vec();
        if headers.iter().any(|(name, value)| name == "transfer-encoding" && value == "chunked") {
            body = unchunk(&body);
        }
        Answer { status, headers, body }
    }

    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// The code of an error in JSON.
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

fn unchunk(mut bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let len = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        out.extend_from_slice(&bytes[end + 2..][..len]);
        bytes = &bytes[end + 2 + len + 2..];
        if len == 0 {
            break;
        }
    }
    out
}
