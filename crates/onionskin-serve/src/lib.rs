//! The server of onionskin: pages and an API over an atlas and an index of seen documents, in one
//! process.
//!
//! ```text
//! socket ─▶ server: accept, bounds ─▶ metrics ─▶ headers ─▶ gzip ─▶ errors shaped ─▶ guard ─▶ time ─▶ panics caught ─▶ handler
//!                                                                                                       │
//!                                    pages::* (askama templates)   api::* (JSON, OpenAPI)  ◀────────────┘
//!                                                  └──── AppState::work: threads that may block ────┘
//! ```
//!
//! # A page
//!
//! Make `pages/thing.rs` and `templates/thing.html`:
//!
//! ```ignore
//! pub(crate) fn router() -> Router<AppState> {
//!     Router::new().route("/thing/{id}", get(thing))
//! }
//!
//! #[derive(Template)]
//! #[template(path = "thing.html")]       // {% extends "base.html" %}{% block main %}...{% endblock %}
//! struct Thing { chrome: Chrome, name: String }
//!
//! async fn thing(State(state): State<AppState>, Path(id): Path<u32>) -> Result<Page<Thing>, ServeError> {
//!     let working = state.clone();
//!     let name = state.work(Lane::Search, move || find(&working, id)).await??;      // Err(ServeError::not_found("...")) is a page, too
//!     Ok(Page(Thing { chrome: Chrome::new(&state, Section::Clusters, &name), name }))
//! }
//! ```
//!
//! and merge its router in `pages.rs`. Addresses of crawled pages are shown by the macro `crawled`
//! of `macros.html`, which makes links of http and https only. Whatever reads files or computes for
//! more than a moment goes through [`AppState::work`], in the [`Lane`] of its kind. The policy
//! forbids scripts and styles in pages: both belong into `assets/`. A form with `data-live="#id"`
//! sends itself while somebody types, and the element of that id is replaced by that of the answer.
//!
//! # A route of the API
//!
//! Make `api/thing.rs` with wire structs of its own (`Serialize`, `ToSchema`) and handlers under
//! `#[utoipa::path(...)]`; a function `router() -> OpenApiRouter<AppState>` with
//! `.routes(routes!(handler))`, merged in `api.rs`, adds the route and its description at once.
//! Only its own answers are declared: the errors that every route can have are added in one place.
//! Bodies are read by [`BoundedBody`], which keeps the limits; a handler that writes has
//! [`auth::Writer`] among its arguments.

mod api;
mod assets;
pub mod auth;
mod beneath;
mod charge;
mod config;
mod connections;
mod curve;
mod error;
pub mod headers;
mod lanes;
mod layout;
pub mod library;
mod limits;
pub mod links;
mod metrics;
mod pages;
mod picture;
mod seen;
mod server;
mod state;
mod view;

pub use config::{Config, Limits};
pub use error::{ErrorKind, ServeError};
pub use lanes::Lane;
pub use layout::{Chrome, NavItem, Page, Section, crawled_href, grouped};
pub use limits::{BoundedBody, Room};
pub use metrics::Metrics;
pub use seen::{SeenService, StartError};
pub use server::{RunError, Stop, bind, run, serve};
pub use state::{AppState, Busy, StateError};

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate, SizeAbove};

/// Answers shorter than this are sent as they are.
const WORTH_COMPRESSING: u64 = 860;

/// Everything that the server answers.
pub fn router(state: AppState) -> Router {
    assemble(state, Router::new())
}

/// With some more routes, for tests.
fn assemble(state: AppState, more: Router<AppState>) -> Router {
    let (api, document) = api::router().split_for_parts();
    // The second router of a state has the same routes.
    let _ = state.api().set(api::ApiDocument::new(document, &state));
    // Tables are compressed already.
    let tables = NotForContentType::const_new("application/vnd.apache.parquet");
    let worth_it = SizeAbove::new(WORTH_COMPRESSING).and(NotForContentType::IMAGES).and(tables);
    let with = |state: &AppState| state.clone();
    // The last layer is the outermost.
    Router::new()
        .merge(api)
        .merge(assets::router())
        .merge(pages::router())
        .merge(more)
        .layer(from_fn_with_state(with(&state), limits::catch_panics))
        .layer(from_fn_with_state(with(&state), limits::bound_time))
        .layer(from_fn_with_state(with(&state), auth::guard))
        .layer(from_fn_with_state(with(&state), error::shape))
        .layer(CompressionLayer::new().compress_when(worth_it))
        .layer(from_fn(headers::add))
        .layer(from_fn_with_state(with(&state), metrics::count))
        .with_state(state)
}

#[cfg(test)]
mod tests;
