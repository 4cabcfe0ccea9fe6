//! Who may ask, and who may write.
//!
//! On loopback everybody on this machine may read, unless the server is to be reached through a
//! proxy: then everything needs the token, as on any other address. That is so when a name is
//! allowed that is not this machine's own, when reading is to need the token, and for each request
//! that has the headers of a proxy. The token comes as `Authorization: Bearer`; `/health`, the
//! sign-in page and its style sheet need none. Browsers cannot send it by themselves: they trade it
//! for a cookie. How often it may be guessed is bounded: see `guesses`.
//!
//! A page of some other site, open in a browser here, must not read or use up anything: it can send
//! requests to loopback, and with a name of its own that resolves to 127.0.0.1 it could even read
//! the answers. So requests are answered only under names that are this machine's (`host`), what
//! changes something must come from our own pages (`Origin`), and what other sites' pages send
//! (`Sec-Fetch-Site`) is answered only where somebody follows a link to a page that costs little.
//!
//! Writing needs the token itself, on loopback too: other users and programs of the machine are not
//! the owner of the index.
//!
//! All of this is decided by the headers, before anything of a body is read.

mod client;
mod guesses;
mod host;
mod sessions;

use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use sha2::{Digest, Sha256};

use crate::config::Config;
use crate::error::{ErrorKind, ServeError, is_api};
use crate::state::AppState;
pub(crate) use client::{Client, Peer};
use guesses::Guesses;
use host::Host;
pub(crate) use sessions::Sessions;

/// Why a server must not listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuthError {
    /// Others could reach it.
    #[error("{0} can be reached from other machines, which needs a token\nhint: {hint}, or listen on 127.0.0.1", hint = HOW_TO_TOKEN)]
    NeedsToken(IpAddr),
    /// Others could reach it through a proxy.
    #[error("{0} is not a name of this machine alone: whoever reaches the server by it needs a token\nhint: {hint}", hint = HOW_TO_TOKEN)]
    HostNeedsToken(String),
    /// Reading is to need a token, and there is none.
    #[error("reading is to need the token, and there is none\nhint: {hint}", hint = HOW_TO_TOKEN)]
    NoToken,
    /// It would never match.
    #[error("{0:?} is not the name of a host\nhint: give it without a scheme and without a port")]
    BadHost(String),
    /// Too easy to guess.
    #[error("a token has {min} characters at least, this one has {0}", min = Token::SHORTEST)]
    ShortToken(usize),
    /// It could not be sent.
    #[error("a token has printable ASCII characters without blanks only")]
    BadToken,
}

const HOW_TO_TOKEN: &str = "put a token of 16 characters or more into a file and name it with --token-file";

/// What callers have to know, as its digest. Never shown.
#[derive(Clone)]
pub struct Token([u8; 32]);

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
        Ok(Token(Sha256::digest(text).into()))
    }

    /// Whether somebody knows it. Digests are compared, so that the time says nothing of the token,
    /// not even how long it is.
    pub fn is(&self, guess: &str) -> bool {
        same(&self.0, &Sha256::digest(guess))
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
    /// Whether reading needs the token, whoever asks.
    required: bool,
    allow_hosts: Vec<String>,
    sessions: Sessions,
    guesses: Guesses,
}

/// What is known of who sends a request. In the extensions of every request that was let pass.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Caller {
    /// Where it comes from.
    pub client: Client,
    /// What it has shown.
    bearer: Bearer,
    /// Whether it is a browser that has shown the token before.
    signed_in: bool,
    /// Whether a proxy says that it came encrypted.
    pub is_encrypted: bool,
    /// Whether it needs the token to read.
    needs_token: bool,
}

/// What a caller has sent as the token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Bearer {
    /// None.
    #[default]
    Nothing,
    Wrong,
    Right,
    /// There have been too many guesses; nobody has looked.
    Unjudged(Duration),
}

impl Caller {
    /// Whether the token, or a cookie that was given for it, came with the request.
    pub(crate) fn is_trusted(&self) -> bool {
        self.bearer == Bearer::Right || self.signed_in
    }

    /// Whether it reads without any token.
    pub(crate) fn reads_freely(&self) -> bool {
        !self.needs_token
    }
}

/// What proxies add to requests.
const OF_PROXIES: [&str; 7] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
];

impl Auth {
    /// An error where anybody could come in.
    pub fn new(config: &Config) -> Result<Auth, AuthError> {
        let loopback = config.listen.ip().is_loopback();
        let has_token = config.token.is_some();
        if !loopback && !has_token {
            return Err(AuthError::NeedsToken(config.listen.ip()));
        }
        if config.require_token && !has_token {
            return Err(AuthError::NoToken);
        }
        let mut required = config.require_token || !loopback;
        let mut allow_hosts = Vec::new();
        for name in &config.allow_hosts {
            let host = Host::parse(name).filter(|host| host.name().len() == name.len());
            let host = host.ok_or_else(|| AuthError::BadHost(name.clone()))?;
            if !host.is_loopback() {
                if !has_token {
                    return Err(AuthError::HostNeedsToken(name.clone()));
                }
                required = true;
            }
            allow_hosts.push(host.name().to_owned());
        }
        let (token, guesses) = (config.token.clone(), Guesses::new(Instant::now()));
        Ok(Auth { token, loopback, required, allow_hosts, sessions: Sessions::default(), guesses })
    }

    /// Whether reading needs no token, as long as no proxy is between.
    pub fn is_open(&self) -> bool {
        !self.required
    }

    /// Whether a client knows the token; an error with the time to wait when it has guessed too
    /// often.
    pub(crate) fn guess(&self, client: Client, guess: &str) -> Result<bool, Duration> {
        let Some(token) = &self.token else { return Ok(false) };
        self.guesses.judge(client, Instant::now(), || token.is(guess))
    }

    /// Whether writing is possible at all.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Whether a host is one of ours.
    fn is_our_host(&self, host: &Host) -> bool {
        host.is_loopback() || self.allow_hosts.iter().any(|name| name == host.name())
    }

    fn bearer(&self, client: Client, headers: &HeaderMap) -> Bearer {
        let mut all = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(value), None) = (all.next(), all.next()) else { return Bearer::Nothing };
        let given = value.to_str().ok().and_then(|value| value.split_once(' '));
        match given {
            Some((scheme, guess)) if scheme.eq_ignore_ascii_case("bearer") => {
                match self.guess(client, guess.trim_start()) {
                    Ok(true) => Bearer::Right,
                    Ok(false) => Bearer::Wrong,
                    Err(wait) => Bearer::Unjudged(wait),
                }
            }
            _ => Bearer::Nothing,
        }
    }
}

tokio::task_local! {
    /// Who the request comes from that this task answers.
    pub(crate) static CLIENT: Client;
}

/// Lets a request pass, or not.
pub(crate) async fn guard(State(state): State<AppState>, mut request: Request, next: Next) -> Response {
    match state.auth().judge(&request) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            CLIENT.scope(caller.client, next.run(request)).await
        }
        Err(refusal) => refusal,
    }
}

/// Too many guesses.
pub(crate) fn too_many_guesses(wait: Duration) -> ServeError {
    ServeError::new(ErrorKind::TooManyGuesses, "the token was guessed too often").retry_after(wait)
}

impl Auth {
    #[expect(clippy::result_large_err, reason = "once a request, and it is what is sent")]
    fn judge(&self, request: &Request) -> Result<Caller, Response> {
        let headers = request.headers();
        let host = Host::of(headers, request.uri())
            .map_err(|bad| ServeError::bad_request(bad.to_string()).into_response())?;
        if self.loopback && !self.is_our_host(&host) {
            return refuse(
                ErrorKind::Misdirected,
                "the request is for a host that this server is not",
                "names besides localhost are allowed with --allow-host",
            );
        }
        let path = request.uri().path();
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        if !reads && !same_origin(headers, &host) {
            return refuse(
                ErrorKind::Forbidden,
                "the request comes from a page of another site",
                "requests that change something must come from this server's own pages, or from no page",
            );
        }
        if reads && is_of_elsewhere(headers, &host, path) {
            return refuse(
                ErrorKind::Forbidden,
                "the request comes from a page of another site",
                "open the address by itself, or follow a link of this server's own pages",
            );
        }
        let is_proxied = OF_PROXIES.iter().any(|name| headers.contains_key(*name));
        let client = Client::of(request.extensions().get::<Peer>(), headers);
        let caller = Caller {
            client,
            bearer: self.bearer(client, headers),
            signed_in: self.sessions.has(headers),
            is_encrypted: is_encrypted(headers),
            needs_token: self.required || is_proxied,
        };
        let public = path == "/health" || path == "/sign-in" || path.starts_with("/assets/");
        if caller.reads_freely() || public || caller.is_trusted() {
            return Ok(caller);
        }
        if !self.has_token() {
            return refuse(
                ErrorKind::Forbidden,
                "the request came through a proxy, and this server was started without a token",
                "start it with --token-file FILE, or with the token in ONIONSKIN_TOKEN",
            );
        }
        if let Bearer::Unjudged(wait) = caller.bearer {
            return Err(too_many_guesses(wait).into_response());
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

#[expect(clippy::result_large_err, reason = "once a request, and it is what is sent")]
fn refuse<T>(kind: ErrorKind, message: &str, hint: &str) -> Result<T, Response> {
    Err(ServeError::new(kind, message).hint(hint).into_response())
}

/// Whether a header has this value only, or is not there.
fn has_only(headers: &HeaderMap, name: &str, is_good: impl Fn(&str) -> bool) -> bool {
    headers.get_all(name).iter().all(|value| value.to_str().is_ok_and(&is_good))
}

/// Whether a request comes from no page, or from one of ours.
fn same_origin(headers: &HeaderMap, host: &Host) -> bool {
    has_only(headers, "origin", |origin| host.is_of(origin))
        && has_only(headers, "sec-fetch-site", |site| matches!(site, "same-origin" | "none"))
}

/// Whether a request to read comes from a page of another site in a way that is not answered. A
/// link to a page may be followed; images, scripts, frames and what programs ask for come from our
/// own pages or from no page. What costs much is not for links either: a page can follow them by
/// itself, again and again.
fn is_of_elsewhere(headers: &HeaderMap, host: &Host, path: &str) -> bool {
    let costs = is_api(path) || path == "/compare" || path.starts_with("/downloads/");
    if same_origin(headers, host) {
        // Browsers that say nothing of the site still say what page they come from.
        let has_site = headers.contains_key("sec-fetch-site");
        return costs && !has_site && !has_only(headers, "referer", |page| host.is_of(page));
    }
    let navigates = headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate")
        && has_only(headers, "sec-fetch-dest", |what| what == "document");
    costs || !navigates
}

/// Whether a proxy says that a request came to it encrypted.
fn is_encrypted(headers: &HeaderMap) -> bool {
    let says = |name: &str, is: fn(&str) -> bool| {
        headers
            .get_all(name)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.split([',', ';']).any(|part| is(&part.trim().to_ascii_lowercase())))
    };
    says("x-forwarded-proto", |part| part == "https")
        || says("forwarded", |part| matches!(part, "proto=https" | "proto=\"https\""))
}

/// An extractor for handlers that write: whoever asks has sent the token itself.
#[derive(Clone, Copy, Debug)]
pub struct Writer(());

impl FromRequestParts<AppState> for Writer {
    type Rejection = ServeError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Writer, ServeError> {
        if !state.auth().has_token() {
            return Err(ServeError::new(
                ErrorKind::Forbidden,
                "this server was started without a token, so nobody may write",
            )
            .hint("start it with --token-file FILE, or with the token in ONIONSKIN_TOKEN"));
        }
        let caller = parts.extensions.get::<Caller>().copied().unwrap_or_default();
        match caller.bearer {
            Bearer::Right => Ok(Writer(())),
            Bearer::Unjudged(wait) => Err(too_many_guesses(wait)),
            Bearer::Nothing | Bearer::Wrong => {
                Err(ServeError::new(ErrorKind::Unauthorised, "writing needs the server's token")
                    .hint("send it as `Authorization: Bearer TOKEN`"))
            }
        }
    }
}

#[cfg(test)]
mod tests;
