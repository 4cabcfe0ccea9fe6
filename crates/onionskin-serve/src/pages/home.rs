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

/// An atlas in numbers.
struct Numbers {
    documents: u64,
    clusters: u64,
    in_clusters: u64,
    collections: u64,
    replicas: u64,
    lost: Vec<String>,
}

#[derive(Template)]
#[template(path = "home.html")]
struct Home {
    chrome: Chrome,
    numbers: Option<Numbers>,
}

async fn home(State(state): State<AppState>) -> Page<Home> {
    let numbers = state.library().ok().map(|library| {
        let copies = library.copies();
        let stats = copies.all_stats();
        Numbers {
            documents: u64::from(copies.documents()),
            clusters: u64::from(copies.clusters()),
            in_clusters: stats.iter().map(|row| row.documents).sum(),
            collections: copies.groups().len() as u64,
            replicas: copies.groups().iter().map(|row| row.replicas).sum(),
            lost: library
                .lost_inputs()
                .iter()
                .map(|lost| format!("{}: {}", lost.input, lost.reason))
                .collect(),
        }
    });
    // The page has a search box of its own.
    let chrome = Chrome { search: false, ..Chrome::new(&state, Section::Search, "Start") };
    Page(Home { chrome, numbers })
}
