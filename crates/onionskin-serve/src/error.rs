//! What goes wrong with a request, and how it is told.
//!
//! A handler returns a [`ServeError`], or axum refuses a request by itself (no such route, another
//! method, a query that does not parse). Both leave a response that [`shape`] turns into one form:
//! JSON under `/api`, a page elsewhere. So handlers need not know where they are, and no answer
//! looks like another program's.

use std::fmt;
use std::time::Duration;

use askama::Template;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::layout::{Chrome, Section};
use crate::metrics::Refusal;
use crate::state::AppState;

/// What kind of mistake it is. Decides the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request makes no sense.
    BadRequest,
    /// It needs a token.
    Unauthorised,
    /// It is not allowed, with or without a token.
    Forbidden,
    /// There is no such thing.
    NotFound,
    /// There is, but not by this method.
    MethodNotAllowed,
    /// The body took too long.
    SlowBody,
    /// The body is too large.
    TooLarge,
    /// The body is of another type.
    UnsupportedType,
    /// The request was meant for another host.
    Misdirected,
    /// It would cost more than is done while others wait.
    TooCostly,
    /// The token was guessed too often.
    TooManyGuesses,
    /// Our fault.
    Internal,
    /// Too much at once; later it will do.
    Busy,
    /// What it needs does not work at the moment.
    Unavailable,
    /// The work took too long.
    TimedOut,
}

impl ErrorKind {
    /// The status of the answer.
    pub fn status(self) -> StatusCode {
        match self {
            ErrorKind::BadRequest => StatusCode::BAD_REQUEST,
            ErrorKind::Unauthorised => StatusCode::UNAUTHORIZED,
            ErrorKind::Forbidden => StatusCode::FORBIDDEN,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            ErrorKind::SlowBody => StatusCode::REQUEST_TIMEOUT,
            ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            ErrorKind::UnsupportedType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            ErrorKind::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            ErrorKind::TooCostly => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorKind::TooManyGuesses => StatusCode::TOO_MANY_REQUESTS,
            ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            ErrorKind::Busy | ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// The name in JSON, which programs may rely on.
    pub fn code(self) -> &'static str {
        match self {
            ErrorKind::BadRequest => "bad_request",
            ErrorKind::Unauthorised => "unauthorised",
            ErrorKind::Forbidden => "forbidden",
            ErrorKind::NotFound => "not_found",
            ErrorKind::MethodNotAllowed => "method_not_allowed",
            ErrorKind::SlowBody => "slow_body",
            ErrorKind::TooLarge => "too_large",
            ErrorKind::UnsupportedType => "unsupported_type",
            ErrorKind::Misdirected => "misdirected",
            ErrorKind::TooCostly => "too_costly",
            ErrorKind::TooManyGuesses => "too_many_guesses",
            ErrorKind::Internal => "internal",
            ErrorKind::Busy => "busy",
            ErrorKind::Unavailable => "unavailable",
            ErrorKind::TimedOut => "timed_out",
        }
    }

    /// What axum means by a status of its own.
    fn of(status: StatusCode) -> ErrorKind {
        match status {
            StatusCode::UNAUTHORIZED => ErrorKind::Unauthorised,
            StatusCode::FORBIDDEN => ErrorKind::Forbidden,
            StatusCode::NOT_FOUND => ErrorKind::NotFound,
            StatusCode::METHOD_NOT_ALLOWED => ErrorKind::MethodNotAllowed,
            StatusCode::REQUEST_TIMEOUT => ErrorKind::SlowBody,
            StatusCode::PAYLOAD_TOO_LARGE => ErrorKind::TooLarge,
            StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorKind::UnsupportedType,
            StatusCode::MISDIRECTED_REQUEST => ErrorKind::Misdirected,
            StatusCode::TOO_MANY_REQUESTS => ErrorKind::TooManyGuesses,
            StatusCode::SERVICE_UNAVAILABLE => ErrorKind::Unavailable,
            StatusCode::GATEWAY_TIMEOUT => ErrorKind::TimedOut,
            status if status.is_server_error() => ErrorKind::Internal,
            _ => ErrorKind::BadRequest,
        }
    }
}

/// What went wrong with a request.
///
/// ```
/// # use onionskin_serve::ServeError;
/// let error = ServeError::not_found("there is no document 7").hint("documents are numbered from 0 to 3");
/// assert_eq!(error.kind().status(), 404);
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ServeError {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    /// Seconds until it is worth another try.
    retry: Option<u64>,
}

impl ServeError {
    /// Of a kind, with what happened in one line.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> ServeError {
        let retry = matches!(kind, ErrorKind::Busy | ErrorKind::Unavailable).then_some(1);
        ServeError { kind, message: message.into(), hint: None, retry }
    }

    /// The request makes no sense.
    pub fn bad_request(message: impl Into<String>) -> ServeError {
        ServeError::new(ErrorKind::BadRequest, message)
    }

    /// There is no such thing.
    pub fn not_found(message: impl Into<String>) -> ServeError {
        ServeError::new(ErrorKind::NotFound, message)
    }

    /// Our fault. The cause goes to the log; whoever asked learns no paths of this machine.
    pub fn internal(cause: impl fmt::Display) -> ServeError {
        // Who does not want to know any more is nobody's fault.
        if onionskin_store::cancel::check().is_err() {
            tracing::debug!(%cause, "a request was given up");
        } else {
            tracing::error!(%cause, "a request failed");
        }
        ServeError::new(ErrorKind::Internal, "something went wrong in the server; its log says what")
    }

    /// Adds what to try.
    pub fn hint(self, hint: impl Into<String>) -> ServeError {
        ServeError { hint: Some(hint.into()), ..self }
    }

    /// Says when it is worth another try.
    pub fn retry_after(self, wait: Duration) -> ServeError {
        ServeError { retry: Some(wait.as_secs_f64().ceil() as u64), ..self }
    }

    /// What kind of mistake it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl IntoResponse for ServeError {
    /// A response without a body; `shape` writes it.
    fn into_response(self) -> Response {
        let mut response = self.kind.status().into_response();
        if let Some(seconds) = self.retry {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.kind == ErrorKind::Unauthorised {
            let challenge = HeaderValue::from_static("Bearer realm=\"onionskin\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// An error as JSON.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct ErrorWire {
    error: ErrorDetailWire,
}

#[derive(Serialize, ToSchema)]
#[schema(as = ErrorDetail)]
struct ErrorDetailWire {
    /// What kind of mistake it is, as in `not_found`.
    code: &'static str,
    /// What happened.
    message: String,
    /// What to try.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Template)]
#[template(path = "error.html")]
struct ErrorPage<'a> {
    chrome: Chrome,
    status: StatusCode,
    error: &'a ServeError,
}

/// The longest message that axum writes, and then some.
const MOST_MESSAGE: usize = 16 << 10;

/// Whether a path belongs to programs.
pub(crate) fn is_api(path: &str) -> bool {
    path.starts_with("/api/") || path == "/health" || path == "/metrics"
}

/// Gives every error the same form.
pub(crate) async fn shape(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let api = is_api(request.uri().path());
    let head = request.method() == Method::HEAD;
    let response = next.run(request).await;
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let error = match parts.extensions.remove::<ServeError>() {
        Some(error) => error,
        None => {
            let ours = parts.headers.get(header::CONTENT_TYPE).is_some_and(|kind| {
                kind.as_bytes().starts_with(b"text/html") || kind.as_bytes().starts_with(b"application/json")
            });
            if ours {
                return Response::from_parts(parts, body);
            }
            let text = to_bytes(body, MOST_MESSAGE).await.unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            let kind = ErrorKind::of(status);
            ServeError::new(kind, if text.trim().is_empty() { usual_message(kind) } else { text.trim() })
        }
    };
    if let Some(refusal) = Refusal::of(error.kind) {
        state.metrics().refused(refusal);
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    let (kind, body) = match api {
        true => ("application/json", error.json()),
        false => ("text/html; charset=utf-8", error.page(&state, status)),
    };
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    Response::from_parts(parts, if head { Body::empty() } else { Body::from(body) })
}

fn usual_message(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "there is nothing at this address",
        ErrorKind::MethodNotAllowed => "this address does not take that method",
        _ => "the request could not be answered",
    }
}

impl ServeError {
    fn json(&self) -> String {
        let wire = ErrorWire {
            error: ErrorDetailWire {
                code: self.kind.code(),
                message: self.message.clone(),
                hint: self.hint.clone(),
            },
        };
        serde_json::to_string(&wire).unwrap_or_default()
    }

    fn page(&self, state: &AppState, status: StatusCode) -> String {
        let title = status.canonical_reason().unwrap_or("Error");
        let chrome = Chrome::new(state, Section::None, title);
        ErrorPage { chrome, status, error: self }.render().unwrap_or_else(|_| title.to_owned())
    }
}
