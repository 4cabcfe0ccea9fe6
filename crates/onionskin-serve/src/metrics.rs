//! What is counted, for Prometheus and its kin.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::Response;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use crate::error::ErrorKind;
use crate::state::AppState;

/// Labels are few by construction: routes are templates, methods those that are known.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RefusalLabels {
    reason: Refusal,
}

#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SeenLabels {
    status: SeenStatus,
}

/// Why a request was not even tried.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the labels")]
pub(crate) enum Refusal {
    busy,
    too_large,
    unauthorised,
    guessed,
    too_costly,
    misdirected,
    slow,
    timed_out,
}

impl Refusal {
    pub(crate) fn of(kind: ErrorKind) -> Option<Refusal> {
        match kind {
            ErrorKind::Busy => Some(Refusal::busy),
            ErrorKind::TooLarge => Some(Refusal::too_large),
            ErrorKind::Unauthorised | ErrorKind::Forbidden => Some(Refusal::unauthorised),
            ErrorKind::TooManyGuesses => Some(Refusal::guessed),
            ErrorKind::TooCostly => Some(Refusal::too_costly),
            ErrorKind::Misdirected => Some(Refusal::misdirected),
            ErrorKind::SlowBody => Some(Refusal::slow),
            ErrorKind::TimedOut => Some(Refusal::timed_out),
            _ => None,
        }
    }
}

/// What became of a document that was asked about.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
#[expect(non_camel_case_types, reason = "the names are the labels")]
pub(crate) enum SeenStatus {
    new,
    near,
    exact,
    empty,
    bad,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
}

/// A histogram of times from a tenth of a millisecond to half a minute.
fn times() -> Histogram {
    Histogram::new([
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
        10.0, 30.0,
    ])
}

/// Everything that is counted. Other modules add theirs with [`Metrics::register`] before the
/// server starts.
pub struct Metrics {
    registry: std::sync::Mutex<Registry>,
    requests: Family<RequestLabels, Counter>,
    durations: Family<RouteLabels, Histogram>,
    in_flight: Gauge,
    connections: Gauge,
    accepted: Counter,
    refused: Family<RefusalLabels, Counter>,
    panics: Counter,
    seen_checked: Family<SeenLabels, Counter>,
    seen_added: Counter,
    seen_removed: Counter,
    seen_syncs: Counter,
    seen_commit: Histogram,
    seen_documents: Gauge<u64, AtomicU64>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics(..)")
    }
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("onionskin");
        let metrics = Metrics {
            requests: Family::default(),
            durations: Family::new_with_constructor(times),
            in_flight: Gauge::default(),
            connections: Gauge::default(),
            accepted: Counter::default(),
            refused: Family::default(),
            panics: Counter::default(),
            seen_checked: Family::default(),
            seen_added: Counter::default(),
            seen_removed: Counter::default(),
            seen_syncs: Counter::default(),
            seen_commit: times(),
            seen_documents: Gauge::default(),
            registry: std::sync::Mutex::new(Registry::default()),
        };
        registry.register(
            "build",
            "The program",
            Info::new(BuildLabels { version: env!("CARGO_PKG_VERSION") }),
        );
        registry.register(
            "http_requests",
            "Requests answered, by route and status",
            metrics.requests.clone(),
        );
        let answering = "From the headers of a request to the beginning of its answer";
        let durations = metrics.durations.clone();
        registry.register_with_unit("http_request_duration", answering, Unit::Seconds, durations);
        registry.register("http_requests_in_flight", "Requests not yet answered", metrics.in_flight.clone());
        registry.register("connections_open", "Open connections", metrics.connections.clone());
        registry.register("connections_accepted", "Connections accepted", metrics.accepted.clone());
        registry.register("http_refused", "Requests refused, by reason", metrics.refused.clone());
        registry.register("panics", "Panics caught in handlers", metrics.panics.clone());
        registry.register("seen_answers", "Documents looked for, by answer", metrics.seen_checked.clone());
        registry.register("seen_added", "Documents added", metrics.seen_added.clone());
        registry.register("seen_removed", "Documents removed", metrics.seen_removed.clone());
        registry.register("seen_commits", "Batches made safe", metrics.seen_syncs.clone());
        let commits = metrics.seen_commit.clone();
        registry.register_with_unit(
            "seen_commit_duration",
            "Time to make a batch safe",
            Unit::Seconds,
            commits,
        );
        registry.register("seen_documents", "Documents in the index", metrics.seen_documents.clone());
        Metrics { registry: std::sync::Mutex::new(registry), ..metrics }
    }

    /// Adds what another module counts; names get the prefix `onionskin_`.
    pub fn register(&self, change: impl FnOnce(&mut Registry)) {
        change(&mut self.registry.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }

    /// Everything, as OpenMetrics text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        let registry = self.registry.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        // Writing to a string does not fail.
        let _ = text::encode(&mut out, &registry);
        out
    }

    pub(crate) fn refused(&self, reason: Refusal) {
        self.refused.get_or_create(&RefusalLabels { reason }).inc();
    }

    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }

    pub(crate) fn seen(&self, status: SeenStatus) {
        self.seen_checked.get_or_create(&SeenLabels { status }).inc();
    }

    /// What the thread that writes to the index counts.
    pub(crate) fn seen_counters(&self) -> SeenCounters {
        SeenCounters {
            added: self.seen_added.clone(),
            removed: self.seen_removed.clone(),
            syncs: self.seen_syncs.clone(),
            commit: self.seen_commit.clone(),
            documents: self.seen_documents.clone(),
        }
    }

    pub(crate) fn connected(&self) -> Counted {
        self.accepted.inc();
        Counted::new(&self.connections)
    }
}

/// What the thread that writes to the index counts.
#[derive(Clone, Debug)]
pub(crate) struct SeenCounters {
    pub added: Counter,
    pub removed: Counter,
    pub syncs: Counter,
    commit: Histogram,
    documents: Gauge<u64, AtomicU64>,
}

impl SeenCounters {
    pub(crate) fn committed(&self, time: Duration) {
        self.syncs.inc();
        self.commit.observe(time.as_secs_f64());
    }

    pub(crate) fn documents(&self, documents: u64) {
        self.documents.set(documents);
    }
}

/// Counts as long as it lives.
#[derive(Debug)]
pub(crate) struct Counted(Gauge);

impl Counted {
    fn new(gauge: &Gauge) -> Counted {
        gauge.inc();
        Counted(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Counts and times every request.
pub(crate) async fn count(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let metrics = state.metrics();
    let _counted = Counted::new(&metrics.in_flight);
    let start = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    let method = match *request.method() {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::HEAD => "HEAD",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "other",
    };
    let response = next.run(request).await;
    let time = start.elapsed();
    let status = match response.status().as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    };
    tracing::debug!(route, method, status = response.status().as_u16(), ?time, "request");
    metrics.durations.get_or_create(&RouteLabels { route: route.clone() }).observe(time.as_secs_f64());
    metrics.requests.get_or_create(&RequestLabels { route, method, status }).inc();
    response
}
