//! A small HTTP client that is polite before anything else.
//!
//! Requests are at least a given time apart and no more than a given number. What may pass
//! (time-outs, 429, 5xx) is tried again after a while that doubles, or as long as the server says.
//! One connection a request, and nothing but GET: what is measured is the engine, not the client.
//! Answers are taken apart by the code that reads crawls, which has seen worse.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use onionskin_warc::{HttpProblem, HttpResponse, Limits, parse_response};

/// How to ask.
#[derive(Clone, Debug)]
pub struct HttpParams {
    /// Requests a second, at most; above 0.
    pub rate: f64,
    /// How long a request may take.
    pub timeout: Duration,
    /// How often a request that failed in passing is tried again.
    pub retries: u32,
    /// How long to wait before the first of those; twice as long before each next one.
    pub backoff: Duration,
    /// Requests in all, at most, repeated ones included.
    pub max_requests: Option<u64>,
    /// What the client calls itself.
    pub agent: String,
}

impl Default for HttpParams {
    fn default() -> HttpParams {
        HttpParams {
            rate: 1.0,
            timeout: Duration::from_secs(30),
            retries: 3,
            backoff: Duration::from_secs(2),
            max_requests: None,
            agent: concat!("onionskin/", env!("CARGO_PKG_VERSION"), " (size measurement)").to_owned(),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpFailure {
    /// Not an address that can be asked.
    #[error("{url} is not an http address")]
    Address {
        /// The address.
        url: String,
    },
    /// It would have to be encrypted.
    #[error("{url}: https is not spoken by this build; use one with the feature `remote`, or a local proxy")]
    Encrypted {
        /// The address.
        url: String,
    },
    /// The connection failed or took too long.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// What came back is not an answer.
    #[error("not an HTTP answer, or cut off")]
    Broken,
    /// The server will not.
    #[error("status {status}")]
    Status {
        /// What it said.
        status: u16,
    },
    /// So many requests were allowed.
    #[error("the limit of requests is reached")]
    Exhausted,
}

/// Bytes of an answer, at most.
const MOST_BYTES: u64 = 32 << 20;
/// What a server may ask to wait, at most.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Redirects that are followed.
const REDIRECTS: usize = 5;

/// Asks, one after the other.
#[derive(Debug)]
pub struct HttpClient {
    params: HttpParams,
    last: Option<Instant>,
    requests: u64,
}

impl HttpClient {
    /// A client that has asked nothing yet.
    pub fn new(params: HttpParams) -> HttpClient {
        HttpClient { params, last: None, requests: 0 }
    }

    /// Requests that were sent so far.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// The answer of status 200 that an address gives, after redirects and retries, and the address
    /// that gave it.
    ///
    /// # Errors
    ///
    /// When there is none.
    pub fn get(&mut self, url: &str) -> Result<(HttpResponse, String), HttpFailure> {
        let mut url = url.to_owned();
        for _ in 0..=REDIRECTS {
            let answer = self.with_retries(&url)?;
            let next = answer.headers.get("Location").and_then(|to| onionskin_extract::url::join(&url, to));
            match (answer.status, next) {
                (200, _) => return Ok((answer, url)),
                (301 | 302 | 303 | 307 | 308, Some(next)) => url = next,
                (status, _) => return Err(HttpFailure::Status { status }),
            }
        }
        Err(HttpFailure::Status { status: 310 })
    }

    fn with_retries(&mut self, url: &str) -> Result<HttpResponse, HttpFailure> {
        let mut wait = self.params.backoff;
        let mut left = self.params.retries;
        loop {
            let answer = self.once(url);
            let (again, asked) = match &answer {
                Ok(answer) => {
                    let seconds = answer.headers.get("Retry-After").and_then(|s| s.trim().parse().ok());
                    (answer.status == 429 || answer.status >= 500, seconds.map(Duration::from_secs))
                }
                Err(HttpFailure::Io(_) | HttpFailure::Broken) => (true, None),
                Err(_) => (false, None),
            };
            if !again {
                return answer;
            }
            if left == 0 {
                return answer.and_then(|answer| Err(HttpFailure::Status { status: answer.status }));
            }
            left -= 1;
            tracing::debug!(url, ?wait, "trying again");
            std::thread::sleep(asked.unwrap_or(wait).max(wait).min(LONGEST_WAIT));
            wait = wait.saturating_mul(2);
        }
    }

    /// One request, no sooner than it may be.
    fn once(&mut self, url: &str) -> Result<HttpResponse, HttpFailure> {
        let address = || HttpFailure::Address { url: url.to_owned() };
        let encrypted = url.starts_with("https://");
        if encrypted && cfg!(not(feature = "remote")) {
            return Err(HttpFailure::Encrypted { url: url.to_owned() });
        }
        let rest =
            url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).ok_or_else(address)?;
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        if authority.is_empty() || url.bytes().any(|b| b.is_ascii_control() || b == b' ') {
            return Err(address());
        }
        if self.params.max_requests.is_some_and(|most| self.requests >= most) {
            return Err(HttpFailure::Exhausted);
        }
        if let Some(last) = self.last {
            let apart = Duration::from_secs_f64(1.0 / self.params.rate.max(1e-3));
            std::thread::sleep((last + apart).saturating_duration_since(Instant::now()));
        }
        self.last = Some(Instant::now());
        self.requests += 1;
        #[cfg(feature = "remote")]
        if encrypted {
            return self.encrypted(url);
        }
        let has_port = authority.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok());
        let with_port = if has_port { authority.to_owned() } else { format!("{authority}:80") };
        let deadline = Instant::now() + self.params.timeout;
        let mut stream = connect(&with_port, deadline)?;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {}\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n",
            self.params.agent
        );
        stream.set_write_timeout(Some(left(deadline)?))?;
        stream.write_all(request.as_bytes())?;
        let block = read_until(&mut stream, deadline)?;
        let limits = Limits { max_body_bytes: MOST_BYTES, ..Limits::default() };
        let answer = parse_response(block, &limits).map_err(|_| HttpFailure::Broken)?;
        let cut = [HttpProblem::HeadCutOff, HttpProblem::Truncated, HttpProblem::BadChunk];
        if answer.problems.iter().any(|problem| cut.contains(problem)) {
            return Err(HttpFailure::Broken);
        }
        Ok(answer)
    }
}

#[cfg(feature = "remote")]
impl HttpClient {
    /// One request through TLS; pace, retries and redirects are the same as for others.
    fn encrypted(&self, url: &str) -> Result<HttpResponse, HttpFailure> {
        let other = |error: ureq::Error| match error {
            ureq::Error::Io(error) => HttpFailure::Io(error),
            error => HttpFailure::Io(io::Error::other(error.to_string())),
        };
        // Whom the system trusts. Some entries of a store are often unreadable; the others do.
        let trusted = rustls_native_certs::load_native_certs().certs;
        let trusted: Vec<ureq::tls::Certificate<'static>> =
            trusted.iter().map(|der| ureq::tls::Certificate::from_der(der).to_owned()).collect();
        let roots = ureq::tls::RootCerts::new_with_certs(&trusted);
        let config = ureq::Agent::config_builder()
            .tls_config(ureq::tls::TlsConfig::builder().root_certs(roots).build())
            .timeout_global(Some(self.params.timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(self.params.agent.as_str())
            .build();
        let mut answer = ureq::Agent::new_with_config(config).get(url).call().map_err(other)?;
        let mut headers = onionskin_warc::Headers::new();
        for (name, value) in answer.headers() {
            headers.push(name.as_str(), &String::from_utf8_lossy(value.as_bytes()));
        }
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MOST_BYTES).read_to_vec().map_err(other)?;
        Ok(HttpResponse { status, headers, body, problems: Vec::new() })
    }
}

/// What is left of the time; an error when nothing is.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::Error::new(io::ErrorKind::TimedOut, "took too long")) } else { Ok(left) }
}

fn connect(authority: &str, deadline: Instant) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "no such host");
    for address in authority.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// Everything until the server closes, or until as much came as it announced: not all servers
/// close.
fn read_until(stream: &mut TcpStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut block = Vec::new();
    let mut buffer = [0; 16 << 10];
    let mut announced = None;
    loop {
        stream.set_read_timeout(Some(left(deadline)?))?;
        let n = match stream.read(&mut buffer) {
            Ok(n) => n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) => return Err(error),
        };
        if n == 0 || block.len() as u64 > MOST_BYTES {
            return Ok(block);
        }
        block.extend_from_slice(&buffer[..n]);
        if announced.is_none() {
            announced = announced_length(&block);
        }
        if announced.is_some_and(|end| block.len() >= end) {
            return Ok(block);
        }
    }
}

/// Where the answer ends, by its `Content-Length`, once the head is there.
fn announced_length(block: &[u8]) -> Option<usize> {
    let head = block.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&block[..head]).ok()?;
    let mut lines = text.lines();
    // Interim answers are followed by another head.
    if lines.next()?.split(' ').nth(1)?.starts_with('1') {
        return None;
    }
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    })?;
    head.checked_add(length)
}

#[cfg(test)]
mod tests;
