//! What people see. Every page works without JavaScript.

mod api;
pub(crate) mod clusters;
pub(crate) mod collections;
pub(crate) mod compare;
pub(crate) mod document;
mod downloads;
mod filter;
mod home;
mod search;
mod seen;
mod sign_in;

use axum::Router;

use crate::state::AppState;

/// All pages. A module adds its own here.
pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .merge(home::router())
        .merge(search::router())
        .merge(document::router())
        .merge(clusters::router())
        .merge(collections::router())
        .merge(compare::router())
        .merge(downloads::router())
        .merge(filter::router())
        .merge(seen::router())
        .merge(api::router())
        .merge(sign_in::router())
}
