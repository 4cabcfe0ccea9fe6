//! Which connections are open, and which of them can go when others wait.
//!
//! A connection is busy from the headers of a request to the last byte of its answer. Otherwise it
//! is open for nothing: it has just begun, or dribbles headers, or is kept for a next request. One
//! whose body is awaited, of somebody who has not shown the token, counts like these. Those may
//! stay as long as there is room. When there is none, the one that has been waiting longest makes
//! room for the next, so that a crowd of silent connections delays others by moments and not by the
//! whole time that each of them may take.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Who has only just come, or has just been answered, is left alone for this long: time enough to
/// send a request.
const GRACE: Duration = Duration::from_millis(250);

/// How long to wait for the one that was told to go, before another one is.
const PAUSE: Duration = Duration::from_millis(20);

/// In place of a time: busy.
const BUSY: u64 = u64::MAX;

/// In place of a time: told to leave.
const LEAVING: u64 = u64::MAX - 1;

/// All open connections.
#[derive(Debug)]
pub(crate) struct Connections {
    places: Arc<Semaphore>,
    open: Arc<Mutex<BTreeMap<u64, Arc<Connection>>>>,
    start: Instant,
    next: AtomicU64,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Connection {
    start: Instant,
    /// Milliseconds from the start to when it began to wait, or [`BUSY`].
    waiting_since: AtomicU64,
    leave: Notify,
}

/// Keeps a place while it lives.
#[derive(Debug)]
pub(crate) struct Held {
    number: u64,
    open: Arc<Mutex<BTreeMap<u64, Arc<Connection>>>>,
    _place: OwnedSemaphorePermit,
}

fn lock(open: &Mutex<BTreeMap<u64, Arc<Connection>>>) -> MutexGuard<'_, BTreeMap<u64, Arc<Connection>>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connections {
    /// With room for this many.
    pub(crate) fn new(most: usize) -> Connections {
        Connections {
            places: Arc::new(Semaphore::new(most)),
            open: Arc::default(),
            start: Instant::now(),
            next: AtomicU64::new(0),
        }
    }

    /// Waits for a place, and makes room for itself. `None` never comes, as long as nobody closes
    /// the semaphore.
    pub(crate) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        loop {
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                return Some(place);
            }
            self.dismiss();
            let place = Arc::clone(&self.places).acquire_owned();
            if let Ok(place) = tokio::time::timeout(PAUSE, place).await {
                return place.ok();
            }
        }
    }

    /// Tells the one that has been waiting longest to leave.
    fn dismiss(&self) {
        let latest = (self.start.elapsed().as_millis() as u64).saturating_sub(GRACE.as_millis() as u64);
        let open = lock(&self.open);
        let since = |connection: &Arc<Connection>| connection.waiting_since.load(Ordering::Acquire);
        let longest = open.values().min_by_key(|connection| since(connection));
        let longest = longest.map(|connection| (connection, since(connection)));
        if let Some((connection, since)) = longest.filter(|(_, since)| *since <= latest) {
            let waiting = &connection.waiting_since;
            // Whoever has just got a request stays.
            if waiting.compare_exchange(since, LEAVING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                connection.leave.notify_one();
            }
        }
    }

    /// A connection has begun.
    pub(crate) fn begin(&self, place: OwnedSemaphorePermit) -> (Arc<Connection>, Held) {
        let connection = Arc::new(Connection {
            start: self.start,
            waiting_since: AtomicU64::new(self.start.elapsed().as_millis() as u64),
            leave: Notify::new(),
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.open).insert(number, Arc::clone(&connection));
        (connection, Held { number, open: Arc::clone(&self.open), _place: place })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.open).remove(&self.number);
    }
}

impl Connection {
    /// Comes when it has to make room.
    pub(crate) async fn dismissed(&self) {
        loop {
            self.leave.notified().await;
            // A request may have come in the same moment; then somebody else goes.
            if self.waiting_since.load(Ordering::Acquire) == LEAVING {
                return;
            }
        }
    }

    /// A request is there; it is answered when what is returned is dropped.
    pub(crate) fn busy(self: &Arc<Connection>) -> Busy {
        self.waiting_since.store(BUSY, Ordering::Release);
        Busy(Arc::clone(self))
    }

    /// The body of its request is awaited. As long as what is returned lives, it may have to make
    /// room, as if it had sent nothing.
    pub(crate) fn awaiting_body(self: &Arc<Connection>) -> AwaitingBody {
        self.wait();
        AwaitingBody(Arc::clone(self))
    }

    /// Bytes of an answer go out, which is a sign of life.
    pub(crate) fn alive(&self) {
        if self.waiting_since.load(Ordering::Acquire) != BUSY {
            self.wait();
        }
    }

    fn wait(&self) {
        self.waiting_since.store(self.start.elapsed().as_millis() as u64, Ordering::Release);
    }
}

/// A request of which the body has not come yet.
#[derive(Debug)]
pub(crate) struct AwaitingBody(Arc<Connection>);

impl Drop for AwaitingBody {
    fn drop(&mut self) {
        self.0.waiting_since.store(BUSY, Ordering::Release);
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.wait();
    }
}

/// The body of an answer; its connection is busy until it is sent.
#[derive(Debug)]
pub(crate) struct BusyBody {
    body: Body,
    _busy: Busy,
}

impl BusyBody {
    pub(crate) fn new(body: Body, busy: Busy) -> BusyBody {
        BusyBody { body, _busy: busy }
    }
}

impl HttpBody for BusyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
