//! Paste a text, see whether it is known.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::routing::get;
use onionskin_seen::Stats;
use onionskin_seen::intake::{Answer, Incoming, Status};

use crate::api::seen::{count, service};
use crate::error::ServeError;
use crate::lanes::Lane;
use crate::layout::{Chrome, Page, Section};
use crate::limits::BoundedBody;
use crate::seen::COPIES_OF_TEXT;
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
    answer: Option<Answer>,
}

async fn page(state: AppState, text: String, answer: Option<Answer>) -> Result<Page<SeenPage>, ServeError> {
    let working = state.clone();
    let index = state.work(Lane::Seen, move || service(&working)?.stats()).await??;
    let seen = service(&state)?;
    Ok(Page(SeenPage {
        chrome: Chrome::new(&state, Section::Seen, "Seen before?"),
        recipe: index.recipe,
        stats: index.stats,
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
        .work(Lane::Seen, move || {
            let mut charge = working.charge();
            charge.cover(COPIES_OF_TEXT * body.bytes().len())?;
            let text = body.form_field("text")?;
            let seen = service(&working)?;
            let mut document = Some(Incoming { name: String::new(), text: Ok(text.clone()) });
            let (prepared, _) = seen.prepare(&mut charge, |_| Ok(document.take()))?;
            let answer = seen.check(&prepared, None)?.pop();
            Ok::<_, ServeError>((text, answer))
        })
        .await??;
    if let Some(answer) = &answer {
        count(answer, state.metrics());
    }
    page(state, text, answer).await
}
