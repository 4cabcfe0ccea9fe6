//! Browsers trade the token for a cookie.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};

use crate::auth::Sessions;
use crate::error::{ErrorKind, ServeError};
use crate::layout::{Chrome, Page, Section};
use crate::limits::BoundedBody;
use crate::state::AppState;

pub(crate) fn router() -> Router<AppState> {
    Router::new().route("/sign-in", get(form).post(sign_in)).route("/sign-out", post(sign_out))
}

#[derive(Template)]
#[template(path = "sign_in.html")]
struct SignIn {
    chrome: Chrome,
    wrong: bool,
}

impl SignIn {
    fn new(state: &AppState, wrong: bool) -> SignIn {
        let mut chrome = Chrome::new(state, Section::None, "Sign in");
        // Whoever has not signed in learns nothing of what is here.
        chrome.nav.clear();
        chrome.serving.clear();
        (chrome.search, chrome.session) = (false, false);
        SignIn { chrome, wrong }
    }
}

async fn form(State(state): State<AppState>) -> Response {
    if state.auth().is_open() {
        return Redirect::to("/").into_response();
    }
    Page(SignIn::new(&state, false)).into_response()
}

async fn sign_in(State(state): State<AppState>, body: BoundedBody) -> Result<Response, ServeError> {
    if state.auth().is_open() {
        return Ok(Redirect::to("/").into_response());
    }
    let guess = body.form_field("token")?;
    if !state.auth().knows(guess.trim()) {
        let page = Page(SignIn::new(&state, true)).into_response();
        return Ok((StatusCode::UNAUTHORIZED, page).into_response());
    }
    let id = state.auth().sessions().begin()?;
    let life = Sessions::LIFE.as_secs();
    cookie(&format!("{}={id}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict", Sessions::COOKIE))
}

async fn sign_out(State(state): State<AppState>, headers: HeaderMap) -> Result<Response, ServeError> {
    state.auth().sessions().end(&headers);
    cookie(&format!("{}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict", Sessions::COOKIE))
}

fn cookie(text: &str) -> Result<Response, ServeError> {
    let value = HeaderValue::from_str(text)
        .map_err(|_| ServeError::new(ErrorKind::Internal, "the cookie could not be made"))?;
    let mut response = Redirect::to("/").into_response();
    response.headers_mut().insert(header::SET_COOKIE, value);
    Ok(response)
}
