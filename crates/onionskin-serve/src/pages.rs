//! What people see. Every page works without JavaScript.

mod api;
mod filter;
mod home;
mod seen;
mod sign_in;

use axum::Router;

use crate::state::AppState;

/// All pages. A module adds its own here.
pub(crate) fn router() -> Router<AppState> {
    Router::new()
        .merge(home::router())
        .merge(filter::router())
        .merge(seen::router())
        .merge(api::router())
        .merge(sign_in::router())
}
