//! Who may ask, and who may write.
//!
//! On loopback everybody on this machine may read. A page of some other site, open in a browser
//! here, must not: it can send requests to loopback, and with a name of its own that resolves to
//! 127.0.0.1 it could even read the answers. So requests are answered only under names that are
//! this machine's (`Host`), and what changes something must come from our own pages (`Origin`).
//!
//! On any other address everything needs the token, as `Authorization: Bearer`, but for `/health`,
//! the sign-in page and its style sheet. Browsers cannot send that by themselves: they trade the
//! token for a cookie.
//!
//! Writing needs the token itself, on loopback too: other users and programs of the machine are not
//! the owner of the index.

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use crate::config::Config;
use crate::error::{ErrorKind, ServeError, is_api};
use crate::state::AppState;

/// Why a server must not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// Others could reach it.
    #[error(
        "{0} can be reached from other machines, which needs a token\nhint: put one of {min} characters or more into a file and name it with --token-file, or listen on 127.0.0.1",
        min = Token::SHORTEST
    )]
    NeedsToken(IpAddr),
    /// Too easy to guess.
    #[error("a token has {min} characters at least, this one has {0}", min = Token::SHORTEST)]
    ShortToken(usize),
    /// It could not be sent.
    #[error("a token has printable ASCII characters without blanks only")]
    BadToken,
}

/// What callers have to know. Never shown.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Shorter ones can be guessed.
    pub const SHORTEST: usize = 16;

    /// Blanks and line ends around it, which files have, are no part of it.
    pub fn new(text: &str) -> Result<Token, AuthError> {
        let text = text.trim();
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(AuthError::BadToken);
        }
        if text.len() < Token::SHORTEST {
            return Err(AuthError::ShortToken(text.len()));
        }
        Ok(Token(text.to_owned()))
    }

    /// Whether somebody knows it. Takes as long for a near miss as for a far one.
    pub fn is(&self, guess: &str) -> bool {
        same(self.0.as_bytes(), guess.as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Compares without telling by its time where the first difference is. It tells the length.
fn same(a: &[u8], b: &[u8]) -> bool {
    let differences = a.iter().zip(b).fold(0, |all, (a, b)| std::hint::black_box(all | (a ^ b)));
    a.len() == b.len() && differences == 0
}

/// Who may do what.
#[derive(Debug)]
pub struct Auth {
    token: Option<Token>,
    loopback: bool,
    allow_hosts: Vec<String>,
    sessions: Sessions,
}

impl Auth {
    /// An error where anybody could come in.
    pub fn new(config: &Config) -> Result<Auth, AuthError> {
        let loopback = config.listen.ip().is_loopback();
        if !loopback && config.token.is_none() {
            return Err(AuthError::NeedsToken(config.listen.ip()));
        }
        let allow_hosts = config.allow_hosts.iter().map(|name| name.to_ascii_lowercase()).collect();
        Ok(Auth { token: config.token.clone(), loopback, allow_hosts, sessions: Sessions::default() })
    }

    /// Whether reading needs no token.
    pub fn is_open(&self) -> bool {
        self.loopback
    }

    /// Whether somebody knows the token.
    pub fn knows(&self, guess: &str) -> bool {
        self.token.as_ref().is_some_and(|token| token.is(guess))
    }

    /// Whether writing is possible at all.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Whether a `Host` is one of ours.
    fn is_our_host(&self, host: &str) -> bool {
        let name = host_name(host).to_ascii_lowercase();
        let ip = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        name == "localhost"
            || name.ends_with(".localhost")
            || ip.is_ok_and(|ip| ip.is_loopback())
            || self.allow_hosts.contains(&name)
    }

    fn bearer(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = value.and_then(|value| value.split_once(' '));
        given.is_some_and(|(scheme, guess)| {
            scheme.eq_ignore_ascii_case("bearer") && self.knows(guess.trim_start())
        })
    }
}

/// A host without its port.
fn host_name(host: &str) -> &str {
    match host.rfind(':') {
        Some(colon) if !host[colon..].contains(']') => &host[..colon],
        _ => host,
    }
}

/// Ids of browsers that have shown the token. In memory: a restart signs everybody out.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<VecDeque<Session>>);

#[derive(Debug)]
struct Session {
    id: String,
    end: Instant,
}

impl Sessions {
    pub(crate) const LIFE: Duration = Duration::from_secs(12 * 3600);
    pub(crate) const COOKIE: &'static str = "onionskin_session";
    /// The oldest make room.
    const MOST: usize = 1000;

    fn list(&self) -> MutexGuard<'_, VecDeque<Session>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new session. Fails when the system has no random bytes.
    pub(crate) fn begin(&self) -> Result<String, ServeError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(ServeError::internal)?;
        let id: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut list = self.list();
        let now = Instant::now();
        list.retain(|session| session.end > now);
        if list.len() >= Sessions::MOST {
            list.pop_front();
        }
        list.push_back(Session { id: id.clone(), end: now + Sessions::LIFE });
        Ok(id)
    }

    pub(crate) fn end(&self, headers: &HeaderMap) {
        if let Some(id) = Sessions::cookie(headers) {
            self.list().retain(|session| !same(session.id.as_bytes(), id.as_bytes()));
        }
    }

    fn has(&self, headers: &HeaderMap) -> bool {
        let Some(id) = Sessions::cookie(headers) else { return false };
        let now = Instant::now();
        self.list().iter().any(|session| session.end > now && same(session.id.as_bytes(), id.as_bytes()))
    }

    fn cookie(headers: &HeaderMap) -> Option<&str> {
        let lists = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        lists.flat_map(|list| list.split(';')).find_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == Sessions::COOKIE).then_some(value)
        })
    }
}

/// Lets a request pass, or not.
pub(crate) async fn guard(State(state): State<AppState>, request: Request, next: Next) -> Response {
    match state.auth().judge(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal,
    }
}

impl Auth {
    #[expect(clippy::result_large_err, reason = "once a request, and it is what is sent")]
    fn judge(&self, request: &Request) -> Result<(), Response> {
        let headers = request.headers();
        let refuse =
            |kind, message: &str, hint: &str| Err(ServeError::new(kind, message).hint(hint).into_response());
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        // A request line with a whole address overrules the header.
        let host = request.uri().authority().map(|authority| authority.as_str()).or(host);
        let Some(host) = host else {
            return refuse(ErrorKind::BadRequest, "the request has no Host", "HTTP/1.1 needs one");
        };
        if self.loopback && !self.is_our_host(host) {
            return refuse(
                ErrorKind::Misdirected,
                "the request is for a host that this server is not",
                "names besides localhost are allowed with --allow-host",
            );
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        if !reads && !same_origin(headers, host) {
            return refuse(
                ErrorKind::Forbidden,
                "the request comes from a page of another site",
                "requests that change something must come from this server's own pages, or from no page",
            );
        }
        let path = request.uri().path();
        let public = path == "/health" || path == "/sign-in" || path.starts_with("/assets/");
        if self.loopback || public || self.bearer(headers) || self.sessions.has(headers) {
            return Ok(());
        }
        let browser = headers
            .get(header::ACCEPT)
            .is_some_and(|kinds| kinds.to_str().is_ok_and(|kinds| kinds.contains("text/html")));
        if browser && reads && !is_api(path) {
            return Err(Redirect::to("/sign-in").into_response());
        }
        refuse(
            ErrorKind::Unauthorised,
            "this needs the server's token",
            "send it as `Authorization: Bearer TOKEN`, or sign in at /sign-in",
        )
    }
}

/// Whether a request comes from no page, or from one of ours.
fn same_origin(headers: &HeaderMap, host: &str) -> bool {
    let value = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let origin = value("origin").is_none_or(|origin| {
        let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
    });
    origin && value("sec-fetch-site").is_none_or(|site| matches!(site, "same-origin" | "none"))
}

/// An extractor for handlers that write: whoever asks has sent the token itself.
#[derive(Clone, Copy, Debug)]
pub struct Writer(());

impl FromRequestParts<AppState> for Writer {
    type Rejection = ServeError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Writer, ServeError> {
        let auth = state.auth();
        if !auth.has_token() {
            return Err(ServeError::new(
                ErrorKind::Forbidden,
                "this server was started without a token, so nobody may write",
            )
            .hint("start it with --token-file FILE, or with the token in ONIONSKIN_TOKEN"));
        }
        if !auth.bearer(&parts.headers) {
            return Err(ServeError::new(ErrorKind::Unauthorised, "writing needs the server's token")
                .hint("send it as `Authorization: Bearer TOKEN`"));
        }
        Ok(Writer(()))
    }
}

#[cfg(test)]
mod tests;
