//! Browsers trade the token for a cookie.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};

use crate::auth::{Caller, Sessions, too_many_guesses};
use crate::error::{ErrorKind, ServeError};
use crate::layout::{Chrome, Page, Section};
use crate::limits::SmallBody;
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

async fn form(State(state): State<AppState>, Extension(caller): Extension<Caller>) -> Response {
    if caller.reads_freely() || !state.auth().has_token() {
        return Redirect::to("/").into_response();
    }
    Page(SignIn::new(&state, false)).into_response()
}

async fn sign_in(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    SmallBody(body): SmallBody,
) -> Result<Response, ServeError> {
    if caller.reads_freely() || !state.auth().has_token() {
        return Ok(Redirect::to("/").into_response());
    }
    let guess = body.form_field("token")?;
    if !state.auth().guess(caller.client, guess.trim()).map_err(too_many_guesses)? {
        let page = Page(SignIn::new(&state, true)).into_response();
        return Ok((StatusCode::UNAUTHORIZED, page).into_response());
    }
    let id = state.auth().sessions().begin()?;
    cookie(&caller, &id, Sessions::LIFE.as_secs())
}

async fn sign_out(
    State(state): State<AppState>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
) -> Result<Response, ServeError> {
    state.auth().sessions().end(&headers);
    cookie(&caller, "", 0)
}

/// Gives a cookie and leads to the start page. What came encrypted must not go out in the clear
/// later.
fn cookie(caller: &Caller, id: &str, life: u64) -> Result<Response, ServeError> {
    let secure = if caller.is_encrypted { "; Secure" } else { "" };
    let text =
        format!("{}={id}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{secure}", Sessions::COOKIE);
    let value = HeaderValue::from_str(&text)
        .map_err(|_| ServeError::new(ErrorKind::Internal, "the cookie could not be made"))?;
    let mut response = Redirect::to("/").into_response();
    response.headers_mut().insert(header::SET_COOKIE, value);
    Ok(response)
}
