//! What keeps one request from harming the others: time, bodies, panics.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Poll;

use axum::body::Body;
use axum::extract::{FromRequest, Request, State};
use axum::http::header;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::body::Body as HttpBody;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

use crate::auth::Caller;
use crate::connections::Connection;
use crate::error::{ErrorKind, ServeError};
use crate::state::{AppState, BODY_UNIT, Busy};

/// Ends requests that take too long.
pub(crate) async fn bound_time(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let limit = state.limits().request_time;
    match timeout(limit, next.run(request)).await {
        Ok(response) => response,
        Err(_) => ServeError::new(
            ErrorKind::TimedOut,
            format!("the request took longer than {} seconds", limit.as_secs_f64()),
        )
        .hint("ask for less at a time")
        .into_response(),
    }
}

/// Turns a panic in a handler into an answer.
pub(crate) async fn catch_panics(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let mut answer = Box::pin(next.run(request));
    let outcome = poll_fn(|context| {
        // What a handler shares is behind locks that are taken over when poisoned.
        match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(response)) => Poll::Ready(Ok(response)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    });
    match outcome.await {
        Ok(response) => response,
        Err(panic) => {
            state.metrics().panicked();
            let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            ServeError::internal(format!("a handler panicked: {text}")).into_response()
        }
    }
}

/// A body in memory, within the limits of size, time and what all bodies together may take. Gives
/// its room back when dropped.
#[derive(Debug)]
pub struct BoundedBody {
    bytes: Vec<u8>,
    /// The `Content-Type`, without parameters and in lower case.
    kind: String,
    room: Room,
}

/// Room that a body takes, given back when dropped. Goes along with what was made of the body.
#[derive(Debug, Default)]
pub struct Room {
    _body: Option<OwnedSemaphorePermit>,
    /// What was made of the body.
    _work: Option<OwnedSemaphorePermit>,
}

impl Room {
    /// With memory that work keeps.
    pub(crate) fn and(self, work: Option<OwnedSemaphorePermit>) -> Room {
        Room { _work: work, ..self }
    }
}

impl BoundedBody {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The `Content-Type`, without parameters and in lower case; empty where there is none.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// A field of a form; empty where it is missing.
    pub fn form_field(&self, name: &str) -> Result<String, ServeError> {
        if self.kind != "application/x-www-form-urlencoded" {
            return Err(ServeError::new(ErrorKind::UnsupportedType, "the body must be a form"));
        }
        let mut fields = url::form_urlencoded::parse(&self.bytes);
        Ok(fields.find(|(field, _)| field == name).map(|(_, value)| value.into_owned()).unwrap_or_default())
    }

    /// The room it takes, for who keeps what was in it.
    pub fn into_room(self) -> Room {
        self.room
    }

    /// Parses JSON.
    pub fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, ServeError> {
        if self.kind != "application/json" {
            return Err(ServeError::new(
                ErrorKind::UnsupportedType,
                format!("the body must be application/json, not {:?}", self.kind),
            ));
        }
        serde_json::from_slice(&self.bytes)
            .map_err(|error| ServeError::bad_request(format!("the body is not what this takes: {error}")))
    }
}

impl FromRequest<AppState> for BoundedBody {
    type Rejection = ServeError;

    async fn from_request(request: Request, state: &AppState) -> Result<BoundedBody, ServeError> {
        let most = state.limits().body_bytes;
        // Strangers have room of their own, so that they never take that of those who know the
        // token.
        let pool = if is_trusted(&request) { state.bodies() } else { state.open_bodies() };
        let hint = "send fewer documents at a time";
        read(request, state, most, Some(pool)).await.map_err(|error| match error.kind() {
            ErrorKind::TooLarge => error.hint(hint),
            _ => error,
        })
    }
}

/// The body of a form with one short field, from somebody who has shown nothing yet.
#[derive(Debug)]
pub(crate) struct SmallBody(pub BoundedBody);

impl FromRequest<AppState> for SmallBody {
    type Rejection = ServeError;

    async fn from_request(request: Request, state: &AppState) -> Result<SmallBody, ServeError> {
        read(request, state, state.limits().sign_in_bytes, None).await.map(SmallBody)
    }
}

fn is_trusted(request: &Request) -> bool {
    request.extensions().get::<Caller>().is_some_and(Caller::is_trusted)
}

/// Reads a body of at most so many bytes. A small one takes no room of a pool: there are no more of
/// them than connections.
async fn read(
    request: Request,
    state: &AppState,
    most: usize,
    pool: Option<&Arc<Semaphore>>,
) -> Result<BoundedBody, ServeError> {
    let limits = state.limits();
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default();
    let kind = kind.trim().to_ascii_lowercase();
    // Strangers who are slow make room for others.
    let connection = request.extensions().get::<Arc<Connection>>().filter(|_| !is_trusted(&request));
    let _awaiting = connection.map(Connection::awaiting_body);
    let deadline = Instant::now() + limits.body_time;
    let mut room: Option<OwnedSemaphorePermit> = None;
    let mut bytes = Vec::new();
    let mut body = request.into_body();
    let too_large = || ServeError::new(ErrorKind::TooLarge, format!("the body has more than {most} bytes"));
    if HttpBody::size_hint(&body).lower() > most as u64 {
        discard(body, most, deadline).await;
        return Err(too_large());
    }
    loop {
        let frame = match timeout_at(deadline, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => break,
            Ok(Some(Err(_))) => return Err(ServeError::bad_request("the body ended too early")),
            Err(_) => {
                let limit = limits.body_time.as_secs_f64();
                let message = format!("the body took longer than {limit} seconds");
                return Err(ServeError::new(ErrorKind::SlowBody, message));
            }
        };
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > most {
            drop((bytes, room));
            discard(body, most, deadline).await;
            return Err(too_large());
        }
        if let Some(pool) = pool
            && !take_room(pool, &mut room, bytes.len() + data.len(), most)
        {
            drop((bytes, room));
            discard(body, most, deadline).await;
            return Err(Busy.into());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(BoundedBody { bytes, kind, room: Room { _body: room, _work: None } })
}

/// Takes room for a body that has grown to so many bytes. Room is taken as bytes arrive, not as
/// they are announced: announcing costs nothing. When there is none left, who comes last is sent
/// away, so that nobody waits for room that only they themselves could free.
fn take_room(
    pool: &Arc<Semaphore>,
    room: &mut Option<OwnedSemaphorePermit>,
    bytes: usize,
    most: usize,
) -> bool {
    let needed = bytes.div_ceil(BODY_UNIT);
    let had = room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
    if needed <= had {
        return true;
    }
    let more = (needed - had).max(had).min(most.div_ceil(BODY_UNIT) - had);
    let Ok(more) = Arc::clone(pool).try_acquire_many_owned(more as u32) else { return false };
    match room {
        Some(room) => room.merge(more),
        None => *room = Some(more),
    }
    true
}

/// Reads some of what is not wanted. Closing a connection while the other side still sends makes it
/// lose the answer.
async fn discard(mut body: Body, most: usize, deadline: Instant) {
    let mut seen = 0;
    while let Ok(Some(Ok(frame))) = timeout_at(deadline, body.frame()).await {
        seen += frame.data_ref().map_or(0, |data| data.len());
        if seen > most {
            return;
        }
    }
}
