//! Paste a text, see whether it is known.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use onionskin::seen::Stats;

use crate::api::seen::{AnswerWire, StatusWire, service};
use crate::error::ServeError;
use crate::layout::{Chrome, Page, Section};
use crate::limits::BoundedBody;
use crate::seen::Incoming;
use crate::state::AppState;

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/seen", get(form).post(check))
}

#[derive(Template)]
#[template(path = "seen.html")]
struct SeenPage {
    chrome: Chrome,
    recipe: String,
    stats: Stats,
    read_only: bool,
    text: String,
    answer: Option<AnswerWire>,
}

async fn page(
    state: AppState,
    text: String,
    answer: Option<AnswerWire>,
) -> Result<Page<SeenPage>, ServeError> {
    let working = state.clone();
    let stats = state.work(move || service(&working)?.stats()).await??;
    let seen = service(&state)?;
    Ok(Page(SeenPage {
        chrome: Chrome::new(&state, Section::Seen, "Seen before?"),
        recipe: seen.params().recipe.to_string(),
        stats,
        read_only: seen.is_read_only(),
        text,
        answer,
    }))
}

async fn form(State(state): State<AppState>) -> Result<Page<SeenPage>, ServeError> {
    page(state, String::new(), None).await
}

async fn check(State(state): State<AppState>, body: BoundedBody) -> Result<Page<SeenPage>, ServeError> {
    let working = state.clone();
    let (text, answer) = state
        .work(move || {
            let text = body.form_field("text")?;
            let seen = service(&working)?;
            let features = seen.features(&[&text]).pop().unwrap_or_default();
            let incoming = Incoming { name: String::new(), features: Ok(features) };
            let answer = seen.check(&[incoming])?.pop();
            let wire = answer.map(|(answer, _)| AnswerWire::new(String::new(), answer, false, seen.params()));
            Ok::<_, ServeError>((text, wire))
        })
        .await??;
    if let Some(answer) = &answer {
        answer.count(state.metrics());
    }
    page(state, text, answer).await
}
