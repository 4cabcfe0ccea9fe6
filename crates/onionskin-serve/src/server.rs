//! Accepting connections and letting go of them.
//!
//! `axum::serve` has no time limit for headers, so a client that sends a byte a minute would keep a
//! connection for ever. This loop has limits for everything: how many connections are open, how
//! long headers take, how long an answer may wait to be read.
//!
//! **Connections past the bound wait unaccepted.** The kernel keeps them in its backlog, which
//! costs this process nothing. Answering each with a 503 would cost a descriptor and a write for
//! each, which is just what there is none left of, and well-behaved clients would retry at once.
//! Open connections on which nothing happens make room: see [`crate::connections`].

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use onionskin::Progress;
use onionskin::scan::texts::LostInput;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::{Sleep, sleep};
use tower::Service;

use crate::auth::{Auth, Peer};
use crate::config::Config;
use crate::connections::{BusyBody, Connection, Connections};
use crate::state::{AppState, StateError};

/// Why a server did not start, or ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Something to be served is no good.
    #[error(transparent)]
    State(#[from] StateError),
    /// The address cannot be had.
    #[error("listening on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The system has no threads or no signals for us.
    #[error("starting")]
    Start(#[source] io::Error),
}

/// How a server is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stop {
    /// Not yet.
    Running,
    /// When what is running is done.
    Soon,
    /// At once.
    Now,
}

/// Connections that the kernel may keep waiting.
const BACKLOG: u32 = 4096;

/// How long to wait when no descriptor is left.
const PAUSE: Duration = Duration::from_millis(50);

/// Descriptors for everything but connections: index files, above all.
const OTHER_FILES: u64 = 1024;

/// Serves until a signal comes. Blocks. `listening` is told the address, which is the real one when
/// the port was 0. A full-text index that is missing is made first, while callers wait; `listening`
/// is told what could not be read for it.
pub fn run(
    config: Config,
    progress: &dyn Progress,
    listening: impl FnOnce(SocketAddr, &[LostInput]),
) -> Result<(), RunError> {
    let address = config.listen;
    let mut config = config;
    config.limits.connections = room_for_connections(config.limits.connections);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(RunError::Start)?;
    Auth::new(&config).map_err(StateError::from)?;
    // An address that is taken is told before an hour of indexing, not after it.
    let listener =
        runtime.block_on(async { bind(address) }).map_err(|source| RunError::Listen { address, source })?;
    let address = listener.local_addr().map_err(|source| RunError::Listen { address, source })?;
    let state = AppState::open_with(config, progress)?;
    let outcome = runtime.block_on(async {
        let stop = stop_on_signals().map_err(RunError::Start)?;
        listening(address, state.library().map_or(&[], |library| library.lost_inputs()));
        serve(listener, crate::router(state.clone()), &state, stop).await;
        Ok(())
    });
    // Work of callers that went away may still be running; it changes nothing that was
    // acknowledged.
    runtime.shutdown_timeout(Duration::from_millis(100));
    if let Some(seen) = state.seen() {
        seen.close();
    }
    outcome
}

/// Binds an address.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A server that is started again must not wait for the connections of the one before.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// As many connections as there can be descriptors for.
fn room_for_connections(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let needed = wanted as u64 + OTHER_FILES;
    let mut current = limit.current.unwrap_or(u64::MAX);
    if current < needed {
        let most = limit.maximum.unwrap_or(u64::MAX).min(needed);
        if setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum: limit.maximum }).is_ok() {
            current = most;
        }
    }
    if current >= needed {
        return wanted;
    }
    // Without enough of them, half is for files.
    let room = (current / 2).max(8) as usize;
    tracing::warn!(wanted, room, "fewer connections than asked for: the limit of open files is {current}");
    room
}

/// The first signal asks to stop, the second one does not wait.
fn stop_on_signals() -> io::Result<watch::Receiver<Stop>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (sender, receiver) = watch::channel(Stop::Running);
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        for stop in [Stop::Soon, Stop::Now] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            tracing::info!(?stop, "a signal came");
            if sender.send(stop).is_err() {
                return;
            }
        }
        // The channel stays open for those who wait.
        sender.closed().await;
    });
    Ok(receiver)
}

/// Waits until the server is to end in this way, or a quicker one.
async fn until(stop: &mut watch::Receiver<Stop>, wanted: Stop) {
    // Who can no longer say stop never will.
    if stop.wait_for(|now| *now >= wanted).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Serves connections until told to stop.
pub async fn serve(listener: TcpListener, router: Router, state: &AppState, mut stop: watch::Receiver<Stop>) {
    let limits = state.limits().clone();
    let connections = Connections::new(limits.connections);
    let graceful = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header_time).keep_alive(true);
    // Addresses of 4,000 characters are met; a header of 64 KiB is an attack.
    http.max_buf_size(64 << 10);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = until(&mut stop, Stop::Soon) => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // A connection that was reset while it waited is none of our business. Without
                // descriptors, those who have one finish first.
                if !matches!(
                    error.kind(),
                    io::ErrorKind::ConnectionAborted
                        | io::ErrorKind::ConnectionReset
                        | io::ErrorKind::Interrupted
                ) {
                    tracing::warn!(%error, "accepting a connection");
                    sleep(PAUSE).await;
                }
                continue;
            }
        };
        // One is in hand while it waits for a place, so that room is made only when somebody is
        // there who needs it.
        let place = tokio::select! {
            biased;
            place = connections.place() => place,
            () = until(&mut stop, Stop::Soon) => break,
        };
        let Some(place) = place else { break };
        // An answer is written at once; waiting for more of it gains nothing.
        let _ = stream.set_nodelay(true);
        let counted = state.metrics().connected();
        let (connection, held) = connections.begin(place);
        let io = Unstalled {
            stream,
            limit: limits.write_time,
            stalled: None,
            connection: Arc::clone(&connection),
        };
        let marking = (Arc::clone(&connection), router.clone());
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let (connection, mut router) = marking.clone();
            let busy = connection.busy();
            request.extensions_mut().insert(Peer(peer));
            request.extensions_mut().insert(connection);
            async move {
                let answer = router.call(request).await?;
                Ok::<_, Infallible>(answer.map(|body| BusyBody::new(body, busy)))
            }
        });
        let serving = graceful.watch(http.serve_connection(TokioIo::new(io), service));
        tokio::spawn(async move {
            // The place is given back last, so that no more are counted than there are places.
            let _held = (counted, held);
            tokio::select! {
                ended = serving => {
                    if let Err(error) = ended {
                        tracing::debug!(%error, "a connection ended");
                    }
                }
                () = connection.dismissed() => tracing::debug!("a connection made room"),
            }
        });
    }
    drop(listener);
    tokio::select! {
        () = graceful.shutdown() => {}
        () = sleep(limits.stop_time) => tracing::warn!("some requests were not done in time"),
        () = until(&mut stop, Stop::Now) => tracing::warn!("stopped at once"),
    }
}

/// A connection that fails when nothing of an answer is taken for too long.
struct Unstalled {
    stream: TcpStream,
    limit: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    connection: Arc<Connection>,
}

impl Unstalled {
    fn judge<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.connection.alive();
            self.stalled = None;
            return polled;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        match stalled.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Unstalled {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Unstalled {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.judge(context, polled)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.stream).poll_write_vectored(context, slices);
        this.judge(context, polled)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}
