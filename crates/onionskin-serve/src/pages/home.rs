//! The start page.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::routing::get;

use crate::layout::{Chrome, Page, Section};
use crate::state::AppState;

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/", get(home))
}

#[derive(Template)]
#[template(path = "home.html")]
struct Home {
    chrome: Chrome,
}

async fn home(State(state): State<AppState>) -> Page<Home> {
    Page(Home { chrome: Chrome::new(&state, Section::Search, "Start") })
}
